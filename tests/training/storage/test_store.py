"""Model files: what is saved is loaded, predicts the same to the last bit, and nothing else is loaded."""

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as serialize
from sklearn.base import clone

from lbm.errors import FileError, LbmError, MachineFileError
from lbm.knowledge.theory import Theory
from lbm.machine.store import load, save
from lbm.machine.translate import translate
from lbm.training.data.table import read_atoms
from lbm.training.explanations.explain import explain_rows
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.storage.kinds import kind_of
from lbm.training.storage.store import load_model, model_bytes, save_model

BIRDS = pd.DataFrame({"bird": [1, 1, 0, 0] * 5, "penguin": [0, 1, 0, 1] * 5})
FLIES = pd.Series([True, False, False, False] * 5, name="flies")
PEOPLE = pd.DataFrame(
    {
        "colour": ["red", "blue", None, "green", "red"] * 4,
        "tall": [0, 1, 1, None, 0] * 4,
        "same": 1,
        "none": [None] * 20,
    }
)
KIND = pd.Series(["a", "b", "c", "c", "a"] * 4, name="kind")
QUICK = {"hidden": 2, "max_epochs": 2, "random_state": 1}


@cache
def model(name):
    """Return a fitted classifier and a table to predict."""
    if name == "rules alone":
        made = LBMClassifier.from_knowledge(
            "bird & ~penguin -> flies\n0.50: penguin -> ~flies", target="flies", columns=BIRDS.columns
        )
        return made, BIRDS
    if name == "booleans":
        made = LBMClassifier(knowledge="2: bird -> flies", bins=False, **QUICK)
        return made.fit(BIRDS, FLIES), BIRDS
    if name == "bins":
        made = LBMClassifier(knowledge="2: penguin -> ~flies", thresholds=3, **QUICK)
        return made.fit(BIRDS, FLIES), BIRDS.assign(bird=[np.nan, 1] * 10)
    if name == "hard":
        knowledge = Theory(["penguin -> ~flies", "bird <-> flies"])
        made = LBMClassifier(knowledge=knowledge, hard=True, dtype="float64", default=0.5, **QUICK)
        return made.fit(BIRDS, FLIES), BIRDS
    if name == "categories":
        weights = {"a": 1, "b": 2.5, "c": 1}
        made = LBMClassifier(knowledge="'colour = red' -> 'kind = a'", class_weight=weights, **QUICK)
        return made.fit(PEOPLE, KIND), PEOPLE
    if name == "paper":
        return LBMClassifier(knowledge="2: bird -> flies", units="paper", **QUICK).fit(BIRDS, FLIES), BIRDS
    if name == "free":
        made = LBMClassifier(knowledge="bird <-> 'y = 3'", literals="free", **QUICK)
        return made.fit(BIRDS, np.array([3, 1, 2, 1] * 5, dtype=np.int16)), BIRDS
    names = ["first", "second"]
    made = LBMClassifier(names=names, default={1.0: 1.0}, hidden=1, max_epochs=1, random_state=None)
    return made.fit(BIRDS.to_numpy(), np.array([2.0, 1.0] * 10)), BIRDS.to_numpy().copy()


MODELS = ("rules alone", "booleans", "bins", "hard", "categories", "free", "paper", "array")
names = st.sampled_from(MODELS)


@cache
def content(name):
    return model_bytes(model(name)[0])


def loaded(data, folder):
    path = folder / "m.model"
    path.write_bytes(data)
    return load_model(path)


def without_times(history):
    return [(e.number, e.cost, e.validation_cost, e.validation_accuracy) for e in history]


def assert_same(one, other, table):
    """Check that two classifiers know, say and do the same, to the last bit."""
    assert one.network_ is not other.network_  # which makes those of loaded ones
    assert vars(one).keys() == vars(other).keys()
    for name in ("target_", "labels_", "atoms_", "seed_", "stopped_", "broken_", "confidences_"):
        assert getattr(one, name) == getattr(other, name)
    assert one.classes_.dtype == other.classes_.dtype
    assert list(map(repr, one.classes_.tolist())) == list(map(repr, other.classes_.tolist()))
    assert without_times(one.history_) == without_times(other.history_)
    first, second = (
        {name: values.detach().numpy().tobytes() for name, values in each.network_.named_parameters()}
        for each in (one, other)
    )
    assert first == second
    assert one.predict_proba(table).tobytes() == other.predict_proba(table).tobytes()
    assert (one.undecided(table) == other.undecided(table)).all()
    rows = read_atoms(pd.DataFrame(table), one.layout_)
    said = [explain_rows(each.network_, rows) for each in (one, other)]
    assert said[0] == said[1]


