"""The trainable machine: its probabilities are those of every hidden state counted out."""

import copy
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.knowledge.theory import Theory
from lbm.training.boltzmann import network as module
from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.network import Network, inverse_softplus, to_machine
from tests.training.problems import (
    EVERY_ROW,
    brute_log_scores,
    close,
    networks,
    patterns,
    plain_weights,
    softmax,
)

ROWS = torch.as_tensor(EVERY_ROW)


def few(network):
    assume(network.units <= 9)
    return network


@settings(max_examples=15)
@given(networks())
def test_class_probabilities_are_those_of_every_hidden_state(network):
    few(network)
    found = torch.softmax(network.log_scores(ROWS), dim=1).detach().numpy()
    np.testing.assert_allclose(found, softmax(brute_log_scores(network, EVERY_ROW)), atol=1e-9)


@settings(max_examples=15)
@given(networks())
def test_joint_scores_are_the_logarithms_of_every_hidden_state_summed(network):
    few(network)
    found = network.log_scores(ROWS, joint=True).detach().numpy()
    np.testing.assert_allclose(found, brute_log_scores(network, EVERY_ROW), atol=1e-8)


@settings(max_examples=15)
@given(networks())
def test_inputs_of_units_follow_the_weights_both_ways(network):
    weights, bias, visible = plain_weights(network)
    order = np.concatenate([network.order, np.arange(network.knowledge.units, network.units)]).astype(int)
    kinds = torch.arange(len(ROWS)) % network.classes
    v = np.concatenate([EVERY_ROW, patterns(network)[kinds]], axis=1)
    np.testing.assert_allclose(
        network.hidden_inputs(ROWS, kinds).detach().numpy(), (v @ weights + bias)[:, order], atol=1e-9
    )
    h = np.random.default_rng(0).integers(0, 2, (5, network.units)).astype(float)
    columns, classes = network.visible_inputs(torch.as_tensor(h))
    down = h @ weights[:, order].T + visible
    np.testing.assert_allclose(columns.detach().numpy(), down[:, :3], atol=1e-9)
    np.testing.assert_allclose(classes.detach().numpy(), down[:, 3:] @ patterns(network).T, atol=1e-9)


@settings(max_examples=15)
@given(networks())
def test_the_machine_it_becomes_has_the_same_free_energy(network):
    machine = to_machine(network)
    for k, pattern in enumerate(patterns(network)):
        worlds = np.concatenate([EVERY_ROW, np.tile(pattern, (len(EVERY_ROW), 1))], axis=1)
        np.testing.assert_allclose(
            -machine.free_energy(worlds, confidence=1.0),
            network.log_scores(ROWS, joint=True)[:, k].detach().numpy(),
            atol=1e-9,
        )


@settings(max_examples=15)
@given(networks())
def test_large_matrices_and_many_classes_are_weighed_in_parts_to_the_same_end(network):
    whole = network.log_scores(ROWS, joint=True)
    h = torch.ones(2, network.units, dtype=torch.float64)
    down = network.visible_inputs(h)
    parted = copy.deepcopy(network)
    parted.dense = False
    chunk, module.CHUNK = module.CHUNK, 1
    try:
        close(parted.log_scores(ROWS, joint=True), whole)
        for mine, theirs in zip(parted.visible_inputs(h), down, strict=True):
            close(mine, theirs)
    finally:
        module.CHUNK = chunk


def test_groups_of_columns_move_with_the_network_to_other_numbers():
    knowledge = compile_knowledge(Theory(["x0 -> y"]), columns=["x0", "x1"], labels="y")
    network = Network(knowledge, hidden=2, groups=[([0, 1], np.eye(2))], dtype=torch.float32)
    (group,) = copy.deepcopy(network).to(dtype=torch.float64).groups
    assert (group.columns.dtype, group.patterns.dtype) == (torch.int64, torch.float64)
    np.testing.assert_array_equal(group.patterns, np.eye(2))
    assert network.groups[0].patterns.dtype == torch.float32


@settings(max_examples=10)
@given(networks(literals="free"))
def test_free_literals_begin_as_tied_ones(network):
    tied, free = (
        Network(network.knowledge, hidden=2, literals=kind, dtype=torch.float64, seed=3)
        for kind in ("tied", "free")
    )
    close(tied.log_scores(ROWS, joint=True), free.log_scores(ROWS, joint=True))


@given(st.lists(st.sampled_from(["a & b -> y", "~c -> ~y", "a -> y", "y", "a | c -> y"]), min_size=1))
def test_both_encodings_of_a_rule_give_the_same_class_probabilities(rules):
    found = [
        torch.softmax(
            Network(
                compile_knowledge(
                    Theory(rules), columns="abc", labels="y", encoding=encoding, confidence=0.1
                ),
                dtype=torch.float64,
            ).log_scores(ROWS),
            dim=1,
        )
        for encoding in ("sdnf", "rule")
    ]
    close(*found, rtol=0, atol=1e-12)


@given(st.floats(-60, 9).map(lambda power: 10.0**power))
def test_confidences_survive_the_smooth_map_and_back(value):
    theta = inverse_softplus(np.array([value]))
    assert np.isfinite(theta).all()
    np.testing.assert_allclose(np.logaddexp(0, theta), value, rtol=1e-9)


def test_a_machine_without_labels_has_one_class_and_no_opinion():
    network = Network(compile_knowledge(Theory(["a | b"]), columns="abc"), hidden=2, dtype=torch.float64)
    assert network.log_scores(ROWS).shape == (8, 1)
    np.testing.assert_allclose(
        network.log_scores(ROWS, joint=True).detach().numpy()[:, 0],
        -to_machine(network).free_energy(EVERY_ROW, confidence=1.0),
    )


@pytest.mark.parametrize("literals", ["tied", "free"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_confidences_of_a_million_stay_finite(literals, dtype):
    theory = Theory([(10**6, "a & b <-> y"), (10**6, "~c"), "a -> y"])
    network = Network(
        compile_knowledge(theory, columns="abc", labels="y"), hidden=3, literals=literals, dtype=dtype
    )
    loss = -torch.log_softmax(network.log_scores(ROWS.to(dtype), joint=True), dim=1)[:, 0].sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_every_precision_starts_from_the_same_weights():
    knowledge = compile_knowledge(None, columns="abc", labels="y")
    single, double = (Network(knowledge, hidden=4, dtype=t, seed=5) for t in (torch.float32, torch.float64))
    close(single.weights, double.weights.float(), rtol=0, atol=0)


def test_unknown_literals_are_an_error():
    with pytest.raises(ValueError, match="expected literals 'tied' or 'free', got 'loose'"):
        Network(compile_knowledge(None, columns="abc", labels="y"), literals="loose")


def test_oracle_counts_what_it_says():
    """The oracle itself, on one unit by hand: y & a at confidence 2 weighs softplus(2(a + y - 1.5))."""
    network = Network(
        compile_knowledge(Theory([(2, "a -> y")]), columns="abc", labels="y", encoding="rule"),
        dtype=torch.float64,
    )
    scores = brute_log_scores(network, EVERY_ROW)
    for (a, _, _), row in zip(product((0, 1), repeat=3), scores, strict=True):
        np.testing.assert_allclose(row, [np.log1p(np.exp(2 * (a + y - 1.5))) for y in (0, 1)])
