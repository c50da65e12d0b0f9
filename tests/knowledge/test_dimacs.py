"""DIMACS and WCNF text: what is read, what is refused and where the message points."""

import contextlib
import io
import math
import pickle
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysat.formula import CNF, WCNF

import lbm
from lbm.errors import LbmError, ParseError, WeightError
from lbm.knowledge import dimacs
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.dimacs import MAX_ATOMS, MAX_WHOLE_WEIGHT, read_clauses, write_cnf, write_wcnf
from lbm.knowledge.formula import FALSE, atom_name
from lbm.knowledge.theory import Theory
from lbm.knowledge.wire import read_theory, write_theory

literals = st.integers(1, 9).flatmap(lambda number: st.sampled_from([number, -number]))
rows = st.lists(st.lists(literals, max_size=5), max_size=12)
whole_weights = st.integers(1, 50) | st.just(MAX_WHOLE_WEIGHT)
soft_or_hard = st.none() | whole_weights
blanks = st.sampled_from(
    [" ", "  ", "\t", "\n", "\r\n", "\n\n", "\nc 1 2 0 p cnf\n", "\n  c\n", "\nc p show 1 2 0\n"]
)


def cnf(text, **options):
    """Read a .cnf text: the number of its atoms, and its clauses as lists of numbers."""
    return unpack(read_clauses(text.encode(), weighted=False, **options))[:2]


def wcnf(text, **options):
    """Read a .wcnf text: the number of its atoms, clauses, and weights with None for hard."""
    return unpack(read_clauses(text.encode(), weighted=True, **options))


def unpack(found):
    return len(found.atoms), list(found.rows()), [weight or None for weight in found.weights.tolist()]


def packed(atoms, lists, weights=None):
    return Clauses.of(lists, weights, atoms=tuple(atoms))


def refusal(text, reader=cnf):
    with pytest.raises(ParseError) as caught:
        reader(text, source="file")
    return caught.value


# --- decimals ------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(1, 2**62) | st.decimals(0, 50, places=3).filter(bool), st.lists(literals)
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_decimal_weights_are_read_exactly_in_both_forms(clauses, old):
    top = MAX_WHOLE_WEIGHT
    begin = f"p wcnf 9 {len(clauses)} {top}\n" if old else "c newer\n"
    if not clauses and not old:
        return
    hard = str(top) if old else "h"
    lines = [" ".join([hard if w is None else str(w), *map(str, row), "0"]) for w, row in clauses]
    theory = read_theory(begin + "\n".join(lines), format="wcnf")
    assert theory.weights == [weight for weight, _ in clauses]
    assert [statement.weight for statement in theory] == theory.weights
    if max(theory.clauses.weights.tolist(), default=0) <= MAX_WHOLE_WEIGHT:
        scale = 10**theory.clauses.digits
        known = [None if weight is None else weight * scale for weight in theory.weights]
        assert read_theory("".join(write_theory(theory, "wcnf")), format="wcnf").weights == known
    else:
        with pytest.raises(WeightError, match="MAX_WHOLE_WEIGHT"):
            write_theory(theory, "wcnf")


def test_scores_and_best_worlds_of_decimal_weights_are_exact():
    theory = read_theory("0.1 1 0\n0.2 1 0\n.3 -1 2 0\n1e-3 -2 0\n2 2 0\nh 1 -2 0", format="wcnf")
    assert theory.clauses is not None
    world = {"x1": True, "x2": True}
    assert theory.score(world) == Decimal("2.6")
    found = lbm.best(theory)
    assert (found.world, found.satisfied, found.lost) == (world, Decimal("2.6"), Decimal("0.001"))
    assert found.optimal
    right = [0.001 + 0.3, 0.3, 0.301, 2.6]  # of worlds 00, (01 breaks h), 10, 11
    z = math.exp(0.301) + math.exp(0.301) + math.exp(2.6)
    assert lbm.log_partition(theory) == pytest.approx(math.log(z), abs=1e-12), right
    assert theory.all_hard().weights == [None] * 6
    assert pickle.loads(pickle.dumps(theory)) == theory
    formulae = Theory([(statement.weight, statement.formula) for statement in theory], atoms=theory.atoms)
    assert formulae == theory


