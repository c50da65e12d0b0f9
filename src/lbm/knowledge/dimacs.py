"""DIMACS and WCNF text <-> packed clauses, whole arrays at a time.

Reading never goes clause by clause: comments are blanked, the rest is checked to be numbers and
handed to NumPy at once. Only when something is wrong is it looked for, to say where. Blanking
keeps every length, so a place in the blanked text is the same place in the text as given.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lbm.errors import LbmError, ParseError, WeightError
from lbm.knowledge.clauses import Clauses, whole_numbers
from lbm.knowledge.formula import RESERVED, quote
from lbm.knowledge.numbers import Weight, digits_of, read_weight, whole
from lbm.knowledge.original import Original
from lbm.knowledge.parser import parse

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ATOMS: Final = 10_000_000
"""Atoms in one DIMACS file: each gets a name, and a header alone must not fill the memory."""

MAX_WHOLE_WEIGHT: Final = 2**63 - 1
"""The largest weight of a WCNF file."""

_HARD: Final = -(2**31)  # stands for `h` among the numbers: no literal is as large, no weight negative
_CHUNK: Final = 1 << 16  # clauses written at a time

_BLANKS: Final = b" \t\n\r\v\f"
_TRAILER: Final = re.compile(rb"^[ \t]*%", re.MULTILINE)
_FIRST_COMMENT: Final = re.compile(rb"[ \t]*c[^\n]*")
_COMMENT: Final = re.compile(
    rb"\n[ \t]*c[^\n]*"
)  # a pattern that starts with a byte is found ten times faster
_COUNTING: Final = re.compile(rb"\n[ \t]*(?:w|vp)(?!\S)[^\n]*")  # lines of counting.py
_HEADER: Final = re.compile(rb"p(?!\S)[^\n]*")
_NAMED: Final = re.compile(rb"^[ \t]*c[ \t]+atom[ \t]+([0-9]{1,40})[ \t]+([^\n]+)", re.MULTILINE)
_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")
_DECIMAL: Final = re.compile(r"-?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")
_UNSIGNED: Final = re.compile(
    rb"(?<!\S)(?=[0-9.]*[.eE])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?(?!\S)"
)
_GARBAGE: Final = {
    False: re.compile(rb"[^0-9\s-]|-(?![1-9])|(?<=\S)-"),
    True: re.compile(rb"[^0-9\sh-]|-(?![1-9])|(?<=\S)-|h(?=\S)|(?<=\S)h"),
}


# --- reading -------------------------------------------------------------------------------------


def read_clauses(
    data: bytes,
    *,
    weighted: bool,
    source: str | None = None,
    lenient: bool = False,
    warn: Callable[[str], object] | None = None,
) -> Clauses:
    r"""Return the clauses of a ``.cnf`` text or, ``weighted``, of a ``.wcnf`` text in either form.

    What does not fit its header is an error; with ``lenient`` it is told to ``warn`` (by default
    a Python warning) and read as it stands. What is no number is always an error. Where weights are decimals,
    those of the clauses are times 10^digits.

    Examples
    --------
    >>> clauses = read_clauses(b"h 1 -2 0\n5 2 0", weighted=True)
    >>> [str(clause) for clause in clauses], clauses.weights.tolist()
    (['x1 | ~x2', '5: x2'], [0, 5])
    """
    text = Original(data, source, lenient, warn or warnings.warn)
    trailer = _TRAILER.search(data) if b"%" in data else None
    body = data[: trailer.start()] if trailer else data
    names = read_names(body) if b"atom" in body else {}
    first = _FIRST_COMMENT.match(body)
    if first:
        body = b" " * first.end() + body[first.end() :]
    body = _COMMENT.sub(lambda found: b"\n".ljust(len(found[0])), body)
    if not weighted and (b"w" in body or b"v" in body):
        body = _COUNTING.sub(lambda found: b"\n".ljust(len(found[0])), b"\n" + body)[1:]
    header, body = _read_header(text, body, weighted)

    newer = weighted and header is None
    decimals: dict[int, Weight] = {}
    if weighted and (b"." in body or b"e" in body or b"E" in body):
        body, decimals = _read_decimals(text, body)
    values = _read_numbers(text, body, with_hard=newer)
    if len(values) and values[-1] != 0:
        text.complain("the last clause does not end in 0", _place(body, len(values) - 1))
        body, values = body + b" 0", np.append(values, 0)
    if weighted and len(values) and _empty_segments(values).any():
        body = _without_zero_weights(text, body, values)
        values = _read_numbers(text, body, with_hard=newer)

    zeros = np.flatnonzero(values == 0)
    places = np.flatnonzero(values)
    weights: NDArray[Any] = np.zeros(len(zeros), np.int64)
    starts = np.zeros(len(zeros) + 1, np.int64)
    digits = 0
    # Before the j-th zero stand j zeros and, if there are weights, j + 1 of them; the rest are literals.
    starts[1:] = zeros - np.arange(len(zeros))
    if weighted:
        firsts = np.append(0, zeros[:-1] + 1) if len(zeros) else zeros
        weights = _read_weights(text, body, values, firsts, header)
        if decimals:
            weights, digits = _scaled(text, weights, decimals, _token_starts(body)[firsts], header)
        values[firsts] = 0
        places = np.flatnonzero(values)
        starts[1:] -= np.arange(1, len(zeros) + 1)
    literals = values[places]
    number = _count_atoms(text, body, header, literals, places, names)
    if header is not None and header.clauses != len(zeros):
        promised = f"{header.clauses} clause{'' if header.clauses == 1 else 's'}"
        text.complain(f"the header promises {promised}, the file has {len(zeros)}", header.offset)
    return Clauses(name_atoms(number, names), literals.astype(np.int32), starts, weights, digits=digits)


def _too_large(text: Original, offset: int) -> ParseError:
    """Return the error for a number that is past the limits."""
    return text.error(
        f"the number {text.word(offset)} is too large: at most {MAX_ATOMS} atoms (limit MAX_ATOMS), "
        f"weights up to {MAX_WHOLE_WEIGHT} (limit MAX_WHOLE_WEIGHT)",
        offset,
    )


def _token_starts(body: bytes) -> NDArray[np.int64]:
    ink = np.frombuffer(b" " + body, np.uint8) > ord(" ")
    return np.flatnonzero(ink[1:] & ~ink[:-1])


def _place(body: bytes, index: int | np.int64) -> int:
    return int(_token_starts(body)[index])


@dataclass(frozen=True, slots=True)
class _Header:
    """What ``p cnf ATOMS CLAUSES`` or ``p wcnf ATOMS CLAUSES TOP`` promises, and where it stands."""

    atoms: int
    clauses: int
    top: int | None
    offset: int


def _read_header(text: Original, body: bytes, weighted: bool) -> tuple[_Header | None, bytes]:
    """Return what the header says, and the text with the header blanked."""
    found = [
        match
        for match in _HEADER.finditer(body)
        if not body[body.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip()
    ]
    if len(found) > 1:
        text.complain("a second header: a file has one", found[1].start())
    pieces, end = [], 0
    for match in found:
        pieces += [body[end : match.start()], b" " * len(match[0])]
        end = match.end()
    body = b"".join([*pieces, body[end:]])
    start = len(body) - len(body.lstrip())
    if not found:
        if not weighted:
            seen = repr(text.word(start)) if start < len(body) else "nothing"
            text.complain(
                f"expected the header 'p cnf ATOMS CLAUSES', found {seen}", min(start, len(text.data))
            )
        return None, body
    offset = found[0].start()
    if start < offset:
        text.complain(f"expected the header before the first clause, found {text.word(start)!r}", start)
    kind, form = ("wcnf", "p wcnf ATOMS CLAUSES TOP") if weighted else ("cnf", "p cnf ATOMS CLAUSES")
    _, *words = found[0][0].decode(errors="replace").split()
    if words[:1] in (["cnf"], ["wcnf"]) and words[0] != kind:
        raise text.error(f"expected 'p {kind}', found 'p {words[0]}': read this text as .{words[0]}", offset)
    if words[:1] in (["pcnf"], ["wpcnf"]) and not weighted:
        kind, form = words[0], f"p {words[0]} ATOMS CLAUSES SHOWN"
    most = 2 + (kind != "cnf")
    numbers = [int(word) for word in words[1:] if re.fullmatch("[0-9]{1,40}", word)]
    if words[:1] != [kind] or len(numbers) != len(words) - 1 or not 2 <= len(numbers) <= most:
        raise text.error(
            f"expected {form!r} with whole numbers, found {' '.join(['p', *words])[:60]!r}", offset
        )
    atoms, clauses, *top = numbers
    if atoms > MAX_ATOMS:
        raise text.error(f"at most {MAX_ATOMS} atoms (limit MAX_ATOMS), and the header says {atoms}", offset)
    if not weighted:
        return _Header(atoms, clauses, None, offset), body
    if top == [0]:
        raise text.error("hard clauses weigh at least 1, and the header says 0", offset)
    return _Header(atoms, clauses, top[0] if top else None, offset), body


def _read_numbers(text: Original, body: bytes, *, with_hard: bool) -> NDArray[np.int64]:
    """Return the numbers of the text; where ``h`` is allowed it becomes _HARD.

    NumPy reads blanks as 0, '- 3' as -3 and what is past 2^63 - 1 as that number, so everything is
    checked before it sees the text, and large numbers afterwards by whom they concern.
    """
    if not body or body.isspace():
        return np.zeros(0, np.int64)
    codes = np.frombuffer(body, np.uint8)
    dash, ink = codes == ord("-"), codes > ord(" ")
    wrong = (
        bool(body.translate(None, b"0123456789-" + _BLANKS + b"h" * with_hard))
        or bool(dash[-1])
        or bool((dash[:-1] & (codes[1:] < ord("1"))).any() or (dash[1:] & ink[:-1]).any())
    )
    if with_hard and not wrong:
        hard = codes == ord("h")
        wrong = bool((hard[1:] & ink[:-1]).any() or (hard[:-1] & ink[1:]).any())
    if wrong:
        raise _garbage(text, body, with_hard)
    if with_hard:
        large = body.find(b"%d" % _HARD)
        if large >= 0:
            raise _too_large(text, large)
        body = body.replace(b"h", b"%d" % _HARD)
    return np.fromstring(body, np.int64, sep=" ")


def _garbage(text: Original, body: bytes, with_hard: bool) -> ParseError:
    match = _GARBAGE[with_hard].search(body)
    assert match is not None, "this pattern and the checks on arrays say the same"
    before = body[max(0, match.start() - 40) : match.start()]
    offset = match.start() - len(before) + len(before.rstrip(b"-0123456789h"))
    word = text.word(offset)
    if re.search("[0-9]", word) and re.search("[.eE]", word) and _DECIMAL.fullmatch(word):
        return text.error(f"expected a whole number, found {word}", offset)
    return text.error(f"expected {'h or ' * with_hard}a whole number, found {word!r}", offset)


def _empty_segments(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each number whether it is a 0 where a clause begins."""
    zero: NDArray[np.bool_] = values == 0
    zero[1:] &= zero[:-1].copy()
    return zero


