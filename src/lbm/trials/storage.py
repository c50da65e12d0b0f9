"""What a run leaves on disk: a file for every finished piece, a table for every part, and runs kept with us.

A piece is written to a file of another name and then renamed: whatever stops a run, every file is whole.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Final

from lbm.errors import FileError
from lbm.knowledge.packed import write_whole
from lbm.knowledge.printed import csv_text
from lbm.trials.part import Part, Piece, Row, Value

FORMAT: Final = 1
"""Of the files of pieces; those of another are measured again."""


# --- pieces ----------------------------------------------------------------------------------------


def piece_path(folder: Path, part: Part, piece: Piece) -> Path:
    """Return the file of a finished piece."""
    return folder / part.NAME / f"{piece.name}.json"


def write_piece(path: Path, part: Part, piece: Piece, rows: Sequence[Row], seconds: float) -> None:
    """Keep the rows of a finished piece, and the time it took."""
    found = {
        "format": FORMAT,
        "part": part.NAME,
        "revision": part.REVISION,
        "key": dict(piece.key),
        "seconds": round(seconds, 4),
        "rows": list(rows),
    }
    make_folder(path.parent)
    write_whole(path, [json.dumps(found, ensure_ascii=False, allow_nan=False, indent=0), "\n"])


def read_piece(path: Path, part: Part, piece: Piece) -> tuple[list[Row], float] | None:
    """Return the rows of a piece and the time it took; None: it is not there, or it is of another revision.

    A file that was damaged is as good as none: the piece is measured again.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same = found["format"] == FORMAT and found["revision"] == part.REVISION
        if not same or found["part"] != part.NAME or found["key"] != dict(piece.key):
            return None
        rows = found["rows"]
        for row in rows:
            check_row(part, row)
        return rows, float(found["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_row(part: Part, row: Mapping[str, object]) -> None:
    """Raise ValueError unless a row has the columns of its part, each with a value of its type."""
    if row.keys() != part.COLUMNS.keys():
        raise ValueError(
            f"expected the columns {', '.join(part.COLUMNS)} in a row of {part.NAME}, got {', '.join(row)}"
        )
    for name, kind in part.COLUMNS.items():
        value = row[name]
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        if value is None and kind is not str:  # a text that is not there is empty
            continue
        if isinstance(value, bool) or not fits:
            raise ValueError(f"expected {kind.__name__} in column {name} of {part.NAME}, got {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"expected a finite number in column {name} of {part.NAME}, got {value}")


def make_folder(path: Path) -> None:
    """Make a directory, with those it is in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the directory {path}: {error.strerror or error}") from error


# --- tables ----------------------------------------------------------------------------------------


def write_csv(path: Path, part: Part, rows: Iterable[Row]) -> None:
    """Write rows as a table; a value that is not there is an empty cell."""
    # A number that is whole by accident is written as those beside it are.
    cells = (
        [
            float(value) if kind is float and (value := row[name]) is not None else row[name]
            for name, kind in part.COLUMNS.items()
        ]
        for row in rows
    )
    write_whole(path, csv_text(chain([part.COLUMNS], cells)))


def read_csv(path: Path | Traversable, part: Part) -> list[Row]:
    """Return the rows of a table that :func:`write_csv` wrote."""
    try:
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error
    if tuple(reader.fieldnames or ()) != tuple(part.COLUMNS):
        raise FileError(
            f"cannot read {path}: expected the columns {', '.join(part.COLUMNS)}, "
            f"got {', '.join(reader.fieldnames or ('none',))}"
        )
    rows: list[Row] = []
    for cells in reader:
        try:
            rows.append({name: _value(cells[name], kind) for name, kind in part.COLUMNS.items()})
        except (ValueError, TypeError) as error:
            raise FileError(f"cannot read {path}:{reader.line_num}: {error}") from error
    return rows


def _value(cell: str | None, kind: type) -> Value:
    if cell is None:
        raise ValueError("expected a cell for every column, got fewer")
    if kind is str:
        return cell
    return None if cell == "" else int(cell) if kind is int else float(cell)


# --- runs that were kept ---------------------------------------------------------------------------


def kept_rows(part: Part) -> list[Row]:
    """Return the rows of the full run that comes with the package; none if it has none of this part."""
    found = resources.files("lbm.trials").joinpath("results", f"{part.NAME}.csv")
    return read_csv(found, part) if found.is_file() else []
