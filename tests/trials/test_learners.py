"""What learning parts are made of: tables, the nets of CILP++, protocols, tests of differences."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, ttest_1samp
from sklearn.linear_model import LogisticRegression

from lbm.errors import FileError, ParseError
from lbm.knowledge.formula import holds
from lbm.relations.prolog.terms import arguments
from lbm.trials.learners import sets
from lbm.trials.learners.cilp import activation, initial_net, log_odds, train_net
from lbm.trials.learners.comparing import holm, interval_99, paired_chance, ranks
from lbm.trials.learners.fits import (
    LEARNERS,
    SETTINGS,
    clauses_as_theory,
    curve,
    drawn_of_each,
    share_of_clauses,
)
from lbm.trials.learners.protocols import Judged, believed, chosen, judge_fold, put_aside
from lbm.trials.learners.relational import ORDER, flipped, fold_names, learn_fold, made_order, with_folds

OURS = "example\tlabel\tfold\tbody_literals\n"
THEIRS = "fold\tlabel\tbottom_clause\n"


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- tables ----------------------------------------------------------------------------------------


def test_a_file_of_ours_gives_a_column_for_each_literal_and_knows_which_rows_are_one_pair(tmp_path):
    lines = "ex(b1,a1)\tpos\t7\tp(A,C) q(B)\nex(a1,b1)\tneg\t1\tq(B) r(A)\n"
    table = sets.read_table(written(tmp_path / "bcp.tsv", OURS + lines), "alz")
    assert table.cells.tolist() == [[True, True, False], [False, True, True]]
    assert table.labels.tolist() == [True, False]
    assert table.fold_names == ["1", "7"]
    assert table.pairs[0] == table.pairs[1]


@pytest.mark.parametrize(("name", "labels"), [("krk", [True, False]), ("mutagenesis", [False, True])])
def test_the_labels_of_mutagenesis_are_swapped_back_and_no_others(tmp_path, name, labels):
    lines = "1\tpos\tt(A):-p(A;B),q(B).\n10\tneg\tt(A):-q(B).\n"
    table = sets.read_table(written(tmp_path / "bcp.tsv", THEIRS + lines), name)
    assert table.cells.tolist() == [[True, True], [False, True]]
    assert table.labels.tolist() == labels
    assert table.fold_names == ["1", "10"]


def test_a_line_with_too_few_cells_is_named(tmp_path):
    with pytest.raises(ParseError, match=r"bcp\.tsv:2: expected 3 cells"):
        sets.read_table(written(tmp_path / "bcp.tsv", THEIRS + "1\tpos\n"), "krk")
    with pytest.raises(FileError, match="cannot read"):
        sets.read_table(tmp_path / "none.tsv", "krk")


def test_without_a_directory_of_data_the_error_says_what_to_set(monkeypatch):
    monkeypatch.delenv("LBM_DATA", raising=False)
    for name in ("krk", "uwcse"):
        with pytest.raises(FileError, match="set LBM_DATA"):
            sets.paper_table(name)


@pytest.mark.parametrize(
    ("name", "rows", "positive", "areas"),
    [("uwcse", 339, 113, True), (sets.UNEVEN, 2824, 113, True), ("alz_amine", 686, 343, False)],
)
def test_published_tables_have_their_rows_and_folds(dataset, name, rows, positive, areas):
    dataset(name.removesuffix("_2711"))
    table = sets.paper_table(name)
    assert (len(table.labels), int(table.labels.sum())) == (rows, positive)
    assert table.areas == areas
    assert len(table.fold_names) == (5 if areas else 10)


def paired_table(pairs):
    names = np.array([f"{k}" for k in range(pairs) for _ in range(2)])
    labels = np.tile([True, False], pairs)
    cells = np.zeros((2 * pairs, 2), dtype=bool)
    return sets.LabelledTable("pairs", cells, labels, np.tile(["1"], 2 * pairs), names)


@given(st.integers(4, 20), st.integers(0, 1000))
def test_permuted_pairs_stay_opposite_and_in_one_fold(pairs, seed):
    table = sets.permuted(paired_table(pairs), folds=4, seed=seed)
    assert (table.labels[::2] != table.labels[1::2]).all()
    assert (table.folds[::2] == table.folds[1::2]).all()


def test_other_labels_are_permuted_as_many_of_each_class_as_before():
    table = sets.made_table("family")
    one, other = (sets.permuted(table, folds=3, seed=seed) for seed in (0, 1))
    assert one.labels.sum() == other.labels.sum() == table.labels.sum()
    assert one.labels.tolist() != other.labels.tolist()
    assert set(one.fold_names) == {"1", "2", "3"}


# --- CILP++ ----------------------------------------------------------------------------------------


@given(st.lists(st.frozensets(st.integers(0, 7), min_size=1), min_size=1, max_size=4, unique=True))
def test_a_net_of_clauses_says_yes_where_a_body_is_true_and_no_elsewhere(bodies):
    """The theorem of C-IL2P, for clauses of one head, on every row of eight columns."""
    clauses = np.array([[k in body for k in range(8)] for body in bodies])
    hidden, output = initial_net(clauses, np.ones(len(bodies), dtype=bool), seed=0)
    rows = np.array([[number >> k & 1 for k in range(8)] for number in range(256)], dtype=bool)
    right = [any(all(row[k] for k in body) for body in bodies) for row in rows]
    assert (log_odds(rows, hidden, output) > 0).tolist() == right


def test_back_propagation_goes_down_the_slope_of_squared_errors(monkeypatch):
    monkeypatch.setattr("lbm.trials.learners.cilp.MOMENTUM", 0.0)
    rng = np.random.default_rng(0)
    cells, labels = rng.random((6, 4)) < 0.5, rng.random(6) < 0.5
    none = np.zeros((0, 4), dtype=bool)
    start = initial_net(none, np.zeros(0, dtype=bool), seed=3)
    ((hidden, output),) = train_net(cells, labels, none, np.zeros(0, dtype=bool), rate=1e-3, epochs=1, seed=3)

    def cost(some):
        return ((activation(log_odds(cells, *some)) - np.where(labels, 1, -1)) ** 2).sum() / 2

    for number, moved in ((0, hidden), (1, output)):
        for place in list(np.ndindex(start[number].shape))[:12]:
            near = [[part.copy() for part in start] for _ in range(2)]
            near[0][number][place] += 1e-5
            near[1][number][place] -= 1e-5
            slope = (cost(near[0]) - cost(near[1])) / 2e-5
            assert moved[place] - start[number][place] == pytest.approx(
                -1e-3 * slope, rel=2e-3, abs=1e-9
            )  # singles


# --- learners and protocols ------------------------------------------------------------------------


def test_every_learner_is_given_as_many_settings():
    assert len({len(settings) for settings in SETTINGS.values()}) == 1


def test_knowledge_is_drawn_from_both_classes_in_proportion():
    labels = np.array([True] * 40 + [False] * 80)
    rows = drawn_of_each(labels, np.random.default_rng(0), share=0.1)
    assert [int((labels[rows] == kind).sum()) for kind in (True, False)] == [4, 8]
    assert len(drawn_of_each(labels, np.random.default_rng(0), share=0.001)) == 2


def test_a_clause_says_its_label_of_rows_that_have_its_literals():
    theory = clauses_as_theory(np.array([[True, True], [False, True]]), np.array([True, False]))
    first, second = (statement.formula for statement in theory)
    assert not holds(first, {"c0": True, "c1": True, "y": False})
    assert holds(first, {"c0": True, "c1": False, "y": False})
    assert not holds(second, {"c0": False, "c1": True, "y": True})


def separable(rows=60):
    rng = np.random.default_rng(1)
    cells = rng.random((rows, 6)) < 0.5
    return cells, cells[:, 0]


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns_one_column_and_repeats_itself(learner):
    cells, labels = separable()
    setting = SETTINGS[learner][-1 if learner == "CILP++" else 0]
    one, same = (
        curve(learner, setting, cells, labels, cells[:20], share=0.1, seed=2, epochs=30) for _ in range(2)
    )
    assert one.tolist() == same.tolist()
    assert one.shape == (1 if learner in ("logistic regression", "SVM", "random forest") else 30, 20)
    assert ((one[-1] > 0) == labels[:20]).all()


def test_a_curve_begins_as_a_shorter_one_does():
    cells, labels = separable()
    for learner in ("LBM", "CILP++"):
        setting = SETTINGS[learner][0]
        short, long = (
            curve(learner, setting, cells, labels, cells, share=0.1, seed=0, epochs=epochs)
            for epochs in (2, 4)
        )
        assert long[:2].tolist() == short.tolist()


@given(st.integers(2, 30), st.integers(2, 30), st.integers(0, 99))
def test_rows_put_aside_are_of_both_classes_and_none_is_lost(positive, negative, seed):
    labels = np.array([True] * positive + [False] * negative)
    kept, aside = put_aside(labels, seed=seed)
    assert sorted([*kept.tolist(), *aside.tolist()]) == list(range(len(labels)))
    assert set(labels[kept]) == set(labels[aside]) == {True, False}


def test_where_folds_are_areas_one_of_those_trained_on_is_put_aside_each_in_turn():
    areas = np.array(["ai", "theory", "ai", "systems", "theory"])
    turns = [put_aside(areas == "ai", seed=seed, areas=areas) for seed in range(4)]
    assert [set(areas[aside]) for _, aside in turns] == [{"ai"}, {"systems"}, {"theory"}, {"ai"}]
    for kept, aside in turns:
        assert sorted([*kept.tolist(), *aside.tolist()]) == list(range(5))


def test_test_labels_have_no_say_under_the_honest_protocol():
    """With other test labels, choice and predictions stay the same; the paper's figure moves."""
    table = sets.made_table("chess")
    test = table.folds == "1"
    labels = np.where(test, ~table.labels, table.labels)
    turned = sets.LabelledTable(table.name, table.cells, labels, table.folds, table.pairs)
    one, other = (judge_fold(some, "1", "LBM", seed=0, epochs=4) for some in (table, turned))
    assert chosen(one).setting == chosen(other).setting
    assert chosen(one).epoch == chosen(other).epoch
    assert chosen(one).log_odds.tolist() == chosen(other).log_odds.tolist()
    assert [judged.best for judged in one] != [judged.best for judged in other]


