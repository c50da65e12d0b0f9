"""What is recorded of chains while they run: a bounded amount, however long that is.

Sweeps are summed in blocks of equal length. When there are too many blocks, neighbours are joined and the
length doubles. Means, effective sizes and R-hats of sums over blocks say what those of single sweeps would.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BLOCKS: Final = 1024
"""Blocks that are kept of each series; a power of two."""

Floats = NDArray[np.float64]


class Record:
    """Several series in all chains, as sums over blocks of sweeps."""

    def __init__(self, most: int = BLOCKS) -> None:
        self.most = most
        self.width = 1
        self._sums: list[NDArray[Any]] = []  # each (series, blocks, chains)
        self._number = 0
        self._rest: NDArray[Any] | None = None  # sweeps that do not fill a block yet

    def add(self, values: NDArray[Any]) -> None:
        """Add what was seen in some sweeps, shape (series, sweeps, chains)."""
        if self._rest is not None:
            values = np.concatenate([self._rest, values], axis=1)
        while self._number + values.shape[1] // self.width > self.most and self._number > 1:
            self._join()
        for begin in range(0, values.shape[1], self.most * self.width):
            self._append(values[:, begin : begin + self.most * self.width])

    def _append(self, values: NDArray[Any]) -> None:
        series, sweeps, chains = values.shape
        full = sweeps // self.width * self.width
        self._rest = values[:, full:] if full < sweeps else None
        if full:
            blocks = values[:, :full].reshape(series, full // self.width, self.width, chains)
            self._sums.append(blocks.sum(axis=2) if self.width > 1 else blocks[:, :, 0])
            self._number += full // self.width
        while self._number > self.most:
            self._join()

    def _join(self) -> None:
        """Join neighbouring blocks; a last one without a neighbour is left out."""
        whole = np.concatenate(self._sums, axis=1)
        even = whole.shape[1] // 2 * 2
        joined = whole[:, 0:even:2] + whole[:, 1:even:2]
        self._sums, self._number, self.width = [joined], even // 2, 2 * self.width

    def last_half(self) -> Floats:
        """Return the sums over the blocks of the second half, shape (series, chains, blocks)."""
        whole = np.concatenate(self._sums, axis=1)
        return np.moveaxis(whole[:, whole.shape[1] // 2 :], 1, 2).astype(np.float64)
