"""Which columns a machine should see, chosen on training folds by a model that is fitted in milliseconds.

Sets of columns, chains up to one, two or three literals, all of them or the best few, are judged by penalised
logistic regression: the training folds are dealt into parts, each part is predicted from the others, and the
set that is least surprised wins. A machine of one hidden layer does best on much the same columns, and takes
a hundred times as long to fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.training.relational.scores import surprise

SIZE: Final = 3
"""Literals in a chain, at most, unless something else is said."""

SHARES: Final = (None, 20, 5)
"""How many columns of a size are tried: all, or those that mRMR prefers."""

PENALTIES: Final = (0.1, 1.0)
"""Inverse strengths of the penalty of logistic regression."""

RATE: Final = 0.01
DECAYS: Final = (0.05, 0.5)
"""Adam's rate, and the penalties on weights, of the machines."""

ColumnSet = tuple[int, int | None]
"""Literals in a chain at most, and how many columns; None: all."""


def column_sets(size: int) -> tuple[ColumnSet, ...]:
    """Return the sets of columns that are tried.

    >>> column_sets(2)
    ((1, None), (1, 20), (1, 5), (2, None), (2, 20), (2, 5))
    """
    return tuple((number, most) for number in range(1, size + 1) for most in SHARES)


def rank_sets(
    sets: Sequence[ColumnSet],
    table: Bools,
    labels: Bools,
    judges: Sequence[Bools],
    keep: Callable[[ColumnSet, Bools], Sequence[int]],
) -> list[ColumnSet]:
    """Return sets of columns, the least surprised by parts put aside first; of equals, the first.

    Parameters
    ----------
    judges
        Parts of the rows, one after the other put aside.
    keep
        Given a set and the rows to choose on, the numbers of its columns.
    """
    known: dict[tuple[tuple[int, ...], ...], ColumnSet] = {}
    found: list[tuple[float, ColumnSet]] = []
    for one in sets:
        kept = tuple(tuple(keep(one, ~part)) for part in judges)
        if kept in known:
            continue  # the same columns as before
        known[kept] = one
        cost = min(
            _cost([table[:, list(mine)] for mine in kept], labels, judges, penalty) for penalty in PENALTIES
        )
        found.append((round(cost, 9), one))
    found.sort(key=lambda pair: pair[0])
    return [one for _, one in found]


def _cost(tables: Sequence[Bools], labels: Bools, judges: Sequence[Bools], penalty: float) -> float:
    odds = [_odds(table, labels, part, penalty) for table, part in zip(tables, judges, strict=True)]
    truth = [labels[part] for part in judges]
    return surprise(np.concatenate(odds), np.concatenate(truth))


def _odds(table: Bools, labels: Bools, part: Bools, penalty: float) -> Floats:
    """Return the log-odds of the rows of a part, by a regression on the others."""
    from sklearn.linear_model import LogisticRegression

    if not table.shape[1]:
        return np.full(int(part.sum()), base_odds(labels[~part]))
    model: Any = LogisticRegression(C=penalty, solver="liblinear", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that is nearly done judges as well
        model.fit(table[~part], labels[~part])
    found: Floats = model.decision_function(table[part])
    return found


def base_odds(labels: Bools) -> float:
    """Return the log-odds of the share of positive examples, half an example added to each class.

    >>> base_odds(np.array([True, False])), round(base_odds(np.array([True, True])), 3)
    (0.0, 1.609)
    """
    yes = int(labels.sum())
    return float(np.log((yes + 0.5) / (len(labels) - yes + 0.5)))
