"""Costs: exact where they are exact, and right on average where they are sampled."""

import copy
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.chains import Chains, draw_noise, pick, sweep
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names
from lbm.training.boltzmann.network import Network, inverse_softplus
from lbm.training.gradients.costs import Cost, batch_cost, cost_of, free_energies, penalty
from tests.training.problems import EVERY_ROW, brute_log_scores, close, networks, patterns, shake, softmax

ROWS = torch.as_tensor(EVERY_ROW)
STEP = 1e-6


def fresh():
    return torch.Generator().manual_seed(0)


def batch(network, seed=0, rows=6):
    random = np.random.default_rng(seed)
    x = torch.as_tensor(random.integers(0, 2, (rows, 3)).astype(float))
    kinds = torch.as_tensor(random.integers(0, network.classes, rows))
    return x, kinds, torch.as_tensor(random.uniform(0.1, 2.0, rows))


def gradients(network, value):
    named = dict(network.named_parameters())
    found = torch.autograd.grad(value, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(named[name]) if grad is None else grad
        for name, grad in zip(named, found, strict=True)
    }


def differences(network, function):
    """(f(p + δ) - f(p - δ)) / 2δ for every number of every parameter."""
    found = {}
    with torch.no_grad():
        for name, values in network.named_parameters():
            flat, slopes = values.view(-1), torch.zeros(values.numel(), dtype=torch.float64)
            for i in range(len(flat)):
                kept = flat[i].item()
                flat[i] = kept + STEP
                above = float(function())
                flat[i] = kept - STEP
                below = float(function())
                flat[i] = kept
                slopes[i] = (above - below) / (2 * STEP)
            found[name] = slopes.view(values.shape)
    return found


def agree(network, function):
    mine, theirs = gradients(network, function()), differences(network, function)
    for name, values in mine.items():
        close(values, theirs[name], atol=2e-5, rtol=2e-5)


@settings(max_examples=20)
@given(networks(), st.integers(0, 99))
def test_discriminative_cost_is_minus_the_logarithm_of_the_class_probability(network, seed):
    assume(network.units <= 9)
    x, kinds, weights = batch(network, seed)
    value, chains = batch_cost(network, Cost(), x, kinds, weights, generator=fresh())
    logs = np.log(softmax(brute_log_scores(network, x.numpy())))[np.arange(len(x)), kinds]
    assert value.item() == pytest.approx(-(weights.numpy() * logs).mean(), abs=1e-9)
    assert chains is None
    if network.hidden and network.knowledge.units:
        alone = np.log(softmax(brute_log_scores(network, x.numpy(), unaided=True)))[np.arange(len(x)), kinds]
        value, _ = batch_cost(network, Cost(unaided=0.3), x, kinds, weights, generator=fresh())
        assert value.item() == pytest.approx(-(weights.numpy() * (0.7 * logs + 0.3 * alone)).mean(), abs=1e-9)


@settings(max_examples=8)
@given(networks(), st.integers(0, 99))
def test_gradients_of_the_discriminative_cost_equal_finite_differences(network, seed):
    x, kinds, weights = batch(network, seed)
    cost = Cost(l1=0.1, l2=0.2, trust=0.3, unaided=0.4)
    agree(network, lambda: batch_cost(network, cost, x, kinds, weights, generator=fresh())[0])


@settings(max_examples=6)
@given(networks(), st.integers(0, 99), st.booleans())
def test_gradients_of_the_surrogate_equal_finite_differences_at_the_same_states(network, seed, persistent):
    """Chains are held fixed: parameters that also moved the chains would be another function."""
    x, kinds, weights = batch(network, seed)
    states = Chains(*batch(network, seed + 1)[:2])

    def surrogate():
        at_data = free_energies(network, Chains(x, kinds))
        at_states = free_energies(network, states)
        return (weights * at_data).mean() - weights.mean() * at_states.mean()

    agree(network, surrogate)
    cost = Cost(0.0, 1.0, persistent=True)
    value, after = batch_cost(network, cost, x, kinds, weights, generator=fresh(), chains=states)
    states = after
    close(value, surrogate())


