"""How far drawn worlds are from the uniform distribution over the models: measured, or said not to be.

Where the models can be listed it is the total variation distance of the draws' shares, 1/2 Σ |share - 1/M|;
else, where exact marginals can be had, the largest error of a share of an atom. Neither is 0 for draws that
are exactly uniform: as many of those are expected at a distance that stands beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import LimitExceeded, NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.whole import How
from lbm.reasoning.problem import Problem

MAX_LISTED: Final = 50_000
"""Models up to which every one is counted in the draws."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far draws are from uniform.

    Attributes
    ----------
    measure
        ``total variation``, ``marginals`` (the largest error of the share of an atom), or ``not measured``.
    value
        The distance; None: not measured.
    expected
        About where as many draws would be that are uniform and independent of one another.
    draws, models
        How many draws there were, and models, if they were listed.
    strangers
        Draws that are no models that satisfy the evidence: they count as misplaced.
    """

    measure: str
    value: float | None
    expected: float | None
    draws: int
    models: int | None
    strangers: int

    def lines(self) -> list[str]:
        """Return the distance as a line of text."""
        if self.value is None:
            return ["distance from uniform: not measured"]
        name = "total variation" if self.models is not None else "largest error of a marginal"
        of = "" if self.models is None else f" over {self.models} models"
        return [
            f"distance from uniform: {self.value:.3g} ({name}{of}; uniform draws: about {self.expected:.3g})"
        ]

    def facts(self) -> dict[str, Any]:
        """Return the distance as plain data for JSON."""
        return {
            "measure": self.measure,
            "value": self.value,
            "expected": self.expected,
            "models": self.models,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())


def distance(theory: Theory, rows: Bools, given: Formula | None, budget: Budget) -> Distance:
    """Return how far worlds are from uniform over the models that satisfy the evidence.

    Parameters
    ----------
    rows
        Shape (draws, atoms), columns in the order of the theory's atoms.
    budget
        In which it must be measured.
    """
    hard = Theory.from_parts(theory.atoms, tuple(s for s in theory if s.weight is None))
    problem = Problem(hard, given)
    kept = problem.are_models(rows)
    strangers = int((~kept).sum())
    models = _models(problem, budget)
    if models is not None:
        return _variation(rows[kept], models, strangers)
    try:
        chances = Exact(hard, How(budget=budget)).marginals(given)
    except (NoAnswer, TooManyWorlds, LimitExceeded):
        return Distance("not measured", None, None, len(rows), None, strangers)
    exactly = np.array([chances[name] for name in hard.atoms])
    value = float(np.abs(rows.mean(axis=0) - exactly).max(initial=0.0))
    return Distance("marginals", value, _largest_error(exactly, len(rows)), len(rows), None, strangers)


def _models(problem: Problem, budget: Budget) -> int | None:
    """Return the number of models; None: there are too many, or too few were found in time."""
    try:
        number = Exact(problem.theory, How(budget=budget)).count(problem.evidence)
    except (NoAnswer, TooManyWorlds, LimitExceeded):
        return _enumerated(problem, budget)
    return number if number <= MAX_LISTED else None


def _enumerated(problem: Problem, budget: Budget) -> int | None:
    """Return the number of models, met one after the other, each ruled out when it was met."""
    from pysat.solvers import Solver

    clauses, atoms = problem.clauses(), len(problem.atoms)
    with Solver("cadical195", bootstrap_with=clauses.where(clauses.weights == 0).rows()) as solver:
        for number in range(MAX_LISTED + 1):
            if budget.spent():
                break
            if not solver.solve():
                return number
            said: list[int] = solver.get_model()[:atoms]
            model = [*said, *range(len(said) + 1, atoms + 1)]  # atoms past the last that a clause mentions
            solver.add_clause([-literal for literal in model])
    return None


def _variation(rows: Bools, models: int, strangers: int) -> Distance:
    draws = len(rows) + strangers
    if not models:
        raise NoWorlds(None)
    _, counts = np.unique(_packed(rows), return_counts=True)
    share = 1 / models
    # What some models have too much, or strangers have, is what others lack: half of the whole difference.
    value = float(np.maximum(counts / draws - share, 0).sum() + strangers / draws)
    expected = _expected_variation(draws, models)
    return Distance("total variation", value, expected, draws, models, strangers)


def _packed(rows: Bools) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return a world as one value, to be compared with others."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    if not packed.shape[1]:
        packed = np.zeros((len(rows), 1), np.uint8)
    return packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]


def _expected_variation(draws: int, models: int) -> float:
    """Return M/2 · E|B/N - 1/M| for B binomial(N, 1/M): its mean absolute deviation is known in closed form.

    E|B - Np| = 2 k (1 - p) P(B = k)  with  k = floor(Np) + 1.  [De Moivre, 1730]
    """
    if models == 1:
        return 0.0
    p, k = 1 / models, draws // models + 1
    if k > draws:
        return 0.0
    log = (
        math.lgamma(draws + 1)
        - math.lgamma(k + 1)
        - math.lgamma(draws - k + 1)
        + k * math.log(p)
        + (draws - k) * math.log1p(-p)
    )
    return models / 2 * 2 * k * (1 - p) * math.exp(log) / draws


def _largest_error(p: Floats, draws: int) -> float:
    """Return about how far the share of some atom is off in uniform draws: the median of 200 trials."""
    rng = np.random.default_rng(0)
    shares = rng.binomial(draws, np.clip(p, 0.0, 1.0), (200, len(p))) / draws
    return float(np.median(np.abs(shares - p).max(axis=1, initial=0.0)))
