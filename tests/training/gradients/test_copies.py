"""Copies: each learns as a machine of its own would, from its own rows, beside what is held."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.training.boltzmann.knowledge import label_patterns
from lbm.training.gradients.copies import Held, Ways, begin_copies, copy_slopes, judge_copies
from lbm.training.gradients.costs import Cost


def problem(seed):
    """A few rows, some of them with several ways to fill them in, held scores, and copies drawn at random."""
    random = np.random.default_rng(seed)
    rows, columns, hidden, copies = (int(n) for n in random.integers([4, 1, 0, 1], [9, 4, 4, 4]))
    labels = int(random.choice([1, 3]))
    patterns = label_patterns(labels).astype(float)
    row = np.repeat(np.arange(rows), random.integers(1, 4, rows))
    share = random.random(len(row)) + 0.1
    share /= np.bincount(row, share)[row]
    ways = Ways(
        (random.random((len(row), columns)) < 0.5).astype(np.uint8),
        row,
        share,
        random.integers(len(patterns), size=rows),
        random.random(rows) + 0.5,
    )
    inside = random.random((rows, copies)) < 0.7
    inside[:2] = [True], [False]
    offsets = random.normal(size=(len(row), copies, len(patterns)))
    parameters = {
        "weights": random.normal(size=(columns, hidden)),
        "label_weights": random.normal(size=(labels, hidden)),
        "hidden_bias": random.normal(size=hidden),
        "label_bias": np.zeros(labels),
    }
    drawn = begin_copies(parameters, copies).values.items()
    own = {name: values + random.normal(size=values.shape) for name, values in drawn}
    return own, Held(ways, offsets, inside, None), patterns


def scores(own, held, way, copy, patterns):
    """Scores of the classes of one way, unit by unit."""
    x = held.ways.x[way]
    out = []
    for k, pattern in enumerate(patterns):
        total = held.offsets[way, copy, k] + pattern @ own["label_bias"][copy]
        for unit in range(own["weights"].shape[2]):
            s = own["hidden_bias"][copy, unit] + x @ own["weights"][:, copy, unit]
            total += np.logaddexp(0, s + pattern @ own["label_weights"][:, copy, unit])
        out.append(total)
    return np.array(out)


def cost_of(own, held, rows, patterns, cost):
    """The mean over copies of each copy's cost, row by row."""
    ways, total = held.ways, 0.0
    copies = held.inside.shape[1]
    for copy in range(copies):
        mine = [row for row in rows if held.inside[row, copy]]
        for row in mine:
            for way in np.flatnonzero(ways.row == row):
                found = scores(own, held, way, copy, patterns)
                surprise = np.logaddexp.reduce(found) - found[ways.kinds[row]]
                total += ways.weights[row] * ways.share[way] * surprise / len(mine)
        size = held.inside[:, copy].sum()
        for name in ("weights", "label_weights"):
            values = own[name][..., copy, :]
            total += (cost.l1 * abs(values).sum() + cost.l2 / 2 * (values**2).sum()) / size
    return total / copies


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_slopes_are_those_of_the_costs_of_the_copies(seed):
    own, held, patterns = problem(seed)
    cost, copies = Cost(l1=0.3, l2=0.7), held.inside.shape[1]
    rows = np.sort(np.random.default_rng(seed).permutation(len(held.ways.kinds))[:5])
    value, slopes = copy_slopes(own, held, rows, patterns, cost)
    bare = cost_of(own, held, rows.tolist(), patterns, Cost())
    assert value == pytest.approx(bare, rel=1e-9)  # without penalties
    step = 1e-6
    for name, values in own.items():
        for place in list(np.ndindex(values.shape))[:6]:
            moved = {key: array.copy() for key, array in own.items()}
            found = []
            for sign in (1, -1):
                moved[name][place] = values[place] + sign * step
                found.append(cost_of(moved, held, rows.tolist(), patterns, cost))
            assert slopes[name][place] == pytest.approx((found[0] - found[1]) / (2 * step) * copies, abs=1e-5)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_every_row_is_judged_by_the_copies_that_never_saw_it(seed):
    own, held, patterns = problem(seed)
    ways, total, right, weight = held.ways, 0.0, 0.0, 0.0
    for row, copy in np.argwhere(~held.inside):
        p = np.zeros(len(patterns))
        for way in np.flatnonzero(ways.row == row):
            found = scores(own, held, way, copy, patterns)
            p += ways.share[way] * np.exp(found - np.logaddexp.reduce(found))
        total -= ways.weights[row] * np.log(p[ways.kinds[row]])
        right += ways.weights[row] * (p.argmax() == ways.kinds[row])
        weight += ways.weights[row]
    assert judge_copies(own, held, patterns) == pytest.approx((total / weight, right / weight))


@pytest.mark.parametrize("size", [10, 65, 129, 1000])
def test_steep_inputs_and_flat_ones_keep_their_digits(size):
    own, held, patterns = problem(size)
    for scale in (1e-8, 1.0, 1e3):
        larger = {name: values * scale for name, values in own.items()}
        value, _ = copy_slopes(larger, held, np.arange(4), patterns, Cost())
        assert value == pytest.approx(cost_of(larger, held, range(4), patterns, Cost()), rel=1e-9)
