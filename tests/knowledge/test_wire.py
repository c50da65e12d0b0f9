"""Files in every format: what is written reads back, bad files are refused, sympy agrees."""

import contextlib
import os
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from pysat.solvers import Solver
from sympy.logic.boolalg import ITE, Nand, Nor, Xnor

from lbm.errors import FileError, LbmError, LimitExceeded, MissingExtra, ParseError, WeightError
from lbm.knowledge import packed
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import FALSE, TRUE, atmost, atom, conjunction, exactly
from lbm.knowledge.packed import write_whole
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.knowledge.weighted import MAX_CELLS, weighted_clauses
from lbm.knowledge.wire import (
    FORMATS,
    from_sympy,
    load_theory,
    read_theory,
    save_theory,
    sniff_format,
    to_sympy,
    write_theory,
)
from tests.oracles import score_and_hard, truth, worlds
from tests.strategies import awkward_names, formulae, theories

SMALL = ("a", "x9", "x4", "it's")  # names that clash with what definitional variables are called
small_weights = st.integers(-9, 9).filter(bool) | st.decimals(-9, 9, places=2).filter(bool)


def text_of(theory, format):
    return "".join(write_theory(theory, format))


def soft_theory(weight):
    return Theory([(weight, "a")])


# --- what is written reads back ------------------------------------------------------------------


@st.composite
def clause_theories(draw, weights):
    atoms = draw(
        st.lists(awkward_names.map(lambda name: atom(name).label), min_size=1, max_size=5, unique=True)
    )
    literal = st.integers(1, len(atoms)).flatmap(lambda number: st.sampled_from([number, -number]))
    rows = draw(st.lists(st.lists(literal, max_size=4), min_size=1, max_size=6))
    found = draw(st.lists(weights, min_size=len(rows), max_size=len(rows)))
    flat = np.array([number for row in rows for number in row], np.int32)
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Theory.from_clauses(Clauses(tuple(atoms), flat, starts), np.array(found, np.int64))


@given(clause_theories(st.just(0)))
def test_hard_clauses_survive_every_format(theory):
    for format in FORMATS:
        assert read_theory(text_of(theory, format), format=format) == theory


@given(clause_theories(st.integers(0, 99)))
def test_weighted_clauses_survive_every_format_that_has_weights(theory):
    for format in ("lbm", "wcnf", "wcnf-old"):
        assert read_theory(text_of(theory, format), format=format) == theory


@given(clause_theories(st.integers(0, 99)))
def test_clauses_made_of_formulae_are_written_like_packed_ones(theory):
    unpacked = Theory(list(theory), atoms=theory.atoms)
    for format in ("wcnf", "wcnf-old"):
        assert read_theory(text_of(unpacked, format), format=format) == theory


@given(theories())
def test_any_theory_survives_the_text_format(theory):
    if len(theory) or theory.atoms:
        assert read_theory(text_of(theory, "lbm"), format="lbm") == theory


@given(theories(atoms=SMALL, weights=st.nothing()))
def test_a_cnf_has_the_models_of_the_theory_each_once(theory):
    check_models_and_scores(theory, text_of(theory, "cnf"), "cnf")


@given(theories(atoms=SMALL, weights=small_weights))
def test_a_wcnf_has_the_models_and_scores_of_the_theory(theory):
    for format in ("wcnf", "wcnf-old"):
        check_models_and_scores(theory, text_of(theory, format), format)


def check_models_and_scores(theory, text, format):
    scale = re.search(r"^c scale 10\^(\d+)$", text, re.MULTILINE)
    offset = re.search(r"^c offset (.+)$", text, re.MULTILINE)
    back = read_theory(text, format=format)
    assert back.atoms[: len(theory.atoms)] == theory.atoms
    hard = sum(statement.weight is None for statement in theory)
    expected = {}
    for world in worlds(theory.atoms):
        score, kept = score_and_hard(theory, world)
        if kept == hard:
            expected[tuple(world.values())] = score
    found = []
    for world in models(back):
        score = Fraction(score_and_hard(back, world)[0])
        score = score / 10 ** int(scale[1] if scale else 0) + Fraction(offset[1] if offset else 0)
        found.append((tuple(world[name] for name in theory.atoms), score))
    assert len(found) == len(expected)
    assert dict(found) == expected


