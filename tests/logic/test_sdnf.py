"""Strict DNF: disjoint cubes with the formula's models, and no more of them than a diagram has paths."""

import random
import sys
from collections.abc import Iterator
from contextlib import suppress

import dd.bdd
import pytest
from dd.autoref import BDD, reorder
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import TooManyCubes
from lbm.knowledge.formula import (
    FALSE,
    TRUE,
    Formula,
    atleast,
    atmost,
    atom,
    atoms_of,
    conjunction,
    disjunction,
    exactly,
)
from lbm.knowledge.parser import parse
from lbm.logic import elimination
from lbm.logic.cube import Cube
from lbm.logic.sdnf import BUDGET, METHODS, StrictDNF, estimate_size, to_sdnf
from tests.oracles import columns, cubes_are_disjoint, models_of_cubes, parts, sat, truth_table
from tests.strategies import QUICK, formulae, random_formula, within_reach

# When dd is freed it complains about nodes still counted, and after a sifting that failed some are.
del dd.bdd.BDD.__del__

# 20,000 formulae, most of them by `pytest -m slow`.
SEEDS, EACH = (
    [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))],
    250 if QUICK else 2500,
)


def models(sdnf: StrictDNF, names: tuple[str, ...]) -> int:
    """Return the worlds in which a cube is true; new atoms have the value their definition gives."""
    every = (1 << (1 << len(names))) - 1
    column = columns(names)

    def of_cubes(cubes: list[Cube]) -> Iterator[int]:
        for cube in cubes:
            found = every
            for name in cube.true:
                found &= column[name]
            for name in cube.false:
                found &= ~column[name]
            yield found

    for definition in sdnf.definitions:
        mine = [cube for cube in definition.cubes if definition.name in cube.true]
        column[definition.name] = every  # so that the atom itself does not count
        value = 0
        for part in of_cubes(mine):
            value |= part
        column[definition.name] = value
        seen = 0
        for part in of_cubes(list(definition.cubes)):
            assert not seen & part
            seen |= part
        assert seen == every, "exactly one cube of a definition is true in every world"
    total = 0
    for part in of_cubes(list(sdnf)):
        assert not total & part, "two cubes are true in one world"
        total |= part
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_cubes_exclude_one_another_and_have_the_formulas_models(seed: int) -> None:
    """[TG21, Definition 2 and section 'Representation Capacity']"""
    rng = random.Random(seed)
    for _ in range(EACH):
        formula = random_formula(rng, max_atoms=12, max_nodes=60)
        sdnf = to_sdnf(formula)
        names = atoms_of(formula)
        assert models(sdnf, names) == truth_table(formula, names), formula
        assert cubes_are_disjoint(sdnf) or sdnf.definitions
        assert len(sdnf) <= BUDGET


@given(formulae(max_leaves=8), st.sampled_from(METHODS))
def test_every_method_gives_the_same_models(formula: Formula, method: str) -> None:
    names = atoms_of(formula)
    found = within_reach(lambda: to_sdnf(formula, method=method))
    assert models(found, names) == truth_table(formula, names)


@given(formulae(max_leaves=10))
def test_a_solver_finds_no_world_where_a_formula_and_its_cubes_differ(formula: Formula) -> None:
    sdnf = to_sdnf(formula)
    if not sdnf.definitions:
        flat = disjunction(
            conjunction(atom(name) if sign > 0 else ~atom(name) for name, sign in cube.literals)
            for cube in sdnf
        )
        assert sat(formula ^ flat) is None


@given(formulae(max_leaves=10), st.sampled_from(METHODS))
def test_the_estimate_is_never_too_small(formula: Formula, method: str) -> None:
    found = within_reach(lambda: to_sdnf(formula, method=method))
    assert found.size <= estimate_size(formula, method=method)


def paths(node: object) -> int:
    """Count the paths to 1 of a diagram of dd."""
    known: dict[object, int] = {}

    def count(node: object) -> int:
        if node == node.bdd.true or node == node.bdd.false:
            return int(node == node.bdd.true)
        if node not in known:
            low, high = (node.low, node.high) if not node.negated else (~node.low, ~node.high)
            known[node] = count(low) + count(high)
        return known[node]

    return count(node)


