"""Names: what rules call values, cuts and classes is understood, printed so, or an error that suggests."""

import datetime
import operator
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.errors import FileError, UnknownAtom
from lbm.knowledge.formula import atom
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.training.data.examples import read_examples
from lbm.training.data.files import open_table
from lbm.training.data.names import plain, understood
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.learners.unsupervised import LogicalRBM

QUICK = {"hidden": 3, "max_epochs": 5, "random_state": 0}
COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq}
VALUES = st.sampled_from(["0", "1", "2", "2.5", "-1", "1e3", "0.1", "2.0", "30"])
CELLS = [0.0, 1.0, 2.0, 2.5, -1.0, 1000.0, 0.1, 30.0, np.nextafter(2, 3), np.nextafter(2, 1), -0.0, np.nan]


def fires(name, cells, columns=("glu",)):
    """Which rows a rule about this atom says something of, and how much."""
    rules = LBMClassifier.from_knowledge(Theory([(2, atom(name) >> atom("y"))]), target="y", columns=columns)
    p = rules.predict_proba(pd.DataFrame(dict.fromkeys(columns, cells)))[:, 1]
    return np.log(p / (1 - p))


@given(st.sampled_from([*COMPARE]), VALUES, st.booleans(), st.sampled_from(["", " "]))
def test_a_comparison_in_a_rule_means_what_it_says(relation, value, turned, blank):
    cells = np.array([cell for cell in CELLS if cell == cell])
    name = f"glu{blank}{relation}{blank}{value}"
    if turned and relation != "=":
        back = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}[relation]
        name = f"{value}{blank}{back}{blank}glu"
    right = COMPARE[relation](cells, float(value))
    if relation == "=":  # of a column nobody has seen, a category
        assert set(np.round(fires(name, cells), 9)) <= {0.0, 2.0}
        return
    np.testing.assert_allclose(fires(name, cells), np.where(right, 2.0, 0.0), atol=1e-9)


@given(VALUES, VALUES, st.sampled_from(["<", "<="]), st.sampled_from(["<", "<="]))
def test_a_range_in_a_rule_means_what_it_says(low, high, first, second):
    cells = np.array([cell for cell in CELLS if cell == cell])
    right = COMPARE[first](float(low), cells) & COMPARE[second](cells, float(high))
    found = fires(f"{low} {first} glu {second} {high}", cells)
    np.testing.assert_allclose(found, np.where(right, 2.0, 0.0), atol=1e-9)
    turned = {"<": ">", "<=": ">="}
    np.testing.assert_allclose(fires(f"{high} {turned[second]} glu {turned[first]} {low}", cells), found)


def people(rows=200, seed=0):
    random = np.random.default_rng(seed)
    x = pd.DataFrame(
        {
            "glu": random.integers(60, 200, rows).astype(float),
            "sex": random.choice(["man", "women"], rows),
            "tall": random.integers(0, 2, rows),
        }
    )
    y = pd.Series(np.where((x.glu > 130) ^ (random.random(rows) < 0.05), "ill", "well"), name="state")
    return x, y


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("'glu > 150' -> 'state = ill'", "'glu > 150' -> ~state"),
        ("'glu >= 150' & 'tall = 0' -> 'state = well'", "'glu >= 150' & ~tall -> state"),
        ("'107.5 < glu <= 147.5' -> state", "'107.5 < glu <= 147.5' -> state"),
        ("'glu = 150' -> state", "'150 <= glu <= 150' -> state"),
        ("~'glu <= 150' | 'tall > 0.5' -> state", "'glu > 150' | tall -> state"),
        ("'sex = women' -> 'state = ill'", "'sex = women' -> ~state"),
    ],
)
def test_rules_are_understood_and_printed_as_they_were_said(rule, said):
    x, y = people()
    learner = LBMClassifier(knowledge=rule, **QUICK).fit(x, y)
    assert learner.confidences_[0].formula == said
    again = LBMClassifier(knowledge=said, **QUICK).fit(x, y)
    assert (again.predict_proba(x) == learner.predict_proba(x)).all()


def test_extracted_rules_are_printed_so_and_taken_back():
    x, y = people()
    learner = LBMClassifier(random_state=0, max_epochs=40).fit(x, y)
    found = learner.rules(x)
    assert "~'" not in str(found)  # neither negated cuts nor negated categories of two
    again = LBMClassifier.from_knowledge(
        str(found), target="state", columns=x.columns, classes=learner.classes_
    )
    assert (again.predict(x) == learner.predict(x)).mean() == pytest.approx(found.fidelity, abs=1e-12)
    np.testing.assert_allclose(again.predict_proba(x), found.predict_proba(x), atol=1e-12)


