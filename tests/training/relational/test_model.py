"""Models that were trained: nine folds predict the tenth in a process without torch, as it was printed."""

import json
import subprocess
import sys

import numpy as np
import pytest

import lbm
from lbm.relations.model_file import save_relational
from lbm.relations.problem import load_problem
from lbm.relations.prolog.terms import write
from lbm.relations.written import save_problem
from lbm.training.relational.folds import make_folds
from lbm.training.relational.induce import Setting, induce
from lbm.training.relational.scores import score
from lbm.views.entry import main
from tests.training.relational.test_induce import ORDER, coloured, ordered

SETTINGS = (Setting(1, 0.05, 0.01), Setting(1, 0.02, 0.1))
QUICK = {"hidden": 2, "settings": SETTINGS, "max_epochs": 8, "machines": 2}

FAST = ["--split", "3", "--hidden", "2", "--machines", "1", "--size", "1"]

WITHOUT_TORCH = """
import sys, json
sys.modules["torch"] = None
import lbm
found = lbm.load(sys.argv[1]).predict(sys.argv[2:])
print(json.dumps(found.log_odds.tolist()))
"""


def asked_without_torch(path, examples):
    """Return the log-odds that a new process without torch gives."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, path, *map(write, examples)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (coloured(), {}),
        (coloured(), {"features": "paper"}),
        (coloured(), {"knowledge": "colour(A, red) & 'weight(A,B), B >= 3' -> warm"}),
        (ordered(), {"knowledge": ORDER, "groups": "arguments", "machines": 1}),
    ],
)
def test_nine_folds_predict_the_tenth_as_it_was_scored(tmp_path, problem, options):
    options = {**QUICK, "folds": 3, "random_state": 1, **options}
    whole = induce(problem, **options)
    names = make_folds(problem, folds=3, groups=options.get("groups"), seed=1)
    one = induce(problem, only="2", keep=True, **options)
    assert one.folds == whole.folds[1:2]
    test = names == "2"
    save_relational(one.model, tmp_path / "m")
    examples = [example for example, here in zip(problem.examples, test, strict=True) if here]
    odds = asked_without_torch(tmp_path / "m", examples)
    assert odds == pytest.approx(whole.log_odds[test], abs=1e-4)
    assert score(odds, np.array(problem.labels)[test]) == whole.folds[1].scores
    assert one.model.examples == int((~test).sum())


def test_a_model_of_all_examples_is_the_mean_of_as_many_machines_as_score_a_fold():
    problem = coloured()
    found = induce(problem, folds=3, keep=True, **QUICK)
    alone = induce(problem, folds=3, **QUICK)
    assert alone.model is None
    assert (alone.rules, alone.folds) == (found.rules, found.folds)
    assert len(found.model.members) == found.folds[0].machines == 2
    table = found.columns.transform(problem.examples)
    first = found.model.members[0].log_odds(found.model.table(problem.background, problem.examples))
    assert first == pytest.approx(found.classifier.decision_function(table), abs=1e-4)


def test_rules_of_a_model_know_what_they_cover_and_how_often_they_are_right():
    problem = coloured()
    model = induce(problem, folds=3, keep=True, **QUICK).model
    table = dict(zip(model.columns, model.table(problem.background, problem.examples).T, strict=True))
    labels = np.array(problem.labels)
    for rule in model.rules:
        holds = np.ones(len(labels), dtype=bool)
        for text, truth in rule.body:
            holds &= table[text] == truth
        assert rule.covers == int(holds.sum())
        assert rule.right == int((labels[holds] == rule.positive).sum())


@pytest.fixture
def saved(capsys, whole):
    """A problem as files, its examples in two files, and a model of it, by command."""
    capsys.readouterr()
    return whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same, made once."""
    folder = tmp_path_factory.mktemp("saved")
    place, path = folder / "coloured", folder / "model"
    save_problem(coloured(), place)
    assert main(["induce", str(place), *FAST, "--only", "1", "--save", str(path)]) == 0
    return place, path


