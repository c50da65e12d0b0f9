"""φ(M, N) = x1 ∧ ... ∧ xM ∧ (y1 ∨ ... ∨ yN), the paper's class of formulae, and ways to see all its models.

It has 2^N - 1 models among 2^(M + N) worlds. A world is one machine word, as in the pool scheme: atom i is
bit 63 - i. [TG21, section 6, Equation 13]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.arrays import Bools, Ints, Words
from lbm.knowledge.formula import Formula, atom, conjunction, disjunction
from lbm.knowledge.theory import Theory
from lbm.machine.translate import translate
from lbm.reasoning.exact.questions import Exact
from lbm.trials.searches.pool import cover, pack_words, word_cubes, word_step

CONFIDENCE: Final = 5.0
"""c of the paper's experiment; its ε is 0.5."""

CHAINS: Final = {"block Gibbs": 1024, "collapsed": 64}
"""Chains side by side: a step of each is a sample."""

GRID: Final = tuple(step * 10**power for power in range(1, 12) for step in (1, 2, 5))
"""Numbers of samples at which coverage is written down: 10, 20, 50, 100, ..."""


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """How a search for all models went.

    Attributes
    ----------
    samples
        Worlds looked at until the last model was seen, or until the limit.
    found, models
        Distinct models that were seen, and how many there are.
    curve
        Shape (changes, 2): after how many samples how many distinct models had been seen.
    seconds
        The time for all of it, building machines and theories included.
    """

    samples: int
    found: int
    models: int
    curve: Ints
    seconds: float

    def facts(self) -> dict[str, int | float]:
        """Return the columns of a table that say how it went."""
        counts = {"samples": self.samples, "found": self.found, "models": self.models}
        return {**counts, "seconds": round(self.seconds, 6)}

    def after(self) -> list[int]:
        """Return how many models had been seen at each number in GRID, up to the end of the search."""
        ends = [size for size in GRID if size < self.samples]
        places = np.searchsorted(self.curve[:, 0], ends, side="right")
        return [int(self.curve[place - 1, 1]) if place else 0 for place in places.tolist()]


def phi(m: int, n: int) -> Formula:
    """Return φ(M, N)."""
    return conjunction(parts(m, n))


def parts(m: int, n: int) -> list[Formula]:
    """Return the conjuncts of φ(M, N), M atoms and a clause: the split theory."""
    some = disjunction(atom(f"y{j}") for j in range(1, n + 1))
    return [*(atom(f"x{i}") for i in range(1, m + 1)), some]


def is_model(words: Words, m: int, n: int) -> Bools:
    """Return in which words φ(M, N) is true."""
    every = np.uint64((1 << 64) - (1 << 64 - m))
    some = np.uint64(((1 << n) - 1) << 64 - m - n)
    return np.asarray(((words & every) == every) & ((words & some) != 0))


# --- samplers --------------------------------------------------------------------------------------


def cover_by(method: str, m: int, n: int, *, seed: int, limit: int | None = None) -> Covered:
    """Look at samples of one method until every model of φ(M, N) was seen, or until ``limit`` samples.

    The methods:

    - ``pool scheme``: the paper's, block Gibbs from a pool of rows. [ERRATA 9]
    - ``block Gibbs``: 1,024 plain chains on the same machine; a step of one is a sample.
    - ``collapsed``: 64 chains in which every conjunct is a formula of its own, of weight c, and hidden units
      are summed out; a sweep over all atoms of one is a sample.
    - ``i.i.d. draws``: independent uniform draws from the strict DNF.
    """
    begun = time.perf_counter()
    if method == "pool scheme":
        # SFC64 makes words about twice as fast as the default generator, and here they are most of the work.
        rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence((m, n, seed))))
        formula = phi(m, n)
        run = cover(translate(formula, epsilon=0.5), formula, rng, confidence=CONFIDENCE, limit=limit)
        took = time.perf_counter() - begun
        return Covered(run.samples, len(run.found), run.models, run.curve, took)
    if method not in _SAMPLERS:
        raise ValueError(f"expected a method among pool scheme, {', '.join(_SAMPLERS)}, got {method!r}")
    return _watch(_SAMPLERS[method](m, n, seed), m, n, limit, begun)


