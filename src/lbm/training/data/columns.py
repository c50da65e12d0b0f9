"""One column of a table: what it holds, where to cut it, and the truth of its atoms."""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, nextafter
from numbers import Real
from reprlib import repr as shown
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlogy

from lbm.arrays import Floats, Ints
from lbm.knowledge.formula import atom_name

CANDIDATES: Final = 1024
"""Parts a column is first split into, evenly, where it has more values: supervised cuts fall between them."""

LEAST_GAIN: Final = 1e-9
"""Nats per row that a supervised cut must tell about the classes; less is rounding."""

ODD_SHARE: Final = 0.05
"""The share of cells that are no numbers, up to which a column is taken for one of numbers."""

ODD_SAMPLE: Final = 1000
"""Cells, the first of a column, of which half are numbers if it may be such a column."""

ODD_VALUES: Final = 10
"""Different numbers that such a column has at least."""

_DATES: Final = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)

Kind = Literal["boolean", "threshold", "category", "constant", "empty"]

_NOT_IN_NAMES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, lone surrogates, line ends


@dataclass(frozen=True, slots=True)
class Group:
    """The atoms of one column, which are observed or missing together.

    Attributes
    ----------
    column
        Name of the column.
    kind
        ``boolean``: one atom with the column's own name; ``threshold``: an atom per cut; ``category``: an
        atom per category, at most one of them true; ``constant`` and ``empty``: no atoms.
    cuts
        Of thresholds, ascending: atom i is true where the value is at most ``cuts[i]``.
    categories
        Of categories, by their text, in alphabetical order.
    atoms
        Their names.
    """

    column: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    atoms: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = [self.column] if self.kind == "boolean" else []
        names += [f"{self.column} {_below(cut)}" for cut in self.cuts]
        names += [f"{self.column} = {category}" for category in self.categories]
        if names == [""]:
            raise ValueError("a column of 0 and 1 names an atom, and this one has an empty name: rename it")
        object.__setattr__(self, "atoms", tuple(atom_name(_one_line(name)) for name in names))


# --- names ---------------------------------------------------------------------------------------


def _below(cut: float) -> str:
    """Return ``<= 150``, or ``< 150`` where the cut is the number just below 150, which says the same."""
    text, above = repr(cut).removesuffix(".0"), nextafter(cut, inf) + 0.0
    short = repr(above).removesuffix(".0")
    return f"< {short}" if len(short) + 4 < len(text) else f"<= {text}"


def distinct_atoms(groups: Iterable[Group]) -> list[str]:
    """Return the names of all atoms, each of which must be there once."""
    owner: dict[str, str] = {}
    for group in groups:
        for name in group.atoms:
            if name in owner:
                raise ValueError(
                    f"two atoms would be called {shown(name)}, from the columns {shown(owner[name])} and "
                    f"{shown(group.column)}: rename a column"
                )
            owner[name] = group.column
    return list(owner)


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    refused = {sign for sign in text if unicodedata.category(sign) in _NOT_IN_NAMES}
    return "".join(
        sign.encode("unicode_escape").decode("ascii") if sign in refused else sign for sign in text
    )


# --- what a column holds -------------------------------------------------------------------------


def read_numbers(values: Any, name: str) -> Floats | None:
    """Return a column as numbers, NaN where they are missing; None if something else is in it."""
    kind = getattr(values.dtype, "kind", "O")
    if kind in "biuf":
        with np.errstate(over="ignore"):  # a longer float may become infinite, and is refused below
            x = _as_floats(values)
    elif kind in "Mm":
        raise ValueError(f"column {name!r} holds dates or durations: turn them into numbers or into text")
    elif kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers")
    elif kind in "US" or isinstance(values.dtype, pd.CategoricalDtype):
        return None
    else:
        try:
            codes, distinct = pd.factorize(values)
        except (TypeError, NotImplementedError):  # a list or the like, which nothing can look up
            return None
        if any(map(is_date, distinct)):
            raise ValueError(f"column {name!r} holds dates or durations: turn them into numbers or into text")
        if not all(isinstance(value, (Real, Decimal, np.bool_)) for value in distinct):
            return None
        x = np.array([*map(_float, distinct), np.nan])[codes]
    if np.isinf(x).any():
        raise ValueError(f"column {name!r} holds infinite numbers: make them missing (NaN) or finite")
    return x