def test_an_old_file_may_say_that_decimals_are_hard():
    theory = read_theory("p wcnf 2 3 4\n4.5 1 0\n3.5 2 0\n4 -2 0", format="wcnf")
    assert theory.weights == [None, Decimal("3.5"), None]


# --- what is accepted ----------------------------------------------------------------------------


@given(rows, st.data())
def test_layout_does_not_matter(lists, data):
    numbers = [str(number) for row in lists for number in [*row, 0]]
    text = f"c first\r\n\tp  cnf 9 {len(lists)} \r\n" + "".join(
        number + data.draw(blanks) for number in numbers
    )
    assert cnf(text) == (9, lists)


@given(rows, st.sampled_from(["%\n0\n", "%\n0\n\n", " % anything at all\np cnf é", "%"]))
def test_what_follows_a_percent_sign_is_ignored(lists, trailer):
    body = "".join(" ".join(map(str, [*row, 0])) + "\n" for row in lists)
    assert cnf(f"p cnf 9 {len(lists)}\n{body}{trailer}") == (9, lists)


def test_a_percent_sign_in_a_comment_is_no_trailer():
    assert cnf("c 50 %\nc % 1\np cnf 1 1\n1 0") == (1, [[1]])


def test_a_lone_zero_is_the_empty_clause_and_false():
    clauses = read_clauses(b"p cnf 1 2\n0\n1 0", weighted=False)
    assert clauses[0].formula is FALSE
    assert cnf("p cnf 0 1\n0") == (0, [[]])


def test_repeated_literals_and_tautologies_are_kept_as_written():
    assert cnf("p cnf 2 2\n1 1 -2 1 0 2 -2 0") == (2, [[1, 1, -2, 1], [2, -2]])


def test_a_header_alone_is_a_theory_without_clauses():
    assert cnf("p cnf 3 0\n") == (3, [])
    assert wcnf("p wcnf 3 0 7\n") == (3, [], [])
    assert wcnf("c nothing\n") == (0, [], [])


@given(rows, st.lists(soft_or_hard, min_size=12, max_size=12), st.data())
def test_both_forms_of_wcnf_are_read(lists, weights, data):
    weights = weights[: len(lists)]
    gap = lambda: data.draw(blanks)  # noqa: E731
    body = [
        ["h" if weight is None else str(weight), *map(str, row), "0"]
        for row, weight in zip(lists, weights, strict=True)
    ]
    text = "c x\n" + "".join(word + gap() for row in body for word in row)
    assert wcnf(text)[1:] == (lists, weights)

    soft = [weight if weight != MAX_WHOLE_WEIGHT else 5 for weight in weights]
    numbered = [[99 if weight is None else weight, *row, 0] for row, weight in zip(lists, soft, strict=True)]
    text = f"p wcnf 9 {len(lists)} 99\n" + "".join(str(number) + gap() for row in numbered for number in row)
    assert wcnf(text) == (9, lists, soft)


def test_without_a_top_weight_every_clause_is_soft():
    assert wcnf("p wcnf 2 2\n1 1 0\n9 -2 0") == (2, [[1], [-2]], [1, 9])


def test_a_weight_above_the_top_is_hard_however_large():
    assert wcnf(f"p wcnf 1 2 4\n5 1 0\n{2**64} 1 0")[2] == [None, None]


def test_the_newer_form_has_as_many_atoms_as_its_largest_literal_or_named_one():
    assert wcnf("h -4 0\n2 1 0")[0] == 4
    assert wcnf("c atom 6 rain\nh -4 0")[0] == 6


def test_the_largest_weight_is_read_and_the_next_one_refused():
    assert wcnf(f"{2**63 - 1} 1 0\n000{2**63 - 1} 1 0")[2] == [2**63 - 1] * 2
    error = refusal(f"3 1 0\n  {2**63} 1 0", wcnf)
    assert (error.line, error.column) == (2, 3)
    assert "MAX_WHOLE_WEIGHT" in error.message


