"""Penalty Logic: the polynomial, its reductions, and the machine it leads to."""

import random
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, UnknownAtom
from lbm.knowledge.formula import Formula, atom, atoms_of, cardinality, conjunction, disjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory, hard_weight
from lbm.machine.penalty import (
    MAX_MONOMIALS,
    energy_polynomial,
    hidden_names,
    penalty_machine,
    penalty_polynomial,
    reduce_degree,
    write_polynomial,
)
from lbm.machine.translate import translate
from tests.oracles import score_and_hard, truth, worlds
from tests.strategies import NAMES, formulae, random_formula, theories

XOR = parse("(x ^ y) <-> z")

# As the paper prints them, after "For comparison, one may construct an RBM for XOR using Penalty Logic".
PAPER_HIGHER_ORDER = "4xyz - 2xy - 2xz - 2yz + x + y + z"
PAPER_QUADRATIC = "2xy - 2xz - 2yz - 8xh1 - 8yh1 + 8zh1 + x + y + z + 12h1"
PAPER_RBM = (
    "-8xh1 - 8yh1 + 8zh1 + 12h1 - 4xh2 + 4yh2 + 2h2 - 4yh3 - 4zh3 + 6h3 - 4xh4 - 4zh4 + 6h4 + 3x + y + z"
)

halves = st.integers(-40, 40).filter(bool).map(lambda n: Decimal(n) / 2)
"""Weights of either sign for which floating-point sums are exact."""


def about_something(theory):
    return len(theory.atoms) > 0


def value(polynomial, world):
    """Return the value of a polynomial in a world."""
    return sum(c * prod(world[name] for name in monomial) for monomial, c in polynomial.items())


def least(polynomial, world, units):
    """Return the least value of a polynomial over the states of its hidden units, by trying them all."""
    states = product((False, True), repeat=len(units))
    return min(value(polynomial, world | dict(zip(units, state, strict=True))) for state in states)


# --- the paper's example -------------------------------------------------------------------------


def test_the_penalty_of_xor_is_the_papers_polynomial():
    assert write_polynomial(penalty_polynomial(XOR)) == PAPER_HIGHER_ORDER


def test_the_quadratic_form_of_xor_is_the_papers():
    reduced = reduce_degree(penalty_polynomial(XOR), "xyz", degree=2)
    assert write_polynomial(energy_polynomial(reduced)) == PAPER_QUADRATIC


def test_the_machine_form_of_xor_is_the_papers_unit_by_unit():
    reduced = reduce_degree(penalty_polynomial(XOR), "xyz")
    assert write_polynomial(energy_polynomial(reduced)) == PAPER_RBM


def test_the_paper_printed_an_rbm_that_ranks_worlds_as_xor_does():
    """The published function, typed in by hand: its minimum over h is 0 where (x ^ y) <-> z holds, else 1."""
    for x, y, z in product((0, 1), repeat=3):
        energies = [
            -8 * x * h1 - 8 * y * h1 + 8 * z * h1 + 12 * h1 - 4 * x * h2 + 4 * y * h2 + 2 * h2
            - 4 * y * h3 - 4 * z * h3 + 6 * h3 - 4 * x * h4 - 4 * z * h4 + 6 * h4 + 3 * x + y + z
            for h1, h2, h3, h4 in product((0, 1), repeat=4)
        ]  # fmt: skip
        assert min(energies) == ((x ^ y) != z)


def test_the_machine_of_xor_has_half_the_papers_coefficients():
    machine = penalty_machine(Theory([XOR]), epsilon=0.5)
    expected = [[8, 4, 0, 4], [8, -4, 4, 0], [-8, 0, 4, 4]]
    assert (2 * machine.weights.toarray() == expected).all()
    assert (2 * machine.hidden_bias).tolist() == [-12, -2, -6, -6]
    assert (2 * machine.visible_bias).tolist() == [-3, -1, -1]


# --- laws ----------------------------------------------------------------------------------------


@given(formulae())
def test_the_polynomial_is_one_where_the_formula_is_false_and_zero_elsewhere(formula):
    polynomial = penalty_polynomial(formula)
    for world in worlds(atoms_of(formula)):
        assert value(polynomial, world) == (not truth(formula, world))


def test_polynomials_of_large_random_formulae_are_one_where_the_formula_is_false():
    rng = random.Random(4)
    for _ in range(100):
        formula = random_formula(rng, max_atoms=7)
        polynomial = penalty_polynomial(formula)
        for world in worlds(atoms_of(formula)):
            assert value(polynomial, world) == (not truth(formula, world))


