"""Save and load machines, without ever running what a file says.

A machine file is a safetensors file: arrays, and one line of JSON in its header. ``docs/machine-file.md``
specifies it. A file is taken for hostile until each number in it was checked: nothing in it is executed or
unpickled, and nothing is allocated because the file claims a size.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lbm.errors import FileError, LbmError, LimitExceeded, MachineFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.knowledge.theory import Theory
    from lbm.machine.rbm import Machine

    Array = NDArray[Any]

FORMAT: Final = "lbm-machine"
"""The one key of the header's metadata."""

VERSION: Final = 1
"""What this module writes, and the newest it reads."""

MAX_HEADER: Final = 65_536
"""Bytes of header that are read: ours need about two thousand, whatever the machine."""

_TYPES: Final = {
    "atoms": ("U8",),
    "weights.data": ("F64",),
    "weights.indices": ("I32", "I64"),
    "weights.indptr": ("I32", "I64"),
    "visible_bias": ("F64",),
    "hidden_bias": ("F64",),
    "unit_weights": ("F64",),
    "owner": ("I64",),
    "unit": ("I64",),
    "theory.text": ("U8",),
    "theory.literals": ("I32",),
    "theory.starts": ("I64",),
    "theory.weights": ("I64",),
}
_CODES: Final = {"float64": "F64", "int32": "I32", "int64": "I64", "uint8": "U8"}
_THEORY: Final = {
    "none": (),
    "text": ("theory.text",),
    "clauses": ("theory.literals", "theory.starts"),
    "weighted clauses": ("theory.literals", "theory.starts", "theory.weights"),
}
_DOMAIN: Final = re.compile(r"^[ \t\r\f]*domain\b", re.MULTILINE)
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
    from lbm.knowledge.wire import write_whole

    write_whole(path, [to_bytes(machine)])


def to_bytes(machine: Machine) -> bytes:
    """Return the content of a machine's file."""
    from safetensors.numpy import save as serialize

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
        "version": VERSION,
        "weights": len(tensors["weights.data"]),
    }
    # What could not be loaded is not saved.
    _check_facts(facts, "this machine")
    shapes = {name: (_CODES[array.dtype.name], list(array.shape)) for name, array in tensors.items()}
    _check_shapes(facts, shapes, "this machine")
    _check_arrays(facts, tensors, "this machine")
    names = _read_names(facts, tensors["atoms"], "this machine")
    if names[len(names) - facts["definitions"] :] != list(machine.definitions):
        _refuse("this machine", "expected the definitional atoms to be the last atoms, found another order")
    facts["sha256"] = _digest(facts, tensors)
    # One key only: safetensors writes several in an order that changes from run to run.
    return serialize(tensors, {FORMAT: json.dumps(facts, sort_keys=True, allow_nan=False)})


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
        "visible_bias": np.ascontiguousarray(machine.visible_bias, dtype=np.float64),
        "hidden_bias": np.ascontiguousarray(machine.hidden_bias, dtype=np.float64),
        "unit_weights": np.ascontiguousarray(machine.unit_weights, dtype=np.float64),
        "owner": np.ascontiguousarray(machine.owner, dtype=np.int64),
        "unit": np.ascontiguousarray(machine.unit, dtype=np.int64),
    }


def _pack_theory(machine: Machine) -> tuple[str, dict[str, Array]]:
    """Return how a machine's theory is stored, and its arrays."""
    import numpy as np

    from lbm.knowledge.lexer import MAX_STATEMENT
    from lbm.knowledge.theory import to_lines

    theory = machine.theory
    if theory is None:
        return "none", {}
    if not set(theory.atoms) <= set(machine.declared):
        _refuse("this machine", "expected a theory about the machine's own atoms, found others in it")
    packed = theory.clauses
    if packed is not None and theory.atoms == machine.declared:
        tensors: dict[str, Array] = {
            "theory.literals": np.ascontiguousarray(packed.literals, dtype=np.int32),
            "theory.starts": np.ascontiguousarray(packed.starts, dtype=np.int64),
        }
        if not packed.weights.any():
            return "clauses", tensors
        tensors["theory.weights"] = np.ascontiguousarray(packed.weights, dtype=np.int64)
        return "weighted clauses", tensors
    lines = list(to_lines(theory))
    for line in lines:
        if len(line) > MAX_STATEMENT:
            raise LimitExceeded(
                f"a statement of {len(line)} characters cannot be saved: the text format reads at most "
                f"{MAX_STATEMENT} (limit MAX_STATEMENT)",
                limit="MAX_STATEMENT",
                value=MAX_STATEMENT,
            )
    return "text", {"theory.text": _letters("\n".join(lines))}


