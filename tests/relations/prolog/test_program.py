"""Programs: facts found by any of their arguments, rules apart, in the order of the file."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import ParseError
from lbm.relations.prolog.program import goals_of, make_program
from lbm.relations.prolog.reader import read_clauses, read_term
from lbm.relations.prolog.terms import Compound, key, same, write

values = st.sampled_from(["a", "b", 1, 1.0, 2, Compound("f", ("a",))])


@given(
    st.lists(st.tuples(values, values, values), max_size=12),
    st.lists(values, min_size=3, max_size=3),
    st.data(),
)
def test_the_index_finds_what_a_search_through_all_facts_finds(facts, wanted, data):
    text = "".join(f"p({','.join(map(write, fact))}).\n" for fact in facts) or "q(1)."
    predicate = make_program(read_clauses(text)).predicates.get(("p", 3))
    places = tuple(sorted(data.draw(st.sets(st.sampled_from([0, 1, 2])))))
    expected = [row for row, fact in enumerate(facts) if all(same(fact[k], wanted[k]) for k in places)]
    found = predicate.rows(places, tuple(key(wanted[k]) for k in places)) if predicate else []
    assert list(found) == expected


def test_facts_with_variables_are_rules():
    program = make_program(read_clauses("append([],A,A). p(a). p(X) :- q(X). p(b). :- set(i, 2)."))
    assert program.facts("p", 1) == (("a",), ("b",))
    assert [write(rule.body) for rule in program.rules("p", 1)] == ["q(X)"]
    assert program.predicates["p", 1].rules[0][0] == 1
    assert [rule.body for rule in program.rules("append", 3)] == ["true"]
    assert program.facts("none", 1) == program.rules("none", 1) == ()
    assert set(program.predicates) == {("append", 3), ("p", 1)}


def test_a_program_survives_a_pickle_without_its_indexes():
    program = make_program(read_clauses("p(a). p(b). q(X) :- p(X)."))
    program.predicates["p", 1].rows((0,), ("a",))
    again = pickle.loads(pickle.dumps(program))
    assert again == program
    assert again.predicates["p", 1].tables == {}
    assert list(again.predicates["p", 1].rows((0,), ("b",))) == [1]


@pytest.mark.parametrize("text", ["3.", "X.", "a, b.", "X :- p.", "?- p.", "a --> b.", "1 :- p."])
def test_what_is_no_clause_is_an_error_with_its_line(text):
    with pytest.raises(ParseError) as caught:
        make_program(read_clauses(f"p(1).\n{text}", source="bk.pl"))
    assert caught.value.one_line().startswith("bk.pl:2: expected")


def test_goals_inside_control_structures_are_goals_too():
    body = read_term("(a ; b -> \\+ c), not(d(X)), call(e), F")
    assert [write(goal) for goal in goals_of(body)] == ["a", "b", "c", "d(X)", "e"]
