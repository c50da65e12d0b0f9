"""``lbm best``: which world satisfies every hard formula and loses the least weight?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lbm.views.commands import options, streams

if TYPE_CHECKING:
    from lbm.errors import NoWorlds
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.optimum import Best

SECONDS: Final = 10.0
"""Time for the search and the proof, where none is given and no proof is demanded."""

Budget = Annotated[
    float | None,
    typer.Option("--seconds", callback=options.budget, help="Time to search and prove; by default 10."),
]
Top = Annotated[int, typer.Option("--top", min=1, max=65536, help="How many worlds, best first.")]
Every = Annotated[bool, typer.Option("--all", help="Every world that is as good as the best.")]
Certify = Annotated[
    bool, typer.Option("--certify", help="Take as long as the proof takes; unproven is exit 3.")
]
Dimacs = Annotated[bool, typer.Option("--dimacs", help="Print o, s and v lines, as MaxSAT solvers do.")]


def best_world(
    file: options.File,
    given: options.Given = None,
    seconds: Budget = None,
    top: Top = 1,
    every: Every = False,
    certify: Certify = False,
    dimacs: Dimacs = False,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
    seed: options.Seeded = None,
) -> int:
    """Find the world that satisfies every hard formula and the evidence, and loses the least weight.

    The answer is `optimal` if that is proven, else `best found`, with the gap to what is proven. Exit status
    0: there is a world; 1: no world satisfies the evidence and the hard formulae; 3: none was found in time
    or, with --certify, none was proven best. Interrupted, the best world so far is printed.

    With --json: worlds (list of 0 and 1 by name, best first), scores, satisfied, lost, broken (list of
    formula, weight and line, of the first world), optimal, bound (of the weight lost), gap, method, complete
    (with --all: whether these are all); where there is no world, worlds is empty and clash lists formulae,
    or reason says that none was found in time.
    With --dimacs: o, the weight lost; s; and v, a literal per atom.
    """
    if every and top > 1:
        raise typer.BadParameter("ask for --top worlds or for --all the best ones, not for both")
    theory = streams.read_theory(file, lenient=lenient)
    from lbm.errors import NoAnswer, NoWorlds
    from lbm.knowledge.parser import parse
    from lbm.reasoning.optimum import best  # and no more: RC2 waits for it

    budget = seconds if seconds is not None or certify else options.budget(SECONDS)
    evidence = None if given is None else parse(given, source="given")
    kept: list[Best] = []

    def tell(found: Best) -> None:
        kept[:] = [found]
        if dimacs:
            streams.say(f"o {found.lost}")

    def show(found: Best) -> None:
        if as_json:
            streams.say_json(_facts(theory, found))
        elif dimacs:
            streams.say(*_dimacs(found, None if not kept else kept[-1]))
        else:
            for line in _lines(theory, found, every):
                streams.say(line)

    try:
        with streams.working("looking for the best world"):
            found = best(
                theory, given=evidence, top=top, every=every, seconds=budget, seed=seed, on_better=tell
            )
    except KeyboardInterrupt:
        if kept:
            show(kept[-1])
        raise
    except NoWorlds as error:
        if dimacs:
            streams.say("s UNSATISFIABLE")
        else:
            _say_clash(theory, error, as_json)
        raise
    except NoAnswer as error:
        if dimacs:
            streams.say("s UNKNOWN")
        elif as_json:
            streams.say_json({"worlds": [], "reason": error.one_line()})
        raise
    show(found)
    return 3 if certify and not found.optimal else 0


def _say_clash(theory: Theory, error: NoWorlds, as_json: bool) -> None:
    """Name a minimal set of hard formulae that clash, among themselves or with the evidence."""
    from lbm.knowledge.formula import Formula
    from lbm.knowledge.theory import shown
    from lbm.reasoning.proof import prove

    evidence = error.evidence if isinstance(error.evidence, Formula) else None
    verdict = prove(theory, given=evidence, seconds=SECONDS)
    clashing = [theory.statements[number] for number in verdict.clash]
    if as_json:
        streams.say_json({"worlds": [], "clash": [statement.facts() for statement in clashing]})
        return
    least = "" if verdict.minimal else " (fewer may do)"
    if clashing:
        with_what = "" if evidence is None else " with the evidence"
        streams.say(f"these hard formulae clash{with_what}{least}:")
    printed = streams.listed(clashing)
    streams.say(*(f"  {shown(statement.formula)}" for statement in clashing[:printed]))
    if printed < len(clashing):
        streams.say(f"  and {len(clashing) - printed:,} more: --json lists them")


def _lines(theory: Theory, found: Best, every: bool) -> Iterator[str]:
    from lbm.knowledge.theory import statement_shown
    from lbm.reasoning.answer import world_shown

    for world, score in zip(found.worlds, found.scores, strict=True):
        text = world_shown(world, world.values())
        yield text if len(found.worlds) == 1 else f"{text}   score {score}"
    first = "the first: " if len(found.worlds) > 1 else ""
    yield f"{first}satisfied {found.satisfied}, lost {found.lost}; {found.said}"
    if every:
        yield "these are all the best worlds" if found.complete else "there may be more worlds as good"
    if found.broken:
        yield "broken:"
        shown = streams.listed(found.broken)
        for number in found.broken[:shown]:
            yield f"  {statement_shown(theory.statements[number])}"
        if shown < len(found.broken):
            yield f"  and {len(found.broken) - shown:,} more: --json lists them"


def _dimacs(found: Best, told: Best | None) -> Iterator[str]:
    if told is None or told.lost != found.lost:
        yield f"o {found.lost}"
    soft = found.lost or found.satisfied
    yield "s OPTIMUM FOUND" if found.optimal and soft else "s SATISFIABLE"
    literals = (str(i) if value else f"-{i}" for i, value in enumerate(found.world.values(), start=1))
    yield " ".join(["v", *literals, "0"])


def _facts(theory: Theory, found: Best) -> dict[str, Any]:
    from lbm.knowledge.numbers import plain
    from lbm.reasoning.answer import world_facts

    return {
        "worlds": (world_facts(world) for world in found.worlds),
        "scores": [plain(score) for score in found.scores],
        "satisfied": plain(found.satisfied),
        "lost": plain(found.lost),
        "broken": (theory.statements[number].facts() for number in found.broken),
        "optimal": found.optimal,
        "bound": plain(found.bound),
        "gap": plain(found.gap),
        "method": found.method,
        "complete": found.complete,
    }
