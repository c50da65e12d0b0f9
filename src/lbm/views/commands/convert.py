"""``lbm convert``: what does this theory look like in another format?"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from lbm.errors import FileError
from lbm.views.commands import options, streams

Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where to; - or nothing: standard output."),
]
To = Annotated[
    options.Format | None,
    typer.Option("--to", help="The format, where the name of the output does not say it."),
]


def convert_theory(
    file: options.File,
    output: Output = None,
    to: To = None,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
) -> None:
    """Write a theory in another format: .lbm, DIMACS .cnf, .wcnf (newer form) or wcnf-old.

    Models, counts and weights are kept: formulae that are no clauses get definitional variables, and
    comments tell scale and offset where weights had to become whole.

    With --json: input, output, format, atoms and formulae (their numbers).
    """
    from lbm.knowledge import wire

    if output in (None, "-"):
        if to is None:
            raise typer.BadParameter("name a format, or a file with -o", param_hint="'--to'")
        if as_json:
            raise typer.BadParameter(
                "the theory itself goes to standard output; name a file with -o", param_hint="'--json'"
            )
    theory = streams.read_theory(file, lenient=lenient)
    if output is None or output == "-":
        assert to is not None
        _print(wire.write_theory(theory, to.value))
        return
    wire.save_theory(theory, output, format=None if to is None else to.value)
    if as_json:
        streams.say_json(
            {
                "input": streams.name_of(file),
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
