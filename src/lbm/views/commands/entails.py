"""``lbm entails``: does a formula follow?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lbm.views.commands import options, streams


class Mode(StrEnum):
    """What may follow: a formula true in every model, or in every best one."""

    entailed = "entailed"
    preferred = "preferred"


Following = Annotated[Mode, typer.Option("--mode", help="True in every model, or in every best one.")]


def entails_query(
    file: options.File,
    query: options.Query,
    given: options.Given = None,
    mode: Following = Mode.entailed,
    seconds: options.Seconds = 60.0,
    soft_as_hard: options.SoftAsHard = False,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
) -> int:
    """Tell whether a formula follows, with proof: formulae that entail it, or a model in which it is false.

    Exit status 0: it follows; 1: it does not, or no world satisfies the evidence and the hard formulae; 3: no
    answer in time.

    With --json: entails, mode, status, reasons (list of formula, weight and line), minimal, world (null, or
    0 and 1 by name).
    """
    theory = streams.read_theory(file, lenient=lenient, soft_as_hard=soft_as_hard)
    from lbm.reasoning.reasoner import reasoner_for

    with streams.working("looking for a proof"):
        settled = reasoner_for(theory).settle(query, given=given, mode=mode.value, why=True, seconds=seconds)
    if as_json:
        streams.say_json(settled.facts())
    else:
        streams.say(*settled.lines())
    return 0 if settled.follows else 1
