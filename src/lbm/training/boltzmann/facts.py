"""Facts: columns that say one thing together, and the ways in which they can be filled in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lbm.arrays import Floats, Ints

Groups = Sequence[tuple[Sequence[int], ArrayLike]]
"""Columns that hold one fact together, and the patterns they can have, shape (patterns, columns)."""

Fact = tuple[Ints, Floats]
"""Columns, and the patterns they can have."""


def facts_of(columns: Iterable[int], groups: Groups) -> list[Fact]:
    """Return the facts that columns hold: groups of which all are among them, then single columns."""
    left = set(columns)
    found: list[Fact] = []
    for together, patterns in groups:
        if left.issuperset(together):
            left.difference_update(together)
            found.append((np.asarray(together, dtype=np.int64), np.asarray(patterns, dtype=np.float64)))
    return found + [(np.array([i]), np.array([[0.0], [1.0]])) for i in sorted(left)]


def every_way(row: Floats, facts: Iterable[Fact]) -> Floats:
    """Return a row with its facts filled in, in every way there is, shape (ways, columns)."""
    ways = row[None].copy()
    for columns, patterns in facts:
        ways = np.repeat(ways, len(patterns), axis=0)
        ways[:, columns] = np.tile(patterns, (len(ways) // len(patterns), 1))
    return ways
