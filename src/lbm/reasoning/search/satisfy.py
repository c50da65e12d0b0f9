"""Whether hard formulae can all be kept: a SAT solver and focused walks side by side, whoever is right first.

Where clauses have structure the solver sees it, and only the solver proves that there is no world. Where they
are random, walks find one long before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from lbm.knowledge.theory import Theory
from lbm.reasoning import proof
from lbm.reasoning.answers import Proof
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.search import engines

MAX_LITERALS: Final = 2_000_000
"""Literals of clauses that are walked over."""

ALONE: Final = 0.3
"""Seconds for the solver alone before walks begin: most questions are settled by then."""

_FLIPS: Final = (5_000, 20_000, 50_000)  # of the first walks, and of all others


def prove(theory: Theory, *, budget: Budget = NO_LIMIT) -> Proof:
    """Return whether the hard formulae are satisfiable and, if not, the clash as small as time allows.

    >>> prove(Theory(["a | b", "~a"])).satisfiable
    True
    """
    walks = _walks(theory, budget)
    return proof.prove(theory, budget=budget, meanwhile=lambda: next(walks, None))


def _walks(theory: Theory, budget: Budget) -> Iterator[Sequence[bool] | None]:
    """Yield None for every walk that has found no model, then a model; nothing where walks are of no use."""
    alone = NO_LIMIT.at_most(ALONE)
    while not alone.spent():
        yield None
    while not engines.usable("walks", budget):
        yield None
    clauses = Problem(theory).weighted_clauses(hard=True)
    if clauses is None or not 0 < len(clauses.literals) <= MAX_LITERALS:
        return
    from lbm.reasoning.engine.lanes import random_states
    from lbm.reasoning.engine.network import LANES
    from lbm.reasoning.engine.walks import focused, ground_of

    ground = ground_of(clauses)
    assert ground is not None  # nothing is soft
    for number in count():
        lane = number % LANES
        if not lane:
            starts = random_states(ground.atoms, 0, number)
        flips = max(_FLIPS[min(number, len(_FLIPS) - 1)], 20 * ground.atoms)
        found = focused(ground, starts[:, lane], flips=flips, seed=0, number=number)
        yield None if found.cost else found.x.astype(bool).tolist()
