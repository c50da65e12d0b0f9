"""Tables -> visible units: which columns are atoms as they are, and which pass through an encoder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator

from lbm.arrays import Floats
from lbm.training.boltzmann.knowledge import known_as
from lbm.training.data.columns import Group, check_truth, read_numbers
from lbm.training.data.encoder import AtomEncoder, check_distinct, check_table, column_of

ENCODE: Final = ("auto", "never")


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
        """Atoms that hold one fact together, by their numbers, and the patterns they can have."""
        found: list[tuple[list[int], Floats]] = []
        first = len(self.plain)
        for group in self.encoder.groups_ if self.encoder is not None else ():
            width = len(group.atoms)
            if width > 1:
                # Thresholds ascend, so that they are true from some place on; of categories one is true.
                ascending = np.tri(width + 1, width, -1)[:, ::-1].copy()
                patterns = np.eye(width) if group.kind == "category" else ascending
                found.append((list(range(first, first + width)), patterns))
            first += width
        return found


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
    table: Any, columns: tuple[str, ...], mentioned: Iterable[str], *, encode: str = "auto", drop: bool = True
) -> Layout:
    """Return the layout of a table; ``mentioned`` are the atoms of the knowledge.

    Columns of 0, 1 and NaN are atoms as they are. With ``drop`` those that hold one value, or none, are left
    out unless knowledge mentions them: nothing could be learned about them. Other columns pass through an
    :class:`AtomEncoder`, which also gets the thresholds and categories that knowledge mentions.
    """
    if encode not in ENCODE:
        raise ValueError(f"expected encode 'auto' or 'never', got {encode!r}")
    known = {known_as(name): i for i, name in enumerate(columns)}
    named = {known[name] for name in mentioned if name in known}
    plain: list[int] = []
    encoded: list[int] = []
    left: dict[str, list[str]] = {"constant": [], "empty": []}
    for i, kind in enumerate(_kinds(table, columns)):
        if kind == "other":
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
        elif kind in left and drop and i not in named:
            left[kind].append(columns[i])
        else:
            plain.append(i)
    encoder = None
    if encoded:
        encoder = AtomEncoder(names=[columns[i] for i in encoded]).fit(_columns(table, encoded))
        encoder = extend_encoder(encoder, mentioned)
        left["constant"] += encoder.constant_
        left["empty"] += encoder.empty_
    return Layout(columns, tuple(plain), tuple(encoded), encoder, *map(tuple, left.values()))


def layout_of_names(columns: Iterable[str], mentioned: Iterable[str], *, only: bool = False) -> Layout:
    """Return the layout of columns nobody has seen yet: atoms, or what knowledge says about thresholds.

    With ``only``, columns that knowledge does not mention are left out.
    """
    columns = tuple(map(str, columns))
    check_distinct(columns)
    mentioned = list(mentioned)
    cut = {column for column, _, _ in map(split_atom, mentioned) if column is not None} - set(mentioned)
    encoded = [i for i, name in enumerate(columns) if name in cut]
    encoder = None
    if encoded:
        names = [columns[i] for i in encoded]
        encoder = extend_encoder(AtomEncoder(names=names).fit(np.zeros((1, len(names)))), mentioned)
    named = set(mentioned)
    plain = [i for i, name in enumerate(columns) if name not in cut and (not only or known_as(name) in named)]
    return Layout(columns, tuple(plain), tuple(encoded), encoder)


def split_atom(name: str) -> tuple[str | None, str, str]:
    """Return column, relation and value of an atom such as ``age <= 30``; column None: it is no such atom."""
    for relation in (" <= ", " = "):
        column, found, value = name.rpartition(relation)
        if found and column and value:
            return column, relation.strip(), value
    return None, "", ""


def extend_encoder(encoder: AtomEncoder, mentioned: Iterable[str]) -> AtomEncoder:
    """Return an encoder that also has the thresholds and categories that ``mentioned`` atoms speak of."""
    state = encoder.to_state()
    entries = {entry["name"]: entry for entry in state["columns"]}
    for name in mentioned:
        column, relation, value = split_atom(name)
        if column not in entries:
            continue
        entry = entries[column]
        bare = entry["kind"] in ("constant", "empty")
        if relation == "<=" and (bare or entry["kind"] == "threshold"):
            try:
                cut = float(value)
            except ValueError:
                continue
            if np.isfinite(cut) and Group(entry["name"], "threshold", cuts=(cut,)).atoms == (name,):
                entry["kind"] = "threshold"
                entry["cuts"] = sorted({*entry.get("cuts", ()), cut})
        elif relation == "=" and (bare or entry["kind"] == "category"):
            entry["kind"] = "category"
            entry["categories"] = sorted({*entry.get("categories", ()), value})
    return AtomEncoder.from_state(state)


def read_atoms(table: Any, layout: Layout, *, dtype: Any = np.float64, strict: Collection[int] = ()) -> Any:
    """Return the truth values of the visible units, shape (rows, atoms), NaN where missing.

    A sparse table gives a CSR matrix. A column that held only 0 and 1 when the layout was made may hold other
    numbers now: those above a half count as 1, unless the atom's number is among ``strict``.
    """
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
