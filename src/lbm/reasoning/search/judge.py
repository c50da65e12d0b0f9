"""What a world loses: a theory with evidence, evaluated on its formulae, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from lbm.knowledge.formula import Formula, holds
from lbm.knowledge.numbers import Weight
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.weighted import weighted_clauses
from lbm.reasoning.components.answers import Bools


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

    def look(self, values: Sequence[bool]) -> Judged:
        """Return what a world keeps and loses."""
        values = tuple(values)
        world = dict(zip(self.theory.atoms, values, strict=True))
        keeps = self.given is None or bool(holds(self.given, world))
        broken: list[int] = []
        for number, true in enumerate(self._truths(world)):
            if true is (self.weights[number] < 0):
                broken.append(number)
                keeps = keeps and self.weights[number] != 0
        return Judged(values, keeps, tuple(broken), sum(abs(self.weights[number]) for number in broken))

    def _truths(self, world: dict[str, bool]) -> Iterable[bool]:
        if self.packed is None:
            return (bool(holds(statement.formula, world)) for statement in self.theory)
        clauses = self.packed.clauses
        values = np.array([False, *world.values()])
        true = values[np.abs(clauses.literals)] == (clauses.literals > 0)
        sums = np.concatenate([[0], np.cumsum(true)])
        found: list[bool] = (sums[clauses.starts[1:]] > sums[clauses.starts[:-1]]).tolist()
        return found

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
            return _rows(found.clauses.literals, found.clauses.starts), weights, len(found.clauses.atoms)
        rows, weights = _rows(self.packed.clauses.literals, self.packed.clauses.starts), self.weights
        if self.given is None:
            return rows, weights, len(self.theory.atoms)
        evidence = weighted_clauses(Theory.from_parts(self.theory.atoms, (Statement(self.given),))).clauses
        more = list(_rows(evidence.literals, evidence.starts))
        return chain(rows, more), [*weights, *([0] * len(more))], len(evidence.atoms)


def _rows(literals: NDArray[np.int32], starts: NDArray[np.int64]) -> Iterator[list[int]]:
    numbers, ends = literals.tolist(), starts.tolist()
    return (numbers[start:end] for start, end in pairwise(ends))


def _places(weight: Weight) -> int:
    """Return how many digits follow the point."""
    digits = weight.as_tuple().exponent if isinstance(weight, Decimal) else 0
    assert isinstance(digits, int)  # weights are finite
    return max(0, -digits)