@pytest.mark.parametrize("larger", [True, False])
def test_a_learner_that_hardly_beats_the_larger_class_answers_that_in_its_own_order(larger):
    odds = np.array([0.5, -3.0, 2.0])
    judged = Judged({}, 1.0, odds, 1, aside=0.9, surprise=0.5, nearby=0.7, larger=larger, bar=0.7)
    assert ((believed(judged) > 0) == larger).all()
    assert np.argsort(believed(judged)).tolist() == np.argsort(odds).tolist()
    assert believed(replace(judged, nearby=0.71)).tolist() == odds.tolist()


def test_a_set_of_areas_is_judged_by_an_area_put_aside():
    drawn = sets.made_table("chess")
    found = [judge_fold(one, "1", "logistic regression", seed=0, settings=[{"C": 1.0}], epochs=1)[0]
             for one in (drawn, replace(drawn, areas=True))]  # fmt: skip
    second = drawn.folds == "2"  # the first of those trained on
    model = LogisticRegression(C=1.0, max_iter=2000).fit(
        drawn.cells[drawn.folds == "3"], drawn.labels[drawn.folds == "3"]
    )
    assert found[1].aside == pytest.approx(model.score(drawn.cells[second], drawn.labels[second]))
    assert found[0].log_odds.tolist() == found[1].log_odds.tolist()
    assert not sets.permuted(replace(drawn, areas=True), folds=3, seed=0).areas


