"""The compiled inner loop of block Gibbs in single precision: inputs become states in one pass."""

# Kernels are typed by numba, by what they are called with; and l is the number of a lane.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, unreachable"

from __future__ import annotations

import numpy as np
from numba import float32, int32, types

from lbm.reasoning.compiling.compiled import carray, compiled, inlined, same_bits, stack
from lbm.reasoning.engine.dense import EXP, HALF, LAST, LN2_HIGH, LN2_LOW, LOG2E, ONE, ONES, ROUND, SCALE
from lbm.reasoning.engine.kernels import fill

_E6, _E5, _E4, _E3, _E2, _E1, _E0 = EXP


as_single = same_bits(types.int32, types.float32)


@inlined
def growth(a):
    """Return exp(a) for a from 0 to 60, to about 3e-7 of itself.

    exp(a) = 2^n · exp(r) with n whole and |r| <= ln 2 / 2; exp(r) by the polynomial of degree 6 that meets it
    at the seven Chebyshev points.
    """
    n = (a * LOG2E + ROUND) - ROUND
    r = (a - n * LN2_HIGH) - n * LN2_LOW
    e = _E6 * r + _E5
    e = e * r + _E4
    e = e * r + _E3
    e = e * r + _E2
    e = e * r + _E1
    e = e * r + _E0
    return e * as_single(int32(int32(ONE) + int32(int32(n) << int32(23))))


@compiled
def settle(z, bias, key0, key1, step, stream):
    """Turn the inputs of units, shape (units, lanes), into their states, in place.

    A unit is on where u < σ(z). The less likely value has the probability q = 1 / (1 + e^|z|), and is taken
    where v · (1 + e^|z|) < 1, with v = u or, if it is 0, v = 1 - u: so small probabilities are compared with
    small numbers, of which floats have many.
    """
    words = carray(stack(z, 256), (4, 64)).view(np.uint32)
    units, lanes = z.shape
    for quad in range((units + 3) // 4):
        for begin in range(0, lanes, 64):
            fill(words, key0, key1, quad, step, begin, stream)
            for r in range(min(4, units - 4 * quad)):
                b = bias[4 * quad + r]
                row = z[4 * quad + r, begin : begin + 64]
                for l in range(len(row)):
                    y = row[l] + b
                    on = y > float32(0.0)
                    word = int32(int32(words[r, l]) ^ (int32(ONES) if on else int32(0)))
                    v = (float32(word) + HALF) * SCALE
                    rare = v * (float32(1.0) + growth(min(abs(y), LAST))) < float32(1.0)
                    row[l] = float32(on != rare)
