"""Orders of elimination: which variable is summed out when, so that no table on the way is large.

Summing out a variable makes one table over all that it shares a table with, and these are then neighbours.
The variables of that table are the bag of the step, and the largest bag is the width of the order (treewidth
plus one, if it is the best of all orders). Good orders are found greedily: next is a variable for which the
fewest pairs become neighbours (min-fill), or, where that is too slow, one whose bag is smallest (min-degree,
min-weight).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from lbm.reasoning.budget import NO_LIMIT, Budget

MAX_STEPS: Final = 10_000_000
"""Steps of work spent on the fewest new neighbours, about a second; past it the smallest bag decides."""

_UNIONS: Final = 8  # members of a set that are joined to another in the time of a step

_BAND: Final = 200  # variables between neighbours of a banded order

_GRAIN: Final = 16  # parts of a bit that sizes are told apart by


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """An order of elimination, and what it costs.

    Attributes
    ----------
    variables
        Each of them once, that which is summed out first in front.
    width
        The logarithm to base 2 of the largest bag: of k variables of two values it is k.
    cost
        The logarithm to base 2 of the sizes of all bags together.
    """

    variables: tuple[int, ...]
    width: float
    cost: float


def elimination_order(
    scopes: Iterable[Collection[int]],
    sizes: Sequence[float],
    *,
    last: Collection[int] = (),
    rounds: int = 1,
    budget: Budget = NO_LIMIT,
    steps: int = MAX_STEPS,
) -> EliminationOrder:
    """Return the cheapest order found in some rounds of greedy choice.

    The first round breaks ties by degree, later ones by chance from a fixed seed: what is found depends on
    the time only where the budget ends before the rounds, or before ``steps``, do. The first round is always
    finished: out of steps it looks at the sizes of bags only, and after MAX_STEPS of that, or out of time,
    the rest is left as it is, and counted as one bag.

    Parameters
    ----------
    scopes
        Which variables stand in a table together, numbered from 0.
    sizes
        Of each variable, the logarithm to base 2 of how many values it has.
    last
        Variables that are summed out after all others.

    >>> order = elimination_order([(0, 1), (1, 2), (2, 3)], [1.0] * 4)
    >>> order.variables, order.width
    ((0, 3, 1, 2), 2.0)
    """
    near = neighbours(scopes, len(sizes))
    even = len(set(sizes)) <= 1
    weights = None if even else [max(1, round(_GRAIN * size)) for size in sizes]
    after = bytearray(len(sizes))
    for variable in last:
        after[variable] = 1
    rng = random.Random(0)
    best: EliminationOrder | None = None
    for number in range(max(1, rounds)):
        if best is not None and (steps <= 0 or budget.spent()):
            break
        if number:
            turns = list(range(len(sizes)))
            rng.shuffle(turns)
        else:
            turns = sorted(range(len(sizes)), key=lambda v: (len(near[v]), v))
        greedy = _Greedy(near, sizes, weights, turns, after, math.inf if best is None else best.cost, budget)
        found, steps = greedy.run(steps)
        if found is not None and (best is None or found.cost < best.cost):
            best = found
    assert best is not None, "the first round is always finished"
    return best


def banded_order(
    scopes: Iterable[Collection[int]], sizes: Sequence[float], *, most: float, budget: Budget = NO_LIMIT
) -> EliminationOrder | None:
    """Return the order in which neighbours are nearest to one another; None: it is no cheaper than ``most``.

    On grids and long strips it is far better than greedy choice, which begins everywhere at once (bandwidth
    reduction by reverse Cuthill-McKee).

    >>> banded_order([(0, 2), (2, 1), (1, 3)], [1.0] * 4, most=9.0).width
    2.0
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    near = neighbours(scopes, len(sizes))
    pairs = np.array([(v, u) for v, others in enumerate(near) for u in others], np.int64).reshape(-1, 2).T
    if not pairs.size:
        return None
    graph = coo_array((np.ones(pairs.shape[1], np.int8), tuple(pairs)), shape=(len(sizes), len(sizes)))
    order = reverse_cuthill_mckee(graph.tocsr(), symmetric_mode=True).tolist()
    turn = np.empty(len(sizes), np.int64)
    turn[order] = np.arange(len(sizes))
    if int(np.abs(turn[pairs[0]] - turn[pairs[1]]).max()) > _BAND:
        return None  # no table is wider than the band, but this one is too wide to be worth a look
    width, cost = 0.0, -math.inf
    for number, variable in enumerate(order):
        if not number & 0xFF:
            budget.tick()
        around = {u for u in near[variable] if turn[u] > number}
        size = sizes[variable] + sum(sizes[u] for u in around)
        width = max(width, size)
        cost = np.logaddexp2(cost, size)
        if cost >= most:
            return None
        if around:
            first = min(around, key=turn.__getitem__)
            near[first] |= around
    return EliminationOrder(tuple(order), width, float(cost))


