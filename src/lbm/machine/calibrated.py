"""Calibrated units (in log-odds units): the free energy of each is the weight it was given, no more, no less.

    s_j(x) = log(e^w - 1) + K (number of literals of cube j that hold in x - number of its literals)
    softplus(s_j(x)) = w where the cube is true, at most e^-30 elsewhere,    K = w + 30

A unit of the paper leaks where its cube is missed by one literal: softplus(w(ε - 1)) is no small number,
and twenty near misses outweigh a true cube.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from lbm.arrays import Floats
from lbm.errors import WeightError

UNITS: Final = ("paper", "calibrated")
"""Kinds of hidden units: those of [TG21, Theorem 1], and these."""

MARGIN: Final = 30.0
"""What a missed literal costs beyond the weight: a cube that is false adds at most e^-30."""

LEAST: Final = -745.0
"""The least input of a unit that is on by its own weight: e^-745 is the smallest number above 0."""


MAX_WEIGHT: Final = 1e12
"""The largest weight of a unit: past it doubles do not tell 30 from nothing beside it."""


def check_weights(weights: Floats) -> None:
    """Refuse weights that leave no room for the margin."""
    most = float(weights.max(initial=0.0))
    if most > MAX_WEIGHT:
        raise WeightError(
            f"calibrated units weigh up to {MAX_WEIGHT:g} (limit MAX_WEIGHT), and one would weigh {most:g}: "
            "divide the weights, or give units='paper'"
        )


def check_units(units: str) -> None:
    """Refuse what is no kind of hidden units."""
    if units not in UNITS:
        raise ValueError(f"expected units 'paper' or 'calibrated', got {units!r}")


def pull(weights: Floats) -> Floats:
    """Return K = w + 30, what each literal of a unit weighs."""
    return weights + MARGIN


def level(weights: Floats) -> Floats:
    """Return log(e^w - 1), the input of a unit whose cube is true, for weights above 0.

    >>> float(np.logaddexp(0, level(np.array(2.0))))
    2.0
    """
    found: Floats = np.maximum(weights + np.log(-np.expm1(-weights)), LEAST)
    return found


def bias(weights: Floats, positive: Floats) -> Floats:
    """Return log(e^w - 1) - K |T_j|, the biases of units that want so many atoms true."""
    return level(weights) - pull(weights) * positive
