"""``lbm log-partition`` and ``lbm log-probability``: the numbers behind every probability."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from typer import Argument

from lbm.errors import ParseError
from lbm.views.commands import shared


def log_partition_of(
    file: shared.File,
    *,
    given: shared.Given = None,
    weighing: shared.DistributionOptions,
    seconds: shared.Seconds = 60.0,
    reading: shared.FileOptions,
    form: shared.Form = None,
    as_json: shared.Json = False,
    seed: shared.Seed = None,
) -> int:
    """Print log Z: Z sums exp(score/τ) over the models, or exp(-F) over the worlds of the machine.

    Where the models are too many to sum, or half of the time is over, log Z is estimated by population
    annealing and printed with its standard error; standard error says so. With --form uai, the logarithm to
    base 10, behind a line PR.

    Exit status 0: there it is; 1: no world satisfies the evidence and the hard formulae; 3: it takes too
    long.

    With --json: log_partition, distribution, temperature, confidence, error (0 if it is exact), note.
    """
    shared.check_form(form, as_json)
    theory = reading.theory(file) if form is None else reading.network(file)[1]
    from lbm.reasoning.reasoner import log_partition

    with shared.working("summing over worlds"):
        found = log_partition(theory, given=given, **asdict(weighing), seconds=seconds, seed=seed)
    note = getattr(found, "note", "")
    error = getattr(found, "error", 0.0)
    if form is None:
        _say({"log_partition": found, **_about(weighing), "error": error, "note": note or None}, as_json)
    else:
        from lbm.knowledge.networks import pr_lines

        shared.say_each(pr_lines(found))
    if note and not as_json:
        what = f"estimated by population annealing, not exact, since {note}" if error else f"exact, {note}"
        shared.remark(what)
    return 0


def log_probability_of(
    file: shared.File,
    world: Annotated[
        str, Argument(metavar="WORLD", help="Every atom's value, as 'n=1 r=0', the way lbm models prints it.")
    ],
    *,
    given: shared.Given = None,
    weighing: shared.DistributionOptions,
    seconds: shared.Seconds = 60.0,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
) -> int:
    """Print the logarithm of a world's probability, exactly; -inf for a world that cannot be.

    Exit status as for log-partition. With --json: log_probability (null for minus infinity), distribution,
    temperature, confidence.
    """
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import log_probability

    values = read_world(world)
    with shared.working("summing over worlds"):
        found = log_probability(theory, values, given=given, **asdict(weighing), seconds=seconds)
    _say({"log_probability": found, **_about(weighing)}, as_json)
    return 0


def read_world(text: str) -> dict[str, bool]:
    """Return a world written as ``n=1 'a b'=0``.

    >>> read_world("n=1 less(a1, b1)=0")
    {'n': True, 'less(a1, b1)': False}
    """
    from lbm.knowledge.parser import parse

    values: dict[str, bool] = {}
    rest = text.strip()
    while rest:
        # A name may hold blanks and equals signs in quotes: a value is what ends at the first '=0' or '=1'
        # before which stands an atom.
        for at in range(len(rest)):
            if (
                rest[at] == "="
                and rest[at + 1 : at + 2] in ("0", "1")
                and rest[at + 2 : at + 3].strip(", ") == ""
            ):
                try:
                    formula = parse(rest[:at], source="world")
                except ParseError:
                    continue
                if formula.kind == "atom":
                    if formula.label in values:
                        raise ParseError(f"{rest[:at].strip()} has a value already", source="world")
                    values[formula.label] = rest[at + 1] == "1"
                    rest = rest[at + 2 :].lstrip(", ")
                    break
        else:
            raise ParseError(
                f"expected an atom and its value, as in n=1, found {rest[:40]!r}", source="world"
            )
    return values


def _about(weighing: shared.DistributionOptions) -> dict[str, Any]:
    """Return the options for JSON; the models have no confidence."""
    return {**asdict(weighing), **({} if weighing.distribution == "machine" else {"confidence": None})}


def _say(facts: dict[str, Any], as_json: bool) -> None:
    """Print the first of the facts, a number; or all of them, where one that is not finite is null."""
    from lbm.reasoning.answers import finite

    name, found = next(iter(facts.items()))
    if as_json:
        shared.say_json({**facts, name: finite(found)})
    else:
        shared.say(repr(found))
