"""Chains on a network, in 64 lanes (SIMD): states that compiled kernels carry from sweep to sweep."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bytes, Floats, Ints
from lbm.errors import LimitExceeded, WeightError
from lbm.reasoning.compiling.ready import loops
from lbm.reasoning.engine.network import LANES, Counts, GateNetwork, aligned
from lbm.reasoning.engine.plain import HEAT_BATH, METROPOLIS
from lbm.reasoning.engine.streams import BITS, MAX_SWEEPS, key_of

RULES: Final = {"heat bath": HEAT_BATH, "metropolis": METROPOLIS}

CALL: Final = 0.05
"""Seconds that a compiled call is meant to take: between calls clocks are read and Ctrl-C is heard."""

_TABLE: Final = 512  # odds, in units, up to which probabilities are looked up
_CERTAIN: Final = 22.5  # log-odds past which 31 bits tell no difference
_FIRST: Final = 300_000 / LANES  # updates of an atom in the first call, before speed is known
_NEVER: Final = {True: -(1 << 61), False: -1e300}  # below any total, whole or not


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What each gate adds to the log weight where it is true: ``unit`` times ``numbers``, shape (gates,).

    Numbers are integers, of 16 bits if they can be, where all weights are multiples of one unit; else floats
    with unit 1. ``constant`` is the log weight of a state in which no gate is true, in units; ``reach`` a
    bound of |odds|.
    """

    numbers: NDArray[Any]
    unit: float
    constant: float
    reach: float

    @property
    def whole(self) -> bool:
        """Whether numbers are integers."""
        return self.numbers.dtype != np.float64


def weights_of(network: GateNetwork, penalty: float, temperature: float = 1.0) -> Weights:
    """Return the weights of the gates where a broken hard formula costs ``penalty`` and scores count 1/τ."""
    if not 0 < temperature < math.inf:
        raise ValueError(f"expected a positive, finite temperature, got {temperature}")
    # Units are looked for in the weights as they were given: divided by τ, they no longer cancel exactly.
    values = network.soft + penalty * temperature * network.hard
    constant = network.earned - penalty * temperature * network.broken
    unit = _unit(values)
    numbers = np.rint(values / unit) if unit else values
    reach = network.reach(np.abs(numbers))
    if unit and reach < 1 << 30:
        small = reach < 1 << 15 and network.wires.low.dtype == np.uint8  # kernels for others would be many
        kind = np.int16 if small else np.int32
        return Weights(numbers.astype(kind), unit / temperature, constant / unit, reach)
    with np.errstate(over="ignore"):
        values = network.soft / temperature + penalty * network.hard
    constant = network.earned / temperature - penalty * network.broken
    reach = network.reach(np.abs(values))
    if not math.isfinite(reach):
        raise WeightError(
            f"weights around one atom must have a finite sum at temperature {temperature}: raise it, "
            "or scale them down"
        )
    return Weights(values, 1.0, constant, reach)


