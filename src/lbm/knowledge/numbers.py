"""Weights as exact numbers: an int or a Decimal, kept as written, compared and added without rounding."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Final

from lbm.errors import WeightError

MAX_WEIGHT: Final = Decimal("1e100")
"""The largest weight; the smallest is its inverse."""

MAX_DIGITS: Final = 100
"""Digits in one weight."""

Weight = int | Decimal

# Weights have at most 100 digits and lie within 1e±100, so sums of them fit these digits exactly.
_EXACT: Final = Context(prec=500, traps=[Inexact])


def read_weight(text: str) -> Weight:
    """Return a weight exactly as written: an int, or a Decimal.

    >>> read_weight("1000"), read_weight("2.50")
    (1000, Decimal('2.50'))
    """
    if len(text) > 2 * MAX_DIGITS:  # room for a sign, zeros and an exponent around the digits
        raise WeightError(
            f"a weight has at most {MAX_DIGITS} digits (limit MAX_DIGITS), got {len(text)} characters"
        )
    if not text.isascii():
        raise WeightError(f"a weight is written with the digits 0 to 9, got {text!r}")
    try:
        weight: Weight = int(text)
    except ValueError:
        try:
            weight = Decimal(text)
        except ArithmeticError:
            raise WeightError(f"expected a number as weight, got {text!r}") from None
    return check_weight(weight)


def check_weight(weight: Weight) -> Weight:
    """Return the weight if it is finite, not zero and within the limits."""
    exact = Decimal(weight)
    if not exact.is_finite():
        raise WeightError(f"a weight is a finite number, got {weight}")
    if not exact:
        raise WeightError("a weight of zero says nothing: leave the formula out, or give it a weight")
    # Nothing here rounds, and nothing depends on the caller's decimal context.
    if not -100 <= exact.adjusted() < 100 and exact.copy_abs() != MAX_WEIGHT:
        raise WeightError(f"a weight lies between 1e-100 and 1e100 (limit MAX_WEIGHT), got {_shown(exact)}")
    if (digits := len(exact.as_tuple().digits)) > MAX_DIGITS:
        raise WeightError(f"a weight has at most {MAX_DIGITS} digits (limit MAX_DIGITS), got {digits}")
    return weight


def _shown(number: Decimal) -> str:
    text = str(number)
    return text if len(text) <= 40 else f"{text[:20]}...e{number.adjusted():+}"


def as_weight(value: object) -> Weight:
    """Return a weight from a whole number, a Decimal, a float (as it prints) or text, checked."""
    if isinstance(value, bool):
        raise WeightError(f"expected a number as weight, got {value!r}")
    if isinstance(value, int | Decimal):
        return check_weight(value)
    if isinstance(value, Integral):  # of NumPy, among others
        return check_weight(int(value))
    if isinstance(value, Real) and not isinstance(value, Rational):
        return check_weight(Decimal(repr(float(value))))
    if isinstance(value, str):
        return read_weight(value)
    raise WeightError(f"expected a number as weight, got {value!r}")


def written(number: int) -> str:
    """Return a whole number in decimal digits, however many: ``str`` stops at 4,300 and slows down before.

    >>> len(written(2**100_000))
    30103
    """
    if number.bit_length() < 10_000:
        return str(number)
    powers: dict[int, Decimal] = {}

    def halves(part: int, bits: int) -> Decimal:
        if bits <= 1000:
            return Decimal(part)
        low = bits // 2
        if low not in powers:
            powers[low] = Decimal(2) ** low
        return halves(part & ((1 << low) - 1), low) + halves(part >> low, bits - low) * powers[low]

    with localcontext(Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])):
        digits = str(halves(abs(number), number.bit_length()))
    return f"-{digits}" if number < 0 else digits


def exact_sum(weights: Iterable[Weight]) -> Weight:
    """Return the sum without rounding: an int, or a Decimal if any of the weights is one."""
    total: Weight = 0
    with localcontext(_EXACT):
        for weight in weights:
            total += weight
    return total


def magnitude(weight: Weight) -> Weight:
    """Return |w|, exactly: ``-w`` and ``abs(w)`` would round a Decimal to the caller's precision."""
    return weight.copy_abs() if isinstance(weight, Decimal) else abs(weight)


def plain(weight: Decimal | float | None) -> int | float | str | None:
    """Return a weight for JSON: a number if a double can hold it as written, otherwise text.

    >>> plain(1000), plain(Decimal("2.50")), plain(2**60), plain(Decimal("0.1000000000000000000001"))
    (1000, 2.5, '1152921504606846976', '0.1000000000000000000001')
    """
    if weight is None:
        return None
    number = float(weight)
    if not isinstance(weight, float) and Decimal(repr(number)) != weight:
        return str(weight)
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number


def digits_of(weight: Weight) -> int:
    """Return how many digits follow the point."""
    digits = weight.as_tuple().exponent if isinstance(weight, Decimal) else 0
    assert isinstance(digits, int)  # weights are finite
    return max(0, -digits)


def whole(weight: Weight, digits: int) -> int:
    """Return a weight times 10^digits; of so many digits behind the point nothing is lost."""
    return int(Fraction(weight) * 10**digits)


def unscaled(number: int, digits: int) -> Weight:
    """Return a whole number divided by 10^digits, without a point if it needs none.

    >>> unscaled(2500, 3), unscaled(3000, 3), unscaled(7, 0)
    (Decimal('2.5'), 3, 7)
    """
    if not digits:
        return number
    scale: int = 10**digits
    if not number % scale:
        return number // scale
    while not number % 10:
        number, digits = number // 10, digits - 1
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -digits))
