"""The quick way: the same cost, slopes and steps as the general one."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.training.gradients.costs import Cost, batch_cost
from lbm.training.gradients.descent import adam_step, begin
from lbm.training.gradients.quick import Quick, suits
from tests.training.gradients.test_costs import batch, fresh, gradients
from tests.training.problems import close, draw_network, networks


@settings(max_examples=30)
@given(
    networks(literals="tied"),
    st.integers(0, 99),
    st.sampled_from([Cost(), Cost(0.5, l1=0.1, l2=0.2, trust=0.3, unaided=0.4)]),
)
def test_slopes_are_those_of_the_general_way(network, seed, cost):
    if not suits(network, cost, gaps=False):
        return
    x, kinds, weights = batch(network, seed)
    value, _ = batch_cost(network, cost, x, kinds, weights, generator=fresh(), gaps=False, rows=7)
    expected = gradients(network, value)
    found, slopes = Quick(network, {}, {}).slopes(cost, x.numpy(), kinds.numpy(), weights.numpy(), rows=7)
    assert found == pytest.approx(value.item(), abs=1e-12)
    for name, slope in expected.items():
        np.testing.assert_allclose(slopes.get(name, 0.0), slope.numpy(), atol=1e-12, err_msg=name)


@settings(max_examples=10)
@given(
    networks(literals="tied"), st.sampled_from([Cost(), Cost(0.5, l1=0.1, l2=0.2, trust=0.3, unaided=0.4)])
)
def test_steps_are_those_of_the_general_way(network, cost):
    if not suits(network, cost, gaps=False):
        return
    ways = [begin(copy.deepcopy(network)) for _ in range(2)]
    quick = Quick(ways[0].network, ways[0].first, ways[0].second)
    options = {"rate": 0.1, "rows": 7}
    for number in range(1, 4):
        x, kinds, weights = batch(network, number)
        slopes = quick.slopes(cost, x.numpy(), kinds.numpy(), weights.numpy(), rows=7)[1]
        # Adam makes a step of the rounding of a slope that is 0, and the two ways round differently.
        assume(all((np.abs(slope) > 1e-9).all() for slope in slopes.values()))
        quick.step(cost, x.numpy(), kinds.numpy(), weights.numpy(), number=number, **options)
        value, _ = batch_cost(ways[1].network, cost, x, kinds, weights, generator=fresh(), rows=7)
        value.backward()
        adam_step(ways[1], 0.1)
    for mine, theirs in zip(ways[0].network.parameters(), ways[1].network.parameters(), strict=True):
        close(mine, theirs, atol=1e-6, rtol=1e-6)


def test_the_quick_way_is_for_complete_rows_tied_literals_and_one_cost():
    network = draw_network(3, "tied", 2)
    assert suits(network, Cost(), gaps=False)
    assert not suits(network, Cost(), gaps=True)
    assert not suits(network, Cost(1.0, 0.1), gaps=False)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_large_inputs_stay_finite(size):
    network = draw_network(3, "tied", 2)
    with torch.no_grad():
        for values in network.parameters():
            values.mul_(size)
    x, kinds, weights = batch(network)
    value, slopes = Quick(network, {}, {}).slopes(Cost(), x.numpy(), kinds.numpy(), weights.numpy(), rows=1)
    assert np.isfinite(value)
    assert all(np.isfinite(slope).all() for slope in slopes.values())
