"""Relational problems that come in: what the commands about them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbm.views.commands import streams, tables

if TYPE_CHECKING:
    from lbm.relations.problem import RelationalProblem

Directory = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="A directory with bk.pl, pos.pl, neg.pl, modes.pl; or trains, family, krk: they come with lbm.",
    ),
]
Modes = Annotated[str | None, typer.Option("--modes", metavar="FILE", help="Modes instead of DIR/modes.pl.")]
Negative = Annotated[
    str | None, typer.Option("--neg", metavar="FILE", help="Negative examples instead of DIR/neg.pl.")
]
Folds = Annotated[
    str | None,
    typer.Option(
        "--folds", metavar="FILE", help="Folds instead of DIR/folds.tsv: tab-separated, example and fold."
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", help="Processes; -1 means one for each core.")]


def load(directory: str, *, modes: str | None, negative: str | None, folds: str | None) -> RelationalProblem:
    """Return the problem in a directory, or one that comes with the package, and print its warnings."""
    from lbm.datasets.problems import PROBLEMS, named_problem
    from lbm.relations.problem import load_problem

    if directory in PROBLEMS and not Path(directory).exists() and modes is negative is folds is None:
        streams.remark(f"{directory}: the problem of that name that comes with lbm")
        return named_problem(directory)
    problem = load_problem(directory, modes=modes, negative=negative, folds=folds)
    for warning in problem.warnings:
        streams.warn(warning)
    return problem


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """Give what is called with the number of things done: on a terminal it moves a bar, in a pipe nothing."""
    if not tables.on_terminal():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
