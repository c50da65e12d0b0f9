"""Bit-sliced chains are those of plain arithmetic on the same random bits, and keep their distribution."""

import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.knowledge.formula import atom, cardinality
from lbm.reasoning.engine import sliced as module
from lbm.reasoning.engine.lanes import weights_of
from lbm.reasoning.engine.network import network_of, network_of_clauses
from lbm.reasoning.engine.sliced import advance_sliced, kept, random_rows, sliced_of, unpack
from lbm.reasoning.engine.streams import key_of, philox
from tests.oracles import truth, worlds

CHAINS = 512
KERNELS = "_spell _keep _sweeps".split()


# --- the oracle --------------------------------------------------------------------------------------


def network(atoms, clauses):
    """Return the network of pairs (literals, weight)."""
    literals = np.array([literal for clause, _ in clauses for literal in clause], np.int32)
    starts = np.cumsum([0, *(len(clause) for clause, _ in clauses)], dtype=np.int64)
    soft = np.array([weight for _, weight in clauses], np.float64)
    return network_of_clauses(atoms, literals, starts, soft, np.zeros(len(clauses)))


def sliced(atoms, clauses):
    made = network(atoms, clauses)
    found = sliced_of(made, weights_of(made, 0.0))
    assert found is not None
    return found


def pack(states):
    """Return states, shape (atoms, 512), as rows."""
    return np.ascontiguousarray(np.packbits(states, axis=1, bitorder="little")).view("<u8").reshape(-1, 8)


def is_true(clause, x):
    found = np.zeros(x.shape[1], bool)
    for literal in clause:
        found |= x[abs(literal) - 1] == (literal > 0)
    return found


def fine(clauses, x):
    """Return in which chains every clause is as its weight wants it."""
    found = np.ones(x.shape[1], bool)
    for clause, weight in clauses:
        found &= (is_true(clause, x) == (weight > 0)) | (weight == 0)
    return found


def log_weight(clauses, x):
    return sum((weight * is_true(clause, x) for clause, weight in clauses), np.zeros(x.shape[1], np.int64))


@lru_cache(64)
def draw(seed, sweep, atom, number, lane):
    """Return u of every chain, as whole numbers below 2^64: bit by bit, from the positions promised."""
    at, word = np.meshgrid(np.arange(32), lane // 64 + np.arange(8), indexing="ij")
    fixed = np.ones_like(at)
    out = philox([atom * fixed, sweep * fixed, word, 65536 + 32 * number + at], key_of(seed))
    bits = (out[..., None] >> np.arange(32, dtype=np.uint32)) & 1  # (4, 32 counters, 8 words, 32 chains)
    halves = np.stack([bits[:2], bits[2:]])  # (bit, half of the chains, counter, word, chain)
    every = halves.transpose(2, 0, 3, 1, 4).reshape(64, CHAINS).astype(np.uint64)
    return (every << np.arange(63, -1, -1, dtype=np.uint64)[:, None]).sum(axis=0, dtype=np.uint64)


def plain(atoms, clauses, x, betas, *, seed, sweep=0, lane=0):
    """Return the states after these sweeps: gains by brute force, chances one by one."""
    x = x.copy()
    unit = math.gcd(*(weight for _, weight in clauses)) or 1
    met = [[] for _ in range(atoms)]
    for clause, weight in clauses:
        for literal in clause:
            met[abs(literal) - 1].append((clause, weight))
    for s, beta in enumerate(betas):
        for i, mine in enumerate(met):
            other = x.copy()
            other[i] = ~x[i]
            gain = (log_weight(mine, other) - log_weight(mine, x)) // unit
            if beta == 0:
                gain[:] = 0
            flips = np.where(gain == 0, draw(seed, sweep + s, i, 0, lane) < 1 << 63, True)
            used = np.zeros(CHAINS, int)
            for worth in (4096, 256, 16, 1):
                digit = np.maximum(-gain, 0) // worth % 16
                for value in set(digit[digit > 0].tolist()):
                    chance = math.exp(-beta * unit * worth * value)
                    for number in set(used[digit == value].tolist()):
                        less = draw(seed, sweep + s, i, number, lane) < min(
                            round(chance * 2.0**64), 2**64 - 1
                        )
                        flips &= less | (digit != value) | (used != number)
                used += digit > 0
            x[i] ^= flips
    return x


@st.composite
def theories(draw, weights):
    """Return atoms and clauses of 1 to 5 literals; atoms may be in none of them."""
    atoms = draw(st.integers(1, 7))
    clause = st.dictionaries(st.integers(1, atoms), st.sampled_from([1, -1]), min_size=1, max_size=5)
    literals = clause.map(lambda signs: [sign * i for i, sign in signs.items()])
    return atoms, draw(st.lists(st.tuples(literals, weights), max_size=20))


def random_clauses(rng, atoms, number, sizes, weights):
    found = []
    for _ in range(number):
        chosen = rng.choice(atoms, rng.choice(sizes), replace=False) + 1
        signs = rng.choice([-1, 1], len(chosen))
        found.append(((chosen * signs).tolist(), int(rng.choice(weights))))
    return found


def random_states(atoms, seed):
    return np.random.default_rng(seed).random((atoms, CHAINS)) < 0.5


# --- the same chains ---------------------------------------------------------------------------------

small = st.integers(-3, 10)
wide = st.sampled_from([1, 2, 3, 14, 17, 255, -256, 700, 2000])  # sums of up to three digits
positions = st.tuples(
    st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 4), st.integers(0, 2**20).map(lambda w: 64 * w)
)


