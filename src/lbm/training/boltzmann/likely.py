"""Likely rows: a tree of facts (Chow and Liu, 1968) that says how likely each completion of a row is.

    q(x) = Π_f q(x_f | x_parent(f)),    p(k | x_seen) = Σ_missing q(x_missing | x_seen) p(k | x)

A fact is a column of 0 and 1, or all atoms of one column of the table. The tree is counted from training
rows, whatever the cost of training is: a discriminative cost says nothing about p(x), and a sum over
completions needs it. Facts that rows do not show to depend on each other are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from lbm.arrays import Bools, Floats, Ints
from lbm.training.boltzmann.facts import Fact, Groups, facts_of

CELLS: Final = 1 << 24
"""Entries of (rows x states) that are counted; of more rows some are taken, evenly."""

MAX_STATES: Final = 4096
"""States of all facts together up to which pairs are counted; beyond, facts are independent."""

RARE: Final = 0.05
"""What is added to the count of every state, so that none is impossible."""

PRIOR: Final = 1.0
"""Rows that a fact is thought to have been seen in beforehand, in each state of its parent."""


@dataclass(frozen=True, eq=False)
class Likely:
    """A tree of facts with its tables.

    Attributes
    ----------
    facts
        Columns and patterns of every fact; together they are all columns, each once.
    parents
        The number of each fact's parent, -1 for a root.
    tables
        log q(state | state of the parent), shape (states of the parent, states); of a root one row.
    """

    facts: tuple[Fact, ...]
    parents: Ints
    tables: tuple[Floats, ...]

    @cached_property
    def order(self) -> list[int]:
        """Facts, every parent before its children."""
        return _roots_first(self.parents)

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of every fact."""
        found: list[list[int]] = [[] for _ in self.facts]
        for fact, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                found[parent].append(fact)
        return found

    def states(self, x: Floats) -> Ints:
        """Return the state of every fact in each row, shape (rows, facts); -1 where it is missing."""
        return states_of(self.facts, x)

    def needed(self, missing: Bools, touching: Bools) -> list[int]:
        """Return the missing facts that matter, parents first.

        ``missing`` and ``touching`` say which facts are missing, and which anybody asks for. One that is not
        asked for, and has no descendant that is seen or asked for, is left out: it sums to 1.
        """
        kept = np.zeros(len(self.facts), dtype=bool)
        for fact in reversed(self.order):
            kept[fact] = not missing[fact] or touching[fact] or any(kept[c] for c in self.children[fact])
        return [fact for fact in self.order if missing[fact] and kept[fact]]

    def log_shares(self, seen: Ints, facts: Sequence[int], ways: Ints) -> Floats:
        """Return log q(way | what was seen), shape (rows, ways).

        ``seen`` are the states of rows that miss the same facts; ``ways`` are states of ``facts``, which are
        those :meth:`needed`, shape (ways, facts).
        """
        place = {fact: number for number, fact in enumerate(facts)}
        total = np.zeros((len(seen), len(ways)))
        for fact, number in place.items():
            parent, table = int(self.parents[fact]), self.tables[fact]
            if parent < 0:
                total += table[0, ways[:, number]]
            elif parent in place:
                total += table[ways[:, place[parent]], ways[:, number]]
            else:
                total += table[seen[:, parent]][:, ways[:, number]]
            for child in self.children[fact]:
                if child not in place and seen[0, child] >= 0:
                    total += self.tables[child].T[seen[:, child]][:, ways[:, number]]
        return np.asarray(total - np.logaddexp.reduce(total, axis=1, keepdims=True))

    def draw(self, seen: Ints, facts: Sequence[int], uniform: Floats) -> Ints:
        """Return draws of the missing ``facts`` given what was seen, shape (rows, draws, facts).

        ``uniform`` are random numbers of that shape. They are exact draws: sums go up the tree, draws down.
        """
        place = {fact: number for number, fact in enumerate(facts)}
        rows, draws = uniform.shape[:2]
        below: dict[
            int, Floats
        ] = {}  # fact -> log Σ of all that is seen below it, by its state: (rows, states)
        for fact in reversed(facts):
            total = np.zeros((rows, len(self.facts[fact][1])))
            for child in self.children[fact]:
                table = self.tables[child]
                if child in place:
                    total += np.logaddexp.reduce(table[None] + below[child][:, None, :], axis=2)
                elif seen[0, child] >= 0:
                    total += table.T[seen[:, child]]
            below[fact] = total
        found = np.zeros(uniform.shape, dtype=np.int64)
        for fact, number in place.items():
            parent, table = int(self.parents[fact]), self.tables[fact]
            if parent < 0:
                logs = np.broadcast_to((table[0] + below[fact])[:, None], (rows, draws, table.shape[1]))
            elif parent in place:
                logs = table[found[:, :, place[parent]]] + below[fact][:, None]
            else:
                logs = (table[seen[:, parent]] + below[fact])[:, None]
            shares = np.exp(logs - logs.max(axis=2, keepdims=True)).cumsum(axis=2)
            found[:, :, number] = (uniform[:, :, number, None] * shares[:, :, -1:] > shares[:, :, :-1]).sum(
                axis=2
            )
        return found

    def fill(self, x: Floats, facts: Sequence[int], ways: Ints) -> Floats:
        """Return rows with these facts filled in, shape (..., columns), for states of shape (..., facts)."""
        out = np.array(np.broadcast_to(x, (*ways.shape[:-1], x.shape[-1])))
        for number, fact in enumerate(facts):
            columns, patterns = self.facts[fact]
            out[..., columns] = patterns[ways[..., number]]
        return out

    def patterns(self, missing: Bools) -> Iterator[tuple[Ints, Bools]]:
        """Yield rows that miss the same facts, with those facts, for ``missing`` of shape (rows, facts)."""
        packed = np.packbits(missing, axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(which.ravel()))
        for number, end in enumerate(ends.tolist()):
            begin = int(ends[number - 1]) if number else 0
            yield order[begin:end], missing[first[number]]


