"""Chains on free energies, 64 side by side: the machine distribution, P(x) ∝ exp(-F(x)), at speed.

    -F(x) = Σ_j softplus(k s_j(x)) + k a·x,    s_j(x) = Σ_i w_ij x_i + b_j,    k = c/τ

Hidden units are summed out, and one atom at a time takes a new value. What is carried along is the input of
every hidden unit, in one of two forms:

- *counted*: the weights of a unit have one size w and there are few of them, as in the cube of a formula.
  Then its input has few values, one for each number of literals that are not met. That number is kept, and
  wells are looked up. Units with the same table that meet the same atom are counted together, by how many of
  their other literals are not met.
- *summed*: any other unit. Its input is kept as a float and summed anew at every REFRESH-th sweep, so that
  rounding never piles up.

Definitional atoms are computed: a flip recomputes those that it reaches, in the order of their definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bools, Bytes, Floats, Ints, slices
from lbm.errors import WeightError
from lbm.machine.rbm import Machine, inverse_temperature
from lbm.reasoning.compiling.ready import loaded, runs_compiled
from lbm.reasoning.engine.lanes import in_calls, rule_of
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.streams import key_of

WIDE: Final = 16
"""Weights of a unit up to which it may be counted; past that a sum is faster."""

REFRESH: Final = 256
"""Sweeps after which inputs and log weights are summed anew: at its multiples, wherever calls end."""

FIRST: Final = 20_000
"""Work of the first call, before speed is known; one unit that meets an atom is 1."""

_ROWS: Final = 1 << 16  # of 64 lanes, that are summed together
_RUN: Final = 127  # units that are counted together: numbers up to that fit into a signed byte


class EnergyWires(NamedTuple):
    """The arrays that kernels read.

    Atom i meets the counted units ``unit[start[i]:start[i + 1]]``; ``sign`` is 1 where it is wanted true,
    else -1. They fall into the runs ``runs[i]:runs[i + 1]``; the units of run r end before ``run_end[r]`` and
    share the table at ``run_first[r]``, of which all need ``run_depth[r]`` places, and each by itself
    ``width``.

    Unit u has a place for each number of literals not met, from ``first[u]``: ``well`` is softplus(k s)
    there, ``gain`` how much less it is at the next, ``opens`` whether a definition holds that would be the
    next not to be met.

    Atom i meets the summed units ``sum_unit[sum_start[i]:sum_start[i + 1]]``; ``sum_weight`` is k·weight.
    ``bias`` is k·a.

    A flip of atom i may change the definitions ``user[use[i]:use[i + 1]]``. Definition d holds where one of
    ``source[ways[d]:ways[d + 1]]`` does: counted units, or -1 - number of summed ones, to whose inputs
    ``lift`` is added and from which, where the definition already holds, ``own`` is taken.
    """

    start: Ints
    unit: NDArray[np.int32]
    sign: NDArray[np.int8]
    width: Bytes
    runs: Ints
    run_end: Ints
    run_first: Ints
    run_depth: Ints
    first: Ints
    well: Floats
    gain: Floats
    opens: Bytes
    sum_start: Ints
    sum_unit: NDArray[np.int32]
    sum_weight: Floats
    bias: Floats
    use: Ints
    user: NDArray[np.int32]
    ways: Ints
    source: NDArray[np.int32]
    lift: Floats
    own: Floats


class _Scratch(NamedTuple):
    """What a flip would change: counts, inputs and definitions, and which of them, marked and listed."""

    moved: Bytes
    pushed: Floats
    shift: NDArray[np.int8]
    moved_mark: Bytes
    pushed_mark: Bytes
    due: Bytes
    moved_list: NDArray[np.int32]
    pushed_list: NDArray[np.int32]
    shift_list: NDArray[np.int32]
    sizes: Ints
    odds: Floats
    up: Floats
    down: Floats
    mass: Floats
    step: NDArray[np.int8]
    change: NDArray[np.int8]
    value: Bytes


@dataclass(frozen=True, eq=False)
class EnergyNetwork:
    """A machine made ready for chains on its free energy; made by :func:`energies_of`.

    Attributes
    ----------
    machine, confidence, temperature
        The machine as built, c and τ.
    signs, positives
        Literals of the counted units, shape (units, atoms of the machine), and how many of each are positive.
    sums, sum_bias
        k·weights, shape (units, atoms of the machine), and k·bias of the summed units.
    work
        Shape (atoms,): what an update of each atom takes, roughly; one counted unit is 1.
    wires
        What kernels read.
    """

    machine: Machine
    confidence: float
    temperature: float
    signs: Any
    positives: Bytes
    sums: Any
    sum_bias: Floats
    work: Floats
    wires: EnergyWires

    @property
    def atoms(self) -> int:
        """The number of rows of a state: the machine's declared atoms."""
        return len(self.machine.declared)

    def scratch(self) -> _Scratch:
        """Return scratch for kernels; large only where there are definitions."""
        definitions = len(self.machine.definitions)
        counted, summed = (len(self.positives), len(self.sum_bias)) if definitions else (0, 0)
        numbers = counted, summed, definitions
        found: list[NDArray[Any]] = [
            np.zeros((counted, LANES), np.uint8),
            np.zeros((summed, LANES)),
            np.zeros((definitions, LANES), np.int8),
            *(np.zeros(number, np.uint8) for number in numbers),
            *(np.zeros(number, np.int32) for number in numbers),
            np.zeros(3, np.int64),
            *(np.zeros(LANES) for _ in range(4)),
            *(np.zeros(LANES, kind) for kind in ("int8", "int8", "uint8")),
        ]
        return _Scratch(*found)


