"""Clauses -> a circuit, top down: decide an atom, propagate, take apart what is left, and remember each part.

A part (component) is some undecided atoms and the clauses over them that nothing has made true. Which they
are says all of it: the literals of such a clause over other atoms are false. So a part that is met again,
in whatever surroundings, is the gate made for it the first time. Decisions follow the reverse of an order
of elimination: the atoms that hold a part together come first, and clauses of small width (treewidth) make
few different parts, however many atoms there are.

Sets of atoms and of clauses are bits of integers, which Python joins and compares at the speed of memory; a
state is two of them, and nothing is undone on the way back. What a literal implies by clauses of two is
worked out once, with all that follows from it, and propagated in one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from lbm.errors import TooManyWorlds
from lbm.knowledge.circuits import Builder, Circuit
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.orders import banded_order, elimination_order
from lbm.reasoning.solvers.sat import solving

MAX_EDGES: Final = 1_000_000
"""Edges of a circuit up to which clauses are compiled."""

MAX_CONNECTED: Final = 10_000
"""Atoms, and as many clauses of three or more literals, that a part may have to be compiled."""

MAX_MEMORY: Final = 1 << 29
"""Bytes of parts that are remembered; past it all of them are forgotten, and met again."""

_ENTRY: Final = 300  # bytes of a part that is remembered, beside its bits
_LONG: Final = 40  # literals of a clause that no longer counts for the order: it would join all with all
_SHARE: Final = 0.2  # of the time, for the order of decisions
_EASY: Final = 14  # cost of an order, as a logarithm, that need not be better
_HOPELESS: Final = 30  # cost past which it says little about the circuit
_ROUNDS: Final = 10  # of orders in between
_FEW: Final = 30  # atoms of a part, none of them shown, that is searched for a model here
_CONFLICTS: Final = 1000  # of a SAT solver between two looks at the clock
_WIDE: Final = 8  # literals that a gate has as parts of its own, and parts of a block of literals
_BATCH: Final = 5000  # clauses that are simplified between two looks at the clock
_LOOKS: Final = 64  # parts between two looks at the clock; fewer where each takes longer

Clause = tuple[int, ...]


def compile_clauses(
    clauses: Iterable[Iterable[int]],
    variables: int,
    *,
    shown: Collection[int] | None = None,
    budget: Budget = NO_LIMIT,
    most: int | None = None,
) -> Circuit:
    """Return a deterministic decomposable circuit with the models of some clauses.

    Parameters
    ----------
    clauses
        Of literals v and -v, for v from 1 to ``variables``.
    shown
        Variables, from 1: the circuit is one over these alone, numbered from 0 as they increase, and its
        models are theirs in the models of the clauses (projection). None: all.
    most
        Edges past which TooManyWorlds is raised; None: MAX_EDGES.

    >>> circuit = compile_clauses([[1, 2], [-2, 3]], 3)
    >>> circuit.variables, circuit.edges
    (3, 6)
    """
    visible = range(1, variables + 1) if shown is None else sorted(set(shown))
    place = {variable: at for at, variable in enumerate(visible)}
    build = Builder(len(visible))
    simple = simplified(clauses, budget=budget)
    if simple is None:
        return build.circuit(build.false)
    units, left = simple
    parts = [build.literal(place[abs(literal)], literal > 0) for literal in units if abs(literal) in place]
    for group in _connected(left):
        part = _Search(group, place, build, budget, MAX_EDGES if most is None else most).run()
        if part == build.false:
            return build.circuit(build.false)
        parts.append(part)
    return build.circuit(build.product(part for part in parts if part != build.true))


def simplified(
    clauses: Iterable[Iterable[int]], *, budget: Budget = NO_LIMIT
) -> tuple[list[int], list[Clause]] | None:
    """Return the literals that follow by units, and the other clauses without them; None: a contradiction.

    What is left has two literals or more each, none twice and none beside its negation, and no clause twice.

    >>> simplified([[1], [-1, 2, 2], [2, 3], [3, 4, 5], [4, 3, 5], [4, -4]])
    ([1, 2], [(3, 4, 5)])
    """
    rows = [frozenset(clause) for clause in clauses]
    rows = [row for row in dict.fromkeys(rows) if not any(-literal in row for literal in row)]
    true: dict[int, None] = {}
    queue = [next(iter(row)) for row in rows if len(row) == 1]
    if any(not row for row in rows):
        return None
    where: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        if not number % _BATCH:
            budget.tick()
        for literal in row:
            where.setdefault(literal, []).append(number)
    short = {number: set(row) for number, row in enumerate(rows)}
    budget.tick()
    for literal in queue:  # which grows on the way
        if literal in true:
            continue
        if -literal in true:
            return None
        true[literal] = None
        for number in where.get(literal, ()):
            short.pop(number, None)
        for number in where.get(-literal, ()):
            rest = short.get(number)
            if rest is not None:
                rest.discard(-literal)
                if not rest:
                    return None
                if len(rest) == 1:
                    queue.append(next(iter(rest)))
    left = dict.fromkeys(tuple(sorted(rest, key=abs)) for rest in short.values())
    return list(true), list(left)


def _connected(clauses: Sequence[Clause]) -> list[list[Clause]]:
    """Return the clauses in groups that share no variable."""
    above: dict[int, int] = {}

    def top(variable: int) -> int:
        while above.setdefault(variable, variable) != variable:
            above[variable] = above[above[variable]]
            variable = above[variable]
        return variable

    for clause in clauses:
        first = top(abs(clause[0]))
        for literal in clause:
            above[top(abs(literal))] = first
    groups: dict[int, list[Clause]] = {}
    for clause in clauses:
        groups.setdefault(top(abs(clause[0])), []).append(clause)
    return list(groups.values())


class _Frame:
    """A part whose branches are being made.

    ``code`` is the literal of the branch, first the positive one; ``branch`` has its slots so far, None where
    it is contradictory, ``waiting`` the parts of it that are not looked at yet, ``done`` earlier branches.
    """

    __slots__ = ("branch", "code", "done", "key", "waiting")

    def __init__(self, key: tuple[int, int], waiting: list[tuple[int, int]], code: int) -> None:
        self.key, self.waiting, self.code = key, waiting, code
        self.branch: list[int] | None = []
        self.done: list[list[int]] = []


class _Search:
    """Connected clauses, as bits, and the gates of their parts.

    Bit 0 is the variable that is decided first. Literal 2·b + 1 says that the variable of bit b is true, and
    literal 2·b that it is false. Clauses of two literals are in ``pairs`` and in what literals imply only;
    the bits of clauses are those of the longer ones.
    """

    def __init__(
        self,
        clauses: Sequence[Clause],
        place: dict[int, int],
        build: Builder,
        budget: Budget,
        most: int,
    ) -> None:
        self.build, self.budget, self.most = build, budget, most
        self.blocks: dict[tuple[int, int, int, int], int] = {}
        names = sorted({abs(literal) for clause in clauses for literal in clause})
        number = len(names)
        longer = [clause for clause in clauses if len(clause) > 2]
        if max(number, len(longer)) > MAX_CONNECTED:
            raise TooManyWorlds(
                f"{number} connected atoms and {len(longer)} clauses are too many to compile, "
                f"beyond {MAX_CONNECTED} (limit MAX_CONNECTED): evidence that takes them apart would help",
                MAX_CONNECTED=MAX_CONNECTED,
            )
        order, self.dense = _decisions(clauses, names, place, budget)
        bit = {variable: at for at, variable in enumerate(order)}
        self.patience = _LOOKS * 1000 // (1000 + number + len(longer))
        self.weight = _ENTRY + (number + len(longer)) // 7  # bytes of a part that is remembered
        self.all = (1 << number) - 1
        self.shown = sum(1 << at for at, variable in enumerate(order) if variable in place)
        self.slots = [
            2 * place[variable] + value if variable in place else -1 for variable in order for value in (0, 1)
        ]
        self.atoms_of = [0] * len(longer)
        self.positive_of = [0] * len(longer)
        self.pairs = [0] * number
        self.where = [0] * (2 * number)
        self.implied: list[list[int]] = [[] for _ in range(2 * number)]
        at = 0
        for clause in clauses:
            codes = [2 * bit[abs(literal)] + (literal > 0) for literal in clause]
            if len(codes) == 2:
                one, other = codes
                self.implied[one ^ 1].append(other)
                self.implied[other ^ 1].append(one)
                self.pairs[one >> 1] |= 1 << (other >> 1)
                self.pairs[other >> 1] |= 1 << (one >> 1)
                continue
            for code in codes:
                self.atoms_of[at] |= 1 << (code >> 1)
                self.where[code] |= 1 << at
                if code & 1:
                    self.positive_of[at] |= 1 << (code >> 1)
            at += 1
        self.clauses = (1 << len(longer)) - 1
        self.around = [self.where[2 * v] | self.where[2 * v + 1] for v in range(number)]
        self.near = list(self.pairs)
        for atoms in self.atoms_of:
            for v in _bits(atoms):
                self.near[v] |= atoms
        self._close()

    def _close(self) -> None:
        """Work out what each literal implies by clauses of two, and which others become true or shorter."""
        implied, number = self.implied, len(self.implied)
        self.makes_true, self.makes_false = [0] * number, [0] * number
        self.satisfies, self.shortens, self.touches = [0] * number, [0] * number, [0] * number
        for group in _components(implied):
            true = false = satisfied = shortened = touched = 0
            for code in group:
                if code & 1:
                    true |= 1 << (code >> 1)
                else:
                    false |= 1 << (code >> 1)
                satisfied |= self.where[code]
                shortened |= self.where[code ^ 1]
                touched |= self.near[code >> 1]
                for other in implied[code]:
                    true |= self.makes_true[other]
                    false |= self.makes_false[other]
                    satisfied |= self.satisfies[other]
                    shortened |= self.shortens[other]
                    touched |= self.touches[other]
            for code in group:
                self.makes_true[code], self.makes_false[code] = true, false
                self.satisfies[code], self.shortens[code] = satisfied, shortened
                self.touches[code] = touched

    def run(self) -> int:
        """Return the slot of all of it."""
        build, shown = self.build, self.shown
        true_slot, false_slot = build.true, build.false
        known: dict[tuple[int, int], int] = {}
        looks = 0
        stack = [_Frame((0, 0), [(self.all, self.clauses)], -1)]
        while True:
            frame = stack[-1]
            if frame.waiting:
                key = frame.waiting.pop()
                found = known.get(key)
                if found is None:
                    looks -= 1
                    if looks < 0:
                        self._look(known)
                        looks = self.patience
                    if not key[0] & shown and key[0].bit_count() > _FEW:
                        known[key] = true_slot if self._has_model(key) else false_slot
                        frame.waiting.append(key)
                        continue
                    frame = _Frame(key, [], self._first(key))
                    stack.append(frame)
                    self._begin(frame)
                    continue
                slot = found
            elif len(stack) == 1:
                return false_slot if frame.branch is None else build.product(frame.branch)
            else:
                if frame.branch is not None:
                    frame.done.append(frame.branch)
                sought = not frame.key[0] & shown  # whether there is a model, and no more
                if frame.code & 1 and not (sought and frame.done):
                    frame.code -= 1
                    self._begin(frame)
                    continue
                slot = known[frame.key] = self._join(frame.done, sought)
                stack.pop()
                frame = stack[-1]
            if slot == false_slot:
                frame.branch, frame.waiting = None, []
            elif slot != true_slot and frame.branch is not None:
                frame.branch.append(slot)

    def _first(self, key: tuple[int, int]) -> int:
        """Return the literal of the first branch: of the first variable, or the busiest if all are near."""
        free, active = key
        if not self.dense:
            return 2 * (free & -free).bit_length() - 1
        most = best = -1
        for v in _bits(free & self.shown or free):
            busy = (self.around[v] & active).bit_count() + (self.pairs[v] & free).bit_count()
            if busy > most:
                most, best = busy, v
        return 2 * best + 1

    def _has_model(self, key: tuple[int, int]) -> bool:
        """Return whether a part has a model."""
        free, active = key
        codes = [code for v in _bits(free) for code in (2 * v, 2 * v + 1)]
        clauses = [
            [code ^ 1, other]
            for code in codes
            for other in self.implied[code]
            if code ^ 1 < other and free >> (other >> 1) & 1
        ]
        for clause in _bits(active):
            true, atoms = self.positive_of[clause], self.atoms_of[clause]
            clauses.append([2 * v + (true >> v & 1) for v in _bits(atoms & free)])
        rows = ([(code >> 1) + 1 if code & 1 else -(code >> 1) - 1 for code in clause] for clause in clauses)
        for model in solving(rows, conflicts=_CONFLICTS):
            if model is not None:
                return model is not False
            self.budget.tick()
        raise AssertionError("a solver goes on until it has an answer")

    def _begin(self, frame: _Frame) -> None:
        """Begin a branch of a part: what its literal implies, and the parts that are left."""
        free, active = frame.key
        result = self._decide(frame.code, free, active)
        if result is None:
            frame.branch, frame.waiting = None, []
            return
        true, false, left, active, touched = result
        if free & self.shown:
            own = ~(1 << (frame.code >> 1)) & self.shown
            frame.branch = [self.slots[frame.code], *self._literals(true & own, false & own)]
        else:
            frame.branch = []
        frame.waiting = self._apart(left, active, touched)

    def _literals(self, true: int, false: int) -> list[int]:
        """Return slots for some literals: where they are many, of products that others will share."""
        if (true | false).bit_count() <= _WIDE:
            return self._single(0, true, false)
        size = _WIDE
        while (true | false) >> size:
            size *= _WIDE
        return self._blocks(0, size, true, false)

    def _single(self, first: int, true: int, false: int) -> list[int]:
        """Return slots of literals, the bits counted from ``first``."""
        slots = self.slots
        found = [slots[2 * (first + v) + 1] for v in _bits(true)]
        return found + [slots[2 * (first + v)] for v in _bits(false)]

    def _blocks(self, first: int, size: int, true: int, false: int) -> list[int]:
        """Return slots for the literals of a block of bits, one for each of its parts that has any."""
        if size == _WIDE:
            return self._single(first, true, false)
        found = []
        size //= _WIDE
        mask = (1 << size) - 1
        while true or false:
            some = true & mask, false & mask
            if some != (0, 0):
                key = (first, size, *some)
                slot = self.blocks.get(key)
                if slot is None:
                    slot = self.blocks[key] = self.build.product(self._blocks(first, size, *some))
                found.append(slot)
            true >>= size
            false >>= size
            first += size
        return found

    def _join(self, done: list[list[int]], sought: bool) -> int:
        """Return the slot of a part whose branches are done."""
        build = self.build
        if sought or not done:
            return build.true if done else build.false
        if len(done) == 2 and done[0][1:] == done[1][1:]:
            return build.product(done[0][1:])
        return build.sum([build.product(parts) for parts in done])

    def _look(self, known: dict[tuple[int, int], int]) -> None:
        """Look at the clock and at the limits; past that of memory, forget the parts met so far."""
        self.budget.tick()
        if len(known) * self.weight > MAX_MEMORY:
            known.clear()
        if self.build.edges > self.most:
            raise TooManyWorlds(
                f"the circuit of the clauses has more than {self.most} edges (limit MAX_EDGES): "
                "evidence that settles some atoms would help, or a method of sampling",
                MAX_EDGES=self.most,
            )

    def _decide(self, code: int, free: int, active: int) -> tuple[int, int, int, int, int] | None:
        """Return what follows from a literal in a part; None: a contradiction.

        That is the bits made true, those made false, those left free, the clauses left, and the bits near
        those that are gone.
        """
        makes_true, makes_false, atoms_of = self.makes_true, self.makes_false, self.atoms_of
        true, false = makes_true[code], makes_false[code]
        if true & false:
            return None
        satisfied, shortened, touched = self.satisfies[code], self.shortens[code], self.touches[code]
        left = free & ~(true | false)
        while True:
            active &= ~satisfied
            shortened &= active
            more_true = more_false = satisfied = new = touching = 0
            while shortened:
                low = shortened & -shortened
                shortened ^= low
                clause = low.bit_length() - 1
                rest = atoms_of[clause] & left
                if not rest & (rest - 1):
                    if not rest:
                        return None
                    unit = 2 * rest.bit_length() - 2
                    if rest & self.positive_of[clause]:
                        unit += 1
                    more_true |= makes_true[unit]
                    more_false |= makes_false[unit]
                    satisfied |= self.satisfies[unit]
                    new |= self.shortens[unit]
                    touching |= self.touches[unit]
            if not (more_true or more_false):
                return true & free, false & free, left, active, touched & left
            true |= more_true & left
            false |= more_false & left
            if true & false:
                return None
            left &= ~(true | false)
            shortened = new
            touched |= touching

    def _apart(self, free: int, active: int, touched: int) -> list[tuple[int, int]]:
        """Return the parts that free variables fall into, without those that stand in no clause.

        They were connected, so each part has one of those that were near what is gone. Fragments grow from
        these, in turns, until all but one are whole parts: the last is the rest, however large.
        """
        pairs, near, around, atoms_of = self.pairs, self.near, self.around, self.atoms_of
        fragments: deque[tuple[int, int, int]] = deque()  # bits reached, those looked at, their clauses
        parts = []
        taken = 0
        while touched or len(fragments) > 1:
            if touched:
                low = touched & -touched
                reached, looked, clauses = low, 0, 0
            else:
                reached, looked, clauses = fragments.popleft()
                todo = reached & ~looked
                if not todo:
                    free &= ~reached
                    active &= ~clauses
                    if reached & (reached - 1):
                        parts.append((reached, clauses))
                    continue
                low = todo & -todo
            looked |= low
            v = low.bit_length() - 1
            more = around[v] & active
            if more == around[v]:  # they are all left
                new = near[v]
                clauses |= more
            else:
                new = pairs[v]
                more &= ~clauses
                clauses |= more
                while more:
                    low = more & -more
                    more ^= low
                    new |= atoms_of[low.bit_length() - 1]
            new &= free & ~reached
            reached |= new
            if new & taken:
                for _ in range(len(fragments)):
                    other = fragments.popleft()
                    if other[0] & reached:
                        reached |= other[0]
                        looked |= other[1]
                        clauses |= other[2]
                    else:
                        fragments.append(other)
            taken |= reached
            touched &= ~reached
            fragments.append((reached, looked, clauses))
        if free & (free - 1):
            parts.append((free, active))
        return parts


def _decisions(
    clauses: Sequence[Clause], names: Sequence[int], place: Collection[int], budget: Budget
) -> tuple[list[int], bool]:
    """Return the variables in the order in which they are decided, and whether it is of no use.

    It is of none where half of the variables and more are in one bag. Those shown come first in any case.
    """
    number = {variable: at for at, variable in enumerate(names)}
    scopes = [[number[abs(literal)] for literal in clause] for clause in clauses if len(clause) <= _LONG]
    visible = [at for at, variable in enumerate(names) if variable in place]
    last = () if len(visible) == len(names) else visible
    share = budget.part(_SHARE)
    order = elimination_order(scopes, [1.0] * len(names), last=last, budget=share)
    if _EASY < order.cost < _HOPELESS:  # it matters, and better ones make smaller circuits
        order = elimination_order(scopes, [1.0] * len(names), last=last, rounds=_ROUNDS, budget=share)
        if not last:  # half of the cost, at least, or the greedy order stays
            order = banded_order(scopes, [1.0] * len(names), most=order.cost - 1, budget=share) or order
    return [names[at] for at in reversed(order.variables)], order.width > len(names) / 2


def _bits(mask: int) -> list[int]:
    """Return the places of the bits of a mask, lowest first."""
    places = []
    while mask:
        low = mask & -mask
        mask ^= low
        places.append(low.bit_length() - 1)
    return places


def _components(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, each after all that it leads to."""
    number = len(after)
    index, lowest, on = [-1] * number, [0] * number, bytearray(number)
    path: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(number):
        if index[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if not at:
                index[node] = lowest[node] = count
                count += 1
                path.append(node)
                on[node] = 1
            for at in range(at, len(after[node])):  # noqa: B020 - from where it was left
                other = after[node][at]
                if index[other] < 0:
                    work += [(node, at + 1), (other, 0)]
                    break
                if on[other]:
                    lowest[node] = min(lowest[node], index[other])
            else:
                if lowest[node] == index[node]:
                    group = []
                    while True:
                        other = path.pop()
                        on[other] = 0
                        group.append(other)
                        if other == node:
                            break
                    found.append(group)
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
    return found
