r"""Comparison: what each of two objects is like, and which of the two has more of it.

An attribute is a chain of literals from an object to a term, such as ``ring_subst_2(A,C), polar(C,D)``. For
two objects of one type, A and B, there are columns for

    the term of each       ring_subst_2(A,C), polar(C,polar3)
    one has it, one not    r_subst_1(A,h), \+ r_subst_1(B,h)
    which is greater       polar of A and of B, great_polar(D,F); numbers by >
    which has more         count(...) > count(...)

Orders of constants are those of the background: predicates of two arguments of one type whose facts, followed
from term to term, never come back to where they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

import numpy as np

from lbm.relations.columns.answers import Background, Solutions
from lbm.relations.columns.grow import Grower, Harvest, Language, Query
from lbm.relations.columns.queries import Absent, Column, Goal, Step, comparison, goal_of, rename
from lbm.relations.modes import Mode
from lbm.relations.prolog.terms import Term, Variable, arguments, key, write
from lbm.relations.questions import reach, variable_name

OBJECT: Final = "A"
"""What the object is called in its attributes."""


Attribute = tuple[Query, int]
"""A chain from an object to a term, and the number of that term's variable."""


def comparison_columns(
    answers: Background, examples: Sequence[Term], labels: Sequence[bool], language: Language
) -> list[Column]:
    """Return the columns that compare the two objects of examples; no two always agree, or never."""
    unique = dict(zip(examples, labels, strict=True))
    head = answers.head(next(iter(unique)))
    first, second = _pair(head)
    paths = [place.path for place in head.places]
    met = [reach(arguments(example), paths[k]) for example in unique for k in (first, second)]
    objects = list({key(term): term for term in met}.values())
    compared = _Compared(answers, dict(_orders(answers)), language)
    columns: list[Column] = []
    for attribute in compared.attributes(objects, head.places[first].type):
        columns += compared.columns(attribute, _sides(attribute, first, second, len(head.places)))
    columns = list(dict.fromkeys(columns))
    table = answers.evaluate(columns, list(unique))
    harvest = Harvest(np.array(list(unique.values()), dtype=bool), language)
    for k, column in enumerate(columns):
        harvest.add(column, table[:, k])
    return list(harvest.columns.values())


def _pair(head: Mode) -> tuple[int, int]:
    """Return the places of the two objects: the first two of one type."""
    types = [place.type for place in head.places]
    for first, kind in enumerate(types):
        if kind in types[first + 1 :]:
            return first, types.index(kind, first + 1)
    raise head.clause.error(
        f"expected a target over two objects of one type, found {write(head.template)}: "
        "try features='constants'"
    )


def _orders(answers: Background) -> Iterator[tuple[Term, Mode]]:
    """Yield types with a mode that orders them: its facts have no way back."""
    for mode in answers.modes:
        places = mode.places
        if len(places) != 2 or mode.predicate[1] != 2 or mode.negated or places[0].type != places[1].type:
            continue
        if answers.program.rules(*mode.predicate):
            continue
        below: dict[object, set[object]] = {}
        for greater, less in answers.program.facts(*mode.predicate):
            below.setdefault(key(greater), set()).add(key(less))
        try:
            TopologicalSorter(below).prepare()
        except CycleError:
            continue
        if below:
            yield places[0].type, mode


Side = tuple[tuple[Step, ...], Variable]
"""An attribute of one of the two objects: the query, and the variable of its term."""


def _sides(attribute: Attribute, first: int, second: int, arity: int) -> tuple[Side, Side]:
    """Return an attribute's query about the first object and the second, with variables of their own."""
    query, number = attribute
    inner = [name for name in query.solutions.names if name != OBJECT]
    found = []
    for side, place in enumerate((first, second)):
        names = {OBJECT: Variable(variable_name(place))}
        for k, name in enumerate(inner):
            names[name] = Variable(variable_name(arity + side * len(inner) + k))
        found.append((rename(query.steps, names), names[variable_name(number)]))
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class _Compared:
    """What two objects are compared by: what the background answers, and its orders of constants by type."""

    answers: Background
    orders: dict[Term, Mode]
    language: Language

    def attributes(self, objects: Sequence[Term], kind: Term) -> Iterator[Attribute]:
        """Yield every chain of literals from an object to a term that some object has."""
        ordering = {mode.predicate for mode in self.orders.values()}
        modes = [mode for mode in self.answers.modes if mode.predicate not in ordering]
        rows = [[k, self.answers.numbers.of(term)] for k, term in enumerate(objects)]
        grower = Grower(self.answers, 1, 1, self.language.cuts)
        opened = [Query((), (kind,), Solutions((OBJECT,), np.array(rows, np.int64).reshape(-1, 2)))]
        for _ in range(self.language.size):
            grown = [
                (child, len(parent.types))
                for parent in opened
                for mode in modes
                for child in grower.children(parent, mode)
            ][: self.language.width]
            for child, old in grown:
                for k in range(min(old, len(child.types) - 1), len(child.types)):
                    yield child, k
            opened = [child for child, _ in grown]

    def columns(self, attribute: Attribute, sides: tuple[Side, Side]) -> Iterator[Column]:
        """Yield the columns that an attribute gives."""
        query, number = attribute
        name, kind = variable_name(number), query.types[number]
        distinct = np.unique(query.solutions.values(name))
        are_numbers = bool(np.isfinite(self.answers.magnitudes(distinct)).all())
        for (mine, here), (other, there) in (sides, sides[::-1]):
            if name != OBJECT:
                if are_numbers:
                    yield Column((*mine, *other, comparison(here, ">", there)))
                elif kind in self.orders:
                    yield Column((*mine, *other, goal_of(self.orders[kind], (here, there))))
                if len(distinct) <= self.language.constants:
                    for term in (self.answers.terms[place] for place in distinct.tolist()):
                        mine_too = rename(mine, {here.name: term})
                        yield Column(mine_too)
                        yield Column((*mine_too, *_absent(rename(other, {there.name: term}))))
            yield Column((*mine, *_absent(other)))
            if query.solutions.counts(0).max(initial=0) > 1:
                yield Column(mine, fewer=other)


def _absent(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the step that says a query has no answer; a query that says so of a part already gives none."""
    goals = [step for step in steps if isinstance(step, Goal)]
    return (Absent(tuple(goals)),) if len(goals) == len(steps) else ()
