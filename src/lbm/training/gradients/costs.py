"""Costs: discriminative, generative and mixed, of one batch of rows with classes.

    discriminative   -log p(k | x), exact through free energies
    generative       -log p(x, k), by contrastive divergence: its gradient is that of F at the data less that
                     of F at the chains' states, with the states held fixed
    hybrid           α · generative + β · discriminative

Rows may miss values: x is then what was seen of them, see :mod:`lbm.training.boltzmann.missing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from lbm.training.boltzmann.chains import Chains, draw_noise, sweep
from lbm.training.boltzmann.missing import COMPLETIONS, complete, find_patterns, summed_scores
from lbm.training.boltzmann.network import Network, softplus

KINDS: Final = ("discriminative", "generative", "hybrid")


@dataclass(frozen=True, slots=True)
class Cost:
    """What training makes small.

    Attributes
    ----------
    discriminative, generative
        β and α, what each of the two weighs.
    steps
        Sweeps of a chain between two updates: the k of CD-k.
    persistent
        Whether chains go on where the last batch left them (PCD), instead of beginning at the data.
    l1, l2
        Penalties beside the sum over all rows, as a prior is: λ1 Σ|w| + λ2/2 Σ w² over the weights of units
        that are not knowledge, and over how far free literals are from where they began. Biases have none.
    trust
        The penalty τ/2 Σ_i max(0, κ_i/κ_i⁰ - 1)² on confidences that outgrow where they began, or so on every
        free literal. Without it a rule that is never wrong grows until the rows it covers teach nothing else.
        To fall costs nothing.
    unaided
        The share u of the discriminative cost that is asked of the machine without its knowledge, of rows
        that miss nothing: (1 - u) (-log p(k | x)) + u (-log p(k | x) of the other units and biases alone).
        Without it rules explain their rows away, and what those rows say beside is not learned.
    """

    discriminative: float = 1.0
    generative: float = 0.0
    steps: int = 1
    persistent: bool = False
    l1: float = 0.0
    l2: float = 0.0
    trust: float = 0.0
    unaided: float = 0.0


def cost_of(kind: str, *, alpha: float = 0.01, beta: float = 1.0, **options: Any) -> Cost:
    """Return the cost of one of three kinds; ``alpha`` and ``beta`` are those of ``hybrid``.

    ``options`` are other fields of :class:`Cost`.
    """
    if kind not in KINDS:
        raise ValueError(f"expected a cost among {', '.join(KINDS)}, got {kind!r}")
    both = {"discriminative": (1.0, 0.0), "generative": (0.0, 1.0), "hybrid": (beta, alpha)}[kind]
    cost = Cost(*both, **options)
    penalties = {"alpha": alpha, "beta": beta, "l1": cost.l1, "l2": cost.l2, "trust": cost.trust}
    for name, value in penalties.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} is a number from 0 up, got {value}")
    if cost.steps < 1:
        raise ValueError(f"steps is a whole number from 1 up, got {cost.steps}")
    if not 0 <= cost.unaided <= 1:
        raise ValueError(f"unaided is a share from 0 to 1, got {cost.unaided}")
    return cost


def batch_cost(
    network: Network,
    cost: Cost,
    x: Tensor,
    kinds: Tensor,
    weights: Tensor,
    *,
    generator: torch.Generator,
    chains: Chains | None = None,
    gaps: bool = True,
    rows: int = 1,
) -> tuple[Tensor, Chains | None]:
    """Return the cost of a batch, one number to be differentiated, and the chains after it.

    Each part is Σ w_i (cost of row i) / rows. The value of a generative part is a difference of free
    energies, no likelihood: only its gradient means something.

    Parameters
    ----------
    x, kinds, weights
        Rows, shape (rows, columns), NaN where missing; their classes and their weights, shape (rows,).
    generator
        Where random numbers come from.
    chains
        The states of persistent chains; None: they begin here.
    gaps
        Whether a value may be missing.
    rows
        Of all the data: the share of the penalties is 1/rows, as if each row brought its part of them.
    """
    terms: list[Tensor] = []
    scores = None
    gaps = gaps and bool(torch.isnan(x).any())
    if cost.discriminative:
        seen = _seen_scores(network, x, generator) if gaps else None
        scores = network.log_scores(x, joint=bool(cost.generative)) if seen is None else seen
        surprise = functional.cross_entropy(scores, kinds, reduction="none")
        if cost.unaided and network.hidden and network.knowledge.units:
            surprise = _with_unaided(network, cost.unaided, surprise, x, kinds)
        terms.append(weights @ surprise * (cost.discriminative / len(x)))
    if cost.generative:
        if gaps:
            x, at_data = _seen_energies(network, x, kinds, generator)
        else:
            every = network.log_scores(x, joint=True) if scores is None else scores
            at_data = -every.gather(1, kinds[:, None])[:, 0]
        states = chains if cost.persistent and chains is not None else Chains(x, kinds)
        for _ in range(cost.steps):
            states = sweep(network, states, draw_noise(network, len(states.x), generator))
        at_states = free_energies(network, states)
        if cost.persistent:
            chains, expected = states, weights.mean() * at_states.mean()
        else:
            expected = (weights * at_states).mean()
        terms.append(cost.generative * ((weights * at_data).mean() - expected))
    if cost.l1 or cost.l2 or (cost.trust and network.knowledge.units):
        terms.append(penalty(network, cost) / rows)
    return sum(terms[1:], terms[0]), chains


def _with_unaided(network: Network, share: float, surprise: Tensor, x: Tensor, kinds: Tensor) -> Tensor:
    """Return -log p(k | x) of every row, a share of it that of the machine without its knowledge."""
    whole = ~torch.isnan(x).any(dim=1)
    alone = functional.cross_entropy(network.unaided_scores(torch.nan_to_num(x)), kinds, reduction="none")
    return torch.where(whole, (1 - share) * surprise + share * alone, surprise)


def free_energies(network: Network, states: Chains) -> Tensor:
    """Return F(x, k) of every state, shape (states,)."""
    if network.calibrated:
        return -network.log_scores(states.x, joint=True).gather(1, states.kinds[:, None])[:, 0]
    inputs = network.hidden_inputs(states.x, states.kinds)
    biases = states.x @ network.visible_bias + network.patterns[states.kinds] @ network.label_bias
    return -(softplus(inputs).sum(dim=1) + biases)


def penalty(network: Network, cost: Cost) -> Tensor:
    """Return what the penalties of :class:`Cost` come to."""
    total = network.hidden_bias.new_zeros(())
    weights: list[Tensor] = [network.weights, network.label_weights]
    if network.literals == "free":
        weights.append(network.literal_weights - network.first_weights)
    for values in weights:
        if cost.l1:
            total = total + cost.l1 * values.abs().sum()
        if cost.l2:
            total = total + cost.l2 / 2 * values.square().sum()
    if cost.trust and network.knowledge.units:
        total = total + cost.trust / 2 * network.growth().square().sum()
    return total


def _seen_scores(network: Network, x: Tensor, generator: torch.Generator) -> Tensor:
    """Return scores whose softmax is p(k | x_seen): exact where the sum is, else over a few completions."""
    scores = x.new_zeros(len(x), network.classes)
    for pattern in find_patterns(network, x):
        rows = pattern.rows
        if pattern.complete:
            found = network.log_scores(x[rows])
        elif pattern.exact:
            found = summed_scores(network, x, pattern)
        else:
            filled = complete(network, x[rows].repeat(COMPLETIONS, 1), generator)
            each = torch.log_softmax(network.log_scores(filled), dim=1)
            found = torch.logsumexp(each.reshape(COMPLETIONS, len(rows), -1), dim=0)
        scores = scores.index_add(0, rows, found)
    return scores


def _seen_energies(
    network: Network, x: Tensor, kinds: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return rows filled in for chains to begin at, and F(x_seen, k), whose gradient is that of -log p̃."""
    filled = complete(network, x, generator, kinds=kinds)
    energies = x.new_zeros(len(x))
    for pattern in find_patterns(network, x):
        rows = pattern.rows
        if pattern.complete:
            found = free_energies(network, Chains(x[rows], kinds[rows]))
        elif pattern.exact:
            found = -summed_scores(network, x, pattern).gather(1, kinds[rows][:, None])[:, 0]
        else:  # completions given the class: the mean of their gradients is the gradient of the sum
            many = x[rows].repeat(COMPLETIONS, 1)
            classes = kinds[rows].repeat(COMPLETIONS)
            more = Chains(complete(network, many, generator, kinds=classes), classes)
            found = free_energies(network, more).reshape(COMPLETIONS, len(rows)).mean(dim=0)
        energies = energies.index_add(0, rows, found)
    return filled, energies
