"""LBMClassifier: a classifier that starts from rules, improves with data, and says what it is made of."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lbm.errors import MissingExtra, UnknownAtom
from lbm.knowledge.formula import Formula, atom_name, atoms_of
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import label_names
from lbm.training.data.table import layout_of_names, read_table
from lbm.training.explanations.explain import Explanation, explain_rows
from lbm.training.explanations.extract import Extraction, extract_rules
from lbm.training.gradients.descent import begin, restore_best, split, steps
from lbm.training.learners.fitting import (
    Confidence,
    confidences,
    exact_rows,
    read_classes,
    read_knowledge,
    target_name,
    tied_classes,
)
from lbm.training.learners.shell import Shell

try:
    import torch
    from sklearn.base import ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:  # pragma: no cover - every test environment has them
    raise MissingExtra("train", "lbm.LBMClassifier", "scikit-learn") from error

Floats = NDArray[np.float64]


class LBMClassifier(ClassifierMixin, Shell):  # type: ignore[misc]  # scikit-learn has no types
    """A restricted Boltzmann machine over columns and label atoms, with knowledge among its hidden units.

        p(k | x) = softmax_k(-F(x, k)),    -F(x, k) = b·x + d·L_k + Σ_j log(1 + exp s_j(x, k))

    With two classes the label atom is ``target``, true for ``classes_[1]``; with more there is an atom
    ``'target = class'`` for each. NaN in ``X`` means unobserved, and is summed out: see
    :mod:`lbm.training.boltzmann.missing` for what that means under a purely discriminative cost.

    Parameters
    ----------
    knowledge
        A theory, its text, a formula, or a path to a file; its atoms are columns and label atoms. A formula
        with a weight begins with that confidence, one without with ``confidence``; data moves both.
    hidden
        Hidden units in addition to those of the knowledge.
    target
        Name of the label atom; by default the name of ``y``, else ``y``.
    confidence
        See ``knowledge``. At 5 a rule that fires multiplies the odds by about 12.
    literals
        ``tied``: one confidence per formula is learned, and rules stay rules. ``free``: the weight of every
        literal is.
    encoding
        ``sdnf`` or ``rule``: see :func:`lbm.training.boltzmann.knowledge.compile_knowledge`. The paper's
        authors used ``rule`` with confidence 0.1.
    hard
        Whether formulae without a weight keep their confidence; rows that break one are in ``broken_``.
    default
        A closed-world preference, for rows that no rule fires on: the log-odds against the label atom
        (two classes; True means 1), or a dict from classes to log-odds for them. It is where the bias of the
        label begins, and is learned like all else.
    conjectures
        Rules at most that ``fit`` adds to the knowledge: variations of its rules that the training rows speak
        for, see :func:`lbm.training.boltzmann.conjectures.conjecture`. They begin with ``confidence``, and
        stand in ``confidences_`` behind what was given, with a weight.
    cost
        ``discriminative``, ``generative`` or ``hybrid`` (``alpha`` · generative + ``beta`` · discriminative).
    steps, persistent
        Of a generative cost: sweeps between two updates, and whether chains go on from batch to batch.
    learning_rate, max_epochs, max_seconds, batch_size
        Adam's rate; budgets; rows between two updates, None: from 8 to 256, a sixteenth of the rows.
    validation_fraction, patience
        Rows put aside, stratified, to judge epochs by -log p(k | x): training stops after ``patience`` epochs
        without a better one, and the best one's parameters are kept. None are put aside where a class has
        fewer than 5 rows or fewer than 30 rows would judge; the cost of training then decides.
    l1, l2, trust
        Penalties: on weights that are not knowledge, and on confidences that outgrow where they began. They
        are priors, fixed whatever the number of rows: see :class:`lbm.training.gradients.costs.Cost`.
    unaided
        The share of the discriminative cost that is asked of the machine without its knowledge, so that what
        rules explain is learned from nonetheless.
    class_weight
        None, ``balanced``, or a dict from classes to weights.
    encode
        ``auto``: columns that hold other values than 0, 1 and NaN pass through an :class:`AtomEncoder` with
        its default options, and knowledge may mention thresholds and categories of its own, such as
        ``'age <= 30'``. ``never``: they are an error. A column of 0 and 1 that knowledge does not mention may
        hold other numbers later, which are cut at a half.
    names
        Names of the columns of an array; by default ``x0``, ``x1``, ... A DataFrame brings its own.
    dtype, device
        ``float32`` or ``float64``; ``cpu`` or another device of torch (others than the CPU are untested).
        Predictions are computed in float64 on the CPU.
    random_state, verbose
        As in scikit-learn; ``verbose=1`` prints a line per epoch on standard error.

    Attributes
    ----------
    classes_, target_, labels_
        The classes, the name of the target, and the label atoms.
    layout_
        How columns become atoms; ``atoms_`` are their names.
    network_
        The trained :class:`lbm.training.boltzmann.network.Network`.
    history_
        The :class:`lbm.training.gradients.descent.Epoch` of every epoch; ``stopped_`` says why no more.
    confidences_
        A :class:`Confidence` for every formula, in order.
    broken_
        With ``hard=True``, a :class:`Broken` for every formula that training rows break.

    Examples
    --------
    >>> import pandas as pd
    >>> birds = pd.DataFrame({"bird": [1, 1, 0, 0], "penguin": [0, 1, 0, 1]})
    >>> rules = LBMClassifier.from_knowledge(
    ...     "bird & ~penguin <-> fly", target="fly", columns=birds.columns)
    >>> rules.predict(birds).tolist()
    [True, False, False, False]
    """

    def __init__(
        self,
        *,
        knowledge: Theory | Formula | str | Path | None = None,
        hidden: int = 50,
        target: str | None = None,
        confidence: float = 5.0,
        literals: str = "tied",
        encoding: str = "sdnf",
        hard: bool = False,
        default: bool | float | Mapping[Any, float] | None = None,
        conjectures: int = 0,
        cost: str = "discriminative",
        alpha: float = 0.01,
        beta: float = 1.0,
        steps: int = 1,
        persistent: bool = False,
        learning_rate: float = 0.01,
        max_epochs: int = 200,
        max_seconds: float | None = None,
        batch_size: int | None = None,
        validation_fraction: float = 0.1,
        patience: int = 20,
        l1: float = 0.0,
        l2: float = 0.05,
        trust: float = 1.0,
        unaided: float = 0.5,
        class_weight: Any = None,
        encode: str = "auto",
        names: Sequence[str] | None = None,
        dtype: str = "float32",
        device: str = "cpu",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.knowledge = knowledge
        self.hidden = hidden
        self.target = target
        self.confidence = confidence
        self.literals = literals
        self.encoding = encoding
        self.hard = hard
        self.default = default
        self.conjectures = conjectures
        self.cost = cost
        self.alpha = alpha
        self.beta = beta
        self.steps = steps
        self.persistent = persistent
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.max_seconds = max_seconds
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.l1 = l1
        self.l2 = l2
        self.trust = trust
        self.unaided = unaided
        self.class_weight = class_weight
        self.encode = encode
        self.names = names
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = tags.input_tags
        given.allow_nan = given.sparse = given.string = given.categorical = True
        return tags

    # -- fitting --

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on ``X``, shape (rows, columns), and the classes ``y``, shape (rows,).

        Rows of weight 0 are left out altogether.
        """
        cost = self._cost()
        table = read_table(self, X, reset=True)
        given, kinds, weights = read_classes(y, sample_weight, table)
        self._start(table, kinds, target_name(self.target, y), drop=True)
        data, rows = self._data(table, given, weights)
        plan = self._plan(len(rows))
        train, validation = split(data.kinds, self.validation_fraction, plan.seed)
        self._conjecture(data, train)
        self.progress_ = begin(self.network_)
        for progress in steps(self.progress_, data, cost, plan, train=train, validation=validation):
            if self.verbose and progress.position == 0:
                print(progress.history[-1], file=sys.stderr)
        restore_best(self.progress_)
        self._finish(data, rows)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over these rows, with Adam's moments kept from call to call.

        The first call fixes the columns, their atoms and ``classes``, which names every class there will be.
        No rows are put aside, and constant columns stay.
        """
        cost = self._cost()
        first = not hasattr(self, "network_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes=, every class there will be")
        table = read_table(self, X, reset=first)
        known = np.unique(classes) if first else self.classes_
        given, _, weights = read_classes(y, sample_weight, table, known=known)
        if first:
            self._start(table, known, target_name(self.target, y), drop=False)
        elif classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {known.tolist()}")
        data, rows = self._data(table, given, weights)
        if self.progress_ is None:
            self.progress_ = begin(self.network_)
        progress = self.progress_
        progress.finished, progress.stale, progress.best_cost = None, 0, float("inf")
        progress.position, progress.total = 0, 0.0  # fit may have been stopped within an epoch
        plan = replace(self._plan(len(rows)), max_epochs=progress.epoch + 1, max_seconds=None)
        every = np.arange(len(rows), dtype=np.int64)
        for _ in steps(progress, data, cost, plan, train=every, validation=every[:0]):
            pass
        self._finish(data, rows)
        return self

    @classmethod
    def from_knowledge(
        cls,
        knowledge: Theory | Formula | str | Path,
        *,
        target: str,
        columns: Iterable[str],
        classes: Iterable[Any] | None = None,
        confidence: float = 5.0,
        default: bool | float | Mapping[Any, float] | None = None,
        **options: Any,
    ) -> Self:
        """Return a classifier that predicts from knowledge alone.

        Rows on which no rule fires for one class rather than another are undecided: their classes get equal
        probabilities, ``predict`` returns the first of them, and ``undecided`` says which rows these are.

        Parameters
        ----------
        target, columns
            The label atom and the columns that tables will have.
        classes
            By default False and True.
        options
            Other parameters; ``hidden`` is 0 by default here.
        """
        options = {"hidden": 0, **options}
        self = cls(knowledge=knowledge, target=target, confidence=confidence, default=default, **options)
        kinds = np.unique([False, True] if classes is None else list(classes))
        theory = read_knowledge(knowledge)
        mentioned = () if theory is None else atoms_of(*(statement.formula for statement in theory))
        labels = label_names(target, kinds.tolist())
        if not set(mentioned) & {atom_name(label) for label in labels}:
            raise UnknownAtom(labels[0], mentioned, "theory")
        layout = layout_of_names(columns, mentioned, only=not self.hidden)
        self.n_features_in_ = len(layout.columns)
        self.feature_names_in_ = np.array(layout.columns, dtype=object)
        self._assemble(layout, kinds, target, theory)
        with torch.no_grad():
            self.network_.label_weights.zero_()  # units that are not knowledge have nothing to say yet
        return self

    # -- answers --

    def predict_proba(self, X: Any) -> Floats:
        """Return p(k | x), shape (rows, classes), in the order of ``classes_``."""
        return np.exp(self._log_probabilities(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in ``classes_``."""
        best = self._log_probabilities(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def decision_function(self, X: Any) -> Floats:
        """Return log p(k | x), shape (rows, classes); of two classes the log-odds, shape (rows,)."""
        logs = self._log_probabilities(X)
        return np.asarray(logs[:, 1] - logs[:, 0]) if logs.shape[1] == 2 else logs

    def undecided(self, X: Any) -> NDArray[np.bool_]:
        """Return which rows no hidden unit and no bias decides: the best classes tie, shape (rows,).

        What counts is which units are on, min_h E(x, h), not how nearly others are. Where a value is missing,
        a unit counts as on if some value would turn it on. After training this is rare.
        """
        parts = self._chunks(X)
        return np.concatenate([tied_classes(self.network_, x).sum(axis=1) > 1 for x in parts])

    def exact(self, X: Any) -> NDArray[np.bool_]:
        """Return which rows are predicted exactly; the others miss so many values that they are sampled."""
        parts = self._chunks(X)
        return exact_rows(self.network_, parts, self._blocks(torch.float64, "cpu"))

    @property
    def confidences_(self) -> tuple[Confidence, ...]:
        """Every formula with the confidence it began with and the one it has."""
        return confidences(self.network_)

    def explain(self, X: Any, *, against: Any = None) -> list[Explanation]:
        """Return why each row is in its class: the log-odds as a bias and a term per hidden unit, exactly.

        The predicted class is compared with the class ``against``, or where that is the predicted one, and by
        default, with the runner-up. See :class:`lbm.training.explanations.explain.Explanation`.
        """
        check_is_fitted(self)
        options: dict[str, Any] = {"classes": self.classes_.tolist(), "groups": self.layout_.blocks}
        found: list[Explanation] = []
        for x in self._chunks(X):
            told = explain_rows(self.network_, x, **options)
            if against is not None:
                other, names = self._number(against), list(map(str, options["classes"]))
                kinds = [names.index(one.kind) for one in told]
                for i in (i for i, kind in enumerate(kinds) if kind != other):
                    told[i] = explain_rows(self.network_, x[[i]], kinds=kinds[i], others=other, **options)[0]
            found += told
        return found

    def rules(
        self, X: Any = None, y: Any = None, *, method: str = "faithful", max_rules: int = 40
    ) -> Extraction:
        """Return the machine as weighted rules in the text format, with how faithful they are.

        Rules are fitted to the rows ``X``, which need no classes: the more rows, the more the rules are
        faithful to; without any, rows are drawn. ``y`` is for accuracy alone. See
        :func:`lbm.training.explanations.extract.extract_rules`.
        """
        check_is_fitted(self)
        x = None if X is None else np.concatenate(list(self._chunks(X)))
        kinds = None if y is None else np.array([self._number(kind) for kind in np.asarray(y).tolist()])
        return extract_rules(
            self.network_,
            x,
            kinds,
            method=method,
            max_rules=max_rules,
            groups=self.layout_.blocks,
            seed=self.seed_,
        )
