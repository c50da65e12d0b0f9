"""LBMClassifier: rules at once, data on top, and every bad input by its name."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from lbm.datasets import krk, monk, tic_tac_toe
from lbm.errors import ContradictoryKnowledge, ParseError, TrainingDiverged, UnknownAtom
from lbm.knowledge.formula import atom
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.network import to_machine
from lbm.training.data.encoder import AtomEncoder
from lbm.training.learners.classifier import LBMClassifier

BATCHES = (
    "training takes rows in batches of a random order, and puts some aside: a row twice and a row of weight "
    "2 cost the same, but are met at other moments"
)

EXPECTED_FAILED_CHECKS = {
    "LBMClassifier": {
        "check_sample_weight_equivalence_on_dense_data": BATCHES,
        "check_sample_weight_equivalence_on_sparse_data": BATCHES,
    },
    "LogicalRBM": {},
    "AtomEncoder": {},
}
"""By the name of the estimator: names of checks with reasons, two names in all."""

NAN = float("nan")
QUICK = {"hidden": 4, "max_epochs": 8, "learning_rate": 0.1, "batch_size": 64, "random_state": 0}


def table(rows=80, seed=0):
    """Truth values, and a target that is true where a and b are, or c is."""
    random = np.random.default_rng(seed)
    x = pd.DataFrame(random.integers(0, 2, (rows, 4)), columns=list("abcd"))
    return x, (x.a & x.b | x.c).astype(bool).rename("y")


# --- in scikit-learn -----------------------------------------------------------------------------


@parametrize_with_checks(
    [LBMClassifier(**QUICK)], expected_failed_checks=lambda e: EXPECTED_FAILED_CHECKS[type(e).__name__]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_at_most_two_checks_are_expected_to_fail():
    names = {name for checks in EXPECTED_FAILED_CHECKS.values() for name in checks}
    assert len(names) <= 2


def test_it_lives_in_pipelines_and_grids_and_survives_a_pickle():
    x, y = table()
    learner = LBMClassifier(**QUICK).set_params(batch_size=8)
    whole = make_pipeline(AtomEncoder(), learner).set_output(transform="pandas").fit(x, y)
    assert whole.score(x, y) > 0.9
    grid = GridSearchCV(LBMClassifier(**QUICK), {"confidence": [1.0, 5.0], "l2": [0.0, 1.0]}, cv=2).fit(x, y)
    assert set(grid.best_params_) == {"confidence", "l2"}
    fitted = LBMClassifier(knowledge="a & b -> y", **QUICK).fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))
    assert clone(fitted).get_params()["knowledge"] == "a & b -> y"


def test_calls_before_fit_say_so():
    for name in ("predict", "predict_proba", "decision_function", "undecided", "exact"):
        with pytest.raises(NotFittedError):
            getattr(LBMClassifier(), name)(table()[0])


# --- knowledge without data ----------------------------------------------------------------------


@pytest.mark.parametrize("data", [tic_tac_toe(), monk(1), monk(2), monk(3), krk(500)], ids=lambda d: d.name)
def test_an_equivalence_predicts_every_row_at_the_default_confidence(data):
    rules = LBMClassifier.from_knowledge(data.knowledge, target=data.target.name, columns=data.table.columns)
    assert rules.score(data.table, data.target) == 1.0
    assert not rules.undecided(data.table).any()


@pytest.mark.parametrize("encoding", ["sdnf", "rule"])
@pytest.mark.parametrize("data", [tic_tac_toe(), monk(1)], ids=lambda d: d.name)
def test_rules_of_one_direction_leave_rows_undecided_until_there_is_a_default(data, encoding):
    theory, options = Theory(data.rules), {"target": data.target.name, "columns": data.table.columns}
    rules = LBMClassifier.from_knowledge(theory, encoding=encoding, **options)
    undecided = rules.undecided(data.table)
    np.testing.assert_array_equal(undecided, ~data.target)  # where no rule fires
    p = rules.predict_proba(data.table)
    np.testing.assert_allclose(p[undecided], 0.5, atol=1e-12)
    assert (p[~undecided, 1] > 0.9).all()
    assert not rules.predict(data.table[undecided]).any()  # the first class
    closed = LBMClassifier.from_knowledge(theory, encoding=encoding, default=True, **options)
    assert closed.score(data.table, data.target) == 1.0
    assert not closed.undecided(data.table).any()


def test_units_that_are_not_knowledge_say_nothing_before_there_is_data():
    data = monk(1)
    options = {"target": data.target.name, "columns": data.table.columns}
    with_units = LBMClassifier.from_knowledge(Theory(data.rules), hidden=5, random_state=0, **options)
    alone = LBMClassifier.from_knowledge(Theory(data.rules), **options)
    np.testing.assert_allclose(with_units.predict_proba(data.table), alone.predict_proba(data.table))
    assert with_units.partial_fit(data.table, data.target).network_.label_weights.abs().min() > 0


def test_missing_values_are_summed_out_and_undecided_where_no_value_could_decide():
    rules = LBMClassifier.from_knowledge("a & b -> y", target="y", columns=["a", "b", "c"])
    rows = pd.DataFrame({"a": [1, 0, NAN, 1], "b": [NAN, NAN, NAN, 1], "c": [0, NAN, 1, NAN]})
    assert rules.undecided(rows).tolist() == [False, True, False, False]
    p = rules.predict_proba(rows)[:, 1]
    assert p[1] == pytest.approx(0.5)
    assert 0.5 < p[2] < p[0] < p[3]


def test_many_classes_have_an_atom_each():
    text = "bird & ~penguin -> 'kind = flies'\npenguin -> 'kind = swims'\n~bird -> ~'kind = flies'"
    rules = LBMClassifier.from_knowledge(
        text, target="kind", columns=["bird", "penguin"], classes=["flies", "runs", "swims"]
    )
    rows = pd.DataFrame({"bird": [1, 1, 0], "penguin": [0, 1, 0]})
    assert rules.predict(rows).tolist() == ["flies", "swims", "runs"]
    assert rules.undecided(rows).tolist() == [False, False, True]
    p = rules.predict_proba(rows)[2]
    assert p[1] == p[2] > p[0]
    closed = LBMClassifier.from_knowledge(
        text,
        target="kind",
        columns=["bird", "penguin"],
        classes=["flies", "runs", "swims"],
        default={"swims": 1.0},
    )
    assert closed.predict(rows).tolist() == ["flies", "swims", "swims"]


def test_knowledge_about_numbers_and_words_needs_no_encoder_of_ones_own():
    rules = LBMClassifier.from_knowledge(
        "'age <= 30' & 'colour = red' <-> y", target="y", columns=["age", "colour", "tall"]
    )
    rows = pd.DataFrame({"age": [20, 20, 40], "colour": ["red", "blue", "red"], "tall": [1, 0, 1]})
    assert rules.predict(rows).tolist() == [True, False, False]


@pytest.mark.parametrize("knowledge", [Theory(["a -> y"]), "a -> y", atom("a") >> atom("y")], ids=type)
def test_knowledge_comes_as_theory_text_or_formula(knowledge):
    rules = LBMClassifier.from_knowledge(knowledge, target="y", columns=["a"])
    assert rules.predict(pd.DataFrame({"a": [1]})).tolist() == [True]


def test_knowledge_comes_from_a_file_too(tmp_path):
    (tmp_path / "rules.lbm").write_text("a -> y\n")
    rules = LBMClassifier.from_knowledge(tmp_path / "rules.lbm", target="y", columns=["a"])
    assert rules.predict(pd.DataFrame({"a": [1]})).tolist() == [True]


# --- data ----------------------------------------------------------------------------------------


def test_wrong_rules_and_all_data_end_as_near_as_no_rules_because_confidences_fall():
    data = monk(1)
    x, y = data.table, data.target
    wrong = Theory([rule.args[0] >> ~rule.args[1] for rule in data.rules])
    options = {"random_state": 0, "validation_fraction": 0.0, "learning_rate": 0.02, "max_epochs": 50}
    with_rules = LBMClassifier(knowledge=wrong, **options).fit(x, y)
    without = LBMClassifier(**options).fit(x, y)
    assert with_rules.score(x, y) >= without.score(x, y) - 0.01
    for confidence in with_rules.confidences_:
        assert confidence.initial == 5.0
        assert confidence.final < 0.5


def test_right_rules_help_where_rows_are_few():
    data = monk(1)
    gains = []
    for seed in range(3):
        few, rest = train_test_split(np.arange(432), train_size=20, stratify=data.target, random_state=seed)
        scores = [
            LBMClassifier(knowledge=rules, random_state=seed, max_epochs=60)
            .fit(data.table.iloc[few], data.target.iloc[few])
            .score(data.table.iloc[rest], data.target.iloc[rest])
            for rules in (Theory(data.rules[:2]), None)
        ]
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > 0.02


@pytest.mark.parametrize(
    ("literals", "cost"), [("tied", "generative"), ("free", "hybrid"), ("free", "discriminative")]
)
def test_every_cost_learns_with_tied_and_free_literals(literals, cost):
    x, y = table()
    learner = LBMClassifier(
        knowledge="a & b -> y", literals=literals, cost=cost, persistent=cost == "hybrid", **QUICK
    ).set_params(max_epochs=40, learning_rate=0.05, batch_size=20, default=True)
    assert learner.fit(x, y).score(x, y) > 0.9
    assert len(learner.history_) <= 40


@st.composite
def tasks(draw):
    """Rows with gaps, dense or sparse, of two or more classes, with weights and knowledge."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.integers(2, 4))
    x = random.choice([0.0, 1.0, NAN], (24, 3), p=[0.45, 0.45, 0.1])
    y = np.append(np.arange(kinds), random.integers(0, kinds, 24 - kinds))
    weights = draw(st.none() | st.just(random.integers(0, 4, 24) + (np.arange(24) < kinds)))
    label = "y" if kinds == 2 else "'y = 1'"
    theory = draw(st.sampled_from([None, f"x0 & ~x1 -> {label}", f"2: x0 ^ x2 <-> {label}\nx1 -> x2"]))
    options = {
        "knowledge": theory,
        "literals": draw(st.sampled_from(["tied", "free"])),
        "cost": draw(st.sampled_from(["discriminative", "hybrid"])),
        "hard": draw(st.booleans()),
        "class_weight": draw(st.sampled_from([None, "balanced"])),
        "hidden": draw(st.integers(0, 2)),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
    }
    return (csr_array(x) if draw(st.booleans()) else x), x, y, weights, options


