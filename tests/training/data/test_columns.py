"""Columns: how atoms are named, where cuts fall, and what is one category."""

import math
from collections import Counter
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lbm
from lbm.knowledge.formula import quote
from lbm.training.data import columns
from lbm.training.data.columns import Group
from lbm.training.data.encoder import AtomEncoder
from tests.strategies import AWKWARD, awkward_names


def same(left: Any, right: Any) -> bool:
    return np.array_equal(np.asarray(left, float), np.asarray(right, float), equal_nan=True)


# --- names ----------------------------------------------------------------------------------------

odd_texts = st.one_of(awkward_names, st.sampled_from([*AWKWARD, "a\nb", "\t", "\x00", "\u2028", "\ud800"]))


@given(
    st.dictionaries(odd_texts, st.sampled_from(["bits", "numbers", "texts"]), min_size=1, max_size=3),
    st.data(),
)
def test_names_are_atoms_of_the_text_format(kinds: dict[str, str], data: st.DataObject) -> None:
    texts = data.draw(st.lists(odd_texts, min_size=2, max_size=4, unique=True))
    made = {"bits": [0, 1], "numbers": [0.1, 0.7, -3e300], "texts": texts}
    rows = list(zip_longest(*(made[kind] for kind in kinds.values())))
    try:
        names = AtomEncoder(names=list(kinds)).fit(np.array(rows, dtype=object)).get_feature_names_out()
    except ValueError as error:
        assume("two atoms would be called" not in str(error))  # 'a\nb' beside what we write for it
        raise
    for name in names:
        assert lbm.parse(quote(name)) == lbm.atom(name)
        assert lbm.atom(name).label == name


def test_signs_that_no_name_may_hold_are_written_as_python_writes_them() -> None:
    encoder = AtomEncoder().fit(pd.DataFrame({"no\nte": ["a\nb", "c\u00a0d"]}))
    assert encoder.get_feature_names_out().tolist() == ["no\\nte = a\\nb", "no\\nte = c\u00a0d"]
    assert encoder.transform(pd.DataFrame({"no\nte": ["a\nb"]})).tolist() == [[1, 0]]


def test_a_term_is_named_as_formulae_name_it() -> None:
    assert AtomEncoder().fit(pd.DataFrame({"less(a,b)": [0, 1]})).get_feature_names_out() == ["less(a, b)"]


# --- where cuts fall ------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_cut_lies_between_two_values_near_their_middle(first: float, second: float) -> None:
    low, high = sorted((first, second))
    assume(low < high and {low, high} != {0, 1})
    (group,) = AtomEncoder().fit([[low], [high]]).groups_
    (cut,) = group.cuts
    assert low <= cut < high
    above = f"x0 < {math.nextafter(cut, math.inf) + 0.0!r}".removesuffix(".0")  # the same, in fewer digits
    assert group.atoms in ((f"x0 <= {cut!r}".removesuffix(".0"),), (above,))
    middle, distance = (Fraction(low) + Fraction(high)) / 2, Fraction(high) - Fraction(low)
    assert abs(Fraction(cut) - middle) <= max(distance / 100, Fraction(math.ulp(max(-low, high))))


@pytest.mark.parametrize(
    ("values", "text"),
    [([20, 40], "30"), ([1, 2], "1.5"), ([0.1, 0.2], "0.15"), ([0, 1 / 3], "0.167"), ([-1, 1], "0"),
     ([0, 2e17], "1e+17"), ([-0.0, 5e-324], "0"), ([0.1234567, 0.1234987], "0.123478"),
     ([1e308, 1.6e308], "1.3e+308")],
)  # fmt: skip
def test_a_cut_is_written_in_few_digits(values: list[float], text: str) -> None:
    assert AtomEncoder().fit(np.array(values)[:, None]).get_feature_names_out() == [f"x0 <= {text}"]


def test_a_cut_just_below_a_short_number_is_named_after_that() -> None:
    cuts = [-5e-324, math.nextafter(0.1, 0), 0.1, math.nextafter(150, 0), 150.0]
    names = Group("x", "threshold", cuts=tuple(cuts)).atoms
    assert names == ("x < 0", "x < 0.1", "x <= 0.1", "x < 150", "x <= 150")


@given(st.integers(2, 60), st.integers(1, 8), st.randoms())
def test_quantile_cuts_split_distinct_values_evenly(rows: int, thresholds: int, random: Any) -> None:
    x = random.sample(range(1000), rows)
    assume(set(x) != {0, 1})
    (group,) = AtomEncoder(thresholds=thresholds).fit(np.array(x)[:, None]).groups_
    parts = Counter(sum(value > cut for cut in group.cuts) for value in x)
    assert len(parts) == min(rows, thresholds + 1)
    assert all(abs(size - rows / len(parts)) <= 1 for size in parts.values())


