"""Models by annealing: many at once and quickly, but neither uniform nor weighted.

Chains are cooled from hot to cold over and over, and held there a while. A model in a wide valley is found
more often than one in a narrow one, and near ones come one after the other: these are no draws from a
distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import NoAnswer, NoWorlds
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import Budget
from lbm.reasoning.components.apart import split_of
from lbm.reasoning.engine.lanes import Weights, advance, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.presolve import presolve
from lbm.reasoning.engine.schedule import HELD, held
from lbm.reasoning.engine.sliced import CHAINS, Sliced, advance_sliced, random_rows, sliced_of, unpack
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.problem import Problem
from lbm.reasoning.search.annealed import Landscape, models_among, of_clauses, of_split

_SWEEPS: Final = (32, 1 << 14)  # of a cooling: at first, and at most
_FEW: Final = 0.05  # share of states that are models below which coolings get longer
_BATCH: Final = 4096  # worlds that are verified at once


def harvest(
    theory: Theory | Problem,
    n: int,
    rng: np.random.Generator,
    *,
    given: Formula | None = None,
    budget: Budget,
) -> tuple[Bools, int]:
    """Return ``n`` models that keep the evidence, shape (n, atoms), and how many sweeps they took.

    Models may be met more than once. Each is evaluated on the formulae themselves.

    Raises
    ------
    NoWorlds
        If propagation shows that there is no model.
    NoAnswer
        If fewer than ``n`` were found in time.
    """
    problem = Problem.of(theory, given)
    landscape = _landscape(problem, budget)
    if landscape is None:
        raise NoWorlds(problem.evidence)
    found: list[Bools] = []
    waiting: list[Bools] = []
    number = sweeps = 0
    for worlds, done in _coolings(landscape, rng):
        sweeps += done
        waiting.append(worlds)
        if (late := budget.spent()) or sum(map(len, waiting)) >= min(_BATCH, n - number):
            some = np.concatenate(waiting)
            found.append(some[problem.are_models(some)])
            number += len(found[-1])
            waiting = []
        if number >= n:
            break
        if late:
            raise NoAnswer(
                f"annealing found {number} models in time, fewer than the {n} asked for: "
                "allow more seconds, or ask for fewer"
            )
    return np.concatenate(found)[:n], sweeps


def _landscape(problem: Problem, budget: Budget) -> Landscape | None:
    """Return the hard formulae and the evidence as a landscape; None: they clash."""
    clauses = problem.weighted_clauses(hard=True)
    if clauses is not None:
        left = presolve(clauses, pure=False)
        return None if left is None else of_clauses(left)
    split = split_of(problem.theory, problem.evidence, problem.known, budget, soft=False)
    return None if split is None else of_split(split, problem.atoms, budget)


def _coolings(landscape: Landscape, rng: np.random.Generator) -> Iterator[tuple[Bools, int]]:
    """Yield worlds without a broken formula that chains come by, shape (worlds, atoms), and the sweeps done.

    Chains start at random, are cooled, and then held where a broken formula is rare but not out of reach:
    there they pass from model to model. Where too few are met, the next cooling takes twice as long.
    """
    seed = seed_from(rng)
    network = landscape.network
    weights = weights_of(network, 1.0)
    last, sweeps, number = HELD / weights.unit, _SWEEPS[0], 0
    bits = sliced_of(network, weights)
    while True:
        betas = held(0.1 * last, last, 3 * sweeps)
        met = chains = 0
        for states, all_of_them, done in (
            _bits(bits, betas, seed, number) if bits else _bytes(landscape, weights, betas, seed, number)
        ):
            worlds = np.tile(landscape.base, (states.shape[1], 1))
            worlds[:, landscape.rows] = states.T
            worlds[:, landscape.free] = rng.random((len(worlds), len(landscape.free))) < 0.5
            yield worlds, done
            met += len(worlds)
            chains += all_of_them
        if met < _FEW * chains:
            sweeps = min(2 * sweeps, _SWEEPS[1])
        number += 1


def _bits(bits: Sliced, betas: Floats, seed: int, number: int) -> Iterator[tuple[Bools, int, int]]:
    """Yield the models among bit-sliced chains, shape (atoms, models), out of how many, and the sweeps."""
    lane = CHAINS * number
    rows = random_rows(bits.atoms, seed=seed, lane=lane)
    done = advance_sliced(bits, rows, betas[: len(betas) // 3], seed=seed, lane=lane)
    yield unpack(rows, models_among(bits, rows)), CHAINS, done
    for k in range(done, len(betas)):
        ran = advance_sliced(bits, rows, betas[k : k + 1], seed=seed, sweep=k, lane=lane)
        yield unpack(rows, models_among(bits, rows)), CHAINS, ran


def _bytes(
    landscape: Landscape, weights: Weights, betas: Floats, seed: int, number: int
) -> Iterator[tuple[Bools, int, int]]:
    """Yield likewise from chains on any network."""
    network, lane = landscape.network, LANES * number
    lanes = start(network, weights, random_states(network.atoms, seed, lane), seed=seed, lane=lane)
    done = advance(lanes, betas[: len(betas) // 3], rule="metropolis")
    yield lanes.x[:, lanes.broken() == 0] != 0, LANES, done
    for beta in betas[done:]:
        ran = advance(lanes, [beta], rule="metropolis", every=1)
        yield lanes.x[:, lanes.broken() == 0] != 0, LANES, ran