def is_date(value: object) -> bool:
    """Return whether a value is a date, a time or a duration, of Python, NumPy or pandas."""
    return isinstance(value, _DATES)


def odd_cells(values: Any) -> tuple[Floats, Ints] | None:
    """Return a column as numbers, NaN where a cell is none, and the places of cells that are something else.

    None: it is no column of numbers with a few such cells.
    """
    kind = values.dtype
    if getattr(kind, "kind", "O") not in "OUST" or isinstance(kind, pd.CategoricalDtype):
        return None
    cells = np.asarray(values, dtype=object)
    if np.isnan(_coerced(cells[:ODD_SAMPLE])).mean() > 0.5:  # words, most of them
        return None
    x, there = _coerced(cells), ~np.asarray(pd.isna(cells))
    odd = np.flatnonzero(there & np.isnan(x))
    few = 0 < len(odd) <= ODD_SHARE * there.sum()
    return (x, odd) if few and len(np.unique(x[~np.isnan(x)])) >= ODD_VALUES else None


def lenient(values: Any) -> Floats:
    """Return a column as numbers, NaN where a cell is none."""
    return _coerced(np.asarray(values, dtype=object))


def _coerced(cells: NDArray[Any]) -> Floats:
    try:
        x = np.array(pd.to_numeric(pd.Series(cells), errors="coerce"), dtype=np.float64)
    except (TypeError, ValueError):  # lists and the like
        return np.full(len(cells), np.nan)
    x[np.isinf(x)] = np.nan
    return x


def _as_floats(values: Any) -> Floats:
    if isinstance(values, np.ndarray):
        return values.astype(np.float64, copy=False)
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def read_labels(values: Any) -> tuple[Ints, list[str]]:
    """Return a column as numbers of categories, -1 where they are missing, and the text of each category."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, distinct = values.codes, values.categories
    else:
        try:
            codes, distinct = pd.factorize(values)
            alike = values.dtype != object or all(type(value) is str for value in distinct)
        except (TypeError, NotImplementedError):
            alike = False
        if not alike:  # True and 1 are equal, and yet differ as text: each cell by its own text
            cells = np.asarray(values, dtype=object)
            named = [None if gone else _text(cell) for cell, gone in zip(cells, pd.isna(cells), strict=True)]
            codes, distinct = pd.factorize(np.array(named, dtype=object))
    texts = [_text(value) for value in distinct]
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return np.array([*(place[text] for text in texts), -1])[codes], list(place)


def _text(value: Any) -> str:
    """Return the text of a category: whole numbers without a point, bytes as the text they encode."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(float(value)) < 1e16:
        return str(int(value))
    return str(value)


# --- which atoms it gets -------------------------------------------------------------------------


def describe(values: Any, name: str, *, thresholds: int, classes: Ints | None, max_categories: int) -> Group:
    """Return the group of a column of any kind; ``classes``, shape (rows,), asks for supervised cuts."""
    x = read_numbers(values, name)
    if x is None:
        return _describe_labels(*read_labels(values), name, max_categories)
    seen = ~np.isnan(x)
    values, counts = np.unique(x[seen], return_counts=True)
    if len(values) < 2:
        return Group(name, "constant" if len(values) else "empty")
    if values.tolist() == [0, 1]:
        return Group(name, "boolean")
    places = np.zeros(0, dtype=np.int64)
    if classes is not None:
        places = _telling_places(x[seen], classes[seen], values, counts, thresholds)
    if not len(places):
        places = _even_places(counts, thresholds)
    cuts = tuple(_cut(float(values[i]), float(values[i + 1])) for i in places)
    return Group(name, "threshold", cuts=cuts)


def _describe_labels(codes: Ints, texts: list[str], name: str, most: int) -> Group:
    counts = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
    found = sorted((-count, text) for count, text in zip(counts, texts, strict=True) if count)
    if len(found) < 2:
        return Group(name, "constant" if found else "empty")
    return Group(name, "category", categories=tuple(sorted(text for _, text in found[:most])))


def _cut(below: float, above: float) -> float:
    """Return the middle of two numbers, moved by up to a hundredth of their distance if that saves digits.

    Whatever is returned tells them apart: below ≤ cut < above.
    """
    middle = below / 2 + above / 2  # their sum may be infinite
    reach = above / 100 - below / 100
    for digits in range(17):
        short = float(f"{middle:.{digits}e}")
        if abs(short - middle) <= reach and below <= short < above:
            return short
    return middle if below <= middle < above else below