@settings(max_examples=15)
@given(networks())
def test_free_energies_of_states_are_the_scores_of_their_classes(network):
    kinds = torch.arange(len(ROWS)) % network.classes
    scores = network.log_scores(ROWS, joint=True)[torch.arange(len(ROWS)), kinds]
    close(free_energies(network, Chains(ROWS, kinds)), -scores)


def small(classes, literals, seed=0):
    labels = label_names("y", range(classes))
    rule = "a & b -> y" if classes == 2 else "a & b -> 'y = 1'"
    knowledge = compile_knowledge(Theory([(1, rule)]), columns="abc", labels=labels)
    network = Network(knowledge, hidden=2, literals=literals, dtype=torch.float64)
    shake(network, seed, scale=0.3)
    return network


def joint(network):
    """p(x, k) over every row and class, by enumeration of hidden states."""
    scores = brute_log_scores(network, EVERY_ROW)
    return softmax(scores.ravel()).reshape(scores.shape)


def all_states(network):
    rows = torch.as_tensor(np.repeat(EVERY_ROW, network.classes, axis=0))
    return Chains(rows, torch.arange(network.classes).repeat(len(EVERY_ROW)))


@pytest.mark.parametrize(
    ("classes", "literals", "persistent"),
    [(2, "tied", False), (3, "free", False), (2, "free", True), (3, "tied", True)],
)
def test_the_mean_update_of_contrastive_divergence_is_the_exact_gradient_within_its_error(
    classes, literals, persistent
):
    """With chains long enough to forget where they began. The oracle weighs every row and class."""
    network = small(classes, literals)
    x, kinds, weights = batch(network, 1)
    probabilities = torch.as_tensor(joint(network).ravel())
    exact_value = (weights * free_energies(network, Chains(x, kinds))).mean()
    exact_value = (
        exact_value - weights.mean() * (probabilities * free_energies(network, all_states(network))).sum()
    )
    exact = torch.cat([g.flatten() for g in gradients(network, exact_value).values()])
    generator, chains, found = torch.Generator().manual_seed(5), None, []
    many = (x.repeat(30, 1), kinds.repeat(30), weights.repeat(30))
    cost = Cost(0.0, 1.0, steps=8, persistent=persistent)
    for _ in range(30):
        value, chains = batch_cost(network, cost, *many, generator=generator, chains=chains)
        found.append(torch.cat([g.flatten() for g in gradients(network, value).values()]))
    draws = torch.stack(found)
    error = draws.std(dim=0) / np.sqrt(len(draws))
    assert (draws.mean(dim=0) - exact).abs().max() < 0.05
    assert ((draws.mean(dim=0) - exact).abs() <= 5 * error + 1e-3).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_sweep_leaves_the_joint_distribution_as_it_is(classes):
    network = small(classes, "tied", seed=2)
    expected = joint(network).ravel()
    states, number = all_states(network), 200_000
    random = np.random.default_rng(0)
    drawn = torch.as_tensor(random.choice(len(expected), size=number, p=expected))
    chains = Chains(states.x[drawn], states.kinds[drawn])
    after = sweep(network, chains, draw_noise(network, number, fresh()))
    place = (after.x @ torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64)).long() * classes + after.kinds
    found = np.bincount(place.numpy(), minlength=len(expected)) / number
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected / number)).all()


def test_choices_fall_where_their_probabilities_say():
    logits = torch.log(torch.tensor([[0.2, 0.5, 0.3]])).repeat(5, 1)
    assert pick(logits, torch.tensor([0.1, 0.21, 0.69, 0.71, 0.999])).tolist() == [0, 1, 1, 2, 2]


@settings(max_examples=15)
@given(networks(), st.integers(0, 99))
def test_hybrid_is_the_two_costs_weighed_together(network, seed):
    x, kinds, weights = batch(network, seed)
    values = [
        batch_cost(network, cost, x, kinds, weights, generator=fresh())[0].item()
        for cost in (Cost(0.25, 3.0), Cost(1.0, 0.0), Cost(0.0, 1.0))
    ]
    assert values[0] == pytest.approx(0.25 * values[1] + 3.0 * values[2])


