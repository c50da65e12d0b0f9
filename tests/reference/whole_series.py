"""Estimates from the whole series of chains, checked: what those of sums over blocks are compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bools
from lbm.reasoning.sampling.diagnostics import Estimate, estimate_sums, judged


def estimate(true: ArrayLike, valid: ArrayLike, *, also: ArrayLike | None = None) -> Estimate:
    """Return the probability of a query among the valid states of chains, and how sure it is.

        p = Σ true·valid / Σ valid,    z = valid·(true - p)/mean(valid),    SE(p)² = var(z)/ESS(z)

    z is the series whose mean is the error of the ratio p to first order. The effective size is
    p(1 - p)/SE², at most the number of valid states. Where all valid states agree, z says nothing: then the
    least effective size among the other series, times the share of valid states, takes its place, and if
    no other series varies the estimate has no effective size and is not converged.

    Parameters
    ----------
    true, valid
        Shape (chains, draws): whether the query holds in each state, and whether the state keeps every hard
        formula and the evidence. Other states are discarded.
    also
        Shape (series, chains, draws): other quantities of the same states, such as the score or single atoms.
        They count towards convergence; one that never varies is skipped.
    """
    return estimates(np.asarray(true)[None], valid, also=also)[0]


def estimates(true: ArrayLike, valid: ArrayLike, *, also: ArrayLike | None = None) -> list[Estimate]:
    """Return :func:`estimate` for each of several queries, shape (queries, chains, draws).

    The other series are looked at once for all of them.
    """
    checked = [_checked(query, valid, also) for query in np.asarray(true)]
    if not checked:
        return []
    beside = judged(checked[0][2])
    return [estimate_sums(truth & keeps, keeps, beside) for truth, keeps, _ in checked]


def _checked(
    true: ArrayLike, valid: ArrayLike, also: ArrayLike | None
) -> tuple[Bools, Bools, NDArray[np.generic]]:
    truth, keeps = np.asarray(true), np.asarray(valid)
    for name, values in (("true", truth), ("valid", keeps)):
        if values.dtype != np.bool_ or values.ndim != 2:
            raise ValueError(
                f"expected {name} as truth values of shape (chains, draws), "
                f"got {values.dtype} of shape {values.shape}"
            )
    if truth.shape != keeps.shape:
        raise ValueError(f"expected true and valid of one shape, got {truth.shape} and {keeps.shape}")
    others = np.zeros((0, *truth.shape)) if also is None else np.asarray(also)
    if others.ndim != 3 or others.shape[1:] != truth.shape:
        raise ValueError(
            f"expected the other series in shape (series, {truth.shape[0]}, {truth.shape[1]}), "
            f"got {others.shape}: a single one needs a leading axis"
        )
    return truth, keeps, others
