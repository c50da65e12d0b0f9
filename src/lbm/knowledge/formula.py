"""Formulae: atoms and connectives as immutable, shared data.

Equal formulae are one object (hash-consing), so ``==`` and ``hash`` cost nothing whatever the
depth, and a formula is a graph in which a shared part is stored, visited and evaluated once.
Nothing here recurses: a formula may be a million connectives deep.
"""

from __future__ import annotations

import operator
import re
import threading
import unicodedata
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, TypeVar

from lbm.errors import LimitExceeded, UnknownAtom

MAX_TEXT: Final = 100_000_000
"""Characters a formula may print to: a shared graph can stand for text without end."""

_LONG: Final = 1_000_000  # characters past which the whole length is worked out before the rest is printed

T = TypeVar("T")

RESERVED: Final = frozenset(
    "true false and or not xor iff implies forall exists in atoms domain atleast atmost exactly".split()
)
CARDINALITIES: Final = frozenset({"atleast", "atmost", "exactly"})

# kind -> (symbol, precedence, associates right); the loosest operator has the least precedence
_BINARY: Final = {
    "iff": ("<->", 1, False),
    "implies": ("->", 2, True),
    "or": ("|", 3, False),
    "xor": ("^", 4, False),
    "and": ("&", 5, False),
}
_NOT_PRECEDENCE: Final = 6

_NOT_IN_NAMES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, lone surrogates, line ends

# How names, constants and ground terms are written: patterns.
# `++` and `*+` keep no way back, so a token of a million characters takes no memory beside its own.
NAME: Final = r"[^\W\d]\w*"
QUOTED: Final = r"'(?:[^'\n]|'')++'"
PLAIN_NAME: Final = rf"(?!(?:{'|'.join(sorted(RESERVED))})\b){NAME}"
_CONSTANT = rf"(?:{PLAIN_NAME}|\d+|{QUOTED})"
GROUND_TERM: Final = rf"{PLAIN_NAME}\([ ]*{_CONSTANT}(?:[ ]*,[ ]*{_CONSTANT})*+[ ]*\)"

CONSTANT: Final = re.compile(_CONSTANT)
_WORD: Final = re.compile(NAME)
_TERM: Final = re.compile(GROUND_TERM)

# What connectives say of plain truth values and of boolean arrays.
TRUTH: Final[dict[str, Callable[..., Any]]] = {
    "true": lambda: True,
    "false": lambda: False,
    "not": lambda value: value ^ True,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "implies": lambda body, head: (body ^ True) | head,
    "iff": lambda left, right: left ^ right ^ True,
}


