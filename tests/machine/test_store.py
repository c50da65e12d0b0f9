"""Machine files: what is saved is loaded, and nothing else is."""

import hashlib
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as serialize
from scipy.sparse import csc_array

from lbm.errors import FileError, LbmError, LimitExceeded, MachineFileError
from lbm.knowledge import lexer
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import atom, conjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine import store
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from tests.strategies import awkward_names, theories

NIXON = Theory.parse("1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p")
XORS = Theory([" ^ ".join(f"x{i}" for i in range(12)), (Decimal("-2.50"), "x1 & x2")])


def packed(weights=None):
    """Return a theory of packed clauses: a | ~b, and the empty clause, and b."""
    clauses = Clauses(
        ("a", "b"), np.array([1, -2, 2], dtype=np.int32), np.array([0, 2, 2, 3], dtype=np.int64)
    )
    return Theory.from_clauses(clauses, None if weights is None else np.array(weights, dtype=np.int64))


ARRAYS = ("visible_bias", "hidden_bias", "unit_weights", "owner", "unit")
SCALARS = ("atoms", "definitions", "epsilon", "offset", "hard_weight", "theory", "calibrated")


def assert_same(one, other):
    """Check that two machines are equal to the last bit."""
    for name in SCALARS:
        assert getattr(one, name) == getattr(other, name)
        assert type(getattr(one, name)) is type(getattr(other, name))
    pairs = [(getattr(one, name), getattr(other, name)) for name in ARRAYS]
    pairs += [
        (getattr(one.weights, name), getattr(other.weights, name)) for name in ("data", "indices", "indptr")
    ]
    assert one.weights.shape == other.weights.shape
    for left, right in pairs:
        assert left.dtype.kind == right.dtype.kind
        assert left.astype(right.dtype).tobytes() == right.tobytes()
    if one.theory is not None:
        assert (one.theory.clauses is None) == (other.theory.clauses is None)


def loaded(content, folder):
    path = folder / "m.machine"
    path.write_bytes(content)
    return store.load(path)


