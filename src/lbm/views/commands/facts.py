"""Answers for programs: the parts that several commands print as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from lbm.views.commands import streams

if TYPE_CHECKING:
    from lbm.knowledge.parser import Statement
    from lbm.reasoning.sampling.diagnostics import Estimate


def finite(value: float) -> float | None:
    """Return a number, or None for what JSON has no word for."""
    return value if isfinite(value) else None


def of_chains(estimate: Estimate | None, sweeps: int, note: str) -> dict[str, Any]:
    """Return how far chains can be trusted; of an exact answer all is null but ``converged``."""
    return {
        "converged": estimate is None or estimate.converged,
        "effective_size": None if estimate is None else finite(estimate.effective_size),
        "r_hat": None if estimate is None else finite(estimate.r_hat),
        "missed": None if estimate is None else estimate.missed,
        "chains": None if estimate is None else estimate.chains,
        "sweeps": None if estimate is None else sweeps,
        "note": note or None,
    }


def of_statement(statement: Statement) -> dict[str, Any]:
    """Return a formula with its weight and line."""
    weight = streams.exact(statement.weight)
    return {"formula": str(statement.formula), "weight": weight, "line": statement.line}


def of_world(world: Mapping[str, Any]) -> dict[str, int]:
    """Return a world as 0 and 1 by name."""
    return {name: int(value) for name, value in world.items()}