@settings(max_examples=60)
@given(st.data())
def test_what_is_said_plainly_is_understood_as_it_was_meant(data):
    names = ["glu <= 1", "glu < 2", "glu <= 3", "age <= 1", "tall"]
    leaf = st.sampled_from(names).map(atom)
    some = data.draw(
        st.recursive(
            leaf,
            lambda inner: st.builds(lambda a, b: a & b, inner, inner) | inner.map(lambda a: ~a),
            max_leaves=6,
        )
    )
    back = understood(Theory([plain(some)]), names)
    worlds = [dict(zip(names, map(bool, map(int, f"{i:05b}")), strict=True)) for i in range(32)]
    from tests.oracles import truth

    (formula,) = (statement.formula for statement in back)
    assert [truth(formula, w) for w in worlds] == [truth(some, w) for w in worlds]


@pytest.mark.parametrize(
    ("rule", "kind", "message"),
    [
        ("'sex = woman' -> state", UnknownAtom, "no atom 'sex = woman' .*; did you mean 'sex = women'"),
        ("'glue > 150' -> state", UnknownAtom, "no atom 'glue > 150' in this table; did you mean 'glu "),
        ("'glu > high' -> state", ValueError, "column 'glu' holds numbers, not 'high': write for example"),
        (
            "'sex > 3' -> state",
            ValueError,
            "column 'sex' holds no numbers but words: write for example",
        ),
        ("'tall = 2' -> state", ValueError, "column 'tall' holds only 0 and 1: write 'tall' or ~'tall'"),
        ("tall -> 'state = il'", UnknownAtom, "no atom 'state = il' .*; did you mean 'state = ill'"),
        ("tall -> 'state > 3'", UnknownAtom, "no atom 'state > 3'"),
        ("glu -> state", ValueError, "knowledge mentions column 'glu', which holds other values"),
    ],
)
def test_a_name_that_is_none_is_an_error_that_suggests(rule, kind, message):
    with pytest.raises(kind, match=message):
        LBMClassifier(knowledge=rule, **QUICK).fit(*people())


def test_either_of_two_classes_may_be_named():
    x = pd.DataFrame({"a": [1, 0]})
    options = {"target": "y", "columns": ["a"]}
    for classes, said in (([False, True], "y = False"), (["no", "yes"], "y = no"), ([1, 2], "y = 1")):
        rules = LBMClassifier.from_knowledge(f"2: a -> '{said}'", classes=classes, **options)
        np.testing.assert_allclose(rules.predict_proba(x)[:, 0], [1 / (1 + np.exp(-2)), 0.5])
    with pytest.raises(UnknownAtom, match="did you mean 'y = yes'"):
        LBMClassifier.from_knowledge("a -> 'y = yess'", classes=["no", "yes"], **options)


def test_rules_about_rows_alone_are_understood_too():
    x, _ = people()
    rbm = LogicalRBM(knowledge="'glu > 150' -> tall", hidden=2, max_epochs=1, random_state=0).fit(x)
    assert rbm.confidences_[0].formula == "'glu > 150' -> tall"


# --- targets -------------------------------------------------------------------------------------

