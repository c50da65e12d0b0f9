"""What every generated problem keeps: its knowledge is true, its rules cover, its names travel."""

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm import datasets
from lbm.datasets import Dataset, krk, monk, tic_tac_toe
from lbm.errors import MissingExtra
from lbm.knowledge.formula import Formula, atoms_of, disjunction

MAKERS: dict[str, Callable[..., Dataset]] = {
    "tic_tac_toe": tic_tac_toe,
    "monk(1)": lambda **options: monk(1, **options),
    "monk(2)": lambda **options: monk(2, **options),
    "monk(3)": lambda **options: monk(3, **options),
    "krk": lambda **options: krk(None, **options),
}


@pytest.fixture(scope="module", params=MAKERS)
def problem(request: pytest.FixtureRequest) -> Dataset:
    return MAKERS[request.param]()


def worlds(problem: Dataset) -> dict[str, np.ndarray]:
    """Every row as a world: atoms are columns, the target is one more."""
    columns = {name: problem.table[name].to_numpy() for name in problem.table}
    return {**columns, problem.target.name: problem.target.to_numpy()}


def is_cube(formula: Formula) -> bool:
    parts = [formula]
    while parts:
        part = parts.pop()
        if part.kind == "and":
            parts.extend(part.args)
        elif (part.args[0] if part.kind == "not" else part).kind != "atom":
            return False
    return True


# --- knowledge and rules -------------------------------------------------------------------------


def test_the_knowledge_is_true_in_every_row(problem: Dataset) -> None:
    world = worlds(problem)
    assert all(statement.weight is None for statement in problem.knowledge)
    for statement in problem.knowledge:
        assert lbm.holds(statement.formula, world).all()


def test_the_knowledge_decides_the_target_of_every_row(problem: Dataset) -> None:
    world = worlds(problem)
    world[problem.target.name] = ~world[problem.target.name]
    kept = [lbm.holds(statement.formula, world) for statement in problem.knowledge]
    assert not np.logical_and.reduce(kept).any()


def test_a_row_is_positive_exactly_where_the_body_of_some_rule_is_true(problem: Dataset) -> None:
    bodies = [rule.args[0] for rule in problem.rules]
    assert (lbm.holds(disjunction(bodies), worlds(problem)) == problem.target.to_numpy()).all()


def test_no_rule_can_be_left_out(problem: Dataset) -> None:
    fired = np.array([lbm.holds(rule.args[0], worlds(problem)) for rule in problem.rules])
    alone = fired & (fired.sum(axis=0) == 1)
    assert alone.any(axis=1).all()


def test_every_rule_is_a_cube_that_implies_the_target(problem: Dataset) -> None:
    for rule in problem.rules:
        assert rule.kind == "implies"
        assert is_cube(rule.args[0])
        assert rule.args[1] is lbm.atom(problem.target.name)


def test_knowledge_and_rules_mention_columns_and_the_target_only(problem: Dataset) -> None:
    known = {*problem.table.columns, problem.target.name}
    assert set(problem.knowledge.atoms) <= known
    assert set(atoms_of(*problem.rules)) <= known
    assert problem.target.name not in problem.table


def test_knowledge_and_rules_parse_back_from_their_text(problem: Dataset) -> None:
    assert lbm.Theory.parse(str(problem.knowledge)) == problem.knowledge
    assert all(lbm.parse(str(rule)) is rule for rule in problem.rules)


# --- tables --------------------------------------------------------------------------------------


def test_tables_are_boolean_columns_of_atoms_with_a_target_as_long(problem: Dataset) -> None:
    assert set(problem.table.dtypes) == {np.dtype(bool)}
    assert problem.target.dtype == bool
    assert problem.table.columns.is_unique
    assert problem.table.index.equals(problem.target.index)
    assert all(lbm.atom(name).label == name for name in problem.table)


def test_training_rows_are_rows_of_the_table_with_what_is_told_of_them(problem: Dataset) -> None:
    assert (np.diff(problem.train) > 0).all()
    assert problem.train_table.equals(problem.table.iloc[problem.train])
    assert problem.train_table.index.equals(problem.train_target.index)
    assert problem.train_target.name == problem.target.name
    assert problem.train_target.dtype == bool
    if problem.name != "monk(3)":
        assert problem.train_target.equals(problem.target.iloc[problem.train])


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "krk"])
def test_categories_say_the_same_as_the_atoms(name: str) -> None:
    """Each column 'attribute = value' is true exactly where the attribute has the value."""
    atoms, categories = MAKERS[name](), MAKERS[name](atoms=False)
    assert categories.table.notna().all(axis=None)
    spelled = {
        f"{column} = {value}": (categories.table[column] == value)
        for column in categories.table
        for value in categories.table[column].cat.categories
    }
    assert pd.DataFrame(spelled).equals(atoms.table)
    assert categories.target.equals(atoms.target)
    assert categories.train_target.equals(atoms.train_target)
    assert (categories.knowledge, categories.rules) == (atoms.knowledge, atoms.rules)


def test_a_dataset_says_what_it_holds(problem: Dataset) -> None:
    rows, columns = problem.table.shape
    positive = int(problem.target.sum())
    target = f"{problem.target.name} is true in {positive}"
    expected = (
        f"<Dataset {problem.name}: {rows} rows, {columns} columns, {target}, {len(problem.rules)} rules>"
    )
    assert repr(problem) == expected
    assert problem.description.endswith(".")


def test_changing_what_is_told_leaves_the_truth() -> None:
    problem = tic_tac_toe()
    problem.train_target.iloc[:] = False
    assert problem.target.sum() == 626


# --- seeds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda seed: monk(3, seed=seed), lambda seed: krk(500, seed=seed)])
@given(seed=st.integers(0, 2**32))
def test_a_seed_repeats_its_draw_and_another_seed_draws_anew(
    make: Callable[[object], Dataset], seed: int
) -> None:
    def drawn(seed: object) -> tuple[bytes, ...]:
        problem = make(seed)
        parts = (problem.table, problem.train, problem.train_target)
        return tuple(np.asarray(part).tobytes() for part in parts)

    assert drawn(seed) == drawn(seed) == drawn(np.random.default_rng(seed))
    assert drawn(seed) != drawn(seed + 1)


# --- the door ------------------------------------------------------------------------------------


def test_every_public_name_is_found_and_no_other() -> None:
    assert dir(datasets) == datasets.__all__ == sorted(datasets.__all__)
    assert all(one < two for one, two in pairwise(datasets.__all__))
    for name in datasets.__all__:
        assert getattr(datasets, name).__name__ == name
    with pytest.raises(AttributeError, match=r"^module 'lbm\.datasets' has no attribute 'monks'$"):
        _ = datasets.monks


def test_the_room_opens_without_arrays_and_its_files_without_pandas() -> None:
    program = (
        "import sys, lbm.datasets; assert not {'numpy', 'pandas'} & set(sys.modules); "
        "from lbm.datasets import Dataset, krk, monk, tic_tac_toe; "
        "assert not {'pandas', 'sklearn', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", MAKERS)
def test_without_pandas_the_error_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'logical-boltzmann\[train\]'"):
        MAKERS[name]()
