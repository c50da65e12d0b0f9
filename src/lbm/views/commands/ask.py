"""``lbm ask``: how likely is a formula, and is it settled? And how likely, given each row of a table?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from lbm.views.commands import evidence, shared


def ask_query(
    file: shared.File,
    query: shared.Query,
    *,
    given: shared.Given = None,
    why: Annotated[
        bool, Option("--why", help="Name a minimal set of formulae that settles the question.")
    ] = False,
    rows: shared.Rows = None,
    out: shared.Answers = None,
    weighing: shared.DistributionOptions,
    method: shared.Chosen = "auto",
    effort: shared.EffortOptions,
    reading: shared.TheoryOptions,
    as_json: shared.Json = False,
    seed: shared.Seeded = None,
) -> int:
    """Ask how likely a formula is given evidence, and whether it is settled.

    Entailed: true in every model that satisfies the evidence; refuted: in none; preferred: in every best one;
    dispreferred: false in every best one; else undecided. Exit status 0: there is an answer; 1: no world
    satisfies the evidence and the hard formulae; 3: chains did not agree, or the question was not settled in
    time.

    With --json: query, given, probability, interval, status, method (exact or sampled), distribution,
    temperature, confidence, reasons (null if not asked for, else a list of formula and weight), minimal,
    converged, effective_size, r_hat, missed, chains, sweeps, note.

    With --rows the answer is CSV, a line for each row of evidence: probability and possible, 1, or 0 where
    the row is impossible and has no probability. Cells of evidence are 0 or 1; empty, where nothing was seen;
    or a probability, which is soft evidence: worlds with the atom are multiplied by p, the others by 1 - p.
    Of a group, of whose atoms a hard formula says that exactly one is true, only the one that is true counts.
    Answers are exact, and out of time there are none.

    With --rows and --json: query, rows, impossible (how many), probabilities (a list with null where a row is
    impossible; none if they go to a file), method, distribution, temperature, confidence.
    """
    options = {**asdict(weighing), **asdict(effort)}
    if rows is not None or out is not None:
        evidence.check_plain(file, rows, out, given=given, why=why, method=method, **options)
        theory = reading.theory(file)
        evidence.answer_rows(theory, query, rows, out, effort.seconds, weighing.temperature, as_json)
        return 0
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import ask

    with shared.working("looking for the answer"):
        answer = ask(theory, query, given=given, why=why, method=method, seed=seed, **options)
    shared.tell(answer, as_json)
    settled = answer.status is not None or weighing.distribution == "machine"
    return 0 if answer.converged and settled else 3
