"""What parts measure on: formulae, instances and searches, against slow and certain answers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.knowledge.formula import holds
from lbm.trials.searches.conjunctions import (
    GRID,
    cover_by,
    expected_coverage,
    expected_draws,
    is_model,
    list_models,
    phi,
)
from lbm.trials.searches.instances import counter_of_broken, flat_colouring, instance, sr_pair
from lbm.trials.searches.solving import METHODS, solve_by

SAMPLERS = ("pool scheme", "block Gibbs", "collapsed", "i.i.d. draws")


def worlds(number):
    return list(product((False, True), repeat=number))


def false_clauses(clauses, world):
    return sum(not any(world[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)


@given(st.integers(1, 4), st.integers(1, 4))
def test_words_are_models_where_the_formula_holds(m, n):
    names = [f"x{i + 1}" for i in range(m)] + [f"y{j + 1}" for j in range(n)]
    every = worlds(m + n)
    words = np.array([int("".join("01"[v] for v in world), 2) << 64 - m - n for world in every], np.uint64)
    right = [bool(holds(phi(m, n), dict(zip(names, world, strict=True)))) for world in every]
    assert is_model(words, m, n).tolist() == right


@pytest.mark.parametrize("method", SAMPLERS)
def test_a_sampler_sees_every_model_and_depends_on_its_seed_alone(method):
    one, same, other = (cover_by(method, 4, 3, seed=seed) for seed in (5, 5, 6))
    assert one.found == one.models == 7
    assert one.curve.tolist() == same.curve.tolist()
    assert one.samples == same.samples
    assert one.curve.tolist() != other.curve.tolist()
    assert one.curve[-1].tolist() == [one.samples, 7]
    assert (np.diff(one.curve, axis=0) > 0).all()


def test_a_search_that_is_given_up_has_looked_at_no_more_than_its_limit():
    done = cover_by("block Gibbs", 20, 5, seed=0, limit=5_000)
    assert (done.samples, done.models) == (5_000, 31)
    assert done.found < 31
    assert len(done.after()) == sum(size < 5_000 for size in GRID)


def test_models_seen_after_so_many_samples_are_those_of_the_curve():
    done = cover_by("i.i.d. draws", 3, 5, seed=1)
    by_hand = [
        max((found for at, found in done.curve.tolist() if at <= size), default=0)
        for size in GRID
        if size < done.samples
    ]
    assert done.after() == by_hand


def test_independent_draws_need_what_the_coupon_collector_needs():
    runs = [cover_by("i.i.d. draws", 2, 4, seed=seed) for seed in range(200)]
    needed = np.array([run.samples for run in runs])
    error = needed.std(ddof=1) / np.sqrt(len(needed))
    assert abs(needed.mean() - expected_draws(15)) < 4 * error
    seen = np.array([run.after()[0] if run.after() else 15 for run in runs]) / 15  # after ten samples
    assert abs(seen.mean() - expected_coverage(15, 10)) < 4 * seen.std(ddof=1) / np.sqrt(len(seen))


@pytest.mark.parametrize("method", ["strict DNF", "PySAT"])
def test_every_model_is_listed_once(method):
    done = list_models(method, 5, 4)
    assert done.samples == done.found == done.models == 15


@pytest.mark.parametrize("search", [list_models, lambda method, m, n: cover_by(method, m, n, seed=0)])
def test_a_method_that_is_not_there_is_named(search):
    with pytest.raises(ValueError, match=r"expected a method among .*, got 'magic'"):
        search("magic", 2, 2)


# --- instances -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [3, 7])
def test_a_pair_differs_in_one_literal_and_only_one_of_it_has_a_model(n, seed):
    with_model, without = (list(clauses.rows()) for clauses in sr_pair(n, seed=seed))
    assert with_model[:-1] == without[:-1]
    changed = [a == b for a, b in zip(with_model[-1], without[-1], strict=True)]
    assert changed.count(False) == 1
    assert any(not false_clauses(with_model, world) for world in worlds(n))
    assert all(false_clauses(without, world) for world in worlds(n))
    for clause in without:
        assert len({abs(literal) for literal in clause}) == len(clause) >= 2
    assert list(sr_pair(n, seed=seed)[1].rows()) == without


def test_a_colouring_has_as_many_edges_as_wanted_and_a_model():
    clauses = list(flat_colouring(9, seed=2).rows())
    between = [clause for clause in clauses if len(clause) == 2 and (clause[0] - clause[1]) % 3 == 0]
    assert len(between) == 3 * round(2.395 * 9)
    edges = {((-a - 1) // 3, (-b - 1) // 3) for a, b in between}
    right = [c for c in product(range(3), repeat=9) if all(c[a] != c[b] for a, b in edges)]
    assert right
    for colours in right:
        assert not false_clauses(clauses, [colours[i // 3] == i % 3 for i in range(27)])
    with pytest.raises(ValueError, match="expected 9 nodes or more"):
        flat_colouring(6, seed=0)


def test_broken_clauses_are_those_that_are_false_one_by_one():
    clauses = flat_colouring(9, seed=0)
    rng = np.random.default_rng(0)
    some = rng.random((27, 20)) < 0.4
    by_hand = [false_clauses(list(clauses.rows()), world) for world in some.T.tolist()]
    assert counter_of_broken(clauses)(some).tolist() == by_hand


@pytest.mark.parametrize("method", METHODS)
def test_a_search_says_solved_only_where_there_is_a_model(method):
    with_model, without = sr_pair(5, seed=1)
    done = solve_by(method, with_model, sweeps=300, seed=0)
    assert (done.solved, done.broken) == (1, 0)
    none = solve_by(method, without, sweeps=20, seed=0)
    assert none.solved == 0
    assert none.broken is None if method == "CaDiCaL" else none.broken > 0
    assert none.sweeps == (None if method == "CaDiCaL" else 20)


def test_an_unknown_search_is_named():
    with pytest.raises(ValueError, match="expected a method among block Gibbs"):
        solve_by("magic", instance(1, [[1]]), sweeps=1, seed=0)
