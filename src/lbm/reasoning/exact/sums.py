"""A theory as sums of products over the literals of chosen atoms: what a layer of a network runs.

The atoms that numbers come in for are the *columns* of a batch. A component is taken by elimination or as a
circuit, whichever makes less, and both become nodes of one kind: sums of weighted products of slots. Other
atoms are summed out as the nodes are made; what is the same is made once, and what nothing can reach is left
out, so that definitions, carries and the like cost nothing. Weights of soft formulae are numbers that enter
with each pass: a *mark* stands for the soft formulae that are true together in a term.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import NoAnswer, TooManyWorlds
from lbm.knowledge.circuits import SUM
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.compiling.ready import runs_compiled
from lbm.reasoning.exact.apart import Component, Split, fall_apart
from lbm.reasoning.exact.circuits import ByCircuit
from lbm.reasoning.exact.sum_loops import MIXED, PIECE, PLUS, TIMES, Nodes, choose, sweep, sweep_logs
from lbm.reasoning.exact.tables import Tables
from lbm.reasoning.exact.whole import circuit_given, circuit_of, tables_of
from lbm.reasoning.proof import no_worlds

MAX_ENTRIES: Final = 1 << 22
"""Entries of all tables of a component from which nodes are made."""

MAX_TERMS: Final = 1 << 20
"""Terms of a component."""

FEW_TERMS: Final = 1 << 13
"""Terms of a component up to which no circuit is tried."""

_PATIENCE: Final = 1.0  # seconds for a circuit where there are tables
_SMALL: Final = math.log(1e-280)  # of sums below which rows are done again in logarithms
_SIDE: Final = 64  # rows side by side, at most
_LEAST: Final = 8  # and at least, where there are as many
_CACHE: Final = 1 << 16  # numbers of a pass that stay near the processor
_ZERO, _ONE = -1, -2  # slots that are known
_PAIR, _NODE = 1 << 40, 1 << 41  # where pairs and nodes are numbered from while they are made

Term = tuple[int, tuple[int, ...]]
"""A mark, 0 for none, and slots."""


@dataclass(frozen=True, slots=True, eq=False)
class SumProgram:
    """Sums of products over literals, for rows of numbers.

    Attributes
    ----------
    starts
        Shape (choices + 1,): choice c has the columns ``starts[c]:starts[c + 1]``; one column is an atom by
        itself, several are atoms of which exactly one is true. Choices with numbers come first.
    pairs, marks
        Shapes (pairs,) and (pairs, 2): the column of a variable of a circuit, -1 for none, and the marks of
        its being false and true.
    kinds, terms, factors, slots, marked
        Node n is of the kind ``kinds[n]`` and has the terms ``terms[n]:terms[n + 1]``; term t has the mark
        ``marked[t]`` and the slots ``slots[factors[t]:factors[t + 1]]``.
    roots, floors
        Slots whose product is the whole, and how small each may be until rows are done again in logarithms.
    scopes
        Shape (marks,): marks of one number belong to terms of which each world has exactly one.
    """

    starts: Ints
    pairs: Ints
    marks: Ints
    kinds: Ints
    terms: Ints
    factors: Ints
    slots: Ints
    marked: Ints
    roots: Ints
    floors: Floats
    scopes: Ints

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return int(self.starts[-1])

    @property
    def work(self) -> int:
        """How many numbers are multiplied or added in one pass for one row, about."""
        return len(self.slots) + 2 * len(self.pairs)

    def run(
        self, logits: Floats, weights: Floats, told: Ints | None = None, *, down: bool
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return log Z of each row and, if wanted, how likely each column and each mark is true.

        The last array is how likely columns with logits are by these alone, unless a value is told.

        Z = Σ over worlds of Π (p or 1 - p of each literal; of a group p of the true one)·exp(weights of
        their marks). Rows without a world have -inf, and chances of 0.

        Parameters
        ----------
        logits
            Shape (rows, columns with numbers): log-odds, or scores of a group that a softmax is taken of.
        weights
            Shape (marks,): logarithms; that of mark 0 is 0.
        told
            Shape (rows, choices): the value a choice is known to have, 1 or 0 for an atom, -1 for nothing.
        """
        rows = len(logits)
        given = np.zeros((0, 0), np.int64) if told is None else told
        logs, low = np.zeros(rows), np.zeros(rows, bool)
        theta, offset = self._scaled(weights)
        chances, flows, likely = np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0))
        if down and told is None:
            likely = np.empty(logits.shape)
        if down:
            chances, flows = np.empty((rows, self.columns)), np.empty((rows, len(weights)))
        slots = 2 * (self.columns + len(self.pairs)) + len(self.kinds)
        each = slots * (2 if down else 1)
        side = min(max(rows, 1), max(_LEAST, min(_SIDE, _CACHE // max(1, each))))
        nodes = self._nodes()
        sweep(
            *(logits, given, nodes, np.exp(theta), self.roots, self.floors),
            *(logs, chances, flows, likely, low, side),
        )
        low |= np.isneginf(logs)
        if low.any():
            some = np.flatnonzero(low)
            again, more, other = np.zeros(len(some)), chances[:0], flows[:0]
            if down:
                more, other = np.empty((len(some), self.columns)), np.empty((len(some), len(weights)))
            those = given[some] if len(given) else given
            sweep_logs(logits[some], those, nodes, theta, self.roots, again, more, other)
            logs[some] = again
            if down:
                chances[some], flows[some] = more, other
        return logs + offset, chances, flows, likely

    def worlds(
        self,
        logits: Floats,
        weights: Floats,
        told: Ints | None = None,
        *,
        draws: int = 0,
        seed: int = 0,
        begin: int = 0,
    ) -> Bools:
        """Return the best world of each row, or ``draws`` of each: shape (draws or 1, rows, columns).

        Every row must have a world. Numbers depend on the seed, the draw and the row, counted from
        ``begin``.
        """
        given = np.zeros((0, 0), np.int64) if told is None else told
        found = np.zeros((max(draws, 1), len(logits), self.columns), bool)
        with np.errstate(over="ignore"):  # as random numbers are made
            choose(
                *(logits, given, self._nodes(), self._scaled(weights)[0], self.roots, found),
                *(np.uint64(seed), draws, begin),
            )
        return found

    def _nodes(self) -> Nodes:
        return Nodes(
            *(self.starts, self.pairs, self.marks, self.kinds),
            *(self.terms, self.factors, self.slots, self.marked),
        )

    def _scaled(self, weights: Floats) -> tuple[Floats, float]:
        """Return the logarithms of marks, 0 at most, and what they were larger by together."""
        if len(weights) == 1:
            return weights, 0.0
        top = np.full(int(self.scopes[-1]) + 1, -np.inf)
        np.maximum.at(top, self.scopes, weights)
        return weights - top[self.scopes], float(top.sum())


@dataclass(frozen=True, slots=True)
class SummedPart:
    """How a component became nodes: ``method`` is tables or circuit; ``terms`` and how much work they are."""

    method: str
    atoms: tuple[str, ...]
    terms: int
    work: int


@dataclass(frozen=True, slots=True, eq=False)
class Layered:
    """A theory as a program.

    Attributes
    ----------
    program
        What is run.
    masks
        Of each mark which soft formulae are true there: bit i is formula i among the soft ones.
    always
        Those that are true in all models, likewise.
    split
        The theory, taken apart.
    parts
        How each component was made.
    """

    program: SumProgram
    masks: tuple[int, ...]
    always: int
    split: Split
    parts: tuple[SummedPart, ...]


def layered(
    theory: Theory, choices: Sequence[tuple[str, ...]], told: int, budget: Budget = NO_LIMIT
) -> Layered:
    """Return a theory as sums of products over some atoms.

    Parameters
    ----------
    choices
        Atoms by themselves, or all of those of which exactly one is true; no atom twice.
    told
        How many of them, from the first, come with numbers.

    Examples
    --------
    >>> form = layered(Theory.parse("a | b"), [("a",), ("b",)], 2)
    >>> logs, chances, _, _ = form.program.run(np.zeros((1, 2)), np.zeros(1), down=True)
    >>> round(float(np.exp(logs[0])), 6), chances.round(6).tolist()
    (0.75, [[0.666667, 0.666667]])
    """
    statements = list(theory)
    hard = [said.formula for said in statements if said.weight is None]
    soft = [said.formula for said in statements if said.weight is not None]
    # Weights are bits, so that a sum of them says which formulae are true.
    split = fall_apart(theory.atoms, hard, [(f, 1 << i) for i, f in enumerate(soft)], budget)
    if split is None:
        raise no_worlds(theory, None, budget)
    making = _SumMaking(choices, told)
    parts = [making.component(component, budget) for component in split.components]
    making.outside(split)
    if _ZERO in making.roots:
        raise no_worlds(theory, None, budget)
    return Layered(making.program(), tuple(making.masks), split.score, split, tuple(parts))


def projected(
    theory: Theory, choices: Sequence[tuple[str, ...]], open_: Iterable[str], budget: Budget = NO_LIMIT
) -> SumProgram:
    """Return the sum over those values of the choices that a model has, whatever the other atoms are.

    Only hard formulae count. Components with an atom in ``open_`` are restricted, to circuits.
    """
    hard = [said.formula for said in theory if said.weight is None]
    split = fall_apart(theory.atoms, hard, (), budget)
    if split is None:
        raise no_worlds(theory, None, budget)
    making = _SumMaking(choices, len(choices))
    met = frozenset(open_)
    for component in split.components:
        keep = frozenset(making.column).intersection(component.atoms)
        if keep and met.isdisjoint(component.atoms):
            making.component(component, budget)
        elif keep:
            making.circuit(circuit_of(component, keep, budget))
    making.outside(split)
    if _ZERO in making.roots:
        raise no_worlds(theory, None, budget)
    return making.program()


class _SumMaking:
    """Nodes, while they are made."""

    def __init__(self, choices: Sequence[tuple[str, ...]], told: int) -> None:
        self.starts = np.cumsum([0, *map(len, choices)], dtype=np.int64)
        self.column = {name: i for i, name in enumerate(name for group in choices for name in group)}
        self.alone = {group[0] for group in choices if len(group) == 1}
        self.given = {name for group in choices[:told] for name in group}
        self.nodes: list[tuple[int, list[Term]]] = []
        self.known: dict[tuple[Term, ...], int] = {}
        self.pairs: list[tuple[int, int, int]] = []
        self.masks, self.scopes, self.scope = [0], [0], 0
        self.mark_of: dict[tuple[int, int], int] = {}
        self.roots: list[int] = []
        self.floors: list[float] = []

    # -- nodes --

    def sum_of(self, terms: Sequence[Term]) -> int:
        """Return the slot of a sum of products; equal sums are made once."""
        left = sorted(
            (mark, tuple(sorted([slot for slot in slots if slot != _ONE])))
            for mark, slots in terms
            if _ZERO not in slots
        )
        if not left:
            return _ZERO
        if len(left) == 1 and not left[0][0]:
            slots = left[0][1]
            if len(slots) < 2:
                return slots[0] if slots else _ONE
            return self._node(TIMES, left)
        plain = all(not mark and len(slots) == 1 for mark, slots in left)
        return self._node(PLUS if plain else MIXED, left)

    def _node(self, kind: int, terms: list[Term]) -> int:
        key = tuple(terms)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _NODE + len(self.nodes)
            self.nodes.append((kind, terms))
        return found

    def mark(self, mask: int) -> int:
        """Return the mark for soft formulae that are true together, where one term of several counts."""
        key = (self.scope, mask)
        found = self.mark_of.get(key)
        if found is None:
            found = self.mark_of[key] = len(self.masks)
            self.masks.append(mask)
            self.scopes.append(self.scope)
        return found

    # -- parts of a theory --

    def component(self, component: Component, budget: Budget) -> SummedPart:
        """Add a component by elimination or as a circuit, whichever is less work."""
        begun = self._place()
        circuit = circuit_given(component, None, budget)
        tables: Tables | None = None
        if circuit is None:
            with suppress(TooManyWorlds):
                tables = tables_of(component, budget)
                if tables.work > MAX_ENTRIES:
                    tables = None
        if tables is not None:
            try:
                self.tables(tables)
            except TooManyWorlds:
                self._back(begun)
                tables = None
        if tables is not None:
            made = self._part("tables", component, begun)
            if made.terms <= FEW_TERMS:
                return made
            with suppress(TooManyWorlds, NoAnswer):
                circuit = circuit_of(component, None, budget.at_most(_PATIENCE))
            if circuit is None or circuit.edges > made.work:
                budget.tick()
                return made
            self._back(begun)
        if circuit is None:
            circuit = circuit_of(component, None, budget)
        self.circuit(circuit)
        return self._part("circuit", component, begun)

    def _place(self) -> tuple[int, int, int, int]:
        self.known = {}
        self.scope += 1
        return len(self.nodes), len(self.pairs), len(self.masks), len(self.roots)

    def _back(self, begun: tuple[int, int, int, int]) -> None:
        """Forget what was made since."""
        nodes, pairs, masks, roots = begun
        del self.nodes[nodes:], self.pairs[pairs:]
        del self.masks[masks:], self.scopes[masks:]
        del self.roots[roots:], self.floors[roots:]
        self.mark_of = {key: mark for key, mark in self.mark_of.items() if mark < masks}
        self.known = {}

    def _part(self, method: str, component: Component, begun: tuple[int, ...]) -> SummedPart:
        nodes = self.nodes[begun[0] :]
        terms = sum(len(terms) for _, terms in nodes)
        work = sum(1 + len(slots) for _, terms in nodes for _, slots in terms)
        return SummedPart(method, component.atoms, terms, work)

    def tables(self, tables: Tables) -> None:
        """Add a component by elimination."""
        sizes, variables = tables.sizes, tables.cells.variables
        leaves: list[Ints] = []
        ways = 0.0
        for declared, size in zip(variables, sizes, strict=True):
            names = declared.atoms
            if len(names) == 1:
                leaves.append(np.array([self._literal(names[0], False), self._literal(names[0], True)]))
            else:
                values = [self._value(names, i) for i in range(len(names))] or [_ONE] * size
                leaves.append(np.array(values))
            if self.given.isdisjoint(names):
                ways += math.log(size)
        messages: dict[int, Ints] = {}
        feeding: dict[int, list[int]] = {variable: [] for variable in tables.order}
        for step in tables.steps():
            variable, others = step.scope[0], step.scope[1:]
            self.scope += 1
            shape = tuple([sizes[v] for v in step.scope])
            number = math.prod(shape[1:])
            flat = np.flatnonzero(np.moveaxis(step.allowed, 0, -1))
            message, own = np.divmod(flat, shape[0])
            index = dict(zip(others, np.unravel_index(message, shape[1:]) if others else (), strict=True))
            index[variable] = own
            columns = [leaves[variable][own]]
            for before in feeding[variable]:
                place = np.zeros(len(flat), np.int64)
                for v in tables.scopes[before]:
                    place = place * sizes[v] + index[v]
                columns.append(messages[before][place])
            slots = np.stack(columns, axis=1)
            left = np.flatnonzero((slots != _ZERO).all(axis=1))
            if len(left) + len(self.nodes) > MAX_TERMS:
                raise TooManyWorlds(
                    f"sums of more than {MAX_TERMS} terms (limit MAX_TERMS)", MAX_TERMS=MAX_TERMS
                )
            marks = [0] * len(left)
            if step.scores is not None:
                scores = np.moveaxis(step.scores, 0, -1).ravel()[flat[left]].tolist()
                marks = [self.mark(mask) for mask in scores]
            terms: dict[int, list[Term]] = {}
            for at, mark, row in zip(message[left].tolist(), marks, slots[left].tolist(), strict=True):
                terms.setdefault(at, []).append((mark, tuple(row)))
            found = np.full(number, _ZERO, np.int64)
            for at, some in terms.items():
                found[at] = self.sum_of(some)
            if others:
                messages[variable] = found
                feeding[others[0]].append(variable)
            else:
                self._root(int(found[0]), ways)
                ways = 0.0

    def _literal(self, name: str, value: bool) -> int:
        column = self.column.get(name)
        if column is None:
            return _ONE
        return 2 * column + value

    def _value(self, names: tuple[str, ...], value: int) -> int:
        """Return the slot of one atom of several being true, and those not that are choices of their own."""
        slots = [self._literal(names[value], True)]
        slots += [
            self._literal(name, False) for i, name in enumerate(names) if i != value and name in self.alone
        ]
        return self.sum_of([(0, tuple(slots))])

    def circuit(self, circuit: ByCircuit) -> None:
        """Add a component that is a circuit."""
        made = circuit.passes.circuit
        marks = [[0, 0] for _ in range(made.variables)]
        for root, mask in circuit.roots.items():
            variable, side = abs(root) - 1, int(root > 0)
            self.scope += 1
            marks[variable][side] |= mask
        slot_of: list[int] = []
        for variable in range(made.variables):
            name = circuit.names[variable] if variable < len(circuit.names) else None
            column = -1 if name is None else self.column.get(name, -1)
            no = yes = 0
            if any(marks[variable]):
                self.scope += 1
                no, yes = (self.mark(mask) for mask in marks[variable])
            slot = _PAIR + 2 * len(self.pairs)
            self.pairs.append((column, no, yes))
            slot_of += [slot, slot + 1]
        starts, parts = made.starts.tolist(), made.parts.tolist()
        for gate, kind in enumerate(made.kinds.tolist()):
            slots = [slot_of[part] for part in parts[starts[gate] : starts[gate + 1]]]
            if kind == SUM:
                slot_of.append(self.sum_of([(0, (slot,)) for slot in slots]))
            else:
                slot_of.append(self.sum_of([(0, tuple(slots))]))
        self._root(slot_of[made.root], 0.0)

    def outside(self, split: Split) -> None:
        """Add the atoms outside all components."""
        for name, value in split.fixed.items():
            if name in self.column:
                self._root(self._literal(name, value), 0.0)
        for name in split.free:
            if name in self.column:
                literals = [(0, (self._literal(name, value),)) for value in (False, True)]
                self._root(self.sum_of(literals), math.log(2))

    def _root(self, slot: int, ways: float) -> None:
        """Note a slot that is a factor of the whole, and a bound of what values of other atoms bring."""
        if slot != _ONE:
            self.roots.append(slot)
            self.floors.append(math.exp(min(_SMALL + ways, 600.0)))

    # -- the whole --

    def program(self) -> SumProgram:
        """Return what was made, without nodes that no root needs."""
        needed = [False] * len(self.nodes)
        for root in self.roots:
            if root >= _NODE:
                needed[root - _NODE] = True
        for node in range(len(self.nodes) - 1, -1, -1):
            if needed[node]:
                for _, slots in self.nodes[node][1]:
                    for slot in slots:
                        if slot >= _NODE:
                            needed[slot - _NODE] = True
        columns = int(self.starts[-1])
        number: dict[int, int] = {}
        terms, factors, slots_, marked, kinds = [0], [0], list[int](), list[int](), list[int]()

        def final(slot: int) -> int:
            if slot >= _NODE:
                return number[slot]
            return slot if slot < _PAIR else slot - _PAIR + 2 * columns

        first = 2 * (columns + len(self.pairs))
        nodes = self._fused(needed)
        for node, (kind, its) in enumerate(nodes):
            if not needed[node]:
                continue
            number[_NODE + node] = first + len(kinds)
            kinds.append(kind)
            for mark, slots in its:
                slots_ += map(final, slots)
                factors.append(len(slots_))
                marked.append(mark)
            terms.append(len(marked))
        pairs = np.array(self.pairs, np.int64).reshape(-1, 3)
        return SumProgram(
            starts=self.starts,
            pairs=np.ascontiguousarray(pairs[:, 0]),
            marks=np.ascontiguousarray(pairs[:, 1:]),
            kinds=np.array(kinds, np.int64),
            terms=np.array(terms, np.int64),
            factors=np.array(factors, np.int64),
            slots=np.array(slots_, np.int64),
            marked=np.array(marked, np.int64),
            roots=np.array([final(root) for root in self.roots], np.int64),
            floors=np.array(self.floors, float),
            scopes=self._scopes(),
        )

    def _fused(self, needed: list[bool]) -> list[tuple[int, list[Term]]]:
        """Return the nodes with products that are used once put into the sums that use them.

        Those are no longer ``needed``.
        """
        uses = Counter(
            slot
            for node, (_, terms) in enumerate(self.nodes)
            if needed[node]
            for _, slots in terms
            for slot in slots
            if slot >= _NODE
        )
        uses.update(root for root in self.roots if root >= _NODE)
        found = list(self.nodes)
        for node, (kind, terms) in enumerate(self.nodes):
            if not needed[node] or kind == TIMES:
                continue
            made: list[Term] = []
            for mark, slots in terms:
                flat: list[int] = []
                for slot in slots:
                    if slot >= _NODE and uses[slot] == 1 and found[slot - _NODE][0] == TIMES:
                        flat += found[slot - _NODE][1][0][1]
                        needed[slot - _NODE] = False
                    else:
                        flat.append(slot)
                made.append((mark, tuple(flat)))
            if made != terms:
                found[node] = (MIXED, made)
        return found

    def _scopes(self) -> Ints:
        """Return the scopes of marks by number, without gaps."""
        return np.unique(np.array(self.scopes, np.int64), return_inverse=True)[1]


def usable() -> bool:
    """Return whether the compiled loops can be run now; where they are not compiled, have that done."""
    return runs_compiled(PIECE)


def with_floor(program: SumProgram, floor: float) -> SumProgram:
    """Return a program that does rows again in logarithms whose sums are below a floor: tests use it."""
    return replace(program, floors=np.full_like(program.floors, floor))


def formulae_of(masks: Sequence[int], number: int) -> Floats:
    """Return which of so many soft formulae are true at each mark, shape (marks, formulae)."""
    rows = [[float(mask >> i & 1) for i in range(number)] for mask in masks]
    return np.array(rows, float).reshape(len(masks), number)
