"""What every state costs at least: costs move between tables until their cheapest cells add up to a lot.

A problem over variables of many values is a *unary* cost for each value, and tables of costs over two or more
variables. Taking a cost from a table and adding it to the values of its variables changes no state's cost,
and the cheapest cells of all tables and variables together cost no more than any state. *Handshakes* raise
that sum: a table takes in all that its variables cost, and gives to each an equal share of what it has left
(dual ascent of the linear relaxation; soft arc consistency, MPLP++). Every cost is a whole number, so each
bound holds as it stands, however early the ascent is left. [Tourani, Shekhovtsov, Rother, Savchynskyy:
MPLP++: Fast, Parallel Dual Block-Coordinate Ascent for Dense Graphical Models; 2018]
"""

# Kernels are typed by numba, by what they are called with.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy import int64

from lbm.arrays import Bools, Ints
from lbm.reasoning.compiling.ready import kernel
from lbm.reasoning.engine.gains import Space

MAX_CELLS: Final = 8_000_000
"""Cells of all tables together, past which there are none."""

CELLS: Final = 4_096
"""Cells of the table of one rule of three parts or more; those of longer rules are taken to cost nothing."""

_MAX: Final = 1 << 61  # no sum of costs leaves 64 bits
_FAR: Final = 1 << 62


class CostTables(NamedTuple):
    """Costs of values and tables of costs, which handshakes change; what each state costs stays as it is.

    The table f is over the variables ``scope[scope_first[f]:scope_first[f + 1]]``, in rising order, its cells
    are ``cells[cell_first[f]:cell_first[f + 1]]``, the values of the last variable next to each other. The
    values of variable v cost ``unary[first[v]:first[v + 1]]``.
    """

    first: Ints
    unary: Ints
    scope_first: Ints
    scope: Ints
    cell_first: Ints
    cells: Ints

    @property
    def bound(self) -> int:
        """What every state costs at least."""
        least = np.minimum.reduceat(self.unary, self.first[:-1]).sum() if len(self.first) > 1 else 0
        more = np.minimum.reduceat(self.cells, self.cell_first[:-1]).sum() if len(self.cell_first) > 1 else 0
        return int(least) + int(more)

    def cost(self, state: Ints) -> int:
        """Return what a state costs, a value of each variable, counted from its first one."""
        total = int(self.unary[self.first[:-1] + state].sum())
        for f, (begin, end) in enumerate(pairwise(self.scope_first.tolist())):
            variables = self.scope[begin:end]
            shape = np.diff(self.first)[variables]
            total += int(
                self.cells[self.cell_first[f] + np.ravel_multi_index(tuple(state[variables]), shape)]
            )
        return total


def tables_of(space: Space, top: int) -> CostTables | None:
    """Return what values and pairs of a space cost, and short rules; None: that is too large.

    A broken hard rule costs ``top``, and so does what costs more. Long rules are left out, so that a state
    costs no more than it does in the space.
    """
    sizes = np.diff(space.first)
    unary = np.minimum(space.price, top)
    short = _short(space, sizes)
    if short is None:
        return None
    scopes, rules = short
    one = np.repeat(np.arange(len(space.owner)), np.diff(space.pair_first))
    other = space.pair_slot.astype(np.int64)
    half = one < other
    one, other, rule, weight = one[half], other[half], space.pair_rule[half], space.pair_weight[half]
    left, right = space.owner[one].astype(np.int64), space.owner[other].astype(np.int64)
    swap = left > right
    one, other = np.where(swap, other, one), np.where(swap, one, other)
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    pairs, of = np.unique(left * max(1, space.variables) + right, return_inverse=True)
    keys = [divmod(pair, space.variables) for pair in pairs.tolist()]
    number = {scope: f for f, scope in enumerate(sorted({*keys, *scopes}))}
    if (len(number) + space.variables + 1) * top >= _MAX:
        return None
    shapes = [[int(sizes[v]) for v in scope] for scope in number]
    cell_first = np.concatenate([[0], np.cumsum([int(np.prod(shape)) for shape in shapes])]).astype(np.int64)
    if cell_first[-1] > MAX_CELLS:
        return None
    cells = np.zeros(cell_first[-1], np.int64)
    at = cell_first[np.array([number[key] for key in keys], np.int64)][of.ravel()] if keys else of
    at = at + (one - space.first[left]) * sizes[right] + other - space.first[right]
    np.add.at(cells, at, np.where(rule < 0, weight, top))
    tables = CostTables(
        space.first.astype(np.int64),
        unary,
        np.concatenate([[0], np.cumsum([len(scope) for scope in number])]).astype(np.int64),
        np.array([v for scope in number for v in scope], np.int64),
        cell_first,
        cells,
    )
    for scope, r in zip(scopes, rules, strict=True):
        _write(space, sizes, tables, number[scope], scope, r, top)
    np.minimum(cells, top, out=cells)
    return tables


