"""Chains that walk among the models: one atom flips at a time, and only where every hard clause stays true.

Such chains need no penalty and discard no state, and a flip that is not allowed costs one look at a counter.
But flips need not connect all models. So chains begin in models that a solver finds, among them one with
each watched atom true and one with it false: where no way leads from one to the other, chains disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import NoAnswer
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.answers import Estimate
from lbm.reasoning.compiling.compiled import compiled
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.proof import smallest
from lbm.reasoning.sampling.diagnostics import estimate_sums, judged, least_known
from lbm.reasoning.sampling.runs import Limits, run_until

CONFLICTS: Final = 100_000
"""Conflicts after which a solver gives up on a question."""

_JUDGED: Final = 512  # states of each chain by which every atom is judged


def begin(
    clauses: Clauses, watched: Collection[int], rng: np.random.Generator
) -> tuple[Bools, dict[int, bool]]:
    """Return models far apart, with each watched atom true in one and false in another if it can be.

    The models have shape (models, atoms), those with rare values first; none: the hard clauses allow no
    world. With them, the watched atoms, from 0, that have one value in all models: for every other one there
    is a model of either kind.
    """
    found: dict[bytes, Bools] = {}
    fixed: dict[int, bool] = {}
    with closing(_Oracle(clauses)) as oracle:
        for _ in range(LANES):
            model = oracle.solve(rng.random(clauses.variables) < 0.5)
            if model is None:
                return np.zeros((0, clauses.variables), bool), {}
            found.setdefault(model.tobytes(), model)
        for atom in sorted(watched):
            values = {bool(model[atom]) for model in found.values()}
            if len(values) == 2:
                continue
            (value,) = values
            model = oracle.solve(None, -(atom + 1) if value else atom + 1)
            if model is None:
                fixed[atom] = value
            else:
                found.setdefault(model.tobytes(), model)
    return np.array(list(found.values())[::-1]), fixed


def is_possible(clauses: Clauses) -> bool:
    """Return whether some world keeps the hard clauses."""
    with closing(_Oracle(clauses)) as oracle:
        return oracle.solve(None) is not None


def clashing(clauses: Clauses, literals: Collection[int]) -> list[int]:
    """Return some of the literals that the hard clauses do not allow together, none of them needless.

    None at all: the clauses allow no world, with or without them.
    """
    with closing(_Oracle(clauses)) as oracle:
        kept = oracle.core(literals)
        assert kept is not None, "the literals are allowed together"

        def clash(some: Collection[int]) -> Collection[int] | bool:
            nonlocal kept
            fewer = oracle.core([literal for literal in kept or () if literal in set(some)])
            kept = kept if fewer is None else fewer
            return False if fewer is None else fewer

        found, _ = smallest([[literal] for literal in sorted(kept, key=abs, reverse=True)], clash)
        return sorted(found, key=abs)


class _Oracle:
    """A solver that holds the hard clauses; random worlds lead it to models of all kinds."""

    def __init__(self, clauses: Clauses) -> None:
        from pysat.solvers import Solver

        self.solver: Any = Solver(name="minisat22")
        self.atoms = clauses.variables
        for clause in clauses.where(clauses.weights == 0).rows():
            self.solver.add_clause(clause)

    def close(self) -> None:
        self.solver.delete()

    def solve(self, near: Bools | None, *assumed: int) -> Bools | None:
        """Return a model, near a world if one is given; None: there is none."""
        if near is not None:
            self.solver.set_phases([i if wanted else -i for i, wanted in enumerate(near.tolist(), start=1)])
        if not self._decide(list(assumed)):
            return None
        model = np.zeros(self.atoms, bool) if near is None else near.copy()
        for literal in self.solver.get_model():
            if abs(literal) <= self.atoms:
                model[abs(literal) - 1] = literal > 0
        return model

    def core(self, assumed: Collection[int]) -> list[int] | None:
        """Return literals among these that clash with the clauses; None: they do not."""
        return None if self._decide(list(assumed)) else list(self.solver.get_core() or ())

    def _decide(self, assumed: list[int]) -> bool:
        self.solver.conf_budget(CONFLICTS)
        answer: bool | None = self.solver.solve_limited(assumed)
        if answer is None:
            raise NoAnswer(
                f"no world that keeps rules and labels was found in {CONFLICTS} conflicts (limit CONFLICTS): "
                "use smaller domains or fewer rules"
            )
        return answer


def walk(
    clauses: Clauses,
    temperature: float,
    models: Bools,
    watched: Collection[int],
    rng: np.random.Generator,
    limits: Limits,
) -> tuple[dict[int, Estimate], int]:
    """Return how likely each watched atom is, and after how many sweeps that was said.

        P(x) ∝ exp(score(x)/τ) over the models of the hard clauses

    Chains begin in the models; there have to be some with a watched atom true and with it false. See
    :func:`agreed` for the rest.
    """
    columns = np.array(sorted(watched), np.int64)
    starts = models[np.arange(LANES) % len(models)]
    seen = ((x[:, columns], score) for x, score in _states(clauses, temperature, starts, rng))
    found, done = agreed(seen, clauses.variables, limits)
    # Where all chains began alike and stayed so, they may have missed the other models.
    sure = {}
    for column, said in zip(columns.tolist(), found, strict=True):
        both = bool(0 < np.count_nonzero(starts[:, column]) < LANES)
        sure[column] = replace(said, converged=said.converged and both)
    return sure, done


def agreed(seen: Iterator[tuple[Bools, Floats]], size: int, limits: Limits) -> tuple[list[Estimate], int]:
    """Return an estimate for each column of the states of chains, and after how many sweeps that was said.

    The last half of the sweeps counts.

    Parameters
    ----------
    seen
        States, shape (chains, columns), and scores, shape (chains,), after every sweep, without end.
    size
        Updates in a sweep of one chain.
    """
    kept: list[tuple[Bools, Floats]] = []

    def add(some: Sequence[tuple[Bools, Floats]]) -> bool:
        kept.extend(some)
        return True

    def judge() -> tuple[list[Estimate], Estimate]:
        half = len(kept) // 2
        states, scores = zip(*kept[half :: max(1, (len(kept) - half) // _JUDGED)], strict=True)
        x = np.ascontiguousarray(np.array(states).transpose(2, 1, 0))  # (columns, chains, draws)
        beside = judged(np.array(scores).T[None])
        found = [estimate_sums(one, np.ones(one.shape, bool), beside) for one in x]
        return found, least_known(found)

    return run_until(seen, add, judge, limits, size)


def _states(
    clauses: Clauses, temperature: float, starts: Bools, rng: np.random.Generator
) -> Iterator[tuple[Bools, Floats]]:
    """Yield all chains after every sweep: states, shape (LANES, atoms), and scores, shape (LANES,)."""
    x = starts.astype(np.int8)
    codes = clauses.codes
    owner = np.repeat(np.arange(len(clauses)), clauses.sizes)
    order = np.argsort(codes >> 1, kind="stable")
    within, signs = owner[order], (codes[order] & 1).astype(np.int8)
    first = np.searchsorted(codes[order] >> 1, np.arange(clauses.variables + 1))
    true = np.zeros((LANES, len(clauses)), np.int32)
    breaks = np.zeros((LANES, clauses.variables), np.int32)
    change = np.zeros((LANES, clauses.variables), np.int64)
    prepare(codes, clauses.starts, clauses.weights, x, true, breaks, change)
    assert (true[:, clauses.weights == 0] > 0).all(), "a solver's model breaks a clause"
    score = (true > 0) @ clauses.weights.astype(np.float64)
    while True:
        gained = sweep(
            codes, clauses.starts, clauses.weights, first, within, signs, x, true, breaks, change,
            rng.permutation(clauses.variables), rng.random((LANES, clauses.variables)), temperature,
        )  # fmt: skip
        score = score + gained
        yield x.astype(bool), score / temperature


@compiled
def prepare(
    codes: Ints,
    starts: Ints,
    weights: Ints,
    x: NDArray[np.int8],
    true: NDArray[np.int32],
    breaks: NDArray[np.int32],
    change: Ints,
) -> None:
    """Count the true literals of every clause, the hard clauses each flip breaks, and what it gains."""
    for lane in range(x.shape[0]):
        for j in range(len(weights)):
            held, only = 0, -1
            for k in range(starts[j], starts[j + 1]):
                if x[lane, codes[k] >> 1] != (codes[k] & 1):
                    held += 1
                    only = codes[k] >> 1
            true[lane, j] = held
            if weights[j] == 0:
                if held == 1:
                    breaks[lane, only] += 1
            elif held == 1:
                change[lane, only] -= weights[j]
            elif held == 0:
                for k in range(starts[j], starts[j + 1]):
                    change[lane, codes[k] >> 1] += weights[j]


@compiled
def sweep(
    codes: Ints,
    starts: Ints,
    weights: Ints,
    first: Ints,
    within: Ints,
    signs: NDArray[np.int8],
    x: NDArray[np.int8],
    true: NDArray[np.int32],
    breaks: NDArray[np.int32],
    change: Ints,
    order: Ints,
    uniform: Floats,
    temperature: float,
) -> Floats:
    """Offer every atom of every chain its other value, by heat bath; return what each chain gained."""
    gained = np.zeros(x.shape[0])
    for lane in range(x.shape[0]):
        for atom in order:
            if breaks[lane, atom] > 0:
                continue
            delta = change[lane, atom]
            if uniform[lane, atom] * (1.0 + np.exp(-delta / temperature)) >= 1.0:
                continue
            gained[lane] += delta
            x[lane, atom] = 1 - x[lane, atom]
            for m in range(first[atom], first[atom + 1]):
                j = within[m]
                weight = weights[j]
                if x[lane, atom] != signs[m]:  # its literal became true
                    true[lane, j] += 1
                    held = true[lane, j]
                    if held > 2:
                        continue
                    for k in range(starts[j], starts[j + 1]):
                        other = codes[k] >> 1
                        if held == 1:
                            change[lane, other] -= weight
                            if other == atom:
                                change[lane, atom] -= weight
                        elif other != atom and x[lane, other] != (codes[k] & 1):
                            if weight == 0:
                                breaks[lane, other] -= 1
                            else:
                                change[lane, other] += weight
                else:
                    true[lane, j] -= 1
                    held = true[lane, j]
                    if held > 1:
                        continue
                    for k in range(starts[j], starts[j + 1]):
                        other = codes[k] >> 1
                        if held == 0:
                            change[lane, other] += weight
                            if other == atom:
                                change[lane, atom] += weight
                        elif x[lane, other] != (codes[k] & 1):
                            if weight == 0:
                                breaks[lane, other] += 1
                            else:
                                change[lane, other] -= weight
    return gained
