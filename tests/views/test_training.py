"""train, predict, rules and draw MODEL answer people and programs; bad input is one line and exit 2."""

# ruff: noqa: E402 - what needs torch is imported once it is known to be there

import csv
import io
import json
import random
import re
import signal
import subprocess
import sys
import threading
from math import exp

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from lbm.knowledge.theory import Theory
from lbm.machine.store import save
from lbm.machine.translate import translate
from lbm.training.gradients.descent import Epoch, Progress
from lbm.training.learners.classifier import LBMClassifier, TrainingRun
from lbm.training.storage.store import load_model, save_model
from lbm.views.commands import shared
from lbm.views.commands.train import describe, interrupts_noted
from lbm.views.entry import main

RULES = "bird & ~penguin -> flies\n3: penguin -> flies\n"  # the second is wrong


def birds(rows=40, seed=0):
    """A table in which birds fly unless they are penguins, and colours say nothing."""
    draw = random.Random(seed)
    lines = ["bird,penguin,colour,same,flies"]
    for _ in range(rows):
        bird, penguin = draw.randrange(2), draw.randrange(2)
        flies = "yes" if bird and not penguin else "no"
        lines.append(f"{bird},{penguin},{draw.choice(['red', 'green', ''])},1,{flies}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def lbm(capsys, monkeypatch):
    """Run a command in this process; return its status, its output and its lines on standard error."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return call


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a table, rules, and a model of them."""
    folder = tmp_path_factory.mktemp("birds")
    (folder / "birds.csv").write_text(birds())
    (folder / "rules.lbm").write_text(RULES)
    assert main([str(part) for part in order(folder, folder / "model")]) == 0
    return folder


def order(folder, model, *more):
    return [
        "train", folder / "birds.csv", "--target", "flies", "--knowledge", folder / "rules.lbm",
        "--hidden", 4, "--epochs", 6, "--batch-size", 20, "--learning-rate", 0.05, "-o", model, *more,
    ]  # fmt: skip


def refused(answer, *words):
    """Check that an answer is one line about what is wrong, and exit 2."""
    status, out, err = answer
    assert (status, out, len(err)) == (2, "", 1)
    assert err[0].startswith("lbm: ")
    assert "bug" not in err[0]
    for word in words:
        assert word in err[0]


# --- train ---------------------------------------------------------------------------------------


def test_train_says_what_it_read_how_it_went_and_what_became_of_the_rules(lbm, place, tmp_path):
    status, out, err = lbm(*order(place, tmp_path / "m"))
    assert (status, err) == (0, [])
    lines = out.splitlines()
    assert lines[0] == "40 rows, 4 columns, 4 atoms"
    assert lines[1] == "left out, since they hold one value or none: same"
    assert lines[2] == "flies: 2 classes: no, yes"
    assert lines[3].startswith("6 epochs in ")
    assert lines[3].endswith("ended by epochs")
    assert lines[4].startswith("validation accuracy ")
    assert lines[4].endswith(" of 40 rows not seen")
    assert lines[5] == "confidences of the rules, before and after:"
    assert lines[6].split()[0] == "5"
    assert "bird & ~penguin -> flies" in lines[6]
    assert re.search(r"\d+ rows, \d+% right, lift \d\.\d\d  bird", lines[6])
    assert "3: penguin -> flies" in lines[7]
    assert lines[8].startswith("rules about bins of columns that data brought: ")
    assert lines[-1] == f"written to {tmp_path / 'm'}"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]  # no checkpoint is left


def test_train_for_programs_says_what_the_model_says(lbm, place, tmp_path):
    status, out, _ = lbm(*order(place, tmp_path / "m", "--json"))
    facts, model = json.loads(out), load_model(tmp_path / "m")
    assert status == 0
    assert facts["classes"] == model.classes_.tolist() == ["no", "yes"]
    assert (facts["rows"], facts["columns"], facts["atoms"]) == (40, 4, len(model.atoms_))
    assert facts["left_out"] == ["same"]
    assert (facts["epochs"], facts["stopped"]) == (6, "epochs")
    assert facts["validation_rows"] == 40
    assert facts["learned"] == len(model.learned_)
    said = [(c["formula"], c["before"], c["after"], c["fixed"]) for c in facts["confidences"]]
    assert said == [(c.formula, c.initial, c.final, c.fixed) for c in model.confidences_]
    assert facts["broken"] == []
    assert (tmp_path / "m").read_bytes() == (place / "model").read_bytes()