def _unit(values: Floats) -> float:
    """Return a number of which all values are multiples, as exactly as floats tell; 0: none was found."""
    sizes = np.unique(np.abs(values[values != 0]))
    if not len(sizes):
        return 1.0
    for unit in (1.0, float(sizes[0])):
        with np.errstate(over="ignore"):
            times = np.rint(sizes / unit)
        if times[-1] < 1 << 30 and (np.abs(sizes - times * unit) <= 4e-16 * sizes).all():
            return unit
    return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The states of chains, copied at one moment.

    Attributes
    ----------
    x
        Shape (atoms, states), 0 or 1.
    broken, score
        Shape (states,): hard formulae broken, and the score. At β = 1 the states that break none have the
        logical distribution.
    """

    x: Bytes
    broken: Ints
    score: Floats


@dataclass(slots=True, eq=False)
class Lanes:
    """The states of 64 chains, changed in place as they advance.

    Attributes
    ----------
    x, counts
        Shape (atoms, 64), 0 or 1, and (gates, 64).
    total
        Shape (64,): log weights, in units of the weights and without their constant.
    sweep
        How many sweeps have been done: the position in the random streams.
    best, best_x
        Shapes (1,) and (atoms,): the greatest total met after a sweep without a broken hard formula, and its
        state.
    goal
        The total at which sweeps end.
    seed, lane
        The streams: chain l of these has the number ``lane + l``.
    """

    network: GateNetwork
    weights: Weights
    x: Bytes
    counts: Counts
    total: NDArray[Any]
    seed: int
    lane: int
    sweep: int = 0
    best: NDArray[Any] = field(default_factory=lambda: np.zeros(1))
    best_x: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    goal: float = math.inf

    @property
    def found(self) -> bool:
        """Whether a state that keeps all hard formulae was met after a sweep."""
        return bool(_NEVER[self.weights.whole] < self.best[0] < -_NEVER[self.weights.whole])

    @property
    def log_weight(self) -> Floats:
        """The log weights, shape (64,)."""
        return np.asarray((self.total + self.weights.constant) * self.weights.unit)

    def broken(self) -> Ints:
        """Return the number of hard formulae that are broken, shape (64,)."""
        return np.asarray(
            np.rint(self.network.broken - self.network.sums(self.counts, self.network.hard)).astype(np.int64)
        )

    def score(self) -> Floats:
        """Return the score, shape (64,)."""
        return self.network.earned + self.network.sums(self.counts, self.network.soft)


def start(
    network: GateNetwork,
    weights: Weights,
    x: ArrayLike,
    *,
    seed: int,
    lane: int = 0,
    sweep: int = 0,
    watch: bool = False,
) -> Lanes:
    """Return chains in the given states, shape (atoms, 64); ``watch``: the best state is kept."""
    states = aligned(np.shape(x), np.uint8)
    states[...] = np.asarray(x) != 0
    counts = network.counts(states)
    key_of(seed)
    lanes = Lanes(network, weights, states, counts, np.zeros(LANES), seed, lane, sweep)
    return _weighed(lanes, watch)


def reweighted(lanes: Lanes, weights: Weights) -> Lanes:
    """Return the same chains under other weights, the best state forgotten; states are shared."""
    return _weighed(replace(lanes, weights=weights), len(lanes.best_x) > 0)


def _weighed(lanes: Lanes, watch: bool) -> Lanes:
    """Sum the log weights anew, and let the best state be kept from now on, or not; return the lanes."""
    network, never = lanes.network, _NEVER[lanes.weights.whole]
    numbers = lanes.weights.numbers.astype(np.float64)
    total = network.sums(lanes.counts, numbers)
    lanes.total = np.rint(total).astype(np.int64) if lanes.weights.whole else total
    possible = network.broken <= network.hard[network.hard > 0].sum()  # no hard formula is false everywhere
    lanes.best_x = np.zeros(network.atoms if watch else 0, np.uint8)
    lanes.goal = float(numbers[numbers > 0].sum()) if watch and possible else 1 - 2 * never
    lanes.best = np.array([never if watch and possible else -never], lanes.total.dtype)
    return lanes


def advance(
    lanes: Lanes,
    betas: ArrayLike,
    *,
    rule: str = "heat bath",
    order: NDArray[np.int32] | None = None,
    after: Callable[[Lanes], object] | None = None,
    every: int | None = None,
) -> int:
    """Do a sweep at every β, and return how many were done.

    Parameters
    ----------
    betas
        Multiply the log weight; shape (sweeps,), or (sweeps, 64) where lanes differ.
    rule
        ``heat bath`` (Gibbs sampling of one atom, Glauber dynamics) or ``metropolis``.
    order
        The atoms in the order in which they are updated; by default all.
    after
        Called between compiled calls, which are short; when it returns False, no further sweep is begun.
    every
        Sweeps of a compiled call: by default as many as take about CALL seconds.
    """
    values = np.atleast_1d(np.asarray(betas, np.float64))
    if not np.isfinite(values * lanes.weights.unit).all():
        raise ValueError(f"expected finite β, got {values[~np.isfinite(values * lanes.weights.unit)][0]}")
    code = rule_of(rule)
    if lanes.sweep + len(values) > MAX_SWEEPS:
        raise LimitExceeded(
            f"chains take at most {MAX_SWEEPS} sweeps (limit MAX_SWEEPS): then random numbers would repeat",
            MAX_SWEEPS=MAX_SWEEPS,
        )
    table = values.ndim == 1 and lanes.weights.whole
    atoms = np.arange(lanes.network.atoms, dtype=np.int32) if order is None else np.asarray(order, np.int32)
    kind, never = lanes.total.dtype, _NEVER[lanes.weights.whole]
    nothing = np.array([-never], kind), kind.type(1 - 2 * never)  # no total is greater

    def call(done: int, size: int, pieces: int) -> int:
        some = values[done : done + size]
        if not table:
            tables, clips = np.zeros((len(some), 1), np.uint32), np.full(len(some), -1, np.int32)
        elif len(some) == 1:
            tables, clips = _table(lanes.weights.unit, lanes.weights.reach, float(some[0]), code)
        else:
            tables, clips = _tables(lanes.weights.unit, lanes.weights.reach, some, code)
        # An array of its own: kernels are compiled for arrays that may be written to, and once is enough.
        each = np.array(np.broadcast_to(some.T, (LANES, len(some))).T * lanes.weights.unit, order="C")
        # A state in the middle of a sweep depends on where it was cut: it is never the best.
        bests = [nothing] * (pieces - 1) + [(lanes.best, kind.type(lanes.goal))]
        parts = [atoms] if pieces == 1 else np.array_split(atoms, pieces)
        for piece, best in zip(parts, bests, strict=True):
            ran = _loops(lanes).sweeps(lanes, piece, each, tables, clips, code, *best)
        lanes.sweep += ran
        return int(ran)

    def go_on() -> bool:
        return bool(lanes.best[0] < lanes.goal) and (after is None or after(lanes) is not False)

    return in_calls(call, len(values), len(atoms), first=_FIRST, every=every, go_on=go_on)


def rule_of(name: str) -> int:
    """Return the number that kernels know a rule by."""
    if name not in RULES:
        raise ValueError(f"expected the rule {' or '.join(map(repr, RULES))}, got {name!r}")
    return RULES[name]


def _loops(lanes: Lanes) -> Any:
    return loops(lanes.weights.numbers.dtype, lanes.counts.dtype)


def in_calls(
    call: Callable[[int, int, int], int],
    sweeps: int,
    work: float,
    *,
    first: float,
    every: int | None,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Do some sweeps by compiled calls of about CALL seconds each, and return how many were done.

    Parameters
    ----------
    call
        (sweeps done, sweeps to do, pieces into which to cut one if it is long) -> sweeps that it did.
    work
        What a sweep takes, and ``first`` as much as the first call may: before speed is known. Calls grow.
    every
        Sweeps of each call, whatever time they take.
    go_on
        Asked after each call.
    """
    done, speed = 0, 0.0
    work = max(1.0, work)
    while done < sweeps:
        allowed = speed * CALL if speed else first
        size, pieces = every, 1
        if size is None:
            size = int(allowed / work) if not speed else min(int(allowed / work), done)
            if not size:  # a power of two, so that mostly a sweep is cut in the same way
                pieces = 1 << (max(1, math.ceil(work / max(1.0, allowed))) - 1).bit_length()
        began = time.perf_counter()
        ran = call(done, min(max(1, size), sweeps - done), pieces)
        speed = ran * work / max(time.perf_counter() - began, 1e-9)
        done += ran
        if not go_on():
            break
    return done


