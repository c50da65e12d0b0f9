"""Effective sizes and R-hats are ArviZ's, intervals cover as often as they say, "converged" is believable."""

import math
from fractions import Fraction
from math import comb, inf, isnan, nan
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import rankdata

from lbm.reasoning.sampling.diagnostics import (
    CHAINS,
    ESS,
    R_HAT,
    Estimate,
    effective_size,
    r_hat,
    wilson,
)
from tests.reference.intervals import jeffreys
from tests.reference.whole_series import estimate, estimates

# --- series to look at -----------------------------------------------------------------------------


def autoregressive(rng, shape, correlation):
    """Return normal draws whose lag-one autocorrelation is given, started at their own distribution."""
    draws = rng.normal(size=shape)
    for t in range(1, shape[-1]):
        draws[..., t] = correlation * draws[..., t - 1] + math.sqrt(1 - correlation**2) * draws[..., t]
    return draws


SERIES = {
    "independent": lambda rng, shape: rng.normal(size=shape),
    "slow": lambda rng, shape: autoregressive(rng, shape, 0.9),
    "antithetic": lambda rng, shape: autoregressive(rng, shape, -0.8),
    "walk": lambda rng, shape: np.cumsum(rng.normal(size=shape), axis=-1),
    "rare truth": lambda rng, shape: rng.random(shape) < 0.1,
    "even truth": lambda rng, shape: rng.random(shape) < 0.5,
    "sticky truth": lambda rng, shape: autoregressive(rng, shape, 0.95) > 0.5,
    "few values": lambda rng, shape: rng.integers(-1, 2, size=shape),
    "heavy tails": lambda rng, shape: rng.standard_cauchy(size=shape),
    "apart": lambda rng, shape: rng.normal(size=shape) + np.arange(shape[0])[:, None],
    "wider": lambda rng, shape: rng.normal(size=shape) * (1 + np.arange(shape[0])[:, None]),
    "drifting": lambda rng, shape: rng.normal(size=shape) + np.linspace(0, 2, shape[1]),
}
SHAPES = [
    (1, 4),
    (2, 4),
    (4, 5),
    (3, 6),
    (2, 7),
    (4, 8),
    (5, 9),
    (4, 10),
    (3, 14),
    (2, 33),
    (4, 100),
    (1, 257),
    (8, 1000),
]


def same(found, expected):
    if expected > 1e12:  # infinite, but for rounding
        return found > 1e12
    return found == pytest.approx(expected, rel=1e-10, nan_ok=True)


