"""A component by elimination (variable elimination, bucket elimination): atoms are summed out of tables."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.errors import TooManyWorlds
from lbm.knowledge.clauses import definitional
from lbm.knowledge.formula import CARDINALITIES, Formula, postorder
from lbm.knowledge.weighted import check_cells
from lbm.reasoning.assign import reach
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import Component, exponents
from lbm.reasoning.exact.blocks import LIMIT, truth_table
from lbm.reasoning.exact.rows import (
    Array,
    Words,
    check_room,
    column_of,
    few,
    how_many,
    mask,
    sort_rows,
    spread,
    words_for,
)
from lbm.reasoning.problem import Known

WIDTH: Final = 20
"""Atoms a table of elimination may have beside the one that is summed out."""

MAX_KEPT: Final = 1 << 27
"""Entries of all tables together that marginals, draws and lists by elimination may keep."""

_FILL: Final = 64  # atoms up to which elimination also looks for the order of least fill (min-fill)
_LOOK: Final = 1024  # clauses between two looks at the clock
_NARROW: Final = 6  # atoms of a formula past which elimination may define its parts
# Truth tables of small formulae, for as long as somebody has the formula.
_tables: Final[WeakKeyDictionary[Formula, Bools]] = WeakKeyDictionary()
_orders: Final = Known(512)


@dataclass(frozen=True, slots=True)
class Factor:
    """What ties some variables together: the truth table of a formula, with its weight if it is soft."""

    scope: tuple[int, ...]
    table: Callable[[tuple[int, ...]], Bools]
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A function of the variables in ``scope``, each of them an axis of length 2.

    ``mass`` counts ways, or holds logarithms; None in ``best`` stands for a score of 0 everywhere. No
    entry of a count passes 2^bits.
    """

    scope: tuple[int, ...]
    best: Array | None
    mass: Array
    bits: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """A variable summed out, given those in ``scope``: which of its values can be, and how likely true is."""

    variable: int
    scope: tuple[int, ...]
    can: tuple[Bools, Bools] | None = None
    chance: NDArray[np.float64] | None = None


@dataclass(slots=True)
class _Eliminated:
    best: int = 0
    ways: int = 1
    log: float = 0.0
    steps: list[_Step] = field(default_factory=list)


