"""Mixtures of heads: several readings of the same inputs, of which each row has one, with some probability.

Given its head, the inputs of a row are independent; over all heads they need not be, which is what answers
alone may ask for: "both digits are 2, or both are 3". Z = Σ over heads of π·Z(head), so that all stays exact:
log Z is a log-sum over heads, and a head has the posterior share π·Z(head)/Z.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Bools, Floats, Ints
from lbm.nn.inside import Summed
from lbm.reasoning.exact.sums import SumProgram

MAX_BRANCHES: Final = 2_000
"""Values of choices that are tried for the best world of a row before it is given as it is, not proven."""

_CLOSE: Final = 1e-12  # what a bound may be above a world that is best


class Blend(NamedTuple):
    """Rows of heads as one row each: what :class:`Summed` says, of all heads.

    ``slopes``, shape (rows, heads, columns with logits), without heads (rows, columns), are derivatives of
    log Z by logits, and ``shares``, shape (rows, heads), the posterior shares of heads; None: no heads.
    """

    logs: Tensor
    chances: Tensor
    marks: Tensor
    slopes: Tensor
    shares: Tensor | None


def log_shares(mixture: Tensor) -> Tensor:
    """Return the logarithms of the shares of heads, a softmax; -inf in rows in which no head is possible.

    >>> log_shares(torch.tensor([[0.0, 0.0], [5.0, float("inf")]], dtype=torch.float64)).exp().tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    top = mixture.max(dim=1, keepdim=True).values
    sure = (mixture == top) & (top > 0)
    alone = sure & (sure.sum(dim=1, keepdim=True) == 1)
    certain = torch.where(alone, 0.0, -torch.inf).to(mixture.dtype)
    plain = torch.log_softmax(torch.where(torch.isinf(top), torch.zeros_like(mixture), mixture), dim=1)
    return torch.where(torch.isinf(top), certain, plain)


def blended(found: Summed, likely: Tensor, logs: Tensor | None) -> Blend:
    """Return rows of heads as one row each; ``logs``, shape (rows, heads), are the logarithms of π.

    ``likely`` is how likely columns with logits are by these alone.
    """
    columns = likely.shape[1]
    slopes = found.chances[:, :columns] - likely
    if logs is None:
        return Blend(found.logs, found.chances, found.marks, slopes, None)
    rows, heads = logs.shape
    each = found.logs.view(rows, heads) + logs
    top = each.max(dim=1, keepdim=True).values
    possible = top > -torch.inf
    parts = torch.exp(each - torch.where(possible, top, 0.0))
    whole = torch.where(possible, parts.sum(dim=1, keepdim=True), 1.0)
    shares = torch.where(possible, parts / whole, 0.0)
    chances, marks = (
        (shares[:, :, None] * part.view(rows, heads, part.shape[1])).sum(dim=1)
        for part in (found.chances, found.marks)
    )
    slopes = shares[:, :, None] * slopes.view(rows, heads, columns)
    return Blend((top + torch.log(whole))[:, 0], chances, marks, slopes, shares)


# --- best worlds --------------------------------------------------------------------------------------


def best_of_heads(program: SumProgram, logits: Floats, weights: Floats, logs: Floats) -> tuple[Bools, Bools]:
    """Return the most probable world of each row, and whether it is proven to be: by branch and bound.

    The best world of each head, given some values, bounds all worlds with these values: no world has more
    than the sum of the heads' best. Where all heads want the same world, the bound is reached.

    Parameters
    ----------
    logits
        Shape (rows, heads, columns with logits); each row has a head with a world.
    weights
        Shape (marks,).
    logs
        Shape (rows, heads): the logarithms of the shares of heads.
    """
    rows = len(logits)
    search = _Branches(program, logits, weights, logs)
    choices = len(program.starts) - 1
    best, proven = np.full(rows, -np.inf), np.ones(rows, bool)
    worlds = np.zeros((rows, program.columns), bool)
    left = np.full(rows, MAX_BRANCHES)
    open_: list[list[tuple[float, int, Ints, int]]] = [[] for _ in range(rows)]
    born = 0
    fresh = [(row, np.full(choices, -1, np.int64)) for row in range(rows)]
    while fresh:
        for (row, told), node in zip(fresh, search.nodes(fresh), strict=True):
            if node.value > best[row]:
                best[row], worlds[row] = node.value, node.world
            if node.choice >= 0 and node.bound > best[row] + _CLOSE * max(1.0, abs(best[row])):
                born += 1
                heapq.heappush(open_[row], (-node.bound, born, told, node.choice))
        fresh = []
        for row in range(rows):
            if not open_[row]:
                continue
            bound, _, told, choice = heapq.heappop(open_[row])
            if -bound <= best[row] + _CLOSE * max(1.0, abs(best[row])):
                open_[row].clear()
                continue
            size = max(2, int(program.starts[choice + 1] - program.starts[choice]))
            if left[row] < size:
                proven[row] = False
                open_[row].clear()
                continue
            left[row] -= size
            for value in range(size):
                more = told.copy()
                more[choice] = value
                fresh.append((row, more))
    return worlds, proven


