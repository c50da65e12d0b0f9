"""Likely rows: shares, draws and what is needed, against sums over all rows there are."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.training.boltzmann.likely import Likely, every_state, learn_likely, well_formed
from lbm.training.learners.classifier import LBMClassifier


def tree(seed, facts=5):
    """A tree of facts with two or three states each, drawn at random; states are one-hot but for one."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 4, facts)
    parents = np.array([-1 if random.random() < 0.3 or i == 0 else random.integers(i) for i in range(facts)])
    order = random.permutation(facts)
    place = np.argsort(order)
    parents = np.array([-1 if parents[i] < 0 else place[parents[i]] for i in order])
    sizes, made, first = sizes[order], [], 0
    for size in sizes.tolist():
        made.append((np.arange(first, first + size - 1), np.eye(size, size - 1)))
        first += size - 1
    tables = tuple(
        np.log(random.dirichlet(np.ones(size), 1 if parent < 0 else sizes[parent]))
        for size, parent in zip(sizes.tolist(), parents.tolist(), strict=True)
    )
    return Likely(tuple(made), parents, tables)


def chance(likely, states):
    """The logarithm of a row's probability, fact by fact."""
    return sum(
        table[states[parent] if parent >= 0 else 0, states[fact]]
        for fact, (parent, table) in enumerate(zip(likely.parents, likely.tables, strict=True))
    )


def brute(likely, seen, facts):
    """log q(facts | seen) by summing over all rows."""
    found = {}
    for states in product(*(range(len(patterns)) for _, patterns in likely.facts)):
        if all(s in (-1, mine) for s, mine in zip(seen, states, strict=True)):
            key = tuple(states[fact] for fact in facts)
            found[key] = np.logaddexp(found.get(key, -np.inf), chance(likely, states))
    total = np.logaddexp.reduce(list(found.values()))
    return {key: value - total for key, value in found.items()}


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=5, max_size=5), st.integers(0, 4))
def test_shares_of_completions_are_those_of_sums_over_all_rows(seed, gone, asked):
    likely, random = tree(seed), np.random.default_rng(seed)
    missing = np.array(gone)
    assume(missing[asked])
    pairs = zip(missing, likely.facts, strict=True)
    seen = np.array([-1 if m else random.integers(len(p)) for m, (_, p) in pairs])
    touching = np.zeros(5, dtype=bool)
    touching[asked] = True
    for wanted in (touching, np.ones(5, dtype=bool)):
        facts = likely.needed(missing, wanted)
        assert asked in facts
        ways = every_state([len(likely.facts[fact][1]) for fact in facts])
        shares = likely.log_shares(seen[None], facts, ways)[0]
        expected = brute(likely, seen, facts)
        np.testing.assert_allclose(shares, [expected[tuple(way)] for way in ways.tolist()], atol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=5, max_size=5))
def test_draws_come_as_often_as_their_shares_say(seed, gone):
    likely, random = tree(seed), np.random.default_rng(seed)
    missing = np.array(gone)
    assume(missing.any())
    pairs = zip(missing, likely.facts, strict=True)
    seen = np.array([-1 if m else random.integers(len(p)) for m, (_, p) in pairs])
    facts = likely.needed(missing, np.ones(5, dtype=bool))
    drawn = likely.draw(seen[None], facts, random.random((1, 20_000, len(facts))))[0]
    ways = every_state([len(likely.facts[fact][1]) for fact in facts])
    found = np.array([(drawn == way).all(axis=1).mean() for way in ways])
    np.testing.assert_allclose(found, np.exp(likely.log_shares(seen[None], facts, ways)[0]), atol=0.03)


@pytest.mark.parametrize("rows", [10, 65, 129, 1000])
def test_a_learned_tree_is_one_and_its_tables_are_chances(rows):
    random = np.random.default_rng(rows)
    a = random.random(rows) < 0.5
    x = np.stack([a, a ^ (random.random(rows) < 0.05), random.random(rows) < 0.3], axis=1).astype(float)
    x[random.random(x.shape) < 0.1] = np.nan
    likely = learn_likely(x, np.ones(rows), [])
    assert well_formed(likely.parents)
    assert (rows == 10) or likely.parents[1] == 0 or likely.parents[0] == 1
    for table in likely.tables:
        np.testing.assert_allclose(np.exp(table).sum(axis=1), 1.0)


# --- in predictions ------------------------------------------------------------------------------


def made(rows, seed=0):
    """Columns that depend on each other as a tree, and a rare class that depends on all of them."""
    random = np.random.default_rng(seed)
    a = random.random(rows) < 0.3
    b = random.random(rows) < np.where(a, 0.8, 0.1)
    c = random.choice(["u", "v", "w"], rows, p=[0.6, 0.3, 0.1])
    d = random.random(rows) < np.where(b, 0.9, 0.4)
    odds = -4.5 + 2.0 * a + 2.0 * b + 1.5 * (c == "w") - 1.0 * d
    y = random.random(rows) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame({"a": a * 1.0, "b": b * 1.0, "c": c, "d": d * 1.0}), pd.Series(y, name="y")


@pytest.mark.parametrize("cost", ["discriminative", "hybrid", "generative"])
def test_where_values_are_missing_predictions_are_means_over_likely_rows_for_every_cost(cost):
    """Of what is predicted for the rows there are, among 200,000 new ones, for all that is often seen."""
    x, y = made(4000)
    model = LBMClassifier(cost=cost, random_state=0, hidden=8, max_epochs=15).fit(x, y)
    every, classes = made(200_000, seed=1)
    for gone in (["a"], ["b"], ["c"], ["d"], ["a", "b"], ["a", "b", "c", "d"]):
        kept = [name for name in "abcd" if name not in gone]
        rows = every.copy(deep=True)
        rows[gone] = np.nan
        groups = rows.groupby(kept).groups.values() if kept else [rows.index]
        for mine in groups:
            if len(mine) >= 4000:
                p = model.predict_proba(rows.loc[mine[:1]])[0, 1]
                expected = model.predict_proba(every.loc[mine])[:, 1].mean()
                assert p == pytest.approx(expected, abs=0.02), (gone, rows.loc[mine[0]].tolist())
    assert model.exact(rows.iloc[:1]).all()
    if cost == "discriminative":
        assert p == pytest.approx(classes.mean(), abs=0.01)


def test_a_rare_class_is_as_likely_where_nothing_is_seen_as_it_is_among_rows():
    """Half of the columns say that it is not there, and none does by itself."""
    random = np.random.default_rng(0)
    x = pd.DataFrame((random.random((3000, 6)) < 0.5) * 1.0, columns=list("abcdef"))
    y = pd.Series(random.random(3000) < 1 / (1 + np.exp(4.0 - 1.2 * x.sum(axis=1) + 0.6)), name="y")
    model = LBMClassifier(random_state=0).fit(x, y)
    blank = pd.DataFrame({name: [np.nan] for name in x})
    assert model.predict_proba(blank)[0, 1] == pytest.approx(y.mean(), abs=0.02)
