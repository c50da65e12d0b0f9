"""Probabilities given rows of evidence: a theory is compiled once, and then asked with any rows.

P(query | row) = Z(query and row)/Z(row), by two compiled forms: of the theory, and of the theory in which the
query is true. Components that the query does not touch are the same in both, and cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.errors import NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge.formula import TRUE, Formula
from lbm.knowledge.theory import Theory
from lbm.logic.anatomy import view
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, Split, assume, exponent, split_of
from lbm.reasoning.exact.circuits import ByCircuit
from lbm.reasoning.exact.evidence import as_formula, groups_said
from lbm.reasoning.exact.form import CompiledForm, EvidenceRows, FormPlan
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.tables import Tables
from lbm.reasoning.exact.trees import observed
from lbm.reasoning.exact.whole import FAR, How
from lbm.reasoning.problem import Known
from lbm.reasoning.proof import no_worlds

QUERIES: Final = 32
"""Queries of one theory whose compiled forms are kept."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)  # its powers mix the cells of a row into one number
_OFTEN: Final = 2  # times that marginals given literals are asked for until a form is made ready for them
_CELLS: Final = 1 << 20  # of evidence that are worked on together
_SURE: Final = 1.0 - 1e-9  # shares past which the negation of a query says more


class ByRow:
    """A theory, asked with rows of evidence: compiled once; ``known`` is shared with its other questions."""

    def __init__(self, theory: Theory, known: Known) -> None:
        self.theory, self.known = theory, known
        self._ready = Known(1)
        self._queries = Known(QUERIES)
        self._asked = 0  # marginals given literals
        self._late: dict[Formula | None, float] = {}  # seconds in which one was not compiled
        self._alone = Known(4096)  # sums of components without evidence

    def probability(
        self, query: Formula, rows: EvidenceRows, temperature: float, budget: Budget
    ) -> tuple[Floats, Bools]:
        """Return P(query | row) of each row, nan where it is impossible, and which rows are possible."""
        found = np.empty(len(rows))
        try:
            whole = self._whole(temperature, budget)
            for place, some, which in _in_parts(rows):
                budget.tick()
                found[place] = self._shares(whole, query, some, temperature, budget)[which]
        except (TooManyWorlds, NoAnswer) as error:
            budget.tick()
            exact = Exact(self.theory, How(known=self.known, budget=budget), temperature)
            for i, given in self._singly(rows, error):
                found[i] = _or_nan(lambda: exact.probability(query, given))  # noqa: B023 - called at once
        return found, self._possible(found, temperature, budget)

    def marginals(self, rows: EvidenceRows, temperature: float, budget: Budget) -> tuple[Floats, Bools]:
        """Return P(atom | row), shape (rows, atoms), nan in rows that are impossible, and which are not."""
        found = np.empty((len(rows), len(self.theory.atoms)))
        try:
            whole = self._whole(temperature, budget)
            for place, some, which in _in_parts(rows):
                budget.tick()
                found[place] = whole.marginals(some, temperature)[1][which]
        except (TooManyWorlds, NoAnswer) as error:
            budget.tick()
            exact = Exact(self.theory, How(known=self.known, budget=budget), temperature)
            for i, given in self._singly(rows, error):
                found[i] = _or_nan(lambda: [*exact.marginals(given).values()])  # noqa: B023 - called at once
        each = found[:, 0] if found.shape[1] else np.ones(len(rows))
        return found, self._possible(each, temperature, budget)

    def again(self, given: Formula | None, temperature: float, budget: Budget) -> dict[str, float] | None:
        """Return the marginals given literals, from the second time on that they are asked for.

        None: it is the first, where making a form ready is more work than the answer; or the evidence is
        something else or impossible, or the form is too large.
        """
        literals, rest = observed(given)
        if rest or not literals:
            return None
        self._asked += 1
        if self._asked < _OFTEN:
            return None
        row = EvidenceRows(tuple(literals), np.array([[*map(float, literals.values())]]))
        with suppress(TooManyWorlds, NoAnswer):
            found = self._whole(temperature, budget).marginals(row, temperature)[1][0]
            if not np.isnan(found).any():
                return dict(zip(self.theory.atoms, found.tolist(), strict=True))
        return None

    def pairs(
        self, names: tuple[str, ...], row: EvidenceRows | None, temperature: float, budget: Budget
    ) -> Floats | None:
        """Return P(a and b | row) = P(a | row)·P(b | row and a), shape (names, names); None: no world.

        There is a row for each a, in which it is true.
        """
        said = () if row is None else row.names
        columns = tuple(dict.fromkeys([*said, *names]))
        values = np.full((len(names) + 1, len(columns)), np.nan)
        if row is not None:
            values[:, : len(said)] = row.values
        for i, name in enumerate(names, start=1):
            values[i, columns.index(name)] = 1.0
        found, possible = self.marginals(EvidenceRows(columns, values), temperature, budget)
        if not possible[0]:
            return None
        place = {name: i for i, name in enumerate(self.theory.atoms)}
        found = found[:, [place[name] for name in names]]
        return np.asarray(found[0][:, None] * np.nan_to_num(found[1:]), np.float64)

    def plan(self, budget: Budget) -> FormPlan:
        """Return how the theory is answered."""
        return self._whole(1.0, budget, weighing=False).plan

    # -- compiled forms --

    def _whole(self, temperature: float, budget: Budget, *, weighing: bool = True) -> CompiledForm:
        """Return the theory, compiled once."""

        def make(part: Budget) -> CompiledForm:
            split = split_of(self.theory, None, self.known, part)
            if split is None:
                raise no_worlds(self.theory, None, part)
            return CompiledForm(split, part, groups_said(self.theory))

        whole: CompiledForm = self._kept(self._ready, None, make, budget).within(budget)
        weight = max(
            (sum(abs(weight) for _, weight in part.soft) for part in whole.split.components), default=0
        )
        if weighing and not exponent(weight, whole.split.scale, temperature) < FAR:
            raise TooManyWorlds(
                f"weights whose sum over the temperature is past {FAR:g} (limit FAR) are summed up row by "
                "row, for hard evidence only: raise the temperature, or give cells of 0, 1 and nothing",
                FAR=int(FAR),
            )
        return whole

    def _with(self, query: Formula, whole: CompiledForm, budget: Budget) -> CompiledForm | None:
        """Return the theory in which a query is true, compiled once; None: it is refuted."""

        def make(part: Budget) -> CompiledForm | None:
            split = assume(whole.split, query, part)
            return None if split is None else CompiledForm(split, part, whole.groups, like=whole)

        found: CompiledForm | None = self._kept(self._queries, query, make, budget)
        return None if found is None else found.within(budget)

    def _kept(self, known: Known, key: Formula | None, make: Callable[[Budget], Any], budget: Budget) -> Any:
        """Return what is known or made in half of the time; that it is too large is known then, too."""
        part = budget.half()
        seconds = part.left()
        if seconds < 2 * self._late.get(key, 0.0):  # tried for about as long
            raise NoAnswer("the theory was not compiled in time: allow more seconds")

        def tried() -> Any:
            try:
                return make(part)
            except TooManyWorlds as error:
                return error

        try:
            found = known.get(key, tried)
        except NoAnswer:
            if len(self._late) > QUERIES:
                self._late.clear()
            self._late[key] = seconds
            raise
        if isinstance(found, TooManyWorlds):
            raise found.with_traceback(None)
        return found

    # -- one part of the rows --

    def _shares(
        self, whole: CompiledForm, query: Formula, rows: EvidenceRows, temperature: float, budget: Budget
    ) -> Floats:
        """Return P(query | row), nan for rows that are impossible; as ``whole.either_way`` has it for one."""

        def alone(component: Component, part: Tables | ByCircuit) -> tuple[int, Floats]:
            key, scale = (component, temperature), whole.split.scale
            found: tuple[int, Floats] = self._alone.get(key, lambda: part.log_sums(scale, temperature, {}))
            return found

        sums = _Sums(whole, rows, temperature, alone)
        try:
            found = sums.share(self._with(query, whole, budget))
        except TooManyWorlds:
            # The negation of a disjunction falls apart into components that the disjunction joins.
            if view(query).op != "or":
                raise
            return 1.0 - sums.share(self._with(~query, whole, budget))
        sure = found > _SURE
        if sure.any():  # nearer the truth, and exactly 1 where the query is entailed
            try:
                other = sums.share(self._with(~query, whole, budget))
            except (TooManyWorlds, NoAnswer):
                budget.tick()
                return found
            found[sure] = 1.0 - other[sure]
        return found

    # -- rows that are impossible, or go one by one --

    def _possible(self, found: Floats, temperature: float, budget: Budget) -> Bools:
        """Return which rows are possible; raise NoWorlds where the theory itself is not."""
        possible = ~np.isnan(found)
        if len(found) and not possible.any():
            with suppress(TooManyWorlds):
                Exact(self.theory, How(known=self.known, budget=budget), temperature).probability(TRUE)
        return possible

    def _singly(self, rows: EvidenceRows, error: Exception) -> Iterator[tuple[int, Formula | None]]:
        """Yield each row as evidence for a question of its own; raise the error where evidence is soft."""
        if ((rows.values > 0) & (rows.values < 1)).any():
            raise error
        for i, row in enumerate(rows.values):
            yield i, as_formula(rows.names, row.tolist())


