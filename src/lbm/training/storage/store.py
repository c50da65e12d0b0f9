"""Trained models on disk, without ever running what a file says.

A model file is a safetensors file, as a machine file is: arrays, and one line of JSON in its header. What is
no array is the JSON object in the array ``document``. Nothing in a file is executed or unpickled, no rule in
it is compiled or expanded, and nothing is allocated because the file claims a size. The same model gives the
same bytes in every run; times, which would differ, are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from lbm.errors import LbmError
from lbm.knowledge.wire import write_whole
from lbm.training.boltzmann.knowledge import label_names
from lbm.training.boltzmann.network import LITERALS
from lbm.training.data.encoder import AtomEncoder
from lbm.training.data.table import Layout
from lbm.training.gradients.descent import Epoch, begin
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.learners.fitting import Broken
from lbm.training.storage.archive import Array, check_keys, listed, pack, reason, refuse, shown, typed, unpack
from lbm.training.storage.arrays import network_arrays, network_of, theory_of

FORMAT: Final = "lbm-model"
"""The one key of the header's metadata."""

MAX_CLASSES: Final = 10_000
"""Classes of a model in a file: label atoms by class are a matrix."""

_WHOLE: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "bool": (bool,),
    "object": (str, bool, int, float),
    "float32": (float,),
    "float64": (float,),
    **dict.fromkeys(_WHOLE, (int,)),
}
"""Types of arrays of classes, and the types that their values have in JSON."""


def save_model(classifier: LBMClassifier, path: str | Path) -> None:
    """Write a fitted classifier to a file, whole or not at all.

    Kept is all that it predicts, explains and gives rules with. Not kept are Adam's moments, so that
    ``partial_fit`` of a loaded model begins with new ones, and the times of epochs.
    """
    write_whole(path, [model_bytes(classifier)])


def load_model(path: str | Path) -> LBMClassifier:
    """Return the classifier that :func:`save_model` wrote; anything else is one clear error."""
    where = str(path)
    document, arrays = unpack(path, FORMAT)
    try:
        return _read_model(document, arrays, where)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LbmError):
            raise
        refuse(where, f"expected the parts of a model, found otherwise: {reason(error)}")


