"""Popper's bias -> modes: which predicates a rule may use, with the types and directions of their arguments.

    head_pred(f,2). body_pred(p,2). type(p,(a,b)). direction(p,(in,out)). max_body(4).

is read as

    :- modeh(*,f(...)). :- modeb(*,p(+a,-b)). :- determination(f/2,p/2). :- set(max_body,4).

An argument without a direction may be input or output: there is a mode for each choice of one input, the
others outputs. The file is one of answer set programming, which is nearly Prolog: facts and rules that derive
them are obeyed, and what is not Prolog (constraints with ``#count``, choices, intervals) is skipped by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lbm.errors import FileError, LimitExceeded, ParseError
from lbm.knowledge.packed import read_lines
from lbm.relations.prolog.engine import solve
from lbm.relations.prolog.operators import Operators
from lbm.relations.prolog.program import Program, Signature, goals_of, head_and_body, indicator, make_program
from lbm.relations.prolog.reader import Clause, read_tokens
from lbm.relations.prolog.terms import Compound, Term, Variable, arguments, signature, write_short
from lbm.relations.prolog.tokens import SIGN, Text, Token, clauses_of

STEPS: Final = 100_000
"""Goals that may be called to derive one answer of a bias."""

_SETTINGS: Final = (("max_vars", 1), ("max_body", 1), ("max_clauses", 1))
_READ: Final = {("head_pred", 2), ("body_pred", 2), ("type", 2), ("direction", 2), *_SETTINGS}
_WITHOUT_EFFECT: Final = {
    ("enable_recursion", 0): "clauses found here do not call themselves",
    ("enable_pi", 0): "no predicates are invented here",
    ("allow_singletons", 0): "",
    ("non_datalog", 0): "",
}


def read_bias(path: Path | str) -> tuple[list[Clause], list[str]]:
    """Return the directives that a bias stands for, and warnings about what of it is not used."""
    source = str(path)
    clauses, warnings = _read(path, source)
    program = make_program([*clauses, *_empty()])
    heads = _predicates(program, "head_pred", clauses, source)
    if len(heads) != 1:
        found = ", ".join(map(indicator, heads)) or "none"
        raise ParseError(f"expected one head_pred(name,arity), found {found}", source=source)
    ((target, place),) = heads.items()
    directives = [_directive(place, "modeh", "*", mode) for mode in _modes(program, target, place, head=True)]
    for predicate, where in _predicates(program, "body_pred", clauses, source).items():
        directives += [_directive(where, "modeb", "*", mode) for mode in _modes(program, predicate, where)]
        named = [Compound("/", one) for one in (target, predicate)]
        directives.append(_directive(where, "determination", *named))
    for name, _ in _SETTINGS:
        for (value,) in program.facts(name, 1):
            directives.append(_directive(Clause(name, source), "set", name, value))
    known = {name for name, _ in _READ}
    for (name, arity), said in program.predicates.items():
        if (name, arity) in _WITHOUT_EFFECT:
            why = _WITHOUT_EFFECT[name, arity]
            warnings += [f"{source}: {name} is not used: {why}"] if why else []
        elif said.facts and name not in known and not _is_called(clauses, (name, arity)):
            warnings.append(f"{source}: {indicator((name, arity))} is not used")
    return directives, warnings


def _read(path: Path | str, source: str) -> tuple[list[Clause], list[str]]:
    """Return the clauses that are Prolog, and a warning for each of the others."""
    try:
        text = Text(read_lines(path), source)
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read {source}: {error}") from error
    operators = Operators()
    operators.add(900, "fy", "not")
    found: list[Clause] = []
    warnings: list[str] = []
    for tokens in clauses_of(text):
        line = text.line(tokens[0].start)
        try:
            clause = Clause(read_tokens(_tuples_closed(tokens), operators, text), source, line)
            head, body = head_and_body(clause)
        except ParseError:
            shown = " ".join(text.text[tokens[0].start : tokens[-1].end].split())[:60]
            if shown.split("(")[0] in {name for name, _ in _READ}:
                raise
            warnings.append(f"{source}:{line}: this part of the bias is not used: {shown}")
            continue
        if head is None:
            warnings.append(f"{source}:{line}: the constraint {write_short(body, 60)} is not used")
        elif signature(head) is not None:
            found.append(clause)
    return found, warnings


def _tuples_closed(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens without the comma that ends a tuple of one, as in ``(state,)``."""
    return [
        token
        for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True)
        if not (token.kind == SIGN and token.value == "," and after.kind == SIGN and after.value == ")")
    ]


