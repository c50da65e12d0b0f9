"""Tables and models that come in: what the commands about training share."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbm.errors import FileError, LbmError, MissingExtra
from lbm.views.commands import streams

if TYPE_CHECKING:
    from lbm.training.data.files import TableFile
    from lbm.training.learners.classifier import LBMClassifier

Table = Annotated[
    str, typer.Argument(metavar="DATA", help="A table: .csv or .parquet, or - for CSV on standard input.")
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model that `lbm train` wrote.")]


def require(purpose: str) -> None:
    """Say which package is missing before anything is read."""
    for package, name in (("torch", "torch"), ("sklearn", "scikit-learn"), ("pandas", "pandas")):
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
        path.write_bytes(streams.read_stdin())
        yield open_table(path, name=streams.STANDARD_INPUT)


def load(model: str) -> LBMClassifier:
    """Return the model in a file."""
    from lbm.training.storage.store import load_model

    return load_model(model)


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what scikit-learn's conventions make a ValueError into an error of ours: bad input, exit 2."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, LbmError):
            raise
        raise FileError(" ".join(str(error).split())) from error


def check_place(output: str) -> None:
    """Refuse a file that could not be written, before hours are spent on what goes there."""
    folder = Path(output).absolute().parent
    if not folder.is_dir():
        raise FileError(f"cannot write {output}: there is no directory {folder}")
    if Path(output).is_dir():
        raise FileError(f"cannot write {output}: it is a directory")


def on_terminal() -> bool:
    """Return whether somebody watches standard error."""
    return sys.stderr is not None and sys.stderr.isatty()
