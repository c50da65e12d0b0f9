"""Paints the pictures of the trials: plain data in, SVG out, the same bytes for the same data."""

from __future__ import annotations

import io
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lbm.knowledge.theory import Theory
from lbm.machine.translate import translate
from lbm.trials.pictures import Chart, Curve, Drawing, Mark, Picture
from lbm.views.plots import INK, network  # says so if matplotlib is missing

# isort: split
from matplotlib import style
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7A5C00", "#56B4E9", "#444444", "#B00020")
"""Of curves, by number; told apart by every eye, with the marks below."""

MARKERS: Final = "osD^vPX*"
SIZE: Final = (5.2, 3.7)
"""Inches of a chart: narrow enough to be read on a telephone."""

TICKS: Final = 8
"""Places along a logarithmic axis up to which each has its number."""

_STYLE: Final = {"svg.hashsalt": "lbm", "font.size": 10, "axes.titlesize": 10.5, "legend.fontsize": 8.5}


def paint(picture: Picture) -> str:
    """Return a picture as the text of an SVG file."""
    out = io.BytesIO()
    # A style of ours, not the user's; and a font that lacks a letter shows a box.
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = _drawing(picture) if isinstance(picture, Drawing) else _chart(picture)
        figure.savefig(out, format="svg", bbox_inches="tight", pad_inches=0.08, metadata={"Date": None})
    return out.getvalue().decode()


def _drawing(picture: Drawing) -> Figure:
    machine = translate(Theory.parse(picture.theory), epsilon=0.5, encoding=picture.encoding)
    figure = network(machine, legend=False).get_figure()
    assert isinstance(figure, Figure)
    return figure


def _chart(chart: Chart) -> Figure:
    figure = Figure(figsize=SIZE)
    ax = figure.add_subplot()
    if chart.x_log:
        ax.set_xscale("log")
    if chart.y_log:
        ax.set_yscale("log")
    for curve in chart.curves:
        _curve(ax, curve)
    if chart.y_range is not None:
        ax.set_ylim(*chart.y_range)
    for mark in chart.marks:
        _mark(ax, mark)
    ax.set(xlabel=chart.x_label, ylabel=chart.y_label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#DDDDDD", lw=0.6)
    ax.set_axisbelow(True)
    if chart.space is not None:
        _ratio(ax, chart.space)
    elif chart.x_log:
        places = sorted({x for curve in chart.curves for x in curve.x})
        if len(places) <= TICKS:  # sizes that were chosen say more than powers of ten
            ax.set_xticks(places, [f"{place:g}" for place in places])
            ax.set_xticks([], minor=True)
    if chart.places:
        ax.set_xticks(range(1, len(chart.places) + 1), chart.places, rotation=30, ha="right")
    if any(curve.label for curve in chart.curves):
        below = -0.34 if chart.places else -0.16
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=3)
    return figure


def _curve(ax: Axes, curve: Curve) -> None:
    colour = COLOURS[curve.colour % len(COLOURS)]
    look: dict[str, Any] = {"color": colour, "label": curve.label or None}
    if curve.look == "dots":
        ax.plot(curve.x, curve.y, "o", ms=4, zorder=4, **look)
        if curve.low:
            ax.vlines(curve.x, curve.low, curve.high, color=colour, lw=1.4, zorder=3)
        return
    if curve.look == "bars":
        ax.plot(curve.x, curve.y, "_", ms=16, mew=1.6, zorder=2, **{**look, "color": INK})
        return
    if curve.look == "dashes":
        ax.plot(curve.x, curve.y, ls=(0, (4, 2)), lw=1.4, zorder=2, **look)
        return
    marker = MARKERS[curve.colour % len(MARKERS)] if len(curve.x) <= 40 else None
    # Broad below narrow: where two methods do equally well both can be seen.
    broad = curve.colour % 2 == 0 and marker is not None
    width, size = (2.8, 6.5) if broad else (1.4, 4.0)
    ax.plot(curve.x, curve.y, marker=marker, ms=size, lw=width, zorder=3 - 0.5 * broad, **look)
    if curve.low:
        ax.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, lw=0)


def _mark(ax: Axes, mark: Mark) -> None:
    words: dict[str, Any] = {"fontsize": 8.5, "color": INK, "parse_math": False}
    if mark.y is not None:
        ax.annotate(mark.text, (mark.x, mark.y), (-6, 6), textcoords="offset points", ha="right", **words)
        return
    ax.axvline(mark.x, color=INK, lw=1, ls=":")
    ax.annotate(
        mark.text, (mark.x, 0.03), (-3, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
        rotation=90, ha="right", va="bottom", **words,
    )  # fmt: skip


def _ratio(ax: Axes, space: float) -> None:
    """Put a second axis above: the same samples as a share of all worlds."""
    above = ax.secondary_xaxis("top", functions=(partial(_times, 1 / space), partial(_times, space)))
    above.set_xlabel("share of all worlds", fontsize=9)
    above.tick_params(labelsize=8)


def _times(factor: float, x: Any) -> Any:
    return x * factor
