"""``lbm models``: which worlds satisfy every hard formula?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.knowledge.theory import Theory


def list_models(
    file: shared.File,
    limit: Annotated[
        int | None, Option("--limit", min=1, help="How many to print at most; by default all.")
    ] = None,
    given: shared.Given = None,
    project: shared.Project = None,
    seconds: shared.Seconds = 60.0,
    soft_as_hard: shared.SoftAsHard = False,
    lenient: shared.Lenient = False,
    as_json: shared.Json = False,
) -> int:
    """List the models of a theory, a world a line, in lexicographic order, false first.

    The last line tells how many were printed and whether these are all. Exit status 0: there is one at
    least; 1: there is none; 3: the list would be too long, or the time ran out: what was found is printed.

    With --json: atoms, models (lists of 0 and 1 in that order), complete (whether these are all; null: not
    known, for lack of time).
    """
    theory = shared.read_theory(file, lenient=lenient, soft_as_hard=soft_as_hard)
    from lbm.reasoning.reasoner import models

    with shared.working("looking for models"):
        found = models(theory, given=given, project=shared.split_names(project), limit=limit, seconds=seconds)
    if as_json:
        shared.say_json(found.facts())
    elif found.in_time and not len(found):
        shared.say(_none(theory, given, seconds))
    else:
        shared.say_each(found.lines())
    if not found.in_time:
        return 3
    return 0 if len(found) else 1


def _none(theory: Theory, given: str | None, seconds: float) -> str:
    """Return why there is no model: the theory allows none, or the evidence does not."""
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.proof import satisfiable

    if given is not None:
        allows = satisfiable(theory, budget=Budget.of(seconds))
        if allows is None:
            return "no models keep the evidence and the hard formulae"
        if allows:
            return "no models keep the evidence"
    return "no models: the hard formulae clash"