def neighbours(scopes: Iterable[Collection[int]], variables: int) -> list[set[int]]:
    """Return, for each variable, those that it shares a scope with.

    >>> neighbours([(0, 1), (1, 2), (1,)], 4)
    [{1}, {0, 2}, {1}, set()]
    """
    near: list[set[int]] = [set() for _ in range(variables)]
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
    for variable, others in enumerate(near):
        others.discard(variable)
    return near


class _Greedy:
    """One round: a graph that loses a variable at a time, and who is next in a heap.

    A key of the heap is a score above the turn of its variable; keys of scores that have changed since stay
    in it and are passed over.
    """

    def __init__(
        self,
        near: Sequence[set[int]],
        sizes: Sequence[float],
        weights: Sequence[int] | None,
        turns: Sequence[int],
        after: bytes | bytearray,
        most: float,
        budget: Budget,
    ) -> None:
        self.near = [set(others) for others in near]
        self.sizes, self.weights, self.after = sizes, weights, after
        self.most, self.budget = most, budget
        self.who = turns
        self.turn = [0] * len(turns)
        for at, variable in enumerate(turns):
            self.turn[variable] = at
        self.bits = max(1, len(turns).bit_length())
        self.late = 1 << 62  # a score above all others, for those that come last
        self.score = [0] * len(turns)
        self.order: list[int] = []
        self.done = bytearray(len(turns))
        self.width, self.cost = 0.0, -math.inf
        self.steps = 0

    def run(self, steps: int) -> tuple[EliminationOrder | None, int]:
        """Return the order, or None where one as cheap is known, and how many of the steps are left."""
        self._by_fill(steps)
        if self.cost < self.most and len(self.order) < len(self.score):
            self._by_bag(self.steps + MAX_STEPS)
        if self.cost >= self.most:
            return None, steps - self.steps
        return EliminationOrder(tuple(self.order), self.width, self.cost), steps - self.steps

    def _take(self, variable: int) -> set[int]:
        """Note that a variable is next, and return its neighbours."""
        around = self.near[variable]
        self.order.append(variable)
        self.done[variable] = 1
        size = self.sizes[variable]
        if self.weights is None:
            size *= len(around) + 1
        else:
            size += sum(map(self.sizes.__getitem__, around))
        self.width = max(self.width, size)
        high, low = (size, self.cost) if size > self.cost else (self.cost, size)
        self.cost = high + math.log2(1 + 2.0 ** (low - high))
        return around

    def _heap(self) -> list[int]:
        """Return the heap of all that are left, by their scores."""
        late, bits, turn = self.late, self.bits, self.turn
        heap = [
            ((score + late if self.after[v] else score) << bits) | turn[v]
            for v, score in enumerate(self.score)
            if not self.done[v]
        ]
        heapify(heap)
        return heap

    def _by_fill(self, steps: int) -> None:
        """Take the variable that makes the fewest new neighbours, while there are steps left."""
        if not self._count_fill(steps):
            return
        near, score, turn, who, weights = self.near, self.score, self.turn, self.who, self.weights
        bits, mask, late, after = self.bits, (1 << self.bits) - 1, self.late, self.after
        heap = self._heap()
        looks = 0
        while heap:
            key = heappop(heap)
            variable = who[key & mask]
            if self.done[variable]:
                continue
            now = score[variable]
            if key >> bits != (now + late if after[variable] else now):
                continue
            around = self._take(variable)
            changed: Iterable[int] = around
            self.steps += len(around) + 1
            if now:
                drops: Counter[int] = Counter()
                changed = self._connect(variable, around, drops)
            elif weights is None:
                others = len(around) - 1
                for u in around:
                    here = near[u]
                    here.remove(variable)
                    score[u] -= len(here) - others
            else:
                for u in around:
                    here = near[u]
                    here.remove(variable)
                    score[u] -= weights[variable] * sum(map(weights.__getitem__, here - around))
            for u in changed:
                heappush(heap, ((score[u] + late if after[u] else score[u]) << bits) | turn[u])
            if self.steps >> 13 != looks:
                looks = self.steps >> 13
                if self.steps > steps or self.cost >= self.most or self.budget.spent():
                    return
        return

    def _count_fill(self, steps: int) -> bool:
        """Score each variable by the pairs of its neighbours that are no neighbours; False: out of steps."""
        near, score, weights = self.near, self.score, self.weights
        looks = 0
        for variable, around in enumerate(near):
            self.steps += 1
            if weights is None:
                closed = 0
                for u in around:
                    if u > variable:
                        common = len(around & near[u])
                        closed += common
                        score[u] -= common
                score[variable] += len(around) * (len(around) - 1) - closed
                self.steps += closed
            else:
                own = [weights[u] for u in around]
                total = sum(own)
                score[variable] = total * total - sum(weight * weight for weight in own)
                for u in around:
                    shared = around & near[u]
                    score[variable] -= weights[u] * sum(map(weights.__getitem__, shared))
                    self.steps += len(shared)
            if self.steps >> 13 != looks:
                looks = self.steps >> 13
                if self.steps > steps or self.budget.spent():
                    return False
        score[:] = [twice // 2 for twice in score]
        return True

    def _connect(self, variable: int, around: set[int], drops: Counter[int]) -> set[int]:
        """Make neighbours of the neighbours of a variable that is gone, and return whose score changed."""
        near, score, weights = self.near, self.score, self.weights
        for u in around:
            here = near[u]
            here.remove(variable)
            if weights is None:
                score[u] -= len(here - around)
            else:
                score[u] -= weights[variable] * sum(map(weights.__getitem__, here - around))
        steps = len(around) * len(around)
        left = set(around)
        for u in around:
            left.remove(u)
            here = near[u]
            for v in left - here:
                there = near[v]
                common = here & there
                if weights is None:
                    drops.update(common)
                    score[u] += len(here) - len(common)
                    score[v] += len(there) - len(common)
                else:
                    both = weights[u] * weights[v]
                    for w in common:
                        drops[w] += both
                    score[u] += weights[v] * sum(map(weights.__getitem__, here - common))
                    score[v] += weights[u] * sum(map(weights.__getitem__, there - common))
                here.add(v)
                there.add(u)
                steps += len(here) + 4
        for w, drop in drops.items():
            score[w] -= drop
        self.steps += steps
        return around.union(drops)

    def _by_bag(self, steps: int) -> None:
        """Take the variable whose bag is smallest, while there are steps left, and then any."""
        near, score, turn, who, weights = self.near, self.score, self.turn, self.who, self.weights
        bits, mask, late, after = self.bits, (1 << self.bits) - 1, self.late, self.after
        for variable, around in enumerate(near):
            score[variable] = len(around) if weights is None else sum(map(weights.__getitem__, around))
        heap = self._heap()
        while heap:
            key = heappop(heap)
            variable = who[key & mask]
            now = score[variable]
            if self.done[variable] or key >> bits != (now + late if after[variable] else now):
                continue
            around = self._take(variable)
            if self.cost >= self.most:
                return
            left = len(score) - len(self.order)
            self.steps += 1 + len(around) * len(around) // _UNIONS
            if len(around) == left or self.steps > steps or self.budget.spent():
                self._take_rest()
                return
            for u in around:
                here = near[u]
                here |= around
                here.remove(u)
                here.remove(variable)
                score[u] = len(here) if weights is None else sum(map(weights.__getitem__, here))
                heappush(heap, ((score[u] + late if after[u] else score[u]) << bits) | turn[u])

    def _take_rest(self) -> None:
        """Take those that are left as if they were all neighbours."""
        rest = [v for v in range(len(self.score)) if not self.done[v]]
        rest.sort(key=lambda v: (self.after[v], self.score[v], self.turn[v]))
        around = set(rest)
        for variable in rest:
            around.remove(variable)
            self.near[variable] = around
            self._take(variable)