def diagram(formula: Formula, bdd: BDD) -> object:
    """Build a formula in dd from its connectives, cardinalities by counting up."""
    made: dict[int, object] = {}
    for node in parts(formula):
        below = [made[id(part)] for part in node.args]
        if node.kind == "atom":
            found = bdd.var(node.label)
        elif node.kind in ("true", "false"):
            found = getattr(bdd, node.kind)
        elif node.kind == "not":
            found = ~below[0]
        elif node.kind in ("and", "or", "xor"):
            found = bdd.apply(node.kind, *below)
        elif node.kind == "implies":
            found = below[0].implies(below[1])
        elif node.kind == "iff":
            found = below[0].equiv(below[1])
        else:
            row = [bdd.true, *[bdd.false] * (len(below) + 1)]
            for part in below:
                row = [row[0], *[row[j] | (part & row[j - 1]) for j in range(1, len(row))]]
            k = node.label
            least = bdd.true if node.kind == "atmost" else row[k] if k < len(row) else bdd.false
            most = bdd.true if node.kind == "atleast" or k + 1 >= len(row) else ~row[k + 1]
            found = least & most
        made[id(node)] = found
    return made[id(formula)]


def test_auto_never_gives_more_cubes_than_a_diagram_has_paths() -> None:
    """In the declared order, and in the order that dd's own sifting finds."""
    rng = random.Random(0)
    for _ in range(200):
        formula = random_formula(rng, max_atoms=10, max_nodes=40)
        names = atoms_of(formula)
        if not names:
            continue
        bdd = BDD()
        bdd.declare(*names)
        root = diagram(formula, bdd)
        fewest = paths(root)
        if len(names) > 1:
            with suppress(ValueError, AssertionError):  # dd fails to sift some diagrams, by its hash seed
                reorder(bdd)
                fewest = min(fewest, paths(root))
        sdnf = to_sdnf(formula)
        assert len(sdnf) <= fewest


def cubes(text: str, **options: object) -> set[str]:
    return {str(cube) for cube in to_sdnf(parse(text), **options)}


def test_the_papers_examples() -> None:
    """[TG21, example below short_horn_dnf; ERRATA 1 and 6]"""
    assert cubes("y <- x1 & x2 & ~x3", atoms=["y"]) == {
        "y & x1 & x2 & ~x3",
        "x1 & x2 & x3",
        "x1 & ~x2",
        "~x1",
    }
    assert cubes("a | b | c") == {"a", "~a & b", "~a & ~b & c"}
    assert cubes("((x & ~y) | (~x & y)) <-> z") == {
        "~x & ~y & ~z",
        "x & y & ~z",
        "x & ~y & z",
        "~x & y & z",
    }


@pytest.mark.parametrize("body", range(1, 12))
def test_an_implication_with_k_body_literals_has_k_plus_one_cubes(body: int) -> None:
    """[TG21, equation short_horn_dnf, as ERRATA 1 corrects it]"""
    names = [f"x{i}" for i in range(body)]
    formula = conjunction([atom(name) for name in names]) >> atom("y")
    sdnf = to_sdnf(formula)
    assert len(sdnf) == body + 1
    table = truth_table(formula, (*names, "y"))
    assert models_of_cubes(sdnf, (*names, "y")) == table


def test_the_full_dnf_of_the_papers_disjunction_has_seven_cubes() -> None:
    """[TG21, footnote on disjunctive heads; ERRATA 6]"""
    assert len(to_sdnf(parse("a | b | c"), method="full")) == 7


def test_independent_parts_multiply_in_the_better_order() -> None:
    assert len(to_sdnf(parse("b & c <- a"))) == 2
    assert len(to_sdnf(parse("(a & b & c) | d | e"))) == 3


def test_repeated_and_opposite_literals_cost_nothing() -> None:
    assert cubes("a | a | b") == {"a", "~a & b"}
    assert cubes("a | ~a | b") == {"true"}
    assert cubes("a & ~a") == set()
    assert cubes("a & a") == {"a"}


def test_constants_have_one_cube_or_none() -> None:
    assert [str(cube) for cube in to_sdnf(TRUE)] == ["true"]
    assert list(to_sdnf(FALSE)) == []


def test_pairs_and_parities_stay_small_with_definitions() -> None:
    pairs = disjunction(atom(f"a{i}") & atom(f"b{i}") for i in range(10))
    parity = parse(" ^ ".join(f"x{i}" for i in range(20)))
    for formula in (pairs, parity):
        sdnf = to_sdnf(formula)
        assert sdnf.definitions
        assert sdnf.size < 200
    assert len(to_sdnf(pairs, method="elimination")) == 1023


