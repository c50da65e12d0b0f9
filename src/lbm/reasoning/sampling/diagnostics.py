"""What many chains allow one to say: effective size, R-hat, intervals, and whether to believe them.

Effective size and R-hat are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner, *Rank-normalization,
folding, and localization: an improved R-hat* (Bayesian Analysis, 2021), in the details that ArviZ settled on.
A series of draws has shape (chains, draws); leading axes hold several series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Floats
from lbm.reasoning.answers import Estimate

CHAINS: Final = 4
"""Chains below which an estimate is never called converged."""

R_HAT: Final = 1.01
"""The R-hat that every series must stay below."""

ESS: Final = 400
"""The effective size that every series must exceed."""

KINDS: Final = ("bulk", "mean")
"""What an effective size is about: ranks, which any series has, or the mean of the draws as they are."""


class Beside(NamedTuple):
    """What other series of the same states say, those that vary: their effective sizes and R-hats."""

    sizes: list[float]
    r_hats: list[float]


def judged(others: NDArray[np.generic], together: int = 1) -> Beside:
    """Return what those series say that vary, shape (series, chains, draws)."""
    varying = [series for series in others if series.min() < series.max()]
    sizes = [float(effective_size(series)) for series in varying]
    return Beside(sizes, [float(r_hat(series, together=together)) for series in varying])


def many_estimates(
    hits: Floats, keeps: Floats, draws: int, together: int = 1
) -> tuple[Floats, Floats, Floats]:
    """Return the shares, effective sizes and R-hats of many atoms, from means over halves of chains alone.

        ESS = p(1 - p)·m/var(means),    R² = 1 - 1/n + var(means)/(var(states) - var(means))

    With m halves of n states each; those of R are halves of some chains ``together``, see :func:`r_hat`.
    An atom that never varies has effective size and R-hat nan; where there is a single block, nothing is
    known of how chains move, and all effective sizes are 0.

    Parameters
    ----------
    hits, keeps
        Shapes (atoms, chains, blocks) and (chains, blocks): valid states in which the atom is true, and all
        valid states.
    draws
        States of each chain, valid or not.
    together
        Neighbouring chains that R-hat takes for one.
    """
    half = hits.shape[2] // 2
    if not half or not keeps.sum():
        with np.errstate(invalid="ignore"):
            share = hits.sum(axis=(1, 2)) / keeps.sum()
        return share, np.zeros(len(hits)), np.full(len(hits), np.nan)
    parts = [slice(None, half), slice(-half, None)]
    true = np.concatenate([hits[:, :, part].sum(axis=2) for part in parts], axis=1)
    valid = np.concatenate([keeps[:, part].sum(axis=1) for part in parts])
    share = true.sum(axis=1) / valid.sum()
    errors = (true - share[:, None] * valid) / valid.mean()
    spread, whole = errors.var(axis=1, ddof=1), share * (1 - share)
    kept = keeps.sum() / (draws * len(keeps))
    between = errors.reshape(len(errors), -1, together).mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.minimum(whole * len(valid) / spread, valid.sum())
        within = np.maximum(whole / kept - between, 0.0)
        ratio = np.sqrt(np.maximum(0.0, 1 - 2 / (draws * together) + between / within))
    varies = whole > 0
    return share, np.where(varies, size, np.nan), np.where(varies, ratio, np.nan)


def least_known(found: Iterable[Estimate]) -> Estimate:
    """Return the estimate of which the chains know least; of none, all is known."""
    nothing = Estimate(1.0, 1.0, 1.0, math.inf, 1.0, True, CHAINS, 1, 1.0)
    return min(found, key=lambda one: (one.converged, one.effective_size), default=nothing)


def estimate_sums(
    hits: NDArray[Any], keeps: NDArray[Any], beside: Beside, *, width: int = 1, together: int = 1
) -> Estimate:
    """Return the probability of a query among the valid states of chains, and how sure it is.

        p = Σ true·valid / Σ valid,    z = valid·(true - p)/mean(valid),    SE(p)² = var(z)/ESS(z)

    z is the series whose mean is the error of the ratio p to first order. The effective size is
    p(1 - p)/SE², at most the number of valid states. Where all valid states agree, z says nothing: then the
    least effective size among the other series, times the share of valid states, takes its place, and if
    no other series varies the estimate has no effective size and is not converged.

    Parameters
    ----------
    hits, keeps
        Shape (chains, blocks), sums over blocks of ``width`` sweeps: valid states in which the query holds,
        and all valid states, those that keep every hard formula and the evidence. Others are discarded.
    beside
        What other quantities of the same states say, such as the score or single atoms: they count towards
        convergence. See :func:`judged`.
    together
        That of :func:`r_hat`.
    """
    chains, blocks = hits.shape
    draws = blocks * width
    counted = int(keeps.sum())
    if not counted:
        return Estimate(math.nan, 0.0, 1.0, 0.0, math.nan, False, chains, draws, 0.0)
    kept = counted / (chains * draws)
    true = int(hits.sum())
    p = true / counted

    size, ratios = math.nan, list(beside.r_hats)
    if 0 < true < counted:
        z = (hits - p * keeps) / (kept * width)
        ratios.append(float(r_hat(z, together=together)))
        size = p * (1 - p) * float(effective_size(z, kind="mean")) / float(z.var(ddof=1))
    elif beside.sizes:
        size = float(np.min(beside.sizes)) * kept  # np.min, since min would pass over nan
    size = min(size, float(counted))  # which keeps nan
    worst = float(np.max(ratios)) if ratios else math.nan
    return concluded(p, size, worst, beside.sizes, chains, draws, kept)


def concluded(
    p: float, size: float, worst: float, sizes: Sequence[float], chains: int, draws: int, kept: float
) -> Estimate:
    """Return the estimate of this probability, effective size and R-hat; ``sizes``: of other series."""
    low, high = wilson(p * size, size) if size > 0 else (0.0, 1.0)
    converged = chains >= CHAINS and worst < R_HAT and all(each > ESS for each in (size, *sizes))
    return Estimate(p, low, high, size, worst, converged, chains, draws, kept)


# --- effective size and R-hat ----------------------------------------------------------------------


def effective_size(draws: ArrayLike, *, kind: str = "bulk") -> float | Floats:
    """Return the effective size (effective sample size, ESS): how many independent draws would say as much.

    Of several series, one for each of the leading axes, it is an array.

        ESS = n/τ,    τ = -1 + 2 Σ_{t ≤ T} ρ_t + ρ_{T+1},    τ ≥ 1/log10(n)

    n is the number of draws of all chains and ρ_t their autocorrelation at lag t, from which differences
    between chains take away. Chains are split into halves; an odd draw in the middle is left out. The sum
    runs over Geyer's initial positive and monotone sequence of pairs ρ_2i + ρ_2i+1.

    Draws that are all alike have effective size n, as in ArviZ. With fewer than 4 draws a chain, or a value
    that is not finite, it is nan.

    Parameters
    ----------
    draws
        Shape (..., chains, draws), of truth values or numbers.
    kind
        ``bulk``: of the draws' ranks, turned into normal scores; ``mean``: of the draws themselves, which is
        the one to use in sd/√ESS, the standard error of their mean.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(effective_size(draws))
    3926
    >>> round(effective_size(np.repeat(draws, 10, axis=1)))
    4014
    """
    if kind not in KINDS:
        raise ValueError(f"expected a kind among {', '.join(KINDS)}, got {kind!r}")
    return _of_halves(draws, 1, lambda halves: _sizes(_ranked(halves) if kind == "bulk" else halves))


def r_hat(draws: ArrayLike, *, together: int = 1) -> float | Floats:
    """Return R-hat (the Gelman-Rubin statistic): how much wider all draws spread than those of one chain.

    Of several series, one for each of the leading axes, it is an array.

        R² = (B/W + n - 1)/n

    B and W are the variances between and within chains of n draws, split into halves. It is taken of the
    draws' ranks, turned into normal scores, and once more of their distances from the median; the answer is
    the larger of the two. Near 1 the chains agree. Chains that never move, but differ, give infinity or a
    number beyond all others.

    Draws that are all alike give nan, as in ArviZ: they cannot tell. So do fewer than 2 chains, fewer than 4
    draws a chain, and values that are not finite.

    Parameters
    ----------
    draws
        Shape (..., chains, draws), of truth values or numbers.
    together
        Neighbouring chains that count as one (a superchain). Of many chains, each by itself must be long
        until its own mean is as exact as R-hat asks; so many that begin in the same world need not be. Their
        number must divide that of the chains. [Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari, Gelman:
        Nested R-hat: assessing the convergence of Markov chain Monte Carlo when running many short chains;
        2024]
    """

    def widest(halves: Floats) -> Floats:
        halves = halves.reshape(*halves.shape[:-2], halves.shape[-2] // together, -1)
        distances = np.abs(halves - np.median(halves, axis=(-2, -1), keepdims=True))
        # Distances may all be alike where draws are not: fmax passes over the nan.
        return np.asarray(np.fmax(_spread(_ranked(halves)), _spread(_ranked(distances))))

    return _of_halves(draws, 2 * together, widest)


def _of_halves(draws: ArrayLike, least: int, measure: Callable[[Floats], Floats]) -> float | Floats:
    """Return what is measured of every chain as two, its first and its last half, for each series.

    It is nan where values are not finite, of fewer than 4 draws a chain, and of fewer than ``least`` chains.
    """
    series = np.asarray(draws, dtype=np.float64)
    if series.ndim < 2:
        raise ValueError(
            f"expected draws of shape (..., chains, draws), got {series.shape}: one chain is draws[None, :]"
        )
    found, half = np.full(series.shape[:-2], np.nan), series.shape[-1] // 2
    if half >= 2 and series.shape[-2] >= least:
        finite = np.asarray(np.isfinite(series).all(axis=(-2, -1)))
        series = np.where(finite[..., None, None], series, 0.0)
        halves = np.concatenate([series[..., :half], series[..., -half:]], axis=-2)
        found = np.where(finite, measure(halves), np.nan)
    return float(found) if found.ndim == 0 else found


def _ranked(series: Floats) -> Floats:
    """Return normal scores, or 0 and 1 for draws of only two values.

    Scores of two values are two values: the same series but for scale and shift, which change neither R-hat
    nor the effective size.
    """
    low, high = series.min(axis=(-2, -1), keepdims=True), series.max(axis=(-2, -1), keepdims=True)
    larger = series == high
    return larger.astype(float) if (larger | (series == low)).all() else _normal_scores(series)


def _normal_scores(series: Floats) -> Floats:
    """Return Φ⁻¹((rank - 3/8)/(n + 1/4)): ranks from 1 up over all chains, equal draws at their mean rank."""
    from scipy.special import ndtri

    flat = series.reshape(*series.shape[:-2], -1)
    places = np.arange(flat.shape[-1])
    order = np.argsort(flat, axis=-1)
    ordered = np.take_along_axis(flat, order, axis=-1)
    begins = np.ones(flat.shape, dtype=bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ends = np.ones(flat.shape, dtype=bool)
    ends[..., :-1] = begins[..., 1:]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    last = np.minimum.accumulate(np.where(ends, places, len(places))[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=-1)
    return np.asarray(ndtri((ranks - 3 / 8) / (len(places) + 1 / 4))).reshape(series.shape)


def _spread(series: Floats) -> Floats:
    """Return sqrt((B/W + n - 1)/n) of each series."""
    n = series.shape[-1]
    between = n * series.mean(axis=-1).var(axis=-1, ddof=1)
    within = series.var(axis=-1, ddof=1).mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((between / within + n - 1) / n))


def _sizes(series: Floats) -> Floats:
    """Return the effective size of each series, of two chains or more, as they are."""
    chains, n = series.shape[-2:]
    total = chains * n
    constant = series.max(axis=(-2, -1)) - series.min(axis=(-2, -1)) < np.finfo(np.float64).resolution
    lagged = _autocovariances(series)
    within = lagged[..., :1] * n / (n - 1)
    overall = within * (n - 1) / n + series.mean(axis=-1).var(axis=-1, ddof=1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1 - (within - lagged) / overall
    correlations[..., 0] = 1.0

    pairs = correlations[..., : n - n % 2].reshape(*series.shape[:-2], n // 2, 2).sum(axis=-1)
    last = max(0, (n - 3) // 2)  # the pair at which the sum ends, however positive it still is
    positive = pairs[..., :last] > 0
    number = np.where(positive.all(axis=-1), last, np.argmin(positive, axis=-1) if last else 0)[..., None]
    inside = np.arange(n // 2) < number
    summed = np.where(inside, np.minimum.accumulate(pairs, axis=-1), 0.0).sum(axis=-1)
    # The first member of the pair that ended the sum still counts once, if it or the pair is positive.
    end = np.take_along_axis(correlations, 2 * number, axis=-1)
    counts = (end > 0) | (np.take_along_axis(pairs, number, axis=-1) >= 0)
    time = -1 + 2 * summed + np.where(counts, end, 0.0)[..., 0]
    return np.asarray(np.where(constant, total, total / np.maximum(time, 1 / np.log10(total))))


def _autocovariances(series: Floats) -> Floats:
    """Return the autocovariance at every lag, averaged over chains: shape (..., draws)."""
    from scipy.fft import next_fast_len

    n = series.shape[-1]
    length = next_fast_len(2 * n, real=True)
    waves = np.fft.rfft(series - series.mean(axis=-1, keepdims=True), n=length, axis=-1)
    power = (waves * waves.conj()).real
    return np.asarray(np.fft.irfft(power, n=length, axis=-1)[..., :n].mean(axis=-2) / n)


# --- intervals -------------------------------------------------------------------------------------


def wilson(successes: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for a probability: every p within z standard errors, its own, of the share.

        |successes/trials - p| ≤ z·sqrt(p(1 - p)/trials)

    Neither number need be whole: an effective size may be given. No trials leave (0, 1).

    >>> low, high = wilson(5, 10)
    >>> print(f"{low:.4f} {high:.4f}")
    0.2366 0.7634
    """
    from scipy.special import ndtri

    check_trials(successes, trials, level)
    if trials == 0:
        return 0.0, 1.0
    square = float(ndtri((1 + level) / 2)) ** 2
    share = successes / trials
    centre = successes + square / 2
    # Half the width, times the same denominator as the centre.
    half = math.sqrt(square * (successes * (1 - share) + square / 4))
    low = 0.0 if successes == 0 else max(0.0, (centre - half) / (trials + square))
    high = 1.0 if successes == trials else min(1.0, (centre + half) / (trials + square))
    return low, high


def check_trials(successes: float, trials: float, level: float) -> None:
    """Raise where these are no numbers of an experiment, or no level."""
    if not (0 <= successes <= trials < math.inf):
        raise ValueError(f"expected 0 <= successes <= trials, both finite, got {successes} of {trials}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