@given(rows, st.lists(whole_weights, min_size=12, max_size=12))
def test_pysat_reads_the_same_files_the_same_way(lists, weights):
    weights = [weight % 1000 + 1 for weight in weights[: len(lists)]]
    lines = [" ".join(map(str, [*row, 0])) for row in lists]
    text = "\n".join(["c hello", f"p cnf 9 {len(lists)}", *lines]) + "\n"
    assert cnf(text)[1] == CNF(from_string=text).clauses

    hard = [index % 3 == 0 for index in range(len(lists))]
    tagged = [f"{'h' if h else w} {line}" for h, w, line in zip(hard, weights, lines, strict=True)]
    _agree_on_wcnf("\n".join(tagged) + "\n")
    tagged = [f"{2000 if h else w} {line}" for h, w, line in zip(hard, weights, lines, strict=True)]
    _agree_on_wcnf("\n".join([f"p wcnf 9 {len(lists)} 2000", *tagged]) + "\n")


def _agree_on_wcnf(text):
    if not text.strip():
        return
    peer = WCNF()
    peer.from_fp(io.StringIO(text), comment_lead=["c"])
    _, lists, weights = wcnf(text)
    assert [row for row, weight in zip(lists, weights, strict=True) if weight is None] == peer.hard
    soft = [(row, weight) for row, weight in zip(lists, weights, strict=True) if weight is not None]
    assert soft == list(zip(peer.soft, peer.wght, strict=True))


# --- names ---------------------------------------------------------------------------------------


def names(text, **options):
    return read_clauses(text.encode(), weighted=False, **options).atoms


def test_atoms_are_called_x1_to_xn():
    assert names("p cnf 3 0") == ("x1", "x2", "x3")


def test_comments_name_atoms_in_the_quoting_of_the_text_format():
    text = "c atom 1 'it''s 5 %'\nc atom 3 less(a,b)\np cnf 4 0\nc atom 4 été\r\n"
    assert names(text) == ("it's 5 %", "x2", "less(a, b)", "été")