def _letters(text: str) -> Array:
    """Return text as an array of UTF-8 bytes."""
    import numpy as np

    try:
        return np.frombuffer(text.encode(), dtype=np.uint8)
    except UnicodeEncodeError:
        _refuse("this machine", "expected names that UTF-8 can write, found half a character (a surrogate)")


# --- loading -------------------------------------------------------------------------------------


def load(path: str | Path) -> Machine:
    """Read a machine from a file that :func:`save` wrote; anything else is one clear error."""
    where = str(path)
    facts, tensors = _read(Path(path), where)
    if _digest(facts, tensors) != facts["sha256"]:
        _refuse(where, "expected contents that match their checksum, found others: the file is damaged")
    _check_arrays(facts, tensors, where)
    names = tuple(_read_names(facts, tensors["atoms"], where))
    definitions = names[len(names) - facts["definitions"] :]
    theory = _read_theory(facts, tensors, names[: len(names) - len(definitions)], where)

    from scipy.sparse import csc_array

    from lbm.machine.rbm import Machine

    return Machine(
        atoms=names,
        weights=csc_array(
            (tensors["weights.data"], tensors["weights.indices"], tensors["weights.indptr"]),
            shape=(facts["atoms"], facts["hidden"]),
        ),
        visible_bias=tensors["visible_bias"],
        hidden_bias=tensors["hidden_bias"],
        epsilon=facts["epsilon"],
        offset=facts["offset"],
        unit_weights=tensors["unit_weights"],
        hard_weight=facts["hard_weight"],
        owner=tensors["owner"],
        unit=tensors["unit"],
        definitions=definitions,
        theory=theory,
    )


