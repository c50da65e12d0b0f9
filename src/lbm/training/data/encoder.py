"""Real tables -> named atoms: ``'age <= 30'``, ``'colour = red'``, each true, false or unobserved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from numbers import Integral
from reprlib import repr as shown
from sys import float_info
from typing import Any, Final, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from lbm.arrays import Floats, slices
from lbm.training.data.columns import (
    Group,
    Kind,
    check_truth,
    describe,
    distinct_atoms,
    encode,
    prepare,
    read_numbers,
)
from lbm.training.data.files import repeated

ROWS: Final = 4096
"""Rows written at once, so that what is being written stays in the cache."""

_PARAMETERS: Final = ("thresholds", "method", "max_categories", "names", "dtype")
_LISTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "boolean": (),
    "threshold": ("cuts",),
    "category": ("categories",),
    "constant": (),
    "empty": (),
}
"""What a column of each kind has beside its name."""


class TableEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator that takes tables with gaps and words, and sparse matrices."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = tags.input_tags
        given.allow_nan = given.sparse = given.string = given.categorical = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class AtomEncoder(TransformerMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Turn the columns of a table into atoms, as a scikit-learn transformer.

    * Numbers become thresholds, ``'age <= 30'``. A cut lies midway between two values that occur, give or
      take a hundredth of their distance where that saves digits. What a name says is exactly what is
      compared, in float64.
    * Truth values, and numbers that are only 0 and 1, stay one atom with the column's own name. Another
      number there in ``transform`` is an error.
    * Text, categories and all else become one atom per category, ``'colour = red'``. Categories are told
      apart by their text, so 1, 1.0 and ``'1'`` are one. A category not seen in ``fit``, or not among the
      ``max_categories`` most frequent, makes every atom of its column false. Signs that no name may hold,
      such as line ends, are written as Python writes them, ``\n``.
    * A missing value (NaN, None, ``pd.NA``) is NaN in every atom of its column.
    * A column with one value, or with none, has no atoms: see ``constant_`` and ``empty_``.
    * Infinite numbers, dates, repeated names of columns and two atoms of one name are errors.

    A sparse matrix gives a sparse matrix, encoded as its dense form would be: a column of 0 and 1 keeps its
    entries, while a threshold from 0 up is true, and stored, wherever nothing was stored.

    Parameters
    ----------
    thresholds
        Cuts per column of numbers, at most; a column of few values is cut between all of them.
    method
        ``quantile``: cuts that split the rows evenly. ``supervised``: cuts chosen one after the other, each
        the one that tells most about the classes ``y``; where none tells anything, and without ``y``, as
        ``quantile``.
    max_categories
        Atoms per column of categories, at most: the most frequent ones are kept.
    names
        Names of the columns of an array; by default ``x0``, ``x1``, ... A DataFrame brings its own.
    dtype
        Of the output: ``float64`` or ``float32``.

    Attributes
    ----------
    groups_
        The :class:`~lbm.training.data.columns.Group` of every column that has atoms, in the columns' order.
    columns_
        The same for every column, with those of kind ``constant`` and ``empty``.
    constant_, empty_
        Names of the columns with one value, and of those with none.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 40, None], "colour": ["red", "blue", "red"], "tall": [0, 1, 1]})
    >>> encoder = AtomEncoder().set_output(transform="pandas")
    >>> print(encoder.fit_transform(table))
       age <= 30  colour = blue  colour = red  tall
    0        1.0            0.0           1.0   0.0
    1        0.0            1.0           0.0   1.0
    2        NaN            0.0           1.0   1.0
    """

    thresholds: int = 4
    method: str = "quantile"
    max_categories: int = 50
    names: Sequence[str] | None = None
    dtype: Any = "float64"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the atoms of each column of ``X``, shape (rows, columns); ``supervised`` looks at ``y``."""
        _check_parameters(self)
        table = self._read(X, reset=True)
        classes = None
        if self.method == "supervised" and y is not None:
            check_consistent_length(table, y)
            check_classification_targets(y)
            classes = np.unique(column_or_1d(y), return_inverse=True)[1]
        options: dict[str, Any] = {"thresholds": self.thresholds, "max_categories": self.max_categories}
        columns = []
        for i, name in enumerate(column_names(self, table, self.names)):
            values = _distinguishing(table, i, name) if sparse.issparse(table) else column_of(table, i)
            columns.append(describe(values, name, classes=classes, **options))
        self._keep(tuple(columns))
        return self

    def transform(self, X: Any) -> Any:
        """Return the truth values of the atoms in each row of ``X``: 0, 1, or NaN where they are missing.

        Shape (rows, atoms), an array of ``dtype``; a CSR matrix if ``X`` is sparse.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        parts = [(i, group) for i, group in enumerate(self.columns_) if group.atoms]
        if sparse.issparse(table):
            return _encode_sparse(table, parts, np.dtype(self.dtype))
        values = [prepare(column_of(table, i), group) for i, group in parts]
        out = np.empty((len(table), sum(len(group.atoms) for _, group in parts)), self.dtype)
        for rows in slices(len(out), ROWS):
            first = 0
            for (_, group), column in zip(parts, values, strict=True):
                after = first + len(group.atoms)
                encode(group, column[rows], out[rows, first:after])
                first = after
        return out

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names of the atoms; ``input_features`` renames the columns of an array."""
        check_is_fitted(self)
        groups: Sequence[Group] = self.columns_
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features, "
                    f"{self.n_features_in_}, got {len(given)}"
                )
            if not hasattr(self, "feature_names_in_"):
                pairs = zip(groups, given, strict=True)
                groups = [replace(group, column=name) for group, name in pairs]
            elif given != list(self.feature_names_in_):
                raise ValueError("input_features is not equal to feature_names_in_: leave it out")
        return np.array(distinct_atoms(groups), dtype=object)

    def to_state(self) -> dict[str, Any]:
        """Return all that was fitted as a dict which JSON can hold; :meth:`from_state` reads it."""
        check_is_fitted(self)
        parameters = {
            "thresholds": int(self.thresholds),
            "method": str(self.method),
            "max_categories": int(self.max_categories),
            "names": None if self.names is None else [str(name) for name in self.names],
            "dtype": np.dtype(self.dtype).name,
        }
        columns = [
            {"name": group.column, "kind": group.kind}
            | {field: list(getattr(group, field)) for field in _LISTS[group.kind]}
            for group in self.columns_
        ]
        return {"parameters": parameters, "named": hasattr(self, "feature_names_in_"), "columns": columns}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the fitted encoder that :meth:`to_state` described; every part of ``state`` is checked."""
        _check_keys(state, ("parameters", "named", "columns"), "an encoder's state")
        parameters, named, entries = state["parameters"], state["named"], state["columns"]
        _check_keys(parameters, _PARAMETERS, "an encoder's parameters")
        encoder = cls(**parameters)
        _check_parameters(encoder)
        if not isinstance(named, bool):
            raise ValueError(f"expected true or false for 'named', got {shown(named)}")
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"expected a list of columns, at least one, got {shown(entries)}")
        columns = tuple(_read_entry(entry) for entry in entries)
        names = [group.column for group in columns]
        _check_distinct(names)
        encoder._keep(columns)
        encoder.n_features_in_ = len(names)
        if named:
            encoder.feature_names_in_ = np.array(names, dtype=object)
        return encoder

    def _keep(self, columns: tuple[Group, ...]) -> None:
        distinct_atoms(columns)
        self.columns_ = columns
        self.groups_ = tuple(group for group in columns if group.atoms)
        self.constant_ = tuple(group.column for group in columns if group.kind == "constant")
        self.empty_ = tuple(group.column for group in columns if group.kind == "empty")

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Return ``X`` as a DataFrame, an array or a CSC matrix; size and names are checked on the way."""
        if isinstance(X, np.ndarray) and X.dtype.names is not None and X.ndim == 1:
            X = pd.DataFrame({name: X[name] for name in X.dtype.names})
        if isinstance(X, pd.DataFrame):
            _check_distinct(list(X.columns))
        table = check_table(self, X, kind="csc", reset=reset)
        return _canonical(table) if sparse.issparse(table) else table


# --- columns of tables ---------------------------------------------------------------------------


def check_table(estimator: BaseEstimator, X: Any, *, kind: str, reset: bool) -> Any:
    """Return ``X`` as a DataFrame, an array or a sparse matrix of a kind; size and names are remembered."""
    options = {"accept_sparse": kind, "dtype": None, "ensure_all_finite": False, "estimator": estimator}
    if isinstance(X, pd.DataFrame):
        if 0 in X.shape:
            check_array(np.empty(X.shape), **options)  # which says so in scikit-learn's words
        table = X
    else:
        table = check_array(X, **options)
        if not hasattr(X, "dtype") and table.dtype.kind == "U":  # rows that mix numbers and words
            table = check_array(X, **(options | {"dtype": object}))
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return table


def column_names(estimator: BaseEstimator, table: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of a table's columns: its own, else ``names``, else x0, x1, ..."""
    own = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{i}" for i in range(table.shape[1])) if own is None else tuple(map(str, own))
    if len(names) != table.shape[1]:
        raise ValueError(f"expected as many names as columns, {table.shape[1]}, got {len(names)}")
    check_distinct(list(names))
    if own is not None and list(names) != list(own):
        raise ValueError("names= is for arrays, and this table brings other names: rename its columns")
    return tuple(map(str, names))


