"""Learning in turns: first rules and bias, then a weight for every bin of every column, then free units.

Each turn is fitted beside what the turns before it found, which is held. So a rule has the weight that rows
give it, and not what free units, which learn the same thing faster, leave of it. The first two turns are
convex; what comes after is kept as far as rows of inner folds speak for it, at any number of rows, and every
row is trained on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.training.boltzmann.cubes import Cube, cubes_of
from lbm.training.boltzmann.knowledge import Knowledge, atom_of, label_patterns
from lbm.training.boltzmann.likely import Likely, every_state, learn_likely
from lbm.training.boltzmann.network import Network
from lbm.training.data.rows import count_values
from lbm.training.gradients.convex import (
    USUAL,
    Additive,
    Bins,
    bins_of,
    choose_ridge,
    fit_additive,
    fit_rules,
)
from lbm.training.gradients.copies import EARNED, Held, Ways, judge_copies
from lbm.training.gradients.descent import Data, stream
from lbm.training.learners.estimator import Firing

FOLDS: Final = 5
"""Inner folds of few rows."""

FEWER_FOLDS: Final = 2000
"""Rows from which on there are three."""

ONE_FOLD: Final = 10_000
"""Rows from which on a share of them judges, and is not trained on."""

MAX_JUDGES: Final = 10_000
"""Rows that judge then, at most."""

LEAST_ROWS: Final = 10
"""Rows below which nobody judges."""

WAYS: Final = 4
"""Ways to fill in a row that misses values, in training."""

CHOOSING: Final = 4096
"""Rows that choose the penalty of bins."""

CELLS: Final = 1 << 24
"""Entries of (rows x columns) that bins are fitted to, and of (rows x rules x classes) that rules are."""

ROWS: Final = 4096
"""Rows looked at together."""

MAX_CUBES: Final = 8192
"""Cubes of bins: past it columns are left to the free units."""

FOLD, FILL, SOME = 10, 11, 12
"""What random numbers are for, beside those of descent, of chains and of conjectures."""


@dataclass(frozen=True, eq=False)
class Turns:
    """What the convex turns found, and what free units are trained beside.

    ``confidences`` are the weights of the rules, ``bias`` the biases of the label atoms, with those of bins.
    """

    confidences: Floats
    bias: Floats
    cubes: tuple[Cube, ...]
    firings: tuple[Firing, ...]
    held: Held


def take_turns(
    network: Network,
    data: Data,
    rows: Ints,
    likely: Likely,
    *,
    trust: float,
    bins: bool,
    spans: Floats,
    fraction: float,
    seed: int,
) -> Turns:
    """Return what rules, bias and bins come to on these rows of the data; the network stays as it is.

    ``spans`` are those of the layout's thresholds; ``fraction`` is the share of rows that judge where they
    are many; 0: nobody judges, whatever their number.
    """
    knowledge = network.knowledge
    patterns = label_patterns(len(knowledge.labels)).astype(np.float64)
    ways = fill_ways(data, rows, likely, seed)
    inside = fold_rows(ways.kinds, fraction, seed)
    judged = bool((~inside).any())
    zeros, ones = count_values(data.rows)
    said = Said(knowledge, patterns, np.asarray(zeros + ones == 0))
    begin = knowledge.initial
    bias = network.label_bias.detach().cpu().numpy().astype(np.float64)
    copies, classes = inside.shape[1], len(patterns)
    some = _some(len(ways.row), CELLS // max(1, len(begin) * classes), stream(seed, SOME))
    gains = said.of(ways.x[some])
    kinds, weights = ways.kinds[ways.row], ways.weights[ways.row] * ways.share
    found: list[tuple[Floats, Floats]] = []
    for copy in range(copies):
        mine = inside[ways.row[some], copy]
        found.append(
            fit_rules(
                gains[mine], kinds[some][mine], weights[some][mine],
                patterns=patterns, begin=begin, fixed=knowledge.fixed, bias=bias, trust=trust,
            )
        )  # fmt: skip
    kappa, d = (np.array([pair[i] for pair in found]) for i in (0, 1))
    offsets = np.empty((len(ways.row), copies, classes))
    for part in slices(len(offsets), ROWS):
        offsets[part] = np.einsum("irk,cr->ick", said.of(ways.x[part]), kappa) + d @ patterns.T
    held = Held(ways, offsets, inside, None)
    before = judge_copies(None, held, patterns) if judged else None
    confidences, bias = kappa[-1], d[-1]
    cubes: list[Cube] = []
    nameable = np.array([atom_of(name) is not None for name in knowledge.columns], dtype=bool)
    if bins and nameable.any():
        more = _add_bins(network, ways, inside, offsets, patterns, nameable, spans, seed)
        if more is not None:
            wider, added, binned = more
            after = judge_copies(None, replace(held, offsets=wider), patterns) if judged else None
            if before is None or after is None or after[0] < before[0] + EARNED / ways.weights.sum():
                held, before = replace(held, offsets=wider), after
                size = len(knowledge.columns)
                cubes, rest = cubes_of(binned.of_columns(added), binned.mean, network.together, size)
                bias = bias + added.bias + rest
    return Turns(confidences, bias, tuple(cubes), said.firings(ways), replace(held, before=before))


# --- what formulae say ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Said:
    """The formulae of knowledge as functions of rows and classes, one cube after another."""

    knowledge: Knowledge
    patterns: Floats
    unseen: Bools | None = None
    """Columns that no row has a value of: formulae about them are not judged, and say nothing here."""

    def blind(self) -> Bools:
        """Return which formulae mention a column that no row has a value of, shape (formulae,)."""
        known, found = self.knowledge, np.zeros(len(self.knowledge.initial), dtype=bool)
        if self.unseen is not None and self.unseen.any() and known.units:
            signs = known.signs.tocoo()
            mentioned = np.zeros(known.units, dtype=bool)
            mentioned[signs.col[np.append(self.unseen, np.zeros(len(known.labels), bool))[signs.row]]] = True
            np.logical_or.at(found, known.owner, mentioned[known.unit])
        return found

    def of(self, x: NDArray[Any]) -> Floats:
        """Return f_r(x, k), shape (rows, formulae, classes), for complete rows."""
        known = self.knowledge
        size, columns = len(known.initial), len(known.columns)
        out = np.zeros((len(x), size, len(self.patterns)))
        if not known.units:
            return out
        signs = csc_array(known.signs, dtype=np.float64).tocsr()
        counts = np.asarray((signs[:columns].T @ x.T.astype(np.float64)).T) - known.positive
        heads = self.patterns @ signs[columns:].toarray()
        owns = csc_array(
            (np.ones(len(known.unit)), (known.unit, known.owner)), shape=(known.units, size)
        ).tocsr()
        for kind, head in enumerate(heads):
            out[:, :, kind] = np.asarray((owns.T @ (counts + head > -0.5).T.astype(np.float64)).T)
        out[:, self.blind()] = 0.0
        return out

    def firings(self, ways: Ways) -> tuple[Firing, ...]:
        """Return what rows say of each formula."""
        size = len(self.knowledge.initial)
        base = np.bincount(ways.kinds, ways.weights, minlength=len(self.patterns))
        base = base / base.sum()
        rows, weight, right, expected = np.zeros((4, size))
        for part in slices(len(ways.row), ROWS):
            said, who = self.of(ways.x[part]), ways.row[part]
            fires = np.ptp(said, axis=2) > 0
            mine = (ways.weights[who] * ways.share[part])[:, None] * fires
            at = np.take_along_axis(said, ways.kinds[who][:, None, None], axis=2)[:, :, 0]
            rows += ways.share[part] @ fires
            weight += mine.sum(axis=0)
            right += (mine * at).sum(axis=0)
            expected += (mine * (said @ base)).sum(axis=0)
        found = []
        for count, total, good, chance in zip(rows, weight, right, expected, strict=True):
            share = float(good / total) if total > 0 else None
            lift = float(good / chance) if chance > 0 else None
            found.append(Firing(round(float(count)), share, lift))
        return tuple(found)


# --- bins ----------------------------------------------------------------------------------------


def _add_bins(
    network: Network,
    ways: Ways,
    inside: Bools,
    offsets: Floats,
    patterns: Floats,
    nameable: Bools,
    spans: Floats,
    seed: int,
) -> tuple[Floats, Additive, Bins] | None:
    """Return offsets with what bins add, the weights of the last copy, and how columns enter them."""
    columns, labels = ways.x.shape[1], patterns.shape[1]
    if columns * labels > MAX_CUBES:
        return None
    random = stream(seed, SOME, 1)
    some = _some(len(ways.row), CELLS // columns, random)
    kinds, weights = ways.kinds[ways.row], ways.weights[ways.row] * ways.share
    x = ways.x[some].astype(np.float64)
    binned = bins_of(x, weights[some], network.together, spans, nameable)
    design = binned.design(x)
    ridge = USUAL
    judges: Bools = np.asarray(~inside.all(axis=1))
    if judges.any():
        few = _some(len(some), CHOOSING, random)
        if not judges[ways.row[some[few]]].all():  # where a share judges, some of both are needed
            others = np.flatnonzero(judges[ways.row[some]])
            few = np.unique(np.concatenate([few, others[:CHOOSING]]))
        at = some[few]
        folds = np.flatnonzero((~inside).any(axis=0))
        ridge = choose_ridge(
            binned, design[few], kinds[at], weights[at], offsets[at][:, folds], inside[ways.row[at]][:,
            folds], patterns=patterns,
        )[0]  # fmt: skip
    fitted: list[Additive] = []
    for copy in reversed(range(inside.shape[1])):
        mine = inside[ways.row[some], copy]
        begin = fitted[-1] if fitted else None
        fitted.append(
            fit_additive(
                design[mine], kinds[some][mine], weights[some][mine], offsets[some][mine, copy],
                patterns=patterns, penalties=binned.penalties(ridge), begin=begin,
            )
        )  # fmt: skip
    fitted.reverse()
    out = offsets.copy()
    for part in slices(len(out), ROWS):
        rows = design[part] if len(some) == len(out) else binned.design(ways.x[part])
        for copy, one in enumerate(fitted):
            out[part, copy] += one.scores(rows, patterns)
    last = fitted[-1]
    return out, last, binned


# --- rows ----------------------------------------------------------------------------------------


def fold_rows(kinds: Ints, fraction: float, seed: int) -> Bools:
    """Return which rows each copy is trained on, shape (rows, copies), stratified by class.

    The last copy is the machine's: where rows are few it is trained on all of them, and the others on all but
    one fold each; where they are many, there is no other, and the rows it leaves out judge it.
    """
    size = len(kinds)
    if not fraction or size < LEAST_ROWS:
        return np.ones((size, 1), dtype=bool)
    random = stream(seed, FOLD)
    order = random.permutation(size)
    order = order[np.argsort(kinds[order], kind="stable")]  # by class, and by chance within
    if size >= ONE_FOLD:
        aside = max(1, min(round(fraction * size), MAX_JUDGES))
        inside = np.ones((size, 1), dtype=bool)
        inside[order[np.linspace(0, size - 1, aside).astype(np.int64)]] = False
        return inside
    folds = FOLDS if size < FEWER_FOLDS else 3
    fold = np.empty(size, dtype=np.int64)
    fold[order] = np.arange(size) % folds
    return np.column_stack([fold[:, None] != np.arange(folds), np.ones(size, dtype=bool)])


def fill_ways(data: Data, rows: Ints, likely: Likely, seed: int) -> Ways:
    """Return rows with their missing values filled in: all ways where they are few, else WAYS of them."""
    width = data.rows.values.shape[1]
    kinds, weights = data.kinds[rows], data.weights[rows]
    numbers, parts, shares = [], [], []
    for part in slices(len(rows), ROWS):
        x = data.rows.batch(rows[part]).cpu().numpy().astype(np.float64)
        gone = np.isnan(x).any(axis=1) if data.gaps else np.zeros(len(x), dtype=bool)
        whole = np.flatnonzero(~gone)
        numbers.append(whole + part.start)
        parts.append((x[whole] > 0.5).astype(np.uint8))
        shares.append(np.ones(len(whole)))
        holes = np.flatnonzero(gone)
        for which, filled, share in _fills(likely, x[holes], stream(seed, FILL, part.start)):
            numbers.append(holes[which] + part.start)
            parts.append((filled > 0.5).astype(np.uint8))
            shares.append(share)
    number = np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.int64)
    order = np.argsort(number, kind="stable")
    x_all = np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.uint8)
    return Ways(x_all[order], number[order], np.concatenate(shares)[order], kinds, weights)


def _fills(likely: Likely, x: Floats, random: np.random.Generator) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield rows that miss values by their numbers, filled in, and how likely each way is."""
    if not len(x):
        return
    states = likely.states(x)
    every = np.ones(len(likely.facts), dtype=bool)
    for rows, missing in likely.patterns(states < 0):
        facts = likely.needed(missing, every)
        seen = states[rows]
        sizes = [len(likely.facts[fact][1]) for fact in facts]
        if prod(sizes) <= WAYS:
            ways = every_state(sizes)
            share = np.exp(likely.log_shares(seen, facts, ways))
            drawn = np.broadcast_to(ways, (len(rows), *ways.shape))
        else:
            uniform = random.random((len(rows), WAYS, len(facts)))
            # One draw from each quarter, so that four of them are as good as many.
            quarter = np.argsort(random.random((len(rows), WAYS, len(facts))), axis=1)
            drawn = likely.draw(seen, facts, (quarter + uniform) / WAYS)
            share = np.full(drawn.shape[:2], 1 / WAYS)
        filled = likely.fill(x[rows][:, None, :], facts, drawn)
        yield np.repeat(rows, drawn.shape[1]), filled.reshape(-1, x.shape[1]), share.ravel()


def learn_rows(network: Network, data: Data) -> Likely:
    """Return how likely rows are: the tree that the rows of the data speak for."""
    states = sum(len(np.asarray(patterns)) for _, patterns in network.together) + 2 * len(network.weights)
    some = _some(len(data.rows), max(64, CELLS // max(states, 1)), None)
    x = data.rows.batch(some).cpu().numpy().astype(np.float64)
    return learn_likely(x, data.weights[some], network.together)


def _some(size: int, most: int, random: np.random.Generator | None) -> Ints:
    """Return the numbers of all of so many, or of as many as may be: drawn, or spread evenly."""
    most = max(most, 1)
    if size <= most:
        return np.arange(size, dtype=np.int64)
    if random is None:
        return np.linspace(0, size - 1, most).astype(np.int64)
    return np.sort(random.choice(size, most, replace=False)).astype(np.int64)
