"""docs/model-file.md names what is in a model file, and nothing that is not; its checksum is the file's."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from safetensors import safe_open  # noqa: E402 - what needs torch comes once it is known to be there

import lbm  # noqa: E402

PAGE = (Path(__file__).parents[1] / "docs" / "model-file.md").read_text(encoding="utf-8")
TYPES = {"F32": "f4", "F64": "f8", "I64": "i8", "I8": "i1", "U8": "u1"}


def table(heading, first):
    """Return the rows of a table: under this heading, with this word at the head of its first column."""
    lines = (
        PAGE.partition(f"## {heading}\n")[2].partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()
    )
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell):
    return re.findall(r"`([\w.]+)`", cell)


@pytest.fixture(params=["tied", "free"])
def saved(request, tmp_path):
    """A model with all that a file can hold, its arrays with their types, its document and its header."""
    rows = pd.DataFrame(
        {"bird": [0, 1] * 20, "age": range(40), "colour": ["red", "blue", "green", "red"] * 10}
    )
    options = {"hidden": 3, "max_epochs": 2, "random_state": 0, "literals": request.param}
    model = lbm.LBMClassifier(
        knowledge="2: bird -> y\n'age <= 30' -> y", hard=True, class_weight={0: 1, 1: 2}, **options
    )
    lbm.save_model(model.fit(rows, [0, 0, 1, 1] * 10), tmp_path / "model")
    with safe_open(tmp_path / "model", framework="np") as file:
        arrays = {name: (file.get_tensor(name), file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118 - no mapping
        return model, arrays, json.loads(arrays["document"][0].tobytes()), file.metadata()


def test_the_page_lists_every_array_with_its_type_and_its_shape(saved):
    model, arrays, _, _ = saved
    known = model.network_.knowledge
    sizes = {
        "n": len(model.atoms_), "l": len(model.labels_), "h": model.hidden, "f": len(known.initial),
        "rows": len(model.background_),
        "u": known.units, "u + 1": known.units + 1, "literals": known.signs.nnz, "parts": len(known.owner),
        "formulae that are not fixed": int((~known.fixed).sum()),
        "facts": len(model.network_.likely.facts),
    }  # fmt: skip
    other = "literal_" if model.literals == "tied" else "raw_confidence"
    listed = {names(name)[0]: row for name, *row in table("The arrays", "name") if other not in name}
    assert sorted(listed) == sorted(arrays)
    for name, (kind, shape, _) in listed.items():
        array, stored = arrays[name]
        assert stored in (["F32", "F64"] if name.startswith("parameter.") else [kind])
        if shape != "any":
            assert array.shape == tuple(sizes[side.strip()] for side in shape.split(","))


def test_the_page_lists_every_key_of_the_document(saved):
    _, _, document, _ = saved
    keys = [name for row in table("The document", "key") for name in names(row[0])]
    later = {"units", "learned", "firings"}
    older = keys if "units" in document else [key for key in keys if key not in later]
    assert sorted(older) == sorted(document)
    layout = PAGE.partition("A `layout` has exactly these:")[2].partition("\n## ")[0]
    inner = [name for row in re.findall(r"^\| (`.*?) \|", layout, re.MULTILINE) for name in names(row)]
    assert sorted(inner) == sorted(document["layout"])
    assert document["broken"]
    assert document["parameters"]["class_weight"] == {"pairs": [[0, 1], [1, 2]]}


def test_the_checksum_is_what_the_page_says(saved):
    _, arrays, _, metadata = saved
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array, stored = arrays[name]
        digest.update(f"\n{name} {TYPES[stored]} {list(array.shape)}\n".encode() + array.tobytes())
    assert list(metadata) == ["lbm-model"]
    assert json.loads(metadata["lbm-model"]) == {
        "sha256": digest.hexdigest(),
        "version": 3,
    }


def test_biases_of_free_literals_are_read_in_the_order_that_the_page_says(tmp_path):
    """Whoever reads the arrays as the page says gets the classes that the model gives."""
    (content,) = [
        row[-1] for row in table("The arrays", "name") if names(row[0]) == ["parameter.literal_bias"]
    ]
    assert "first come the units without a literal of a label atom, then those with one" in content
    rows = pd.DataFrame({"bird": [0, 0, 1, 1] * 5, "wings": [0, 1] * 10})
    model = lbm.LBMClassifier(
        knowledge="2: bird -> y\n1: wings & y -> bird",
        hidden=2,
        max_epochs=3,
        random_state=0,
        literals="free",
    ).fit(rows, [0, 1, 1, 1] * 5)
    lbm.save_model(model, tmp_path / "model")
    with safe_open(tmp_path / "model", framework="np") as file:
        array = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    units = len(array["knowledge.indptr"]) - 1
    weights, speaks = np.zeros((3, units)), np.zeros(units, bool)
    for j in range(units):
        some = slice(*array["knowledge.indptr"][j : j + 2])
        weights[array["knowledge.indices"][some], j] = array["parameter.literal_weights"][some]
        speaks[j] = (array["knowledge.indices"][some] >= 2).any()
    order = [*np.flatnonzero(~speaks), *np.flatnonzero(speaks)]
    assert order != sorted(order)
    bias = np.zeros(units)
    bias[order] = array["parameter.literal_bias"]
    weights = np.hstack([weights, np.vstack([array["parameter.weights"], array["parameter.label_weights"]])])
    inputs = rows[list(model.atoms_)].to_numpy() @ weights[:2] + np.append(
        bias, array["parameter.hidden_bias"]
    )
    scores = [np.logaddexp(0, inputs + label * weights[2]).sum(axis=1) for label in (0, 1)]
    chance = 1 / (1 + np.exp(scores[0] - scores[1] - array["parameter.label_bias"]))
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], chance, atol=1e-5)