@pytest.mark.parametrize(
    "comments",
    [
        "c atom 4 a",
        "c atom 0 a",
        f"c atom {10**30} a",
        "c atom 1 a\nc atom 2 a",
        "c atom 1 x2",
        "c atom 1 a\nc atom 1 b",
        "c atom 1 a &",
        "c atom 1 ~a",
        "c atom 1 a b",
        "c atom 1 forall",
        "c atom 1 'a",
        "c atom one a",
        "c atoms 1 a",
        "c atom 1",
    ],
)
def test_names_that_make_no_sense_are_only_comments(comments):
    assert names(f"{comments}\np cnf 3 0") == ("x1", "x2", "x3")


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("c\n1 2 0", 2, 1, "expected the header 'p cnf ATOMS CLAUSES', found '1'"),
        ("c only this", 1, 12, "found nothing"),
        ("1 0\np cnf 1 1\n", 1, 1, "expected the header before the first clause, found '1'"),
        ("p cnf 1 1\n1 0\n p cnf 1 1", 3, 2, "a second header"),
        ("p cnf 1 1 1\n1 0", 1, 1, "expected 'p cnf ATOMS CLAUSES' with whole numbers, found 'p cnf 1 1 1'"),
        ("p cnf 1\n1 0", 1, 1, "with whole numbers"),
        ("p cnf -1 1\n1 0", 1, 1, "with whole numbers"),
        ("p\n1 0", 1, 1, "with whole numbers"),
        ("p sat 1 1\n1 0", 1, 1, "expected 'p cnf ATOMS CLAUSES'"),
        ("p wcnf 1 1\n1 1 0", 1, 1, "expected 'p cnf', found 'p wcnf': read this text as .wcnf"),
        (f"p cnf {MAX_ATOMS + 1} 0", 1, 1, "MAX_ATOMS"),
        (f"p cnf {'9' * 5000} 0", 1, 1, "with whole numbers"),
        ("p cnf 2 1\n1 2", 2, 3, "the last clause does not end in 0"),
        ("p cnf 2 2\n1 0\n 2 -33 0", 3, 4, "the literal -33 is beyond the header's 2 atoms"),
        ("p cnf 2 3\n1 0\n2 0", 1, 1, "the header promises 3 clauses, the file has 2"),
        ("p cnf 2 1\n1 0\n2 0", 1, 1, "the header promises 1 clause, the file has 2"),
        ("p cnf 2 1\n1 foo 0", 2, 3, "expected a whole number, found 'foo'"),
        ("p cnf 2 1\n1 2x 0", 2, 3, "found '2x'"),
        ("p cnf 2 1\n1 é 0", 2, 3, "found 'é'"),
        ("p cnf 2 1\n1 +2 0", 2, 3, "found '+2'"),
        ("p cnf 2 1\n1 - 2 0", 2, 3, "found '-'"),
        ("p cnf 2 1\n1 1-2 0", 2, 3, "found '1-2'"),
        ("p cnf 2 1\n1 --2 0", 2, 3, "found '--2'"),
        ("p cnf 2 1\n1 -0", 2, 3, "found '-0'"),
        ("p cnf 2 1\n1 0 -", 2, 5, "found '-'"),
        ("p cnf 2 1\n1 c comment 0", 2, 3, "found 'c'"),
        ("p cnf 2 1\n1 h 0", 2, 3, "found 'h'"),
        ("p cnf 2 1\n1 1.5 0", 2, 3, "expected a whole number, found 1.5"),
        ("p cnf 2 1\n1 p cnf 0", 2, 3, "found 'p'"),
        ("p cnf 2 1\n1 \x01 0", 2, 3, "found '\\x01'"),
        ("p cnf 2 1\n1 " + "7" * 90 + " 0", 2, 3, "is too large"),
        ("p cnf 2 1\n1 -" + "7" * 90 + " 0", 2, 3, "is too large"),
        ("p cnf 2 1\n1 4294967297 0", 2, 3, "is too large"),
    ],
)
def test_a_cnf_that_is_wrong_is_refused_with_its_place(text, line, column, message):
    error = refusal(text)
    assert (error.source, error.line, error.column) == ("file", line, column)
    assert message in error.message
    assert "\n" not in error.one_line()


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("p cnf 1 1\n1 0", 1, 1, "expected 'p wcnf', found 'p cnf'"),
        ("p wcnf 1 1 2 3\n1 1 0", 1, 1, "expected 'p wcnf ATOMS CLAUSES TOP'"),
        ("p wcnf 1 1 0\n1 1 0", 1, 1, "at least 1"),
        ("p wcnf 2 1 9\n3 1 4 0", 2, 5, "the literal 4 is beyond the header's 2 atoms"),
        ("p wcnf 2 2 9\n3 1 2 0", 1, 1, "the header promises 2 clauses, the file has 1"),
        ("p wcnf 2 1 9\n3 1 2", 2, 5, "the last clause does not end in 0"),
        ("p wcnf 2 1 9\nh 1 2 0", 2, 1, "expected a whole number, found 'h'"),
        ("p wcnf 2 1 9\n-3 1 2 0", 2, 1, "a weight is a whole number from 1 up, found -3"),
        ("3 1 0\n-3 1 2 0", 2, 1, "a weight is a whole number from 1 up, found -3"),
        (f"{-(2**31)} 1 2 0", 1, 1, "is too large"),
        (f"h 1 {-(2**31)} 0", 1, 5, "is too large"),
        (f"{-(2**70)} 1 2 0", 1, 1, "is too large"),
        (f"p wcnf 2 1 9\n{-(2**70)} 1 2 0", 2, 1, "is too large"),
        (f"p wcnf 2 1 {2**70}\n{2**71} 1 2 0", 2, 1, "is too large"),
        ("h 1 0\n0 1 2 0", 2, 1, "a clause of weight 0 says nothing"),
        ("p wcnf 2 1 9\n0 1 2 0", 2, 1, "a clause of weight 0 says nothing"),
        ("h 1 0\n2 1.5 2 0", 2, 3, "expected a whole number, found 1.5"),
        ("h 1 0\n0.5 1 2e0 0", 2, 7, "expected a whole number, found 2e0"),
        ("h 1 0\n-0.5 1 2 0", 2, 1, "expected a whole number, found -0.5"),
        ("h 1 0\n1e101 1 2 0", 2, 1, "a weight lies between 1e-100 and 1e100 (limit MAX_WEIGHT), got 1E+101"),
        ("h 1 0\n0.00 1 2 0", 2, 1, "a clause of weight 0 says nothing"),
        ("h 1 0\nnan 1 2 0", 2, 1, "expected h or a whole number, found 'nan'"),
        ("h 1 0\n1.5.5 1 2 0", 2, 1, "expected h or a whole number, found '1.5.5'"),
        ("h 1 2\nh 1 0", 2, 1, "h inside a clause"),
        ("h1 2 0", 1, 1, "expected h or a whole number, found 'h1'"),
        ("1 2h 0", 1, 3, "found '2h'"),
        ("hh 2 0", 1, 1, "found 'hh'"),
        ("h 1 2", 1, 5, "the last clause does not end in 0"),
        (f"h {MAX_ATOMS + 1} 0", 1, 3, "MAX_ATOMS"),
        ("p -> q", 1, 1, "with whole numbers"),
        ("a -> b", 1, 1, "expected h or a whole number, found 'a'"),
    ],
)
def test_a_wcnf_that_is_wrong_is_refused_with_its_place(text, line, column, message):
    error = refusal(text, wcnf)
    assert (error.source, error.line, error.column) == ("file", line, column)
    assert message in error.message


