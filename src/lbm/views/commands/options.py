"""The options that commands share, as types, so that a signature says what a command takes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


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


def _positive(value: float) -> float:
    if not value > 0:
        raise typer.BadParameter(f"expected a number above 0, got {value}")
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
Seconds = Annotated[
    float, typer.Option("--seconds", callback=_positive, help="Time to look for an answer; then exit 3.")
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
