"""Best worlds with a gradient: perturb-and-MAP, and implicit maximum likelihood (I-MLE) for the way back.

Forward, noise is added to the logits (Gumbel for the atoms of a group, logistic for others) and the best
world is looked for: without rules that is a draw of the logits' own distribution. Backward, the world is
compared with the best one where logits have moved a step against the loss, under the same noise:

    ∂L/∂logits ≈ (z(a + noise) - z(a - λ ∂L/∂z + noise))/λ

It needs best worlds alone, so it goes on where sums over all worlds end. [Niepert, Minervini, Franceschi:
Implicit MLE: backpropagating through discrete exponential family distributions; 2021]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Perturbed(torch.autograd.Function):
    """The best worlds for logits with noise, over the inputs' atoms, with the derivative of I-MLE."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, noise: Tensor, step: float, best: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return worlds, shape (rows, columns), 0 or 1; ``best`` gives those of logits."""
        moved = logits.detach().to(noise) + noise
        found = best(moved).to(logits.dtype)
        ctx.save_for_backward(moved, found)
        ctx.step, ctx.best = step, best
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return how worlds differ where logits have moved a step against the loss."""
        moved, found = ctx.saved_tensors
        other = ctx.best(moved - ctx.step * grad.to(moved))
        return (found - other.to(found)) / ctx.step, None, None, None


def noise_for(
    logits: Tensor, inputs: Sequence[Sequence[str]], scale: float, generator: torch.Generator
) -> Tensor:
    """Return noise for logits, shape (rows, columns): Gumbel within groups, logistic for other atoms."""
    tiny = torch.finfo(torch.float64).tiny
    drawn = torch.rand((2, *logits.shape), dtype=torch.float64, generator=generator).clamp(min=tiny)
    one, other = -torch.log((-torch.log(drawn)).clamp(min=tiny))
    alone = torch.tensor([len(choice) == 1 for choice in inputs for _ in choice], dtype=torch.bool)
    found = torch.where(alone, one - other, one)
    return (scale * found).to(logits)
