"""Clauses: packed ones are what they say, and definitions change no model."""

import gc
import itertools
import pickle
import random
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysat.solvers import Solver

from lbm.knowledge.clauses import Clauses, as_clause, counter, definitional
from lbm.knowledge.formula import FALSE, atom, atoms_of, cardinality, conjunction, iff, postorder
from lbm.knowledge.parser import parse
from tests.oracles import parts, sat, truth, truth_table, worlds
from tests.strategies import CARDINALITIES, NAMES, formulae, random_formula

PLACE = {name: i for i, name in enumerate(NAMES, start=1)}
a, b, c = map(atom, "abc")


# --- packed clauses ------------------------------------------------------------------------------


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, 4, -1, -2, -3, -4]), max_size=5), max_size=6))
def test_a_packed_clause_is_the_disjunction_of_its_literals(listed):
    names = ("a", "b", "it's", "f(x, 1)")
    literals = np.array([literal for clause in listed for literal in clause], dtype=np.int32)
    clauses = Clauses(names, literals, np.cumsum([0, *map(len, listed)]))
    assert len(clauses) == len(listed)
    assert list(clauses.rows()) == listed
    for statement, numbers in zip(clauses, listed, strict=True):
        assert statement.weight is None
        for world in worlds(names):
            expected = any(world[names[abs(number) - 1]] is (number > 0) for number in numbers)
            assert truth(statement.formula, world) is expected
    assert clauses[:] == list(clauses)
    assert clauses[::-2] == list(clauses)[::-2]
    assert list(pickle.loads(pickle.dumps(clauses))) == list(clauses)
    for i in range(len(listed)):
        assert clauses[i - len(listed)].formula is clauses[i].formula
    for index in (len(listed), -len(listed) - 1):
        with pytest.raises(IndexError, match=f"row {index} of {len(listed)}"):
            clauses[index]


def test_a_packed_clause_keeps_the_order_and_the_repetitions_of_its_literals():
    clauses = Clauses(("a", "b"), np.array([2, -1, 2], dtype=np.int32), np.array([0, 3, 3]))
    assert [str(clause) for clause in clauses] == ["b | ~a | b", "false"]
    assert clauses[1].formula is FALSE


weighted = st.lists(
    st.tuples(
        st.lists(st.integers(1, 4).flatmap(lambda i: st.sampled_from([i, -i])), max_size=4), st.integers(0, 3)
    ),
    max_size=8,
)


@given(weighted, weighted, st.randoms(use_true_random=False))
def test_clauses_are_chosen_put_in_order_and_joined_with_all_that_belongs_to_them(one, other, rng):
    def packed(rows):
        return Clauses.of([row for row, _ in rows], [weight for _, weight in rows], atoms=tuple("abcd"))

    def told(clauses):
        return list(zip(clauses.rows(), clauses.weights.tolist(), clauses.owners.tolist(), strict=True))

    said = [(row, weight, number) for number, (row, weight) in enumerate(one)]
    clauses = packed(one)
    assert told(clauses) == said
    marked = np.array([weight == 0 for _, weight in one], bool)
    assert told(clauses.where(marked)) == [line for line in said if not line[1]]
    order = rng.sample(range(len(one)), len(one))
    assert told(clauses.ordered(np.array(order, np.intp))) == [said[number] for number in order]
    both = clauses.where(marked).joined(packed(other))
    more = [(row, weight, number) for number, (row, weight) in enumerate(other)]
    assert told(both) == [line for line in said if not line[1]] + more
    assert both.variables == 4


def test_weights_past_64_bits_stay_as_they_are():
    clauses = Clauses.of([[1], [-1]], [10**30, 2], variables=1)
    assert clauses.weights.tolist() == [10**30, 2]
    assert clauses.where(np.array([True, False])).weights.tolist() == [10**30]


# --- one formula as a clause ---------------------------------------------------------------------


