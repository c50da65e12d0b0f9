"""``lbm ask``: how likely is a formula, and is it settled?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from lbm.views.commands import shared


def ask_query(
    file: shared.File,
    query: shared.Query,
    *,
    given: shared.Given = None,
    why: Annotated[
        bool, Option("--why", help="Name a minimal set of formulae that settles the question.")
    ] = False,
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
    """
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import ask

    with shared.working("looking for the answer"):
        options = {**asdict(weighing), **asdict(effort)}
        answer = ask(theory, query, given=given, why=why, method=method, seed=seed, **options)
    shared.tell(answer, as_json)
    settled = answer.status is not None or weighing.distribution == "machine"
    return 0 if answer.converged and settled else 3
