"""Ways to look for one model of clauses, with the same number of chains and sweeps where there are any."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.machine.translate import translate
from lbm.reasoning.sampling.machines import gibbs_step
from lbm.trials.searches.instances import Instance

METHODS: Final = ("block Gibbs", "annealed Gibbs", "collapsed", "CaDiCaL")
CHAINS: Final = 64
"""Chains side by side of each method that has chains."""

CONFIDENCE: Final = 5.0
"""c of block Gibbs, as in the paper."""

RISING: Final = (2.0, 10.0)
"""c of annealed chains, from the first step to the last: of six schedules that were tried, the best."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What became of a search.

    ``solved`` is 1 if it ended with a model, on which every clause was evaluated, and 0 if it did not;
    ``broken`` is the least number of false clauses among the last states; ``sweeps`` those done. A solver
    has no sweeps, and if it proves that there is no model ``broken`` is None.
    """

    solved: int
    broken: int | None
    sweeps: int | None
    seconds: float


def solve_by(method: str, instance: Instance, *, sweeps: int, seed: int) -> Solved:
    """Look for a model by one of METHODS; chains stop at the first they meet, or after so many sweeps."""
    _warm(method)
    begun = time.perf_counter()
    if method in ("block Gibbs", "annealed Gibbs"):
        last, done = _gibbs(instance, sweeps, seed, annealed=method == "annealed Gibbs")
    elif method == "collapsed":
        last, done = _collapsed(instance, sweeps, seed)
    elif method == "CaDiCaL":
        return _solver(instance, begun)
    else:
        raise ValueError(f"expected a method among {', '.join(METHODS)}, got {method!r}")
    took = time.perf_counter() - begun
    broken = int(instance.broken(last).min())
    return Solved(int(broken == 0), broken, done, took)


def _gibbs(instance: Instance, sweeps: int, seed: int, *, annealed: bool) -> tuple[NDArray[Any], int]:
    """Return the last states of block Gibbs on the machine of all clauses, and the steps done."""
    rng = np.random.default_rng((instance.atoms, seed))
    machine = translate(instance.theory(), epsilon=0.5)
    x = rng.random((instance.atoms, CHAINS)) < 0.5
    first, last = RISING if annealed else (CONFIDENCE, CONFIDENCE)
    done = 0
    for c in np.geomspace(first, last, sweeps).tolist():
        x = gibbs_step(machine, x, rng, confidence=c)
        done += 1
        if not instance.broken(x).all():
            break
    return x, done


def _collapsed(instance: Instance, sweeps: int, seed: int) -> tuple[NDArray[Any], int]:
    """Return the state that the compiled chains keep as their best, and the sweeps done."""
    from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
    from lbm.reasoning.engine.network import network_of_clauses
    from lbm.reasoning.engine.schedule import HELD, held

    number = len(instance.clauses)
    network = network_of_clauses(
        instance.atoms, instance.literals, instance.starts, np.zeros(number), np.ones(number)
    )
    weights = weights_of(network, 1.0)
    lanes = start(network, weights, random_states(instance.atoms, seed), seed=seed, watch=True)
    betas = held(0.1 * HELD / weights.unit, HELD / weights.unit, sweeps)
    done = advance(lanes, betas, rule="metropolis")
    return (lanes.best_x[:, None] if lanes.found else lanes.x), done


def _solver(instance: Instance, begun: float) -> Solved:
    from pysat.solvers import Solver

    with Solver("cadical153", bootstrap_with=[list(clause) for clause in instance.clauses]) as solver:
        found = solver.solve()
        model = solver.get_model() if found else None
    took = time.perf_counter() - begun
    if model is None:
        return Solved(0, None, None, took)
    values = np.zeros((instance.atoms, 1), bool)
    for literal in model[: instance.atoms]:
        values[abs(literal) - 1] = literal > 0
    broken = int(instance.broken(values)[0])
    return Solved(int(broken == 0), broken, None, took)


@cache
def _warm(method: str) -> None:
    """Load and compile once what a method needs: no search has to pay for it."""
    tiny = Instance(3, ((1, 2), (-1, 3), (-2, -3)))
    if method == "CaDiCaL":
        _solver(tiny, 0.0)
    elif method == "collapsed":
        _collapsed(tiny, 2, 0)
    elif method in METHODS:
        _gibbs(tiny, 2, 0, annealed=True)
