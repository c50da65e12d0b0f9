"""The best worlds exactly, where a theory is small or falls apart: all worlds at once, or part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from lbm.arrays import Bools
from lbm.errors import TooManyWorlds
from lbm.knowledge.clauses import Clauses, is_true, propagated, under
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, split_of
from lbm.reasoning.exact.buckets import WIDTH, order
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import no_worlds
from lbm.reasoning.search import standing
from lbm.reasoning.search.engines import OWN
from lbm.reasoning.search.standing import Standing

MAX_EXACT: Final = 5_000
"""Formulae and atoms of a theory that is tried exactly."""

_QUICK: Final = 16  # atoms of a component whose worlds may be enumerated; past it tables must be narrow
_QUICK_LONG: Final = 12  # likewise, where weights do not fit 64 bits


def exact_standing(problem: Problem, top: int, every: bool, budget: Budget) -> Standing | None:
    """Return the best worlds of a theory that is small, or falls apart into small parts; None: it is not."""
    theory, given = problem.theory, problem.evidence
    if max(len(theory), len(theory.atoms)) > MAX_EXACT:
        return None
    if theory.clauses is not None and len(theory.atoms) <= WIDTH:
        clauses = problem.weighted_clauses()
        if clauses is not None:
            return _enumerated(problem, clauses, top, every, budget)
    if _is_wide(problem, budget):
        return None
    # Not before RC2 is at work.
    from lbm.reasoning.exact.questions import Exact
    from lbm.reasoning.exact.whole import How

    limit = standing.MAX_WORLDS if every else top

    exact = Exact(theory, How(_method(problem, budget), problem.known, budget))
    try:
        _, models = exact.best_worlds(given, limit)
        rows, complete = models.array, every and models.complete
        if top > len(rows):
            if exact.count(given) > standing.MAX_WORLDS:
                rows = exact.top_worlds(top, given)
            else:  # then the first of those that are equally good can be told
                rows = exact.models(given).array
                losses = problem.losses(rows)
                rows = rows[sorted(range(len(rows)), key=losses.__getitem__)[:top]]
    except TooManyWorlds:
        return None
    return _proven(problem, rows, complete)


def _enumerated(problem: Problem, clauses: Clauses, top: int, every: bool, budget: Budget) -> Standing | None:
    """Return the best worlds of clauses over a few atoms, all worlds at once; None: too many are asked for.

    The world x has the place x[0], x[1], ..., so that worlds come in lexicographic order.
    """
    atoms = len(problem.atoms)
    small = clauses.weights.sum() < 1 << 31
    lost, model = np.zeros((2,) * atoms, np.int32 if small else np.int64), np.ones((2,) * atoms, bool)
    for row, weight in zip(clauses.rows(), clauses.weights.tolist(), strict=True):
        budget.tick()
        false: list[int | slice] = [slice(None)] * atoms  # the worlds in which the clause is
        for literal in row:
            false[abs(literal) - 1] = int(literal < 0)
        if any(-literal in row for literal in row):
            continue
        if weight:
            lost[tuple(false)] += weight
        else:
            model[tuple(false)] = False
    if not model.any():
        raise no_worlds(problem.theory, problem.evidence, budget)
    best = np.flatnonzero(model & (lost == lost[model].min()))
    limit = standing.MAX_WORLDS if every else top
    if top > len(best):
        best = np.flatnonzero(model)
        if len(best) > standing.MAX_WORLDS:
            return None
        best = best[np.argsort(lost.ravel()[best], kind="stable")]
    values = (best[:limit, None] >> np.arange(atoms)[::-1]) & 1 == 1
    return _proven(problem, values, every and len(best) <= limit)


def _proven(problem: Problem, rows: Bools, complete: bool) -> Standing:
    """Return the best worlds as exact methods found them, shape (worlds, atoms)."""
    worlds = tuple(problem.look(row) for row in rows.tolist())
    assert all(world.keeps for world in worlds)
    return Standing(worlds, worlds[0].lost, optimal=True, method="exact", complete=complete, proved_by=OWN)


def _method(problem: Problem, budget: Budget) -> str:
    """Return the method by which exact answers are quick, or quickly refused."""
    split = split_of(problem.theory, problem.evidence, problem.known, budget)
    components = () if split is None else split.components
    return "auto" if all(map(_is_quick, components)) else "elimination"


def _is_wide(problem: Problem, budget: Budget) -> bool:
    """Return whether clauses are too entangled for exact answers, before formulae are looked at."""
    if len(problem.theory.atoms) <= WIDTH:
        return False
    clauses = problem.weighted_clauses()
    if clauses is None:
        return False
    rows = tuple(_open(clauses, budget))
    names = {name: i for i, name in enumerate({name: None for row in rows for name in row})}
    scopes = tuple({tuple([names[name] for name in row]): None for row in rows})
    return len(names) > WIDTH and order(scopes, len(names), frozenset(), False, budget)[1] > WIDTH


def _open(clauses: Clauses, budget: Budget) -> Iterator[tuple[int, ...]]:
    """Yield the atoms of each clause that hard units, propagated, leave open; nothing where they clash."""
    known = propagated(list(clauses.where(clauses.weights == 0).rows()), budget.tick)
    if known is None:
        return
    fixed, _ = known
    for row in clauses.rows():
        if not is_true(row, fixed):
            yield tuple(dict.fromkeys(map(abs, under(row, fixed))))


def _is_quick(component: Component) -> bool:
    return len(component.atoms) <= (_QUICK if component.numbers is np.int64 else _QUICK_LONG)
