r"""Queries: what a column asks of an example, as frozen data with a text that Prolog people can read.

    publication(C,A), publication(C,B)           it has an answer
    lumo(A,B), B =< -1.2                         the same, with a number compared
    r_subst_1(A,h), \+ r_subst_1(B,h)            the part after \+ has none
    count(atm(A,B,c,22,C)) >= 3                  it has at least so many answers
    count(bond(A,C,D,1)) > count(bond(B,C,D,1))  it has more answers than another one

A, B, ... are the arguments of the example, in order; the other variables are any terms. Two answers are two
if one of the other variables differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.errors import ParseError
from lbm.relations.modes import MAX_DEPTH, Mode
from lbm.relations.prolog.reader import read_term
from lbm.relations.prolog.terms import (
    Compound,
    Term,
    Variable,
    arguments,
    is_ground,
    rebuilt,
    signature,
    write,
    write_short,
)
from lbm.relations.questions import fill

COMPARISONS: Final = {"=<": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater}
"""Predicates of numbers that queries compare with; they are computed, not looked up."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A literal: a template whose variables are the names of places, "0", "1", ..., and what stands there."""

    template: Term
    arguments: tuple[Term, ...]

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The literals of this part of a query."""
        return (self,)

    @property
    def literal(self) -> Term:
        """Return the literal as a term."""
        return substitute(self.template, {str(k): term for k, term in enumerate(self.arguments)})

    def renamed(self, names: Mapping[str, Term]) -> Goal:
        """Return the literal with terms put for some of its variables."""

        def named(term: Term) -> Term:  # what stands at a place is a variable or has none
            return names.get(term.name, term) if isinstance(term, Variable) else term

        return Goal(self.template, tuple(map(named, self.arguments)))

    def __str__(self) -> str:
        if is_comparison(self):
            assert isinstance(self.template, Compound)
            left, right = map(write, self.arguments)
            return f"{left} {self.template.functor} {right}"
        return write(self.literal)


@dataclass(frozen=True, slots=True)
class Absent:
    r"""Goals that have no common answer: ``\+`` of them all. Variables that nothing else has are theirs."""

    goals: tuple[Goal, ...]

    def renamed(self, names: Mapping[str, Term]) -> Absent:
        """Return the goals with terms put for some of their variables."""
        return Absent(tuple(goal.renamed(names) for goal in self.goals))

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.goals))
        return f"\\+ {inside}" if len(self.goals) == 1 else f"\\+ ({inside})"


Step = Goal | Absent
"""A part of a query; variables of a step are known to all later ones."""


@dataclass(frozen=True, slots=True)
class Column:
    """A question about an example that is true or false; ``str()`` is its name.

    Attributes
    ----------
    steps
        The query, from left to right.
    least
        How many answers it needs.
    fewer
        A second query, if the answers of the first are to outnumber those of this one.
    """

    steps: tuple[Step, ...]
    least: int = 1
    fewer: tuple[Step, ...] | None = None

    @property
    def size(self) -> int:
        """Return how many literals it has, without comparisons of numbers."""
        return sum(isinstance(step, Absent) or not is_comparison(step) for step in self.steps)

    def __str__(self) -> str:
        shown = show(self.steps)
        if self.fewer is not None:
            return f"count({shown}) > count({show(self.fewer)})"
        return shown if self.least == 1 else f"count({shown}) >= {self.least}"


def is_comparison(goal: Goal) -> bool:
    """Say whether a goal compares two numbers."""
    template = goal.template
    return isinstance(template, Compound) and template.functor in COMPARISONS and len(goal.arguments) == 2


def show(steps: Iterable[Step]) -> str:
    """Return the text of a query."""
    return ", ".join(map(str, steps))


def goal_of(mode: Mode, arguments: Iterable[Term]) -> Goal:
    """Return the literal of a mode with these terms at its places, from left to right.

    >>> from lbm.relations.modes import read_modes
    >>> from lbm.relations.prolog.reader import read_clauses
    >>> modes, _ = read_modes(read_clauses(":- modeb(*, atm(+drug, -atom, #element))."))
    >>> print(goal_of(modes.body[0], [Variable("A"), Variable("B"), "c"]))
    atm(A,B,c)
    """
    places = {place.path: Variable(str(k)) for k, place in enumerate(mode.places)}
    return Goal(fill(mode.template, places), tuple(arguments))


def comparison(left: Term, sign: str, right: Term) -> Goal:
    """Return the goal that compares two numbers.

    >>> print(comparison(Variable("B"), "=<", -1.2))
    B =< -1.2
    """
    return Goal(Compound(sign, (Variable("0"), Variable("1"))), (left, right))


def read_column(text: str) -> Column:
    r"""Return the column that a text names.

    >>> for text in ("p(A,B), B =< 2, \\+ q(B)", "count(p(A,B)) >= 2", "count(p(A,C)) > count(p(B,C))"):
    ...     print(read_column(text))
    p(A,B), B =< 2, \+ q(B)
    count(p(A,B)) >= 2
    count(p(A,C)) > count(p(B,C))
    """
    term = read_term(text)
    if isinstance(term, Compound) and term.functor in (">", ">=") and len(term.arguments) == 2:
        left, right = term.arguments
        if _is_count(left) and _is_count(right) and term.functor == ">":
            return Column(_read_steps(arguments(left)), fewer=_read_steps(arguments(right)))
        if _is_count(left) and isinstance(right, int) and right >= 1 and term.functor == ">=":
            return Column(_read_steps(arguments(left)), least=right)
    return Column(_read_steps((term,)))


def _is_count(term: Term) -> bool:
    return isinstance(term, Compound) and term.functor == "count"


def _read_steps(terms: Iterable[Term]) -> tuple[Step, ...]:
    """Return the steps of conjunctions, one after the other."""
    found: list[Step] = []
    todo = list(terms)[::-1]
    while todo:
        term = todo.pop()
        name = signature(term)
        if name == (",", 2):
            todo.extend(reversed(arguments(term)))
        elif name in (("\\+", 1), ("not", 1)):
            inside = _read_steps(arguments(term))
            goals = tuple(step for step in inside if isinstance(step, Goal))
            if len(goals) < len(inside):
                raise ParseError(f"expected literals after \\+, found another \\+ in {write_short(term)}")
            found.append(Absent(goals))
        elif name is None or name[0] in (";", "->"):
            raise ParseError(f"expected literals, separated by commas, found {write_short(term)}")
        else:
            found.append(_read_goal(term))
    return tuple(found)


def _read_goal(literal: Term) -> Goal:
    """Return a literal as a goal: a place for each argument, or for what such a term with variables holds."""
    given: list[Term] = []

    def place(term: Term) -> Variable:
        given.append(term)
        return Variable(str(len(given) - 1))

    def opened(term: Term) -> Term:
        if not isinstance(term, Compound) or is_ground(term):
            return place(term)
        return Compound(term.functor, tuple(map(opened, term.arguments)))

    if not isinstance(literal, Compound):
        return Goal(literal, ())
    depth = rebuilt(
        literal, lambda part: part if isinstance(part, Compound) else 0, lambda _, inside: 1 + max(inside)
    )
    if depth > MAX_DEPTH:
        raise ParseError(f"expected at most {MAX_DEPTH} terms inside one another, found more in a query")
    return Goal(Compound(literal.functor, tuple(map(opened, literal.arguments))), tuple(given))


def rename(steps: Iterable[Step], names: Mapping[str, Term]) -> tuple[Step, ...]:
    """Return a query with terms put for some of its variables."""
    return tuple(step.renamed(names) for step in steps)


def substitute(term: Term, values: Mapping[str, Term]) -> Term:
    """Return a template with values for its variables; it recurses, and templates are modes, not deep."""
    if isinstance(term, Variable):
        return values.get(term.name, term)
    if isinstance(term, Compound):
        return Compound(term.functor, tuple(substitute(part, values) for part in term.arguments))
    return term
