"""Answers from chains, where no exact one is in reach: estimates that say how far they can be trusted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from lbm.errors import NoAnswer
from lbm.knowledge.formula import Formula
from lbm.reasoning.sampling.chains import Bools
from lbm.reasoning.sampling.diagnostics import Estimate, estimate, estimates, worst_known
from lbm.reasoning.sampling.problems import LANES, Problem, Seen, spread, truth
from lbm.reasoning.sampling.targets import Floats

FIRST: Final = 256
"""Sweeps after which convergence is looked at for the first time; then whenever their number has doubled."""

MOST: Final = 16_384
"""Sweeps after which chains that do not agree are given up."""

MAX_UPDATES: Final = 400_000_000
"""Updates of one atom in one chain that a run may take, whatever its size."""

MAX_STATES: Final = 1 << 28
"""Truth values of states that may be kept."""

_WATCHED: Final = 64  # atoms whose whole series are judged: all of them, or those known least
_JUDGED: Final = 512  # states of each chain by which all atoms are judged


def ask(
    problem: Problem,
    query: Formula,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    most: int = MOST,
    deadline: float = np.inf,
) -> tuple[Estimate, int]:
    """Return how likely the query is among valid states, and after how many sweeps that was said.

    The last half of the sweeps counts. ``sweeps`` asks for so many; otherwise there are FIRST, and twice as
    many as long as chains disagree, up to ``most`` or as many as MAX_UPDATES allows, or until the deadline.
    """
    true: list[Bools] = []
    valid: list[Bools] = []
    also: list[Floats] = []
    watched = [i for i, _ in enumerate(problem.atoms)] if len(problem.atoms) <= _WATCHED else []
    done, said = 0, None
    for seen in _states(problem, rng, _limit(problem, sweeps, most)):
        true.append(truth(query, problem.atoms, seen.x))
        valid.append(seen.valid)
        also.append(np.concatenate([seen.score[None], seen.x[watched]]))
        done += 1
        late = time.monotonic() > deadline
        if late or (sweeps is None and done >= FIRST and done & (done - 1) == 0):
            said = _judge(true, valid, also)
            if late or said.converged:
                return said, done
    if said is None or done & (done - 1):
        said = _judge(true, valid, also)
    return said, done


def marginals(
    problem: Problem,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    most: int = MOST,
    deadline: float = np.inf,
) -> tuple[dict[str, Estimate], int]:
    """Return how likely every atom is among valid states, and after how many sweeps that was said.

    Sweeps and the deadline are those of :func:`ask`; chains go on until all atoms that vary have converged.
    """
    kept: list[Seen] = []
    found: dict[str, Estimate] = {}
    done = 0
    for seen in _states(problem, rng, _limit(problem, sweeps, most)):
        done += 1
        late = time.monotonic() > deadline
        kept.append(seen)
        if late or (sweeps is None and done >= FIRST and done & (done - 1) == 0):
            found = _all(problem, kept)
            if late or all(each.converged for each in found.values()):
                return found, done
    return _all(problem, kept) if done & (done - 1) or not found else found, done


def _all(problem: Problem, kept: Sequence[Seen]) -> dict[str, Estimate]:
    """Return the estimate of every atom."""
    last = _thin(kept[len(kept) // 2 :])
    valid = np.array([keeps for _, keeps, _ in last]).T
    also = _watched_beside(last)
    true = np.array([x for x, _, _ in last]).transpose(1, 2, 0)
    return dict(zip(problem.atoms, estimates(true, valid, also=also), strict=True))


def _thin(kept: Sequence[Seen]) -> Sequence[Seen]:
    """Return states far enough apart that judging every atom by them takes no longer than making them."""
    return kept[:: max(1, len(kept) // _JUDGED)]


def _limit(problem: Problem, sweeps: int | None, most: int) -> int:
    """Return how many sweeps there may be."""
    if sweeps is not None:
        return sweeps
    return max(2 * FIRST, min(most, MAX_UPDATES // (LANES * max(1, len(problem.atoms)))))


def _states(problem: Problem, rng: np.random.Generator, limit: int) -> Iterator[Seen]:
    return islice(problem.walk(spread(problem.starts, rng), rng), limit)


def _judge(true: Sequence[Bools], valid: Sequence[Bools], also: Sequence[Floats]) -> Estimate:
    last = len(true) // 2
    series = np.moveaxis(np.array(also[last:]), 0, -1)  # (series, lanes, draws)
    return estimate(np.array(true[last:]).T, np.array(valid[last:]).T, also=series)


def draw(
    problem: Problem,
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    most: int = MOST,
    deadline: float = np.inf,
) -> tuple[Bools, Estimate, int]:
    """Return ``n`` states of chains, shape (n, atoms), how good they are, and the number of sweeps.

    Valid states of the last half of the sweeps are taken, as far apart as their number allows.
    """
    limit = _limit(problem, sweeps, most)
    kept: list[Seen] = []
    done = 0
    every = 1  # states are kept after every so many sweeps, fewer as there are more
    for seen in _states(problem, rng, limit):
        done += 1
        late = time.monotonic() > deadline
        if done % every == 0:
            kept.append(seen)
            if len(kept) * seen.x.size > MAX_STATES:
                kept, every = kept[1::2], 2 * every
        checked = sweeps is None and done >= FIRST and done & (done - 1) == 0
        if late or (checked and _enough(kept, n) and _watch(kept).converged):
            break
    last = kept[len(kept) // 2 :]
    states = np.concatenate([x[:, keeps].T for x, keeps, _ in last])
    if len(states) < n:
        raise NoAnswer(
            f"after {done} sweeps {len(states)} states count, fewer than the {n} asked for: "
            "allow more sweeps, or ask for fewer"
        )
    at = np.arange(n) * len(states) // n
    return states[at], _watch(kept), done


def _enough(kept: Sequence[Seen], n: int) -> bool:
    return sum(int(keeps.sum()) for _, keeps, _ in kept[len(kept) // 2 :]) >= n


def _watch(kept: Sequence[Seen]) -> Estimate:
    """Return the estimate of the atom of which the chains know least, among all that vary.

    Means of chains tell, for every atom, about how much is known of it; those of which that is least are
    then judged by their whole series.
    """
    last = _thin(kept[len(kept) // 2 :])
    valid = np.array([keeps for _, keeps, _ in last]).T
    also = _watched_beside(last)
    doubtful = worst_known([(x, keeps) for x, keeps, _ in last], _WATCHED)
    if not len(doubtful):
        return estimate(valid, valid, also=also[:1])
    true = np.array([x[doubtful] for x, _, _ in last]).transpose(1, 2, 0)
    return min(estimates(true, valid, also=also), key=lambda each: (each.converged, each.effective_size))


def _watched_beside(last: Sequence[Seen]) -> Floats:
    """Return what is watched beside atoms, shape (2, lanes, draws): the score, and whether states count."""
    return np.array([[score, keeps] for _, keeps, score in last], dtype=float).transpose(1, 2, 0)