@pytest.fixture
def quiet():
    """ArviZ divides by the variance of constant chains."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yield


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", SERIES)
def test_effective_size_and_r_hat_are_those_of_arviz(name, shape, quiet):
    rng = np.random.default_rng([*name.encode(), *shape])
    for _ in range(5):
        draws = SERIES[name](rng, shape)
        assert same(effective_size(draws), float(array_stats.ess(draws, method="bulk")))
        assert same(effective_size(draws, kind="mean"), float(array_stats.ess(draws, method="mean")))
        assert same(r_hat(draws), float(array_stats.rhat(draws, method="rank")))


@pytest.mark.parametrize("shape", [(2, 4), (4, 7), (3, 100)], ids=str)
def test_constant_draws_are_judged_as_arviz_judges_them(shape, quiet):
    draws = np.full(shape, 0.3)
    for kind in ("bulk", "mean"):
        expected = shape[0] * (shape[1] // 2) * 2  # the middle one of an odd number of draws is left out
        assert effective_size(draws, kind=kind) == float(array_stats.ess(draws, method=kind)) == expected
    assert isnan(r_hat(draws))
    assert isnan(float(array_stats.rhat(draws)))


def test_chains_that_never_move_but_differ_have_a_boundless_r_hat_and_next_to_no_effective_size(quiet):
    draws = np.repeat(np.arange(4.0), 100).reshape(4, 100)
    assert r_hat(draws) > 1e6
    assert float(array_stats.rhat(draws)) > 1e6
    for kind in ("bulk", "mean"):
        assert same(effective_size(draws, kind=kind), float(array_stats.ess(draws, method=kind)))
        assert effective_size(draws, kind=kind) < 8


def test_many_series_at_once_give_what_each_gives_alone():
    rng = np.random.default_rng(3)
    draws = np.stack([SERIES[name](rng, (4, 101)).astype(float) for name in sorted(SERIES)])
    draws = np.concatenate([draws, np.ones((1, 4, 101)), np.full((1, 4, 101), nan)]).reshape(2, 7, 4, 101)
    for question in (effective_size, lambda each: effective_size(each, kind="mean"), r_hat):
        alone = [[question(draws[i, j]) for j in range(7)] for i in range(2)]
        assert all(type(found) is float for row in alone for found in row)
        np.testing.assert_allclose(question(draws), alone, rtol=1e-12)


@pytest.mark.parametrize("together", [1, 2, 4])
def test_chains_taken_together_have_the_r_hat_of_their_halves_one_after_the_other(together):
    draws = np.random.default_rng(5).normal(size=(16, 100)).cumsum(axis=1)
    halves = [draws[k : k + together, part] for part in (slice(50), slice(50, None))
              for k in range(0, 16, together)]  # fmt: skip
    pieces = np.stack([half.ravel() for half in halves])
    assert np.isclose(r_hat(draws, together=together), _unsplit_r_hat(pieces), rtol=1e-12)


def _unsplit_r_hat(draws):
    """Rank-normalised and folded, of chains as they are."""
    found = []
    for values in (draws, np.abs(draws - np.median(draws))):
        ranks = rankdata(values).reshape(values.shape)
        scores = np.vectorize(NormalDist().inv_cdf)((ranks - 3 / 8) / (values.size + 1 / 4))
        n = values.shape[1]
        found.append(
            ((scores.mean(axis=1).var(ddof=1) / scores.var(axis=1, ddof=1).mean()) + (n - 1) / n) ** 0.5
        )
    return max(found)


@pytest.mark.parametrize("stay", [1.0, 0.9999])
def test_chains_taken_together_still_tell_where_those_of_one_start_stay(stay):
    """Four chains of 64 stay where they began, or nearly: the others never come there."""
    rng = np.random.default_rng(7)
    draws = rng.normal(size=(64, 400))
    draws[8:12] += 5 * (rng.random((4, 400)) < stay)
    assert r_hat(draws, together=4) > 1.1
    assert r_hat(rng.normal(size=(64, 400)), together=4) < 1.01


@pytest.mark.parametrize("shape", [(4, 3), (4, 0), (0, 10)], ids=str)
def test_what_cannot_be_known_is_nan(shape):
    assert isnan(effective_size(np.zeros(shape)))
    assert isnan(r_hat(np.zeros(shape)))


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_draw_that_is_not_finite_leaves_nothing_known(value):
    draws = np.random.default_rng(0).normal(size=(4, 20))
    draws[2, 3] = value
    assert isnan(effective_size(draws))
    assert isnan(effective_size(draws, kind="mean"))
    assert isnan(r_hat(draws))


def test_one_chain_has_an_effective_size_and_no_r_hat():
    draws = np.random.default_rng(0).normal(size=(1, 400))
    assert 200 < effective_size(draws) < 800
    assert isnan(r_hat(draws))


def test_mean_effective_size_gives_the_standard_error_that_repetition_shows():
    """The variance of 2,000 means is var/ESS, within four standard errors of a variance."""
    draws = autoregressive(np.random.default_rng(4), (2000, 4, 500), 0.7)
    means = draws.mean(axis=(1, 2))
    claimed = np.mean(draws.var(axis=(1, 2)) / effective_size(draws, kind="mean"))
    assert claimed == pytest.approx(means.var(), rel=4 * math.sqrt(2 / 2000))


# --- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(
    ("successes", "trials"), [(1, 2), (3, 10), (0.7, 7.3), (12.5, 400.1), (1e-9, 50), (999, 1000)]
)
def test_wilson_bounds_are_as_far_from_the_share_as_their_own_standard_error_allows(successes, trials, level):
    z = NormalDist().inv_cdf((1 + level) / 2)
    low, high = wilson(successes, trials, level=level)
    assert 0 <= low < successes / trials < high <= 1
    for bound in (low, high):
        distance = (successes / trials - bound) ** 2
        assert distance == pytest.approx(z * z * bound * (1 - bound) / trials, rel=1e-6, abs=1e-18)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(
    ("successes", "trials"), [(1, 2), (3, 10), (0.7, 7.3), (12.5, 400.1), (0.001, 50), (999, 1000)]
)
def test_jeffreys_bounds_leave_equal_tails_of_the_beta_distribution(successes, trials, level):
    low, high = jeffreys(successes, trials, level=level)
    a, b = successes + 0.5, trials - successes + 0.5
    assert 0 < low < high < 1
    assert float(mpmath.betainc(a, b, 0, low, regularized=True)) == pytest.approx((1 - level) / 2, rel=1e-8)
    assert float(mpmath.betainc(a, b, high, 1, regularized=True)) == pytest.approx((1 - level) / 2, rel=1e-8)


@pytest.mark.parametrize("n", [1, 10, 37.5])
def test_intervals_have_the_values_that_can_be_worked_out_by_hand(n):
    """Wilson at an end and in the middle; Jeffreys for one failure: Beta(½, 3/2) has a closed form."""
    z = 1.959963984540054
    assert wilson(0, n) == pytest.approx((0, z**2 / (n + z**2)))
    assert wilson(n / 2, n) == pytest.approx(
        (0.5 - z / (2 * (n + z**2) ** 0.5), 0.5 + z / (2 * (n + z**2) ** 0.5))
    )
    high = jeffreys(0, 1)[1]
    below = 2 / math.pi * (math.asin(math.sqrt(high)) + math.sqrt(high * (1 - high)))
    assert below == pytest.approx(0.975)


@pytest.mark.parametrize("interval", [wilson, jeffreys])
@pytest.mark.parametrize("trials", [0.3, 1, 7, 1234.5, 1e12])
def test_certain_shares_end_at_exactly_0_and_1_and_mirror_each_other(interval, trials):
    low, high = interval(0, trials)
    assert low == 0.0 < high < 1
    assert interval(trials, trials)[1] == 1.0
    assert interval(trials, trials)[0] == pytest.approx(1 - high)
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("interval", [wilson, jeffreys])
@pytest.mark.parametrize("n", [5, 10, 20, 50])
def test_intervals_cover_95_percent_on_average_over_p(interval, n):
    """P(low ≤ p ≤ high) of binomial counts, in exact binomial sums, averaged over 1,000 values of p."""
    bounds = [[Fraction(bound) for bound in interval(k, n)] for k in range(n + 1)]
    total = Fraction(0)
    for step in range(1000):
        p = Fraction(2 * step + 1, 2000)
        total += sum(
            comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if bounds[k][0] <= p <= bounds[k][1]
        )
    assert 0.945 <= float(total / 1000) <= 0.96


@pytest.mark.parametrize("interval", [wilson, jeffreys])
@pytest.mark.parametrize("wrong", [(-1, 3), (4, 3), (nan, 3), (1, nan), (1, inf)])
def test_impossible_counts_are_refused(interval, wrong):
    with pytest.raises(ValueError, match="expected 0 <= successes <= trials"):
        interval(*wrong)


@pytest.mark.parametrize("level", [0, 1, -0.5, nan])
def test_impossible_levels_are_refused(level):
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        wilson(1, 2, level=level)


# --- estimates -------------------------------------------------------------------------------------


def states(rng, p, kept, stay, shape):
    """Return true and valid, shape (..., chains, draws), of chains that stay or draw their state anew.

    A state is true with probability p and, apart from that, valid with probability kept.
    """
    *lanes, draws = shape
    fresh = np.stack([rng.random(shape) < p, rng.random(shape) < kept])
    moves = rng.random(shape) >= stay
    moves[..., 0] = True
    latest = np.maximum.accumulate(np.where(moves, np.arange(draws), 0), axis=-1)
    return np.take_along_axis(fresh, np.broadcast_to(latest, (2, *lanes, draws)), axis=-1)


@pytest.mark.parametrize(
    ("p", "kept", "stay", "draws"),
    [
        (0.3, 1, 0.6, 2000),
        (0.05, 1, 0.3, 2000),
        (0.5, 1, 0.9, 8000),
        (0.02, 1, 0, 1000),
        (0.3, 0.4, 0.6, 2500),
    ],
)
def test_converged_intervals_cover_the_truth_in_92_to_98_of_100_runs(p, kept, stay, draws):
    rng = np.random.default_rng([int(1000 * p), draws])
    found = []
    for _ in range(10):
        true, valid = states(rng, p, kept, stay, (50, CHAINS, draws))
        found += [estimate(*pair) for pair in zip(true, valid, strict=True)]
    converged = [each for each in found if each.converged]
    assert len(converged) > 400
    assert 0.92 <= np.mean([each.low <= p <= each.high for each in converged]) <= 0.98


def test_effective_size_of_an_estimate_is_that_of_the_chains():
    """Chains that stay with probability s have τ = (1 + s)/(1 - s); of independent states kept ones count."""
    rng = np.random.default_rng(6)
    slow = [estimate(*states(rng, 0.3, 1, 0.6, (8, 5000))).effective_size for _ in range(40)]
    assert np.mean(slow) == pytest.approx(40000 / 4, rel=0.05)
    fresh = [estimate(*states(rng, 0.3, 0.25, 0, (8, 5000))).effective_size for _ in range(40)]
    assert 8500 < np.mean(fresh) <= 10300


def test_an_estimate_is_the_share_of_valid_states_and_counts_them():
    true, valid = states(np.random.default_rng(7), 0.4, 0.3, 0.5, (6, 900))
    found = estimate(true, valid)
    hits = [bool(t) for t, v in zip(true.ravel(), valid.ravel(), strict=True) if v]
    assert found.probability == hits.count(True) / len(hits)
    assert found.kept == len(hits) / 5400
    assert (found.chains, found.draws) == (6, 900)
    assert found.effective_size <= len(hits)
    assert (found.low, found.high) == wilson(found.probability * found.effective_size, found.effective_size)


def test_several_queries_are_judged_as_each_is_alone():
    rng = np.random.default_rng(9)
    true, valid = (
        rng.random((3, 6, 300)) < np.array([0.1, 0.5, 1.1])[:, None, None],
        rng.random((6, 300)) < 0.7,
    )
    also = np.stack([autoregressive(rng, (6, 300), 0.5), np.ones((6, 300))])
    assert estimates(true, valid, also=also) == [estimate(query, valid, also=also) for query in true]
    assert estimates(true[:0], valid) == []


def test_discarded_states_say_nothing_about_the_query():
    rng = np.random.default_rng(8)
    true, valid = states(rng, 0.4, 0.3, 0.5, (4, 900))
    assert estimate(true, valid) == estimate(true ^ (~valid & (rng.random(true.shape) < 0.5)), valid)


@pytest.mark.parametrize("leak", [0, 0.01])
def test_chains_stuck_in_two_wells_are_not_converged(leak):
    rng = np.random.default_rng(9)
    well = np.arange(4)[:, None] % 2 == 0
    true = well ^ (rng.random((4, 5000)) < leak)
    found = estimate(true, np.ones_like(true))
    assert not found.converged
    assert found.r_hat > 1.5
    assert found.effective_size < 20


@pytest.mark.parametrize("chains", [1, 2, 3])
def test_fewer_than_four_chains_are_never_converged(chains):
    true, valid = states(np.random.default_rng(10), 0.4, 1, 0, (chains, 20_000))
    assert not estimate(true, valid).converged
    assert estimate(*states(np.random.default_rng(10), 0.4, 1, 0, (4, 20_000))).converged


def test_few_draws_are_not_converged_however_well_they_agree():
    rng = np.random.default_rng(11)
    found = [estimate(*states(rng, 0.4, 1, 0, (4, 60))) for _ in range(50)]
    assert not any(each.converged for each in found)
    assert np.mean([each.effective_size for each in found]) > 150


def test_no_valid_state_is_no_answer():
    found = estimate(np.ones((4, 500), bool), np.zeros((4, 500), bool))
    assert isnan(found.probability)
    assert isnan(found.r_hat)
    assert (found.low, found.high, found.effective_size, found.converged) == (0.0, 1.0, 0.0, False)
    assert (found.chains, found.draws, found.kept) == (4, 500, 0.0)


@pytest.mark.parametrize("value", [False, True])
def test_states_that_all_agree_are_believed_only_for_what_else_moves(value):
    rng = np.random.default_rng(12)
    true, valid = np.full((4, 2000), value), rng.random((4, 2000)) < 0.5
    score = autoregressive(rng, (4, 2000), 0.5)
    still = np.ones((4, 2000))

    alone = estimate(true, valid, also=still[None])
    assert (alone.probability, alone.low, alone.high, alone.converged) == (float(value), 0.0, 1.0, False)
    assert isnan(alone.effective_size)
    assert replaced(estimate(true, valid)) == replaced(alone)

    found = estimate(true, valid, also=[score, still])
    assert found.converged
    assert found.effective_size == float(array_stats.ess(score)) * valid.mean()
    assert found.r_hat == pytest.approx(float(array_stats.rhat(score)))
    assert (found.low, found.high) == wilson(value * found.effective_size, found.effective_size)


def replaced(found: Estimate):
    """Return the parts of an estimate, nan as text: nan equals nothing, itself included."""
    return [str(getattr(found, name)) for name in Estimate.__slots__]


def test_states_that_all_agree_are_worth_no_more_than_the_slowest_other_series():
    rng = np.random.default_rng(15)
    true, valid = np.ones((2, 4, 4000), bool)
    fast, slow = rng.normal(size=(4, 4000)), autoregressive(rng, (4, 4000), 0.8)
    assert estimate(true, valid, also=[fast, slow]).effective_size == float(array_stats.ess(slow))
    assert estimate(true, valid, also=[slow, fast]).effective_size == float(array_stats.ess(slow))


def test_states_that_avoid_their_predecessors_are_worth_no_more_than_their_number():
    """Alternating truth has an ESS of n·log10(n); an estimate never claims more than its valid states."""
    true = np.arange(1000)[None, :] % 2 == np.arange(4)[:, None] % 2
    assert effective_size(true) > 4000
    assert estimate(true, np.ones_like(true)).effective_size == 4000


def test_another_series_that_has_not_mixed_keeps_an_estimate_from_being_converged():
    rng = np.random.default_rng(13)
    true, valid = states(rng, 0.3, 1, 0, (4, 3000))
    mixed, stuck = rng.normal(size=(4, 3000)), np.arange(4)[:, None] + rng.normal(size=(4, 3000))
    slow = autoregressive(rng, (4, 3000), 0.99)
    assert estimate(true, valid, also=[mixed]).converged
    for other in (stuck, slow):
        found = estimate(true, valid, also=[mixed, other])
        assert not found.converged
        assert found.probability == estimate(true, valid).probability
        assert found.r_hat == pytest.approx(float(array_stats.rhat(other)))


def test_another_series_that_agrees_but_is_too_short_keeps_an_estimate_from_being_converged():
    rng = np.random.default_rng(16)
    seen = 0
    for _ in range(40):
        true, valid = states(rng, 0.3, 1, 0, (4, 1500))
        slow = autoregressive(rng, (4, 1500), 0.9)
        if array_stats.rhat(slow) < R_HAT and array_stats.ess(slow) < ESS and estimate(true, valid).converged:
            seen += 1
            assert not estimate(true, valid, also=[slow]).converged
    assert seen


def test_converged_means_that_every_limit_is_kept():
    rng = np.random.default_rng(14)
    seen = set()
    for _ in range(200):
        true, valid = states(rng, 0.3, 1, 0.5, (4, int(rng.integers(150, 700))))
        found = estimate(true, valid)
        assert found.converged == (found.r_hat < R_HAT and found.effective_size > ESS)
        seen.add(found.converged)
    assert seen == {True, False}


def test_too_few_draws_for_any_diagnostic_leave_everything_open():
    found = estimate([[True, False, True]] * 4, [[True, True, True]] * 4)
    assert isnan(found.effective_size)
    assert (found.probability, found.low, found.high, found.converged) == (8 / 12, 0.0, 1.0, False)


def test_what_is_not_an_array_of_chains_is_refused():
    good = np.ones((4, 10), bool)
    with pytest.raises(ValueError, match="one chain is draws"):
        r_hat(np.zeros(10))
    with pytest.raises(ValueError, match="a kind among bulk, mean"):
        effective_size(np.zeros((4, 10)), kind="tail")
    with pytest.raises(ValueError, match="expected valid as truth values"):
        estimate(good, good.astype(float))
    with pytest.raises(ValueError, match="expected true as truth values"):
        estimate(good[0], good)
    with pytest.raises(ValueError, match="of one shape"):
        estimate(good, good[:, :5])
    with pytest.raises(ValueError, match="needs a leading axis"):
        estimate(good, good, also=good)