def information(x: list[float], y: list[int], cut: float) -> float:
    """Return the mutual information of y and x ≤ cut in nats, from the definition."""
    total = 0.0
    for side in (True, False):
        for label in set(y):
            both = sum((a <= cut) == side and b == label for a, b in zip(x, y, strict=True)) / len(x)
            alone = sum((a <= cut) == side for a in x) / len(x) * (y.count(label) / len(y))
            total += both * math.log(both / alone) if both else 0.0
    return total


@given(st.lists(st.tuples(st.integers(-5, 9), st.integers(0, 2)), min_size=2, max_size=25), st.booleans())
def test_the_first_supervised_cut_tells_most_about_the_classes(
    pairs: list[tuple[int, int]], gap: bool
) -> None:
    x, y = [float(a) for a, _ in pairs], [b for _, b in pairs]
    values = sorted(set(x))
    assume(len(values) > 1 and values != [0, 1])
    best = max(information(x, y, value) for value in values[:-1])
    rows, y_rows = ([math.nan, *x], [5, *y]) if gap else (x, y)  # a missing value has no say
    encoder = AtomEncoder(thresholds=1, method="supervised").fit(np.array(rows)[:, None], y_rows)
    if best > 1e-6:
        assert information(x, y, encoder.groups_[0].cuts[0]) == pytest.approx(best)
    else:
        assert encoder.groups_ == AtomEncoder(thresholds=1).fit(np.array(rows)[:, None]).groups_


def test_supervised_cuts_find_an_interval_and_stop_there() -> None:
    x = np.random.default_rng(0).permutation(300.0 + np.arange(300))
    y = np.where((x > 350) & (x <= 420), "in", "out")
    encoder = AtomEncoder(method="supervised").fit(x[:, None], y)
    assert encoder.get_feature_names_out().tolist() == ["x0 <= 350.5", "x0 <= 420.5"]


def test_of_many_values_supervised_cuts_fall_between_even_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "CANDIDATES", 10)
    x = np.arange(1000.0)
    (group,) = AtomEncoder(method="supervised", thresholds=1).fit(x[:, None], x > 612).groups_
    assert group.cuts == (599.5,)


@pytest.mark.parametrize("y", [None, [1] * 9, [0, 1, 0, 1, 0, 1, 0, 1, 0]])
def test_supervised_without_anything_to_learn_from_is_quantile(y: Any) -> None:
    x = [[value] for value in (1.0, 1, 2, 2, 3, 3, 4, 4, math.nan)]
    assert AtomEncoder(method="supervised").fit(x, y).groups_ == AtomEncoder().fit(x).groups_


def test_classes_must_be_classes() -> None:
    encoder = AtomEncoder(method="supervised")
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        encoder.fit([[1.0], [2.0]], [0.5, 0.7])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        encoder.fit([[1.0], [2.0]], [0, 1, 1])


# --- categories -----------------------------------------------------------------------------------


def test_an_unknown_category_makes_every_atom_of_its_column_false() -> None:
    encoder = AtomEncoder().fit(pd.DataFrame({"colour": ["red", "blue"]}))
    found = encoder.transform(pd.DataFrame({"colour": ["green", None, "red"]}))
    assert same(found, [[0, 0], [math.nan, math.nan], [0, 1]])


def test_the_most_frequent_categories_are_kept() -> None:
    table = pd.DataFrame({"town": list("aabbbcdd")})
    encoder = AtomEncoder(max_categories=2).fit(table)
    assert encoder.groups_[0].categories == ("a", "b")  # a before d: as frequent, earlier in the alphabet
    assert encoder.transform(table).sum() == 5


def test_categories_are_told_apart_by_their_text_whatever_stands_beside_them() -> None:
    cells = [True, 1, 1.0, "1", b"1", 2.5, None, "True"]
    table = pd.DataFrame({"c": pd.Series(cells, dtype=object), "d": [{"k": [1]}, *cells[1:]]})
    encoder = AtomEncoder().fit(table)
    assert [group.categories for group in encoder.groups_] == [
        ("1", "2.5", "True"),
        ("1", "2.5", "True", "{'k': [1]}"),
    ]
    whole = encoder.transform(table)
    assert np.delete(whole, 6, axis=0)[:, :3].argmax(axis=1).tolist() == [2, 0, 0, 0, 0, 1, 2]
    for i in range(len(table)):
        assert same(encoder.transform(table.iloc[[i]]), whole[[i]])
    assert encoder.transform(pd.DataFrame({"c": [1, 7], "d": "?"})).sum(axis=1).tolist() == [1, 0]


def test_categories_that_do_not_occur_have_no_atom() -> None:
    table = pd.DataFrame({"size": pd.Categorical(["s", "l", None, "s"], categories=["s", "m", "l"])})
    assert AtomEncoder().fit(table).groups_[0].atoms == ("size = l", "size = s")
