"""Extracted rules mean what they print: read again they predict new rows as before, on many tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from lbm.knowledge.theory import Theory
from lbm.training.learners.classifier import LBMClassifier


def words(seed, classes=2, rows=240):
    """Columns of every kind, some with awkward names, and a class that depends on four of them."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age (years)": random.integers(1, 90, rows),
            "it's": random.choice(["a & b", "x <= 3", "don't", "= 7", "né"], rows),
            "1st": random.integers(0, 2, rows),
            "p -> q": random.normal(size=rows).round(1),
            "true": random.choice(["yes", "no"], rows),
            "size < 3": random.integers(0, 2, rows),
            "c": random.choice(["1", "2", "3"], rows),
            "flag": random.random(rows) < 0.5,
        }
    )
    score = table["age (years)"] / 30 + (table["it's"] == "don't") * 1.5 + table["1st"] - table["p -> q"]
    score += random.normal(0, 0.3, rows)
    kinds = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    names = np.array(["no", "yes", "may be", "x = 1"])
    return table, pd.Series(names[kinds], name="what is it?")


def packaged(load, rows=400):
    x, y = load(return_X_y=True, as_frame=True)
    return x.iloc[:rows], y.iloc[:rows]


TABLES = {
    "iris": lambda: packaged(load_iris),
    "wine": lambda: packaged(load_wine),
    "breast cancer": lambda: packaged(load_breast_cancer),
    "digits": lambda: packaged(load_digits, 300),
    **{f"words {seed}": lambda seed=seed: words(seed) for seed in range(3)},
    "words, four classes": lambda: words(3, 4),
    "truth values": lambda: (
        pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 12)), columns=list("abcdefghijkl")),
        pd.Series(np.random.default_rng(0).integers(0, 2, (200, 12))[:, :3].sum(axis=1) > 1, name="most"),
    ),
}


@pytest.mark.parametrize("method", ["faithful", "confidence"])
@pytest.mark.parametrize("name", TABLES)
def test_rules_parsed_from_their_text_have_the_printed_fidelity_and_predict_new_rows_alike(name, method):
    x, y = TABLES[name]()
    order = np.random.default_rng(1).permutation(len(x))
    train, new = order[: len(x) // 2], order[len(x) // 2 :]
    model = LBMClassifier(hidden=12, max_epochs=25, random_state=0).fit(x.iloc[train], y.iloc[train])
    found = model.rules(x.iloc[train], y.iloc[train], method=method)
    again = LBMClassifier.from_knowledge(
        Theory.parse(str(found)),
        target=model.target_,
        columns=list(x.columns),
        classes=model.classes_.tolist(),
    )
    known = again.predict(x.iloc[train])
    assert (known == model.predict(x.iloc[train])).mean() == found.fidelity
    assert (known == y.iloc[train]).mean() == found.accuracy
    rows = x.iloc[new]
    assert (again.predict(rows) == found.predict(rows)).all()
    assert again.predict_proba(rows) == pytest.approx(found.predict_proba(rows), abs=1e-9)


def test_literals_that_others_imply_are_left_out_of_bodies():
    x, y = words(5)
    found = LBMClassifier(hidden=20, max_epochs=60, random_state=0).fit(x, y).rules(x)
    for rule in found.rules:
        for column in ("age (years)", "p -> q"):
            bounds = [literal for literal in rule.literals if literal.startswith(f"'{column} ")]
            assert sum("<=" in bound for bound in bounds) <= 1
            assert sum(">" in bound for bound in bounds) <= 1
        which = [literal for literal in rule.literals if "it's" in literal]
        assert len(which) <= 1 or all(literal.startswith("~") for literal in which)
