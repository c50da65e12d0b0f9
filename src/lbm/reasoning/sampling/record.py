"""What is recorded of chains while they run: a bounded amount, however long that is.

Sweeps are summed in blocks of equal length. When there are too many blocks, neighbours are joined and the
length doubles. Means, effective sizes and R-hats of sums over blocks say what those of single sweeps would.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Floats

BLOCKS: Final = 1024
"""Blocks that are kept of each series; a power of two."""


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
