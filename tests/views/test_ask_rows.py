"""lbm ask --rows, lbm marginals --rows: tables of evidence in, answers out, some thousand rows at a time."""

import bz2
import gzip
import io
import json
import lzma
import math
import random
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import lbm
from lbm.reasoning.reasoner import Reasoner
from lbm.views.commands import evidence, shared
from lbm.views.entry import main


@pytest.fixture
def theory(tmp_path):
    path = tmp_path / "theory.lbm"
    path.write_text("atoms a, b, 'c, d'\n1: a -> b\nb -> 'c, d'\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def rows(tmp_path):
    """Return what writes a file of evidence."""

    def write(text):
        path = tmp_path / "rows.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def said(capsys):
    return capsys.readouterr().err.strip()


def test_answers_are_csv_a_line_for_each_row(theory, rows, capsys):
    assert main(["ask", theory, "a & b", "--rows", rows('b,"c, d"\n1,0\n1,\n0.5,1\n')]) == 0
    out, err = capsys.readouterr()
    table = {"b": [1, 1, 0.5], "c, d": [0, math.nan, 1]}
    expected = lbm.ask(lbm.Theory.load(theory), "a & b", given=table).probability
    assert out.splitlines() == ["probability,possible", ",0", f"{expected[1]},1", f"{expected[2]},1"]
    assert err.splitlines() == [
        f"lbm: P(a & b | row) of 3 rows: {expected[2]:.6g} to {expected[1]:.6g}, mean "
        f"{expected[1:].mean():.6g}",
        "lbm: impossible, counted from 0: 1 row (0)",
        "lbm: exact; logical distribution, temperature 1",
    ]


def test_of_marginals_every_atom_has_a_column(theory, rows, capsys):
    assert main(["marginals", theory, "--rows", rows('b,"c, d"\n1,0\n0,1\n'), "--temperature", "2"]) == 0
    out, err = capsys.readouterr()
    found = pd.read_csv(io.StringIO(out))
    expected = lbm.marginals(
        lbm.Theory.load(theory), given={"b": [1, 0], "c, d": [0, 1]}, temperature=2
    ).frame()
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert "P(atom | row) of 3 atoms in 2 rows" in err
    assert "temperature 2" in err


def test_answers_go_to_a_file_and_a_summary_is_told(theory, rows, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    assert main(["ask", theory, "b", "--rows", rows("a\n1\n0\n"), "-o", str(out)]) == 0
    assert pd.read_csv(out)["possible"].tolist() == [1, 1]
    printed, err = capsys.readouterr()
    assert printed == ""
    assert "P(b | row) of 2 rows" in err
    assert main(["marginals", theory, "--rows", rows("a\n1\n0\n"), "-o", str(out), "--json"]) == 0
    assert list(pd.read_csv(out).columns) == ["a", "b", "c, d"]
    assert json.loads(capsys.readouterr().out) == {
        "atoms": ["a", "b", "c, d"],
        "rows": 2,
        "impossible": 0,
        "marginals": [],
        "method": "exact",
        "distribution": "logical",
        "temperature": 1.0,
        "confidence": None,
    }


def test_programs_get_one_object(theory, rows, capsys):
    assert main(["ask", theory, "b", "--rows", rows('a,"c, d"\n1,0\n0,\n1,0.5\n'), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = lbm.ask(
        lbm.Theory.load(theory), "b", given={"a": [1, 0, 1], "c, d": [0, math.nan, 0.5]}
    ).facts()
    assert found == {**expected, "probabilities": list(expected["probabilities"])}
    assert main(["marginals", theory, "--rows", rows('b,"c, d"\n1,0\n1,1\n'), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["marginals"][0] == [None] * 3
    assert found["marginals"][1][1:] == [1, 1]


def test_evidence_comes_from_standard_input_too(theory, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n1\n0\n")))
    assert main(["ask", theory, "b", "--rows", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b\n1,0\n,\n", [[1, 0], [math.nan] * 2]),
        ("\ufeffb,a\r\n1,0\r\n.5,1e-3\r\n", [[0, 1], [0.001, 0.5]]),
        ("a,b\n\nTrue,false\n \n1.0,0.0\n\n\n", [[1, 0], [1, 0]]),
        ('"a","b"\n"1","0.25"\n"",NA\n', [[1, 0.25], [math.nan] * 2]),
        ("a,b\nnan, 1\nNone,<NA>\nnull,N/A\n", [[math.nan, 1], *[[math.nan] * 2] * 2]),
        ("a,b\n1,0", [[1, 0]]),
    ],
    ids=str,
)
def test_files_are_read_as_people_write_them(theory, rows, text, values, capsys):
    assert main(["ask", theory, "a | b", "--rows", rows(text)]) == 0
    expected = lbm.ask(
        lbm.Theory.load(theory), "a | b", given={"a": [v[0] for v in values], "b": [v[1] for v in values]}
    )
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [float(line.split(",")[0] or "nan") for line in lines] == pytest.approx(
        expected.probability.tolist(), nan_ok=True
    )


def test_no_rows_are_no_answers(theory, rows, capsys):
    assert main(["ask", theory, "a", "--rows", rows("a\n")]) == 0
    assert capsys.readouterr().out == "probability,possible\n"
    assert main(["ask", theory, "nobody", "--rows", rows("a\n")]) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rows.csv: expected a line with the names of atoms, found nothing"),
        ("a,x\n0,1\n", "rows.csv: no atom 'x' in this theory"),
        ("a,bb\n0,1\n", "rows.csv: no atom 'bb' in this theory; did you mean 'b'?"),
        ("a,b,a\n0,1,1\n", "rows.csv: expected every atom in one column, found 'a' in two"),
        ("a;b\n0;1\n", "rows.csv: expected commas between columns, found 'a;b'"),
        ("a,b\n0,1\n0\n", "rows.csv: expected 2 cells in each line, as the first has, found 1 in line 3"),
        ("a,b\n0,1,1\n", "rows.csv: expected 2 cells in each line, as the first has, found 3 in line 2"),
        ("a,b\n0,1\n\n0,2\n", "line 4, column 'b': expected 0, 1, nothing or a probability, found '2'"),
        ("a,b\n0,yes\n", "line 2, column 'b': expected 0, 1, nothing or a probability, found 'yes'"),
        ("a,b\n-1,0\n", "line 2, column 'a': expected 0, 1, nothing or a probability, found '-1'"),
        ("a,b\ninf,0\n", "line 2, column 'a': expected 0, 1, nothing or a probability, found 'inf'"),
        ("a,b\n1_0,0\n", "line 2, column 'a': expected 0, 1, nothing or a probability, found '1_0'"),
        ("a\n1\n\n0\n", "expected a cell in line 3, found none: write nan where nothing was seen"),
        ('a,b\n"0,1\n', "rows.csv: cannot read line 2"),
        (b"a,b\n\xff,1\n", "rows.csv: expected UTF-8 text, found other bytes in line 2"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_file_that_is_wrong_is_one_line_that_names_the_place(theory, rows, text, message, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    assert main(["ask", theory, "a", "--rows", rows(text), "-o", str(out)]) == 2
    err = said(capsys)
    assert message in err
    assert len(err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "theory.lbm"]


def test_a_line_without_end_is_a_named_limit(theory, rows, monkeypatch, capsys):
    monkeypatch.setattr(evidence, "MAX_LINE", 100)
    assert main(["ask", theory, "a", "--rows", rows("a\n" + "1" * 200)]) == 2
    assert "line 2 has more than 100 bytes (limit MAX_LINE)" in said(capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--why"], "without --why"),
        (["--given", "a"], "without --given"),
        (["--sweeps", "7"], "without --sweeps"),
        (["--method", "collapsed"], "without --method collapsed"),
        (["--distribution", "machine"], "without --distribution machine"),
        (["-o", "answers.parquet"], "expected a name that ends in .csv"),
        (["-o", "nowhere/answers.csv"], "there is no directory"),
        (["--rows", "nowhere.csv"], "cannot read nowhere.csv"),
        (["--rows", "."], "cannot read ."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_rows_are_not_asked_with_is_usage(theory, rows, options, message, capsys):
    assert main(["ask", theory, "a", "--rows", rows("a\n1\n"), *options]) == 2
    assert message in said(capsys)
    if options != ["--why"]:
        assert main(["marginals", theory, "--rows", rows("a\n1\n"), *options]) == 2
        assert message in said(capsys)


def test_marginals_of_rows_are_not_printed_as_solvers_of_networks_do(theory, rows, capsys):
    assert main(["marginals", theory, "--rows", rows("a\n1\n"), "--form", "uai"]) == 2
    assert "without --form" in said(capsys)


def test_answers_that_go_to_a_file_are_those_to_rows(theory, capsys):
    assert main(["ask", theory, "a", "-o", "answers.csv"]) == 2
    assert "only answers to rows of evidence" in said(capsys)
    assert main(["marginals", theory, "-o", "answers.csv"]) == 2
    assert "only answers to rows of evidence" in said(capsys)
    assert main(["ask", "-", "a", "--rows", "-"]) == 2
    assert "standard input can be the theory or the evidence, not both" in said(capsys)


def test_a_theory_that_allows_no_world_is_exit_1(tmp_path, rows, capsys):
    path = tmp_path / "clash.lbm"
    path.write_text("a\n~a\n", encoding="utf-8")
    assert main(["ask", str(path), "a", "--rows", rows("a\n1\n")]) == 1
    assert "the hard formulae allow no world" in said(capsys)


@pytest.mark.parametrize(("ending", "module"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_files_may_be_packed(theory, tmp_path, ending, module, capsys):
    path, out = tmp_path / f"rows.csv{ending}", tmp_path / f"answers.csv{ending}"
    text = "a,b\n" + "1,\n0,0.5\n" * 500
    path.write_bytes(module.compress(text.encode()))
    assert main(["ask", theory, "b", "--rows", str(path), "-o", str(out)]) == 0
    packed = module.decompress(out.read_bytes()).decode()
    (tmp_path / "rows.csv").write_text(text)
    assert main(["ask", theory, "b", "--rows", str(tmp_path / "rows.csv")]) == 0
    capsys.readouterr()
    assert main(["ask", theory, "b", "--rows", str(tmp_path / "rows.csv")]) == 0
    assert capsys.readouterr().out == packed
    path.write_bytes(module.compress(text.encode())[:-20])
    assert main(["ask", theory, "b", "--rows", str(path), "-o", str(tmp_path / "none.csv")]) == 2
    assert "cannot read" in said(capsys)
    assert not (tmp_path / "none.csv").exists()
    path.write_text(text)
    assert main(["ask", theory, "b", "--rows", str(path)]) == 2
    assert "it is not packed like that" in said(capsys)


def test_a_bomb_is_a_named_limit(theory, tmp_path, capsys):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + (b" " * 1000 + b"\n") * (1 << 16)))
    assert main(["ask", theory, "b", "--rows", str(path), "-o", str(tmp_path / "none.csv")]) == 2
    assert "(limit MAX_RATIO)" in said(capsys)


# --- many rows ---------------------------------------------------------------------------------------


def test_rows_are_answered_in_parts_that_make_one_whole(theory, rows, monkeypatch, capsys):
    rng = random.Random(0)
    cells = [[rng.choice(["", "0", "1", f"{rng.random():.3f}"]) for _ in "ab"] for _ in range(50)]
    text = "a,b\n" + "".join(",".join(row) + "\n" for row in cells)
    assert main(["ask", theory, "'c, d'", "--rows", rows(text)]) == 0
    whole = capsys.readouterr()
    monkeypatch.setattr(evidence, "ROWS", 7)
    assert main(["ask", theory, "'c, d'", "--rows", rows(text)]) == 0
    assert capsys.readouterr() == whole


def test_a_hundred_thousand_rows_need_no_more_room_than_some_thousand(theory, rows, tmp_path):
    rng = random.Random(0)
    lines = [f"{rng.choice('01')},{rng.random():.4f}\n" for _ in range(100_000)]
    out = tmp_path / "answers.csv"
    most = []
    for number in (10, 10_000, 100_000):
        path = rows("a,b\n" + "".join(lines[:number]))
        tracemalloc.start()
        try:
            assert main(["ask", theory, "b", "--rows", path, "-o", str(out)]) == 0
            most.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        with out.open() as file:
            assert sum(1 for _ in file) == number + 1
    assert most[2] < most[1] + (4 << 20)  # one number a row stays for the summary


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_interrupted_there_is_the_old_file_or_none(theory, rows, tmp_path, monkeypatch, error, capsys):
    monkeypatch.setattr(evidence, "ROWS", 2)
    ask, calls = Reasoner.ask, []

    def interrupted(self, *args, **options):
        calls.append(args)
        if len(calls) == 3:
            raise error
        return ask(self, *args, **options)

    monkeypatch.setattr(Reasoner, "ask", interrupted)
    out = tmp_path / "answers.csv"
    for before in (None, "old\n"):
        if before is not None:
            out.write_text(before)
        calls.clear()
        assert main(["ask", theory, "b", "--rows", rows("a\n" + "1\n" * 9), "-o", str(out)]) != 0
        assert len(calls) == 3
        assert (out.read_text() if out.exists() else None) == before
        assert {path.name for path in tmp_path.iterdir()} <= {"rows.csv", "theory.lbm", "answers.csv"}


def test_out_of_time_nothing_is_written(theory, rows, tmp_path, counted_clock, capsys):
    counted_clock.step = 1.0
    out = tmp_path / "answers.csv"
    assert main(["ask", theory, "b", "--rows", rows("a\n1\n"), "-o", str(out), "--seconds", "2"]) == 3
    assert "in time" in said(capsys)
    assert not out.exists()


def test_on_a_terminal_a_bar_moves_with_the_bytes_that_were_read(theory, rows, monkeypatch):
    moved = []

    class Bar:
        def __init__(self, *args, **options):
            self.args = args

        def __enter__(self):
            return moved.append

        def __exit__(self, *error):
            return None

    monkeypatch.setattr(shared, "bar", Bar)
    monkeypatch.setattr(evidence, "ROWS", 2)
    text = "a\n" + "1\n" * 5
    assert main(["ask", theory, "b", "--rows", rows(text)]) == 0
    assert moved == [6, 10, len(text)]


def test_theories_of_a_thousand_atoms_take_rows_of_all_of_them(tmp_path, rows, capsys):
    path = tmp_path / "chain.lbm"
    path.write_text("\n".join(f"1: x{i} -> x{i + 1}" for i in range(999)), encoding="utf-8")
    rng = np.random.default_rng(0)
    table = rng.choice(["", "0", "1", "0.25"], p=[0.7, 0.1, 0.1, 0.1], size=(20, 1000)).tolist()
    text = ",".join(f"x{i}" for i in range(1000)) + "\n" + "".join(",".join(row) + "\n" for row in table)
    assert main(["ask", str(path), "x500", "--rows", rows(text), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["probabilities"]
    numbers = np.array([[float(cell or "nan") for cell in row] for row in table])
    expected = lbm.ask(lbm.Theory.load(path), "x500", given=numbers).probability
    assert found == pytest.approx(expected.tolist(), abs=1e-12)
