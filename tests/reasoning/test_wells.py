"""Exact answers about a machine equal sums over its worlds and hidden states, whatever way they took."""

import math
import random
import time
from contextlib import ExitStack, contextmanager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csc_array
from scipy.stats import chi2

from lbm.errors import NoAnswer, NoWorlds, TooManyWorlds, UnknownAtom
from lbm.knowledge.formula import FALSE, TRUE, atleast, atom, conjunction, disjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from lbm.reasoning import wells
from lbm.reasoning.landscape import layers, parts
from lbm.reasoning.wells import Wells
from tests.oracles import truth
from tests.strategies import formulae, random_formula, theories

PRECISE = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)


def question(name):
    """Return a question as a function of a machine."""

    def ask(machine, *args, given=None, **numbers):
        return getattr(Wells.of(machine, **numbers), name)(*args, given=given)

    return ask


marginals, probability, draw = map(question, ("marginals", "probability", "draw"))
log_partition, log_probability = question("log_partition"), question("log_probability")

# --- machines ----------------------------------------------------------------------------------------

modest = st.one_of(
    st.integers(-4, 4).filter(bool), st.decimals(-5, 5, allow_nan=False, places=3).filter(bool)
)
extreme = modest | st.sampled_from(
    [Decimal("1e-9"), Decimal("-1e-9"), 10**9, -(10**9), Decimal("12345678.9")]
)
options = st.fixed_dictionaries(
    {
        "confidence": st.sampled_from([5.0, 0.1, 1.0]),
        "temperature": st.sampled_from([1.0, 0.3, 20.0]),
    }
)


def translated(weights):
    """Machines of theories over at most six atoms, four of which occur, by every method and encoding."""
    ways = st.one_of(
        st.fixed_dictionaries(
            {
                "merge": st.booleans(),
                "method": st.sampled_from(["auto", "elimination", "definitions", "full"]),
                "epsilon": st.sampled_from([0.5, 0.1]),
            }
        ),
        st.just({"method": "auto", "budget": 1}),
        st.just({"encoding": "penalty"}),
    )
    some = theories(atoms="abcd", weights=weights, max_statements=4)
    return st.builds(lambda theory, way: translate(theory, **way), some, ways)


@st.composite
def by_hand(draw, numbers):
    """Machines without a theory: any weights, also none, with biases on both layers."""
    visible, hidden = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    numbers = numbers | st.just(0.0)
    return Machine(
        tuple("abcde"[:visible]),
        csc_array(draw(arrays(float, (visible, hidden), elements=numbers))),
        draw(arrays(float, visible, elements=numbers)),
        draw(arrays(float, hidden, elements=numbers)),
    )


@st.composite
def asked(draw, machines):
    """Return a machine with evidence about its atoms, which may be none."""
    machine = draw(machines)
    assume(len(machine.definitions) <= 4)
    return machine, draw(st.none() | questions(machine))


def questions(machine):
    return formulae(machine.declared, max_leaves=6) if machine.declared else st.sampled_from([TRUE, FALSE])


machines = translated(modest) | by_hand(st.floats(-5, 5))
extreme_machines = translated(extreme) | by_hand(
    st.floats(-1e9, 1e9) | st.sampled_from([1e-9, -1e-9, 1e9, -1e9])
)


def random_machine(seed, visible, hidden, density=1.0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(visible, hidden)) * (rng.random((visible, hidden)) < density)
    names = tuple(f"x{i}" for i in range(visible))
    return Machine(names, csc_array(weights), rng.normal(size=visible), rng.normal(size=hidden))


# --- the oracle --------------------------------------------------------------------------------------


