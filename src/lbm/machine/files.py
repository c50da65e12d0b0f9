"""What files of machines, models and checkpoints share: safetensors, one line of JSON in the header.

The header's metadata has one key, which says what the file is; its value is JSON with a version and a
checksum. A file is taken for hostile until each part of it was checked: nothing in it is executed or
unpickled, no rule in it is expanded, and nothing is allocated because the file claims a size.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from lbm.errors import FileError, LbmError, LimitExceeded, MachineFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.knowledge.theory import Theory

    Array = NDArray[Any]

KINDS: Final = {
    "lbm-machine": "a machine: lbm.load reads it",
    "lbm-model": "a trained model: lbm.load reads it",
    "lbm-relational": "a relational model: lbm.load reads it",
    "lbm-layer": "a layer: lbm.load reads it",
    "lbm-checkpoint": "a checkpoint: `lbm train --resume` goes on with it",
}
"""Files of ours by the key of their header, and who reads them."""

VERSION: Final = 2
"""The newest version of a machine that is read. What version 1 can say is written as version 1."""

NEWEST: Final = {"lbm-model": 3}
"""The same of other kinds of files, where it is not VERSION."""

MAX_HEADER: Final = 65_536
"""Bytes of header that are read: ours need about two thousand, whatever the machine."""

DOCUMENT: Final = "document"
"""The array that is a JSON object as UTF-8, in files that have one."""

_NUMBERS: Final = ("F32", "F64", "I64", "I8", "U8")
_DOMAIN: Final = re.compile(r"^[ \t\r\f]*domain\b", re.MULTILINE)

T = TypeVar("T")
Shapes = Mapping[str, tuple[str, list[int]]]
"""Type and shape of every array by its name, as the header has them."""


# --- any file ------------------------------------------------------------------------------------


def write(kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> bytes:
    """Return the content of a file; the same parts give the same bytes."""
    from safetensors.numpy import save as serialize

    # One key only: safetensors writes several in an order that changes from run to run.
    return serialize(dict(tensors), {kind: json.dumps(facts, sort_keys=True, allow_nan=False)})


def read(
    path: str | Path, kind: str, check: Callable[[Any, Shapes], object]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what the header of a file of this kind says, and its arrays.

    ``check`` is given the header's JSON, None if it is none, and the shapes of arrays before they are read.
    """
    from safetensors import SafetensorError, safe_open

    where = str(path)
    try:
        _check_start(Path(path), kind, where)
        with safe_open(path, framework="np") as file:
            facts = _read_facts(file.metadata(), kind, where)
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            check(facts, {name: (part.get_dtype(), list(part.get_shape())) for name, part in parts.items()})
            return facts, {name: file.get_tensor(name) for name in sorted(parts)}
    except SafetensorError as error:
        refuse(where, f"expected a whole safetensors file, found otherwise: {reason(error)}")
    except (OSError, ValueError) as error:
        if isinstance(error, LbmError):
            raise
        raise FileError(f"cannot read {where}: {reason(error)}") from None


def _check_start(path: Path, kind: str, where: str) -> None:
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


def _read_facts(metadata: Mapping[str, str] | None, kind: str, where: str) -> Any:
    found = metadata or {}
    if kind not in found:
        other = next((KINDS[key] for key in KINDS if key in found), "a safetensors file of something else")
        refuse(where, f"expected an {kind}, found {other}")
    try:
        return json.loads(found[kind])
    except (ValueError, RecursionError):
        return None


def digest(
    tensors: Mapping[str, Array],
    size: Callable[[Array], object] = lambda array: list(array.shape),
    *,
    before: bytes = b"",
) -> str:
    """Return the checksum of all arrays, and of what is ``before`` them: it finds damage, not malice."""
    found = hashlib.sha256(before)
    for name, array in sorted(tensors.items()):
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        found.update(f"\n{name} {little.dtype.str[1:]} {size(little)}\n".encode())
        found.update(little.data if little.size else b"")
    return found.hexdigest()


def check_digest(found: str, facts: Mapping[str, Any], where: str) -> None:
    """Refuse a file whose contents are not those that its checksum was made of."""
    if found != facts["sha256"]:
        refuse(where, "expected contents that match their checksum, found others: the file is damaged")


# --- arrays beside a document --------------------------------------------------------------------


