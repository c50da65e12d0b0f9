"""Missing values in NumPy: what :mod:`lbm.training.boltzmann.missing` is in torch, for predictions.

    p(k | x_seen) = Σ_{x_missing} q(x_missing | x_seen) p(k | x)

Where rows said how likely completions are, q is :mod:`lbm.training.boltzmann.likely`; else it is the
machine's own,

    -F(x_seen, k) = log Σ_{x_missing} exp(-F(x, k)),    p(k | x_seen) = softmax_k(-F(x_seen, k))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.training.boltzmann.facts import Fact, every_way, facts_of
from lbm.training.boltzmann.likely import Likely, every_state
from lbm.training.boltzmann.parameters import CHUNK, Parameters, softmax

MAX_SUMMED: Final = 12
"""Missing atoms of a row, of those that touch hidden units, up to which their worlds are summed exactly."""

BURN: Final = 50
"""Sweeps of a prediction's chain before its first draw."""

DRAWS: Final = 200
"""Draws that a sampled prediction averages."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Rows that miss the same columns: their numbers, the columns that are summed, and those that are apart.

    Columns that touch no hidden unit stand apart: log(1 + exp b_i) each, the same for every class. ``parts``
    are the facts that are missing: places within ``summed``, and their patterns.
    """

    rows: Ints
    summed: Ints
    apart: Ints
    parts: tuple[Fact, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the ways to fill a row in are few enough to be summed."""
        return prod(len(patterns) for _, patterns in self.parts) <= 1 << MAX_SUMMED


def find_gaps(parameters: Parameters, x: Floats) -> Iterator[Gaps]:
    """Yield what rows miss; complete rows first, if there are any."""
    missing = np.isnan(x)
    if not missing.any():
        if len(x):
            yield Gaps(np.arange(len(x)), np.arange(0), np.arange(0))
        return
    touching = np.full(x.shape[1], parameters.hidden > 0)
    touching[parameters.used] = True
    for together, _ in parameters.together:  # they are filled in together, or not at all: whole groups touch
        touching[together] = touching[together].any()
    packed = np.packbits(missing, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    for number, gone in enumerate(missing[first]):
        summed = np.flatnonzero(gone & touching)
        parts = facts_of(summed.tolist(), parameters.together)
        places = tuple((np.searchsorted(summed, columns), patterns) for columns, patterns in parts)
        yield Gaps(np.flatnonzero(which.ravel() == number), summed, np.flatnonzero(gone & ~touching), places)


def exact_rows(parameters: Parameters, x: Floats) -> Bools:
    """Return which rows are summed exactly, shape (rows,): others miss too many values, and are sampled."""
    exact = np.ones(len(x), dtype=bool)
    if parameters.likely is not None:
        for rows, facts, _ in _incomplete(parameters, parameters.likely, x):
            exact[rows] = _ways(parameters.likely, facts) <= 1 << MAX_SUMMED
        return exact
    for gaps in find_gaps(parameters, x):
        exact[gaps.rows] = gaps.exact
    return exact


def log_probabilities(parameters: Parameters, x: Floats, *, seed: int = 0) -> Floats:
    """Return log p(k | x_seen), shape (rows, classes).

    A row that is not exact is sampled, with random numbers that depend on ``seed`` and on the row alone.
    """
    if parameters.likely is not None:
        return _weighed(parameters, parameters.likely, x, seed)
    out = np.zeros((len(x), parameters.classes))
    for gaps in find_gaps(parameters, x):
        if not len(gaps.summed) + len(gaps.apart):
            out[gaps.rows] = parameters.scores(x[gaps.rows])
        elif gaps.exact:
            out[gaps.rows] = _summed(parameters, x[gaps.rows], gaps)
        else:
            step = max(1, 4 * CHUNK // ((BURN + DRAWS) * (parameters.units + x.shape[1] + 1)))
            for part in slices(len(gaps.rows), step):
                out[gaps.rows[part]] = _sampled(parameters, x[gaps.rows[part]], seed)
    return np.asarray(out - np.logaddexp.reduce(out, axis=1, keepdims=True))


# --- by how likely rows are ------------------------------------------------------------------------


def _weighed(parameters: Parameters, likely: Likely, x: Floats, seed: int) -> Floats:
    """Return log p(k | x_seen), shape (rows, classes), with completions weighed by ``likely``."""
    out = np.zeros((len(x), parameters.classes))
    whole = np.flatnonzero(~np.isnan(x).any(axis=1))
    out[whole] = parameters.scores(x[whole])
    for numbers, facts, states in _incomplete(parameters, likely, x):
        mine = np.nan_to_num(x[numbers])
        exact = _ways(likely, facts) <= 1 << MAX_SUMMED
        ways = every_state([len(likely.facts[fact][1]) for fact in facts]) if exact else None
        many = DRAWS if ways is None else len(ways)
        step = max(1, 4 * CHUNK // max(1, many * (parameters.units + x.shape[1])))
        for part in slices(len(numbers), step):
            if ways is None:
                noise = _row_noise(x[numbers[part]], (DRAWS, len(facts)), seed)
                drawn = likely.draw(states[part], facts, noise)
                shares = np.full(drawn.shape[:2], -np.log(DRAWS))
                filled = likely.fill(mine[part][:, None, :], facts, drawn)
                scores = parameters.scores(filled.reshape(-1, x.shape[1]))
            else:
                shares = likely.log_shares(states[part], facts, ways)
                scores = _filled_scores(parameters, likely, mine[part], facts, ways)
            logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
            logs = logs.reshape(len(shares), many, -1) + shares[:, :, None]
            out[numbers[part]] = np.logaddexp.reduce(logs, axis=1)
    return np.asarray(out - np.logaddexp.reduce(out, axis=1, keepdims=True))


def _incomplete(parameters: Parameters, likely: Likely, x: Floats) -> Iterator[tuple[Ints, list[int], Ints]]:
    """Yield rows that miss the same facts, those facts that matter, and the states of the rows."""
    gone = np.flatnonzero(np.isnan(x).any(axis=1))
    if not len(gone):
        return
    touching = np.full(x.shape[1], parameters.hidden > 0)
    touching[parameters.used] = True
    touched = np.array([touching[columns].any() for columns, _ in likely.facts])
    states = likely.states(x[gone])
    for rows, missing in likely.patterns(states < 0):
        yield gone[rows], likely.needed(missing, touched), states[rows]


def _ways(likely: Likely, facts: Sequence[int]) -> int:
    return prod(len(likely.facts[fact][1]) for fact in facts)


def _filled_scores(
    parameters: Parameters, likely: Likely, x: Floats, facts: Sequence[int], ways: Ints
) -> Floats:
    """Return scores of rows with 0 where they miss values, in every way: shape (rows x ways, classes)."""
    columns = np.concatenate([likely.facts[fact][0] for fact in facts]) if facts else np.zeros(0, np.int64)
    worlds = likely.fill(np.zeros(x.shape[1]), facts, ways)[:, columns]
    # Inputs are linear in x: what each missing column adds is learned from as many rows as there are columns.
    probe = np.zeros((len(columns) + 1, x.shape[1]))
    probe[np.arange(len(columns)), columns] = 1.0
    reached = parameters.inputs(probe)
    every = parameters.inputs(x)[:, None, :] + worlds @ (reached[:-1] - reached[-1])
    return parameters.scores_of_inputs(every.reshape(-1, every.shape[2]))


# --- by the machine's own p(x) ----------------------------------------------------------------------


def _summed(parameters: Parameters, x: Floats, gaps: Gaps) -> Floats:
    """Return -F(x_seen, k) of rows that miss the same, exactly; less what is the same for every class."""
    columns = gaps.summed
    worlds = every_way(np.zeros(len(columns)), gaps.parts)
    # Inputs are linear in x: what each missing column adds is learned from as many rows as there are columns.
    probe = np.zeros((len(columns) + 1, x.shape[1]))
    probe[np.arange(len(columns)), columns] = 1.0
    reached = parameters.inputs(probe)
    added = worlds @ (reached[:-1] - reached[-1])
    worth = worlds @ parameters.visible_bias[columns]
    inputs = parameters.inputs(np.nan_to_num(x, nan=0.0))
    found = np.empty((len(x), parameters.classes))
    step = max(1, CHUNK // max(1, len(worlds) * parameters.units))
    for part in slices(len(x), step):
        every = inputs[part, None, :] + added
        rows, ways, units = every.shape
        scores = parameters.scores_of_inputs(every.reshape(rows * ways, units))
        scores = scores.reshape(rows, ways, parameters.classes)
        found[part] = np.logaddexp.reduce(scores + worth[:, None], axis=1)
    return found


def _sampled(parameters: Parameters, x: Floats, seed: int) -> Floats:
    """Return the log of the mean of p(k | x_seen, x_missing) over draws of x_missing given x_seen."""
    missing, width = np.isnan(x), x.shape[1]
    noise = _row_noise(x, (BURN + DRAWS + 1, parameters.units + width + 1), seed)
    guess = noise[:, 0, :width] < 1 / (1 + np.exp(-parameters.visible_bias))
    filled = np.where(missing, guess, x)
    kinds = parameters.scores(filled).argmax(axis=1)
    mean = np.zeros((len(x), parameters.classes))
    for number in range(1, BURN + DRAWS + 1):
        filled, kinds = _sweep(parameters, filled, kinds, noise[:, number], missing)
        if number > BURN:
            mean += softmax(parameters.scores(filled))
    return np.asarray(np.log(mean / DRAWS))


def _sweep(
    parameters: Parameters, x: Floats, kinds: Ints, noise: Floats, missing: Bools
) -> tuple[Floats, Ints]:
    """Return rows and classes after h ~ p(h | x, k) and (x, k) ~ p(x, k | h), where values are missing."""
    known, units = parameters.knowledge.units, parameters.units
    order = np.concatenate([parameters.place, np.arange(known, units)])  # as a network numbers its units
    with np.errstate(over="ignore"):
        on = 1 / (1 + np.exp(-parameters.hidden_inputs(x, kinds)))
        columns, classes = parameters.visible_inputs((noise[:, order] < on).astype(np.float64))
        uniform = noise[:, units:-1]
        found = (uniform < 1 / (1 + np.exp(-columns))).astype(np.float64)
    for together, patterns in parameters.together:
        ways = np.asarray(patterns, dtype=np.float64)
        chosen = _pick(columns[:, together] @ ways.T, uniform[:, together[0]])
        whole = missing[:, together].all(axis=1, keepdims=True)
        found[:, together] = np.where(whole, ways[chosen], found[:, together])
    return np.where(missing, found, x), _pick(classes, noise[:, -1])


def _pick(logits: Floats, uniform: Floats) -> Ints:
    """Return a choice per row with probabilities softmax(logits), where ``uniform`` falls in their sums."""
    sums = softmax(logits).cumsum(axis=1)
    return np.asarray((uniform[:, None] > sums[:, :-1]).sum(axis=1))


def _row_noise(x: Floats, shape: tuple[int, int], seed: int) -> Floats:
    """Return uniform numbers of this shape for every row, the same whatever rows stand beside it."""
    drawn = np.empty((len(x), *shape), dtype=np.float32)
    for number, row in enumerate(x.astype(np.float32)):
        digest = blake2b(row.tobytes(), digest_size=16, key=int(seed).to_bytes(8, "little")).digest()
        key = np.frombuffer(digest, dtype=np.uint64)
        drawn[number] = np.random.Generator(np.random.Philox(key=key)).random(shape, dtype=np.float32)
    return drawn.astype(np.float64)