# --- from a machine ----------------------------------------------------------------------------------


def energies_of(machine: Machine, confidence: float = 5.0, temperature: float = 1.0) -> EnergyNetwork:
    """Return a machine made ready for chains on its free energy, with k = c/τ."""
    k = inverse_temperature(confidence, temperature)
    weights = machine.weights.copy()
    weights.sum_duplicates()
    weights.eliminate_zeros()
    with np.errstate(over="ignore"):
        largest = k * max(
            abs(weights).sum(axis=0).max(initial=0.0) + np.abs(machine.hidden_bias).max(initial=0.0),
            np.abs(machine.visible_bias).max(initial=0.0),
        )
    if not largest < 1e300:
        raise WeightError(
            f"expected weights and biases whose sums times c/τ are finite, got {largest:g}: "
            "divide them all by one number, or lower the confidence"
        )
    widths = np.diff(weights.indptr).astype(np.int64)
    owner = np.repeat(np.arange(machine.hidden), widths)
    size, least = np.zeros(machine.hidden), np.full(machine.hidden, np.inf)
    np.maximum.at(size, owner, np.abs(weights.data))
    np.minimum.at(least, owner, np.abs(weights.data))
    counted = (widths <= WIDE) & ((size == least) | (widths == 0))
    number = np.where(counted, np.cumsum(counted), np.cumsum(~counted)) - 1  # of a unit among its kind

    positives = np.bincount(owner[weights.data > 0], minlength=machine.hidden)
    which = np.flatnonzero(counted)
    first, kind, tables = _tables(k, machine, which, size[which], positives[which], widths[which])
    mine = counted[owner]
    start, unit, data, runs = _by_atom(
        weights.indices[mine], number[owner[mine]], weights.data[mine], kind, machine
    )
    width = widths[counted][unit]
    begin = np.concatenate([[0], runs[1]])[:-1]
    sum_start, sum_unit, sum_data, _ = _by_atom(
        weights.indices[~mine],
        number[owner[~mine]],
        weights.data[~mine],
        np.arange(int((~counted).sum())),
        machine,
    )
    wires = EnergyWires(
        start=start,
        unit=unit,
        sign=np.sign(data).astype(np.int8),
        width=width.astype(np.uint8),
        runs=runs[0],
        run_end=runs[1],
        run_first=first[unit[begin]],
        run_depth=np.maximum.reduceat(width, begin) if len(begin) else begin,
        first=first,
        **tables,
        sum_start=sum_start,
        sum_unit=sum_unit,
        sum_weight=k * sum_data,
        bias=k * np.asarray(machine.visible_bias, np.float64),
        **_definitions(k, weights, machine, counted, number),
    )
    rows = weights.T.tocsr()
    signs = rows[counted]
    signs.data = np.sign(signs.data).astype(np.int8)
    declared = len(machine.declared)
    return EnergyNetwork(
        machine,
        float(confidence),
        float(temperature),
        signs,
        positives[counted].astype(np.uint8),
        k * rows[~counted],
        k * machine.hidden_bias[~counted],
        4.0 + np.diff(start)[:declared] + 4.0 * np.diff(sum_start)[:declared],
        wires,
    )


