"""Slow and certain answers. Of the library they use only a formula's kind, label and args.

A set of worlds over n atoms is an int of 2ⁿ bits: bit i belongs to the world in which atom j is true
iff bit j of i is set. ``worlds`` yields the worlds in that order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import count, pairwise
from typing import Any, Protocol

import numpy as np
from pysat.solvers import Solver


class Cube(Protocol):
    """A conjunction of literals: the names of the atoms it wants true, and false."""

    true: tuple[str, ...]
    false: tuple[str, ...]


def worlds(atoms: Sequence[str]) -> Iterator[dict[str, bool]]:
    """Yield every truth assignment; the first atom changes fastest."""
    for number in range(1 << len(atoms)):
        yield {atom: bool(number >> j & 1) for j, atom in enumerate(atoms)}


def parts(formula: Any) -> list[Any]:
    """Return the distinct parts of a formula, those below before those above."""
    order, done, stack = [], set(), [formula]
    while stack:
        node = stack[-1]
        waiting = [part for part in node.args if id(part) not in done]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if id(node) not in done:
            done.add(id(node))
            order.append(node)
    return order


def truth(formula: Any, world: Mapping[str, bool]) -> bool:
    """Return the truth value of a formula in a world, by the truth tables of logic books."""
    table = {
        "and": {(True, True)},
        "or": {(True, True), (True, False), (False, True)},
        "xor": {(True, False), (False, True)},
        "implies": {(True, True), (False, True), (False, False)},
        "iff": {(True, True), (False, False)},
    }
    value: dict[int, bool] = {}
    for node in parts(formula):
        below = tuple(value[id(part)] for part in node.args)
        if node.kind == "atom":
            found = bool(world[node.label])
        elif node.kind in ("true", "false"):
            found = node.kind == "true"
        elif node.kind == "not":
            found = not below[0]
        elif node.kind in table:
            found = below in table[node.kind]
        else:
            found = _within(node.kind, node.label, below.count(True))
        value[id(node)] = found
    return value[id(formula)]


def _within(kind: str, bound: int, number: int) -> bool:
    return {"atleast": number >= bound, "atmost": number <= bound, "exactly": number == bound}[kind]


def truth_table(formula: Any, atoms: Sequence[str]) -> int:
    """Return the set of worlds over ``atoms`` in which a formula is true; all worlds at once."""
    every = (1 << (1 << len(atoms))) - 1
    column = columns(atoms)
    table: dict[int, int] = {}
    for node in parts(formula):
        below = [table[id(part)] for part in node.args]
        kind = node.kind
        if kind == "atom":
            found = column[node.label]
        elif kind in ("true", "false"):
            found = every if kind == "true" else 0
        elif kind == "not":
            found = every & ~below[0]
        elif kind == "and":
            found = below[0] & below[1]
        elif kind == "or":
            found = below[0] | below[1]
        elif kind == "xor":
            found = below[0] ^ below[1]
        elif kind == "implies":
            found = every & ~(below[0] & ~below[1])
        elif kind == "iff":
            found = every & ~(below[0] ^ below[1])
        else:
            number = [every] + [0] * len(below)  # number[k]: exactly k of the parts so far
            for part in below:
                for k in range(len(below), 0, -1):
                    number[k] = (number[k] & ~part) | (number[k - 1] & part)
                number[0] &= ~part
            found = 0
            for k, exact in enumerate(number):
                if _within(kind, node.label, k):
                    found |= exact
        table[id(node)] = found
    return table[id(formula)]


def columns(atoms: Sequence[str]) -> dict[str, int]:
    """Return for each atom the set of worlds in which it is true."""
    size = 1 << len(atoms)
    found = {}
    for j, atom in enumerate(atoms):
        block = ((1 << (1 << j)) - 1) << (1 << j)  # 2ʲ worlds without the atom, then 2ʲ with it
        width = 2 << j
        while width < size:
            block |= block << width
            width *= 2
        found[atom] = block
    return found


def models_of_cubes(cubes: Iterable[Cube], atoms: Sequence[str]) -> int:
    """Return the set of worlds over ``atoms`` in which at least one of the cubes is true."""
    column = columns(atoms)
    found = 0
    for cube in cubes:
        models = (1 << (1 << len(atoms))) - 1
        for atom in cube.true:
            models &= column[atom]
        for atom in cube.false:
            models &= ~column[atom]
        found |= models
    return found


def cubes_are_disjoint(cubes: Iterable[Cube]) -> bool:
    """Return whether every two cubes disagree about an atom, so that no world has both."""
    listed = list(cubes)
    names = dict.fromkeys(atom for cube in listed for atom in (*cube.true, *cube.false))
    place = {atom: j for j, atom in enumerate(names)}
    wanted = np.zeros((2, len(listed), len(place)), dtype=np.float32)
    for i, cube in enumerate(listed):
        for side, atoms in enumerate((cube.true, cube.false)):
            wanted[side, i, [place[atom] for atom in atoms]] = 1
    true, false = wanted
    for start in range(0, len(listed), 1024):
        rows = slice(start, start + 1024)
        clashes = true[rows] @ false.T + false[rows] @ true.T
        agreeing = np.argwhere(clashes == 0)
        if any(start + i != j for i, j in agreeing):
            return False
    return True


def score_and_hard(theory: Any, world: Mapping[str, bool]) -> tuple[Fraction, int]:
    """Return Σ w_i over the soft formulae true in a world, and the number of hard ones true in it."""
    score, hard = Fraction(0), 0
    for statement in theory:
        if truth(statement.formula, world):
            if statement.weight is None:
                hard += 1
            else:
                score += Fraction(statement.weight)
    return score, hard


def sat(*formulae: Any) -> dict[str, bool] | None:
    """Return a world in which all the formulae are true, or None if a SAT solver proves that there is none.

    Every part gets a variable that implies it and is implied by it; a cardinality counts with one variable
    for "at least k of the first i parts".
    """
    numbers = count(1)
    atom: dict[str, int] = {}
    variable: dict[int, int] = {}
    with Solver("cadical153") as solver:

        def define(kind: str, below: Sequence[int]) -> int:
            new = next(numbers)
            if kind == "and":
                clauses = [[-new, part] for part in below] + [[new, *(-part for part in below)]]
            elif kind == "or":
                clauses = [[new, -part] for part in below] + [[-new, *below]]
            else:
                a, b = below
                clauses = [[-new, a, b], [-new, -a, -b], [new, -a, b], [new, a, -b]]
            for clause in clauses:
                solver.add_clause(clause)
            return new

        def counted(below: Sequence[int], bound: int) -> int:
            """Return a variable that is true where at least ``bound`` of the literals are."""
            bound = min(bound, len(below) + 1)
            reached = [define("and", [])] + [define("or", [])] * bound
            for part in below:
                reached[1:] = [
                    define("or", [before, define("and", [one_less, part])])
                    for one_less, before in pairwise(reached)
                ]
            return reached[bound]

        for formula in formulae:
            for node in parts(formula):
                below = [variable[id(part)] for part in node.args]
                kind = node.kind
                if kind == "atom":
                    if node.label not in atom:
                        atom[node.label] = next(numbers)
                    found = atom[node.label]
                elif kind in ("true", "false"):
                    found = define("and" if kind == "true" else "or", [])
                elif kind == "not":
                    found = -below[0]
                elif kind in ("and", "or", "xor"):
                    found = define(kind, below)
                elif kind == "implies":
                    found = define("or", [-below[0], below[1]])
                elif kind == "iff":
                    found = -define("xor", below)
                elif kind == "atleast":
                    found = counted(below, node.label)
                elif kind == "atmost":
                    found = -counted(below, node.label + 1)
                else:
                    found = define("and", [counted(below, node.label), -counted(below, node.label + 1)])
                variable[id(node)] = found
            solver.add_clause([variable[id(formula)]])
        if not solver.solve():
            return None
        model = set(solver.get_model())
        return {name: number in model for name, number in atom.items()}


# --- distributions ---------------------------------------------------------------------------------

PRECISE = Context(prec=60, Emin=-(10**8), Emax=10**8)


class Oracle:
    """Every world in lexicographic order, with its score as a fraction; the library's code is not used."""

    def __init__(self, theory, given=None, temperature=1.0):
        self.atoms, self.temperature = theory.atoms, Fraction(temperature)
        names = theory.atoms[::-1]  # so that numbers count in lexicographic order
        hard = [s.formula for s in theory if s.weight is None] + ([] if given is None else [given])
        allowed = (1 << (1 << len(names))) - 1
        for formula in hard:
            allowed &= truth_table(formula, names)
        soft = [(truth_table(s.formula, names), Fraction(s.weight)) for s in theory if s.weight is not None]
        self.numbers = [i for i in range(1 << len(names)) if allowed >> i & 1]
        self.scores = [sum((w for table, w in soft if table >> i & 1), Fraction(0)) for i in self.numbers]
        self.names = names

    def world(self, number):
        return {name: bool(number >> j & 1) for j, name in enumerate(self.names)}

    @property
    def worlds(self):
        return [tuple(self.world(i)[name] for name in self.atoms) for i in self.numbers]

    @property
    def weights(self):
        """exp((score - best)/τ), to 60 digits."""
        best = max(self.scores)
        exponents = [(score - best) / self.temperature for score in self.scores]
        return [
            PRECISE.exp(PRECISE.divide(Decimal(e.numerator), Decimal(e.denominator)))
            if e > -(10**4)
            else Decimal(0)
            for e in exponents
        ]

    def chance(self, query):
        table = truth_table(query, self.names)
        pairs = list(zip(self.numbers, self.weights, strict=True))
        return float(sum(w for i, w in pairs if table >> i & 1) / sum(w for _, w in pairs))

    def log_partition(self):
        best = max(self.scores) / self.temperature
        rest = PRECISE.ln(PRECISE.create_decimal(sum(self.weights)))
        return float(best + Fraction(rest))
