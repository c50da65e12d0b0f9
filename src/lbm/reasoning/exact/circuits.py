"""A component as a circuit: its clauses compiled once, and a pass over the circuit for each question.

Soft formulae get a variable each (Tseitin), a function of the atoms, whose weight is theirs: so they, too,
are numbers that enter a pass. The circuit is the strict DNF of the component, factorised: parts that cubes
have in common are shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import Formula
from lbm.knowledge.weighted import check_cells
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, exponent
from lbm.reasoning.exact.compile import compile_clauses
from lbm.reasoning.exact.passes import Passes
from lbm.reasoning.exact.rows import Words, check_room, few, sort_rows, words_for
from lbm.reasoning.exact.tables import Weights

LISTED: Final = 4096
"""Models up to which a circuit lists them."""

_FLOAT: Final = 600.0  # exponents whose exponentials floats hold
_LOOK: Final = 256  # formulae between two looks at the clock


class ByCircuit:
    """A component by a circuit; with ``keep``, by one of the restrictions of its models to those atoms."""

    def __init__(self, component: Component, keep: frozenset[str] | None, budget: Budget) -> None:
        self.component, self.budget = component, budget
        names = component.atoms
        self.names = names if keep is None else tuple(name for name in names if name in keep)
        rows, free, self.roots = _clauses(component, budget)
        shown = (
            None
            if len(self.names) == len(names)
            else [i for i, n in enumerate(names, 1) if n in set(self.names)]
        )
        assert shown is None or not component.soft, "restrictions are counted without soft formulae"
        self.passes = Passes(compile_clauses(rows, free - 1, shown=shown, budget=budget))

    def within(self, budget: Budget) -> ByCircuit:
        """Return the same circuit, for questions that have this much time."""
        found = copy(self)
        found.budget = budget
        return found

    @property
    def edges(self) -> int:
        """How much work one pass is."""
        return self.passes.circuit.edges

    def count(
        self,
        keep: frozenset[str] | None = None,  # noqa: ARG002 - settled when it was made
        weights: Mapping[str, tuple[int, int]] | None = None,
    ) -> int:
        """Return the number of models, or the sum of products of whole weights of their literals.

        ``weights``: what a model is multiplied by where an atom is false, and where it is true.
        """
        assert not self.component.soft, "models are counted without soft formulae"
        given = None
        if weights:
            given = [weights.get(name, (1, 1)) for name in self.names]
            given += [(1, 1)] * (self.passes.circuit.variables - len(given))
        return self.passes.count(given, budget=self.budget)

    def worlds(
        self,
        limit: int | None = None,
        keep: frozenset[str] | None = None,  # noqa: ARG002 - settled when it was made
    ) -> Words | None:
        """Return the first ``limit`` models, or restrictions, sorted; None: there are far more."""
        found = self.passes.models(LISTED, budget=self.budget)
        return None if found is None else sort_rows(self._packed(found))[:limit]

    def mass(self, scale: int, temperature: float) -> tuple[int, float] | None:
        """Return (best, log) with Z = exp(best/scale/τ + log); None: there is no model."""
        offset, logs = self.log_sums(scale, temperature, {})
        return None if logs[0] == -math.inf else (offset, float(logs[0]))

    def log_sums(self, scale: int, temperature: float, weights: Weights) -> tuple[int, Floats]:
        """Return (offset, logs) with Z = exp(offset/scale/τ + log) for each row; -inf: no world is left."""
        given, logs = self._given(scale, temperature, weights)
        return 0, self.passes.log_sum(given, logs=logs, budget=self.budget)

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return the probability of each atom; None: there is no model."""
        _, logs, chances = self.all_marginals(scale, temperature, {})
        return None if logs[0] == -math.inf else chances[0].tolist()

    def all_marginals(self, scale: int, temperature: float, weights: Weights) -> tuple[int, Floats, Floats]:
        """Return what :meth:`log_sums` does, and P(atom) of each row, shape (rows, atoms); nan: no world."""
        given, logs = self._given(scale, temperature, weights)
        sums, chances = self.passes.marginals(given, logs=logs, budget=self.budget)
        return 0, sums, np.minimum(chances[:, : len(self.component.atoms)], 1.0)

    def draw(self, n: int, rng: np.random.Generator, scale: int, temperature: float) -> Words | None:
        """Return ``n`` independent draws as rows."""
        given, logs = self._given(scale, temperature, {})
        if self.passes.log_sum(given, logs=logs, budget=self.budget)[0] == -math.inf:
            return None
        return self._packed(self.passes.draw(n, rng, given[0], logs=logs, budget=self.budget))

    def best(self, limit: int | None) -> tuple[int, int, Words] | None:
        """Return the best score, how many models have it, and some of them; None: there is no model."""
        scores = self._scores()
        peak = self.passes.best(scores, budget=self.budget)
        if peak is None:
            return None
        number = peak.ties if limit is None or few(peak.ties, limit) else limit
        check_room(number, len(self.component.atoms))
        worlds = (
            [(peak.score, peak.world)] if number == 1 else self.passes.top(scores, number, budget=self.budget)
        )
        return peak.score, peak.ties, self._rows(worlds)[:limit]

    def top(self, most: int) -> list[tuple[int, Words]]:
        """Return the best models with their scores, best first, ``most`` at most."""
        found = self.passes.top(self._scores(), most, budget=self.budget)
        return [(score, self._packed(np.array([world], bool))[0]) for score, world in found]

    # -- how --

    def _scores(self) -> list[tuple[int, int]]:
        """Return the scores of all literals, false and true."""
        scores = list(self._no_scores)
        for root, weight in self.roots.items():
            no, yes = scores[abs(root) - 1]
            scores[abs(root) - 1] = (no, yes + weight) if root > 0 else (no + weight, yes)
        return scores

    @cached_property
    def _no_scores(self) -> list[tuple[int, int]]:
        return [(0, 0)] * self.passes.circuit.variables

    def _given(self, scale: int, temperature: float, weights: Weights) -> tuple[Floats, bool]:
        """Return the weights of all literals, shape (rows, variables, 2), and whether they are logarithms."""
        rows = max((len(table) for table in weights.values()), default=1)
        earned = {root: exponent(weight, scale, temperature) for root, weight in self.roots.items()}
        logs = sum(map(abs, earned.values())) > _FLOAT
        given = (
            np.zeros((rows, self.passes.circuit.variables, 2))
            if logs
            else np.ones((rows, self.passes.circuit.variables, 2))
        )
        place = {name: i for i, name in enumerate(self.component.atoms)}
        for name, table in weights.items():
            with np.errstate(divide="ignore"):
                given[:, place[name]] = np.log(table) if logs else table
        for root, more in earned.items():
            side = abs(root) - 1, int(root > 0)
            if logs:
                given[:, *side] += more
            else:
                given[:, *side] *= math.exp(more)
        return given, logs

    def _rows(self, worlds: Iterable[tuple[int, tuple[bool, ...]]]) -> Words:
        """Return worlds as sorted rows."""
        return sort_rows(
            self._packed(
                np.array([world for _, world in worlds], bool).reshape(-1, self.passes.circuit.variables)
            )
        )

    def _packed(self, worlds: Bools) -> Words:
        """Return worlds over the variables of the circuit as rows of bits; what is not kept is false."""
        names = self.component.atoms
        place = {name: i for i, name in enumerate(self.names)}
        atoms = np.zeros((len(worlds), 64 * words_for(len(names))), bool)
        for i, name in enumerate(names):
            if name in place:
                atoms[:, i] = worlds[:, place[name]]
        return np.packbits(atoms, axis=1).view(">u8").astype(np.uint64)


