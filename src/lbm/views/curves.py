"""Pictures of training: how it went, what became of the rules, and whether probabilities mean what they say.

Each function draws on an Axes and returns it; nothing global is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.views.plots import INK, NEGATIVE, POSITIVE, short_name  # says so if matplotlib is missing

# isort: split
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from lbm.training.gradients.descent import Epoch
    from lbm.training.learners.fitting import Confidence

RULES: Final = 30
"""Rules that a picture of confidences shows: those that moved most."""

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
    ax = _axes(ax, height=1.5 + 0.3 * len(shown))
    places = np.arange(len(shown))
    before = np.array([rule.initial for rule in shown])
    after = np.array([rule.final for rule in shown])
    fell = after < before
    for way, colour in ((fell, NEGATIVE), (~fell, POSITIVE)):
        ax.hlines(places[way], before[way], after[way], color=colour, lw=2)
        ax.plot(after[way], places[way], "o", color=colour, label="_")
    ax.plot(before, places, "o", mfc="white", mec=INK, label="before")
    ax.plot([], [], "o", color=NEGATIVE, label="after, lower")
    ax.plot([], [], "o", color=POSITIVE, label="after, as high or higher")
    ax.set_yticks(places, [short_name(rule.formula, 48) for rule in shown], fontsize=8, parse_math=False)
    ax.set(xlabel="confidence", ylim=(len(shown) - 0.5, -0.5))
    ax.set_xlim(left=0)
    if len(shown) < len(confidences):
        ax.set_title(f"{len(shown)} of {len(confidences):,} rules: those that moved most", fontsize=10)
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.02, 1))
    return ax


def calibration(
    probabilities: ArrayLike, truth: ArrayLike, ax: Axes | None = None, *, bins: int = 10
) -> Axes:
    """Draw how often an event with a predicted probability happens; on the diagonal, as often as predicted.

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
    which = np.minimum((p * bins).astype(np.int64), bins - 1)
    counts = np.bincount(which, minlength=bins)
    used = counts > 0
    mean = np.bincount(which, p, minlength=bins)[used] / counts[used]
    share = np.bincount(which, happened, minlength=bins)[used] / counts[used]
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":", label="as often as predicted")
    # A bar of ±2 standard errors, at least those of one event more or less.
    error = 2 * np.sqrt(np.maximum(share * (1 - share), 1 / (4 * counts[used])) / counts[used])
    low, high = np.minimum(error, share), np.minimum(error, 1 - share)
    ax.errorbar(
        mean, share, yerr=np.stack([low, high]), fmt="o-", color=POSITIVE, capsize=2, label="observed"
    )
    for x, y, count in zip(mean.tolist(), share.tolist(), counts[used].tolist(), strict=True):
        ax.annotate(f"{count:,}", (x, y), (5, -9), textcoords="offset points", fontsize=7, color=GREY)
    ax.set(xlabel="predicted probability", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False, fontsize=9)
    return ax


def _axes(ax: Axes | None, *, height: float = 3.5) -> Axes:
    if ax is None:
        ax = Figure(figsize=(6, height)).add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    return ax
