"""A component by elimination (variable elimination, bucket elimination): many values, many rows at once.

Summing a variable out of the product of all tables that mention it leaves a table of its neighbours, its
message. In reverse order each variable is then settled given these neighbours, so draws and marginals come
from what each step remembers. Weights, temperature and evidence enter as numbers: the order of elimination
is found once.

Numbers are plain floating point. How small and how large entries can be is known of every table: messages
that could come near the end of the range are scaled to 1 at most, and rows in which small entries could be
lost even so are done again in logarithms. Rows are the last axis of every table, so that what is done to an
entry is done to many rows at a stretch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.errors import TooManyWorlds
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, exponents
from lbm.reasoning.exact.orders import EliminationOrder, banded_order, elimination_order
from lbm.reasoning.exact.programs import MAX_ENTRIES, TableProgram, table_program, usable
from lbm.reasoning.exact.rows import Array, Words, check_room, few, rounded, sort_rows, words_for
from lbm.reasoning.exact.variables import NARROW, Cells, TableCell, cells_of
from lbm.reasoning.problem import Known

MAX_TABLE: Final = 1 << 26
"""Entries of one table of elimination: numbers of 8 bytes, and a few such tables at a time."""

MAX_REMEMBERED: Final = 1 << 27
"""Entries of all tables together that marginals and draws remember."""

MANY: Final = 1 << 31
"""Best worlds up to which they are counted."""

_NONE: Final = 1 << 62  # below 0, the score of what cannot be: further down than all weights together reach
_AT_ONCE: Final = 1 << 23  # entries of the tables of all rows that are worked out together
_FEW: Final = 16  # rows of large tables below which it is faster to take one row at a time
_SAFE: Final = 600.0  # natural logarithm of the largest and of 1 over the smallest entry that is in range
_NEAR: Final = 50.0  # that of entries past which messages are scaled
_LARGE: Final = 1 << 16  # entries of a table of truth values past which it stays one until it is met
_JOINED: Final = 256  # entries of a table up to which those that meet are joined once and for all
_LEAST: Final = 1e-300  # less than any sum that is not 0
_MOST: Final = 1e300  # more than any logarithm
_WORD: Final = 62  # bits of a number that 64 bits hold with ease
_DEFINED: Final = 16.0  # entries of all tables, as a power of 2, past which definitions may make fewer
_EASY: Final = 6.0  # size of the tables of a variable, as a power of 2, up to which an order is good enough
_ROUNDS: Final = 16  # of greedy choice of an order where it is not
_STEPS: Final = 2_000_000  # of work on them, about a fifth of a second

Weights = Mapping[str, Array]
"""By atom, what worlds are multiplied by where it is false and where it is true, shape (rows or 1, 2)."""


class _OutOfRange(Exception):
    """Entries are too far apart for plain floating point."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A table over some variables, shape (one axis for each, rows or 1).

    ``low``, ``high``: bounds of the logarithms of its entries, but of those that are 0.
    """

    scope: tuple[int, ...]
    values: Array
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True)
class _Summed:
    """A variable summed out, given those in ``scope``.

    ``chance``: how likely its values are, an axis for them before those of the scope and of the rows; without
    the first value where there are two.
    """

    variable: int
    scope: tuple[int, ...]
    chance: Floats


@dataclass(frozen=True, slots=True)
class _Scored:
    """A table of best scores, and of how many ways lead to each; an axis of length 1 before the scope's."""

    scope: tuple[int, ...]
    best: Array
    ways: Array


@dataclass(frozen=True, slots=True)
class _Choice:
    """A variable settled given those in ``scope``: which of its values lead to the best."""

    variable: int
    scope: tuple[int, ...]
    can: Bools


@dataclass(frozen=True, slots=True)
class TableStep:
    """What the formulae of a component say where a variable is summed out, before any message comes in.

    ``scope``: the variable, then its neighbours, those first that go first; ``allowed``: which of their
    values hard formulae allow, an axis each; ``scores``: what soft ones score there, None: nothing.
    """

    scope: tuple[int, ...]
    allowed: Bools
    scores: Array | None


@dataclass(frozen=True, slots=True)
class _Swept:
    logs: Floats  # of the sum over all worlds, for each row
    steps: list[_Summed]
    fixed: dict[int, Ints]  # variables that were seen, with the value of each row


