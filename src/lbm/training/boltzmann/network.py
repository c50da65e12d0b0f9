"""Network: the machine that learns, as a torch module over columns, label atoms and hidden units.

    s_j(x, k) = c_j + Σ_i W_ij x_i + Σ_l U_lj L_kl
    -F(x, k) = b·x + d·L_k + Σ_j log(1 + exp s_j(x, k))
    p(k | x) = exp(-F(x, k)) / Σ_l exp(-F(x, l))

L_k are the label atoms of class k. Hidden units of the knowledge come first. With tied literals they are
s_j(x, k) = κ_j (signs_j·(x, L_k) - positive_j + ε): one number per formula is learned, and rules stay rules.

Calibrated units add κ_j where their cube is true and at most e^-30 elsewhere, and that is how they are scored
here: κ_j [no literal is missed], exact in any precision. Their inputs are written out where hidden states
are drawn, and in the machine that the network becomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lbm.arrays import Floats, Ints, slices
from lbm.machine.calibrated import LEAST, MARGIN
from lbm.machine.rbm import Machine
from lbm.training.boltzmann.facts import Groups
from lbm.training.boltzmann.knowledge import Knowledge, label_patterns
from lbm.training.boltzmann.likely import Likely
from lbm.training.boltzmann.parameters import LITERALS, Parameters, inverse_softplus, parameters_of

CHUNK: Final = 1 << 22
"""Hidden inputs held at once, (rows x classes x units); more are taken in parts."""

DENSE: Final = 1 << 24
"""Entries of (columns that knowledge mentions x its units) up to which signs are a dense matrix."""


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns that hold one fact together, and the patterns they can have, shape (patterns, columns).

    Of a one-hot group exactly one is true; thresholds of one number are true from some place on.
    """

    columns: Tensor
    patterns: Tensor