def _empty() -> Iterator[Clause]:
    """Yield declarations of what a bias may leave out."""
    for name, arity in sorted(_READ):
        yield Clause(Compound(":-", (Compound("dynamic", (Compound("/", (name, arity)),)),)))


def _is_called(clauses: Sequence[Clause], predicate: Signature) -> bool:
    bodies = (head_and_body(clause)[1] for clause in clauses)
    return any(signature(goal) == predicate for body in bodies if body != "true" for goal in goals_of(body))


def _answers(program: Program, name: str, place: Clause, first: Term) -> list[tuple[Term, ...]]:
    goal = Compound(name, (first, Variable("Y")))
    try:
        found = list(solve(program, goal, steps=STEPS))
    except LimitExceeded as error:
        raise place.error(f"{name} cannot be worked out: {error}") from error
    except ParseError as error:
        raise place.error(f"{name} cannot be worked out: {error.message}") from error
    return [(answer.get("X", first), answer["Y"]) for answer in found]


def _predicates(
    program: Program, name: str, clauses: Sequence[Clause], source: str
) -> dict[Signature, Clause]:
    """Return the predicates that ``head_pred`` or ``body_pred`` names, with their places."""
    places = {clause.term: clause for clause in clauses if signature(clause.term) == (name, 2)}
    found: dict[Signature, Clause] = {}
    for predicate, arity in _answers(program, name, Clause(name, source), Variable("X")):
        if not isinstance(predicate, str) or not isinstance(arity, int) or not 0 <= arity <= 100:
            shown = write_short(Compound(name, (predicate, arity)))
            raise ParseError(f"expected {name}(name,arity), found {shown}", source=source)
        place = places.get(Compound(name, (predicate, arity)), Clause(name, source))
        found.setdefault((predicate, arity), place)
    return found


def _places(program: Program, what: str, predicate: Signature, place: Clause) -> list[Term] | None:
    """Return what is said of each argument of a predicate, if anything is."""
    name, arity = predicate
    for _, said in _answers(program, what, place, name):
        parts, rest = [], said
        while signature(rest) == (",", 2):
            parts.append(arguments(rest)[0])
            rest = arguments(rest)[1]
        parts.append(rest)
        if len(parts) == arity:
            return parts
    return None


def _modes(program: Program, predicate: Signature, place: Clause, *, head: bool = False) -> Iterator[Term]:
    name, arity = predicate
    types = _places(program, "type", predicate, place) or ["any"] * arity
    ways = _places(program, "direction", predicate, place)
    for one in ways or ():
        if one not in ("in", "out"):
            raise place.error(f"expected directions in and out of {indicator(predicate)}, found {one}")
    if not arity:
        yield name
        return
    if ways is not None:
        choices = [["+" if one == "in" else "-" for one in ways]]
    elif head:
        choices = [["+"] * arity]
    else:
        choices = [["+" if k == first else "-" for k in range(arity)] for first in range(arity)]
    for signs in choices:
        yield Compound(name, tuple(Compound(sign, (kind,)) for sign, kind in zip(signs, types, strict=True)))


def _directive(place: Clause, name: str, *given: Term) -> Clause:
    return place._replace(term=Compound(":-", (Compound(name, given),)))
