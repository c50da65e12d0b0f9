"""Tables -> visible units: which columns are atoms as they are, and which pass through an encoder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator

from lbm.arrays import Floats
from lbm.knowledge.formula import atoms_of
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import known_as
from lbm.training.data.columns import check_truth, lenient, odd_cells, read_labels, read_numbers
from lbm.training.data.encoder import AtomEncoder, check_distinct, check_table, column_of
from lbm.training.data.names import (
    Comparison,
    check_category,
    comparison,
    known_columns,
    number,
    numeric,
    over_cuts,
    understood,
)

MISSING: Final = 255
"""What stands for a missing value in bytes, beside 0 and 1."""

ENCODE: Final = ("auto", "never")
ODD: Final = ("text", "missing")

FEWEST_CUTS, MOST_CUTS = 4, 16
"""Cuts of a column of numbers."""

ATOMS: Final = 1024
"""Atoms times label atoms that cuts may come to before columns get fewer of them."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How the columns of a table become visible units.

    Attributes
    ----------
    columns
        Names of the table's columns.
    plain
        Numbers of the columns that held 0, 1 and NaN: each is one atom, and these come first.
    encoded
        Numbers of the columns that pass through ``encoder``, whose atoms follow.
    constant, empty
        Names of the columns that were left out, since they held one value or none.
    """

    columns: tuple[str, ...]
    plain: tuple[int, ...]
    encoded: tuple[int, ...]
    encoder: AtomEncoder | None = None
    constant: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def atoms(self) -> tuple[str, ...]:
        """Names of the visible units."""
        mine = tuple(self.columns[i] for i in self.plain)
        return mine if self.encoder is None else (*mine, *self.encoder.get_feature_names_out().tolist())

    @property
    def groups(self) -> list[tuple[list[int], Floats]]:
        """Atoms that hold one fact together, by their numbers, and the patterns they can have.

        Of categories one is true, or none of those that are kept.
        """
        found: list[tuple[list[int], Floats]] = []
        first = len(self.plain)
        for group in self.encoder.groups_ if self.encoder is not None else ():
            width = len(group.atoms)
            if width > 1:
                # Thresholds ascend, so that they are true from some place on.
                ascending = np.tri(width + 1, width, -1)[:, ::-1].copy()
                patterns = np.eye(width + 1, width) if group.kind == "category" else ascending
                found.append((list(range(first, first + width)), patterns))
            first += width
        return found

    @property
    def spans(self) -> Floats:
        """How far apart the bins are that each threshold parts, from centre to centre; 0 for other atoms."""
        found = [np.zeros(len(self.plain))]
        for group in self.encoder.groups_ if self.encoder is not None else ():
            cuts = np.array(group.cuts)
            if len(cuts) < 2:
                found.append(np.zeros(len(group.atoms)))
                continue
            first, last = 1.5 * cuts[0] - 0.5 * cuts[1], 1.5 * cuts[-1] - 0.5 * cuts[-2]
            with np.errstate(over="ignore", invalid="ignore"):
                steps = np.diff(np.concatenate([[first], (cuts[1:] + cuts[:-1]) / 2, [last]]))
            found.append(steps / steps.max() if np.isfinite(steps).all() else np.zeros(len(cuts)))
        return np.concatenate(found)

    def understood(
        self, theory: Theory | None, *, target: str | None = None, classes: Sequence[object] = ()
    ) -> Theory | None:
        """Return a theory in the names of these atoms: see :mod:`lbm.training.data.names`."""
        groups = () if self.encoder is None else self.encoder.columns_
        return understood(theory, self.atoms, groups, target=target, classes=classes)


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Return ``X`` as a DataFrame, an array or a CSR matrix, as scikit-learn checks and remembers it."""
    if isinstance(X, pd.DataFrame):
        check_distinct([str(name) for name in X.columns])
    table = check_table(estimator, X, kind="csr", reset=reset)
    if isinstance(table, pd.DataFrame) and all(
        isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in table.dtypes
    ):
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    if _is_sparse(table):
        table = sparse.csr_array(table, copy=True)
        table.sum_duplicates()
    return table


