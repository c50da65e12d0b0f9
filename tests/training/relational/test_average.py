"""Averages of machines: settings take turns, the mean is the mean, one machine is the machine itself."""

import numpy as np
import pandas as pd

from lbm.training.learners.classifier import LBMClassifier
from lbm.training.relational.average import FEW, MACHINES, fit_average, how_many

TABLE = pd.DataFrame(
    {"a": [0, 0, 0, 1, 1, 1, 0, 1], "b": [0, 1, 0, 1, 0, 1, 0, 1], "c": [1, 1, 0, 0, 1, 0, 1, 0]}
)
LABELS = np.array([0, 0, 0, 1, 1, 1, 0, 1], dtype=bool)


def machine(seed):
    return LBMClassifier(
        hidden=3, target="y", max_epochs=3, validation_fraction=0.0, encode="never", random_state=seed
    )


def average(machines, settings=("only",)):
    keep = {"only": [0, 2], "all": [0, 1, 2], "one": [1]}.get
    return fit_average(
        TABLE, LABELS, settings, machines=machines, keep=keep, make=lambda _, seed: machine(seed), seed=5
    )


def test_one_machine_is_trained_with_the_best_setting():
    alone = machine(5).fit(TABLE[["a", "c"]], LABELS).decision_function(TABLE[["a", "c"]])
    assert np.array_equal(average(1, ("only", "all")).decision_function(TABLE), alone)


def test_log_odds_are_the_mean_of_the_machines():
    found = average(3)
    each = [one.decision_function(TABLE[["a", "c"]]) for one, _ in found.members]
    assert np.allclose(found.decision_function(TABLE), sum(each) / 3)
    assert not np.array_equal(each[0], each[1])


def test_the_best_settings_take_turns_each_with_its_columns():
    made = []

    def make(setting, seed):
        made.append((setting, seed))
        return machine(seed)

    settings = ["s1", "s2", "s3", "s4", "s5"]
    found = fit_average(
        TABLE, LABELS, settings, machines=6, keep=lambda setting: [int(setting[1]) % 3], make=make, seed=7
    )
    assert made == [("s1", 7), ("s2", 8), ("s3", 9), ("s4", 10), ("s1", 11), ("s2", 12)]
    assert [kept for _, kept in found.members] == [(1,), (2,), (0,), (1,), (1,), (2,)]
    assert average(3, ("only", "all", "one")).columns == 3


def test_the_rarer_class_decides_how_many_unless_it_is_said():
    rare = np.arange(10 * FEW) < FEW - 1
    enough = np.arange(10 * FEW) < FEW
    assert how_many(rare, None) == how_many(~rare, None) == MACHINES
    assert how_many(enough, None) == how_many(~enough, None) == 1
    assert how_many(rare, 3) == how_many(enough, 3) == 3
