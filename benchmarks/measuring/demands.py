"""A file as peers like it best: so many of these literals, and the groups of which exactly one is true.

A demand says how many of its literals are true: a clause wants one at least, a cardinality some number.
Groups are found where people write ``exactly(1, ...)``, and where clauses say the same: some of them, and no
two. Nothing here shares code with the searches of ours, so it also judges worlds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import lbm

WIDEST_TABLE = 4_096  # entries: what is wider goes to toulbar2 as a linear constraint


@dataclass(frozen=True)
class Demand:
    """Of ``literals`` (as in DIMACS) ``low`` to ``high`` are true, or ``weight`` is lost; None: hard."""

    literals: tuple[int, ...]
    low: int
    high: int
    weight: int | None = None

    @property
    def clause(self) -> bool:
        """Whether it is a clause."""
        return self.low == 1 and self.high >= len(self.literals)


@dataclass(frozen=True)
class Demands:
    """All demands of a file over atoms 1..atoms, and what is lost in any case."""

    atoms: int
    demands: tuple[Demand, ...]
    constant: int = 0

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """Return all literals, where each demand starts, its bounds and weights, and which are hard."""
        import numpy as np  # not for peers that only read

        some = [demand for demand in self.demands if demand.literals]
        flat = np.array([literal for demand in some for literal in demand.literals], dtype=np.int64)
        starts = np.cumsum([0, *(len(demand.literals) for demand in some)])[:-1]
        low, high, weight = (
            np.array(each, dtype=np.int64)
            for each in (
                [demand.low for demand in some],
                [demand.high for demand in some],
                [demand.weight or 0 for demand in some],
            )
        )
        return (
            flat,
            starts,
            low,
            high,
            weight,
            np.array([demand.weight is None for demand in some], dtype=bool),
        )

    def cost(self, values: Sequence[bool]) -> int | None:
        """Return the weight that a world loses; None: it breaks something hard."""
        import numpy as np

        lost = self.constant
        for demand in self.demands:
            if not demand.literals and demand.low > 0:
                if demand.weight is None:
                    return None
                lost += demand.weight
        flat, starts, low, high, weight, hard = self._arrays
        if not len(flat):
            return lost
        world = np.array(values, dtype=bool)
        true = np.add.reduceat(world[np.abs(flat) - 1] == (flat > 0), starts, dtype=np.int64)
        broken = (true < low) | (true > high)
        return None if (broken & hard).any() else lost + int(weight[broken].sum())

    def described(self) -> str:
        """Return the size in words."""
        hard = sum(demand.weight is None for demand in self.demands)
        soft = len(self.demands) - hard
        return f"{self.atoms:,} atoms, {hard:,} hard and {soft:,} soft"


# --- reading -----------------------------------------------------------------------------------------


def read(file: Path) -> Demands:
    """Return the demands of a .wcnf file, in its old form or its new one, or of an .lbm file."""
    return read_wcnf(file) if file.suffix == ".wcnf" else of_theory(_loaded(file))


def read_wcnf(file: Path) -> Demands:
    """Return the clauses of a .wcnf file; those of weight 0 say nothing, and are left out."""
    top, atoms, constant = None, 0, 0
    demands: list[Demand] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0].startswith("c"):
            continue
        if words[0] == "p":
            atoms = int(words[2])
            top = int(words[4]) if len(words) > 4 else None
            continue
        weight = None if words[0] == "h" else int(words[0])
        weight = None if top is not None and weight is not None and weight >= top else weight
        literals = tuple(dict.fromkeys(map(int, words[1:-1])))
        if literals:
            atoms = max(atoms, *map(abs, literals))
        if weight == 0 or any(-literal in literals for literal in literals):
            continue
        if not literals and weight is not None:
            constant += weight
        else:
            demands.append(Demand(literals, 1, max(1, len(literals)), weight))
    return Demands(atoms, tuple(demands), constant)


def _loaded(file: Path) -> lbm.Theory:
    from lbm.knowledge.theory import Theory

    return Theory.load(file)


def of_theory(theory: lbm.Theory) -> Demands:
    """Return the demands of a theory of clauses and cardinalities, atoms numbered in its order."""
    from lbm.knowledge.clauses import as_clause
    from lbm.knowledge.formula import CARDINALITIES, Formula

    number = {name: i for i, name in enumerate(theory.atoms, start=1)}

    def literal(formula: Formula) -> int:
        if formula.kind == "not":
            return -literal(formula.args[0])
        if formula.kind != "atom":
            raise ValueError(f"expected a literal, got {formula}")
        return number[formula.label]

    demands = []
    for statement in theory:
        formula = statement.formula
        weight = None if statement.weight is None else int(statement.weight)
        found = as_clause(formula)
        if found is not None:
            literals = tuple(number[name] if wanted else -number[name] for name, wanted in found)
            demands.append(Demand(literals, 1, len(literals), weight))
        elif formula.kind in CARDINALITIES:
            literals = tuple(literal(part) for part in formula.args)
            bound = int(formula.label)
            low = 0 if formula.kind == "atmost" else bound
            high = len(literals) if formula.kind == "atleast" else bound
            demands.append(Demand(literals, low, high, weight))
        else:
            raise ValueError(f"expected a clause or a cardinality, got {formula}")
    return Demands(len(theory.atoms), tuple(demands))


# --- groups ------------------------------------------------------------------------------------------


def groups(given: Demands) -> tuple[list[tuple[int, ...]], list[Demand]]:
    """Return disjoint groups of atoms of which exactly one is true, and what they leave to be said.

    Of groups that overlap the largest one counts; the others stay demands.
    """
    hard = [demand for demand in given.demands if demand.weight is None]
    apart = {
        frozenset(map(abs, demand.literals))
        for demand in hard
        if demand.clause and len(demand.literals) == 2 and max(demand.literals) < 0
    }
    found: list[tuple[int, ...]] = []
    for demand in hard:
        names = demand.literals
        if len(names) < 2 or min(names) < 0 or len(set(names)) < len(names):
            continue
        said = demand.low == demand.high == 1
        if said or (demand.clause and all(frozenset(pair) in apart for pair in combinations(names, 2))):
            found.append(names)
    chosen: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for names in sorted(found, key=len, reverse=True):
        if taken.isdisjoint(names):
            chosen.append(names)
            taken.update(names)
    owner = {name: i for i, names in enumerate(chosen) for name in names}
    whole = {frozenset(names) for names in chosen}

    def said_by_a_group(demand: Demand) -> bool:
        if demand.weight is not None:
            return False
        if min(demand.literals) > 0 and frozenset(demand.literals) in whole:
            return demand.low <= 1 <= demand.high
        if not (demand.clause and len(demand.literals) == 2 and max(demand.literals) < 0):
            return False
        one, other = (owner.get(-literal) for literal in demand.literals)
        return one is not None and one == other

    return chosen, [demand for demand in given.demands if not demand.literals or not said_by_a_group(demand)]


# --- variables of several values ---------------------------------------------------------------------


@dataclass(frozen=True)
class Valued:
    """The text of a .wcsp file, and the atom, or none, that each value of each variable makes true."""

    text: str
    values: tuple[tuple[int | None, ...], ...]
    atoms: int

    def world(self, chosen: Sequence[int]) -> list[bool]:
        """Return the values of the atoms, given the value of every variable."""
        world = [False] * self.atoms
        for values, value in zip(self.values, chosen, strict=False):  # those for soft sums come last
            atom = values[value]
            if atom is not None:
                world[atom - 1] = True
        return world


def valued(given: Demands) -> Valued:
    """Return the demands as functions of variables of several values, for toulbar2.

    A group is one variable; clauses over the same variables are one table, and what is wider than a table
    should be is a linear constraint, relaxed by a variable of its own where it is soft.
    """
    chosen, rest = groups(given)
    grouped = {name for names in chosen for name in names}
    values: list[tuple[int | None, ...]] = [*chosen]
    values += [(None, name) for name in range(1, given.atoms + 1) if name not in grouped]
    place = {name: (v, k) for v, names in enumerate(values) for k, name in enumerate(names) if name}
    top = given.constant + sum(demand.weight or 0 for demand in given.demands) + 1
    tables: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    functions: list[str] = []
    relaxed = 0

    def add(scope: tuple[int, ...], worlds: Iterable[tuple[int, ...]], cost: int) -> None:
        table = tables.setdefault(scope, {})
        for world in worlds:
            table[world] = min(top, table.get(world, 0) + cost)

    def linear(terms: dict[int, dict[int, int]], least: int) -> None:
        """Say that a sum over values reaches a number."""
        parts = [f"{len(each)} {' '.join(f'{k} {c}' for k, c in each.items())}" for each in terms.values()]
        functions.append(f"{len(terms)} {' '.join(map(str, terms))} -1 knapsackp {least} {' '.join(parts)}")

    for demand in rest:
        cost = top if demand.weight is None else demand.weight
        if not demand.literals:
            add((), [()], cost)
            continue
        if demand.clause:
            false: dict[int, set[int]] = {}
            for literal in demand.literals:
                v, k = place[abs(literal)]
                here = set(range(len(values[v]))) - {k} if literal > 0 else {k}
                false[v] = false[v] & here if v in false else here
            scope = tuple(sorted(false))
            size = 1
            for v in scope:
                size *= len(false[v])
            if size <= WIDEST_TABLE:
                add(scope, product(*(sorted(false[v]) for v in scope)), cost)
                continue
        spare = None
        if demand.weight is not None:
            spare = len(values) + relaxed
            relaxed += 1
            add((spare,), [(1,)], cost)
        for least, sign in ((demand.low, 1), (-demand.high, -1)):
            base = sum(literal < 0 for literal in demand.literals)
            terms: dict[int, dict[int, int]] = {}
            for literal in demand.literals:
                v, k = place[abs(literal)]
                each = terms.setdefault(v, {})
                each[k] = each.get(k, 0) + (sign if literal > 0 else -sign)
            wanted = least - sign * base
            lowest = sum(min(0, *each.values()) for each in terms.values())
            if wanted <= lowest:
                continue
            if spare is not None:
                terms[spare] = {1: wanted - lowest}
            linear(terms, wanted)
    sizes = [*map(len, values), *([2] * relaxed)]
    for scope, table in tables.items():
        entries = sorted(table.items())
        functions.append(" ".join(map(str, (len(scope), *scope, 0, len(entries)))))
        functions += [" ".join(map(str, (*world, cost))) for world, cost in entries]
    if given.constant:
        functions.append(f"0 {given.constant} 0")
    number = len(tables) + sum("knapsackp" in line for line in functions) + bool(given.constant)
    head = [f"problem {len(sizes)} {max(sizes, default=1)} {number} {top}", " ".join(map(str, sizes))]
    return Valued("\n".join([*head, *functions]) + "\n", tuple(values), given.atoms)
