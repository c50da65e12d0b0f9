"""Weighted clauses as arrays, as every engine takes them; nothing compiled is loaded for that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WeightedClauses:
    """Clauses over the atoms 1 to ``atoms``, hard or with a weight that is lost where the clause is false.

    Attributes
    ----------
    atoms
        How many there are; literal ``+i`` is atom i, counted from 1, and ``-i`` its negation.
    literals
        Shape (number of literals,), the clauses one after the other.
    starts
        Shape (number of clauses + 1,): clause j is ``literals[starts[j]:starts[j + 1]]``.
    weights
        Shape (number of clauses,): 0 for a hard clause, and never negative.
    """

    atoms: int
    literals: Codes
    starts: Ints
    weights: Ints

    def __len__(self) -> int:
        return len(self.weights)
