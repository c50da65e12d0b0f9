"""A theory as a layer: logits in, exact log-probabilities of what the theory says about them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.nn.asked import LayerPlan
from lbm.nn.compiled import CompiledLayer
from lbm.nn.energy import FreeEnergy
from lbm.nn.named import Choice, LayerQuery
from lbm.nn.outcome import LogicOutput
from lbm.nn.phases import PhasedLayer
from lbm.nn.sampled import SampledOutput

METHODS: Final = ("exact", "phases")
"""How a layer may be computed."""

LOSSES: Final = ("likelihood", "free_energy")
"""What a layer's loss may be."""


class LogicLayer(nn.Module):
    """A theory on top of a network: differentiable, of any batch size, and exact unless chains are asked for.

    The distribution is that of the theory with the logits as further weights: P(x) ∝ exp(Σ logits of true
    inputs + Σ weights of true soft formulae) over the worlds that keep all hard formulae. Logits are log-odds
    of atoms by themselves, and scores of the atoms of a group, of which the theory says that exactly one is
    true, as a softmax takes them.

    Parameters
    ----------
    theory
        A theory, or its text.
    inputs
        Which atoms the logits are about, in their order: names of atoms, patterns such as ``"digit(*)"``, or
        tuples of these. The atoms of a group follow each other, all of them.
    queries
        What is asked: patterns and tuples for groups; names and formulae, true or false; None: whether the
        theory can be kept.
    given
        Evidence that is certain in all rows, as a formula.
    groups
        Whether the atoms of a hard ``exactly(1, ...)`` are one input with a softmax. False: each atom has
        log-odds of its own, and that exactly one is true is a rule like others, which ``log_kept`` counts.
    heads
        How many readings of the same inputs a row has: a mixture, against the assumption that inputs are
        independent of one another. Logits have the shape (rows, heads, columns) then, and ``mixture``, the
        logits of the heads themselves, (rows, heads). All answers stay exact.
    method
        ``exact``, or ``phases`` for theories past exact reach: clamped and free chains estimate gradients,
        marginals and draws, and best worlds are the best that a search met. See :class:`SampledOutput`.
    samples
        How many states of each row chains record.
    loss
        What ``out.loss(target)`` is: ``likelihood``, or ``free_energy``, the paper's own loss, which is
        biased: see :mod:`lbm.nn.energy`.
    confidence
        The paper's c, for the free energy.
    seconds
        How long compiling may take; None: no limit.

    Attributes
    ----------
    weights
        The confidences of the soft formulae, in the theory's order: a parameter, trained with the network.
        They are floats (float64 at first), where the theory has them exactly.
    atoms
        The names of the columns of worlds and marginals.
    inputs, queries
        The choices of the logits, and the queries.

    Examples
    --------
    Two digits from 0 to 2 of which only the sum is known. Their logits say 1 and 2, not very surely:

    >>> layer = LogicLayer(
    ...     '''domain d = {0, 1, 2}
    ...     exactly(1, x(0), x(1), x(2))
    ...     exactly(1, y(0), y(1), y(2))
    ...     three <-> x(1) & y(2) | x(2) & y(1)''',
    ...     inputs=["x(*)", "y(*)"], queries=["three"])
    >>> logits = torch.tensor([[0.0, 2.0, 1.0, 0.0, 1.0, 2.0]], requires_grad=True)
    >>> out = layer(logits)
    >>> round(out.log_prob(torch.tensor([True])).exp().item(), 3)
    0.502
    >>> loss = -out.log_prob(torch.tensor([True])).mean()
    >>> loss.backward()
    >>> [round(number, 2) for number in logits.grad[0].tolist()]
    [0.09, -0.22, 0.13, 0.09, 0.13, -0.22]
    >>> dict(zip(layer.atoms, out.best[0].int().tolist()))
    {'x(0)': 0, 'x(1)': 1, 'x(2)': 0, 'y(0)': 0, 'y(1)': 0, 'y(2)': 1, 'three': 1}
    """

    weights: nn.Parameter

    def __init__(
        self,
        theory: Theory | str,
        *,
        inputs: Iterable[Any] | str,
        queries: Iterable[Any] | str | Formula | None = None,
        given: Formula | str | None = None,
        groups: bool = True,
        heads: int = 1,
        method: str = "exact",
        samples: int = 1000,
        loss: str = "likelihood",
        confidence: float = 5.0,
        seconds: float | None = 60.0,
    ) -> None:
        super().__init__()
        if method not in METHODS:
            raise ValueError(f"expected the method {' or '.join(map(repr, METHODS))}, got {method!r}")
        if loss not in LOSSES:
            raise ValueError(f"expected the loss {' or '.join(map(repr, LOSSES))}, got {loss!r}")
        if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
            raise ValueError(f"expected a number of heads from 1 up, got {heads!r}")
        if heads > 1 and method == "phases":
            raise ValueError("expected one head by phases, since heads are mixed by exact sums")
        if heads > 1 and loss == "free_energy":
            raise ValueError("expected one head for loss='free_energy'")
        self.heads, self.method, self.samples = heads, method, samples
        self.compiled: CompiledLayer | PhasedLayer
        if method == "phases":
            self.compiled = PhasedLayer(theory, inputs, queries, given, groups, seconds, samples)
        else:
            self.compiled = CompiledLayer(theory, inputs, queries, given, groups, seconds)
        if loss == "free_energy":
            self.compiled.energy = FreeEnergy(self.compiled, confidence)
        self.loss, self.confidence = loss, confidence
        self.atoms: tuple[str, ...] = self.compiled.atoms
        self.inputs: tuple[Choice, ...] = self.compiled.inputs
        self.columns: tuple[str, ...] = self.compiled.columns
        self.queries: tuple[LayerQuery, ...] = self.compiled.queries
        weights = [float(said.weight) for said in self.theory if said.weight is not None]
        self.weights = nn.Parameter(torch.tensor(weights, dtype=torch.float64))

    @property
    def theory(self) -> Theory:
        """The theory, with the weights that it was made with."""
        return self.compiled.theory

    @property
    def plan(self) -> LayerPlan:
        """How it is computed: components, their methods, and work a row.

        >>> LogicLayer("a -> b", inputs=["a", "b"]).plan
        2 columns, 1 component; 6 numbers a row in one pass
        2 atoms by tables: 4 terms
        """
        return self.compiled.plan

    def forward(
        self, *logits: Tensor, mixture: Tensor | None = None, rows: Tensor | None = None
    ) -> LogicOutput:
        """Return what the theory says about logits, shape (rows, columns); several stand side by side.

        Parameters
        ----------
        logits
            Shape (rows, columns); of a layer with heads (rows, heads, columns).
        mixture
            The logits of heads, shape (rows, heads); None: heads weigh the same.
        rows
            Shape (rows,): the number of each example, by which chains of ``method="phases"`` go on where they
            were left when they last saw it. None: chains begin anew, which takes several times as long. Exact
            layers do not look at it.
        """
        wanted = ("rows", "columns") if self.heads == 1 else ("rows", str(self.heads), "columns")
        shape = f"({', '.join(wanted)})"
        if not logits:
            raise TypeError(
                f"expected logits of shape {shape.replace('columns', str(len(self.columns)))}, got nothing"
            )
        for each in logits:
            if not isinstance(each, Tensor) or each.dtype not in (torch.float32, torch.float64):
                kind = each.dtype if isinstance(each, Tensor) else type(each).__name__
                raise TypeError(f"expected logits as tensors of float32 or float64, got {kind}")
            if each.ndim != len(wanted) or len(each) != len(logits[0]):
                raise ValueError(f"expected logits of shape {shape}, got {self._shapes(logits)}")
            if self.heads > 1 and each.shape[1] != self.heads:
                raise ValueError(f"expected logits of shape {shape}, got {self._shapes(logits)}")
        given = logits[0] if len(logits) == 1 else torch.cat(logits, dim=-1)
        if given.shape[-1] != len(self.columns):
            raise ValueError(
                f"expected {len(self.columns)} columns of logits, one for each atom among the inputs, got "
                f"{self._shapes(logits)}"
            )
        self._check_numbers(given.detach())
        if mixture is not None:
            self._check_mixture(mixture, given)
        if rows is not None and (
            not isinstance(rows, Tensor) or rows.is_floating_point() or rows.shape != given.shape[:1]
        ):
            raise ValueError(
                f"expected rows as whole numbers, a tensor of shape ({len(given)},), got {rows!r}"
            )
        if isinstance(self.compiled, PhasedLayer):
            seed = int(torch.randint(2**62, (1,)).item())
            return SampledOutput(self.compiled, given, self.weights, rows, seed)
        return LogicOutput(self.compiled, given, self.weights, mixture)

    def _check_mixture(self, mixture: Tensor, logits: Tensor) -> None:
        if self.heads == 1:
            raise ValueError("expected no mixture, since the layer has one head; heads=K makes more")
        if not isinstance(mixture, Tensor) or mixture.dtype != logits.dtype:
            kind = mixture.dtype if isinstance(mixture, Tensor) else type(mixture).__name__
            raise TypeError(
                f"expected a mixture as a tensor of {logits.dtype}, as the logits are, got {kind}"
            )
        if mixture.shape != logits.shape[:2]:
            raise ValueError(
                f"expected a mixture of shape {tuple(logits.shape[:2])}, a number for each head of each row, "
                f"got {tuple(mixture.shape)}"
            )
        wrong = torch.isnan(mixture).nonzero().tolist()
        if wrong:
            row, head = wrong[0]
            raise ValueError(
                f"expected numbers as a mixture, got nan in row {row} for head {head} ({len(wrong)} in all)"
            )

    def _shapes(self, logits: Sequence[Tensor]) -> str:
        return " and ".join(str(tuple(each.shape)) for each in logits)

    def _check_numbers(self, logits: Tensor) -> None:
        if logits.numel() and torch.isnan(logits.sum()):  # infinities may give that, too
            wrong = torch.isnan(logits).nonzero().tolist()
            if wrong:
                row, *head, column = wrong[0]
                where = f"row {row}, head {head[0]}," if head else f"row {row}"
                raise ValueError(
                    f"expected numbers as logits, got nan in {where} for {self.columns[column]!r} "
                    f"({len(wrong)} in all)"
                )
        if not torch.isfinite(self.weights).all():
            place = int((~torch.isfinite(self.weights)).nonzero()[0, 0])
            raise ValueError(
                f"expected finite weights, got {self.weights[place].item()} for soft formula {place}"
            )

    def extra_repr(self) -> str:
        """Return what is printed of a layer inside of a network."""
        queries = ", ".join(asked.text for asked in self.queries) or "none"
        heads = "" if self.heads == 1 else f", {self.heads} heads"
        heads += "" if self.method == "exact" else f", by {self.method}"
        return f"{len(self.columns)} columns of {len(self.inputs)} inputs{heads}, queries: {queries}"