def taken_apart(content):
    """Return what the header of a machine file says, and its arrays, without any code of the library."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    facts = json.loads(header.pop("__metadata__")["lbm-machine"])
    types = {"F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}
    body = content[8 + length :]
    arrays = {
        name: np.frombuffer(body[slice(*part["data_offsets"])], types[part["dtype"]]).reshape(part["shape"])
        for name, part in header.items()
    }
    return facts, arrays


def signed(facts, arrays):
    """Return a machine file with these contents and the checksum that docs/machine-file.md specifies."""
    said = {name: value for name, value in facts.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(arrays):
        kind = {"float64": "f8", "int32": "i4", "int64": "i8", "uint8": "u1"}.get(
            arrays[name].dtype.name, "?"
        )
        digest.update(f"\n{name} {kind} {len(arrays[name])}\n".encode() + arrays[name].tobytes())
    return serialize(arrays, {"lbm-machine": json.dumps(said | {"sha256": digest.hexdigest()})})


MACHINES = {
    "nixon": translate(NIXON),
    "definitions": translate(XORS, budget=8),
    "penalty": translate(NIXON, encoding="penalty", epsilon=0.1),
    "clauses": translate(packed()),
    "weighted clauses": translate(packed([3, 0, 5])),
    "no theory": Machine(("x",), csc_array(np.array([[1.5, 0.0]])), np.array([0.25]), np.array([-0.5, -0.0])),
    "calibrated": translate(Theory.parse("2: a -> b"), units="calibrated"),
    "no atoms": translate(parse("true")),
    "nothing": translate(Theory()),
    "always true": translate(Theory([(2, "a | ~a")])),
}


# --- what is saved is loaded ---------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_comes_back_to_the_last_bit(name, tmp_path):
    machine = MACHINES[name]
    store.save(machine, tmp_path / "m.machine")
    assert_same(machine, store.load(tmp_path / "m.machine"))


@given(theories(), st.sampled_from(["sdnf", "penalty"]), st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_any_translated_theory_comes_back_to_the_last_bit(tmp_path_factory, theory, encoding, epsilon):
    machine = translate(theory, encoding=encoding, epsilon=epsilon)
    content = store.to_bytes(machine)
    again = loaded(content, tmp_path_factory.mktemp("store"))
    assert_same(machine, again)
    assert store.to_bytes(again) == content


@given(st.lists(awkward_names, min_size=1, max_size=4))
def test_names_of_any_kind_come_back(tmp_path_factory, names):
    machine = translate(Theory([conjunction(map(atom, names))]))
    assert loaded(store.to_bytes(machine), tmp_path_factory.mktemp("store")).atoms == machine.atoms


def test_the_same_machine_gives_the_same_bytes_in_every_run(tmp_path):
    code = (
        "import lbm, sys; theory = lbm.Theory([(3, 'a -> b'), ('-1.5', 'a ^ b'), 'exactly(1, a, b, c)']); "
        "lbm.save(lbm.translate(theory), sys.argv[1])"
    )
    for seed in "012":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / seed], check=True, env=environment)
    assert len({(tmp_path / seed).read_bytes() for seed in "012"}) == 1


def test_columns_in_any_order_are_stored_in_the_order_of_atoms(tmp_path):
    weights = csc_array((np.array([2.0, 1.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(2, 1))
    machine = Machine(("x", "y"), weights, np.zeros(2), np.zeros(1), unit_weights=np.ones(1))
    again = loaded(store.to_bytes(machine), tmp_path)
    assert (again.weights.indices.tolist(), again.weights.data.tolist()) == ([0, 1], [1.0, 6.0])
    assert weights.nnz == 3  # the machine itself did not change


def test_clauses_over_fewer_atoms_than_the_machine_has_come_back_as_formulae(tmp_path):
    machine = Machine(("c", "b", "a"), csc_array((3, 0)), np.zeros(3), np.zeros(0), theory=packed([3, 0, 5]))
    again = loaded(store.to_bytes(machine), tmp_path)
    assert again.theory == machine.theory


def test_an_independent_reader_finds_what_the_specification_says():
    facts, arrays = taken_apart(store.to_bytes(MACHINES["definitions"]))
    machine = MACHINES["definitions"]
    assert arrays["atoms"].tobytes().decode().split("\n") == list(machine.atoms)
    assert arrays["theory.text"].tobytes().decode() == str(machine.theory)
    assert facts["definitions"] == len(machine.definitions) > 0
    assert (facts["version"], facts["theory"], facts["formulae"]) == (1, "text", 2)


@pytest.mark.parametrize("name", MACHINES)
def test_an_independent_writer_of_the_specification_writes_what_is_loaded(name, tmp_path):
    facts, arrays = taken_apart(store.to_bytes(MACHINES[name]))
    assert_same(MACHINES[name], loaded(signed(facts, arrays), tmp_path))


def test_a_file_of_the_first_version_loads_and_saves_to_the_same_bytes(tmp_path):
    """It was written before units could be calibrated, and keeps those it has."""
    old = Path(__file__).with_name("version1.machine").read_bytes()
    again = loaded(old, tmp_path)
    assert store.to_bytes(again) == old == store.to_bytes(translate(again.theory))
    assert again.calibrated == 0


def test_wide_indices_are_read_too(tmp_path):
    facts, arrays = taken_apart(store.to_bytes(MACHINES["nixon"]))
    for name in ("weights.indices", "weights.indptr"):
        arrays[name] = arrays[name].astype(np.int64)
    assert_same(MACHINES["nixon"], loaded(signed(facts, arrays), tmp_path))


def test_importing_the_store_loads_no_arrays():
    code = "import sys, lbm.machine.store; print(*{'numpy', 'scipy', 'safetensors'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""


# --- damage --------------------------------------------------------------------------------------

CONTENT = {name: store.to_bytes(machine) for name, machine in MACHINES.items()}
names = st.sampled_from(list(MACHINES))


@st.composite
def damages(draw):
    """Return a machine's name and its file with bytes flipped, cut out, inserted, or cut off."""
    name = draw(names)
    content = bytearray(CONTENT[name])
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.one_of(st.integers(0, len(content)), st.integers(0, min(header, len(content)))))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "end"]))
        if kind == "flip" and place < len(content):
            content[place] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del content[place : place + draw(st.integers(1, 40))]
        elif kind == "insert":
            content[place:place] = draw(st.binary(min_size=1, max_size=20))
        elif kind == "end":
            del content[place:]
    return name, bytes(content)


