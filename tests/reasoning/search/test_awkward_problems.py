"""Problems that are awkward to search: huge groups and nested ones, a million clauses, no time, no model."""

from contextlib import suppress

import numpy as np
import pytest

import lbm
from lbm.errors import NoAnswer, NoWorlds
from lbm.knowledge.clauses import Clauses

MANY = 10_000


def one_of(names):
    return f"exactly(1, {', '.join(names)})"


def judged(found, groups, cost):
    """Demand that a world is right about groups and cost, and that its bound is one."""
    world = found.world
    assert all(sum(world[name] for name in group) == 1 for group in groups)
    assert cost(world) == found.lost >= found.bound
    return found


def test_a_group_of_ten_thousand_values_has_its_cheapest():
    names = [f"x{i}" for i in range(MANY)]
    prices = {name: 3 + i * 7919 % 997 for i, name in enumerate(names)}
    prices[names[4567]] = 1
    text = "\n".join([one_of(names), *(f"{price}: ~{name}" for name, price in prices.items())])

    def cost(world):
        return sum(prices[name] for name in names if world[name])

    found = judged(lbm.best(lbm.Theory.parse(text), seconds=20, seed=0), [names], cost)
    assert found.lost == 1 or not found.optimal


def test_two_groups_of_many_values_that_are_tied_have_a_world():
    number = 300
    one, other = ([f"{mark}{i}" for i in range(number)] for mark in "xy")
    prices = {name: 1 + i * 7919 % 997 for i, name in enumerate([*one, *other])}
    tied = [f"x{i} <-> y{i * 7 % number}" for i in range(number)]
    text = "\n".join([one_of(one), one_of(other), *tied, *(f"{price}: ~{x}" for x, price in prices.items())])

    def cost(world):
        assert all(world[f"x{i}"] == world[f"y{i * 7 % number}"] for i in range(number))
        return sum(prices[name] for name in prices if world[name])

    found = judged(lbm.best(lbm.Theory.parse(text), seconds=10, seed=0), [one, other], cost)
    least = min(prices[f"x{i}"] + prices[f"y{i * 7 % number}"] for i in range(number))
    assert found.lost >= least
    assert found.lost == least or not found.optimal


@pytest.mark.parametrize("route", ["as it comes", "searched"])
def test_a_group_of_one_value_and_groups_inside_groups_are_what_they_say(monkeypatch, route):
    from lbm.reasoning.search import routes

    if route == "searched":
        monkeypatch.setattr(routes, "MAX_EXACT", -1)
    lines = ["exactly(1, a)", "exactly(1, b, c, d, e)", "exactly(1, c, d)", "atmost(1, d, e, f)", "f <-> a"]
    lines += ["exactly(1, exactly(1, b, g), exactly(1, f, h))", "5: d", "3: h", "2: ~c", "1: g"]
    found = lbm.best(lbm.Theory.parse("\n".join(lines)), seconds=10, seed=0)
    assert found.optimal
    assert found.lost == 7  # f is true with a, so d is not, and c is; g and h are true or false together
    assert [name for name, value in found.world.items() if value] == ["a", "c", "f", "g", "h"]


def test_a_million_soft_clauses_have_a_world_and_what_it_loses_is_right():
    number, atoms = 1_000_000, 20_000
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, (number, 3), dtype=np.int32) * 2 - 1
    literals = rng.integers(1, atoms + 1, (number, 3), dtype=np.int32) * signs
    weights = rng.integers(1, 10, number)
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    starts = np.arange(0, 3 * number + 1, 3)
    theory = lbm.Theory.from_clauses(Clauses(names, literals.ravel(), starts), weights)
    found = lbm.best(theory, seconds=0.5, seed=0)
    world = np.array(list(found.world.values()))
    false = ~(world[np.abs(literals) - 1] == (literals > 0)).any(axis=1)
    assert weights[false].sum() == found.lost >= found.bound


@pytest.mark.parametrize("atoms", [10, 65, 129, 1_000])
def test_where_chains_would_take_long_no_single_flip_makes_the_world_better(atoms, monkeypatch):
    from lbm.reasoning.search import routes

    monkeypatch.setattr(routes, "_exact", lambda *_: None)
    monkeypatch.setattr(routes, "MAX_LITERALS", 10)  # so that it counts as large
    for name in ("_glance", "_lose_nothing", "_improve", "_anneal", "_run_plainly"):
        monkeypatch.setattr(routes.Search, name, lambda *_, **__: None)
    rng = np.random.default_rng(atoms)
    literals = rng.integers(1, atoms + 1, (5 * atoms, 3)) * rng.choice((-1, 1), (5 * atoms, 3))
    weights = rng.integers(1, 10, 5 * atoms)
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    clauses = Clauses(names, literals.astype(np.int32).ravel(), np.arange(0, 15 * atoms + 1, 3))

    def lost(world):
        return int(weights[~(world[np.abs(literals) - 1] == (literals > 0)).any(axis=1)].sum())

    found = lbm.best(lbm.Theory.from_clauses(clauses, weights), engines="own", seconds=20, seed=0)
    world = np.array(list(found.world.values()))
    assert lost(world) == found.lost
    for i in range(atoms):
        world[i] ^= True
        assert lost(world) >= found.lost
        world[i] ^= True


@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.05])
def test_almost_no_time_gives_a_right_world_or_says_that_there_was_none_in_time(seconds):
    groups = [[f"v{v}_{k}" for k in range(20)] for v in range(12)]
    lines = [one_of(group) for group in groups]
    pairs = [(a, b) for v in range(11) for a, b in zip(groups[v], groups[v + 1], strict=True)]
    lines += [f"2: ~({a} & {b})" for a, b in pairs] + [f"1: {group[3]}" for group in groups]

    def cost(world):
        kept = sum(world[group[3]] for group in groups)
        return sum(2 for a, b in pairs if world[a] and world[b]) + len(groups) - kept

    theory = lbm.Theory.parse("\n".join(lines))
    with suppress(NoAnswer):
        judged(lbm.best(theory, seconds=seconds, seed=0), groups, cost)


def test_hard_parts_without_a_model_are_said_to_have_none_whatever_is_soft():
    pigeons = [[f"p{p}h{h}" for h in range(5)] for p in range(6)]
    lines = [one_of(each) for each in pigeons]
    lines += [f"atmost(1, {', '.join(each[h] for each in pigeons)})" for h in range(5)]
    lines += [f"{i + 1}: {name}" for i, name in enumerate(name for each in pigeons for name in each)]
    with pytest.raises(NoWorlds):
        lbm.best(lbm.Theory.parse("\n".join(lines)), seconds=20, seed=0)
