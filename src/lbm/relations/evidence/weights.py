"""Weights chosen on labels that were held out: how far labels are to be trusted, and how far the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from lbm.arrays import Floats
from lbm.errors import NoWorlds
from lbm.knowledge.theory import Theory
from lbm.relations.evidence.query import marginals
from lbm.relations.evidence.residual import GroundRules, prepare

WEIGHTS: Final[tuple[float | None, ...]] = (0.5, 1.0, 2.0, 4.0, None)
"""Weights of labels that are tried where none are given; None is for hard labels."""

CERTAIN: Final = 20.0
"""Log-odds past which a score counts as this: a rule may be certain, and a mixture has to stay finite."""

_STEPS: Final = 60  # halvings of an interval of weights: beyond what a float holds


@dataclass(frozen=True, slots=True)
class Choice:
    """The weight that does best on labels held out, and the mean log-likelihood of each that was tried.

    A weight under which some labels clash with the rules has minus infinity.
    """

    weight: float | None
    scores: dict[float | None, float]


def choose_weight(
    theory: Theory | GroundRules,
    evidence: Mapping[str, bool],
    *,
    weights: Sequence[float | None] = WEIGHTS,
    folds: int = 5,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    **options: Any,
) -> Choice:
    """Return the weight of labels under which those held out are likeliest, given the others.

        P(label) = P(atom)·σ(w/τ) + P(¬atom)·σ(-w/τ)

    is what a label of weight w says: it agrees with its atom with probability σ(w/τ), and a hard one always.
    Only the evidence is split, at random, into ``folds`` parts; nothing else is looked at. Certainty that is
    wrong counts as log-odds of CERTAIN. Of weights that do equally well, the first is taken.

    Parameters
    ----------
    weights
        What is tried; None: hard labels.
    options
        Passed on to :func:`marginals`: ``sweeps``, ``seconds``.
    """
    if not weights:
        raise ValueError("expected one weight at least to choose from, got none")
    if not 2 <= folds <= len(evidence):
        raise ValueError(f"expected from 2 folds up to one for each of {len(evidence)} labels, got {folds}")
    ready = theory if isinstance(theory, GroundRules) else prepare(theory)
    rng = np.random.default_rng(seed)
    names = list(evidence)
    fold = rng.permutation(np.arange(len(names)) % folds)
    scores: dict[float | None, float] = {}
    for weight in weights:
        total = 0.0
        try:
            for k in range(folds):
                held = [name for name, place in zip(names, fold, strict=True) if place == k]
                given = {name: evidence[name] for name, place in zip(names, fold, strict=True) if place != k}
                found = marginals(
                    ready, given, held, weight=weight, temperature=temperature, seed=rng, **options
                )
                agree = 1.0 if weight is None else 1 / (1 + np.exp(-weight / temperature))
                chances = np.array([found[name] for name in held])
                odds = log_odds(chances * agree + (1 - chances) * (1 - agree))
                agreed = np.where([evidence[name] for name in held], odds, -odds)
                total -= float(np.logaddexp(0.0, -agreed).sum())
        except NoWorlds:
            total = -np.inf
        scores[weight] = total / len(names)
    best = max(scores, key=lambda weight: scores[weight])
    if scores[best] == -np.inf:
        raise NoWorlds
    return Choice(best, scores)


def log_odds(chances: ArrayLike) -> Floats:
    """Return log(p/(1 - p)) of probabilities, within ±CERTAIN."""
    p = np.asarray(chances, float)
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(p) - np.log1p(-p), -CERTAIN, CERTAIN))


def mix(log_odds_table: ArrayLike, log_odds_rules: ArrayLike, labels: ArrayLike) -> float:
    """Return the share w of the rules, from 0 to 1, under which the labels are likeliest.

        log-odds = (1 - w)·table + w·rules

    Scores and labels are those of examples held out, shape (examples,): a table's scores on the examples it
    was trained on say too much for it. The log-likelihood is concave in w, so that halving an interval finds
    its maximum. Scores that are all alike give 1/2.

    >>> mix([2.0, -1.0, 0.5], [3.0, 3.0, -3.0], [True, False, True])
    0.0
    """
    table, rules, truth = _scores(log_odds_table), _scores(log_odds_rules), np.asarray(labels, bool)
    if not table.shape == rules.shape == truth.shape or table.ndim != 1 or not len(table):
        raise ValueError(
            "expected as many scores of the table and of the rules as labels, and one at least, "
            f"got {table.shape}, {rules.shape} and {truth.shape}"
        )
    towards = np.where(truth, 1.0, -1.0) * (rules - table)

    if not towards.any():
        return 0.5  # the scores are alike, and any share says the same

    def rises(w: float) -> bool:
        odds = (1 - w) * table + w * rules
        return float(np.sum(towards / (1 + np.exp(np.where(truth, odds, -odds))))) > 0

    if not rises(0.0):
        return 0.0
    if rises(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return (low + high) / 2


def mixed(log_odds_table: ArrayLike, log_odds_rules: ArrayLike, weight: float) -> Floats:
    """Return probabilities from the scores of a table and of rules, mixed: see :func:`mix`."""
    if not 0 <= weight <= 1:
        raise ValueError(f"the share of the rules lies between 0 and 1, got {weight}")
    odds = (1 - weight) * _scores(log_odds_table) + weight * _scores(log_odds_rules)
    return np.asarray(1 / (1 + np.exp(-odds)))


def _scores(values: ArrayLike) -> Floats:
    scores = np.asarray(values, float)
    if np.isnan(scores).any():
        raise ValueError("expected log-odds, got nan among them")
    return np.asarray(np.clip(scores, -CERTAIN, CERTAIN))
