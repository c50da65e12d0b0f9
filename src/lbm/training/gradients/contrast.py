"""Contrast: data against chains, for machines without labels, by gradients written out.

    E(x, h) = -b·x - c·h - Σ_ij x_i W_ij h_j,    F(x) = -b·x - Σ_j log(1 + exp(c_j + Σ_i x_i W_ij))

    ∂ log p(x) / ∂W_ij = x_i p(h_j | x) - <x_i h_j>_machine

The second term is estimated by chains, which begin at the data (contrastive divergence, Hinton 2002) or go on
where they were (persistent contrastive divergence, Tieleman 2008). Units of the knowledge are units like any
other, whose weights are functions of one confidence per formula. With persistent chains a batch is three
products of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import slices
from lbm.errors import LimitExceeded
from lbm.training.boltzmann.chains import sweep
from lbm.training.boltzmann.missing import BURN, MAX_SUMMED, begin_chains, find_patterns
from lbm.training.boltzmann.network import Network, softplus
from lbm.training.gradients.descent import Progress, adam_step
from lbm.training.gradients.quick import CONFIDENCE_RATE

CHUNK: Final = 1 << 20
"""Hidden inputs held at once while rows are weighed."""

CHAINS: Final = 8
"""Chains for a row that misses too much to be summed."""

KEPT: Final = 25
"""Draws taken from each of them."""


Random = torch.Generator | np.random.Generator
"""Where uniform numbers are from: numpy's are drawn on the CPU, in half the time of torch's."""


# --- one batch -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flat:
    """All hidden units alike, the knowledge's first: W (columns, units), c (units,) and b (columns,)."""

    weights: Tensor
    hidden_bias: Tensor
    visible_bias: Tensor

    def hidden_inputs(self, x: Tensor) -> Tensor:
        """Return c_j + Σ_i x_i W_ij, shape (rows, units)."""
        return torch.addmm(self.hidden_bias, x, self.weights)

    def visible_inputs(self, h: Tensor) -> Tensor:
        """Return b_i + Σ_j W_ij h_j, shape (rows, columns)."""
        return torch.addmm(self.visible_bias, h, self.weights.T)


@torch.no_grad()
def flatten(network: Network) -> Flat:
    """Return the weights of all units; without knowledge they are the network's own, not copies of them."""
    if not network.knowledge.units:
        return Flat(*(p.detach() for p in (network.weights, network.hidden_bias, network.visible_bias)))
    assert (
        not network.calibrated
    )  # chains of these freeze: whoever learns by contrast takes the paper's units
    if network.literals == "tied":
        strength = network.unit_confidences()
        literals = network.literal_signs * strength[network.literal_units]
        bias = strength * (network.knowledge.epsilon - network.positive)
    else:
        literals, bias = network.literal_weights[network.literal_places], network.literal_bias
    known = network.weights.new_zeros(len(network.weights), network.knowledge.units)
    known[network.used[network.literal_rows], network.literal_units] = literals
    return Flat(
        torch.cat([known, network.weights], dim=1),
        torch.cat([bias, network.hidden_bias]),
        network.visible_bias.detach(),
    )


@dataclass(frozen=True, slots=True)
class Contrast:
    """Data against chains: the slope of the mean of log p(x) is xᵀh for W, Σ h for c and xᵀ scale for b.

    Attributes
    ----------
    x
        The rows, then the states of the chains: shape (rows + chains, columns).
    h
        p(h | x) times scale, shape (rows + chains, units).
    scale
        1/rows for a row and -1/chains for a chain.
    """

    x: Tensor
    h: Tensor
    scale: Tensor


@torch.no_grad()
def compare(
    flat: Flat, x: Tensor, chains: Tensor | None, *, steps: int, generator: Random
) -> tuple[Contrast, Tensor | None]:
    """Return the contrast of complete rows, shape (rows, columns), and the chains after it.

    Chains are given by their hidden states, shape (chains, units), and make ``steps`` sweeps; None: one
    begins at every row, and none is kept.
    """
    at_data = flat.hidden_inputs(x).sigmoid_() if chains is None else None
    h = chains if at_data is None else _draw(at_data, generator)
    assert h is not None
    v = _draw(flat.visible_inputs(h).sigmoid_(), generator)
    for _ in range(steps - 1):
        h = _draw(flat.hidden_inputs(v).sigmoid_(), generator)
        v = _draw(flat.visible_inputs(h).sigmoid_(), generator)
    both = torch.cat([x, v])
    scale = torch.cat([x.new_full((len(x),), 1 / len(x)), x.new_full((len(v),), -1 / len(v))])
    if at_data is None:
        p = flat.hidden_inputs(both).sigmoid_()
        h = _draw(p[len(x) :], generator)
        return Contrast(both, p.mul_(scale[:, None]), scale), h
    p = torch.cat([at_data, flat.hidden_inputs(v).sigmoid_()])
    return Contrast(both, p.mul_(scale[:, None]), scale), None