class _Node(NamedTuple):
    """Some values of choices: a bound, the best world that was met and its value, and where heads differ."""

    bound: float
    value: float
    world: Bools
    choice: int


class _Branches:
    """Bounds and worlds of rows, given values of some choices."""

    def __init__(self, program: SumProgram, logits: Floats, weights: Floats, logs: Floats) -> None:
        self.program, self.logits, self.weights, self.logs = program, logits, weights, logs

    def nodes(self, asked: list[tuple[int, Ints]]) -> list[_Node]:
        """Return what is known with some values told, of several rows at once."""
        heads = self.logs.shape[1]
        rows = np.array([row for row, _ in asked])
        told = np.repeat(np.array([values for _, values in asked]), heads, axis=0)
        logits = self.logits[rows].reshape(len(told), -1)
        logs = self.logs[rows].reshape(-1)
        alive = (self._scores(logits, told) + logs) > -np.inf
        worlds = np.zeros((len(told), self.program.columns), bool)
        if alive.any():
            worlds[alive] = self.program.worlds(logits[alive], self.weights, told[alive])[0]
        values = self._values(worlds)
        # What each head says of the world of each head.
        number = len(asked)
        of_world = np.repeat(values.reshape(number, heads, 1, -1), heads, axis=2).reshape(
            number * heads * heads, -1
        )
        by_head = np.repeat(logits.reshape(number, 1, heads, -1), heads, axis=1).reshape(len(of_world), -1)
        said = self._scores(by_head, of_world).reshape(number, heads, heads) + logs.reshape(number, 1, heads)
        found = []
        alive = alive.reshape(number, heads)
        for i in range(number):
            some = np.flatnonzero(alive[i])
            if not len(some):
                found.append(_Node(-np.inf, -np.inf, worlds[0], -1))
                continue
            own = said[i, some, some]
            totals = np.logaddexp.reduce(said[i][some], axis=1)
            at = some[int(totals.argmax())]
            here = values[i * heads : (i + 1) * heads][some[np.argsort(-own, kind="stable")]]
            apart = np.flatnonzero((here != here[0]).any(axis=0))
            choice = -1
            if len(apart):  # where the head that says most differs from the next that does
                other = next(each for each in here if (each != here[0]).any())
                choice = int(np.flatnonzero(other != here[0])[0])
            found.append(
                _Node(float(np.logaddexp.reduce(own)), float(totals.max()), worlds[i * heads + at], choice)
            )
        return found

    def _scores(self, logits: Floats, told: Ints) -> Floats:
        return self.program.run(np.ascontiguousarray(logits), self.weights, told, down=False)[0]

    def _values(self, worlds: Bools) -> Ints:
        """Return worlds as values of choices."""
        return values_of(self.program.starts, worlds)


def values_of(starts: Ints, worlds: Bools) -> Ints:
    """Return the values of choices in worlds, shape (rows, columns): its own, or which is true."""
    found = np.zeros((len(worlds), len(starts) - 1), np.int64)
    sizes = np.diff(starts)
    alone = np.flatnonzero(sizes == 1)
    found[:, alone] = worlds[:, starts[:-1][alone]]
    for choice in np.flatnonzero(sizes > 1):
        found[:, choice] = worlds[:, starts[choice] : starts[choice + 1]].argmax(axis=1)
    return found
