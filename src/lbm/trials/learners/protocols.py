"""Two protocols for one curve: what is chosen on the test fold, as the paper did, and what is not.

*Paper*: after whichever epoch is best on the test fold; the mean over folds and seeds of one setting.
*Honest*: setting and epoch are those that are best on rows put aside from the training folds; then the
learner is trained anew on all rows of these, and its test rows are scored once. A learner that is not better
on rows put aside than the larger class is, by more than a standard error, is not believed. What counts for
that is the mean over the chosen epoch and its neighbours: the best of many epochs is often best by luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.trials.learners.fits import SETTINGS, Setting, curve, drawn_of_each, share_of_clauses
from lbm.trials.learners.sets import LabelledTable, Names

ASIDE: Final = 0.2
"""The share of training rows on which settings and epochs are chosen, where folds are no areas."""

NEIGHBOURS: Final = 2
"""Epochs on either side of the chosen one that have a say in whether a learner is believed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One setting on one fold.

    Attributes
    ----------
    best
        Accuracy on the test fold after the epoch that is best there.
    log_odds
        Of the test rows after the epoch that is most often right on rows put aside, of several the one that
        is least surprised.
    epoch
        That epoch, from 1.
    aside
        Accuracy there on the rows put aside, and ``surprise``, the mean of -log p of their labels.
    nearby
        Accuracy on the rows put aside, the mean over that epoch and its neighbours.
    larger, bar
        The larger class of the training rows, and what its share of the rows put aside is, plus a standard
        error.
    """

    setting: Setting
    best: float
    log_odds: Floats
    epoch: int
    aside: float
    surprise: float
    nearby: float
    larger: bool
    bar: float


def judge_fold(
    table: LabelledTable,
    fold: str,
    learner: str,
    *,
    seed: int,
    settings: Sequence[Setting] | None = None,
    epochs: int,
) -> list[Judged]:
    """Return every setting of a learner on one fold: two fits each."""
    test = table.folds == fold
    train = np.flatnonzero(~test)
    areas = table.folds[train] if table.areas else None
    kept, held = put_aside(table.labels[train], seed=seed, areas=areas)
    inner, outer = train[kept], train[held]
    share = share_of_clauses(table.name)
    larger = bool(table.labels[train].mean() > 0.5)
    rate = float((table.labels[outer] == larger).mean())
    bar = rate + (rate * (1 - rate) / len(outer)) ** 0.5
    found = []
    for setting in SETTINGS[learner] if settings is None else settings:
        fitted = partial(curve, learner, setting, share=share, seed=seed, epochs=epochs)
        tried = fitted(table.cells[inner], table.labels[inner], table.cells[outer])
        right = accuracies(tried, table.labels[outer])
        costs = surprises(tried, table.labels[outer])
        epoch = int(np.lexsort((costs, -right))[0])
        final = fitted(table.cells[train], table.labels[train], table.cells[test])
        best = float(accuracies(final, table.labels[test]).max())
        aside = float(right[epoch]), float(costs[epoch]), around(right, epoch)
        found.append(Judged(setting, best, final[epoch], epoch + 1, *aside, larger, bar))
    return found


def chosen(judged: Sequence[Judged]) -> Judged:
    """Return the setting that is most often right on rows put aside; of several, the least surprised."""
    return min(judged, key=lambda one: (-one.aside, one.surprise))


def believed(one: Judged) -> Floats:
    """Return log-odds of test rows as they count: if need be all for the larger class, in the same order."""
    odds = one.log_odds
    if one.nearby > one.bar:
        return odds
    return np.asarray(odds - odds.min() + 1.0 if one.larger else odds - odds.max() - 1.0)


def around(values: Floats, place: int) -> float:
    """Return the mean of a value and its neighbours, as far as there are any.

    >>> curve = np.array([0.5, 0.75, 0.5, 1.0, 0.5, 0.75])
    >>> around(curve, 3), around(curve, 0)
    (0.7, 0.5833333333333334)
    """
    return float(values[max(place - NEIGHBOURS, 0) : place + NEIGHBOURS + 1].mean())


def put_aside(labels: Bools, *, seed: int, areas: Names | None = None) -> tuple[Ints, Ints]:
    """Return numbers of rows to train on and of rows put aside.

    What is put aside is like what is tested later: an area where test folds are areas, each in turn as seeds
    go up; else rows drawn one by one, classes in proportion, as the paper's folds are.
    """
    if areas is not None:
        names = sorted(set(areas.tolist()))
        one = areas == names[seed % len(names)]
        return np.flatnonzero(~one), np.flatnonzero(one)
    held = drawn_of_each(labels, np.random.default_rng([seed, 3]), share=ASIDE, left=1)
    return np.setdiff1d(np.arange(len(labels)), held), held


def accuracies(log_odds: Floats, labels: Bools) -> Floats:
    """Return the share of rows that are right at each point of a curve, shape (epochs,)."""
    return np.asarray(((log_odds > 0) == labels).mean(axis=-1))


def surprises(log_odds: Floats, labels: Bools) -> Floats:
    """Return the mean of -log p(label) at each point of a curve, shape (epochs,)."""
    return np.asarray(np.logaddexp(0.0, np.where(labels, -log_odds, log_odds)).mean(axis=-1))
