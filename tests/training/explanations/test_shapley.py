"""What columns are worth is their Shapley value: against every order, and through predict_proba alone."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.network import Network
from lbm.training.boltzmann.parameters import parameters_of
from lbm.training.explanations import shapley
from lbm.training.explanations.shapley import shapley_values
from lbm.training.learners.classifier import LBMClassifier
from tests.training.problems import EVERY_ROW, networks, shake


def brute(odds, row, background, columns):
    """Return the mean log-odds of the background, and the mean over it and over every order of columns."""
    total, orders = np.zeros(len(columns)), list(permutations(range(len(columns))))
    for other in background:
        for order in orders:
            mixed = other.copy()
            before = odds(mixed)
            for column in order:
                mixed[columns[column]] = row[columns[column]]
                after = odds(mixed)
                total[column] += after - before
                before = after
    return np.mean([odds(other) for other in background]), total / len(orders) / len(background)


def rows_of(seed, most=6):
    random = np.random.default_rng(seed)
    return EVERY_ROW[random.integers(len(EVERY_ROW), size=random.integers(1, most))]


@settings(max_examples=30)
@given(networks(), st.integers(0, 2**32), st.sampled_from([[[0], [1], [2]], [[2], [0, 1]], [[0, 1, 2]]]))
def test_values_are_the_mean_over_every_order_and_every_background_row(network, seed, columns):
    def odds(x):
        scores = network.log_scores(torch.tensor(x[None]))[0].detach()
        return float(scores[1] - scores[0])

    row, background = rows_of(seed, 2)[0], rows_of(seed + 1)
    columns = [np.array(atoms) for atoms in columns]
    average, values, errors = shapley_values(parameters_of(network), row, background, columns, (1, 0))
    wanted = brute(odds, row, background, columns)
    assert average == pytest.approx(wanted[0], abs=1e-9)
    np.testing.assert_allclose(values, wanted[1], atol=1e-9)
    assert (errors == 0).all()
    assert average + values.sum() == pytest.approx(odds(row), abs=1e-9)


def fitted(columns, seed=0, rows=80, **options):
    """A model of columns of numbers, words and truth values, and its table."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            f"c{i}": [
                random.normal(size=rows).round(2),
                random.choice(["red", "green", "blue"], rows),
                random.integers(0, 2, rows),
            ][i % 3]
            for i in range(columns)
        }
    )
    y = (table["c0"] + (table["c1"] == "red") + table["c2"] + random.normal(0, 0.3, rows) > 0.8).astype(int)
    options = {"hidden": 4, "max_epochs": 10, "random_state": 0} | options
    return LBMClassifier(knowledge="'c0 > 0' & 'c1 = red' -> y", **options).fit(table, y), table


def test_a_models_columns_are_worth_what_predictions_of_mixed_rows_say():
    """The oracle knows nothing but predict_proba and the table's own cells."""
    model, table = fitted(4)
    background = table.iloc[:7]
    cells = table.to_numpy(dtype=object)

    def odds(x):
        row = pd.DataFrame([x], columns=table.columns).astype(dict(table.dtypes))
        return float(model.decision_function(row)[0])

    for number in (7, 21, 60):
        why = model.explain(table.iloc[[number]], background=background)[0]
        found = why.by_column()
        sign = 1 if why.kind == "1" else -1
        average, values = brute(odds, cells[number], cells[:7], [np.array([i]) for i in range(4)])
        assert found.average == pytest.approx(sign * average, abs=1e-9)
        shares = {share.column: share for share in found.shares}
        assert [shares[f"c{i}"].value for i in range(4)] == pytest.approx((sign * values).tolist(), abs=1e-9)
        assert found.exact
        assert [abs(s.value) for s in found.shares] == sorted(
            (abs(s.value) for s in found.shares), reverse=True
        )


@pytest.mark.parametrize("columns", [3, 10, 65, 129])
def test_the_average_and_all_columns_add_up_to_the_log_odds(columns):
    model, table = fitted(columns)
    for why in model.explain(table.iloc[:3]):
        found = why.by_column()
        total = found.average + sum(share.value for share in found.shares)
        assert total == pytest.approx(why.log_odds, abs=1e-9)
        assert found.log_odds == pytest.approx(why.log_odds, abs=1e-9)
        assert found.exact == (columns <= 10)
        assert found.rows == len(model.background_)


