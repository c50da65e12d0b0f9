"""A component as a circuit: its clauses compiled once, and a pass over the circuit for each question.

Soft formulae get a variable each (Tseitin), a function of the atoms, whose weight is theirs: so they, too,
are numbers that enter a pass. The circuit is the strict DNF of the component, factorised: parts that cubes
have in common are shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import TooManyWorlds
from lbm.knowledge.circuit_formulae import (
    circuit_of_formula,
    is_circuit_formula,
    looked_at,
    was_looked_at,
)
from lbm.knowledge.circuits import Builder, Circuit
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import Formula, iff, make
from lbm.knowledge.weighted import counter_cells
from lbm.logic.anatomy import view
from lbm.logic.elimination import Elimination, Mask
from lbm.reasoning.assign import reach
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, exponent
from lbm.reasoning.exact.compile import MAX_CONNECTED, MAX_EDGES, compile_clauses
from lbm.reasoning.exact.cubes import ByCubes
from lbm.reasoning.exact.passes import Passes
from lbm.reasoning.exact.rows import Words, check_room, few, rounded, sort_rows, words_for
from lbm.reasoning.exact.tables import Weights

LISTED: Final = 4096
"""Models up to which a circuit lists them."""

MAX_COUNTERS: Final = 4 * MAX_CONNECTED
"""Cells of the counters of cardinalities, past which their clauses are not written: most are connected."""

MAX_BESIDE: Final = 4096
"""Cubes of formulae beside one that is a circuit already, up to which the circuit is used for them, too.

