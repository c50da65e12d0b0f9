"""A ladder of temperatures (parallel tempering, replica exchange): stuck states go where it is hot.

States that cannot leave a well go where it is hot, and come back elsewhere.

The 64 lanes of a block are ladders of R rungs each. Rung r runs at β_r, from a hot end where chains forget
in a few sweeps up to 1. After every sweep neighbours in a ladder exchange their β with probability

    min(1, exp((β_i - β_j)(L_j - L_i))),    L the log weight at β = 1,

pairs (0, 1), (2, 3), ... after one sweep and (1, 2), (3, 4), ... after the next. That leaves the product of
all rungs' distributions as it is, so that the states at β = 1 have theirs.

How many rungs there are, and where, is found out first and then left alone. Rejections add up along a ladder
to about the same sum, its barrier Λ, wherever its rungs are; so they are placed where each gap has an equal
share. States travel fastest if that is about one half. [Syed, Bouchard-Côté, Deligiannidis, Doucet:
Non-reversible parallel tempering: a scalable highly parallel MCMC scheme; 2022]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bytes, Floats, Ints, slices
from lbm.reasoning.engine.groups import Groups, groups_of, parts_of
from lbm.reasoning.engine.lanes import Lanes, Snapshot, Weights, advance, jump, reweighted, start
from lbm.reasoning.engine.network import LANES, GateNetwork, are_clauses
from lbm.reasoning.engine.plain import fill
from lbm.reasoning.engine.streams import key_of, uniforms

LADDERS: Final = 4
"""The least number of ladders in a block: chains to compare with each other."""

RUNGS: Final = LANES // LADDERS
"""The greatest number of rungs."""

GAP: Final = 0.5
"""Rejections between neighbours that the number of rungs aims at."""

WIDEST: Final = 0.75
"""Rejections between neighbours at most: where RUNGS would not do, ladders begin less hot."""

FREE: Final = 0.5
"""How far the others together may sway an atom at the hot end: there, differences halve with each sweep."""

BURN_IN: Final = 512
"""Sweeps before the first draw: half of them to find the rungs, half of them with those."""

SHORTEST: Final = 32
"""The shortest burn-in that can find rungs."""

SEEDED: Final = 4
"""Ladders at most that begin in the same world."""

REFRESH: Final = 256
"""Sweeps after which log weights that are not whole are summed anew, so that rounding never piles up."""

SWAPS: Final = 3
"""The random stream that decides about exchanges."""


@dataclass(frozen=True, slots=True, eq=False)
class Cold(Snapshot):
    """The states at β = 1 after a sweep, one for each ladder.

    Attributes
    ----------
    betas
        Shape (rungs,): the same from the first draw on.
    acceptance
        Shape (rungs - 1,): the mean probability of an exchange between neighbours since rungs were placed.
    sweep
        How many sweeps have been done, those before the first draw included.
    """

    betas: Floats
    acceptance: Floats
    sweep: int


_BATCH: Final = 64  # sweeps whose random numbers are made at once
_WIDE: Final = 2.0  # the share of the barrier that a single gap is thought to have at most
_ROUNDS: Final = (
    1 / 8,
    1 / 8,
    1 / 4,
    1 / 2,
)  # shares of the search for rungs; they are placed anew after each


def tempered(
    network: GateNetwork,
    weights: Weights,
    x: ArrayLike,
    *,
    seed: int,
    lane: int = 0,
    groups: Groups | None = None,
    betas: ArrayLike | None = None,
    burn_in: int = BURN_IN,
    seeds: ArrayLike | None = None,
    on_sweep: Callable[[int], object] = lambda _: None,
) -> Iterator[Cold]:
    """Yield the cold states of all ladders of a block of lanes, without end.

    The first ``next`` does the burn-in as well. Where no atom is swayed much by the others, one rung is
    enough: then all 64 lanes are chains at β = 1.

    Parameters
    ----------
    x
        The states that lanes begin in, shape (atoms, 64).
    seed, lane
        The streams; lane l has the number ``lane + l``. Draws depend on nothing else.
    groups
        Atoms that are offered to flip together after every sweep; by default those of ``groups_of``.
    betas
        Rungs to use, rising to 1, instead of those that would be found; at most RUNGS.
    burn_in
        Sweeps before those that are yielded.
    seeds
        Worlds, shape (atoms, worlds), that the cold ends of half of the ladders are put in once rungs have
        been found, each of up to SEEDED ladders. That is then yielded first, and of the burn-in only what
        finds rungs is done: how long the seeds stay is for the caller to see.
    on_sweep
        Called with the number of sweeps done after each of them, in the burn-in too. What it raises ends the
        work.
    """
    rungs = None if betas is None else np.asarray(betas, np.float64)
    if rungs is not None and not _fine(rungs):
        raise ValueError(
            f"expected betas that rise from 0 or more to 1, at most {RUNGS} of them (limit RUNGS), "
            f"got {betas!r}"
        )
    if burn_in < (SHORTEST if rungs is None else 0):
        raise ValueError(
            f"expected burn_in from {SHORTEST} up (limit SHORTEST), got {burn_in}: rungs are found in it; "
            "pass betas to do without"
        )
    lanes = start(network, weights, x, seed=seed, lane=lane)
    block = _Block(lanes, groups_of(network) if groups is None else groups, on_sweep)
    worlds = None if seeds is None else np.asarray(seeds, np.uint8)
    return _draws(block, rungs, burn_in, worlds)


def exchange_chance(betas: Floats, log_weight: Floats) -> Floats:
    """Return the probability that neighbours exchange, shape (rungs - 1, ladders).

    ``betas`` has shape (rungs,) and ``log_weight``, that of the states at each rung, shape (rungs, ladders).
    """
    with np.errstate(under="ignore"):
        return np.exp(np.minimum(0.0, np.diff(betas)[:, None] * -np.diff(log_weight, axis=0)))


def coupling(network: GateNetwork, weights: Weights) -> float:
    """Return a bound on how far the atoms together sway any one of them, at β = 1; it is proportional to β.

        max_i Σ_j max_x |P(x_i | x) - P(x_i | x with x_j flipped)|  <=  max_i Σ_g (k_g - 1) |w_g| c_g

    The last sum is over the gates that i meets: k_g is the number of atoms below one, and c_g is 1/4 for a
    clause by itself and 1/2 for others. Below 1, chains forget where they began, by that factor in every
    sweep. [Dobrushin: Prescribing a system of random variables by conditional distributions; 1970]
    """
    wires = network.wires
    met = [np.bincount(gates, minlength=network.gates) for _, gates in wires.meetings()]
    below = sum(met[1:], start=met[0])
    clause = (below == met[0]) & are_clauses(wires.low, wires.span)
    sizes = np.abs(weights.numbers.astype(np.float64)) * weights.unit
    share = sizes * np.maximum(below - 1, 0) * np.where(clause, 0.25, 0.5)
    return network.reach(share)


def _fine(betas: Floats) -> bool:
    return (
        betas.ndim == 1
        and 1 <= len(betas) <= RUNGS
        and bool(betas[0] >= 0 and betas[-1] == 1 and (np.diff(betas) > 0).all())
    )


# --- one block ---------------------------------------------------------------------------------------


class _Block:
    """Ladders on the lanes of a block.

    ``lane_at``, shape (rungs, ladders), says which lane is at which rung; lanes that are left over run
    at β = 0 and are never looked at.
    """

    def __init__(self, lanes: Lanes, groups: Groups, on_sweep: Callable[[int], object]) -> None:
        self.lanes, self.on_sweep = lanes, on_sweep
        self.members, self.parts = groups[0], parts_of(groups)
        self.firm, self.loose = np.flatnonzero(lanes.network.hard), np.flatnonzero(lanes.network.soft)
        self.lane_at = np.arange(LANES).reshape(1, LANES)
        self.place(np.ones(1))

    def place(self, betas: Floats) -> None:
        """Give the lanes these rungs: those that were hot stay hot."""
        rungs, ladders = len(betas), LANES // len(betas)
        order = np.concatenate([np.setdiff1d(np.arange(LANES), self.lane_at), self.lane_at.ravel()])
        self.betas = betas
        self.lane_at = order[LANES - rungs * ladders :].reshape(rungs, ladders)
        self.chances, self.sweeps = np.zeros(rungs - 1), 0
        self.luck: Floats | None = None

    def seed(self, worlds: Bytes) -> None:
        """Put worlds at the cold ends of half of the ladders."""
        half = self.lane_at.shape[1] // 2
        some = worlds[:, :half]
        repeated = max(1, min(SEEDED, half // max(1, some.shape[1])))
        lanes, at = self.lanes, self.lane_at[-1][: repeated * some.shape[1]]
        x = lanes.x.copy()
        x[:, at] = np.repeat(some, repeated, axis=1)
        self.lanes = start(
            lanes.network, lanes.weights, x, seed=lanes.seed, lane=lanes.lane, sweep=lanes.sweep
        )

    def sweep(self) -> Floats:
        """Do a sweep, offer groups, exchange; return the log weights before that, shape (rungs, ladders)."""
        lanes = self.lanes
        own = np.zeros(LANES)
        own[self.lane_at] = self.betas[:, None]
        advance(lanes, own[None, :] if len(self.betas) > 1 else self.betas)  # faster where lanes share one β
        if self.parts:
            jump(lanes, self.members, self.parts[lanes.sweep % len(self.parts)], own)
        if not lanes.weights.whole and lanes.sweep % REFRESH == 0:
            self.lanes = lanes = reweighted(lanes, lanes.weights)
        # Only differences matter: without the constant, whole totals lose nothing.
        log_weight = np.asarray(lanes.total[self.lane_at] * lanes.weights.unit)
        self.sweeps += 1
        if len(self.betas) > 1:
            self._exchange(exchange_chance(self.betas, log_weight))
        self.on_sweep(lanes.sweep)
        return log_weight

    def _exchange(self, chance: Floats) -> None:
        lanes = self.lanes
        self.chances += chance.mean(axis=1)
        at = lanes.sweep % _BATCH
        if at == 0 or self.luck is None:
            quads, sweeps = np.arange(-(-len(chance) // 4)), lanes.sweep - at + np.arange(_BATCH)
            found = fill(*key_of(lanes.seed), quads, sweeps, lanes.lane, SWAPS, chance.shape[1])
            self.luck = uniforms(found[:, : len(chance)])
        low = np.arange(lanes.sweep % 2, len(chance), 2)
        agreed = self.luck[at, low] < chance[low]
        below, above = self.lane_at[low], self.lane_at[low + 1]
        self.lane_at[low] = np.where(agreed, above, below)
        self.lane_at[low + 1] = np.where(agreed, below, above)

    def cold(self) -> Cold:
        """Return what is at β = 1 now."""
        lanes, at = self.lanes, self.lane_at[-1]
        network = lanes.network
        return Cold(
            np.ascontiguousarray(lanes.x[:, at]),
            np.rint(network.broken - _sum(lanes, at, self.firm, network.hard)).astype(np.int64),
            network.earned + _sum(lanes, at, self.loose, network.soft),
            self.betas,
            self.chances / max(1, self.sweeps),
            lanes.sweep,
        )


def _sum(lanes: Lanes, at: Ints, gates: NDArray[np.intp], values: Floats) -> Floats:
    """Return the sum of the values of those gates that are true, for some lanes."""
    total = np.zeros(len(at))
    for part in slices(len(gates), 1 << 16):
        some = gates[part]
        total += values[some] @ lanes.network.wires.truth(lanes.counts[some[:, None], at], some)
    return total


def _draws(block: _Block, betas: Floats | None, burn_in: int, seeds: Bytes | None) -> Iterator[Cold]:
    # Where the hot end is, chains certainly forget.
    hot = FREE / max(FREE, coupling(block.lanes.network, block.lanes.weights))
    if betas is None and hot == 1:
        betas = np.ones(1)
    elif betas is None:
        betas = _find(block, hot, burn_in // 2)
        burn_in -= burn_in // 2
    block.place(betas)
    if seeds is not None:
        block.seed(seeds)
        burn_in = 0
        yield block.cold()
    for _ in range(burn_in):
        block.sweep()
    while True:
        block.sweep()
        yield block.cold()


# --- where the rungs are -----------------------------------------------------------------------------


def _find(block: _Block, hot: float, sweeps: int) -> Floats:
    """Return rungs from ``hot`` to 1 with about equal rejections between neighbours, after so many sweeps."""
    betas = np.geomspace(hot, 1.0, RUNGS)
    for share in _ROUNDS:
        block.place(betas)
        gaps = _gaps(block, int(share * sweeps))
        betas = _spaced(betas, gaps, RUNGS, math.inf)
    needed = min(RUNGS, max(2, 1 + math.ceil(gaps.sum() / GAP)))
    # More rungs of as many ladders cost nothing.
    return _spaced(block.betas, gaps, LANES // (LANES // needed), WIDEST)


def _gaps(block: _Block, sweeps: int) -> Floats:
    """Return the share of the barrier between neighbours, shape (rungs - 1,), measured in so many sweeps.

    Few rejections add up. Many hide how wide a gap is: there the means of the log weight tell, by what normal
    distributions would have, Λ = √(Δβ ΔE[L] / π). They are not relied on far: cold chains may lag behind.
    """
    for _ in range(sweeps // 2):
        block.sweep()
    weighed = [block.sweep() for _ in range(sweeps - sweeps // 2)]
    rejected = 1 - np.mean([exchange_chance(block.betas, each) for each in weighed], axis=(0, 2))
    means = np.mean(weighed, axis=(0, 2))
    wide = np.sqrt(np.maximum(0.0, np.diff(block.betas) * np.diff(means)) / math.pi).clip(max=_WIDE)
    return np.asarray(np.where(rejected > GAP, np.maximum(rejected, wide), rejected))


def _spaced(betas: Floats, gaps: Floats, rungs: int, widest: float) -> Floats:
    """Return so many rungs up to the last, with equal shares of the barrier between, at most ``widest``."""
    heights = np.concatenate([[0.0], np.cumsum(gaps + 1e-9)])  # they rise even where nothing was rejected
    first = max(0.0, heights[-1] - widest * (rungs - 1))
    found = np.exp(np.interp(np.linspace(first, heights[-1], rungs), heights, np.log(betas)))
    found[-1] = 1.0
    return np.asarray(found)
