"""By column: how far each column moves a row's log-odds away from those of background rows (Shapley values).

    φ_c = mean over background rows b of Σ_S |S|! (d - |S| - 1)!/d! (f_b(S + c) - f_b(S)),    c not in S

f_b(S) are the log-odds of the row that has the columns S as they are, and the others as they are in b. What
the columns are worth adds up to the log-odds less their mean over the background rows. Columns in which row
and b agree are worth nothing there, so that d counts the others only. Where those are few all sets are taken;
where they are many, orders of columns are drawn, each with its reverse, and the error of the mean is told.
[Shapley 1953; Lundberg and Lee, A Unified Approach to Interpreting Model Predictions, 2017]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import factorial, fsum
from typing import Any, Final

import numpy as np

from lbm.arrays import Floats, Ints
from lbm.training.boltzmann.parameters import Parameters
from lbm.training.explanations.bars import Row, bar_lines, bar_table

ALL_SETS: Final = 10
"""Columns that differ from a background row, up to which all their sets are taken."""

PAIRS: Final = 4
"""Orders drawn for a background row that differs in more columns, each with its reverse."""

SHOWN: Final = 12
"""Columns that are printed; the others are summed."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a column is worth: its name, what the row says there, its value, and the standard error of that.

    An error of 0 means that all sets of columns were taken.
    """

    column: str
    said: str
    value: float
    error: float


@dataclass(frozen=True, slots=True)
class ByColumn:
    """What each column of a row adds to the log-odds: log_odds = average + Σ values.

    Attributes
    ----------
    kind, other
        The class explained and the one it is compared with.
    log_odds, average
        Of the row, and the mean over the background rows.
    shares
        One per column that says anything, the largest |value| first.
    rows
        How many background rows there are.
    """

    kind: str
    other: str
    log_odds: float
    average: float
    shares: tuple[Share, ...]
    rows: int

    @property
    def exact(self) -> bool:
        """Whether all sets of columns were taken."""
        return all(share.error == 0 for share in self.shares)

    def bars(self) -> list[Row]:
        """Return what is drawn: a number for each column, those past SHOWN summed in one."""
        rows = [(share.said, share.value, share.error) for share in self.shares[:SHOWN]]
        if rest := self.shares[SHOWN:]:
            error = fsum(share.error**2 for share in rest) ** 0.5
            rows.append((f"{len(rest)} other columns", fsum(share.value for share in rest), error))
        return rows

    def head(self) -> str:
        """Return what the bars are."""
        return (
            f"log-odds of {self.kind} against {self.other} by column: {self.log_odds:+.3f}, "
            f"{self.average:+.3f} on average over {self.rows} background rows"
        )

    def lines(self) -> list[str]:
        """Return it as people read it."""
        return [self.head(), *bar_lines(self.bars())]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return bar_table(self.bars(), head=self.head())

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {**asdict(self), "exact": self.exact}


def shapley_values(
    learned: Parameters,
    row: Floats,
    background: Floats,
    columns: Sequence[Ints],
    kinds: tuple[int, int],
    *,
    seed: int = 0,
) -> tuple[float, Floats, Floats]:
    """Return the mean log-odds of the background rows, and the worth of every column with its error.

    Parameters
    ----------
    row, background
        Truth values without gaps, shapes (atoms,) and (rows, atoms).
    columns
        The atoms of each column.
    kinds
        The log-odds are of the first class against the second.
    """
    distinct, counts = np.unique(background, axis=0, return_counts=True)
    origin = learned.inputs(np.zeros((1, len(row))))[0]
    reach = learned.inputs(np.eye(len(row))) - origin  # inputs are linear in x
    owner = np.empty(len(row), dtype=np.int64)
    for number, atoms in enumerate(columns):
        owner[atoms] = number
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(columns)))
    random = np.random.default_rng(seed)
    average, values, spread = 0.0, np.zeros(len(columns)), np.zeros(len(columns))
    share = counts / counts.sum()
    begins = learned.inputs(distinct)
    for number, other in enumerate(distinct):
        change = row - other
        moved = np.unique(owner[change != 0])
        steps = np.add.reduceat(change[order, None] * reach[order], starts, axis=0)[moved]
        begin, weight = begins[number], float(share[number])

        def odds(inputs: Floats) -> Floats:
            scores = learned.scores_of_inputs(inputs, joint=False, kinds=kinds)
            return np.asarray(scores[:, 0] - scores[:, 1])

        if len(moved) <= ALL_SETS:
            sets, worth = all_sets(len(moved))
            found = odds(begin + sets @ steps)
            average += weight * float(found[0])
            values[moved] += weight * (worth @ found)
            continue
        each, first = _drawn(random, begin, steps, odds)
        average += weight * first
        values[moved] += weight * each.mean(axis=0)
        spread[moved] += weight**2 * each.var(axis=0, ddof=1) / len(each)
    return average, values, np.sqrt(spread)


def _drawn(random: np.random.Generator, begin: Floats, steps: Floats, odds: Any) -> tuple[Floats, float]:
    """Return the worth of columns by pair of orders, shape (PAIRS, columns), and the first log-odds."""
    size = len(steps)
    orders = np.array([random.permutation(size) for _ in range(PAIRS)])
    orders = np.concatenate([orders, orders[:, ::-1]])
    paths = np.concatenate([np.zeros((2 * PAIRS, 1, steps.shape[1])), steps[orders].cumsum(axis=1)], axis=1)
    found = odds((begin + paths).reshape(-1, steps.shape[1])).reshape(2 * PAIRS, size + 1)
    worth = np.empty((2 * PAIRS, size))
    np.put_along_axis(worth, orders, np.diff(found, axis=1), axis=1)
    return (worth[:PAIRS] + worth[PAIRS:]) / 2, float(found[0, 0])


@cache
def all_sets(size: int) -> tuple[Floats, Floats]:
    """Return all sets of so many columns, shape (sets, columns), and what each counts, (columns, sets).

    >>> sets, worth = all_sets(2)
    >>> worth @ [0.0, 1.0, 2.0, 5.0]  # nothing, the first, the second, both
    array([2., 3.])
    """
    sets = (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(np.float64)
    counts = sets.sum(axis=1).astype(np.int64)
    ways = [factorial(n) * factorial(size - n - 1) / factorial(size) for n in range(size)]
    joins = np.array([0.0, *ways])[counts]  # of sets that the column has joined
    stays = np.array([*ways, 0.0])[counts]
    return sets, np.where(sets.T > 0, joins, -stays)
