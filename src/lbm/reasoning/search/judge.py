"""What a world loses: a theory with evidence, evaluated on its formulae, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbm.knowledge.clauses import as_clause
from lbm.knowledge.formula import Formula, holds
from lbm.knowledge.numbers import Weight
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.weighted import weighted_clauses
from lbm.reasoning.components.answers import Bools

if TYPE_CHECKING:
    from lbm.reasoning.engine.presolve import WeightedClauses

_WHOLE: Final = 1 << 62  # sums of weights up to which they are kept in 64 bits


@dataclass(frozen=True, slots=True)
class Judged:
    """A world, the numbers of the statements it breaks, and the weight it loses times 10^places.

    ``keeps``: whether it keeps the evidence and every hard formula.
    """

    values: tuple[bool, ...]
    keeps: bool
    broken: tuple[int, ...]
    lost: int

    def named(self, atoms: Sequence[str]) -> dict[str, bool]:
        """Return the world under the names of these atoms."""
        return dict(zip(atoms, self.values, strict=True))


class Table(NamedTuple):
    """Clauses as arrays, the numbers of their statements, and the formulae of the other statements."""

    literals: NDArray[np.int32]
    starts: NDArray[np.int64]
    numbers: NDArray[np.intp]
    others: dict[int, Formula]


class Judge:
    """A theory with evidence, which evaluates worlds; weights are whole numbers, times 10^places."""

    def __init__(self, theory: Theory, given: Formula | None, places: int = 0) -> None:
        self.theory, self.given = theory, given
        statements = theory.statements
        self.packed = statements if isinstance(statements, PackedStatements) else None
        self.weights: list[int]
        if self.packed is None:
            self.places = max([places, *(_places(s.weight) for s in statements if s.weight is not None)])
            scale = 10**self.places
            self.weights = [0 if s.weight is None else int(Fraction(s.weight) * scale) for s in statements]
        else:
            self.places = places
            weights = self.packed.weights
            self.weights = [0] * len(statements) if weights is None else weights.tolist()
            self.weights = [weight * 10**places for weight in self.weights]

    @cached_property
    def table(self) -> Table:
        """The clauses among the statements, packed, and the formulae of the others."""
        if self.packed is not None:
            clauses = self.packed.clauses
            return Table(clauses.literals, clauses.starts, np.arange(len(clauses)), {})
        place = {name: i for i, name in enumerate(self.theory.atoms, start=1)}
        literals: list[int] = []
        starts, numbers = [0], []
        others: dict[int, Formula] = {}
        for number, statement in enumerate(self.theory):
            clause = as_clause(statement.formula)
            if clause is None:
                others[number] = statement.formula
                continue
            literals += [place[name] if wanted else -place[name] for name, wanted in clause]
            starts.append(len(literals))
            numbers.append(number)
        return Table(
            np.array(literals, np.int32), np.array(starts, np.int64), np.array(numbers, np.intp), others
        )

    def weighted_clauses(self, *, hard: bool = False) -> WeightedClauses | None:
        """Return theory and evidence as weighted clauses over the atoms alone; None: they are not clauses.

        Negative weights and weights past 64 bits are not, either. ``hard``: soft formulae are left out.
        """
        from lbm.reasoning.engine.presolve import WeightedClauses

        literals, starts, numbers, others = self.table
        if any(not hard or not self.weights[number] for number in others):
            return None
        if hard:
            mine = np.array([not self.weights[number] for number in numbers.tolist()], bool)
            lengths = np.diff(starts)
            literals = literals[np.repeat(mine, lengths)]
            starts = np.concatenate([[0], np.cumsum(lengths[mine])]).astype(np.int64)
            weights = np.zeros(int(mine.sum()), np.int64)
        elif self.weights and not 0 <= min(self.weights) <= sum(self.weights) < _WHOLE:
            return None
        else:
            weights = np.array(self.weights, np.int64)
        more = self._evidence()
        if more is None:
            return None
        if more:
            literals = np.concatenate([literals, np.array([x for row in more for x in row], np.int32)])
            starts = np.concatenate([starts, starts[-1] + np.cumsum([len(row) for row in more])])
            weights = np.concatenate([weights, np.zeros(len(more), np.int64)])
        return WeightedClauses(len(self.theory.atoms), literals, starts, weights)

    def _evidence(self) -> list[list[int]] | None:
        """Return the evidence as clauses; None: it is something else."""
        found: list[list[int]] = []
        waiting = [] if self.given is None else [self.given]
        place = {name: i for i, name in enumerate(self.theory.atoms, start=1)}
        while waiting:
            part = waiting.pop()
            clause = as_clause(part)
            if clause is not None:
                found.append([place[name] if wanted else -place[name] for name, wanted in clause])
            elif part.kind == "and":
                waiting += part.args
            else:
                return None
        return found

    def look(self, values: Sequence[bool]) -> Judged:
        """Return what a world keeps and loses."""
        values = tuple(values)
        world = dict(zip(self.theory.atoms, values, strict=True))
        keeps = self.given is None or bool(holds(self.given, world))
        broken: list[int] = []
        for number in self._lost(values, world):
            broken.append(number)
            keeps = keeps and self.weights[number] != 0
        return Judged(values, keeps, tuple(broken), sum(abs(self.weights[number]) for number in broken))

    def _lost(self, values: tuple[bool, ...], world: dict[str, bool]) -> list[int]:
        """Return the statements that are false, or, with a negative weight, true; in order."""
        table = self.table
        wanted = self._positive[table.numbers]
        held = np.array([False, *values])
        sums = np.zeros(len(table.literals) + 1, np.int64)
        np.cumsum(held[np.abs(table.literals)] == (table.literals > 0), out=sums[1:])
        true = sums[table.starts[1:]] > sums[table.starts[:-1]]
        found: list[int] = table.numbers[true != wanted].tolist()
        if table.others:
            found += [
                n
                for n, formula in table.others.items()
                if bool(holds(formula, world)) is (self.weights[n] < 0)
            ]
            found.sort()
        return found

    @cached_property
    def positive(self) -> int:
        """The sum of the positive weights, times 10^places."""
        return sum(weight for weight in self.weights if weight > 0)

    @cached_property
    def _positive(self) -> Bools:
        return np.array([weight >= 0 for weight in self.weights], bool)

    def losses(self, rows: Bools) -> list[int]:
        """Return the weight that each model loses, times 10^places; ``rows`` has shape (worlds, atoms)."""
        worlds = dict(zip(self.theory.atoms, rows.T, strict=True))
        total = np.zeros(len(rows), object)
        for statement, weight in zip(self.theory, self.weights, strict=True):
            if weight:
                lost = np.broadcast_to(holds(statement.formula, worlds), len(rows)) ^ (weight > 0)
                total[lost] += abs(weight)
        return total.tolist()

    def lost_by(self, world: Judged, numbers: frozenset[int]) -> float:
        """Return what a world loses of some statements only; infinity if a hard one of them is broken."""
        weights = [abs(self.weights[number]) for number in world.broken if number in numbers]
        return sum(weights) if all(weights) else math.inf

    def clauses(self) -> tuple[Iterator[list[int]], list[int], int]:
        """Return clauses that say the same, their weights times 10^places, and the number of variables."""
        if self.packed is None:
            # Numbers of statements stand in for weights: those are of any size, and find their clauses back.
            marked = [
                Statement(s.formula, None if not w else number if w > 0 else -number)
                for number, (s, w) in enumerate(zip(self.theory, self.weights, strict=True), start=1)
            ]
            hard = [] if self.given is None else [Statement(self.given)]
            found = weighted_clauses(Theory.from_parts(self.theory.atoms, (*marked, *hard)))
            marks = [0] * len(found.clauses) if found.weights is None else found.weights.tolist()
            weights = [abs(self.weights[mark - 1]) if mark else 0 for mark in marks]
            return rows_of(found.clauses.literals, found.clauses.starts), weights, len(found.clauses.atoms)
        rows, weights = rows_of(self.packed.clauses.literals, self.packed.clauses.starts), self.weights
        if self.given is None:
            return rows, weights, len(self.theory.atoms)
        evidence = weighted_clauses(Theory.from_parts(self.theory.atoms, (Statement(self.given),))).clauses
        more = list(rows_of(evidence.literals, evidence.starts))
        return chain(rows, more), [*weights, *([0] * len(more))], len(evidence.atoms)


def rows_of(literals: NDArray[np.int32], starts: NDArray[np.int64]) -> Iterator[list[int]]:
    """Return packed clauses as lists, one after the other."""
    numbers, ends = literals.tolist(), starts.tolist()
    return (numbers[start:end] for start, end in pairwise(ends))


def _places(weight: Weight) -> int:
    """Return how many digits follow the point."""
    digits = weight.as_tuple().exponent if isinstance(weight, Decimal) else 0
    assert isinstance(digits, int)  # weights are finite
    return max(0, -digits)
