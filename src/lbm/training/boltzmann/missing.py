"""Missing values: NaN is an atom nobody looked at, and is summed out.

    p(k | x_seen) = Σ_{x_missing} q(x_missing | x_seen) p(k | x)

A fitted classifier knows q, how likely a completion is, from its training rows, whatever its cost: see
:mod:`lbm.training.boltzmann.likely`. The sum is exact up to 2^MAX_SUMMED completions of a row, and a mean
over independent draws beyond. Where there is no q, for rules alone and in training together, what a
completion is worth comes from the machine's own p(x),

    -F(x_seen, k) = log Σ_{x_missing} exp(-F(x, k)),    p(k | x_seen) = softmax_k(-F(x_seen, k))

and what is too much to be summed is estimated by Gibbs sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lbm.arrays import Bools, slices
from lbm.training.boltzmann.chains import Chains, draw_noise, sweep
from lbm.training.boltzmann.facts import Fact, every_way, facts_of
from lbm.training.boltzmann.filling import log_probabilities
from lbm.training.boltzmann.network import CHUNK, Network, softplus
from lbm.training.boltzmann.parameters import parameters_of

MAX_SUMMED: Final = 12
"""Missing atoms of a row, of those that touch hidden units, up to which their worlds are summed exactly."""

BURN: Final = 50
"""Sweeps of a prediction's chain before its first draw."""

DRAWS: Final = 200
"""Draws that a sampled prediction averages."""

COMPLETIONS: Final = 8
"""Completions of a row past MAX_SUMMED in training, drawn anew whenever the row is met."""

