"""The MONK's problems: robots of six attributes, and three ways to belong to a class."""

from __future__ import annotations

from itertools import combinations, product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lbm.datasets.dataset import Dataset, Seed, attribute_table, pandas_or_error
from lbm.knowledge.formula import Formula, atom, conjunction, disjunction, exactly, iff
from lbm.knowledge.theory import Theory

DOMAINS: Final = {
    "a1": ("1", "2", "3"),  # head: round, square, octagon
    "a2": ("1", "2", "3"),  # body: round, square, octagon
    "a3": ("1", "2"),  # smiling: yes, no
    "a4": ("1", "2", "3"),  # holding: sword, balloon, flag
    "a5": ("1", "2", "3", "4"),  # jacket: red, yellow, green, blue
    "a6": ("1", "2"),  # tie: yes, no
}
"""The values of the six attributes; together 432 robots."""

TRAIN_ROWS: Final = {1: 124, 2: 169, 3: 122}
"""How many robots the published training parts have."""

NOISE: Final = {1: 0.0, 2: 0.0, 3: 0.05}
"""The share of training robots whose published label is wrong."""

_IN_WORDS: Final = {
    1: "a1 and a2 are equal or a5 is 1",
    2: "exactly two of the six attributes have their first value",
    3: "a5 is 3 and a4 is 1, or a5 is not 4 and a2 is not 3",
}


def monk(problem: Literal[1, 2, 3], *, seed: Seed = 0, atoms: bool = True) -> Dataset:
    """Return one of the three MONK's problems: all 432 robots, and which are members of the class.

        problem 1:  a1 = a2, or a5 = 1                                 216 members, 124 rows to train on
        problem 2:  exactly two attributes have their first value      142 members, 169 rows
        problem 3:  a5 = 3 and a4 = 1, or a5 ≠ 4 and a2 ≠ 3            228 members, 122 rows, 6 told wrong

    ``table`` and ``target`` are the test part, all robots without noise. ``train`` and ``train_target``
    are a part of the published size, drawn by ``seed`` (the published draws themselves are not in here);
    in problem 3, 5 % of its labels are false. [Thrun et al., The MONK's Problems, CMU-CS-91-197, 1991]

    Parameters
    ----------
    problem
        1, 2 or 3.
    seed
        Decides which robots are in the training part and which of their labels are wrong.
    atoms
        True: 17 boolean columns, ``'a1 = 1'`` to ``'a6 = 2'``. False: six columns of categories; an
        encoder that names its atoms ``'column = value'`` makes of them the atoms of the knowledge.

    Examples
    --------
    >>> robots = monk(3)
    >>> robots
    <Dataset monk(3): 432 rows, 17 columns, member is true in 228, 2 rules>
    >>> print(robots.knowledge)
    member <-> 'a5 = 3' & 'a4 = 1' | ~'a5 = 4' & ~'a2 = 3'
    >>> robots.train_table.shape
    (122, 17)
    >>> int((robots.train_target != robots.target[robots.train]).sum())
    6
    """
    if problem not in TRAIN_ROWS:
        raise ValueError(f"the MONK's problems are 1, 2 and 3, got {problem!r}")
    pandas = pandas_or_error()
    values = np.array(list(product(*DOMAINS.values())))
    target = pandas.Series(_members(problem, values.astype(int)), name="member")

    random = np.random.default_rng(seed)
    train = np.sort(random.choice(len(values), size=TRAIN_ROWS[problem], replace=False))
    told = target.iloc[train].copy()
    wrong = random.choice(len(train), size=round(NOISE[problem] * len(train)), replace=False)
    told.iloc[wrong] = ~told.iloc[wrong]

    member = atom("member")
    cubes = _cubes(problem)
    body = exactly(2, *_first_values()) if problem == 2 else disjunction(cubes)
    noise = f"; {len(wrong)} of the {len(train)} training labels are wrong" if len(wrong) else ""
    return Dataset(
        attribute_table(values, DOMAINS, atoms=atoms),
        target,
        Theory([iff(member, body)]),
        tuple(cube >> member for cube in cubes),
        f"monk({problem})",
        f"A row is a robot of six attributes; the target is true where {_IN_WORDS[problem]}{noise}. "
        "One of the MONK's problems of Thrun and others (1991).",
        train,
        told,
    )


def _members(problem: int, values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return who belongs to the class; ``values`` has shape (robots, 6)."""
    a1, a2, _, a4, a5, _ = values.T
    if problem == 1:
        return np.asarray((a1 == a2) | (a5 == 1))
    if problem == 2:
        return np.asarray((values == 1).sum(axis=1) == 2)
    return np.asarray(((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3)))


def _first_values() -> list[Formula]:
    return [atom(f"{name} = 1") for name in DOMAINS]


def _cubes(problem: int) -> list[Formula]:
    """Return cubes that are true, one or more of them, exactly for the members."""
    if problem == 1:
        return [*(atom(f"a1 = {shape}") & atom(f"a2 = {shape}") for shape in DOMAINS["a1"]), atom("a5 = 1")]
    if problem == 2:
        first = _first_values()
        return [
            conjunction(part if part in pair else ~part for part in first) for pair in combinations(first, 2)
        ]
    return [atom("a5 = 3") & atom("a4 = 1"), ~atom("a5 = 4") & ~atom("a2 = 3")]
