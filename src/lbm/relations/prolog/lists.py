"""Built-in predicates of lists, of the order of terms, and of what terms are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from lbm.relations.prolog.arithmetic import Number, evaluate
from lbm.relations.prolog.bindings import Bindings, Cell, Value
from lbm.relations.prolog.order import order_key
from lbm.relations.prolog.terms import EMPTY, Compound, list_items, make_list, write_short

MAX_LENGTH: Final = 100_000
"""Elements of a list, or arguments of a term, that a built-in predicate may make."""

Test = Callable[[Bindings, tuple[Value, ...]], bool]
Choice = Callable[[Bindings, tuple[Value, ...]], Iterator[None]]


def items_of(bindings: Bindings, term: Value) -> list[Any]:
    """Return the elements of a proper list; anything else is an error."""
    found, tail = list_items(bindings.resolve(term))
    if tail != EMPTY:
        raise TypeError(f"expected a list, found {shown(bindings, term)}")
    return list(found)


def shown(bindings: Bindings, term: Value) -> str:
    """Return the text of a term for a message."""
    value = bindings.value(term)
    return "an unbound variable" if isinstance(value, Cell) else write_short(bindings.resolve(value, {}))


def tried(bindings: Bindings, *pairs: tuple[Value, Value]) -> bool:
    """Unify pairs; where that fails, nothing stays bound."""
    mark = bindings.mark()
    if all(bindings.unify(*pair) for pair in pairs):
        return True
    bindings.undo(mark)
    return False


def whole(bindings: Bindings, term: Value) -> int | None:
    """Return an integer, or None for an unbound variable; anything else is an error."""
    value = bindings.value(term)
    if isinstance(value, Cell):
        return None
    if not isinstance(value, int):
        raise TypeError(f"expected an integer, found {shown(bindings, value)}")
    return value


# --- lists -------------------------------------------------------------------------------------------


def length(bindings: Bindings, given: tuple[Value, ...]) -> Iterator[None]:
    """``length/2``: of a partial list, every length in turn."""
    items, tail = list_items(bindings.resolve(given[0]))
    end: Any = tail
    if end == EMPTY:
        if tried(bindings, (given[1], len(items))):
            yield
        return
    if not isinstance(end, Cell):
        return
    wanted = whole(bindings, given[1])
    if wanted is not None and not len(items) <= wanted <= MAX_LENGTH:
        if wanted > MAX_LENGTH:
            raise ArithmeticError(f"expected a list of at most {MAX_LENGTH} elements, found {wanted}")
        return
    for number in range(len(items), MAX_LENGTH + 1) if wanted is None else (wanted,):
        cells: list[Any] = [Cell() for _ in range(number - len(items))]
        fresh = make_list([*items, *cells])
        if tried(bindings, (given[0], fresh), (given[1], number)):
            yield


def between(bindings: Bindings, given: tuple[Value, ...]) -> Iterator[None]:
    """``between/3``."""
    low, high = whole(bindings, given[0]), bindings.value(given[1])
    last = None if high in ("inf", "infinite") else whole(bindings, high)
    if low is None or (last is None and high not in ("inf", "infinite")):
        raise TypeError("expected integers as bounds, found an unbound variable")
    known = whole(bindings, given[2])
    if known is not None:
        if low <= known and (last is None or known <= last):
            yield
        return
    while last is None or low <= last:
        if tried(bindings, (given[2], low)):
            yield
        low += 1


def _numlist(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    low, high = whole(bindings, given[0]), whole(bindings, given[1])
    if low is None or high is None:
        raise TypeError("expected integers as bounds, found an unbound variable")
    if high - low >= MAX_LENGTH:
        raise ArithmeticError(f"expected a list of at most {MAX_LENGTH} elements, found {high - low + 1}")
    return high >= low and bindings.unify(given[2], make_list(range(low, high + 1)))


def _numbers(bindings: Bindings, term: Value) -> list[Number]:
    return [evaluate(one, bindings) for one in items_of(bindings, term)]


def _sum(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bindings.unify(given[1], added(_numbers(bindings, given[0])))


def added(numbers: Sequence[Number]) -> Number:
    """Return a sum, added from left to right."""
    total: Number = 0
    for number in numbers:
        total += number
    return total


def _of_numbers(choose: Callable[[Any], Number]) -> Test:
    def test(bindings: Bindings, given: tuple[Value, ...]) -> bool:
        numbers = _numbers(bindings, given[0])
        return bool(numbers) and bindings.unify(given[1], choose(numbers))

    return test


def _reverse(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bindings.unify(given[1], make_list(items_of(bindings, given[0])[::-1]))


def _list_to_set(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    first: dict[object, Any] = {}
    for one in items_of(bindings, given[0]):
        first.setdefault(order_key(one, bindings), one)
    return bindings.unify(given[1], make_list(first.values()))


def _is_list(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bool(list_items(bindings.resolve(given[0]))[1] == EMPTY)


# --- order -------------------------------------------------------------------------------------------


def ordered(items: Sequence[Any], bindings: Bindings, *, once: bool) -> list[Any]:
    """Return terms in the standard order; ``once``: of identical ones the first."""
    pairs = [(order_key(one, bindings), one) for one in items]
    pairs.sort(key=lambda pair: pair[0])
    if not once:
        return [one for _, one in pairs]
    return [one for k, (key, one) in enumerate(pairs) if not k or pairs[k - 1][0] != key]


def _sort(once: bool) -> Test:
    def test(bindings: Bindings, given: tuple[Value, ...]) -> bool:
        return bindings.unify(given[1], make_list(ordered(items_of(bindings, given[0]), bindings, once=once)))

    return test


def _sort_by(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    place, sign = whole(bindings, given[0]), bindings.value(given[1])
    if place is None or place < 0 or sign not in ("@<", "@=<", "@>", "@>="):
        raise TypeError(f"expected a place and one of @<, @=<, @>, @>=, found {shown(bindings, sign)}")
    pairs = [
        (order_key(one if place == 0 else _part(bindings, one, place), bindings), one)
        for one in items_of(bindings, given[2])
    ]
    pairs.sort(key=lambda pair: pair[0], reverse=sign in ("@>", "@>="))
    if sign in ("@<", "@>"):
        pairs = [pair for k, pair in enumerate(pairs) if not k or pairs[k - 1][0] != pair[0]]
    return bindings.unify(given[3], make_list([one for _, one in pairs]))


def _part(bindings: Bindings, term: Value, place: int) -> Value:
    value = bindings.value(term)
    if not isinstance(value, Compound) or len(value.arguments) < place:
        raise TypeError(f"expected a term with {place} arguments, found {shown(bindings, value)}")
    return value.arguments[place - 1]


def _keysort(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    items = items_of(bindings, given[0])
    for one in items:
        if not isinstance(one, Compound) or one.functor != "-" or len(one.arguments) != 2:
            raise TypeError(f"expected pairs, Key-Value, found {shown(bindings, one)}")
    items.sort(key=lambda one: order_key(one.arguments[0], bindings))
    return bindings.unify(given[1], make_list(items))


def _compared(holds: Callable[[Any, Any], bool]) -> Test:
    return lambda bindings, given: holds(order_key(given[0], bindings), order_key(given[1], bindings))


def _compare(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    one, other = order_key(given[1], bindings), order_key(given[2], bindings)
    return bindings.unify(given[0], "<" if one < other else ">" if one > other else "=")


# --- what terms are made of --------------------------------------------------------------------------


def _functor(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    term = bindings.value(given[0])
    if isinstance(term, Compound):
        return bindings.unify(given[1], term.functor) and bindings.unify(given[2], len(term.arguments))
    if not isinstance(term, Cell):
        return bindings.unify(given[1], term) and bindings.unify(given[2], 0)
    name, arity = bindings.value(given[1]), whole(bindings, given[2])
    if arity is None or isinstance(name, Cell | Compound) or not 0 <= arity <= MAX_LENGTH:
        raise TypeError(f"expected a name and an arity from 0 to {MAX_LENGTH}, found others")
    if arity and not isinstance(name, str):
        raise TypeError(f"expected a name, found {shown(bindings, name)}")
    cells: list[Any] = [Cell() for _ in range(arity)]
    made = Compound(str(name), tuple(cells)) if arity else name
    return bindings.unify(term, made)


def argument(bindings: Bindings, given: tuple[Value, ...]) -> Iterator[None]:
    """``arg/3``."""
    term = bindings.value(given[1])
    if not isinstance(term, Compound):
        raise TypeError(f"expected a compound term, found {shown(bindings, term)}")
    known = whole(bindings, given[0])
    places = range(1, len(term.arguments) + 1)
    for place in places if known is None else [known] if known in places else ():
        if tried(bindings, (given[0], place), (given[2], term.arguments[place - 1])):
            yield


def _univ(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    term = bindings.value(given[0])
    if isinstance(term, Compound):
        return bindings.unify(given[1], make_list([term.functor, *term.arguments]))
    if not isinstance(term, Cell):
        return bindings.unify(given[1], make_list([term]))
    items = items_of(bindings, given[1])
    name = bindings.value(items[0]) if items else None
    if len(items) == 1 and not isinstance(name, Cell | Compound | None):
        return bindings.unify(term, name)
    if not items or not isinstance(name, str):
        raise TypeError(f"expected a list that begins with a name, found {shown(bindings, given[1])}")
    return bindings.unify(term, Compound(name, tuple(items[1:])))


def _copy(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bindings.unify(given[1], bindings.copied(given[0]))


def _dif(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    mark = bindings.mark()
    unified = bindings.unify(given[0], given[1])
    changed = bindings.mark() > mark
    bindings.undo(mark)
    if unified and changed:
        raise TypeError("expected terms without variables in dif/2, found some that may yet be equal")
    return not unified


LIST_TESTS: Final[dict[tuple[str, int], Test]] = {
    ("numlist", 3): _numlist,
    **dict.fromkeys((("sum_list", 2), ("sumlist", 2)), _sum),
    ("max_list", 2): _of_numbers(max),
    ("min_list", 2): _of_numbers(min),
    ("reverse", 2): _reverse,
    ("list_to_set", 2): _list_to_set,
    ("is_list", 1): _is_list,
    ("msort", 2): _sort(once=False),
    ("sort", 2): _sort(once=True),
    ("sort", 4): _sort_by,
    ("keysort", 2): _keysort,
    ("compare", 3): _compare,
    ("@<", 2): _compared(lambda one, other: bool(one < other)),
    ("@=<", 2): _compared(lambda one, other: bool(one <= other)),
    ("@>", 2): _compared(lambda one, other: bool(one > other)),
    ("@>=", 2): _compared(lambda one, other: bool(one >= other)),
    ("functor", 3): _functor,
    ("=..", 2): _univ,
    ("copy_term", 2): _copy,
    ("dif", 2): _dif,
}
"""Predicates of one answer at most."""

LIST_CHOICES: Final[dict[tuple[str, int], Choice]] = {
    ("length", 2): length,
    ("between", 3): between,
    ("arg", 3): argument,
}
"""Predicates of several answers: each binds what it says, and is asked again once that was undone."""
