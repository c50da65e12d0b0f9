"""Another interval for a probability, to compare that of diagnostics.py with."""

from scipy.special import betaincinv

from lbm.reasoning.sampling.diagnostics import check_trials


def jeffreys(successes: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Jeffreys' interval for a probability: quantiles of Beta(successes + ½, failures + ½).

    Without successes it begins at exactly 0, without failures it ends at exactly 1. Neither number need be
    whole: an effective size may be given. No trials leave (0, 1).

    >>> low, high = jeffreys(5, 10)
    >>> print(f"{low:.4f} {high:.4f}")
    0.2235 0.7765
    """
    check_trials(successes, trials, level)
    a, b = successes + 0.5, trials - successes + 0.5
    low = 0.0 if successes == 0 else float(betaincinv(a, b, (1 - level) / 2))
    high = 1.0 if successes == trials else float(betaincinv(a, b, (1 + level) / 2))
    return low, high
