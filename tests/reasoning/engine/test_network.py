"""A network of gates says of every state what the formulae say of it."""

import random
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, UnknownAtom
from lbm.knowledge.formula import FALSE, TRUE, atleast, atmost, atom, disjunction, exactly, holds, iff
from lbm.knowledge.parser import parse
from lbm.reasoning.engine import network as module
from lbm.reasoning.engine.lanes import start, weights_of
from lbm.reasoning.engine.network import LANES, network_of, network_of_clauses
from tests.oracles import truth_table
from tests.reference.targets import score_target
from tests.strategies import NAMES, QUICK, formulae, random_formula

small = formulae(max_leaves=10)
few = st.lists(small, min_size=1, max_size=6)


def every_world(atoms):
    """Return all states over ``atoms`` as columns, shape (atoms, 2ⁿ): the first atom changes fastest."""
    return (np.arange(1 << atoms) >> np.arange(atoms)[:, None] & 1).astype(np.uint8)


def truths(network, x):
    """Return which gates are true, shape (gates, lanes): 64 states at a time, the last ones made up."""
    lanes = x.shape[1]
    filled = np.zeros((len(x), lanes + -lanes % LANES), np.uint8)
    filled[:, :lanes] = x
    parts = [np.ascontiguousarray(part) for part in np.split(filled, filled.shape[1] // LANES, axis=1)]
    return np.concatenate([network.wires.truth(network.counts(part), slice(None)) for part in parts], axis=1)[
        :, :lanes
    ]


def said(network, x):
    """Return the score and the number of broken hard formulae of every state, shape (lanes,) each."""
    true = truths(network, x)
    return network.earned + network.soft @ true, network.broken - network.hard @ true


def table(formula, names):
    """Return in which of all worlds a formula is true; the library's code is not used."""
    bits = truth_table(formula, names)
    return np.array([bits >> i & 1 for i in range(1 << len(names))], bool)


def check(names, formulas, tables, x):
    """Assert that every root is true where its table says so, as soft and as hard formulae."""
    network = network_of(names, formulas, [(f, 2.0**k) for k, f in enumerate(formulas)])
    score, broken = said(network, x)
    expected = np.array(tables, bool).reshape(len(formulas), x.shape[1])
    found = score.astype(np.int64) >> np.arange(len(formulas))[:, None] & 1
    assert (found == expected).all()
    assert (broken == (~expected).sum(axis=0)).all()
    return network


# --- truth -----------------------------------------------------------------------------------------


@given(few)
def test_every_root_is_true_where_its_formula_is(formulas):
    check(NAMES, formulas, [table(f, NAMES) for f in formulas], every_world(len(NAMES)))


@pytest.mark.parametrize("seed", range(2 if QUICK else 6))
def test_every_root_of_large_formulae_is_true_where_its_formula_is(seed):
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(1, 11)]
    formulas = [random_formula(rng, max_atoms=10) for _ in range(25)]
    check(names, formulas, [table(f, names) for f in formulas], every_world(10))


@given(
    st.lists(small, max_size=3),
    st.lists(st.tuples(small, st.integers(-24, 24).map(lambda k: k / 8)), max_size=4),
    st.sampled_from([0.0, 0.5, 3.0]),
)
def test_scores_broken_formulae_and_log_weights_are_those_of_the_plain_target(hard, soft, penalty):
    # The plain target takes hard conjunctions apart, a network does not; an equivalence stays one for both.
    hard = [iff(TRUE, f) for f in hard]
    target = score_target(NAMES, hard, soft, penalty)
    x = every_world(len(NAMES))
    assert x.shape[1] == LANES
    network = network_of(NAMES, hard, soft)
    lanes = start(network, weights_of(network, penalty), x, seed=0)
    assert (lanes.broken() == target.broken(x)).all()
    assert (lanes.score() == target.score(x)).all()  # eighths add up exactly
    np.testing.assert_allclose(lanes.log_weight, target.log_weight(x), atol=1e-12)


SPECIAL = [
    "a | ~a", "a & ~a", "a | b | ~a", "~(a & b & ~a)", "a ^ a", "a ^ ~a", "a <-> a", "a <-> ~a", "a -> a",
    "a ^ b ^ a", "a ^ b ^ a ^ b", "(a ^ b) <-> (b ^ a)", "a | a | a", "a & a & b", "~~~a", "true", "false",
    "a | true", "a ^ true", "~(a <-> false)", "exactly(1, true, a, b)", "atmost(1, true, true, a)",
    "exactly(0)", "atleast(1)", "exactly(0, a, b)", "atleast(0, a)", "atmost(7, a, b)", "atleast(300, a, b)",
    "exactly(3, a, b)", "exactly(1, a, ~a)", "exactly(2, a, a, b)", "exactly(1, a, a, a)", "atleast(1, a, a)",
    "atleast(2, a, a, ~a, b)", "exactly(2, a, a, ~b, ~b, c)", "atmost(3, a, a, a, a, b, ~c)",
    "exactly(1, a & b, a | b, a ^ b)", "exactly(2, exactly(1, a, b, c), atleast(2, b, c, d), a -> d)",
    "~exactly(1, ~exactly(1, a, b), atmost(1, a, c, d))", "exactly(2, a | b, a | b, c)",
    "(a | b) & (a | b)", "(a & b) | ~(a & b)", "(a & b) ^ (a & b) ^ c", "((a -> b) -> c) -> d",
    "(a <-> b) <-> (c <-> d)", "~(a ^ b) ^ ~(c ^ d) ^ ~a", "a & (b | (c & (d | (a & (b | e)))))",
]  # fmt: skip


def test_repeated_atoms_constants_and_nested_counts_mean_what_they_say():
    formulas = [parse(text) for text in SPECIAL]
    x = every_world(len(NAMES))
    for formula in formulas:
        check(NAMES, [formula], [table(formula, NAMES)], x)
    check(NAMES, formulas, [table(f, NAMES) for f in formulas], x)


@pytest.mark.parametrize("size", [253, 254, 255, 256, 257, 300, 600])
def test_gates_count_past_what_a_byte_holds(size):
    names = [f"x{i}" for i in range(size)]
    atoms = [atom(name) for name in names]
    every = list(range(size + 1))
    rng = np.random.default_rng(size)
    # State k has k true atoms, in a random order: every count there is.
    ranks = np.argsort(rng.random((size, size + 1)), axis=0)
    x = (ranks < np.array(every)).astype(np.uint8)
    number = x.sum(axis=0)
    half = size // 2
    formulas = {
        "or": (disjunction(atoms), number >= 1),
        "and": (~disjunction([~a for a in atoms]), number == size),
        "or of negations": (disjunction([~a for a in atoms]), number < size),
        "xor": (reduce(lambda f, g: f ^ g, atoms), number % 2 == 1),
        "iff": (reduce(iff, atoms), (size - number) % 2 == 0),
        "exactly": (exactly(half, *atoms), number == half),
        "all but one": (exactly(size - 1, *atoms), number == size - 1),
        "atleast": (atleast(size - 1, *atoms), number >= size - 1),
        "atmost": (atmost(size - 2, *atoms), number <= size - 2),
        "negated": (exactly(half, *[~a for a in atoms]), size - number == half),
        "repeated": (exactly(2 * half, *atoms, *atoms), number == half),
        "one, many times": (atleast(size, *[atoms[0]] * size, *atoms[1:]), (x[0] == 1) | (number == size)),
        "nested": (exactly(half, *[a & atoms[0] for a in atoms]), (x[0] == 1) & (number == half)),
    }
    for name, (formula, expected) in formulas.items():
        network = check(names, [formula], [expected], x)
        if name in ("or", "and", "xor", "iff", "exactly", "atmost"):
            assert network.wires.low.dtype == (np.uint8 if size < 255 else np.uint32)
            assert network.longest == 0


# --- sharing and adding ----------------------------------------------------------------------------


@given(small, st.lists(st.integers(-5, 5), min_size=2, max_size=4))
def test_equal_formulae_share_their_gates_and_their_weights_add(formula, weights):
    x = every_world(len(NAMES))
    once = network_of(NAMES, [formula], [(formula, sum(weights))])
    many = network_of(NAMES, [formula] * len(weights), [(formula, w) for w in weights])
    assert many.gates == once.gates
    assert (many.child == once.child).all()
    (score, broken), (other, one) = said(many, x), said(once, x)
    assert (score == other).all()
    assert (broken == len(weights) * one).all()


@given(small, st.integers(-5, 5), st.integers(-5, 5))
def test_a_formula_and_its_negation_share_their_gates(formula, weight, other):
    network = network_of(NAMES, [formula], [(formula, weight), (~formula, other)])
    once = network_of(NAMES, [formula], [])
    literal = len(once.child) == 1  # a root that is a literal is a gate by itself
    assert network.gates <= once.gates + literal
    score, broken = said(network, every_world(len(NAMES)))
    true = table(formula, NAMES)
    assert (score == np.where(true, weight, other)).all()
    assert (broken == ~true).all()


@given(st.lists(st.one_of(small, st.sampled_from([atom("a"), ~atom("a"), TRUE])), max_size=4), st.booleans())
def test_firm_gates_are_as_they_must_be_exactly_where_no_hard_formula_is_broken(hard, clash):
    if clash:
        hard = [*hard, *[~f for f in hard]]
    network = network_of(NAMES, hard, [(f, 1.0) for f in hard])
    x = every_world(len(NAMES))
    true = truths(network, x)
    kept = np.all([true[g] if g >= 0 else ~true[-1 - g] for g in network.firm.tolist()], axis=0)
    if not any(not table(f, NAMES).any() for f in hard):  # a contradiction may leave no gate behind
        assert (kept == (said(network, x)[1] == 0)).all()


def test_a_part_that_stands_in_many_formulae_is_one_gate():
    part = parse("exactly(1, a & b, c, d)")
    one = network_of(NAMES, [part | atom("e")], [])
    two = network_of(NAMES, [part | atom("e"), part ^ atom("f")], [(part, 2.0), (~part, 1.0)])
    assert two.gates == one.gates + 1


def test_formulae_that_meet_each_atom_once_need_no_program():
    flat = "a | ~b | c; a & ~b & d; exactly(2, a, b, ~c, d); ~atmost(1, a, b, c); a ^ b ^ ~c; a <-> b; ~a"
    formulas = [parse(text) for text in flat.split(";")]
    assert network_of(NAMES, formulas, [(f, 1.5) for f in formulas]).longest == 0
    assert network_of(NAMES, [parse("exactly(1, a, a, b)")], []).longest == 1
    assert network_of(NAMES, [parse("(a & b) | (a & c)")], []).longest == 3


PAIRS = "(~a & b) | d", "(a & b) | d", "~(~a & ~b) ^ d", "~(a & ~b) ^ d"


@pytest.mark.parametrize(("part", "text"), list(enumerate(PAIRS)))
def test_a_clause_of_an_atom_under_one_other_gate_is_a_pair_unless_it_weighs_something(part, text):
    formula = parse(text)
    network = network_of(NAMES, [], [(formula, 1.5)])
    assert network.longest == 0
    assert np.diff(network.wires.pairs)[part] == 1  # atom 0 is a
    below = parse(text[text.index("(") : text.index(")") + 1])
    assert network_of(NAMES, [below], [(formula, 1.5)]).longest == 2


# --- clauses ---------------------------------------------------------------------------------------

literals = st.sets(st.integers(1, len(NAMES)), max_size=6).flatmap(
    lambda which: st.tuples(*[st.sampled_from([i, -i]) for i in sorted(which)])
)
clauses = st.lists(
    st.tuples(literals, st.integers(-16, 16).map(lambda k: k / 4), st.integers(0, 2)), max_size=9
)


def packed(items):
    """Return clauses (literals, weight, times hard) as arrays, in the order in which they are taken."""
    lengths = [len(one) for one, _, _ in items]
    return (
        np.array([literal for one, _, _ in items for literal in one], np.int32),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([weight for _, weight, _ in items], np.float64),
        np.array([times for _, _, times in items], np.float64),
    )


def as_formula(one):
    return disjunction([atom(NAMES[i - 1]) if i > 0 else ~atom(NAMES[-i - 1]) for i in one])


@given(clauses)
def test_packed_clauses_give_the_network_of_the_same_formulae(items):
    x = every_world(len(NAMES))
    network = network_of_clauses(len(NAMES), *packed(items))
    hard = [as_formula(one) for one, _, times in items for _ in range(times)]
    other = network_of(NAMES, hard, [(as_formula(one), weight) for one, weight, _ in items])
    (score, broken), (as_said, as_broken) = said(network, x), said(other, x)
    assert (score == as_said).all()
    assert (broken == as_broken).all()
    assert (score == sum((w * table(as_formula(one), NAMES) for one, w, _ in items), np.zeros(64))).all()
    assert network.longest == 0


@given(st.lists(literals.filter(bool), unique_by=frozenset, max_size=9))
def test_kernels_read_the_same_arrays_for_packed_clauses_and_for_formulae(items):
    items = sorted(items, key=lambda one: min(map(abs, one)))  # as packed clauses are put
    network = network_of_clauses(len(NAMES), *packed([(one, 2.0, 0) for one in items]))
    other = network_of(NAMES, [], [(as_formula(one), 2.0) for one in items])
    for name, mine, theirs in zip(network.wires._fields, network.wires, other.wires, strict=True):
        assert mine.dtype == theirs.dtype, name
        assert mine.tolist() == theirs.tolist(), name


@pytest.mark.parametrize("size", [254, 255, 300])
def test_packed_clauses_may_be_long(size):
    numbers = np.arange(1, size + 1, dtype=np.int32)
    signs = np.where(np.arange(size) % 3, 1, -1).astype(np.int32)
    network = network_of_clauses(size, numbers * signs, np.array([0, size]), np.array([2.0]), np.array([1.0]))
    lost = (signs < 0).astype(np.uint8)
    x = np.stack([lost, 1 - lost, np.zeros(size, np.uint8), np.ones(size, np.uint8)], axis=1)
    one = lost.copy()
    one[size - 1] ^= 1
    x = np.column_stack([x, one])
    score, broken = said(network, x)
    assert score.tolist() == [0, 2, 2, 2, 2]
    assert broken.tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("atoms", [10, 20_000, 70_000])
def test_gates_that_an_atom_meets_are_in_order_however_many_atoms_there_are(atoms):
    generator = np.random.default_rng(0)
    numbers = np.array([generator.choice(10, 3, replace=False) for _ in range(2_000)]) * (atoms // 10) + 1
    literals = (numbers * generator.choice([-1, 1], numbers.shape)).astype(np.int32)
    literals = literals[np.argsort(numbers.min(axis=1), kind="stable")]
    zeros = np.zeros(len(literals))
    network = network_of_clauses(
        atoms, literals.ravel(), np.arange(0, literals.size + 1, 3), zeros, zeros + 1
    )
    np.testing.assert_array_equal(network.child.reshape(-1, 3), np.abs(literals) - 1)
    met = [[] for _ in range(module.PARTS * atoms)]
    for gate, literal in np.ndenumerate(literals):
        met[module.PARTS * (abs(int(literal)) - 1) + int(literal < 0)].append(gate[0])
    start = network.wires.start
    np.testing.assert_array_equal(np.diff(start), [len(gates) for gates in met])
    np.testing.assert_array_equal(network.wires.gate, [gate for gates in met for gate in gates])


# --- bad input and limits --------------------------------------------------------------------------


def test_nothing_makes_a_network_without_gates():
    for names in ([], ["a"]):
        network = network_of(names, [TRUE, FALSE, FALSE], [(TRUE, 2.0), (FALSE, 5.0)])
        assert network.gates == network.longest == 0
        score, broken = said(network, np.zeros((len(names), 3), np.uint8))
        assert score.tolist() == [2.0] * 3
        assert broken.tolist() == [2] * 3
    nothing = network_of_clauses(3, *packed([]))
    assert nothing.gates == 0
    assert said(nothing, np.zeros((3, 2), np.uint8))[0].tolist() == [0, 0]


def test_an_atom_that_no_state_has_is_named():
    with pytest.raises(UnknownAtom, match="no atom 'brid' in this state; did you mean 'bird'"):
        network_of(["bird"], [parse("bird | brid")], [])


def nested(depth, atoms):
    """Return a formula whose depth is its size: every connective over what there was before."""
    names = [atom(f"x{i}") for i in range(atoms)]
    turns = (
        lambda f, a, b: f | ~a,
        lambda f, a, b: f & a,
        lambda f, a, b: exactly(1, f, a, b),
        lambda f, a, b: f & b,
        lambda f, a, b: iff(f, a),
        lambda f, a, b: a >> ~f,
    )
    formula = names[0]
    for k in range(depth):
        formula = turns[k % len(turns)](formula, names[k % atoms], names[(3 * k + 1) % atoms])
    return formula


def test_a_formula_may_be_twenty_thousand_connectives_deep():
    formula = nested(20_000, 2)
    network = network_of(["x0", "x1"], [formula], [])
    assert network.longest > 10_000
    x = every_world(2)
    expected = holds(formula, {"x0": x[0] > 0, "x1": x[1] > 0})
    assert (said(network, x)[1] == ~expected).all()


def test_formulae_past_the_limit_are_refused_with_advice(monkeypatch):
    """Twenty thousand atoms, each below all the gates after it: two hundred million steps."""
    monkeypatch.setattr(module, "MAX_STEPS", 50_000)
    formula = nested(20_000, 20_000)
    with pytest.raises(LimitExceeded, match=r"MAX_STEPS.*give names to parts of them") as caught:
        network_of([f"x{i}" for i in range(20_000)], [formula], [])
    assert (caught.value.limit, caught.value.value) == ("MAX_STEPS", 50_000)
