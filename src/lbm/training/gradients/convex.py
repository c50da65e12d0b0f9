"""What can be fitted exactly: rules and bias, then a weight for every bin of every column.

    -log p(k | x) with scores  Σ_r κ_r f_r(x, k) + d·L_k + Σ_b V_bk [x in bin b],    κ_r ≥ 0

The first is a non-negative logistic regression on what rules say, f_r(x, k) = 1 where rule r holds in (x, k);
the second a ridge regression with what came before held as it is. Both are convex: one answer, whatever the
seed. Neighbouring thresholds share what they say, since the ridge is on the steps between bins and not on
bins: a column of numbers becomes a step function that is as smooth as the rows allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lbm.arrays import Bools, Floats, Ints
from lbm.training.boltzmann.facts import Groups

WEAK: Final = 0.01
"""The ridge that decides between weights which rows cannot tell apart: the smallest of them are taken."""

RIDGES: Final = tuple(10.0 ** (2.5 - step / 2) for step in range(10))
"""Penalties of bins that inner folds choose from, the largest first: 316 to 0.01."""

USUAL: Final = 1.0
"""The penalty without inner folds, and the one that few rows lean to."""

LEANING: Final = 3.0
"""What a penalty ten times another one costs beside the loss of all rows: nothing where rows are many."""


# --- rules and bias ------------------------------------------------------------------------------


def fit_rules(
    gains: Floats,
    kinds: Ints,
    weights: Floats,
    *,
    patterns: Floats,
    begin: Floats,
    fixed: Bools,
    bias: Floats,
    trust: float,
) -> tuple[Floats, Floats]:
    """Return the weight of every rule and the biases of the label atoms that rows are likeliest with.

    Parameters
    ----------
    gains
        f_r(x, k), shape (rows, rules, classes).
    kinds, weights
        Classes and weights of rows, shape (rows,).
    patterns
        Label atoms by class, shape (classes, labels).
    begin, fixed
        What rules weigh, and which of them stay so. One that says the same of every class in every row stays,
        too: nothing speaks for another weight.
    bias
        What the label atoms begin with.
    trust
        The penalty τ/2 Σ max(0, κ/κ⁰ - 1)² on weights that outgrow where they began.
    """
    rows, rules, classes = gains.shape
    speaking = np.ptp(gains, axis=2).max(axis=0, initial=0.0) > 0 if rows else np.zeros(rules, dtype=bool)
    free = np.flatnonzero(speaking & ~fixed)
    held = np.einsum("irk,r->ik", gains[:, ~speaking | fixed], begin[~speaking | fixed])
    said = np.ascontiguousarray(gains[:, free].transpose(0, 2, 1)).reshape(rows * classes, len(free))
    at = np.arange(rows)

    def cost(values: Floats) -> tuple[float, Floats]:
        kappa, d = values[: len(free)], values[len(free) :]
        scores = held + (said @ kappa).reshape(rows, classes) + patterns @ d
        value, odds = surprise(scores, kinds, weights, at)
        growth = np.maximum(kappa / begin[free] - 1, 0.0)
        value += trust / 2 * float(growth @ growth) + WEAK / 2 * float(kappa @ kappa)
        moved = d - bias
        value += 1e-3 / 2 * float(moved @ moved)
        slope = said.T @ odds.ravel() + trust * growth / begin[free] + WEAK * kappa
        return value, np.concatenate([slope, odds.sum(axis=0) @ patterns + 1e-3 * moved])

    first = np.concatenate([np.minimum(begin[free], 1.0), bias])
    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * len(free) + [(None, None)] * len(bias)
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-7}
    found = _least(cost, first, options, bounds)
    kappa = begin.copy()
    kappa[free] = found[: len(free)]
    return kappa, found[len(free) :]


def _least(
    cost: Callable[[Floats], tuple[float, Floats]],
    first: Floats,
    options: Mapping[str, float],
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> Floats:
    """Return where a convex cost, given with its slope, is least."""
    search: Any = minimize
    found: Floats = search(cost, first, jac=True, method="L-BFGS-B", bounds=bounds, options=dict(options)).x
    return found


def surprise(scores: Floats, kinds: Ints, weights: Floats, at: Ints) -> tuple[float, Floats]:
    """Return Σ w_i (-log p(k_i | x_i)) and its slope by the scores, shape (rows, classes)."""
    scores = scores - scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    sums = odds.sum(axis=1)
    value = float(weights @ (np.log(sums) - scores[at, kinds]))
    odds /= sums[:, None]
    odds[at, kinds] -= 1
    odds *= weights[:, None]
    return value, odds


# --- bins ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bins:
    """Columns as they enter the ridge: (x - mean)/scale, then a straight line for each column of numbers.

    A column of m thresholds has the scale √m, so that its penalty does not depend on m. Its line, Σ span x
    over them, has variance 1 and the penalty USUAL, whatever that of the bins is: where bins are held
    down, what is left is a logistic regression on numbers.
    """

    mean: Floats
    scale: Floats
    lines: Floats

    def design(self, x: NDArray[Any]) -> Floats:
        """Return rows as the ridge sees them, shape (rows, columns + lines)."""
        moved = x - self.mean
        return np.hstack([moved / self.scale, moved @ self.lines])

    def penalties(self, ridge: float) -> Floats:
        """Return the penalty of every column of the design."""
        return np.concatenate([np.full(len(self.scale), ridge), np.full(self.lines.shape[1], USUAL)])

    def of_columns(self, found: Additive) -> Floats:
        """Return the weights of columns as they are, shape (columns, labels)."""
        width = len(self.scale)
        return np.asarray(found.weights[:width] / self.scale[:, None] + self.lines @ found.weights[width:])


def bins_of(x: Floats, weights: Floats, groups: Groups, spans: Floats, usable: Bools) -> Bins:
    """Return how the columns of complete rows enter the ridge; those that are not usable enter as 0."""
    scale, lines = np.where(usable, 1.0, np.inf), []
    shares = weights / weights.sum()
    mean = np.asarray(shares @ x)
    for columns, patterns in groups:
        part = list(columns)
        if not is_ascending(np.asarray(patterns)) or not usable[part].all():
            continue
        scale[part] = np.sqrt(len(part))
        line = np.zeros(x.shape[1])
        line[part] = spans[part]
        wide = float(np.sqrt(shares @ ((x - mean) @ line) ** 2))
        if wide > 0:
            lines.append(line / wide)
    return Bins(mean, scale, np.array(lines).reshape(-1, x.shape[1]).T)


def is_ascending(patterns: Floats) -> bool:
    """Return whether patterns are those of thresholds: true from some place on."""
    return len(patterns) == patterns.shape[1] + 1 and bool((np.diff(patterns, axis=1) >= 0).all())


@dataclass(frozen=True, eq=False)
class Additive:
    """Weights of columns, shape (columns, labels), and biases of labels, shape (labels,)."""

    weights: Floats
    bias: Floats

    def scores(self, design: Floats, patterns: Floats) -> Floats:
        """Return what they add to the scores of classes, shape (rows, classes)."""
        return np.asarray((design @ self.weights + self.bias) @ patterns.T)


def fit_additive(
    design: Floats,
    kinds: Ints,
    weights: Floats,
    offset: Floats,
    *,
    patterns: Floats,
    penalties: Floats,
    begin: Additive | None = None,
) -> Additive:
    """Return the weights of a ridge regression beside ``offset``, scores of shape (rows, classes)."""
    ridge = penalties[:, None]
    rows, columns = design.shape
    labels, at = patterns.shape[1], np.arange(len(design))

    def cost(values: Floats) -> tuple[float, Floats]:
        v, d = values[:-labels].reshape(columns, labels), values[-labels:]
        scores = offset + (design @ v + d) @ patterns.T
        value, odds = surprise(scores, kinds, weights, at)
        pull = odds @ patterns
        value += 0.5 * float((ridge * v * v).sum()) + 1e-3 / 2 * float(d @ d)
        return value, np.concatenate([(design.T @ pull + ridge * v).ravel(), pull.sum(axis=0) + 1e-3 * d])

    first = np.zeros((columns + 1) * labels)
    if begin is not None:
        first = np.concatenate([begin.weights.ravel(), begin.bias])
    options = {"maxiter": 300, "maxfun": 400, "ftol": 1e-9, "gtol": 1e-5 * max(rows, 1) / 100}
    found = _least(cost, first, options)
    return Additive(found[:-labels].reshape(columns, labels), found[-labels:])


def choose_ridge(
    bins: Bins,
    design: Floats,
    kinds: Ints,
    weights: Floats,
    offsets: Floats,
    inside: Bools,
    *,
    patterns: Floats,
) -> tuple[float, Floats]:
    """Return the penalty that rows of inner folds speak for, and the loss of each in RIDGES.

    ``offsets`` are scores by fold, shape (rows, folds, classes), and ``inside`` says which rows each fold is
    fitted to, shape (rows, folds): the others judge it. Where rows are few, chance would choose: the choice
    leans to USUAL by LEANING for each power of ten, squared.
    """
    total = np.zeros(len(RIDGES))
    for fold in range(inside.shape[1]):
        mine, others = np.flatnonzero(inside[:, fold]), np.flatnonzero(~inside[:, fold])
        found: Additive | None = None
        asked, at = design[others], np.arange(len(others))
        x, y, w, beside = design[mine], kinds[mine], weights[mine], offsets[mine, fold]
        for number, ridge in enumerate(RIDGES):
            found = fit_additive(
                x, y, w, beside, patterns=patterns, penalties=bins.penalties(ridge), begin=found
            )
            scores = offsets[others, fold] + found.scores(asked, patterns)
            total[number] += surprise(scores, kinds[others], weights[others], at)[0]
    leaning = LEANING * np.log10(np.array(RIDGES) / USUAL) ** 2
    return RIDGES[int(np.argmin(total + leaning))], total
