"""Chains over rows and classes: one sweep of block Gibbs, as a pure function of its random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lbm.training.boltzmann.network import Network

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Chains:
    """States of chains, one a row: ``x`` of shape (chains, columns), and the class of each in ``kinds``."""

    x: Tensor
    kinds: Tensor


@dataclass(frozen=True, slots=True)
class Block:
    """Columns that hold one fact together, and the patterns they can have, shape (patterns, columns).

    Of a one-hot group exactly one is true; thresholds of one number are true from some place on.
    """

    columns: Tensor
    patterns: Tensor


def draw_noise(network: Network, chains: int, generator: torch.Generator) -> Tensor:
    """Return uniform numbers for one sweep of ``chains`` chains, shape (chains, units + columns + 1)."""
    weights = network.weights
    width = network.units + len(weights) + 1
    return torch.rand(chains, width, generator=generator, dtype=weights.dtype, device=weights.device)


@torch.no_grad()
def sweep(
    network: Network,
    chains: Chains,
    noise: Tensor,
    *,
    missing: Tensor | None = None,
    blocks: Sequence[Block] = (),
    keep_kinds: bool = False,
) -> Chains:
    """Return the chains after h ~ p(h | x, k) and (x, k) ~ p(x, k | h).

    Columns are Bernoulli given h; the class is drawn from all classes, which for two is a Bernoulli too.

    Parameters
    ----------
    noise
        Uniform numbers, shape (chains, units + columns + 1): for hidden units, columns, and the class.
    missing
        Shape (chains, columns): only these are drawn, the others stay as they are; None: all are.
    blocks
        Columns drawn together, as one of their patterns, in the chains where all of them are missing.
    keep_kinds
        Whether classes stay as they are.
    """
    hidden, visible = noise[:, : network.units], noise[:, network.units : -1]
    h = (hidden < torch.sigmoid(network.hidden_inputs(chains.x, chains.kinds))).to(chains.x.dtype)
    columns, classes = network.visible_inputs(h)
    x = (visible < torch.sigmoid(columns)).to(chains.x.dtype)
    for block in blocks:
        chosen = pick(columns[:, block.columns] @ block.patterns.T, visible[:, block.columns[0]])
        together = block.patterns[chosen]
        if missing is not None:
            whole = missing[:, block.columns].all(dim=1, keepdim=True)
            together = torch.where(whole, together, x[:, block.columns])
        x[:, block.columns] = together
    if missing is not None:
        x = torch.where(missing, x, chains.x)
    return Chains(x, chains.kinds if keep_kinds else pick(classes, noise[:, -1]))


def pick(logits: Tensor, uniform: Tensor) -> Tensor:
    """Return a choice per row with probabilities softmax(logits), where ``uniform`` falls in their sums."""
    sums = torch.softmax(logits, dim=1).cumsum(dim=1)
    return (uniform[:, None] > sums[:, :-1]).sum(dim=1)
