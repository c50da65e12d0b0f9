"""Compiled chains are the plain chains of the same words, keep their distribution, and reach it."""

import math
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numba.core.caching
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.knowledge.formula import (
    FALSE,
    TRUE,
    atleast,
    atom,
    cardinality,
    conjunction,
    disjunction,
    exactly,
    iff,
)
from lbm.knowledge.parser import parse
from lbm.reasoning.compiling.compiled import compiled
from lbm.reasoning.engine import kernels
from lbm.reasoning.engine import lanes as module
from lbm.reasoning.engine.lanes import RULES, advance, jump, random_states, reweighted, start, weights_of
from lbm.reasoning.engine.network import LANES, network_of, network_of_clauses
from lbm.reasoning.engine.streams import uniforms
from tests.oracles import truth_table
from tests.reference.chains import sweep
from tests.reference.streams import words
from tests.reference.targets import score_target
from tests.strategies import NAMES, formulae, random_formula

SEED = 77

# --- the plain dynamics ----------------------------------------------------------------------------


class Words:
    """What the plain dynamics take for a generator: the words of a block of chains, sweep by sweep."""

    def __init__(self, seed=SEED, lane=0, sweep=0):
        self.seed, self.lane, self.sweep = seed, lane, sweep

    def random(self, shape):
        chains = range(self.lane, self.lane + shape[1])
        self.sweep += 1
        return uniforms(words(self.seed, self.sweep - 1, range(shape[0]), chains))


class Plain:
    """A target with the log weight of every world in a table; the first atom changes fastest."""

    def __init__(self, names, hard, soft, penalty):
        self.atoms = tuple(names)
        self.table = np.zeros(1 << len(names))
        for formula, weight in soft:
            self.table += weight * true_in(formula, names)
        for formula in hard:
            self.table -= penalty * ~true_in(formula, names)

    def numbers(self, x):
        return (1 << np.arange(len(self.atoms))) @ np.asarray(x, np.int64)

    def odds(self, i, x):
        number, bit = self.numbers(x), 1 << i
        return self.table[number | bit] - self.table[number & ~bit]

    def log_weight(self, x):
        return self.table[self.numbers(x)]


def true_in(formula, names):
    bits = truth_table(formula, names)
    return np.array([bits >> i & 1 for i in range(1 << len(names))], bool)


def check_same_chain(lanes, target, betas, *, rule="heat bath", order=None, share=1.0):
    """Assert that chains go, sweep by sweep, where the plain dynamics go with the same words.

    ``share`` times the log weight of the target is that of the chains.
    """
    plain = lanes.x.astype(bool)
    rng = Words(lanes.seed, lanes.lane, lanes.sweep)
    rows = None if order is None else np.array(order, np.int32)
    for beta in betas:
        plain = sweep(target, plain, rng, rule=rule, beta=beta * share, order=order)
        assert advance(lanes, [beta], rule=rule, order=rows) == 1
        assert (lanes.x == plain).all()
    assert lanes.sweep == rng.sweep
    check_books(lanes)
    return plain


def check_books(lanes):
    """Assert that the counts and log weights that were carried along are those of the states."""
    fresh = start(lanes.network, lanes.weights, lanes.x, seed=0)
    assert (lanes.counts == fresh.counts).all()
    if lanes.weights.whole:
        assert (lanes.total == fresh.total).all()
    else:
        largest = np.abs(lanes.weights.numbers).sum()
        np.testing.assert_allclose(lanes.total, fresh.total, rtol=0, atol=1e-12 * largest)
    assert np.isin(lanes.x, (0, 1)).all()


# --- the same chain --------------------------------------------------------------------------------

BETAS = (0.0, 0.05, 0.4, 1.0, 2.5, 30.0, 1e6)
literals = st.sets(st.sampled_from(NAMES), min_size=1).flatmap(
    lambda names: st.tuples(*[st.sampled_from([atom(name), ~atom(name)]) for name in sorted(names)])
)
flat = st.one_of(
    literals.map(disjunction),
    literals.map(conjunction),
    literals.map(lambda parts: reduce(iff, parts)),
    st.builds(cardinality, st.sampled_from(["atleast", "atmost", "exactly"]), st.integers(0, 6), literals),
)
small = st.one_of(formulae(max_leaves=8), flat)
kinds = {
    # With and without a table of probabilities, and with one that does not reach as far as the odds.
    "whole": st.sampled_from([-9, -4, -2, -1, 1, 2, 3, 7, -5000, 1001, 9000]),
    # Sums of eighths are exact in floats, so that both sides see the same ties.
    "real": st.sampled_from([k / 8 for k in (-21, -13, -7, -3, 3, 5, 7, 11, 13, 22)]),
}


