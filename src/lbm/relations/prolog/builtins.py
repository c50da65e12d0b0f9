"""Predicates that need no clauses, and arithmetic; what goes wrong is an ArithmeticError or a TypeError."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Final

from lbm.relations.prolog.bindings import Bindings, Cell, Value
from lbm.relations.prolog.program import CONTROL, make_program
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import (
    CONS,
    EMPTY,
    Compound,
    list_items,
    make_list,
    rebuilt,
    same,
    write_number,
    write_short,
)

MAX_BITS: Final = 10_000
"""Bits of an integer that arithmetic may make."""

_NUMBER: Final = re.compile(r"\s*([+-]?)(\d{1,3000}(\.\d+)?([eE][+-]?\d+)?)")

LIBRARY: Final = make_program(
    read_clauses(
        "member(X, [X|_]). member(X, [_|T]) :- member(X, T). "
        "append([], L, L). append([H|T], L, [H|R]) :- append(T, L, R)."
    )
)
"""Predicates that are built in and have clauses; a program's own go before."""

CONTROL_NAMES: Final = CONTROL | {("!", 0)}
"""What the engine itself opens."""


# --- arithmetic --------------------------------------------------------------------------------------

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
    "<<": _whole(_shift), ">>": _whole(lambda a, b: _shift(a, -b)), "atan2": math.atan2, "atan": math.atan2,
}  # fmt: skip
_ONE: Final[dict[str, Callable[[Number], Number]]] = {
    "-": operator.neg, "+": operator.pos, "abs": abs, "sign": lambda a: type(a)((a > 0) - (a < 0)),
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "float": float,
    "truncate": math.trunc, "ceiling": math.ceil, "floor": math.floor, "integer": _rounded, "round": _rounded,
}  # fmt: skip
_NONE: Final[dict[str, Number]] = {"pi": math.pi, "e": math.e, "inf": math.inf, "infinite": math.inf}
_COMPARE: Final[dict[str, Callable[[Number, Number], bool]]] = {
    "<": operator.lt, "=<": operator.le, ">": operator.gt, ">=": operator.ge, "=:=": operator.eq,
    "=\\=": operator.ne,
}  # fmt: skip


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


# --- predicates with one answer at most --------------------------------------------------------------

Test = Callable[[Bindings, tuple[Value, ...]], bool]


def _is(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bindings.unify(given[0], evaluate(given[1], bindings))


def _comparison(name: str) -> Test:
    compare = _COMPARE[name]
    return lambda bindings, given: compare(evaluate(given[0], bindings), evaluate(given[1], bindings))


def _of_type(*types: type) -> Test:
    return lambda bindings, given: isinstance(bindings.value(given[0]), types)


def _different(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    mark = bindings.mark()
    unified = bindings.unify(*given)
    bindings.undo(mark)
    return not unified


def _identical(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return same(*(bindings.resolve(one) for one in given))


def _length(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    items, tail = list_items(bindings.resolve(given[0]))
    if tail == EMPTY:
        return bindings.unify(given[1], len(items))
    wanted = bindings.value(given[1])
    if not isinstance(wanted, int) or isinstance(tail, str | int | float | Compound):
        return False
    if not len(items) <= wanted <= 100_000:
        return False
    fresh = [*items, *(Cell() for _ in range(wanted - len(items)))]
    return bindings.unify(given[0], make_list(fresh))  # type: ignore[arg-type]


def _name(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    known = bindings.value(given[0])
    if isinstance(known, str | int | float):
        text = known if isinstance(known, str) else write_number(known)
        return bindings.unify(given[1], make_list([ord(letter) for letter in text]))
    items, tail = list_items(bindings.resolve(given[1]))
    if not isinstance(known, Cell) or tail != EMPTY:
        raise TypeError("expected an atom or a list of characters in name/2, found neither")
    if not all(isinstance(code, int) and 0 <= code < 0x110000 for code in items):
        raise TypeError("expected a list of character codes in name/2, found something else in it")
    text = "".join(chr(code) for code in items if isinstance(code, int))
    match = _NUMBER.fullmatch(text)
    if match is None:
        return bindings.unify(known, text)
    number: Number = int(text) if match[3] is None and match[4] is None else float(text)
    return bindings.unify(known, number)


TESTS: Final[dict[tuple[str, int], Test]] = {
    ("true", 0): lambda *_: True,
    ("fail", 0): lambda *_: False,
    ("false", 0): lambda *_: False,
    ("=", 2): lambda bindings, given: bindings.unify(*given),
    ("\\=", 2): _different,
    ("==", 2): _identical,
    ("\\==", 2): lambda bindings, given: not _identical(bindings, given),
    ("is", 2): _is,
    ("length", 2): _length,
    ("name", 2): _name,
    ("atom", 1): _of_type(str),
    ("number", 1): _of_type(int, float),
    ("integer", 1): _of_type(int),
    ("int", 1): _of_type(int),
    ("float", 1): _of_type(float),
    ("atomic", 1): _of_type(str, int, float),
    ("compound", 1): _of_type(Compound),
    ("var", 1): _of_type(Cell),
    ("nonvar", 1): lambda bindings, given: not isinstance(bindings.value(given[0]), Cell),
    ("ground", 1): lambda bindings, given: not bindings.holds_cell(given[0]),
    **{(name, 2): _comparison(name) for name in _COMPARE},
}

BUILTINS: Final = frozenset(TESTS) | frozenset(LIBRARY.predicates) | CONTROL_NAMES
"""Signatures of the predicates that are built in."""
