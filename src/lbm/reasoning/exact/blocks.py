"""A component by looking at every world: bits of machine words, a block of them at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import and_, invert, or_, xor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.knowledge.formula import FALSE, TRUE, Formula, atoms_of, postorder
from lbm.reasoning.assign import assign
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import Component
from lbm.reasoning.exact.batches import Batches
from lbm.reasoning.exact.rows import ALL, Words, restrict

LIMIT: Final = 30
"""Free atoms of one component up to which its worlds are enumerated."""

_LOOK: Final = 64  # parts of a formula between two looks at the clock
_CACHED: Final = 1 << 23  # words that remembered tables of an enumeration may take: 64 MB
# Atoms that change within a word: the last one is true in every other bit, from bit 1 on.
_PATTERNS: Final = tuple(np.uint64(sum(1 << i for i in range(64) if i >> j & 1)) for j in range(6))

# What connectives are on words of 64 worlds.
_CONNECTIVES: Final[dict[str, Callable[..., Any]]] = {
    "true": lambda: ALL,
    "false": lambda: np.uint64(0),
    "not": invert,
    "and": and_,
    "or": or_,
    "xor": xor,
    "implies": lambda a, b: ~a | b,
    "iff": lambda a, b: ~(a ^ b),
}


class Blocks(Batches):
    """A component by looking at every world, 64 to a word, 2^20 to a block.

    The first atoms are constant within a block and chosen one after the other; a formula is looked at
    as soon as those of its atoms have values, and what is then false for all worlds is not gone into.
    """

    def __init__(self, component: Component, budget: Budget) -> None:
        self.component, self.budget = component, budget
        met = Counter(name for formula in component.hard for name in atoms_of(formula))
        # Atoms that many formulae mention come first: more is settled early.
        self._arrange(tuple(sorted(component.atoms, key=lambda name: -met[name])))

    def _arrange(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.low = min(len(names), self.BLOCK)
        self.high = names[: len(names) - self.low]
        level = {name: depth for depth, name in enumerate(self.high, start=1)}
        self.levels: list[list[tuple[Formula, tuple[str, ...]]]] = [[] for _ in range(len(level) + 1)]
        for formula in self.component.hard:
            choices = tuple(name for name in atoms_of(formula) if name in level)
            self.levels[max((level[name] for name in choices), default=0)].append((formula, choices))
        self.words = 1 << max(0, self.low - 6)
        self.columns = _columns(names[len(self.high) :])
        self.left: dict[tuple[Formula, tuple[bool, ...]], Formula] = {}
        self.tables: dict[Formula, Any] = {}

    def blocks(self) -> Iterator[tuple[int, Words]]:
        """Yield the number of each block that has models, in order, and its models as set bits."""
        every = ALL if self.low >= 6 else np.uint64((1 << (1 << self.low)) - 1)
        values: dict[str, bool] = {}
        reached = [self._allowed(np.full(self.words, every), 0, values)]
        while True:
            self.budget.tick()
            depth = len(reached) - 1
            if reached[-1] is not None and depth < len(self.high):
                values[self.high[depth]] = False
            else:
                if reached[-1] is not None:
                    number = 0
                    for name in self.high:
                        number = 2 * number + values[name]
                    yield number, reached[-1]
                reached.pop()
                while reached and values[self.high[len(reached) - 1]]:
                    reached.pop()
                if not reached:
                    return
                values[self.high[len(reached) - 1]] = True
            above = reached[-1]
            assert above is not None  # a block without models is left at once
            reached.append(self._allowed(above, len(reached), values))

    def _allowed(self, above: Words, depth: int, values: Mapping[str, bool]) -> Words | None:
        """Return the worlds of ``above`` that the formulae settled at this depth allow; None: none."""
        found = above
        for formula, choices in self.levels[depth]:
            key = formula, tuple([values[name] for name in choices])
            left = self.left.get(key)
            if left is None:
                left = self.left[key] = assign(formula, values, self.budget) if choices else formula
            if left is FALSE:
                return None
            if left is not TRUE:
                table = self._table(left)
                found = found & table if found is above else np.bitwise_and(found, table, out=found)
        return found if found.any() else None

    def _table(self, formula: Formula) -> Any:
        table = self.tables.get(formula)
        if table is None:
            table = evaluate(formula, self.columns, self.budget)
            while len(self.tables) * self.words >= _CACHED:
                self.tables.pop(next(iter(self.tables)))
            self.tables[formula] = table
        return table

    def count(self, keep: frozenset[str] | None = None) -> int:
        """Return how many worlds are models, or how many restrictions to ``keep`` they have."""
        if keep is None or keep.issuperset(self.names):
            return sum(int(np.bitwise_count(table).sum()) for _, table in self.blocks())
        return sum(len(rows) for rows in self._restrictions(keep))

    def worlds(self, limit: int | None = None, keep: frozenset[str] | None = None) -> Words:
        """Return the first ``limit`` models, sorted, or their restrictions to ``keep``."""
        names = self.component.atoms
        if keep is None or keep.issuperset(names):
            self._arrange(names)
            pieces = self.batches()
        else:
            pieces = self._restrictions(keep)
        found, total = [np.zeros((0, 1), np.uint64)], 0
        for rows in pieces:
            found.append(rows)
            total += len(rows)
            if limit is not None and total >= limit:
                break
        return self._in_order(np.concatenate(found))[:limit]

    def _restrictions(self, keep: frozenset[str]) -> Iterator[Words]:
        """Yield the distinct restrictions to ``keep``: its atoms come first, so equal ones are neighbours."""
        names = self.component.atoms
        self._arrange((*(n for n in names if n in keep), *(n for n in names if n not in keep)))
        last = None
        for rows in self.batches():
            few = restrict(rows, self.names, keep)
            if last is not None and (few[0] == last).all():
                few = few[1:]
            if len(few):
                last = few[-1]
                yield few

    def batches(self) -> Iterator[Words]:
        """Yield the models of each block."""
        shift = np.uint64(64 - len(self.names))
        for number, table in self.blocks():
            bits = np.unpackbits(table.astype("<u8").view(np.uint8), bitorder="little")
            found = np.flatnonzero(bits).astype(np.uint64) | np.uint64(number << self.low)
            yield (found << shift)[:, None]

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return each atom's share of the models, from whole numbers, where nothing is soft."""
        if self.component.soft:
            return super().marginals(scale, temperature)
        total, ones = 0, dict.fromkeys(self.names, 0)
        for number, table in self.blocks():
            here = int(np.bitwise_count(table).sum())
            total += here
            for i, name in enumerate(self.high):
                ones[name] += here * (number >> len(self.high) - 1 - i & 1)
            for name, column in self.columns.items():
                ones[name] += int(np.bitwise_count(table & column).sum())
        return [ones[name] / total for name in self.component.atoms] if total else None


