"""Variables while goals are solved: cells that are bound and freed again, and rules as templates of terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union

from lbm.relations.prolog.program import ProgramRule
from lbm.relations.prolog.terms import Compound, Term, Variable, rebuilt


class Cell:
    """A variable of a running proof: unbound, or another value."""

    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content: Value | None = None


Value = Union[str, int, float, Compound, Variable, Cell]  # noqa: UP007
"""A term while goals are solved: cells may stand inside compound terms."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The number of a rule's variable."""

    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A compound term with slots in it."""

    functor: str
    arguments: tuple[Template, ...]


Template = Union[str, int, float, Compound, Variable, Slot, Shape]  # noqa: UP007
Frame = list[Any]
"""The values of a rule's variables; None: not met yet. The last entry is the rule, for messages."""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A rule with slots for variables."""

    head: tuple[Template, ...]
    body: Template
    size: int


@lru_cache(maxsize=10_000)
def compile_rule(rule: ProgramRule) -> Compiled:
    """Return a rule as templates."""
    slots: dict[str, Slot] = {}
    head = to_template(rule.head, slots)
    body = to_template(rule.body, slots)
    given = head.arguments if isinstance(head, Compound | Shape) else ()
    return Compiled(tuple(given), body, len(slots))


def to_template(term: Term, slots: dict[str, Slot]) -> Template:
    """Return a term with slots for its variables; parts without variables stay as they are."""

    def look(part: Term) -> Template:
        return slots.setdefault(part.name, Slot(len(slots))) if isinstance(part, Variable) else part

    def make(part: Compound, given: tuple[Template, ...]) -> Template:
        return Shape(part.functor, given) if any(isinstance(one, Slot | Shape) for one in given) else part

    found: Template = rebuilt(term, look, make)
    return found


class Bindings:
    """What is bound, and in which order, so that it can be undone."""

    __slots__ = ("trail",)

    def __init__(self) -> None:
        self.trail: list[Cell] = []

    def mark(self) -> int:
        """Return a place to come back to."""
        return len(self.trail)

    def undo(self, mark: int) -> None:
        """Free what was bound since a mark was taken."""
        trail = self.trail
        while len(trail) > mark:
            trail.pop().content = None

    def value(self, term: Value) -> Value:
        """Return what a term stands for: no bound cell."""
        while type(term) is Cell and term.content is not None:
            term = term.content
        return term

    def bind(self, cell: Cell, term: Value) -> bool:
        """Bind an unbound cell, unless the term holds it: no term is inside itself."""
        if isinstance(term, Compound) and self.holds_cell(term, cell):
            return False
        cell.content = term
        self.trail.append(cell)
        return True

    def holds_cell(self, term: Value, cell: Cell | None = None) -> bool:
        """Say whether a term holds an unbound cell: this one, or without one, any."""
        todo: list[Any] = [term]
        while todo:
            part = self.value(todo.pop())
            if type(part) is Cell:
                if cell is None or part is cell:
                    return True
            elif type(part) is Compound:
                todo.extend(one for one in part.arguments if isinstance(one, Cell | Compound))
        return False

    def unify(self, one: Value, other: Value) -> bool:
        """Make two terms equal; say whether it can be done. What was bound stays bound either way."""
        pairs: list[tuple[Any, Any]] = [(one, other)]
        while pairs:
            left, right = pairs.pop()
            left, right = self.value(left), self.value(right)
            if left is right:
                continue
            if type(left) is Cell:
                if not self.bind(left, right):
                    return False
            elif type(right) is Cell:
                if not self.bind(right, left):
                    return False
            elif type(left) is not type(right):
                return False
            elif isinstance(left, Compound) and isinstance(right, Compound):
                if left.functor != right.functor or len(left.arguments) != len(right.arguments):
                    return False
                pairs.extend(zip(left.arguments, right.arguments, strict=True))
            elif left != right:
                return False
        return True

    def match(self, template: Template, term: Value, frame: Frame) -> bool:
        """Unify a template of a rule with a term, noting the rule's variables in its frame."""
        pairs: list[tuple[Any, Any]] = [(template, term)]
        while pairs:
            part, other = pairs.pop()
            other = self.value(other)
            kind = type(part)
            if kind is Slot:
                known = frame[part.number]
                if known is None:
                    frame[part.number] = other
                elif not self.unify(known, other):
                    return False
            elif type(other) is Cell:
                if not self.bind(other, self.build(part, frame)):
                    return False
            elif kind is Shape:
                if (
                    type(other) is not Compound
                    or other.functor != part.functor
                    or len(other.arguments) != len(part.arguments)
                ):
                    return False
                # The first argument is looked at first: it fails soonest.
                pairs.extend(zip(reversed(part.arguments), reversed(other.arguments), strict=True))
            elif kind is Compound:
                if not self.unify(part, other):
                    return False
            elif kind is not type(other) or part != other:
                return False
        return True

    def build(self, template: Template, frame: Frame) -> Value:
        """Return the term of a template, with new cells for variables not met before."""

        def look(part: Template) -> Any:
            if type(part) is not Slot:
                return part
            if frame[part.number] is None:
                frame[part.number] = Cell()
            return frame[part.number]

        def make(part: Shape, given: tuple[Any, ...]) -> Compound:
            return Compound(part.functor, given)

        found: Value = rebuilt(template, look, make, Shape) if type(template) is Shape else look(template)
        return found

    def resolve(self, term: Value, names: dict[Cell, Variable] | None = None) -> Any:
        """Return a term without bound cells; unbound ones stay, or are the variables that ``names`` notes."""
        term = self.value(term)
        if type(term) is str:  # as most are
            return term

        def look(part: Value) -> Value:
            part = self.value(part)
            if names is None or type(part) is not Cell:
                return part
            return names.setdefault(part, Variable(f"_{len(names)}"))

        def make(part: Compound, given: tuple[Any, ...]) -> Compound:
            kept = all(one is before for one, before in zip(given, part.arguments, strict=True))
            return part if kept else Compound(part.functor, given)

        return rebuilt(term, look, make)

    def copied(self, term: Value) -> Any:
        """Return a term with new cells for those that are unbound."""
        fresh: dict[Cell, Cell] = {}

        def look(part: Value) -> Value:
            part = self.value(part)
            return fresh.setdefault(part, Cell()) if type(part) is Cell else part

        def make(part: Compound, given: tuple[Any, ...]) -> Compound:
            kept = all(one is before for one, before in zip(given, part.arguments, strict=True))
            return part if kept else Compound(part.functor, given)

        return rebuilt(self.value(term), look, make)

    def cells(self, term: Value) -> list[Cell]:
        """Return the unbound cells of a term, in order of appearance."""
        found: dict[Cell, None] = {}
        todo: list[Any] = [term]
        while todo:
            part = self.value(todo.pop())
            if type(part) is Cell:
                found.setdefault(part)
            elif type(part) is Compound:
                todo.extend(reversed(part.arguments))
        return list(found)