@settings(max_examples=20)
@given(
    st.one_of(theories(small), theories(wide)),
    st.lists(st.sampled_from([0.0, 0.001, 0.05, 0.3, 1.0, 4.0, math.inf]), min_size=1, max_size=3),
    positions,
    st.integers(0, 2**30),
)
def test_chains_are_those_of_plain_arithmetic_on_the_same_bits(theory, betas, position, begin):
    atoms, clauses = theory
    seed, sweep, lane = position
    start = random_states(atoms, begin)
    x = pack(start)
    where = {"seed": seed, "sweep": sweep, "lane": lane}
    assert advance_sliced(sliced(atoms, clauses), x, betas, **where) == len(betas)
    assert np.array_equal(unpack(x), plain(atoms, clauses, start, betas, **where))


@settings(max_examples=20)
@given(st.one_of(theories(small), theories(wide)), st.integers(0, 2**32))
def test_kept_clauses_are_those_of_every_chain(theory, seed):
    atoms, clauses = theory
    made = sliced(atoms, clauses)
    x = random_rows(atoms, seed=seed)
    assert np.array_equal(unpack(kept(made, x)[None])[0], fine(clauses, unpack(x)))


def test_compiled_kernels_do_what_their_python_says(monkeypatch):
    rng = np.random.default_rng(1)
    clauses = random_clauses(rng, 9, 40, [1, 2, 3, 4], [1, 1, 2, 5, 40, -3])
    easy = [([1, 2, 3], 1), ([-1, 2], 1), ([2], 1), ([3], 1)]
    runs = [(sliced(9, clauses), random_rows(9, seed=2), [0.0, 0.02, 0.02, 0.3, 5.0], False)]
    runs += [(sliced(3, easy), np.zeros((3, 8), np.uint64), [1.0] * 9, True)]

    def results():
        for made, start, betas, stop in runs:
            x = start.copy()
            yield advance_sliced(made, x, betas, seed=3, sweep=4, stop=stop), x, kept(made, x)

    compiled = list(results())
    monkeypatch.setattr(module, "CACHED", 0)
    for name in KERNELS:
        monkeypatch.setattr(module, name, getattr(module, name).py_func)
    for one, other in zip(compiled, results(), strict=True):
        assert all(map(np.array_equal, one, other))
    assert compiled[1][0] < 9


def test_sweeps_may_be_cut_anywhere(monkeypatch):
    rng = np.random.default_rng(2)
    clauses = random_clauses(rng, 60, 250, [3], range(1, 11))
    made, start = sliced(60, clauses), random_rows(60, seed=2)
    betas = np.linspace(0, 0.5, 12)
    x, y, z = start.copy(), start.copy(), start.copy()
    advance_sliced(made, x, betas, seed=5, sweep=7)
    for s, beta in enumerate(betas):
        advance_sliced(made, y, beta, seed=5, sweep=7 + s)
    assert np.array_equal(x, y)
    value = kept(made, x)
    monkeypatch.setattr(module, "WORK", 900)  # several calls for a sweep, and for what is kept
    advance_sliced(made, z, betas, seed=5, sweep=7)
    assert np.array_equal(x, z)
    assert np.array_equal(value, kept(made, z))


