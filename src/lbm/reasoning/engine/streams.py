"""Random numbers by position: the word for (seed, stream, chain, sweep, atom) is the same whoever asks.

Philox4x32-10 (a counter-based generator): the counter is the position, the key is the seed. Streams of
different chains cannot overlap, and chains need no state of their own. [Salmon, Moraes, Dror, Shaw: Parallel
random numbers: as easy as 1, 2, 3; 2011]

A word has 31 random bits; it stands for the number u = (word + 1/2) / 2^31, never 0 and never 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

BITS: Final = 31
"""Random bits of a word."""

MAX_SWEEPS: Final = 1 << 32
"""Sweeps of a chain, after which positions would repeat."""

MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
STEPS: Final = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))  # by which the key changes from round to round
_ROUNDS: Final = 10
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)


def philox(counter: Sequence[ArrayLike], key: Sequence[ArrayLike]) -> NDArray[np.uint32]:
    """Return the four 32-bit words of each counter, shape (4, ...); a counter is four arrays."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(part, np.uint64) for part in counter))
    k0, k1 = np.asarray(key, np.uint64)
    for _ in range(_ROUNDS):
        p, q = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c2 = q >> _HALF, p >> _HALF
        c0 ^= c1
        c0 ^= k0
        c2 ^= c3
        c2 ^= k1
        q &= _LOW
        p &= _LOW
        c1, c3 = q, p
        k0, k1 = (k0 + STEPS[0]) & _LOW, (k1 + STEPS[1]) & _LOW
    return np.stack([part.astype(np.uint32) for part in (c0, c1, c2, c3)])


def uniforms(numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the numbers between 0 and 1 that words stand for."""
    return np.asarray((numbers + 0.5) * 2.0**-BITS)


def key_of(seed: int) -> tuple[np.uint64, np.uint64]:
    """Return the two halves of a seed."""
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"expected a seed from 0 to 2^64 - 1, got {seed}")
    return np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)


def seed_from(rng: np.random.Generator) -> int:
    """Return a seed drawn from a generator."""
    return int(rng.integers(1 << 64, dtype=np.uint64))
