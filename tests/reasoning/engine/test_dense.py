"""Block Gibbs in single precision follows the plain step, number by number, and keeps the distribution."""

import math

import numpy as np
import pytest
from scipy.sparse import csc_array

from lbm.machine.rbm import Machine
from lbm.reasoning.engine import dense, dense_kernels
from lbm.reasoning.engine.dense import HIDDEN, VISIBLE, gibbs, settle, settle_plainly
from lbm.reasoning.engine.streams import key_of, seed_from, uniforms
from lbm.reasoning.sampling.machines import gibbs_step
from tests.reference.streams import words

SHAPES = [(1, 1), (3, 5), (30, 10), (7, 66)]


def machine_of(visible, hidden, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    names = tuple(f"v{i}" for i in range(visible))
    weights = scale * rng.normal(size=(visible, hidden))
    return Machine(
        names, csc_array(weights), scale * rng.normal(size=visible), scale * rng.normal(size=hidden)
    )


def parts(machine, k=1.0):
    return k * machine.weights.toarray(), k * machine.visible_bias, k * machine.hidden_bias


class Words:
    """What the plain step takes for a generator: the numbers of one call, step by step."""

    def __init__(self, seed):
        self.seed, self.calls = seed_from(np.random.default_rng(seed)), 0

    def random(self, shape):
        step, stream = divmod(self.calls, 2)
        self.calls += 1
        return uniforms(
            words(self.seed, step, range(shape[0]), range(shape[1]), stream=(HIDDEN, VISIBLE)[stream])
        )


# --- the law of one step ---------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 64, 150])
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_the_plain_ones_of_the_same_numbers(shape, lanes):
    """Single precision may turn a decision that a number misses by 1e-6: none of these is so near."""
    machine = machine_of(*shape, scale=0.8)
    x = np.random.default_rng(1).integers(0, 2, (shape[0], lanes))
    expected, rng = x, Words(5)
    for _ in range(4):
        expected = gibbs_step(machine, expected, rng, confidence=1.5, temperature=2.0)
    found = gibbs(*parts(machine, 0.75), x, 4, np.random.default_rng(5))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


def test_every_input_gives_the_value_that_its_number_says():
    """Log-odds from -40 to 40: a unit is on where u < σ(z), to 1e-6 of the lesser probability."""
    z = np.linspace(-40, 40, 3001, dtype=np.float32)[:, None].repeat(200, axis=1)
    bias = np.linspace(1, -1, 3001, dtype=np.float32)
    u = uniforms(words(9, 4, range(3001), range(200), stream=VISIBLE))
    y = z.astype(np.float64) + bias[:, None]
    settle(z, bias, *key_of(9), 4, VISIBLE)
    rare = 1 / (1 + np.exp(np.abs(y)))
    v = np.where(y > 0, 1 - u, u)
    clear = np.abs(v - rare) > 3e-6 * rare
    assert clear.mean() > 0.9999
    expected = (y > 0) ^ (v < rare)
    np.testing.assert_array_equal(expected, u < 1 / (1 + np.exp(-y)))
    np.testing.assert_array_equal(z[clear], expected[clear])
    assert set(np.unique(z)) == {0.0, 1.0}


@pytest.mark.parametrize("on", [0.0, 1.0])
def test_values_of_probability_a_sixteen_millionth_are_as_rare_as_that(on):
    z = np.empty((400, 64 * 200), np.float32)
    count = 0
    for step in range(10):
        z[:] = (2 * on - 1) * math.log(2.0**24 - 1)
        settle(z, np.zeros(400, np.float32), *key_of(6), step, HIDDEN)
        count += int((z != on).sum())
    expected = 10 * z.size * 2.0**-24
    assert abs(count - expected) <= 4 * math.sqrt(expected)


def test_inputs_past_any_number_are_certain():
    z = np.array([[3e38, -3e38, np.inf, -np.inf, 100.0, -100.0, 61.0, -61.0] * 500], np.float32)
    settle(z, np.zeros(1, np.float32), *key_of(1), 0, HIDDEN)
    assert (z == [[1, 0, 1, 0, 1, 0, 1, 0] * 500]).all()


# --- the distribution ------------------------------------------------------------------------------


def every_world(atoms):
    return (np.arange(1 << atoms) >> np.arange(atoms)[:, None] & 1).astype(float)


def chances_of(machine):
    weights, a, b = parts(machine)
    x = every_world(len(a))
    logs = a @ x + np.logaddexp(0.0, weights.T @ x + b[:, None]).sum(axis=0)
    return np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()


def check_worlds(x, chances):
    atoms, lanes = x.shape
    found = np.bincount(((1 << np.arange(atoms)) @ x).astype(int), minlength=1 << atoms) / lanes
    for seen, expected in ((found, chances), (x.mean(axis=1), every_world(atoms) @ chances)):
        error = np.sqrt((expected * (1 - expected) + 1 / lanes) / lanes)
        assert (np.abs(seen - expected) <= 4 * error).all(), (seen, expected)


@pytest.mark.parametrize("seed", range(3))
def test_chains_started_at_the_exact_distribution_stay_there(seed):
    machine = machine_of(5, 8, seed=seed)
    chances = chances_of(machine)
    rng = np.random.default_rng(seed)
    begin = every_world(5)[:, rng.choice(32, 40_000, p=chances)]
    x = gibbs(*parts(machine), begin, 3, rng)
    assert (x != begin).any()
    check_worlds(x, chances)


def test_chains_reach_the_exact_distribution_from_the_all_false_world_in_two_hundred_steps():
    machine = machine_of(5, 8, scale=0.6)
    x = gibbs(*parts(machine), np.zeros((5, 20_000)), 200, np.random.default_rng(2))
    check_worlds(x, chances_of(machine))


def test_one_step_from_fractions_has_the_law_of_the_equations():
    """From all 0.5: Σ_h p(h | x) p(x' | h) over all hidden states."""
    machine = machine_of(4, 6, seed=3)
    weights, a, b = parts(machine)
    sigma = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    hidden, every = every_world(6), every_world(4)
    on = sigma(0.5 * weights.sum(axis=0) + b)[:, None]
    chance = np.where(hidden == 1, on, 1 - on).prod(axis=0)
    up = sigma(weights @ hidden + a[:, None])
    expected = sum(
        p * np.where(every == 1, u[:, None], 1 - u[:, None]).prod(axis=0)
        for p, u in zip(chance, up.T, strict=True)
    )
    check_worlds(gibbs(weights, a, b, np.full((4, 40_000), 0.5), 1, np.random.default_rng(0)), expected)


# --- how it is called ------------------------------------------------------------------------------


def test_clamped_units_never_move_and_the_others_follow_the_conditional_distribution():
    machine = machine_of(4, 5, scale=0.7)
    half = np.arange(20_000) % 2
    clamped = ([1, 2], np.stack([half, np.ones(20_000)]))
    x = gibbs(*parts(machine), np.zeros((4, 20_000)), 100, np.random.default_rng(1), clamped=clamped)
    assert (x[1] == half).all()
    assert x[2].all()
    chances, every = chances_of(machine), every_world(4)
    for value in (0, 1):
        allowed = chances * (every[1] == value) * every[2]
        check_worlds(x[:, half == value], allowed / allowed.sum())
    start = np.zeros((4, 9))
    same = [
        gibbs(*parts(machine), start, 2, np.random.default_rng(1), clamped=c)
        for c in ({2: 1, 0: 0}, ([2, 0], [1, 0]))
    ]
    np.testing.assert_array_equal(*same)
    assert same[0][2].all()
    assert not start.any()


def test_no_step_gives_the_start_with_clamped_units_set():
    machine = machine_of(3, 2)
    x = np.array([[0.0, 1.0], [0.5, 1.0], [0.0, 0.0]])
    found = gibbs(*parts(machine), x, 0, np.random.default_rng(0), clamped={2: 1})
    np.testing.assert_array_equal(found, [[0, 1], [0.5, 1], [1, 1]])


def test_calls_with_one_generator_differ_and_with_the_same_seed_agree():
    machine = machine_of(6, 4, scale=0.1)
    x, rng = np.zeros((6, 64), np.float32), np.random.default_rng(7)
    first, second = (gibbs(*parts(machine), x, 1, rng) for _ in range(2))
    again = gibbs(*parts(machine), x, 1, np.random.default_rng(7))
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_machines_without_units_on_one_side_are_machines(shape):
    weights = np.zeros(shape)
    x = gibbs(
        weights,
        np.full(shape[0], 100.0),
        np.zeros(shape[1]),
        np.zeros((shape[0], 5)),
        2,
        np.random.default_rng(0),
    )
    assert x.shape == (shape[0], 5)
    assert x.all()


def test_errors_say_what_was_expected():
    weights, a, b = parts(machine_of(3, 2))
    x, rng = np.zeros((3, 4)), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"weights of shape \(visible units, hidden units\)"):
        gibbs(weights[0], a, b, x, 1, rng)
    with pytest.raises(ValueError, match=r"visible_bias of shape \(3,\)"):
        gibbs(weights, b, b, x, 1, rng)
    with pytest.raises(ValueError, match=r"hidden_bias of shape \(2,\)"):
        gibbs(weights, a, a, x, 1, rng)
    for wrong in (x[:2], x[0], x[:, 0], x[None]):
        with pytest.raises(ValueError, match=r"expected (x|states) of shape \(3"):
            gibbs(weights, a, b, wrong, 1, rng)
    with pytest.raises(ValueError, match="steps from 0 up, got -1"):
        gibbs(weights, a, b, x, -1, rng)
    with pytest.raises(ValueError, match="rows from 0 to 2 to be clamped, got"):
        gibbs(weights, a, b, x, 1, rng, clamped={3: 1})
    with pytest.raises(ValueError, match=r"clamped values of shape \(1,\) or \(1, 4\), got shape \(1, 3\)"):
        gibbs(weights, a, b, x, 1, rng, clamped=([0], [[1, 1, 0]]))