def _even_places(counts: Ints, number: int) -> Ints:
    """Return at most ``number`` places that split the rows evenly; place i is after the i-th value.

    ``counts`` says how often each of the ascending values occurs.
    """
    before = np.cumsum(counts)
    rows, before = before[-1], before[:-1]
    if len(before) <= number:
        return np.arange(len(before))
    wanted = np.arange(1, number + 1) * (rows / (number + 1))
    right = np.minimum(np.searchsorted(before, wanted), len(before) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(wanted - before[left] <= before[right] - wanted, left, right)
    return np.unique(nearest)


def _telling_places(x: Floats, classes: Ints, values: Floats, counts: Ints, number: int) -> Ints:
    """Return at most ``number`` places, chosen greedily by what they tell about the classes.

        gain = n H(y) - n₁ H(y | x ≤ cut) - n₂ H(y | x > cut), for the n rows of a part

    The part and place of the largest gain come first; no place is returned that tells nothing.
    """
    places = _even_places(counts, CANDIDATES - 1)
    width = int(classes.max()) + 1
    cells = np.searchsorted(values[places], x) * width + classes
    table = np.bincount(cells, minlength=(len(places) + 1) * width).reshape(-1, width)
    before = np.concatenate([np.zeros((1, width)), np.cumsum(table, axis=0)])
    parts = [_best_split(before, 0, len(table))]
    chosen: list[int] = []
    while len(chosen) < number:
        part = max(parts)
        gain, begin, split, end = part
        if gain <= LEAST_GAIN * len(x):
            break
        chosen.append(split - 1)
        parts.remove(part)
        parts += [_best_split(before, begin, split), _best_split(before, split, end)]
    return places[sorted(chosen)]


def _best_split(before: Floats, begin: int, end: int) -> tuple[float, int, int, int]:
    """Return gain, begin, split and end of the part of a column from ``begin`` to ``end``."""
    if end - begin < 2:
        return 0.0, begin, begin, end
    left = before[begin + 1 : end] - before[begin]
    right = before[end] - before[begin + 1 : end]
    gains = _disorder(before[end] - before[begin]) - _disorder(left) - _disorder(right)
    best = int(np.argmax(gains))
    return float(gains[best]), begin, begin + 1 + best, end


def _disorder(counts: Floats) -> Floats:
    """Return n H = n log n - Σ_c n_c log n_c, over the last axis."""
    total = counts.sum(axis=-1)
    return np.asarray(xlogy(total, total) - xlogy(counts, counts).sum(axis=-1))


# --- the truth of its atoms ----------------------------------------------------------------------


def prepare(values: Any, group: Group) -> Floats | Ints:
    """Return a column as :func:`encode` wants it: numbers, or places of categories (-1: missing)."""
    if group.kind == "category":
        codes, texts = read_labels(values)
        place = {category: i for i, category in enumerate(group.categories)}
        unknown = len(place)
        return np.array([*(place.get(text, unknown) for text in texts), -1])[codes]
    x = read_numbers(values, group.column)
    if x is None:
        raise ValueError(f"column {group.column!r} held numbers in fit, and now holds something else")
    if group.kind == "boolean":
        check_truth(x, group.column)
    return x


def check_truth(x: Floats, name: str) -> None:
    """Refuse numbers other than 0, 1 and NaN."""
    wrong = ~((x == 0) | (x == 1) | np.isnan(x))
    if wrong.any():
        found = x[wrong][0]
        raise ValueError(
            f"column {name!r} held only 0 and 1 in fit, and now holds {found:g}: correct it, or fit on rows "
            "with other numbers too"
        )


def encode(group: Group, values: Floats | Ints, out: NDArray[np.floating[Any]]) -> None:
    """Write the truth of a group's atoms, shape (rows, atoms), into ``out``."""
    if group.kind == "boolean":
        out[:, 0] = values
    elif group.kind == "threshold":
        np.less_equal(values[:, None], np.array(group.cuts), out=out)
        out[np.isnan(values)] = np.nan
    else:
        np.equal(values[:, None], np.arange(len(group.categories)), out=out)
        out[values < 0] = np.nan
