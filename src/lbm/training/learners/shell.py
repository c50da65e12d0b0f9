"""Shell: what the classifier does around its network, out of sight: atoms made, plans drawn, runs kept."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.errors import MissingExtra
from lbm.knowledge.formula import atoms_of
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.conjectures import CELLS, conjecture
from lbm.training.boltzmann.knowledge import label_names
from lbm.training.boltzmann.network import Network
from lbm.training.data.table import Layout, column_names, fit_layout, read_atoms, read_table
from lbm.training.gradients.costs import Cost, cost_of
from lbm.training.gradients.descent import Data, Epoch, Ints, Plan, Progress, blocks_of, stream
from lbm.training.learners.fitting import (
    Broken,
    broken_rows,
    dense_parts,
    log_probabilities,
    read_knowledge,
    start_network,
    training_data,
)

try:
    import torch
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:  # pragma: no cover - every test environment has them
    raise MissingExtra("train", "lbm.LBMClassifier", "scikit-learn") from error

CONJECTURE: Final = 4
"""What its random numbers are for, beside those of descent and of chains."""

Floats = NDArray[np.float64]


class Shell(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The inside of :class:`lbm.training.learners.classifier.LBMClassifier`, whose parameters it uses."""

    classes_: NDArray[Any]
    network_: Network
    layout_: Layout
    progress_: Progress | None

    def _number(self, kind: Any) -> int:
        """Return the number of a class."""
        found = np.flatnonzero(self.classes_ == kind)
        if not len(found):
            raise ValueError(f"expected one of the classes {self.classes_.tolist()}, got {kind!r}")
        return int(found[0])

    def _cost(self) -> Cost:
        return cost_of(
            self.cost,
            alpha=self.alpha,
            beta=self.beta,
            steps=self.steps,
            persistent=self.persistent,
            l1=self.l1,
            l2=self.l2,
            trust=self.trust,
            unaided=self.unaided,
        )

    def _plan(self, rows: int) -> Plan:
        size = min(max(rows // 16, 8), 256) if self.batch_size is None else self.batch_size
        return Plan(
            learning_rate=self.learning_rate,
            batch_size=size,
            max_epochs=self.max_epochs,
            max_seconds=self.max_seconds,
            patience=self.patience,
            seed=self.seed_,
        )

    def _start(self, table: Any, classes: NDArray[Any], target: str, *, drop: bool) -> None:
        """Decide on atoms and classes, and make the network that training begins with."""
        theory = read_knowledge(self.knowledge)
        mentioned = () if theory is None else atoms_of(*(statement.formula for statement in theory))
        columns = column_names(self, table, self.names)
        layout = fit_layout(table, columns, mentioned, encode=self.encode, drop=drop)
        self._assemble(layout, classes, target, theory)

    def _assemble(self, layout: Layout, classes: NDArray[Any], target: str, theory: Theory | None) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"expected at least 2 classes to tell apart, got {len(classes)} class: {classes}"
            )
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.classes_, self.target_, self.layout_ = classes, target, layout
        self.labels_ = label_names(target, classes.tolist())
        self.atoms_ = layout.atoms
        self.network_ = start_network(self, theory)
        self.progress_ = None
        self.history_: tuple[Epoch, ...] = ()
        self.stopped_: str | None = None
        self.broken_: tuple[Broken, ...] = ()

    def _blocks(self, dtype: torch.dtype, device: str) -> Any:
        return blocks_of(self.layout_.blocks, dtype=dtype, device=device)

    def _data(self, table: Any, y: NDArray[Any], weights: Floats) -> tuple[Data, NDArray[np.int64]]:
        """Return the rows of weight above 0 as training data, and their numbers."""
        rows = np.flatnonzero(weights > 0)
        atoms = read_atoms(table, self.layout_, dtype=self.dtype, strict=self._strict())[rows]
        if not self.network_.visible_bias.any():
            self.network_.start_at(atoms)
        blocks = self._blocks(self.network_.weights.dtype, self.device)
        return training_data(self, atoms, y[rows], weights[rows], blocks), rows

    def _conjecture(self, data: Data, train: Ints) -> None:
        """Add rules that the rows trained on suggest to a network whose training has not begun."""
        most = self.conjectures
        if isinstance(most, bool) or not isinstance(most, Integral) or int(most) < 0:
            raise ValueError(f"conjectures is a whole number from 0 up, got {most!r}")
        before = self.network_
        if not most or not before.knowledge.units:
            return
        random = stream(self.seed_, CONJECTURE)
        rows = random.permutation(train)[: max(1, CELLS // len(self.atoms_))]
        found = conjecture(
            before.knowledge,
            data.rows.batch(rows).cpu().numpy(),
            data.kinds[rows],
            data.weights[rows],
            most=int(most),
            seed=int(random.integers(2**31)),
        )
        if not found:
            return
        added = ((self.confidence, formula) for formula in found)
        self.network_ = start_network(self, Theory([*before.knowledge.statements, *added]))
        with torch.no_grad():
            self.network_.visible_bias.copy_(before.visible_bias)

    def _finish(self, data: Data, rows: NDArray[np.int64]) -> None:
        """Keep what a run tells beside its parameters."""
        progress = self.progress_
        assert progress is not None
        progress.best = None  # the network has it
        self.history_, self.stopped_ = tuple(progress.history), progress.finished
        self.broken_ = broken_rows(self.network_.knowledge, data, rows) if self.hard else ()

    def _chunks(self, X: Any) -> Iterator[Floats]:
        """Yield the atoms of rows, dense, a bounded number at a time."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        return dense_parts(read_atoms(table, self.layout_, strict=self._strict()))

    def _strict(self) -> set[int]:
        """Return the atoms that knowledge mentions: what it says is about truth values."""
        return set(self.network_.used.tolist())

    def _log_probabilities(self, X: Any) -> Floats:
        chunks = self._chunks(X)
        blocks, known_only = self._blocks(torch.float64, "cpu"), self.progress_ is None
        return log_probabilities(self.network_, chunks, blocks, seed=self.seed_, known_only=known_only)
