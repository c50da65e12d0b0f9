"""``lbm convert``: what does this theory look like in another format?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from lbm.errors import FileError
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.knowledge.theory import Theory


def convert_theory(
    file: shared.File,
    output: Annotated[
        str | None, Option("-o", "--output", metavar="FILE", help="Where to; - or nothing: standard output.")
    ] = None,
    to: Annotated[
        str | None,
        shared.one_of(
            ("lbm", "cnf", "wcnf", "wcnf-old", "nnf"),
            "--to",
            "The format, where the name of the output does not say it.",
        ),
    ] = None,
    seconds: shared.Seconds = 60.0,
    *,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
) -> None:
    """Write a theory in another format: .lbm, DIMACS .cnf, .wcnf (newer form) or wcnf-old, or .nnf.

    A relational problem, in Aleph's, Popper's or Progol's files, is written as four files into the directory
    that -o names: bk.pl, pos.pl, neg.pl and modes.pl.

    Models, counts and weights are kept: formulae that are no clauses get definitional variables, and
    comments tell scale and offset where weights had to become whole. As .nnf a theory without weights is
    compiled to a circuit, and what is one already (.nnf or .sdd) stays as it is.

    With --json: input, output, format, atoms and formulae (their numbers); of a problem input, output, files,
    positive and negative (their numbers), and warnings.
    """
    from lbm.knowledge import circuit_files, wire
    from lbm.knowledge.packed import write_whole
    from lbm.relations.sources import names_problem

    if file not in ("-", "") and _holds_anything(file) and names_problem(file):
        _convert_problem(file, output, to, as_json=as_json)
        return

    named = file if output is None or output == "-" else output
    if to is None and circuit_files.is_circuit(named) and (named is file or circuit_files.is_nnf(named)):
        to = "nnf"
    if output is None or output == "-":
        if to is None:
            raise typer.BadParameter("name a format, or a file with -o", param_hint="'--to'")
        if as_json:
            raise typer.BadParameter(
                "the theory itself goes to standard output; name a file with -o", param_hint="'--json'"
            )
        theory = reading.theory(file)
        _print(_nnf(theory, seconds) if to == "nnf" else wire.write_theory(theory, to))
        return
    theory = reading.theory(file)
    if to == "nnf":
        write_whole(output, _nnf(theory, seconds))
    else:
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


def _holds_anything(file: str) -> bool:
    """Return whether this is no empty directory, and a name at all: else it is read as a theory would be."""
    try:
        return not Path(file).is_dir() or any(Path(file).iterdir())
    except OSError:
        return False


def _convert_problem(file: str, output: str | None, to: str | None, *, as_json: bool) -> None:
    """Write a relational problem as our four files."""
    from lbm.relations.problem import RelationalProblem
    from lbm.relations.written import save_problem

    if to is not None:
        raise typer.BadParameter("a relational problem is written as four files", param_hint="'--to'")
    if output is None or output == "-":
        raise typer.BadParameter("a relational problem needs a directory to be written to", param_hint="'-o'")
    problem = RelationalProblem.load(file)
    for warning in problem.warnings:
        shared.warn(warning)
    files = save_problem(problem, output)
    counts = {"positive": len(problem.positive), "negative": len(problem.negative)}
    if as_json:
        rest = {"files": files, **counts, "warnings": list(problem.warnings)}
        shared.say_json({"input": file, "output": output, **rest})
    else:
        shared.say(
            f"{output}: {', '.join(files)}; {counts['positive']} positive and {counts['negative']} negative"
        )


def _nnf(theory: Theory, seconds: float) -> Iterator[str]:
    """Return a theory as a circuit, line by line."""
    from lbm.knowledge.circuit_files import nnf_lines
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.exact.joined import circuit_of_theory

    with shared.working("compiling the theory"):
        circuit = circuit_of_theory(theory, Budget.of(seconds))
    return nnf_lines(circuit, atoms=theory.atoms)


def _print(pieces: Iterable[str]) -> None:
    """Write a theory to standard output as the bytes that a file would hold, on every system."""
    if sys.stdout is None:
        raise FileError("cannot write standard output: it is closed")
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()
