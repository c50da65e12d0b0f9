"""For tests of estimators: which of scikit-learn's checks are expected to fail, and why."""

from __future__ import annotations

from typing import Final

_BATCHES = (
    "training takes rows in batches of a random order, and puts some aside: a row twice and a row of weight "
    "2 cost the same, but are met at other moments"
)

EXPECTED_FAILED_CHECKS: Final[dict[str, dict[str, str]]] = {
    "LBMClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _BATCHES,
        "check_sample_weight_equivalence_on_sparse_data": _BATCHES,
    },
    "LogicalRBM": {},
    "AtomEncoder": {},
}
"""By the name of the estimator: names of checks with reasons, two names in all."""
