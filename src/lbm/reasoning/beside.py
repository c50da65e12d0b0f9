"""Another engine beside ours: whoever is right first has answered, and the other is ended.

Ours works here and looks at its budget now and then; the other engine, pyganak where it is installed, works
in a process of its own. It begins when ours is not done within a moment: small questions start no process.

Probabilities are two sums of weights, P(query | evidence) = Z(query and evidence)/Z(evidence), of clauses
in which a literal stands for every soft formula and weighs what the formula earns. They are doubles: what a
double does not hold is no answer.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import Final, Generic, NamedTuple, TypeVar

from lbm.errors import LbmError, NoAnswer, TooManyWorlds
from lbm.knowledge.clauses import Clauses, definitional
from lbm.knowledge.formula import Formula
from lbm.knowledge.weighted import check_cells
from lbm.reasoning.budget import Budget, now
from lbm.reasoning.problem import Problem
from lbm.reasoning.solvers import aside, counters

HEAD_START: Final = 0.05
"""Seconds that ours works alone."""

PATIENCE: Final = 2.0
"""Seconds that the other engine is waited for where ours cannot answer and chains could."""

MOST: Final = 600.0
"""What a variable may earn, divided by the temperature, for its exponential to be a double."""

TOTAL: Final = 10_000.0
"""The same of all variables together: sums that no double holds are shifted, and summed again."""

BY_GANAK: Final = "by Ganak"

_TICK: Final = 0.1  # seconds between looks at the clock, so that Ctrl-C is heard on Windows too
_ENDING: Final = 0.5  # seconds that it may take to end what is no longer wanted
_STEP: Final = 1000  # bits that one variable may shift a sum by
_WINDOW: Final = 1020  # bits that a double holds below and above 1
_LOOK: Final = 1024  # formulae between two looks at the clock
_ROUNDED: Final = 1e-9  # by which rounding may lead past a probability of 1

_T = TypeVar("_T")


class Rival(Generic[_T]):
    """The work of another engine on a question that we work on, too.

    Parameters
    ----------
    work
        Answers within a budget, or returns None: it cannot tell. It is called where the other engine is
        installed. None: this question is ours alone.
    budget
        Time for the question.
    """

    def __init__(self, work: Callable[[Budget], _T | None] | None, budget: Budget) -> None:
        self._work, self._asked = work, now()
        self._ended, self._done = threading.Event(), threading.Event()
        self._budget = budget.unless(self._ended.is_set)
        self._thread: threading.Thread | None = None  # for clauses have to be written down, and ours goes on
        self._found: _T | None = None
        self._late = False

    def __enter__(self) -> Rival[_T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def answered(self) -> bool:
        """Return whether it has an answer; begin its work if ours has had its head start."""
        if now() >= self._asked + HEAD_START:
            self._begin()
        return self._found is not None

    def answer(self, budget: Budget) -> _T | None:
        """Return its answer, as soon as there is one; None: there is none within the budget."""
        self._begin()
        while not self._done.wait(max(0.0, min(_TICK, budget.left()))) and budget.left() > 0:
            pass
        return self._found

    def first(self, ours: Callable[[Budget], _T], budget: Budget, patience: float = math.inf) -> _T:
        """Return what ours finds within a budget, or the other engine if it is earlier.

        Where ours gives up, the other one has the rest of the time, up to ``patience``.
        """
        if self._work is None:
            return ours(budget)
        try:
            return ours(budget.unless(self.answered))
        except (TooManyWorlds, NoAnswer) as error:
            found = self.answer(budget.at_most(patience))
            if found is not None:
                return found
            if patience == math.inf and (self._late or not self._done.is_set()):
                raise NoAnswer("no answer within the seconds allowed: allow more") from error
            raise
        finally:
            self.end()

    def end(self) -> None:
        """End its work, whatever it is doing."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_ENDING)

    def _begin(self) -> None:
        if self._thread is not None or self._done.is_set():
            return
        if self._work is None or self._ended.is_set() or not aside.ganak_installed():
            self._done.set()
            return
        thread = threading.Thread(target=self._run, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there is no room for one more
            self._done.set()
        else:
            self._thread = thread

    def _run(self) -> None:
        assert self._work is not None  # nothing begins without it
        try:
            with suppress(LbmError, OSError, MemoryError):  # it has no answer: ours may have one
                self._found = self._work(self._budget)
            self._late = self._found is None and self._budget.spent()
        finally:
            self._done.set()


# --- what it is asked ------------------------------------------------------------------------------


def count_beside(
    problem: Problem, given: Formula | None, project: Iterable[str] | None, budget: Budget
) -> int | None:
    """Return the number of models that keep the evidence, or of their restrictions; None: no answer."""
    return counters.count_aside(Problem.of(problem, given).written(budget), project, budget)


class Counted(float):
    """log Z as another engine found it; ``note`` says which, and ``error`` is 0."""

    error: Final = 0.0
    note: str = BY_GANAK


def log_partition_beside(
    problem: Problem, given: Formula | None, temperature: float, budget: Budget
) -> Counted | None:
    """Return log Z, Z = Σ exp(score(x)/τ) over the models that keep the evidence; None: no answer."""
    found = _known_sum(problem, given, temperature, budget)
    if found is None:
        return None
    log = (
        float(_weighing(problem, budget).most / Fraction(temperature))
        + math.log(found.sum)
        - found.shift * math.log(2)
    )
    return Counted(log) if math.isfinite(log) else None


def probability_beside(
    problem: Problem, query: Formula, given: Formula | None, temperature: float, budget: Budget
) -> float | None:
    """Return P(query | evidence), neither 0 nor subnormal; None: no answer."""
    whole = _known_sum(problem, given, temperature, budget)
    if whole is None:
        return None
    part = _weighing(problem, budget).sum([query] if given is None else [query, given], temperature, budget)
    if part is None:
        return None
    found = math.ldexp(part.sum / whole.sum, whole.shift - part.shift)
    return min(1.0, found) if counters.is_sound(found) and found < 1 + _ROUNDED else None


def _known_sum(problem: Problem, given: Formula | None, temperature: float, budget: Budget) -> _Sum | None:
    """Return the sum over the models that keep the evidence, once: other queries have the same evidence."""

    def make() -> _Sum:
        evidence = () if given is None else (given,)
        found = _weighing(problem, budget).sum(evidence, temperature, budget)
        if found is None:
            raise NoAnswer("the weights were not summed in time, or are not what doubles hold")
        return found

    with suppress(NoAnswer):
        return problem.known.get(("sum beside", given, temperature), make)
    return None


def _weighing(problem: Problem, budget: Budget) -> _Weighing:
    return problem.known.get("weighing", lambda: _Weighing.of(problem, budget))


class _Sum(NamedTuple):
    """A sum of weights, times 2^shift."""

    sum: float
    shift: int


@dataclass(frozen=True, slots=True)
class _Weighing:
    """A theory as clauses, and what its variables earn.

    Attributes
    ----------
    clauses
        The hard formulae, and definitions of soft ones.
    earned
        How much more a variable earns where it is true than where it is false.
    most
        The score of a world in which every variable earned as much as it can.
    """

    clauses: Clauses
    earned: dict[int, Fraction]
    most: Fraction

    @classmethod
    def of(cls, problem: Problem, budget: Budget) -> _Weighing:
        """Return a theory as clauses; raise NoAnswer if they are not written down in time."""
        hard, weights = problem.written(budget), problem.weights
        scale, free = 10**problem.digits, hard.variables + 1
        roots: list[tuple[int, int]] = []  # literals, and what they earn
        always = 0
        rows: list[list[int]] = []
        clauses, others = problem.flat
        for number, row in zip(clauses.owners.tolist(), clauses.rows(), strict=True):
            weight, literals = weights[number], set(row)
            if not number % _LOOK:
                budget.look()
            if not weight or not row:
                continue
            if any(-literal in literals for literal in row):
                always += weight
            elif len(literals) == 1:
                roots.append((row[0], weight))
            else:
                rows += [[-free, *row], *([free, -literal] for literal in row)]
                roots.append((free, weight))
                free += 1
        soft = {number: formula for number, formula in others.items() if weights[number]}
        check_cells(*soft.values())
        place = {name: i for i, name in enumerate(problem.atoms, start=1)}
        more, literals_of, free = definitional(list(soft.values()), place, free, budget.look)
        roots += zip(literals_of, (weights[number] for number in soft), strict=True)
        earned: dict[int, int] = {}
        for literal, weight in roots:
            earned[abs(literal)] = earned.get(abs(literal), 0) + (weight if literal > 0 else -weight)
            always += weight if literal < 0 else 0
        return cls(
            hard.joined(Clauses.of([*rows, *more], variables=free - 1)),
            {variable: Fraction(weight, scale) for variable, weight in earned.items() if weight},
            Fraction(always + sum(weight for weight in earned.values() if weight > 0), scale),
        )

    def sum(self, evidence: Sequence[Formula], temperature: float, budget: Budget) -> _Sum | None:
        """Return Σ exp((score(x) - most)/τ) over the models in which these formulae are true.

        It lies between exp(-total/τ), where there is a model at all, and 2^atoms: where that is more than a
        double holds, it is shifted until it fits.
        """
        earned = {variable: weight / Fraction(temperature) for variable, weight in self.earned.items()}
        if any(abs(exponent) > MOST for exponent in earned.values()):
            return None
        exponents = {variable: float(exponent) for variable, exponent in earned.items()}
        total = math.fsum(map(abs, exponents.values()))
        if total > TOTAL:
            return None
        weights = {v: (math.exp(min(0.0, x)), math.exp(min(0.0, -x))) for v, x in exponents.items()}
        place = {name: i for i, name in enumerate(self.clauses.atoms, start=1)}
        check_cells(*evidence)
        rows, roots, free = definitional(evidence, place, self.clauses.variables + 1, budget.look)
        rows += [[root] for root in roots]
        low, high = -math.ceil(total / math.log(2)) - 1, len(place)
        # The size of the sum were all formulae independent, and none hard.
        guess = high + math.fsum(math.log2((1 + math.exp(-abs(x))) / 2) for x in exponents.values())
        while low <= high:
            shift = -round(min(max(guess, low), high)) if max(-low, high) > _WINDOW else 0
            found = self._shifted(rows, free, shift, weights, budget)
            if found is None or math.isnan(found):
                return None
            if counters.is_sound(found) and found > 0:
                return _Sum(found, shift)
            if found > 1:
                low = _WINDOW - shift
            else:
                high = -_WINDOW - shift
            guess = (low + high) / 2
        return None

    def _shifted(
        self,
        rows: Sequence[Sequence[int]],
        free: int,
        shift: int,
        weights: dict[int, tuple[float, float]],
        budget: Budget,
    ) -> float | None:
        """Return the sum over the models that keep these rows, times 2^shift; from ``free`` on is new."""
        steps = [int(math.copysign(_STEP, shift))] * (abs(shift) // _STEP)
        steps.append(shift - sum(steps))
        new = range(free, free + len(steps))
        shifts = {variable: (math.ldexp(1.0, step), 1.0) for variable, step in zip(new, steps, strict=True)}
        forced = Clauses.of([*rows, *([variable] for variable in new)], variables=new[-1])
        clauses = self.clauses.joined(forced)
        return aside.weighted_count(clauses, {**weights, **shifts}, budget=budget)
