"""Cubes: conjunctions of literals (product terms), packed by the million, and the merging of identical ones.

A literal is a signed number: ``+i`` wants the i-th atom true, ``-i`` wants it false, counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Ints
from lbm.knowledge.clauses import Packed, packed
from lbm.knowledge.formula import quote

Literals = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Cube:
    """A conjunction of literals over distinct atoms; without literals it is always true.

    >>> print(Cube((("n", 1), ("r", -1))))
    n & ~r
    """

    literals: tuple[tuple[str, int], ...]

    @property
    def true(self) -> tuple[str, ...]:
        """The atoms it wants true: T_j in the paper."""
        return tuple(name for name, sign in self.literals if sign > 0)

    @property
    def false(self) -> tuple[str, ...]:
        """The atoms it wants false: K_j in the paper."""
        return tuple(name for name, sign in self.literals if sign < 0)

    def __len__(self) -> int:
        return len(self.literals)

    def __str__(self) -> str:
        if not self.literals:
            return "true"
        return " & ".join(("" if sign > 0 else "~") + quote(name) for name, sign in self.literals)


@dataclass(frozen=True, eq=False, slots=True)
class Cubes(Packed[Cube]):
    """Many cubes, packed; a Cube is made only for the one that is looked at.

    Attributes
    ----------
    atoms
        The names that literals count from 1.
    literals
        Shape (number of literals,): cube after cube, each in the order of ``atoms``.
    starts
        Shape (number of cubes + 1,): cube j is ``literals[starts[j]:starts[j + 1]]``.
    """

    atoms: tuple[str, ...]
    literals: Literals
    starts: Ints

    def _made(self, _: int, numbers: list[int]) -> Cube:
        return Cube(tuple((self.atoms[abs(n) - 1], 1 if n > 0 else -1) for n in numbers))

    def __str__(self) -> str:
        return " | ".join(f"({cube})" if len(cube) > 1 else str(cube) for cube in self) or "false"


def pack(cubes: Iterable[Sequence[int]], atoms: tuple[str, ...]) -> Cubes:
    """Return cubes given as signed numbers in packed form."""
    return Cubes(atoms, *packed([sorted(cube, key=abs) for cube in cubes]))


@dataclass(frozen=True, slots=True)
class CubeRows:
    """Cubes of one length, each with the formula it serves and its place among that formula's cubes.

    ``rows`` has shape (cubes, length), each row in atom order; ``owner`` and ``place`` shape (cubes,).
    """

    rows: Literals
    owner: Ints
    place: Ints


@dataclass(frozen=True, slots=True)
class Merged:
    """Units and their parts: ``unit[i]`` is the unit that the i-th part became a part of.

    Parts stand in the order of their formulae (``owner``), units in the order of their first part.
    ``positive`` counts the atoms that each unit wants true.
    """

    literals: Literals
    starts: Ints
    positive: Ints
    owner: Ints
    unit: Ints


def merge(groups: Sequence[CubeRows], formulae: int, atoms: int, *, identical: bool = True) -> Merged:
    """Bring cubes into the order of their formulae and, if asked, merge those that are identical.

    Only identical cubes merge. Merging a cube into one it is subsumed by, as the paper allows,
    changes scores: {w1: a, w2: a & b} would give a & ~b both weights. [TG21, section 5; ERRATA 3]
    """
    per_formula = np.zeros(formulae + 1, dtype=np.int64)
    for group in groups:
        per_formula[1:] += np.bincount(group.owner, minlength=formulae)
    first = np.cumsum(per_formula)
    total = int(first[-1])

    by_length: dict[int, list[CubeRows]] = {}
    for group in groups:
        if len(group.rows):
            by_length.setdefault(group.rows.shape[1], []).append(group)

    leader = np.arange(total, dtype=np.int64)  # for each part, the earliest part with the same cube
    placed: list[tuple[Literals, Ints]] = []
    for same in by_length.values():
        rows = same[0].rows if len(same) == 1 else np.concatenate([group.rows for group in same])
        where = np.concatenate([first[group.owner] + group.place for group in same])
        if identical and len(rows) > 1:
            leader[where] = _leaders(rows, where, atoms)
        placed.append((rows, where))

    leads = leader == np.arange(total)
    number = np.cumsum(leads) - 1  # a leader's number among the leaders: its unit
    units: list[tuple[Literals, Ints]] = []
    for rows, where in placed:
        kept = leads[where]
        units.append((rows, number[where]) if kept.all() else (rows[kept], number[where[kept]]))
    lengths = np.zeros(int(leads.sum()) + 1, dtype=np.int64)
    positive = np.zeros(len(lengths) - 1, dtype=np.int64)
    for rows, unit in units:
        lengths[unit + 1] = rows.shape[1]
        positive[unit] = sum((rows[:, column] > 0).astype(np.int64) for column in range(rows.shape[1]))
    starts = np.cumsum(lengths)
    literals = np.empty(int(starts[-1]), dtype=np.int32)
    for rows, unit in units:
        at = starts[unit]
        for column in range(rows.shape[1]):
            literals[at + column] = rows[:, column]
    owner = np.repeat(np.arange(formulae, dtype=np.int64), per_formula[1:])
    return Merged(literals, starts, positive, owner, number[leader])


def _leaders(rows: Literals, where: Ints, atoms: int) -> Ints:
    """Return, for each row, the least ``where`` among the rows equal to it."""
    if rows.shape[1] == 1:  # no need to sort: there are few literals
        least = np.full(2 * atoms + 1, np.iinfo(np.int64).max)
        np.minimum.at(least, rows[:, 0] + atoms, where)
        return least[rows[:, 0] + atoms]
    keys = _keys(rows, atoms)
    if len(keys) == 1 and _all_differ(keys[0]):
        return where
    order = np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0])
    differs = np.zeros(len(rows), dtype=bool)
    differs[0] = True
    for key in keys:
        sorted_key = key[order]
        differs[1:] |= sorted_key[1:] != sorted_key[:-1]
    begins = np.flatnonzero(differs)
    least = np.minimum.reduceat(where[order], begins)
    result = np.empty(len(rows), dtype=np.int64)
    result[order] = np.repeat(least, np.diff(begins, append=len(rows)))
    return result


def _all_differ(key: Ints) -> bool:
    """Return whether no two are equal: sorting numbers is ten times faster than sorting places."""
    ordered = np.sort(key)
    return not (ordered[1:] == ordered[:-1]).any()


def _keys(rows: Literals, atoms: int) -> list[Ints]:
    """Return few integers per row that are equal exactly where the rows are."""
    bits = (2 * atoms + 1).bit_length()
    columns = max(1, 62 // bits)
    keys = []
    for begin in range(0, max(rows.shape[1], 1), columns):
        key = np.zeros(len(rows), dtype=np.int64)
        for column in range(begin, min(begin + columns, rows.shape[1])):
            key <<= bits
            key |= rows[:, column] + atoms
        keys.append(key)
    return keys