def _short(space: Space, sizes: Ints) -> tuple[list[tuple[int, ...]], list[int]] | None:
    """Return the scopes and numbers of rules whose tables are small; None: there are too many."""
    scopes: list[tuple[int, ...]] = []
    rules: list[int] = []
    left = MAX_CELLS
    begins = space.part_first.tolist()
    for r, (begin, end) in enumerate(pairwise(begins)):
        some = space.part_var[begin:end].tolist()
        if not some or len(some) > CELLS.bit_length() or len(set(some)) < len(some):
            continue
        size = int(np.prod([float(sizes[v]) for v in some]))
        if size > CELLS:
            continue
        left -= size
        if left < 0:
            return None
        scopes.append(tuple(sorted(some)))
        rules.append(r)
    return scopes, rules


def _write(
    space: Space, sizes: Ints, tables: CostTables, f: int, scope: tuple[int, ...], r: int, top: int
) -> None:
    """Add what a rule costs to the cells of its table."""
    begin, end = int(space.part_first[r]), int(space.part_first[r + 1])
    shape = tuple(int(sizes[v]) for v in scope)
    count = np.zeros(shape, np.int64)
    for k in range(begin, end):
        v = int(space.part_var[k])
        true: Bools = np.zeros(int(sizes[v]), bool)
        true[space.listed[space.list_first[k] : space.list_first[k + 1]] - space.first[v]] = True
        if not space.part_yes[k]:
            true = ~true
        count += true.reshape([-1 if u == v else 1 for u in scope])
    broken = (count < space.least[r]) | (count > space.most[r])
    cost = top if space.hard[r] else int(space.cost[r])
    table = tables.cells[tables.cell_first[f] : tables.cell_first[f + 1]]
    np.minimum(table + cost * broken.ravel(), top, out=table)


def ascend(tables: CostTables, sweeps: int, *, back: bool = False) -> None:
    """Do handshakes at all tables, so often; the first sweep goes through them from behind if ``back``."""
    _ascend(*tables, sweeps, back)


@kernel("valued")
def _ascend(first, unary, scope_first, scope, cell_first, cells, sweeps, back):
    """Do handshakes at all tables, forth and back."""
    tables, longest = len(scope_first) - 1, int64(1)
    for f in range(tables):
        longest = max(longest, scope_first[f + 1] - scope_first[f])
    largest = int64(1)
    for v in range(len(first) - 1):
        largest = max(largest, first[v + 1] - first[v])
    step, low = np.zeros(longest, np.int64), np.zeros(largest, np.int64)
    for sweep in range(sweeps):
        for number in range(tables):
            f = number if (sweep % 2 == 0) != back else tables - 1 - number
            begin, size = scope_first[f], scope_first[f + 1] - scope_first[f]
            start, end = cell_first[f], cell_first[f + 1]
            if size == 2:
                u, v = scope[begin], scope[begin + 1]
                _shake(unary, cells, start, first[u], first[u + 1], first[v], first[v + 1])
                continue
            steps = int64(1)
            for k in range(size - 1, -1, -1):
                step[k] = steps
                steps *= first[scope[begin + k] + 1] - first[scope[begin + k]]
            for k in range(size):
                v = scope[begin + k]
                values = first[v + 1] - first[v]
                for c in range(end - start):
                    cells[start + c] += unary[first[v] + c // step[k] % values]
            for turn in range(2 * size - 1):
                k = turn if turn < size else 2 * size - 2 - turn
                share = size - turn if turn < size else 1
                v = scope[begin + k]
                values = first[v + 1] - first[v]
                for i in range(values):
                    low[i] = _FAR
                for c in range(end - start):
                    i = c // step[k] % values
                    low[i] = min(low[i], cells[start + c])
                for i in range(values):
                    low[i] = low[i] // share
                    unary[first[v] + i] = low[i] if turn < size else unary[first[v] + i] + low[i]
                for c in range(end - start):
                    cells[start + c] -= low[c // step[k] % values]


@kernel("valued")
def _shake(unary, cells, start, one, one_end, other, other_end):
    """Do a handshake at a table of two variables."""
    values = other_end - other
    at = start
    for p in range(one, one_end):
        own, low = unary[p], int64(_FAR)
        for i in range(values):
            cells[at + i] += own + unary[other + i]
            low = min(low, cells[at + i])
        low >>= 1
        for i in range(values):
            cells[at + i] -= low
        unary[p] = low
        at += values
    for i in range(values):
        unary[other + i] = _FAR
    at = start
    for _ in range(one, one_end):
        for i in range(values):
            unary[other + i] = min(unary[other + i], cells[at + i])
        at += values
    at = start
    for p in range(one, one_end):
        low = int64(_FAR)
        for i in range(values):
            cells[at + i] -= unary[other + i]
            low = min(low, cells[at + i])
        for i in range(values):
            cells[at + i] -= low
        unary[p] += low
        at += values
