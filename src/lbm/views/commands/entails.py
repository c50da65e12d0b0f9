"""``lbm entails``: does a formula follow?"""

from __future__ import annotations

from typing import Annotated

from lbm.reasoning.choices import MODES
from lbm.views.commands import shared


def entails_query(
    file: shared.File,
    query: shared.Query,
    *,
    given: shared.Given = None,
    mode: Annotated[
        str, shared.one_of(MODES, "--mode", "True in every model, or in every best one.")
    ] = "entailed",
    seconds: shared.Seconds = 60.0,
    reading: shared.TheoryOptions,
    as_json: shared.Json = False,
) -> int:
    """Tell whether a formula follows, with proof: formulae that entail it, or a model in which it is false.

    Exit status 0: it follows; 1: it does not, or no world satisfies the evidence and the hard formulae; 3: no
    answer in time.

    With --json: entails, mode, status, reasons (list of formula, weight and line), minimal, world (null, or
    0 and 1 by name).
    """
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import reasoner_for

    with shared.working("looking for a proof"):
        settled = reasoner_for(theory).settle(query, given=given, mode=mode, why=True, seconds=seconds)
    shared.tell(settled, as_json)
    return 0 if settled.follows else 1