class Oracle:
    """Every world with Σ_h exp(-(c/τ) E(x, h)) to 50 digits, from nothing but the machine's numbers."""

    def __init__(self, machine, given=None, confidence=5.0, temperature=1.0):
        self.machine, self.names = machine, machine.declared
        self.scale = Fraction(confidence / temperature)
        weights = machine.weights.tocoo()
        lists = [some.tolist() for some in (*weights.coords, weights.data)]
        self.entries = [(i, j, Fraction(weight)) for i, j, weight in zip(*lists, strict=True)]
        self.biases = [Fraction(bias) for bias in machine.hidden_bias.tolist()]
        self.visible = [Fraction(bias) for bias in machine.visible_bias.tolist()]
        self.worlds, self.weights = [], []
        for values in product([False, True], repeat=len(self.names)):
            world = dict(zip(self.names, values, strict=True))
            if given is None or truth(given, world):
                self.worlds.append(world)
                self.weights.append(self.weigh(self.completed(values)))

    def inputs(self, x):
        """s_j(x), exactly."""
        found = list(self.biases)
        for i, j, weight in self.entries:
            if x[i]:
                found[j] += weight
        return found

    def own(self, x):
        return sum((a for a, value in zip(self.visible, x, strict=True) if value), Fraction(0))

    def completed(self, values):
        """A definition outweighs all that depends on it, so the deepest state has them all right."""
        if not self.machine.definitions:
            return values
        ends = product([0, 1], repeat=len(self.machine.definitions))
        states = [(*map(int, values), *end) for end in ends]
        return max(states, key=lambda x: self.own(x) + sum(max(s, 0) for s in self.inputs(x)))

    def weigh(self, x):
        inputs, own = self.inputs(x), self.own(x)
        if len(inputs) <= 4:  # hidden states one by one
            total = Decimal(0)
            for h in product([0, 1], repeat=len(inputs)):
                deep = own + sum((s for s, on in zip(inputs, h, strict=True) if on), Fraction(0))
                total = PRECISE.add(total, exponential(self.scale * deep))
            return total
        total = exponential(self.scale * own)  # the sum over h, factored
        for s in inputs:
            total = PRECISE.multiply(total, PRECISE.add(Decimal(1), exponential(self.scale * s)))
        return total

    def total(self, keep=lambda _: True):
        found = Decimal(0)
        for world, weight in zip(self.worlds, self.weights, strict=True):
            if keep(world):
                found = PRECISE.add(found, weight)
        return found

    def chance(self, query):
        return float(PRECISE.divide(self.total(lambda world: truth(query, world)), self.total()))

    def log_partition(self):
        return float(PRECISE.ln(self.total()))

    def log_probability(self, number):
        return float(PRECISE.ln(PRECISE.divide(self.weights[number], self.total())))

    @property
    def rounding(self):
        """What F(x) may be off by in floating point, and 1e-9 for the rest."""
        numbers = (self.machine.weights.data, self.machine.hidden_bias, self.machine.visible_bias)
        return 1e-9 + 1e-15 * float(self.scale) * sum(float(np.abs(some).sum()) for some in numbers)


@lru_cache(10_000)
def exponential(number):
    return PRECISE.exp(PRECISE.divide(Decimal(number.numerator), Decimal(number.denominator)))


HOMES = {"BLOCK": layers, "CASE": wells, "FACTORS": layers, "KEPT": layers, "fewer_hidden": parts}
WAYS = {
    "as it comes": {"CASE": wells.CASE},
    "by worlds": {"fewer_hidden": lambda _: False},
    "by hidden states": {"fewer_hidden": lambda _: True},
    "by cases": {"CASE": 0},
    "by small cases in small blocks": {"CASE": 0, "BLOCK": 1, "fewer_hidden": lambda _: False},
    "in small blocks": {"BLOCK": 2, "FACTORS": 2, "KEPT": 3},
    "by hidden states in blocks of one": {"BLOCK": 0, "fewer_hidden": lambda _: True},
}


@contextmanager
def way(name):
    """Answer in one way of several, as large machines have to be."""
    with ExitStack() as stack:
        for what, value in WAYS[name].items():
            stack.enter_context(mock.patch.object(HOMES[what], what, value))
        yield


def in_every_way(law):
    for name in WAYS:
        with way(name):
            law()


# --- laws --------------------------------------------------------------------------------------------