@pytest.mark.parametrize("kind", kinds)
@given(data=st.data())
def test_chains_are_those_of_the_plain_dynamics_with_the_same_words(kind, data):
    hard = data.draw(st.lists(small, max_size=3), "hard")
    soft = data.draw(st.lists(st.tuples(small, kinds[kind]), min_size=1, max_size=4), "soft")
    rule = data.draw(st.sampled_from(list(RULES)), "rule")
    penalty = data.draw(st.sampled_from([0.0, 1.0, 2.5]), "penalty")
    # A real number divided by 3 rounds: ties are lost, and Metropolis treats ties apart.
    exact = kind == "real" and rule == "metropolis"
    temperature = data.draw(st.sampled_from([0.5, 1.0, 2.0] if exact else [0.5, 1.0, 3.0]), "temperature")
    betas = data.draw(st.lists(st.sampled_from(BETAS), min_size=1, max_size=4), "betas")
    order = data.draw(st.none() | st.permutations(range(6)).flatmap(some_of), "order")
    lane = data.draw(st.sampled_from([0, 64, 1, 10**6, (1 << 32) - LANES]), "lane")
    seed = data.draw(st.integers(0, (1 << 64) - 1), "seed")
    begin = data.draw(st.sampled_from([0, 3, 1 << 31]), "sweep")

    network = network_of(NAMES, hard, soft)
    weights = weights_of(network, penalty, temperature)
    if kind == "real" and weights.whole:  # by chance
        weights = replace(weights, numbers=weights.numbers.astype(np.float64))
    lanes = start(network, weights, random_states(6, seed, lane), seed=seed, lane=lane, sweep=begin)
    target = Plain(NAMES, hard, soft, penalty * temperature)  # times τ: whole weights stay whole
    x = check_same_chain(lanes, target, betas, rule=rule, order=order, share=1 / temperature)
    np.testing.assert_allclose(
        lanes.log_weight, target.log_weight(x) / temperature, atol=1e-9 * (1 + np.abs(target.table).max())
    )


def some_of(order):
    return st.integers(0, len(order)).map(lambda number: order[:number])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("seed", range(2))
def test_chains_on_many_formulae_are_those_of_the_plain_dynamics(seed, kind, rule):
    rng = random.Random(seed)
    sizes = [-3, -1, 1, 2, 5] if kind == "whole" else [-2.625, -0.375, 0.625, 1.125, 2.75]
    names = [f"x{i}" for i in range(1, 11)]

    def simple():
        parts = [atom(name) if rng.random() < 0.5 else ~atom(name) for name in rng.sample(names, 5)]
        kind = rng.choice(["or", "iff", "atleast", "atmost", "exactly"])
        if kind in ("or", "iff"):
            return disjunction(parts) if kind == "or" else reduce(iff, parts)
        return cardinality(kind, rng.randint(1, 4), parts)

    hard = [simple() for _ in range(6)] + [random_formula(rng, max_atoms=10) for _ in range(6)]
    soft = [(simple(), rng.choice(sizes)) for _ in range(10)]
    soft += [(random_formula(rng, max_atoms=10), rng.choice(sizes)) for _ in range(14)]
    network = network_of(names, hard, soft)
    assert network.longest > 10
    weights = weights_of(network, 2.0)
    assert weights.whole is (kind == "whole")
    lanes = start(network, weights, random_states(10, seed), seed=seed)
    check_same_chain(lanes, Plain(names, hard, soft, 2.0), [0.0, 0.1, 0.3, 1.0, 0.5, 0.2] * 5, rule=rule)


@pytest.mark.parametrize("rule", RULES)
def test_chains_are_those_that_run_on_the_plain_target(rule):
    hard = [
        parse(text) for text in ("a | b | ~c", "a <-> b", "(a & b) | (c & ~d)", "exactly(2, a, b, c, d, e)")
    ]
    soft = [
        (parse(text), weight)
        for text, weight in (
            ("a -> b", 1.5),
            ("f & a", 2.25),
            ("(a -> b) -> (c -> d)", -1),
            ("atmost(1, e, f, a)", 0.75),
            ("a | (b & (c | (d & a)))", 3.25),
            ("~(e <-> f)", 0.375),
        )
    ]
    network = network_of(NAMES, hard, soft)
    target = score_target(NAMES, hard, soft, 2.0)
    lanes = start(network, weights_of(network, 2.0), random_states(6, 3), seed=SEED)
    x = check_same_chain(lanes, target, [0.6] * 15, rule=rule)
    np.testing.assert_allclose(lanes.log_weight, target.log_weight(x))
    assert (lanes.broken() == target.broken(x)).all()
    assert (lanes.score() == target.score(x)).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [254, 255, 300])
