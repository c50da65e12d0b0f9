"""AtomEncoder: tables into atoms whose names say what they mean."""

import copy
import json
import math
import time
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from lbm.training.data.encoder import AtomEncoder

words = st.one_of(
    st.sampled_from(["red", "blue", "", " ", "nan", "None", "1", "a = b", "x <= 3", "it's", "true"]),
    st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=3),
)
cells: dict[str, st.SearchStrategy[Any]] = {
    "real": st.floats(allow_nan=False, allow_infinity=False),
    "near": st.sampled_from([0.1 + i * 2**-56 for i in range(9)] + [5e-324, 1e-323, -1.7e308, 1.7e308]),
    "whole": st.integers(-3, 10),
    "truth": st.booleans(),
    "bit": st.sampled_from([0.0, 1.0]),
    "word": words,
    "one": st.just(7),
}
MISSING = (None, float("nan"), pd.NA)


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Columns named after the kind of their cells; every one may have missing cells, or nothing else."""
    rows = draw(st.integers(1, 12))
    data = {}
    for kind in draw(st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=5, unique=True)):
        cell = st.one_of(*[cells[kind]] * 4, st.sampled_from(MISSING))
        column = draw(st.lists(draw(st.sampled_from([cells[kind], cell])), min_size=rows, max_size=rows))
        data[kind] = pd.Series(column, dtype=object)
    return pd.DataFrame(data)


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def says(name: str, row: dict[str, Any]) -> float:
    """Return what the text of an atom's name claims about a row, read from the text alone."""
    for column, value in row.items():
        if name == column:
            return math.nan if is_missing(value) else float(value)
        for sign, holds in ((" <= ", lambda v, t: v <= float(t)), (" = ", lambda v, t: v == t)):
            if name.startswith(column + sign):
                text = name[len(column + sign) :]
                return math.nan if is_missing(value) else float(holds(value, text))
    raise AssertionError(f"no column explains {name!r}")


def same(left: Any, right: Any) -> bool:
    return np.array_equal(np.asarray(left, float), np.asarray(right, float), equal_nan=True)


# --- what atoms mean ------------------------------------------------------------------------------


@given(tables(), st.integers(1, 5))
def test_every_atom_is_true_exactly_where_its_name_says(table: pd.DataFrame, thresholds: int) -> None:
    encoder = AtomEncoder(thresholds=thresholds)
    found = encoder.fit_transform(table)
    names = encoder.get_feature_names_out()
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
    assert same(found, np.array([[says(name, row) for name in names] for row in rows]).reshape(found.shape))
    assert tuple(names) == tuple(name for group in encoder.groups_ for name in group.atoms)


@given(tables(), st.integers(1, 5))
def test_thresholds_are_monotone_and_each_splits_the_rows(table: pd.DataFrame, thresholds: int) -> None:
    encoder = AtomEncoder(thresholds=thresholds).set_output(transform="pandas")
    found = encoder.fit_transform(table)
    for group in encoder.groups_:
        atoms = found[list(group.atoms)].dropna().to_numpy()
        if group.kind == "threshold":
            assert 1 <= len(group.cuts) <= thresholds
            assert (np.diff(atoms, axis=1) >= 0).all()
            assert all(0 < share < 1 for share in atoms.mean(axis=0))
            assert all(low < high for low, high in pairwise(group.cuts))
            assert (atoms.sum(axis=0)[1:] > atoms.sum(axis=0)[:-1]).all()  # no two say the same


@given(tables())
def test_a_seen_category_is_one_of_its_group_and_a_missing_value_is_missing_in_all(
    table: pd.DataFrame,
) -> None:
    encoder = AtomEncoder().set_output(transform="pandas")
    found = encoder.fit_transform(table)
    for group in encoder.groups_:
        gone = table[group.column].map(is_missing).to_numpy(bool)
        atoms = found[list(group.atoms)].to_numpy()
        assert (np.isnan(atoms) == gone[:, None]).all()
        if group.kind == "category":
            assert (atoms[~gone].sum(axis=1) == 1).all()


