"""Rows of tables in memory, a few at a time as dense tensors."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from torch import Tensor

Ints = NDArray[np.int64]


class DenseRows:
    """Rows of an array."""

    def __init__(self, x: ArrayLike, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
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
