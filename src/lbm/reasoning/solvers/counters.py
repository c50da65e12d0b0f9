"""Counts by pyganak, where it is installed: for theories past every method of our own."""

from __future__ import annotations

from collections.abc import Iterable

from lbm.errors import LbmError, NoAnswer
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.knowledge.weighted import weighted_clauses
from lbm.reasoning.budget import Budget
from lbm.reasoning.solvers import aside


def count_aside(
    theory: Theory, given: Formula | None, project: Iterable[str] | None, budget: Budget
) -> int | None:
    """Return the number of models, or of restrictions; None: it cannot take this theory.

    Definitions are full equivalences, so that each world of the theory is counted once.
    """
    if budget.spent():
        raise NoAnswer("no answer within the seconds allowed: allow more")
    hard = [statement.formula for statement in theory if statement.weight is None]
    if given is not None:
        hard.append(given)
    try:
        clauses = weighted_clauses(Theory(hard, atoms=theory.atoms))
    except LbmError:
        return None
    place = {name: number for number, name in enumerate(theory.atoms, start=1)}
    kept = None if project is None else [place[name] for name in dict.fromkeys(project)]
    number = aside.model_count(clauses, kept, budget=budget)
    if number is None:
        raise NoAnswer("the models were not counted within the seconds allowed: allow more")
    return number
