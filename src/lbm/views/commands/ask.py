"""``lbm ask``: how likely is a formula, and is it settled?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbm.views.commands import options, streams

Why = Annotated[bool, typer.Option("--why", help="Name a minimal set of formulae that settles the question.")]


def ask_query(
    file: options.File,
    query: options.Query,
    given: options.Given = None,
    why: Why = False,
    distribution: options.About = options.Distribution.logical,
    temperature: options.Temperature = 1.0,
    confidence: options.Confidence = 5.0,
    method: options.Chosen = options.How.auto,
    sweeps: options.Sweeps = None,
    seconds: options.Seconds = 60.0,
    soft_as_hard: options.SoftAsHard = False,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
    seed: options.Seeded = None,
) -> int:
    """Ask how likely a formula is given evidence, and whether it is settled.

    Entailed: true in every model that satisfies the evidence; refuted: in none; preferred: in every best one;
    else undecided. Exit status 0: there is an answer; 1: no world satisfies the evidence and the hard
    formulae; 3: chains did not agree, or the question was not settled in time.

    With --json: query, given, probability, interval, status, method (exact or sampled), distribution,
    temperature, confidence, reasons (null if not asked for, else a list of formula and weight), minimal,
    converged, effective_size, r_hat, missed, chains, sweeps, note.
    """
    theory = streams.read_theory(file, lenient=lenient, soft_as_hard=soft_as_hard)
    from lbm.reasoning.reasoner import ask

    with streams.working("looking for the answer"):
        answer = ask(
            theory,
            query,
            given=given,
            why=why,
            distribution=distribution.value,
            temperature=temperature,
            confidence=confidence,
            method=method.value,
            sweeps=sweeps,
            seconds=seconds,
            seed=seed,
        )
    if as_json:
        streams.say_json(answer.facts())
    else:
        streams.say(*answer.lines())
    settled = answer.status is not None or distribution is options.Distribution.machine
    return 0 if answer.converged and settled else 3
