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


def split_names(names: str | None) -> list[str] | None:
    """Return the atoms of ``--project a,less(a1, b1),'c d'``, as an ``atoms`` line lists them."""
    if names is None:
        return None
    from lbm.knowledge.parser import read_text

    return list(read_text(f"atoms {names}", source="--project").atoms)


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
