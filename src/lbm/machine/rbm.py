"""Machine: a restricted Boltzmann machine whose units have names and reasons.

    E(x, h) = -Σ_ij w_ij x_i h_j - Σ_i a_i x_i - Σ_j b_j h_j        [TG21, equation rbm_en]

Everything is arrays; a hidden unit becomes an object only when it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from lbm.arrays import Floats, Ints
from lbm.errors import UnknownAtom
from lbm.knowledge.clauses import Lazy
from lbm.knowledge.parser import Statement
from lbm.logic.cube import Cube, Cubes
from lbm.machine.calibrated import pull
from lbm.machine.equation import write_equation

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from lbm.knowledge.theory import Theory

CHUNK: Final = 1 << 24
"""Numbers held at once while many worlds are weighed: worlds are taken in groups of this size."""


@dataclass(frozen=True, slots=True)
class HiddenUnit:
    """One hidden unit: the cube it stands for, its weight and bias, and the formulae it serves.

    ``formulae`` holds numbers of statements of the machine's theory; ``definitions`` the names of the
    definitional atoms that the unit helps to define.
    """

    cube: Cube
    weight: float
    bias: float
    formulae: tuple[int, ...]
    definitions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Machine:
    """A visible unit per atom, a hidden unit per cube.

    Made by :func:`lbm.translate`, it obeys, with W the weight of a hard formula,

        -min_h E(x, h)/ε + offset = score(x) + W · (number of hard formulae true in x)

    and with ``units="calibrated"``, where F is the free energy at confidence 1,

        -F(x) + offset = score(x) + W · (number of hard formulae true in x)

    Attributes
    ----------
    atoms
        Names of the visible units, those of definitional atoms last.
    weights
        Sparse, shape (atoms, hidden units): +w on the literals a cube wants true, -w on the others.
    visible_bias, hidden_bias
        Shapes (atoms,) and (hidden units,).
    epsilon
        ε, strictly between 0 and 1: how deep a well of weight 1 is.
    offset
        What negative weights and definitions leave behind.
    unit_weights
        Shape (hidden units,): w of each unit; by default its largest weight.
    hard_weight
        W: 1 if nothing is soft, else 1 + Σ|w|.
    owner, unit
        Shape (parts,): formula ``owner[i]`` has a cube that became part of hidden unit ``unit[i]``.
        Numbers from ``len(theory)`` on are definitions.
    definitions
        Names of the definitional atoms, in the order in which they are computed.
    theory
        The theory it came from, if any.
    calibrated
        How many hidden units, the first ones, are calibrated: see :mod:`lbm.machine.calibrated`.
    """

    atoms: tuple[str, ...]
    weights: csc_array
    visible_bias: Floats
    hidden_bias: Floats
    epsilon: float = 0.5
    offset: float = 0.0
    unit_weights: Floats = field(default_factory=lambda: np.zeros(0))
    hard_weight: float = 1.0
    owner: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    unit: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    definitions: tuple[str, ...] = ()
    theory: Theory | None = None
    calibrated: int = 0

    def __post_init__(self) -> None:
        if not len(self.unit_weights) and self.hidden:  # made by hand: the largest weight stands for all
            largest = np.zeros(self.hidden)
            unit = np.repeat(np.arange(self.hidden), np.diff(self.weights.indptr))
            with np.errstate(invalid="ignore"):  # whoever saves or writes it refuses nan
                np.maximum.at(largest, unit, np.abs(self.weights.data))
            object.__setattr__(self, "unit_weights", largest)

    # -- what it is made of --

    @property
    def declared(self) -> tuple[str, ...]:
        """The atoms that are not definitional."""
        return self.atoms[: len(self.atoms) - len(self.definitions)]

    @property
    def hidden(self) -> int:
        """The number of hidden units."""
        return int(self.weights.shape[1])

    @property
    def formulae(self) -> int:
        """The number of formulae it was made from, definitions not counted."""
        return 0 if self.theory is None else len(self.theory)

    @cached_property
    def cubes(self) -> Cubes:
        """The cube of every hidden unit: the signs of its weights."""
        literals = (self.weights.indices + 1) * np.sign(self.weights.data)
        return Cubes(self.atoms, literals.astype(np.int32), self.weights.indptr.astype(np.int64))

    @cached_property
    def _parts(self) -> tuple[Ints, Ints]:
        """Formulae by hidden unit: unit j serves ``sorted_owner[starts[j]:starts[j + 1]]``."""
        order = np.argsort(self.unit, kind="stable")
        starts = np.zeros(self.hidden + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.unit, minlength=self.hidden), out=starts[1:])
        return self.owner[order], starts

    @property
    def units(self) -> Units:
        """The hidden units as objects, each made when it is looked at."""
        return Units(self)

    def __repr__(self) -> str:
        extra = f" ({len(self.definitions)} of them definitional)" if self.definitions else ""
        size = f"{len(self.atoms)} visible{extra} and {self.hidden} hidden units"
        return f"<Machine: {size}, {self.kind}>"

    @property
    def kind(self) -> str:
        """What its units are, in a word: ``calibrated``, or the ε of the paper's."""
        return "calibrated" if self.calibrated else f"ε = {self.epsilon:g}"

    # -- worlds --

    def visible(self, worlds: ArrayLike | Mapping[str, Any]) -> Floats:
        """Return worlds as an array over all visible units; definitional atoms are computed.

        Parameters
        ----------
        worlds
            A mapping from names to truth values (or to arrays of them), or an array whose last axis
            runs over ``declared``, or over ``atoms``: then definitional atoms are taken as they are.
        """
        if isinstance(worlds, Mapping):
            known = set(self.atoms)
            for name in worlds:
                if name not in known:
                    raise UnknownAtom(name, self.atoms, "machine")
            given = self.atoms if all(name in worlds for name in self.definitions) else self.declared
            for name in given:
                if name not in worlds:
                    raise UnknownAtom(name, worlds, "world")
            columns = [np.asarray(worlds[name], dtype=np.float64) for name in given]
            x = np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros(0)
        else:
            x = np.asarray(worlds, dtype=np.float64)
        if x.ndim and x.shape[-1] == len(self.atoms):
            return x
        if x.ndim == 0 or x.shape[-1] != len(self.declared):
            raise ValueError(
                f"expected worlds over {len(self.declared)} atoms ({_some(self.declared)}), "
                f"got an array of shape {x.shape}"
            )
        return self._complete(x)

    def _complete(self, x: Floats) -> Floats:
        """Append the definitional atoms, computed in definition order."""
        flat = _rows(x)
        full = np.concatenate([flat, np.zeros((len(flat), len(self.definitions)))], axis=1)
        for names, units, target in self._levels:
            # An atom is true where one of its positive cubes would be, were it true itself.
            literal = pull(self.unit_weights[units]) if self.calibrated else self.unit_weights[units]
            met = full @ self.weights[:, units] + self.hidden_bias[units] + literal > 0
            for i, name in enumerate(names):
                full[:, name] = met[:, target == i].any(axis=1)
        return full.reshape(*x.shape[:-1], len(self.atoms))

    @cached_property
    def _levels(self) -> list[tuple[list[int], Ints, Ints]]:
        """Definitions in groups that need only earlier groups: (atoms, their positive units, whose)."""
        owners, starts = self._parts
        first = len(self.declared)
        depth = np.zeros(len(self.definitions), dtype=np.int64)
        mine: list[list[int]] = [[] for _ in self.definitions]
        pointer, index, data = self.weights.indptr, self.weights.indices, self.weights.data
        base = self.formulae
        for unit in np.unique(self.unit[self.owner >= base]).tolist():
            column = slice(pointer[unit], pointer[unit + 1])
            signs = dict(zip(index[column].tolist(), data[column].tolist(), strict=True))
            for number in owners[starts[unit] : starts[unit + 1]].tolist():
                if number >= base and signs.get(first + number - base, 0) > 0:
                    mine[number - base].append(unit)
        levels: dict[int, tuple[list[int], list[int], list[int]]] = {}
        for number, units in enumerate(mine):
            for unit in units:
                inner = index[pointer[unit] : pointer[unit + 1]] - first
                inner = inner[(inner >= 0) & (inner != number)]
                if len(inner):
                    depth[number] = max(depth[number], depth[inner].max() + 1)
            names, all_units, target = levels.setdefault(int(depth[number]), ([], [], []))
            target += [len(names)] * len(units)
            names.append(first + number)
            all_units += units
        return [
            (names, np.array(all_units, dtype=np.int64), np.array(target, dtype=np.int64))
            for _, (names, all_units, target) in sorted(levels.items())
        ]

    # -- energies --

    def energy(self, worlds: ArrayLike | Mapping[str, Any], hidden: ArrayLike) -> Floats:
        """Return E(x, h) for worlds and hidden states whose leading axes match. [TG21, equation rbm_en]"""
        x = self.visible(worlds)
        h = np.asarray(hidden, dtype=np.float64)
        if h.shape[-1:] != (self.hidden,):
            raise ValueError(f"expected hidden states over {self.hidden} units, got shape {h.shape}")
        field_ = _times(x, self.weights) + self.hidden_bias
        return np.asarray(-(field_ * h).sum(axis=-1) - x @ self.visible_bias)

    def rank_energy(self, worlds: ArrayLike | Mapping[str, Any]) -> Floats:
        """Return min_h E(x, h): every hidden unit whose input is positive is on. [TG21, Theorem 1]"""
        return self._weigh(worlds, lambda s: np.maximum(s, 0.0), 1.0)

    def score(self, worlds: ArrayLike | Mapping[str, Any]) -> Floats:
        """Return score(x) + W · (hard formulae true in x).

        It is -min_h E(x, h)/ε + offset, and where units are calibrated -F(x) + offset at confidence 1.
        """
        if self.calibrated:
            return -self.free_energy(worlds, confidence=1.0) + self.offset
        return -self.rank_energy(worlds) / self.epsilon + self.offset

    def free_energy(
        self, worlds: ArrayLike | Mapping[str, Any], *, confidence: float = 5.0, temperature: float = 1.0
    ) -> Floats:
        """Return F(x) = -log Σ_h exp(-(c/τ) E(x, h)) = -(c/τ) a·x - Σ_j log(1 + exp(c s_j(x)/τ)).

        s_j = Σ_i w_ij x_i + b_j is the input of hidden unit j. The confidence c, divided by the temperature τ
        (so that c/τ is an inverse temperature), multiplies weights and biases alike. The paper's formula
        multiplies the weights by c but not the bias, and carries one minus sign too many.
        [TG21, section 4.2; ERRATA 5]
        """
        scale = inverse_temperature(confidence, temperature)
        return self._weigh(worlds, lambda s: np.logaddexp(0.0, scale * s), scale)

    def _weigh(
        self, worlds: ArrayLike | Mapping[str, Any], well: Callable[[Floats], Floats], scale: float
    ) -> Floats:
        """Return -scale·a·x - Σ_j well(s_j(x)), a bounded number of worlds at a time."""
        x = self.visible(worlds)
        flat = _rows(x)
        total = 0.0 - scale * (flat @ self.visible_bias)  # 0.0 - 0.0 is no -0.0
        step = max(1, CHUNK // max(1, self.hidden))
        for begin in range(0, len(flat), step):
            part = slice(begin, begin + step)
            with np.errstate(over="ignore"):  # a sum past any float is as deep as infinity
                total[part] -= well(_times(flat[part], self.weights) + self.hidden_bias).sum(axis=-1)
        return np.asarray(total.reshape(x.shape[:-1]))

    # -- words --

    def equation(self, *, latex: bool = False) -> str:
        """Return the energy function as the paper writes it, as text or as LaTeX.

        >>> import lbm
        >>> print(lbm.translate(lbm.parse("a -> b")).equation())
        E = -h1(a + b - 1.5) - h2(-a + 0.5)
        """
        return write_equation(self, latex=latex)


@dataclass(frozen=True, slots=True)
class Units(Lazy[HiddenUnit]):
    """The hidden units of a machine as a sequence of objects."""

    machine: Machine

    def __len__(self) -> int:
        return self.machine.hidden

    def _at(self, index: int) -> HiddenUnit:
        machine = self.machine
        owners, starts = machine._parts
        parts = owners[starts[index] : starts[index + 1]].tolist()
        base = machine.formulae
        return HiddenUnit(
            machine.cubes[index],
            float(machine.unit_weights[index]),
            float(machine.hidden_bias[index]),
            tuple(number for number in parts if number < base),
            tuple(machine.definitions[number - base] for number in parts if number >= base),
        )

    def statements(self, index: int) -> Iterator[Statement]:
        """Yield the statements that hidden unit ``index`` serves."""
        if self.machine.theory is not None:
            for number in self[index].formulae:
                yield self.machine.theory.statements[number]


def inverse_temperature(confidence: float, temperature: float) -> float:
    """Return c/τ, by which weights and biases are multiplied, of two positive numbers."""
    for name, value in (("confidence", confidence), ("temperature", temperature)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value}")
    return confidence / temperature


def _times(x: Floats, weights: csc_array) -> Floats:
    """Return x @ weights as a dense array, for x of any number of axes."""
    return np.asarray((weights.T @ _rows(x).T).T).reshape(*x.shape[:-1], weights.shape[1])


def _rows(x: Floats) -> Floats:
    """Return worlds as the rows of a matrix; -1 would not do where there are no atoms."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
