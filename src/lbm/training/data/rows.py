"""Rows of tables in memory, a few at a time as dense tensors."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from torch import Tensor

from lbm.arrays import Bytes, Ints, slices

MISSING: Final = 255
"""What stands for a missing value in bytes, beside 0 and 1."""

COUNTED: Final = 1024
"""Rows that are dense at once while they are counted."""


class Rows(Protocol):
    """Rows of a table, a few at a time, as dense tensors with NaN where a value is missing."""

    def __len__(self) -> int: ...

    def batch(self, indices: Ints) -> Tensor:
        """Return these rows, shape (indices, columns)."""
        ...


class DenseRows:
    """Rows of an array."""

    def __init__(self, x: ArrayLike, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        # torch warns of arrays it could not write into, such as those of pandas; nobody writes into them.
        self.x = torch.as_tensor(np.require(x, requirements="W"), dtype=dtype, device=device)

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, indices: Ints) -> Tensor:
        """Return these rows, shape (indices, columns)."""
        return self.x[torch.from_numpy(indices)]


class SparseRows:
    """Rows of a sparse matrix, made dense one batch at a time."""

    def __init__(self, x: csr_array, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        self.x, self.dtype, self.device = x, dtype, device

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def batch(self, indices: Ints) -> Tensor:
        """Return these rows, shape (indices, columns)."""
        return torch.as_tensor(self.x[indices].toarray(), dtype=self.dtype, device=self.device)


class CompactRows:
    """Rows of 0, 1 and MISSING in bytes, shape (rows, columns), made numbers one batch at a time."""

    def __init__(self, values: Bytes, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        self.values, self.dtype, self.device = values, dtype, device
        self.gaps = any((values[part] == MISSING).any() for part in slices(len(values), 4096))

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, indices: Ints) -> Tensor:
        """Return these rows, shape (indices, columns), with NaN where a value is missing."""
        found = torch.from_numpy(self.values[indices])
        x = found.to(device=self.device, dtype=self.dtype)
        return x.masked_fill_(found.to(self.device) == MISSING, torch.nan) if self.gaps else x


def rows_of(x: Any, *, dtype: torch.dtype, device: str) -> Rows:
    """Return rows of an array or of a sparse matrix."""
    if isinstance(x, np.ndarray):
        return DenseRows(x, dtype=dtype, device=device)
    return SparseRows(csr_array(x), dtype=dtype, device=device)


def count_values(rows: Rows) -> tuple[Ints, Ints]:
    """Return how many rows hold 0, and how many 1, in each column, shape (columns,) both."""
    zeros = ones = np.zeros(1, dtype=np.int64)
    for places in slices(len(rows), COUNTED):
        part = rows.batch(np.arange(places.start, places.stop))
        zeros = zeros + (part == 0).sum(dim=0).cpu().numpy()
        ones = ones + (part == 1).sum(dim=0).cpu().numpy()
    return zeros, ones
