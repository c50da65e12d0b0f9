"""lbm count and lbm models: exact answers as people and programs read them."""

import json

import pytest

import lbm
from lbm.errors import ParseError, UnknownAtom
from lbm.reasoning.exact import apart
from lbm.reasoning.solvers import aside
from lbm.views.entry import main


@pytest.fixture
def theory(tmp_path):
    path = tmp_path / "theory.lbm"
    path.write_text("atoms a, b, c\na ^ b\n5: c\n", encoding="utf-8")
    return str(path)


def test_models_are_printed_a_world_a_line_and_counted(theory, capsys):
    assert main(["models", theory]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a=0 b=1 c=0",
        "a=0 b=1 c=1",
        "a=1 b=0 c=0",
        "a=1 b=0 c=1",
        "4 models, all of them",
    ]


def test_a_limit_leaves_models_out_and_says_so(theory, capsys):
    assert main(["models", theory, "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == ["a=0 b=1 c=0", "1 model, and there are more"]


def test_evidence_is_any_formula_and_projection_any_atoms(theory, capsys):
    assert main(["models", theory, "--given", "a | ~c", "--project", "b, a"]) == 0
    assert capsys.readouterr().out.splitlines() == ["b=0 a=1", "b=1 a=0", "2 models, all of them"]


def test_signs_of_other_languages_are_read_on_the_command_line_and_in_python(theory, capsys):
    assert main(["models", theory, "--given", "(a || !c) && (c => a) <=> true", "--project", "b, a"]) == 0
    assert capsys.readouterr().out.splitlines() == ["b=0 a=1", "b=1 a=0", "2 models, all of them"]
    assert main(["ask", theory, "a && b => c"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "P(a & b -> c) = 1"
    assert main(["entails", theory, "a <=> && b"]) == 2
    assert capsys.readouterr().err == "lbm: query:1:7: expected a formula, found '&&'\n"
    assert lbm.entails(lbm.Theory.load(theory), "a || b")


def test_programs_get_models_as_lists(theory, capsys):
    assert main(["models", theory, "--given", "c", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"atoms": ["a", "b", "c"], "models": [[0, 1, 1], [1, 0, 1]], "complete": True}


def test_the_number_of_models_is_printed_whatever_its_size(tmp_path, capsys):
    path = tmp_path / "free.lbm"
    path.write_text("atoms " + ", ".join(f"x{i}" for i in range(200)) + "\nx0\n", encoding="utf-8")
    assert main(["count", str(path)]) == 0
    assert capsys.readouterr().out == f"{2**199}\n"
    assert main(["count", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"count": str(2**199)}


@pytest.mark.parametrize("command", ["count", "models"])
def test_no_models_is_an_answer_and_exit_1(theory, command, capsys):
    assert main([command, theory, "--given", "a & b"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("0\n" if command == "count" else "no models keep the evidence\n", "")


def test_a_theory_that_clashes_has_no_models_whatever_the_evidence(tmp_path, capsys):
    path = tmp_path / "clash.lbm"
    path.write_text("a\n~a\n", encoding="utf-8")
    assert main(["models", str(path), "--given", "a"]) == 1
    assert capsys.readouterr().out == "no models: the hard formulae clash\n"


@pytest.mark.parametrize("command", ["count", "models"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--given", "a &"], "lbm: given:1:4: expected a formula, found the end of the text\n"),
        (["--given", "aa"], "lbm: no atom 'aa' in this theory; did you mean 'a'?\n"),
        (["--project", "q"], "no atom 'q'"),
        (["--project", "a,,b"], "lbm: --project:1:9: expected the name of an atom, found ','\n"),
    ],
)
def test_a_wrong_question_is_one_line_and_exit_2(theory, command, options, message, capsys):
    assert main([command, theory, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_theory_too_large_to_answer_exactly_is_exit_3(theory, capsys, monkeypatch):
    monkeypatch.setattr(apart, "MAX_FORMULAE", 1)
    monkeypatch.setattr(aside, "ganak_installed", lambda: False)
    assert main(["count", theory]) == 3
    assert "(limit MAX_FORMULAE)" in capsys.readouterr().err


def test_in_python_evidence_may_be_text():
    theory = lbm.Theory.parse("a | b")
    assert lbm.count(theory) == 3
    assert lbm.count(theory, given="~a") == 1
    assert lbm.count(theory, given=lbm.parse("a")) == 2
    assert [dict(world) for world in lbm.models(theory, given="~a")] == [{"a": False, "b": True}]
    with pytest.raises(ParseError):
        lbm.count(theory, given="a b")
    with pytest.raises(UnknownAtom):
        lbm.models(theory, given="z")
