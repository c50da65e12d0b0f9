"""A theory with evidence, taken apart: units are propagated, and what is left falls into components.

Components (connected components of the primal graph) share no atom. Scores are whole numbers: weights times
``scale``, a power of ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.errors import TooManyWorlds, UnknownAtom
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
from lbm.knowledge.numbers import Weight
from lbm.knowledge.theory import Theory
from lbm.logic.anatomy import view
from lbm.reasoning.clock import tick
from lbm.reasoning.components.answers import Array

MAX_FORMULAE: Final = 20_000
"""Formulae of a theory that is taken apart: each is looked at by itself, which takes time."""

_WHOLE: Final = 1 << 61  # sums of weights up to which scores are kept in 64 bits


@dataclass(frozen=True, slots=True)
class Component:
    """Atoms tied together by formulae; ``soft`` holds (formula, weight times the scale)."""

    atoms: tuple[str, ...]
    hard: tuple[Formula, ...]
    soft: tuple[tuple[Formula, int], ...]

    @property
    def numbers(self) -> type:
        """The type that holds every sum of weights: 64 bits, or Python's whole numbers."""
        return np.int64 if sum(abs(weight) for _, weight in self.soft) < _WHOLE else object


@dataclass(frozen=True, slots=True)
class Split:
    """A theory with its evidence, taken apart.

    ``atoms`` are all of them, in order. ``score`` is what settled soft formulae give, times ``scale``;
    components come smallest first.
    """

    atoms: tuple[str, ...]
    fixed: dict[str, bool]
    free: tuple[str, ...]
    components: tuple[Component, ...]
    score: int
    scale: int


def take_apart(theory: Theory, *, soft: bool = True, first: Iterable[str] = ()) -> Split | None:
    """Propagate units and find components; None: the hard formulae clash.

    Atoms keep the theory's order, after those in ``first``.
    """
    if len(theory) > MAX_FORMULAE:
        raise TooManyWorlds(
            f"exact answers are worked out for theories of at most {MAX_FORMULAE} formulae "
            f"(limit MAX_FORMULAE), and this one has {len(theory)}",
            limit="MAX_FORMULAE",
            value=MAX_FORMULAE,
        )
    hard: list[Formula] = []
    weighted: list[tuple[Formula, Weight]] = []
    for statement in theory:
        if statement.weight is None:
            hard.append(statement.formula)
        elif soft:
            weighted.append((statement.formula, statement.weight))
    scale = 10 ** max((_places(weight) for _, weight in weighted), default=0)
    whole = [(formula, int(Fraction(weight) * scale)) for formula, weight in weighted]
    return fall_apart(tuple(dict.fromkeys([*first, *theory.atoms])), hard, whole, scale)


def fall_apart(
    atoms: Sequence[str], hard: Iterable[Formula], soft: Iterable[tuple[Formula, int]], scale: int = 1
) -> Split | None:
    """Propagate units of the hard formulae and find components; None: they clash."""
    fixed: dict[str, bool] = {}
    kept = _propagate(hard, fixed)
    if kept is None:
        return None
    score = 0
    open_: dict[Formula, int] = {}
    for formula, weight in soft:
        left = assign(formula, fixed)
        if left is TRUE:
            score += weight
        elif left is not FALSE:
            open_[left] = open_.get(left, 0) + weight
    return _group(atoms, fixed, list(kept), open_, score, scale)


def assume(split: Split, formula: Formula) -> Split | None:
    """Return what is left where ``formula`` is true as well; None: nothing.

    Components whose atoms it does not mention stay as they are.
    """
    left = assign(formula, split.fixed)
    if left is FALSE:
        return None
    if left is TRUE:
        return split
    met = set(atoms_of(left))
    touched: list[Component] = []
    others: list[Component] = []
    for component in split.components:
        (others if met.isdisjoint(component.atoms) else touched).append(component)
    free = tuple(name for name in split.free if name not in met)
    met.update(name for component in touched for name in component.atoms)
    part = fall_apart(
        tuple(name for name in split.atoms if name in met),
        [left, *(formula for component in touched for formula in component.hard)],
        [pair for component in touched for pair in component.soft],
    )
    if part is None:
        return None
    components = sorted((*others, *part.components), key=lambda component: len(component.atoms))
    return replace(
        split,
        fixed=split.fixed | part.fixed,
        free=free + part.free,
        components=tuple(components),
        score=split.score + part.score,
    )


