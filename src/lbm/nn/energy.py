"""The paper's own loss: the free energy of the theory's machine at the network's outputs.

    F(x) = -c a·x - Σ_j log(1 + exp(c (Σ_i w_ij x_i + b_j)))

x are probabilities where the machine means truth values, so that lowering F pulls the network towards the
wells of the energy, the models. [TG21, section 4.2]

It is there for fidelity, and it is biased: it is no log-probability, and units that are off pull, too, so
that outputs move though the theory is certain to be kept. The likelihoods of a layer have none of this.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor

from lbm.machine.translate import translate
from lbm.nn.asked import AskedLayer
from lbm.nn.named import UnfitInputs

_MOST: Final = 1e30  # of logits, in a softmax


class FreeEnergy:
    """The free energy of a layer's theory, of inputs as the network has them and answers as they are told."""

    def __init__(self, layer: AskedLayer, confidence: float) -> None:
        self.layer = layer
        if not (isinstance(confidence, int | float) and 0 < confidence < math.inf):
            raise ValueError(f"expected a confidence above 0, got {confidence!r}")
        self.confidence = float(confidence)
        machine = translate(layer.extended)
        known = {name for choice in layer.choices for name in choice}
        missing = [name for name in machine.atoms if name not in known]
        if missing:
            shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            raise UnfitInputs(
                f"expected all visible units among inputs and queries for loss='free_energy', got none for "
                f"{shown}: name them, or take loss='likelihood'"
            )
        place = {name: i for i, name in enumerate(name for choice in layer.choices for name in choice)}
        at = np.array([place[name] for name in machine.atoms], np.int64)
        weights = np.zeros((len(place), machine.hidden))
        weights[at] = machine.weights.toarray()
        bias = np.zeros(len(place))
        bias[at] = machine.visible_bias
        self.weights, self.visible = torch.from_numpy(weights), torch.from_numpy(bias)
        self.hidden = torch.from_numpy(np.array(machine.hidden_bias, np.float64))
        self.starts = np.cumsum([0, *map(len, layer.choices)]).tolist()

    def __call__(self, logits: Tensor, told: Tensor | None) -> Tensor:
        """Return F of each row of logits, shape (rows, columns), and values of choices, (rows, choices)."""
        x = self.visibles(logits.double(), told)
        weights, visible, hidden = (part.to(x.device) for part in (self.weights, self.visible, self.hidden))
        inputs = self.confidence * (x @ weights + hidden)
        found = -self.confidence * (x @ visible) - torch.nn.functional.softplus(inputs).sum(dim=1)
        return found.to(logits.dtype)

    def visibles(self, logits: Tensor, told: Tensor | None) -> Tensor:
        """Return the visible units: probabilities of inputs, and truth values of answers."""
        parts = []
        for place, (start, end) in enumerate(pairwise(self.starts)):
            size = end - start
            given = None if told is None else told[:, place]
            if place < len(self.layer.inputs):
                own = logits[:, start:end].clamp(-_MOST, _MOST)
                part = torch.sigmoid(own) if size == 1 else torch.softmax(own, dim=1)
            else:
                if given is None or (given < 0).any():
                    raise ValueError(
                        "expected an answer to every query in every row for loss='free_energy', got none for "
                        f"{self.layer.choices[place][0]!r}"
                    )
                part = logits.new_zeros((len(logits), size))
            if given is not None:
                values = given[:, None]
                wanted = (
                    torch.arange(size, device=given.device)
                    if size > 1
                    else torch.ones(1, device=given.device)
                )
                part = torch.where(values >= 0, (values == wanted).to(part), part)
            parts.append(part)
        return torch.cat(parts, dim=1)
