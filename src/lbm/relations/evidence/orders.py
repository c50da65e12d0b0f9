"""Strict total orders: where rules say that a relation is one, worlds are permutations.

The rules are recognised by what they leave open, whatever words they were written in: the two directions of
a pair are an atom and its negation, and of every three things the two circles are forbidden, nothing else.

- *Exactly*: an order is built from its first thing to its last. Sets of things that may come first are few
  where labels settle most pairs: the ways up to each set and the ways on from it give every marginal.
- *By chains*: a thing is taken out and put back at a place drawn from its conditional distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.compiling.compiled import compiled
from lbm.reasoning.engine.network import LANES
from lbm.relations.evidence.rules import term_parts

MAX_SETS: Final = 1 << 19
"""Sets of first things up to which orders are counted exactly."""

MAX_THINGS: Final = 63
"""Things up to which a set of them is one whole number."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A component of open atoms that says: this is a strict total order of things.

    Attributes
    ----------
    things
        How many there are.
    before, behind
        Shape (atoms here,): atom k is true where thing before[k] stands before thing behind[k].
    gain
        Shape (things, things): the whole weight that is gained where the first stands before the second.
    """

    things: int
    before: Ints
    behind: Ints
    gain: Ints

    def ends(self, atom: int, value: bool) -> tuple[int, int]:
        """Return the things that stand one before the other where an atom has a value."""
        first, second = int(self.before[atom]), int(self.behind[atom])
        return (first, second) if value else (second, first)


def recognise(clauses: Clauses, names: Sequence[tuple[str, bool]]) -> Order | None:
    """Return the order that these clauses describe; None: they describe none, or more than an order.

    Parameters
    ----------
    clauses
        One component of what rules leave open.
    names
        For each atom of the component an atom of the rules, and whether it is the negation of that one.
    """
    ends = _ends(names)
    if ends is None:
        return None
    before, behind, number = ends
    pairs = np.minimum(before, behind) * number + np.maximum(before, behind)
    if len(np.unique(pairs)) != len(pairs) or 2 * len(pairs) != number * (number - 1):
        return None
    sizes = np.diff(clauses.starts)
    hard = clauses.weights == 0
    triples = number * (number - 1) * (number - 2) // 3
    if (sizes[hard] != 3).any() or hard.sum() != triples or (sizes[~hard] != 1).any():
        return None
    if not _circles(clauses, clauses.starts[:-1][hard], before, behind):
        return None
    gain = np.zeros((number, number), np.int64)
    order = Order(number, before, behind, gain)
    for start, weight in zip(
        clauses.starts[:-1][~hard].tolist(), clauses.weights[~hard].tolist(), strict=True
    ):
        literal = int(clauses.literals[start])
        gain[order.ends(abs(literal) - 1, literal > 0)] += weight
    return order


def _ends(names: Sequence[tuple[str, bool]]) -> tuple[Ints, Ints, int] | None:
    """Return the things that every atom is about, in the order in which it wants them, and their number."""
    things: dict[str, int] = {}
    before, behind, predicates = [], [], set()
    for name, negated in names:
        parts = term_parts(name)
        if parts is None or len(parts[1]) != 2:
            return None
        predicates.add(parts[0])
        first, second = (things.setdefault(constant, len(things)) for constant in parts[1])
        before.append(second if negated else first)
        behind.append(first if negated else second)
    if len(predicates) != 1 or len(things) < 3:
        return None
    return np.array(before, np.int64), np.array(behind, np.int64), len(things)


def _circles(clauses: Clauses, starts: Ints, before: Ints, behind: Ints) -> bool:
    """Return whether each clause forbids one circle of three things; equal clauses are one already."""
    literals = clauses.literals[starts[:, None] + np.arange(3)].astype(np.int64)
    atoms = np.abs(literals) - 1
    # What a clause forbids: all of its literals false.
    tails = np.where(literals < 0, before[atoms], behind[atoms])
    heads = np.where(literals < 0, behind[atoms], before[atoms])
    tails.sort(axis=1)
    heads.sort(axis=1)
    return bool((tails == heads).all() and (np.diff(tails, axis=1) > 0).all())


def closure(things: int, known: Iterable[tuple[int, int]]) -> Bools | None:
    """Return which things must stand before which, shape (things, things), given pairs; None: a circle."""
    must = np.zeros((things, things), bool)
    for pair in known:
        must[pair] = True
    for middle in range(things):
        must |= must[:, [middle]] & must[[middle]]
    return None if must.diagonal().any() else must


def blocks(must: Bools) -> list[Ints]:
    """Return the things in groups, each as a whole before the next: pairs of different groups are settled."""
    line = np.argsort(must.sum(axis=0), kind="stable")  # what must precede others has fewer before it
    sorted_ = must[np.ix_(line, line)]
    cuts = [k for k in range(1, len(line)) if sorted_[:k, k:].all()]
    return [np.sort(group) for group in np.split(line, cuts)]


# --- exactly -------------------------------------------------------------------------------------------


def exactly(must: Bools, log_gain: Floats) -> Floats | None:
    """Return P(row before column), shape (things, things); None: there are more than MAX_SETS sets.

        P(order) ∝ exp(Σ log_gain[i, j] over i before j),   orders that keep ``must``

    With f(S) the weight of all ways to put the things of S first, g(S) that of all ways to go on behind them
    and c(S, a) what the place of a behind S gives, a stands before b in the part Σ f(S)·c(S, a)·g(S ∪ {a})
    of all, over the sets S without a and b that a may follow.
    """
    things = len(must)
    alone = int((~must.any(axis=0) & ~must.any(axis=1)).sum())
    if things > MAX_THINGS or 2.0**alone > MAX_SETS:
        return None
    needs = (must * (1 << np.arange(things))[:, None]).sum(axis=0)  # of each thing: those that come before
    levels, up, total = [np.zeros(1, np.int64)], [np.zeros(1)], 1
    for size in range(1, things + 1):
        rows, added, gained = _steps(levels[-1], needs, log_gain)
        if total + len(rows) // size > MAX_SETS:  # a set of this size is reached from that many at most
            return None
        new, at = np.unique(levels[-1][rows] | (1 << added), return_inverse=True)
        total += len(new)
        if total > MAX_SETS:
            return None
        up.append(_log_sums(up[-1][rows] + gained, at, len(new)))
        levels.append(new)
    down = np.zeros(1)
    chances = np.zeros((things, things))
    for level in range(things - 1, -1, -1):
        sets = levels[level]
        rows, added, gained = _steps(sets, needs, log_gain)
        onward = gained + down[np.searchsorted(levels[level + 1], sets[rows] | (1 << added))]
        shares = np.exp(up[level][rows] + onward - up[-1][0])
        outside = 1.0 - ((sets[:, None] >> np.arange(things)) & 1)
        for thing in np.unique(added).tolist():
            mine = added == thing
            chances[thing] += shares[mine] @ outside[rows[mine]]
        down = _log_sums(onward, rows, len(sets))
    np.fill_diagonal(chances, 0.0)
    chances[must], chances[must.T] = 1.0, 0.0
    return np.clip(chances, 0.0, 1.0)


def _steps(sets: Ints, needs: Ints, log_gain: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the ways on from sets of first things: which set, which thing comes next, what that gives."""
    inside = (sets[:, None] >> np.arange(len(needs))) & 1
    rows, added = np.nonzero((inside == 0) & ((sets[:, None] & needs) == needs))
    gained = (inside @ log_gain)[rows, added] if log_gain.any() else np.zeros(len(rows))
    return rows, added, gained


