"""``lbm ask``: how likely is a formula, and is it settled? Or how likely, given each row of a table?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from lbm.errors import FileError
from lbm.knowledge.printed import csv_text
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.answers import AnswerRows, MarginalRows


def ask_query(
    file: shared.File,
    query: Annotated[
        str | None,
        Argument(metavar="QUERY", help="Any formula, as in 'n -> r'; with --rows, by default every atom."),
    ] = None,
    *,
    given: shared.Given = None,
    why: Annotated[
        bool, Option("--why", help="Name a minimal set of formulae that settles the question.")
    ] = False,
    rows: Annotated[
        str | None,
        Option(
            "--rows",
            metavar="EVIDENCE",
            help="A CSV file, or - for standard input: a row of evidence each, with atoms in its first line.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        Option("-o", "--out", metavar="OUT", help="With --rows: a CSV file; by default standard output."),
    ] = None,
    weighing: shared.DistributionOptions,
    method: shared.Chosen = "auto",
    effort: shared.EffortOptions,
    reading: shared.TheoryOptions,
    as_json: shared.Json = False,
    seed: shared.Seeded = None,
) -> int:
    """Ask how likely a formula is given evidence, and whether it is settled.

    Entailed: true in every model that satisfies the evidence; refuted: in none; preferred: in every best one;
    else undecided. Exit status 0: there is an answer; 1: no world satisfies the evidence and the hard
    formulae; 3: chains did not agree, or the question was not settled in time.

    With --json: query, given, probability, interval, status, method (exact or sampled), distribution,
    temperature, confidence, reasons (null if not asked for, else a list of formula and weight), minimal,
    converged, effective_size, r_hat, missed, chains, sweeps, note.

    With --rows the answer is CSV, a line for each row of evidence: probability and possible, 1, or 0 where
    the row is impossible and has no probability; without QUERY, the probability of every atom. Cells of
    evidence are 0 or 1; empty, where nothing was seen; or a probability, which is soft evidence: worlds with
    the atom are multiplied by p, the others by 1 - p. Of a group, of whose atoms a hard formula says that
    exactly one is true, only the one that is true counts. Answers are exact, and out of time there are none.

    With --rows and --json: query, rows, impossible (how many), probabilities (a list with null where a row is
    impossible; none if they go to a file), method, distribution, temperature, confidence; without QUERY atoms
    and marginals (a list of numbers for each row) in place of query and probabilities.
    """
    if rows is not None:
        _check_plain(file, given, why, method, weighing, effort, rows)
        shared.check_place(out)
        if out is not None and Path(out).suffix.lower() != ".csv":
            raise FileError(f"cannot write {out}: expected a name that ends in .csv")
        _ask_rows(reading.theory(file), query, rows, out, weighing.temperature, effort.seconds, as_json)
        return 0
    if query is None:
        raise typer.BadParameter("expected a formula, or rows of evidence with --rows", param_hint="'QUERY'")
    if out is not None:
        raise typer.BadParameter("only answers to rows of evidence, --rows, go to a file", param_hint="'-o'")
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import ask

    with shared.working("looking for the answer"):
        options = {**asdict(weighing), **asdict(effort)}
        answer = ask(theory, query, given=given, why=why, method=method, seed=seed, **options)
    shared.tell(answer, as_json)
    settled = answer.status is not None or weighing.distribution == "machine"
    return 0 if answer.converged and settled else 3


# --- rows of evidence ------------------------------------------------------------------------------


def _check_plain(
    file: str,
    given: str | None,
    why: bool,
    method: str,
    weighing: shared.DistributionOptions,
    effort: shared.EffortOptions,
    rows: str,
) -> None:
    """Refuse what rows of evidence are not asked with."""
    for name, asked in (
        ("--given", given is not None),
        ("--why", why),
        ("--sweeps", effort.sweeps is not None),
        (f"--method {method}", method not in ("auto", "exact")),
        (f"--distribution {weighing.distribution}", weighing.distribution != "logical"),
    ):
        if asked:
            raise typer.BadParameter(
                f"rows of evidence are answered exactly, of the logical distribution, without {name}",
                param_hint="'--rows'",
            )
    if file == rows == "-":
        raise typer.BadParameter("standard input can be the theory or the evidence, not both")


def _ask_rows(
    theory: Theory,
    query: str | None,
    rows: str,
    out: str | None,
    temperature: float,
    seconds: float,
    as_json: bool,
) -> None:
    """Answer rows as they are read, and write or print the answers as they come."""
    listed = as_json and out is None
    parts: list[AnswerRows | MarginalRows] = []

    def pieces() -> Iterator[str]:
        for found in _answers(theory, query, rows, temperature, seconds):
            yield from _text(found, head=not parts)
            parts.append(found if listed else _light(found))

    if out is not None:
        from lbm.knowledge.packed import write_whole

        write_whole(out, pieces())
    else:
        for piece in pieces():
            if not as_json:
                print(piece, end="")
    whole = _together(parts)
    if as_json:
        shared.say_json(whole.facts() if listed else {**whole.facts(), **_without_numbers(whole)})
    else:
        shared.remark(*whole.lines())


def _answers(
    theory: Theory, query: str | None, rows: str, temperature: float, seconds: float
) -> Iterator[AnswerRows | MarginalRows]:
    """Yield answers to some rows at a time."""
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.reasoner import Reasoner
    from lbm.views.commands import evidence

    reasoner, budget = Reasoner(theory), Budget.of(seconds)
    with evidence.opened(rows, theory.atoms) as file, shared.bar("answering", file.size, "elapsed") as show:
        for chunk, done in file.chunks():
            budget.tick()
            left = budget.seconds()
            if query is None:
                yield reasoner.marginals(given=chunk, temperature=temperature, seconds=left)
            else:
                yield reasoner.ask(query, given=chunk, temperature=temperature, seconds=left)
            show(done)


def _text(found: AnswerRows | MarginalRows, *, head: bool) -> Iterator[str]:
    """Yield answers as CSV, if asked for with the names of the columns before them."""
    from lbm.reasoning.answers import AnswerRows

    if isinstance(found, AnswerRows):
        if head:
            yield "probability,possible\n"
        yield "".join(
            [",0\n" if chance != chance else f"{chance!r},1\n" for chance in found.probability.tolist()]
        )
        return
    if head:
        yield from csv_text([found.atoms])
    yield "".join([",".join(map(repr, row)) + "\n" for row in found.array.tolist()])


def _light(found: AnswerRows | MarginalRows) -> AnswerRows | MarginalRows:
    """Return answers without the numbers of all atoms, which are many."""
    from lbm.reasoning.answers import AnswerRows

    return found if isinstance(found, AnswerRows) else replace(found, array=found.array[:0])


def _together(parts: list[Any]) -> AnswerRows | MarginalRows:
    """Return answers to parts of the rows as one."""
    import numpy as np

    first: AnswerRows | MarginalRows = parts[0]
    names = [name for name in ("probability", "array", "possible") if hasattr(first, name)]
    joined: dict[str, Any] = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
    return replace(first, **joined)


def _without_numbers(found: AnswerRows | MarginalRows) -> dict[str, Iterator[Any]]:
    """Return what stands in JSON for numbers that go to a file."""
    return {name: iter(()) for name in found.facts().keys() & {"probabilities", "marginals"}}