@pytest.mark.parametrize("work", [module.WORK, 900])
def test_it_stops_after_the_first_sweep_that_leaves_a_chain_with_everything_kept(work, monkeypatch):
    monkeypatch.setattr(module, "WORK", work)
    rng = np.random.default_rng(4)
    planted = rng.random(60) < 0.5
    clauses = [
        (clause, weight)
        for clause, weight in random_clauses(rng, 60, 300, [3], [1])
        if is_true(clause, planted[:, None])[0]
    ]
    made, x, y = sliced(60, clauses), random_rows(60, seed=1), random_rows(60, seed=1)
    betas = np.geomspace(0.3, 5, 400)
    done = advance_sliced(made, x, betas, seed=6, stop=True)
    assert 1 < done < len(betas)
    for s in range(done):
        assert not kept(made, y).any()
        advance_sliced(made, y, betas[s], seed=6, sweep=s, stop=True)
    assert np.array_equal(x, y)
    assert kept(made, x).any()
    best = np.flatnonzero(unpack(kept(made, x)[None])[0])
    assert (log_weight(clauses, unpack(x, best)) == len(clauses)).all()


def test_many_atoms_are_updated_as_few_are():
    """Past some thousand atoms rows are asked for ahead of time."""
    rng = np.random.default_rng(5)
    atoms = module.CACHED + 4
    clauses = random_clauses(rng, atoms, 3000, [3], [1, 2, 3])
    x = random_rows(atoms, seed=7)
    start = unpack(x)
    made = sliced(atoms, clauses)
    advance_sliced(made, x, [0.5], seed=8)
    assert np.array_equal(unpack(x), plain(atoms, clauses, start, [0.5], seed=8))
    few = clauses[:9]
    assert np.array_equal(unpack(kept(sliced(atoms, few), x)[None])[0], fine(few, unpack(x)))


def test_a_chain_depends_on_its_own_number_only():
    rng = np.random.default_rng(6)
    made = sliced(30, random_clauses(rng, 30, 120, [2, 3], [1, 2]))
    x, y = random_rows(30, seed=9), random_rows(30, seed=9, lane=64)
    assert np.array_equal(x[:, 1:], y[:, :-1])
    advance_sliced(made, x, np.full(5, 0.4), seed=9)
    advance_sliced(made, y, np.full(5, 0.4), seed=9, lane=64)
    assert np.array_equal(x[:, 1:], y[:, :-1])
    assert not np.array_equal(x, y)


@pytest.mark.parametrize("scale", [0.5, 8, 3])
def test_a_common_factor_of_the_weights_is_one_of_beta(scale):
    rng = np.random.default_rng(7)
    clauses = random_clauses(rng, 30, 120, [1, 2, 3], range(1, 11))
    scaled = [(clause, scale * weight) for clause, weight in clauses]
    one, other = sliced(30, clauses), sliced(30, scaled)
    x, y = random_rows(30, seed=9), random_rows(30, seed=9)
    advance_sliced(one, x, np.full(9, 0.3), seed=9)
    advance_sliced(other, y, np.full(9, 0.3 / scale), seed=9)
    assert np.array_equal(x, y)


# --- the distribution --------------------------------------------------------------------------------


def exact(atoms, clauses, beta):
    """Return every world, shape (atoms, worlds), and its probability."""
    every = (np.arange(1 << atoms) >> np.arange(atoms)[:, None]) & 1 > 0
    weight = np.exp(beta * (log_weight(clauses, every) - log_weight(clauses, every).max()))
    return every, weight / weight.sum()


def compare(states, every, p, sigmas=4.0):
    """Check the marginals of atoms and of pairs that are equal, for independent chains."""
    pairs = [(i, j) for i in range(len(every)) for j in range(i)]
    worlds = np.concatenate([every, [every[i] == every[j] for i, j in pairs]])
    seen = np.concatenate([states, [states[i] == states[j] for i, j in pairs]]).mean(axis=1)
    expected = worlds @ p
    error = np.sqrt(expected * (1 - expected) / states.shape[1])
    assert (np.abs(seen - expected) <= sigmas * error + 1e-12).all()


LAWS = [(8, 30, 0.3, range(1, 6)), (6, 12, 1.0, [1, 2]), (9, 25, 0.05, [1, 7, 20, 33, -9]), (7, 20, 0.5, [1])]