TRAINING_SWEEPS: Final = 5
"""Sweeps before those completions are taken."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Rows that miss the same columns, and how these can be filled in.

    Attributes
    ----------
    rows
        Their numbers, as the other numbers are a tensor.
    summed
        Missing columns that touch hidden units: those whose worlds are to be summed.
    apart
        Missing columns that touch none: log(1 + exp b_i) each, the same for every class.
    parts
        The facts that are missing: places within ``summed``, and their patterns.
    """

    rows: Tensor
    summed: Tensor
    apart: Tensor
    parts: tuple[Fact, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether they miss nothing."""
        return not self.summed.numel() + self.apart.numel()

    @property
    def completions(self) -> int:
        """In how many ways a row can be filled in."""
        return prod(len(patterns) for _, patterns in self.parts)

    @property
    def exact(self) -> bool:
        """Whether they are few enough to be summed."""
        return self.completions <= 1 << MAX_SUMMED

    def worlds(self, x: Tensor) -> Tensor:
        """Return every way, shape (completions, summed), as numbers like those of ``x``."""
        every = every_way(np.zeros(len(self.summed)), self.parts)
        return torch.as_tensor(every, dtype=x.dtype, device=x.device)


def find_patterns(network: Network, x: Tensor) -> list[Pattern]:
    """Return the patterns of missing values among rows, that of the complete ones first."""
    missing = torch.isnan(x).cpu().numpy()
    if not missing.any():
        nothing = torch.arange(0, device=x.device)
        return [Pattern(torch.arange(len(x), device=x.device), nothing, nothing)]
    touching = np.full(len(network.knowledge.columns), network.hidden > 0)  # which columns touch hidden units
    touching[network.used.cpu().numpy()] = True
    for together, _ in network.together:  # they are filled in together, or not at all: whole groups touch
        touching[together] = touching[together].any()
    packed = np.packbits(missing, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    found = []
    for number, gone in enumerate(missing[first]):
        summed = np.flatnonzero(gone & touching)
        parts = facts_of(summed.tolist(), network.together)
        places = tuple((np.searchsorted(summed, columns), patterns) for columns, patterns in parts)
        mine = torch.as_tensor(np.flatnonzero(which.ravel() == number), device=x.device)
        apart = torch.as_tensor(np.flatnonzero(gone & ~touching), device=x.device)
        found.append(Pattern(mine, torch.as_tensor(summed, device=x.device), apart, places))
    return found


def summed_scores(network: Network, x: Tensor, pattern: Pattern) -> Tensor:
    """Return -F(x_seen, k) of the rows of one pattern, exactly: shape (rows of the pattern, classes)."""
    columns, worlds = pattern.summed, pattern.worlds(x)
    rows = torch.nan_to_num(x[pattern.rows], nan=0.0)
    # Inputs are linear in x: what each missing column adds is learned from as many rows as there are columns.
    probe = x.new_zeros(len(columns) + 1, x.shape[1])
    probe[torch.arange(len(columns)), columns] = 1.0
    reached = network.feature_inputs(probe)
    added = worlds @ (reached[:-1] - reached[-1])
    worth = worlds @ network.visible_bias[columns]
    apart = softplus(network.visible_bias[pattern.apart]).sum()
    inputs = network.feature_inputs(rows)
    seen = rows @ network.visible_bias + apart

    def total(part: Tensor) -> Tensor:
        every = (part[:, None, :] + added).flatten(0, 1)
        scores = network.scores_of_inputs(every).reshape(len(part), len(worlds), -1)
        return torch.logsumexp(scores + worth[:, None], dim=1)

    step = max(1, CHUNK // max(1, len(worlds) * network.units * network.classes))
    if step >= len(rows):
        return total(inputs) + seen[:, None]
    # In parts, each of which is computed again on the way back instead of being kept.
    again = torch.is_grad_enabled()
    each = [inputs[part] for part in slices(len(rows), step)]
    parts = [checkpoint(total, part, use_reentrant=False) if again else total(part) for part in each]
    return torch.cat(parts) + seen[:, None]


def exact_rows(network: Network, x: Tensor) -> Bools:
    """Return which rows are summed exactly, shape (rows,): others miss too many values, and are sampled."""
    exact = torch.ones(len(x), dtype=torch.bool)
    for pattern in find_patterns(network, x):
        exact[pattern.rows.cpu()] = pattern.exact
    return exact.numpy()


def predict_log_probabilities(network: Network, x: Tensor, *, seed: int = 0) -> Tensor:
    """Return log p(k | x_seen), shape (rows, classes).

    A row that is not exact is sampled, with random numbers that depend on ``seed`` and on the row alone.
    """
    if network.likely is not None:
        given = x.cpu().numpy().astype(np.float64)
        said = log_probabilities(parameters_of(network), given, seed=seed)
        return torch.as_tensor(said, dtype=x.dtype, device=x.device)
    with torch.no_grad():
        out = x.new_zeros(len(x), network.classes)
        sampled = x.new_zeros(len(x), dtype=torch.bool)
        for pattern in find_patterns(network, x):
            if pattern.complete:
                step = max(1, CHUNK // max(1, network.units * network.classes, x.shape[1]))
                for places in slices(len(pattern.rows), step):
                    part = pattern.rows[places]
                    out[part] = network.log_scores(x[part])
            elif pattern.exact:
                out[pattern.rows] = summed_scores(network, x, pattern)
            else:
                sampled[pattern.rows] = True
        step = max(1, 4 * CHUNK // ((BURN + DRAWS) * (network.units + x.shape[1] + 1)))
        rows = torch.nonzero(sampled)[:, 0]
        for part in (rows[places] for places in slices(len(rows), step)):
            out[part] = _sampled(network, x[part], seed)
        return torch.log_softmax(out, dim=1)


def _sampled(network: Network, x: Tensor, seed: int) -> Tensor:
    """Return the log of the mean of p(k | x_seen, x_missing) over draws of x_missing given x_seen."""
    missing = torch.isnan(x)
    noise = _row_noise(x, (BURN + DRAWS + 1, network.units + x.shape[1] + 1), seed)
    chains = begin_chains(network, x, missing, noise[:, 0, : x.shape[1]])
    mean = x.new_zeros(len(x), network.classes)
    for number in range(1, BURN + DRAWS + 1):
        chains = sweep(network, chains, noise[:, number], missing=missing)
        if number > BURN:
            mean += torch.softmax(network.log_scores(chains.x), dim=1)
    return torch.log(mean / DRAWS)


def begin_chains(
    network: Network, x: Tensor, missing: Tensor, uniform: Tensor, kinds: Tensor | None = None
) -> Chains:
    """Return chains whose missing atoms are drawn from the columns' own biases.

    Without ``kinds``, each begins in the class that is likeliest then.
    """
    guess = (uniform < torch.sigmoid(network.visible_bias)).to(x.dtype)
    filled = torch.where(missing, guess, x)
    if kinds is None:
        kinds = torch.softmax(network.log_scores(filled), dim=1).argmax(dim=1)
    return Chains(filled, kinds)


def _row_noise(x: Tensor, shape: tuple[int, int], seed: int) -> Tensor:
    """Return uniform numbers of this shape for every row, the same whatever rows stand beside it."""
    drawn = np.empty((len(x), *shape), dtype=np.float32)
    for number, row in enumerate(x.cpu().numpy().astype(np.float32)):
        digest = blake2b(row.tobytes(), digest_size=16, key=int(seed).to_bytes(8, "little")).digest()
        key = np.frombuffer(digest, dtype=np.uint64)
        drawn[number] = np.random.Generator(np.random.Philox(key=key)).random(shape, dtype=np.float32)
    return torch.as_tensor(drawn, dtype=x.dtype, device=x.device)


@torch.no_grad()
def complete(
    network: Network, x: Tensor, generator: torch.Generator, *, kinds: Tensor | None = None
) -> Tensor:
    """Return rows filled in by a short chain, given what was seen of them and the class if it is known."""
    missing = torch.isnan(x)
    uniform = draw_noise(network, len(x), generator)[:, network.units : -1]
    chains = begin_chains(network, x, missing, uniform, kinds)
    for _ in range(TRAINING_SWEEPS):
        noise = draw_noise(network, len(x), generator)
        chains = sweep(network, chains, noise, missing=missing, keep_kinds=kinds is not None)
    return chains.x
