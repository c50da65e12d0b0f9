"""Tempering keeps every distribution, reaches it out of deep wells, and depends on its seed only."""

import random
from itertools import islice, pairwise, product

import numpy as np
import pytest

from lbm.knowledge.parser import parse
from lbm.reasoning.engine import tempering as module
from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES, network_of
from lbm.reasoning.engine.streams import uniforms
from lbm.reasoning.engine.tempering import FREE, SWAPS, coupling, exchange_chance, tempered
from lbm.reasoning.sampling.machines import heat_bath
from tests.oracles import truth_table
from tests.reference.groups import NO_GROUPS
from tests.reference.streams import words
from tests.strategies import random_formula

SEED = 23
NAMES = tuple(f"x{i}" for i in range(1, 9))


def true_in(formula, names):
    """Return where a formula is true, shape (2^atoms,); the first atom changes fastest."""
    bits = truth_table(formula, names)
    return np.array([bits >> i & 1 for i in range(1 << len(names))], bool)


def tables(names, hard, soft):
    """Return the score of every world, and how many hard formulae it breaks."""
    score, broken = np.zeros(1 << len(names)), np.zeros(1 << len(names), int)
    for formula, weight in soft:
        score += weight * true_in(formula, names)
    for formula in hard:
        broken += ~true_in(formula, names)
    return score, broken


def logical(score, broken):
    """Return the probability of every world among models."""
    p = np.where(broken == 0, np.exp(score - score[broken == 0].max()), 0.0)
    return p / p.sum()


def numbers(x):
    """Return the numbers of the worlds that columns are."""
    return (1 << np.arange(len(x))) @ x.astype(np.int64)


def draws_of(network, weights, number, *, blocks=1, x=None, thin=1, **options):
    """Return cold states, shape (draws, atoms, ladders), and hard formulae broken, of blocks side by side."""
    states, broken = [], []
    for block in range(blocks):
        begin = random_states(network.atoms, SEED, LANES * block) if x is None else x
        drawn = tempered(network, weights, begin, seed=SEED, lane=LANES * block, **options)
        some = list(islice(drawn, thin - 1, thin * number, thin))
        states.append([each.x for each in some])
        broken.append([each.broken for each in some])
    least = min(each[0].shape[1] for each in states)
    cut = [np.array(each)[..., :least] for each in states]
    return np.concatenate(cut, axis=2), np.concatenate([np.array(each)[:, :least] for each in broken], axis=1)


def check_means(values, valid, exact):
    """Assert that ladders agree with the exact mean of each series within 4 standard errors.

    ``values`` has shape (draws, series, ladders). Ladders are independent, so their spread is the error.
    """
    total, count = (values * valid[:, None]).sum(axis=0), valid.sum(axis=0)
    mean = total.sum(axis=1) / count.sum()
    apart = total - mean[:, None] * count
    error = np.sqrt((apart**2).mean(axis=1) / (len(count) - 1)) / count.mean()
    assert len(count) >= 8
    assert error.max() < 0.05, "too few draws to say anything"
    assert (np.abs(mean - exact) <= 4 * np.maximum(error, 5e-4)).all(), (mean, exact, error)


# --- exchanges -------------------------------------------------------------------------------------


@pytest.mark.parametrize("betas", [(0.0, 1.0), (0.3, 1.0), (0.9, 1.0)])
def test_exchanges_keep_the_joint_distribution_of_two_rungs(betas):
    """Over all pairs of worlds: what comes in by exchanges is what goes out, pair by pair."""
    log_weight = np.random.default_rng(1).normal(size=16) * 3
    low, high = (np.exp(beta * log_weight) / np.exp(beta * log_weight).sum() for beta in betas)
    joint = np.outer(low, high)
    pairs = np.array(list(product(log_weight, repeat=2))).T
    chance = exchange_chance(np.array(betas), pairs).reshape(16, 16)
    np.testing.assert_allclose(joint * chance, (joint * chance).T, rtol=1e-12)
    assert np.maximum(chance, chance.T) == pytest.approx(1)  # no exchange is refused in vain


class Plain:
    """A target for the plain dynamics, by the log weight of every world."""

    def __init__(self, names, table):
        self.atoms, self.table = tuple(names), table

    def odds(self, i, x):
        number = numbers(x)
        return self.table[number | 1 << i] - self.table[number & ~(1 << i)]


