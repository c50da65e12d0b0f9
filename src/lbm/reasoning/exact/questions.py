"""Exact answers about the models of a theory and about P(x) ∝ exp(score(x)/τ) over them.

Units are propagated and what is left falls apart into components that share no formula. Each is
solved by the method asked for, or the one that is least work:

- *cubes*: a strict DNF of its hard formulae; cube j over k_j of n atoms holds 2^(n - k_j) models;
- *enumeration*: every world, 64 to a machine word, up to LIMIT atoms;
- *elimination*: one variable after the other is summed out of tables, up to MAX_TABLE entries large;
- *circuit*: clauses compiled to a deterministic decomposable circuit (d-DNNF), up to MAX_EDGES edges.

Counts are whole numbers of any size. Scores are whole numbers too, weights times a power of ten, and
only differences from the best one are ever exponentiated: Z = exp(best/τ)·Σ exp((score - best)/τ).

What is known of one theory (``How``) is remembered; questions that share it are answered faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools
from lbm.errors import NoWorlds, UnknownAtom, WeightError
from lbm.knowledge.formula import Formula, holds
from lbm.knowledge.numbers import Weight
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Models
from lbm.reasoning.exact import whole
from lbm.reasoning.exact.apart import Split, assume, exponent, split_of
from lbm.reasoning.exact.rows import check_room, unpack
from lbm.reasoning.exact.whole import How, check_world, either_way
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import no_worlds

METHODS: Final = ("auto", "cubes", "enumeration", "elimination", "circuit")
"""How a component may be solved; auto: by the one of the others that is least work."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact answers about a theory, each given some evidence; ``how`` they are found, and how fast."""

    theory: Theory
    how: How = field(default_factory=How)
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.how.method not in METHODS:
            raise ValueError(f"expected a method among {', '.join(METHODS)}, got {self.how.method!r}")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature is a positive, finite number, got {self.temperature}")

    def count(self, given: Formula | None = None, project: Iterable[str] | None = None) -> int:
        """Return the number of models that keep the evidence; with ``project``, of their restrictions.

        Atoms that occur in no formula count too: each doubles the number.

        >>> Exact(Theory(["a -> b"], atoms=["a", "b", "c"])).count()
        6
        >>> Exact(Theory(["a -> b"])).count(project=["b"])
        2
        """
        kept = check_listed(self.theory, project, None)
        split = self._split(given, soft=False)
        if split is None:
            return 0
        return whole.count(split, None if kept is None else frozenset(kept), self.how)

    def models(
        self,
        given: Formula | None = None,
        project: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Models:
        """Return the models that keep the evidence, the first ``limit`` of them in lexicographic order.

        With ``project``, their distinct restrictions to those atoms, with columns in the order given.

        >>> list(Exact(Theory(["a ^ b"])).models())
        [{'a': False, 'b': True}, {'a': True, 'b': False}]
        """
        kept = check_listed(self.theory, project, limit)
        names = self.theory.atoms if kept is None else kept
        split = self._split(given, soft=False, first=names)
        keep = None if kept is None else frozenset(kept)
        total = 0 if split is None else whole.count(split, keep, self.how)
        if split is None or not total:
            return Models(names, np.zeros((0, len(names)), bool), complete=True)
        number = total if limit is None else min(limit, total)
        check_room(number, len(names))
        rows = whole.worlds(split, names, keep, number, self.how)
        return Models(names, unpack(rows, len(names)), complete=number == total)

    def log_partition(self, given: Formula | None = None) -> float:
        """Return log Z, Z = Σ exp(score(x)/τ) over the models that keep the evidence.

        >>> Exact(Theory([(0.5, "a")])).log_partition() == math.log(1 + math.exp(0.5))
        True
        """
        split, best, log = self._weighed(given)
        found = exponent(best, split.scale, self.temperature) + log
        if not math.isfinite(found):
            raise WeightError(
                f"expected weights whose sums divided by the temperature are finite, got {found} at "
                f"temperature {self.temperature:g}: raise it"
            )
        return found

    def log_probability(self, world: Mapping[str, Any], given: Formula | None = None) -> float:
        """Return log P(world | evidence); minus infinity if it breaks a hard formula or the evidence."""
        check_world(world, self.theory.atoms, "theory")
        split, best, log = self._weighed(given)
        if not self.theory.is_model(world) or (given is not None and not holds(given, world)):
            return -math.inf
        score = int(Fraction(self.theory.score(world)) * split.scale)
        return exponent(score - best, split.scale, self.temperature) - log

    def probability(self, query: Formula, given: Formula | None = None) -> float:
        """Return P(query | evidence) = Z(query and evidence)/Z(evidence).

        >>> from lbm.knowledge.parser import parse
        >>> Exact(Theory(["a | b"])).probability(parse("a & b"))
        0.333...
        """
        Problem(self.theory).check(query, "query")
        split, best, log = self._weighed(given)

        def share(formula: Formula) -> float:
            part = assume(split, formula, self.how.budget)
            found = None if part is None else whole.mass(part, self.temperature, self.how)
            if found is None:
                return 0.0
            # A scaled score means the same on both sides: the scale comes from the theory's weights.
            more = exponent(found[0] - best, split.scale, self.temperature)
            return math.exp(min(more + found[1] - log, 0.0))

        return either_way(query, share)

    def marginals(self, given: Formula | None = None) -> dict[str, float]:
        """Return P(atom | evidence) of every atom, in the theory's order.

        >>> Exact(Theory(["a | b", "c"], atoms=["a", "b", "c", "d"])).marginals()
        {'a': 0.666..., 'b': 0.666..., 'c': 1.0, 'd': 0.5}
        """
        found = whole.marginals(self.possible(given), self.temperature, self.how)
        if found is None:
            raise self.nothing(given)
        return {name: found[name] for name in self.theory.atoms}

    def best_worlds(self, given: Formula | None = None, limit: int | None = None) -> tuple[Weight, Models]:
        """Return the best score, exactly, and the models that keep the evidence and reach it.

        >>> Exact(Theory(["a ^ b", (2, "a"), (0.5, "b")])).best_worlds()[0]
        2
        """
        if limit is not None and limit < 1:
            raise ValueError(f"limit is a number of worlds from 1 up, got {limit}")
        atoms = self.theory.atoms
        found = whole.best(self.possible(given), atoms, limit, self.how)
        if found is None:
            raise self.nothing(given)
        _, total, rows = found
        worlds = Models(atoms, unpack(rows, len(atoms)), complete=len(rows) == total)
        return self.theory.score(worlds[0]), worlds

    def top_worlds(self, most: int, given: Formula | None = None) -> Bools:
        """Return the best models that keep the evidence, best first: shape (``most`` at most, atoms).

        >>> Exact(Theory(["a | b", (2, "a"), (1, "~b")])).top_worlds(2).tolist()
        [[True, False], [True, True]]
        """
        atoms = self.theory.atoms
        check_room(most, len(atoms))
        rows = whole.top(self.possible(given), atoms, most, self.how)
        if rows is None:
            raise self.nothing(given)
        return unpack(rows, len(atoms))

    def draw(self, n: int, rng: np.random.Generator, given: Formula | None = None) -> Bools:
        """Return ``n`` independent draws from P(x | evidence), shape (n, atoms of the theory)."""
        if n < 0:
            raise ValueError(f"n is a number of draws from 0 up, got {n}")
        atoms = self.theory.atoms
        check_room(n, len(atoms))
        rows = whole.draw(self.possible(given), atoms, n, rng, self.temperature, self.how)
        if rows is None:
            raise self.nothing(given)
        return unpack(rows, len(atoms))

    def possible(self, given: Formula | None) -> Split:
        """Return theory and evidence, taken apart; raise NoWorlds where propagation finds a clash."""
        split = self._split(given)
        if split is None:
            raise self.nothing(given)
        return split

    def nothing(self, given: Formula | None) -> NoWorlds:
        """Return the error for a theory and evidence that leave no world, naming which of them it is."""
        return no_worlds(self.theory, given, self.how.budget)

    def _split(
        self, given: Formula | None, *, soft: bool = True, first: tuple[str, ...] = ()
    ) -> Split | None:
        """Return the theory with its evidence, taken apart; None: they clash."""
        if given is not None:
            Problem(self.theory).check(given, "evidence")
        return split_of(self.theory, given, self.how.known, self.how.budget, soft=soft, first=first)

    def _weighed(self, given: Formula | None) -> tuple[Split, int, float]:
        """Return the theory with its evidence, taken apart, and best and log of Z = exp(best/τ + log)."""
        split = self.possible(given)
        found = whole.mass(split, self.temperature, self.how)
        if found is None:
            raise self.nothing(given)
        return split, *found


def check_listed(theory: Theory, project: Iterable[str] | None, limit: int | None) -> tuple[str, ...] | None:
    """Return the atoms that models are listed by, each once; raise unless these and the limit can be."""
    if limit is not None and limit < 0:
        raise ValueError(f"limit is a number of worlds from 0 up, got {limit}")
    if project is None:
        return None
    if isinstance(project, str):
        raise TypeError(f"project is a list of names, got the text {project!r}")
    known, kept = set(theory.atoms), tuple(dict.fromkeys(project))
    for name in kept:
        if name not in known:
            raise UnknownAtom(name, theory.atoms)
    return kept
