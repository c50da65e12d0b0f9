"""Few rules, near to the machine's probabilities: bodies are tried, the best kept, all weights fitted anew.

    P(k | x) ∝ exp Σ_r v_r [body r is true in x] L_k(label r)

The weights v minimise the mean cross-entropy of rows between this and the machine's p(k | x), plus λ/2 Σ v².
L_k are the label atoms of class k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Floats
from lbm.training.boltzmann.knowledge import Numbers, atom_of, ordered
from lbm.training.explanations.explain import LabelledMachine, unit_literals

COLUMNS: Final = 256
"""Columns that bodies are made of: those that move hidden units most, and these the classes."""

STRONGEST: Final = 6
"""Literals of a hidden unit, the strongest, whose conjunctions are tried as bodies."""

LONGEST: Final = 3
"""Literals in such a conjunction."""

BODIES: Final = 4096
"""Conjunctions that are tried; those of the units that tell classes apart most come first."""

REFINED: Final = 5
"""Bodies that are improved by a literal more or less before the best of them becomes a rule."""

RIDGE: Final = 1e-4
"""λ of λ/2 Σ v²: what large weights cost beside the mean cross-entropy of a row."""

DAMPING: Final = 1e-3
"""The least curvature of a new rule, per row: a body does not lead because it is true in few rows."""

WORTH_A_LITERAL: Final = 1.02
"""How many times better a body must be for one literal more."""

NEWTON_STEPS: Final = 30
"""Steps of a fit at most."""

LEAST_STEP: Final = 1e-10
"""The share of its cost that a step must gain for another one to follow."""

Fitted = list[tuple[Numbers, int, float]]
"""Bodies, the label atom of each by its number, and what it gains where the body is true."""


@dataclass(frozen=True, eq=False, slots=True)
class _Fit:
    """Rules as (body, label), their weights, and the P(k | x) they give, shape (rows, classes)."""

    rules: list[tuple[Numbers, int]]
    weights: Floats
    predicted: Floats
    agreement: float


@dataclass(frozen=True, eq=False, slots=True)
class _Goal:
    """Rows as truth values, shape (columns, rows), and the machine's p(k | x), shape (rows, classes)."""

    truth: Bools
    wanted: Floats
    patterns: Floats

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.truth.shape[1])

    def features(self, bodies: Sequence[Numbers]) -> NDArray[np.float32]:
        """Return where conjunctions are true, shape (bodies, rows)."""
        found = np.ones((len(bodies), self.rows), dtype=np.float32)
        for i, body in enumerate(bodies):
            for n in body:
                found[i] *= self.truth[abs(n) - 1] == (n > 0)
        return found

    def fit(self, rules: list[tuple[Numbers, int]], start: Floats) -> _Fit:
        """Return rules with the weights of least cross-entropy and λ/2 Σ v², by Newton's method."""
        features = self.features([body for body, _ in rules]).astype(np.float64)
        labels = np.array([label for _, label in rules], dtype=np.int64)
        same, heads, ridge = labels[:, None] == labels, self.patterns.T[labels], RIDGE * self.rows

        def weigh(v: Floats) -> tuple[float, Floats]:
            scores = (features.T * v) @ heads
            logs = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
            return float(ridge / 2 * v @ v - (self.wanted * logs).sum()), logs

        v = np.pad(start, (0, len(rules) - len(start)))
        cost, logs = weigh(v)
        for _ in range(NEWTON_STEPS):
            q = np.exp(logs)
            share = features * (q @ self.patterns).T[labels]
            slope = (features * ((self.wanted - q) @ self.patterns).T[labels]).sum(axis=1) - ridge * v
            step = np.linalg.solve(
                same * (share @ features.T) - share @ share.T + ridge * np.eye(len(v)), slope
            )
            now, then = weigh(v + step)
            while now > cost and abs(step).max(initial=0.0) > LEAST_STEP:
                step = step / 2
                now, then = weigh(v + step)
            if cost - now <= LEAST_STEP * cost:
                break
            v, cost, logs = v + step, now, then
        agreement = (logs.argmax(axis=1) == self.wanted.argmax(axis=1)).mean()
        return _Fit(rules, v, np.exp(logs), float(agreement))

    def gains(self, features: NDArray[np.float32], fit: _Fit, where: Any = 1.0) -> NDArray[np.float32]:
        """Return twice what a Newton step on a weight of each label takes off the cost, (bodies, labels).

        Bodies count in the rows of ``where`` alone, shape (rows, 1).
        """
        pull, share = (self.wanted - fit.predicted) @ self.patterns, fit.predicted @ self.patterns
        slope = features @ (pull * where).astype(np.float32)
        bend = features @ (share * (1 - share) * where).astype(np.float32)
        return np.asarray(slope**2 / (bend + np.float32(DAMPING * self.rows)))