def _watch(samples: Iterator[Words], m: int, n: int, limit: int | None, begun: float) -> Covered:
    """Take samples, in batches, until every model was seen; the last batch counts up to the last new one."""
    total = (1 << n) - 1
    seen = np.zeros(1 << n, bool)  # the y of a model, as a number, say which it is
    found = looked = 0
    changes: list[Ints] = []
    while found < total and (limit is None or looked < limit):
        words = next(samples)
        if limit is not None:
            words = words[: limit - looked]
        places = np.flatnonzero(is_model(words, m, n))
        numbers = (words[places] >> np.uint64(64 - m - n)).astype(np.int64) & total
        distinct, first = np.unique(numbers, return_index=True)
        fresh = np.sort(first[~seen[distinct]])
        seen[distinct] = True
        if len(fresh):
            after = looked + places[fresh] + 1
            changes.append(np.stack([after, found + 1 + np.arange(len(fresh))], axis=1))
            found += len(fresh)
        looked += len(words)
    curve = np.concatenate(changes) if changes else np.zeros((0, 2), np.int64)
    samples_needed = int(curve[-1, 0]) if found == total else looked
    return Covered(samples_needed, found, total, curve, time.perf_counter() - begun)


def _block_gibbs(m: int, n: int, seed: int) -> Iterator[Words]:
    """Yield the states of plain chains after each step; they start from fair coins."""
    rng = np.random.default_rng((1, m, n, seed))
    cubes = word_cubes(translate(phi(m, n), epsilon=0.5))
    words = rng.integers(0, 1 << m + n, CHAINS["block Gibbs"], dtype=np.uint64) << np.uint64(64 - m - n)
    while True:
        words = word_step(cubes, words, rng, confidence=CONFIDENCE)
        yield words


def _collapsed(m: int, n: int, seed: int) -> Iterator[Words]:
    """Yield the states of collapsed chains after each sweep; they start at random."""
    from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
    from lbm.reasoning.engine.network import network_of

    formulae = parts(m, n)
    network = network_of(Theory(formulae).atoms, formulae, [])
    lanes = start(network, weights_of(network, CONFIDENCE), random_states(m + n, seed), seed=seed)
    while True:
        advance(lanes, [1.0], every=1)
        yield pack_words(np.ascontiguousarray(lanes.x.T, dtype=bool))


def _draws(m: int, n: int, seed: int) -> Iterator[Words]:
    """Yield independent uniform draws from the models."""
    rng = np.random.default_rng((2, m, n, seed))
    theory = Theory([phi(m, n)])
    size = (1 << n) * (n + 1)
    while True:
        yield pack_words(Exact(theory).draw(size, rng))


_SAMPLERS: Final[dict[str, Callable[[int, int, int], Iterator[Words]]]] = {
    "block Gibbs": _block_gibbs,
    "collapsed": _collapsed,
    "i.i.d. draws": _draws,
}


def expected_draws(models: int) -> float:
    """Return the mean number of uniform independent draws that see every one of so many models, K·H_K.

    >>> round(expected_draws(31)), round(expected_draws(1023))
    (125, 7681)
    """
    return float(models * (1.0 / np.arange(1, models + 1)).sum())


def expected_coverage(models: int, draws: float) -> float:
    """Return the mean share of models that so many uniform independent draws see, 1 - (1 - 1/K)^n."""
    return float(-np.expm1(draws * np.log1p(-1.0 / models)))


# --- enumeration -----------------------------------------------------------------------------------


def list_models(method: str, m: int, n: int) -> Covered:
    """List every model: ``strict DNF``, cube by cube; ``PySAT``, by a solver that forbids each in turn."""
    begun = time.perf_counter()
    if method == "strict DNF":
        words = pack_words(Exact(Theory([phi(m, n)])).models().array)
    elif method == "PySAT":
        words = _solved(m, n)
    else:
        raise ValueError(f"expected a method among strict DNF, PySAT, got {method!r}")
    took = time.perf_counter() - begun
    distinct = np.unique(words)
    found = int(is_model(distinct, m, n).sum())
    curve = np.array([[len(words), found]], dtype=np.int64)
    return Covered(len(words), found, (1 << n) - 1, curve, took)


def _solved(m: int, n: int) -> Words:
    """Return the models that CaDiCaL finds, one after another."""
    from pysat.solvers import Solver

    clauses = [*([i] for i in range(1, m + 1)), list(range(m + 1, m + n + 1))]
    with Solver("cadical153", bootstrap_with=clauses) as solver:
        found = list(solver.enum_models())
    return pack_words(np.array(found) > 0)
