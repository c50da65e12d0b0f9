"""Chains while they run: for how long, and what is recorded of them.

A bounded amount is recorded, however long chains run: sweeps are summed in blocks of equal length. When there
are too many blocks, neighbours are joined and the length doubles. Means, effective sizes and R-hats of sums
over blocks say what those of single sweeps would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Floats
from lbm.reasoning.answers import Estimate
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.sampling.diagnostics import R_HAT

FIRST: Final = 256
"""Sweeps after which convergence is looked at for the first time; then whenever their number has doubled."""

MOST: Final = 16_384
"""Sweeps after which chains that do not agree are given up."""

MAX_UPDATES: Final = 400_000_000
"""Updates of one atom in one chain that a run may take, whatever its size."""

MOST_CHEAP: Final = 1 << 16
"""Sweeps after which chains are given up that never leave the models: a sweep of theirs costs little."""

MAX_CHEAP_UPDATES: Final = 4_000_000_000
"""Updates that a run of such chains may take."""

HOPELESS: Final = 4
"""How many times the sweeps allowed chains may seem to need before impatient ones are given up."""

BLOCKS: Final = 1024
"""Blocks that are kept of each series; a power of two."""

_S = TypeVar("_S")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long chains may run.

    Attributes
    ----------
    sweeps
        So many exactly; None: FIRST, and twice as many as long as chains disagree and no other limit is
        reached.
    budget
        When it is spent, they end in any case.
    most, updates
        Sweeps at most, and updates of one atom in one chain; but 2 FIRST sweeps in any case.
    patient
        Where it is false, chains also end that seem to need more than HOPELESS times the sweeps allowed.
    """

    sweeps: int | None = None
    budget: Budget = NO_LIMIT
    most: int = MOST
    updates: int = MAX_UPDATES
    patient: bool = True

    def sweeps_of(self, size: int) -> int:
        """Return how many sweeps there may be, of so many updates in each chain."""
        if self.sweeps is not None:
            return self.sweeps
        return max(2 * FIRST, min(self.most, self.updates // (LANES * max(1, size))))


def run_until(
    seen: Iterator[_S],
    add: Callable[[Sequence[_S]], bool],
    judge: Callable[[], tuple[_T, Estimate]],
    limits: Limits,
    size: int,
    *,
    at_once: int = 1,
) -> tuple[_T, int]:
    """Let chains run until what they say is good, or the limits are reached; return it, and their sweeps.

    Parameters
    ----------
    seen
        What is seen after every sweep, without end.
    add
        Gets what was seen, ``at_once`` sweeps or fewer, and says whether that is enough.
    judge
        Returns what chains say so far, and the worst estimate of it.
    size
        Updates in a sweep of one chain.
    """
    limit = limits.sweeps_of(size)
    done, told, late = 0, -1, False
    while done < limit and not late:
        some: list[_S] = []
        for last in islice(seen, min(at_once, limit - done)):
            some.append(last)
            late = limits.budget.spent()
            if late:
                break
        done += len(some)
        enough = add(some)
        if limits.sweeps is None and enough and done >= FIRST and done & (done - 1) == 0 and not late:
            (found, worst), told = judge(), done
            if worst.converged or not (limits.patient or _may_agree(worst, done, limit)):
                break
    if told != done:
        found, _ = judge()
    return found, done


def _may_agree(worst: Estimate, done: int, limit: int) -> bool:
    """Return whether chains may agree in time: what R² exceeds 1 by falls as the number of sweeps rises."""
    return not done * (worst.r_hat**2 - 1) > HOPELESS * limit * (R_HAT**2 - 1)


class Record:
    """Several series in all chains, as sums over blocks of sweeps."""

    def __init__(self, most: int = BLOCKS) -> None:
        self.most = most
        self.width = 1
        self._sums: list[Floats] = []  # each (series, blocks, chains)
        self._number = 0
        self._part: Floats | None = None  # of a block that is not full yet, (series, chains)
        self._filled = 0  # its sweeps

    def add(self, values: NDArray[Any]) -> None:
        """Add what was seen in some sweeps, shape (series, sweeps, chains)."""
        values = values.astype(np.float64, copy=False)
        while values.shape[1]:
            if self._filled or values.shape[1] < self.width:
                some = values[:, : self.width - self._filled]
                part = some.sum(axis=1)
                self._part = part if self._part is None else self._part + part
                self._filled += some.shape[1]
                if self._filled == self.width:
                    self._keep(self._part[:, None])
                    self._part, self._filled = None, 0
            else:
                full = min(values.shape[1] // self.width, self.most) * self.width
                some = values[:, :full]
                blocks = some.reshape(len(some), -1, self.width, some.shape[2])
                self._keep(blocks.sum(axis=2) if self.width > 1 else some)
            values = values[:, some.shape[1] :]
            while self._number > self.most:
                self._join()

    def _keep(self, blocks: Floats) -> None:
        self._sums.append(blocks)
        self._number += blocks.shape[1]

    def _join(self) -> None:
        """Join neighbouring blocks; a last one without a neighbour waits for the next."""
        whole = np.concatenate(self._sums, axis=1)
        even = self._number // 2 * 2
        if even < self._number:
            last = whole[:, -1]
            self._part = last if self._part is None else last + self._part
            self._filled += self.width
        self._sums, self._number = [whole[:, 0:even:2] + whole[:, 1:even:2]], even // 2
        self.width *= 2

    def last_half(self) -> Floats:
        """Return the sums over the blocks of the second half, shape (series, chains, blocks)."""
        whole = np.concatenate(self._sums, axis=1)
        return np.ascontiguousarray(np.moveaxis(whole[:, whole.shape[1] // 2 :], 1, 2))
