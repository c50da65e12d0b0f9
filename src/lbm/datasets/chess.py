"""King and rook against king: which positions cannot be, white to move."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.datasets.dataset import Dataset, Seed, pandas_or_error, whole
from lbm.knowledge.formula import atom, disjunction, iff
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory

POSITIONS: Final = 64**3
"""How many ways there are to put three pieces on a board, squares shared or not."""

PIECES: Final = ("wk", "wr", "bk")
"""White king, white rook, black king."""

COORDINATES: Final = tuple(piece + axis for piece in PIECES for axis in "fr")
"""A file (f) and a rank (r) for each piece: wkf, wkr, wrf, wrr, bkf, bkr."""

_RULES: Final = (
    "'wkf = wrf' & 'wkr = wrr' -> illegal",  # the white pieces on one square
    "'wkf adj bkf' & 'wkr adj bkr' -> illegal",  # kings side by side, or on one square
    "'wrf = bkf' & ~'wkf = wrf' -> illegal",  # check along a file that the white king is not on
    "'wrf = bkf' & ~'wkr between wrr and bkr' -> illegal",  # or where he does not stand in between
    "'wrr = bkr' & ~'wkr = wrr' -> illegal",  # likewise along a rank
    "'wrr = bkr' & ~'wkf between wrf and bkf' -> illegal",
)


def krk(n: int | None = 10_000, *, seed: Seed = 0, atoms: bool = True) -> Dataset:
    """Return positions of king and rook against king, and which are illegal with white to move.

    A position is illegal if two pieces share a square, the kings stand side by side, or the black king
    is in check: on the rook's file or rank, the white king not between them. [Muggleton et al., An
    experimental comparison of human and machine learning formalisms, 1989]

    Parameters
    ----------
    n
        How many of the 262,144 positions, all different, drawn with equal chances; None: all, in order.
    seed
        Decides which positions are drawn.
    atoms
        True: 18 boolean columns. For files, and likewise for ranks, ``'wkf = wrf'`` says that two pieces
        are on the same one, ``'wkf adj bkf'`` that theirs are the same or neighbours, and
        ``'wkf between wrf and bkf'`` that one lies strictly between two others.
        False: the same positions as six numbers from 1 to 8, ``wkf`` to ``bkr``, to look at them or to
        make atoms of one's own; the knowledge speaks of the 18 columns all the same.

    Examples
    --------
    >>> positions = krk(None)
    >>> positions
    <Dataset krk: 262144 rows, 18 columns, illegal is true in 86976, 6 rules>
    >>> print(positions.rules[1])
    'wkf adj bkf' & 'wkr adj bkr' -> illegal
    >>> krk(100, atoms=False).table.columns.tolist()
    ['wkf', 'wkr', 'wrf', 'wrr', 'bkf', 'bkr']
    """
    places, illegal = illegal_positions(n, seed=seed)
    rules = [parse(text) for text in _RULES]
    return whole(
        pandas_or_error().DataFrame(_relations(places) if atoms else places),
        illegal,
        Theory([iff(atom("illegal"), disjunction(rule.args[0] for rule in rules))]),
        rules,
        target="illegal",
        name="krk",
        description=(
            "A row is a position of white king, white rook and black king; the target is true where the "
            "rules of chess forbid it with white to move. The problem of Muggleton and others (1989)."
        ),
    )


def illegal_positions(
    n: int | None, *, seed: Seed = 0
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.bool_]]:
    """Return files and ranks of ``n`` positions, by the names in COORDINATES, and which are illegal."""
    if n is not None and not (isinstance(n, int | np.integer) and 1 <= n <= POSITIONS):
        raise ValueError(f"n is a whole number from 1 to {POSITIONS}, or None for every position, got {n!r}")
    random = np.random.default_rng(seed)
    numbers = np.arange(POSITIONS) if n is None else random.choice(POSITIONS, size=n, replace=False)
    places = dict(zip(COORDINATES, np.array(np.unravel_index(numbers, (8,) * 6)) + 1, strict=True))
    return places, _illegal(places)


def _relations(places: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.bool_]]:
    """Return how files compare with files and ranks with ranks, by the name of the atom that says so."""
    said: dict[str, NDArray[np.bool_]] = {}
    pairs = [(one + axis, two + axis) for axis in "fr" for one, two in combinations(PIECES, 2)]
    for one, two in pairs:
        said[f"{one} = {two}"] = places[one] == places[two]
    for one, two in pairs:
        said[f"{one} adj {two}"] = abs(places[one] - places[two]) <= 1
    for axis in "fr":
        for middle in PIECES:
            one, two = (piece + axis for piece in PIECES if piece != middle)
            low, high = np.minimum(places[one], places[two]), np.maximum(places[one], places[two])
            inside = (low < places[middle + axis]) & (places[middle + axis] < high)
            said[f"{middle}{axis} between {one} and {two}"] = inside
    return said


def _illegal(places: dict[str, NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Return which positions the rules of chess forbid, from files and ranks alone."""
    wkf, wkr, wrf, wrr, bkf, bkr = (places[name] for name in COORDINATES)
    shared = ((wkf == wrf) & (wkr == wrr)) | ((wrf == bkf) & (wrr == bkr))
    touching = np.maximum(abs(wkf - bkf), abs(wkr - bkr)) <= 1
    # Somebody stands between two others on a line if the ways to them lead in opposite directions.
    on_file = (wrf == bkf) & ~((wkf == wrf) & ((wkr - wrr) * (wkr - bkr) < 0))
    on_rank = (wrr == bkr) & ~((wkr == wrr) & ((wkf - wrf) * (wkf - bkf) < 0))
    return np.asarray(shared | touching | on_file | on_rank)