@given(theories())
def test_the_penalty_of_a_theory_is_a_constant_less_what_the_law_earns(theory):
    """penalty(x) = constant - (score(x) + W·hard), exactly, whatever the digits of the weights."""
    polynomial = penalty_polynomial(theory)
    hard = Fraction(hard_weight(theory))
    constant = sum(max(hard if s.weight is None else Fraction(s.weight), 0) for s in theory)
    for world in worlds(theory.atoms):
        score, kept = score_and_hard(theory, world)
        assert value(polynomial, world) == constant - (score + hard * kept)


@given(
    theories(max_statements=3, max_leaves=4, atoms=NAMES[:4]),
    st.sampled_from([1, 2]),
    st.sampled_from([0.5, 0.3]),
)
def test_the_least_energy_over_hidden_units_is_the_polynomial(theory, degree, epsilon):
    polynomial = penalty_polynomial(theory)
    reduced = reduce_degree(polynomial, theory.atoms, degree=degree)
    energy = energy_polynomial(reduced, epsilon=epsilon)
    units = hidden_names(theory.atoms, len(reduced.wells))
    if len(units) > 6:
        return
    assert max((len(monomial) for monomial in energy), default=0) <= 2
    if degree == 1:
        pairs = [monomial for monomial in energy if len(monomial) == 2]
        assert all((left in units) != (right in units) for left, right in pairs)
    for world in worlds(theory.atoms):
        assert least(energy, world, units) == value(polynomial, world)


@given(formulae(max_leaves=8), st.sampled_from([1, 2]))
def test_the_wells_and_what_is_left_add_up_to_the_polynomial(formula, degree):
    polynomial = penalty_polynomial(formula)
    reduced = reduce_degree(polynomial, atoms_of(formula), degree=degree)
    assert all(len(monomial) <= degree for monomial in reduced.rest)
    for world in worlds(reduced.atoms):
        dug = sum(
            well.weight
            for well in reduced.wells
            if all(world[a] for a in well.cube.true) and not any(world[a] for a in well.cube.false)
        )
        assert value(reduced.rest, world) - dug == value(polynomial, world)


@given(theories(weights=halves).filter(about_something), st.sampled_from([0.5, 0.25]))
def test_the_machine_obeys_the_law_of_every_machine(theory, epsilon):
    """-min_h E(x, h)/ε + offset = score(x) + W·hard."""
    machine = penalty_machine(theory, epsilon=epsilon)
    for world in worlds(theory.atoms):
        score, kept = score_and_hard(theory, world)
        assert machine.score(world) == float(score + Fraction(hard_weight(theory)) * kept)


@given(theories(weights=halves, atoms=NAMES[:4]).filter(about_something))
def test_both_encodings_give_every_world_the_same_score(theory):
    ours, theirs = translate(theory), translate(theory, encoding="penalty")
    for world in worlds(theory.atoms):
        assert ours.score(world) == theirs.score(world)


def test_the_law_survives_an_epsilon_and_weights_that_floats_cannot_hold():
    theory = Theory([(Decimal("0.1"), "a & b -> c"), (-1_000_000_000, "a | b | c"), "a ^ c"])
    machine = penalty_machine(theory, epsilon=0.1)
    for world in worlds(theory.atoms):
        score, kept = score_and_hard(theory, world)
        expected = float(score + Fraction(hard_weight(theory)) * kept)
        # Energies of ±1e9 are added up, rounded to about 1e-7 each, and divided by ε.
        assert machine.score(world) == pytest.approx(expected, abs=1e-5)


@given(theories(weights=halves))
def test_a_unit_serves_only_formulae_about_its_atoms(theory):
    machine = penalty_machine(theory)
    for unit in machine.units:
        assert unit.formulae
        about = {name for i in unit.formulae for name in atoms_of(theory.statements[i].formula)}
        assert set(unit.cube.true) | set(unit.cube.false) <= about


def test_units_of_a_machine_keep_cube_weight_and_reasons():
    machine = penalty_machine(Theory([(3, "~(a & b)"), (2, "a & b")]))
    (unit,) = machine.units
    assert str(unit.cube) == "a & ~b"
    assert (unit.weight, unit.formulae, unit.definitions) == (1.0, (0, 1), ())


def test_terms_that_cancel_leave_no_unit():
    machine = penalty_machine(Theory([(2, "a & b"), (2, "~(a & b)")]))
    assert machine.hidden == 0
    assert machine.score([[0, 0], [1, 1]]).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("text", ["true", "false"])
def test_a_constant_has_a_machine_without_units(text):
    machine = penalty_machine(Theory([parse(text)]))
    assert (machine.hidden, len(machine.atoms)) == (0, 0)
    assert machine.offset == (text == "true")


