"""Clauses -> strict DNF, a million at a time, as arrays.

A clause l1 | l2 | ... | lk is, by the paper's equation (conj_ext) applied to one literal after the
other, the k cubes  l1;  ~l1 & l2;  ~l1 & ~l2 & l3;  ... which exclude one another.
"""

from __future__ import annotations

from itertools import permutations
from typing import Final

import numpy as np

from lbm.arrays import Ints
from lbm.logic.cube import CubeRows, Literals

ALL_ORDERS: Final = 4
"""Literals of a clause up to which every order of elimination is tried."""

Rows = list[list[int]]
"""Cubes as signed numbers of atoms."""


def literal_ranks(literals: Literals, atoms: int) -> Ints:
    """Return the place of each literal in the order in which clauses are eliminated.

    The literal that most clauses share comes first, so that its cubes are shared too; among equals
    the one met first, which keeps the order in which a rule was written.

    Returns
    -------
    Shape (2·atoms + 1,), indexed by literal + atoms.
    """
    index = literals + atoms
    count = np.bincount(index, minlength=2 * atoms + 1)
    met = np.full(2 * atoms + 1, len(literals), dtype=np.int64)
    met[index[::-1]] = np.arange(len(literals) - 1, -1, -1)
    order = np.argsort((count.max(initial=0) - count << 32) + met)
    ranks = np.empty(2 * atoms + 1, dtype=np.int64)
    ranks[order] = np.arange(2 * atoms + 1)
    return ranks


def clause_rows(literals: Literals, starts: Ints) -> tuple[list[tuple[Literals, Ints]], Ints]:
    """Return clauses by length, (rows, clause numbers), and the numbers of those that are always true.

    A literal that stands twice in a clause counts once.
    """
    lengths = np.diff(starts)
    found: list[tuple[Literals, Ints]] = []
    valid: list[int] = []
    odd: dict[int, list[tuple[list[int], int]]] = {}
    for length in np.unique(lengths).tolist():
        numbers = np.flatnonzero(lengths == length)
        rows = literals[starts[numbers][:, None] + np.arange(length)] if length else _nothing(len(numbers))
        if length > 1:
            by_atom = np.sort(np.abs(rows), axis=1)
            repeats = (by_atom[:, 1:] == by_atom[:, :-1]).any(axis=1)
            for number in numbers[repeats].tolist():
                clause = list(dict.fromkeys(literals[starts[number] : starts[number + 1]].tolist()))
                if any(-literal in clause for literal in clause):
                    valid.append(number)
                else:
                    odd.setdefault(len(clause), []).append((clause, number))
            if repeats.any():
                rows, numbers = rows[~repeats], numbers[~repeats]
        found.append((rows, numbers))
    for items in odd.values():
        clauses, which = zip(*items, strict=True)
        found.append((np.array(clauses, dtype=np.int32), np.array(which, dtype=np.int64)))
    return found, np.array(valid, dtype=np.int64)


def eliminate(literals: Literals, starts: Ints, owners: Ints, atoms: int) -> list[CubeRows]:
    """Return the strict DNF of many clauses, the longest cube of each first. [TG21, equation conj_ext]

    Parameters
    ----------
    literals, starts
        The clauses, packed as in Cubes.
    owners
        Shape (clauses,): the formula each clause stands for.
    atoms
        How many atoms there are.
    """
    ranks = literal_ranks(literals, atoms)
    by_rank = np.argsort(ranks).astype(np.int32) - np.int32(atoms)
    ranks = ranks.astype(np.int32)
    found: list[CubeRows] = []
    by_length, valid = clause_rows(literals, starts)
    for written, numbers in by_length:
        length = written.shape[1]
        owner = owners[numbers]
        rows = by_rank[np.sort(ranks[written + atoms], axis=1)] if length > 1 else written
        for last in range(length):
            cubes = -rows[:, : last + 1]
            cubes[:, last] *= -1
            place = np.full(len(numbers), length - 1 - last, dtype=np.int64)
            found.append(CubeRows(by_atom(cubes), owner, place))
    if len(valid):
        found.append(CubeRows(_nothing(len(valid)), owners[valid], np.zeros(len(valid), dtype=np.int64)))
    return found


def clause_choices(literals: Literals, starts: Ints, owners: Ints, atoms: int) -> dict[int, list[Rows]]:
    """Return for each clause the strict DNFs that elimination gives in different orders.

    The order of :func:`literal_ranks` comes first; a clause of more than ALL_ORDERS literals has no
    other. For theories small enough to choose among them.
    """
    ranks = literal_ranks(literals, atoms)
    found: dict[int, list[Rows]] = {}
    for number, owner in enumerate(owners.tolist()):
        clause = list(dict.fromkeys(literals[starts[number] : starts[number + 1]].tolist()))
        if any(-literal in clause for literal in clause):
            found[owner] = [[[]]]
            continue
        clause.sort(key=lambda literal: ranks[literal + atoms])
        orders = permutations(clause) if len(clause) <= ALL_ORDERS else [tuple(clause)]
        found[owner] = [
            [
                sorted([*(-literal for literal in order[:last]), order[last]], key=abs)
                for last in range(len(order) - 1, -1, -1)
            ]
            for order in orders
        ]
    return found


def by_atom(rows: Literals) -> Literals:
    """Return rows of literals with each row in atom order."""
    if rows.shape[1] < 2:
        return rows
    if rows.shape[1] == 2:
        swap = np.abs(rows[:, 0]) > np.abs(rows[:, 1])
        return np.where(swap[:, None], rows[:, ::-1], rows)
    # An atom and its sign in one number: sorting it sorts by atom.
    keys = np.abs(rows) * 2 + (rows < 0)
    keys.sort(axis=1)
    return np.where(keys & 1, -(keys >> 1), keys >> 1).astype(np.int32)


def _nothing(count: int) -> Literals:
    return np.zeros((count, 0), dtype=np.int32)
