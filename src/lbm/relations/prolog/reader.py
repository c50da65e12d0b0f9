"""Text -> clauses: operator precedence with an explicit stack, so depth costs nothing.

A clause is a term with the place it was read at. Directives are clauses too: ``:- d`` is the term ``:-(d)``.
``:- op(...)`` is obeyed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lbm.errors import FileError, ParseError
from lbm.relations.prolog.operators import Operator, Operators
from lbm.relations.prolog.terms import EMPTY, Compound, Term, Variable, make_list
from lbm.relations.prolog.tokens import (
    END,
    NAME,
    NUMBER,
    QUOTED,
    SIGN,
    TEXT,
    VARIABLE,
    Text,
    Token,
    clauses_of,
)

_COMMA: Final = Operator(",", 1000, 999, 1000)
_BAR: Final = Operator(";", 1100, 1099, 1100)
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


class Clause(NamedTuple):
    """A clause as it was read: its term, and the line it starts on, counted from 1."""

    term: Term
    source: str | None = None
    line: int | None = None

    @property
    def place(self) -> str:
        """Return ``file:line``, with the parts that are known."""
        return ":".join(str(part) for part in (self.source, self.line) if part is not None)

    def error(self, message: str) -> ParseError:
        """Return the error that names this clause's place."""
        return ParseError(message, source=self.source, line=self.line)


class _Open(NamedTuple):
    """A bracket that is open: what it opens, the functor before it, and how many terms were there before."""

    sign: str
    functor: str | None
    before: int


def read_term(text: str) -> Term:
    """Return the one term that a text holds, with or without a full stop at its end.

    >>> print(read_term("bond(n,group(ch3,2))"), read_term("X = Y+1"))
    bond(n,group(ch3,2)) X=(+(Y,1))
    >>> read_term("p(a b)")
    Traceback (most recent call last):
    lbm.errors.ParseError: 1:5: expected an operator, ',' or ')', found 'b'
      p(a b)
          ^
    """
    stopped = text.rstrip().endswith(".")
    clauses = read_clauses(text if stopped else f"{text}\n.")
    if len(clauses) != 1:
        raise ParseError(f"expected one term, found {len(clauses)}")
    return clauses[0].term


def read_clauses(text: str, *, source: str | None = None, operators: Operators | None = None) -> list[Clause]:
    """Return every clause of a text, directives included.

    ``operators`` is the table in force, which the text's own ``:- op(...)`` lines add to.
    """
    operators = Operators() if operators is None else operators
    place = Text(text, source)
    found = []
    for tokens in clauses_of(place):
        fact = _plain_fact(tokens)
        term = _Reader(tokens, operators, place).term() if fact is None else fact
        clause = Clause(term, source, place.line(tokens[0].start))
        if isinstance(term, Compound) and term.functor == ":-" and len(term.arguments) == 1:
            (directive,) = term.arguments
            if isinstance(directive, Compound) and directive.functor == "op":
                wrong = operators.declare(directive)
                if wrong:
                    raise clause.error(f"{wrong}, found {directive}")
        found.append(clause)
    return found


