"""The compiled inner loops, and nothing else: sweeps over the atoms of a network in 64 lanes at once.

Every loop over lanes is free of branches, so that it becomes vector instructions. Numba widens sums of small
integers to 64 bits: each is cast back at once.
"""

# Numba infers types of its own, and knows more of them than Python does.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import float64, int8, int32, int64, uint8, uint32, uint64

from lbm.reasoning.compiling.compiled import bring, carray, compiled, inlined, stack
from lbm.reasoning.engine.network import (
    ATOM,
    ATOM_NEGATED,
    BEFORE,
    BEFORE_NEGATED,
    CLAUSE,
    CLAUSES_FALSE,
    CLAUSES_TRUE,
    MANY,
    NEEDED,
    OTHERS_FALSE,
    OTHERS_TRUE,
    PARTS,
    SIMPLE,
)

# Constants of a kernel that another file has are compiled into it: whoever changes one touches this file too.
from lbm.reasoning.engine.plain import (
    FAR,
    HEAT_BATH,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
    METROPOLIS,
    POWERS,
    SCALE,
)
from lbm.reasoning.engine.streams import MULTIPLIERS, STEPS, key_of

JUMPS, FIELDS = 2, 3  # what to do with all atoms, beside the two rules

_M0, _M1 = MULTIPLIERS
_W0, _W1 = STEPS
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_NEAR = 4096  # gates whose counts stay in the cache by themselves
_AHEAD = 4  # atoms between one that is updated and one whose counts are asked for


# --- random words ------------------------------------------------------------------------------------


@compiled
def fill(words, key0, key1, quad, sweep, lane, stream):
    """Write the words of four atoms, from 4·quad, in 64 lanes: words has shape (4, 64). See streams.py."""
    for l in range(64):
        c0, c1, c2, c3 = uint64(quad), uint64(sweep), uint64(lane + l), uint64(stream)
        k0, k1 = uint64(key0), uint64(key1)
        for _ in range(10):
            p = _M0 * c0
            q = _M1 * c2
            c0 = (q >> _HALF) ^ c1 ^ k0
            c2 = (p >> _HALF) ^ c3 ^ k1
            c1 = q & _LOW
            c3 = p & _LOW
            k0 = (k0 + _W0) & _LOW
            k1 = (k1 + _W1) & _LOW
        words[0, l] = uint32(c0) >> uint32(1)
        words[1, l] = uint32(c1) >> uint32(1)
        words[2, l] = uint32(c2) >> uint32(1)
        words[3, l] = uint32(c3) >> uint32(1)


@compiled
def chance(z, rule, powers, p):
    """Write the probability to be true (heat bath) or to flip (Metropolis) in 64 lanes, to about 1e-13.

    ``z`` is β times the log-odds, or times the change of the log weight. exp(-a) = 2^-n · exp(-r), with n
    whole and |r| <= ln 2 / 2; exp(-r) by its series. ``powers[n]`` is 2^-n.
    """
    for l in range(64):
        a = min(abs(z[l]), FAR)
        n = int32(a * LOG2E + 0.5)
        r = -((a - n * LN2_HIGH) - n * LN2_LOW)
        e = 1.0 + r * (1.0 / 11.0)
        e = 1.0 + r * e * (1.0 / 10.0)
        e = 1.0 + r * e * (1.0 / 9.0)
        e = 1.0 + r * e * (1.0 / 8.0)
        e = 1.0 + r * e * (1.0 / 7.0)
        e = 1.0 + r * e * (1.0 / 6.0)
        e = 1.0 + r * e * (1.0 / 5.0)
        e = 1.0 + r * e * (1.0 / 4.0)
        e = 1.0 + r * e * (1.0 / 3.0)
        e = 1.0 + r * e * (1.0 / 2.0)
        e = (1.0 + r * e) * powers[n]
        if rule == METROPOLIS:
            p[l] = 0.5 if z[l] == 0.0 else (e if z[l] < 0.0 else 1.0)
        else:
            p[l] = (1.0 if z[l] > 0.0 else e) / (1.0 + e)


