"""Every question on the command line: answered word for word, for programs, or refused in one line."""

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from lbm import Reasoner, Theory, ask, best, marginals, models, sample, uniformity
from lbm.errors import TooManyWorlds
from lbm.logic import sdnf
from lbm.reasoning import reasoner
from lbm.reasoning.answers import Best, Estimate, Marginals
from lbm.reasoning.beside import Counted
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.solvers import aside
from lbm.views.commands import shared
from lbm.views.entry import main

THEORIES = {
    "nixon.lbm": "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p\n",
    "mixed.lbm": "atoms a, b, c\na ^ b\n3: a\n2: b\n-1: c\n",
    "clash.lbm": "a\n~a\n",
    "valid.lbm": "a | ~a\n",
    "bare.lbm": "true\n",
    "idle.lbm": "atoms a, b, idle\na -> b\n",
    "range.lbm": "atoms a, b\n0.000000001: a\n1000000000: b\n-1e9: a & b\n",
    "birds.lbm": "bird -> flies\npenguin -> bird\n",
    "shown.cnf": "c p show 1 3 0\np cnf 3 2\n1 2 0\n-1 3 0\n",
    "soft.wcnf": "h 1 2 0\n3 -1 0\n2 -2 0\n",
}
QUESTIONS = {
    "ask": ["ask", "FILE", "true"],
    "best": ["best", "FILE"],
    "entails": ["entails", "FILE", "true"],
    "sample": ["sample", "FILE", "-n", "2"],
    "log-partition": ["log-partition", "FILE"],
    "log-probability": ["log-probability", "FILE", ""],
}
MODELS = [(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1)]  # of mixed.lbm, whose scores are 2, 1, 3, 2
CHAINS = {
    "converged": True,
    "effective_size": None,
    "r_hat": None,
    "missed": None,
    "chains": None,
    "sweeps": None,
    "note": None,
}
NO_WORLD = "lbm: the hard formulae allow no world; `lbm check` names those of a theory that clash\n"