@settings(max_examples=1500)
@given(damages())
def test_a_damaged_file_is_one_clear_error_or_still_the_same_machine(tmp_path_factory, damage):
    name, content = damage
    try:
        again = loaded(content, tmp_path_factory.getbasetemp())
    except LbmError as error:
        message = str(error)
    else:
        assert_same(MACHINES[name], again)
        message = ""
    assert "\n" not in message
    assert len(message) < 1000


def test_every_single_flipped_byte_is_noticed(tmp_path):
    content = CONTENT["penalty"]
    for place in range(len(content)):
        flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        try:
            again = loaded(flipped, tmp_path)
        except LbmError:
            continue
        assert_same(MACHINES["penalty"], again)  # a blank of the header, which says nothing


def test_every_cut_is_noticed(tmp_path):
    content = CONTENT["clauses"]
    for end in range(len(content)):
        with pytest.raises(MachineFileError):
            loaded(content[:end], tmp_path)


@settings(max_examples=500)
@given(st.data())
def test_forged_numbers_with_a_right_checksum_load_as_a_sound_machine_or_are_refused(tmp_path_factory, data):
    """An attacker can sign: then what loads must at least be safe to use."""
    facts, arrays = taken_apart(CONTENT[data.draw(names)])
    arrays = {name: array.copy() for name, array in arrays.items()}
    odd = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 3, 7, 2**31 - 1])
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from([name for name in arrays if arrays[name].size] or ["none"]))
        if name != "none":
            kind = arrays[name].dtype.kind
            value = data.draw({"f": st.floats(), "u": st.integers(0, 255), "i": odd}[kind])
            arrays[name][data.draw(st.integers(0, arrays[name].size - 1))] = value
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(facts)))
        facts[name] = data.draw(st.one_of(st.integers(-1, 9), st.floats(), st.text(max_size=3), st.none()))
    try:
        machine = loaded(signed(facts, arrays), tmp_path_factory.getbasetemp())
    except LbmError:
        return
    if len(machine.unit_weights) == machine.hidden:
        list(machine.units)
    if machine.atoms:
        machine.rank_energy(np.zeros(len(machine.atoms)))
    if machine.theory is not None:
        assert set(machine.theory.atoms) <= set(machine.declared)
        list(machine.theory)


# --- what is refused, and in which words ---------------------------------------------------------


def raw(header, body=b"", length=None):
    return (len(header) if length is None else length).to_bytes(8, "little") + header + body