def test_a_rule_that_data_contradict_falls_and_is_marked(lbm, tmp_path):
    (tmp_path / "birds.csv").write_text(birds(rows=400))
    (tmp_path / "rules.lbm").write_text("bird -> ~flies\n")
    status, out, _ = lbm(
        "train", tmp_path / "birds.csv", "--target", "flies", "--knowledge", tmp_path / "rules.lbm",
        "--hidden", 4, "--epochs", 10, "--batch-size", 100, "--learning-rate", 0.1, "--confidence", 2,
        "-o", tmp_path / "m",
    )  # fmt: skip
    (line,) = [line for line in out.splitlines() if "->" in line]
    confidence = load_model(tmp_path / "m").confidences_[0]
    assert status == 0
    assert confidence.final < confidence.initial == 2
    assert ("fallen" in line) == (confidence.final < 1)
    (accuracy,) = re.findall(r"validation accuracy ([\d.]+)% of 400 rows not seen", out)
    assert float(accuracy) > 90


def test_rows_that_break_hard_rules_are_counted_and_named(lbm, place, tmp_path):
    (tmp_path / "hard.lbm").write_text("bird -> flies\n")
    status, out, _ = lbm(
        "train", place / "birds.csv", "--target", "flies", "--knowledge", tmp_path / "hard.lbm", "--hard",
        "--epochs", 1, "-o", tmp_path / "m",
    )  # fmt: skip
    rows = list(csv.DictReader((place / "birds.csv").read_text().splitlines()))
    broken = [i + 1 for i, row in enumerate(rows) if row["bird"] == "1" and row["flies"] == "no"]
    shown = ", ".join(map(str, broken[:5])) + ", ..."
    assert status == 0
    assert f"broken by {len(broken)} rows ({shown}): bird -> flies" in out
    assert re.search(r"fixed  \d+ rows, \d+% right, lift \d\.\d\d  bird -> flies", out)


@pytest.mark.parametrize("kind", ["generative", "hybrid"])
def test_costs_have_names(lbm, place, tmp_path, kind):
    assert lbm(*order(place, tmp_path / "m", "--cost", kind, "--epochs", 2, "--batch-size", 16))[0] == 0
    model = load_model(tmp_path / "m")
    assert (model.cost, model.batch_size, len(model.history_)) == (kind, 16, 2)


def test_train_reads_parquet_and_standard_input(lbm, place, tmp_path):
    frame = pd.read_csv(place / "birds.csv")
    frame.to_parquet(tmp_path / "birds.parquet")
    for name, more in (("a", {}), ("b", {"stdin": (place / "birds.csv").read_bytes()})):
        arguments = order(place, tmp_path / name)
        arguments[1] = "-" if more else tmp_path / "birds.parquet"
        assert lbm(*arguments, **more)[0] == 0
        assert (tmp_path / name).read_bytes() == (place / "model").read_bytes()


def test_a_clock_ends_a_run(lbm, place, tmp_path):
    status, out, _ = lbm(*order(place, tmp_path / "m", "--epochs", 100_000, "--seconds", 0.05))
    assert status == 0
    assert "ended by seconds" in out or "ended by patience" in out


def test_the_learning_curve_is_a_picture(lbm, place, tmp_path):
    pytest.importorskip("matplotlib")
    assert lbm(*order(place, tmp_path / "m", "--epochs", 2, "--plot", tmp_path / "c.svg"))[0] == 0
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    refused(lbm(*order(place, tmp_path / "m", "--plot", tmp_path / "c.txt")), "ends in .svg, .png or .pdf")


# --- stopped and taken up ------------------------------------------------------------------------


@pytest.fixture
def pressed(monkeypatch):
    """Press Ctrl-C after so many batches."""

    def press(after):
        steps = TrainingRun.steps

        def counted(*arguments, **options):
            for number, progress in enumerate(steps(*arguments, **options), start=1):
                if number == after:
                    signal.raise_signal(signal.SIGINT)
                yield progress

        monkeypatch.setattr(TrainingRun, "steps", counted)

    return press


