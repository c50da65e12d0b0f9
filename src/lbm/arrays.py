"""Names for the kinds of arrays that all rooms hand to each other."""

from __future__ import annotations

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
