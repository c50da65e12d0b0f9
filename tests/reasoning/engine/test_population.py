"""Populations have the distribution they were cooled for, and weigh it within their errors."""

import math
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded
from lbm.knowledge.parser import parse
from lbm.reasoning.engine import population as module
from lbm.reasoning.engine.lanes import start, weights_of
from lbm.reasoning.engine.network import LANES, network_of
from lbm.reasoning.engine.population import log_mean, next_beta, population_of, survivors
from tests.oracles import truth_table
from tests.reference.groups import NO_GROUPS
from tests.strategies import random_formula

SEED = 31
NAMES = tuple(f"x{i}" for i in range(1, 9))


def tables(names, hard, soft):
    """Return the score of every world and the hard formulae it breaks; the first atom changes fastest."""

    def true_in(formula):
        bits = truth_table(formula, names)
        return np.array([bits >> i & 1 for i in range(1 << len(names))], bool)

    score = sum((weight * true_in(formula) for formula, weight in soft), np.zeros(1 << len(names)))
    broken = sum((~true_in(formula) for formula in hard), np.zeros(1 << len(names), int))
    return score, broken


def log_sum(values):
    return float(np.logaddexp.reduce(values))


def generated(seed):
    """Return hard and soft formulae of every connective that leave some models."""
    rng = random.Random(seed)
    hard = []
    while len(hard) < 2:
        formula = random_formula(rng, max_atoms=8, max_nodes=15)
        if tables(NAMES, [*hard, formula], [])[1].min() == 0:
            hard.append(formula)
    return hard, [
        (random_formula(rng, max_atoms=8, max_nodes=12), rng.choice([-3, -1, 1, 2, 4])) for _ in range(6)
    ]


def several(network, weights, number, blocks, **options):
    return [
        population_of(network, weights, seed=SEED, blocks=blocks, lane=LANES * blocks * k, **options)
        for k in range(number)
    ]


# --- the distribution and its weight ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_generated_theories_are_weighed_within_four_errors(seed):
    hard, soft = generated(seed)
    penalty = 2  # some states break hard formulae, and must not count
    network = network_of(NAMES, hard, soft)
    score, broken = tables(NAMES, hard, soft)
    found = several(network, weights_of(network, penalty), 16, 2, sweeps=4)
    assert any(each.broken.any() for each in found)
    log_z, error = log_mean([each.log_z for each in found])
    assert 0 < error < 0.1
    assert abs(log_z - log_sum(score - penalty * broken)) <= 4 * error
    log_partition, error = log_mean([each.log_partition for each in found])
    assert 0 < error < 0.2
    assert abs(log_partition - log_sum(score[broken == 0])) <= 4 * error

    worlds = np.arange(256)[None, :] >> np.arange(8)[:, None] & 1
    exact = worlds @ np.where(broken == 0, np.exp(score - log_sum(score[broken == 0])), 0.0)
    kept = np.array([np.mean(each.broken == 0) for each in found])
    means = np.array([np.mean(each.x * (each.broken == 0), axis=1) for each in found])
    apart = means - exact * kept[:, None]
    error = apart.std(axis=0, ddof=1) / math.sqrt(len(found)) / kept.mean()
    assert (np.abs(apart.mean(axis=0) / kept.mean()) <= 4 * np.maximum(error, 1e-3)).all()


def test_wells_are_populated_by_their_weight():
    """All atoms equal: all true is e² times as heavy as all false. No chain goes from one to the other."""
    hard = [parse(f"{a} <-> x8") for a in NAMES[:-1]]
    network = network_of(NAMES, hard, [(parse("x1"), 2)])
    found = several(network, weights_of(network, 10), 12, 2, sweeps=4, groups=NO_GROUPS)
    assert all(len(each.betas) > 5 for each in found)
    true = np.array([np.mean(each.x[0][each.broken == 0]) for each in found])
    assert abs(true.mean() - np.e**2 / (1 + np.e**2)) <= 4 * true.std(ddof=1) / math.sqrt(12)
    log_partition, error = log_mean([each.log_partition for each in found])
    assert abs(log_partition - math.log(1 + np.e**2)) <= 4 * error


