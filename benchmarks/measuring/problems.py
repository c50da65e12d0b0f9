"""Generated problems: clauses as arrays that judge worlds by themselves, and theories as text.

Everything depends on its numbers only: the same call gives the same problem everywhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import lbm

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

COLOURS = ("red", "green", "blue")
EDGES_PER_NODE = 2.395  # of the flat graphs in SATLIB, where 3-colouring is hardest


@dataclass(frozen=True, eq=False)
class Problem:
    """Clauses over atoms 1..atoms, written as in DIMACS.

    ``literals`` has shape (number of literals,); clause j is ``literals[starts[j]:starts[j + 1]]``, and
    none is empty. ``weights`` has shape (clauses,), 0 for a hard clause; None: all are hard.
    """

    atoms: int
    literals: NDArray[np.int32]
    starts: Ints
    weights: Ints | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self) -> list[list[int]]:
        """Return the clauses as lists of literals."""
        numbers = self.literals.tolist()
        return [numbers[start:end] for start, end in pairwise(self.starts.tolist())]

    def broken(self, worlds: Bools) -> Bools:
        """Return which clauses are false, shape (worlds, clauses), in worlds of shape (worlds, atoms)."""
        true = worlds[:, np.abs(self.literals) - 1] == (self.literals > 0)
        return ~np.logical_or.reduceat(true, self.starts[:-1], axis=1)

    def costs(self, worlds: Bools) -> Ints:
        """Return the weight that each world loses, shape (worlds,); -1 where it breaks a hard clause."""
        weights = np.zeros(len(self), np.int64) if self.weights is None else self.weights
        found = np.empty(len(worlds), np.int64)
        chunk = max(1, (1 << 24) // max(1, len(self.literals)))
        for first in range(0, len(worlds), chunk):
            broken = self.broken(worlds[first : first + chunk])
            lost = broken @ weights
            lost[broken[:, weights == 0].any(axis=1)] = -1
            found[first : first + chunk] = lost
        return found

    def cost(self, values: Sequence[bool]) -> int | None:
        """Return the weight that one world loses; None: it breaks a hard clause."""
        found = int(self.costs(np.array([values], dtype=bool))[0])
        return None if found < 0 else found

    def theory(self) -> lbm.Theory:
        """Return a theory that has not been met before, so that nothing is remembered of it."""
        from lbm.knowledge.clauses import Clauses
        from lbm.knowledge.theory import Theory

        names = tuple(f"x{i}" for i in range(1, self.atoms + 1))
        return Theory.from_clauses(Clauses(names, self.literals, self.starts), self.weights)


def problem(atoms: int, rows: Iterable[Sequence[int]], weights: Ints | None = None) -> Problem:
    """Return clauses given as lists of literals."""
    listed = list(rows)
    starts = np.cumsum([0, *map(len, listed)], dtype=np.int64)
    literals = np.fromiter((literal for row in listed for literal in row), np.int32, int(starts[-1]))
    return Problem(atoms, literals, starts, weights)


def random_clauses(atoms: int, clauses: int, width: int, *, seed: int, heaviest: int = 0) -> Problem:
    """Return clauses of distinct atoms, each with a random sign; weights are 1..heaviest, or all are hard."""
    rng = np.random.default_rng([atoms, clauses, width, seed])
    chosen = rng.integers(1, atoms + 1, (clauses, width), dtype=np.int32)
    while True:
        ordered = np.sort(chosen, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(again):
            break
        chosen[again] = rng.integers(1, atoms + 1, (len(again), width), dtype=np.int32)
    signs = rng.integers(0, 2, chosen.shape, dtype=np.int32) * 2 - 1
    weights = rng.integers(1, heaviest + 1, clauses) if heaviest else None
    starts = np.arange(0, clauses * width + 1, width, dtype=np.int64)
    return Problem(atoms, (chosen * signs).ravel(), starts, weights)


def satisfiable_clauses(atoms: int, clauses: int, width: int, number: int) -> list[tuple[int, Problem]]:
    """Return the first ``number`` random problems that CaDiCaL finds satisfiable, each with its seed."""
    from pysat.solvers import Solver

    found: list[tuple[int, Problem]] = []
    seed = 0
    while len(found) < number:
        made = random_clauses(atoms, clauses, width, seed=seed)
        with Solver("cadical153", bootstrap_with=made.rows()) as solver:
            if solver.solve():
                found.append((seed, made))
        seed += 1
    return found


# --- graphs ------------------------------------------------------------------------------------------


def flat_graph(nodes: int, *, seed: int) -> list[tuple[int, int]]:
    """Return the edges of a graph with a hidden 3-colouring, its classes and its edges spread evenly."""
    rng = random.Random(f"flat {nodes} {seed}")
    hidden = [node % 3 for node in range(nodes)]
    rng.shuffle(hidden)
    groups = [[node for node in range(nodes) if hidden[node] == colour] for colour in range(3)]
    pairs = list(combinations(range(3), 2))
    wanted = round(EDGES_PER_NODE * nodes)
    if wanted > 3 * (nodes // 3) ** 2:
        raise ValueError(
            f"expected at least 9 nodes, or there are not enough edges to choose from, got {nodes}"
        )
    edges: set[tuple[int, int]] = set()
    while len(edges) < wanted:
        first, second = pairs[len(edges) % 3]  # as many edges between any two classes
        a, b = rng.choice(groups[first]), rng.choice(groups[second])
        edges.add((min(a, b), max(a, b)))
    return sorted(edges)


def colouring_clauses(nodes: int, edges: Sequence[tuple[int, int]]) -> Problem:
    """Return 3-colouring as clauses: some colour for each node, no two of them, and edges of two colours."""

    def coloured(node: int, colour: int) -> int:
        return 3 * node + colour + 1

    rows = [[coloured(node, colour) for colour in range(3)] for node in range(nodes)]
    rows += [
        [-coloured(node, a), -coloured(node, b)]
        for node in range(nodes)
        for a, b in combinations(range(3), 2)
    ]
    rows += [[-coloured(a, colour), -coloured(b, colour)] for a, b in edges for colour in range(3)]
    return problem(3 * nodes, rows)


def colouring_text(nodes: int, edges: Sequence[tuple[int, int]]) -> str:
    """Return 3-colouring as people write it, with ``exactly``; atoms in the order of the clauses."""
    lines = [f"exactly(1, {', '.join(f'{colour}(n{node})' for colour in COLOURS)})" for node in range(nodes)]
    lines += [f"~({colour}(n{a}) & {colour}(n{b}))" for a, b in edges for colour in COLOURS]
    return "\n".join(lines)


def spin_glass(side: int, *, heaviest: int, seed: int) -> Problem:
    """Return a square of spins tied to their neighbours, round the edges; each tie likes one sign."""
    rng = random.Random(f"spin glass {side} {heaviest} {seed}")
    rows, weights = [], []
    for x in range(side):
        for y in range(side):
            one = side * x + y + 1
            for other in (side * ((x + 1) % side) + y + 1, side * x + (y + 1) % side + 1):
                sign, weight = rng.choice((1, -1)), rng.randint(1, heaviest)
                rows += [[one, -sign * other], [-one, sign * other]]
                weights += [weight, weight]
    return problem(side * side, rows, np.array(weights, dtype=np.int64))


def cut(nodes: int, edges: int, *, heaviest: int, seed: int) -> Problem:
    """Return the largest cut of a random graph: ends of an edge on two sides, or its weight is lost."""
    rng = random.Random(f"cut {nodes} {edges} {heaviest} {seed}")
    chosen: set[tuple[int, int]] = set()
    while len(chosen) < edges:
        a, b = rng.sample(range(1, nodes + 1), 2)
        chosen.add((min(a, b), max(a, b)))
    rows, weights = [], []
    for a, b in sorted(chosen):
        weight = rng.randint(1, heaviest)
        rows += [[a, b], [-a, -b]]
        weights += [weight, weight]
    return problem(nodes, rows, np.array(weights, dtype=np.int64))


def blocks(number: int, *, seed: int) -> Problem:
    """Return a plan that turns piles of blocks into others, a block at a time, as clauses that have a model.

    There are as many steps as it takes to put all blocks on the table, and then where they belong.
    """
    rng = random.Random(f"blocks {number} {seed}")
    steps = 2 * number
    table = number

    def piles() -> list[int]:
        order = rng.sample(range(number), number)
        return [
            below
            for _, below in sorted(
                (block, order[i - 1] if i and rng.random() < 0.7 else table) for i, block in enumerate(order)
            )
        ]

    def on(block: int, place: int, step: int) -> int:
        return 1 + (step * number + block) * (number + 1) + place

    moves = number * (number + 1) * (steps + 1)

    def moved(block: int, step: int) -> int:
        return 1 + moves + step * number + block

    rows: list[list[int]] = []
    for step in range(steps + 1):
        for block in range(number):
            places = [on(block, place, step) for place in range(number + 1) if place != block]
            rows += [[*places], [-on(block, block, step)]]
            rows += [[-a, -b] for a, b in combinations(places, 2)]
        for place in range(number):
            rows += [[-on(a, place, step), -on(b, place, step)] for a, b in combinations(range(number), 2)]
    for step in range(steps):
        rows += [[-moved(a, step), -moved(b, step)] for a, b in combinations(range(number), 2)]
        for block in range(number):
            move = moved(block, step)
            for place in range(number + 1):
                rows.append([-on(block, place, step), move, on(block, place, step + 1)])
            for other in range(number):
                if other == block:
                    continue
                rows.append([-move, -on(other, block, step)])
                for place in range(number):
                    rows.append([-move, -on(block, place, step + 1), -on(other, place, step)])
    for step, state in ((0, piles()), (steps, piles())):
        rows += [[on(block, below, step)] for block, below in enumerate(state)]
    return problem(moves + number * steps, rows)


# --- theories that are not random --------------------------------------------------------------------


def pigeonholes(pigeons: int, holes: int, *, seed: int) -> tuple[str, int]:
    """Return a theory in which every pigeon has one hole, at most two share it, and sharing costs.

    With more pigeons than holes the cheapest holes are shared, one for each pigeon too many: so the least
    cost is known, and is returned too.
    """
    rng = random.Random(f"pigeons {pigeons} {holes} {seed}")
    costs = [rng.randint(1, 100) for _ in range(holes)]
    lines = [f"exactly(1, {', '.join(f'sits(p{p}, h{h})' for h in range(holes))})" for p in range(pigeons)]
    for h, cost in enumerate(costs):
        sitting = ", ".join(f"sits(p{p}, h{h})" for p in range(pigeons))
        lines += [f"atmost(2, {sitting})", f"{cost}: atmost(1, {sitting})"]
    return "\n".join(lines), sum(sorted(costs)[: max(0, pigeons - holes)])


SHIFTS = (("early", 4), ("late", 3), ("night", 2))  # and how many people each needs


def roster(people: int, days: int, *, seed: int) -> str:
    """Return a roster: shifts filled exactly, one shift a day, rest after nights, and weighted wishes."""
    rng = random.Random(f"roster {people} {days} {seed}")
    names = [shift for shift, _ in SHIFTS]
    most = -(-days * sum(number for _, number in SHIFTS) // people) + 1
    lines = []
    for day in range(days):
        for shift, number in SHIFTS:
            working = ", ".join(f"{shift}(p{person}, d{day})" for person in range(people))
            lines.append(f"exactly({number}, {working})")
    for person in range(people):
        own = [[f"{shift}(p{person}, d{day})" for shift in names] for day in range(days)]
        lines += [f"atmost(1, {', '.join(today)})" for today in own]
        lines += [
            f"~(night(p{person}, d{day}) & {shift}(p{person}, d{day + 1}))"
            for day in range(days - 1)
            for shift in ("early", "late")
        ]
        lines.append(f"atmost({most}, {', '.join(name for today in own for name in today)})")
        for day in range(days):
            if rng.random() < 0.6:
                sign, shift = rng.choice(("", "~")), rng.choice(names)
                lines.append(f"{rng.randint(1, 10)}: {sign}{shift}(p{person}, d{day})")
            if day and rng.random() < 0.3:  # the same shift two days running, or none of both
                shift = rng.choice(names)
                lines.append(
                    f"{rng.randint(1, 5)}: {shift}(p{person}, d{day - 1}) -> {shift}(p{person}, d{day})"
                )
    return "\n".join(lines)


def acquaintances(people: int, *, seed: int) -> str:
    """Return rules over all pairs and triples of people, with noisy observations of a hidden truth.

    Liking is mutual, and likes spread: n people make n(n-1)(n-2) ground instances of the last rule.
    """
    rng = random.Random(f"acquaintances {people} {seed}")
    names = [f"a{i}" for i in range(people)]
    group = {name: rng.randrange(4) for name in names}
    lines = [
        f"domain person = {{{', '.join(names)}}}",
        "forall X, Y in person, X != Y: likes(X, Y) -> likes(Y, X)",
        "2: forall X, Y in person, X != Y: likes(X, Y) & smokes(X) -> smokes(Y)",
        "1: forall X, Y, Z in person, X != Y, Y != Z, X != Z: likes(X, Y) & likes(Y, Z) -> likes(X, Z)",
    ]
    for a, b in combinations(names, 2):
        if rng.random() < 0.7:
            sign = "" if (group[a] == group[b]) ^ (rng.random() < 0.2) else "~"
            lines.append(f"{rng.randint(1, 30)}: {sign}likes({a}, {b})")
    for name in names:
        sign = "" if (group[name] < 2) ^ (rng.random() < 0.3) else "~"
        lines.append(f"{rng.randint(1, 20)}: {sign}smokes({name})")
    return "\n".join(lines)


# --- theories for peers ------------------------------------------------------------------------------


def weight_lost(theory: lbm.Theory, values: Sequence[bool]) -> int | None:
    """Return the weight of the soft formulae that a world breaks; None: it breaks a hard one."""
    from lbm.knowledge.formula import holds

    world = dict(zip(theory.atoms, values, strict=True))
    lost = 0
    for statement in theory:
        if not holds(statement.formula, world):
            if statement.weight is None:
                return None
            lost += int(statement.weight)
    return lost


def quadratic(problem: Problem) -> tuple[dict[int, float], dict[tuple[int, int], float], float]:
    """Return linear terms, quadratic terms and a constant over binary variables: what a world loses.

    A clause of two literals is w(1 - a)(1 - b). One of three has a variable of its own, z, and is

        w(1 - a - b - c + ab + ac + bc + z(2 - a - b - c)),

    whose least value over z is w where all are false, and 0 elsewhere. Variables 1..atoms are the atoms.
    """
    linear: dict[int, float] = dict.fromkeys(range(1, problem.atoms + 1), 0.0)
    products: dict[tuple[int, int], float] = {}
    constant = 0.0
    weights = np.ones(len(problem), np.int64) if problem.weights is None else problem.weights

    def add(weight: float, *literals: int) -> None:
        """Add weight times a product of at most two literals, -i standing for 1 - x_i."""
        nonlocal constant
        if not literals:
            constant += weight
        elif min(literals) < 0:
            negative = min(literals)
            rest = [literal for literal in literals if literal != negative]
            add(weight, *rest)
            add(-weight, *rest, -negative)
        elif len(literals) == 1:
            linear[literals[0]] += weight
        else:
            pair = min(literals), max(literals)
            products[pair] = products.get(pair, 0.0) + weight

    spare = problem.atoms
    for row, weight in zip(problem.rows(), weights.tolist(), strict=True):
        if len(row) not in (2, 3):
            raise ValueError(f"expected clauses of two or three literals, got {row}")
        add(weight)
        for literal in row:
            add(-weight, literal)
        for pair in combinations(row, 2):
            add(weight, *pair)
        if len(row) == 3:
            spare += 1
            linear[spare] = 2.0 * weight
            for literal in row:
                add(-weight, spare, literal)
    return linear, products, constant


def describe(theory: Any) -> str:
    """Return the size of a theory in words."""
    hard = sum(statement.weight is None for statement in theory)
    return f"{len(theory.atoms):,} atoms, {hard:,} hard and {len(theory) - hard:,} soft formulae"


# --- networks ----------------------------------------------------------------------------------------


def pairwise_network(variables: int, values: int, edges: int, *, seed: int) -> str:
    """Return a Markov network in the UAI format: a table for each variable, and for each of random edges.

    The first edges make a cycle through all variables. Entries are exp(x), x uniform between -1 and 1.
    """
    rng = random.Random(f"network {variables} {values} {edges} {seed}")
    chosen = {(i, i + 1) for i in range(variables - 1)} | {(0, variables - 1)}
    while len(chosen) < edges:
        a, b = rng.sample(range(variables), 2)
        chosen.add((min(a, b), max(a, b)))
    scopes: list[tuple[int, ...]] = [*((i,) for i in range(variables)), *sorted(chosen)]
    lines = ["MARKOV", str(variables), " ".join([str(values)] * variables), str(len(scopes))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
    for scope in scopes:
        entries = [f"{math.exp(rng.uniform(-1, 1)):.6f}" for _ in range(values ** len(scope))]
        lines += [str(len(entries)), " ".join(entries)]
    return "\n".join(lines) + "\n"


def bayesian_network(variables: int, values: int, parents: int, near: int, *, seed: int) -> str:
    """Return a Bayesian network in the UAI format: each variable has parents among the ``near`` before it."""
    rng = random.Random(f"bayes {variables} {values} {parents} {near} {seed}")
    scopes, tables = [], []
    for i in range(variables):
        before = range(max(0, i - near), i)
        above = sorted(rng.sample(before, min(parents, len(before))))
        scopes.append((*above, i))
        rows = []
        for _ in range(values ** len(above)):
            shares = [rng.randint(1, 97) for _ in range(values)]
            rows += [f"{share / sum(shares):.6f}" for share in shares]
        tables.append(rows)
    lines = ["BAYES", str(variables), " ".join([str(values)] * variables), str(variables)]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
    for rows in tables:
        lines += [str(len(rows)), " ".join(rows)]
    return "\n".join(lines) + "\n"


# --- numbers of several digits -----------------------------------------------------------------------


def column_addition(digits: int, mark: str = "") -> str:
    """Return a + b = s as people add: a digit is exactly one of ten atoms, and carries are atoms.

    ``x2_7`` says that digit 2 of the first number, counted from the last one, is 7; the others are y and s.
    ``mark`` stands before all names, so that a theory was not met before.
    """
    lines = [f"~{mark}carry0"]
    for place in range(digits):
        lines += [f"exactly(1, {', '.join(digit_atoms(name, place, mark))})" for name in "xys"]
        one, other, below = (digit_atoms(name, place, mark) for name in "xys")
        carried, further = f"{mark}carry{place}", f"{mark}carry{place + 1}"
        for x in range(10):
            for y in range(10):
                for carry in (0, 1):
                    total = x + y + carry
                    said = f"{one[x]} & {other[y]} & {carried if carry else '~' + carried}"
                    lines.append(f"{said} -> {below[total % 10]} & {further if total > 9 else '~' + further}")
    return "\n".join(lines) + "\n"


def digit_atoms(name: str, place: int, mark: str = "") -> list[str]:
    """Return the ten atoms of a digit."""
    return [f"{mark}{name}{place}_{value}" for value in range(10)]


def total_is(number: int, digits: int, mark: str = "") -> str:
    """Return the formula that the sum is this number."""
    literals = [digit_atoms("s", place, mark)[number // 10**place % 10] for place in range(digits)]
    return " & ".join([*literals, f"{'' if number >= 10**digits else '~'}{mark}carry{digits}"])
