"""Pictures of training: how it went, what became of the rules, and whether probabilities mean what they say.

Each function draws on an Axes and returns it; nothing global is touched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.reasoning.sampling.diagnostics import wilson
from lbm.views.plots import INK, NEGATIVE, POSITIVE, short_name  # says so if matplotlib is missing

# isort: split
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from lbm.training.gradients.epochs import Epoch
    from lbm.training.learners.estimator import Confidence

RULES: Final = 30
"""Rules that a picture of confidences shows: those that moved most."""

LINE: Final = 50
"""Characters of a rule on one line of a label."""

GREY: Final = "#888888"


def learning_curve(history: Sequence[Epoch], ax: Axes | None = None) -> Axes:
    """Draw the cost of training and of validation by epoch; the epoch that was kept is marked.

    Parameters
    ----------
    history
        As in ``LBMClassifier.history_``.
    ax
        Where to draw; without it, on a new figure.
    """
    ax = _axes(ax)
    numbers = [epoch.number for epoch in history]
    ax.plot(numbers, [epoch.cost for epoch in history], color=POSITIVE, label="training: mean cost")
    judged = [epoch for epoch in history if epoch.validation_cost is not None]
    if judged:
        costs = np.array([epoch.validation_cost for epoch in judged], dtype=np.float64)
        at = [epoch.number for epoch in judged]
        ax.plot(at, costs, color=NEGATIVE, ls=(0, (3.5, 1.2)), label="validation: mean -log p(class)")
        best = judged[int(costs.argmin())]
        right = f", accuracy {best.validation_accuracy:.2%}" if best.validation_accuracy is not None else ""
        ax.plot([best.number], [costs.min()], "o", color=NEGATIVE, label=f"kept: epoch {best.number}{right}")
    ax.set(xlabel="epoch", ylabel="cost")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if history:
        ax.legend(frameon=False, fontsize=9)
    return ax


def confidence_changes(confidences: Sequence[Confidence], ax: Axes | None = None) -> Axes:
    """Draw the confidence of every rule before training and after it; past RULES, of those that moved most.

    ``confidences`` is as in ``LBMClassifier.confidences_``.
    """
    moved = sorted(range(len(confidences)), key=lambda i: -abs(confidences[i].final - confidences[i].initial))
    shown = [confidences[i] for i in sorted(moved[:RULES])]
    labels = [_rule_label(rule.formula) for rule in shown]
    each = 0.42 if any("\n" in label for label in labels) else 0.3
    ax = _axes(ax, height=1.2 + each * max(len(shown), 3))
    places = np.arange(len(shown))
    before = np.array([rule.initial for rule in shown])
    after = np.array([rule.final for rule in shown])
    fixed = np.array([rule.fixed for rule in shown], dtype=bool)
    fell = (after < before) & ~fixed
    # A stroke for what was, a dot for what is: where nothing moved both can be seen.
    ax.plot(before, places, "|", color=INK, ms=11, mew=1.5, label="before", clip_on=False, zorder=4)
    for way, colour, label in (
        (fell, NEGATIVE, "after, lower"),
        (~fell & ~fixed, POSITIVE, "after, as high or higher"),
        (fixed, GREY, "kept as it was"),
    ):
        if way.any():
            ax.hlines(places[way], before[way], after[way], color=colour, lw=2)
            ax.plot(after[way], places[way], "o", color=colour, label=label, clip_on=False, zorder=3)
    ax.set_yticks(places, labels, fontsize=8, parse_math=False)
    ax.set(xlabel="confidence", ylim=(max(len(shown), 1) - 0.5, -0.5))
    every = [0.0, *before.tolist(), *after.tolist()]  # free literals can turn round, below 0
    ax.set_xlim(1.05 * min(every), 1.05 * max(every) or 1.0)
    if len(shown) < len(confidences):
        ax.set_title(f"{len(shown)} of {len(confidences):,} rules: those that moved most", fontsize=10)
    if shown:
        ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.02, 1))
    return ax


def calibration(
    probabilities: ArrayLike, truth: ArrayLike, ax: Axes | None = None, *, bins: int = 10
) -> Axes:
    """Draw how often an event with a predicted probability happens; on the diagonal, as often as predicted.

    Each point is a range of predictions, at their mean, with Wilson's 95 % interval for what was observed;
    the figure beside it is the number of events.

    Parameters
    ----------
    probabilities, truth
        What was predicted for each event, and whether it happened: shape (events,).
    bins
        Ranges of equal width that events are counted in.
    """
    p, happened = np.asarray(probabilities, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if p.shape != happened.shape or p.ndim != 1:
        raise ValueError(
            f"expected as many outcomes as probabilities, got shapes {happened.shape}, {p.shape}"
        )
    if not ((p >= 0) & (p <= 1)).all() or not np.isin(happened, (0, 1)).all():
        raise ValueError(
            "expected probabilities from 0 to 1 and outcomes 0 and 1, got others: "
            "give predict_proba(X)[:, k] and y == classes_[k]"
        )
    which = np.minimum((p * bins).astype(np.int64), bins - 1)
    counts = np.bincount(which, minlength=bins)
    used = counts > 0
    mean = np.bincount(which, p, minlength=bins)[used] / counts[used]
    times = np.bincount(which, happened, minlength=bins)[used]
    share = times / counts[used]
    ends = [wilson(*pair) for pair in zip(times.tolist(), counts[used].tolist(), strict=True)]
    low, high = np.array(ends).reshape(-1, 2).T
    ax = _axes(ax, width=4.5, height=4.5)
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":", label="as often as predicted")
    ax.errorbar(
        mean, share, yerr=np.maximum([share - low, high - share], 0), fmt="o-", color=POSITIVE, lw=1, ms=5,
        capsize=2, label="observed, with its 95 % interval", clip_on=False, zorder=3,
    )  # fmt: skip
    for x, y, count in zip(mean.tolist(), share.tolist(), counts[used].tolist(), strict=True):
        # Off the bar and the line, which mostly rises; inside at the right, and not on the axis below.
        right, low_down = x > 0.9, y < 0.1
        place = (-5 if right else 5, 3 if right or low_down else -9)
        ax.annotate(
            f"{count:,}", (x, y), place, textcoords="offset points", ha="right" if right else "left",
            fontsize=7.5, color=INK,
        )  # fmt: skip
    ax.set(xlabel="predicted probability", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1))
    ax.set_aspect("equal")
    # Points may be anywhere and a title above: the legend goes below.
    ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    return ax


def _rule_label(formula: str) -> str:
    """Return a rule on one line, or on two where it is long, broken before a connective."""
    if len(formula) <= LINE:
        return formula
    text = short_name(formula, 2 * LINE - 10)
    breaks = [found.start() for found in re.finditer(r" (?=(?:&|\||\^|->|<->) )", text)]
    if not breaks:
        return text
    middle = min(breaks, key=lambda place: abs(place - len(text) // 2))
    return f"{text[:middle]}\n{text[middle + 1 :]}"


def _axes(ax: Axes | None, *, width: float = 6.0, height: float = 3.5) -> Axes:
    if ax is None:
        ax = Figure(figsize=(width, height)).add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    return ax