def _tables(
    k: float,
    machine: Machine,
    which: NDArray[np.intp],
    size: Floats,
    positives: NDArray[np.intp],
    widths: Ints,
) -> tuple[Ints, Ints, dict[str, Any]]:
    """Return where the table of each counted unit begins, its number, and the tables, each there once.

    The input of a unit that lacks q literals is top - q·w. Tops are rounded to 46 bits of w, which makes
    those of one weight equal that w(ε - |T|) + w|T| leaves a little apart.
    """
    grain = np.ldexp(1.0, np.frexp(size)[1] - 47)
    top = np.rint((machine.hidden_bias[which] + size * positives) / grain) * grain
    lift = machine.unit_weights[which] if machine.definitions else np.zeros(len(which))
    keys = np.stack([size, top, lift])
    order = np.lexsort(keys)
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
    kind = np.empty(len(order), np.int64)
    kind[order] = np.cumsum(new) - 1
    lengths = np.ones(int(new.sum()), np.int64)
    np.maximum.at(lengths, kind, widths + 1)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    of = np.repeat(np.arange(len(lengths)), lengths)
    w, top, lift = keys[:, order[new]][:, of]
    s = top - w * (np.arange(begin[-1]) - begin[of])
    well = np.logaddexp(0.0, k * s)
    gain = well - np.append(well, 0.0)[1:]
    gain[begin[1:] - 1] = 0.0  # there is no next
    tables = {"well": well, "gain": gain, "opens": (s - w + lift > 0).astype(np.uint8)}
    return begin[kind], kind, tables


