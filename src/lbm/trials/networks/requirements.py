"""ROAD-R: labels of road scenes that 243 requirements allow, some flipped, and repaired by the theory.

There is no network here: log-odds are those of noisy labels. Label sets are drawn, uniformly or with labels
as rare as in scenes, from all 4,985,868 that the requirements allow; what is repaired is the most probable
label set, given the noisy one.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch

from lbm.arrays import Bools
from lbm.errors import FileError
from lbm.knowledge.packed import read_lines
from lbm.knowledge.theory import Theory
from lbm.nn import LogicLayer
from lbm.trials.learners.sets import data_of
from lbm.trials.networks.scores import Score

LABELS: Final = 41
SETS: Final = 2000
"""Label sets that are drawn."""

RARE: Final = -1.0
"""Log-odds of a label where they are rare, before requirements."""


def read_requirements(text: str, name: str) -> list[list[int]]:
    """Return requirements of a DIMACS file: label numbers from 1, negative where a label must be false."""
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] not in "cp"]
    try:
        found = [[int(word) for word in line] for line in lines]
    except ValueError:
        found = [[]]
    if not all(
        line and line[-1] == 0 and 0 not in line[:-1] and max(map(abs, line)) <= LABELS for line in found
    ):
        raise FileError(f"cannot read {name}: expected requirements over {LABELS} labels, one a line")
    return [line[:-1] for line in found]


def broken(labels: Bools, requirements: list[list[int]]) -> int:
    """Return how many label sets, shape (sets, labels), break a requirement.

    >>> broken(np.array([[True, False], [True, True]]), [[-1, 2]])
    1
    """
    wrong = np.zeros(len(labels), dtype=bool)
    for clause in requirements:
        kept = np.zeros(len(labels), dtype=bool)
        for literal in clause:
            kept |= labels[:, abs(literal) - 1] == (literal > 0)
        wrong |= ~kept
    return int(wrong.sum())


def measure(seed: int, *, flipped: float) -> list[Score]:
    """Flip each label with this chance, and repair with what is known of noise and of rare labels."""
    path = data_of("ROAD-R") / "structured" / "road_r_dimacs.txt"
    requirements = read_requirements(read_lines(path), str(path))
    theory = Theory.load(path)
    layer = LogicLayer(theory, inputs=[f"x{number}" for number in range(1, LABELS + 1)])
    order = [layer.atoms.index(f"x{number}") for number in range(1, LABELS + 1)]
    prior = torch.full((1, LABELS), RARE, dtype=torch.float64)
    true = layer(prior).sample(SETS, seed=seed)[:, 0, order]
    generator = torch.Generator().manual_seed(seed)
    noisy = true ^ (torch.rand(true.shape, generator=generator) < flipped)
    odds = math.log((1 - flipped) / flipped)
    seen = torch.where(noisy, odds, -odds).double()
    out = layer(seen)
    known = layer(seen + prior)
    found = []
    for method, said in (
        ("noisy labels", noisy),
        ("layer, fewest changes", out.best[:, order]),
        ("layer", known.best[:, order]),
    ):
        values = {
            "label set right, %": 100 * float((said == true).all(dim=1).double().mean()),
            "label wrong, %": 100 * float((said != true).double().mean()),
            "violations": broken(said.numpy(), requirements),
        }
        found += [Score(method, what, value) for what, value in values.items()]
    return found