def column_of(table: Any, i: int) -> Any:
    """Return one column as an array of NumPy or of pandas."""
    if not isinstance(table, pd.DataFrame):
        return table[:, i]
    column = table.iloc[:, i]
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _canonical(table: Any) -> Any:
    """Return a sparse matrix in which no entry is stored in parts; the given one stays as it is."""
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _distinguishing(table: Any, i: int, name: str) -> Floats:
    """Return a column of a sparse matrix; of one with 0 and 1 only, no more than each value that occurs."""
    stored = _stored(table, i, name)
    values = stored if len(stored) == table.shape[0] else np.append(stored, 0.0)
    return values if np.isin(values[~np.isnan(values)], (0, 1)).all() else _dense(table, i, name)


def _encode_sparse(table: Any, parts: list[tuple[int, Group]], dtype: np.dtype[Any]) -> Any:
    make = sparse.csc_array if isinstance(table, sparse.sparray) else sparse.csc_matrix
    pieces = [make((table.shape[0], 0), dtype=dtype)]
    for boolean, run in groupby(parts, key=lambda part: part[1].kind == "boolean"):
        if boolean:
            members = list(run)
            for i, group in members:
                check_truth(_stored(table, i, group.column), group.column)
            pieces.append(table[:, [i for i, _ in members]].astype(dtype))
            continue
        for i, group in run:
            block = np.empty((table.shape[0], len(group.atoms)), dtype)
            encode(group, prepare(_dense(table, i, group.column), group), block)
            pieces.append(make(block))
    return sparse.hstack(pieces, format="csr", dtype=dtype)