def pack(kind: str, document: Mapping[str, Any], arrays: Mapping[str, Array], *, version: int = 1) -> bytes:
    """Return the content of a file of arrays and one JSON object."""
    import numpy as np

    text = json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=True)
    tensors = {DOCUMENT: np.frombuffer(text.encode(), dtype=np.uint8)}
    tensors |= {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return write(kind, {"sha256": digest(tensors), "version": version}, tensors)


def unpack(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the document and the arrays of a file of this kind."""
    where = str(path)

    def check(facts: Any, shapes: Shapes) -> None:
        check_keys(facts, ("sha256", "version"), f"the header of an {kind}", where)
        check_version(facts["version"], where, NEWEST.get(kind, VERSION))
        for name, (found, _) in shapes.items():
            if found not in _NUMBERS:
                refuse(where, f"expected one of {', '.join(_NUMBERS)} in {name}, found {found}")

    facts, tensors = read(path, kind, check)
    check_digest(digest(tensors), facts, where)
    letters = tensors.pop(DOCUMENT, None)
    document = None
    with suppress(ValueError, RecursionError):  # UnicodeDecodeError is a ValueError, too
        if letters is not None:
            document = json.loads(letters.tobytes().decode(), parse_constant=_no_number)
    if not isinstance(document, dict):
        refuse(where, f"expected a JSON object in {DOCUMENT}, found something else")
    return document, tensors


def unpacked(
    path: str | Path, kind: str, what: str, read: Callable[[dict[str, Any], dict[str, Array], str], T]
) -> T:
    """Return what ``read`` makes of a file's document, arrays and name; whatever is amiss is one clear error.

    ``what`` is in the error that stands for a part that is missing or of another type.
    """
    where = str(path)
    document, arrays = unpack(path, kind)
    try:
        return read(document, arrays, where)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LbmError):
            raise
        refuse(where, f"expected the parts of {what}, found otherwise: {reason(error)}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


# --- theories ------------------------------------------------------------------------------------


def theory_text(theory: Theory) -> str:
    """Return a theory in the text format, one formula a line, each short enough to be read again."""
    from lbm.knowledge.lexer import MAX_STATEMENT
    from lbm.knowledge.theory import to_lines

    lines = list(to_lines(theory))
    for line in lines:
        if len(line) > MAX_STATEMENT:
            raise LimitExceeded(
                f"a statement of {len(line)} characters cannot be saved: the text format reads at most "
                f"{MAX_STATEMENT} (limit MAX_STATEMENT)",
                MAX_STATEMENT=MAX_STATEMENT,
            )
    return "\n".join(lines)


def read_theory(
    letters: Array, name: str, formulae: int, atoms: Iterable[str], where: str, *, what: str, owner: str
) -> Theory:
    """Return the theory in an array of letters: so many ``formulae``, about these atoms.

    Messages call it ``what``, and its atoms those of the ``owner``.
    """
    from lbm.knowledge.parser import Statement
    from lbm.knowledge.theory import Theory

    text = read_text(letters, name, where)
    if _DOMAIN.search(text):  # a rule over domains, a few letters, can stand for a million formulae
        refuse(where, f"expected formulae without variables in {name}, found a domain")
    try:
        found = Theory.parse(text) if text else Theory()
    except LbmError as error:
        refuse(where, f"expected {what} in {name}, found otherwise: {error.one_line()}")
    if len(found) != formulae:
        refuse(where, f"expected {formulae} formulae in {name}, found {len(found)}")
    if not set(found.atoms) <= set(atoms):
        refuse(where, f"expected {what} about the {owner}'s own atoms, found others in {name}")
    # The lines it was read from are nobody's: the text stands in a file of arrays.
    return Theory.from_parts(found.atoms, tuple(Statement(s.formula, s.weight) for s in found))


def read_text(letters: Array, name: str, where: str) -> str:
    """Return an array of letters as text."""
    try:
        return letters.tobytes().decode()
    except UnicodeDecodeError:
        refuse(where, f"expected UTF-8 text in {name}, found other bytes")


# --- checks --------------------------------------------------------------------------------------


def refuse(where: str, message: str) -> NoReturn:
    """Raise the error of a file that is not what it should be."""
    raise MachineFileError(f"{where}: {message}") from None


def check_version(version: Any, where: str, newest: int = VERSION) -> None:
    """Check that a file is of a version that is known."""
    if type(version) is not int or version < 1:
        refuse(where, f"expected a version from 1 up, found {shown(version)}")
    if version > newest:
        refuse(where, f"written by a newer lbm: expected version {newest} at most, found {shown(version)}")


def check_keys(given: Any, expected: Iterable[str], what: str, where: str) -> None:
    """Check that a part of a document is an object with exactly these keys."""
    if not isinstance(given, dict):
        refuse(where, f"expected {what} as a JSON object, found {shown(given)}")
    wanted = set(expected)
    if given.keys() != wanted:
        refuse(where, f"expected {what} with {named(wanted)}, {difference(wanted, given)}")


def named(names: Iterable[str]) -> str:
    """Return names in their order, as a message lists them."""
    return ", ".join(sorted(names))


def difference(expected: Iterable[str], found: Iterable[str]) -> str:
    """Return in words what is missing, and what should not be there."""
    missing, extra = set(expected) - set(found), set(found) - set(expected)
    parts = [f"found no {named(missing)}"] if missing else []
    parts += [f"found also {shown(sorted(extra))}"] if extra else []
    return " and ".join(parts)


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


def check_finite(array: Array, name: str, where: str) -> None:
    """Check that numbers are finite."""
    import numpy as np

    if not np.isfinite(array).all():
        refuse(where, f"expected finite numbers in {name}, found nan or infinity")


def check_starts(starts: NDArray[np.integer[Any]], total: int, name: str, where: str) -> None:
    """Check that numbers say where parts begin: from 0, none before the last, to the end."""
    if not len(starts) or starts[0] != 0 or starts[-1] != total or (starts[1:] < starts[:-1]).any():
        refuse(where, f"expected {name} to rise from 0 to {total}, found otherwise")


def ascending(indices: NDArray[np.integer[Any]], starts: NDArray[np.integer[Any]]) -> bool:
    """Return whether numbers ascend within each part."""
    steps = indices[1:] > indices[:-1]
    begins = starts[1:-1]
    steps[begins[(begins > 0) & (begins < len(indices))] - 1] = True
    return bool(steps.all())


def check_arrays(
    given: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], dtype: Any, where: str
) -> None:
    """Check names, shapes and type of arrays, and that their numbers are finite."""
    import numpy as np

    check_keys(dict(given), shapes, "parameters", where)
    for name, shape in shapes.items():
        array = given[name]
        if array.shape != shape or array.dtype != dtype:
            found = f"{array.dtype.name} of shape {list(array.shape)}"
            refuse(where, f"expected {name}: {np.dtype(dtype).name} of shape {list(shape)}, found {found}")
        check_finite(array, name, where)


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
