"""Tic-tac-toe: every board on which a game can end."""

from __future__ import annotations

from typing import Final

import numpy as np

from lbm.datasets.dataset import Dataset, attribute_table, whole
from lbm.knowledge.formula import atom, conjunction, disjunction, iff
from lbm.knowledge.theory import Theory

SQUARES: Final = tuple(f"{file}{rank}" for rank in "123" for file in "abc")
"""Names of the nine squares, file and rank as in chess."""

LINES: Final = (
    *(tuple(f"{file}{rank}" for file in "abc") for rank in "123"),
    *(tuple(f"{file}{rank}" for rank in "123") for file in "abc"),
    ("a1", "b2", "c3"),
    ("a3", "b2", "c1"),
)
"""The eight lines of three squares: ranks, files, diagonals."""

_BLANK: Final = "b"
_LINES_AS_PLACES: Final = tuple(tuple(SQUARES.index(square) for square in line) for line in LINES)


def tic_tac_toe(*, atoms: bool = True) -> Dataset:
    """Return the 958 boards on which a game of tic-tac-toe can end, and whether x has won.

    Boards come from playing every game: x moves first, and a game is over when a line is full of one
    sign or the board is full. Each of the eight lines is a rule: three x in it are a win.

    Parameters
    ----------
    atoms
        True: 27 boolean columns, ``'a1 = x'``, ``'a1 = o'``, ``'a1 = b'`` (blank) and so on. False: nine
        columns of the categories x, o and b; an encoder that names its atoms ``'column = value'`` makes
        of them the atoms of the knowledge.

    Examples
    --------
    >>> boards = tic_tac_toe()
    >>> boards
    <Dataset tic_tac_toe: 958 rows, 27 columns, win is true in 626, 8 rules>
    >>> print(boards.rules[0])
    'a1 = x' & 'b1 = x' & 'c1 = x' -> win
    >>> tic_tac_toe(atoms=False).table.iloc[0].tolist()
    ['b', 'b', 'b', 'b', 'o', 'o', 'x', 'x', 'x']
    """
    boards = sorted(_endgames())
    values = np.array([list(board) for board in boards])
    win = atom("win")
    lines = [conjunction(atom(f"{square} = x") for square in line) for line in LINES]
    return whole(
        attribute_table(values, dict.fromkeys(SQUARES, ("x", "o", _BLANK)), atoms=atoms),
        np.array([_has_line(board, "x") for board in boards]),
        Theory([iff(win, disjunction(lines))]),
        [line >> win for line in lines],
        target="win",
        name="tic_tac_toe",
        description=(
            "A row is a board on which a game of tic-tac-toe can end, x moving first; the target is true "
            "where x has three in a line. These are Aha's Tic-Tac-Toe Endgames (1991), made by playing."
        ),
    )


def _has_line(board: str, sign: str) -> bool:
    return any(all(board[place] == sign for place in line) for line in _LINES_AS_PLACES)


def _endgames() -> set[str]:
    """Return every board on which a game ends, as nine signs: games that meet on a board go on as one."""
    ended: set[str] = set()
    open_boards = {_BLANK * len(SQUARES)}
    for move in range(len(SQUARES)):
        sign = "xo"[move % 2]
        reached = {
            board[:place] + sign + board[place + 1 :]
            for board in open_boards
            for place in range(len(SQUARES))
            if board[place] == _BLANK
        }
        over = {board for board in reached if _BLANK not in board or _has_line(board, sign)}
        ended |= over
        open_boards = reached - over
    return ended
