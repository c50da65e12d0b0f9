"""Answers: every solution of a query for every example, as tables of numbers joined goal by goal.

A predicate of facts alone is one table, known from the start. One that has rules, or is built in, is asked of
the engine once for each choice of what is known, and its answers are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import LimitExceeded, ParseError
from lbm.relations.columns.queries import COMPARISONS, Absent, Column, Goal, Step, is_comparison, substitute
from lbm.relations.modes import Mode
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.engine import STEPS, solve
from lbm.relations.prolog.program import indicator
from lbm.relations.prolog.terms import (
    Compound,
    Term,
    Variable,
    arguments,
    is_ground,
    signature,
    write_short,
)
from lbm.relations.questions import Numbers, fits, reach, variable_name

ROWS: Final = 5_000_000
"""Solutions of one query, over all examples, that are kept at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Solutions:
    """All solutions of a query, for many examples.

    Attributes
    ----------
    names
        The variables.
    rows
        Shape (solutions, 1 + variables): the number of the example, then the number of each variable's term.
        No row is there twice.
    """

    names: tuple[str, ...]
    rows: Ints

    def values(self, name: str) -> Ints:
        """Return the numbers of one variable's terms, shape (solutions,)."""
        return self.rows[:, 1 + self.names.index(name)]

    def counts(self, examples: int) -> Ints:
        """Return how many solutions each example has, shape (examples,)."""
        return np.bincount(self.rows[:, 0], minlength=examples)