@settings(max_examples=8)
@given(tasks())
def test_gaps_sparse_rows_many_classes_weights_and_knowledge_work_together(task):
    """And predictions are sums over every completion, as likely as the tree of rows says."""
    given_x, x, y, weights, options = task
    learner = LBMClassifier(max_epochs=2, batch_size=12, random_state=0, **options)
    found = learner.fit(given_x, y, sample_weight=weights).predict_proba(given_x)
    assert learner.exact(given_x).all()
    machine, likely = to_machine(learner.network_), learner.network_.likely
    kept = [list("x012").index(name[1]) - 1 for name in learner.atoms_]
    patterns = [(0,), (1,)] if len(learner.classes_) == 2 else np.eye(len(learner.classes_)).tolist()
    for row, probabilities in zip(x[:8], found, strict=False):
        ways = product(*[(0.0, 1.0) if np.isnan(row[i]) else (row[i],) for i in kept])
        worlds = np.array([[(*way, *pattern) for pattern in patterns] for way in ways])
        scores = -machine.free_energy(worlds, confidence=1.0)
        each = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        states = likely.states(worlds[:, 0, : len(kept)])
        logs = np.zeros(len(worlds))
        for fact, (parent, table) in enumerate(zip(likely.parents, likely.tables, strict=True)):
            logs += table[states[:, parent] if parent >= 0 else 0, states[:, fact]]
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        expected = shares @ each
        np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_rows_of_weight_zero_might_as_well_not_be_there():
    x, y = table()
    weights = np.ones(80)
    weights[::3] = 0
    kept = weights > 0
    one = LBMClassifier(**QUICK).fit(x, y, sample_weight=weights)
    two = LBMClassifier(**QUICK).fit(x[kept], y[kept])
    np.testing.assert_array_equal(one.predict_proba(x), two.predict_proba(x))


