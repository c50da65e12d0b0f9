"""Layers on disk, without ever running what a file says.

A layer file is a safetensors file with one line of JSON in its header, as machines and models have: the
theory as text, or as a circuit where it is one; the names of inputs and queries; and the weights. What is
compiled is compiled again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from lbm.knowledge.circuit_files import circuit_theory, nnf_lines
from lbm.knowledge.circuit_formulae import circuit_of_formula, is_circuit_formula
from lbm.knowledge.circuits import Builder
from lbm.knowledge.packed import write_whole
from lbm.knowledge.theory import Theory
from lbm.machine.files import (
    check_arrays,
    check_keys,
    listed,
    pack,
    read_theory,
    refuse,
    shown,
    theory_text,
    typed,
    unpacked,
)
from lbm.nn.layer import LogicLayer

if TYPE_CHECKING:
    from lbm.machine.files import Array

FORMAT: Final = "lbm-layer"
"""The one key of the header's metadata."""

_KEYS: Final = (
    *("atoms", "confidence", "formulae", "given", "groups", "heads", "inputs", "loss", "method"),
    *("queries", "samples", "seconds", "theory", "trained"),
)
_TYPES: Final = {"float32": np.float32, "float64": np.float64}


def save_layer(layer: LogicLayer, path: str | Path) -> None:
    """Write a layer to a file, whole or not at all; the same layer gives the same bytes.

    >>> import lbm, tempfile, pathlib
    >>> layer = LogicLayer("2: rain -> wet", inputs=["rain"], queries=["wet"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lbm.save(layer, pathlib.Path(folder, "rain.layer"))
    ...     print(lbm.load(pathlib.Path(folder, "rain.layer")))
    LogicLayer(1 columns of 1 inputs, queries: wet)
    """
    write_whole(path, [layer_bytes(layer)], as_it_is=True)


def load_layer(path: str | Path) -> LogicLayer:
    """Return the layer that :func:`save_layer` wrote; anything else is one clear error."""
    return unpacked(path, FORMAT, "a layer", _read)


def layer_bytes(layer: LogicLayer) -> bytes:
    """Return the content of a layer's file."""
    kind, text = _theory_bytes(layer.theory)
    weights = layer.weights.detach().cpu().numpy()
    document = {
        "atoms": list(layer.atoms),
        "formulae": len(layer.theory),
        "given": None if layer.compiled.given is None else str(layer.compiled.given),
        "groups": layer.compiled.groups,
        "heads": layer.heads,
        "method": layer.method,
        "loss": layer.loss,
        "confidence": float(layer.confidence),
        "samples": layer.samples,
        "inputs": [list(choice) for choice in layer.inputs],
        "queries": [
            {"choice": list(asked.choice), "formula": None if asked.formula is None else str(asked.formula)}
            for asked in layer.queries
        ],
        "seconds": layer.compiled.seconds,
        "theory": kind,
        "trained": layer.weights.requires_grad,
    }
    return pack(FORMAT, document, {"theory": np.frombuffer(text, np.uint8), "weights": weights})


def _theory_bytes(theory: Theory) -> tuple[str, bytes]:
    """Return a theory as text, or as a circuit if it is one."""
    statements = list(theory)
    if len(statements) == 1 and is_circuit_formula(statements[0].formula):
        build = Builder(len(theory.atoms))
        place = {name: i for i, name in enumerate(theory.atoms)}
        circuit = build.circuit(circuit_of_formula(statements[0].formula, place, build))
        return "circuit", "".join(nnf_lines(circuit, atoms=theory.atoms)).encode()
    return "text", theory_text(theory).encode()


def _read(document: Mapping[str, Any], arrays: Mapping[str, Array], where: str) -> LogicLayer:
    """Return a layer from parts, each of which is checked before it is used."""
    check_keys(document, _KEYS, "a layer", where)
    check_keys(dict(arrays), ("theory", "weights"), "arrays of a layer", where)
    atoms = tuple(listed(document["atoms"], str, "the name of an atom", where))
    formulae = typed(document["formulae"], int, "a number of formulae", where)
    kind = typed(document["theory"], str, "how the theory is written", where)
    letters = arrays["theory"]
    if kind == "circuit":
        theory = circuit_theory(letters.tobytes(), variables=len(atoms), source=where)
    elif kind == "text":
        theory = read_theory(letters, "theory", formulae, atoms, where, what="a theory", owner="layer")
    else:
        refuse(where, f"expected a theory as text or circuit, found {shown(kind)}")
    if set(theory.atoms) - set(atoms) or len(set(atoms)) != len(atoms):
        refuse(where, "expected the theory's own atoms, each named once, found others")
    theory = Theory.from_parts(atoms, tuple(theory))
    inputs = [
        tuple(listed(choice, str, "the name of an atom", where))
        for choice in listed(document["inputs"], list, "an input", where)
    ]
    queries: list[Any] = []
    for asked in listed(document["queries"], dict, "a query", where):
        check_keys(asked, ("choice", "formula"), "a query", where)
        choice = tuple(listed(asked["choice"], str, "the name of an atom", where))
        formula = asked["formula"]
        if formula is not None:
            queries.append(typed(formula, str, "a formula", where))
        else:
            queries.append(choice if len(choice) > 1 else "".join(choice))
    given, seconds = document["given"], document["seconds"]
    layer = LogicLayer(
        theory,
        inputs=inputs,
        queries=queries or None,
        given=None if given is None else typed(given, str, "evidence", where),
        groups=typed(document["groups"], bool, "true or false", where),
        heads=typed(document["heads"], int, "a number of heads", where),
        method=typed(document["method"], str, "a method", where),
        loss=typed(document["loss"], str, "a loss", where),
        confidence=typed(document["confidence"], float, "a confidence", where),
        samples=typed(document["samples"], int, "a number of samples", where),
        seconds=None if seconds is None else typed(seconds, float, "a number of seconds", where),
    )
    dtype = arrays["weights"].dtype
    if dtype.name not in _TYPES:
        refuse(where, f"expected float32 or float64 in weights, found {dtype.name}")
    check_arrays({"weights": arrays["weights"]}, {"weights": tuple(layer.weights.shape)}, dtype, where)
    layer.weights = torch.nn.Parameter(
        torch.from_numpy(arrays["weights"].copy()),
        requires_grad=typed(document["trained"], bool, "true or false", where),
    )
    return layer
