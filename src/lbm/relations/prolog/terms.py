"""Terms: atoms are str, numbers int or float; compound terms and variables are frozen data.

Nothing here recurses, so a term may be as deep as memory allows. Unlike Python, Prolog tells 1 from 1.0:
so do :func:`same` and the equality of compound terms, and an index uses :func:`key`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Union

EMPTY: Final = "[]"
"""The empty list, an atom."""

CONS: Final = "."
"""The functor of a list's cells, written ``[head|tail]``."""

BETWEEN: Final = frozenset("= \\= == \\== < =< > >= =:= =\\= =.. @< @=< @> @>=".split())
"""Operators that are printed between their two arguments; every other term is printed as f(a,b)."""

_PLAIN: Final = re.compile(r"[a-z][A-Za-z0-9_]*|[+\-*/\\^<>=~:?@#&$]+|\[\]|\{\}|!|;")
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, known by its name within one clause."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compound:
    """A functor with its arguments; ``[a]`` is ``Compound(".", ("a", "[]"))``."""

    functor: str
    arguments: tuple[Term, ...]
    # Known from the start: a hash that looked into deep terms when asked would recurse.
    hashed: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashed", hash((self.functor, self.arguments)))

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compound) and same(self, other)

    def __str__(self) -> str:
        return write(self)

    def __repr__(self) -> str:
        return f"<{write(self)}>"

    def __reduce__(self) -> tuple[object, ...]:
        # Hashes of texts differ between processes: the hash is made anew where the term arrives.
        return Compound, (self.functor, self.arguments)


Term = Union[str, int, float, Compound, Variable]  # noqa: UP007 (a string among the members of | is an error)


def same(one: Term, other: Term) -> bool:
    """Say whether two terms are identical.

    >>> same(1, 1.0), same(Compound("f", (1,)), Compound("f", (1,)))
    (False, True)
    """
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, Compound) and isinstance(right, Compound):
            if (
                left.hashed != right.hashed
                or left.functor != right.functor
                or len(left.arguments) != len(right.arguments)
            ):
                return False
            pairs.extend(zip(left.arguments, right.arguments, strict=True))
        elif left != right:
            return False
    return True


def key(term: Term) -> object:
    """Return what stands for a term in a dictionary: the term itself, but 1.0 is not 1."""
    return (float, term) if type(term) is float else term


def subterms(term: Term) -> Iterator[Term]:
    """Yield a term and all terms inside it, from left to right."""
    todo = [term]
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, Compound):
            todo.extend(reversed(part.arguments))


def rebuilt(
    term: Any,
    look: Callable[[Any], Any],
    make: Callable[[Any, tuple[Any, ...]], Any],
    opened: type[Any] = Compound,
) -> Any:
    """Return what is made of a term, its innermost parts first, from left to right.

    Parameters
    ----------
    look
        Returns what stands for a part; it is opened only if that is of the type ``opened``.
    make
        Called with what was opened and with what was made of its arguments.

    Examples
    --------
    >>> rebuilt(Compound("f", (1, Compound("g", (2, 3)))), lambda part: part, lambda _, made: sum(made))
    6
    """
    built: list[Any] = []
    todo: list[tuple[bool, Any]] = [(False, term)]
    while todo:
        ready, part = todo.pop()
        if ready:
            first = len(built) - len(part.arguments)
            made = tuple(built[first:])
            del built[first:]
            built.append(make(part, made))
            continue
        part = look(part)
        if type(part) is opened:
            todo.append((True, part))
            todo.extend((False, one) for one in reversed(part.arguments))
        else:
            built.append(part)
    return built[0]


def is_ground(term: Term) -> bool:
    """Say whether a term has no variables."""
    return not any(isinstance(part, Variable) for part in subterms(term))


def signature(term: Term) -> tuple[str, int] | None:
    """Return (name, arity) of an atom or a compound term, else None.

    >>> signature(Compound("bond", ("a", "b")))
    ('bond', 2)
    """
    if isinstance(term, Compound):
        return term.functor, len(term.arguments)
    return (term, 0) if isinstance(term, str) else None


