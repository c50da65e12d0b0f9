"""The network of CILP++: a feed-forward net that begins with clauses, trained by back-propagation.

Built as C-IL2P builds it [Garcez & Zaverucha 1999; França, Zaverucha & Garcez 2014]: a hidden unit for each
clause that is known, with weight W on its k literals and threshold θ, and one output, all of activation
2/(1 + exp(-x)) - 1. With A the least activation that counts as true and m the greatest of k and the number
of clauses of one head,

    A > (m - 1)/(m + 1),    W ≥ 2 (ln(1 + A) - ln(1 - A)) / (m (A - 1) + A + 1)
    θ = (1 + A)(k - 1)/2 · W,    output: (1 + A)(1 - n)/2 · W  for n clauses

All other weights begin small and random. There inputs are -1 and 1; here they are 0 and 1, with weights and
thresholds that make the same net of it. Departures: updates are after each of a few rows instead of one,
and a net always has ten more hidden units, without which units as saturated as these W make them learn
nothing that their clauses do not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Floats

MARGIN: Final = 0.5
"""Where A is taken between its least value and 1."""

MORE: Final = 10
"""Hidden units beside those of clauses."""

MOMENTUM: Final = 0.1
BATCH: Final = 16


def least_truth(greatest: int) -> float:
    """Return A for m = ``greatest``."""
    low = (greatest - 1) / (greatest + 1)
    return low + MARGIN * (1 - low)


def least_weight(greatest: int, truth: float) -> float:
    """Return W."""
    return float(2 * (np.log1p(truth) - np.log1p(-truth)) / (greatest * (truth - 1) + truth + 1))


def initial_net(clauses: Bools, heads: Bools, seed: int) -> tuple[Floats, Floats]:
    """Return weights of hidden units, shape (columns + 1, units), and of the output, shape (units + 1,).

    The last row of each is the bias. ``clauses``, shape (clauses, columns), are bodies, and ``heads``, shape
    (clauses,), whether they are for the positive class; those against it pull the output down.
    """
    rng = np.random.default_rng([seed, 5])
    number, columns = clauses.shape
    hidden = rng.uniform(-0.01, 0.01, size=(columns + 1, number + MORE))
    output = rng.uniform(-0.01, 0.01, size=number + MORE + 1)
    if number:
        sizes = clauses.sum(axis=1)
        counts = np.array([heads.sum(), (~heads).sum()])
        greatest = max(2, int(sizes.max()), int(counts.max()))
        truth = least_truth(greatest)
        weight = least_weight(greatest, truth)
        hidden[:columns, :number] += 2 * weight * clauses.T  # W (2x - 1) = 2W x - W
        hidden[columns, :number] = -(sizes + (1 + truth) * (sizes - 1) / 2) * weight
        output[:number] += np.where(heads, weight, -weight)
        others = np.maximum(counts - 1, 0)  # clauses for and against each have a threshold
        output[-1] = (1 + truth) * (others[0] - others[1]) / 2 * weight
    return hidden, output


def train_net(
    cells: Bools, labels: Bools, clauses: Bools, heads: Bools, *, rate: float, epochs: int, seed: int
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the weights after each epoch of back-propagation: squares of errors, momentum, rows shuffled."""
    hidden, output = (weights.astype(np.float32) for weights in initial_net(clauses, heads, seed))
    rng = np.random.default_rng([seed, 6])
    x = np.column_stack([cells, np.ones(len(cells))]).astype(np.float32)
    wanted = np.where(labels, 1.0, -1.0).astype(np.float32)
    last_hidden, last_output = np.zeros_like(hidden), np.zeros_like(output)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for first in range(0, len(x), BATCH):
            rows = order[first : first + BATCH]
            few = x[rows]
            inner = activation(few @ hidden)
            said = activation(inner @ output[:-1] + output[-1])
            error = (said - wanted[rows]) * (1 - said**2) * np.float32(rate / 2)
            back = np.outer(error, output[:-1]) * (1 - inner**2) / 2
            last_hidden *= MOMENTUM  # in place: these are as large as the table
            last_hidden -= few.T @ back
            last_output *= MOMENTUM
            last_output -= np.append(error @ inner, error.sum())
            hidden += last_hidden
            output += last_output
        yield hidden.astype(float), output.astype(float)


def log_odds(cells: Bools, hidden: Floats, output: Floats) -> Floats:
    """Return what goes into the output unit, whose activation is 2p - 1 of the log-odds of p."""
    inner = activation(cells @ hidden[:-1] + hidden[-1])
    found: Floats = inner @ output[:-1] + output[-1]
    return found


def activation(x: NDArray[Any]) -> NDArray[Any]:
    """Return 2/(1 + exp(-x)) - 1, element by element."""
    return np.asarray(np.tanh(x / 2))
