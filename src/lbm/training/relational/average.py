"""Averages of machines: where examples are few, the best settings score together, several machines of each.

    log-odds = 1/n · Σ_i log-odds of machine i

Which of several settings is least surprised by a few examples is mostly chance, and so is where training
begins; the mean over both loses most of it. All machines are trained on all rows: draws of them, with or
without replacement, cost one of two small sets more than they gave the other (see decision 10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.training.learners.classifier import LBMClassifier

FEW: Final = 200
"""Training examples of the rarer class below which machines are averaged."""

MACHINES: Final = 12
"""Machines of an average."""

TOGETHER: Final = 4
"""Settings that score together in an average."""


SettingT = TypeVar("SettingT")


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """Machines, and the numbers of the columns that each of them sees.

    Without a machine, ``base`` is what every row gets: there was nothing to train on but the labels.
    """

    members: tuple[tuple[LBMClassifier, tuple[int, ...]], ...]
    base: float = 0.0

    @property
    def columns(self) -> int:
        """Return how many columns a machine sees, at most."""
        return max((len(kept) for _, kept in self.members), default=0)

    def decision_function(self, table: Any) -> Floats:
        """Return the mean of the machines' log-odds for the rows of a table, shape (rows,)."""
        if not self.members:
            return np.full(len(table), self.base)
        odds = [machine.decision_function(table.iloc[:, list(kept)]) for machine, kept in self.members]
        return np.asarray(np.mean(odds, axis=0))


def how_many(labels: Bools, machines: int | None, most: int = MACHINES) -> int:
    """Return how many machines to average: as said, or by the number of examples of the rarer class.

    >>> how_many(np.array([True] * 300 + [False] * 90), None), how_many(np.arange(1000) < 400, None)
    (12, 1)
    """
    if machines is not None:
        return machines
    return most if min(int(labels.sum()), int((~labels).sum())) < FEW else 1


def together(machines: int) -> int:
    """Return how many of the best settings score together where there are so many machines.

    >>> together(1), together(12)
    (1, 4)
    """
    return min(TOGETHER, machines)


def fit_average(
    table: Any,
    labels: Bools,
    settings: Sequence[SettingT],
    *,
    machines: int,
    keep: Callable[[SettingT], Sequence[int]],
    make: Callable[[SettingT, int], LBMClassifier],
    seed: int,
) -> Average:
    """Return machines trained on a table, with the best settings in turn.

    Parameters
    ----------
    settings
        The best first.
    keep
        Given a setting, the numbers of the columns to train on.
    make
        Given a setting and a seed, a machine to train; seeds are ``seed`` and those after it.
    """
    best = settings[: together(machines)]
    kept = [tuple(keep(setting)) for setting in best]
    members = []
    for number in range(machines):
        place = number % len(best)
        machine = make(best[place], seed + number).fit(table.iloc[:, list(kept[place])], labels)
        members.append((machine, kept[place]))
    return Average(tuple(members))
