"""Modes (the language bias): what may stand in a bottom clause, as Aleph and Progol write it.

:- modeh(1, active(+drug)).                      the head
:- modeb(*, bond(+drug, -atom, -atom, #kind)).   a body literal: input, output and constant arguments
:- determination(active/1, bond/4).              which predicates may define which
:- set(i, 3).                                    settings
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lbm.relations.prolog.program import Signature, head_and_body
from lbm.relations.prolog.reader import Clause
from lbm.relations.prolog.terms import Compound, Term, Variable, arguments, signature, write, write_short

INPUT, OUTPUT, CONSTANT = "+-#"

MAX_DEPTH: Final = 50
"""Terms inside one another in a mode."""

_SIGNS: Final = frozenset({INPUT, OUTPUT, CONSTANT})
_SILENT: Final = frozenset(
    "op dynamic discontiguous multifile style_check use_module ensure_loaded initialization table module "
    "set_prolog_flag if elif else endif use_rendering aleph aleph_read_all begin_bg end_bg begin_in_pos "
    "end_in_pos begin_in_neg end_in_neg".split()
)


_MARKED = re.compile(r"([-+#])\((\w+)\)")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a mode: the way to it (argument numbers from 0, outermost first), its sign and its type."""

    path: tuple[int, ...]
    sign: str
    type: Term


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode: ``template`` is the literal with ``+type``, ``-type`` and ``#type`` in it.

    Attributes
    ----------
    recall
        How many answers are taken for each choice of inputs; None, written ``*``: all.
    places
        Where the template holds a sign, from left to right.
    negated
        It was written ``not(...)``; the template is what stands inside.
    clause
        The directive as it was read.
    """

    recall: int | None
    template: Term
    places: tuple[Place, ...]
    negated: bool
    clause: Clause = field(compare=False)

    @property
    def predicate(self) -> Signature:
        """Return the name and the arity of the literal."""
        found = signature(self.template)
        assert found is not None, "read_modes lets nothing else through"
        return found

    def at(self, sign: str) -> tuple[Place, ...]:
        """Return the places of one sign."""
        return tuple(place for place in self.places if place.sign == sign)

    def __str__(self) -> str:
        recall = "*" if self.recall is None else self.recall
        shown = _MARKED.sub(r"\1\2", write(self.template))  # for people: +person, where terms print +(person)
        return f"{recall}, not({shown})" if self.negated else f"{recall}, {shown}"


@dataclass(frozen=True, slots=True)
class Determination:
    """``predicate`` may stand in clauses for ``target``."""

    target: Signature
    predicate: Signature
    clause: Clause = field(compare=False)


@dataclass(frozen=True, slots=True)
class Modes:
    """Modes of heads and bodies, determinations and settings, in the order of the file."""

    head: tuple[Mode, ...] = ()
    body: tuple[Mode, ...] = ()
    determinations: tuple[Determination, ...] = ()
    settings: Mapping[str, Term] = field(default_factory=dict)

    def for_target(self, target: Signature) -> tuple[tuple[Signature, tuple[Mode, ...]], ...]:
        """Return the predicates that may define ``target`` with their body modes, in order of determination.

        Without a single determination every body mode counts, in the order of first appearance.
        """
        modes: dict[Signature, list[Mode]] = {}
        for mode in self.body:
            modes.setdefault(("not", 1) if mode.negated else mode.predicate, []).append(mode)
        if self.determinations:
            named = dict.fromkeys(one.predicate for one in self.determinations if one.target == target)
        else:
            named = dict.fromkeys(modes)
        return tuple((name, tuple(modes[name])) for name in named if name in modes)


def read_modes(clauses: Iterable[Clause]) -> tuple[Modes, list[str]]:
    """Return the modes, determinations and settings among some directives, and warnings about other ones.

    Clauses that are no directives are left alone.
    """
    head: dict[Mode, None] = {}
    body: dict[Mode, None] = {}
    determinations: dict[Determination, None] = {}
    settings: dict[str, Term] = {}
    warnings: list[str] = []
    for clause in clauses:
        found, directive = head_and_body(clause)
        if found is not None:
            continue
        name = signature(directive)
        match name:
            case ("modeh" | "modeb" | "mode" as kind, 2):
                mode = _mode(directive, clause)
                if kind != "modeb":
                    head.setdefault(mode)
                if kind != "modeh":
                    body.setdefault(mode)
            case ("determination", 2):
                target, predicate = (_indicated(part, clause) for part in arguments(directive))
                determinations.setdefault(Determination(target, predicate, clause))
            case ("set" | "aleph_set", 1 | 2):
                setting = arguments(directive)
                if not isinstance(setting[0], str):
                    raise clause.error(f"expected set(name, value), found {write_short(directive)}")
                settings[setting[0]] = setting[1] if len(setting) == 2 else "true"
            case _ if name is not None and name[0] in _SILENT:
                pass
            case _:
                warnings.append(f"{clause.place}: the directive {write_short(directive)} is not used")
    return Modes(tuple(head), tuple(body), tuple(determinations), settings), warnings


def _mode(directive: Term, clause: Clause) -> Mode:
    recall, template = arguments(directive)
    if recall != "*" and not (isinstance(recall, int) and recall >= 1):
        raise clause.error(f"expected a recall of 1 or more, or *, found {write_short(recall)}")
    negated = signature(template) in (("not", 1), ("\\+", 1))
    if negated:
        (template,) = arguments(template)
    if signature(template) is None:
        raise clause.error(f"expected a literal such as bond(+atom,-atom), found {write_short(template)}")
    places = []
    todo: list[tuple[tuple[int, ...], Term]] = [((), template)]
    while todo:
        path, part = todo.pop()
        if len(path) > MAX_DEPTH:
            raise clause.error(f"expected at most {MAX_DEPTH} terms inside one another in a mode, found more")
        if isinstance(part, Variable):
            raise clause.error(f"expected +type, -type, #type or a constant, found the variable {part.name}")
        if path and isinstance(part, Compound) and part.functor in _SIGNS and len(part.arguments) == 1:
            places.append(Place(path, part.functor, part.arguments[0]))
        elif path and part in _SIGNS:
            raise clause.error(
                f"expected a type after {part}, as in {part}atom, found none in {write_short(template)}"
            )
        elif isinstance(part, Compound):
            todo += [((*path, k), part.arguments[k]) for k in reversed(range(len(part.arguments)))]
    number = recall if isinstance(recall, int) else None
    return Mode(number, template, tuple(places), negated, clause)


def _indicated(term: Term, clause: Clause) -> Signature:
    if signature(term) == ("/", 2):
        name, arity = arguments(term)
        if isinstance(name, str) and isinstance(arity, int) and arity >= 0:
            return name, arity
    raise clause.error(f"expected a predicate such as bond/4, found {write_short(term)}")