def _clauses(component: Component, budget: Budget) -> tuple[list[list[int]], int, dict[int, int]]:
    """Return clauses over the atoms of a component, from 1, and definitions behind them.

    Also the first variable that is free, and literals that are true where soft formulae are, with weights.
    """
    place = {name: i for i, name in enumerate(component.atoms, start=1)}
    rows: list[list[int]] = []
    deep: list[tuple[Formula, int | None]] = []
    roots: dict[int, int] = {}
    free = len(place) + 1

    def numbered(literals: Iterable[tuple[str, bool]]) -> list[int]:
        return [place[name] if wanted else -place[name] for name, wanted in literals]

    for i, (formula, weight) in enumerate((*((f, None) for f in component.hard), *component.soft)):
        if not i % _LOOK:
            budget.tick()
        clause = as_clause(formula)
        sign = 1
        if clause is None and weight is not None:
            clause, sign = as_clause(~formula), -1
        if clause is None:
            deep.append((formula, weight))
        elif weight is None:
            rows.append(numbered(clause))
        else:
            literals = numbered(clause)
            root = literals[0]
            if len(literals) > 1:
                root, free = free, free + 1
                rows += [[-root, *literals], *([root, -literal] for literal in literals)]
            roots[sign * root] = roots.get(sign * root, 0) + weight
    if deep:
        formulae = [formula for formula, _ in deep]
        check_cells(*formulae)
        more, literals, free = definitional(formulae, place, free, budget.tick)
        rows += more
        for root, (_, weight) in zip(literals, deep, strict=True):
            if weight is None:
                rows.append([root])
            else:
                roots[root] = roots.get(root, 0) + weight
    return rows, free, roots
