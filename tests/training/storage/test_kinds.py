"""lbm.load and lbm.save: theories, machines and models by one door, and one clear error for all else."""

import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lbm
from lbm.errors import FileError, LbmError, MachineFileError, ParseError
from lbm.machine.store import to_bytes
from tests.strategies import theories

NIXON = lbm.Theory.parse("1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p")
MACHINE = to_bytes(lbm.translate(NIXON))


def archive(metadata):
    """Return a safetensors file without arrays whose header says this."""
    header = json.dumps({"__metadata__": metadata}).encode()
    return len(header).to_bytes(8, "little") + header


def classifier():
    return lbm.LBMClassifier.from_knowledge(
        "bird & ~penguin -> flies", target="flies", columns=["bird", "penguin"]
    )


def test_packed_theories_are_loaded_and_a_machine_may_have_any_other_name(tmp_path):
    lbm.save(NIXON, tmp_path / "nixon.lbm.gz")
    assert lbm.load(tmp_path / "nixon.lbm.gz") == NIXON
    (tmp_path / "nixon.lbm.gz").rename(tmp_path / "packed")
    assert lbm.load(tmp_path / "packed") == NIXON
    lbm.save(lbm.translate(NIXON), tmp_path / "machine.gz")
    assert isinstance(lbm.load(tmp_path / "machine.gz"), lbm.Machine)
    with pytest.raises(FileError, match=r"names that end in \.cnf are for theories"):
        lbm.save(lbm.translate(NIXON), tmp_path / "machine.cnf.gz")


@given(theories())
def test_a_theory_comes_back_as_it_was(tmp_path_factory, theory):
    assume(theory.atoms or len(theory))  # a file that says nothing is refused, so `true` is written
    path = tmp_path_factory.mktemp("kinds") / "theory.lbm"
    lbm.save(theory, path)
    assert lbm.load(path) == theory


@pytest.mark.parametrize("name", ["t.lbm", "t.LBM", "t.wcnf", "t.txt", "t"])
def test_the_ending_says_how_a_theory_is_written(name, tmp_path):
    theory = lbm.Theory.parse("~a | b\n3: a")
    lbm.save(theory, tmp_path / name)
    assert lbm.load(str(tmp_path / name)) == theory
    assert (tmp_path / name).read_text().startswith("c atom 1 a" if "wcnf" in name else "~a | b")


def test_a_file_of_clauses_without_an_ending_gives_itself_away(tmp_path):
    (tmp_path / "problem.dat").write_text("p cnf 2 1\n1 -2 0\n")
    assert str(lbm.load(tmp_path / "problem.dat")) == "x1 | ~x2"


@pytest.mark.parametrize("name", ["m", "m.machine", "m.lbmm", "m.txt"])
def test_a_machine_comes_back_whatever_its_name(name, tmp_path):
    machine = lbm.translate(NIXON)
    lbm.save(machine, tmp_path / name)
    again = lbm.load(tmp_path / name)
    assert (again.equation(), again.theory) == (machine.equation(), NIXON)


def test_what_a_file_holds_counts_more_than_its_name(tmp_path):
    (tmp_path / "m.lbm").write_bytes(MACHINE)
    assert isinstance(lbm.load(tmp_path / "m.lbm"), lbm.Machine)


def test_a_classifier_comes_back_and_the_older_names_read_the_same_file(tmp_path):
    model = classifier()
    lbm.save(model, tmp_path / "m")
    lbm.save_model(model, tmp_path / "older")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "older").read_bytes()
    for again in (lbm.load(tmp_path / "m"), lbm.load_model(tmp_path / "m")):
        assert isinstance(again, lbm.LBMClassifier)
        assert again.confidences_ == model.confidences_


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_theory_is_read_from_a_pipe_which_is_opened_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a -> b\n",))
    writer.start()
    assert str(lbm.load(tmp_path / "pipe")) == "a -> b"
    writer.join()


# --- what is loaded ------------------------------------------------------------------------------

QUIET = """
import sys, lbm
theory = lbm.load(sys.argv[1])
lbm.save(theory, sys.argv[2] + ".lbm")
print(*sorted({"numpy", "scipy", "safetensors", "torch", "sklearn", "pandas"} & set(sys.modules)))
machine = lbm.load(sys.argv[3])
lbm.save(machine, sys.argv[2])
print(*sorted({"torch", "sklearn", "pandas"} & set(sys.modules)))
sys.modules["sklearn"] = None
try:
    lbm.load(sys.argv[4])
except lbm.errors.MissingExtra as error:
    print(error)
"""


def test_only_a_model_needs_the_extra_and_theories_do_without_arrays(tmp_path):
    (tmp_path / "t.lbm").write_text("a -> b\n")
    (tmp_path / "m").write_bytes(MACHINE)
    (tmp_path / "model").write_bytes(archive({"lbm-model": "{}"}))
    arguments = [tmp_path / name for name in ("t.lbm", "out", "m", "model")]
    done = subprocess.run(
        [sys.executable, "-c", QUIET, *arguments], check=True, capture_output=True, text=True
    )
    theory, machine, model = done.stdout.splitlines()
    assert (theory, machine) == ("", "")
    assert model.startswith("lbm.load_model needs the package scikit-learn")