def test_where_orders_are_drawn_errors_tell_how_far_values_are_off(monkeypatch):
    """Of a machine whose units touch every column, so that no column is worth the same beside all others."""
    random = np.random.default_rng(0)
    names = [f"c{i}" for i in range(9)]
    network = Network(compile_knowledge(None, columns=names, labels=["y"]), hidden=12, dtype=torch.float64)
    shake(network, 0)
    learned, rows = parameters_of(network), random.integers(0, 2, (40, 9)).astype(float)
    columns = [np.array([i]) for i in range(9)]

    def each():
        return [shapley_values(learned, row, rows[6:], columns, (1, 0), seed=1)[1:] for row in rows[:6]]

    exact = each()
    monkeypatch.setattr(shapley, "ALL_SETS", 1)
    drawn = each()
    wanted, values, errors = (
        np.array([pair[k] for pair in some]) for some, k in ((exact, 0), (drawn, 0), (drawn, 1))
    )
    assert not np.array([pair[1] for pair in exact]).any()
    assert (errors[wanted != 0] > 0).all()
    assert errors.max() < 0.2
    off = abs(values - wanted)[errors > 0] / errors[errors > 0]
    assert off.max() < 5
    assert (off < 2).mean() > 0.85
    assert (off > 0.2).mean() > 0.4  # nor are they far too large
    assert values.sum(axis=1) == pytest.approx(wanted.sum(axis=1), abs=1e-9)


def test_a_column_that_is_the_same_everywhere_or_tells_nothing_is_worth_nothing():
    model, table = fitted(4)
    alike = table.iloc[[5] * 3].assign(c0=[-1.0, 0.0, 1.0])
    found = model.explain(table.iloc[[5]], background=alike)[0].by_column()
    assert {share.column for share in found.shares if share.value} <= {"c0"}


def test_a_row_with_gaps_is_explained_as_it_was_completed_and_so_are_background_rows():
    model, table = fitted(4)
    gaps = table.astype({"c2": float}).mask(np.random.default_rng(0).random(table.shape) < 0.3)
    for why in model.explain(gaps.iloc[:9], background=gaps.iloc[9:30]):
        found = why.by_column()
        assert found.average + sum(s.value for s in found.shares) == pytest.approx(why.log_odds, abs=1e-9)


def test_with_many_classes_the_class_is_compared_with_the_one_that_was_asked_for():
    _, table = fitted(3)
    kinds = np.digitize(table["c0"], [-0.5, 0.5])
    model = LBMClassifier(hidden=3, max_epochs=10, random_state=0).fit(table, kinds)
    for why in model.explain(table.iloc[:5], against=1):
        found = why.by_column()
        assert (found.kind, found.other) == (why.kind, why.other)
        assert found.log_odds == pytest.approx(why.log_odds, abs=1e-9)


def test_what_people_read_has_bars_errors_and_no_html_of_the_tables_own():
    table = pd.DataFrame({"<b>": [0, 1] * 20, "x": np.arange(40.0)})
    model = LBMClassifier(hidden=2, max_epochs=5, random_state=0).fit(table, table["<b>"].rename("y"))
    why = model.explain(table.iloc[:1])[0]
    found = why.by_column()
    assert {s.said for s in found.shares} == {"~'<b>'", f"'{model.atoms_[1]}'"}
    lines = str(found).splitlines()
    assert lines[0].startswith(f"log-odds of {why.kind} against {why.other} by column: ")
    assert "40 background rows" in lines[0]
    assert "█" in lines[1]
    for page in (found._repr_html_(), why._repr_html_()):
        assert "<b>" not in page
        assert "&lt;b&gt;" in page
        assert page.count("<table>") == page.count("</table>") > 0
    facts = found.to_dict()
    assert json.loads(json.dumps(facts)) == json.loads(json.dumps(facts))
    assert facts["exact"] is True
    json.dumps(why.to_dict())


def test_values_are_said_in_the_words_of_rules():
    model, table = fitted(3)
    row = table.iloc[[0]].assign(c0=100.0, c1="green", c2=1)
    said = {s.column: s.said for s in model.explain(row)[0].by_column().shares}
    last = [name for name in model.atoms_ if name.startswith("c0")][-1]
    assert said == {"c0": f"'{last.replace('<=', '>')}'", "c1": "'c1 = green'", "c2": "c2"}
    strange = model.explain(row.assign(c1="purple"))[0].by_column()
    assert "c1: another one" in {s.said for s in strange.shares}


def test_without_background_rows_the_error_says_what_to_give():
    model, table = fitted(3, background=0)
    assert model.background_ is None
    why = model.explain(table.iloc[:1])[0]
    with pytest.raises(ValueError, match=r"no background rows.* explain\(X, background=rows\)"):
        why.by_column()
    assert "Shapley" not in why._repr_html_()
    assert model.explain(table.iloc[:1], background=table)[0].by_column().rows == len(table)
    with pytest.raises(ValueError, match="background is a whole number from 0 up, got -1"):
        fitted(3, background=-1)


def test_background_rows_are_rows_that_were_trained_on_the_same_for_one_seed():
    model, table = fitted(4, rows=400)
    again, _ = fitted(4, rows=400)
    assert model.background_.shape == (100, len(model.atoms_))
    assert (model.background_ == again.background_).all()
    known = {row.tobytes() for row in np.concatenate(list(model._chunks(table))).astype(np.uint8)}
    assert {row.tobytes() for row in model.background_} <= known
