"""Text: what we print parses back, the parser is its grammar, bad text is refused at the right character."""

import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lbm.knowledge.lexer as lexer_module
import lbm.knowledge.parser as parser_module
from lbm.errors import LbmError, ParseError, WeightError
from lbm.knowledge.formula import (
    FALSE,
    TRUE,
    atmost,
    atom,
    exactly,
    iff,
    implies,
)
from lbm.knowledge.lexer import MAX_STATEMENT
from lbm.knowledge.numbers import MAX_DIGITS, check_weight, read_weight
from lbm.knowledge.parser import _Reader, parse, read_text
from lbm.knowledge.theory import Theory
from tests.strategies import AWKWARD, BINARY, NAMES, awkward_names, formulae, weights

# --- what we print -------------------------------------------------------------------------------


@given(formulae(awkward_names))
def test_parsing_what_we_print_gives_back_the_same_formula(formula):
    assert parse(str(formula)) is formula


@pytest.mark.parametrize("name", AWKWARD)
def test_parsing_an_awkward_name_gives_back_the_same_atom(name):
    assert parse(str(atom(name))) is atom(name)
    assert parse("'" + name.replace("'", "''") + "'") is atom(name)


@given(formulae(NAMES))
def test_a_formula_may_be_spread_over_lines_and_commented(formula):
    text = str(formula).replace(" ", "  # it's a (comment\n\n\t")
    assert parse(f"# first\n{text}\n\n# last") is formula


# --- how it binds --------------------------------------------------------------------------------


@given(st.randoms(use_true_random=False))
def test_not_and_xor_or_bind_as_they_do_in_python(rng):
    text = "".join(
        rng.choice(["", "~", "~~"]) + rng.choice(NAMES) + rng.choice([" & ", " ^ ", " | "]) for _ in range(12)
    )
    text = text[:-3]
    assert parse(text) is eval(text, {name: atom(name) for name in NAMES})


a, b, c, d = map(atom, "abcd")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a -> b -> c", implies(a, implies(b, c))),
        ("a <- b <- c", implies(c, implies(b, a))),
        ("a <- b", implies(b, a)),
        ("a <-> b <-> c", iff(iff(a, b), c)),
        ("a <-> b -> c <-> d", iff(iff(a, implies(b, c)), d)),
        ("a -> b <-> c <- d", iff(implies(a, b), implies(d, c))),
        ("a | b -> c ^ d", implies(a | b, c ^ d)),
        ("~a <-> b", iff(~a, b)),
        ("not a and b xor c or d", ((~a & b) ^ c) | d),
        ("a implies b iff not not c", iff(implies(a, b), ~~c)),
        ("¬a ∧ b ⊕ c ∨ d → a ↔ b", iff(implies(((~a & b) ^ c) | d, a), b)),
        ("a ← b", implies(b, a)),
        ("!a&!!b", ~a & ~~b),
        ("!a&&b||c=>d<=>a", iff(implies((~a & b) | c, d), a)),
        ("a && b & c || d | a", ((a & b & c) | d) | a),
        ("a => b -> c", implies(a, implies(b, c))),
        ("exactly(1, a -> b, (c), atmost(0), true)", exactly(1, a >> b, c, atmost(0), TRUE)),
        ("(((a)))", a),
        ("true & false", TRUE & FALSE),
    ],
)
def test_connectives_bind_as_the_format_says(text, meaning):
    assert parse(text) is meaning


def test_spellings_of_a_connective_mean_the_same():
    for spellings, kind in (
        (("<->", "<=>", "iff", "↔"), "iff"),
        (("->", "=>", "implies", "→"), "implies"),
        (("|", "||", "or", "∨"), "or"),
        (("^", "xor", "⊕"), "xor"),
        (("&", "&&", "and", "∧"), "and"),
    ):
        for spelling in spellings:
            assert parse(f"a {spelling} b") is BINARY[kind](a, b)
            # lines of a known shape take another way through the parser
            (statement,) = read_text(f"2: a {spelling} b").statements
            assert (statement.formula, statement.weight) == (BINARY[kind](a, b), 2)
    for spelling in ("~", "!", "not ", "¬"):
        assert parse(f"{spelling}a") is ~a


