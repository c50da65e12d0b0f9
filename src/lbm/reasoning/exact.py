"""Exact answers about the models of a theory and about P(x) ∝ exp(score(x)/τ) over them.

Units are propagated and what is left falls apart into components that share no formula. Each is
solved by the first of three methods that fits it, or the one asked for:

- *cubes*: a strict DNF of its hard formulae; cube j over k_j of n atoms holds 2^(n - k_j) models;
- *enumeration*: every world, 64 to a machine word, up to LIMIT atoms;
- *elimination*: one atom after the other is summed out of tables, up to WIDTH atoms wide.

What is too large for all of them is split by the values of a few atoms, into at most MAX_CASES cases.
Counts are whole numbers of any size. Scores are whole numbers too, weights times a power of ten, and
only differences from the best one are ever exponentiated: Z = exp(best/τ)·Σ exp((score - best)/τ).

``known`` remembers what was worked out about one theory; questions that share it are answered faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools
from lbm.errors import TooManyWorlds, UnknownAtom, WeightError
from lbm.knowledge.formula import Formula, holds
from lbm.knowledge.numbers import Weight
from lbm.knowledge.theory import Theory
from lbm.logic.anatomy import view
from lbm.reasoning.answers import Models
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.components import whole
from lbm.reasoning.components.apart import Split, assume, exponent, split_of
from lbm.reasoning.components.rows import check_room, unpack
from lbm.reasoning.problem import Known, Problem
from lbm.reasoning.proof import no_worlds

__all__ = [
    "METHODS",
    "Known",
    "Models",
    "best_worlds",
    "count",
    "draw",
    "log_partition",
    "log_probability",
    "marginals",
    "models",
    "probability",
]


METHODS: Final = ("auto", "cubes", "enumeration", "elimination")
"""How a component may be solved; auto: by the first of the others that fits, or by cases."""


def count(
    theory: Theory,
    *,
    given: Formula | None = None,
    project: Iterable[str] | None = None,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> int:
    """Return the number of models that keep the evidence; with ``project``, of their restrictions.

    Atoms that occur in no formula count too: each doubles the number.

    >>> count(Theory(["a -> b"], atoms=["a", "b", "c"]))
    6
    >>> count(Theory(["a -> b"]), project=["b"])
    2
    """
    how = _how(method, known, budget)
    kept = _projected(theory, project)
    split = _split(theory, given, how, soft=False)
    if split is None:
        return 0
    return whole.count(split, None if kept is None else frozenset(kept), how)


def models(
    theory: Theory,
    *,
    given: Formula | None = None,
    project: Iterable[str] | None = None,
    limit: int | None = None,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> Models:
    """Return the models that keep the evidence, the first ``limit`` of them in lexicographic order.

    With ``project``, their distinct restrictions to those atoms, with columns in the order given.

    >>> list(models(Theory(["a ^ b"])))
    [{'a': False, 'b': True}, {'a': True, 'b': False}]
    """
    how = _how(method, known, budget)
    kept = check_listed(theory, project, limit)
    names = theory.atoms if kept is None else kept
    split = _split(theory, given, how, soft=False, first=names)
    keep = None if kept is None else frozenset(kept)
    total = 0 if split is None else whole.count(split, keep, how)
    if split is None or not total:
        return Models(names, np.zeros((0, len(names)), bool), complete=True)
    number = total if limit is None else min(limit, total)
    check_room(number, len(names))
    rows = whole.worlds(split, names, keep, number, how)
    return Models(names, unpack(rows, len(names)), complete=number == total)


def log_partition(
    theory: Theory,
    *,
    given: Formula | None = None,
    temperature: float = 1.0,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> float:
    """Return log Z, Z = Σ exp(score(x)/τ) over the models that keep the evidence.

    >>> log_partition(Theory([(0.5, "a")])) == math.log(1 + math.exp(0.5))
    True
    """
    how = _how(method, known, budget)
    split = _possible(theory, given, how, temperature)
    best, log = _weigh(split, temperature, theory, given, how)
    found = exponent(best, split.scale, temperature) + log
    if not math.isfinite(found):
        raise WeightError(
            f"expected weights whose sums divided by the temperature are finite, got {found} at temperature "
            f"{temperature:g}: raise it"
        )
    return found


def log_probability(
    theory: Theory,
    world: Mapping[str, Any],
    *,
    given: Formula | None = None,
    temperature: float = 1.0,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> float:
    """Return log P(world | evidence); minus infinity if it breaks a hard formula or the evidence."""
    for name in world:
        if name not in theory.atoms:
            raise UnknownAtom(name, theory.atoms)
    for name in theory.atoms:
        if name not in world:
            raise UnknownAtom(name, world, "world")
    how = _how(method, known, budget)
    split = _possible(theory, given, how, temperature)
    best, log = _weigh(split, temperature, theory, given, how)
    if not theory.is_model(world) or (given is not None and not holds(given, world)):
        return -math.inf
    score = int(Fraction(theory.score(world)) * split.scale)
    return exponent(score - best, split.scale, temperature) - log


def probability(
    theory: Theory,
    query: Formula,
    *,
    given: Formula | None = None,
    temperature: float = 1.0,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> float:
    """Return P(query | evidence) = Z(query and evidence)/Z(evidence).

    >>> from lbm.knowledge.parser import parse
    >>> probability(Theory(["a | b"]), parse("a & b"))
    0.333...
    """
    Problem(theory).check(query, "query")
    how = _how(method, known, budget)
    split = _possible(theory, given, how, temperature)
    below = _weigh(split, temperature, theory, given, how)

    def share(formula: Formula) -> float:
        part = assume(split, formula, budget)
        found = None if part is None else whole.mass(part, temperature, how)
        if found is None:
            return 0.0
        # A scaled score means the same on both sides: the scale comes from the theory's weights.
        more = exponent(found[0] - below[0], split.scale, temperature)
        return math.exp(min(more + found[1] - below[1], 0.0))

    try:
        found = share(query)
    except TooManyWorlds:
        # The negation of a disjunction falls apart into components that the disjunction joins.
        if view(query).op != "or":
            raise
        return 1.0 - share(~query)
    if found > 1.0 - 1e-9:
        try:
            return 1.0 - share(~query)  # nearer the truth, and exactly 1 where the query is entailed
        except TooManyWorlds:
            return found
    return found


def marginals(
    theory: Theory,
    *,
    given: Formula | None = None,
    temperature: float = 1.0,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> dict[str, float]:
    """Return P(atom | evidence) of every atom, in the theory's order.

    >>> marginals(Theory(["a | b", "c"], atoms=["a", "b", "c", "d"]))
    {'a': 0.666..., 'b': 0.666..., 'c': 1.0, 'd': 0.5}
    """
    how = _how(method, known, budget)
    split = _possible(theory, given, how, temperature)
    found = whole.marginals(split, temperature, how)
    if found is None:
        raise no_worlds(theory, given, budget)
    return {name: found[name] for name in theory.atoms}


def best_worlds(
    theory: Theory,
    *,
    given: Formula | None = None,
    limit: int | None = None,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> tuple[Weight, Models]:
    """Return the best score, exactly, and the models that keep the evidence and reach it.

    >>> best_worlds(Theory(["a ^ b", (2, "a"), (0.5, "b")]))[0]
    2
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is a number of worlds from 1 up, got {limit}")
    how = _how(method, known, budget)
    split = _possible(theory, given, how)
    found = whole.best(split, theory.atoms, limit, how)
    if found is None:
        raise no_worlds(theory, given, budget)
    _, total, rows = found
    worlds = Models(theory.atoms, unpack(rows, len(theory.atoms)), complete=len(rows) == total)
    return theory.score(worlds[0]), worlds


