"""Elimination as a few lines of NumPy: what a careful reader of a textbook would write, as a peer.

A network is a list of factors, each some variables and an array with an axis for each of them. Every bucket
is multiplied by broadcasting and summed over its variable; on the way down the belief of each bucket, its
product times what comes from the bucket above divided by what went there, gives all marginals. Messages
are scaled to 1 at most. Nothing here is of lbm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Factor = tuple[tuple[int, ...], Array]


def elimination(
    sizes: Sequence[int], factors: Sequence[Factor], order: Sequence[int]
) -> tuple[float, list[Array]]:
    """Return log Z, and of each variable how likely its values are."""
    turn = {variable: i for i, variable in enumerate(order)}
    buckets: dict[int, list[Factor]] = {variable: [] for variable in order}
    for scope, table in factors:
        buckets[min(scope, key=turn.__getitem__)].append((scope, table))
    log_z = 0.0
    made: list[tuple[int, tuple[int, ...], Array, Array, int | None]] = []
    for variable in order:
        bucket = buckets[variable]
        others = sorted({v for scope, _ in bucket for v in scope} - {variable}, key=turn.__getitem__)
        whole = (variable, *others)
        product: Any = np.ones([sizes[variable]] + [1] * len(others))
        for scope, table in bucket:
            product = product * aligned(scope, table, whole)
        product = np.broadcast_to(product, [sizes[v] for v in whole])
        message = product.sum(axis=0)
        top = float(message.max())
        log_z += math.log(top)
        message = message / top
        parent = others[0] if others else None
        if parent is not None:
            buckets[parent].append((tuple(others), message))
        made.append((variable, whole, product / top, message, parent))
    beliefs: dict[int, Factor] = {}
    marginals: list[Array] = [np.ones(0)] * len(sizes)
    for variable, whole, product, message, parent in reversed(made):
        belief = product
        if parent is not None:
            above, table = beliefs[parent]
            separator = table.sum(axis=tuple(i for i, v in enumerate(above) if v not in whole))
            kept = tuple(v for v in above if v in whole)
            separator = aligned(kept, separator, whole[1:])
            with np.errstate(invalid="ignore"):
                belief = product * np.nan_to_num(separator / message)
        beliefs[variable] = whole, belief
        marginals[variable] = belief.sum(axis=tuple(range(1, belief.ndim)))
    return log_z, marginals


def aligned(scope: tuple[int, ...], table: Array, whole: tuple[int, ...]) -> Array:
    """Return a table with its axes in the order of ``whole``, and axes of length 1 for all others."""
    mine = [v for v in whole if v in scope]
    ordered = table.transpose([scope.index(v) for v in mine])
    lengths = iter(ordered.shape)
    return ordered.reshape([next(lengths) if v in scope else 1 for v in whole])
