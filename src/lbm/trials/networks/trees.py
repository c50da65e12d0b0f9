"""Labels in a hierarchy: who has a label has all above it. The theory is that, ``child -> parent``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import FileError
from lbm.knowledge.packed import read_lines
from lbm.nn import LogicLayer
from lbm.trials.learners.sets import data_of
from lbm.trials.networks.fitting import dense, fit, one_thread, parted
from lbm.trials.networks.scores import Score

SETS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "cellcycle": (("cellcycle_FUN.train", "cellcycle_FUN.valid"), "cellcycle_FUN.test"),
    "Diatoms": (("Diatoms_train",), "Diatoms_test"),
    "Enron": (("Enron_corr_trainvalid",), "Enron_corr_test"),
    "ImCLEF07A": (("ImCLEF07A_Train",), "ImCLEF07A_Test"),
    "ImCLEF07D": (("ImCLEF07D_Train",), "ImCLEF07D_Test"),
}
"""The files of each set: what is trained on, and what judges."""

HELD_OUT: Final = 5
"""One of so many training rows is held out where settings are chosen."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows of numbers with labels of a hierarchy.

    Attributes
    ----------
    names
        Labels by their paths, parents before children.
    cells
        Shape (rows, columns); nan where nothing is known.
    labels
        Shape (rows, labels), closed upwards.
    """

    names: tuple[str, ...]
    cells: Floats
    labels: Bools

    @cached_property
    def parents(self) -> Ints:
        """The number of each label's parent, -1 for those that have none."""
        place = {name: number for number, name in enumerate(self.names)}
        return np.array([place.get(name.rpartition("/")[0], -1) for name in self.names])


def read_arff(text: str, name: str) -> Labelled:
    """Return rows of an ARFF file whose last attribute is ``hierarchical``.

    >>> found = read_arff('''@attribute x numeric
    ... @attribute class hierarchical 1,1/2,3
    ... @data
    ... 0.5,1/2@3''', "made")
    >>> found.names, found.cells.tolist(), found.labels.tolist()
    (('1', '3', '1/2'), [[0.5]], [[True, True, True]])
    """
    head, mark, body = _parted(text)
    attributes = [line.split(maxsplit=2) for line in head if line.lower().startswith("@attribute")]
    if (
        not mark
        or not attributes
        or len(attributes[-1]) != 3
        or "hierarchical" not in attributes[-1][2].lower()
    ):
        raise FileError(f"cannot read {name}: expected an ARFF file whose last attribute is hierarchical")
    listed = attributes[-1][2].split(maxsplit=1)[-1].replace(" ", "").split(",")
    closed = {path for label in listed for path in upwards(label)}
    names = tuple(sorted(closed, key=lambda path: (path.count("/"), path)))
    place = {label: number for number, label in enumerate(names)}
    cells = np.full((len(body), len(attributes) - 1), np.nan)
    labels = np.zeros((len(body), len(names)), dtype=bool)
    for row, line in enumerate(body):
        *values, said = line.split(",")
        try:
            for column, value in enumerate(values):
                cells[row, column] = np.nan if value.strip() == "?" else float(value)
            labels[row, [place[path] for label in said.strip().split("@") for path in upwards(label)]] = True
            if len(values) != cells.shape[1]:
                raise ValueError
        except (ValueError, KeyError, IndexError):
            raise FileError(
                f"cannot read {name}: expected {cells.shape[1]} numbers and known labels in row {row + 1}"
            ) from None
    return Labelled(names, cells, labels)


