"""Clauses as circuits: their models against brute force, known counts, their shape, their limits."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from lbm.knowledge.circuits import SUM, Circuit
from lbm.reasoning.exact.compile import compile_clauses, simplified

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
