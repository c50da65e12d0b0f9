"""A hundred labelled images and many without labels: of these it is only known that each is one digit.

The theory is ``exactly(1, ...)`` over ten atoms with log-odds of their own. Its log-probability on unlabelled
images is the semantic loss; labelled ones have the log-likelihood of their label among admissible outputs,
which here is a softmax.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Ints
from lbm.nn import LogicLayer
from lbm.trials.networks.fitting import dense, fit, lenet, one_thread
from lbm.trials.networks.images import held_out, mnist, small_digits
from lbm.trials.networks.scores import Score
from lbm.trials.networks.sums import read

DIGITS: Final = tuple(f"digit({value})" for value in range(10))


@dataclass(frozen=True)
class FewLabelsRecipe:
    """How a network is trained: all labelled images, and a batch of others, at every step.

    ``weight``: that of the semantic loss, reached after the share ``ramp`` of the steps. ``noise``: the
    deviation of what is added to pixels.
    """

    steps: int = 4000
    batch: int = 128
    rate: float = 2e-3
    weight: float = 0.5
    ramp: float = 0.3
    noise: float = 0.3
    dropout: float = 0.2
    decay: float = 0.01
    average: float = 0.995


RECIPE: Final = FewLabelsRecipe()
SMALL: Final = FewLabelsRecipe(steps=600, batch=64, noise=0.1, average=0.99)


def labelled(labels: Ints, each: int, seed: int) -> Ints:
    """Return the numbers of so many images of each digit, drawn.

    >>> labelled(np.array([0, 1] * 4), 2, 0).shape
    (4,)
    """
    rng = np.random.default_rng([seed, each])
    chosen = [rng.choice(np.flatnonzero(labels == value), each, replace=False) for value in np.unique(labels)]
    return np.sort(np.concatenate(chosen))


def measure(
    seed: int, *, small: bool, test: bool = True, recipe: FewLabelsRecipe | None = None
) -> list[Score]:
    """Train the same network with the semantic loss and without, on the same labelled images."""
    images = small_digits() if small else mnist() if test else held_out()
    recipe = recipe or (SMALL if small else RECIPE)
    layer = LogicLayer(f"exactly(1, {', '.join(DIGITS)})", inputs=DIGITS, groups=False)
    known = torch.from_numpy(labelled(images.train_labels.numpy(), 4 if small else 10, seed))
    x, y = images.train[known], torch.nn.functional.one_hot(images.train_labels[known], 10)
    epochs = -(-recipe.steps * recipe.batch // len(images.train))
    found: list[Score] = []
    for method, weight in (("labels alone", 0.0), ("layer", recipe.weight)):
        with one_thread(seed):
            size = images.train.shape[1]
            network = dense(size, 128, 10, dropout=recipe.dropout) if small else lenet(dropout=recipe.dropout)
            done = itertools.count(1)

            def noisy(some: Tensor) -> Tensor:
                return some + recipe.noise * torch.randn_like(some)

            def loss(rows: Tensor) -> Tensor:
                value: Tensor = -layer(network(noisy(x))).log_likelihood(y).mean()  # noqa: B023
                share = min(1.0, next(done) / (recipe.ramp * recipe.steps))  # noqa: B023
                if weight:  # noqa: B023
                    more = layer(network(noisy(images.train[rows]))).log_kept.mean()  # noqa: B023
                    value = value - share * weight * more  # noqa: B023
                return value

            fit(
                network,
                loss,
                len(images.train),
                epochs=epochs,
                batch=recipe.batch,
                rate=recipe.rate,
                decay=recipe.decay,
                average=recipe.average,
            )
            logits = read(network, images.test)
            said = layer(logits).best.numpy()
        right = float((said.argmax(axis=1) == images.test_labels.numpy()).mean())
        found += [
            Score(method, "digit right, %", 100 * right),
            Score(method, "violations", int((said.sum(axis=1) != 1).sum())),
        ]
    return found
