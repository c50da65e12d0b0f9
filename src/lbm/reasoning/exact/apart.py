"""A theory with evidence, taken apart: units are propagated, and what is left falls into components.

Components (connected components of the primal graph) share no atom. Scores are whole numbers: weights times
``scale``, a power of ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.errors import TooManyWorlds
from lbm.knowledge.circuit_formulae import inherit
from lbm.knowledge.formula import FALSE, TRUE, Formula
from lbm.knowledge.numbers import digits_of, whole
from lbm.knowledge.theory import Theory
from lbm.logic.anatomy import view
from lbm.reasoning.assign import assign, reach
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.rows import Array
from lbm.reasoning.problem import Known

MAX_FORMULAE: Final = 200_000
"""Formulae of a theory that is taken apart: each is looked at by itself, which takes time."""

WHOLE: Final = 1 << 61
"""Sums of weights up to which scores are kept in 64 bits."""


@dataclass(frozen=True)
class Component:
    """Atoms tied together by formulae; ``soft`` holds (formula, weight times the scale)."""

    atoms: tuple[str, ...]
    hard: tuple[Formula, ...]
    soft: tuple[tuple[Formula, int], ...]

    @cached_property
    def numbers(self) -> type:
        """The type that holds every sum of weights: 64 bits, or Python's whole numbers."""
        return np.int64 if sum(abs(weight) for _, weight in self.soft) < WHOLE else object

    @cached_property
    def _hash(self) -> int:
        return hash((self.atoms, self.hard, self.soft))

    def __hash__(self) -> int:
        return self._hash  # of thousands of formulae, and asked for at every question


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


def take_apart(
    theory: Theory, *, soft: bool = True, first: Iterable[str] = (), budget: Budget = NO_LIMIT
) -> Split | None:
    """Propagate units and find components; None: the hard formulae clash.

    Atoms keep the theory's order, after those in ``first``.
    """
    if len(theory) > MAX_FORMULAE:
        raise TooManyWorlds(
            f"exact answers are worked out for theories of at most {MAX_FORMULAE} formulae "
            f"(limit MAX_FORMULAE), and this one has {len(theory)}",
            MAX_FORMULAE=MAX_FORMULAE,
        )
    statements = list(theory)
    hard = [said.formula for said in statements if said.weight is None]
    weighted = [(said.formula, said.weight) for said in statements if soft and said.weight is not None]
    digits = max((digits_of(weight) for _, weight in weighted), default=0)
    scored = [(formula, whole(weight, digits)) for formula, weight in weighted]
    atoms = tuple(dict.fromkeys([*first, *theory.atoms]))
    return fall_apart(atoms, hard, scored, budget, scale=10**digits)


def split_of(
    theory: Theory,
    given: Formula | None,
    known: Known,
    budget: Budget,
    *,
    soft: bool = True,
    first: tuple[str, ...] = (),
) -> Split | None:
    """Return a theory with its evidence, taken apart once; None: they clash."""
    key = ("split", soft, first)
    bare = known.get(key, lambda: take_apart(theory, soft=soft, first=first, budget=budget))
    if bare is None or given is None:
        return bare
    return known.get((*key, given), lambda: assume(bare, given, budget))


def fall_apart(
    atoms: Sequence[str],
    hard: Iterable[Formula],
    soft: Iterable[tuple[Formula, int]],
    budget: Budget,
    *,
    scale: int = 1,
    settled: Iterable[Formula] = (),
) -> Split | None:
    """Propagate units of the hard formulae and find components; None: they clash.

    Further hard formulae, ``settled``, are known to hold no units among themselves.
    """
    fixed: dict[str, bool] = {}
    kept = _propagate(hard, settled, fixed, budget)
    if kept is None:
        return None
    score = 0
    open_: dict[Formula, int] = {}
    for formula, weight in soft:
        left = assign(formula, fixed, budget)
        if left is TRUE:
            score += weight
        elif left is not FALSE:
            open_[left] = open_.get(left, 0) + weight
    return _group(atoms, fixed, kept, open_, score, scale)


def assume(split: Split, formula: Formula, budget: Budget = NO_LIMIT) -> Split | None:
    """Return what is left where ``formula`` is true as well; None: nothing.

    Components whose atoms it does not mention stay as they are.
    """
    left = assign(formula, split.fixed, budget)
    if left is FALSE:
        return None
    if left is TRUE:
        return split
    met = set(reach(left))
    touched: list[Component] = []
    others: list[Component] = []
    for component in split.components:
        (others if met.isdisjoint(component.atoms) else touched).append(component)
    free = tuple(name for name in split.free if name not in met)
    met.update(name for component in touched for name in component.atoms)
    part = fall_apart(
        tuple(name for name in split.atoms if name in met),
        [left],
        [pair for component in touched for pair in component.soft],
        budget,
        settled=[formula for component in touched for formula in component.hard],
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


def _propagate(
    parts: Iterable[Formula], settled: Iterable[Formula], fixed: dict[str, bool], budget: Budget
) -> list[Formula] | None:
    """Fix the atoms that literals among the parts force, and so on; return what is left of all, in order."""
    kept: dict[Formula, int] = {}  # with the place it had
    meets: dict[str, list[Formula]] = {}
    waiting = [(part, i) for i, part in enumerate(parts)][::-1]
    for i, part in enumerate(settled, start=len(waiting)):
        if part not in kept:
            kept[part] = i
            for name in reach(part):
                meets.setdefault(name, []).append(part)
    while waiting:
        given, i = waiting.pop()
        part = assign(given, fixed, budget)
        if part is FALSE:
            return None
        if part is TRUE or part in kept:
            continue
        seen = view(part)
        if seen.op == "literal":
            fixed[seen.label] = seen.parts[0][1]
            for other in meets.pop(seen.label, ()):
                place = kept.pop(other, None)
                if place is not None:
                    waiting.append((other, place))
        elif seen.op == "and" or (seen.op == "or" and len(seen.parts) == 1):
            pieces = [piece if positive else ~piece for piece, positive in reversed(seen.parts)]
            inherit(part, pieces)
            waiting += [(piece, i) for piece in pieces]
        else:
            kept[part] = i
            for name in reach(part):
                meets.setdefault(name, []).append(part)
    return sorted(kept, key=kept.__getitem__)


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

    scopes = {formula: reach(formula) for formula in (*hard, *soft)}
    for names in scopes.values():
        for name in names[1:]:
            leader[find(name)] = find(names[0])
    touched = {name for names in scopes.values() for name in names}
    members: dict[str, tuple[list[str], list[Formula], list[tuple[Formula, int]]]] = {}
    for name in leader:
        if name in touched:
            members.setdefault(find(name), ([], [], []))[0].append(name)
    for formula in hard:
        members[find(scopes[formula][0])][1].append(formula)
    for formula, weight in soft.items():
        members[find(scopes[formula][0])][2].append((formula, weight))
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
