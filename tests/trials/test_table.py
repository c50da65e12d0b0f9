"""The learning parts: what their rows say, and that a part says no more than its rows."""

import numpy as np
import pytest

from lbm.datasets import krk_relations
from lbm.relations.prolog.terms import arguments
from lbm.training.relational.scores import Scores
from lbm.trials.learners import sets
from lbm.trials.learners.aleph import ALEPH, AlephFold, aleph_fold, has_aleph
from lbm.trials.learners.protocols import chosen, judge_fold
from lbm.trials.learners.relational import STRICT_PARTS, made_order, strict_fold
from lbm.trials.learners.sets import SETS
from lbm.trials.learners.standing import (
    BEST,
    BEST_GROUPED,
    BEST_STRICT,
    PUBLISHED,
    accuracy_table,
    classical_table,
    findings,
    knowledge_table,
    rank_table,
    verdict_table,
)
from lbm.trials.parts import noise, permuted, table
from lbm.trials.storage import check_row
from tests.trials.slow_part import is_time


def row(name, learner, *, seed=0, fold="1", setting="a", paper=None, honest=None):
    values = {"set": name, "learner": learner, "seed": seed, "fold": fold, "setting": setting}
    return {**dict.fromkeys(table.COLUMNS), **values, "fits": 2, "paper": paper, "honest": honest}


def test_the_papers_figure_is_the_mean_over_seeds_of_one_setting():
    rows = [
        row("krk", "LBM", setting=setting, seed=seed, paper=paper, honest=0.5)
        for setting, papers in (("a", (0.9, 0.7)), ("b", (0.6, 0.95)))
        for seed, paper in enumerate(papers)
    ]
    (line, aleph) = accuracy_table(rows).rows
    assert line[:4] == ("krk", "LBM", "99.80", "80.00 ± 14.14")
    assert aleph[1:3] == ("Aleph", "99.60")


def test_the_best_published_figures_of_rows_are_those_of_the_paper():
    best = [max(column[k] for column in PUBLISHED.values()) for k in range(len(SETS))]
    assert best == [96.28, 99.80, 89.43, 79.13, 69.46, 71.84, 84.95]


def test_sets_on_which_the_paper_is_reached_are_counted_within_two_points():
    rows = [row("krk", "LBM", paper=0.979, honest=0.9), row("alz_amine", "LBM", paper=0.7, honest=0.7)]
    rows.append(row("alz_amine", BEST, honest=0.95))
    said = findings(rows)
    assert "on 1 of 7 sets: krk" in said[0]
    assert "on 1 of 7 sets: alz_amine" in said[1]
    assert not any("mirrors" in sentence for sentence in said)
    for name, together, strict in (("alz_amine", 0.9, 0.6), ("alz_toxic", 0.95, 0.7)):
        rows += [row(name, BEST_GROUPED, honest=together), row(name, BEST_STRICT, honest=strict)]
    assert "it has 90.0 to 95.0 %; for compounds it has not seen, 60.0 to 70.0 %." in findings(rows)[2]


def folds_of(learner, scores):
    return [
        row("krk", learner, fold=f"{fold}", seed=seed, paper=score, honest=score + seed / 1000)
        for fold, score in enumerate(scores)
        for seed in (0, 1)
    ]


def test_a_learner_that_is_always_far_better_is_said_to_be():
    low, high = [0.5, 0.52, 0.51, 0.5, 0.53], [0.9, 0.93, 0.9, 0.92, 0.91]
    rows = [*folds_of("LBM", low), *folds_of("SVM", high), *folds_of("RBM", low)]
    verdicts = {line[1]: line[-1] for line in verdict_table(rows).rows}
    assert verdicts == {"SVM": "worse", "RBM": "tied"}
    assert rank_table(rows).rows[0][0] == "SVM"


def test_a_row_for_each_set_says_how_lbm_stands_against_classical_learners():
    low, high = [0.5, 0.52, 0.51, 0.5, 0.53], [0.9, 0.93, 0.9, 0.92, 0.91]
    rows = [*folds_of("LBM", low), *folds_of("SVM", high), *folds_of("random forest", low)]
    table = classical_table(rows)
    assert [(line[2], line[4], line[5]) for line in table.rows] == [
        ("SVM", "-40.00", "worse"),
        ("", "", "not worse on 0 of 1"),
    ]
    better = [*folds_of("LBM", high), *folds_of("SVM", low), *folds_of("RBM", high)]
    assert classical_table(better).rows[0][5] == "better"
    tied = [*folds_of("LBM", high), *folds_of("SVM", low), *folds_of("random forest", high)]
    assert classical_table(tied).rows[0][5] == "not worse"
    assert not classical_table(folds_of("LBM", low)).rows


