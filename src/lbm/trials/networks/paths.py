"""Shortest paths on a grid of 4 by 4 nodes: a network is told which edges are there, and the two ends.

The theory is what a simple path between two nodes is, as a circuit over 24 edges and 16 nodes; that removed
edges cannot be used is for the network to learn, or is given as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from lbm.arrays import Bools
from lbm.errors import FileError
from lbm.knowledge.packed import read_lines
from lbm.knowledge.theory import Theory
from lbm.nn import LogicLayer
from lbm.trials.learners.sets import data_of
from lbm.trials.networks.fitting import dense, fit, one_thread
from lbm.trials.networks.scores import Score

NODES: Final = 16
EDGES: Final = (
    *((4 * row + column, 4 * row + column + 1) for row in range(4) for column in range(3)),
    *((4 * row + column, 4 * row + column + 4) for column in range(4) for row in range(3)),
)
"""The nodes that each edge connects: edges within rows, then those within columns."""


@dataclass(frozen=True, eq=False)
class Grids:
    """Grids of which some edges are removed, each with all shortest paths between two nodes.

    Attributes
    ----------
    there
        Whether edges are there, shape (grids, 24).
    ends
        Whether nodes are an end, shape (grids, 16).
    first
        The path that is listed first, shape (grids, 24).
    listed
        All that are listed, each as the numbers of its edges.
    """

    there: Bools
    ends: Bools
    first: Bools
    listed: tuple[frozenset[frozenset[int]], ...]


def read_grids(text: str, name: str) -> Grids:
    """Return grids from lines ``removed edges,ends,path,path...``, numbers joined by ``-``."""
    lines = text.split()
    there = np.ones((len(lines), len(EDGES)), dtype=bool)
    ends = np.zeros((len(lines), NODES), dtype=bool)
    first = np.zeros((len(lines), len(EDGES)), dtype=bool)
    listed = []
    for row, line in enumerate(lines):
        try:
            removed, nodes, *paths = [[int(word) for word in part.split("-")] for part in line.split(",")]
            there[row, removed] = False
            ends[row, nodes] = True
            first[row, paths[0]] = True
        except (ValueError, IndexError):
            raise FileError(
                f"cannot read {name}: expected removed edges, two ends and paths in line {row + 1}"
            ) from None
        listed.append(frozenset(frozenset(path) for path in paths))
    return Grids(there, ends, first, tuple(listed))


def is_path(edges: Bools, ends: Bools) -> bool:
    """Return whether edges are one simple path between two ends, by walking along it.

    >>> ends = np.isin(np.arange(16), [0, 2])
    >>> is_path(np.isin(np.arange(24), [0, 1]), ends), is_path(np.isin(np.arange(24), [0, 1, 8]), ends)
    (True, False)
    """
    left = {EDGES[edge] for edge in np.flatnonzero(edges)}
    start, end = np.flatnonzero(ends)
    node, seen = start, {start}
    while node != end:
        steps = [pair for pair in left if node in pair]
        if len(steps) != 1:
            return False
        left.remove(steps[0])
        node = sum(steps[0]) - node
        if node in seen:
            return False
        seen.add(node)
    return not left


class SideBySide(nn.Module):
    """Two networks whose outputs are added: one without hidden units, and another."""

    def __init__(self, inputs: int, outputs: int, other: nn.Module) -> None:
        super().__init__()
        self.direct, self.other = nn.Linear(inputs, outputs), other

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both."""
        found: Tensor = self.direct(x) + self.other(x)
        return found


@dataclass(frozen=True)
class PathRecipe:
    """How a network is trained, chosen on the rows for validation."""

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.1
    epochs: int = 60
    batch: int = 32
    rate: float = 5e-3
    decay: float = 0.05
    average: float = 0.99


RECIPE: Final = PathRecipe()


def measure(seed: int, *, test: bool = True, recipe: PathRecipe = RECIPE) -> list[Score]:
    """Train on 60 % of the rows, and judge by 20 %; the other 20 % were for choosing settings.

    Seeds differ in the split, and in where networks begin; the split of seed 0 is that of the data's authors.
    """
    folder = data_of("grid paths") / "structured"
    grids = read_grids(read_lines(folder / "grid_paths.data"), str(folder / "grid_paths.data"))
    theory = Theory.load(folder / "grid_4.sdd")
    layer = LogicLayer(theory, inputs=theory.atoms, seconds=None)
    rows = len(grids.first)
    order = np.random.RandomState(seed).permutation(rows)
    train = order[: int(0.6 * rows)]
    judge = order[int(0.8 * rows) :] if test else order[int(0.6 * rows) : int(0.8 * rows)]
    x = torch.from_numpy(np.hstack([grids.there, grids.ends])).float()
    y = torch.from_numpy(np.hstack([grids.first, grids.ends])).long()
    ends = torch.where(torch.from_numpy(grids.ends), torch.inf, -torch.inf).float()
    gone = torch.from_numpy(~grids.there)
    places = torch.from_numpy(train)
    found: list[Score] = []

    def evidence(logits: Tensor, rows: Tensor, *, known: bool) -> Tensor:
        if known:
            logits = logits.masked_fill(gone[rows], -torch.inf)
        return torch.cat([logits, ends[rows]], dim=1)

    for method in ("plain outputs", "layer", "layer, removed edges given"):
        known = method.endswith("given")
        with one_thread(seed):
            other = dense(40, recipe.hidden, 24, layers=recipe.layers, dropout=recipe.dropout)
            network = SideBySide(40, 24, other)

            def loss(some: Tensor) -> Tensor:
                rows = places[some]
                logits = network(x[rows])  # noqa: B023 - it is called before the next one is made
                if method == "plain outputs":  # noqa: B023
                    return nn.functional.binary_cross_entropy_with_logits(logits, y[rows, :24].float())
                out = layer(evidence(logits, rows, known=known))  # noqa: B023
                value: Tensor = -out.log_likelihood(y[rows]).mean()
                return value

            fit(
                network,
                loss,
                len(train),
                epochs=recipe.epochs,
                batch=recipe.batch,
                rate=recipe.rate,
                decay=recipe.decay,
                average=recipe.average,
            )
            asked = torch.from_numpy(judge)
            with torch.no_grad():
                logits = network(x[asked])
                if method == "plain outputs":
                    said = (logits > 0).numpy()
                else:
                    said = layer(evidence(logits, asked, known=known)).best[:, :24].numpy()
        found += _scores(method, grids, judge.tolist(), said)
    return found


def _scores(method: str, grids: Grids, rows: list[int], said: Bools) -> list[Score]:
    """Return how predictions compare with what is listed, and with what a path is."""
    listed = [
        frozenset(np.flatnonzero(line).tolist()) in grids.listed[row]
        for row, line in zip(rows, said, strict=True)
    ]
    paths = [is_path(line, grids.ends[row]) for row, line in zip(rows, said, strict=True)]
    used = [bool((line & ~grids.there[row]).any()) for row, line in zip(rows, said, strict=True)]
    values = {
        "exact match, first listed path, %": 100 * (said == grids.first[rows]).all(axis=1).mean(),
        "any listed path, %": 100 * np.mean(listed),
        "paths, %": 100 * np.mean(paths),
        "removed edge used, %": 100 * np.mean(used),
        "violations": len(rows) - sum(paths),
    }
    return [Score(method, what, float(value)) for what, value in values.items()]
