"""Tables of evidence: what was seen of atoms, a row each time, as people have it and checked.

A table is a pandas DataFrame whose columns are atoms, a matrix with a column for each atom of a theory in
its order, or a mapping of names to lists or arrays of one length. Cells are 0 or 1, True or False; nothing
(nan, None, pandas' NA); or a probability, which is soft evidence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, Final, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Floats
from lbm.errors import EvidenceError, UnknownAtom
from lbm.knowledge.formula import Formula, atom, conjunction
from lbm.knowledge.theory import Theory
from lbm.reasoning.exact.apart import Component
from lbm.reasoning.exact.form import EvidenceRows
from lbm.reasoning.exact.variables import groups_of

WANTED: Final = "expected 0, 1, nothing (nan) or a probability"
"""What a cell may be, as errors say it."""


class Frame(Protocol):
    """A table with named columns: a DataFrame of pandas."""

    @property
    def columns(self) -> Any:
        """The names."""

    def to_numpy(self) -> Any:
        """Return the values alone."""


Column: TypeAlias = Sequence[float | None] | NDArray[Any]
"""What rows say of one atom: 0 or 1, False or True; nan or None for nothing; or a probability."""

Table: TypeAlias = Frame | NDArray[Any] | Mapping[str, Column]
"""Rows of evidence: columns are atoms; a matrix has one for each atom, in the theory's order."""


def is_table(given: Any) -> TypeGuard[Table]:
    """Return whether evidence comes in rows.

    >>> is_table({"a": [0, 1]}), is_table({"a": 1}), is_table("a & b")
    (True, False, False)
    """
    if isinstance(given, np.ndarray) or _is_frame(given):
        return True
    return isinstance(given, Mapping) and any(_is_column(values) for values in given.values())


def _is_frame(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "to_numpy")


def _is_column(values: Any) -> bool:
    if isinstance(values, str | bytes | Mapping):
        return False
    return getattr(values, "ndim", 0) > 0 or isinstance(values, Sequence)


def rows_of(table: Any, atoms: Sequence[str]) -> EvidenceRows:
    """Return a table of evidence about these atoms, checked: what is wrong is said with its column and row.

    >>> rows_of({"b": [1, None, 0.3]}, ["a", "b"]).values.tolist()
    [[1.0], [nan], [0.3]]
    """
    if isinstance(table, np.ndarray):
        if table.ndim != 2 or table.shape[1] != len(atoms):
            raise EvidenceError(
                f"expected a matrix with a column for each of the {len(atoms)} atoms, in their order, got an "
                f"array of shape {table.shape}: name columns by a mapping or a DataFrame to give fewer"
            )
        return EvidenceRows(tuple(atoms), numbers_of(table, list(atoms)))
    if _is_frame(table):
        names, rows = list(table.columns), len(table)
        _check_names(names, atoms)
        columns = [_values(table[name]) for name in names]
    else:
        names = list(table)
        _check_names(names, atoms)
        columns = []
        for name, values in table.items():
            if not _is_column(values) or np.ndim(column := _values(values)) != 1:
                raise EvidenceError(
                    f"expected a list or an array of one axis, got {_shown(values)}", column=name
                )
            columns.append(column)
        rows = len(columns[0])
        for name, column in zip(names, columns, strict=True):
            if len(column) != rows:
                raise EvidenceError(
                    f"expected {rows} rows, as column {names[0]!r} has, got {len(column)}", column=name
                )
    found = np.empty((rows, len(names)))
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        found[:, i] = numbers_of(column[:, None], [name])[:, 0]
    return EvidenceRows(tuple(names), found)


def groups_said(theory: Theory) -> list[tuple[str, ...]]:
    """Return the groups of a theory: atoms of which its hard formulae say that exactly one is true."""
    hard = tuple([said.formula for said in theory if said.weight is None])
    found = groups_of(Component(theory.atoms, hard, ()))
    taken = {name for names in found for name in names}
    for formula in hard:  # of two atoms only those that one formula calls so
        if formula.kind == "exactly" and formula.label == 1 and len(formula.args) == 2:
            names = tuple([part.label for part in formula.args if part.kind == "atom"])
            if len(set(names)) == 2 and taken.isdisjoint(names):
                found.append(names)
                taken.update(names)
    return found


def as_formula(names: Sequence[str], row: Sequence[float]) -> Formula | None:
    """Return a row of hard evidence as a formula; None: it says nothing.

    >>> as_formula(["a", "b", "c"], [1.0, math.nan, 0.0])
    <a & ~c>
    """
    literals = [
        atom(name) if value else ~atom(name)
        for name, value in zip(names, row, strict=True)
        if not math.isnan(value)
    ]
    return conjunction(literals) if literals else None


def _check_names(names: Iterable[Hashable], atoms: Sequence[str]) -> None:
    known, seen = set(atoms), set()
    for name in names:
        if not isinstance(name, str):
            raise EvidenceError(
                f"expected names of atoms over the columns, got {name!r}: name them, or pass a matrix with a "
                "column for each atom"
            )
        if name not in known:
            raise UnknownAtom(name, atoms)
        if name in seen:
            raise EvidenceError("expected every atom in one column, and this one is in two", column=name)
        seen.add(name)


def _values(column: Any) -> NDArray[Any]:
    """Return a column as an array, of objects where it may hold what is no number."""
    if isinstance(column, np.ndarray):
        return column
    if hasattr(column, "to_numpy"):
        dtype = column.dtype
        return np.asarray(column.to_numpy() if isinstance(dtype, np.dtype) else column.to_numpy(dtype=object))
    if all(type(value) in _PLAIN for value in column):
        with suppress(OverflowError):
            return np.array(column, dtype=float)
    found = np.empty(len(column), object)
    found[:] = column
    return found


_PLAIN: Final = frozenset({int, float, bool})


def numbers_of(table: NDArray[Any], names: Sequence[str], first: int = 0) -> Floats:
    """Return a matrix of cells as numbers, nan for nothing; the number of its first row is ``first``."""
    if isinstance(table, np.ma.MaskedArray):
        hidden, table = np.ma.getmaskarray(table), np.ma.getdata(table).astype(object)
        table[hidden] = None
    if table.dtype.kind in "buif":
        found = table.astype(np.float64)
    else:
        found = np.empty(table.shape)
        for i, row in enumerate(table.tolist()):
            for j, value in enumerate(row):
                found[i, j] = _number(value, names[j], first + i)
    with np.errstate(invalid="ignore"):
        wrong = ~(((found >= 0) & (found <= 1)) | np.isnan(found))
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        raise EvidenceError(f"{WANTED}, got {_shown(table[i, j])}", names[j], first + i)
    return found


def _number(value: Any, name: str, row: int) -> float:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(value, Real | np.bool_) or type(value).__name__ == "Decimal":
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise EvidenceError(f"{WANTED}, got {_shown(value)}", name, row)


def _shown(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + " ..."
