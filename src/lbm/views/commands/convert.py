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
    *,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
) -> None:
    """Write a theory in another format: .lbm, DIMACS .cnf, .wcnf (newer form) or wcnf-old.

    Models, counts and weights are kept: formulae that are no clauses get definitional variables, and
    comments tell scale and offset where weights had to become whole. A circuit (.nnf or .sdd) is written as
    .nnf. Names such as a.cnf.gz pack what is written.

    With --json: input, output, format, atoms and formulae (their numbers).
    """
    from lbm.knowledge import circuit_files, wire

    if file != "-" and circuit_files.is_circuit(file):
        _convert_circuit(file, output, to, as_json)
        return
    if output is None or output == "-":
        if to is None:
            raise typer.BadParameter("name a format, or a file with -o", param_hint="'--to'")
        if as_json:
            raise typer.BadParameter(
                "the theory itself goes to standard output; name a file with -o", param_hint="'--json'"
            )
        _print(wire.write_theory(reading.theory(file), to))
        return
    theory = reading.theory(file)
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


def _convert_circuit(file: str, output: str | None, to: str | None, as_json: bool) -> None:
    """Write a circuit as .nnf."""
    from lbm.knowledge.circuit_files import nnf_lines, read_circuit, write_nnf
    from lbm.knowledge.packed import bare_name

    if to is not None:
        raise typer.BadParameter("a circuit is written as .nnf and nothing else", param_hint="'--to'")
    if output not in (None, "-") and bare_name(output).suffix.lower() != ".nnf":
        raise FileError(f"cannot write {output}: expected a name that ends in .nnf, as {file} is a circuit")
    circuit = read_circuit(file)
    if output is None or output == "-":
        _print(nnf_lines(circuit))
        return
    write_nnf(circuit, output)
    if as_json:
        facts = {"format": "nnf", "atoms": circuit.variables, "formulae": 1}
        shared.say_json({"input": shared.name_of(file), "output": output, **facts})


def _print(pieces: Iterable[str]) -> None:
    """Write a theory to standard output as the bytes that a file would hold, on every system."""
    if sys.stdout is None:
        raise FileError("cannot write standard output: it is closed")
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()
