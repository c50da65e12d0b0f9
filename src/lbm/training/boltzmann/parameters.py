"""Parameters: a trained machine as plain numbers, and what it says of rows, in NumPy alone.

    -F(x, k) = b·x + d·L_k + Σ_j log(1 + exp s_j(x, k)),    p(k | x) = exp(-F(x, k)) / Σ_l exp(-F(x, l))

This is what predicts, after training and out of a file: torch is needed to learn, not to know. All is
computed in double precision, and :class:`lbm.training.boltzmann.network.Network` is the same in torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, hstack

from lbm.arrays import Floats, Ints, slices
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory
from lbm.machine.calibrated import LEAST, MARGIN, pull
from lbm.machine.calibrated import bias as unit_bias
from lbm.machine.rbm import Machine
from lbm.training.boltzmann.facts import Groups
from lbm.training.boltzmann.knowledge import Knowledge, label_patterns
from lbm.training.boltzmann.likely import Likely

if TYPE_CHECKING:
    from lbm.training.boltzmann.network import Network

CHUNK: Final = 1 << 20
"""Hidden inputs held at once, (rows x classes x units): few enough to stay in the cache."""

SPARSE: Final = 0.1
"""The share of signs that are not zero below which they are multiplied as a sparse matrix."""

FACTORS: Final = 512
"""Factors from 1 to 2 that are multiplied before a logarithm is taken: 2^1024 would be infinite."""

LITERALS: Final = ("tied", "free")
"""What is learned of knowledge: a confidence for each formula, or the weight of each literal."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """What was learned, by the names that :class:`lbm.training.boltzmann.network.Network` gives it.

    Attributes
    ----------
    knowledge
        What it began with.
    arrays
        ``weights``, ``label_weights``, ``hidden_bias``, ``visible_bias``, ``label_bias``, and for the
        knowledge ``raw_confidence`` or, with free literals, ``literal_weights`` and ``literal_bias``.
    literals
        ``tied`` or ``free``.
    together
        Columns that hold one fact together, and the patterns they can have.
    likely
        How likely rows are, counted from training rows; None: what p(x) of the machine itself says.
    """

    knowledge: Knowledge
    arrays: Mapping[str, NDArray[np.floating[Any]]]
    literals: str = "tied"
    together: Groups = ()
    likely: Likely | None = None

    # -- sizes --

    @property
    def calibrated(self) -> bool:
        """Whether a formula adds its confidence where it is true, and nothing elsewhere."""
        return self.knowledge.calibrated

    @property
    def hidden(self) -> int:
        """The number of hidden units beside those of the knowledge."""
        return int(self.arrays["weights"].shape[1])

    @property
    def units(self) -> int:
        """The number of all hidden units."""
        return self.knowledge.units + self.hidden

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.patterns)

    @cached_property
    def patterns(self) -> Floats:
        """Label atoms by class, shape (classes, labels)."""
        return label_patterns(len(self.knowledge.labels)).astype(np.float64)

    @cached_property
    def used(self) -> Ints:
        """The numbers of the columns that knowledge mentions."""
        rows = np.unique(self.knowledge.signs.indices).astype(np.int64)
        return rows[rows < len(self.knowledge.columns)]

    # -- what was learned --

    @cached_property
    def weights(self) -> Floats:
        """W of the units that are not knowledge, shape (columns, hidden)."""
        return self._double("weights")

    @cached_property
    def label_weights(self) -> Floats:
        """U of these, shape (labels, hidden)."""
        return self._double("label_weights")

    @cached_property
    def hidden_bias(self) -> Floats:
        """The bias c of these, shape (hidden,)."""
        return self._double("hidden_bias")

    @cached_property
    def visible_bias(self) -> Floats:
        """b, shape (columns,)."""
        return self._double("visible_bias")

    @cached_property
    def label_bias(self) -> Floats:
        """d, shape (labels,)."""
        return self._double("label_bias")

    def _double(self, name: str) -> Floats:
        return np.asarray(self.arrays[name], dtype=np.float64)

    @cached_property
    def confidences(self) -> Floats:
        """κ_i of every formula, shape (formulae,); with free literals those it began with."""
        known = self.knowledge
        if self.literals == "free":
            return known.initial
        found = known.initial.copy()
        found[~known.fixed] = np.logaddexp(0.0, self._double("raw_confidence"))
        return found

    @cached_property
    def strength(self) -> Floats:
        """κ_j of every unit of the knowledge, shape (units of the knowledge,)."""
        return self.knowledge.unit_confidences(self.confidences)

    @cached_property
    def speaks(self) -> NDArray[np.bool_]:
        """Which units of the knowledge mention a label atom, shape (units of the knowledge,)."""
        signs = self.knowledge.signs.tocoo()
        found = np.zeros(self.knowledge.units, dtype=bool)
        found[signs.col[signs.row >= len(self.knowledge.columns)]] = True
        return found

    @cached_property
    def place(self) -> Ints:
        """Where each unit of the knowledge stands in a network: first those without a label atom."""
        return np.argsort(np.argsort(self.speaks, kind="stable"))

    @cached_property
    def _literals(self) -> csc_array:
        """What each literal adds to its unit where its atom is true, (columns + labels, units)."""
        signs = self.knowledge.signs
        if self.calibrated:
            values = signs.data.astype(np.float64)  # literals are counted
        elif self.literals == "tied":
            values = signs.data * np.repeat(self.strength, np.diff(signs.indptr))
        else:
            values = self._double("literal_weights")
        return csc_array((values, signs.indices, signs.indptr), shape=signs.shape)

    @cached_property
    def _columns(self) -> csc_array | Floats:
        """Literals of columns, shape (columns, units of the knowledge): dense unless most of it is zero."""
        found = csc_array(self._literals[: len(self.knowledge.columns)])
        return found if found.nnz < SPARSE * found.shape[0] * found.shape[1] else found.toarray()

    @cached_property
    def _heads(self) -> tuple[Ints, Ints, Floats]:
        """Label atom, unit and weight of every literal of a label atom."""
        found = csc_array(self._literals[len(self.knowledge.columns) :]).tocoo()
        return found.row.astype(np.int64), found.col.astype(np.int64), found.data

    @cached_property
    def _known_bias(self) -> Floats:
        """Inputs of the knowledge's units in a row of zeros: of calibrated ones, how many literals miss."""
        known = self.knowledge
        if self.calibrated:
            return -known.positive.astype(np.float64)
        if self.literals == "tied":
            return np.asarray(self.strength * (known.epsilon - known.positive))
        return self._double("literal_bias")[self.place]

    # -- inputs and scores --

    def inputs(self, x: Floats) -> Floats:
        """Return s_j with every label atom false, shape (rows, units), the knowledge's units first.

        Of calibrated units, how many literals hold less how many there are: linear in x, as inputs are.
        """
        free = x @ self.weights + self.hidden_bias
        if not self.knowledge.units:
            return np.asarray(free)
        known = np.asarray((self._columns.T @ x.T).T) + self._known_bias
        return np.concatenate([known, free], axis=1)

    def scores_of_inputs(
        self, inputs: Floats, *, joint: bool = True, kinds: Sequence[int] | None = None
    ) -> Floats:
        """Return d·L_k + Σ_j log(1 + exp s_j(x, k)), shape (rows, classes), from :meth:`inputs`.

        Not ``joint``: less what the knowledge's units add for every class alike. ``kinds``: of these classes.
        """
        known, free = inputs[:, : self.knowledge.units], inputs[:, self.knowledge.units :]
        patterns = self.patterns if kinds is None else self.patterns[list(kinds)]
        scores = np.tile(patterns @ self.label_bias, (len(inputs), 1))
        if self.hidden:
            added = patterns @ self.label_weights
            if len(added) == 1 or not added.any():
                scores += log_sum(free + added[:1])[:, None]
            else:
                for k, one in enumerate(added):
                    scores[:, k] += log_sum(free + one)
        if known.shape[1]:
            labels, units, values = self._heads
            gain = self._gains(known[:, units], values, units)
            by_label = np.zeros((len(inputs), len(self.label_bias)))
            if len(self.label_bias) == 1:
                by_label[:, 0] = gain.sum(axis=1)
            elif len(labels):
                np.add.at(by_label.T, labels, gain.T)
            scores += by_label @ patterns.T
            if joint:
                scores += (self._met(known) @ self.strength if self.calibrated else log_sum(known))[:, None]
        return scores

    @staticmethod
    def _met(counts: Floats) -> Floats:
        """Return where cubes miss no literal."""
        return (counts > -0.5).astype(np.float64)

    def _gains(self, off: Floats, values: Floats, units: Ints) -> Floats:
        """Return what literals of label atoms gain where these are true, shape (rows, such literals)."""
        if self.calibrated:
            return (self._met(off + values) - self._met(off)) * self.strength[units]
        return np.asarray(np.logaddexp(0.0, off + values) - np.logaddexp(0.0, off))

    def scores(self, x: Floats, *, joint: bool = False) -> Floats:
        """Return -F(x, k), shape (rows, classes), for whole rows.

        Without ``joint``, terms that are the same for every class are left out: softmax still gives p(k | x).
        """
        step = max(1, CHUNK // max(1, self.units, x.shape[1]))
        parts = [self.scores_of_inputs(self.inputs(x[part]), joint=joint) for part in slices(len(x), step)]
        found = np.concatenate(parts) if parts else np.zeros((0, self.classes))
        return found + (x @ self.visible_bias)[:, None] if joint else found

    # -- chains --

    def hidden_inputs(self, x: Floats, kinds: Ints) -> Floats:
        """Return s_j(x, k), shape (rows, units), for a class per row."""
        found, labels = self.inputs(x), self.patterns[kinds]
        known = self.knowledge.units
        found[:, known:] += labels @ self.label_weights
        if known:
            heads, units, values = self._heads
            np.add.at(found.T, units, (labels[:, heads] * values).T)
            if self.calibrated:  # written so that large confidences cancel
                counts, strength = found[:, :known], self.strength
                start = np.maximum(np.log(-np.expm1(-strength)), LEAST)
                found[:, :known] = start + strength * (1 + counts) + MARGIN * counts
        return found

    def visible_inputs(self, h: Floats) -> tuple[Floats, Floats]:
        """Return the inputs of columns and of classes for hidden states h, shape (rows, units)."""
        columns, machine = len(self.knowledge.columns), self.machine
        reached = np.asarray((machine.weights @ h.T).T) + machine.visible_bias
        return reached[:, :columns], reached[:, columns:] @ self.patterns.T

    # -- the same as a machine --

    def _statements(self) -> tuple[Statement, ...]:
        """Return the formulae with what they weigh by now; only those that are fixed are hard."""
        weighed = zip(
            self.knowledge.statements, self.confidences.tolist(), self.knowledge.fixed.tolist(), strict=True
        )
        return tuple(
            said
            if fixed
            else replace(said, weight=Decimal(f"{-now if (said.weight or 0) < 0 else now:.12g}"))
            for said, now, fixed in weighed
        )

    @cached_property
    def machine(self) -> Machine:
        """The same as a machine: atoms are its columns, then its label atoms.

        Its own distribution at confidence 1 is the joint one of columns and label atoms:
        free_energy(world, confidence=1) is F(x, k). Units of the knowledge come first.
        """
        known = self.knowledge
        signs = known.signs.tocoo()
        if known.calibrated:
            strength = self.strength
            literals = signs.data * pull(strength)[signs.col]
            bias = unit_bias(strength, known.positive.astype(np.float64))
        else:
            literals, bias = self._literals.tocoo().data, self._known_bias
            strength = self.strength
            if self.literals == "free":
                strength = np.zeros(known.units)
                np.maximum.at(strength, signs.col, np.abs(literals))
        ruled = csc_array((literals, (signs.row, signs.col)), shape=signs.shape)
        free = np.concatenate([self.weights, self.label_weights])
        names = (*known.columns, *known.labels)
        return Machine(
            atoms=names,
            weights=csc_array(hstack([ruled, csc_array(free)], format="csc")),
            visible_bias=np.concatenate([self.visible_bias, self.label_bias]),
            hidden_bias=np.concatenate([bias, self.hidden_bias]),
            epsilon=known.epsilon,
            unit_weights=np.concatenate([strength, np.abs(free).max(axis=0, initial=0.0)]),
            owner=known.owner,
            unit=known.unit,
            theory=Theory.from_parts(names, self._statements()),
            calibrated=known.units if known.calibrated else 0,
        )


def blank(knowledge: Knowledge, groups: Groups = ()) -> Parameters:
    """Return knowledge alone: tied literals as they begin, no other unit, and biases of 0."""
    columns, labels = len(knowledge.columns), len(knowledge.labels)
    free = knowledge.initial[~knowledge.fixed]
    arrays = {
        "weights": np.zeros((columns, 0)),
        "label_weights": np.zeros((labels, 0)),
        "hidden_bias": np.zeros(0),
        "visible_bias": np.zeros(columns),
        "label_bias": np.zeros(labels),
        "raw_confidence": inverse_softplus(free),
    }
    return Parameters(knowledge, arrays, together=groups)


def parameters_of(network: Network) -> Parameters:
    """Return what a network has learned so far, as a copy."""
    arrays = {name: values.detach().cpu().numpy().copy() for name, values in network.named_parameters()}
    return Parameters(network.knowledge, arrays, network.literals, network.together, network.likely)


def inverse_softplus(value: Floats) -> Floats:
    """Return θ with log(1 + exp θ) = value, for values above 0."""
    return value + np.log(-np.expm1(-value))


def log_sum(inputs: Floats) -> Floats:
    """Return Σ_j log(1 + exp s_j) over the last axis, from many factors with one logarithm.

        Σ_j log(1 + exp s_j) = Σ_j max(0, s_j) + log Π_j (1 + exp -|s_j|)

    >>> s = np.linspace(-40, 40, 2000)
    >>> float(abs(log_sum(s) - np.logaddexp(0, s).sum())) < 1e-9
    True
    """
    total = np.maximum(inputs, 0.0).sum(axis=-1)
    factors = np.abs(inputs)
    np.negative(factors, out=factors)
    np.exp(factors, out=factors)
    factors += 1.0
    for part in slices(inputs.shape[-1], FACTORS):
        total += np.log(factors[..., part].prod(axis=-1))
    return np.asarray(total)


def softmax(logits: Floats) -> Floats:
    """Return probabilities over the last axis."""
    found = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