@pytest.fixture(autouse=True)
def theories(tmp_path, monkeypatch):
    """Put the theories into a directory of their own, and work there."""
    for name, text in THEORIES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lbm(capsys):
    """Return a function that runs a command and returns its status and lines on both streams."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "bug in lbm" not in err
        assert "Traceback" not in err
        return status, out.splitlines(), err

    return run


@pytest.fixture
def told(lbm):
    """Return a function that runs a command with --json and returns its status and the object it prints."""

    def run(*arguments):
        status, lines, _ = lbm(*arguments, "--json")
        return status, json.loads("\n".join(lines))

    return run


def asked(command, file):
    return [file if part == "FILE" else part for part in QUESTIONS[command]]


def refused(answer, *words):
    """Check that nothing was printed but one line that says what is wrong, and that the status is 2."""
    status, lines, err = answer
    assert (status, lines) == (2, [])
    assert err.startswith("lbm: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


# --- ask -------------------------------------------------------------------------------------------

EXACT = "exact; logical distribution, temperature 1"
DISPREFERRED = "dispreferred: false in every best world"


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["nixon.lbm", "p", "--given", "n"], ["P(p | n) = 0.5", "undecided", EXACT]),
        (
            ["nixon.lbm", "r", "--given", "n", "--why"],
            ["P(r | n) = 1", "preferred: true in every best world", "because of:", "  1000: n -> r", EXACT],
        ),
        (
            ["mixed.lbm", "a|b", "--why"],
            ["P((a | b)) = 1", "entailed: true in every model", "because of:", "  a ^ b", EXACT],
        ),
        (
            ["mixed.lbm", "a & b", "--given", "c", "--why"],
            ["P(a & b | c) = 0", "refuted: true in no model", "because of:", "  a ^ b", EXACT],
        ),
        (
            ["mixed.lbm", "a", "--given", "a", "--why"],
            ["P(a | a) = 1", "entailed: true in every model", "because of the evidence alone", EXACT],
        ),
        (
            ["bare.lbm", "true", "--why"],
            ["P(true) = 1", "entailed: true in every model", "because of its form alone", EXACT],
        ),
        (
            ["mixed.lbm", "b", "--given", "~c", "--why"],
            ["P(b | ~c) = 0.268941", DISPREFERRED, "because of:", "  a ^ b", "  3: a", EXACT],
        ),
        (["valid.lbm", "a"], ["P(a) = 0.5", "undecided", EXACT]),
        (["idle.lbm", "idle", "--given", "a"], ["P(idle | a) = 0.5", "undecided", EXACT]),
        (["range.lbm", "b"], ["P(b) = 1", "preferred: true in every best world", EXACT]),
        (["range.lbm", "a", "--given", "b"], ["P(a | b) = 0", DISPREFERRED, EXACT]),
        (["shown.cnf", "x3"], ["P(x3) = 0.75", "undecided", EXACT]),
        (
            ["nixon.lbm", "r", "--soft-as-hard", "--given", "q"],
            ["P(r | q) = 0", "refuted: true in no model", EXACT],
        ),
    ],
)
def test_an_answer_reads_word_for_word(lbm, arguments, lines):
    assert lbm("ask", *arguments) == (0, lines, "")


def test_a_probability_of_soft_formulae_is_that_of_exponential_weights(told):
    for temperature in (0.5, 1, 10):
        a, b = math.exp(3 / temperature), math.exp(2 / temperature)
        status, found = told("ask", "mixed.lbm", "a", "--temperature", temperature)
        assert status == 0
        assert found["probability"] == pytest.approx(a / (a + b), abs=1e-12)
        assert found["temperature"] == temperature


def test_tiny_weights_count_beside_huge_ones(told):
    _, found = told("ask", "range.lbm", "a", "--given", "~b", "--temperature", "1e-9")
    assert found["probability"] == pytest.approx(math.e / (1 + math.e), abs=1e-12)


def test_programs_get_every_part_of_an_answer(told):
    assert told("ask", "mixed.lbm", "a&b", "--why") == (
        0,
        {
            "query": "a & b",
            "given": None,
            "probability": 0.0,
            "interval": [0.0, 0.0],
            "status": "refuted",
            "method": "exact",
            "distribution": "logical",
            "temperature": 1.0,
            "confidence": None,
            "reasons": [{"formula": "a ^ b", "weight": None, "line": 2}],
            "minimal": True,
            **CHAINS,
        },
    )


def test_the_machine_distribution_has_no_need_of_models(lbm, told):
    status, lines, err = lbm("ask", "clash.lbm", "a", "--distribution", "machine", "--confidence", "2")
    about = "exact; machine distribution, temperature 1, confidence 2"
    assert (status, lines, err) == (0, ["P(a) = 0.5", "status not settled", about], "")
    status, found = told("ask", "clash.lbm", "a", "--distribution", "machine")
    assert (status, found["status"], found["confidence"]) == (0, None, 5.0)


@pytest.mark.parametrize(
    "options", [["--method", "collapsed"], ["--method", "gibbs", "--distribution", "machine"]]
)
def test_a_sampled_answer_gives_its_interval_and_the_same_seed_gives_it_again(told, options):
    first = told("ask", "valid.lbm", "a", *options, "--sweeps", "400", "--seed", "3")
    assert first == told("ask", "valid.lbm", "a", *options, "--sweeps", "400", "--seed", "3")
    status, found = first
    low, high = found["interval"]
    assert (found["method"], found["sweeps"]) == ("sampled", 400)
    assert 0 <= low < found["probability"] < high <= 1
    # An interval of 95 %, 1.96 standard errors to either side: twice as wide holds four of them, nearly.
    assert abs(found["probability"] - 0.5) < high - low
    assert status == (0 if found["converged"] else 3)


def test_chains_that_had_no_time_to_agree_are_exit_3_and_say_so(lbm):
    status, lines, err = lbm("ask", "mixed.lbm", "a", "--method", "collapsed", "--sweeps", "1", "--seed", "0")
    assert (status, err) == (3, "")
    assert lines[0].startswith("P(a) ≈ ")
    assert any(line.startswith("NOT CONVERGED: ") for line in lines)


def test_a_status_that_was_not_settled_in_time_is_exit_3(lbm):
    status, lines, _ = lbm("ask", "mixed.lbm", "a", "--seconds", "1e-9")
    assert status == 3
    assert "status not settled" in lines or lines == []


# --- entails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "lines"),
    [
        (["mixed.lbm", "a | b"], 0, ["yes: it is true in every model", "because of:", "  a ^ b"]),
        (
            ["mixed.lbm", "a", "--given", "a"],
            0,
            ["yes: it is true in every model", "because of the evidence alone"],
        ),
        (["idle.lbm", "b", "--given", "a"], 0, ["yes: it is true in every model", "because of:", "  a -> b"]),
        (
            ["mixed.lbm", "a", "--mode", "preferred"],
            0,
            ["yes: it is true in every best world", "because of:", "  3: a"],
        ),
        (["mixed.lbm", "b", "--mode", "preferred"], 1, ["no: it is false in every best world"]),
        (
            ["nixon.lbm", "p", "--given", "n", "--mode", "preferred"],
            1,
            ["no: it is false in some best world"],
        ),
        (["valid.lbm", "a | ~a"], 0, ["yes: it is true in every model", "because of its form alone"]),
        (["valid.lbm", "~a", "--given", "a"], 1, ["no: it is false in a=1"]),
        (["bare.lbm", "true"], 0, ["yes: it is true in every model", "because of its form alone"]),
        (
            ["nixon.lbm", "n -> r", "--soft-as-hard"],
            0,
            ["yes: it is true in every model", "because of:", "  n -> r"],
        ),
        (
            ["range.lbm", "b", "--mode", "preferred"],
            0,
            ["yes: it is true in every best world", "because of:", "  1000000000: b"],
        ),
    ],
)
def test_what_follows_reads_word_for_word(lbm, arguments, status, lines):
    assert lbm("entails", *arguments) == (status, lines, "")


def test_what_does_not_follow_is_shown_false_in_a_model(told):
    status, found = told("entails", "mixed.lbm", "a")
    assert status == 1
    assert list(found) == ["entails", "mode", "status", "reasons", "minimal", "world"]
    assert (found["entails"], found["status"], found["reasons"]) == (False, "undecided", [])
    world = tuple(found["world"][name] for name in "abc")
    assert world in MODELS
    assert world[0] == 0


def test_programs_are_told_what_is_false_in_every_best_world(told):
    status, found = told("ask", "mixed.lbm", "b", "--given", "~c", "--why")
    assert (status, found["status"], found["minimal"]) == (0, "dispreferred", True)
    assert [reason["formula"] for reason in found["reasons"]] == ["a ^ b", "a"]
    status, found = told("entails", "mixed.lbm", "b", "--mode", "preferred")
    assert (status, found["entails"], found["status"], found["reasons"]) == (1, False, "dispreferred", [])


def test_programs_get_reasons_with_weight_and_line(told):
    assert told("entails", "mixed.lbm", "a", "--mode", "preferred") == (
        0,
        {
            "entails": True,
            "mode": "preferred",
            "status": "preferred",
            "reasons": [{"formula": "a", "weight": 3, "line": 3}],
            "minimal": True,
            "world": None,
        },
    )


def test_no_proof_in_time_is_exit_3(lbm):
    status, lines, err = lbm("entails", "mixed.lbm", "a", "--seconds", "1e-9")
    assert (status, lines) == (3, [])
    assert err == "lbm: no answer within 1e-09 seconds: allow more\n"


# --- best ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["nixon.lbm"], ["n=0 r=0 q=0 p=0", "satisfied 2020, lost 0; optimal (exact)"]),
        (["mixed.lbm"], ["a=1 b=0 c=0", "satisfied 3, lost 2; optimal (exact)", "broken:", "  2: b"]),
        (
            ["mixed.lbm", "--given", "b & c"],
            ["a=0 b=1 c=1", "satisfied 2, lost 4; optimal (exact)", "broken:", "  3: a", "  -1: c"],
        ),
        (
            ["mixed.lbm", "--top", "3"],
            [
                "a=1 b=0 c=0   score 3",
                "a=0 b=1 c=0   score 2",
                "a=1 b=0 c=1   score 2",
                "the first: satisfied 3, lost 2; optimal (exact)",
                "broken:",
                "  2: b",
            ],
        ),
        (
            ["idle.lbm", "--all", "--given", "a"],
            [
                "a=1 b=1 idle=0   score 0",
                "a=1 b=1 idle=1   score 0",
                "the first: satisfied 0, lost 0; optimal (exact)",
                "these are all the best worlds",
            ],
        ),
        (["valid.lbm"], ["a=0", "satisfied 0, lost 0; optimal (exact)"]),
        (["bare.lbm"], ["", "satisfied 0, lost 0; optimal (exact)"]),
        (
            ["range.lbm", "--certify"],
            ["a=0 b=1", "satisfied 1000000000, lost 1E-9; optimal (exact)", "broken:", "  1E-9: a"],
        ),
        (["soft.wcnf", "--dimacs"], ["o 2", "s OPTIMUM FOUND", "v -1 2 0"]),
        (["mixed.lbm", "--dimacs"], ["o 2", "s OPTIMUM FOUND", "v 1 -2 -3 0"]),
        (["idle.lbm", "--dimacs"], ["o 0", "s SATISFIABLE", "v -1 -2 -3 0"]),
        (["bare.lbm", "--dimacs"], ["o 0", "s SATISFIABLE", "v 0"]),
    ],
)
def test_the_best_world_reads_word_for_word(lbm, arguments, lines):
    assert lbm("best", *arguments) == (0, lines, "")


def test_programs_get_every_part_of_the_best_world(told):
    assert told("best", "mixed.lbm", "--top", "2") == (
        0,
        {
            "worlds": [{"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 0}],
            "scores": [3, 2],
            "satisfied": 3,
            "lost": 2,
            "broken": [{"formula": "b", "weight": 2, "line": 4}],
            "optimal": True,
            "bound": 2,
            "gap": 0,
            "method": "exact",
            "complete": False,
            "found_by": "own",
            "proved_by": "own",
            "dropped": [],
        },
    )


def test_an_engine_that_is_not_there_is_one_clear_line(lbm):
    status, lines, err = lbm("best", "mixed.lbm", "--engines", "own,rc3")
    assert (status, lines) == (2, [])
    assert "there is no engine 'rc3': installed are own, rc2" in err
    status, lines, _ = lbm("best", "mixed.lbm", "--engines", "-rc2,-cp-sat,-toulbar2")
    assert (status, lines[0]) == (0, "a=1 b=0 c=0")


def test_weights_that_no_double_holds_are_text(told):
    _, found = told("best", "range.lbm", "--given", "a & b")
    assert found["satisfied"] == "1000000000.000000001"
    assert (found["lost"], found["scores"]) == (10**9, [1e-9])


def test_dimacs_says_unsatisfiable_where_there_is_no_world(lbm):
    status, lines, err = lbm("best", "clash.lbm", "--dimacs")
    assert (status, lines, err) == (1, ["s UNSATISFIABLE"], NO_WORLD)


def test_an_unproven_world_is_exit_3_only_where_a_proof_is_demanded(lbm, monkeypatch):
    def unproven(*_, **__):
        return Best(({"a": True},), (3,), 3, 2, (), False, 1, "annealed", theory=Theory(["a"]))

    monkeypatch.setattr("lbm.reasoning.optimum.best", unproven)
    said = "satisfied 3, lost 2; best found: any world loses 1 at least, so the gap is 1"
    assert lbm("best", "valid.lbm") == (0, ["a=1", said], "")
    assert lbm("best", "valid.lbm", "--certify") == (3, ["a=1", said], "")
    assert lbm("best", "valid.lbm", "--dimacs") == (0, ["o 2", "s SATISFIABLE", "v 1 0"], "")


# --- sample ----------------------------------------------------------------------------------------


def test_draws_are_a_world_a_line_and_how_they_were_drawn_is_a_remark(lbm):
    status, lines, err = lbm("sample", "mixed.lbm", "-n", "400", "--seed", "0")
    assert status == 0
    assert err == "lbm: 400 independent draws; logical distribution, temperature 1\n"
    worlds = [tuple(int(part[-1]) for part in line.split()) for line in lines]
    assert set(worlds) <= set(MODELS)
    weights = {world: math.exp(score) for world, score in zip(MODELS, (2, 1, 3, 2), strict=True)}
    chance = weights[1, 0, 0] / sum(weights.values())
    error = math.sqrt(chance * (1 - chance) / 400)
    assert abs(worlds.count((1, 0, 0)) / 400 - chance) < 4 * error
    assert lbm("sample", "mixed.lbm", "-n", "400", "--seed", "0")[1] == lines


def test_programs_get_draws_as_lists(told):
    status, found = told("sample", "mixed.lbm", "-n", "5", "--seed", "0", "--given", "c")
    worlds = found.pop("worlds")
    assert status == 0
    assert len(worlds) == 5
    assert {tuple(world) for world in worlds} <= {(0, 1, 1), (1, 0, 1)}
    assert found == {
        "atoms": ["a", "b", "c"],
        "method": "exact",
        "distribution": "logical",
        "temperature": 1.0,
        "confidence": None,
        "independent": True,
        **CHAINS,
    }


def test_a_theory_without_atoms_has_one_world_and_it_is_drawn(lbm, told):
    assert lbm("sample", "bare.lbm", "-n", "2")[:2] == (0, ["", ""])
    status, found = told("sample", "bare.lbm", "-n", "2")
    assert (status, found["atoms"], found["worlds"]) == (0, [], [[], []])


@pytest.mark.parametrize("option", ["--uniformity", "--distance"])
def test_how_even_draws_are_is_measured_under_both_spellings(lbm, told, option):
    status, lines, err = lbm("sample", "birds.lbm", "-n", "200", "--seed", "0", option)
    assert (status, len(lines)) == (0, 200)
    assert err.splitlines()[-1].startswith("lbm: distance from uniform: 0.")
    _, found = told("sample", "birds.lbm", "-n", "200", "--seed", "0", option)
    assert (found["distance"]["measure"], found["distance"]["models"]) == ("total variation", 4)


def test_the_older_spelling_of_uniformity_is_not_offered(lbm):
    _, lines, _ = lbm("sample", "--help")
    assert "--uniformity" in "\n".join(lines)
    assert "--distance" not in "\n".join(lines)


def test_demanding_soft_formulae_leaves_fewer_worlds(lbm):
    status, lines, _ = lbm("sample", "nixon.lbm", "-n", "50", "--seed", "0", "--soft-as-hard", "--given", "p")
    assert status == 0
    assert {line.split()[0] for line in lines} == {"n=0"}
    assert lbm("sample", "mixed.lbm", "-n", "1", "--soft-as-hard") == (1, [], NO_WORLD)


def test_gibbs_draws_say_that_they_are_states_of_chains(lbm):
    status, lines, err = lbm(
        "sample", "valid.lbm", "-n", "2", "--method", "gibbs", "--distribution", "machine", "--seed", "0",
        "--sweeps", "1",
    )  # fmt: skip
    assert status == 3
    assert len(lines) == 2
    assert err.startswith("lbm: 2 states of chains (gibbs), not independent draws; machine distribution")
    assert "NOT CONVERGED" in err


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head, [[int(value) for value in row] for row in rows]


def test_files_hold_the_draws_that_are_printed(lbm, told, theories):
    wanted = told("sample", "mixed.lbm", "-n", "20", "--seed", "7")[1]["worlds"]
    for name in ("out.csv", "out.npy", "out.CSV"):
        status, lines, err = lbm("sample", "mixed.lbm", "-n", "20", "--seed", "7", "-o", name)
        assert (status, lines) == (0, [])
        assert err.startswith("lbm: 20 independent draws")
    assert read_csv(theories / "out.csv") == (["a", "b", "c"], wanted)
    assert read_csv(theories / "out.CSV") == (["a", "b", "c"], wanted)
    array = np.load(theories / "out.npy", allow_pickle=False)
    assert array.dtype == bool
    assert array.astype(int).tolist() == wanted
    assert told("sample", "mixed.lbm", "-n", "20", "--seed", "7", "-o", "out.csv")[1]["worlds"] == []


def test_parquet_files_have_a_column_an_atom(lbm, told, theories):
    parquet = pytest.importorskip("pyarrow.parquet")
    wanted = told("sample", "mixed.lbm", "-n", "20", "--seed", "7")[1]["worlds"]
    assert lbm("sample", "mixed.lbm", "-n", "20", "--seed", "7", "-o", "out.parquet")[0] == 0
    table = parquet.read_table(theories / "out.parquet")
    assert table.column_names == ["a", "b", "c"]
    assert [list(map(int, row.values())) for row in table.to_pylist()] == wanted


def test_parquet_without_its_package_names_what_to_install(lbm, theories, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(lbm("sample", "mixed.lbm", "-n", "2", "-o", "out.parquet"), "pyarrow", "[tables]")
    assert not (theories / "out.parquet").exists()


def test_names_with_commas_and_quotes_survive_a_csv_file(lbm, theories):
    (theories / "odd.lbm").write_text("less(a1, b1) & 'say \"so\", now'\n", encoding="utf-8")
    assert lbm("sample", "odd.lbm", "-n", "1", "-o", "odd.csv")[0] == 0
    assert read_csv(theories / "odd.csv") == (["less(a1, b1)", 'say "so", now'], [[1, 1]])


def test_a_file_of_another_kind_is_refused_before_anything_is_drawn(lbm, theories, monkeypatch):
    monkeypatch.setattr(shared, "read_theory", lambda *_, **__: pytest.fail("the theory was read"))
    refused(lbm("sample", "mixed.lbm", "-n", "2", "-o", "x.txt"), "x.txt", ".csv, .npy, .parquet")
    assert not (theories / "x.txt").exists()


def test_an_existing_file_is_replaced_whole(lbm, theories):
    (theories / "out.csv").write_text("old\n" * 1000)
    assert lbm("sample", "idle.lbm", "-n", "3", "-o", "out.csv")[0] == 0
    head, rows = read_csv(theories / "out.csv")
    assert (head, len(rows)) == (["a", "b", "idle"], 3)


@pytest.mark.parametrize("name", ["out.csv", "out.npy"])
def test_a_directory_that_is_not_there_is_not_made(lbm, theories, name):
    refused(lbm("sample", "mixed.lbm", "-n", "2", "-o", f"nowhere/{name}"), f"cannot write nowhere/{name}")
    assert not (theories / "nowhere").exists()


@pytest.mark.parametrize("name", ["out.csv", "out.npy"])
def test_nothing_is_left_in_a_directory_that_is_not_ours(lbm, theories, name):
    shut = theories / "shut"
    shut.mkdir()
    shut.chmod(0o500)
    try:
        if os.access(shut, os.W_OK):
            pytest.skip("whoever runs this may write everywhere")
        refused(lbm("sample", "mixed.lbm", "-n", "2", "-o", f"shut/{name}"), f"cannot write shut/{name}")
        assert list(shut.iterdir()) == []
    finally:
        shut.chmod(0o700)


def test_a_file_that_cannot_be_finished_leaves_the_old_one(lbm, theories, monkeypatch):
    (theories / "out.csv").write_text("old\n")

    def fail(*_):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr("lbm.knowledge.printed.csv_text", fail)
    before = sorted(theories.iterdir())
    refused(lbm("sample", "mixed.lbm", "-n", "2", "-o", "out.csv"), "No space left on device")
    assert (theories / "out.csv").read_text() == "old\n"
    assert sorted(theories.iterdir()) == before


# --- log-partition and log-probability ---------------------------------------------------------------


def test_log_partition_is_the_logarithm_of_the_sum(lbm, told):
    status, lines, err = lbm("log-partition", "mixed.lbm", "--temperature", "2")
    right = math.log(sum(math.exp(score / 2) for score in (2, 1, 3, 2)))
    assert (status, err) == (0, "")
    assert float(lines[0]) == pytest.approx(right, abs=1e-12)
    assert told("log-partition", "mixed.lbm", "--temperature", "2") == (
        0,
        {
            "log_partition": float(lines[0]),
            "distribution": "logical",
            "temperature": 2.0,
            "confidence": None,
            "error": 0.0,
            "note": None,
        },
    )
    assert lbm("log-partition", "bare.lbm") == (0, ["0.0"], "")
    assert lbm("log-partition", "range.lbm") == (0, ["1000000000.0"], "")


def test_log_partition_that_cannot_be_summed_is_estimated_and_says_so(lbm, told, monkeypatch):
    def too_much(*_, **__):
        raise TooManyWorlds("there are too many", LIMIT=1)

    right = float(lbm("log-partition", "mixed.lbm")[1][0])
    monkeypatch.setattr(Exact, "log_partition", too_much)
    with monkeypatch.context() as counted:
        counted.setattr(aside, "ganak_installed", lambda: True)
        counted.setattr(reasoner, "log_partition_beside", lambda *_: Counted(right))
        assert lbm("log-partition", "mixed.lbm") == (0, [str(right)], "lbm: exact, by Ganak\n")
        _, found = told("log-partition", "mixed.lbm")
        assert (found["log_partition"], found["error"], found["note"]) == (right, 0.0, "by Ganak")
    monkeypatch.setattr(aside, "ganak_installed", lambda: False)
    status, (line,), err = lbm("log-partition", "mixed.lbm", "--seed", "0")
    value, error = map(float, line.split(" ± "))
    assert status == 0
    assert abs(value - right) < 5 * error
    assert err == "lbm: estimated by population annealing, not exact, since there are too many\n"
    _, found = told("log-partition", "mixed.lbm", "--seed", "0")
    assert found["note"] == "there are too many"
    assert found["error"] == pytest.approx(error, rel=0.1)


def test_check_estimates_no_cubes_of_a_cardinality_too_wide_for_them(lbm, tmp_path, monkeypatch):
    monkeypatch.setattr(sdnf, "estimate_size", lambda *_, **__: pytest.fail("it is too wide"))
    file = tmp_path / "wide.lbm"
    file.write_text(f"atleast(500, {', '.join(f'v{i}' for i in range(1000))})\n")
    status, lines, err = lbm("check", str(file))
    assert (status, lines[-1], err) == (0, "satisfiable", "")


def test_a_log_probability_that_is_not_worked_out_in_time_has_exit_status_3(lbm, counted_clock):
    counted_clock.step = 1.0
    status, lines, err = lbm("log-probability", "mixed.lbm", "a=1 b=0 c=0", "--seconds", "0.5")
    assert (status, lines) == (3, [])
    assert "allow more seconds" in err


def test_log_partition_of_a_machine_sums_its_free_energies(told):
    status, found = told("log-partition", "clash.lbm", "--distribution", "machine", "--confidence", "2")
    assert (status, found["confidence"]) == (0, 2.0)
    # Two cubes, a and ~a: in either world the input of one unit is ε = 0.5, and of the other 0.5 - 1.
    right = math.log(2) + math.log1p(math.exp(1)) + math.log1p(math.exp(-1))
    assert found["log_partition"] == pytest.approx(right, abs=1e-12)


def test_log_probabilities_of_all_worlds_sum_to_one(lbm):
    found = {}
    for world in np.ndindex(2, 2, 2):
        said = " ".join(f"{name}={value}" for name, value in zip("abc", world, strict=True))
        status, lines, err = lbm("log-probability", "mixed.lbm", said)
        assert (status, err) == (0, "")
        found[world] = float(lines[0])
    assert {world for world, log in found.items() if log > -math.inf} == set(MODELS)
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1, abs=1e-12)
    assert found[1, 0, 0] - found[0, 1, 1] == pytest.approx(2, abs=1e-12)


def test_an_impossible_world_is_minus_infinity_and_null(lbm, told):
    assert lbm("log-probability", "mixed.lbm", "a=1 b=1 c=0") == (0, ["-inf"], "")
    assert told("log-probability", "mixed.lbm", "a=1, b=1, c=0") == (
        0,
        {"log_probability": None, "distribution": "logical", "temperature": 1.0, "confidence": None},
    )
    assert lbm("log-probability", "mixed.lbm", "a=1 b=0 c=0", "--given", "~a") == (0, ["-inf"], "")
    assert lbm("log-probability", "range.lbm", "a=1 b=1") == (0, ["-1000000000.0"], "")
    assert lbm("log-probability", "bare.lbm", "") == (0, ["0.0"], "")


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ("a=1 b=0", "lbm: no atom 'c' in this world\n"),
        ("", "lbm: no atom 'a' in this world\n"),
        ("a=1 b=0 c=0 d=1", "lbm: no atom 'd' in this theory\n"),
        ("a=1 b=0 c=2", "lbm: world: expected an atom and its value, as in n=1, found 'c=2'\n"),
        ("junk", "lbm: world: expected an atom and its value, as in n=1, found 'junk'\n"),
    ],
)
def test_a_world_that_is_none_is_refused(lbm, world, message):
    refused(lbm("log-probability", "mixed.lbm", world), message)


# --- models and counts of what is shown, and of all formulae ---------------------------------------------


def test_counts_are_projected_to_the_atoms_a_file_shows_unless_a_question_says_otherwise(lbm):
    assert lbm("count", "shown.cnf") == (0, ["3"], "")
    assert lbm("count", "shown.cnf", "--project", "x2") == (0, ["2"], "")
    assert lbm("count", "shown.cnf", "--project", "x1,x2,x3") == (0, ["4"], "")
    shown = ["x1=0 x3=0", "x1=0 x3=1", "x1=1 x3=1", "3 models, all of them"]
    assert lbm("models", "shown.cnf") == (0, shown, "")
    chosen = ["x2=0 x1=1", "x2=1 x1=0", "x2=1 x1=1", "3 models, all of them"]
    assert lbm("models", "shown.cnf", "--project", "x2,x1") == (0, chosen, "")
    refused(lbm("count", "shown.cnf", "--project", "x9"), "no atom 'x9'")


def test_a_best_world_and_draws_are_over_all_atoms_whatever_a_file_shows(lbm):
    assert lbm("best", "shown.cnf")[1][0] == "x1=0 x2=1 x3=0"
    assert all(len(line.split()) == 3 for line in lbm("sample", "shown.cnf", "-n", "4")[1])


def test_soft_as_hard_demands_every_formula_of_a_file(lbm):
    assert lbm("count", "soft.wcnf") == (0, ["3"], "")
    assert lbm("count", "soft.wcnf", "--soft-as-hard") == (1, ["0"], "")
    assert lbm("models", "mixed.lbm", "--soft-as-hard") == (1, ["no models: the hard formulae clash"], "")
    assert lbm("models", "nixon.lbm", "--soft-as-hard", "--given", "n") == (
        1,
        ["no models keep the evidence"],
        "",
    )


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", QUESTIONS)
def test_a_theory_without_models_is_answered_no(lbm, command):
    status, lines, err = lbm(*[part or "a=0" for part in asked(command, "clash.lbm")])
    assert (status, err) == (1, NO_WORLD)
    assert lines == (["these hard formulae clash:", "  a", "  ~a"] if command == "best" else [])


@pytest.mark.parametrize("command", QUESTIONS)
def test_impossible_evidence_is_answered_no_and_named(lbm, command):
    question = [part or "bird=0 flies=0 penguin=0" for part in asked(command, "birds.lbm")]
    status, lines, err = lbm(*question, "--given", "penguin & ~flies")
    clash = ["these hard formulae clash with the evidence:", "  bird -> flies", "  penguin -> bird"]
    assert (status, lines) == (1, clash if command == "best" else [])
    said = "no world keeps penguin & ~flies and every hard formula"
    assert err == f"lbm: the evidence is impossible: {said}\n"


@pytest.mark.parametrize("command", QUESTIONS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("brid", "lbm: no atom 'brid' in this theory; did you mean 'bird'?\n"),
        ("bird & zebra", "lbm: no atom 'zebra' in this theory\n"),
        ("bird &", "lbm: given:1:7: expected a formula, found the end of the text\n"),
        ("", "lbm: given"),
    ],
)
def test_evidence_that_makes_no_sense_is_refused(lbm, command, given, message):
    question = [part or "bird=0 flies=0 penguin=0" for part in asked(command, "birds.lbm")]
    refused(lbm(*question, "--given", given), message)


@pytest.mark.parametrize("command", ["ask", "entails"])
def test_a_query_about_nobody_is_refused(lbm, command):
    refused(
        lbm(command, "birds.lbm", "penguins"),
        "lbm: no atom 'penguins' in this theory; did you mean 'penguin'?",
    )
    refused(lbm(command, "birds.lbm", "bird ->"), "lbm: query:1:8: expected a formula")


@pytest.mark.parametrize("command", ["ask", "sample", "log-partition", "log-probability"])
@pytest.mark.parametrize("option", ["--temperature", "--confidence"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_temperatures_and_confidences_are_finite_and_above_0(lbm, command, option, value):
    question = asked(command, "mixed.lbm")
    refused(lbm(*question, option, value), option, "finite number above 0", f"'lbm {command} --help'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sample", "mixed.lbm", "-n", "0"], ["-n", "1"]),
        (["sample", "mixed.lbm", "-n", "-1"], ["-n", "1"]),
        (["sample", "mixed.lbm", "-n", "x"], ["-n"]),
        (["sample", "mixed.lbm"], ["-n"]),
        (["sample", "mixed.lbm", "-n", "2", "--seconds", "0"], ["--seconds", "above 0"]),
        (["sample", "mixed.lbm", "-n", "2", "--method", "magic"], ["--method", "magic", "collapsed"]),
        (["sample", "mixed.lbm", "-n", "2", "--method", "gibbs"], ["--distribution machine", "collapsed"]),
        (["ask", "mixed.lbm", "a", "--seconds", "0"], ["--seconds", "above 0"]),
        (["ask", "mixed.lbm", "a", "--seconds", "nan"], ["--seconds", "above 0"]),
        (["ask", "mixed.lbm", "a", "--sweeps", "0"], ["--sweeps"]),
        (["ask", "mixed.lbm", "a", "--method", "magic"], ["--method", "magic", "collapsed"]),
        (["ask", "mixed.lbm", "a", "--method", "gibbs"], ["--distribution machine", "collapsed"]),
        (["ask", "mixed.lbm", "a", "--distribution", "normal"], ["--distribution", "normal", "logical"]),
        (["ask", "mixed.lbm"], ["QUERY"]),
        (["entails", "mixed.lbm", "a", "--seconds", "0"], ["--seconds", "above 0"]),
        (["entails", "mixed.lbm", "a", "--mode", "liked"], ["--mode", "liked", "preferred"]),
        (["best", "mixed.lbm", "--top", "0"], ["--top"]),
        (["ask", "mixed.lbm", "a", "--seed", "-1"], ["--seed"]),
        (["log-probability", "mixed.lbm", "a=1 a=0 b=1 c=0"], ["a has a value already"]),
        (["best", "mixed.lbm", "--top", "2", "--all"], ["--top", "--all"]),
        (["best", "mixed.lbm", "--seconds", "0"], ["--seconds", "above 0"]),
        (["best", "mixed.lbm", "--seconds", "-1"], ["--seconds", "above 0"]),
        (["log-probability", "mixed.lbm"], ["WORLD"]),
        (["best", "nowhere.lbm"], ["nowhere.lbm"]),
    ],
)
def test_an_option_without_sense_is_refused_in_one_line(lbm, arguments, words):
    refused(lbm(*arguments), *words)


def test_more_draws_than_can_be_listed_are_exit_3(lbm):
    status, lines, err = lbm("sample", "mixed.lbm", "-n", "99999999999")
    assert (status, lines) == (3, [])
    assert "limit MAX_LISTED" in err


# --- interrupts -------------------------------------------------------------------------------------


def hard_text(atoms=100, clauses=700):
    """Return soft clauses whose best world takes far longer to prove than any test waits."""
    rng = random.Random(0)
    lines = []
    for _ in range(clauses):
        literals = [rng.choice(["", "~"]) + f"x{i}" for i in rng.sample(range(atoms), 3)]
        lines.append(f"{rng.randint(1, 50)}: {' | '.join(literals)}")
    return "\n".join(lines) + "\n"


BEGUN = """
import runpy
from lbm.reasoning.sampling import targets