def test_balanced_classes_find_the_rare_one():
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (300, 3))
    y = (x[:, 0] == 1) & (random.random(300) < 0.2)
    plain, balanced = (
        LBMClassifier(class_weight=w, **QUICK).fit(x, y).predict(x).mean() for w in (None, "balanced")
    )
    assert plain < 0.1 < 0.4 < balanced


def test_partial_fit_goes_on_where_it_was_and_begins_at_rules():
    x, y = table(240)
    learner = LBMClassifier(**QUICK).set_params(batch_size=8)
    for first in range(0, 240, 40):
        part = slice(first, first + 40)
        learner.partial_fit(x[part], y[part], classes=[False, True])
    assert learner.progress_.updates == 30
    assert len(learner.history_) == 6
    for _ in range(10):
        learner.partial_fit(x, y)
    assert learner.score(x, y) > 0.9
    rules = LBMClassifier.from_knowledge(
        "a & b -> y", target="y", columns=x.columns, learning_rate=0.05, random_state=0
    )
    before = rules.undecided(x).sum()
    rules.partial_fit(x, y)
    assert rules.undecided(x).sum() < before


def test_hard_formulae_stay_and_rows_that_break_them_are_named():
    x, y = table()
    broken = x.d.to_numpy().astype(bool) & ~y.to_numpy()
    learner = LBMClassifier(knowledge="d -> y\n2: a -> y\nb | ~b", hard=True, **QUICK).fit(x, y)
    (found,) = learner.broken_
    assert (found.formula, found.rows, found.count) == ("d -> y", tuple(np.flatnonzero(broken)), broken.sum())
    hard, soft, _ = learner.confidences_
    assert (hard.initial, hard.final, hard.fixed) == (38.0, 38.0, True)  # 31 + 5 + the weight of all others
    kept = LBMClassifier(knowledge="d -> y\n2: a -> y", hard=True, units="paper", **QUICK).fit(x, y)
    assert (kept.confidences_[0].final, kept.broken_) == (5.0, learner.broken_)
    assert (soft.formula, soft.initial, soft.fixed) == ("2: a -> y", 2.0, False)
    assert soft.final != 2.0


