"""What the estimators share: parameters and how they are checked, knowledge, and the network made of both."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from lbm.knowledge.formula import Formula, atoms_of
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.network import Network
from lbm.training.data.encoder import TableEstimator, column_names
from lbm.training.data.names import plain
from lbm.training.data.rows import Rows
from lbm.training.data.table import Layout, fit_layout


@dataclass(frozen=True, slots=True)
class Confidence:
    """A formula, the confidence it began with, the one it has now, and whether it was fixed."""

    formula: str
    initial: float
    final: float
    fixed: bool


@dataclass(kw_only=True, eq=False, repr=False)
class Learner(TableEstimator):
    """The parameters of :class:`LBMClassifier` and :class:`LogicalRBM`, which say what they mean.

    A dataclass writes the ``__init__`` that scikit-learn asks for: it takes keywords, and stores them.
    """

    knowledge: Theory | Formula | str | Path | None = None
    hidden: int = 50
    confidence: float = 5.0
    hard: bool = False
    literals: str = "tied"
    steps: int = 1
    persistent: bool = False
    learning_rate: float = 0.01
    batch_size: int | None = None
    max_epochs: int = 200
    l1: float = 0.0
    l2: float = 0.05
    encode: str = "auto"
    odd_cells: str = "text"
    names: Sequence[str] | None = None
    dtype: str = "float32"
    device: str = "cpu"
    random_state: Any = None
    verbose: int = 0

    @property
    def confidences_(self) -> tuple[Confidence, ...]:
        """Every formula with the confidence it began with and the one it has.

        Of free literals, the mean of sign times weight over the literals of the formula's units.
        """
        network, known = self.network_, self.network_.knowledge
        final = network.confidences().detach().cpu().numpy()
        if network.literals == "free":
            lengths = np.diff(known.signs.indptr)
            pull = network.literal_weights.detach().cpu().numpy() * known.signs.data
            total = np.bincount(np.repeat(np.arange(known.units), lengths), pull, minlength=known.units)
            among = np.bincount(known.owner, lengths[known.unit], minlength=len(final))
            sums = np.bincount(known.owner, total[known.unit], minlength=len(final))
            final = np.where(among > 0, sums / np.maximum(among, 1), final)
        texts = [str(replace(each, formula=plain(each.formula))) for each in known.statements]
        rows = zip(texts, known.initial.tolist(), final.tolist(), known.fixed.tolist(), strict=True)
        return tuple(Confidence(*row) for row in rows)

    def _lay_out(self, table: Any, theory: Theory | None, *, drop: bool) -> Layout:
        """Return how the columns of a table become atoms."""
        columns = column_names(self, table, self.names)
        return fit_layout(
            table, columns, mentioned_atoms(theory), encode=self.encode, drop=drop, odd=self.odd_cells
        )

    def _begin(
        self,
        layout: Layout,
        theory: Theory | None,
        labels: Sequence[str] = (),
        encoding: str = "sdnf",
        units: str = "paper",
    ) -> None:
        """Keep the atoms, and make the network that training begins with."""
        self.layout_, self.atoms_ = layout, layout.atoms
        self.network_ = Network(
            compile_knowledge(
                theory,
                columns=self.atoms_,
                labels=labels,
                encoding=encoding,
                confidence=self.confidence,
                hard=self.hard,
                units=units,
            ),
            hidden=self.hidden,
            literals=self.literals,
            groups=layout.groups,
            dtype=getattr(torch, self.dtype),
            device=self.device,
            seed=self.seed_,
        )

    def _rows(self, atoms: Any) -> Rows:
        """Return the atoms of rows as the network is trained on them."""
        return Rows(atoms, dtype=self.network_.weights.dtype, device=self.device)

    def _precise(self) -> Network:
        """Return the network in double precision on the CPU."""
        return copy.deepcopy(self.network_).to(device="cpu", dtype=torch.float64)


def read_knowledge(knowledge: Theory | Formula | str | Path | None) -> Theory | None:
    """Return knowledge as a theory: from its text, a formula, or the path of a file."""
    if knowledge is None or isinstance(knowledge, Theory):
        return knowledge
    if isinstance(knowledge, str):
        return Theory.parse(knowledge, source="knowledge")
    if isinstance(knowledge, Formula):
        return Theory([knowledge])
    if isinstance(knowledge, Path):
        return Theory.load(knowledge)
    raise TypeError(f"expected knowledge as a Theory, its text, a formula or a Path, got {knowledge!r}")


def mentioned_atoms(theory: Theory | None) -> tuple[str, ...]:
    """Return the atoms that knowledge mentions."""
    return () if theory is None else tuple(atoms_of(*(statement.formula for statement in theory)))


def draw_seed(random_state: Any) -> int:
    """Return a seed as scikit-learn's parameter ``random_state`` gives it."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number from ``least`` up."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} is a whole number from {least} up, got {value!r}")
