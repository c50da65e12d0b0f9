"""Convex fits against other code for the same numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from lbm.training.boltzmann.cubes import cubes_of, with_cubes
from lbm.training.boltzmann.facts import every_way, facts_of
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names, label_patterns
from lbm.training.boltzmann.network import Network
from lbm.training.gradients.convex import bins_of, choose_ridge, fit_additive

RISING = np.tri(4, 3, -1)[:, ::-1].copy()
GROUPS = [([0, 1, 2], RISING), ([3, 4], np.eye(3, 2))]
"""Three thresholds, two categories that are kept, and a column of 0 and 1."""


def rows_of(size, seed):
    random = np.random.default_rng(seed)
    parts = [RISING[random.integers(4, size=size)], np.eye(3, 2)[random.integers(3, size=size)]]
    return np.hstack([*parts, random.integers(0, 2, (size, 1))]).astype(float)


@pytest.mark.parametrize("size", [10, 65, 129, 1000])
@pytest.mark.parametrize("kinds", [2, 3])
def test_the_ridge_is_that_of_scikit_learn(size, kinds):
    random = np.random.default_rng(size)
    x, y = random.normal(size=(size, 4)), random.integers(kinds, size=size)
    y[:kinds] = np.arange(kinds)
    weights = random.random(size) + 0.5
    patterns = label_patterns(1 if kinds == 2 else kinds).astype(float)
    found = fit_additive(x, y, weights, np.zeros((size, kinds)), patterns=patterns, penalties=np.full(4, 2.0))
    peer = LogisticRegression(C=0.5, tol=1e-8, max_iter=2000).fit(x, y, sample_weight=weights)
    scores = found.scores(x, patterns)
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    np.testing.assert_allclose(p, peer.predict_proba(x), atol=0.01)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 4), st.booleans())
def test_cubes_of_bins_say_what_the_weights_of_columns_say(seed, kinds, none_missing):
    """For every row there is, whether or not some row has none of the categories kept."""
    random = np.random.default_rng(seed)
    labels = 1 if kinds == 2 else kinds
    weights, means = random.normal(size=(6, labels)), random.random(6) / 3
    if none_missing:
        means[3:5] = [0.25, 0.75]
    cubes, bias = cubes_of(weights, means, GROUPS, 6)
    assert all(1 <= len(body) <= 2 for body, _, _ in cubes)
    names = label_names("y", range(kinds))
    columns = ["n <= 1", "n <= 2", "n <= 3", "c = u", "c = v", "b"]
    network = Network(
        with_cubes(compile_knowledge(None, columns=columns, labels=names), cubes), groups=GROUPS
    )
    network = network.double()
    x = every_way(np.zeros(6), facts_of(range(6), GROUPS))
    if none_missing:
        x = x[x[:, 3:5].any(axis=1)]
    patterns = label_patterns(labels).astype(float)
    wanted = ((x - means) @ weights) @ patterns.T
    found = network.log_scores(torch.tensor(x)).detach().numpy() + bias @ patterns.T
    found, wanted = (part - part.mean(axis=1, keepdims=True) for part in (found, wanted))
    np.testing.assert_allclose(found, wanted, atol=0.02)  # weights have four digits


def test_bins_that_rows_do_not_speak_for_are_held_down_to_a_straight_line():
    random = np.random.default_rng(0)
    x = rows_of(400, 0)
    number = x[:, :3].sum(axis=1)
    y = (random.random(400) < 1 / (1 + np.exp(number - 1.5))).astype(np.int64)
    bins = bins_of(x, np.ones(400), GROUPS, np.array([1.0, 1, 1, 0, 0, 0]), np.ones(6, dtype=bool))
    design, patterns = bins.design(x), label_patterns(1).astype(float)
    assert design.shape == (400, 7)
    folds = np.arange(400)[:, None] % 4 != np.arange(4)
    ridge, losses = choose_ridge(
        bins, design, y, np.ones(400), np.zeros((400, 4, 2)), folds, patterns=patterns
    )
    assert losses.argmin() < len(losses) - 1
    found = fit_additive(
        design, y, np.ones(400), np.zeros((400, 2)), patterns=patterns, penalties=bins.penalties(1e6)
    )
    steps = bins.of_columns(found)[:3, 0]
    np.testing.assert_allclose(steps, steps.mean(), rtol=1e-3)
    assert steps.mean() == pytest.approx(-1.0, abs=0.25)
    assert ridge > 0
