"""Formula -> strict DNF by its structure.

The paper's equation (conj_ext), g | h = g | (~g & h), for any g and h: a clause of k literals gives k
cubes, an implication with k body literals k + 1. Products of the strict DNFs of two formulae are the
strict DNF of their conjunction; where the two share no atoms nothing is lost by it.

[TG21, equation short_horn_dnf] prints the general case wrongly; the worked example below it is
right, and is what this gives. [ERRATA 1]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from lbm.errors import TooManyCubes
from lbm.knowledge.formula import Formula
from lbm.logic.anatomy import Signed, View, strip, view

HUGE: Final = 10**18
"""Sizes are not told apart beyond this."""

MAX_STATES: Final = 1_000_000
"""Steps spent on counting the cubes of one cardinality; past it its size is called HUGE."""

Mask = tuple[int, int]
"""A cube as two bit sets: the atoms it wants true, the atoms it wants false."""

T = TypeVar("T")


class Elimination:
    """Sizes and cubes of formulae by elimination; parts that formulae share are done once."""

    def __init__(self) -> None:
        self._views: dict[Signed, View] = {}
        self._sizes: dict[Formula, Mask] = {}

    def size(self, formula: Formula) -> int:
        """Return how many cubes elimination gives, at most: cubes that contradict themselves fall out."""
        return self._size(strip(formula))

    def _size(self, part: Signed) -> int:
        node, positive = part
        if node not in self._sizes:
            self._measure(node)
        return self._sizes[node][0 if positive else 1]

    def _measure(self, root: Formula) -> None:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node in self._sizes:
                continue
            if not ready:
                stack.append((node, True))
                stack.extend((part, False) for part, _ in self._seen((node, True)).parts if part is not node)
            else:
                self._sizes[node] = self._measured(self._seen((node, True)))

    def _measured(self, seen: View) -> Mask:
        """Return the sizes of a formula and of its negation from those of its parts."""
        if seen.op == "literal":
            return 1, 1
        if seen.op == "constant":
            return int(seen.label), int(not seen.label)
        pairs = [(self._size((part, sign)), self._size((part, not sign))) for part, sign in seen.parts]
        if seen.op == "or":
            return _capped(_disjunction_size(pairs))
        if seen.op == "and":
            yes, no = _disjunction_size([(no, yes) for yes, no in pairs])
            return _capped((no, yes))
        if seen.op == "xor":
            odd, even = 0, 1
            for yes, no in pairs:
                odd, even = _capped((odd * no + even * yes, even * no + odd * yes))
            return (odd, even) if seen.label else (even, odd)
        if len(pairs) * (min(seen.label[1], len(pairs)) + 1) > MAX_STATES:
            return HUGE, HUGE
        least, most, inside = seen.label
        shortest = _paths(len(pairs), least, most)
        if shortest is not None and min(shortest) >= HUGE and all(yes and no for yes, no in pairs):
            return HUGE, HUGE
        yes = count_up(pairs, seen.label, 1, 0, capped_sum)
        no = count_up(pairs, (least, most, not inside), 1, 0, capped_sum)
        return yes, no

    def cubes(self, formula: Formula, place: dict[str, int], limit: int) -> list[Mask]:
        """Return the strict DNF of ``formula``; ``place`` numbers its atoms from 0.

        Raises TooManyCubes where it would pass ``limit``.
        """
        root = strip(formula)
        if self._size(root) > limit:
            raise TooManyCubes(
                f"elimination gives up to {_said(self._size(root))} cubes, more than {limit}: "
                "try method='auto', which may use definitional atoms, or a larger budget",
                budget=limit,
            )
        made: dict[Signed, list[Mask]] = {}
        stack = [root]
        while stack:
            part = stack[-1]
            if part in made:
                stack.pop()
                continue
            seen = self._seen(part)
            needed = [need for need in self._needs(seen) if need not in made]
            if needed:
                stack += needed
            else:
                made[part] = self._build(part, seen, made, place)
                stack.pop()
        return made[root]

    def _seen(self, part: Signed) -> View:
        """Return the view of a part."""
        if part not in self._views:
            self._views[part] = view(*part)
        return self._views[part]

    def _needs(self, seen: View) -> list[Signed]:
        """Return the parts, and the negated parts, whose cubes are put together."""
        if seen.op in ("literal", "constant"):
            return []
        if seen.op == "and":
            return list(seen.parts)
        both = [*seen.parts, *((part, not sign) for part, sign in seen.parts)]
        return both[:-1] if seen.op == "or" and len(seen.parts) == 1 else both

    def _build(
        self, part: Signed, seen: View, made: dict[Signed, list[Mask]], place: dict[str, int]
    ) -> list[Mask]:
        if seen.op == "literal":
            bit = 1 << place[seen.label]
            return [(bit, 0) if part[1] else (0, bit)]
        if seen.op == "constant":
            return [(0, 0)] if seen.label else []
        if seen.op == "and":
            cubes = [(0, 0)]
            for item in seen.parts:
                cubes = times(cubes, made[item])
            return cubes
        pairs = [(made[(node, sign)], made.get((node, not sign), [])) for node, sign in seen.parts]
        if seen.op == "or":
            sizes = [(self._size(item), self._size((item[0], not item[1]))) for item in seen.parts]
            cubes, rest = [], [(0, 0)]
            for index in disjunction_order(sizes):
                yes, no = pairs[index]
                cubes = cubes + times(rest, yes)
                rest = times(rest, no)
            return cubes
        if seen.op == "xor":
            odd: list[Mask] = []
            even: list[Mask] = [(0, 0)]
            for yes, no in pairs:
                odd, even = times(odd, no) + times(even, yes), times(even, no) + times(odd, yes)
            return odd if seen.label else even
        return count_up(
            pairs, seen.label, [(0, 0)], [], lambda yes, up, no, stay: times(yes, up) + times(no, stay)
        )


def times(left: Sequence[Mask], right: Sequence[Mask]) -> list[Mask]:
    """Return every consistent conjunction of a cube of each side."""
    return [
        (true | more_true, false | more_false)
        for true, false in left
        for more_true, more_false in right
        if not (true | more_true) & (false | more_false)
    ]


def disjunction_order(sizes: Sequence[Mask]) -> list[int]:
    """Return the order of parts in which g1 | (~g1 & g2) | (~g1 & ~g2 & g3) | ... is shortest.

    With c_i cubes for part i and n_i for its negation the sum is c1 + n1·c2 + n1·n2·c3 + ...;
    exchanging neighbours shows that it is least in increasing order of (n_i - 1)/c_i. Literals come
    first, as they were written.
    """
    return sorted(range(len(sizes)), key=lambda i: (sizes[i][1] - 1) / sizes[i][0] if sizes[i][0] else HUGE)


def _disjunction_size(sizes: Sequence[Mask]) -> Mask:
    total, rest = 0, 1
    for index in disjunction_order(sizes):
        yes, no = sizes[index]
        total, rest = _capped((total + rest * yes, rest * no))
    return total, rest


def count_up(
    pairs: Sequence[tuple[T, T]],
    label: tuple[int, int, bool],
    always: T,
    never: T,
    join: Callable[[T, T, T, T], T],
) -> T:
    """Return what a cardinality comes to, part after part.

    From the last part back: with j parts true so far, ``join(yes, one more, no, as before)``. A state
    from which every end is allowed is ``always``, one from which none is, ``never``.
    """
    least, most, inside = label
    number = len(pairs)

    def settled(i: int, j: int) -> bool | None:
        if j > most or j + number - i < least:
            return not inside
        return inside if least <= j and j + number - i <= most else None

    row: dict[int, T] = {}
    for i in range(number, -1, -1):
        new: dict[int, T] = {}
        for j in range(min(i, most + 1) + 1):
            end = settled(i, j)
            if end is not None:
                new[j] = always if end else never
            else:
                yes, no = pairs[i]
                up = row[j + 1]
                new[j] = join(yes, up, no, row[j])
        row = new
    return row[0]


def _paths(number: int, least: int, most: int) -> Mask | None:
    """Return how many cubes say that least to most of ``number`` atoms are true, and that they are not.

    None: they are bounded on both sides, and not to one number. Parts that are no atoms make more of them.
    """
    if least > most or least < 0 or most > number:
        return None
    if least == most:
        beside = (math.comb(number, least + 1), math.comb(number, least - 1) if least else 0)
        return math.comb(number, least), sum(beside)
    if most == number and least:
        return math.comb(number, least), math.comb(number, least - 1)
    if not least and most < number:
        return math.comb(number, most), math.comb(number, most + 1)
    return None


def _capped(pair: Mask) -> Mask:
    return min(pair[0], HUGE), min(pair[1], HUGE)


def capped_sum(yes: int, up: int, no: int, stay: int) -> int:
    """Return how many cubes two products have together, or HUGE."""
    return min(yes * up + no * stay, HUGE)


def _said(size: int) -> str:
    return f"more than {HUGE:.0e}" if size >= HUGE else str(size)
