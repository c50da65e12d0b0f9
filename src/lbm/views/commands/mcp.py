"""``lbm mcp``: the questions as tools for assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from lbm.errors import FileError
from lbm.views.commands import shared

Models = Annotated[
    list[str] | None,
    Option(
        "--model",
        metavar="NAME=FILE",
        help="A trained model that may be asked, and its name; may be given more than once.",
    ),
]
Workers = Annotated[int, Option("--workers", min=1, max=64, help="Questions that are answered at a time.")]
Most = Annotated[
    float, Option("--seconds", callback=shared.positive, help="The most that one question may take.")
]


def serve_assistants(*, model: Models = None, workers: Workers = 1, seconds: Most = 60.0) -> None:
    """Answer assistants by the Model Context Protocol, on standard input and output, until input closes.

    Tools: check, ask, entails, best, models, count, explain, predict. Theories, queries and rows come as
    text; no file is read but the models named here, and none is written. Each question has a process for
    itself, which may take LBM_MEMORY bytes and is killed when its time is over.
    """
    from lbm.views.studio.assistants import run

    run(models=named_models(model or ()), workers=workers, most=seconds)


def named_models(said: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Return the files of models by name; without a name a model is called as its file, without ending.

    >>> named_models(["boards=models/b.lbm1"])
    Traceback (most recent call last):
    lbm.errors.FileError: cannot read models/b.lbm1: there is no such file
    """
    found: dict[str, str] = {}
    for each in said:
        name, equals, file = each.partition("=")
        if not equals or "/" in name:
            name, file = Path(each).stem, each
        if not name or not file:
            raise typer.BadParameter(f"expected NAME=FILE, got {each!r}")
        if name in found:
            raise typer.BadParameter(f"two models are called {name!r}: give one another name")
        if not Path(file).is_file():
            raise FileError(f"cannot read {file}: there is no such file")
        found[name] = str(Path(file).absolute())
    return found