def models(theory):
    """Yield the worlds in which the hard clauses are true, by a SAT solver."""
    packed = theory.statements
    with Solver("cadical153") as solver:
        for number in range(1, len(theory.atoms) + 1):
            solver.add_clause([number, -number])
        for j in range(len(theory)):
            if packed.weights[j] == 0:
                start, end = packed.starts[j : j + 2]
                if start == end:
                    return
                solver.add_clause(packed.literals[start:end].tolist())
        if not theory.atoms:
            yield {}
            return
        for model in solver.enum_models():
            true = set(model)
            yield {name: number in true for number, name in enumerate(theory.atoms, start=1)}


def test_comments_say_what_the_clauses_do_not():
    theory = Theory([(Decimal("-2.50"), "a"), (3, "a & b"), (1, "true")])
    assert text_of(theory, "wcnf") == (
        "c definitional variables: 1, from 3 on\nc scale 10^1\nc offset -1.50\nc atom 1 a\nc atom 2 b\n"
        "25 -1 0\n30 3 0\nh -3 1 0\nh -3 2 0\nh 3 -1 -2 0\n"
    )


def test_a_hard_conjunction_of_clauses_needs_no_definitions():
    theory = Theory(["(x1 & (x2 -> x3)) & true & (x1 & (x2 -> x3))"])
    assert text_of(theory, "cnf") == "p cnf 3 2\n1 0\n-2 3 0\n"


def test_constants_are_written():
    assert text_of(Theory(["true"]), "cnf") == "p cnf 0 0\n"
    assert text_of(Theory(["false"]), "cnf") == "p cnf 0 1\n0\n"
    assert text_of(Theory([(2, "false")]), "wcnf") == "2 0\n"
    assert text_of(Theory([(-2, "false")]), "wcnf") == "c no clauses\n"
    assert text_of(Theory([(-2, "true")]), "wcnf") == "c offset -2\n2 0\n"
    assert text_of(Theory(["true"]), "wcnf") == "c no clauses\n"
    assert len(read_theory("c no clauses\n", format="wcnf")) == 0


def test_packed_clauses_with_negative_weights_are_refused():
    packed = Clauses(("x1", "x2"), np.array([1, 2], np.int32), np.array([0, 1, 2]))
    with pytest.raises(WeightError, match="from 1 up, or 0 for a hard one, got -3"):
        Theory.from_clauses(packed, np.array([-3, 0]))
    assert text_of(Theory([(-3, "x1"), "x2"]), "wcnf") == "c offset -3\n3 -1 0\nh 2 0\n"


@pytest.mark.parametrize("statement", [(5, "a -> b"), (Decimal("0.5"), "a & b")])
def test_a_cnf_refuses_weights_and_names_the_formats_that_have_them(statement):
    with pytest.raises(WeightError, match=r"formula 2 .* \.wcnf or \.lbm"):
        write_theory(Theory(["a", statement]), "cnf")
    packed = Clauses(("a",), np.array([1, 1], np.int32), np.array([0, 1, 2]))
    with pytest.raises(WeightError, match="formula 2 "):
        write_theory(Theory.from_clauses(packed, np.array([0, 5])), "cnf")


def test_weights_past_the_largest_are_refused_by_name():
    assert text_of(soft_theory(2**63 - 1), "wcnf").endswith(f"\n{2**63 - 1} 1 0\n")
    for weight in (2**63, -(2**63), Decimal("1e50"), Decimal("1234567890123456.7891")):
        with pytest.raises(WeightError, match="MAX_WHOLE_WEIGHT"):
            write_theory(soft_theory(weight), "wcnf")


def test_trailing_zeros_of_a_weight_need_no_scale():
    assert weighted_clauses(soft_theory(Decimal("2.500000"))).digits == 1
    assert weighted_clauses(soft_theory(Decimal("1e3"))).weights.tolist() == [1000]


def test_a_cardinality_too_large_for_clauses_is_refused_by_name():
    atoms = [atom(f"v{i}") for i in range(3000)]
    with pytest.raises(LimitExceeded, match=f"{MAX_CELLS} "):
        write_theory(Theory([atmost(1500, *atoms)]), "cnf")


def test_too_many_definitions_are_refused_by_name(monkeypatch):
    monkeypatch.setattr("lbm.knowledge.weighted.MAX_ATOMS", 4)
    with pytest.raises(LimitExceeded, match="MAX_ATOMS"):
        write_theory(Theory(["(a ^ b) | (c ^ d)"]), "cnf")


