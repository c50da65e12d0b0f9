"""Pieces are measured once, kept at once, and whatever stops a run, it ends with the same numbers."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest

from lbm.trials import parts
from lbm.trials.part import Piece
from lbm.trials.parts import PARTS, part_named
from lbm.trials.runner import BUDGET, run_part
from lbm.trials.storage import check_row, piece_path, write_csv
from tests.trials import slow_part
from tests.trials.slow_part import is_time

ROOT = Path(__file__).parents[2]

RUN = """
import sys
from pathlib import Path
from lbm.trials import parts
from lbm.trials.runner import run_part
from lbm.trials.storage import write_csv
from tests.trials import slow_part
parts.PARTS["slow"] = "tests.trials.slow_part"
folder = Path(sys.argv[1])
write_csv(folder / "slow.csv", slow_part, run_part(slow_part, folder).rows)
"""


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setitem(parts.PARTS, "slow", "tests.trials.slow_part")
    return slow_part


def timeless(path):
    """Return the table in a file without its times."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{k: v for k, v in row.items() if not is_time(k)} for row in csv.DictReader(file)]


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_table(slow, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    whole.mkdir()
    stopped.mkdir()
    write_csv(whole / "slow.csv", slow, run_part(slow, whole).rows)

    order = [sys.executable, "-c", RUN, str(stopped)]
    run = subprocess.Popen(order, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        until = time.monotonic() + 60
        while len(list(stopped.rglob("*.json"))) < 3 and run.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    before = {path: path.read_bytes() for path in stopped.rglob("*.json")}
    assert 3 <= len(before) < slow.PIECES
    assert not (stopped / "slow.csv").exists()

    outcome = run_part(slow, stopped)
    write_csv(stopped / "slow.csv", slow, outcome.rows)
    assert timeless(stopped / "slow.csv") == timeless(whole / "slow.csv")
    assert (outcome.found, outcome.measured) == (len(before), slow.PIECES - len(before))
    assert all(path.read_bytes() == data for path, data in before.items())  # times included


@pytest.mark.slow
def test_the_command_itself_goes_on_after_it_was_killed(tmp_path):
    def order(folder):
        return [sys.executable, "-m", "lbm", "reproduce", "coverage", "sat", "--quick", "--out", str(folder)]

    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert subprocess.run(order(whole), check=False, capture_output=True).returncode == 0
    run = subprocess.Popen(order(stopped), stdout=subprocess.DEVNULL)
    while len(list(stopped.rglob("pieces/**/*.json"))) < 5 and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert subprocess.run(order(stopped), check=False, capture_output=True).returncode == 0
    for name in ("coverage.quick.csv", "sat.quick.csv"):
        assert timeless(stopped / name) == timeless(whole / name)


def test_what_does_not_fit_into_the_budget_is_named_and_not_run(slow, tmp_path):
    outcome = run_part(slow, tmp_path, seconds=0.5)  # each piece is said to cost a second
    assert outcome.rows == ()
    assert list(outcome.missing.values()) == [BUDGET] * slow.PIECES
    assert len(run_part(slow, tmp_path, seconds=1.02).rows) == 1
    assert not run_part(slow, tmp_path).missing


def test_a_piece_that_fails_is_named_and_the_others_are_done(slow, tmp_path, monkeypatch):
    numbers = (1, 100, 2)
    monkeypatch.setattr(slow, "pieces", lambda quick: [Piece({"number": n}, 1.0) for n in numbers])
    outcome = run_part(slow, tmp_path)
    assert [row["number"] for row in outcome.rows] == [1, 2]
    assert outcome.missing == {"100": "failed: ArithmeticError: no square"}
    assert run_part(slow, tmp_path).missing == outcome.missing  # it is tried again


@pytest.mark.parametrize("damage", ["cut", "revision", "column", "key"])
def test_a_piece_that_is_damaged_or_of_another_revision_is_measured_again(slow, tmp_path, damage):
    run_part(slow, tmp_path, quick=True)
    path = piece_path(tmp_path, slow, slow.pieces(True)[1])
    found = json.loads(path.read_text(encoding="utf-8"))
    if damage == "revision":
        found["revision"] = 0
    elif damage == "column":
        del found["rows"][0]["word"]
    elif damage == "key":
        found["key"]["number"] = 7
    text = json.dumps(found)
    path.write_text(text[: len(text) // 2] if damage == "cut" else text, encoding="utf-8")
    outcome = run_part(slow, tmp_path, quick=True)
    assert (outcome.measured, outcome.found) == (1, 2)
    assert [row["number"] for row in outcome.rows] == [0, 1, 2]


def test_long_pieces_are_read_from_the_run_that_was_kept_unless_asked_for_again(slow, tmp_path, monkeypatch):
    kept = {"number": 3, "square": -1.0, "word": "kept", "seconds": 0.0}
    monkeypatch.setattr("lbm.trials.runner.kept_rows", lambda part: [kept])
    outcome = run_part(slow, tmp_path)
    assert outcome.kept == 1
    assert [row["word"] for row in outcome.rows if row["number"] == 3] == ["kept"]
    again = run_part(slow, tmp_path, again=True)
    assert (again.kept, again.measured, again.found) == (0, 1, slow.PIECES - 1)
    assert [row["square"] for row in again.rows if row["number"] == 3] == [9.0]


def test_workers_give_the_rows_that_one_gives_in_the_same_order(slow, tmp_path):
    done = []
    alone = run_part(slow, tmp_path / "one")
    with joblib.parallel_config("threading", n_jobs=4):
        together = run_part(slow, tmp_path / "four", n_jobs=4, on_piece=done.append)
    for row in (*alone.rows, *together.rows):
        row["seconds"] = None
    assert alone.rows == together.rows
    assert sorted(piece.key["number"] for piece in done) == list(range(slow.PIECES))


# --- the parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_pieces_of_a_part_have_names_of_their_own_and_keys_that_are_columns(name):
    part = part_named(name)
    assert name == part.NAME
    for quick in (False, True):
        pieces = part.pieces(quick)
        assert len({piece.name for piece in pieces}) == len(pieces) > 0
        assert all(piece.key.keys() <= part.COLUMNS.keys() for piece in pieces)


def test_quick_runs_are_expected_to_take_less_than_ninety_seconds():
    assert sum(piece.cost for name in PARTS for piece in part_named(name).pieces(True)) < 90


@pytest.mark.parametrize("name", PARTS)
def test_a_part_without_rows_says_what_it_is_about_and_draws_nothing(name):
    part = part_named(name)
    assert part.draw([]) == []
    assert part.section([]).about


SMALL = {
    "xor": [piece.key for piece in part_named("xor").pieces(True)],
    "softplus": [piece.key for piece in part_named("softplus").pieces(True)],
    "coverage": [
        {"method": method, "M": 20, "N": 10, "limit": 20_000 if method == "block Gibbs" else 0, "runs": "0-1"}
        for method in ("pool scheme", "block Gibbs", "collapsed", "i.i.d. draws")
    ],
    "time": [
        {"method": method, "N": 10, "limit": 20_000 if method == "block Gibbs" else 0, "repeats": 1}
        for method in ("pool scheme", "block Gibbs", "collapsed", "i.i.d. draws", "strict DNF", "PySAT")
    ],
    "sat": [
        {"family": family, "size": size, "sweeps": 5, "instances": "0-1"}
        for family, size in (("SR", 5), ("colouring", 9))
    ],
}


@pytest.mark.parametrize("name", SMALL)
def test_a_key_gives_the_same_rows_every_time_and_they_have_the_columns_of_the_part(name):
    part = part_named(name)
    every = []
    for key in SMALL[name]:
        rows, again = part.measure(key), part.measure(key)
        for row in rows:
            check_row(part, row)
            assert all(row[column] == value for column, value in key.items())
        for row in (*rows, *again):
            for column in filter(is_time, row):
                row[column] = 0.01
        assert rows == again
        every += rows
    section, pictures = part.section(every), part.draw(every)
    assert section.findings
    assert section.headline
    assert pictures
    for table in section.tables:
        assert {len(line) for line in table.rows} == {len(table.head)}
