"""Text -> tokens, and errors that point at one."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from lbm.errors import ParseError
from lbm.knowledge.formula import GROUND_TERM, NAME, PLAIN_NAME, QUOTED

MAX_STATEMENT: Final = 10_000_000
"""Characters in one statement (a line, and the lines an open parenthesis adds to it)."""

TOKEN: Final = re.compile(
    rf"""
    [ \t\r\f]*+ (?: \#[^\n]*+ )?+ (?:
      (?P<newline>\n)
    | (?P<term>{GROUND_TERM})
    | (?P<name>{NAME})
    | (?P<symbol><->|<=>|->|=>|<-|!=|&&|\|\||[|^&~!(){{}},:=↔→←∨⊕∧¬∀∃])
    | (?P<quoted>{QUOTED})
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<end>\Z)
    | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
PLAIN: Final = re.compile(rf"(?<!\w){PLAIN_NAME}")

Token = tuple[str, str, int]
"""Kind, text and place."""


class Lexer:
    """One pass over a text, token by token."""

    def __init__(self, text: str, source: str | None) -> None:
        self.text = text
        self.source = source
        self.line = 1
        self.limit = MAX_STATEMENT
        self.begun = 0  # where the present statement begins
        self.ended = 0  # where the last line that was read to its end ended
        self.matches = TOKEN.finditer(text)

    def seek(self, place: int, line: int) -> None:
        """Go on at ``place``, where a line begins."""
        self.line = line
        self.matches = TOKEN.finditer(self.text, place)

    def next(self) -> Token:
        """Return kind, text and place of the next token that is no blank; at the end, ``end``."""
        for match in self.matches:
            kind = match.lastgroup
            assert kind is not None
            if kind == "newline":
                self.line += 1
                self.ended = match.end()
            elif kind == "end":
                self.ended = len(self.text)
            return kind, match[kind], match.start(kind)
        return "end", "", len(self.text)

    def inside(self) -> Token:
        """Return the next token inside brackets, where a line end is a blank."""
        while True:
            token = self.next()
            if token[2] - self.begun > self.limit:
                self.too_long(self.begun)
            if token[0] != "newline":
                return token

    def too_long(self, place: int) -> NoReturn:
        """Refuse the statement that begins at ``place``."""
        self.fail(f"a statement has at most {self.limit} characters (limit MAX_STATEMENT)", place)

    def refuse_long_lines(self) -> None:
        """Refuse a line that passes the limit before any of it is read."""
        start = 0
        while len(self.text) - start > self.limit:
            end = self.text.rfind("\n", start, start + self.limit + 1)
            if end < 0:
                self.too_long(start)
            start = end + 1

    def fail(self, message: str, place: int) -> NoReturn:
        """Raise a ParseError that points at ``place``."""
        raise ParseError.at(message, self.text, place, source=self.source)

    def expected(self, what: str, token: Token) -> NoReturn:
        """Raise a ParseError: ``what`` was expected, ``token`` came."""
        kind, text, place = token
        if kind == "end":
            found = "the end of the text"
        elif kind == "newline":
            found = "the end of the line"
        elif text == "'":
            self.fail("this quote is not closed on its line, or has nothing in it", place)
        else:
            found = repr(text if len(text) <= 40 else text[:40] + "...")
        self.fail(f"expected {what}, found {found}", place)
