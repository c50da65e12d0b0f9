"""What every state costs at least, at sizes: the law itself stands beside that of gains."""

import itertools

import numpy as np
import pytest

from lbm.knowledge.clauses import Clauses
from lbm.reasoning.engine import duals
from lbm.reasoning.engine.duals import ascend, tables_of
from lbm.reasoning.engine.gains import heavy_of, state_of
from lbm.reasoning.engine.kicks import kicks
from lbm.reasoning.engine.values import values_of


def clauses_of(atoms, rows):
    return Clauses.of([row for row, _ in rows], [weight for _, weight in rows], variables=atoms)


def random_rows(groups, values, seed, *, ties=3):
    """Groups of atoms, a price for each, and pairs of values of near groups that cost something or clash."""
    rng = np.random.default_rng(seed)
    atoms = np.arange(1, groups * values + 1).reshape(groups, values)
    rows = []
    for group in atoms.tolist():
        rows.append((group, 0))
        rows += [([-a, -b], 0) for a, b in itertools.combinations(group, 2)]
        rows += [([-a], int(rng.integers(1, 20))) for a in group]
    for g in range(groups - 1):
        for _ in range(ties * values):
            a, b = rng.choice(atoms[g]), rng.choice(atoms[g + 1])
            rows.append(([-int(a), -int(b)], int(rng.integers(0, 15))))
    return groups * values, rows


def cheapest(groups, values, rows):
    """The least cost of a chain of groups, from one group to the next; None: there is none."""
    price = np.zeros(groups * values + 1)
    pair = {}
    for row, weight in rows:
        if len(row) == 1:
            price[-row[0]] += weight
        elif len(row) == 2 and (abs(row[0]) - 1) // values != (abs(row[1]) - 1) // values:
            key = (-row[0], -row[1])
            pair[key] = pair.get(key, 0) + (weight or np.inf)
    best = price[1 : values + 1]
    for g in range(1, groups):
        here = range(g * values + 1, (g + 1) * values + 1)
        before = range((g - 1) * values + 1, g * values + 1)
        best = np.array(
            [min(best[i] + pair.get((a, b), 0) for i, a in enumerate(before)) + price[b] for b in here]
        )
    return float(best.min())


@pytest.mark.parametrize(("groups", "values"), [(10, 3), (65, 3), (129, 4), (1_000, 3), (12, 40)])
def test_along_a_chain_the_bound_comes_near_the_best_and_never_passes_it(groups, values):
    atoms, rows = random_rows(groups, values, 0)
    found = values_of(atoms, clauses_of(atoms, rows))
    least = cheapest(groups, values, rows)
    tables = tables_of(found.space, 100_000)
    ascend(tables, 200)
    assert 0.97 * least <= tables.bound <= least
    state = state_of(found.space, found.space.first[:-1], heavy=heavy_of(found.space), seed=0, number=0)
    kicks(state, length=0, work=200_000)
    if state.cost is not None:
        assert state.cost >= tables.bound
        assert tables.cost(state.best - found.space.first[:-1]) == state.cost


def test_what_is_too_large_has_no_tables(monkeypatch):
    atoms, rows = random_rows(6, 4, 1)
    space = values_of(atoms, clauses_of(atoms, rows)).space
    assert tables_of(space, 1 << 60) is None  # sums would leave 64 bits
    monkeypatch.setattr(duals, "MAX_CELLS", 10)
    assert tables_of(space, 100) is None


def test_long_rules_cost_nothing_in_tables(monkeypatch):
    space = values_of(8, clauses_of(8, [(list(range(1, 9)), 5), ([1, 2, 3], 4), ([-1], 1)])).space
    all_false = np.array([space.first[v + 1] - space.first[v] - 1 for v in range(space.variables)])
    costs = {tables_of(space, 100).cost(state) for state in (all_false, 0 * all_false)}
    monkeypatch.setattr(duals, "CELLS", 8)
    fewer = {tables_of(space, 100).cost(state) for state in (all_false, 0 * all_false)}
    assert max(costs) == 9
    assert max(fewer) == 4
