"""Programs of tables and circuits, compiled, say what the passes in NumPy say, at any size."""

import math
import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.knowledge.formula import atom
from lbm.reasoning.budget import NO_LIMIT
from lbm.reasoning.exact import passes, programs, tables
from lbm.reasoning.exact.apart import Component
from lbm.reasoning.exact.form import EvidenceRows
from lbm.reasoning.exact.programs import table_program
from lbm.reasoning.exact.tables import Tables


@st.composite
def eliminations(draw):
    """An elimination: sizes of variables, the scope of each step, and a table of weights for each."""
    number = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(2, 4), min_size=number, max_size=number))
    scopes, waiting = [], [set() for _ in range(number)]
    for v in range(number):
        later = draw(st.sets(st.integers(v + 1, number - 1))) if v + 1 < number else set()
        others = sorted((waiting[v] | later) - {v})
        scopes.append((v, *others))
        if others:
            waiting[others[0]].update(others)
    weight = st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-3])
    found = []
    for scope in scopes:
        shape = tuple(sizes[v] for v in scope)
        cells = draw(st.lists(weight, min_size=math.prod(shape), max_size=math.prod(shape)))
        found.append(np.array(cells).reshape(shape))
    return sizes, scopes, found


def expected(sizes, scopes, weights, seen):
    """Return Z and the chance of each value, by looking at every world."""
    total, ones = 0.0, [np.zeros(size) for size in sizes]
    for world in product(*map(range, sizes)):
        share = math.prod(
            table[tuple(world[v] for v in scope)] for scope, table in zip(scopes, weights, strict=True)
        )
        share *= math.prod(seen[v][world[v]] for v in seen)
        total += share
        for v, value in enumerate(world):
            ones[v][value] += share
    return total, np.concatenate(ones) / total if total else None


@given(eliminations(), st.data())
def test_a_program_sums_over_all_worlds_and_says_how_likely_values_are(elimination, data):
    sizes, scopes, weights = elimination
    program = table_program(sizes, scopes, [table > 0 for table in weights])
    entries = np.concatenate([table.ravel() for table in weights])[program.kept]
    bounds = np.array([math.log(table[table > 0].min(initial=1.0)) for table in weights])
    share = st.sampled_from([0.0, 1.0, 0.5, 2.0, 1e-30])
    rows = data.draw(st.integers(1, 3))
    told = data.draw(st.sets(st.sampled_from(range(len(sizes)))))
    seen = {
        v: np.array(data.draw(st.lists(share, min_size=sizes[v] * rows, max_size=sizes[v] * rows))).reshape(
            -1, rows
        )
        for v in told
    }
    found = program.swept(entries, bounds, seen, rows, down=True)
    assert found is not None
    logs, chances = found
    only = program.swept(entries, bounds, seen, rows, down=False)
    assert np.array_equal(only[0], logs)
    for row in range(rows):
        total, ones = expected(sizes, scopes, weights, {v: table[:, row] for v, table in seen.items()})
        assert logs[row] == pytest.approx(math.log(total) if total else -math.inf, rel=1e-12, abs=1e-12)
        if total:
            assert chances[:, row] == pytest.approx(ones, rel=1e-12, abs=1e-15)


def test_loops_in_python_do_the_same(monkeypatch):
    sizes, scopes = [2, 3, 2], [(0, 1), (1, 2), (2,)]
    rng = np.random.default_rng(3)
    weights = [rng.random((2, 3)), rng.random((3, 2)), rng.random(2)]
    weights[0][1, 2] = 0.0
    program = table_program(sizes, scopes, [table > 0 for table in weights])
    entries = np.concatenate([table.ravel() for table in weights])[program.kept]
    asked = entries, np.full(3, -20.0), {1: rng.random((3, 70))}, 70
    compiled = program.swept(*asked, down=True)
    for name in ("_sweep", "_sum_up", "_hand_down", "_walk", "_gates_up", "_gates_down"):
        monkeypatch.setattr(programs, name, getattr(programs, name).py_func)
    plain = program.swept(*asked, down=True)
    assert np.allclose(plain[0], compiled[0], rtol=1e-14)
    assert np.allclose(plain[1], compiled[1], rtol=1e-13)
    assert program.swept(entries, np.full(3, -900.0), {}, 1, down=False) is None


def test_messages_near_the_end_of_the_range_are_scaled_and_those_past_it_refused():
    """A chain whose weights are e^-30: messages are scaled every other step, and nothing is lost."""
    number = 200
    scopes = [(v, v + 1) for v in range(number - 1)] + [(number - 1,)]
    small = math.exp(-30.0)
    weights = [np.full((2, 2), small) for _ in range(number - 1)] + [np.ones(2)]
    program = table_program([2] * number, scopes, [table > 0 for table in weights])
    entries = np.concatenate([table.ravel() for table in weights])
    bounds = np.array([-30.0] * (number - 1) + [0.0])
    logs, chances = program.swept(entries, bounds, {}, 3, down=True)
    assert logs == pytest.approx([-30.0 * (number - 1) + number * math.log(2)] * 3, rel=1e-12)
    assert chances == pytest.approx(0.5)
    assert program.swept(entries, 25 * bounds, {}, 3, down=True) is None


@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_theories_of_any_size_have_the_same_answers_by_compiled_passes(atoms, monkeypatch):
    import numba  # noqa: F401

    rng = random.Random(atoms)
    names = [f"x{i}" for i in range(atoms)]
    hard = [f"x{i} -> x{i + 1} | x{max(0, i - 2)}" for i in range(atoms - 1) if rng.random() < 0.6]
    soft = [f"{rng.uniform(-2, 2):.3f}: x{i} <-> x{i + 1}" for i in range(atoms - 1)]
    theory = lbm.Theory.parse("\n".join([f"atoms {', '.join(names)}", *hard, *soft]))
    told = rng.sample(names, 5)
    table = {name: [rng.choice([0.0, 1.0, None, 0.3]) for _ in range(100)] for name in told}
    compiled = lbm.Reasoner(theory).marginals(given=table)
    for module in (passes, tables):
        monkeypatch.setattr(module, "usable", lambda _: False)
    plain = lbm.Reasoner(theory).marginals(given=table)
    for name in names:
        assert np.allclose(compiled[name], plain[name], rtol=1e-11, atol=1e-14, equal_nan=True)


def test_tables_too_large_for_a_program_have_the_same_sums():
    names = tuple(f"x{i}" for i in range(18))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    soft = (*((atom(a) & atom(b), 1) for a, b in pairs), *((atom(name), -9) for name in names))
    made = Tables(Component(names, (), soft), NO_LIMIT)
    assert made.work > programs.MAX_ENTRIES
    offset, logs = made.log_sums(1, 1.0, EvidenceRows(names[:1], np.full((40, 1), 0.5)).weights([]))
    true = np.arange(19)
    ways = np.array([math.comb(18, int(k)) for k in true])
    score = true * (true - 1) / 2 - 9.0 * true
    assert logs + offset == pytest.approx(np.log((ways * np.exp(score)).sum() / 2), rel=1e-12)