class Network(nn.Module):
    """The parameters of a trainable machine and the quantities they define.

    Attributes
    ----------
    knowledge
        What it began with.
    weights, label_weights, hidden_bias
        W, U and c of the units that are not knowledge: shapes (columns, hidden), (labels, hidden), (hidden,).
    visible_bias, label_bias
        b and d: shapes (columns,) and (labels,).
    together, groups
        Columns that hold one fact together, and the patterns they can have: as arrays, and as tensors.
    likely
        How likely rows are, counted from training rows; None: what p(x) of the machine itself says.
    raw_confidence
        Tied literals: θ of the formulae that are not fixed, κ = log(1 + exp θ).
    literal_weights, literal_bias
        Free literals: the weight of every literal, in the order of ``knowledge.signs.data``, and the bias
        of every unit. At the start they are those of tied literals.

    Parameters
    ----------
    knowledge
        From :func:`lbm.training.boltzmann.knowledge.compile_knowledge`; its columns and labels are the
        visible units.
    hidden
        The number of hidden units beside those of the knowledge.
    literals
        ``tied`` or ``free``.
    groups
        Columns that hold one fact together, and the patterns they can have.
    seed
        Of the random weights. They are drawn in double precision: every ``dtype`` starts alike.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        hidden: int = 0,
        literals: str = "tied",
        groups: Groups = (),
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if literals not in LITERALS:
            raise ValueError(f"expected literals 'tied' or 'free', got {literals!r}")
        if literals == "free" and knowledge.calibrated:
            raise ValueError(
                "literals='free' learns what each literal weighs, and in calibrated units that is given: "
                "give units='paper' with it"
            )
        self.knowledge = knowledge
        self.likely: Likely | None = None
        self.literals = literals
        self.calibrated = knowledge.calibrated
        columns, labels = len(knowledge.columns), len(knowledge.labels)
        random = np.random.default_rng(seed)
        # Large enough that units differ from the start, small enough that none is saturated.
        weights = random.normal(0.0, 1.0 / np.sqrt(max(columns, 1)), (columns, hidden))
        label_weights = random.normal(0.0, 0.1, (labels, hidden))

        def learned(values: Floats) -> nn.Parameter:
            return nn.Parameter(torch.tensor(values, dtype=dtype, device=device))

        def known(values: object, kind: torch.dtype = dtype) -> nn.Buffer:
            return nn.Buffer(torch.tensor(values, dtype=kind, device=device))

        self.weights = learned(weights)
        self.label_weights = learned(label_weights)
        self.hidden_bias = learned(np.zeros(hidden))
        self.visible_bias = learned(np.zeros(columns))
        self.label_bias = learned(np.zeros(labels))
        self.patterns = known(label_patterns(labels))
        self.together: Groups = [(list(numbers), np.asarray(ways)) for numbers, ways in groups]
        self.groups = tuple(
            ColumnGroup(
                torch.tensor(numbers, dtype=torch.int64, device=device),
                torch.tensor(ways, dtype=dtype, device=device),
            )
            for numbers, ways in self.together
        )

        # Units without label atoms weigh the same for every class: first in line, they are easily skipped.
        signs = knowledge.signs.tocoo()
        on_label = signs.row >= columns
        speaks = np.zeros(knowledge.units, dtype=bool)
        speaks[signs.col[on_label]] = True
        self.silent = int((~speaks).sum())
        self.order = np.argsort(speaks, kind="stable")
        place = np.argsort(self.order)  # a unit of the knowledge -> where it stands here
        used, rows = np.unique(signs.row[~on_label], return_inverse=True)
        self.dense = columns * knowledge.units <= DENSE
        self.used = known(used, torch.int64)
        self.literal_rows = known(rows, torch.int64)
        self.literal_units = known(place[signs.col[~on_label]], torch.int64)
        self.literal_signs = known(signs.data[~on_label])
        heads = np.flatnonzero(on_label)
        heads = heads[np.argsort(place[signs.col[heads]], kind="stable")]
        self.head_labels = known(signs.row[heads] - columns, torch.int64)
        self.head_units = known(place[signs.col[heads]], torch.int64)
        self.head_signs = known(signs.data[heads])
        # A unit that speaks of one label atom only, as most do, has one head: then nothing needs looking up.
        self.one_head = len(heads) == knowledge.units - self.silent
        self.positive = known(knowledge.positive[self.order])
        self.part_units = known(place[knowledge.unit], torch.int64)
        self.part_owners = known(knowledge.owner, torch.int64)
        if literals == "tied":
            free = ~knowledge.fixed
            self.movable = known(np.flatnonzero(free), torch.int64)
            self.given_confidence = known(np.where(free, 0.0, knowledge.initial))
            self.first_confidence = known(knowledge.initial[free])
            self.raw_confidence = learned(inverse_softplus(knowledge.initial[free]))
        else:
            strength = knowledge.unit_confidences(knowledge.initial)
            self.literal_places = known(np.flatnonzero(~on_label), torch.int64)
            self.head_places = known(heads, torch.int64)
            self.literal_weights = learned(signs.data * strength[signs.col])
            self.first_weights = known(signs.data * strength[signs.col])
            self.literal_bias = learned((strength * (knowledge.epsilon - knowledge.positive))[self.order])
        if self.dense and literals == "tied":
            dense = torch.zeros(columns, knowledge.units, dtype=dtype, device=device)
            dense[self.used[self.literal_rows], self.literal_units] = self.literal_signs
            self.signs = nn.Buffer(dense)

    # -- sizes --

    @property
    def hidden(self) -> int:
        """The number of hidden units beside those of the knowledge."""
        return int(self.weights.shape[1])

    @property
    def units(self) -> int:
        """The number of all hidden units."""
        return self.knowledge.units + self.hidden

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.patterns.shape[0])

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Network:
        """Move or convert all tensors; torch does not look for those of groups by itself."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.groups = tuple(ColumnGroup(fn(group.columns), fn(group.patterns)) for group in self.groups)
        return self

    @torch.no_grad()
    def start_at(self, zeros: Ints, ones: Ints) -> None:
        """Let the bias of every column begin at the log-odds of its mean over rows with so many 0 and 1.

        p(k | x) does not depend on it; what a missing value is worth does.
        """
        self.visible_bias.copy_(torch.as_tensor(np.log((ones + 1.0) / (zeros + 1.0))))

    # -- knowledge --

    def confidences(self) -> Tensor:
        """Return κ_i of every formula, shape (formulae,); with free literals those it began with."""
        if self.literals == "free":
            return self.positive.new_tensor(self.knowledge.initial)
        learned = softplus(self.raw_confidence)
        if len(self.movable) == len(self.given_confidence):
            return learned
        return self.given_confidence.index_add(0, self.movable, learned)

    def growth(self) -> Tensor:
        """Return by how much knowledge outgrew what it began with, in parts of it; 0 if it did not.

        Of every formula that is not fixed; of free literals, of every literal.
        """
        if self.literals == "free":
            return (self.literal_weights / self.first_weights - 1.0).clamp(min=0.0)
        return (softplus(self.raw_confidence) / self.first_confidence - 1.0).clamp(min=0.0)

    def unit_confidences(self) -> Tensor:
        """Return κ_j = Σ_{i owns j} κ_i of the knowledge's units, in their order here."""
        strength = self.positive.new_zeros(self.knowledge.units)
        return strength.index_add(0, self.part_units, self.confidences()[self.part_owners])

    def _strength(self) -> Tensor | None:
        """Return the confidences of units if they are tied: computed once for all that needs them."""
        return self.unit_confidences() if self.knowledge.units and self.literals == "tied" else None

    def _known_inputs(self, x: Tensor, strength: Tensor | None, first: int) -> Tensor:
        """Return s_j with every label atom false, for the knowledge's units from ``first`` on.

        Of calibrated units, how many literals hold less how many there are: from 0 down.
        """
        if self.calibrated:
            wanted = -self.positive[first:]
            if self.dense:
                return torch.addmm(wanted, x, self.signs[:, first:])
            return self._gathered(x)[:, first:] + wanted
        if strength is not None:
            bias = self.knowledge.epsilon - self.positive[first:]
            if self.dense:
                return torch.addmm(bias, x, self.signs[:, first:]) * strength[first:]
            return (self._gathered(x)[:, first:] + bias) * strength[first:]
        if self.dense:
            return torch.addmm(self.literal_bias[first:], x, self._literal_matrix()[:, first:])
        return (self._gathered(x) + self.literal_bias)[:, first:]

    def _literal_values(self) -> Tensor:
        """Return what each literal of a column weighs: its sign if tied, its own weight if free."""
        return self.literal_signs if self.literals == "tied" else self.literal_weights[self.literal_places]

    def _gathered(self, x: Tensor) -> Tensor:
        """Return Σ over literals without a matrix of (columns x units), which is mostly zeros."""
        out = x.new_zeros(len(x), self.knowledge.units)
        terms = x[:, self.used[self.literal_rows]] * self._literal_values()
        return out.index_add(1, self.literal_units, terms)

    def _literal_matrix(self) -> Tensor:
        blank = self.literal_bias.new_zeros(len(self.weights), self.knowledge.units)
        return blank.index_put((self.used[self.literal_rows], self.literal_units), self._literal_values())

    def _drawn_inputs(self, counts: Tensor, strength: Tensor | None) -> Tensor:
        """Return s_j for what :meth:`_known_inputs` counts, written so that large confidences cancel."""
        if not self.calibrated or strength is None:
            return counts
        return torch.log(-torch.expm1(-strength)).clamp(min=LEAST) + strength * (1 + counts) + MARGIN * counts

    def _head_weights(self, strength: Tensor | None) -> Tensor:
        """Return what each literal of a label atom adds to its unit when that atom is true.

        Of calibrated units, what it adds to the number of literals that hold.
        """
        if self.calibrated:
            return self.head_signs
        if strength is None:
            return self.literal_weights[self.head_places]
        return self.head_signs * (strength[self.silent :] if self.one_head else strength[self.head_units])

    # -- inputs of units --

    def feature_inputs(self, x: Tensor) -> Tensor:
        """Return s_j(x, ·) with every label atom false, shape (rows, units), the knowledge's units first.

        Of calibrated units, how many literals hold less how many there are: linear in x, as inputs are.
        """
        random = torch.addmm(self.hidden_bias, x, self.weights)
        if not self.knowledge.units:
            return random
        return torch.cat([self._known_inputs(x, self._strength(), 0), random], dim=1)

    def hidden_inputs(self, x: Tensor, kinds: Tensor) -> Tensor:
        """Return s_j(x, k), shape (rows, units), for a class per row."""
        labels = self.patterns[kinds]
        random = torch.addmm(self.hidden_bias, x, self.weights) + labels @ self.label_weights
        if not self.knowledge.units:
            return random
        strength = self._strength()
        terms = labels[:, self.head_labels] * self._head_weights(strength)
        known = self._known_inputs(x, strength, 0).index_add(1, self.head_units, terms)
        return torch.cat([self._drawn_inputs(known, strength), random], dim=1)

    def visible_inputs(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of columns and of classes for hidden states h, shape (rows, units).

        b_i + Σ_j W_ij h_j  per column,    d·L_k + Σ_j h_j U_j·L_k  per class
        """
        known, random = h[:, : self.knowledge.units], h[:, self.knowledge.units :]
        columns = torch.addmm(self.visible_bias, random, self.weights.T)
        labels = torch.addmm(self.label_bias, random, self.label_weights.T)
        if self.knowledge.units:
            strength = self._strength()
            if self.calibrated and strength is not None:
                strength = strength + MARGIN
            pull = known if strength is None else known * strength
            if self.dense:
                matrix = self._literal_matrix() if strength is None else self.signs
                columns = torch.addmm(columns, pull, matrix.T)
            else:
                terms = pull[:, self.literal_units] * self._literal_values()
                columns = columns.index_add(1, self.used[self.literal_rows], terms)
            weights = pull[:, self.head_units] if self.calibrated else known[:, self.head_units]
            heads = weights * self._head_weights(strength)
            labels = labels.index_add(1, self.head_labels, heads)
        return columns, labels @ self.patterns.T

    # -- scores --

    def log_scores(self, x: Tensor, *, joint: bool = False) -> Tensor:
        """Return -F(x, k), shape (rows, classes).

        Without ``joint``, terms that are the same for every class are left out: softmax still gives p(k | x).
        """
        scores = self.unaided_scores(x)
        if self.knowledge.units:
            strength = self._strength()
            known = self._known_inputs(x, strength, 0 if joint else self.silent)
            scores = scores + self._known_scores(known, strength, joint=joint)
        return scores + (x @ self.visible_bias)[:, None] if joint else scores

    def unaided_scores(self, x: Tensor) -> Tensor:
        """Return -F(x, k) of the machine without its knowledge, up to what is the same for every class."""
        return self._random_scores(torch.addmm(self.hidden_bias, x, self.weights))

    def scores_of_inputs(self, inputs: Tensor) -> Tensor:
        """Return d·L_k + Σ_j log(1 + exp s_j(x, k)) for inputs from :meth:`feature_inputs`."""
        known = self.knowledge.units
        scores = self._random_scores(inputs[:, known:])
        return scores + self._known_scores(inputs[:, :known], self._strength()) if known else scores

    def _known_scores(self, inputs: Tensor, strength: Tensor | None, *, joint: bool = True) -> Tensor:
        """Return Σ_j log(1 + exp s_j(x, k)) over the knowledge's units; less, if not joint, what is common.

        A class has at most one true label atom l, so a unit adds softplus(s_j) for every class, and
        softplus(s_j + U_lj) - softplus(s_j) where it mentions l: no (rows x classes x units).
        """
        speaking = inputs[:, inputs.shape[1] - self.knowledge.units + self.silent :]
        if not self.one_head:
            speaking = speaking[:, self.head_units - self.silent]
        if self.calibrated and strength is not None:
            return self._true_cubes(inputs, speaking, strength, joint=joint)
        gain: Tensor = _Gains.apply(speaking, self._head_weights(strength))  # type: ignore[no-untyped-call]
        scores = self._by_class(gain)
        return scores + softplus(inputs).sum(dim=1, keepdim=True) if joint else scores

    def _true_cubes(self, counts: Tensor, speaking: Tensor, strength: Tensor, *, joint: bool) -> Tensor:
        """Return Σ_j κ_j [cube j is true in (x, L_k)] likewise, for calibrated units."""
        on, off = met(speaking + self.head_signs, strength.dtype), met(speaking, strength.dtype)
        mine = strength[self.silent :] if self.one_head else strength[self.head_units]
        scores = self._by_class((on - off) * mine)
        return scores + (met(counts, strength.dtype) @ strength)[:, None] if joint else scores

    def _by_class(self, gain: Tensor) -> Tensor:
        """Return by class what literals of label atoms gain where these are true, shape (rows, classes)."""
        if len(self.label_bias) == 1:
            by_label = gain.sum(dim=1, keepdim=True)
        else:
            blank = gain.new_zeros(len(gain), len(self.label_bias))
            by_label = blank.index_add(1, self.head_labels, gain)
        return by_label @ self.patterns.T

    def _random_scores(self, inputs: Tensor) -> Tensor:
        """Return d·L_k + Σ_j log(1 + exp s_j(x, k)) over the units that are not knowledge."""
        added = self.patterns @ self.label_weights  # (classes, hidden)
        step = max(1, CHUNK // max(1, inputs.numel()))
        sums = _ClassSums.apply
        parts = [sums(inputs, added[part]) for part in slices(self.classes, step)]  # type: ignore[no-untyped-call]
        scores = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return scores + self.patterns @ self.label_bias


def to_machine(network: Network) -> Machine:
    """Return the network as a machine: see :attr:`lbm.training.boltzmann.parameters.Parameters.machine`."""
    return parameters_of(network).machine


def network_of(parameters: Parameters) -> Network:
    """Return the network with these parameters."""
    dtype = torch.float32 if parameters.arrays["weights"].dtype == np.float32 else torch.float64
    network = Network(
        parameters.knowledge,
        hidden=parameters.hidden,
        literals=parameters.literals,
        groups=parameters.together,
        dtype=dtype,
    )
    with torch.no_grad():
        for name, values in network.named_parameters():
            values.copy_(torch.from_numpy(parameters.arrays[name]))
    network.likely = parameters.likely
    return network


# --- sums, with their gradients written out: training spends most of its time here ----------------


def met(counts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where cubes miss no literal, for counts of literals that hold less those there are."""
    return (counts > -0.5).to(dtype)


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp x), exact to the last digits of a double."""
    return functional.softplus(x, threshold=40.0)


class _ClassSums(torch.autograd.Function):
    """Σ_j log(1 + exp(s_ij + t_kj)), (rows, classes), from (rows, units) and (classes, units)."""

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


class _Gains(torch.autograd.Function):
    """log(1 + exp(s_ij + t_j)) - log(1 + exp s_ij), shape (rows, units)."""

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