def test_arrows_in_both_directions_need_parentheses():
    for text, column in (
        ("a -> b <- c", 8),
        ("a <- b -> c", 8),
        ("a | b <- c & d implies a", 16),
        ("a => b <- c", 8),
    ):
        with pytest.raises(ParseError, match="can be read in two ways: write parentheses") as caught:
            parse(text)
        assert (caught.value.line, caught.value.column) == (1, column)
    assert parse("(a -> b) <- c") is implies(c, implies(a, b))


# --- where it was read ---------------------------------------------------------------------------


def test_a_statement_knows_the_line_on_which_it_began():
    text = "# one\n\na\n2: (b\n  & c)\n\ndomain d = {x,\ny}\natoms q, a\nforall X in d: p(X)"
    assert [(read.line, str(read.formula)) for read in read_text(text).statements] == [
        (3, "a"),
        (4, "b & c"),
        (10, "p(x)"),
        (10, "p(y)"),
    ]


def test_atoms_come_as_declared_and_then_as_met():
    assert list(read_text("c -> b\natoms a, b\nd & p(x,y)").atoms) == ["c", "b", "a", "d", "p(x, y)"]


FRAGMENTS = (
    *"abXY(){},:'#~!^&|=<>-+.01\n\t\r\f\v\\\"%$;\0\ud800é²٣", " ", "->", "<-", "<->", "=>", "<=>",
    "&&", "||", "!=", "1:", "1e5:",
    "nan:", "1e999999999:", "true", "false", " and ", " or ", "not ", "¬", "∀", "forall ", "exists ",
    "forall X in d:", "X!=Y", "domain d={a,b}\n", "domain ", "atoms ", " in d", " in ", "atleast(",
    "exactly(1,", "p(X)", "p(a,", "'a b'", "''", "\u2028", "\u00a0",
)  # fmt: skip

fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)


def refusal(read, text):
    """Return the error with which a text is refused, or None if it is read."""
    try:
        read(text)
    except LbmError as error:
        return error
    return None


# --- bad input -----------------------------------------------------------------------------------