def test_gates_with_more_children_than_a_byte_counts_move_their_atoms_rightly(size, rule):
    """From states near every edge: nearly all true, nearly all false, about half."""
    names = [f"x{i}" for i in range(size)]
    atoms = [atom(name) for name in names]
    half, parity = size // 2, parse(" ^ ".join(names))
    soft = [
        (disjunction(atoms), 3),
        (disjunction([~a for a in atoms]), 2),
        (exactly(half, *atoms), 4),
        (atleast(size - 1, *atoms), 2),
        (parity, 1),
        (exactly(half + 1, *[a | atoms[0] for a in atoms], atoms[1], atoms[1]), 3),
    ]
    network = network_of(names, [], soft)

    class Wide:
        def __init__(self):
            self.atoms = names

        def log_weight(self, x):
            n = x.sum(axis=0)
            nested = np.where(x[0], size, n) + 2 * x[1]
            parts = (n > 0, n < size, n == half, n >= size - 1, n % 2 == 1, nested == half + 1)
            return np.array([3.0, 2.0, 4.0, 2.0, 1.0, 3.0]) @ parts

        def odds(self, i, x):
            with_it, without = x.copy(), x.copy()
            with_it[i], without[i] = True, False
            return self.log_weight(with_it) - self.log_weight(without)

    rng = np.random.default_rng(size)
    density = np.array([0, 0.003, 0.5, 0.5, 0.5, 0.997, 1, 1])[np.arange(LANES) % 8]
    x = rng.random((size, LANES)) < density
    some = sorted({0, 1, 2, 3, half, size - 2, size - 1, *rng.integers(0, size, 40).tolist()})
    lanes = start(network, weights_of(network, 1.0), x, seed=SEED)
    assert lanes.counts.dtype == np.uint32  # the last formula has two children more than there are atoms
    assert (lanes.log_weight == Wide().log_weight(x)).all()
    check_same_chain(lanes, Wide(), [1.0, 0.1, 5.0], rule=rule, order=some)
    if size == 254:
        small = network_of(names, [], soft[:5])
        assert small.wires.low.dtype == np.uint8
        lanes = start(small, weights_of(small, 1.0), x, seed=SEED)
        wide = Wide()
        wide.log_weight = lambda x: (
            Wide.log_weight(wide, x) - 3.0 * (np.where(x[0], size, x.sum(axis=0)) + 2 * x[1] == half + 1)
        )
        check_same_chain(lanes, wide, [1.0, 0.1, 5.0], rule=rule, order=some)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (1, np.int16),
        (32_767 // 6, np.int16),
        (32_768 // 5, np.int32),
        (((1 << 30) - 1) // 6, np.int32),
        ((1 << 30) // 5, np.float64),
        (1 << 40, np.int16),  # a unit of its own
    ],
)
def test_weights_near_the_edges_of_their_types_do_not_overflow(scale, expected, rule):
    """Atom a gains or loses everything at once: 6 times the scale, with either sign."""
    soft = [(parse("a"), 3 * scale), (parse("a | b"), -2 * scale), (parse("a ^ c"), scale)]
    if expected == np.float64:
        soft.append((parse("d"), 1))
    network = network_of("abcd", [], soft)
    weights = weights_of(network, 1.0)
    assert weights.numbers.dtype == expected
    lanes = start(network, weights, random_states(4, 1), seed=SEED)
    check_same_chain(lanes, Plain("abcd", [], soft, 1.0), [0, 0.3 / scale, 2 / scale, 1e3], rule=rule)


@pytest.mark.parametrize("rule", RULES)
def test_weights_over_eighteen_orders_of_magnitude_fall_back_to_floats(rule):
    texts = "a | b; b -> c; a ^ c ^ d; exactly(1, a, d, e); (a & b) | (c & f); e <-> f; ~a | d; f"
    exponents = (-9, 9, -6, 6, -3, 3, 0, -1)
    soft = [(parse(text), 10.0**k) for text, k in zip(texts.split(";"), exponents, strict=True)]
    hard = [parse("a | e")]
    network = network_of(NAMES, hard, soft)
    weights = weights_of(network, 1e8)
    assert not weights.whole
    lanes = start(network, weights, random_states(6, 1), seed=SEED)
    target = score_target(
        NAMES, hard, soft, 1e8
    )  # it adds what an atom meets: differences of totals would round
    check_same_chain(lanes, target, [0, 1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9], rule=rule)
    assert np.isfinite(lanes.log_weight).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1 / 3, 1e12, 1e290])
def test_a_common_factor_of_all_weights_is_a_matter_of_beta(scale, rule):
    soft = [(parse("a -> b"), 2), (parse("b ^ c"), -1), (parse("atmost(1, a, b, c, d)"), 3)]
    once, scaled = (network_of("abcd", [], [(f, w * by) for f, w in soft]) for by in (1.0, scale))
    assert weights_of(scaled, 1.0).whole
    first, other = (
        start(network, weights_of(network, 1.0), random_states(4, 2), seed=SEED) for network in (once, scaled)
    )
    betas = np.array([0.1, 0.5, 1.0, 2.0] * 5)
    advance(first, betas, rule=rule)
    advance(other, betas / scale, rule=rule)
    assert (first.x == other.x).all()
    np.testing.assert_allclose(other.log_weight, first.log_weight * scale)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("by", [1, 0.375])
