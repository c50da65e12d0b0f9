"""Orders of elimination: their bags against plain elimination, their widths where the best is known."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.reasoning.budget import SPENT
from lbm.reasoning.exact.orders import banded_order, elimination_order

SIZES = (0.0, 1.0, math.log2(3), 5.0)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[float]]:
    number = draw(st.integers(0, 12))
    members = st.integers(0, max(0, number - 1))
    scopes = draw(
        st.lists(st.lists(members, max_size=4, unique=True).map(tuple), max_size=14 if number else 0)
    )
    one = st.just([1.0] * number)
    return scopes, draw(one | st.lists(st.sampled_from(SIZES), min_size=number, max_size=number))


def bags(scopes: list[tuple[int, ...]], order: tuple[int, ...]) -> list[set[int]]:
    """Return the variables of each step's table, by joining tables."""
    tables = [set(scope) for scope in scopes]
    found = []
    for variable in order:
        bag = {variable}.union(*(table for table in tables if variable in table))
        tables = [table for table in tables if variable not in table] + [bag - {variable}]
        found.append(bag)
    return found


@given(graphs(), st.integers(1, 4), st.sampled_from([0, 5, 50, 10**6]), st.sets(st.integers(0, 11)))
def test_width_and_cost_are_those_of_the_bags(
    graph: tuple[list[tuple[int, ...]], list[float]], rounds: int, steps: int, last: set[int]
) -> None:
    """Exactly where the steps last, and otherwise never less."""
    scopes, sizes = graph
    last &= set(range(len(sizes)))
    order = elimination_order(scopes, sizes, rounds=rounds, steps=steps, last=last)
    assert sorted(order.variables) == list(range(len(sizes)))
    assert set(order.variables[len(sizes) - len(last) :]) == last
    found = [sum(sizes[v] for v in bag) for bag in bags(scopes, order.variables)]
    width, cost = max(found, default=0.0), math.log2(sum(2**size for size in found)) if found else -math.inf
    if steps == 10**6:
        assert order.width == pytest.approx(width)
        assert order.cost == pytest.approx(cost)
    assert order.width >= width - 1e-9
    assert order.cost >= cost - 1e-9


@given(graphs())
def test_no_pair_is_joined_where_an_order_without_new_pairs_is_known(
    graph: tuple[list[tuple[int, ...]], list[float]],
) -> None:
    """The bags of one order, as scopes, have an order that makes no larger ones."""
    scopes, sizes = graph
    sizes = [1.0] * len(sizes)
    filled = [tuple(bag) for bag in bags(scopes, elimination_order(scopes, sizes).variables)]
    assert elimination_order(filled, sizes).width == max(map(len, filled), default=0)


@pytest.mark.parametrize("number", [10, 65, 129, 1000, 10_000])
def test_chains_and_rings_of_any_length_have_their_widths(number: int) -> None:
    chain = [(i, i + 1) for i in range(number - 1)]
    assert elimination_order(chain, [1.0] * number).width == 2
    assert elimination_order([*chain, (0, number - 1)], [1.0] * number).width == 3


def test_grids_are_not_much_wider_than_they_need_be() -> None:
    side = 12
    across = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    down = [(side * i + j, side * (i + 1) + j) for i in range(side - 1) for j in range(side)]
    assert elimination_order(across + down, [1.0] * side**2, rounds=20).width <= side + 5


def test_more_rounds_are_never_worse_and_the_same_each_time() -> None:
    rng = random.Random(3)
    scopes = [tuple(rng.sample(range(60), 3)) for _ in range(90)]
    costs = [elimination_order(scopes, [1.0] * 60, rounds=rounds).cost for rounds in (1, 3, 30)]
    assert costs == sorted(costs, reverse=True)
    assert elimination_order(scopes, [1.0] * 60, rounds=9) == elimination_order(scopes, [1.0] * 60, rounds=9)


def test_many_values_count_with_their_sizes() -> None:
    """A star with a large middle: leaves go first, though each step's neighbours are one."""
    star = [(0, leaf) for leaf in range(1, 9)]
    order = elimination_order(star, [10.0] + [1.0] * 8)
    assert order.width == 11
    assert order.variables[-1] == 0 or order.variables[-2] == 0


def test_out_of_time_there_is_an_order_all_the_same() -> None:
    scopes = list(combinations(range(40), 2))
    order = elimination_order(scopes, [1.0] * 40, rounds=5, budget=SPENT)
    assert sorted(order.variables) == list(range(40))
    assert order.width == 40


@given(st.lists(st.sets(st.integers(0, 11), min_size=1, max_size=4), min_size=1, max_size=20))
def test_a_banded_order_costs_what_it_says(scopes):
    sizes = [1.0 + 0.5 * (v % 3) for v in range(12)]
    found = banded_order([tuple(scope) for scope in scopes], sizes, most=math.inf)
    if found is None:
        assert all(len(scope) == 1 for scope in scopes)
        return
    assert sorted(found.variables) == list(range(12))
    tables, bags = [set(scope) for scope in scopes], []
    for variable in found.variables:
        bag = {variable}.union(*(table for table in tables if variable in table))
        tables = [table for table in tables if variable not in table] + [bag - {variable}]
        bags.append(sum(sizes[v] for v in bag))
    assert found.width == pytest.approx(max(bags))
    assert found.cost == pytest.approx(math.log2(sum(2**bag for bag in bags)))
    assert banded_order([tuple(scope) for scope in scopes], sizes, most=found.cost) is None


@pytest.mark.parametrize("side", [8, 18])
def test_a_grid_is_as_wide_as_its_side(side):
    place = range(side * side)
    pairs = [(i, i + 1) for i in place if (i + 1) % side] + [(i, i + side) for i in place[:-side]]
    found = banded_order(pairs, [1.0] * side * side, most=math.inf)
    assert found is not None
    assert found.width == side + 1