def _is_sparse(table: Any) -> bool:
    return bool(sparse.issparse(table))


def fit_layout(
    table: Any,
    columns: tuple[str, ...],
    mentioned: Iterable[str],
    *,
    encode: str = "auto",
    drop: bool = True,
    odd: str = "text",
    thresholds: int = 4,
) -> Layout:
    """Return the layout of a table; ``mentioned`` are the atoms of the knowledge.

    Columns of 0, 1 and NaN are atoms as they are. With ``drop`` those that hold one value, or none, are left
    out unless knowledge mentions them: nothing could be learned about them. Other columns pass through an
    :class:`AtomEncoder`, which also gets the thresholds and categories that knowledge mentions; with ``drop``
    a category that no row has, and the column's type does not declare, is an error.

    A column of numbers in which a few cells are something else, such as ``?`` or ``1,100``, is one of
    categories and gets a warning where ``odd`` is ``text``; where it is ``missing`` these cells are missing.
    ``thresholds`` are cuts of a column of numbers, at most.
    """
    if encode not in ENCODE:
        raise ValueError(f"expected encode 'auto' or 'never', got {encode!r}")
    if odd not in ODD:
        raise ValueError(f"expected odd_cells 'text' or 'missing', got {odd!r}")
    table = _tidied(table, columns, odd)
    mentioned = list(mentioned)
    known = {known_as(name): i for i, name in enumerate(columns)}
    named = {known[name] for name in mentioned if name in known}
    said = [comparison(name, known_columns(columns)) for name in mentioned if name not in known]
    compared = {known[known_as(one.column)] for one in said if one is not None}
    plain: list[int] = []
    encoded: list[int] = []
    left: dict[str, list[str]] = {"constant": [], "empty": []}
    for i, kind in enumerate(_kinds(table, columns)):
        if kind == "empty" and i in compared and i not in named and encode != "never":
            encoded.append(i)  # what a rule compares it with says what it would hold
        elif kind == "other":
            if i in named:
                raise ValueError(
                    f"knowledge mentions column {columns[i]!r}, which holds other values than 0, 1 and NaN: "
                    f"mention an atom of it, such as '{columns[i]} <= 30' or '{columns[i]} = red'"
                )
            if encode == "never":
                raise ValueError(
                    f"column {columns[i]!r} holds more than 0, 1 and NaN: encode='auto' makes atoms of it"
                )
            encoded.append(i)
        elif kind in left and drop and i not in named and i not in compared:
            left[kind].append(columns[i])
        else:
            plain.append(i)
    encoder = None
    if encoded:
        encoder = AtomEncoder(thresholds=thresholds, names=[columns[i] for i in encoded])
        encoder = encoder.fit(_columns(table, encoded))
        encoder = extend_encoder(encoder, mentioned, seen=_seen(table, columns, encoded) if drop else None)
        left["constant"] += encoder.constant_
        left["empty"] += encoder.empty_
    return Layout(columns, tuple(plain), tuple(encoded), encoder, *map(tuple, left.values()))


