"""The best worlds (MaxSAT optimum, MAP or MPE state): models that satisfy the evidence and lose least.

The lost weight (cost): a soft formula of weight w > 0 is lost where it is false, one of weight -w where it is
true. So score(x) = (sum of the positive weights) - lost(x), and the best worlds are those that lose least.

Small theories are solved exactly. For others RC2 and whichever other engines there are, each in a process
of its own, raise a lower bound of the lost weight while chains are annealed here; where bound and best world
meet, the world is optimal. Every world is evaluated on the formulae themselves before it is given out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from lbm.errors import NoAnswer, UnknownAtom
from lbm.knowledge.formula import Formula
from lbm.knowledge.numbers import Weight, exact_sum, magnitude, unscaled
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Best
from lbm.reasoning.budget import Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.search.engines import OWN, RC2, chosen
from lbm.reasoning.search.routes import Search
from lbm.reasoning.search.standing import MAX_WORLDS, Standing


def best(
    theory: Theory | Problem,
    *,
    given: Formula | None = None,
    top: int = 1,
    every: bool = False,
    seconds: float | None = 10.0,
    seed: int | np.random.Generator | None = None,
    on_better: Callable[[Best], None] | None = None,
    start: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    engines: str | Iterable[str] | None = None,
) -> Best:
    """Return the best world among the models that satisfy the evidence, or the best one found in time.

    Parameters
    ----------
    given
        Evidence: any formula over the theory's atoms.
    top
        How many worlds are wanted, the best ones; fewer if there are no more.
    every
        Whether all optimal worlds are wanted instead, up to MAX_WORLDS.
    seconds
        After which the best world found is returned; None: when it is proven optimal.
    on_better
        Called with every better world as it is found.
    start
        A world to begin from, if no exact answer is in reach: truth values of all atoms by name.
    n_jobs
        How many processes anneal; -1: as many as there are cores. Under ``joblib.parallel_config`` they are
        those of its backend, a Dask cluster for one.
    engines
        Who may be asked, by name: ``"own"`` (our own methods), ``"rc2"``, ``"cp-sat"`` and ``"toulbar2"``,
        the last two if the extra ``solvers`` is installed; a name behind a minus is forbidden. None: all.

    Raises
    ------
    NoWorlds
        If no model satisfies the evidence.
    NoAnswer
        If no model was found in time.

    Examples
    --------
    >>> found = best(Theory(["a ^ b", (2, "a"), (0.5, "b")]))
    >>> found.world, found.lost, found.broken, found.optimal
    ({'a': True, 'b': False}, Decimal('0.5'), (2,), True)
    """
    if not 1 <= top <= MAX_WORLDS:
        raise ValueError(f"top is a number of worlds from 1 to {MAX_WORLDS} (limit MAX_WORLDS), got {top}")
    if every and top > 1:
        raise ValueError(f"ask for the best {top} worlds or for every optimal one, not for both")
    budget = Budget.of(seconds)
    problem = Problem.of(theory, given)
    if n_jobs == 0:
        raise ValueError("n_jobs is a number of processes from 1 up, or -1 for all cores, got 0")
    asked = chosen(engines)
    if (every or top > 1) and asked.isdisjoint((OWN, RC2)):
        raise ValueError(
            f"only {OWN} and {RC2} give more than one world: name one of them, or ask for one world"
        )
    first = None if start is None else _values(problem.theory, start)
    tell = None if on_better is None else lambda found: on_better(_named(problem, found, every))
    found = Search(
        problem,
        budget,
        top=top,
        every=every,
        rng=np.random.default_rng(seed),
        tell=tell,
        start=first,
        jobs=n_jobs,
        engines=asked,
    ).found()
    if not found.worlds:
        failed = "".join(f"; dropped {reason}" for reason in found.dropped)
        raise NoAnswer(f"no world was found within {seconds} seconds: allow more{failed}")
    return _named(problem, found, every)


def _values(theory: Theory, world: Mapping[str, Any]) -> list[bool]:
    """Return the values that a world gives to the atoms, in their order."""
    for name in theory.atoms:
        if name not in world:
            raise UnknownAtom(name, world, "world to start from")
    return [bool(world[name]) for name in theory.atoms]


def _named(problem: Problem, found: Standing, every: bool) -> Best:
    """Return what was found under the names of the atoms, with weights as they were written."""
    first = found.worlds[0]
    if problem.theory.clauses is None:
        weights = {i: s.weight for i, s in enumerate(problem.theory) if s.weight is not None}
        scores = tuple(_score(weights, set(world.broken)) for world in found.worlds)
        broken = set(first.broken)
        satisfied = exact_sum(w for number, w in weights.items() if w > 0 and number not in broken)
        lost = exact_sum(magnitude(weights[number]) for number in first.broken)
    else:  # these may be a million whole numbers
        digits = problem.digits
        scores = tuple(unscaled(problem.positive - world.lost, digits) for world in found.worlds)
        broken_weight = sum(max(0, problem.weights[number]) for number in first.broken)
        satisfied = unscaled(problem.positive - broken_weight, digits)
        lost = unscaled(first.lost, digits)
    return Best(
        worlds=tuple(problem.named(world.values) for world in found.worlds),
        scores=scores,
        satisfied=satisfied,
        lost=lost,
        broken=first.broken,
        optimal=found.optimal,
        bound=lost if found.bound >= first.lost else unscaled(found.bound, problem.digits),
        method=found.method,
        complete=found.complete,
        sweeps=found.sweeps,
        every=every,
        found_by=found.found_by,
        proved_by=found.proved_by,
        dropped=found.dropped,
        theory=problem.theory,
    )


def _score(weights: Mapping[int, Weight], broken: set[int]) -> Weight:
    """Return Σ w over the true formulae: those of positive weight that are kept, others that are lost."""
    return exact_sum(w for number, w in weights.items() if (w > 0) is (number not in broken))
