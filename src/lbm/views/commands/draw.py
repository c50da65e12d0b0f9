"""``lbm draw``: what does this machine look like?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from lbm.views.commands import learning, shared

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine
    from lbm.training.learners.classifier import LBMClassifier


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
    machine is drawn as it is; options that say how to translate are for theories. Of a trained model its
    rules are drawn, what became of those it was given and those that stand for it, and its strongest units.

    With --json: output, visible, hidden, definitional (numbers of units), summary (true or false).
    """
    from lbm.views import plots

    plots.check_picture(output)
    found = None if file == "-" else _saved(file)
    if found is None:
        theory = reading.theory(file)
        found = translation.machine(theory)
    plots.draw(found, output, warn=shared.warn)
    parameters = getattr(found, "parameters", None)  # of a trained model
    machine: Machine = found if parameters is None else parameters().machine
    if as_json:
        shared.say_json(
            {
                "output": output,
                "visible": len(machine.atoms),
                "hidden": machine.hidden,
                "definitional": len(machine.definitions),
                "summary": found is not machine or plots.is_large(machine),
            }
        )


def _saved(file: str) -> Machine | LBMClassifier | None:
    """Return the machine or the trained model in a file; None: the file does not look like one."""
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

        return load_model(file)
    from lbm.machine.store import load

    return load(file)
