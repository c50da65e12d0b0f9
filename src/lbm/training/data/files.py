"""Tables in files: CSV and Parquet, checked when they are opened and read in parts."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pandas as pd

from lbm.errors import FileError, LbmError, MissingExtra, nearest
from lbm.knowledge.packed import bare_name, is_packed, opened

HEAD_ROWS: Final = 100_000
"""Rows, the first of a file, that decide what its columns are; fewer where these have HEAD_CELLS cells."""

HEAD_CELLS: Final = 20_000_000

CHUNK_CELLS: Final = 2_000_000
"""Cells of a file that are numbers at once."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that holds a table, checked to be one: every line as long as the first, every name once.

    Attributes
    ----------
    path, name
        Where it is, and what messages call it.
    columns
        The names of its columns.
    rows
        How many rows it has.
    parquet
        Whether it is Parquet; else it is CSV.
    """

    path: Path
    name: str
    columns: tuple[str, ...]
    rows: int
    parquet: bool

    def chunks(
        self, columns: Sequence[str], *, text: Iterable[str] = (), rows: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield these columns, a bounded number of rows at a time; those in ``text`` are read as text.

        Parquet files know the types of their columns, and ``text`` changes nothing there.
        """
        wanted = list(columns) or list(self.columns[:1])
        size = rows or max(1, CHUNK_CELLS // len(wanted))
        parts = self._parquet(wanted, size) if self.parquet else self._csv(wanted, size, frozenset(text))
        while (part := reading(self.name, lambda: next(parts, None))) is not None:
            yield part[list(columns)]

    def head(self, columns: Sequence[str], *, rows: int | None = None) -> pd.DataFrame:
        """Return the first rows of these columns, by default HEAD_ROWS."""
        limit = max(1, min(HEAD_ROWS, HEAD_CELLS // max(1, len(columns)))) if rows is None else rows
        parts: list[pd.DataFrame] = []
        for part in self.chunks(columns, rows=limit):  # of Parquet, a part ends where a group of rows does
            parts.append(part)
            if sum(map(len, parts)) >= limit:
                break
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True).iloc[:limit]

    def _csv(self, columns: list[str], rows: int, text: frozenset[str]) -> Iterator[pd.DataFrame]:
        options: dict[str, Any] = {
            "names": list(self.columns),
            "header": 0,
            "index_col": False,
            "usecols": columns,
            "dtype": dict.fromkeys(text & set(columns), str),
            "encoding": "utf-8-sig",
            "low_memory": False,  # one type per column and part, whatever its first lines hold
        }
        with _opened(self.path, self.name) as file, pd.read_csv(file, chunksize=rows, **options) as parts:
            yield from parts

    def _parquet(self, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        with _pyarrow().ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                yield batch.to_pandas(ignore_metadata=True, use_threads=False)


def open_table(path: str | Path, *, name: str | None = None) -> TableFile:
    """Return a CSV or Parquet file, once it was seen that it is one.

    CSV is UTF-8 with names in the first line and commas between cells; empty cells, and the words that
    pandas takes for it, are missing values. Anything else is one clear error.
    """
    where, shown = Path(path), str(path) if name is None else name
    with _opened(where, shown) as file:
        start = file.read(4)
    if not start:
        raise FileError(f"{shown}: expected a table, found an empty file")
    if start == b"PAR1" or where.suffix.lower() in (".parquet", ".pq"):
        return _open_parquet(where, shown)
    columns = _check_names(_header(where, shown), shown)
    rows = _count_rows(where, len(columns), shown)
    return _not_empty(TableFile(where, shown, columns, rows, parquet=False))


def _opened(path: Path, name: str) -> Any:
    try:
        if path.exists() and not path.is_file():
            raise FileError(f"cannot read {name}: it is no regular file")
        file = path.open("rb")
        if is_packed(file.peek(8)) or bare_name(path) != path:
            return opened(file, name, ending=path.suffix.lower())
        return file
    except (OSError, ValueError) as error:
        if isinstance(error, LbmError):
            raise
        raise FileError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None


def _open_parquet(path: Path, name: str) -> TableFile:
    parquet = _pyarrow()

    def read() -> tuple[list[str], int]:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            told = (schema.pandas_metadata or {}).get("index_columns", [])
            index = {column for column in told if isinstance(column, str)}
            return [column for column in schema.names if column not in index], file.metadata.num_rows

    columns, rows = reading(name, read)
    return _not_empty(TableFile(path, name, _check_names(columns, name), rows, parquet=True))


def _pyarrow() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("tables", "reading .parquet files", "pyarrow") from None
    return parquet


def reading(name: str, read: Callable[[], T]) -> T:
    """Call ``read``; what a reader of files raises becomes one line about the file."""
    try:
        return read()
    except LbmError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(f"{name}: expected UTF-8 text, found other bytes: {error.reason}") from None
    except (OSError, ValueError, NotImplementedError, KeyError) as error:  # pandas' and pyarrow's among them
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileError(f"cannot read {name}: {text}") from None


def _not_empty(table: TableFile) -> TableFile:
    if not table.rows:
        raise FileError(f"{table.name}: expected rows below the names of columns, found none")
    return table


def _check_names(columns: Sequence[str], name: str) -> tuple[str, ...]:
    if not columns:
        raise FileError(f"{name}: expected columns, found none")
    if "" in columns:
        raise FileError(
            f"{name}: expected a name for every column, found none for column {columns.index('') + 1}: "
            "name it or leave it out (pandas: to_csv(index=False))"
        )
    if twice := repeated(columns):
        raise FileError(
            f"{name}: expected every column to have its own name, found {twice[0]!r} twice: rename one"
        )
    return tuple(columns)


def repeated(names: Iterable[Any]) -> list[Any]:
    """Return the names that are there more than once."""
    return [name for name, number in Counter(names).items() if number > 1]


def find_column(table: TableFile, column: str) -> str:
    """Return a column's name, or say which one may have been meant."""
    if column not in table.columns:
        near = nearest(column, table.columns)
        hint = f"; did you mean {near!r}?" if near else f": it has {', '.join(table.columns[:10])}"
        raise FileError(f"{table.name}: expected a column {column!r}, found none{hint}")
    return column


# --- the lines of a CSV file ---------------------------------------------------------------------


def _header(path: Path, name: str) -> list[str]:
    for _, record in _records(path, name):
        if len(record) == 1 and any(sign in record[0] for sign in ";\t"):
            sign = ";" if ";" in record[0] else "tabs"
            raise FileError(f"{name}: expected commas between columns, found {sign}: convert the file")
        return record
    raise FileError(f"{name}: expected a table, found empty lines only")


def _count_rows(path: Path, width: int, name: str) -> int:
    """Return how many lines follow the first, all of which must be as long; empty lines are skipped."""
    found = -1
    with _opened(path, name) as file:
        for number, line in enumerate(file, start=1):
            if b'"' in line or b"\r" in line.rstrip(b"\r\n") or b"\0" in line:
                break  # commas and ends of lines may stand within cells: the slow way knows
            if not line.isascii():
                _decoded(line, number, name)
            if line.strip():
                _check_width(line.count(b",") + 1, width, number, name)
                found += 1
        else:
            return found
    found = -1
    for number, record in _records(path, name):
        _check_width(len(record), width, number, name)
        found += 1
    return found


def _records(path: Path, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of a line and its cells; a line that is not text, or not whole, is an error."""
    with _opened(path, name) as file:
        lines = (_decoded(line, number, name) for number, line in enumerate(file, start=1))
        reader = csv.reader(lines, strict=True)
        try:
            for record in reader:
                if record and (len(record) > 1 or not record[0].isspace()):
                    yield reader.line_num, record
        except csv.Error as error:
            raise FileError(f"{name}: cannot read line {reader.line_num}: {error}") from None


def _decoded(line: bytes, number: int, name: str) -> str:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise FileError(
            f"{name}: expected UTF-8 text, found other bytes in line {number}: convert it"
        ) from None
    if "\0" in text:
        raise FileError(f"{name}: expected text, found a zero byte in line {number}")
    if "\r" in text.rstrip("\r\n") and '"' not in text:
        raise FileError(
            f"{name}: expected lines that end in a line feed, found a bare return in line {number}"
        )
    return text


def _check_width(found: int, width: int, number: int, name: str) -> None:
    if found != width:
        raise FileError(f"{name}: expected {width} cells in every line, found {found} in line {number}")
