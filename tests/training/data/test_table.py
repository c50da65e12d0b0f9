"""Tables: which columns are atoms, which are encoded, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import BaseEstimator

from lbm.errors import UnknownAtom
from lbm.training.data.encoder import column_names
from lbm.training.data.table import (
    extend_encoder,
    fit_layout,
    layout_of_names,
    read_atoms,
    read_table,
)

NAN = float("nan")
TABLE = pd.DataFrame(
    {
        "tall": [1, 0, NAN, 1],
        "age": [20.0, 40.0, NAN, 60.0],
        "colour": ["red", None, "blue", "red"],
        "same": [1, 1, 1, 1],
        "gone": [NAN] * 4,
        "flag": [True, False, True, False],
    }
)


def layout_of(table, mentioned=(), **options):
    read = read_table(BaseEstimator(), table, reset=True)
    columns = (
        tuple(table.columns)
        if isinstance(table, pd.DataFrame)
        else tuple(f"x{i}" for i in range(read.shape[1]))
    )
    return read, fit_layout(read, columns, mentioned, **options)


def test_truth_values_stay_and_other_columns_become_atoms_behind_them():
    read, layout = layout_of(TABLE)
    assert layout.atoms == ("tall", "flag", "age <= 30", "age <= 50", "colour = blue", "colour = red")
    assert (layout.constant, layout.empty) == (("same",), ("gone",))
    np.testing.assert_array_equal(
        read_atoms(read, layout),
        [
            [1, 1, 1, 1, 0, 1],
            [0, 0, 0, 1, NAN, NAN],
            [NAN, 1, NAN, NAN, 1, 0],
            [1, 0, 0, 0, 0, 1],
        ],
    )


def test_groups_that_are_missing_together_have_the_patterns_they_can_have():
    _, layout = layout_of(TABLE)
    (thresholds, rising), (colours, one) = layout.groups
    assert (thresholds, colours) == ([2, 3], [4, 5])
    assert rising.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert one.tolist() == [[1, 0], [0, 1], [0, 0]]  # the last: none of those kept


def test_columns_that_knowledge_mentions_stay_even_if_they_are_constant_or_empty():
    _, layout = layout_of(TABLE, ["same", "gone"])
    assert layout.atoms[:4] == ("tall", "same", "gone", "flag")
    assert layout_of(TABLE, drop=False)[1].atoms[:4] == ("tall", "same", "gone", "flag")


def test_knowledge_brings_its_own_thresholds_and_categories():
    read, layout = layout_of(TABLE, ["age <= 18", "age <= 30", "size = 3"])
    assert layout.atoms[2:] == (
        "age <= 18",
        "age <= 30",
        "age <= 50",
        "colour = blue",
        "colour = red",
    )
    assert read_atoms(read, layout)[0].tolist() == [1, 1, 0, 1, 1, 0, 1]
    declared = TABLE.assign(colour=pd.Categorical(TABLE.colour, ["blue", "green", "red"]))
    assert "colour = green" in layout_of(declared, ["colour = green"])[1].atoms


def test_a_column_nobody_has_seen_becomes_the_thresholds_that_knowledge_mentions():
    layout = layout_of_names(["age", "tall", "colour"], ["age <= 30", "tall", "colour = red"])
    assert layout.atoms == ("tall", "age <= 30", "colour = red")
    assert layout_of_names(["a", "b"], ["b"], only=True).atoms == ("b",)
    table = pd.DataFrame({"age": [20, 40], "tall": [1, 0], "colour": ["red", "blue"]})
    assert read_atoms(read_table(BaseEstimator(), table, reset=True), layout).tolist() == [
        [1, 1, 1],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("make", [csr_array, csr_matrix])
def test_sparse_tables_stay_sparse_and_read_as_dense_ones(make):
    x = np.array([[0, 1, 3.5, 0], [1, 0, 0, 0], [0, NAN, 1.0, 0], [1, 1, 0, 0]])
    dense, one = layout_of(x)
    sparse, other = layout_of(make(x))
    assert one.atoms == other.atoms
    assert (one.constant, other.constant) == (("x3",), ("x3",))
    found = read_atoms(sparse, other)
    assert isinstance(found, csr_array)
    np.testing.assert_array_equal(found.toarray(), read_atoms(dense, one))


def test_objects_that_are_truth_values_are_truth_values():
    read, layout = layout_of(np.array([[1, "a"], [0, "b"], [None, "a"]], dtype=object))
    assert layout.atoms == ("x0", "x1 = a", "x1 = b")
    np.testing.assert_array_equal(read_atoms(read, layout), [[1, 1, 0], [0, 0, 1], [NAN, 1, 0]])


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TABLE[["age"]], {"encode": "never"}, "column 'age' holds more than 0, 1 and NaN"),
        (TABLE[["age"]], {"encode": "always"}, "expected encode 'auto' or 'never'"),
        (TABLE[["age"]], {"mentioned": ["age"]}, "knowledge mentions column 'age'.*'age <= 30'"),
        (TABLE, {"mentioned": ["colour = rad"]}, "no atom 'colour = rad' .*; did you mean 'colour = red'"),
        (TABLE, {"mentioned": ["age <= old"]}, "column 'age' holds numbers, not 'old': write for example"),
        (
            TABLE,
            {"mentioned": ["colour > 3"]},
            "'colour' holds no numbers but words: .*'colour = blue'",
        ),
        (TABLE, {"odd": "gone"}, "expected odd_cells 'text' or 'missing', got 'gone'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "two are called 'a'"),
        (pd.DataFrame({"a": [1.0, np.inf]}), {}, "column 'a' holds infinite numbers"),
        (csr_array(np.array([[1.0], [np.inf]])), {}, "column 'x0' holds infinite numbers"),
        (pd.DataFrame({"a": []}), {}, "0 sample"),
        (np.zeros((3, 0)), {}, "0 feature"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table, options, message):
    with pytest.raises((ValueError, UnknownAtom), match=message):
        layout_of(table, **options)


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_other_numbers_are_cut_at_a_half_unless_knowledge_speaks_of_them(make):
    _, layout = layout_of(make(np.array([[0.0, 1.0], [1.0, 0.0]])))
    later = make(np.array([[0.4, 7.0], [NAN, -3.0]]))
    found = read_atoms(later, layout)
    np.testing.assert_array_equal(found if make is np.asarray else found.toarray(), [[0, 1], [NAN, 0]])
    with pytest.raises(ValueError, match="column 'x1' held only 0 and 1 in fit, and now holds 7"):
        read_atoms(later, layout, strict={1})
    with pytest.raises(ValueError, match="column 'x0' holds infinite numbers"):
        read_atoms(make(np.array([[np.inf, 1.0]])), layout)


def test_words_where_truth_values_were_are_refused():
    _, layout = layout_of(TABLE[["tall", "colour"]])
    with pytest.raises(
        ValueError, match="column 'tall' held only 0 and 1 in fit, and now holds something else"
    ):
        read_atoms(pd.DataFrame({"tall": ["x"], "colour": ["red"]}), layout)


def test_names_are_those_of_the_table_else_given_else_numbered():
    estimator, x = BaseEstimator(), np.zeros((2, 2))
    assert column_names(estimator, x, None) == ("x0", "x1")
    assert column_names(estimator, x, ["a", "b"]) == ("a", "b")
    with pytest.raises(ValueError, match="as many names as columns, 2, got 1"):
        column_names(estimator, x, ["a"])
    with pytest.raises(ValueError, match="two are called 'a'"):
        column_names(estimator, x, ["a", "a"])
    read_table(estimator, pd.DataFrame({"p": [1], "q": [2]}), reset=True)
    assert column_names(estimator, x, None) == ("p", "q")
    with pytest.raises(ValueError, match="names= is for arrays"):
        column_names(estimator, x, ["a", "b"])


def test_an_encoder_is_extended_only_by_what_says_the_same_in_its_own_words():
    _, layout = layout_of(TABLE)
    extended = extend_encoder(layout.encoder, ["tall <= 3", "size > 3", "less(age, colour)"])
    assert extended.get_feature_names_out().tolist() == layout.encoder.get_feature_names_out().tolist()
    extended = extend_encoder(layout.encoder, ["age <= 30.0", "18 < age < 65", "age >= 99"])
    assert [name for name in extended.get_feature_names_out() if name.startswith("age")] == [
        "age <= 18",
        "age <= 30",
        "age <= 50",
        "age < 65",
        "age < 99",
    ]
