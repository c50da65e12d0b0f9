"""Missing values are summed out: exactly where that is possible, and by chains that say so where not."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.knowledge.theory import Theory
from lbm.training.boltzmann import missing
from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.missing import (
    complete,
    exact_rows,
    find_patterns,
    predict_log_probabilities,
    summed_scores,
)
from lbm.training.boltzmann.network import Network
from lbm.training.gradients.costs import Cost, batch_cost
from tests.training.gradients.test_costs import agree, fresh
from tests.training.problems import brute_log_scores, close, networks, shake, softmax

NAN = float("nan")
SEEN = np.array(list(product((0.0, 1.0, NAN), repeat=3)))


def completions(row, groups=()):
    """Every way to fill a row in, by hand."""
    ways = [[row.copy()]]
    gone = set(np.flatnonzero(np.isnan(row)).tolist())
    for columns, allowed in groups:
        if set(columns) <= gone:
            gone -= set(columns)
            ways.append([(columns, pattern) for pattern in allowed])
    ways += [[((column,), (value,)) for value in (0.0, 1.0)] for column in sorted(gone)]
    for start, *choices in product(*ways):
        filled = start.copy()
        for columns, pattern in choices:
            filled[list(columns)] = pattern
        yield filled


def brute_seen(network, rows, groups=()):
    out = []
    for row in rows:
        every = np.array(list(completions(row, groups)))
        out.append(np.logaddexp.reduce(brute_log_scores(network, every), axis=0))
    return np.array(out)


@settings(max_examples=8)
@given(networks())
def test_probabilities_with_missing_values_are_sums_over_every_completion(network):
    assume(network.units <= 7)
    logs = predict_log_probabilities(network, torch.as_tensor(SEEN))
    np.testing.assert_allclose(np.exp(logs.numpy()), softmax(brute_seen(network, SEEN)), atol=1e-9)
    assert exact_rows(network, torch.as_tensor(SEEN)).all()


@settings(max_examples=8)
@given(networks())
def test_joint_scores_of_a_pattern_are_the_logarithms_of_its_sums(network):
    assume(network.units <= 7)
    x = torch.as_tensor(SEEN)
    for pattern in find_patterns(network, x):
        found = summed_scores(network, x, pattern).detach().numpy()
        np.testing.assert_allclose(found, brute_seen(network, SEEN[pattern.rows.numpy()]), atol=1e-8)


@settings(max_examples=6)
@given(networks(), st.sampled_from([Cost(), Cost(0.5, 0.0, l2=0.1, unaided=0.4)]))
def test_gradients_with_missing_values_equal_finite_differences(network, cost):
    x = torch.as_tensor(SEEN[[1, 5, 13, 26]])
    kinds = torch.arange(4) % network.classes
    weights = torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
    agree(network, lambda: batch_cost(network, cost, x, kinds, weights, generator=fresh())[0])


@settings(max_examples=3)
@given(networks())
def test_sums_in_parts_are_the_same_sums_with_the_same_gradients(network):
    x = torch.as_tensor(np.array([[NAN, NAN, 1.0], [NAN, NAN, 0.0], [NAN, NAN, 1.0]]))
    (pattern,) = find_patterns(network, x)
    whole = summed_scores(network, x, pattern)
    slopes = torch.autograd.grad(whole.sum(), network.visible_bias)[0]
    chunk, missing.CHUNK = missing.CHUNK, 1
    try:
        parted = summed_scores(network, x, pattern)
        close(parted, whole)
        close(torch.autograd.grad(parted.sum(), network.visible_bias)[0], slopes)
    finally:
        missing.CHUNK = chunk


def test_columns_that_touch_no_hidden_unit_cancel_and_count_for_nothing():
    columns = [f"x{i}" for i in range(40)]
    network = Network(
        compile_knowledge(Theory(["x0 -> y"]), columns=columns, labels="y"), dtype=torch.float64
    )
    shake(network, 0)
    x = np.full((1, 40), NAN)
    logs = predict_log_probabilities(network, torch.as_tensor(x))
    assert exact_rows(network, torch.as_tensor(x)).all()
    x[0, 1:] = 0.0
    same = predict_log_probabilities(network, torch.as_tensor(x))
    close(logs, same)


GROUPS = [((0, 1, 2), [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])]


@settings(max_examples=6)
@given(networks(groups=GROUPS))
def test_a_group_that_is_missing_together_takes_only_the_patterns_it_can_have(network):
    assume(network.units <= 7)
    logs = predict_log_probabilities(network, torch.as_tensor(SEEN))
    np.testing.assert_allclose(np.exp(logs.numpy()), softmax(brute_seen(network, SEEN, GROUPS)), atol=1e-9)
    assert exact_rows(network, torch.as_tensor(SEEN)).all()


def test_a_group_of_which_knowledge_mentions_one_column_is_still_filled_in_as_one():
    knowledge = compile_knowledge(Theory(["x0 -> y"]), columns=["x0", "x1", "x2"], labels="y")
    network = Network(knowledge, groups=GROUPS, dtype=torch.float64)
    rows = torch.tensor(GROUPS[0][1], dtype=torch.float64)
    expected = torch.log_softmax(torch.logsumexp(network.log_scores(rows, joint=True), dim=0), dim=0)
    logs = predict_log_probabilities(network, torch.full((1, 3), NAN, dtype=torch.float64))
    np.testing.assert_allclose(logs[0].numpy(), expected.detach().numpy(), atol=1e-6)


def wide(classes=2, columns=16):
    names = [f"x{i}" for i in range(columns)]
    labels = ("y",) if classes == 2 else tuple(f"y = {k}" for k in range(classes))
    network = Network(compile_knowledge(None, columns=names, labels=labels), hidden=3, dtype=torch.float64)
    shake(network, 4, scale=0.4)
    return network


def test_twelve_missing_atoms_are_summed_and_thirteen_are_sampled():
    network = wide()
    x = np.zeros((2, 16))
    x[0, :12] = x[1, :13] = NAN
    x = torch.as_tensor(x)
    assert exact_rows(network, x).tolist() == [True, False]
    one, other = (predict_log_probabilities(network, x, seed=seed) for seed in (1, 2))
    assert (one == other).all(dim=1).tolist() == [True, False]


@pytest.mark.parametrize("classes", [2, 3])
def test_sampled_probabilities_are_near_the_exact_ones(classes, monkeypatch):
    network = wide(classes)
    x = np.random.default_rng(0).integers(0, 2, (20, 16)).astype(float)
    x[:, :6] = NAN
    truth = predict_log_probabilities(network, torch.as_tensor(x))
    monkeypatch.setattr(missing, "MAX_SUMMED", 3)
    found = predict_log_probabilities(network, torch.as_tensor(x), seed=3)
    assert not exact_rows(network, torch.as_tensor(x)).any()
    assert (found.exp() - truth.exp()).abs().max() < 0.1
    assert (found.exp() - truth.exp()).abs().mean() < 0.02
    close(found.exp().sum(dim=1), torch.ones(20, dtype=torch.float64))


def test_a_sampled_prediction_depends_on_the_seed_and_on_its_row_alone():
    network = wide()
    x = np.random.default_rng(0).integers(0, 2, (6, 16)).astype(float)
    x[:, :14] = NAN
    rows = torch.as_tensor(x)
    all_ = predict_log_probabilities(network, rows, seed=1)
    some = predict_log_probabilities(network, rows[[4, 2]], seed=1)
    close(some, all_[[4, 2]])
    other = predict_log_probabilities(network, rows, seed=2)
    assert not torch.equal(other, all_)


@pytest.mark.parametrize("keep", [False, True])
def test_completed_rows_keep_what_was_seen_and_miss_nothing(keep):
    network = wide()
    x = torch.as_tensor(np.random.default_rng(1).choice([0.0, 1.0, NAN], (30, 16)))
    kinds = torch.arange(30) % 2 if keep else None
    filled = complete(network, x, fresh(), kinds=kinds)
    seen = ~torch.isnan(x)
    assert torch.equal(filled[seen], x[seen])
    assert set(filled.unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("cost", [Cost(), Cost(0.0, 1.0), Cost(0.5, 0.5, persistent=True)])
def test_rows_past_the_limit_train_on_sampled_completions(cost):
    network = wide(3)
    x = np.random.default_rng(0).integers(0, 2, (8, 16)).astype(float)
    x[:3, :14] = NAN
    x[3:5, :4] = NAN
    kinds, weights = torch.arange(8) % 3, torch.ones(8, dtype=torch.float64)
    value, _ = batch_cost(network, cost, torch.as_tensor(x), kinds, weights, generator=fresh())
    value.backward()
    assert torch.isfinite(value)
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)
