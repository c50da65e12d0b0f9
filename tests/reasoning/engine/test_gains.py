"""Searches over variables of many values: what they keep up to date is what is so, and groups are found."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.knowledge.clauses import Clauses
from lbm.reasoning.engine import alternatives, gains, values
from lbm.reasoning.engine import kicks as searches
from lbm.reasoning.engine.alternatives import Count
from lbm.reasoning.engine.duals import ascend, tables_of
from lbm.reasoning.engine.gains import heavy_of, move, recount, state_of, weigh
from lbm.reasoning.engine.kicks import kicks, tabu
from lbm.reasoning.engine.values import values_of

ATOMS = 8
LITERALS = st.integers(1, ATOMS).flatmap(lambda i: st.sampled_from([i, -i]))
CLAUSE = st.lists(LITERALS, min_size=1, max_size=4, unique_by=abs)


def one_of(atoms):
    """Exactly one of some atoms, as clauses."""
    return [list(atoms), *([-a, -b] for a, b in itertools.combinations(atoms, 2))]


GROUP = st.permutations(range(1, ATOMS + 1)).flatmap(
    lambda order: st.integers(2, 5).map(lambda size: [(row, 0) for row in one_of(order[:size])])
)
TWINS = st.tuples(LITERALS, LITERALS).filter(lambda t: abs(t[0]) != abs(t[1]))
TIES = TWINS.map(lambda t: [([t[0], -t[1]], 0), ([-t[0], t[1]], 0)])
ROWS = st.tuples(
    st.lists(st.one_of(GROUP, TIES), max_size=3).map(lambda lists: [row for rows in lists for row in rows]),
    st.lists(st.tuples(CLAUSE, st.integers(0, 9)), max_size=12),
).map(lambda pair: pair[0] + pair[1])
COUNTS = st.lists(
    st.tuples(
        st.lists(LITERALS, min_size=1, max_size=6, unique_by=abs),
        st.integers(0, 3),
        st.integers(0, 5),
        st.sampled_from([0, 0, 4, 7]),
    ).map(lambda t: Count(tuple(2 * (abs(x) - 1) + (x < 0) for x in t[0]), min(t[1:3]), max(t[1:3]), t[3])),
    max_size=3,
)
WORLDS = [np.array(world) for world in itertools.product([False, True], repeat=ATOMS)]


def clauses_of(rows):
    return Clauses.of([row for row, _ in rows], [weight for _, weight in rows], variables=ATOMS)


def price(rows, counts, world):
    """How far hard rules are broken, and the weight of soft ones, by the words alone."""
    hard = soft = 0
    for row, weight in rows:
        if not any(world[abs(x) - 1] == (x > 0) for x in row):
            hard, soft = hard + (not weight), soft + weight
    for count in counts:
        number = sum(world[code >> 1] != bool(code & 1) for code in count.codes)
        far = max(count.least - number, number - count.most, 0)
        hard, soft = hard + (0 if count.weight else far), soft + count.weight * (far > 0)
    return hard, soft


def begun(found, seed, number=0):
    """A random state of a space."""
    space = found.space
    rng = np.random.default_rng(seed)
    current = [int(rng.integers(a, b)) for a, b in itertools.pairwise(space.first.tolist())]
    return state_of(space, np.array(current, np.int32), heavy=heavy_of(space), seed=seed, number=number)


def known(state):
    """Everything that is kept up to date, without what is in no order."""
    variables, rules, notes = state.variables[:-1], state.rules[:-1], state.notes
    broken = sorted(state.rules[: notes[gains.BROKEN], gains.BREAKS].tolist())
    good = sorted(state.variables[: notes[gains.GOOD], gains.GOODS].tolist())
    columns = [gains.COUNT, gains.MIXED, gains.OVER, gains.WEIGHT]
    return (
        state.gain.tolist(),
        variables[:, [gains.CURRENT, gains.DELTA, gains.MARK]].tolist(),
        rules[:, columns].tolist(),
        state.parts[:-1, gains.TRUE].tolist(),
        notes[: gains.TOUCHED + 1].tolist(),
        broken,
        good,
    )


@given(ROWS, COUNTS, st.integers(0, 999))
def test_what_is_kept_up_to_date_is_what_is_worked_out_from_nothing(rows, counts, seed):
    found = values_of(ATOMS, clauses_of(rows), counts)
    if found is None:
        return
    state = begun(found, seed)
    rng = np.random.default_rng(seed)
    for step in range(20):
        v = int(rng.integers(found.space.variables))
        first, end = found.space.first[v : v + 2].tolist()
        move(state, v, int(rng.integers(first, end)))
        if step % 7 == 6:
            tabu(state, step=1 + step, calm=3, idle=5, work=60)
        kept = known(state)
        recount(state)
        assert known(state) == kept


@given(ROWS, COUNTS, st.integers(0, 999))
def test_a_state_costs_what_its_world_costs(rows, counts, seed):
    found = values_of(ATOMS, clauses_of(rows), counts)
    if found is None:
        return
    state = begun(found, seed)
    world = found.atoms(state.current)
    hard, soft = price(rows, counts, world)
    assert state.notes[gains.COST] == soft
    assert (state.notes[gains.BROKEN] > 0) == (hard > 0)
    assert found.slots(world).tolist() == state.current.tolist()


@settings(max_examples=60)
@given(ROWS, COUNTS, st.integers(0, 99))
def test_no_world_is_lost_and_searches_find_a_best_one(rows, counts, seed):
    models = [(price(rows, counts, world)[1], world) for world in WORLDS if not price(rows, counts, world)[0]]
    found = values_of(ATOMS, clauses_of(rows), counts)
    if found is None:
        assert not models
        return
    for _, world in models:
        assert (found.atoms(found.slots(world)) == world).all()
    if not models:
        return
    best = min(cost for cost, _ in models)
    costs = []
    for number in range(6):
        state = begun(found, seed, number)
        if number % 2:
            weigh(state, 1)
            tabu(state, step=1, calm=10, idle=200, work=60_000)
        else:
            kicks(state, length=(0, 5, 50)[number // 2], work=60_000)
        if state.cost is not None:
            costs.append(state.cost)
            assert price(rows, counts, found.atoms(state.best)) == (0, state.cost)
    assert min(costs) == best


def test_groups_are_one_variable_and_those_that_depend_on_another_go_into_it():
    x, y = [1, 2, 3, 4], [5, 6, 7, 8]
    rows = one_of(x) + one_of(y)
    rows += [[-a, -b] for i, a in enumerate(x) for j, b in enumerate(y) if j != (i + 1) % 4]
    found = values_of(8, Clauses.of(rows, variables=8))
    assert found.groups.tolist() == [4, 4]
    assert (found.space.variables, found.joined) == (1, 1)
    assert sorted(found.atoms(np.array([p])).nonzero()[0].tolist() for p in range(4)) == [
        [0, 5],
        [1, 6],
        [2, 7],
        [3, 4],
    ]


def test_ties_that_contradict_one_another_leave_nothing():
    x, y = [1, 2, 3, 4], [5, 6, 7, 8]
    rows = one_of(x) + one_of(y)
    rows += [[-a, -b] for a in x for b in y if (a + b) % 4]
    assert values_of(8, Clauses.of([*rows, *([-a, -b] for a in x for b in y)], variables=8)) is None


def test_a_chain_of_equivalences_is_one_variable():
    rows = [row for i in range(1, 6) for row in ([i, -(i + 1)], [-i, i + 1])]
    found = values_of(6, Clauses.of([*rows, [1, 2, 3]], [0] * 10 + [4], variables=6))
    assert found.space.variables == 1
    assert len(found.space.owner) == 2
    round_trip = values_of(3, Clauses.of([[1, 2], [-1, -2], [2, 3], [-2, -3], [1, 3], [-1, -3]], variables=3))
    assert round_trip is None  # three, each unlike the others


def test_one_value_and_many_values():
    alone = values_of(1, Clauses.of([], variables=1), [Count((0,), 1, 1, 0)])
    assert alone.space.variables == 1
    many = 10_000
    found = values_of(
        many,
        Clauses.of([[i] for i in range(1, many)], [3] * (many - 1), variables=many),
        [Count(tuple(range(0, 2 * many, 2)), 1, 1, 0)],
    )
    assert found.space.variables == 1
    state = state_of(found.space, found.space.first[:-1], heavy=heavy_of(found.space), seed=1, number=0)
    kicks(state, length=5, work=1_000_000)
    assert state.cost == 3 * (many - 2)


def test_overlapping_groups_are_told_apart():
    rows = one_of([1, 2, 3]) + one_of([3, 4, 5])
    found = values_of(5, Clauses.of(rows, variables=5))
    assert found.groups.tolist() == [3]
    for world in itertools.product([False, True], repeat=5):
        x = np.array(world)
        if price([(row, 0) for row in rows], [], x)[0] == 0:
            assert (found.atoms(found.slots(x)) == x).all()


def test_compiled_searches_are_what_the_source_says(monkeypatch):
    rows = [(row, 0) for row in one_of([1, 2, 3])] + [
        ([4, 5, -1], 0),
        ([6, -2, 7], 3),
        ([-6, -7], 4),
        ([3], 2),
    ]
    rows += [([8, -4], 0), ([-8, 4], 0), ([-5, -6, -8, 7], 0), ([-3, -5], 0)]
    counts = [Count((6, 8, 11, 13), 1, 2, 0), Count((1, 7, 9, 12), 0, 1, 5)]

    def run():
        found = values_of(ATOMS, clauses_of(rows), counts)
        state = begun(found, 3)
        kicks(state, length=4, work=1_500)
        kicks(state, length=0, work=1_500)
        kept = known(state)
        weigh(state, 1)
        tabu(state, step=2, calm=4, idle=9, work=1_500)
        tabu(state, step=2, calm=4, idle=9, work=1_500, scan=2)
        return kept, known(state), state.cost

    fast = run()
    for module in (alternatives, gains, values, searches):
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    assert run() == fast


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_finds_the_same(seed):
    rows = [(row, 0) for row in one_of([1, 2, 3, 4])] + [([-1, 5], 0), ([5, 6, 7], 3), ([-5, -6], 4)]
    found = values_of(ATOMS, clauses_of(rows))
    states = [begun(found, seed) for _ in range(2)]
    for state in states:
        kicks(state, length=3, work=5_000)
        tabu(state, step=2, calm=4, idle=9, work=5_000)
    assert known(states[0]) == known(states[1])


# --- bounds ----------------------------------------------------------------------------------------


def states_of(space):
    """All states, a value of each variable from 0 on."""
    sizes = np.diff(space.first).tolist()
    return [np.array(state) for state in itertools.product(*map(range, sizes))]


@settings(max_examples=60, deadline=None)
@given(ROWS, COUNTS, st.integers(1, 40), st.booleans())
def test_no_bound_passes_the_cheapest_state_and_what_states_cost_stays(rows, counts, sweeps, back):
    found = values_of(ATOMS, clauses_of(rows), counts)
    if found is None:
        return
    tables = tables_of(found.space, 1_000)
    states = states_of(found.space)
    before = [tables.cost(state) for state in states]
    bounds = []
    for _ in range(3):
        bounds.append(tables.bound)
        ascend(tables, sweeps, back=back)
    bounds.append(tables.bound)
    assert [tables.cost(state) for state in states] == before
    assert bounds[-1] <= min(before)
    for state, cost in zip(states, before, strict=True):
        hard, soft = price(rows, counts, found.atoms(found.space.first[:-1] + state))
        if not hard:
            assert cost <= soft
    least = min(
        (
            soft
            for hard, soft in (
                price(rows, counts, found.atoms(found.space.first[:-1] + state)) for state in states
            )
            if not hard
        ),
        default=None,
    )
    assert least is None or bounds[-1] <= least
