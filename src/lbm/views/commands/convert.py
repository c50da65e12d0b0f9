"""``lbm convert``: what does this theory look like in another format?"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from typer import Option

from lbm.errors import FileError
from lbm.views.commands import shared


def convert_theory(
    file: shared.File,
    output: Annotated[
        str | None, Option("-o", "--output", metavar="FILE", help="Where to; - or nothing: standard output.")
    ] = None,
    to: Annotated[
        str | None,
        shared.one_of(
            ("lbm", "cnf", "wcnf", "wcnf-old"),
            "--to",
            "The format, where the name of the output does not say it.",
        ),
    ] = None,
    lenient: shared.Lenient = False,
    as_json: shared.Json = False,
) -> None:
    """Write a theory in another format: .lbm, DIMACS .cnf, .wcnf (newer form) or wcnf-old.

    Models, counts and weights are kept: formulae that are no clauses get definitional variables, and
    comments tell scale and offset where weights had to become whole.

    With --json: input, output, format, atoms and formulae (their numbers).
    """
    from lbm.knowledge import wire

    if output is None or output == "-":
        if to is None:
            raise typer.BadParameter("name a format, or a file with -o", param_hint="'--to'")
        if as_json:
            raise typer.BadParameter(
                "the theory itself goes to standard output; name a file with -o", param_hint="'--json'"
            )
        _print(wire.write_theory(shared.read_theory(file, lenient=lenient), to))
        return
    theory = shared.read_theory(file, lenient=lenient)
    wire.save_theory(theory, output, format=to)
    if as_json:
        shared.say_json(
            {
                "input": shared.name_of(file),
                "output": output,
                "format": to or wire.sniff_format(b"", output),
                "atoms": len(theory.atoms),
                "formulae": len(theory),
            }
        )


def _print(pieces: Iterable[str]) -> None:
    """Write a theory to standard output as the bytes that a file would hold, on every system."""
    if sys.stdout is None:
        raise FileError("cannot write standard output: it is closed")
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()
