"""Clauses as text: reading what is printed gives the same clause, and SWI-Prolog reads it as the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.relations.prolog.printed import write_clause
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Compound, Variable, make_list

leaves = st.one_of(
    st.sampled_from(["a", "b c", "[]", "Up", "{}", "x'y"]),
    st.integers(-5, 5),
    st.sampled_from([1.5, -0.25]),
    st.sampled_from("XYZ").map(Variable),
)
terms = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda f, one, two: Compound(f, (one, two)), st.sampled_from(["f", "=", "<", "-"]), inner, inner
        ),
        st.lists(inner, max_size=3).map(make_list),
    ),
    max_leaves=6,
)
goals = st.recursive(
    st.builds(lambda name, term: Compound(name, (term,)), st.sampled_from(["p", "q r"]), terms),
    lambda inner: st.one_of(
        st.builds(
            lambda f, one, two: Compound(f, (one, two)), st.sampled_from([",", ";", "->"]), inner, inner
        ),
        inner.map(lambda goal: Compound("\\+", (goal,))),
    ),
    max_leaves=6,
)


@given(goals)
def test_reading_what_is_printed_gives_the_same_clause(body):
    for clause in (Compound(":-", (Compound("h", (Variable("X"),)), body)), Compound(":-", (body,))):
        assert [one.term for one in read_clauses(write_clause(clause))] == [clause]


def test_bodies_of_ten_thousand_goals_and_brackets_are_printed():
    deep = "h :- " + "\\+ " * 10_000 + "a."
    long = "h :- " + ", ".join(["p(X)"] * 10_000) + "."
    for text in (deep, long):
        (clause,) = read_clauses(text)
        assert read_clauses(write_clause(clause.term))[0].term == clause.term


@pytest.mark.parametrize("text", ["p(a).", "p.", ":- dynamic(/(p,1)).", "p :-\n    q,\n    (r ; s)."])
def test_the_form_is_that_of_people(text):
    assert write_clause(read_clauses(text)[0].term) == text
