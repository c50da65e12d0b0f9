"""Modes: read as Aleph writes them, and errors that name the line."""

import pytest

from lbm.errors import ParseError
from lbm.relations.modes import CONSTANT, INPUT, OUTPUT, read_modes
from lbm.relations.prolog.reader import read_clauses


def read(text):
    return read_modes(read_clauses(text, source="modes.pl"))


def test_a_mode_knows_its_recall_predicate_and_places():
    modes, warnings = read(
        ":- modeh(1, ex(+a, +a)).\n:- modeb(*, bond(+drug, -atom, #int)).\n:- modeb(3, p)."
    )
    assert warnings == []
    (head,), (body, atom) = modes.head, modes.body
    assert (head.recall, head.predicate, head.clause.line) == (1, ("ex", 2), 1)
    assert (body.recall, body.predicate, body.clause.line) == (None, ("bond", 3), 2)
    assert [(place.path, place.sign, place.type) for place in body.places] == [
        ((0,), INPUT, "drug"),
        ((1,), OUTPUT, "atom"),
        ((2,), CONSTANT, "int"),
    ]
    assert [place.type for place in body.at(OUTPUT)] == ["atom"]
    assert (atom.recall, atom.predicate, atom.places) == (3, ("p", 0), ())
    assert str(body) == "*, bond(+drug,-atom,#int)"


def test_infix_nested_and_negated_modes_are_read():
    modes, _ = read(
        ":- modeb(1, (+charge) = (#charge)). :- modeb(*, p(f(+a, c), [-b])). :- modeb(1, not(q(+a)))."
    )
    equal, nested, negated = modes.body
    assert equal.predicate == ("=", 2)
    assert [place.path for place in nested.places] == [(0, 0), (1, 0)]
    assert negated.negated
    assert negated.predicate == ("q", 1)
    assert str(negated) == "1, not(q(+a))"


def test_mode_is_a_mode_of_head_and_body_and_repeated_lines_count_once():
    modes, _ = read(":- mode(1, p(+a)). :- modeb(1, p(+a)). :- modeb(1, p(+a)). :- determination(p/1, p/1).")
    assert len(modes.head) == len(modes.body) == len(modes.determinations) == 1


def test_settings_are_kept_and_other_directives_are_warnings():
    modes, warnings = read(
        ":- set(i, 3).\n:- set(good).\n:- dynamic p/1.\n:- commutative(p/2).\n:- modeb(subs(+, -))."
    )
    assert modes.settings == {"i": 3, "good": "true"}
    assert warnings == [
        "modes.pl:4: the directive commutative(/(p,2)) is not used",
        "modes.pl:5: the directive modeb(subs(+,-)) is not used",
    ]


def test_predicates_come_in_the_order_of_determinations():
    text = ":- modeb(1, p(+a)). :- modeb(2, p(-a)). :- modeb(1, q(+a)). :- modeb(1, r(+a))."
    named, _ = read(
        f"{text} :- determination(t/1, q/1). :- determination(t/1, p/1). :- determination(u/1, r/1)."
    )
    assert [(name, len(modes)) for name, modes in named.for_target(("t", 1))] == [
        (("q", 1), 1),
        (("p", 1), 2),
    ]
    unnamed, _ = read(text)
    assert [name for name, _ in unnamed.for_target(("t", 1))] == [("p", 1), ("q", 1), ("r", 1)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (":- modeb(0, p(+a)).", "a recall of 1 or more, or *, found 0"),
        (":- modeb(many, p(+a)).", "a recall of 1 or more, or *, found many"),
        (":- modeb(1, 7).", "a literal"),
        (":- modeb(1, p(X)).", "the variable X"),
        (":- modeb(1, p(+)).", "a type after +"),
        (f":- modeb(1, {'f(' * 60}+a{')' * 60}).", "terms inside one another"),
        (":- determination(p, q/1).", "a predicate such as bond/4, found p"),
        (":- determination(p/1, q/x).", "a predicate such as bond/4"),
        (":- set(3, 4).", "set(name, value)"),
    ],
)
def test_an_error_in_a_mode_names_its_line(line, words):
    with pytest.raises(ParseError) as caught:
        read(f"\n{line}")
    assert caught.value.one_line().startswith("modes.pl:2: expected")
    assert words in caught.value.one_line()
