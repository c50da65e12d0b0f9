"""Engines that know more than clauses say what brute force says, whatever a problem is made of."""

import random
from contextlib import suppress
from itertools import product

import pytest

from lbm.errors import NoWorlds
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import Budget
from lbm.reasoning.optimum import best
from lbm.reasoning.problem import Problem
from lbm.reasoning.search import engines, hearing, routes
from lbm.reasoning.search.invited import guests_of
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.demands import FREE, Demands

# --- problems ------------------------------------------------------------------------------------------


def random_theory(rng):
    """Return groups, some tied by bijections, with clauses, cardinalities and nested formulae about them."""
    names, rows = [], []
    groups = []
    for number in range(rng.randint(0, 2)):
        group = [f"{'gh'[number]}{i}" for i in range(rng.randint(1, 4))]
        groups.append(group)
        names += group
        if rng.random() < 0.5:
            rows.append(f"exactly(1, {', '.join(group)})")
        else:  # said by clauses
            rows.append(" | ".join(group))
            rows += [f"~{a} | ~{b}" for i, a in enumerate(group) for b in group[:i]]
    if len(groups) == 2 and len(groups[0]) == len(groups[1]) and rng.random() < 0.7:
        order = rng.sample(range(len(groups[0])), len(groups[0]))
        rows += [f"{groups[0][i]} <-> {groups[1][j]}" for i, j in enumerate(order)]
    names += [f"x{i}" for i in range(rng.randint(1, 4))]

    def literals(number):
        return [rng.choice(["", "~"]) + name for name in rng.sample(names, min(number, len(names)))]

    for _ in range(rng.randint(0, 8)):
        kind = rng.random()
        some = literals(rng.randint(1, 4))
        if kind < 0.6:
            said = " | ".join(some)
        elif kind < 0.85:
            said = f"{rng.choice(['atmost', 'atleast', 'exactly'])}({rng.randint(0, 4)}, {', '.join(some)})"
        else:
            said = f"({some[0]} ^ {some[-1]}) -> {literals(1)[0]}"
        weight = rng.choice([None, 1, 2, 3, 5, 10, -1, -4, 7])
        rows.append(said if weight is None else (weight, said))
    return Theory(rows, atoms=names)


def least_of(theory):
    """Return the least weight that any model loses, by trying all worlds; None: there is no model."""
    problem = Problem(theory)
    looked = (problem.look(values) for values in product([False, True], repeat=len(theory.atoms)))
    return min((world.lost for world in looked if world.keeps), default=None)