class _Sums:
    """Sums over the worlds of some rows: of a whole theory, and of it with a query."""

    def __init__(
        self,
        whole: CompiledForm,
        rows: EvidenceRows,
        temperature: float,
        alone: Callable[[Component, Tables | ByCircuit], tuple[int, Floats]],
    ) -> None:
        self.split, self.temperature, self.alone = whole.split, temperature, alone
        self.number = len(rows)
        self.weights = rows.weights(whole.groups)
        self.sums = self._summed(whole, ())
        self.possible = np.ones(self.number, bool)
        for _, logs in self.sums.values():
            self.possible &= logs > -math.inf
        for name in self.weights:
            if name in self.split.fixed or name in self.split.free:
                self.possible &= self._outside(name, self.split) > -math.inf

    def share(self, other: CompiledForm | None) -> Floats:
        """Return Z(query and row)/Z(row), nan where the row is impossible; ``other``: with the query."""
        found = np.full(self.number, np.nan)
        if other is None:
            found[self.possible] = 0.0
            return found
        before, after = self.split, other.split
        score, logs = after.score - before.score, np.zeros(self.number)
        with np.errstate(invalid="ignore"):  # in rows that are impossible
            for offset, more in self._summed(other, self.sums).values():
                score += offset
                logs = logs + more
            for component in self.sums.keys() - set(after.components):
                offset, less = self.sums[component]
                score -= offset
                logs = logs - less
            outside = {*before.fixed, *before.free}
            free = set(after.free)
            for name in before.free:
                if name not in free:
                    logs = logs - self._outside(name, before)
            for name in (*after.fixed, *after.free):
                if name not in outside or (name in after.fixed and name not in before.fixed):
                    logs = logs + self._outside(name, after)
        logs = logs[self.possible] + exponent(score, before.scale, self.temperature)
        found[self.possible] = np.exp(np.minimum(logs, 0.0))
        return found

    def _summed(
        self, compiled: CompiledForm, known: Collection[Component]
    ) -> dict[Component, tuple[int, Floats]]:
        """Return the sums of the components of a compiled form that are not known."""
        found = {}
        for component, part in zip(compiled.split.components, compiled.parts, strict=True):
            if component in known:
                continue
            weights = {name: self.weights[name] for name in component.atoms if name in self.weights}
            found[component] = (
                part.log_sums(self.split.scale, self.temperature, weights)
                if weights
                else self.alone(component, part)
            )
        return found

    def _outside(self, name: str, split: Split) -> Floats | float:
        """Return the logarithm of the sum over an atom outside all components."""
        value, weights = split.fixed.get(name), self.weights.get(name)
        if weights is None:
            return math.log(2) if value is None else 0.0
        with np.errstate(divide="ignore"):
            found: Floats = np.log(weights.sum(axis=1) if value is None else weights[:, int(value)])
        return found


