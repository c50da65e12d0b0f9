"""Weighted counts: the sum over models of the products of what their literals weigh, in fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from lbm.errors import TooManyWorlds
from lbm.knowledge.formula import Formula, atoms_of, make
from lbm.knowledge.theory import LiteralWeights, Theory
from lbm.reasoning.exact import whole
from lbm.reasoning.exact.apart import Component, Split, fall_apart, split_of
from lbm.reasoning.exact.questions import check_listed
from lbm.reasoning.exact.whole import How
from lbm.reasoning.problem import Problem

MAX_DEEP: Final = 200
"""Atoms that one case after the other assumes."""


def weighted_count(
    theory: Theory, given: Formula | None = None, project: Iterable[str] | None = None, how: How | None = None
) -> Fraction:
    """Return the weight of all models that keep the evidence, exactly.

    With ``project``, the sum over their distinct restrictions to those atoms of the products of what these
    atoms weigh. What soft formulae weigh has no part in it.

    >>> from lbm.knowledge.theory import weighing
    >>> third = {"a": (Fraction(1, 3), Fraction(2, 3)), "b": (Fraction(1, 4), Fraction(3, 4))}
    >>> weighted_count(weighing(Theory(["a | b"]), third))
    Fraction(1, 2)
    """
    how = How() if how is None else how
    kept = check_listed(theory, project, None)
    if given is not None:
        Problem(theory).check(given, "evidence")
    split = split_of(theory, given, how.known, how.budget, soft=False)
    if split is None:
        return Fraction(0)
    return _Weigher(theory.literal_weights, None if kept is None else frozenset(kept), how).whole(split, 0)


class _Weigher:
    """Sums by cases: the values of one weighted atom after the other, each component by itself and once."""

    def __init__(self, weights: LiteralWeights, keep: frozenset[str] | None, how: How) -> None:
        self.weights = weights
        self.keep, self.how = keep, how
        self.known: dict[Component, Fraction] = {}

    def whole(self, split: Split, deep: int) -> Fraction:
        """Return the weight of what is fixed, what is free, and every component."""
        total = Fraction(1)
        for name, value in split.fixed.items():
            if self.seen(name) and name in self.weights:
                total *= self.weights[name][0 if value else 1]
        for name in split.free:
            if self.seen(name):
                total *= sum(self.weights[name]) if name in self.weights else 2
        for component in split.components:
            if not total:
                break
            if component not in self.known:
                self.known[component] = self.part(component, deep)
            total *= self.known[component]
        return total

    def part(self, component: Component, deep: int) -> Fraction:
        """Return the weight of a component."""
        self.how.budget.tick()
        met: Counter[str] = Counter()
        for formula in component.hard:
            met.update(name for name in atoms_of(formula) if self.seen(name) and name in self.weights)
        if not met:
            alone = fall_apart(component.atoms, component.hard, (), self.how.budget)
            return Fraction(0 if alone is None else whole.count(alone, self.keep, self.how))
        if deep >= MAX_DEEP:
            raise TooManyWorlds(
                f"more than {MAX_DEEP} atoms with weights depend on one another (limit MAX_DEEP)",
                MAX_DEEP=MAX_DEEP,
            )
        literal = make("atom", max(met, key=met.__getitem__), ())
        total = Fraction(0)
        for case in (literal, ~literal):
            split = fall_apart(component.atoms, [case], (), self.how.budget, settled=component.hard)
            if split is not None:
                total += self.whole(split, deep + 1)
        return total

    def seen(self, name: str) -> bool:
        """Return whether an atom is among those that are looked at."""
        return self.keep is None or name in self.keep