@compiled
def scatter(x, key0, key1, lane, stream):
    """Write a random bit to every atom of every lane: the lowest of its word at sweep 0."""
    words = np.empty((4, 64), np.uint32)
    for quad in range((len(x) + 3) // 4):
        fill(words, key0, key1, quad, 0, lane, stream)
        for r in range(min(4, len(x) - 4 * quad)):
            for l in range(64):
                x[4 * quad + r, l] = uint8(words[r, l] & uint32(1))


# --- gates ---------------------------------------------------------------------------------------------


@compiled
def tally(wires, first, child, sign, x, counts):
    """Write the count of every gate; x has shape (atoms, 64), counts (gates, 64)."""
    atoms = len(x)
    for g in range(len(first) - 1):
        for l in range(64):
            counts[g, l] = 0
        for c in range(first[g], first[g + 1]):
            if child[c] < atoms:
                i = child[c]
                wanted = uint8(1) if sign[c] > 0 else uint8(0)
                for l in range(64):
                    counts[g, l] = counts.dtype.type(counts[g, l] + counts.dtype.type(x[i, l] == wanted))
            else:
                k = child[c] - atoms
                low, mask, span = wires.low[k], wires.mask[k], wires.span[k]
                for l in range(64):
                    true = (counts.dtype.type(counts[k, l] - low) & mask) <= span
                    counts[g, l] = counts.dtype.type(counts[g, l] + counts.dtype.type(true == (sign[c] > 0)))


@compiled
def weighed(wires, counts, values, total):
    """Add the values of the gates that are true in each lane to ``total``, shape (64,)."""
    for g in range(len(values)):
        value = values[g]
        if value != 0.0:
            low, mask, span = wires.low[g], wires.mask[g], wires.span[g]
            for l in range(64):
                true = (counts.dtype.type(counts[g, l] - low) & mask) <= span
                total[l] += value if true else 0.0


# --- one atom ----------------------------------------------------------------------------------------


@inlined
def foresee(i, wires, weight, counts):
    """Ask for what atom i will need of its gates."""
    for j in range(wires.start[PARTS * i], wires.start[PARTS * i + PARTS]):
        bring(counts, wires.gate[j])
        bring(weight, wires.gate[j])
    for j in range(wires.pairs[PARTS * i], wires.pairs[PARTS * i + PARTS]):
        bring(counts, wires.upper[j])
        bring(counts, wires.under[j])
    for k in range(wires.program[i], wires.program[i + 1]):
        bring(counts, wires.step_gate[k])


@inlined
def weigh_pairs(i, wires, weight, counts, odds, true, false):
    """Add what the pairs of atom i weigh to its log-odds.

    The clause below turns with the atom where its other literals are false, and the gate above then turns
    with it: always, if that is a parity; where it has no other true child, if it is a clause.
    """
    zero = weight.dtype.type(0)
    one = counts.dtype.type(1)
    for j in range(wires.pairs[PARTS * i + CLAUSES_TRUE], wires.pairs[PARTS * i + CLAUSES_FALSE]):
        g, h = uint64(wires.upper[j]), uint64(wires.under[j])
        w = weight[g]
        for l in range(64):
            odds[l] -= w if (counts[h, l] == true[l]) & (counts[g, l] == false[l]) else zero
    for j in range(wires.pairs[PARTS * i + CLAUSES_FALSE], wires.pairs[PARTS * i + OTHERS_TRUE]):
        g, h = uint64(wires.upper[j]), uint64(wires.under[j])
        w = weight[g]
        for l in range(64):
            odds[l] += w if (counts[h, l] == false[l]) & (counts[g, l] == true[l]) else zero
    for j in range(wires.pairs[PARTS * i + OTHERS_TRUE], wires.pairs[PARTS * i + OTHERS_FALSE]):
        g, h = uint64(wires.upper[j]), uint64(wires.under[j])
        w = weight[g]
        loss = weight.dtype.type(-w)
        for l in range(64):
            gain = w if (counts[g, l] & one) == true[l] else loss
            odds[l] += gain if counts[h, l] == true[l] else zero
    for j in range(wires.pairs[PARTS * i + OTHERS_FALSE], wires.pairs[PARTS * i + PARTS]):
        g, h = uint64(wires.upper[j]), uint64(wires.under[j])
        w = weight[g]
        loss = weight.dtype.type(-w)
        for l in range(64):
            gain = w if (counts[g, l] & one) == true[l] else loss
            odds[l] += gain if counts[h, l] == false[l] else zero


@inlined
def move_pairs(i, wires, counts, true, false, change, d):
    """Bring the counts of the pairs of atom i up to date; see move."""
    none = counts.dtype.type(0)
    for part in range(PARTS):
        for j in range(wires.pairs[PARTS * i + part], wires.pairs[PARTS * i + part + 1]):
            g, h = uint64(wires.upper[j]), uint64(wires.under[j])
            if part & 1:
                for l in range(64):
                    d[l] = counts.dtype.type(int8(change[l])) if counts[h, l] == false[l] else none
                for l in range(64):
                    counts[h, l] = counts.dtype.type(counts[h, l] - int8(change[l]))
            else:
                for l in range(64):
                    d[l] = counts.dtype.type(int8(change[l])) if counts[h, l] == true[l] else none
                for l in range(64):
                    counts[h, l] = counts.dtype.type(counts[h, l] + int8(change[l]))
            if part == CLAUSES_FALSE or part == OTHERS_TRUE:  # noqa: SIM109 - for numba
                for l in range(64):
                    counts[g, l] = counts.dtype.type(counts[g, l] + d[l])
            else:
                for l in range(64):
                    counts[g, l] = counts.dtype.type(counts[g, l] - d[l])


@inlined
def weigh(i, wires, weight, x, counts, odds, true, false, d, turn, known, moved, turned):
    """Write the log-odds of atom i given all the others in ``odds``, and its values in ``true``, ``false``.

    For its program, ``moved`` gets by how much the count of each gate rises if the atom becomes true, and
    ``turned``, where a later step needs it, by how much the truth does.
    """
    zero = weight.dtype.type(0)
    none = counts.dtype.type(0)
    one = counts.dtype.type(1)
    for l in range(64):
        odds[l] = zero
        true[l] = x[i, l]
        false[l] = uint8(1) - x[i, l]
    for j in range(wires.start[PARTS * i + CLAUSES_TRUE], wires.start[PARTS * i + CLAUSES_FALSE]):
        g = uint64(wires.gate[j])
        w = weight[g]
        for l in range(64):
            odds[l] += w if counts[g, l] == true[l] else zero
    for j in range(wires.start[PARTS * i + CLAUSES_FALSE], wires.start[PARTS * i + OTHERS_TRUE]):
        g = uint64(wires.gate[j])
        w = weight[g]
        for l in range(64):
            odds[l] -= w if counts[g, l] == false[l] else zero
    for j in range(wires.start[PARTS * i + OTHERS_TRUE], wires.start[PARTS * i + OTHERS_FALSE]):
        g = uint64(wires.gate[j])
        low, mask, span = wires.low[g], wires.mask[g], wires.span[g]
        w = weight[g]
        for l in range(64):
            rest = counts.dtype.type(counts[g, l] - true[l] - low)
            without = (rest & mask) <= span
            with_it = (counts.dtype.type(rest + one) & mask) <= span
            odds[l] += w * weight.dtype.type(int8(int8(with_it) - int8(without)))
    for j in range(wires.start[PARTS * i + OTHERS_FALSE], wires.start[PARTS * i + PARTS]):
        g = uint64(wires.gate[j])
        low, mask, span = wires.low[g], wires.mask[g], wires.span[g]
        w = weight[g]
        for l in range(64):
            rest = counts.dtype.type(counts[g, l] - false[l] - low)
            without = (rest & mask) <= span
            with_it = (counts.dtype.type(rest + one) & mask) <= span
            odds[l] -= w * weight.dtype.type(int8(int8(with_it) - int8(without)))
    if wires.pairs[PARTS * i] < wires.pairs[PARTS * i + PARTS]:
        weigh_pairs(i, wires, weight, counts, odds, true, false)
    base = wires.program[i]
    if base == wires.program[i + 1]:
        return
    for l in range(64):
        known[l] = counts.dtype.type(none - true[l])  # all ones where the atom is true
    for k in range(base, wires.program[i + 1]):
        g = uint64(wires.step_gate[k])
        at = uint64(k - base)  # unsigned: a negative index would have to be looked out for in every lane
        low, mask, span = wires.low[g], wires.mask[g], wires.span[g]
        kind = wires.step_kind[k]
        plain = kind & SIMPLE
        if kind & CLAUSE and plain == ATOM:
            for l in range(64):
                turn[l] = counts.dtype.type(counts[g, l] == true[l])
        elif kind & CLAUSE and plain == ATOM_NEGATED:
            for l in range(64):
                turn[l] = counts.dtype.type(none - counts.dtype.type(counts[g, l] == false[l]))
        elif kind & CLAUSE and plain < MANY:
            if plain == BEFORE:
                for l in range(64):
                    d[l] = turn[l]
            else:
                for l in range(64):
                    d[l] = counts.dtype.type(none - turn[l])
            for l in range(64):
                without = counts.dtype.type(counts[g, l] - (d[l] & known[l]))
                others = min(without, counts.dtype.type(without + d[l]))
                turn[l] = d[l] if others == none else none
        else:
            if plain < BEFORE:
                step = counts.dtype.type(1 - 2 * plain)
                for l in range(64):
                    d[l] = step
            elif plain == BEFORE:
                for l in range(64):
                    d[l] = turn[l]
            elif plain == BEFORE_NEGATED:
                for l in range(64):
                    d[l] = counts.dtype.type(none - turn[l])
            else:
                for l in range(64):
                    d[l] = none
                for m in range(wires.step_kids[k], wires.step_kids[k + 1]):
                    slot, step = wires.kid_slot[m], counts.dtype.type(wires.kid_sign[m])
                    from_step = uint64(slot)
                    if slot < 0:
                        for l in range(64):
                            d[l] = counts.dtype.type(d[l] + step)
                    elif wires.kid_sign[m] > 0:
                        for l in range(64):
                            d[l] = counts.dtype.type(d[l] + turned[from_step, l])
                    else:
                        for l in range(64):
                            d[l] = counts.dtype.type(d[l] - turned[from_step, l])
            for l in range(64):
                without = counts.dtype.type(counts[g, l] - (d[l] & known[l]) - low)
                with_it = counts.dtype.type(without + d[l])
                turn[l] = counts.dtype.type((with_it & mask) <= span) - counts.dtype.type(
                    (without & mask) <= span
                )
        if kind & NEEDED:
            for l in range(64):
                turned[at, l] = turn[l]
        if plain >= BEFORE:
            for l in range(64):
                moved[at, l] = d[l]
        w = weight[g]
        if w != zero:
            for l in range(64):
                odds[l] += w * weight.dtype.type(int8(turn[l]))


@inlined
def move(i, wires, counts, true, false, change, d, up, down, moved):
    """Bring all counts up to date; ``change`` is 1 where atom i became true, 255 where false, else 0.

    ``true`` and ``false`` are as :func:`weigh` left them, ``d`` is scratch.
    """
    for part in range(PARTS * i, PARTS * i + PARTS, 2):
        for j in range(wires.start[part], wires.start[part + 1]):
            g = uint64(wires.gate[j])
            for l in range(64):
                counts[g, l] = counts.dtype.type(counts[g, l] + int8(change[l]))
        for j in range(wires.start[part + 1], wires.start[part + 2]):
            g = uint64(wires.gate[j])
            for l in range(64):
                counts[g, l] = counts.dtype.type(counts[g, l] - int8(change[l]))
    if wires.pairs[PARTS * i] < wires.pairs[PARTS * i + PARTS]:
        move_pairs(i, wires, counts, true, false, change, d)
    base = wires.program[i]
    if base == wires.program[i + 1]:
        return
    for l in range(64):
        up[l] = counts.dtype.type(-counts.dtype.type(change[l] == 1))
        down[l] = counts.dtype.type(-counts.dtype.type(change[l] > 1))
    for k in range(base, wires.program[i + 1]):
        g = uint64(wires.step_gate[k])
        plain = wires.step_kind[k] & SIMPLE
        if plain == ATOM:
            for l in range(64):
                counts[g, l] = counts.dtype.type(counts[g, l] + int8(change[l]))
        elif plain == ATOM_NEGATED:
            for l in range(64):
                counts[g, l] = counts.dtype.type(counts[g, l] - int8(change[l]))
        else:
            at = uint64(k - base)
            for l in range(64):
                counts[g, l] = counts.dtype.type(
                    counts[g, l] + (moved[at, l] & up[l]) - (moved[at, l] & down[l])
                )


@compiled
def keeps(wires, counts, firm, l):
    """Return whether lane l has every firm gate as it must be."""
    for k in range(len(firm)):
        g = firm[k] if firm[k] >= 0 else -1 - firm[k]
        off = counts.dtype.type(counts[g, l] - wires.low[g]) & wires.mask[g]
        if (off <= wires.span[g]) != (firm[k] >= 0):
            return False
    return True


# --- all atoms ---------------------------------------------------------------------------------------


@compiled
def run(wires, weight, state, order, starts, betas, chances, scratch, luck, rule, seen, out):
    """Do what :func:`sweeps`, :func:`jumps` or :func:`fields` say: one loop, which is compiled once.

    What atoms need, which is most of the code, is the same for all three.

    Parameters
    ----------
    wires, weight
        A network's arrays, and what each of its gates adds to the log weight where it is true.
    state
        States, counts of gates and log weights, shapes (atoms, 64), (gates, 64) and (64,). They are changed.
    order, starts
        The atoms in turn; for jumps, group k is ``order[starts[k]:starts[k + 1]]``.
    betas
        Shape (sweeps, 64).
    chances
        Tables, clips and powers. Row s of the tables holds 2^31 · probability for odds from -clips[s] to
        clips[s], in whole numbers: to be true (heat bath), or to flip with this change (Metropolis). Where
        clips[s] < 0, as it must be if lanes differ in β, probabilities are worked out, with powers[n] = 2^-n.
    scratch
        Two places of shape (longest program, 64).
    luck
        The two halves of the seed, the number of the first sweep, and that of the first chain.
    seen
        The gates that must be true, or, as -1 - gate, false; the best log weight so far and its state, shapes
        (1,) and (atoms,), which are changed; and the log weight at which sweeps end.
    out
        Where fields are written.
    """
    x, counts, total = state
    tables, clips, powers = chances
    moved, turned = scratch
    key0, key1, sweep, lane = luck
    firm, best, best_x, goal = seen
    odds = carray(stack(weight, 64), (64,))
    true = carray(stack(x, 64), (64,))
    false = carray(stack(x, 64), (64,))
    change = carray(stack(x, 64), (64,))
    back = carray(stack(x, 64), (64,))
    d = carray(stack(counts, 64), (64,))
    turn = carray(stack(counts, 64), (64,))
    known = carray(stack(counts, 64), (64,))
    up = carray(stack(counts, 64), (64,))
    down = carray(stack(counts, 64), (64,))
    words = carray(stack(clips, 256), (4, 64)).view(np.uint32)
    z = carray(stack(betas, 64), (64,))
    p = carray(stack(betas, 64), (64,))
    beta = carray(stack(betas, 64), (64,))
    gain = carray(stack(total, 64), (64,))
    far = len(counts) > _NEAR
    for s in range(len(betas)):
        quad = int64(-1)
        clip = clips[s]
        for l in range(64):
            beta[l] = betas[s, l]
            gain[l] = total.dtype.type(0)
        group, forth = int64(0), True  # of jumps: flips are made, or unmade
        while group < len(starts) - 1 and starts[group] == starts[group + 1]:
            group += 1
        o = int64(starts[group])
        while o < starts[-1]:
            i = uint64(order[o])
            if far and o + _AHEAD < starts[-1]:
                foresee(uint64(order[o + _AHEAD]), wires, weight, counts)
            place = int64(group >> 2) if rule == JUMPS else int64(i >> uint64(2))
            if place != quad and rule != FIELDS:
                quad = place
                fill(words, key0, key1, quad, sweep + s, lane, 2 if rule == JUMPS else 0)
            weigh(i, wires, weight, x, counts, odds, true, false, d, turn, known, moved, turned)
            if rule == FIELDS:
                for l in range(64):
                    out[o, l] = odds[l]
                o += 1
                continue
            if rule == JUMPS:
                if forth:
                    for l in range(64):
                        change[l] = uint8(false[l] - true[l])
                        x[i, l] = false[l]
                    for l in range(64):
                        gain[l] += odds[l] * int8(change[l])
                else:
                    for l in range(64):
                        change[l] = uint8(false[l] - true[l]) if back[l] else uint8(0)
                    for l in range(64):
                        x[i, l] = uint8(x[i, l] + change[l])
            else:
                r = i & uint64(3)
                if clip >= 0:
                    for l in range(64):
                        n = int64(odds[l])
                        if rule == METROPOLIS:
                            n = -n if true[l] else n
                        n = min(max(n, -clip), clip) + clip
                        change[l] = uint8(words[r, l] < tables[s, n])
                else:
                    for l in range(64):
                        z[l] = beta[l] * float64(odds[l])
                        if rule == METROPOLIS:
                            z[l] = -z[l] if true[l] else z[l]
                    chance(z, rule, powers, p)
                    for l in range(64):
                        change[l] = uint8((words[r, l] + 0.5) * SCALE < p[l])
                if rule == METROPOLIS:
                    for l in range(64):
                        change[l] = change[l] ^ true[l]
                some = uint8(0)
                for l in range(64):
                    x[i, l] = change[l]
                    change[l] = uint8(change[l] - true[l])  # 0, 1, or -1 as 255
                    some |= change[l]
                if some == 0:
                    o += 1
                    continue
                for l in range(64):
                    total[l] += odds[l] * int8(change[l])
            move(i, wires, counts, true, false, change, d, up, down, moved)
            if rule != JUMPS:
                o += 1
                continue
            if forth and o + 1 < starts[group + 1]:
                o += 1
                continue
            if forth:
                for l in range(64):
                    z[l] = beta[l] * float64(gain[l])
                # Not Metropolis's rule, which leaps at 0: sums made forth and back differ in their last
                # digits, and a flip that is neutral one way would be taken half as often as the other way.
                chance(z, HEAT_BATH, powers, p)
                some = uint8(0)
                for l in range(64):
                    back[l] = uint8((words[group & 3, l] + 0.5) * SCALE >= p[l])
                    some |= back[l]
                for l in range(64):
                    total[l] += total.dtype.type(0) if back[l] else gain[l]
                    gain[l] = total.dtype.type(0)
                if some:
                    forth = False  # from the last flip back
                    continue
            elif o > starts[group]:
                o -= 1
                continue
            forth = True
            group += 1
            while group < len(starts) - 1 and starts[group] == starts[group + 1]:
                group += 1
            o = int64(starts[group])
        if rule >= JUMPS:
            continue
        for l in range(64):
            if total[l] > best[0] and keeps(wires, counts, firm, l):
                best[0] = total[l]
                for i in range(len(best_x)):
                    best_x[i] = x[i, l]
        if best[0] >= goal:
            return s + 1
    return len(betas)


def sweeps(lanes, order, betas, tables, clips, rule, best, goal):
    """Do one sweep for every row of β: each atom of ``order`` in turn takes a new value given all the others.

    After a sweep, the state with the greatest log weight so far that keeps all hard formulae is copied; if it
    reaches the goal, no further sweep is begun. Returns the number of sweeps done. See :func:`run`.
    """
    return _run(lanes, order, _all(order), betas, rule, (tables, clips), (best, goal))


def jumps(lanes, members, starts, betas):
    """Offer each lane to flip all atoms of a group at once, for every group in turn, by the heat-bath rule.

    The groups are ``members[starts[k]:starts[k + 1]]``, and ``betas`` has shape (64,). Their flips are made
    one after the other, which adds up what they change, and unmade where the whole is refused. A group is the
    same from both sides, so the distribution is left as it is.
    """
    _run(lanes, members, starts, betas.reshape(1, 64), JUMPS)


def fields(lanes, order, out):
    """Write the log-odds of each atom of ``order`` given all the others in ``out``, shape (atoms, 64)."""
    _run(lanes, order, _all(order), np.zeros((1, 64)), FIELDS, out=out)


def _run(lanes, order, starts, betas, rule, tables=None, best=None, out=None):
    """Run chains, those of lanes.py: by default without tables, and without looking for a best state."""
    network, weight = lanes.network, lanes.weights.numbers
    state = lanes.x, lanes.counts, lanes.total
    chances = *(tables or (np.zeros((1, 1), np.uint32), np.full(1, -1, np.int32))), POWERS
    scratch = tuple(np.zeros((network.longest, 64), lanes.counts.dtype) for _ in range(2))
    luck = *key_of(lanes.seed), lanes.sweep, lanes.lane
    top, goal = best or (np.zeros(1, lanes.total.dtype), lanes.total.dtype.type(0))
    seen = network.firm, top, lanes.best_x, goal
    out = np.empty((0, 64), weight.dtype) if out is None else out
    return run(network.wires, weight, state, order, starts, betas, chances, scratch, luck, rule, seen, out)


def _all(order):
    """Return the starts of a single group of all atoms."""
    return np.array([0, len(order)], np.int32)