def test_every_lane_may_have_a_beta_of_its_own(by, rule):
    soft = [
        (parse("a -> b"), 2),
        (parse("b ^ c"), -1),
        (parse("atmost(1, a, b, c, d)"), 3),
        (parse("b & d"), by),
    ]
    network = network_of("abcd", [], soft)
    weights = weights_of(network, 1.0)
    assert weights.whole is (by == 1)
    lanes = start(network, weights, random_states(4, 2), seed=SEED)
    rng = np.random.default_rng(1)
    check_same_chain(lanes, Plain("abcd", [], soft, 1.0), rng.choice(BETAS, size=(12, LANES)), rule=rule)


GROUPS = (np.array([0, 1, 2, 3, 4, 5, 1, 4, 0, 1], np.int32), np.array([0, 2, 5, 6, 8, 10], np.int32))


def test_groups_flip_together_where_the_plain_rule_says_so_with_the_same_words():
    hard = [parse("a <-> b"), parse("exactly(1, c, d, e)")]
    soft = [(parse("a & ~c"), 1), (parse("(b | e) ^ (f & a)"), -2), (parse("~d -> f"), 1), (parse("e"), 1)]
    network = network_of(NAMES, hard, soft)
    lanes = start(network, weights_of(network, 2.0), random_states(6, 5), seed=SEED, lane=64, sweep=3)
    target = Plain(NAMES, hard, soft, 2.0)
    plain, moved = lanes.x.astype(bool), 0
    for beta in (1.0, 0.0, 0.3, 1e6, 0.5):
        for k, (begin, end) in enumerate(pairwise(GROUPS[1])):
            flipped = plain.copy()
            flipped[GROUPS[0][begin:end]] ^= True
            change = beta * (target.log_weight(flipped) - target.log_weight(plain))
            u = uniforms(words(SEED, lanes.sweep, [k], range(64, 64 + LANES), stream=2))[0]
            takes = u < 1 / (1 + np.exp(-np.clip(change, -700, 700)))
            plain = np.where(takes, flipped, plain)
            moved += takes.sum()
        jump(lanes, *GROUPS, beta)
        assert (lanes.x == plain).all()
        check_books(lanes)
        lanes.sweep += 1
    assert 0 < moved < 25 * LANES


# --- the same chain, however it is asked for -------------------------------------------------------


def mixed(kind):
    """Return a network over ten atoms with every connective, and its weights."""
    rng = random.Random(5)
    names = [f"x{i}" for i in range(1, 11)]
    weights = [1, -2, 3] if kind == "whole" else [0.375, -0.7, 1.1, math.pi / 3]
    hard = [parse("x1 | x2 | ~x3"), parse("exactly(2, x4, x5, x6, x7)"), parse("x8 <-> (x9 & x10)")]
    soft = [(random_formula(rng, max_atoms=10, max_nodes=20), rng.choice(weights)) for _ in range(20)]
    network = network_of(names, hard, soft)
    found = weights_of(network, 2.0)
    assert found.whole is (kind == "whole")
    return network, found


@pytest.mark.parametrize("kind", ["whole", "real"])
def test_many_calls_are_one_call(kind, monkeypatch):
    network, weights = mixed(kind)
    betas = np.linspace(0.05, 2.0, 60)

    def ran(run):
        lanes = start(network, weights, random_states(10, 4), seed=SEED, lane=128)
        run(lanes)
        assert lanes.sweep == 60
        return lanes

    def in_turn(lanes):
        for beta in betas:
            advance(lanes, beta)

    def by_atom(lanes):
        for beta in betas:
            for i in range(10):
                advance(lanes, [beta], order=np.array([i], np.int32))
                lanes.sweep -= 1
            lanes.sweep += 1

    def in_short_calls(lanes):
        monkeypatch.setattr(module, "CALL", 1e-9)
        advance(lanes, betas)

    found = [
        ran(run)
        for run in (
            lambda lanes: advance(lanes, betas),
            lambda lanes: advance(lanes, betas, every=1),
            lambda lanes: advance(lanes, betas, every=7),
            lambda lanes: (advance(lanes, betas[:23]), advance(lanes, betas[23:])),
            in_turn,
            by_atom,
            in_short_calls,
        )
    ]
    for other in found[1:]:
        assert (other.x == found[0].x).all()
        assert (other.counts == found[0].counts).all()
        assert (other.total == found[0].total).all()


def ring(atoms):
    """Return the network of clauses ~x_i | x_(i+1), around."""
    numbers = np.arange(1, atoms + 1, dtype=np.int32)
    literals = np.stack([-numbers, np.roll(numbers, -1)], axis=1).ravel()
    starts = np.arange(0, 2 * atoms + 1, 2)
    return network_of_clauses(atoms, literals, starts, np.ones(atoms), np.zeros(atoms))


