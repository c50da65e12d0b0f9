"""Growing queries: literals that modes allow, with the constants, thresholds and counts that examples show.

A query of one literal is about the arguments of the example; every further literal uses a variable that the
query brought in (a chain). What is false of nearly all examples is not grown; what is nearly never or nearly
always true is no column, but may grow into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, permutations, product
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import LimitExceeded
from lbm.relations.columns.answers import Background, Solutions
from lbm.relations.columns.queries import Absent, Column, Goal, Step, comparison, goal_of, rename, show
from lbm.relations.columns.relevance import information
from lbm.relations.modes import CONSTANT, INPUT, OUTPUT, Mode
from lbm.relations.prolog.terms import Term, Variable
from lbm.relations.questions import variable_name

QUERY: Final = 2_000
"""What a query costs beside its solutions, counted in these."""


@dataclass(frozen=True, slots=True)
class Language:
    """Which queries are grown.

    Attributes
    ----------
    size
        Literals in a chain.
    support
        The share of distinct examples that a column must be true of, and false of; two at least, or one if
        it is 0.
    cuts
        Thresholds at most, for a number or a count; and constants at most, the most frequent, for a literal
        that the engine must prove.
    constants
        A variable whose terms are at most so many is compared with each of them.
    width
        Queries at most of one size that grow further: those that tell most of the classes.
    variables
        Variables of a query, at most, with those of the example; None: any number.
    budget
        Work after which nothing more is grown: solutions that queries have, and QUERY for each query. What
        tells most grows first. None: any amount.
    """

    size: int = 2
    support: float = 0.02
    cuts: int = 8
    constants: int = 20
    width: int = 1000
    variables: int | None = None
    budget: int | None = None

    def least(self, examples: int) -> int:
        """Return the support as a number of examples."""
        return max(2, round(self.support * examples)) if self.support else 1


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query that may grow: its steps, the types of its variables, its solutions."""

    steps: tuple[Step, ...]
    types: tuple[Term, ...]
    solutions: Solutions


class Harvest:
    """Columns found so far, the shorter first; of two that always agree, or never, the first is kept."""

    def __init__(self, labels: Bools, language: Language) -> None:
        self.labels = labels
        self.support = language.least(len(labels))
        self.columns: dict[bytes, Column] = {}

    def add(self, column: Column, values: Bools) -> float:
        """Note a column, and return what it tells about the labels."""
        true = int(values.sum())
        if min(true, len(values) - true) < self.support:
            return 0.0
        self.columns.setdefault(np.packbits(values ^ values[0]).tobytes(), column)
        return float(information(values[:, None], self.labels)[0])


def grow_columns(
    answers: Background, examples: Sequence[Term], labels: Sequence[bool], language: Language
) -> list[Column]:
    """Return the columns that examples and their labels suggest; no two always agree, or never."""
    unique = dict(zip(examples, labels, strict=True))
    start = answers.start(list(unique))
    harvest = Harvest(np.array(list(unique.values()), dtype=bool), language)
    head = answers.head(next(iter(unique)))
    opened = [Query((), tuple(place.type for place in head.places), start)]
    grower = Grower(answers, len(head.places), harvest.support, language.cuts, language.variables)
    seen: set[str] = set()
    left = float("inf") if language.budget is None else language.budget
    for _ in range(language.size):
        grown: list[tuple[float, Query]] = []
        for parent in opened:
            for mode in answers.modes:
                for child in grower.children(parent, mode) if left > 0 else ():
                    left -= QUERY + len(child.solutions.rows)
                    name = _standard(child.steps, len(head.places))
                    if name not in seen:
                        seen.add(name)
                        worth = _gather(answers, child, len(parent.types), language, harvest)
                        grown.append((worth, child))
        grown.sort(key=lambda pair: -pair[0])
        opened = [child for _, child in grown[: language.width]]
    return list(harvest.columns.values())


