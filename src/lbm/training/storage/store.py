"""Trained models on disk, without ever running what a file says.

A model file is a safetensors file, as a machine file is: arrays, and one line of JSON in its header. What is
no array is the JSON object in the array ``document``. Nothing in a file is executed or unpickled, no rule in
it is compiled or expanded, and nothing is allocated because the file claims a size. The same model gives the
same bytes in every run; times, which would differ, are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import csc_array
from sklearn.utils.validation import check_is_fitted

from lbm.arrays import Bytes
from lbm.knowledge.packed import write_whole
from lbm.knowledge.theory import Theory
from lbm.machine.files import (
    ascending,
    check_arrays,
    check_keys,
    check_starts,
    listed,
    pack,
    read_theory,
    refuse,
    shown,
    theory_text,
    typed,
    unpacked,
)
from lbm.training.boltzmann.facts import Groups, facts_of
from lbm.training.boltzmann.knowledge import MAX_CONFIDENCE, Knowledge, known_as, label_names
from lbm.training.boltzmann.likely import Likely, well_formed
from lbm.training.boltzmann.parameters import LITERALS, Parameters
from lbm.training.data.encoder import AtomEncoder
from lbm.training.data.examples import MAX_CLASSES
from lbm.training.data.table import MISSING, Layout
from lbm.training.gradients.epochs import Epoch
from lbm.training.learners.classifier import Broken, LBMClassifier
from lbm.training.learners.estimator import Firing

if TYPE_CHECKING:
    from lbm.machine.files import Array

FORMAT: Final = "lbm-model"
"""The one key of the header's metadata."""

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

_KNOWLEDGE: Final = {
    "text": np.uint8,
    "indptr": np.int64,
    "indices": np.int64,
    "signs": np.int8,
    "positive": np.int64,
    "owner": np.int64,
    "unit": np.int64,
    "initial": np.float64,
    "fixed": np.uint8,
}
"""Types of the arrays of knowledge."""

_LATER: Final = {
    "odd_cells": "text", "background": 100, "in_turn": None, "bins": True, "thresholds": None
}  # fmt: skip
"""Parameters that came after the first files, with defaults that are left out: files keep their bytes."""

_FIRING: Final = ("rows", "right", "lift")

_NAMES, _NUMBERS = ("columns", "constant", "empty"), ("plain", "encoded")
_KEYS: Final = ("broken", "classes", "epsilon", "history", "layout", "parameters", "seed", "stopped",
                "target", "trained")  # fmt: skip
"""Keys of the layout whose values are names and numbers of columns, and of the document."""


def save_model(classifier: LBMClassifier, path: str | Path) -> None:
    """Write a fitted classifier to a file, whole or not at all.

    Kept is all that it predicts, explains and gives rules with, ``background_`` among it. Not kept are Adam's
    moments, so that ``partial_fit`` of a loaded model begins with new ones, and the times of epochs.
    """
    write_whole(path, [model_bytes(classifier)], as_it_is=True)


def load_model(path: str | Path) -> LBMClassifier:
    """Return the classifier that :func:`save_model` wrote; anything else is one clear error.

    It predicts, explains and gives rules without torch, which is loaded where it is trained on.
    """
    return unpacked(path, FORMAT, "a model", _read_model)


def model_bytes(classifier: LBMClassifier) -> bytes:
    """Return the content of a model's file."""
    check_is_fitted(classifier)
    layout, learned, classes = classifier.layout_, classifier.parameters(), classifier.classes_
    arrays: dict[str, Array] = {f"parameter.{name}": values for name, values in learned.arrays.items()}
    arrays |= _pack_knowledge(learned.knowledge)
    if learned.likely is not None:
        arrays["likely.parents"] = learned.likely.parents
        arrays["likely.tables"] = np.concatenate(
            [np.zeros(0), *(table.ravel() for table in learned.likely.tables)]
        )
    if classifier.background_ is not None:
        arrays["background"] = classifier.background_
    told = ("knowledge", "units")  # elsewhere in the file
    given = {name: value for name, value in classifier.get_params(deep=False).items() if name not in told}
    for name, usual in _LATER.items():
        if given[name] == usual:
            del given[name]
    given["device"] = "cpu"
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if not isinstance(given["random_state"], (int, np.integer)):
        given["random_state"] = None  # a generator has moved on; seed_ is what was drawn from it
    document = {
        "broken": [{"formula": part.formula, "rows": list(part.rows)} for part in classifier.broken_],
        "classes": {"dtype": kind, "values": classes.tolist()},
        "epsilon": learned.knowledge.epsilon,
        "history": [
            {name: value for name, value in asdict(epoch).items() if name != "seconds"}
            for epoch in classifier.history_
        ],
        "layout": {
            "encoder": None if layout.encoder is None else layout.encoder.to_state(),
            "named": hasattr(classifier, "feature_names_in_"),
            **{name: list(getattr(layout, name)) for name in (*_NAMES, *_NUMBERS)},
        },
        "parameters": {name: plain(value, name) for name, value in given.items()},
        "seed": classifier.seed_,
        "stopped": classifier.stopped_,
        "target": classifier.target_,
        "trained": classifier._is_trained(),
    }
    if learned.calibrated:
        document["units"] = "calibrated"
    if learned.knowledge.learned or classifier.firings_:
        document["learned"] = learned.knowledge.learned
        document["firings"] = [asdict(firing) for firing in classifier.firings_]
    later = "learned" in document or "background" in arrays or "likely.parents" in arrays
    content = pack(FORMAT, document, arrays, version=3 if later else 2 if learned.calibrated else 1)
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


