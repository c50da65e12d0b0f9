"""Bounds of our own: they never pass what a world loses, and prove warehouses where nobody else is asked."""

import random

import pytest

import lbm
from lbm.reasoning.budget import NO_LIMIT, SPENT
from lbm.reasoning.problem import Problem
from lbm.reasoning.search.lowered import lowered_of
from lbm.reasoning.search.valued import improve, valued_of


def warehouse(sites, stores, seed=0):
    """Return a problem of sites that are opened at a cost, and stores that are served from open ones."""
    rng = random.Random(seed)
    lines = [f"{rng.randint(50, 90)}: ~open{w}" for w in range(sites)]
    for s in range(stores):
        lines.append(f"exactly(1, {', '.join(f's{s}w{w}' for w in range(sites))})")
        for w in range(sites):
            lines += [f"s{s}w{w} -> open{w}", f"{rng.randint(1, 60)}: ~s{s}w{w}"]
    return lbm.Theory.parse("\n".join(lines))


@pytest.mark.parametrize("seed", range(5))
def test_bounds_never_pass_what_rc2_proves(seed):
    theory = warehouse(4, 6, seed)
    truth = lbm.best(theory, engines="rc2", seconds=60)
    assert truth.optimal
    problem = Problem(theory)
    valued = valued_of(problem)
    for lost in (int(truth.lost), int(truth.lost) + 50, 10_000):  # whatever is known when it begins
        lowered = lowered_of(valued, lost)
        bounds = [lowered.rise(SPENT) for _ in range(5)]
        bounds.append(lowered.rise(NO_LIMIT))
        assert bounds == sorted(bounds)
        assert 0 < bounds[-1] <= truth.lost
        assert not lowered.rising


def test_own_methods_prove_the_best_world_of_a_warehouse_problem():
    found = lbm.best(warehouse(12, 40), engines="own", seconds=20, seed=0)
    assert found.optimal
    assert (found.found_by, found.proved_by, found.bound) == ("own", "own", found.lost)


def test_weights_that_were_rounded_have_no_bound():
    theory = lbm.Theory.parse(
        f"exactly(1, a, b, c)\n{10**17 + 1}: ~a\n{10**17 + 7}: ~b\n3: ~c\na | b | d\n5: ~d"
    )
    valued = valued_of(Problem(theory))
    assert not valued.exact
    assert lowered_of(valued, 1) is None


def test_weights_are_counted_in_what_divides_them_all():
    theory = lbm.Theory.parse("exactly(1, a, b, c)\n3.5: ~a\n7: ~b\n10.5: ~c\na -> d\n14: ~d\nb -> d\n7: ~d")
    problem = Problem(theory)
    valued = valued_of(problem)
    least = min(
        problem.look(world).lost for number in range(3) for world in improve(valued, 0, number).worlds
    )
    assert 0 < lowered_of(valued, least).rise() <= least
