"""Sushi: from how somebody ranks six kinds, a network says how the same person ranks four others.

The theory is what a ranking is: each kind has one place, and each place one kind. Besides the sixteen atoms
"kind in place" the layer may have one for each pair, "before", which the theory defines; a network gives
logits of these, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Ints
from lbm.errors import FileError
from lbm.knowledge.packed import read_lines
from lbm.nn import LogicLayer
from lbm.trials.learners.sets import data_of
from lbm.trials.networks.fitting import dense, fit, one_thread, parted
from lbm.trials.networks.scores import Score

GIVEN: Final = (1, 2, 3, 5, 7, 8)
ASKED: Final = (4, 6, 9, 10)
"""Kinds whose order is known, and kinds whose order is asked for, as in the literature."""


def read_rankings(text: str, name: str) -> Ints:
    """Return rankings of a file in PrefLib's soc format, shape (rankings, 10): kinds, the best first."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split(",")
        if len(words) < 11:  # the head: kinds, and counts
            continue
        try:
            times, *kinds = [int(word) for word in words]
        except ValueError:
            times, kinds = 0, []
        if sorted(kinds) != list(range(1, 11)) or times < 1:
            raise FileError(f"cannot read {name}: expected ten kinds by rank in line {number}")
        found += [kinds] * times
    return np.array(found, dtype=np.int64).reshape(-1, 10)


def places(rankings: Ints, kinds: tuple[int, ...]) -> Ints:
    """Return the place of each of some kinds among themselves, shape (rankings, kinds).

    >>> places(np.array([[4, 2, 10, 1]]), (1, 4, 10)).tolist()
    [[2, 0, 1]]
    """
    ranks = np.argsort(rankings, axis=1)[:, np.searchsorted(np.sort(rankings[0]), kinds)]
    return np.argsort(np.argsort(ranks, axis=1), axis=1)


def theory(*, pairs: bool) -> str:
    """Return what a ranking of the four kinds is, as text, with ``pairs`` which of two is before the other.

    >>> print(theory(pairs=True).splitlines()[-1][:60])
    before(9,10) <-> at(9,0) & at(10,1) | at(9,0) & at(10,2) | a
    """
    spots = range(len(ASKED))
    lines = [f"exactly(1, {', '.join(f'at({kind},{spot})' for spot in spots)})" for kind in ASKED]
    lines += [f"exactly(1, {', '.join(f'at({kind},{spot})' for kind in ASKED)})" for spot in spots]
    if pairs:
        for one, other in combinations(ASKED, 2):
            ways = [f"at({one},{first}) & at({other},{second})" for first, second in combinations(spots, 2)]
            lines.append(f"before({one},{other}) <-> {' | '.join(ways)}")
    return "\n".join(lines)


def ranking_layer(*, pairs: bool, heads: int = 1) -> LogicLayer:
    """Return the layer: logits of the four places of each kind, and with ``pairs`` six more."""
    inputs = [f"at({kind},*)" for kind in ASKED]
    more = [f"before({one},{other})" for one, other in combinations(ASKED, 2)] if pairs else []
    return LogicLayer(theory(pairs=pairs), inputs=[*inputs, *more], heads=heads)


@dataclass(frozen=True)
class RankingRecipe:
    """How a network is trained, chosen on the rows for validation."""

    hidden: int = 64
    layers: int = 1
    dropout: float = 0.5
    epochs: int = 15
    batch: int = 32
    rate: float = 3e-3
    decay: float = 0.1
    average: float = 0.99


RECIPE: Final = RankingRecipe()
PLAIN: Final = RankingRecipe(layers=0, epochs=15, decay=1.0)


def features(given: Ints) -> Tensor:
    """Return rankings of the six kinds for a network: places one by one, as numbers, and pairs."""
    size = given.shape[1]
    one_hot = np.eye(size)[given].reshape(len(given), -1)
    pairs = [np.sign(given[:, j] - given[:, i]) for i, j in combinations(range(size), 2)]
    whole = np.hstack([one_hot, given / (size - 1) - 0.5, np.stack(pairs, axis=1)])
    return torch.from_numpy(whole).float()


def measure(seed: int, *, test: bool = True, recipe: RankingRecipe = RECIPE) -> list[Score]:
    """Train on 60 % of the rankings, and judge by 20 %; the other 20 % were for choosing settings.

    Seeds differ in the split, and in where networks begin; the split of seed 0 is that of the task's authors.
    """
    path = data_of("sushi") / "structured" / "sushi.soc"
    rankings = read_rankings(read_lines(path), str(path))
    rows = len(rankings)
    order = np.random.RandomState(seed).permutation(rows)
    train = torch.from_numpy(order[: int(0.6 * rows)])
    judge = torch.from_numpy(order[int(0.8 * rows) :] if test else order[int(0.6 * rows) : int(0.8 * rows)])
    x = features(places(rankings, GIVEN))
    wanted = places(rankings, ASKED)
    y = torch.from_numpy(wanted)
    before = torch.stack([y[:, i] < y[:, j] for i, j in combinations(range(4), 2)], dim=1).long()
    found: list[Score] = []
    for method in ("plain outputs", "layer", "layer, pairs too", "layer, no hidden units", "layer, 3 heads"):
        pairs = method.endswith("too")
        used = PLAIN if method.endswith("units") else recipe
        heads = 3 if method.endswith("heads") else 1
        layer = ranking_layer(pairs=pairs, heads=heads)
        outputs = heads * len(layer.columns) + (heads if heads > 1 else 0)
        labels = torch.cat([y, before], dim=1) if pairs else y
        with one_thread(seed):
            network = dense(x.shape[1], used.hidden, outputs, layers=used.layers, dropout=used.dropout)

            def loss(some: Tensor) -> Tensor:
                rows = train[some]
                logits = network(x[rows])  # noqa: B023 - it is called before the next one is made
                if method == "plain outputs":  # noqa: B023
                    target = torch.nn.functional.one_hot(y[rows], 4).flatten(1).float()
                    return torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
                parts, mixture = parted(logits, heads)  # noqa: B023
                value: Tensor = -layer(parts, mixture=mixture).log_likelihood(labels[rows]).mean()  # noqa: B023
                return value

            fit(
                network,
                loss,
                len(train),
                epochs=used.epochs,
                batch=used.batch,
                rate=used.rate,
                decay=used.decay,
                average=used.average,
            )
            with torch.no_grad():
                logits = network(x[judge])
                parts, mixture = parted(logits, heads)
                out = layer(parts, mixture=mixture)
                said = logits > 0 if method == "plain outputs" else out.best[:, :16]
        found += _scores(method, said.view(-1, 4, 4).numpy(), wanted[judge.numpy()])
    return found


def _scores(method: str, said: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], wanted: Ints) -> list[Score]:
    """Return how matrices of kinds and places compare with rankings."""
    right = np.eye(4, dtype=bool)[wanted]
    all_rankings = {np.eye(4, dtype=bool)[list(each)].tobytes() for each in permutations(range(4))}
    kept = [line.tobytes() in all_rankings for line in said]
    values = {
        "exact match, %": 100 * (said == right).all(axis=(1, 2)).mean(),
        "rankings, %": 100 * np.mean(kept),
        "violations": len(kept) - sum(kept),
    }
    return [Score(method, what, float(value)) for what, value in values.items()]
