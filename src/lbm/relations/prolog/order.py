"""The standard order of terms: variables, then numbers by size, then atoms, then compound terms."""

from __future__ import annotations

from typing import Any

from lbm.relations.prolog.bindings import Bindings, Cell, Value
from lbm.relations.prolog.terms import Compound, Variable


def order_key(term: Value, bindings: Bindings) -> tuple[tuple[Any, ...], ...]:
    """Return what terms are ordered by: keys compare as terms do, and are equal where terms are identical.

    Compound terms go by arity, then by name, then by their arguments from left to right; 1.0 stands before 1.

    >>> terms = ["b", 2, Compound("f", ("a",)), 1.0, 1, "a"]
    >>> sorted(terms, key=lambda term: order_key(term, Bindings()))
    [1.0, 1, 2, 'a', 'b', <f(a)>]
    """
    found: list[tuple[Any, ...]] = []
    todo: list[Any] = [term]
    while todo:
        part = bindings.value(todo.pop())
        if isinstance(part, Compound):
            found.append((4, len(part.arguments), part.functor))
            todo.extend(reversed(part.arguments))
        elif isinstance(part, str):
            found.append((3, part))
        elif isinstance(part, Cell):
            found.append((0, id(part)))
        elif isinstance(part, Variable):
            found.append((0, 0, part.name))
        else:
            found.append((1, part, isinstance(part, int)))
    return tuple(found)
