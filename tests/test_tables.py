"""What the benchmark of tables rests on: scores that mean what they say, tables as they are, and verdicts."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tables(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "tables", raising=False)
    import tables

    return tables


def test_scores_are_those_of_scikit_learn(tables):
    random = np.random.default_rng(0)
    for kinds in (2, 3, 7):
        classes = np.array([f"k{i}" for i in range(kinds)])
        y = random.choice(classes, 200)
        p = random.dirichlet(np.ones(kinds), 200)
        found = tables.scores(p.copy(), y, classes)
        assert found["loss"] == pytest.approx(log_loss(y, p, labels=classes), abs=1e-6)
        auc = roc_auc_score(y, p[:, 1] if kinds == 2 else p, multi_class="ovr")
        assert found["auc"] == pytest.approx(auc, abs=1e-6)
        assert found["accuracy"] == (classes[p.argmax(axis=1)] == y).mean()
    sure = np.eye(2)[[0, 1, 1, 0] * 10]
    assert tables.scores(sure, np.array([0, 1, 1, 0] * 10), np.array([0, 1])) == {
        "accuracy": 1.0, "auc": 1.0, "loss": 0.0, "ece": 0.0,
    }  # fmt: skip
    wrong = tables.scores(sure, np.array([1, 0, 0, 1] * 10), np.array([0, 1]))
    assert (wrong["accuracy"], wrong["ece"]) == (0.0, 1.0)


def test_a_class_that_training_did_not_have_has_no_probability(tables):
    found = tables.aligned(np.array([[0.25, 0.75]]), ["a", "c"], np.array(["a", "b", "c"]))
    assert found.tolist() == [[0.25, 0.0, 0.75]]


def test_tables_that_are_installed_have_classes_and_none_of_the_columns_left_out(tables):
    from measuring import real

    for name in real.installed():
        x, y = real.table(name)
        assert len(x) == len(y) > 100
        assert 2 <= y.nunique() <= 10
        assert y.notna().all()
        left_out = {*real.TABLES[name].left_out, real.TABLES[name].target}
        assert not left_out & set(x.columns)
    assert len(real.TABLES) >= 20
    assert {"breast cancer", "iris", "wine", "digits"} <= set(real.installed())


def test_learners_that_are_installed_predict_words_gaps_and_unseen_categories(tables):
    import pandas as pd
    from measuring.contenders import CONTENDERS, present, quietly

    random = np.random.default_rng(0)
    x = pd.DataFrame({"n": random.normal(size=120), "w": random.choice(["a", "b", None], 120)})
    x.loc[::7, "n"] = np.nan
    y = np.where(x["n"].fillna(0) + (x["w"] == "a") > 0.5, "yes", "no")
    new = pd.DataFrame({"n": [0.0, np.nan, 2.0], "w": ["c", None, "a"]})
    here, lacking = present()
    assert {"LBM", "logistic", "forest", "HistGB"} <= set(here)
    assert set(here) | set(lacking) == set(CONTENDERS)
    for name in here:
        learner = CONTENDERS[name].make({"max_epochs": 3} if name == "LBM" else {}, 0)
        quietly(lambda: learner.fit(x, y))  # noqa: B023
        p = quietly(lambda: learner.predict_proba(new))  # noqa: B023
        assert p.shape == (3, 2)
        assert p.sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert len(CONTENDERS[name].settings) == 4


def rows_of(loss):
    """Return rows as a run would have stored them: one seed, one fold, from log-losses by learner."""
    found = []
    for learner, by_table in loss.items():
        for name, value in by_table.items():
            fold = {
                "accuracy": 1 - value / 3,
                "auc": 0.9,
                "loss": value,
                "ece": 0.1,
                "fit": 0.5,
                "predict": 0.1,
            }
            fold |= {"choosing": 0.0}
            if learner in ("LBM", "RuleFit"):
                fold["rules"] = 5 if learner == "LBM" else 20
            if learner == "LBM":
                fold |= {"rules accuracy": 1 - value / 3, "rules fidelity": 0.97, "printed fidelity": 0.99}
                fold["used again"] = 1.0
            key = ["real", name, learner, "defaults", 0, *(["abc"] if learner == "LBM" else [])]
            found.append({"key": key, "rows": 100, "columns": 4, "classes": 2, "folds": [fold]})
    return found


def said(section):
    return {goal.partition(" (")[0].partition(" on average")[0]: met for goal, met in section.wanted}


def test_verdicts_follow_from_the_figures(tables):
    good = {
        "LBM": {"a": 0.3, "b": 0.4, "c": 0.5},
        "EBM": {"a": 0.31, "b": 0.395, "c": 0.5},
        "logistic": {"a": 0.4, "b": 0.5, "c": 0.6},
        "HistGB": {"a": 0.35, "b": 0.5, "c": 0.55},
        "RuleFit": {"a": 0.5, "b": 0.6, "c": 0.7},
    }
    found = said(tables.section(rows_of(good)))
    assert len(found) == 6
    assert all(found.values())
    bad = good | {"logistic": {"a": 0.2, "b": 0.3, "c": 0.5}, "EBM": {"a": 0.1, "b": 0.2, "c": 0.31}}
    found = said(tables.section(rows_of(bad)))
    assert not found["mean log-loss of LBM at defaults the least of all but EBM's"]
    assert not found["its mean rank, too"]
    assert not found["mean log-loss at most a paired standard error above EBM's"]
    slow = rows_of(good)
    slow[0]["folds"][0]["fit"] = 5.1
    goal = "no fit longer than ten of HistGB's or 3 s of CPU time, whichever is more"
    assert not said(tables.section(slow))[goal]
    slow[0]["folds"][0]["fit"] = 4.9
    assert said(tables.section(slow))[goal]  # ten times HistGB's is 5 s


def test_a_table_that_one_learner_failed_on_counts_for_none_and_is_told(tables):
    rows = rows_of({"LBM": {"a": 0.3, "b": 0.4}, "EBM": {"a": 0.3, "b": 0.2}})
    del rows[-1]["folds"]
    rows[-1]["failed"] = "ValueError: too many classes"
    text = tables.section(rows).text()
    assert "1 real tables, defaults" in text
    assert "ValueError: too many classes" in text


def test_ours_alone_is_measured_again_when_our_code_changes(tables):
    one, other = (tables.keys_of(True, ["LBM", "logistic"], digest) for digest in ("abc", "def"))
    both = set(one) & set(other)
    assert both
    assert all("logistic" in key for key in both)
    assert all(any(str(part).startswith("LBM") for part in key) for key in set(one) - both)
    assert len(set(one)) == len(one)


def test_a_made_table_is_measured_whole_and_a_learner_that_fails_ends_nothing(tables, monkeypatch):
    monkeypatch.setattr(tables, "made", lambda *_: small(tables))
    row = tables.measure(True)("made", 1000, 20, "LBM", 0, "digest")
    assert 0.6 < row["folds"][0]["auc"] <= 1
    assert row["cpu"] > row["folds"][0]["fit"] > 0
    failed = tables.measure(True)("made", 1000, 20, "no such learner", 0)
    assert failed["failed"].startswith("KeyError")


def small(tables):
    from measuring.real import made

    x, y, other, truth = made(300, 20, 0)
    return x, y, other.iloc[:200], truth[:200]