@given(tables())
def test_every_column_has_atoms_or_is_listed_as_constant_or_empty(table: pd.DataFrame) -> None:
    encoder = AtomEncoder().fit(table)
    kinds = {}
    for name in table:
        seen = {value for value in table[name] if not is_missing(value)}
        kinds[name] = "category" if name == "word" else "boolean" if seen == {0, 1} else "threshold"
        if len(seen) < 2:
            kinds[name] = "constant" if seen else "empty"
    assert {group.column: group.kind for group in encoder.columns_} == kinds
    assert encoder.constant_ == tuple(name for name in table if kinds[name] == "constant")
    assert encoder.empty_ == tuple(name for name in table if kinds[name] == "empty")
    assert encoder.groups_ == tuple(group for group in encoder.columns_ if group.atoms)


@given(tables(), st.data())
def test_rows_are_encoded_one_by_one(table: pd.DataFrame, data: st.DataObject) -> None:
    encoder = AtomEncoder().fit(table)
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1))
    assert same(encoder.transform(table.iloc[rows]), encoder.transform(table)[rows])


def test_rows_written_in_groups_are_the_rows_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"a": np.arange(10.0), "b": list("xyzxyzxyzx")})
    whole = AtomEncoder().fit_transform(table)
    monkeypatch.setattr("lbm.training.data.encoder.ROWS", 3)
    assert same(AtomEncoder().fit_transform(table), whole)


# --- what a table may be --------------------------------------------------------------------------

PLAIN = {"n": [1.5, 4.0, None], "i": [1, 2, 3], "b": [True, False, None], "t": ["x", "y", None]}
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table.convert_dtypes(),
    "pyarrow": lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda table: table.astype(object),
    "categories": lambda table: table.assign(t=table["t"].astype("category")),
    "decimals": lambda table: table.assign(n=pd.Series([Decimal("1.5"), Decimal(4), None], dtype=object)),
    "sparse": lambda table: table.assign(i=table["i"].astype(pd.SparseDtype("int64", 0))),
    "structured": lambda table: np.array(
        [(1.5, 1, True, "x"), (4.0, 2, False, "y"), (math.nan, 3, None, None)],
        dtype=[("n", float), ("i", int), ("b", object), ("t", object)],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_the_same_table_in_any_dress(kind: str) -> None:
    plain = AtomEncoder().fit(pd.DataFrame(PLAIN))
    expected = plain.transform(pd.DataFrame(PLAIN))
    dressed = KINDS[kind](pd.DataFrame(PLAIN))
    encoder = AtomEncoder()
    assert same(encoder.fit_transform(dressed), expected)
    assert encoder.groups_ == plain.groups_
    assert encoder.feature_names_in_.tolist() == list(PLAIN)
    assert same(plain.transform(dressed), expected)


def test_lists_and_arrays_have_names_by_number_or_as_given() -> None:
    rows = [["x", 1.5], ["y", None], ["x", 4.5]]
    for some in (rows, rows[1:], [rows[0], ["y", 4.5]]):
        assert set(AtomEncoder().fit(some).get_feature_names_out()) <= {"x0 = x", "x0 = y", "x1 <= 3"}
    named = AtomEncoder(names=["t", "n"]).fit(np.array(rows, dtype=object))
    assert named.get_feature_names_out().tolist() == ["t = x", "t = y", "n <= 3"]
    assert named.get_feature_names_out(["u", "v"]).tolist() == ["u = x", "u = y", "v <= 3"]
    assert not hasattr(named, "feature_names_in_")
    for words in (np.array([["a"], ["b"]]), np.array([[b"a"], [b"b"]])):
        assert AtomEncoder().fit(words).get_feature_names_out().tolist() == ["x0 = a", "x0 = b"]


matrices = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, 1.0, 2.5, -3.0, math.nan]),
)


@given(matrices, st.sampled_from(["csr", "csc", "coo", "lil"]), st.booleans(), st.booleans())
def test_a_sparse_matrix_is_encoded_as_its_dense_form(
    dense: np.ndarray, form: str, new: bool, supervised: bool
) -> None:
    made = (sparse.coo_array if new else sparse.coo_matrix)(dense).asformat(form)
    y = np.arange(len(dense)) % 2
    options = {"method": "supervised" if supervised else "quantile", "dtype": "float32"}
    expected, encoder = AtomEncoder(**options).fit(dense, y), AtomEncoder(**options).fit(made, y)
    assert encoder.groups_ == expected.groups_
    found = encoder.transform(made)
    assert sparse.issparse(found)
    assert found.format == "csr"
    assert found.dtype == np.float32
    assert isinstance(found, sparse.sparray) == new
    assert same(found.toarray(), expected.transform(dense))


