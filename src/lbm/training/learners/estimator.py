"""What the estimators share: parameters and how they are checked, knowledge, and the network made of both."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lbm.errors import MissingExtra
from lbm.knowledge.formula import Formula, atoms_of
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import Knowledge, compile_knowledge
from lbm.training.boltzmann.parameters import Parameters, parameters_of
from lbm.training.data.encoder import TableEstimator, column_names
from lbm.training.data.names import plain
from lbm.training.data.table import Layout, fit_layout

if TYPE_CHECKING:  # torch is loaded to learn, not to know
    from lbm.training.boltzmann.network import Network
    from lbm.training.data.rows import Rows


@dataclass(frozen=True, slots=True)
class Confidence:
    """A formula, the confidence it began with, the one it has now, and whether it was fixed.

    Where rows were looked at, also how many of them it fires on, the share it is right for, and its lift:
    that share over what it would be by chance. See :class:`Firing`.
    """

    formula: str
    initial: float
    final: float
    fixed: bool
    rows: int | None = None
    right: float | None = None
    lift: float | None = None


@dataclass(frozen=True, slots=True)
class Firing:
    """What rows say of a rule: how many it fires on, the share of them it is right for, and its lift.

    A formula fires where it does not say the same of every class. The lift is the share right over what it
    would be if the classes of those rows were drawn from those of all rows.
    """

    rows: int
    right: float | None
    lift: float | None


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
        learned = self.parameters()
        known, final = learned.knowledge, learned.confidences
        if learned.literals == "free":
            lengths = np.diff(known.signs.indptr)
            pull = learned.arrays["literal_weights"] * known.signs.data
            total = np.bincount(np.repeat(np.arange(known.units), lengths), pull, minlength=known.units)
            among = np.bincount(known.owner, lengths[known.unit], minlength=len(final))
            sums = np.bincount(known.owner, total[known.unit], minlength=len(final))
            final = np.where(among > 0, sums / np.maximum(among, 1), final)
        texts = [str(replace(each, formula=plain(each.formula))) for each in known.statements[: known.given]]
        rows = zip(texts, known.initial.tolist(), final.tolist(), known.fixed.tolist(), strict=False)
        firings = [astuple(firing) for firing in getattr(self, "firings_", ())] or [()] * len(texts)
        return tuple(Confidence(*row, *firing) for row, firing in zip(rows, firings, strict=True))

    def _lay_out(self, table: Any, theory: Theory | None, *, drop: bool, thresholds: int = 4) -> Layout:
        """Return how the columns of a table become atoms."""
        columns = column_names(self, table, self.names)
        options: dict[str, Any] = {"encode": self.encode, "drop": drop, "odd": self.odd_cells}
        return fit_layout(table, columns, mentioned_atoms(theory), thresholds=thresholds, **options)

    def _begin(
        self,
        layout: Layout,
        theory: Theory | None,
        labels: Sequence[str] = (),
        encoding: str = "sdnf",
        units: str = "paper",
    ) -> None:
        """Keep the atoms, and make the network that training begins with."""
        self._stored: tuple[Parameters, bool] | None = None
        self.layout_, self.atoms_ = layout, layout.atoms
        self.network_ = self._network(
            compile_knowledge(
                theory,
                columns=self.atoms_,
                labels=labels,
                encoding=encoding,
                confidence=self.confidence,
                hard=self.hard,
                units=units,
            )
        )

    def _network(self, knowledge: Knowledge) -> Network:
        """Return the network that training of this knowledge begins with."""
        torch = load_torch()
        from lbm.training.boltzmann.network import Network

        return Network(
            knowledge,
            hidden=self.hidden,
            literals=self.literals,
            groups=self.layout_.groups,
            dtype=getattr(torch, self.dtype),
            device=self.device,
            seed=self.seed_,
        )

    def _rows(self, atoms: Any) -> Rows:
        """Return the atoms of rows as the network is trained on them."""
        from lbm.training.data.rows import Rows

        return Rows(atoms, dtype=self.network_.weights.dtype, device=self.device)

    def _precise(self) -> Network:
        """Return the network in double precision on the CPU."""
        torch = load_torch()
        network: Network = copy.deepcopy(self.network_).to(device="cpu", dtype=torch.float64)
        return network

    # -- what is known without torch --

    def know(self, parameters: Parameters, *, trained: bool) -> Self:
        """Take what was learned elsewhere, such as a file's numbers; a network is made when asked for."""
        for name in ("network_", "progress_"):
            self.__dict__.pop(name, None)
        self._stored = parameters, trained
        return self

    def parameters(self) -> Parameters:
        """Return what was learned as plain numbers."""
        check_is_fitted(self)
        stored = self.__dict__.get("_stored")
        return parameters_of(self.network_) if stored is None else stored[0]

    def _is_trained(self) -> bool:
        """Return whether rows were learned from; else there is knowledge alone."""
        stored = self.__dict__.get("_stored")
        return self.progress_ is not None if stored is None else stored[1]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Make a stored learner's network, and the state of its training, when they are asked for."""
            stored = self.__dict__.get("_stored") if name in ("network_", "progress_") else None
            if stored is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self._unpack(*stored)
            return self.__dict__[name]

    def _unpack(self, parameters: Parameters, trained: bool) -> None:
        """Make a network of stored parameters, to be trained on."""
        load_torch()
        from lbm.training.boltzmann.network import network_of
        from lbm.training.gradients.descent import Progress, begin

        self.network_ = network_of(parameters)
        self._stored = None
        progress: Progress | None = None
        if trained:
            progress = begin(self.network_)
            history = getattr(self, "history_", ())
            progress.epoch, progress.history = len(history), list(history)
            progress.finished = getattr(self, "stopped_", None)
        self.progress_ = progress


def load_torch() -> Any:
    """Return torch, which training needs and predictions do not."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("train", "training", "torch") from None
    return torch


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