def test_the_bar_is_the_share_of_the_larger_class_and_a_standard_error():
    table = sets.made_table("chess")
    (judged,) = judge_fold(table, "1", "logistic regression", seed=0, settings=[{"C": 1.0}], epochs=1)
    train = table.labels[table.folds != "1"]
    _, aside = put_aside(train, seed=0)
    assert judged.larger == (train.mean() > 0.5)
    rate = np.mean(train[aside] == judged.larger)
    assert judged.bar == pytest.approx(rate + np.sqrt(rate * (1 - rate) / len(aside)))


def test_whether_a_learner_is_believed_depends_on_epochs_beside_the_chosen_one():
    table = sets.made_table("chess")
    train = np.flatnonzero(table.folds != "1")
    kept, held = (train[rows] for rows in put_aside(table.labels[train], seed=0))
    setting = SETTINGS["LBM"][0]
    (judged,) = judge_fold(table, "1", "LBM", seed=0, settings=[setting], epochs=9)
    tried = curve("LBM", setting, table.cells[kept], table.labels[kept], table.cells[held],
                  share=share_of_clauses("chess"), seed=0, epochs=9)  # fmt: skip
    right = [np.mean((odds > 0) == table.labels[held]) for odds in tried]
    epochs = [epoch for epoch in range(1, 10) if abs(epoch - judged.epoch) <= 2]
    assert judged.aside == pytest.approx(right[judged.epoch - 1]) == pytest.approx(max(right))
    assert judged.nearby == pytest.approx(np.mean([right[epoch - 1] for epoch in epochs]))
    assert judged.nearby < judged.aside