@settings(max_examples=15)
@given(
    networks(), st.integers(0, 99), st.sampled_from([Cost(), Cost(0.0, 1.0), Cost(0.5, 0.5, persistent=True)])
)
def test_a_row_of_weight_two_costs_as_much_as_the_row_twice(network, seed, cost):
    """Up to the number of rows, which every part is divided by; chains do not matter to the data's side."""
    x, kinds, _ = batch(network, seed, rows=4)
    weights = torch.tensor([1.0, 2.0, 1.0, 0.0], dtype=torch.float64)
    again = [0, 1, 1, 2]
    states = Chains(*batch(network, seed)[:2])
    one, two = (
        batch_cost(network, cost, *rows, generator=fresh(), chains=states)[0].item()
        for rows in (
            (x, kinds, weights),
            (x[again], kinds[again], torch.ones(4, dtype=torch.float64)),
        )
    )
    if cost.generative and not cost.persistent:
        return  # chains that begin at the data differ
    assert one == pytest.approx(two)


def test_penalties_are_those_of_the_definition():
    network = small(2, "free")
    literals = network.literal_weights.detach().numpy()
    first = network.first_weights.numpy()
    random = np.concatenate([p.detach().numpy().ravel() for p in (network.weights, network.label_weights)])
    expected = 0.1 * (np.abs(random).sum() + np.abs(literals - first).sum())
    expected += 0.2 / 2 * ((random**2).sum() + ((literals - first) ** 2).sum())
    expected += 0.3 / 2 * (np.maximum(literals / first - 1, 0) ** 2).sum()
    assert penalty(network, Cost(l1=0.1, l2=0.2, trust=0.3)).item() == pytest.approx(expected)
    tied = small(2, "tied")
    kappa = np.logaddexp(0, tied.raw_confidence.detach().numpy())
    grown = np.maximum(kappa / tied.knowledge.initial - 1, 0)
    assert penalty(tied, Cost(trust=2.0)).item() == pytest.approx((grown**2).sum())


def test_confidences_fall_for_nothing_and_grow_at_a_price():
    tied = small(2, "tied")
    for value, price in ((0.1, 0.0), (1.0, 0.0), (3.0, 4.0)):
        with torch.no_grad():
            tied.raw_confidence.copy_(torch.as_tensor(inverse_softplus(np.array([value]))))
        assert penalty(tied, Cost(trust=2.0)).item() == pytest.approx(price, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("mixed", {}, "expected a cost among discriminative, generative, hybrid, got 'mixed'"),
        ("hybrid", {"alpha": -1.0}, "alpha is a number from 0 up"),
        ("hybrid", {"l2": float("nan")}, "l2 is a number from 0 up"),
        ("generative", {"steps": 0}, "steps is a whole number from 1 up"),
        ("discriminative", {"unaided": 1.5}, "unaided is a share from 0 to 1"),
    ],
)
def test_a_cost_that_makes_no_sense_is_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        cost_of(kind, **options)


def test_costs_by_name():
    assert cost_of("discriminative") == Cost(1.0, 0.0)
    assert cost_of("generative", alpha=5.0) == Cost(0.0, 1.0)
    assert cost_of("hybrid", alpha=0.5, beta=2.0, steps=3, persistent=True) == Cost(2.0, 0.5, 3, True)


def test_a_copy_has_the_same_cost():
    network = small(3, "tied")
    args = batch(network)
    values = [
        batch_cost(n, Cost(0.5, 0.5), *args, generator=fresh())[0] for n in (network, copy.deepcopy(network))
    ]
    assert values[0] == values[1]


def test_patterns_of_the_oracle_are_those_of_the_network():
    for classes, literals in product((2, 3), ("tied", "free")):
        network = small(classes, literals)
        np.testing.assert_array_equal(patterns(network), network.patterns.numpy())
