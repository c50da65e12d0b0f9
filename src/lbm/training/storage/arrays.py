"""Knowledge and parameters as the arrays of a file: checked before they become a network again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import torch
from scipy.sparse import csc_array

from lbm.errors import LbmError, LimitExceeded
from lbm.knowledge.formula import atom_name
from lbm.knowledge.lexer import MAX_STATEMENT
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory, to_lines
from lbm.training.boltzmann.knowledge import MAX_CONFIDENCE, Knowledge
from lbm.training.boltzmann.network import Network
from lbm.training.storage.archive import Array, check_arrays, refuse, shown

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


def network_arrays(network: Network) -> dict[str, Array]:
    """Return the parameters of a network, and what it began with, as named arrays."""
    arrays = {
        f"parameter.{name}": values.detach().cpu().numpy() for name, values in network.named_parameters()
    }
    return arrays | _pack_knowledge(network.knowledge)


def network_of(
    arrays: Mapping[str, Array],
    *,
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    epsilon: object,
    literals: str,
    where: str,
) -> Network:
    """Return the network that :func:`network_arrays` described, on the CPU."""
    knowledge = _read_knowledge(arrays, columns, labels, epsilon, where)
    return _read_network(arrays, knowledge, literals, where)


def knowledge_text(knowledge: Knowledge) -> str:
    """Return the formulae of knowledge in the text format, one a line."""
    theory = theory_of(knowledge)
    lines = [] if theory is None else list(to_lines(theory))
    for line in lines:
        if len(line) > MAX_STATEMENT:
            raise LimitExceeded(
                f"a statement of {len(line)} characters cannot be saved: the text format reads at most "
                f"{MAX_STATEMENT} (limit MAX_STATEMENT)",
                limit="MAX_STATEMENT",
                value=MAX_STATEMENT,
            )
    return "\n".join(lines)


def theory_of(knowledge: Knowledge) -> Theory | None:
    """Return the formulae of knowledge as a theory; None: there are none."""
    return Theory([(s.weight, s.formula) for s in knowledge.statements]) if knowledge.statements else None


def _pack_knowledge(knowledge: Knowledge) -> dict[str, Array]:
    signs = knowledge.signs
    parts = {
        "text": np.frombuffer(knowledge_text(knowledge).encode(), dtype=np.uint8),
        "indptr": signs.indptr,
        "indices": signs.indices,
        "signs": signs.data,
        "positive": knowledge.positive,
        "owner": knowledge.owner,
        "unit": knowledge.unit,
        "initial": knowledge.initial,
        "fixed": knowledge.fixed,
    }
    return {
        f"knowledge.{name}": np.ascontiguousarray(part, dtype=_KNOWLEDGE[name])
        for name, part in parts.items()
    }


def _read_knowledge(
    arrays: Mapping[str, Array],
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    epsilon: object,
    where: str,
) -> Knowledge:
    """Return knowledge as arrays; it is never compiled again, so that its units are those trained."""
    parts = {name: arrays.get(f"knowledge.{name}") for name in _KNOWLEDGE}
    for name, kind in _KNOWLEDGE.items():
        part = parts[name]
        if part is None or part.dtype != kind or part.ndim != 1:
            refuse(where, f"expected one line of {kind.__name__} in knowledge.{name}, found otherwise")
    found: dict[str, Array] = {name: part for name, part in parts.items() if part is not None}
    starts, indices, signs = found["indptr"], found["indices"], found["signs"]
    visible, units, formulae = len(columns) + len(labels), len(starts) - 1, len(found["initial"])
    wanted = {"positive": units, "unit": len(found["owner"]), "signs": len(indices), "fixed": formulae}
    for name, length in wanted.items():
        if len(found[name]) != length:
            refuse(where, f"expected knowledge.{name} of length {length}, found {len(found[name])}")
    rising = (
        len(starts) > 0 and starts[0] == 0 and starts[-1] == len(indices) and (np.diff(starts) >= 0).all()
    )
    if not rising:
        refuse(where, f"expected knowledge.indptr to rise from 0 to {len(indices)}, found otherwise")
    for name, high in (("indices", visible), ("owner", formulae), ("unit", units)):
        numbers = found[name]
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < high):
            refuse(where, f"expected numbers from 0 to {high - 1} in knowledge.{name}, found others")
    steps = np.diff(indices) > 0
    begins = starts[1:-1]
    steps[begins[(begins > 0) & (begins < len(indices))] - 1] = True
    if not steps.all() or not (np.abs(signs) == 1).all():
        refuse(where, "expected ascending atoms with signs 1 and -1 in each unit of knowledge, found others")
    sums = np.concatenate([[0], np.cumsum(signs > 0)])
    if (sums[starts[1:]] - sums[starts[:-1]] != found["positive"]).any():
        refuse(where, "expected knowledge.positive to count the positive signs, found otherwise")
    if not ((found["initial"] > 0) & (found["initial"] <= MAX_CONFIDENCE)).all():
        refuse(where, f"expected confidences above 0 and up to {MAX_CONFIDENCE:g}, found others")
    if not (type(epsilon) is float and 0 < epsilon < 1):
        refuse(where, f"expected an epsilon strictly between 0 and 1, found {shown(epsilon)}")
    return Knowledge(
        columns=columns,
        labels=labels,
        signs=csc_array((signs, indices, starts), shape=(visible, units)),
        positive=found["positive"],
        owner=found["owner"],
        unit=found["unit"],
        initial=found["initial"],
        fixed=found["fixed"] != 0,
        statements=_read_statements(found["text"], formulae, (*columns, *labels), where),
        epsilon=epsilon,
    )


def _read_statements(
    letters: Array, formulae: int, names: Iterable[str], where: str
) -> tuple[Statement, ...]:
    try:
        text = letters.tobytes().decode()
    except UnicodeDecodeError:
        refuse(where, "expected UTF-8 text in knowledge.text, found other bytes")
    if any(line.lstrip().startswith("domain") for line in text.splitlines()):
        # A rule over domains, a few letters, can stand for a million formulae.
        refuse(where, "expected formulae without variables in knowledge.text, found a domain")
    try:
        read = Theory.parse(text) if text else Theory()
    except LbmError as error:
        refuse(where, f"expected formulae in knowledge.text, found otherwise: {error.one_line()}")
    if len(read) != formulae:
        refuse(where, f"expected {formulae} formulae in knowledge.text, found {len(read)}")
    if not set(read.atoms) <= set(map(_known_as, names)):
        refuse(where, "expected formulae about the model's own atoms, found others in knowledge.text")
    return tuple(Statement(statement.formula, statement.weight) for statement in read)


def _known_as(name: str) -> str:
    try:
        return atom_name(name)
    except ValueError:  # no formula can mention it
        return name


def _read_network(arrays: Mapping[str, Array], knowledge: Knowledge, literals: str, where: str) -> Network:
    """Return the network with its parameters, whose shapes are compared before it is made."""
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
    if unknown := [name for name in arrays if not name.startswith(("parameter.", "knowledge."))]:
        refuse(where, f"expected parameters and knowledge, found also {shown(sorted(unknown))}")
    dtype = torch.float32 if weights.dtype == np.float32 else torch.float64
    network = Network(knowledge, hidden=hidden, literals=literals, dtype=dtype)
    with torch.no_grad():
        for name, values in network.named_parameters():
            values.copy_(torch.from_numpy(given[name]))
    return network
