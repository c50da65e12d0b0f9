"""Groups: literals of which hard rules let exactly one, or at most one, be true.

Cardinalities say so, a clause with the pairs of its literals that exclude one another, and pairs alone.
No atom is in two groups. A literal is a code: 2·i for atom i, from 0, and one more for its negation.
"""

# Kernels are typed by numba, by what they are called with.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.compiling.ready import kernel

_CLIQUE: Final = 3  # literals of a group that only pairs tie, at least
_LOOKS: Final = 30_000_000  # neighbours that are looked at while groups are sought


class Count(NamedTuple):
    """Between ``least`` and ``most`` of some literals, codes of different atoms, are true; weight 0: hard."""

    codes: tuple[int, ...]
    least: int
    most: int
    weight: int


@kernel("valued")
def _full(codes, starts, clauses, first, near, taken, stamp, group, number, most):
    """Give the atoms of clauses whose literals exclude one another a group each; return how many there are.

    ``near[first[c]:first[c + 1]]`` are the codes that cannot be true together with code c.
    """
    looks = 0
    for i in range(len(clauses)):
        c = clauses[i]
        begin, end = starts[c], starts[c + 1]
        good = True
        for place in range(begin, end):
            if taken[codes[place] >> 1] == 1:
                good = False
                break
            stamp[codes[place]] = i
        if not good or looks > most:
            continue
        for place in range(begin, end):
            code, met = codes[place], 0
            for other in range(first[code], first[code + 1]):
                if stamp[near[other]] == i:
                    met += 1
            looks += first[code + 1] - first[code]
            if met < end - begin - 1:
                good = False
                break
        if good:
            for place in range(begin, end):
                taken[codes[place] >> 1] = 1
                group[codes[place]] = number
            number += 1
    return number


@kernel("valued")
def _cliques(order, first, near, taken, stamp, group, number, least, most):
    """Give codes that exclude one another a group each, in this order; return how many there are.

    ``stamp`` counts, for each code, the members of a group in the making that exclude it.
    """
    looks = 0
    members = np.empty(len(order), np.int64)
    for i in range(len(order)):
        code = order[i]
        if taken[code >> 1] == 1 or looks > most:
            continue
        size = 1
        members[0] = code
        for other in range(first[code], first[code + 1]):
            stamp[near[other]] = 1
        looks += first[code + 1] - first[code]
        for place in range(first[code], first[code + 1]):
            more = near[place]
            if taken[more >> 1] == 1 or stamp[more] != size or more >> 1 == code >> 1:
                continue
            members[size] = more
            size += 1
            for other in range(first[more], first[more + 1]):
                stamp[near[other]] += 1
            looks += first[more + 1] - first[more]
        for m in range(size):
            for other in range(first[members[m]], first[members[m] + 1]):
                stamp[near[other]] = 0
        if size >= least:
            for m in range(size):
                taken[members[m] >> 1] = 1
                group[members[m]] = number
            number += 1
    return number


def exclusive(
    atoms: int, clauses: Clauses, counts: Sequence[Count], banned: set[int]
) -> tuple[NDArray[np.int32], Bools, list[bool]]:
    """Return the group of each code, -1: none, which of them are full, and which counts they say already."""
    codes, sizes, hard = clauses.codes.astype(np.int32), clauses.sizes, clauses.weights == 0
    taken = np.zeros(atoms, np.uint8)
    taken[list(banned)] = 1
    group = np.full(2 * atoms, -1, np.int32)
    number, said = 0, [False] * len(counts)
    ones = [i for i, rule in enumerate(counts) if not rule.weight and rule.most == 1 and len(rule.codes) > 1]

    def take(exactly: bool) -> None:
        nonlocal number
        for i in sorted(ones, key=lambda i: -len(counts[i].codes)):
            rule = counts[i]
            free = [code for code in rule.codes if not taken[code >> 1]]
            if (rule.least == 1) != exactly or len(free) < 2 or (exactly and len(free) < len(rule.codes)):
                continue
            taken[np.array(free) >> 1] = 1
            group[free] = number
            number += 1
            said[i] = len(free) == len(rule.codes)

    take(True)
    pairs = codes[clauses.starts[:-1][hard & (sizes == 2)][:, None] + np.arange(2)] ^ 1
    ends, others = np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]])
    order = np.argsort(ends.astype(np.int64) * (2 * atoms) + others, kind="stable")
    near = others[order]
    first = np.zeros(2 * atoms + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=2 * atoms), out=first[1:])
    stamp = np.full(2 * atoms, -1, np.int64)
    whole = np.flatnonzero(hard & (sizes > 1))
    if len(near) and len(whole):
        whole = whole[np.argsort(-sizes[whole], kind="stable")]
        number = _full(codes, clauses.starts, whole, first, near, taken, stamp, group, number, _LOOKS)
    full = number
    fulls = np.ones(number, bool)
    take(False)
    if len(near):
        degree = np.diff(first)
        some = np.flatnonzero(degree >= _CLIQUE - 1)
        some = some[np.argsort(-degree[some], kind="stable")]
        stamp[:] = 0
        number = _cliques(some, first, near, taken, stamp, group, number, _CLIQUE, _LOOKS)
    return group, np.concatenate([fulls, np.zeros(number - full, bool)]), said
