"""First worlds, before anything is loaded: what soft clauses like best, and where the best flips lead."""

from __future__ import annotations

from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import Budget

_HUGE: Final = 10**300  # weights past this are all the same to whoever guesses


def liked(clauses: Clauses) -> Bools:
    """Return, for each variable, whether soft clauses rather want it true, shape (variables,)."""
    pull = np.repeat(_pulls(clauses), clauses.sizes) * np.sign(clauses.literals)
    return np.bincount(np.abs(clauses.literals), pull, clauses.variables + 1)[1:] > 0


def descended(clauses: Clauses, x: Bools, budget: Budget) -> Bools:
    """Return the world that the best flips lead to from ``x``, until none helps or time is over."""
    weights = _pulls(clauses)
    weights[weights == 0] = 1 + weights.sum()  # hard
    x = x.copy()
    variable, wanted = np.abs(clauses.literals) - 1, clauses.literals > 0
    clause = np.repeat(np.arange(len(weights)), clauses.sizes)
    for _ in range(10 * clauses.variables):
        true = x[variable] == wanted
        number = np.bincount(clause, true, len(weights))
        alone = np.where(number == 0, weights, np.where(number == 1, -weights, 0.0))[clause]
        gain = np.bincount(variable, np.where(true == (alone < 0), alone, 0.0), clauses.variables)
        best = int(gain.argmax())
        if gain[best] <= 0 or budget.spent():
            break
        x[best] ^= True
    return x


def _pulls(clauses: Clauses) -> Floats:
    if clauses.weights.dtype != object:
        return clauses.weights.astype(np.float64)
    return np.array([float(min(weight, _HUGE)) for weight in clauses.weights.tolist()])
