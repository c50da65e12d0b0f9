"""Learners, each trained on a table once: their log-odds of other rows after every epoch.

A learner without epochs has a curve of one point. What a setting is differs from learner to learner; how many
there are does not, so that all are given the same number of fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.knowledge.formula import atom, conjunction, implies
from lbm.knowledge.theory import Theory
from lbm.trials.learners.cilp import log_odds, train_net

Setting = Mapping[str, float]

EPOCHS: Final = 30
"""Passes over the training rows, of every learner that has epochs."""

TREES: Final = 100

RATES: Final = ({"rate": 0.01, "l2": 0.05}, {"rate": 0.03, "l2": 0.005})
SETTINGS: Final[Mapping[str, tuple[Setting, ...]]] = {
    "CILP++": ({"rate": 0.01}, {"rate": 0.03}),
    "RBM": RATES,
    "LBM": RATES,
    "LBM without knowledge": RATES,
    "logistic regression": ({"C": 0.1}, {"C": 1.0}),
    "SVM": ({"C": 1.0}, {"C": 10.0}),
    "random forest": ({"leaf": 1}, {"leaf": 3}),
}
"""What is tried, by learner."""

LEARNERS: Final = tuple(SETTINGS)
CLASSICAL: Final = ("logistic regression", "SVM", "random forest")
SMALL_SETS: Final = ("mutagenesis", "krk")
"""Sets of which 2.5 % of the clauses are knowledge; of others 10 % are. [TG21, section 6]"""


def share_of_clauses(name: str) -> float:
    """Return the share of training clauses that are knowledge to begin with."""
    return 0.025 if name in SMALL_SETS else 0.1


def shown(setting: Setting) -> str:
    """Return a setting as text.

    >>> shown({"rate": 0.01, "l2": 2.0})
    'rate=0.01 l2=2'
    """
    return " ".join(f"{name}={value:g}" for name, value in setting.items())


def curve(
    learner: str,
    setting: Setting,
    cells: Bools,
    labels: Bools,
    asked: Bools,
    *,
    share: float,
    seed: int,
    epochs: int = EPOCHS,
) -> Floats:
    """Return log-odds of the rows ``asked`` after each epoch of training, shape (epochs, asked rows).

    Parameters
    ----------
    cells, labels
        What is trained on, shapes (rows, columns) and (rows,).
    share
        The share of training rows whose clauses are knowledge, for learners that begin with some.
    """
    if learner in CLASSICAL:
        return _classical(learner, setting, cells, labels, asked, seed)[np.newaxis]
    known = drawn_of_each(labels, np.random.default_rng([seed, 7]), share=share)
    if learner == "CILP++":
        nets = train_net(
            cells, labels, cells[known], labels[known], rate=setting["rate"], epochs=epochs, seed=seed
        )
        return np.array([log_odds(asked, *net) for net in nets])
    theory = clauses_as_theory(cells[known], labels[known]) if learner == "LBM" else None
    hidden = 100 if learner == "RBM" else 50
    return _machine(setting, cells, labels, asked, theory=theory, hidden=hidden, seed=seed, epochs=epochs)


def drawn_of_each(labels: Bools, rng: np.random.Generator, *, share: float, left: int = 0) -> Ints:
    """Return numbers of rows: this share of each class, one at least, but for so many that are ``left``."""
    found = []
    for kind in (True, False):
        rows = np.flatnonzero(labels == kind)
        size = min(len(rows) - left, max(1, round(share * len(rows))))
        found += rng.choice(rows, size=size, replace=False).tolist()
    return np.array(sorted(found), dtype=np.int64)


def clauses_as_theory(bodies: Bools, heads: Bools) -> Theory:
    """Return ``body -> y`` or ``body -> ~y`` for each clause; the atoms of columns are c0, c1, ..."""
    columns = [atom(f"c{number}") for number in range(bodies.shape[1])]
    head = {True: atom("y"), False: ~atom("y")}
    found = dict.fromkeys(
        implies(conjunction([columns[k] for k in np.flatnonzero(body).tolist()]), head[kind])
        for body, kind in zip(bodies, heads.tolist(), strict=True)
        if body.any()
    )
    return Theory(list(found))


def _machine(
    setting: Setting,
    cells: Bools,
    labels: Bools,
    asked: Bools,
    *,
    theory: Theory | None,
    hidden: int,
    seed: int,
    epochs: int,
) -> Floats:
    """Return the curve of a machine; a clause is the one cube y ∧ body, of confidence 0.1 to begin with."""
    from lbm.training.data.rows import Rows
    from lbm.training.gradients.costs import cost_of
    from lbm.training.gradients.descent import Data, Plan, steps
    from lbm.training.learners.classifier import LBMClassifier

    model = LBMClassifier(
        knowledge=theory,
        target="y",
        names=[f"c{number}" for number in range(cells.shape[1])],
        hidden=hidden,
        encoding="rule",
        units="paper",
        confidence=0.1,
        learning_rate=setting["rate"],
        l2=setting["l2"],
        encode="never",
        random_state=seed,
    )
    # The first epoch sets everything up; the others go on without checking the same table again.
    model.partial_fit(cells.astype(np.float32), labels, classes=[False, True])
    network, progress = model.network_, model.progress_
    assert progress is not None
    kind = network.weights.dtype
    other = Rows(asked.astype(np.float32), dtype=kind).batch(np.arange(len(asked)))
    data = Data(
        Rows(cells.astype(np.float32), dtype=kind),
        labels.astype(np.int64),
        np.ones(len(labels)),
        gaps=False,
    )
    cost = cost_of("discriminative", l1=model.l1, l2=model.l2, trust=model.trust, unaided=model.unaided)
    plan = Plan(setting["rate"], min(max(len(cells) // 16, 8), 256), epochs, None, epochs + 1, model.seed_)

    def odds() -> Floats:
        scores = network.log_scores(other).detach().numpy().astype(float)
        return np.asarray(scores[:, 1] - scores[:, 0])

    found = [odds()]
    progress.finished = None
    every = np.arange(len(labels), dtype=np.int64)
    way = steps(progress, data, cost, plan, train=every, validation=every[:0])
    found += [odds() for now in way if now.position == 0]
    return np.array(found[:epochs])


def _classical(
    learner: str, setting: Setting, cells: Bools, labels: Bools, asked: Bools, seed: int
) -> Floats:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    model: Any
    x, queries = cells.astype(float), asked.astype(float)
    if learner == "random forest":
        model = RandomForestClassifier(
            TREES, min_samples_leaf=int(setting["leaf"]), random_state=seed, n_jobs=1
        ).fit(x, labels)
        votes = TREES * model.predict_proba(queries)[:, 1]
        return np.asarray(np.log((votes + 1) / (TREES - votes + 1)))  # finite where all trees agree
    strength = setting["C"]
    model = SVC(C=strength) if learner == "SVM" else LogisticRegression(C=strength, max_iter=2000)
    return np.asarray(model.fit(x, labels).decision_function(queries))