def test_a_sweep_that_is_cut_into_calls_is_the_same_sweep(monkeypatch):
    """How it is cut depends on the clock: nothing that is found may depend on it."""
    network = ring(8001)
    weights = weights_of(network, 1.0)
    whole, cut = (start(network, weights, random_states(8001, 4), seed=SEED, watch=True) for _ in range(2))
    betas = [0.5, 2.0, 2.0, 2.0, 0.0]
    advance(whole, betas, every=5)
    monkeypatch.setattr(module, "CALL", 2e-5)
    calls = []
    real = kernels.sweeps
    monkeypatch.setattr(kernels, "sweeps", lambda *given: calls.append(len(given[1])) or real(*given))
    assert advance(cut, betas) == 5
    assert len(calls) > 20
    assert sum(calls) == 5 * 8001
    assert cut.sweep == whole.sweep == 5
    assert (whole.x == cut.x).all()
    assert (whole.total == cut.total).all()
    check_books(cut)
    assert cut.best[0] == whole.best[0]
    assert (cut.best_x == whole.best_x).all()


@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("rule", RULES)
def test_counts_and_log_weights_are_right_after_many_sweeps(kind, rule):
    network, weights = mixed(kind)
    lanes = start(network, weights, random_states(10, 4), seed=SEED)
    advance(lanes, np.tile(np.linspace(0, 1.5, 100), 30), rule=rule)
    assert lanes.sweep == 3000
    check_books(lanes)


def test_lanes_do_not_know_of_each_other():
    """A chain is the same whatever its neighbours do and in whichever block it runs."""
    network, weights = mixed("whole")
    x = random_states(10, 4)
    lanes = start(network, weights, x, seed=SEED, lane=100)
    advance(lanes, [0.5, 1.0, 0.2])
    other = x.copy()
    other[:, 1::2] ^= 1
    moved = start(network, weights, other, seed=SEED, lane=100)
    advance(moved, [0.5, 1.0, 0.2])
    assert (moved.x[:, ::2] == lanes.x[:, ::2]).all()
    assert (moved.x != lanes.x).any()
    shifted = start(network, weights, np.roll(x, -5, axis=1), seed=SEED, lane=105)
    advance(shifted, [0.5, 1.0, 0.2])
    assert (shifted.x[:, :-5] == lanes.x[:, 5:]).all()


def test_states_given_are_not_written_to_and_seeds_tell_chains_apart():
    network, weights = mixed("whole")
    x = random_states(10, 4)
    before = x.copy()
    found = []
    for seed in (1, 1, 2):
        lanes = start(network, weights, x, seed=seed)
        advance(lanes, np.full(10, 0.3))
        found.append(lanes.x)
    assert (x == before).all()
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_atoms_out_of_the_order_stay_and_an_empty_order_moves_nothing():
    network, weights = mixed("whole")
    x = random_states(10, 4)
    lanes = start(network, weights, x, seed=SEED)
    free = [9, 2, 3, 7]
    advance(lanes, np.full(30, 0.2), order=np.array(free, np.int32))
    kept = np.setdiff1d(np.arange(10), free)
    assert (lanes.x[kept] == x[kept]).all()
    assert (lanes.x[free] != x[free]).any(axis=1).all()
    check_books(lanes)
    before = lanes.x.copy()
    assert advance(lanes, [1.0, 2.0], order=np.array([], np.int32)) == 2
    assert (lanes.x == before).all()
    assert advance(lanes, []) == 0


def test_who_watches_between_calls_may_end_the_work():
    network, weights = mixed("whole")
    lanes = start(network, weights, random_states(10, 4), seed=SEED)
    seen = []

    def after(lanes):
        seen.append(lanes.sweep)
        return len(seen) < 3

    assert advance(lanes, np.ones(100), every=10, after=after) == 30
    assert seen == [10, 20, 30]
    assert lanes.sweep == 30


def test_other_weights_take_over_where_the_chains_are():
    network, weights = mixed("whole")
    other = weights_of(network, 0.37, 1.9)
    assert not other.whole
    lanes = start(network, weights, random_states(10, 4), seed=SEED, watch=True)
    advance(lanes, np.full(20, 0.5))
    turned = reweighted(lanes, other)
    fresh = start(network, other, lanes.x, seed=SEED, sweep=20, watch=True)
    np.testing.assert_allclose(turned.log_weight, fresh.log_weight)
    assert turned.total.dtype == turned.best.dtype == np.float64
    assert not turned.found
    advance(turned, np.full(20, 0.5))
    advance(fresh, np.full(20, 0.5))
    assert (turned.x == fresh.x).all()
    assert (turned.best_x == fresh.best_x).all()
    np.testing.assert_allclose(turned.best, fresh.best)


# --- the best state --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("every", [1, 13])
def test_the_best_state_is_the_best_one_met_that_breaks_nothing(kind, every):
    network, weights = mixed(kind)
    lanes = start(network, weights, random_states(10, 4), seed=SEED, watch=True)
    plain = start(network, weights, random_states(10, 4), seed=SEED)
    met = []

    def look(lanes):
        kept = lanes.broken() == 0
        met.extend(zip(lanes.total[kept].tolist(), lanes.x[:, kept].T.tolist(), strict=True))

    assert not lanes.found
    sweeps = advance(lanes, np.full(60, 0.3), every=every)
    advance(plain, np.full(sweeps, 0.3), every=1, after=look)
    assert (lanes.x == plain.x).all()
    best = max(value for value, _ in met)
    assert lanes.found
    assert lanes.best[0] == best
    assert lanes.best_x.tolist() == next(state for value, state in met if value == best)
    assert not plain.found


