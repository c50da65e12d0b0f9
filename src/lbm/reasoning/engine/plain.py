"""What the compiled kernels do, in NumPy: the same bits from the same seed, without a compiler.

Each function here has a namesake in kernels.py, with the same arguments and the same results down to the last
bit, and either may go on where the other stopped. Many things are done at once:

- Atoms that share no gate may be updated in any order, and so together: a sweep is a row of *steps*, each of
  atoms that wait for earlier ones only.
- Random words are made for some sweeps ahead.
- A word and a table of probabilities are turned into the least log-odds that say yes. Where probabilities are
  not in a table, the comparison of log-odds with the logit of the word decides, and the kernels' own series
  only where both are too near to each other for that.
- Sums of whole weights are products of matrices, which are exact; others are added in the kernels' order.

A tenth to a hundredth of the kernels' speed for networks of clauses, and less for nested formulae.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Bytes, Floats, Ints, slices
from lbm.reasoning.engine.network import (
    ATOM,
    ATOM_NEGATED,
    BEFORE,
    BEFORE_NEGATED,
    CLAUSE,
    CLAUSES_FALSE,
    CLAUSES_TRUE,
    LANES,
    MANY,
    NEEDED,
    OTHERS_TRUE,
    PARTS,
    SIMPLE,
    Counts,
    GateNetwork,
)
from lbm.reasoning.engine.streams import BITS, key_of, philox

if TYPE_CHECKING:
    from lbm.reasoning.engine.lanes import Lanes, Weights

HEAT_BATH, METROPOLIS = 0, 1

FAR: Final = 60.0
"""Log-odds past which no word can tell a probability from 0 or 1."""

SCALE: Final = 2.0**-31
"""What a word times this is, between 0 and 1."""

LOG2E: Final = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # of ln 2; the first is short
POWERS: Final = 2.0 ** -np.arange(128.0)

Decide = Callable[[slice, NDArray[Any], Bytes], Bytes]

_BATCH: Final = 1 << 16  # words made at once
_ROWS: Final = 1 << 14  # rows of 64 lanes looked at together
_WIDE: Final = 32  # atoms of a step
_MATRIX: Final = 4096  # atoms up to which the weights of steps are matrices
_ORDERS: Final = 256  # orders, or parts of them, that are remembered
_SINGLE: Final = 1 << 24  # whole numbers up to which single precision is exact
_NEAR: Final = 1e-5  # log-odds nearer than this to the logit of a word are left to the series


# --- random words --------------------------------------------------------------------------------------


def fill(
    key0: Any, key1: Any, quads: Ints, sweeps: Ints, lane: int, stream: int, lanes: int = LANES
) -> NDArray[np.uint32]:
    """Return the words of four atoms for each quad, in some lanes, shape (sweeps, 4 · quads, lanes)."""
    step = max(1, _BATCH // (4 * lanes))
    if len(quads) > step:
        parts = (quads[part] for part in slices(len(quads), step))
        return np.concatenate([fill(key0, key1, part, sweeps, lane, stream, lanes) for part in parts], axis=1)
    chains = np.arange(lane, lane + lanes)
    four = philox((quads[:, None], sweeps[:, None, None], chains, stream), (key0, key1))
    return (four >> np.uint32(32 - BITS)).transpose(1, 2, 0, 3).reshape(len(sweeps), -1, lanes)


def scatter(x: Bytes, key0: Any, key1: Any, lane: int, stream: int) -> None:
    """Write a random bit to every atom of every lane: the lowest of its word at sweep 0."""
    step = _BATCH // 4 // LANES
    for quad in range(0, -(-len(x) // 4), step):
        quads = np.arange(quad, min(quad + step, -(-len(x) // 4)))
        rows = fill(key0, key1, quads, np.zeros(1, np.int64), lane, stream)[0]
        part = x[4 * quad : 4 * quad + len(rows)]
        part[...] = rows[: len(part)] & np.uint32(1)


def chance(z: Floats, rule: int) -> Floats:
    """Return the probability to be true (heat bath) or to flip (Metropolis), by the kernels' own series."""
    a = np.minimum(np.abs(z), FAR)
    n = (a * LOG2E + 0.5).astype(np.int32)
    r = -((a - n * LN2_HIGH) - n * LN2_LOW)
    e = 1.0 + r * (1.0 / 11.0)
    for k in range(10, 1, -1):
        e = 1.0 + r * e * (1.0 / k)
    e = (1.0 + r * e) * POWERS[n]
    if rule == METROPOLIS:
        return np.where(z == 0.0, 0.5, np.where(z < 0.0, e, 1.0))
    return np.asarray(np.where(z > 0.0, 1.0, e) / (1.0 + e))


