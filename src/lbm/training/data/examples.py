"""Rows of files as examples: a class and one byte per truth value.

A million rows of 200 columns take 200 MB here, and 1.6 GB as numbers. Columns that hold more than 0, 1 and
missing values pass through an encoder that is fitted on the first HEAD_ROWS rows of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lbm.arrays import Bytes, Floats, Ints, slices
from lbm.errors import FileError
from lbm.training.data.files import CHUNK_CELLS, TableFile, find_column, reading
from lbm.training.data.table import MISSING, Layout, cuts_for, fit_layout, read_atoms

MAX_CLASSES: Final = 10_000
"""Classes of a model: label atoms by class are a matrix."""


MANY_CLASSES: Final = 30
"""Whole numbers from which on a target with few rows for each of them looks like a quantity."""

ROWS_PER_CLASS: Final = 10
"""Rows for each of that many classes, below which it does."""


def check_few(classes: NDArray[Any], rows: int) -> None:
    """Refuse a target of many different numbers: a quantity, which a classifier cannot tell."""
    numbers = classes.dtype.kind in "iuf"
    if numbers and len(classes) >= MANY_CLASSES and rows < ROWS_PER_CLASS * len(classes):
        raise ValueError(
            f"the target holds {len(classes):,} different numbers in {rows:,} rows, from {classes[0]:g} to "
            f"{classes[-1]:g}, which looks like a quantity: cut it into few classes, such as y > y.median(), "
            "or make text of it, y.astype(str), if the numbers are names"
        )


# --- one byte per value --------------------------------------------------------------------------


def to_bytes(values: NDArray[Any]) -> Bytes | None:
    """Return numbers 0, 1 and NaN as bytes; None: they are others, or no numbers."""
    if values.dtype.kind not in "biuf":
        return None
    ones, zeros = values == 1, values == 0
    found: Bytes = ones.astype(np.uint8)
    if (ones | zeros).all():
        return found
    gone = np.isnan(values)
    found[gone] = MISSING
    return found if (ones | zeros | gone).all() else None


# --- examples to learn from ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Examples:
    """A table with a class for every row, ready for training.

    Attributes
    ----------
    layout
        How its columns become atoms.
    target, classes, kinds
        The column that holds the classes, the classes in order, and the number of each row's, shape (rows,).
    atoms
        Truth values as bytes, shape (rows, atoms).
    """

    layout: Layout
    target: str
    classes: NDArray[Any]
    kinds: Ints
    atoms: Bytes


def read_examples(
    table: TableFile,
    target: str,
    *,
    mentioned: Iterable[str] = (),
    odd: str = "text",
    cuts: Callable[[int, int], int] = cuts_for,
) -> Examples:
    """Return the rows of a file with their classes, which are in the column ``target``.

    ``mentioned`` are the atoms of the knowledge, see :func:`lbm.training.data.table.fit_layout`. Where a file
    has more rows than those that decide what columns are, columns that are constant there are kept. ``odd``
    says what odd cells in columns of numbers are: see :func:`lbm.training.data.table.fit_layout`. ``cuts``
    are those of a column of numbers, by the numbers of columns and classes.
    """
    find_column(table, target)
    columns = tuple(column for column in table.columns if column != target)
    if not columns:
        raise FileError(f"{table.name}: expected columns beside the target {target!r}, found none")
    classes, kinds = _read_target(table, target)
    if table.rows == 1:
        raise FileError(f"{table.name}: expected rows of 2 classes at least to learn from, found 1 row")
    head = table.head(columns)
    whole = len(head) == table.rows
    fine = cuts(len(columns), len(classes))

    def layout_of(rows: pd.DataFrame) -> Layout:
        return fit_layout(rows, columns, mentioned, drop=whole, odd=odd, thresholds=fine)

    layout = reading(table.name, lambda: layout_of(head))
    atoms = np.empty((table.rows, len(layout.atoms)), dtype=np.uint8)
    first = 0
    parts = _pieces(head) if whole else table.chunks(columns, text=text_columns(layout))
    for part in parts:
        if first + len(part) > table.rows:
            break
        with _rows_named(table, first, len(part), None if whole else len(head)):
            atoms[first : first + len(part)] = _read_bytes(part, layout, odd)
        first += len(part)
    if first != table.rows:
        raise FileError(
            f"{table.name}: expected {table.rows:,} rows, found others: was it changed meanwhile?"
        )
    return Examples(layout, target, classes, kinds, atoms)


def _pieces(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    return (frame.iloc[part] for part in slices(len(frame), max(1, CHUNK_CELLS // frame.shape[1])))


def _read_bytes(frame: pd.DataFrame, layout: Layout, odd: str) -> Bytes:
    """Return the atoms of rows as bytes; numbers other than 0 and 1 in a column of these are an error."""
    plain = [to_bytes(frame[layout.columns[i]].to_numpy()) for i in layout.plain]
    parts = [part[:, None] for part in plain if part is not None]
    # The common case, several times as fast.
    if parts and len(parts) == len(plain) and layout.encoder is None:
        return np.concatenate(parts, axis=1)
    atoms: Floats = read_atoms(frame, layout, strict=range(len(layout.plain)), odd=odd)
    found = to_bytes(atoms)
    assert found is not None  # what else could an atom be
    return found


def _read_target(table: TableFile, target: str) -> tuple[NDArray[Any], Ints]:
    """Return the classes in order, and the number of each row's class."""
    column = table.head([target], rows=table.rows)[target]
    codes, found = pd.factorize(column)
    if gone := int((codes < 0).sum()):
        first = int(np.flatnonzero(codes < 0)[0]) + 1
        words = "" if table.parquet else "; in CSV, words such as NA and None count as missing"
        raise FileError(
            f"{table.name}: expected a class in every row, found none in {gone:,}, the first row {first:,}: "
            f"fill in {target!r}, or remove these rows{words}"
        )
    distinct = np.asarray(found)
    if len(distinct) > MAX_CLASSES or (distinct.dtype.kind == "f" and (distinct % 1 != 0).any()):
        raise FileError(
            f"{table.name}: expected classes in {target!r}, found {len(distinct):,} different values such as "
            f"{distinct[0]}: a classifier tells few classes apart"
        )
    plain = all(isinstance(value, (str, bool, int, float)) for value in distinct.tolist())
    if distinct.dtype.kind not in "biufO" or not plain:
        raise FileError(f"{table.name}: expected text or numbers in {target!r}, found {distinct.dtype}")
    try:
        order = np.argsort(distinct, kind="stable")
    except TypeError:
        raise FileError(f"{table.name}: expected all text or all numbers in {target!r}, found both") from None
    reading(table.name, lambda: check_few(distinct[order], table.rows))
    return distinct[order], np.argsort(order)[codes].astype(np.int64)