@pytest.mark.parametrize("penalty", [2, 1.7])
def test_ladders_are_plain_chains_that_exchange_their_states(penalty):
    """The same words decide, lane by lane, in plain chains that stay at their β and exchange states."""
    hard = [parse("x1 | x2 | ~x3"), parse("exactly(1, x4, x5, x6)")]
    soft = [(parse("x1 <-> x4"), 1), (parse("(x2 & x5) | x6"), -2), (parse("x1 ^ x2 ^ x3"), 2)]
    names = NAMES[:6]
    score, broken = tables(names, hard, soft)
    target = Plain(names, score - penalty * broken)
    betas = np.array([0.1, 0.3, 0.55, 1.0])
    ladders, lane = LANES // 4, 128
    network = network_of(names, hard, soft)
    begin = random_states(6, SEED)
    drawn = tempered(
        network,
        weights_of(network, penalty),
        begin,
        seed=SEED,
        lane=lane,
        betas=betas,
        burn_in=0,
        groups=NO_GROUPS,
    )
    # A state moves with its lane's words, which is why plain chains must know whose they have.
    state = begin.astype(bool).reshape(6, 4, ladders)
    owner = np.arange(LANES).reshape(4, ladders)
    for sweep, cold in enumerate(islice(drawn, 70)):
        luck = uniforms(words(SEED, sweep, range(6), range(lane, lane + LANES)))
        for r in range(4):
            for i in range(6):
                odds = betas[r] * target.odds(i, state[:, r])
                state[i, r] = heat_bath(odds, luck[i, owner[r]])
        luck = uniforms(words(SEED, sweep + 1, range(3), range(lane, lane + ladders), stream=SWAPS))
        for r in range((sweep + 1) % 2, 3, 2):
            for g in range(ladders):
                here, there = (target.table[numbers(state[:, k, g : g + 1])[0]] for k in (r, r + 1))
                if luck[r, g] < np.exp(min(0.0, (betas[r] - betas[r + 1]) * (there - here))):
                    state[:, [r, r + 1], g] = state[:, [r + 1, r], g]
                    owner[[r, r + 1], g] = owner[[r + 1, r], g]
        number = numbers(state[:, 3])
        assert (cold.x == state[:, 3]).all()
        assert (cold.broken == broken[number]).all()
        np.testing.assert_allclose(cold.score, score[number])
    assert (owner != np.arange(LANES).reshape(4, ladders)).mean() > 0.3


def test_refreshed_log_weights_change_nothing(monkeypatch):
    network = network_of(NAMES[:3], [], [(parse("x1 <-> x2"), 1.7), (parse("x2 | x3"), 0.6)])
    options = {"betas": [0.2, 1.0], "burn_in": 0, "groups": NO_GROUPS}
    once, _ = draws_of(network, weights_of(network, 1.0), 50, **options)
    monkeypatch.setattr(module, "REFRESH", 7)
    again, _ = draws_of(network, weights_of(network, 1.0), 50, **options)
    assert (once == again).all()


# --- the distribution ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_cold_states_have_the_exact_marginals_of_generated_theories(seed):
    rng = random.Random(seed)
    hard, soft = [], []
    while len(hard) < 3:
        formula = random_formula(rng, max_atoms=8, max_nodes=15)
        if tables(NAMES, [*hard, formula], [])[1].min() == 0:
            hard.append(formula)
    soft = [(random_formula(rng, max_atoms=8, max_nodes=12), rng.choice([-3, -1, 1, 2, 3])) for _ in range(8)]
    network = network_of(NAMES, hard, soft)
    score, broken = tables(NAMES, hard, soft)
    exact = logical(score, broken)
    worlds = np.arange(256)[None, :] >> np.arange(8)[:, None] & 1
    states, bad = draws_of(network, weights_of(network, 3), 400, blocks=2, burn_in=128)
    check_means(states, bad == 0, worlds @ exact)


def test_tempering_gets_out_of_wells_that_hold_plain_chains():
    """Two wells, all false and all true, the second e times as heavy; the way costs e^-12. In 600 sweeps."""
    hard = [parse(f"{a} <-> {b}") for a, b in pairwise(NAMES)]
    network = network_of(NAMES, hard, [(parse("x1"), 1)])
    weights = weights_of(network, 12)
    x = np.zeros((8, LANES), np.uint8)
    plain = start(network, weights, x, seed=SEED)
    advance(plain, np.ones(600))
    assert plain.x.mean() < 0.1
    states, bad = draws_of(network, weights, 472, blocks=4, x=x, burn_in=128, groups=NO_GROUPS)
    check_means(states, bad == 0, np.e / (1 + np.e))