def test_the_message_shows_the_place():
    error = refusal("p cnf 2 1\n1 2 foo 0")
    assert str(error) == "file:2:5: expected a whole number, found 'foo'\n  1 2 foo 0\n      ^"


# --- what lenient reading makes of it ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found", "said"),
    [
        ("1 -2 0", (2, [[1, -2]]), ["1:1: expected the header"]),
        ("c atom 3 a\n1 -2 0", (3, [[1, -2]]), ["2:1: expected the header"]),
        ("p cnf 2 1\n1 3 0", (3, [[1, 3]]), ["2:3: the literal 3 is beyond"]),
        ("p cnf 2 5\n1 2 0", (2, [[1, 2]]), ["1:1: the header promises 5 clauses, the file has 1"]),
        ("p cnf 2 1\n1 2", (2, [[1, 2]]), ["2:3: the last clause"]),
        ("p cnf 2 1\n1 2 0\np cnf 9 9\np cnf 7 7", (2, [[1, 2]]), ["3:1: a second header"]),
        ("1 0 p cnf\n", None, None),
        ("1 0\np cnf 2 1", (2, [[1]]), ["1:1: expected the header before"]),
        ("p cnf 1 1\n1 5", (5, [[1, 5]]), ["the last clause", "the literal 5"]),
        ("p cnf 2 1\n1 foo 0", None, None),
        ("p cnf 2 1\n1 99999999999 0", None, None),
    ],
)
def test_lenient_reading_warns_and_goes_on_where_it_can(text, found, said):
    heard = []
    if found is None:
        with pytest.raises(ParseError):
            cnf(text, lenient=True, warn=heard.append)
        return
    assert cnf(text, source="file", lenient=True, warn=heard.append) == found
    assert len(heard) == len(said)
    assert all(expected in warning for expected, warning in zip(said, heard, strict=True))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("h 1 0\n0 1 2 0\n3 2 0", (2, [[1], [2]], [None, 3])),
        ("0 1 0 0 2 0 3 -1 0 0 0", (1, [[-1]], [3])),
        ("3 1 0 0", (1, [[1]], [3])),
        ("3 1 0 0 2", (1, [[1]], [3])),
        ("3 1 0 0 0", (1, [[1]], [3])),
        ("5 0 0 1 0", (0, [[]], [5])),
        ("3 1 0 0 0 0 2 00 4 1 0", (1, [[1], [1]], [3, 4])),
        ("0", (0, [], [])),
    ],
)
def test_lenient_reading_leaves_out_clauses_of_weight_zero(text, found):
    heard = []
    assert wcnf(text, lenient=True, warn=heard.append) == found
    assert any("weight 0" in warning for warning in heard)


def test_places_stay_right_behind_a_clause_that_was_left_out():
    with pytest.raises(ParseError) as caught:
        wcnf("0 1 2 0\n-7 1 0", lenient=True, warn=[].append)
    assert (caught.value.line, caught.value.column) == (2, 1)