def _log_sums(logs: Floats, groups: Ints, number: int) -> Floats:
    """Return log Σ exp of each group; no group is empty."""
    most = np.full(number, -np.inf)
    np.maximum.at(most, groups, logs)
    return np.asarray(most + np.log(np.bincount(groups, np.exp(logs - most[groups]), number)))


def is_even(must: Bools, log_gain: Floats, a: int, b: int) -> bool:
    """Return whether exchanging two things changes nothing, so that either is first as likely as not."""
    swap = np.arange(len(must))
    swap[[a, b]] = b, a
    turn = log_gain - log_gain.T
    same = must == must[np.ix_(swap, swap)]
    return bool(same.all() and (turn == turn[np.ix_(swap, swap)]).all())


# --- by chains -----------------------------------------------------------------------------------------


def walk_orders(must: Bools, log_gain: Floats, rng: np.random.Generator) -> Iterator[tuple[Ints, Floats]]:
    """Yield the places of all things in each chain, shape (LANES, things), and log weights, shape (LANES,).

    There is one yield a sweep, in which every thing is put back once. Chains begin in random orders.
    """
    things = len(must)
    line = np.array([_random_order(must, rng) for _ in range(LANES)])
    turn = np.ascontiguousarray(log_gain.T - log_gain)  # [i, j]: what i gains by standing behind j
    while True:
        put_back(line, must, turn, rng.permutation(things), rng.random((LANES, things)))
        places = np.argsort(line, axis=1)
        first = places[:, :, None] < places[:, None, :]
        yield places, np.einsum("kij,ij->k", first, log_gain)


def _random_order(must: Bools, rng: np.random.Generator) -> Ints:
    """Return an order that keeps ``must``: again and again one of the things that nothing has to precede."""
    left = must.sum(axis=0)
    found: list[int] = []
    waiting = np.flatnonzero(left == 0).tolist()
    while waiting:
        thing = waiting.pop(int(rng.integers(len(waiting))))
        found.append(thing)
        after = np.flatnonzero(must[thing])
        left[after] -= 1
        waiting += after[left[after] == 0].tolist()
    return np.array(found, np.int64)


@compiled
def put_back(line: Ints, must: Bools, turn: Floats, chosen: Ints, uniform: Floats) -> None:
    """Take every thing out of every order and put it back, by heat bath over the places it may have."""
    lanes, things = line.shape
    logs = np.zeros(things)
    for lane in range(lanes):
        for thing in chosen:
            place = 0
            while line[lane, place] != thing:
                place += 1
            for k in range(place, things - 1):
                line[lane, k] = line[lane, k + 1]
            low, high = 0, things - 1
            for k in range(things - 1):
                if must[line[lane, k], thing]:
                    low = k + 1
                if must[thing, line[lane, k]]:
                    high = k
                    break
            most = logs[low] = 0.0
            for k in range(low, high):
                logs[k + 1] = logs[k] + turn[thing, line[lane, k]]
                most = max(most, logs[k + 1])
            total = 0.0
            for k in range(low, high + 1):
                logs[k] = np.exp(logs[k] - most)  # a weight from here on
                total += logs[k]
            rest = uniform[lane, thing] * total
            target = low
            for k in range(low, high + 1):
                target = k
                rest -= logs[k]
                if rest < 0.0:
                    break
            for k in range(things - 1, target, -1):
                line[lane, k] = line[lane, k - 1]
            line[lane, target] = thing