@pytest.mark.parametrize(("atoms", "number", "beta", "weights"), LAWS)
def test_chains_started_at_the_exact_distribution_stay_there(atoms, number, beta, weights):
    rng = np.random.default_rng(number)
    clauses = random_clauses(rng, atoms, number, [1, 2, 3, 4, 5], weights)
    made = sliced(atoms + 1, clauses)  # the last atom is in no clause
    every, p = exact(atoms + 1, clauses, beta)
    states = []
    for block in range(60):
        x = pack(every[:, rng.choice(len(p), CHAINS, p=p)])
        advance_sliced(made, x, np.full(5, beta), seed=10, lane=CHAINS * block)
        states.append(unpack(x))
    compare(np.concatenate(states, axis=1), every, p)


@pytest.mark.parametrize(("atoms", "number", "beta", "weights"), LAWS)
def test_chains_reach_the_exact_marginals_from_all_false_within_200_sweeps(atoms, number, beta, weights):
    rng = np.random.default_rng(number)
    clauses = random_clauses(rng, atoms, number, [1, 2, 3, 4, 5], weights)
    made = sliced(atoms + 1, clauses)
    every, p = exact(atoms + 1, clauses, beta)
    states = []
    for block in range(60):
        x = np.zeros((atoms + 1, 8), np.uint64)
        advance_sliced(made, x, np.full(200, beta), seed=11, lane=CHAINS * block)
        states.append(unpack(x))
    compare(np.concatenate(states, axis=1), every, p)


# --- the random bits ---------------------------------------------------------------------------------


def flips(made, atoms, betas, seed):
    """Return for each sweep, each from the state of all true, which atoms flip: rows."""
    for sweep, beta in enumerate(betas):
        x = np.full((atoms, 8), ~np.uint64(0))
        advance_sliced(made, x, [beta], seed=seed, sweep=sweep)
        yield ~x


@pytest.mark.parametrize("beta", [0.002, 0.03, 0.2])
def test_a_loss_is_taken_with_the_probability_it_has(beta):
    losses = np.array([*range(1, 40), 64, 100, 240, 255, 256, 257, 272, 273, 511, 1000, 4096, 4097, 9000])
    made = sliced(len(losses), [([i + 1], int(loss)) for i, loss in enumerate(losses)])
    sweeps = 200
    seen = sum(np.bitwise_count(rows).sum(axis=1) for rows in flips(made, len(losses), [beta] * sweeps, 12))
    number = CHAINS * sweeps
    p = np.exp(-beta * losses)
    assert (np.abs(seen - number * p) <= 4 * np.sqrt(number * p * (1 - p)) + 1e-4 + (p * number < 1)).all()


def test_rare_flips_are_as_rare_as_they_should_be():
    """Far below 2^-24, where coarse random numbers would know only never; with one factor and with two."""
    losses = np.array([1] + [14] * 499 + [17] * 3500)
    made = sliced(len(losses), [([i + 1], int(loss)) for i, loss in enumerate(losses)])
    beta, sweeps = 24.5 * math.log(2) / 17, 500
    seen = sum(np.bitwise_count(rows).sum(axis=1) for rows in flips(made, len(losses), [beta] * sweeps, 13))
    for loss in (14, 17):
        mine = losses == loss
        expected = mine.sum() * CHAINS * sweeps * math.exp(-beta * loss)
        assert expected > 30
        assert abs(seen[mine].sum() - expected) < 4 * math.sqrt(expected)


def test_the_last_bits_of_a_probability_decide():
    """A chance that differs from a chain's own number by 2^-44 of it decides that chain, and no other."""
    made = sliced(1, [([1], 1)])
    u = draw(14, 0, 0, 0, 0)
    for chain in range(0, CHAINS, 4):
        for side in (-1, 1):
            p = int(u[chain]) / 2**64 * (1 + side * 2.0**-44)
            (rows,) = flips(made, 1, [-math.log(p)], 14)
            assert np.array_equal(unpack(rows)[0], (u < u[chain]) | ((u == u[chain]) & (side > 0)))


def test_bits_of_chains_atoms_sweeps_and_blocks_do_not_go_together():
    atoms, sweeps = 128, 64
    made = sliced(atoms, [])
    coins = np.stack([unpack(rows) for rows in flips(made, atoms, np.ones(sweeps), 15)]) - 0.5
    assert abs(coins.mean()) < 4 * 0.5 / math.sqrt(coins.size)
    by_chain = 2 * coins.reshape(-1, CHAINS)
    together = by_chain.T @ by_chain / len(by_chain)
    np.fill_diagonal(together, 0)
    assert np.abs(together).max() < 6 / math.sqrt(len(by_chain))
    for a, b in (
        (coins[1:], coins[:-1]),
        (coins[:, 1:], coins[:, :-1]),
        (coins[:, 4:], coins[:, :-4]),
        (coins[..., 64:], coins[..., :-64]),
    ):
        assert abs(4 * (a * b).mean()) < 4 / math.sqrt(a.size)


