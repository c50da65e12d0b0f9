"""A theory as trees of tables (junction trees): what is far from a question is summed out once, and kept.

Elimination of a component makes a tree: the table that a variable leaves behind goes to that one of its
neighbours whose turn is next. A branch of the tree that a question does not mention always sums to the same
table, its message; so does the rest of the tree seen from a branch. With these kept, a question is a small
elimination of its own: the tables between the atoms that it mentions, the messages that come in from around
them, and the question itself.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.arrays import Bools
from lbm.errors import TooManyWorlds
from lbm.knowledge.formula import FALSE, TRUE, Formula, holds
from lbm.reasoning.assign import assign, reach
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import WHOLE, Component, Split, exponent
from lbm.reasoning.exact.buckets import Buckets, Table, narrow_order, start, sum_out, times

MAX_ENTRIES: Final = 1 << 18
"""Entries of all tables of a theory up to which it is kept as trees."""

MAX_ASKED: Final = 12
"""Atoms that a query, or a part of the evidence, may have beside those that the evidence settles."""

_ANSWER: Final = -1  # the variable that says whether the query is true

Variable = tuple[int, int]  # the number of a tree, and a variable of it


@dataclass(frozen=True, slots=True)
class Weighed:
    """P(query | evidence), and what is proven of the query: entailed, refuted, preferred, and so on."""

    probability: float
    status: str


@dataclass(frozen=True, slots=True)
class _Algebra:
    """How tables are added up: as logarithms at a temperature, or as counts."""

    scale: int
    temperature: float
    numbers: type
    logs: bool

    def times(self, tables: Iterable[Table], variables: tuple[int, ...], turn: Mapping[int, int]) -> Table:
        return times(tables, variables, turn, logs=self.logs)

    def sum_out(self, table: Table, variable: int) -> Table:
        """Sum out a variable, whichever axis it is."""
        at = table.scope.index(variable)
        scope = (*table.scope[:at], *table.scope[at + 1 :], variable)
        best = None if table.best is None else np.moveaxis(table.best, at, -1)
        moved = Table(scope, best, np.moveaxis(table.mass, at, -1), table.bits)
        return sum_out(moved, self.scale, self.temperature, logs=self.logs)[0]

    def is_empty(self, table: Table) -> bool:
        return not (table.mass != (-np.inf if self.logs else 0)).any()


class Tree:
    """A component as a tree of tables, one for each variable in their order of elimination.

    ``near`` gives the tables that a question about some variables needs.
    """

    def __init__(self, component: Component, algebra: _Algebra, most: int, budget: Budget) -> None:
        buckets = Buckets(component, None, budget)
        self.algebra, self.order = algebra, buckets.order
        self.turn = {variable: i for i, variable in enumerate(self.order)}
        scopes: dict[int, set[int]] = {variable: {variable} for variable in self.order}
        own: dict[int, list[Table]] = {variable: [] for variable in self.order}
        for factor in buckets.factors:
            scope = tuple(sorted(factor.scope, key=lambda v: -self.turn[v]))
            own[scope[-1]].append(start(factor, scope, algebra.numbers, logs=algebra.logs))
            scopes[scope[-1]].update(scope)
        self.parent: dict[int, int | None] = {}
        self.children: dict[int, list[int]] = {variable: [] for variable in self.order}
        self.entries = 0
        for variable in self.order:
            budget.tick()
            self.entries += 1 << len(scopes[variable])
            if self.entries > most:
                raise _too_large()
            others = scopes[variable] - {variable}
            above = min(others, key=self.turn.__getitem__, default=None)
            self.parent[variable] = above
            if above is not None:
                scopes[above] |= others
                self.children[above].append(variable)
        self.scopes = {variable: tuple(scope) for variable, scope in scopes.items()}
        self.depth: dict[int, int] = {}
        for variable in reversed(self.order):
            above = self.parent[variable]
            self.depth[variable] = 0 if above is None else self.depth[above] + 1
        self.own = {variable: algebra.times(tables, (), self.turn) for variable, tables in own.items()}
        self.up: dict[int, Table] = {}
        self.down: dict[int, Table] = {}
        for variable in self.order:
            budget.tick()
            below = (self.up[child] for child in self.children[variable])
            table = algebra.times((self.own[variable], *below), (variable,), self.turn)
            self.up[variable] = algebra.sum_out(table, variable)
        self.satisfiable = not any(
            algebra.is_empty(self.up[root]) for root in self.order if not self.depth[root]
        )

    def near(self, touched: Iterable[int], budget: Budget) -> list[Table]:
        """Return tables whose product, summed over all else, is the theory seen from these variables."""
        heap = [(-self.depth[variable], variable) for variable in set(touched)]
        heapq.heapify(heap)
        inside: set[int] = set()
        tops: list[int] = []
        while heap:  # the deepest goes up, until all have met
            deep, variable = heapq.heappop(heap)
            while heap and heap[0][1] == variable:
                heapq.heappop(heap)
            inside.add(variable)
            above = self.parent[variable]
            if above is None or not heap:
                tops.append(variable)
            else:
                heapq.heappush(heap, (deep + 1, above))
        found = [self.own[variable] for variable in inside]
        found += [self.up[child] for one in inside for child in self.children[one] if child not in inside]
        return found + [self._down(top, budget) for top in tops if self.depth[top]]

    def _down(self, variable: int, budget: Budget) -> Table:
        """Return the rest of the tree, seen from the branch that ends in a variable."""
        path = [variable]
        while path[-1] not in self.down and self.depth[path[-1]]:
            above = self.parent[path[-1]]
            assert above is not None
            path.append(above)
        for above, child in zip(path[:0:-1], path[-2::-1], strict=True):
            budget.tick()
            tables = [self.own[above], *(self.up[other] for other in self.children[above] if other != child)]
            if above in self.down:
                tables.append(self.down[above])
            table = self.algebra.times(tables, (above,), self.turn)
            for other in set(table.scope) - set(self.scopes[child]):
                table = self.algebra.sum_out(table, other)
            self.down[child] = table
        return self.down[variable]


class Trees:
    """A theory, taken apart, as trees of tables at one temperature.

    The tree of a component is made when a question first mentions one of its atoms.
    """

    def __init__(self, split: Split, temperature: float) -> None:
        total = sum(abs(weight) for component in split.components for _, weight in component.soft)
        soft = any(component.soft for component in split.components)
        self.split = split
        self.algebra = _Algebra(split.scale, temperature, np.int64 if total < WHOLE else object, soft)
        self.trees: dict[int, Tree | None] = {}  # by the number of the component; None: it is too large
        self.place: dict[str, Variable] = {
            name: (number, i)
            for number, component in enumerate(split.components)
            for i, name in enumerate(component.atoms)
        }

    @property
    def satisfiable(self) -> bool | None:
        """Whether every component has a model; None: that is not known of those no question mentioned."""
        made = [tree for tree in self.trees.values() if tree is not None]
        if not all(tree.satisfiable for tree in made):
            return False
        return True if len(made) == len(self.split.components) else None

    def tree(self, number: int, budget: Budget) -> Tree:
        """Return the tree of a component; raise TooManyWorlds if all have more than MAX_ENTRIES entries."""
        if number not in self.trees:
            left = MAX_ENTRIES - sum(tree.entries for tree in self.trees.values() if tree is not None)
            made = None
            with suppress(TooManyWorlds):
                made = Tree(self.split.components[number], self.algebra, left, budget)
            self.trees[number] = made
        found = self.trees[number]
        if found is None:
            raise _too_large()
        return found

    def weigh(self, query: Formula, given: Formula | None, budget: Budget = NO_LIMIT) -> Weighed | None:
        """Return the probability of a query and what is proven of it; None: no world satisfies the evidence.

        Components that neither of them mentions are taken to be satisfiable. Raises TooManyWorlds where query
        and evidence tie too many atoms together.
        """
        known, rest = observed(given)
        if known is None or any(self.split.fixed.get(name, value) != value for name, value in known.items()):
            return None
        values = self.split.fixed | known
        parts = [part for part in (assign(part, values, budget) for part in rest) if part is not TRUE]
        asked = assign(query, values, budget)
        if FALSE in parts:
            return None
        for part in (*parts, asked):
            if len(reach(part)) > MAX_ASKED:
                raise TooManyWorlds(
                    f"a formula of {len(reach(part))} atoms has too many values (limit MAX_ASKED)",
                    MAX_ASKED=MAX_ASKED,
                )
        return self._result(self._local(known, parts, asked, budget))

    def _local(
        self, known: Mapping[str, bool], parts: list[Formula], asked: Formula, budget: Budget
    ) -> Table:
        """Return the weight of the worlds in which the query is false, and true: a table over _ANSWER."""
        names = dict.fromkeys((*known, *(name for part in (*parts, asked) for name in reach(part))))
        touched: dict[int, list[int]] = {}
        for name in names:
            if name in self.place:
                number, variable = self.place[name]
                touched.setdefault(number, []).append(variable)
        settled = {self.place[name]: value for name, value in known.items() if name in self.place}
        numbers: dict[Variable | str, int] = {}

        def number_of(variable: Variable | str) -> int:
            return numbers.setdefault(variable, len(numbers))

        tables: list[Table] = []
        for number, variables in touched.items():
            for table in self.tree(number, budget).near(variables, budget):
                at = tuple(
                    int(settled[number, v]) if (number, v) in settled else slice(None) for v in table.scope
                )
                scope = tuple(number_of((number, v)) for v in table.scope if (number, v) not in settled)
                best = None if table.best is None else np.asarray(table.best[at], dtype=table.best.dtype)
                mass = np.asarray(table.mass[at], dtype=table.mass.dtype)
                tables.append(Table(scope, best, mass, table.bits))
        for part, last in (*((part, ()) for part in parts), (asked, (_ANSWER,))):
            mine = reach(part)
            truth = _truth(part, mine)
            if last:
                truth = np.stack([~truth, truth], axis=-1)
            mass = np.where(truth, 0.0, -np.inf) if self.algebra.logs else truth.astype(np.int64)
            scope = tuple(number_of(self.place.get(name, name)) for name in mine)
            tables.append(Table((*scope, *last), None, mass))
        return self._summed(tables, len(numbers), budget)

    def _summed(self, tables: list[Table], variables: int, budget: Budget) -> Table:
        """Return the product of tables with every variable summed out but the answer."""
        order = narrow_order([[v for v in table.scope if v >= 0] for table in tables], variables, budget)
        turn = {variable: i for i, variable in enumerate(order)} | {_ANSWER: variables}
        waiting: dict[int, list[Table]] = {variable: [] for variable in turn}
        for table in tables:
            axes = sorted(range(len(table.scope)), key=lambda i: -turn[table.scope[i]])
            scope = tuple(table.scope[i] for i in axes)
            best = None if table.best is None else table.best.transpose(axes)
            arranged = Table(scope, best, table.mass.transpose(axes), table.bits)
            waiting[scope[-1] if scope else _ANSWER].append(arranged)
        for variable in order:
            budget.tick()
            table = self.algebra.times(waiting.pop(variable), (variable,), turn)
            summed = self.algebra.sum_out(table, variable)
            waiting[summed.scope[-1] if summed.scope else _ANSWER].append(summed)
        return self.algebra.times(waiting[_ANSWER], (_ANSWER,), turn)

    def _result(self, table: Table) -> Weighed | None:
        false, true = table.mass.tolist()
        nothing = -math.inf if self.algebra.logs else 0
        if true == nothing:
            return None if false == nothing else Weighed(0.0, "refuted")
        if false == nothing:
            return Weighed(1.0, "entailed")
        if not self.algebra.logs:
            return Weighed(true / (false + true), "undecided")
        less, more = (0, 0) if table.best is None else map(int, table.best.tolist())
        odds = exponent(more - less, self.algebra.scale, self.algebra.temperature) + true - false
        chance = 1 / (1 + math.exp(-odds)) if odds > -700 else math.exp(odds)
        status = "undecided" if more == less else "preferred" if more > less else "dispreferred"
        return Weighed(chance, status)


def _too_large() -> TooManyWorlds:
    return TooManyWorlds(
        f"the tables of this theory have more than {MAX_ENTRIES} entries (limit MAX_ENTRIES)",
        MAX_ENTRIES=MAX_ENTRIES,
    )


def observed(given: Formula | None) -> tuple[dict[str, bool] | None, list[Formula]]:
    """Return the literals of the evidence as truth values, None if two of them clash, and its other parts."""
    values: dict[str, bool] = {}
    rest: list[Formula] = []
    waiting = [] if given is None else [given]
    while waiting:
        part = waiting.pop()
        node, value = part, True
        while node.kind == "not":
            node, value = node.args[0], not value
        if node.kind == "atom":
            if values.setdefault(node.label, value) != value:
                return None, []
        elif node.kind == "and" and value:
            waiting += node.args
        else:
            rest.append(part)
    return values, rest


def _truth(formula: Formula, names: tuple[str, ...]) -> Bools:
    """Return where a formula is true: an axis for each name, in order."""
    both = np.array([False, True])
    axes = {
        name: both.reshape([-1 if i == j else 1 for j in range(len(names))]) for i, name in enumerate(names)
    }
    return np.array(np.broadcast_to(holds(formula, axes), (2,) * len(names)))
