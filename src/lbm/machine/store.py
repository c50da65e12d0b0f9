"""Save and load machines, without ever running what a file says.

A machine file is a safetensors file: arrays, and one line of JSON in its header. ``docs/machine-file.md``
specifies it. A file is taken for hostile until each number in it was checked: nothing in it is executed or
unpickled, and nothing is allocated because the file claims a size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lbm.machine import files
from lbm.machine.files import Shapes, difference, named, refuse, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.knowledge.theory import Theory
    from lbm.machine.rbm import Machine

    Array = NDArray[Any]

FORMAT: Final = "lbm-machine"
"""The one key of the header's metadata."""

_CODES: Final = {"float64": "F64", "int32": "I32", "int64": "I64", "uint8": "U8"}
_STORED: Final = {
    "visible_bias": "float64",
    "hidden_bias": "float64",
    "unit_weights": "float64",
    "owner": "int64",
    "unit": "int64",
}
"""Arrays of a machine that are stored under their own names."""

_TYPES: Final = {
    "atoms": ("U8",),
    "weights.data": ("F64",),
    "weights.indices": ("I32", "I64"),
    "weights.indptr": ("I32", "I64"),
    **{name: (_CODES[kind],) for name, kind in _STORED.items()},
    "theory.text": ("U8",),
    "theory.literals": ("I32",),
    "theory.starts": ("I64",),
    "theory.weights": ("I64",),
}
_THEORY: Final = {
    "none": (),
    "text": ("theory.text",),
    "clauses": ("theory.literals", "theory.starts"),
    "weighted clauses": ("theory.literals", "theory.starts", "theory.weights"),
}
_COUNTS: Final = ("atoms", "definitions", "formulae", "hidden", "parts", "weights")
_NUMBERS: Final = ("epsilon", "hard_weight", "offset")


# --- saving --------------------------------------------------------------------------------------


def save(machine: Machine, path: str | Path) -> None:
    """Write a machine to a file, whole or not at all; the same machine gives the same bytes.

    >>> import lbm, tempfile, pathlib
    >>> machine = lbm.translate(lbm.parse("a -> b"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(machine, pathlib.Path(folder, "rule.machine"))
    ...     print(load(pathlib.Path(folder, "rule.machine")).equation())
    E = -h1(a + b - 1.5) - h2(-a + 0.5)
    """
    from lbm.knowledge.packed import write_whole

    write_whole(path, [to_bytes(machine)], as_it_is=True)


def to_bytes(machine: Machine) -> bytes:
    """Return the content of a machine's file."""
    kind, tensors = _pack_theory(machine)
    tensors |= _pack_arrays(machine)
    facts: dict[str, Any] = {
        "atoms": len(machine.atoms),
        "definitions": len(machine.definitions),
        "epsilon": float(machine.epsilon),
        "formulae": machine.formulae,
        "hard_weight": float(machine.hard_weight),
        "hidden": machine.hidden,
        "offset": float(machine.offset),
        "parts": len(machine.owner),
        "theory": kind,
        "version": 2 if machine.calibrated else 1,
        "weights": len(tensors["weights.data"]),
        **({"calibrated": machine.calibrated} if machine.calibrated else {}),
    }
    # What could not be loaded is not saved.
    _check_facts(facts, "this machine")
    shapes = {name: (_CODES[array.dtype.name], list(array.shape)) for name, array in tensors.items()}
    _check_shapes(facts, shapes, "this machine")
    _check_arrays(facts, tensors, "this machine")
    names = _read_names(facts, tensors["atoms"], "this machine")
    if names[len(names) - facts["definitions"] :] != list(machine.definitions):
        refuse("this machine", "expected the definitional atoms to be the last atoms, found another order")
    facts["sha256"] = _digest(facts, tensors)
    return files.write(FORMAT, facts, tensors)


def _pack_arrays(machine: Machine) -> dict[str, Array]:
    """Return the arrays of a machine as they are stored."""
    import numpy as np

    weights = machine.weights
    if not weights.has_canonical_format:
        weights = weights.copy()
        weights.sum_duplicates()
    index = np.int32 if max(*weights.shape, weights.nnz) < 2**31 else np.int64
    return {
        "atoms": _letters("\n".join(machine.atoms)),
        "weights.data": np.ascontiguousarray(weights.data, dtype=np.float64),
        "weights.indices": np.ascontiguousarray(weights.indices, dtype=index),
        "weights.indptr": np.ascontiguousarray(weights.indptr, dtype=index),
        **{name: np.ascontiguousarray(getattr(machine, name), dtype=kind) for name, kind in _STORED.items()},
    }


