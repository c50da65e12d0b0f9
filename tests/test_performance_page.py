"""What the benchmarks rest on: problems that mean what they say, results that are kept, and their page."""

import json
import random
import subprocess
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

import lbm
from lbm.reasoning.proof import satisfiable

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"


@pytest.fixture
def problems(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from measuring import problems

    return problems


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from measuring import results

    return results


@pytest.fixture
def repeated(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import repeated

    return repeated


def lost(rows, weights, world):
    """Return the weight of the clauses that are false in a world, one by one."""
    false = [not any(world[abs(literal) - 1] == (literal > 0) for literal in row) for row in rows]
    return sum(weight for weight, broken in zip(weights, false, strict=True) if broken)


def test_the_page_is_what_the_stored_results_give():
    if not list(RESULTS.glob("*.json")):
        assert not PAGE.exists(), "a page without results"
        return
    order = [sys.executable, str(ROOT / "tools" / "performance.py"), "--check"]
    assert subprocess.run(order, check=False, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_quadratic_function_is_least_where_auxiliary_variables_are_right_and_then_is_the_cost(
    problems, width, seed
):
    problem = problems.random_clauses(5, 4, width, seed=seed, heaviest=10)
    linear, products, constant = problems.quadratic(problem)
    spare = len(linear) - problem.atoms
    assert spare == (len(problem) if width == 3 else 0)
    for world in product((False, True), repeat=problem.atoms):
        values = []
        for more in product((False, True), repeat=spare):
            x = dict(enumerate((*world, *more), start=1))
            value = constant + sum(term for i, term in linear.items() if x[i])
            values.append(value + sum(term for (i, j), term in products.items() if x[i] and x[j]))
        assert min(values) == lost(problem.rows(), problem.weights.tolist(), world) == problem.cost(world)


def test_a_world_that_breaks_a_hard_clause_has_no_cost(problems):
    problem = problems.problem(2, [[1, 2], [-1], [-2]], np.array([0, 3, 4]))
    worlds = np.array([[False, False], [True, False], [True, True]])
    assert problem.costs(worlds).tolist() == [-1, 3, 7]
    assert [problem.cost(world) for world in worlds] == [None, 3, 7]


def test_clauses_have_distinct_atoms_and_depend_on_their_numbers_alone(problems):
    one, same, other = (problems.random_clauses(6, 500, 3, seed=seed, heaviest=10) for seed in (1, 1, 2))
    assert all(len({abs(literal) for literal in row}) == 3 for row in one.rows())
    assert set(one.weights.tolist()) == set(range(1, 11))
    assert one.rows() == same.rows() != other.rows()


def test_a_colouring_as_text_and_as_clauses_has_the_same_models(problems):
    edges = problems.flat_graph(9, seed=3)
    theory, problem = (
        lbm.Theory.parse(problems.colouring_text(9, edges)),
        problems.colouring_clauses(9, edges),
    )
    models = lbm.models(theory).array
    assert len(models) > 0
    assert (problem.costs(models) == 0).all()
    assert lbm.count(problem.theory()) == len(models)


def test_the_least_cost_of_pigeons_is_what_the_best_world_loses(problems):
    for seed in range(3):
        text, least = problems.pigeonholes(4, 3, seed=seed)
        found = lbm.best(lbm.Theory.parse(text))
        assert found.optimal
        assert found.lost == least
        assert problems.weight_lost(lbm.Theory.parse(text), list(found.world.values())) == least


def test_rosters_and_acquaintances_can_be_read_and_have_a_model(problems):
    for text in (problems.roster(12, 3, seed=0), problems.acquaintances(5, seed=0)):
        assert satisfiable(lbm.Theory.parse(text))


@pytest.mark.parametrize("name", ["clauses", "clauses, half soft", "rules", "rules, half soft"])
def test_theories_asked_repeatedly_are_of_the_stated_size_and_allow_all_evidence(repeated, name):
    made = repeated.make(name, 0)
    theory = lbm.Theory.parse(made.text)
    soft = sum(statement.weight is not None for statement in theory)
    assert len(theory) == 3000
    assert len(theory.atoms) == 1000
    assert abs(soft - 1500) < 150 if "soft" in name else soft == 0
    assert theory.is_model(made.world)
    asked = list(islice(repeated.questions(made, 0), 1000))
    assert len(set(asked)) == 1000
    assert all(lbm.holds(lbm.parse(given), made.world) for _, given in asked)
    assert repeated.make(name, 0) == made != repeated.make(name, 1)


def test_answers_of_two_sides_agree_or_not_or_cannot_be_compared(repeated):
    assert repeated.same([True, False], [True, False])
    assert not repeated.same([True, False], [False, False])
    assert repeated.same(["preferred", 0.5], ["preferred", 0.5 + 1e-13])
    assert not repeated.same(["preferred", 0.5], ["preferred", 0.5 + 1e-11])
    assert not repeated.same(["preferred", 0.5], ["undecided", 0.5])
    assert not repeated.same("NoWorlds", ["undecided", 0.5])
    assert repeated.same("NoWorlds", "NoWorlds")
    assert repeated.same("NoAnswer", ["undecided", 0.5]) is None
    assert repeated.same([None, 0.5], ["undecided", 0.5]) is None


def test_adding_in_columns_is_addition(problems):
    theory = lbm.Theory.parse(problems.column_addition(1, "t"))
    assert lbm.count(theory) == 100
    for world in lbm.models(theory):
        x, y, total = (next(v for v in range(10) if world[f"t{name}0_{v}"]) for name in "xys")
        assert x + y == total + 10 * world["tcarry1"]
    given = " & ".join(f"x{at}_{7} & y{at}_{v}" for at, v in enumerate((5, 2)))
    longer = lbm.Theory.parse(problems.column_addition(2))
    assert lbm.entails(longer, problems.total_is(77 + 25, 2), given=given)
    assert lbm.ask(longer, problems.total_is(77 + 26, 2), given=given).status == "refuted"


@pytest.mark.parametrize("kind", ["pairwise", "bayesian"])
def test_plain_elimination_and_theories_of_generated_networks_agree_with_looking_at_every_world(
    problems, kind
):
    from measuring.plain import elimination

    from lbm.knowledge.networks import network_theory, read_network

    text = (
        problems.pairwise_network(5, 3, 8, seed=1)
        if kind == "pairwise"
        else problems.bayesian_network(5, 3, 2, 3, seed=1)
    )
    network = read_network(text.encode())
    factors = [
        (each.scope, np.array(each.entries, float).reshape([3] * len(each.scope))) for each in network.tables
    ]
    whole = np.ones([3] * 5)
    for scope, table in factors:
        ordered = table.transpose(np.argsort(scope))
        whole = whole * ordered.reshape([3 if v in scope else 1 for v in range(5)])
    for order in ([0, 1, 2, 3, 4], [3, 0, 4, 2, 1]):
        log_z, chances = elimination(network.sizes, factors, order)
        assert log_z == pytest.approx(np.log(whole.sum()), abs=1e-12)
        for v in range(5):
            expected = whole.sum(axis=tuple(u for u in range(5) if u != v)) / whole.sum()
            np.testing.assert_allclose(chances[v], expected, rtol=1e-12)
    theory = network_theory(network)
    assert lbm.log_partition(theory) == pytest.approx(log_z, abs=1e-9)
    for mine, plain in zip(network.chances(lbm.marginals(theory)), chances, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-9)


def test_quartiles_are_values_that_occur_and_what_never_happened_is_past_them(results):
    rng = random.Random(0)
    for number in range(1, 12):
        values = [rng.random() for _ in range(number)]
        low, middle, high = results.quartiles(values)
        assert {low, middle, high} <= set(values)
        for share, value in ((0.25, low), (0.5, middle), (0.75, high)):
            assert sum(each <= value for each in values) >= share * number
            assert sum(each < value for each in values) < share * number
    assert results.quartiles([1.0, None, None]) == (1.0, float("inf"), float("inf"))


def test_a_run_goes_on_with_what_is_missing_and_forgets_what_other_sources_gave(
    results, monkeypatch, tmp_path
):
    file = tmp_path / "kept.json"
    asked = []

    def run(*more):
        monkeypatch.setattr(sys, "argv", ["script", "--json", str(file), *more])
        asked.clear()
        made = results.Run("script", "A script.")
        found = made.each([("a", 1), ("b", 2)], lambda *key: asked.append(key) or {"value": key[1]})
        return [row["value"] for row in found], list(asked), made.complete

    assert run("--only", "b") == ([2], [("b", 2)], False)
    assert run() == ([1, 2], [("a", 1)], True)
    assert run() == ([1, 2], [], True)
    assert run("--fresh") == ([1, 2], [("a", 1), ("b", 2)], True)
    assert run("--quick")[1] == [("a", 1), ("b", 2)]
    stored = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(stored | {"sources": "others"}), encoding="utf-8")
    assert run("--quick")[1] == [("a", 1), ("b", 2)]