def test_random_states_are_fair_and_no_chain_draws_them_again():
    x = random_rows(20_000, seed=16)
    states = unpack(x)
    assert abs(states.mean() - 0.5) < 4 * 0.5 / math.sqrt(states.size)
    first = random_rows(100, seed=16)
    assert np.array_equal(first, x[:100])
    y = np.zeros_like(first)
    advance_sliced(sliced(100, []), y, [1.0], seed=16)
    assert abs((unpack(first) == unpack(y)).mean() - 0.5) < 4 * 0.5 / math.sqrt(first.size * 64)


# --- what fits, and what does not --------------------------------------------------------------------

P, Q, R = (atom(name) for name in "pqr")


@pytest.mark.parametrize(
    ("hard", "soft", "fits"),
    [
        ([P | ~Q, Q | R], [(~P | Q | R, 3.0)], True),
        ([], [(P & ~Q, 3.0), (P, 2.0)], True),  # a conjunction is a clause of negative weight
        ([P], [], True),
        ([], [(P | Q, 0.3), (P | R, 0.9)], True),
        ([], [], True),
        ([P ^ Q], [], False),
        ([cardinality("atmost", 1, [P, Q, R])], [], False),
        ([P | (Q & R)], [], False),
        ([], [(P | Q, 1.0), (R, 0.123)], False),
        ([], [(P | Q, 1.0), (P | R, 65534.0)], True),
        ([], [(P | Q, 1.0), (P | R, 65535.0)], False),
    ],
)
def test_clauses_with_small_whole_weights_fit(hard, soft, fits):
    made = network_of(["p", "q", "r", "s"], hard, soft)
    weights = weights_of(made, 2.0)
    found = sliced_of(made, weights)
    assert (found is not None) == fits
    if found is None:
        return
    x = random_rows(4, seed=17)
    assert advance_sliced(found, x, [0.5, 0.5], seed=18) == 2
    expected = np.zeros(CHAINS, bool)
    for world in worlds("pqrs"):
        here = (unpack(x) == np.array([*world.values()])[:, None]).all(axis=0)
        statements = [*((formula, 2.0) for formula in hard), *soft]
        expected[here] = all(truth(formula, world) == (weight > 0) for formula, weight in statements)
    assert np.array_equal(unpack(kept(found, x)[None])[0], expected)


def test_long_clauses_are_left_to_counters():
    assert sliced(129, [(list(range(1, 130)), 1)])
    made = network(130, [(list(range(1, 131)), 1)])
    assert sliced_of(made, weights_of(made, 0.0)) is None


@settings(max_examples=10)
@given(st.integers(0, 40), st.integers(0, 2**32))
def test_packing_loses_nothing(atoms, seed):
    states = random_states(atoms, seed)
    x = pack(states)
    assert x.shape == (atoms, 8)
    assert np.array_equal(unpack(x), states)
    chains = np.random.default_rng(seed).integers(0, CHAINS, 5)
    assert np.array_equal(unpack(x, chains), states[:, chains])


def test_wrong_arguments_are_named():
    made, x = sliced(3, [([1, 2], 1)]), random_rows(3, seed=0)
    wrong = [
        (r"uint64 rows of shape \(3, 8\), got float64 of", lambda: kept(made, np.zeros((3, 8)))),
        (r"got uint64 of shape \(2, 8\)", lambda: kept(made, x[:2])),
        ("got list: pack the states", lambda: advance_sliced(made, [], [1.0], seed=0)),
        ("expected contiguous", lambda: kept(made, np.asfortranarray(x))),
        ("β from 0 up", lambda: advance_sliced(made, x, [-1.0], seed=0)),
        ("β from 0 up", lambda: advance_sliced(made, x, [math.nan], seed=0)),
        ("2 from 4294967295 on", lambda: advance_sliced(made, x, [1, 1], seed=0, sweep=2**32 - 1)),
        ("a multiple of 64 below", lambda: advance_sliced(made, x, [1.0], seed=0, lane=32)),
        ("a seed from 0", lambda: advance_sliced(made, x, [1.0], seed=-1)),
    ]
    for message, call in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    assert advance_sliced(made, x, [], seed=0) == 0
    assert np.array_equal(x, random_rows(3, seed=0))