def test_predict_reads_examples_as_facts_as_poppers_file_and_as_a_problem(saved, tmp_path, capsys):
    place, path = saved
    assert main(["predict", str(path), str(place), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["accuracy"] == 1.0
    assert main(["predict", str(path), str(place / "pos.pl")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "example,warm,probability"
    assert all(",True," in line for line in lines[1:])
    (tmp_path / "exs.pl").write_text("pos(warm(o1)). neg(warm(o2)). neg(warm(o3)).")
    assert main(["predict", str(path), str(tmp_path / "exs.pl"), "--explain", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert [row["class"] for row in found["rows"]] == [True, False, True]
    assert found["rows"][0]["explanation"]["rules"]
    assert main(["predict", str(path), str(place / "neg.pl"), "--explain"]) == 0
    assert "warm(o0): no (" in capsys.readouterr().out


def test_predict_takes_background_for_examples_that_nobody_has_seen(saved, tmp_path, capsys):
    _, path = saved
    (tmp_path / "new.pl").write_text("warm(n1). warm(n2).")
    (tmp_path / "more.pl").write_text("colour(n1, red). colour(n2, blue). weight(n1, 2.0). weight(n2, 2.0).")
    out = tmp_path / "out.csv"
    order = ["predict", str(path), str(tmp_path / "new.pl"), "--bk", str(tmp_path / "more.pl")]
    assert main([*order, "-o", str(out)]) == 0
    assert [line.split(",")[1] for line in out.read_text().splitlines()] == ["warm", "True", "False"]
    assert capsys.readouterr().err == ""
    assert main(order[:3]) == 0
    assert "mentions 2 constants of examples nowhere, n1 of warm(n1) first" in capsys.readouterr().err


def test_rules_are_printed_as_prolog_and_as_a_theory(saved, tmp_path, capsys):
    _, path = saved
    assert main(["rules", str(path)]) == 0
    text = capsys.readouterr().out
    assert "warm(A) :-" in text
    assert "precision 100.00%" in text
    assert main(["rules", str(path), "-o", str(tmp_path / "rules.lbm")]) == 0
    assert "warm" in lbm.Theory.load(tmp_path / "rules.lbm").atoms
    assert main(["rules", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["target"] == "warm/1"
    assert found["rules"][0]["clause"].startswith(("warm(A) :- ", "not_warm(A) :- "))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.csv", "a,b\n1,2\n", "expected examples in a file of Prolog, or a problem, found the table"),
        ("e.pl", "cold(o1).", "e.pl:1: expected examples of warm/1 without variables, found cold(o1)"),
        ("e.pl", "warm(o1).\nwarm(X).", "e.pl:2: expected examples of warm/1"),
        ("e.pl", "warm(o1) :- true, true.", "e.pl:1: expected an example, a fact"),
        ("e.pl", "warm(o1", "e.pl:1:1: expected a full stop"),
    ],
)
def test_what_a_relational_model_cannot_predict_is_one_line(saved, tmp_path, capsys, name, text, words):
    (tmp_path / name).write_text(text)
    assert main(["predict", str(saved[1]), str(tmp_path / name)]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert words in error[0]


def test_a_background_by_its_place_that_has_changed_is_said(tmp_path, capsys):
    place, path = tmp_path / "coloured", tmp_path / "model"
    save_problem(coloured(), place)
    order = ["induce", str(place), *FAST, "--only", "2"]
    assert main([*order, "--save", str(path), "--background", "path"]) == 0
    assert "the model of all folds but 2" in capsys.readouterr().err
    (place / "bk.pl").write_text((place / "bk.pl").read_text() + "extra(o1).\n")
    assert main(["predict", str(path), str(place / "pos.pl")]) == 0
    assert "the background has changed since the model was trained" in capsys.readouterr().err


def test_a_model_of_tables_takes_no_background(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{k % 2},{k % 2}\n" for k in range(20)))
    table = str(tmp_path / "t.csv")
    assert (
        main(["train", table, "--target", "y", "--hidden", "1", "--epochs", "2", "-o", str(tmp_path / "m")])
        == 0
    )
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "t.csv"), "--bk", "x.pl"]) == 2
    assert "--bk is for relational models" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["alz_amine", "alz_acetyl", "alz_memory", "alz_toxic", "mutagenesis", "uwcse", "krk"]
)
def test_nine_folds_of_a_data_set_predict_the_tenth_as_it_was_printed(dataset, tmp_path, name):
    problem = load_problem(dataset(name), modes="modes_typed.pl" if name == "krk" else None)
    names = make_folds(problem, folds=10, seed=0)
    fold = min(names.tolist())
    found = induce(problem, only=fold, keep=True, settings=SETTINGS)
    save_relational(found.model, tmp_path / "m")
    test = names == fold
    examples = [example for example, here in zip(problem.examples, test, strict=True) if here]
    odds = asked_without_torch(tmp_path / "m", examples)
    assert score(odds, np.array(problem.labels)[test]) == found.folds[0].scores
