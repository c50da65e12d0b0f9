"""What model files and checkpoints share: arrays and one JSON object in a safetensors file, with a checksum.

The header's metadata has one key, which says what the file is; its value is JSON with ``version`` and
``sha256``. The array ``document`` is the JSON object as UTF-8, the others are numbers. A file is taken for
hostile until each part of it was checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from lbm.errors import FileError, LbmError, MachineFileError
from lbm.machine.store import MAX_HEADER
from lbm.training.storage.kinds import KINDS

VERSION: Final = 1
"""What this module writes, and the newest it reads."""

DOCUMENT: Final = "document"

_TYPES: Final = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I8": np.int8, "U8": np.uint8}

Array = NDArray[Any]
T = TypeVar("T")


def pack(kind: str, document: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return the content of a file; the same parts give the same bytes."""
    from safetensors.numpy import save as serialize

    text = json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=True)
    tensors = {DOCUMENT: np.frombuffer(text.encode(), dtype=np.uint8)}
    tensors |= {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # One key only: safetensors writes several in an order that changes from run to run.
    facts = {"sha256": _digest(tensors), "version": VERSION}
    return serialize(tensors, {kind: json.dumps(facts, sort_keys=True)})


def unpack(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the document and the arrays of a file of this kind."""
    from safetensors import SafetensorError, safe_open

    where = str(path)
    try:
        _check_start(Path(path), where, kind)
        with safe_open(path, framework="np") as file:
            facts = _read_facts(file.metadata(), kind, where)
            for name in file.keys():  # noqa: SIM118 - no mapping
                found = file.get_slice(name).get_dtype()
                if found not in _TYPES:
                    refuse(where, f"expected one of {', '.join(_TYPES)} in {name}, found {found}")
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except SafetensorError as error:
        refuse(where, f"expected a whole safetensors file, found otherwise: {reason(error)}")
    except (OSError, ValueError) as error:
        if isinstance(error, LbmError):
            raise
        raise FileError(f"cannot read {where}: {reason(error)}") from None
    if _digest(tensors) != facts["sha256"]:
        refuse(where, "expected contents that match their checksum, found others: the file is damaged")
    document = tensors.pop(DOCUMENT, None)
    return _read_document(document, where), tensors


def _check_start(path: Path, where: str, kind: str) -> None:
    """Check that the file is a regular one and begins with a header of believable length."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"cannot read {where}: it is no regular file")
    with path.open("rb") as file:
        start = file.read(9)
    expected = f"expected an {kind} (a safetensors file)"
    if start[8:] != b"{":
        what = f"a file that begins {start!r}" if start else "an empty file"
        refuse(where, f"{expected}, found {what}")
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER:
        refuse(where, f"{expected} with a header of at most {MAX_HEADER} bytes, found one of {length}")
    if length > found.st_size - 8:
        refuse(where, f"expected a header of {length} bytes, found a file cut short after {found.st_size}")


def _read_facts(metadata: Mapping[str, str] | None, kind: str, where: str) -> dict[str, Any]:
    found = metadata or {}
    if kind not in found:
        other = next((KINDS[key] for key in KINDS if key in found), "a safetensors file of something else")
        refuse(where, f"expected an {kind}, found {other}")
    try:
        facts = json.loads(found[kind])
    except (ValueError, RecursionError):
        facts = None
    check_keys(facts, ("sha256", "version"), f"the header of an {kind}", where)
    version = facts["version"]
    if type(version) is not int or version < 1:
        refuse(where, f"expected a version from 1 up, found {shown(version)}")
    if version > VERSION:
        refuse(where, f"written by a newer lbm: expected version {VERSION} at most, found {shown(version)}")
    return dict(facts)


def _read_document(letters: Array | None, where: str) -> dict[str, Any]:
    try:
        document = (
            None if letters is None else json.loads(letters.tobytes().decode(), parse_constant=_no_number)
        )
    except (ValueError, RecursionError):  # which UnicodeDecodeError is too
        document = None
    if not isinstance(document, dict):
        refuse(where, f"expected a JSON object in {DOCUMENT}, found something else")
    return document


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _digest(tensors: Mapping[str, Array]) -> str:
    """Return the checksum of all arrays: it finds damage, not malice."""
    digest = hashlib.sha256()
    for name, array in sorted(tensors.items()):
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {little.dtype.str[1:]} {list(little.shape)}\n".encode())
        digest.update(little.data if little.size else b"")
    return digest.hexdigest()


# --- checks --------------------------------------------------------------------------------------


def refuse(where: str, message: str) -> NoReturn:
    """Raise the error of a file that is not what it should be."""
    raise MachineFileError(f"{where}: {message}") from None


def check_keys(given: Any, expected: Iterable[str], what: str, where: str) -> None:
    """Check that a part of a document is an object with exactly these keys."""
    wanted = set(expected)
    if not isinstance(given, dict):
        refuse(where, f"expected {what} as a JSON object, found {shown(given)}")
    if given.keys() != wanted:
        missing, extra = sorted(wanted - given.keys()), sorted(given.keys() - wanted)
        parts = [f"found no {', '.join(missing)}"] if missing else []
        parts += [f"found also {shown(extra)}"] if extra else []
        refuse(where, f"expected {what} with {', '.join(sorted(wanted))}, {' and '.join(parts)}")


def typed(value: Any, kind: type[T], what: str, where: str) -> T:
    """Return a value of exactly this type; a float may be written as a whole number, and is finite."""
    if kind is float and type(value) is int and abs(value) < 2**1000:
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        refuse(where, f"expected {what} of type {kind.__name__}, found {shown(value)}")
    return value


def listed(value: Any, kind: type[T], what: str, where: str) -> list[T]:
    """Return a list of values of exactly this type."""
    if not isinstance(value, list):
        refuse(where, f"expected a list, each {what}, found {shown(value)}")
    return [typed(part, kind, what, where) for part in value]


def check_arrays(
    given: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], dtype: Any, where: str
) -> None:
    """Check names, shapes and type of arrays, and that their numbers are finite."""
    check_keys(dict(given), shapes, "parameters", where)
    for name, shape in shapes.items():
        array = given[name]
        if array.shape != shape or array.dtype != dtype:
            found = f"{array.dtype.name} of shape {list(array.shape)}"
            refuse(where, f"expected {name}: {np.dtype(dtype).name} of shape {list(shape)}, found {found}")
        if not np.isfinite(array).all():
            refuse(where, f"expected finite numbers in {name}, found nan or infinity")


def reason(error: Exception) -> str:
    """Return why something failed, on one short line."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split())[:200]


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of many thousand digits
        text = "a very long number"
    return text if len(text) <= 60 else text[:60] + "..."
