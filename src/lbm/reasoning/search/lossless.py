"""Worlds that lose nothing: focused walks over all clauses, as if every soft one were hard.

Files with weights are often satisfiable as a whole. Such walks look at no weights, and nothing finds out
sooner where clauses are random. Where they stay far from that they are given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import Budget
from lbm.reasoning.engine.lanes import random_states
from lbm.reasoning.engine.walks import Ground, focused, ground_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MAX_LITERALS: Final = 2_000_000
"""Literals of clauses that are walked over."""

HOPEFUL: Final = 0.01
"""Share of the clauses that are false where walks end, up to which they go on.

Of random clauses of three literals, walks leave 0.4 % false where there are about 4.2 for each atom, the most
that can be kept, 2 % where there are 5, and mostly more than that where clauses have structure.
"""

_FEW: Final = 3  # false clauses up to which they go on, however few there are in all
_FLIPS: Final = (5_000, 20)  # of a walk, at least, and times the number of atoms


@dataclass(eq=False)
class Lossless:
    """A walk that goes on from where it ended."""

    ground: Ground
    x: NDArray[np.uint8]
    seed: int
    hopeful: bool = True
    numbers: Iterator[int] = field(default_factory=count)

    def walk(self, budget: Budget) -> list[bool] | None:
        """Return a world that keeps every clause; None: none was met in time, or there is little hope left.

        Something is tried however short the time.
        """
        flips = max(_FLIPS[0], _FLIPS[1] * self.ground.atoms)
        allowed = max(_FEW, HOPEFUL * len(self.ground.weights))
        while self.hopeful:
            found = focused(self.ground, self.x, flips=flips, seed=self.seed, number=next(self.numbers))
            self.x = found.x
            if not found.cost:
                self.hopeful = False  # it is found once
                world: list[bool] = found.x.astype(bool).tolist()
                return world
            self.hopeful = found.cost <= allowed
            if budget.spent():
                break
        return None


def lossless_of(clauses: Clauses, seed: int) -> Lossless | None:
    """Return a walk over clauses; None: nothing is soft, or they are too many."""
    if not clauses.weights.any() or len(clauses.literals) > MAX_LITERALS:
        return None
    ground = ground_of(replace(clauses, weights=np.ones(len(clauses), np.int64)))
    assert ground is not None  # their weights are small
    return Lossless(ground, random_states(ground.atoms, seed)[:, 0], seed)
