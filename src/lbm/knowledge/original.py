"""A text as it was given: errors point into it, and what is only odd may be a warning."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lbm.errors import ParseError

_WORD: Final = re.compile(rb"\S{0,41}")


@dataclass(frozen=True, slots=True)
class Original:
    """The text as given, and what is done about what is wrong in it."""

    data: bytes
    source: str | None = None
    lenient: bool = False
    warn: Callable[[str], object] = warnings.warn

    def error(self, message: str, offset: int) -> ParseError:
        """Return an error that points at a place in the text."""
        data = self.data
        start = data.rfind(b"\n", 0, offset) + 1
        end = data.find(b"\n", offset)
        # The window may cut a character of several bytes in two, so nothing here insists on UTF-8.
        before = data[max(start, offset - 60) : offset].decode(errors="replace")
        after = data[offset : min(len(data) if end < 0 else end, offset + 40)].decode(errors="replace")
        return ParseError(
            message,
            source=self.source,
            line=data.count(b"\n", 0, offset) + 1,
            column=len(data[start:offset].decode(errors="replace")) + 1,
            excerpt="".join(sign if sign.isprintable() else " " for sign in before + after),
            caret=len(before),
        )

    def complain(self, message: str, offset: int) -> None:
        """Raise an error, or only warn if the reading is lenient."""
        error = self.error(message, offset)
        if not self.lenient:
            raise error
        self.warn(error.one_line())

    def remark(self, message: str, offset: int) -> None:
        """Warn of something that is allowed, and easily meant otherwise."""
        self.warn(self.error(message, offset).one_line())

    def word(self, offset: int) -> str:
        """Return what stands at ``offset``, up to the next blank; if it is long, its beginning."""
        found = _WORD.match(self.data, offset)
        return cut(found[0]) if found else ""


def cut(word: bytes) -> str:
    """Return a word as a message shows it: if it is long, its beginning."""
    text = word[:164].decode(errors="replace")
    return text if len(text) <= 40 else text[:40] + "..."