def fit_rules(model: LabelledMachine, x: Floats, scores: Floats, most: int, enough: float) -> Fitted:
    """Return at most ``most`` rules whose P(y | x) is near to softmax(scores), shape (rows, classes)."""
    wanted = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    goal = _Goal(np.ascontiguousarray(x.T > 0.5), wanted, model.patterns)
    grown = [_grow(goal, model, most, enough, negative) for negative in (False, True)]

    def worth(fit: _Fit) -> tuple[float, int, int]:
        return min(fit.agreement, enough), -len(fit.rules), -sum(len(body) for body, _ in fit.rules)

    best = max(grown, key=worth)
    found = [(*rule, value) for rule, value in zip(best.rules, best.weights.tolist(), strict=True)]
    return sorted(found, key=lambda rule: (not rule[0], -abs(rule[2])))


def _grow(goal: _Goal, model: LabelledMachine, most: int, enough: float, negative: bool) -> _Fit:
    """Return rules grown one at a time, then thinned out; only with ``negative`` bodies negate literals."""
    literals = _usable_literals(goal, model, negative)
    known, tried = _bodies(model, goal, literals)
    rules: list[tuple[Numbers, int]] = [
        ((), k) for k in range(model.labels if model.labels <= most // 2 else 0)
    ]
    tried += [] if rules else [()]
    known = [rule for rule in known if rule not in rules]
    rules += known if len(rules) + len(known) <= most else []
    first = len(rules)
    best = fit = goal.fit(rules, np.zeros(0))
    pooled, singles = goal.features(tried), goal.features([(n,) for n in literals])
    while tried and len(fit.rules) < most and best.agreement < enough:
        gains = goal.gains(pooled, fit)
        leaders = np.argsort(-gains.max(axis=1), kind="stable")[:REFINED].tolist()
        improved = (_improve(goal, fit, tried[i], int(gains[i].argmax()), literals, singles) for i in leaders)
        _, body, label = max(improved)
        if (body, label) in fit.rules:
            break  # its weight is as good as it gets
        fit = goal.fit([*fit.rules, (body, label)], fit.weights)
        best = fit if fit.agreement > best.agreement else best
    return _thin(goal, best, min(enough, best.agreement), first)


def _improve(
    goal: _Goal, fit: _Fit, body: Numbers, label: int, literals: Sequence[int], singles: NDArray[np.float32]
) -> tuple[float, Numbers, int]:
    """Return the gain of a body that literals were added to and dropped from while it grew, and the body."""
    worth = 0.0
    while True:
        shorter = [tuple(n for n in body if n != gone) for gone in body] if len(body) > 1 else []
        features = goal.features([body, *shorter])
        longer = goal.gains(singles, fit, features[0][:, None])[:, label]
        worth, *less = goal.gains(features, fit)[:, label].tolist()
        if longer.max() > WORTH_A_LITERAL * worth:
            body = ordered((*body, literals[int(longer.argmax())]))
        elif less and max(less) > worth:
            body = shorter[less.index(max(less))]
        else:
            return worth, body, label


def _thin(goal: _Goal, fit: _Fit, least: float, first: int) -> _Fit:
    """Return rules without those that can go, the lightest first; the first ones, of the knowledge, stay."""
    light = np.argsort(abs(fit.weights[first:]), kind="stable") + first
    for rule in [fit.rules[i] for i in light.tolist()]:
        place = fit.rules.index(rule)
        fewer = goal.fit(fit.rules[:place] + fit.rules[place + 1 :], np.delete(fit.weights, place))
        fit = fewer if fewer.agreement >= least else fit
    return fit


def _usable_literals(goal: _Goal, model: LabelledMachine, negative: bool) -> list[int]:
    """Return the literals that bodies are made of: of columns that vary, and move classes most."""
    reach, mean = model.patterns @ model.label_weights, goal.truth.mean(axis=1)
    reach = reach * model.shares**2  # of the two weights that are multiplied
    moves = (abs(model.column_weights) @ np.ptp(reach, axis=0)) * np.sqrt(mean * (1 - mean))
    strongest = np.argsort(-moves, kind="stable").tolist()[:COLUMNS]
    columns = sorted(i for i in strongest if moves[i] > 0 and atom_of(model.columns[i]) is not None)
    return [n for i in columns for n in ((i + 1, -i - 1) if negative else (i + 1,))]


def _bodies(
    model: LabelledMachine, goal: _Goal, literals: Sequence[int]
) -> tuple[list[tuple[Numbers, int]], list[Numbers]]:
    """Return bodies and labels of units that are cubes, and the bodies to be tried.

    A unit tells classes apart around s_j = 0, halfway between the inputs that labels give it. Where its mean
    input over rows is below, it takes literals that switch it on, else literals that switch it off: those
    that move the mean most, as many as it takes, and the short conjunctions of the strongest.
    """
    usable, columns, mean = set(literals), {abs(n) for n in literals}, goal.truth.mean(axis=1)
    reach = model.patterns @ model.label_weights
    levels = (
        model.machine.hidden_bias + mean @ model.column_weights + (reach.max(axis=0) + reach.min(axis=0)) / 2
    )
    first = len(model.columns) + 1
    known: dict[tuple[Numbers, int], None] = {}
    tried: dict[Numbers, None] = {}
    for unit in np.argsort(-np.ptp(reach * model.shares, axis=0), kind="stable").tolist():
        if not np.ptp(reach[:, unit]) or len(tried) > BODIES:
            break
        numbers, weights = unit_literals(model.machine, unit)
        pairs = list(zip(numbers, weights, strict=True))
        highest = float(model.machine.hidden_bias[unit]) + sum(w for w in weights if w > 0)
        # One assignment alone switches it on; of a calibrated unit that holds whatever its weight.
        if unit < model.machine.calibrated or 0 < highest <= abs(weights[-1]):
            cube = ordered(n if w > 0 else -n for n, w in pairs)
            body = tuple(n for n in cube if abs(n) < first)
            if columns.issuperset(map(abs, body)):
                known |= dict.fromkeys((body, abs(n) - first) for n in cube if abs(n) >= first)
            tried[tuple(n for n in body if n in usable)] = None
            continue
        moves: dict[int, float] = {}
        below = bool(levels[unit] < 0)
        for n, w in pairs:
            literal = n if (w > 0) == below else -n
            if literal in usable:  # how far the mean input moves where it becomes true
                moves[literal] = abs(w) * float(1 - mean[n - 1] if literal > 0 else mean[n - 1])
        ranked = sorted(moves, key=lambda n: (-moves[n], n))
        enough = int(np.searchsorted(np.cumsum([moves[n] for n in ranked]), abs(levels[unit]))) + 1
        tried[ordered(ranked[: min(enough, STRONGEST)])] = None
        for size in range(1, LONGEST + 1):
            tried |= dict.fromkeys(map(ordered, combinations(ranked[:STRONGEST], size)))
    bodies = list(tried)
    true = goal.features(bodies) > 0
    _, firsts = np.unique(np.packbits(true, axis=1), axis=0, return_index=True)  # of those true alike
    return list(known), [bodies[i] for i in sorted(firsts.tolist()) if 0 < true[i].sum() < goal.rows]