def first(*arguments, **options):
    targets.advance = advance
    print("begun", flush=True)
    return advance(*arguments, **options)

advance, targets.advance = targets.advance, first
runpy.run_module("lbm", run_name="__main__")
"""  # the command line, but it says when chains begin


def interrupted(arguments, ready, start=("-m", "lbm")):
    """Run a command, press Ctrl-C once it is ready, and return what it printed.

    The interrupt goes to all of its processes, as a terminal sends it; none of them may be left.
    """
    # Where the tests run in the background the shell has them ignore it, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-u", *start, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        first = ready(process)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 130
        assert err == "lbm: interrupted\n"
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return first + out


def interrupted_chains(*arguments):
    """Press Ctrl-C once chains have begun, however long that takes, and return what else was printed."""
    endless = ["--method", "collapsed", "--sweeps", "1000000000", "--seconds", "3000"]

    def ready(process):
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
        assert process.poll() is None
        return ""

    return interrupted([*arguments, *endless], ready, start=("-c", BEGUN))


posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")


@posix
def test_an_interrupted_search_prints_the_best_world_so_far(theories):
    (theories / "hard.lbm").write_text(hard_text())
    out = interrupted(
        ["best", "hard.lbm", "--seconds", "300", "--dimacs", "--seed", "0"],
        lambda process: process.stdout.readline(),
    ).splitlines()
    *losses, said, world = out
    numbers = [int(line.removeprefix("o ")) for line in losses]
    assert numbers == sorted(numbers, reverse=True)
    assert said == "s SATISFIABLE"
    assert len(world.split()) == 102
    assert world.startswith("v ")


@posix
def test_interrupted_chains_stop_and_print_nothing():
    assert interrupted_chains("ask", "nixon.lbm", "p") == ""


@posix
def test_interrupted_draws_leave_no_file(theories):
    before = sorted(theories.iterdir())
    assert interrupted_chains("sample", "nixon.lbm", "-n", "10", "-o", "out.csv") == ""
    assert sorted(theories.iterdir()) == before


# --- results print themselves ----------------------------------------------------------------------


def said_by(found):
    """Return the lines of a result, and its facts as a program reads them: iterators are lists in JSON."""
    facts = {name: list(fact) if isinstance(fact, Iterator) else fact for name, fact in found.facts().items()}
    return list(found.lines()), json.loads(json.dumps(facts))


@pytest.mark.parametrize("name", ["nixon.lbm", "mixed.lbm", "range.lbm", "soft.wcnf"])
@pytest.mark.parametrize("why", [False, True])
def test_an_answer_says_what_ask_prints(lbm, told, name, why):
    theory = Theory.load(name)
    query, given = theory.atoms[0], f"~{theory.atoms[-1]}"
    for method in ("exact", "collapsed"):
        options = ["--given", given, "--method", method, "--sweeps", 50, "--seed", 1, *(["--why"] * why)]
        answer = ask(theory, query, given=given, method=method, sweeps=50, seed=1, why=why)
        lines, facts = said_by(answer)
        assert lbm("ask", name, query, *options)[1] == lines
        assert list(told("ask", name, query, *options)[1].items()) == list(facts.items())


@pytest.mark.parametrize("limit", [None, 2, 300])
@pytest.mark.parametrize("name", ["mixed.lbm", "idle.lbm", "bare.lbm", "shown.cnf"])
def test_models_say_what_models_prints(lbm, told, name, limit):
    options = [] if limit is None else ["--limit", limit]
    lines, facts = said_by(models(Theory.load(name), limit=limit))
    assert lbm("models", name, *options)[1] == lines
    assert list(told("models", name, *options)[1].items()) == list(facts.items())


@pytest.mark.parametrize("method", ["exact", "collapsed", "fast"])
@pytest.mark.parametrize("name", ["mixed.lbm", "idle.lbm", "soft.wcnf"])
def test_draws_and_their_distance_say_what_sample_prints(lbm, told, name, method):
    theory = Theory.load(name)
    drawn = sample(theory, 7, method=method, sweeps=50, seed=1)
    far = uniformity(theory, drawn)
    lines, facts = said_by(drawn)
    options = ["-n", 7, "--method", method, "--sweeps", 50, "--seed", 1]
    _, out, err = lbm("sample", name, *options, "--uniformity")
    assert out == list(drawn.world_lines())
    assert err.splitlines() == [f"lbm: {line}" for line in [*lines, *far.lines()]]
    assert list(told("sample", name, *options)[1].items()) == list(facts.items())
    assert told("sample", name, *options, "--uniformity")[1] == {**facts, "distance": far.facts()}
    assert told("sample", name, *options, "-o", "out.csv")[1] == {**facts, "worlds": []}


@pytest.mark.parametrize("mode", ["entailed", "preferred"])
@pytest.mark.parametrize("query", ["true", "a", "~a", "a | b", "a & b", "a -> a", "~b & c"])
@pytest.mark.parametrize("given", [None, "~c", "a | b | c"])
def test_a_proof_says_what_entails_prints(lbm, told, query, mode, given):
    options = ["--mode", mode, *([] if given is None else ["--given", given])]
    proof = Reasoner(Theory.load("mixed.lbm")).settle(query, given=given, mode=mode, why=True)
    lines, facts = said_by(proof)
    assert facts["mode"] == mode
    assert lbm("entails", "mixed.lbm", query, *options) == (0 if proof.follows else 1, lines, "")
    assert list(told("entails", "mixed.lbm", query, *options)[1].items()) == list(facts.items())


# 70 formulae are lost, and 2^5 worlds lose the same
MANY = "".join(f"{1 + (i >= 5)}: x{i}\n1: ~x{i}\n" for i in range(70))


@pytest.mark.parametrize("options", [{}, {"top": 3}, {"every": True}], ids=str)
@pytest.mark.parametrize("name", ["nixon.lbm", "mixed.lbm", "range.lbm", "bare.lbm", "soft.wcnf", "many.lbm"])
def test_the_best_worlds_say_what_best_prints(lbm, told, theories, monkeypatch, name, options):
    (theories / "many.lbm").write_text(MANY)
    found = best(Theory.load(name), **options)
    lines, facts = said_by(found)
    if name == "many.lbm" and "every" in options:
        assert len(found.worlds) == 32
        assert "and 12 more" in repr(found).splitlines()
        assert "  and 50 more: facts() lists them" in lines
    # One search for all three, since which method ends first is a matter of time.
    monkeypatch.setattr("lbm.reasoning.optimum.best", lambda *_, **__: found)
    assert lbm("best", name)[1] == [line.replace("facts() lists", "--json lists") for line in lines]
    assert list(told("best", name)[1].items()) == list(facts.items())


def test_a_notebook_shows_worlds_as_code_and_the_rest_as_text():
    page = best(Theory.parse("'<b>' ^ a\n2: a\n2: '<b>'"), every=True)._repr_html_()
    assert page.count("<code>") == 2
    assert "<code>&#x27;&lt;b&gt;&#x27;=1 a=0   score 2</code>" in page
    assert page.endswith("<div>broken:</div><div>  2: &#x27;&lt;b&gt;&#x27;</div>")


def test_the_least_sure_marginal_speaks_for_all_in_lines_and_in_facts():
    def about(size, converged):
        return Estimate(0.5, 0.4, 0.6, size, 1.0, converged, 64, 8, 1.0)

    known = {
        "a": about(900.0, True),
        "b": about(500.0, False),
        "c": about(300.0, False),
        "d": about(9.0, True),
    }
    found = Marginals(
        dict.fromkeys([*known, "e"], 0.5),
        known,
        method="sampled",
        distribution="logical",
        temperature=1.0,
        sweeps=8,
        note="so",
    )
    lines, facts = said_by(found)
    assert lines[6].startswith("NOT CONVERGED: 64 chains, 8 sweeps each")
    assert "effective size 300" in lines[6]
    assert (facts["converged"], facts["effective_size"], facts["note"]) == (False, 300, "so")
    assert facts["marginals"] == dict(found)
    assert facts["intervals"] == {name: [0.4, 0.6] for name in known}


def test_marginals_name_their_parts_as_answers_do():
    theory = Theory.load("mixed.lbm")
    lines, facts = said_by(marginals(theory))
    assert len(lines) == 4
    assert facts["intervals"] == {}
    about = ask(theory, "a").facts()
    assert facts["marginals"]["a"] == about["probability"]
    assert {
        name: about[name] for name in facts if name not in ("marginals", "intervals")
    }.items() <= facts.items()