@pytest.mark.parametrize(
    "hard",
    [
        [FALSE],
        [parse("a"), parse("~a")],
        [parse("a | b"), parse("~(a | b)")],
        [parse("a & b"), parse("a -> ~b")],
        [parse("a ^ b"), parse("a <-> b")],
        [parse("exactly(1, a, b, c)"), parse("exactly(1, a, b, c)"), ~parse("exactly(1, a, b, c)")],
    ],
)
def test_nothing_is_found_where_hard_formulae_clash(hard):
    network = network_of("abc", hard, [(parse("c"), 1)])
    lanes = start(network, weights_of(network, 1.0), random_states(3, 4), seed=SEED, watch=True)
    advance(lanes, np.full(30, 0.5))
    assert (lanes.broken() > 0).all()
    assert not lanes.found


def test_sweeps_end_where_nothing_better_can_come():
    soft = [(parse("a -> b"), 2), (parse("b ^ c"), 3), (parse("~(a & c)"), 1)]
    hard = [parse("a | c")]
    network = network_of("abcd", hard, soft)
    lanes = start(network, weights_of(network, 2.0), np.zeros((4, LANES)), seed=SEED, watch=True)
    done = advance(lanes, np.full(1000, 0.5))
    assert done == lanes.sweep < 1000
    world = dict(zip("abcd", lanes.best_x.tolist(), strict=True))
    assert (world["a"], world["b"], world["c"]) in ((1, 1, 0), (0, 0, 1))


# --- small things ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["whole", "real"])
def test_a_single_atom_follows_its_odds(kind, rule):
    network = network_of(["a"], [], [(atom("a"), 1)])
    weights = weights_of(network, 1.0)
    if kind == "real":
        weights = replace(weights, numbers=weights.numbers.astype(np.float64))
    lanes = start(network, weights, np.zeros((1, LANES)), seed=SEED)
    check_same_chain(lanes, Plain(["a"], [], [(atom("a"), 1)], 1.0), [0, 0.3, 1, 1e6], rule=rule)
    assert lanes.x.all()
    seen = []
    advance(lanes, np.ones(1000), rule=rule, every=2, after=lambda lanes: seen.append(lanes.x.mean()))
    # Metropolis alternates: what is two sweeps apart is correlated by exp(-2) at most.
    p = 1 / (1 + math.exp(-1))
    assert abs(np.mean(seen) - p) < 4 * math.sqrt(p * (1 - p) / (500 * LANES) * 1.4)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["whole", "real"])
def test_nothing_at_all_is_no_problem(kind, rule):
    network = network_of([], [FALSE], [(TRUE, 2.0)])
    weights = weights_of(network, 3.0)
    if kind == "real":
        weights = replace(weights, numbers=weights.numbers.astype(np.float64))
    lanes = start(network, weights, np.zeros((0, LANES)), seed=SEED)
    assert advance(lanes, [1.0, 0.0, 1e6], rule=rule) == lanes.sweep == 3
    assert lanes.log_weight.tolist() == [-1.0] * LANES
    assert lanes.broken().tolist() == [1] * LANES
    assert lanes.score().tolist() == [2.0] * LANES


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["whole", "real", "no gates"])
def test_an_atom_in_no_formula_is_a_fair_coin_at_every_beta(kind, rule):
    """It is as likely to be true as false, and to stay as to turn, in every lane by itself."""
    soft = {"whole": [("a", 3), ("a | b", -2)], "real": [("a", 0.3), ("a ^ b", 0.7)], "no gates": []}[kind]
    names = ["a", "idle", "b"]
    network = network_of(names, [], [(parse(text), weight) for text, weight in soft])
    lanes = start(network, weights_of(network, 1.0), np.zeros((3, LANES)), seed=SEED)
    seen = []
    betas = np.tile([0.0, 1.0, 1e6, 0.3], 100)
    advance(lanes, betas, rule=rule, every=1, after=lambda lanes: seen.append(lanes.x[1].copy()))
    x = np.array(seen, bool)
    error = 0.5 / math.sqrt(x.size)
    assert abs(x.mean() - 0.5) < 4 * error
    assert abs((x[1:] != x[:-1]).mean() - 0.5) < 4 * error
    assert abs((x[:, 1:] != x[:, :-1]).mean() - 0.5) < 4 * error


@pytest.mark.parametrize("shape", [(10, LANES - 1), (9, LANES), (10,), (LANES, 10)])
def test_states_of_another_shape_are_refused(shape):
    network, weights = mixed("whole")
    with pytest.raises(ValueError, match=r"expected states of shape \(10, 64\), got shape"):
        start(network, weights, np.zeros(shape), seed=SEED)


# --- the distribution ------------------------------------------------------------------------------

