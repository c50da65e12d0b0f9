"""Names for the kinds of arrays that all rooms hand to each other, and a way to take them in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

States = NDArray[Any]
"""States of chains, shape (atoms, lanes): truth values, 0 and 1, or fractions between them."""


def slices(total: int, size: int) -> Iterator[slice]:
    """Return the places from 0 to ``total`` in parts, ``size`` at a time.

    >>> [list(range(7))[part] for part in slices(7, 3)]
    [[0, 1, 2], [3, 4, 5], [6]]
    """
    return (slice(first, min(first + size, total)) for first in range(0, total, size))
