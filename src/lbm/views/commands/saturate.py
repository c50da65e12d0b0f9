"""``lbm saturate``: all that modes let us say about each example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from lbm.knowledge.printed import counted
from lbm.views.commands import learning, shared

if TYPE_CHECKING:
    from lbm.relations.problem import RelationalProblem
    from lbm.relations.saturate import BottomClause

HEADER: Final = "example\tlabel\tfold\tbody_literals"


def saturate_examples(
    directory: learning.Directory,
    *,
    depth: Annotated[
        int | None,
        Option(
            "--depth",
            min=1,
            help="Layers of new variables, Aleph's i; by default as the modes set it, else 3.",
        ),
    ] = None,
    relational: learning.ProblemOptions,
    out: Annotated[
        str | None, Option("-o", "--out", metavar="FILE", help="Where they go; by default they are printed.")
    ] = None,
    jobs: learning.Jobs = 1,
    as_json: shared.Json = False,
) -> None:
    """Write the bottom clause of every example: each literal that the modes allow and the background proves.

    One example a line, separated by tabs: the example, pos or neg, its fold or nothing, and the literals of
    the body separated by blanks. Variables are named A, B, C ... in order of appearance; constants stand
    where a mode has #.

    With --json: problem, depth, positive, negative, literals (how many different ones), out, warnings;
    without --out also clauses (list of example, label, fold, head, body).
    """
    shared.check_place(out)
    from lbm.relations.saturate import saturate_all

    problem = relational.problem(directory)
    if depth is None and "i" not in problem.modes.settings:
        depth = 3
    with shared.bar("saturating", len(problem.examples), "count", "left") as show:
        clauses = saturate_all(problem, depth=depth, n_jobs=jobs, progress=show)
    if out is not None:
        from lbm.knowledge.packed import write_whole

        write_whole(out, (f"{line}\n" for line in lines(problem, clauses)))
    different = len({literal for clause in clauses for literal in clause.body})
    if as_json:
        facts = {
            "problem": problem.name,
            "depth": depth if depth is not None else problem.modes.settings["i"],
            "positive": len(problem.positive),
            "negative": len(problem.negative),
            "literals": different,
            "out": out,
            "warnings": list(problem.warnings),
        }
        shared.say_json(facts if out is not None else {**facts, "clauses": _described(problem, clauses)})
    elif out is None:
        shared.say(*lines(problem, clauses))
    else:
        found = counted(len(clauses), "clause")
        shared.say(f"{out}: {found}, {counted(different, 'different literal')}")


def lines(problem: RelationalProblem, clauses: Sequence[BottomClause]) -> Iterator[str]:
    """Yield a header and a line for every clause, cells separated by tabs."""
    from lbm.relations.prolog.terms import write

    yield HEADER
    for clause in clauses:
        fold = "" if problem.folds is None else problem.folds[clause.example]
        body = " ".join(clause.body)
        yield "\t".join([write(clause.example), "pos" if clause.label else "neg", fold, body])


def _described(problem: RelationalProblem, clauses: Sequence[BottomClause]) -> Iterator[dict[str, object]]:
    from lbm.relations.prolog.terms import write

    for clause in clauses:
        yield {
            "example": write(clause.example),
            "label": clause.label,
            "fold": None if problem.folds is None else problem.folds[clause.example],
            "head": clause.head,
            "body": list(clause.body),
        }
