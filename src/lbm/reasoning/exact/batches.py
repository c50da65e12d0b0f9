"""Answers about one component from its models themselves, a batch at a time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lbm.knowledge.formula import atoms_of, holds
from lbm.reasoning.exact.apart import Component, exponent, exponents
from lbm.reasoning.exact.rows import Array, Words, check_room, column_of, sort_rows, spread, words_for


class Batches(ABC):
    """Answers from the models themselves, a batch of rows at a time.

    ``names`` gives the atoms in the order of the rows; it need not be the component's.
    """

    BLOCK: ClassVar = 20
    """A batch has up to 2^BLOCK rows: a bit for each makes 2^14 words, which stay in the cache of a core."""

    component: Component
    names: tuple[str, ...]

    @abstractmethod
    def count(self, keep: frozenset[str] | None = None) -> int:
        """Return how many models there are, or restrictions to ``keep``."""

    @abstractmethod
    def batches(self) -> Iterator[Words]:
        """Yield the models, in the order of ``names``, in batches that fit in memory."""

    def scored(self) -> Iterator[tuple[Words, Array]]:
        """Yield batches of models with their scores, exact, times the scale."""
        kind = self.component.numbers
        wanted = dict.fromkeys(atoms_of(*(formula for formula, _ in self.component.soft)))
        for rows in self.batches():
            columns = {name: column_of(rows, i) for i, name in enumerate(self.names) if name in wanted}
            scores: Array = np.zeros(len(rows), kind)
            for formula, weight in self.component.soft:
                scores += holds(formula, columns).astype(kind) * weight
            yield rows, scores

    def mass(self, scale: int, temperature: float) -> tuple[int, float] | None:
        """Return (best, log) with Z = exp(best/scale/τ + log); None: there is no model."""
        if not self.component.soft:
            total = self.count()
            return (0, math.log(total)) if total else None
        found = self._sums(scale, temperature, marginals=False)
        return None if found is None else (found[0], math.log(found[1]))

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return the probability of each atom of the component, in its order."""
        found = self._sums(scale, temperature, marginals=True)
        if found is None:
            return None
        chance = dict(zip(self.names, (found[2] / found[1]).tolist(), strict=True))
        return [min(chance[name], 1.0) for name in self.component.atoms]

    def _sums(
        self, scale: int, temperature: float, *, marginals: bool
    ) -> tuple[int, float, NDArray[np.float64]] | None:
        best: int | None = None
        total, ones = 0.0, np.zeros(len(self.names))
        for rows, scores in self.scored():
            top = int(scores.max())
            if best is None or top > best:
                less = 0.0 if best is None else math.exp(exponent(best - top, scale, temperature))
                best, total, ones = top, total * less, ones * less
            weights = np.exp(exponents(scores - best, scale, temperature))
            total += float(weights.sum())
            if marginals:
                for i in range(len(ones)):
                    ones[i] += weights[column_of(rows, i)].sum()
        return None if best is None else (best, total, ones)

    def best(self, limit: int | None) -> tuple[int, int, Words] | None:
        """Return the best score, how many models have it, and the first of them; None: there is no model."""
        best: int | None = None
        found: list[Words] = []
        for rows, scores in self.scored():
            top = int(scores.max())
            if best is None or top > best:
                best, found = top, []
            if top == best:
                found.append(rows[scores == top])
                check_room(sum(map(len, found)), len(self.names))
        if best is None:
            return None
        rows = self._in_order(np.concatenate(found))
        return best, len(rows), rows[:limit]

    def draw(self, n: int, rng: np.random.Generator, scale: int, temperature: float) -> Words | None:
        """Return ``n`` independent draws as rows: first how many from each batch, then which."""
        tops: list[int] = []
        totals: list[float] = []
        for _, scores in self.scored():
            tops.append(int(scores.max()))
            totals.append(float(np.exp(exponents(scores - tops[-1], scale, temperature)).sum()))
        if not tops:
            return None
        shares = np.array([math.exp(exponent(t - max(tops), scale, temperature)) for t in tops]) * totals
        drawn = rng.multinomial(n, shares / shares.sum())
        found = [np.zeros((0, words_for(len(self.names))), np.uint64)]
        for (rows, scores), number in zip(self.scored(), drawn, strict=True):
            if number:
                sums = np.cumsum(np.exp(exponents(scores - scores.max(), scale, temperature)))
                at = np.searchsorted(sums, rng.random(number) * sums[-1], side="right")
                found.append(rows[np.minimum(at, np.searchsorted(sums, sums[-1]))])
        return self._in_order(rng.permutation(np.concatenate(found)), sort=False)

    def _in_order(self, rows: Words, *, sort: bool = True) -> Words:
        """Return rows over the component's atoms in its order, from rows over ``names``."""
        if self.names != self.component.atoms:
            place = {name: i for i, name in enumerate(self.component.atoms)}
            other = np.zeros_like(rows)
            spread(rows, [place[name] for name in self.names], other)
            rows = other
        return sort_rows(rows) if sort else rows
