"""Theories: weights kept exactly, text that reads back the same, and scores without rounding."""

import copy
import decimal
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lbm.errors import ParseError, WeightError
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import atom, atoms_of, disjunction
from lbm.knowledge.numbers import as_weight, exact_sum
from lbm.knowledge.parser import Statement, parse
from lbm.knowledge.theory import Theory, hard_weight, shown, to_lines
from tests.oracles import score_and_hard, truth, worlds
from tests.strategies import AWKWARD, NAMES, awkward_names, formulae, theories, weights

a, b, c = map(atom, "abc")


@st.composite
def packed_theories(draw):
    """Draw a theory of packed clauses, and the same clauses as formulae with their weights."""
    labels = awkward_names.map(lambda name: atom(name).label)
    names = tuple(draw(st.lists(labels, min_size=1, max_size=4, unique=True)))
    literals = st.integers(1, len(names)).flatmap(lambda i: st.sampled_from([i, -i]))
    clauses = draw(st.lists(st.lists(literals, max_size=4), max_size=5))
    given_weights = draw(
        st.none() | st.lists(st.integers(0, 9), min_size=len(clauses), max_size=len(clauses))
    )
    packed = Clauses(
        names,
        np.array([literal for clause in clauses for literal in clause], dtype=np.int32),
        np.cumsum([0, *map(len, clauses)]),
    )
    sign = [lambda i: ~atom(names[-i - 1]), lambda i: atom(names[i - 1])]
    plain = [disjunction(sign[literal > 0](literal) for literal in clause) for clause in clauses]
    array = None if given_weights is None else np.array(given_weights, dtype=np.int64)
    pairs = list(zip(given_weights or [0] * len(clauses), plain, strict=True))
    return Theory.from_clauses(packed, array), [(weight or None, formula) for weight, formula in pairs]


# --- text ----------------------------------------------------------------------------------------


@given(theories())
def test_parsing_what_a_theory_prints_gives_back_the_same_theory(theory):
    assume(len(theory) or theory.atoms)
    again = Theory.parse(str(theory))
    assert again == theory
    assert again.atoms == theory.atoms
    assert [str(statement.weight) for statement in again] == [str(statement.weight) for statement in theory]
    assert all(x.formula is y.formula for x, y in zip(again, theory, strict=True))


@given(st.lists(formulae(awkward_names, max_leaves=5), max_size=3), st.lists(awkward_names, max_size=4))
def test_awkward_names_survive_the_text_of_a_theory(listed, names):
    theory = Theory(listed, atoms=names)
    assume(len(theory) or theory.atoms)
    assert Theory.parse(str(theory)) == theory
    assert Theory.parse("\n".join(to_lines(theory))) == theory


def test_atoms_are_written_only_where_their_order_does_not_follow():
    assert str(Theory(["a -> b", (2, "c")])) == "a -> b\n2: c"
    assert str(Theory(["a -> b"], atoms=["b"])) == "atoms b, a\na -> b"
    assert str(Theory(["a"], atoms=["a", "idle one"])) == "atoms a, 'idle one'\na"
    assert str(Theory(atoms=["a"])) == "atoms a"
    assert str(Theory()) == ""


def test_a_vocabulary_of_any_size_is_written_within_the_limits_of_a_line(monkeypatch):
    theory = Theory(["x7 & x3"], atoms=[f"x{i}" for i in range(5000)])
    monkeypatch.setattr("lbm.knowledge.lexer.MAX_STATEMENT", 20_000)
    assert Theory.parse(str(theory)) == theory


def test_a_statement_prints_as_it_is_read():
    assert str(Statement(a >> b)) == "a -> b"
    assert str(Statement(a >> b, Decimal("2.50"))) == "2.50: a -> b"
    assert str(Statement(~a, -3)) == "-3: ~a"


# --- making theories -----------------------------------------------------------------------------


def test_a_theory_is_made_of_formulae_texts_pairs_and_statements():
    theory = Theory([a, "b -> a", (2, b), ("0.5", "c"), (None, "a | c"), Statement(c, -1)])
    assert [statement.formula for statement in theory] == [a, b >> a, b, c, a | c, c]
    assert [statement.weight for statement in theory] == [None, None, 2, Decimal("0.5"), None, -1]
    assert theory.atoms == ("a", "b", "c")
    assert len(theory) == 6


@given(st.lists(formulae(), max_size=4), st.lists(st.sampled_from(AWKWARD), max_size=3))
def test_declared_atoms_come_first_and_the_others_as_they_are_met(listed, names):
    labels = [atom(name).label for name in names]
    assert Theory(listed, atoms=names).atoms == tuple(dict.fromkeys([*labels, *atoms_of(*listed)]))


@pytest.mark.parametrize("item", [3, None, (1, 2, 3), (1, None), ["a"], (1, 2)])
def test_what_is_no_statement_is_refused(item):
    with pytest.raises(TypeError, match="expected a formula, its text, or a pair"):
        Theory([item])


