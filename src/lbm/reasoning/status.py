"""What is proven of a formula: entailed, refuted, preferred, or undecided; and which formulae settle it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from lbm.errors import NoWorlds
from lbm.knowledge.formula import Formula
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory
from lbm.reasoning.answer import because, world_facts, world_shown
from lbm.reasoning.budget import LEAST, NO_LIMIT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import entailed, no_worlds, satisfiable

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
    mode, given, reasons
        For the words: what was to be proven (``entailed`` or ``preferred``), the evidence, and the statements
        that settle it.
    """

    status: str | None
    why: tuple[int, ...] = ()
    minimal: bool = False
    world: dict[str, bool] | None = None
    mode: str = field(default="preferred", repr=False, compare=False)
    given: Formula | None = field(default=None, repr=False, compare=False)
    reasons: tuple[Statement, ...] = field(default=(), repr=False, compare=False)

    @property
    def follows(self) -> bool:
        """Whether the formula is true in every model or, if that was asked, in every best one."""
        return self.status in ("entailed", self.mode)

    def lines(self) -> list[str]:
        """Return whether the formula follows, and why or where it does not, as lines of text."""
        if self.follows:
            how = "is true in every model" if self.status == "entailed" else "is true in every best world"
            return [f"yes: it {how}", *because(self.reasons, self.minimal, self.given is not None)]
        if self.mode == "preferred":
            return ["no: it is false in some best world"]
        if self.world is None:
            return []
        where = world_shown(self.world, self.world.values()) or "the only world there is"
        return [f"no: it is false in {where}"]

    def facts(self) -> dict[str, Any]:
        """Return the proof as plain data for JSON: reasons if the formula follows, a world if it does not."""
        follows = self.follows
        return {
            "entails": follows,
            "mode": self.mode,
            "status": self.status,
            "reasons": [statement.facts() for statement in self.reasons] if follows else [],
            "minimal": self.minimal if follows else None,
            "world": None if follows or self.world is None else world_facts(self.world),
        }


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
        raise nothing(theory, given, budget)
    return some


def settle(
    theory: Theory | Problem,
    query: Formula,
    *,
    given: Formula | None = None,
    preferred: bool = True,
    why: bool = False,
    budget: Budget = NO_LIMIT,
) -> Settled:
    """Return the status of a formula among the models that keep the evidence; raise NoWorlds if none does.

    Without ``preferred``, what is neither entailed nor refuted is undecided. The reasons, if asked for:
    hard statements that entail or refute it; or, of a preferred formula, statements of which every
    world without it loses more than the best world loses of all.

    >>> from lbm.knowledge.parser import parse
    >>> settle(Theory(["a -> b", (2, "a")]), parse("b"), why=True)
    Settled(status='preferred', why=(0, 1), minimal=True, world={'a': False, 'b': False})
    """
    if budget.spent():
        return Settled(None)
    theory = Problem.of(theory)
    yes = entailed(theory, query, given=given, why=why, budget=budget)
    if yes.holds is None or budget.spent():
        return Settled(None)
    no = entailed(theory, ~query, given=given, why=why and not yes.holds, budget=budget)
    if yes.holds and no.holds:
        raise nothing(theory, given, budget)
    if yes.holds and no.holds is not None:
        return Settled("entailed", yes.why, yes.minimal)
    if no.holds:
        return Settled("refuted", no.why, no.minimal, yes.world)
    if no.holds is None or budget.spent():
        return Settled(None, world=yes.world)
    found = Settled("undecided", world=yes.world)
    return prefer(found, theory, query, given=given, why=why, budget=budget) if preferred else found


def prefer(
    undecided: Settled,
    theory: Theory | Problem,
    query: Formula,
    *,
    given: Formula | None = None,
    why: bool = False,
    budget: Budget = NO_LIMIT,
) -> Settled:
    """Return whether a formula that is neither entailed nor refuted is preferred, and why."""
    theory = Problem.of(theory)
    if not theory.has_soft:
        return undecided
    if budget.spent():
        return Settled(None, world=undecided.world)
    from lbm.reasoning.preference import preferred as is_preferred
    from lbm.reasoning.preference import why_preferred

    best = is_preferred(theory, query, given=given, budget=budget)
    if best is None:
        return Settled(None, world=undecided.world)
    if not best:
        return undecided
    if not why or budget.spent():
        return Settled("preferred", world=undecided.world)
    numbers, minimal = why_preferred(theory, query, given=given, budget=budget)
    return Settled("preferred", numbers, minimal, undecided.world)


def nothing(theory: Theory | Problem, given: Formula | None, budget: Budget) -> NoWorlds:
    """Return the error for a theory and evidence that leave no world, naming which of them it is."""
    return no_worlds(theory, given, budget.at_least(LEAST))
