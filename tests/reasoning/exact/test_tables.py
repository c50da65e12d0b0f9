"""Tables of many values give what looking at every world gives, for one row and for many."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import chain, pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lbm
from lbm.errors import TooManyWorlds
from lbm.knowledge.formula import atleast, atmost, atom, atoms_of, cardinality, disjunction, exactly
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import NO_LIMIT
from lbm.reasoning.exact import tables, variables, whole
from lbm.reasoning.exact.apart import Component, Split, take_apart
from lbm.reasoning.exact.form import EvidenceRows
from lbm.reasoning.exact.rows import unpack
from lbm.reasoning.exact.tables import Tables
from lbm.reasoning.exact.variables import groups_of
from lbm.reasoning.exact.whole import How
from tests.oracles import PRECISE, truth
from tests.strategies import formulae

pytestmark = pytest.mark.usefixtures("both_loops")

NAMES = tuple("abcdefg")
MODEST = st.integers(-3000, 3000).filter(bool)
LIKELY = st.sampled_from([math.nan, 0.0, 1.0, 0.25, 0.9, 1e-300])


@st.composite
def components(draw, weights=MODEST):
    """A component with groups, formulae of any kind, and weights far apart; it may fall apart."""
    formula = formulae(NAMES, max_leaves=8)
    hard = draw(st.lists(formula, max_size=3))
    for _ in range(draw(st.integers(0, 2))):
        some = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=3, max_size=4))
        hard.append(exactly(1, *map(atom, some)))
    if draw(st.booleans()):
        literals = [atom(n) if draw(st.booleans()) else ~atom(n) for n in NAMES]
        hard.append(cardinality(draw(st.sampled_from(["atleast", "atmost", "exactly"])), 3, literals))
    soft = tuple((f, draw(weights)) for f in draw(st.lists(formula, max_size=3)))
    hard = [f for f in hard if atoms_of(f)]
    soft = tuple((f, w) for f, w in soft if atoms_of(f))
    assume(hard or soft)
    return Component(NAMES, tuple(hard), soft)


def both_ways(component):
    """Yield tables as they are made, and once more with all formulae through definitions of their parts."""
    yield Tables(component, NO_LIMIT)
    kept = variables.MAX_CELL, variables.NARROW
    variables.MAX_CELL = variables.NARROW = 4
    try:
        yield Tables(component, NO_LIMIT)
    finally:
        variables.MAX_CELL, variables.NARROW = kept


def models(component):
    """Return each model as truth values, with its score."""
    for values in product([False, True], repeat=len(component.atoms)):
        world = dict(zip(component.atoms, values, strict=True))
        if all(truth(f, world) for f in component.hard):
            yield values, sum(w for f, w in component.soft if truth(f, world))


def exact(p):
    return PRECISE.divide(Decimal(p.numerator), Decimal(p.denominator))


def seen(world, row, groups):
    """Return what a world is multiplied by: the rule of the docs, one atom after the other."""
    found = Fraction(1)
    for name, p in row.items():
        group = next((group for group in groups if name in group), ())
        true = next((other for other in group if world[other]), name)
        if math.isnan(p) or (not world[name] and true != name and not math.isnan(row[true])):
            if true != name and p == 1:  # seen true, and is not
                return 0.0
            continue
        found *= Fraction(p) if world[name] else 1 - Fraction(p)
    return found


@given(components(), st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, LIKELY)), min_size=1, max_size=3),
       st.sampled_from([1.0, 30.0, 1000.0]))  # fmt: skip
def test_rows_of_evidence_weigh_worlds(component, rows, temperature):
    groups = groups_of(component)
    values = np.array([[row[name] for name in NAMES] for row in rows])
    found = [
        (*row, each[0])
        for made in both_ways(component)
        for each in [made.all_marginals(1, temperature, EvidenceRows(NAMES, values).weights(groups))]
        for row in zip(rows, *each[1:], strict=True)
    ]
    for row, log, chance, offset in found:
        weights = [
            (values, score, seen(dict(zip(NAMES, values, strict=True)), row, groups))
            for values, score in models(component)
        ]
        weights = [weight for weight in weights if weight[2]]
        if not weights:
            assert log == -math.inf
            assert np.isnan(chance).all()
            continue
        top = max(score for _, score, _ in weights)
        shares = [
            PRECISE.multiply(exact(p), PRECISE.exp(Decimal((score - top) / temperature)))
            for _, score, p in weights
        ]
        expected = float(PRECISE.ln(sum(shares))) + (top - offset) / temperature
        assert log == pytest.approx(expected, rel=1e-9, abs=1e-9)
        ones = np.array([values for values, _, _ in weights]).T
        parts = np.array([float(PRECISE.divide(share, sum(shares))) for share in shares])
        assert chance == pytest.approx(ones @ parts, rel=1e-9, abs=1e-12)


@given(components(), st.data())
def test_counts_are_whole_and_weighted_by_whole_numbers(component, data):
    component = Component(component.atoms, component.hard, ())
    assume(component.hard)
    number = st.sampled_from([0, 1, 2, 7, 10**30])
    weights = {name: (data.draw(number), data.draw(number)) for name in NAMES if data.draw(st.booleans())}
    expected = [values for values, _ in models(component)]
    total = sum(
        math.prod(weights[n][v] for n, v in zip(NAMES, values, strict=True) if n in weights)
        for values in expected
    )
    for made in both_ways(component):
        assert made.count() == len(expected)
        assert made.count(weights=weights) == total
        assert [tuple(row) for row in unpack(made.worlds(), len(NAMES)).tolist()] == expected


@given(components(st.one_of(st.integers(-3, 3).filter(bool), st.integers(-(10**40), 10**40).filter(bool))))
def test_the_best_worlds_are_exact(component):
    expected = list(models(component))
    top = max((score for _, score in expected), default=None)
    best = [values for values, score in expected if score == top]
    for made in both_ways(component):
        found = made.best(None)
        assert (found is None) == (not expected)
        if found is not None:
            assert found[:2] == (top, len(best))
            assert [tuple(row) for row in unpack(found[2], len(NAMES)).tolist()] == best


@given(components(), st.sampled_from([1.0, 300.0]))
def test_draws_are_of_models_and_follow_the_marginals(component, temperature):
    made = Tables(component, NO_LIMIT)
    rows = made.draw(2000, np.random.default_rng(0), 1, temperature)
    chances = made.marginals(1, temperature)
    assert (rows is None) == (chances is None)
    if rows is None or chances is None:
        return
    drawn = unpack(rows, len(NAMES))
    allowed = {values for values, _ in models(component)}
    assert {tuple(row) for row in drawn.tolist()} <= allowed
    error = 5 * np.sqrt(np.array(chances) * (1 - np.array(chances)) / 2000) + 1e-9
    assert (np.abs(drawn.mean(axis=0) - chances) <= error).all()


@pytest.mark.parametrize("atoms", [65, 129, 1000])
@pytest.mark.parametrize("kind", [atleast, atmost, exactly])
def test_cardinalities_of_any_size_are_counted(atoms, kind):
    bound = 7
    some = [atom(f"x{i}") if i % 3 else ~atom(f"x{i}") for i in range(atoms)]
    numbers = {atleast: range(bound, atoms + 1), atmost: range(bound + 1), exactly: [bound]}[kind]
    names = tuple(f"x{i}" for i in range(atoms))
    found = Tables(Component(names, (kind(bound, *some),), ()), NO_LIMIT).count()
    assert found == sum(math.comb(atoms, number) for number in numbers)


def test_rows_that_multiply_to_less_than_any_float_are_not_lost():
    """Evidence of 1e-300 for each of 20 atoms, and a message that one value of 2^1100 worlds outweighs."""
    names = tuple(f"x{i}" for i in range(20))
    either = tuple(parse(f"x{i} | x{i + 1}") for i in range(19))
    made = Tables(Component(names, either, ()), NO_LIMIT)
    _, logs = made.log_sums(1, 1.0, EvidenceRows(names, np.full((1, 20), 1e-300)).weights([]))
    assert logs[0] == pytest.approx(10 * math.log(1e-300) + math.log(11), rel=1e-12)
    many = tuple(f"y{i}" for i in range(1100))
    rule = tuple(parse(f"~a -> ~{name}") for name in many)
    made = Tables(Component(("a", *many), rule, ()), NO_LIMIT)
    _, logs, chances = made.all_marginals(
        1, 1.0, EvidenceRows(("a",), np.array([[0.0], [1.0], [math.nan]])).weights([])
    )
    assert logs == pytest.approx([0.0, 1100 * math.log(2), 1100 * math.log(2)], rel=1e-12)
    assert chances[0].tolist() == [0.0] * 1101
    assert chances[1, 1:] == pytest.approx(0.5)


def test_a_table_past_the_limit_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(tables, "MAX_TABLE", 1 << 6)
    names = tuple(f"x{i}" for i in range(12))
    pairs = tuple(atom(a) | atom(b) for a in names for b in names if a < b)
    with pytest.raises(TooManyWorlds, match=r"4\.1e\+03 entries, more than 64 \(limit MAX_TABLE\)") as caught:
        Tables(Component(names, pairs, ()), NO_LIMIT)
    assert (caught.value.limit, caught.value.value) == ("MAX_TABLE", 64)
    monkeypatch.setattr(tables, "MAX_TABLE", 1 << 20)
    monkeypatch.setattr(tables, "MAX_REMEMBERED", 1 << 8)
    made = Tables(Component(names, pairs, ()), NO_LIMIT)
    assert made.count() == 13
    with pytest.raises(TooManyWorlds, match="limit MAX_REMEMBERED"):
        made.marginals(1, 1.0)


def test_a_formula_whose_table_no_float_could_count_is_counted_by_its_parts():
    size = 1100
    assert lbm.count(lbm.Theory.parse(" ^ ".join(f"x{i}" for i in range(size)))) == 1 << (size - 1)


def test_groups_are_found_in_formulae_and_in_clauses():
    hard = [parse("exactly(1, a, b, c, d)"), parse("e | f | g"), parse("exactly(1, d, e, f)")]
    hard += [parse(f"~{x} | ~{y}") for x, y in ("ef", "eg", "fg")]
    assert groups_of(Component(NAMES, tuple(hard), ())) == [("a", "b", "c", "d"), ("e", "f", "g")]
    assert groups_of(Component(NAMES, tuple(hard[1:4]), ())) == [("d", "e", "f")]
    wide = disjunction(atom(f"v{i}") for i in range(9))
    assert groups_of(Component(NAMES, (wide, atmost(1, *(atom(f"v{i}") for i in range(9)))), ())) == [
        tuple(f"v{i}" for i in range(9))
    ]


def test_a_group_of_many_values_is_one_variable():
    """A chain of 30 variables of 10 values, neighbours different: 10·9^29 worlds, tables of 100 entries."""
    names = [[f"v{i}={x}" for x in range(10)] for i in range(30)]
    hard = [exactly(1, *map(atom, group)) for group in names]
    hard += [~(atom(a) & atom(b)) for pair in pairwise(names) for a, b in zip(*pair, strict=True)]
    made = Tables(Component(tuple(chain(*names)), tuple(hard), ()), NO_LIMIT)
    assert made.largest == 100
    assert made.count() == 10 * 9**29
    assert made.marginals(1, 1.0) == pytest.approx([0.1] * 300)
    assert Fraction(made.count(weights={"v0=3": (1, 2)})) == 11 * 9**29


@given(components(), st.integers(1, 40))
def test_circuits_give_the_best_few_worlds_best_first(component, most):
    expected = sorted((score for _, score in models(component)), reverse=True)
    scores = dict(models(component))
    split = Split(NAMES, {}, (), (component,), 0, 1)
    rows = whole.top(split, NAMES, most, How())
    assert (rows is None) == (not expected)
    if rows is not None:
        found = [tuple(row) for row in unpack(rows, len(NAMES)).tolist()]
        assert len(set(found)) == len(found)
        assert [scores[world] for world in found] == expected[:most]


def test_evidence_that_leaves_a_weight_below_the_range_of_floats_loses_no_digit():
    """exp(-732) is subnormal: as a plain float it keeps five digits."""
    component = Component(("a", "g"), (), ((atom("a"), 2), (~atom("g"), -732), (atom("a") | atom("g"), 1)))
    offset, logs = Tables(component, NO_LIMIT).log_sums(
        1, 1.0, EvidenceRows(("g",), np.array([[0.0]])).weights([])
    )
    assert offset + logs[0] == pytest.approx(-732 + math.log(1 + math.exp(3)), abs=1e-12)


def binomials(low, high, atoms, weight=1.0):
    """Return Σ over k from low to high of (atoms choose k)·weight^k, in logarithms."""
    logs = [
        math.lgamma(atoms + 1) - math.lgamma(k + 1) - math.lgamma(atoms - k + 1) + k * math.log(weight)
        for k in range(low, high + 1)
    ]
    return max(logs) + math.log(math.fsum(math.exp(log - max(logs)) for log in logs))


def test_counters_of_hundreds_of_atoms_are_truth_values_until_they_are_met():
    """Tables that are too many to be kept as numbers: what is said of all atoms alike has a closed form."""
    atoms, least, weight = 400, 200, 0.3
    names = [f"v{i}" for i in range(atoms)]
    most = atleast(least, *map(atom, names))
    assert lbm.count(Theory([most])) == sum(math.comb(atoms, k) for k in range(least, atoms + 1))
    (component,) = take_apart(Theory([most, *((weight, name) for name in names)])).components
    solver = Tables(component, NO_LIMIT)
    offset, log = solver.mass(10, 1.0)
    truth = binomials(least, atoms, atoms, math.exp(weight))
    assert offset / 10 + log == pytest.approx(truth, rel=1e-12)
    given = binomials(least - 1, atoms - 1, atoms - 1, math.exp(weight)) + weight
    assert solver.marginals(10, 1.0) == pytest.approx([math.exp(given - truth)] * atoms, rel=1e-9)
    rows = {"v7": np.array([[0.0, 1.0], [1.0, 0.0], [0.3, 0.7]])}
    _, logs = solver.log_sums(10, 1.0, rows)
    assert np.exp(logs[0] + offset / 10 - truth) == pytest.approx(math.exp(given - truth), rel=1e-9)
    assert np.exp(logs[2]) == pytest.approx(0.7 * np.exp(logs[0]) + 0.3 * np.exp(logs[1]), rel=1e-9)
    score, number, worlds = solver.best(1)
    assert (score, number, len(worlds)) == (3 * atoms, 1, 1)
    drawn = unpack(solver.draw(200, np.random.default_rng(0), 10, 1.0), atoms).sum(axis=1)
    assert drawn.min() >= least
    far = Tables(take_apart(Theory([most, (700, "v0")])).components[0], NO_LIMIT)  # in logarithms
    offset, log = far.mass(1, 1.0)
    with_v0 = 700 + binomials(least - 1, atoms - 1, atoms - 1)
    truth = np.logaddexp(with_v0, binomials(least, atoms - 1, atoms - 1))
    assert offset + log == pytest.approx(truth, rel=1e-12)


def test_tables_that_memory_would_not_hold_are_refused_before_they_are_made():
    names = [f"v{i}" for i in range(5000)]
    (component,) = take_apart(Theory([atleast(2500, *map(atom, names))])).components
    with pytest.raises(TooManyWorlds, match="limit MAX_TOGETHER"):
        Tables(component, NO_LIMIT)
    with pytest.raises(TooManyWorlds, match="limit MAX_COUNTERS"):
        whole.circuit_of(component, None, NO_LIMIT)