def _stored(table: Any, i: int, name: str) -> Floats:
    stored = read_numbers(table.data[table.indptr[i] : table.indptr[i + 1]], name)
    assert stored is not None  # SciPy holds nothing but numbers
    return stored


def _dense(table: Any, i: int, name: str) -> Floats:
    x = np.zeros(table.shape[0])
    x[table.indices[table.indptr[i] : table.indptr[i + 1]]] = _stored(table, i, name)
    return x


# --- checks --------------------------------------------------------------------------------------


def _check_parameters(encoder: AtomEncoder) -> None:
    method, names, dtype = encoder.method, encoder.names, encoder.dtype
    for name in ("thresholds", "max_categories"):
        value: Any = getattr(encoder, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1 up, got {shown(value)}")
    if not isinstance(method, str) or method not in ("quantile", "supervised"):
        raise ValueError(f"method must be 'quantile' or 'supervised', got {shown(method)}")
    named = np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else dtype
    if not isinstance(named, str) or named not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {shown(dtype)}")
    if names is not None:
        several = isinstance(names, (Sequence, np.ndarray, pd.Index)) and not isinstance(names, (str, bytes))
        if not several or not all(isinstance(name, str) for name in names):
            raise ValueError(f"names must be a list of texts, one for each column, got {shown(names)}")
        _check_distinct(list(names))


def check_distinct(names: Sequence[Any]) -> None:
    """Refuse a table in which two columns have one name."""
    if twice := repeated(names):
        raise ValueError(
            f"every column needs its own name, and two are called {twice[0]!r}: rename one of them"
        )


def _check_distinct(names: list[Any]) -> None:
    if twice := repeated(names):
        raise ValueError(
            f"expected every column to have its own name, got {shown(twice[0])} twice: rename one"
        )


def _check_keys(given: Any, expected: Sequence[str], what: str) -> None:
    if not isinstance(given, Mapping) or set(given) != set(expected):
        found = sorted(map(str, given)) if isinstance(given, Mapping) else given
        raise ValueError(f"expected {what} with {', '.join(expected)}, got {shown(found)}")


def _read_entry(entry: Any) -> Group:
    """Return the group that one entry of a state describes."""
    kind: Any = entry.get("kind") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str) or kind not in _LISTS:
        raise ValueError(f"expected a column with one of the kinds {', '.join(_LISTS)}, got {shown(entry)}")
    kind = cast(Kind, kind)
    _check_keys(entry, ("name", "kind", *_LISTS[kind]), f"a column of kind {kind}")
    name, cuts, categories = entry["name"], entry.get("cuts", []), entry.get("categories", [])
    if not isinstance(name, str):
        raise ValueError(f"expected the name of a column, got {shown(name)}")
    if kind == "threshold":
        plain = isinstance(cuts, list) and all(type(cut) in (int, float) for cut in cuts)
        if not plain or not cuts or not all(abs(cut) <= float_info.max for cut in cuts):
            raise ValueError(f"expected finite cuts of column {shown(name)}, got {shown(cuts)}")
        cuts = [float(cut) for cut in cuts]
        if not all(low < high for low, high in pairwise(cuts)):
            raise ValueError(f"expected ascending cuts of column {shown(name)}, got {shown(cuts)}")
    if kind == "category":
        plain = isinstance(categories, list) and all(isinstance(text, str) for text in categories)
        if not plain or not categories or len(set(categories)) < len(categories):
            raise ValueError(f"expected distinct categories of column {shown(name)}, got {shown(categories)}")
    return Group(name, kind, cuts=tuple(cuts), categories=tuple(categories))