def check_formula(theory: Theory, formula: Formula, role: str) -> None:
    """Raise unless ``formula`` is one, over atoms of the theory; ``role`` says what it was meant to be."""
    if not isinstance(formula, Formula):
        raise TypeError(f"the {role} is a formula, got {formula!r}: lbm.parse('a -> b') makes one")
    known = set(theory.atoms)
    for name in atoms_of(formula):
        if name not in known:
            raise UnknownAtom(name, theory.atoms)


def _places(weight: Weight) -> int:
    """Return how many digits follow the point."""
    digits = weight.as_tuple().exponent if isinstance(weight, Decimal) else 0
    assert isinstance(digits, int)  # weights are finite
    return max(0, -digits)


def _propagate(parts: Iterable[Formula], fixed: dict[str, bool]) -> dict[Formula, tuple[str, ...]] | None:
    """Fix the atoms that literals among the parts force, and so on; return what is left, with its atoms."""
    kept: dict[Formula, tuple[str, ...]] = {}
    meets: dict[str, list[Formula]] = {}
    waiting = list(parts)[::-1]
    while waiting:
        part = assign(waiting.pop(), fixed)
        if part is FALSE:
            return None
        if part is TRUE or part in kept:
            continue
        seen = view(part)
        if seen.op == "literal":
            fixed[seen.label] = seen.parts[0][1]
            for other in meets.pop(seen.label, ()):
                if kept.pop(other, None) is not None:
                    waiting.append(other)
        elif seen.op == "and" or (seen.op == "or" and len(seen.parts) == 1):
            waiting += [piece if positive else ~piece for piece, positive in reversed(seen.parts)]
        else:
            kept[part] = atoms_of(part)
            for name in kept[part]:
                meets.setdefault(name, []).append(part)
    return kept


def _group(
    atoms: Sequence[str],
    fixed: dict[str, bool],
    hard: Sequence[Formula],
    soft: Mapping[Formula, int],
    score: int,
    scale: int,
) -> Split:
    leader = {name: name for name in atoms if name not in fixed}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    reach = {formula: atoms_of(formula) for formula in (*hard, *soft)}
    for names in reach.values():
        for name in names[1:]:
            leader[find(name)] = find(names[0])
    touched = {name for names in reach.values() for name in names}
    members: dict[str, tuple[list[str], list[Formula], list[tuple[Formula, int]]]] = {}
    for name in leader:
        if name in touched:
            members.setdefault(find(name), ([], [], []))[0].append(name)
    for formula in hard:
        members[find(reach[formula][0])][1].append(formula)
    for formula, weight in soft.items():
        members[find(reach[formula][0])][2].append((formula, weight))
    components = [Component(tuple(a), tuple(h), tuple(s)) for a, h, s in members.values()]
    components.sort(key=lambda component: len(component.atoms))
    return Split(
        tuple(atoms), fixed, tuple(n for n in leader if n not in touched), tuple(components), score, scale
    )


def exponent(score: int, scale: int, temperature: float) -> float:
    """Return score/scale/τ; whole numbers divide exactly before anything is rounded."""
    return score / scale / temperature


def exponents(scores: Array, scale: int, temperature: float) -> NDArray[np.float64]:
    """Return score/scale/τ of many scores."""
    scores = np.asarray(scores)
    if scores.dtype == object:
        scores, scale = np.asarray(scores / scale, dtype=float), 1
    with np.errstate(over="ignore"):  # past any float is as good as minus infinity
        return np.asarray(scores / float(scale) / temperature, dtype=np.float64)


# --- formulae with some atoms known ----------------------------------------------------------------


def assign(formula: Formula, values: Mapping[str, bool]) -> Formula:
    """Return the formula with atoms replaced by their values, as simple as constants make it.

    The result is a constant or mentions no constant at all.
    """
    tick()
    return fold(formula, lambda node, below: _simple(node, below, values))


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
