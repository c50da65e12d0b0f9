"""A component as variables and cells: what tables and circuits are made from.

A hard ``exactly(1, ...)`` over atoms is one variable of many values (multi-valued
variable), and every other atom one of two values.
Formulae over the same variables make one cell: which values they allow together, and what these score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools
from lbm.errors import TooManyWorlds
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import CARDINALITIES, Formula, bounds, holds, postorder
from lbm.knowledge.weighted import check_cells
from lbm.reasoning.assign import reach
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component
from lbm.reasoning.exact.blocks import truth_table
from lbm.reasoning.exact.rows import Array, rounded

MAX_CELL: Final = 1 << 20
"""Entries of the table of one formula, past which its parts are defined (Tseitin) instead."""

MAX_TOGETHER: Final = 1 << 29
"""Entries of the tables of all formulae together, a byte each where they are hard."""

MAX_HEIGHT: Final = 25
"""What cardinalities of formulae that are no literals may count up to."""

NARROW: Final = 1 << 6
"""Entries of the table of a formula up to which nothing is gained by defining its parts."""

_PAIRED: Final = 200  # atoms of an at-most-one whose pairs are looked at
_LOOK: Final = 1024  # clauses between two looks at the clock


@dataclass(frozen=True, slots=True)
class TableVariable:
    """One atom, false or true; or several of which exactly one is true: value i is that the i-th is.

    Without atoms it is a definition, a function of the others, of ``values`` values.
    """

    atoms: tuple[str, ...]
    values: int = 2

    @property
    def size(self) -> int:
        """How many values it has."""
        return max(self.values, len(self.atoms))

    @property
    def is_group(self) -> bool:
        """Whether its values are atoms."""
        return len(self.atoms) > 1


@dataclass(frozen=True, slots=True, eq=False)
class TableCell:
    """What formulae say of some variables together: an axis for each of them, in order.

    ``allowed``: where the hard ones are true, None: everywhere. ``scores``: the sum of the weights of the
    true soft ones, whole numbers; None: 0 everywhere. ``formulae``: how many they are.
    """

    scope: tuple[int, ...]
    allowed: Bools | None
    scores: Array | None
    formulae: int

    @property
    def entries(self) -> int:
        """How large its table is."""
        table = self.allowed if self.scores is None else self.scores
        return 1 if table is None else table.size

    @property
    def spread(self) -> int:
        """How far apart scores are."""
        return 0 if self.scores is None else int(self.scores.max()) - int(self.scores.min())


@dataclass(frozen=True, eq=False)
class Cells:
    """A component: its variables, definitions behind all others, and what ties them together."""

    variables: tuple[TableVariable, ...]
    cells: tuple[TableCell, ...]
    place: dict[str, tuple[int, int]]  # of each atom its variable, and the value that makes it true

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each variable has."""
        return tuple([variable.size for variable in self.variables])

    @property
    def spread(self) -> int:
        """How far apart scores of worlds can be, at most."""
        return sum(cell.spread for cell in self.cells)


def groups_of(component: Component) -> list[tuple[str, ...]]:
    """Return the atoms of which exactly one is true, by hard formulae: no atom twice, larger groups first.

    One formula may say so, or a clause of atoms that exclude one another.

    >>> from lbm.knowledge.parser import parse
    >>> groups_of(Component(("a", "b", "c"), (parse("exactly(1, a, b, c)"),), ()))
    [('a', 'b', 'c')]
    """
    found: list[tuple[str, ...]] = []
    either: list[tuple[str, ...]] = []
    apart: set[frozenset[str]] = set()
    for formula in component.hard:
        if formula.kind in CARDINALITIES:
            names = tuple([part.label for part in formula.args if part.kind == "atom"])
            if formula.label == 1 and len(set(names)) == len(formula.args) > 2:
                if formula.kind == "exactly":
                    found.append(names)
                elif formula.kind == "atmost" and len(names) <= _PAIRED:
                    apart.update(frozenset(pair) for pair in combinations(names, 2))
            continue
        literals = as_clause(formula)
        if literals is None or len(literals) < 2:
            continue
        if len(literals) == 2 and not (literals[0][1] or literals[1][1]):
            apart.add(frozenset(name for name, _ in literals))
        elif len(literals) > 2 and all(wanted for _, wanted in literals):
            either.append(tuple(dict.fromkeys(name for name, _ in literals)))
    if apart:
        found += [
            names for names in either if all(frozenset(pair) in apart for pair in combinations(names, 2))
        ]
    found.sort(key=len, reverse=True)
    taken: set[str] = set()
    kept = []
    for names in found:
        if taken.isdisjoint(names):
            taken.update(names)
            kept.append(names)
    return kept


