"""Numbers written as images of digits, of which only the sum is known: a network learns to read digits.

The theory is addition as people write it: digits are exactly one of ten atoms, and carries are atoms. Of N
digits each the two numbers take 2N images, so that 60,000 images make 60,000/2N examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from lbm.arrays import Ints
from lbm.nn import LogicLayer
from lbm.trials.networks.fitting import dense, fit, lenet, one_thread
from lbm.trials.networks.images import Images, grouped, held_out, mnist, small_digits
from lbm.trials.networks.scores import Score

GROUPINGS: Final = 20
"""Random groupings of the test images into examples."""

AT_ONCE: Final = 1000
"""Images, or examples, that a trained network reads at once."""


def theory(digits: int) -> str:
    """Return x + y = s for numbers of so many digits, as text; place 0 is that of the ones.

    >>> print(theory(1).splitlines()[-1])
    x0(9) & y0(9) & carry0 -> s0(9) & carry1
    """
    lines = ["~carry0"]
    for place in range(digits):
        lines += [
            f"exactly(1, {', '.join(f'{name}{place}({value})' for value in range(10))})" for name in "xys"
        ]
        for x, y, carry in product(range(10), range(10), (0, 1)):
            over, value = divmod(x + y + carry, 10)
            said = f"x{place}({x}) & y{place}({y}) & {'' if carry else '~'}carry{place}"
            lines.append(f"{said} -> s{place}({value}) & {'' if over else '~'}carry{place + 1}")
    return "\n".join(lines)


def adding(digits: int) -> LogicLayer:
    """Return the layer: logits of the images of both numbers, ones last, and the sum's digits, ones first."""
    return LogicLayer(
        theory(digits),
        inputs=[f"{name}{place}(*)" for name in "xy" for place in reversed(range(digits))],
        queries=[*(f"s{place}(*)" for place in range(digits)), f"carry{digits}"],
        seconds=None,
    )


def sums(values: Ints) -> Ints:
    """Return the digits of sums, ones first and the last carry behind them, of digits as images have them.

    >>> sums(np.array([[1, 9, 0, 3]])).tolist()  # 19 + 3
    [[2, 2, 0]]
    """
    digits = values.shape[1] // 2
    found = np.zeros((len(values), digits + 1), np.int64)
    for place in range(digits):
        total = values[:, digits - 1 - place] + values[:, 2 * digits - 1 - place] + found[:, place]
        found[:, place], found[:, place + 1] = total % 10, total // 10
    return found


@dataclass(frozen=True)
class Recipe:
    """How a network is trained."""

    epochs: int
    batch: int
    rate: float
    decay: float = 0.01
    average: float = 0.998
    warm: float = 0.3
    dropout: float = 0.0


RECIPES: Final = {
    1: Recipe(epochs=14, batch=32, rate=4e-3, decay=0.05, dropout=0.2),
    2: Recipe(epochs=16, batch=16, rate=4e-3, decay=0.05, dropout=0.2),
    4: Recipe(epochs=20, batch=8, rate=4e-3, decay=0.05, dropout=0.2),
    15: Recipe(epochs=32, batch=4, rate=4e-3, decay=0.05, dropout=0.2),
}
"""For MNIST, by the number of digits; chosen on images held out of training, with one seed."""

SMALL: Final = {
    1: Recipe(epochs=20, batch=16, rate=1e-2, average=0.99, dropout=0.2),
    2: Recipe(epochs=30, batch=8, rate=1e-2, average=0.99, dropout=0.2),
    4: Recipe(epochs=40, batch=4, rate=1e-2, average=0.99, dropout=0.2),
}
"""For scikit-learn's digits."""


def trained(images: Images, digits: int, recipe: Recipe, layer: LogicLayer, seed: int) -> nn.Module:
    """Return a network that has learned from the sums of training images, each seen in one example."""
    flat = images.train.ndim == 2
    size = images.train.shape[1]
    network = dense(size, 128, 10, dropout=recipe.dropout) if flat else lenet(dropout=recipe.dropout)
    groups = grouped(len(images.train), 2 * digits, seed=seed)
    known = torch.from_numpy(sums(images.train_labels.numpy()[groups]))
    places = torch.from_numpy(groups)

    def loss(rows: Tensor) -> Tensor:
        logits = network(images.train[places[rows].reshape(-1)]).view(len(rows), -1)
        value: Tensor = -layer(logits).log_prob(known[rows]).mean()
        return value

    fit(
        network,
        loss,
        len(groups),
        epochs=recipe.epochs,
        batch=recipe.batch,
        rate=recipe.rate,
        decay=recipe.decay,
        average=recipe.average,
        warm=recipe.warm,
    )
    return network


@torch.no_grad()
def read(network: nn.Module, images: Tensor) -> Tensor:
    """Return the logits of images."""
    return torch.cat([network(some) for some in torch.split(images, AT_ONCE)])


@torch.no_grad()
def judged(layer: LogicLayer, logits: Tensor, labels: Ints, groups: Ints) -> tuple[int, int]:
    """Return how many groups have the right sum in the most probable world, and how many break addition."""
    digits = groups.shape[1] // 2
    place = {name: number for number, name in enumerate(layer.atoms)}
    names = [[f"s{at}({value})" for value in range(10)] for at in range(digits)]
    right = broken = 0
    for start in range(0, len(groups), AT_ONCE):
        some = groups[start : start + AT_ONCE]
        best = layer(logits[torch.from_numpy(some)].view(len(some), -1)).best.numpy()
        said = [best[:, [place[name] for name in each]].argmax(axis=1) for each in names]
        answer = np.stack([*said, best[:, place[f"carry{digits}"]]], axis=1)
        seen = [best[:, [place[name] for name in each]].argmax(axis=1) for each in layer.inputs]
        right += int((answer == sums(labels[some])).all(axis=1).sum())
        broken += int((answer != sums(np.stack(seen, axis=1))).any(axis=1).sum())
    return right, broken


def measure(digits: int, seed: int, *, small: bool, test: bool = True) -> list[Score]:
    """Train on sums of numbers of so many digits, and judge by sums of unseen images.

    ``small``: scikit-learn's digits, not MNIST. Without ``test``: images held out of training judge.
    """
    images = small_digits() if small else mnist() if test else held_out()
    layer = adding(digits)
    with one_thread(seed):
        network = trained(images, digits, (SMALL if small else RECIPES)[digits], layer, seed)
        return scores(network, layer, images, digits)


def scores(network: nn.Module, layer: LogicLayer, images: Images, digits: int) -> list[Score]:
    """Return how a network reads the test images: sums by random grouping, in file order, and digits."""
    logits, labels = read(network, images.test), images.test_labels.numpy()
    rights, broken = [], 0
    for number in (*range(GROUPINGS), None):
        groups = grouped(len(labels), 2 * digits, seed=number)
        right, wrong = judged(layer, logits, labels, groups)
        rights.append(100 * right / len(groups))
        broken += wrong
    read_right = float((logits.argmax(dim=1).numpy() == labels).mean())
    return [
        Score("layer", "sum right, %", fmean(rights[:-1])),
        Score("layer", "sum right in file order, %", rights[-1]),
        Score("layer", "digit right, %", 100 * read_right),
        Score("layer", "violations", broken),
    ]