def test_states_come_with_what_the_formulae_say_of_them():
    hard, soft = generated(5)
    network = network_of(NAMES, hard, soft)
    score, broken = tables(NAMES, hard, soft)
    found = population_of(network, weights_of(network, 2), seed=SEED, blocks=3)
    assert found.x.shape == (8, 3 * LANES)
    number = (1 << np.arange(8)) @ found.x.astype(int)
    assert (found.broken == broken[number]).all()
    assert (found.score == score[number]).all()
    assert found.betas[0] == 0
    assert found.betas[-1] == 1
    assert (np.diff(found.betas) > 0).all()
    assert found.log_partition == pytest.approx(found.log_z + math.log(np.mean(found.broken == 0)))


def test_without_formulae_every_world_counts_once():
    network = network_of(NAMES, [], [])
    found = population_of(network, weights_of(network, 1), seed=SEED, blocks=2)
    assert found.log_z == found.log_partition == pytest.approx(8 * math.log(2), rel=1e-15)
    assert found.betas.tolist() == [0, 1]
    assert found.families.tolist() == list(range(2 * LANES))
    assert found.effective_size == 2 * LANES


def test_a_theory_that_no_world_keeps_weighs_nothing():
    hard = [parse("x1 | x2"), parse("~x1"), parse("~x2")]
    network = network_of(NAMES[:2], hard, [])
    found = population_of(network, weights_of(network, 1), seed=SEED, blocks=1)
    assert found.log_partition == -math.inf
    assert found.log_z == pytest.approx(log_sum(-tables(NAMES[:2], hard, [])[1]), abs=0.5)
    assert log_mean([found.log_partition] * 2)[0] == -math.inf


def test_weights_over_eighteen_orders_of_magnitude_are_weighed():
    """All but the largest vanish beside it, and all but the smallest decide."""
    soft = [(parse("x1 | x2"), 1e9), (parse("x1 <-> x3"), 1.0), (parse("x2 ^ x4"), 1e-9)]
    network = network_of(NAMES[:4], [], soft)
    found = population_of(network, weights_of(network, 1), seed=SEED, blocks=1, groups=NO_GROUPS)
    assert found.x[:2].any(axis=0).all()
    assert found.log_z == pytest.approx(log_sum(tables(NAMES[:4], [], soft)[0]), rel=1e-9)


# --- families --------------------------------------------------------------------------------------


def test_effective_size_is_that_of_the_families():
    hard, soft = generated(2)
    network = network_of(NAMES, hard, soft)
    found = population_of(network, weights_of(network, 3), seed=SEED, blocks=2)
    sizes = [found.families.tolist().count(family) for family in set(found.families.tolist())]
    assert max(sizes) > 1
    assert found.effective_size == pytest.approx((2 * LANES) ** 2 / sum(size**2 for size in sizes))


# --- steps -----------------------------------------------------------------------------------------

log_weights = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40).map(np.array)


@given(log_weights, st.floats(0, 0.999), st.sampled_from([0.5, 0.85, 0.95]))
def test_steps_are_as_long_as_their_share_allows(log_weight, beta, share):
    after = next_beta(log_weight, beta, share)
    assert beta < after <= 1

    def relative(step):
        part = [math.exp(step * (each - max(log_weight))) for each in log_weight]
        return sum(part) ** 2 / (len(part) * sum(each**2 for each in part))

    slack = 2 * math.ulp(beta) * np.ptp(log_weight)  # what β itself cannot tell
    if after < 1:
        assert relative(after - beta) == pytest.approx(share, abs=1e-6 + slack)
    else:
        assert relative(1 - beta) >= share - 1e-9


