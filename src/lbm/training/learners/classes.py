"""Classes of rows as they are given: what is missing, a date or a quantity is one clear line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
)

from lbm.arrays import Floats
from lbm.training.data.columns import is_date
from lbm.training.data.examples import check_few

DEFAULT_WEIGHT: Final = 1.0
"""What ``default=True`` weighs: less than one rule at the usual confidence."""


def read_classes(
    y: Any, sample_weight: Any, table: Any, *, known: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Return classes of rows, the distinct ones, and weights, all checked.

    With ``known``, classes that are not among these are an error.
    """
    if y is None:
        raise ValueError("LBMClassifier requires y to be passed, but the target y is None")
    check_consistent_length(table, y)
    y = column_or_1d(_plain(y), warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    _check_cells(y)
    try:
        kinds = np.unique(y)
    except TypeError:
        raise ValueError("classes must be comparable: all numbers or all text, and these are not") from None
    if known is None and (kinds.dtype.kind in "iu" or (kinds.dtype.kind == "f" and not (kinds % 1).any())):
        check_few(kinds, len(y))
    check_classification_targets(y)
    if known is not None:
        strange = np.setdiff1d(kinds, known)
        if len(strange):
            raise ValueError(f"y holds {strange[0]!r}, which is not among the classes {known.tolist()}")
    weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    return y, kinds, weights


def target_name(target: str | None, y: Any) -> str:
    """Return the name of the label atom: as given, else that of ``y``, else ``y``."""
    if target is not None:
        return target
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "y"


def label_bias(default: bool | float | Mapping[Any, float] | None, classes: NDArray[Any]) -> Floats:
    """Return where the bias of the label atoms begins, shape (labels,), for a closed-world preference."""
    two = len(classes) == 2
    bias = np.zeros(1 if two else len(classes))
    if default is None or default is False:
        return bias
    if isinstance(default, Mapping):
        worth = np.zeros(len(classes))
        for kind, weight in default.items():
            found = np.flatnonzero(classes == kind)
            if not len(found):
                raise ValueError(
                    f"default= names {kind!r}, which is not among the classes {classes.tolist()}"
                )
            worth[found[0]] = weight
        return worth[1:] - worth[:1] if two else worth
    if not two:
        raise ValueError(
            f"default={default!r} is for two classes, got {len(classes)}: "
            "give a dict such as {'none': 1.0} that says which class is preferred, and how much"
        )
    bias[0] = -(DEFAULT_WEIGHT if default is True else float(default))
    return bias


def _plain(y: Any) -> Any:
    """Return nullable truth values and numbers as those of NumPy, of the same kind; others as they are."""
    kind = getattr(y, "dtype", None)
    if isinstance(kind, pd.api.extensions.ExtensionDtype) and kind.kind in "biuf" and kind.name != "category":
        gone = pd.isna(y)
        if gone.any():
            _refuse_gaps(np.asarray(gone))
        return np.asarray(y.to_numpy(dtype=getattr(kind, "numpy_dtype", None)))
    if isinstance(kind, (pd.PeriodDtype, pd.IntervalDtype, pd.DatetimeTZDtype)):
        raise ValueError(_DATES if not isinstance(kind, pd.IntervalDtype) else _INTERVALS)
    return y


_DATES: Final = (
    "the target holds dates or durations: make classes of them first, for example y.dt.year > 2000"
)
_INTERVALS: Final = "the target holds intervals: make text of them first, for example y.astype(str)"


def _check_cells(y: NDArray[Any]) -> None:
    """Refuse dates and missing classes."""
    if y.dtype.kind in "mM":
        raise ValueError(_DATES)
    if y.dtype.kind == "O":
        gone = pd.isna(y)
        if gone.any():
            _refuse_gaps(np.asarray(gone))
        if any(map(is_date, y[:1000].tolist())):
            raise ValueError(_DATES)


def _refuse_gaps(gone: NDArray[Any]) -> None:
    rows = np.flatnonzero(gone)
    raise ValueError(
        f"expected a class in every row, and none is there (NaN, None) in {len(rows):,} of {len(gone):,} "
        f"rows, the first of them row {rows[0]}: fill them in, or leave these rows out"
    )