THEORY_ERRORS = [
    # unknown characters
    ("a $ b", 1, 3, "found '$'"),
    ("a\n  % b", 2, 3, "expected a formula, found '%'"),
    ("a & \u00a0b", 1, 5, r"found '\xa0'"),
    ("a\n\nb & \x00", 3, 5, r"found '\x00'"),
    ("\ufeffa", 1, 1, r"found '\ufeff'"),
    ("p & -> q", 1, 5, "expected a formula, found '->'"),
    ("a b", 1, 3, "expected an operator or the end of the formula, found 'b'"),
    # signs of other languages
    ("p && => q", 1, 6, "expected a formula, found '=>'"),
    ("a\nb || || c", 2, 6, "expected a formula, found '||'"),
    ("a &&& b", 1, 5, "expected a formula, found '&'"),
    ("a <=> <=> b", 1, 7, "expected a formula, found '<=>'"),
    ("a <= b", 1, 3, "expected an operator or the end of the formula, found '<'"),
    ("a == b", 1, 3, "expected an operator or the end of the formula, found '='"),
    ("a ==> b", 1, 3, "found '='"),
    ("domain d = {a}\nforall X in d, X <= a: p(X)", 2, 18, "expected '=' or '!=' (a guard has no other"),
    ("domain d = {a}\nforall X in d, X => a: p(X)", 2, 18, "found '=>'"),
    ("a 'b'", 1, 3, 'found "\'b\'"'),
    ("a ~b", 1, 3, "found '~'"),
    ("a &\nb", 1, 4, "expected a formula, found the end of the line"),
    ("a &", 1, 4, "expected a formula, found the end of the text"),
    ("and", 1, 1, "expected a formula, found 'and'"),
    ("in & a", 1, 1, "'in' is a reserved word: write 'in' in quotes"),
    ("~domain", 1, 2, "reserved word"),
    # unbalanced parentheses
    ("(a & b", 1, 1, "this parenthesis is never closed"),
    ("a & (b | (c)\nd", 2, 1, "expected an operator"),
    ("a & (b | (c)\n", 1, 5, "this parenthesis is never closed"),
    ("exactly(1, a", 1, 1, "this parenthesis is never closed"),
    ("a)", 1, 2, "this ')' has no open parenthesis"),
    ("a\nb, c", 2, 2, "this ',' has no open parenthesis"),
    ("(a, b)", 1, 3, "expected an operator or ')', found ','"),
    ("()", 1, 2, "expected a formula, found ')'"),
    ("f(a", 1, 4, "',' or ')' in the arguments of f, found the end of the text"),
    ("f()", 1, 3, "expected a constant, found ')'"),
    ("f(g(a))", 1, 3, "terms do not nest"),
    ("f(a, or)", 1, 6, "'or' is a reserved word"),
    ("f(true)", 1, 3, "'true' is a reserved word"),
    # quotes
    ("a & 'b", 1, 5, "this quote is not closed on its line, or has nothing in it"),
    ("''", 1, 1, "has nothing in it"),
    ("'a\tb'", 1, 1, "without control characters"),
    ("b & p('a\x07')", 1, 5, "without control characters"),
    ("domain d = {a, 'b\x07'}", 1, 16, "without control characters"),
    # weights
    ("0: a", 1, 1, "a weight of zero says nothing"),
    ("a\n-0.00: a", 2, 1, "a weight of zero says nothing"),
    ("nan: a", 1, 1, "expected a number as weight before ':', found 'nan'"),
    ("b\ninf: a", 2, 1, "expected a number as weight before ':', found 'inf'"),
    ("-inf: a", 1, 1, "expected a formula, found '-'"),
    ("heavy: a", 1, 1, "expected a number as weight before ':', found 'heavy'"),
    ("two three: a", 1, 5, "found 'three'"),
    ("a & b: c", 1, 1, "expected a number as weight before ':', found 'a & b'"),
    ("1.5.2: a", 1, 1, "expected ':' and a formula behind the weight 1.5"),
    ("5 a", 1, 1, "expected ':' and a formula behind the weight 5"),
    ("5", 1, 1, "expected ':'"),
    ("5:", 1, 3, "expected a formula, found the end of the text"),
    ("1e101: a", 1, 1, "limit MAX_WEIGHT"),
    ("1e-101: a", 1, 1, "limit MAX_WEIGHT"),
    ("a\n 1e99999999: a", 2, 2, "limit MAX_WEIGHT"),
    ("-1e99999999999999999999: a", 1, 1, "expected a number as weight"),
    ("1e-99999999: a", 1, 1, "limit MAX_WEIGHT"),
    ("1" * 101 + ": a", 1, 1, "limit MAX_WEIGHT"),
    ("0." + "1" * 101 + ": a", 1, 1, "at most 100 digits (limit MAX_DIGITS), got 101"),
    ("1" * 5000 + ": a", 1, 1, "limit MAX_DIGITS"),
    # cardinalities
    ("atleast a", 1, 9, "expected '(' behind atleast, found 'a'"),
    ("atleast(a, b)", 1, 9, "a whole number, as in atleast(2, a, b, c), found 'a'"),
    ("atmost(-1, b)", 1, 8, "a whole number"),
    ("atmost(1.5, b)", 1, 8, "a whole number"),
    ("exactly(1 a)", 1, 11, "expected ',' or ')', found 'a'"),
    ("exactly(1,)", 1, 11, "expected a formula, found ')'"),
    ("exactly(1, a, )", 1, 15, "expected a formula, found ')'"),
    ("exactly(" + "9" * 101 + ", a)", 1, 9, "limit MAX_DIGITS"),
    # declarations
    ("atoms", 1, 6, "expected the name of an atom, found the end of the text"),
    ("atoms a,\nb", 1, 9, "expected the name of an atom, found the end of the line"),
    ("atoms a b", 1, 9, "expected ',' or the end of the line, found 'b'"),
    ("atoms a, or", 1, 10, "reserved word"),
    ("domain = {a}", 1, 8, "expected the name of a domain, found '='"),
    ("domain in = {a}", 1, 8, "reserved word"),
    ("domain d {a}", 1, 10, "expected '=' (domain d = {a, b, c}), found '{'"),
    ("domain d = a", 1, 12, "expected '{'"),
    ("domain d = {a b}", 1, 15, "expected ',' or '}', found 'b'"),
    ("domain d = {a,}", 1, 15, "expected a constant, found '}'"),
    ("domain d = {a, b", 1, 17, "expected ',' or '}', found the end of the text"),
    ("domain d = {a, 1.5}", 1, 16, "expected a constant, found '1.5'"),
    ("domain d = {a, f(b)}", 1, 16, "terms do not nest"),
    ("domain d = {a} b", 1, 16, "expected the end of the line, found 'b'"),
    ("domain d = {a, b, a}", 1, 19, "a is in the domain 'd' twice"),
    ("domain d = {a}\ndomain d = {b}", 2, 8, "the domain 'd' is declared twice"),
    # quantifiers
    ("forall X in drug: p(X)", 1, 13, "no domain 'drug': declare it first, as in domain drug = {a, b}"),
    ("domain drug = {a}\nforall X in drgu: p(X)", 2, 13, "no domain 'drgu'; did you mean 'drug'?"),
    ("domain d = {}\nforall X in d: p(X)", 2, 13, "forall over the domain 'd', which is empty"),
    ("domain d = {}\na & (exists X in d: p(X))", 2, 18, "exists over the domain 'd', which is empty"),
    ("domain d = {a}\nforall X in d: X", 2, 16, "X is a variable here: it stands inside a term, as in"),
    ("domain d = {a}\nforall X, X in d: p(X)", 2, 11, "the variable X is bound twice"),
    ("domain d = {a}\nforall X in d: exists X in d: p(X)", 2, 23, "the variable X is bound twice"),
    ("domain d = {a}\nforall X in d, X != b: p(X)", 2, 21, "'b' is no variable here and no constant"),
    ("domain d = {a}\nforall X in d, Y != X: p(X)", 2, 16, "'Y' is no variable"),
    ("domain d = {a}\nforall X: p(X)", 2, 9, "expected ',' or 'in', found ':'"),
    ("domain d = {a}\nforall X in d p(X)", 2, 15, "expected ',' or ':' (forall X, Y in d, "),
    ("domain d = {a}\nforall 3 in d: p(X)", 2, 8, "expected the name of a variable, found '3'"),
    ("domain d = {a}\nforall X in 3: p(X)", 2, 13, "expected the name of a domain, found '3'"),
    ("domain d = {a}\nforall X in d:\np(X)", 2, 15, "expected a formula, found the end of the line"),
    ("domain d = {a}\nforall X in\nd: p(X)", 2, 12, "the name of a domain, found the end of the line"),
    ("domain d = {a}\na & forall X in d: p(X)", 2, 5, "put parentheses around (forall ...)"),
    ("domain d = {a}\n~∃X in d: p(X)", 2, 2, "put parentheses around (∃ ...)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "part"), THEORY_ERRORS)
def test_bad_text_is_refused_at_the_right_character(text, line, column, part):
    with pytest.raises(ParseError) as caught:
        Theory.parse(text, source="bad.lbm")
    error = caught.value
    assert part in error.message
    assert (error.source, error.line, error.column) == ("bad.lbm", line, column)
    assert error.one_line() == f"bad.lbm:{line}:{column}: {error.message}"
    assert "\n" not in error.one_line()


@pytest.mark.parametrize("text", ["", " \t\n\n", "# only a comment", "domain d = {a}"])
def test_text_that_says_nothing_is_refused(text):
    with pytest.raises(
        ParseError, match="expected at least one formula or an 'atoms' line, found none"
    ) as caught:
        Theory.parse(text, source="empty.lbm")
    assert caught.value.one_line().startswith("empty.lbm: ")
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize("text", ["", "\n", " # nothing"])
def test_no_formula_is_refused_where_one_is_due(text):
    with pytest.raises(ParseError, match="expected a formula, found nothing"):
        parse(text)


@pytest.mark.parametrize("text", ["2: a", "a\nb", "atoms a", "a; b", "forall X in d: p(X)"])
def test_a_theory_is_refused_where_a_formula_is_due(text):
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize("text", [None, 3, b"a", a])
def test_a_formula_is_read_from_text(text):
    with pytest.raises(TypeError, match="expected the text of a formula"):
        parse(text)


@given(fragments)
def test_the_caret_of_an_error_stands_under_its_column(text):
    error = refusal(Theory.parse, text)
    if error is not None and error.line is not None:
        line = text.split("\n")[error.line - 1]
        assert 1 <= error.column <= len(line) + 1
        below = line[error.column - 1 : error.column]
        shown = error.excerpt[error.caret : error.caret + 1]
        assert shown == below or (not below.isprintable() and shown in (" ", "?"))
        first, *picture = str(error).split("\n")
        assert first == error.one_line()
        assert picture == [f"  {error.excerpt}", f"  {' ' * error.caret}^"]


# --- any size ------------------------------------------------------------------------------------

DEPTH = 200_000


@pytest.mark.parametrize(
    ("left", "middle", "right", "depth", "kind"),
    [
        ("(", "a", ")", DEPTH, "atom"),
        ("~", "a", "", DEPTH, "not"),
        ("not ", "a", "", DEPTH, "not"),
        ("~(", "a", ")", DEPTH // 4, "not"),
        ("(a & ", "b", ")", DEPTH // 4, "and"),
        ("a -> ", "b", "", DEPTH // 4, "implies"),
        ("a <- ", "b", "", DEPTH // 4, "implies"),
        ("exactly(1, ", "b", ")", DEPTH // 4, "exactly"),
    ],
)
def test_two_hundred_thousand_nested_parts_are_read(left, middle, right, depth, kind):
    formula = parse(left * depth + middle + right * depth)
    assert formula.kind == kind
    assert parse(str(formula)) is formula


@pytest.mark.parametrize(
    ("sign", "column"), [("(", DEPTH + 1), ("~", DEPTH + 1), ("exactly(1, ", 11 * DEPTH + 1)]
)
def test_nesting_that_never_ends_is_refused(sign, column):
    with pytest.raises(ParseError, match="expected a formula, found the end of the text") as caught:
        parse(sign * DEPTH)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_a_parenthesis_too_many_is_found_behind_any_depth():
    with pytest.raises(ParseError, match="no open parenthesis") as caught:
        parse("(" * DEPTH + "a" + ")" * (DEPTH + 1))
    assert caught.value.column == 2 * DEPTH + 2


# On Linux ru_maxrss of a new program begins with what its parent had; VmHWM is its own.
PEAK = """
from pathlib import Path
status = Path("/proc/self/status")
if status.exists():
    print(int(status.read_text().split("VmHWM:")[1].split()[0]) // 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024))
"""

LONG_LINES = (
    r'''
import resource, sys, time
from lbm.errors import ParseError
from lbm.knowledge.theory import Theory
size = 50_000_000
shapes = r"""
    "a" * size
    "a & " * (size // 4)
    "(" * size
    "~" * size
    "a &" + " " * size + "b"
    "a # " + "x" * size
    "f(" + "a," * (size // 2) + "a)"
    "f(" + "a," * (size // 2)
    "'" + "a" * size + "'"
    "'" + "a" * size
    "'" * size
    "9" * size + ": a"
    "1: " + "a | " * (size // 4)
    "atoms " + "a, " * (size // 3) + "a"
    "domain d = {" + "a, " * (size // 3)
    "ok\n" * 3 + "a" * size + "\nok"
"""
for shape in shapes.split("\n")[1:-1]:
    text = eval(shape)
    start = time.process_time()
    try:
        Theory.parse(text)
    except ParseError as error:
        assert "10000000 characters (limit MAX_STATEMENT)" in error.message, error.message
        assert error.line == 1 + 3 * text.startswith("ok"), error.line
        assert error.column == 1, error.column
        assert len(str(error)) < 300
    else:
        raise SystemExit("read")
    assert time.process_time() - start < 30, (text[:20], time.process_time() - start)
'''
    + PEAK
)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no module resource")
def test_a_line_of_fifty_megabytes_is_refused_at_once_and_without_memory():
    ran = subprocess.run([sys.executable, "-c", LONG_LINES], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 300  # MiB: the text, the next one, and Python itself


LONG_TOKENS = (
    """
import resource, sys
from lbm.knowledge.parser import parse
size = 9_000_000
quoted, doubled = "'" + "a" * size + "'", "'" + "''" * (size // 2) + "'"
for text in (quoted, doubled, "a" * size, "f(" + "a," * (size // 2) + "a)"):
    parse(text)
"""
    + PEAK
)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no module resource")
def test_a_name_of_nine_megabytes_is_read_in_memory_of_its_own_size():
    ran = subprocess.run([sys.executable, "-c", LONG_TOKENS], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 700  # MiB; the arguments of the term are four million strings


@pytest.mark.parametrize(
    "text",
    [
        "(" + "a &\n" * 300 + "b)",
        "f(" + "a,\n" * 400 + "b)",
        "domain d = {" + "\n" * 1001 + "}",
        "exactly(" + "\n" * 1001 + "1)",
        "(forall" + "\n" * 1001 + "X in d: p(X))",
    ],
    ids=["formula", "term", "domain", "cardinality", "quantifier"],
)
def test_a_statement_over_many_lines_keeps_the_same_limit(text, monkeypatch):
    monkeypatch.setattr(lexer_module, "MAX_STATEMENT", 1000)
    with pytest.raises(ParseError, match="limit MAX_STATEMENT") as caught:
        Theory.parse("ok\n" + text)
    assert (caught.value.line, caught.value.column) == (2, 1)


def test_a_line_of_the_limit_is_read_and_one_more_character_is_not():
    line = "a" + " " * (MAX_STATEMENT - 1) + "\n"
    assert len(Theory.parse(line * 2 + "b")) == 3
    assert parse("a" * MAX_STATEMENT).kind == "atom"
    for text in (line + "a" * (MAX_STATEMENT + 1), line + " " + line):
        with pytest.raises(ParseError, match="limit MAX_STATEMENT") as caught:
            Theory.parse(text)
        assert (caught.value.line, caught.value.column) == (2, 1)


# --- weights -------------------------------------------------------------------------------------


@given(weights)
def test_a_weight_is_kept_exactly(weight):
    read = read_weight(str(weight))
    assert read == weight
    assert str(read) == str(weight)
    assert check_weight(weight) is weight


@given(st.from_regex(r"[+-]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][+-]?\d{1,3})?", fullmatch=True))
@example("." + "1" * MAX_DIGITS)
@example("-0." + "1" * MAX_DIGITS)
@example("1e100")
@example("-1e-100")
@example("0" * 90 + "1")
@example("1." + "0" * 99)
def test_a_weight_that_is_read_prints_and_reads_the_same_again(text):
    try:
        weight = read_weight(text)
    except WeightError:
        value = Decimal(text)
        digits = len(value.as_tuple().digits)
        assert (
            not text.isascii()
            or not value
            or digits > MAX_DIGITS
            or not Decimal("1e-100") <= value.copy_abs() <= Decimal("1e100")
        )
    else:
        assert weight == Decimal(text)
        assert read_weight(str(weight)) == weight
        assert isinstance(weight, int) is text.lstrip("+-").isdecimal()


# --- fuzz ----------------------------------------------------------------------------------------


@settings(max_examples=settings.default.max_examples * 5)
@given(st.text(max_size=80) | fragments)
@example("1e99999999: a")
@example("domain d = {'\t'}\nforall X in d: p(X)")
@example("atleast(" + "9" * 5000 + ")")
def test_no_text_raises_anything_but_our_errors(text):
    for read in (parse, Theory.parse):
        error = refusal(read, text)
        if error is None:
            found = read(text)
            assert read(str(found)) == found
        else:
            assert isinstance(error, ParseError)
            assert "\n" not in error.one_line()


@given(st.binary(max_size=200), st.sampled_from(["latin-1", "utf-8", "utf-16"]))
def test_no_binary_file_raises_anything_but_our_errors(data, encoding):
    text = data.decode(encoding, errors="surrogateescape" if encoding == "utf-8" else "replace")
    assert isinstance(refusal(Theory.parse, text), ParseError | None)


# --- lines of one shape --------------------------------------------------------------------------

pieces = st.sampled_from(
    "a b1 _c é and or not true in atoms domain p(a) 'ab' 1 2.5: 0: 1e400: x:".split()
    + "~ ! & | ^ -> <- <-> ( ) , ¬ ∧ @ ' aa aband".split()
    + ["-3 :", "f (b)", " ", "\t", "\r", "# note", "exactly(1, a)"]
)  # fmt: skip
plain_lines = st.lists(pieces, max_size=9).map(" ".join)
likely_lines = st.sampled_from(
    [
        "a & b -> c",
        "2: a & b -> c",
        "x1 & x2 -> x1",
        "~(a | b) ^ c",
        "a",
        " a",
        "(a\n| b)",
        "1.5: ~~a <-> (b)",
        "",
        "# a",
    ]
)


@given(st.lists(plain_lines | likely_lines, max_size=6).map("\n".join))
def test_lines_of_one_shape_are_read_as_the_reader_reads_them(text):
    """The short way for plain lines and the long way agree: formulae, weights, lines, atoms and errors."""

    def short():
        found = read_text(text)
        return [(s.formula, s.weight, s.line) for s in found.statements], list(found.atoms)

    def long():
        reader = _Reader(text, None)
        return [(s.formula, s.weight, s.line) for s in reader.statements()], list(reader.atoms)

    def outcome(way):
        try:
            return way()
        except ParseError as error:
            return str(error)

    assert outcome(short) == outcome(long)


def test_a_thousand_lines_of_one_shape_are_parsed_once(monkeypatch):
    calls = []
    plain = parser_module.parse
    monkeypatch.setattr(parser_module, "parse", lambda text: calls.append(text) or plain(text))
    found = read_text("\n".join(f"x{i} & ~y{i} -> z" for i in range(1000)))
    assert len(found.statements) == 1000
    assert len(calls) == 1


def test_shapes_are_remembered_within_a_limit(monkeypatch):
    monkeypatch.setattr(parser_module, "MAX_SHAPES", 1)
    found = read_text("a & b\na | b\nc & d\n")
    assert [str(s.formula) for s in found.statements] == ["a & b", "a | b", "c & d"]
