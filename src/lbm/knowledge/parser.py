"""Text -> formulae: operator precedence with an explicit stack, so depth costs nothing.

``grammar.lark`` beside this file says what is read; this module reads it fast and points at the
character it could not read.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from lbm.errors import LimitExceeded, ParseError, WeightError, suggested
from lbm.knowledge.formula import (
    CARDINALITIES,
    CONSTANT,
    FALSE,
    RESERVED,
    TRUE,
    Formula,
    Step,
    atom_name,
    atoms_of,
    from_steps,
    make,
    term_name,
    to_steps,
)
from lbm.knowledge.grounding import MAX_QUANTIFIERS, Guard, Quantifier, Supply, Template, instances
from lbm.knowledge.lexer import PLAIN, Lexer, Token
from lbm.knowledge.numbers import MAX_DIGITS, Weight, plain, read_weight

MAX_SHAPES: Final = 10_000
"""Shapes of lines that are remembered while a text is read."""

SHAPE_LENGTH: Final = 1000
"""Characters of a line that may have a shape."""

_SHAPE: Final = re.compile(r"(?!.*a[ \t]*\()(?:[ \t\r()|^&~!]|a|<->|<=>|->|=>)+")
_WEIGHTED: Final = re.compile(r"[ \t]*([+-]?\d[\d.]*(?:[eE][+-]?\d+)?)[ \t]*:")

_BINARY: Final = {
    "<->": "iff", "<=>": "iff", "iff": "iff", "↔": "iff",
    "->": "implies", "=>": "implies", "implies": "implies", "→": "implies",
    "<-": "implied", "←": "implied",
    "|": "or", "||": "or", "or": "or", "∨": "or",
    "^": "xor", "xor": "xor", "⊕": "xor",
    "&": "and", "&&": "and", "and": "and", "∧": "and",
}  # fmt: skip
_PREFIX: Final = frozenset({"~", "!", "not", "¬"})
_QUANTIFIER: Final = {"forall": "forall", "∀": "forall", "exists": "exists", "∃": "exists"}
_PRECEDENCE: Final = {"iff": 1, "implies": 2, "implied": 2, "or": 3, "xor": 4, "and": 5, "not": 6}


@dataclass(frozen=True, slots=True)
class Statement:
    """One formula with its weight; without one it is hard.

    ``line`` says where it was read, for messages; it does not count when statements are compared.
    """

    formula: Formula
    weight: Weight | None = None
    line: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return str(self.formula) if self.weight is None else f"{self.weight}: {self.formula}"

    def facts(self) -> dict[str, Any]:
        """Return formula, weight and line for JSON; the weight is text where a double cannot hold it."""
        return {"formula": str(self.formula), "weight": plain(self.weight), "line": self.line}


@dataclass(slots=True)
class Reading:
    """What a text holds: formulae in order, and atoms in the order declared, then met."""

    statements: list[Statement] = field(default_factory=list)
    atoms: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """Something open on the stack: a parenthesis, a cardinality, or a quantifier."""

    kind: str
    place: int
    label: Any = None
    first: int = 0


def parse(text: str, *, source: str | None = None) -> Formula:
    """Return the one formula that ``text`` holds.

    >>> print(parse("(not a or b) and c"))
    (~a | b) & c
    >>> parse("p & -> q")
    Traceback (most recent call last):
    lbm.errors.ParseError: 1:5: expected a formula, found '->'
      p & -> q
          ^
    """
    if not isinstance(text, str):
        raise TypeError(f"expected the text of a formula, got {text!r}")
    reader = _Reader(text, source)
    reader.whole = True
    found = reader.statements()
    if not found:
        raise ParseError("expected a formula, found nothing", source=source)
    if len(found) > 1 or found[0].weight is not None:
        said = "expected one formula without a weight; a theory is read by Theory.parse"
        raise ParseError(said, source=source)
    return found[0].formula


def read_text(
    text: str, *, source: str | None = None, domains: Mapping[str, tuple[str, ...]] | None = None
) -> Reading:
    """Return every statement of a text in the ``.lbm`` format.

    ``domains`` fills domains that the text declares, whatever members it names there.
    """
    for name, members in (domains or {}).items():
        for member in members:
            if not CONSTANT.fullmatch(member):
                said = f"expected constants in the domain {name!r}, got {member!r}: put it in quotes"
                raise ParseError(said)
    reader = _Reader(text, source, domains)
    reading = Reading(atoms=reader.atoms)
    with collection_paused():
        reader.refuse_long_lines()
        shapes: dict[str, list[Step] | None] = {}
        place, line = 0, 1
        while place < len(text):
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            short = end - place <= SHAPE_LENGTH
            statement = _read_plain(text[place:end], line, reader.atoms, shapes) if short else None
            if statement is not None:
                reading.statements.append(statement)
                place, line = end + 1, line + 1
            else:
                reader.seek(place, line)
                reading.statements.extend(reader.statement())
                place, line = reader.ended, reader.line
    for name in reader.filled:
        if name not in reader.domains:
            raise ParseError(
                f"no domain {name!r} is declared here{suggested(name, reader.domains)}", source=source
            )
    return reading


def _read_plain(
    line: str, number: int, atoms: dict[str, None], shapes: dict[str, list[Step] | None]
) -> Statement | None:
    """Return what a plain line says, or None if it is the reader's to read.

    Lines of one shape, as ``a & b -> c`` and ``x1 & x2 -> x3``, are parsed once; ``shapes`` has their steps.
    Only the plainest lines have a shape: names that are no terms, and signs. Whatever else a line holds, an
    error among it, is the reader's.
    """
    weight: Weight | None = None
    prefix = _WEIGHTED.match(line)
    if prefix is not None:
        try:
            weight = read_weight(prefix[1])
        except WeightError:
            return None
        line = line[prefix.end() :]
    shape = PLAIN.sub("a", line)
    if shape not in shapes:
        if len(shapes) >= MAX_SHAPES:
            return None
        shapes[shape] = _program(shape)
    program = shapes[shape]
    if program is None:
        return None
    names = PLAIN.findall(line)
    for name in names:
        atoms.setdefault(name)
    formula = from_steps(
        [(kind, names[label] if kind == "atom" else None, args) for kind, label, args in program]
    )
    return Statement(formula, weight, number)


def _program(shape: str) -> list[Step] | None:
    """Return the steps that build a formula of this shape, an atom's label being its place in the line."""
    if not _SHAPE.fullmatch(shape):
        return None
    places = count()
    try:
        formula = parse(re.sub("a", lambda _: f"a{next(places)}", shape))
    except ParseError:
        return None
    return [
        (kind, int(label[1:]) if kind == "atom" else label, args) for kind, label, args in to_steps(formula)
    ]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the collection of cycles: formulae have none, and looking for them takes time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Reader(Lexer):
    """One pass over a text. State lives here and nowhere else; it is used once."""

    def __init__(
        self, text: str, source: str | None, filled: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        super().__init__(text, source)
        self.filled = filled or {}  # members of domains, in place of those that the text names
        self.whole = False  # True: the text is one formula, and a line end is a blank
        self.atoms: dict[str, None] = {}
        self.domains: dict[str, tuple[str, ...]] = {}
        self.supply = Supply()
        self.scope: list[str] = []
        self.out: list[Formula | Template] = []
        self.open: list[str | _Open] = []
        self.quantifiers = 0  # open now

    # -- statements --

    def statements(self) -> list[Statement]:
        """Return what all statements say, each no formula, one, or the instances of a rule."""
        self.refuse_long_lines()
        found: list[Statement] = []
        while self.ended < len(self.text):
            found += self.statement()
        return found

    def statement(self) -> list[Statement]:
        """Read one statement, if there is one left, and the end of its line."""
        while True:
            token = self.next()
            kind, text, place = token
            if kind == "end":
                return []
            if kind == "newline":
                continue
            line, weight, self.begun = self.line, None, place
            if kind == "name" and text in ("atoms", "domain") and not self.whole:
                declare = self.declare_atoms if text == "atoms" else self.declare_domain
                declare()
                continue
            if kind == "number":
                colon = self.next()
                if colon[1] != ":":
                    self.fail(f"expected ':' and a formula behind the weight {text}", place)
                try:
                    weight = read_weight(text)
                except WeightError as error:
                    self.fail(str(error), place)
                token = self.next()
            try:
                return [Statement(found, weight, line) for found in self.formula(token, place)]
            except LimitExceeded as error:
                self.fail(str(error), place)

    def declare_atoms(self) -> None:
        """Read the rest of ``atoms n, r, q``."""
        while True:
            token = self.next()
            if token[0] == "term":
                name = self.term(token)
            elif token[0] in ("name", "quoted"):
                name = self.name(token)
            else:
                self.expected("the name of an atom", token)
            kind, token = token[0], self.next()
            if kind == "name" and token[1] == "(":
                name, token = self.arguments(name), self.next()
            self.atoms[name] = None
            if token[0] in ("newline", "end"):
                return
            if token[1] != ",":
                self.expected("',' or the end of the line", token)

    def declare_domain(self) -> None:
        """Read the rest of ``domain drug = {a1, b1}``."""
        token = self.next()
        if token[0] != "name":
            self.expected("the name of a domain", token)
        name = self.name(token)
        if name in self.domains:
            self.fail(f"the domain {name!r} is declared twice", token[2])
        for sign in "={":
            token = self.next()
            if token[1] != sign:
                self.expected(f"{sign!r} (domain {name} = {{a, b, c}})", token)
        constants: dict[str, None] = {}
        for token in self.listed("}", "',' or '}'"):
            if token[1] == "}" and not constants:
                break  # a domain may be empty
            constant = self.constant(token)
            if constant in constants:
                self.fail(f"{constant} is in the domain {name!r} twice", token[2])
            constants[constant] = None
        token = self.next()
        if token[0] not in ("newline", "end"):
            self.expected("the end of the line", token)
        self.domains[name] = self.filled.get(name, tuple(constants))

    # -- names --

    def name(self, token: Token) -> str:
        """Return a plain or quoted name; reserved words only in quotes."""
        kind, text, place = token
        if kind == "quoted":
            return self.checked(text[1:-1].replace("''", "'"), place)
        if text in RESERVED:
            self.fail(f"{text!r} is a reserved word: write '{text}' in quotes to use it as a name", place)
        return text

    def constant(self, token: Token) -> str:
        """Return a constant as terms print it: a name, a whole number, or text in quotes."""
        kind, text, place = token
        if kind == "name":
            return self.name(token)
        if kind == "quoted":
            self.name(token)
            return text
        if kind == "number" and text.isdecimal():
            return text
        if kind == "term":
            self.fail("expected a constant, found a term: terms do not nest", place)
        self.expected("a constant", token)

    def term(self, token: Token) -> str:
        """Return a ground term as atoms carry it."""
        name = term_name(token[1])
        return self.checked(name, token[2]) if "'" in name else name

    def checked(self, name: str, place: int) -> str:
        """Return a name as atoms carry it, if an atom may be called so."""
        try:
            return atom_name(name)
        except ValueError as error:
            self.fail(str(error), place)

    def arguments(self, name: str) -> str:
        """Read the arguments behind ``name(``, blanks and line ends among them; return the term."""
        tokens = self.listed(")", f"',' or ')' in the arguments of {name}")
        return f"{name}({', '.join(map(self.constant, tokens))})"

    def listed(self, end: str, expected: str) -> Iterator[Token]:
        """Yield the first token, and each that follows a comma, up to the ``end`` of a list."""
        while True:
            yield self.inside()
            token = self.inside()
            if token[1] == end:
                return
            if token[1] != ",":
                self.expected(expected, token)

    # -- formulae --

    def formula(self, token: Token, start: int) -> Sequence[Formula]:
        """Read a formula from ``token`` to the end of its statement; return its ground instances."""
        out, opened, atoms, advance = self.out, self.open, self.atoms, self.matches.__next__
        want = True  # an operand is due; otherwise an operator
        depth = 0
        while True:
            kind, text, place = token
            if place - start > self.limit:
                self.too_long(start)
            if kind == "newline" or kind == "end":
                if kind == "newline" and (depth or self.whole):
                    token = self.next()
                    continue
                if want:
                    self.expected("a formula", token)
                if depth:
                    unclosed = [
                        item for item in opened if isinstance(item, _Open) and item.kind != "quantifier"
                    ]
                    self.fail("this parenthesis is never closed", unclosed[-1].place)
                return self.finish()
            match = advance()  # as self.next() does, without the call: nothing here runs more often
            kind_ahead = match.lastgroup or "end"
            if kind_ahead == "newline":
                self.line += 1
                self.ended = match.end()
            elif kind_ahead == "end":
                self.ended = len(self.text)
            token = kind_ahead, match[kind_ahead], match.start(kind_ahead)
            if want:
                if kind_ahead == "newline" and (depth or self.whole):
                    token = self.inside()
                want = False
                if kind == "name" and text not in RESERVED:
                    if token[1] == "(":
                        out.append(self.literal(self.arguments(text)))
                        token = self.next()
                    elif self.scope and text in self.scope:
                        self.fail(
                            f"{text} is a variable here: it stands inside a term, as in p({text})", place
                        )
                    else:
                        atoms.setdefault(text)
                        out.append(make("atom", text, ()))
                elif kind == "term":
                    out.append(self.literal(self.term((kind, text, place))))
                elif kind == "quoted":
                    name = self.name((kind, text, place))
                    atoms.setdefault(name)
                    out.append(make("atom", name, ()))
                elif text == "(":
                    opened.append(_Open("(", place))
                    depth += 1
                    want = True
                elif text in _PREFIX:
                    opened.append("not")
                    want = True
                elif text in CARDINALITIES:
                    token = self.cardinality(text, place, token)
                    depth += 1
                    want = token[1] != ")"
                elif text in _QUANTIFIER:
                    if opened and not isinstance(opened[-1], _Open):
                        self.fail(f"put parentheses around ({text} ...) when it is part of a formula", place)
                    token = self.quantifier(
                        _QUANTIFIER[text], place, token, self.inside if depth or self.whole else self.next
                    )
                    want = True
                elif text == "true" or text == "false":
                    out.append(TRUE if text == "true" else FALSE)
                else:
                    if text in RESERVED and text not in _BINARY:
                        self.name((kind, text, place))
                    self.expected("a formula", (kind, text, place))
            elif text in _BINARY:
                self.binary(_BINARY[text], place)
                want = True
            elif text == ")" or text == ",":
                self.reduce(0)
                self.close_quantifiers()
                top = opened[-1] if opened else None
                if top is None:
                    self.fail(f"this {text!r} has no open parenthesis", place)
                assert isinstance(top, _Open)
                if text == ",":
                    if top.kind == "(":
                        self.fail("expected an operator or ')', found ','", place)
                    want = True
                else:
                    opened.pop()
                    depth -= 1
                    if top.kind != "(":
                        args = tuple(out[top.first :])
                        del out[top.first :]
                        out.append(_combine(top.kind, top.label, args))
            elif text == ":":
                before = self.text[start:place].strip()
                self.fail(f"expected a number as weight before ':', found {before[:40]!r}", start)
            else:
                self.expected("an operator or the end of the formula", (kind, text, place))

    def literal(self, name: str) -> Formula | Template:
        """Return the atom called ``name``, or a template where it mentions variables."""
        if self.scope:
            predicate, _, rest = name.partition("(")
            found = CONSTANT.findall(rest)
            if any(argument in self.scope for argument in found):
                return Template("term", (predicate, tuple(found)), ())
        self.atoms.setdefault(name)
        return make("atom", name, ())

    def cardinality(self, kind: str, place: int, token: Token) -> Token:
        """Open ``atleast(k, ``; return the token behind it."""
        if token[1] != "(":
            self.expected(f"'(' behind {kind}", token)
        token = self.inside()
        if token[0] != "number" or not token[1].isdecimal():
            self.expected(f"a whole number, as in {kind}(2, a, b, c)", token)
        if not token[1].isascii():
            self.fail(f"a bound is written with the digits 0 to 9, got {token[1]!r}", token[2])
        if len(token[1]) > MAX_DIGITS:
            self.fail(f"a bound has at most {MAX_DIGITS} digits (limit MAX_DIGITS)", token[2])
        self.open.append(_Open(kind, place, int(token[1]), len(self.out)))
        token = self.inside()
        if token[1] == ",":
            token = self.inside()
            if token[1] == ")":
                self.expected("a formula", token)
        elif token[1] != ")":
            self.expected("',' or ')'", token)
        return token

    def binary(self, kind: str, place: int) -> None:
        """Put a connective on the stack after those that bind as tightly to its left."""
        arrow = kind in ("implies", "implied")
        self.reduce(_PRECEDENCE[kind] + arrow)
        top = self.open[-1] if self.open else None
        if arrow and top in ("implies", "implied"):
            if top != kind:
                self.fail("a -> b <- c can be read in two ways: write parentheses", place)
            if kind == "implied":  # <- associates left, -> right
                self.reduce(_PRECEDENCE[kind])
        self.open.append(kind)

    def reduce(self, least: int) -> None:
        """Apply the connectives on top of the stack that bind at least as tightly as ``least``."""
        out, opened = self.out, self.open
        while opened:
            kind = opened[-1]
            if isinstance(kind, _Open) or _PRECEDENCE[kind] < least:
                return
            opened.pop()
            right = out.pop()
            if kind == "not":
                out.append(_combine("not", None, (right,)))
            elif kind == "implied":
                out.append(_combine("implies", None, (right, out.pop())))
            else:
                out.append(_combine(kind, None, (out.pop(), right)))

    # -- quantifiers --

    def quantifier(self, kind: str, place: int, token: Token, following: Callable[[], Token]) -> Token:
        """Read ``X, Y in drug, X != Y:`` and open it; return the token behind."""
        variables: list[str] = []
        domains: list[tuple[str, ...]] = []
        guards: list[Guard] = []
        waiting: list[str] = []
        if self.quantifiers >= MAX_QUANTIFIERS:
            self.fail(
                f"at most {MAX_QUANTIFIERS} quantifiers inside one another (limit MAX_QUANTIFIERS)", place
            )
        while True:
            left_token = token
            token = following()
            if token[1] in ("=", "!=") and not waiting:
                left = self.constant(left_token)
                right_token = following()
                guards.append(Guard(left, token[1] == "=", self.constant(right_token)))
                for side, side_token in ((left, left_token), (guards[-1].right, right_token)):
                    known = side in variables or side in self.scope or side_token[0] != "name"
                    if not (known or any(side in constants for constants in self.domains.values())):
                        self.fail(f"{side!r} is no variable here and no constant of a domain", side_token[2])
                token = following()
            else:
                if left_token[0] != "name":
                    self.expected("the name of a variable", left_token)
                variable = self.name(left_token)
                if variable in variables or variable in waiting or variable in self.scope:
                    if not waiting and token[1] not in (",", "in", ":"):
                        self.expected("'=' or '!=' (a guard has no other comparison)", token)
                    self.fail(f"the variable {variable} is bound twice", left_token[2])
                waiting.append(variable)
                if token[1] == "in":
                    token = following()
                    domain = self.domain(token, kind)
                    variables += waiting
                    domains += [domain] * len(waiting)
                    waiting = []
                    token = following()
            if token[1] == ":" and variables and not waiting:
                break
            if token[1] != ",":
                self.expected(
                    "',' or 'in'" if waiting else f"',' or ':' ({kind} X, Y in d, X != Y: ...)", token
                )
            token = following()
        quantifier = Quantifier(kind, tuple(variables), tuple(domains), tuple(guards))
        self.open.append(_Open("quantifier", place, quantifier))
        self.quantifiers += 1
        self.scope += variables
        return following()

    def domain(self, token: Token, kind: str) -> tuple[str, ...]:
        """Return the constants of a declared domain that is not empty."""
        if token[0] != "name":
            self.expected("the name of a domain", token)
        name = self.name(token)
        if name not in self.domains:
            hint = suggested(name, self.domains, f": declare it first, as in domain {name} = {{a, b}}")
            self.fail(f"no domain {name!r}{hint}", token[2])
        if not self.domains[name]:
            self.fail(f"{kind} over the domain {name!r}, which is empty", token[2])
        return self.domains[name]

    def close_quantifiers(self) -> None:
        """Close the quantifiers on top of the stack: their formula has ended."""
        while self.open:
            top = self.open[-1]
            if not isinstance(top, _Open) or top.kind != "quantifier":
                return
            self.open.pop()
            self.quantifiers -= 1
            del self.scope[len(self.scope) - len(top.label.variables) :]
            self.out[-1] = Template(top.label.kind, top.label, (self.out[-1],))

    def finish(self) -> Sequence[Formula]:
        """End a statement: leading ``forall`` make instances, what is left is one formula."""
        self.reduce(0)
        prefix: list[Quantifier] = []
        for item in self.open:
            assert isinstance(item, _Open)
            if item.label.kind != "forall":
                break
            prefix.append(item.label)
        del self.open[: len(prefix)]
        self.close_quantifiers()
        self.scope.clear()
        self.quantifiers = 0
        (body,) = self.out
        self.out.clear()
        if isinstance(body, Formula) and not prefix:
            return (body,)
        found = list(instances(tuple(prefix), body, self.supply))
        for name in atoms_of(*found):
            self.atoms.setdefault(name)
        return found


def _combine(kind: str, label: Any, args: tuple[Formula | Template, ...]) -> Formula | Template:
    if Template in map(type, args):
        return Template(kind, label, args)
    return make(kind, label, args)  # type: ignore[arg-type]
