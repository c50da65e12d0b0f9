"""The states of one layer of a component, weighed block by block, with the other layer summed out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.special import expit

from lbm.arrays import Bools, Floats, Ints
from lbm.machine.rbm import Machine

BLOCK: Final = 13
"""States are weighed 2^BLOCK at a time: numbers for so many stay in the cache of a core."""

KEPT: Final = 256
"""Sums over a block that are remembered: 16 MB."""

FACTORS: Final = 500
"""Numbers between 1 and 2 that are multiplied at a time: their product is far from overflow."""


class Layer(ABC):
    """The states of a layer, 2^low to a block: bit b of a state's number is unit ``order[b]``."""

    def __init__(self, size: int) -> None:
        self.low = min(size, BLOCK)
        self.blocks = 1 << size - self.low
        self.order: Ints = np.arange(size)

    @abstractmethod
    def block(self, number: int) -> Floats:
        """Return the log weights of the states of a block, shape (2^low,)."""

    def numbers(self, number: int) -> Ints:
        """Return the numbers of the states of a block."""
        return (number << self.low) + np.arange(1 << self.low)

    def states(self, numbers: Ints) -> Bools:
        """Return the states of these numbers, shape (states, units)."""
        found = np.zeros((len(numbers), len(self.order)), dtype=bool)
        for bit, unit in enumerate(self.order.tolist()):
            found[:, unit] = numbers >> bit & 1
        return found

    def worlds(self, numbers: Ints, rng: np.random.Generator) -> Bools:  # noqa: ARG002 -- others toss coins
        """Return a world for each state, shape (states, atoms)."""
        return self.states(numbers)

    def ones(self, number: int, weights: Floats) -> Floats:
        """Return for each atom the weight of the states of a block in which it is true."""
        found = np.zeros(len(self.order))
        left = weights
        for bit in range(self.low - 1, -1, -1):  # sum out the highest bit, then the next
            off, on = left.reshape(2, -1)
            found[self.order[bit]] = on.sum()
            left = off + on
        for bit in range(self.low, len(found)):
            found[self.order[bit]] = left[0] * (number >> bit - self.low & 1)
        return found


class Defined(Layer):
    """The worlds of a component with definitional atoms, which are computed for each."""

    def __init__(self, machine: Machine, scale: float) -> None:
        super().__init__(len(machine.declared))
        self.machine, self.own = machine, scale * machine.visible_bias
        across, bias = (scale * machine.weights.T).tocsr(), scale * machine.hidden_bias[:, None]
        step = min(FACTORS, max(8, 1 << BLOCK - self.low))
        parts = [slice(begin, begin + step) for begin in range(0, machine.hidden, step)]
        self.parts = [(across[part], bias[part]) for part in parts]

    def block(self, number: int) -> Floats:
        """Return the log weights of the worlds of a block, shape (2^low,)."""
        x = self.machine.visible(self.states(self.numbers(number)))
        columns = np.ascontiguousarray(x.T)
        return x @ self.own + _softplus((part @ columns + bias for part, bias in self.parts), len(x))