def _without_zero_weights(text: Original, body: bytes, values: NDArray[np.int64]) -> bytes:
    """Return the text with the clauses of weight 0 blanked, if the reading is lenient."""
    places = _token_starts(body)
    if not text.lenient:
        raise text.error("a clause of weight 0 says nothing", int(places[_empty_segments(values)][0]))
    blanked, first, dropped = bytearray(body), 0, list[int]()
    edges = [*places.tolist(), len(body)]
    for zero in np.flatnonzero(values == 0).tolist():
        if zero == first:
            dropped.append(first)
            continue  # this 0 is the weight; the next one ends the clause
        if dropped and dropped[-1] == first:
            start, end = edges[first], edges[zero + 1]
            blanked[start:end] = b" " * (end - start)
        first = zero + 1
    if dropped[-1] == first:  # the text ends in a weight of 0
        blanked[edges[first] :] = b" " * (len(body) - edges[first])
    message = f"clauses of weight 0 say nothing and are left out: {len(dropped)} of them, the first one here"
    text.complain(message, edges[dropped[0]])
    return bytes(blanked)


def _read_weights(
    text: Original, body: bytes, values: NDArray[np.int64], firsts: NDArray[np.int64], header: _Header | None
) -> NDArray[np.int64]:
    """Return the weight of each clause, 0 for the hard ones."""
    weights = values[firsts]
    if header is None:
        hard = weights == _HARD
        inside = values == _HARD
        inside[firsts] = False
        if inside.any():
            place = _place(body, np.flatnonzero(inside)[0])
            raise text.error("h inside a clause: the one before it has no 0", place)
    elif header.top is None or header.top > MAX_WHOLE_WEIGHT:
        hard = np.zeros(len(weights), bool)
    else:
        hard = weights >= header.top
    # NumPy reads every number that does not fit as the largest one: look at the text again.
    largest = np.flatnonzero(weights == MAX_WHOLE_WEIGHT)
    offsets = _token_starts(body)[firsts[largest]] if len(largest) else largest
    for index, offset in zip(largest.tolist(), offsets.tolist(), strict=True):
        word = text.word(offset).lstrip("0")
        if word != str(MAX_WHOLE_WEIGHT) and (not hard[index] or word.startswith("-")):
            raise _too_large(text, offset)
    negative = np.flatnonzero((weights < 0) & ~hard)
    if len(negative):
        place = _place(body, firsts[negative[0]])
        raise text.error(f"a weight is a whole number from 1 up, found {text.word(place)}", place)
    return np.where(hard, 0, weights)