def _read_model(document: Mapping[str, Any], arrays: Mapping[str, Array], where: str) -> LBMClassifier:
    """Return a classifier from parts, each of which is checked before it is used."""
    calibrated = isinstance(document, dict) and "units" in document
    taught = isinstance(document, dict) and "learned" in document
    extra = (*(("units",) if calibrated else ()), *(("learned", "firings") if taught else ()))
    check_keys(document, (*_KEYS, *extra), "a model", where)
    if calibrated and document["units"] != "calibrated":
        refuse(where, f"expected units 'calibrated' or none, found {shown(document['units'])}")
    classifier = _read_parameters(document["parameters"], where)
    if calibrated and classifier.literals == "free":
        refuse(where, "expected tied literals in calibrated units, found free ones")
    layout, named = _read_layout(document["layout"], where)
    classes = _read_classes(document["classes"], where)
    target = typed(document["target"], str, "the target", where)
    labels = label_names(target, classes.tolist())
    knowledge = _read_knowledge(arrays, layout.atoms, labels, document["epsilon"], where)
    bins = typed(document.get("learned", 0), int, "the number of formulae learned", where)
    if not 0 <= bins <= len(knowledge.initial):
        refuse(where, f"expected up to {len(knowledge.initial)} formulae learned, found {bins}")
    knowledge = replace(knowledge, calibrated=calibrated, learned=bins)
    if knowledge.units and classifier._is_calibrated() != calibrated:
        classifier.units = "calibrated" if calibrated else "paper"
    arrays = dict(arrays)
    likely = _read_likely(arrays, len(layout.atoms), layout.groups, where)
    learned = _read_parameters_of(arrays, knowledge, classifier.literals, layout.groups, where)
    learned = replace(learned, likely=likely)
    classifier.hidden, classifier.dtype = learned.hidden, learned.arrays["weights"].dtype.name
    classifier.knowledge = theory_of(knowledge, given=True)
    classifier.firings_ = tuple(_read_firing(entry, where) for entry in document.get("firings", ()))
    if classifier.firings_ and len(classifier.firings_) != knowledge.given:
        refuse(where, f"expected what rows say of {knowledge.given} formulae, found others")
    classifier.n_features_in_ = len(layout.columns)
    if named:
        classifier.feature_names_in_ = np.array(layout.columns, dtype=object)
    classifier.seed_ = typed(document["seed"], int, "a seed", where)
    if not 0 <= classifier.seed_ < 2**63:
        refuse(where, f"expected a seed from 0 up, found {shown(classifier.seed_)}")
    classifier.classes_, classifier.target_, classifier.labels_ = classes, target, labels
    classifier.layout_, classifier.atoms_ = layout, layout.atoms
    classifier.background_ = _read_background(arrays.get("background"), len(layout.atoms), where)
    classifier.history_ = read_history(document["history"], where)
    stopped = document["stopped"]
    classifier.stopped_ = None if stopped is None else typed(stopped, str, "a reason to stop", where)
    classifier.broken_ = tuple(
        _read_broken(entry, where) for entry in listed(document["broken"], dict, "a broken formula", where)
    )
    return classifier.know(learned, trained=typed(document["trained"], bool, "true or false", where))