# --- which format --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.lbm", "p cnf 1 1", "lbm"),
        ("a.CNF", "a -> b", "cnf"),
        ("a.wcnf", "a -> b", "wcnf"),
        ("a.txt", "a -> b", "lbm"),
        ("a.txt", "c hi\np cnf 1 1\n1 0", "cnf"),
        ("a", "h & b", "lbm"),
        ("-", "p & b", "lbm"),
        (None, "", "lbm"),
        (None, "c hi\n p  wcnf 1 1 2\n1 1 0", "wcnf"),
        (None, "c hi\r\n5 1 0\r\nh -1 2 0", "wcnf"),
        ("a.sat", "p cnf 1 1\n1 0", "cnf"),
        ("a.2022", b"\xef\xbb\xbfh 1 0", "wcnf"),
    ],
)
def test_the_ending_or_else_the_text_tells_the_format(name, text, format):
    assert sniff_format(text, name) == format


def test_an_unknown_ending_without_a_telling_line_says_what_was_expected():
    with pytest.raises(ParseError, match=r"a\.foo: expected .*\.lbm, \.cnf or \.wcnf.*'\.foo'"):
        sniff_format("a -> b", "a.foo")
    with pytest.raises(ParseError, match="UTF-8"):
        sniff_format(b"\x1f\x8b\x08\0\0", "a.bin.gz")


def test_an_unknown_format_is_refused():
    for call in (lambda: read_theory("a", format="dnf"), lambda: write_theory(Theory(["a"]), "dnf")):
        with pytest.raises(ValueError, match=r"lbm, cnf, wcnf, wcnf-old, got 'dnf'"):
            call()


def test_what_is_no_theory_or_text_is_refused():
    for call in (
        lambda: write_theory("a", "lbm"),
        lambda: read_theory(5, format="lbm"),
        lambda: load_theory(5),
        lambda: to_sympy("a"),
        lambda: from_sympy("a"),
    ):
        with pytest.raises(TypeError, match="expected"):
            call()


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["lbm", "cnf", "wcnf", "txt"])
def test_a_saved_theory_loads_again(tmp_path, ending):
    theory = Theory(["~a | b", "b | ~'x 1'"])
    path = tmp_path / f"t.{ending}"
    save_theory(theory, path)
    assert load_theory(path) == load_theory(str(path)) == Theory.load(path) == theory
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_form_is_written_on_request(tmp_path):
    save_theory(soft_theory(3), tmp_path / "t.wcnf", format="wcnf-old")
    assert (tmp_path / "t.wcnf").read_text() == "c atom 1 a\np wcnf 1 1 4\n3 1 0\n"
    assert load_theory(tmp_path / "t.wcnf") == soft_theory(3)


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    for name, text in (("t.lbm", "~x1 | x2\r\nx2\r\n"), ("t.cnf", "c\r\np cnf 2 2\r\n-1 2 0\r\n2 0\r\n")):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert load_theory(tmp_path / name) == Theory(["~x1 | x2", "x2"])


@pytest.mark.parametrize("ending", ["lbm", "cnf", "wcnf"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b" \r\n\t\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"\x89PNG\r\n\x1a\n\0\0", ":3:1: expected text in UTF-8, found a NUL byte"),
        ("p -> é".encode("utf-16"), "NUL byte"),
        ("p -> é".encode("latin-1"), ":1:6: expected text in UTF-8, found the byte 0xe9"),
    ],
)
def test_empty_and_binary_files_are_refused(tmp_path, ending, data, message):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(data)
    with pytest.raises(ParseError) as caught:
        load_theory(path)
    assert caught.value.one_line().startswith(str(path))
    assert message in caught.value.one_line()


def test_lenient_reading_takes_old_comments_but_no_binary_file():
    heard = []
    data = "c Universität\np cnf 1 1\n1 0\n".encode("latin-1")
    assert len(read_theory(data, format="cnf", lenient=True, warn=heard.append)) == 1
    assert "0xe4" in heard[0]
    with pytest.raises(ParseError, match="NUL"):
        read_theory(b"c\0\np cnf 1 1\n1 0\n", format="cnf", lenient=True, warn=heard.append)


def test_lenient_loading_passes_the_warnings_on(tmp_path):
    heard = []
    (tmp_path / "t.cnf").write_text("p cnf 1 7\n1 0")
    load_theory(tmp_path / "t.cnf", lenient=True, warn=heard.append)
    assert heard == [f"{tmp_path / 't.cnf'}:1:1: the header promises 7 clauses, the file has 1"]