class Buckets:
    """A component by variable elimination, in an order that keeps tables small.

    Summing a variable out of the product of all tables that mention it leaves a table of its neighbours.
    In reverse order each variable is then settled given these neighbours: backwards there are no dead
    ends, so lists, draws and marginals come from what each step remembers.
    """

    def __init__(
        self,
        component: Component,
        keep: frozenset[str] | None = None,
        budget: Budget = NO_LIMIT,
        *,
        in_order: bool = False,
    ) -> None:
        self.component, self.budget = component, budget
        names = component.atoms
        kept = [i for i, name in enumerate(names) if keep is None or name in keep]
        narrowest = math.inf
        for define in (False, True):
            # A grid of cells has no narrower order: none is looked for, and the cells are not made.
            if define and (height := self._height()) > WIDTH:
                narrowest = min(narrowest, height)
                break
            self.factors, self.variables = self._factors(define)
            # Variables that are only asked to exist go first.
            last = frozenset(range(self.variables) if keep is None else kept)
            scopes = tuple(factor.scope for factor in self.factors)
            self.order, width = order(scopes, self.variables, last, in_order, budget)
            self.exists = set(range(self.variables)) - last
            if len(self.order) == self.variables:  # finished: no table is wider than WIDTH
                return
            narrowest = min(narrowest, width)
            if all(len(scope) <= _NARROW for scope in scopes):
                break
        size = len(names)
        raise TooManyWorlds(
            f"{size} free atoms make {how_many(size)} worlds; enumeration stops at {LIMIT} (limit LIMIT), "
            f"and elimination needs tables of {narrowest} atoms or more, beyond {WIDTH} (limit WIDTH): "
            "give more evidence, or sample",
            LIMIT=LIMIT,
        )

    def _factors(self, define: bool) -> tuple[list[Factor], int]:
        """Return formulae as factors; those of many atoms, if asked, through variables for their parts."""
        names = self.component.atoms
        place = {name: i for i, name in enumerate(names)}
        found: list[Factor] = []
        wide: list[tuple[Formula, int | None]] = []
        for formula, weight in (*((f, None) for f in self.component.hard), *self.component.soft):
            self.budget.tick()
            scope = tuple([place[name] for name in reach(formula)])
            if define and len(scope) > _NARROW:
                wide.append((formula, weight))
            else:
                found.append(Factor(scope, _formula_table(formula, names, self.budget), weight))
        if not wide:
            return found, len(names)
        check_cells(*(formula for formula, _ in wide))
        numbers = {name: i + 1 for i, name in enumerate(names)}
        parts = [formula for formula, _ in wide]
        clauses, roots, end = definitional(parts, numbers, len(names) + 1, self.budget.tick)
        for root, (_, weight) in zip(roots, wide, strict=True):
            found.append(Factor((abs(root) - 1,), _clause_table([root]), weight))
        for number, clause in enumerate(clauses):
            if not number % _LOOK:
                self.budget.tick()
            found.append(Factor(tuple({abs(n) - 1: None for n in clause}), _clause_table(clause)))
        return found, end - 1

    def _height(self) -> int:
        """Return a width that no order gets below once the counters of wide formulae are defined.

        The counter of "at least k of n" is a grid of k by n - k + 1 cells.
        """
        height = 0
        formulae = (*self.component.hard, *(formula for formula, _ in self.component.soft))
        for node in postorder(*(formula for formula in formulae if len(reach(formula)) > _NARROW)):
            if node.kind in CARDINALITIES:
                parts, bound = len(node.args), node.label
                bounds = {"atleast": (bound,), "atmost": (bound + 1,), "exactly": (bound, bound + 1)}
                height = max(height, *(min(least, parts - least + 1) for least in bounds[node.kind]))
        return height

    def run(self, scale: int, temperature: float | None, *, steps: bool = False) -> _Eliminated | None:
        """Sum out every variable; None: there is no model.

        With a temperature masses are logarithms; without one they count the models of the best score.
        Without soft formulae both are the same thing, and counting is exact.
        """
        logs = temperature is not None and bool(self.component.soft)
        turn = {variable: i for i, variable in enumerate(self.order)}
        buckets: dict[int, list[Table]] = {variable: [] for variable in self.order}
        for factor in self.factors:
            scope = tuple(sorted(factor.scope, key=lambda v: -turn[v]))
            buckets[scope[-1]].append(start(factor, scope, self.component.numbers, logs=logs))
        result = _Eliminated()
        kept = 0
        for variable in self.order:
            self.budget.tick()
            table = times(buckets.pop(variable), (variable,), turn, logs=logs)
            summed, step = sum_out(
                table, scale, temperature, logs=logs, exists=variable in self.exists, steps=steps
            )
            if steps:
                kept += summed.mass.size
                if kept > MAX_KEPT:
                    raise TooManyWorlds(
                        f"elimination of {len(self.order)} variables would keep more than {MAX_KEPT} entries "
                        "of its tables (limit MAX_KEPT): ask for a count or one probability, or sample",
                        MAX_KEPT=MAX_KEPT,
                    )
                result.steps.append(step)
            if summed.scope:
                buckets[summed.scope[-1]].append(summed)
                continue
            result.best += 0 if summed.best is None else int(summed.best)
            if logs:
                result.log += float(summed.mass)
            else:
                result.ways *= int(summed.mass)
            if result.log == -math.inf or not result.ways:
                return None
        if not logs:
            result.log = math.log(result.ways)
        return result

    def count(self, keep: frozenset[str] | None = None) -> int:  # noqa: ARG002 - settled when it was made
        """Return how many models there are, or restrictions to the atoms it was made for."""
        assert not self.component.soft, "models are counted without soft formulae"
        found = self.run(1, None)
        return 0 if found is None else found.ways

    def mass(self, scale: int, temperature: float) -> tuple[int, float] | None:
        """Return (best, log) with Z = exp(best/scale/τ + log); None: there is no model."""
        found = self.run(scale, temperature)
        return None if found is None else (found.best, found.log)

    def best(self, limit: int | None) -> tuple[int, int, Words] | None:
        """Return the best score, how many models have it, and the first of them; None: there is no model."""
        found = self.run(1, None, steps=True)
        if found is None:
            return None
        rows = None if limit is None or few(found.ways, limit) else self._first(limit, None)
        if rows is None:
            check_room(found.ways, len(self.component.atoms))
            rows = self._rows(found.steps)[:limit]
        return found.best, found.ways, rows

    def worlds(self, limit: int | None = None, keep: frozenset[str] | None = None) -> Words | None:
        """Return the first ``limit`` models, sorted, or their restrictions to ``keep``.

        None: there are far more, and the atoms cannot be eliminated from the last to the first.
        """
        found = self.run(1, None, steps=True)
        if found is None:
            return np.zeros((0, words_for(len(self.component.atoms))), np.uint64)
        if limit is not None and not few(found.ways, limit):
            return self._first(limit, keep)
        check_room(found.ways, len(self.component.atoms))
        return self._rows(found.steps)[:limit]

    def _first(self, limit: int, keep: frozenset[str] | None) -> Words | None:
        """Return the first ``limit`` models where there are far more.

        If the atoms can be eliminated from the last to the first, steps back settle them from the first on,
        and only the first ``limit`` beginnings need be kept.
        """
        kept = frozenset(self.component.atoms) if keep is None else keep
        try:
            ordered = Buckets(self.component, kept, self.budget, in_order=True)
        except TooManyWorlds:
            return None
        found = ordered.run(1, None, steps=True)
        assert found is not None
        return ordered._rows(found.steps, limit)

    def _rows(self, steps: Sequence[_Step], limit: int | None = None) -> Words:
        """Return every model the steps allow, over the component's atoms, sorted.

        With a limit the steps must go back from the first atom on; only so many beginnings are kept.
        """
        width = words_for(self.variables)
        rows = np.zeros((1, width), np.uint64)
        for step in reversed(steps):
            if step.variable in self.exists:
                break
            self.budget.tick()  # there may be many rows
            assert step.can is not None
            at = _index(rows, step.scope)
            zero, one = (rows[can.reshape(-1)[at]] for can in step.can)
            rows = np.concatenate([zero, one | mask([step.variable], width)])
            if limit is not None:
                rows = sort_rows(rows)[:limit]
        return sort_rows(self._own(rows))

    def _own(self, rows: Words) -> Words:
        """Drop the variables that stand for parts of formulae."""
        atoms = len(self.component.atoms)
        if self.variables == atoms:
            return rows
        found = np.zeros((len(rows), words_for(atoms)), np.uint64)
        spread(rows, range(atoms), found)
        return found

    def draw(self, n: int, rng: np.random.Generator, scale: int, temperature: float) -> Words | None:
        """Return ``n`` independent draws as rows: each variable in turn, given its neighbours."""
        found = self.run(scale, temperature, steps=True)
        if found is None:
            return None
        width = words_for(self.variables)
        rows = np.zeros((n, width), np.uint64)
        for step in reversed(found.steps):
            assert step.chance is not None
            at = _index(rows, step.scope)
            rows[rng.random(n) < step.chance.reshape(-1)[at]] |= mask([step.variable], width)
        return self._own(rows)

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return the probability of each atom: from the last back, P(v, scope) = P(v | scope)·P(scope)."""
        found = self.run(scale, temperature, steps=True)
        if found is None:
            return None
        chances = [0.0] * self.variables
        # Among the tables already made, the one of the neighbour that goes next holds the whole scope.
        joint: dict[int, tuple[tuple[int, ...], NDArray[np.float64]]] = {}
        waiting = Counter(step.scope[-1] for step in found.steps if step.scope)
        for step in reversed(found.steps):
            assert step.chance is not None
            given = np.ones(())
            if step.scope:
                scope, table = joint[step.scope[-1]]
                given = table.sum(axis=tuple(i for i, v in enumerate(scope) if v not in step.scope))
                waiting[step.scope[-1]] -= 1
                if not waiting[step.scope[-1]]:
                    del joint[step.scope[-1]]
            one = given * step.chance
            chances[step.variable] = min(float(one.sum()), 1.0)
            if waiting[step.variable]:
                joint[step.variable] = (*step.scope, step.variable), np.stack([given - one, one], axis=-1)
        return chances[: len(self.component.atoms)]


def _index(rows: Words, scope: Sequence[int]) -> NDArray[np.int64]:
    """Return where in a table over these variables the values in each row stand."""
    at = np.zeros(len(rows), np.int64)
    for variable in scope:
        at <<= 1
        at |= column_of(rows, variable)
    return at


def start(factor: Factor, scope: tuple[int, ...], numbers: type, *, logs: bool) -> Table:
    """Return a factor as a table over its variables in this order; ``numbers`` is the type of scores."""
    true = factor.table(scope)
    if factor.weight is None:
        if logs:
            return Table(scope, None, np.where(true, 0.0, -np.inf))
        return Table(scope, None, true.astype(np.int64))
    best: Array = np.zeros(true.shape, numbers)
    best[true] = factor.weight
    return Table(scope, best, np.zeros(true.shape) if logs else np.ones(true.shape, np.int64))


def times(
    tables: Iterable[Table], variables: tuple[int, ...], turn: Mapping[int, int], *, logs: bool
) -> Table:
    """Return the product of tables, over ``variables`` too; whose turn comes first is its last axis.

    The axes of each table are in that order already.
    """
    several = sorted(tables, key=lambda table: len(table.scope))
    scope = tuple(
        sorted({*variables, *(v for table in several for v in table.scope)}, key=lambda v: -turn[v])
    )
    shape = (2,) * len(scope)
    mass: Array = np.zeros(()) if logs else np.ones((), np.int64)
    best: Array | None = None
    bits = 0
    for table in several:
        mine = [2 if v in table.scope else 1 for v in scope]
        bits += table.bits
        if logs:
            mass = mass + table.mass.reshape(mine)
        else:
            kind = np.int64 if bits < 62 else object
            mass = mass.astype(kind, copy=False) * table.mass.reshape(mine).astype(kind, copy=False)
            mass = np.asarray(mass, kind)  # numbers past 64 bits are no arrays, where there are no axes
        if table.best is not None:
            more = np.broadcast_to(table.best.reshape(mine), shape)
            best = more if best is None else np.asarray(best + more, more.dtype)
    return Table(scope, best, np.broadcast_to(mass, shape), bits)


def sum_out(
    table: Table,
    scale: int,
    temperature: float | None,
    *,
    logs: bool,
    exists: bool = False,
    steps: bool = False,
) -> tuple[Table, _Step]:
    """Sum out the last axis of a table, or ask whether a value of it ``exists``; return how it went, too."""
    *others, variable = table.scope
    zero, one = table.mass[..., 0], table.mass[..., 1]
    nothing = -np.inf if logs else 0
    can = zero != nothing, one != nothing
    best = None
    if table.best is not None:
        low = np.where(can[0], table.best[..., 0], table.best[..., 1])
        high = np.where(can[1], table.best[..., 1], low)
        best = np.asarray(np.maximum(low, high), dtype=table.best.dtype)
        if logs:
            assert temperature is not None
            zero = zero + exponents(low - best, scale, temperature)
            one = one + exponents(high - best, scale, temperature)
        else:
            can = can[0] & (low == best), can[1] & (high == best)
            zero, one = zero * can[0], one * can[1]
    bits = table.bits + 1
    if logs:
        mass = np.asarray(np.logaddexp(zero, one))
    elif exists:
        mass, bits = np.asarray((can[0] | can[1]).astype(np.int64)), 0
    else:
        kind = np.int64 if bits < 62 else object
        mass = np.asarray(np.asarray(zero, dtype=kind) + np.asarray(one, dtype=kind), dtype=kind)
    chance = None
    if steps and temperature is not None:
        alive = mass != nothing
        whole = np.where(alive, mass, 0.0 if logs else 1)
        share = np.exp(one - whole) if logs else one / whole
        chance = np.asarray(np.where(alive, share, 0.0), dtype=np.float64)
    step = _Step(variable, tuple(others), (np.asarray(can[0], bool), np.asarray(can[1], bool)), chance)
    return Table(tuple(others), best, mass, bits), step


def _formula_table(
    formula: Formula, names: Sequence[str], budget: Budget
) -> Callable[[tuple[int, ...]], Bools]:
    def table(scope: tuple[int, ...]) -> Bools:
        if len(scope) > _NARROW:
            return truth_table(formula, [names[variable] for variable in scope], budget)
        known = _tables.get(formula)
        if known is None:
            known = _tables[formula] = truth_table(formula, reach(formula), budget)
        place = {name: i for i, name in enumerate(reach(formula))}
        return known.transpose([place[names[variable]] for variable in scope])

    return table


def _clause_table(clause: Sequence[int]) -> Callable[[tuple[int, ...]], Bools]:
    def table(scope: tuple[int, ...]) -> Bools:
        found = np.zeros((2,) * len(scope), bool)
        for number in clause:
            place: list[Any] = [slice(None)] * len(scope)
            place[scope.index(abs(number) - 1)] = int(number > 0)
            found[tuple(place)] = True
        return found

    return table


# --- the order of elimination: greedily, so that tables stay narrow ------------------------------------


def order(
    scopes: tuple[tuple[int, ...], ...],
    variables: int,
    last: frozenset[int],
    backwards: bool,
    budget: Budget = NO_LIMIT,
) -> tuple[list[int], int]:
    """Return an order of elimination and its width (at least the treewidth).

    Those in ``last`` go after the others; if ``backwards``, from the greatest to the least. Past WIDTH the
    order is not finished, and the width is the first that was too large.
    """
    most = WIDTH

    def found() -> tuple[list[int], int]:
        widest = max(map(len, scopes), default=1) - 1
        if widest > most:
            return [], widest
        ways = (False, True) if variables <= _FILL else (False,)
        orders = (
            _greedy(_neighbours(scopes, variables), last, backwards, fill, most, budget) for fill in ways
        )
        return min(orders, key=lambda each: each[1])

    # A case is looked at once to see whether it fits, and again for each question.
    return _orders.get((scopes, variables, last, backwards, most), found)


def _greedy(
    near: list[set[int]], last: frozenset[int], backwards: bool, fill: bool, most: int, budget: Budget
) -> tuple[list[int], int]:
    def cost(variable: int) -> tuple[bool, int, int]:
        if backwards and variable in last:
            return True, -variable, 0
        others = near[variable]
        missing = sum(len(others - near[other]) - 1 for other in others) if fill else 0
        return variable in last, missing, len(others)

    order: list[int] = []
    width = 0
    left = set(range(len(near)))
    heap = [] if fill else [(cost(variable), variable) for variable in left]
    heapq.heapify(heap)
    while left:
        budget.tick()
        if fill:
            variable = min(left, key=lambda v: (cost(v), v))
        else:
            seen, variable = heapq.heappop(heap)
            if variable not in left or seen != cost(variable):
                continue
        others = near[variable]
        width = max(width, len(others))
        if width > most:
            return order, width
        order.append(variable)
        left.discard(variable)
        for other in others:
            near[other] |= others
            near[other] -= {variable, other}
            if not fill:
                heapq.heappush(heap, (cost(other), other))
    return order, width


def narrow_order(scopes: Sequence[Sequence[int]], variables: int, budget: Budget) -> list[int]:
    """Return an order of elimination, quickly found; raise TooManyWorlds past WIDTH."""
    found, width = _greedy(_neighbours(scopes, variables), frozenset(), False, False, WIDTH, budget)
    if width > WIDTH:
        raise TooManyWorlds(
            f"elimination needs tables of {width} atoms or more, beyond {WIDTH} (limit WIDTH)", WIDTH=WIDTH
        )
    return found


def _neighbours(scopes: Iterable[Iterable[int]], variables: int) -> list[set[int]]:
    """Return, for each variable, those that it shares a table with."""
    near: list[set[int]] = [set() for _ in range(variables)]
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
    for variable, others in enumerate(near):
        others.discard(variable)
    return near