def test_logistic_regression_is_scored_as_scikit_learn_scores_it():
    table = sets.made_table("chess")
    test = table.folds == "2"
    model = LogisticRegression(C=1.0, max_iter=2000).fit(table.cells[~test], table.labels[~test])
    (judged,) = judge_fold(table, "2", "logistic regression", seed=0, settings=[{"C": 1.0}], epochs=1)
    assert judged.best == pytest.approx(model.score(table.cells[test], table.labels[test]))


# --- comparing -------------------------------------------------------------------------------------

values = st.lists(st.integers(-50, 50).map(lambda k: k / 100), min_size=3, max_size=20)


@given(values.filter(lambda some: len(set(some)) > 1))
def test_without_shared_rows_the_paired_test_is_students(differences):
    assert paired_chance(differences, test_share=0.0) == pytest.approx(ttest_1samp(differences, 0).pvalue)
    assert paired_chance(differences, test_share=0.1) >= paired_chance(differences, test_share=0.0)


def test_differences_that_are_all_alike_are_certain_unless_nothing():
    assert paired_chance([0.0, 0.0, 0.0], test_share=0.1) == 1
    assert paired_chance([0.1, 0.1, 0.1], test_share=0.1) == 0
    assert paired_chance([0.1], test_share=0.1) == 1


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=8))
def test_holms_correction_keeps_the_order_and_is_between_none_and_bonferronis(chances):
    found = holm(chances)
    assert list(found) == list(chances)
    for name, chance in chances.items():
        assert chance <= found[name] <= min(1, len(chances) * chance) + 1e-12
    for one, two in pairwise(sorted(chances, key=lambda name: chances[name])):
        assert found[one] <= found[two]


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5).map(float), min_size=1, max_size=8))
def test_ranks_are_those_of_scipy(scores):
    assert list(ranks(scores).values()) == rankdata([-score for score in scores.values()]).tolist()


def test_an_interval_holds_its_mean_and_without_a_second_value_everything():
    low, high = interval_99([0.1, 0.3, 0.2])
    assert low < 0.2 < high
    assert interval_99([0.1]) == (-math.inf, math.inf)


# --- orders ----------------------------------------------------------------------------------------


@given(st.integers(3, 10), st.integers(0, 20))
def test_a_made_order_is_strict_and_total(objects, seed):
    problem = made_order(objects, seed=seed)
    pairs = {arguments(example) for example in problem.positive}
    assert len(pairs) == objects * (objects - 1) // 2
    assert {(b, a) for a, b in pairs} == {arguments(example) for example in problem.negative}
    assert all((a, c) in pairs for a, b in pairs for d, c in pairs if b == d)


@given(st.sampled_from([0.1, 0.3, 0.9]), st.booleans(), st.integers(0, 50))
def test_labels_are_flipped_outside_the_test_fold_only(share, together, seed):
    problem = with_folds(made_order(8, seed=0))
    noisy = flipped(problem, "2", share=share, together=together, seed=seed)
    truth, said = (dict(zip(one.examples, one.labels, strict=True)) for one in (problem, noisy))
    assert truth.keys() == said.keys()
    wrong = {example for example in truth if truth[example] != said[example]}
    assert all(problem.folds[example] != "2" for example in wrong)
    if together:
        pairs = {frozenset(arguments(example)) for example in wrong}
        trained = [example for example in truth if problem.folds[example] != "2"]
        assert wrong == {example for example in trained if frozenset(arguments(example)) in pairs}


def test_rules_of_an_order_settle_pairs_of_a_made_one():
    problem = with_folds(made_order(8, seed=0))
    assert fold_names("order") == sorted(set(problem.folds.values()))
    done = learn_fold(problem, "1", seed=0, order=True, rules=True, small=True)
    assert done.tested.scores.accuracy >= 0.9
    assert ORDER.count("forall") == 3
