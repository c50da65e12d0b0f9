"""Relational models on disk: what is no array is JSON; every part is checked before it is used.

A file of safetensors, as machines and models have. Queries, rules and background are text, which is parsed
and never run; sizes that a file claims allocate nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import csc_array

from lbm.errors import LbmError
from lbm.knowledge.packed import write_whole
from lbm.machine.files import (
    check_finite,
    check_keys,
    check_starts,
    listed,
    pack,
    read_text,
    reason,
    refuse,
    shown,
    typed,
    unpack,
)
from lbm.machine.rbm import Machine
from lbm.relations.learned import LearnedRule
from lbm.relations.model import Member, RelationalModel, RelationRules, program_text
from lbm.relations.modes import read_modes
from lbm.relations.prolog.program import make_program
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.written import mode_lines

if TYPE_CHECKING:
    from lbm.machine.files import Array

FORMAT: Final = "lbm-relational"
"""The one key of the header's metadata."""

FEATURES: Final = ("paper", "constants", "comparison")
"""What columns may be."""

_KEYS: Final = ("background", "columns", "depth", "examples", "features", "members", "modes", "name",
                "relations", "rules", "target")  # fmt: skip
_ARRAYS: Final = {
    "indptr": np.int64,
    "indices": np.int64,
    "weights": np.float64,
    "visible_bias": np.float64,
    "hidden_bias": np.float64,
}
"""Arrays of each machine and their types."""


def save_relational(model: RelationalModel, path: str | Path) -> None:
    """Write a relational model to a file, whole or not at all; the same model gives the same bytes."""
    write_whole(path, [relational_bytes(model)], as_it_is=True)


def relational_bytes(model: RelationalModel) -> bytes:
    """Return the content of a model's file."""
    arrays: dict[str, Array] = {}
    for number, member in enumerate(model.members):
        machine = member.machine
        parts = {
            "indptr": machine.weights.indptr,
            "indices": machine.weights.indices,
            "weights": machine.weights.data,
            "visible_bias": machine.visible_bias,
            "hidden_bias": machine.hidden_bias,
        }
        arrays |= {f"machine.{number}.{name}": parts[name].astype(kind) for name, kind in _ARRAYS.items()}
    place: dict[str, Any] = {"path": model.place, "sha256": model.digest}
    if model.background is not None:
        place = {"path": None, "sha256": None}
        arrays["background"] = np.frombuffer(program_text(model.background).encode(), dtype=np.uint8)
    relations = model.relations
    document = {
        "background": place,
        "columns": list(model.columns),
        "depth": model.depth,
        "examples": model.examples,
        "features": model.features,
        "members": [list(member.columns) for member in model.members],
        "modes": list(mode_lines(model.modes)),
        "name": model.name,
        "relations": None
        if relations is None
        else {
            "text": relations.text,
            "labels": [[name, label] for name, label in relations.labels.items()],
            "share": relations.share,
            "weight": relations.weight,
        },
        "rules": [
            {
                "weight": rule.weight,
                "positive": rule.positive,
                "body": [list(literal) for literal in rule.body],
                "covers": rule.covers,
                "right": rule.right,
            }
            for rule in model.rules
        ],
        "target": list(model.target),
    }
    return pack(FORMAT, document, arrays)


def load_relational(path: str | Path) -> RelationalModel:
    """Return the model that :func:`save_relational` wrote; anything else is one clear error."""
    where = str(path)
    document, arrays = unpack(path, FORMAT)
    try:
        return _read(document, arrays, where)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        if isinstance(error, LbmError):
            refuse(where, f"expected a relational model, found otherwise: {error.one_line()}")
        refuse(where, f"expected the parts of a relational model, found otherwise: {reason(error)}")


