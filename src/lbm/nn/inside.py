"""Sums of products in torch: by the compiled loops on the CPU, and in torch's own operations elsewhere.

Inside, numbers are float64, where a device has them; values and gradients come back in the type of the
logits. Value and gradient of log Z come from one pass up and one down: ∂ log Z/∂ logit = P(atom) - p.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lbm.arrays import Ints
from lbm.reasoning.exact.sums import SumProgram, usable


class Summed(NamedTuple):
    """log Z of each row, how likely each column is, shape (rows, columns), and each mark, (rows, marks).

    ``likely``: how likely columns with logits are by these alone, where no value is told.
    """

    logs: Tensor
    chances: Tensor
    marks: Tensor
    likely: Tensor


class Pass:
    """The pass over a program, on the device that its numbers are on."""

    def __init__(self, program: SumProgram) -> None:
        self.program = program
        self.plans: dict[torch.device, _Levels] = {}

    def __call__(
        self, logits: Tensor, weights: Tensor, told: Tensor | None, *, plain: bool = False
    ) -> Summed:
        """Return log Z and all chances of rows of logits, weights of marks, and values that are known.

        ``plain``: by operations of torch, whatever the device.
        """
        if logits.device.type == "cpu" and not plain and usable():
            known = None if told is None else told.numpy()
            found = self.program.run(logits.numpy(), weights.numpy(), known, down=True)
            return Summed(*map(torch.from_numpy, found))
        plan = self.plans.get(logits.device)
        if plan is None:
            plan = self.plans[logits.device] = _Levels(self.program, logits.device)
        return plan(logits, weights, told)


class Slope(torch.autograd.Function):
    """A value whose derivatives are known by logits, weights and mixture; these have none themselves."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        weights: Tensor,
        _: Tensor | None,
        value: Tensor,
        by_logits: Tensor,
        by_weights: Tensor,
        by_mixture: Tensor | None,
    ) -> Tensor:
        """Return the value, shape (rows,); derivatives are shaped as what they are by, a row each."""
        ctx.save_for_backward(by_logits, by_weights, by_mixture)
        ctx.kinds = logits.dtype, weights.dtype
        return value.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the derivatives of a sum of values, weighted with ``grad``."""
        by_logits, by_weights, by_mixture = ctx.saved_tensors
        kind, other = ctx.kinds
        grad = grad.to(by_logits.dtype)
        first = second = third = None
        if ctx.needs_input_grad[0]:
            first = (grad.view(-1, *[1] * (by_logits.ndim - 1)) * by_logits).to(kind)
        if ctx.needs_input_grad[1]:
            second = (grad @ by_weights).to(other) if by_weights.shape[1] else grad.new_zeros(0, dtype=other)
        if ctx.needs_input_grad[2]:
            third = (grad[:, None] * by_mixture).to(kind)
        return first, second, third, None, None, None, None


def literals(logits: Tensor, starts: Ints, columns: int) -> tuple[Tensor, Tensor]:
    """Return the logarithms of 1 - p and p of all columns, shape (columns, rows); of a group 0 and log p.

    Columns without logits have 0 and 0. In a group two infinite logits exclude each other.
    """
    no = logits.new_zeros((columns, len(logits)))
    yes = no.clone()
    given = logits.shape[1]
    sizes = np.diff(starts)
    alone = torch.as_tensor(starts[:-1][(sizes == 1) & (starts[:-1] < given)], device=logits.device)
    some = logits[:, alone].T
    yes[alone] = torch.nn.functional.logsigmoid(some)
    no[alone] = torch.nn.functional.logsigmoid(-some)
    for start, end in pairwise(starts.tolist()):
        if end - start > 1 and start < given:
            group = logits[:, start:end]
            top = group.max(dim=1, keepdim=True).values
            is_top = group == top
            shares = torch.log_softmax(torch.where(torch.isinf(top), torch.zeros_like(group), group), dim=1)
            sure = is_top & (top > 0) & (is_top.sum(dim=1, keepdim=True) == 1)
            certain = torch.where(sure, 0.0, -torch.inf).to(group.dtype)
            yes[start:end] = torch.where(torch.isinf(top), certain, shares).T
    return no, yes


class _Levels:
    """A program as operations of torch in logarithms: all nodes of one height at once."""

    def __init__(self, program: SumProgram, device: torch.device) -> None:
        self.program, self.device = program, device
        self.first = 2 * (program.columns + len(program.pairs))
        height = np.zeros(self.first + len(program.kinds), np.int64)
        for node in range(len(program.kinds)):
            begin, end = program.factors[program.terms[node]], program.factors[program.terms[node + 1]]
            height[self.first + node] = 1 + height[program.slots[begin:end]].max(initial=0)
        self.levels: list[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]] = []
        for level in range(1, int(height.max(initial=0)) + 1):
            nodes = np.flatnonzero(height[self.first :] == level)
            counts = program.terms[nodes + 1] - program.terms[nodes]
            terms = _ranges(program.terms[nodes], counts)
            lengths = program.factors[terms + 1] - program.factors[terms]
            slots = program.slots[_ranges(program.factors[terms], lengths)]
            owner, term_of = (
                np.repeat(np.arange(len(nodes)), counts),
                np.repeat(np.arange(len(terms)), lengths),
            )
            arrays = (nodes + self.first, owner, program.marked[terms], slots, term_of)
            self.levels.append(tuple([torch.as_tensor(each, device=device) for each in arrays]))  # type: ignore[arg-type]
        self.pairs, self.marks, self.roots, self.scopes = (
            torch.as_tensor(each, device=device)
            for each in (program.pairs, program.marks, program.roots, program.scopes)
        )

    def __call__(self, logits: Tensor, weights: Tensor, told: Tensor | None) -> Summed:
        """Return log Z and all chances."""
        program, first, rows = self.program, self.first, len(logits)
        columns = program.columns
        value = logits.new_full((first + len(program.kinds), rows), -torch.inf)
        no, yes = literals(logits, program.starts, columns)
        value[0 : 2 * columns : 2], value[1 : 2 * columns : 2] = no, yes
        if told is not None:
            self._tell(value, told)
        both = value[: 2 * columns].view(columns, 2, rows)
        given = weights[self.marks][:, :, None].expand(-1, -1, rows).clone()
        met = self.pairs >= 0
        given[met] += both[self.pairs[met]]
        total = torch.logaddexp(given[:, 0], given[:, 1])
        alive = torch.where(total > -torch.inf, total, torch.zeros_like(total))
        value[2 * columns : first] = (given - alive[:, None]).reshape(-1, rows)
        logs = total.sum(dim=0)
        shares = []
        for nodes, owner, marks, slots, term_of in self.levels:
            terms = value.new_zeros((len(marks), rows)).index_add_(0, term_of, value[slots])
            terms += weights[marks][:, None]
            index = owner[:, None].expand(-1, rows)
            top = value.new_full((len(nodes), rows), -torch.inf).scatter_reduce_(0, index, terms, "amax")
            safe = torch.where(top > -torch.inf, top, torch.zeros_like(top))
            parts = torch.exp(terms - safe[owner])
            whole = value.new_zeros((len(nodes), rows)).index_add_(0, owner, parts)
            value[nodes] = torch.log(whole) + safe
            shares.append(parts / torch.where(whole > 0, whole, torch.ones_like(whole))[owner])
        logs = logs + value[self.roots].sum(dim=0)
        flow = torch.zeros_like(value)
        flow.index_add_(0, self.roots, value.new_ones((len(self.roots), rows)))
        marked = value.new_zeros((len(weights), rows))
        for (nodes, owner, marks, slots, term_of), share in zip(
            reversed(self.levels), reversed(shares), strict=True
        ):
            part = share * flow[nodes][owner]
            flow.index_add_(0, slots, part[term_of])
            marked.index_add_(0, marks, part)
        said = flow[2 * columns : first].view(-1, 2, rows)
        unsaid = 1.0 - said.sum(dim=1, keepdim=True)
        unsaid = torch.where(unsaid > 1e-12, unsaid, torch.zeros_like(unsaid))
        chance = said + unsaid * torch.exp(value[2 * columns : first]).view(-1, 2, rows)
        both = flow[: 2 * columns].view(columns, 2, rows)
        both.index_add_(0, self.pairs[met], chance[met])
        marked.index_add_(0, self.marks.reshape(-1), chance.reshape(-1, rows))
        alive = logs > -torch.inf
        found = torch.where(alive, both[:, 1].clamp(max=1.0), torch.zeros_like(logs))
        marked = torch.where(alive, marked, torch.zeros_like(logs))
        return Summed(logs, found.T, marked.T, torch.exp(yes[: logits.shape[1]]).T)

    def _tell(self, value: Tensor, told: Tensor) -> None:
        """Forbid the literals that contradict known values."""
        starts = self.program.starts.tolist()
        for choice, (start, end) in enumerate(pairwise(starts)):
            wanted = told[:, choice]
            if end - start == 1:
                value[2 * start, wanted == 1] = -torch.inf
                value[2 * start + 1, wanted == 0] = -torch.inf
            else:
                values = torch.arange(end - start, device=told.device)[:, None]
                value[2 * start : 2 * end : 2][wanted == values] = -torch.inf
                value[2 * start + 1 : 2 * end : 2][(wanted >= 0) & (wanted != values)] = -torch.inf


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of some ranges, one after the other."""
    before = np.cumsum(counts) - counts
    found: Ints = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return found
