"""Bars: numbers that are added up, drawn with letters and in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

HALF: Final = 12
"""Letters of the longest bar on either side of 0."""

UP, DOWN = "#0072B2", "#D55E00"  # they differ for every eye

Row = tuple[str, float, float]
"""What it is, how much, and the standard error of that; 0: it is exact."""


def bar_lines(rows: Sequence[Row]) -> list[str]:
    r"""Return a line for each row: the number, its bar left or right of 0, and what it is.

    >>> print(*bar_lines([("glu > 150", 1.5, 0.0), ("age", -0.75, 0.01)]), sep="\n")
       +1.500              |████████████ glu > 150
       -0.750 ±0.01  ██████|             age
    """
    most = max((abs(value) for _, value, _ in rows), default=0.0)
    errors = [f" ±{error:.2g}" if error else "" for _, _, error in rows]
    wide = max(map(len, errors), default=0)
    lines = []
    for (label, value, _), error in zip(rows, errors, strict=True):
        size = round(HALF * abs(value) / most) if most else 0
        left, right = ("", "█" * size) if value >= 0 else ("█" * size, "")
        lines.append(f"{value:+9.3f}{error:<{wide}} {left:>{HALF}}|{right:<{HALF}} {label}")
    return lines


def bar_table(rows: Sequence[Row], *, head: str) -> str:
    """Return an HTML table likewise, with ``head`` above it."""
    most = max((abs(value) for _, value, _ in rows), default=0.0)
    lines = [f"<table><caption>{escape(head)}</caption>"]
    for label, value, error in rows:
        width = 100 * abs(value) / most if most else 0.0
        bar = f'<div style="height:0.8em;width:{width:.0f}%;background:{UP if value >= 0 else DOWN}'
        bars = [
            f'{bar};margin-left:auto"></div>' if value < 0 else "",
            f'{bar}"></div>' if value >= 0 else "",
        ]
        cells = "".join(f'<td style="width:8em;padding:0">{each}</td>' for each in bars)
        wrong = f" ±{error:.2g}" if error else ""
        lines.append(
            f'<tr><td style="text-align:right">{value:+.3f}{wrong}</td>{cells}'
            f'<td style="text-align:left">{escape(label)}</td></tr>'
        )
    return "".join([*lines, "</table>"])
