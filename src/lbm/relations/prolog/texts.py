"""Built-in predicates of atoms as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lbm.relations.prolog.bindings import Bindings, Cell, Value
from lbm.relations.prolog.lists import Choice, Test, items_of, shown, tried, whole
from lbm.relations.prolog.terms import EMPTY, list_items, make_list, write_number

MAX_LETTERS: Final = 1_000_000
"""Letters of an atom that a built-in predicate may make."""

_NUMBER: Final = re.compile(r"\s*([+-]?)(\d{1,3000}(\.\d+)?([eE][+-]?\d+)?)")


def text_of(bindings: Bindings, term: Value) -> str:
    """Return the letters of an atom or a number."""
    value = bindings.value(term)
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return write_number(value)
    raise TypeError(f"expected an atom or a number, found {shown(bindings, value)}")


def _is_text(bindings: Bindings, term: Value) -> bool:
    return isinstance(bindings.value(term), str | int | float)


def read_number(text: str) -> int | float | None:
    """Return the number that a text says, if it says one."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return int(text) if match[3] is None and match[4] is None else float(text)


def letters(bindings: Bindings, term: Value, name: str) -> str:
    """Return the text of a list of codes or of letters."""
    found = []
    items, tail = list_items(bindings.resolve(term))
    if tail != EMPTY:
        raise TypeError(f"expected an atom or a list of characters in {name}, found neither")
    for one in items:
        if isinstance(one, int) and 0 <= one < 0x110000:
            found.append(chr(one))
        elif isinstance(one, str) and len(one) == 1:
            found.append(one)
        else:
            raise TypeError(f"expected a list of character codes in {name}, found something else in it")
    return "".join(found)


