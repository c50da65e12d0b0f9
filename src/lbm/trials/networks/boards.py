"""Visual Sudoku, 4 by 4: a network reads images, and knows of boards only that they are solved.

Without a label nobody could say which sign is which digit: a few labelled images tell that, and the theory
teaches the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Bools, Ints
from lbm.nn import LogicLayer
from lbm.trials.networks.few_labels import labelled
from lbm.trials.networks.fitting import dense, fit, lenet, one_thread
from lbm.trials.networks.images import held_out, mnist, small_digits
from lbm.trials.networks.scores import Score
from lbm.trials.networks.sums import read

UNITS: Final = (
    *(tuple((row, column) for column in range(4)) for row in range(4)),
    *(tuple((row, column) for row in range(4)) for column in range(4)),
    *(
        tuple((2 * down + row, 2 * right + column) for row, column in product(range(2), range(2)))
        for down, right in product(range(2), range(2))
    ),
)
"""Rows, columns and boxes: the cells that must differ."""


def theory() -> str:
    """Return the rules of Sudoku as text: one digit a cell, and each digit once in every unit."""
    lines = [
        f"exactly(1, {', '.join(_said(cell, digit) for digit in range(1, 5))})"
        for cell in product(range(4), range(4))
    ]
    lines += [
        f"exactly(1, {', '.join(_said(cell, digit) for cell in unit)})"
        for unit in UNITS
        for digit in range(1, 5)
    ]
    return "\n".join(lines)


def _said(cell: tuple[int, int], digit: int) -> str:
    return f"cell({cell[0]},{cell[1]},{digit})"


@cache
def solved_boards() -> Ints:
    """Return all solved boards, shape (288, 16), digits from 1 to 4, row by row.

    >>> solved_boards().shape
    (288, 16)
    """
    rows = list(permutations(range(1, 5)))
    halves = [(one, two) for one in rows for two in rows if not {*one[:2]} & {*two[:2]}]
    boards = [
        np.array(upper + lower).ravel()
        for upper, lower in product(halves, repeat=2)
        if all(len({row[column] for row in upper + lower}) == 4 for column in range(4))
    ]
    return np.array(boards)


def is_solved(board: Ints) -> bool:
    """Return whether a board, shape (16,), keeps all rules."""
    cells = board.reshape(4, 4)
    return all({int(cells[cell]) for cell in unit} == {1, 2, 3, 4} for unit in UNITS)


@dataclass(frozen=True)
class BoardRecipe:
    """How a network is trained: on boards, and on so many labelled images of each digit.

    ``weight``: that of the boards' log-probability of being solved.
    """

    boards: int = 400
    each: int = 5
    epochs: int = 15
    batch: int = 8
    rate: float = 2e-3
    weight: float = 0.3
    decay: float = 0.01
    average: float = 0.98


RECIPE: Final = BoardRecipe()
SMALL: Final = BoardRecipe(boards=30, each=3, epochs=30, batch=4, rate=5e-3)

TESTED: Final = {True: 10, False: 200}
"""Boards of unseen images: of small digits, and of MNIST."""


def drawn(labels: Ints, count: int, seed: int) -> tuple[Ints, Ints]:
    """Return boards, and the numbers of images for their cells, none again before all were used."""
    rng = np.random.default_rng([seed, count])
    solved = solved_boards()
    boards = solved[rng.integers(len(solved), size=count)]
    images = np.zeros_like(boards)
    for digit in range(1, 5):
        cells = boards == digit
        images[cells] = np.resize(rng.permutation(np.flatnonzero(labels == digit)), cells.sum())
    return boards, images


def measure(seed: int, *, small: bool, test: bool = True, recipe: BoardRecipe | None = None) -> list[Score]:
    """Train the same network on a few labels alone, and on these and boards that are solved."""
    images = small_digits() if small else mnist() if test else held_out()
    recipe = recipe or (SMALL if small else RECIPE)
    layer = LogicLayer(theory(), inputs=[f"cell({r},{c},*)" for r in range(4) for c in range(4)])
    labels = images.train_labels.numpy()
    known = labelled(np.where((labels > 0) & (labels < 5), labels, 0), recipe.each, seed)
    known = known[(labels[known] > 0) & (labels[known] < 5)]
    x, y = images.train[torch.from_numpy(known)], torch.from_numpy(labels[known] - 1)
    _, learned = drawn(labels, recipe.boards, seed)
    places = torch.from_numpy(learned)
    boards, asked = drawn(images.test_labels.numpy(), TESTED[small], seed)
    found: list[Score] = []
    for method, weight in (("labels alone", 0.0), ("layer", recipe.weight)):
        with one_thread(seed):
            network = dense(images.train.shape[1], 128, 4, dropout=0.2) if small else lenet(4)

            def loss(rows: Tensor) -> Tensor:
                value = torch.nn.functional.cross_entropy(network(x), y)  # noqa: B023
                if weight:  # noqa: B023
                    logits = network(images.train[places[rows].reshape(-1)]).view(len(rows), -1)  # noqa: B023
                    value = value - weight * layer(logits).log_kept.mean()  # noqa: B023
                return value

            fit(
                network,
                loss,
                len(places),
                epochs=recipe.epochs,
                batch=recipe.batch,
                rate=recipe.rate,
                decay=recipe.decay,
                average=recipe.average,
            )
            logits = read(network, images.test[torch.from_numpy(asked.reshape(-1))])
        said = logits.argmax(dim=1).numpy().reshape(-1, 16) + 1
        found += _scores(f"{method}, cell by cell", said, boards)
        best = layer(logits.view(len(asked), -1)).best.numpy()
        found += _scores(
            f"{method}, best board" if method != "layer" else "layer", _digits(layer, best), boards
        )
    return found


def _digits(layer: LogicLayer, worlds: Bools) -> Ints:
    """Return the digits of cells in worlds."""
    place = {name: number for number, name in enumerate(layer.atoms)}
    cells = [worlds[:, [place[name] for name in choice]].argmax(axis=1) + 1 for choice in layer.inputs]
    return np.stack(cells, axis=1)


def _scores(method: str, said: Ints, boards: Ints) -> list[Score]:
    return [
        Score(method, "cell right, %", 100 * float((said == boards).mean())),
        Score(method, "board right, %", 100 * float((said == boards).all(axis=1).mean())),
        Score(method, "violations", sum(not is_solved(board) for board in said)),
    ]
