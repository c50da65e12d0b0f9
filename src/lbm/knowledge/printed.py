"""Lists and tables as lines of text, for whatever prints itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

LISTED: Final = 60
"""Lists up to this long are printed whole."""

FIRST: Final = 20
"""How many of a longer list are printed."""

_T = TypeVar("_T")


def how_many_listed(items: Sequence[Any], everything: bool = False) -> int:
    """Return how many of a list are printed: all if they are few or all are wanted, else the first."""
    return len(items) if everything or len(items) <= LISTED else FIRST


def some_shown(items: Sequence[_T], show: Callable[[_T], str], rest: str) -> Iterator[str]:
    """Yield a line for each item or, if they are many, for the first ones, and then what lists the rest."""
    printed = how_many_listed(items)
    for item in items[:printed]:
        yield f"  {show(item)}"
    if printed < len(items):
        yield f"  and {len(items) - printed:,} more: {rest} lists them"


def table(rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """Yield rows with their columns below one another; columns in ``right`` end together.

    Widths come from the first thousand rows, so that a table of a million is printed as it comes.
    """
    rows = iter(rows)
    head = list(islice(rows, 1000))
    widths = [max(map(len, column)) for column in zip(*head, strict=True)]
    for part in (head, rows):
        for row in part:
            cells = [
                cell.rjust(width) if i in right else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            yield ("  " + "  ".join(cells)).rstrip()


def csv_text(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield rows as CSV, many lines at a time."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        if text.tell() > 1 << 16:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return ``1 atom`` or ``1,000 atoms``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