def test_what_knowledge_adds_is_the_difference():
    rows = [*folds_of("LBM", [0.9, 0.8]), *folds_of("LBM without knowledge", [0.8, 0.8])]
    assert [line[-1] for line in knowledge_table(rows).rows] == ["+5.00", "+5.00"]
    ruled = {**row("alz_amine", BEST, honest=0.9), "without_rules": 0.7}
    assert knowledge_table([ruled]).rows == (("alz_amine", BEST, "honest", "90.00", "70.00", "+20.00"),)
    assert not knowledge_table([row("krk", BEST, honest=0.9)]).rows


def test_our_best_is_measured_on_every_fold_of_every_set_with_five_seeds():
    keys = [piece.key for piece in table.pieces(False)]
    for name in SETS:
        mine = [key for key in keys if key["set"] == name and key["learner"] == BEST]
        assert len({key["seed"] for key in mine}) == 5
        assert len({key["fold"] for key in mine}) == (5 if name == "uwcse" else 10)


def test_alephs_figure_is_that_of_the_folds_it_finished_and_it_is_in_no_test_or_rank():
    mine = [*folds_of("LBM", [0.9, 0.8]), *folds_of("SVM", [0.9, 0.7])]
    rows = [*mine, row("krk", ALEPH, fold="0", honest=0.8), row("krk", ALEPH, fold="1")]
    (line,) = [line for line in accuracy_table(rows).rows if line[1] == ALEPH]
    assert line == ("krk", ALEPH, "99.60", "-", "80.00 (in 1, then time-out)", "2")
    assert accuracy_table([*mine, rows[-1]]).rows[-1][4] == "time-out"
    assert verdict_table(rows) == verdict_table(mine)
    assert rank_table(rows) == rank_table(mine)
    assert any("not done in time is the last" in note for note in table.section(rows).notes)
    assert any("Aleph was not run" in note for note in table.section(mine).notes)


def test_aleph_has_pieces_only_where_it_is_installed(monkeypatch):
    for there in (True, False):
        monkeypatch.setattr(table, "has_aleph", lambda there=there: there)
        for quick in (True, False):
            mine = [piece.key for piece in table.pieces(quick) if piece.key["learner"] == ALEPH]
            assert {key["seed"] for key in mine} == ({0} if there else set())
            assert len(mine) == there * (1 if quick else len(table.SETS))


def test_aleph_learns_who_is_a_grandparent_of_whom():
    if not has_aleph():
        pytest.skip("Aleph is not installed")
    (found,) = table.measure({"set": "family", "learner": ALEPH, "seed": 0})
    check_row(table, found)
    assert found["honest"] == 1
    assert aleph_fold("family", "1", seconds=0.01).scores is None


def test_aleph_is_given_up_on_a_set_after_the_first_fold_that_is_not_done_in_time(monkeypatch):
    done = iter([AlephFold(Scores(0.5, 0.5, 0.5, 0.5), 10, 3), AlephFold(None, 10, 0)])
    monkeypatch.setattr(table, "aleph_fold", lambda *_, **__: next(done))
    found = table.measure({"set": "krk", "learner": ALEPH, "seed": 0})
    assert [(one["fold"], one["honest"]) for one in found] == [("1", 0.5), ("2", None)]


def test_a_strict_test_pair_has_an_object_that_is_not_trained_on_and_every_pair_is_tested():
    problem = made_order(12, seed=0)
    tested = np.zeros(len(problem.examples), dtype=bool)
    for fold in map(str, range(1, STRICT_PARTS + 1)):
        test = strict_fold(problem, fold) == fold
        tested |= test
        trained = {one for example, held in zip(problem.examples, test, strict=True) if not held
                   for one in arguments(example)}  # fmt: skip
        for example, held in zip(problem.examples, test, strict=True):
            assert not held or not trained.issuperset(arguments(example))
    assert tested.all()


