"""What the families of problems rest on: generators, forms for each peer, timelines, and their tables."""

import json
import os
import random
import sys
from itertools import product
from pathlib import Path

import pytest

import lbm

ROOT = Path(__file__).parents[1]
SMALL = (
    *("warehouse", "warehouse, text", "frequencies", "frequencies, hard", "few frequencies"),
    *("auction of paths", "auction of regions", "pictures", "explanation", "clique, hidden", "clique"),
    *("colouring", "hidden model", "pigeons", "roster"),
)


@pytest.fixture
def weighted(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from measuring import weighted

    return weighted


@pytest.fixture
def demands(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from measuring import demands

    return demands


@pytest.fixture
def race(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from measuring import race

    return race


@pytest.fixture
def families(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import families

    return families


def wcsp_cost(text, values):
    """Return what a .wcsp file says that values of its variables cost; None: as much as is forbidden."""
    lines = text.splitlines()
    _, variables, _, number, top = lines[0].split()
    assert len(lines[1].split()) == int(variables) == len(values)
    total, i, met = 0, 2, 0
    while i < len(lines):
        words = list(map(int, (lines[i].split()[: int(lines[i].split()[0]) + 1])))
        rest = lines[i].split()[len(words) :]
        scope, met, i = words[1:], met + 1, i + 1
        if rest[0] == "-1":
            assert rest[1] == "knapsackp"
            numbers = list(map(int, rest[2:]))
            least, numbers = numbers[0], numbers[1:]
            reached = 0
            for variable in scope:
                some, numbers = numbers[1 : 1 + 2 * numbers[0]], numbers[1 + 2 * numbers[0] :]
                reached += dict(zip(some[::2], some[1::2], strict=True)).get(values[variable], 0)
            total += int(top) if reached < least else 0
            continue
        cost = int(rest[0])
        for line in lines[i : i + int(rest[1])]:
            *world, price = map(int, line.split())
            if world == [values[variable] for variable in scope]:
                cost = price
        i += int(rest[1])
        total += cost
    assert met == int(number)
    return None if total >= int(top) else total


def test_every_family_has_a_small_problem_and_one_of_the_usual_size(weighted):
    assert {family for family, _ in weighted.families("small")} == set(SMALL) == set(weighted.MAKERS)
    assert {family for family, _ in weighted.families("usual")} == set(SMALL)
    assert {family for family, _ in weighted.families("large")} < set(SMALL)


@pytest.mark.parametrize("family", SMALL)
def test_a_problem_depends_on_its_numbers_alone(weighted, tmp_path, family):
    one, same, other = (weighted.make("small", family, 0, seed) for seed in (1, 1, 2))
    texts = [made.write(tmp_path).read_text(encoding="utf-8") for made in (one, same, other)]
    assert texts[0] == texts[1] != texts[2]
    assert one.name == same.name != other.name


@pytest.mark.parametrize("family", SMALL)
def test_a_file_is_read_by_us_and_by_peers_as_the_same_problem(weighted, demands, tmp_path, family):
    """The least cost by looking at every world is ours, and that which is known."""
    for seed in range(2):
        made = weighted.make("small", family, 0, seed)
        file = made.write(tmp_path)
        given = demands.read(file)
        found = lbm.best(lbm.Theory.load(file))
        world = list(found.world.values())
        assert found.optimal
        assert given.cost(world) == found.lost
        assert made.least in (None, found.lost)
        if made.clauses is not None:
            assert made.clauses.cost(world) == found.lost
        if given.atoms <= 12:
            costs = [given.cost(world) for world in product((False, True), repeat=given.atoms)]
            assert min(cost for cost in costs if cost is not None) == found.lost


@pytest.mark.parametrize("family", SMALL)
def test_variables_of_several_values_cost_what_the_world_they_mean_costs(weighted, demands, tmp_path, family):
    rng = random.Random(family)
    made = weighted.make("small", family, 0, 3)
    given = demands.read(made.write(tmp_path))
    form = demands.valued(given)
    sizes = list(map(int, form.text.splitlines()[1].split()))
    best = list(lbm.best(lbm.Theory.load(made.write(tmp_path))).world.values())
    chosen, met = demands.groups(given)[0], 0
    for trial in range(300):
        values = [rng.randrange(size) for size in sizes]
        if trial == 0:  # a world that is a model
            for v, atoms in enumerate(form.values):
                values[v] = next(k for k, atom in enumerate(atoms) if atom is None or best[atom - 1])
                if None in atoms:
                    values[v] = int(best[atoms[1] - 1])
        world = form.world(values)
        assert all(sum(world[atom - 1] for atom in group) == 1 for group in chosen)
        wanted = given.cost(world)
        spare = sizes[len(form.values) :]
        some = [values[: len(form.values)] + list(more) for more in product((0, 1), repeat=len(spare))]
        costs = [cost for each in some if (cost := wcsp_cost(form.text, each)) is not None]
        assert min(costs, default=None) == wanted
        met += wanted is not None
        if len(spare) > 4 and trial > 5:
            break
    assert met


def test_groups_are_found_in_clauses_and_in_formulae_and_the_larger_one_counts(demands, tmp_path):
    file = tmp_path / "groups.wcnf"
    lines = ["h 1 2 3 0", "h -1 -2 0", "h -3 -1 0", "h -2 -3 0", "h 3 4 0", "h -3 -4 0", "h 5 6 0", "2 -5 0"]
    file.write_text("\n".join(lines) + "\n")
    given = demands.read(file)
    found, rest = demands.groups(given)
    assert found == [(1, 2, 3)]
    assert {frozenset(demand.literals) for demand in rest} == {
        frozenset(literals) for literals in [(-5,), (-3, -4), (3, 4), (5, 6)]
    }
    text = tmp_path / "groups.lbm"
    text.write_text("exactly(1, a, b, c)\natmost(1, a, d)\n3: exactly(1, c, d)\n")
    given = demands.read(text)
    assert demands.groups(given)[0] == [(1, 2, 3)]
    assert given.cost([True, False, False, False]) == 3
    assert given.cost([False, False, True, False]) == 0
    assert given.cost([True, True, False, False]) is None


def test_both_forms_of_wcnf_files_are_read_and_what_says_nothing_is_left_out(demands, tmp_path):
    old, new = tmp_path / "old.wcnf", tmp_path / "new.wcnf"
    old.write_text("c a comment\np wcnf 4 5 10\n10 1 2 0\n3 -1 0\n0 4 0\n5 1 -1 0\n2 -2 0\n")
    new.write_text("c{a comment\nh 1 2 0\n3 -1 0\n2 -2 0\n4 0\n")
    one, other = demands.read(old), demands.read(new)
    assert (one.atoms, other.atoms) == (4, 2)
    assert one.demands == other.demands
    assert (one.constant, other.constant) == (0, 4)
    assert [one.cost([False, True, False, True]), other.cost([False, True])] == [2, 6]
    assert one.cost([False] * 4) is None


def test_a_warehouse_as_text_and_as_clauses_has_the_same_least_cost(weighted, tmp_path):
    costs = [
        lbm.best(lbm.Theory.load(weighted.make("small", family, 0, 5).write(tmp_path))).lost
        for family in ("warehouse", "warehouse, text")
    ]
    assert costs[0] == costs[1] > 0


def test_the_best_of_several_courses_is_theirs_at_every_moment(race):
    one = race.Course(((0.1, 9), (2.0, 3)), 2.5, 3.0, 2.0, {})
    other = race.Course(((0.5, 5), (3.0, 4)), None, 4.0, 1.0, {})
    both = race.best_of([one, other])
    for when in (0.0, 0.1, 0.4, 0.5, 1.9, 2.0, 9.0):
        costs = [cost for course in (one, other) if (cost := course.cost_at(when)) is not None]
        assert both.cost_at(when) == min(costs, default=None)
    assert (both.proven, both.seconds, both.cpu) == (2.5, 4.0, 3.0)
    assert race.best_of([]).cost_at(1.0) is None
    assert race.of_row(json.loads(json.dumps(one.row()))) == one


def test_worlds_are_judged_and_a_proof_of_a_worse_one_does_not_count(race, demands):
    given = demands.Demands(2, (demands.Demand((1, 2), 1, 2), demands.Demand((-1,), 1, 1, 4)))
    none, one, both = [False, False], [True, False], [False, True]
    told = [(0.1, none, True), (0.2, one, False), (0.3, both, False), (0.4, one, True)]
    assert race.judged(told, given) == ([(0.2, 4), (0.3, 0)], None)
    assert race.judged([*told, (0.5, both, True)], given) == ([(0.2, 4), (0.3, 0)], 0.5)


def test_a_process_that_knows_no_end_is_ended_and_its_lines_have_their_times(race):
    said, took, cpu = race.lines(
        [sys.executable, "-c", "print('here', flush=True)\nwhile True: pass"], 0.5, 0.2
    )
    assert [line for _, line in said] == ["here"]
    assert said[0][0] < took < 5
    assert cpu > 0


def test_ours_and_all_peers_find_and_prove_the_same(weighted, demands, race, tmp_path):
    pytest.importorskip("ortools")
    pytest.importorskip("pytoulbar2")
    from lbm.knowledge.wire import save_theory

    made = weighted.make("small", "pigeons", 0, 0)
    file = made.write(tmp_path)
    clauses = tmp_path / "clauses.wcnf"
    save_theory(lbm.Theory.load(file), clauses, format="wcnf-old")
    given = demands.read(file)
    found = race.peers(file, clauses, given, demands.valued(given), tmp_path, 20.0)
    found["lbm"] = race.ours(file, given, 20.0, seed=0)
    assert len(found) == 6
    for name, course in found.items():
        assert course.steps, name
        assert course.steps[-1][1] == made.least, name
        assert course.proven is not None, name
        assert "wrong" not in course.told


def course(cost, proven=None, told=None):
    return {"steps": [[0.1, cost]], "proven": proven, "seconds": 1.0, "cpu": 1.0, "told": told or {}}


def row(name, ours, theirs, proven=None, family="", wrong=None):
    told = {"status": "OPTIMUM FOUND", **({"wrong": wrong} if wrong else {})}
    return {
        "key": ["usual", name, 0, 0],
        "name": name,
        "family": family,
        "wanted": True,
        "size": "2 atoms",
        "late": 10.0,
        "limit": 10.0,
        "busy": 0,
        "peers": {"RC2, plain": course(theirs, proven), "toulbar2": course(theirs)},
        "ours": {"base": [course(ours, 5.0, told)], "extra": [course(ours, 5.0, told)]},
    }


def test_losses_stand_first_and_what_was_wanted_names_them(families):
    rows = [
        row("won", 4, 5),
        row("lost", 6, 5),
        row("late", 5, 5, 0.1),
        row("slightly", 5, 5, family="warehouse"),
    ]
    found = families.section(rows)
    assert [line[0] for line in found.tables[0].rows][:2] in (["lost", "late"], ["late", "lost"])
    assert {line[0] for line in found.tables[0].rows} == {"won", "lost", "late", "slightly"}
    assert all({"found by", "proved by"} <= set(table.columns) for table in found.tables[:2])
    wanted = dict(found.wanted)
    assert not wanted["cost after 1 s at most RC2's, base: 3 of 4; not lost"]
    assert not wanted["proof at most 1.5 times RC2's time plus 0.6 s, base: 0 of 1; not late"]
    assert wanted["warehouse: cost after 10 s within 0.5 % of toulbar2's, base: 1 of 1"]
    assert not wanted["cost after 10 s at most the best peer's after 4 s, extra: 3 of 4; not lost"]
    assert wanted["worlds lose what is said, base: 4 of 4"]
    assert wanted["nobody has a world below what another proved, base: 3 of 4; not lost"] is False
    theirs = families.section([row("theirs", 4, 5, 4.0)]).wanted
    assert ("worlds lose what is said, base: 1 of 1", True) in theirs
    assert ("nobody has a world below what another proved, base: 0 of 1; not theirs", False) in theirs
    assert [met for _, met in theirs] == sorted(met for _, met in theirs)
    wrong = families.section([row("wrong", 4, 5, wrong="says it loses 4, loses None")])
    assert not dict(wrong.wanted)["worlds lose what is said, base: 0 of 1; not wrong"]


def test_what_peers_did_is_kept_whatever_our_sources_are(families, race, tmp_path):
    file, kept = tmp_path / "a.wcnf", tmp_path / "peers.json"
    file.write_text("h 1 0\n")
    asked = []

    def measure():
        asked.append(1)
        return {"RC2, plain": race.Course(((0.1, 0),), 0.1, 0.2, 0.1, {})}

    first = families.Kept(kept, 0).of(file, 4.0, measure)
    assert families.Kept(kept, 0).of(file, 4.0, measure) == first
    assert len(asked) == 1
    families.Kept(kept, 2).of(file, 4.0, measure)
    file.write_text("h 1 0\n1 -1 0\n")
    families.Kept(kept, 0).of(file, 4.0, measure)
    assert len(asked) == 3


def test_public_files_are_those_of_the_directory_that_is_named(families, monkeypatch, tmp_path):
    (tmp_path / "maxsat").mkdir()
    (tmp_path / "maxsat" / "one.wcnf").write_text("h 1 0\n")
    monkeypatch.setitem(os.environ, "LBM_INSTANCES", str(tmp_path))
    assert [path.stem for path in families.public()] == ["one"]
    assert families.written(("public", "one"), tmp_path) == (tmp_path / "maxsat" / "one.wcnf", "one", "")