def check_all_answers(asked, options, data):
    machine, e = asked
    oracle = Oracle(machine, e, **options)
    assume(oracle.worlds)
    query = data.draw(questions(machine))
    number = data.draw(st.integers(0, len(oracle.worlds) - 1))
    whole, chance = oracle.log_partition(), oracle.chance(query)
    single = {name: oracle.chance(atom(name)) for name in machine.declared}
    one = oracle.log_probability(number)
    entailed = all(truth(query, world) for world in oracle.worlds)
    refuted = not any(truth(query, world) for world in oracle.worlds)
    near = {"abs": oracle.rounding, "rel": 1e-12}

    def law():
        assert log_partition(machine, given=e, **options) == pytest.approx(whole, **near)
        found = marginals(machine, given=e, **options)
        assert list(found) == list(machine.declared)
        assert found == pytest.approx(single, **near)
        assert all(0 <= value <= 1 for value in found.values())
        found = probability(machine, query, given=e, **options)
        assert found == pytest.approx(chance, **near)
        assert 0 <= found <= 1
        if entailed or refuted:
            assert found == entailed
        found = log_probability(machine, oracle.worlds[number], given=e, **options)
        assert found == pytest.approx(one, **near)
        assert found <= 0

    in_every_way(law)


@given(asked(machines), options, st.data())
def test_answers_equal_sums_over_worlds_and_hidden_states(asked, options, data):
    check_all_answers(asked, options, data)


@given(asked(extreme_machines), options, st.data())
def test_answers_of_weights_from_1e_9_to_1e9_are_right_to_the_last_digits_of_the_free_energy(
    asked, options, data
):
    check_all_answers(asked, options, data)


@given(asked(machines), options, st.data())
def test_a_query_and_its_negation_share_the_whole(asked, options, data):
    machine, e = asked
    query = data.draw(questions(machine))
    assume(e is None or any(truth(e, world) for world in Oracle(machine).worlds))
    pair = [probability(machine, q, given=e, **options) for q in (query, ~query)]
    assert sum(pair) == pytest.approx(1, abs=1e-9)


@given(asked(machines))
def test_evidence_that_no_world_keeps_is_named(asked):
    machine, e = asked
    e = FALSE if e is None else e
    assume(not Oracle(machine, e).worlds)
    world = dict.fromkeys(machine.declared, False)

    def law():
        for question in (
            lambda: log_partition(machine, given=e),
            lambda: marginals(machine, given=e),
            lambda: probability(machine, TRUE, given=e),
            lambda: log_probability(machine, world, given=e),
            lambda: draw(machine, 3, np.random.default_rng(0), given=e),
        ):
            with pytest.raises(NoWorlds) as caught:
                question()
            assert caught.value.evidence is e

    in_every_way(law)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("text", ["(a | b) & (a | ~b) & (~a | b) & (~a | ~b)", "(a <-> b) & (a ^ b)"])
def test_a_contradiction_that_no_single_literal_shows_is_found(name, text):
    machine, e = translate(Theory.parse("a -> b\nc")), parse(text)
    with way(name):
        for question in (
            lambda: probability(machine, parse("c"), given=e),
            lambda: marginals(machine, given=e),
            lambda: draw(machine, 1, np.random.default_rng(0), given=e),
        ):
            with pytest.raises(NoWorlds):
                question()


@given(asked(machines), options)
def test_a_world_that_breaks_the_evidence_has_log_probability_minus_infinity(asked, options):
    machine, e = asked
    allowed = Oracle(machine, e).worlds
    assume(allowed)
    logs = [
        (world in allowed, log_probability(machine, world, given=e, **options))
        for world in Oracle(machine).worlds
    ]
    assert all((log > -math.inf) is kept for kept, log in logs)
    assert math.fsum(math.exp(log) for _, log in logs) == pytest.approx(1, abs=1e-9)


@given(asked(machines), st.integers(0, 20))
def test_every_draw_keeps_the_evidence_and_depends_on_the_generator_alone(asked, n):
    machine, e = asked
    allowed = {tuple(world.values()) for world in Oracle(machine, e).worlds}
    assume(allowed)

    def law():
        found, again = (draw(machine, n, np.random.default_rng(n), given=e) for _ in range(2))
        assert found.shape == (n, len(machine.declared))
        assert found.dtype == bool
        assert {tuple(row) for row in found.tolist()} <= allowed
        assert (found == again).all()

    in_every_way(law)


# --- draws -------------------------------------------------------------------------------------------

