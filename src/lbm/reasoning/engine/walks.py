"""Walks over clauses, one world at a time: for searching alone, since they keep no distribution.

*Tabu walks* (tabu search): each step is the best flip there is. What every flip would change is kept up to
date, so that a step goes through all atoms once and then only through the clauses of the atom it flips. An
atom just flipped rests for a while, unless flipping it back leads to a world better than all before. Up to
some hundred atoms nothing finds a world of little weight lost sooner; with more of them chains do.

*Focused walks* (ProbSAT): each step flips an atom of a clause that is false, chosen at random, and rather one
whose flip makes few other clauses false. Where all clauses are hard, nothing finds a model of random ones
sooner. [Balint, Schöning: Choosing probability distributions for stochastic local search and the role of make
versus break; 2012]
"""

# Kernels are typed by numba, by what they are called with.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy import float64, int64, uint64
from numpy.typing import NDArray

from lbm.arrays import Ints
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.compiling.ready import kernel
from lbm.reasoning.engine.streams import key_of

MAX_FLIPS: Final = 50_000
"""Flips of one call, which Ctrl-C has to wait for."""

REST: Final = (8, 15)
"""How many flips an atom rests at least, in walks of even and of odd number: none suits all theories."""

MORE: Final = 10
"""Below this is the number of flips, chosen at random, that it rests in addition."""

BREAKS: Final = (0.9, 2.06, 3.0)
"""Focused: an atom that breaks b clauses has the weight (first + b)^-second; past three literals, ^-third."""

STREAM: Final = 5
"""The random stream that walks draw from, beside those of chains."""


_MAX: Final = 1 << 62  # no sum of weights leaves 64 bits


class Ground(NamedTuple):
    """The arrays that kernels read: clauses, each literal once and none always true, and where atoms occur.

    Clause c is ``literals[starts[c]:starts[c + 1]]`` and costs ``weights[c]`` where it is false; a hard one
    costs more than any flip can gain otherwise. Atom i occurs in the clauses
    ``places[first[i]:first[i + 1]]``, negated where that is ~clause.
    """

    literals: NDArray[np.int32]
    starts: Ints
    weights: Ints
    first: Ints
    places: NDArray[np.int32]

    @property
    def atoms(self) -> int:
        """How many there are."""
        return len(self.first) - 1


class Walk(NamedTuple):
    """The best state of a walk, shape (atoms,), what it costs, and how many flips were made."""

    x: NDArray[np.uint8]
    cost: int
    flips: int


def ground_of(clauses: Clauses) -> Ground | None:
    """Return weighted clauses made ready; None: their weights are too large to be summed."""
    literals = np.empty_like(clauses.literals)
    starts, weights = np.zeros(len(clauses) + 1, np.int64), np.empty(len(clauses), np.int64)
    first, places = np.zeros(clauses.variables + 1, np.int64), np.empty(len(literals), np.int32)
    around = np.zeros(clauses.variables)
    size, number = _lay(
        clauses.literals, clauses.starts, clauses.weights, literals, starts, weights, first, places, around
    )
    hard = weights[:number] == 0
    cost = 1 + around.max(initial=0.0)  # more than all soft clauses of an atom together
    if cost * (hard.sum() + 1) + weights[:number].sum(dtype=np.float64) >= _MAX:
        return None
    weights[:number][hard] = int(cost)
    return Ground(literals[:size], starts[: number + 1], weights[:number], first, places[:size])


def walk(
    ground: Ground, x: NDArray[np.uint8], *, idle: int, seed: int, number: int = 0, flips: int = MAX_FLIPS
) -> Walk:
    """Return the best state met from ``x`` on, until ``idle`` flips in a row have found nothing better.

    ``number`` tells walks of one seed apart. Not more than ``flips`` are made, nor than MAX_FLIPS.
    """
    best, rest, most = x.copy(), REST[number % 2], min(flips, MAX_FLIPS)
    cost, done = _walk(*ground, x.copy(), best, idle, most, rest, MORE, *key_of(seed), number)
    return Walk(best, int(cost), int(done))


