"""The scheme behind the paper's Figure 4: block Gibbs from a pool of rows, until every model was seen.

A world is one machine word: atom i is bit 63 - i, so that numbers order worlds lexicographically, false
first, and unused low bits are 0. Hidden unit j of a machine whose units all weigh w has the input

    s_j(x) = w·(ε - number of literals of cube j that x misses)

so that words, masks and a count of bits do the work of the weight matrix. [TG21, section 7.1; ERRATA 9]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bools, Floats, Ints, Words
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.rows import unpack

SIZE: Final = 500
"""Rows to which the pool is cut, as in the authors' script."""

ACCEPT: Final = ("rank", "free energy")
"""How a sample may be taken for a model: min_h E(x, h) ≤ -ε, or the paper's F(x) ≤ -log(1 + exp(cε))."""

BATCH: Final = 1 << 15
"""Words drawn at once while no unit can fire."""

NEVER: Final = 2.0**-53
"""The resolution of a random number in [0, 1): a unit less likely than this to be on is off."""


@dataclass(frozen=True, eq=False, slots=True)
class WordCubes:
    """The hidden units of a machine over at most 64 atoms, all of one weight, as masks.

    Attributes
    ----------
    atoms
        Names of the visible units, the highest bit first.
    true, false
        Shape (hidden units,): the atoms that each cube wants true, and false.
    weight, epsilon
        w and ε of every unit.
    """

    atoms: tuple[str, ...]
    true: Words
    false: Words
    weight: float
    epsilon: float

    def missed(self, words: Words) -> NDArray[np.uint8]:
        """Return how many literals of each cube each word misses, shape (words, hidden units)."""
        return np.bitwise_count((words[:, None] ^ self.true) & (self.true | self.false))

    def chances(self, missed: ArrayLike, confidence: float) -> Floats:
        """Return P(h_j = 1 | x) = σ(c·w·(ε - missed)) for any numbers of missed literals."""
        inputs = self.weight * (self.epsilon - np.asarray(missed, dtype=np.float64))
        return _logistic(confidence * inputs)


@dataclass(frozen=True, eq=False, slots=True)
class PoolRun:
    """How a run of the scheme went.

    Attributes
    ----------
    samples
        Rows advanced in all rounds; every one counts.
    rounds
        The number of rounds.
    found
        The distinct models seen, as sorted words.
    models
        How many there are.
    accepted, correct
        Samples that were taken for models, repeats included, and those among them that are.
    curve
        Shape (changes, 2): after how many samples how many distinct models had been seen, a row for each
        round that brought a new one.
    """

    samples: int
    rounds: int
    found: Words
    models: int
    accepted: int
    correct: int
    curve: Ints

    @property
    def coverage(self) -> float:
        """The share of all models that were seen; 1 where there are none."""
        return len(self.found) / self.models if self.models else 1.0

    @property
    def accuracy(self) -> float:
        """The share of accepted samples that are models; nan where none was accepted."""
        return self.correct / self.accepted if self.accepted else math.nan


def word_cubes(machine: Machine) -> WordCubes:
    """Return the hidden units of a machine as masks of words.

    Raises ValueError where units differ in weight, atoms are more than 64 or definitional, or visible units
    have a bias.
    """
    n, weight = len(machine.atoms), float(machine.unit_weights[0]) if machine.hidden else 1.0
    if not 0 < n <= 64:
        raise ValueError(f"expected 1 to 64 atoms, so that a world is one word, got {n}")
    if machine.definitions:
        raise ValueError(
            f"expected a machine without definitional atoms, got {len(machine.definitions)}: "
            "translate with a larger budget"
        )
    wanted, cubes = machine.weights.toarray(), machine.cubes
    bias = weight * (machine.epsilon - (wanted > 0).sum(axis=0))
    if not (np.isin(wanted, (0, weight, -weight)).all() and np.allclose(machine.hidden_bias, bias)):
        raise ValueError("expected units of one weight, as translate makes them of one formula")
    if machine.visible_bias.any():
        raise ValueError("expected visible units without bias")
    bits = np.uint64(1) << (np.uint64(63) - np.arange(n, dtype=np.uint64))
    true, false = (bits @ (sign * wanted > 0).astype(np.uint64) for sign in (1, -1))
    return WordCubes(cubes.atoms, true, false, weight, machine.epsilon)


