"""Turns: rules have the weights that rows give them, bins and free units what is left."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from lbm.knowledge.formula import atoms_of, holds
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names, label_patterns
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.learners.turns import Said, fold_rows

RULES = "'sex = women' -> alive\n'sex = man' -> alive\n'age = child' & 'age = adult' -> ~alive"
QUICK = {"hidden": 4, "max_epochs": 3}


def ship(rows=1300, seed=0):
    """Passengers, of whom women and children of the upper classes were saved."""
    random = np.random.default_rng(seed)
    sex = np.where(random.random(rows) < 0.35, "women", "man")
    age = np.where(random.random(rows) < 0.08, "child", "adult")
    deck = random.choice(["1st", "2nd", "3rd"], rows, p=[0.25, 0.2, 0.55])
    odds = -1.6 + 2.4 * (sex == "women") + 1.0 * (age == "child") + 0.9 * (deck == "1st")
    odds -= 1.2 * ((deck == "3rd") & (sex == "women"))
    y = random.random(rows) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame({"sex": sex, "age": age, "deck": deck}), pd.Series(y, name="alive")


def loss(model, x, y):
    p = model.predict_proba(x)
    return -np.log(p[np.arange(len(p)), np.searchsorted(model.classes_, y)]).mean()


def non_negative(firings, y):
    """A non-negative logistic regression with a free bias, by its own code."""

    def cost(values):
        odds = np.where(y, 1, -1) * (firings @ values[:-1] + values[-1])
        pull = -np.where(y, 1, -1) / (1 + np.exp(odds))
        return np.logaddexp(0, -odds).sum(), np.append(pull @ firings, pull.sum())

    bounds = [(0, None)] * firings.shape[1] + [(None, None)]
    return minimize(cost, np.zeros(firings.shape[1] + 1), jac=True, bounds=bounds, method="TNC").x[:-1]


# --- rules ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fires on none")
def test_in_twenty_of_twenty_seeds_a_true_rule_keeps_its_weight_and_a_contradicted_one_loses_it():
    x, y = ship()
    firings = (x.sex == "women").to_numpy(dtype=float)[:, None]
    (wanted,) = non_negative(firings, y.to_numpy())
    for seed in range(20):
        true, wrong, silent = (
            LBMClassifier(knowledge=RULES, random_state=seed, **QUICK).fit(x, y).confidences_
        )
        assert true.final == pytest.approx(wanted, abs=0.1)
        assert wrong.final < 0.2
        assert silent.initial == 5.0
        assert silent.final == pytest.approx(5.0, abs=1e-6)


def test_weights_are_those_of_a_non_negative_logistic_regression_on_what_rules_say():
    random = np.random.default_rng(1)
    x = pd.DataFrame(random.integers(0, 2, (3000, 3)), columns=list("abc"))
    odds = -0.5 + 1.5 * x.a - 1.0 * (x.b & x.c)
    y = pd.Series(random.random(3000) < 1 / (1 + np.exp(-odds)), name="y")
    rules = "a -> y\nb & c -> ~y\n~b -> ~y\n0.5: a & b -> y"
    model = LBMClassifier(knowledge=rules, random_state=0, **QUICK).fit(x, y)
    firings = np.stack([x.a, -(x.b & x.c), -(1 - x.b), x.a & x.b], axis=1).astype(float)
    found = [one.final for one in model.confidences_]
    np.testing.assert_allclose(found, non_negative(firings, y.to_numpy()), atol=0.1)


def test_a_rule_that_fires_on_no_row_is_reported_with_none_and_warned_of():
    x, y = ship()
    with pytest.warns(
        UserWarning, match="'age = child' & 'age = adult' -> ~alive fires on none of 1,300 rows"
    ):
        model = LBMClassifier(knowledge=RULES, random_state=0, **QUICK).fit(x, y)
    true, wrong, silent = model.confidences_
    assert (silent.rows, silent.right, silent.lift) == (0, None, None)
    women = (x.sex == "women").to_numpy()
    assert (true.rows, wrong.rows) == (women.sum(), (~women).sum())
    assert true.right == pytest.approx(y[women].mean())
    assert true.lift == pytest.approx(y[women].mean() / y.mean())
    assert wrong.lift == pytest.approx(y[~women].mean() / y.mean())


@pytest.mark.filterwarnings("ignore:.*fires on none")
def test_rows_not_seen_are_no_worse_off_with_rules_than_without():
    """Over ten draws on average, and for wrong rules, too."""
    wrong = "'sex = man' -> alive\n'deck = 3rd' -> alive"
    gains = []
    for seed in range(10):
        x, y = ship(700, seed=seed)
        train, rest = slice(0, 60), slice(60, None)
        found = [
            loss(
                LBMClassifier(knowledge=k, random_state=0, **QUICK).fit(x[train], y[train]), x[rest], y[rest]
            )
            for k in (None, RULES, wrong)
        ]
        gains.append([found[0] - found[1], found[0] - found[2]])
    right, bad = np.mean(gains, axis=0)
    assert right > -0.002
    assert bad > -0.01


@st.composite
def theories(draw):
    """A theory over columns and label atoms, and rows, from a number."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = int(random.integers(2, 4))
    labels = label_names("y", range(kinds))
    names = ["a", "b", "c", *(f"'{name}'" if " " in name else name for name in labels)]
    texts = []
    for _ in range(int(random.integers(1, 4))):
        one, two, three = random.choice(names, 3)
        shape = random.choice(["{} & {} -> {}", "{} <-> {} & ~{}", "{} | {} | ~{}", "{} -> ({} ^ {})"])
        texts.append(shape.format(one, two, three))
    return Theory.parse("\n".join(texts)), labels, (random.random((9, 3)) < 0.5)


