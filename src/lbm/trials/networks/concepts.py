"""Sums of two digits of which only some pairs occur: the sum can be right where the digits are wrong.

*Half* has the sums 0+0, 0+1, 2+3 and 2+4 of digits 0 to 4, *EvenOdd* eight sums of two even or two odd
digits. Nothing in the sums says which digit is which, so a network may learn other digits than ours
(reasoning shortcuts).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from lbm.arrays import Bools, Floats, Ints
from lbm.nn import LogicLayer, shortcuts
from lbm.trials.networks.fitting import dense, fit, lenet, one_thread
from lbm.trials.networks.images import held_out, mnist, small_digits
from lbm.trials.networks.scores import Score
from lbm.trials.networks.sums import read

PAIRS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "Half": ((0, 0), (0, 1), (2, 3), (2, 4)),
    "EvenOdd": ((0, 6), (2, 8), (4, 6), (4, 8), (1, 5), (3, 7), (1, 9), (3, 9)),
}
"""The pairs of digits that occur, in this order."""

SIZES: Final = {"Half": 5, "EvenOdd": 10}
"""How many digits a network may tell apart."""

BINS: Final = 10
"""Of confidence, for the calibration error (expected calibration error, ECE)."""


def theory(size: int) -> str:
    """Return x + y = sum for digits below ``size``, as text.

    >>> print(theory(2))
    exactly(1, x(0), x(1))
    exactly(1, y(0), y(1))
    exactly(1, sum(0), sum(1), sum(2))
    x(0) & y(0) -> sum(0)
    x(0) & y(1) -> sum(1)
    x(1) & y(0) -> sum(1)
    x(1) & y(1) -> sum(2)
    """
    sizes = {"x": size, "y": size, "sum": 2 * size - 1}
    groups = [f"exactly(1, {', '.join(f'{name}({i})' for i in range(n))})" for name, n in sizes.items()]
    rules = [f"x({x}) & y({y}) -> sum({x + y})" for x in range(size) for y in range(size)]
    return "\n".join([*groups, *rules])


def paired(labels: Ints, pairs: tuple[tuple[int, int], ...], count: int, seed: int) -> Ints:
    """Return numbers of images whose digits are pairs that occur, shape (count, 2), each pair as often."""
    rng = np.random.default_rng([seed, count])
    where = {value: np.flatnonzero(labels == value) for pair in pairs for value in pair}
    chosen = [pairs[i % len(pairs)] for i in range(count)]
    return np.array([[rng.choice(where[one]), rng.choice(where[other])] for one, other in chosen])


def calibration_error(chances: Floats, right: Bools) -> float:
    """Return how far confidence is from how often it is right, on average over bins of confidence.

    >>> calibration_error(np.array([0.95, 0.95]), np.array([True, False]))
    0.45
    """
    bins = np.minimum((chances * BINS).astype(int), BINS - 1)
    gaps = [abs(float(chances[bins == b].sum() - right[bins == b].sum())) for b in range(BINS)]
    return round(sum(gaps) / len(chances), 12)


@dataclass(frozen=True)
class ConceptRecipe:
    """How a network is trained; ``heads``: how many readings the layer with heads mixes."""

    train: int = 4000
    test: int = 1000
    epochs: int = 10
    batch: int = 32
    rate: float = 3e-3
    decay: float = 0.01
    average: float = 0.99
    heads: int = 5


RECIPE: Final = ConceptRecipe()
SMALL: Final = ConceptRecipe(train=800, test=400, epochs=15, rate=1e-2)


class Readings(nn.Module):
    """Networks of one kind beside one another, each a head: outputs of shape (images, heads, values)."""

    def __init__(self, networks: list[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        """Return what every network says."""
        return torch.stack([network(x) for network in self.networks], dim=1)


def sum_layer(size: int, heads: int) -> LogicLayer:
    """Return the layer: logits of both digits, and the sum is asked."""
    return LogicLayer(theory(size), inputs=["x(*)", "y(*)"], queries=["sum(*)"], heads=heads)


def both(logits: Tensor, heads: int) -> Tensor:
    """Return logits of images, two by two, as the layer takes them: those of a pair side by side."""
    found = torch.cat([logits[0::2], logits[1::2]], dim=-1)
    return found if heads > 1 else found[:, 0]


def measure(
    seed: int, *, name: str, small: bool, test: bool = True, recipe: ConceptRecipe | None = None
) -> list[Score]:
    """Train on the sums that occur, with one head and with more, and judge by sums and digits."""
    images = small_digits() if small else mnist() if test else held_out()
    recipe = recipe or (SMALL if small else RECIPE)
    size, pairs = SIZES[name], PAIRS[name]
    learned = torch.from_numpy(paired(images.train_labels.numpy(), pairs, recipe.train, seed))
    asked = torch.from_numpy(paired(images.test_labels.numpy(), pairs, recipe.test, seed))
    found: list[Score] = []
    for method, heads in (("layer", 1), (f"layer, {recipe.heads} heads", recipe.heads)):
        layer = sum_layer(size, heads)
        with one_thread(seed):
            pixels = images.train.shape[1]
            network = Readings(
                [dense(pixels, 128, size, dropout=0.2) if small else lenet(size) for _ in range(heads)]
            )

            def loss(rows: Tensor) -> Tensor:
                some = learned[rows]
                logits = both(network(images.train[some.reshape(-1)]), heads)  # noqa: B023 - called before the next is made
                value: Tensor = -layer(logits).log_prob(images.train_labels[some].sum(dim=1)).mean()  # noqa: B023
                return value

            fit(
                network,
                loss,
                len(learned),
                epochs=recipe.epochs,
                batch=recipe.batch,
                rate=recipe.rate,
                decay=recipe.decay,
                average=recipe.average,
            )
            logits = read(network, images.test[asked.reshape(-1)])
        best = layer(both(logits, heads)).best.numpy()
        chances = torch.softmax(logits.double(), dim=-1).mean(dim=1)
        found += _scores(method, layer, best, chances, images.test_labels[asked])
    return [*found, Score("layer", "readings that leave sums right", readings(name))]


def readings(name: str) -> int:
    """Return how many maps of digits leave every sum that occurs right.

    >>> readings("Half"), readings("EvenOdd")
    (3, 36)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it warns of them, and here they are what is asked
        shared = [["x(*)", "y(*)"]]
        return shortcuts(theory(SIZES[name]), "sum(*)", shared=shared, seen=PAIRS[name]).readings


def _scores(method: str, layer: LogicLayer, best: Bools, chances: Tensor, labels: Tensor) -> list[Score]:
    """Return how best worlds, and digits by their chances, shape (images, values), compare with labels."""
    size = chances.shape[1]
    place = {name: number for number, name in enumerate(layer.atoms)}
    totals, *digits = (
        best[:, [place[f"{name}({i})"] for i in range(number)]].argmax(axis=1)
        for name, number in (("sum", 2 * size - 1), ("x", size), ("y", size))
    )
    told = np.stack(digits, axis=1)
    sure, said = (each.numpy() for each in chances.max(dim=1))
    return [
        Score(method, "sum right, %", 100 * float((totals == labels.sum(dim=1).numpy()).mean())),
        Score(method, "digit right, %", 100 * float((told == labels.numpy()).mean())),
        Score(
            method,
            "calibration error of digits, %",
            100 * calibration_error(sure, said == labels.numpy().ravel()),
        ),
        Score(method, "violations", int((told.sum(axis=1) != totals).sum())),
    ]