FOREIGN = {
    "empty": (b"", "found an empty file"),
    "short": (b"abc", "found a file that begins b'abc'"),
    "text": (b"1000: n -> r\n", "found a file that begins b'1000: n -"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(50), "found a file that begins"),
    "pickle": (b"\x80\x04\x95" + bytes(30), "found a file that begins"),
    "huge header": (raw(b"{}", length=2**63), "of at most 65536 bytes, found one of 9223372036854775808"),
    "header cut": (raw(b"{}", length=300), "expected a header of 300 bytes, found a file cut short after 10"),
    "no json": (raw(b"{]"), "expected a whole safetensors file"),
    "no utf-8": (raw(b"{\xff\xff}"), "expected a whole safetensors file"),
    "deep json": (raw(b'{"a":' + b"[" * 60_000), "expected a whole safetensors file"),
    "no metadata": (raw(b"{}"), "found a safetensors file of something else"),
    "foreign": (serialize({"x": np.zeros(3)}, {"format": "pt"}), "a safetensors file of something else"),
    "bad facts": (raw(b'{"__metadata__":{"lbm-machine":"{"}}'), "expected a JSON object under 'lbm-machine'"),
    "list": (raw(b'{"__metadata__":{"lbm-machine":"[1]"}}'), "expected a JSON object under 'lbm-machine'"),
    "nested": (
        raw(b'{"__metadata__":{"lbm-machine":"' + b"[" * 50_000 + b'"}}'),
        "expected a JSON object under 'lbm-machine'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_machine_is_refused(name, tmp_path):
    content, message = FOREIGN[name]
    with pytest.raises(MachineFileError) as caught:
        loaded(content, tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "m.machine") + ": ")


def other(name, change):
    """Return a change of one array."""

    def forge(facts, arrays):
        arrays[name] = change(arrays[name].copy())

    return forge


def put(name, place, value):
    """Return a change of one number of one array."""

    def change(array):
        array[place] = value
        return array

    return other(name, change)


def say(**changes):
    """Return a change of the header."""
    return lambda facts, arrays: facts.update(changes)


def drop(name):
    return lambda facts, arrays: arrays.pop(name)


def text(name, content):
    return other(name, lambda _: np.frombuffer(content, dtype=np.uint8))


def add_array(facts, arrays):
    arrays["extra"] = np.zeros(1)


def one_wide(facts, arrays):
    arrays["weights.indptr"] = arrays["weights.indptr"].astype(np.int64)


FORGED = {
    "newer": ("nixon", say(version=3), "written by a newer lbm: expected version 2 at most, found 3"),
    "huge version": ("nixon", say(version=10**4000), "written by a newer lbm"),
    "version 0": ("nixon", say(version=0), "expected a version from 1 up, found 0"),
    "version text": ("nixon", say(version="1"), "expected a version from 1 up, found '1'"),
    "version true": ("nixon", say(version=True), "expected a version from 1 up, found True"),
    "extra fact": ("nixon", say(more=1), "found also ['more']"),
    "count text": ("nixon", say(hidden="7"), "expected a count as hidden, found '7'"),
    "count float": ("nixon", say(hidden=7.0), "expected a count as hidden, found 7.0"),
    "count negative": ("nixon", say(hidden=-7), "expected a count as hidden, found -7"),
    "count huge": ("nixon", say(parts=2**70), "expected a count as parts, found 1180591620717411303424"),
    "count wrong": ("nixon", say(hidden=8), "expected hidden_bias of shape [8], found [7]"),
    "claimed weights": ("nixon", say(weights=10**15), "shape [1000000000000000], found [11]"),
    "claimed atoms": ("nixon", say(atoms=10**15), "shape [1000000000000000], found [4]"),
    "formulae": ("nixon", say(formulae=5), "expected 5 formulae in theory.text, found 4"),
    "formulae packed": ("clauses", say(formulae=4), "expected theory.starts of shape [5], found [4]"),
    "no theory": ("no theory", say(formulae=4), "expected no formulae without a theory, found 4"),
    "definitions": ("nixon", say(definitions=5), "expected at most 4 definitions, found 5"),
    "more definitions": ("nixon", say(definitions=2), "expected a theory about the machine's own atoms"),
    "epsilon 1": ("nixon", say(epsilon=1.0), "expected an epsilon strictly between 0 and 1, found 1.0"),
    "epsilon whole": ("nixon", say(epsilon=1), "expected a finite number as epsilon, found 1"),
    "epsilon nan": ("nixon", say(epsilon=float("nan")), "expected a finite number as epsilon, found nan"),
    "offset": ("nixon", say(offset=float("-inf")), "expected a finite number as offset, found -inf"),
    "hard weight": ("nixon", say(hard_weight=-1.0), "expected a positive hard_weight, found -1.0"),
    "calibrated none": ("calibrated", say(calibrated=0), "expected 1 to 2 calibrated hidden units, found 0"),
    "calibrated more": ("calibrated", say(calibrated=3), "expected 1 to 2 calibrated hidden units, found 3"),
    "calibrated old": ("calibrated", say(version=1), "found also ['calibrated']"),
    "theory kind": ("nixon", say(theory="pickle"), "as theory, found 'pickle'"),
    "theory list": ("nixon", say(theory=["text"]), "as theory, found ['text']"),
    "theory other": ("nixon", say(theory="clauses"), "found no theory.literals, theory.starts and"),
    "missing array": ("nixon", drop("hidden_bias"), "found no hidden_bias"),
    "extra array": ("nixon", add_array, "found also ['extra']"),
    "type": ("nixon", other("hidden_bias", lambda a: a.astype(np.float32)), "F64 in hidden_bias, found F32"),
    "shape": ("nixon", other("hidden_bias", lambda a: a[:, None]), "hidden_bias of shape [7], found [7, 1]"),
    "scalar": ("nixon", other("atoms", lambda a: a[None]), "expected atoms of shape [n], found [1, 7]"),
    "unit weights": ("nixon", other("unit_weights", lambda a: a[:3]), "of shape [7 or 0], found [3]"),
    "two types": ("nixon", one_wide, "expected one type in weights.indices and weights.indptr, found two"),
    "nan": ("nixon", put("weights.data", 0, np.nan), "expected finite numbers in weights.data"),
    "infinity": ("nixon", put("visible_bias", 0, np.inf), "expected finite numbers in visible_bias"),
    "index below": ("nixon", put("weights.indices", 0, -1), "from 0 to 3 in weights.indices, found -1"),
    "index above": ("nixon", put("weights.indices", 1, 4), "from 0 to 3 in weights.indices, found 0 to 4"),
    "index twice": ("nixon", put("weights.indices", 1, 0), "expected ascending atoms within each"),
    "start": ("nixon", put("weights.indptr", 0, 1), "expected weights.indptr to rise from 0 to 11"),
    "end": ("nixon", put("weights.indptr", -1, 13), "expected weights.indptr to rise from 0 to 11"),
    "middle": ("nixon", put("weights.indptr", 3, 2**31 - 1), "expected weights.indptr to rise from 0 to 11"),
    "owner": ("nixon", put("owner", 0, 4), "expected numbers from 0 to 3 in owner, found 0 to 4"),
    "unit": ("nixon", put("unit", 0, -1), "expected numbers from 0 to 6 in unit, found -1 to 6"),
    "literal 0": ("clauses", put("theory.literals", 0, 0), "expected literals that are not 0"),
    "literal above": ("clauses", put("theory.literals", 0, 3), "from -2 to 2 in theory.literals, found"),
    "literal below": ("clauses", put("theory.literals", 0, -(2**31)), "found -2147483648 to 2"),
    "clauses": ("clauses", put("theory.starts", 1, 9), "expected theory.starts to rise from 0 to 3"),
    "names": ("nixon", text("atoms", b"n\nr\nq"), "expected 4 names of atoms, found 3"),
    "newlines": ("nixon", text("atoms", b"\n" * 3), "an atom's name has at least one character"),
    "control": ("nixon", text("atoms", b"n\nr\nq\n\x00"), "without control characters"),
    "twice": ("nixon", text("atoms", b"n\nr\nq\nn"), "found a name twice"),
    "no utf-8 name": ("nixon", text("atoms", b"n\nr\nq\n\xff"), "expected UTF-8 text in atoms"),
    "surrogate": ("nixon", text("atoms", b"n\nr\nq\n\xed\xa0\x80"), "expected UTF-8 text in atoms"),
    "other atoms": ("nixon", text("atoms", b"n\nr\nq\nz"), "expected a theory about the machine's own atoms"),
    "no utf-8 theory": ("nixon", text("theory.text", b"\xff"), "expected UTF-8 text in theory.text"),
    "no theory text": ("nixon", text("theory.text", b""), "expected 4 formulae in theory.text, found 0"),
    "no formula": ("nixon", text("theory.text", b"n -> "), "1:6: expected a formula, found the end"),
    "weight": ("nixon", text("theory.text", b"1e999: n"), "a weight lies between"),
    "domain": ("nixon", text("theory.text", b"n\n \tdomain d = {a}\nforall X in d: p(X)"), "found a domain"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_with_a_right_checksum_is_refused_in_words(name, tmp_path):
    machine, forge, message = FORGED[name]
    facts, arrays = taken_apart(CONTENT[machine])
    forge(facts, arrays)
    with pytest.raises(MachineFileError) as caught:
        loaded(signed(facts, arrays), tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_fact_that_is_missing_is_named(tmp_path):
    facts, arrays = taken_apart(CONTENT["nixon"])
    del facts["epsilon"]
    with pytest.raises(MachineFileError, match="found no epsilon"):
        loaded(signed(facts, arrays), tmp_path)


def test_a_wrong_checksum_is_called_damage(tmp_path):
    content = bytearray(CONTENT["nixon"])
    place = content.index(np.float64(1000).tobytes())
    content[place : place + 8] = np.float64(1001).tobytes()
    with pytest.raises(MachineFileError, match="match their checksum, found others: the file is damaged"):
        loaded(bytes(content), tmp_path)


# --- files ---------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none: No such file or directory"):
        store.load(tmp_path / "none")
    with pytest.raises(FileError, match="it is no regular file"):
        store.load(tmp_path)
    with pytest.raises(FileError, match="cannot read"):
        store.load("null\0character")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device that never ends")
def test_a_file_without_end_is_not_read():
    with pytest.raises(FileError, match="it is no regular file"):
        store.load("/dev/zero")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    for path, reason in (
        (tmp_path / "none" / "m", "No such file or directory"),
        (tmp_path / "folder", "Is a directory"),
    ):
        with pytest.raises(FileError, match=rf"cannot write .*: {reason}"):
            store.save(MACHINES["nixon"], path)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_an_interrupted_write_keeps_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    store.save(MACHINES["nixon"], tmp_path / "m")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.save(MACHINES["penalty"], tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert_same(MACHINES["nixon"], store.load(tmp_path / "m"))


def test_a_saved_file_replaces_the_old_one_with_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    store.save(MACHINES["nixon"], tmp_path / "m")
    store.save(MACHINES["penalty"], str(tmp_path / "m"))
    assert_same(MACHINES["penalty"], store.load(str(tmp_path / "m")))
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "m")
    store.save(MACHINES["nixon"], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_same(MACHINES["nixon"], store.load(tmp_path / "m"))


# --- what cannot be saved ------------------------------------------------------------------------


def by_hand(**parts):
    given = {
        "atoms": ("x",),
        "weights": csc_array(np.ones((1, 1))),
        "visible_bias": np.zeros(1),
        "hidden_bias": np.zeros(1),
    }
    return Machine(**(given | parts))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"visible_bias": np.array([np.nan])}, "expected finite numbers in visible_bias"),
        ({"hidden_bias": np.zeros(2)}, r"expected hidden_bias of shape \[1\], found \[2\]"),
        ({"atoms": ("a\nb",)}, "expected 1 names of atoms, found 2"),
        ({"atoms": ("a\x00",)}, "without control characters"),
        ({"atoms": ("\ud800",)}, "found half a character"),
        ({"atoms": ("a", "b")}, r"expected visible_bias of shape \[2\], found \[1\]"),
        ({"definitions": ("y",)}, "expected the definitional atoms to be the last atoms"),
        ({"theory": Theory(["z"])}, "expected a theory about the machine's own atoms"),
        ({"epsilon": 1.5}, "expected an epsilon strictly between 0 and 1"),
        ({"owner": np.array([0]), "unit": np.array([0])}, "in owner"),
    ],
)
def test_a_machine_that_could_not_be_loaded_is_not_saved(parts, message, tmp_path):
    with pytest.raises(MachineFileError, match=message):
        store.save(by_hand(**parts), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_formula_longer_than_the_text_format_reads_is_refused_by_a_named_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(lexer, "MAX_STATEMENT", 20)
    theory = Theory([conjunction(atom(f"x{i}") for i in range(9))])
    with pytest.raises(LimitExceeded, match="limit MAX_STATEMENT"):
        store.save(translate(theory), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
