"""King and rook against king: every position against pieces that move on a board."""

import re
from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.datasets import krk
from lbm.datasets.chess import POSITIONS

BOARD = [(file, rank) for file in range(1, 9) for rank in range(1, 9)]
Square = tuple[int, int]


def attacked(king: Square, rook: Square) -> set[Square]:
    """Squares where a black king would be taken: a step from the king, or on the rook's way to its king."""
    found = {(king[0] + file, king[1] + rank) for file in (-1, 0, 1) for rank in (-1, 0, 1)} & set(BOARD)
    for file, rank in [(1, 0), (-1, 0), (0, 1), (0, -1)]:
        here = (rook[0] + file, rook[1] + rank)
        while here in BOARD and here != king:
            found.add(here)
            here = (here[0] + file, here[1] + rank)
    return found


@pytest.fixture(scope="module")
def forbidden() -> np.ndarray:
    """Which positions are illegal, shape (8,) * 6: white king, white rook, black king, file before rank."""
    answer = np.zeros((8,) * 6, dtype=bool)
    for king in BOARD:
        for rook in BOARD:
            taken = BOARD if king == rook else attacked(king, rook) | {king, rook}
            for black in taken:
                answer[tuple(place - 1 for place in (*king, *rook, *black))] = True
    return answer


@pytest.fixture(scope="module")
def everything() -> pd.DataFrame:
    problem = krk(None, atoms=False)
    return problem.table.assign(illegal=problem.target)


def test_every_position_is_judged_as_the_pieces_move(forbidden: np.ndarray, everything: pd.DataFrame) -> None:
    places = everything[["wkf", "wkr", "wrf", "wrr", "bkf", "bkr"]].to_numpy() - 1
    assert len(np.unique(places, axis=0)) == len(places) == POSITIONS == 64**3
    assert (forbidden[tuple(places.T)] == everything["illegal"].to_numpy()).all()


def test_a_king_in_the_way_stops_the_rook_and_a_king_aside_does_not(forbidden: np.ndarray) -> None:
    """The oracle itself, on positions anybody can check: Ra1, kh1 or ka8, the white king here and there."""
    assert not forbidden[3, 0, 0, 0, 7, 0]  # Kd1 Ra1 kh1
    assert forbidden[3, 1, 0, 0, 7, 0]  # Kd2 Ra1 kh1
    assert forbidden[0, 0, 0, 3, 0, 7]  # Ka1 Ra4 ka8: behind the rook
    assert not forbidden[0, 5, 0, 3, 0, 7]  # Ka6 Ra4 ka8
    assert forbidden[0, 6, 0, 3, 0, 7]  # Ka7 Ra4 ka8: side by side
    assert not forbidden[0, 0, 1, 1, 7, 7]  # Ka1 Rb2 kh8


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_columns_mean_what_their_names_say(n: int, seed: int) -> None:
    said, places = krk(n, seed=seed).table, krk(n, seed=seed, atoms=False).table
    assert said.shape == (n, 18)
    for name in said:
        if match := re.fullmatch(r"(\w+) (=|adj) (\w+)", name):
            gap = 0 if match[2] == "=" else 1
            expected = [abs(row[match[1]] - row[match[3]]) <= gap for _, row in places.iterrows()]
        else:
            match = re.fullmatch(r"(\w+) between (\w+) and (\w+)", name)
            assert match is not None
            expected = [
                sorted([row[match[1]], row[match[2]], row[match[3]]])[1] == row[match[1]]
                and row[match[1]] not in (row[match[2]], row[match[3]])
                for _, row in places.iterrows()
            ]
        assert said[name].tolist() == expected
        assert len({place[-1] for place in re.findall(r"[wb][kr][fr]", name)}) == 1


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_a_draw_is_of_different_positions_with_their_own_labels(n: int, seed: int) -> None:
    problem = krk(n, seed=seed, atoms=False)
    assert len(problem.table.drop_duplicates()) == n
    assert problem.target.equals(krk(n, seed=seed).target)
    assert problem.table.min(axis=None) >= 1
    assert problem.table.max(axis=None) <= 8


def test_draws_are_labelled_as_the_pieces_move(forbidden: np.ndarray) -> None:
    problem = krk(20_000, seed=1, atoms=False)
    assert (forbidden[tuple(problem.table.to_numpy().T - 1)] == problem.target.to_numpy()).all()


def test_draws_favour_no_square(everything: pd.DataFrame) -> None:
    """Means of coordinates and target lie within four standard errors of those of all positions."""
    problem = krk(20_000, seed=2, atoms=False)
    drawn = problem.table.assign(illegal=problem.target).astype(float)
    error = everything.astype(float).std() / sqrt(len(drawn))
    assert (abs(drawn.mean() - everything.astype(float).mean()) < 4 * error).all()


@pytest.mark.parametrize("n", [0, -1, POSITIONS + 1, 2.5, "10"])
def test_a_number_of_positions_that_cannot_be_is_refused(n: object) -> None:
    expected = f"^n is a whole number from 1 to 262144, or None for every position, got {re.escape(repr(n))}$"
    with pytest.raises(ValueError, match=expected):
        krk(n)


def test_the_classical_positions_have_the_same_labels(
    dataset: Callable[[str], Path], everything: pd.DataFrame
) -> None:
    """The 10,000 positions of Muggleton and others (1989), whose coordinates count from 0."""
    illegal = everything["illegal"].to_numpy().reshape((8,) * 6)
    for file, expected, lines in [("pos.pl", True, 3240), ("neg.pl", False, 6760)]:
        text = (dataset("krk") / file).read_text(encoding="utf-8")
        positions = np.array(
            [list(match) for match in re.findall(r"illegal\(" + ",".join([r"(\d)"] * 6), text)]
        )
        assert len(positions) == lines
        assert (illegal[tuple(positions.astype(int).T)] == expected).all()
