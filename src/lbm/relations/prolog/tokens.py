"""Text -> tokens, one clause at a time: names, variables, numbers, quoted texts and signs, and where."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from lbm.errors import ParseError

NAME, VARIABLE, NUMBER, QUOTED, TEXT, SIGN, END = "name variable number quoted text sign end".split()
"""Kinds of tokens; a SIGN is one of ( ) [ ] { } , |, and a TEXT stood in double quotes."""

MAX_DIGITS: Final = 4000
"""Digits of a number."""

_TOKEN: Final = re.compile(
    r"""
    (?:\s++|%[^\n]*+|/\*(?s:.*?)\*/)*+      # blanks and comments
    (?:
      (?P<word>[^\W\d]\w*+)
    | (?P<number>0'(?:\\x[0-9a-fA-F]++\\?|\\[0-7]++\\?|\\[^\n]|''|[^\\\n'])
      |0[xob][0-9a-fA-F]++
      |\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+)
    | (?P<sign>[()\[\]{},|])
    | (?P<end>\.(?=[\s%]|\Z))
    | (?P<comment>/\*)                      # one without end
    | (?P<name>[+\-*/\\^<>=~:.?@#&$]++|[!;])
    | (?P<quote>['"`])
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)
_QUOTED: Final = {
    mark: re.compile(
        rf"(?:[^{mark}\\\n]++|{mark}{mark}|\\x[0-9a-fA-F]++\\?|\\[0-7]++\\?|\\\n|\\[^\n])*+{mark}"
    )
    for mark in "'\"`"
}
_ESCAPE: Final = re.compile(
    r"""\\(?:(\n)|x([0-9a-fA-F]++)\\?|([0-7]++)\\?|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|''|""|``""",
    re.VERBOSE,
)
_LETTERS: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "e": "\x1b", "s": " ",
    "\\": "\\", "'": "'", '"': '"', "`": "`",
}  # fmt: skip


class Token(NamedTuple):
    """A token, its value, and where it starts and ends in the text."""

    kind: str
    value: str | int | float
    start: int
    end: int


class Text:
    """A text with its source's name, which knows the line of a place."""

    def __init__(self, text: str, source: str | None) -> None:
        self.text = text
        self.source = source
        self._breaks: list[int] | None = None

    def line(self, place: int) -> int:
        """Return the number of a place's line, counted from 1."""
        if self._breaks is None:
            self._breaks = [match.start() for match in re.finditer("\n", self.text)]
        return bisect_right(self._breaks, place - 1) + 1

    def error(self, message: str, place: int) -> ParseError:
        """Return the error that points at a place."""
        return ParseError.at(message, self.text, place, source=self.source)


def clauses_of(text: Text) -> Iterator[list[Token]]:
    """Yield the tokens of each clause, the full stop last."""
    tokens: list[Token] = []
    names: dict[str, str] = {}  # equal names are one object: less memory, and faster to compare
    match_at, source = _TOKEN.match, text.text
    place, length = 0, len(source)
    while place < length:
        match = match_at(source, place)
        if match is None:  # blanks and comments up to the end
            break
        kind = match.lastgroup or ""
        start, place = match.span(kind)
        said = source[start:place]
        value: str | int | float = said
        if kind == "word":
            kind = VARIABLE if said[0] == "_" or said[0].isupper() or said[0].istitle() else NAME
            value = names.setdefault(said, said)
        elif kind == NUMBER:
            value = _number(said, text, start)
        elif kind == "quote":
            kind, value, place = _quoted(said, text, start)
        elif kind == "comment":
            raise text.error("expected '*/' after this '/*', found the end of the text", start)
        elif kind == "other":
            raise text.error(f"expected a term, found {value!r}", start)
        tokens.append(Token(kind, value, start, place))
        if kind == END:
            yield tokens
            tokens = []
    if tokens:
        raise text.error(
            "expected a full stop at the end of this clause, found the end of the text", tokens[0].start
        )


def _number(value: str, text: Text, start: int) -> int | float:
    if value.startswith("0'"):
        return ord(_unescape(value[2:], text, start))
    if len(value) > MAX_DIGITS:
        raise text.error(f"expected a number of at most {MAX_DIGITS} digits, found {len(value)}", start)
    if value.isdecimal():
        return int(value)
    try:
        number = int(value, 0) if value[1] in "xob" else float(value)
    except ValueError:
        raise text.error(f"expected a number, found {value[:40]!r}", start) from None
    if math.isinf(number):
        raise text.error(f"expected a number that fits a float, found {value[:40]!r}", start)
    return number


def _quoted(mark: str, text: Text, start: int) -> tuple[str, str, int]:
    """Return the kind of a quoted text, what it says, and where it ends."""
    match = _QUOTED[mark].match(text.text, start + 1)
    if match is None:
        raise text.error(f"expected a second {mark} on this line, found none", start)
    value = text.text[start + 1 : match.end() - 1]
    if "\\" in value or mark in value:
        value = _unescape(value, text, start)
    return QUOTED if mark == "'" else TEXT, value, match.end()


def _unescape(value: str, text: Text, start: int) -> str:
    def replace(match: re.Match[str]) -> str:
        newline, hexadecimal, octal, short, long, letter = match.groups()
        if newline is not None:
            return ""
        if letter is not None:
            if letter not in _LETTERS:
                raise text.error(f"expected an escape such as \\n or \\\\, found \\{letter}", start)
            return _LETTERS[letter]
        digits = hexadecimal or short or long
        if digits is None and octal is None:
            return match.group()[0]  # a doubled quote
        code = int(digits, 16) if digits is not None else int(octal, 8) if len(octal) < 9 else 0x110000
        if len(digits or "") > 8 or code > 0x10FFFF:
            raise text.error("expected the code of a character, found a larger number", start)
        return chr(code)

    return _ESCAPE.sub(replace, value)
