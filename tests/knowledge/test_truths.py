"""Truth of many formulae at once, beside the truth of each by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbm.knowledge.formula import FALSE, TRUE, atom, atoms_of, exactly, iff
from lbm.knowledge.parser import parse
from lbm.knowledge.truths import Truths
from tests.oracles import truth
from tests.strategies import formulae


@given(st.lists(formulae(), max_size=6), st.integers(0, 2**16))
def test_all_at_once_are_true_where_each_is(some, bits):
    names = sorted(atoms_of(*some))
    world = {name: bool(bits >> i & 1) for i, name in enumerate(names)}
    found = Truths(names, some).true_in(list(world.values()))
    assert found.dtype == bool
    assert found.tolist() == [bool(truth(formula, world)) for formula in some]


def test_what_mentions_no_atom_and_counts_that_nobody_can_reach():
    some = [TRUE, FALSE, ~TRUE, exactly(0), exactly(1), parse("atmost(0, a)"), parse("atleast(2, a, a)")]
    assert Truths(["a"], some).true_in([True]).tolist() == [True, False, False, True, False, False, True]


def test_a_thousand_levels_are_no_deeper_than_python_allows():
    whole = atom("a")
    for i in range(5000):
        whole = iff(whole, atom(f"x{i % 7}"))
    names = list(atoms_of(whole))
    rng = np.random.default_rng(3)
    for _ in range(5):
        values = rng.random(len(names)) < 0.5
        assert Truths(names, [whole]).true_in(values).tolist() == [
            bool(truth(whole, dict(zip(names, values.tolist(), strict=True))))
        ]
