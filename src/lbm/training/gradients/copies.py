"""Copies: free units learn what is left, once for every inner fold and once for all rows, in step.

Every copy begins at the same weights, meets the same batches in the same order, and leaves out the rows that
judge it. After an epoch each row was judged by the copy that never saw it; the epoch that judges liked
best is the one whose copy of all rows is kept. So every row is trained on and every row judges, at any
size, and nothing is fitted twice. The copies are one wide machine: a batch is one product of matrices for
all of them.

What was fitted before, rules, bias and bins, is held: it enters as scores of every row, copy by copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.errors import TrainingDiverged
from lbm.training.gradients.costs import Cost
from lbm.training.gradients.descent import SHUFFLE, TOLERANCE, Array, Copies, Plan, Progress, stream
from lbm.training.gradients.epochs import Epoch
from lbm.training.gradients.quick import FIRST, SECOND

LEARNED: Final = ("weights", "label_weights", "hidden_bias", "label_bias")
"""Parameters of a network that its free units and its label atoms have, in the order they are moved."""

JUDGED: Final = 2048
"""Rows judged at once."""

EARNED: Final = 5.0
"""By how much free units must lower the loss of all judges: the best of many epochs does by chance."""

STEEP: Final = 30.0
"""From here on log(1 + exp s) is s, to the last digit of a double."""


@dataclass(frozen=True, eq=False)
class Ways:
    """Complete rows: each row of the table, or if it misses values some ways to fill it in.

    Attributes
    ----------
    x
        Bytes 0 and 1, shape (ways, columns).
    row, share
        The row that each is a way of, ascending, and how likely it is, given what was seen of the row.
    kinds, weights
        Classes and weights of rows, shape (rows,).
    """

    x: NDArray[np.uint8]
    row: Ints
    share: Floats
    kinds: Ints
    weights: Floats

    def of(self, rows: Ints) -> Ints:
        """Return the numbers of the ways of these rows."""
        if len(self.row) == len(self.kinds):
            return rows
        first, after = np.searchsorted(self.row, rows), np.searchsorted(self.row, rows, side="right")
        counts = after - first
        ends = np.cumsum(counts)
        found: Ints = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts - first, counts)
        return found


@dataclass(frozen=True, eq=False)
class Held:
    """What copies are trained beside.

    ``offsets`` are scores of classes, shape (ways, copies, classes); ``inside`` says which rows each copy is
    trained on, shape (rows, copies): the last copy on all, if it stands for the machine; ``before`` is the
    mean loss of the judged rows by the offsets alone, and the share that is right; None: nobody judges.
    """

    ways: Ways
    offsets: Floats
    inside: Bools
    before: tuple[float, float] | None


def earned(progress: Progress, held: Held) -> bool:
    """Return whether free units earned their place by the rows that judged them, or none did."""
    if held.before is None:
        return True
    judges = float(held.ways.weights[~held.inside.all(axis=1)].sum())
    return progress.best_cost < held.before[0] - EARNED / judges


def begin_copies(parameters: Mapping[str, Array], copies: int) -> Copies:
    """Return so many copies of a network's free parameters, whose label biases begin at 0."""
    values = {name: np.repeat(parameters[name][..., None, :], copies, axis=-2) for name in LEARNED}
    values["label_bias"] = np.zeros_like(values["label_bias"])
    return Copies(
        values,
        {name: np.zeros_like(value) for name, value in values.items()},
        {name: np.zeros_like(value) for name, value in values.items()},
    )