# --- rows to predict -----------------------------------------------------------------------------


def text_columns(layout: Layout) -> list[str]:
    """Return the columns of categories, which are text whatever a part of a file makes them look like."""
    groups = () if layout.encoder is None else layout.encoder.columns_
    return [group.column for group in groups if group.kind == "category"]


def read_rows(
    table: TableFile, layout: Layout, *, target: str, classes: Sequence[Any], odd: str = "text"
) -> Iterator[tuple[pd.DataFrame, Floats, Ints | None]]:
    """Yield rows of a file as the columns of a layout, their atoms, and the numbers of their classes.

    Columns that the layout does not use may be missing, and others may be there. Classes are None where the
    file does not have the target; one that is not among ``classes``, or missing, has the number -1.
    """
    used = [layout.columns[i] for i in (*layout.plain, *layout.encoded)]
    wanted = [find_column(table, column) for column in used]
    told = [target] if target in table.columns and target not in used else []
    text = text_columns(layout) + (told if isinstance(classes[0], str) else [])
    place = {value: number for number, value in enumerate(classes)}
    first = 0
    for part in table.chunks([*wanted, *told], text=text):
        kinds = None
        if told:
            codes, found = pd.factorize(part[target])
            kinds = np.array([*(place.get(value, -1) for value in found.tolist()), -1], dtype=np.int64)[codes]
        frame = part.reindex(columns=list(layout.columns))
        with _rows_named(table, first, len(part)):
            atoms: Floats = read_atoms(frame, layout, strict=range(len(layout.plain)), odd=odd)
        yield frame, atoms, kinds
        first += len(part)


@contextmanager
def _rows_named(table: TableFile, first: int, rows: int, head: int | None = None) -> Iterator[None]:
    """Let an error about values say which rows of which file it is about."""
    try:
        yield
    except ValueError as error:
        hint = "" if head is None else f"; the first {head:,} rows decide what a column is"
        raise FileError(f"{table.name}, rows {first + 1:,} to {first + rows:,}: {error}{hint}") from None