def _read_decimals(text: Original, body: bytes) -> tuple[bytes, dict[int, Weight]]:
    """Return the text with 1 in place of decimals, or 0 for one that is 0, and the decimals by place."""
    found: dict[int, Weight] = {}

    def read(match: re.Match[bytes]) -> bytes:
        try:
            exact = Decimal(match[0].decode())
            if exact:
                found[match.start()] = read_weight(match[0].decode())
        except WeightError as error:
            raise text.error(error.one_line(), match.start()) from None
        return (b"1" if exact else b"0").ljust(len(match[0]))

    return _UNSIGNED.sub(read, body), found


def _scaled(
    text: Original,
    weights: NDArray[np.int64],
    decimals: dict[int, Weight],
    offsets: NDArray[np.int64],
    header: _Header | None,
) -> tuple[NDArray[Any], int]:
    """Return all weights times 10^digits, and digits, where some of them are decimals."""
    clause = {offset: number for number, offset in enumerate(offsets.tolist())}
    for offset in decimals:
        if offset not in clause:
            raise text.error(f"expected a whole number, found {text.word(offset)}", offset)
    top = None if header is None else header.top
    digits = max(digits_of(weight) for weight in decimals.values())
    found = [weight * 10**digits for weight in weights.tolist()]
    for offset, weight in decimals.items():
        hard = top is not None and weight >= top
        found[clause[offset]] = 0 if hard else whole(weight, digits)
    return whole_numbers(found), digits


