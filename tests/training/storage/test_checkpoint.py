"""Checkpoints: a run that was killed and taken up ends bit for bit as one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.errors import LbmError, MachineFileError
from lbm.training.data.examples import read_examples
from lbm.training.data.files import open_table
from lbm.training.gradients.descent import begin
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.storage import checkpoint
from lbm.training.storage.checkpoint import load_checkpoint, prepare, save_checkpoint, train
from lbm.training.storage.store import load_model, model_bytes
from lbm.views.entry import main
from tests.training.storage.test_store import signed, taken_apart

RULES = "a & ~b -> y\n2: b -> ~y\n"


def table_text(rows=24, seed=0, gaps=True):
    """A CSV table of three 0/1 columns, a column of categories and a noisy target."""
    draw = random.Random(seed)
    lines = ["a,b,c,colour,y"]
    for _ in range(rows):
        a, b, c = (draw.randrange(2) for _ in range(3))
        shown = "" if gaps and draw.random() < 0.1 else b
        noisy = (a and not b) != (draw.random() < 0.1)
        lines.append(f"{a},{shown},{c},{draw.choice(['red', 'green', 'blue'])},{int(noisy)}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text(table_text())
    return path


GIVEN = {
    "knowledge": RULES, "hidden": 3, "max_epochs": 4, "batch_size": 8, "target": "y", "random_state": 5
}  # fmt: skip
SETTINGS = {
    "discriminative": {},
    "hybrid, persistent chains": {"cost": "hybrid", "persistent": True, "alpha": 0.5},
    "generative, free literals": {"cost": "generative", "literals": "free", "dtype": "float64"},
    "conjectures": {"knowledge": "b & ~a -> y\na & b -> y\nc & ~b -> ~y", "conjectures": 3},
}


def new_run(path, **options):
    classifier = LBMClassifier(**(GIVEN | options))
    examples = read_examples(open_table(path), "y", mentioned=["a", "b", "y"], cuts=classifier.cuts)
    return prepare(classifier, examples)


def ended(run, progress):
    assert train(run, progress)
    return model_bytes(run.finish(progress))


@cache
def undisturbed(path, name):
    run = new_run(path, **SETTINGS[name])
    return ended(run, begin(run.classifier.network_))


# --- taken up ------------------------------------------------------------------------------------


@settings(max_examples=6)
@given(st.sampled_from(list(SETTINGS)), st.lists(st.integers(1, 9), max_size=3))
def test_a_run_left_at_any_batches_ends_as_one_that_was_not(tmp_path_factory, table, name, stops):
    """Each stop is after so many more batches; the run is then made anew and taken up."""
    path = tmp_path_factory.mktemp("run") / "m.checkpoint"
    run = new_run(table, **SETTINGS[name])
    progress = begin(run.classifier.network_)
    for count in stops:
        left = iter([False] * (count - 1) + [True])
        if not train(run, progress, path, stop=lambda left=left: next(left)):
            run = new_run(table, **SETTINGS[name])
            progress = load_checkpoint(run, path)
    assert ended(run, progress) == undisturbed(table, name)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_file_is_trained_on_as_its_frame_is(table, name):
    frame = pd.read_csv(table)
    fitted = LBMClassifier(**(GIVEN | SETTINGS[name])).fit(frame.drop(columns="y"), frame["y"])
    assert model_bytes(fitted) == undisturbed(table, name)


@pytest.mark.parametrize("cost", ["discriminative", "hybrid"])
def test_the_command_and_the_estimator_end_with_the_same_weights(tmp_path, cost):
    """400 rows: some are put aside, and the best epoch is kept."""
    (tmp_path / "t.csv").write_text(table_text(rows=400))
    (tmp_path / "rules.lbm").write_text(RULES)
    arguments = [
        "train",
        str(tmp_path / "t.csv"),
        "--target",
        "y",
        "--knowledge",
        str(tmp_path / "rules.lbm"),
    ]
    arguments += ["--hidden", "3", "--epochs", "5", "--cost", cost, "--conjectures", "2", "--hard"]
    assert main([*arguments, "--seed", "3", "-o", str(tmp_path / "m")]) == 0
    frame = pd.read_csv(tmp_path / "t.csv")
    options = {"hidden": 3, "max_epochs": 5, "cost": cost, "conjectures": 2, "hard": True}
    fitted = LBMClassifier(knowledge=tmp_path / "rules.lbm", target="y", random_state=3, **options)
    fitted.fit(frame.drop(columns="y"), frame["y"])
    assert fitted.history_[0].validation_cost is not None
    assert model_bytes(fitted) == (tmp_path / "m").read_bytes()


def test_checkpoints_are_written_after_every_epoch_and_within_long_ones(table, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(
        checkpoint, "save_checkpoint", lambda run, p, path: saved.append((p.epoch, p.position))
    )
    for seconds, wanted in (
        (1000.0, [(1, 0), (2, 0)]),
        (0.0, [(0, 8), (0, 16), (1, 0), (1, 8), (1, 16), (2, 0)]),
    ):
        saved.clear()
        run = new_run(table, max_epochs=2)
        train(run, begin(run.classifier.network_), tmp_path / "c", every_seconds=seconds)
        assert saved == wanted


def test_a_larger_budget_may_be_given_when_a_run_is_taken_up(table, tmp_path):
    run = new_run(table, max_epochs=2)
    progress = begin(run.classifier.network_)
    assert train(run, progress, tmp_path / "c")
    assert progress.finished == "epochs"
    save_checkpoint(run, progress, tmp_path / "c")
    run = new_run(table, max_epochs=4)
    assert len(load_checkpoint(run, tmp_path / "c").history) == 2
    longer = load_model_of(ended(run, load_checkpoint(run, tmp_path / "c")), tmp_path)
    whole = load_model_of(undisturbed(table, "discriminative"), tmp_path)
    assert longer.history_ == whole.history_
    assert torch.equal(longer.network_.weights, whole.network_.weights)


def load_model_of(content, folder):
    (folder / "m").write_bytes(content)
    return load_model(folder / "m")


# --- what does not fit ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(table, tmp_path_factory):
    """A checkpoint in the middle of the second epoch, with persistent chains."""
    path = tmp_path_factory.mktemp("kept") / "m.checkpoint"
    run = new_run(table, **SETTINGS["hybrid, persistent chains"])
    left = iter([False] * 3 + [True])
    assert not train(run, begin(run.classifier.network_), path, stop=lambda: next(left))
    return path


def like_kept(path, **options):
    return new_run(path, **(SETTINGS["hybrid, persistent chains"] | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 4}, "found one with hidden 3, now 4"),
        ({"learning_rate": 0.5}, "found one with learning_rate 0.01, now 0.5"),
        ({"random_state": 6}, "found one with random_state 5, now 6"),
        ({"knowledge": "a -> y"}, "found one with other knowledge"),
        ({"dtype": "float64"}, "found one with dtype 'float32', now 'float64'"),
        ({"batch_size": 4}, "found one with batch_size 8, now 4"),
        ({"alpha": 0.25}, "found one with alpha 0.5, now 0.25"),
    ],
)
def test_a_checkpoint_of_other_options_says_which(table, kept, options, message):
    with pytest.raises(MachineFileError) as caught:
        load_checkpoint(like_kept(table, **options), kept)
    assert message in str(caught.value)
    assert "give the same data and options, or begin anew without --resume" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("0,1,0", "1,1,0", 1), "other values in the table"),
        (lambda text: text + "0,0,0,red,0\n", "rows 24, now 25"),
        (lambda text: text.replace("c,colour", "d,colour"), "other columns: ['c'] instead of ['d']"),
        (lambda text: text.replace("blue", "black"), "another encoder"),
    ],
)
def test_a_checkpoint_of_other_data_says_what_differs(kept, tmp_path, change, message):
    (tmp_path / "t.csv").write_text(change(table_text()))
    with pytest.raises(MachineFileError) as caught:
        load_checkpoint(like_kept(tmp_path / "t.csv"), kept)
    assert message in str(caught.value)


def test_another_number_of_threads_is_said_and_no_error(table, kept, tmp_path):
    _, document, arrays = taken_apart(kept.read_bytes())
    document["run"]["threads"] += 7
    (tmp_path / "c").write_bytes(signed(document, arrays, kind="lbm-checkpoint"))
    said = []
    assert load_checkpoint(like_kept(table), tmp_path / "c", warn=said.append).epoch == 1
    assert len(said) == 1
    assert "threads" in said[0]
    assert "the result may differ in its last digits" in said[0]


def test_a_checkpoint_that_is_cut_or_damaged_is_one_clear_error(table, kept, tmp_path):
    content, run = kept.read_bytes(), like_kept(table)
    pieces = [content[:end] for end in (0, 7, 9, 200, len(content) // 2, len(content) - 1)]
    pieces += [
        content[:place] + bytes([content[place] ^ 32]) + content[place + 1 :]
        for place in range(8, len(content), 331)
    ]
    for piece in pieces:
        (tmp_path / "c").write_bytes(piece)
        with pytest.raises(LbmError) as caught:
            load_checkpoint(run, tmp_path / "c")
        assert "\n" not in str(caught.value)


FORGED = {
    "position": (lambda d, a: d["state"].update(position=25), "expected a position up to"),
    "epoch": (lambda d, a: d["state"].update(epoch=7), "expected 7 epochs in the history"),
    "negative": (lambda d, a: d["state"].update(updates=-1), "expected updates from 0 up, found -1"),
    "text": (lambda d, a: d["state"].update(stale="1"), "expected stale of type int, found '1'"),
    "end": (lambda d, a: d["state"].update(finished="soon"), "expected a reason to stop, found 'soon'"),
    "missing": (lambda d, a: d["state"].pop("total"), "found no total"),
    "shape": (lambda d, a: a.update({"first.weights": a["first.weights"].T}), "expected first.weights"),
    "moment": (lambda d, a: a.pop("second.label_bias"), "found no second.label_bias"),
    "nan": (lambda d, a: a["parameter.weights"].fill(np.nan), "expected finite numbers in parameter.weights"),
    "chains": (lambda d, a: a.pop("chains.kinds"), "found one without the other"),
    "classes": (lambda d, a: a["chains.kinds"].fill(2), "expected numbers of 2 classes in chains.kinds"),
    "states": (lambda d, a: a.update({"chains.x": a["chains.x"][:, :1]}), "expected chains.x"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_with_a_right_checksum_is_refused_in_words(name, table, kept, tmp_path):
    forge, message = FORGED[name]
    _, document, arrays = taken_apart(kept.read_bytes())
    arrays = {key: array.copy() for key, array in arrays.items()}
    forge(document, arrays)
    (tmp_path / "c").write_bytes(signed(document, arrays, kind="lbm-checkpoint"))
    with pytest.raises(MachineFileError) as caught:
        load_checkpoint(like_kept(table), tmp_path / "c")
    assert message in str(caught.value)


def test_a_model_is_no_checkpoint(table, tmp_path):
    (tmp_path / "c").write_bytes(undisturbed(table, "discriminative"))
    with pytest.raises(MachineFileError, match="expected an lbm-checkpoint, found a trained model"):
        load_checkpoint(like_kept(table), tmp_path / "c")


# --- killed --------------------------------------------------------------------------------------

NURSERY = """
import contextlib, io, json, os, pathlib, signal, sys, time
from lbm.views.entry import main

