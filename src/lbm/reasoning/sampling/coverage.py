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
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Place:
    """What chains did in one place; arrays have shape (chains,)."""

    name: str
    began: Bools
    visited: Bools
    inside: Bools
    stayed: NDArray[np.int64]


@dataclass(slots=True)
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

    formulae: Sequence[Formula]
    worlds: Bools
    begin: Bools
    truth: Truth
    _places: list[_Place] = field(default_factory=list)
    _counted: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _far: list[list[NDArray[np.float32]]] = field(default_factory=list)  # of chains that began in a world
    _near: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # of all others
    _home: Bools = field(default_factory=lambda: np.zeros((0, 0), bool))

    def __post_init__(self) -> None:
        chains = self.begin.shape[1]
        none = np.zeros(chains, bool)
        for formula in self.formulae:
            began = self.truth(formula, self.begin)
            self._places.append(
                _Place(shown(formula), began, none.copy(), none.copy(), np.zeros(chains, np.int64))
            )
        self._counted = np.zeros(chains, np.int64)
        self._home = (self.begin[:, None, :] == self.worlds[:, :, None]).all(axis=0)
        self._near = np.full(self.worlds.shape[1], np.inf, np.float32)
        self._far = [[] for _ in range(self.worlds.shape[1])]

    def add(self, x: Bools, valid: Bools) -> Bools:
        """Follow the chains through some sweeps; return which states are valid and in each place.

        ``x`` has shape (atoms, sweeps, chains), ``valid`` (sweeps, chains), and the answer (places, sweeps,
        chains).
        """
        self._counted += valid.sum(axis=0)
        found = np.zeros((len(self.formulae), *valid.shape), bool)
        for number, (formula, place) in enumerate(zip(self.formulae, self._places, strict=True)):
            true = self.truth(formula, x)
            found[number] = inside = true & valid
            place.visited |= inside.any(axis=0)
            place.stayed += inside.sum(axis=0)
            place.inside = true[-1]
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
        bounds = [(self._bound(place), place.name) for place in self._places]
        for number, home in enumerate(self._home):
            if home.any() and not home.all() and self._far[number]:
                far = np.concatenate(self._far[number])
                inside = far < self._near[number]
                stayed = np.zeros(len(home), np.int64)
                stayed[home] = inside.sum(axis=0)
                last = np.zeros(len(home), bool)
                last[home] = inside[-1]
                place = _Place(
                    "the surroundings of a good world", home, np.zeros(len(home), bool), last, stayed
                )
                bounds.append((self._bound(place), place.name))
        return max(bounds, default=(0.0, ""))

    def _bound(self, place: _Place) -> float:
        from scipy.special import gammaincinv

        began, others = place.began, ~place.began
        came = int((place.visited & others).sum())
        if not others.any() or came >= min(VISITS, others.sum() / 2):
            return 0.0
        if not began.any():
            return 1.0
        left = int((began & ~place.inside).sum())
        sweeps = int(self._counted[others].sum())
        if not left or not sweeps:
            return 1.0
        stay = place.stayed[began].sum() / gammaincinv(left, _STAYS)
        often = gammaincinv(came + 1, _SURE) / sweeps
        return float(min(1.0, stay * often))
