"""Quick: the slope of the discriminative cost of complete rows, written out in NumPy.

On a machine of some hundred weights torch spends its time on keeping books, not on numbers: written out, a
step takes a fifth of the time. It is used for tied literals on the CPU; everything else goes the general way,
and both give the same slopes.

    G_ik = w_i (p(k | x_i) - [k is the class of i]) / rows,    ∂/∂s_ijk = G_ik σ(s_j(x_i, k))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lbm.arrays import Ints
from lbm.training.boltzmann.network import Network
from lbm.training.gradients.costs import Cost

CONFIDENCE_RATE: Final = 10.0
"""How many times faster than weights confidences are learned: they are few and begin far from 0."""

FIRST, SECOND = 0.9, 0.999
"""Adam's decay rates, β1 and β2."""

Array = NDArray[np.floating[Any]]


def suits(network: Network, cost: Cost, *, gaps: bool) -> bool:
    """Return whether this way can be taken."""
    known = network.knowledge
    simple = not known.units or (network.literals == "tied" and network.dense and network.one_head)
    return simple and not cost.generative and not gaps and network.weights.device.type == "cpu"


class Quick:
    """A network's parameters as arrays that share its memory, and the slopes of its cost."""

    def __init__(self, network: Network, first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> None:
        self.network = network
        self.parameters: dict[str, Array] = {
            name: values.detach().numpy() for name, values in network.named_parameters()
        }
        self.first: dict[str, Array] = {name: values.numpy() for name, values in first.items()}
        self.second: dict[str, Array] = {name: values.numpy() for name, values in second.items()}
        self.patterns: Array = network.patterns.numpy()
        known = network.knowledge
        self.speaking = known.units - network.silent
        if self.speaking:
            silent, units = network.silent, network.part_units.numpy()
            speaks = units >= silent
            self.part_units, self.part_owners = units[speaks] - silent, network.part_owners.numpy()[speaks]
            self.signs: Array = np.ascontiguousarray(network.signs.numpy()[:, silent:])
            # Of calibrated units literals are counted: 0 where all hold.
            begin = 0.0 if known.calibrated else known.epsilon
            self.offset: Array = begin - network.positive.numpy()[silent:]
            self.head_signs: Array = network.head_signs.numpy()
            self.head_labels = network.head_labels.numpy()
            self.given: Array = network.given_confidence.numpy()
        self.movable = network.movable.numpy() if network.literals == "tied" else np.zeros(0, dtype=np.int64)

    @np.errstate(over="ignore", invalid="ignore")  # a cost that is no number is noticed, once
    def step(
        self, cost: Cost, x: Array, kinds: Ints, weights: Array, *, rows: int, rate: float, number: int
    ) -> float:
        """Move every parameter along its slope and return the cost.

        As :func:`lbm.training.gradients.descent.adam_step`; ``number`` counts the steps from 1.
        """
        value, slopes = self.slopes(cost, x, kinds, weights.astype(x.dtype, copy=False), rows=rows)
        for name, slope in slopes.items():
            first, second = self.first[name], self.second[name]
            first += (1 - FIRST) * (slope - first)
            second *= SECOND
            second += (1 - SECOND) * slope * slope
            spread = np.sqrt(second)
            spread /= (1 - SECOND**number) ** 0.5
            spread += 1e-8
            fast = CONFIDENCE_RATE if name == "raw_confidence" else 1.0
            self.parameters[name] -= rate * fast / (1 - FIRST**number) * (first / spread)
        return value

    def slopes(
        self, cost: Cost, x: Array, kinds: Ints, weights: Array, *, rows: int
    ) -> tuple[float, dict[str, Array]]:
        """Return the cost of a batch and its slope by the name of the parameter.

        As :func:`lbm.training.gradients.costs.batch_cost` of a discriminative cost; parameters that it does
        not depend on are left out.
        """
        own, patterns = self.parameters, self.patterns
        every = (x @ own["weights"] + own["hidden_bias"])[:, None, :] + patterns @ own["label_weights"]
        total, on = _softplus(every)
        scores = total.sum(axis=2) + patterns @ own["label_bias"]
        scale = weights * (cost.discriminative / len(x))
        if self.speaking:
            gain, slope = self._gains(x)
            share = cost.unaided if self.network.hidden else 0.0
            aided = scores + _by_label(gain, self.head_labels, patterns.shape[1]) @ patterns.T
            value, known = _surprise(aided, kinds, (1 - share) * scale)
            more, odds = _surprise(scores, kinds, share * scale) if share else (0.0, 0.0)
            value, odds = value + more, known + odds
        else:
            value, odds = _surprise(scores, kinds, scale)

        on *= odds[:, :, None]
        pulled = on.sum(axis=1)
        found = {
            "weights": x.T @ pulled,
            "label_weights": patterns.T @ on.sum(axis=0),
            "hidden_bias": pulled.sum(axis=0),
            "label_bias": odds.sum(axis=0) @ patterns,
        }
        if self.speaking:
            strength = slope((known @ patterns)[:, self.head_labels])
            by_formula = np.bincount(self.part_owners, strength[self.part_units], minlength=len(self.given))
            found["raw_confidence"] = by_formula[self.movable] * _sigmoid(own["raw_confidence"])
        return value + self._penalise(cost, found, rows), found

    def _gains(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return what units of the knowledge gain where their label atom is true, and how to go back.

        The latter is the slope by the confidences of units, given that by the gains.
        """
        matched = x @ self.signs + self.offset
        confidence = self.given.copy()
        confidence[self.movable] = np.logaddexp(0, self.parameters["raw_confidence"])
        strength = np.bincount(self.part_units, confidence[self.part_owners], minlength=self.speaking)
        strength = strength.astype(x.dtype)
        if self.network.calibrated:
            fired = ((matched + self.head_signs > -0.5) * 1.0 - (matched > -0.5)).astype(x.dtype)
            return fired * strength, lambda pull: (fired * pull).sum(axis=0)
        inputs = matched * strength
        without, low = _softplus(inputs)
        with_label, high = _softplus(inputs + self.head_signs * strength)

        def back(pull: Array) -> Array:
            above, below = high * pull, low * pull
            return np.asarray(((above - below) * matched).sum(axis=0) + self.head_signs * above.sum(axis=0))

        return with_label - without, back

    def _penalise(self, cost: Cost, found: dict[str, Array], rows: int) -> float:
        """Add the slopes of the penalties; return what these come to."""
        value = 0.0
        for name in ("weights", "label_weights"):
            w = self.parameters[name]
            if cost.l1:
                value += cost.l1 / rows * float(np.abs(w).sum())
                found[name] += cost.l1 / rows * np.sign(w)
            if cost.l2:
                value += cost.l2 / (2 * rows) * float((w * w).sum())
                found[name] += cost.l2 / rows * w
        if cost.trust and self.network.knowledge.units and len(self.movable):
            raw, began = self.parameters["raw_confidence"], self.network.first_confidence.numpy()
            growth = np.maximum(np.logaddexp(0, raw) / began - 1, 0)
            value += cost.trust / (2 * rows) * float((growth * growth).sum())
            slope = cost.trust / rows * growth / began * _sigmoid(raw)
            found["raw_confidence"] = found.get("raw_confidence", 0.0) + slope
        return value


def _surprise(scores: Array, kinds: Ints, scale: Array) -> tuple[float, Array]:
    """Return Σ_i scale_i (-log p(k_i | x_i)) and its slope by the scores, shape (rows, classes)."""
    scores = scores - scores.max(axis=1, keepdims=True)
    odds, at = np.exp(scores), np.arange(len(scores))
    sums = odds.sum(axis=1)
    value = float(scale @ (np.log(sums) - scores[at, kinds]))
    odds /= sums[:, None]
    odds[at, kinds] -= 1
    odds *= scale[:, None]
    return value, odds


def _softplus(s: Array) -> tuple[Array, Array]:
    """Return log(1 + exp s) and σ(s)."""
    size = np.abs(s)
    small = np.exp(-size)
    whole = small + 1
    slope = np.where(s >= 0, 1, small)
    slope /= whole
    return np.log(whole, out=whole) + np.maximum(s, 0, out=size), slope


def _sigmoid(s: Array) -> Array:
    return np.exp(-np.logaddexp(0, -s))


def _by_label(gain: Array, labels: Ints, number: int) -> Array:
    """Return the sums of columns by their label atom, shape (rows, labels)."""
    if number == 1:
        return np.asarray(gain.sum(axis=1, keepdims=True))
    member = np.zeros((gain.shape[1], number), dtype=gain.dtype)
    member[np.arange(len(labels)), labels] = 1
    return np.asarray(gain @ member)