def arguments(term: Term) -> tuple[Term, ...]:
    """Return the arguments of a compound term; of anything else, none."""
    return term.arguments if isinstance(term, Compound) else ()


def make_list(items: Iterable[Term], tail: Term = EMPTY) -> Term:
    """Return Prolog's list of some terms.

    >>> print(make_list(["a", 1]))
    [a,1]
    """
    cell = tail
    for item in reversed(list(items)):
        cell = Compound(CONS, (item, cell))
    return cell


def list_items(term: Term) -> tuple[list[Term], Term]:
    """Return a list's elements and its tail, which is ``[]`` if the list is a proper one."""
    items = []
    while isinstance(term, Compound) and term.functor == CONS and len(term.arguments) == 2:
        items.append(term.arguments[0])
        term = term.arguments[1]
    return items, term


def write_atom(name: str) -> str:
    """Return an atom as Prolog reads it, in quotes where it needs them.

    >>> print(write_atom("ch3"), write_atom("Not plain"))
    ch3 'Not plain'
    """
    if _PLAIN.fullmatch(name) and not name.startswith("/*"):
        return name
    shown = [_ESCAPES.get(c, c if c.isprintable() else f"\\x{ord(c):x}\\") for c in name]
    return f"'{''.join(shown)}'"


def write_number(number: int | float) -> str:
    """Return a number as Prolog reads it."""
    text = repr(number)
    if isinstance(number, float) and "e" in text and "." not in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}.0e{exponent}"
    return text


def write(term: Term) -> str:
    """Return a term's text; reading it gives the same term again.

    >>> print(write(Compound("=", (Variable("A"), -1.5))), write(Compound("p", ("q r", make_list(["a"])))))
    A=(-1.5) p('q r',[a])
    """
    return "".join(_pieces(term))


def write_operand(term: Term) -> str:
    """Return a term's text as an argument of an operator that stands between its arguments."""
    return f"({write(term)})" if _needs_brackets(term) else write(term)


def write_short(term: Term, limit: int = 100) -> str:
    """Return a term's text for a message: cut off where it is long."""
    text = ""
    for piece in _pieces(term):
        text += piece
        if len(text) > limit:
            return text[:limit] + " ..."
    return text


def _pieces(term: Term) -> Iterator[str]:
    """Yield the text of a term piece by piece; what is still to be written waits on a stack."""
    todo: list[tuple[str, Term]] = [("term", term)]
    while todo:
        kind, part = todo.pop()
        if kind == "text":
            yield str(part)
        elif kind == "operand" and _needs_brackets(part):
            todo += [("text", ")"), ("term", part), ("text", "(")]
        elif isinstance(part, Compound):
            todo.extend(reversed(_parts(part)))
        elif isinstance(part, str):
            yield write_atom(part)
        elif isinstance(part, Variable):
            yield part.name
        else:
            yield write_number(part)


def _needs_brackets(term: Term) -> bool:
    if isinstance(term, Compound):
        return not term.functor[:1].isalpha() and term.functor != CONS
    if isinstance(term, str):
        return not term[:1].isalpha() and term not in (EMPTY, "{}")
    return not isinstance(term, Variable) and write_number(term).startswith("-")


def _parts(term: Compound) -> list[tuple[str, Term]]:
    """Return the pieces of one compound term, its arguments among them."""
    if term.functor == CONS and len(term.arguments) == 2:
        items, tail = list_items(term)
        rest = [] if tail == EMPTY else [("text", "|"), ("term", tail)]
        return [("text", "["), *_separated(items), *rest, ("text", "]")]
    if term.functor in BETWEEN and len(term.arguments) == 2:
        left, right = term.arguments
        return [("operand", left), ("text", term.functor), ("operand", right)]
    inside = [("text", "("), *_separated(term.arguments), ("text", ")")] if term.arguments else []
    return [("text", write_atom(term.functor)), *inside]


def _separated(items: Sequence[Term]) -> list[tuple[str, Term]]:
    return [part for item in items for part in (("text", ","), ("term", item))][1:]