def _parted(text: str) -> tuple[list[str], bool, list[str]]:
    """Return the lines of the head, whether data follow, and their lines."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("%")]
    start = next((i for i, line in enumerate(lines) if line.lower() == "@data"), None)
    return (lines, False, []) if start is None else (lines[:start], True, lines[start + 1 :])


def upwards(path: str) -> list[str]:
    """Return a label and all above it.

    >>> upwards("1/2/3")
    ['1', '1/2', '1/2/3']
    """
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def joined(parts: list[Labelled], name: str) -> Labelled:
    """Return the rows of several files with the same labels, one after the other."""
    if len({part.names for part in parts}) > 1 or len({part.cells.shape[1] for part in parts}) > 1:
        raise FileError(f"cannot read {name}: expected files with the same columns and labels")
    cells = np.concatenate([part.cells for part in parts])
    return Labelled(parts[0].names, cells, np.concatenate([part.labels for part in parts]))


def read_set(name: str, folder: Path) -> tuple[Labelled, Labelled]:
    """Return what a set has to train on, and what judges."""
    train, test = SETS[name]

    def read(file: str) -> Labelled:
        path = folder / f"{file}.arff.gz"
        return read_arff(read_lines(path), str(path))

    learned, judged = joined([read(file) for file in train], name), read(test)
    joined([learned, judged], name)
    return learned, judged


def theory(names: tuple[str, ...], parents: Ints) -> str:
    """Return that a label implies its parent, as text.

    >>> print(theory(("1", "1/2"), np.array([-1, 0])))
    atoms '1', '1/2'
    '1/2' -> '1'
    """
    rules = [f"'{names[child]}' -> '{names[parent]}'" for child, parent in enumerate(parents) if parent >= 0]
    return "\n".join([f"atoms {', '.join(repr(name) for name in names)}", *rules])


def scaled(train: Floats, *others: Floats) -> list[Tensor]:
    """Return columns shifted and scaled to mean 0 and deviation 1 in the first; what is missing is 0."""
    mean, deviation = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    deviation[~(deviation > 0)] = 1.0
    return [
        torch.from_numpy(np.nan_to_num((cells - mean) / deviation).clip(-10, 10)).float()
        for cells in (train, *others)
    ]


def raised(chances: NDArray[np.floating], parents: Ints) -> NDArray[np.floating]:
    """Return chances in which a parent has at least that of each child (max rule)."""
    found = chances.copy()
    for child in reversed(range(len(parents))):  # parents are before their children
        if parents[child] >= 0:
            found[:, parents[child]] = np.maximum(found[:, parents[child]], found[:, child])
    return found


def broken(labels: Bools, parents: Ints) -> int:
    """Return in how many rows a label is true and its parent is not."""
    children = np.flatnonzero(parents >= 0)
    return int((labels[:, children] & ~labels[:, parents[children]]).any(axis=1).sum())


@dataclass(frozen=True)
class TreeRecipe:
    """How a network is trained, chosen on rows held out of training."""

    hidden: int = 512
    layers: int = 2
    dropout: float = 0.5
    epochs: int = 40
    batch: int = 64
    rate: float = 2e-3
    decay: float = 0.01
    average: float = 0.995
    heads: int = 4


RECIPE: Final = TreeRecipe()

RECIPES: Final[Mapping[str, TreeRecipe]] = {}
"""Those that differ from the common one, by set."""


def measure(seed: int, *, name: str, test: bool = True, recipe: TreeRecipe | None = None) -> list[Score]:
    """Train the same network in four ways: plain outputs, the max rule, the layer, and it with heads."""
    recipe = recipe or RECIPES.get(name, RECIPE)
    learned, judged = read_set(name, data_of("hierarchies") / "hierarchies")
    if not test:
        rows = np.random.default_rng(seed).permutation(len(learned.cells))
        cut = len(rows) // HELD_OUT
        judged = Labelled(learned.names, learned.cells[rows[:cut]], learned.labels[rows[:cut]])
        learned = Labelled(learned.names, learned.cells[rows[cut:]], learned.labels[rows[cut:]])
    parents = learned.parents
    text = theory(learned.names, parents)
    layers = {
        heads: LogicLayer(text, inputs=learned.names, heads=heads, seconds=None)
        for heads in {1, recipe.heads}
    }
    x, asked = scaled(learned.cells, judged.cells)
    y = torch.from_numpy(learned.labels)
    ways = {
        "plain outputs": 1,
        "max rule in training": 1,
        "layer": 1,
        f"layer, {recipe.heads} heads": recipe.heads,
    }
    found: list[Score] = []
    for method, heads in ways.items():
        layer = layers[heads] if method.startswith("layer") else None
        outputs = heads * y.shape[1] + (heads if heads > 1 else 0)
        with one_thread(seed):
            network = dense(x.shape[1], recipe.hidden, outputs, layers=recipe.layers, dropout=recipe.dropout)

            def loss(rows: Tensor) -> Tensor:
                logits = network(x[rows])  # noqa: B023 - it is called before the next one is made
                if layer is not None:  # noqa: B023
                    parts, mixture = parted(logits, heads)  # noqa: B023
                    value: Tensor = -layer(parts, mixture=mixture).log_likelihood(y[rows].long()).mean()  # noqa: B023
                    return value
                if method == "plain outputs":  # noqa: B023
                    return _apart(logits, y[rows])
                return _coherent(logits, y[rows], parents)

            fit(
                network,
                loss,
                len(x),
                epochs=recipe.epochs,
                batch=recipe.batch,
                rate=recipe.rate,
                decay=recipe.decay,
                average=recipe.average,
            )
            with torch.no_grad():
                logits = network(asked)
                if layer is not None:
                    parts, mixture = parted(logits, heads)
                    out = layer(parts, mixture=mixture)
                    said, chances = out.best.numpy(), out.marginals.table.numpy()
                    found += _scores(method, said, chances, judged, parents)
                    continue
        chances = torch.sigmoid(logits).numpy()
        if method == "plain outputs":
            found += _scores(method, chances > 0.5, chances, judged, parents)
        most = raised(chances, parents)
        way = "max rule" if method == "plain outputs" else method
        found += _scores(way, most > 0.5, most, judged, parents)
    return found


def _apart(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of outputs that know nothing of one another, summed over labels."""
    every = nn.functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="none")
    return every.sum(dim=1).mean()


def _coherent(logits: Tensor, labels: Tensor, parents: Ints) -> Tensor:
    """Return the loss of C-HMCNN: a true label learns from its true children, a false one from all."""
    chances = torch.sigmoid(logits)
    all_, true = list(chances.unbind(dim=1)), list((chances * labels).unbind(dim=1))
    for child in reversed(range(len(parents))):
        parent = parents[child]
        if parent >= 0:
            all_[parent] = torch.maximum(all_[parent], all_[child])
            true[parent] = torch.maximum(true[parent], true[child])
    said = torch.where(labels, torch.stack(true, dim=1), torch.stack(all_, dim=1)).clamp(1e-7, 1 - 1e-7)
    return nn.functional.binary_cross_entropy(said, labels.float(), reduction="none").sum(dim=1).mean()


def _scores(
    method: str, said: Bools, chances: NDArray[np.floating], judged: Labelled, parents: Ints
) -> list[Score]:
    from sklearn.metrics import average_precision_score

    area = average_precision_score(judged.labels.ravel(), chances.ravel())
    return [
        Score(method, "exact match, %", 100 * float((said == judged.labels).all(axis=1).mean())),
        Score(method, "AU(PRC)", float(area)),
        Score(method, "violations", broken(said, parents)),
    ]
