"""The compiled inner loops of chains on free energies: one atom after another, in 64 lanes at once."""

# Kernels are typed by numba, by what they are called with; and l is the number of a lane.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, unreachable"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int8, int64, types, uint8, uint64

from lbm.reasoning.compiling.compiled import carray, compiled, inlined, same_bits, stack

# Constants of a kernel that another file has are compiled into it: whoever changes one touches this file too.
from lbm.reasoning.engine.energy_plain import FRACTION, FULL, LAST, ONE, ROUND, SQRT2, STEEP, TIE
from lbm.reasoning.engine.kernels import fill
from lbm.reasoning.engine.plain import LN2_HIGH, LN2_LOW, LOG2E, METROPOLIS, SCALE
from lbm.reasoning.engine.streams import key_of

as_float = same_bits(types.int64, types.float64)
as_bits = same_bits(types.float64, types.int64)


@inlined
def decay(a):
    """Return exp(-a) for a from 0 up, and exp(-700) past 700, to 4e-16 of itself.

    exp(-a) = 2^-n · exp(r) with n whole and |r| <= ln 2 / 2; exp(r) by the polynomial of degree 10 that meets
    it at the eleven Chebyshev points.
    """
    a = min(a, LAST)
    f = a * LOG2E + ROUND  # n, in the lowest bits of f
    n = f - ROUND
    r = n * LN2_LOW - (a - n * LN2_HIGH)
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
    return e * as_float(int64(ONE) - (as_bits(f) << int64(52)))


@inlined
def log_of_one_and(v):
    """Return log(1 + v) for v from 0 up, to 4e-16 of itself.

    1 + v = 2^n · m with m between 1/√2 and √2, log m = 2 artanh((m - 1)/(m + 1)) by its series; what rounding
    took from 1 + v is given back.
    """
    y = 1.0 + v
    lost = 1.0 - (y - v) if v > 1.0 else v - (y - 1.0)
    bits: Any = as_bits(y)
    m = as_float((bits & int64(FRACTION)) | int64(ONE))
    n = float64((bits >> int64(52)) - int64(1023))
    high = m > SQRT2
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
    return n * LN2_HIGH + (e + (n * LN2_LOW + lost / y))


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
        more = 1.0 + (size if size < STEEP else 0.0)
        full += more
        if full > FULL:
            fold(odds, up, down)
            full = more
        if size < STEEP:
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
        odds[l] = 0.0 if abs(odds[l]) < TIE * mass[l] else odds[l] * float64(step[l])


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


def sweeps(lanes, order, betas, scratch, rule):
    """Do one sweep for every β: each atom of ``order`` in turn takes a new value, given all the others."""
    state = lanes.visible, lanes.lacks, lanes.inputs, lanes.log_weight
    luck = *key_of(lanes.seed), lanes.sweep, lanes.lane
    run(lanes.network.wires, lanes.network.atoms, state, order, betas, scratch, luck, rule)


@compiled
def run(wires, declared, state, order, betas, scratch, luck, rule):
    """Do what :func:`sweeps` says.

    What lies on the stack is handed to inlined functions only: nobody else points there then, as far as the
    compiler can see, and loops over lanes need no checks for overlap.

    Parameters
    ----------
    wires, declared
        A network's arrays, and the number of its declared atoms.
    state
        States, literals not met, k·s and log weights, shapes (atoms, 64), (counted units, 64), (summed
        units, 64) and (64,). They are changed.
    betas
        Shape (sweeps, 64).
    luck
        The two halves of the seed, the number of the first sweep, and that of the first chain.
    """
    visible, lacks, inputs, total = state
    key0, key1, sweep, lane = luck
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
                if rule == METROPOLIS:
                    z = -z if true[l] else z
                e = decay(abs(z))
                if rule == METROPOLIS:
                    p = 0.5 if z == 0.0 else (e if z < 0.0 else 1.0)
                else:
                    p = (1.0 if z > 0.0 else e) / (1.0 + e)
                change[l] = uint8((words[r, l] + 0.5) * SCALE < p)
            if rule == METROPOLIS:
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