def test_weights_over_eighteen_orders_of_magnitude_leave_the_exact_marginals():
    texts = "a | b; b -> c; a ^ c ^ d; exactly(1, a, d, e); (a & b) | (c & f); e <-> f; ~a | d; f"
    exponents = (-9, 9, -6, 6, -3, 3, 0, -1)
    soft = [(parse(text), 10.0**k) for text, k in zip(texts.split(";"), exponents, strict=True)]
    network = network_of("abcdef", [], soft)
    score, _ = tables("abcdef", [], soft)
    worlds = np.arange(64)[None, :] >> np.arange(6)[:, None] & 1
    exact = worlds @ logical(score, 0 * score)
    assert ((exact > 0.2) & (exact < 0.8)).sum() >= 3
    states, bad = draws_of(network, weights_of(network, 1), 300, blocks=2, burn_in=256, groups=NO_GROUPS)
    check_means(states, bad == 0, exact)


PETERSEN = [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
PETERSEN += [(5 + i, 5 + (i + 2) % 5) for i in range(5)]


def test_colourings_of_a_graph_are_drawn_uniformly():
    """Petersen's graph: 10 nodes, 120 colourings with three colours. χ² within 4 standard deviations."""
    colourings = [c for c in product(range(3), repeat=10) if all(c[u] != c[v] for u, v in PETERSEN)]
    assert len(colourings) == 120
    names = [f"{colour}{v}" for v in range(10) for colour in "rgb"]
    hard = [parse(f"exactly(1, r{v}, g{v}, b{v})") for v in range(10)]
    hard += [parse(f"~{colour}{u} | ~{colour}{v}") for u, v in PETERSEN for colour in "rgb"]
    network = network_of(names, hard, [])
    states, broken = draws_of(network, weights_of(network, 4), 500, thin=10)
    models = states.transpose(0, 2, 1)[broken == 0].reshape(-1, 10, 3)
    assert (models.sum(axis=2) == 1).all()
    place = {colouring: k for k, colouring in enumerate(colourings)}
    counts = np.bincount([place[tuple(each)] for each in models.argmax(axis=2).tolist()], minlength=120)
    mean = len(models) / 120
    assert mean > 20
    chi_square = ((counts - mean) ** 2 / mean).sum()
    assert abs(chi_square - 119) < 4 * np.sqrt(2 * 119)


# --- rungs -----------------------------------------------------------------------------------------


def theory(size, seed):
    """Return a network of random clauses and equivalences, far too cold for plain chains."""
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(size)]
    texts = [
        " | ".join(rng.choice(["", "~"]) + name for name in rng.sample(names, 3)) for _ in range(4 * size)
    ]
    texts += [" <-> ".join(rng.sample(names, 2)) for _ in range(size // 2)]
    return network_of(names, [], [(parse(text), rng.choice([2, 3, 4])) for text in texts])


@pytest.mark.parametrize(
    ("size", "temperature", "apart"),
    [(10, 1, 0.2), (40, 1, 0.2), (120, 1, 0.2), (40, 0.01, 0.7), (120, 0.01, 0.7)],
)
def test_rungs_are_found_where_neighbours_exchange_about_equally_often(size, temperature, apart):
    """Where it is so cold that states lag behind, no gap is closed, and the hot end is kept, or nearly so."""
    network = theory(size, size)
    weights = weights_of(network, 1, temperature)
    drawn = tempered(network, weights, random_states(size, 1), seed=SEED)
    last = list(islice(drawn, 100))[-1]
    rungs, ladders = len(last.betas), last.x.shape[1]
    assert ladders == LANES // rungs >= 4
    assert last.betas[0] <= 100 * FREE / coupling(network, weights)
    assert last.betas[-1] == 1
    assert (np.diff(last.betas) > 0).all()
    assert last.acceptance.shape == (rungs - 1,)
    assert last.acceptance.min() > 0.2
    assert np.ptp(last.acceptance) < apart
    assert last.sweep == module.BURN_IN + 100


def test_rungs_and_ladders_stay_as_they_are_while_draws_are_made():
    network = theory(12, 3)
    drawn = list(islice(tempered(network, weights_of(network, 1), random_states(12, 1), seed=SEED), 40))
    assert all((each.betas == drawn[0].betas).all() for each in drawn)
    assert {each.x.shape for each in drawn} == {(12, LANES // len(drawn[0].betas))}


def test_small_weights_need_one_rung_only():
    names = NAMES[:4]
    soft = [(parse("x1 <-> x2"), 1 / 8), (parse("x2 | x3 | x4"), 1 / 4), (parse("x4"), 9)]
    network = network_of(names, [], soft)
    cold = next(tempered(network, weights_of(network, 1), random_states(4, 1), seed=SEED, groups=NO_GROUPS))
    assert cold.betas.tolist() == [1.0]
    assert cold.x.shape == (4, LANES)
    assert cold.acceptance.shape == (0,)


@pytest.mark.parametrize("seed", range(8))
def test_no_atom_is_swayed_further_than_the_bound_says(seed):
    """By brute force: how far each other atom can move the probability of one, summed."""
    rng = random.Random(seed)
    names = NAMES[:5]
    soft = [(random_formula(rng, max_atoms=5, max_nodes=10), rng.choice([-0.5, 0.25, 0.5])) for _ in range(5)]
    network = network_of(names, [], soft)
    score, _ = tables(names, [], soft)
    worlds = np.arange(32)
    largest = 0.0
    for i in range(5):
        p = 1 / (1 + np.exp(score[worlds & ~(1 << i)] - score[worlds | 1 << i]))
        largest = max(largest, sum(np.abs(p - p[worlds ^ 1 << j]).max() for j in range(5) if j != i))
    assert largest <= coupling(network, weights_of(network, 1)) + 1e-12


def test_the_bound_is_attained_by_a_clause_of_small_weight():
    network = network_of(NAMES[:2], [], [(parse("x1 | x2"), 0.001)])
    assert coupling(network, weights_of(network, 1)) == pytest.approx(0.00025)


# --- seeds and options -----------------------------------------------------------------------------


def test_draws_depend_on_seed_and_lane_only():
    network = theory(12, 3)
    weights = weights_of(network, 1)

    def drawn(seed=SEED, lane=0):
        some = tempered(network, weights, random_states(12, 1), seed=seed, lane=lane, burn_in=64)
        return [each.x for each in islice(some, 6)]

    once = drawn()
    assert all((a == b).all() for a, b in zip(once, drawn(), strict=True))
    for other in (drawn(seed=SEED + 1), drawn(lane=64)):
        assert any(a.shape != b.shape or (a != b).any() for a, b in zip(once, other, strict=True))


def test_whoever_waits_is_told_of_every_sweep_and_may_end_the_work():
    network = theory(4, 0)
    options = {"seed": 1, "betas": [0.5, 1.0], "burn_in": 5}
    seen = []
    drawn = tempered(network, weights_of(network, 1), random_states(4, 1), on_sweep=seen.append, **options)
    assert [each.sweep for each in islice(drawn, 3)] == [6, 7, 8]
    assert seen == list(range(1, 9))

    def impatient(sweep):
        if sweep == 3:
            raise TimeoutError

    drawn = tempered(network, weights_of(network, 1), random_states(4, 1), on_sweep=impatient, **options)
    with pytest.raises(TimeoutError):
        next(drawn)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"burn_in": 31}, "burn_in from 32 up .* got 31.*pass betas"),
        ({"burn_in": -1, "betas": [1.0]}, "got -1"),
        ({"betas": [0.5, 0.2, 1.0]}, "rise .* got"),
        ({"betas": [0.5, 0.9]}, "rise .* to 1"),
        ({"betas": []}, "rise"),
        ({"betas": np.linspace(0, 1, 17)}, "at most 16"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(options, said):
    network = theory(4, 0)
    with pytest.raises(ValueError, match=said):
        tempered(network, weights_of(network, 1), random_states(4, 1), seed=1, **options)


def test_a_theory_without_formulae_and_one_without_atoms_have_their_draws():
    for atoms in (0, 3):
        network = network_of(NAMES[:atoms], [], [])
        cold = next(tempered(network, weights_of(network, 1), np.zeros((atoms, LANES)), seed=1))
        assert cold.x.shape == (atoms, LANES)
        assert not cold.broken.any()
        assert not cold.score.any()
