"""The store of answers that a change is held against: its theories, its questions, and how it compares."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lbm

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "tools" / "baseline.py"


@pytest.fixture
def baseline(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL.parent))
    import baseline

    return baseline


def run(*order):
    return subprocess.run(
        [sys.executable, TOOL, *map(str, order)], capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_made_theories_are_as_stated_and_can_be_asked(baseline, tmp_path):
    (tmp_path / "made").mkdir()
    sizes = set()
    for number in range(baseline.GENERATED):
        case = baseline.made(number, tmp_path)
        theory = lbm.Theory.load(tmp_path / case.file)
        world = {name: value == "1" for name, value in (pair.split("=") for pair in case.world.split())}
        assert theory.atoms == case.atoms == tuple(world)
        assert theory.is_model(world) or "clash" in case.file
        assert {lbm.holds(lbm.parse(text), world) for text in (case.query, case.given)} <= {False, True}
        sizes.add(len(theory.atoms))
    assert min(sizes) == 3
    assert max(sizes) <= 129
    assert any(size > 40 for size in sizes)
    assert not any(40 < size < 60 for size in sizes)


def test_a_theory_depends_on_its_number_alone(baseline, tmp_path):
    texts = []
    for part in ("one", "two"):
        (tmp_path / part / "made").mkdir(parents=True)
        made = [baseline.made(number, tmp_path / part) for number in (3, 4)]
        texts.append([*made, *((tmp_path / part / case.file).read_text() for case in made)])
    assert texts[0] == texts[1]
    assert texts[0][2] != texts[0][3]


def test_every_other_question_is_asked_of_some_theory(baseline):
    case = baseline.Case("made/x.lbm", ("a", "b", "c"), "a", "b", "a=1 b=0 c=1")
    asked = set()
    for number in range(6):
        numbered = baseline.Case(case.file, case.atoms, case.query, case.given, case.world, (), number)
        asked |= {tuple(question) for question in baseline.questions(numbered)}
    commands = {question[0] for question in asked}
    assert commands == {
        *("check", "compile", "models", "count", "best", "ask", "entails", "sample"),
        *("log-partition", "log-probability", "convert"),
    }
    options = {word for question in asked for word in question}
    assert {"--project", "--soft-as-hard", "--top", "--all", "--certify", "--why", "--distance"} <= options
    assert {"machine", "collapsed", "tempered", "gibbs", "fast", "exact", "penalty", "preferred"} <= options
    assert all(question[-1] == "--json" for question in asked)


def test_floats_may_differ_by_rounding_and_nothing_else_at_all(baseline):
    def differ(one, other):
        return bool(list(baseline.differences(one, other)))

    assert not differ({"p": [0.5, 1]}, {"p": [0.5 + 1e-13, 1]})
    assert not differ(-700.0, -700.0 + 1e-10)
    assert differ(0.5, 0.5 + 1e-11)
    assert differ(float("nan"), 0.5)
    assert differ(1, 1.0)
    assert differ(1, True)
    assert differ(None, 0.0)
    assert differ("0.5", "0.50")
    assert differ([1], [1, 2])
    assert differ({"a": 1}, {"a": 1, "b": 2})
    assert differ({"a": 1, "b": 2}, {"b": 2, "a": 1})


def answer(baseline, stdout, *question, **more):
    return {"question": list(question), "status": 0, "stdout": stdout, "stderr": "", "written": {}, **more}


def test_only_what_a_race_decides_is_not_compared(baseline, capsys):
    def compare(one, other, *question):
        sides = [
            {"files": {}, "answers": {"key": answer(baseline, said, *question)}} for said in (one, other)
        ]
        return baseline.compare(*sides)

    raced = {"worlds": [{"a": 1}], "lost": 3, "method": "certified"}
    assert compare(raced, {**raced, "worlds": [{"a": 0}]}, "best", "made/x.lbm") == 0
    assert compare(raced, {**raced, "lost": 4}, "best", "made/x.lbm") == 1
    exact = {**raced, "method": "exact"}
    assert compare(exact, {**exact, "worlds": [{"a": 0}]}, "best", "made/x.lbm") == 1
    assert compare(raced, {**raced, "worlds": [{"a": 0}]}, "ask", "made/x.lbm") == 1
    assert "lost: 3, 4" in capsys.readouterr().out


def test_questions_asked_on_one_side_only_are_differences(baseline, capsys):
    one = {"files": {"x": "1"}, "answers": {"key": answer(baseline, {}, "count", "x")}}
    assert baseline.compare(one, {"files": {"x": "2"}, "answers": {}}) == 1
    said = capsys.readouterr().out
    one["answers"]["key"]["question"] = ["count", "instances/sat/f600.cnf"]  # which is left out
    assert baseline.compare(one, {"files": {}, "answers": {}}) == 0
    assert "asked only in the first" in said
    assert "x: not the same file" in said


def test_two_runs_agree_and_a_changed_answer_is_found(tmp_path):
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    asked = ("--only", "examples/xor.lbm")
    assert run(one, *asked).returncode == 0
    ran = run(two, *asked, "--against", one)
    assert ran.returncode == 0, ran.stdout
    stored = json.loads(two.read_text())
    key = next(key for key in stored["answers"] if key.startswith("count examples/xor.lbm --"))
    assert stored["answers"][key]["status"] == 0
    stored["answers"][key]["stdout"]["count"] += "0"
    two.write_text(json.dumps(stored))
    ran = run(two, "--stored", "--against", one)
    assert ran.returncode == 1
    assert f"lbm {key}\n  stdout.count: " in ran.stdout
