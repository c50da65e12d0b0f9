"""Chains that agree are held against what is known: worlds, their weights, and that some exist."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import WeightError
from lbm.knowledge.formula import atom
from lbm.reasoning.sampling import runs
from lbm.reasoning.sampling.coverage import Coverage
from lbm.reasoning.sampling.diagnostics import many_estimates, r_hat
from lbm.reasoning.sampling.runs import Limits, Record
from tests.reference.whole_series import estimate


def joined(n, first, strength="0.0001"):
    """A formula of n atoms, and couplings of all pairs that are too weak to matter but too many to sum."""
    pairs = [(strength, f"v{i} <-> v{j}") for i in range(n) for j in range(i)]
    return lbm.Theory([first, *pairs])


def log_sum(logs):
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs))


def by_number(n, weight, least):
    """Return log Z of ``joined`` with ``weight: atleast(least, ...)``, and the part of its models."""
    logs = [
        math.log(math.comb(n, k)) + 1e-4 * (math.comb(k, 2) + math.comb(n - k, 2)) + (k >= least) * weight
        for k in range(n + 1)
    ]
    return log_sum(logs), log_sum(logs[least:])


NAMES = [f"v{i}" for i in range(50)]
CONJUNCTION = " & ".join(NAMES[:33])
MOST = f"atleast(45, {', '.join(NAMES)})"


def holds_if_sure(answer, truth):
    """An interval is never wrong, and never narrow for nothing: it has the truth, or calls itself unsure."""
    low, high = answer.interval
    assert low <= truth <= high
    return answer.converged


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("method", ["collapsed", "tempered"])
def test_a_well_that_chains_leave_or_never_enter_is_in_doubt(method, seed):
    theory = joined(33, ("24.75", CONJUNCTION))
    whole, well = by_number(33, 24.75, 33)
    share = math.exp(well - whole)
    answer = lbm.ask(theory, "v0", method=method, sweeps=1024, seed=seed, seconds=5)
    assert not holds_if_sure(answer, share + (1 - share) / 2)
    assert "v0 & v1 & v2" in str(answer)  # it says of which place


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("method", ["collapsed", "tempered"])
def test_a_query_whose_models_chains_never_leave_is_in_doubt(method, seed):
    theory = joined(50, (24, MOST))
    whole, well = by_number(50, 24, 45)
    answer = lbm.ask(theory, MOST, method=method, sweeps=512, seed=seed, seconds=5)
    assert not holds_if_sure(answer, math.exp(well - whole))


@pytest.mark.parametrize("seed", [0])
def test_plain_chains_in_doubt_are_not_overruled_by_tempered_ones_that_never_come_by(seed, monkeypatch):
    monkeypatch.setattr(runs, "Limits", partial(Limits, updates=64 * 33 * 1024))
    theory = joined(33, ("24.75", CONJUNCTION))
    answer = lbm.ask(theory, "v0", seed=seed, method="auto", seconds=8)
    whole, well = by_number(33, 24.75, 33)
    share = math.exp(well - whole)
    assert not holds_if_sure(answer, share + (1 - share) / 2)


@pytest.mark.parametrize("seed", range(4))
def test_populations_find_wells_that_are_known_and_weigh_them(seed):
    found = lbm.log_partition(joined(33, ("24.75", CONJUNCTION)), method="population", seed=seed)
    assert abs(found - by_number(33, 24.75, 33)[0]) < 4 * found.error
    assert found.error < 0.3


def test_populations_find_wells_with_an_inside():
    found = lbm.log_partition(joined(50, (24, MOST)), method="population", seed=0)
    assert abs(found - by_number(50, 24, 45)[0]) < 4 * found.error
    assert found.error < 0.5


@pytest.mark.parametrize(
    ("method", "seed", "sweeps"), [("collapsed", 0, 1024), ("collapsed", 1, 1024), ("tempered", 21, 2048)]
)
def test_clusters_of_models_that_chains_seldom_pass_between_are_not_a_share_of_nothing(method, seed, sweeps):
    """With some of these seeds no chain is ever in the small cluster, and both are known to exist."""
    names = ", ".join(f"w{i}" for i in range(40))
    theory = lbm.Theory.parse(f"b -> atleast(34, {names})\n~b -> atmost(8, {names})")
    many = sum(math.comb(40, k) for k in range(34, 41))
    truth = Fraction(many, many + sum(math.comb(40, k) for k in range(9)))
    for query, right in (("b", truth), ("~b", 1 - truth)):
        answer = lbm.ask(theory, query, method=method, sweeps=sweeps, seed=seed, seconds=60)
        low, high = answer.interval
        assert low <= right <= high or not answer.converged


@pytest.mark.parametrize("method", ["collapsed", "tempered"])
def test_small_weights_are_not_lost_beside_great_ones(method):
    theory = lbm.Theory.parse("1e16: a <-> b\n1: b")
    answer = lbm.ask(theory, "b", method=method, seed=0)
    assert answer.converged
    assert abs(answer.probability - 1 / (1 + math.exp(-1))) < 0.03
    found = lbm.log_partition(theory, method="population", seed=0)
    assert math.isclose(found, 1e16, rel_tol=1e-12)


def test_great_weights_that_cannot_all_be_earned_are_refused_beside_small_ones():
    theory = lbm.Theory.parse("1e16: a\n1e16: ~a\n1: b")
    assert abs(lbm.ask(theory, "b").probability - 1 / (1 + math.exp(-1))) < 1e-12
    with pytest.raises(WeightError, match="HEAVY"):
        lbm.ask(theory, "b & a", method="collapsed", seed=0)
    with pytest.raises(WeightError, match="HEAVY"):
        lbm.ask(theory, "b & a", method="collapsed", distribution="machine", seed=0)


# --- the bound -----------------------------------------------------------------------------------------


def two_states(rng, enter, leave, sweeps, begin):
    """Return chains that enter and leave a place at these rates, shape (sweeps, chains)."""
    state = begin.copy()
    found = np.zeros((sweeps, len(begin)), bool)
    for i in range(sweeps):
        luck = rng.random(len(begin))
        state = np.where(state, luck >= leave, luck < enter)
        found[i] = state
    return found


@pytest.mark.parametrize(
    ("enter", "leave"), [(1e-6, 0.01), (1e-5, 0.01), (1e-4, 0.05), (1e-6, 1e-5), (0, 0.01)]
)
def test_what_chains_missed_is_seldom_more_than_the_bound(enter, leave):
    rng = np.random.default_rng(0)
    begin = np.zeros((1, 64), bool)
    begin[0, :4] = True
    share = enter / (enter + leave)
    worse = 0
    for _ in range(100):
        coverage = Coverage([atom("a")], np.zeros((1, 0), bool), begin, lambda _, x: x[0])
        seen = two_states(rng, enter, leave, 512, begin[0])
        coverage.add(seen[None], np.ones_like(seen))
        bound, place = coverage.missed()
        assert 0 <= bound <= 1
        if bound:
            assert place == "a"
            worse += bound < share
    assert worse <= 15


def test_chains_that_never_left_a_place_give_no_bound():
    begin = np.zeros((1, 64), bool)
    begin[0, :4] = True
    coverage = Coverage([atom("a")], np.zeros((1, 0), bool), begin, lambda _, x: x[0])
    coverage.add(np.broadcast_to(begin[:, None, :], (1, 100, 64)), np.ones((100, 64), bool))
    assert coverage.missed() == (1.0, "a")


def test_the_surroundings_of_a_world_that_no_other_chain_comes_near_are_a_place():
    rng = np.random.default_rng(0)
    world = np.ones((30, 1), bool)
    begin = rng.random((30, 64)) < 0.5
    begin[:, :4] = True
    stuck = rng.random((30, 200, 64)) < 0.5
    stuck[:, :, :4] = True
    coverage = Coverage([], world, begin, lambda _, x: x[0])
    coverage.add(stuck, np.ones((200, 64), bool))
    assert coverage.missed()[0] == 1.0
    free = Coverage([], world, begin, lambda _, x: x[0])
    free.add(rng.random((30, 200, 64)) < 0.5, np.ones((200, 64), bool))
    assert free.missed()[0] < 0.01


# --- what is recorded ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from([4, 16, 64]))
def test_a_record_is_sums_over_blocks_of_equal_length(sizes, most):
    values = np.random.default_rng(0).integers(0, 5, (2, sum(sizes), 3)).astype(float)
    record = Record(most)
    at = 0
    for size in sizes:
        record.add(values[:, at : at + size])
        at += size
    kept = np.concatenate(record._sums, axis=1)
    assert kept.shape[1] <= most
    whole = values[:, : kept.shape[1] * record.width]
    expected = whole.reshape(2, kept.shape[1], record.width, 3).sum(axis=2)
    assert np.array_equal(kept, expected)
    assert record.last_half().shape == (2, 3, kept.shape[1] - kept.shape[1] // 2)


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_means_of_half_chains_say_what_whole_series_say(share, together):
    rng = np.random.default_rng(1)
    true = two_states(rng, share * 0.3, (1 - share) * 0.3, 4096, rng.random(64) < share).T
    keeps = np.ones_like(true)
    long = estimate(true, keeps)
    blocks = true.reshape(64, 8, 512).sum(axis=2)[None].astype(float)
    found = many_estimates(blocks, np.full((64, 8), 512.0), 4096, together)
    p, size, ratio = (each[0] for each in found)
    assert p == long.probability
    assert 0.6 < size / long.effective_size < 1.6
    assert abs(ratio - r_hat(true, together=together)) < 0.01
