"""Which engines a search may use: compiled ones only if they are compiled, and there is time to load them."""

from __future__ import annotations

import sys
from typing import Final

from lbm.reasoning.budget import Budget

LOADING: Final = 2.5
"""Seconds that must be left for a compiler to be loaded: that takes one, or two on a busy machine."""


def loaded() -> bool:
    """Return whether compiled code can be used at once."""
    return "numba" in sys.modules


def usable(piece: str, budget: Budget) -> bool:
    """Return whether compiled loops can be used: they are compiled, and loaded or there is time for that.

    Where they are not, they are compiled in a process beside.
    """
    from lbm.reasoning.compiling.ready import is_warm, warm_aside

    if not is_warm(piece):
        warm_aside()
        return False
    return loaded() or budget.left() > LOADING