def _pack_theory(machine: Machine) -> tuple[str, dict[str, Array]]:
    """Return how a machine's theory is stored, and its arrays."""
    import numpy as np

    theory = machine.theory
    if theory is None:
        return "none", {}
    if not set(theory.atoms) <= set(machine.declared):
        refuse("this machine", "expected a theory about the machine's own atoms, found others in it")
    packed = theory.clauses
    if packed is not None and not packed.digits and theory.atoms == machine.declared:
        tensors: dict[str, Array] = {
            "theory.literals": np.ascontiguousarray(packed.literals, dtype=np.int32),
            "theory.starts": np.ascontiguousarray(packed.starts, dtype=np.int64),
        }
        if not packed.weights.any():
            return "clauses", tensors
        tensors["theory.weights"] = np.ascontiguousarray(packed.weights, dtype=np.int64)
        return "weighted clauses", tensors
    return "text", {"theory.text": _letters(files.theory_text(theory))}


def _letters(text: str) -> Array:
    """Return text as an array of UTF-8 bytes."""
    import numpy as np

    try:
        return np.frombuffer(text.encode(), dtype=np.uint8)
    except UnicodeEncodeError:
        refuse("this machine", "expected names that UTF-8 can write, found half a character (a surrogate)")


# --- loading -------------------------------------------------------------------------------------


def load(path: str | Path) -> Machine:
    """Read a machine from a file that :func:`save` wrote; anything else is one clear error."""
    where = str(path)

    def check(facts: Any, shapes: Shapes) -> None:
        if not isinstance(facts, dict):
            refuse(where, f"expected a JSON object under {FORMAT!r} in the header, found other text")
        files.check_version(facts.get("version"), where)
        _check_facts(facts, where, "sha256")
        _check_shapes(facts, shapes, where)

    facts, tensors = files.read(path, FORMAT, check)
    files.check_digest(_digest(facts, tensors), facts, where)
    _check_arrays(facts, tensors, where)
    names = tuple(_read_names(facts, tensors["atoms"], where))
    definitions = names[len(names) - facts["definitions"] :]
    theory = _read_theory(facts, tensors, names[: len(names) - len(definitions)], where)

    from scipy.sparse import csc_array

    from lbm.machine.rbm import Machine

    stored: dict[str, Any] = {name: tensors[name] for name in _STORED}
    stored |= {name: facts[name] for name in _NUMBERS}
    stored["calibrated"] = facts.get("calibrated", 0)
    return Machine(
        atoms=names,
        weights=csc_array(
            (tensors["weights.data"], tensors["weights.indices"], tensors["weights.indptr"]),
            shape=(facts["atoms"], facts["hidden"]),
        ),
        definitions=definitions,
        theory=theory,
        **stored,
    )


def _check_facts(facts: Mapping[str, Any], where: str, *more: str) -> None:
    counts = (*_COUNTS, "calibrated") if facts.get("version") == 2 else _COUNTS
    expected = {"theory", "version", *counts, *_NUMBERS, *more}
    if facts.keys() != expected:
        refuse(where, f"expected {named(expected)} in the header, {difference(expected, facts)}")
    for name in counts:
        if type(facts[name]) is not int or not 0 <= facts[name] < 2**63:
            refuse(where, f"expected a count as {name}, found {shown(facts[name])}")
    for name in _NUMBERS:
        if type(facts[name]) is not float or not math.isfinite(facts[name]):
            refuse(where, f"expected a finite number as {name}, found {shown(facts[name])}")
    if not 0 < facts["epsilon"] < 1:
        refuse(where, f"expected an epsilon strictly between 0 and 1, found {facts['epsilon']}")
    if facts["hard_weight"] <= 0:
        refuse(where, f"expected a positive hard_weight, found {facts['hard_weight']}")
    if facts["definitions"] > facts["atoms"]:
        refuse(where, f"expected at most {facts['atoms']} definitions, found {facts['definitions']}")
    if "calibrated" in facts and not 0 < facts["calibrated"] <= facts["hidden"]:
        found = f"expected 1 to {facts['hidden']} calibrated hidden units, found {facts['calibrated']}"
        refuse(where, found)
    if not isinstance(facts["theory"], str) or facts["theory"] not in _THEORY:
        refuse(where, f"expected one of {named(_THEORY)} as theory, found {shown(facts['theory'])}")
    if facts["theory"] == "none" and facts["formulae"]:
        refuse(where, f"expected no formulae without a theory, found {facts['formulae']}")


