"""What is proven of a formula: entailed, refuted, preferred, dispreferred, or undecided; and why."""

from __future__ import annotations

from dataclasses import replace

from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Proof
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import no_worlds, prove, satisfiable


def follows(
    theory: Theory | Problem, query: Formula, *, given: Formula | None = None, budget: Budget = NO_LIMIT
) -> bool | None:
    """Return whether a formula is true in every model that keeps the evidence; None: not settled in time.

    Raises NoWorlds if there is no such model.

    >>> from lbm.knowledge.parser import parse
    >>> follows(Theory(["a -> b", (2, "a")]), parse("b"), given=parse("a"))
    True
    """
    if budget.spent():
        return None
    problem = Problem.of(theory, given)
    without = satisfiable(problem, given=~query, budget=budget)
    if without is not False:
        return None if without is None else False
    some = satisfiable(problem, budget=budget)
    if some is False:
        raise no_worlds(theory, given, budget)
    return some


def settle(
    theory: Theory | Problem,
    query: Formula,
    *,
    given: Formula | None = None,
    mode: str = "preferred",
    why: bool = False,
    budget: Budget = NO_LIMIT,
) -> Proof:
    """Return the status of a formula among the models that keep the evidence; raise NoWorlds if none does.

    With the mode ``entailed``, what is neither entailed nor refuted is undecided. The reasons, if asked for:
    hard statements that entail or refute it; or, of a preferred formula, statements of which every
    world without it loses more than the best world loses of all, and of a dispreferred one likewise of every
    world with it.

    >>> from lbm.knowledge.parser import parse
    >>> settle(Theory(["a -> b", (2, "a")]), parse("b"), why=True)
    yes: it is true in every best world
    because of:
      a -> b
      2: a
    """
    theory = Problem.of(theory)
    found = Proof(None, theory=theory.theory, query=query, given=given, mode=mode)
    if budget.spent():
        return found
    problem, against = Problem.of(theory, given), ~query
    without = prove(problem.given(against), why=why, budget=budget)
    if without.satisfiable is None or budget.spent():
        return found
    within = prove(problem.given(~against), why=why and without.satisfiable, budget=budget)
    found = replace(found, world=without.world)
    if within.satisfiable is None:
        return found
    if not (without.satisfiable or within.satisfiable):
        raise no_worlds(theory, given, budget)
    for status, proof in (("entailed", without), ("refuted", within)):
        if not proof.satisfiable:
            return replace(found, status=status, why=proof.why, minimal=proof.minimal)
    if budget.spent():
        return found
    found = replace(found, status="undecided")
    return prefer(found, theory, why=why, budget=budget) if mode == "preferred" else found


def prefer(
    undecided: Proof, theory: Theory | Problem, *, why: bool = False, budget: Budget = NO_LIMIT
) -> Proof:
    """Return whether a formula that is neither entailed nor refuted is preferred or dispreferred, and why."""
    theory, query, given = Problem.of(theory), undecided.query, undecided.given
    if query is None or not theory.has_soft:
        return undecided
    if budget.spent():
        return replace(undecided, status=None)
    from lbm.reasoning.preference import prefers, why_preferred

    true, false = prefers(theory, query, given=given, budget=budget)
    if not (true or false):
        return undecided if true is False and false is False else replace(undecided, status=None)
    found = replace(undecided, status="preferred" if true else "dispreferred")
    if not why or budget.spent():
        return found
    numbers, minimal = why_preferred(theory, query if true else ~query, given=given, budget=budget)
    return replace(found, why=numbers, minimal=minimal)