@given(
    st.lists(st.floats(0, 1e3), min_size=1, max_size=50), st.floats(0, 1, exclude_min=True, exclude_max=True)
)
@example([1.0], math.nextafter(1, 0))
def test_survivors_have_the_copies_that_their_weights_ask_for(weights, u):
    weights = np.array([*weights, 1.0])
    number = len(weights)
    parents = survivors(weights, u)
    copies = np.bincount(parents, minlength=number)
    wanted = number * weights / weights.sum()
    assert parents.shape == (number,)
    assert (np.abs(copies - wanted) < 1 + 1e-9).all()
    assert (parents[copies > 0] == np.flatnonzero(copies)).all()


def test_survivors_have_as_many_copies_as_they_weigh_on_average():
    weights = np.random.default_rng(1).exponential(size=23)
    trials = 1000
    copies = sum(
        np.bincount(survivors(weights, (k + 0.5) / trials), minlength=23).astype(float) for k in range(trials)
    )
    np.testing.assert_allclose(copies / trials, 23 * weights / weights.sum(), atol=2 / trials)


def test_copies_carry_their_counts_and_log_weights_along():
    network = network_of(NAMES, *generated(3))
    crowd = module._Blocks(network, weights_of(network, 2), SEED, 0, 3, NO_GROUPS)
    before = np.concatenate([lanes.x for lanes in crowd.blocks], axis=1)
    parents = survivors(np.random.default_rng(2).exponential(size=3 * LANES), 0.3)
    crowd.renew(parents)
    crowd.sweep(0.5, 1, lambda: None)
    crowd.renew(parents)
    for lanes in crowd.blocks:
        fresh = start(network, lanes.weights, lanes.x, seed=0)
        assert (fresh.counts == lanes.counts).all()
        assert (fresh.total == lanes.total).all()
    other = module._Blocks(network, weights_of(network, 2), SEED, 0, 3, NO_GROUPS)
    other.renew(parents)
    assert (np.concatenate([lanes.x for lanes in other.blocks], axis=1) == before[:, parents]).all()


# --- several populations, seeds and options --------------------------------------------------------


def test_sums_are_averaged_and_not_their_logs():
    values = [1.0, 2.0, 6.0]
    error = np.std(values, ddof=1) / math.sqrt(3) / 3
    for more in (0, 900):
        found = log_mean([math.log(value) + more for value in values])
        assert found == pytest.approx((math.log(3) + more, error))
    single, unknown = log_mean([math.log(2)])
    assert single == math.log(2)
    assert math.isnan(unknown)
    with pytest.raises(ValueError, match="got none"):
        log_mean([])


def test_populations_depend_on_seed_and_lane_only():
    hard, soft = generated(2)
    network = network_of(NAMES, hard, soft)
    weights = weights_of(network, 3)
    once = population_of(network, weights, seed=SEED, blocks=2)
    again = population_of(network, weights, seed=SEED, blocks=2)
    assert (once.x == again.x).all()
    assert (once.families == again.families).all()
    assert once.log_z == again.log_z
    for options in ({"seed": SEED + 1}, {"seed": SEED, "lane": 128}):
        other = population_of(network, weights, blocks=2, **options)
        assert other.log_z != once.log_z


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"blocks": 0}, "from 1 up, got blocks=0"),
        ({"sweeps": 0}, "sweeps=0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    network = network_of(NAMES[:2], [], [])
    with pytest.raises(ValueError, match=said):
        population_of(network, weights_of(network, 1), seed=1, **{"blocks": 1, **options})


def test_too_many_steps_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(module, "MAX_STEPS", 3)
    network = network_of(NAMES, [parse("exactly(1, x1, x2, x3, x4)")], [])
    with pytest.raises(LimitExceeded, match=r"after 3 steps .* more blocks") as caught:
        population_of(network, weights_of(network, 20), seed=1, blocks=1)
    assert caught.value.limit == "MAX_STEPS"