def test_an_empty_theory_has_no_penalty():
    assert penalty_polynomial(Theory()) == {}
    assert penalty_machine(Theory(atoms=["idle"])).score({"idle": 1}) == 0


# --- order and words -----------------------------------------------------------------------------


def test_terms_follow_the_order_of_atoms_that_was_asked_for():
    polynomial = penalty_polynomial(parse("~(x & y)"), atoms=("z", "y", "x"))
    assert list(polynomial) == [("y", "x")]


def test_an_order_that_lacks_an_atom_is_refused_by_name():
    with pytest.raises(UnknownAtom, match="no atom 'y' in this list of atoms"):
        penalty_polynomial(parse("x & y"), atoms=("x",))
    with pytest.raises(UnknownAtom, match="no atom 'y' in this list of atoms"):
        reduce_degree({("x", "y"): 1}, ("x",))


def test_monomials_in_any_order_and_with_repeats_are_one_term():
    reduced = reduce_degree({("y", "x"): 1, ("x", "y"): 2, ("x", "x"): 5}, ("x", "y"), degree=2)
    assert dict(reduced.rest) == {("x", "y"): 3, ("x",): 5}


def test_a_polynomial_is_written_with_exact_whole_numbers_and_short_decimals():
    assert write_polynomial({}) == "0"
    assert write_polynomial({(): -3}) == "-3"
    assert (
        write_polynomial({("x1", "x12"): 10**30 + 1, ("x1",): Fraction(-5, 2)})
        == f"{10**30 + 1}x1x12 - 2.5x1"
    )


def test_names_that_could_run_together_are_kept_apart():
    assert write_polynomial({("x", "y"): -1, ("xy",): 2}) == "-x·y + 2 xy"
    assert write_polynomial({("age <= 30", "true"): 2}) == "2 'age <= 30'·'true'"


def test_hidden_units_never_take_the_name_of_an_atom():
    assert hidden_names(("h1", "_h2"), 2) == ("__h1", "__h2")
    assert hidden_names(("h7",), 2) == ("h1", "h2")


@pytest.mark.parametrize("epsilon", [0, 1, -0.5, 2, float("nan")])
def test_epsilon_outside_zero_and_one_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must lie strictly between 0 and 1"):
        penalty_machine(Theory(["a"]), epsilon=epsilon)


def test_only_degrees_one_and_two_can_be_asked_for():
    with pytest.raises(ValueError, match="degree 1 or 2, got 3"):
        reduce_degree({}, (), degree=3)


# --- limits --------------------------------------------------------------------------------------

MANY = [atom(f"a{i}") for i in range(40)]


@pytest.mark.parametrize(
    "formula",
    [
        disjunction(MANY),
        parse(" ^ ".join(f"a{i}" for i in range(40))),
        cardinality("atleast", 20, MANY),
        cardinality("exactly", 1, [atom(f"b{i}") for i in range(2000)]),
        ~conjunction(~part for part in MANY),
        conjunction(atom(f"c{i}") for i in range(100_000)),
    ],
    ids=["or", "xor", "atleast", "exactly", "negated and", "wide and"],
)
def test_a_polynomial_without_end_is_refused_by_a_named_limit(formula: Formula):
    with pytest.raises(LimitExceeded, match="limit MAX_MONOMIALS") as caught:
        penalty_polynomial(formula)
    assert (caught.value.limit, caught.value.value) == ("MAX_MONOMIALS", MAX_MONOMIALS)


def test_a_theory_and_a_reduction_have_the_same_limit(monkeypatch):
    theory = Theory([(1, f"a{i} & b{i}") for i in range(20)])
    with monkeypatch.context() as smaller:
        smaller.setattr("lbm.machine.penalty.MAX_MONOMIALS", 15)
        with pytest.raises(LimitExceeded, match="passes 15 terms"):
            penalty_polynomial(theory)
    long = {tuple(f"a{i}" for i in range(2000)): 1}
    with pytest.raises(LimitExceeded, match="MAX_MONOMIALS"):
        reduce_degree(long, [f"a{i}" for i in range(2000)])


def test_depth_costs_nothing_but_terms():
    deep = atom("a")
    for _ in range(100_001):
        deep = ~deep
    assert penalty_polynomial(deep) == {("a",): 1}


def test_a_conjunction_of_thousands_is_one_unit():
    machine = penalty_machine(Theory([conjunction(atom(f"a{i}") for i in range(5000))]))
    assert machine.hidden == 1
    assert machine.score(np.ones(5000)) == 1
    assert machine.score(np.arange(5000) > 0) == 0
