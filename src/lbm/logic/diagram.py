"""Formula -> strict DNF by the paths of a decision diagram.

The paths to 1 of a reduced ordered diagram are cubes that exclude one another. Their number depends
on the order of the atoms; sifting looks for a better one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Final

from oxidd.bdd import BDDFunction, BDDManager

from lbm.errors import TooManyCubes
from lbm.knowledge.clauses import counter
from lbm.knowledge.formula import CARDINALITIES, Formula, postorder
from lbm.logic.elimination import Mask

MAX_ATOMS: Final = 64
"""Atoms in a formula that is made into a diagram."""

MAX_NODES: Final = 1 << 18
"""Nodes of one diagram."""

CACHE: Final = 1 << 9
"""Results kept while a diagram is built; each reordering clears them, so more would slow sifting."""

SIFTED_ATOMS: Final = 32
"""Atoms up to which better orders are looked for."""

FEW_PATHS: Final = 8
"""Paths up to which an order is good enough: nodes were counted, paths need not be."""

ALL_ORDERS: Final = 4
"""Atoms up to which every order is tried."""


class Diagram:
    """The decision diagram of one formula; ``atoms`` gives its names in the declared order."""

    def __init__(self, formula: Formula, atoms: Sequence[str]) -> None:
        """Build it in the declared order; raises TooManyCubes where it would be too large."""
        if len(atoms) > MAX_ATOMS:
            raise TooManyCubes(
                f"a decision diagram of {len(atoms)} atoms, more than {MAX_ATOMS} (limit MAX_ATOMS): "
                "try method='definitions'",
                limit="MAX_ATOMS",
                value=MAX_ATOMS,
            )
        self.atoms = tuple(atoms)
        # Room for every function of few atoms; a large table costs more to set up than to use.
        self._manager = BDDManager(min(MAX_NODES, 1 << (len(atoms) + 5)), CACHE, 1)
        self._manager.add_vars(len(atoms))
        self.order: tuple[int, ...] = tuple(range(len(atoms)))
        try:
            self._root = self._build(formula)
            self._manager.gc()  # reordering would move the nodes of parts that are no longer needed
        except MemoryError:
            raise TooManyCubes(
                f"a decision diagram of more than {MAX_NODES} nodes (limit MAX_NODES): "
                "try method='definitions'",
                limit="MAX_NODES",
                value=MAX_NODES,
            ) from None

    def _build(self, formula: Formula) -> BDDFunction:
        place = {name: i for i, name in enumerate(self.atoms)}
        made: dict[Formula, BDDFunction] = {}
        for node in postorder(formula):
            plain = counter(node) if node.kind in CARDINALITIES else node
            for part in postorder(plain, known=made):
                made[part] = self._connect(part, made, place)
            made[node] = made[plain]
        return made[formula]

    def _connect(self, node: Formula, made: dict[Formula, BDDFunction], place: dict[str, int]) -> BDDFunction:
        kind = node.kind
        if kind == "atom":
            return self._manager.var(place[node.label])
        if kind == "true":
            return self._manager.true()
        if kind == "false":
            return self._manager.false()
        values = [made[part] for part in node.args]
        if kind == "not":
            return ~values[0]
        if kind == "and":
            return values[0] & values[1]
        if kind == "or":
            return values[0] | values[1]
        if kind == "xor":
            return values[0] ^ values[1]
        return values[0].imp(values[1]) if kind == "implies" else values[0].equiv(values[1])

    def reorder(self, order: Sequence[int]) -> None:
        """Put the atoms in ``order``, by their numbers."""
        if tuple(order) != self.order:
            self._manager.set_var_order(list(order))
            self.order = tuple(order)

    def nodes(self) -> int:
        """Return the number of nodes in the present order."""
        return self._root.node_count()

    def size(self) -> int:
        """Return the number of paths to 1 in the present order."""
        # Depth is at most MAX_ATOMS, so recursion is safe here.
        known: dict[BDDFunction, int] = {}

        def paths(node: BDDFunction) -> int:
            found = known.get(node)
            if found is None:
                halves = node.cofactors()
                found = int(node.valid()) if halves is None else paths(halves[0]) + paths(halves[1])
                known[node] = found
            return found

        return paths(self._root)

    def cubes(self) -> list[Mask]:
        """Return the paths to 1 in the present order as cubes over the declared atoms."""
        found: list[Mask] = []
        stack: list[tuple[BDDFunction, int, int]] = [(self._root, 0, 0)]
        while stack:
            node, true, false = stack.pop()
            halves, atom = node.cofactors(), node.node_var()
            if halves is None or atom is None:
                if node.valid():
                    found.append((true, false))
            else:
                bit = 1 << atom
                stack += [(halves[0], true | bit, false), (halves[1], true, false | bit)]
        return found

    def orders(self) -> list[tuple[int, ...]]:
        """Return orders worth trying: the declared one, and those found by looking for better ones."""
        number = len(self.atoms)
        declared = tuple(range(number))
        if number <= ALL_ORDERS:
            return list(permutations(declared))
        if number > SIFTED_ATOMS:
            return [declared]
        by_nodes = self._sift(declared, self.nodes)
        by_paths = min((declared, by_nodes), key=self._paths_in)
        if self._paths_in(by_paths) > FEW_PATHS:
            by_paths = self._sift(by_paths, self.size, rounds=1)
        return list(dict.fromkeys([declared, by_nodes, by_paths]))

    def _paths_in(self, order: tuple[int, ...]) -> int:
        self.reorder(order)
        return self.size()

    def _sift(
        self, start: tuple[int, ...], cost: Callable[[], int], rounds: int | None = None
    ) -> tuple[int, ...]:
        """Move one atom after the other to its best place, until none moves (Rudell 1993)."""
        self.reorder(start)
        best, order = cost(), list(start)
        for _ in range(len(start) if rounds is None else rounds):
            before = best
            for atom in start:
                rest = [other for other in order if other != atom]
                for position in range(len(order)):
                    trial = [*rest[:position], atom, *rest[position:]]
                    self.reorder(trial)
                    found = cost()
                    if found < best:
                        best, order = found, trial
            if best == before:
                break
        return tuple(order)
