"""Runs the pieces of a part: over cores and machines, within a budget, each kept as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lbm.reasoning.parallel import spread
from lbm.trials.part import Key, Part, Piece, Row
from lbm.trials.parts import part_named
from lbm.trials.selecting import where
from lbm.trials.storage import check_row, kept_rows, piece_path, read_piece, write_piece

BUDGET: Final = "not run: budget"
"""What is said of a piece that did not fit into the time of its part."""

OnPiece = Callable[[Piece], object]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of the pieces of a part.

    Attributes
    ----------
    part
        The part.
    quick
        Whether it is the small version.
    rows
        Those of all pieces that are there, in the order of the pieces.
    pieces
        All of them.
    measured, found, kept
        How many were measured now, were finished before, and were read from the run that comes with the
        package.
    missing
        Why a piece is not there, by its name, in the order of the pieces.
    seconds
        The sum of the times of pieces measured now or before.
    """

    part: Part
    quick: bool
    rows: tuple[Row, ...]
    pieces: tuple[Piece, ...]
    measured: int
    found: int
    kept: int
    missing: dict[str, str]
    seconds: float


def run_part(
    part: Part,
    folder: Path,
    *,
    quick: bool = False,
    n_jobs: int = 1,
    seconds: float | None = None,
    again: bool = False,
    on_piece: OnPiece | None = None,
) -> Outcome:
    """Return the rows of a part, measuring what is not yet in ``folder``, and what is missing.

    Parameters
    ----------
    folder
        Where finished pieces are, and go, under the name of the part.
    quick
        Whether to do the small version.
    n_jobs
        Pieces under way at once, here or wherever joblib is configured to send them; a part that is about
        times has one at a time.
    seconds
        Time for the part: a piece whose cost is more than what is left is not begun. None: all are.
    again
        Whether long pieces are measured here even if the package has their rows.
    on_piece
        Called with each piece as it becomes available.
    """
    pieces = part.pieces(quick)
    known = {} if again or not any(piece.long for piece in pieces) else _kept(part, pieces)
    rows: dict[int, list[Row]] = {}
    times: dict[int, float] = {}
    missing: dict[int, str] = {}
    kept = found = 0
    for number, piece in enumerate(pieces):
        before = read_piece(piece_path(folder, part, piece), part, piece)
        if before is not None:
            rows[number], times[number] = before
            found += 1
        elif number in known:
            rows[number] = known[number]
            kept += 1
        else:
            continue
        if on_piece is not None:
            on_piece(piece)
    begun = time.monotonic()

    def fitting() -> Iterator[int]:
        for number, piece in enumerate(pieces):
            if number in rows or number in missing:
                continue
            if seconds is not None and piece.cost > seconds - (time.monotonic() - begun):
                missing[number] = BUDGET
                continue
            yield number

    def keep(number: int, result: tuple[list[Row], float, str]) -> None:
        made, took, wrong = result
        piece = pieces[number]
        if wrong:
            missing[number] = wrong
        else:
            write_piece(piece_path(folder, part, piece), part, piece, made, took)
            rows[number], times[number] = made, took
        if on_piece is not None:
            on_piece(piece)

    work = partial(measure_piece, part.NAME, [piece.key for piece in pieces])
    spread(work, fitting(), n_jobs=1 if part.ALONE else n_jobs, on_done=keep)
    return Outcome(
        part=part,
        quick=quick,
        rows=tuple(row for number in range(len(pieces)) for row in rows.get(number, ())),
        pieces=tuple(pieces),
        measured=len(times) - found,
        found=found,
        kept=kept,
        missing={pieces[number].name: missing[number] for number in sorted(missing)},
        seconds=sum(times.values()),
    )


def measure_piece(name: str, keys: list[Key], number: int) -> tuple[list[Row], float, str]:
    """Return the rows of a piece and the time it took, or else what went wrong, in one line.

    A piece that fails is one line of the report, and not the end of all others.
    """
    part = part_named(name)
    begun = time.perf_counter()
    try:
        rows = part.measure(keys[number])
        for row in rows:
            check_row(part, row)
    except Exception as error:  # noqa: BLE001 - whatever it is, the report names it
        return [], 0.0, " ".join(f"failed: {type(error).__name__}: {error}".split())
    return rows, time.perf_counter() - begun, ""


def _kept(part: Part, pieces: list[Piece]) -> dict[int, list[Row]]:
    """Return the rows of long pieces that come with the package, by number of the piece."""
    rows = kept_rows(part)
    found = {number: where(rows, **piece.key) for number, piece in enumerate(pieces) if piece.long}
    return {number: mine for number, mine in found.items() if mine}
