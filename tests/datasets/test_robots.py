"""The MONK's problems: classes against their published words, parts of the published size."""

import re
from collections.abc import Callable
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.datasets import monk

SHAPES = {"1": "round", "2": "square", "3": "octagon"}
JACKETS = {"1": "red", "2": "yellow", "3": "green", "4": "blue"}
HELD = {"1": "sword", "2": "balloon", "3": "flag"}


def first(head: str, body: str, smiles: str, holds: str, jacket: str, tie: str) -> bool:
    return SHAPES[head] == SHAPES[body] or JACKETS[jacket] == "red"


def second(head: str, body: str, smiles: str, holds: str, jacket: str, tie: str) -> bool:
    told = [SHAPES[head] == "round", SHAPES[body] == "round", smiles == "1", HELD[holds] == "sword"]
    return [*told, JACKETS[jacket] == "red", tie == "1"].count(True) == 2


def third(head: str, body: str, smiles: str, holds: str, jacket: str, tie: str) -> bool:
    if JACKETS[jacket] == "green" and HELD[holds] == "sword":
        return True
    return not (JACKETS[jacket] == "blue" or SHAPES[body] == "octagon")


@pytest.mark.parametrize(
    ("number", "belongs", "members"), [(1, first, 216), (2, second, 142), (3, third, 228)]
)
def test_members_are_those_the_published_words_describe(
    number: int, belongs: Callable[..., bool], members: int
) -> None:
    problem = monk(number, atoms=False)
    robots = [tuple(row) for row in problem.table.itertuples(index=False)]
    assert list(problem.table.columns) == ["a1", "a2", "a3", "a4", "a5", "a6"]
    assert len(robots) == len(set(robots)) == 432
    assert [belongs(*robot) for robot in robots] == problem.target.tolist()
    assert problem.target.sum() == members


def test_attributes_have_the_published_values() -> None:
    table = monk(1, atoms=False).table
    assert [len(table[name].cat.categories) for name in table] == [3, 3, 2, 3, 4, 2]
    assert monk(1).table.shape == (432, 17)


@pytest.mark.parametrize(("number", "size", "wrong"), [(1, 124, 0), (2, 169, 0), (3, 122, 6)])
@given(seed=st.integers(0, 2**32))
def test_training_parts_have_the_published_size_and_noise(
    number: int, size: int, wrong: int, seed: int
) -> None:
    problem = monk(number, seed=seed)
    assert len(problem.train) == len(set(problem.train)) == size
    assert problem.table.shape[0] == 432
    told, truth = problem.train_target.to_numpy(), problem.target.to_numpy()[problem.train]
    assert (told != truth).sum() == wrong
    assert problem.target.sum() == monk(number).target.sum()


def test_every_robot_is_drawn_and_told_wrong_with_equal_chances() -> None:
    """Over 400 draws of 122 in 432 no robot's count is 5 standard errors off: once in 4,000 by accident."""
    drawn, wrong = np.zeros(432), np.zeros(432)
    for seed in range(400):
        problem = monk(3, seed=seed)
        drawn[problem.train] += 1
        told = problem.train_target.to_numpy() != problem.target.to_numpy()[problem.train]
        wrong[problem.train[told]] += 1
    chance = 122 / 432
    assert abs(drawn - 400 * chance).max() < 5 * sqrt(400 * chance * (1 - chance))
    assert wrong.sum() == 2400
    assert wrong.max() < 20  # of an expected 5.6


def test_the_rules_of_the_second_problem_are_the_pairs_of_attributes() -> None:
    rules = monk(2).rules
    assert len(rules) == comb(6, 2)
    pairs = {tuple(re.findall(r"(?<!~)'(\w+) = 1'", str(rule))) for rule in rules}
    assert len(pairs) == 15
    assert all(len(pair) == 2 for pair in pairs)


@pytest.mark.parametrize("number", [0, 4, "1", None])
def test_only_three_problems_were_published(number: object) -> None:
    with pytest.raises(ValueError, match=f"^the MONK's problems are 1, 2 and 3, got {number!r}$"):
        monk(number)