def draw(
    theory: Theory,
    n: int,
    rng: np.random.Generator,
    *,
    given: Formula | None = None,
    temperature: float = 1.0,
    method: str = "auto",
    known: Known | None = None,
    budget: Budget = NO_LIMIT,
) -> Bools:
    """Return ``n`` independent draws from P(x | evidence), shape (n, atoms of the theory)."""
    if n < 0:
        raise ValueError(f"n is a number of draws from 0 up, got {n}")
    check_room(n, len(theory.atoms))
    how = _how(method, known, budget)
    split = _possible(theory, given, how, temperature)
    rows = whole.draw(split, theory.atoms, n, rng, temperature, how)
    if rows is None:
        raise no_worlds(theory, given, budget)
    return unpack(rows, len(theory.atoms))


# --- checks at the door ----------------------------------------------------------------------------


def _how(method: str, known: Known | None, budget: Budget) -> whole.How:
    if method not in METHODS:
        raise ValueError(f"expected a method among {', '.join(METHODS)}, got {method!r}")
    return whole.How(method, known or Known(), budget)


def check_listed(theory: Theory, project: Iterable[str] | None, limit: int | None) -> tuple[str, ...] | None:
    """Return the atoms that models are listed by, each once; raise unless these and the limit can be."""
    if limit is not None and limit < 0:
        raise ValueError(f"limit is a number of worlds from 0 up, got {limit}")
    return _projected(theory, project)


def _projected(theory: Theory, project: Iterable[str] | None) -> tuple[str, ...] | None:
    if project is None:
        return None
    if isinstance(project, str):
        raise TypeError(f"project is a list of names, got the text {project!r}")
    known, kept = set(theory.atoms), tuple(dict.fromkeys(project))
    for name in kept:
        if name not in known:
            raise UnknownAtom(name, theory.atoms)
    return kept


def _split(
    theory: Theory,
    given: Formula | None,
    how: whole.How,
    *,
    soft: bool = True,
    first: tuple[str, ...] = (),
) -> Split | None:
    """Return the theory with its evidence, taken apart; None: they clash."""
    if given is not None:
        Problem(theory).check(given, "evidence")
    return split_of(theory, given, how.known, how.budget, soft=soft, first=first)


def possible(theory: Theory, given: Formula | None, known: Known, budget: Budget) -> Split:
    """Return the theory with its evidence, taken apart; raise NoWorlds where propagation finds a clash."""
    return _possible(theory, given, whole.How(known=known, budget=budget))


def _possible(theory: Theory, given: Formula | None, how: whole.How, temperature: float = 1.0) -> Split:
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature is a positive, finite number, got {temperature}")
    split = _split(theory, given, how)
    if split is None:
        raise no_worlds(theory, given, how.budget)
    return split


def _weigh(
    split: Split, temperature: float, theory: Theory, given: Formula | None, how: whole.How
) -> tuple[int, float]:
    found = whole.mass(split, temperature, how)
    if found is None:
        raise no_worlds(theory, given, how.budget)
    return found
