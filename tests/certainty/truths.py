"""What is true of theories far too large to list: summed by counts of true atoms, or by eliminating atoms.

Neither sum shares code with chains or with the library's exact methods; they read formulae and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import lbm
from lbm.knowledge.formula import Formula, atoms_of, holds
from tests.oracles import truth_table

Floats = NDArray[np.float64]

WIDEST = 22
"""Atoms of the largest table that elimination may make."""


class TooWide(Exception):
    """Elimination would need a larger table."""


def log_sum(logs: Floats) -> float:
    """Return log Σ exp(logs); minus infinity where there is nothing to sum."""
    greatest = float(np.max(logs, initial=-math.inf))
    return greatest if greatest == -math.inf else greatest + math.log(float(np.exp(logs - greatest).sum()))


@dataclass(frozen=True)
class Counted:
    """The truth of a theory that says the same of all atoms of a block: only how many are true matters.

    One world stands for all of its counts: Z = Σ over counts of (Π C(size, count))·exp(score).
    """

    theory: lbm.Theory
    blocks: tuple[tuple[str, ...], ...]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Return every way to choose how many atoms of each block are true, shape (ways, blocks)."""
        axes = np.meshgrid(*(np.arange(len(block) + 1) for block in self.blocks), indexing="ij")
        return np.stack([axis.ravel() for axis in axes], axis=1)

    @cached_property
    def worlds(self) -> dict[str, NDArray[np.bool_]]:
        """Return a world for each way: the first atoms of each block are true."""
        return {
            name: self.counts[:, b] > i for b, block in enumerate(self.blocks) for i, name in enumerate(block)
        }

    @cached_property
    def logs(self) -> Floats:
        """Return the logarithm of each way's share of Z."""
        found = np.zeros(len(self.counts))
        for b, block in enumerate(self.blocks):
            ways = np.array([math.log(math.comb(len(block), k)) for k in range(len(block) + 1)])
            found += ways[self.counts[:, b]]
        for statement in self.theory:
            true = np.broadcast_to(holds(statement.formula, self.worlds), found.shape)
            if statement.weight is None:
                found[~true] = -math.inf
            else:
                found[true] += float(statement.weight)
        return found

    def log_partition(self) -> float:
        """Return log Z."""
        return log_sum(self.logs)

    def chance(self, query: Formula) -> float:
        """Return how likely an atom is, or a formula that says the same of all atoms of a block."""
        shares = np.exp(self.logs - self.log_partition())
        if query.kind == "atom":
            for b, block in enumerate(self.blocks):
                if query.label in block:
                    return float(shares @ (self.counts[:, b] / len(block)))
        return float(shares @ np.broadcast_to(holds(query, self.worlds), shares.shape))


Factor = tuple[tuple[str, ...], Floats]
"""Atoms, and exp(what a formula adds) for each of their values: axis i is atom i, false first."""


@dataclass(frozen=True)
class Eliminated:
    """The truth of a theory of small formulae whose atoms can be summed out one after the other."""

    theory: lbm.Theory

    @cached_property
    def factors(self) -> list[Factor]:
        """Return a table for each formula."""
        return [
            table(s.formula, None if s.weight is None else float(s.weight), self.theory.atoms)
            for s in self.theory
        ]

    def log_partition(self) -> float:
        """Return log Z."""
        return eliminate(self.factors, self.theory.atoms)

    def chance(self, query: Formula) -> float:
        """Return how likely a formula of few atoms is."""
        asked = [*self.factors, table(query, None, self.theory.atoms)]
        return math.exp(eliminate(asked, self.theory.atoms) - self._whole)

    @cached_property
    def _whole(self) -> float:
        return self.log_partition()


def table(formula: Formula, weight: float | None, order: Sequence[str]) -> Factor:
    """Return exp(weight) where a formula is true and 1 elsewhere; of a hard one 1 and 0."""
    names = tuple(sorted(atoms_of(formula), key=order.index))
    bits = truth_table(formula, names[::-1])
    size = 1 << len(names)
    packed = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), np.uint8)
    true = np.unpackbits(packed, bitorder="little")[:size].astype(bool).reshape((2,) * len(names))
    if weight is None:
        return names, true.astype(float)
    return names, np.where(true, math.exp(weight), 1.0)


def eliminate(factors: Sequence[Factor], atoms: Sequence[str]) -> float:
    """Return the logarithm of the sum over all worlds of the product of the factors."""
    waiting = list(factors)
    total = 0.0
    left = set(atoms)
    beside: dict[str, set[str]] = {name: set() for name in left}
    for names, _ in waiting:
        for name in names:
            beside[name].update(names)
    while left:
        name = min(left, key=lambda each: (len(beside[each]), each))
        left.remove(name)
        mine = [factor for factor in waiting if name in factor[0]]
        waiting = [factor for factor in waiting if name not in factor[0]]
        others = tuple(sorted(beside.pop(name) - {name}))
        if len(others) >= WIDEST:
            raise TooWide(f"a table over {len(others) + 1} atoms")
        for other in others:
            beside[other].discard(name)
            beside[other].update(others)
        product = np.ones(())
        for factor in mine:
            product = product * _spread(factor, (name, *others))
        product = np.broadcast_to(product, (2, *product.shape[1:])) if product.ndim else np.ones(2)
        summed = product.sum(axis=0)
        greatest = float(summed.max())
        if greatest == 0.0:
            return -math.inf
        total += math.log(greatest)
        waiting.append((others, np.broadcast_to(summed / greatest, (2,) * len(others))))
    return total + sum(math.log(float(values)) if values > 0 else -math.inf for _, values in waiting)


def _spread(factor: Factor, names: tuple[str, ...]) -> Floats:
    """Return a factor's values with an axis for each of the names, of length 1 where they do not matter."""
    own, values = factor
    order = sorted(range(len(own)), key=lambda i: names.index(own[i]))
    shape = [2 if name in own else 1 for name in names]
    return np.asarray(values.transpose(order).reshape(shape))


Truth = Counted | Eliminated
