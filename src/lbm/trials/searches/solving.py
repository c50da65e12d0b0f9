"""Ways to look for one model of clauses, with the same number of chains and sweeps where there are any."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.knowledge.clauses import Clauses
from lbm.knowledge.theory import Theory
from lbm.machine.translate import translate
from lbm.reasoning.sampling.machines import gibbs_step
from lbm.trials.searches.instances import counter_of_broken, instance

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

    def facts(self) -> dict[str, int | float | None]:
        """Return the columns of a table that say how it went."""
        counts = {"solved": self.solved, "broken": self.broken, "sweeps_done": self.sweeps}
        return {**counts, "seconds": round(self.seconds, 6)}


def solve_by(method: str, clauses: Clauses, *, sweeps: int, seed: int) -> Solved:
    """Look for a model by one of METHODS; chains stop at the first they meet, or after so many sweeps."""
    _warm(method)
    begun = time.perf_counter()
    if method in ("block Gibbs", "annealed Gibbs"):
        last, done = _gibbs(clauses, sweeps, seed, annealed=method == "annealed Gibbs")
    elif method == "collapsed":
        last, done = _collapsed(clauses, sweeps, seed)
    elif method == "CaDiCaL":
        return _solver(clauses, begun)
    else:
        raise ValueError(f"expected a method among {', '.join(METHODS)}, got {method!r}")
    took = time.perf_counter() - begun
    broken = int(counter_of_broken(clauses)(last).min())
    return Solved(int(broken == 0), broken, done, took)


def _gibbs(clauses: Clauses, sweeps: int, seed: int, *, annealed: bool) -> tuple[NDArray[Any], int]:
    """Return the last states of block Gibbs on the machine of all clauses, and the steps done."""
    rng = np.random.default_rng((clauses.variables, seed))
    machine, broken = translate(Theory.from_clauses(clauses), epsilon=0.5), counter_of_broken(clauses)
    x = rng.random((clauses.variables, CHAINS)) < 0.5
    first, last = RISING if annealed else (CONFIDENCE, CONFIDENCE)
    done = 0
    for c in np.geomspace(first, last, sweeps).tolist():
        x = gibbs_step(machine, x, rng, confidence=c)
        done += 1
        if not broken(x).all():
            break
    return x, done


def _collapsed(clauses: Clauses, sweeps: int, seed: int) -> tuple[NDArray[Any], int]:
    """Return the state that the compiled chains keep as their best, and the sweeps done."""
    from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
    from lbm.reasoning.engine.network import network_of_clauses
    from lbm.reasoning.engine.schedule import HELD, held

    number = len(clauses)
    network = network_of_clauses(
        clauses.variables, clauses.literals, clauses.starts, np.zeros(number), np.ones(number)
    )
    weights = weights_of(network, 1.0)
    lanes = start(network, weights, random_states(clauses.variables, seed), seed=seed, watch=True)
    betas = held(0.1 * HELD / weights.unit, HELD / weights.unit, sweeps)
    done = advance(lanes, betas, rule="metropolis")
    return (lanes.best_x[:, None] if lanes.found else lanes.x), done


def _solver(clauses: Clauses, begun: float) -> Solved:
    from pysat.solvers import Solver

    with Solver("cadical153", bootstrap_with=list(clauses.rows())) as solver:
        found = solver.solve()
        model = solver.get_model() if found else None
    took = time.perf_counter() - begun
    if model is None:
        return Solved(0, None, None, took)
    values = np.array(model[: clauses.variables]) > 0
    broken = int((~clauses.true_at(values)).sum())
    return Solved(int(broken == 0), broken, None, took)


@cache
def _warm(method: str) -> None:
    """Load and compile once what a method needs: no search has to pay for it."""
    tiny = instance(3, ((1, 2), (-1, 3), (-2, -3)))
    if method == "CaDiCaL":
        _solver(tiny, 0.0)
    elif method == "collapsed":
        _collapsed(tiny, 2, 0)
    elif method in METHODS:
        _gibbs(tiny, 2, 0, annealed=True)
