"""Terms: 1 is not 1.0, depth costs nothing, and what is written can be read."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.relations.prolog.reader import read_term
from lbm.relations.prolog.terms import (
    Compound,
    Variable,
    arguments,
    is_ground,
    key,
    list_items,
    make_list,
    same,
    signature,
    subterms,
    write,
    write_operand,
    write_short,
)

atoms = st.one_of(
    st.sampled_from(
        ["a", "ch3", "[]", "{}", "-", "+", "*", ":-", "\\+", ",", "|", ";", "!", "is", "not", "dynamic", "."]
    ),
    st.sampled_from(
        ["/*", "a b", "X", "_", "", "'", "\\", "\n", "it's", "é", "0a", "=..", "%", "#", "mod", "\x00"]
    ),
    st.text(max_size=4),
)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
leaves = st.one_of(atoms, numbers, st.sampled_from("A B X1 _Y".split()).map(Variable))
functors = st.one_of(atoms, st.sampled_from(["=", "<", "=:=", "=..", "f", "-", ",", ":-", "."]))
terms = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Compound, functors, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(make_list, st.lists(inner, max_size=3)),
        st.builds(make_list, st.lists(inner, min_size=1, max_size=3), inner),
    ),
    max_leaves=12,
)


@given(terms)
def test_reading_what_is_written_gives_the_same_term(term):
    assert same(read_term(write(term)), term)


@given(terms)
def test_a_literal_without_quoted_atoms_has_no_blanks(term):
    """Files of bottom clauses separate literals by blanks."""
    text = write(term)
    assert "'" in text or " " not in text


@given(terms, terms)
def test_terms_are_the_same_when_their_texts_are(one, other):
    """Zero has two floats that differ in their sign; they are equal numbers."""
    if "0.0" not in write(one) + write(other):
        assert same(one, other) == (write(one) == write(other))


@given(terms)
def test_equal_terms_have_equal_hashes_in_every_process(term):
    again = pickle.loads(pickle.dumps(term))
    assert same(again, term)
    assert hash(again) == hash(term)


def test_an_integer_is_not_the_float_of_the_same_value():
    assert Compound("f", (1,)) != Compound("f", (1.0,))
    assert len({Compound("f", (1,)), Compound("f", (1.0,)), Compound("f", (1,))}) == 2
    assert key(1) != key(1.0)
    assert not same(1, 1.0)
    assert Compound("f", (1,)) != "f"


def test_a_term_nested_20000_deep_is_compared_hashed_and_written():
    term = other = "a"
    for _ in range(20_000):
        term, other = Compound("f", (term,)), Compound("f", (other,))
    assert term == other
    assert hash(term) == hash(other)
    assert write(term).startswith("f(f(f(")
    assert is_ground(term)
    assert not is_ground(Compound("g", (term, Variable("X"))))
    assert write_short(term, 10) == "f(f(f(f(f( ..."


def test_lists_are_cells_that_end_in_the_empty_list():
    assert list_items(make_list(["a", 1])) == (["a", 1], "[]")
    assert list_items(make_list(["a"], Variable("T"))) == (["a"], Variable("T"))
    assert make_list([]) == "[]"


def test_subterms_come_in_order_of_appearance():
    found = [part.name for part in subterms(read_term("p(B, [A|T], f(B, C))")) if isinstance(part, Variable)]
    assert found == ["B", "A", "T", "B", "C"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("bond(n,group(ch3,2))", "bond(n,group(ch3,2))"),
        ("A = -1.5", "A=(-1.5)"),
        ("A = 'x y'", "A='x y'"),
        ("A = (b = c)", "A=(b=c)"),
        ("(+charge) = (#charge)", "(+(charge))=(#(charge))"),
        ("X is 1 + 2", "is(X,+(1,2))"),
        ("1e22", "1.0e+22"),
    ],
)
def test_a_term_is_written_as_people_write_literals(text, written):
    assert write(read_term(text)) == written


def test_the_parts_of_a_term():
    assert signature("a") == ("a", 0)
    assert signature(3) is None
    assert arguments("a") == ()
    assert repr(Compound("f", ("a",))) == "<f(a)>"
    assert str(Variable("X")) == "X"
    assert write_operand(-1) == "(-1)"
    assert write_operand("a") == "a"