class Background:
    """What the background answers; terms are numbers here, and ``terms`` knows them.

    ``modes`` are the body modes that determinations allow and whose predicates have clauses, in order.
    """

    def __init__(self, problem: RelationalProblem, *, steps: int = STEPS, rows: int = ROWS) -> None:
        self.program = problem.background
        self.target = problem.target
        self.modes = tuple(
            mode
            for _, modes in problem.modes.for_target(problem.target)
            for mode in modes
            if mode.predicate in self.program.predicates or mode.predicate in BUILTINS
        )
        self.heads = tuple(mode for mode in problem.modes.head if mode.predicate == problem.target)
        self.steps = steps
        self.limit = rows
        self.numbers = Numbers()
        self.terms = self.numbers.terms
        self._tables: dict[tuple[Term, tuple[bool, ...]], dict[tuple[int, ...], Ints]] = {}
        self._magnitudes = np.zeros(0)

    # -- terms --

    def magnitudes(self, numbers: Ints) -> Floats:
        """Return the values of terms that are numbers, NaN for others."""
        if len(self._magnitudes) < len(self.terms):
            known = len(self._magnitudes)
            more = [float(term) if isinstance(term, int | float) else np.nan for term in self.terms[known:]]
            self._magnitudes = np.concatenate([self._magnitudes, more])
        return self._magnitudes[numbers]

    # -- examples --

    def head(self, example: Term) -> Mode:
        """Return the mode of the head that an example fits."""
        for mode in self.heads:
            if fits(mode, example):
                return mode
        wanted = f"an example that fits a mode of {indicator(self.target)}"
        raise ParseError(f"expected {wanted}, found {write_short(example)}")

    def start(self, examples: Sequence[Term]) -> Solutions:
        """Return the empty query's solutions: the arguments of each example, called A, B, ..."""
        modes = {self.head(example) for example in examples}
        if len(modes) > 1:
            raise ParseError(
                f"expected examples of one mode, found {len(modes)}: {' and '.join(map(str, modes))}"
            )
        paths = [place.path for mode in modes for place in mode.places]
        rows = [[self.numbers.of(reach(arguments(example), path)) for path in paths] for example in examples]
        table = np.array(rows, dtype=np.int64).reshape(len(examples), len(paths))
        numbers = np.arange(len(examples), dtype=np.int64)[:, None]
        return Solutions(
            tuple(map(variable_name, range(len(paths)))), np.concatenate([numbers, table], axis=1)
        )

    # -- columns --

    def evaluate(self, columns: Sequence[Column], examples: Sequence[Term]) -> Bools:
        """Return which columns are true of which examples, shape (examples, columns)."""
        place: dict[Term, int] = {}
        back = [place.setdefault(example, len(place)) for example in examples]
        unique = list(place)
        found = np.zeros((len(unique), len(columns)), dtype=bool)
        if not unique or not columns:
            return found[back]
        start = self.start(unique)
        # In this order queries that begin alike stand together, and only the tables of one are kept.
        order = sorted(range(len(columns)), key=lambda k: [str(step) for step in columns[k].steps])
        path: list[tuple[Step, Solutions]] = []
        for k in order:
            steps = columns[k].steps
            shared = 0
            while shared < min(len(path), len(steps)) and path[shared][0] == steps[shared]:
                shared += 1
            del path[shared:]
            for step in steps[shared:]:
                path.append((step, self.extend(path[-1][1] if path else start, step)))
            counts = (path[-1][1] if path else start).counts(len(unique))
            fewer = columns[k].fewer
            if fewer is None:
                found[:, k] = counts >= columns[k].least
            else:
                found[:, k] = counts > reduce(self.extend, fewer, start).counts(len(unique))
        return found[back]

    def extend(self, solutions: Solutions, step: Step) -> Solutions:
        """Return the solutions that a further step leaves, with its new variables."""
        if isinstance(step, Absent):
            tagged = Solutions(
                ("", *solutions.names), np.insert(solutions.rows, 1, np.arange(len(solutions.rows)), axis=1)
            )
            tagged = reduce(self.extend, step.goals, tagged)
            kept = np.ones(len(solutions.rows), dtype=bool)
            kept[tagged.values("")] = False
            return Solutions(solutions.names, solutions.rows[kept])
        named = [term.name for term in step.arguments if isinstance(term, Variable)]
        if is_comparison(step) and set(named) <= set(solutions.names):
            return self._compare(solutions, step)
        return self._join(solutions, step)

    def _compare(self, solutions: Solutions, goal: Goal) -> Solutions:
        left, right = (
            self.magnitudes(solutions.values(term.name))
            if isinstance(term, Variable)
            else np.full(len(solutions.rows), term if isinstance(term, int | float) else np.nan)
            for term in goal.arguments
        )
        assert isinstance(goal.template, Compound)
        kept = COMPARISONS[goal.template.functor](left, right)  # false where one is no number
        return Solutions(solutions.names, solutions.rows[kept])

    def _join(self, solutions: Solutions, goal: Goal) -> Solutions:
        """Join solutions with a literal's answers."""
        rows = solutions.rows
        known: dict[int, Ints] = {}
        first: dict[str, int] = {}
        for place, term in enumerate(goal.arguments):
            if not isinstance(term, Variable):
                known[place] = np.full(len(rows), self.numbers.of(term), dtype=np.int64)
            elif term.name in solutions.names:
                known[place] = solutions.values(term.name)
            else:
                first.setdefault(term.name, place)
        given = np.array(list(known.values()), dtype=np.int64).reshape(len(known), len(rows)).T
        distinct, back = np.unique(given, axis=0, return_inverse=True)
        bound = tuple(place in known for place in range(len(goal.arguments)))
        found = self._look_up(goal.template, bound, distinct)
        sizes = np.array([len(table) for table in found], dtype=np.int64)
        starts, each = (np.cumsum(sizes) - sizes)[back.reshape(-1)], sizes[back.reshape(-1)]
        if int(each.sum()) > self.limit:
            raise LimitExceeded(
                f"{goal} has more than {self.limit} answers over all examples: "
                "try shorter chains, or leave its mode out",
                rows=self.limit,
            )
        repeated = np.repeat(np.arange(len(rows)), each)
        answers = np.concatenate([*found, np.zeros((0, len(goal.arguments)), dtype=np.int64)])
        chosen = answers[np.repeat(starts - np.cumsum(each) + each, each) + np.arange(len(repeated))]
        kept = np.ones(len(chosen), dtype=bool)
        for place, term in enumerate(goal.arguments):  # a new variable that stands at two places is one term
            if isinstance(term, Variable) and term.name in first and first[term.name] != place:
                kept &= chosen[:, place] == chosen[:, first[term.name]]
        joined = np.concatenate([rows[repeated], chosen[:, list(first.values())]], axis=1)[kept]
        return Solutions((*solutions.names, *first), joined)

    def _look_up(self, template: Term, bound: tuple[bool, ...], given: Ints) -> list[Ints]:
        """Return the answers, shape (answers, places), for each choice, a row of ``given``."""
        is_whole = any(bound) and self.has_only_facts(template)
        table = self._tables.get((template, bound))
        if table is None:
            table = self._tables[template, bound] = self._grouped(template, bound) if is_whole else {}
        choices = list(map(tuple, given.tolist()))
        nothing = np.zeros((0, len(bound)), dtype=np.int64)
        for choice in choices:
            if choice not in table:
                table[choice] = nothing if is_whole else self._ask(template, bound, choice)
        return [table[choice] for choice in choices]

    def _grouped(self, template: Term, bound: tuple[bool, ...]) -> dict[tuple[int, ...], Ints]:
        """Return all answers of a literal by the terms at its places that are bound."""
        (rows,) = self._look_up(template, (False,) * len(bound), np.zeros((1, 0), dtype=np.int64))
        places = np.flatnonzero(bound)
        rows = rows[np.lexsort(rows[:, places].T[::-1])]
        starts = np.flatnonzero((rows[1:, places] != rows[:-1, places]).any(axis=1)) + 1
        parts = np.split(rows, starts) if len(rows) else []
        return {tuple(part[0, places].tolist()): part for part in parts}

    def has_only_facts(self, template: Term) -> bool:
        """Say whether a literal's predicate is defined by ground facts and nothing else."""
        name = signature(template)
        predicate = None if name is None else self.program.predicates.get(name)
        return predicate is not None and not predicate.rules

    def _ask(self, template: Term, bound: tuple[bool, ...], choice: tuple[int, ...]) -> Ints:
        """Return the engine's answers to a literal, shape (answers, places)."""
        left = iter(choice)
        values = {str(place): self.terms[next(left)] for place, is_bound in enumerate(bound) if is_bound}
        if not values and self.has_only_facts(template):
            return self._facts(template, len(bound))
        goal = substitute(template, values)
        rows = set()
        for answer in solve(self.program, goal, steps=self.steps, answers=1 if all(bound) else None):
            row = [values.get(str(place), answer.get(str(place), "")) for place in range(len(bound))]
            if not all(map(is_ground, row)):
                raise ParseError(
                    f"expected answers without variables to {write_short(goal)}, found one that has some"
                )
            rows.add(tuple(map(self.numbers.of, row)))
        return _as_table(rows, len(bound))

    def _facts(self, template: Term, places: int) -> Ints:
        """Return what the engine would answer to a literal of facts alone, without asking it."""
        name = signature(template)
        assert name is not None, "a predicate has a name"
        parts = arguments(template)
        rows = set()
        if all(isinstance(part, Variable) for part in parts):
            place = [int(part.name) for part in parts if isinstance(part, Variable)]
            for fact in self.program.facts(*name):
                row = [0] * places
                same = True
                for k, term in zip(place, fact, strict=True):
                    number = self.numbers.of(term)
                    same = same and row[k] in (0, number + 1)
                    row[k] = number + 1
                if same:
                    rows.add(tuple(number - 1 for number in row))
            return _as_table(rows, places)
        for answer in solve(self.program, template, steps=self.steps):
            rows.add(tuple(self.numbers.of(answer[str(k)]) for k in range(places)))
        return _as_table(rows, places)


def _as_table(rows: set[tuple[int, ...]], places: int) -> Ints:
    flat = list(chain.from_iterable(sorted(rows)))
    return np.array(flat, dtype=np.int64).reshape(len(rows), places)