def rows_and_columns(demands):
    weights = [weight // demands.unit for weight in demands.clauses.weights.tolist()]
    return list(demands.clauses.rows()), weights, demands.low.tolist(), demands.high.tolist()


def check_events(theory, events, least):
    """Check what an engine said: its worlds are models, its bounds hold, and it settles the question."""
    problem = Problem(theory)
    bounds = [event["lost"] for event in events if event["kind"] == "bound"]
    worlds = [event for event in events if event["kind"] == "world"]
    if least is None:
        assert not worlds
        assert events[-1]["kind"] == "end"
        assert any(event["kind"] == "end" and event.get("all") for event in events)
        return
    for event in worlds:
        looked = problem.look([value == "1" for value in event["world"]])
        assert looked.keeps
        assert looked.lost <= event["lost"]
    assert max(bounds) == least
    assert worlds[-1]["lost"] == least


# --- demands -------------------------------------------------------------------------------------------


def test_demands_say_what_the_theory_says_and_groups_have_exactly_one():
    rng = random.Random(1)
    for _ in range(200):
        theory = random_theory(rng)
        problem = Problem(theory)
        demands = problem.demands()
        rows, weights, lows, highs = rows_and_columns(demands)
        variables = demands.clauses.variables
        if variables > 12:
            continue
        seen = {}
        for values in product([False, True], repeat=variables):
            lost, keeps = 0, True
            for row, weight, low, high in zip(rows, weights, lows, highs, strict=True):
                count = sum(values[abs(number) - 1] == (number > 0) for number in row)
                if count < low or (high != FREE and count > high):
                    lost, keeps = lost + weight * demands.unit, keeps and weight > 0
            if keeps:
                atoms = values[: len(theory.atoms)]
                seen[atoms] = min(lost, seen.get(atoms, lost))
                for group in demands.groups:
                    assert sum(values[abs(number) - 1] == (number > 0) for number in group) == 1
        looked = {v: problem.look(v) for v in product([False, True], repeat=len(theory.atoms))}
        assert seen == {values: world.lost for values, world in looked.items() if world.keeps}


def test_groups_are_found_however_they_are_said():
    pairs = [f"~{a} | ~{b}" for a, b in ("ab", "bc", "ac")]
    for rows in (["exactly(1, a, b, c)"], ["a | b | c", "atmost(1, a, b, c, d)"], ["a | b | c", *pairs]):
        assert [set(group) for group in Problem(Theory(rows, atoms=[*"abcd"])).demands().groups] == [
            {1, 2, 3}
        ]
    assert Problem(Theory(["a | b | c", *pairs[:2]])).demands().groups == []
    assert Problem(Theory(["exactly(1, a)"])).demands().groups == []


def test_a_group_of_ten_thousand_values_is_found_in_a_moment():
    names = ", ".join(f"v{i}" for i in range(10_000))
    demands = Problem(Theory([f"exactly(1, {names})", (3, "~v0")])).demands()
    assert [len(group) for group in demands.groups] == [10_000]


def test_who_is_asked_depends_on_what_the_problem_is_made_of():
    everybody = frozenset(engines.NAMES)

    def asked(rows, names=everybody):
        guests = guests_of(Problem(Theory(rows)).demands(), names)
        return [each.name for each in guests.invitations], guests.loose

    assert asked(["exactly(1, a, b, c)", (2, "a")]) == (["toulbar2", "cp-sat"], False)
    assert asked(["atmost(2, a, b, c)", (2, "a"), (2, "b")]) == (["cp-sat", "toulbar2"], False)
    assert asked([(1, "a | b"), (2, "~a")]) == (["toulbar2", "cp-sat"], True)
    assert asked(["a | b", (1, "a")], frozenset({"own", "rc2"})) == ([], False)
    assert asked(["a | b", (10**30, "a"), (1, "b")]) == ([], False)  # no double holds that
    assert asked(["a | b", (10**30, "a"), (3 * 10**30, "b")]) == (["cp-sat", "toulbar2"], False)  # in units


# --- what they say ---------------------------------------------------------------------------------------


def test_cp_sat_says_what_brute_force_says():
    pytest.importorskip("ortools")
    from lbm.reasoning.solvers import cp_sat

    rng = random.Random(2)
    events = []
    for _ in range(60):
        theory = random_theory(rng)
        demands = Problem(theory).demands()
        events.clear()
        header = {**aside.header_of(demands), "workers": 1, "seed": 0}
        cp_sat.solve(
            *rows_and_columns(demands), header,
            lambda kind, **parts: events.append({"kind": kind, **parts}), cp_sat.Others(),
        )  # fmt: skip
        check_events(theory, events, least_of(theory))


def test_toulbar2_says_what_brute_force_says(capfd):
    pytest.importorskip("pytoulbar2")
    from lbm.reasoning.solvers.toulbar2 import CostNetwork, Translator, cells_of, solve

    rng = random.Random(3)
    for _ in range(150):
        theory = random_theory(rng)
        demands = Problem(theory).demands()
        header = {**aside.header_of(demands), "number": 0}
        network = CostNetwork(cells_of(header["groups"], header["variables"]), header["upper"])
        for demand in zip(*rows_and_columns(demands), strict=True):
            row, weight, low, high = demand
            network.add(row, low, high, weight)
        capfd.readouterr()
        solve(network, 0)
        translator = Translator(header)
        said = [
            event for line in capfd.readouterr().out.encode().split(b"\n") for event in translator.heard(line)
        ]
        check_events(theory, [*said, {"kind": "end"}], least_of(theory))


def test_toulbar2_takes_long_formulae_as_sums(capfd, monkeypatch):
    pytest.importorskip("pytoulbar2")
    from lbm.reasoning.solvers import toulbar2

    monkeypatch.setattr(toulbar2, "TABLE", 0)
    test_toulbar2_says_what_brute_force_says(capfd)


def test_what_toulbar2_has_no_room_for_is_declined(monkeypatch):
    from lbm.reasoning.solvers import toulbar2

    monkeypatch.setattr(toulbar2, "CELLS", 10)
    demands = Problem(Theory(["exactly(1, a, b, c, d)", "exactly(1, e, f, g, h)", "~a | ~e"])).demands()
    network = toulbar2.CostNetwork(toulbar2.cells_of(demands.groups, demands.clauses.variables), 9)

    def add():
        for row, weight, low, high in zip(*rows_and_columns(demands), strict=True):
            network.add(row, low, high, weight)

    with pytest.raises(toulbar2.Declined):
        add()


@pytest.mark.parametrize("names", ["rc2", "cp-sat", "toulbar2", None])
def test_each_engine_alone_and_all_together_find_and_prove_the_least(names, monkeypatch):
    for name in engines.NAMES if names is None else [names]:
        if name not in engines.installed():
            pytest.skip(f"{name} is not installed")
    monkeypatch.setattr(routes, "_exact", lambda *_: None)
    monkeypatch.setattr(hearing, "SOON", 0.0)
    rng = random.Random(names)
    for _ in range(8):
        theory = random_theory(rng)
        least = least_of(theory)
        if least is None:
            with pytest.raises(NoWorlds):
                best(theory, engines=names, seconds=60)
            continue
        found = best(theory, engines=names, seconds=60, seed=0)
        assert (found.lost, found.bound, found.optimal, found.dropped) == (least, least, True, ())
        assert theory.is_model(found.world)
        if names is not None:
            assert found.found_by == names


# --- in processes of their own -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cp-sat", "toulbar2"])
def test_a_process_can_be_killed_paused_and_left_behind(name):
    if name not in engines.installed():
        pytest.skip(f"{name} is not installed")
    rng = random.Random(0)
    rows = [
        (rng.randint(1, 50), " | ".join(rng.choice(["", "~"]) + f"x{v}" for v in rng.sample(range(80), 3)))
        for _ in range(600)
    ]
    demands = Problem(Theory(rows)).demands()
    with aside.demanded(hearing.MODULES[name], demands) as answers:
        assert answers.next(Budget.of(60)) is not None
        answers.pause()
        answers.go_on()
        process = answers.process
    assert process.returncode is not None
    with aside.demanded(hearing.MODULES[name], demands) as answers:
        answers.process.kill()
        with suppress(AssertionError):
            while (said := answers.next(Budget.of(60))).kind != "failed":
                assert said is not None
        assert answers.next(Budget.of(60)).kind == "failed"


def test_demands_without_rows_or_atoms_are_settled():
    for rows, atoms in (([], []), ([], ["a"]), ([(3, "a")], [])):
        demands = Problem(Theory(rows, atoms=atoms)).demands()
        assert isinstance(demands, Demands)
        assert demands.groups == []