def _read_background(given: Array | None, atoms: int, where: str) -> Bytes | None:
    """Return rows of bytes 0, 1 and 255; None: the file is older, or none were to be kept."""
    if given is None:
        return None
    if given.ndim != 2 or given.dtype != np.uint8 or not len(given) or given.shape[1] != atoms:
        refuse(where, f"expected rows of {atoms} bytes in background, found {given.dtype} of {given.shape}")
    if not ((given <= 1) | (given == MISSING)).all():
        refuse(where, f"expected 0, 1 and {MISSING} in background, found other numbers")
    return given


def _read_parameters(given: Any, where: str) -> LBMClassifier:
    classifier = LBMClassifier()
    known = classifier.get_params(deep=False).keys() - {"knowledge", "units"}
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
    check_keys(given, (*_NAMES, *_NUMBERS, "encoder", "named"), "a layout", where)
    found: dict[str, Any] = {}
    for key in _NAMES:
        found[key] = tuple(listed(given[key], str, "the name of a column", where))
    columns = found["columns"]
    if len(set(columns)) < len(columns):
        refuse(where, "expected every column to be named once, found a name twice")
    for key in _NUMBERS:
        found[key] = tuple(listed(given[key], int, "the number of a column", where))
    encoded, used = found["encoded"], (*found["plain"], *found["encoded"])
    if len(set(used)) < len(used) or not set(used) <= set(range(len(columns))):
        refuse(where, f"expected distinct numbers of {len(columns)} columns in the layout, found others")
    encoder = None if given["encoder"] is None else AtomEncoder.from_state(given["encoder"])
    if len(encoded) != (0 if encoder is None else encoder.n_features_in_):
        refuse(where, f"expected an encoder of {len(encoded)} columns, found another")
    layout = Layout(**found, encoder=encoder)
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


def _read_firing(entry: Any, where: str) -> Firing:
    check_keys(entry, _FIRING, "what rows say of a formula", where)
    found = [None if entry[name] is None else typed(entry[name], float, name, where) for name in _FIRING[1:]]
    return Firing(typed(entry["rows"], int, "a number of rows", where), *found)


def _read_likely(arrays: dict[str, Array], columns: int, groups: Groups, where: str) -> Likely | None:
    """Return how likely rows are, and take its arrays away."""
    parents, tables = arrays.pop("likely.parents", None), arrays.pop("likely.tables", None)
    if parents is None and tables is None:
        return None
    facts = tuple(facts_of(range(columns), groups))
    if parents is None or parents.dtype != np.int64 or parents.shape != (len(facts),):
        refuse(where, f"expected {len(facts)} numbers in likely.parents, found otherwise")
    if not well_formed(parents):
        refuse(where, "expected a tree of facts in likely.parents, found otherwise")
    sizes = [len(patterns) for _, patterns in facts]
    shapes = [(1 if p < 0 else sizes[p], size) for p, size in zip(parents.tolist(), sizes, strict=True)]
    ends = np.cumsum([rows * size for rows, size in shapes], dtype=np.int64)
    wanted = int(ends[-1]) if len(ends) else 0
    if tables is None or tables.dtype != np.float64 or tables.shape != (wanted,):
        refuse(where, f"expected {wanted} numbers in likely.tables, found otherwise")
    if not np.isfinite(tables).all() or (tables > 1e-9).any():
        refuse(where, "expected logarithms of probabilities in likely.tables, found others")
    parts = np.split(tables, ends[:-1])[: len(facts)]  # of nothing there is one part
    return Likely(
        facts, parents, tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    )


def read_history(given: Any, where: str) -> tuple[Epoch, ...]:
    """Return epochs as they stand in a document; where times were not kept they are 0."""
    found = []
    for entry in listed(given, dict, "an epoch", where):
        facts = {"seconds": 0.0, **entry}
        check_keys(facts, Epoch.__slots__, "an epoch", where)
        for name, value in facts.items():
            if value is not None or not name.startswith("validation_"):
                facts[name] = typed(value, int if name == "number" else float, name, where)
        found.append(Epoch(**facts))
    return tuple(found)


# --- knowledge and parameters ---------------------------------------------------------------------


def knowledge_text(knowledge: Knowledge) -> str:
    """Return the formulae of knowledge in the text format, one a line."""
    theory = theory_of(knowledge)
    return "" if theory is None else theory_text(theory)


def theory_of(knowledge: Knowledge, *, given: bool = False) -> Theory | None:
    """Return the formulae of knowledge as a theory, or None; with ``given``, without those learned."""
    said = knowledge.statements[: knowledge.given] if given else knowledge.statements
    return Theory([(s.weight, s.formula) for s in said]) if said else None


