"""Whether chains have weighed the places where a world is known: a bound on what they may have missed.

Chains that agree may all have left a well that none of them finds again. But some of them began there, and
how long they stayed tells how much it can weigh. A stationary chain enters a place A as often as it leaves:

    P(A) = (entries per sweep) · (sweeps of a stay)

So if chains that began elsewhere entered A in at most e of T sweeps, and those that began in A stayed D
sweeps on average, P(A) is at most about (e + 3)·D/T. Chains that never left give no bound at all.

Places are where a formula holds that a solver was asked for (the query, its negation, the heaviest soft
formulae), and the surroundings of each known world: as far as no chain came that began elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import shown

VISITS: Final = 10
"""Chains that found a place by themselves, from which on their own statistics tell what it weighs."""

_SURE: Final = 0.95  # of the bound on entries
_STAYS: Final = 0.1  # and of that on stays: the chance that they are underestimated

Truth = Callable[[Formula, NDArray[Any]], Bools]


class Coverage:
    """The places of one run, followed from its first state on.

    Parameters
    ----------
    formulae
        Where each of them holds is a place.
    worlds
        Known worlds, shape (atoms, worlds).
    begin
        The states that chains begin in, shape (atoms, chains).
    truth
        (formula, states of shape (atoms, ...)) -> where it holds.
    """

    def __init__(self, formulae: Sequence[Formula], worlds: Bools, begin: Bools, truth: Truth) -> None:
        self.formulae, self.worlds, self.truth = formulae, worlds, truth
        # Of shape (places, chains): who began there, is there, has been there, and for how many sweeps.
        self._began = self._inside = self._true(begin)
        self._visited = np.zeros_like(self._began)
        self._stayed = np.zeros(self._began.shape, np.int64)
        self._counted = np.zeros(begin.shape[1], np.int64)
        self._home = (begin[:, None, :] == worlds[:, :, None]).all(axis=0)
        # From each world: how far chains are that began in it, and how near any other has come.
        self._far: list[list[NDArray[np.float32]]] = [[] for _ in self._home]
        self._near = np.full(worlds.shape[1], np.inf, np.float32)

    def _true(self, x: Bools) -> Bools:
        """Return where each formula holds, shape (places, ...)."""
        found = np.array([self.truth(formula, x) for formula in self.formulae], bool)
        return found.reshape(len(self.formulae), *x.shape[1:])

    def add(self, x: Bools, valid: Bools) -> Bools:
        """Follow the chains through some sweeps; return which states are valid and in each place.

        ``x`` has shape (atoms, sweeps, chains), ``valid`` (sweeps, chains), and the answer (places, sweeps,
        chains).
        """
        true = self._true(x)
        found = true & valid
        self._counted += valid.sum(axis=0)
        self._visited |= found.any(axis=1)
        self._stayed += found.sum(axis=1)
        self._inside = true[:, -1]
        if self.worlds.shape[1]:
            self._measure(x, valid)
        return found

    def _measure(self, x: Bools, valid: Bools) -> None:
        """Note how far states are from each known world."""
        flat = x.reshape(len(x), -1).astype(np.float32)
        signs = 1 - 2 * self.worlds.astype(np.float32)  # |x - w| = Σ w + Σ (1 - 2w) x
        far = (self.worlds.sum(axis=0)[:, None] + signs.T @ flat).reshape(-1, *valid.shape)
        for number, home in enumerate(self._home):
            others = far[number][:, ~home][valid[:, ~home]]
            self._near[number] = min(self._near[number], others.min(initial=np.inf))
            self._far[number].append(far[number][:, home])

    def missed(self) -> tuple[float, str]:
        """Return an upper bound on the probability of a known place that chains may have missed, and which.

        1: nothing is known of it.
        """
        came = (self._visited & ~self._began).sum(axis=1)
        left = (self._began & ~self._inside).sum(axis=1)
        stayed = (self._stayed * self._began).sum(axis=1)
        places = zip(self._began, came.tolist(), left.tolist(), stayed.tolist(), strict=True)
        bounds = [
            (self._bound(*place), shown(formula))
            for formula, place in zip(self.formulae, places, strict=True)
        ]
        for home, near, far in zip(self._home, self._near, self._far, strict=True):
            if home.any() and not home.all() and far:
                inside = np.concatenate(far) < near
                bound = self._bound(home, 0, int((~inside[-1]).sum()), int(inside.sum()))
                bounds.append((bound, "the surroundings of a good world"))
        return max(bounds, default=(0.0, ""))

    def _bound(self, began: Bools, came: int, left: int, stayed: int) -> float:
        """Return the bound of a place.

        ``began``: which chains began there; how many others came, how many of them are no longer there, and
        how many sweeps they were.
        """
        from scipy.special import gammaincinv

        others = ~began
        if not others.any() or came >= min(VISITS, others.sum() / 2):
            return 0.0
        if not began.any():
            return 1.0
        sweeps = int(self._counted[others].sum())
        if not left or not sweeps:
            return 1.0
        stay = stayed / gammaincinv(left, _STAYS)
        often = gammaincinv(came + 1, _SURE) / sweeps
        return float(min(1.0, stay * often))