DRAWN = [
    (translate(Theory.parse("2: a -> b\n1: b ^ c\nd | a")), None),
    (translate(Theory.parse("2: a -> b\n1: b ^ c\nd | a")), parse("atleast(2, a, b, c) & (a | ~d)")),
    (translate(parse("a ^ b ^ c ^ d"), method="definitions"), parse("a | b")),
    (translate(Theory.parse("a -> b\n3: c & d | a\natoms a, b, c, d, idle"), encoding="penalty"), None),
    (random_machine(1, 5, 3), parse("x0 ^ x1 | x2")),
    (random_machine(2, 4, 0), None),
    (translate(Theory.parse("a -> b\nc -> d")), parse("a ^ d")),
]


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("which", range(len(DRAWN)))
def test_draws_come_as_often_as_their_probability_says(which, name):
    machine, e = DRAWN[which]
    n, confidence = 4000, 1.0
    oracle = Oracle(machine, e, confidence=confidence)
    with way(name):
        rows = draw(machine, n, np.random.default_rng(which), given=e, confidence=confidence)
    seen = {tuple(row): 0 for row in product([False, True], repeat=len(machine.declared))}
    for row in rows.tolist():
        seen[tuple(row)] += 1
    expected = [
        (tuple(w.values()), n * math.exp(oracle.log_probability(i))) for i, w in enumerate(oracle.worlds)
    ]
    large = [(world, number) for world, number in expected if number >= 5]
    cells = [(seen[world], number) for world, number in large]
    rest = n - sum(number for _, number in large)
    if rest > 5:
        cells.append((n - sum(count for count, _ in cells), rest))
    statistic = sum((count - number) ** 2 / number for count, number in cells)
    assert chi2.sf(statistic, len(cells) - 1) > 1e-5


@pytest.mark.parametrize("name", WAYS)
def test_one_draw_tells_nothing_about_the_next(name):
    machine, e = DRAWN[1]
    with way(name):
        rows = draw(machine, 4000, np.random.default_rng(5), given=e, confidence=0.5).astype(float)
    for column in rows.T:
        agreement = np.corrcoef(column[:-1], column[1:])[0, 1]
        assert abs(agreement) < 4 / math.sqrt(len(rows))


# --- machines too large to look at every world -------------------------------------------------------


def test_a_machine_of_many_small_components_is_answered_by_their_product_and_fast():
    parts = ["2: a{0} & b{0} -> c{0}", "1: c{0} ^ d{0}", "b{0} | d{0}"]
    theory = Theory.parse("\n".join(part.format(i) for i in range(10) for part in parts))
    machine = translate(theory)
    one = translate(Theory.parse("\n".join(part.format(0) for part in parts)))
    # W, the weight of a hard formula, is larger where there are more soft ones.
    assert len(machine.declared) == 40
    begin = time.perf_counter()
    found = marginals(machine)
    log = log_partition(machine)
    either = probability(machine, disjunction(atom(f"a{i}") for i in range(10)))
    odd = probability(machine, parse("a0 ^ a1 ^ a2"), given=parse("b0 & (c1 | c2)"))
    rows = draw(machine, 1000, np.random.default_rng(0))
    assert time.perf_counter() - begin < 60  # 2⁴⁰ worlds one by one would take days
    places = [machine.declared.index(f"{letter}0") for letter in "abcd"]
    units = [
        j for j, cube in enumerate(machine.cubes) if all(name.endswith("0") for name, _ in cube.literals)
    ]
    assert len(units) == one.hidden
    single = Machine(
        tuple(machine.declared[i] for i in places),
        csc_array(machine.weights.toarray()[np.ix_(places, units)]),
        np.zeros(4),
        machine.hidden_bias[units],
    )
    oracle = Oracle(single)
    chance = oracle.chance(atom("a0"))
    assert found == pytest.approx(
        {name: oracle.chance(atom(name[0] + "0")) for name in machine.declared}, abs=1e-9
    )
    assert log == pytest.approx(10 * oracle.log_partition(), rel=1e-12)
    assert either == pytest.approx(1 - (1 - chance) ** 10, abs=1e-9)
    assert rows.mean(axis=0) == pytest.approx(list(found.values()), abs=4 * math.sqrt(0.25 / 1000))
    # a1 ^ a2 is true or false with these chances, given c1 | c2:
    a, c, both = (oracle.chance(parse(text)) for text in ("a0", "c0", "a0 & c0"))
    joint = dict.fromkeys([(p, q) for p in (0, 1) for q in (0, 1)], 0.0)
    for (p, q), value in {(1, 1): both, (1, 0): a - both, (0, 1): c - both, (0, 0): 1 - a - c + both}.items():
        joint[p, q] = value
    states = [(x, y) for x in joint for y in joint if x[1] or y[1]]
    below = sum(joint[x] * joint[y] for x, y in states)
    differ = sum(joint[x] * joint[y] for x, y in states if x[0] != y[0]) / below
    first = Oracle(single, parse("b0")).chance(atom("a0"))
    assert odd == pytest.approx(first * (1 - differ) + (1 - first) * differ, abs=1e-9)