@pytest.mark.parametrize("column", ["near(a,b)", "near( a , b )", "it's", " two  words ", "a & b", "x\ny"])
@pytest.mark.parametrize("target", ["y", "likes(a,b)"])
def test_rows_that_break_a_rule_are_named_whatever_columns_and_targets_are_called(column, target):
    x, y = table()
    x, y = x.rename(columns={"a": column}), y.rename(target)
    body = atom("d") if "\n" in column else atom(column)  # which no formula can mention
    learner = LBMClassifier(knowledge=Theory([body >> atom(target)]), hard=True, **QUICK).fit(x, y)
    broken = x["d" if "\n" in column else column].to_numpy().astype(bool) & ~y.to_numpy()
    assert [found.rows for found in learner.broken_] == [tuple(np.flatnonzero(broken))]


def test_a_row_that_misses_what_a_formula_mentions_breaks_nothing():
    x, y = table()
    x = x.astype(float)
    x.loc[:, "d"] = NAN
    with pytest.warns(UserWarning, match="d -> y fires on none of 80 rows"):
        learner = LBMClassifier(knowledge="d -> y", hard=True, **QUICK).fit(x, y)
    assert learner.broken_ == ()


def test_the_target_is_named_after_y_unless_told():
    x, y = table()
    assert LBMClassifier(knowledge="c -> win", **QUICK).fit(x, y.rename("win")).labels_ == ("win",)
    assert LBMClassifier(knowledge="c -> won", target="won", **QUICK).fit(x, y).target_ == "won"
    assert LBMClassifier(**QUICK).fit(x, y.to_numpy()).target_ == "y"
    assert LBMClassifier(names=["p", "q", "r", "s"], **QUICK).fit(x.to_numpy(), y).atoms_ == (
        "p",
        "q",
        "r",
        "s",
    )