# Hard formulae without a weight, as in a theory; at the penalty below.
NAMED = {
    "clauses": "a | b | ~c; ~a | d; 0.8: b | c | d; -0.5: a | ~d; 0.3: ~b",
    "conjunctions": "1: a & b; -0.7: b & c & ~d; 0.4: ~(a & d)",
    "implications": "a -> b; b & c -> d; 0.9: d -> a; 0.5: (a -> b) -> c",
    "equivalences": "a <-> b; b <-> c; 1: c <-> d; 0.7: a",
    "parities": "a ^ b ^ c; 0.6: a; -0.8: b ^ d; 0.5: a ^ b ^ c ^ d ^ e",
    "counts": "exactly(2, a, b, c, d, e); 1: atleast(2, a, b); 0.7: atmost(1, c, d, e); -1: exactly(1, a, e)",
    "repeated": "0.7: exactly(2, a, a, b, c); 0.6: atleast(3, a, b, b, ~c, d); 0.5: a ^ b ^ a; 1: a | ~a",
    "nested": "(a & b) | (c & ~d); 0.8: (a | b) ^ (c & d); 1: atleast(2, a & b, c -> d, exactly(1, a, c, e))",
    "shared": "0.5: (a & b) | c; 0.7: (a & b) <-> d; -0.3: a & b; 0.6: ~(a & b) -> e",
    "mixed": "a | b | d; 2: a -> b; 1: b | c; 1: a ^ c; 1: exactly(1, b, c, d); 1: (c <-> d) | (a & idle)",
}
PENALTY = 2.0


def named(name):
    """Return the network of a theory, its weights, and the chances of all worlds."""
    hard, soft = [], []
    for line in NAMED[name].split(";"):
        weight, _, text = line.rpartition(":")
        if weight:
            soft.append((parse(text), float(weight)))
        else:
            hard.append(parse(text))
    names = ["a", "b", "c", "d", "e", "idle"]
    network = network_of(names, hard, soft)
    logs = Plain(names, hard, soft, PENALTY).table
    chances = np.exp(logs - logs.max())
    return network, weights_of(network, PENALTY), chances / chances.sum()


def every_world(atoms):
    return (np.arange(1 << atoms) >> np.arange(atoms)[:, None] & 1).astype(bool)


def run_blocks(network, weights, x, sweeps, rule):
    """Return the states after some sweeps, the lanes of ``x`` in blocks of 64."""
    found = np.empty_like(x)
    for lane in range(0, x.shape[1], LANES):
        part = slice(lane, lane + LANES)
        lanes = start(network, weights, x[:, part], seed=SEED, lane=lane)
        advance(lanes, np.ones(sweeps), rule=rule)
        found[:, part] = lanes.x
    return found


def check_worlds(x, chances):
    """Assert that atoms and pairs of them are as frequent as they should, and all worlds together."""
    atoms, lanes = x.shape
    every = every_world(atoms)
    for i in range(atoms):
        for j in range(i + 1):
            expected = (every[i] & every[j]) @ chances
            error = math.sqrt(expected * (1 - expected) / lanes)
            assert abs((x[i] & x[j]).mean() - expected) <= 4 * error, (i, j)
    found = np.bincount((1 << np.arange(atoms)) @ x, minlength=1 << atoms) / lanes
    # 1/lanes: what is expected less than once has no normal law
    squares = (found - chances) ** 2 * lanes / (chances * (1 - chances) + 1 / lanes)
    assert squares.sum() <= len(chances) + 4 * math.sqrt(2 * len(chances)), (found, chances)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMED)
def test_chains_started_at_the_exact_distribution_stay_there(name, rule):
    network, weights, chances = named(name)
    assert weights.whole is (name == "mixed")
    rng = np.random.default_rng(1)
    x = every_world(6)[:, rng.choice(64, size=150 * LANES, p=chances)]
    found = run_blocks(network, weights, x, 3, rule)
    assert (found != x).any(axis=1).all()
    check_worlds(found, chances)


SWEEPS = {"equivalences": 80, "counts": 60, "mixed": 60}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMED)
def test_chains_reach_the_exact_distribution_from_the_all_false_world(name, rule):
    network, weights, chances = named(name)
    x = np.zeros((6, 100 * LANES), bool)
    check_worlds(run_blocks(network, weights, x, SWEEPS.get(name, 40), rule), chances)


# --- kernels as they are written, and how they are compiled ----------------------------------------


@pytest.fixture
def written(monkeypatch):
    """Make kernels run as the Python that they are written in."""
    for name, value in list(vars(kernels).items()):
        if hasattr(value, "py_func"):
            monkeypatch.setattr(kernels, name, value.py_func)
    monkeypatch.setattr(kernels, "stack", lambda like, size: np.zeros(size, like.dtype))
    monkeypatch.setattr(kernels, "carray", lambda place, shape: place.reshape(shape))
    with np.errstate(over="ignore"):  # what is cast back at once has wrapped around before
        yield


