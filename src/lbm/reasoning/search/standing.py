"""Where a search stands: its worlds, what is proven of them, and who brought it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lbm.reasoning.problem import Candidate
from lbm.reasoning.search.engines import OWN

MAX_WORLDS: Final = 1 << 16
"""Worlds that are given out, and models that are compared one by one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a search stands: the best worlds met so far, best first, and what is proven of them.

    ``found_by`` and ``proved_by`` name engines: who found the first world, and who proved the bound, if
    there is more to it than that no weight is below 0. ``dropped``: engines that were, and why.
    """

    worlds: tuple[Candidate, ...]
    bound: int
    optimal: bool
    method: str
    complete: bool = False
    sweeps: int = 0
    found_by: str = OWN
    proved_by: str | None = None
    dropped: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        """The weight that the best of them loses, times 10^digits."""
        return self.worlds[0].lost