def test_a_cardinality_of_a_hundred_atoms_takes_about_n_times_k_cubes() -> None:
    names = [f"x{i}" for i in range(100)]
    sdnf = to_sdnf(parse(f"atmost(5, {', '.join(names)})"))
    assert sdnf.size < 6 * 100 * 5
    rng = random.Random(0)
    for number in (0, 4, 5, 6, 7, 50):
        chosen = set(rng.sample(names, number))
        world = {name: name in chosen for name in names}
        for definition in sdnf.definitions:
            true = [cube for cube in definition.cubes if definition.name in cube.true]
            world[definition.name] = any(fits(cube, world, definition.name) for cube in true)
        assert sum(fits(cube, world) for cube in sdnf) == (number <= 5)


def fits(cube: Cube, world: dict[str, bool], but: str = "") -> bool:
    return all(world[name] for name in cube.true if name != but) and not any(
        world[name] for name in cube.false
    )


def test_definitional_names_clash_with_no_atom() -> None:
    text = " ^ ".join(["_t1", "__t2", *(f"x{i}" for i in range(20))])
    sdnf = to_sdnf(parse(text))
    names = [definition.name for definition in sdnf.definitions]
    assert names[0] == "___t1"
    assert len({*names, *atoms_of(parse(text))}) == len(names) + 22


def test_equal_parts_are_defined_once() -> None:
    inner = " ^ ".join(f"x{i}" for i in range(12))
    once = to_sdnf(parse(f"({inner}) & y"), method="definitions")
    twice = to_sdnf(parse(f"({inner}) & y | z & ({inner})"), method="definitions")
    assert len(twice.definitions) <= len(once.definitions) + 2


@pytest.mark.parametrize("method", ["elimination", "diagram", "full"])
def test_a_method_that_must_stay_flat_says_when_it_cannot(method: str) -> None:
    with pytest.raises(TooManyCubes, match=r"cubes|atoms"):
        to_sdnf(parse(" ^ ".join(f"x{i}" for i in range(70))), method=method)


@pytest.mark.parametrize(("option", "value"), [("method", "magic"), ("budget", 0)])
def test_an_unknown_option_is_named(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=str(value)):
        to_sdnf(parse("a"), **{option: value})


def test_depth_costs_no_stack() -> None:
    depth = 10 * sys.getrecursionlimit()
    nested = atom("a")
    for i in range(depth):
        nested = ~(nested & atom(f"x{i % 50}")) if i % 2 else nested | atom(f"y{i % 50}")
    assert to_sdnf(nested).definitions


def test_a_wide_clause_keeps_the_number_of_literals_linear() -> None:
    sdnf = to_sdnf(disjunction(atom(f"x{i}") for i in range(2000)))
    literals = sum(len(cube) for part in (sdnf, *(d.cubes for d in sdnf.definitions)) for cube in part)
    assert literals < 2000 * 20


def test_the_longest_cube_comes_first() -> None:
    assert [len(cube) for cube in to_sdnf(parse("a & b & c & d -> e"))] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("number", range(2, 13))
def test_cubes_of_a_cardinality_are_as_many_as_its_shortest_paths(number):
    """Bounded on one side, or to one number; what is bounded to both sides is counted step by step."""
    ones = [(1, 1)] * number
    for least in range(number + 1):
        for most in range(least, number + 1):
            found = elimination._paths(number, least, most)
            counted = tuple(
                elimination.count_up(ones, (least, most, inside), 1, 0, elimination.capped_sum)
                for inside in (True, False)
            )
            assert found in (None, counted)
            assert (found is None) == ((least, most) == (0, number) or 0 < least < most < number)


def test_a_cardinality_too_large_for_cubes_is_not_counted_step_by_step(monkeypatch):
    monkeypatch.setattr(elimination, "count_up", lambda *_: pytest.fail("it is too large"))
    atoms = [atom(f"v{i}") for i in range(1000)]
    for formula in (atleast(500, *atoms), atmost(499, *atoms), exactly(500, *atoms)):
        measure = elimination.Elimination()
        assert measure.size(formula) == measure.size(~formula) == elimination.HUGE
