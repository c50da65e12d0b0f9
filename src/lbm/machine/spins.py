"""Machine -> QUBO or Ising coefficients, and a file of them that ``dimod`` reads.

The file is dimod's own JSON: ``BinaryQuadraticModel.from_serializable(json.load(file))``. It keeps names, the
offset and every bit of the coefficients. Its COO text keeps neither names nor offset, and its reader passes
over a number with an exponent (``1e-07``) as if the line were not there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.arrays import Floats, Ints
from lbm.knowledge.packed import write_whole
from lbm.machine.penalty import hidden_names

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine

FORMS: Final = {"qubo": "BINARY", "ising": "SPIN"}
"""What we call the two forms, and what dimod does."""

_SCHEMA: Final = "3.0.0"  # of dimod's JSON, since its version 0.10


@dataclass(frozen=True, eq=False, slots=True)
class Quadratic:
    """A quadratic function of many two-valued variables.

    f(v) = offset + Σ_i linear_i v_i + Σ_k quadratic_k v_{rows_k} v_{columns_k}

    Attributes
    ----------
    form
        ``qubo``: variables are 0 or 1; ``ising``: they are -1 or +1.
    variables
        Names: visible units, then hidden units h1, h2, ...
    linear
        Shape (variables,).
    rows, columns, quadratic
        Shape (weights,): numbers of a visible and of a hidden unit, and their coefficient.
    """

    form: str
    variables: tuple[str, ...]
    linear: Floats
    rows: Ints
    columns: Ints
    quadratic: Floats
    offset: float


def to_qubo(machine: Machine) -> Quadratic:
    """Return E(x, h) itself as a function of 0 and 1: linear -a and -b, quadratic -w, offset 0.

    Its least value over h is -ε · (score(x) + W · (hard formulae true in x) - machine.offset).
    """
    visible = len(machine.atoms)
    weights = machine.weights.tocoo()
    return Quadratic(
        "qubo",
        machine.atoms + hidden_names(machine.atoms, machine.hidden),
        # 0 - a, not -a: there is no need to write -0.0
        0.0 - np.concatenate([machine.visible_bias, machine.hidden_bias]),
        weights.row.astype(np.int64),
        weights.col.astype(np.int64) + visible,
        0.0 - weights.data,
        0.0,
    )


def to_ising(machine: Machine) -> Quadratic:
    """Return E((1 + s)/2, (1 + t)/2) as a function of spins s, t = ±1; spin +1 is true.

    With v = (1 + s)/2 a product v_i v_j is (1 + s_i + s_j + s_i s_j)/4: a coupling is a quarter of a weight,
    a field half the bias and a quarter of every weight of its unit, and the offset what remains.
    """
    qubo = to_qubo(machine)
    size = len(qubo.variables)
    quarter = qubo.quadratic / 4
    field = qubo.linear / 2
    field += np.bincount(qubo.rows, weights=quarter, minlength=size)
    field += np.bincount(qubo.columns, weights=quarter, minlength=size)
    offset = qubo.offset + float(qubo.linear.sum()) / 2 + float(quarter.sum())
    return Quadratic("ising", qubo.variables, field, qubo.rows, qubo.columns, quarter, offset)


def write_spins(machine: Machine, path: str | Path, *, form: str = "qubo") -> None:
    """Write E(x, h) as a QUBO or Ising file for ``dimod``, whole or not at all.

    An energy e of the file's function belongs to the score -e/ε + offset of the machine; both numbers stand
    under ``info``. Definitional atoms are variables like all others.

    Parameters
    ----------
    form
        ``qubo``: variables 0 and 1, as :func:`to_qubo`; ``ising``: variables -1 and +1, as :func:`to_ising`.
    """
    if form not in FORMS:
        raise ValueError(f"expected the form 'qubo' or 'ising', got {form!r}")
    function = to_qubo(machine) if form == "qubo" else to_ising(machine)
    document = {
        "type": "BinaryQuadraticModel",
        "version": {"bqm_schema": _SCHEMA},
        "use_bytes": False,
        "index_type": "int64",
        "bias_type": "float64",
        "num_variables": len(function.variables),
        "num_interactions": len(function.quadratic),
        "variable_labels": function.variables,
        "variable_type": FORMS[form],
        "offset": function.offset,
        "info": {"epsilon": float(machine.epsilon), "score_offset": float(machine.offset)},
        "linear_biases": function.linear.tolist(),
        "quadratic_biases": function.quadratic.tolist(),
        "quadratic_head": function.rows.tolist(),
        "quadratic_tail": function.columns.tolist(),
    }
    # ASCII, so that it reads the same whatever encoding the reader assumes.
    write_whole(path, [json.dumps(document, allow_nan=False), "\n"])
