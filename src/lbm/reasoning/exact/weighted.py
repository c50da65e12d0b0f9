"""Weighted counts: the sum over models of the products of what their literals weigh, in fractions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm

from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import LiteralWeights, Theory
from lbm.reasoning.exact import whole
from lbm.reasoning.exact.apart import Component, split_of
from lbm.reasoning.exact.questions import check_listed
from lbm.reasoning.exact.whole import How
from lbm.reasoning.problem import Problem


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
    weights, keep = theory.literal_weights, None if kept is None else frozenset(kept)
    total = Fraction(1)
    for name, value in split.fixed.items():
        if name in weights and (keep is None or name in keep):
            total *= weights[name][0 if value else 1]
    for name in split.free:
        if keep is None or name in keep:
            total *= sum(weights.get(name, (1, 1)))
    for component in split.components:
        if not total:
            break
        total *= _part(component, weights, keep, how)
    return total


def _part(component: Component, weights: LiteralWeights, keep: frozenset[str] | None, how: How) -> Fraction:
    """Return the weight of a component: that of its models for whole weights, and what these are over."""
    numbers: dict[str, tuple[int, int]] = {}
    below = 1
    for name in component.atoms:
        if name in weights and (keep is None or name in keep):
            true, false = weights[name]
            common = lcm(true.denominator, false.denominator)
            numbers[name] = int(false * common), int(true * common)
            below *= common
    return Fraction(whole.count_of(component, keep, how, numbers), below)
