"""Averages of machines: where examples are few, each machine of another draw of them, and the mean of all.

    log-odds = 1/n · Σ_i log-odds of machine i

Machine i is trained on as many examples of each class as there are, drawn with replacement; the columns that
mRMR leaves are chosen on the same draw. What a single machine owes to chance, the mean mostly loses
[Breiman, *Bagging predictors*, 1996].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.training.learners.classifier import LBMClassifier

FEW: Final = 200
"""Training examples of the rarer class below which machines are averaged."""

MACHINES: Final = 10
"""Machines of an average."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

Keep = Callable[[Any, Bools], Sequence[int]]
Make = Callable[[int], LBMClassifier]


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """Machines, and the numbers of the columns that each of them sees."""

    members: tuple[tuple[LBMClassifier, tuple[int, ...]], ...]

    @property
    def columns(self) -> int:
        """Return how many columns a machine sees, at most."""
        return max(len(kept) for _, kept in self.members)

    def decision_function(self, table: Any) -> Floats:
        """Return the mean of the machines' log-odds for the rows of a table, shape (rows,)."""
        odds = [machine.decision_function(table.iloc[:, list(kept)]) for machine, kept in self.members]
        return np.asarray(np.mean(odds, axis=0))


def how_many(labels: Bools, machines: int | None) -> int:
    """Return how many machines to average: as said, or by the number of examples of the rarer class.

    >>> how_many(np.array([True] * 300 + [False] * 90), None), how_many(np.arange(1000) < 400, None)
    (10, 1)
    """
    if machines is not None:
        return machines
    return MACHINES if min(int(labels.sum()), int((~labels).sum())) < FEW else 1


def fit_average(table: Any, labels: Bools, *, machines: int, keep: Keep, make: Make, seed: int) -> Average:
    """Return machines trained on draws of a table's rows; a single one is trained on the rows as they are.

    Parameters
    ----------
    keep
        Given rows and their labels, the numbers of the columns to train on.
    make
        Given a seed, a machine to train.
    """
    members = []
    for number in range(machines):
        rows = (
            np.arange(len(labels)) if machines == 1 else draw(labels, np.random.default_rng([seed, number]))
        )
        kept = tuple(keep(table.iloc[rows], labels[rows]))
        machine = make(seed + number).fit(table.iloc[rows, list(kept)], labels[rows])
        members.append((machine, kept))
    return Average(tuple(members))


def draw(labels: Bools, rng: np.random.Generator) -> Ints:
    """Return numbers of rows, drawn with replacement, as many of each class as there are.

    >>> labels = np.array([True, False, False])
    >>> labels[draw(labels, np.random.default_rng(0))].tolist()
    [True, False, False]
    """
    classes = [np.flatnonzero(labels == kind) for kind in (True, False)]
    return np.concatenate([rng.choice(rows, len(rows)) for rows in classes if len(rows)])