def _draw(p: Tensor, generator: Random) -> Tensor:
    """Return 1 with probability p, else 0; several times as fast as torch.bernoulli."""
    if isinstance(generator, np.random.Generator):
        kind = np.float32 if p.dtype == torch.float32 else np.float64
        uniform = torch.from_numpy(generator.random(tuple(p.shape), dtype=kind))
    else:
        uniform = torch.rand(p.shape, generator=generator, dtype=p.dtype, device=p.device)
    return torch.lt(uniform, p, out=uniform)


@torch.no_grad()
def slopes(network: Network, found: Contrast) -> dict[str, Tensor]:
    """Return the slope of the mean of log p(x) by the name of the parameter, for all but the weights W.

    For a tied formula, whose confidence is κ_i = log(1 + exp θ_i),

        ∂/∂θ_i = σ(θ_i) Σ_{j of i} (Σ_l signs_lj ∂/∂W_lj + (ε - positive_j) ∂/∂c_j)
    """
    known = network.knowledge.units
    units = found.h.sum(dim=0)
    out = {"hidden_bias": units[known:], "visible_bias": found.x.T @ found.scale}
    if not known:
        return out
    matrix = found.x[:, network.used].T @ found.h[:, :known]
    literals = matrix[network.literal_rows, network.literal_units]
    if network.literals == "free":
        return out | {"literal_weights": literals, "literal_bias": units[:known]}
    strength = (network.knowledge.epsilon - network.positive) * units[:known]
    strength.index_add_(0, network.literal_units, literals * network.literal_signs)
    formulae = torch.zeros_like(network.given_confidence)
    formulae.index_add_(0, network.part_owners, strength[network.part_units])
    return out | {"raw_confidence": formulae[network.movable] * torch.sigmoid(network.raw_confidence)}


@torch.no_grad()
def ascend(
    progress: Progress, found: Contrast, *, optimiser: str, learning_rate: float, l1: float, l2: float
) -> None:
    """Move the parameters up the slope of the mean of log p(x) - λ1 Σ|w| - λ2/2 Σ w².

    Penalties are those of :class:`lbm.training.gradients.costs.Cost`.
    """
    network = progress.network
    others, h = slopes(network, found), found.h[:, network.knowledge.units :]
    if "literal_weights" in others and (l1 or l2):
        moved = network.literal_weights - network.first_weights
        others["literal_weights"] = others["literal_weights"] - l1 * moved.sign() - l2 * moved
    if optimiser == "adam":
        if "raw_confidence" in others:
            # One confidence binds many atoms. Adam's steps are as long for a small slope as for a large one,
            # and would take it to where chains no longer move.
            network.raw_confidence.add_(others.pop("raw_confidence"), alpha=learning_rate * CONFIDENCE_RATE)
        gradient = torch.addmm(network.weights, found.x.T, h, beta=l2, alpha=-1)
        network.weights.grad = gradient.add_(network.weights.sign(), alpha=l1) if l1 else gradient
        for name, slope in others.items():
            network.get_parameter(name).grad = -slope
        adam_step(progress, learning_rate)
        return
    if l1:
        network.weights.sub_(network.weights.sign(), alpha=learning_rate * l1)
    network.weights.addmm_(found.x.T, h, beta=1 - learning_rate * l2, alpha=learning_rate)
    for name, slope in others.items():
        network.get_parameter(name).add_(slope, alpha=learning_rate)


# --- rows that are not complete ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilledRows:
    """Some rows, and the ways to fill in what they miss.

    Attributes
    ----------
    flat
        What they are weighed by.
    rows
        Their numbers.
    x
        The rows themselves, shape (rows, columns), NaN where missing.
    inputs
        c + Wᵀx of every way, shape (rows, ways, units).
    shares
        log p(way | what was seen), shape (rows, ways).
    energies
        F(what was seen), shape (rows,); None where ways were drawn instead of summed.
    """

    flat: Flat
    rows: Tensor
    x: Tensor
    inputs: Tensor
    shares: Tensor
    energies: Tensor | None

    def hidden_means(self) -> Tensor:
        """Return p(h_j = 1 | what was seen), shape (rows, units)."""
        return (self.shares.exp()[:, :, None] * torch.sigmoid(self.inputs)).sum(dim=1)

    def reconstructions(self) -> Tensor:
        """Return σ(b + W p(h | what was seen)), shape (rows, columns)."""
        return torch.sigmoid(self.flat.visible_inputs(self.hidden_means()))

    def free_energies(self) -> Tensor:
        """Return F(what was seen), shape (rows,)."""
        if self.energies is None:
            raise LimitExceeded(
                f"the free energy of a row is summed over up to {MAX_SUMMED} missing atoms (limit MAX_SUMMED)"
                f", and row {int(self.rows[0])} misses more: fill some in, for example from reconstruct",
                MAX_SUMMED=MAX_SUMMED,
            )
        return self.energies

    def pseudo_likelihoods(self) -> Tensor:
        """Return Σ_i log p(x_i | all other atoms seen) over the atoms seen, shape (rows,).

        1/p(x_i | others) = 1 + Σ_ways p(way | seen) exp(F(way) - F(way with x_i flipped))
        """
        usual = softplus(self.inputs).sum(dim=2)
        total = torch.zeros_like(usual[:, 0])
        for column in range(self.x.shape[1]):
            values = self.x[:, column]
            flip = 1 - 2 * torch.nan_to_num(values, nan=0.0)[:, None]
            flipped = softplus(self.inputs + flip[:, :, None] * self.flat.weights[column]).sum(dim=2)
            odds = self.shares + flipped - usual + flip * self.flat.visible_bias[column]
            total -= torch.where(torch.isnan(values), 0.0, softplus(torch.logsumexp(odds, dim=1)))
        return total


