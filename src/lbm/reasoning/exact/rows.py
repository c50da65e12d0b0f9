"""Worlds as packed rows of bits, and how many of them may be listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.errors import TooManyWorlds
from lbm.knowledge.numbers import written

MAX_LISTED: Final = 1 << 30
"""Truth values, worlds times atoms, up to which worlds are listed."""

ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""A word in which every bit is set."""

_FEW: Final = 1 << 16  # models that are all listed even where only the first are wanted

Array = NDArray[Any]
Words = NDArray[np.uint64]
"""Worlds, shape (worlds, words): atom i is bit 63 - i % 64 of word i // 64, so order is lexicographic."""


def check_room(worlds: int, atoms: int) -> None:
    """Raise TooManyWorlds if so many worlds are more than may be listed."""
    if worlds * max(atoms, 1) > MAX_LISTED:
        raise TooManyWorlds(
            f"{_about(worlds)} worlds of {atoms} atoms are more than {MAX_LISTED} truth values "
            "(limit MAX_LISTED): ask for fewer worlds, or for fewer atoms",
            MAX_LISTED=MAX_LISTED,
        )


def few(models: int, limit: int) -> bool:
    """Whether so many models are all listed, even where only the first ``limit`` are wanted."""
    return models <= max(_FEW, 4 * limit)


def _about(number: int) -> str:
    """Return a number as a message shows it: of a long one its first digits and how many follow."""
    if number < 10**30:
        return str(number)
    digits = written(number)
    return f"{digits[0]}.{digits[1:4]}e{len(digits) - 1}"


def rounded(number: int) -> str:
    """Return a number with three digits that count, however large it is."""
    return f"{float(number):.3g}" if number.bit_length() <= 1000 else _about(number)


def how_many(size: int) -> str:
    """Return the number of worlds over ``size`` atoms, as a message shows it."""
    return str(1 << size) if size <= 64 else f"2^{size}"


# --- packed rows -----------------------------------------------------------------------------------


def words_for(atoms: int) -> int:
    """Return how many words a row takes."""
    return max(1, (atoms + 63) // 64)


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
