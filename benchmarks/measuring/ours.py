"""Our own side: a search that notes when it found what, and kernels made ready before a clock starts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import lbm


@dataclass(frozen=True)
class Trace:
    """One search for the best world.

    ``steps`` holds, for every better world, the seconds from the call of :func:`lbm.best` until it was told,
    and the weight it loses. ``cost`` is that of the last one, None if there was none; ``seconds`` the time of
    the whole call; ``proven`` whether it is known to be best.
    """

    steps: tuple[tuple[float, int], ...]
    cost: int | None
    seconds: float
    proven: bool
    sweeps: int = 0
    world: dict[str, bool] | None = None

    def time_to(self, cost: int) -> float | None:
        """Return when a world was known that loses ``cost`` at most; None: never."""
        return next((when for when, lost in self.steps if lost <= cost), None)

    def cost_at(self, seconds: float) -> int | None:
        """Return what the best world known after so many seconds loses; None: there was none."""
        return min((lost for when, lost in self.steps if when <= seconds), default=None)

    def row(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {"cost": self.cost, "seconds": self.seconds, "proven": self.proven}


class _Reached(Exception):
    """Raised to leave a search: the cost was reached."""


def search(theory: lbm.Theory, limit: float, *, seed: int, until: int | None = None) -> Trace:
    """Return a search of at most ``limit`` seconds, left as soon as a world loses ``until`` at most."""
    import lbm
    from lbm.errors import NoAnswer

    steps: list[tuple[float, int]] = []

    def note(found: Any) -> None:
        steps.append((time.perf_counter() - start, int(found.lost)))
        if until is not None and steps[-1][1] <= until:
            raise _Reached

    start = time.perf_counter()
    try:
        found = lbm.best(theory, seconds=limit, seed=seed, on_better=note)
    except (_Reached, NoAnswer):
        cost = steps[-1][1] if steps else None
        return Trace(tuple(steps), cost, time.perf_counter() - start, False)
    took = time.perf_counter() - start
    if not steps or found.lost < steps[-1][1]:  # solved exactly, which tells nothing on its way
        steps.append((took, int(found.lost)))
    return Trace(tuple(steps), int(found.lost), took, found.optimal, found.sweeps, found.world)


def warm(theories: Iterable[lbm.Theory], *, limit: float = 1.0) -> None:
    """Search a little, so that nothing is imported or compiled while a clock runs."""
    import numba  # noqa: F401 - a short search leaves it out, and would run in NumPy alone

    for theory in theories:
        search(theory, limit, seed=0)