@torch.no_grad()
def fill_rows(network: Network, x: Tensor, *, ways: int, seed: int) -> Iterator[FilledRows]:
    """Yield all rows of ``x``, shape (rows, columns), NaN where missing, a bounded number at a time.

    Rows with more than ``ways`` ways to fill them in have some drawn by Gibbs sampling, with random numbers
    that depend on ``seed`` and on the row alone.
    """
    flat = flatten(network)
    for pattern in find_patterns(network, x):
        if pattern.completions > ways:
            step = max(1, 4 * CHUNK // ((BURN + KEPT + 1) * CHAINS * (network.units + x.shape[1] + 1)))
            for rows in (pattern.rows[places] for places in slices(len(pattern.rows), step)):
                filled = _fill(network, x[rows], seed)
                inputs = flat.hidden_inputs(filled.flatten(0, 1)).reshape(*filled.shape[:2], -1)
                shares = inputs.new_full(inputs.shape[:2], -float(np.log(filled.shape[1])))
                yield FilledRows(flat, rows, x[rows], inputs, shares, None)
            continue
        worlds = pattern.worlds(x)
        added, worth = worlds @ flat.weights[pattern.summed], worlds @ flat.visible_bias[pattern.summed]
        apart = softplus(flat.visible_bias[pattern.apart]).sum()
        step = max(1, CHUNK // (len(worlds) * max(1, network.units)))
        for rows in (pattern.rows[places] for places in slices(len(pattern.rows), step)):
            seen = torch.nan_to_num(x[rows], nan=0.0)
            inputs = flat.hidden_inputs(seen)[:, None] + added
            logs = softplus(inputs).sum(dim=2) + worth
            total = torch.logsumexp(logs, dim=1)
            energies = -(total + seen @ flat.visible_bias + apart)
            yield FilledRows(flat, rows, x[rows], inputs, logs - total[:, None], energies)


def _fill(network: Network, rows: Tensor, seed: int) -> Tensor:
    """Return draws of rows given what was seen of them, shape (rows, CHAINS x KEPT, columns)."""
    shape = (BURN + KEPT + 1, CHAINS, network.units + rows.shape[1] + 1)
    drawn = torch.stack([_noise_of(row, shape, seed) for row in rows], dim=1).flatten(1, 2)
    many = rows.repeat_interleave(CHAINS, dim=0)
    missing, kinds = torch.isnan(many), torch.zeros(len(many), dtype=torch.int64, device=rows.device)
    chains, kept = begin_chains(network, many, missing, drawn[0][:, network.units : -1], kinds), []
    for number, uniform in enumerate(drawn[1:]):
        chains = sweep(network, chains, uniform, missing=missing, keep_kinds=True)
        if number >= BURN:
            kept.append(chains.x.reshape(len(rows), CHAINS, -1))
    return torch.cat(kept, dim=1)


def _noise_of(row: Tensor, shape: tuple[int, ...], seed: int) -> Tensor:
    """Return uniform numbers that depend on the seed and on this row alone."""
    text = row.float().cpu().numpy().tobytes()
    digest = blake2b(text, digest_size=8, key=seed.to_bytes(8, "little")).digest()
    generator = torch.Generator(device=row.device).manual_seed(int.from_bytes(digest, "little") >> 1)
    return torch.rand(shape, generator=generator, dtype=row.dtype, device=row.device)


@torch.no_grad()
def gibbs(flat: Flat, chains: int, *, sweeps: int, generator: torch.Generator) -> Tensor:
    """Return the states of chains after so many sweeps from what the biases alone say: (chains, columns)."""
    v = _draw(torch.sigmoid(flat.visible_bias).expand(chains, -1), generator)
    for _ in range(sweeps):
        h = _draw(flat.hidden_inputs(v).sigmoid_(), generator)
        v = _draw(flat.visible_inputs(h).sigmoid_(), generator)
    return v
