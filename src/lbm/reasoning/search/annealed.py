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

from lbm.arrays import Bools, slices
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.compiling.ready import runs_compiled
from lbm.reasoning.engine.lanes import Lanes, Weights, advance, random_states, weights_of
from lbm.reasoning.engine.lanes import start as begin
from lbm.reasoning.engine.network import LANES, GateNetwork, network_of, network_of_clauses
from lbm.reasoning.engine.presolve import Presolved, presolve
from lbm.reasoning.engine.schedule import HELD, held, ladder, rising
from lbm.reasoning.engine.sliced import CHAINS, Sliced, advance_sliced, kept, random_rows, sliced_of, unpack
from lbm.reasoning.exact.apart import Split, split_of
from lbm.reasoning.problem import Problem

_SWEEPS: Final = (64, 16_384)  # of the first round, and the most: they double
_COSTS: Final = (2.0, 6.0, 18.0, 54.0)  # of a broken hard formula, in turn, times the greatest soft weight
_WARM: Final = 0.4  # where a round from a given world begins, as a share of the way from hot to cold
_HELD_SWEEPS: Final = (256, 1 << 20)  # likewise, where nothing is soft
_BETWEEN: Final = 1024  # sweeps of bit-sliced chains after which the clock is read
_FAINT: Final = 1e-6  # share of the largest weight below which annealing sees no difference
_WHOLE: Final = 1 << 14  # weights up to which they stay whole numbers


@dataclass(frozen=True, slots=True, eq=False)
class Unsettled:
    """What a theory with evidence leaves open, as a network to anneal, and the way back to all atoms.

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
    lost
        The weight that is lost in every world, times 10^digits, as far as clauses tell.
    """

    network: GateNetwork
    rows: NDArray[np.intp]
    base: Bools
    free: NDArray[np.intp]
    part: NDArray[np.int32]
    largest: float
    lost: int = 0

    def worlds(self, states: NDArray[Any]) -> Bools:
        """Return the worlds, shape (states, all atoms), that states, shape (atoms, states), stand for."""
        found = np.tile(self.base, (states.shape[1], 1))
        found[:, self.rows] = states.T != 0
        return found

    def world(self, x: NDArray[Any]) -> list[bool]:
        """Return the world over all atoms that a state, shape (atoms,), stands for."""
        values: list[bool] = self.worlds(x[:, None])[0].tolist()
        return values


def unsettled_of(problem: Problem, budget: Budget, *, pure: bool, soft: bool = True) -> Unsettled | None:
    """Return what a theory with evidence leaves open, all of it or its hard formulae; None: they clash.

    ``pure``: whether pure literals are settled; one is true in some best world, but not in all of them.
    """
    clauses = problem.weighted_clauses(hard=not soft)
    if clauses is not None:
        left = presolve(clauses, pure=pure)
        return None if left is None else of_clauses(left)
    split = split_of(problem.theory, problem.evidence, problem.known, budget, soft=soft)
    return None if split is None else of_split(split, problem.atoms, budget)


def of_split(split: Split, names: Sequence[str], budget: Budget = NO_LIMIT) -> Unsettled:
    """Return what a theory that was taken apart leaves open."""
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
    return Unsettled(network, rows, base, free, part, largest)


