"""Satisfiability problems that are made here, from their numbers alone: SR(n) pairs and flat colourings."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Ints
from lbm.knowledge.clauses import Clauses

EDGES_PER_NODE: Final = 2.395
"""Of the flat graphs in SATLIB, where 3-colouring is hardest."""


def instance(atoms: int, rows: Sequence[Sequence[int]]) -> Clauses:
    """Return hard clauses over x1, x2, ...; none may be empty, or have an atom twice."""
    return Clauses.of(rows, atoms=tuple(f"x{i}" for i in range(1, atoms + 1)))


def counter_of_broken(clauses: Clauses) -> Callable[[NDArray[Any]], Ints]:
    """Return what counts the false clauses, shape (worlds,), in worlds of shape (atoms, worlds)."""
    from scipy.sparse import csr_array

    signs = np.sign(clauses.literals).astype(np.float64)
    shape = (len(clauses), clauses.variables)
    matrix = csr_array((signs, np.abs(clauses.literals) - 1, clauses.starts), shape=shape)
    negative = np.add.reduceat((signs < 0).astype(np.float64), clauses.starts[:-1])
    return lambda x: np.asarray((matrix @ x.astype(np.float64) + negative[:, None] == 0).sum(axis=0))


def sr_pair(n: int, *, seed: int) -> tuple[Clauses, Clauses]:
    """Return a satisfiable and an unsatisfiable instance over n atoms that differ in one literal.

    Clauses of 1 or 2 (with probability 0.3 and 0.7) and a geometric number (0.4) of random literals are
    added until there is no model any more; with one literal of the last turned round there is one again.
    [Selsam et al., Learning a SAT Solver from Single-Bit Supervision, ICLR 2019]
    """
    from pysat.solvers import Solver

    rng = np.random.default_rng((n, seed))
    clauses: list[tuple[int, ...]] = []
    with Solver("cadical153") as solver:
        while True:
            size = min(n, int(1 + (rng.random() < 0.7) + rng.geometric(0.4)))
            chosen = rng.choice(n, size, replace=False) + 1
            clause = tuple((chosen * rng.choice((-1, 1), size)).tolist())
            solver.add_clause(clause)
            clauses.append(clause)
            if not solver.solve():
                break
    turned = (-clauses[-1][0], *clauses[-1][1:])
    return instance(n, [*clauses[:-1], turned]), instance(n, clauses)


def flat_colouring(nodes: int, *, seed: int) -> Clauses:
    """Return the 3-colouring of a graph with a hidden one, its classes and its edges spread evenly.

    Atom 3v + k + 1 says that node v has colour k: each node has one, and no two, and ends of edges differ.
    """
    wanted = round(EDGES_PER_NODE * nodes)
    if wanted > 3 * (nodes // 3) ** 2:
        raise ValueError(f"expected 9 nodes or more, so that there are edges to choose from, got {nodes}")
    rng = random.Random(f"flat {nodes} {seed}")
    hidden = [node % 3 for node in range(nodes)]
    rng.shuffle(hidden)
    classes = [[node for node in range(nodes) if hidden[node] == colour] for colour in range(3)]
    pairs = list(combinations(range(3), 2))
    edges: set[tuple[int, int]] = set()
    while len(edges) < wanted:
        first, second = pairs[len(edges) % 3]  # as many edges between any two classes
        a, b = rng.choice(classes[first]), rng.choice(classes[second])
        edges.add((min(a, b), max(a, b)))
    return instance(3 * nodes, _colours(nodes, sorted(edges)))


def _colours(nodes: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    def has(node: int, colour: int) -> int:
        return 3 * node + colour + 1

    found: list[tuple[int, ...]] = []
    for node in range(nodes):
        found.append((has(node, 0), has(node, 1), has(node, 2)))
        found += [(-has(node, a), -has(node, b)) for a, b in combinations(range(3), 2)]
    found += [(-has(a, colour), -has(b, colour)) for a, b in edges for colour in range(3)]
    return found
