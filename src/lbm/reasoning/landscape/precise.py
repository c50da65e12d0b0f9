"""Weights of worlds in exact arithmetic, where those of a machine are too large for floating point.

    -F(x) = Σ_j softplus(k s_j(x)) + k a·x,   k = c/τ

A weight of 10^9 leaves six digits behind the point of F(x), and probabilities come from differences. Here
each s_j(x) is summed exactly from the machine's numbers, and F(x) is kept as a whole number of QUANTUM.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.machine.rbm import Machine
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.rows import Array

ATOMS: Final = 16
"""Declared atoms of a machine all of whose worlds are weighed in exact arithmetic."""

ENOUGH: Final = 1e-10
"""The error of a log weight, as floating point would have it, up to which nothing else is needed."""

QUANTUM: Final = Decimal(10) ** -25
"""What log weights are whole multiples of."""

_EXACT: Final = Context(prec=400, Emin=-(10**6), Emax=10**6)  # sums of doubles of any size, to the last digit
_FINE: Final = Context(prec=60, Emin=-(10**6), Emax=10**6)
_FAR: Final = (
    200  # inputs whose softplus is the larger of 0 and themselves, to more digits than anyone asks for
)


def is_coarse(machine: Machine, scale: float) -> bool:
    """Return whether log weights lose digits that probabilities need."""
    deepest = np.asarray(machine.weights.maximum(0).sum(axis=0)).ravel() + machine.hidden_bias
    largest = float(np.maximum(deepest, 0.0).sum() + np.abs(machine.visible_bias).sum())
    return bool(scale * largest * np.finfo(np.float64).eps > ENOUGH)


class AllWorlds:
    """Every world over the declared atoms, with its log weight as a whole number of QUANTUM.

    ``array`` has shape (worlds, declared atoms).
    """

    def __init__(self, machine: Machine, scale: float, budget: Budget) -> None:
        self.atoms = machine.declared
        size = len(self.atoms)
        self.array: Bools = (np.arange(1 << size)[:, None] >> np.arange(size - 1, -1, -1) & 1).astype(bool)
        visible = machine.visible(self.array.astype(np.float64)) > 0.5
        factor = Decimal(scale)
        self.logs: Array = np.zeros(len(self.array), object)
        for i in np.flatnonzero(machine.visible_bias).tolist():
            self.logs[visible[:, i]] += _whole(_EXACT.multiply(factor, Decimal(machine.visible_bias[i])))
        pointer, index, data = machine.weights.indptr, machine.weights.indices, machine.weights.data
        for j in range(machine.hidden):
            budget.tick()
            begin, end = pointer[j], pointer[j + 1]
            self.logs += self._unit(
                visible[:, index[begin:end]], data[begin:end], machine.hidden_bias[j], factor
            )

    @staticmethod
    def _unit(literals: Bools, weights: Floats, bias: float, factor: Decimal) -> Array:
        """Return softplus of a unit's input in every world; worlds with the same input share the work."""
        rough = literals @ weights + bias
        _, first, which = np.unique(rough, return_index=True, return_inverse=True)
        found = np.zeros(len(first), object)
        terms = [Decimal(weight) for weight in weights.tolist()]
        for place, world in enumerate(first.tolist()):
            total = Decimal(bias)
            for term, true in zip(terms, literals[world].tolist(), strict=True):
                if true:
                    total = _EXACT.add(total, term)
            found[place] = _whole(_softplus(_EXACT.multiply(factor, total)))
        return np.asarray(found[which.ravel()], dtype=object)

    def true(self, formula: Formula | None) -> Bools:
        """Return in which worlds a formula is true, shape (worlds,); None: in all."""
        if formula is None:
            return np.ones(len(self.array), bool)
        place = {name: i for i, name in enumerate(self.atoms)}
        world = {name: self.array[:, place[name]] for name in atoms_of(formula)}
        return np.broadcast_to(np.asarray(holds(formula, world), bool), len(self.array))

    def weights(self, kept: Bools) -> Floats:
        """Return weights of the worlds kept, the greatest of them 1, shape (worlds,); others weigh 0."""
        found = np.zeros(len(self.array))
        if kept.any():
            top = max(self.logs[kept])
            less = [float((log - top) * QUANTUM) for log in self.logs[kept]]
            found[kept] = np.exp(np.maximum(less, -800.0))
        return found


def _softplus(value: Decimal) -> Decimal:
    """Return log(1 + exp(value))."""
    if abs(value) > _FAR:
        return max(value, Decimal(0))
    rest = _FINE.ln(_FINE.add(1, _FINE.exp(-abs(value))))
    return _FINE.add(max(value, Decimal(0)), rest)


def _whole(value: Decimal) -> int:
    """Return how many QUANTUM a number is, rounded."""
    return int(_EXACT.to_integral_value(_EXACT.divide(value, QUANTUM)))
