"""A population (population annealing, a sequential Monte Carlo method): many states are cooled together.

All states are random worlds at β = 0. At every step from β to β' a state of log weight L has the weight
w = exp((β' - β) L); the population is drawn anew by these weights, so that some states have several copies
and others none, and sweeps at β' let copies part. Σ_x exp(β L(x)), 2^n at β = 0, grows by the mean of w.

What is left is a population for β = 1, and an estimate of log Σ_x exp(L(x)), which chains alone do not give.
[Hukushima, Iba: Population annealing and its application to a spin glass; 2003. Machta: Population annealing
with weighted averages; 2010]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import LimitExceeded
from lbm.reasoning.engine.groups import Groups, groups_of, parts_of
from lbm.reasoning.engine.lanes import (
    Lanes,
    Snapshot,
    Weights,
    advance,
    jump,
    random_states,
    reweighted,
    start,
)
from lbm.reasoning.engine.network import LANES, GateNetwork
from lbm.reasoning.engine.plain import fill
from lbm.reasoning.engine.streams import key_of, uniforms

SHARE: Final = 0.85
"""Relative effective size of the weights of a step, (Σ w)² / (N Σ w²): steps are as long as this allows."""

SWEEPS: Final = 10
"""Sweeps after each step."""

MAX_STEPS: Final = 10_000
"""Steps from β = 0 to 1, past which weights are too far apart for a population of that size."""

RESAMPLING: Final = 4
"""The random stream that draws populations anew."""

_BISECTIONS: Final = 40
_NEAR: Final = 2.0  # a pinned population begins at its world but for a share of exp(-2) of its states, about


@dataclass(frozen=True, slots=True, eq=False)
class Population(Snapshot):
    """States for β = 1, each of them as likely as its weight says, and what was learned on the way.

    Attributes
    ----------
    log_z
        Estimate of log Σ_x exp(score(x)/τ - penalty·broken(x)) over all worlds.
    log_partition
        Estimate of log Σ_x exp(score(x)/τ) over models, whatever the penalty; -inf where no state is one.
    families
        Shape (population,): the number of the state at β = 0 that each one descends from.
    effective_size
        population² / Σ (size of a family)²: how many states count as independent if copies never parted.
    betas
        Shape (steps + 1,), from 0 to 1.
    """

    log_z: float
    log_partition: float
    families: Ints
    effective_size: float
    betas: Floats


def population_of(
    network: GateNetwork,
    weights: Weights,
    *,
    seed: int,
    blocks: int,
    lane: int = 0,
    groups: Groups | None = None,
    sweeps: int = SWEEPS,
    on_sweeps: Callable[[], object] = lambda: None,
) -> Population:
    """Return a population of 64 states for each block, cooled from β = 0 to 1.

    Populations with other lanes, ``64 * blocks`` further on, are independent: ``log_mean`` makes one estimate
    of several, with its error.

    Parameters
    ----------
    seed, lane
        The streams; state l has the number ``lane + l``. The result depends on nothing else.
    blocks
        How many blocks of 64 states there are; all are in memory at once.
    groups
        Atoms that are offered to flip together after every sweep; by default those of ``groups_of``.
    sweeps
        Sweeps after each step.
    on_sweeps
        Called between sweeps. What it raises ends the work.
    """
    if blocks < 1 or sweeps < 1:
        raise ValueError(f"expected blocks and sweeps from 1 up, got blocks={blocks} and sweeps={sweeps}")
    groups = groups_of(network) if groups is None else groups
    crowd = _Blocks(network, weights, seed, lane, blocks, groups)
    log_z = network.atoms * math.log(2.0)
    return _cooled(crowd, log_z, crowd.log_weight, lambda beta: crowd.sweep(beta, sweeps, on_sweeps))


def _cooled(
    crowd: _Blocks,
    log_z: float,
    gains: Callable[[], Floats],
    settle: Callable[[float], None],
    strength: float = 1.0,
) -> Population:
    """Return a population after as many steps as lead from β = 0 to 1.

    ``strength`` times what ``gains`` returns is by how much log weights rise from 0 to 1; ``settle`` does the
    sweeps at a β.
    """
    betas = [0.0]
    while betas[-1] < 1:
        if len(betas) > MAX_STEPS:
            raise LimitExceeded(
                f"β is {betas[-1]:.3g} after {MAX_STEPS} steps (limit MAX_STEPS): weights are too far apart "
                f"for {len(crowd.families)} states: pass more blocks",
                MAX_STEPS=MAX_STEPS,
            )
        each = gains()
        beta = next_beta(strength * each, betas[-1], SHARE)
        log_z += crowd.select((beta - betas[-1]) * strength * each)
        betas.append(beta)
        settle(beta)
    return crowd.population(log_z, betas)


def pinned_population(
    network: GateNetwork,
    weights: Weights,
    field: tuple[Floats, float],
    world: Bools,
    *,
    seed: int,
    blocks: int,
    lane: int,
    groups: Groups,
    on_sweeps: Callable[[], object],
) -> Population:
    """Return a population that begins at one world and is let loose: what it weighs is around that world.

    States are drawn from exp(L(x) - λ·d(x)), d the number of atoms that differ from the world. Where λ is
    large that is the world and its neighbours, and easily summed; on the way to λ = 0 the sum is followed as
    in ``population_of``. The mean of such estimates of Σ_x exp(L(x)) is right, too; if a population stays in
    a well, it mostly finds that well's share. So log_z is seldom above the truth, and where random
    states never find the well, above what they find. ``betas`` are 1 - λ/λ_0.

    Parameters
    ----------
    field
        Weights of gates, shape (gates,), and a constant: together the number of atoms as in the world.
    world
        Shape (atoms,).
    seed, blocks, lane, groups, on_sweeps
        As for ``population_of``.
    """
    rng = np.random.default_rng([seed, lane])
    atoms = network.atoms
    strength = math.log(max(1, atoms)) + _NEAR
    x = (rng.random((blocks, atoms, LANES)) < 1 / (1 + math.exp(strength))) != world[None, :, None]
    crowd = _Blocks(network, _held(weights, field, strength), seed, lane, blocks, groups, x)

    def settle(beta: float) -> None:
        held = _held(weights, field, strength * (1 - beta))
        crowd.blocks = [reweighted(lanes, held) for lanes in crowd.blocks]
        crowd.sweep(1.0, SWEEPS, on_sweeps)

    # The first weights are those against a product of coins; then the field is taken away by steps.
    gains = crowd.log_weight() + strength * (crowd.distance(world) - atoms)
    log_z = atoms * math.log1p(math.exp(-strength)) + crowd.select(gains)
    settle(0.0)
    return _cooled(crowd, log_z, lambda: crowd.distance(world), settle, strength)


def _held(weights: Weights, field: tuple[Floats, float], strength: float) -> Weights:
    """Return the weights with so much more for each atom that is as in a world."""
    numbers = weights.numbers.astype(np.float64) * weights.unit + strength * field[0]
    constant = weights.constant * weights.unit + strength * field[1]
    return Weights(numbers, 1.0, constant, weights.reach * weights.unit + strength)


def next_beta(log_weight: Floats, beta: float, share: float) -> float:
    """Return the greatest β' up to 1 at which exp((β' - β) L) has the relative effective size ``share``."""

    def enough(step: float) -> bool:
        part = np.exp(step * (log_weight - log_weight.max()))
        return bool(part.sum() ** 2 >= share * len(part) * np.sum(part**2))

    whole = 1.0 - beta
    if enough(whole):
        return 1.0
    low = whole / 2
    while not enough(low):
        low /= 2
    high = 2 * low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    # A step that rounding would swallow is still a step.
    return min(1.0, max(beta + low, math.nextafter(beta, 1.0)))


def survivors(weights: Floats, u: float) -> Ints:
    """Return for each place the state whose copy takes it, drawn by weight with one number between 0 and 1.

    State i has ⌊N w_i / Σ w⌋ or ⌈N w_i / Σ w⌉ copies, N w_i / Σ w on average. If any, one stays in its place.
    """
    number = len(weights)
    edges = np.cumsum(weights)
    # Copies of i are the whole numbers k from 0 with edges[i - 1] <= k + u < edges[i].
    before = np.ceil(edges / edges[-1] * number - u).astype(np.int64)
    before[-1] = number  # which rounding might miss
    copies = np.diff(before, prepend=0)
    parents = np.arange(number)
    parents[copies == 0] = np.repeat(np.arange(number), np.maximum(copies - 1, 0))
    return parents


def log_mean(logs: Sequence[float]) -> tuple[float, float]:
    """Return the log of the mean of numbers given by their logs, and its standard error; of one number, nan.

    Sums that independent populations estimate are averaged so, not their logs.
    """
    if not logs:
        raise ValueError("expected one number or more, got none")
    top = max(logs)
    if top == -math.inf:
        return top, math.nan
    values = np.exp(np.array(logs) - top)
    mean = float(values.mean())
    if len(values) < 2:
        return top, math.nan
    return top + math.log(mean), float(values.std(ddof=1)) / mean / math.sqrt(len(values))


class _Blocks:
    """The blocks of a population, as views of arrays of shape (blocks, atoms or gates, 64)."""

    def __init__(
        self,
        network: GateNetwork,
        weights: Weights,
        seed: int,
        lane: int,
        blocks: int,
        groups: Groups,
        x: Bools | None = None,
    ) -> None:
        self.members, self.parts = groups[0], parts_of(groups)
        self.x = np.empty((blocks, network.atoms, LANES), np.uint8)
        self.counts = np.empty((blocks, network.gates, LANES), network.wires.low.dtype)
        self.families = np.arange(LANES * blocks)
        self.blocks: list[Lanes] = []
        for b in range(blocks):
            first = lane + LANES * b
            begin = random_states(network.atoms, seed, first) if x is None else x[b]
            lanes = start(network, weights, begin, seed=seed, lane=first)
            self.x[b], self.counts[b] = lanes.x, lanes.counts
            lanes.x, lanes.counts = self.x[b], self.counts[b]
            self.blocks.append(lanes)

    def log_weight(self) -> Floats:
        """Return the log weights at β = 1, shape (population,)."""
        return np.concatenate([lanes.log_weight for lanes in self.blocks])

    def distance(self, world: Bools) -> Floats:
        """Return in how many atoms each state differs from a world, shape (population,)."""
        return np.concatenate([(lanes.x != world[:, None]).sum(axis=0) for lanes in self.blocks]) * 1.0

    def select(self, gains: Floats) -> float:
        """Draw the population anew by the logs of weights; return the log of the mean weight."""
        top = gains.max()
        part = np.exp(gains - top)
        parents = survivors(part, self.draw())
        self.families = self.families[parents]
        self.renew(parents)
        return float(top + np.log(part.mean()))

    def population(self, log_z: float, betas: Sequence[float]) -> Population:
        """Return the population as it is now."""
        families = self.families
        broken = np.concatenate([lanes.broken() for lanes in self.blocks])
        models = float(np.mean(broken == 0))
        return Population(
            np.concatenate([lanes.x for lanes in self.blocks], axis=1),
            broken,
            np.concatenate([lanes.score() for lanes in self.blocks]),
            log_z,
            log_z + math.log(models) if models else -math.inf,
            families,
            float(len(families) ** 2 / np.sum(np.bincount(families).astype(np.float64) ** 2)),
            np.array(betas),
        )

    def draw(self) -> float:
        """Return a number between 0 and 1 for this sweep."""
        first = self.blocks[0]
        only = np.zeros(1, np.int64)
        return float(
            uniforms(fill(*key_of(first.seed), only, only + first.sweep, first.lane, RESAMPLING, 1))[0, 0, 0]
        )

    def renew(self, parents: Ints) -> None:
        """Put copies of their parents in all places."""
        to = np.flatnonzero(parents != np.arange(len(parents)))
        (block, lane), (old_block, old_lane) = divmod(to, LANES), divmod(parents[to], LANES)
        for array in (self.x, self.counts):
            array[block, :, lane] = array[old_block, :, old_lane]
        total = np.concatenate([lanes.total for lanes in self.blocks])[parents]
        for b, lanes in enumerate(self.blocks):
            lanes.total = np.ascontiguousarray(total[LANES * b : LANES * (b + 1)])

    def sweep(self, beta: float, sweeps: int, on_sweeps: Callable[[], object]) -> None:
        """Do some sweeps at β everywhere, each followed by the offer of groups."""

        def after(_: Lanes) -> None:
            on_sweeps()

        for b, lanes in enumerate(self.blocks):
            own = np.full(LANES, beta)
            if not self.parts:
                advance(lanes, np.full(sweeps, beta), after=after)
            for _ in range(sweeps if self.parts else 0):
                advance(lanes, [beta], after=after)
                jump(lanes, self.members, self.parts[lanes.sweep % len(self.parts)], own)
            if not lanes.weights.whole:  # so that rounding never piles up
                self.blocks[b] = reweighted(lanes, lanes.weights)