def _in_parts(rows: EvidenceRows) -> Iterator[tuple[slice, EvidenceRows, Ints]]:
    """Yield places of rows with the different rows there, and which of these stands at each place.

    Atoms of which none of them says anything are left out.
    """
    for place in slices(len(rows), max(1, _CELLS // max(1, len(rows.names)))):
        values = rows.values[place]
        said = np.flatnonzero(~np.isnan(values).all(axis=0))
        values = np.ascontiguousarray(values[:, said])
        which, first = _alike(values)
        yield place, EvidenceRows(tuple([rows.names[i] for i in said.tolist()]), values[first]), which


def _alike(values: Floats) -> tuple[Ints, Ints]:
    """Return the number of each row among the different ones, and where each of these is first."""
    bits = values.view(np.uint64)
    low = bits + (bits >> np.uint64(48))  # the numbers that most cells are have none but their highest bits
    keys = (low * _ODD ** np.arange(1, bits.shape[1] + 1, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which] != np.arange(len(values)))
    if (bits[first[which[again]]] != bits[again]).any():  # two rows of one key
        _, first, which = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    return which, first


def _or_nan(ask: Callable[[], Any]) -> Any:
    """Return what a question about one row finds; nan, if the row is impossible."""
    try:
        return ask()
    except NoWorlds as error:
        if error.evidence is None:
            raise
        return math.nan
