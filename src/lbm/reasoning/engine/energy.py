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

# Kernels are typed by numba, by what they are called with; and l is the number of a lane.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, unreachable"
# ruff: noqa: E741

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numba import float64, int8, int64, types, uint8, uint64
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

from lbm.errors import WeightError
from lbm.machine.rbm import Machine
from lbm.reasoning.engine.compiled import carray, compiled, inlined, stack
from lbm.reasoning.engine.kernels import fill
from lbm.reasoning.engine.lanes import CALL, RULES
from lbm.reasoning.engine.network import LANES, Bytes, Floats
from lbm.reasoning.engine.streams import key_of

WIDE: Final = 16
"""Weights of a unit up to which it may be counted; past that a sum is faster."""

REFRESH: Final = 256
"""Sweeps after which inputs and log weights are summed anew: at its multiples, wherever calls end."""

_RUN: Final = 127  # units that are counted together: numbers up to that fit into a signed byte
_STEEP: Final = 300.0  # a weight so large that its exponential is no factor any more
_FULL: Final = 600.0  # the log of a product that is still far from overflow
_TIE: Final = 1e-15  # of the wells that change, a sum of them that is rounding
_FIRST: Final = 20_000  # work of the first call, before speed is known; one unit that meets an atom is 1

_SCALE = 2.0**-31
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # of ln 2; the first is short
_ROUND = 6755399441055744.0  # 1.5 · 2^52: a float of this size has no digits after the point
_LAST = 700.0  # exp(-700) is still a normal float
_ONE = 0x3FF0000000000000  # the bits of 1.0
_FRACTION = 0x000FFFFFFFFFFFFF
_SQRT2 = 1.4142135623730951


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

    start: NDArray[np.int64]
    unit: NDArray[np.int32]
    sign: NDArray[np.int8]
    width: Bytes
    runs: NDArray[np.int64]
    run_end: NDArray[np.int64]
    run_first: NDArray[np.int64]
    run_depth: NDArray[np.int64]
    first: NDArray[np.int64]
    well: Floats
    gain: Floats
    opens: Bytes
    sum_start: NDArray[np.int64]
    sum_unit: NDArray[np.int32]
    sum_weight: Floats
    bias: Floats
    use: NDArray[np.int64]
    user: NDArray[np.int32]
    ways: NDArray[np.int64]
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
    sizes: NDArray[np.int64]
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
        return _Scratch(
            np.zeros((counted, LANES), np.uint8),
            np.zeros((summed, LANES)),
            np.zeros((definitions, LANES), np.int8),
            np.zeros(counted, np.uint8),
            np.zeros(summed, np.uint8),
            np.zeros(definitions, np.uint8),
            np.zeros(counted, np.int32),
            np.zeros(summed, np.int32),
            np.zeros(definitions, np.int32),
            np.zeros(3, np.int64),
            np.zeros(LANES),
            np.zeros(LANES),
            np.zeros(LANES),
            np.zeros(LANES),
            np.zeros(LANES, np.int8),
            np.zeros(LANES, np.int8),
            np.zeros(LANES, np.uint8),
        )


# --- from a machine ----------------------------------------------------------------------------------


def energies_of(machine: Machine, confidence: float = 5.0, temperature: float = 1.0) -> EnergyNetwork:
    """Return a machine made ready for chains on its free energy, with k = c/τ."""
    for name, value in (("confidence", confidence), ("temperature", temperature)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value}")
    k = confidence / temperature
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
    use, user, ways, source, lift, own = _definitions(k, weights, machine, counted, number)
    wires = EnergyWires(
        start,
        unit,
        np.sign(data).astype(np.int8),
        width.astype(np.uint8),
        runs[0],
        runs[1],
        first[unit[begin]],
        np.maximum.reduceat(width, begin) if len(begin) else begin,
        first,
        *tables,
        sum_start,
        sum_unit,
        k * sum_data,
        k * np.asarray(machine.visible_bias, np.float64),
        use,
        user,
        ways,
        source,
        lift,
        own,
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
    widths: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[Floats, Floats, Bytes]]:
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
    return begin[kind], kind, (well, gain, (s - w + lift > 0).astype(np.uint8))