@pytest.mark.parametrize("weight", [0, 0.0, Decimal("-0"), "0"])
def test_a_weight_of_zero_is_refused(weight):
    with pytest.raises(WeightError, match="zero says nothing"):
        Theory([(weight, a)])
    with pytest.raises(WeightError, match="zero says nothing"):
        Theory([Statement(a, as_weight(1)), Statement(b, weight)])


@pytest.mark.parametrize(
    "weight",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        Decimal("nan"),
        Decimal("sNaN"),
        Decimal("-inf"),
        "nan",
        "inf",
    ],
)
def test_a_weight_that_is_not_finite_is_refused(weight):
    with pytest.raises(WeightError, match="a finite number"):
        Theory([(weight, a)])


@pytest.mark.parametrize("weight", [True, b"1", [1], 1j, "heavy", "", "1/2", a])
def test_a_weight_that_is_no_number_is_refused(weight):
    with pytest.raises(WeightError, match="expected a number as weight"):
        Theory([(weight, a)])


@pytest.mark.parametrize(
    ("weight", "limit"),
    [
        (10**101, "MAX_WEIGHT"),
        (Decimal("1e101"), "MAX_WEIGHT"),
        (Decimal("-1e999999"), "MAX_WEIGHT"),
        (Decimal("1.0000000000000000000000000000000000001e100"), "MAX_WEIGHT"),
        (Decimal("9.99e-101"), "MAX_WEIGHT"),
        (1e101, "MAX_WEIGHT"),
        (1e-101, "MAX_WEIGHT"),
        (10**100, "MAX_DIGITS"),
        (Decimal("0." + "1" * 101), "MAX_DIGITS"),
        ("1" * 300, "MAX_DIGITS"),
    ],
    ids=repr,
)
def test_a_weight_past_a_limit_is_refused_by_its_name(weight, limit):
    with pytest.raises(WeightError, match=limit) as caught:
        Theory([(weight, a)])
    assert len(str(caught.value)) < 200


def test_a_number_too_long_to_print_is_refused_like_any_other():
    with pytest.raises(WeightError, match="MAX_WEIGHT") as caught:
        Theory([(-(10**5000), a)])
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "weight", [Decimal("1e100"), Decimal("-1e-100"), 10**99, Decimal("0." + "1" * 100), 1e-100]
)
def test_a_weight_at_a_limit_is_kept_and_reads_back(weight):
    theory = Theory([(weight, a)])
    assert Theory.parse(str(theory)) == theory
    assert theory.score({"a": True}) == as_weight(weight)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: 1e-99 < abs(x) < 1e99))
def test_a_float_is_the_number_it_prints(number):
    assert as_weight(number) == Decimal(repr(number))
    assert float(as_weight(number)) == number
    assert as_weight(np.float64(number)) == as_weight(number)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint32, np.float32, np.float64])
def test_numbers_of_arrays_are_weights(kind):
    assert as_weight(kind(3)) == 3
    assert str(Theory([(kind(3), a)])) in ("3: a", "3.0: a")


@given(weights)
def test_a_weight_is_kept_as_it_is_given(weight):
    with decimal.localcontext(decimal.Context(prec=5)):
        assert as_weight(weight) is weight
        (statement,) = Theory([(weight, a)])
    assert statement.weight is weight


# --- scores --------------------------------------------------------------------------------------


@given(theories(atoms=NAMES[:3]))
def test_scores_and_models_are_those_of_the_definition(theory):
    for world in worlds(theory.atoms):
        score, hard = score_and_hard(theory, world)
        assert Fraction(theory.score(world)) == score
        assert theory.is_model(world) is (hard == sum(statement.weight is None for statement in theory))


@given(st.lists(weights, max_size=8))
def test_sums_of_weights_are_exact_in_any_decimal_context(listed):
    expected = sum(map(Fraction, listed), Fraction(0))
    for precision in (3, 28, 90):
        with decimal.localcontext(decimal.Context(prec=precision)):
            total = exact_sum(iter(listed))
        assert Fraction(total) == expected
        assert isinstance(total, Decimal) is any(isinstance(weight, Decimal) for weight in listed)


def test_sums_of_the_largest_and_the_smallest_weight_are_exact():
    large, small = Decimal("-9." + "9" * 99 + "e99"), Decimal("1." + "1" * 99 + "e-100")
    assert Fraction(exact_sum([large, small] * 1000)) == 1000 * (Fraction(large) + Fraction(small))


@given(theories())
def test_a_hard_formula_weighs_more_than_all_soft_ones_together(theory):
    soft = [abs(Fraction(statement.weight)) for statement in theory if statement.weight is not None]
    for precision in (3, 28):
        with decimal.localcontext(decimal.Context(prec=precision)):
            assert Fraction(hard_weight(theory)) == 1 + sum(soft)


# --- equality, copies ----------------------------------------------------------------------------


