"""What a part of the trials is: pieces of work that give rows, and what rows show.

A part is one module with the names of :class:`Part`. Its pieces know nothing of one another, so that they
may be measured anywhere and in any order; the same key gives the same rows, but for times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from lbm.trials.pictures import Picture

Value = str | int | float | None
Row = dict[str, Value]
"""A line of the table of a part: values by column; None where there is nothing to say."""

Key = Mapping[str, str | int | float]
"""What a piece is known by: columns of its rows, and their values in all of these."""


_KINDS: Final[Mapping[str, type]] = {"": str, "int": int, "float": float}


def columns(text: str) -> dict[str, type]:
    """Return the columns of a table in order; one that does not name its type holds text.

    >>> columns("set seed:int accuracy:float")
    {'set': <class 'str'>, 'seed': <class 'int'>, 'accuracy': <class 'float'>}
    """
    return {name: _KINDS[kind] for name, _, kind in (word.partition(":") for word in text.split())}


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Work that is done in one go.

    Attributes
    ----------
    key
        All that the rows depend on.
    cost
        The seconds it takes on one core, roughly.
    long
        Whether its rows are taken from a run that was stored, where one has them and nobody asks for
        another.
    """

    key: Key
    cost: float
    long: bool = False

    @property
    def name(self) -> str:
        """The key as the name of a file.

        >>> Piece({"method": "i.i.d. draws", "M": 20, "runs": "0-9"}, cost=1).name
        'i.i.d._draws,20,0-9'
        """
        return ",".join(re.sub(r"[^\w.+-]", "_", str(value)) for value in self.key.values())


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table for people: cells are text. Columns in ``left`` hold words, all others numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = (0,)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """What a part has to say, for a reader without the paper. Text between backquotes is code.

    Attributes
    ----------
    about
        Paragraphs: what was asked, and what the words mean.
    findings
        What was found, a sentence each.
    tables
        The numbers.
    notes
        How it was measured: protocol, seeds, limits.
    headline
        The few numbers that a program may want, by name.
    """

    about: tuple[str, ...]
    findings: tuple[str, ...] = ()
    tables: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()
    headline: Mapping[str, float | str | None] = field(default_factory=dict)


def paragraphs(module: str, head: str, **values: object) -> tuple[str, ...]:
    """Return what the Markdown file beside the module of a part says under one heading.

    Names of ``values`` stand there in braces.
    """
    file = resources.files("lbm.trials.parts") / f"{module.rpartition('.')[2]}.md"
    _, *parts = re.split(r"^# (.+)\n", file.read_text("utf-8"), flags=re.MULTILINE)
    text = dict(zip(parts[::2], parts[1::2], strict=True))[head].format(**values)
    return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def prose(module: str, **values: object) -> dict[str, tuple[str, ...]]:
    """Return what a part says whatever was measured: the paragraphs ``about`` it, and its ``notes``."""
    return {head.lower(): paragraphs(module, head, **values) for head in ("About", "Notes")}


def wording(module: str, head: str, **values: object) -> str:
    """Return the one paragraph under a heading: the caption of a picture, say, or the note of a table."""
    return " ".join(paragraphs(module, head, **values))


def filled(*tables: Sheet) -> tuple[Sheet, ...]:
    """Return the tables that have rows."""
    return tuple(table for table in tables if table.rows)


class Part(Protocol):
    """The names that the module of a part has."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of a module
        """What the command line calls it."""

    @property
    def TITLE(self) -> str:  # noqa: N802
        """The title of its section."""

    @property
    def REVISION(self) -> int:  # noqa: N802
        """Raised when a key would give other rows: pieces of another revision are measured again."""

    @property
    def ALONE(self) -> bool:  # noqa: N802
        """Whether pieces are measured one at a time, because times are what it is about."""

    @property
    def COLUMNS(self) -> Mapping[str, type]:  # noqa: N802
        """The columns of its table in order: str, int or float. Times are called ``seconds``."""

    def pieces(self, quick: bool) -> list[Piece]:
        """Return what is to be measured, names differing; ``quick``: a small version of it."""

    def measure(self, key: Key) -> list[Row]:
        """Return the rows of one piece."""

    def draw(self, rows: Sequence[Row]) -> list[Picture]:
        """Return pictures of rows, of which any may be missing; none where there is nothing to draw."""

    def section(self, rows: Sequence[Row]) -> Section:
        """Return what rows say, of which any may be missing."""