def focused(ground: Ground, x: NDArray[np.uint8], *, flips: int, seed: int, number: int = 0) -> Walk:
    """Return where a walk from ``x`` ends: in a world that keeps every clause, or after so many flips.

    ``cost`` is the number of clauses that are false; weights are not looked at. Not more than MAX_FLIPS are
    made, so that a longer walk goes on from its end with another number.
    """
    end = x.copy()
    long = len(ground.literals) > 3.5 * len(ground.weights)
    most = int(np.diff(ground.first).max(initial=0))
    weights = (BREAKS[0] + np.arange(most + 1)) ** -BREAKS[2 if long else 1]
    cost, done = _focused(*ground, end, min(flips, MAX_FLIPS), weights, *key_of(seed), number)
    return Walk(end, int(cost), int(done))


@kernel("walks")
def _lay(given, given_starts, given_weights, literals, starts, weights, first, places, around):
    """Write clauses without repeated literals, leaving out those that are always true; index their atoms."""
    atoms = len(first) - 1
    seen = np.zeros(atoms, np.int32)  # +c or -c: the clause, from 1, that has the atom already, and its sign
    size, number = 0, 0
    for c in range(len(given_weights)):
        begin, valid = size, False
        for place in range(given_starts[c], given_starts[c + 1]):
            literal = given[place]
            atom = abs(literal) - 1
            mark = c + 1 if literal > 0 else -(c + 1)
            if seen[atom] == -mark:
                valid = True
                break
            if seen[atom] != mark:
                seen[atom] = mark
                literals[size] = literal
                size += 1
        if valid:
            size = begin
            continue
        weights[number] = given_weights[c]
        number += 1
        starts[number] = size
        for place in range(begin, size):
            first[abs(literals[place])] += 1
            around[abs(literals[place]) - 1] += given_weights[c]
    for i in range(atoms):
        first[i + 1] += first[i]
    at = first[:-1].copy()
    for c in range(number):
        for place in range(starts[c], starts[c + 1]):
            atom = abs(literals[place]) - 1
            places[at[atom]] = c if literals[place] > 0 else ~c
            at[atom] += 1
    return size, number


@kernel("walks")
def _words(key0, key1, flip, number):
    """Return two random words of a flip, the first of Philox4x32-10 there, as in streams.py."""
    c0, c1, c2, c3 = uint64(0), uint64(flip), uint64(number), uint64(STREAM)
    k0, k1 = uint64(key0), uint64(key1)
    low, half = uint64(0xFFFFFFFF), uint64(32)
    for _ in range(10):
        p = uint64(0xD2511F53) * c0
        q = uint64(0xCD9E8D57) * c2
        c0 = (q >> half) ^ c1 ^ k0
        c2 = (p >> half) ^ c3 ^ k1
        c1 = q & low
        c3 = p & low
        k0 = (k0 + uint64(0x9E3779B9)) & low
        k1 = (k1 + uint64(0xBB67AE85)) & low
    return c0 >> uint64(1), c1 >> uint64(1)