@given(formulae())
def test_a_formula_that_is_a_clause_is_equivalent_to_its_literals(formula):
    literals = as_clause(formula)
    if literals is not None:
        for world in worlds(NAMES):
            assert any(world[name] is wanted for name, wanted in literals) is truth(formula, world)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=6, unique=True),
    st.integers(0, 2**32).map(random.Random),
)
def test_every_way_to_write_a_clause_is_known_to_be_one(literals, rng):
    def say(chosen, wanted):
        """Return a formula true where one of the literals is (or false there, if not wanted)."""
        if len(chosen) == 1:
            name, value = chosen[0]
            found = atom(name) if value is wanted else ~atom(name)
        else:
            cut = rng.randint(1, len(chosen) - 1)
            left, right = chosen[:cut], chosen[cut:]
            if wanted:
                way = rng.randrange(2)
                found = say(left, True) | say(right, True) if way else say(left, False) >> say(right, True)
            else:
                found = say(left, False) & say(right, False)
        return ~say(chosen, not wanted) if rng.random() < 0.2 else found

    assert as_clause(say(literals, True)) == literals


def test_equivalences_constants_and_cardinalities_are_no_clauses():
    texts = (
        "true",
        "a | false",
        "a & b",
        "~(a | b)",
        "a -> b & c",
        "~(a -> b)",
        "a ^ b",
        "a <-> b",
        "atleast(1, a)",
    )
    for text in texts:
        assert as_clause(parse(text)) is None


def test_a_clause_whose_parts_are_shared_is_read_in_its_own_size():
    formula = a | b
    for _ in range(200):
        formula = formula | formula
    literals = as_clause(formula)
    assert set(literals) == {("a", True), ("b", True)}
    assert len(literals) < 1000


# --- counters ------------------------------------------------------------------------------------


@given(st.sampled_from(CARDINALITIES), st.integers(0, 8), st.lists(formulae(max_leaves=2), max_size=7))
def test_a_counter_says_what_its_cardinality_says(kind, bound, listed):
    formula = cardinality(kind, bound, listed)
    plain = counter(formula)
    inner = {part for part in listed for part in parts(part)}
    assert truth_table(plain, NAMES) == truth_table(formula, NAMES)
    kinds = {part.kind for part in parts(plain) if part not in inner}
    assert kinds <= {"and", "or", "not", "true", "false"}


@pytest.mark.parametrize("kind", CARDINALITIES)
def test_a_counter_of_a_hundred_atoms_grows_like_their_number_times_the_bound(kind):
    atoms = [atom(f"x{i}") for i in range(100)]
    for bound in (0, 1, 5, 50, 95, 100, 101, 10**30):
        size = len(list(postorder(counter(cardinality(kind, bound, atoms)))))
        assert size <= 100 + 5 * 100 * (min(bound, 101, abs(100 - bound)) + 2)


@pytest.mark.parametrize(("kind", "bound"), [("atleast", 7), ("atmost", 3), ("exactly", 10)])
def test_a_solver_finds_no_world_in_which_a_large_counter_is_wrong(kind, bound):
    formula = cardinality(kind, bound, [atom(f"x{i}") for i in range(20)])
    assert sat(formula ^ counter(formula)) is None
    assert sat(formula) is not None


# --- definitions ---------------------------------------------------------------------------------


def extensions(clauses, world, place, top):
    """Return every way to extend a world to the new variables that keeps the clauses."""
    with Solver("cadical153", bootstrap_with=clauses) as solver:
        fixed = [number if world[name] else -number for name, number in place.items()]
        found = []
        while len(found) < 3 and solver.solve(assumptions=fixed):
            model = set(solver.get_model())
            found.append(model)
            solver.add_clause(
                [-number if number in model else number for number in range(len(place) + 1, top)]
            )
        return found


@given(st.lists(formulae(max_leaves=6), min_size=1, max_size=3))
def test_every_world_extends_to_the_definitions_in_one_way_and_the_roots_tell_the_truth(listed):
    clauses, roots, top = definitional(listed, PLACE, len(PLACE) + 1)
    used = {abs(literal) for clause in clauses for literal in clause} | set(map(abs, roots))
    assert used <= set(range(1, top))
    assert set(range(len(PLACE) + 1, top)) <= used
    for world in itertools.islice(worlds(NAMES), 0, None, 5):
        (model,) = extensions(clauses, world, PLACE, top)
        for formula, root in zip(listed, roots, strict=True):
            assert ((root in model) if root > 0 else (-root not in model)) is truth(formula, world)