def cuts_for(columns: int, classes: int, *, fine: bool = True) -> int:
    """Return how many cuts a column of numbers gets: fewer where columns and classes are many.

    Without ``fine`` four, which is what free units by themselves can use.

    >>> cuts_for(10, 2), cuts_for(200, 2), cuts_for(64, 10), cuts_for(10, 2, fine=False)
    (16, 5, 4, 4)
    """
    labels = 1 if classes <= 2 else classes
    return max(FEWEST_CUTS, min(MOST_CUTS, ATOMS // max(1, columns * labels))) if fine else FEWEST_CUTS


def layout_of_names(columns: Iterable[str], mentioned: Iterable[str], *, only: bool = False) -> Layout:
    """Return the layout of columns nobody has seen yet: atoms, or what knowledge says about thresholds.

    With ``only``, columns that knowledge does not mention are left out.
    """
    columns = tuple(map(str, columns))
    check_distinct(columns)
    mentioned = list(mentioned)
    place = known_columns(columns)
    said = [comparison(name, place) for name in mentioned if name not in place]
    cut = {one.column for one in said if one is not None} - {place[n] for n in mentioned if n in place}
    encoded = [i for i, name in enumerate(columns) if name in cut]
    encoder = None
    if encoded:
        names = [columns[i] for i in encoded]
        encoder = extend_encoder(AtomEncoder(names=names).fit(np.zeros((1, len(names)))), mentioned)
    own = frozenset(place)
    over = [over_cuts(name, own) for name in mentioned if name not in place]
    named = {*mentioned, *atoms_of(*(formula for formula in over if formula is not None))}
    plain = [i for i, name in enumerate(columns) if name not in cut and (not only or known_as(name) in named)]
    return Layout(columns, tuple(plain), tuple(encoded), encoder)


def extend_encoder(
    encoder: AtomEncoder, mentioned: Iterable[str], *, seen: Callable[[str], list[str]] | None = None
) -> AtomEncoder:
    """Return an encoder that also has the thresholds and categories that ``mentioned`` atoms speak of.

    ``seen`` returns the categories of a column there are; others are then an error.
    """
    state = encoder.to_state()
    entries = {entry["name"]: entry for entry in state["columns"]}
    place = known_columns(entries)
    told: dict[str, list[Comparison]] = {}
    for name in mentioned:
        found = None if name in place else comparison(name, place)
        if found is not None:
            told.setdefault(found.column, []).append(found)
    for column, found_here in told.items():
        entry = entries[column]
        kind = entry["kind"]
        if kind in ("constant", "empty"):
            there = [] if seen is None or kind == "empty" else seen(column)
            kind = "threshold" if numeric(found_here) and not any(map(_is_word, there)) else "category"
        if kind == "boolean":
            continue
        entry["kind"] = kind
        if kind == "threshold":
            cuts = {cut for one in found_here for cut in one.cuts()}
            entry["cuts"] = sorted({*entry.get("cuts", ()), *cuts})
        else:
            known = None if seen is None else seen(column) or None
            named = {check_category(one, known) for one in found_here}
            entry["categories"] = sorted({*entry.get("categories", ()), *named})
    return AtomEncoder.from_state(state)


def _is_word(text: str) -> bool:
    return number(text) is None


def _seen(table: Any, columns: Sequence[str], encoded: Sequence[int]) -> Callable[[str], list[str]]:
    """Return what gives the categories of a column: those that occur, and those its type declares."""
    place = {columns[i]: i for i in encoded}

    def categories(column: str) -> list[str]:
        if _is_sparse(table):
            return []
        return read_labels(column_of(table, place[column]))[1]

    return categories


def _tidied(table: Any, columns: Sequence[str], odd: str) -> Any:
    """Return a table in which odd cells of columns of numbers are missing; or warn of them."""
    if _is_sparse(table) or (not isinstance(table, pd.DataFrame) and table.dtype.kind not in "OUS"):
        return table
    for i, name in enumerate(columns):
        found = odd_cells(column_of(table, i))
        if found is None:
            continue
        x, places = found
        cell = np.asarray(column_of(table, i), dtype=object)[places[0]]
        many = "one cell is" if len(places) == 1 else f"{len(places):,} cells are"
        if odd == "missing":
            table = _with_column(table, i, x)
        else:
            warnings.warn(
                f"column {name!r} holds numbers, but {many} something else, such as {str(cell)!r} in row "
                f"{places[0]}: all of it is read as words, each a category; correct it, or give "
                "odd_cells='missing' to read such cells as missing",
                UserWarning,
                stacklevel=4,
            )
    return table


def _with_column(table: Any, i: int, x: Floats) -> Any:
    """Return a table with another column; the given one stays as it is."""
    if isinstance(table, pd.DataFrame):
        table = table.copy(deep=False)
        table.isetitem(i, x)
        return table
    table = table.astype(object)
    table[:, i] = x
    return table


def _numbers_only(table: Any, layout: Layout) -> Any:
    """Return a table in which cells that are no numbers are missing, in columns that held numbers."""
    if _is_sparse(table) or layout.encoder is None:
        return table
    for i, group in zip(layout.encoded, layout.encoder.columns_, strict=True):
        values = column_of(table, i)
        if group.kind == "threshold" and getattr(values.dtype, "kind", "O") not in "biufMm":
            table = _with_column(table, i, lenient(values))
    return table


def read_atoms(
    table: Any,
    layout: Layout,
    *,
    dtype: Any = np.float64,
    strict: Collection[int] = (),
    odd: str = "text",
) -> Any:
    """Return the truth values of the visible units, shape (rows, atoms), NaN where missing.

    A sparse table gives a CSR matrix. A column that held only 0 and 1 when the layout was made may hold other
    numbers now: those above a half count as 1, unless the atom's number is among ``strict``. With ``odd``
    ``missing``, cells that are no numbers are missing in columns that held numbers.
    """
    table = _numbers_only(table, layout) if odd == "missing" else table
    names = [layout.columns[i] for i in layout.plain]
    plain = _truths(_columns(table, layout.plain), names, strict)
    parts = [plain]
    if layout.encoder is not None:
        parts.append(layout.encoder.transform(_columns(table, layout.encoded)))
    if _is_sparse(plain):
        return sparse.csr_array(sparse.hstack(parts, format="csr", dtype=dtype))
    return np.concatenate(parts, axis=1, dtype=dtype) if len(parts) > 1 else plain.astype(dtype, copy=False)


def _columns(table: Any, numbers: Sequence[int]) -> Any:
    """Return columns without names of their own: an encoder has them, and would compare them again."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, list(numbers)].set_axis(range(len(numbers)), axis=1)
    everything = len(numbers) == table.shape[1]
    return table if everything else table[:, list(numbers)]


def _truths(table: Any, names: list[str], strict: Collection[int]) -> Any:
    """Return columns of 0, 1 and NaN as numbers."""
    if isinstance(table, pd.DataFrame):
        found = np.empty(table.shape)
        for i, name in enumerate(names):
            values = read_numbers(column_of(table, i), name)
            if values is None:
                raise ValueError(f"column {name!r} held only 0 and 1 in fit, and now holds something else")
            found[:, i] = values
        table = found
    if table.dtype == object:
        table = table.astype(np.float64)
    values = table.data if _is_sparse(table) else table
    if ((values == 0) | (values == 1) | np.isnan(values)).all():
        return table
    for i, name in enumerate(names):
        column = table[:, [i]].toarray()[:, 0] if _is_sparse(table) else table[:, i]
        read_numbers(column, name)  # refuses infinite ones
        if i in strict:
            check_truth(column.astype(np.float64), name)
    cut = np.where(np.isnan(values), values, values > 0.5)
    return (
        sparse.csr_array((cut, table.indices, table.indptr), shape=table.shape) if _is_sparse(table) else cut
    )


def _kinds(table: Any, columns: Sequence[str]) -> list[str]:
    """Return what each column holds: ``atom``, ``constant`` (0 or 1 only), ``empty``, or ``other``."""
    if _is_sparse(table):
        return _sparse_kinds(table, columns)
    kinds = []
    for i, name in enumerate(columns):
        values = read_numbers(column_of(table, i), name)
        if values is None:
            kinds.append("other")
            continue
        zeros, ones, gone = (int(part.sum()) for part in (values == 0, values == 1, np.isnan(values)))
        kinds.append(_kind(len(values), zeros, ones, gone))
    return kinds


def _sparse_kinds(table: sparse.csr_array, columns: Sequence[str]) -> list[str]:
    if np.isinf(table.data).any():
        column = int(table.indices[np.isinf(table.data)][0])
        raise ValueError(
            f"column {columns[column]!r} holds infinite numbers: make them missing (NaN) or finite"
        )
    rows, width = table.shape
    zeros, ones, gone, stored = (
        np.bincount(table.indices[part], minlength=width).tolist()
        for part in (table.data == 0, table.data == 1, np.isnan(table.data), slice(None))
    )
    return [_kind(rows, rows - stored[i] + zeros[i], ones[i], gone[i]) for i in range(width)]


def _kind(rows: int, zeros: int, ones: int, gone: int) -> str:
    if gone == rows:
        return "empty"
    if zeros + ones + gone < rows:
        return "other"
    return "atom" if zeros and ones else "constant"