def header(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length])


def taken_apart(data):
    """Return the kind, document and arrays of a file without any code of the library."""
    length, found = int.from_bytes(data[:8], "little"), header(data)
    (kind,) = found.pop("__metadata__")
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I8": "i1", "U8": "u1"}
    body = data[8 + length :]
    arrays = {
        name: np.frombuffer(body[slice(*part["data_offsets"])], types[part["dtype"]]).reshape(part["shape"])
        for name, part in found.items()
    }
    return kind, json.loads(arrays.pop("document").tobytes()), arrays


def signed(document, arrays, *, kind="lbm-model", version=None):
    """Return a file with these contents and a right checksum, without any code of the library."""
    if version is None:
        later = isinstance(document, dict) and "learned" in document
        version = 2 if isinstance(document, dict) and "units" in document else 1
        version = 3 if later or "background" in arrays else version
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    tensors = {**arrays, "document": np.frombuffer(text, dtype=np.uint8)}
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name] = np.ascontiguousarray(tensors[name])
        digest.update(f"\n{name} {array.dtype.str[1:]} {list(array.shape)}\n".encode() + array.tobytes())
    return serialize(tensors, {kind: json.dumps({"version": version, "sha256": digest.hexdigest()})})


# --- what is saved is loaded ---------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_to_the_last_bit_and_saves_to_the_same_bytes(name, tmp_path):
    made, table = model(name)
    save_model(made, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert_same(made, again, table)
    assert model_bytes(again) == (tmp_path / "m").read_bytes() == content(name)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_only_what_is_new_needs_a_new_version():
    """Rules alone are of the second, or in the paper's units of the first; what is fitted is of the third."""
    for name in MODELS:
        kind, document, arrays = taken_apart(content(name))
        found = json.loads(header(content(name))["__metadata__"][kind])["version"]
        assert found == (3 if "background" in arrays else 2 if "units" in document else 1)
        assert ("likely.parents" in arrays) == ("background" in arrays) == (name != "rules alone")
        assert ("learned" in document) == (name in ("booleans", "bins", "hard", "categories", "array"))
    in_paper = LBMClassifier.from_knowledge("a -> y", target="y", columns=["a"], units="paper")
    kind, document, _ = taken_apart(model_bytes(in_paper))
    assert "units" not in document
    assert json.loads(header(model_bytes(in_paper))["__metadata__"][kind])["version"] == 1


def test_a_file_of_the_first_version_loads_and_saves_to_the_same_bytes(tmp_path):
    """It was written before units could be calibrated, and keeps those it has."""
    old = Path(__file__).with_name("version1.model").read_bytes()
    again = loaded(old, tmp_path)
    assert model_bytes(again) == old
    assert (again.units, again.network_.calibrated) == ("paper", False)
    p = again.predict_proba(BIRDS.iloc[:2])[:, 1]
    assert p == pytest.approx(np.load(Path(__file__).with_name("version1.npy")), abs=1e-12)


def test_a_file_of_the_second_version_loads_saves_to_the_same_bytes_and_says_that_it_has_no_background(
    tmp_path,
):
    """It was written before background rows were kept, by torch's predictions."""
    old = Path(__file__).with_name("version2.model").read_bytes()
    again = loaded(old, tmp_path)
    assert model_bytes(again) == old
    assert again.parameters().calibrated
    assert again.background_ is None
    whole = [0, 1, 4]  # what a gap is worth may change from version to version
    rows = PEOPLE.iloc[whole]
    p = np.load(Path(__file__).with_name("version2.npy"))[whole]
    assert again.predict_proba(rows) == pytest.approx(p, abs=1e-12)
    why = again.explain(rows)[0]
    with pytest.raises(ValueError, match=r"this model has no background rows.*saved by an older lbm"):
        why.by_column()
    found = again.explain(rows, background=PEOPLE)[0].by_column()
    assert found.average + sum(s.value for s in found.shares) == pytest.approx(found.log_odds, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_come_back_knowledge_as_a_theory(name, tmp_path):
    made, _ = model(name)
    given, back = made.get_params(), loaded(content(name), tmp_path).get_params()
    knowledge = given.pop("knowledge")
    if isinstance(knowledge, str):
        knowledge = Theory.parse(knowledge)
    assert back.pop("knowledge") == knowledge
    assert back == given
    assert {name: type(value) for name, value in back.items() if name not in ("default", "class_weight")} == {
        name: type(value) for name, value in given.items() if name not in ("default", "class_weight")
    }


@pytest.mark.parametrize("name", ["booleans", "hard", "categories"])
def test_a_loaded_model_can_be_trained_again_and_becomes_the_same(name, tmp_path):
    target = KIND if name == "categories" else FLIES
    again = clone(loaded(content(name), tmp_path)).fit(model(name)[1], target)
    assert model_bytes(again) == content(name)


def test_a_loaded_model_learns_on(tmp_path):
    again = loaded(content("booleans"), tmp_path)
    before = again.predict_proba(BIRDS)
    again.partial_fit(BIRDS, FLIES)
    assert len(again.history_) == 3
    assert not np.array_equal(again.predict_proba(BIRDS), before)


def test_an_independent_reader_finds_rules_weights_and_confidences():
    kind, document, arrays = taken_apart(content("hard"))
    made, _ = model("hard")
    assert kind == "lbm-model"
    assert arrays["knowledge.text"].tobytes().decode() == "penguin -> ~flies\nbird <-> flies"
    assert arrays["knowledge.fixed"].tolist() == [1, 1]
    assert arrays["knowledge.initial"].tolist() == [36.0, 36.0]
    assert document["units"] == "calibrated"
    assert arrays["parameter.weights"].dtype == np.float64
    assert np.array_equal(arrays["parameter.weights"], made.network_.weights.detach().numpy())
    assert document["classes"] == {"dtype": "bool", "values": [False, True]}
    assert document["broken"] == [{"formula": "bird <-> flies", "rows": [i for i in range(20) if i % 4 == 1]}]
    assert document["layout"]["columns"] == ["bird", "penguin"]


@pytest.mark.parametrize("name", MODELS)
def test_an_independent_writer_writes_what_is_loaded(name, tmp_path):
    _, document, arrays = taken_apart(content(name))
    made, table = model(name)
    assert_same(made, loaded(signed(document, arrays), tmp_path), table)


def test_a_parameter_of_a_later_version_that_is_missing_has_its_default(tmp_path):
    _, document, arrays = taken_apart(content("booleans"))
    del document["parameters"]["patience"]
    assert loaded(signed(document, arrays), tmp_path).patience == LBMClassifier().patience


def test_a_generator_as_random_state_is_not_kept_but_its_seed_is(tmp_path):
    made = LBMClassifier(hidden=1, max_epochs=1, random_state=np.random.RandomState(3)).fit(BIRDS, FLIES)
    again = loaded(model_bytes(made), tmp_path)
    assert again.random_state is None
    assert again.seed_ == made.seed_


# --- damage --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_before():
    """Train models before examples are drawn: training uses `random`, which strategies may not."""
    for name in MODELS:
        content(name)


@st.composite
def damages(draw):
    """Return a model's name and its file with bytes flipped, cut out, inserted, or cut off."""
    name = draw(names)
    data = bytearray(content(name))
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.one_of(st.integers(0, len(data)), st.integers(0, min(header, len(data)))))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "end"]))
        if kind == "flip" and place < len(data):
            data[place] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del data[place : place + draw(st.integers(1, 40))]
        elif kind == "insert":
            data[place:place] = draw(st.binary(min_size=1, max_size=20))
        elif kind == "end":
            del data[place:]
    return name, bytes(data)


