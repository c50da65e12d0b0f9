"""The reader: Prolog's syntax as the data sets use it, and one-line errors with file and line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import FileError, ParseError
from lbm.relations.prolog.reader import Clause, read_clauses, read_file, read_term
from lbm.relations.prolog.terms import Compound, write


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a :- b, c ; d -> e", ":-(a,;(','(b,c),->(d,e)))"),
        ("- 1", "-(1)"),
        ("-1", "-1"),
        ("-(1)", "-(1)"),
        ("a - 1", "-(a,1)"),
        ("a -1", "-(a,1)"),
        ("a - -1", "-(a,-1)"),
        ("- a ^ 2", "-(^(a,2))"),
        ("1 - 2 - 3", "-(-(1,2),3)"),
        ("2 ^ 3 ^ 4", "^(2,^(3,4))"),
        ("1 + 2 * 3 - 4", "-(+(1,*(2,3)),4)"),
        ("\\+ a = b", "\\+(a=b)"),
        ("X is 7 mod 2", "is(X,mod(7,2))"),
        ("modeb(*, bond(+drug, -atom, #int))", "modeb(*,bond(+(drug),-(atom),#(int)))"),
        ("modeb(1, (+charge) = (#charge))", "modeb(1,(+(charge))=(#(charge)))"),
        ("modeb(subs(+, -))", "modeb(subs(+,-))"),
        (":- dynamic foo/1", ":-(dynamic(/(foo,1)))"),
        ("[a, b | T]", "[a,b|T]"),
        ("[(a , b)]", "[','(a,b)]"),
        ("{a, b}", "{}(','(a,b))"),
        ("{}(x)", "{}(x)"),
        ("[](x)", "[](x)"),
        ("(a | b)", ";(a,b)"),
        ("f(:-, -, [-])", "f(:-,-,[-])"),
        ("* = x", "(*)=x"),
        ("- = x", "(-)=x"),
        ("'it''s'", "'it\\'s'"),
        ("'a\\x41\\b\\101\\c\\u0042'", "aAbAcB"),
        ("'a\\\nb'", "ab"),
        ('"ab"', "[97,98]"),
        ("0'a", "97"),
        ("0'\\n", "10"),
        ("0'''", "39"),
        ("0x1F + 0o17 + 0b11", "+(+(31,15),3)"),
        ("1.5e3", "1500.0"),
        ("1.0e-7", "1.0e-07"),
        ("a % comment", "a"),
        ("a /* x\n */ + b", "+(a,b)"),
        ("été", "'été'"),
        ("p(A, _, _1, _)", "p(A,_2,_1,_3)"),
        ("a.", "a"),
    ],
)
def test_a_text_is_read_as_prolog_reads_it(text, canonical):
    assert write(read_term(text)) == canonical


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("p(a).\nq(b", "2:1", "full stop"),
        ("p(a b).", "1:5", "expected an operator, ',' or ')', found 'b'"),
        ("p(a)).", "1:5", "found ')'"),
        ("p :- .", "1:6", "expected a term, found a full stop"),
        ("p(,).", "1:3", "expected a term, found ','"),
        ("a :- b :- c.", "1:8", "expected parentheses"),
        ("p('a).", "1:3", "expected a second '"),
        ("p. /* q", "1:4", "'*/'"),
        ("p([a|b,c]).", "1:7", "found ','"),
        ("p([a|b|c]).", "1:7", "found '|'"),
        ("p([|a]).", "1:4", "expected a term"),
        ("p(1e999).", "1:3", "fits a float"),
        ("p('\\q').", "1:3", "an escape"),
        ("p('\\x110000\\').", "1:3", "the code of a character"),
        ("p('\\7777777777\\').", "1:3", "the code of a character"),
        ("p(0b9).", "1:3", "expected a number"),
        (f"p({'9' * 5000}).", "1:3", "digits"),
        (f"p(0x{'9' * 5000}).", "1:3", "digits"),
        ("p(£).", "1:3", "expected a term, found '£'"),
        ("{a, b.", "1:6", "expected an operator or '}'"),
        ("(a, b.", "1:6", "expected an operator or ')'"),
        ("foo (a).", "1:5", "expected an operator or a full stop, found '('"),
        (":- op(1300, xfx, foo).", "1", "priority"),
        (":- op(700, abc, foo).", "1", "xfx"),
        (":- op(700, xfx, ',').", "1", "name of an operator"),
        (":- op(700, xfx).", "1", "op(Priority"),
    ],
)
def test_an_error_names_file_and_line_on_one_line(text, place, words):
    with pytest.raises(ParseError) as caught:
        read_clauses(text, source="bk.pl")
    line = caught.value.one_line()
    assert line.startswith(f"bk.pl:{place}: ")
    assert words in line
    assert "\n" not in line
    assert len(line) < 200


@given(st.one_of(st.text(), st.text(alphabet="abX_ ,.()[]{}|'\"`\\0123456789:-+*/%!;\n=<>#", max_size=40)))
def test_whatever_the_text_is_it_is_read_or_a_parse_error(text):
    with suppress(ParseError):
        for clause in read_clauses(text):
            read_term(write(clause.term))


@pytest.mark.parametrize(
    "text",
    [
        f"p({'f(' * 100_000}a{')' * 100_000})",
        f"{'(' * 20_000}a{')' * 20_000}",
        f"{'- ' * 20_000}a",
        f"{'[' * 20_000}{']' * 20_000}",
        f"a{' + a' * 20_000}",
        f"a{' ^ a' * 20_000}",
        f"p :- a{', a' * 20_000}",
        f"[a{', a' * 20_000}]",
    ],
    ids="terms parentheses prefixes lists left right body list".split(),
)
def test_depth_and_length_cost_nothing(text):
    read_term(text)


def test_operators_are_what_the_text_declares():
    clauses = read_clauses(
        ":- op(700, xfx, near). :- op(200, xf, squared). a near b. x squared. :- op(0, xfx, near)."
    )
    assert [write(clause.term) for clause in clauses[2:4]] == ["near(a,b)", "squared(x)"]
    with pytest.raises(ParseError, match="found 'near'"):
        read_clauses(":- op(700, xfx, [near, far]). a far b.\n:- op(0, xfx, near). a near b.")


def test_clauses_know_their_lines_and_directives_are_clauses():
    clauses = read_clauses("% head\np(1).\n\n:- set(i, 3).\nq(X) :-\n  p(X).\n", source="x.pl")
    assert [clause.line for clause in clauses] == [2, 4, 5]
    assert clauses[0] == Clause(Compound("p", (1,)), "x.pl", 2)
    assert clauses[1].place == "x.pl:4"
    assert write(clauses[2].term) == ":-(q(X),p(X))"


def test_plain_facts_are_read_as_all_other_terms_are():
    """Facts of atoms and numbers take a shorter way; in parentheses they take the long one."""
    for text in [
        "p(a)",
        "p(-1, 2.5, 'A b', -)",
        "p(a, -2.5)",
        "'P q'(r)",
        "p(mod, is, +)",
        "p(a,'(')",
        "p(')')",
    ]:
        assert read_term(text) == read_term(f"({text})")


def test_one_term_is_one():
    with pytest.raises(ParseError, match="expected one term, found 2"):
        read_term("a. b")
    with pytest.raises(ParseError, match="expected a term"):
        read_term("")


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*bk\.pl: No such file"):
        read_file(tmp_path / "bk.pl")
    (tmp_path / "bk.pl").write_bytes(b"p(\xff).")
    with pytest.raises(ParseError, match="UTF-8") as caught:
        read_file(tmp_path / "bk.pl")
    assert "bk.pl" in caught.value.one_line()
