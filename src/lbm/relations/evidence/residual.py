"""What rules and labels leave open: literals that must be alike are one, and what is settled is gone.

Labels settle much by propagation, and what stays open says each thing once: where ``ex(a, b)`` and
``ex(b, a)`` exclude one another and one of them holds, they are one atom and its negation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lbm.arrays import Ints
from lbm.errors import NoWorlds, UnknownAtom, WeightError
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import atom_name
from lbm.knowledge.numbers import Weight, as_weight, digits_of, whole
from lbm.knowledge.theory import Theory
from lbm.knowledge.weighted import weighted_clauses
from lbm.reasoning.engine.presolve import presolve
from lbm.relations.evidence.orders import Order, recognise

DIGITS: Final = 6
"""Digits after the point of a label's weight: more would only make whole numbers large."""


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """What is left of rules with evidence.

    Attributes
    ----------
    value
        Shape (atoms of the rules,): 1 true, -1 false, 0 open.
    code
        Shape (atoms of the rules,): for an open atom the literal that it equals here, 2·atom and one more if
        negated; -1: nothing is said of it any more, so that it is as likely as not.
    clauses
        What the open atoms have to keep, or lose a weight.
    components
        Shape (atoms here,): the number of the component of each.
    """

    value: NDArray[np.int8]
    code: Ints
    clauses: Clauses
    components: NDArray[np.int32]

    def part(self, component: int) -> tuple[Clauses, Ints]:
        """Return the clauses of a component, atoms renumbered, and the old number of each atom, from 0."""
        wanted = self.components == component
        old = np.flatnonzero(wanted)
        # Every clause lies in one component, and presolving leaves no empty one.
        first = self.clauses.literals[self.clauses.starts[:-1]]
        clauses = self.clauses.where(wanted[np.abs(first) - 1])
        new = np.cumsum(wanted)[np.abs(clauses.literals) - 1]
        literals = (np.sign(clauses.literals) * new).astype(np.int32)
        return replace(clauses, literals=literals, variables=len(old), groups=None), old


def label_weight(weight: float) -> Weight:
    """Return the weight of a label as an exact number, of at most DIGITS digits after the point."""
    if isinstance(weight, float):
        weight = round(weight, DIGITS)
    exact = as_weight(weight)
    if not exact > 0:
        raise WeightError(f"the weight of a label is a positive number, or None for hard ones, got {weight}")
    return exact


def reduce(problem: Clauses, labels: Mapping[int, bool]) -> Residual | None:
    """Return what is left where the labels hold; None: propagation finds that rules and labels clash.

    Units are propagated, and literals that imply one another in a circle of two-literal clauses become one;
    then again, until nothing changes. Models stay the same, one to one but for atoms nothing is said of.
    """
    value = np.zeros(problem.variables, np.int8)
    code = 2 * np.arange(problem.variables)
    while True:
        found = presolve(problem, pure=False, fixed=labels)
        if found is None:
            return None
        _follow(value, code, found.fixed, found.kept)
        problem, labels = found.problem, {}
        leaders = _leaders(problem)
        if leaders is None:
            return None
        if (leaders == np.arange(len(leaders))).all():
            return Residual(value, code, problem, found.components)
        code[code >= 0] = leaders[code[code >= 0]]
        problem = _renamed(problem, leaders)


def _follow(value: NDArray[np.int8], code: Ints, fixed: NDArray[np.int8], kept: NDArray[np.int32]) -> None:
    """Write down where one round of presolving left the atoms."""
    new = np.full(len(fixed), -1, np.int64)
    new[kept - 1] = np.arange(len(kept))
    there = np.flatnonzero(code >= 0)
    atoms, signs = code[there] >> 1, code[there] & 1
    value[there] = np.where(signs == 1, -fixed[atoms], fixed[atoms])
    code[there] = np.where(new[atoms] >= 0, 2 * new[atoms] + signs, -1)


