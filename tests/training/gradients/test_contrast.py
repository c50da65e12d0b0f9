"""Data against chains: probabilities, gradients and draws against every state counted out."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.network import Network
from lbm.training.gradients.contrast import (
    Contrast,
    FilledRows,
    ascend,
    compare,
    fill_rows,
    flatten,
    gibbs,
    slopes,
)
from lbm.training.gradients.descent import begin
from tests.strategies import formulae, within_reach
from tests.training.problems import COLUMNS, EVERY_ROW, numbers, plain_weights, shake

WITH_GAPS = np.array(list(product((0.0, 1.0, np.nan), repeat=len(COLUMNS))))


@st.composite
def networks(draw, *, max_units=8):
    """Networks without labels in double precision: knowledge of any shape, random weights everywhere."""
    weights = st.none() | st.integers(-3, 3).filter(bool)
    theory = Theory(draw(st.lists(st.tuples(weights, formulae(COLUMNS, max_leaves=4)), max_size=2)))
    options = {"columns": COLUMNS, "confidence": draw(st.sampled_from([0.5, 2.0]))}
    network = Network(
        within_reach(lambda: compile_knowledge(theory, **options)),
        hidden=draw(st.integers(0, 2)),
        literals=draw(st.sampled_from(["tied", "free"])),
        dtype=torch.float64,
    )
    assume(network.units <= max_units)
    shake(network, draw(st.integers(0, 2**31)))
    return network


def joint(network):
    """Return p(x, h) over every pair of states, shape (worlds, hidden states), and the hidden states."""
    weights, bias, visible = plain_weights(network)
    states = np.array(list(product((0.0, 1.0), repeat=len(bias)))).reshape(2 ** len(bias), len(bias))
    logs = (EVERY_ROW @ visible)[:, None] + (EVERY_ROW @ weights + bias) @ states.T
    return np.exp(logs), states


def agree(row):
    """Return which worlds agree with what was seen of a row."""
    return ((row == EVERY_ROW) | np.isnan(row)).all(axis=1)


def ordered(network, rows, value, *, ways=4096, seed=0):
    """Return ``value`` of every row, in their order."""
    found = {}
    for part in fill_rows(network, torch.as_tensor(rows), ways=ways, seed=seed):
        found.update(zip(part.rows.tolist(), value(part).detach().numpy(), strict=True))
    return np.array([found[i] for i in range(len(rows))])


# --- what it says of rows ------------------------------------------------------------------------


@settings(max_examples=10)
@given(networks())
def test_hidden_probabilities_are_those_of_every_state_that_agrees_with_what_was_seen(network):
    weights, states = joint(network)
    expected = [(weights[agree(row)].sum(axis=0) @ states) / weights[agree(row)].sum() for row in WITH_GAPS]
    np.testing.assert_allclose(ordered(network, WITH_GAPS, FilledRows.hidden_means), expected, atol=1e-9)


@settings(max_examples=10)
@given(networks())
def test_free_energies_are_the_logarithms_of_every_state_summed(network):
    weights, _ = joint(network)
    expected = [-np.log(weights[agree(row)].sum()) for row in WITH_GAPS]
    np.testing.assert_allclose(ordered(network, WITH_GAPS, FilledRows.free_energies), expected, atol=1e-8)


@settings(max_examples=10)
@given(networks())
def test_pseudo_likelihoods_ask_every_atom_seen_given_the_others_seen(network):
    weights = joint(network)[0].sum(axis=1)
    expected = []
    for row in WITH_GAPS:
        total = 0.0
        for i in np.flatnonzero(~np.isnan(row)):
            others = row.copy()
            others[i] = np.nan
            total += np.log(weights[agree(row)].sum() / weights[agree(others)].sum())
        expected.append(total)
    np.testing.assert_allclose(
        ordered(network, WITH_GAPS, FilledRows.pseudo_likelihoods), expected, atol=1e-8
    )


@settings(max_examples=10)
@given(networks())
def test_a_reconstruction_is_one_step_down_from_the_hidden_means(network):
    weights, _, visible = plain_weights(network)
    means = ordered(network, WITH_GAPS, FilledRows.hidden_means)
    expected = 1 / (1 + np.exp(-(means @ weights.T + visible)))
    np.testing.assert_allclose(ordered(network, WITH_GAPS, FilledRows.reconstructions), expected, atol=1e-9)


def test_draws_of_missing_atoms_agree_with_their_sum_and_do_not_see_other_rows():
    network, holes = tiny(), WITH_GAPS[np.isnan(WITH_GAPS).any(axis=1)]
    exact = ordered(network, holes, FilledRows.hidden_means)
    drawn = ordered(network, holes, FilledRows.hidden_means, ways=1)
    spread = ordered(network, holes, lambda part: torch.sigmoid(part.inputs).std(dim=1), ways=1)
    # 8 chains of 25 draws each, which are worth at least five independent ones here
    assert (np.abs(drawn - exact) <= 4 * spread / np.sqrt(40) + 1e-9).all()
    alone = ordered(network, holes[[7, 12]], FilledRows.hidden_means, ways=1)
    np.testing.assert_allclose(alone, drawn[[7, 12]], atol=1e-12)
    assert not np.allclose(drawn, ordered(network, holes, FilledRows.hidden_means, ways=1, seed=1))


def test_atoms_of_one_fact_are_filled_in_together():
    network = tiny(hidden=1, groups=[((0, 1), np.eye(2))])
    row = np.array([[np.nan, np.nan, 1.0]])
    for ways in (4096, 1):
        for part in fill_rows(network, torch.as_tensor(row), ways=ways, seed=0):
            weights, bias, _ = plain_weights(network)
            possible = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]) @ weights + bias
            assert set(part.inputs.flatten().numpy().round(9)) == set(possible.flatten().round(9))


# --- gradients -----------------------------------------------------------------------------------


def mean_log_likelihood(network, rows):
    weights = joint(network)[0].sum(axis=1)
    return np.mean([np.log(weights[agree(row)].sum() / weights.sum()) for row in rows])


def full_contrast(network, rows):
    """Return the contrast of rows with the whole distribution, instead of with chains."""
    weights = joint(network)[0].sum(axis=1)
    scale = np.concatenate([np.full(len(rows), 1 / len(rows)), -weights / weights.sum()])
    x = np.concatenate([rows, EVERY_ROW])
    plain, bias, _ = plain_weights(network)
    h = scale[:, None] / (1 + np.exp(-(x @ plain + bias)))
    return Contrast(*map(torch.as_tensor, (x, h, scale)))


def slopes_by_differences(network, rows, step=1e-5):
    """Return the slope of the mean of log p(x) for every parameter, by central differences."""
    found = {}
    for name, values in network.named_parameters():
        flat, slope = values.data.reshape(-1), np.zeros(values.numel())
        for i in range(len(flat)):
            before = flat[i].item()
            flat[i] = before + step
            above = mean_log_likelihood(network, rows)
            flat[i] = before - step
            slope[i] = (above - mean_log_likelihood(network, rows)) / (2 * step)
            flat[i] = before
        found[name] = slope.reshape(values.shape)
    return found


def follows_the_gradient(network, l1, l2):
    """Check a step of plain ascent against central differences of log p(x) - λ1 Σ|w| - λ2/2 Σ w²."""
    rows, rate = EVERY_ROW[[0, 3, 3, 6]], 1e-3
    expected = slopes_by_differences(network, rows)
    for name in ("weights", "literal_weights"):
        if name in expected:
            start = numbers(network.first_weights) if name == "literal_weights" else 0.0
            moved = numbers(network.get_parameter(name)) - start
            expected[name] = expected[name] - l1 * np.sign(moved) - l2 * moved
    before = {name: numbers(values).copy() for name, values in network.named_parameters()}
    found = full_contrast(network, rows)
    ascend(begin(network), found, optimiser="sgd", learning_rate=rate, l1=l1, l2=l2)
    for name, values in network.named_parameters():
        np.testing.assert_allclose((numbers(values) - before[name]) / rate, expected[name], atol=1e-6)


@settings(max_examples=10)
@given(networks(max_units=5), st.sampled_from([(0.0, 0.0), (0.3, 0.0), (0.0, 0.4)]))
def test_a_step_follows_the_gradient_of_the_likelihood_less_its_penalties(network, penalties):
    follows_the_gradient(network, *penalties)


@pytest.mark.parametrize("literals", ["tied", "free"])
@pytest.mark.parametrize("penalties", [(0.3, 0.0), (0.0, 0.4)])
def test_so_does_a_step_of_two_formulae_that_share_a_cube(literals, penalties):
    follows_the_gradient(tiny(theory="a -> b\n2: c\n~a & ~c\n1: ~a", literals=literals), *penalties)


@settings(max_examples=6)
@given(networks(max_units=5))
def test_adam_goes_the_way_of_the_gradient(network):
    """Its first step is the rate times the sign of the slope; confidences go ten times the slope."""
    found = full_contrast(network, EVERY_ROW[[0, 3, 3, 6]])
    way = {**slopes(network, found), "weights": (found.x.T @ found.h)[:, network.knowledge.units :]}
    before = {name: values.detach().clone() for name, values in network.named_parameters()}
    ascend(begin(network), found, optimiser="adam", learning_rate=1e-4, l1=0.0, l2=0.0)
    for name, slope in way.items():
        moved = (network.get_parameter(name) - before[name]).detach() / 1e-4
        clear = slope.abs() > 1e-5  # below, Adam's 1e-8 is not small against it
        expected = 10 * slope if name == "raw_confidence" else slope.sign()
        torch.testing.assert_close(moved[clear], expected[clear], atol=0.01, rtol=0)


def tiny(hidden=2, theory="a -> b\n2: c", literals="tied", groups=(), seed=1):
    knowledge = compile_knowledge(Theory.parse(theory), columns=COLUMNS, confidence=2.0)
    network = Network(knowledge, hidden=hidden, literals=literals, groups=groups, dtype=torch.float64)
    shake(network, seed)
    return network


def transition(network):
    """Return p(x' | x) of one sweep, shape (worlds, worlds), over every hidden state."""
    weights, bias, visible = plain_weights(network)
    _, states = joint(network)
    up = 1 / (1 + np.exp(-(EVERY_ROW @ weights + bias)))
    down = 1 / (1 + np.exp(-(states @ weights.T + visible)))
    to_hidden = np.prod(np.where(states[None] == 1, up[:, None], 1 - up[:, None]), axis=2)
    to_world = np.prod(np.where(EVERY_ROW[None] == 1, down[:, None], 1 - down[:, None]), axis=2)
    return to_hidden @ to_world


def statistics(network, x):
    """Return x_i p(h_j | x), p(h_j | x) and x_i of every row, side by side."""
    weights, bias, _ = plain_weights(network)
    h = 1 / (1 + np.exp(-(x @ weights + bias)))
    return np.concatenate([(x[:, :, None] * h[:, None, :]).reshape(len(x), -1), h, x], axis=1)


def update_of(found):
    return np.concatenate([(found.x.T @ found.h).flatten(), found.h.sum(0), found.x.T @ found.scale])


def within(found, expected, covariance, draws):
    """Whether a mean over draws is within five standard errors, everywhere."""
    return (np.abs(found - expected) <= 5 * np.sqrt(np.diag(covariance) / draws) + 1e-12).all()


@pytest.mark.parametrize("steps", [1, 3])
def test_the_mean_update_of_persistent_chains_is_the_exact_gradient(steps):
    network, chains = tiny(), 40_000
    weights, states = joint(network)
    random = np.random.default_rng(0)
    drawn = random.choice(weights.size, chains, p=(weights / weights.sum()).ravel()) % len(states)
    rows = EVERY_ROW[[0, 1, 5, 7]]
    found, after = compare(
        flatten(network),
        torch.as_tensor(rows),
        torch.as_tensor(states[drawn]),
        steps=steps,
        generator=torch.Generator().manual_seed(0),
    )
    p = weights.sum(axis=1) / weights.sum()
    every = statistics(network, EVERY_ROW)
    exact = statistics(network, rows).mean(axis=0) - p @ every
    assert within(update_of(found), exact, np.cov(every.T, aweights=p, ddof=0), chains)
    exact_hidden = weights.sum(axis=0) / weights.sum() @ states  # and chains stay where they were
    assert (np.abs(after.numpy().mean(axis=0) - exact_hidden) < 5 * 0.5 / np.sqrt(chains)).all()


@pytest.mark.parametrize("steps", [1, 2])
def test_the_mean_update_of_contrastive_divergence_is_that_of_its_chains(steps):
    network, repeats = tiny(), 10_000
    rows = np.repeat(EVERY_ROW[[0, 1, 5, 7]], repeats, axis=0)
    found, after = compare(
        flatten(network),
        torch.as_tensor(rows),
        None,
        steps=steps,
        generator=torch.Generator().manual_seed(0),
    )
    assert after is None
    reached = np.linalg.matrix_power(transition(network), steps)[[0, 1, 5, 7]].mean(axis=0)
    every = statistics(network, EVERY_ROW)
    exact = statistics(network, rows).mean(axis=0) - reached @ every
    assert within(update_of(found), exact, np.cov(every.T, aweights=reached, ddof=0), len(rows))


def test_chains_that_make_no_sweep_are_where_the_biases_put_them():
    flat = flatten(tiny())
    found = gibbs(flat, 20_000, sweeps=0, generator=torch.Generator().manual_seed(0)).mean(dim=0)
    assert (found - torch.sigmoid(flat.visible_bias)).abs().max() < 4 * 0.5 / np.sqrt(20_000)
