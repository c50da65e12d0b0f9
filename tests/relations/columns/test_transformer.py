"""The transformer: the paper's columns, scikit-learn's manners, names that knowledge can mention."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import lbm
from lbm.relations.columns.transformer import RelationalColumns
from lbm.relations.problem import load_problem, make_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.saturate import saturate

BACKGROUND = """
car(t1, c1). car(t1, c2). car(t2, c3). car(t3, c4). car(t4, c5). car(t4, c6). car(t5, c7). car(t6, c8).
load(c1, circle, 3). load(c2, square, 1). load(c3, circle, 1). load(c4, circle, 2). load(c5, square, 1).
load(c6, square, 2). load(c7, 'long box', 1). load(c8, square, 1).
"""
MODES = ":- modeh(1, east(+train)). :- modeb(*, car(+train, -car)). :- modeb(1, load(+car, #shape, -int))."


@pytest.fixture
def trains():
    return make_problem(
        "trains",
        read_clauses(BACKGROUND),
        read_clauses("east(t1). east(t2). east(t3)."),
        read_clauses("east(t4). east(t5). east(t6)."),
        read_clauses(MODES),
    )


def test_a_column_of_the_paper_is_true_where_the_literal_is_in_the_bottom_clause(trains):
    found = RelationalColumns(trains, features="paper").fit(trains.examples[:4], trains.labels[:4])
    table = found.transform(trains.examples)
    assert set(found.names_) == {text for one in trains.examples[:4] for text in saturate(trains, one).body}
    for row, example in enumerate(trains.examples):
        body = set(saturate(trains, example).body)
        assert table.iloc[row].tolist() == [name in body for name in found.names_]


def test_names_of_columns_can_be_mentioned_in_knowledge(trains):
    table = RelationalColumns(trains).fit_transform(trains.examples, trains.labels)
    assert "car(A,B), load(B,circle,C)" in table
    known = lbm.LBMClassifier.from_knowledge(
        "'car(A,B), load(B,circle,C)' <-> east", target="east", columns=table.columns
    )
    assert known.predict(table).tolist() == list(trains.labels)


def test_a_pipeline_learns_from_terms(trains):
    model = make_pipeline(
        RelationalColumns(trains, select=3), lbm.LBMClassifier(hidden=5, max_epochs=60, random_state=0)
    )
    model.fit(list(trains.examples), np.array(trains.labels))
    assert model.predict(list(trains.examples)).tolist() == list(trains.labels)
    assert len(model[0].get_feature_names_out()) == 3


def test_a_clone_finds_the_same_columns(trains):
    found = RelationalColumns(trains, support=0.0, select=2).fit(trains.examples, trains.labels)
    again = clone(found).fit(trains.examples, trains.labels)
    assert again.names_ == found.names_
    assert len(found.names_) == 2


def test_columns_that_are_kept_are_all_that_is_left(trains):
    found = RelationalColumns(trains).fit(trains.examples, trains.labels)
    names = found.names_[1:3]
    assert found.keep([1, 2]).transform(trains.examples).columns.tolist() == names


def test_bad_options_are_errors_of_one_line(trains):
    with pytest.raises(ValueError, match="expected features among paper, constants, comparison, got 'best'"):
        RelationalColumns(trains, features="best").fit(trains.examples, trains.labels)
    with pytest.raises(ValueError, match="expected examples with a label each, got 6 and 1"):
        RelationalColumns(trains).fit(trains.examples, [True])


def test_the_published_literals_of_amine_are_the_columns_of_the_paper(dataset):
    problem = load_problem(dataset("alz_amine"))
    found = RelationalColumns(problem, features="paper", depth=3).fit(problem.examples, problem.labels)
    assert len(found.names_) == 1089


def test_typed_modes_of_chess_give_eighteen_columns_that_tell_all(dataset):
    problem = load_problem(dataset("krk"), modes="modes_typed.pl")
    few = slice(None, None, 10)
    examples, labels = problem.examples[few], problem.labels[few]
    table = RelationalColumns(problem, size=1).fit_transform(examples, labels)
    assert table.shape[1] == 18
    kinds: dict[bytes, bool] = {}
    for row, label in zip(table.to_numpy(), labels, strict=True):
        assert kinds.setdefault(row.tobytes(), label) == label