class Free(Layer):
    """The states of a layer whose units are free, with the units of the other layer summed out.

    log weight = own·state + Σ_j log(1 + exp(weights[:, j]·state + other[j]))

    ``weights`` has shape (units, other units). Inputs are sums of three numbers: one for the bits that
    are the same within a block, and one for each half of the others.
    """

    def __init__(self, weights: Floats, own: Floats, other: Floats) -> None:
        super().__init__(len(own))
        # Units with few weights change from block to block: more of one block serves the next.
        self.order = np.argsort(-np.count_nonzero(weights, axis=1), kind="stable")
        self.weights, self.other = weights, other
        weights, own = weights[self.order], own[self.order]
        half = self.low // 2
        self.inner, self.outer = _subset_sums(weights[:half].T), _subset_sums(weights[half : self.low].T)
        self.plain = np.add.outer(_subset_sums(own[half : self.low]), _subset_sums(own[:half])).ravel()
        self.high, self.high_own = weights[self.low :], own[self.low :]
        groups: dict[bytes, list[int]] = {}  # other units by the bits above a block that they know
        for j, touched in enumerate((self.high != 0).T):
            groups.setdefault(np.packbits(touched, bitorder="little").tobytes(), []).append(j)
        self.groups = [(int.from_bytes(bits, "little"), np.array(some)) for bits, some in groups.items()]
        self.made: dict[tuple[int, int], Floats] = {}

    def block(self, number: int) -> Floats:
        """Return the log weights of the states of a block, shape (2^low,)."""
        total: Floats = self.plain + self._bits(number) @ self.high_own
        for touched, units in self.groups:
            total += self._wells(touched, units, number & touched)
        return total

    def _wells(self, touched: int, units: Ints, number: int) -> Floats:
        """Return Σ softplus(input) of other units, which know only these bits of the block's number."""
        found = self.made.get((touched, number))
        if found is None:
            found = _softplus(self._inputs(units, number), 1 << self.low)
            if 1 << touched.bit_count() < self.blocks and len(self.made) < KEPT:
                self.made[touched, number] = found
        return found

    def _inputs(self, units: Ints, number: int) -> Iterator[Floats]:
        """Yield the inputs of other units over a block, some at a time, shape (some units, 2^low)."""
        shift = self.other[units] + self._bits(number) @ self.high[:, units]
        outer, inner = self.outer[units] + shift[:, None], self.inner[units]
        step = min(FACTORS, 1 << BLOCK - self.low)
        for begin in range(0, len(units), step):
            part = slice(begin, begin + step)
            yield (outer[part, :, None] + inner[part, None, :]).reshape(-1, 1 << self.low)

    def _bits(self, number: int) -> Floats:
        return (number >> np.arange(len(self.high)) & 1).astype(np.float64)


class Coins(Free):
    """The states of the hidden layer; the atoms, given one, are coins that know nothing of one another."""

    def ones(self, number: int, weights: Floats) -> Floats:
        """Return for each atom Σ weight · P(true | state) over a block."""
        inputs = self._inputs(np.arange(len(self.other)), number)
        return np.concatenate([expit(some) @ weights for some in inputs])

    def worlds(self, numbers: Ints, rng: np.random.Generator) -> Bools:
        """Return a world for each state, shape (states, atoms): one toss of every coin."""
        states = self.states(numbers)
        found = np.zeros((len(states), len(self.other)), dtype=bool)
        for i in range(len(self.other)):  # one after the other: as floats they would take much room
            found[:, i] = rng.random(len(states)) < expit(states @ self.weights[:, i] + self.other[i])
        return found


def _subset_sums(numbers: Floats) -> Floats:
    """Return the sum of each subset of the last axis, shape (..., 2^n): bit b of a place takes number b."""
    found = np.zeros((*numbers.shape[:-1], 1))
    for b in range(numbers.shape[-1]):
        found = np.concatenate([found, found + numbers[..., b : b + 1]], axis=-1)
    return found


def _softplus(inputs: Iterator[Floats], size: int) -> Floats:
    """Return Σ log(1 + exp(z)) over the rows of all arrays, shape (size,); each has up to FACTORS rows.

    log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)): the logarithm is taken once of many factors.
    """
    total, product, factors = np.zeros(size), np.ones(size), 0
    for z in inputs:
        factors += len(z)
        if factors > 2 * FACTORS:
            total += np.log(product)
            product, factors = np.ones(size), len(z)
        small = np.abs(z)
        np.negative(small, out=small)
        np.exp(small, out=small)
        small += 1.0
        above = np.maximum(z, 0.0)
        if len(z) == 1:
            total += above[0]
            product *= small[0]
        else:
            total += above.sum(axis=0)
            product *= small.prod(axis=0)
    total += np.log(product)
    return total


def log_sum(logs: Floats) -> float:
    """Return log Σ exp(logs), -inf where there is nothing to sum."""
    top = float(logs.max(initial=-np.inf))
    return top if top == -math.inf else top + math.log(float(np.exp(logs - top).sum()))


def shares(logs: Floats) -> Floats:
    """Return exp(logs), scaled so that they add up to 1."""
    weights = np.exp(logs - logs.max())
    found: Floats = weights / weights.sum()
    return found
