"""Block Gibbs for dense machines, in single precision: products by BLAS, the rest in one pass over memory.

    p(h_j = 1 | x) = σ(Σ_i w_ij x_i + b_j),   then   p(x_i = 1 | h) = σ(Σ_j w_ij h_j + a_i)

It is the plain :func:`lbm.reasoning.sampling.machines.gibbs_step` for machines whose weights are all there,
as training leaves them. Rare values stay as rare as they should be: probabilities of both values are right to
about 1e-6 of themselves, times the size of the log-odds, down to 2^-31.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.reasoning.compiling.ready import loaded, runs_compiled
from lbm.reasoning.engine.plain import fill
from lbm.reasoning.engine.streams import key_of, seed_from

Clamped = Mapping[int, Any] | tuple[ArrayLike, ArrayLike] | None
"""Values that units keep: by number, or as numbers and values."""

Singles = NDArray[np.float32]

HIDDEN, VISIBLE = 0, 1  # the random streams of a call: its seed is its own

LAST = np.float32(60.0)  # log-odds past which no word can tell a probability from 0 or 1
LOG2E = np.float32(1.4426950408889634)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.1219444005469057e-4)  # their sum is ln 2
ROUND = np.float32(12582912.0)  # 1.5 · 2^23: a float of this size has no digits after the point
ONE = 0x3F800000  # the bits of 1.0
ONES = 0x7FFFFFFF  # the bits of a word
SCALE, HALF = np.float32(2.0**-31), np.float32(0.5)
EXP = tuple(
    np.float32(c)
    for c in (
        0.0013941108433972286,
        0.008375126398153377,
        0.04166635289677517,
        0.16666415514653274,
        0.5000000047117757,
        1.000000037716214,
        1.0,
    )
)  # of the polynomial that is exp near 0, the highest power first


def gibbs(
    weights: ArrayLike,
    visible_bias: ArrayLike,
    hidden_bias: ArrayLike,
    x: ArrayLike,
    steps: int,
    rng: np.random.Generator,
    *,
    clamped: Clamped = None,
) -> Singles:
    """Return the visible states after some steps of block Gibbs, 0.0 or 1.0, shape (visible units, lanes).

    Arrays of float32 in C order are taken as they are; others are copied once per call. ``x`` is not written
    to. Sums are rounded as the BLAS library and its threads please: now and then a state depends on them, and
    not on the seed alone.

    Parameters
    ----------
    weights, visible_bias, hidden_bias
        Shapes (visible units, hidden units), (visible units,) and (hidden units,). Confidence and temperature
        are in them: all are multiplied by c/τ.
    x
        Shape (visible units, lanes); fractions such as 0.5 are allowed.
    steps
        From 0 up. Between any two Ctrl-C is heard.
    rng
        One number is drawn from it: the seed of this call's streams, in which every unit, lane and step has
        its own place.
    clamped
        Visible units that keep a given value, as a mapping from row to value, or as a pair (rows, values);
        values have shape (rows,), or (rows, lanes) to differ by lane.
    """
    matrix = np.ascontiguousarray(weights, np.float32)
    if matrix.ndim != 2:
        raise ValueError(f"expected weights of shape (visible units, hidden units), got shape {matrix.shape}")
    a, b = np.ascontiguousarray(visible_bias, np.float32), np.ascontiguousarray(hidden_bias, np.float32)
    state = np.array(x, np.float32, order="C")
    for name, got, wanted in (
        ("visible_bias", a.shape, matrix.shape[:1]),
        ("hidden_bias", b.shape, matrix.shape[1:]),
        ("x", state.shape, (len(matrix), *state.shape[1:2])),
    ):
        if got != wanted:
            raise ValueError(f"expected {name} of shape {wanted} beside weights of {matrix.shape}, got {got}")
    if state.ndim != 2:
        raise ValueError(
            f"expected states of shape ({len(matrix)} visible units, lanes), got shape {state.shape}"
        )
    if steps < 0:
        raise ValueError(f"expected a number of steps from 0 up, got {steps}")
    rows, values = held(state, clamped)
    state[rows] = values
    key = key_of(seed_from(rng))
    hidden = np.empty((matrix.shape[1], state.shape[1]), np.float32)
    with np.errstate(invalid="ignore"):  # BLAS may read past the end of what it then does not use
        for step in range(steps):
            np.matmul(matrix.T, state, out=hidden)
            settle(hidden, b, *key, step, HIDDEN)
            np.matmul(matrix, hidden, out=state)
            settle(state, a, *key, step, VISIBLE)
            state[rows] = values
    return state


def held(x: NDArray[Any], clamped: Clamped) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows that are clamped, and their values as x has them, shape (rows, lanes) or (rows, 1)."""
    pair = (list(clamped), list(clamped.values())) if isinstance(clamped, Mapping) else clamped or ([], [])
    rows, values = np.asarray(pair[0], np.intp), np.asarray(pair[1], x.dtype)
    if rows.ndim != 1 or ((rows < 0) | (rows >= len(x))).any():
        raise ValueError(f"expected rows from 0 to {len(x) - 1} to be clamped, got {pair[0]}")
    if values.shape not in (rows.shape, (len(rows), x.shape[1])):
        raise ValueError(
            f"expected clamped values of shape {rows.shape} or {(len(rows), x.shape[1])}, "
            f"got shape {values.shape}"
        )
    return rows, values.reshape(len(rows), -1) if len(rows) else x[:0]


def settle(z: Singles, bias: Singles, key0: Any, key1: Any, step: int, stream: int) -> None:
    """Turn the inputs of units, shape (units, lanes), into their states, in place."""
    compiled = runs_compiled("dense")
    (loaded("dense_kernels").settle if compiled else settle_plainly)(z, bias, key0, key1, step, stream)


def settle_plainly(z: Singles, bias: Singles, key0: Any, key1: Any, step: int, stream: int) -> None:
    """Do what the kernel does, in NumPy: the same bits."""
    units, lanes = z.shape
    quads = np.arange(-(-units // 4))
    for begin in range(0, lanes, 64):
        part = z[:, begin : begin + 64]
        words = fill(key0, key1, quads, np.array([step]), begin, stream)[0, :units, : part.shape[1]]
        y = part + bias[:, None]
        on = y > 0
        word = words.astype(np.int32) ^ np.where(on, np.int32(ONES), np.int32(0))
        v = (word.astype(np.float32) + HALF) * SCALE
        rare = v * (np.float32(1.0) + _growth(np.minimum(np.abs(y), LAST))) < 1
        part[...] = on != rare


def _growth(a: Singles) -> Singles:
    """Return exp(a) for a from 0 to 60, as the kernel has it."""
    n = (a * LOG2E + ROUND) - ROUND
    r = (a - n * LN2_HIGH) - n * LN2_LOW
    e = EXP[0] * r + EXP[1]
    for term in EXP[2:]:
        e = e * r + term
    return np.asarray(e * (np.int32(ONE) + (n.astype(np.int32) << np.int32(23))).view(np.float32))
