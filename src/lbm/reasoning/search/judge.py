"""What a world loses: a theory with evidence, evaluated on its formulae, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbm.errors import NoAnswer
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import FALSE, TRUE, Formula, holds
from lbm.knowledge.numbers import Weight
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.weighted import check_cells, conjuncts, counter_cells, negated
from lbm.reasoning.clock import share_of_time, spent, tick
from lbm.reasoning.components.answers import Bools
from lbm.reasoning.engine.clauses import WeightedClauses

_CELLS: Final = 50_000  # of counters, past which clauses take no more than half of the time
_LOOK: Final = 1000  # formulae that become clauses between two looks at the clock
_WHOLE: Final = 1 << 62  # sums of weights up to which they are kept in 64 bits
_HUGE: Final = 10**300  # weights past this are all the same to whoever guesses


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


class Rows(NamedTuple):
    """Clauses that say what a theory and its evidence say.

    Clause j is ``literals[starts[j]:starts[j + 1]]``; its weight is 0 if it is hard. Variables past the atoms
    stand for parts of formulae.
    """

    literals: NDArray[np.int32]
    starts: NDArray[np.int64]
    weights: Sequence[int]
    variables: int

    def hard(self) -> Iterator[list[int]]:
        """Return the hard clauses as lists, one after the other."""
        lists = rows_of(self.literals, self.starts)
        return (row for row, weight in zip(lists, self.weights, strict=True) if not weight)

    def liked(self) -> Bools:
        """Return, for each variable, whether soft clauses rather want it true, shape (variables,)."""
        pull = np.repeat(self._pulls(), np.diff(self.starts)) * np.sign(self.literals)
        return np.bincount(np.abs(self.literals), pull, self.variables + 1)[1:] > 0

    def descended(self, x: Bools, deadline: float) -> Bools:
        """Return the world that the best flips lead to from ``x``, until none helps or time is over."""
        weights = self._pulls()
        weights[weights == 0] = 1 + weights.sum()  # hard
        x = x.copy()
        variable, wanted = np.abs(self.literals) - 1, self.literals > 0
        clause = np.repeat(np.arange(len(weights)), np.diff(self.starts))
        for _ in range(10 * self.variables):
            true = x[variable] == wanted
            number = np.bincount(clause, true, len(weights))
            alone = np.where(number == 0, weights, np.where(number == 1, -weights, 0.0))[clause]
            gain = np.bincount(variable, np.where(true == (alone < 0), alone, 0.0), self.variables)
            best = int(gain.argmax())
            if gain[best] <= 0 or spent(deadline):
                break
            x[best] ^= True
        return x

    def _pulls(self) -> NDArray[np.float64]:
        return np.array([float(min(weight, _HUGE)) for weight in self.weights])


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

    def clauses(self) -> Rows:
        """Return clauses that say the same, their weights times 10^places, and the number of variables.

        It looks at the clock on the way.
        """
        rows: list[list[int]] = []
        weights: list[int] = []
        deep: list[tuple[int, Formula]] = []  # rows, and what each stands for
        place = {name: i for i, name in enumerate(self.theory.atoms, start=1)}

        def say(formula: Formula, weight: int) -> None:
            clause = [] if formula is FALSE else as_clause(formula)
            if clause is None:
                deep.append((len(rows), formula))
            rows.append([place[name] if wanted else -place[name] for name, wanted in clause or ()])
            weights.append(weight)

        if self.packed is None:
            for number, (statement, weight) in enumerate(zip(self.theory, self.weights, strict=True)):
                if not number % _LOOK:
                    tick()
                if not weight:
                    for part in conjuncts(statement.formula):
                        say(part, 0)
                else:
                    formula = statement.formula if weight > 0 else negated(statement.formula)
                    if formula is not TRUE:
                        say(formula, abs(weight))
        for part in () if self.given is None else conjuncts(self.given):
            say(part, 0)
        check_cells(*(formula for _, formula in deep))
        large = counter_cells(*(formula for _, formula in deep)) > _CELLS
        enough = share_of_time(0.5) if large else math.inf  # the rest is for those who need no clauses

        def look() -> None:
            tick()
            if spent(enough):
                raise NoAnswer("the clauses were not written down in time: allow more seconds")

        free = len(place) + 1
        for begin in range(0, len(deep), _LOOK):
            tick()
            some = deep[begin : begin + _LOOK]
            more, roots, free = definitional([formula for _, formula in some], place, free, look)
            for (row, _), root in zip(some, roots, strict=True):
                rows[row] = [root]
            rows += more
            weights += [0] * len(more)
        literals = np.array([literal for row in rows for literal in row], np.int32)
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        if self.packed is not None:
            mine = self.packed.clauses
            literals = np.concatenate([mine.literals, literals])
            starts = np.concatenate([mine.starts, mine.starts[-1] + starts[1:]])
            weights = self.weights + weights
        return Rows(literals, starts, weights, free - 1)


def rows_of(literals: NDArray[np.int32], starts: NDArray[np.int64]) -> Iterator[list[int]]:
    """Return packed clauses as lists, one after the other."""
    numbers, ends = literals.tolist(), starts.tolist()
    return (numbers[start:end] for start, end in pairwise(ends))


def _places(weight: Weight) -> int:
    """Return how many digits follow the point."""
    digits = weight.as_tuple().exponent if isinstance(weight, Decimal) else 0
    assert isinstance(digits, int)  # weights are finite
    return max(0, -digits)
