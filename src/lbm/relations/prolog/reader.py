"""Text -> clauses: operator precedence with an explicit stack, so depth costs nothing.

A clause is a term with the place it was read at. Directives are clauses too: ``:- d`` is the term ``:-(d)``.
``:- op(...)`` is obeyed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from lbm.errors import ParseError
from lbm.knowledge.packed import read_lines
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

_SIGNS: Final = {",": Operator(",", 1000, 999, 1000), "|": Operator(";", 1100, 1099, 1100)}
_BRACKETS: Final[dict[str, tuple[str | None, str, str]]] = {
    "(": (None, ")", ""),
    "[": (None, "]", ",|"),
    "{": ("{}", "}", ""),
}


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
        term = read_tokens(tokens, operators, place)
        clause = Clause(term, source, place.line(tokens[0].start))
        if isinstance(term, Compound) and term.functor == ":-" and len(term.arguments) == 1:
            (directive,) = term.arguments
            if isinstance(directive, Compound) and directive.functor == "op":
                wrong = operators.declare(directive)
                if wrong:
                    raise clause.error(f"{wrong}, found {directive}")
        found.append(clause)
    return found


def read_tokens(tokens: Sequence[Token], operators: Operators, place: Text) -> Term:
    """Return the term that the tokens of one clause say."""
    fact = _plain_fact(tokens)
    return _ClauseReader(tokens, operators, place).term() if fact is None else fact


def read_file(path: Path | str, *, operators: Operators | None = None) -> list[Clause]:
    """Return every clause of a file; errors name it as it was given."""
    try:
        text = read_lines(path)
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
    if tokens[0].kind not in (NAME, QUOTED) or not _is_applied(tokens[0], tokens[1]):
        return None
    arguments: list[Term] = []
    rest, end = iter(tokens[2:-1]), tokens[-1]
    for kind, value, _, place in rest:
        after, sign, start, _ = next(rest, end)
        if kind == NAME and value == "-" and after == NUMBER and start == place:
            arguments.append(-sign)  # type: ignore[operator]
            after, sign, _, _ = next(rest, end)
        elif kind in (NAME, QUOTED, NUMBER):
            arguments.append(value)
        else:
            return None
        if after != SIGN or sign != ",":
            is_last = after == SIGN and sign == ")" and next(rest, end) is end
            return Compound(str(tokens[0].value), tuple(arguments)) if is_last else None
    return None


def _is_applied(name: Token, after: Token) -> bool:
    """Say whether a name's arguments follow: an open bracket, without a blank before it."""
    return after.value == "(" and after.kind == SIGN and after.start == name.end


@dataclass(slots=True)
class _Bracket:
    """A bracket that is open, or the whole clause: its parts so far, and the one that is being read.

    Attributes
    ----------
    functor
        What its parts are the arguments of; None: a list, or one term.
    closing
        The sign that ends it.
    between
        The signs between its parts; in other brackets they are operators.
    parts
        The arguments or elements that are complete; ``has_tail``: the next one is the tail of the list.
    terms, waiting
        Of the part that is being read: terms that are complete, and operators that wait for what follows.
    """

    functor: str | None
    closing: str
    between: str = ""
    parts: list[Term] = field(default_factory=list)
    has_tail: bool = False
    terms: list[Term] = field(default_factory=list)
    waiting: list[Operator] = field(default_factory=list)

    def build(self) -> None:
        """Build the term of the operator that came last."""
        operator = self.waiting.pop()
        right = self.terms.pop()
        left = () if operator.left < 0 else (self.terms.pop(),)
        self.terms.append(Compound(operator.name, (*left, right)))

    def separate(self) -> None:
        """Complete the part that is being read."""
        while self.waiting:
            self.build()
        self.parts.append(self.terms.pop())

    def close(self) -> Term:
        """Return the term that the closing sign completes."""
        self.separate()
        if self.functor is not None:
            return Compound(self.functor, tuple(self.parts))
        if self.closing != "]":
            return self.parts[0]
        tail = self.parts.pop() if self.has_tail else EMPTY
        return make_list(self.parts, tail)


