"""Formula -> strict DNF by the paths of a decision diagram.

The paths to 1 of a reduced ordered diagram are cubes that exclude one another. Their number depends
on the order of the atoms; sifting looks for a better one.

All diagrams are made in one manager, one after the other: each manager has threads of its own, whose stacks
take a gigabyte of addresses.
"""

from __future__ import annotations

import mmap
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations
from typing import Final

from oxidd.bdd import BDDFunction, BDDManager

from lbm.errors import NoRoom, TooManyCubes
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

STACK: Final = 1 << 30
"""Bytes of addresses that the manager's worker takes for its stack."""

TABLES: Final = 1 << 26
"""Bytes of addresses that are more than enough for the manager's tables and its other threads."""

_CONNECTED: Final[dict[str, Callable[..., BDDFunction]]] = {
    "not": operator.invert,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "implies": BDDFunction.imp,
    "iff": BDDFunction.equiv,
}


# --- the one manager -----------------------------------------------------------------------------


class _Shared:
    """The manager, made when it is first wanted, and who may use it."""

    def __init__(self) -> None:
        self.in_use = threading.Lock()
        self.manager: BDDManager | None = None
        # Their threads stayed in a process that forked: not to be ended.
        self.abandoned: list[BDDManager] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self.in_use = threading.Lock()
        if self.manager is not None:
            self.abandoned.append(self.manager)
            self.manager = None

    @contextmanager
    def lend(self, atoms: int) -> Iterator[BDDManager]:
        """Lend the manager, empty, with so many variables at least, in their order; other threads wait."""
        with self.in_use:
            if self.manager is None:
                _rehearse()
                self.manager = BDDManager(MAX_NODES, CACHE, 1)
            manager = self.manager
            try:
                manager.add_vars(max(0, atoms - manager.num_vars()))
                yield manager
            finally:
                if not _clear(manager, atoms):
                    self.manager = None


def _clear(manager: BDDManager, atoms: int) -> bool:
    """Empty a manager for its next use; return whether that could be done.

    Nodes stay where a traceback holds them, or for the time that the manager's own thread clears it.
    """
    for wait in (0.0, 0.001, 0.01, 0.1):
        time.sleep(wait)
        manager.gc()
        if not manager.num_inner_nodes():
            manager.set_var_order(list(range(atoms)))
            return True
    return False


def _rehearse() -> None:
    """Take what a manager will take, and give it back: where there is too little, it ends the process."""
    enough = threading.Event()
    before = threading.stack_size()
    threads = [threading.Thread(target=enough.wait, daemon=True) for _ in range(2)]
    try:
        tables = mmap.mmap(-1, TABLES)
        try:
            threading.stack_size(STACK)
            for thread in threads:
                thread.start()
                threading.stack_size(before)
        finally:
            threading.stack_size(before)
            enough.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            tables.close()
    except ValueError:  # a system without stacks of this size: nothing can be said beforehand
        return
    except (OSError, RuntimeError, MemoryError):
        raise NoRoom(
            f"a decision diagram needs two more threads and {(STACK + TABLES) / (1 << 30):.1f} GiB of "
            "addresses, which this process does not get: raise its limits (ulimit -v, ulimit -u), or use "
            "method='elimination'"
        ) from None


_shared: Final = _Shared()


# --- one diagram ---------------------------------------------------------------------------------


@contextmanager
def diagram_of(formula: Formula, atoms: Sequence[str]) -> Iterator[Diagram]:
    """Give the diagram of a formula, in the declared order, for the time of a ``with`` block.

    Raises TooManyCubes where it would be too large, and NoRoom where none can be made.
    """
    if len(atoms) > MAX_ATOMS:
        raise TooManyCubes(
            f"a decision diagram of {len(atoms)} atoms, more than {MAX_ATOMS} (limit MAX_ATOMS): "
            "try method='definitions'",
            MAX_ATOMS=MAX_ATOMS,
        )
    with _shared.lend(len(atoms)) as manager:
        diagram = Diagram(manager, atoms)
        if not diagram.build(formula):
            raise TooManyCubes(
                f"a decision diagram of more than {MAX_NODES} nodes (limit MAX_NODES): "
                "try method='definitions'",
                MAX_NODES=MAX_NODES,
            )
        try:
            yield diagram
        finally:
            diagram.forget()


class Diagram:
    """The decision diagram of one formula; ``atoms`` gives its names in the declared order."""

    def __init__(self, manager: BDDManager, atoms: Sequence[str]) -> None:
        self.atoms = tuple(atoms)
        self.order: tuple[int, ...] = tuple(range(len(atoms)))
        self._manager = manager
        self._root = manager.false()

    def build(self, formula: Formula) -> bool:
        """Make the nodes of a formula; return whether there was room for them."""
        made: dict[Formula, BDDFunction] = {}
        place = {name: i for i, name in enumerate(self.atoms)}
        try:
            for node in postorder(formula):
                plain = counter(node) if node.kind in CARDINALITIES else node
                for part in postorder(plain, known=made):
                    made[part] = self._connect(part, made, place)
                made[node] = made[plain]
            self._root = made[formula]
        except MemoryError:
            return False
        finally:
            made.clear()
        self._manager.gc()  # reordering would move the nodes of parts that are no longer needed
        return True

    def forget(self) -> None:
        """Let go of the nodes: the manager is wanted for the next diagram."""
        self._root = self._manager.false()

    def _connect(self, node: Formula, made: dict[Formula, BDDFunction], place: dict[str, int]) -> BDDFunction:
        if node.kind == "atom":
            return self._manager.var(place[node.label])
        if node.kind in ("true", "false"):
            return self._manager.true() if node.kind == "true" else self._manager.false()
        return _CONNECTED[node.kind](*(made[part] for part in node.args))

    def reorder(self, order: Sequence[int]) -> None:
        """Put the atoms in ``order``, by their numbers."""
        if tuple(order) != self.order:
            self._manager.set_var_order(list(order))
            self.order = tuple(order)

    def nodes(self) -> int:
        """Return the number of nodes in the present order."""
        return self._root.node_count()

    def size(self, order: Sequence[int] | None = None) -> int:
        """Return the number of paths to 1 in an order, by default the present one."""
        self.reorder(self.order if order is None else order)
        # Depth is at most MAX_ATOMS, so recursion is safe here.
        known: dict[BDDFunction, int] = {}

        def paths(node: BDDFunction) -> int:
            found = known.get(node)
            if found is None:
                halves = node.cofactors()
                found = int(node.valid()) if halves is None else paths(halves[0]) + paths(halves[1])
                known[node] = found
            return found

        total = paths(self._root)
        known.clear()  # a function that calls itself lives on for a while, and would hold the nodes
        return total

    def cubes(self, order: Sequence[int] | None = None) -> list[Mask]:
        """Return the paths to 1 in an order, by default the present one, as cubes over the declared atoms."""
        self.reorder(self.order if order is None else order)
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
        by_paths = min((declared, by_nodes), key=self.size)
        if self.size(by_paths) > FEW_PATHS:
            by_paths = self._sift(by_paths, self.size, rounds=1)
        return list(dict.fromkeys([declared, by_nodes, by_paths]))

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
