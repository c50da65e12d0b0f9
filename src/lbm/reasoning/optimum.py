"""The best worlds (MaxSAT optimum, MAP or MPE state): models that satisfy the evidence and lose least.

The lost weight (cost): a soft formula of weight w > 0 is lost where it is false, one of weight -w where it is
true. So score(x) = (sum of the positive weights) - lost(x), and the best worlds are those that lose least.

Small theories are solved exactly. For others RC2, in a process of its own, raises a lower bound of the
lost weight while chains are annealed here; where bound and best world meet, the world is optimal.
Every world is evaluated on the formulae themselves before it is given out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape
from itertools import islice
from typing import Any, Final

import numpy as np

from lbm.errors import NoAnswer, UnknownAtom
from lbm.knowledge.formula import Formula
from lbm.knowledge.numbers import Weight, exact_sum, magnitude, plain
from lbm.knowledge.parser import Statement
from lbm.knowledge.printed import some_shown
from lbm.knowledge.theory import Theory, statement_shown
from lbm.reasoning.answer import world_facts, world_shown
from lbm.reasoning.budget import Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.search.routes import MAX_WORLDS, Found, find

_SHOWN: Final = 20  # worlds that are printed


@dataclass(frozen=True, slots=True, repr=False)
class Best:
    """The best worlds of a theory, as far as they are known.

    Attributes
    ----------
    worlds
        Best first, and in lexicographic order, false first, where they lose the same.
    scores
        Σ w over the soft formulae true in each world, exactly.
    satisfied
        Σ w over the soft formulae of positive weight that are true in the first world.
    lost
        Σ |w| over those of positive weight that are false in it, and those of negative weight that are true.
    broken
        Numbers of the statements that are lost.
    optimal
        Whether it is proven that no other world is better than these.
    bound
        A proven lower bound of the weight that any world loses.
    method
        ``"exact"``; ``"certified"``: proven by RC2, or nothing is lost; ``"annealed"``: the best one found.
    complete
        Whether these are all the optimal worlds; known only if all were asked for.
    sweeps
        How many sweeps of annealing were done.
    every
        Whether all optimal worlds were asked for.
    theory
        What they are the best worlds of: the formulae that ``broken`` numbers.
    """

    worlds: tuple[dict[str, bool], ...]
    scores: tuple[Weight, ...]
    satisfied: Weight
    lost: Weight
    broken: tuple[int, ...]
    optimal: bool
    bound: Weight
    method: str
    complete: bool = False
    sweeps: int = 0
    every: bool = False
    theory: Theory | None = field(default=None, compare=False)

    def lines(self, most: int | None = None, *, rest: str = "facts()") -> Iterator[str]:
        """Yield the worlds, what the first keeps and loses, how good it is and what it breaks, as text.

        Of the worlds, the first ``most``; of many broken formulae the first, and that ``rest`` lists them.
        """
        several = len(self.worlds) > 1
        for world, score in islice(zip(self.worlds, self.scores, strict=True), most):
            text = world_shown(world, world.values())
            yield f"{text}   score {score}" if several else text
        if most is not None and len(self.worlds) > most:
            yield f"and {len(self.worlds) - most} more"
        first = "the first: " if several else ""
        yield f"{first}satisfied {self.satisfied}, lost {self.lost}; {self.said}"
        if self.every:
            yield "these are all the best worlds" if self.complete else "there may be more worlds as good"
        if self.broken:
            yield "broken:"
            yield from some_shown(self.broken, lambda number: statement_shown(self._statement(number)), rest)

    def facts(self) -> dict[str, Any]:
        """Return the worlds and what is known of them for JSON; worlds and broken formulae as iterators."""
        return {
            "worlds": map(world_facts, self.worlds),
            "scores": [plain(score) for score in self.scores],
            "satisfied": plain(self.satisfied),
            "lost": plain(self.lost),
            "broken": (self._statement(number).facts() for number in self.broken),
            "optimal": self.optimal,
            "bound": plain(self.bound),
            "gap": plain(self.gap),
            "method": self.method,
            "complete": self.complete,
        }

    def _statement(self, number: int) -> Statement:
        assert self.theory is not None  # whoever numbers broken statements has them
        return self.theory.statements[number]

    def __repr__(self) -> str:
        return "\n".join(self.lines(_SHOWN))

    def _repr_html_(self) -> str:
        lines = [escape(line) for line in self.lines(_SHOWN)]
        worlds = min(len(self.worlds), _SHOWN)
        shown = [f"<div><code>{world}</code></div>" for world in lines[:worlds]]
        return "".join([*shown, *(f"<div>{line}</div>" for line in lines[worlds:])])

    @property
    def world(self) -> dict[str, bool]:
        """The best world."""
        return self.worlds[0]

    @property
    def score(self) -> Weight:
        """The score of the best world."""
        return self.scores[0]

    @property
    def said(self) -> str:
        """How good the world is, in words."""
        if self.optimal:
            return f"optimal ({self.method})"
        return f"best found: any world loses {self.bound} at least, so the gap is {self.gap}"

    @property
    def gap(self) -> Weight:
        """How much less another world might lose: 0 if this one is optimal."""
        return exact_sum([self.lost, _negative(self.bound)])


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
    first = None if start is None else _values(problem.theory, start)
    tell = None if on_better is None else lambda found: on_better(_named(problem, found, every))
    found = find(
        problem,
        budget,
        top=top,
        every=every,
        rng=np.random.default_rng(seed),
        tell=tell,
        start=first,
        jobs=n_jobs,
    )
    if not found.worlds:
        raise NoAnswer(f"no world was found within {seconds} seconds: allow more")
    return _named(problem, found, every)


def _values(theory: Theory, world: Mapping[str, Any]) -> list[bool]:
    """Return the values that a world gives to the atoms, in their order."""
    for name in theory.atoms:
        if name not in world:
            raise UnknownAtom(name, world, "world to start from")
    return [bool(world[name]) for name in theory.atoms]


def _named(problem: Problem, found: Found, every: bool) -> Best:
    """Return what was found under the names of the atoms, with weights as they were written."""
    first = found.worlds[0]
    if problem.theory.clauses is None:
        weights = {i: s.weight for i, s in enumerate(problem.theory) if s.weight is not None}
        scores = tuple(_score(weights, set(world.broken)) for world in found.worlds)
        broken = set(first.broken)
        satisfied = exact_sum(w for number, w in weights.items() if w > 0 and number not in broken)
        lost = exact_sum(magnitude(weights[number]) for number in first.broken)
    else:  # these may be a million whole numbers
        scores = tuple(problem.positive - world.lost for world in found.worlds)
        satisfied = problem.positive - sum(max(0, problem.weights[number]) for number in first.broken)
        lost = first.lost
    return Best(
        worlds=tuple(world.named(problem.theory.atoms) for world in found.worlds),
        scores=scores,
        satisfied=satisfied,
        lost=lost,
        broken=first.broken,
        optimal=found.optimal,
        bound=lost if found.bound >= first.lost else _unscaled(found.bound, problem.digits),
        method=found.method,
        complete=found.complete,
        sweeps=found.sweeps,
        every=every,
        theory=problem.theory,
    )


def _score(weights: Mapping[int, Weight], broken: set[int]) -> Weight:
    """Return Σ w over the true formulae: those of positive weight that are kept, others that are lost."""
    return exact_sum(w for number, w in weights.items() if (w > 0) is (number not in broken))


def _unscaled(whole: int, places: int) -> Weight:
    if not places:
        return whole
    sign, digits = int(whole < 0), tuple(map(int, str(abs(whole))))
    return Decimal((sign, digits, -places))


def _negative(weight: Weight) -> Weight:
    return weight.copy_negate() if isinstance(weight, Decimal) else -weight
