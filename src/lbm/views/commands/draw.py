"""``lbm draw``: what does this machine look like?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbm.views.commands import options, streams, tables

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine

Input = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A theory (.lbm, .cnf, .wcnf, or - for standard input), a saved machine or a trained model.",
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="OUT", help="The picture: a name that ends in .svg, .png or .pdf."
    ),
]


def draw_machine(
    file: Input,
    output: Output,
    epsilon: options.Epsilon = 0.5,
    no_merge: options.NoMerge = False,
    method: options.StrictDNF = options.Method.auto,
    budget: options.Budget = 128,
    encoding: options.Encoded = options.Encoding.sdnf,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
) -> None:
    """Draw the network: visible units below, hidden units above with their cubes, weights as edges.

    Past 60 units in a row the picture is a summary: histograms of cube sizes and of weights. A saved
    machine and a trained model are drawn as they are; options that say how to translate are for theories.

    With --json: output, visible, hidden, definitional (numbers of units), summary (true or false).
    """
    from lbm.views import plots

    plots.check_picture(output)
    machine = None if file == "-" else _saved(file)
    if machine is None:
        theory = streams.read_theory(file, lenient=lenient)
        from lbm.machine.translate import translate

        machine = translate(
            theory,
            epsilon=epsilon,
            merge=not no_merge,
            method=method.value,
            budget=budget,
            encoding=encoding.value,
        )
    plots.draw(machine, output, warn=streams.warn)
    if as_json:
        streams.say_json(
            {
                "output": output,
                "visible": len(machine.atoms),
                "hidden": machine.hidden,
                "definitional": len(machine.definitions),
                "summary": plots.is_large(machine),
            }
        )


def _saved(file: str) -> Machine | None:
    """Return the machine in a file, or that of a trained model; None: the file does not look like one."""
    path = Path(file)
    try:
        if not path.is_file():  # a pipe can be read only once
            return None
        with path.open("rb") as stream:
            start = stream.read(9)
    except (OSError, ValueError):  # reading the theory will say what is wrong
        return None
    # A machine begins with the length of its header, in eight bytes; no text has a NUL among these.
    if path.suffix.lower() != ".lbmm" and (start[8:] != b"{" or b"\0" not in start):
        return None
    from lbm.training.storage.kinds import kind_of

    if kind_of(path) == "lbm-model":
        tables.require("drawing a trained model")
        from lbm.training.boltzmann.network import to_machine

        return to_machine(tables.load(file).network_)
    from lbm.machine.store import load

    return load(file)