def read_file(path: Path | str, *, operators: Operators | None = None) -> list[Clause]:
    """Return every clause of a file; errors name it as it was given."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ParseError(
            f"expected text in UTF-8, found the byte {error.object[error.start]:#04x} at {error.start}",
            source=str(path),
        ) from error
    return read_clauses(text, source=str(path), operators=operators)


def _plain_fact(tokens: Sequence[Token]) -> Compound | None:
    """Return ``p(a,1,-2.5)`` for tokens that say no more than this; None: for the reader to read.

    Nearly every clause of a data set is such a fact, and is read several times as fast.
    """
    if len(tokens) < 5 or tokens[1].value != "(" or tokens[0].kind not in (NAME, QUOTED):
        return None
    if tokens[1].start != tokens[0].end or tokens[-2].value != ")" or tokens[-2].kind != SIGN:
        return None
    arguments: list[Term] = []
    place, last = 2, len(tokens) - 2
    while place < last:
        kind, value, _, end = tokens[place]
        after = tokens[place + 1]
        if value == "-" and kind == NAME and after.kind == NUMBER and after.start == end:
            place += 1
            arguments.append(-after.value)  # type: ignore[operator]
            after = tokens[place + 1]
        elif kind in (NAME, QUOTED, NUMBER):
            arguments.append(value)
        else:
            return None
        if after.kind != SIGN or (after.value != "," if place + 1 < last else place + 1 > last):
            return None
        place += 2
    if place != last + 1:
        return None
    return Compound(str(tokens[0].value), tuple(arguments))


def _is_applied(name: Token, after: Token) -> bool:
    """Say whether a name's arguments follow: an open bracket, without a blank before it."""
    return after.value == "(" and after.kind == SIGN and after.start == name.end