def test_an_interrupted_run_is_kept_and_goes_on_to_the_same_model(lbm, place, tmp_path, pressed, monkeypatch):
    pressed(8)
    status, out, err = lbm(*order(place, tmp_path / "m"))
    kept = tmp_path / "m.checkpoint"
    assert (status, out) == (130, "")
    assert err == [
        f"lbm: the run is kept in {kept}: the same command with --resume goes on",
        "lbm: interrupted",
    ]
    assert kept.exists()
    assert not (tmp_path / "m").exists()
    monkeypatch.undo()
    status, _, err = lbm(*order(place, tmp_path / "m", "--resume"))
    assert status == 0
    assert err[0].startswith(f"lbm: going on from {kept}: epoch ")
    assert (tmp_path / "m").read_bytes() == (place / "model").read_bytes()
    assert not kept.exists()


def test_a_run_that_does_not_fit_its_checkpoint_says_what_differs(lbm, place, tmp_path, pressed, monkeypatch):
    pressed(3)
    lbm(*order(place, tmp_path / "m"))
    monkeypatch.undo()
    refused(lbm(*order(place, tmp_path / "m", "--resume", "--hidden", 5)), "hidden 4, now 5")
    refused(lbm(*order(place, tmp_path / "m", "--resume", "--seed", 5)), "random_state 0, now 5")
    kept = tmp_path / "m.checkpoint"
    kept.write_bytes(kept.read_bytes()[:1000])
    refused(lbm(*order(place, tmp_path / "m", "--resume")), str(kept), "found")
    status, _, err = lbm(*order(place, tmp_path / "m", "--epochs", 1))
    assert (status, err) == (0, [f"lbm: warning: {kept} holds a run that did not end: it is replaced"])


def test_resume_without_a_checkpoint_begins(lbm, place, tmp_path):
    status, _, err = lbm(*order(place, tmp_path / "m", "--resume"))
    assert (status, err) == (0, [f"lbm: there is no {tmp_path / 'm.checkpoint'}: training begins anew"])
    assert (tmp_path / "m").read_bytes() == (place / "model").read_bytes()


def test_ctrl_c_is_noted_once_and_then_obeyed():
    with interrupts_noted() as pressed:
        assert not pressed()
        signal.raise_signal(signal.SIGINT)
        assert pressed()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    said = []

    def elsewhere():
        with interrupts_noted() as pressed:
            said.append(pressed())

    worker = threading.Thread(target=elsewhere)
    worker.start()
    worker.join()
    assert said == [False]