def copy_steps(
    progress: Progress, held: Held, patterns: Floats, cost: Cost, plan: Plan
) -> Iterator[Progress]:
    """Descend, yielding ``progress`` after every batch, as :func:`lbm.training.gradients.descent.steps` does.

    ``progress.copies`` holds the copies. ``progress.best`` gets the free parameters of the last copy at its
    best epoch; it stays None where no epoch is better than none.
    """
    copies = progress.copies
    assert copies is not None
    clock = monotonic() - progress.seconds
    limit = float("inf") if plan.max_seconds is None else plan.max_seconds
    rows = np.flatnonzero(held.inside.any(axis=1))
    if not progress.epoch and not progress.position and held.before is not None:
        progress.best_cost = held.before[0]
    kind = copies.values["weights"].dtype
    labels = patterns.astype(kind)
    while progress.finished is None:
        if progress.epoch >= plan.max_epochs or not copies.values["weights"].shape[-1]:
            progress.finished = "epochs"
            return
        order = rows[stream(plan.seed, SHUFFLE, progress.epoch).permutation(len(rows))]
        while progress.position < len(order):
            part = order[progress.position : progress.position + plan.batch_size]
            value, slopes = copy_slopes(copies.values, held, part, labels, cost)
            if not np.isfinite(value):
                raise TrainingDiverged(progress.epoch + 1, value)
            progress.updates += 1
            _adam(copies, slopes, plan.learning_rate, progress.updates)
            progress.total += value * len(part)
            progress.position += len(part)
            progress.seconds = monotonic() - clock
            if progress.position < len(order):
                yield progress
                if progress.seconds > limit:
                    progress.finished = "seconds"
                    return
        _end_epoch(progress, held, labels, plan, len(order))
        progress.seconds = monotonic() - clock
        if progress.seconds > limit:
            progress.finished = progress.finished or "seconds"
        yield progress


@np.errstate(over="ignore", invalid="ignore")  # a cost that is no number is noticed, once
def copy_slopes(
    own: Mapping[str, Array], held: Held, rows: Ints, patterns: Array, cost: Cost
) -> tuple[float, dict[str, Array]]:
    """Return the mean cost of a batch over the copies, and slopes by the name of the parameter.

    Each copy's cost is that of :class:`lbm.training.gradients.costs.Cost` without knowledge: a sum over
    its own rows of the batch, over their number, and its share of the penalties.
    """
    kind, ways = own["weights"].dtype, held.ways
    places = ways.of(rows)
    who = ways.row[places]
    inside = held.inside[who].astype(kind)
    x = ways.x[places].astype(kind)
    scores, on = _scores(own, x, held.offsets[places].astype(kind), patterns)
    # Each copy has the mean over its own rows.
    number = np.maximum(held.inside[rows].sum(axis=0), 1).astype(kind)
    scale = (ways.weights[who] * ways.share[places]).astype(kind)[:, None] * inside / number
    value, odds = _surprise(scores, ways.kinds[who], scale)
    on *= odds[..., None]
    pulled = on.sum(axis=2)  # (ways, copies, hidden)
    columns, copies, hidden = own["weights"].shape
    found: dict[str, Array] = {
        "weights": (x.T @ pulled.reshape(len(x), copies * hidden)).reshape(columns, copies, hidden),
        "label_weights": np.tensordot(patterns.T, on.sum(axis=0), axes=(1, 1)),
        "hidden_bias": pulled.sum(axis=0),
        "label_bias": odds.sum(axis=0) @ patterns,
    }
    total = held.inside.sum(axis=0).astype(kind)[:, None]
    for name in ("weights", "label_weights"):
        if cost.l1:
            found[name] += cost.l1 / total * np.sign(own[name])
        if cost.l2:
            found[name] += cost.l2 / total * own[name]
    return value / copies, found


@np.errstate(over="ignore", invalid="ignore")
def judge_copies(own: Mapping[str, Array] | None, held: Held, patterns: Array) -> tuple[float, float]:
    """Return the mean of -log p(k | x) over rows, by copies that never saw them, and the share right.

    Without parameters what is held is judged.
    """
    ways = held.ways
    total = right = weight = 0.0
    for copy in np.flatnonzero(~held.inside.all(axis=0)).tolist():
        mine = (
            None if own is None else {name: values[..., copy : copy + 1, :] for name, values in own.items()}
        )
        judged = np.flatnonzero(~held.inside[:, copy])
        for part in slices(len(judged), JUDGED):
            rows = judged[part]
            p = _chances(mine, held, rows, copy, patterns)
            weights = ways.weights[rows]
            total -= float(weights @ np.log(np.maximum(p[np.arange(len(rows)), ways.kinds[rows]], 1e-30)))
            right += float(weights @ (p.argmax(axis=1) == ways.kinds[rows]))
            weight += float(weights.sum())
    return total / weight, right / weight