def test_aleph_may_say_that_two_pieces_share_a_column_or_row_of_the_board(monkeypatch):
    from lbm.trials.learners import aleph

    monkeypatch.setattr(aleph, "problem_named", lambda name: krk_relations(20))
    problem, settings = aleph.aleph_problem("krk")
    assert sum(mode.predicate == ("=", 2) for mode in problem.modes.body) == 6
    assert settings == {"noise": 0}
    assert aleph.aleph_problem("chess") == (krk_relations(20), {})
    assert aleph.aleph_problem("alz_amine")[1]["minacc"] == 0.7


def test_random_labels_show_what_the_answer_of_the_larger_class_could_hide():
    rows = [
        {"set": name, "permutation": number, "folds": 10, "majority": 0.6, "honest": 0.6 + luck,
         "balanced": 0.5, "all_believed": plain + 0.01 * number, "paper": 0.7, "seconds": 1.0}
        for name, luck, plain in (("krk", 0.0, 0.48), ("uwcse", 0.0, 0.56), ("alz_toxic", 0.01, 0.42))
        for number in range(5)
    ]  # fmt: skip
    honest, plain, paper = permuted.section(rows).findings
    assert "on 2 of 3 sets; the whole interval is above it on alz_toxic." in honest
    assert "would be 50.67 % on average" in plain
    assert plain.endswith("interval of the mean on 1 of 3 sets.")
    assert "+10.0 points" in paper
    assert [line[5] for line in permuted.section(rows).tables[0].rows] == ["yes", "yes", "above"]
    assert any("10 folds drawn anew" in note for note in permuted.section(rows).notes)


def test_random_labels_are_also_scored_as_if_learners_were_always_believed():
    drawn = sets.permuted(sets.paper_table("family"), folds=permuted.QUICK_FOLDS, seed=0)
    said = np.zeros(len(drawn.labels), bool)
    for fold in drawn.fold_names:
        judged = judge_fold(drawn, fold, "LBM", seed=0, epochs=permuted.QUICK_EPOCHS)
        said[drawn.folds == fold] = chosen(judged).log_odds > 0
    recalls = [np.mean(said[drawn.labels == kind] == kind) for kind in (True, False)]
    (found,) = permuted.measure({"set": "family", "permutation": 0})
    assert found["all_believed"] == pytest.approx(np.mean(recalls), abs=1e-6)
    assert found["all_believed"] != found["balanced"] == 0.5


def test_noise_says_how_often_rules_help_and_how_often_that_is_sure():
    rows = [
        {"set": name, "flipped": 0.1, "how": noise.APART, "seed": seed, "fold": f"{2 * seed + 1}",
         "rules": rules, "accuracy": 0.7 + 0.01 * seed + more, "share": 0.5, "seconds": 1.0}
        for name, gains in (("alz_amine", (0.1,) * 5), ("alz_toxic", (0.2, -0.1, 0.2, -0.1, 0.0)),
                            ("alz_memory", (-0.1,) * 5))
        for seed, gain in enumerate(gains)
        for rules, more in ((noise.WITH, gain + 0.001 * seed), (noise.WITHOUT, 0.0))
    ]  # fmt: skip
    said = noise.section(rows).findings[-1]
    assert "better in 2 of 3 cases; 1 of these" in said


def test_noise_tests_five_folds_once_each():
    keys = [piece.key for piece in noise.pieces(False)]
    for share in noise.SHARES:
        some = [key["fold"] for key in keys
                if (key["set"], key["flipped"], key["how"]) == ("alz_amine", share, "apart")]  # fmt: skip
        assert some == ["1", "3", "5", "7", "9"]


SMALL = {
    table: [
        {"set": "family", "learner": "LBM", "seed": 0},
        {"set": "family", "learner": "logistic regression", "seed": 0},
        {"set": "order", "learner": BEST, "seed": 0, "fold": "1"},
    ],
    noise: [{"set": "order", "flipped": 0.2, "how": "apart", "seed": 0, "fold": "1"}],
    permuted: [{"set": "family", "permutation": 0}],
}


@pytest.mark.parametrize("part", SMALL, ids=lambda part: part.NAME)
def test_a_key_of_a_learning_part_gives_the_same_rows_every_time(part):
    every = []
    for key in SMALL[part]:
        rows, again = part.measure(key), part.measure(key)
        for one in (*rows, *again):
            check_row(part, one)
            assert all(one[column] == value for column, value in key.items())
            for column in filter(is_time, one):
                one[column] = 0.01
        assert rows == again
        every += rows
    section = part.section(every)
    assert section.findings
    assert section.headline
    assert part.draw(every)
    for shown in section.tables:
        assert {len(line) for line in shown.rows} == {len(shown.head)}
