"""What the compiled loops of chains on free energies do, in NumPy: the same bits from the same seed.

See energy_kernels.py, whose names and order of operations these are. One atom after another is updated, in 64
lanes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Bytes, Floats
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.plain import LN2_HIGH, LN2_LOW, LOG2E, METROPOLIS, SCALE, fill
from lbm.reasoning.engine.streams import key_of

if TYPE_CHECKING:
    from lbm.reasoning.engine.energy import EnergyLanes

STEEP: Final = 300.0
"""A weight so large that its exponential is no factor any more."""

FULL: Final = 600.0
"""The log of a product that is still far from overflow."""

TIE: Final = 1e-15
"""Of the wells that change, a sum of them that is rounding."""

ROUND: Final = 6755399441055744.0
"""1.5 · 2^52: a float of this size has no digits after the point."""

LAST: Final = 700.0
"""exp(-700) is still a normal float."""

SQRT2: Final = 1.4142135623730951
ONE, FRACTION = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF  # the bits of 1.0, and of any float after the point
_ONE, _FRACTION = np.int64(ONE), np.int64(FRACTION)
_EXP: Final = (
    2.764018079620985e-06,
    2.4801504346997686e-05,
    0.00019841170270440067,
    0.0013888888932488599,
    0.008333333385667782,
    0.04166666666657314,
    0.16666666666554406,
    0.5000000000000006,
    1.0000000000000067,
    1.0,
)


def decay(a: Floats) -> Floats:
    """Return exp(-a) for a from 0 up, and exp(-700) past 700."""
    a = np.minimum(a, LAST)
    f = a * LOG2E + ROUND
    n = f - ROUND
    r = n * LN2_LOW - (a - n * LN2_HIGH)
    e = 2.7626357241447223e-07 * r + _EXP[0]
    for term in _EXP[1:]:
        e = e * r + term
    return np.asarray(e * (_ONE - (f.view(np.int64) << np.int64(52))).view(np.float64))


def log_of_one_and(v: Floats) -> Floats:
    """Return log(1 + v) for v from 0 up."""
    y = 1.0 + v
    lost = np.where(v > 1.0, 1.0 - (y - v), v - (y - 1.0))
    bits = y.view(np.int64)
    m = ((bits & _FRACTION) | _ONE).view(np.float64)
    n = ((bits >> np.int64(52)) - np.int64(1023)).astype(np.float64)
    high = m > SQRT2
    m, n = np.where(high, 0.5 * m, m), np.where(high, n + 1.0, n)
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    e = t * (1.0 / 21.0) + 1.0 / 19.0
    for k in range(17, 1, -2):
        e = e * t + 1.0 / k
    e = 2.0 * s + 2.0 * s * (t * e)
    return np.asarray(n * LN2_HIGH + (e + (n * LN2_LOW + lost / y)))


class _EnergyAtoms:
    """The atoms of a network in some states; see the kernels for what each step does."""

    def __init__(self, lanes: EnergyLanes) -> None:
        self.wires, self.declared = lanes.network.wires, lanes.network.atoms
        self.visible, self.lacks, self.inputs = lanes.visible, lanes.lacks, lanes.inputs
        self.up, self.down = np.zeros(LANES), np.zeros(LANES)

    def fold(self, odds: Floats) -> None:
        """Add log(1 + up) - log(1 + down) to the odds, and begin new products."""
        odds += log_of_one_and(self.up) - log_of_one_and(self.down)
        self.up, self.down = np.zeros(LANES), np.zeros(LANES)

    def weigh_counts(self, i: int, odds: Floats) -> None:
        """Add to the odds of atom i what the counted units give."""
        wires = self.wires
        true = self.visible[i]
        false = np.uint8(1) - true
        begin = int(wires.start[i])
        for k in range(wires.runs[i], wires.runs[i + 1]):
            end, place = int(wires.run_end[k]), int(wires.run_first[k])
            part = slice(begin, end)
            wanted = wires.sign[part, None] > 0
            others = self.lacks[wires.unit[part]] - np.where(wanted, false, true)
            width = wires.width[part, None]
            for m in range(wires.run_depth[k]):
                met = (others == m) & (m < width)
                counts = np.where(wanted, met, -met.astype(np.int8)).sum(axis=0, dtype=np.int64)
                odds += wires.gain[place + m] * counts.astype(np.float64)
            begin = end

    def weigh_sums(self, i: int, odds: Floats) -> None:
        """Add to the odds of atom i what the summed units give."""
        wires = self.wires
        true = self.visible[i] != 0
        full = 0.0
        for j in range(wires.sum_start[i], wires.sum_start[i + 1]):
            w = wires.sum_weight[j]
            size = abs(w)
            more = 1.0 + (size if size < STEEP else 0.0)
            full += more
            if full > FULL:
                self.fold(odds)
                full = more
            z = self.inputs[wires.sum_unit[j]] - np.where(true, w, 0.0)
            if size < STEEP:
                small = decay(np.array([size]))[0]
                right = small if w > 0.0 else 1.0 / small
                left = 1.0 / right
                e = decay(np.abs(z))
                odds += np.where(z >= 0.0, w, 0.0)
                self.up += (1.0 + self.up) * (e * np.where(z >= 0.0, right, left))
                self.down += (1.0 + self.down) * e
            else:
                y = z + w
                near = np.abs(y) < np.abs(z)
                e = decay(np.where(near, np.abs(y), np.abs(z)))
                odds += np.maximum(y, 0.0) - np.maximum(z, 0.0)
                self.up += (1.0 + self.up) * np.where(near, e, 0.0)
                self.down += (1.0 + self.down) * np.where(near, 0.0, e)
        self.fold(odds)

    def spread(self, a: int, change: NDArray[np.int8]) -> int:
        """Note what the units of atom a gain where it moves, and which definitions are due."""
        wires = self.wires
        for j in range(wires.start[a], wires.start[a + 1]):
            moved = self.moved.setdefault(int(wires.unit[j]), np.zeros(LANES, np.uint8))
            moved -= (wires.sign[j] * change).view(np.uint8)
        for j in range(wires.sum_start[a], wires.sum_start[a + 1]):
            pushed = self.pushed.setdefault(int(wires.sum_unit[j]), np.zeros(LANES))
            pushed += wires.sum_weight[j] * change
        users = wires.user[wires.use[a] : wires.use[a + 1]].tolist()
        self.due.update(users)
        return users[-1] if users else -1

    def weigh_far(self, i: int, odds: Floats) -> Floats:
        """Return the odds of an atom in definitions, with what all units give; note what its flip changes."""
        wires, visible = self.wires, self.visible
        self.moved: dict[int, Bytes] = {}
        self.pushed: dict[int, Floats] = {}
        self.shift: dict[int, NDArray[np.int8]] = {}
        self.due: set[int] = set()
        mass = np.zeros(LANES)
        step = (np.uint8(1) - np.uint8(2) * visible[i]).view(np.int8)
        last = self.spread(i, step)
        d = int(wires.user[wires.use[i]])
        while d <= last:
            if d in self.due:
                self.due.discard(d)
                t = self.declared + d
                change = (self._value(d, t) - visible[t]).view(np.int8)
                if change.any():
                    self.shift[d] = change
                    odds += wires.bias[t] * change
                    last = max(last, self.spread(t, change))
            d += 1
        for u, moved in self.moved.items():
            place, now = int(wires.first[u]), self.lacks[u]
            rise = wires.well[place + (now + moved)] - wires.well[place + now.astype(np.int64)]
            odds += rise
            mass += np.abs(rise)
        for k, (u, pushed) in enumerate(self.pushed.items()):
            if k % 512 == 511:
                self.fold(odds)
            z = self.inputs[u]
            y = z + pushed
            odds += np.maximum(y, 0.0) - np.maximum(z, 0.0)
            self.up += (1.0 + self.up) * decay(np.abs(y))
            self.down += (1.0 + self.down) * decay(np.abs(z))
        self.fold(odds)
        return np.where(np.abs(odds) < TIE * mass, 0.0, odds * step.astype(np.float64))

    def _value(self, d: int, t: int) -> Bytes:
        """Return where definition d, atom t, holds now."""
        wires = self.wires
        value = np.zeros(LANES, np.uint8)
        own_value = self.visible[t]
        for q in range(wires.ways[d], wires.ways[d + 1]):
            u = int(wires.source[q])
            if u >= 0:
                more = self.moved.get(u, np.uint8(0))
                at = self.lacks[u] + more - np.uint8(1) + own_value
                value |= wires.opens[int(wires.first[u]) + at.astype(np.int64)]
            else:
                pushed = self.pushed.get(-1 - u, 0.0)
                own = np.where(own_value != 0, wires.own[q], 0.0)
                value |= (self.inputs[-1 - u] + pushed - own + wires.lift[q] > 0.0).view(np.uint8)
        return value

    def move_far(self, flips: Bools) -> None:
        """Make the changes that were noted in the lanes that flip."""
        for u, moved in self.moved.items():
            self.lacks[u] += np.where(flips, moved, np.uint8(0))
        for u, pushed in self.pushed.items():
            self.inputs[u] += np.where(flips, pushed, 0.0)
        for d, shift in self.shift.items():
            self.visible[self.declared + d] += np.where(flips, shift, np.int8(0)).view(np.uint8)

    def move_near(self, i: int, change: Bytes) -> None:
        """Bring counts and inputs of the units of an atom up to date."""
        wires = self.wires
        part = slice(wires.start[i], wires.start[i + 1])
        self.lacks[wires.unit[part]] -= np.where(wires.sign[part, None] > 0, change, np.uint8(0) - change)
        for j in range(wires.sum_start[i], wires.sum_start[i + 1]):
            self.inputs[wires.sum_unit[j]] += wires.sum_weight[j] * change.view(np.int8)


def sweeps(lanes: EnergyLanes, order: NDArray[np.int32], betas: Floats, scratch: Any, rule: int) -> None:
    """Do one sweep for every β; see the kernel. ``scratch`` is not needed."""
    del scratch
    atoms, wires, visible, total = _EnergyAtoms(lanes), lanes.network.wires, lanes.visible, lanes.log_weight
    quads, where = np.unique(order >> 2, return_inverse=True)
    place = 4 * where + (order & 3)
    key = key_of(lanes.seed)
    for s, beta in enumerate(betas):
        words = fill(*key, quads.astype(np.int64), np.array([lanes.sweep + s]), lanes.lane, 0)[0]
        uniform = (words[place] + 0.5) * SCALE
        for at, i in enumerate(order.tolist()):
            now = visible[i]
            odds = np.full(LANES, wires.bias[i])
            near = wires.use[i] == wires.use[i + 1]
            if not near:
                odds += atoms.weigh_far(i, np.zeros(LANES))
            elif wires.sum_start[i] < wires.sum_start[i + 1]:
                more = np.zeros(LANES)
                atoms.weigh_sums(i, more)
                odds += more
            if near:
                atoms.weigh_counts(i, odds)
            z = beta * odds
            if rule == METROPOLIS:
                z = np.where(now != 0, -z, z)
            e = decay(np.abs(z))
            if rule == METROPOLIS:
                p = np.where(z == 0.0, 0.5, np.where(z < 0.0, e, 1.0))
            else:
                p = np.where(z > 0.0, 1.0, e) / (1.0 + e)
            new = (uniform[at] < p).view(np.uint8)
            if rule == METROPOLIS:
                new = new ^ now
            change = new - now
            now[:] = new
            if not near:
                atoms.move_far(change != 0)
            if not change.any():
                continue
            total += odds * change.view(np.int8)
            if near:
                atoms.move_near(i, change)