def _chances(own: Mapping[str, Array] | None, held: Held, rows: Ints, copy: int, patterns: Array) -> Floats:
    """Return p(k | x_seen) of rows, shape (rows, classes), by one copy."""
    ways = held.ways
    places = ways.of(rows)
    scores: Array = held.offsets[places, copy : copy + 1]
    if own is not None:
        kind = own["weights"].dtype
        scores = _scores(own, ways.x[places].astype(kind), scores.astype(kind), patterns)[0]
    logs: Floats = scores[:, 0].astype(np.float64)
    logs -= logs.max(axis=1, keepdims=True)
    p: Floats = np.exp(logs)
    p *= (ways.share[places] / p.sum(axis=1))[:, None]
    if len(places) > len(rows):
        p = np.add.reduceat(p, np.flatnonzero(np.diff(ways.row[places], prepend=-1)), axis=0)
    return p


def _scores(own: Mapping[str, Array], x: Array, offsets: Array, patterns: Array) -> tuple[Array, Array]:
    """Return the scores of classes, shape (ways, copies, classes), and σ of every input, with units last."""
    columns, copies, hidden = own["weights"].shape
    inputs = (x @ own["weights"].reshape(columns, copies * hidden)).reshape(len(x), copies, hidden) + own[
        "hidden_bias"
    ]
    added = np.tensordot(patterns, own["label_weights"], axes=(1, 0)).swapaxes(
        0, 1
    )  # (copies, classes, hidden)
    every = inputs[:, :, None, :] + added
    far = every - STEEP if float(every.max(initial=0.0)) > STEEP else None
    on = np.exp(np.minimum(every, STEEP, out=every), out=every)
    total = on + 1
    on /= total
    np.log(total, out=total)
    if far is not None:
        total += np.maximum(far, 0, out=far)
    return offsets + total.sum(axis=3) + own["label_bias"] @ patterns.T, on


def _surprise(scores: Array, kinds: Ints, scale: Array) -> tuple[float, Array]:
    """Return Σ scale_ic (-log p_c(k_i | x_i)) and its slope by the scores."""
    scores = scores - scores.max(axis=2, keepdims=True)
    odds, at = np.exp(scores), np.arange(len(scores))
    sums = odds.sum(axis=2)
    value = float((scale * (np.log(sums) - scores[at, :, kinds])).sum())
    odds /= sums[:, :, None]
    odds[at, :, kinds] -= 1
    odds *= scale[:, :, None]
    return value, odds


@np.errstate(over="ignore", invalid="ignore")
def _adam(copies: Copies, slopes: Mapping[str, Array], rate: float, number: int) -> None:
    for name in LEARNED:
        first, second, slope = copies.first[name], copies.second[name], slopes[name]
        first += (1 - FIRST) * (slope - first)
        second *= SECOND
        second += (1 - SECOND) * slope * slope
        spread = np.sqrt(second)
        spread /= (1 - SECOND**number) ** 0.5
        spread += 1e-8
        copies.values[name] -= rate / (1 - FIRST**number) * (first / spread)


def _end_epoch(progress: Progress, held: Held, patterns: Array, plan: Plan, rows: int) -> None:
    copies = progress.copies
    assert copies is not None
    mean = progress.total / max(rows, 1)
    judged, right = (None, None) if held.before is None else judge_copies(copies.values, held, patterns)
    progress.epoch += 1
    progress.position, progress.total = 0, 0.0
    progress.history.append(Epoch(progress.epoch, mean, judged, right, progress.seconds))
    value = mean if judged is None else judged
    progress.stale += 1
    if value < progress.best_cost - TOLERANCE:
        progress.stale = 0
        progress.best_cost = value
        progress.best = {name: torch.from_numpy(copies.values[name][..., -1, :].copy()) for name in LEARNED}
    if progress.stale >= plan.patience:
        progress.finished = "patience"
