"""The commands about relational problems: what they print, what they write, and how they fail."""

import json

import pytest

from lbm.datasets import write_problem
from lbm.training.relational import induce
from lbm.training.relational.scores import Scores
from lbm.views.entry import main


@pytest.fixture
def trains(tmp_path):
    """The ten trains as files."""
    write_problem("trains", tmp_path / "trains")
    return tmp_path / "trains"


def test_saturate_writes_a_line_for_every_example(trains, tmp_path, capsys):
    out = tmp_path / "clauses.tsv"
    assert main(["saturate", str(trains), "-o", str(out)]) == 0
    header, *rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert header == ["example", "label", "fold", "body_literals"]
    assert [row[1] for row in rows] == ["pos"] * 5 + ["neg"] * 5
    assert rows[0][0] == "eastbound(east1)"
    assert "closed(C)" in rows[0][3].split(" ")
    assert "10 clauses" in capsys.readouterr().out


def test_a_problem_that_comes_with_the_package_needs_no_files(capsys):
    assert main(["saturate", "trains", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["positive"] == found["negative"] == 5
    assert found["depth"] == 3
    assert len(found["clauses"]) == 10


def test_saturate_prints_without_an_output_file(trains, capsys):
    assert main(["saturate", str(trains)]) == 0
    assert capsys.readouterr().out.count("\n") == 11


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("bk.pl", "long(", "bk.pl:1"),
        ("bk.pl", None, "bk.pl"),
        ("pos.pl", "", "positive example"),
        ("neg.pl", "eastbound(east1).", "positive one too"),
        ("modes.pl", ":- modeh(1, eastbound(+train)).", "body mode"),
        ("bk.pl", "long(a).\nlong(C) :- long(C, b).", "bk.pl:2"),
        ("folds.tsv", "example\tlabel\tfold\neastbound(nobody)\tpos\t1\n", "folds.tsv:2"),
        ("bk.pl", "has_car(T, C) :- has_car(T, C).\nlong(c).", "has_car"),
    ],
)
def test_bad_files_are_one_line_and_status_2(trains, tmp_path, capsys, file, text, said):
    if text is None:
        (trains / file).unlink()
    else:
        (trains / file).write_text(text)
    out = tmp_path / "clauses.tsv"
    assert main(["saturate", str(trains), "-o", str(out)]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert said in error[-1]
    assert "Traceback" not in error[-1]
    assert not out.exists()


def test_a_mode_without_clauses_is_a_warning_that_names_its_line(trains, capsys):
    modes = trains / "modes.pl"
    lines = (
        modes.read_text()
        + ":- modeb(1, painted(+car, #colour)).\n:- determination(eastbound/1, painted/2).\n"
    )
    modes.write_text(lines)
    assert main(["saturate", str(trains)]) == 0
    warning = capsys.readouterr().err
    assert "warning: painted/2 has no clauses" in warning
    assert f"modes.pl:{lines.count(chr(10)) - 1}" in warning


def test_alephs_files_are_found_by_their_common_name(trains, tmp_path, capsys, monkeypatch):
    files = {name: (trains / f"{name}.pl").read_text() for name in ("bk", "pos", "neg", "modes")}
    (tmp_path / "train.b").write_text(files["modes"] + files["bk"])
    (tmp_path / "train.f").write_text(files["pos"])
    (tmp_path / "train.n").write_text(files["neg"])
    monkeypatch.chdir(tmp_path)
    assert main(["saturate", str(trains)]) == 0
    first = capsys.readouterr().out
    assert main(["saturate", "train"]) == 0
    assert capsys.readouterr().out == first


def test_convert_writes_a_problem_as_four_files(trains, tmp_path, capsys):
    out = tmp_path / "ours"
    assert main(["convert", str(trains), "-o", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["files"]) == sorted(one.name for one in out.iterdir())
    assert (found["positive"], found["negative"]) == (5, 5)
    assert main(["saturate", str(out)]) == 0
    written = capsys.readouterr().out
    assert main(["saturate", str(trains)]) == 0
    assert capsys.readouterr().out == written


@pytest.mark.parametrize("options", [[], ["-o", "-"], ["-o", "x", "--to", "cnf"]])
def test_a_problem_is_converted_to_a_directory_only(trains, capsys, options):
    assert main(["convert", str(trains), *options]) == 2
    assert "problem" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_an_error(capsys, tmp_path):
    assert main(["saturate", str(tmp_path / "nothing")]) == 2
    assert "bk.pl" in capsys.readouterr().err


def test_induce_prints_folds_means_and_rules_and_saves_a_model(trains, tmp_path, capsys):
    out = tmp_path / "model"
    order = ["induce", str(trains), "--split", "2", "--hidden", "2", "--features", "paper", "--depth", "1"]
    assert main([*order, "--save", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [fold["examples"] for fold in found["folds"]] == [5, 5]
    mean = sum(fold["accuracy"] for fold in found["folds"]) / 2
    assert found["accuracy"]["mean"] == pytest.approx(mean, abs=1e-6)
    assert main(["rules", str(out)]) == 0
    assert "eastbound" in capsys.readouterr().out


def test_what_rules_over_relations_add_is_said_beside_the_scores():
    def found(share):
        with_rules, alone = Scores(0.9, 0.9, 0.9, 0.9), Scores(0.7, 0.7, 0.7, 0.7)
        tested = induce.Tested(
            "1", 10, with_rules, alone, induce.Setting(size=2, learning_rate=0.01, l2=0.05), 4, share
        )
        return induce.Induction("drugs", "comparison", (tested,), None, None, None, ())

    (said,) = [line for line in found(0.25).lines() if "without them" in line]
    assert "weigh 25% of the score" in said
    assert said.endswith("without them accuracy is 70.00")
    assert found(0.25).facts()["folds"][0]["accuracy_without_rules"] == 0.7
    assert not any("without them" in line for line in found(0.0).lines())


def test_what_was_induced_says_what_induce_prints(monkeypatch, capsys):
    scores = Scores(0.8, 0.7, 0.6, float("nan"))
    fold = induce.Tested("1", 10, scores, scores, induce.GRID[0], 3, machines=2)
    found = induce.Induction("trains", "paper", (fold, fold), None, None, None, ("1: a -> b",))
    monkeypatch.setattr(induce, "induce", lambda *_, **__: found)
    assert main(["induce", "trains"]) == 0
    assert capsys.readouterr().out.splitlines() == found.lines() == str(found).splitlines()
    assert main(["induce", "trains", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: told[name] for name in found.facts()} == found.facts()
    assert told["auc_pr"] == {"mean": None, "deviation": None}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--split", "11"], "from 2 folds up to one for each of 10 groups, got 11"),
        (["--group-by", "nothing.tsv"], "nothing.tsv"),
        (["--knowledge", "nothing.lbm"], "nothing.lbm"),
        (["--features", "letters"], "letters"),
        (["--save", "nowhere/model"], "there is no directory"),
    ],
)
def test_bad_options_of_induce_are_one_line_and_status_2(trains, capsys, options, said):
    assert main(["induce", str(trains), *options]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert said in error[0]


def test_knowledge_about_a_predicate_that_is_not_there_is_an_error_that_suggests_one(
    trains, tmp_path, capsys
):
    rules = tmp_path / "rules.lbm"
    rules.write_text("'has_car(A,B), shortt(B)' -> eastbound")
    assert main(["induce", str(trains), "--knowledge", str(rules), "--split", "2", "--hidden", "2"]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert "'shortt/1'" in error[0]
    assert "did you mean 'short/1'?" in error[0]