# --- gates -----------------------------------------------------------------------------------------------


def tally(
    wires: Any,
    first: Ints,
    child: NDArray[np.int32],
    sign: NDArray[np.int8],
    x: Bytes,
    counts: Counts,
) -> None:
    """Write the count of every gate; x has shape (atoms, 64), counts (gates, 64)."""
    atoms = len(x)
    sizes = np.diff(first)
    counts[sizes == 0] = 0
    nested = np.zeros(len(sizes), bool)
    nested[np.repeat(np.arange(len(sizes)), sizes)[child >= atoms]] = True
    flat = np.flatnonzero((sizes > 0) & ~nested)
    ends = np.cumsum(sizes[flat])
    begin = 0
    while begin < len(flat):
        done = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + _ROWS, side="right")))
        some = flat[begin:end]
        starts = np.cumsum(sizes[some]) - sizes[some]
        at = np.repeat(first[some] - starts, sizes[some]) + np.arange(int(sizes[some].sum()))
        met = x[child[at]] == (sign[at] > 0)[:, None]
        counts[some] = np.add.reduceat(met, starts, axis=0, dtype=counts.dtype)
        begin = end
    for g in np.flatnonzero(nested).tolist():
        part = slice(first[g], first[g + 1])
        total = np.zeros(LANES, counts.dtype)
        for c, s in zip(child[part].tolist(), sign[part].tolist(), strict=True):
            k = c - atoms
            value = x[c] != 0 if k < 0 else wires.truth(counts[k : k + 1], [k])[0]
            total += value == (s > 0)
        counts[g] = total


def weighed(wires: Any, counts: Counts, values: Floats, total: Floats) -> None:
    """Add the values of the gates that are true in each lane to ``total``, shape (64,)."""
    gates = np.flatnonzero(values)
    for part in slices(len(gates), _ROWS):
        some = gates[part]
        rows = np.where(wires.truth(counts[some], some), values[some, None], 0.0)
        total[:] = np.add.reduce(np.concatenate([total[None], rows]), axis=0)


def keeps(wires: Any, counts: Counts, firm: Ints, lanes: NDArray[np.intp]) -> Bools:
    """Return which of some lanes have every firm gate as it must be."""
    gates = np.where(firm >= 0, firm, -1 - firm)
    found = wires.truth(counts[gates[:, None], lanes], gates) == (firm >= 0)[:, None]
    return np.asarray(found.all(axis=0))


# --- one atom --------------------------------------------------------------------------------------------


class _Plans:
    """The parts that a network's atoms are updated in, laid out when they are first needed."""

    def __init__(self, network: GateNetwork, weights: Weights) -> None:
        wires, weight = network.wires, weights.numbers
        self.wires, self.whole = wires, weights.whole
        small = self.whole and float(np.abs(weight.astype(np.float64)).sum()) < _SINGLE
        self.kind: Any = np.float32 if small else np.float64
        self.weight = weight.astype(self.kind)
        begin, end = wires.start[OTHERS_TRUE::PARTS], wires.start[PARTS::PARTS]
        self.more = (begin < end) | (np.diff(wires.pairs[::PARTS]) > 0) | (np.diff(wires.program) > 0)
        self.known: dict[int, _Part] = {}
        self.sweeps: dict[bytes, _Steps] = {}

    def of(self, i: int) -> _Part:
        """Return atom i as a part by itself."""
        if i not in self.known:
            self.known[i] = _Part(self, [i])
        return self.known[i]

    def steps(self, order: NDArray[np.int32]) -> _Steps:
        """Return the steps of a sweep in this order."""
        name = order.tobytes()
        found = self.sweeps.get(name)
        if found is None:
            if len(self.sweeps) >= _ORDERS:
                self.sweeps.clear()
            found = self.sweeps[name] = _Steps(self, order)
        return found


