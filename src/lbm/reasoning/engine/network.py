"""A theory as counting gates (a circuit of threshold and parity gates): what the compiled chains run on.

A gate counts which of its children are as it wants them, and is true if that count c lies in a range or is
odd:

    true  ⇔  ((c - low) & mask) <= span        in unsigned arithmetic

    clause            low 1,  mask all ones, span: as far as it goes
    least..most of    low least, mask all ones, span most - least
    odd number of     low 1,  mask 1,        span 0

Children are atoms, or other gates where formulae are nested; a conjunction is a clause seen from its other
side. Each gate weighs something where it is true; its cubes are never looked at one by one.

When an atom flips, a gate's count changes by d, the signed number of its children that flip with it. Mostly
an atom meets a gate *by itself*: it is the only child that flips, and no gate above depends on it, so d is a
sign. Next in number are *pairs*, a clause that the atom is in and one clause or parity above it. For all else
an atom has a program: the gates above it, children first, with the children that the flip can reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lbm.arrays import Bools, Bytes, Floats, Ints
from lbm.errors import LimitExceeded, UnknownAtom
from lbm.knowledge.formula import FALSE, TRUE, Formula
from lbm.logic.anatomy import strip, view
from lbm.reasoning.assign import assign
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.compiling.ready import loops

MAX_STEPS: Final = 5_000_000
"""Steps of the programs of all atoms together; formulae nested deeper than that are refused."""

LANES: Final = 64
"""Chains that run side by side in one block."""

GateNumbers = NDArray[np.int32]
Counts = NDArray[Any]  # of 8 or 32 bits, as large as the largest gate needs

CLAUSES_TRUE, CLAUSES_FALSE, OTHERS_TRUE, OTHERS_FALSE, PARTS = range(5)
"""The four parts of what an atom meets, by what is met and how it wants the atom; and their number."""

ATOM, ATOM_NEGATED, BEFORE, BEFORE_NEGATED, MANY = range(5)
"""What moves in a step of a program: the atom alone, the step before alone, or anything else."""

SIMPLE, NEEDED, CLAUSE = 7, 8, 16
"""The bits of a step that say so; one where a later step refers to it; one where its gate is a clause."""


class Wires(NamedTuple):
    """The arrays that kernels read.

    Atom i meets the gates ``gate[start[4 i]:start[4 i + 4]]`` by itself. They come in four parts, and part k
    begins at ``start[4 i + k]``: clauses that want the atom true, clauses that want it false, other gates
    that want it true, and false. So a sweep asks no gate for its sign; a processor would guess half of the
    answers wrong.

    Its pairs are ``pairs[4 i]:pairs[4 i + 4]``, in four parts: a clause ``under[j]`` that wants the atom
    true, or false, and a clause ``upper[j]`` that wants the first one false, which makes that a conjunction;
    then a clause that wants the atom true, or false, and a parity that wants the clause true.

    Its program has the steps ``program[i]:program[i + 1]``; step k is about gate ``step_gate[k]``, and its
    children that move are ``kid_slot[step_kids[k]:step_kids[k + 1]]``: earlier steps of the program, or -1
    for the atom itself. ``step_kind`` says what most steps need to know of that: ATOM or ATOM_NEGATED, the
    only such child is the atom, wanted true or false; BEFORE or BEFORE_NEGATED, it is the step before; MANY,
    anything else; NEEDED is added where a step that does not follow at once refers to this one; and CLAUSE
    where the gate is a clause. ``low``, ``mask`` and ``span`` are those of each gate.
    """

    start: Ints
    gate: NDArray[np.int32]
    pairs: Ints
    upper: NDArray[np.int32]
    under: NDArray[np.int32]
    low: Counts
    mask: Counts
    span: Counts
    program: Ints
    step_gate: NDArray[np.int32]
    step_kind: NDArray[np.int8]
    step_kids: Ints
    kid_slot: NDArray[np.int32]
    kid_sign: NDArray[np.int8]

    def meetings(self) -> tuple[tuple[Ints, NDArray[np.int32]], ...]:
        """Return pairs (starts, gates): atom i meets ``gates[starts[i]:starts[i + 1]]``, first by itself."""
        by_itself, pairs = self.start[::PARTS], self.pairs[::PARTS]
        rest = (pairs, self.upper), (pairs, self.under), (self.program, self.step_gate)
        return ((by_itself, self.gate), *rest)

    def truth(self, counts: Counts, gates: Any) -> Bools:
        """Return which of some gates are true, by the rows of their counts."""
        off = (counts - self.low[gates, None]) & self.mask[gates, None]
        return np.asarray(off <= self.span[gates, None])


@dataclass(frozen=True, eq=False)
class GateNetwork:
    """Gates over atoms, and what each adds where it is true.

    Attributes
    ----------
    atoms
        The number of atoms.
    soft, hard
        What a true gate adds to the score, and to the number of hard formulae kept; shape (gates,).
    earned, broken
        The score when no gate is true, and the number of hard formulae broken then.
    child, child_sign, first_child
        The children of gate g are ``child[first_child[g]:first_child[g + 1]]``: atoms, or ``atoms + number``
        of an earlier gate; the sign is 1 where a true child counts, -1 where a false one does.
    wires
        What kernels read.
    longest
        The greatest number of steps in the program of any atom.
    """

    atoms: int
    soft: Floats
    hard: Floats
    earned: float
    broken: float
    child: NDArray[np.int32]
    child_sign: NDArray[np.int8]
    first_child: Ints
    wires: Wires
    longest: int

    @property
    def gates(self) -> int:
        """The number of gates."""
        return len(self.soft)

    @cached_property
    def firm(self) -> Ints:
        """The gates that hard formulae want true, or, as -1 - gate, false."""
        at = np.flatnonzero(self.hard)
        return np.where(self.hard[at] > 0, at, -1 - at)

    def counts(self, x: Bytes) -> Counts:
        """Return the count of every gate, shape (gates, 64), for states of shape (atoms, 64)."""
        if x.shape != (self.atoms, LANES):
            raise ValueError(f"expected states of shape ({self.atoms}, {LANES}), got shape {x.shape}")
        found = aligned((self.gates, LANES), self.wires.low.dtype)
        loops(counts=found.dtype).tally(self.wires, self.first_child, self.child, self.child_sign, x, found)
        return found

    def reach(self, sizes: Floats) -> float:
        """Return the greatest sum of the sizes of the gates that one atom meets."""
        sums = np.zeros(self.atoms)
        for starts, gates in self.wires.meetings():
            sums += np.diff(np.concatenate([[0.0], np.cumsum(sizes[gates])])[starts])
        return float(sums.max(initial=0.0))

    def sums(self, counts: Counts, values: Floats) -> Floats:
        """Return Σ values over the gates that are true, shape (64,)."""
        total = np.zeros(LANES)
        loops(counts=counts.dtype).weighed(self.wires, counts, values, total)
        return total


def network_of(
    atoms: Sequence[str],
    hard: Iterable[Formula],
    soft: Iterable[tuple[Formula, float]],
    budget: Budget = NO_LIMIT,
) -> GateNetwork:
    """Return the network of hard formulae and of pairs (formula, weight), over atoms in this order.

    Conjunctions are not split: that is the caller's choice.
    """
    maker = _Maker(atoms, budget)
    for formula in hard:
        maker.root(formula, 0.0, 1.0)
    for formula, weight in soft:
        maker.root(formula, float(weight), 0.0)
    return maker.network()


def network_of_clauses(
    atoms: int, literals: NDArray[np.int32], starts: Ints, soft: Floats, hard: Floats
) -> GateNetwork:
    """Return the network of packed clauses: literals are ±(number of the atom, from 1), no atom twice in one.

    ``soft`` and ``hard``, shape (clauses,), are the weight and the number of hard formulae of each clause.
    """
    sizes = np.diff(starts)
    nonempty = np.flatnonzero(sizes)  # an empty clause is false everywhere
    least = np.minimum.reduceat(np.abs(literals), starts[nonempty]) if len(nonempty) else nonempty
    # Gates in the order of their first atoms: a sweep meets many counts as they lie in memory.
    order = nonempty[_sorted_order(least, atoms + 1)]
    lengths = sizes[order]
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    gates = len(order)
    ordered = literals[np.repeat(starts[order] - first[:-1], lengths) + np.arange(first[-1])]
    kind = _counters(int(lengths.max(initial=0)))
    top = np.iinfo(kind).max
    made = _Gates(
        np.asarray(soft, np.float64)[order],
        np.asarray(hard, np.float64)[order],
        (np.abs(ordered) - 1).astype(np.int32, copy=False),
        np.sign(ordered).astype(np.int8),
        first,
        *(np.full(gates, number, kind) for number in (1, top, top - 1)),
    )
    return _assemble(atoms, made, 0.0, float(np.sum(hard)), flat=np.ones(gates, bool))


def aligned(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros, whose rows of 64 bytes lie on one line of the cache each.

    Large arrays begin 16 bytes after a line, and every row of theirs would lie on two.
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size].view(kind).reshape(shape)


def _counters(widest: int) -> type[np.uint8] | type[np.uint32]:
    """Return the smallest type that counts so many children, and one more."""
    return np.uint8 if widest < 255 else np.uint32


class _Maker:
    """Collects gates, children before parents; equal formulae share one."""

    def __init__(self, atoms: Sequence[str], budget: Budget = NO_LIMIT) -> None:
        self.names, self.budget = atoms, budget
        self.place = {name: i for i, name in enumerate(atoms)}
        self.known: dict[Formula, tuple[int, int]] = {}  # child and sign that a formula is
        self.children: list[tuple[tuple[int, int], ...]] = []
        self.shape: list[tuple[int, int, int]] = []  # least, most, or (-1, -1, 1) for odd
        self.same: dict[tuple[object, ...], int] = {}
        self.soft: list[float] = []
        self.hard: list[float] = []
        self.earned, self.broken = 0.0, 0.0

    def root(self, formula: Formula, soft: float, hard: float) -> None:
        """Add a formula."""
        self.broken += hard
        simple = assign(formula, {}, self.budget)
        if simple is FALSE:
            return
        if simple is TRUE:
            self.earned += soft
            self.broken -= hard
            return
        number, sign = self._node(simple)
        if number < len(self.names):
            number, sign = self._gate(((number, sign),), (1, 1, 0)), 1
        else:
            number -= len(self.names)
        if sign < 0:  # [not g] = 1 - [g]
            self.earned += soft
            self.broken -= hard
        if hard * sign * self.hard[number] < 0:
            # A formula and its negation, both hard: each must be seen to break.
            number = self._added(self.children[number], self.shape[number])
        self.soft[number] += sign * soft
        self.hard[number] += sign * hard

    def _node(self, formula: Formula) -> tuple[int, int]:
        """Return the child that a formula without constants is; equal ones are the same child."""
        waiting = [strip(formula)[0]]
        while waiting:
            node = waiting[-1]
            if node in self.known:
                waiting.pop()
                continue
            seen = view(node)
            if seen.op == "literal":
                if seen.label not in self.place:
                    raise UnknownAtom(seen.label, self.names, "state")
                self.known[node] = self.place[seen.label], 1
                waiting.pop()
                continue
            missing = [part for part, _ in seen.parts if part not in self.known]
            if missing:
                waiting += reversed(missing)
                continue
            waiting.pop()
            self.known[node] = self._made(seen.op, seen.label, [self._child(*part) for part in seen.parts])
        return self._child(*strip(formula))

    def _child(self, node: Formula, positive: bool) -> tuple[int, int]:
        number, sign = self.known[node]
        return number, sign if positive else -sign

    def _made(self, op: str, label: object, kids: list[tuple[int, int]]) -> tuple[int, int]:
        n = len(self.names)
        if op == "or":
            return n + self._gate(tuple(sorted(set(kids))), (1, len(kids), 0)), 1
        if op == "and":
            turned = sorted({(number, -sign) for number, sign in kids})
            return n + self._gate(tuple(turned), (1, len(kids), 0)), -1
        if op == "xor":
            odd = bool(label)
            for _, sign in kids:
                odd ^= sign < 0
            # Children of a parity all count where they are true: turned ones turn the whole.
            return n + self._gate(
                tuple(sorted((number, 1) for number, _ in kids)), (-1, -1, 1)
            ), 1 if odd else -1
        assert op == "count"
        assert isinstance(label, tuple)
        least, most, inside = label
        return n + self._gate(tuple(sorted(kids)), (least, most, 0)), 1 if inside else -1

    def _gate(self, kids: tuple[tuple[int, int], ...], shape: tuple[int, int, int]) -> int:
        if shape[:1] == (1,) and shape[1] >= len(kids):
            shape = (1, len(kids), 0)
        key = (kids, shape)
        if key not in self.same:
            self.same[key] = self._added(kids, shape)
        return self.same[key]

    def _added(self, kids: tuple[tuple[int, int], ...], shape: tuple[int, int, int]) -> int:
        """Return the number of a new gate, which weighs nothing yet."""
        self.children.append(kids)
        self.shape.append(shape)
        self.soft.append(0.0)
        self.hard.append(0.0)
        return len(self.children) - 1

    def network(self) -> GateNetwork:
        """Return the network."""
        n, sizes = len(self.names), np.array([len(kids) for kids in self.children], np.int64)
        kind = _counters(int(sizes.max(initial=0)))
        top = int(np.iinfo(kind).max)
        child, sign = np.array(list(chain.from_iterable(self.children)), np.int64).reshape(-1, 2).T
        first = np.concatenate([[0], np.cumsum(sizes)])
        least, most, odd = np.array(self.shape, np.int64).reshape(-1, 3).T
        span = np.where((least == 1) & (most == sizes), top - 1, most - least)
        made = _Gates(
            np.array(self.soft, np.float64),
            np.array(self.hard, np.float64),
            child.astype(np.int32),
            sign.astype(np.int8),
            first,
            *(numbers.astype(kind) for numbers in (np.where(odd, 1, least), np.where(odd, 1, top), span)),
        )
        flat = over_atoms(n, child, first)
        flat[child[child >= n] - n] = False  # a gate above looks at it
        return _assemble(n, made, self.earned, self.broken, flat=flat)


def over_atoms(atoms: int, child: NDArray[Any], first: Ints) -> Bools:
    """Return which gates have atoms alone for children, each once."""
    sizes = np.diff(first)
    owner, width = np.repeat(np.arange(len(sizes)), sizes), atoms + len(sizes) + 1
    found = np.ones(len(sizes), bool)
    found[owner[child >= atoms]] = False
    keys = np.sort(owner * width + child)
    found[keys[1:][keys[1:] == keys[:-1]] // width] = False
    return found


class _Gates(NamedTuple):
    """Gates as GateNetwork and Wires have them."""

    soft: Floats
    hard: Floats
    child: NDArray[np.int32]
    sign: NDArray[np.int8]
    first: Ints
    low: Counts
    mask: Counts
    span: Counts


def _assemble(atoms: int, gates: _Gates, earned: float, broken: float, *, flat: Bools) -> GateNetwork:
    """Return the network of these gates; flat ones, of atoms alone, need no programs."""
    soft, hard, child, sign, first, low, mask, span = gates
    clause = are_clauses(low, span)
    programs = _programs(atoms, np.flatnonzero(~flat), child, sign, first, clause)
    (met, met_gate), (paired, upper, under), rest = _sorted_out(
        programs, clause, mask == 1, (soft == 0) & (hard == 0)
    )
    sizes = np.diff(first)
    mine = slice(None) if flat.all() else np.repeat(flat, sizes)
    own = np.repeat(np.arange(len(flat), dtype=np.int32), sizes)[mine]
    part = PARTS * child[mine] + OTHERS_TRUE * ~clause[own] + (sign[mine] <= 0)
    start, order = _by_part(atoms, np.append(part, met))
    gate = np.append(own, met_gate)[order]
    pairs, order = _by_part(atoms, paired)
    wires = Wires(start, gate, pairs, upper[order], under[order], low, mask, span, *rest)
    longest = int(np.diff(rest.program).max(initial=0))
    return GateNetwork(atoms, soft, hard, earned, broken, child, sign, first, wires, longest)


def are_clauses(low: Counts, span: Counts) -> Bools:
    """Return which gates are clauses."""
    return np.asarray((low == 1) & (span == np.iinfo(span.dtype).max - 1))


def _by_part(atoms: int, part: Ints) -> tuple[Ints, NDArray[Any]]:
    """Return where each part of each atom begins, and the order that puts parts together."""
    start = np.zeros(PARTS * atoms + 1, np.int64)
    np.cumsum(np.bincount(part, minlength=PARTS * atoms), out=start[1:])
    return start, _sorted_order(part, PARTS * atoms)


def _sorted_order(numbers: NDArray[Any], below: int) -> NDArray[Any]:
    """Return the order that sorts numbers from 0 to ``below``, equal ones as they came.

    They are sorted by their digits (radix sort), or counted, not compared.
    """
    if below <= 1 << 16:
        return np.argsort(numbers.astype(np.uint16), kind="stable")
    from scipy.sparse import csr_array

    row = csr_array((np.arange(len(numbers)), numbers, [0, len(numbers)]), shape=(1, below))
    return np.asarray(row.tocsc().data)  # by column, and those of one column as they were


class _Programs(NamedTuple):
    """The programs of all atoms, as in Wires."""

    program: Ints
    step_gate: NDArray[np.int32]
    step_kind: NDArray[np.int8]
    step_kids: Ints
    kid_slot: NDArray[np.int32]
    kid_sign: NDArray[np.int8]


def _programs(
    atoms: int,
    deep: NDArray[np.intp],
    child: NDArray[np.int32],
    sign: NDArray[np.int8],
    first: Ints,
    clause: Bools,
) -> _Programs:
    """Return the programs of all atoms over the gates that are not flat."""
    slots: list[dict[int, int]] = [{} for _ in range(atoms if len(deep) else 0)]  # by atom: gate -> its step
    kids: list[list[list[tuple[int, int]]]] = [[] for _ in slots]
    reach: dict[int, list[int]] = {}  # by gate: the atoms below it
    steps = 0
    for g in deep.tolist():
        part = slice(first[g], first[g + 1])
        moved: dict[int, list[tuple[int, int]]] = {}
        for number, s in zip(child[part].tolist(), sign[part].tolist(), strict=True):
            for i in (number,) if number < atoms else reach[number - atoms]:
                moved.setdefault(i, []).append((-1 if number < atoms else slots[i][number - atoms], s))
        reach[g] = sorted(moved)
        steps += len(moved)
        if steps > MAX_STEPS:
            raise LimitExceeded(
                f"nested formulae need more than {MAX_STEPS} steps (limit MAX_STEPS) for all their atoms: "
                "give names to parts of them, as atoms with an equivalence each",
                MAX_STEPS=MAX_STEPS,
            )
        for i, those in moved.items():
            slots[i][g] = len(kids[i])
            kids[i].append(those)
    program = np.zeros(atoms + 1, np.int64)
    program[1:] = np.cumsum([len(each) for each in slots]) if slots else 0
    step_gate = np.fromiter(chain.from_iterable(slots), np.int32, int(program[-1]))
    kinds: list[int] = []
    for steps_of in kids:
        first_step = len(kinds)
        for at, moving in enumerate(steps_of):
            slot, s = moving[0]
            simple = len(moving) == 1 and slot in (-1, at - 1)
            kinds.append((ATOM if slot < 0 else BEFORE) + (s < 0) if simple else MANY)
            if not simple:
                for earlier in {slot for slot, _ in moving if slot >= 0}:
                    kinds[first_step + earlier] |= NEEDED
    step_kind = np.array(kinds, np.int8) | (CLAUSE * clause[step_gate].astype(np.int8))
    each = list(chain.from_iterable(kids))
    step_kids = np.concatenate([[0], np.cumsum([len(those) for those in each])]).astype(np.int64)
    flatly = list(chain.from_iterable(each))
    kid_slot = np.array([slot for slot, _ in flatly], np.int32)
    kid_sign = np.array([s for _, s in flatly], np.int8)
    return _Programs(program, step_gate, step_kind, step_kids, kid_slot, kid_sign)


def _sorted_out(
    programs: _Programs, clause: Bools, parity: Bools, idle: Bools
) -> tuple[tuple[Ints, GateNumbers], tuple[Ints, GateNumbers, GateNumbers], _Programs]:
    """Return the steps in which an atom meets a gate by itself, those that are pairs, and what is left.

    The first have the part of Wires that each belongs to and the gate, pairs the part, the upper gate and the
    one under it. ``clause``, ``parity`` and ``idle``, shape (gates,), say what each gate is; idle ones weigh
    nothing.
    """
    program, gate, kind, step_kids, slot, kid_sign = programs
    atom = np.repeat(np.arange(len(program) - 1), np.diff(program))
    plain, apart = kind & SIMPLE, (kind & NEEDED) == 0
    follows = np.append(atom[1:] == atom[:-1], False)  # the next step is of the same program
    heeded = follows & np.append((plain[1:] & ~1) == BEFORE, False)
    free = apart & ~heeded  # no other step depends on it
    alone = free & (plain < BEFORE)
    inner = apart & heeded & (plain < BEFORE) & clause[gate] & idle[gate]
    outer = free & (((plain == BEFORE_NEGATED) & clause[gate]) | ((plain == BEFORE) & parity[gate]))
    under = np.flatnonzero(inner[:-1] & outer[1:])
    upper = under + 1
    part = PARTS * atom + plain
    by_itself = part[alone] + OTHERS_TRUE * ~clause[gate[alone]], gate[alone]
    pair = part[under] + OTHERS_TRUE * parity[gate[upper]], gate[upper], gate[under]
    keep = ~alone
    keep[under] = keep[upper] = False
    # Steps are known by their places in the program of their atom, which others now leave.
    places = np.append(0, np.cumsum(keep))
    kept = keep[np.repeat(np.arange(len(kind)), np.diff(step_kids))]
    owner = np.repeat(atom, np.diff(step_kids))[kept]
    moved = places[program[owner] + np.maximum(slot[kept], 0)] - places[program[owner]]
    rest = _Programs(
        places[program],
        gate[keep],
        kind[keep],
        np.append(0, np.cumsum(np.diff(step_kids)[keep])).astype(np.int64),
        np.where(slot[kept] < 0, -1, moved).astype(np.int32),
        kid_sign[kept],
    )
    return by_itself, pair, rest