def of_clauses(presolved: Presolved) -> Unsettled:
    """Return what weighted clauses leave open after presolve."""
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
    return Unsettled(network, rows, base, free, presolved.components, float(max(1, largest)), presolved.lost)


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
    unsettled: Unsettled,
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
    network = unsettled.network
    if not network.soft.any():
        return _satisfy(unsettled, seed, number, start, found, budget)
    mixed = len(network.firm) > 0
    sweeps = min(_SWEEPS[0] << min(number // (len(_COSTS) if mixed else 1), 30), _SWEEPS[1])
    penalty = unsettled.largest * (_COSTS[number % len(_COSTS)] if mixed else 1.0)
    weights = weights_of(network, penalty)
    first, last = ladder(network, weights, seed=seed)
    if start is not None:
        first += _WARM * (last - first)
    lanes = _begun(unsettled, weights, seed, number, start)
    told = -math.inf

    def look(lanes: Lanes) -> bool:
        nonlocal told
        if found is not None and lanes.found and float(lanes.best[0]) > told:
            told = float(lanes.best[0])
            found(unsettled.world(lanes.best_x))
        return not budget.spent()

    done = advance(lanes, rising(first, last, sweeps), rule="metropolis", after=look)
    look(lanes)
    return Round(_worlds(unsettled, lanes), done)


def _begun(
    unsettled: Unsettled, weights: Weights, seed: int, number: int, start: Sequence[bool] | None
) -> Lanes:
    """Return the chains of a round, half of them in a world if one is given."""
    x = random_states(unsettled.network.atoms, seed, LANES * number)
    if start is not None:
        x[:, : LANES // 2] = np.asarray(start, np.uint8)[unsettled.rows, None]
    return begin(unsettled.network, weights, x, seed=seed, lane=LANES * number, watch=True)


def _worlds(unsettled: Unsettled, lanes: Lanes) -> list[list[bool]]:
    """Return the best world that chains met, and the one made of the best of each component."""
    states = [lanes.best_x] if lanes.found else []
    if unsettled.part.max(initial=0) > 0:
        states.append(_composed(unsettled, lanes))
    return [unsettled.world(x) for x in states]


def _satisfy(
    unsettled: Unsettled,
    seed: int,
    number: int,
    start: Sequence[bool] | None,
    found: Callable[[list[bool]], object] | None,
    budget: Budget,
) -> Round:
    """Do one round where nothing is soft: chains are held where they pass from valley to valley.

    Clauses run in 512 bit-sliced chains, anything else in 64; so do clauses where nothing is compiled, since
    one sweep of bit-sliced chains may then take a minute, and nobody looks at the clock in between.
    """
    network = unsettled.network
    weights = weights_of(network, 1.0)
    sweeps = min(_HELD_SWEEPS[0] << min(number, 30), _HELD_SWEEPS[1])
    betas = held(0.1 * HELD / weights.unit, HELD / weights.unit, sweeps)
    whole = unsettled.part.max(initial=0) == 0  # else each part is taken from the chain that has it best
    bits = sliced_of(network, weights) if whole and runs_compiled("sliced") else None
    done = 0
    worlds: list[list[bool]] = []
    if bits is not None:
        rows = random_rows(network.atoms, seed=seed, lane=CHAINS * number)
        if start is not None:
            rows[:, 0] = np.where(np.asarray(start, bool)[unsettled.rows], ~np.uint64(0), np.uint64(0))
        while done < sweeps and not budget.spent():
            some = betas[done : done + _BETWEEN]
            ran = advance_sliced(bits, rows, some, seed=seed, sweep=done, lane=CHAINS * number, stop=True)
            done += ran
            chains = models_among(bits, rows)
            if len(chains):
                worlds.append(unsettled.world(unpack(rows, chains[:1])[:, 0]))
                break
    else:
        lanes = _begun(unsettled, weights, seed, number, start)
        done = advance(lanes, betas, rule="metropolis", after=lambda _: not budget.spent())
        worlds = _worlds(unsettled, lanes)
    if found is not None:
        for world in worlds:
            found(world)
    return Round(worlds, done)


def models_among(bits: Sliced, rows: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the numbers of the bit-sliced chains that keep every clause."""
    words = np.ascontiguousarray(kept(bits, rows), "<u8").view(np.uint8)
    return np.flatnonzero(np.unpackbits(words, bitorder="little"))


def _composed(unsettled: Unsettled, lanes: Lanes) -> NDArray[np.uint8]:
    """Return the state that takes each component from the chain that has it best."""
    network = unsettled.network
    number = int(unsettled.part.max()) + 1
    gain = np.zeros((number, lanes.x.shape[1]))
    owner = np.empty(network.atoms + network.gates, np.int32)
    owner[: network.atoms] = unsettled.part
    starts = network.first_child[:-1]
    inner = network.child[starts] >= network.atoms
    owner[network.atoms :][~inner] = unsettled.part[network.child[starts][~inner]]
    for g in np.flatnonzero(inner).tolist():
        owner[network.atoms + g] = owner[network.child[starts[g]]]
    values = lanes.weights.numbers.astype(np.float64)
    mine = owner[network.atoms :]
    for part in slices(network.gates, 1 << 16):
        true = network.wires.truth(lanes.counts[part], part)
        np.add.at(gain, mine[part], values[part, None] * true)
    best = gain.argmax(axis=1)
    return np.asarray(lanes.x[np.arange(network.atoms), best[unsettled.part]])