class _Reader:
    """One clause: terms that are complete, and operators and brackets that wait for what follows."""

    def __init__(self, tokens: Sequence[Token], operators: Operators, text: Text) -> None:
        self.tokens = tokens
        self.operators = operators
        self.text = text
        self.place = 0
        self.terms: list[Term] = []
        self.waiting: list[Operator | _Open] = []
        self.open: list[_Open] = []  # the brackets among them
        self.names = {token.value for token in tokens if token.kind == VARIABLE}
        self.anonymous = 0

    def term(self) -> Term:
        """Return the term that the tokens say."""
        while True:
            complete = self.operand()
            while complete:
                token = self.tokens[self.place]
                self.place += 1
                if token.kind == END:
                    self.settle()
                    if self.waiting:
                        raise self.wrong(token)
                    return self.terms[0]
                complete = self.operator(token)

    def operand(self) -> bool:
        """Read what may stand where a term starts; say whether a term is complete then."""
        token = self.tokens[self.place]
        self.place += 1
        kind, value = token.kind, token.value
        after = self.tokens[self.place] if kind != END else token
        if kind in (NAME, QUOTED) and _is_applied(token, after):
            self.place += 1
            return self.begin("(", str(value))
        if kind == NAME:
            if value == "-" and after.kind == NUMBER and after.start == token.end:
                self.place += 1
                self.terms.append(-after.value)  # type: ignore[operator]
                return True
            operator = self.operators.prefix.get(str(value))
            if operator is not None and not self.ends_operand(after):
                self.waiting.append(operator)
                return False
            self.terms.append(value)
        elif kind == VARIABLE:
            self.terms.append(self.variable(str(value)))
        elif kind in (NUMBER, QUOTED):
            self.terms.append(value)
        elif kind == TEXT:
            self.terms.append(make_list([ord(letter) for letter in str(value)]))
        elif kind == SIGN and value in ("(", "[", "{"):
            if value != "(" and after.kind == SIGN and after.value == _CLOSING[str(value)]:
                return self.empty(str(value) + str(after.value))
            return self.begin(str(value), None)
        else:
            found = "a full stop" if kind == END else repr(value)
            raise self.text.error(f"expected a term, found {found}", token.start)
        return True

    def begin(self, sign: str, functor: str | None) -> bool:
        """Open a bracket: what follows is a term."""
        self.open.append(_Open(sign, functor, len(self.terms)))
        self.waiting.append(self.open[-1])
        return False

    def empty(self, name: str) -> bool:
        """Read ``[]`` or ``{}``, which may be a functor too."""
        self.place += 1
        if _is_applied(self.tokens[self.place - 1], self.tokens[self.place]):
            self.place += 1
            return self.begin("(", name)
        self.terms.append(name)
        return True

    def ends_operand(self, after: Token) -> bool:
        """Say whether the token after a prefix operator makes that operator an atom."""
        if after.kind == END or (after.kind == SIGN and after.value not in ("(", "[", "{")):
            return True
        prefix, infix = self.operators.prefix, self.operators.infix
        if after.kind != NAME or after.value not in infix or after.value in prefix:
            return False
        return not _is_applied(after, self.tokens[self.place + 1])

    def variable(self, name: str) -> Variable:
        if name != "_":
            return Variable(name)
        while True:
            self.anonymous += 1
            fresh = f"_{self.anonymous}"
            if fresh not in self.names:
                return Variable(fresh)

    def operator(self, token: Token) -> bool:
        """Read what may follow a term; say whether a term is complete then."""
        kind, value = token.kind, token.value
        if kind == SIGN:
            inside = self.open[-1] if self.open else None
            in_list = inside is not None and inside.sign == "["
            in_term = inside is not None and inside.functor is not None
            if inside is not None and ((value == "," and in_term) or (value in (",", "|") and in_list)):
                self.settle()
                return self.separate(inside, token)
            if value in (",", "|"):
                self.push(_COMMA if value == "," else _BAR, token)
                return False
            if inside is None or value != _CLOSING[inside.sign]:
                raise self.wrong(token)
            self.settle()
            self.close(inside)
            return True
        operator = self.operators.infix.get(str(value)) if kind == NAME else None
        if operator is None:
            raise self.wrong(token)
        self.push(operator, token)
        if operator.right >= 0:
            return False
        self.waiting.pop()
        self.terms.append(Compound(operator.name, (self.terms.pop(),)))
        return True

    def separate(self, inside: _Open, token: Token) -> bool:
        """Go on to the next argument, element or tail."""
        if inside.functor is None:
            # The bar itself waits as a term that nothing else can be: it tells a list's tail from an element.
            if len(self.terms) > inside.before + 1 and self.terms[-2] is _TAIL:
                raise self.wrong(token)
            if token.value == "|":
                self.terms.append(_TAIL)
        return False

    def close(self, inside: _Open) -> None:
        """Build the term that a closing bracket completes."""
        self.waiting.pop()
        self.open.pop()
        items = self.terms[inside.before :]
        del self.terms[inside.before :]
        if inside.functor is not None:
            self.terms.append(Compound(inside.functor, tuple(items)))
        elif inside.sign == "[":
            tail: Term = EMPTY
            if len(items) > 2 and items[-2] is _TAIL:
                tail = items[-1]
                del items[-2:]
            self.terms.append(make_list(items, tail))
        else:
            self.terms.append(items[0] if inside.sign == "(" else Compound("{}", (items[0],)))

    def push(self, operator: Operator, token: Token) -> None:
        """Let an operator wait for its right side, after those that bind tighter took what they need."""
        while self.waiting:
            before = self.waiting[-1]
            if isinstance(before, _Open):
                break
            if before.priority <= operator.left:
                self.build(before)
            elif operator.priority <= before.right:
                break
            else:
                raise self.text.error(
                    f"expected parentheses around an argument of {before.name!r} or {operator.name!r}",
                    token.start,
                )
        self.waiting.append(operator)

    def settle(self) -> None:
        """Build every operator that waits inside the innermost bracket."""
        while self.waiting and not isinstance(self.waiting[-1], _Open):
            self.build(self.waiting[-1])

    def build(self, operator: Operator) -> None:
        self.waiting.pop()
        right = self.terms.pop()
        left = () if operator.left < 0 else (self.terms.pop(),)
        self.terms.append(Compound(operator.name, (*left, right)))

    def wrong(self, token: Token) -> ParseError:
        """Return the error for a token that cannot follow a term."""
        inside = self.open[-1] if self.open else None
        wanted = "an operator or a full stop"
        if inside is not None:
            closing = _CLOSING[inside.sign]
            comma = "',' or " if inside.functor is not None or inside.sign == "[" else ""
            wanted = f"an operator, {comma}'{closing}'" if comma else f"an operator or '{closing}'"
        found = "a full stop" if token.kind == END else repr(str(token.value))
        return self.text.error(f"expected {wanted}, found {found}", token.start)


_TAIL: Final = Variable("|")