@lru_cache(maxsize=64)  # chains at one temperature ask for the same table after every sweep
def _table(unit: float, reach: float, beta: float, rule: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    return _tables(unit, reach, np.array([beta]), rule)


def _tables(
    unit: float, reach: float, betas: Floats, rule: int
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Return thresholds for words by odds in units, a row per sweep, and how far a row goes; -1: no row."""
    clips = np.full(len(betas), -1, np.int32)
    steps = betas * unit
    with np.errstate(divide="ignore", over="ignore"):
        wanted = np.minimum(reach, np.ceil(_CERTAIN / np.maximum(steps, 1e-300)))
    fits = wanted <= _TABLE
    clips[fits] = wanted[fits].astype(np.int32)
    widest = int(clips.max(initial=0))
    odds = np.arange(2 * widest + 1)[None, :] - np.maximum(clips, 0)[:, None]
    z = steps[:, None] * odds
    if rule == HEAT_BATH:
        p = 0.5 + 0.5 * np.tanh(0.5 * z)
    else:
        p = np.where(z == 0, 0.5, np.exp(np.minimum(z, 0.0)))
    return np.ceil(p * 2.0**BITS - 0.5).astype(np.uint32), clips


def random_states(atoms: int, seed: int, lane: int = 0) -> Bytes:
    """Return states at random, shape (atoms, 64), from a stream of their own."""
    found = np.empty((atoms, LANES), np.uint8)
    loops().scatter(found, *key_of(seed), lane, 1)
    return found


def jump(
    lanes: Lanes, members: NDArray[np.int32], starts: NDArray[np.int32], beta: float | Floats = 1.0
) -> None:
    """Offer every group of atoms, ``members[starts[k]:starts[k + 1]]``, to flip together, each once.

    The words that decide are those of the sweep that comes next, in a stream of their own.
    """
    each = np.array(np.broadcast_to(np.asarray(beta, np.float64) * lanes.weights.unit, (LANES,)))
    _loops(lanes).jumps(lanes, members, starts, each)


def fields(lanes: Lanes, order: NDArray[np.int32]) -> Floats:
    """Return the log-odds of some atoms given all the others, at β = 1, shape (atoms, 64)."""
    out = np.empty((len(order), LANES), lanes.weights.numbers.dtype)
    _loops(lanes).fields(lanes, order, out)
    return np.asarray(out.astype(np.float64) * lanes.weights.unit)
