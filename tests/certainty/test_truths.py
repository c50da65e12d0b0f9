"""The truths that chains are judged by agree with sums over every world, and with exact answers."""

import math
import random

import numpy as np
import pytest

import lbm
from tests.certainty.runs import few_plans, plans
from tests.certainty.theories import BENIGN, KINDS, make
from tests.certainty.truths import Counted, Eliminated, TooWide
from tests.oracles import truth, worlds


def listed(theory, query):
    """Return log Z and the probability of a query by looking at every world."""
    whole = asked = 0.0
    for world in worlds(theory.atoms):
        if theory.is_model(world):
            share = math.exp(theory.score(world))
            whole += share
            asked += share * truth(query, world)
    return math.log(whole), asked / whole


@pytest.mark.parametrize("seed", range(20))
def test_elimination_agrees_with_every_world_one_by_one(seed):
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(rng.randint(3, 9))]
    lines = [f"{rng.uniform(-2, 2):.3f}: {' | '.join(rng.sample(names, 3))}" for _ in range(6)]
    lines.append(f"exactly(1, {', '.join(names[:3])})")
    theory = lbm.Theory.parse("\n".join([f"atoms {', '.join(names)}", *lines]))
    query = lbm.parse(f"{names[0]} ^ {names[-1]}")
    log, chance = listed(theory, query)
    found = Eliminated(theory)
    assert found.log_partition() == pytest.approx(log, abs=1e-9)
    assert found.chance(query) == pytest.approx(chance, abs=1e-9)


def test_counts_agree_with_every_world_one_by_one():
    theory = lbm.Theory.parse(
        "2: a0 & a1 & a2\nb -> atleast(2, c0, c1, c2, c3)\n-1: atleast(3, a0, a1, a2, c0, c1, c2, c3)"
    )
    found = Counted(theory, (("a0", "a1", "a2"), ("b",), ("c0", "c1", "c2", "c3")))
    for query in ("a0", "b", "~b & atleast(1, a0, a1, a2)"):
        log, chance = listed(theory, lbm.parse(query))
        assert found.log_partition() == pytest.approx(log, abs=1e-9)
        assert found.chance(lbm.parse(query)) == pytest.approx(chance, abs=1e-9)


def test_a_theory_without_models_has_no_share_of_anything():
    assert Eliminated(lbm.Theory.parse("a\n~a")).log_partition() == -math.inf


def test_elimination_refuses_tables_that_are_too_wide():
    names = [f"x{i}" for i in range(40)]
    lines = [f"0.1: {a} <-> {b}" for a in names for b in names if a < b]
    with pytest.raises(TooWide):
        Eliminated(lbm.Theory.parse("\n".join(lines))).log_partition()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [0, 1])
def test_atoms_that_are_counted_together_are_alike(kind, number):
    case = make(kind, number)
    if not isinstance(case.truth, Counted):
        return
    rng = np.random.default_rng(number)
    for _ in range(5):
        world, other = {}, {}
        for block in case.truth.blocks:
            values = rng.random(len(block)) < rng.random()
            world.update(zip(block, values.tolist(), strict=True))
            other.update(zip(block, rng.permutation(values).tolist(), strict=True))
        assert case.theory.is_model(world) == case.theory.is_model(other)
        assert float(case.theory.score(world)) == pytest.approx(float(case.theory.score(other)), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_answers_agree_with_the_truth_where_there_are_any(kind):
    case = make(kind, 1)
    try:
        found = lbm.log_partition(case.theory, method="exact", seconds=1)
    except (lbm.errors.TooManyWorlds, lbm.errors.NoAnswer):
        return
    assert found == pytest.approx(case.truth.log_partition(), abs=1e-6)


def test_theories_have_20_to_200_atoms():
    for kind in KINDS:
        for number in range(3):
            assert 20 <= len(make(kind, number).theory.atoms) <= 200


def test_a_hundred_runs_of_the_suite_and_two_thousand_of_the_whole_are_all_different():
    few, many = few_plans(), plans(2000)
    assert len({plan.key for plan in few}) == 100
    assert len({plan.key for plan in many}) == 2000
    assert {plan.kind for plan in few} == {plan.kind for plan in many} == set(KINDS)
    assert sum(plan.kind in BENIGN for plan in few) >= 25


def test_a_number_makes_the_same_theory_again():
    first = str(make("trap", 3).theory)
    make.cache_clear()
    assert str(make("trap", 3).theory) == first