@given(formulae(max_leaves=8))
def test_definitions_have_as_many_models_as_the_formula(formula):
    clauses, (root,), _ = definitional([formula], PLACE, len(PLACE) + 1)
    used = {abs(literal) for clause in [*clauses, [root]] for literal in clause}
    free = set(PLACE.values()) - used
    with Solver("cadical153", bootstrap_with=[*clauses, [root]]) as solver:
        models = 0
        while solver.solve():
            models += 1
            solver.add_clause([-literal for literal in solver.get_model() if abs(literal) in used])
    assert models == truth_table(formula, NAMES).bit_count() >> len(free)


def test_definitions_start_where_they_are_told_and_shared_parts_have_one():
    shared = a & ~b
    listed = [shared, ~shared, shared | c, iff(shared, c)]
    clauses, roots, top = definitional(listed, {"a": 1, "b": 2, "c": 3}, 10)
    assert roots[0] == 10
    assert roots[1] == -10
    assert top == 13
    assert min(abs(literal) for clause in clauses for literal in clause if abs(literal) > 3) == 10
    assert definitional([a, ~b], {"a": 1, "b": 2}, 3) == ([], [1, -2], 3)


def test_definitions_of_large_generated_formulae_are_right_in_random_worlds():
    rng = random.Random(7)
    for _ in range(100):
        formula = random_formula(rng, 12, 60)
        names = atoms_of(formula)
        place = {name: i for i, name in enumerate(names, start=1)}
        clauses, (root,), top = definitional([formula], place, len(names) + 1)
        for _ in range(5):
            world = {name: rng.random() < 0.5 for name in names}
            (model,) = extensions(clauses, world, place, top)
            assert ((root in model) if root > 0 else (-root not in model)) is truth(formula, world)


def timed(work):
    """Return processor time and result; collecting garbage would cost by what other tests left behind."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        found = work()
        return time.process_time() - start, found
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "grow",
    [lambda f, i: ~(f & atom(f"x{i}")), lambda f, i: cardinality("exactly", 1, [f, a, atom(f"x{i}")])],
    ids=["negations", "cardinalities"],
)
def test_definitions_of_a_deep_formula_take_time_in_proportion_to_its_size(grow):
    def seconds(depth):
        formula = a
        for i in range(depth):
            formula = grow(formula, i)
        place = {name: i for i, name in enumerate(atoms_of(formula), start=1)}
        took, (clauses, _, _) = timed(lambda: definitional([formula], place, len(place) + 1))
        assert len(clauses) >= depth
        return took

    assert seconds(20_000) < 40 * max(seconds(2_000), 0.01)


def test_definitions_of_many_formulae_do_not_pay_for_their_common_part_again():
    def seconds(size, formulae):
        common = conjunction([atom(f"x{i}") for i in range(size)])
        listed = [common ^ atom(f"y{i}") for i in range(formulae)]
        place = {name: i for i, name in enumerate(atoms_of(*listed), start=1)}
        took, (clauses, _, _) = timed(lambda: definitional(listed, place, len(place) + 1))
        assert len(clauses) == 3 * (size - 1) + 4 * formulae
        return took

    once, many = seconds(2000, 1), seconds(2, 2000)
    assert seconds(2000, 2000) < 10 * max(once + many, 0.05)


@given(
    rows=st.lists(st.lists(st.sampled_from([1, -1, 2, -2, 3, -3]), max_size=4), max_size=8),
    digits=st.integers(0, 2),
)
def test_statements_made_at_once_are_those_made_one_by_one(rows, digits):
    clauses = replace(Clauses.of(rows, list(range(len(rows))), atoms=("a", "b", "c")), digits=digits)
    assert clauses.statements() == list(clauses)
