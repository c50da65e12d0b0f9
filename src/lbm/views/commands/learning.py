"""Tables, models and relational problems that come in: what the commands about learning share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from lbm.errors import FileError, LbmError, MissingExtra
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.relations.problem import RelationalProblem
    from lbm.training.data.files import TableFile
    from lbm.training.learners.classifier import LBMClassifier

Table = Annotated[
    str, Argument(metavar="DATA", help="A table: .csv or .parquet, or - for CSV on standard input.")
]
Model = Annotated[str, Argument(metavar="MODEL", help="A model that `lbm train` wrote.")]
Hidden = Annotated[int, Option("--hidden", min=0, help="Hidden units in addition to those of the rules.")]
Directory = Annotated[
    str,
    Argument(
        metavar="PROBLEM",
        help="A directory (bk.pl, pos.pl, neg.pl, modes.pl; Popper's bias.pl, exs.pl), the name of Aleph's "
        ".b, .f, .n files, one file; or trains, family, krk: they come with lbm.",
    ),
]
Jobs = Annotated[int, Option("--jobs", help="Processes; -1 means one for each core.")]


def require(purpose: str, *, torch: bool = True) -> None:
    """Say which package is missing before anything is read; what only asks a model needs no ``torch``."""
    wanted = [("torch", "torch")] if torch else []
    for package, name in (*wanted, ("sklearn", "scikit-learn"), ("pandas", "pandas")):
        if find_spec(package) is None:
            raise MissingExtra("train", purpose, name)


@contextmanager
def opened(data: str) -> Iterator[TableFile]:
    """Give the table in a file, or in standard input if it is called ``-``."""
    from lbm.training.data.files import open_table

    if data != "-":
        yield open_table(data)
        return
    with tempfile.TemporaryDirectory() as folder:  # a table is read more than once
        path = Path(folder, "table.csv")
        path.write_bytes(shared.read_stdin())
        yield open_table(path, name=shared.STANDARD_INPUT)


def rows_for(classifier: LBMClassifier, table: TableFile) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows of a table in parts, as a model takes them: the frame, its atoms and its classes."""
    from lbm.training.data.examples import read_rows

    classes = classifier.classes_.tolist()
    return read_rows(
        table,
        classifier.layout_,
        target=classifier.target_,
        classes=classes,
        odd=classifier.odd_cells,
    )


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what scikit-learn's conventions make a ValueError into an error of ours: bad input, exit 2."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, LbmError):
            raise
        raise FileError(" ".join(str(error).split())) from error


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """The options that say where the files of a relational problem are."""

    modes: Annotated[str | None, Option("--modes", metavar="FILE", help="Modes instead of DIR/modes.pl.")] = (
        None
    )
    neg: Annotated[
        str | None, Option("--neg", metavar="FILE", help="Negative examples instead of DIR/neg.pl.")
    ] = None
    folds: Annotated[
        str | None,
        Option(
            "--folds", metavar="FILE", help="Folds instead of DIR/folds.tsv: tab-separated, example and fold."
        ),
    ] = None

    def problem(self, directory: str) -> RelationalProblem:
        """Return the problem in a directory, or one that comes with the package, and print its warnings."""
        from lbm.datasets.problems import PROBLEMS, named_problem
        from lbm.relations.problem import load_problem
        from lbm.relations.sources import names_problem

        if directory in PROBLEMS and not names_problem(directory) and self == ProblemOptions():
            shared.remark(f"{directory}: the problem of that name that comes with lbm")
            return named_problem(directory)
        problem = load_problem(directory, modes=self.modes, negative=self.neg, folds=self.folds)
        for warning in problem.warnings:
            shared.warn(warning)
        return problem

    def background_of(self, directory: str) -> Path:
        """Return the file that holds a problem's background and nothing else."""
        from lbm.relations.sources import background_file

        found = background_file(directory)
        if found is None:
            raise FileError(f"expected a background in a file of its own, found none in {directory}")
        return found