# --- one literal more ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grower:
    """How queries grow: what answers them, and what a literal more must be.

    Attributes
    ----------
    arity
        How many arguments an example has: the variables that come first.
    support
        Examples at least that must have an answer.
    cuts
        Constants at most for a literal that the engine must prove.
    variables
        Variables of a query, at most; None: any number.
    """

    answers: Background
    arity: int
    support: int
    cuts: int
    variables: int | None = None

    def children(self, parent: Query, mode: Mode) -> Iterator[Query]:
        """Yield the query with one more literal of a mode, for each choice of variables and constants."""
        choices: list[list[int | None]] = []
        for place in mode.places:
            alike: list[int | None] = [k for k, kind in enumerate(parent.types) if kind == place.type]
            choices.append(
                alike if place.sign == INPUT else [None, *alike] if place.sign == OUTPUT else [None]
            )
        for choice in product(*choices):
            used = [k for k in choice if k is not None]
            if parent.steps and not any(k >= self.arity for k in used):
                continue  # it would be about the example alone: hidden units join such parts
            if mode.negated:
                if None not in choice:
                    goal = goal_of(mode, [Variable(variable_name(k)) for k in used])
                    yield from self._opened(parent, Absent((goal,)), ())
                continue
            # Outputs are numbered before constants, which will not be variables any more.
            new = [place for place, k in zip(mode.places, choice, strict=True) if k is None]
            types = tuple(place.type for place in new if place.sign == OUTPUT)
            if self.variables is not None and len(parent.types) + len(types) > self.variables:
                continue
            outputs, constants = count(len(parent.types)), count(len(parent.types) + len(types))
            names = [
                variable_name(next(constants if place.sign == CONSTANT else outputs) if k is None else k)
                for place, k in zip(mode.places, choice, strict=True)
            ]
            goal = goal_of(mode, map(Variable, names))
            open_ = [name for place, name in zip(mode.places, names, strict=True) if place.sign == CONSTANT]
            for filled in self._filled(parent, goal, open_) if open_ else (goal,):
                yield from self._opened(parent, filled, types)

    def _filled(self, parent: Query, goal: Goal, names: Sequence[str]) -> Iterator[Goal]:
        """Yield a literal for each choice of constants for these variables that enough examples met."""
        whole = self._extend(parent.solutions, goal)
        if whole is None or not len(whole.rows):
            return
        met = np.stack([*map(whole.values, names), whole.rows[:, 0]], axis=1)
        distinct, examples = np.unique(np.unique(met, axis=0)[:, :-1], axis=0, return_counts=True)
        best = np.argsort(-examples, kind="stable")
        if not self.answers.has_only_facts(goal.template):
            best = best[: self.cuts]
        for row in sorted(best[examples[best] >= self.support].tolist()):
            terms = [self.answers.terms[number] for number in distinct[row].tolist()]
            # Asked anew with the constants in place: a rule may answer otherwise when it knows them.
            yield goal.renamed(dict(zip(names, terms, strict=True)))

    def _opened(self, parent: Query, step: Step, types: tuple[Term, ...]) -> Iterator[Query]:
        """Yield the query with one more step, if enough examples have an answer."""
        if step in parent.steps:
            return
        solutions = self._extend(parent.solutions, step)
        if solutions is not None and len(np.unique(solutions.rows[:, 0])) >= self.support:
            yield Query((*parent.steps, step), (*parent.types, *types), solutions)

    def _extend(self, solutions: Solutions, step: Step) -> Solutions | None:
        try:
            return self.answers.extend(solutions, step)
        except LimitExceeded as error:
            if error.limit != "rows":
                raise
            return None  # so many answers tell little, and would not fit


def _standard(steps: tuple[Step, ...], arity: int) -> str:
    """Return a text that is the same for all orders of a query's literals and all names of its variables."""
    if len(steps) == 1:
        return show(steps)
    found = []
    for order in permutations(steps):
        names: dict[str, Term] = {}
        for step in order:
            for goal in step.goals:
                for term in goal.arguments:
                    if isinstance(term, Variable):
                        names.setdefault(term.name, Variable(f"V{len(names)}"))
        names |= {variable_name(k): Variable(variable_name(k)) for k in range(arity)}
        found.append(show(rename(order, names)))
    return min(found)


# --- columns of one query ------------------------------------------------------------------------


def _gather(answers: Background, query: Query, old: int, language: Language, harvest: Harvest) -> float:
    """Note the columns of a query, and return the most that one of them tells about the labels."""
    examples = len(harvest.labels)
    counts = query.solutions.counts(examples)
    worth = [harvest.add(Column(query.steps), counts > 0)]
    worth += [
        harvest.add(Column(query.steps, least=int(np.ceil(least))), counts >= least)
        for least in _few(counts[counts > 0].astype(float), language.cuts)
    ]
    for k in range(old, len(query.types)):
        name = variable_name(k)
        terms = query.solutions.values(name)
        sizes = answers.magnitudes(terms)
        if np.isfinite(sizes).all():
            worth += _thresholds(query, name, sizes, language.cuts, harvest)
        distinct = np.unique(terms)
        known = [answers.terms[number] for number in distinct.tolist()]
        # Numbers with a fraction are compared by size alone.
        if len(known) <= language.constants and not any(isinstance(term, float) for term in known):
            for number, term in zip(distinct.tolist(), known, strict=True):
                values = np.zeros(examples, dtype=bool)
                values[query.solutions.rows[terms == number, 0]] = True
                column = Column(rename(query.steps, {name: term}))
                worth.append(harvest.add(column, values))
    return max(worth)


def _thresholds(query: Query, name: str, sizes: Floats, cuts: int, harvest: Harvest) -> Iterator[float]:
    """Note the columns that compare a number; what counts is the least, or the greatest, of an example's."""
    examples = len(harvest.labels)
    rows = query.solutions.rows[:, 0]
    least, greatest = np.full(examples, np.inf), np.full(examples, -np.inf)
    np.minimum.at(least, rows, sizes)
    np.maximum.at(greatest, rows, sizes)
    for edge, sign in ((least, "=<"), (greatest, ">=")):
        for cut in _few(edge[np.isfinite(edge)], cuts):
            steps = (*query.steps, comparison(Variable(name), sign, cut))
            yield harvest.add(Column(steps), edge <= cut if sign == "=<" else edge >= cut)


def _few(values: Floats, cuts: int) -> Iterable[float]:
    """Return thresholds between different values, at most ``cuts`` of them, evenly over the examples.

    >>> list(_few(np.array([1.0, 2.0, 2.0, 3.0]), 8)), list(_few(np.arange(100.0), 3))
    ([1.5, 2.5], [24.5, 49.5, 74.5])
    """
    distinct = np.unique(values)
    gaps = np.arange(len(distinct) - 1)
    if len(gaps) > cuts:
        wanted = np.quantile(values, np.linspace(0, 1, cuts + 2)[1:-1])
        gaps = np.unique(np.clip(np.searchsorted(distinct, wanted, side="right") - 1, 0, len(distinct) - 2))
    return [between(float(distinct[k]), float(distinct[k + 1])) for k in gaps.tolist()]


def between(low: float, high: float) -> float:
    """Return a number strictly between two, with as few digits as will do.

    >>> between(-1.2371, -1.1904), between(1.0, 2.0)
    (-1.2, 1.5)
    """
    middle = low + (high - low) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if low < short < high:
            return short
    return middle
