"""Parameters in NumPy say what the network says in torch, with and without missing values."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.training.boltzmann import filling, missing
from lbm.training.boltzmann.network import network_of
from lbm.training.boltzmann.parameters import log_sum, parameters_of
from tests.training.problems import EVERY_ROW, networks

GROUPS = ([([0, 1], np.eye(2))], [([1, 2], np.array([[0, 0], [0, 1], [1, 1]]))], [])


@settings(max_examples=60)
@given(st.sampled_from(GROUPS).flatmap(lambda groups: networks(groups=groups)), st.booleans())
def test_scores_are_those_of_the_network(network, joint):
    found = parameters_of(network).scores(EVERY_ROW, joint=joint)
    wanted = network.log_scores(torch.tensor(EVERY_ROW), joint=joint).detach().numpy()
    if not joint:  # what every class gets alike may be left out by either
        found, wanted = (scores - scores[:, :1] for scores in (found, wanted))
    np.testing.assert_allclose(found, wanted, atol=1e-11, rtol=1e-12)


@settings(max_examples=60)
@given(
    st.sampled_from(GROUPS).flatmap(lambda groups: networks(groups=groups)),
    st.lists(st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=3, max_size=3), min_size=1, max_size=9),
    st.sampled_from([12, 1, 0]),
)
def test_probabilities_are_those_of_the_network_also_where_values_are_missing(network, rows, summed):
    """With few missing values summed the others are drawn by chains, from the same random numbers."""
    x = np.array(rows)
    with pytest.MonkeyPatch.context() as patch:
        for module in (filling, missing):
            patch.setattr(module, "MAX_SUMMED", summed)
            patch.setattr(module, "DRAWS", 20)
        wanted = missing.predict_log_probabilities(network, torch.tensor(x), seed=3).numpy()
        parameters = parameters_of(network)
        np.testing.assert_allclose(
            np.exp(filling.log_probabilities(parameters, x, seed=3)), np.exp(wanted), atol=1e-12
        )
        exact = missing.exact_rows(network, torch.tensor(x))
        assert (filling.exact_rows(parameters, x) == exact).all()


@settings(max_examples=30)
@given(networks())
def test_a_network_of_its_own_parameters_is_the_same(network):
    again = network_of(parameters_of(network))
    for (name, one), (other, two) in zip(network.named_parameters(), again.named_parameters(), strict=True):
        assert name == other
        assert one.dtype == two.dtype
        assert torch.equal(one, two)


@pytest.mark.parametrize("size", [0, 1, 10, 129, 511, 512, 513, 5000])
def test_sums_of_many_units_lose_no_digits_and_never_overflow(size):
    random = np.random.default_rng(size)
    for scale in (1e-3, 1.0, 1e4):
        s = random.normal(0, scale, (3, size))
        wanted = np.logaddexp(0.0, s).sum(axis=1)
        np.testing.assert_allclose(log_sum(s), wanted, rtol=1e-12, atol=1e-12)