def test_a_negative_weight_is_refused_even_by_lenient_reading():
    with pytest.raises(ParseError, match="from 1 up, found -2"):
        wcnf("-2 1 0", lenient=True, warn=[].append)


def test_lenient_reading_without_a_listener_gives_a_python_warning():
    with pytest.warns(UserWarning, match="the last clause"):
        cnf("p cnf 1 1\n1", lenient=True)


# --- laws ----------------------------------------------------------------------------------------

name = st.sampled_from(["a", "x1", "x2", "x9", "true", "p(a, b)", "it's", "été", "a b", "%", "#", " x"]) | (
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=5).map(atom_name)
)
vocabularies = st.lists(name, min_size=9, max_size=11, unique=True) | st.just([f"x{i}" for i in range(1, 10)])


@given(vocabularies, rows, st.lists(soft_or_hard, min_size=12, max_size=12))
def test_what_is_written_reads_back_the_same(atoms, lists, weights):
    chosen = [weight or 0 for weight in weights[: len(lists)]]
    clauses = packed(atoms, lists, chosen)
    expected = tuple(atoms), lists, weights[: len(lists)]

    def reread(pieces, weighted):
        found = read_clauses("".join(pieces).encode(), weighted=weighted)
        return found.atoms, *unpack(found)[1:]

    assert reread(write_cnf(clauses), weighted=False)[:2] == expected[:2]
    assert reread(write_wcnf(clauses), weighted=True) == expected
    if sum(chosen) < MAX_WHOLE_WEIGHT:
        assert reread(write_wcnf(clauses, old=True), weighted=True) == expected


def test_more_clauses_than_are_written_at_a_time_are_written_whole():
    lists = [[1, -2], [], [2], [-1], [1, 2]]
    times = 20_000
    pieces = list(write_wcnf(packed(["x1", "x2"], times * lists, times * [0, 3, 0, 2, 1])))
    assert "".join(pieces) == times * "h 1 -2 0\n3 0\nh 2 0\n2 -1 0\n1 1 2 0\n"
    assert sum("h 1 -2 0\n" in piece for piece in pieces) > 1


def test_the_old_form_refuses_a_sum_past_the_largest_weight():
    with pytest.raises(WeightError, match="MAX_WHOLE_WEIGHT"):
        list(write_wcnf(packed(["x1"], [[1]], [MAX_WHOLE_WEIGHT]), old=True))


ORIGINALS = [
    b"c hi\np cnf 3 2\n1 -2 0\n2 3 0\n%\n0\n",
    b"c atom 1 'a b'\np wcnf 3 3 9\n9 1 -2 0\n3 2 0\n1 -3 0\n",
    b"c x\nh 1 -2 0\n12 2 3 0\n1 -1 0\n",
]
noise = st.sampled_from(
    [b"", b"0", b" ", b"-", b"h", b"\n", b"c", b"p cnf 1 1\n", b"\xff", b"\0", b"%", b"9" * 20]
)


@st.composite
def damaged_files(draw):
    data = draw(st.sampled_from(ORIGINALS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 5)))
        data = data[:start] + draw(noise | st.binary(max_size=3)) + data[end:]
    return data


near_misses = st.text("pcnfwh0123456789-% \n\r\tx.'", max_size=60).map(str.encode)


@settings(max_examples=500)
@given(damaged_files() | near_misses | st.binary(max_size=60), st.booleans(), st.booleans())
def test_any_bytes_are_read_or_refused_with_an_error_of_ours(data, weighted, lenient):
    # Otherwise lenient reading would name ten million atoms again and again.
    with patch.object(dimacs, "MAX_ATOMS", 1000), contextlib.suppress(LbmError):
        check_invariants(read_clauses(data, weighted=weighted, lenient=lenient, warn=[].append))


def check_invariants(clauses):
    assert clauses.starts[0] == 0
    assert clauses.starts[-1] == len(clauses.literals)
    assert (np.diff(clauses.starts) >= 0).all()
    assert (clauses.literals != 0).all()
    assert (np.abs(clauses.literals) <= len(clauses.atoms)).all()
    assert len(set(clauses.atoms)) == len(clauses.atoms)
    assert len(clauses.weights) == len(clauses)
    assert (clauses.weights >= 0).all()
