"""What DIMACS files for counting ask beside their clauses: which atoms are seen, and what literals weigh.

Dialects differ in how they say what literals weigh. Competitions write ``c p weight LITERAL WEIGHT 0``, and
where one sign alone is given, between 0 and 1, the other weighs the rest to 1. Cachet writes ``w VARIABLE
CHANCE``: the negation weighs the rest to 1, and -1 stands for 1 on either side. d4 and DPMC write ``w LITERAL
WEIGHT``, with negative literals among them: what is not given weighs 1. miniC2D has a line ``c weights`` for
all literals. In all of them, an atom without a line weighs 1 either way.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from lbm.knowledge.original import Original, cut

TRACKS: Final = ("mc", "wmc", "pmc", "pwmc")
"""What ``c t`` lines may ask for: models, their weight, and either of what is seen of them."""

MAX_FRACTION: Final = 1000
"""Characters of the weight of a literal, and its exponent at most."""

_LINE: Final = re.compile(
    rb"\n[ \t]*(?:c[ \t]+(t|ind|max|weights|p[ \t]+[A-Za-z]+)(?!\S)|(w|vp)(?!\S))([^\n]*)"
)
_TRAILER: Final = re.compile(rb"\n[ \t]*%")
_WORD: Final = re.compile(rb"\S+")
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+/[0-9]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?)", re.ASCII
)
_HEADERS: Final = frozenset({b"cnf", b"wcnf", b"pcnf", b"wpcnf"})  # commented out, as some files have them

Weights = Mapping[int, tuple[Fraction, Fraction]]
"""What a variable weighs where it is true, and where it is false."""

_ONE: Final = Fraction(1)


@dataclass(frozen=True, slots=True)
class CountingLines:
    """What the lines ask for.

    Attributes
    ----------
    shown
        The variables that models are seen at; None: all.
    weights
        What literals weigh, by variable; variables without a weight weigh 1 on both sides.
    """

    shown: tuple[int, ...] | None = None
    weights: Weights = field(default_factory=dict)


def read_counting(
    data: bytes,
    variables: int,
    *,
    weighted: bool = False,
    source: str | None = None,
    lenient: bool = False,
    warn: Callable[[str], object] | None = None,
) -> CountingLines:
    r"""Return what a DIMACS text asks for beside its clauses; if these are ``weighted``, only what is shown.

    Where a line ``c t`` names the task, what it does not ask for is left out, and ``warn`` is told.

    >>> found = read_counting(b"c t wmc\np cnf 2 0\nc p weight 1 1/3 0\nc p weight -1 3 0", 2)
    >>> found.weights
    {1: (Fraction(1, 3), Fraction(3, 1))}
    """
    text = Original(data, source, lenient, warn or warnings.warn)
    return _Asking(text, variables, weighted).read()


@dataclass(slots=True)
class _Weight:
    """A weight as written, and where."""

    value: Fraction
    offset: int


class _Asking:
    def __init__(self, text: Original, variables: int, weighted: bool) -> None:
        self.text, self.variables, self.weighted = text, variables, weighted
        self.task: tuple[str, int] | None = None
        self.shown: dict[int, None] = {}
        self.show: int | None = None  # where the first line stands that shows something
        self.given: dict[int, _Weight] = {}  # by literal
        self.dialect: str | None = None

    def read(self) -> CountingLines:
        body = b"\n" + self.text.data
        trailer = _TRAILER.search(body) if b"%" in body else None
        if trailer:
            body = body[: trailer.start()]
        for line in _LINE.finditer(body):
            kind = (line[1] or line[2]).split()
            words = [(word[0], line.start(3) + word.start() - 1) for word in _WORD.finditer(line[3])]
            self._line(kind, words, line.end() - len(line[0].lstrip()) - 1)
        return self._settled()

    def _line(self, kind: list[bytes], words: list[tuple[bytes, int]], offset: int) -> None:
        if kind[-1] == b"show":
            self._show(words, offset)
        elif self.weighted:
            return
        elif kind == [b"vp"]:
            self._show(words, offset)
        elif kind == [b"ind"]:
            if words and words[0][0].lstrip(b"-").isdigit():  # anything else is a comment in words
                self._show(words, offset)
        elif kind == [b"t"]:
            self._task(words, offset)
        elif kind == [b"w"]:
            self._weight(words, offset, "w")
        elif kind == [b"p", b"weight"]:
            self._weight(words, offset, "c p weight")
        elif kind == [b"weights"]:
            self._row(words, offset)
        elif kind == [b"max"]:
            if words and words[-1][0] == b"0" and all(word.lstrip(b"-").isdigit() for word, _ in words):
                raise self.text.error(
                    "the line 'c max' asks for the largest of many counts, which we do not do", offset
                )
        elif kind[1] not in _HEADERS and words and words[-1][0] == b"0":
            what = kind[1].decode()
            raise self.text.error(
                f"expected 'c p show' or 'c p weight', found 'c p {what}': what it asks for we do not do",
                offset,
            )

    def _task(self, words: list[tuple[bytes, int]], offset: int) -> None:
        if len(words) != 1:
            return  # a comment in words
        task = words[0][0].decode(errors="replace")
        task = "pwmc" if task == "wpmc" else task
        if task not in TRACKS:
            raise self.text.error(
                f"expected a task among {', '.join(TRACKS)}, found {cut(words[0][0])!r}: we do no other",
                words[0][1],
            )
        if self.task is not None and self.task[0] != task:
            raise self.text.error(f"a second task: the first one was {self.task[0]}", offset)
        self.task = self.task or (task, offset)

    # -- what is shown --

    def _show(self, words: list[tuple[bytes, int]], offset: int) -> None:
        self.show = offset if self.show is None else self.show
        for word, _ in words[:-1] if words and words[-1][0] == b"0" else words:
            number = int(word) if word.isdigit() and len(word) <= 9 else 0
            if not 1 <= number <= self.variables:
                raise self.text.error(
                    f"expected atoms from 1 to {self.variables} to show, found {cut(word)!r}", offset
                )
            self.shown[number] = None

    # -- what literals weigh --

    def _weight(self, words: list[tuple[bytes, int]], offset: int, dialect: str) -> None:
        ended = len(words) == 3 and words[2][0] == b"0"
        if not (ended or (dialect == "w" and len(words) == 2)):
            form = "w LITERAL WEIGHT" if dialect == "w" else "c p weight LITERAL WEIGHT 0"
            raise self.text.error(f"expected {form!r}", offset)
        self._only(dialect, offset)
        (word, place), (weight, there) = words[:2]
        literal = int(word) if re.fullmatch(rb"-?[0-9]{1,9}", word) else 0
        if not 1 <= abs(literal) <= self.variables:
            raise self.text.error(
                f"expected a literal of the atoms from 1 to {self.variables}, found {cut(word)!r}", place
            )
        self._give(literal, weight, there)

    def _row(self, words: list[tuple[bytes, int]], offset: int) -> None:
        """Read one line with the weights of all literals, as miniC2D has it."""
        if not words or not all(_NUMBER.fullmatch(word.decode(errors="replace")) for word, _ in words):
            return  # a comment in words
        self._only("c weights", offset)
        if len(words) != 2 * self.variables:
            raise self.text.error(
                f"expected two weights for each of the {self.variables} atoms, found {len(words)} in all",
                offset,
            )
        for place, (word, there) in enumerate(words):
            self._give((-1) ** place * (place // 2 + 1), word, there)

    def _only(self, dialect: str, offset: int) -> None:
        if self.dialect not in (None, dialect):
            raise self.text.error(f"expected weights as before, in lines '{self.dialect}'", offset)
        self.dialect = dialect

    def _give(self, literal: int, word: bytes, offset: int) -> None:
        weight = self._number(word, offset, allow=-1 if self.dialect == "w" else None)
        before = self.given.setdefault(literal, _Weight(weight, offset))
        if before.value != weight:
            raise self.text.error(f"the literal {literal} weighs {before.value} already", offset)

    def _number(self, word: bytes, offset: int, *, allow: int | None) -> Fraction:
        written = word.decode(errors="replace")
        found = _NUMBER.fullmatch(written)
        if not found or written.endswith("/0"):
            raise self.text.error(f"expected a weight, as 0.25, 1e-3 or 1/3, found {cut(word)!r}", offset)
        if len(word) > MAX_FRACTION or len((found[1] or "").lstrip("+-0")) > 3:
            raise self.text.error(
                f"the weight {cut(word)} is too long: at most {MAX_FRACTION} characters, and exponents "
                "below that (limit MAX_FRACTION)",
                offset,
            )
        try:
            weight = Fraction(written)
        except ZeroDivisionError:
            raise self.text.error(
                f"expected a weight, found {cut(word)!r}: division by zero", offset
            ) from None
        if weight < 0 and weight != allow:
            raise self.text.error(f"literals weigh 0 or more, found {cut(word)}", offset)
        return weight

    # -- all together --

    def _settled(self) -> CountingLines:
        weights: Weights = self._completed()
        shown = tuple(self.shown) if self.show is not None else None
        if self.task is not None:
            task, offset = self.task
            if "w" not in task and weights:
                self.text.remark(f"'c t {task}' asks for no weights: those of literals are left out", offset)
                weights = {}
            if "p" not in task and shown is not None:
                assert self.show is not None
                self.text.remark(
                    f"'c t {task}' asks for whole models: which atoms are to be shown is left out", self.show
                )
                shown = None
            if "p" in task and shown is None:
                self.text.remark(
                    f"'c t {task}' without a line 'c p show' shows no atom: what is counted is 1 or 0",
                    offset,
                )
                shown = ()
        if shown is not None:
            weights = self._inside(weights, shown)
        return CountingLines(shown, weights)

    def _completed(self) -> dict[int, tuple[Fraction, Fraction]]:
        """Return both weights of every atom that has one, those that weigh nothing else than 1 left out."""
        found: dict[int, tuple[Fraction, Fraction]] = {}
        signed = any(literal < 0 for literal in self.given)
        remarked = False
        for literal, weight in self.given.items():
            other = self.given.get(-literal)
            if other is None and self.dialect == "w" and not signed and weight.value == -1:
                pair = _ONE, _ONE
            elif weight.value < 0:
                raise self.text.error("literals weigh 0 or more, found -1", weight.offset)
            elif other is not None:
                pair = weight.value, other.value
            elif self.dialect == "w" and signed:
                pair = weight.value, _ONE
            else:
                self._check_alone(literal, weight)
                pair = weight.value, _ONE - weight.value
                if self.dialect != "w" and not remarked:
                    remarked = True
                    self.text.remark(
                        f"{literal} has a weight and {-literal} has none: such pairs weigh 1 together",
                        weight.offset,
                    )
            if pair != (_ONE, _ONE):
                found[abs(literal)] = pair if literal > 0 else pair[::-1]
        return found

    def _check_alone(self, literal: int, weight: _Weight) -> None:
        """Raise unless a weight alone says what the negation weighs."""
        cachet = self.dialect == "w"
        if 0 < weight.value < 1 or (cachet and weight.value in (0, 1)):
            return
        raise self.text.error(
            f"the weight {weight.value} of {literal} does not say what {-literal} weighs: "
            f"it does {'from' if cachet else 'strictly between'} 0 {'to' if cachet else 'and'} 1; give both",
            weight.offset,
        )

    def _inside(self, weights: Weights, shown: tuple[int, ...]) -> Weights:
        """Return the weights of the atoms shown; others have no part in what is counted."""
        seen = set(shown)
        hidden = [variable for variable in weights if variable not in seen]
        if hidden:
            place = min(w.offset for literal, w in self.given.items() if abs(literal) in hidden)
            self.text.complain(
                f"weights are for the atoms that are shown, and {hidden[0]} is not among them", place
            )
        return {variable: pair for variable, pair in weights.items() if variable in seen}
