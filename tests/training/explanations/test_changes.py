"""What would have to change: confirmed by the model, few columns, and said if there is none."""

import json
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.training.learners.classifier import LBMClassifier
from tests.training.explanations.test_shapley import fitted


def cell(model, column, said, rows):
    """Return a cell of which an explanation says ``said``: one of the table's, or the end of an interval."""
    for value in rows[column]:
        row = rows.iloc[[0]].assign(**{column: value})
        context = model.context()
        (found,) = (c for c in context.columns if c.name == column)
        if found.said(next(iter(model._chunks(row)))[0]) == said:
            return value
    raise AssertionError(f"no cell of {column} is {said}")


@pytest.mark.parametrize("seed", range(4))
def test_the_model_predicts_the_other_class_for_a_table_row_that_was_changed_so(seed):
    """Only cells of the table itself, no atoms, go into the changed row."""
    model, table = fitted(6, seed=seed, rows=120, hidden=6)
    found = 0
    for number, why in enumerate(model.explain(table.iloc[:8])):
        change = why.change()
        assert (change.kind, change.other) == (why.kind, why.other)
        if not change.found:
            continue
        row = table.iloc[[number]]
        for step in change.steps:
            assert step.now in {share.said for share in why.by_column().shares}
            row = row.assign(**{step.column: cell(model, step.column, step.then, table)})
        assert str(model.predict(row)[0]) == change.other
        assert model.predict_proba(row).max() == pytest.approx(change.probability, abs=1e-9)
        for some in combinations(change.steps, len(change.steps) - 1):  # no step could be left out
            back = table.iloc[[number]]
            for step in some:
                back = back.assign(**{step.column: cell(model, step.column, step.then, table)})
            assert str(model.predict(back)[0]) != change.other
        found += 1
    assert found >= 4


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_where_rules_are_the_machine_no_fewer_columns_would_do(seed):
    """Against every row of four columns of truth values."""
    random = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    lines = []
    for _ in range(random.integers(1, 4)):
        body = " & ".join(
            ("~" if random.random() < 0.4 else "") + name
            for name in random.choice(names, random.integers(1, 4), replace=False)
        )
        lines.append(f"{random.integers(1, 30) / 10}: {body} -> {'~' if random.random() < 0.5 else ''}y")
    model = LBMClassifier.from_knowledge(
        "\n".join(lines), target="y", columns=names, default=float(random.integers(-5, 6)) / 7
    )
    every = pd.DataFrame(list(product((0, 1), repeat=4)), columns=names)
    assume(model.context().extraction.fidelity == 1 and not model.undecided(every).any())
    predicted = model.predict(every)
    for number in random.choice(16, 4, replace=False).tolist():
        change = model.explain(every.iloc[[number]])[0].change()
        apart = (every != every.iloc[number]).sum(axis=1)[predicted != predicted[number]]
        assert change.found == (len(apart) > 0)
        if change.found:
            assert len(change.steps) == apart.min()


def test_columns_that_are_kept_do_not_change_and_unknown_ones_are_named():
    model, table = fitted(6)
    whys = model.explain(table.iloc[:12])
    changed = {step.column for why in whys for step in why.change().steps}
    assert changed
    for name in changed:
        for why in whys:
            change = why.change(keep=[name])
            assert name not in {step.column for step in change.steps}
            assert change.kept == (name,)
    with pytest.raises(
        ValueError, match="'colour', which is no column that this model uses: expected some of c0"
    ):
        whys[0].change(keep=["colour"])
    with pytest.raises(ValueError, match=r"'c11', which is no column .*; did you mean 'c1'"):
        whys[0].change(keep=["c11"])


def test_where_nothing_would_change_the_class_it_is_said():
    model, table = fitted(3)
    why = model.explain(table.iloc[:1])[0]
    change = why.change(keep=["c0", "c1", "c2"])
    assert not change.found
    assert str(change) == f"no change to {why.other}: the rules speak of no column that may change"
    always = LBMClassifier.from_knowledge("5: y\n0.5: a -> ~y", target="y", columns=["a"])
    change = always.explain(pd.DataFrame({"a": [0]}))[0].change()
    assert not change.found
    assert str(change) == "no change to False: the model confirms none of those that the rules suggest"
    assert json.loads(json.dumps(change.to_dict()))["found"] is False


def test_a_number_moves_no_farther_than_it_has_to():
    table = pd.DataFrame({"x": np.arange(200.0)})
    model = LBMClassifier(hidden=4, random_state=0, max_epochs=80).fit(table, (table["x"] > 100).astype(int))
    cuts = model.layout_.encoder.groups_[0].cuts
    change = model.explain(pd.DataFrame({"x": [199.0]}))[0].change()
    predicted = model.predict(pd.DataFrame({"x": [0.0, *cuts]}))  # a row in each interval, ascending
    last = [cut for cut, kind in zip(cuts, predicted[1:], strict=True) if kind == 0][-1]
    assert change.steps[0].then.endswith(f"<= {last:g}'")


def test_the_rules_that_fire_are_those_whose_bodies_are_true_heaviest_first():
    knowledge = "3: a & ~b -> y\n2: b -> ~y\n1: c -> y"
    model = LBMClassifier.from_knowledge(knowledge, target="y", columns=["a", "b", "c"])
    rows = pd.DataFrame(list(product((0, 1), repeat=3)), columns=["a", "b", "c"])
    for why, row in zip(model.explain(rows), rows.to_dict("records"), strict=True):
        said = " ".join(rule.text for rule in why.rules)
        assert ("a & ~b -> y" in said) == bool(row["a"] and not row["b"])
        assert ("b -> ~y" in said) == bool(row["b"])
        assert ("c -> y" in said) == bool(row["c"])
        weights = [rule.weight for rule in why.rules]
        assert weights == sorted(weights, reverse=True)


def test_rules_that_fire_are_extracted_once_and_agree_with_the_model_on_its_own_rows():
    model, table = fitted(6, rows=200)
    whys = model.explain(table.iloc[:5])
    assert len({id(why.about.context.extraction) for why in whys}) == 1
    assert whys[0].about.context.extraction.fidelity > 0.9
    assert all(why.rules for why in whys)


def test_an_unseen_category_may_change_to_a_known_one():
    model, table = fitted(3, rows=200)
    row = table.iloc[[0]].assign(c0=0.4, c1="purple", c2=0)
    (why,) = model.explain(row)
    change = why.change()
    assert {step.now for step in change.steps} <= {share.said for share in why.by_column().shares}
