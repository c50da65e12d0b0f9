"""mRMR against a slow version that counts with scikit-learn."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

from lbm.relations.columns.relevance import information, select

tables = st.tuples(st.integers(2, 30), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape[0]))
)


@given(tables)
def test_information_is_what_scikit_learn_counts(drawn):
    columns, labels = drawn
    expected = [mutual_info_score(labels, column) for column in columns.T]
    assert np.allclose(information(columns, labels), expected, atol=1e-12)


@given(tables, st.integers(1, 6))
def test_each_choice_makes_the_difference_criterion_largest(drawn, count):
    columns, labels = drawn
    chosen = select(columns, labels, count).tolist()
    assert len(chosen) == len(set(chosen)) == min(count, columns.shape[1])
    for k, column in enumerate(chosen):

        def criterion(one: int, before: list[int] = chosen[:k]) -> float:
            repeats = [mutual_info_score(columns[:, one], columns[:, other]) for other in before]
            return mutual_info_score(labels, columns[:, one]) - (np.mean(repeats) if repeats else 0.0)

        others = [one for one in range(columns.shape[1]) if one not in chosen[:k]]
        assert criterion(column) >= max(map(criterion, others)) - 1e-9