def test_zeros_and_ones_stay_as_sparse_as_they_were() -> None:
    made = sparse.eye_array(500, format="csr")
    assert AtomEncoder().fit_transform(made).nnz == 500


def test_an_entry_stored_in_parts_is_their_sum_and_the_matrix_is_left_alone() -> None:
    made = sparse.csc_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 3])), shape=(3, 1))
    assert AtomEncoder().fit_transform(made).toarray().tolist() == [[0, 0], [0, 1], [1, 1]]
    assert len(made.data) == 3


# --- scikit-learn ---------------------------------------------------------------------------------


@estimator_checks.parametrize_with_checks([AtomEncoder(), AtomEncoder(method="supervised")])
def test_scikit_learn_finds_no_fault(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("name", ["transformer_get_feature_names_out", "set_output_transform"])
@pytest.mark.parametrize("ending", ["", "_pandas"])
@pytest.mark.filterwarnings("ignore:X .* feature names")  # it fits on a frame and transforms an array
def test_atoms_are_named_as_scikit_learn_asks_of_its_own_transformers(name: str, ending: str) -> None:
    getattr(estimator_checks, f"check_{name}{ending}")("AtomEncoder", AtomEncoder())


def test_it_works_in_pipelines_and_searches() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=80), "c": rng.choice(["a", "b", None], 80)})
    y = (table["x"] > 0.3).to_numpy()
    steps = make_pipeline(AtomEncoder(method="supervised"), SimpleImputer(), LogisticRegression())
    search = GridSearchCV(steps, {"atomencoder__thresholds": [1, 3]}, cv=3).fit(table, y)
    assert search.best_score_ > 0.85
    scaled = make_pipeline(StandardScaler(), AtomEncoder(thresholds=1)).fit(table[["x"]])
    assert scaled.get_feature_names_out()[0].startswith("x <= ")


def test_output_is_a_frame_where_asked_and_of_the_type_asked_for() -> None:
    table = pd.DataFrame({"x": [1.0, 2.0, None], "k": 1}, index=list("abc"))
    encoder = AtomEncoder(dtype=np.float32).set_output(transform="pandas")
    found = clone(encoder).fit_transform(table)
    assert found.columns.tolist() == ["x <= 1.5"]
    assert found.index.tolist() == list("abc")
    assert found.dtypes.tolist() == [np.float32]
    assert clone(encoder).get_params() == encoder.get_params()


# --- model files ----------------------------------------------------------------------------------


@given(tables(), st.sampled_from(["float32", "float64"]), st.booleans())
def test_an_encoder_comes_back_from_its_state(table: pd.DataFrame, dtype: str, named: bool) -> None:
    given_names = None if named else [f"c{i}" for i in range(table.shape[1])]
    X = table if named else table.to_numpy(object)
    encoder = AtomEncoder(thresholds=3, names=given_names, dtype=dtype).fit(X)
    state = encoder.to_state()
    back = AtomEncoder.from_state(json.loads(json.dumps(state)))
    assert back.to_state() == state
    assert back.columns_ == encoder.columns_
    assert back.get_params() == encoder.get_params()
    assert vars(back).keys() == vars(encoder).keys()
    found = back.transform(X)
    assert found.dtype == dtype
    assert same(found, encoder.transform(X))
    assert back.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


STATE = AtomEncoder().fit(pd.DataFrame(PLAIN | {"k": 1, "e": None})).to_state()
HOSTILE: dict[tuple[Any, ...], list[Any]] = {
    (): [None, [], "state"],
    ("more",): [1],
    ("named",): [1, "yes"],
    ("columns",): [[], {}, "abc"],
    ("columns", 0): [None],
    ("columns", 0, "name"): [3, None, "i"],
    ("columns", 0, "kind"): ["number", [], "category", "boolean"],
    ("columns", 0, "more"): [1],
    ("columns", 0, "cuts"): [
        [], [1, 1], [2, 1], [-0.0, 0.0], [math.nan], [math.inf], ["1"], [True], [10**400], [[1]], 3,
    ],
    ("columns", 2, "name"): ["", "i <= 1.5"],
    ("columns", 3, "categories"): [[], ["a", "a"], [1], "ab", ["a\nb", "a\\nb"]],
    ("parameters",): [None],
    ("parameters", "more"): [1],
    ("parameters", "thresholds"): [True, 0, 2.0],
    ("parameters", "method"): ["mdl", ["x"]],
    ("parameters", "max_categories"): ["50"],
    ("parameters", "names"): [5, [1], {"a": 1}, "ab", ["a", "a"]],
    ("parameters", "dtype"): ["object", None, [["a", "f8"]]],
}  # fmt: skip


