"""Conjectures: rules of the shape that knowledge has, which rows speak for; and a classifier with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from lbm import LBMClassifier
from lbm.datasets import monk, tic_tac_toe
from lbm.knowledge.formula import atoms_of, holds
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.conjectures import conjecture
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names
from lbm.training.storage.store import model_bytes

GROUPED = ("p = u", "p = v", "q = u", "q = v", "r", "s")
LINES = ("'p = u' & r -> {}", "~'q = v' & s -> {}", "'q = u' & ~r -> ~{}")


def suggested(rules, table, kinds, *, most=12, seed=0, labels=("y",), columns=GROUPED):
    theory = Theory(rules)
    knowledge = compile_knowledge(theory, columns=columns, labels=labels)
    rows = np.asarray(table, dtype=float)
    return conjecture(knowledge, rows, np.asarray(kinds), np.ones(len(rows)), most=most, seed=seed)


def shape(rule):
    """Its head, and how many literals of either sign its body has."""
    body, head = rule.args
    literals, todo = [], [body]
    while todo:
        node = todo.pop()
        if node.kind == "and":
            todo += node.args
        else:
            literals.append(node.kind)
    return str(head), literals.count("atom"), literals.count("not")


def drawn(seed, classes):
    """Rows of which some values are missing, classes that hang on them, and rules about these."""
    random = np.random.default_rng(seed)
    table = random.integers(0, 2, (80, 6)).astype(float)
    kinds = (table[:, 4] * table[:, 1] + table[:, 5] * (classes - 2)).astype(np.int64)
    table[random.random(table.shape) < 0.05] = np.nan
    labels = label_names("y", range(classes))
    names = [f"'{labels[number % len(labels)]}'" for number in range(len(LINES))]
    return table, kinds, labels, [line.format(name) for line, name in zip(LINES, names, strict=True)]


def test_the_other_lines_of_tic_tac_toe_over_the_same_squares_are_conjectured_from_half_of_them():
    data = tic_tac_toe()
    options = {"labels": ["win"], "columns": list(data.table.columns)}
    for half in (data.rules[:4], data.rules[2:6], data.rules[4:]):
        found = suggested(half, data.table, data.target.to_numpy().astype(int), **options)
        used = set(atoms_of(*(rule.args[0] for rule in half)))
        others = [set(atoms_of(rule.args[0])) for rule in data.rules if rule not in half]
        others = [atoms for atoms in others if atoms <= used]
        assert others
        bodies = [set(atoms_of(rule.args[0])) for rule in found[: len(others)]]
        assert all(atoms in bodies for atoms in others)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(2, 3))
def test_a_conjecture_has_the_shape_of_a_rule_is_none_of_them_and_depends_on_the_seed_alone(seed, classes):
    table, kinds, labels, rules = drawn(seed, classes)
    found = suggested(rules, table, kinds, labels=labels, most=5, seed=seed)
    given_rules = [statement.formula for statement in Theory(rules)]
    assert len(found) == len(set(found)) <= 5
    assert not set(found) & set(given_rules)
    assert {shape(rule) for rule in found} <= {shape(rule) for rule in given_rules}
    assert found == suggested(rules, table, kinds, labels=labels, most=5, seed=seed)


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_the_best_conjecture_is_right_more_often_than_its_class_is_frequent_where_no_rule_speaks(seed):
    table, kinds, _, rules = drawn(seed, 2)
    found = suggested(rules, table, kinds, seed=seed)
    theory = [statement.formula for statement in Theory(rules)]
    truth = [
        {name: value for name, value in zip(GROUPED, row, strict=True) if not np.isnan(value)}
        for row in table.tolist()
    ]

    def fires(rule, row):
        return set(atoms_of(rule.args[0])) <= row.keys() and holds(
            rule.args[0], {k: bool(v) for k, v in row.items()}
        )

    for rule in found[:1]:  # those after it explain what it leaves over
        head = rule.args[1]
        rivals = [other for other in theory if other.args[1] == head]
        left = [i for i, row in enumerate(truth) if not any(fires(other, row) for other in rivals)]
        right = np.array([kinds[i] == (head.kind == "atom") for i in left])
        mine = np.array([fires(rule, truth[i]) for i in left], dtype=bool)
        assert right[mine].mean() > right.mean()


def test_rows_that_rules_explain_and_knowledge_without_rules_suggest_nothing():
    table = [[1, 0, 0, 0, 1, 0]] * 20 + [[0, 0, 0, 0, 0, 0]] * 20
    assert suggested(["'p = u' & r -> y"], table, [1] * 20 + [0] * 20) == ()
    assert suggested(["r -> s"], table, [1] * 20 + [0] * 20) == ()
    assert suggested(["'p = u' & r -> y"], table, [0] * 20 + [1] * 20, most=0) == ()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_learns_conjectures_beside_gaps_many_classes_and_weights_and_does_so_alike(classes):
    table, kinds, _, rules = drawn(3, classes)
    options = {"knowledge": Theory(rules), "names": GROUPED, "target": "y", "hidden": 2, "max_epochs": 1}
    weights = np.where(np.arange(len(kinds)) % 9, 1.0, 0.0)
    made = [
        LBMClassifier(**options, conjectures=4, random_state=1).fit(x, kinds, sample_weight=weights)
        for x in (table, csr_array(table), table)
    ]
    first = made[0]
    assert len(rules) < len(first.confidences_) <= len(rules) + 4
    assert [one.initial for one in first.confidences_] == [5.0] * len(first.confidences_)
    assert model_bytes(first) == model_bytes(made[2])
    assert [one.formula for one in made[1].confidences_] == [one.formula for one in first.confidences_]
    assert len(LBMClassifier(**options).fit(table, kinds).confidences_) == len(rules)


def test_wrong_rules_with_conjectures_and_all_data_end_as_near_as_no_rules():
    data = monk(1)
    x, y = data.table, data.target
    wrong = Theory([rule.args[0] >> ~rule.args[1] for rule in data.rules])
    options = {"random_state": 0, "validation_fraction": 0.0, "learning_rate": 0.02, "max_epochs": 50}
    with_rules = LBMClassifier(knowledge=wrong, conjectures=12, **options).fit(x, y)
    assert with_rules.score(x, y) >= LBMClassifier(**options).fit(x, y).score(x, y) - 0.01


@pytest.mark.parametrize("value", [-1, 1.5, True, "some"])
def test_a_number_of_conjectures_that_is_none_is_an_error(value):
    table, kinds, _, _ = drawn(0, 2)
    with pytest.raises(ValueError, match="conjectures is a whole number from 0 up, got"):
        LBMClassifier(conjectures=value).fit(table, kinds)
