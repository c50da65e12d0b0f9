"""What is proven of a formula: entailed, refuted, preferred, or undecided; and which formulae settle it."""

from __future__ import annotations

import math
from dataclasses import replace

from lbm.errors import NoWorlds
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning import clock
from lbm.reasoning.answers import Proof
from lbm.reasoning.clock import LEAST, left, spent
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import no_worlds, prove, satisfiable


def follows(
    theory: Theory | Problem, query: Formula, *, given: Formula | None = None, deadline: float = math.inf
) -> bool | None:
    """Return whether a formula is true in every model that keeps the evidence; None: not settled in time.

    Raises NoWorlds if there is no such model.

    >>> from lbm.knowledge.parser import parse
    >>> follows(Theory(["a -> b", (2, "a")]), parse("b"), given=parse("a"))
    True
    """
    if spent(deadline):
        return None
    problem = Problem.of(theory, given)
    without = satisfiable(problem, given=~query, seconds=left(deadline))
    if without is not False:
        return None if without is None else False
    some = satisfiable(problem, seconds=left(deadline))
    if some is False:
        raise nothing(theory, given, deadline)
    return some


def settle(
    theory: Theory | Problem,
    query: Formula,
    *,
    given: Formula | None = None,
    mode: str = "preferred",
    why: bool = False,
    deadline: float = math.inf,
) -> Proof:
    """Return the status of a formula among the models that keep the evidence; raise NoWorlds if none does.

    With the mode ``entailed``, what is neither entailed nor refuted is undecided. The reasons, if asked for:
    hard statements that entail or refute it; or, of a preferred formula, statements of which every
    world without it loses more than the best world loses of all.

    >>> from lbm.knowledge.parser import parse
    >>> settle(Theory(["a -> b", (2, "a")]), parse("b"), why=True)
    yes: it is true in every best world
    because of:
      a -> b
      2: a
    """
    theory = Problem.of(theory)
    found = Proof(None, theory=theory.theory, query=query, given=given, mode=mode)
    if spent(deadline):
        return found
    problem, against = Problem.of(theory, given), ~query
    without = prove(problem.given(against), why=why, seconds=left(deadline))
    if without.satisfiable is None or spent(deadline):
        return found
    within = prove(problem.given(~against), why=why and without.satisfiable, seconds=left(deadline))
    found = replace(found, world=without.world)
    if within.satisfiable is None:
        return found
    if not (without.satisfiable or within.satisfiable):
        raise nothing(theory, given, deadline)
    for status, proof in (("entailed", without), ("refuted", within)):
        if not proof.satisfiable:
            return replace(found, status=status, why=proof.why, minimal=proof.minimal)
    if spent(deadline):
        return found
    found = replace(found, status="undecided")
    return prefer(found, theory, why=why, deadline=deadline) if mode == "preferred" else found


def prefer(
    undecided: Proof, theory: Theory | Problem, *, why: bool = False, deadline: float = math.inf
) -> Proof:
    """Return whether a formula that is neither entailed nor refuted is preferred, and why."""
    theory, query, given = Problem.of(theory), undecided.query, undecided.given
    if query is None or not theory.has_soft:
        return undecided
    if spent(deadline):
        return replace(undecided, status=None)
    from lbm.reasoning.preference import preferred as is_preferred
    from lbm.reasoning.preference import why_preferred

    best = is_preferred(theory, query, given=given, seconds=left(deadline))
    if best is None:
        return replace(undecided, status=None)
    if not best:
        return undecided
    found = replace(undecided, status="preferred")
    if not why or spent(deadline):
        return found
    numbers, minimal = why_preferred(theory, query, given=given, seconds=left(deadline))
    return replace(found, why=numbers, minimal=minimal)


def nothing(theory: Theory | Problem, given: Formula | None, deadline: float = math.inf) -> NoWorlds:
    """Return the error for a theory and evidence that leave no world, naming which of them it is."""
    return no_worlds(theory, given, left(max(deadline, clock.now() + LEAST)))
