"""Errors: what they say, on one line too, and that they survive a pickle."""

import builtins
import inspect
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm.errors
from lbm.errors import (
    ClashingLabels,
    ContradictoryKnowledge,
    EvidenceError,
    FileError,
    LbmError,
    LimitExceeded,
    MachineFileError,
    MissingExtra,
    NoAnswer,
    NoRoom,
    NoWorlds,
    ParseError,
    RequestError,
    TooManyCubes,
    TooManyWorlds,
    TrainingDiverged,
    UnknownAtom,
    WeightError,
    WorkersDied,
    WrongDistribution,
    nearest,
)

KINDS = {kind for kind in vars(lbm.errors).values() if inspect.isclass(kind) and issubclass(kind, LbmError)}
SAMPLES = [
    LbmError("plain"),
    ParseError("expected a formula", source="f.lbm", line=2, column=5, excerpt="p & -> q", caret=4),
    ParseError("expected a formula, found nothing"),
    WeightError("a weight of zero says nothing"),
    LimitExceeded("too many", MAX_INSTANCES=7),
    TooManyCubes("too many cubes", max_cubes=128),
    UnknownAtom("brid", ["bird", "penguin"], "machine"),
    UnknownAtom("x", []),
    ContradictoryKnowledge(["a", "~a"]),
    EvidenceError("expected rows"),
    EvidenceError("expected 0 or 1, got 2", "a", 3),
    FileError("cannot read f.lbm: no such file"),
    MachineFileError("f.lbm is no machine"),
    MissingExtra("plots", "drawing", "matplotlib"),
    NoAnswer("no answer within 1 second"),
    NoRoom("a diagram needs more addresses"),
    NoWorlds(),
    ClashingLabels({"ex(a, b)": True, "ex(b, a)": True}),
    RequestError("ask takes no 'qury'; did you mean 'query'?", name="qury"),
    TooManyWorlds("too many worlds", LIMIT=30),
    TrainingDiverged(3, float("inf")),
    WorkersDied([3, 5], 4, "exit code -9"),
    WrongDistribution("block Gibbs samples a machine"),
]


def test_every_error_has_a_sample_here():
    assert {type(sample) for sample in SAMPLES} == KINDS


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle_with_all_its_parts(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.one_line() == error.one_line()
    assert vars(again) == vars(error)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_is_a_builtin_kind_too_and_ends_a_command_with_its_status(error):
    assert isinstance(error, LbmError)
    status = {ClashingLabels: 1, NoWorlds: 1, NoAnswer: 3, TooManyWorlds: 3, WorkersDied: 3}
    assert error.exit_status == status.get(type(error), 2)
    others = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    assert type(error) is LbmError or others[0] not in (builtins.Exception, builtins.BaseException)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_one_line_is_the_message_on_one_line(error):
    line = error.one_line()
    assert "\n" not in line
    assert line
    assert str(error).startswith(line)


def test_a_message_of_many_lines_is_cut_to_its_first():
    assert LbmError("first  line\nsecond").one_line() == "first line"


def test_a_parse_error_shows_the_place():
    error = ParseError("expected a formula", source="f", line=1, column=5, excerpt="p & -> q", caret=4)
    assert str(error) == "f:1:5: expected a formula\n  p & -> q\n      ^"
    assert ParseError("nothing", line=3).one_line() == "3: nothing"
    assert str(ParseError("nothing", source="f")) == "f: nothing"


def test_an_unknown_atom_is_named_with_the_nearest_one():
    assert (
        str(UnknownAtom("brid", ["bird"], "machine"))
        == "no atom 'brid' in this machine; did you mean 'bird'?"
    )
    assert str(UnknownAtom("brid", ["penguin"])) == "no atom 'brid' in this theory"


def test_a_missing_extra_names_the_command_that_installs_it():
    error = MissingExtra("plots", "drawing", "matplotlib")
    assert str(error).endswith("pip install 'logical-boltzmann[plots]'")
    assert "drawing needs the package matplotlib" in str(error)


@given(st.text(min_size=3, max_size=20), st.integers(0, 19), st.characters())
def test_a_name_with_one_wrong_letter_is_recognised(name, place, letter):
    place %= len(name)
    wrong = name[:place] + letter + name[place + 1 :]
    assert nearest(wrong, ["something else entirely: 0123456789", name]) == name


def test_nothing_is_suggested_where_nothing_is_near():
    assert nearest("bird", []) is None
    assert nearest("bird", ["0123", "XYZ"]) is None


def test_a_suggestion_is_never_waited_for():
    start = time.process_time()
    nearest("x12345", (f"x{i}" for i in range(10**9)))
    nearest("".join(map(chr, range(1000, 60_000))), ["".join(map(chr, range(1001, 60_001)))] * 50)
    assert time.process_time() - start < 60  # all of them would take an hour