def _count_atoms(
    text: Original,
    body: bytes,
    header: _Header | None,
    literals: NDArray[np.int64],
    places: NDArray[np.int64],
    names: dict[int, str],
) -> int:
    """Return the number of atoms: the header's, or else the largest that is used or named."""
    largest = max(int(literals.max()), -int(literals.min())) if len(literals) else 0
    for limit in (MAX_ATOMS, MAX_ATOMS if header is None else header.atoms):
        if largest > limit:
            beyond = np.flatnonzero((literals > limit) | (literals < -limit))
            place = _place(body, places[beyond[0]])
            if limit == MAX_ATOMS:
                raise _too_large(text, place)
            text.complain(f"the literal {text.word(place)} is beyond the header's {limit} atoms", place)
    if header is not None:
        return max(largest, header.atoms)
    return max(largest, *(number for number in (0, *names) if number <= MAX_ATOMS))


def read_names(body: bytes) -> dict[int, str]:
    """Return the names that comments ``c atom 3 rain`` give; if one makes no sense, none at all."""
    names: dict[int, str] = {}
    for found in _NAMED.finditer(body):
        try:
            word = found[2].decode().strip()
            if not _PLAIN_NAME.fullmatch(word) or word in RESERVED:
                formula = parse(word)
                if formula.kind != "atom":
                    return {}
                word = formula.label
        except (LbmError, UnicodeDecodeError):
            return {}
        if names.setdefault(int(found[1]), word) != word:
            return {}
    return names