def _pack_knowledge(knowledge: Knowledge) -> dict[str, Array]:
    signs = knowledge.signs
    parts = {name: getattr(knowledge, name) for name in ("positive", "owner", "unit", "initial", "fixed")}
    parts |= {"indptr": signs.indptr, "indices": signs.indices, "signs": signs.data}
    parts["text"] = np.frombuffer(knowledge_text(knowledge).encode(), dtype=np.uint8)
    kinds = _KNOWLEDGE.items()
    return {f"knowledge.{name}": np.ascontiguousarray(parts[name], dtype=kind) for name, kind in kinds}


def _read_knowledge(
    arrays: Mapping[str, Array],
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    epsilon: object,
    where: str,
) -> Knowledge:
    """Return knowledge as arrays; it is never compiled again, so that its units are those trained."""
    found: dict[str, Array] = {}
    for name, kind in _KNOWLEDGE.items():
        part = arrays.get(f"knowledge.{name}")
        if part is None or part.dtype != kind or part.ndim != 1:
            refuse(where, f"expected one line of {kind.__name__} in knowledge.{name}, found otherwise")
        found[name] = part
    starts, indices, signs = found["indptr"], found["indices"], found["signs"]
    visible, units, formulae = len(columns) + len(labels), len(starts) - 1, len(found["initial"])
    wanted = {"positive": units, "unit": len(found["owner"]), "signs": len(indices), "fixed": formulae}
    for name, length in wanted.items():
        if len(found[name]) != length:
            refuse(where, f"expected knowledge.{name} of length {length}, found {len(found[name])}")
    check_starts(starts, len(indices), "knowledge.indptr", where)
    for name, high in (("indices", visible), ("owner", formulae), ("unit", units)):
        numbers = found[name]
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < high):
            refuse(where, f"expected numbers from 0 to {high - 1} in knowledge.{name}, found others")
    if not ascending(indices, starts) or not (np.abs(signs) == 1).all():
        refuse(where, "expected ascending atoms with signs 1 and -1 in each unit of knowledge, found others")
    sums = np.concatenate([[0], np.cumsum(signs > 0)])
    if (sums[starts[1:]] - sums[starts[:-1]] != found["positive"]).any():
        refuse(where, "expected knowledge.positive to count the positive signs, found otherwise")
    if not ((found["initial"] > 0) & (found["initial"] <= MAX_CONFIDENCE)).all():
        refuse(where, f"expected confidences above 0 and up to {MAX_CONFIDENCE:g}, found others")
    if not (type(epsilon) is float and 0 < epsilon < 1):
        refuse(where, f"expected an epsilon strictly between 0 and 1, found {shown(epsilon)}")
    names = map(known_as, (*columns, *labels))
    theory = read_theory(
        found["text"], "knowledge.text", formulae, names, where, what="formulae", owner="model"
    )
    return Knowledge(
        columns=columns,
        labels=labels,
        signs=csc_array((signs, indices, starts), shape=(visible, units)),
        positive=found["positive"],
        owner=found["owner"],
        unit=found["unit"],
        initial=found["initial"],
        fixed=found["fixed"] != 0,
        statements=tuple(theory.statements),
        epsilon=epsilon,
    )


def _read_parameters_of(
    arrays: Mapping[str, Array], knowledge: Knowledge, literals: str, groups: Groups, where: str
) -> Parameters:
    """Return the numbers that were learned, whose shapes are compared."""
    given = {name[10:]: values for name, values in arrays.items() if name.startswith("parameter.")}
    weights = given.get("weights")
    if weights is None or weights.ndim != 2 or weights.dtype not in (np.float32, np.float64):
        refuse(where, "expected a matrix of F32 or F64 in parameter.weights, found otherwise")
    columns, labels, hidden = len(knowledge.columns), len(knowledge.labels), weights.shape[1]
    shapes: dict[str, tuple[int, ...]] = {
        "weights": (columns, hidden),
        "label_weights": (labels, hidden),
        "hidden_bias": (hidden,),
        "visible_bias": (columns,),
        "label_bias": (labels,),
    }
    if literals == "tied":
        shapes["raw_confidence"] = (int((~knowledge.fixed).sum()),)
    else:
        shapes |= {"literal_weights": (knowledge.signs.nnz,), "literal_bias": (knowledge.units,)}
    check_arrays(given, shapes, weights.dtype, where)
    own = ("parameter.", "knowledge.")
    if unknown := [name for name in arrays if not name.startswith(own) and name != "background"]:
        refuse(where, f"expected parameters and knowledge, found also {shown(sorted(unknown))}")
    return Parameters(knowledge, {name: given[name] for name in shapes}, literals, groups)
