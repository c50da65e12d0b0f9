"""Learners that tables are given to: each with its defaults, and four settings to choose from.

Who reads words and gaps by itself gets the table as it is; the others get medians, most frequent words and
one column per category, as a pipeline of scikit-learn makes them. All have one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin


@dataclass(frozen=True)
class Contender:
    """A learner: the package it needs, its settings (the first: defaults), and what makes an estimator."""

    package: str
    settings: tuple[dict[str, Any], ...]
    make: Callable[[dict[str, Any], int], Any]


def _plain(learner: Any, *, scaled: bool = False, dense: bool = True) -> Any:
    """Return a pipeline for a learner that reads only numbers."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    words = make_pipeline(
        FunctionTransformer(_as_words, feature_names_out="one-to-one"),
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=not dense),
    )
    numbers = [SimpleImputer(strategy="median"), *([StandardScaler()] if scaled else [])]
    table = make_column_transformer(
        (make_pipeline(*numbers), make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(table, learner)


def _as_words(frame: Any) -> Any:
    """Return cells as text; those that are missing stay so."""
    import numpy as np

    return frame.astype(object).where(frame.notna(), np.nan).map(lambda v: v if v != v else str(v))


def categorical(frame: Any) -> Any:
    """Return a table whose words are categories, as boosting libraries read them."""
    found = frame.copy()
    for column in found.columns:
        if found[column].dtype.kind not in "biuf":
            found[column] = found[column].astype("category")
    return found


class Categories:
    """A boosted learner that is given words as categories, the same ones in training and afterwards."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, x: Any, y: Any) -> Categories:
        """Train on a table and classes."""
        import numpy as np

        self.classes_, kinds = np.unique(y, return_inverse=True)
        table = categorical(x)
        self.kinds = {column: table[column].dtype for column in table.columns}
        self.learner.fit(table, kinds)
        return self

    def predict_proba(self, x: Any) -> Any:
        """Return probabilities; a category that was not seen counts as missing."""
        found = x.copy()
        for column, kind in self.kinds.items():
            if str(kind) == "category":
                known = found[column].where(found[column].isin(kind.categories), None)
                found[column] = known.astype(kind)
        return self.learner.predict_proba(found)


def _lbm(options: dict[str, Any], seed: int) -> Any:
    import lbm

    return lbm.LBMClassifier(random_state=seed, **options)


def _logistic(options: dict[str, Any], seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _plain(LogisticRegression(max_iter=2000, random_state=seed, **options), scaled=True)


def _forest(options: dict[str, Any], seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return _plain(RandomForestClassifier(random_state=seed, n_jobs=1, **options))


def _histgb(options: dict[str, Any], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    learner = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed, **options)
    return Categories(learner)


def _xgboost(options: dict[str, Any], seed: int) -> Any:
    from xgboost import XGBClassifier

    return Categories(XGBClassifier(enable_categorical=True, random_state=seed, n_jobs=1, **options))


def _lightgbm(options: dict[str, Any], seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return Categories(LGBMClassifier(random_state=seed, n_jobs=1, verbosity=-1, **options))


def _ebm(options: dict[str, Any], seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=seed, n_jobs=1, **options)


def _imodels(name: str) -> Callable[[dict[str, Any], int], Any]:
    def make(options: dict[str, Any], seed: int) -> Any:
        import imodels
        from sklearn.multiclass import OneVsRestClassifier

        kind = getattr(imodels, name)
        learner = kind(**options, random_state=seed)
        return _plain(_Halves(learner, OneVsRestClassifier))

    return make


class _Halves(ClassifierMixin, BaseEstimator):
    """A learner of two classes; of more, one for each against the rest."""

    def __init__(self, learner: Any, several: Any) -> None:
        self.learner, self.several = learner, several

    def fit(self, x: Any, y: Any) -> _Halves:
        import numpy as np

        self.classes_, kinds = np.unique(y, return_inverse=True)
        self.fitted_ = self.learner if len(self.classes_) == 2 else self.several(self.learner)
        self.fitted_.fit(np.asarray(x, dtype=float), kinds)
        return self

    def predict_proba(self, x: Any) -> Any:
        import numpy as np

        return np.asarray(self.fitted_.predict_proba(np.asarray(x, dtype=float)))


CONTENDERS: dict[str, Contender] = {
    "LBM": Contender("lbm", ({}, {"l2": 0.2}, {"l2": 0.0125}, {"hidden": 20}), _lbm),
    "logistic": Contender("sklearn", ({}, {"C": 0.1}, {"C": 10.0}, {"C": 0.01}), _logistic),
    "forest": Contender(
        "sklearn",
        ({}, {"min_samples_leaf": 5}, {"max_features": 0.5}, {"n_estimators": 300, "min_samples_leaf": 2}),
        _forest,
    ),
    "HistGB": Contender(
        "sklearn",
        (
            {},
            {"learning_rate": 0.03},
            {"learning_rate": 0.03, "max_leaf_nodes": 8},
            {"early_stopping": True, "learning_rate": 0.05},
        ),
        _histgb,
    ),
    "XGBoost": Contender(
        "xgboost",
        (
            {},
            {"learning_rate": 0.05, "max_depth": 3},
            {"learning_rate": 0.05, "max_depth": 5},
            {"learning_rate": 0.1, "max_depth": 2},
        ),
        _xgboost,
    ),
    "LightGBM": Contender(
        "lightgbm",
        (
            {},
            {"learning_rate": 0.03},
            {"learning_rate": 0.03, "num_leaves": 8},
            {"learning_rate": 0.1, "num_leaves": 4},
        ),
        _lightgbm,
    ),
    "EBM": Contender(
        "interpret",
        ({}, {"interactions": 0}, {"learning_rate": 0.005}, {"max_bins": 64, "min_samples_leaf": 10}),
        _ebm,
    ),
    "RuleFit": Contender(
        "imodels",
        ({}, {"max_rules": 60}, {"max_rules": 15}, {"tree_size": 3}),
        _imodels("RuleFitClassifier"),
    ),
    "FIGS": Contender(
        "imodels",
        ({}, {"max_rules": 6}, {"max_rules": 24}, {"max_rules": 3}),
        _imodels("FIGSClassifier"),
    ),
}
"""Every learner by its name, ours first."""


def present() -> tuple[list[str], list[str]]:
    """Return the learners that are installed, and those that are not."""
    here = [name for name, one in CONTENDERS.items() if find_spec(one.package) is not None]
    return here, [name for name in CONTENDERS if name not in here]


def rules_of(name: str, fitted: Any) -> int | None:
    """Return how many rules a fitted learner has: terms that are not 0, or leaves; None: it has none."""
    if name == "EBM":
        return len(fitted.term_names_)
    if name not in ("RuleFit", "FIGS"):
        return None
    halves = fitted[-1].fitted_
    each = halves.estimators_ if hasattr(halves, "estimators_") else [halves]
    if name == "FIGS":
        return int(sum(one.complexity_ for one in each))
    total = 0
    for one in each:
        frame = one._get_rules() if hasattr(one, "_get_rules") else None
        if frame is None:
            return None
        total += int((frame["coef"].abs() > 1e-12).sum())
    return total


def quietly(call: Callable[[], Any]) -> Any:
    """Return what a call returns, whatever it would warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()