def _by_atom(
    atom: NDArray[Any], unit: NDArray[Any], data: Floats, kind: Ints, machine: Machine
) -> tuple[Ints, NDArray[np.int32], Floats, tuple[Ints, Ints]]:
    """Return entries by atom, those of a kind together: starts, units, weights, runs (of atoms, and ends)."""
    order = np.lexsort((unit, kind[unit], atom))
    atom, unit, data = atom[order], unit[order], data[order]
    visible = len(machine.atoms)
    start = np.searchsorted(atom, np.arange(visible + 1)).astype(np.int64)
    change = np.ones(len(atom) + 1, bool)
    change[1:-1] = (np.diff(atom) != 0) | (np.diff(kind[unit]) != 0)
    places = np.flatnonzero(change)
    lengths = np.diff(places)
    pieces = -(-lengths // _RUN)
    of = np.repeat(np.arange(len(lengths)), pieces)
    piece = np.arange(len(of)) - (np.cumsum(pieces) - pieces)[of]
    end = np.minimum(places[of] + (piece + 1) * _RUN, places[of + 1]).astype(np.int64)
    runs = np.searchsorted(end, start, side="right").astype(
        np.int64
    )  # ends up to an atom's start are others'
    return start, unit.astype(np.int32), data, (runs, end)


def _definitions(
    k: float, weights: Any, machine: Machine, counted: Bools, number: NDArray[np.intp]
) -> dict[str, Any]:
    """Return which definitions each atom serves, and the units of which one must be met, as wires have them.

    These are the units of its cubes that want the definitional atom true.
    """
    visible, declared = len(machine.atoms), len(machine.declared)
    number_of = len(machine.definitions)
    parts = machine.owner >= machine.formulae
    pairs = np.unique(np.stack([machine.owner[parts] - machine.formulae, machine.unit[parts]]), axis=1)
    place = np.repeat(np.arange(machine.hidden), np.diff(weights.indptr)) * visible + weights.indices
    by_place = np.argsort(place)
    wanted = pairs[1] * visible + declared + pairs[0]
    at = np.minimum(np.searchsorted(place[by_place], wanted), max(0, len(place) - 1))
    found = by_place[at] if len(place) else at
    there = (
        (place[found] == wanted) & (weights.data[found] > 0) if len(place) else np.zeros(len(wanted), bool)
    )
    (definition, unit), own = pairs[:, there], k * weights.data[found[there]]
    ways = np.searchsorted(definition, np.arange(number_of + 1)).astype(np.int64)
    source = np.where(counted[unit], number[unit], -1 - number[unit]).astype(np.int32)
    # Who uses an atom: the definitions with a source that mentions it, themselves left out.
    lengths = np.diff(weights.indptr)[unit]
    of = np.repeat(np.arange(len(unit)), lengths)
    inside = np.arange(len(of)) - (np.cumsum(lengths) - lengths)[of]
    atom = weights.indices[weights.indptr[unit][of] + inside]
    uses = np.unique(np.stack([atom, definition[of]]), axis=1)
    uses = uses[:, uses[0] != declared + uses[1]]
    if (uses[0] > declared + uses[1]).any():
        raise ValueError(
            "expected definitions that mention earlier ones only; give the machine's in that order"
        )
    use = np.searchsorted(uses[0], np.arange(visible + 1)).astype(np.int64)
    lift = k * machine.unit_weights[unit]
    served = {"use": use, "user": uses[1].astype(np.int32)}
    return {**served, "ways": ways, "source": source, "lift": lift, "own": own}


# --- chains ------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class EnergyLanes:
    """The states of 64 chains, changed in place as they advance.

    Attributes
    ----------
    visible
        Shape (atoms of the machine, 64), 0 or 1: definitional atoms come last.
    lacks, inputs
        Shape (counted units, 64), how many literals are not met; (summed units, 64), k·s.
    log_weight
        Shape (64,): -F(x).
    sweep
        How many sweeps have been done: the position in the random streams.
    seed, lane
        The streams: chain l of these has the number ``lane + l``.
    """

    network: EnergyNetwork
    visible: Bytes
    lacks: Bytes
    inputs: Floats
    log_weight: Floats
    seed: int
    lane: int
    sweep: int = 0

    @property
    def x(self) -> Bytes:
        """The states over the declared atoms, shape (atoms, 64)."""
        return self.visible[: self.network.atoms]

    def _refresh(self) -> None:
        """Sum inputs and log weights anew."""
        network, wires = self.network, self.network.wires
        states = self.visible.astype(np.float64)
        self.inputs[:] = network.sums @ states + network.sum_bias[:, None]
        total = wires.bias @ states
        for part in slices(len(self.lacks), _ROWS):
            total += wires.well[wires.first[part, None] + self.lacks[part]].sum(axis=0)
        for part in slices(len(self.inputs), _ROWS):
            total += np.logaddexp(0.0, self.inputs[part]).sum(axis=0)
        self.log_weight[:] = total


def start_energy(
    network: EnergyNetwork, x: ArrayLike, *, seed: int, lane: int = 0, sweep: int = 0
) -> EnergyLanes:
    """Return chains in the given states of the declared atoms, shape (atoms, 64)."""
    states = np.asarray(x) != 0
    if states.shape != (network.atoms, LANES):
        raise ValueError(f"expected states of shape ({network.atoms}, {LANES}), got shape {states.shape}")
    key_of(seed)
    visible = np.ascontiguousarray(network.machine.visible(states.T).T.astype(np.uint8))
    lacks = (network.positives[:, None] - network.signs @ visible.astype(np.int8)).astype(np.uint8)
    inputs = np.zeros((len(network.sum_bias), LANES))
    lanes = EnergyLanes(network, visible, lacks, inputs, np.zeros(LANES), seed, lane, sweep)
    lanes._refresh()
    return lanes


def advance_energy(
    lanes: EnergyLanes,
    betas: ArrayLike,
    *,
    rule: str = "heat bath",
    order: ArrayLike | None = None,
    every: int | None = None,
) -> int:
    """Do a sweep at every β, and return how many were done.

    Parameters
    ----------
    betas
        Multiply the log weight; shape (sweeps,), or (sweeps, 64) where lanes differ.
    rule
        ``heat bath`` or ``metropolis``.
    order
        The declared atoms in the order in which they are updated; by default all.
    every
        The most sweeps of a compiled call: by default as many as take about CALL seconds.
    """
    network, code = lanes.network, rule_of(rule)
    values = np.atleast_1d(np.asarray(betas, np.float64))
    values = np.ascontiguousarray(np.broadcast_to(values.T, (LANES, len(values))).T)
    atoms = np.arange(network.atoms, dtype=np.int32) if order is None else np.asarray(order, np.int32)
    if ((atoms < 0) | (atoms >= network.atoms)).any():
        raise ValueError(f"expected an order of declared atoms, from 0 to {network.atoms - 1}, got {order!r}")
    scratch = network.scratch()
    work = float(network.work[atoms].sum())

    def call(done: int, size: int, pieces: int) -> int:
        if lanes.sweep % REFRESH == 0:
            lanes._refresh()
        some = values[done : done + min(size, REFRESH - lanes.sweep % REFRESH)]
        for piece in np.array_split(atoms, min(pieces, max(1, len(atoms)))):
            _loops().sweeps(lanes, piece, some, scratch, code)
        lanes.sweep += len(some)
        return len(some)

    return in_calls(call, len(values), work, first=FIRST, every=every)


def _loops() -> Any:
    """Return the module whose loops to run: compiled ones where they are ready."""
    return loaded("energy_kernels" if runs_compiled("energy") else "energy_plain")