@pytest.mark.parametrize(
    "name", ["missing.cnf", "directory.cnf", "file/t.cnf", "n\0l.cnf", "\ud800.cnf", "n" * 300]
)
def test_what_cannot_be_opened_is_one_error_that_names_it(tmp_path, name):
    (tmp_path / "directory.cnf").mkdir()
    (tmp_path / "file").touch()
    path = f"{tmp_path}{os.sep}{name}"
    with pytest.raises(FileError) as caught:
        load_theory(path)
    assert name.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00") in str(caught.value)
    if name != "missing.cnf":
        with pytest.raises(FileError):
            save_theory(Theory(["a"]), path, format="cnf")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "directory.cnf", tmp_path / "file"]
    assert not list((tmp_path / "directory.cnf").iterdir())


def test_a_file_we_may_not_read_or_write_is_an_error_of_ours(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(FileError, match=r"cannot read .*t\.lbm: Permission denied"):
        load_theory(tmp_path / "t.lbm")
    with pytest.raises(FileError, match=r"cannot write .*t\.lbm: Permission denied"):
        save_theory(Theory(["a"]), tmp_path / "t.lbm")


def test_a_file_that_never_ends_is_refused_by_a_named_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MAX_BYTES", 10)
    (tmp_path / "t.lbm").write_text("a -> b -> c -> d")
    with pytest.raises(LimitExceeded, match="MAX_BYTES"):
        load_theory(tmp_path / "t.lbm")


def test_an_ending_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"\.lbm, \.cnf or \.wcnf"):
        save_theory(Theory(["a"]), tmp_path / "t.foo")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_whatever_fails_the_old_file_stays_and_nothing_else(tmp_path, error):
    def pieces():
        yield "half"
        raise error

    (tmp_path / "t.lbm").write_text("old")
    with pytest.raises(FileError if error is OSError else error):
        write_whole(tmp_path / "t.lbm", pieces())
    assert (tmp_path / "t.lbm").read_text() == "old"
    with pytest.raises(WeightError):
        save_theory(soft_theory(2), tmp_path / "t.cnf")
    assert list(tmp_path.iterdir()) == [tmp_path / "t.lbm"]


@pytest.mark.skipif(os.name == "nt", reason="links and modes are POSIX's")
def test_a_link_stays_a_link_and_a_mode_stays_a_mode(tmp_path):
    target, link = tmp_path / "t.lbm", tmp_path / "link.lbm"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, ["new ", b"bytes"])
    assert link.is_symlink()
    assert target.read_text() == "new bytes"
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="a device of POSIX")
def test_a_device_is_written_to_and_not_replaced():
    write_whole("/dev/null", ["gone"])
    assert Path("/dev/null").is_char_device()


def test_text_files_are_read_and_written_without_numpy(tmp_path):
    code = (
        "import sys; from lbm.knowledge.wire import load_theory, save_theory\n"
        f"save_theory(load_theory({str(tmp_path / 't.lbm')!r}), {str(tmp_path / 'u.lbm')!r})\n"
        "assert not {'numpy', 'sympy'} & set(sys.modules)"
    )
    (tmp_path / "t.lbm").write_text("2: a -> b\n")
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "u.lbm").read_text() == "2: a -> b\n"


# --- any bytes -----------------------------------------------------------------------------------

ORIGINALS = [
    "# c\natoms n, 'x 1'\n1000: n -> r\n-2.5: forall X in d: p(X)\n",
    "domain d = {a, b}\n2: forall X, Y in d, X != Y: less(X, Y) -> ~less(Y, X)\nexactly(1, a, b ^ c)\n",
    "c atom 1 a\np cnf 3 2\n1 -2 0\n2 3 0\n%\n0\n",
    "h 1 -2 0\n12 2 3 0\n",
]
words = st.sampled_from(
    ["", "(", ")", "0", "-", "h ", "\n", "'", "p cnf 2 1\n", ":", "\xa0", "atleast(2, ", "\ud800", "∀"]
)


@st.composite
def damaged_texts(draw):
    text = draw(st.sampled_from(ORIGINALS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 5)))
        text = text[:start] + draw(words | st.text(max_size=3)) + text[end:]
    return text


@settings(max_examples=500)
@given(
    st.binary(max_size=80) | st.text(max_size=80) | damaged_texts(), st.sampled_from(FORMATS), st.booleans()
)
def test_no_reader_raises_anything_but_our_errors(data, format, lenient):
    with contextlib.suppress(LbmError):
        read_theory(data, format=format, lenient=lenient, warn=[].append)
    with contextlib.suppress(LbmError):
        sniff_format(data, "a.unknown")


# --- sympy ---------------------------------------------------------------------------------------

a, b, c = sympy.symbols("a b c")


