"""Walks: what they say a state costs is what it costs, and no single flip from their best is better."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbm.knowledge.clauses import Clauses
from lbm.reasoning.engine.walks import STREAM, _focused, _lay, _walk, _words, focused, ground_of, walk
from tests.reference.streams import words

ATOMS = 7
LITERALS = st.integers(1, ATOMS).flatmap(lambda i: st.sampled_from([i, -i]))
CLAUSES = st.lists(st.tuples(st.lists(LITERALS, max_size=4), st.integers(0, 9)), min_size=1, max_size=25)


def weighted(rows):
    """Clauses with their weights; 0 is hard, literals may repeat or contradict one another."""
    return Clauses.of([clause for clause, _ in rows], [weight for _, weight in rows], variables=ATOMS)


def price(rows, world):
    """How many hard clauses a world breaks, and the weight of the soft ones, by the words alone."""
    false = [w for clause, w in rows if not any(world[abs(x) - 1] == (x > 0) for x in clause)]
    return false.count(0), sum(false)


def cost_of(rows, world):
    """What a walk minimises: a hard clause costs 1 more than all the soft clauses of one atom."""
    can_be_false = [(clause, w) for clause, w in rows if not any(-x in clause for x in clause)]
    around = [sum(w for clause, w in can_be_false if i in map(abs, clause)) for i in range(1, ATOMS + 1)]
    broken, lost = price(rows, world)
    return lost + broken * (1 + max(around))


@given(CLAUSES, st.integers(0, 1000), st.integers(0, 3), st.integers(0, 60))
def test_a_walk_ends_in_the_best_world_it_met_and_knows_what_that_costs(rows, seed, number, idle):
    x = np.random.default_rng(seed).integers(0, 2, ATOMS).astype(np.uint8)
    found = walk(ground_of(weighted(rows)), x, idle=idle, seed=seed, number=number)
    assert found.cost == cost_of(rows, found.x)
    assert found.cost <= cost_of(rows, x)
    for i in range(ATOMS) if idle else ():
        near = found.x.copy()
        near[i] ^= 1
        assert found.cost <= cost_of(rows, near)


@given(CLAUSES, st.integers(0, 1000))
def test_long_walks_find_a_best_world_of_a_small_theory(rows, seed):
    ground = ground_of(weighted(rows))
    every = [[value >> i & 1 for i in range(ATOMS)] for value in range(1 << ATOMS)]
    x = np.zeros(ATOMS, np.uint8)
    found = min((walk(ground, x, idle=500, seed=seed + k, number=k) for k in range(4)), key=lambda w: w.cost)
    assert price(rows, found.x) == min(price(rows, world) for world in every)


def test_compiled_walks_are_what_the_source_says():
    rows = [([1, -2], 3), ([2, 3, 3], 0), ([-1, 1], 5), ([-3], 2), ([4, -5, 6], 1), ([], 4)]
    clauses = weighted(rows)
    ground = ground_of(clauses)
    assert len(ground.weights) == 5  # one is always true
    x = np.zeros(ATOMS, np.uint8)
    found = walk(ground, x, idle=20, seed=9)
    best = x.copy()
    arrays = (ground.literals, ground.starts, ground.weights, ground.first, ground.places)
    assert (found.cost, found.flips) == tuple(
        map(int, _walk.py_func(*arrays, x.copy(), best, 20, 50_000, 8, 10, 9, 0, 0))
    )
    assert (best == found.x).all()
    literals, starts, weights = np.empty(9, np.int32), np.zeros(7, np.int64), np.empty(6, np.int64)
    first, places, around = np.zeros(ATOMS + 1, np.int64), np.empty(9, np.int32), np.zeros(ATOMS)
    given_ = (clauses.literals, clauses.starts, clauses.weights)
    size, number = _lay.py_func(*given_, literals, starts, weights, first, places, around)
    assert literals[:size].tolist() == ground.literals.tolist()
    assert places[:size].tolist() == ground.places.tolist()
    assert number == 5


@given(CLAUSES, st.integers(0, 1000), st.integers(0, 200))
def test_a_focused_walk_counts_the_clauses_that_are_false_where_it_ends(rows, seed, flips):
    rows = [(clause, 0) for clause, _ in rows]
    x = np.random.default_rng(seed).integers(0, 2, ATOMS).astype(np.uint8)
    found = focused(ground_of(weighted(rows)), x, flips=flips, seed=seed)
    assert found.cost == price(rows, found.x)[0]
    assert found.flips <= flips
    assert found.flips == flips or not found.cost or any(not clause for clause, _ in rows)


@given(CLAUSES, st.integers(0, 1000))
def test_focused_walks_find_a_model_of_a_small_theory_if_there_is_one(rows, seed):
    rows = [(clause, 0) for clause, _ in rows]
    every = ([value >> i & 1 for i in range(ATOMS)] for value in range(1 << ATOMS))
    found = focused(ground_of(weighted(rows)), np.zeros(ATOMS, np.uint8), flips=20_000, seed=seed)
    assert (found.cost == 0) == any(price(rows, world) == (0, 0) for world in every)


def test_a_compiled_focused_walk_is_what_the_source_says():
    rng = np.random.default_rng(0)
    atoms = [rng.choice(ATOMS, 3, replace=False) + 1 for _ in range(29)]
    rows = [((some * rng.choice([-1, 1], 3)).tolist(), 0) for some in atoms]
    ground = ground_of(weighted(rows))
    x = np.zeros(ATOMS, np.uint8)
    found = focused(ground, x, flips=60, seed=4)
    arrays = (ground.literals, ground.starts, ground.weights, ground.first, ground.places)
    table = (0.9 + np.arange(int(np.diff(ground.first).max()) + 1)) ** -2.06
    with np.errstate(over="ignore"):
        assert tuple(map(int, _focused.py_func(*arrays, x, 60, table, 4, 0, 0))) == found[1:]
    assert (x == found.x).all()


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**20))
def test_their_random_words_are_those_of_their_position(seed, flip, number):
    expected = words(seed, flip, [0, 1], [number], stream=STREAM)[:, 0].tolist()
    assert list(map(int, _words(seed & 0xFFFFFFFF, seed >> 32, flip, number))) == expected
    with np.errstate(over="ignore"):
        assert list(map(int, _words.py_func(seed & 0xFFFFFFFF, seed >> 32, flip, number))) == expected


def test_weights_too_large_to_be_summed_are_refused():
    assert ground_of(weighted([([1], 1 << 61), ([1, 2], 0), ([2], 0)])) is None
    assert ground_of(weighted([([1], 1 << 40), ([1, 2], 0)])) is not None
