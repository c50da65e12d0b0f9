"""Arithmetic: expressions and their values; what goes wrong is an ArithmeticError or a TypeError."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from lbm.relations.prolog.bindings import Bindings, Cell, Value
from lbm.relations.prolog.terms import CONS, EMPTY, Compound, rebuilt, write_short

MAX_BITS: Final = 10_000
"""Bits of an integer that arithmetic may make."""

Number = int | float


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a // b if a % b == 0 else a / b
    return a / b


def _whole(operation: Callable[[int, int], int]) -> Callable[[Number, Number], int]:
    """Return an operation that refuses all but integers."""

    def checked(a: Number, b: Number) -> int:
        for number in (a, b):
            if not isinstance(number, int):
                raise TypeError(f"expected an integer, found {number}")
        return operation(int(a), int(b))

    return checked


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _power(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        if b < 0 and abs(a) != 1:
            raise ArithmeticError(f"expected an exponent of 0 or more, found {b}")
        if b > 0 and a.bit_length() * b > MAX_BITS:
            raise ArithmeticError(f"expected a number of at most {MAX_BITS} bits, found a power past that")
        power: int = a ** abs(b)
        return power
    return math.pow(a, b)


def _shift(a: int, b: int) -> int:
    if b > MAX_BITS:
        raise ArithmeticError(f"expected a shift of at most {MAX_BITS} bits, found {b}")
    return a << b if b >= 0 else a >> -b


def _rounded(a: Number) -> int:
    return math.floor(a + 0.5) if a >= 0 else -math.floor(0.5 - a)


_TWO: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "//": _whole(_truncated),
    "div": _whole(operator.floordiv), "mod": _whole(operator.mod),
    "rem": _whole(lambda a, b: a - b * _truncated(a, b)), "min": min, "max": max, "**": _power, "^": _power,
    "gcd": _whole(math.gcd), "/\\": _whole(operator.and_), "\\/": _whole(operator.or_),
    "xor": _whole(operator.xor), "<<": _whole(_shift), ">>": _whole(lambda a, b: _shift(a, -b)),
    "atan2": math.atan2, "atan": math.atan2,
}  # fmt: skip
_ONE: Final[dict[str, Callable[[Number], Number]]] = {
    "-": operator.neg, "+": operator.pos, "abs": abs, "sign": lambda a: type(a)((a > 0) - (a < 0)),
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "float": float,
    "truncate": math.trunc, "ceiling": math.ceil, "floor": math.floor, "integer": _rounded, "round": _rounded,
}  # fmt: skip
_NONE: Final[dict[str, Number]] = {"pi": math.pi, "e": math.e, "inf": math.inf, "infinite": math.inf}
COMPARE: Final[dict[str, Callable[[Number, Number], bool]]] = {
    "<": operator.lt, "=<": operator.le, ">": operator.gt, ">=": operator.ge, "=:=": operator.eq,
    "=\\=": operator.ne,
}  # fmt: skip
"""Comparisons of numbers."""


def evaluate(expression: Value, bindings: Bindings) -> Number:
    """Return the value of an arithmetic expression."""

    def look(part: Value) -> Number | Compound:
        part = bindings.value(part)
        while (
            isinstance(part, Compound)
            and part.functor == CONS
            and bindings.value(part.arguments[-1]) == EMPTY
        ):
            part = bindings.value(part.arguments[0])
        if isinstance(part, Compound) and part.functor in (_TWO if len(part.arguments) == 2 else _ONE):
            return part
        if isinstance(part, str) and part in _NONE:
            return _NONE[part]
        if isinstance(part, int | float):
            return part
        found = "an unbound variable" if isinstance(part, Cell) else write_short(bindings.resolve(part, {}))
        raise TypeError(f"expected a number, found {found}")

    value: Number = rebuilt(expression, look, _applied)
    return value


def _applied(call: Compound, given: tuple[Number, ...]) -> Number:
    name = call.functor
    try:
        value = _TWO[name](*given) if len(given) == 2 else _ONE[name](*given)
    except ZeroDivisionError:
        raise ArithmeticError("expected a divisor other than 0") from None
    except (OverflowError, ValueError) as error:
        raise ArithmeticError(f"{name} has no value here: {error}") from None
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ArithmeticError(f"expected a number of at most {MAX_BITS} bits, found a larger one")
    if isinstance(value, float) and not math.isfinite(value) and all(abs(one) != math.inf for one in given):
        raise ArithmeticError("expected a finite number, found a larger one")
    return value


# --- equations of integers (CLP(FD)) -----------------------------------------------------------------


def solve_equation(bindings: Bindings, one: Value, other: Value) -> bool:
    """Make two expressions of integers equal, of which at most one place is unknown and is then worked out.

    The way to the unknown leads through +, - and *; all else is an error: nothing is put off until later.
    """
    left, right = (bindings.resolve(side) for side in (one, other))
    if bindings.holds_cell(right):
        left, right = right, left
    if bindings.holds_cell(right):
        raise TypeError("expected an equation with one unknown, found unknowns on both sides")
    value = _integer(evaluate(right, bindings))
    while isinstance(left, Compound) and bindings.holds_cell(left):
        if left.functor == "-" and len(left.arguments) == 1:
            left, value = left.arguments[0], -value
            continue
        unknown = [k for k, part in enumerate(left.arguments) if bindings.holds_cell(part)]
        if left.functor not in ("+", "-", "*") or len(left.arguments) != 2 or len(unknown) != 1:
            raise TypeError("expected an equation with one unknown under +, - and *, found another")
        place = unknown[0]
        known = _integer(evaluate(left.arguments[1 - place], bindings))
        if left.functor == "+":
            value -= known
        elif left.functor == "-":
            value = known - value if place else value + known
        elif known == 0 or value % known:
            if known == 0 and value == 0:
                raise TypeError("expected an equation with one solution at most, found 0 times an unknown")
            return False
        else:
            value //= known
        left = left.arguments[place]
    if isinstance(left, Cell):
        return bindings.unify(left, value)
    return _integer(evaluate(left, bindings)) == value


def _integer(number: Number) -> int:
    if not isinstance(number, int):
        raise TypeError(f"expected an integer, found {number}")
    return number


def compare_integers(name: str) -> Callable[[Bindings, tuple[Value, ...]], bool]:
    """Return a comparison of integers such as ``#<``."""
    compare = COMPARE[name]

    def test(bindings: Bindings, given: tuple[Value, ...]) -> bool:
        return compare(*(_integer(evaluate(one, bindings)) for one in given))

    return test
