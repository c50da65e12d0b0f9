"""Annealed search (simulated annealing): a theory with evidence as one network, cooled in rounds of chains.

Loading this module loads compiled code, which takes a moment: small theories do without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Bytes
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.components.apart import Split
from lbm.reasoning.engine.lanes import Lanes, advance, random_states, weights_of
from lbm.reasoning.engine.lanes import start as begin
from lbm.reasoning.engine.network import LANES, Network, network_of, network_of_clauses
from lbm.reasoning.engine.presolve import Presolved
from lbm.reasoning.engine.schedule import HELD, held, ladder, rising
from lbm.reasoning.engine.sliced import CHAINS, Sliced, advance_sliced, kept, random_rows, sliced_of, unpack

_SWEEPS: Final = (64, 16_384)  # of the first round, and the most: they double
_COSTS: Final = (
    2.0,
    6.0,
    18.0,
    54.0,
)  # of a broken hard formula, in turn, as multiples of the greatest soft weight
_WARM: Final = 0.4  # where a round from a given world begins, as a share of the way from hot to cold
_HELD_SWEEPS: Final = (256, 1 << 20)  # likewise, where nothing is soft
_BETWEEN: Final = 1024  # sweeps of bit-sliced chains after which the clock is read
_FAINT: Final = 1e-6  # share of the largest weight below which annealing sees no difference
_WHOLE: Final = 1 << 14  # weights up to which they stay whole numbers


@dataclass(frozen=True, eq=False)
class Landscape:
    """What is annealed.

    Attributes
    ----------
    network
        Gates over the atoms that are not settled.
    rows
        The number of each of these among all atoms.
    base
        Shape (all atoms,): a world that has the settled atoms as they must be.
    free
        The numbers of atoms that may have any value.
    part
        Shape (atoms,): the component of each.
    largest
        The greatest weight of a soft formula, in the network's measure.
    """

    network: Network
    rows: NDArray[np.intp]
    base: Bools
    free: NDArray[np.intp]
    part: NDArray[np.int32]
    largest: float

    def world(self, x: NDArray[Any]) -> list[bool]:
        """Return the world over all atoms that a state, shape (atoms,), stands for."""
        found = self.base.copy()
        found[self.rows] = x != 0
        values: list[bool] = found.tolist()
        return values


def of_split(split: Split, names: Sequence[str], budget: Budget = NO_LIMIT) -> Landscape:
    """Return the landscape of a theory that was taken apart."""
    place = {name: i for i, name in enumerate(names)}
    atoms = [name for component in split.components for name in component.atoms]
    part = np.repeat(
        np.arange(len(split.components), dtype=np.int32), [len(c.atoms) for c in split.components]
    )
    hard = [formula for component in split.components for formula in component.hard]
    soft = [pair for component in split.components for pair in component.soft if pair[1]]
    weights, largest = _measured([weight for _, weight in soft])
    weighted = list(zip((formula for formula, _ in soft), weights, strict=True))
    network = network_of(atoms, hard, weighted, budget)
    base = np.zeros(len(names), np.bool_)
    for name, value in split.fixed.items():
        base[place[name]] = value
    rows = np.array([place[name] for name in atoms], np.intp)
    free = np.array([place[name] for name in split.free], np.intp)
    return Landscape(network, rows, base, free, part, largest)


def of_clauses(presolved: Presolved) -> Landscape:
    """Return the landscape of weighted clauses after presolve."""
    problem = presolved.problem
    hard = problem.weights == 0
    divisor = int(np.gcd.reduce(problem.weights)) or 1
    largest = int(problem.weights.max(initial=1)) // divisor
    soft = problem.weights / divisor
    if largest > _WHOLE:
        soft = np.where(hard, 0.0, np.maximum(soft / largest, _FAINT))
        largest = 1
    network = network_of_clauses(
        problem.variables, problem.literals, problem.starts, soft, hard.astype(np.float64)
    )
    base = presolved.fixed > 0
    rows, free = presolved.kept.astype(np.intp) - 1, presolved.free.astype(np.intp) - 1
    return Landscape(network, rows, base, free, presolved.components, float(max(1, largest)))


def _measured(weights: Sequence[int]) -> tuple[list[float], float]:
    """Return weights as floats, whole ones if they are small, and the greatest."""
    if not weights:
        return [], 1.0
    divisor = math.gcd(*weights)
    largest = max(map(abs, weights)) // divisor
    if largest <= _WHOLE:
        return [float(weight // divisor) for weight in weights], float(largest)
    return [math.copysign(max(abs(w) / (largest * divisor), _FAINT), w) for w in weights], 1.0


class Round(NamedTuple):
    """What a round of annealing found: worlds over all atoms, none of them verified, and its sweeps."""

    worlds: list[list[bool]]
    sweeps: int


def anneal(
    landscape: Landscape,
    seed: int,
    number: int,
    *,
    start: Sequence[bool] | None = None,
    found: Callable[[list[bool]], object] | None = None,
    budget: Budget = NO_LIMIT,
) -> Round:
    """Do one round: chains from hot to cold, 64 or more. What it finds depends on its number and seed only.

    Later rounds are longer. Where formulae are hard and others soft, four rounds in a row differ in what a
    broken hard formula costs: too little and no chain ends in a model, too much and none gets past them.

    Parameters
    ----------
    start
        A world to begin from, in half of the chains and not as hot.
    found
        Gets worlds as they are met, each better than the one before.
    budget
        Asked between compiled calls whether to stop.
    """
    network = landscape.network
    if not network.soft.any():
        return _satisfy(landscape, seed, number, start, found, budget)
    mixed = len(network.firm) > 0
    sweeps = min(_SWEEPS[0] << min(number // (len(_COSTS) if mixed else 1), 30), _SWEEPS[1])
    penalty = landscape.largest * (_COSTS[number % len(_COSTS)] if mixed else 1.0)
    weights = weights_of(network, penalty)
    first, last = ladder(network, weights, seed=seed)
    x = _begun(landscape, seed, number, start)
    if start is not None:
        first += _WARM * (last - first)
    lanes = begin(network, weights, x, seed=seed, lane=LANES * number, watch=True)
    told = -math.inf

    def look(lanes: Lanes) -> bool:
        nonlocal told
        if found is not None and lanes.found and float(lanes.best[0]) > told:
            told = float(lanes.best[0])
            found(landscape.world(lanes.best_x))
        return not budget.spent()

    done = advance(lanes, rising(first, last, sweeps), rule="metropolis", after=look)
    look(lanes)
    return Round(_best(landscape, lanes), done)


def _begun(landscape: Landscape, seed: int, number: int, start: Sequence[bool] | None) -> Bytes:
    """Return states to begin in, at random or, half of them, in a given world: shape (atoms, 64)."""
    x = random_states(landscape.network.atoms, seed, LANES * number)
    if start is not None:
        x[:, : LANES // 2] = np.asarray(start, np.uint8)[landscape.rows, None]
    return x


def _best(landscape: Landscape, lanes: Lanes) -> list[list[bool]]:
    """Return the best world that chains have met, and the one that has the best of each component."""
    worlds = [landscape.world(lanes.best_x)] if lanes.found else []
    if landscape.part.max(initial=0) > 0:
        worlds.append(landscape.world(_composed(landscape, lanes)))
    return worlds


def _satisfy(
    landscape: Landscape,
    seed: int,
    number: int,
    start: Sequence[bool] | None,
    found: Callable[[list[bool]], object] | None,
    budget: Budget,
) -> Round:
    """Do one round where nothing is soft: chains are held where they pass from valley to valley.

    Clauses run in 512 bit-sliced chains, anything else in 64.
    """
    network = landscape.network
    weights = weights_of(network, 1.0)
    sweeps = min(_HELD_SWEEPS[0] << min(number, 30), _HELD_SWEEPS[1])
    betas = held(0.1 * HELD / weights.unit, HELD / weights.unit, sweeps)
    whole = landscape.part.max(initial=0) == 0  # else each part is taken from the chain that has it best
    bits = sliced_of(network, weights) if whole else None
    done = 0
    worlds: list[list[bool]] = []
    if bits is not None:
        rows = random_rows(network.atoms, seed=seed, lane=CHAINS * number)
        if start is not None:
            rows[:, 0] = np.where(np.asarray(start, bool)[landscape.rows], ~np.uint64(0), np.uint64(0))
        while done < sweeps and not budget.spent():
            some = betas[done : done + _BETWEEN]
            ran = advance_sliced(bits, rows, some, seed=seed, sweep=done, lane=CHAINS * number, stop=True)
            done += ran
            chains = models_among(bits, rows)
            if len(chains):
                worlds.append(landscape.world(unpack(rows, chains[:1])[:, 0]))
                break
    else:
        x = _begun(landscape, seed, number, start)
        lanes = begin(network, weights, x, seed=seed, lane=LANES * number, watch=True)
        done = advance(lanes, betas, rule="metropolis", after=lambda _: not budget.spent())
        worlds = _best(landscape, lanes)
    if found is not None:
        for world in worlds:
            found(world)
    return Round(worlds, done)


def models_among(bits: Sliced, rows: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the numbers of the bit-sliced chains that keep every clause."""
    words = np.ascontiguousarray(kept(bits, rows), "<u8").view(np.uint8)
    return np.flatnonzero(np.unpackbits(words, bitorder="little"))


def _composed(landscape: Landscape, lanes: Lanes) -> NDArray[np.uint8]:
    """Return the state that takes each component from the chain that has it best."""
    network = landscape.network
    number = int(landscape.part.max()) + 1
    gain = np.zeros((number, lanes.x.shape[1]))
    owner = np.empty(network.atoms + network.gates, np.int32)
    owner[: network.atoms] = landscape.part
    starts = network.first_child[:-1]
    inner = network.child[starts] >= network.atoms
    owner[network.atoms :][~inner] = landscape.part[network.child[starts][~inner]]
    for g in np.flatnonzero(inner).tolist():
        owner[network.atoms + g] = owner[network.child[starts[g]]]
    values = lanes.weights.numbers.astype(np.float64)
    mine = owner[network.atoms :]
    for first in range(0, network.gates, 1 << 16):
        last = min(network.gates, first + (1 << 16))
        true = network.truth(lanes.counts[first:last], first, last)
        np.add.at(gain, mine[first:last], values[first:last, None] * true)
    best = gain.argmax(axis=1)
    return np.asarray(lanes.x[np.arange(network.atoms), best[landscape.part]])