@kernel("walks")
def _walk(
    literals, starts, weights, first, places, x, best, idle, most, rest, more, key0, key1, number
):  # numba takes no keyword-only arguments
    """Walk from x, and leave the best state in ``best``; return what it costs and the number of flips."""
    atoms, clauses = len(x), len(weights)
    true = np.zeros(clauses, np.int32)  # how many literals of a clause are
    last = np.zeros(clauses, np.int32)  # their atoms, added bit by bit: where one is true, that atom
    change = np.zeros(atoms, np.int64)  # of the cost, if the atom flips
    rested = np.zeros(atoms, np.int64)  # the flip from which on it may flip again
    cost = int64(0)
    for c in range(clauses):
        for place in range(starts[c], starts[c + 1]):
            atom = abs(literals[place]) - 1
            if (literals[place] > 0) == (x[atom] == 1):
                true[c] += 1
                last[c] ^= atom
        if true[c] == 0:
            cost += weights[c]
            for place in range(starts[c], starts[c + 1]):
                change[abs(literals[place]) - 1] -= weights[c]
        elif true[c] == 1:
            change[last[c]] += weights[c]
    least, since, flip = cost, 0, 0
    while since < idle and flip < most and atoms > 0:
        low, chosen = int64(_MAX), 0  # if all rest, the first one is woken
        for i in range(atoms):
            if change[i] < low and (rested[i] <= flip or cost + change[i] < least):
                low, chosen = change[i], i
        was = x[chosen] == 1
        x[chosen] ^= 1
        cost += change[chosen]
        for place in range(first[chosen], first[chosen + 1]):
            c = places[place]
            positive = c >= 0
            if not positive:
                c = ~c
            weight = weights[c]
            last[c] ^= chosen
            if positive == was:  # its literal is false now
                true[c] -= 1
                if true[c] == 0:
                    for other in range(starts[c], starts[c + 1]):
                        change[abs(literals[other]) - 1] -= weight
                    change[chosen] -= weight
                elif true[c] == 1:
                    change[last[c]] += weight
            else:
                true[c] += 1
                if true[c] == 1:
                    for other in range(starts[c], starts[c + 1]):
                        change[abs(literals[other]) - 1] += weight
                    change[chosen] += weight
                elif true[c] == 2:
                    change[last[c] ^ chosen] -= weight
        rested[chosen] = flip + 1 + rest + int64(_words(key0, key1, flip, number)[0]) % more
        flip += 1
        since += 1
        if cost < least:
            least, since = cost, 0
            for i in range(atoms):  # a slice would take as long to compile as the rest
                best[i] = x[i]
    return least, flip


@kernel("walks")
def _focused(literals, starts, weights, first, places, x, flips, table, key0, key1, number):
    """Walk on x until no clause is false or ``flips`` are made; return how many are false, and the flips."""
    clauses = len(weights)
    true = np.zeros(clauses, np.int32)  # how many literals of a clause are
    last = np.zeros(clauses, np.int32)  # their atoms, added bit by bit: where one is true, that atom
    breaks = np.zeros(len(x), np.int32)  # clauses that an atom alone keeps true
    false = np.empty(clauses, np.int32)  # the clauses that are, in any order, and where each stands there
    where = np.zeros(clauses, np.int32)
    size, flip = 0, 0
    for c in range(clauses):
        for place in range(starts[c], starts[c + 1]):
            atom = abs(literals[place]) - 1
            if (literals[place] > 0) == (x[atom] == 1):
                true[c] += 1
                last[c] ^= atom
        if true[c] == 0:
            false[size], where[c] = c, size
            size += 1
        elif true[c] == 1:
            breaks[last[c]] += 1
    while size > 0 and flip < flips:
        one, two = _words(key0, key1, flip, number)
        c = false[int64(one) * size >> 31]
        if starts[c] == starts[c + 1]:  # nothing makes an empty clause true
            return size, flip
        total = 0.0
        for place in range(starts[c], starts[c + 1]):
            total += table[breaks[abs(literals[place]) - 1]]
        left = (float64(two) + 0.5) * 2.0**-31 * total
        chosen = 0
        for place in range(starts[c], starts[c + 1]):
            chosen = abs(literals[place]) - 1
            left -= table[breaks[chosen]]
            if left <= 0.0:
                break
        was = x[chosen] == 1
        x[chosen] ^= 1
        for place in range(first[chosen], first[chosen + 1]):
            c = places[place]
            positive = c >= 0
            if not positive:
                c = ~c
            last[c] ^= chosen
            if positive == was:  # its literal is false now
                true[c] -= 1
                if true[c] == 0:
                    breaks[chosen] -= 1
                    false[size], where[c] = c, size
                    size += 1
                elif true[c] == 1:
                    breaks[last[c]] += 1
            else:
                true[c] += 1
                if true[c] == 1:
                    breaks[chosen] += 1
                    size -= 1
                    false[where[c]] = false[size]
                    where[false[size]] = where[c]
                elif true[c] == 2:
                    breaks[last[c] ^ chosen] -= 1
        flip += 1
    return size, flip
