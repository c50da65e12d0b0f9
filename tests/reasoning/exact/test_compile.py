"""Clauses as circuits: their models against brute force, known counts, their shape, their limits."""

import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysat.solvers import Solver

from lbm.errors import NoAnswer, TooManyWorlds
from lbm.knowledge.circuits import SUM, Circuit
from lbm.reasoning.budget import SPENT
from lbm.reasoning.exact.compile import MAX_CONNECTED, compile_clauses, simplified
from lbm.reasoning.exact.passes import Passes

Clauses = list[list[int]]


def models(clauses: Clauses, variables: int) -> set[tuple[bool, ...]]:
    """Return all worlds that keep the clauses, one by one."""
    return {
        world
        for world in product((False, True), repeat=variables)
        if all(any(world[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)
    }


def worlds_of(circuit: Circuit) -> dict[int, tuple[int, int]]:
    """Return, for each slot, its worlds as a bit set over all worlds, and its variables as a bit set.

    It is checked on the way that products share no variables, and that no world is in two parts of a sum.
    """
    number = 1 << circuit.variables
    everything = (1 << number) - 1
    found: list[tuple[int, int]] = []
    for variable in range(circuit.variables):
        true = sum(1 << world for world in range(number) if world >> variable & 1)
        found += [(everything & ~true, 1 << variable), (true, 1 << variable)]
    for gate in range(len(circuit)):
        parts = circuit.parts[circuit.starts[gate] : circuit.starts[gate + 1]].tolist()
        mentioned = 0
        if circuit.kinds[gate] == SUM:
            worlds = 0
            for part in parts:
                assert not worlds & found[part][0], "deterministic"
                worlds |= found[part][0]
                mentioned |= found[part][1]
        else:
            worlds = everything
            for part in parts:
                assert not mentioned & found[part][1], "decomposable"
                worlds &= found[part][0]
                mentioned |= found[part][1]
        found.append((worlds, mentioned))
    return dict(enumerate(found))


def models_of(circuit: Circuit) -> set[tuple[bool, ...]]:
    worlds = worlds_of(circuit)[circuit.root][0]
    return {
        tuple(bool(world >> v & 1) for v in range(circuit.variables))
        for world in range(1 << circuit.variables)
        if worlds >> world & 1
    }


@st.composite
def problems(draw: st.DrawFn, most: int = 9) -> tuple[Clauses, int]:
    """Clauses with units, equivalences, exactly-one groups, chains, empty ones, and idle variables."""
    number = draw(st.integers(1, most))
    literals = st.integers(1, number).flatmap(lambda v: st.sampled_from([v, -v]))
    clauses = draw(st.lists(st.lists(literals, min_size=2, max_size=4), max_size=14))
    clauses += draw(st.lists(st.lists(literals, max_size=1), max_size=1))
    for one, other in draw(st.lists(st.tuples(literals, literals), max_size=2)):
        clauses += [[-one, other], [one, -other]]
    for group in draw(st.lists(st.lists(literals, min_size=1, max_size=4), max_size=1)):
        clauses.append(group)
        clauses += [[-a, -b] for i, a in enumerate(group) for b in group[:i]]
    for one, two, three in draw(st.lists(st.tuples(literals, literals, literals), max_size=2)):
        clauses += [[-one, two, three], [-one, -two, -three], [one, -two, three], [one, two, -three]]
    return draw(st.permutations(clauses)), number


@given(problems())
def test_a_circuit_has_the_models_of_its_clauses_and_is_decomposable_and_deterministic(
    problem: tuple[Clauses, int],
) -> None:
    clauses, number = problem
    assert models_of(compile_clauses(clauses, number)) == models(clauses, number)


@given(problems(), st.sets(st.integers(1, 9)))
def test_a_circuit_of_what_is_shown_has_the_models_as_far_as_they_are_shown(
    problem: tuple[Clauses, int], shown: set[int]
) -> None:
    clauses, number = problem
    visible = sorted(v for v in shown if v <= number)
    expected = {tuple(world[v - 1] for v in visible) for world in models(clauses, number)}
    assert models_of(compile_clauses(clauses, number, shown=visible)) == expected


@given(problems())
def test_units_are_found_and_nothing_else_is_changed(problem: tuple[Clauses, int]) -> None:
    clauses, number = problem
    found = simplified(clauses)
    if found is None:
        assert not models(clauses, number)
    else:
        units, rest = found
        assert all(len({abs(literal) for literal in clause}) == len(clause) > 1 for clause in rest)
        assert not {abs(unit) for unit in units} & {abs(literal) for clause in rest for literal in clause}
        assert models([[unit] for unit in units] + [list(clause) for clause in rest], number) == models(
            clauses, number
        )


def counted(circuit: Circuit) -> int:
    return Passes(circuit).count()


@pytest.mark.parametrize(
    "file", ["toybox2.cnf", "axTLS.cnf", "busybox.dimacs", "s1196a_3_2.cnf", "mc2024_track3_131.cnf"]
)
def test_counts_of_public_instances_are_those_known(instances: Path, file: str) -> None:
    answers = json.loads((instances / "answers.json").read_text("utf-8"))
    known = {entry["file"]: entry["known"] for entry in answers if entry["task"] == "count"}
    clauses, variables, shown = read(instances / "count" / file)
    assert counted(compile_clauses(clauses, variables, shown=shown)) == int(known[f"count/{file}"])


def test_sudokus_of_four_by_four_are_counted(dataset: Callable[[str], Path]) -> None:
    clauses, variables, _ = read(dataset("structured") / "sudoku_4.cnf")
    assert counted(compile_clauses(clauses, variables)) == 288


def read(path: Path) -> tuple[Clauses, int, list[int] | None]:
    """Return clauses, the number of variables and those shown, by the plain words of the format."""
    numbers: list[int] = []
    variables, shown = 0, None
    for line in path.read_text("utf-8").splitlines():
        words = line.split()
        if words[:1] == ["p"]:
            variables = int(words[2])
        elif words[:3] == ["c", "p", "show"]:
            shown = [int(word) for word in words[3:-1]]
        elif words[:1] != ["c"]:
            numbers += map(int, words)
    clauses: Clauses = [[]]
    for number in numbers:
        if number:
            clauses[-1].append(number)
        else:
            clauses.append([])
    return clauses[:-1], variables, shown


@pytest.mark.parametrize("ratio", [1.5, 3.0, 4.2, 6.0])
def test_counts_of_random_clauses_are_those_of_a_solver_that_lists_models(ratio: float) -> None:
    rng = random.Random(ratio)
    number = 20
    clauses = [
        [rng.choice([-1, 1]) * v for v in rng.sample(range(1, number + 1), 3)]
        for _ in range(int(ratio * number))
    ]
    shown = range(1, 12)
    with Solver("minisat22", bootstrap_with=clauses) as solver:
        listed = {tuple(model[:11]) for model in solver.enum_models()} if ratio > 2 else None
    with Solver("minisat22", bootstrap_with=clauses) as solver:
        total = sum(2 ** (number - len(model)) for model in solver.enum_models()) if ratio > 2 else None
    if total is not None:
        assert counted(compile_clauses(clauses, number)) == total
        assert counted(compile_clauses(clauses, number, shown=shown)) == len(listed or ())
    order = list(range(1, number + 1))
    rng.shuffle(order)
    renamed = [[order[abs(v) - 1] * (1 if v > 0 else -1) for v in clause] for clause in clauses]
    assert counted(compile_clauses(renamed, number)) == counted(compile_clauses(clauses, number))


def test_hidden_atoms_past_those_searched_here_are_left_to_a_solver() -> None:
    """A shown atom, which is true just where a chain of 100 hidden ones has no model."""
    chain = [[-i, i + 1] for i in range(2, 100)]
    clash = [[-1, 2], [-1, -100], [1, 2, 100], [50, 60, 1], [-50, -60, 70]]
    circuit = compile_clauses(chain + clash, 100, shown=[1])
    assert models_of(circuit) == {(False,)}
    free = compile_clauses([*chain, [2, 100, 1]], 100, shown=[1])
    assert (counted(free), free.edges) == (2, 0)


def test_restrictions_with_many_hidden_atoms_are_those_of_a_solver_that_lists_them() -> None:
    rng = random.Random(11)
    number, seen = 80, 5
    for ratio in (2.6, 2.8, 3.0):
        clauses = [
            [rng.choice([-1, 1]) * v for v in rng.sample(range(1, number + 1), rng.choice([2, 3, 3]))]
            for _ in range(int(ratio * number))
        ]
        expected = set()
        with Solver("minisat22", bootstrap_with=clauses) as solver:
            while solver.solve():
                model = solver.get_model()[:seen]
                expected.add(tuple(literal > 0 for literal in model))
                solver.add_clause([-literal for literal in model])
        assert models_of(compile_clauses(clauses, number, shown=range(1, seen + 1))) == expected


@pytest.mark.parametrize("number", [10, 65, 129, 1000])
def test_circuits_of_chains_grow_with_their_length(number: int) -> None:
    circuit = compile_clauses([[-i, i + 1] for i in range(1, number)], number)
    assert counted(circuit) == number + 1
    assert circuit.edges < 25 * number
    both = [[sign * i, -sign * (i + 1)] for i in range(1, number) for sign in (1, -1)]
    circuit = compile_clauses(both, number)
    assert counted(circuit) == 2
    assert circuit.edges < 5 * number


def test_exactly_one_of_many_is_a_circuit_of_that_size() -> None:
    number = 150
    group = [list(range(1, number + 1))] + [[-a, -b] for a in range(1, number + 1) for b in range(1, a)]
    circuit = compile_clauses(group, number)
    assert counted(circuit) == number
    assert circuit.edges < 20 * number


def test_deep_problems_need_no_recursion() -> None:
    """At most one of each two neighbours, in a row of 3,000: as many models as Fibonacci says."""
    before, now = 1, 2
    for _ in range(2999):
        before, now = now, before + now
    assert counted(compile_clauses([[-i, -i - 1] for i in range(1, 3000)], 3000)) == now


def test_past_the_limits_it_says_which_and_what_would_help() -> None:
    rng = random.Random(5)
    clauses = [[rng.choice([-1, 1]) * v for v in rng.sample(range(1, 61), 3)] for _ in range(150)]
    with pytest.raises(TooManyWorlds, match=r"more than 1000 edges \(limit MAX_EDGES\).*would help") as info:
        compile_clauses(clauses, 60, most=1000)
    assert (info.value.limit, info.value.value) == ("MAX_EDGES", 1000)
    with pytest.raises(TooManyWorlds, match=r"limit MAX_CONNECTED"):
        compile_clauses([[-i, i + 1] for i in range(1, MAX_CONNECTED + 10)], MAX_CONNECTED + 10)
    with pytest.raises(NoAnswer):
        compile_clauses(clauses, 60, budget=SPENT)


def test_parts_that_are_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(6)
    clauses = [[rng.choice([-1, 1]) * v for v in rng.sample(range(1, 31), 3)] for _ in range(60)]
    expected = counted(compile_clauses(clauses, 30))
    monkeypatch.setattr("lbm.reasoning.exact.compile.MAX_MEMORY", 1000)
    assert counted(compile_clauses(clauses, 30)) == expected