@given(theories(), theories())
def test_theories_are_equal_if_atoms_formulae_and_weights_are(left, right):
    def parts(theory):
        return theory.atoms, [(statement.formula, statement.weight) for statement in theory]

    assert (left == right) is (parts(left) == parts(right))
    if left == right:
        assert hash(left) == hash(right)


@given(theories())
def test_copies_and_pickles_of_a_theory_equal_it(theory):
    for again in (
        copy.copy(theory),
        copy.deepcopy(theory),
        pickle.loads(pickle.dumps(theory)),
        Theory(theory, atoms=theory.atoms),
    ):
        assert again == theory
        assert hash(again) == hash(theory)
        assert len({again, theory}) == 1
        assert [str(statement) for statement in again] == [str(statement) for statement in theory]


def test_order_weights_and_idle_atoms_make_a_difference_and_lines_do_not():
    theory = Theory([a, (2, b)])
    assert theory != Theory([(2, b), a])
    assert theory != Theory([a, (3, b)])
    assert theory != Theory([a, b])
    assert theory != Theory([a, (2, b)], atoms="b")
    assert theory != Theory([a, (2, b), c])
    assert theory != "a\n2: b"
    assert theory == Theory.parse("\n\na\n\n2.0: b")
    assert hash(theory) == hash(Theory.parse("a\n2.0: b"))
    assert [statement.line for statement in Theory.parse("\na\n\n2: b")] == [2, 4]


def test_a_theory_never_changes():
    theory = Theory([a])
    for name in ("atoms", "statements", "other"):
        with pytest.raises(AttributeError, match="never changes"):
            setattr(theory, name, ())
    with pytest.raises(AttributeError):
        theory.statements[0].weight = 3


def test_repr_says_how_much_there_is():
    assert repr(Theory([a, (2, b), (3, c)])) == "<Theory: 3 atoms, 1 hard and 2 soft formulae>"
    names = ("a",)
    many = Clauses(names, np.ones(10_001, dtype=np.int32), np.arange(10_002))
    assert repr(Theory.from_clauses(many)) == "<Theory: 1 atoms, 10001 formulae>"


def test_an_empty_theory_has_no_text_and_every_world_is_its_model():
    theory = Theory()
    assert (len(theory), theory.atoms, str(theory), hard_weight(theory)) == (0, (), "", 1)
    assert theory.is_model({})
    assert theory.score({}) == 0
    with pytest.raises(ParseError):
        Theory.parse("")


# --- packed clauses ------------------------------------------------------------------------------


@given(packed_theories())
def test_packed_clauses_are_the_theory_of_their_formulae(drawn):
    packed, pairs = drawn
    plain = Theory(pairs, atoms=packed.atoms)
    assert packed == plain
    assert hash(packed) == hash(plain)
    assert str(packed) == str(plain)
    assert repr(packed) == repr(plain)
    assert hard_weight(packed) == hard_weight(plain)
    assert len(packed) == len(plain)
    assert pickle.loads(pickle.dumps(packed)) == plain
    assert list(packed.statements[::-1]) == list(plain.statements[::-1])
    for world in worlds(packed.atoms):
        assert packed.score(world) == plain.score(world)
        assert packed.is_model(world) is plain.is_model(world)
        for statement, (_, formula) in zip(packed, pairs, strict=True):
            assert truth(statement.formula, world) is truth(formula, world)


def test_a_packed_statement_is_found_from_either_end():
    packed = Theory.from_clauses(Clauses(("a", "b"), np.array([1, -2], dtype=np.int32), np.array([0, 1, 2])))
    assert packed.statements[-1] == Statement(~b)
    assert packed.statements[-2:] == [Statement(a), Statement(~b)]
    with pytest.raises(IndexError):
        packed.statements[2]


def test_hard_weights_of_packed_clauses_are_exact_where_floats_are_not():
    weights = np.array([2**62, 2**62, 2**62, 1], dtype=np.int64)
    clauses = Clauses(("a",), np.array([1, 1, 1, 1], dtype=np.int32), np.arange(5))
    assert hard_weight(Theory.from_clauses(clauses, weights)) == 3 * 2**62 + 2


def test_packed_clauses_have_no_negative_weight():
    clauses = Clauses(("a",), np.array([1, -1], dtype=np.int32), np.arange(3))
    with pytest.raises(WeightError, match="weights from 1 up, or 0 for a hard one, got -2"):
        Theory.from_clauses(clauses, np.array([3, -2], dtype=np.int64))


def test_formulae_given_as_text_are_parsed_as_formulae():
    with pytest.raises(ParseError):
        Theory(["2: a"])
    assert Theory([parse("a")]) == Theory(["a"])


@given(st.integers(1, 300))
def test_a_formula_is_shown_whole_or_cut_with_dots(size):
    formula = parse(" | ".join(f"a{i}" for i in range(size)))
    text = shown(formula)
    assert len(text) <= 100
    assert text == str(formula) or (text.endswith(" ...") and str(formula).startswith(text[:-4]))