def replaced(state: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(state)
    reduce(getitem, path[:-1], changed)[path[-1]] = value
    return changed


@pytest.mark.parametrize(("path", "value"), [(path, value) for path in HOSTILE for value in HOSTILE[path]])
def test_a_state_that_is_none_is_refused_in_one_line(path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|must be|twice|two atoms|empty name") as caught:
        AtomEncoder.from_state(replaced(STATE, path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "n", "threshold", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "kind", "cuts"]), inner)
    ),
    max_leaves=4,
)


@given(st.sampled_from(list(HOSTILE)), json_values)
def test_any_other_state_is_read_or_refused_and_never_half_read(path: tuple[Any, ...], value: Any) -> None:
    try:
        encoder = AtomEncoder.from_state(replaced(STATE, path, value))
    except ValueError:
        return
    assert AtomEncoder.from_state(encoder.to_state()).columns_ == encoder.columns_


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (pd.DataFrame({"a": []}), {}, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=[1, 2]), {}, r"0 feature\(s\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "its own name, got 'a' twice"),
        (pd.DataFrame([[1, 2]], columns=[3, 3]), {}, "its own name, got 3 twice"),
        (pd.DataFrame({"a": [1, math.inf]}), {}, "column 'a' holds infinite numbers"),
        (pd.DataFrame({"a": pd.Series([1, 10**400], dtype=object)}), {}, "column 'a' holds infinite numbers"),
        (sparse.csr_array([[0.0, -math.inf]]), {}, "column 'x1' holds infinite numbers"),
        (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), {}, "column 'day' holds dates"),
        (pd.DataFrame({"z": [1j]}), {}, "column 'z' holds complex"),
        (pd.DataFrame({"": [0, 1]}), {}, "empty name"),
        (pd.DataFrame({"a": ["b = c", "d"], "a = b": ["c", "d"]}), {}, "two atoms would be called 'a ="),
        (pd.DataFrame({"a": [1, 2]}), {"names": ["b"]}, "brings other names"),
        ([[1, 2]], {"names": ["b"]}, "as many names as columns, 2, got 1"),
        ([[1, 2]], {"names": ["b", "b"]}, "got 'b' twice"),
        ([[1, 2]], {"names": "ab"}, "names must be a list"),
        ([[1, 2]], {"thresholds": 0}, "thresholds must be a whole number from 1 up, got 0"),
        ([[1, 2]], {"max_categories": 2.5}, "max_categories must be a whole number"),
        ([[1, 2]], {"method": "mdl"}, "method must be 'quantile' or 'supervised', got 'mdl'"),
        ([[1, 2]], {"dtype": "int8"}, "dtype must be 'float64' or 'float32'"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_encoded_is_refused(table: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AtomEncoder(**options).fit(table)


def test_values_that_fit_did_not_allow_are_refused() -> None:
    table = pd.DataFrame({"b": [0, 1, 1], "n": [1.0, 2, 3], "k": 1})
    encoder = AtomEncoder().fit(table)
    for column, value, message in (
        ("b", 2, "column 'b' held only 0 and 1 in fit, and now holds 2"),
        ("b", "no", "column 'b' held numbers in fit"),
        ("n", "3", "column 'n' held numbers in fit"),
        ("n", math.inf, "column 'n' holds infinite"),
    ):
        with pytest.raises(ValueError, match=message):
            encoder.transform(table.assign(**{column: value}))
    assert same(encoder.transform(table.assign(k=5)), encoder.transform(table))  # it has no atoms
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(table.rename(columns={"n": "m"}))
    with pytest.raises(ValueError, match="column 'x0' held only 0 and 1 in fit, and now holds 3"):
        AtomEncoder().fit([[0], [1]]).transform(sparse.csr_array([[3.0]]))
    with pytest.raises(NotFittedError):
        AtomEncoder().to_state()


@pytest.mark.slow
def test_a_million_rows_take_seconds() -> None:
    X = np.random.default_rng(0).normal(size=(1_000_000, 20))
    encoder = AtomEncoder(dtype="float32").fit(X[:10_000])
    begun = time.process_time()
    assert encoder.transform(X).shape == (1_000_000, 80)
    assert time.process_time() - begun < 10
