"""Formulae with some atoms known: as simple as constants make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

from lbm.knowledge.circuit_formulae import inherit
from lbm.knowledge.formula import (
    CARDINALITIES,
    FALSE,
    TRUE,
    Formula,
    atoms_of,
    conjunction,
    disjunction,
    fold,
    make,
)
from lbm.reasoning.budget import NO_LIMIT, Budget

# What was found out about a formula, for as long as somebody has it.
_reach: Final[WeakKeyDictionary[Formula, tuple[str, ...]]] = WeakKeyDictionary()
_simplest: Final[WeakKeyDictionary[Formula, bool]] = WeakKeyDictionary()


def reach(formula: Formula) -> tuple[str, ...]:
    """Return the names of the atoms of one formula, in order of first appearance; it is remembered."""
    found = _reach.get(formula)
    if found is None:
        found = _reach[formula] = atoms_of(formula)
    return found


def assign(formula: Formula, values: Mapping[str, bool], budget: Budget = NO_LIMIT) -> Formula:
    """Return the formula with atoms replaced by their values, as simple as constants make it.

    The result is a constant or mentions no constant at all. What is left of a circuit is one.
    """
    budget.tick()
    if formula in _simplest and not any(name in values for name in reach(formula)):
        return formula
    found = fold(formula, lambda node, below: _simple(node, below, values))
    _simplest[found] = True
    inherit(formula, [found])
    return found


def _simple(node: Formula, below: list[Formula], values: Mapping[str, bool]) -> Formula:
    kind = node.kind
    if kind == "atom":
        value = values.get(node.label)
        return node if value is None else (TRUE if value else FALSE)
    if not below and kind not in CARDINALITIES:
        return node
    if kind in CARDINALITIES:
        return _simple_count(kind, node.label, below)
    if kind == "not":
        return _not(below[0])
    a, b = below
    if kind == "implies":
        kind, a = "or", _not(a)
        if a is not TRUE and a is not FALSE and b is not TRUE and b is not FALSE:
            return make("implies", None, (below[0], b))
    if kind in ("and", "or"):
        ends, passes = (FALSE, TRUE) if kind == "and" else (TRUE, FALSE)
        if a is ends or b is ends:
            return ends
        if a is passes or a is b:
            return b
        return a if b is passes else make(kind, None, (a, b))
    same, differ = (FALSE, TRUE) if kind == "xor" else (TRUE, FALSE)
    if a is b:
        return same
    for one, other in ((a, b), (b, a)):
        if one is TRUE or one is FALSE:
            # x ^ false and x <-> true are x; the other two are its negation.
            if other is TRUE or other is FALSE:
                return differ
            return other if (one is FALSE) is (kind == "xor") else _not(other)
    return make(kind, None, (a, b))


def _not(part: Formula) -> Formula:
    if part is TRUE or part is FALSE:
        return FALSE if part is TRUE else TRUE
    return part.args[0] if part.kind == "not" else ~part


def _simple_count(kind: str, bound: int, below: list[Formula]) -> Formula:
    bound -= below.count(TRUE)
    parts = [part for part in below if part is not TRUE and part is not FALSE]
    number = len(parts)
    least = 0 if kind == "atmost" else bound
    most = number if kind == "atleast" else bound
    if least > number or most < 0:
        return FALSE
    if least <= 0 and most >= number:
        return TRUE
    if least == number:
        return conjunction(parts)
    if most <= 0:
        return conjunction([_not(part) for part in parts])
    if least == 1 and most >= number:
        return disjunction(parts)
    if least <= 0 and most == number - 1:
        return disjunction([_not(part) for part in parts])
    return make(kind, bound, tuple(parts))