def test_a_terminal_sees_loss_validation_and_time_left_and_a_pipe_nothing(lbm, place, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "on_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, _, err = lbm(*order(place, tmp_path / "m"))
    shown = "\n".join(err)
    assert "epoch" in shown
    assert "loss" in shown
    assert "at most left" in shown
    history = [Epoch(1, 0.5, 0.25, 0.75, 1.0)]
    assert describe(Progress(None, epoch=1, history=history)) == "epoch 1, loss 0.5000, validation 75.00%"
    going = Progress(None, epoch=1, position=10, total=3.0, history=history)
    assert describe(going) == "epoch 2, loss 0.3000, validation 75.00%"
    assert describe(Progress(None)) == "epoch 0"


# --- predict -------------------------------------------------------------------------------------


def test_predict_prints_class_and_probability_as_the_model_says(lbm, place):
    status, out, err = lbm("predict", place / "model", place / "birds.csv")
    frame = pd.read_csv(place / "birds.csv")
    model = load_model(place / "model")
    columns = frame[list(model.layout_.columns)]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert [row["flies"] for row in rows] == model.predict(columns).tolist()
    assert [float(row["probability"]) for row in rows] == model.predict_proba(columns).max(axis=1).tolist()
    accuracy = model.score(columns, frame["flies"])
    assert err[-1] == f"lbm: accuracy {accuracy:.2%} of 40 rows with a known class"


def test_predict_needs_no_target_and_no_column_that_was_left_out(lbm, place, tmp_path):
    frame = pd.read_csv(place / "birds.csv")
    frame[["colour", "penguin", "bird"]].to_csv(tmp_path / "t.csv", index=False)
    status, out, err = lbm(
        "predict", place / "model", tmp_path / "t.csv", "--proba", "-o", tmp_path / "out.csv"
    )
    assert (status, out, err) == (0, "", [])
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(rows[0]) == ["flies", "p(flies = no)", "p(flies = yes)", "note"]
    assert all(float(row["p(flies = no)"]) + float(row["p(flies = yes)"]) == pytest.approx(1) for row in rows)
    status, again, _ = lbm(
        "predict", place / "model", "-", "--proba", stdin=(tmp_path / "t.csv").read_bytes()
    )
    assert again == (tmp_path / "out.csv").read_text()


def test_terms_of_an_explanation_add_up_to_the_log_odds(lbm, place, tmp_path):
    status, out, _ = lbm("predict", place / "model", place / "birds.csv", "--explain", "--json", "--proba")
    facts = json.loads(out)
    assert status == 0
    assert len(facts["rows"]) == 40
    model = load_model(place / "model")
    whole = pd.read_csv(place / "birds.csv")["colour"].notna().tolist()
    for row, complete in zip(facts["rows"], whole, strict=True):
        why = row["explanation"]
        assert why["kind"] == row["class"]
        total = why["bias"] + sum(term["value"] for term in why["terms"])
        assert total == pytest.approx(why["log_odds"], abs=1e-9)
        if complete:
            assert 1 / (1 + exp(-total)) == pytest.approx(row["probability"], abs=1e-6)
        assert row["probabilities"][model.classes_.tolist().index(row["class"])] == row["probability"]


def test_an_explanation_for_people_has_a_head_per_row_and_its_rules(lbm, place):
    status, out, _ = lbm("predict", place / "model", place / "birds.csv", "--explain")
    heads = [line for line in out.splitlines() if line.startswith("row ")]
    assert status == 0
    assert len(heads) == 40
    assert heads[0].startswith("row 1: flies = ")
    assert "bird & ~penguin -> flies" in out
    assert "bias" in out
    assert out.count(" by column: ") == out.count("rules that fire:") == 40
    assert out.count(" instead of ") + out.count("no change to ") >= 40
    bars = [line for line in out.splitlines() if "█" in line]
    assert {"bird", "~bird", "penguin", "~penguin"} <= {line.split()[-1] for line in bars}


def test_an_explanation_by_column_adds_up_and_a_model_without_background_says_nothing_of_columns(
    lbm, place, tmp_path
):
    status, out, _ = lbm("predict", place / "model", place / "birds.csv", "--explain", "--json")
    assert status == 0
    for row in json.loads(out)["rows"]:
        why = row["explanation"]
        total = why["columns"]["average"] + sum(share["value"] for share in why["columns"]["shares"])
        assert total == pytest.approx(why["log_odds"], abs=1e-9)
        assert why["rules"]
        assert why["change"]["kind"] == row["class"]
    rules = LBMClassifier.from_knowledge("a -> y", target="y", columns=["a", "b"])
    save_model(rules, tmp_path / "rules")
    (tmp_path / "t.csv").write_text("a,b\n1,0\n")
    status, out, err = lbm("predict", tmp_path / "rules", tmp_path / "t.csv", "--explain")
    assert (status, err) == (0, [])
    assert "by column" not in out
    assert (
        json.loads(lbm("predict", tmp_path / "rules", tmp_path / "t.csv", "--explain", "--json")[1])["rows"][
            0
        ]["explanation"]["columns"]
        is None
    )


def test_undecided_and_sampled_rows_are_said(lbm, tmp_path):
    rules = LBMClassifier.from_knowledge("a -> y", target="y", columns=["a", "b"])
    save_model(rules, tmp_path / "rules")
    (tmp_path / "t.csv").write_text("a,b\n1,0\n0,0\n")
    status, out, err = lbm("predict", tmp_path / "rules", tmp_path / "t.csv")
    assert status == 0
    assert [row["note"] for row in csv.DictReader(io.StringIO(out))] == ["", "undecided"]
    assert err == ["lbm: 1 of 2 rows undecided: nothing tells their classes apart"]
    names = [f"x{i}" for i in range(14)]
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (20, 14)), columns=names)
    made = LBMClassifier(hidden=2, max_epochs=1, random_state=0).fit(table, table["x0"].to_numpy())
    save_model(made, tmp_path / "m")
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + "," * 13 + "\n" + ",".join("1" * 14) + "\n")
    status, out, err = lbm("predict", tmp_path / "m", tmp_path / "t.csv", "--json")
    facts = json.loads(out)
    assert (status, facts["sampled"]) == (0, 1)
    assert [row["note"] for row in facts["rows"]] == ["sampled", ""]
    assert err == ["lbm: 1 of 2 rows sampled: too many of their values are missing"]