def _by_atom(
    atom: NDArray[Any], unit: NDArray[Any], data: Floats, kind: NDArray[np.int64], machine: Machine
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats, tuple[NDArray[np.int64], NDArray[np.int64]]]:
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
    k: float, weights: Any, machine: Machine, counted: NDArray[np.bool_], number: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], Floats, Floats]:
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
    return use, uses[1].astype(np.int32), ways, source, k * machine.unit_weights[unit], own


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
        step = 1 << 16
        for begin in range(0, len(self.lacks), step):
            part = slice(begin, begin + step)
            total += wires.well[wires.first[part, None] + self.lacks[part]].sum(axis=0)
        for begin in range(0, len(self.inputs), step):
            total += np.logaddexp(0.0, self.inputs[begin : begin + step]).sum(axis=0)
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
    after: Callable[[EnergyLanes], object] | None = None,
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
    after
        Called between compiled calls, which are short; when it returns False, no further sweep is begun.
    every
        The most sweeps of a compiled call: by default as many as take about CALL seconds.
    """
    if rule not in RULES:
        raise ValueError(f"expected the rule 'heat bath' or 'metropolis', got {rule!r}")
    network = lanes.network
    values = np.atleast_1d(np.asarray(betas, np.float64))
    values = np.ascontiguousarray(np.broadcast_to(values.T, (LANES, len(values))).T)
    atoms = np.arange(network.atoms, dtype=np.int32) if order is None else np.asarray(order, np.int32)
    if ((atoms < 0) | (atoms >= network.atoms)).any():
        raise ValueError(f"expected an order of declared atoms, from 0 to {network.atoms - 1}, got {order!r}")
    scratch = network.scratch()
    key = key_of(lanes.seed)
    work = np.cumsum(network.work[atoms])
    whole = float(work[-1]) if len(atoms) else 1.0
    allowed = float(_FIRST)
    done = 0
    while done < len(values):
        if lanes.sweep % REFRESH == 0:
            lanes._refresh()
        size = max(1, int(allowed / whole)) if every is None else max(1, every)
        some = values[done : done + min(size, REFRESH - lanes.sweep % REFRESH)]
        pieces = [atoms]
        if every is None and whole > allowed:
            pieces = np.split(atoms, np.unique(np.searchsorted(work, np.arange(allowed, whole, allowed))))
        began = time.perf_counter()
        for piece in pieces:
            sweeps(
                network.wires,
                network.atoms,
                lanes.visible,
                lanes.lacks,
                lanes.inputs,
                lanes.log_weight,
                piece,
                some,
                scratch,
                *key,
                lanes.sweep,
                lanes.lane,
                RULES[rule],
            )
        took = max(time.perf_counter() - began, 1e-9)
        allowed = min(max(len(some) * whole / took * CALL, 1.0), 4.0 * allowed)
        lanes.sweep += len(some)
        done += len(some)
        if after is not None and after(lanes) is False:
            break
    return done


# --- the compiled inner loops ------------------------------------------------------------------------


@intrinsic
def as_float(context: Any, bits: Any) -> Any:  # noqa: ARG001 - numba's signature
    """Return the float that has these 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic
def as_bits(context: Any, value: Any) -> Any:  # noqa: ARG001 - numba's signature
    """Return the 64 bits of a float."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@inlined
def decay(a):
    """Return exp(-a) for a from 0 up, and exp(-700) past 700, to 4e-16 of itself.

    exp(-a) = 2^-n · exp(r) with n whole and |r| <= ln 2 / 2; exp(r) by the polynomial of degree 10 that meets
    it at the eleven Chebyshev points.
    """
    a = min(a, _LAST)
    f = a * _LOG2E + _ROUND  # n, in the lowest bits of f
    n = f - _ROUND
    r = n * _LN2_LOW - (a - n * _LN2_HIGH)
    e = 2.7626357241447223e-07 * r + 2.764018079620985e-06
    e = e * r + 2.4801504346997686e-05
    e = e * r + 0.00019841170270440067
    e = e * r + 0.0013888888932488599
    e = e * r + 0.008333333385667782
    e = e * r + 0.04166666666657314
    e = e * r + 0.16666666666554406
    e = e * r + 0.5000000000000006
    e = e * r + 1.0000000000000067
    e = e * r + 1.0
    return e * as_float(int64(_ONE) - (as_bits(f) << int64(52)))


@inlined
def log_of_one_and(v):
    """Return log(1 + v) for v from 0 up, to 4e-16 of itself.

    1 + v = 2^n · m with m between 1/√2 and √2, log m = 2 artanh((m - 1)/(m + 1)) by its series; what rounding
    took from 1 + v is given back.
    """
    y = 1.0 + v
    lost = 1.0 - (y - v) if v > 1.0 else v - (y - 1.0)
    bits: Any = as_bits(y)
    m = as_float((bits & int64(_FRACTION)) | int64(_ONE))
    n = float64((bits >> int64(52)) - int64(1023))
    high = m > _SQRT2
    m = 0.5 * m if high else m
    n = n + 1.0 if high else n
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    e = t * (1.0 / 21.0) + 1.0 / 19.0
    e = e * t + 1.0 / 17.0
    e = e * t + 1.0 / 15.0
    e = e * t + 1.0 / 13.0
    e = e * t + 1.0 / 11.0
    e = e * t + 1.0 / 9.0
    e = e * t + 1.0 / 7.0
    e = e * t + 1.0 / 5.0
    e = e * t + 1.0 / 3.0
    e = 2.0 * s + 2.0 * s * (t * e)
    return n * _LN2_HIGH + (e + (n * _LN2_LOW + lost / y))


@compiled
def fold(odds, up, down):
    """Add log(1 + up) - log(1 + down) to the odds, and begin new products: 1 + up and 1 + down are 1."""
    for l in range(64):
        odds[l] += log_of_one_and(up[l]) - log_of_one_and(down[l])
        up[l] = 0.0
        down[l] = 0.0


@inlined
def weigh_counts(i, wires, lacks, odds, true, false, others, counts):
    """Add to the odds of atom i what the counted units give."""
    begin = wires.start[i]
    for k in range(wires.runs[i], wires.runs[i + 1]):
        end, place, depth = wires.run_end[k], wires.run_first[k], wires.run_depth[k]
        for m in range(depth):
            for l in range(64):
                counts[m, l] = uint8(0)
        for j in range(begin, end):
            u = uint64(wires.unit[j])
            width = wires.width[j]
            if wires.sign[j] > 0:
                for l in range(64):
                    others[l] = uint8(lacks[u, l] - false[l])
                for m in range(width):
                    for l in range(64):
                        counts[m, l] = uint8(counts[m, l] + uint8(others[l] == uint8(m)))
            else:
                for l in range(64):
                    others[l] = uint8(lacks[u, l] - true[l])
                for m in range(width):
                    for l in range(64):
                        counts[m, l] = uint8(counts[m, l] - uint8(others[l] == uint8(m)))
        begin = end
        for m in range(depth):
            g = wires.gain[place + m]
            for l in range(64):
                odds[l] += g * float64(int8(counts[m, l]))


@compiled
def weigh_sums(i, wires, visible, inputs, odds, up, down):
    """Add to the odds of atom i what the summed units give.

    softplus(z + w) - softplus(z) is log((1 + e^z e^w) / (1 + e^z)), or w + log((1 + e^-z e^-w) / (1 + e^-z)):
    one exponential, of -|z|, is enough. Numerators and denominators are multiplied, less 1 each so that small
    ones are not lost; their logs are taken once in a while.
    """
    full = 0.0
    for j in range(wires.sum_start[i], wires.sum_start[i + 1]):
        u = uint64(wires.sum_unit[j])
        w = wires.sum_weight[j]
        size = abs(w)
        more = 1.0 + (size if size < _STEEP else 0.0)
        full += more
        if full > _FULL:
            fold(odds, up, down)
            full = more
        if size < _STEEP:
            small = decay(size)
            right = small if w > 0.0 else 1.0 / small
            left = 1.0 / right
            for l in range(64):
                z = inputs[u, l] - (w if visible[i, l] else 0.0)
                e = decay(abs(z))
                odds[l] += w if z >= 0.0 else 0.0
                up[l] += (1.0 + up[l]) * (e * (right if z >= 0.0 else left))
                down[l] += (1.0 + down[l]) * e
        else:  # one of z and z + w is so far from 0 that its softplus is straight
            for l in range(64):
                z = inputs[u, l] - (w if visible[i, l] else 0.0)
                y = z + w
                near = abs(y) < abs(z)
                e = decay(abs(y) if near else abs(z))
                odds[l] += max(y, 0.0) - max(z, 0.0)
                up[l] += (1.0 + up[l]) * (e if near else 0.0)
                down[l] += (1.0 + down[l]) * (0.0 if near else e)
    fold(odds, up, down)


@compiled
def spread(a, change, wires, scratch):
    """Note what the units of atom a gain where it moves by ``change``, and which definitions are due.

    Returns the greatest number of these, or -1.
    """
    sizes = scratch.sizes
    for j in range(wires.start[a], wires.start[a + 1]):
        u = uint64(wires.unit[j])
        if scratch.moved_mark[u] == 0:
            scratch.moved_mark[u] = 1
            scratch.moved_list[sizes[0]] = u
            sizes[0] += 1
            for l in range(64):
                scratch.moved[u, l] = 0
        for l in range(64):
            scratch.moved[u, l] = uint8(scratch.moved[u, l] - wires.sign[j] * change[l])
    for j in range(wires.sum_start[a], wires.sum_start[a + 1]):
        u = uint64(wires.sum_unit[j])
        if scratch.pushed_mark[u] == 0:
            scratch.pushed_mark[u] = 1
            scratch.pushed_list[sizes[1]] = u
            sizes[1] += 1
            for l in range(64):
                scratch.pushed[u, l] = 0.0
        for l in range(64):
            scratch.pushed[u, l] += wires.sum_weight[j] * change[l]
    for j in range(wires.use[a], wires.use[a + 1]):
        scratch.due[wires.user[j]] = 1
    return int64(wires.user[wires.use[a + 1] - 1]) if wires.use[a] < wires.use[a + 1] else int64(-1)


@compiled
def weigh_far(i, declared, wires, visible, lacks, inputs, scratch):
    """Add to the odds in scratch what all units give an atom in definitions; note what its flip changes."""
    odds, up, down = scratch.odds, scratch.up, scratch.down
    step, change, value, sizes = scratch.step, scratch.change, scratch.value, scratch.sizes
    mass = scratch.mass
    sizes[:] = 0
    for l in range(64):
        mass[l] = 0.0
        step[l] = int8(1 - 2 * visible[i, l])
    last = spread(int64(i), step, wires, scratch)
    d = int64(wires.user[wires.use[i]])
    while d <= last:
        if scratch.due[d] == 0:
            d += 1
            continue
        scratch.due[d] = 0
        t = int64(declared + d)
        for l in range(64):
            value[l] = uint8(0)
        for q in range(wires.ways[d], wires.ways[d + 1]):
            if wires.source[q] >= 0:
                u = uint64(wires.source[q])
                place = wires.first[u]
                marked = scratch.moved_mark[u]
                for l in range(64):
                    more = scratch.moved[u, l] if marked else uint8(0)
                    value[l] |= wires.opens[place + uint8(lacks[u, l] + more - uint8(1) + visible[t, l])]
            else:
                u = uint64(-1 - wires.source[q])
                lift, own = wires.lift[q], wires.own[q]
                marked = scratch.pushed_mark[u]
                for l in range(64):
                    more = scratch.pushed[u, l] if marked else 0.0
                    value[l] |= uint8(inputs[u, l] + more - (own if visible[t, l] else 0.0) + lift > 0.0)
        some = uint8(0)
        for l in range(64):
            change[l] = int8(value[l] - visible[t, l])
            some |= uint8(change[l])
        if some:
            scratch.shift_list[sizes[2]] = d
            sizes[2] += 1
            for l in range(64):
                scratch.shift[d, l] = change[l]
                odds[l] += wires.bias[t] * change[l]
            last = max(last, spread(t, change, wires, scratch))
        d += 1
    for k in range(sizes[0]):
        u = uint64(scratch.moved_list[k])
        place = wires.first[u]
        for l in range(64):
            now = lacks[u, l]
            rise = wires.well[place + uint8(now + scratch.moved[u, l])] - wires.well[place + now]
            odds[l] += rise
            mass[l] += abs(rise)
    for k in range(sizes[1]):
        if k % 512 == 511:  # 2^512 is still far from overflow
            fold(odds, up, down)
        u = uint64(scratch.pushed_list[k])
        for l in range(64):
            z = inputs[u, l]
            y = z + scratch.pushed[u, l]
            odds[l] += max(y, 0.0) - max(z, 0.0)
            up[l] += (1.0 + up[l]) * decay(abs(y))
            down[l] += (1.0 + down[l]) * decay(abs(z))
    fold(odds, up, down)
    for l in range(64):
        # What rounding leaves of wells that cancel is a tie, and Metropolis's rule asks for ties.
        odds[l] = 0.0 if abs(odds[l]) < _TIE * mass[l] else odds[l] * float64(step[l])


@compiled
def move_far(declared, visible, lacks, inputs, scratch):
    """Make the changes that were noted in the lanes that flip, and forget them."""
    flips = scratch.value
    for k in range(scratch.sizes[0]):
        u = uint64(scratch.moved_list[k])
        scratch.moved_mark[u] = 0
        for l in range(64):
            lacks[u, l] = uint8(lacks[u, l] + (scratch.moved[u, l] if flips[l] else uint8(0)))
    for k in range(scratch.sizes[1]):
        u = uint64(scratch.pushed_list[k])
        scratch.pushed_mark[u] = 0
        for l in range(64):
            inputs[u, l] += scratch.pushed[u, l] if flips[l] else 0.0
    for k in range(scratch.sizes[2]):
        d = uint64(scratch.shift_list[k])
        for l in range(64):
            more = scratch.shift[d, l] if flips[l] else int8(0)
            visible[declared + d, l] = uint8(visible[declared + d, l] + more)


@compiled
def sweeps(
    wires, declared, visible, lacks, inputs, total, order, betas, scratch, key0, key1, sweep, lane, rule
):
    """Do one sweep for every β: each atom of ``order`` in turn takes a new value, given all the others.

    What lies on the stack is handed to inlined functions only: nobody else points there then, as far as the
    compiler can see, and loops over lanes need no checks for overlap.

    Parameters
    ----------
    wires, declared
        A network's arrays, and the number of its declared atoms.
    visible, lacks, inputs, total
        Shapes (atoms, 64), (counted units, 64), (summed units, 64) and (64,): states, literals not met,
        k·s and log weights. They are changed.
    betas
        Shape (sweeps, 64).
    key0, key1, sweep, lane
        The seed, the number of the first sweep, and that of the first chain.
    """
    odds = carray(stack(betas, 64), (64,))
    beta = carray(stack(betas, 64), (64,))
    true = carray(stack(visible, 64), (64,))
    false = carray(stack(visible, 64), (64,))
    others = carray(stack(visible, 64), (64,))
    change = carray(stack(visible, 64), (64,))
    counts = carray(stack(visible, 1024), (16, 64))
    words = carray(stack(order, 256), (4, 64)).view(np.uint32)
    for s in range(len(betas)):
        quad = int64(-1)
        for l in range(64):
            beta[l] = betas[s, l]
        for o in range(len(order)):
            i = uint64(order[o])
            if int64(i >> uint64(2)) != quad:
                quad = int64(i >> uint64(2))
                fill(words, key0, key1, quad, sweep + s, lane, 0)
            r = i & uint64(3)
            bias = wires.bias[i]
            for l in range(64):
                odds[l] = bias
                true[l] = visible[i, l]
                false[l] = uint8(1) - visible[i, l]
            near = wires.use[i] == wires.use[i + 1]
            summed = wires.sum_start[i] < wires.sum_start[i + 1]
            if summed or not near:
                for l in range(64):
                    scratch.odds[l] = 0.0
                if near:
                    weigh_sums(i, wires, visible, inputs, scratch.odds, scratch.up, scratch.down)
                else:
                    weigh_far(i, declared, wires, visible, lacks, inputs, scratch)
                for l in range(64):
                    odds[l] += scratch.odds[l]
            if near:
                weigh_counts(i, wires, lacks, odds, true, false, others, counts)
            for l in range(64):
                z = beta[l] * odds[l]
                if rule == 1:
                    z = -z if true[l] else z
                e = decay(abs(z))
                if rule == 1:
                    p = 0.5 if z == 0.0 else (e if z < 0.0 else 1.0)
                else:
                    p = (1.0 if z > 0.0 else e) / (1.0 + e)
                change[l] = uint8((words[r, l] + 0.5) * _SCALE < p)
            if rule == 1:
                for l in range(64):
                    change[l] = change[l] ^ true[l]
            some = uint8(0)
            for l in range(64):
                visible[i, l] = change[l]
                change[l] = uint8(change[l] - true[l])  # 0, 1, or -1 as 255
                some |= change[l]
            if not near:
                for l in range(64):
                    scratch.value[l] = change[l]
                move_far(declared, visible, lacks, inputs, scratch)
            if some == 0:
                continue
            for l in range(64):
                total[l] += odds[l] * int8(change[l])
            if not near:
                continue
            for j in range(wires.start[i], wires.start[i + 1]):
                u = uint64(wires.unit[j])
                if wires.sign[j] > 0:
                    for l in range(64):
                        lacks[u, l] = uint8(lacks[u, l] - change[l])
                else:
                    for l in range(64):
                        lacks[u, l] = uint8(lacks[u, l] + change[l])
            for j in range(wires.sum_start[i], wires.sum_start[i + 1]):
                u = uint64(wires.sum_unit[j])
                w = wires.sum_weight[j]
                for l in range(64):
                    inputs[u, l] += w * int8(change[l])
