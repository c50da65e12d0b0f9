"""Chains in NumPy have the bits of the kernels, whatever the network, and either goes on for the other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.knowledge.parser import parse
from lbm.reasoning.engine import kernels, lanes, network, plain
from lbm.reasoning.engine.groups import groups_of
from lbm.reasoning.engine.lanes import RULES, Lanes, advance, fields, jump, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES, network_of, network_of_clauses
from lbm.reasoning.engine.population import population_of
from lbm.reasoning.engine.schedule import ladder, tuned_penalty
from lbm.reasoning.engine.tempering import tempered
from tests.reasoning.engine.test_kernels import small
from tests.strategies import NAMES

SEED = 16
KINDS = {
    "int16": (-9, -4, -1, 1, 2, 3, 7),
    "int32": (-9001, 5003, 40_000, 1, 17),
    "float64": (-2.1, 0.3, 0.7),
}


def run_by(patch, *modules):
    """Let a module run the chains, or several that take turns by the call."""
    calls = iter(range(10**9))

    def loops(*_, **__):
        return modules[next(calls) % len(modules)]

    for room in (lanes, network):
        patch.setattr(room, "loops", loops)


def state(one: Lanes):
    return [one.x, one.counts, one.total, one.best, one.best_x, one.broken(), one.score(), one.sweep]


def check_equal(ours, theirs):
    for one, other in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes() or (one == other).all()  # +0.0 and -0.0 are equal


def run(made, weights, *, seed, lane, sweep, rule, betas, order):
    """Return all there is to see of chains after some sweeps, offers to groups and sweeps by lanes."""
    x = random_states(made.atoms, seed, lane)
    one = start(made, weights, x, seed=seed, lane=lane, sweep=sweep, watch=True)
    seen = [x.copy(), *map(np.copy, state(one)), fields(one, np.arange(made.atoms, dtype=np.int32))]
    advance(one, betas, rule=rule, order=order, every=2)
    if one.best[0] >= one.goal:
        one.goal = -2 * min(-1, float(one.goal))  # go on
    jump(one, *groups_of(made), 0.7)
    members = np.arange(made.atoms, dtype=np.int32)
    jump(one, members, np.array([1, 1, min(2, made.atoms), made.atoms], np.int32), np.linspace(-1, 2, LANES))
    betas = np.linspace(0.1, 1.3, 3 * LANES).reshape(3, LANES)
    betas[1, :3], betas[2, :3] = [0.0, -0.0, 1e300], -0.5
    advance(one, betas, rule=rule, every=1)
    return [*seen, *state(one)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data())
def test_numpy_and_kernels_make_the_same_bits(kind, data):
    hard = data.draw(st.lists(small, max_size=3), "hard")
    soft = data.draw(st.lists(st.tuples(small, st.sampled_from(KINDS[kind])), min_size=1, max_size=6), "soft")
    given_ = {
        "seed": data.draw(st.integers(0, (1 << 64) - 1), "seed"),
        "lane": data.draw(st.sampled_from([0, 64, 10**6, (1 << 32) - LANES]), "lane"),
        "sweep": data.draw(st.sampled_from([0, 3, 1 << 31]), "sweep"),
        "rule": data.draw(st.sampled_from(list(RULES)), "rule"),
        "betas": data.draw(
            st.lists(st.sampled_from([0.0, -0.0, 0.05, 0.4, 1.0, 30.0, 1e6, -0.5]), max_size=5)
        ),
        "order": data.draw(
            st.none() | st.lists(st.integers(0, 5), max_size=9).map(lambda order: np.array(order, int))
        ),
    }
    penalty = data.draw(st.sampled_from([0.0, 1.0, 2.5]), "penalty")
    with pytest.MonkeyPatch.context() as patch:
        run_by(patch, kernels)
        made = network_of(NAMES, hard, soft)
        weights = weights_of(made, penalty)
        if kind == "float64":
            weights = replace(weights, numbers=weights.numbers.astype(np.float64))
        expected = run(made, weights, **given_)
        run_by(patch, plain)
        again = network_of(NAMES, hard, soft)
        check_equal(again.wires, made.wires)
        check_equal(run(again, weights, **given_), expected)
        run_by(patch, plain, kernels, kernels)
        check_equal(run(again, weights, **given_), expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_numpy_and_kernels_make_the_same_bits_on_clauses(atoms, kind, rule, monkeypatch):
    rng = np.random.default_rng(atoms)
    number = 4 * atoms
    literals = np.stack([rng.choice(atoms, 3, replace=False) + 1 for _ in range(number)])
    literals = (literals * rng.choice([-1, 1], literals.shape)).astype(np.int32).ravel()
    soft = np.where(rng.random(number) < 0.8, rng.choice(np.abs(KINDS[kind]), number), 0.0)
    made = network_of_clauses(atoms, literals, np.arange(0, 3 * number + 1, 3), soft, 1.0 * (soft == 0))
    weights = weights_of(made, 1.0)
    assert weights.numbers.dtype == kind
    given_ = {"seed": SEED, "lane": 64, "sweep": 5, "rule": rule, "betas": [0.1, 0.7, 2.0], "order": None}
    run_by(monkeypatch, kernels)
    expected = run(made, weights, **given_)
    run_by(monkeypatch, plain)
    check_equal(run(made, weights, **given_), expected)
    first = ladder(made, weights, seed=3)
    run_by(monkeypatch, kernels, plain)
    assert ladder(made, weights, seed=3) == first


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_formulae_that_a_byte_cannot_count_have_the_same_bits(weight, monkeypatch):
    names = [f"v{i}" for i in range(300)]
    every = ", ".join(names)
    texts = [f"exactly(150, {every})", " | ".join(names), f"({' & '.join(names[:260])}) ^ v280"]
    soft = [(parse(text), weight * (k + 1)) for k, text in enumerate(texts)]
    made = network_of(names, [parse("v0 | v1")], soft)
    weights = weights_of(made, 1.0)
    assert made.wires.low.dtype == np.uint32
    assert weights.numbers.dtype == (np.int32 if weight == 1.0 else np.float64)
    given_ = {
        "seed": SEED,
        "lane": 0,
        "sweep": 0,
        "betas": [0.1, 1.0],
        "order": np.arange(20),
        "rule": "metropolis",
    }
    run_by(monkeypatch, kernels)
    expected = run(made, weights, **given_)
    run_by(monkeypatch, plain)
    check_equal(run(made, weights, **given_), expected)


def test_tempering_populations_and_penalties_change_over_midway(monkeypatch):
    """What is found depends on the seed alone, whoever makes which step."""
    soft = [
        (parse(text), k + 1)
        for k, text in enumerate(["a | b", "b <-> c & d", "exactly(2, a, c, e)", "e ^ f"])
    ]
    ends = []
    for modules in ((kernels,), (plain,), (plain, kernels), (kernels, kernels, plain)):
        run_by(monkeypatch, *modules)
        made = network_of(NAMES, [parse("a | ~f")], soft)
        x = random_states(6, SEED)
        penalty = tuned_penalty(made, x, seed=SEED)
        weights = weights_of(made, penalty)
        drawn = tempered(made, weights, x, seed=SEED, burn_in=32)
        cold = [next(drawn) for _ in range(3)][-1]
        grown = population_of(made, weights, seed=SEED, blocks=2)
        ends.append([penalty, cold.x, cold.score, cold.betas, grown.x, grown.log_z, grown.families])
    for other in ends[1:]:
        check_equal(other, ends[0])


def test_probabilities_too_near_to_a_word_are_worked_out_as_kernels_do(monkeypatch):
    """At β so small that all log-odds are near the logit of some word, comparing logits would not do."""
    made = network_of(NAMES, [], [(parse("a | b"), 1e-4), (parse("c & d"), 3e-4), (parse("e ^ f"), 1e-5)])
    weights = weights_of(made, 1.0)
    weights = replace(weights, numbers=weights.numbers * 1.0, reach=weights.reach)
    given_ = {"seed": SEED, "lane": 0, "sweep": 0, "betas": [1.0] * 50, "order": None}
    for rule in RULES:
        run_by(monkeypatch, kernels)
        expected = run(made, weights, rule=rule, **given_)
        run_by(monkeypatch, plain)
        check_equal(run(made, weights, rule=rule, **given_), expected)
