"""Weighted clauses that can all be kept: found without looking at weights, and given up without hope."""

import numpy as np
import pytest

import lbm
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import NO_LIMIT, SPENT
from lbm.reasoning.problem import Problem
from lbm.reasoning.search import lossless
from lbm.reasoning.search.lossless import lossless_of


def clauses_of(atoms, number, *, kept, seed=0):
    """Return random clauses of three literals with weights; ``kept``: a hidden world keeps all of them."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(atoms + 1) < 0.5
    rows = []
    while len(rows) < number:
        row = rng.choice(np.arange(1, atoms + 1), 3, replace=False) * rng.choice((-1, 1), 3)
        if not kept or (hidden[np.abs(row)] == (row > 0)).any():
            rows.append(row)
    literals = np.array(rows, np.int32)
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    return (
        literals,
        Clauses(names, literals.ravel(), np.arange(0, 3 * number + 1, 3)),
        rng.integers(1, 100, number),
    )


def false_in(literals, world):
    return ~(np.asarray(world)[np.abs(literals) - 1] == (literals > 0)).any(axis=1)


@pytest.mark.parametrize(("atoms", "number"), [(10, 30), (65, 260), (129, 520), (1_000, 4_000)])
@pytest.mark.parametrize("seed", range(3))
def test_a_walk_ends_in_a_world_that_keeps_every_clause(atoms, number, seed):
    literals, clauses, weights = clauses_of(atoms, number, kept=True, seed=seed)
    packed = Problem(lbm.Theory.from_clauses(clauses, weights)).weighted_clauses()
    walker = lossless_of(packed, seed)
    for _ in range(50):
        if (world := walker.walk(SPENT)) is not None:
            break
    assert not false_in(literals, world).any()
    assert walker.walk(NO_LIMIT) is None  # once is enough


@pytest.mark.parametrize("atoms", [65, 129, 1_000])
def test_what_is_far_from_it_is_given_up_at_once(atoms):
    _, clauses, weights = clauses_of(atoms, 7 * atoms, kept=False)
    walker = lossless_of(Problem(lbm.Theory.from_clauses(clauses, weights)).weighted_clauses(), 0)
    assert walker.walk(NO_LIMIT) is None
    assert not walker.hopeful


def test_only_what_is_soft_and_not_too_large_is_walked_over(monkeypatch):
    hard = Problem(lbm.Theory.parse("a | b\n~a")).weighted_clauses()
    soft = Problem(lbm.Theory.parse("a | b\n1: ~a")).weighted_clauses()
    assert lossless_of(hard, 0) is None
    assert lossless_of(soft, 0) is not None
    monkeypatch.setattr(lossless, "MAX_LITERALS", 2)
    assert lossless_of(soft, 0) is None


@pytest.mark.parametrize(("atoms", "number"), [(250, 1_030), (1_000, 4_000)])
def test_best_finds_and_proves_that_nothing_need_be_lost(atoms, number):
    literals, clauses, weights = clauses_of(atoms, number, kept=True, seed=7)
    found = lbm.best(lbm.Theory.from_clauses(clauses, weights), seconds=20, seed=0, engines="own")
    assert (found.lost, found.bound, found.optimal) == (0, 0, True)
    assert not false_in(literals, list(found.world.values())).any()


def test_what_somebody_has_proven_to_lose_something_is_not_walked_over(monkeypatch):
    from lbm.reasoning.search import hearing, routes

    _, clauses, weights = clauses_of(100, 430, kept=True)
    monkeypatch.setattr(hearing.Hearing, "bound", property(lambda _: 1))
    monkeypatch.setattr(lossless, "lossless_of", lambda *_: pytest.fail("it was walked over"))
    search = routes.Search(Problem(lbm.Theory.from_clauses(clauses, weights)), NO_LIMIT)
    search._lose_nothing(1.0)
