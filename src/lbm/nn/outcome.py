"""What a layer found for a batch: each answer is worked out when it is asked for, and once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Bools, Floats
from lbm.errors import UnknownAtom
from lbm.nn.asked import AskedLayer
from lbm.nn.compiled import CompiledLayer, Run
from lbm.nn.heads import Blend, best_of_heads, blended, log_shares
from lbm.nn.inside import Slope, Summed
from lbm.nn.named import matching
from lbm.nn.perturbed import Perturbed, noise_for
from lbm.nn.reasons import Reasons, reasons_of
from lbm.reasoning.exact.sums import SumProgram


class AtomChances:
    """How likely atoms are true in each row: by name, by pattern, or all as ``table``, shape (rows, names).

    >>> found = AtomChances(("a", "d(0)", "d(1)"), torch.tensor([[0.5, 0.25, 0.75]]))
    >>> found["a"].tolist(), found["d(*)"].tolist()
    ([0.5], [[0.25, 0.75]])
    """

    def __init__(self, names: Sequence[str], table: Tensor) -> None:
        self.names, self.table = tuple(names), table
        self._place = {name: i for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Tensor:
        """Return the chances of one atom, shape (rows,), or of those of a pattern, (rows, atoms)."""
        if name in self._place:
            return self.table[:, self._place[name]]
        found = matching(name, self.names) if "*" in name or "?" in name else []
        if not found:
            raise UnknownAtom(name, self.names, "layer")
        return self.table[:, [self._place[each] for each in found]]

    def __repr__(self) -> str:
        return f"AtomChances of {len(self.names)} atoms in {len(self.table)} rows"


class LogicOutput:
    """A batch of logits, as the theory of a layer sees it.

    Values and derivatives are exact. What is a number a row has the type of the logits and goes into a loss;
    ``marginals``, ``best`` and ``sample`` have no derivatives. Rows in which logits contradict the hard
    formulae have -inf as log-probability and derivatives of 0, and the layer warns of them once.
    """

    def __init__(
        self, layer: AskedLayer, logits: Tensor, weights: Tensor, mixture: Tensor | None = None
    ) -> None:
        self.layer, self.logits, self.weights, self.mixture = layer, logits, weights, mixture
        self.heads = logits.shape[1] if logits.ndim == 3 else 1
        kind = torch.float32 if logits.device.type == "mps" else torch.float64
        # The heads of a row follow each other, as rows of their own.
        inside = logits.detach().to(kind)
        self._inside = inside.reshape(-1, inside.shape[-1]).contiguous()
        self._weights = weights.detach().to(self._inside)

    @property
    def exact(self) -> CompiledLayer:
        """The compiled layer."""
        assert isinstance(self.layer, CompiledLayer)
        return self.layer

    def __len__(self) -> int:
        return len(self.logits)

    # -- numbers a row --

    def log_prob(self, target: Tensor | None = None) -> Tensor:
        """Return log P(queries have these values | theory, logits), shape (rows,).

        Parameters
        ----------
        target
            Shape (rows, queries), or (rows,) for one query: the number of the true atom of a group, else
            true or false; -1 stands for a value that is not known. Without queries there is none: the
            answer is :attr:`log_kept`.
        """
        if not self.layer.queries:
            if target is not None:
                raise ValueError("expected no target, since the layer has no queries; log_prob() is log_kept")
            return self.log_kept
        if target is None:
            raise ValueError("expected a target: the values of the queries")
        return self._given(self.layer.told_queries(target, len(self), self._inside.device))

    def log_likelihood(self, labels: Tensor) -> Tensor:
        """Return log P(inputs have these values | theory, logits), shape (rows,).

        Over all values of the inputs, the probabilities sum to 1, and those that break a hard formula have
        0: the outputs of the network, constrained.

        Parameters
        ----------
        labels
            Shape (rows, inputs): the number of the true atom of a group, else true or false; or (rows,
            columns), true or false for each atom. -1 stands for a value that is not known.
        """
        return self._given(self.layer.told_inputs(labels, len(self), self._inside.device))

    @cached_property
    def log_kept(self) -> Tensor:
        """Log P(the hard formulae can be kept), shape (rows,), where inputs are independent.

        The probability, by the logits alone, of values that some model has; soft formulae and other atoms do
        not count. ``-log_kept.mean()`` is the semantic loss.
        """
        run = self.exact.kept
        summed = self._summed(run, self._inside.new_zeros(run.marks), None)
        found = blended(summed, summed.likely, self._log_shares)
        value = found.logs.clamp(max=0.0)
        self._warn(value)
        no_weights = self._weights.new_zeros((len(value), len(self._weights)))
        by_mixture = None
        if found.shares is not None and self._log_shares is not None:
            by_mixture = found.shares - self._log_shares.exp()
        return self._differentiable(value, found.slopes, no_weights, by_mixture)

    def loss(self, target: Tensor | None = None) -> Tensor:
        """Return the mean loss of the batch, as the layer's ``loss`` says.

        ``likelihood``: -log P(target), or -log_kept without a target; rows that contradict the theory are
        left out. ``free_energy``: the paper's free energy at the network's outputs, which is biased.
        """
        energy = self.layer.energy
        if energy is not None:
            told = None
            if target is not None:
                told = self.layer.told_queries(target, len(self), self._inside.device)
            return energy(self.logits, told).mean()
        value = self.log_kept if target is None else self.log_prob(target)
        possible = value > -torch.inf
        return -torch.where(possible, value, 0.0).sum() / max(1, int(possible.sum()))

    # -- worlds --

    @cached_property
    def marginals(self) -> AtomChances:
        """P(atom | theory, logits) of all atoms; nan in rows that contradict the theory. No derivatives."""
        run = self.exact.whole
        summed = self._summed(run, run.of(self._weights), None)
        found = blended(summed, summed.likely, self._log_shares)
        table = torch.where(torch.isneginf(found.logs)[:, None], torch.nan, found.chances)
        return AtomChances(self.layer.atoms, table[:, self.exact.order].to(self.logits.dtype))

    @cached_property
    def best(self) -> Tensor:
        """The most probable world of each row, shape (rows, atoms) as ``layer.atoms`` names them.

        It always keeps the hard formulae. Of equal ones it is always the same. In rows that contradict the
        theory, infinite logits count as very large ones.
        """
        return self._best_given(self._inside)

    def _best_given(self, logits: Tensor) -> Tensor:
        """Return the best worlds for other logits, shape (rows·heads, columns)."""
        return self._worlds(logits, 0, 0)[0]

    def perturbed(
        self,
        *,
        noise: float = 1.0,
        step: float = 10.0,
        generator: torch.Generator | None = None,
        seed: int | None = None,
    ) -> Tensor:
        """Return a best world of each row under noise, over the inputs' atoms, shape (rows, columns).

        It keeps the hard formulae, is 0 or 1, and has a derivative by the logits (perturb-and-MAP, I-MLE):
        for losses of worlds themselves, such as the cost of a path, and where there are no exact sums.

        Parameters
        ----------
        noise
            A factor on the noise; 0: none, the best world itself.
        step
            λ: how far logits move against the loss. A larger step has less noise, and is more biased.
        """
        if self.heads > 1:
            raise ValueError("expected one head for perturbed worlds, since heads have no logits in common")
        if not (0 <= noise < math.inf and 0 < step < math.inf):
            raise ValueError(f"expected noise from 0 up and a step above 0, got {noise!r} and {step!r}")
        drawn = torch.Generator().manual_seed(self._seed(1, generator, seed))
        given = noise_for(self._inside, self.layer.inputs, noise, drawn)
        place = {name: i for i, name in enumerate(self.layer.atoms)}
        columns = [place[name] for name in self.layer.columns]
        found: Tensor = Perturbed.apply(  # type: ignore[no-untyped-call]
            self.logits, given, step, lambda logits: self._best_given(logits)[:, columns]
        )
        return found

    def sample(self, k: int, *, generator: torch.Generator | None = None, seed: int | None = None) -> Tensor:
        """Return ``k`` independent worlds of each row, shape (k, rows, atoms), in proportion to probability.

        They depend on the seed alone, or are drawn from a generator of torch, by default its own.
        """
        seed = self._seed(k, generator, seed)
        if not k:
            return torch.zeros((0, len(self), len(self.layer.atoms)), dtype=torch.bool)
        return self._worlds(self._inside, k, seed)

    def _seed(self, k: int, generator: torch.Generator | None, seed: int | None) -> int:
        if k < 0:
            raise ValueError(f"expected a number of draws from 0 up, got {k}")
        if seed is None:
            return int(torch.randint(2**62, (1,), generator=generator).item())
        if generator is not None:
            raise ValueError("expected a seed or a generator, got both")
        return seed % 2**63

    # -- reasons --

    def why(
        self, row: int = 0, target: Tensor | Sequence[int] | int | None = None, *, most: int = 8
    ) -> Reasons:
        """Return what carries the answer in one row: hidden units by weight, or formulae and input values.

        Where the hard formulae, with the queries' values if a ``target`` is given, have a strict DNF of few
        cubes and nothing is soft, each cube is a hidden unit, and P(unit | theory, logits) is a softmax of
        summed log-literals. Elsewhere soft formulae and input values have their probabilities, with the
        target and without it.
        """
        if not -len(self) <= row < len(self):
            raise IndexError(f"expected a row among {len(self)}, got {row}")
        told = None
        if target is not None:
            if not self.layer.queries:
                raise ValueError("expected no target, since the layer has no queries")
            told = self.layer.told_queries(torch.as_tensor(target).reshape(1, -1), 1, self._inside.device)
        here = LogicOutput(
            self.exact,
            self.logits[row % len(self)][None].detach(),
            self.weights,
            None if self.mixture is None else self.mixture[row % len(self)][None].detach(),
        )
        free = here._free
        tied = free if told is None else here._tied(told)
        return reasons_of(self.exact, here._inside, told, free, tied, most)

    # -- how --

    @cached_property
    def _log_shares(self) -> Tensor | None:
        """The logarithms of the shares of heads; None: there are none."""
        if self.logits.ndim < 3:
            return None
        if self.mixture is None:
            return self._inside.new_full((len(self), self.heads), -math.log(self.heads))
        return log_shares(self.mixture.detach().to(self._inside))

    @cached_property
    def _summed_free(self) -> Summed:
        run = self.exact.lean
        return self._summed(run, run.of(self._weights), None)

    @cached_property
    def _free(self) -> Blend:
        """Log Z and chances where nothing more is known."""
        return blended(self._summed_free, self._summed_free.likely, self._log_shares)

    def _tied(self, told: Tensor) -> Blend:
        """Return log Z and chances where some values are known, shape (rows, choices)."""
        run = self.exact.lean
        known = told if self.heads == 1 else told.repeat_interleave(self.heads, dim=0)
        found = self._summed(run, run.of(self._weights), known)
        return blended(found, self._summed_free.likely, self._log_shares)

    def _summed(self, run: Run, weights: Tensor, told: Tensor | None) -> Summed:
        return run.run(self._inside, weights, told, plain=self.exact.plain)

    def _given(self, told: Tensor) -> Tensor:
        """Return log P(values that are told | theory, logits)."""
        free, tied = self._free, self._tied(told)
        value = tied.logs - free.logs
        if not torch.isfinite(value.sum()):  # rare, and not looked into elsewhere
            self._warn(free.logs)
            possible = (free.logs > -torch.inf) & (tied.logs > -torch.inf)
            value = torch.where(possible, value, -torch.inf)
        by_weights = self.exact.lean.formulae(tied.marks - free.marks)
        by_mixture = None
        if tied.shares is not None and free.shares is not None:
            by_mixture = tied.shares - free.shares
        return self._differentiable(value.clamp(max=0.0), tied.slopes - free.slopes, by_weights, by_mixture)

    def _differentiable(
        self, value: Tensor, by_logits: Tensor, by_weights: Tensor, by_mixture: Tensor | None
    ) -> Tensor:
        """Return a value with derivatives, which are 0 where it is -inf."""
        if not torch.isfinite(value.sum()):
            possible = value > -torch.inf
            by_logits = torch.where(possible.view(-1, *[1] * (by_logits.ndim - 1)), by_logits, 0.0)
            by_weights = torch.where(possible[:, None], by_weights, 0.0)
            if by_mixture is not None:
                by_mixture = torch.where(possible[:, None], by_mixture, 0.0)
        found: Tensor = Slope.apply(  # type: ignore[no-untyped-call]
            self.logits,
            self.weights,
            None if by_mixture is None else self.mixture,
            value,
            by_logits,
            by_weights,
            by_mixture,
        )
        return found

    def _warn(self, logs: Tensor) -> None:
        if self.layer.warned:
            return
        rows = torch.isneginf(logs).nonzero()[:, 0].tolist()
        if rows:
            self.layer.warned = True
            message = (
                f"logits contradict the hard formulae in {len(rows)} of {len(logs)} rows, the first of them "
                f"row {rows[0]}: their log-probability is -inf, and their gradient 0 (said once)"
            )
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def _worlds(self, given: Tensor, draws: int, seed: int) -> Tensor:
        """Return the best worlds, or draws, of all rows."""
        run = self.exact.whole
        program, heads = run.run.program, self.heads
        logits = given.cpu().numpy()
        weights = run.of(self._weights).cpu().numpy()
        shares = None if self._log_shares is None else self._log_shares.cpu().numpy()
        logs = program.run(logits, weights, down=False)[0].reshape(len(self), heads)
        if shares is not None:
            logs = logs + shares
        bad = (logs == -np.inf).all(axis=1)
        if bad.any():
            logits = _softened(logits, np.repeat(bad, heads))
            if shares is not None:
                shares = np.where(bad[:, None] & (shares == -np.inf).all(axis=1)[:, None], 0.0, shares)
            logs = program.run(logits, weights, down=False)[0].reshape(len(self), heads)
            logs = logs if shares is None else logs + shares
        if shares is None:
            found = program.worlds(logits, weights, draws=draws, seed=seed)
        elif draws:
            found = self._drawn(program, logits, weights, logs, draws, seed)
        else:
            by_row = logits.reshape(len(self), heads, logits.shape[1])
            worlds, proven = best_of_heads(program, by_row, weights, shares)
            if not proven.all():
                warnings.warn(
                    f"best worlds of {int((~proven).sum())} of {len(self)} rows, the first of them row "
                    f"{int((~proven).argmax())}, are the best that were met, not proven (limit MAX_BRANCHES)",
                    RuntimeWarning,
                    stacklevel=4,
                )
            found = worlds[None]
        return torch.from_numpy(found[:, :, self.exact.order.cpu().numpy()]).to(self.logits.device)

    def _drawn(
        self, program: SumProgram, logits: Floats, weights: Floats, logs: Floats, draws: int, seed: int
    ) -> Bools:
        """Return draws of mixtures: of each a head by its posterior share, and then a world of that head."""
        rows, heads = logs.shape
        top = logs.max(axis=1, keepdims=True)
        ends = np.cumsum(np.exp(logs - top), axis=1)
        at = np.random.default_rng(seed).random((draws, rows)) * ends[:, -1]
        head = (at[:, :, None] >= ends).sum(axis=2)
        found = np.zeros((draws, rows, program.columns), bool)
        by_row = logits.reshape(rows, heads, logits.shape[1])
        for each in range(heads):
            some = np.flatnonzero((head == each).any(axis=0))
            if len(some):
                worlds = program.worlds(
                    np.ascontiguousarray(by_row[some, each]),
                    weights,
                    draws=draws,
                    seed=seed,
                    begin=each * rows,
                )
                mine = (head[:, some] == each)[:, :, None]
                found[:, some] = np.where(mine, worlds, found[:, some])
        return found


def _softened(logits: Floats, bad: Bools) -> Floats:
    """Return logits in which infinite ones of bad rows are large, as in rows that contradict the theory."""
    sure = np.isinf(logits)
    finite = abs(logits[~sure]).max(initial=0.0)
    large = 1e3 * (1.0 + min(float(finite), 1e12)) * logits.shape[1]
    return np.where(bad[:, None] & sure, np.where(logits > 0, large, -large), logits)
