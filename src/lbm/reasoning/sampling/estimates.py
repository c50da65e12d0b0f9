"""Answers from chains, where no exact one is in reach: estimates that say how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import NoAnswer
from lbm.knowledge.formula import Formula, atom
from lbm.knowledge.theory import shown
from lbm.reasoning.answers import Estimate
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.sampling.coverage import Coverage
from lbm.reasoning.sampling.diagnostics import (
    CHAINS,
    ESS,
    R_HAT,
    estimate_sums,
    judged,
    many_estimates,
    wilson,
)
from lbm.reasoning.sampling.machines import truth
from lbm.reasoning.sampling.problems import REPEATED, Problem, Seen
from lbm.reasoning.sampling.record import Record

FIRST: Final = 256
"""Sweeps after which convergence is looked at for the first time; then whenever their number has doubled."""

MOST: Final = 16_384
"""Sweeps after which chains that do not agree are given up."""

MAX_UPDATES: Final = 400_000_000
"""Updates of one atom in one chain that a run may take, whatever its size."""

HOPELESS: Final = 4
"""How many times the sweeps allowed chains may seem to need before impatient ones are given up."""

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


def ask(
    problem: Problem,
    query: Formula,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    most: int = MOST,
    budget: Budget = NO_LIMIT,
    patient: bool = True,
) -> tuple[Estimate, Ran]:
    """Return how likely the query is among valid states, and how chains ran.

    The last half of the sweeps counts. ``sweeps`` asks for so many; otherwise there are FIRST, and twice as
    many as long as chains disagree, up to ``most`` or as many as MAX_UPDATES allows, or until the deadline.
    With ``patient=False`` chains also end that seem to need more than HOPELESS times the sweeps allowed.
    """
    watch = _Watch(problem, query)
    return _run(problem, rng, watch, watch.probability, _Limits(sweeps, most, budget, patient))


def marginals(
    problem: Problem,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    most: int = MOST,
    budget: Budget = NO_LIMIT,
    patient: bool = True,
) -> tuple[dict[str, Estimate], Ran]:
    """Return how likely every atom is among valid states, and how chains ran.

    Sweeps and the deadline are those of :func:`ask`; chains go on until all atoms that vary have converged.
    """
    watch = _Watch(problem)
    return _run(problem, rng, watch, watch.marginals, _Limits(sweeps, most, budget, patient))


def draw(
    problem: Problem,
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    most: int = MOST,
    budget: Budget = NO_LIMIT,
    patient: bool = True,
) -> tuple[Bools, Estimate, Ran]:
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

    watch = _Watch(problem)
    found, ran = _run(problem, rng, watch, watch.least_known, _Limits(sweeps, most, budget, patient), keep)
    states = np.concatenate([x[:, keeps].T for x, keeps, _ in kept[len(kept) // 2 :]])
    if len(states) < n:
        raise NoAnswer(
            f"after {done} sweeps {len(states)} states count, fewer than the {n} asked for: "
            "allow more sweeps, or ask for fewer"
        )
    return states[np.arange(n) * len(states) // n], found, ran


# --- one run -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    """How long chains may run: ``sweeps`` exactly, or else ``most``, or until the deadline."""

    sweeps: int | None
    most: int
    budget: Budget
    patient: bool

    def sweeps_of(self, problem: Problem) -> int:
        """Return how many sweeps there may be."""
        if self.sweeps is not None:
            return self.sweeps
        return max(2 * FIRST, min(self.most, MAX_UPDATES // (LANES * max(1, len(problem.atoms)))))


def _run(
    problem: Problem,
    rng: np.random.Generator,
    watch: _Watch,
    judge: Callable[[], tuple[_T, Estimate]],
    limits: _Limits,
    keep: Callable[[Sequence[Seen]], bool] | None = None,
) -> tuple[_T, Ran]:
    """Let chains run until what ``judge`` returns is good, or the limits are reached.

    ``keep`` gets all states, and says whether there are enough of them.
    """
    limit = limits.sweeps_of(problem)
    walk = problem.walk(rng)
    last = next(walk)
    watch.begin(last)
    done, told, late = 0, -1, False
    while done < limit and not late:
        some: list[Seen] = []
        for last in islice(walk, min(watch.at_once, limit - done)):
            some.append(last)
            late = limits.budget.spent()
            if late:
                break
        done += len(some)
        watch.add(some)
        enough = keep is None or keep(some)
        if limits.sweeps is None and enough and done >= FIRST and done & (done - 1) == 0 and not late:
            (found, worst), told = judge(), done
            if worst.converged or not (limits.patient or _may_agree(worst, done, limit)):
                break
    if told != done:
        found, _ = judge()
    return found, Ran(done, scattered(np.asarray(last.x[:, last.valid])))


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


def _may_agree(worst: Estimate, done: int, limit: int) -> bool:
    """Return whether chains may agree in time: what R² exceeds 1 by falls as the number of sweeps rises."""
    return not done * (worst.r_hat**2 - 1) > HOPELESS * limit * (R_HAT**2 - 1)


def _certainty(found: Estimate) -> tuple[bool, float]:
    return found.converged, found.effective_size


_NOTHING: Final = Estimate(1.0, 1.0, 1.0, math.inf, 1.0, True, CHAINS, 1, 1.0)  # of no atom, all is known


class _Watch:
    """What is recorded of chains as they run, and what it says."""

    def __init__(self, problem: Problem, query: Formula | None = None) -> None:
        self.problem, self.query = problem, query
        self.many = len(problem.atoms) > _WATCHED
        self.fine, self.coarse = Record(), Record(_COARSE)
        states = LANES * max(1, len(problem.atoms))
        self.at_once = min(_AT_ONCE, 1 << max(0, (_VALUES // states).bit_length() - 1))

    def begin(self, first: Seen) -> None:
        """Note where chains begin."""
        self.first = first
        self.together = REPEATED if first.x.shape[1] == LANES else 1  # those of a start are neighbours
        self.coverage = Coverage(self.problem.places, self.problem.starts, first.x, self._truth)

    @property
    def _how(self) -> dict[str, int]:
        """How sums are to be read."""
        return {"width": self.fine.width, "together": self.together}

    def _truth(self, formula: Formula, x: Any) -> Bools:
        return truth(formula, self.problem.atoms, x)

    def add(self, some: Sequence[Seen]) -> None:
        """Record some sweeps."""
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
        sums = self.fine.last_half()
        places = 2 + len(self.problem.places)
        sizes, r_hats = judged(np.concatenate([sums[1:places], sums[places + 1 :]]), self.together)
        if self.many:
            _, each_size, each_r_hat = self._halves()
            sizes += [float(np.nanmin(each_size))] if not np.isnan(each_size).all() else []
            r_hats += [float(np.nanmax(each_r_hat))] if not np.isnan(each_r_hat).all() else []
        found = estimate_sums(sums[places], sums[0], sizes=sizes, r_hats=r_hats, **self._how)
        found = found.allowing_for(*self.coverage.missed())
        if found.probability in (0.0, 1.0) and not self._is_seen(self.query, found.probability == 0):
            found = found.allowing_for(1.0, shown(self.query if found.probability == 0 else ~self.query))
        return found, found

    def _is_seen(self, formula: Formula, value: bool) -> bool:
        """Return whether a chain began in a valid world where the formula has the value, or no world has."""
        began = self._truth(formula, self.first.x[:, self.first.valid])
        if (began == value).any():
            return True
        other = formula if value else ~formula
        return other in self.problem.impossible([other])

    def marginals(self) -> tuple[dict[str, Estimate], Estimate]:
        """Return the estimate of every atom, and that of the one that is known least."""
        found = dict(zip(self.problem.atoms, self._sided(self._each()), strict=True))
        return found, min(found.values(), key=_certainty, default=_NOTHING)

    def least_known(self) -> tuple[Estimate, Estimate]:
        """Return the estimate of the atom of which the chains know least, twice."""
        each = self._each()
        varying = [one for one in each if 0 < one.probability < 1]
        if varying:
            found = min(varying, key=_certainty)
        else:
            sums = self.fine.last_half()
            sizes, r_hats = judged(sums[1:2], self.together)
            found = estimate_sums(sums[0], sums[0], sizes=sizes, r_hats=r_hats, **self._how)
            found = found.allowing_for(*self.coverage.missed())
        return found, found

    def _each(self) -> list[Estimate]:
        """Return the estimate of each atom."""
        sums, atoms = self.fine.last_half(), len(self.problem.atoms)
        sizes, r_hats = judged(sums[: len(sums) if self.many else len(sums) - atoms], self.together)
        missed = self.coverage.missed()
        if self.many:
            found = self._from_halves(sums, sizes, r_hats)
        else:
            found = [
                estimate_sums(one, sums[0], sizes=sizes, r_hats=r_hats, **self._how)
                for one in sums[len(sums) - atoms :]
            ]
        return [one.allowing_for(*missed) for one in found]

    def _sided(self, each: list[Estimate]) -> list[Estimate]:
        """Return the estimates of atoms; one that was never seen otherwise must be proven, or is in doubt."""
        unseen: dict[int, Formula] = {}
        for number, (name, found) in enumerate(zip(self.problem.atoms, each, strict=True)):
            value = found.probability == 0
            began = self.first.x[number, self.first.valid]
            if found.converged and found.probability in (0.0, 1.0) and not (began == value).any():
                unseen[number] = atom(name) if value else ~atom(name)
        proven = self.problem.impossible(list(unseen.values())) if unseen else frozenset()
        for number, formula in unseen.items():
            if formula not in proven:
                each[number] = each[number].allowing_for(1.0, shown(formula))
        return each

    def _halves(self) -> tuple[Floats, Floats, Floats]:
        sums = self.coarse.last_half()
        draws = self.fine.last_half().shape[2] * self.fine.width
        return many_estimates(sums[:-1], sums[-1], draws, self.together)

    def _from_halves(self, sums: Floats, sizes: Sequence[float], r_hats: Sequence[float]) -> list[Estimate]:
        """Return the estimate of each of many atoms from means over halves of chains."""
        chains, draws = sums.shape[1], sums.shape[2] * self.fine.width
        kept = float(sums[0].sum()) / (chains * draws)
        beside = estimate_sums(sums[0], sums[0], sizes=sizes, r_hats=r_hats, **self._how)
        worst = max(r_hats, default=math.nan)
        found = []
        for p, size, ratio in zip(*(each.tolist() for each in self._halves()), strict=True):
            if not size:  # nothing is known of it
                found.append(Estimate(p, 0.0, 1.0, size, math.nan, False, chains, draws, kept))
                continue
            if math.isnan(size):  # it never varies: then what is known of the other series must do
                low, high = (
                    (beside.low, beside.high)
                    if p == beside.probability
                    else (1 - beside.high, 1 - beside.low)
                )
                found.append(replace(beside, probability=p, low=low, high=high))
                continue
            low, high = wilson(p * size, size)
            largest = ratio if math.isnan(worst) else max(ratio, worst)
            good = chains >= CHAINS and largest < R_HAT and min((size, *sizes)) > ESS
            found.append(Estimate(p, low, high, size, largest, good, chains, draws, kept))
        return found