def states_of(facts: Sequence[Fact], x: Floats) -> Ints:
    """Return the state of every fact in each row, shape (rows, facts); -1 where any of it is missing."""
    out = np.empty((len(x), len(facts)), dtype=np.int64)
    for number, (columns, patterns) in enumerate(facts):
        part = x[:, columns]
        gone = np.isnan(part).any(axis=1)
        nearest = np.nan_to_num(part) @ (2 * patterns.T) - patterns.sum(axis=1)
        out[:, number] = np.where(gone, -1, nearest.argmax(axis=1))
    return out


def every_state(sizes: Sequence[int]) -> Ints:
    """Return all combinations of so many states each, shape (combinations, facts).

    >>> every_state([2, 3]).T.tolist(), every_state([]).shape
    ([[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]], (1, 0))
    """
    return np.indices(tuple(sizes)).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), dtype=np.int64)


def learn_likely(x: Floats, weights: Floats, groups: Groups) -> Likely:
    """Return the tree that rows speak for, shape (rows, columns), NaN where missing.

    Of all trees the one of greatest mutual information, as far as it is more than chance: an edge counts
    N I(f, g) - (states_f - 1)(states_g - 1) log(N)/2 - log(facts): the Bayesian information criterion, less
    what the best of many pairs shows by chance.
    """
    facts = tuple(facts_of(range(x.shape[1]), groups))
    sizes = np.array([len(patterns) for _, patterns in facts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    total = int(starts[-1])
    most = max(1, CELLS // max(total, 1))
    if len(x) > most:
        some = np.linspace(0, len(x) - 1, most).astype(np.int64)
        x, weights = x[some], weights[some]
    states = states_of(facts, x)
    held = np.zeros((len(x), total), dtype=np.float32)
    row, fact = np.nonzero(states >= 0)
    held[row, starts[fact] + states[row, fact]] = 1.0
    scale = (weights / weights.mean()).astype(np.float32)[:, None]
    counts = (held * scale).sum(axis=0, dtype=np.float64)
    pairs = (held.T @ (held * scale)).astype(np.float64) if total <= MAX_STATES else None
    parents = np.full(len(facts), -1, dtype=np.int64)
    if pairs is not None and len(facts) > 1:
        parents = _tree(_gains(pairs, starts[:-1], sizes))
    tables = []
    for number, parent in enumerate(parents.tolist()):
        mine = slice(starts[number], starts[number + 1])
        alone = counts[mine] + RARE
        alone = alone / alone.sum()
        if parent < 0:
            tables.append(np.log(alone)[None])
            continue
        assert pairs is not None
        both = pairs[starts[parent] : starts[parent + 1], mine] + PRIOR * alone
        tables.append(np.log(both / both.sum(axis=1, keepdims=True)))
    return Likely(facts, parents, tuple(tables))


def _gains(pairs: Floats, starts: Ints, sizes: Ints) -> Floats:
    """Return what an edge between two facts is worth, shape (facts, facts), from counts of pairs."""

    def blocks(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1))

    number = np.repeat(np.arange(len(sizes)), sizes)
    rows = blocks(pairs)
    margin = np.add.reduceat(pairs, starts, axis=1)[:, number]  # of the first fact, where both are seen
    expected = margin * margin.T / np.maximum(rows, 1e-9)[number][:, number]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(pairs > 0, pairs * np.log(pairs / expected), 0.0)
    free = np.maximum(blocks(((pairs.diagonal() > 0)[:, None] * (pairs.diagonal() > 0)).astype(float)), 1.0)
    used = np.sqrt(free.diagonal())  # states that occur
    found = (
        blocks(logs) - np.outer(used - 1, used - 1) * np.log(np.maximum(rows, 2.0)) / 2 - np.log(len(sizes))
    )
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _tree(gains: Floats) -> Ints:
    """Return the parents of a forest of greatest gain; edges that gain nothing are left out."""
    useful = np.where(gains > 0, gains, 0.0)
    forest = csr_array(minimum_spanning_tree(csr_array(-useful)))
    parents = np.full(len(gains), -1, dtype=np.int64)
    _, which = connected_components(forest, directed=False)
    for first in np.unique(which, return_index=True)[1].tolist():
        order, before = breadth_first_order(forest, first, directed=False)
        parents[order[1:]] = before[order[1:]]
    return parents


def _roots_first(parents: Ints) -> list[int]:
    """Return facts with every parent before its children."""
    depth = np.full(len(parents), -1, dtype=np.int64)
    depth[parents < 0] = 0
    while (depth < 0).any():
        above = np.where(parents >= 0, depth[parents], 0)
        ready = (depth < 0) & (above >= 0)
        if not ready.any():
            raise ValueError("expected a tree of facts, got one with a cycle")
        depth[ready] = above[ready] + 1
    return [int(fact) for fact in np.argsort(depth, kind="stable")]


def well_formed(parents: Ints) -> bool:
    """Return whether parents are those of a forest: numbers of facts or -1, without a cycle."""
    if ((parents < -1) | (parents >= len(parents))).any():
        return False
    try:
        _roots_first(parents)
    except ValueError:
        return False
    return True