class Tables:
    """A component as tables, with an order in which its variables are summed out."""

    def __init__(self, component: Component, budget: Budget) -> None:
        self.component, self.budget = component, budget
        self.cells, self.order = _ordered(component, budget)
        self.turn = {variable: i for i, variable in enumerate(self.order)}
        many = self.sizes = self.cells.sizes
        tied: dict[int, set[int]] = {variable: {variable} for variable in self.order}
        for cell in self.cells.cells:
            tied[min(cell.scope, key=self.turn.__getitem__)].update(cell.scope)
        self.scopes: dict[int, tuple[int, ...]] = {}  # of each message
        self.largest = self.work = self.remembered = 0
        for variable in self.order:
            others = tuple(sorted(tied.pop(variable) - {variable}, key=self.turn.__getitem__))
            self.scopes[variable] = others
            if others:
                tied[others[0]].update(others)
            entries = math.prod(many[v] for v in others)
            self.largest = max(self.largest, entries * many[variable])
            self.work += entries * many[variable]
            self.remembered += entries * (1 if many[variable] == 2 else many[variable])
        if self.largest > MAX_TABLE:
            raise TooManyWorlds(
                f"elimination of {len(component.atoms)} free atoms needs a table of about "
                f"{rounded(self.largest)} entries, more than {MAX_TABLE} (limit MAX_TABLE): "
                "give more evidence, or sample",
                MAX_TABLE=MAX_TABLE,
            )
        # By scale and temperature; shared by all that `within` returns.
        self._weighed, self._programs = Known(2), Known(2)

    @cached_property
    def _bits(self) -> float:
        """The logarithm of the number of ways in which values can be given to all variables."""
        return sum(math.log(size) for size in self.sizes)

    def within(self, budget: Budget) -> Tables:
        """Return the same tables, for questions that have this much time."""
        found = copy(self)
        found.budget = budget
        return found

    def steps(self) -> Iterator[TableStep]:
        """Yield what is said where each variable goes, in turn."""
        of: dict[int, list[TableCell]] = {variable: [] for variable in self.order}
        for cell in self.cells.cells:
            of[self._sorted(cell)[0]].append(cell)
        for variable in self.order:
            self.budget.tick()
            scope = (variable, *self.scopes[variable])
            whole = tuple([self.sizes[v] for v in scope])
            allowed = np.ones(whole, bool)
            scores: Array | None = None
            for cell in of[variable]:
                met = self._sorted(cell)
                shape = [self.sizes[v] if v in met else 1 for v in scope]
                if cell.allowed is not None:
                    allowed &= self._axes(cell, cell.allowed).reshape(shape)
                if cell.scores is not None:
                    if scores is None:
                        scores = np.zeros(whole, self.component.numbers)
                    scores += self._axes(cell, cell.scores).reshape(shape)
            yield TableStep(scope, allowed, scores)

    # -- questions --

    def count(
        self, keep: frozenset[str] | None = None, weights: Mapping[str, tuple[int, int]] | None = None
    ) -> int:
        """Return the number of models, or the sum over them of products of whole weights of their literals.

        ``weights``: what a model is multiplied by where an atom is false, and where it is true. Restrictions
        of models are not asked of tables.
        """
        assert keep is None or keep.issuperset(self.component.atoms)
        assert not self.component.soft, "models are counted without soft formulae"
        seen = self._by_variable({name: np.array([pair], object) for name, pair in (weights or {}).items()})
        bits = self._bits / math.log(2) + sum(int(table.max()).bit_length() for table in seen.values())
        kind: Any = np.int64 if bits < _WORD else object
        held = [
            _Held(self._sorted(cell), _rows_last(self._axes(cell, cell.allowed))) for cell in self.cells.cells
        ]
        total = 1
        seen = {variable: table.astype(kind) for variable, table in seen.items()}
        for _, summed in self._messages(held, seen, {}, add=np.add, kind=kind):
            if summed.ndim == 1:
                total *= int(summed[0])
            if not total:
                return 0
        return total

    def mass(self, scale: int, temperature: float) -> tuple[int, float] | None:
        """Return (best, log) with Z = exp(best/scale/τ + log); None: there is no model."""
        offset, logs = self.log_sums(scale, temperature, {})
        return None if logs[0] == -math.inf else (offset, float(logs[0]))

    def log_sums(self, scale: int, temperature: float, weights: Weights) -> tuple[int, Floats]:
        """Return (offset, logs) with Z = exp(offset/scale/τ + log) for each row; -inf: no world is left."""
        compiled = self._compiled(scale, temperature, weights, down=False)
        if compiled is not None:
            return self._offset(scale, temperature), compiled[0]
        found = [swept.logs for swept in self._rows(scale, temperature, weights, steps=False)]
        return self._offset(scale, temperature), np.concatenate(found)

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return the probability of each atom; None: there is no model."""
        _, logs, chances = self.all_marginals(scale, temperature, {})
        return None if logs[0] == -math.inf else chances[0].tolist()

    def all_marginals(self, scale: int, temperature: float, weights: Weights) -> tuple[int, Floats, Floats]:
        """Return what :meth:`log_sums` does, and P(atom) of each row, shape (rows, atoms); nan: no world."""
        compiled = self._compiled(scale, temperature, weights, down=True)
        if compiled is not None:
            return self._offset(scale, temperature), compiled[0], self._of_atoms(*compiled)
        logs, chances = [], []
        for swept in self._rows(scale, temperature, weights, steps=True):
            logs.append(swept.logs)
            chances.append(self._chances(swept))
        return self._offset(scale, temperature), np.concatenate(logs), np.concatenate(chances)

    def draw(self, n: int, rng: np.random.Generator, scale: int, temperature: float) -> Words | None:
        """Return ``n`` independent draws as rows: each variable in turn, given its neighbours."""
        (swept,) = self._rows(scale, temperature, {}, steps=True)
        if swept.logs[0] == -math.inf:
            return None
        sizes = self.sizes
        values = np.zeros((len(self.order), n), np.uint8 if max(sizes) <= 256 else np.int64)
        for step in reversed(swept.steps):
            self.budget.tick()
            at = np.zeros(n, np.int64)
            for variable in step.scope:
                at *= sizes[variable]
                at += values[variable]
            dice = rng.random(n)
            chance = step.chance[..., 0]
            if len(chance) == 1:
                values[step.variable] = dice < chance.reshape(-1)[at]
                continue
            sums = np.cumsum(chance.reshape(len(chance), -1), axis=0)
            reached = sums[:, at] <= dice * sums[-1, at]
            values[step.variable] = np.minimum(reached.sum(axis=0), len(chance) - 1)
        return self._packed(values)

    def best(self, limit: int | None) -> tuple[int, int, Words] | None:
        """Return the best score, how many models have it, and some of them; None: there is no model.

        They are counted up to MANY. If they are few all are returned, up to the limit; else any of them.
        """
        swept = self._tops()
        if swept is None:
            return None
        score, ways, steps = swept
        if limit is None or few(ways, limit):
            check_room(ways, len(self.component.atoms))
            return score, ways, self._reaching(steps, None)[:limit]
        return score, ways, self._reaching(steps, limit)

    def worlds(self, limit: int | None = None, keep: frozenset[str] | None = None) -> Words | None:
        """Return the first ``limit`` models, sorted; None: there are far more.

        Restrictions of models are not asked of tables.
        """
        assert keep is None or keep.issuperset(self.component.atoms)
        swept = self._tops()
        if swept is None:
            return np.zeros((0, words_for(len(self.component.atoms))), np.uint64)
        _, ways, steps = swept
        if limit is not None and not few(ways, limit):
            return None
        check_room(ways, len(self.component.atoms))
        return self._reaching(steps, None)[:limit]

    def _tops(self) -> tuple[int, int, list[_Choice]] | None:
        """Return the best score, how many models have it, up to MANY, and which values lead to them."""
        kind = self.component.numbers
        none = (
            -_NONE if kind is np.int64 else -4 * (1 + sum(abs(weight) for _, weight in self.component.soft))
        )
        buckets: dict[int, list[_Scored]] = {variable: [] for variable in self.order}
        for cell in self.cells.cells:
            best = cell.allowed if cell.scores is None else cell.scores
            if cell.scores is not None and cell.allowed is not None:
                best = np.where(cell.allowed, cell.scores, none).astype(kind)
            scope = self._sorted(cell)
            buckets[scope[0]].append(_Scored(scope, self._axes(cell, best), np.ones((), np.int64)))
        steps: list[_Choice] = []
        score, number = 0, 1
        sizes = self.cells.sizes
        for variable in self.order:
            self.budget.tick()
            scope = (variable, *self.scopes[variable])
            whole = (1, *(sizes[v] for v in scope))
            total: Array = np.zeros((), kind)
            ways: Array = np.ones((), np.int64)
            for table in sorted(buckets.pop(variable), key=lambda table: table.best.size):
                mine = [1, *(sizes[v] if v in table.scope else 1 for v in scope)]
                more = table.best
                if more.dtype == bool:
                    true, more = more, np.full(more.shape, none, kind)
                    more[true] = 0
                # Two scores of what cannot be add up to no less than a number of 64 bits.
                total = np.maximum(total + more.reshape(mine), none)
                if table.ways.ndim:
                    ways = np.minimum(ways * table.ways.reshape(mine), MANY)
            total, ways = np.broadcast_to(total, whole), np.broadcast_to(ways, whole)
            top: Array = np.asarray(total.max(axis=1), kind)
            alive = top > none // 2
            can = (total == top[:, None]) & alive[:, None]
            summed = np.minimum(np.where(can, ways, 0).sum(axis=1), MANY)
            steps.append(_Choice(variable, scope[1:], can[0]))
            if len(scope) > 1:
                top = np.where(alive, top, none).astype(kind)
                buckets[scope[1]].append(_Scored(scope[1:], top, summed))
                continue
            if not alive[0]:
                return None
            score += int(top[0])
            number = min(number * int(summed[0]), MANY)
        return score, number, steps

    def _reaching(self, steps: Sequence[_Choice], most: int | None) -> Words:
        """Return the models that steps allow, sorted; with ``most``, any so many of them."""
        sizes = self.cells.sizes
        values = np.zeros((1, len(self.order)), np.uint8 if max(sizes) <= 256 else np.int64)
        for step in reversed(steps):
            self.budget.tick()
            at = np.zeros(len(values), np.int64)
            for variable in step.scope:
                at = at * sizes[variable] + values[:, variable]
            pieces = []
            for value, can in enumerate(step.can.reshape(sizes[step.variable], -1)):
                some = values[can[at]]
                some[:, step.variable] = value
                pieces.append(some)
            values = np.concatenate(pieces)[:most]
        return sort_rows(self._packed(values.T))

    def _packed(self, values: NDArray[Any]) -> Words:
        """Return worlds as rows of bits, from the values of all variables, shape (variables, worlds)."""
        names = self.component.atoms
        atoms = np.zeros((values.shape[1], 64 * words_for(len(names))), bool)
        for i, name in enumerate(names):
            variable, value = self.cells.place[name]
            atoms[:, i] = values[variable] == value
        return np.packbits(atoms, axis=1).view(">u8").astype(np.uint64)

    # -- how --

    def _offset(self, scale: int, temperature: float) -> int:
        return self._weights(scale, temperature)[2]

    def _weights(self, scale: int, temperature: float) -> tuple[list[_Held], list[_Held], int]:
        """Return the cells as weights, 1 at most, as logarithms, and what scores these are relative to."""

        def make() -> tuple[list[_Held], list[_Held], int]:
            logs, offset = [], 0
            for cell in self.cells.cells:
                made, top = self._weight(cell, scale, temperature)
                logs.append(made)
                offset += top
            logs = self._joined(logs)
            plain = [made if made.values.dtype == bool else _exp(made) for made in logs]
            return plain, logs, offset

        return self._weighed.get((scale, temperature), make)

    def _joined(self, logs: Sequence[_Held]) -> list[_Held]:
        """Return the product of the tables that meet where the same variable goes, as long as it is small."""
        found: list[_Held] = []
        last: dict[int, int] = {}
        for table in sorted(logs, key=lambda table: table.values.size):
            first = table.scope[0]
            if table.values.dtype == bool:
                found.append(table)
                continue
            if first in last:
                before = found[last[first]]
                scope = tuple(sorted({*before.scope, *table.scope}, key=self.turn.__getitem__))
                entries = math.prod([self.sizes[v] for v in scope])
                if entries <= max(_JOINED, before.values.size, table.values.size):
                    made = self._product(scope, [before, table], np.add)
                    found[last[first]] = _Held(scope, made.values, before.low + table.low)
                    continue
            last[first] = len(found)
            found.append(table)
        return found

    def _weight(self, cell: TableCell, scale: int, temperature: float) -> tuple[_Held, int]:
        """Return a cell's logarithms, 0 at most, or truth values if they are many, and its best score."""
        scope = self._sorted(cell)
        if cell.scores is None or (cell.allowed is not None and not cell.allowed.any()):
            assert cell.allowed is not None
            values = _rows_last(self._axes(cell, cell.allowed))
            return _Held(scope, values if values.size > _LARGE else _numbers(values, np.add)), 0
        top = int(cell.scores.max() if cell.allowed is None else cell.scores[cell.allowed].max())
        logs = exponents(cell.scores - top, scale, temperature)
        if cell.allowed is not None:
            logs = np.where(cell.allowed, logs, -np.inf)
        least = float(np.min(logs, where=logs > -np.inf, initial=0.0))
        return _Held(scope, _rows_last(self._axes(cell, logs)), least), top

    def _sorted(self, cell: TableCell) -> tuple[int, ...]:
        return tuple(sorted(cell.scope, key=self.turn.__getitem__))

    def _axes(self, cell: TableCell, table: Array | None) -> Array:
        """Return a table of a cell with its axes in order of elimination, behind one for rows."""
        assert table is not None
        return table.transpose([cell.scope.index(variable) for variable in self._sorted(cell)])[None]

    def _compiled(
        self, scale: int, temperature: float, weights: Weights, *, down: bool
    ) -> tuple[Floats, Floats] | None:
        """Return log Z and the chances of values by a compiled program; None: there is none for this."""
        rows = max(map(len, weights.values()), default=1)
        if self.work > MAX_ENTRIES or not usable(self.work * rows):
            return None
        if down and self.remembered > MAX_REMEMBERED:  # which is said elsewhere
            return None
        self.budget.tick()
        program, entries, bounds = self._programs.get(
            (scale, temperature), lambda: self._program(scale, temperature)
        )
        if bounds.min(initial=0.0) <= -_SAFE:
            return None
        found: tuple[Floats, Floats] | None = program.swept(
            entries, bounds, self._by_variable(weights), rows, down=down
        )
        return found

    def _program(self, scale: int, temperature: float) -> tuple[TableProgram, Floats, Floats]:
        """Return the elimination as a program, the weights of its entries, and bounds of their logarithms."""
        of: dict[int, list[_Held]] = {variable: [] for variable in self.order}
        for table in self._weights(scale, temperature)[1]:
            of[table.scope[0]].append(table)
        scopes = [(variable, *self.scopes[variable]) for variable in self.order]
        logs = [self._product(scope, of[scope[0]], np.add).values[..., 0] for scope in scopes]
        program = table_program(self.sizes, scopes, [table > -np.inf for table in logs])
        bounds = [float(np.min(table, where=table > -np.inf, initial=0.0)) for table in logs]
        weights = np.exp(np.concatenate([table.ravel() for table in logs])[program.kept])
        return program, weights, np.array(bounds)

    def _of_atoms(self, logs: Floats, chances: Floats) -> Floats:
        """Return P(atom) of each row from the chances of values, nan where no world is left."""
        first = np.concatenate([[0], np.cumsum(self.sizes)])
        place = [self.cells.place[name] for name in self.component.atoms]
        found = np.minimum(chances[[int(first[variable]) + value for variable, value in place]].T, 1.0)
        found[np.isneginf(logs)] = np.nan
        return found

    def _by_variable(self, weights: Weights) -> dict[int, Array]:
        """Return weights of literals as weights of the values of variables, shape (values, rows or 1)."""
        found: dict[int, Array] = {}
        for name, table in weights.items():
            variable, value = self.cells.place[name]
            if not self.cells.variables[variable].is_group:
                found[variable] = table.T
                continue
            size = self.cells.variables[variable].size
            other = np.repeat(table.T[:1], size, axis=0)
            other[value] = table[:, 1]
            found[variable] = found[variable] * other if variable in found else other
        return found

    def _rows(self, scale: int, temperature: float, weights: Weights, *, steps: bool) -> Iterator[_Swept]:
        """Yield what is found for the rows of weights, some rows at a time."""
        evidence = _spread(self._by_variable(weights))
        largest, work, remembered = self._entries(_fixed(evidence))
        if steps and remembered > MAX_REMEMBERED:
            raise TooManyWorlds(
                f"elimination of {len(self.order)} variables would remember {rounded(remembered)} "
                f"entries of its tables, more than {MAX_REMEMBERED} (limit MAX_REMEMBERED): ask for a count "
                "or one probability, or sample",
                MAX_REMEMBERED=MAX_REMEMBERED,
            )
        rows = max((table.shape[1] for table in evidence.values()), default=1)
        each = max(1, _AT_ONCE // max(1, remembered + work if steps else 4 * largest))
        variables = [*evidence]
        says = np.array([(table != 1).any(axis=0) for table in evidence.values()]).reshape(-1, rows)
        for part in slices(rows, each if each >= _FEW else 1):
            told = np.flatnonzero(says[:, part].any(axis=1)).tolist()
            some = {variables[i]: evidence[variables[i]][:, part] for i in told}
            yield self._swept(scale, temperature, some, part.stop - part.start, steps=steps)

    def _entries(self, fixed: Container[int]) -> tuple[int, int, int]:
        """Return the entries of the largest table, of all tables, and of those that marginals remember."""
        if not fixed:
            return self.largest, self.work, self.remembered
        largest = work = remembered = 0
        for variable in self.order:
            if variable not in fixed:
                size = self.sizes[variable]
                entries = math.prod([self.sizes[v] for v in self.scopes[variable] if v not in fixed])
                largest = max(largest, entries * size)
                work += entries * size
                remembered += entries * (1 if size == 2 else size)
        return largest, work, remembered

    def _swept(
        self, scale: int, temperature: float, evidence: Mapping[int, Array], rows: int, *, steps: bool
    ) -> _Swept:
        plain, logs, _ = self._weights(scale, temperature)
        fixed = _fixed(evidence)
        try:
            return self._plain(plain, evidence, fixed, rows, steps=steps)
        except _OutOfRange:
            with np.errstate(divide="ignore"):
                seen = {variable: np.log(table) for variable, table in evidence.items()}
            return self._in_logs(logs, seen, fixed, rows, steps=steps)

    def _plain(
        self,
        held: Sequence[_Held],
        evidence: Mapping[int, Array],
        fixed: dict[int, Ints],
        rows: int,
        *,
        steps: bool,
    ) -> _Swept:
        """Sweep in plain floating point."""
        if any(table.low <= -_SAFE for table in held):
            raise _OutOfRange
        found: list[_Summed] = []
        logs = np.zeros(rows)
        for table, summed in self._messages(held, evidence, fixed, add=np.add, scaled=logs):
            if steps and table.scope:
                part = table.values[1:] if len(table.values) == 2 else table.values
                chance = part / np.maximum(summed, _LEAST)  # 0 of nothing
                found.append(_Summed(table.scope[0], table.scope[1:], chance))
            if summed.ndim == 1:
                with np.errstate(divide="ignore"):
                    logs += np.log(summed)
        return _Swept(logs, found, fixed)

    def _in_logs(
        self,
        held: Sequence[_Held],
        evidence: Mapping[int, Array],
        fixed: dict[int, Ints],
        rows: int,
        *,
        steps: bool,
    ) -> _Swept:
        """Sweep in logarithms."""
        found: list[_Summed] = []
        logs = np.zeros(rows)
        sums = self._messages(held, evidence, fixed, add=np.logaddexp, times=np.add)
        for table, summed in sums:
            if steps and table.scope:
                part = table.values[1:] if len(table.values) == 2 else table.values
                chance = np.exp(part - np.maximum(summed, -_MOST))  # 0 of nothing
                found.append(_Summed(table.scope[0], table.scope[1:], chance))
            if summed.ndim == 1:
                logs += summed
        return _Swept(logs, found, fixed)

    def _messages(
        self,
        held: Sequence[_Held],
        evidence: Mapping[int, Array],
        fixed: Mapping[int, Ints],
        *,
        add: np.ufunc,
        times: np.ufunc = np.multiply,
        scaled: Floats | None = None,
        kind: type = np.float64,
    ) -> Iterator[tuple[_Held, Array]]:
        """Yield, for each variable in turn, the product of its tables, and that with the variable summed out.

        Variables that are ``fixed`` are no axes of any table; what is left of tables of these alone is
        yielded first, with an empty scope. Truth values become numbers of a ``kind`` as they are met.

        ``scaled``: sums near the end of the range go on as messages that are scaled to 1 at most, and the
        logarithms of what they are divided by are added here.
        """
        buckets: dict[int, list[_Held]] = {variable: [] for variable in self.order}
        one = 1 if times is np.multiply else 0
        for table in held:
            if not fixed.keys().isdisjoint(table.scope):
                table = _cut(table, fixed)  # noqa: PLW2901 - what is left of it
                if not table.scope:
                    values = _numbers(table.values, times, kind)
                    if (values != one).any():
                        yield table, values
                    continue
            buckets[table.scope[0]].append(table)
        for variable, seen in evidence.items():
            if variable in fixed:
                weight = seen.max(axis=0)
                if (weight != one).any():
                    yield _Held((), weight), weight
                continue
            low, high = (0.0, 0.0) if scaled is None else _bounds(seen)
            buckets[variable].append(_Held((variable,), seen, low, high))
        for variable in self.order:
            if variable in fixed:
                continue
            self.budget.tick()
            met = buckets.pop(variable)
            low, high = sum(table.low for table in met), sum(table.high for table in met)
            if scaled is not None and (low <= -_SAFE or high >= _SAFE):
                raise _OutOfRange
            others = self.scopes[variable]
            if fixed:
                others = tuple([v for v in others if v not in fixed])
            table = self._product((variable, *others), met, times, kind)
            values = table.values
            halves = len(values) == 2  # added as two, which is faster
            summed: Array = add(values[0], values[1]) if halves else add.reduce(values, axis=0)
            yield table, summed
            if summed.ndim == 1:
                continue
            high += math.log(len(values))
            if scaled is not None and (low <= -_NEAR or high >= _NEAR):
                top = summed.max(axis=tuple(range(summed.ndim - 1)))
                with np.errstate(divide="ignore"):
                    scaled += np.log(top)
                top[top == 0] = 1.0
                summed = summed / top
                low, high = _bounds(summed)
            buckets[table.scope[1]].append(_Held(table.scope[1:], summed, low, high))

    def _product(
        self, scope: tuple[int, ...], tables: list[_Held], times: np.ufunc, kind: type = np.float64
    ) -> _Held:
        """Return the product of the tables of a variable, over it and the scope of its message."""
        sizes = self.sizes
        # Small ones first, so that most products are small.
        tables.sort(key=lambda table: table.values.size)
        found: Array | None = None
        for table in tables:
            values = table.values
            if len(table.scope) < len(scope):
                mine = [sizes[v] if v in table.scope else 1 for v in scope]
                values = values.reshape(*mine, values.shape[-1])
            if times is np.add:
                values = _numbers(values, times)
            found = values if found is None else times(found, values)
        if found is not None:
            found = _numbers(found, times, kind)
        whole = tuple([sizes[v] for v in scope])
        if found is None:
            found = np.full((*whole, 1), 1.0 if times is np.multiply else 0.0)
        elif found.shape[:-1] != whole:
            found = np.broadcast_to(found, (*whole, found.shape[-1]))
        return _Held(scope, found)

    def _chances(self, swept: _Swept) -> Floats:
        """Return P(atom) for each row: from the last variable back, P(v, scope) = P(v | scope)·P(scope)."""
        rows = len(swept.logs)
        sizes = self.sizes
        each: dict[int, Floats] = {
            variable: (np.arange(sizes[variable])[:, None] == value).astype(float)
            for variable, value in swept.fixed.items()
        }
        # Among the tables already made, the one of the neighbour that goes next holds the whole scope.
        joint: dict[int, tuple[tuple[int, ...], Floats]] = {}
        waiting = Counter(step.scope[0] for step in swept.steps if step.scope)
        for step in reversed(swept.steps):
            self.budget.tick()
            given = np.ones(1)
            if step.scope:
                scope, table = joint[step.scope[0]]
                given = _sum_over(table, [i for i, v in enumerate(scope) if v not in step.scope])
                waiting[step.scope[0]] -= 1
                if not waiting[step.scope[0]]:
                    del joint[step.scope[0]]
            chance = step.chance
            if sizes[step.variable] == 2:
                part = np.empty((2, *np.broadcast_shapes(chance.shape[1:], given.shape)))
                np.multiply(chance[0], given, out=part[1])
                true = part[1].sum(axis=tuple(range(part.ndim - 2)))
                each[step.variable] = np.array([1.0 - true, true])
                if waiting[step.variable]:
                    np.subtract(given, part[1], out=part[0])
            else:
                part = chance * given
                each[step.variable] = part.sum(axis=tuple(range(1, part.ndim - 1)))
            if waiting[step.variable]:
                joint[step.variable] = (step.variable, *step.scope), part
        found = np.empty((rows, len(self.component.atoms)))
        for i, name in enumerate(self.component.atoms):
            variable, value = self.cells.place[name]
            found[:, i] = np.minimum(each[variable][value], 1.0)
        found[np.isneginf(swept.logs)] = np.nan
        return found


def _fixed(evidence: Mapping[int, Array]) -> dict[int, Ints]:
    """Return the variables of which every row leaves one value at most, with that value."""
    return {
        variable: table.argmax(axis=0)
        for variable, table in evidence.items()
        # Most are told by their first row.
        if np.count_nonzero(table[:, 0]) <= 1 and (np.count_nonzero(table, axis=0) <= 1).all()
    }


def _spread(evidence: Mapping[int, Array]) -> dict[int, Array]:
    """Return evidence with as many rows for each variable as for that with most."""
    rows = max((table.shape[1] for table in evidence.values()), default=1)
    return {
        variable: table if table.shape[1] == rows else np.repeat(table, rows, axis=1)
        for variable, table in evidence.items()
    }


def _cut(table: _Held, fixed: Mapping[int, Ints]) -> _Held:
    """Return what is left of a table, the same for all rows, where variables have these values."""
    gone = [i for i, variable in enumerate(table.scope) if variable in fixed]
    left = [i for i, variable in enumerate(table.scope) if variable not in fixed]
    values = table.values[..., 0].transpose(*gone, *left)[tuple([fixed[table.scope[i]] for i in gone])]
    scope = tuple([table.scope[i] for i in left])
    return _Held(scope, np.ascontiguousarray(np.moveaxis(values, 0, -1)), table.low, table.high)


def _numbers(table: Array, times: np.ufunc, kind: type = np.float64) -> Array:
    """Return truth values as numbers to be multiplied, or as logarithms to be added."""
    if table.dtype != bool:
        return table
    return table.astype(kind) if times is np.multiply else np.where(table, 0.0, -np.inf)


def _exp(logs: _Held) -> _Held:
    return _Held(logs.scope, np.exp(logs.values), logs.low)


def _rows_last(table: Array) -> Array:
    """Return a table whose first axis is that of rows with that axis behind all others."""
    return np.moveaxis(table, 0, -1)


def _bounds(values: Array) -> tuple[float, float]:
    """Return bounds of the logarithms of the entries that are not 0, which hold 0 as well."""
    least = float(np.min(values, where=values > 0, initial=1.0))
    return math.log(least), math.log(max(1.0, float(values.max())))


def _ordered(component: Component, budget: Budget) -> tuple[Cells, tuple[int, ...]]:
    """Return the cells of a component and an order of elimination, with definitions if that is less work."""
    plain: Cells | None = None
    with suppress(TooManyWorlds):  # with definitions there may be an answer
        plain = cells_of(component, budget)
    if plain is None:
        cells = cells_of(component, budget, define=True)
        return cells, _order(cells, _first_order(cells, budget), budget).variables
    found = _first_order(plain, budget)
    # The entries of one table each, as in networks, are no parts of formulae that could be taken apart.
    wide = any(cell.entries > max(NARROW, 2 * cell.formulae) for cell in plain.cells)
    if wide and found.cost > _DEFINED:
        with suppress(TooManyWorlds):
            cells = cells_of(component, budget, define=True)
            other = _first_order(cells, budget)
            if other.cost < found.cost:
                return cells, _order(cells, other, budget).variables
    return plain, _order(plain, found, budget).variables


def _first_order(cells: Cells, budget: Budget) -> EliminationOrder:
    """Return a good order of elimination, quickly found."""
    scopes, sizes = _shape(cells)
    return elimination_order(scopes, sizes, budget=budget)


def _order(cells: Cells, first: EliminationOrder, budget: Budget) -> EliminationOrder:
    """Return the best of several orders where that may save work."""
    scopes, sizes = _shape(cells)
    if first.cost <= _EASY + math.log2(len(sizes) + 1):
        return first
    found = elimination_order(scopes, sizes, rounds=_ROUNDS, steps=_STEPS, budget=budget)
    return banded_order(scopes, sizes, most=found.cost, budget=budget) or found


def _shape(cells: Cells) -> tuple[list[tuple[int, ...]], list[float]]:
    """Return the scopes of cells, and how large their variables are as powers of 2."""
    return [cell.scope for cell in cells.cells], [math.log2(size) for size in cells.sizes]


def _sum_over(table: NDArray[Any], axes: Sequence[int]) -> NDArray[Any]:
    """Return a table summed over some axes; axes of two values are added as halves, which is faster."""
    for axis in sorted(axes, reverse=True):
        if table.shape[axis] == 2:
            before: tuple[Any, ...] = (slice(None),) * axis
            table = table[(*before, 0)] + table[(*before, 1)]
        else:
            table = table.sum(axis=axis)
    return table
