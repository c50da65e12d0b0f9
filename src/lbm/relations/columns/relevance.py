"""Relevance (mutual information): how much columns tell about labels, and few that tell much.

    relevance of c                  I(c; y)
    mRMR, the difference criterion  I(c; y) - mean over the chosen s of I(c; s), chosen greedily

Peng, Long & Ding (2005), as CILP++ uses it [França, Zaverucha & d'Avila Garcez 2014].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbm.arrays import Bools, Floats, Ints


def information(columns: Bools, labels: Sequence[bool] | Bools) -> Floats:
    """Return the mutual information of each column with the labels, in nats, shape (columns,).

    Parameters
    ----------
    columns, labels
        Truth values, shape (examples, columns) and (examples,).

    Examples
    --------
    >>> columns = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
    >>> information(columns, [True, True, False, False]).round(3)
    array([0.693, 0.   ])
    """
    y = np.asarray(labels, dtype=bool)
    both = columns[y].sum(axis=0, dtype=np.int64)
    return _information(len(y), columns.sum(axis=0, dtype=np.int64), int(y.sum()), both)


def _information(total: int, ones: Ints, other: int, both: Ints) -> Floats:
    """Return Σ p log(p / (p_row p_column)) over the four cells, from counts of ones and of common ones."""
    found = np.zeros(len(ones))
    if not total:
        return found
    for cell, row, column in (
        (both, ones, other),
        (ones - both, ones, total - other),
        (other - both, total - ones, other),
        (total - ones - other + both, total - ones, total - other),
    ):
        expected = row.astype(float) * column
        here = cell > 0
        found[here] += cell[here] / total * np.log(cell[here] * total / expected[here])
    return np.maximum(found, 0.0)


def select(columns: Bools, labels: Sequence[bool] | Bools, count: int) -> Ints:
    """Return the numbers of ``count`` columns, or of all if there are fewer, in the order they were chosen.

    The first tells most about the labels; each further one makes the difference criterion largest. Of equal
    ones the first in the table is taken.
    """
    y = np.asarray(labels, dtype=bool)
    relevance = information(columns, y)
    rows, width = columns.shape
    ones = columns.sum(axis=0, dtype=np.int64)
    table = np.ascontiguousarray(columns.T, dtype=np.float32)  # counts up to 2^24 are exact
    redundancy = np.zeros(width)
    free = np.ones(width, dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(count, width):
        score = relevance - redundancy / max(len(chosen), 1)
        # Sums in another order differ in their last digits, which must not decide.
        score = np.where(free, np.round(score, 12), -np.inf)
        best = int(np.argmax(score))
        chosen.append(best)
        free[best] = False
        both = np.rint(table @ table[best]).astype(np.int64)
        redundancy += _information(rows, ones, int(ones[best]), both)
    return np.array(chosen, dtype=np.int64)
