"""What a classifier needs around its training: knowledge and classes read, rows that break rules, ties."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
)

from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.chains import Block
from lbm.training.boltzmann.knowledge import Knowledge, compile_knowledge, label_patterns
from lbm.training.boltzmann.missing import find_patterns, predict_log_probabilities
from lbm.training.boltzmann.network import Network, to_machine
from lbm.training.explanations.explain import known_as
from lbm.training.gradients.descent import Data, rows_of

DEFAULT_WEIGHT: Final = 1.0
"""What ``default=True`` weighs: less than one rule at the usual confidence, more than several nearly met."""

TIE: Final = 1e-9
"""Scores nearer than this, in proportion to their size, are equal."""

PREDICTED_ROWS: Final = 4096
"""Rows that are made dense at once in a prediction."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Confidence:
    """A formula, the confidence it began with, the one it has now, and whether it was fixed."""

    formula: str
    initial: float
    final: float
    fixed: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """A formula that was kept as it is, and the numbers of the training rows that break it."""

    formula: str
    rows: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many rows break it."""
        return len(self.rows)


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


def read_classes(
    y: Any, sample_weight: Any, table: Any, *, known: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Return classes of rows, the distinct ones, and weights, all checked.

    With ``known``, classes that are not among these are an error.
    """
    if y is None:
        raise ValueError("LBMClassifier requires y to be passed, but the target y is None")
    check_consistent_length(table, y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    try:
        kinds = np.unique(y)
    except TypeError:
        raise ValueError(
            "classes must be comparable, all numbers or all text: some of y is missing or mixed"
        ) from None
    if known is not None:
        strange = np.setdiff1d(kinds, known)
        if len(strange):
            raise ValueError(f"y holds {strange[0]!r}, which is not among the classes {known.tolist()}")
    weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    return y, kinds, weights


def target_name(target: str | None, y: Any) -> str:
    """Return the name of the label atom: as given, else that of ``y``, else ``y``."""
    if target is not None:
        return target
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "y"


def label_bias(default: bool | float | Mapping[Any, float] | None, classes: NDArray[Any]) -> Floats:
    """Return where the bias of the label atoms begins, shape (labels,), for a closed-world preference."""
    two = len(classes) == 2
    bias = np.zeros(1 if two else len(classes))
    if default is None or default is False:
        return bias
    if isinstance(default, Mapping):
        worth = np.zeros(len(classes))
        for kind, weight in default.items():
            found = np.flatnonzero(classes == kind)
            if not len(found):
                raise ValueError(
                    f"default= names {kind!r}, which is not among the classes {classes.tolist()}"
                )
            worth[found[0]] = weight
        return worth[1:] - worth[:1] if two else worth
    if not two:
        raise ValueError(
            f"default={default!r} is for two classes, got {len(classes)}: "
            "give a dict such as {'none': 1.0} that says which class is preferred, and how much"
        )
    bias[0] = -(DEFAULT_WEIGHT if default is True else float(default))
    return bias


def confidences(network: Network) -> tuple[Confidence, ...]:
    """Return every formula with the confidence it began with and the one it has.

    Of free literals, the mean of sign times weight over the literals of the formula's units.
    """
    known = network.knowledge
    final = network.confidences().detach().cpu().numpy()
    if network.literals == "free":
        lengths = np.diff(known.signs.indptr)
        pull = network.literal_weights.detach().cpu().numpy() * known.signs.data
        total = np.bincount(np.repeat(np.arange(known.units), lengths), pull, minlength=known.units)
        among = np.bincount(known.owner, lengths[known.unit], minlength=len(final))
        sums = np.bincount(known.owner, total[known.unit], minlength=len(final))
        final = np.where(among > 0, sums / np.maximum(among, 1), final)
    texts = [str(statement) for statement in known.statements]
    rows = zip(texts, known.initial.tolist(), final.tolist(), known.fixed.tolist(), strict=True)
    return tuple(Confidence(*row) for row in rows)


def broken_rows(knowledge: Knowledge, data: Data, numbers: NDArray[np.int64]) -> tuple[Broken, ...]:
    """Return the fixed formulae that rows break, with those rows; ``numbers`` are what rows are called.

    A row that misses a value the formula mentions breaks nothing.
    """
    hard = [s for s, fixed in zip(knowledge.statements, knowledge.fixed, strict=True) if fixed]
    # Formulae carry names as atoms do, near(a, b), whatever blanks the table's own names have.
    place = {known_as(name): i for i, name in enumerate((*knowledge.columns, *knowledge.labels))}
    patterns = label_patterns(len(knowledge.labels))
    found: list[list[int]] = [[] for _ in hard]
    for first in range(0, len(numbers), 4096):
        part = np.arange(first, min(first + 4096, len(numbers)))
        rows = data.rows.batch(part).cpu().numpy()
        world = np.concatenate([rows, patterns[data.kinds[part]]], axis=1)
        for number, statement in enumerate(hard):
            columns = {name: world[:, place[name]] for name in atoms_of(statement.formula)}
            seen = ~np.isnan(np.array(list(columns.values())).reshape(-1, len(part))).any(axis=0)
            true = holds(statement.formula, {name: values == 1 for name, values in columns.items()})
            found[number] += numbers[part[seen & ~np.broadcast_to(true, len(part))]].tolist()
    return tuple(Broken(str(s), tuple(mine)) for s, mine in zip(hard, found, strict=True) if mine)


def tied_classes(network: Network, x: Floats) -> NDArray[np.bool_]:
    """Return the classes of greatest -min_h E(x, k), shape (rows, classes): several, if they tie.

    Where a value is missing every unit gets the value that suits it best.
    """
    machine = to_machine(network)
    columns = len(network.knowledge.columns)
    features, labels = machine.weights[:columns], machine.weights[columns:].toarray()
    missing = np.isnan(x)
    inputs = np.nan_to_num(x) @ features + machine.hidden_bias
    if missing.any():
        inputs = inputs + missing @ features.maximum(0)
    patterns = label_patterns(len(network.knowledge.labels)).astype(np.float64)
    scores = np.stack(
        [np.maximum(inputs + pattern @ labels, 0.0).sum(axis=1) for pattern in patterns], axis=1
    )
    scores += patterns @ machine.visible_bias[columns:]
    best = scores.max(axis=1, keepdims=True)
    return np.asarray(scores >= best - TIE * np.maximum(1.0, np.abs(best)))


def start_network(estimator: Any, theory: Theory | None) -> Network:
    """Return the network that an estimator's parameters describe, before training."""
    dtypes = {"float32": torch.float32, "float64": torch.float64}
    if estimator.dtype not in dtypes:
        raise ValueError(f"dtype must be 'float32' or 'float64', got {estimator.dtype!r}")
    if estimator.hidden < 0:
        raise ValueError(f"hidden is a whole number from 0 up, got {estimator.hidden}")
    knowledge = compile_knowledge(
        theory,
        columns=estimator.atoms_,
        labels=estimator.labels_,
        encoding=estimator.encoding,
        confidence=estimator.confidence,
        hard=estimator.hard,
    )
    network = Network(
        knowledge,
        hidden=estimator.hidden,
        literals=estimator.literals,
        dtype=dtypes[estimator.dtype],
        device=estimator.device,
        seed=estimator.seed_,
    )
    with torch.no_grad():
        network.label_bias.copy_(torch.as_tensor(label_bias(estimator.default, estimator.classes_)))
    return network


def training_data(
    estimator: Any, atoms: Any, y: NDArray[Any], weights: Floats, blocks: tuple[Block, ...]
) -> Data:
    """Return rows of atoms with their classes and weights, those of the classes included, as data."""
    weights = weights * compute_sample_weight(estimator.class_weight, y)
    values = atoms if isinstance(atoms, np.ndarray) else atoms.data
    return Data(
        rows_of(atoms, dtype=estimator.network_.weights.dtype, device=estimator.device),
        np.searchsorted(estimator.classes_, y).astype(np.int64),
        weights / weights.mean(),
        blocks,
        gaps=bool(np.isnan(values).any()),
    )


def dense_parts(atoms: Any) -> Iterator[Floats]:
    """Yield rows as dense arrays, a bounded number at a time."""
    for first in range(0, atoms.shape[0], PREDICTED_ROWS):
        part = atoms[first : first + PREDICTED_ROWS]
        yield part if isinstance(part, np.ndarray) else part.toarray()


def log_probabilities(
    network: Network, parts: Iterable[Floats], blocks: Sequence[Block], *, seed: int, known_only: bool
) -> Floats:
    """Return log p(k | x) of all rows, shape (rows, classes), computed in double precision.

    With ``known_only``, classes that tie for the best share what they have: a machine of finite confidence
    leans a little to the class whose rules are nearly met, which says nothing.
    """
    network = copy.deepcopy(network).to(device="cpu", dtype=torch.float64)
    found = []
    for x in parts:
        logs = predict_log_probabilities(network, torch.tensor(x), blocks=blocks, seed=seed)[0].numpy()
        if known_only:
            tied, p = tied_classes(network, x), np.exp(logs)
            even = np.log((p * tied).sum(axis=1, keepdims=True) / tied.sum(axis=1, keepdims=True))
            logs = np.where(tied & (tied.sum(axis=1, keepdims=True) > 1), even, logs)
        found.append(logs)
    return np.concatenate(found)


def exact_rows(network: Network, parts: Iterable[Floats], blocks: Sequence[Block]) -> NDArray[np.bool_]:
    """Return which rows are predicted exactly, shape (rows,)."""
    found = []
    for x in parts:
        exact = np.ones(len(x), dtype=bool)
        for pattern in find_patterns(network, torch.tensor(x), blocks):
            exact[pattern.rows] = pattern.exact
        found.append(exact)
    return np.concatenate(found)
