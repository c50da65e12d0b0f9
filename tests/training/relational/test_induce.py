"""Induction: honest scores on folds, whatever the number of processes; knowledge of both kinds."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import lbm
from lbm.relations.evidence.weights import Choice
from lbm.relations.problem import RelationalProblem, load_problem, make_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.training.relational.induce import Setting, induce, parts
from lbm.training.relational.rules import read_rules
from lbm.training.relational.scores import mean_and_deviation, score

ONE = (Setting(1, 0.05, 0.01),)
QUICK = {"hidden": 4, "settings": ONE, "max_epochs": 30, "machines": 1}


def coloured() -> RelationalProblem:
    """Return a problem whose target is plainly a colour."""
    kinds = {f"o{k}": ("red" if k % 2 else "blue") for k in range(24)}
    facts = [f"colour({name}, {kind})." for name, kind in kinds.items()]
    facts += [f"weight({name}, {k / 3:.2f})." for k, name in enumerate(kinds)]
    return make_problem(
        "coloured",
        read_clauses("\n".join(facts)),
        read_clauses(" ".join(f"warm({name})." for name, kind in kinds.items() if kind == "red")),
        read_clauses(" ".join(f"warm({name})." for name, kind in kinds.items() if kind == "blue")),
        read_clauses(":- modeh(1, warm(+o)). :- modeb(1, colour(+o, #c)). :- modeb(1, weight(+o, -w))."),
    )


def ordered() -> RelationalProblem:
    """Return pairs of seven things in a strict order that no column tells."""
    pairs = list(permutations(range(7), 2))
    return make_problem(
        "ordered",
        read_clauses("thing(x0). even(x0). even(x2). even(x4). even(x6)."),
        read_clauses(" ".join(f"ex(x{a}, x{b})." for a, b in pairs if a < b)),
        read_clauses(" ".join(f"ex(x{a}, x{b})." for a, b in pairs if a > b)),
        read_clauses(":- modeh(1, ex(+x, +x)). :- modeb(1, even(+x))."),
    )


ORDER = """domain d = {}
forall X, Y in d: ~(ex(X, Y) & ex(Y, X))
forall X, Y in d, X != Y: ex(X, Y) | ex(Y, X)
forall X, Y, Z in d: ex(X, Y) & ex(Y, Z) -> ex(X, Z)
"""


def test_a_plain_concept_is_found_and_said_as_a_rule():
    seen = []
    found = induce(coloured(), folds=4, random_state=0, progress=seen.append, **QUICK)
    assert found.mean() == (1.0, 0.0)
    assert seen == [1, 2, 3, 4]
    assert [fold.name for fold in found.folds] == ["1", "2", "3", "4"]
    assert any("colour(A, " in rule and "warm" in rule for rule in found.rules)
    said = [line.split() for line in str(found).splitlines()]
    assert ["mean", *["100.00"] * 4] in said
    assert ["s.d.", *["0.00"] * 4] in said
    assert ((found.log_odds > 0) == np.array(coloured().labels)).all()


def test_the_setting_that_is_least_surprised_by_rows_put_aside_is_taken():
    good, idle = Setting(1, 0.05, 0.01), Setting(1, 1e-9, 0.01)
    for settings in ((good, idle), (idle, good)):
        found = induce(coloured(), folds=3, **{**QUICK, "settings": settings})
        assert {fold.setting for fold in found.folds} == {good}
        assert found.mean()[0] == 1


@pytest.mark.slow  # each process imports torch
def test_scores_do_not_depend_on_the_number_of_processes():
    one, two = (induce(coloured(), folds=3, n_jobs=jobs, **QUICK) for jobs in (1, 2))
    assert np.array_equal(one.log_odds, two.log_odds)
    assert one.folds == two.folds


def test_the_labels_of_a_fold_do_not_matter_for_its_predictions():
    problem = coloured()
    first = {example: str(k % 3) for k, example in enumerate(problem.examples)}
    problem = RelationalProblem(
        "a", problem.background, problem.positive, problem.negative, problem.modes, first
    )
    moved = [example for example in problem.examples if first[example] == "0"]
    positive = [e for e in problem.positive if e not in moved] + [e for e in problem.negative if e in moved]
    negative = [e for e in problem.negative if e not in moved] + [e for e in problem.positive if e in moved]
    other = RelationalProblem("b", problem.background, tuple(positive), tuple(negative), problem.modes, first)
    settings = (*ONE, Setting(2, 0.01, 0.1))
    options = {**QUICK, "settings": settings}
    odds = [
        dict(zip(p.examples, induce(p, **options).log_odds.tolist(), strict=True)) for p in (problem, other)
    ]
    # Examples stand in another order, so that batches differ: signs are what must agree.
    assert all((odds[0][example] > 0) == (odds[1][example] > 0) for example in moved)


def test_knowledge_over_columns_is_where_the_machine_begins():
    theory = "colour(A, red) <-> warm"
    found = induce(coloured(), folds=3, knowledge=theory, **QUICK)
    assert found.mean()[0] == 1.0
    assert [one.formula for one in found.classifier.confidences_] == ["colour(A, red) <-> warm"]


def test_rules_over_relations_tell_what_no_column_does():
    problem = ordered()
    alone = induce(problem, folds=7, groups="arguments", **QUICK)
    both = induce(problem, folds=7, groups="arguments", knowledge=ORDER, **QUICK)
    assert alone.mean()[0] < 0.75
    assert both.mean()[0] > alone.mean()[0]
    assert all(fold.share > 0 for fold in both.folds)
    assert [fold.alone for fold in both.folds] == [fold.scores for fold in alone.folds]


def test_labels_are_hard_evidence_until_no_world_keeps_them_all():
    rules, _ = read_rules(ORDER, ordered())
    every = np.arange(len(rules.labels))
    hard = rules.trust(every[:30])
    assert hard is None
    assert (np.sign(rules.log_odds(every[:30], every[30:], hard)) == -1).all()
    first = rules.names.index("ex(x0, x6)")
    wrong = replace(rules, labels=tuple(label and k != first for k, label in enumerate(rules.labels)))
    soft = wrong.trust(every)
    assert soft is not None
    assert wrong.log_odds(every, np.array([first]), soft)[0] > 0, "those between say that x0 is before x6"


def test_labels_of_which_any_but_all_can_be_kept_are_soft(monkeypatch):
    rules, _ = read_rules(ORDER, ordered())
    circle = np.array([rules.names.index(f"ex(x{k}, x{(k + 1) % 5})") for k in range(5)])
    turned = replace(rules, labels=tuple(label or k == circle[4] for k, label in enumerate(rules.labels)))
    assert turned.trust(circle[:4]) is None
    assert turned.trust(circle) is not None
    tried = []
    monkeypatch.setattr(
        "lbm.training.relational.rules.choose_weight",
        lambda *_, weights, **__: tried.extend(weights) or Choice(1.0, {}),
    )
    turned.trust(circle)
    assert tried, "a weight has to be chosen"
    assert None not in tried, "which any four of five would allow"


def test_knowledge_is_about_relations_if_it_names_the_target_with_arguments():
    problem = ordered()
    rules, theory = read_rules(ORDER, problem)
    assert rules is not None
    assert theory is None
    rules, theory = read_rules("even(A) -> ex", problem)
    assert rules is None
    assert isinstance(theory, lbm.Theory)
    assert read_rules(theory, problem) == (None, theory)
    assert read_rules(None, problem) == (None, None)


def test_a_setting_may_leave_few_columns_and_always_those_that_knowledge_mentions():
    few = (Setting(1, 0.05, 0.01, columns=1),)
    options = {**QUICK, "settings": few}
    assert {fold.columns for fold in induce(coloured(), folds=3, **options).folds} == {1}
    known = induce(coloured(), folds=3, knowledge="'weight(A,B), B >= 3' -> ~warm", **options)
    assert {fold.columns for fold in known.folds} == {2}
    assert known.mean()[0] == 1.0


def test_training_folds_are_dealt_into_parts_that_keep_folds_whole():
    names = np.array(list("aabbccdd"))
    labels = np.array([True, False] * 4)
    found = list(parts(names, labels))
    assert sum(part.astype(int) for part in found).tolist() == [1] * 8
    assert all(len(set(names[part].tolist()) & set(names[~part].tolist())) == 0 for part in found)
    assert list(parts(names[:2], labels[:2])) == []


def test_scores_of_a_known_confusion():
    found = score(np.array([1.0, 2.0, -1.0, 3.0, -2.0]), np.array([True, True, True, False, False]))
    assert found.accuracy == pytest.approx(3 / 5)
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found.f1 == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert found.precision_area == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)
    assert np.isnan(score(np.array([1.0]), np.array([False])).precision_area)
    assert mean_and_deviation([1.0, float("nan"), 0.0]) == (0.5, pytest.approx(0.5**0.5))


def test_no_machine_is_an_error():
    with pytest.raises(ValueError, match="machines must be at least 1, got 0"):
        induce(coloured(), machines=0)


def test_no_setting_is_an_error():
    with pytest.raises(ValueError, match="expected one setting at least"):
        induce(coloured(), settings=())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"), [("alz_memory", 0.90), ("alz_amine", 0.94), ("mutagenesis", 0.88)]
)
def test_accuracy_on_published_problems(dataset, name, least):
    problem = load_problem(dataset(name))
    of_pairs = name.startswith("alz")
    found = induce(
        problem,
        features="comparison" if of_pairs else "constants",
        groups="arguments" if of_pairs else None,
        n_jobs=2,
    )
    assert found.mean()[0] >= least
