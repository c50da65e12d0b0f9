"""From hot to cold on the problem's own scale: what flips gain and lose is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from lbm.arrays import Floats
from lbm.reasoning.engine.lanes import (
    Lanes,
    Weights,
    advance,
    fields,
    random_states,
    reweighted,
    start,
    weights_of,
)
from lbm.reasoning.engine.network import GateNetwork

HOT: Final = 0.5
"""Where schedules begin: the mean size of log-odds in random states times β."""

COLD: Final = 4.0
"""Where they end: a small log-odds of quenched states times β. A flip that loses it has chance exp(-4)."""

HELD: Final = 5.5
"""Where chains are held whose formulae are all hard: what a broken one costs, times β."""

_UP: Final = 32  # sweeps that lead there, at least
_REST: Final = 3  # sweeps downhill that end a schedule, at least
_FROZEN: Final = 1e6  # times the greatest β: no flip that loses anything is made any more
_QUENCH: Final = 6  # sweeps downhill, after which states are local optima or nearly so
_LOOKED: Final = 4096  # atoms that are looked at
_SMALL: Final = 0.1  # quantile of the log-odds of quenched states that ought to be frozen at the end
_WIDE: Final = 1000.0  # ratio of cold to hot past which β rises geometrically


def ladder(network: GateNetwork, weights: Weights, *, seed: int) -> tuple[float, float]:
    """Return the least and the greatest β that matter: where most flips are free, and where few are left."""
    order = np.arange(network.atoms, dtype=np.int32)
    if network.atoms > _LOOKED:
        # A copy: kernels are compiled for rows without gaps, and would be once more for others.
        order = order[:: network.atoms // _LOOKED + 1].copy()
    lanes = start(network, weights, random_states(network.atoms, seed, lane=1 << 31), seed=seed, lane=1 << 31)
    hot = np.abs(fields(lanes, order))
    if not hot.any():
        return 1.0, 1.0
    advance(lanes, np.full(_QUENCH, 1e9 / hot.max()), rule="metropolis")
    cold = np.abs(fields(lanes, order))
    scale = float(hot.mean())
    small = float(np.quantile(cold[cold > 0], _SMALL)) if cold.any() else scale
    least = float(np.abs(weights.numbers[weights.numbers != 0]).min()) * weights.unit
    first = HOT / scale
    return first, max(COLD / max(small, least), 2 * first)


def rising(first: float, last: float, sweeps: int) -> Floats:
    """Return β for every sweep: even steps, or even ratios where there are many orders of magnitude between.

    The last few go downhill only: what is still excited by warmth alone comes to rest.
    """
    downhill = min(sweeps, max(_REST, sweeps // 16))
    up = (np.geomspace if last > _WIDE * first else np.linspace)(first, last, sweeps - downhill)
    return np.concatenate([up, np.full(downhill, _FROZEN * last)])


def held(first: float, last: float, sweeps: int) -> Floats:
    """Return β for every sweep: up in a few, and then no more.

    Where all formulae are hard and weigh the same, chains that break one now and then pass from valley to
    valley, and find a model sooner than those that are cooled slowly.
    """
    up = min(sweeps, max(_UP, sweeps // 16))
    return np.concatenate([np.linspace(first, last, up), np.full(sweeps - up, last)])


def tuned_penalty(
    network: GateNetwork,
    x: ArrayLike,
    *,
    seed: int,
    share: float = 0.3,
    steps: int = 16,
    sweeps: int = 20,
    on_sweeps: Callable[[], object] = lambda: None,
) -> float:
    """Return a penalty under which a good share of states keep all hard formulae and chains still move.

    Pilot chains start from ``x``, shape (atoms, 64), at penalty 1. After every so many sweeps, if fewer than
    ``share`` of the states of the second half are models, it rises to the next of ``steps`` steps, geometric
    up to

        log(1 + number of hard formulae) + 2 · (greatest Σ |soft weights| of one atom) + 5,

    where breaking a formula pays for nobody. Whatever the penalty, models among the states have the same
    distribution; it only decides how many there are and how fast they change. ``on_sweeps`` is called between
    sweeps; what it raises ends the work.
    """

    def after(_: Lanes) -> None:
        on_sweeps()

    soft = weights_of(network, 0.0)
    highest = float(np.log1p(np.abs(network.hard).sum()) + 2 * soft.reach * soft.unit + 5)
    lanes = start(network, soft, x, seed=seed, lane=1 << 31)
    for penalty in np.geomspace(1.0, highest, steps).tolist():
        lanes = reweighted(lanes, weights_of(network, penalty))
        advance(lanes, np.ones(sweeps // 2), after=after)
        kept = 0.0
        for _ in range(sweeps - sweeps // 2):
            advance(lanes, [1.0], every=1, after=after)
            kept += float(np.mean(lanes.broken() == 0))
        if kept / (sweeps - sweeps // 2) >= share:
            return float(penalty)
    return highest