def test_progress_is_told(capsys):
    x, y = table()
    LBMClassifier(verbose=1, **QUICK).fit(x, y)
    assert capsys.readouterr().err.count("Epoch(number=") == 8


def test_defaults_learn_digits():
    x, y = load_digits(return_X_y=True)
    learner = LBMClassifier(random_state=0, max_epochs=8, patience=8).fit(x[:1200], y[:1200])
    assert learner.score(x[1200:], y[1200:]) > 0.88
    assert learner.history_[-1].validation_accuracy > 0.93


@pytest.mark.slow
def test_defaults_learn_digits_well():
    x, y = load_digits(return_X_y=True)
    assert cross_val_score(LBMClassifier(random_state=0), x, y, cv=5).mean() > 0.93


# --- bad input -----------------------------------------------------------------------------------

X, Y = table(20)
MANY = pd.Series(np.arange(20) % 3, name="kind")
BAD = {
    "an empty table": ({}, (X[:0], Y[:0]), ValueError, "0 sample"),
    "one class only": ({}, (X, Y | True), ValueError, "at least 2 classes"),
    "a target that is not there": ({"knowledge": "a -> win"}, (X, Y), UnknownAtom, "no atom 'win' in this"),
    "a target of many": ({"knowledge": "a -> kind"}, (X, MANY), UnknownAtom, "did you mean 'kind = "),
    "a column that is not there": ({"knowledge": "aa -> y"}, (X, Y), UnknownAtom, "did you mean 'a'"),
    "duplicate column names": ({}, (X.set_axis(list("aacd"), axis=1), Y), ValueError, "two are called 'a'"),
    "infinite values": ({}, (X.replace(1, np.inf), Y), ValueError, "column 'a' holds infinite numbers"),
    "a contradictory theory": ({"knowledge": "a\n~a", "hard": True}, (X, Y), ContradictoryKnowledge, "a; ~a"),
    "a cost that is no number": ({"learning_rate": 1e38}, (X, Y), TrainingDiverged, "smaller learning_rate"),
    "the target among the columns": ({"target": "a"}, (X, Y), ValueError, "the name of a column: 'a'"),
    "text that is no theory": ({"knowledge": "a ->"}, (X, Y), ParseError, "knowledge:1"),
    "knowledge of another kind": ({"knowledge": 3}, (X, Y), TypeError, "expected knowledge as a Theory"),
    "a class missing": ({}, (X, np.array([None, *Y[1:]], dtype=object)), ValueError, "1 of 20 rows, the"),
    "no y": ({}, (X, None), ValueError, "requires y"),
    "a cost without a name": ({"cost": "cheap"}, (X, Y), ValueError, "expected a cost among"),
    "an unknown precision": ({"dtype": "float16"}, (X, Y), ValueError, "dtype must be"),
    "fewer units than none": ({"hidden": -1}, (X, Y), ValueError, "hidden is a whole number"),
    "a default without a class": ({"default": {"maybe": 1.0}}, (X, Y), ValueError, "not among the classes"),
    "a default for too many": ({"default": True}, (X, MANY), ValueError, "is for two classes"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "given_data", "kind", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_by_name(options, given_data, kind, message):
    with pytest.raises(kind, match=message):
        LBMClassifier(**{"max_epochs": 2, "random_state": 0, **options}).fit(*given_data)


def test_weights_of_rows_must_leave_some():
    with pytest.raises(ValueError, match="at least one non-zero"):
        LBMClassifier().fit(X, Y, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        LBMClassifier().fit(X, Y, sample_weight=-np.ones(20))


def test_partial_fit_names_what_it_cannot_take():
    with pytest.raises(ValueError, match="needs classes="):
        LBMClassifier().partial_fit(X, Y)
    learner = LBMClassifier(**QUICK).partial_fit(X, Y, classes=[False, True])
    with pytest.raises(ValueError, match="not the same as on the first call"):
        learner.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not among the classes"):
        LBMClassifier().partial_fit(X, np.arange(20) % 3, classes=[0, 1])


def test_from_knowledge_names_what_it_cannot_take():
    options = {"target": "wim", "columns": ["a"]}
    with pytest.raises(UnknownAtom, match="no atom 'wim' in this theory; did you mean 'win'"):
        LBMClassifier.from_knowledge("a -> win", **options)
    with pytest.raises(UnknownAtom, match="no atom 'b' in this table"):
        LBMClassifier.from_knowledge("b -> wim", **options)
    with pytest.raises(ValueError, match="two are called 'a'"):
        LBMClassifier.from_knowledge("a -> wim", target="wim", columns=["a", "a"])
    with pytest.raises(ValueError, match="at least 2 classes"):
        LBMClassifier.from_knowledge("a -> 'wim = 1'", classes=[1], **options)


def test_constant_and_empty_columns_are_left_out_and_named():
    x = X.assign(one=1, nothing=NAN)
    learner = LBMClassifier(**QUICK).fit(x, Y)
    assert learner.atoms_ == tuple("abcd")
    assert (learner.layout_.constant, learner.layout_.empty) == (("one",), ("nothing",))
    np.testing.assert_array_equal(learner.predict(x.assign(one=0)), learner.predict(x))


def test_a_theory_of_the_label_only_is_a_bias():
    x = pd.DataFrame({"a": [0, 1]})
    rules = LBMClassifier.from_knowledge("3: y", target="y", columns=["a"])
    p = rules.predict_proba(x)[:, 1]
    np.testing.assert_allclose(np.log(p / (1 - p)), 3.0)
    rules = LBMClassifier.from_knowledge("3: y", target="y", columns=["a"], units="paper")
    p = rules.predict_proba(x)[:, 1]
    # softplus(3 · 0.5) - softplus(-3 · 0.5) is 1.5
    np.testing.assert_allclose(np.log(p / (1 - p)), 1.5)
    assert LBMClassifier(knowledge="y", **QUICK).fit(X, Y).score(X, Y) > 0.5


def test_soft_formulae_may_contradict_one_another():
    rules = LBMClassifier.from_knowledge("3: a -> y\n3: a -> ~y", target="y", columns=["a"])
    assert rules.undecided(pd.DataFrame({"a": [0, 1]})).all()
    assert LBMClassifier(knowledge="c\n~c\na -> y\na -> ~y", **QUICK).fit(X, Y).score(X, Y) > 0.5


def test_large_weights_many_columns_and_batches_of_one_stay_finite():
    x, y = table(30)
    for options in (
        {"knowledge": "1000000: a & b -> y"},
        {"confidence": 1e6, "knowledge": "c <-> y"},
        {"batch_size": 1},
    ):
        learner = LBMClassifier(**{**QUICK, "max_epochs": 3, **options}).fit(
            x, y, sample_weight=np.full(30, 1e6)
        )
        assert np.isfinite(learner.predict_proba(x)).all()
        assert all(torch.isfinite(p).all() for p in learner.network_.parameters())
    wide = csr_array((np.random.default_rng(0).random((30, 10_000)) < 0.01).astype(float))
    learner = LBMClassifier(**QUICK).fit(wide, y)
    assert np.isfinite(learner.predict_proba(wide)).all()


def test_a_target_may_be_written_without_the_blanks_that_atoms_print_with():
    table = pd.DataFrame({"near(a,b)": [1, 0]})
    machine = LBMClassifier.from_knowledge(
        "near(a, b) -> likes(a, b)", target="likes(a,b)", columns=table.columns
    )
    assert machine.predict_proba(table)[:, 1] == pytest.approx([0.9933, 0.5], abs=1e-4)