def run(arguments, die):
    replace, calls = pathlib.Path.replace, [0]
    def dying(self, target):
        calls[0] += 1
        if die and calls[0] == die["write"]:
            if die["when"] == "half":
                with self.open("r+b") as file:
                    file.truncate(self.stat().st_size // 2)
            if die["when"] == "after":
                replace(self, target)
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(self, target)
    pathlib.Path.replace = dying
    return main(arguments)

order = json.loads(sys.stdin.readline())
with contextlib.redirect_stdout(io.StringIO()):
    status = main(order["arguments"])  # what is imported now is there in every child
print(status, flush=True)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        os._exit(run(order["arguments"], order["die"]))
    if order["kill_after"] is not None:
        time.sleep(order["kill_after"])
        os.kill(child, signal.SIGKILL)  # its number is nobody else's until its status is read
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """A process that has everything imported and forks a child for each command: no child waits for torch."""

    def __init__(self, warm):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([sys.executable, "-c", NURSERY], env=environment, **pipes)
        assert self.run(warm) == 0

    def run(self, arguments, *, kill_after=None, die=None):
        """Return the exit status of ``lbm`` with these arguments, killed after some seconds."""
        order = {"arguments": arguments, "kill_after": kill_after, "die": die}
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def close(self):
        self.process.kill()  # it has nothing to put in order
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def nursery(table, tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    made = Nursery(command(table, tmp_path_factory.mktemp("warm") / "m", 0))
    yield made
    made.close()


def command(table, model, epochs, *more):
    return [
        "train", str(table), "--target", "y", "--hidden", "3", "--epochs", str(epochs), "--cost", "hybrid",
        "--batch-size", "4", "--seed", "3", "-o", str(model), *more,
    ]  # fmt: skip


def kill_and_resume(nursery, folder, *, rows, epochs, kills, seed):
    """Kill a run at so many random moments, take it up each time, and compare the file it ends with."""
    draw = random.Random(seed)
    (folder / "t.csv").write_text(table_text(rows=rows, gaps=False))
    whole, broken = folder / "whole", folder / "broken"
    begun = time.monotonic()
    assert nursery.run(command(folder / "t.csv", whole, epochs)) == 0
    length = time.monotonic() - begun
    hit = 0
    again = command(folder / "t.csv", broken, epochs, "--resume")
    while hit < kills:
        status = nursery.run(again, kill_after=draw.uniform(0, length / 3))
        if status == 0:  # the end came first: compare, and begin anew
            assert broken.read_bytes() == whole.read_bytes()
            broken.unlink()
            continue
        assert status == -signal.SIGKILL
        hit += 1
    assert nursery.run(again) == 0
    assert broken.read_bytes() == whole.read_bytes()
    assert not Path(f"{broken}.checkpoint").exists()


def test_killed_at_ten_random_moments_it_ends_with_the_same_file(nursery, tmp_path):
    kill_and_resume(nursery, tmp_path, rows=12, epochs=30, kills=10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_often_in_a_longer_run_it_ends_with_the_same_file(nursery, tmp_path, seed):
    kill_and_resume(nursery, tmp_path, rows=60, epochs=60, kills=20, seed=seed)


def test_killed_while_it_writes_it_ends_with_the_same_file(nursery, tmp_path):
    """The third write kills it: with half a file written, before it is moved to its place, or after."""
    (tmp_path / "t.csv").write_text(table_text(rows=12, gaps=False))
    assert nursery.run(command(tmp_path / "t.csv", tmp_path / "whole", 4)) == 0
    for when in ("half", "before", "after"):
        again = command(tmp_path / "t.csv", tmp_path / when, 4, "--resume")
        assert nursery.run(again, die={"write": 3, "when": when}) == -signal.SIGKILL
        assert nursery.run(again) == 0
        assert (tmp_path / when).read_bytes() == (tmp_path / "whole").read_bytes()
