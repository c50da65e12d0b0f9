"""Choosing columns: by parts that were put aside, and never by what is tested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import ParseError
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.training.relational.choosing import column_sets, rank_sets
from lbm.training.relational.induce import induce
from tests.training.relational.test_induce import coloured

QUICK = {"hidden": 2, "max_epochs": 10, "random_state": 0}


def chain(objects: int = 20) -> RelationalProblem:
    """Return a problem that chains of three literals tell, and no shorter ones."""
    draw = np.random.default_rng(0)
    red, big = draw.integers(0, 2, objects), draw.integers(0, 2, objects)
    facts = ["near(x, y). red(x). big(x)."]
    for k in range(objects):
        for part, (is_red, is_big) in enumerate([(red[k], big[k]), (1 - red[k], 1 - big[k])]):
            facts.append(f"near(o{k}, p{k}_{part}).")
            facts += [f"red(p{k}_{part})."] * int(is_red) + [f"big(p{k}_{part})."] * int(is_big)
    yes = [k for k in range(objects) if red[k] == big[k]]
    return make_problem(
        "chain",
        read_clauses(" ".join(facts)),
        read_clauses(" ".join(f"t(o{k})." for k in yes)),
        read_clauses(" ".join(f"t(o{k})." for k in range(objects) if k not in yes)),
        read_clauses(
            ":- modeh(1, t(+o)). :- modeb(*, near(+o, -p)). :- modeb(1, red(+p)). :- modeb(1, big(+p))."
        ),
    )


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_of_columns_that_tell_all_and_columns_that_tell_nothing_the_former_are_first(seed, parts):
    draw = np.random.default_rng(seed)
    labels = np.arange(24) % 2 == 0
    table = np.column_stack([draw.random((24, 3)) < 0.5, labels])
    judges = [np.arange(24) // 2 % parts == k for k in range(parts)]
    sets = [(1, None), (2, None)]
    kept = {(1, None): [0, 1, 2], (2, None): [3]}
    assert rank_sets(sets, table, labels, judges, lambda one, _: kept[one])[0] == (2, None)
    assert rank_sets(sets[::-1], table, labels, judges, lambda one, _: kept[one])[0] == (2, None)


def test_sets_with_the_same_columns_are_judged_once():
    labels = np.arange(12) % 2 == 0
    judges = [np.arange(12) // 2 % 2 == k for k in range(2)]
    found = rank_sets(column_sets(3), labels[:, None], labels, judges, lambda *_: [0])
    assert found == [(1, None)]


def test_the_size_of_chains_is_chosen_on_inner_folds():
    """Three literals tell all here: a thing that is red and big; for two there is nothing to see."""
    found = induce(chain(), folds=2, hidden=4, max_epochs=60)
    assert {fold.setting.size for fold in found.folds} == {3}
    shorter = induce(chain(), folds=2, size=2, **QUICK)
    assert {fold.setting.size for fold in shorter.folds} <= {1, 2}
    assert shorter.mean()[0] < found.mean()[0]
    plain = induce(coloured(), folds=2, **QUICK)
    assert {fold.setting.size for fold in plain.folds} == {1}


def same_colour() -> RelationalProblem:
    return make_problem(
        "blank",
        read_clauses("colour(o0, red). colour(o1, red). colour(o2, red). colour(o3, red). spot(o0)."),
        read_clauses("t(o0). t(o1)."),
        read_clauses("t(o2). t(o3). t(o4)."),
        read_clauses(":- modeh(1, t(+o)). :- modeb(1, spot(+o))."),
    )


def test_a_fold_without_any_column_gets_the_base_rate_and_that_is_said():
    found = induce(same_colour(), folds=2, keep=True, **QUICK)
    assert [fold.columns for fold in found.folds] == [0, 0]
    assert len(set(found.log_odds[:2].tolist() + found.log_odds[2:].tolist())) <= 2
    assert any("fold 1, 2: no column tells the classes" in line for line in found.lines())
    assert found.rules == ()
    assert found.model.predict(same_colour()).log_odds == pytest.approx([np.log(2.5 / 3.5)] * 5)


def test_a_fold_that_leaves_a_class_out_of_training_gets_the_base_rate():
    problem = coloured()
    names = {
        example: "1" if label else "2"
        for example, label in zip(problem.examples, problem.labels, strict=True)
    }
    problem = RelationalProblem(
        "a", problem.background, problem.positive, problem.negative, problem.modes, names
    )
    found = induce(problem, keep=True, **QUICK)
    assert [fold.scores.accuracy for fold in found.folds] == [0.0, 0.0]
    assert (found.log_odds[:12] < 0).all()
    assert (found.log_odds[12:] > 0).all()


def test_no_negative_examples_are_one_line():
    problem = coloured()
    alone = RelationalProblem("lonely", problem.background, problem.positive, (), problem.modes)
    with pytest.raises(ParseError, match="no negative examples in lonely: expected some"):
        induce(alone)


def test_a_fold_that_is_not_there_is_an_error_that_names_those_that_are():
    with pytest.raises(ValueError, match="expected a fold among 1, 2, got '7'"):
        induce(coloured(), folds=2, only="7", **QUICK)
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        induce(coloured(), size=0)


def test_growing_ends_at_its_budget_with_what_tells_most():
    from lbm.relations.columns.transformer import RelationalColumns

    problem = chain()
    every = RelationalColumns(problem, size=3, support=0.0).fit(problem.examples, problem.labels).names_
    sizes = []
    for budget in (1, 20_000, 100_000, 10**9):
        some = RelationalColumns(problem, size=3, support=0.0, budget=budget)
        names = some.fit(problem.examples, problem.labels).names_
        assert set(names) <= set(every)
        sizes.append(len(names))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] == len(every)
