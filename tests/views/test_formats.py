"""Files of every format on the command line: what they become, and one line where they are wrong."""

import bz2
import gzip
import io
import json
import lzma
import math
import sys
from fractions import Fraction

import pytest

from lbm.views.entry import main

WEIGHTED = (
    "p cnf 2 1\nc t wmc\n1 2 0\n"
    "c p weight 1 1/3 0\nc p weight -1 2/3 0\nc p weight 2 1/4 0\nc p weight -2 3/4 0\n"
)
CANCER = "BAYES 2 2 3 2 1 0 2 0 1 2 0.2 0.8 6 0.5 0.25 0.25 0.1 0.2 0.7\n"
FILES = {
    "weighted.cnf": WEIGHTED,
    "shown.cnf": "c t pwmc\np cnf 3 2\n1 2 0\n-1 3 0\nc p show 1 2 0\nc p weight 1 2 0\nc p weight -1 3 0\n",
    "none.cnf": "c t wmc\np cnf 1 1\n1 0\nc p weight 1 0 0\nc p weight -1 2 0\n",
    "whole.cnf": "p cnf 2 1\n1 2 0\nw 1 2\nw -1 3\n",
    "plain.cnf": "p cnf 2 3\n1 2 0\n-1 0\n-2 0\n",
    "decimal.wcnf": "h 1 2 0\n0.5 -1 0\n1.25 -2 0\n",
    "net.uai": CANCER,
    "net.uai.evid": "1 1 2\n",
    "a.sdd": "sdd 4\nL 0 0 1\nL 1 0 -1\nL 2 2 2\nD 3 1 1 0 2\n",
    "circle.nnf": "o 1 0\no 2 0\n1 2 1 0\n2 1 2 0\n",
    "track.cnf": "c t sat\np cnf 1 1\n1 0\n",
    "minus.cnf": "p cnf 1 1\n1 0\nc p weight 1 -1 0\nc p weight -1 1 0\n",
    "size.uai": "MARKOV 1 2 1 1 0 3 1 2 3\n",
    "negative.uai": "MARKOV 1 2 1 1 0 2 1 -2\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Put the files into a directory of their own, and work there."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def lbm(capsys, monkeypatch):
    """Run a command in this process; return its status, its lines and those on standard error."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out.splitlines(), err.splitlines()

    return call


def refused(answer, *words):
    status, lines, err = answer
    assert (status, lines, len(err)) == (2, [], 1)
    for word in words:
        assert word in err[0]


# --- weights of literals ---------------------------------------------------------------------------


def test_a_weighted_file_is_counted_by_weight_unless_models_are_asked_for(lbm):
    assert lbm("count", "weighted.cnf") == (0, ["1/2 = 0.5"], [])
    assert lbm("count", "weighted.cnf", "--unweighted") == (0, ["3"], [])
    assert lbm("count", "weighted.cnf", "--given", "~x1") == (0, ["1/6 = 0.166666666666667"], [])
    assert lbm("count", "whole.cnf") == (0, ["7"], [])
    assert lbm("count", "shown.cnf") == (0, ["7"], [])
    assert lbm("count", "shown.cnf", "--unweighted") == (0, ["3"], [])
    assert lbm("count", "shown.cnf", "--project", "x1") == (0, ["5"], [])
    assert lbm("count", "none.cnf") == (1, ["0"], [])
    assert lbm("count", "none.cnf", "--unweighted") == (0, ["1"], [])


def test_a_weighted_count_is_text_and_a_number_for_programs(lbm):
    _, lines, _ = lbm("count", "weighted.cnf", "--json", "--given", "x1 & x2")
    assert json.loads("\n".join(lines)) == {"count": "1/12", "decimal": pytest.approx(1 / 12)}
    _, lines, _ = lbm("count", "weighted.cnf", "--json", "--unweighted")
    assert json.loads("\n".join(lines)) == {"count": "3"}
    text = "p cnf 2 0\nw 1 1e-999\nw -1 1e-999\nw 2 1e999\nw -2 1\n"
    _, lines, _ = lbm("count", "-", "--json", stdin=text.encode())
    found = json.loads("\n".join(lines))
    assert Fraction(found["count"]) == Fraction(2, 10**999) * (10**999 + 1)
    _, lines, _ = lbm("count", "-", "--json", stdin=text.replace("2 1e999", "2 1").encode())
    assert json.loads("\n".join(lines))["decimal"] is None


def test_every_other_question_knows_what_literals_weigh(lbm):
    assert lbm("ask", "weighted.cnf", "x1")[1][0] == "P(x1) = 0.666667"
    assert lbm("best", "weighted.cnf")[1][0] == "x1=1 x2=0"
    assert float(lbm("log-partition", "weighted.cnf")[1][0]) == pytest.approx(math.log(0.5))
    assert lbm("check", "weighted.cnf")[0] == 0
    assert lbm("marginals", "weighted.cnf")[1][:2] == ["x1  0.666667", "x2  0.5"]
    assert lbm("convert", "weighted.cnf", "-o", "a.lbm")[0] == 0
    assert lbm("ask", "a.lbm", "x1")[1][0] == "P(x1) = 0.666667"
    assert lbm("convert", "weighted.cnf", "-o", "b.cnf")[0] == 0
    assert lbm("count", "b.cnf") == (0, ["1/2 = 0.5"], [])


def test_what_a_counting_file_asks_in_vain_is_one_line(lbm):
    refused(lbm("count", "track.cnf"), "track.cnf:1:5: expected a task among mc, wmc, pmc, pwmc, found 'sat'")
    refused(lbm("count", "minus.cnf"), "minus.cnf:3:14: literals weigh 0 or more, found -1")


def test_a_file_that_counts_models_leaves_weights_out_and_says_so(lbm):
    status, lines, err = lbm("count", "-", stdin=WEIGHTED.replace("wmc", "mc").encode())
    assert (status, lines) == (0, ["3"])
    assert err == ["lbm: warning: <stdin>:2:1: 'c t mc' asks for no weights: those of literals are left out"]


# --- Max-SAT ---------------------------------------------------------------------------------------


def test_decimal_weights_of_a_wcnf_file_are_exact(lbm):
    assert lbm("best", "decimal.wcnf", "--dimacs")[1] == ["o 0.5", "s OPTIMUM FOUND", "v 1 -2 0"]
    assert lbm("convert", "decimal.wcnf", "--to", "lbm")[1] == ["x1 | x2", "0.5: ~x1", "1.25: ~x2"]


def test_an_unweighted_file_can_be_read_as_max_sat(lbm):
    assert lbm("check", "plain.cnf")[0] == 1
    assert lbm("check", "plain.cnf", "--hard-as-soft")[0] == 0
    assert lbm("best", "plain.cnf", "--hard-as-soft", "--dimacs")[1][0] == "o 1"
    assert lbm("convert", "plain.cnf", "--hard-as-soft", "--to", "wcnf")[1] == ["1 1 2 0", "1 -1 0", "1 -2 0"]
    assert lbm("count", "plain.cnf", "--hard-as-soft") == (0, ["4"], [])
    refused(lbm("best", "decimal.wcnf", "--hard-as-soft"), "from .cnf files, and decimal.wcnf is none")
    refused(lbm("best", "weighted.cnf", "--hard-as-soft"), "weighted.cnf weighs literals")
    refused(lbm("count", "plain.cnf", "--hard-as-soft", "--soft-as-hard"), "not for both")


# --- networks ----------------------------------------------------------------------------------------


def test_a_network_answers_in_our_form_and_in_that_of_competitions(lbm):
    observed = ("--evidence", "net.uai.evid")
    right = 0.2 * 0.25 + 0.8 * 0.7
    status, lines, err = lbm("log-partition", "net.uai", *observed)
    assert (status, float(lines[0]), err) == (0, pytest.approx(math.log(right)), [])
    status, lines, err = lbm("log-partition", "net.uai", *observed, "--form", "uai")
    assert (status, lines[0], float(lines[1]), err) == (0, "PR", pytest.approx(math.log10(right)), [])
    status, lines, err = lbm("marginals", "net.uai", *observed, "--form", "uai")
    words = lines[1].split()
    assert (status, lines[0], len(lines), words[:2], words[4], err) == (0, "MAR", 2, ["2", "2"], "3", [])
    assert [float(words[i]) for i in (2, 3, 5, 6, 7)] == pytest.approx([0.05 / right, 0.56 / right, 0, 0, 1])
    assert lbm("marginals", "net.uai", *observed)[1][1:4] == ["'v1 = 0'  0", "'v1 = 1'  0", "'v1 = 2'  1"]


def test_evidence_that_lies_beside_a_network_is_read_if_it_is_asked_for(lbm):
    status, lines, err = lbm("log-partition", "net.uai")
    assert (status, float(lines[0])) == (0, pytest.approx(0, abs=1e-12))
    assert err == ["lbm: net.uai.evid is not read: --evidence reads it"]
    refused(lbm("ask", "plain.cnf", "x1", "--evidence", "net.uai.evid"), "files of evidence go with .uai")
    refused(lbm("ask", "net.uai", "v0", "--evidence", "none.evid"), "cannot read none.evid")
    refused(
        lbm("ask", "net.uai", "v0", "--evidence", "net.uai"),
        "net.uai:1:1: expected the number of observations",
    )


def test_a_network_may_come_by_standard_input(lbm):
    assert lbm("ask", "-", "v0", stdin=CANCER.encode())[1][0] == "P(v0) = 0.8"
    assert lbm("log-partition", "-", "--form", "uai", stdin=CANCER.encode())[1][0] == "PR"


def test_the_form_of_competitions_is_for_networks_and_is_no_json(lbm):
    for command in ("log-partition", "marginals"):
        refused(lbm(command, "plain.cnf", "--form", "uai"), "expected a network")
        refused(lbm(command, "net.uai", "--form", "uai", "--json"), "not for both")
        refused(lbm(command, "net.uai", "--form", "xml"), "'xml' is not one of 'uai'")


def test_a_network_that_is_wrong_is_one_line(lbm):
    refused(lbm("log-partition", "size.uai"), "size.uai:1:18: expected 2 entries of table 0")
    refused(
        lbm("log-partition", "negative.uai"), "negative.uai:1:22: expected an entry of table 0, 0 or more"
    )


# --- circuits ----------------------------------------------------------------------------------------


def test_a_circuit_is_converted_to_nnf(lbm):
    assert lbm("convert", "a.sdd", "-o", "a.nnf.gz") == (0, [], [])
    assert lbm("convert", "a.nnf.gz")[1] == ["nnf 3 2 2", "L 1", "L 2", "A 2 0 1"]
    _, lines, _ = lbm("convert", "a.sdd", "-o", "a.nnf", "--json")
    assert json.loads("\n".join(lines)) == {
        "input": "a.sdd",
        "output": "a.nnf",
        "format": "nnf",
        "atoms": 2,
        "formulae": 1,
    }
    refused(lbm("convert", "circle.nnf"), "circle.nnf:1:1: the circuit is circular")
    refused(lbm("convert", "a.sdd", "-o", "b.sdd"), "expected a name that ends in .lbm, .cnf or .wcnf")


def test_a_circuit_is_a_theory_for_every_command(lbm):
    assert lbm("convert", "a.sdd", "-o", "a.cnf") == (0, [], [])
    assert lbm("count", "a.cnf")[1] == ["1"]
    assert lbm("convert", "a.sdd", "--to", "lbm")[1] == ["x1 & x2"]
    assert lbm("count", "a.sdd")[1] == ["1"]
    assert lbm("count", "a.sdd", "--variables", "4")[1] == ["4"]
    assert lbm("count", "-", stdin=b"sdd 1\nL 0 0 -2\n")[1] == ["2"]
    assert lbm("count", "-", stdin=b"c said\nnnf 1 1 3\nL 3\n")[0] == 2
    assert lbm("count", "-", stdin=b"c said\nnnf 1 0 3\nL 3\n")[1] == ["4"]
    assert lbm("count", "-", stdin=b"o 1 0\nt 2 0\n1 2 -1 0\n1 2 1 2 0\n")[1] == ["3"]
    assert lbm("check", "a.sdd")[1][0] == "a.sdd: 2 atoms, 1 formula (1 hard, 0 soft)"
    assert lbm("entails", "a.sdd", "x1 | x2")[0] == 0
    assert lbm("ask", "a.sdd", "~x1")[1][0] == "P(~x1) = 0"
    refused(lbm("count", "circle.nnf"), "circle.nnf:1:1: the circuit is circular")
    refused(lbm("count", "weighted.cnf", "--variables", "4"), "a number of variables goes with circuits")


def test_a_theory_is_compiled_to_a_circuit(lbm, tmp_path):
    (tmp_path / "rule.lbm").write_text("atoms rain, wet, dry\nrain -> wet\nwet ^ dry\n")
    assert lbm("convert", "rule.lbm", "-o", "rule.nnf.gz") == (0, [], [])
    assert lbm("models", "rule.nnf.gz")[1] == lbm("models", "rule.lbm")[1]
    assert lbm("convert", "rule.lbm", "--to", "nnf")[1][:3] == [
        "c atom 1 rain",
        "c atom 2 wet",
        "c atom 3 dry",
    ]
    assert lbm("convert", "plain.cnf", "--to", "nnf")[1] == ["nnf 1 0 2", "O 0 0"]
    (tmp_path / "soft.lbm").write_text("a\n2: b\n")
    refused(
        lbm("convert", "soft.lbm", "-o", "a.nnf"),
        "a circuit has no weights, and this theory says '2: b'",
    )
    refused(
        lbm("convert", "weighted.cnf", "-o", "a.nnf"),
        "a circuit has no weights, and this theory says '0.69",
    )


# --- packed files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_packed_files_are_read_and_written_by_every_command(lbm, tmp_path, ending, pack):
    for name in ("weighted.cnf", "net.uai", "decimal.wcnf"):
        (tmp_path / (name + ending)).write_bytes(pack(FILES[name].encode()))
    assert lbm("count", f"weighted.cnf{ending}") == (0, ["1/2 = 0.5"], [])
    assert lbm("count", "-", stdin=pack(WEIGHTED.encode())) == (0, ["1/2 = 0.5"], [])
    assert lbm("log-partition", f"net.uai{ending}", "--form", "uai")[1][0] == "PR"
    assert lbm("convert", f"decimal.wcnf{ending}", "-o", f"a.wcnf{ending}")[0] == 0
    assert lbm("best", f"a.wcnf{ending}", "--dimacs")[1][0] == "o 50"
    assert lbm("sample", f"weighted.cnf{ending}", "-n", "3", "-o", f"a.csv{ending}")[0] == 0
    (tmp_path / f"cut.cnf{ending}").write_bytes(pack(WEIGHTED.encode())[:-9])
    refused(
        lbm("count", f"cut.cnf{ending}"), f"cannot read cut.cnf{ending}: it ends before what is packed in it"
    )