def _read(path: Path, where: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what the header says, and the arrays; types and shapes are checked before they are read."""
    from safetensors import SafetensorError, safe_open

    try:
        _check_start(path, where)
        with safe_open(path, framework="np") as file:
            facts = _read_facts(file.metadata(), where)
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            shapes = {name: (part.get_dtype(), list(part.get_shape())) for name, part in found.items()}
            _check_shapes(facts, shapes, where)
            return facts, {name: file.get_tensor(name) for name in sorted(shapes)}
    except SafetensorError as error:
        _refuse(where, f"expected a whole safetensors file, found otherwise: {_reason(error)}")
    except (OSError, ValueError) as error:
        if isinstance(error, LbmError):
            raise
        raise FileError(f"cannot read {where}: {_reason(error)}") from None


def _check_start(path: Path, where: str) -> None:
    """Check that the file is a regular one and begins with a header of believable length."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"cannot read {where}: it is no regular file")
    with path.open("rb") as file:
        start = file.read(9)
    expected = f"expected an {FORMAT} (a safetensors file)"
    if start[8:] != b"{":
        _refuse(
            where, f"{expected}, found " + (f"a file that begins {start!r}" if start else "an empty file")
        )
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER:
        _refuse(where, f"{expected} with a header of at most {MAX_HEADER} bytes, found one of {length}")
    if length > found.st_size - 8:
        _refuse(where, f"expected a header of {length} bytes, found a file cut short after {found.st_size}")


def _read_facts(metadata: Mapping[str, str] | None, where: str) -> dict[str, Any]:
    """Return what the header says, each value checked for its type and range."""
    if metadata and "lbm-model" in metadata:
        _refuse(where, f"expected an {FORMAT}, found a trained model: lbm.load reads it")
    if not metadata or FORMAT not in metadata:
        _refuse(where, f"expected an {FORMAT}, found a safetensors file of something else")
    try:
        facts = json.loads(metadata[FORMAT])
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        _refuse(where, f"expected a JSON object under {FORMAT!r} in the header, found other text")
    version = facts.get("version")
    if type(version) is not int or version < 1:
        _refuse(where, f"expected a version from 1 up, found {_shown(version)}")
    if version > VERSION:
        _refuse(where, f"written by a newer lbm: expected version {VERSION} at most, found {_shown(version)}")
    _check_facts(facts, where, "sha256")
    return facts


def _check_facts(facts: Mapping[str, Any], where: str, *more: str) -> None:
    expected = {"theory", "version", *_COUNTS, *_NUMBERS, *more}
    if facts.keys() != expected:
        _refuse(where, f"expected {_listed(expected)} in the header, {_difference(expected, facts)}")
    for name in _COUNTS:
        if type(facts[name]) is not int or not 0 <= facts[name] < 2**63:
            _refuse(where, f"expected a count as {name}, found {_shown(facts[name])}")
    for name in _NUMBERS:
        if type(facts[name]) is not float or not math.isfinite(facts[name]):
            _refuse(where, f"expected a finite number as {name}, found {_shown(facts[name])}")
    if not 0 < facts["epsilon"] < 1:
        _refuse(where, f"expected an epsilon strictly between 0 and 1, found {facts['epsilon']}")
    if facts["hard_weight"] <= 0:
        _refuse(where, f"expected a positive hard_weight, found {facts['hard_weight']}")
    if facts["definitions"] > facts["atoms"]:
        _refuse(where, f"expected at most {facts['atoms']} definitions, found {facts['definitions']}")
    if not isinstance(facts["theory"], str) or facts["theory"] not in _THEORY:
        _refuse(where, f"expected one of {_listed(_THEORY)} as theory, found {_shown(facts['theory'])}")
    if facts["theory"] == "none" and facts["formulae"]:
        _refuse(where, f"expected no formulae without a theory, found {facts['formulae']}")


def _check_shapes(
    facts: Mapping[str, Any], shapes: Mapping[str, tuple[object, list[int]]], where: str
) -> None:
    """Check names, types and lengths of the arrays before any of them is read."""
    expected = {name for name in _TYPES if not name.startswith("theory.")} | {*_THEORY[facts["theory"]]}
    if shapes.keys() != expected:
        _refuse(where, f"expected the arrays {_listed(expected)}, {_difference(expected, shapes)}")
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
            _refuse(where, f"expected {' or '.join(_TYPES[name])} in {name}, found {kind}")
        if len(shape) != 1 or (name in lengths and shape[0] not in lengths[name]):
            size = " or ".join(map(str, lengths.get(name, ("n",))))
            _refuse(where, f"expected {name} of shape [{size}], found {_shown(shape)}")
    if shapes["weights.indices"][0] != shapes["weights.indptr"][0]:
        _refuse(where, "expected one type in weights.indices and weights.indptr, found two")


def _check_arrays(facts: Mapping[str, Any], tensors: Mapping[str, Array], where: str) -> None:
    """Check that numbers are finite, numbers of things are in range, and columns follow one another."""
    import numpy as np

    for name in ("weights.data", "visible_bias", "hidden_bias", "unit_weights"):
        if not np.isfinite(tensors[name]).all():
            _refuse(where, f"expected finite numbers in {name}, found nan or infinity")
    _check_starts(tensors["weights.indptr"], facts["weights"], "weights.indptr", where)
    _check_range(tensors["weights.indices"], 0, facts["atoms"], "weights.indices", where)
    steps = np.diff(tensors["weights.indices"]) > 0
    begins = tensors["weights.indptr"][1:-1]
    steps[begins[(begins > 0) & (begins < facts["weights"])] - 1] = True
    if not steps.all():
        _refuse(where, "expected ascending atoms within each hidden unit, found another order")
    _check_range(tensors["owner"], 0, facts["formulae"] + facts["definitions"], "owner", where)
    _check_range(tensors["unit"], 0, facts["hidden"], "unit", where)
    if "theory.starts" in tensors:
        literals = tensors["theory.literals"]
        declared = facts["atoms"] - facts["definitions"]
        _check_starts(tensors["theory.starts"], len(literals), "theory.starts", where)
        _check_range(literals, -declared, declared + 1, "theory.literals", where)
        if not literals.all():
            _refuse(where, "expected literals that are not 0 in theory.literals, found 0")


def _check_starts(starts: NDArray[np.integer[Any]], total: int, name: str, where: str) -> None:
    if starts[0] != 0 or starts[-1] != total or (starts[1:] < starts[:-1]).any():
        _refuse(where, f"expected {name} to rise from 0 to {total}, found otherwise")


def _check_range(numbers: NDArray[np.integer[Any]], low: int, high: int, name: str, where: str) -> None:
    if len(numbers) and not (low <= numbers.min() and numbers.max() < high):
        found = f"{numbers.min()} to {numbers.max()}"
        _refuse(where, f"expected numbers from {low} to {high - 1} in {name}, found {found}")


def _read_text(letters: Array, name: str, where: str) -> str:
    try:
        return letters.tobytes().decode()
    except UnicodeDecodeError:
        _refuse(where, f"expected UTF-8 text in {name}, found other bytes")


def _read_names(facts: Mapping[str, Any], letters: Array, where: str) -> list[str]:
    """Return the names of the atoms: as many as the header says, each once, each a line of text."""
    from lbm.knowledge.formula import atom_name

    text = _read_text(letters, "atoms", where)
    lines = text.count("\n") + 1 if facts["atoms"] or text else 0
    if lines != facts["atoms"]:
        _refuse(where, f"expected {facts['atoms']} names of atoms, found {lines}")
    names = text.split("\n") if lines else []
    for name in names:
        if not name or not name.isprintable():
            try:
                atom_name(name)
            except ValueError as error:
                _refuse(where, f"expected names of atoms, found another text: {error}")
    if len(set(names)) != len(names):
        _refuse(where, "expected every atom to be named once, found a name twice")
    return names


def _read_theory(
    facts: Mapping[str, Any], tensors: Mapping[str, Array], declared: tuple[str, ...], where: str
) -> Theory | None:
    """Return the theory, whose atoms must be among those declared."""
    from lbm.knowledge.clauses import Clauses
    from lbm.knowledge.parser import Statement
    from lbm.knowledge.theory import Theory

    if facts["theory"] == "none":
        return None
    if facts["theory"] != "text":
        clauses = Clauses(declared, tensors["theory.literals"], tensors["theory.starts"])
        return Theory.from_clauses(clauses, tensors.get("theory.weights"))
    text = _read_text(tensors["theory.text"], "theory.text", where)
    if _DOMAIN.search(text):  # a rule over domains, a few letters, can stand for a million formulae
        _refuse(where, "expected formulae without variables in theory.text, found a domain")
    try:
        read = Theory.parse(text) if text else Theory()
    except LbmError as error:
        _refuse(where, f"expected a theory in theory.text, found otherwise: {error.one_line()}")
    if len(read) != facts["formulae"]:
        _refuse(where, f"expected {facts['formulae']} formulae in theory.text, found {len(read)}")
    if not set(read.atoms) <= set(declared):
        _refuse(where, "expected a theory about the machine's own atoms, found others in theory.text")
    # The lines it was read from are nobody's: the text stands in a machine file.
    return Theory.from_parts(read.atoms, tuple(Statement(s.formula, s.weight) for s in read))


# --- both ----------------------------------------------------------------------------------------


def _digest(facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    """Return the checksum of all that a file says: it finds damage, not malice."""
    signed = {name: value for name, value in facts.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(signed, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {little.dtype.str[1:]} {len(little)}\n".encode())
        digest.update(little.data if little.size else b"")
    return digest.hexdigest()


def _refuse(where: str, message: str) -> NoReturn:
    raise MachineFileError(f"{where}: {message}") from None


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split())[:200]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _difference(expected: Iterable[str], found: Iterable[str]) -> str:
    missing, extra = set(expected) - set(found), set(found) - set(expected)
    parts = [f"found no {_listed(missing)}"] if missing else []
    parts += [f"found also {_shown(sorted(extra))}"] if extra else []
    return " and ".join(parts)
