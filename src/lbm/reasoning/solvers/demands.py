"""What engines are asked where they know more than clauses: how many of some literals are true, and groups.

A demand is a row of literals of which at least ``low`` and at most ``high`` are true; a clause is one with a
``low`` of 1. A group is a row of which hard demands allow exactly one: a variable of many values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.knowledge.clauses import Clauses

PAIRS: Final = 2_000_000
"""Pairs of literals that are looked at for groups; what is not found then is no group."""

FREE: Final = -1
"""The ``high`` of a demand that has no upper bound."""


@dataclass(frozen=True, eq=False)
class Demands:
    """Demands over variables from 1, hard or with a weight; of the variables, the atoms come first.

    Attributes
    ----------
    clauses
        The literals of each, as if all were clauses, and their weights, 0 for a hard one.
    low, high
        Shape (demands,): of how many literals at least, and at most (FREE: of any number).
    atoms
        How many of the variables make a world; the others are functions of these.
    """

    clauses: Clauses
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    atoms: int

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The rows of which exactly one literal is true in every model, two literals or more, each once."""
        import numpy as np

        clauses, sizes = self.clauses, self.clauses.sizes
        open_ = (clauses.weights == 0) & (sizes > 1)
        clause = open_ & (self.low == 1) & (self.high == FREE)
        starts, span = clauses.starts[:-1].astype(np.int64), 2 * clauses.variables + 1

        def keys(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
            """Return a number for each pair of literals, whatever their order."""
            low: NDArray[Any] = np.minimum(one, other).astype(np.int64) + clauses.variables
            found: NDArray[Any] = low * span + np.maximum(one, other) + clauses.variables
            return found

        two = starts[clause & (sizes == 2)]
        first, second = -clauses.literals[two], -clauses.literals[two + 1]  # not both are true
        excluded = np.unique(keys(first, second))
        either = np.stack(np.divmod(excluded, span), axis=1) - clauses.variables
        either = either[(either[:, 0] != either[:, 1]) & np.isin(keys(*-either.T), excluded)]
        longer = open_ & ((sizes > 2) | ~clause)
        if not (longer & ~clause).any():  # then only rows whose first two exclude each other may be groups
            some = np.flatnonzero(longer)
            heads = starts[some]
            pair = keys(clauses.literals[heads], clauses.literals[heads + 1])
            longer[some[~np.isin(pair, excluded)]] = False
        chosen = np.flatnonzero(longer)
        rows = [*clauses.ordered(chosen).rows(), *(-either).tolist()]
        low = [*self.low[chosen].tolist(), *[1] * len(either)]
        high = [*self.high[chosen].tolist(), *[FREE] * len(either)]
        inside = np.isin(first, [literal for row in rows for literal in row])
        pairs = {*zip(first[inside].tolist(), second[inside].tolist(), strict=True)}
        return list(_groups(rows, low, high, pairs | {(b, a) for a, b in pairs}))

    @cached_property
    def counts(self) -> bool:
        """Whether some demand is no clause."""
        return bool(((self.low != 1) | (self.high != FREE)).any())

    @cached_property
    def unit(self) -> int:
        """What all weights are multiples of."""
        return gcd(*self.clauses.weights.tolist()) or 1

    @cached_property
    def most(self) -> int:
        """What a world may lose at most, in units."""
        weights: list[int] = self.clauses.weights.tolist()
        return sum(weights) // self.unit


def _groups(
    rows: list[list[int]], low: list[int], high: list[int], excluded: set[tuple[int, int]]
) -> Iterator[tuple[int, ...]]:
    """Yield the groups among hard demands: of exactly one, or a clause whose pairs are excluded."""
    single: dict[int, list[frozenset[int]]] = {}
    known: set[frozenset[int]] = set()
    waiting: list[list[int]] = []
    for row, least, most in zip(rows, low, high, strict=True):
        if len({abs(literal) for literal in row}) < len(row):
            continue
        if least == most == 1 and frozenset(row) not in known:
            known.add(frozenset(row))
            yield tuple(row)
        elif most == 1:
            members = frozenset(row)
            for literal in row:
                single.setdefault(literal, []).append(members)
        elif least == 1 and most == FREE:
            waiting.append(row)
    left = PAIRS
    for row in waiting:
        members = frozenset(row)
        if members in known or left <= 0:
            continue
        whole = any(members <= some for some in single.get(row[0], ()))
        if not whole:
            if (row[0], row[1]) not in excluded:
                continue
            left -= len(row) * (len(row) - 1) // 2
            whole = all(pair in excluded for pair in combinations(row, 2))
        if whole:
            known.add(members)
            yield tuple(row)