def cells_of(component: Component, budget: Budget, *, define: bool = False) -> Cells:
    """Return a component as cells; with ``define``, through definitions of the parts of wide formulae.

    Raises TooManyWorlds where a formula that is not defined has more than MAX_CELL entries.
    """
    making = _Making(component, budget)
    wide: list[tuple[Formula, int | None]] = []
    for formula, weight in (*((f, None) for f in component.hard), *component.soft):
        budget.tick()
        names = reach(formula)
        scope = making.scope([making.place[name][0] for name in names])
        entries = math.prod(making.variables[number].size for number in scope)
        if define and entries > NARROW:
            literals = _counted(formula)
            if literals is None:
                wide.append((formula, weight))
            else:
                making.count(formula, literals, weight)
        elif entries > MAX_CELL:
            raise TooManyWorlds(
                f"a formula of {len(names)} atoms has a table of {rounded(entries)} entries, more than "
                f"{MAX_CELL} (limit MAX_CELL)",
                MAX_CELL=MAX_CELL,
            )
        else:
            making.say(scope, partial(_Axes.truth, formula=formula, budget=budget), weight)
    if wide:
        making.define(wide)
    return making.made()


_Truth = Callable[["_Axes"], Bools]


class _Making:
    """Variables and what is said of them, while more come."""

    def __init__(self, component: Component, budget: Budget) -> None:
        self.component, self.budget = component, budget
        first = {names[0]: names for names in groups_of(component)}
        inside = {name for names in first.values() for name in names}
        self.variables = [
            TableVariable(first.get(name, (name,)))
            for name in component.atoms
            if name in first or name not in inside
        ]
        self.place = {
            name: (number, value if variable.is_group else 1)
            for number, variable in enumerate(self.variables)
            for value, name in enumerate(variable.atoms)
        }
        self.said: dict[tuple[int, ...], list[tuple[_Truth, int | None]]] = {}

    def scope(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Return some variables, each once, in order."""
        return tuple(sorted(set(numbers)))

    def say(self, scope: tuple[int, ...], truth: _Truth, weight: int | None) -> None:
        """Note what is to be true of some variables, or what it scores where it is."""
        self.said.setdefault(scope, []).append((truth, weight))

    def new(self, size: int) -> int:
        """Return the number of a new definition."""
        self.variables.append(TableVariable((), size))
        return len(self.variables) - 1

    def count(self, formula: Formula, literals: list[tuple[str, bool]], weight: int | None) -> None:
        """Say a cardinality by a chain of counters: how many of the first literals are true, up to a cap."""
        least, most = bounds(formula)
        total = len(literals)
        if _cap(total - most, total - least, total) < _cap(least, most, total):  # fewer that are false
            literals = [(name, not wanted) for name, wanted in literals]
            least, most = total - most, total - least
        cap = _cap(least, most, total)
        before = -1
        for i, (name, wanted) in enumerate(literals, start=1):
            if not i % _LOOK:
                self.budget.tick()
            number, value = self.place[name]
            size = min(i, cap) + 1
            after = self.new(size)
            scope = (number, after) if before < 0 else self.scope((number, before, after))

            def truth(
                axes: _Axes,
                number: int = number,
                value: int = value,
                wanted: bool = wanted,
                before: int = before,
                after: int = after,
            ) -> Bools:
                true = axes.column(number, value) == wanted
                old = 0 if before < 0 else axes.values(before)
                return np.broadcast_to(np.minimum(old + true, cap) == axes.values(after), axes.shape)

            self.say(scope, truth, None)
            before = after
        self.say(
            (before,),
            lambda axes: (axes.values(before) >= least) & (axes.values(before) <= most),
            weight,
        )

    def define(self, wide: Sequence[tuple[Formula, int | None]]) -> None:
        """Say formulae through definitions of their parts (Tseitin variables)."""
        formulae = [formula for formula, _ in wide]
        check_cells(*formulae)
        _check_height(formulae)
        names = self.component.atoms
        numbers = {name: i for i, name in enumerate(names, start=1)}
        clauses, roots, end = definitional(formulae, numbers, len(names) + 1, self.budget.tick)
        behind = len(self.variables) - len(names) - 1  # of definition d: variable d + behind
        for _ in range(end - 1 - len(names)):
            self.new(2)

        def literal(number: int) -> tuple[int, int, bool]:
            known = abs(number) <= len(names)
            where = self.place[names[abs(number) - 1]] if known else (abs(number) + behind, 1)
            return (*where, number > 0)

        roots_said = [([root], weight) for root, (_, weight) in zip(roots, wide, strict=True)]
        for i, (clause, weight) in enumerate([*((clause, None) for clause in clauses), *roots_said]):
            if not i % _LOOK:
                self.budget.tick()
            literals = [literal(number) for number in clause]
            scope = self.scope([number for number, _, _ in literals])
            self.say(scope, partial(_Axes.clause, literals=literals), weight)

    def made(self) -> Cells:
        """Return what was said as cells."""
        cells = []
        entries = sum(math.prod(self.variables[n].size for n in scope) for scope in self.said)
        if entries > MAX_TOGETHER:
            raise TooManyWorlds(
                f"formulae of {len(self.component.atoms)} atoms have tables of {rounded(entries)} entries "
                f"together, more than {MAX_TOGETHER} (limit MAX_TOGETHER)",
                MAX_TOGETHER=MAX_TOGETHER,
            )
        for scope, said in self.said.items():
            self.budget.tick()
            axes = _Axes(scope, self.variables, self.place)
            allowed: Bools | None = None
            scores: Array | None = None
            for truth, weight in said:
                true = truth(axes)
                if weight is None:
                    allowed = true if allowed is None else allowed & true
                else:
                    if scores is None:
                        scores = np.zeros(axes.shape, self.component.numbers)
                    scores[true] += weight
            if allowed is not None and allowed.all():
                allowed = None
            if allowed is not None or scores is not None:
                cells.append(TableCell(scope, allowed, scores, len(said)))
        return Cells(tuple(self.variables), tuple(cells), self.place)


def _counted(formula: Formula) -> list[tuple[str, bool]] | None:
    """Return the literals that a cardinality counts; None: it is none, or counts other parts."""
    if formula.kind not in CARDINALITIES:
        return None
    found = []
    for part in formula.args:
        inner = part.args[0] if part.kind == "not" else part
        if inner.kind != "atom":
            return None
        found.append((inner.label, inner is part))
    return found


def _cap(least: int, most: int, total: int) -> int:
    """Return up to where true parts are to be counted."""
    return most + 1 if most < total else least


def _check_height(formulae: Iterable[Formula]) -> None:
    """Raise TooManyWorlds where no order of elimination is narrow enough once counters are defined.

    The counter of "at least k of n" is a grid of k by n - k + 1 cells.
    """
    height = 0
    for node in postorder(*formulae):
        if node.kind in CARDINALITIES:
            least, most = bounds(node)
            parts = len(node.args)
            for bound in (least, most + 1):
                if 0 < bound <= parts:
                    height = max(height, min(bound, parts - bound + 1))
    if height > MAX_HEIGHT:
        raise TooManyWorlds(
            f"a cardinality of other formulae than literals counts up to {height}, which makes tables of "
            f"more than {MAX_HEIGHT} variables (limit MAX_HEIGHT)",
            MAX_HEIGHT=MAX_HEIGHT,
        )


class _Axes:
    """Some variables as the axes of tables."""

    def __init__(
        self, scope: tuple[int, ...], variables: Sequence[TableVariable], place: dict[str, tuple[int, int]]
    ) -> None:
        self.scope, self.variables, self.place = scope, variables, place
        self.shape = tuple([variables[number].size for number in scope])
        self.plain = all(len(variables[number].atoms) == 1 for number in scope)

    def column(self, number: int, value: int) -> Bools:
        """Return where a variable has a value, as an array that broadcasts against the table."""
        at = self.scope.index(number)
        axis = np.zeros(self.shape[at], bool)
        axis[value] = True
        return axis.reshape([-1 if i == at else 1 for i in range(len(self.scope))])

    def truth(self, formula: Formula, budget: Budget) -> Bools:
        """Return where a formula is true."""
        if self.plain and len(self.scope) > 6:
            return truth_table(formula, [self.variables[n].atoms[0] for n in self.scope], budget)
        columns: dict[str, Any] = {name: self.column(*self.place[name]) for name in reach(formula)}
        return np.array(np.broadcast_to(holds(formula, columns), self.shape), bool)

    def values(self, number: int) -> Array:
        """Return the values of a variable, as an array that broadcasts against the table."""
        at = self.scope.index(number)
        axis = np.arange(self.shape[at])
        return axis.reshape([-1 if i == at else 1 for i in range(len(self.scope))])

    def clause(self, literals: Iterable[tuple[int, int, bool]]) -> Bools:
        """Return where one of these literals is true: variable, value, and whether it has it."""
        found = np.zeros(self.shape, bool)
        for number, value, wanted in literals:
            column = self.column(number, value)
            found |= column if wanted else ~column
        return found