_plans = lru_cache(maxsize=4)(_Plans)  # chains are called again and again


class _Steps:
    """A sweep as steps, each a part: a single atom with more than clauses, or some that share no gate.

    Attributes
    ----------
    place
        The atoms' places in the order, step by step.
    atoms
        The atoms themselves, likewise.
    parts
        For each step its places there, and its atoms.
    back
        Where each place of the order is among ``place``.
    quads, word
        The fours of atoms that words are made for, and which of these words each place has.
    words
        The words made last: what they are for, the first sweep, and they themselves.
    """

    def __init__(self, plans: _Plans, order: NDArray[np.int32]) -> None:
        wires = plans.wires
        numbers = order.tolist()
        late = np.zeros(len(wires.low), np.int64)  # by gate: the latest step that changes it
        own: dict[int, int] = {}  # and by atom
        after = np.empty(len(numbers), np.int64)
        meetings = [(starts, gates) for starts, gates in wires.meetings() if len(gates)]
        for at, i in enumerate(numbers):
            met = [gates[starts[i] : starts[i + 1]] for starts, gates in meetings]
            when = 1 + max([own.get(i, 0), *(int(late[gates].max(initial=0)) for gates in met)])
            for gates in met:
                late[gates] = when
            own[i] = after[at] = when
        self.place = np.argsort(after, kind="stable")
        self.back = np.argsort(self.place)
        self.atoms = order[self.place].astype(np.intp)
        self.twice = len(own) < len(numbers)  # an atom is there more than once: then one by one
        self.parts: list[tuple[slice, _Part]] = []
        alone, late_of, atoms = plans.more[self.atoms] | self.twice, after[self.place], self.atoms.tolist()
        cuts = np.flatnonzero(alone[1:] | alone[:-1] | (late_of[1:] > late_of[:-1])) + 1
        for first, last in pairwise([0, *cuts.tolist(), len(atoms)]):
            for begin in range(first, last, _WIDE):
                some = atoms[begin : min(last, begin + _WIDE)]
                part = plans.of(some[0]) if alone[begin] else _Part(plans, some)
                self.parts.append((slice(begin, begin + len(some)), part))
        quads, where = np.unique(order >> 2, return_inverse=True)
        self.quads, self.word = quads.astype(np.int64), (4 * where + (order & 3))[self.place]
        self.words: tuple[Any, int, NDArray[np.uint32]] | None = None


class _Part:
    """Atoms that share no gate, and the clauses that they meet by themselves.

    ``first`` is the first atom, and ``more`` says whether it is alone and meets other gates, too.
    """

    def __init__(self, plans: _Plans, atoms: list[int]) -> None:
        wires = plans.wires
        self.first, self.more = atoms[0], bool(plans.more[atoms[0]])
        starts = wires.start[PARTS * np.array(atoms)[:, None] + [CLAUSES_TRUE, CLAUSES_FALSE, OTHERS_TRUE]]
        sizes = starts[:, 2] - starts[:, 0]
        met = [wires.gate[begin:end] for begin, _, end in starts.tolist()]
        self.gates = np.concatenate(met).astype(np.intp)
        self.owner = np.repeat(np.arange(len(atoms)), sizes)
        signs = np.tile(np.array([0, 1], np.uint8), len(atoms))
        self.negated = np.repeat(signs, np.diff(starts).ravel())[:, None]
        self.sign = np.where(self.negated, 255, 1).astype(np.uint8)
        self.column = np.where(self.negated, -1, 1).astype(plans.kind) * plans.weight[self.gates, None]
        self.matrix: NDArray[Any] | None = None
        if plans.whole and (len(atoms) == 1 or len(wires.program) <= _MATRIX):
            self.matrix = np.zeros((len(atoms), len(self.gates)), plans.kind)
            self.matrix[self.owner, np.arange(len(self.gates))] = self.column[:, 0]
        # By column, each atom's clauses from first to last, and then nothing: the row after all others.
        layer = np.arange(1 + max(sizes))[:, None]
        self.layers = np.where(layer < sizes, np.cumsum(sizes) - sizes + layer, len(self.gates))

    def weigh(self, turns: Bools, odds: NDArray[Any]) -> None:
        """Write the log-odds, shape (atoms, 64), by which clauses turn with their atom."""
        if self.matrix is not None:
            np.matmul(self.matrix, turns.astype(self.matrix.dtype), out=odds)
            return
        rows = np.zeros((len(turns) + 1, LANES), self.column.dtype)
        np.multiply(turns, self.column, out=rows[:-1])
        np.add.reduce(rows[self.layers], axis=0, out=odds)  # one after the other, as kernels add


