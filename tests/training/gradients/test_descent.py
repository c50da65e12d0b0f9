"""Descent: it goes down, stops in time, and can be left and taken up at any batch."""

import json
from collections import deque
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from lbm.errors import TrainingDiverged
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.network import Network
from lbm.training.data.rows import Rows
from lbm.training.gradients.costs import Cost
from lbm.training.gradients.descent import (
    MIN_JUDGES,
    MIN_ROWS,
    Data,
    Plan,
    adam_step,
    begin,
    from_state,
    judge,
    restore_best,
    split,
    steps,
    stream,
    stream_key,
    to_state,
)
from lbm.training.gradients.quick import CONFIDENCE_RATE
from tests.training.problems import close

NAN = float("nan")
COSTS = {
    "quick": Cost(l2=0.1),
    "generative": Cost(0.0, 1.0, steps=2),
    "persistent": Cost(0.5, 0.5, persistent=True),
}


def train(progress, data, cost, plan, **rows):
    """Descend to the end, give the network its best parameters, and return the epochs."""
    deque(steps(progress, data, cost, plan, **rows), maxlen=0)
    restore_best(progress)
    return tuple(progress.history)


def machine(seed=0, literals="tied"):
    knowledge = compile_knowledge(Theory(["a & b -> y", "c -> ~y"]), columns="abcd", labels="y")
    return Network(knowledge, hidden=4, literals=literals, seed=seed)


