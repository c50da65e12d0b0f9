"""What is proven of a formula: entailed, refuted, preferred, or undecided; and which formulae settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from lbm.errors import NoWorlds
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning import clock
from lbm.reasoning.clock import LEAST, left, spent
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import entailed, satisfiable

STATUSES: Final = ("entailed", "refuted", "preferred", "undecided")
"""True in every model that keeps the evidence; in none; in every best one; neither of these."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The status of a formula, and its proof.

    Attributes
    ----------
    status
        One of STATUSES; None: not settled in time.
    why
        Numbers of statements that settle it, together with the evidence.
    minimal
        Whether each of them is proven necessary.
    world
        Of a formula that is not entailed: a model that keeps the evidence and in which it is false.
    """

    status: str | None
    why: tuple[int, ...] = ()
    minimal: bool = False
    world: dict[str, bool] | None = None


def settle(
    theory: Theory | Problem,
    query: Formula,
    *,
    given: Formula | None = None,
    preferred: bool = True,
    why: bool = False,
    deadline: float = math.inf,
) -> Settled:
    """Return the status of a formula among the models that keep the evidence; raise NoWorlds if none does.

    Without ``preferred``, what is neither entailed nor refuted is undecided. The reasons, if asked for:
    hard statements that entail or refute it; or, of a preferred formula, statements of which every
    world without it loses more than the best world loses of all.

    >>> from lbm.knowledge.parser import parse
    >>> settle(Theory(["a -> b", (2, "a")]), parse("b"), why=True)
    Settled(status='preferred', why=(0, 1), minimal=True, world={'a': False, 'b': False})
    """
    if spent(deadline):
        return Settled(None)
    theory = Problem.of(theory)
    yes = entailed(theory, query, given=given, why=why, seconds=left(deadline))
    if yes.holds is None or spent(deadline):
        return Settled(None)
    no = entailed(theory, ~query, given=given, why=why and not yes.holds, seconds=left(deadline))
    if yes.holds and no.holds:
        raise nothing(theory, given, deadline)
    if yes.holds and no.holds is not None:
        return Settled("entailed", yes.why, yes.minimal)
    if no.holds:
        return Settled("refuted", no.why, no.minimal, yes.world)
    if no.holds is None or spent(deadline):
        return Settled(None, world=yes.world)
    found = Settled("undecided", world=yes.world)
    return prefer(found, theory, query, given=given, why=why, deadline=deadline) if preferred else found


def prefer(
    undecided: Settled,
    theory: Theory | Problem,
    query: Formula,
    *,
    given: Formula | None = None,
    why: bool = False,
    deadline: float = math.inf,
) -> Settled:
    """Return whether a formula that is neither entailed nor refuted is preferred, and why."""
    theory = Problem.of(theory)
    if not theory.has_soft:
        return undecided
    if spent(deadline):
        return Settled(None, world=undecided.world)
    from lbm.reasoning.preference import preferred as is_preferred
    from lbm.reasoning.preference import why_preferred

    best = is_preferred(theory, query, given=given, seconds=left(deadline))
    if best is None:
        return Settled(None, world=undecided.world)
    if not best:
        return undecided
    if not why or spent(deadline):
        return Settled("preferred", world=undecided.world)
    numbers, minimal = why_preferred(theory, query, given=given, seconds=left(deadline))
    return Settled("preferred", numbers, minimal, undecided.world)


def nothing(theory: Theory | Problem, given: Formula | None, deadline: float = math.inf) -> NoWorlds:
    """Return the error for a theory and evidence that leave no world, naming which of them it is."""
    seconds = left(max(deadline, clock.now() + LEAST))
    if given is not None and satisfiable(theory, seconds=seconds) is False:
        given = None
    return NoWorlds(given)