def _read(document: Mapping[str, Any], arrays: Mapping[str, Array], where: str) -> RelationalModel:
    check_keys(document, _KEYS, "a relational model", where)
    name, arity = document["target"]
    target = typed(name, str, "a target", where), typed(arity, int, "an arity", where)
    columns = tuple(listed(document["columns"], str, "the text of a column", where))
    features = document["features"]
    if features not in FEATURES or len(set(columns)) < len(columns):
        refuse(where, f"expected distinct columns of a known kind, found {shown(features)}")
    lines = listed(document["modes"], str, "a directive", where)
    modes, _ = read_modes(read_clauses("\n".join(lines), source=where))
    if not any(mode.predicate == target for mode in modes.head):
        refuse(where, "expected a mode of the head for the target, found none")
    depth = document["depth"]
    members = [
        _member(number, [typed(k, int, "a column", where) for k in seen], len(columns), arrays, where)
        for number, seen in enumerate(listed(document["members"], list, "columns", where))
    ]
    if not members:
        refuse(where, "expected one machine at least, found none")
    place = document["background"]
    check_keys(place, ("path", "sha256"), "a background", where)
    background = None
    if place["path"] is None:
        text = read_text(arrays["background"], "background", where)
        background = make_program(read_clauses(text, source=f"background of {where}"))
    else:
        typed(place["path"], str, "a path", where), typed(place["sha256"], str, "a hash", where)
    model = RelationalModel(
        name=typed(document["name"], str, "a name", where),
        target=target,
        modes=modes,
        features=features,
        depth=None if depth is None else typed(depth, int, "a depth", where),
        columns=columns,
        members=tuple(members),
        rules=tuple(
            _rule(entry, columns, where) for entry in listed(document["rules"], dict, "a rule", where)
        ),
        examples=typed(document["examples"], int, "a number of examples", where),
        background=background,
        place=place["path"],
        digest=place["sha256"],
        relations=_relations(document["relations"], where),
    )
    assert model.queries is not None, "texts of columns are read once here: what is none is an error"
    return model


def _member(
    number: int, seen: Sequence[int], columns: int, arrays: Mapping[str, Array], where: str
) -> Member:
    found = {}
    for name, kind in _ARRAYS.items():
        part = arrays.get(f"machine.{number}.{name}")
        if part is None or part.dtype != kind or part.ndim != 1:
            refuse(where, f"expected one line of {kind.__name__} in machine.{number}.{name}, found otherwise")
        if kind is np.float64:
            check_finite(part, f"machine.{number}.{name}", where)
        found[name] = part
    atoms, units = len(seen) + 1, len(found["hidden_bias"])
    if len(set(seen)) < len(seen) or not all(0 <= k < columns for k in seen):
        refuse(where, f"expected distinct numbers of {columns} columns, found others")
    starts, indices = found["indptr"], found["indices"]
    check_starts(starts, len(indices), f"machine.{number}.indptr", where)
    fits = len(starts) == units + 1 and len(found["weights"]) == len(indices)
    if not fits or len(found["visible_bias"]) != atoms or ((indices < 0) | (indices >= atoms)).any():
        refuse(where, f"expected a machine of {atoms} atoms and {units} units, found another")
    weights = csc_array((found["weights"], indices, starts), shape=(atoms, units))
    names = (*(f"column {k}" for k in seen), "target")
    return Member(Machine(names, weights, found["visible_bias"], found["hidden_bias"]), tuple(seen))


def _rule(entry: Mapping[str, Any], columns: Sequence[str], where: str) -> LearnedRule:
    check_keys(entry, ("weight", "positive", "body", "covers", "right"), "a rule", where)
    known = set(columns)
    body = []
    for literal in listed(entry["body"], list, "a literal", where):
        text, truth = literal
        if typed(text, str, "a column", where) not in known:
            refuse(where, f"expected rules over the model's columns, found {shown(text)}")
        body.append((text, typed(truth, bool, "true or false", where)))
    return LearnedRule(
        typed(entry["weight"], float, "a weight", where),
        typed(entry["positive"], bool, "true or false", where),
        tuple(body),
        typed(entry["covers"], int, "a number of examples", where),
        typed(entry["right"], int, "a number of examples", where),
    )


def _relations(given: Any, where: str) -> RelationRules | None:
    if given is None:
        return None
    check_keys(given, ("text", "labels", "share", "weight"), "rules over relations", where)
    labels = {}
    for pair in listed(given["labels"], list, "a label", where):
        name, label = pair
        labels[typed(name, str, "an atom", where)] = typed(label, bool, "true or false", where)
    weight = given["weight"]
    return RelationRules(
        typed(given["text"], str, "rules", where),
        labels,
        typed(given["share"], float, "a share", where),
        None if weight is None else typed(weight, float, "a weight", where),
    )