# --- rules and pictures --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["faithful", "confidence"])
def test_rules_are_a_theory_with_its_facts_as_comments(lbm, place, tmp_path, method):
    arguments = ["rules", place / "model", "--method", method, "--data", place / "birds.csv"]
    status, out, err = lbm(*arguments)
    assert (status, err) == (0, [])
    comments = [line for line in out.splitlines() if line.startswith("#")]
    assert any("fidelity" in line and "accuracy" in line for line in comments)
    assert any("literals" in line for line in comments)
    assert any("penguin -> flies" in line for line in comments)
    assert lbm(*arguments, "-o", tmp_path / "r.lbm") == (0, "", [])
    assert (tmp_path / "r.lbm").read_text() == out
    status, text, _ = lbm(*arguments, "--json")
    facts = json.loads(text)
    assert facts["method"] == method
    assert Theory.load(tmp_path / "r.lbm") == Theory.parse(facts["theory"]) == Theory.parse(out)
    assert len(facts["rules"]) <= 40


def test_rules_need_no_data(lbm, place):
    status, out, _ = lbm("rules", place / "model", "--max-rules", 3, "--json")
    facts = json.loads(out)
    assert (status, facts["drawn"], facts["accuracy"]) == (0, True, None)
    assert len(facts["rules"]) <= 3


def test_a_trained_model_is_drawn_as_its_rules_and_units(lbm, place, tmp_path):
    pytest.importorskip("matplotlib")
    status, out, _ = lbm("draw", place / "model", "-o", tmp_path / "m.svg", "--json")
    facts, network = json.loads(out), load_model(place / "model").network_
    assert status == 0
    assert (facts["visible"], facts["hidden"]) == (len(network.knowledge.columns) + 1, network.units)
    assert facts["summary"] is True
    assert "flies" in (tmp_path / "m.svg").read_text()


# --- bad input -----------------------------------------------------------------------------------


