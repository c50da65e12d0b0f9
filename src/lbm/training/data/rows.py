"""Rows of tables in memory, a few at a time as dense tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from lbm.arrays import Ints, slices
from lbm.training.data.table import MISSING

COUNTED: Final = 1024
"""Rows that are dense at once while they are counted."""


class Rows:
    """Rows of a table, a few at a time, as dense tensors with NaN where a value is missing.

    Parameters
    ----------
    values
        Shape (rows, columns): an array of numbers; a sparse matrix, made dense one batch at a time; or an
        array of bytes 0, 1 and MISSING, made numbers one batch at a time.
    """

    def __init__(self, values: Any, *, dtype: torch.dtype, device: str = "cpu") -> None:
        self.values, self.dtype, self.device, self.gaps = values, dtype, device, False
        if not isinstance(values, np.ndarray):
            self.values = csr_array(values)
        elif values.dtype == np.uint8:
            self.gaps = any((values[part] == MISSING).any() for part in slices(len(values), 4096))
        else:
            # torch warns of arrays it could not write into, such as those of pandas; nobody writes into them.
            self.values = torch.as_tensor(np.require(values, requirements="W"), dtype=dtype, device=device)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def batch(self, indices: Ints) -> Tensor:
        """Return these rows, shape (indices, columns)."""
        if isinstance(self.values, Tensor):
            return self.values[torch.from_numpy(indices)]
        found = self.values[indices]
        part = torch.as_tensor(found if isinstance(found, np.ndarray) else found.toarray())
        x = part.to(device=self.device, dtype=self.dtype)
        return x.masked_fill_(part.to(self.device) == MISSING, torch.nan) if self.gaps else x


def count_values(rows: Rows) -> tuple[Ints, Ints]:
    """Return how many rows hold 0, and how many 1, in each column, shape (columns,) both."""
    zeros = ones = np.zeros(1, dtype=np.int64)
    for places in slices(len(rows), COUNTED):
        part = rows.batch(np.arange(places.start, places.stop))
        zeros = zeros + (part == 0).sum(dim=0).cpu().numpy()
        ones = ones + (part == 1).sum(dim=0).cpu().numpy()
    return zeros, ones
