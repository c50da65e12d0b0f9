"""Answers that list worlds: as named truth values, and inside as packed rows of bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from lbm.errors import TooManyWorlds
from lbm.knowledge.formula import quote
from lbm.knowledge.numbers import written

MAX_LISTED: Final = 1 << 30
"""Truth values, worlds times atoms, up to which worlds are listed."""

_ROWS: Final = 20  # worlds that a notebook shows
_COLUMNS: Final = 40  # and atoms

ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""A word in which every bit is set."""

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
"""Worlds, shape (worlds, words): atom i is bit 63 - i % 64 of word i // 64, so order is lexicographic."""


@dataclass(frozen=True, eq=False, slots=True)
class Worlds(Sequence[dict[str, bool]]):
    """Worlds over named atoms: ``len()``, iteration as named truth values, and all as a matrix.

    Attributes
    ----------
    atoms
        The names, in the order of the columns.
    array
        Shape (worlds, atoms), read-only.
    """

    atoms: tuple[str, ...]
    array: Bools

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> dict[str, bool]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, bool]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, bool] | list[dict[str, bool]]:
        if isinstance(index, slice):
            return [dict(zip(self.atoms, row, strict=True)) for row in self.array[index].tolist()]
        return dict(zip(self.atoms, self.array[index].tolist(), strict=True))

    def world_lines(self) -> Iterator[str]:
        """Yield each world as ``n=1 r=0``."""
        names = [quote(name) for name in self.atoms]
        for row in self.array:
            yield " ".join(f"{name}={value:d}" for name, value in zip(names, row.tolist(), strict=True))

    def world_facts(self) -> Iterator[list[int]]:
        """Yield each world as 0 and 1 in the order of ``atoms``: as lists of numbers they need much room."""
        return (row.astype(int).tolist() for row in self.array)

    def _repr_html_(self) -> str:
        names = [escape(name) for name in self.atoms[:_COLUMNS]]
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = [
            "<tr>" + "".join(f"<td>{value:d}</td>" for value in row) + "</tr>"
            for row in self.array[:_ROWS, :_COLUMNS].tolist()
        ]
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return f"<div>{escape(repr(self))}</div>{table}"


@dataclass(frozen=True, eq=False, slots=True)
class Models(Worlds):
    """Models of a theory in lexicographic order, false first.

    ``complete`` says whether these are all there are; ``in_time`` is false where the time ran out before
    there were as many as were asked for, or before it was known whether these are all.
    """

    complete: bool
    in_time: bool = True

    def lines(self) -> Iterator[str]:
        """Yield a line for each model, and one that says whether these are all."""
        yield from self.world_lines()
        number = f"{len(self):,} model{'' if len(self) == 1 else 's'}"
        if not self.in_time:
            yield f"{number} found in time, and there may be more"
        elif not len(self):
            yield "no models"
        else:
            yield f"{number}, {'all of them' if self.complete else 'and there are more'}"

    def facts(self) -> dict[str, Any]:
        """Return the models for JSON, as an iterator; ``complete`` is None where time ran out."""
        complete = self.complete if self.in_time else None
        return {"atoms": list(self.atoms), "models": self.world_facts(), "complete": complete}

    def __repr__(self) -> str:
        said = "all" if self.complete else "not all" if self.in_time else "perhaps not all"
        return f"<Models: {len(self)} worlds over {len(self.atoms)} atoms, {said}>"


def check_room(worlds: int, atoms: int) -> None:
    """Raise TooManyWorlds if so many worlds are more than may be listed."""
    if worlds * max(atoms, 1) > MAX_LISTED:
        raise TooManyWorlds(
            f"{_about(worlds)} worlds of {atoms} atoms are more than {MAX_LISTED} truth values "
            "(limit MAX_LISTED): ask for fewer worlds, or for fewer atoms",
            limit="MAX_LISTED",
            value=MAX_LISTED,
        )


def _about(number: int) -> str:
    """Return a number as a message shows it: of a long one its first digits and how many follow."""
    if number < 10**30:
        return str(number)
    digits = written(number)
    return f"{digits[0]}.{digits[1:4]}e{len(digits) - 1}"


def how_many(size: int) -> str:
    """Return the number of worlds over ``size`` atoms, as a message shows it."""
    return str(1 << size) if size <= 64 else f"2^{size}"


# --- packed rows -----------------------------------------------------------------------------------


def words_for(atoms: int) -> int:
    """Return how many words a row takes."""
    return max(1, (atoms + 63) // 64)


def listed(atoms: tuple[str, ...], rows: Words, *, complete: bool) -> Models:
    """Return the worlds in ``rows`` under the names of their atoms."""
    array = unpack(rows, len(atoms))
    array.setflags(write=False)
    return Models(atoms, array, complete)


def unpack(rows: Words, atoms: int) -> Bools:
    """Return the truth values in ``rows``, shape (worlds, atoms)."""
    if not len(rows) or not atoms:
        return np.zeros((len(rows), atoms), bool)
    return np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1, count=atoms).view(np.bool_)


def column_of(rows: Words, i: int) -> Bools:
    """Return atom i's value in each row."""
    column: Bools = (rows[:, i // 64] & np.uint64(1 << 63 - i % 64)) != 0
    return column


def mask(places: Iterable[int], width: int) -> Words:
    """Return one row of ``width`` words in which the atoms at ``places`` are true."""
    row = np.zeros(width, np.uint64)
    for i in places:
        row[i // 64] |= np.uint64(1 << 63 - i % 64)
    return row


def coins(n: int, width: int, rng: np.random.Generator) -> Words:
    """Return ``n`` rows of fair coins."""
    return rng.integers(0, ALL, (n, width), dtype=np.uint64, endpoint=True)


def spread(rows: Words, places: Sequence[int], out: Words) -> None:
    """Write atom i of ``rows`` to place ``places[i]`` of ``out``, where that bit is still 0; -1: nowhere."""
    i = 0
    while i < len(places):
        j = i + 1  # a run of neighbours that stay neighbours moves as one
        while j < len(places) and 0 < places[j] == places[j - 1] + 1 and j % 64 and places[j] % 64:
            j += 1
        if places[i] >= 0:
            width, at = j - i, places[i]
            run = (rows[:, i // 64] << np.uint64(i % 64)) >> np.uint64(64 - width)
            out[:, at // 64] |= run << np.uint64(64 - at % 64 - width)
        i = j


def sort_rows(rows: Words) -> Words:
    """Return the rows in lexicographic order; most often they are already."""
    if rows.shape[1] == 1:
        line = rows[:, 0]
        return rows if (line[:-1] <= line[1:]).all() else np.sort(line)[:, None]
    return rows[np.lexsort(rows.T[::-1])]


def _distinct(rows: Words) -> Words:
    """Return sorted rows, each once."""
    rows = sort_rows(rows)
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[new]


def restrict(rows: Words, atoms: Sequence[str], keep: frozenset[str] | None) -> Words:
    """Return the distinct rows with atoms outside ``keep`` false, sorted."""
    if keep is None or keep.issuperset(atoms):
        return sort_rows(rows)
    return _distinct(rows & mask([i for i, name in enumerate(atoms) if name in keep], rows.shape[1]))