def attempted(data, tmp_path_factory):
    """Return the model in a file, or None where one short line says what is wrong with it."""
    try:
        return loaded(data, tmp_path_factory.getbasetemp())
    except LbmError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 1000
    return None


@pytest.mark.usefixtures("made_before")
@settings(max_examples=80)
@given(damages())
def test_a_damaged_file_is_one_clear_error_or_still_the_same_model(tmp_path_factory, damage):
    name, data = damage
    again = attempted(data, tmp_path_factory)
    if again is not None:
        assert_same(model(name)[0], again, model(name)[1])


def test_cuts_are_noticed_wherever_they_are(tmp_path):
    data = content("categories")
    for end in [*range(0, 40), *range(40, len(data), 197)]:
        with pytest.raises(MachineFileError):
            loaded(data[:end], tmp_path)


def leaves(part, path=()):
    """Yield the path of everything in a document."""
    yield path
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.sampled_from([2**40, -(2**70), 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
    st.builds(list),  # a new one each time: one that is drawn twice would hold itself
    st.builds(dict),
    st.builds(lambda: [[]]),
)


@settings(max_examples=80)
@given(st.data())
def test_forged_contents_with_a_right_checksum_are_refused_or_safe_to_use(tmp_path_factory, data):
    name = data.draw(names)
    _, document, arrays = taken_apart(content(name))
    arrays = {key: array.copy() for key, array in arrays.items()}
    for _ in range(data.draw(st.integers(0, 2))):
        *path, last = data.draw(st.sampled_from([path for path in leaves(document) if path]))
        part = document
        for key in path:
            part = part[key] if isinstance(part, (dict, list)) else {}
        try:
            part[last] = data.draw(ODD)
        except (IndexError, KeyError, TypeError):
            continue  # it went with an earlier change
    for _ in range(data.draw(st.integers(0, 2))):
        key = data.draw(st.sampled_from(sorted(key for key in arrays if arrays[key].size)))
        kind = arrays[key].dtype.kind
        value = data.draw(
            {"f": st.floats(width=32), "u": st.integers(0, 255), "i": st.integers(-128, 127)}[kind]
        )
        arrays[key].reshape(-1)[data.draw(st.integers(0, arrays[key].size - 1))] = value
    again = attempted(signed(document, arrays), tmp_path_factory)
    if again is None:
        return
    assert again.confidences_ is not None
    columns = list(again.layout_.columns)
    table = pd.DataFrame(np.zeros((1, len(columns)), dtype=int), columns=columns)
    try:
        found = again.predict_proba(table if hasattr(again, "feature_names_in_") else table.to_numpy())
    except (ValueError, UserWarning):
        return  # the table is none of this model: 0 is no text, or its encoder claims to know names
    assert found.shape == (1, len(again.classes_))


# --- what is refused, and in which words ---------------------------------------------------------


def change(path, value):
    def forge(document, arrays):
        *before, last = path
        part = document
        for key in before:
            part = part[key]
        part[last] = value

    return forge


def put(name, change_):
    def forge(document, arrays):
        arrays[name] = change_(arrays[name].copy())

    return forge


def set_first(value):
    def change_(array):
        array.reshape(-1)[0] = value
        return array

    return change_


def text(letters):
    return put("knowledge.text", lambda _: np.frombuffer(letters, dtype=np.uint8))


TWO_NAMES = ["bird", "bird"]
FORGED = {
    "extra key": (change(["more"], 1), "expected a model with"),
    "parameter": (change(["parameters", "pickle"], 1), "expected parameters of LBMClassifier, found also"),
    "units": (change(["units"], "loose"), "expected units 'calibrated' or none, found 'loose'"),
    "free units": (change(["parameters", "literals"], "free"), "expected tied literals in calibrated units"),
    "literals": (change(["parameters", "literals"], "loose"), "expected literals 'tied' or 'free'"),
    "names twice": (change(["layout", "columns"], TWO_NAMES), "expected every column to be named once"),
    "columns": (change(["layout", "columns"], "ab"), "each the name of a column, found 'ab'"),
    "plain": (change(["layout", "plain"], [0, 7]), "expected distinct numbers of 2 columns"),
    "encoder": (change(["layout", "encoder"], {}), "an encoder's state"),
    "encoded": (change(["layout", "encoded"], [1]), "expected distinct numbers of 2 columns"),
    "class type": (change(["classes", "dtype"], "complex"), "expected classes of a known type"),
    "class order": (change(["classes", "values"], [True, False]), "expected ascending classes"),
    "one class": (change(["classes", "values"], [True]), "expected 2 to 10000 classes"),
    "class text": (change(["classes", "values"], [False, "x"]), "expected classes of type bool"),
    "third class": (change(["classes"], {"dtype": "int64", "values": [1, 2, 3]}), "expected"),
    "target": (change(["target"], 3), "expected the target of type str, found 3"),
    "seed": (change(["seed"], -1), "expected a seed from 0 up, found -1"),
    "epsilon": (change(["epsilon"], 1.0), "expected an epsilon strictly between 0 and 1, found 1.0"),
    "history": (change(["history"], [{"number": 1}]), "expected an epoch with"),
    "shape": (put("parameter.weights", lambda a: a[:1]), "of shape [2, 2], found float32 of shape [1, 2]"),
    "line": (put("parameter.weights", np.ravel), "expected a matrix of F32 or F64 in parameter.weights"),
    "type": (put("parameter.hidden_bias", lambda a: a.astype(np.float64)), "expected hidden_bias: float32"),
    "nan": (put("parameter.weights", set_first(np.nan)), "expected finite numbers in weights"),
    "atom": (put("knowledge.indices", set_first(9)), "expected numbers from 0 to 2 in knowledge.indices"),
    "unit": (put("knowledge.unit", set_first(-1)), "in knowledge.unit, found others"),
    "sign": (put("knowledge.signs", set_first(2)), "signs 1 and -1"),
    "positive": (put("knowledge.positive", set_first(9)), "expected knowledge.positive to count"),
    "starts": (put("knowledge.indptr", set_first(1)), "expected knowledge.indptr to rise"),
    "no starts": (put("knowledge.indptr", lambda a: a[:0]), "expected"),
    "confidence": (put("knowledge.initial", set_first(0)), "expected confidences above 0"),
    "formulae": (put("knowledge.initial", lambda a: np.ones(4)), "expected knowledge.fixed of length 4"),
    "utf-8": (put("knowledge.text", set_first(255)), "expected UTF-8 text in knowledge.text"),
    "domain": (text(b" domain d = {a}\nforall X in d: p(X)"), "found a domain"),
    "other atoms": (text(b"2: z"), "expected formulae about the model's own atoms"),
    "two formulae": (text(b"bird\nbird"), "expected 1 formulae in knowledge.text, found 2"),
    "no formula": (text(b"bird ->"), "expected a formula"),
    "learned": (change(["learned"], 2), "expected up to 1 formulae learned, found 2"),
    "firings": (change(["firings"], [{"rows": 1}]), "expected what rows say of a formula with"),
    "firings of more": (
        change(["firings"], [{"rows": 1, "right": None, "lift": 0.5}] * 2),
        "expected what rows say of 1 formulae, found others",
    ),
    "a cycle": (put("likely.parents", lambda a: np.array([1, 0])), "expected a tree of facts"),
    "a longer tree": (put("likely.parents", lambda a: np.zeros(3, dtype=np.int64)), "2 numbers in likely.p"),
    "chances": (put("likely.tables", set_first(1.0)), "logarithms of probabilities in likely.tables"),
    "no number": (put("likely.tables", set_first(np.nan)), "expected logarithms of probabilities"),
    "few chances": (put("likely.tables", lambda a: a[:1]), "numbers in likely.tables, found otherwise"),
    "background": (put("background", set_first(7)), "expected 0, 1 and 255 in background"),
    "narrow background": (put("background", lambda a: a[:, :1]), "expected rows of 2 bytes in background"),
    "no background": (put("background", lambda a: a[:0]), "expected rows of 2 bytes in background"),
    "flat background": (put("background", np.ravel), "expected rows of 2 bytes in background"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_with_a_right_checksum_is_refused_in_words(name, tmp_path):
    forge, message = FORGED[name]
    _, document, arrays = taken_apart(content("booleans"))
    forge(document, arrays)
    with pytest.raises(MachineFileError) as caught:
        loaded(signed(document, arrays), tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'm.model'}: ")
    assert "\n" not in str(caught.value)


def test_arrays_that_are_missing_or_too_many_are_named(tmp_path):
    _, document, arrays = taken_apart(content("booleans"))
    for name in ("parameter.hidden_bias", "knowledge.owner", "parameter.weights"):
        fewer = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(MachineFileError, match=name.split(".")[1]):
            loaded(signed(document, fewer), tmp_path)
    with pytest.raises(MachineFileError, match="found also"):
        loaded(signed(document, arrays | {"more": np.zeros(1)}), tmp_path)


def test_a_wrong_checksum_is_called_damage(tmp_path):
    data = bytearray(content("booleans"))
    place = data.index(b'"target": "flies"')
    data[place + 11] ^= 1
    with pytest.raises(MachineFileError, match="match their checksum, found others: the file is damaged"):
        loaded(bytes(data), tmp_path)


FOREIGN = {
    "empty": (b"", "expected an lbm-model (a safetensors file), found an empty file"),
    "text": (b"a,b,c\n1,2,3\n", "found a file that begins b'a,b,c"),
    "pickle": (b"\x80\x04\x95" + bytes(30), "found a file that begins"),
    "huge header": ((2**63).to_bytes(8, "little") + b"{}", "found one of 9223372036854775808"),
    "header cut": ((300).to_bytes(8, "little") + b"{}", "found a file cut short after 10"),
    "no json": ((2).to_bytes(8, "little") + b"{]", "expected a whole safetensors file"),
    "foreign": (serialize({"x": np.zeros(3)}, {"format": "pt"}), "a safetensors file of something else"),
    "newer": (signed({}, {}, version=4), "written by a newer lbm: expected version 3 at most, found 4"),
    "version": (signed({}, {}, version="1"), "expected a version from 1 up, found '1'"),
    "list": (signed([1], {}), "expected a JSON object in document"),
    "no number": (signed(b'{"a": NaN}', {}), "expected a JSON object in document"),
    "deep": (signed(b"[" * 100_000, {}), "expected a JSON object in document"),
    "bytes": (signed(b"\xff", {}), "expected a JSON object in document"),
    "type": (signed({}, {"x": np.zeros(2, dtype=np.int32)}), "in x, found I32"),
    "checkpoint": (signed({}, {}, kind="lbm-checkpoint"), "found a checkpoint: `lbm train --resume`"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_model_is_refused(name, tmp_path):
    data, message = FOREIGN[name]
    with pytest.raises(MachineFileError) as caught:
        loaded(data, tmp_path)
    assert message in str(caught.value)


def test_a_machine_is_no_model_and_a_model_no_machine(tmp_path):
    save(translate(Theory(["a -> b"])), tmp_path / "machine")
    (tmp_path / "model").write_bytes(content("booleans"))
    with pytest.raises(MachineFileError, match=r"expected an lbm-model, found a machine: lbm\.load reads"):
        load_model(tmp_path / "machine")
    with pytest.raises(MachineFileError, match="expected an lbm-machine, found a"):
        load(tmp_path / "model")
    assert kind_of(tmp_path / "machine") == "lbm-machine"
    assert kind_of(tmp_path / "model") == "lbm-model"
    assert kind_of(tmp_path) is None
    assert kind_of(tmp_path / "none") is None


def test_a_file_that_cannot_be_read_or_written_is_one_clear_error(tmp_path):
    for path, reason in (
        (tmp_path / "none", "No such file or directory"),
        (tmp_path, "it is no regular file"),
        ("null\0character", "cannot read"),
    ):
        with pytest.raises(FileError, match=reason):
            load_model(path)
    with pytest.raises(FileError, match="cannot write"):
        save_model(model("booleans")[0], tmp_path / "none" / "m")


def test_an_interrupted_write_keeps_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    save_model(model("booleans")[0], tmp_path / "m")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_model(model("hard")[0], tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == content("booleans")


def test_an_atom_may_begin_as_a_declaration_of_domains_does(tmp_path):
    made = LBMClassifier.from_knowledge("domain1 -> flies", target="flies", columns=["domain1"])
    save_model(made, tmp_path / "m")
    assert str(load_model(tmp_path / "m").knowledge) == "domain1 -> flies"


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    made = clone(model("booleans")[0]).fit(BIRDS, FLIES)
    made.network_.weights.data[0, 0] = float("nan")
    with pytest.raises(MachineFileError, match="this model: expected finite numbers in weights"):
        save_model(made, tmp_path / "m")
    made = clone(model("booleans")[0]).fit(BIRDS, FLIES)
    made.class_weight = object()
    with pytest.raises(ValueError, match="expected a parameter class_weight of numbers and text"):
        save_model(made, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