def _check_shapes(facts: Mapping[str, Any], shapes: Shapes, where: str) -> None:
    """Check names, types and lengths of the arrays before any of them is read."""
    expected = {name for name in _TYPES if not name.startswith("theory.")} | {*_THEORY[facts["theory"]]}
    if shapes.keys() != expected:
        refuse(where, f"expected the arrays {named(expected)}, {difference(expected, shapes)}")
    hidden, formulae = facts["hidden"], facts["formulae"]
    lengths = {
        "weights.data": (facts["weights"],),
        "weights.indices": (facts["weights"],),
        "weights.indptr": (hidden + 1,),
        "visible_bias": (facts["atoms"],),
        "hidden_bias": (hidden,),
        "unit_weights": (hidden, 0),
        "owner": (facts["parts"],),
        "unit": (facts["parts"],),
        "theory.starts": (formulae + 1,),
        "theory.weights": (formulae,),
    }
    for name in sorted(expected):
        kind, shape = shapes[name]
        if kind not in _TYPES[name]:
            refuse(where, f"expected {' or '.join(_TYPES[name])} in {name}, found {kind}")
        if len(shape) != 1 or (name in lengths and shape[0] not in lengths[name]):
            size = " or ".join(map(str, lengths.get(name, ("n",))))
            refuse(where, f"expected {name} of shape [{size}], found {shown(shape)}")
    if shapes["weights.indices"][0] != shapes["weights.indptr"][0]:
        refuse(where, "expected one type in weights.indices and weights.indptr, found two")


def _check_arrays(facts: Mapping[str, Any], tensors: Mapping[str, Array], where: str) -> None:
    """Check that numbers are finite, numbers of things are in range, and columns follow one another."""
    for name in ("weights.data", "visible_bias", "hidden_bias", "unit_weights"):
        files.check_finite(tensors[name], name, where)
    files.check_starts(tensors["weights.indptr"], facts["weights"], "weights.indptr", where)
    _check_range(tensors["weights.indices"], 0, facts["atoms"], "weights.indices", where)
    if not files.ascending(tensors["weights.indices"], tensors["weights.indptr"]):
        refuse(where, "expected ascending atoms within each hidden unit, found another order")
    _check_range(tensors["owner"], 0, facts["formulae"] + facts["definitions"], "owner", where)
    _check_range(tensors["unit"], 0, facts["hidden"], "unit", where)
    if "theory.starts" in tensors:
        literals = tensors["theory.literals"]
        declared = facts["atoms"] - facts["definitions"]
        files.check_starts(tensors["theory.starts"], len(literals), "theory.starts", where)
        _check_range(literals, -declared, declared + 1, "theory.literals", where)
        if not literals.all():
            refuse(where, "expected literals that are not 0 in theory.literals, found 0")


def _check_range(numbers: NDArray[np.integer[Any]], low: int, high: int, name: str, where: str) -> None:
    if len(numbers) and not (low <= numbers.min() and numbers.max() < high):
        found = f"{numbers.min()} to {numbers.max()}"
        refuse(where, f"expected numbers from {low} to {high - 1} in {name}, found {found}")


def _read_names(facts: Mapping[str, Any], letters: Array, where: str) -> list[str]:
    """Return the names of the atoms: as many as the header says, each once, each a line of text."""
    from lbm.knowledge.formula import atom_name

    text = files.read_text(letters, "atoms", where)
    lines = text.count("\n") + 1 if facts["atoms"] or text else 0
    if lines != facts["atoms"]:
        refuse(where, f"expected {facts['atoms']} names of atoms, found {lines}")
    names = text.split("\n") if lines else []
    for name in names:
        if not name or not name.isprintable():
            try:
                atom_name(name)
            except ValueError as error:
                refuse(where, f"expected names of atoms, found another text: {error}")
    if len(set(names)) != len(names):
        refuse(where, "expected every atom to be named once, found a name twice")
    return names


def _read_theory(
    facts: Mapping[str, Any], tensors: Mapping[str, Array], declared: tuple[str, ...], where: str
) -> Theory | None:
    """Return the theory, whose atoms must be among those declared."""
    from lbm.knowledge.clauses import Clauses
    from lbm.knowledge.theory import Theory

    if facts["theory"] == "none":
        return None
    if facts["theory"] != "text":
        clauses = Clauses(declared, tensors["theory.literals"], tensors["theory.starts"])
        return Theory.from_clauses(clauses, tensors.get("theory.weights"))
    text, formulae = tensors["theory.text"], facts["formulae"]
    return files.read_theory(text, "theory.text", formulae, declared, where, what="a theory", owner="machine")


# --- both ----------------------------------------------------------------------------------------


def _digest(facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    """Return the checksum of all that a file says: it finds damage, not malice."""
    signed = {name: value for name, value in facts.items() if name != "sha256"}
    return files.digest(tensors, len, before=json.dumps(signed, sort_keys=True).encode())
