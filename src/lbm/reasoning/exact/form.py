"""A theory in compiled form (knowledge compilation): its components made ready once.

Rows of evidence say what was seen of atoms: false, true, nothing, or a probability. That is soft evidence
(virtual evidence, Pearl): worlds in which the atom is true are multiplied by p, the others by 1 - p. Of the
atoms of a group, of which exactly one is true, the true one counts alone, if something was seen of it.
Evidence, temperature and soft weights are numbers that enter a pass; none makes anything be compiled again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from lbm.arrays import Floats
from lbm.errors import NoAnswer, TooManyWorlds
from lbm.reasoning.answers import Result
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, Split, exponent
from lbm.reasoning.exact.circuits import ByCircuit
from lbm.reasoning.exact.tables import Tables
from lbm.reasoning.exact.variables import groups_of
from lbm.reasoning.exact.whole import circuit_of, compiled, tables_of
from lbm.reasoning.problem import Known

SHOWN: Final = 20
"""Components that a plan prints."""

MODEST: Final = 1 << 13
"""Entries of all tables of a component up to which no circuit is tried."""

_PATIENCE: Final = 1.0  # seconds for a circuit where there are tables
_EDGE: Final = 4  # entries of tables that take as long as an edge of a circuit
_UNSEEN: Final = 1024  # components whose marginals without evidence are kept
_TABLES: Final = 1.0  # seconds for how large tables would be, where there is a circuit


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """What was seen of atoms, a row each time: 0, 1, a probability, or nan for nothing.

    ``values`` has shape (rows, names).
    """

    names: tuple[str, ...]
    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    def weights(self, groups: Sequence[Sequence[str]]) -> dict[str, Floats]:
        """Return what worlds are multiplied by where an atom is false and true, shape (rows, 2) for each.

        In a group: p where an atom that something was seen of is true, and else (1 - p)·(1 - p')··· of all
        that something was seen of. An atom seen true, p = 1, leaves nothing to the others.
        """
        place = {name: i for i, name in enumerate(self.names)}
        found: dict[str, Floats] = {}
        for group in groups:
            if not any(name in place for name in group):
                continue
            nothing = np.full(len(self), np.nan)
            seen = np.stack([self.values[:, place[n]] if n in place else nothing for n in group])
            known = ~np.isnan(seen)
            others = np.prod(np.where(known, 1.0 - seen, 1.0), axis=0)
            true = np.where(known, seen, others)
            sure = seen == 1.0
            true[sure.sum(axis=0) > sure] = 0.0  # where another is sure
            for i, name in enumerate(group):
                found[name] = np.stack([np.ones(len(self)), true[i]]).T
        alone = [i for name, i in place.items() if name not in found]
        pairs = np.empty((2, len(alone), len(self)))  # rows last, as passes have them
        pairs[1] = self.values[:, alone].T
        np.subtract(1.0, pairs[1], out=pairs[0])
        pairs[np.isnan(pairs)] = 1.0
        for k, i in enumerate(alone):
            found[self.names[i]] = pairs[:, k].T
        return found


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """How a component is answered: ``method`` is ``tables`` or ``circuit``.

    ``predicted`` are the entries of all tables together, known before any is made, None: past their limit;
    ``size`` what was made: these entries, or the edges of the circuit, and ``largest`` those of one table.
    """

    method: str
    atoms: int
    predicted: int | None
    size: int
    largest: int | None

    def line(self) -> str:
        """Return it as a line of text."""
        if self.method == "tables":
            return f"{self.atoms} atoms by tables: {self.size:,} entries, {self.largest:,} in the largest"
        tables = "more than their limit" if self.predicted is None else f"{self.predicted:,} entries"
        return f"{self.atoms} atoms by a circuit: {self.size:,} edges; tables would have {tables}"


@dataclass(frozen=True, slots=True, repr=False)
class FormPlan(Result):
    """How a theory is answered exactly: atoms that units settle, that are free, and each component."""

    fixed: int
    free: int
    parts: tuple[PlannedPart, ...]

    def lines(self) -> list[str]:
        """Return it as lines of text, large components first."""
        number = len(self.parts)
        components = "1 component" if number == 1 else f"{number} components"
        first = f"{self.fixed} atoms fixed, {self.free} free, {components}"
        return [first, *(part.line() for part in sorted(self.parts, key=lambda part: -part.size)[:SHOWN])]

    def facts(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {"fixed": self.fixed, "free": self.free, "components": [asdict(part) for part in self.parts]}


class CompiledForm:
    """A theory, taken apart, its components ready for passes.

    ``groups`` are those of the whole theory. Components that are ready in ``like`` are not made ready again.
    """

    def __init__(
        self,
        split: Split,
        budget: Budget,
        groups: Sequence[Sequence[str]] | None = None,
        like: CompiledForm | None = None,
    ) -> None:
        self.split = split
        known = {} if like is None else dict(zip(like.split.components, like.parts, strict=True))
        self.parts: list[Tables | ByCircuit] = [
            known[component] if component in known else ready(component, budget)
            for component in split.components
        ]
        if groups is None:
            groups = [group for component in split.components for group in groups_of(component)]
        self.groups = groups
        self._unseen = Known(_UNSEEN)  # marginals, by component of which nothing was seen

    @property
    def plan(self) -> FormPlan:
        """What was chosen for each component, how much work that was said to be, and its true size."""
        planned = []
        for component, part in zip(self.split.components, self.parts, strict=True):
            atoms = len(component.atoms)
            if isinstance(part, Tables):
                planned.append(PlannedPart("tables", atoms, part.work, part.work, part.largest))
                continue
            tables: int | None = None
            with suppress(TooManyWorlds, NoAnswer):
                tables = tables_of(component, part.budget.at_most(_TABLES)).work
            planned.append(PlannedPart("circuit", atoms, tables, part.edges, None))
        return FormPlan(len(self.split.fixed), len(self.split.free), tuple(planned))

    def within(self, budget: Budget) -> CompiledForm:
        """Return the same, for questions that have this much time."""
        found = copy(self)
        found.parts = [part.within(budget) for part in self.parts]
        return found

    def log_sums(self, rows: EvidenceRows, temperature: float = 1.0) -> Floats:
        """Return log Z of each row, Z = Σ (weight of what was seen)·exp(score(x)/τ); -inf: no world."""
        weights = rows.weights(self.groups)
        score, logs = self._outside(weights, len(rows))
        for component, part in zip(self.split.components, self.parts, strict=True):
            offset, more = part.log_sums(self.split.scale, temperature, _some(weights, component))
            score += offset
            logs = logs + more
        return logs + exponent(score, self.split.scale, temperature)

    def marginals(self, rows: EvidenceRows, temperature: float = 1.0) -> tuple[Floats, Floats]:
        """Return log Z of each row, and P(atom | row), shape (rows, atoms); nan where no world is left."""
        weights = rows.weights(self.groups)
        score, logs = self._outside(weights, len(rows))
        place = {name: i for i, name in enumerate(self.split.atoms)}
        table = np.empty((len(rows), len(place)))
        for name, value in self.split.fixed.items():
            table[:, place[name]] = value
        for name in self.split.free:
            table[:, place[name]] = 0.5
            if name in weights:
                with np.errstate(invalid="ignore"):
                    table[:, place[name]] = weights[name][:, 1] / weights[name].sum(axis=1)
        for number, (component, part) in enumerate(zip(self.split.components, self.parts, strict=True)):
            some = _some(weights, component)
            every = partial(part.all_marginals, self.split.scale, temperature, some)
            offset, more, found = every() if some else self._unseen.get((number, temperature), every)
            score += offset
            logs = logs + more
            table[:, [place[name] for name in component.atoms]] = found
        logs = logs + exponent(score, self.split.scale, temperature)
        table[np.isneginf(logs)] = np.nan
        return logs, table

    def _outside(self, weights: Mapping[str, Floats], rows: int) -> tuple[int, Floats]:
        """Return what settled formulae score, and log Z of the atoms outside all components."""
        logs = np.zeros(rows)
        with np.errstate(divide="ignore"):
            for name, value in self.split.fixed.items():
                if name in weights:
                    logs = logs + np.log(weights[name][:, int(value)])
            for name in self.split.free:
                logs = logs + (np.log(weights[name].sum(axis=1)) if name in weights else math.log(2))
        return self.split.score, logs


def ready(component: Component, budget: Budget) -> Tables | ByCircuit:
    """Return what answers many questions about a component in passes: what one pass is least work of.

    What takes a moment longer to make is worth it here, unlike for one question.
    """
    found = compiled(component, None, budget)
    if isinstance(found, Tables) and found.work > MODEST:
        with suppress(TooManyWorlds, NoAnswer):
            circuit = circuit_of(component, None, budget.at_most(_PATIENCE))
            if _EDGE * circuit.edges < found.work:
                return circuit.within(budget)
        budget.tick()
    return found


def _some(weights: Mapping[str, Floats], component: Component) -> dict[str, Floats]:
    return {name: weights[name] for name in component.atoms if name in weights}