BAD_TABLES = {
    "empty": (b"", "expected a table, found an empty file"),
    "no rows": (b"a,y\n", "expected rows"),
    "twice": (b"a,a,y\n1,0,1\n", "found 'a' twice"),
    "ragged": (b"a,y\n1,0\n1\n", "expected 2 cells in every line, found 1 in line 3"),
    "latin": (b"a,y\n1,\xe9\n", "expected UTF-8 text"),
    "target": (b"a,yy\n1,0\n", "did you mean 'yy'?"),
    "one class": (b"a,y\n1,0\n0,0\n", "expected at least 2 classes"),
    "infinite": (b"a,y\n1,0\n-inf,1\n", "infinite"),
    "many classes": (b"a,y\n1,0.25\n0,0.5\n", "expected classes in 'y'"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_line(lbm, tmp_path, name):
    content, message = BAD_TABLES[name]
    (tmp_path / "t.csv").write_bytes(content)
    refused(lbm("train", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m"), message)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("rules", "more", "message"),
    [
        ("birt -> flies", [], "no atom 'birt' in this table; did you mean 'bird'?"),
        ("colour -> flies", [], "knowledge mentions column 'colour'"),
        ("bird ->", [], "rules.lbm:1:8: expected a formula"),
        ("bird & flies\nbird -> ~flies", ["--hard"], "these cannot"),
    ],
)
def test_bad_rules_are_one_line(lbm, place, tmp_path, rules, more, message):
    (tmp_path / "rules.lbm").write_text(rules)
    arguments = order(place, tmp_path / "m", *more)
    arguments[5] = tmp_path / "rules.lbm"
    refused(lbm(*arguments), message)


def test_a_model_in_no_directory_is_refused_before_anything_is_read(lbm, place, tmp_path):
    for target, reason in ((tmp_path / "none" / "m", "there is no directory"), (tmp_path, "is a directory")):
        refused(lbm("train", tmp_path / "no.csv", "--target", "y", "-o", target), "cannot write", reason)
        refused(lbm("predict", place / "model", place / "birds.csv", "-o", target), reason)
        refused(lbm("rules", place / "model", "-o", target), reason)


def test_what_is_no_model_and_tables_that_do_not_fit_are_one_line(lbm, place, tmp_path):
    table = place / "birds.csv"
    refused(
        lbm("predict", table, table), "expected an lbm-model (a safetensors file), found a file that begins"
    )
    refused(lbm("rules", tmp_path / "none"), "No such file or directory")
    save(translate(Theory(["a -> b"])), tmp_path / "machine")
    refused(lbm("predict", tmp_path / "machine", table), "found a machine")
    (tmp_path / "t.csv").write_text("bird,pengiun,colour\n1,0,red\n")
    refused(lbm("predict", place / "model", tmp_path / "t.csv"), "did you mean 'pengiun'?")
    (tmp_path / "t.csv").write_text("bird,penguin,colour\n7,0,red\n")
    refused(lbm("predict", place / "model", tmp_path / "t.csv"), "column 'bird'", "7")
    refused(lbm("rules", place / "model", "--data", tmp_path / "t.csv"), "column 'bird'")
    refused(lbm("train", "-", "--target", "y", "--knowledge", "-", "-o", tmp_path / "m"), "not both")


@pytest.mark.parametrize(
    ("package", "name", "question"),
    [
        ("torch", "torch", ["train", "t.csv", "--target", "y", "-o", "m"]),
        ("sklearn", "scikit-learn", ["predict", "m", "t.csv"]),
        ("pandas", "pandas", ["rules", "m"]),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(lbm, monkeypatch, package, name, question):
    monkeypatch.setitem(sys.modules, package, None)
    refused(lbm(*question), f"needs the package {name}", "pip install 'logical-boltzmann[train]'")


def test_help_and_what_tells_files_apart_do_without_torch():
    """`lbm draw` asks whether a file is a model: a machine must be drawn where torch is not installed."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('torch', 'sklearn', 'pandas'))); "
        "import lbm.machine.files, lbm.training.storage.kinds; "
        "import lbm.views.commands.draw; from lbm.views.entry import main; "
        "assert main(['--help']) == main(['train', '--help']) == 0; "
        "assert main(['train', 'a.csv', '--target', 'y', '-o', 'm']) == 2"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("lbm: lbm train needs the package torch, which is not installed: pip install ")


# --- names and odd cells -------------------------------------------------------------------------


def sugars(folder, odd):
    lines = ["glu,state"] + [f"{60 + i},{'ill' if i > 100 else 'well'}" for i in range(200)]
    lines[18] = f"{odd},well"
    (folder / "sugar.csv").write_text("\n".join(lines) + "\n")
    return folder / "sugar.csv"


def test_an_odd_cell_in_a_file_is_named_and_may_be_read_as_missing(lbm, tmp_path):
    data, model = sugars(tmp_path, "?"), tmp_path / "m"
    train = ["train", data, "--target", "state", "--hidden", 2, "--epochs", 8, "-o", model]
    status, _, err = lbm(*train)
    assert status == 0
    (warned,) = [line for line in err if "odd" in line]
    assert "column 'glu' holds numbers, but one cell is something else, such as '?' in row 17" in warned
    assert "--odd-cells missing" in warned
    status, _, err = lbm(*train, "--odd-cells", "missing")
    assert (status, [line for line in err if "odd" in line]) == (0, [])
    status, out, err = lbm("predict", model, data)
    assert (status, out.count("\n")) == (0, 201)


def test_rules_in_files_say_cuts_and_classes_and_print_so(lbm, tmp_path):
    data, model, rules = sugars(tmp_path, 77), tmp_path / "m", tmp_path / "r.lbm"
    rules.write_text("'glu > 150' -> 'state = ill'\n'100 < glu <= 120' -> 'state = well'\n")
    train = [
        "train",
        data,
        "--target",
        "state",
        "--hidden",
        2,
        "--epochs",
        3,
        "-o",
        model,
        "--knowledge",
        rules,
    ]
    status, out, _ = lbm(*train)
    assert status == 0
    assert "'glu > 150' -> ~state" in out
    assert "'100 < glu <= 120' -> state" in out
    rules.write_text("'gluc > 150' -> 'state = ill'\n")
    refused(lbm(*train), "no atom 'gluc > 150' in this table; did you mean 'glu")
    rules.write_text("'glu > 150' -> 'state = il'\n")
    refused(lbm(*train), "no atom 'state = il' in this table; did you mean 'state = ill'")
