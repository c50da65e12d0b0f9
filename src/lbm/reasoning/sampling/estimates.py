"""Answers from chains, where no exact one is in reach: estimates that say how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import NoAnswer
from lbm.knowledge.formula import Formula, atom
from lbm.knowledge.theory import shown
from lbm.reasoning.answers import Estimate
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.sampling.coverage import Coverage
from lbm.reasoning.sampling.diagnostics import (
    Beside,
    concluded,
    estimate_sums,
    judged,
    least_known,
    many_estimates,
)
from lbm.reasoning.sampling.machines import truth
from lbm.reasoning.sampling.runs import Limits, Record, run_until
from lbm.reasoning.sampling.targets import REPEATED, Seen, Target, spread

MAX_STATES: Final = 1 << 28
"""Truth values of states that may be kept."""

_WATCHED: Final = 64  # atoms up to which the whole series of each is judged; past it, means of half chains
_AT_ONCE: Final = 64  # sweeps that are looked at together, or as many as these truth values make
_VALUES: Final = 1 << 23
_T = TypeVar("_T")
_PIECES: Final = 2  # sums of every atom that are taken of as many sweeps
_ENDS: Final = 4  # states in which chains ended that others may begin in
_COARSE: Final = 16  # blocks that are kept of every atom where there are many


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """How chains ran: sweeps of each, and some valid states in which they ended, shape (atoms, states)."""

    sweeps: int
    ends: Bools


def ask(target: Target, query: Formula, rng: np.random.Generator, limits: Limits) -> tuple[Estimate, Ran]:
    """Return how likely the query is among valid states, and how chains ran.

    The last half of the sweeps counts.
    """
    watch = _Watch(target, rng, query)
    return watch.run(watch.probability, limits)


def marginals(target: Target, rng: np.random.Generator, limits: Limits) -> tuple[dict[str, Estimate], Ran]:
    """Return how likely every atom is among valid states, and how chains ran.

    The last half of the sweeps counts; chains go on until all atoms that vary have converged.
    """
    watch = _Watch(target, rng)
    return watch.run(watch.marginals, limits)


def draw(target: Target, n: int, rng: np.random.Generator, limits: Limits) -> tuple[Bools, Estimate, Ran]:
    """Return ``n`` states of chains, shape (n, atoms), how good they are, and how chains ran.

    Valid states of the last half of the sweeps are taken, as far apart as their number allows. They are as
    good as what chains know of the atom that they know least about.
    """
    kept: list[Seen] = []
    done, every = 0, 1  # states are kept after every so many sweeps, fewer as there are more

    def keep(some: Sequence[Seen]) -> bool:
        nonlocal kept, done, every
        for seen in some:
            done += 1
            if done % every == 0:
                kept.append(seen)
                if len(kept) * seen.x.size > MAX_STATES:
                    kept, every = kept[1::2], 2 * every
        return sum(int(keeps.sum()) for _, keeps, _ in kept[len(kept) // 2 :]) >= n

    watch = _Watch(target, rng)
    found, ran = watch.run(watch.least_known, limits, keep)
    states = np.concatenate([x[:, keeps].T for x, keeps, _ in kept[len(kept) // 2 :]])
    if len(states) < n:
        raise NoAnswer(
            f"after {done} sweeps {len(states)} states count, fewer than the {n} asked for: "
            "allow more sweeps, or ask for fewer"
        )
    return states[np.arange(n) * len(states) // n], found, ran


# --- one run -----------------------------------------------------------------------------------------


def scattered(x: Bools, number: int = _ENDS) -> Bools:
    """Return a few of some states, shape (atoms, states), as far apart as they can be."""
    chosen = [0] if x.shape[1] else []
    near = np.full(x.shape[1], np.inf)
    while chosen and len(chosen) < number:
        near = np.minimum(near, (x != x[:, chosen[-1:]]).sum(axis=0))
        if not near.max():
            break
        chosen.append(int(near.argmax()))
    return x[:, chosen]


class _Watch:
    """Chains from where they begin, what is recorded of them as they run, and what it says."""

    def __init__(self, target: Target, rng: np.random.Generator, query: Formula | None = None) -> None:
        self.target, self.query = target, query
        self.seen = target.run(spread(target.starts, rng), rng)
        self.first = self.last = first = next(self.seen)
        self.many = len(target.atoms) > _WATCHED
        self.fine, self.coarse = Record(), Record(_COARSE)
        self.together = REPEATED if first.x.shape[1] == LANES else 1  # those of a start are neighbours
        self.coverage = Coverage(target.places, target.starts, first.x, self._truth)

    def run(
        self,
        judge: Callable[[], tuple[_T, Estimate]],
        limits: Limits,
        keep: Callable[[Sequence[Seen]], bool] = lambda _: True,
    ) -> tuple[_T, Ran]:
        """Let chains run until what ``judge`` returns is good, or the limits are reached.

        ``keep`` gets all states, and says whether there are enough of them.
        """

        def add(some: Sequence[Seen]) -> bool:
            self._add(some)
            return keep(some)

        atoms = len(self.target.atoms)
        at_once = min(_AT_ONCE, 1 << max(0, (_VALUES // (LANES * max(1, atoms))).bit_length() - 1))
        found, done = run_until(self.seen, add, judge, limits, atoms, at_once=at_once)
        return found, Ran(done, scattered(np.asarray(self.last.x[:, self.last.valid])))

    def _truth(self, formula: Formula, x: Any) -> Bools:
        return truth(formula, self.target.atoms, x)

    def _add(self, some: Sequence[Seen]) -> None:
        """Record some sweeps."""
        self.last = some[-1]
        x = np.stack([seen.x for seen in some], axis=1)
        valid = np.stack([seen.valid for seen in some])
        rows = [valid[None], np.stack([seen.score for seen in some])[None], self.coverage.add(x, valid)]
        if self.query is not None:
            rows.append((self._truth(self.query, x) & valid)[None])
        x &= valid
        if self.many:
            # A few sums of each part are enough, and small however many atoms there are.
            begins = np.unique(np.arange(_PIECES) * len(some) // _PIECES)
            sums = [np.add.reduceat(one, begins, axis=1, dtype=np.int64) for one in (x, valid[None])]
            self.coarse.add(np.concatenate(sums))
        else:
            rows.append(x)
        self.fine.add(np.concatenate(rows, dtype=np.float64))

    def probability(self) -> tuple[Estimate, Estimate]:
        """Return the estimate of the query, twice: what it says, and what tells whether it has converged."""
        assert self.query is not None
        sums, at = self.fine.last_half(), 2 + len(self.target.places)
        beside = judged(np.delete(sums, (0, at), axis=0), self.together)
        if self.many:
            _, sizes, r_hats = self._halves()
            beside.sizes.extend([] if np.isnan(sizes).all() else [float(np.nanmin(sizes))])
            beside.r_hats.extend([] if np.isnan(r_hats).all() else [float(np.nanmax(r_hats))])
        found = self._estimate(sums[at], sums[0], beside).allowing_for(*self.coverage.missed())
        began = self._truth(self.query, self.first.x[:, self.first.valid])
        (found,) = self._sided([self.query], [found], began[None])
        return found, found

    def marginals(self) -> tuple[dict[str, Estimate], Estimate]:
        """Return the estimate of every atom, and that of the one that is known least."""
        formulae = [atom(name) for name in self.target.atoms]
        each = self._sided(formulae, self._each(), self.first.x[:, self.first.valid])
        return dict(zip(self.target.atoms, each, strict=True)), least_known(each)

    def least_known(self) -> tuple[Estimate, Estimate]:
        """Return the estimate of the atom of which the chains know least, twice."""
        varying = [one for one in self._each() if 0 < one.probability < 1]
        if varying:
            found = least_known(varying)
        else:
            sums = self.fine.last_half()
            found = self._estimate(sums[0], sums[0], judged(sums[1:2], self.together))
            found = found.allowing_for(*self.coverage.missed())
        return found, found

    def _estimate(self, hits: Floats, keeps: Floats, beside: Beside) -> Estimate:
        return estimate_sums(hits, keeps, beside, width=self.fine.width, together=self.together)

    def _each(self) -> list[Estimate]:
        """Return the estimate of each atom."""
        sums, atoms = self.fine.last_half(), len(self.target.atoms)
        beside = judged(sums[: len(sums) if self.many else len(sums) - atoms], self.together)
        missed = self.coverage.missed()
        if self.many:
            found = self._from_halves(sums, beside)
        else:
            found = [self._estimate(one, sums[0], beside) for one in sums[len(sums) - atoms :]]
        return [one.allowing_for(*missed) for one in found]

    def _sided(self, formulae: Sequence[Formula], found: list[Estimate], began: Bools) -> list[Estimate]:
        """Return estimates of formulae; that one was never seen otherwise must be proven, or it is in doubt.

        ``began``, shape (formulae, states): which of them hold in the valid states that chains began in.
        """
        unseen: dict[int, Formula] = {}
        for number, (formula, one) in enumerate(zip(formulae, found, strict=True)):
            never = one.probability == 0
            doubtful = (never or one.probability == 1) and (one.converged or self.query is not None)
            if doubtful and not (began[number] == never).any():
                unseen[number] = formula if never else ~formula
        proven = self.target.impossible(list(unseen.values())) if unseen else frozenset()
        for number, formula in unseen.items():
            if formula not in proven:
                found[number] = found[number].allowing_for(1.0, shown(formula))
        return found

    def _halves(self) -> tuple[Floats, Floats, Floats]:
        sums = self.coarse.last_half()
        draws = self.fine.last_half().shape[2] * self.fine.width
        return many_estimates(sums[:-1], sums[-1], draws, self.together)

    def _from_halves(self, sums: Floats, beside: Beside) -> list[Estimate]:
        """Return the estimate of each of many atoms from means over halves of chains."""
        chains, draws = sums.shape[1], sums.shape[2] * self.fine.width
        kept = float(sums[0].sum()) / (chains * draws)
        always = self._estimate(sums[0], sums[0], beside)
        worst = max(beside.r_hats, default=math.nan)
        found = []
        for p, size, ratio in zip(*(each.tolist() for each in self._halves()), strict=True):
            if math.isnan(size):  # it never varies: then what is known of the other series must do
                low, high = always.low, always.high
                if p != always.probability:
                    low, high = 1 - high, 1 - low
                found.append(replace(always, probability=p, low=low, high=high))
            else:
                largest = ratio if math.isnan(worst) else max(ratio, worst)
                found.append(concluded(p, size, largest, beside.sizes, chains, draws, kept))
        return found