class Formula:
    """A propositional formula. Build one with :func:`atom` and ``&  |  ^  ~  >>``, or by parsing.

    Attributes
    ----------
    kind
        ``atom true false not and or xor implies iff atleast atmost exactly``.
    label
        The name of an atom, the bound of a cardinality, otherwise None.
    args
        The formulae below, in written order. Connectives of two arguments associate as they are
        written: ``a & b & c`` is ``(a & b) & c``.

    Examples
    --------
    >>> a, b = atom("a"), atom("b")
    >>> print((a & ~b) >> b)
    a & ~b -> b
    >>> (a & ~b) is (a & ~b)
    True
    """

    __slots__ = ("__weakref__", "args", "kind", "label")

    kind: str
    label: Any
    args: tuple[Formula, ...]

    def __init__(self) -> None:
        raise TypeError("build formulae with lbm.atom('name') and & | ^ ~ >>, or with lbm.parse('a -> b')")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a formula never changes: build another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a formula never changes: build another one")

    def __and__(self, other: Formula) -> Formula:
        return _binary("and", self, other)

    def __or__(self, other: Formula) -> Formula:
        return _binary("or", self, other)

    def __xor__(self, other: Formula) -> Formula:
        return _binary("xor", self, other)

    def __rshift__(self, other: Formula) -> Formula:
        return _binary("implies", self, other)

    def __lshift__(self, other: Formula) -> Formula:
        return _binary("implies", other, self) if isinstance(other, Formula) else NotImplemented

    def __invert__(self) -> Formula:
        return make("not", None, (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            "a formula is neither true nor false by itself: combine with & | ~ instead of "
            "and, or, not; evaluate with holds(formula, world)"
        )

    def __copy__(self) -> Formula:
        return self

    def __deepcopy__(self, memo: object) -> Formula:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return from_steps, (to_steps(self),)

    def __str__(self) -> str:
        pieces, length, least = [], 0, 0
        for piece in _pieces(self):
            pieces.append(piece)
            length += len(piece)
            if length > _LONG and not least:
                least = fold(self, lambda _, below: 1 + sum(below))  # a sign for each atom and connective
            if max(length, least) > MAX_TEXT:
                raise LimitExceeded(
                    f"this formula prints to more than {MAX_TEXT} characters (limit MAX_TEXT): "
                    "its parts are shared, so walk it with postorder() instead",
                    MAX_TEXT=MAX_TEXT,
                )
        return "".join(pieces)

    def __repr__(self) -> str:
        text = ""
        for piece in _pieces(self):
            text += piece
            if len(text) > 1000:
                text = text[:1000] + " ..."
                break
        return f"<{text}>"


# --- making formulae -----------------------------------------------------------------------------

Key = tuple[str, Any, tuple["Formula", ...]]


class _Kept(weakref.ref[Formula]):
    """A weak reference that knows which entry of the table to clear when its formula is gone."""

    __slots__ = ("key",)
    key: Key


# A plain dict of weak references: half the time of a WeakValueDictionary on the parser's hottest path.
_shared: dict[Key, _Kept] = {}
_sharing = threading.RLock()
_set_kind, _set_label, _set_args = (Formula.__dict__[slot].__set__ for slot in ("kind", "label", "args"))


def _forget(
    reference: weakref.ref[Formula],
    # Bound here, because at the end of the program module names are gone before the last formulae.
    shared: dict[Key, _Kept] = _shared,
    sharing: Any = _sharing,
) -> None:
    key = reference.key  # type: ignore[attr-defined]
    with sharing:
        # Only its own entry: an equal formula may have been made since.
        if shared.get(key) is reference:
            del shared[key]


def make(kind: str, label: Any, args: tuple[Formula, ...]) -> Formula:
    """Return the one formula with these parts. The parts are trusted; the public doors check."""
    key = (kind, label, args)
    kept = _shared.get(key)
    if kept is not None:
        found = kept()
        if found is not None:
            return found
    with _sharing:
        kept = _shared.get(key)
        found = kept() if kept is not None else None
        if found is None:
            found = object.__new__(Formula)
            _set_kind(found, kind)
            _set_label(found, label)
            _set_args(found, args)
            kept = _Kept(found, _forget)
            kept.key = key
            _shared[key] = kept
    return found


TRUE: Final = make("true", None, ())
FALSE: Final = make("false", None, ())


def atom(name: str) -> Formula:
    """Return the atom (propositional variable) called ``name``: any text on one line that is not empty.

    >>> print(atom("rain") & atom("age <= 30") & atom("less(a1,b1)"))
    rain & 'age <= 30' & less(a1, b1)
    """
    if not isinstance(name, str):
        raise TypeError(f"an atom's name is text, got {name!r}")
    return make("atom", atom_name(name), ())


def atom_name(name: str) -> str:
    """Return ``name`` as atoms carry it: ``f(a,b)`` as ``f(a, b)``, other text as it is."""
    if not name:
        raise ValueError("an atom's name has at least one character, got ''")
    if not name.isprintable() and any(unicodedata.category(sign) in _NOT_IN_NAMES for sign in name):
        raise ValueError(f"an atom's name is one line of text without control characters, got {name!r}")
    return term_name(name) if name[-1] == ")" and _TERM.fullmatch(name) else name


def term_name(term: str) -> str:
    """Return a ground term as atoms carry it: ``f( a,b )`` as ``f(a, b)``."""
    predicate, _, rest = term.partition("(")
    return f"{predicate}({', '.join(CONSTANT.findall(rest))})"


def quote(name: str) -> str:
    """Return an atom's name as the text format writes it, in quotes where it needs them."""
    if _WORD.fullmatch(name):
        return f"'{name}'" if name in RESERVED else name
    if name[-1] == ")" and _TERM.fullmatch(name):
        return name
    return "'" + name.replace("'", "''") + "'"


def _binary(kind: str, left: Formula, right: Formula) -> Formula:
    if not isinstance(right, Formula):
        return NotImplemented
    return make(kind, None, (left, right))


def _checked(parts: Iterable[Formula]) -> tuple[Formula, ...]:
    found = tuple(parts)
    for part in found:
        if not isinstance(part, Formula):
            raise TypeError(f"expected formulae, got {part!r}: lbm.atom('name') makes an atom")
    return found


def conjunction(parts: Iterable[Formula]) -> Formula:
    """Return ``p1 & p2 & ...``; of no parts, true."""
    checked = _checked(parts)
    return reduce(lambda left, right: make("and", None, (left, right)), checked) if checked else TRUE


def disjunction(parts: Iterable[Formula]) -> Formula:
    """Return ``p1 | p2 | ...``; of no parts, false."""
    checked = _checked(parts)
    return reduce(lambda left, right: make("or", None, (left, right)), checked) if checked else FALSE


def iff(left: Formula, right: Formula) -> Formula:
    """Return ``left <-> right``."""
    return make("iff", None, _checked((left, right)))


def implies(body: Formula, head: Formula) -> Formula:
    """Return ``body -> head``."""
    return make("implies", None, _checked((body, head)))


def cardinality(kind: str, bound: int, parts: Iterable[Formula]) -> Formula:
    """Return ``atleast(k, ...)``, ``atmost(k, ...)`` or ``exactly(k, ...)``."""
    if kind not in CARDINALITIES:
        raise ValueError(f"a cardinality is atleast, atmost or exactly, got {kind!r}")
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
        raise ValueError(f"{kind} needs a whole number from 0 up, got {bound!r}")
    return make(kind, bound, _checked(parts))


def atleast(bound: int, *parts: Formula) -> Formula:
    """Return the formula that is true where at least ``bound`` of the parts are."""
    return cardinality("atleast", bound, parts)


def atmost(bound: int, *parts: Formula) -> Formula:
    """Return the formula that is true where at most ``bound`` of the parts are."""
    return cardinality("atmost", bound, parts)


def exactly(bound: int, *parts: Formula) -> Formula:
    """Return the formula that is true where exactly ``bound`` of the parts are."""
    return cardinality("exactly", bound, parts)


def bounds(node: Formula) -> tuple[int, int]:
    """Return how many parts of a cardinality must be true at least and may be true at most."""
    least = 0 if node.kind == "atmost" else node.label
    return least, len(node.args) if node.kind == "atleast" else node.label


# --- walking formulae ----------------------------------------------------------------------------


def postorder(*formulae: Formula, known: Container[Formula] = ()) -> Iterator[Formula]:
    """Yield every distinct part once, parts before wholes, left before right; none that is ``known``."""
    seen: set[Formula] = set()
    stack: list[tuple[Formula, bool]] = [(formula, False) for formula in reversed(formulae)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen and node not in known:
            seen.add(node)
            if not node.args:
                yield node
            else:
                stack.append((node, True))
                stack.extend((part, False) for part in reversed(node.args) if part not in seen)


def fold(formula: Formula, visit: Callable[[Formula, list[T]], T]) -> T:
    """Return ``visit(formula, [results of its arguments])``, each distinct part visited once.

    A result is forgotten as soon as the last whole that needs it is done.
    """
    order = list(postorder(formula))
    last: dict[Formula, int] = {}
    for i, node in enumerate(order):
        for part in node.args:
            last[part] = i
    results: dict[Formula, T] = {}
    for i, node in enumerate(order):
        results[node] = visit(node, [results[part] for part in node.args])
        for part in node.args:
            if last[part] == i:
                results.pop(part, None)  # it may be an argument twice
    return results[formula]


def atoms_of(*formulae: Formula) -> tuple[str, ...]:
    """Return the names of the atoms, in order of first appearance.

    >>> from lbm.knowledge.parser import parse
    >>> atoms_of(parse("q & p -> ~r | q"))
    ('q', 'p', 'r')
    """
    return tuple(node.label for node in postorder(*formulae) if node.kind == "atom")


def holds(formula: Formula, world: Mapping[str, Any]) -> Any:
    """Return the truth value of a formula in a world (a truth assignment, an interpretation), or in many.

    ``world`` maps every atom's name to a bool, or to a boolean NumPy array with one entry per
    world; the result is of the same kind, but a plain bool where the formula mentions no atom.
    [TG21, Definition 1: s_φ(x)]
    """

    def visit(node: Formula, values: list[Any]) -> Any:
        if node.kind == "atom":
            try:
                value = world[node.label]
            except KeyError:
                raise UnknownAtom(node.label, world, "world") from None
            return bool(value) if isinstance(value, int) else value
        if node.kind in CARDINALITIES:
            least, most = bounds(node)
            number = sum((value * 1 for value in values), start=0)
            return (least <= number) & (number <= most)
        return TRUTH[node.kind](*values)

    return fold(formula, visit)


# --- formulae as flat data -----------------------------------------------------------------------

Step = tuple[str, Any, tuple[int, ...]]


def to_steps(formula: Formula) -> list[Step]:
    """Return the formula as a list of (kind, label, places of arguments), the whole one last."""
    place: dict[Formula, int] = {}
    steps: list[Step] = []
    for node in postorder(formula):
        place[node] = len(steps)
        steps.append((node.kind, node.label, tuple([place[part] for part in node.args])))
    return steps


def from_steps(steps: Iterable[Step]) -> Formula:
    """Return the formula that :func:`to_steps` took apart."""
    made: list[Formula] = []
    for kind, label, args in steps:
        made.append(make(kind, label, tuple([made[i] for i in args])))
    return made[-1]


def _pieces(formula: Formula) -> Iterator[str]:
    """Yield the text of a formula, with only the parentheses it needs, piece by piece."""
    stack: list[Formula | str] = [formula]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif item.kind == "atom":
            yield quote(item.label)
        elif item.kind == "not":
            yield "~"
            stack.extend(_wrapped(item.args[0], _NOT_PRECEDENCE))
        elif item.kind in _BINARY:
            symbol, precedence, right_first = _BINARY[item.kind]
            left, right = item.args
            stack.extend(_wrapped(right, precedence + (not right_first)))
            stack.append(f" {symbol} ")
            stack.extend(_wrapped(left, precedence + right_first))
        elif item.kind in CARDINALITIES:
            yield f"{item.kind}({item.label}"
            stack.append(")")
            for part in reversed(item.args):
                stack.extend((part, ", "))
        else:
            yield item.kind


def _wrapped(part: Formula, least: int) -> tuple[Formula | str, ...]:
    """Return what to push so that ``part`` prints in parentheses if it binds looser than ``least``."""
    binds = _BINARY[part.kind][1] if part.kind in _BINARY else _NOT_PRECEDENCE
    return (")", part, "(") if binds < least else (part,)
