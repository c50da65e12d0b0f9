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
from lbm.reasoning.engine.lanes import Weights, advance, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.schedule import HELD, held
from lbm.reasoning.engine.sliced import CHAINS, Sliced, advance_sliced, random_rows, sliced_of, unpack
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.problem import Problem
from lbm.reasoning.search.annealed import Unsettled, models_among, unsettled_of

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
    unsettled = unsettled_of(problem, budget, pure=False, soft=False)
    if unsettled is None:
        raise NoWorlds(problem.evidence)
    found: list[Bools] = []
    waiting: list[Bools] = []
    number = sweeps = 0
    for worlds, done in _coolings(unsettled, rng):
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


def _coolings(unsettled: Unsettled, rng: np.random.Generator) -> Iterator[tuple[Bools, int]]:
    """Yield worlds without a broken formula that chains come by, shape (worlds, atoms), and the sweeps done.

    Chains start at random, are cooled, and then held where a broken formula is rare but not out of reach:
    there they pass from model to model. Where too few are met, the next cooling takes twice as long.
    """
    seed = seed_from(rng)
    network = unsettled.network
    weights = weights_of(network, 1.0)
    last, sweeps, number = HELD / weights.unit, _SWEEPS[0], 0
    bits = sliced_of(network, weights)
    while True:
        betas = held(0.1 * last, last, 3 * sweeps)
        met = chains = 0
        for states, done in (
            _bits(bits, betas, seed, number) if bits else _bytes(unsettled, weights, betas, seed, number)
        ):
            worlds = unsettled.worlds(states)
            worlds[:, unsettled.free] = rng.random((len(worlds), len(unsettled.free))) < 0.5
            yield worlds, done
            met += len(worlds)
            chains += CHAINS if bits else LANES
        if met < _FEW * chains:
            sweeps = min(2 * sweeps, _SWEEPS[1])
        number += 1


def _bits(bits: Sliced, betas: Floats, seed: int, number: int) -> Iterator[tuple[Bools, int]]:
    """Yield the models among bit-sliced chains, shape (atoms, models), and the sweeps."""
    lane = CHAINS * number
    rows = random_rows(bits.atoms, seed=seed, lane=lane)
    done = advance_sliced(bits, rows, betas[: len(betas) // 3], seed=seed, lane=lane)
    yield unpack(rows, models_among(bits, rows)), done
    for k in range(done, len(betas)):
        ran = advance_sliced(bits, rows, betas[k : k + 1], seed=seed, sweep=k, lane=lane)
        yield unpack(rows, models_among(bits, rows)), ran


def _bytes(
    unsettled: Unsettled, weights: Weights, betas: Floats, seed: int, number: int
) -> Iterator[tuple[Bools, int]]:
    """Yield likewise from chains on any network."""
    network, lane = unsettled.network, LANES * number
    lanes = start(network, weights, random_states(network.atoms, seed, lane), seed=seed, lane=lane)
    done = advance(lanes, betas[: len(betas) // 3], rule="metropolis")
    yield lanes.x[:, lanes.broken() == 0] != 0, done
    for beta in betas[done:]:
        ran = advance(lanes, [beta], rule="metropolis", every=1)
        yield lanes.x[:, lanes.broken() == 0] != 0, ran
