"""Files of every kind: theories, machines, trained models and layers, told apart by how they begin.

What a file claims to be decides who reads it, and whoever reads it checks all of it. Nothing here loads torch
or scikit-learn before a file has turned out to be a trained model.
"""

from __future__ import annotations

import codecs
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lbm.errors import FileError, MachineFileError, ParseError
from lbm.knowledge.packed import bare_name, is_packed
from lbm.machine.files import KINDS, MAX_HEADER, shown

if TYPE_CHECKING:
    import lbm
    from lbm.knowledge.theory import Theory
    from lbm.machine.rbm import Machine
    from lbm.relations.model import RelationalModel
    from lbm.training.learners.classifier import LBMClassifier

_THEORIES: Final = (".lbm", ".cnf", ".wcnf", ".uai", ".nnf", ".ddnnf", ".sdd")


def load(path: str | Path) -> Any:
    """Read a theory, a machine, a trained model or a layer from a file; what it begins with says which.

    Returns
    -------
    Theory, Machine, LBMClassifier, RelationalModel or LogicLayer
        A theory is read in any format, by the ending of its name or by a line that gives it away. Only
        trained models and layers need the extra ``train``. Nothing that a file says is ever run, and a file
        that is none of these, or is damaged, is one clear error.

    Examples
    --------
    >>> import lbm, tempfile, pathlib
    >>> theory = lbm.Theory.parse("rain -> wet")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lbm.save(theory, pathlib.Path(folder, "rain.cnf"))
    ...     lbm.save(lbm.translate(theory), pathlib.Path(folder, "rain.machine"))
    ...     print(lbm.load(pathlib.Path(folder, "rain.cnf")))
    ...     print(lbm.load(pathlib.Path(folder, "rain.machine")).equation())
    ~rain | wet
    E = -h1(rain + wet - 1.5) - h2(-rain + 0.5)
    """
    start = _start(path)
    # A safetensors file begins with the length of its header, in eight bytes; no text has a NUL among these.
    if start[8:] == b"{" and b"\0" in start:
        kind = kind_of(path)
        if kind == "lbm-machine":
            from lbm.machine.store import load as load_machine

            return load_machine(path)
        if kind == "lbm-model":
            from lbm import load_model  # through the door, which names the extra where it is missing

            return load_model(path)
        if kind == "lbm-relational":
            from lbm.relations.model_file import load_relational

            return load_relational(path)
        if kind == "lbm-layer":
            import lbm  # that room comes later

            return lbm.nn.load_layer(path)
        if kind is None:
            _refuse(path, "a safetensors file that is not of lbm, or is damaged: save it again with lbm.save")
        _refuse(path, KINDS[kind])
    if not (_is_text(start) or is_packed(start)) and Path(path).suffix.lower() not in _THEORIES:
        _refuse(
            path, f"a binary file that begins {start!r}: lbm.load reads what lbm.save wrote, and theories"
        )
    from lbm.knowledge.wire import load_theory

    try:
        return load_theory(path)
    except ParseError as error:
        ending = bare_name(path).suffix
        if error.line is not None or ending.lower() in ("", ".txt", *_THEORIES):
            raise
        _refuse(path, f"a file that ends in {ending}: let it end in .lbm, .cnf or .wcnf if it is a theory")


def save(
    thing: Theory | Machine | LBMClassifier | RelationalModel | lbm.nn.LogicLayer, path: str | Path
) -> None:
    """Write a theory, a machine, a fitted classifier or a layer to a file, whole or not at all.

    The ending of the name says in which format a theory is written: ``.lbm``, ``.cnf``, ``.wcnf`` or, as a
    circuit, ``.nnf``. A machine, a classifier or a layer may have any name but one of these. The same thing
    gives the same bytes.

    Parameters
    ----------
    thing
        What to write. Of a classifier all that it predicts, explains and gives rules with is kept; not kept
        are Adam's moments, so that ``partial_fit`` of a loaded one begins with new ones, and times.
    """
    from lbm.knowledge.theory import Theory

    if isinstance(thing, Theory):
        if bare_name(path).suffix.lower() in (".nnf", ".ddnnf"):
            from lbm.reasoning.exact.joined import save_circuit

            save_circuit(thing, path)
        else:
            from lbm.knowledge.wire import save_theory

            save_theory(thing, path)
        return
    from lbm.machine.rbm import Machine

    # Where no classifier or layer was imported, none can be given: torch is not loaded to find that out.
    learners = sys.modules.get("lbm.training.learners.classifier")
    layers = sys.modules.get("lbm.nn")
    relational = sys.modules.get("lbm.relations.model")
    if isinstance(thing, Machine):
        from lbm.machine.store import save as save_machine

        _refuse_theory_ending(path, "a machine")
        save_machine(thing, path)
    elif learners is not None and isinstance(thing, learners.LBMClassifier):
        from lbm.training.storage.store import save_model

        _refuse_theory_ending(path, "a trained model")
        save_model(thing, path)
    elif relational is not None and isinstance(thing, relational.RelationalModel):
        from lbm.relations.model_file import save_relational

        _refuse_theory_ending(path, "a relational model")
        save_relational(thing, path)
    elif layers is not None and isinstance(thing, layers.LogicLayer):
        _refuse_theory_ending(path, "a layer")
        layers.save_layer(thing, path)
    else:
        raise TypeError(
            "expected a Theory, a Machine, a fitted LBMClassifier, a RelationalModel or a LogicLayer, "
            f"got {shown(thing)}; "
            f"a formula is saved as lbm.Theory([formula])"
        )


def kind_of(path: str | Path) -> str | None:
    """Return the key of KINDS that a file claims; None: it is none of ours, or cannot be read."""
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= MAX_HEADER else None
    except (OSError, RecursionError, ValueError):
        return None
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return next((key for key in KINDS if key in metadata), None) if isinstance(metadata, dict) else None


def _start(path: str | Path) -> bytes:
    """Return the first bytes of a regular file; of anything else none, since a pipe is read only once."""
    try:
        if not Path(path).is_file():
            return b""
        with Path(path).open("rb") as file:
            return file.read(9)
    except (OSError, TypeError, ValueError):  # whoever reads the file says what is wrong
        return b""


def _is_text(start: bytes) -> bool:
    """Return whether bytes may be the beginning of text; its last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return b"\0" not in start


def _refuse(path: str | Path, found: str) -> NoReturn:
    message = f"{path}: expected a theory, a machine or a trained model, found {found}"
    raise MachineFileError(message) from None


def _refuse_theory_ending(path: str | Path, what: str) -> None:
    ending = bare_name(path).suffix.lower()
    if ending in _THEORIES:
        raise FileError(
            f"cannot write {path}: names that end in {ending} are for theories, and this is {what}: "
            f"choose another ending"
        )
