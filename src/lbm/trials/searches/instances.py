"""Satisfiability problems that are made here, from their numbers alone: SR(n) pairs and flat colourings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.knowledge.clauses import Clauses
from lbm.knowledge.theory import Theory

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EDGES_PER_NODE: Final = 2.395
"""Of the flat graphs in SATLIB, where 3-colouring is hardest."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Instance:
    """Clauses over the atoms 1..atoms, as DIMACS writes them; none is empty, none has an atom twice."""

    atoms: int
    clauses: tuple[tuple[int, ...], ...]

    @cached_property
    def literals(self) -> NDArray[np.int32]:
        """All literals, clause after clause."""
        return np.array([literal for clause in self.clauses for literal in clause], np.int32)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Shape (clauses + 1,): clause j is ``literals[starts[j]:starts[j + 1]]``."""
        return np.cumsum([0, *map(len, self.clauses)], dtype=np.int64)

    def theory(self) -> Theory:
        """Return the clauses as a theory, all hard, that was not asked about before."""
        names = tuple(f"x{i}" for i in range(1, self.atoms + 1))
        return Theory.from_clauses(Clauses(names, self.literals, self.starts))

    @cached_property
    def _matrix(self) -> tuple[csr_array, NDArray[np.float64]]:
        from scipy.sparse import csr_array

        signs = np.sign(self.literals).astype(np.float64)
        shape = (len(self.clauses), self.atoms)
        matrix = csr_array((signs, np.abs(self.literals) - 1, self.starts), shape=shape)
        return matrix, np.add.reduceat((signs < 0).astype(np.float64), self.starts[:-1])

    def broken(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many clauses are false, shape (worlds,), in worlds of shape (atoms, worlds)."""
        matrix, negative = self._matrix
        true = matrix @ x.astype(np.float64) + negative[:, None]
        return np.asarray((true == 0).sum(axis=0))


def sr_pair(n: int, *, seed: int) -> tuple[Instance, Instance]:
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
    return Instance(n, (*clauses[:-1], turned)), Instance(n, tuple(clauses))


def flat_colouring(nodes: int, *, seed: int) -> Instance:
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
    return Instance(3 * nodes, tuple(_colours(nodes, sorted(edges))))


def _colours(nodes: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    def has(node: int, colour: int) -> int:
        return 3 * node + colour + 1

    found: list[tuple[int, ...]] = []
    for node in range(nodes):
        found.append((has(node, 0), has(node, 1), has(node, 2)))
        found += [(-has(node, a), -has(node, b)) for a, b in combinations(range(3), 2)]
    found += [(-has(a, colour), -has(b, colour)) for a, b in edges for colour in range(3)]
    return found
