"""Compiled chains on free energies are the plain ones of the same words, keep their law, and reach it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

from lbm.errors import WeightError
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from lbm.reasoning.compiling import ready
from lbm.reasoning.engine import energy, energy_kernels, energy_plain
from lbm.reasoning.engine.energy import REFRESH, advance_energy, energies_of, start_energy
from lbm.reasoning.engine.lanes import RULES, random_states
from lbm.reasoning.engine.streams import uniforms
from tests.reference.chains import sweep
from tests.reference.streams import words
from tests.reference.targets import FreeEnergyTarget
from tests.strategies import theories, within_reach

SEED = 91
modest = st.integers(-20, 20).filter(bool) | st.decimals(-5, 5, allow_nan=False, places=3).filter(bool)
any_rule = st.sampled_from(sorted(RULES))


# --- the plain dynamics ----------------------------------------------------------------------------


class Words:
    """What the plain dynamics take for a generator: the words of a block of chains, sweep by sweep."""

    def __init__(self, lane=0, number=0):
        self.lane, self.number = lane, number

    def random(self, shape):
        self.number += 1
        chains = range(self.lane, self.lane + shape[1])
        return uniforms(words(SEED, self.number - 1, range(shape[0]), chains))


class Exactly(FreeEnergyTarget):
    """The plain target, the terms of its odds summed without rounding: a tie is exactly 0.

    ``closest`` is the least |odds| met, ties left out where no unit tells the two values apart.
    """

    closest = math.inf

    def odds(self, i, x):
        k, machine = self.confidence / self.temperature, self.machine
        rows = []
        for value in (True, False):
            world = x.copy()
            world[i] = value
            full = machine.visible(world.T)
            inputs = full @ machine.weights + machine.hidden_bias
            rows.append(
                np.concatenate([np.logaddexp(0.0, k * inputs), k * full * machine.visible_bias], axis=1)
            )
        terms = rows[0] - rows[1]
        found = np.array([math.fsum(lane) for lane in terms])
        near = np.abs(found[(terms != 0).any(axis=1)])
        object.__setattr__(self, "closest", min(self.closest, near.min(initial=math.inf)))
        return found


def plain(target, x, sweeps, rule="heat bath", beta=1.0, **options):
    rng = Words()
    for _ in range(sweeps):
        x = sweep(target, x, rng, rule=rule, beta=beta, **options)
    return x


def check_consistent(lanes, relative=1e-12):
    """Assert that what lanes carry along is what their states say."""
    network = lanes.network
    fresh = start_energy(network, lanes.x, seed=SEED)
    np.testing.assert_array_equal(lanes.visible, fresh.visible)
    np.testing.assert_array_equal(lanes.lacks, fresh.lacks)
    np.testing.assert_allclose(lanes.inputs, fresh.inputs, rtol=relative, atol=1e-9)
    target = FreeEnergyTarget(network.machine, network.confidence, network.temperature)
    expected = target.log_weight(lanes.x)
    np.testing.assert_allclose(lanes.log_weight, expected, rtol=relative, atol=1e-9)


def check_same(machine, confidence, temperature, rule, *, sweeps=3, beta=1.0, clear=None):
    """Assert that the compiled chain is the plain one.

    ``clear`` gets whether no odds were so near 0 that rounding makes or breaks a tie.
    """
    network = energies_of(machine, confidence, temperature)
    x = random_states(network.atoms, SEED)
    target = Exactly(machine, confidence, temperature)
    expected = plain(target, x, sweeps, rule, beta)
    if clear is not None:
        weight = np.abs(machine.weights.data).max(initial=1.0)
        clear(target.closest > 1e-13 * max(10.0, weight * confidence / temperature))
    lanes = start_energy(network, x, seed=SEED)
    assert advance_energy(lanes, np.full(sweeps, beta), rule=rule) == sweeps == lanes.sweep
    np.testing.assert_array_equal(lanes.x, expected)
    check_consistent(lanes)


# --- the same chain --------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    theories(weights=modest),
    st.sampled_from(["auto", "definitions"]),
    st.sampled_from([0.25, 0.5, 0.9]),
    st.sampled_from([(5.0, 1.0), (0.5, 1.0), (2.0, 3.0)]),
    st.sampled_from([0.0, 0.3, 1.0, 1e6]),
)
def test_heat_bath_is_the_plain_chain_of_any_theory(theory, method, epsilon, scale, beta):
    machine = within_reach(lambda: translate(theory, method=method, epsilon=epsilon))
    check_same(machine, *scale, "heat bath", beta=beta, clear=assume if beta > 1 else None)


@settings(max_examples=20)
@given(
    theories(weights=st.sampled_from([1, 2, 3, -1])),
    st.sampled_from(["auto", "definitions"]),
    st.sampled_from([(1.0, 1.0), (0.5, 1.0), (2.0, 3.0)]),
)
def test_metropolis_is_the_plain_chain_of_any_theory(theory, method, scale):
    machine = within_reach(lambda: translate(theory, method=method))
    check_same(machine, *scale, "metropolis", clear=assume)


DEFINED = [
    "1: (a & b) ^ (c & d)\n-0.5: (a | b) & (c | d)\n0.4: b",
    "a ^ (b & c) ^ (d & e) ^ (a | d)\n2: (a & b & c) <-> (d | e & ~a)",
    "exactly(1, a & b, c | d, ~(e & a))\n0.7: e\n-1: c ^ d",
]


def chained(length):
    """Return a theory whose definitions mention one another, each the one before."""
    text = "x0"
    for i in range(1, length):
        text = f"({text} & x{i} ^ y{i})"
    return f"2: {text}\n0.3: x0 & y1"


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("text", [*DEFINED, chained(6)])
def test_definitional_atoms_are_computed_as_the_plain_chain_does(text, rule):
    machine = translate(Theory.parse(text), method="definitions")
    assert machine.definitions
    network = energies_of(machine)
    assert any(network.wires.use[i] < network.wires.use[i + 1] for i in range(network.atoms))
    check_same(machine, 0.7, 1.0, rule, sweeps=8)


def test_definitions_do_mention_one_another_in_these_tests():
    network = energies_of(translate(Theory.parse(chained(6)), method="definitions"))
    declared = network.atoms
    assert np.diff(network.wires.use)[declared:].sum() >= 3


def trained(text):
    """Return a machine with definitions, biases, and weights of which those of every second unit differ."""
    machine = translate(Theory.parse(text), method="definitions")
    rng = np.random.default_rng(4)
    weights = machine.weights.copy()
    unit = np.repeat(np.arange(machine.hidden), np.diff(weights.indptr))
    weights.data = weights.data * np.where(unit % 2, 1.0, rng.uniform(0.9, 1.1, len(unit)))
    return replace(machine, weights=weights, visible_bias=rng.normal(size=len(machine.atoms)))


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("text", DEFINED)
def test_trained_machines_with_definitions_give_the_plain_chain(text, rule):
    machine = trained(text)
    source = energies_of(machine).wires.source
    assert (source < 0).any()  # definitions hold where summed units say so, or counted ones
    check_same(machine, 0.7, 1.0, rule, sweeps=8)


def by_hand(seed, atoms, hidden, scale, filled=0.7):
    """Return a machine of weights and biases of any sign; one unit meets no atom, and one weight is 0."""
    rng = np.random.default_rng(seed)
    weights = scale * rng.normal(size=(atoms, hidden)) * (rng.random((atoms, hidden)) < filled)
    weights[:, 0] = 0.0
    sparse = csc_array(weights)
    sparse.data[-1] = 0.0
    names = tuple(f"v{i}" for i in range(atoms))
    return Machine(names, sparse, scale * rng.normal(size=atoms), scale * rng.normal(size=hidden))


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("scale", [1e-9, 0.3, 10.0, 150.0, 1e3, 1e6, 1e17])
def test_machines_made_by_hand_give_the_plain_chain(scale, rule):
    check_same(by_hand(1, 7, 40, scale), 1.0, 1.0, rule)


def test_products_that_would_overflow_are_folded_in_time():
    """Five thousand units on each atom, of weights from small ones to steep ones, most of them near 0."""
    rng = np.random.default_rng(2)
    weights = np.concatenate([rng.normal(size=(3, 4000)), rng.uniform(200, 400, (3, 1000))], axis=1)
    machine = Machine(tuple("abc"), csc_array(weights), np.zeros(3), -weights.sum(axis=0) / 2)
    check_same(machine, 1.0, 1.0, "heat bath", sweeps=1)
    # A definition, t ↔ a, makes all of them change with a: then the two exponentials are multiplied up.
    bias = np.append(machine.hidden_bias, [-3e5, 1e5])
    weights = np.concatenate([weights, np.zeros((1, 5000))])
    weights = np.concatenate([weights, 2e5 * np.array([[1, -1], [0, 0], [0, 0], [1, -1]])], axis=1)
    units = np.array([5000, 5001])
    tied = Machine(
        tuple("abct"), csc_array(weights), np.zeros(4), bias, owner=0 * units, unit=units, definitions=("t",)
    )
    check_same(tied, 1.0, 1.0, "heat bath", sweeps=1)


def test_many_units_with_one_table_are_counted_in_several_runs():
    """Three hundred cubes of one weight meet atom a: a signed byte holds 127 of them."""
    signs = np.ones((3, 300))
    signs[1, ::2], signs[2, ::3], signs[0, ::7] = -1, 0, -1
    machine = Machine(
        tuple("abc"), csc_array(0.01 * signs), np.zeros(3), 0.01 * (0.5 - (signs > 0).sum(axis=0))
    )
    network = energies_of(machine)
    assert len(network.sum_bias) == 0
    assert network.wires.runs[1] == 3
    for rule in RULES:
        check_same(machine, 5.0, 1.0, rule)


def test_cubes_too_wide_to_be_counted_are_summed():
    names = [f"x{i}" for i in range(20)]
    machine = translate(Theory.parse(f"2: {' & '.join(names)}\n1: {' | '.join(names)}"))
    network = energies_of(machine)
    assert len(network.sum_bias) == 4 + 1  # the clause's cubes of 17 to 20 literals, and the conjunction
    check_same(machine, 1.0, 1.0, "heat bath")


def test_weights_of_a_million_stay_finite_and_give_the_plain_chain():
    machine = translate(
        Theory.parse("1000000: a -> b\n999999: b -> ~c\n1: c | d\n1000000: a ^ d\n0.001: a & c")
    )
    for confidence in (5.0, 1e-6):
        check_same(machine, confidence, 1.0, "heat bath", sweeps=6)
    lanes = start_energy(energies_of(machine, 1e6), random_states(4, SEED), seed=SEED)
    with np.errstate(all="raise"):
        advance_energy(lanes, np.geomspace(1e-12, 1e6, 40))
    assert np.isfinite(lanes.log_weight).all()


@pytest.mark.parametrize(
    "machine",
    [
        Machine((), csc_array((0, 0)), np.zeros(0), np.zeros(0)),
        Machine(("a",), csc_array((1, 0)), np.array([0.5]), np.zeros(0)),
        Machine(("a",), csc_array([[1.5]]), np.zeros(1), np.array([-1.0])),
        Machine((), csc_array((0, 2)), np.zeros(0), np.array([1.0, -1.0])),
    ],
    ids=["nothing", "a bias alone", "one atom", "units alone"],
)
def test_the_smallest_machines_give_the_plain_chain(machine):
    for rule in RULES:
        check_same(machine, 1.0, 1.0, rule)


# --- how it is called ------------------------------------------------------------------------------


def named(definitions):
    return translate(Theory.parse(DEFINED[0]), method="definitions" if definitions else "auto")


def mixed(seed=0):
    """Return a machine with counted units and summed ones."""
    made = translate(Theory.parse("1: a | b | ~c\n2: b -> d & e\n0.7: c ^ e"))
    dense = by_hand(seed, 5, 6, 0.5)
    weights = csc_array(np.concatenate([made.weights.toarray(), dense.weights.toarray()], axis=1))
    return Machine(made.atoms, weights, dense.visible_bias, np.append(made.hidden_bias, dense.hidden_bias))


@pytest.mark.parametrize("machine", [named(True), mixed()], ids=["definitions", "mixed"])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_chain_is_the_same_in_one_call_or_many_whatever_their_lengths(machine, rule, monkeypatch):
    network = energies_of(machine, 1.0)
    x = random_states(network.atoms, SEED)
    betas = np.geomspace(0.1, 2.0, REFRESH + 40)
    results = []
    for calls, first in [([REFRESH + 40], 20_000), ([1, 254, 3, 38], 20_000), ([REFRESH + 40], 5)]:
        monkeypatch.setattr(energy, "FIRST", first)  # 5: a sweep is cut into pieces at first
        lanes = start_energy(network, x, seed=SEED)
        begin = 0
        for size in calls:
            part = betas[begin : begin + size]
            advance_energy(lanes, part, rule=rule, every=7 if len(calls) > 1 else None)
            begin += size
        results.append((lanes.x, lanes.log_weight))
        assert lanes.sweep == len(betas)
    for states, weights in results[1:]:
        np.testing.assert_array_equal(states, results[0][0])
        np.testing.assert_array_equal(weights, results[0][1])  # to the last bit: sums are made in one order


def test_rounding_does_not_pile_up_over_thousands_of_sweeps():
    machine = by_hand(5, 6, 12, 0.3)
    machine = replace(machine, weights=machine.weights * 1e3, hidden_bias=machine.hidden_bias + 0.1)
    lanes = start_energy(energies_of(machine, 1e-3), random_states(6, SEED), seed=SEED)
    advance_energy(lanes, np.ones(4 * REFRESH))
    check_consistent(lanes, relative=1e-13)
    lanes.inputs += 1.0  # somebody's mistake, gone at the next multiple
    advance_energy(lanes, np.ones(1))
    check_consistent(lanes, relative=1e-13)


@pytest.mark.parametrize("machine", [named(True), mixed()], ids=["definitions", "mixed"])
def test_lanes_have_the_words_of_their_own_chains_and_sweeps(machine):
    network = energies_of(machine, 1.0)
    x = random_states(network.atoms, SEED, lane=640)
    lanes = start_energy(network, x, seed=SEED, lane=640, sweep=11)
    advance_energy(lanes, [1.0, 1.0])
    expected, rng = x, Words(640, 11)
    for _ in range(2):
        expected = sweep(Exactly(machine, 1.0), expected, rng)
    np.testing.assert_array_equal(lanes.x, expected)


@pytest.mark.parametrize("machine", [named(True), mixed()], ids=["definitions", "mixed"])
def test_atoms_are_updated_in_the_order_given_and_the_others_stay(machine):
    network = energies_of(machine, 1.0)
    x = random_states(network.atoms, SEED)
    lanes = start_energy(network, x, seed=SEED)
    advance_energy(lanes, np.ones(5), order=[3, 0, 2])
    np.testing.assert_array_equal(lanes.x, plain(Exactly(machine, 1.0), x, 5, order=[3, 0, 2]))
    np.testing.assert_array_equal(lanes.x[1], x[1])
    advance_energy(lanes, np.ones(2), order=np.zeros(0, np.int32))
    assert lanes.sweep == 7


def test_every_lane_may_have_its_own_temperature():
    machine = named(True)
    network = energies_of(machine, 1.0)
    x = random_states(network.atoms, SEED)
    betas = np.geomspace(0.01, 10.0, 64)
    lanes = start_energy(network, x, seed=SEED)
    advance_energy(lanes, np.tile(betas, (3, 1)))
    np.testing.assert_array_equal(lanes.x, plain(Exactly(machine, 1.0), x, 3, beta=betas))


def test_states_that_are_given_are_not_written_to():
    x = np.zeros((4, 64), np.uint8)
    lanes = start_energy(energies_of(named(False)), x, seed=SEED)
    advance_energy(lanes, np.ones(5))
    assert lanes.x.any()
    assert not x.any()


def test_errors_say_what_was_expected():
    network = energies_of(named(False))
    x = random_states(4, SEED)
    with pytest.raises(ValueError, match=r"shape \(4, 64\), got shape \(4, 3\)"):
        start_energy(network, x[:, :3], seed=SEED)
    with pytest.raises(ValueError, match="seed from 0"):
        start_energy(network, x, seed=-1)
    with pytest.raises(ValueError, match="'heat bath' or 'metropolis', got 'cold'"):
        advance_energy(start_energy(network, x, seed=SEED), [1.0], rule="cold")
    for order in ([0, 4], [-1]):
        with pytest.raises(ValueError, match="declared atoms, from 0 to 3, got"):
            advance_energy(start_energy(network, x, seed=SEED), [1.0], order=order)
    for wrong in ({"confidence": 0.0}, {"temperature": math.inf}, {"confidence": math.nan}):
        with pytest.raises(ValueError, match="must be a positive number"):
            energies_of(named(False), **wrong)
    for data in (1e306, math.inf, math.nan):
        with pytest.raises(WeightError, match="finite"):
            energies_of(Machine(("a",), csc_array([[data]]), np.zeros(1), np.zeros(1)))
    machine = translate(Theory.parse(chained(4)), method="definitions")
    assert len(machine.definitions) > 1
    last = len(machine.definitions) - 1
    turned = np.where(
        machine.owner < machine.formulae, machine.owner, 2 * machine.formulae + last - machine.owner
    )
    order = [*range(len(machine.declared)), *range(len(machine.atoms) - 1, len(machine.declared) - 1, -1)]
    backwards = replace(machine, weights=csc_array(machine.weights[order]), owner=turned)
    with pytest.raises(ValueError, match="mention earlier ones only"):
        energies_of(backwards)


# --- the distribution ------------------------------------------------------------------------------


def every_world(atoms):
    return (np.arange(1 << atoms) >> np.arange(atoms)[:, None] & 1).astype(bool)


def chances_of(machine, k):
    """Return P of every world of the declared atoms; their definitions are those of least rank energy."""
    x = every_world(len(machine.atoms)).astype(float)
    inputs = machine.weights.toarray().T @ x + machine.hidden_bias[:, None]
    logs = k * machine.visible_bias @ x + np.logaddexp(0.0, k * inputs).sum(axis=0)
    if machine.definitions:
        depth = np.maximum(inputs, 0).sum(axis=0).reshape(-1, 1 << len(machine.declared))
        logs = logs[np.argmax(depth, axis=0) * depth.shape[1] + np.arange(depth.shape[1])]
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def check_worlds(x, chances):
    """Assert that every world and every atom is as frequent as it should, within four standard errors."""
    atoms, lanes = x.shape
    found = np.bincount((1 << np.arange(atoms)) @ x, minlength=1 << atoms) / lanes
    for seen, expected in ((found, chances), (x.mean(axis=1), every_world(atoms) @ chances)):
        # 1/lanes inside the root: the normal law says nothing about a world that is expected less than once
        error = np.sqrt((expected * (1 - expected) + 1 / lanes) / lanes)
        assert (np.abs(seen - expected) <= 4 * error).all(), (seen, expected)


MACHINES = {
    "hard": (translate(Theory.parse("a | b | d\na ^ c ^ e\n~(b & e)")), 1.5),
    "soft": (translate(Theory.parse("0.8: a -> b\n1.2: b | c\n0.5: a ^ c\n0.3: exactly(1, b, c, d)")), 3.0),
    "defined": (translate(Theory.parse(DEFINED[0]), method="definitions"), 2.0),
    "by hand": (by_hand(3, 4, 6, 1.0), 1.2),
    "mixed": (mixed(), 1.0),
}


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("name", MACHINES)
def test_chains_started_at_the_exact_distribution_stay_there(name, rule):
    machine, k = MACHINES[name]
    chances, network = chances_of(machine, k), energies_of(machine, k)
    begin = every_world(network.atoms)[:, np.random.default_rng(1).choice(len(chances), 64 * 100, p=chances)]
    ends = []
    for block in range(100):
        lanes = start_energy(network, begin[:, 64 * block : 64 * block + 64], seed=SEED, lane=64 * block)
        advance_energy(lanes, np.ones(4), rule=rule)
        ends.append(lanes.x)
    x = np.concatenate(ends, axis=1).astype(bool)
    assert (x != begin).any()
    check_worlds(x, chances)


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("name", MACHINES)
def test_chains_reach_the_exact_distribution_from_the_all_false_world_in_a_hundred_sweeps(name, rule):
    machine, k = MACHINES[name]
    network = energies_of(machine, k)
    ends = []
    for block in range(40):
        lanes = start_energy(network, np.zeros((network.atoms, 64)), seed=SEED, lane=64 * block)
        advance_energy(lanes, np.ones(100), rule=rule)
        ends.append(lanes.x)
    check_worlds(np.concatenate(ends, axis=1).astype(bool), chances_of(machine, k))


def balanced():
    """Return a machine with t ↔ a ∧ b, and states in which t agrees with one atom of each pair."""
    atoms = ("a", "b", "d", "e", "f", "g", "h", "i", "t")
    cubes = [(3.0, {"t": 1, "a": 1, "b": 1}), (3.0, {"t": -1, "a": -1}), (3.0, {"t": -1, "a": 1, "b": -1})]
    for weight, pair in ((0.7, "de"), (0.3, "fg"), (1.1, "hi")):
        cubes += [(weight, {"t": sign, other: sign}) for other in pair for sign in (1, -1)]
    weights = np.array([[w * cube.get(name, 0) for w, cube in cubes] for name in atoms])
    bias = np.array([w * (0.5 - sum(sign > 0 for sign in cube.values())) for w, cube in cubes])
    units = np.arange(3)
    machine = Machine(
        atoms, csc_array(weights), np.zeros(9), bias, owner=0 * units, unit=units, definitions=("t",)
    )
    return machine, np.array([[name in "bdfh"] * 64 for name in machine.declared])


def test_metropolis_flips_at_a_tie_half_of_the_time():
    """It would else alternate for ever: an atom that weighs nothing; wells that cancel but for rounding."""
    idle = translate(Theory.parse("atoms a, b, c\n1: b <-> c"))
    for machine, x in ((idle, np.zeros((3, 64))), balanced()):
        lanes = start_energy(energies_of(machine, 1.7), x, seed=SEED)
        seen = [lanes.x[0].copy()]
        for _ in range(100):
            advance_energy(lanes, [1.0], rule="metropolis", order=[0])
            seen.append(lanes.x[0].copy())
        stayed = np.mean(np.array(seen[1:]) == np.array(seen[:-1]))
        assert abs(stayed - 0.5) < 4 * 0.5 / np.sqrt(6400)


# --- arithmetic, and the kernels as plain Python -----------------------------------------------------


@pytest.fixture
def in_python(monkeypatch):
    """Let kernels run without numba: places on the stack and the bits of numbers are arrays like others."""
    monkeypatch.setattr(energy_kernels, "stack", lambda like, size: like.dtype)
    monkeypatch.setattr(energy_kernels, "carray", lambda kind, shape: np.zeros(shape, kind))
    monkeypatch.setattr(energy_kernels, "as_float", lambda bits: np.int64(bits).view(np.float64))
    monkeypatch.setattr(energy_kernels, "as_bits", lambda value: np.float64(value).view(np.int64))
    for name in (
        "decay",
        "log_of_one_and",
        "fold",
        "weigh_counts",
        "weigh_sums",
        "spread",
        "weigh_far",
        "move_far",
        "run",
    ):
        monkeypatch.setattr(energy_kernels, name, getattr(energy_kernels, name).py_func)


def check_arithmetic():
    rng = np.random.default_rng(0)
    a = np.concatenate(
        [[0.0, 1e-300, 0.3465, 0.3466, 700.0], rng.uniform(0, 2, 300), rng.uniform(0, 700, 300)]
    )
    for value in a.tolist():
        assert energy_kernels.decay(np.float64(value)) == pytest.approx(math.exp(-value), rel=1e-15, abs=0.0)
    assert energy_kernels.decay(np.float64(1e300)) == energy_kernels.decay(np.float64(700.0)) < 1e-300
    v = np.concatenate([[0.0, 1e-300, 1e-17, 0.4142, 0.4143, 1.0, 1e300], 10.0 ** rng.uniform(-20, 280, 600)])
    for value in v.tolist():
        assert energy_kernels.log_of_one_and(np.float64(value)) == pytest.approx(
            math.log1p(value), rel=1e-15, abs=0.0
        )


def test_exponentials_and_logarithms_are_right_to_fifteen_digits():
    check_arithmetic()


def test_they_are_as_right_in_python(in_python):
    check_arithmetic()


@pytest.mark.parametrize(
    "machine",
    [trained(DEFINED[2]), mixed(), by_hand(2, 3, 8, 250.0)],
    ids=["definitions", "mixed", "steep"],
)
def test_kernels_do_the_same_in_python(machine, request):
    network = energies_of(machine, 1.0)
    x = random_states(network.atoms, SEED)
    ends = []
    for python in (False, True):
        if python:
            request.getfixturevalue("in_python")
        for rule in RULES:
            lanes = start_energy(network, x, seed=SEED)
            with np.errstate(over="ignore"):
                advance_energy(lanes, [1.0, 0.5], rule=rule)
            ends.append(lanes)
            check_consistent(lanes)
    for first, second in zip(ends[:2], ends[2:], strict=True):
        np.testing.assert_array_equal(first.x, second.x)


TWINS = {
    **MACHINES,
    "definitions": (trained(DEFINED[2]), 1.0),
    "steep": (by_hand(2, 3, 8, 250.0), 1.0),
    "wide": (by_hand(5, 9, 40, 2.0), 1.0),
}


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("name", TWINS)
def test_numpy_and_kernels_make_the_same_bits(name, rule, monkeypatch):
    """And either goes on where the other stopped."""
    machine, k = TWINS[name]
    network = energies_of(machine, k)
    betas = [*np.linspace(0.1, 1.5, 6), *[1.0] * 6]
    ends = []
    for modules in ((energy_kernels,), (energy_plain,), (energy_plain, energy_kernels)):
        turns = iter(range(100))
        monkeypatch.setattr(energy, "_loops", lambda: modules[next(turns) % len(modules)])  # noqa: B023
        lanes = start_energy(network, random_states(network.atoms, SEED), seed=SEED, lane=64, sweep=250)
        advance_energy(lanes, betas, rule=rule, every=2)
        advance_energy(lanes, np.linspace(0, 2, 128).reshape(2, 64), rule=rule, every=1)
        ends.append((lanes.visible, lanes.lacks, lanes.inputs, lanes.log_weight))
    for other in ends[1:]:
        for one, expected in zip(other, ends[0], strict=True):
            np.testing.assert_array_equal(one, expected)


def test_while_kernels_are_compiled_chains_on_energies_run_in_numpy(monkeypatch):
    asked = []
    monkeypatch.setattr(ready, "is_warm", asked.append)
    monkeypatch.setattr(ready, "warm_aside", lambda: asked.append("aside"))
    assert energy._loops() is energy_plain
    assert asked == ["energy", "aside"]
