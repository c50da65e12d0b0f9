"""A word is a function of its position alone, and words of neighbours know nothing of each other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.reasoning.engine import kernels
from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES, network_of_clauses
from lbm.reasoning.engine.streams import BITS, MAX_SWEEPS, key_of, philox, seed_from, uniforms
from tests.reference.streams import words

ONES = 0xFFFFFFFF
seeds = st.one_of(st.sampled_from([0, 1, ONES, 1 << 32, (1 << 64) - 1]), st.integers(0, (1 << 64) - 1))
counters = st.one_of(st.sampled_from([0, 1, ONES]), st.integers(0, ONES))
positions = st.fixed_dictionaries(
    {
        "quad": st.one_of(st.sampled_from([0, 1, (1 << 29) - 1]), st.integers(0, 1 << 20)),
        "sweep": st.one_of(st.sampled_from([0, MAX_SWEEPS - 1]), st.integers(0, MAX_SWEEPS - 1)),
        "lane": st.one_of(st.sampled_from([0, 64, (1 << 32) - 64]), st.integers(0, (1 << 32) - 64)),
        "stream": st.sampled_from([0, 1, 2, ONES]),
    }
)


# --- the generator ---------------------------------------------------------------------------------


def philox_in_whole_numbers(counter, key):
    """Return what the paper says, in numbers without end. [Salmon et al. 2011, section 3.3]"""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 1 << 32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % (1 << 32), (k1 + 0xBB67AE85) % (1 << 32)
    return [c0, c1, c2, c3]


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([ONES] * 4, [ONES] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],  # digits of pi
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, answer):
    assert " ".join(f"{word:08x}" for word in philox(counter, key)) == answer


@given(st.tuples(*[counters] * 4), st.tuples(*[counters] * 2))
def test_philox_does_what_its_paper_says_with_every_counter_and_key(counter, key):
    assert philox(counter, key).tolist() == philox_in_whole_numbers(counter, key)


def filled(seed, quad, sweep, lane, stream=0):
    found = np.zeros((4, LANES), np.uint32)
    kernels.fill(found, *key_of(seed), quad, sweep, lane, stream)
    return found


@given(seeds, positions)
def test_kernels_write_the_word_that_belongs_to_the_position(seed, position):
    found = filled(seed, **position)
    which = np.arange(4) + 4 * position["quad"]
    chains = position["lane"] + np.arange(LANES)
    expected = words(seed, position["sweep"], which, chains, stream=position["stream"])
    assert (found == expected).all()
    key, lane = (seed % (1 << 32), seed >> 32), position["lane"] + 5
    four = philox_in_whole_numbers((position["quad"], position["sweep"], lane, position["stream"]), key)
    assert found[:, 5].tolist() == [word >> 1 for word in four]
    assert found.max() < 1 << BITS


@given(seeds, st.lists(st.integers(0, 40), min_size=1, max_size=9), st.lists(st.integers(0, 40), max_size=9))
def test_a_word_does_not_depend_on_what_else_is_asked_for(seed, which, chains):
    everything = words(seed, 3, range(41), range(41))
    assert (words(seed, 3, which, chains) == everything[np.ix_(which, chains)]).all()


def test_uniform_numbers_are_never_0_and_never_1():
    ends = uniforms(np.array([0, 1, (1 << BITS) - 1], np.uint32))
    assert ends.tolist() == [2.0**-32, 3 * 2.0**-32, 1 - 2.0**-32]


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_seeds_have_64_bits(seed):
    with pytest.raises(ValueError, match=rf"expected a seed from 0 to 2\^64 - 1, got {seed}"):
        words(seed, 0, [0], [0])
    with pytest.raises(ValueError, match="expected a seed"):
        kernel_of(1.0, 4, seed)


def test_seeds_drawn_from_a_generator_fill_all_bits_and_repeat_with_it():
    drawn = [seed_from(np.random.default_rng(3)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    rng = np.random.default_rng(3)
    many = [seed_from(rng) for _ in range(64)]
    assert len(set(many)) == 64
    assert np.bitwise_or.reduce(np.array(many, np.uint64)) == (1 << 64) - 1
    assert np.bitwise_and.reduce(np.array(many, np.uint64)) == 0


# --- neighbours ------------------------------------------------------------------------------------

SEED = 20_21
ATOMS, CHAINS = 256, 512


def block(*, seed=SEED, sweep=5, first=0, lane=0, stream=0):
    return words(seed, sweep, range(first, first + ATOMS), range(lane, lane + CHAINS), stream=stream)


NEIGHBOURS = {
    "the next chain": {"lane": 1},
    "the chain after that": {"lane": 2},
    "the next block of chains": {"lane": LANES},
    "a far block of chains": {"lane": LANES << 20},
    "the next sweep": {"sweep": 6},
    "the sweep after that": {"sweep": 7},
    "a late sweep": {"sweep": MAX_SWEEPS - 1},
    "the next atom": {"first": 1},
    "the atom after that": {"first": 2},
    "the next four atoms": {"first": 4},
    "the next seed": {"seed": SEED + 1},
    "a seed that differs in its upper half": {"seed": SEED + (1 << 32)},
    "the next stream": {"stream": 1},
}


@pytest.fixture(scope="module")
def here():
    return block()


@pytest.mark.parametrize("other", NEIGHBOURS)
def test_neighbours_are_uncorrelated_as_numbers_and_bit_by_bit(other, here):
    there = block(**NEIGHBOURS[other])
    number = here.size
    u, v = uniforms(here).ravel() - 0.5, uniforms(there).ravel() - 0.5
    # A product of two independent numbers has mean 0 and variance 1/144.
    assert abs(np.mean(u * v)) < 4 / 12 / math.sqrt(number)
    assert abs(np.mean((u * u - 1 / 12) * (v * v - 1 / 12))) < 4 / 180 / math.sqrt(number)
    bits = np.unpackbits((here ^ there).view(np.uint8).reshape(number, 4), axis=1, bitorder="little")
    assert not bits[:, BITS].any()
    differ = bits[:, :BITS].mean(axis=0)
    # Half of all pairs of bits differ: 31 of them, each within five standard errors.
    assert (np.abs(differ - 0.5) < 5 * 0.5 / math.sqrt(number)).all(), differ


def test_words_are_even_in_every_bit_and_in_every_sixteenth(here):
    number = here.size
    bits = np.unpackbits(here.view(np.uint8).reshape(number, 4), axis=1, bitorder="little")
    assert (np.abs(bits[:, :BITS].mean(axis=0) - 0.5) < 5 * 0.5 / math.sqrt(number)).all()
    for shift in (0, BITS - 4):
        found = np.bincount((here >> np.uint32(shift) & np.uint32(15)).ravel(), minlength=16)
        chi = np.sum((found - number / 16) ** 2) / (number / 16)
        assert abs(chi - 15) < 4 * math.sqrt(30)


def test_chains_start_from_even_states_of_a_stream_of_their_own():
    states = random_states(2000, 9)
    assert states.shape == (2000, LANES)
    assert set(np.unique(states)) == {0, 1}
    assert abs(states.mean() - 0.5) < 4 * 0.5 / math.sqrt(states.size)
    first = words(9, 0, range(2000), range(LANES)) >> np.uint32(BITS - 1)
    assert abs((first != states).mean() - 0.5) < 4 * 0.5 / math.sqrt(states.size)
    low = words(9, 0, range(2000), range(LANES)) & 1
    assert abs((low != states).mean() - 0.5) < 4 * 0.5 / math.sqrt(states.size)
    # Blocks are parts of one array: chain 64 + l has the same state whichever block asks for it.
    assert (random_states(10, 9, lane=3)[:, : LANES - 3] == states[:10, 3:]).all()
    assert (random_states(10, 10) != states[:10]).any()


# --- tails -----------------------------------------------------------------------------------------

RARE = 24
TAIL_ATOMS, TAIL_SWEEPS = 50_000, 64


def kernel_of(odds, atoms, seed):
    """Return chains in which every atom by itself has these log-odds, all false."""
    numbers = np.arange(atoms + 1)
    network = network_of_clauses(
        atoms, numbers[1:].astype(np.int32), numbers, np.full(atoms, odds), np.zeros(atoms)
    )
    return start(network, weights_of(network, 1.0), np.zeros((atoms, LANES)), seed=seed)


def became_true(lanes, sweeps):
    """Return the sweep, atom and chain of every state that is true after a sweep."""
    met = []

    def look(lanes):
        if lanes.x.any():
            met.extend((lanes.sweep - 1, *place) for place in np.argwhere(lanes.x).tolist())

    advance(lanes, np.ones(sweeps), every=1, after=look)
    return met


def test_events_of_probability_2_to_the_minus_24_are_as_many_as_chance_says_and_where_the_words_say():
    """An atom of odds 1 to 2^24 - 1 is true where its word is below 2^(31 - 24), by table or formula."""
    lanes = kernel_of(-math.log(2**RARE - 1), TAIL_ATOMS, SEED)
    assert lanes.weights.whole
    met = became_true(lanes, TAIL_SWEEPS)
    found = np.array([words(SEED, sweep, [which], [lane])[0, 0] for sweep, which, lane in met])
    assert (found < 1 << (BITS - RARE)).all()
    number = TAIL_ATOMS * LANES * TAIL_SWEEPS
    for bits in (RARE, RARE + 1, RARE + 2):
        expected = number / 2**bits
        assert abs(np.sum(found < 1 << (BITS - bits)) - expected) <= 4 * math.sqrt(expected)
    assert len({sweep for sweep, _, _ in met}) > 3
    assert len({lane for _, _, lane in met}) > 3

    floats = type(lanes.weights)(lanes.weights.numbers * lanes.weights.unit, 1.0, 0.0, 20.0)
    again = start(lanes.network, floats, np.zeros((TAIL_ATOMS, LANES)), seed=SEED)
    assert not again.weights.whole
    some = TAIL_SWEEPS // 8
    assert became_true(again, some) == [place for place in met if place[0] < some] != []