def _leaders(problem: Clauses) -> Ints | None:
    """Return the first literal that each literal equals by clauses of two; None: one equals its negation."""
    pairs = problem.starts[:-1][(problem.sizes == 2) & (problem.weights == 0)]
    codes = problem.codes
    left, right = codes[pairs], codes[pairs + 1]
    width = 2 * problem.variables
    if not len(pairs):
        return np.arange(width)
    rows, columns = np.concatenate([left ^ 1, right ^ 1]), np.concatenate([right, left])
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(width, width)).tocsr()
    number, circle = connected_components(graph, connection="strong")
    if (circle[::2] == circle[1::2]).any():
        return None
    # The first literal of a circle and that of its mirror are literals of the same atom.
    first = np.full(number, width)
    np.minimum.at(first, circle, np.arange(width) >> 1)
    lead = first[circle]
    positive = circle[2 * lead] == circle
    return np.asarray(2 * lead + ~positive, np.int64)


def _renamed(problem: Clauses, leaders: Ints) -> Clauses:
    codes = leaders[problem.codes]
    literals = np.where(codes & 1, -(codes >> 1) - 1, (codes >> 1) + 1).astype(np.int32)
    return replace(problem, literals=literals)


# --- rules made ready -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class GroundRules:
    """Ground rules as weighted clauses, made ready once for all the labels they will meet.

    Attributes
    ----------
    place
        The number of each atom, from 1; definitional ones have none.
    clauses
        The rules; weights are whole, times 10^digits, and 0 for a hard clause.
    orders
        The strict total orders among what they leave open without any label.
    pairs
        For each atom of the rules that is about one of them: its number, and the two things of which the
        first stands before the second where the atom is true.
    """

    place: Mapping[str, int]
    clauses: Clauses
    orders: list[Order]
    pairs: dict[int, tuple[int, int, int]]

    def number(self, name: str) -> int:
        """Return the number of an atom of the rules, written in any way."""
        number = self.place.get(name) or self.place.get(atom_name(name))
        if number is None:
            raise UnknownAtom(name, self.place)
        return number

    def with_labels(self, labels: Mapping[int, bool], weight: float) -> Clauses:
        """Return the rules and every label as one more clause, of this weight."""
        exact = label_weight(weight)
        old = self.clauses
        digits = max(old.digits, digits_of(exact))
        units = [[number if value else -number] for number, value in labels.items()]
        added = Clauses.of(units, [whole(exact, digits)] * len(units))
        scaled = replace(old, weights=old.weights * 10 ** (digits - old.digits), digits=digits)
        return scaled.joined(added)


def prepare(theory: Theory) -> GroundRules:
    """Return ground rules made ready for labels; raise NoWorlds if propagation finds that they clash."""
    clauses = weighted_clauses(theory)
    bare = reduce(clauses, {})
    if bare is None:
        raise NoWorlds
    place = {name: number for number, name in enumerate(theory.atoms, start=1)}
    alike: dict[int, list[tuple[str, bool]]] = {}  # by atom left open: those that equal it or its negation
    for name, code in zip(theory.atoms, bare.code.tolist(), strict=False):
        if code >= 0:
            alike.setdefault(code >> 1, []).append((name, bool(code & 1)))
    orders: list[Order] = []
    pairs: dict[int, tuple[int, int, int]] = {}
    for component in range(int(bare.components.max(initial=-1)) + 1):
        members = np.flatnonzero(bare.components == component).tolist()
        if len(members) < 3 or any(atom not in alike for atom in members):
            continue
        order = recognise(bare.part(component)[0], [alike[atom][0] for atom in members])
        if order is not None:
            for i, atom in enumerate(members):
                for name, negated in alike[atom]:
                    pairs[place[name]] = (len(orders), *order.ends(i, not negated))
            orders.append(order)
    return GroundRules(place, clauses, orders, pairs)
