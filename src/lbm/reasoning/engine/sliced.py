"""Bit-sliced chains (multi-spin coding): 512 side by side, a bit each, for clauses with small whole weights.

The state of an atom is a *row*: eight words of 64 bits, a bit for each chain. A clause matters to an atom
only where its other literals are all false, which is an AND of rows; no counters are kept. The weights of
the clauses that matter are added up in all chains at once, in *slices*: slice k of a sum is the row of its
bits worth 2^k.

Metropolis: an atom flips where that raises the log weight, with probability 1/2 where it changes nothing,
and otherwise with probability exp(-β · loss). The loss is written with digits from 0 to 15; the probability
is a product of factors, one for each digit that is not 0. For every factor a chain draws a number u of 64
bits, and it goes on if u < 2^64 · factor. Bits of u are drawn from the highest on, in all chains together,
and only until every chain knows which is less: some ten of them. Factors are exact to 2^-64, and to 2^-53
of themselves.

Bits come from the generator of streams.py. Draw k of an atom serves its k-th factor, that of the highest
digit first; where a flip changes nothing, draw 0 has its one bit. Bits 2j and 2j + 1, counted from the
highest, for the 64 chains of word w are the two halves of what belongs to the counter

    (atom, sweep, w, STREAM + 32 k + j)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import int64, uint64
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bools, slices
from lbm.reasoning.compiling.ready import kernel
from lbm.reasoning.engine.lanes import Weights
from lbm.reasoning.engine.network import GateNetwork, aligned, are_clauses
from lbm.reasoning.engine.streams import MAX_SWEEPS, MULTIPLIERS, STEPS, key_of, philox

WORDS: Final = 8
"""Words of a row."""

CHAINS: Final = 64 * WORDS
"""Chains that run side by side."""

SLICES: Final = 16
"""Slices of a sum: the weights that pull one atom to the same side add up to less than 2^SLICES units."""

MAX_READS: Final = 128
"""Rows read for a literal, on average over a theory, past which counters come near."""

STREAM: Final = 1 << 16
"""The first of the 128 random streams that chains draw from; the one before them is for states at random."""

WORK: Final = 4_000_000
"""Rows read in a compiled call, the rest of an update counted as 50: about 30 ms, which Ctrl-C waits for."""

CACHED: Final = 4096
"""Atoms whose rows stay near the processor by themselves; rows of more are asked for ahead of time."""

_AHEAD: Final = 32  # literals between one that is read and one that is asked for

Row = NDArray[np.uint64]
Rows = NDArray[np.uint64]


# --- rows as values ----------------------------------------------------------------------------------


def row(rows: Rows, i: Any) -> Row:
    """Return row i."""
    return np.array(rows[i])


def put(rows: Rows, i: Any, value: Row) -> None:
    """Set row i."""
    rows[i] = value


def fetch(rows: Rows, i: Any) -> None:
    """Ask for row i to be brought near."""


def splat(word: Any) -> Row:
    """Return a row of equal words."""
    return np.full(WORDS, word, np.uint64)


def spread(bit: Any) -> Row:
    """Return a row of equal bits."""
    return np.full(WORDS, -int(bit) & 0xFFFFFFFFFFFFFFFF, np.uint64)


def some(value: Row) -> bool:
    """Return whether any bit is set."""
    return bool(value.any())


# --- what chains run on ------------------------------------------------------------------------------


class SlicedWires(NamedTuple):
    """The arrays that kernels read.

    Clause c has the literals ``literal[first[c]:first[c + 1]]``: twice the number of the atom, plus 1 where
    it is wanted true. ``negative[c]`` is 1 where its weight is less than 0.

    Atom i occurs in clauses at ``start[i]:start[i + 1]``: up to ``middle[i]`` in those that pull it to true,
    then in those that pull it to false, lighter ones first. The other literals of the clause of occurrence j
    are ``other[others[j]:others[j + 1]]``. Its weight has the bits ``planes[weight[j]]``, as words without or
    full of ones, shape (weights, SLICES); row 0 is that of weight 1. After it is added, the sum has at most
    ``top[j]`` slices. ``bound[i]`` is the greatest |odds| that atom i can have.
    """

    first: NDArray[np.uint64]
    literal: NDArray[np.uint32]
    negative: NDArray[np.uint64]
    start: NDArray[np.uint64]
    middle: NDArray[np.uint64]
    others: NDArray[np.uint64]
    other: NDArray[np.uint32]
    weight: NDArray[np.uint32]
    planes: NDArray[np.uint64]
    top: NDArray[np.uint8]
    bound: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Sliced:
    """Clauses with whole weights, laid out for bit-sliced chains.

    Attributes
    ----------
    atoms
        The number of atoms.
    unit
        What a weight of 1 in the arrays adds to the log weight.
    digits
        How many digits from 0 to 15 a loss can have.
    wires
        What the kernels read. Clauses of weight 0 are not among them.
    """

    atoms: int
    unit: float
    digits: int
    wires: SlicedWires


def sliced_of(network: GateNetwork, weights: Weights) -> Sliced | None:
    """Return a network under whole weights as bit-sliced chains need it, or None where it does not fit.

    It fits if all gates are clauses over atoms, none with an atom twice; if all weights are multiples of
    one unit; if those that pull one atom to the same side, divided by the common divisor of all, add up to
    less than 2^SLICES; and if no more than MAX_READS rows are read for a literal, on average. A weight may
    be negative: then its clause is wanted false.
    """
    gates = network.wires
    clauses = weights.whole and are_clauses(gates.low, gates.span).all()
    if not clauses or len(gates.upper) or len(gates.step_gate):
        return None
    numbers = np.asarray(weights.numbers, np.int64)
    used = numbers != 0
    scale = int(np.gcd.reduce(numbers[used])) or 1
    lengths = np.diff(network.first_child)
    mine, lengths = np.repeat(used, lengths), lengths[used]
    if (lengths * (lengths - 1)).sum() > MAX_READS * lengths.sum():
        return None
    child, sign = network.child[mine].astype(np.int64), network.child_sign[mine] > 0
    literal = (2 * child + sign).astype(np.uint32)
    first = np.concatenate([[0], np.cumsum(lengths)])
    size, negative = np.abs(numbers[used]) // scale, numbers[used] < 0
    # Occurrences: by atom, those that pull it to true before the others, lighter ones first.
    owner = np.repeat(np.arange(len(size)), lengths)
    to_false = sign == np.repeat(negative, lengths)
    order = np.lexsort((owner, size[owner], to_false, child))
    clause, side = owner[order], 2 * child[order] + to_false[order]
    sums = np.concatenate([[0], np.cumsum(size[clause])])
    ends = np.searchsorted(side, np.arange(2 * network.atoms + 1))
    pull = np.diff(sums[ends])
    if pull.max(initial=0) >= 1 << SLICES:
        return None
    so_far = sums[1:] - np.repeat(sums[ends[:-1]], np.diff(ends))
    others = lengths[clause] - 1
    after = np.concatenate([[0], np.cumsum(others)])
    at = np.arange(after[-1]) - np.repeat(after[:-1] - first[clause], others)
    at += at >= np.repeat(order, others)  # the literal itself is left out
    kinds, kind = np.unique(np.append(1, size), return_inverse=True)  # no size is less than 1
    bits = (kinds[:, None] >> np.arange(SLICES)) & 1
    bound = pull.reshape(-1, 2).max(axis=1)
    wires = SlicedWires(
        first=first.astype(np.uint64),
        literal=literal,
        negative=negative.astype(np.uint64),
        start=ends[::2].astype(np.uint64),
        middle=ends[1::2].astype(np.uint64),
        others=after.astype(np.uint64),
        other=literal[at],
        weight=kind[1:][clause].astype(np.uint32),
        planes=np.where(bits > 0, ~np.uint64(0), np.uint64(0)),
        top=np.searchsorted(1 << np.arange(SLICES), so_far, side="right").astype(np.uint8),
        bound=bound.astype(np.uint64),
    )
    digits = -(-int(bound.max(initial=0)).bit_length() // 4)
    return Sliced(network.atoms, weights.unit * scale, digits, wires)


# --- states ------------------------------------------------------------------------------------------


def unpack(x: Rows, chains: ArrayLike | None = None) -> Bools:
    """Return the states of some chains, by default of all 512, from rows; shape (atoms, chains)."""
    if chains is None:
        words = np.ascontiguousarray(x, "<u8").view(np.uint8)
        return np.unpackbits(words, axis=1, bitorder="little").view(np.bool_)
    which = np.asarray(chains, np.int64)
    return np.asarray((x[:, which // 64] >> (which % 64).astype(np.uint64)) & np.uint64(1) > 0)


def random_rows(atoms: int, *, seed: int, lane: int = 0) -> Rows:
    """Return states at random, as rows, from a stream of their own; chain l has the number ``lane + l``."""
    x = _rows(atoms)
    words = np.arange(WORDS, dtype=np.uint64) + _word_of(lane)
    for part in slices(atoms, 1 << 14):  # not all at once: their counters take memory
        some_atoms = np.arange(part.start, part.stop)[:, None]
        low, high = philox((some_atoms, 0, words, STREAM - 1), key_of(seed))[:2].astype(np.uint64)
        x[part] = low | (high << np.uint64(32))
    return x


def _rows(number: int) -> Rows:
    """Return rows of zeros, each on one line of the cache: on two, reading takes twice as long."""
    return aligned((number, WORDS), np.uint64)


def _word_of(lane: int) -> np.uint64:
    """Return the number of the word that begins with a chain."""
    if lane % 64 or not 0 <= lane < 1 << 37:
        raise ValueError(f"expected as lane, the first chain, a multiple of 64 below 2^37, got {lane}")
    return np.uint64(lane // 64)


# --- the kernels -------------------------------------------------------------------------------------

_M0, _M1 = MULTIPLIERS
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_0, _1, _2, _3, _4, _16, _64 = (np.uint64(number) for number in (0, 1, 2, 3, 4, 16, 64))


class Scratch(NamedTuple):
    """Places that a kernel writes to while it works.

    ``sums`` has the slices of what pulls an atom to true, and from row SLICES + 4 on of what pulls it to
    false; ``where`` a row for every value of every digit of a loss: the chains that have it; ``bits`` the
    next four bits of u; ``keys`` the keys of the generator's ten rounds, two rows each, and the numbers of
    words. About the factors of a sweep, ``ones`` has their bits, as words without or full of ones, shape
    (64, 16 · digits), and ``far`` the greatest value of a digit whose factor has any bit set so far, shape
    (64, digits).
    """

    sums: Rows
    where: Rows
    bits: Rows
    keys: Rows
    ones: NDArray[np.uint64]
    far: NDArray[np.uint64]


@kernel("sliced", inline=True)
def _bring(literal: Any, begin: Any, end: Any, x: Any) -> None:
    """Ask for the rows of some literals."""
    k, end = begin, min(end, uint64(len(literal)))
    while k < end:
        fetch(x, uint64(literal[k]) >> _1)
        k += _1


@kernel("sliced", inline=True)
def _all_false(literal: Any, begin: Any, end: Any, x: Any) -> Any:
    """Return the row of the chains in which all these literals are false."""
    found = spread(_1)
    k = begin
    while k < end:
        code = uint64(literal[k])
        found = found & (row(x, code >> _1) ^ spread(code & _1))
        k += _1
    return found


@kernel("sliced", inline=True)
def _lost(wires: Any, c: Any, x: Any) -> Any:
    """Return the row of the chains in which a clause is not as its weight wants it."""
    begin, end = wires.first[c], wires.first[c + _1]
    if len(x) > CACHED:
        _bring(wires.literal, begin + uint64(_AHEAD), end + uint64(_AHEAD), x)
    return _all_false(wires.literal, begin, end, x) ^ spread(wires.negative[c])


@kernel("sliced", inline=True)
def _four_bits(atom: Any, sweep: Any, stream: Any, keys: Any, bits: Any) -> None:
    """Write the rows of four bits, from two counters; one alone would wait for its own products."""
    low, half, m0, m1 = splat(_LOW), splat(_HALF), splat(_M0), splat(_M1)
    a0, a1, a2, a3 = splat(atom), splat(sweep), row(keys, uint64(20)), splat(stream)
    b0, b1, b2, b3 = a0, a1, a2, splat(stream + _1)
    k = _0
    while k < uint64(20):
        k0, k1 = row(keys, k), row(keys, k + _1)
        # Upper halves hold what products leave there: the next product and the end look at lower ones.
        p, q = m0 * (a0 & low), m1 * (a2 & low)
        a0, a1, a2, a3 = (q >> half) ^ a1 ^ k0, q, (p >> half) ^ a3 ^ k1, p
        p, q = m0 * (b0 & low), m1 * (b2 & low)
        b0, b1, b2, b3 = (q >> half) ^ b1 ^ k0, q, (p >> half) ^ b3 ^ k1, p
        k += _2
    put(bits, _0, (a0 & low) | (a1 << half))
    put(bits, _1, (a2 & low) | (a3 << half))
    put(bits, _2, (b0 & low) | (b1 << half))
    put(bits, _3, (b2 & low) | (b3 << half))


@kernel("sliced", inline=True)
def _values(sums: Any, at: Any, open_: Any, where: Any, to: Any) -> Any:
    """Write for each value of the digit in slices ``at`` to ``at + 3`` the open chains that have it.

    Return those in which it is not 0. In open chains the digit is used up: it becomes 0.
    """
    s0, s1, s2, s3 = row(sums, at), row(sums, at + _1), row(sums, at + _2), row(sums, at + _3)
    put(sums, at, s0 & ~open_)
    put(sums, at + _1, s1 & ~open_)
    put(sums, at + _2, s2 & ~open_)
    put(sums, at + _3, s3 & ~open_)
    s2, s3 = s2 & open_, s3 & open_
    high0, high1, high2, high3 = open_ & ~(s2 | s3), s2 & ~s3, s3 & ~s2, s2 & s3
    low0, low1, low2, low3 = ~(s0 | s1), s0 & ~s1, s1 & ~s0, s0 & s1
    put(where, to + uint64(1), high0 & low1)
    put(where, to + uint64(2), high0 & low2)
    put(where, to + uint64(3), high0 & low3)
    put(where, to + uint64(4), high1 & low0)
    put(where, to + uint64(5), high1 & low1)
    put(where, to + uint64(6), high1 & low2)
    put(where, to + uint64(7), high1 & low3)
    put(where, to + uint64(8), high2 & low0)
    put(where, to + uint64(9), high2 & low1)
    put(where, to + uint64(10), high2 & low2)
    put(where, to + uint64(11), high2 & low3)
    put(where, to + uint64(12), high3 & low0)
    put(where, to + uint64(13), high3 & low1)
    put(where, to + uint64(14), high3 & low2)
    put(where, to + uint64(15), high3 & low3)
    return open_ & ~(high0 & low0)


@kernel("sliced")
def _spell(factors: Any, ones: Any, far: Any) -> None:
    """Write the bits of factors, and how far those with any set go: factors fall as values rise."""
    for g in range(len(factors) // 16):
        value = 15
        for d in range(63, -1, -1):
            while value > 0 and factors[16 * g + value] >> uint64(63 - d) == _0:
                value -= 1
            far[d, g] = uint64(value)
    for d in range(64):
        for v in range(len(factors)):
            ones[d, v] = ~_0 if (factors[v] >> uint64(63 - d)) & _1 else _0


@kernel("sliced")
def _keep(wires: Any, begin: Any, end: Any, x: Any, kept_in: Any) -> bool:
    """Take from row 0 of ``kept_in`` the chains that lose a clause, and return whether any is left."""
    left = row(kept_in, _0)
    for number in range(begin, end):
        left = left & ~_lost(wires, uint64(number), x)
        if not some(left):
            break
    put(kept_in, _0, left)
    return some(left)


@kernel("sliced")
def _sweeps(wires: Any, x: Any, order: Any, factors: Any, scratch: Any, sweep: Any, stop: Any) -> int:
    """Do one sweep for every row of ``factors`` and return how many were done.

    Parameters
    ----------
    x
        Shape (atoms, 8). It is changed.
    order
        The atoms in turn, none twice.
    factors
        Shape (sweeps, 16 · digits): 2^64 · exp(-β · value) for every value of every digit, the lowest digit
        first. The place of value 0 says whether β is not 0; if it is, every flip changes nothing.
    stop
        Whether a sweep is the last if it leaves some chain with every clause kept.
    """
    sums, where, bits, keys, ones, far = scratch
    none, false = spread(_0), uint64(SLICES + 4)
    for s in range(len(factors)):
        new = s == 0
        for value in range(factors.shape[1]):
            new |= factors[s, value] != factors[s - 1, value]
        if new:
            _spell(factors[s], ones, far)
        now, weighed = uint64(sweep + s), spread(_1 if factors[s, 0] else _0)
        for o in range(len(order)):
            i = uint64(order[o])
            if len(x) > CACHED and o + 1 < len(order):
                j = uint64(order[o + 1])
                begin, end = wires.start[j], wires.start[j + _1]
                _bring(wires.other, wires.others[begin], wires.others[end], x)

            # --- the weights that pull to true, and those that pull to false
            j, end, base, top, high = wires.start[i], wires.middle[i], _0, _0, _0
            while True:
                while j < end:
                    begin, after = wires.others[j], wires.others[j + _1]
                    matters = _all_false(wires.other, begin, after, x)
                    while top < uint64(wires.top[j]):
                        put(sums, base + top, none)
                        top += _1
                    kind, k = uint64(wires.weight[j]), _0
                    if kind == _0:
                        while k < top:
                            old = row(sums, base + k)
                            put(sums, base + k, old ^ matters)
                            matters = old & matters
                            k += _1
                    else:
                        carry = none
                        while k < top:
                            old, more = row(sums, base + k), matters & splat(wires.planes[kind, k])
                            put(sums, base + k, old ^ more ^ carry)
                            carry = (old & more) | (carry & (old ^ more))
                            k += _1
                    j += _1
                if base > _0:
                    break
                end, base, high, top = wires.start[i + _1], false, top, _0
            slices = max(high, top)
            while high < slices:
                put(sums, high, none)
                high += _1
            while top < slices:
                put(sums, false + top, none)
                top += _1

            # --- their difference: its sign, and its size where a flip loses
            less, differ, k = none, none, _0
            while k < slices:
                a, b = row(sums, k), row(sums, false + k)
                put(sums, k, a ^ b ^ less)
                differ = differ | (a ^ b)
                less = (b & ~a) | (less & ~(a ^ b))
                k += _1
            differ = differ & weighed
            state = row(x, i)
            loses = differ & (state ^ less)
            flip = differ & ~loses
            if not some(~flip):
                put(x, i, ~state)
                continue
            carry, k = less, _0
            while k < slices:
                a = row(sums, k) ^ less
                put(sums, k, (a ^ carry) & loses)
                carry = a & carry
                k += _1
            digits = (slices + _3) >> _2
            while k < _4 * digits:
                put(sums, k, none)
                k += _1

            # --- one factor after another, in the chains that are still alive
            stream, alive = uint64(STREAM), loses
            while True:
                g, unsure = digits, none
                while g > _0:
                    g -= _1
                    unsure = unsure | _values(sums, _4 * g, alive & ~unsure, where, _16 * g)
                flip = flip | (alive & ~unsure)  # no factor is left
                if stream > uint64(STREAM) and not some(unsure):
                    break
                alive, d = none, _0
                while d < _64:
                    _four_bits(i, now, stream + (d >> _1), keys, bits)
                    if stream == uint64(STREAM) and d == _0:
                        flip = flip | ~(differ | row(bits, _0))
                    k = _0
                    while k < _4:
                        one, g, bound = none, _0, wires.bound[i]
                        while g < digits:
                            v = _16 * g
                            last = v + min(far[d, g], bound)
                            while v < last:
                                v += _1
                                one = one | (row(where, v) & splat(ones[d, v]))
                            g += _1
                            bound >>= _4
                        drawn = row(bits, k)
                        alive = alive | (unsure & one & ~drawn)
                        unsure = unsure & ~(one ^ drawn)
                        k += _1
                        d += _1
                    if not some(unsure):
                        break
                if not some(alive):
                    break
                stream += uint64(32)
            put(x, i, state ^ flip)
        if stop:
            put(bits, _0, spread(_1))
            if _keep(wires, int64(0), len(wires.negative), x, bits):
                return s + 1
    return len(factors)


# --- running -----------------------------------------------------------------------------------------


def advance_sliced(
    sliced: Sliced,
    x: Rows,
    betas: ArrayLike,
    *,
    seed: int,
    sweep: int = 0,
    lane: int = 0,
    stop: bool = False,
) -> int:
    """Do a sweep of Metropolis at every β, in place, and return how many were done.

    The states depend on the arguments alone: many sweeps in one call are the same as in several, with
    ``sweep`` counted on. Compiled calls inside are short.

    Parameters
    ----------
    x
        States as rows, shape (atoms, 8), as from :func:`random_rows`: chain l is bit l % 64 of word l // 64.
    betas
        Multiply the log weight; shape (sweeps,), from 0 up to infinity.
    seed, sweep, lane
        The random streams: their seed, the number of the first sweep, and that of the first chain, a multiple
        of 64.
    stop
        End after the first sweep that leaves some chain with every clause kept.
    """
    values = np.atleast_1d(np.asarray(betas, np.float64))
    if values.ndim != 1 or not (values >= 0).all():
        raise ValueError(f"expected β from 0 up, one for each sweep, got {values}")
    if not 0 <= sweep <= MAX_SWEEPS - len(values):
        raise ValueError(f"expected sweeps from 0 to {MAX_SWEEPS - 1}, got {len(values)} from {sweep} on")
    _check(sliced, x)
    digits = max(1, sliced.digits)
    ones, far = np.empty((64, 16 * digits), np.uint64), np.empty((64, digits), np.uint64)
    keys = _keys(seed, lane)
    scratch = Scratch(_rows(2 * (SLICES + 4)), _rows(16 * digits), _rows(4), keys, ones, far)
    work = len(sliced.wires.other) + 50 * sliced.atoms + 300 * digits
    pieces = np.array_split(np.arange(sliced.atoms, dtype=np.uint32), -(-work // WORK))
    step = max(1, WORK // work)
    done = 0
    while done < len(values):
        factors = _factors(values[done : done + step], sliced.unit, digits)
        for piece in pieces[:-1]:
            _sweeps(sliced.wires, x, piece, factors, scratch, sweep + done, False)
        short = stop and len(pieces) == 1
        done += _sweeps(sliced.wires, x, pieces[-1], factors, scratch, sweep + done, short)
        if stop and (some(scratch.bits[0]) if short else some(kept(sliced, x))):
            break
    return done


def kept(sliced: Sliced, x: Rows) -> Row:
    """Return the chains in which every clause is kept, as bits; shape (8,).

    Kept means true, or false where its weight is negative; a clause of weight 0 is kept anyhow. It ends as
    soon as every chain has lost one.
    """
    _check(sliced, x)
    left = ~_rows(1)
    number, calls = len(sliced.wires.negative), max(1, -(-4 * len(sliced.wires.literal) // WORK))
    for begin, end in pairwise(number * k // calls for k in range(calls + 1)):
        if not _keep(sliced.wires, begin, end, x, left):
            break
    return np.asarray(left[0])


def _check(sliced: Sliced, x: Rows) -> None:
    """Raise a ValueError if these are no states."""
    rows = isinstance(x, np.ndarray) and x.dtype == np.uint64 and x.shape == (sliced.atoms, WORDS)
    if not rows or not x.flags.c_contiguous:
        got = f"{x.dtype} of shape {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(
            f"expected contiguous uint64 rows of shape ({sliced.atoms}, {WORDS}), got {got}: pack the states"
        )


def _keys(seed: int, lane: int) -> Rows:
    """Return the keys of the generator's rounds, two rows each, and the numbers of the words."""
    keys = _rows(21)
    for half, (key, step) in enumerate(zip(key_of(seed), STEPS, strict=True)):
        keys[half:20:2] = ((key + np.arange(10, dtype=np.uint64) * step) & _LOW)[:, None]
    keys[20] = _word_of(lane) + np.arange(WORDS, dtype=np.uint64)
    return keys


def _factors(betas: NDArray[np.float64], unit: float, digits: int) -> NDArray[np.uint64]:
    """Return 2^64 · exp(-β · unit · value) for all values of all digits, shape (sweeps, 16 · digits).

    In place of the value 0 it is 0 where β is.
    """
    values = np.arange(16) * 16.0 ** np.arange(digits)[:, None]
    with np.errstate(all="ignore"):  # losses may be infinite, and chances as small as they like
        steps = betas * unit
        chances = np.exp(-steps[:, None] * values.ravel())
    chances[:, ::16] = (steps > 0)[:, None]
    return np.minimum(np.rint(chances * 2.0**64), np.nextafter(2.0**64, 0)).astype(np.uint64)
