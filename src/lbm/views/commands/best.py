"""``lbm best``: which world satisfies every hard formula and loses the least weight?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Option

from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.errors import NoWorlds
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.answers import Best

SECONDS: Final = 10.0
"""Time for the search and the proof, where none is given and no proof is demanded."""


def _engines(names: str | None) -> str | None:
    """Check names of engines before anything is read."""
    if names is not None:
        from lbm.reasoning.search.engines import chosen

        try:
            chosen(names)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return names


def best_world(
    file: shared.File,
    given: shared.Given = None,
    seconds: Annotated[
        float | None,
        Option("--seconds", callback=shared.budget, help="Time to search and prove; by default 10."),
    ] = None,
    top: Annotated[int, Option("--top", min=1, max=65536, help="How many worlds, best first.")] = 1,
    every: Annotated[bool, Option("--all", help="Every world that is as good as the best.")] = False,
    certify: Annotated[
        bool, Option("--certify", help="Take as long as the proof takes; unproven is exit 3.")
    ] = False,
    engines: Annotated[
        str | None,
        Option(
            "--engines",
            metavar="NAMES",
            callback=_engines,
            help="Who may be asked: own,rc2,cp-sat,toulbar2, or -rc2 for all but that one; by default all.",
        ),
    ] = None,
    dimacs: Annotated[bool, Option("--dimacs", help="Print o, s and v lines, as MaxSAT solvers do.")] = False,
    *,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
    seed: shared.Seeded = None,
) -> int:
    """Find the world that satisfies every hard formula and the evidence, and loses the least weight.

    The answer is `optimal` if that is proven, else `best found`, with the gap to what is proven. Exit status
    0: there is a world; 1: no world satisfies the evidence and the hard formulae; 3: none was found in time
    or, with --certify, none was proven best. Interrupted, the best world so far is printed.

    With --json: worlds (list of 0 and 1 by name, best first), scores, satisfied, lost, broken (list of
    formula, weight and line, of the first world), optimal, bound (of the weight lost), gap, method, complete
    (with --all: whether these are all), found_by and proved_by (own, rc2, cp-sat or toulbar2; null: nobody),
    dropped (engines that failed or were not believed, and why); where there is no world, worlds is empty and
    clash lists formulae, or reason says that none was found in time.
    With --dimacs: o, the weight lost, for every better world as it is found; s; and v, a literal per atom.
    """
    if every and top > 1:
        raise typer.BadParameter("ask for --top worlds or for --all the best ones, not for both")
    theory = reading.theory(file)
    from lbm.errors import NoAnswer, NoWorlds
    from lbm.knowledge.parser import parse
    from lbm.reasoning.optimum import best  # and no more: RC2 waits for it

    budget = seconds if seconds is not None or certify else shared.budget(SECONDS)
    evidence = None if given is None else parse(given, source="given")
    kept: list[Best] = []

    def tell(found: Best) -> None:
        kept[:] = [found]
        if dimacs:
            shared.say_now(f"o {found.lost}")

    def show(found: Best) -> None:
        if as_json:
            shared.say_json(found.facts())
        elif dimacs:
            shared.say(*_dimacs(found, None if not kept else kept[-1]))
        else:
            shared.say_each(found.lines(rest="--json"))

    try:
        with shared.working("looking for the best world"):
            found = best(
                theory,
                given=evidence,
                top=top,
                every=every,
                seconds=budget,
                seed=seed,
                on_better=tell,
                engines=engines,
            )
    except KeyboardInterrupt:
        if kept:
            show(kept[-1])
        elif dimacs:
            shared.say("s UNKNOWN")
        raise
    except NoWorlds as error:
        if dimacs:
            shared.say("s UNSATISFIABLE")
        else:
            _say_clash(theory, error, as_json)
        raise
    except NoAnswer as error:
        if dimacs:
            shared.say("s UNKNOWN")
        elif as_json:
            shared.say_json({"worlds": [], "reason": error.one_line()})
        raise
    show(found)
    return 3 if certify and not found.optimal else 0


def _say_clash(theory: Theory, error: NoWorlds, as_json: bool) -> None:
    """Name a minimal set of hard formulae that clash, among themselves or with the evidence."""
    from lbm.knowledge.formula import Formula
    from lbm.knowledge.printed import some_shown
    from lbm.knowledge.theory import shown
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.proof import prove

    evidence = error.evidence if isinstance(error.evidence, Formula) else None
    found = prove(theory, given=evidence, budget=Budget.of(SECONDS))
    clashing = found.reasons
    if as_json:
        shared.say_json({"worlds": [], "clash": [statement.facts() for statement in clashing]})
        return
    least = "" if found.minimal else " (fewer may do)"
    if clashing:
        with_what = "" if evidence is None else " with the evidence"
        shared.say(f"these hard formulae clash{with_what}{least}:")
    shared.say(*some_shown(clashing, lambda statement: shown(statement.formula), "--json"))


def _dimacs(found: Best, told: Best | None) -> Iterator[str]:
    if told is None or told.lost != found.lost:
        yield f"o {found.lost}"
    soft = found.lost or found.satisfied
    yield "s OPTIMUM FOUND" if found.optimal and soft else "s SATISFIABLE"
    literals = (str(i) if value else f"-{i}" for i, value in enumerate(found.world.values(), start=1))
    yield " ".join(["v", *literals, "0"])