MANY = np.arange(200) % 126
DATES = [datetime.date(2000, 1, 1 + i % 2) for i in range(200)]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            pd.Series(["a", "b", None, np.nan] * 50),
            "none .* in 100 of 200 rows, the first of them row 2",
        ),
        (np.array(["a", "b", np.nan, "a"] * 50, dtype=object), "in 50 of 200 rows, the first"),
        (
            pd.Series([True, False, pd.NA, True] * 50, dtype="boolean"),
            "in 50 of 200 rows, the first",
        ),
        (pd.Series([1, 2, pd.NA, 1] * 50, dtype="Int64"), "in 50 of 200 rows, the first"),
        (
            pd.Series(MANY),
            "126 different numbers in 200 rows, from 0 to 125, which looks like",
        ),
        (pd.Series(MANY, dtype="Int64"), "126 different numbers"),
        (MANY.astype(float), "126 different numbers"),
        (pd.Series(pd.to_datetime(DATES)), "the target holds dates or durations: make classes of them first"),
        (pd.Series(pd.to_datetime(DATES)).dt.tz_localize("UTC"), "the target holds dates"),
        (pd.Series(pd.to_datetime(DATES)).dt.to_period("D"), "the target holds dates"),
        (np.array(DATES, dtype=object), "the target holds dates"),
        (np.array(DATES, dtype="datetime64[D]"), "the target holds dates"),
        (pd.Series(pd.to_timedelta(MANY, unit="D")), "the target holds dates"),
        (pd.Series(["a", 1] * 100, dtype=object), "classes must be comparable|Unknown label type"),
    ],
)
def test_a_target_that_is_none_is_one_clear_line(target, message):
    x, _ = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message) as caught:
            LBMClassifier(**QUICK).fit(x, target)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (pd.Series([True, False] * 100, dtype="boolean"), np.dtype(bool)),
        (pd.Series([3, 1] * 100, dtype="Int64"), np.dtype(np.int64)),
        (pd.Series([3, 1] * 100, dtype="UInt8"), np.dtype(np.uint8)),
    ],
)
def test_nullable_targets_keep_their_kind(target, kind):
    x, _ = people()
    learner = LBMClassifier(**QUICK).fit(x, target)
    assert learner.classes_.dtype == learner.predict(x).dtype == kind


def test_classes_called_none_are_classes():
    x, _ = people()
    for names in (["NA", "None"], ["None", "some"]):
        learner = LBMClassifier(knowledge=f"tall -> 'y = {names[0]}'", **QUICK).fit(x, pd.Series(names * 100))
        assert learner.classes_.tolist() == names


def test_numbers_that_are_names_are_classes_as_text():
    x, _ = people()
    with pytest.warns(UserWarning, match="greater than 50%"):  # scikit-learn's
        assert len(LBMClassifier(hidden=1, max_epochs=1).fit(x, MANY.astype(str)).classes_) == 126


def test_a_file_with_such_targets_says_so(tmp_path):
    def refused(cells, message):
        path = tmp_path / "t.csv"
        path.write_text("a,y\n" + "".join(f"{i % 2},{cell}\n" for i, cell in enumerate(cells)))
        with pytest.raises(FileError, match=message):
            read_examples(open_table(path), "y")

    refused(["NA", "b"] * 20, "in CSV, words such as NA and None count as missing")
    refused(MANY, "t.csv: the target holds 126 different numbers|126 different numbers")


# --- odd cells -----------------------------------------------------------------------------------


def measured(odd, rows=1000):
    random = np.random.default_rng(0)
    x = random.integers(60, 2000, rows)
    cells = pd.Series([str(value) for value in x], dtype=object)
    cells[17] = odd
    return pd.DataFrame({"glu": cells}), pd.Series(x > 1000, name="ill")


@pytest.mark.parametrize("odd", ["?", "-", "1,100"])
def test_an_odd_cell_among_numbers_is_named_and_may_be_read_as_missing(odd):
    x, y = measured(odd)
    with pytest.warns(UserWarning, match=f"column 'glu' holds numbers, but one cell .* '[{odd}]+' in row 17"):
        words = LBMClassifier(hidden=5, max_epochs=20, random_state=0).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = LBMClassifier(hidden=5, max_epochs=20, random_state=0, odd_cells="missing").fit(x, y)
    assert numbers.score(x, y) > 0.85 > 0.7 > words.score(x, y)
    assert numbers.predict(pd.DataFrame({"glu": [1900.0, 70.0]})).tolist() == [True, False]
    assert numbers.predict(pd.DataFrame({"glu": ["1900", "what"]}))[0]


def test_columns_of_words_or_of_numbers_alone_are_not_warned_of():
    x, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LBMClassifier(**QUICK).fit(x.assign(code=[f"c{i % 7}" for i in range(200)]), y)
        LBMClassifier(**QUICK).fit(x.assign(code=[i % 7 if i % 9 else None for i in range(200)]), y)


def test_odd_cells_have_two_readings():
    with pytest.raises(ValueError, match="expected odd_cells 'text' or 'missing', got 'maybe'"):
        LBMClassifier(odd_cells="maybe").fit(*people())


def test_dates_in_columns_are_refused_whatever_holds_them():
    x, y = people()
    with pytest.raises(ValueError, match="column 'day' holds dates or durations"):
        LBMClassifier(**QUICK).fit(x.assign(day=np.array(DATES, dtype=object)), y)


def test_plain_formulae_without_cuts_stay_what_they_are():
    formula = parse("a & ~b -> c | 'colour = red'")
    assert plain(formula) is formula