def every_world(machine, **options):
    """Return every world as a row, and exp(-F(x)) of each, the largest as 1."""
    size = len(machine.declared)
    x = (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(float)
    depth = -machine.free_energy(x, **options)
    return x, np.exp(depth - depth.max())


@pytest.mark.parametrize(("visible", "hidden"), [(14, 9), (9, 14), (14, 14)])
@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("name", ["by worlds", "by hidden states"])
@pytest.mark.parametrize("case", [0, 1 << 30], ids=["by cases", "world by world"])
def test_either_layer_and_either_way_with_formulae_gives_the_same(visible, hidden, density, name, case):
    machine = random_machine(visible * hidden, visible, hidden, density)
    e, query = parse("x0 ^ x1 ^ x2 | x3 & ~x4"), parse("x5 | x6 & x7")
    x, weights = every_world(machine, temperature=2)
    on = x.astype(bool).T
    kept = on[0] ^ on[1] ^ on[2] | on[3] & ~on[4]
    asked = kept & (on[5] | on[6] & on[7])
    below = weights[kept].sum()
    with way(name), mock.patch.object(wells, "CASE", case):
        found = marginals(machine, given=e, temperature=2)
        chance = probability(machine, query, given=e, temperature=2)
        ratio = log_partition(machine, given=e, temperature=2) - log_partition(machine, temperature=2)
    assert list(found.values()) == pytest.approx((weights[kept] @ x[kept] / below).tolist(), abs=1e-9)
    assert chance == pytest.approx(weights[asked].sum() / below, abs=1e-9)
    assert ratio == pytest.approx(math.log(below / weights.sum()), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_what_follows_from_the_evidence_has_probability_1_and_nothing_less(seed):
    machine = random_machine(seed, 6, 4)
    for query, e in (("x0 & x1 | ~x0 | ~x1", None), ("x1 | x3", "(x0 -> x1) & (x2 -> x3) & (x0 | x2)")):
        for name in WAYS:
            with way(name):
                found = probability(machine, parse(query), given=None if e is None else parse(e))
            assert found == 1.0


def test_worlds_of_several_blocks_are_weighed_as_the_free_energy_says():
    machine = random_machine(0, 15, 20, 0.5)
    x, weights = every_world(machine, confidence=3.0, temperature=2.0)
    deepest = -machine.free_energy(x[weights.argmax()], confidence=3.0, temperature=2.0)
    assert log_partition(machine, confidence=3.0, temperature=2.0) == pytest.approx(
        deepest + math.log(math.fsum(weights)), abs=1e-9
    )
    found = marginals(machine, confidence=3.0, temperature=2.0)
    assert list(found.values()) == pytest.approx((weights @ x / weights.sum()).tolist(), abs=1e-9)


def test_definitional_atoms_are_computed_in_every_block():
    odd = parse(" ^ ".join(f"x{i}" for i in range(15)))
    machine = translate(odd, budget=8)
    assert machine.definitions
    x, weights = every_world(machine)
    kept = x.sum(axis=1) % 2 == 1
    assert probability(machine, odd) == pytest.approx(weights[kept].sum() / weights.sum(), abs=1e-9)
    given = kept & (x[:, 0] == 1)
    expected = weights[given] @ x[given] / weights[given].sum()
    found = marginals(machine, given=odd & atom("x0"))
    assert list(found.values()) == pytest.approx(expected.tolist(), abs=1e-9)


def test_a_formula_of_too_many_cubes_is_looked_up_world_by_world():
    machine = random_machine(3, 14, 6, 0.3)
    odd = parse(" ^ ".join(machine.atoms))  # 8192 cubes
    x, weights = every_world(machine)
    expected = weights[x.sum(axis=1) % 2 == 1].sum() / weights.sum()
    assert probability(machine, odd) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("bias", [0.5, -8.0])
def test_what_ties_two_components_together_is_answered_by_its_negation(bias):
    """Two parities, of 8192 cubes each: 28 atoms cannot be looked at together, but 14 can."""
    names = [f"x{i}" for i in range(28)]
    machine = Machine(tuple(names), csc_array((28, 0)), np.full(28, bias), np.zeros(0))
    first, second = (parse(" ^ ".join(some)) for some in (names[:14], names[14:]))
    false = math.tanh(-5 * bias / 2) ** 14  # the mean of a product of signs is the product of their means
    odd = -math.expm1(14 * math.log1p(-2 / (1 + math.exp(-5 * bias)))) / 2 if bias < 0 else (1 - false) / 2
    assert probability(machine, first | second) == pytest.approx(1 - (1 - odd) ** 2, abs=1e-12)
    assert probability(machine, ~first & ~second) == pytest.approx((1 - odd) ** 2, abs=1e-12)
    with pytest.raises(TooManyWorlds):
        probability(machine, first ^ second)


def test_few_hidden_units_carry_any_number_of_atoms():
    machine = random_machine(4, 300, 8)
    rng = np.random.default_rng(0)
    total = -math.inf
    for h in product([0.0, 1.0], repeat=8):
        inputs = 5.0 * (machine.weights.toarray() @ np.array(h) + machine.visible_bias)
        total = np.logaddexp(total, 5.0 * machine.hidden_bias @ h + np.logaddexp(0, inputs).sum())
    assert log_partition(machine) == pytest.approx(total, rel=1e-12)
    n, found = 2000, marginals(machine, confidence=0.1)
    rows = draw(machine, n, rng, confidence=0.1)
    error = np.sqrt(np.array([p * (1 - p) for p in found.values()]) / n)
    assert (np.abs(rows.mean(axis=0) - list(found.values())) < 4.5 * error + 1 / n).all()
    # What must hold ties 300 atoms together: they cannot be looked at, but cases can.
    some = disjunction(atom(f"x{i}") for i in range(300))
    none = conjunction(~atom(f"x{i}") for i in range(300))
    assert probability(machine, some, confidence=0.01) == pytest.approx(
        1 - probability(machine, none, confidence=0.01), abs=1e-12
    )


def test_what_is_too_large_is_refused_by_name_and_not_in_the_way_of_other_questions():
    heavy = random_machine(5, 30, 30)
    small = translate(parse("a -> b"))
    weights = np.zeros((32, 32))
    weights[:30, :30], weights[30:, 30:] = heavy.weights.toarray(), small.weights.toarray()
    bias = np.concatenate([heavy.hidden_bias, small.hidden_bias])
    machine = Machine((*heavy.atoms, "a", "b"), csc_array(weights), np.zeros(32), bias)
    for question in (
        lambda: log_partition(machine),
        lambda: marginals(machine),
        lambda: probability(machine, parse("x0")),
        lambda: draw(machine, 1, np.random.default_rng(0)),
    ):
        with pytest.raises(TooManyWorlds, match=r"30 free atoms and 30 hidden units|29 free atoms") as caught:
            question()
        assert caught.value.limit == "LIMIT"
    b = parse("b")
    assert probability(machine, b, given=parse("a")) == probability(small, b, given=parse("a"))
    clamped = conjunction(atom(f"x{i}") for i in range(10))
    with mock.patch.object(parts, "LIMIT", 20), mock.patch.object(wells, "LIMIT", 20):
        assert 0 <= probability(machine, parse("x10 & a"), given=clamped) <= 1
    with pytest.raises(TooManyWorlds, match="MAX_CUBES"):
        probability(machine, parse(" ^ ".join(heavy.atoms)))
    with pytest.raises(TooManyWorlds, match="MAX_CUBES"):
        probability(translate(Theory(atoms=heavy.atoms)), atleast(15, *map(atom, heavy.atoms)))


@pytest.mark.parametrize("seed", range(5))
def test_evidence_lets_a_large_component_fall_apart(seed):
    """A chain of 61 atoms: given every tenth, six pieces of nine remain."""
    rng = random.Random(seed)
    theory = Theory([(rng.randint(1, 3), parse(f"x{i} <-> x{i + 1}")) for i in range(60)])
    machine = translate(theory)
    with pytest.raises(TooManyWorlds):
        log_partition(machine)
    known = {i: rng.random() < 0.5 for i in range(0, 61, 10)}
    e = conjunction(atom(f"x{i}") if value else ~atom(f"x{i}") for i, value in known.items())
    found = probability(machine, parse("x5"), given=e)
    assert marginals(machine, given=e)["x5"] == pytest.approx(found, abs=1e-9)
    # By the chain alone: an exchange of sums over its links.
    weights = machine.weights.toarray()

    def link(i, left, right):
        total = 0.0
        for j, cube in enumerate(machine.cubes):
            if {name for name, _ in cube.literals} == {f"x{i}", f"x{i + 1}"}:
                s = weights[i, j] * left + weights[i + 1, j] * right + machine.hidden_bias[j]
                total += math.log1p(math.exp(5 * s))
        return math.exp(total)

    rows = {value: 1.0 if value == known[0] else 0.0 for value in (False, True)}
    sums = []
    for wanted in (False, True):
        now = rows
        for i in range(10):
            now = {right: sum(now[left] * link(i, left, right) for left in now) for right in (False, True)}
            if i == 4:
                now[not wanted] = 0.0
        sums.append(now[known[10]])
    assert found == pytest.approx(sums[1] / sum(sums), abs=1e-9)


def test_hidden_units_without_atoms_and_atoms_without_units_are_no_obstacle():
    empty = Machine((), csc_array(np.zeros((0, 0))), np.zeros(0), np.zeros(0))
    assert log_partition(empty) == 0
    assert marginals(empty) == {}
    assert draw(empty, 3, np.random.default_rng(0)).shape == (3, 0)
    assert probability(empty, TRUE) == 1
    assert log_probability(empty, {}) == 0
    lone = Machine((), csc_array(np.zeros((0, 2))), np.zeros(0), np.array([0.0, 1.0]))
    assert log_partition(lone, confidence=1.0) == pytest.approx(math.log(2) + math.log(1 + math.e))
    idle = Machine(("a", "b"), csc_array(np.zeros((2, 0))), np.array([0.0, 2.0]), np.zeros(0))
    assert marginals(idle, confidence=1.0) == pytest.approx({"a": 0.5, "b": 1 / (1 + math.exp(-2))})
    assert probability(idle, parse("a & b")) == pytest.approx(0.5 / (1 + math.exp(-10)))


def test_weights_written_twice_add_up_and_written_zeros_do_not_join():
    twice = csc_array((np.array([1.0, 2.0, 0.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(2, 1))
    once = csc_array(np.array([[3.0], [0.0]]))
    first, second = (Machine(("a", "b"), some, np.zeros(2), np.array([-1.0])) for some in (twice, once))
    assert marginals(first) == pytest.approx(marginals(second), abs=0)
    assert twice.nnz == 3  # the machine that was asked about is as it was


# --- questions that cannot be answered ---------------------------------------------------------------


def test_names_that_are_no_declared_atoms_are_explained():
    machine = translate(parse("bird -> flies"))
    for question in (
        lambda: probability(machine, parse("brid")),
        lambda: marginals(machine, given=parse("brid & flies")),
        lambda: log_probability(machine, {"brid": True, "flies": True}),
    ):
        with pytest.raises(UnknownAtom, match=r"no atom 'brid' in this machine; did you mean 'bird'\?"):
            question()
    with pytest.raises(UnknownAtom, match="no atom 'flies' in this world"):
        log_probability(machine, {"bird": True})
    defined = translate(parse("a ^ b ^ c ^ d ^ e"), method="definitions")
    with pytest.raises(UnknownAtom):
        probability(defined, atom(defined.definitions[0]))


@pytest.mark.parametrize("option", ["confidence", "temperature"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_confidence_and_temperature_are_positive(option, value):
    machine = translate(parse("a"))
    for question in (
        lambda **options: probability(machine, parse("a"), **options),
        lambda **options: log_partition(machine, **options),
        lambda **options: log_probability(machine, {"a": True}, **options),
        lambda **options: marginals(machine, **options),
        lambda **options: draw(machine, 1, np.random.default_rng(0), **options),
    ):
        with pytest.raises(ValueError, match=f"{option} must be a positive number, got"):
            question(**{option: value})


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308])
def test_numbers_beyond_floating_point_are_refused(value):
    machine = Machine(("a",), csc_array(np.array([[value]])), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="finite weights and biases"):
        log_partition(machine)


def test_what_is_no_formula_or_no_number_of_draws_is_said():
    machine = translate(parse("a"))
    with pytest.raises(TypeError, match=r"the query is a formula, got 'a'"):
        probability(machine, "a")
    with pytest.raises(TypeError, match=r"the evidence is a formula, got 'a'"):
        marginals(machine, given="a")
    with pytest.raises(ValueError, match="number of draws from 0 up, got -1"):
        draw(machine, -1, np.random.default_rng(0))


def test_what_a_huge_weight_gives_to_all_worlds_alike_cancels():
    machine = translate(Theory([(10**16, "a"), ("0.2", "b")]))
    assert probability(machine, parse("b"), given=parse("a")) == pytest.approx(
        probability(translate(Theory([("0.2", "b")])), parse("b")), abs=1e-12
    )
    idle = translate(Theory([(10**18, "a")], atoms=["b"]))
    assert probability(idle, parse("b"), given=parse("a")) == 0.5


def exactly(machine, query, given, scale):
    """P(query | evidence) from the machine's own numbers, as decimals of 200 digits."""
    precise = Context(prec=200, Emin=-(10**6), Emax=10**6)
    dense = machine.weights.toarray()
    logs = {}
    for values in product([False, True], repeat=len(machine.declared)):
        world = dict(zip(machine.declared, values, strict=True))
        if not truth(given, world):
            continue
        x = machine.visible(np.array(values, dtype=float))
        total = Decimal(0)
        for j in range(machine.hidden):
            s = Decimal(float(machine.hidden_bias[j]))
            for i in np.flatnonzero(x).tolist():
                s = precise.add(s, Decimal(float(dense[i, j])))
            s = precise.multiply(s, Decimal(scale))
            big = max(s, Decimal(0))
            total = precise.add(total, big)
            if abs(s) < 300:
                total = precise.add(total, precise.ln(precise.add(1, precise.exp(-abs(s)))))
        logs[values] = total, truth(query, world)
    top = max(log for log, _ in logs.values())
    less = {v: precise.subtract(log, top) for v, (log, _) in logs.items()}
    weights = {v: precise.exp(d) if d > -2000 else Decimal(0) for v, d in less.items()}
    return float(sum(w for v, w in weights.items() if logs[v][1]) / sum(weights.values()))


@pytest.mark.parametrize("largest", [10**7, 10**9, 10**16, 10**30])
@pytest.mark.parametrize("seed", range(6))
def test_machines_of_huge_weights_are_asked_in_exact_arithmetic(seed, largest):
    rng = random.Random(seed)
    soft = [(rng.choice([largest, 1, Decimal("0.3"), -2]), random_formula(rng, 4, 8)) for _ in range(4)]
    theory = Theory(
        [(largest, "x1 -> x2"), *soft, *([random_formula(rng, 4, 6)] * (seed % 2))],
        atoms=["x1", "x2", "x3", "x4"],
    )
    machine = translate(theory)
    query, evidence = random_formula(rng, 4, 6), random_formula(rng, 4, 6)
    if not any(truth(evidence, dict(zip(theory.atoms, v, strict=True))) for v in product([0, 1], repeat=4)):
        evidence = TRUE
    found = probability(machine, query, given=evidence, confidence=2.0, temperature=4.0)
    assert found == pytest.approx(exactly(machine, query, evidence, 0.5), abs=1e-9)
    chances = marginals(machine, given=evidence, confidence=2.0, temperature=4.0)
    for name, chance in chances.items():
        assert chance == pytest.approx(exactly(machine, atom(name), evidence, 0.5), abs=1e-9)
    assert probability(machine, query | ~query, given=evidence) == 1.0
    assert probability(machine, query & ~query, given=evidence) == 0.0


def test_weights_too_large_for_many_atoms_are_refused_and_not_guessed_at():
    names = [f"x{i}" for i in range(18)]
    theory = Theory([(10**20, disjunction(map(atom, names))), *((1, name) for name in names)])
    with pytest.raises(NoAnswer, match="smaller confidence"):
        probability(translate(theory), parse("x0 & x1"))
