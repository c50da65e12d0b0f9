"""Exact answers about a machine as it was built: P(x) ∝ exp(-F(x)) over the worlds of its declared atoms.

    F(x) = -(c/τ) a·x - Σ_j log(1 + exp(c s_j(x)/τ)),   s_j(x) = Σ_i w_ij x_i + b_j

Hard formulae are wells like any other here, and definitional atoms are computed from the declared ones.

Atoms and hidden units fall apart into components that share no weight; atoms that the evidence settles
drop out first, and let more fall apart. In each component all states of the smaller layer are looked at
and the other layer is summed out in closed form: each hidden unit gives 1 + exp(c s_j/τ), and given the
hidden units each atom is a coin of its own. Any other evidence, and any query, becomes cases that exclude
one another, the cubes of a strict DNF, each of which settles some atoms; or it is looked up world by world.

Probabilities are accurate to 1e-9 or better. Where weights are so large that floating point has no digits
left for that, the worlds of up to 16 atoms are weighed in exact arithmetic; with more there is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lbm.arrays import Bools
from lbm.errors import NoWorlds, TooManyWorlds, UnknownAtom
from lbm.knowledge.formula import Formula, holds
from lbm.logic.anatomy import view
from lbm.machine.rbm import Machine
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.components.rows import check_room
from lbm.reasoning.landscape.precise import ATOMS, QUANTUM, AllWorlds, is_coarse
from lbm.reasoning.landscape.whole import Question

__all__ = ["draw", "log_partition", "log_probability", "marginals", "probability"]


def log_partition(
    machine: Machine,
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
    budget: Budget = NO_LIMIT,
) -> float:
    """Return log Z, Z = Σ exp(-F(x)) over the worlds that keep the evidence.

    >>> import lbm
    >>> machine = lbm.translate(lbm.parse("a"))           # one hidden unit, s = a - 0.5
    >>> log_partition(machine) == math.log((1 + math.exp(-2.5)) + (1 + math.exp(2.5)))
    True
    """
    return Question.of(machine, confidence, temperature, budget).possible(given).log


def log_probability(
    machine: Machine,
    world: Mapping[str, Any],
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
    budget: Budget = NO_LIMIT,
) -> float:
    """Return log P(world | evidence) of a world over the declared atoms; minus infinity if it breaks it."""
    question = Question.of(machine, confidence, temperature, budget)
    known = set(machine.declared)
    for name in world:
        if name not in known:
            raise UnknownAtom(name, machine.declared, "machine")
    for name in machine.declared:
        if name not in world:
            raise UnknownAtom(name, world, "world")
    values = {name: bool(world[name]) for name in machine.declared}
    worlds = _precisely(question, given)
    if worlds is not None:
        kept = worlds.true(given)
        number = int("0" + "".join(str(int(value)) for value in values.values()), 2)
        if not kept[number]:
            return -math.inf
        top = max(worlds.logs[kept])
        return min(float((worlds.logs[number] - top) * QUANTUM) - math.log(worlds.weights(kept).sum()), 0.0)
    whole = question.possible(given)
    if given is not None and not holds(given, values):
        return -math.inf
    row = np.array([values[name] for name in machine.declared], dtype=np.float64)
    depth = -float(machine.free_energy(row, confidence=confidence, temperature=temperature))
    return min(math.fsum([depth, *(-log for log in whole.logs())]), 0.0)


def probability(
    machine: Machine,
    query: Formula,
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
    budget: Budget = NO_LIMIT,
) -> float:
    """Return P(query | evidence): Σ exp(-F(x)) over the worlds that keep both, over that of the evidence.

    Components that neither of them mentions are never looked at, and so may be of any size.

    >>> import lbm
    >>> machine = lbm.translate(lbm.parse("a -> b"))
    >>> round(probability(machine, lbm.parse("b"), given=lbm.parse("a")), 3)
    0.924
    """
    question = Question.of(machine, confidence, temperature, budget)
    question.check(query, "query")
    worlds = _precisely(question, given)
    if worlds is not None:
        kept = worlds.true(given)
        weights = worlds.weights(kept)
        chosen = worlds.true(query)
        above, beside = math.fsum(weights[chosen]), math.fsum(weights[~chosen])
        return above / (above + beside)
    below = question.possible(given)

    def share(formula: Formula) -> float:
        above = question.ask(formula if given is None else given & formula)
        return 0.0 if above is None else math.exp(min(above.log_ratio(below), 0.0))

    try:
        found = share(query)
    except TooManyWorlds:
        # The negation of a disjunction settles atoms where the disjunction joins components.
        if view(query).op != "or":
            raise
        return 1.0 - share(~query)
    if found > 1.0 - 1e-9:
        try:
            return 1.0 - share(~query)  # nearer the truth, and exactly 1 where the query follows
        except TooManyWorlds:
            return found
    return found


def marginals(
    machine: Machine,
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
    budget: Budget = NO_LIMIT,
) -> dict[str, float]:
    """Return P(atom | evidence) of every declared atom, in the machine's order.

    >>> import lbm
    >>> machine = lbm.translate(lbm.Theory(["a -> b"], atoms=["a", "b", "c"]))
    >>> {name: round(chance, 3) for name, chance in marginals(machine, confidence=50).items()}
    {'a': 0.333, 'b': 0.667, 'c': 0.5}
    """
    question = Question.of(machine, confidence, temperature, budget)
    worlds = _precisely(question, given)
    if worlds is not None:
        weights = worlds.weights(worlds.true(given))
        chances = (weights @ worlds.array) / weights.sum()
        return dict(zip(machine.declared, np.minimum(chances, 1.0).tolist(), strict=True))
    whole = question.ask(given)
    found = None if whole is None else whole.marginals()
    if found is None:
        raise NoWorlds(given)
    return dict(zip(machine.declared, found.tolist(), strict=True))


def draw(
    machine: Machine,
    n: int,
    rng: np.random.Generator,
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
    budget: Budget = NO_LIMIT,
) -> Bools:
    """Return ``n`` independent draws from P(x | evidence), shape (n, declared atoms)."""
    if n < 0:
        raise ValueError(f"n is a number of draws from 0 up, got {n}")
    check_room(n, len(machine.declared))
    return Question.of(machine, confidence, temperature, budget).possible(given).draw(n, rng)


def _precisely(question: Question, given: Formula | None) -> AllWorlds | None:
    """Return all worlds in exact arithmetic, where the machine's numbers need it and its atoms are few."""
    machine = question.machine
    if len(machine.declared) > ATOMS or not is_coarse(machine, question.scale):
        return None
    if given is not None:
        question.check(given, "evidence")
    worlds = AllWorlds(machine, question.scale, question.budget)
    if not worlds.true(given).any():
        raise NoWorlds(given)
    return worlds
