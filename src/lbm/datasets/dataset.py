"""Dataset: a table, its target, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbm.errors import MissingExtra
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory

if TYPE_CHECKING:
    import pandas as pd

Seed = int | np.random.Generator | None


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table with a target, and the knowledge that says when the target is true.

    Attributes
    ----------
    table
        A row per example; by default a boolean column per atom.
    target
        Boolean, a value per row of ``table``, free of noise; its name is the atom it stands for.
    knowledge
        The definition of the target, an equivalence that is true in every row.
    rules
        The same as a list: each is ``cube -> target``, a row is positive where at least one cube is true,
        and none can be left out.
    name
        ``tic_tac_toe``, ``monk(1)`` to ``monk(3)``, or ``krk``.
    description
        What a row is, when the target is true, and who published the problem.
    train
        Numbers of the rows meant for training; all of them where nothing smaller was published.
    train_target
        What a learner is told of those rows; differs from ``target`` where the problem has noise.
    """

    table: pd.DataFrame
    target: pd.Series
    knowledge: Theory
    rules: tuple[Formula, ...]
    name: str
    description: str
    train: NDArray[np.int64]
    train_target: pd.Series

    @property
    def train_table(self) -> pd.DataFrame:
        """The rows meant for training, in the order of ``train_target``."""
        return self.table.iloc[self.train]

    def __repr__(self) -> str:
        rows, columns = self.table.shape
        positive = f"{self.target.name} is true in {int(self.target.sum())}"
        return f"<Dataset {self.name}: {rows} rows, {columns} columns, {positive}, {len(self.rules)} rules>"


def pandas_or_error() -> Any:
    """Return the module pandas, or say how to install it."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("train", "lbm.datasets", "pandas") from None
    return pandas


def whole(
    table: pd.DataFrame,
    truth: NDArray[np.bool_],
    knowledge: Theory,
    rules: Sequence[Formula],
    *,
    target: str,
    name: str,
    description: str,
) -> Dataset:
    """Return a dataset whose rows are all meant for training, without noise; ``truth`` has shape (rows,)."""
    labels = pandas_or_error().Series(truth, name=target)
    return Dataset(
        table, labels, knowledge, tuple(rules), name, description, np.arange(len(labels)), labels.copy()
    )


def attribute_table(
    values: NDArray[np.str_], domains: Mapping[str, Sequence[str]], *, atoms: bool
) -> pd.DataFrame:
    """Return attributes as boolean columns ``'attribute = value'``, or as one category each.

    Parameters
    ----------
    values
        Shape (rows, attributes).
    domains
        The values of every attribute, in the order of the columns.
    atoms
        Whether every value gets a boolean column.
    """
    pandas = pandas_or_error()
    columns = dict(zip(domains, values.T, strict=True))
    if atoms:
        return pandas.DataFrame(
            {f"{name} = {value}": columns[name] == value for name in domains for value in domains[name]}
        )
    return pandas.DataFrame(
        {name: pandas.Categorical(columns[name], categories=list(domains[name])) for name in domains}
    )