Fewer where they, times the edges of the circuit, would be more than MAX_EDGES.
"""

MAX_SORTED: Final = 1 << 22
"""Edges times models up to which a circuit lists the first models of many."""

_FLOAT: Final = 600.0  # exponents whose exponentials floats hold
_DRAWN: Final = 64  # worlds that are drawn to see whether a circuit is one
_ROUNDED: Final = 1e-6  # by which the sum of a pass may differ from the truth
_LOOK: Final = 256  # formulae between two looks at the clock


class ByCircuit:
    """A component by a circuit; with ``keep``, by one of the restrictions of its models to those atoms."""

    def __init__(
        self,
        component: Component,
        names: tuple[str, ...],
        circuit: Circuit,
        roots: Mapping[int, int],
        budget: Budget,
    ) -> None:
        self.component, self.names, self.roots, self.budget = component, names, roots, budget
        self.passes = Passes(circuit)

    @classmethod
    def of(cls, component: Component, keep: frozenset[str] | None, budget: Budget) -> ByCircuit:
        """Return the circuit of a component; with ``keep``, of its models restricted to those atoms."""
        if keep is None or keep.issuperset(component.atoms):
            found = cls.ready(component, budget)
            if found is not None:
                return found
        names = component.atoms
        kept = names if keep is None else tuple(name for name in names if name in keep)
        rows, free, roots = _clauses(component, budget)
        shown = None
        if len(kept) < len(names):
            assert not component.soft, "restrictions are counted without soft formulae"
            shown = [i for i, name in enumerate(names, 1) if name in set(kept)]
        return cls(
            component, kept, compile_clauses(rows, free - 1, shown=shown, budget=budget), roots, budget
        )

    @classmethod
    def ready(cls, component: Component, budget: Budget) -> ByCircuit | None:
        """Return the circuit of a component whose hard formula is one already; None: it is not.

        Further formulae, hard and soft, may be beside it if they have few cubes together: the circuit is then
        a sum of what is left of it under each of these.
        """
        known = [formula for formula in component.hard if is_circuit_formula(formula)]
        if not known:
            return None
        base = max(known, key=lambda formula: len(reach(formula)))
        beside = [formula for formula in component.hard if formula is not base]
        place = {name: i for i, name in enumerate(component.atoms)}
        names = list(component.atoms)
        roots: dict[int, int] = {}
        for formula, weight in component.soft:
            seen = view(formula)
            if seen.op == "literal":
                root = (place[seen.label] + 1) * (1 if seen.parts[0][1] else -1)
            else:  # an atom more, which is true where the formula is
                names.append("=" * (1 + max(map(len, component.atoms))) + str(len(names)))
                beside.append(iff(make("atom", names[-1], ()), formula))
                root = len(names)
            roots[root] = roots.get(root, 0) + weight
        build = Builder(len(names))
        circuit = build.circuit(circuit_of_formula(base, place, build))
        if not _keeps_its_word(base, circuit, budget):
            return None
        if beside:
            cubes = _few_cubes(names, beside, MAX_EDGES // max(1, circuit.edges), budget)
            if cubes is None:
                return None
            circuit = _under(circuit, cubes, budget)
        return cls(component, component.atoms, circuit, roots, budget)

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
        total = self.count()
        if total <= LISTED or limit is None or few(total, limit):
            check_room(total, len(self.component.atoms))
            found = self.passes.models(total, budget=self.budget)
            assert found is not None, "there are as many as were counted"
            return sort_rows(self._packed(found))[:limit]
        if limit * self.edges > MAX_SORTED:
            return None
        number = len(self.names)  # the first model is the one whose first atoms are false
        scores = [(1 << number - 1 - i, 0) for i in range(number)] + self._no_scores[number:]
        return self._rows(self.passes.top(scores, limit, budget=self.budget))

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


def _keeps_its_word(formula: Formula, circuit: Circuit, budget: Budget) -> bool:
    """Return whether worlds drawn from a circuit are its models once each, as they are if it is one.

    What is not deterministic gives some worlds more than once, and these are drawn the more often.
    """
    if was_looked_at(formula):
        return True
    passes = Passes(circuit)
    drawn = passes.draw(_DRAWN, np.random.default_rng(0), budget=budget)
    ways = passes.log_sum(np.stack([~drawn, drawn], axis=-1).astype(float), budget=budget)
    is_one = bool((np.abs(ways) < _ROUNDED).all())
    looked_at(formula, is_one=is_one)
    return is_one


def _few_cubes(
    names: Sequence[str], formulae: Sequence[Formula], most: int, budget: Budget
) -> list[Mask] | None:
    """Return a strict DNF of formulae; None: it has too many cubes."""
    measure, number = Elimination(), 1
    if sum(len(reach(formula)) for formula in formulae) > MAX_BESIDE:
        return None
    for formula in formulae:
        number *= measure.size(formula)
        if number > MAX_BESIDE:
            return None
    try:
        cubes = ByCubes(Component(tuple(names), tuple(formulae), ()), min(MAX_BESIDE, most), budget).cubes
    except TooManyWorlds:
        return None
    return cubes


def _under(circuit: Circuit, cubes: Sequence[Mask], budget: Budget) -> Circuit:
    """Return the circuit of the models that lie in one of these cubes, which exclude one another."""
    build = Builder(circuit.variables)
    same = list(range(2 * circuit.variables))
    bare = build.add(circuit, same)
    met = 0
    for true, false in cubes:
        met |= true | false
    touched = [bool(met >> (slot >> 1) & 1) for slot in same]
    starts, parts = circuit.starts.tolist(), circuit.parts.tolist()
    for gate in range(len(circuit)):
        touched.append(any(touched[part] for part in parts[starts[gate] : starts[gate + 1]]))
    made = [-1 if is_met else slot for slot, is_met in zip(bare, touched, strict=True)][len(same) :]
    branches = []
    for true, false in cubes:
        budget.tick()
        literals, said = list(same), []
        for v in range(circuit.variables):
            if (true | false) >> v & 1:
                value = true >> v & 1
                said.append(2 * v + value)
                literals[2 * v + value], literals[2 * v + 1 - value] = build.true, build.false
        branches.append(build.product([*said, build.add(circuit, literals, made)[circuit.root]]))
    return build.circuit(build.sum(branches))


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
        if counter_cells(*formulae) > MAX_COUNTERS:
            raise TooManyWorlds(
                f"the cardinalities have {rounded(counter_cells(*formulae))} counter cells, more than "
                f"{MAX_COUNTERS} (limit MAX_COUNTERS), too many to compile as clauses",
                MAX_COUNTERS=MAX_COUNTERS,
            )
        more, literals, free = definitional(formulae, place, free, budget.tick)
        rows += more
        for root, (_, weight) in zip(literals, deep, strict=True):
            if weight is None:
                rows.append([root])
            else:
                roots[root] = roots.get(root, 0) + weight
    return rows, free, roots
