"""``lbm draw``: what does this machine look like?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from lbm.views.commands import learning, shared

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine


def draw_machine(
    file: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="A theory (.lbm, .cnf, .wcnf, or - for standard input), a saved machine or a trained model.",
        ),
    ],
    output: Annotated[
        str,
        Option("-o", "--output", metavar="OUT", help="The picture: a name that ends in .svg, .png or .pdf."),
    ],
    *,
    translation: shared.MachineOptions,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
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
        theory = reading.theory(file)
        machine = translation.machine(theory)
    plots.draw(machine, output, warn=shared.warn)
    if as_json:
        shared.say_json(
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
        learning.require("drawing a trained model", torch=False)
        from lbm.training.storage.store import load_model

        return load_model(file).parameters().machine
    from lbm.machine.store import load

    return load(file)
