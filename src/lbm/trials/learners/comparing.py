"""How differences between learners are judged: paired tests for repeated folds, Holm's correction, ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np


def paired_chance(differences: Sequence[float], *, test_share: float) -> float:
    """Return how likely differences at least this large in the mean are, were learners equally good.

        t = mean / sqrt((1/n + test/train) · variance)

    Folds share most of their training rows, which a plain t-test takes for news; the second term makes up for
    that. [Nadeau & Bengio 2003] Differences that are all alike are certain, unless they are 0.

    Parameters
    ----------
    differences
        Of scores on the same fold with the same seed.
    test_share
        The share of all rows that a test fold holds.

    Examples
    --------
    >>> round(paired_chance([1.0, 2.0, 3.0, 2.0, 2.0], test_share=0.2), 4)
    0.0135
    """
    from scipy.stats import t as student

    values = np.asarray(differences, float)
    if len(values) < 2:
        return 1.0
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    if variance < 1e-24:
        return 0.0 if abs(mean) > 1e-12 else 1.0
    ratio = test_share / (1 - test_share)
    statistic = mean / math.sqrt((1 / len(values) + ratio) * variance)
    return float(2 * student.sf(abs(statistic), len(values) - 1))


def holm(chances: Mapping[str, float]) -> dict[str, float]:
    """Return chances corrected for their number, by Holm's method, in the order given.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    order = sorted(chances, key=lambda name: chances[name])
    found: dict[str, float] = {}
    most = 0.0
    for place, name in enumerate(order):
        most = max(most, min(1.0, (len(order) - place) * chances[name]))
        found[name] = most
    return {name: found[name] for name in chances}


def ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the rank of each, 1 for the greatest score; equal scores share the mean of their ranks.

    >>> ranks({"a": 0.9, "b": 0.7, "c": 0.9})
    {'a': 1.5, 'b': 3.0, 'c': 1.5}
    """
    values = np.array(list(scores.values()))
    return {
        name: float((values > score).sum() + ((values == score).sum() + 1) / 2)
        for name, score in scores.items()
    }


def interval_99(values: Sequence[float]) -> tuple[float, float]:
    """Return the 99 % interval of a mean, by Student's t; without a second value, the whole line.

    Examples
    --------
    >>> [round(end, 3) for end in interval_99([1.0, 2.0, 3.0, 2.0])]
    [-0.385, 4.385]
    """
    from scipy.stats import t as student

    found = np.asarray(values, float)
    if len(found) < 2:
        return -math.inf, math.inf
    half = float(student.ppf(0.995, len(found) - 1)) * float(found.std(ddof=1)) / math.sqrt(len(found))
    return float(found.mean()) - half, float(found.mean()) + half


def percent(value: float) -> str:
    """Return a share in %, to two digits.

    >>> percent(0.96278)
    '96.28'
    """
    return f"{100 * value:.2f}"


def percent_spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation of shares, in %; of a single one, that.

    >>> percent_spread([0.9, 0.8]), percent_spread([0.5])
    ('85.00 ± 7.07', '50.00')
    """
    found = np.asarray(values, float)
    if len(found) < 2:
        return percent(float(found.mean()))
    return f"{percent(float(found.mean()))} ± {percent(float(found.std(ddof=1)))}"
