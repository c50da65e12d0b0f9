"""Numbers as people read them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def whole(value: float) -> str:
    """Return a number of things: in full while it can be taken in, then rounded.

    >>> whole(31), whole(44839.4), whole(7.5e6), whole(4.07e9), whole(1.1e12)
    ('31', '44,839', '7.5 million', '4.1 billion', '1,100 billion')
    """
    if value < 1e6:
        return f"{value:,.0f}"
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if value >= 0.9995 * size:
            share = value / size
            return f"{share:,.1f} {word}" if share < 100 else f"{share:,.0f} {word}"
    return f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """Return a time with its unit.

    >>> seconds(0.00042), seconds(0.0123), seconds(1.26), seconds(68), seconds(4000), seconds(None)
    ('0.42 ms', '12 ms', '1.3 s', '68 s', '67 min', '-')
    """
    if value is None:
        return "-"
    if value < 1:
        return f"{_short(1000 * value)} ms"
    return f"{_short(value)} s" if value < 600 else f"{value / 60:,.0f} min"


def share(value: float) -> str:
    """Return a share as a percentage, to two digits where it is small.

    >>> share(1.0), share(0.5), share(0.0037), share(2.5e-08), share(0)
    ('100 %', '50 %', '0.37 %', '2.5e-06 %', '0 %')
    """
    percent = 100 * value
    if percent and percent < 1e-3:
        return f"{percent:.1e} %"
    return f"{_short(percent)} %" if percent < 10 else f"{percent:.0f} %"


def times(value: float) -> str:
    """Return a ratio, as in ``980 ×``.

    >>> times(1.26), times(975.3), times(0.004)
    ('1.3 ×', '980 ×', '0.004 ×')
    """
    if value >= 100:
        digits = math.floor(math.log10(value)) - 1
        return f"{round(value / 10**digits) * 10**digits:,} ×"
    return f"{_short(value)} ×"


def spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation of counts; of a single one, that.

    >>> spread([10, 20, 30]), spread([5])
    ('20 ± 10', '5')
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return whole(mean)
    return f"{whole(mean)} ± {whole(statistics.stdev(values))}"


def _short(value: float) -> str:
    """Return a number to two digits.

    >>> _short(0.0), _short(0.123), _short(1.0), _short(123.4)
    ('0', '0.12', '1', '123')
    """
    if not value:
        return "0"
    if value >= 10:
        return f"{value:,.0f}"
    digits = max(0, 1 - math.floor(math.log10(value)))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