def _columns(names: Sequence[str]) -> dict[str, Any]:
    """Return the worlds over some atoms in which each is true, as bits of words; the last turns first."""
    found: dict[str, Any] = {}
    for j, name in enumerate(reversed(names)):
        if j < 6:
            found[name] = _PATTERNS[j]
        else:
            words = np.arange(1 << len(names) - 6, dtype=np.uint64)
            found[name] = (-(words >> np.uint64(j - 6) & np.uint64(1)).view(np.int64)).view(np.uint64)
    return found


def truth_table(formula: Formula, names: Sequence[str], budget: Budget = NO_LIMIT) -> NDArray[np.bool_]:
    """Return where a formula is true, shape (2,) * number of names: one axis for each of them, in order."""
    words = np.full(1 << max(0, len(names) - 6), evaluate(formula, _columns(names), budget), "<u8")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: 1 << len(names)]
    return bits.view(np.bool_).reshape((2,) * len(names))


def evaluate(formula: Formula, columns: Mapping[str, Any], budget: Budget) -> Any:
    """Return the worlds in which a formula is true, as bits of whole words.

    A part's worlds are forgotten as soon as the last whole that needs them is done.
    """
    order = list(postorder(formula))
    needed = Counter(part for node in order for part in node.args)
    done: dict[Formula, Any] = {}
    for number, node in enumerate(order):
        if not number % _LOOK:
            budget.tick()
        below = [done[part] for part in node.args]
        if node.kind == "atom":
            found = columns[node.label]
        elif node.kind in _CONNECTIVES:
            found = _CONNECTIVES[node.kind](*below)
        else:
            found = _counted(node.kind, node.label, below)
        done[node] = found
        for part in node.args:
            needed[part] -= 1
            if not needed[part]:
                del done[part]
    return done[formula]


def _counted(kind: str, bound: int, below: Sequence[Any]) -> Any:
    """Return the worlds in which a cardinality is true, by adding up bits: each digit of the sum is a row."""
    digits: list[Any] = []
    for part in below:
        carry = part
        for i, digit in enumerate(digits):
            digits[i], carry = digit ^ carry, digit & carry
        if 1 << len(digits) <= len(below):
            digits.append(carry)
    more, same = np.uint64(0), ALL  # than the bound, in the digits from the highest down
    for i in range(max(len(digits), bound.bit_length()) - 1, -1, -1):
        digit = digits[i] if i < len(digits) else np.uint64(0)
        if bound >> i & 1:
            same = same & digit
        else:
            more, same = more | same & digit, same & ~digit
    if kind == "exactly":
        return same
    return more | same if kind == "atleast" else ~more