WRITTEN = {
    "whole": (
        "a | ~b; ~a | b | c; exactly(1, a, ~b, c); a ^ c; (a & b) | ~c; exactly(2, a, a, ~(b | c), c)",
        1,
    ),
    "real": ("a | ~b; exactly(1, a, ~b, c); (a & ~b) | c; ((a | b) & c) ^ (b -> c)", 0.3),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", WRITTEN)
def test_compiled_kernels_do_what_is_written(kind, rule, written, monkeypatch):
    texts, by = WRITTEN[kind]
    soft = [(parse(text), by * (k + 1) ** 2) for k, text in enumerate(texts.split(";"))]
    network = network_of("abcd", [parse("a | d"), parse("~(a & c & d)")], soft)
    weights = weights_of(network, 1.0)
    assert weights.whole is (kind == "whole")
    first = start(network, weights, random_states(4, 3), seed=SEED, watch=True)
    advance(first, [0.1, 0.0, 0.4], rule=rule)
    monkeypatch.undo()
    other = start(network, weights, random_states(4, 3), seed=SEED, watch=True)
    advance(other, [0.1, 0.0, 0.4], rule=rule)
    assert (first.x == other.x).all()
    assert (first.counts == other.counts).all()
    np.testing.assert_allclose(first.total, other.total)
    np.testing.assert_allclose(first.best, other.best)
    assert (first.best_x == other.best_x).all()


@pytest.mark.parametrize("beta", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", ["whole", "real"])
def test_a_beta_that_is_not_finite_is_refused_before_a_kernel_runs(kind, beta, written):
    """A kernel looks up powers of two by β times odds, without looking whether there is such a place."""
    network, weights = mixed(kind)
    lanes = start(network, weights, random_states(10, 4), seed=SEED)
    with pytest.raises(ValueError, match="finite"):
        advance(lanes, [1.0, beta])


@pytest.mark.parametrize(
    ("weight", "temperature"), [(1e308, 0.01), (1.7e308, 1.0), (math.inf, 1.0), (math.nan, 1.0), (1.0, 0.0)]
)
def test_weights_that_add_up_to_no_finite_number_are_refused(weight, temperature):
    network = network_of("ab", [], [(parse("a"), weight), (parse("a | b"), weight), (parse("b"), 1.0)])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="finite"):
        weights_of(network, 1.0, temperature)


def twice(x):
    return 2 * x


def test_where_no_cache_can_be_written_functions_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(twice)
    assert compiled(twice)(21) == 42


SCRIPT = """
import importlib, pkgutil
import numpy as np
import lbm.reasoning.engine as engine
for found in pkgutil.iter_modules(engine.__path__):
    importlib.import_module("lbm.reasoning.engine." + found.name)
from lbm.reasoning.compiling.ready import compile_here
compile_here()
from lbm.knowledge.parser import parse
from lbm.reasoning.engine.lanes import advance, start, weights_of
from lbm.reasoning.engine.network import network_of
network = network_of("abc", [parse("a | b")], [(parse("exactly(1, a, b & c, c)"), 2)])
lanes = start(network, weights_of(network, 2.0), np.zeros((3, 64)), seed=7)
advance(lanes, np.full(50, 0.5))
print("".join(map(str, lanes.x.ravel().tolist())))
"""


def expected_of_script():
    hard, soft = [parse("a | b")], [(parse("exactly(1, a, b & c, c)"), 2)]
    plain, rng = np.zeros((3, LANES), bool), Words(7)
    target = Plain("abc", hard, soft, 2.0)
    for _ in range(50):
        plain = sweep(target, plain, rng, beta=0.5)
    return "".join(str(int(value)) for value in plain.ravel())


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    return kept | {"PYTHONWARNINGS": "error", **changes}


@pytest.mark.slow
def test_two_processes_may_compile_into_one_empty_cache_at_the_same_time(tmp_path):
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env=environment(NUMBA_CACHE_DIR=str(tmp_path / "cache")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert out.strip() == expected_of_script()
    assert list((tmp_path / "cache").rglob("*.nbi"))
    # What they left can be read.
    again = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment(NUMBA_CACHE_DIR=str(tmp_path / "cache")),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert again.stdout.strip() == expected_of_script()


@pytest.mark.slow
def test_an_install_that_cannot_be_written_to_works_for_a_user_without_a_home(tmp_path):
    """Even root cannot make a directory where there is a file, which is how both places are closed here."""
    copy = tmp_path / "lbm"
    shutil.copytree(Path(lbm.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for place in [copy, *copy.rglob("*")]:
        if place.is_dir():
            (place / "__pycache__").touch()
    nowhere = tmp_path / "file"
    nowhere.touch()
    ran = subprocess.run(
        [sys.executable, "-c", f"import lbm; assert lbm.__file__.startswith({str(tmp_path)!r})\n{SCRIPT}"],
        env=environment(HOME=str(nowhere), PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == expected_of_script()
    assert not list(tmp_path.rglob("*.nbi"))