def _name(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    if _is_text(bindings, given[0]):
        return bindings.unify(given[1], make_list(map(ord, text_of(bindings, given[0]))))
    if not isinstance(bindings.value(given[0]), Cell):
        raise TypeError("expected an atom or a list of characters in name/2, found neither")
    text = letters(bindings, given[1], "name/2")
    number = read_number(text)
    return bindings.unify(given[0], text if number is None else number)


def _spelled(name: str, *, codes: bool, wanted: str) -> Test:
    """Return atom_codes, atom_chars, number_codes or number_chars."""

    def test(bindings: Bindings, given: tuple[Value, ...]) -> bool:
        if _is_text(bindings, given[0]):
            text = text_of(bindings, given[0])
            return bindings.unify(given[1], make_list(map(ord, text) if codes else text))
        text = letters(bindings, given[1], name)
        if wanted == "atom":
            return bindings.unify(given[0], text)
        number = read_number(text)
        if number is None:
            raise TypeError(f"expected the letters of a number in {name}, found {text[:40]!r}")
        return bindings.unify(given[0], number)

    return test


def _atom_length(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bindings.unify(given[1], len(text_of(bindings, given[0])))


def _atom_number(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    if isinstance(bindings.value(given[0]), Cell):
        return bindings.unify(given[0], text_of(bindings, given[1]))
    number = read_number(text_of(bindings, given[0]))
    return number is not None and bindings.unify(given[1], number)


def _char_code(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    letter = bindings.value(given[0])
    if isinstance(letter, str) and len(letter) == 1:
        return bindings.unify(given[1], ord(letter))
    code = whole(bindings, given[1])
    if code is None or not 0 <= code < 0x110000:
        raise TypeError("expected a letter or the code of one in char_code/2, found neither")
    return bindings.unify(given[0], chr(code))


def _cased(change: Any) -> Test:
    return lambda bindings, given: bindings.unify(given[1], change(text_of(bindings, given[0])))


def _made(text: str) -> str:
    if len(text) > MAX_LETTERS:
        raise ArithmeticError(f"expected an atom of at most {MAX_LETTERS} letters, found {len(text)}")
    return text


def atom_concat(bindings: Bindings, given: tuple[Value, ...]) -> Iterator[None]:
    """``atom_concat/3``: also splits an atom in every way."""
    if _is_text(bindings, given[0]) and _is_text(bindings, given[1]):
        if tried(bindings, (given[2], _made(text_of(bindings, given[0]) + text_of(bindings, given[1])))):
            yield
        return
    text = text_of(bindings, given[2])
    if _is_text(bindings, given[0]):
        start = text_of(bindings, given[0])
        if text.startswith(start) and tried(bindings, (given[1], text[len(start) :])):
            yield
    elif _is_text(bindings, given[1]):
        end = text_of(bindings, given[1])
        if text.endswith(end) and tried(bindings, (given[0], text[: len(text) - len(end)])):
            yield
    else:
        for place in range(len(text) + 1):
            if tried(bindings, (given[0], text[:place]), (given[1], text[place:])):
                yield


def sub_atom(bindings: Bindings, given: tuple[Value, ...]) -> Iterator[None]:
    """``sub_atom/5``: part, letters before it, its letters, and letters after it."""
    text = text_of(bindings, given[0])
    before, size, after = (whole(bindings, one) for one in given[1:4])
    for start, end in _parts(text, bindings.value(given[4]), before, size, after):
        pairs = ((given[1], start), (given[2], end - start), (given[3], len(text) - end))
        if tried(bindings, *pairs, (given[4], text[start:end])):
            yield


def _parts(
    text: str, part: Value, before: int | None, size: int | None, after: int | None
) -> Iterator[tuple[int, int]]:
    """Yield where parts of a text start and end: only those that what is known allows."""
    if isinstance(part, str):
        place = text.find(part)
        while place >= 0:
            yield place, place + len(part)
            place = text.find(part, place + 1)
        return
    if any(known is not None and not 0 <= known <= len(text) for known in (before, size, after)):
        return
    if size is not None and after is not None:
        starts: range = range(len(text) - after - size, len(text) - after - size + 1)
    else:
        starts = range(len(text) + 1) if before is None else range(before, before + 1)
    for start in starts:
        if after is not None:
            ends = range(len(text) - after, len(text) - after + 1)
        elif size is not None:
            ends = range(start + size, start + size + 1)
        else:
            ends = range(start, len(text) + 1)
        for end in ends:
            if 0 <= start <= end <= len(text):
                yield start, end


def _join(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    """``atomic_list_concat`` with or without a separator; with one, it also splits."""
    between = text_of(bindings, given[1]) if len(given) == 3 else ""
    items, tail = list_items(bindings.resolve(given[0]))
    if tail == EMPTY and all(_is_text(bindings, one) for one in items):
        text = _made(between.join(text_of(bindings, one) for one in items))
        return bindings.unify(given[-1], text)
    if not between:
        raise TypeError("expected a list of atoms and numbers, found others")
    return bindings.unify(given[0], make_list(text_of(bindings, given[-1]).split(between)))


def _atoms_to_text(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    items_of(bindings, given[0])
    return _join(bindings, given)


TEXT_TESTS: Final[dict[tuple[str, int], Test]] = {
    ("name", 2): _name,
    ("atom_length", 2): _atom_length,
    ("atom_codes", 2): _spelled("atom_codes/2", codes=True, wanted="atom"),
    ("atom_chars", 2): _spelled("atom_chars/2", codes=False, wanted="atom"),
    ("number_codes", 2): _spelled("number_codes/2", codes=True, wanted="number"),
    ("number_chars", 2): _spelled("number_chars/2", codes=False, wanted="number"),
    ("atom_number", 2): _atom_number,
    ("char_code", 2): _char_code,
    ("upcase_atom", 2): _cased(str.upper),
    ("downcase_atom", 2): _cased(str.lower),
    ("atomic_list_concat", 2): _atoms_to_text,
    ("atomic_list_concat", 3): _join,
}
"""Predicates of one answer at most."""

TEXT_CHOICES: Final[dict[tuple[str, int], Choice]] = {
    ("atom_concat", 3): atom_concat,
    ("sub_atom", 5): sub_atom,
}
"""Predicates of several answers."""