def pack_words(worlds: Bools) -> Words:
    """Return worlds, shape (worlds, atoms), as words, shape (worlds,): atom i as bit 63 - i.

    Examples
    --------
    >>> [f"{word:064b}"[:3] for word in pack_words(np.array([[True, False, True], [False, True, True]]))]
    ['101', '011']
    """
    packed = np.packbits(worlds, axis=1)
    wide = np.zeros((len(packed), 8), np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(">u8").astype(np.uint64)[:, 0]


def word_step(cubes: WordCubes, words: Words, rng: np.random.Generator, *, confidence: float = 5.0) -> Words:
    """Return each word after one step of block Gibbs: hidden units given the world, a world given them.

        P(h_j = 1 | x) = σ(c·s_j(x)),    P(x_i = 1 | h) = σ(c·w·Σ_j ±h_j)

    Where no unit is on, which is most often so, the new world is a word of fair coins. [TG21, equation gibbs]
    """
    return _advance(cubes, _table(cubes, confidence)[cubes.missed(words)], rng, confidence)


def _table(cubes: WordCubes, confidence: float) -> Floats:
    """Return P(h_j = 1 | x) by the number of literals that x misses."""
    return cubes.chances(np.arange(65), confidence)


def _advance(cubes: WordCubes, chances: Floats, rng: np.random.Generator, confidence: float) -> Words:
    """Return a new word for each row of ``chances``, the probabilities that hidden units are on."""
    n = len(cubes.atoms)
    words = _coins(len(chances), n, rng)
    on = np.zeros(chances.shape, dtype=bool)
    likely = chances >= NEVER  # few are, far from every cube, and random numbers cost most here
    some = chances[likely]
    on[likely] = rng.random(len(some)) < some
    rows = np.flatnonzero(on.any(axis=1))
    if len(rows):
        signs = unpack(cubes.true[:, None], n).astype(float) - unpack(cubes.false[:, None], n)
        lean = _logistic(confidence * cubes.weight * (on[rows] @ signs))
        words[rows] = pack_words(rng.random(lean.shape) < lean)
    return words


def _coins(number: int, atoms: int, rng: np.random.Generator) -> Words:
    """Return words whose first bits are fair coins, and whose others are 0."""
    words = rng.integers(0, 1 << 64, size=number, dtype=np.uint64)
    return words & _mask(atoms)


def _mask(bits: int) -> np.uint64:
    """Return the word whose first bits are 1."""
    return np.uint64((1 << 64) - (1 << 64 - bits))


def _logistic(x: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(x))


# --- the scheme ------------------------------------------------------------------------------------


def cover(
    machine: Machine,
    models: Words | Formula,
    rng: np.random.Generator,
    *,
    confidence: float = 5.0,
    accept: str = "rank",
    size: int = SIZE,
    limit: int | None = None,
) -> PoolRun:
    """Sample from a pool until every model of a formula was seen, and return what it took.

    The pool begins as one row of all ½. A round advances, by one step of block Gibbs, the pool and, after
    it, every distinct row accepted so far; each row advanced is a sample. The new pool is the distinct rows
    among the new ones and the old pool, the row of ½ included, sorted lexicographically, false before ½
    before true, in the order of the machine's atoms, and cut to its first ``size`` rows. The run ends with
    the round in which the last model was seen. [TG21, Figure 4; ERRATA 9]

    Parameters
    ----------
    machine
        The machine of one hard formula.
    models
        The formula, on which every accepted row is evaluated; or all its models as sorted words, in which
        accepted rows are looked up.
    accept
        ``rank``: accept a row if a cube is true in it; ``free energy``: by the paper's rule, which lets
        worlds pass that many cubes almost hold in. [ERRATA 4]
    limit
        Samples after which the run ends, with the round that reaches them, whatever was seen.
    """
    cubes = word_cubes(machine)
    if not 0 < confidence < math.inf:
        raise ValueError(f"confidence must be a positive number, got {confidence}")
    if accept not in ACCEPT:
        raise ValueError(f"expected a way to accept among {', '.join(ACCEPT)}, got {accept!r}")
    if size < 1:
        raise ValueError(f"size is a number of rows from 1 up, got {size}")
    is_model, number = _models_of(cubes, models)
    leaky = accept == "free energy"
    return _Scheme(cubes, is_model, number, rng, confidence, leaky, size, limit).run()


def _models_of(cubes: WordCubes, models: Words | Formula) -> tuple[Callable[[Words], Bools], int]:
    """Return what says which words are models, of a formula or by a list of them, and how many there are."""
    if not isinstance(models, Formula):
        if models.dtype != np.uint64 or models.ndim != 1 or not (models[1:] > models[:-1]).all():
            raise ValueError("expected models as distinct, sorted words: np.unique(pack_words(worlds))")
        return lambda words: _within(words, models), len(models)
    unknown = set(atoms_of(models)) - set(cubes.atoms)
    if unknown:
        raise ValueError(f"the formula mentions {min(unknown)!r}, which is no atom of the machine")

    def is_model(words: Words) -> Bools:
        columns = unpack(words[:, None], len(cubes.atoms)).T
        verdict = holds(models, dict(zip(cubes.atoms, columns, strict=True)))
        return np.broadcast_to(np.asarray(verdict, dtype=bool), words.shape)

    return is_model, Exact(Theory([models], atoms=cubes.atoms)).count()


def _within(words: Words, ordered: Words) -> Bools:
    """Return which words are among sorted ones."""
    places = np.searchsorted(ordered, words)
    inside = places < len(ordered)
    inside[inside] = ordered[places[inside]] == words[inside]
    return inside


@dataclass(frozen=True, eq=False, slots=True)
class _Scheme:
    """What a run is made of; its state lives in ``run``."""

    cubes: WordCubes
    is_model: Callable[[Words], Bools]
    number: int
    rng: np.random.Generator
    confidence: float
    leaky: bool
    size: int
    limit: int | None

    def run(self) -> PoolRun:
        """Run to full coverage, or to the limit."""
        none = np.zeros(0, np.uint64)
        pool, half = none, True  # half: whether the row of all ½ is still in the pool
        kept = good = none  # the distinct rows accepted, and those among them that are models
        samples = rounds = accepted = correct = 0
        curve: list[tuple[int, int]] = []
        while len(good) < self.number and (self.limit is None or samples < self.limit):
            if not len(kept) and not half and len(pool) == self.size and self._quiet(pool[-1]):
                number = max(1, BATCH // self.size)
                if self.limit is not None:
                    number = min(number, -(-(self.limit - samples) // self.size))
                new, passed = self._quiet_rounds(number)
                number = len(new) // self.size
            else:
                new = self._round(np.concatenate([pool, kept]), half)
                passed, number = new[self._accepts(new)], 1
            rounds += number
            samples += len(new)
            if len(passed):
                distinct = np.unique(passed)
                fresh = distinct[~_within(distinct, kept)]
                if len(fresh):
                    right = fresh[self.is_model(fresh)]
                    kept = np.sort(np.concatenate([kept, fresh]))
                    if len(right):
                        good = np.sort(np.concatenate([good, right]))
                        curve.append((samples, len(good)))
                accepted += len(passed)
                correct += int(_within(passed, good).sum())
            pool, half = self._cut(pool, half, new)
        history = np.array(curve, dtype=np.int64).reshape(-1, 2)
        return PoolRun(samples, rounds, good, self.number, accepted, correct, history)

    def _round(self, words: Words, half: bool) -> Words:
        """Return the rows after one step; the row of ½, if it is there, comes first."""
        chances = _table(self.cubes, self.confidence)[self.cubes.missed(words)]
        if half:  # it misses half of every cube's literals
            literals = np.bitwise_count(self.cubes.true | self.cubes.false)
            first = self.cubes.chances(literals[None, :] / 2, self.confidence)
            chances = np.concatenate([first, chances])
        return _advance(self.cubes, chances, self.rng, self.confidence)

    def _cut(self, pool: Words, half: bool, new: Words) -> tuple[Words, bool]:
        """Return the first ``size`` of the distinct rows, and whether the row of ½ is among them."""
        if not half and len(pool) == self.size:
            new = new[new < pool[-1]]  # the others would be cut
            if not len(new):
                return pool, False
        words = np.unique(np.concatenate([pool, new]))
        before = int(np.searchsorted(words, np.uint64(1 << 63)))  # rows whose first atom is false
        half = half and before < self.size
        return words[: self.size - half], half

    # -- acceptance --

    def _accepts(self, words: Words) -> Bools:
        """Return which words are taken for models."""
        if self.leaky:
            scale = self.confidence * self.cubes.weight
            wells = np.logaddexp(0.0, scale * (self.cubes.epsilon - np.arange(65)))
            # A model of a single cube reaches the bound exactly, but for rounding.
            return np.asarray(wells[self.cubes.missed(words)].sum(axis=1) >= wells[0] * (1 - 1e-12))
        accepted = self._shared(words)
        accepted[accepted] = (self.cubes.missed(words[accepted]) == 0).any(axis=1)
        return accepted

    # -- rounds in which no unit can fire --

    def _quiet(self, largest: np.uint64) -> bool:
        """Return whether no unit fires in any word up to ``largest``: once it is so, it stays so.

        Every atom before the first bit of ``largest`` is false in all of them, and a cube misses at least
        those that it wants true. Not to fire means here to be on with a probability below NEVER.
        """
        leading = _mask(64 - int(largest).bit_length())
        least = np.bitwise_count(self.cubes.true & leading)
        return bool((self.cubes.chances(least, self.confidence) < NEVER).all())

    def _quiet_rounds(self, number: int) -> tuple[Words, Words]:
        """Return the rows of up to ``number`` rounds of fair coins, and those that were accepted.

        The first round in which one is accepted is the last: from then on accepted rows are advanced too.
        """
        new = _coins(number * self.size, len(self.cubes.atoms), self.rng)
        accepted = np.flatnonzero(self._accepts(new))
        if not len(accepted):
            return new, new[:0]
        end = (int(accepted[0]) // self.size + 1) * self.size
        return new[:end], new[accepted[accepted < end]]

    def _shared(self, words: Words) -> Bools:
        """Return which words have every literal that all cubes share: no other can be accepted."""
        true = np.bitwise_and.reduce(self.cubes.true)
        false = np.bitwise_and.reduce(self.cubes.false)
        return np.asarray(words & (true | false) == true)