@given(formulae("abc"))
def test_sympy_and_we_agree_on_every_world(formula):
    expression = to_sympy(formula)
    back = from_sympy(expression)
    for world in worlds("abc"):
        value = truth(formula, world)
        assert bool(expression.subs(world)) == value
        assert truth(back, world) == value


def sympy_expressions():
    leaves = st.sampled_from([a, b, c, sympy.true, sympy.false])

    def compounds(parts):
        several = st.lists(parts, min_size=1, max_size=4)
        kinds = [sympy.And, sympy.Or, sympy.Xor, sympy.Equivalent, Nand, Nor, Xnor]
        return st.one_of(
            parts.map(sympy.Not),
            st.builds(sympy.Implies, parts, parts),
            st.builds(ITE, parts, parts, parts),
            *(
                several.map(lambda found, kind=kind, evaluate=evaluate: kind(*found, evaluate=evaluate))
                for kind in kinds
                for evaluate in (True, False)
            ),
        )

    return st.recursive(leaves, compounds, max_leaves=8)


@given(sympy_expressions())
def test_every_sympy_connective_keeps_its_truth_values(expression):
    formula = from_sympy(expression)
    for world in worlds("abc"):
        value = expression.subs(world).doit()
        assert value in (sympy.true, sympy.false)
        assert truth(formula, world) == bool(value)


def test_sympy_connectives_become_chains():
    assert from_sympy(sympy.And(a, b, c)) is parse("a & b & c")
    assert from_sympy(sympy.Or(a, b, c)) is parse("a | b | c")
    assert from_sympy(sympy.Xor(a, b, c)) is parse("a ^ b ^ c")
    assert from_sympy(sympy.Implies(a, b)) is parse("a -> b")
    assert from_sympy(sympy.Equivalent(a, b, c)) is parse("(a <-> b) & (b <-> c)")
    assert from_sympy(ITE(a, b, c)) is parse("(a -> b) & (~a -> c)")
    assert from_sympy(Nand(a, b, evaluate=False)) is parse("~(a & b)")
    assert from_sympy(True) is from_sympy(sympy.true) is TRUE
    assert from_sympy(False) is from_sympy(sympy.false) is FALSE


def test_cardinalities_are_written_out_for_sympy():
    two = to_sympy(exactly(2, atom("a"), atom("b"), atom("c")))
    assert sympy.simplify_logic(sympy.Equivalent(two, sympy.SOPform([a, b, c], [3, 5, 6]))) == sympy.true


@pytest.mark.parametrize("expression", [a + b, a > b, sympy.And(a, b > c), sympy.Integer(1)])
def test_an_expression_that_is_no_formula_is_refused(expression):
    with pytest.raises(ParseError, match="expected a symbol, And, Or"):
        from_sympy(expression)


def test_symbols_that_cannot_be_told_apart_or_named_are_refused():
    with pytest.raises(ParseError, match="two different symbols"):
        from_sympy(sympy.And(sympy.Symbol("a"), sympy.Dummy("a")))
    with pytest.raises(ParseError, match="control characters"):
        from_sympy(sympy.Symbol("a\nb"))


def test_deep_expressions_of_sympy_are_read():
    expression = a
    for _ in range(20_000):
        expression = sympy.Not(sympy.Implies(expression, b, evaluate=False), evaluate=False)
    formula = from_sympy(expression)
    assert formula.kind == "not"
    assert formula.args[0].args[1] is atom("b")


def test_long_chains_are_written_for_sympy_in_reasonable_time():
    assert len(to_sympy(conjunction(atom(f"v{i}") for i in range(2000))).args) == 2000


def test_formulae_too_large_or_too_deep_for_sympy_are_refused_by_name():
    shared = atom("a")
    for _ in range(200):
        shared = shared ^ (shared & atom("b"))
    with pytest.raises(LimitExceeded, match="MAX_SYMPY"):
        to_sympy(shared)
    with pytest.raises(LimitExceeded, match="MAX_SYMPY"):
        to_sympy(atmost(20, *(atom(f"v{i}") for i in range(40))))
    with pytest.raises(LimitExceeded, match="MAX_CELLS"):
        to_sympy(atmost(5000, *(atom(f"v{i}") for i in range(10000))))
    deep = atom("a")
    for i in range(3000):
        deep = (deep & atom("b")) if i % 2 else (deep | atom("c"))
    with pytest.raises(LimitExceeded, match="recurses"):
        to_sympy(deep)


def test_without_sympy_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(MissingExtra, match=r"sympy.*pip install"):
        to_sympy(atom("a"))
    with pytest.raises(MissingExtra, match=r"sympy.*pip install"):
        from_sympy(a)
