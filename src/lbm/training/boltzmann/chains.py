"""Chains over rows and classes: one sweep of block Gibbs, as a pure function of its random numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lbm.training.boltzmann.network import Network


@dataclass(frozen=True, slots=True)
class Chains:
    """States of chains, one a row: ``x`` of shape (chains, columns), and the class of each in ``kinds``."""

    x: Tensor
    kinds: Tensor


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
    keep_kinds: bool = False,
) -> Chains:
    """Return the chains after h ~ p(h | x, k) and (x, k) ~ p(x, k | h).

    Columns are Bernoulli given h; the class is drawn from all classes, which for two is a Bernoulli too.

    Parameters
    ----------
    noise
        Uniform numbers, shape (chains, units + columns + 1): for hidden units, columns, and the class.
    missing
        Shape (chains, columns): only these are drawn, the others stay as they are, and columns of one group
        are drawn together, as one of their patterns, where all of them are missing; None: each column is.
    keep_kinds
        Whether classes stay as they are.
    """
    hidden, visible = noise[:, : network.units], noise[:, network.units : -1]
    h = (hidden < torch.sigmoid(network.hidden_inputs(chains.x, chains.kinds))).to(chains.x.dtype)
    columns, classes = network.visible_inputs(h)
    x = (visible < torch.sigmoid(columns)).to(chains.x.dtype)
    if missing is not None:
        for group in network.groups:
            chosen = pick(columns[:, group.columns] @ group.patterns.T, visible[:, group.columns[0]])
            whole = missing[:, group.columns].all(dim=1, keepdim=True)
            x[:, group.columns] = torch.where(whole, group.patterns[chosen], x[:, group.columns])
        x = torch.where(missing, x, chains.x)
    return Chains(x, chains.kinds if keep_kinds else pick(classes, noise[:, -1]))


def pick(logits: Tensor, uniform: Tensor) -> Tensor:
    """Return a choice per row with probabilities softmax(logits), where ``uniform`` falls in their sums."""
    sums = torch.softmax(logits, dim=1).cumsum(dim=1)
    return (uniform[:, None] > sums[:, :-1]).sum(dim=1)