def problem(rows=60, seed=0, gaps=False):
    """y is true where a and b are, or where d is and c is not."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, (rows, 4)).astype(np.float32)
    kinds = ((x[:, 0] * x[:, 1] + x[:, 3] * (1 - x[:, 2])) > 0).astype(np.int64)
    if gaps:
        x[random.random(x.shape) < 0.2] = NAN
    return Data(Rows(x, dtype=torch.float32), kinds, np.ones(rows), gaps=gaps)


def parameters(network):
    return {name: values.detach().clone() for name, values in network.named_parameters()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("cost", [COSTS["quick"], COSTS["persistent"]], ids=["quick", "persistent"])
def test_training_lowers_the_cost_of_rows_it_never_saw(cost):
    network, data, unseen = machine(), problem(), problem(seed=9)
    every = np.arange(60)
    before, _ = judge(network, unseen, every)
    plan = Plan(learning_rate=0.03, batch_size=10, max_epochs=40, patience=40)
    history = train(begin(network), data, cost, plan, train=every[:45], validation=every[45:])
    after, accuracy = judge(network, unseen, every)
    assert after < before
    assert accuracy >= 0.9
    assert [epoch.number for epoch in history] == list(range(1, len(history) + 1))


@settings(max_examples=5)
@given(st.sampled_from(list(COSTS)), st.integers(1, 15), st.booleans())
def test_a_run_taken_up_at_any_batch_ends_bit_for_bit_as_one_never_stopped(name, batches, gaps):
    cost, data, every = COSTS[name], problem(30, gaps=gaps), np.arange(30)
    plan = Plan(batch_size=7, max_epochs=4, patience=3)
    options = {"train": every[:24], "validation": every[24:]}
    whole = begin(machine())
    for _ in steps(whole, data, cost, plan, **options):
        pass
    stopped = begin(machine())
    for _ in islice(steps(stopped, data, cost, plan, **options), batches):
        pass
    tensors, facts = to_state(stopped)
    again = from_state(machine(seed=99), tensors, json.loads(json.dumps(facts)))
    for _ in steps(again, data, cost, plan, **options):
        pass
    assert same(parameters(whole.network), parameters(again.network))
    assert [(e.number, e.cost, e.validation_cost) for e in whole.history] == [
        (e.number, e.cost, e.validation_cost) for e in again.history
    ]
    assert whole.best_cost == again.best_cost
    restore_best(whole)
    restore_best(again)
    assert same(parameters(whole.network), parameters(again.network))


def test_the_seed_decides_everything_and_no_global_generator_is_touched():
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(123)
        before = torch.get_rng_state()
        network = machine()
        plan = Plan(batch_size=8, max_epochs=3, seed=seed)
        every = np.arange(60)
        train(begin(network), problem(), COSTS["persistent"], plan, train=every, validation=every[:0])
        assert torch.equal(torch.get_rng_state(), before)
        found.append(parameters(network))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_the_best_epoch_is_kept_and_patience_ends_a_run():
    network, data, every = machine(), problem(), np.arange(60)
    plan = Plan(learning_rate=0.3, batch_size=5, max_epochs=200, patience=4)
    progress = begin(network)
    history = train(progress, data, Cost(), plan, train=every[:40], validation=every[40:])
    assert progress.finished == "patience"
    assert judge(network, data, every[40:])[0] == pytest.approx(
        min(e.validation_cost for e in history), rel=1e-5
    )


def test_budgets_end_a_run():
    every = np.arange(60)
    for plan, end, epochs in [
        (Plan(max_epochs=2), "epochs", 2),
        (Plan(max_seconds=0.0), "seconds", 0),
        (Plan(max_seconds=0.0, batch_size=100), "seconds", 1),
        (Plan(max_epochs=0), "epochs", 0),
    ]:
        progress = begin(machine())
        history = train(progress, problem(), Cost(), plan, train=every, validation=every[:0])
        assert (progress.finished, len(history)) == (end, epochs)


@pytest.mark.parametrize("literals", ["tied", "free"])
def test_a_cost_that_is_no_number_is_an_error_that_says_when(literals):
    network, every = machine(literals=literals), np.arange(60)
    with torch.no_grad():
        network.weights.fill_(NAN)
    with pytest.raises(TrainingDiverged, match=r"got nan in epoch 1: try a smaller learning_rate") as caught:
        train(begin(network), problem(), Cost(), Plan(), train=every, validation=every[:0])
    assert caught.value.epoch == 1


def test_without_validation_rows_a_generative_run_ends_by_its_budget():
    progress, every = begin(machine()), np.arange(60)
    plan = Plan(max_epochs=5, patience=1, batch_size=20)
    train(progress, problem(), COSTS["generative"], plan, train=every, validation=every[:0])
    assert (progress.finished, progress.best) == ("epochs", None)


def test_adam_steps_as_its_authors_say():
    """Kingma and Ba (2015), algorithm 1, number by number."""
    progress, random = begin(machine()), np.random.default_rng(0)
    expected = {name: p.detach().numpy().astype(float) for name, p in progress.network.named_parameters()}
    m = {name: np.zeros_like(values) for name, values in expected.items()}
    v = {name: np.zeros_like(values) for name, values in expected.items()}
    for t in range(1, 6):
        for name, p in progress.network.named_parameters():
            g = random.normal(size=p.shape).astype(np.float32)
            p.grad = torch.as_tensor(g)
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            rate = 0.05 * (CONFIDENCE_RATE if name == "raw_confidence" else 1.0)
            bias = (1 - 0.9**t), (1 - 0.999**t)
            expected[name] -= rate * (m[name] / bias[0]) / (np.sqrt(v[name] / bias[1]) + 1e-8)
        adam_step(progress, 0.05)
    for name, p in progress.network.named_parameters():
        np.testing.assert_allclose(p.detach().numpy(), expected[name], atol=1e-5, err_msg=name)
        assert p.grad is None


@given(st.lists(st.integers(0, 3), min_size=1, max_size=400), st.floats(0, 0.5), st.integers(0, 9))
def test_a_split_is_stratified_and_loses_no_row(kinds, fraction, seed):
    kinds = np.array(kinds)
    train_rows, validation = split(kinds, fraction, seed)
    assert sorted([*train_rows, *validation]) == list(range(len(kinds)))
    sizes = np.bincount(kinds)
    if not len(validation):
        assert fraction * len(kinds) < MIN_JUDGES or sizes[sizes > 0].min() < MIN_ROWS
        return
    aside = np.bincount(kinds[validation], minlength=len(sizes))
    for kind in np.flatnonzero(sizes):
        assert aside[kind] == max(1, round(fraction * sizes[kind]))


def test_rows_are_the_same_dense_and_sparse():
    x = np.array([[0, 1, NAN], [1, 0, 0], [0, 0, 1]], dtype=np.float32)
    indices = np.array([2, 0])
    dense, sparse = (Rows(t, dtype=torch.float32) for t in (x, csr_array(x)))
    assert len(dense) == len(sparse) == 3
    close(dense.batch(indices), sparse.batch(indices))
    np.testing.assert_array_equal(dense.batch(indices).numpy(), x[indices])


def test_streams_of_different_purposes_differ():
    drawn = {float(stream(0, *purpose).random()) for purpose in [(0,), (1,), (0, 1), (1, 0), (0, 0)]}
    keys = {stream_key(0, *purpose) for purpose in [(0,), (1,), (0, 1), (1, 0), (0, 0)]}
    assert (len(drawn), len(keys)) == (5, 5)
    assert stream_key(7, 1, 2) == stream_key(7, 1, 2) < 2**63
