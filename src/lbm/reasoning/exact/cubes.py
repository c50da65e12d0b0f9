"""A component by its strict DNF: cube j over k_j of n atoms holds 2^(n - k_j) models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from lbm.errors import TooManyCubes, TooManyWorlds
from lbm.knowledge.formula import Formula
from lbm.logic.elimination import Elimination, Mask, times
from lbm.logic.sdnf import flat_choices
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component
from lbm.reasoning.exact.batches import Batches
from lbm.reasoning.exact.rows import Words, check_room, coins, mask, restrict, words_for

MAX_CUBES: Final = 4096
"""Cubes up to which the strict DNF of a component is used."""


class ByCubes(Batches):
    """A component by cubes that exclude one another: its hard formulae as one strict DNF."""

    def __init__(self, component: Component, limit: int, budget: Budget) -> None:
        self.component, self.names = component, component.atoms
        place = {name: i for i, name in enumerate(self.names)}
        measure = Elimination()
        cubes: list[Mask] = [(0, 0)]
        for part in sorted(component.hard, key=measure.size):
            found = _cubes(part, place, limit, measure)
            product = None if found is None else _product(cubes, found, limit, budget)
            if product is None:
                raise TooManyWorlds(
                    f"the hard formulae over these {len(place)} atoms have no strict DNF of up to {limit} "
                    "cubes that was found (limit MAX_CUBES): try method='auto'",
                    MAX_CUBES=limit,
                )
            cubes = product
        self.cubes = cubes
        self.frees = [len(place) - (true | false).bit_count() for true, false in cubes]

    def count(self, keep: frozenset[str] | None = None) -> int:
        """Return Σ_j 2^(n - k_j)."""
        if keep is None or keep.issuperset(self.names):
            return sum(1 << free for free in self.frees)
        return len(self.worlds(None, keep))

    def worlds(self, limit: int | None = None, keep: frozenset[str] | None = None) -> Words:
        """Return the first ``limit`` models, sorted, or their restrictions to ``keep``."""
        found = np.zeros((0, words_for(len(self.names))), np.uint64)
        waiting: list[Words] = []
        for cube in self.cubes:
            waiting.append(self._expand(cube, limit, keep))
            if limit is not None and sum(map(len, waiting)) > 1 << 20:
                found, waiting = restrict(np.concatenate([found, *waiting]), self.names, keep)[:limit], []
        return restrict(np.concatenate([found, *waiting]), self.names, keep)[:limit]

    def _expand(self, cube: Mask, limit: int | None, keep: frozenset[str] | None = None) -> Words:
        true, false = cube
        width = words_for(len(self.names))
        rows = mask([i for i in range(len(self.names)) if true >> i & 1], width)[None, :]
        for i in range(len(self.names) - 1, -1, -1):
            if not (true | false) >> i & 1 and (keep is None or self.names[i] in keep):
                if limit is not None and len(rows) >= limit:
                    break
                check_room(2 * len(rows), len(self.names))
                rows = np.concatenate([rows, rows | mask([i], width)])
        return rows

    def batches(self) -> Iterator[Words]:
        """Yield the models of one cube after the other."""
        check_room(self.count(), len(self.names))
        for cube in self.cubes:
            rows = self._expand(cube, None)
            for begin in range(0, len(rows), 1 << self.BLOCK):
                yield rows[begin : begin + (1 << self.BLOCK)]

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return each atom's share of the models, from whole numbers, where nothing is soft."""
        if self.component.soft:
            return super().marginals(scale, temperature)
        twice = [0] * len(self.names)  # an atom that a cube leaves open is true in half its models
        for (true, false), free in zip(self.cubes, self.frees, strict=True):
            for i in range(len(twice)):
                twice[i] += (1 + (true >> i & 1) - (false >> i & 1)) << free
        total = self.count()
        return [ones / (2 * total) for ones in twice] if total else None

    def draw(self, n: int, rng: np.random.Generator, scale: int, temperature: float) -> Words | None:
        """Return uniform draws where nothing is soft: a cube by its size, then a coin for each open atom."""
        if self.component.soft:
            return super().draw(n, rng, scale, temperature)
        total = self.count()
        if not total:
            return None
        shares = np.array([(1 << free) / total for free in self.frees])
        which = rng.choice(len(shares), n, p=shares / shares.sum())
        width = words_for(len(self.names))
        places = range(len(self.names))
        wanted = np.stack([mask([i for i in places if true >> i & 1], width) for true, _ in self.cubes])
        open_ = np.stack([mask([i for i in places if not (t | f) >> i & 1], width) for t, f in self.cubes])
        found: Words = coins(n, width, rng) & open_[which] | wanted[which]
        return found


def _cubes(formula: Formula, place: dict[str, int], limit: int, measure: Elimination) -> list[Mask] | None:
    """Return a strict DNF of one formula, by elimination or else by a diagram; None: it passes the limit."""
    if measure.size(formula) <= limit:
        return measure.cubes(formula, place, limit)
    numbers = {name: i + 1 for name, i in place.items()}
    try:
        rows = flat_choices(formula, numbers, budget=limit)[0]
    except TooManyCubes:
        return None
    return [  # as bit sets again
        (sum(1 << one - 1 for one in row if one > 0), sum(1 << -one - 1 for one in row if one < 0))
        for row in rows
    ]


def _product(left: list[Mask], right: list[Mask], limit: int, budget: Budget) -> list[Mask] | None:
    """Return every consistent conjunction of a cube of each side; None: there are more than the limit."""
    found: list[Mask] = []
    for cube in left:
        budget.tick()
        found += times([cube], right)
        if len(found) > limit:
            return None
    return found