def name_atoms(number: int, names: dict[int, str]) -> tuple[str, ...]:
    """Return x1, x2, ... with the given names in their places, if these fit and all are distinct."""
    usual = tuple(map("x".__add__, map(str, range(1, number + 1))))
    if not names or min(names) < 1 or max(names) > number:
        return usual
    found = list(usual)
    for place, name in names.items():
        found[place - 1] = name
    return tuple(found) if len(set(found)) == number else usual


# --- writing -------------------------------------------------------------------------------------


def write_cnf(clauses: Clauses, comments: Iterable[str] = ()) -> Iterator[str]:
    """Yield the clauses as ``.cnf`` text, many lines at a time."""
    yield from comment_lines(comments, _named(clauses))
    yield f"p cnf {clauses.variables} {len(clauses)}\n"
    yield from _lines(clauses, None)


def write_wcnf(clauses: Clauses, comments: Iterable[str] = (), *, old: bool = False) -> Iterator[str]:
    """Yield the clauses as ``.wcnf`` text: in the newer form, or in the old one with its header."""
    weights, named = clauses.weights, _named(clauses)
    if old:
        top = 1 + sum(weights.tolist())
        if top > MAX_WHOLE_WEIGHT:
            raise WeightError(
                f"in the old .wcnf form hard clauses weigh 1 + the sum of the weights, here {top}, past "
                f"{MAX_WHOLE_WEIGHT} (limit MAX_WHOLE_WEIGHT): write the newer form or .lbm"
            )
        yield from comment_lines(comments, named)
        yield f"p wcnf {clauses.variables} {len(clauses)} {top}\n"
        yield from _lines(clauses, np.where(weights == 0, top, weights))
        return
    number, literals = clauses.variables, clauses.literals
    if number and number not in named and not (literals.size and number in (literals.max(), -literals.min())):
        named[number] = f"x{number}"  # without a header, nothing else would say how many atoms there are
    remarks = list(comments)
    if not remarks and not named and not len(clauses):
        remarks = ["no clauses"]  # an empty file could not be told from a broken one
    yield from comment_lines(remarks, named)
    yield from _lines(clauses, np.where(weights == 0, _HARD, weights))


def unusual_names(atoms: Iterable[str]) -> dict[int, str]:
    """Return names other than x7 for 7, by number."""
    return {number: name for number, name in enumerate(atoms, start=1) if name != f"x{number}"}


def _named(clauses: Clauses) -> dict[int, str]:
    """Return names other than x7 for 7, by number; a definition has one only where an atom is called x7."""
    named = unusual_names(clauses.atoms)
    taken = set(named.values())
    for number in range(len(clauses.atoms) + 1, clauses.variables + 1):
        name = f"x{number}"
        while name in taken:
            name += "_"
        if name != f"x{number}":
            named[number] = name
            taken.add(name)
    return named


def comment_lines(comments: Iterable[str], named: dict[int, str]) -> Iterator[str]:
    """Yield comments, and those that name atoms by number."""
    for comment in comments:
        yield f"c {comment}\n"
    for number, name in named.items():
        yield f"c atom {number} {quote(name)}\n"


def _lines(clauses: Clauses, weights: NDArray[np.int64] | None) -> Iterator[str]:
    """Yield one line per clause: its weight if it has one, its literals, and a 0."""
    lead = 0 if weights is None else 1
    for first in range(0, len(clauses), _CHUNK):
        starts = clauses.starts[first : first + _CHUNK + 1]
        literals, lengths = clauses.literals[starts[0] : starts[-1]], np.diff(starts)
        shift = np.arange(len(lengths)) * (1 + lead)
        tokens = np.zeros(len(literals) + len(lengths) * (1 + lead), np.int64)
        tokens[np.arange(len(literals)) + np.repeat(shift + lead, lengths)] = literals
        if weights is not None:
            tokens[starts[:-1] - starts[0] + shift] = weights[first : first + _CHUNK]
        # A 0 behind a blank is the end of a clause and nothing else.
        text = " " + " ".join(map(str, tokens.tolist()))
        text = text.replace(f" {_HARD} ", " h ") if lead else text
        yield text.replace(" 0", " 0\n").replace("\n ", "\n")[1:]