def model_bytes(classifier: LBMClassifier) -> bytes:
    """Return the content of a model's file."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(classifier)
    layout, network = classifier.layout_, classifier.network_
    arrays = network_arrays(network)
    given = {name: value for name, value in classifier.get_params(deep=False).items() if name != "knowledge"}
    given["device"] = "cpu"
    if not isinstance(given["random_state"], (int, np.integer)):
        given["random_state"] = None  # a generator has moved on; seed_ is what was drawn from it
    document = {
        "broken": [{"formula": part.formula, "rows": list(part.rows)} for part in classifier.broken_],
        "classes": {"dtype": _dtype_name(classifier.classes_), "values": classifier.classes_.tolist()},
        "epsilon": network.knowledge.epsilon,
        "history": [
            {
                "cost": epoch.cost,
                "number": epoch.number,
                "validation_accuracy": epoch.validation_accuracy,
                "validation_cost": epoch.validation_cost,
            }
            for epoch in classifier.history_
        ],
        "layout": {
            "columns": list(layout.columns),
            "constant": list(layout.constant),
            "empty": list(layout.empty),
            "encoded": layout.encoded.tolist(),
            "encoder": None if layout.encoder is None else layout.encoder.to_state(),
            "named": hasattr(classifier, "feature_names_in_"),
            "plain": layout.plain.tolist(),
        },
        "parameters": {name: plain(value, name) for name, value in given.items()},
        "seed": classifier.seed_,
        "stopped": classifier.stopped_,
        "target": classifier.target_,
        "trained": classifier.progress_ is not None,
    }
    content = pack(FORMAT, document, arrays)
    # What could not be loaded is not saved.
    _read_model(json.loads(json.dumps(document)), arrays, "this model")
    return content


def plain(value: Any, name: str) -> Any:
    """Return a parameter as what JSON can hold; a mapping, whose keys need not be text, as its pairs."""
    if isinstance(value, Mapping):
        return {"pairs": [[plain(key, name), plain(weight, name)] for key, weight in value.items()]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Iterable):
        return [plain(part, name) for part in value]
    raise ValueError(
        f"expected a parameter {name} of numbers and text, got {shown(value)}: it cannot be saved"
    )


def _dtype_name(classes: Array) -> str:
    return "str" if classes.dtype.kind == "U" else classes.dtype.name


def _read_model(document: Mapping[str, Any], arrays: Mapping[str, Array], where: str) -> LBMClassifier:
    """Return a classifier from parts, each of which is checked before it is used."""
    keys = ("broken", "classes", "epsilon", "history", "layout", "parameters", "seed", "stopped", "target",
            "trained")  # fmt: skip
    check_keys(document, keys, "a model", where)
    classifier = _read_parameters(document["parameters"], where)
    layout, named = _read_layout(document["layout"], where)
    classes = _read_classes(document["classes"], where)
    target = typed(document["target"], str, "the target", where)
    labels = label_names(target, classes.tolist())
    network = network_of(
        arrays,
        columns=layout.atoms,
        labels=labels,
        epsilon=document["epsilon"],
        literals=classifier.literals,
        where=where,
    )
    classifier.hidden, classifier.dtype = network.hidden, str(network.weights.dtype).removeprefix("torch.")
    classifier.knowledge = theory_of(network.knowledge)
    classifier.n_features_in_ = len(layout.columns)
    if named:
        classifier.feature_names_in_ = np.array(layout.columns, dtype=object)
    classifier.seed_ = typed(document["seed"], int, "a seed", where)
    if not 0 <= classifier.seed_ < 2**63:
        refuse(where, f"expected a seed from 0 up, found {shown(classifier.seed_)}")
    classifier.classes_, classifier.target_, classifier.labels_ = classes, target, labels
    classifier.layout_, classifier.atoms_, classifier.network_ = layout, layout.atoms, network
    classifier.history_ = read_history(document["history"], where)
    stopped = document["stopped"]
    classifier.stopped_ = None if stopped is None else typed(stopped, str, "a reason to stop", where)
    classifier.broken_ = tuple(
        _read_broken(entry, where) for entry in listed(document["broken"], dict, "a broken formula", where)
    )
    classifier.progress_ = None
    if typed(document["trained"], bool, "true or false", where):
        classifier.progress_ = begin(network)
        classifier.progress_.epoch = len(classifier.history_)
        classifier.progress_.history = list(classifier.history_)
        classifier.progress_.finished = classifier.stopped_
    return classifier


def _read_parameters(given: Any, where: str) -> LBMClassifier:
    classifier = LBMClassifier()
    known = classifier.get_params(deep=False).keys() - {"knowledge"}
    if not isinstance(given, dict) or not given.keys() <= known:
        extra = sorted(set(given) - known) if isinstance(given, dict) else given
        refuse(where, f"expected parameters of LBMClassifier, found also {shown(extra)}")
    for name, value in given.items():
        setattr(classifier, name, _read_parameter(name, value, where))
    if classifier.literals not in LITERALS:
        refuse(where, f"expected literals 'tied' or 'free', found {shown(classifier.literals)}")
    return classifier


def _read_parameter(name: str, value: Any, where: str) -> Any:
    if isinstance(value, dict):
        check_keys(value, ("pairs",), name, where)
        pairs = listed(value["pairs"], list, name, where)
        if not all(len(pair) == 2 and type(pair[1]) in (int, float) for pair in pairs):
            refuse(where, f"expected a number for each key in {name}, found {shown(pairs)}")
        return dict(pairs)
    return listed(value, str, name, where) if isinstance(value, list) else value


def _read_layout(given: Any, where: str) -> tuple[Layout, bool]:
    check_keys(
        given, ("columns", "constant", "empty", "encoded", "encoder", "named", "plain"), "a layout", where
    )
    columns, constant, empty = (
        tuple(listed(given[key], str, "the name of a column", where))
        for key in ("columns", "constant", "empty")
    )
    if len(set(columns)) < len(columns):
        refuse(where, "expected every column to be named once, found a name twice")
    plain, encoded = (
        listed(given[key], int, "the number of a column", where) for key in ("plain", "encoded")
    )
    used = plain + encoded
    if len(set(used)) < len(used) or not set(used) <= set(range(len(columns))):
        refuse(where, f"expected distinct numbers of {len(columns)} columns in the layout, found others")
    encoder = None
    if given["encoder"] is not None:
        encoder = AtomEncoder.from_state(given["encoder"])
    if len(encoded) != (0 if encoder is None else encoder.n_features_in_):
        refuse(where, f"expected an encoder of {len(encoded)} columns, found another")
    layout = Layout(columns, np.array(plain, np.int64), np.array(encoded, np.int64), encoder, constant, empty)
    if len(set(layout.atoms)) < len(layout.atoms):
        refuse(where, "expected every atom to be named once, found a name twice")
    return layout, typed(given["named"], bool, "true or false", where)


def _read_classes(given: Any, where: str) -> Array:
    check_keys(given, ("dtype", "values"), "classes", where)
    kind, values = given["dtype"], given["values"]
    if not isinstance(kind, str) or kind not in _CLASSES:
        refuse(where, f"expected classes of a known type, found {shown(kind)}")
    if not isinstance(values, list) or not 2 <= len(values) <= MAX_CLASSES:
        refuse(where, f"expected 2 to {MAX_CLASSES} classes (limit MAX_CLASSES), found {shown(values)}")
    if not all(type(value) in _CLASSES[kind] for value in values):
        refuse(where, f"expected classes of type {kind}, found {shown(values)}")
    classes = np.array(values, dtype=kind)
    if not (classes[:-1] < classes[1:]).all():
        refuse(where, f"expected ascending classes, found {shown(values)}")
    return classes


def _read_broken(entry: Any, where: str) -> Broken:
    check_keys(entry, ("formula", "rows"), "a broken formula", where)
    rows = tuple(listed(entry["rows"], int, "the number of a row", where))
    return Broken(typed(entry["formula"], str, "a formula", where), rows)


def read_history(given: Any, where: str) -> tuple[Epoch, ...]:
    """Return epochs as they stand in a document; where times were not kept they are 0."""
    found = []
    for entry in listed(given, dict, "an epoch", where):
        check_keys({"seconds": 0.0, **entry}, Epoch.__slots__, "an epoch", where)
        judged, right = (
            None if entry[key] is None else typed(entry[key], float, key, where)
            for key in ("validation_cost", "validation_accuracy")
        )
        number, mean = (
            typed(entry["number"], int, "number", where),
            typed(entry["cost"], float, "cost", where),
        )
        spent = typed(entry.get("seconds", 0.0), float, "seconds", where)
        found.append(Epoch(number, mean, judged, right, spent))
    return tuple(found)
