"""Input that breaks learners: columns of one value or none, rules that clash, classes that come and go."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from lbm.errors import ContradictoryKnowledge, UnknownAtom
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.storage.store import load_model, save_model

# Rules that fire on no row may be warned of: here it is known.
pytestmark = pytest.mark.filterwarnings("ignore:.*fires on none of")

QUICK = {"hidden": 3, "max_epochs": 5, "random_state": 0}


def table(rows=60):
    """A table with columns that hold one value of each kind, or none, and what decides the class."""
    random = np.random.default_rng(0)
    x = pd.DataFrame({"a": random.integers(0, 2, rows), "b": random.integers(0, 2, rows)})
    x = x.assign(one=1, zero=0, seven=7.0, word="x", none=[None] * rows, nan=np.nan)
    return x, (x["a"] | x["b"]).rename("y")


FIRES = ["one", "'seven > 5'", "'seven = 7'", "'word = x'"]
NEVER = ["zero", "'seven > 9'", "'seven < 7'"]
EMPTY = ["none", "nan", "'nan > 3'", "'2 < nan <= 5'", "'none = x'"]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("body", [*FIRES, *NEVER, *EMPTY])
def test_a_rule_about_a_constant_or_an_empty_column_is_learned_with_and_printed_as_it_was_said(
    body, hard, tmp_path
):
    x, y = table()
    model = LBMClassifier(knowledge=f"{body} & a -> y", hard=hard, **QUICK).fit(x, y)
    (found,) = model.confidences_
    assert found.formula == f"{body} & a -> y"
    assert found.fixed == hard
    p = model.predict_proba(x)
    assert np.isfinite(p).all()
    assert p.sum(axis=1) == pytest.approx(1)
    assert model.broken_ == ()
    save_model(model, tmp_path / "m")
    assert (load_model(tmp_path / "m").predict_proba(x) == p).all()
    assert np.isfinite(model.explain(x.iloc[:2])[0].by_column().log_odds)


@pytest.mark.parametrize("body", NEVER)
def test_a_rule_that_fired_on_no_row_keeps_its_confidence_and_speaks_where_it_fires_later(body):
    x, y = table()
    model = LBMClassifier(knowledge=f"{body} -> ~y", **QUICK).fit(x, y)
    assert model.confidences_[0].final == pytest.approx(5.0, abs=0.01)
    later = x.assign(zero=1, seven=99.0 if body == "'seven > 9'" else 1.0)
    odds = model.decision_function(x) - model.decision_function(later)
    assert odds == pytest.approx(np.full(len(x), 5.0), abs=0.1)


@pytest.mark.parametrize(("body", "value"), [("'nan > 3'", 4.0), ("'none = x'", "x"), ("nan", 1.0)])
def test_a_hard_rule_about_a_column_that_was_empty_counts_where_it_is_filled_later(body, value):
    x, y = table()
    model = LBMClassifier(knowledge=f"{body} -> ~y", hard=True, **QUICK).fit(x, y)
    column = body.strip("'").split()[0]
    assert (model.predict(x.assign(**{column: value})) == 0).all()


def test_hard_rules_that_clash_on_rows_are_counted_and_the_rows_named():
    """Both can hold together, where a is false: rows with a break one of them, whatever their class."""
    x, y = table()
    y = y.where(x["b"] == 1, 1 - y).rename("y")
    model = LBMClassifier(knowledge="a -> y\na -> ~y", hard=True, **QUICK).fit(x, y)
    said = {broken.formula: broken for broken in model.broken_}
    for formula, kind in (("a -> y", 0), ("a -> ~y", 1)):
        rows = np.flatnonzero((x["a"] == 1) & (y == kind)).tolist()
        assert said[formula].rows == tuple(rows)
        assert said[formula].count == len(rows) > 0
    p = model.predict_proba(x[x["a"] == 1])
    assert p == pytest.approx(p[:1].repeat(len(p), axis=0), abs=0.2)  # hard rules cancel there


def test_hard_rules_that_cannot_hold_together_are_named_and_rows_that_all_break_one_as_well():
    x, y = table()
    with pytest.raises(ContradictoryKnowledge, match=r"cannot: a -> y; a -> ~y; a; give one a weight"):
        LBMClassifier(knowledge="a -> y\na -> ~y\na\nb | ~b", hard=True, **QUICK).fit(x, y)
    with pytest.raises(ValueError, match=r"every row breaks a hard formula, such as .*: give it a weight"):
        LBMClassifier(knowledge="a -> ~y\nb -> ~y\n~a & ~b -> y", hard=True, **QUICK).fit(x, y)


def test_a_class_that_only_one_fold_has_is_learned_where_it_is_and_unknown_where_it_is_not():
    x, _ = table()
    y = pd.Series(["p", "q"] * 29 + ["p", "rare"], name="kind")
    model = LBMClassifier(**QUICK)
    folds = KFold(3)
    for train, test in folds.split(x):
        fitted = clone(model).fit(x.iloc[train], y.iloc[train])
        assert fitted.classes_.tolist() == sorted(set(y.iloc[train]))
        assert set(fitted.predict(x.iloc[test])) <= set(y.iloc[train])
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        found = cross_val_predict(model, x, y, cv=folds, method="predict_proba")
    assert found.shape == (60, 3)
    assert found.sum(axis=1) == pytest.approx(1)


def test_a_class_of_one_row_is_kept_and_given_a_probability():
    x, _ = table()
    y = pd.Series(["p", "q"] * 29 + ["p", "rare"], name="kind")
    model = LBMClassifier(knowledge="a -> 'kind = rare'", **QUICK).fit(x, y)
    assert model.classes_.tolist() == ["p", "q", "rare"]
    assert (model.predict_proba(x)[:, 2] > 0).all()


@pytest.mark.parametrize("knowledge", [None, "a -> y"])
def test_duplicate_rows_with_opposite_labels_end_near_even_odds(knowledge):
    x, y = table()
    both = pd.concat([x] * 4, ignore_index=True), pd.concat([y, 1 - y] * 2, ignore_index=True).rename("y")
    model = LBMClassifier(knowledge=knowledge, hidden=10, max_epochs=150, random_state=0).fit(*both)
    assert model.predict_proba(x) == pytest.approx(np.full((len(x), 2), 0.5), abs=0.1)
    if knowledge:
        assert model.confidences_[0].final < 1


def test_duplicate_rows_with_opposite_labels_break_a_hard_rule_and_are_named():
    x, y = table()
    both = pd.concat([x, x], ignore_index=True), pd.concat([y, 1 - y], ignore_index=True).rename("y")
    model = LBMClassifier(knowledge="a -> y", hard=True, **QUICK).fit(*both)
    (broken,) = model.broken_
    assert broken.rows == tuple((np.flatnonzero(x["a"] == 1) + len(x)).tolist())


@pytest.mark.parametrize(
    ("said", "near"), [("kind = rare", ""), ("kind = qq", "kind = q"), ("kind = P", "kind = p")]
)
@pytest.mark.parametrize("kinds", [["p", "q"], ["p", "q", "s"]])
def test_a_rule_that_names_a_class_that_is_not_there_is_an_error_that_suggests(said, near, kinds):
    x, _ = table()
    y = pd.Series((kinds * 60)[:60], name="kind")
    with pytest.raises(UnknownAtom, match=f"no atom '{said}' in this table; did you mean '{near}"):
        LBMClassifier(knowledge=f"a -> '{said}'", **QUICK).fit(x, y)
