"""Scores of predictions: accuracy and what is fair where classes are uneven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score

from lbm.arrays import Bools, Floats


@dataclass(frozen=True, slots=True)
class Scores:
    """How good predictions are, each from 0 to 1.

    ``precision_area`` is the area under the curve of precision over recall (average precision); NaN where
    there is no positive example.
    """

    accuracy: float
    balanced_accuracy: float
    f1: float
    precision_area: float


def score(log_odds: Floats, labels: Bools) -> Scores:
    """Return the scores of log-odds for the positive class; above 0 is a yes, shape (examples,) both.

    >>> score(np.array([2.0, -1.0, 1.0, -3.0]), np.array([True, True, False, False])).accuracy
    0.5
    """
    said = log_odds > 0
    hits = [
        float((said == labels)[labels == kind].mean()) for kind in (True, False) if (labels == kind).any()
    ]
    true_positive = int((said & labels).sum())
    wrong = int((said != labels).sum())
    f1 = 2 * true_positive / (2 * true_positive + wrong) if true_positive or wrong else 1.0
    area = float(average_precision_score(labels, log_odds)) if labels.any() else float("nan")
    return Scores(float((said == labels).mean()), float(np.mean(hits)), f1, area)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the sample standard deviation of fold scores; without a second one it is 0."""
    known = np.asarray([value for value in values if not np.isnan(value)])
    if not len(known):
        return float("nan"), float("nan")
    return float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else 0.0


def surprise(log_odds: Floats, labels: Bools) -> float:
    """Return the surprise (log loss, cross-entropy): the mean of -log p(label). Settings are chosen by it."""
    return float(np.logaddexp(0.0, np.where(labels, -log_odds, log_odds)).mean())