class _Atoms:
    """The atoms of a network in some states: a part is weighed, and then moved.

    ``now`` are the states of its atoms, shape (atoms, 64), and ``change`` is 1 where they become true, 255
    where false, else 0.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.wires, self.counts = lanes.network.wires, lanes.counts
        self.plans = _plans(lanes.network, lanes.weights)
        self.kind, self.weight = self.plans.kind, self.plans.weight
        self.near = self.counts[:0]  # those of the clauses of the part that was weighed
        self.moved: list[Counts] = []

    def weigh(self, part: _Part, now: Bytes, odds: NDArray[Any]) -> None:
        """Write the log-odds of atoms given all the others."""
        self.near = self.counts.take(part.gates, 0)
        own = now.take(part.owner, 0)
        own ^= part.negated
        part.weigh(np.equal(self.near, own), odds)
        if part.more:
            self._weigh_others(part.first, now[0], odds[0])

    def move(self, part: _Part, now: Bytes, change: Bytes) -> None:
        """Change the states, and bring all counts up to date."""
        now += change
        step = change.take(part.owner, 0)
        step *= part.sign  # 255 is -1
        self.near += self._step(step)
        self.counts[part.gates] = self.near
        if part.more:
            self._move_others(part.first, now[0], change[0])

    def _step(self, change: Bytes) -> Counts:
        """Return changes as counts have them."""
        return change if self.counts.dtype == np.uint8 else change.view(np.int8).astype(self.counts.dtype)

    def _weigh_others(self, i: int, true: Bytes, odds: NDArray[Any]) -> None:
        """Add what other gates than clauses by themselves give."""
        wires, counts, false = self.wires, self.counts, np.uint8(1) - true
        begin, middle, end = wires.start[PARTS * i + OTHERS_TRUE : PARTS * i + PARTS + 1].tolist()
        for j, g in enumerate(wires.gate[begin:end].tolist(), begin):
            low, mask, span = wires.low[g], wires.mask[g], wires.span[g]
            rest = counts[g] - (true if j < middle else false) - low
            after, before = ((rest + counts.dtype.type(1)) & mask) <= span, (rest & mask) <= span
            gain = self.weight[g] * np.subtract(after, before, dtype=np.int8)
            odds += gain if j < middle else -gain
        self._weigh_pairs(i, true, false, odds)
        self._weigh_program(i, true, false, odds)

    def _pairs(self, i: int) -> Iterator[tuple[int, int, int]]:
        wires = self.wires
        for part in range(PARTS):
            for j in range(wires.pairs[PARTS * i + part], wires.pairs[PARTS * i + part + 1]):
                yield part, int(wires.upper[j]), int(wires.under[j])

    def _weigh_pairs(self, i: int, true: Bytes, false: Bytes, odds: NDArray[Any]) -> None:
        counts, zero = self.counts, self.kind(0)
        for part, g, h in self._pairs(i):
            w = self.weight[g]
            turns = counts[h] == (false if part & 1 else true)
            if part == CLAUSES_TRUE:
                odds -= np.where(turns & (counts[g] == false), w, zero)
            elif part == CLAUSES_FALSE:
                odds += np.where(turns & (counts[g] == true), w, zero)
            else:
                odds += np.where(turns, np.where((counts[g] & 1) == true, w, -w), zero)

    def _weigh_program(self, i: int, true: Bytes, false: Bytes, odds: NDArray[Any]) -> None:
        wires, counts = self.wires, self.counts
        base, end = int(wires.program[i]), int(wires.program[i + 1])
        if base == end:
            return
        kind = counts.dtype.type
        known = np.where(true != 0, ~kind(0), kind(0))
        turn = d = np.zeros(LANES, counts.dtype)
        turned: dict[int, Counts] = {}
        self.moved = []
        for k in range(base, end):
            g, code = int(wires.step_gate[k]), int(wires.step_kind[k])
            low, mask, span = wires.low[g], wires.mask[g], wires.span[g]
            plain = code & SIMPLE
            clause = code & CLAUSE
            if plain == BEFORE:
                d = turn
            elif plain == BEFORE_NEGATED:
                d = kind(0) - turn
            elif plain == MANY:
                d = np.zeros(LANES, counts.dtype)
                for m in range(wires.step_kids[k], wires.step_kids[k + 1]):
                    slot, sign = int(wires.kid_slot[m]), int(wires.kid_sign[m])
                    step = kind(1) if slot < 0 else turned[slot]
                    d = d + step if sign > 0 else d - step
            if clause and plain == ATOM:
                turn = (counts[g] == true).astype(counts.dtype)
            elif clause and plain == ATOM_NEGATED:
                turn = kind(0) - (counts[g] == false).astype(counts.dtype)
            elif clause and plain < MANY:
                without = counts[g] - (d & known)
                turn = np.where(np.minimum(without, without + d) == 0, d, kind(0))
            else:
                if plain < BEFORE:
                    d = np.full(LANES, kind(1) if plain == ATOM else ~kind(0))
                without = counts[g] - (d & known) - low
                turn = (((without + d) & mask) <= span).astype(counts.dtype) - (
                    (without & mask) <= span
                ).astype(counts.dtype)
            if code & NEEDED:
                turned[k - base] = turn
            self.moved.append(d)
            if self.weight[g] != 0:
                odds += self.weight[g] * turn.astype(np.int8)

    def _move_others(self, i: int, now: Bytes, change: Bytes) -> None:
        wires, counts, step = self.wires, self.counts, self._step(change)
        begin, middle, end = wires.start[PARTS * i + OTHERS_TRUE : PARTS * i + PARTS + 1].tolist()
        for g in wires.gate[begin:middle].tolist():
            counts[g] += step
        for g in wires.gate[middle:end].tolist():
            counts[g] -= step
        true = now - change  # as it was
        false = np.uint8(1) - true
        none = counts.dtype.type(0)
        for part, g, h in self._pairs(i):
            moves = np.where(counts[h] == (false if part & 1 else true), step, none)
            counts[h] += -step if part & 1 else step
            counts[g] += moves if part in (CLAUSES_FALSE, OTHERS_TRUE) else -moves
        base = int(wires.program[i])
        up, down = change == 1, change > 1
        for k in range(base, int(wires.program[i + 1])):
            g, plain = int(wires.step_gate[k]), int(wires.step_kind[k]) & SIMPLE
            if plain == ATOM:
                counts[g] += step
            elif plain == ATOM_NEGATED:
                counts[g] -= step
            else:
                moved = self.moved[k - base]
                counts[g] += np.where(up, moved, none) - np.where(down, moved, none)


# --- all atoms -------------------------------------------------------------------------------------------


def sweeps(
    lanes: Lanes,
    order: NDArray[np.int32],
    betas: Floats,
    tables: NDArray[np.uint32],
    clips: NDArray[np.int32],
    rule: int,
    best: NDArray[Any],
    goal: Any,
) -> int:
    """Do one sweep for every row of β; see the kernel."""
    x, counts, total = lanes.x, lanes.counts, lanes.total
    atoms = _Atoms(lanes)
    steps = atoms.plans.steps(order)
    run = _Sweep(atoms, steps, x)
    gains = np.zeros((1 + len(order), LANES))  # the total, and what each atom adds to it
    for s, words in _words(steps, lanes, len(betas)):
        if clips[s] >= 0:
            run.do(_by_table(rule, words, tables[s], int(clips[s]), atoms.kind))
        else:
            before = [run.x.copy(), counts.copy()]
            quick = rule == HEAT_BATH and bool((betas[s] >= 0).all())
            if not quick or not run.do_by_logits(words, betas[s]):
                run.x[...], counts[...] = before
                run.do(_by_series(rule, words, betas[s]))
        np.multiply(run.odds, run.change.view(np.int8), out=gains[1:])
        if atoms.plans.whole:
            total += gains[1:].sum(axis=0).astype(np.int64)
        else:  # in the order of the atoms, as kernels do
            gains[1:] = gains[1:][steps.back]
            gains[0] = total
            total[:] = np.add.reduce(gains, axis=0)
        if not steps.twice:
            x[steps.atoms] = run.x
        _remember(lanes, best)
        if best[0] >= goal:
            return s + 1
    return len(betas)


class _Sweep:
    """Sweeps over some atoms: their states by steps, log-odds as they were updated, and their changes."""

    def __init__(self, atoms: _Atoms, steps: _Steps, x: Bytes) -> None:
        self.atoms, self.steps = atoms, steps
        self.x = x if steps.twice else x[steps.atoms]
        shape = len(steps.atoms), LANES
        self.odds, self.change = np.zeros(shape, atoms.kind), np.zeros(shape, np.uint8)

    def do(self, decide: Decide) -> None:
        """Give all atoms new values, step by step."""
        for at, part in self.steps.parts:
            odds, change = self.odds[at], self.change[at]
            now = self.x[part.first : part.first + 1] if self.steps.twice else self.x[at]
            self.atoms.weigh(part, now, odds)
            np.subtract(decide(at, odds, now), now, out=change)
            self.atoms.move(part, now, change)

    def do_by_logits(self, words: NDArray[np.uint32], beta: Floats) -> bool:
        """Do the same by heat bath, comparing log-odds alone; return False if one was too near to tell."""
        u = (words + 0.5) * SCALE
        logits = np.log(u / (1.0 - u))
        with np.errstate(divide="ignore", over="ignore"):
            least = logits / np.abs(beta)  # where β is 0, infinite, and of the sign that decides
            self.do(lambda at, odds, _: np.greater(odds, least[at]).view(np.uint8))
            return not (np.abs(beta * self.odds - logits) < _NEAR).any()


def _words(steps: _Steps, lanes: Lanes, number: int) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield the number of each sweep with its words, shape (atoms of the order, 64), by steps."""
    quads, place, sweep = steps.quads, steps.word, lanes.sweep
    most = max(1, _BATCH // max(1, 4 * len(quads) * LANES))
    name = lanes.seed, lanes.lane
    for s in range(number):
        known = steps.words
        if known is None or known[0] != name or not known[1] <= sweep + s < known[1] + len(known[2]):
            follows = known is not None and known[0] == name and known[1] + len(known[2]) == sweep + s
            ahead = np.arange(sweep + s, sweep + s + min(most, most if follows else number - s))
            known = name, sweep + s, fill(*key_of(lanes.seed), quads, ahead, lanes.lane, 0)
            steps.words = known
        yield s, known[2][sweep + s - known[1]][place]


def _by_table(
    rule: int, words: NDArray[np.uint32], table: NDArray[np.uint32], clip: int, kind: Any
) -> Decide:
    """Decide by thresholds, if probabilities rise with the log-odds, or by looking them up."""
    table = table[: 2 * clip + 1]
    part = table[:clip] if rule == METROPOLIS else table
    rises = bool((part[1:] >= part[:-1]).all())
    if rule == METROPOLIS:
        rises = rises and bool((table[clip + 1 :] > words.max(initial=0)).all())
    if not rises:

        def look(at: slice, odds: NDArray[Any], now: Bytes) -> Bytes:
            n = odds.astype(np.int64)
            n = np.where(now != 0, -n, n) if rule == METROPOLIS else n
            yes = words[at] < table[np.clip(n, -clip, clip) + clip]
            return np.asarray((yes ^ (now != 0) if rule == METROPOLIS else yes).astype(np.uint8))

        return look
    place = np.searchsorted(part, words.ravel(), side="right").reshape(words.shape)
    least = (place - clip).astype(kind)
    least[place == 0] = -np.inf
    if rule == HEAT_BATH:
        least[place == len(part)] = np.inf

        def rise(at: slice, odds: NDArray[Any], now: Bytes) -> Bytes:  # noqa: ARG001 - the same for all
            return np.asarray(np.greater_equal(odds, least[at]).view(np.uint8))

        return rise
    stay = words >= table[clip]  # of flips that change nothing

    def flip(at: slice, odds: NDArray[Any], now: Bytes) -> Bytes:
        gain = np.where(now, -odds, odds)
        yes = np.greater_equal(gain, least[at])
        np.greater(yes, np.equal(gain, 0) & stay[at], out=yes)
        return np.asarray(np.bitwise_xor(yes.view(np.uint8), now))

    return flip


def _by_series(rule: int, words: NDArray[np.uint32], beta: Floats) -> Decide:
    """Decide by the logit of a word (heat bath) or its log, and by the series where that is too near."""
    u = (words + 0.5) * SCALE
    least = np.log(u) if rule == METROPOLIS else np.log(u / (1.0 - u))

    def decide(at: slice, odds: NDArray[Any], now: Bytes) -> Bytes:
        with np.errstate(over="ignore"):
            z = beta * odds
        if rule == METROPOLIS:
            np.negative(z, out=z, where=now != 0)
        limit = least[at]
        yes = z > limit
        near = np.abs(z - limit) < _NEAR
        if rule == METROPOLIS:
            near |= z == 0
        if near.any():
            yes[near] = u[at][near] < chance(z[near], rule)
        found = yes.view(np.uint8)
        return np.asarray(np.bitwise_xor(found, now) if rule == METROPOLIS else found)

    return decide


def _remember(lanes: Lanes, best: NDArray[Any]) -> None:
    """Copy the best state that keeps all hard formulae, if it is better than the one so far."""
    total, firm = lanes.total, lanes.network.firm
    those = np.flatnonzero(total > best[0])
    if len(those) and len(firm):
        those = those[keeps(lanes.network.wires, lanes.counts, firm, those)]
    if len(those):
        chosen = those[np.argmax(total[those])]
        best[0] = total[chosen]
        lanes.best_x[:] = lanes.x[: len(lanes.best_x), chosen]


def jumps(lanes: Lanes, members: NDArray[np.int32], starts: NDArray[np.int32], betas: Floats) -> None:
    """Offer each lane to flip all atoms of a group at once, for every group in turn; see the kernel."""
    atoms, total = _Atoms(lanes), lanes.total
    groups = len(starts) - 1
    quads = np.arange(-(-groups // 4))
    luck = fill(*key_of(lanes.seed), quads, np.array([lanes.sweep]), lanes.lane, 2)[0]
    luck = (luck + 0.5) * SCALE
    odds = np.zeros((1, LANES), atoms.kind)

    def flip(i: int, where: Bools | None) -> NDArray[Any]:
        part, now = atoms.plans.of(i), lanes.x[i : i + 1]
        atoms.weigh(part, now, odds)
        change = np.uint8(1) - np.uint8(2) * now
        if where is not None:
            change[0, ~where] = 0
        atoms.move(part, now, change)
        return np.asarray(odds[0] * change[0].view(np.int8))

    for k in range(groups):
        group = members[starts[k] : starts[k + 1]].tolist()
        gain = np.zeros(LANES, total.dtype)
        for i in group:
            gain += flip(i, None).astype(total.dtype)
        refused = luck[k] >= chance(betas * gain, HEAT_BATH)
        total += np.where(refused, total.dtype.type(0), gain)
        if refused.any():
            for i in reversed(group):
                flip(i, refused)


def fields(lanes: Lanes, order: NDArray[np.int32], out: NDArray[Any]) -> None:
    """Write the log-odds of each atom of ``order`` given all the others in ``out``, shape (atoms, 64)."""
    atoms = _Atoms(lanes)
    odds = np.zeros((1, LANES), atoms.kind)
    for row, i in zip(out, order.tolist(), strict=True):
        atoms.weigh(atoms.plans.of(i), lanes.x[i : i + 1], odds)
        row[:] = odds[0]
