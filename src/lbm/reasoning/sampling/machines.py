"""Chains (Markov chain Monte Carlo, MCMC) on a machine, in plain NumPy.

- *Block Gibbs*, the paper's method: :func:`gibbs_step`.
- *Collapsed* (Rao-Blackwellised): hidden units are summed out (marginalised) and one atom is updated at a
  time. :class:`Conditioned` has these chains where evidence is no literal; for all others the engine does.

States are arrays of shape (atoms, lanes): a row per atom, and every column, or lane, is one chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lbm.arrays import Bools, Floats, Ints, States
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.machine.rbm import Machine, inverse_temperature
from lbm.reasoning.engine.dense import held

if TYPE_CHECKING:
    from lbm.reasoning.engine.dense import Clamped

DENSE: Final = 1 << 14
"""Weights around an atom up to which they are kept as a dense matrix, which is faster while small."""

_SHARE: Final = 0.3  # of states that ought to keep the evidence
_ROUNDS: Final = 16  # penalties that are tried at most
_PILOT: Final = 20  # sweeps with each of them


def gibbs_step(
    machine: Machine,
    x: States,
    rng: np.random.Generator,
    *,
    confidence: float = 5.0,
    temperature: float = 1.0,
    clamped: Clamped = None,
) -> Bools:
    """Return new visible states after one step of block Gibbs: all hidden units, then all visible ones.

        p(h_j = 1 | x) = σ((c/τ)(Σ_i w_ij x_i + b_j)),   p(x_i = 1 | h) = σ((c/τ)(Σ_j w_ij h_j + a_i))

    It leaves P(x) ∝ exp(-F(x)) over *all* visible units unchanged. Definitional atoms are among them:
    they are sampled like any other, so a state may contradict its definitions; chains that compute
    them run on :class:`lbm.reasoning.engine.energy.EnergyNetwork`. c/τ multiplies weights and biases,
    where the paper's formula leaves out the biases. [TG21, Equation 11; ERRATA 5]

    Parameters
    ----------
    machine
        Any machine.
    x
        Shape (atoms, lanes), over ``machine.atoms``; fractions such as 0.5 are allowed.
    rng
        Drawn from for the hidden units first, then for the visible ones: one number for each and lane.
    confidence, temperature
        c and τ.
    clamped
        Atoms that are set to a value and stay there.
    """
    k = inverse_temperature(confidence, temperature)
    start = np.array(x, np.float64)
    rows, values = held(start, clamped)
    start[rows] = values
    inputs = machine.weights.T @ start + machine.hidden_bias[:, None]
    hidden = heat_bath(k * inputs, rng.random(inputs.shape))
    inputs = machine.weights @ hidden.astype(np.float64) + machine.visible_bias[:, None]
    new = heat_bath(k * inputs, rng.random(start.shape))
    new[rows] = values
    return new


def heat_bath(odds: Floats, u: Floats) -> Bools:
    """Return new values: true with probability σ(odds), where ``u`` is uniform in [0, 1)."""
    # tanh neither overflows nor warns, and is as fine as the numbers of u are.
    return np.asarray(u < 0.5 + 0.5 * np.tanh(0.5 * odds))


def truth(formula: Formula, atoms: Sequence[str], x: States) -> Bools:
    """Return in which lanes a formula is true, shape (lanes,)."""
    rows = {name: i for i, name in enumerate(atoms)}
    world: dict[str, Any] = {name: x[rows[name]].astype(bool) for name in atoms_of(formula)}
    return np.broadcast_to(np.asarray(holds(formula, world), bool), x.shape[1:])


# --- one atom at a time --------------------------------------------------------------------------------


class _Around(NamedTuple):
    """The hidden units that an atom touches: their inputs are ``matrix @ x[rows] + bias`` without it.

    ``matrix`` has shape (units, other atoms of these units), sparse where it is large; ``weights`` and
    ``bias`` shape (units, 1).
    """

    rows: Ints
    matrix: Any
    weights: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A machine's own distribution over its declared atoms, and a penalty for each part of evidence broken.

        log P(x) = -F(x) - penalty · (number of parts that are false in x),   up to a constant

    Hidden units are summed out, and definitional atoms computed. States that break nothing have exactly the
    distribution given the evidence, whatever the penalty.

    Attributes
    ----------
    machine, confidence, temperature
        The machine as built, c and τ: F(x) = -(c/τ) a·x - Σ_j log(1 + exp(c s_j(x)/τ)).
    evidence
        Formulae that must all hold.
    """

    machine: Machine
    confidence: float
    temperature: float
    evidence: tuple[Formula, ...]

    def sweep(self, x: Bools, rng: np.random.Generator, penalty: float) -> Bools:
        """Return the states after one pass over the atoms, each drawn anew given all the others."""
        new = x.copy()
        u = rng.random(new.shape)
        for i in range(len(new)):
            new[i] = heat_bath(self.odds(i, new, penalty), u[i])
        return new

    def odds(self, i: int, x: Bools, penalty: float) -> Floats:
        """Return log P(x_i = 1 | the others) - log P(x_i = 0 | the others), shape (lanes,)."""
        kept = np.zeros(x.shape[1])
        for part, rows in self._near[i]:
            world = {name: x[row] for name, row in rows.items()}
            mine = self.machine.declared[i]
            kept += holds(part, world | {mine: True})
            kept -= holds(part, world | {mine: False})
        if self.machine.definitions:
            without, with_it = x.copy(), x.copy()
            without[i], with_it[i] = False, True
            energy = self.score(with_it) - self.score(without)
        else:
            around, k = self._around[i], self.confidence / self.temperature
            inputs = around.matrix @ x[around.rows].astype(np.float64) + around.bias
            gained = np.logaddexp(0.0, k * (inputs + around.weights)) - np.logaddexp(0.0, k * inputs)
            energy = gained.sum(axis=0) + k * self.machine.visible_bias[i]
        return np.asarray(energy + penalty * kept)

    def score(self, x: Bools) -> Floats:
        """Return -F(x), shape (lanes,)."""
        return -self.machine.free_energy(x.T, confidence=self.confidence, temperature=self.temperature)

    def broken(self, x: Bools) -> Ints:
        """Return the number of parts of the evidence that are false, shape (lanes,)."""
        false = [~truth(part, self.machine.declared, x) for part in self.evidence]
        return np.asarray(sum(false, start=np.zeros(x.shape[1], np.int64)))

    def chosen_penalty(self, x: Bools, rng: np.random.Generator) -> float:
        """Return a penalty under which a good share of states keep the evidence and chains still move.

        As :func:`lbm.reasoning.engine.schedule.tuned_penalty` does it, with pilot chains that begin in ``x``
        at penalty 1, up to log(1 + number of parts) + 2 · (bound of |odds| without evidence) + 5.
        """
        if not self.evidence:
            return 1.0
        highest = float(np.log1p(len(self.evidence)) + 2 * self._reach() + 5)
        for penalty in np.geomspace(1.0, highest, _ROUNDS).tolist():
            kept = []
            for _ in range(_PILOT):
                x = self.sweep(x, rng, penalty)
                kept.append(self.broken(x) == 0)
            if np.mean(kept[_PILOT // 2 :]) >= _SHARE:
                return float(penalty)
        return highest

    def _reach(self) -> float:
        """Return a bound of |odds| for any atom, without evidence.

        Unit j never gives more than softplus(c max_x s_j(x)/τ), and one flip changes its part by at
        most c|w_ij|/τ. Through definitional atoms a flip may reach every unit: the bound is their sum.
        """
        machine, k = self.machine, self.confidence / self.temperature
        weights = machine.weights
        deepest = np.asarray(weights.maximum(0).sum(axis=0)).ravel() + machine.hidden_bias
        wells = np.logaddexp(0.0, k * deepest)
        largest = k * np.abs(machine.visible_bias)
        if machine.definitions:
            largest = largest + wells.sum()
        else:
            unit = np.repeat(np.arange(machine.hidden), np.diff(weights.indptr))
            np.add.at(largest, weights.indices, np.minimum(k * np.abs(weights.data), wells[unit]))
        return float(largest.max(initial=0.0))

    @cached_property
    def _near(self) -> list[list[tuple[Formula, dict[str, int]]]]:
        """The parts of the evidence that mention each atom, with the rows of their atoms."""
        place = {name: row for row, name in enumerate(self.machine.declared)}
        found: list[list[tuple[Formula, dict[str, int]]]] = [[] for _ in place]
        for part in self.evidence:
            rows = {name: place[name] for name in atoms_of(part)}
            for row in rows.values():
                found[row].append((part, rows))
        return found

    @cached_property
    def _around(self) -> list[_Around]:
        """What :meth:`odds` needs of each atom, for a machine without definitional atoms."""
        columns, rows = self.machine.weights, self.machine.weights.tocsr()
        found = []
        for i in range(len(self.machine.declared)):
            mine = slice(rows.indptr[i], rows.indptr[i + 1])
            units = rows.indices[mine]
            part = columns[:, units]
            others = np.unique(part.indices)
            others = others[others != i].astype(np.int64)
            matrix = part.tocsr()[others].T.tocsr()
            if len(units) * len(others) <= DENSE:
                matrix = matrix.toarray()
            bias = self.machine.hidden_bias[units][:, None]
            found.append(_Around(others, matrix, rows.data[mine][:, None], bias))
        return found
