"""Averages of machines: draws keep classes, the mean is the mean, one machine is the machine itself."""

import numpy as np
import pandas as pd

from lbm.training.learners.classifier import LBMClassifier
from lbm.training.relational.average import FEW, MACHINES, draw, fit_average, how_many

TABLE = pd.DataFrame(
    {"a": [0, 0, 0, 1, 1, 1, 0, 1], "b": [0, 1, 0, 1, 0, 1, 0, 1], "c": [1, 1, 0, 0, 1, 0, 1, 0]}
)
LABELS = np.array([0, 0, 0, 1, 1, 1, 0, 1], dtype=bool)


def machine(seed):
    return LBMClassifier(
        hidden=3, target="y", max_epochs=3, validation_fraction=0.0, encode="never", random_state=seed
    )


def average(machines, keep=lambda rows, labels: [0, 2]):
    return fit_average(TABLE, LABELS, machines=machines, keep=keep, make=machine, seed=5)


def test_a_draw_has_as_many_rows_of_each_class_as_there_are():
    for seed in range(20):
        rows = draw(LABELS, np.random.default_rng(seed))
        assert len(rows) == len(LABELS)
        assert LABELS[rows].sum() == LABELS.sum()


def test_draws_differ_from_one_another():
    found = {tuple(draw(LABELS, np.random.default_rng([0, k])).tolist()) for k in range(10)}
    assert len(found) == 10


def test_one_machine_is_trained_on_the_rows_as_they_are():
    alone = machine(5).fit(TABLE[["a", "c"]], LABELS).decision_function(TABLE[["a", "c"]])
    assert np.array_equal(average(1).decision_function(TABLE), alone)


def test_log_odds_are_the_mean_of_the_machines():
    found = average(3)
    each = [one.decision_function(TABLE[["a", "c"]]) for one, _ in found.members]
    assert np.allclose(found.decision_function(TABLE), sum(each) / 3)
    assert not np.array_equal(each[0], each[1])


def test_columns_are_chosen_on_the_rows_that_a_machine_is_trained_on():
    seen = []

    def keep(rows, labels):
        seen.append((rows, labels))
        return [len(seen) % 3, 2] if len(seen) % 3 != 2 else [2]

    found = average(3, keep)
    assert [kept for _, kept in found.members] == [(1, 2), (2,), (0, 2)]
    assert found.columns == 2
    assert all(((rows["a"] == 1) == labels).all() for rows, labels in seen)


def test_the_rarer_class_decides_how_many_unless_it_is_said():
    rare = np.arange(10 * FEW) < FEW - 1
    enough = np.arange(10 * FEW) < FEW
    assert how_many(rare, None) == how_many(~rare, None) == MACHINES
    assert how_many(enough, None) == how_many(~enough, None) == 1
    assert how_many(rare, 3) == how_many(enough, 3) == 3
