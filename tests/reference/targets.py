"""What a chain runs on: the log-odds of one atom given all the others, in many chains at once.

States are arrays of shape (atoms, lanes): a row per atom, and every column, or lane, is one chain.

- :func:`score_target` gives the *logical* distribution, hard formulae as finite penalties;
- :class:`FreeEnergyTarget` gives the *machine* distribution, P(x) ∝ exp(-F(x)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Floats, Ints, States
from lbm.errors import UnknownAtom, WeightError
from lbm.knowledge.clauses import as_clause
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.machine.rbm import Machine
from lbm.reasoning.sampling.targets import hard_parts

CHUNK: Final = 1 << 24
"""Truth values held at once while whole states are weighed: cubes are taken in groups of this size."""

DENSE: Final = 1 << 14
"""Weights around an atom up to which they are kept as a dense matrix, which is faster while small."""


class Target(Protocol):
    """What sweeps, schedules and annealing need to know of a distribution."""

    @property
    def atoms(self) -> tuple[str, ...]:
        """The names of the rows of a state."""
        ...

    def odds(self, i: int, x: States) -> Floats:
        """Return log P(x_i = 1 | the others) - log P(x_i = 0 | the others), shape (lanes,)."""
        ...

    def log_weight(self, x: States) -> Floats:
        """Return log P(x) up to a constant, shape (lanes,)."""
        ...

    def broken(self, x: States) -> Ints:
        """Return the number of hard formulae that are false, shape (lanes,)."""
        ...

    def score(self, x: States) -> Floats:
        """Return what is left of the log weight without hard formulae, shape (lanes,)."""
        ...

    def scale(self) -> tuple[float, float]:
        """Return the smallest weight there is, and a bound of |odds| for any atom; zeros: nothing weighs."""
        ...


# --- the logical distribution ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Pack:
    """Cubes of one width; shorter ones repeat a literal.

    ``rows`` has shape (width, cubes), ``wanted`` (width, cubes, 1). ``hard`` and ``soft``, shape (cubes,),
    are what a true cube adds to the log weight, the former times the penalty; ``weight`` is both together.
    """

    rows: Ints
    wanted: NDArray[np.bool_]
    hard: Floats
    soft: Floats
    weight: Floats

    def sums(self, x: States, weight: Floats) -> Floats:
        """Return Σ weight over the cubes that are true, shape (lanes,)."""
        return np.asarray(weight @ (x.take(self.rows, axis=0) == self.wanted).all(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """A formula that is neither a clause nor a conjunction of literals: evaluated as it is."""

    formula: Formula
    rows: tuple[tuple[str, int], ...]
    hard: float
    soft: float
    weight: float

    def truth(self, x: States) -> NDArray[np.bool_]:
        """Return where the formula is true, shape (lanes,)."""
        world = {name: x[row].astype(bool, copy=False) for name, row in self.rows}
        return np.broadcast_to(holds(self.formula, world), x.shape[1:])

    def gain(self, i: int, x: States) -> Floats:
        """Return its truth with atom i true less its truth with atom i false, shape (lanes,)."""
        world: dict[str, Any] = {name: x[row].astype(bool, copy=False) for name, row in self.rows}
        name = next(name for name, row in self.rows if row == i)
        without, with_it = (
            np.asarray(holds(self.formula, world | {name: value}), dtype=np.float64)
            for value in (False, True)
        )
        return with_it - without


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """Cubes and formulae that add to the log weight where they are true."""

    packs: tuple[_Pack, ...]
    wholes: tuple[_Whole, ...]

    def with_penalty(self, penalty: float) -> _Terms:
        """Return the same terms under another penalty."""
        return _Terms(
            tuple([replace(pack, weight=penalty * pack.hard + pack.soft) for pack in self.packs]),
            tuple([replace(whole, weight=penalty * whole.hard + whole.soft) for whole in self.wholes]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTarget:
    """The logical distribution with finite penalties; made by :func:`score_target`.

        log P(x) = Σ (weights of soft formulae true in x) - penalty · (number of hard formulae false in x)

    up to a constant. States in which no hard formula is broken have exactly the logical distribution,
    whatever the penalty.

    Attributes
    ----------
    atoms
        The names of the rows of a state.
    penalty
        What a broken hard formula costs.
    hard
        The number of hard formulae, conjunctions counted by their parts.
    """

    atoms: tuple[str, ...]
    penalty: float
    hard: int
    _constant: tuple[int, float]  # hard formulae broken and soft weight earned in every state
    _all: _Terms
    _near: tuple[_Terms, ...]  # by atom: what mentions it, seen from it

    def odds(self, i: int, x: States) -> Floats:
        """Return log P(x_i = 1 | the others) - log P(x_i = 0 | the others), shape (lanes,).

        Row i of ``x`` is not looked at, nor is a formula that does not mention atom i.
        """
        near = self._near[i]
        total = np.zeros(x.shape[1])
        for pack in near.packs:
            total += pack.sums(x, pack.weight)
        for whole in near.wholes:
            total += whole.weight * whole.gain(i, x)
        return total

    def log_weight(self, x: States) -> Floats:
        """Return Σ soft weights - penalty · (hard formulae broken), shape (lanes,)."""
        return self.score(x) - self.penalty * self.broken(x)

    def broken(self, x: States) -> Ints:
        """Return the number of hard formulae that are false, shape (lanes,)."""
        total = np.full(x.shape[1], self._constant[0], dtype=np.int64)
        for pack in self._all.packs:
            if pack.hard.any():
                total -= np.rint(_all_sums(pack, x, pack.hard)).astype(np.int64)
        for whole in self._all.wholes:
            if whole.hard:
                total += ~whole.truth(x)
        return total

    def score(self, x: States) -> Floats:
        """Return Σ soft weights of the formulae that are true, shape (lanes,)."""
        total = np.full(x.shape[1], self._constant[1])
        for pack in self._all.packs:
            if pack.soft.any():
                total += _all_sums(pack, x, pack.soft)
        for whole in self._all.wholes:
            if whole.soft:
                total += whole.soft * whole.truth(x)
        return total

    def scale(self) -> tuple[float, float]:
        """Return the smallest |weight| and the greatest Σ |weights| of the formulae of one atom."""
        smallest, largest = np.inf, 0.0
        for near in self._near:
            weights = np.abs(
                np.concatenate([*(p.weight for p in near.packs), [w.weight for w in near.wholes]])
            )
            if weights.any():
                smallest = min(smallest, float(weights[weights > 0].min()))
                largest = max(largest, float(weights.sum()))
        return (smallest, largest) if largest else (0.0, 0.0)

    def with_penalty(self, penalty: float) -> ScoreTarget:
        """Return the same target under another penalty."""
        _check_penalty(penalty)
        near = tuple([terms.with_penalty(penalty) for terms in self._near])
        return replace(self, penalty=float(penalty), _near=near)


def score_target(
    atoms: Sequence[str], hard: Iterable[Formula], soft: Iterable[tuple[Formula, float]], penalty: float
) -> ScoreTarget:
    """Return the target of the logical distribution.

    Formulae are evaluated as they are: no strict DNF is made and there are no definitional atoms.
    Clauses, and soft conjunctions of literals, are packed; a sweep looks at many of them at once.

    Parameters
    ----------
    atoms
        The names of the rows of a state; formulae mention no others.
    hard
        Formulae; conjunctions are split into their parts, and each part is penalised by itself.
    soft
        Pairs (formula, weight/τ). Conjunctions are not split.
    penalty
        What a broken hard formula costs, in units of τ: `choose_penalty` of chains.py finds a good one.

    Examples
    --------
    >>> from lbm import parse
    >>> target = score_target(["a", "b"], [parse("a | b")], [(parse("a"), 2.0)], penalty=3.0)
    >>> target.odds(0, np.array([[0, 0], [0, 1]]))
    array([5., 2.])
    """
    names = tuple(atoms)
    _check_penalty(penalty)
    maker = _Maker(names)
    number = 0
    for formula in hard:
        for part in hard_parts([formula]):
            maker.add(part, True, 0.0)
            number += 1
    for formula, weight in soft:
        if not np.isfinite(weight):
            raise WeightError(f"expected finite weights of soft formulae, got {weight}: {formula}")
        maker.add(formula, False, float(weight))
    return maker.target(number).with_penalty(penalty)


def _check_penalty(penalty: float) -> None:
    if not 0 <= penalty < np.inf:
        raise ValueError(f"expected a finite penalty from 0 up, got {penalty}")


class _Maker:
    """Collects formulae as cubes and wholes, by the atoms they mention.

    A clause is false in one cube, and a conjunction of literals true in one: what it adds to the log
    weight is a constant and a coefficient of that cube.
    """

    def __init__(self, atoms: tuple[str, ...]) -> None:
        self.atoms = atoms
        self.place = {name: row for row, name in enumerate(atoms)}
        if len(self.place) < len(atoms):
            raise ValueError(f"expected every atom once, got {len(atoms)} names of {len(self.place)} atoms")
        self.broken, self.earned = 0, 0.0
        self.cubes: list[tuple[dict[int, bool], float, float]] = []
        self.wholes: list[_Whole] = []

    def add(self, formula: Formula, hard: bool, soft: float) -> None:
        """Add a formula: hard, or worth ``soft`` where it is true."""
        rows = []
        for name in atoms_of(formula):
            if name not in self.place:
                raise UnknownAtom(name, self.atoms, "state")
            rows.append((name, self.place[name]))
        clause = as_clause(formula)
        if clause is not None:
            self.earned += soft
            self._cube([(name, not wanted) for name, wanted in clause], -1.0 if hard else 0.0, -soft)
        elif not hard and (negated := as_clause(~formula)) is not None:
            self._cube([(name, not wanted) for name, wanted in negated], 0.0, soft)
        elif rows:
            self.wholes.append(_Whole(formula, tuple(rows), float(hard), soft, 0.0))
        elif holds(formula, {}):
            self.earned += soft
        else:
            self.broken += hard

    def _cube(self, literals: list[tuple[str, bool]], hard: float, soft: float) -> None:
        cube: dict[int, bool] = {}
        for name, wanted in literals:
            if cube.setdefault(self.place[name], wanted) != wanted:
                return  # a literal and its negation: true nowhere
        self.cubes.append((cube, hard, soft))

    def target(self, hard: int) -> ScoreTarget:
        """Return the target, with no penalty yet."""
        near: list[list[tuple[dict[int, bool], float, float]]] = [[] for _ in self.atoms]
        for cube, cost, soft in self.cubes:
            for row, wanted in cube.items():
                others = {other: sign for other, sign in cube.items() if other != row}
                near[row].append((others, cost, soft) if wanted else (others, -cost, -soft))
        wholes: list[list[_Whole]] = [[] for _ in self.atoms]
        for whole in self.wholes:
            for _, row in whole.rows:
                wholes[row].append(whole)
        return ScoreTarget(
            self.atoms,
            0.0,
            hard,
            (self.broken, self.earned),
            _Terms(_packs(self.cubes), tuple(self.wholes)),
            tuple([_Terms(_packs(c), tuple(w)) for c, w in zip(near, wholes, strict=True)]),
        )


def _packs(cubes: Iterable[tuple[dict[int, bool], float, float]]) -> tuple[_Pack, ...]:
    """Return cubes by width; widths are 0 and the powers of two, so that no long cube widens the others."""
    by_width: dict[int, list[tuple[dict[int, bool], float, float]]] = {}
    for item in cubes:
        count = len(item[0])
        by_width.setdefault(1 << (count - 1).bit_length() if count else 0, []).append(item)
    packs = []
    for width, items in sorted(by_width.items()):
        literals = [list(cube.items()) for cube, _, _ in items]
        padded = np.array([row + row[-1:] * (width - len(row)) for row in literals], dtype=np.int64)
        rows, wanted = padded.reshape(len(items), width, 2).transpose(2, 1, 0)
        hard, soft = np.array([item[1:] for item in items]).T.copy()
        packs.append(_Pack(rows.copy(), wanted.astype(bool)[:, :, None], hard, soft, soft))
    return tuple(packs)


def _all_sums(pack: _Pack, x: States, weight: Floats) -> Floats:
    """Return Σ weight over the true cubes of a pack, a bounded number of cubes at a time."""
    step = max(1, CHUNK // max(1, pack.rows.shape[0] * x.shape[1]))
    total = np.zeros(x.shape[1])
    for begin in range(0, len(weight), step):
        part = slice(begin, begin + step)
        total += weight[part] @ (x.take(pack.rows[:, part], axis=0) == pack.wanted[:, part]).all(axis=0)
    return total


# --- the machine distribution ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Around:
    """The hidden units that an atom touches: their inputs are ``matrix @ x[rows] + bias`` without it.

    ``matrix`` has shape (units, other atoms of these units), sparse where it is large; ``weights`` and
    ``bias`` shape (units, 1).
    """

    rows: Ints
    matrix: Any
    weights: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class FreeEnergyTarget:
    """The machine distribution, P(x) ∝ exp(-F(x)), over the declared atoms: hidden units are summed out.

    Definitional atoms are computed, never sampled: a flip recomputes them. Evidence that fixes atoms
    is a matter of not updating them; see ``clamped`` in :func:`tests.reference.chains.sweep`.

    Attributes
    ----------
    machine
        The machine as built.
    confidence, temperature
        c and τ: F(x) = -(c/τ) a·x - Σ_j log(1 + exp(c s_j(x)/τ)).
    """

    machine: Machine
    confidence: float = 5.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for name in ("confidence", "temperature"):
            value = getattr(self, name)
            if not 0 < value < np.inf:
                raise ValueError(f"{name} must be a positive number, got {value}")

    @property
    def atoms(self) -> tuple[str, ...]:
        """The names of the rows of a state: the machine's declared atoms."""
        return self.machine.declared

    def odds(self, i: int, x: States) -> Floats:
        """Return F(x with x_i = 0) - F(x with x_i = 1), shape (lanes,); row i of ``x`` is not looked at.

            (c/τ) a_i + Σ_j [softplus(c s_j(x_i = 1)/τ) - softplus(c s_j(x_i = 0)/τ)]

        over the hidden units j that atom i touches. With definitional atoms it takes all units.
        """
        if self.machine.definitions:
            without, with_it = x.copy(), x.copy()
            without[i], with_it[i] = 0, 1
            return self.log_weight(with_it) - self.log_weight(without)
        around, k = self._around[i], self.confidence / self.temperature
        inputs = around.matrix @ x[around.rows].astype(np.float64) + around.bias
        gained = np.logaddexp(0.0, k * (inputs + around.weights)) - np.logaddexp(0.0, k * inputs)
        return np.asarray(gained.sum(axis=0) + k * self.machine.visible_bias[i])

    def log_weight(self, x: States) -> Floats:
        """Return -F(x), shape (lanes,); definitional atoms are computed."""
        return -self.machine.free_energy(x.T, confidence=self.confidence, temperature=self.temperature)

    def broken(self, x: States) -> Ints:
        """Return zeros, shape (lanes,): in a machine hard formulae are wells among others."""
        return np.zeros(x.shape[1], dtype=np.int64)

    def score(self, x: States) -> Floats:
        """Return the log weight, shape (lanes,)."""
        return self.log_weight(x)

    def scale(self) -> tuple[float, float]:
        """Return the least that a full well loses by one flip, and a bound of |odds| for any atom.

        Unit j never gives more than softplus(c max_x s_j(x)/τ), and one flip changes its part by at
        most c|w_ij|/τ. Through definitional atoms a flip may reach every unit: the bound is their sum.
        """
        machine, k = self.machine, self.confidence / self.temperature
        weights, sizes = machine.weights, np.abs(machine.weights.data)
        unit = np.repeat(np.arange(machine.hidden), np.diff(weights.indptr))
        deepest = np.asarray(weights.maximum(0).sum(axis=0)).ravel() + machine.hidden_bias
        wells = np.logaddexp(0.0, k * deepest)
        bias = k * np.abs(machine.visible_bias)
        if machine.definitions:
            largest = bias + wells.sum()
        else:
            largest = bias.copy()
            np.add.at(largest, weights.indices, np.minimum(k * sizes, wells[unit]))
        if not largest.any():
            return 0.0, 0.0
        lost = (wells[unit] - np.logaddexp(0.0, k * (deepest[unit] - sizes)))[
            (deepest[unit] > 0) & (sizes > 0)
        ]
        bound = float(largest.max())
        return float(np.concatenate([lost, bias[bias > 0]]).min(initial=bound)), bound

    @cached_property
    def _around(self) -> list[_Around]:
        """What :meth:`odds` needs of each atom, for a machine without definitional atoms."""
        columns, rows = self.machine.weights, self.machine.weights.tocsr()
        found = []
        for i in range(len(self.atoms)):
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


# --- both ----------------------------------------------------------------------------------------------


class SumTarget:
    """Free energies, and a penalty for evidence that is broken."""

    def __init__(self, energies: FreeEnergyTarget, evidence: ScoreTarget) -> None:
        self.energies, self.evidence = energies, evidence
        self.atoms, self.hard, self.penalty = energies.atoms, evidence.hard, evidence.penalty

    def odds(self, i: int, x: States) -> Floats:
        """Return the sum of both."""
        return self.energies.odds(i, x) + self.evidence.odds(i, x)

    def broken(self, x: States) -> Ints:
        """Return the number of parts of the evidence that are false, shape (lanes,)."""
        return self.evidence.broken(x)

    def scale(self) -> tuple[float, float]:
        """Return the smallest weight of both, and the sum of their bounds."""
        energies, evidence = self.energies.scale(), self.evidence.scale()
        return min(filter(None, (energies[0], evidence[0])), default=0.0), energies[1] + evidence[1]

    def with_penalty(self, penalty: float) -> SumTarget:
        """Return the same target under another penalty."""
        return SumTarget(self.energies, self.evidence.with_penalty(penalty))
