"""Evidence in files, and answers to it: CSV that is read, answered and written some thousand rows at a time.

What lbm ask and lbm marginals share.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

import typer

from lbm.errors import EvidenceError, FileError, LimitExceeded, UnknownAtom
from lbm.knowledge.printed import csv_text
from lbm.views.commands import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lbm.arrays import Floats
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.answers import AnswerRows, MarginalRows

MAX_LINE: Final = 1 << 24
"""Bytes of one line."""

AT_ONCE: Final = 1 << 18
"""Cells that are numbers at once."""

ROWS: Final = 4096
"""Rows that are answered at once, at most."""

_WORDS: Final = {
    "0": 0.0,
    "1": 1.0,
    "false": 0.0,
    "true": 1.0,
    "": math.nan,
    "nan": math.nan,
    "na": math.nan,
    "n/a": math.nan,
    "none": math.nan,
    "null": math.nan,
    "<na>": math.nan,
}


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A CSV file of evidence that is being read: names of atoms in its first line, then a row a line.

    Attributes
    ----------
    name
        What messages call it.
    columns
        The atoms.
    size
        How many bytes there are, if that is known.
    """

    name: str
    columns: tuple[str, ...]
    size: int | None
    _lines: Iterator[tuple[int, str]]
    _done: Callable[[], int]

    def chunks(self) -> Iterator[tuple[dict[str, Floats], int]]:
        """Yield some rows by name of atom, once at least, and how many bytes have been read."""
        import numpy as np

        width = len(self.columns)
        rows = max(1, min(ROWS, AT_ONCE // width))
        known = _Cells(_WORDS)
        first = True
        while True:
            cells: list[str] = []
            numbers: list[int] = []
            for number, line in islice(self._lines, rows):
                cells += self._split(line, number, width)
                numbers.append(number)
            if not (numbers or first):
                return
            first = False
            found = np.array([known[cell] for cell in cells]).reshape(-1, width)
            wrong = ~((found >= 0) & (found <= 1) | np.isnan(found))
            if wrong.any():
                i, j = np.argwhere(wrong)[0].tolist()
                raise EvidenceError(
                    f"{self.name}: line {numbers[i]}, column {self.columns[j]!r}: expected 0, 1, nothing or "
                    f"a probability, found {cells[i * width + j][:60]!r}"
                )
            yield dict(zip(self.columns, found.T, strict=True)), self._done()

    def _split(self, line: str, number: int, width: int) -> list[str]:
        cells = _cells(line, number, self.name)
        if len(cells) != width:
            raise FileError(
                f"{self.name}: expected {width} cells in each line, as the first has, found {len(cells)} in "
                f"line {number}"
            )
        return cells


class _Cells(dict[str, float]):
    """What cells say, by their text: infinity for what they must not say."""

    def __missing__(self, text: str) -> float:
        plain = text.strip().lower()
        found = _WORDS.get(plain, math.inf)
        if found == math.inf and plain not in ("inf", "+inf", "infinity"):
            try:
                found = float(plain)
            except ValueError:
                found = math.inf
            if math.isnan(found) or "_" in plain:
                found = math.inf
        if len(self) < AT_ONCE:
            self[text] = found
        return found


@contextmanager
def opened(path: str, atoms: Sequence[str]) -> Iterator[EvidenceFile]:
    """Give a file of evidence about these atoms, packed or not, or standard input if it is called ``-``."""
    from lbm.knowledge.packed import as_path, file_error, path_shown

    if path == "-":
        if sys.stdin is None:
            raise FileError("cannot read standard input: it is closed")
        yield _read(sys.stdin.buffer, shared.STANDARD_INPUT, None, atoms)
        return
    where = as_path(path)
    try:
        file = where.open("rb")
    except OSError as error:
        raise file_error("read", path, error) from None
    with file:
        yield _read(file, path_shown(path), where.stat().st_size or None, atoms, where.suffix.lower())


def _read(
    file: IO[bytes], name: str, size: int | None, atoms: Sequence[str], ending: str = ""
) -> EvidenceFile:
    from lbm.knowledge import packed

    done = [0]
    stream: Any = io.BufferedReader(file) if isinstance(file, io.BytesIO) else file
    if packed.is_packed(stream.peek(8)[:8]) or ending in packed.PACKED:
        stream = packed.opened(stream, name, ending=ending)
    lines = _lines_of(stream, name, done)
    for number, line in lines:
        columns = tuple(_cells(line, number, name))
        _check(columns, name, atoms)

        def read() -> int:
            return stream.file.taken if isinstance(stream, packed.Unpacked) else done[0]

        return EvidenceFile(name, columns, size, _not_empty(lines, name, columns), read)
    raise FileError(f"{name}: expected a line with the names of atoms, found nothing")


def _check(columns: tuple[str, ...], name: str, atoms: Sequence[str]) -> None:
    known = set(atoms)
    seen: set[str] = set()
    for column in columns:
        if column not in known:
            if len(columns) == 1 and any(sign in column for sign in ";\t"):
                raise FileError(f"{name}: expected commas between columns, found {column[:60]!r}")
            raise FileError(f"{name}: {UnknownAtom(column, atoms)}")
        if column in seen:
            raise FileError(f"{name}: expected every atom in one column, found {column!r} in two")
        seen.add(column)


def _lines_of(file: IO[bytes], name: str, done: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line; ``done``: the bytes that were read so far."""
    number = 0
    while True:
        try:
            data = file.readline(MAX_LINE + 1)
        except OSError as error:
            raise (
                error
                if isinstance(error, FileError)
                else FileError(f"cannot read {name}: {error.strerror or error}")
            ) from error
        if not data:
            return
        number += 1
        done[0] += len(data)
        if len(data) > MAX_LINE:
            raise LimitExceeded(
                f"{name}: line {number} has more than {MAX_LINE} bytes (limit MAX_LINE)", MAX_LINE=MAX_LINE
            )
        try:
            text = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise FileError(f"{name}: expected UTF-8 text, found other bytes in line {number}") from None
        yield number, text.rstrip("\r\n")


def _not_empty(
    lines: Iterator[tuple[int, str]], name: str, columns: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty; in one column they might be meant as cells, and are an error."""
    empty = None
    for number, line in lines:
        if not line.strip():
            empty = number if empty is None else empty
            continue
        if empty is not None and len(columns) == 1:
            raise FileError(
                f"{name}: expected a cell in line {empty}, found none: write nan where nothing was seen"
            )
        yield number, line


def _cells(line: str, number: int, name: str) -> list[str]:
    """Return the cells of a line."""
    if '"' not in line:
        return line.split(",")
    try:
        (found,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise FileError(f"{name}: cannot read line {number}: {error}") from None
    return found


# --- answers ------------------------------------------------------------------------------------


def check_plain(file: str, rows: str | None, out: str | None, **asked: Any) -> None:
    """Refuse what rows of evidence are not asked with, and answers to none that are to go to a file."""
    if rows is None:
        raise typer.BadParameter("only answers to rows of evidence, --rows, go to a file", param_hint="'-o'")
    plain = {"method": ("auto", "exact"), "distribution": ("logical",), "why": (False,)}
    for name in ("given", "why", "form", "sweeps", "method", "distribution"):
        said = asked.get(name)
        if said is not None and said not in plain.get(name, ()):
            raise typer.BadParameter(
                "rows of evidence are answered exactly, of the logical distribution, without "
                f"--{name}{f' {said}' if name in ('method', 'distribution') else ''}",
                param_hint="'--rows'",
            )
    if file == rows == "-":
        raise typer.BadParameter("standard input can be the theory or the evidence, not both")
    shared.check_place(out)
    if out is not None:
        from lbm.knowledge.packed import bare_name

        if bare_name(out).suffix.lower() != ".csv":
            raise FileError(f"cannot write {out}: expected a name that ends in .csv, or in .csv.gz")


def answer_rows(
    theory: Theory,
    query: str | None,
    rows: str | None,
    out: str | None,
    seconds: float,
    temperature: float,
    as_json: bool,
) -> None:
    """Answer rows as they are read, and write or print the answers as they come; no query: every atom."""
    assert rows is not None  # as was checked
    listed = as_json and out is None
    parts: list[AnswerRows | MarginalRows] = []

    def pieces() -> Iterator[str]:
        for found in _answers(theory, query, rows, temperature, seconds):
            yield from _text(found, head=not parts)
            parts.append(found if listed else _light(found))

    if out is not None:
        from lbm.knowledge.packed import write_whole

        write_whole(out, pieces())
    else:
        for piece in pieces():
            if not as_json:
                print(piece, end="")
    whole = _together(parts)
    if as_json:
        shared.say_json(whole.facts() if listed else {**whole.facts(), **_without_numbers(whole)})
    else:
        shared.remark(*whole.lines())


def _answers(
    theory: Theory, query: str | None, rows: str, temperature: float, seconds: float
) -> Iterator[AnswerRows | MarginalRows]:
    """Yield answers to some rows at a time."""
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.reasoner import Reasoner

    reasoner, budget = Reasoner(theory), Budget.of(seconds)
    with opened(rows, theory.atoms) as file, shared.bar("answering", file.size, "elapsed") as show:
        for chunk, done in file.chunks():
            budget.tick()
            left = budget.seconds()
            if query is None:
                yield reasoner.marginals(given=chunk, temperature=temperature, seconds=left)
            else:
                yield reasoner.ask(query, given=chunk, temperature=temperature, seconds=left)
            show(done)


def _text(found: AnswerRows | MarginalRows, *, head: bool) -> Iterator[str]:
    """Yield answers as CSV, if asked for with the names of the columns before them."""
    from lbm.reasoning.answers import AnswerRows

    if isinstance(found, AnswerRows):
        if head:
            yield "probability,possible\n"
        yield "".join(
            [",0\n" if chance != chance else f"{chance!r},1\n" for chance in found.probability.tolist()]
        )
        return
    if head:
        yield from csv_text([found.atoms])
    yield "".join([",".join(map(repr, row)) + "\n" for row in found.array.tolist()])


def _light(found: AnswerRows | MarginalRows) -> AnswerRows | MarginalRows:
    """Return answers without the numbers of all atoms, which are many."""
    from lbm.reasoning.answers import AnswerRows

    return found if isinstance(found, AnswerRows) else replace(found, array=found.array[:0])


def _together(parts: list[Any]) -> AnswerRows | MarginalRows:
    """Return answers to parts of the rows as one."""
    import numpy as np

    first: AnswerRows | MarginalRows = parts[0]
    names = [name for name in ("probability", "array", "possible") if hasattr(first, name)]
    joined: dict[str, Any] = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
    return replace(first, **joined)


def _without_numbers(found: AnswerRows | MarginalRows) -> dict[str, Iterator[Any]]:
    """Return what stands in JSON for numbers that go to a file."""
    return {name: iter(()) for name in found.facts().keys() & {"probabilities", "marginals"}}
