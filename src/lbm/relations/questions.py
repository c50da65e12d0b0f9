"""A body mode put to the background: which literals hold for given inputs.

A term met with a type has a number, the same in all examples of a problem. So the answers to a question are
literals that are ready for every clause: a text with holes, and the numbers of the terms that fill them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from lbm.relations.modes import CONSTANT, INPUT, OUTPUT, Mode, Place
from lbm.relations.prolog.bindings import Bindings, Template, to_template
from lbm.relations.prolog.engine import solve
from lbm.relations.prolog.program import Program
from lbm.relations.prolog.terms import (
    BETWEEN,
    Compound,
    Term,
    Variable,
    arguments,
    is_ground,
    key,
    write,
    write_operand,
    write_short,
)

REMEMBERED: Final = 100_000
"""Calls of one mode whose answers are remembered."""

_MARK: Final = "\0"  # stands in no text that a mode can have: it would be written as an escape

Literal = tuple[str, tuple[int, ...]]
"""A text with ``%s`` for each variable, and the numbers of the terms they stand for."""


@dataclass(slots=True)
class Numbers:
    """Terms with their types, by number."""

    known: dict[tuple[object, Term], int] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)

    def of(self, term: Term, kind: Term = "") -> int:
        """Return the number of a term met with a type."""
        name = (key(term), kind)
        number = self.known.get(name)
        if number is None:
            number = self.known[name] = len(self.terms)
            self.terms.append(term)
        return number


class Match(NamedTuple):
    """A literal that holds, and the terms it gives as outputs and as constants."""

    literal: Literal
    outputs: tuple[int, ...]
    constants: tuple[int, ...]


class Caller:
    """One body mode, and what the background answered so far."""

    def __init__(self, mode: Mode, background: Program, numbers: Numbers, steps: int) -> None:
        self.mode = mode
        self.background = background
        self.numbers = numbers
        self.steps = steps
        self.inputs, self.outputs, self.constants = (mode.at(sign) for sign in (INPUT, OUTPUT, CONSTANT))
        self.types = tuple(place.type for place in self.inputs)
        self.form = Form(mode)
        self.remembered: dict[tuple[int, ...], list[Match]] = {}

        # Facts are looked up, if nothing but arguments themselves is asked for; anything else is proved.
        predicate = background.predicates.get(mode.predicate)
        flat = all(len(place.path) == 1 for place in mode.places)
        self.table = predicate if predicate and flat and not predicate.rules and not mode.negated else None
        holes = {place.path[0] for place in mode.places}
        self.fixed = {k: part for k, part in enumerate(arguments(mode.template)) if k not in holes}
        self.asked = tuple(sorted([place.path[0] for place in self.inputs] + list(self.fixed)))

    def matches(self, given: tuple[int, ...]) -> Sequence[Match]:
        """Return what holds for the numbers of some inputs, at most as many answers as the recall says."""
        found = self.remembered.get(given)
        if found is None:
            if len(self.remembered) >= REMEMBERED:
                self.remembered.clear()
            terms = [self.numbers.terms[number] for number in given]
            found = self.remembered[given] = [self._match(atom) for atom in self._atoms(terms)]
        return found

    def _match(self, atom: tuple[Term, ...]) -> Match:
        outputs, constants = (
            tuple([self.numbers.of(reach(atom, place.path), place.type) for place in places])
            for places in (self.outputs, self.constants)
        )
        return Match(self.form.literal(atom, self.numbers), outputs, constants)

    def _atoms(self, given: Sequence[Term]) -> Iterator[tuple[Term, ...]]:
        """Yield the arguments of each atom that holds."""
        if self.table is None:
            yield from self._proved(given)
            return
        values = {place.path[0]: term for place, term in zip(self.inputs, given, strict=True)} | self.fixed
        rows = self.table.rows(self.asked, tuple([key(values[k]) for k in self.asked]))
        for row in rows[: self.mode.recall]:
            yield self.table.facts[row]

    def _proved(self, given: Sequence[Term]) -> Iterator[tuple[Term, ...]]:
        mode = self.mode
        filling = {place.path: term for place, term in zip(self.inputs, given, strict=True)}
        names = {place.path: f"V{'_'.join(map(str, place.path))}" for place in self.outputs + self.constants}
        goal = fill(mode.template, filling | {path: Variable(name) for path, name in names.items()})
        asked = Compound("\\+", (goal,)) if mode.negated else goal
        for answer in solve(self.background, asked, steps=self.steps, answers=mode.recall):
            found = {path: answer[name] for path, name in names.items()}
            atom = arguments(fill(mode.template, filling | found))
            if not all(map(is_ground, atom)):
                shown = write_short(Compound(mode.predicate[0], atom))
                message = f"expected answers without variables, found {shown} for the mode ({mode})"
                raise mode.clause.error(message)
            yield atom


def variable_name(number: int) -> str:
    """Return the name of a variable by its number, counted from 0.

    >>> variable_name(0), variable_name(25), variable_name(26), variable_name(60)
    ('A', 'Z', 'A1', 'I2')
    """
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"


class Form:
    """The text of a mode's literals."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        marks = {place.path: Variable(f"{_MARK}{number}{_MARK}") for number, place in enumerate(mode.places)}
        term = fill(mode.template, marks)
        parts = write(Compound("not", (term,)) if mode.negated else term).split(_MARK)
        self.texts = [part.replace("%", "%%") for part in parts[::2]]
        self.places = [mode.places[int(number)] for number in parts[1::2]]
        self.beside = [_beside_operator(mode, place) for place in self.places]
        self.variables = [place for place in self.places if place.sign != CONSTANT]
        self.text = "%s".join(self.texts)

    def literal(self, atom: tuple[Term, ...], numbers: Numbers) -> Literal:
        """Return an atom with numbers for the terms that become variables."""
        inside = tuple([numbers.of(reach(atom, place.path), place.type) for place in self.variables])
        if len(inside) == len(self.places):
            return self.text, inside
        shown = [self.texts[0]]
        for text, place, beside in zip(self.texts[1:], self.places, self.beside, strict=True):
            if place.sign == CONSTANT:
                term = reach(atom, place.path)
                shown.append((write_operand(term) if beside else write(term)).replace("%", "%%"))
            else:
                shown.append("%s")
            shown.append(text)
        return "".join(shown), inside


def _beside_operator(mode: Mode, place: Place) -> bool:
    parent: Term = mode.template
    for number in place.path[:-1]:
        parent = arguments(parent)[number]
    return isinstance(parent, Compound) and parent.functor in BETWEEN and len(parent.arguments) == 2


def reach(atom: tuple[Term, ...], path: tuple[int, ...]) -> Term:
    """Return the term at a place of an atom."""
    term = atom[path[0]]
    for number in path[1:]:
        term = arguments(term)[number]
    return term


def fill(template: Term, values: Mapping[tuple[int, ...], Any], path: tuple[int, ...] = ()) -> Term:
    """Return a mode's literal with values at its places; it recurses, and modes are not deep (MAX_DEPTH)."""
    if path in values:
        value: Term = values[path]
        return value
    if not isinstance(template, Compound):
        return template
    return Compound(
        template.functor, tuple(fill(part, values, (*path, k)) for k, part in enumerate(template.arguments))
    )


def fits(mode: Mode, example: Term) -> bool:
    """Say whether an example has the form of a mode."""
    return Bindings().match(_pattern(mode), example, [None] * len(mode.places))


@lru_cache(maxsize=1000)
def _pattern(mode: Mode) -> Template:
    places = {place.path: Variable(str(number)) for number, place in enumerate(mode.places)}
    return to_template(fill(mode.template, places), {})