class _ClauseReader:
    """One clause: its tokens, and the brackets that are open, the innermost last."""

    def __init__(self, tokens: Sequence[Token], operators: Operators, text: Text) -> None:
        self.tokens = tokens
        self.operators = operators
        self.text = text
        self.place = 0
        self.open = [_Bracket(None, ".")]
        names = {token.value for token in tokens if token.kind == VARIABLE}
        self.fresh = (name for name in map("_{}".format, count(1)) if name not in names)

    def term(self) -> Term:
        """Return the term that the tokens say."""
        while True:
            complete = self.operand()
            while complete:
                token = self.next()
                if token.kind == END and len(self.open) == 1:
                    return self.open[0].close()
                complete = self.operator(token)

    def next(self) -> Token:
        """Return the next token."""
        self.place += 1
        return self.tokens[self.place - 1]

    def operand(self) -> bool:
        """Read what may stand where a term starts; say whether a term is complete then."""
        token = self.next()
        kind, after = token.kind, self.tokens[self.place] if token.kind != END else token
        value: Term = token.value
        if kind == SIGN and after.kind == SIGN and f"{value}{after.value}" in ("[]", "{}"):
            kind, value = QUOTED, f"{value}{after.value}"  # a name, which may be a functor too
            token = self.next()
            after = self.tokens[self.place]
        if kind in (NAME, QUOTED) and _is_applied(token, after):
            self.place += 1
            self.open.append(_Bracket(str(value), ")", ","))
            return False
        if kind == NAME:
            operator = self.operators.prefix.get(str(value))
            if value == "-" and after.kind == NUMBER and after.start == token.end:
                value = -self.next().value  # type: ignore[operator]
            elif operator is not None and not self.ends_operand(after):
                self.open[-1].waiting.append(operator)
                return False
        elif kind == VARIABLE:
            value = Variable(next(self.fresh) if value == "_" else str(value))
        elif kind == TEXT:
            value = make_list([ord(letter) for letter in str(value)])
        elif kind == SIGN and value in _BRACKETS:
            self.open.append(_Bracket(*_BRACKETS[str(value)]))
            return False
        elif kind in (SIGN, END):
            raise self.expected("a term", token)
        self.open[-1].terms.append(value)
        return True

    def ends_operand(self, after: Token) -> bool:
        """Say whether the token after a prefix operator makes that operator an atom."""
        if after.kind == END or (after.kind == SIGN and after.value not in _BRACKETS):
            return True
        prefix, infix = self.operators.prefix, self.operators.infix
        if after.kind != NAME or after.value not in infix or after.value in prefix:
            return False
        return not _is_applied(after, self.tokens[self.place + 1])

    def operator(self, token: Token) -> bool:
        """Read what may follow a term; say whether a term is complete then."""
        inside, kind, value = self.open[-1], token.kind, str(token.value)
        if kind == SIGN and value == inside.closing:
            self.open.pop()
            self.open[-1].terms.append(inside.close())
            return True
        if kind == SIGN and value in inside.between:
            if inside.has_tail:
                raise self.wrong(token)
            inside.separate()
            inside.has_tail = value == "|"
            return False
        known = _SIGNS if kind == SIGN else self.operators.infix if kind == NAME else {}
        operator = known.get(value)
        if operator is None:
            raise self.wrong(token)
        self.push(operator, token)
        if operator.right >= 0:
            return False
        inside.waiting.pop()
        inside.terms.append(Compound(operator.name, (inside.terms.pop(),)))
        return True

    def push(self, operator: Operator, token: Token) -> None:
        """Let an operator wait for its right side, after those that bind tighter took what they need."""
        inside = self.open[-1]
        while inside.waiting and inside.waiting[-1].priority <= operator.left:
            inside.build()
        if inside.waiting and operator.priority > inside.waiting[-1].right:
            before = inside.waiting[-1].name
            message = f"expected parentheses around an argument of {before!r} or {operator.name!r}"
            raise self.text.error(message, token.start)
        inside.waiting.append(operator)

    def wrong(self, token: Token) -> ParseError:
        """Return the error for a token that cannot follow a term."""
        inside = self.open[-1]
        before = "an operator, ','" if inside.between else "an operator"
        closing = "a full stop" if inside.closing == "." else f"'{inside.closing}'"
        return self.expected(f"{before} or {closing}", token)

    def expected(self, wanted: str, token: Token) -> ParseError:
        found = "a full stop" if token.kind == END else repr(str(token.value))
        return self.text.error(f"expected {wanted}, found {found}", token.start)