# --- what is refused -----------------------------------------------------------------------------

FOREIGN = {
    "pickle.pkl": (pickle.dumps({"a": 1}), r"found a binary file that begins b'\x80"),
    "picture": (b"\x89PNG\r\n\x1a\n\0\0", "found a binary file that begins"),
    "latin": (b"caf\xe9 -> wet", "found a binary file that begins"),
    "table.csv": (b"a,b\n1,0\n", "found a file that ends in .csv: let it end in .lbm, .cnf or .wcnf"),
    "text.lbmm": (b"a -> b\n", "found a file that ends in .lbmm"),
    "nothing.bin": (b"", "found a file that ends in .bin"),
    "other": (archive({"format": "pt"}), "found a safetensors file that is not of lbm, or is damaged"),
    "bare": (archive(None), "not of lbm, or is damaged"),
    "pairs": (archive([["lbm-machine", "{}"]]), "damaged"),
    "number": (archive(7), "not of lbm, or is damaged"),
    "long": ((2**40).to_bytes(8, "little") + b"{" + bytes(50), "not of lbm, or is damaged"),
    "deep": ((2**15).to_bytes(8, "little") + b'{"a":' + b"[" * 2**15, "not of lbm, or is damaged"),
    "cut": (MACHINE[:100], "not of lbm, or is damaged: save it again with lbm.save"),
    "short": (MACHINE[:-3], "expected a whole safetensors file"),
    "flipped": (MACHINE[:-3] + b"abc", "the file is damaged"),
    "checkpoint": (archive({"lbm-checkpoint": "{}"}), "found a checkpoint: `lbm train --resume`"),
    "model": (archive({"lbm-model": "{}"}), "expected the header of an lbm-model"),
    "machine": (archive({"lbm-machine": "{}"}), "expected a version from 1 up"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_none_of_ours_is_one_clear_error(name, tmp_path):
    data, message = FOREIGN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(MachineFileError) as caught:
        lbm.load(tmp_path / name)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / name}: expected ")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.lbm", b"a\nb &", "a.lbm:2:4: expected a formula, found the end of the text"),
        ("a", b"a b", "a:1:3: expected an operator"),
        ("empty.lbm", b"", "expected a theory, found an empty text"),
        ("empty", b"", "expected a theory, found an empty text"),
        ("binary.cnf", b"\0\1", "binary.cnf:1:1: expected text in UTF-8, found a NUL byte"),
        ("half.cnf", b"p cnf 2 2\n1 0\n", "the header promises 2 clauses, the file has 1"),
    ],
)
def test_a_theory_that_cannot_be_read_is_refused_as_theory_load_refuses_it(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ParseError) as caught:
        lbm.load(tmp_path / name)
    with pytest.raises(ParseError) as expected:
        lbm.Theory.load(tmp_path / name)
    assert message in str(caught.value)
    assert str(caught.value) == str(expected.value)


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda data: b"\x20" + bytes(7) + b"{" + data))
def test_any_bytes_are_read_or_are_one_error_of_ours(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("kinds") / "file"
    path.write_bytes(data)
    with suppress(LbmError):
        lbm.load(path)


def test_a_file_that_cannot_be_opened_is_one_error(tmp_path):
    for path, reason in (
        (tmp_path, "directory"),
        (tmp_path / "none", "No such file"),
        ("a\0b", "no file can"),
    ):
        with pytest.raises(FileError, match=reason):
            lbm.load(path)
    with pytest.raises(TypeError, match="expected the path of a file, got 3"):
        lbm.load(3)


@pytest.mark.parametrize("make", [lambda: lbm.translate(NIXON), classifier], ids=["machine", "model"])
@pytest.mark.parametrize("name", ["t.lbm", "t.CNF", "t.wcnf"])
def test_a_machine_or_a_model_never_takes_the_name_of_a_theory(make, name, tmp_path):
    (tmp_path / name).write_text("a -> b\n")
    with pytest.raises(FileError, match=r"are for theories, and this is a .*: choose another ending"):
        lbm.save(make(), tmp_path / name)
    assert (tmp_path / name).read_text() == "a -> b\n"


@pytest.mark.parametrize("thing", [3, None, "a -> b", lbm.parse("a -> b"), NIXON.statements])
def test_what_has_no_file_is_refused(thing, tmp_path):
    with pytest.raises(
        TypeError, match=r"expected a Theory, a Machine, .*, a RelationalModel or a LogicLayer, got"
    ):
        lbm.save(thing, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_theory_is_not_saved_under_an_ending_that_nobody_reads(tmp_path):
    with pytest.raises(FileError, match=r"expected a name that ends in \.lbm, \.cnf or \.wcnf"):
        lbm.save(NIXON, tmp_path / "nixon.machine")
