"""LBMClassifier: a classifier that starts from rules, improves with data, and says what it is made of."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from lbm.arrays import Bools, Bytes, Floats, Ints, slices
from lbm.errors import UnknownAtom
from lbm.knowledge.formula import Formula, atom_name, atoms_of, holds
from lbm.knowledge.theory import Theory
from lbm.machine.calibrated import check_units
from lbm.training.boltzmann.conjectures import CELLS, conjecture
from lbm.training.boltzmann.cubes import with_cubes
from lbm.training.boltzmann.filling import exact_rows, log_probabilities
from lbm.training.boltzmann.knowledge import (
    Knowledge,
    compile_knowledge,
    known_as,
    label_names,
    label_patterns,
)
from lbm.training.boltzmann.parameters import Parameters, blank, inverse_softplus
from lbm.training.data.names import plain
from lbm.training.data.table import MISSING, Layout, cuts_for, layout_of_names, read_atoms, read_table
from lbm.training.explanations.context import Context
from lbm.training.explanations.explain import Explanation, as_classifier, explain_rows
from lbm.training.explanations.extract import Extraction, extract_rules
from lbm.training.learners.classes import label_bias, read_classes, target_name
from lbm.training.learners.estimator import (
    Firing,
    Learner,
    check_whole,
    draw_seed,
    load_torch,
    mentioned_atoms,
    read_knowledge,
)

if TYPE_CHECKING:  # torch is loaded to learn, not to know
    from lbm.training.data.examples import Examples
    from lbm.training.data.rows import Rows
    from lbm.training.gradients.copies import Held
    from lbm.training.gradients.costs import Cost
    from lbm.training.gradients.descent import Data, Plan, Progress
    from lbm.training.gradients.epochs import Epoch

TIE: Final = 1e-9
"""Scores nearer than this, in proportion to their size, are equal."""

PREDICTED_ROWS: Final = 4096
"""Rows that are made dense at once in a prediction."""

LEAST_CONFIDENCE: Final = 1e-9
"""What is left of a rule that rows contradict."""

MANY_CELLS: Final = 1 << 24
"""Entries of (rows x atoms) from which on training may use several threads."""

CONJECTURE, BACKGROUND = 4, 5
"""What random numbers are for, beside those of descent and of chains."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A formula that was kept as it is, and the numbers of the training rows that break it."""

    formula: str
    rows: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many rows break it."""
        return len(self.rows)


@dataclass(kw_only=True, eq=False, repr=False)
class LBMClassifier(ClassifierMixin, Learner):  # type: ignore[misc]  # scikit-learn has no types
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
        See ``knowledge``. It is what a rule that fires adds to the log-odds of its class, as a weight does in
        :func:`lbm.ask`: at 5 the odds are multiplied by 148.
    literals
        ``tied``: one confidence per formula is learned, and rules stay rules. ``free``: the weight of every
        literal is, in the paper's units.
    encoding
        ``sdnf`` or ``rule``: see :func:`lbm.training.boltzmann.knowledge.compile_knowledge`. The paper's
        authors used ``rule`` with confidence 0.1.
    units
        ``calibrated``: a formula adds its confidence where it is true and nothing elsewhere, so that weights
        mean what they mean in :func:`lbm.ask`. ``paper``: those of the paper, in which a confidence counts
        about half, and a rule that is nearly met a little. None: ``paper`` with ``encoding="rule"`` or
        ``literals="free"``, else ``calibrated``.
    hard
        Whether formulae without a weight are hard: no weights outweigh them. Rows that break one say nothing
        about the others: training leaves them out, and they are in ``broken_``. In the paper's units such
        formulae only keep their confidence.
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
        Training stops after ``patience`` epochs without a better one, by -log p(k | x) of rows it did not
        see, and the best one's parameters are kept. In turns these are all rows below 10,000, by inner
        folds, each of which has a copy of the machine that learns in step and is not kept; from 10,000 on,
        and where all learn together, this share is put aside, stratified. 0: the cost of training decides.
        Together none are put aside where a class has fewer than 5 rows or fewer than 30 rows would judge.
    l1, l2, trust
        Penalties: on weights that are not knowledge, and on confidences that outgrow where they began. They
        are priors, fixed whatever the number of rows: see :class:`lbm.training.gradients.costs.Cost`.
    unaided
        The share of the discriminative cost that is asked of the machine without its knowledge, so that what
        rules explain is learned from nonetheless. In turns it has no meaning.
    in_turn
        Whether rules and bias are fitted first, then a weight for every bin of every column, then free units,
        each beside what came before, which is held: confidences then are what rows say of the rules, and not
        what free units leave of them. False: all learn together. None: in turn where units are calibrated and
        the cost is discriminative, which it has to be.
    bins
        Whether ``fit`` gives every bin of every column a weight of its own, if inner folds speak for that.
        They are rules ``bin -> class`` behind the knowledge, and what a table says column by column.
    thresholds
        Cuts of a column of numbers, at most. None: up to 16, fewer where columns and classes are many; 4
        where all learn together.
    class_weight
        None, ``balanced``, or a dict from classes to weights.
    background
        How many of the rows trained on are kept, drawn at random, as what explanations by column compare
        with. They are stored with the model; 0: none are.
    encode
        ``auto``: columns that hold other values than 0, 1 and NaN pass through an :class:`AtomEncoder` with
        its default options, and knowledge may mention thresholds and categories of its own, such as
        ``'age <= 30'``. ``never``: they are an error. A column of 0 and 1 that knowledge does not mention may
        hold other numbers later, which are cut at a half.
    odd_cells
        Of a column of numbers in which a few cells are something else, such as ``?`` or ``1,100``.
        ``text``: it is a column of categories, and a warning says where the first such cell is. ``missing``:
        these cells are missing values.
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
    learned_
        The rules about bins that ``fit`` added, as text, with their weights.
    broken_
        With ``hard=True``, a :class:`Broken` for every formula that training rows break.
    background_
        The truth values of the rows that were kept, as bytes, 255 where one is missing; None: none were.

    Examples
    --------
    >>> import pandas as pd
    >>> birds = pd.DataFrame({"bird": [1, 1, 0, 0], "penguin": [0, 1, 0, 1]})
    >>> rules = LBMClassifier.from_knowledge(
    ...     "bird & ~penguin <-> fly", target="fly", columns=birds.columns)
    >>> rules.predict(birds).tolist()
    [True, False, False, False]
    """

    target: str | None = None
    encoding: str = "sdnf"
    units: str | None = None
    default: bool | float | Mapping[Any, float] | None = None
    conjectures: int = 0
    cost: str = "discriminative"
    alpha: float = 0.01
    beta: float = 1.0
    max_seconds: float | None = None
    validation_fraction: float = 0.1
    patience: int = 20
    trust: float = 1.0
    unaided: float = 0.5
    class_weight: Any = None
    in_turn: bool | None = None
    bins: bool = True
    thresholds: int | None = None
    background: int = 100

    # -- fitting --

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on ``X``, shape (rows, columns), and the classes ``y``, shape (rows,).

        Rows of weight 0 are left out altogether.
        """
        cost = self._cost()
        table = read_table(self, X, reset=True)
        given, classes, weights = read_classes(y, sample_weight, table)
        self._start(table, classes, target_name(self.target, y), drop=True)
        data, numbers = self._read_data(table, given, weights)
        from lbm.training.gradients.descent import begin

        with few_threads(data):
            run = self._prepare(cost, data, numbers)
            progress = begin(self.network_)
            self.progress_: Progress | None = progress
            for _ in run.steps(progress):
                if self.verbose and progress.position == 0:
                    print(progress.history[-1], file=sys.stderr)
        run.finish(progress)
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
        data, numbers = self._read_data(table, given, weights)
        from lbm.training.gradients.descent import begin

        if self.progress_ is None:
            self.progress_ = begin(self.network_)
        progress = self.progress_
        progress.finished, progress.stale, progress.best_cost = None, 0, float("inf")
        progress.copies = progress.best = None
        progress.position, progress.total = 0, 0.0  # fit may have been stopped within an epoch
        plan = replace(self._plan(len(numbers)), max_epochs=progress.epoch + 1, max_seconds=None)
        every = np.arange(len(numbers), dtype=np.int64)
        kept = self._unbroken(data, numbers)
        run = TrainingRun(self, data, numbers, cost, plan, train=every[kept], validation=every[:0])
        if self.background_ is None:
            self._keep_background(data, every[kept])
        for _ in run.steps(progress):
            pass
        return run.finish(progress)

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
            Other parameters; ``hidden`` is 0 by default here, and ``dtype`` is ``float64``.

        ``predict_proba`` is then what :func:`lbm.ask` says of the class, given the row: formulae without a
        weight count as ``confidence``, with ``hard=True`` as hard.
        """
        options = {"hidden": 0, "dtype": "float64", **options}
        self = cls(knowledge=knowledge, target=target, confidence=confidence, default=default, **options)
        kinds = np.unique([False, True] if classes is None else list(classes))
        theory = read_knowledge(knowledge)
        mentioned = mentioned_atoms(theory)
        layout = layout_of_names(columns, mentioned, only=not self.hidden)
        meant = layout.understood(theory, target=target, classes=kinds.tolist())
        labels = label_names(target, kinds.tolist())
        if not set(mentioned_atoms(meant)) & {atom_name(label) for label in labels}:
            raise UnknownAtom(labels[0], mentioned, "theory")
        self._know_columns(layout)
        self._assemble(layout, kinds, target, theory)
        # Units that are not knowledge have nothing to say yet.
        self.network_.label_weights.data.zero_()
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

    def undecided(self, X: Any) -> Bools:
        """Return which rows no hidden unit and no bias decides: the best classes tie, shape (rows,).

        In the paper's units what counts is which of them are on, min_h E(x, h), not how nearly others are;
        where a value is missing, a unit counts as on if some value would turn it on. After training this is
        rare.
        """
        if self._is_calibrated(fitted=True):
            return np.asarray(self._level_classes(self._log_probabilities(X)).sum(axis=1) > 1)
        parts = self._chunks(X)
        parameters = self.parameters()
        return np.concatenate([_tied_classes(parameters, x).sum(axis=1) > 1 for x in parts])

    def exact(self, X: Any) -> Bools:
        """Return which rows are predicted exactly; the others miss so many values that they are sampled."""
        parameters = self.parameters()
        return np.concatenate([exact_rows(parameters, x) for x in self._chunks(X)])

    def explain(self, X: Any, *, against: Any = None, background: Any = None) -> list[Explanation]:
        """Return why each row is in its class: the log-odds as a bias and a term per hidden unit, exactly.

        The predicted class is compared with the class ``against``, or where that is the predicted one, and by
        default, with the runner-up. Each explanation also says what columns are worth, which rules fire, and
        what would have to change: see :class:`lbm.training.explanations.explain.Explanation`. ``background``
        are rows to compare with, instead of those that the model keeps.
        """
        check_is_fitted(self)
        classes, learned, context = self.classes_.tolist(), self.parameters(), self.context(background)
        found: list[Explanation] = []
        for x in self._chunks(X):
            told = explain_rows(learned, x, classes=classes, context=context)
            if against is not None:
                other, names = self._number(against), list(map(str, classes))
                kinds = np.array([names.index(one.kind) for one in told])
                rest = np.flatnonzero(kinds != other)
                again = explain_rows(
                    learned, x[rest], classes=classes, kinds=kinds[rest], others=other, context=context
                )
                for i, one in zip(rest.tolist(), again, strict=True):
                    told[i] = one
            found += told
        return found

    def context(self, background: Any = None) -> Context:
        """Return what explanations of this model share, with other background rows if they are given."""
        check_is_fitted(self)
        kept, rows = self.background_, None
        if background is not None:
            rows = np.concatenate(list(self._chunks(background)))
        elif kept is not None:
            rows = np.where(kept == MISSING, np.nan, kept.astype(np.float64))
        return Context(self.parameters(), self.layout_, rows, self.classes_.tolist(), seed=self.seed_)

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
        found = extract_rules(
            self.parameters(), x, kinds, method=method, max_rules=max_rules, seed=self.seed_
        )
        return replace(found, classifier=self._of_rules(found.theory))

    def _of_rules(self, theory: Theory) -> LBMClassifier:
        """Return the classifier that such rules are, of tables like those that this one was fitted to."""
        rules = LBMClassifier(
            knowledge=theory, hidden=0, target=self.target_, dtype="float64", random_state=self.seed_
        )
        rules.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            rules.feature_names_in_ = self.feature_names_in_
        rules.classes_, rules.target_, rules.labels_ = self.classes_, self.target_, self.labels_
        rules.layout_, rules.atoms_, rules.seed_ = self.layout_, self.atoms_, self.seed_
        rules.history_, rules.stopped_, rules.broken_, rules.background_ = (), None, (), None
        knowledge = compile_knowledge(
            self.layout_.understood(theory, target=self.target_, classes=self.classes_.tolist()),
            columns=self.atoms_,
            labels=self.labels_,
            units="calibrated",
        )
        return rules.know(blank(knowledge, self.layout_.groups), trained=False)

    # -- inside --

    def _number(self, kind: Any) -> int:
        """Return the number of a class."""
        found = np.flatnonzero(self.classes_ == kind)
        if not len(found):
            raise ValueError(f"expected one of the classes {self.classes_.tolist()}, got {kind!r}")
        return int(found[0])

    def _cost(self) -> Cost:
        names = ("alpha", "beta", "steps", "persistent", "l1", "l2", "trust", "unaided")
        load_torch()
        from lbm.training.gradients.costs import cost_of

        return cost_of(self.cost, **{name: getattr(self, name) for name in names})

    def _plan(self, rows: int) -> Plan:
        from lbm.training.gradients.descent import Plan

        size = min(max(rows // 16, 8), 256) if self.batch_size is None else self.batch_size
        return Plan(self.learning_rate, size, self.max_epochs, self.max_seconds, self.patience, self.seed_)

    def _know_columns(self, layout: Layout) -> None:
        """Remember columns as scikit-learn does where it sees a table."""
        self.n_features_in_ = len(layout.columns)
        self.feature_names_in_ = np.array(layout.columns, dtype=object)

    def _start(self, table: Any, classes: NDArray[Any], target: str, *, drop: bool) -> None:
        """Decide on atoms and classes, and make the network that training begins with."""
        theory = read_knowledge(self.knowledge)
        cuts = self.cuts(table.shape[1], len(classes))
        self._assemble(self._lay_out(table, theory, drop=drop, thresholds=cuts), classes, target, theory)

    def cuts(self, columns: int, classes: int) -> int:
        """Return how many cuts a column of numbers gets in a table of so many columns and classes."""
        if self.thresholds is not None:
            check_whole("thresholds", self.thresholds, 1)
            return int(self.thresholds)
        return cuts_for(columns, classes, fine=self._takes_turns())

    def _takes_turns(self) -> bool:
        """Return whether rules, bins and free units learn in turn."""
        able = self._is_calibrated() and self.cost == "discriminative" and self.literals == "tied"
        if self.in_turn and not able:
            raise ValueError(
                "in_turn=True needs cost='discriminative', literals='tied' and calibrated units, "
                f"got cost={self.cost!r}, literals={self.literals!r}, units={self.units!r}"
            )
        return able if self.in_turn is None else bool(self.in_turn)

    def _assemble(self, layout: Layout, classes: NDArray[Any], target: str, theory: Theory | None) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"expected at least 2 classes to tell apart, got {len(classes)} class: {classes}"
            )
        self.seed_ = draw_seed(self.random_state)
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}")
        if self.hidden < 0:
            raise ValueError(f"hidden is a whole number from 0 up, got {self.hidden}")
        self.classes_, self.target_ = classes, target
        self.labels_ = label_names(target, classes.tolist())
        self._begin_with(layout, theory)
        self.progress_ = None
        self.background_: Bytes | None = None
        self.history_: tuple[Epoch, ...] = ()
        self.stopped_: str | None = None
        self.broken_: tuple[Broken, ...] = ()
        self.firings_: tuple[Firing, ...] = ()

    @property
    def learned_(self) -> tuple[str, ...]:
        """The rules about bins that ``fit`` added, with their weights."""
        known = self.parameters().knowledge
        return tuple(
            str(replace(each, formula=plain(each.formula))) for each in known.statements[known.given :]
        )

    def _begin_with(self, layout: Layout, theory: Theory | None) -> None:
        """Make the network that training begins with; the bias of its label is what ``default`` prefers."""
        units = "calibrated" if self._is_calibrated() else "paper"
        theory = layout.understood(theory, target=self.target_, classes=self.classes_.tolist())
        self._begin(layout, theory, self.labels_, self.encoding, units)
        begin = label_bias(self.default, self.classes_)
        self.network_.label_bias.data.copy_(self.network_.label_bias.new_tensor(begin))

    def _is_calibrated(self, *, fitted: bool = False) -> bool:
        """Return whether units of the knowledge are calibrated: the network's, or as parameters say."""
        if fitted:
            check_is_fitted(self)
            return self.parameters().calibrated
        if self.units is None:
            return self.encoding != "rule" and self.literals != "free"
        check_units(self.units)
        return self.units == "calibrated"

    def _level_classes(self, logs: Floats) -> Bools:
        """Return the classes that tie for the best, shape (rows, classes), without the rounding of sums."""
        total = float(self.parameters().confidences.sum())
        return np.asarray(logs >= logs.max(axis=1, keepdims=True) - TIE * max(1.0, total / 1000))

    def _unbroken(self, data: Data, numbers: Ints) -> Bools:
        """Return which rows satisfy all formulae that stay as they are; keep which rows do not.

        All count as such in the paper's units, where no formula is really hard.
        """
        self.broken_ = _broken_rows(self.network_.knowledge, data, numbers) if self.hard else ()
        if not self._is_calibrated():
            return np.ones(len(numbers), dtype=bool)
        gone = [row for part in self.broken_ for row in part.rows]
        kept = ~np.isin(numbers, gone)
        if not kept.any():
            raise ValueError(
                f"every row breaks a hard formula, such as {self.broken_[0].formula}: give it a weight, "
                "or leave out hard=True"
            )
        return kept

    def _read_data(self, table: Any, y: NDArray[Any], weights: Floats) -> tuple[Data, Ints]:
        """Return the rows of weight above 0 as training data, and their numbers."""
        numbers = np.flatnonzero(weights > 0)
        atoms = read_atoms(table, self.layout_, dtype=self.dtype, strict=self._strict(), odd=self.odd_cells)[
            numbers
        ]
        kinds = np.searchsorted(self.classes_, y[numbers]).astype(np.int64)
        return self._data(self._rows(atoms), kinds, weights[numbers]), numbers

    def _data(self, rows: Rows, kinds: Ints, weights: Floats) -> Data:
        """Return rows as training data; a new network's biases begin at their means."""
        from lbm.training.data.rows import count_values
        from lbm.training.gradients.descent import Data

        zeros, ones = count_values(rows)
        if not self.network_.visible_bias.any():
            self.network_.start_at(zeros, ones)
        weights = weights * compute_sample_weight(self.class_weight, self.classes_[kinds])
        return Data(rows, kinds, weights / weights.mean(), bool((zeros + ones < len(rows)).any()))

    def _prepare(self, cost: Cost, data: Data, numbers: Ints) -> TrainingRun:
        """Return the run that trains this classifier: some rows put aside, and rules added to its network."""
        from lbm.training.gradients.descent import split
        from lbm.training.learners.turns import learn_rows

        plan = self._plan(len(numbers))
        if self._takes_turns():
            every = np.arange(len(numbers), dtype=np.int64)
            train = every[self._unbroken(data, numbers)]
            self._conjecture(data, train)
            held = self._take_turns(data, train)
            self._keep_background(data, train)
            judges = train[~held.inside.all(axis=1)]
            return TrainingRun(self, data, numbers, cost, plan, train, judges, held=held)
        self.network_.likely = learn_rows(self.network_, data)
        train, validation = split(data.kinds, self.validation_fraction, plan.seed)
        kept = self._unbroken(data, numbers)
        train, validation = train[kept[train]], validation[kept[validation]]
        self._conjecture(data, train)
        self._keep_background(data, train)
        return TrainingRun(self, data, numbers, cost, plan, train, validation)

    def _take_turns(self, data: Data, train: Ints) -> Held:
        """Fit rules, bias and bins; keep them in a new network; return what free units are trained beside."""
        from lbm.training.learners.turns import learn_rows, take_turns

        before = self.network_
        likely = learn_rows(before, data)
        found = take_turns(
            before,
            data,
            train,
            likely,
            trust=self.trust,
            bins=bool(self.bins),
            spans=self.layout_.spans,
            fraction=self.validation_fraction,
            seed=self.seed_,
        )
        knowledge = with_cubes(before.knowledge, found.cubes)
        self.network_, self.firings_ = self._network(knowledge), found.firings
        self.network_.likely = likely
        final = np.concatenate([found.confidences, knowledge.initial[before.knowledge.given :]])
        free = np.maximum(final[~knowledge.fixed], LEAST_CONFIDENCE)
        network = self.network_
        network.raw_confidence.data.copy_(network.raw_confidence.new_tensor(inverse_softplus(free)))
        network.label_bias.data.copy_(network.label_bias.new_tensor(found.bias))
        network.visible_bias.data.copy_(before.visible_bias.data)
        self._warn_of_silence(len(train))
        return found.held

    def _warn_of_silence(self, rows: int) -> None:
        """Say which rules fire on no row: nothing speaks for or against what they weigh."""
        heads = set(map(known_as, self.labels_))
        said = zip(self.confidences_, self.network_.knowledge.statements, strict=False)
        silent = [one.formula for one, s in said if one.rows == 0 and heads & set(atoms_of(s.formula))]
        if silent:
            more = f", and {len(silent) - 1} more" if len(silent) > 1 else ""
            warnings.warn(
                f"{silent[0]} fires on none of {rows:,} rows{more}: a rule that no row speaks of keeps the "
                "weight it was given",
                UserWarning,
                stacklevel=5,
            )

    def _conjecture(self, data: Data, train: Ints) -> None:
        """Add rules that the rows trained on suggest to a network whose training has not begun."""
        check_whole("conjectures", self.conjectures, 0)
        before = self.network_
        if not self.conjectures or not before.knowledge.units:
            return
        from lbm.training.gradients.descent import stream

        random = stream(self.seed_, CONJECTURE)
        rows = random.permutation(train)[: max(1, CELLS // len(self.atoms_))]
        found = conjecture(
            before.knowledge,
            data.rows.batch(rows).cpu().numpy(),
            data.kinds[rows],
            data.weights[rows],
            most=int(self.conjectures),
            seed=int(random.integers(2**31)),
        )
        if not found:
            return
        added = ((self.confidence, formula) for formula in found)
        self._begin_with(self.layout_, Theory([*before.knowledge.statements, *added]))
        self.network_.visible_bias.data.copy_(before.visible_bias.data)

    def _keep_background(self, data: Data, train: Ints) -> None:
        """Keep some of the rows trained on: what explanations by column compare with."""
        from lbm.training.gradients.descent import stream

        check_whole("background", self.background, 0)
        kept = np.sort(stream(self.seed_, BACKGROUND).permutation(train)[: self.background])
        if len(kept):
            x = data.rows.batch(kept).cpu().numpy()
            self.background_ = np.where(np.isnan(x), MISSING, x).astype(np.uint8)

    def _keep(self, progress: Progress) -> None:
        """Keep what a run tells beside its parameters."""
        progress.best = progress.copies = None  # the network has it
        self.progress_ = progress
        self.history_, self.stopped_ = tuple(progress.history), progress.finished

    def _chunks(self, X: Any) -> Iterator[Floats]:
        """Yield the atoms of rows, dense, a bounded number at a time."""
        check_is_fitted(self)
        atoms = read_atoms(
            read_table(self, X, reset=False), self.layout_, strict=self._strict(), odd=self.odd_cells
        )
        for part in (atoms[places] for places in slices(atoms.shape[0], PREDICTED_ROWS)):
            yield part if isinstance(part, np.ndarray) else part.toarray()

    def _strict(self) -> set[int]:
        """Return the atoms that knowledge mentions: what it says is about truth values."""
        known = self.parameters().knowledge
        given = known.signs[: len(known.columns), : known.units - known.learned]
        return set(np.unique(given.tocoo().row).tolist())

    def _log_probabilities(self, X: Any) -> Floats:
        """Return log p(k | x) of all rows, shape (rows, classes), computed in double precision.

        Without training, classes that tie for the best share what they have: a machine of the paper's units
        leans a little to the class whose rules are nearly met, which says nothing, and sums have roundings.
        """
        check_is_fitted(self)
        parameters, found = self.parameters(), []
        for x in self._chunks(X):
            logs = log_probabilities(parameters, x, seed=self.seed_)
            if not self._is_trained():
                p = np.exp(logs)
                tied = self._level_classes(logs) if parameters.calibrated else _tied_classes(parameters, x)
                even = np.log((p * tied).sum(axis=1, keepdims=True) / tied.sum(axis=1, keepdims=True))
                logs = np.where(tied & (tied.sum(axis=1, keepdims=True) > 1), even, logs)
            found.append(logs)
        return np.concatenate(found)


@contextmanager
def few_threads(data: Data) -> Iterator[None]:
    """Keep to one thread where batches are too small for more: starting them takes longer than they save."""
    if len(data.rows) * data.rows.values.shape[1] >= MANY_CELLS:
        yield
        return
    torch = load_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


# --- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """Training that can begin: a classifier with its first network, its data, and how to descend.

    ``numbers`` are what rows are called; ``train`` and ``validation`` are places among them; ``facts`` is
    what the run is made from, where somebody asks for it; ``held`` is what was fitted in the turns before, if
    free units learn after them.
    """

    classifier: LBMClassifier
    data: Data
    numbers: Ints
    cost: Cost
    plan: Plan
    train: Ints
    validation: Ints
    facts: Mapping[str, Any] = field(default_factory=dict)
    held: Held | None = None

    def steps(self, progress: Progress) -> Iterator[Progress]:
        """Descend, yielding ``progress`` after every batch: the places where a run can be left."""
        network = self.classifier.network_
        if self.held is not None:
            from lbm.training.gradients.copies import LEARNED, begin_copies, copy_steps

            if progress.copies is None:
                own = {name: network.get_parameter(name).detach().numpy() for name in LEARNED}
                progress.copies = begin_copies(own, self.held.inside.shape[1])
            return copy_steps(progress, self.held, network.patterns.numpy(), self.cost, self.plan)
        rows = {"train": self.train, "validation": self.validation}
        from lbm.training.gradients.descent import steps

        return steps(progress, self.data, self.cost, self.plan, **rows)

    def finish(self, progress: Progress) -> LBMClassifier:
        """Return the classifier with the best parameters that the run came to."""
        from lbm.training.gradients.descent import restore_best

        if self.held is not None:
            from lbm.training.gradients.copies import earned

            if not earned(progress, self.held):
                progress.best = None
        restore_best(progress)
        self.classifier._keep(progress)
        return self.classifier


def prepare(classifier: LBMClassifier, examples: Examples) -> TrainingRun:
    """Return the run of ``classifier.fit`` on these examples, not begun."""
    cost, layout = classifier._cost(), examples.layout
    classifier._know_columns(layout)
    classifier._assemble(layout, examples.classes, examples.target, read_knowledge(classifier.knowledge))
    rows = classifier._rows(examples.atoms)
    data = classifier._data(rows, examples.kinds, np.ones(len(rows)))
    with few_threads(data):
        return classifier._prepare(cost, data, np.arange(len(rows), dtype=np.int64))


# --- rows ---------------------------------------------------------------------------------------


def _broken_rows(knowledge: Knowledge, data: Data, numbers: Ints) -> tuple[Broken, ...]:
    """Return the fixed formulae that rows break, with those rows; ``numbers`` are what rows are called.

    A row that misses a value the formula mentions breaks nothing.
    """
    hard = [s for s, fixed in zip(knowledge.statements, knowledge.fixed, strict=True) if fixed]
    # Formulae carry names as atoms do, near(a, b), whatever blanks the table's own names have.
    place = {known_as(name): i for i, name in enumerate((*knowledge.columns, *knowledge.labels))}
    patterns = label_patterns(len(knowledge.labels))
    found: list[list[int]] = [[] for _ in hard]
    for places in slices(len(numbers), 4096):
        part = np.arange(places.start, places.stop)
        rows = data.rows.batch(part).cpu().numpy()
        world = np.concatenate([rows, patterns[data.kinds[part]]], axis=1)
        for number, statement in enumerate(hard):
            columns = {name: world[:, place[name]] for name in atoms_of(statement.formula)}
            seen = ~np.isnan(np.array(list(columns.values())).reshape(-1, len(part))).any(axis=0)
            true = holds(statement.formula, {name: values == 1 for name, values in columns.items()})
            found[number] += numbers[part[seen & ~np.broadcast_to(true, len(part))]].tolist()
    said = [str(plain(statement.formula)) for statement in hard]
    return tuple(Broken(text, tuple(mine)) for text, mine in zip(said, found, strict=True) if mine)


def _tied_classes(parameters: Parameters, x: Floats) -> Bools:
    """Return the classes of greatest -min_h E(x, k), shape (rows, classes): several, if they tie.

    Where a value is missing every unit gets the value that suits it best.
    """
    model = as_classifier(parameters)
    features, missing = model.machine.weights[: len(model.columns)], np.isnan(x)
    inputs = np.nan_to_num(x) @ features + model.machine.hidden_bias
    if missing.any():
        inputs = inputs + missing @ features.maximum(0)
    added = model.patterns @ model.label_weights
    scores = np.stack([np.maximum(inputs + one, 0.0).sum(axis=1) for one in added], axis=1)
    scores += model.patterns @ model.label_bias
    best = scores.max(axis=1, keepdims=True)
    return np.asarray(scores >= best - TIE * np.maximum(1.0, np.abs(best)))