# --- the kernel as plain Python --------------------------------------------------------------------


def test_the_kernel_does_the_same_in_python(monkeypatch):
    rng = np.random.default_rng(4)
    z, bias = rng.normal(size=(6, 70)).astype(np.float32) * 5, rng.normal(size=6).astype(np.float32)
    compiled = z.copy()
    settle(compiled, bias, *key_of(3), 0, HIDDEN)
    monkeypatch.setattr(dense_kernels, "stack", lambda like, size: like.dtype)
    monkeypatch.setattr(dense_kernels, "carray", lambda kind, shape: np.zeros(shape, kind))
    monkeypatch.setattr(dense_kernels, "as_single", lambda bits: np.int32(bits).view(np.float32))
    monkeypatch.setattr(dense_kernels, "growth", dense_kernels.growth.py_func)
    for a in np.linspace(0, 60, 500, dtype=np.float32):
        assert dense_kernels.growth(a) == pytest.approx(math.exp(a), rel=1e-6)
    dense_kernels.settle.py_func(z, bias, *key_of(3), 0, HIDDEN)
    np.testing.assert_array_equal(z, compiled)


@pytest.mark.parametrize("shape", [(1, 1), (6, 70), (65, 64), (129, 200)])
def test_numpy_and_the_kernel_make_the_same_bits(shape, monkeypatch):
    rng = np.random.default_rng(5)
    z = (rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 2, shape)).astype(np.float32)
    bias = rng.normal(size=shape[0]).astype(np.float32)
    compiled, plain = z.copy(), z.copy()
    settle(compiled, bias, *key_of(3), 7, VISIBLE)
    settle_plainly(plain, bias, *key_of(3), 7, VISIBLE)
    np.testing.assert_array_equal(plain, compiled)
    monkeypatch.setattr(dense, "runs_compiled", lambda _: False)
    settle(z, bias, *key_of(3), 7, VISIBLE)
    np.testing.assert_array_equal(z, compiled)
