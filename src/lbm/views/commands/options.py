"""The options that commands share, as types, so that a signature says what a command takes."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from math import inf
from typing import Annotated, Any, Final

import typer

from lbm.reasoning.choices import FAST, METHODS

_started: Final[ContextVar[float]] = ContextVar("started")


class Method(StrEnum):
    """How a formula becomes a strict DNF."""

    auto = "auto"
    elimination = "elimination"
    diagram = "diagram"
    full = "full"
    definitions = "definitions"


class Encoding(StrEnum):
    """How a theory becomes a machine."""

    sdnf = "sdnf"
    penalty = "penalty"


class Distribution(StrEnum):
    """What a probability is about."""

    logical = "logical"
    machine = "machine"


class How(StrEnum):
    """How a probability is found, or a world drawn."""

    _ignore_ = "name"
    auto = METHODS[0]
    for name in METHODS[1:]:
        vars()[name] = name


class HowDrawn(StrEnum):
    """How a world is drawn."""

    _ignore_ = "name"
    auto = METHODS[0]
    for name in (*METHODS[1:], FAST):
        vars()[name] = name


class Format(StrEnum):
    """What a theory can be written as."""

    lbm = "lbm"
    cnf = "cnf"
    wcnf = "wcnf"
    wcnf_old = "wcnf-old"


def _inside(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"expected a number strictly between 0 and 1, got {value}")
    return value


def split_names(names: str | None) -> list[str] | None:
    """Return the atoms of ``--project a,less(a1, b1),'c d'``, as an ``atoms`` line lists them."""
    if names is None:
        return None
    from lbm.knowledge.parser import read_text

    return list(read_text(f"atoms {names}", source="--project").atoms)


def positive(value: float | None) -> float | None:
    """Return a number above 0; None: it was not given."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"expected a number above 0, got {value}")
    return value


def count_from(started: float) -> None:
    """Let the time that ``--seconds`` allows begin at a moment of ``time.monotonic``; else it begins now."""
    _started.set(started)


def budget(seconds: float | None) -> float | None:
    """Return the time that ``--seconds`` allows; whatever the command asks ends by then. None: no limit."""
    if positive(seconds) is not None:
        from lbm.reasoning import clock

        clock.limit_to(_started.get(clock.now()) + seconds)  # type: ignore[operator]
    return seconds


def _finite(value: float) -> float:
    if not 0 < value < inf:
        raise typer.BadParameter(f"expected a finite number above 0, got {value}")
    return value


File = Annotated[
    str, typer.Argument(metavar="FILE", help="A theory: .lbm, .cnf or .wcnf, or - for standard input.")
]
Lenient = Annotated[
    bool, typer.Option("--lenient", help="Read a DIMACS file that does not fit its header, with a warning.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Taken by every command; this one makes no random choice.")
]
Seeded = Annotated[
    int | None, typer.Option("--seed", min=0, help="Of the chains: the same seed, the same answer.")
]
SoftAsHard = Annotated[
    bool, typer.Option("--soft-as-hard", help="Demand every formula: weights are dropped.")
]
About = Annotated[
    Distribution,
    typer.Option("--distribution", help="What the probability is about: models, or the machine."),
]
Temperature = Annotated[
    float, typer.Option("--temperature", callback=_finite, help="τ: probabilities go with exp(score/τ).")
]
Confidence = Annotated[
    float, typer.Option("--confidence", callback=_finite, help="c, of the machine distribution.")
]
Sweeps = Annotated[
    int | None, typer.Option("--sweeps", min=1, help="Sweeps of each chain; by default until they agree.")
]
Chosen = Annotated[How, typer.Option("--method", help="auto: exact and, where that is too much, collapsed.")]
Drawn = Annotated[
    HowDrawn,
    typer.Option(
        "--method",
        help="auto: exact and, where that is too much, collapsed. fast: annealed models, not uniform.",
    ),
]
Query = Annotated[str, typer.Argument(metavar="QUERY", help="Any formula, as in 'n -> r'.")]
Seconds = Annotated[
    float, typer.Option("--seconds", callback=budget, help="Time to look for an answer; then exit 3.")
]
Given = Annotated[
    str | None, typer.Option("--given", metavar="FORMULA", help="Evidence: any formula, as in 'n & ~p'.")
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project", metavar="ATOMS", help="Only these atoms, as in a,b: worlds that agree are one."
    ),
]
Epsilon = Annotated[
    float, typer.Option("--epsilon", callback=_inside, help="How deep a well of weight 1 is, in (0, 1).")
]
NoMerge = Annotated[
    bool, typer.Option("--no-merge", help="Keep identical cubes of different formulae apart.")
]
StrictDNF = Annotated[
    Method, typer.Option("--method", help="How each formula becomes cubes that exclude one another.")
]
Budget = Annotated[
    int, typer.Option("--budget", min=1, help="Cubes of a formula past which auto adds definitional atoms.")
]
Encoded = Annotated[
    Encoding, typer.Option("--encoding", help="Cubes, or the penalty polynomial of Penalty Logic.")
]


def unseeded(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a command that takes ``--seed``, as all of them do, and drops it: nothing in it is random."""

    @wraps(command)
    def run(*, seed: int | None, **others: Any) -> int | None:
        del seed
        return command(**others)

    taken = signature(command, eval_str=True)  # which typer reads in place of that of run
    seed = Parameter("seed", Parameter.KEYWORD_ONLY, default=None, annotation=Seed)
    run.__signature__ = taken.replace(parameters=[*taken.parameters.values(), seed])  # type: ignore[attr-defined]
    return run
