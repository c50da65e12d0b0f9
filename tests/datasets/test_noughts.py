"""Tic-tac-toe: the boards against a count of signs, since games are what the generator plays."""

from itertools import product

from lbm.datasets import tic_tac_toe

SQUARES = ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]


def lines_of(board: tuple[str, ...], sign: str) -> bool:
    """Look at the board as a magic square: three signs that sum to 15 stand in a line."""
    magic = [2, 7, 6, 9, 5, 1, 4, 3, 8]
    mine = [number for number, here in zip(magic, board, strict=True) if here == sign]
    return any(
        one + two + three == 15 for one in mine for two in mine if two > one for three in mine if three > two
    )


def is_over(board: tuple[str, ...]) -> bool:
    """Decide without playing: only the last to move has a line, or the board is full and nobody has."""
    x, o = board.count("x"), board.count("o")
    x_line, o_line = lines_of(board, "x"), lines_of(board, "o")
    if x_line and not o_line:
        return x == o + 1
    if o_line and not x_line:
        return x == o
    return not x_line and not o_line and (x, o) == (5, 4)


def test_the_boards_are_all_those_on_which_a_game_can_end() -> None:
    problem = tic_tac_toe(atoms=False)
    assert list(problem.table.columns) == SQUARES
    boards = [tuple(row) for row in problem.table.itertuples(index=False)]
    assert len(boards) == len(set(boards)) == 958
    assert set(boards) == {board for board in product("xob", repeat=9) if is_over(board)}


def test_the_target_is_true_where_x_has_a_line() -> None:
    problem = tic_tac_toe(atoms=False)
    expected = [lines_of(tuple(row), "x") for row in problem.table.itertuples(index=False)]
    assert problem.target.tolist() == expected
    assert sum(expected) == 626


def test_sixteen_boards_are_a_draw_and_full() -> None:
    problem = tic_tac_toe(atoms=False)
    lost = [lines_of(tuple(row), "o") for row in problem.table.itertuples(index=False)]
    drawn = [not win and not loss for win, loss in zip(problem.target, lost, strict=True)]
    assert (sum(lost), sum(drawn)) == (316, 16)
    assert (problem.table[drawn] != "b").all(axis=None)


def test_lines_are_ranks_files_and_diagonals() -> None:
    bodies = [str(rule).removesuffix(" -> win").split(" & ") for rule in tic_tac_toe().rules]
    lines = [[name.removeprefix("'").removesuffix(" = x'") for name in body] for body in bodies]
    for line in lines:
        files, ranks = (sorted(square[part] for square in line) for part in (0, 1))
        spread = {"".join(files), "".join(ranks)}
        straight = [text for text in spread if len(set(text)) == 1]
        assert straight or spread == {"abc", "123"}
    assert len({frozenset(line) for line in lines}) == 8
