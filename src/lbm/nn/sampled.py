"""What chains found for a batch, past exact reach: estimates, each with an interval, of what a layer says."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Bools, Floats, Ints
from lbm.knowledge.formula import quote
from lbm.nn.heads import values_of
from lbm.nn.inside import literals
from lbm.nn.outcome import AtomChances, LogicOutput
from lbm.nn.phases import PhasedLayer, Row
from lbm.nn.reasons import Carried, Reasons
from lbm.reasoning.answers import Result
from lbm.reasoning.engine.network import LANES

_WIDTHS: Final = 2.0  # standard errors on either side
_UNSEEN: Final = 3.0  # over the number of states: how likely what none of them shows may be


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Phases(Result):
    """The gradient of log P by the logits as chains estimate it: clamped minus free marginals.

    Attributes
    ----------
    gradient, low, high
        Shape (rows, columns): estimates, and intervals that hold about 95 of 100; nan where nothing was met.
    clamped, free
        Shape (rows,): how many states counted; infinite where there is one world, 0 where none was met.
    """

    gradient: Tensor
    low: Tensor
    high: Tensor
    clamped: Tensor
    free: Tensor

    def lines(self) -> Iterator[str]:
        """Return it as lines of text."""
        for name, numbers in (("clamped", self.clamped), ("free", self.free)):
            some = numbers[torch.isfinite(numbers) & (numbers > 0)]
            counts = f"{int(some.min()):,} to {int(some.max()):,} states a row" if len(some) else "no states"
            single, none = int(torch.isinf(numbers).sum()), int((numbers == 0).sum())
            yield f"{name}: {counts}; one world in {single} rows, none met in {none}"
        half = ((self.high - self.low) / 2).nanmean().item()
        yield f"gradients by {self.gradient.shape[1]} logits, ± {half:.3f} on average"

    def facts(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {name: getattr(self, name).tolist() for name in ("gradient", "low", "high", "clamped", "free")}


class SampledOutput(LogicOutput):
    """A batch of logits, as chains on the theory of a layer see it: ``method="phases"``.

    Gradients are estimates, clamped minus free marginals; so are marginals and draws. Values of ``log_prob``
    and ``log_kept`` are rougher: log-probabilities need the sum over all worlds, which chains do not have.
    They are good for watching a loss, and :meth:`phases` says how sure the gradients are.
    """

    def __init__(
        self, layer: PhasedLayer, logits: Tensor, weights: Tensor, rows: Tensor | None, seed: int
    ) -> None:
        super().__init__(layer, logits, weights)
        self.chains, self.seed = layer, seed
        self.ids: Ints | None = None if rows is None else rows.cpu().numpy().astype(np.int64)
        self._logits: Floats = self._inside.cpu().numpy().astype(np.float64)
        self._soft: Floats = self._weights.cpu().numpy().astype(np.float64)

    # -- numbers a row --

    @cached_property
    def log_kept(self) -> Tensor:
        """Log P(the hard formulae can be kept): its derivatives by chains, and for a value a lower bound.

        The bound is the probability, by the logits, of all different values of the inputs that chains met.
        The inputs must settle all other atoms, or their values would count several times.
        """
        self.chains.check_settled()
        found = self._run(None, "kept", soft=False)
        p = self._likely.cpu().numpy()
        slope = np.zeros_like(p)
        value = np.full(len(self), -np.inf)
        for i, row in enumerate(found):
            if row is not None:
                slope[i] = row.shares[self.chains.columns_at] - p[i]
                value[i] = self._met(i, row)
        self._warn_of(found)
        zeros = np.zeros((len(self), len(self._soft)))
        return self._result(value, slope, zeros)

    def phases(self, target: Tensor | Sequence[Any] | None = None) -> Phases:
        """Return the gradient of log_prob(target) by the logits, or of log_kept, with intervals."""
        free: list[Row | None] | None
        if target is None:
            self.chains.check_settled()
            tied, free = self._run(None, "kept", soft=False), None
        else:
            device = self._inside.device
            told = self.layer.told_queries(torch.as_tensor(target), len(self), device).cpu().numpy()
            tied, free = self._run(told, "clamped"), self._free_rows
        p, at = self._likely.cpu().numpy(), self.chains.columns_at
        gradient, half = np.full_like(p, np.nan), np.full_like(p, np.nan)
        numbers = np.zeros((2, len(self)))
        for i, one in enumerate(tied):
            other = None if free is None else free[i]
            numbers[0, i] = 0.0 if one is None else one.number
            numbers[1, i] = math.inf if free is None else 0.0 if other is None else other.number
            if one is None or (free is not None and other is None):
                continue
            errors = one.errors if other is None else one.errors - other.errors
            gradient[i] = one.shares[at] - (p[i] if other is None else other.shares[at])
            spread = errors.std(axis=0, ddof=1) / math.sqrt(LANES)
            unseen = _UNSEEN / one.number + (0.0 if other is None else _UNSEEN / other.number)
            half[i] = np.hypot(_WIDTHS * spread, unseen)
        parts = (gradient, gradient - half, gradient + half, numbers[0], numbers[1])
        return Phases(*(torch.from_numpy(np.asarray(part)) for part in parts))

    # -- worlds --

    @cached_property
    def marginals(self) -> AtomChances:
        """Estimates of P(atom | theory, logits) of all atoms; nan in rows where no world was met."""
        number = len(self.layer.atoms)
        table = np.full((len(self), number), np.nan)
        for i, row in enumerate(self._free_rows):
            if row is not None:
                table[i] = row.shares[:number]
        return AtomChances(self.layer.atoms, torch.from_numpy(table).to(self.logits))

    def sample(self, k: int, *, generator: torch.Generator | None = None, seed: int | None = None) -> Tensor:
        """Return ``k`` worlds of each row that chains meet, shape (k, rows, atoms); not independent ones.

        In rows where none was met, it is the best world.
        """
        seed = self._seed(k, generator, seed)
        number = len(self.layer.atoms)
        found = np.zeros((k, len(self), number), bool)
        if not k:
            return torch.from_numpy(found)
        rows = self.chains.run(self._logits, self._soft, None, "drawn", None, seed, samples=k)
        rng = np.random.default_rng(seed)
        for i, row in enumerate(rows):
            if row is None:
                found[:, i] = self.best[i].cpu().numpy()
            else:
                states = np.unpackbits(row.states, axis=1, count=len(self.chains.place))
                at = rng.permutation(max(k, len(states)))[:k] % len(states)
                found[:, i] = states[at, :number]
        return torch.from_numpy(found).to(self.logits.device)

    def _best_given(self, logits: Tensor) -> Tensor:
        worlds = self.chains.best(logits.cpu().numpy().astype(np.float64), self._soft, self.seed)
        return torch.from_numpy(worlds[:, : len(self.layer.atoms)]).to(self.logits.device)

    # -- reasons --

    def why(
        self, row: int = 0, target: Tensor | Sequence[int] | int | None = None, *, most: int = 8
    ) -> Reasons:
        """Return soft formulae and input values with their probabilities in one row, estimated by chains."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"expected a row among {len(self)}, got {row}")
        row %= len(self)
        told = None
        if target is not None:
            if not self.layer.queries:
                raise ValueError("expected no target, since the layer has no queries")
            told = self.layer.told_queries(torch.as_tensor(target).reshape(1, -1), 1, self._inside.device)
        free = self._free_rows[row]
        one = self._logits[row : row + 1]
        tied = free
        if told is not None:
            (tied,) = self.chains.run(one, self._soft, told.cpu().numpy(), "why", None, self.seed)
        if free is None or tied is None:
            return Reasons((), ())
        soft = [
            Carried(str(formula), "formula", self.chains.share_of(i, tied), self.chains.share_of(i, free))
            for i, formula in enumerate(self.chains.soft)
        ]
        values = [
            Carried(quote(name), "input", float(tied.shares[at]), float(free.shares[at]))
            for name, at in zip(self.layer.columns, self.chains.columns_at, strict=True)
        ]
        return Reasons((), tuple(sorted([*soft, *values], key=lambda each: -each.probability)[:most]))

    # -- how --

    @cached_property
    def _free_rows(self) -> list[Row | None]:
        found = self._run(None, "free")
        self._warn_of(found)
        return found

    def _run(self, told: Ints | None, phase: str, *, soft: bool = True) -> list[Row | None]:
        return self.chains.run(self._logits, self._soft if soft else None, told, phase, self.ids, self.seed)

    @cached_property
    def _likely(self) -> Tensor:
        """How likely the atoms of inputs are by the logits alone, shape (rows, columns)."""
        starts = np.cumsum([0, *map(len, self.layer.inputs)])
        return torch.exp(literals(self._inside, starts, int(starts[-1]))[1]).T

    def _given(self, told: Tensor) -> Tensor:
        """Return log P(values that are told): derivatives by chains; the value is a share of free states."""
        values = told.cpu().numpy()
        free, tied = self._free_rows, self._run(values, "clamped")
        at = self.chains.columns_at
        slope = np.zeros((len(self), len(at)))
        by_weights = np.zeros((len(self), len(self._soft)))
        value = np.full(len(self), -np.inf)
        for i, (one, other) in enumerate(zip(tied, free, strict=True)):
            if one is not None and other is not None:
                slope[i] = one.shares[at] - other.shares[at]
                by_weights[i] = one.formulae - other.formulae
                value[i] = self.chains.share_told(other, values[i])
        self._warn_of(tied)
        return self._result(value, slope, by_weights)

    def _result(self, value: Floats, slope: Floats, by_weights: Floats) -> Tensor:
        first, second, third = (
            torch.from_numpy(part).to(self._inside) for part in (value, slope, by_weights)
        )
        return self._differentiable(first, second, third, None)

    def _met(self, row: int, found: Row) -> float:
        """Return the logarithm of the probability, by the logits, of all values of inputs that were met."""
        states = np.unpackbits(found.states, axis=1, count=len(self.chains.place))[:, self.chains.columns_at]
        worlds: Bools = np.unique(states, axis=0) > 0
        starts = np.cumsum([0, *map(len, self.layer.inputs)])
        no, yes = (
            each[:, 0].cpu().numpy()
            for each in literals(self._inside[row : row + 1], starts, int(starts[-1]))
        )
        total = np.zeros(len(worlds))
        values = values_of(starts, worlds)
        for place, choice in enumerate(self.layer.inputs):
            first = starts[place]
            if len(choice) == 1:
                total += np.where(values[:, place] == 1, yes[first], no[first])
            else:
                total += yes[first + values[:, place]]
        return min(0.0, float(np.logaddexp.reduce(total)))

    def _warn_of(self, found: list[Row | None]) -> None:
        if self.layer.warned or all(row is not None for row in found):
            return
        self.layer.warned = True
        rows = [i for i, row in enumerate(found) if row is None]
        warnings.warn(
            f"no world was met in {len(rows)} of {len(found)} rows, the first of them row {rows[0]}: logits "
            "or answers contradict the hard formulae there, or chains found no way; their log-probability is "
            "-inf, and their gradient 0 (said once)",
            RuntimeWarning,
            stacklevel=4,
        )
