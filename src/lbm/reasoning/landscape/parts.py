"""One component of a machine: what is asked of it, and the answers by all states of its smaller layer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import TooManyWorlds
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.machine.rbm import Machine
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.rows import how_many
from lbm.reasoning.landscape.layers import Coins, Defined, Free, Layer, log_sum, shares

LIMIT: Final = 24
"""Atoms or hidden units of one component, whichever are fewer, up to which their states are looked at."""


class MachinePart(ABC):
    """A component, on which formulae must hold if it is ``constrained``.

    ``log`` is log Z, -inf if there is no world; ``marginals`` are those of its declared atoms, or None.
    """

    constrained: bool

    @cached_property
    @abstractmethod
    def log(self) -> float:
        """The logarithm of Z, minus infinity if there is no world."""

    @cached_property
    @abstractmethod
    def marginals(self) -> Floats | None:
        """The probability of each declared atom, shape (declared atoms,); None: there is no world."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Bools:
        """Return ``n`` independent draws, shape (n, declared atoms)."""


class States(MachinePart):
    """A component by all states of one layer; of its worlds, if ``keep`` is a formula that must hold."""

    def __init__(self, machine: Machine, scale: float, budget: Budget, keep: Formula | None = None) -> None:
        self.machine, self.scale, self.budget, self.keep = machine, scale, budget, keep
        self.constrained = keep is not None
        self.wanted = () if keep is None else atoms_of(keep)
        self.hidden = keep is None and not machine.definitions and fewer_hidden(machine)

    def _layer(self) -> Layer:
        machine, scale = self.machine, self.scale
        size = machine.hidden if self.hidden else len(machine.declared)
        if size > LIMIT:
            hidden = "" if machine.definitions or self.constrained else f" and {machine.hidden} hidden units"
            states = "hidden states" if self.hidden else "worlds"
            raise TooManyWorlds(
                f"{len(machine.declared)} free atoms{hidden} make {how_many(size)} {states}; enumeration "
                f"stops at {LIMIT} (limit LIMIT): give more evidence, or sample",
                LIMIT=LIMIT,
            )
        if machine.definitions:
            return Defined(machine, scale)
        weights = scale * machine.weights.toarray()
        visible, hidden_ = scale * machine.visible_bias, scale * machine.hidden_bias
        return Coins(weights.T, hidden_, visible) if self.hidden else Free(weights, visible, hidden_)

    def _block(self, layer: Layer, number: int) -> Floats:
        """Return log weights of the states of a block, -inf for worlds where the formula is false."""
        self.budget.tick()
        logs = layer.block(number)
        if self.keep is None:
            return logs
        numbers = layer.numbers(number)
        bit = {int(place): b for b, place in enumerate(layer.order)}
        place = {name: i for i, name in enumerate(self.machine.declared)}
        columns = {name: (numbers >> bit[place[name]] & 1).astype(bool) for name in self.wanted}
        return np.where(holds(self.keep, columns), logs, -np.inf)

    @cached_property
    def log(self) -> float:
        """The logarithm of Z, minus infinity if there is no world."""
        if "marginals" in self.__dict__:  # one pass gave both
            return self._found
        layer = self._layer()
        return log_sum(np.array([log_sum(self._block(layer, i)) for i in range(layer.blocks)]))

    @cached_property
    def marginals(self) -> Floats | None:
        """The probability of each declared atom, shape (declared atoms,); None: there is no world."""
        layer = self._layer()
        top, total, ones = -math.inf, 0.0, np.zeros(len(self.machine.declared))
        for number in range(layer.blocks):
            logs = self._block(layer, number)
            best = float(logs.max())
            if best == -math.inf:
                continue
            if best > top:
                less = math.exp(top - best)
                top, total, ones = best, total * less, ones * less
            weights = np.exp(logs - top)
            total += float(weights.sum())
            ones += layer.ones(number, weights)
        self._found = top + math.log(total) if total else -math.inf
        return np.minimum(ones / total, 1.0) if total else None

    def draw(self, n: int, rng: np.random.Generator) -> Bools:
        """Return ``n`` independent draws, shape (n, declared atoms)."""
        layer = self._layer()
        blocks = np.array([log_sum(self._block(layer, i)) for i in range(layer.blocks)])
        drawn = rng.multinomial(n, shares(blocks))
        found = [np.zeros(0, dtype=np.int64)]
        for i in np.flatnonzero(drawn).tolist():
            logs = self._block(layer, i)
            sums = np.cumsum(np.exp(logs - logs.max()))
            at = np.searchsorted(sums, rng.random(drawn[i]) * sums[-1], side="right")
            found.append(layer.numbers(i)[np.minimum(at, np.searchsorted(sums, sums[-1]))])
        return layer.worlds(rng.permutation(np.concatenate(found)), rng)


def fewer_hidden(machine: Machine) -> bool:
    """Return whether a machine has fewer hidden states than worlds, so that those are looked at."""
    return machine.hidden < len(machine.declared)
