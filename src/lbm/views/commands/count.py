"""``lbm count``: how many worlds satisfy every hard formula, or what do they weigh together?"""

from __future__ import annotations

from decimal import Context
from fractions import Fraction
from typing import Annotated, Any, Final

from typer import Option

from lbm.views.commands import shared

DIGITS: Final = 15
"""Digits of a weight that is printed beside its fraction."""


def count_models(
    file: shared.File,
    *,
    given: shared.Given = None,
    project: shared.Project = None,
    unweighted: Annotated[
        bool, Option("--unweighted", help="Count the models, whatever their literals weigh.")
    ] = False,
    seconds: shared.Seconds = 60.0,
    reading: shared.TheoryOptions,
    as_json: shared.Json = False,
) -> int:
    """Count the models of a theory, exactly, however many there are.

    Where a file says what literals weigh, a model weighs the product of its literals, and the sum over all of
    them is printed, as a fraction and as a decimal.

    Exit status 0: there is one at least; 1: there is none; 3: the count would take too long.

    With --json: count, as text, because it may be larger than a program's numbers; where literals have
    weights also decimal, the nearest number (null: none is near).
    """
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import count

    with shared.working("counting"):
        found = count(
            theory,
            given=given,
            project=shared.split_names(project),
            weighted=False if unweighted else None,
            seconds=seconds,
        )
    if as_json:
        shared.say_json(count_facts(found))
    else:
        text = as_fraction(found)
        shared.say(text if found == int(found) else f"{text} = {as_decimal(Fraction(found))}")
    return 0 if found else 1


def count_facts(found: int | Fraction) -> dict[str, Any]:
    """Return a count as plain data for JSON.

    >>> count_facts(2**70)
    {'count': '1180591620717411303424'}
    """
    nearest = {"decimal": _nearest(found)} if isinstance(found, Fraction) else {}
    return {"count": as_fraction(found), **nearest}


def as_fraction(number: int | Fraction) -> str:
    """Return a number exactly, however long.

    >>> as_fraction(Fraction(1, 3)), as_fraction(Fraction(4, 2))
    ('1/3', '2')
    """
    from lbm.knowledge.numbers import written

    if number.denominator == 1:
        return written(number.numerator)
    return f"{written(number.numerator)}/{written(number.denominator)}"


def as_decimal(number: Fraction) -> str:
    """Return a number in DIGITS decimal digits, or fewer if these are all.

    >>> as_decimal(Fraction(1, 2)), as_decimal(Fraction(2, 3))
    ('0.5', '0.666666666666667')
    """
    context = Context(prec=DIGITS)
    wide = Context(prec=DIGITS + 5)
    # Only a plain quotient of the two, each rounded far behind the last digit: both may be very long.
    return str(context.divide(wide.create_decimal(number.numerator), wide.create_decimal(number.denominator)))


def _nearest(number: int | Fraction) -> float | None:
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if found or not number else None
