"""The order in which variables are summed out: greedily, so that tables stay narrow."""

from __future__ import annotations

import heapq
from functools import lru_cache
from typing import Final

from lbm.reasoning.clock import tick

WIDTH: Final = 20
"""Atoms a table of elimination may have beside the one that is summed out."""

_FILL: Final = 64  # atoms up to which elimination also looks for the order of least fill (min-fill)


def order(
    scopes: tuple[tuple[int, ...], ...], variables: int, last: frozenset[int], backwards: bool
) -> tuple[list[int], int]:
    """Return an order of elimination and its width (at least the treewidth).

    Those in ``last`` go after the others; if ``backwards``, from the greatest to the least. Past WIDTH the
    order is not finished, and the width is the first that was too large.
    """
    return _order(scopes, variables, last, backwards, WIDTH)


@lru_cache(maxsize=512)  # a case is looked at once to see whether it fits, and again for each question
def _order(
    scopes: tuple[tuple[int, ...], ...], variables: int, last: frozenset[int], backwards: bool, most: int
) -> tuple[list[int], int]:
    widest = max(map(len, scopes), default=1) - 1
    if widest > most:
        return [], widest
    best: tuple[list[int], int] | None = None
    for fill in (False, True) if variables <= _FILL else (False,):
        near: list[set[int]] = [set() for _ in range(variables)]
        for scope in scopes:
            for variable in scope:
                near[variable].update(scope)
        for variable, others in enumerate(near):
            others.discard(variable)
        found = _greedy(near, last, backwards, fill, most)
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return best


def _greedy(
    near: list[set[int]], last: frozenset[int], backwards: bool, fill: bool, most: int
) -> tuple[list[int], int]:
    def cost(variable: int) -> tuple[bool, int, int]:
        if backwards and variable in last:
            return True, -variable, 0
        others = near[variable]
        missing = sum(len(others - near[other]) - 1 for other in others) if fill else 0
        return variable in last, missing, len(others)

    order: list[int] = []
    width = 0
    left = set(range(len(near)))
    heap = [] if fill else [(cost(variable), variable) for variable in left]
    heapq.heapify(heap)
    while left:
        tick()
        if fill:
            variable = min(left, key=lambda v: (cost(v), v))
        else:
            seen, variable = heapq.heappop(heap)
            if variable not in left or seen != cost(variable):
                continue
        others = near[variable]
        width = max(width, len(others))
        if width > most:
            return order, width
        order.append(variable)
        left.discard(variable)
        for other in others:
            near[other] |= others
            near[other] -= {variable, other}
            if not fill:
                heapq.heappush(heap, (cost(other), other))
    return order, width
