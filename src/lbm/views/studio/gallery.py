"""Theories to begin with."""

from __future__ import annotations

from typing import Final

_SIZE: Final = 4  # of the Sudoku


def _sudoku() -> str:
    """Return a Sudoku of four rows, with four digits given."""
    places = [(row, column) for row in range(_SIZE) for column in range(_SIZE)]

    def cell(row: int, column: int, digit: int) -> str:
        return f"d{digit}_r{row + 1}c{column + 1}"

    lines = ["# Every cell has one digit; every row, column and square has each digit once."]
    digits = range(1, _SIZE + 1)
    lines += [f"exactly(1, {', '.join(cell(r, c, digit) for digit in digits)})" for r, c in places]
    groups = [[(i, j) for j in range(_SIZE)] for i in range(_SIZE)]
    groups += [[(j, i) for j in range(_SIZE)] for i in range(_SIZE)]
    groups += [[(i + a, j + b) for a in (0, 1) for b in (0, 1)] for i in (0, 2) for j in (0, 2)]
    lines += [
        f"exactly(1, {', '.join(cell(r, c, digit) for r, c in group)})"
        for group in groups
        for digit in digits
    ]
    given = [(0, 0, 1), (1, 2, 3), (2, 1, 4), (3, 3, 2)]
    return "\n".join([*lines, "# What is given:", *(cell(r, c, digit) for r, c, digit in given)])


GALLERY: Final = {
    "Nixon diamond": (
        "# n: Nixon; r: a Republican; q: a Quaker; p: a pacifist\n"
        "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
    ),
    "XOR": "out <-> (x ^ y)",
    "Umbrella": (
        "# The sky speaks of rain; so do people with umbrellas.\n"
        "1.5: clouds -> rain\n2: rain -> umbrella\n2: umbrella -> rain\n~(rain & dry)\ndry | rain"
    ),
    "Colouring": (
        "domain place = {north, south, east}\n"
        "forall X in place: exactly(1, red(X), green(X), blue(X))\n"
        "forall X, Y in place, X != Y: ~(red(X) & red(Y)) & ~(green(X) & green(Y)) & ~(blue(X) & blue(Y))\n"
        "1: red(north)"
    ),
    "Runners": (
        "# Who came in before whom: an order, of which two results are known.\n"
        "domain runner = {ann, ben, cem, dan}\n"
        "forall X, Y in runner, X != Y: before(X, Y) ^ before(Y, X)\n"
        "forall X, Y, Z in runner, X != Y, Y != Z, X != Z: before(X, Y) & before(Y, Z) -> before(X, Z)\n"
        "before(ann, ben)\nbefore(ben, cem)"
    ),
    "Family": (
        "domain person = {ada, bob, cleo}\n"
        "forall X, Y in person, X != Y: parent(X, Y) -> older(X, Y)\n"
        "forall X, Y in person, X != Y: older(X, Y) -> ~older(Y, X)\n"
        "forall X, Y, Z in person, X != Y, Y != Z, X != Z: parent(X, Y) & parent(Y, Z) -> grandparent(X, Z)\n"
        "parent(ada, bob)\n2: parent(bob, cleo)"
    ),
    "Sudoku": _sudoku(),
}
"""Theories by the name that the page gives them."""
