"""Sums of log(1 + exp s), with their gradients written out: training spends most of its time here."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp x), exact to the last digits of a double."""
    return functional.softplus(x, threshold=40.0)


class _ClassSums(torch.autograd.Function):
    """Σ_j log(1 + exp(s_ij + t_kj)) with its gradient written out: training spends its time here."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, added: Tensor) -> Tensor:
        every = inputs[:, None, :] + added
        ctx.save_for_backward(every)
        return softplus(every).sum(dim=2)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor]:
        (every,) = ctx.saved_tensors
        pull = torch.sigmoid(every).mul_(slopes[0][:, :, None])
        return pull.sum(dim=1), pull.sum(dim=0)


def class_sums(inputs: Tensor, added: Tensor) -> Tensor:
    """Return Σ_j log(1 + exp(s_ij + t_kj)), (rows, classes), from (rows, units) and (classes, units)."""
    found: Tensor = _ClassSums.apply(inputs, added)  # type: ignore[no-untyped-call]
    return found


class _Gains(torch.autograd.Function):
    """log(1 + exp(s + t)) - log(1 + exp s) with its gradient written out."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, added: Tensor) -> Tensor:
        on = inputs + added
        ctx.save_for_backward(inputs, on)
        return softplus(on).sub_(softplus(inputs))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor]:
        inputs, on = ctx.saved_tensors
        pull = torch.sigmoid(on).mul_(slopes[0])
        return torch.addcmul(pull, torch.sigmoid(inputs), slopes[0], value=-1), pull.sum(dim=0)


def gains(inputs: Tensor, added: Tensor) -> Tensor:
    """Return log(1 + exp(s_ij + t_j)) - log(1 + exp s_ij), shape (rows, units)."""
    found: Tensor = _Gains.apply(inputs, added)  # type: ignore[no-untyped-call]
    return found