@settings(max_examples=60)
@given(theories())
def test_what_formulae_say_of_rows_and_classes_is_their_truth(drawn):
    """Up to what they say of every class alike."""
    theory, labels, rows = drawn
    knowledge = compile_knowledge(theory, columns=["a", "b", "c"], labels=labels, units="calibrated")
    patterns = label_patterns(len(labels)).astype(float)
    said = Said(knowledge, patterns).of(rows)
    world = dict(zip("abc", rows.T, strict=True))
    for number, statement in enumerate(theory):
        truth = np.empty(said[:, number].shape)
        for k, pattern in enumerate(patterns):
            world |= {name: np.full(len(rows), bool(v)) for name, v in zip(labels, pattern, strict=True)}
            mine = {name: world[name] for name in atoms_of(statement.formula)}
            truth[:, k] = np.broadcast_to(holds(statement.formula, mine), len(rows))
        np.testing.assert_array_equal(said[:, number], truth)


# --- folds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [10, 65, 129, 1000, 2000, 12_000])
def test_every_row_judges_once_and_the_last_copy_sees_all_unless_rows_are_many(rows):
    kinds = np.arange(rows) % 3
    inside = fold_rows(kinds, 0.1, 0)
    if rows >= 10_000:
        assert inside.shape == (rows, 1)
        assert (~inside).sum() == 1200
    else:
        assert inside[:, -1].all()
        assert ((~inside).sum(axis=1) == 1).all()
    for kind in range(3):
        shares = (~inside[kinds == kind]).mean(axis=0)[: inside.shape[1] - (rows < 10_000)]
        assert np.ptp(shares) * rows / 3 <= 1.01 * inside.shape[1]
    assert fold_rows(kinds, 0.0, 0).all()


def test_free_units_that_rows_not_seen_speak_against_have_nothing_to_say():
    random = np.random.default_rng(0)
    x = pd.DataFrame(random.integers(0, 2, (60, 5)), columns=list("abcde"))
    y = pd.Series(random.random(60) < 0.5, name="y")
    model = LBMClassifier(random_state=0, learning_rate=0.1).fit(x, y)
    assert loss(model, x, y) > 0.6  # noise is not learned by heart
    assert abs(model.predict_proba(x)[:, 1] - y.mean()).max() < 0.2


# --- bins ----------------------------------------------------------------------------------------


def test_bins_are_rules_that_say_all_that_a_machine_without_free_units_says():
    random = np.random.default_rng(0)
    x = pd.DataFrame({"age": random.integers(0, 80, 500), "kind": random.choice(list("uvw"), 500)})
    odds = 0.05 * (x.age - 40) + 1.5 * (x.kind == "u") - 2.0 * (x.age > 60)
    y = pd.Series(random.random(500) < 1 / (1 + np.exp(-odds)), name="y")
    model = LBMClassifier(hidden=0, random_state=0, dtype="float64").fit(x, y)
    assert model.learned_
    assert not model.confidences_
    said = atoms_of(*(s.formula for s in model.network_.knowledge.statements))
    assert set(said) <= {*model.atoms_, "y"}
    for why in model.explain(x.iloc[:20]):
        firing = [term for term in why.terms if abs(term.value) > 1e-9]
        assert len(firing) <= 2  # one bin of each column
        assert why.log_odds == pytest.approx(why.bias + sum(term.value for term in firing))
    again = LBMClassifier(hidden=0, random_state=7, dtype="float64").fit(x, y)
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x), atol=0.05)  # other folds


def test_what_is_fitted_in_turns_needs_what_can_be():
    x, y = ship(40)
    with pytest.raises(ValueError, match="in_turn=True needs cost='discriminative'"):
        LBMClassifier(in_turn=True, cost="hybrid").fit(x, y)
    with pytest.raises(ValueError, match="thresholds is a whole number from 1 up, got 0"):
        LBMClassifier(thresholds=0).fit(x, y)
    together = LBMClassifier(in_turn=False, random_state=0, **QUICK).fit(x, y)
    assert not together.learned_


@pytest.mark.slow
def test_more_rows_never_make_predictions_clearly_worse():
    """Means of ten draws: from one number of rows to the next the loss rises by 3 % at most."""
    losses = []
    for rows in (20, 30, 50, 100, 200, 299, 300, 500):
        found = []
        for draw in range(10):
            x, y = ship(rows + 600, seed=draw)
            y.iloc[-2:] = [False, True]
            fitted = LBMClassifier(random_state=0).fit(x[600:], y[600:])
            found.append(loss(fitted, x[:600], y[:600]))
        losses.append(np.mean(found))
    assert max(after / before for before, after in pairwise(losses)) < 1.03
    assert losses[-1] < losses[0]


@pytest.mark.filterwarnings("ignore:.*fires on none")
def test_a_rule_about_a_column_that_nobody_has_a_value_of_is_not_judged_by_values_that_were_drawn():
    x, y = ship(200)
    rule = LBMClassifier(knowledge="9: cabin -> ~alive", random_state=0, **QUICK).fit(
        x.assign(cabin=np.nan), y
    )
    (found,) = rule.confidences_
    assert (found.final, found.rows) == (pytest.approx(9.0), 0)
    assert not rule.predict(x.assign(cabin=1.0)).any()
