"""Counts by pyganak, where it is installed, in a process of its own."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction

from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import Budget
from lbm.reasoning.solvers import aside

Pair = tuple[Fraction | float, Fraction | float]
"""The weight of a variable where it is true, and where it is false."""


def count_aside(clauses: Clauses, project: Iterable[str] | None, budget: Budget) -> int | None:
    """Return the number of models, or of restrictions to these atoms; None: no answer in time.

    Definitions have to be full equivalences, so that each world of the theory is counted once.
    """
    return None if budget.spent() else aside.model_count(clauses, _places(clauses, project), budget=budget)


def weighted_count_aside(
    clauses: Clauses,
    weights: Mapping[int, Pair],
    project: Iterable[str] | None = None,
    *,
    budget: Budget,
) -> float | None:
    """Return the sum of the weights of all models, as a double; None: no answer in time, or none to rely on.

    What a double does not hold is no answer: a sum of 0 (it may have been too small), one that is infinite or
    subnormal, or a weight that is. With weights below zero, what remains of a sum may be little: Ganak keeps
    128 bits of every number.

    Parameters
    ----------
    clauses
        Every definition a full equivalence.
    weights
        By variable; one that is not there weighs 1 either way.
    project
        Count restrictions of models to these atoms: weights of all others have no meaning then.
    """
    if budget.spent():
        return None
    rounded: dict[int, tuple[float, float]] = {}
    for variable, (true, false) in weights.items():
        pair = _rounded(true), _rounded(false)
        if pair[0] is None or pair[1] is None:
            return None
        rounded[variable] = pair[0], pair[1]
    found = aside.weighted_count(clauses, rounded, _places(clauses, project), budget=budget)
    return found if found is not None and is_sound(found) else None


def is_sound(found: float) -> bool:
    """Return whether a sum is what a double holds in full: not 0, not infinite, not nan, not subnormal."""
    return math.isfinite(found) and abs(found) >= sys.float_info.min


def _rounded(weight: Fraction | float) -> float | None:
    """Return a weight as a double; None: a double does not hold it."""
    try:
        found = float(weight)
    except OverflowError:
        return None
    return found if is_sound(found) or not weight else None


def _places(clauses: Clauses, project: Iterable[str] | None) -> list[int] | None:
    if project is None:
        return None
    place = {name: number for number, name in enumerate(clauses.atoms, start=1)}
    return [place[name] for name in dict.fromkeys(project)]
