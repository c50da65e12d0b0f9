"""Every dynamics keeps its distribution and reaches it; odds are differences of log weights; search finds."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csc_array

from lbm.errors import UnknownAtom, WeightError
from lbm.knowledge.formula import FALSE, TRUE, atom, disjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from lbm.reasoning.sampling import machines
from lbm.reasoning.sampling.machines import Conditioned, gibbs_step, heat_bath
from lbm.reasoning.sampling.targets import hard_parts
from tests.oracles import truth, worlds
from tests.reference import targets
from tests.reference.chains import (
    COLD,
    RULES,
    anneal,
    choose_penalty,
    descend,
    descent_step,
    metropolis,
    run,
    schedule,
    sweep,
)
from tests.reference.targets import FreeEnergyTarget, SumTarget, score_target
from tests.strategies import formulae, theories

NAMED = {
    "equivalences": (Theory.parse("a <-> b\nb <-> c\nc <-> d\n0.7: a"), 1.0),
    "exactly": (Theory.parse("exactly(2, a, b, c, d, e)\n1: a & b\n0.5: e"), 1.0),
    "mixed": (Theory.parse("a | b | d\n0.8: a -> b\n1.2: b | c\n0.5: a ^ c\n0.3: exactly(1, b, c, d)"), 1.0),
    "negative": (Theory.parse("~(a & b & c)\n-1: a | b\n-0.7: a & c\n-0.4: b ^ c\natoms a, b, c, idle"), 0.7),
    "parity": (Theory.parse("a ^ b ^ c\n0.6: a\n-0.3: b & c"), 1.0),
    "defined": (Theory.parse("1: (a & b) ^ (c & d)\n-0.5: (a | b) & (c | d)\n0.4: b"), 1.0),
    "nixon": (Theory.parse("1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"), 300.0),
}
PENALTY = 2.5
modest = st.one_of(
    st.integers(-20, 20).filter(bool), st.decimals(-5, 5, allow_nan=False, places=3).filter(bool)
)
small = theories(weights=modest)


# --- the oracle ------------------------------------------------------------------------------------


def every_world(atoms):
    """Return all states over ``atoms`` as columns, shape (atoms, 2ⁿ): the first atom changes fastest."""
    numbers = np.arange(1 << atoms)
    return (numbers >> np.arange(atoms)[:, None] & 1).astype(bool)


def parts(formula, positive=True):
    """Return the set of (part, sign) that a hard formula falls into, by the truth tables of & | -> ~."""
    if formula.kind == "not":
        return parts(formula.args[0], not positive)
    if formula.kind in ("true", "false"):
        return set() if (formula.kind == "true") is positive else {(formula, positive)}
    if formula.kind == "and" and positive:
        return parts(formula.args[0]) | parts(formula.args[1])
    if formula.kind == "or" and not positive:
        return parts(formula.args[0], False) | parts(formula.args[1], False)
    if formula.kind == "implies" and not positive:
        return parts(formula.args[0]) | parts(formula.args[1], False)
    return {(formula, positive)}


def weigh(theory):
    """Return the score and the number of broken hard parts of every world, as ``every_world`` orders them."""
    hard = [part for s in theory if s.weight is None for part in parts(s.formula)]
    soft = [(s.formula, Fraction(s.weight)) for s in theory if s.weight is not None]
    score, broken = [], []
    for world in worlds(theory.atoms):
        score.append(sum((w for formula, w in soft if truth(formula, world)), start=Fraction(0)))
        broken.append(sum(truth(formula, world) is not sign for formula, sign in hard))
    return score, broken


def normal(log_weights):
    """Return probabilities from log weights."""
    weights = np.exp(np.array(log_weights) - max(log_weights))
    return weights / weights.sum()


def logical(theory, temperature, penalty=math.inf):
    """Return P of every world: over models, or with a finite penalty for every broken hard part."""
    score, broken = weigh(theory)
    return normal(
        [
            -math.inf
            if b and math.isinf(penalty)
            else float(s / Fraction(temperature)) - (penalty * b if b else 0)
            for s, b in zip(score, broken, strict=True)
        ]
    )


def minus_free_energy(machine, k):
    """Return -F of every state of all visible units, by a sum over every unit's two hidden states."""
    x = every_world(len(machine.atoms)).astype(float)
    inputs = machine.weights.toarray().T @ x + machine.hidden_bias[:, None]
    return k * machine.visible_bias @ x + np.logaddexp(0.0, k * inputs).sum(axis=0)


def extension(machine):
    """Return for every world of the declared atoms the number of the state that extends it rightly.

    It is the one of least rank energy: a definition weighs more than all that depends on it.
    """
    x = every_world(len(machine.atoms)).astype(float)
    inputs = machine.weights.toarray().T @ x + machine.hidden_bias[:, None]
    depth = np.maximum(inputs, 0).sum(axis=0).reshape(-1, 1 << len(machine.declared))
    return np.argmax(depth, axis=0) * depth.shape[1] + np.arange(depth.shape[1])


def draw_states(chances, atoms, lanes, rng):
    return every_world(atoms)[:, rng.choice(len(chances), size=lanes, p=chances)]


def check_worlds(x, chances):
    """Assert that every world and every atom is as frequent as it should, within four standard errors."""
    atoms, lanes = x.shape
    number = (1 << np.arange(atoms)) @ x
    found = np.bincount(number, minlength=1 << atoms) / lanes
    check_within(found, chances, lanes)
    check_within(x.mean(axis=1), every_world(atoms) @ chances, lanes)


def check_within(found, expected, lanes):
    # 1/lanes inside the root: the normal law says nothing about a world that is expected less than once
    error = np.sqrt((expected * (1 - expected) + 1 / lanes) / lanes)
    assert (np.abs(found - expected) <= 4 * error).all(), (found, expected)


def target_of(theory, temperature=1.0, penalty=PENALTY):
    hard = [s.formula for s in theory if s.weight is None]
    soft = [
        (s.formula, float(Fraction(s.weight) / Fraction(temperature))) for s in theory if s.weight is not None
    ]
    return score_target(theory.atoms, hard, soft, penalty)


def hand_made():
    """Return a machine with biases of either sign and weights that no formula would give."""
    rng = np.random.default_rng(3)
    weights = csc_array(rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.7))
    return Machine(("a", "b", "c", "d"), weights, rng.normal(size=4), rng.normal(size=6))


# --- all dynamics ----------------------------------------------------------------------------------


def dynamics(kind, name):
    """Return (one sweep, exact chances of the worlds, number of atoms) of a chain on a named theory."""
    if name == "hand-made":
        machine, temperature = hand_made(), 4.0
    else:
        theory, temperature = NAMED[name]
        if kind.startswith("score"):
            target = target_of(theory, temperature)
            chances = logical(theory, temperature, PENALTY)
            rule = kind.removeprefix("score, ")
            return lambda x, rng: sweep(target, x, rng, rule=rule), chances, len(theory.atoms)
        machine = translate(theory, method="definitions")
        assert bool(machine.definitions) is (name == "defined")
        temperature *= 2.0
    logs = minus_free_energy(machine, 5.0 / temperature)
    if kind == "block Gibbs":
        step = lambda x, rng: gibbs_step(machine, x, rng, temperature=temperature)  # noqa: E731
        return step, normal(logs), len(machine.atoms)
    target = FreeEnergyTarget(machine, temperature=temperature)
    rule = kind.removeprefix("free energy, ")
    chances = normal(logs[extension(machine)])
    return lambda x, rng: sweep(target, x, rng, rule=rule), chances, len(machine.declared)


SCORE = [f"score, {rule}" for rule in RULES]
FREE = [f"free energy, {rule}" for rule in RULES]
CASES = [(kind, name) for kind in [*SCORE, *FREE, "block Gibbs"] for name in NAMED]
CASES += [(kind, "hand-made") for kind in [*FREE, "block Gibbs"]]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_chains_started_at_the_exact_distribution_stay_there(kind, name):
    step, chances, atoms = dynamics(kind, name)
    rng = np.random.default_rng(1)
    x = start = draw_states(chances, atoms, 20_000, rng)
    for _ in range(4):
        x = step(x, rng)
    assert (x != start).any()
    check_worlds(x, chances)


REACH = {"equivalences": 150, "exactly": 60, "mixed": 60, "negative": 60, "parity": 100, "nixon": 400}


@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if case[0] != "block Gibbs"])
def test_collapsed_chains_reach_the_exact_distribution_from_the_all_false_world(kind, name):
    step, chances, atoms = dynamics(kind, name)
    rng = np.random.default_rng(2)
    x = np.zeros((atoms, 2000), dtype=bool)
    for _ in range(REACH.get(name, 60)):
        x = step(x, rng)
    check_worlds(x, chances)


@pytest.mark.parametrize("name", ["mixed", "defined", "hand-made"])
def test_block_gibbs_reaches_the_exact_distribution_of_soft_machines_in_three_hundred_steps(name):
    step, chances, atoms = dynamics("block Gibbs", name)
    rng = np.random.default_rng(2)
    x = np.zeros((atoms, 4000), dtype=bool)
    for _ in range(300):
        x = step(x, rng)
    check_worlds(x, chances)


# Theories; the highest confidence among 5, the paper's, 4 and 3 at which five hundred steps of block Gibbs
# are enough; and how many are: the total variation is then below 0.01, and one step before it is not.
STEPS = {
    "an equivalence": ("a <-> b", 5.0, 43),
    "a soft equivalence": ("1: a <-> b\n0.5: a", 5.0, 48),
    "a chain of equivalences": ("a <-> b\nb <-> c\nc <-> d", 5.0, 253),
    "a chain with a preference": ("a <-> b\nb <-> c\nc <-> d\n0.7: a", 3.0, 268),
    "exactly one": ("exactly(1, a, b, c)", 5.0, 7),
    "exactly one, with a preference": ("exactly(1, a, b, c)\n0.5: a", 5.0, 103),
    "exactly two, with preferences": ("exactly(2, a, b, c, d, e)\n1: a & b\n0.5: e", 4.0, 378),
    "exactly one, twice": ("exactly(1, a, b, c)\nexactly(1, c, d, e)", 5.0, 66),
    "at most two": ("atmost(2, a, b, c, d)", 5.0, 23),
    "exactly one, and an equivalence": ("exactly(1, a, b, c)\na <-> d", 5.0, 112),
    "an equivalence with a definition": ("(a & b) <-> (c | d)", 4.0, 430),
    "exactly one, with a definition": ("exactly(1, a & b, c, d)", 4.0, 277),
}


def every_energy(machine):
    """Return -E(x, h) of every visible and hidden state, shape (2ⁿ, 2ᵐ)."""
    x, h = (every_world(units).astype(float) for units in machine.weights.shape)
    return x.T @ machine.weights.toarray() @ h + (machine.visible_bias @ x)[:, None] + machine.hidden_bias @ h


def after_steps(machine, k, steps):
    """Return P of every visible state after so many steps of block Gibbs from the all-false world.

    A step multiplies by p(h | x) and by p(x | h), which are exp(-kE) divided by its sums over one side.
    """
    joint = np.exp(k * every_energy(machine))
    step = joint / joint.sum(axis=1, keepdims=True) @ (joint / joint.sum(axis=0)).T
    return np.linalg.matrix_power(step, steps)[0]


def standard_errors_off(x, chances):
    """Return by how many standard errors an atom's frequency, or that of two being equal, is off at most."""
    atoms, lanes = x.shape
    every = every_world(atoms)
    events = [lambda s, i=i: s[i] for i in range(atoms)]
    events += [lambda s, i=i, j=j: s[i] == s[j] for j in range(atoms) for i in range(j)]
    expected = np.array([event(every) @ chances for event in events])
    found = np.array([event(x).mean() for event in events])
    return np.max(np.abs(found - expected) / np.sqrt(expected * (1 - expected) / lanes))


@pytest.mark.parametrize("name", STEPS)
def test_block_gibbs_reaches_the_exact_distribution_in_the_steps_that_sums_over_all_states_say(name):
    text, confidence, enough = STEPS[name]
    machine = translate(Theory.parse(text), method="definitions")
    assert bool(machine.definitions) is name.endswith("definition")
    chances = normal(np.logaddexp.reduce(confidence * every_energy(machine), axis=1))
    few = max(1, enough // 20)
    laws = [after_steps(machine, confidence, steps) for steps in (few, enough - 1, enough)]
    assert [np.abs(law - chances).sum() / 2 < 0.01 for law in laws] == [False, False, True]

    rng = np.random.default_rng(3)
    x = np.zeros((len(machine.atoms), 4000), dtype=bool)
    for step in range(1, enough + 1):
        x = gibbs_step(machine, x, rng, confidence=confidence)
        if step == few:  # it follows the law of its own few steps, and that is visibly another one
            check_worlds(x, laws[0])
            assert standard_errors_off(x, chances) > 8
    check_worlds(x, chances)
    assert standard_errors_off(x, chances) <= 4


@pytest.mark.parametrize("penalty", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("name", ["equivalences", "exactly", "mixed", "negative", "parity"])
def test_states_that_break_nothing_have_the_logical_distribution_whatever_the_penalty(name, penalty):
    theory, temperature = NAMED[name]
    target = target_of(theory, temperature, penalty)
    rng = np.random.default_rng(5)
    states = run(target, np.zeros((len(theory.atoms), 3000), dtype=bool), 400, rng, keep=1)[0]
    kept = states[:, target.broken(states) == 0]
    assert kept.shape[1] > 200
    check_worlds(kept, logical(theory, temperature))


@pytest.mark.parametrize("kind", [*SCORE, *FREE, "block Gibbs"])
def test_clamped_atoms_never_move_and_the_others_follow_the_conditional_distribution(kind):
    theory, temperature = NAMED["mixed"]
    machine = translate(theory)
    rng = np.random.default_rng(6)
    x = np.zeros((4, 8000), dtype=bool)
    half = np.arange(8000) % 2 == 0  # b is clamped true in every second lane
    clamped = ([1, 2], np.stack([half, np.ones(8000, dtype=bool)]))
    score = kind.startswith("score")
    chances = logical(theory, temperature, PENALTY) if score else normal(minus_free_energy(machine, 2.0))
    target = target_of(theory) if score else FreeEnergyTarget(machine, confidence=2.0)
    for _ in range(150):
        if kind == "block Gibbs":
            x = gibbs_step(machine, x, rng, confidence=2.0, clamped=clamped)
        else:
            x = sweep(target, x, rng, rule=kind.split(", ")[1], clamped=clamped)
        assert (x[1] == half).all()
        assert x[2].all()
    every = every_world(4)
    for lanes, value in ((half, True), (~half, False)):
        allowed = chances * (every[1] == value) * every[2]
        check_worlds(x[:, lanes], allowed / allowed.sum())


@pytest.mark.parametrize("kind", [*SCORE, *FREE, "block Gibbs"])
def test_the_same_seed_gives_the_same_states_and_another_one_others(kind):
    step, _, atoms = dynamics(kind, "mixed")
    start = np.zeros((atoms, 50), dtype=np.int8)
    first, again, other = (step(start, np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert (first == again).all()
    assert (first != other).any()
    assert first.dtype == bool
    assert not start.any()  # it was not written to


def test_one_block_gibbs_step_from_fractions_has_the_law_of_the_papers_equation():
    """From all 0.5, the pool's start: Σ_h p(h | x) p(x' | h) over 64 hidden states. [TG21, Equation 11]"""
    machine, k = hand_made(), 5.0 / 4.0
    sigma = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    weights, hidden = machine.weights.toarray(), every_world(6).astype(float)
    on = sigma(k * (0.5 * weights.sum(axis=0) + machine.hidden_bias))[:, None]
    chance = np.where(hidden == 1, on, 1 - on).prod(axis=0)
    up = sigma(k * (weights @ hidden + machine.visible_bias[:, None]))
    every = every_world(4)
    expected = sum(
        p * np.where(every, u[:, None], 1 - u[:, None]).prod(axis=0)
        for p, u in zip(chance, up.T, strict=True)
    )
    start = np.full((4, 40_000), 0.5)
    check_worlds(gibbs_step(machine, start, np.random.default_rng(0), temperature=4.0), expected)


# --- odds and weights ------------------------------------------------------------------------------


@given(small, st.sampled_from([0.0, 0.7, 3.0]), st.sampled_from([1.0, 0.3, 40.0]))
def test_scores_and_odds_are_what_every_formula_says_by_itself(theory, penalty, temperature):
    target = target_of(theory, temperature, penalty)
    score, broken = weigh(theory)
    x = every_world(len(theory.atoms))
    logs = [float(s / Fraction(temperature)) - penalty * b for s, b in zip(score, broken, strict=True)]
    close = {"rtol": 1e-12, "atol": 1e-9}
    np.testing.assert_allclose(target.score(x), [float(s / Fraction(temperature)) for s in score], **close)
    np.testing.assert_array_equal(target.broken(x), broken)
    np.testing.assert_allclose(target.log_weight(x), logs, **close)
    check_odds(target, x, np.array(logs), close)
    check_odds(target, x.astype(np.int8), np.array(logs), close)


def check_odds(target, x, logs, close):
    """Assert that odds are differences of log weights, for every atom in every world, and within scale()."""
    number = np.arange(x.shape[1])
    _, largest = target.scale()
    for i in range(len(x)):
        odds = target.odds(i, x)
        np.testing.assert_allclose(odds, logs[number | 1 << i] - logs[number & ~(1 << i)], **close)
        assert np.abs(odds).max() <= largest * (1 + 1e-12) + 1e-12


@given(small, st.sampled_from([0.5, 5.0]), st.sampled_from(["auto", "definitions"]), st.booleans())
def test_free_energy_odds_are_differences_of_free_energies_summed_by_hand(theory, confidence, method, sparse):
    machine = translate(theory, method=method, epsilon=0.25)
    assume(len(machine.atoms) <= 11)
    logs = minus_free_energy(machine, confidence / 2.0)[extension(machine)]
    x = every_world(len(machine.declared))
    close = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, np.abs(logs).max())}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "DENSE", -1 if sparse else 1 << 14)
        target = FreeEnergyTarget(machine, confidence, 2.0)
        np.testing.assert_allclose(target.log_weight(x), logs, **close)
        check_odds(target, x, logs, close)
    assert not target.broken(x).any()
    assert (target.score(x) == target.log_weight(x)).all()


def test_free_energy_odds_of_a_machine_with_biases_are_differences_too():
    machine = hand_made()
    logs = minus_free_energy(machine, 3.0)
    check_odds(FreeEnergyTarget(machine, 3.0), every_world(4), logs, {"rtol": 1e-10, "atol": 1e-10})


def test_long_clauses_and_short_ones_are_weighed_together(monkeypatch):
    """Widths 1 to 9 in one theory, weighed whole and in pieces."""
    names = [f"x{i}" for i in range(9)]
    rules = [
        (k, disjunction(~atom(n) if i % 2 else atom(n) for i, n in enumerate(names[:k])))
        for k in range(1, 10)
    ]
    theory = Theory([*rules, *(~formula for _, formula in rules[3:6])], atoms=names)
    target, x = target_of(theory), every_world(9)
    score, broken = weigh(theory)
    logs = np.array([float(s) - PENALTY * b for s, b in zip(score, broken, strict=True)])
    check_odds(target, x, logs, {"rtol": 1e-12, "atol": 1e-9})
    for chunk in (1 << 24, 2000):
        monkeypatch.setattr(targets, "CHUNK", chunk)
        np.testing.assert_allclose(target.log_weight(x), logs)


def test_hard_conjunctions_are_split_and_soft_ones_are_not():
    whole = parse("a & ~(b | (c -> d)) & (a ^ c) & true")
    hard = score_target("abcd", [whole, TRUE], [], 1.0)
    assert hard.hard == 5
    nothing = np.zeros((4, 1), dtype=bool)
    assert hard.broken(nothing) == 3  # a, c, a ^ c; ~b and ~d are kept
    assert hard.odds(1, nothing) == -1
    soft = score_target("abcd", [], [(whole, 1.0)], 1.0)
    assert soft.odds(1, nothing) == 0
    assert score_target("a", [parse("a & false")], [], 1.0).broken(nothing[:1]) == 2
    assert score_target("a", [], [(FALSE, 2.0), (TRUE, 3.0)], 1.0).score(nothing[:1]) == 3


def test_atoms_may_be_called_anything():
    names = ["self", "x", "age <= 30"]
    target = score_target(names, [atom("self") ^ atom("x") ^ atom("age <= 30")], [], 2.0)
    assert target.odds(0, np.zeros((3, 1), dtype=bool)) == 2.0


def test_a_clause_with_an_atom_and_its_negation_weighs_nothing():
    theory = Theory.parse("a | ~a | b\n2: b | a | ~b\n3: a & c & ~a\n1: a | a | b")
    score, broken = weigh(theory)
    target, x = target_of(theory), every_world(3)
    assert not any(broken)
    check_odds(target, x, np.array([float(s) for s in score]), {"rtol": 1e-12, "atol": 1e-12})
    np.testing.assert_allclose(target.log_weight(x), [float(s) for s in score])
    np.testing.assert_array_equal(target.broken(x), broken)


def test_the_scale_of_a_machine_counts_what_a_flip_changes_through_definitions():
    """Ten definitions hold a, ten formulae hold each: a flip changes more than its own units hold."""
    theory = Theory([(1, f"(a & b{i}) ^ (c{j} & d{j})") for i in range(10) for j in range(10)])
    machine = translate(theory, method="definitions", epsilon=0.05)
    assert len(machine.definitions) == 10
    target = FreeEnergyTarget(machine, 2.0)
    x = np.array([[name.startswith("b")] for name in theory.atoms])
    assert 70 < target.odds(theory.atoms.index("a"), x)[0] <= target.scale()[1]


# --- rules -----------------------------------------------------------------------------------------


@given(st.floats(-30, 30))
def test_the_heat_bath_is_the_logistic_function_and_metropolis_keeps_detailed_balance(odds):
    u = (np.arange(20_000) + 0.5) / 20_000
    up = heat_bath(np.full(20_000, odds), u).mean()
    assert abs(up - 1 / (1 + math.exp(-odds))) <= 1 / 20_000
    rise, stay = (metropolis(np.full(20_000, odds), np.full(20_000, now), u).mean() for now in (False, True))
    expected = (0.5, 0.5) if odds == 0 else (min(1, math.exp(odds)), min(1, math.exp(-odds)))
    assert abs(rise - expected[0]) <= 1 / 20_000
    assert abs((1 - stay) - expected[1]) <= 1 / 20_000


def test_odds_of_any_size_neither_overflow_nor_warn():
    odds = np.array([-np.inf, -1e308, -800.0, 800.0, 1e308, np.inf])
    for u in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        expected = [u < 0] * 3 + [True] * 3
        assert heat_bath(odds, np.full(6, u)).tolist() == expected
        for now in (False, True):
            # exp(-800) is 0 in no number but every double
            assert metropolis(odds, np.full(6, now), np.full(6, u)).tolist() == expected


@pytest.mark.parametrize("rule", RULES)
def test_sweeps_in_any_order_keep_the_distribution(rule):
    theory, temperature = NAMED["mixed"]
    chances = logical(theory, temperature, PENALTY)
    rng = np.random.default_rng(9)
    x = draw_states(chances, 4, 20_000, rng)
    for order in ([3, 1, 0, 2], [2], [1, 3]):
        new = sweep(target_of(theory), x, rng, rule=rule, order=order)
        resting = [i for i in range(4) if i not in order]
        assert (new[resting] == x[resting]).all()
        assert (new != x).any()
        x = new
    check_worlds(x, chances)


@pytest.mark.parametrize("rule", RULES)
def test_beta_raises_the_distribution_to_a_power(rule):
    theory, _ = NAMED["mixed"]
    score, broken = weigh(theory)
    hot = normal([0.4 * (float(s) - PENALTY * b) for s, b in zip(score, broken, strict=True)])
    rng = np.random.default_rng(10)
    states = run(target_of(theory), np.zeros((4, 8000)), 50, rng, rule=rule, beta=0.4, keep=1)
    check_worlds(states[0], hot)


def test_an_atom_in_no_formula_is_true_in_half_of_the_lanes_after_any_number_of_metropolis_sweeps():
    target = score_target(["idle"], [], [], 1.0)
    for sweeps in (1, 2, 3):
        states = run(target, np.zeros((1, 4000)), sweeps, np.random.default_rng(sweeps), rule="metropolis")
        check_worlds(states[-1], np.array([0.5, 0.5]))


# --- runs ------------------------------------------------------------------------------------------


def test_a_run_is_its_sweeps_one_after_the_other_and_keeps_the_last():
    target, start = target_of(NAMED["exactly"][0]), np.zeros((5, 7), dtype=bool)
    rng, x, expected = np.random.default_rng(3), start, []
    for _ in range(6):
        x = sweep(target, x, rng, rule="metropolis")
        expected.append(x)
    for keep, kept in ((None, expected), (6, expected), (9, expected), (2, expected[-2:]), (0, [])):
        states = run(target, start, 6, np.random.default_rng(3), rule="metropolis", keep=keep)
        assert states.shape == (len(kept), 5, 7)
        assert states.dtype == bool
        assert all((a == b).all() for a, b in zip(states, kept, strict=True))


def test_a_run_and_a_search_end_when_they_are_told_to():
    target, start = target_of(NAMED["exactly"][0]), np.zeros((5, 7), dtype=bool)
    seen = []

    def on_sweep(k, x):
        seen.append((k, x.copy()))
        return k < 3

    states = run(target, start, 10, np.random.default_rng(3), on_sweep=on_sweep)
    assert [k for k, _ in seen] == [1, 2, 3]
    assert all((mine == theirs).all() for mine, (_, theirs) in zip(states, seen, strict=True))
    found = anneal(target, start, np.ones(10), np.random.default_rng(3), on_sweep=on_sweep)
    assert found.sweeps == 3
    assert (
        anneal(target, start, np.ones(10), np.random.default_rng(3), on_sweep=lambda k, x: None).sweeps == 10
    )


# --- search ----------------------------------------------------------------------------------------


def random_3sat(atoms, number, seed):
    rng = random.Random(seed)
    return [[v * rng.choice((1, -1)) for v in rng.sample(range(1, atoms + 1), 3)] for _ in range(number)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_annealing_solves_random_3sat_of_50_atoms_and_180_clauses(seed, rule):
    """Satisfiable instances: 32 lanes and 200 sweeps; the clauses are read here, not in the target."""
    names = [f"x{i}" for i in range(1, 51)]
    clauses = random_3sat(50, 180, seed)
    hard = [disjunction(atom(f"x{n}") if n > 0 else ~atom(f"x{-n}") for n in clause) for clause in clauses]
    target = score_target(names, hard, [], 1.0)
    rng = np.random.default_rng(seed)
    found = anneal(target, rng.random((50, 32)) < 0.5, schedule(target, 200), rng, rule=rule)
    lane = int(np.argmin(found.broken))
    world = found.x[:, lane]
    assert all(any(world[abs(n) - 1] == (n > 0) for n in clause) for clause in clauses)
    assert found.sweeps == 200


def random_theory(rng):
    """Return a theory over 7 atoms: clauses, conjunctions, parities and counts; hard ones may clash."""
    names = "abcdefg"
    shapes = [
        "{} | {} | {}",
        "{} & {}",
        "{} ^ {} ^ {}",
        "exactly(1, {}, {}, {})",
        "{} & {} -> {}",
        "{} <-> {}",
    ]
    lines = ["atoms " + ", ".join(names)]
    for _ in range(12):
        literals = [rng.choice(("", "~")) + name for name in rng.sample(names, 3)]
        weight = "" if rng.random() < 0.3 else f"{rng.choice((-1, 1)) * rng.randint(1, 40) / 10}: "
        lines.append(weight + rng.choice(shapes).format(*literals))
    return Theory.parse("\n".join(lines))


@pytest.mark.parametrize("seed", range(20))
def test_annealing_finds_the_best_world_of_small_theories(seed):
    theory = random_theory(random.Random(seed))
    target = target_of(theory, penalty=10.0)
    rng = np.random.default_rng(seed)
    start = rng.random((7, 64)) < 0.5
    found = anneal(target, start, schedule(target, 60), rng)
    score, broken = weigh(theory)
    best = min(zip(broken, [-s for s in score], strict=True))
    lane = min(range(64), key=lambda lane: (found.broken[lane], -found.score[lane]))
    number = int((1 << np.arange(7)) @ found.x[:, lane])
    assert (broken[number], -score[number]) == best
    # what it says of every lane is true, and no lane is worse than where it began
    numbers = (1 << np.arange(7)) @ found.x
    np.testing.assert_array_equal(found.broken, np.array(broken)[numbers])
    np.testing.assert_allclose(found.score, [float(score[n]) for n in numbers])
    np.testing.assert_allclose(found.log_weight, found.score - 10.0 * found.broken)
    first = (1 << np.arange(7)) @ start
    assert all((broken[n], -score[n]) <= (broken[m], -score[m]) for n, m in zip(numbers, first, strict=True))


def test_a_search_keeps_the_best_state_met_and_not_the_last():
    """At β = 0 states are coin tosses: the best of forty is seldom the last."""
    theory, _ = NAMED["exactly"]
    target = target_of(theory)
    met = []
    found = anneal(
        target, np.zeros((5, 40)), np.zeros(40), np.random.default_rng(0), on_sweep=lambda k, x: met.append(x)
    )
    score, broken = weigh(theory)
    for lane in range(40):
        numbers = [0, *(int((1 << np.arange(5)) @ x[:, lane]) for x in met)]
        best = min((broken[n], -score[n]) for n in numbers)
        mine = int((1 << np.arange(5)) @ found.x[:, lane])
        assert (broken[mine], -score[mine]) == best
    assert (found.x != met[-1]).any()


def test_a_search_on_a_machine_finds_the_state_of_least_free_energy():
    machine = translate(NAMED["defined"][0], method="definitions")
    logs = minus_free_energy(machine, 5.0)[extension(machine)]
    target = FreeEnergyTarget(machine)
    found = anneal(target, np.zeros((4, 32)), schedule(target, 60), np.random.default_rng(0))
    assert found.log_weight.max() == pytest.approx(logs.max())


def test_schedules_rise_from_where_all_moves_to_where_nothing_does():
    target = score_target("abc", [parse("a | b")], [(parse("a -> c"), -0.5), (parse("a ^ b ^ c"), 2.0)], 3.0)
    assert target.scale() == (0.5, 5.5)  # of a: 3 + 0.5 + 2
    betas = schedule(target, 10)
    assert betas[0] == pytest.approx(1 / 5.5)
    assert betas[-1] == pytest.approx(COLD / 0.5)
    np.testing.assert_allclose(betas[1:] / betas[:-1], betas[1] / betas[0])
    assert schedule(target, 0).shape == (0,)
    assert schedule(score_target("ab", [], [], 1.0), 3).tolist() == [1, 1, 1]
    machine = translate(Theory.parse("2: a | b"))  # cubes a; ~a & b
    wells = [math.log1p(math.exp(z)) for z in (1.5, -1.5)]  # k·w·ε and k·w·(ε - 1) at k = 3/2
    assert FreeEnergyTarget(machine, 3.0, 2.0).scale() == pytest.approx((wells[0] - wells[1], 2 * wells[0]))
    empty = translate(Theory([], atoms=["a"]))
    assert schedule(FreeEnergyTarget(empty), 3).tolist() == [1, 1, 1]


# --- penalties -------------------------------------------------------------------------------------


def clashing():
    """Soft formulae that pull with 12 against a hard one that gives way at 12 only."""
    return Theory.parse("~(a & b)\n6: a\n6: b\na | c | d\n-4: c | d")


@pytest.mark.parametrize("name", ["equivalences", "exactly", "mixed", "parity", "clash", "3-SAT"])
def test_the_chosen_penalty_makes_a_good_share_of_states_models_and_leaves_chains_moving(name):
    if name == "3-SAT":
        clauses = random_3sat(40, 120, 4)
        theory = Theory(
            [disjunction(atom(f"x{n}") if n > 0 else ~atom(f"x{-n}") for n in clause) for clause in clauses]
        )
    else:
        theory = clashing() if name == "clash" else NAMED[name][0]
    target = target_of(theory, penalty=0.0)
    start = np.zeros((len(theory.atoms), 64), dtype=bool)
    penalty = choose_penalty(target, start, np.random.default_rng(0))
    states = run(target.with_penalty(penalty), start, 300, np.random.default_rng(1), keep=200)
    share = np.mean([target.broken(x) == 0 for x in states])
    assert share > 0.25
    assert share < 0.9 or penalty == 1  # what is easy at the least penalty gets no more
    assert (states[1:] != states[:-1]).any(axis=(0, 1)).all()


def test_the_penalty_of_hard_formulae_that_clash_is_bounded():
    target = score_target("ab", [parse("a"), parse("~a"), parse("a | b")], [(parse("b"), 2.0)], 1.0)
    assert choose_penalty(target, np.zeros((2, 8)), np.random.default_rng(0)) == pytest.approx(
        math.log(4) + 9
    )


def test_without_hard_formulae_the_penalty_is_left_alone():
    target = score_target("a", [], [(parse("a"), 2.0)], 1.5)
    assert choose_penalty(target, np.zeros((1, 8)), np.random.default_rng(0)) == 1.5


@given(small, st.data(), st.sampled_from(["auto", "definitions"]), st.booleans())
def test_chains_given_evidence_are_the_plain_ones_on_both_energies_and_penalties(
    theory, data, method, sparse
):
    machine = translate(theory, method=method, epsilon=0.25)
    assume(machine.declared and len(machine.atoms) <= 11)
    evidence = data.draw(formulae(machine.declared))
    plain = SumTarget(
        FreeEnergyTarget(machine, 3.0, 2.0), score_target(machine.declared, [evidence], [], PENALTY)
    )
    x = np.random.default_rng(3).random((len(machine.declared), 64)) < 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machines, "DENSE", -1 if sparse else 1 << 14)
        target = Conditioned(machine, 3.0, 2.0, tuple(hard_parts([evidence])))
        for i in range(len(x)):
            np.testing.assert_allclose(target.odds(i, x, PENALTY), plain.odds(i, x), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(target.broken(x), plain.broken(x))
    np.testing.assert_array_equal(target.score(x), plain.energies.score(x))
    one, other = (np.random.default_rng(5) for _ in range(2))
    np.testing.assert_array_equal(target.sweep(x, one, PENALTY), sweep(plain, x, other))
    assert target.chosen_penalty(x, one) == pytest.approx(choose_penalty(plain.with_penalty(1.0), x, other))


# --- descent ---------------------------------------------------------------------------------------

whole_weights = theories(weights=st.integers(-20, 20).filter(bool), max_statements=4)


@given(whole_weights, st.booleans())
def test_descent_never_raises_the_energy_and_comes_to_rest(theory, fractions):
    """With whole weights slopes are whole: a step that moves an atom by half or more wins half or more."""
    machine = translate(theory)
    assume(len(machine.atoms) <= 8)
    x = every_world(len(machine.atoms))
    if fractions:
        x = np.where(np.arange(x.shape[1]) % 3 == 0, 0.5, x.astype(float))
    energies = [rank_energy(machine, x)]
    current, wells = x, np.abs(machine.unit_weights).sum()
    bound = int(2 * (energies[0].max() + wells)) + 1
    rest, steps = descend(machine, x)
    assert steps <= bound
    for _ in range(steps):
        new = descent_step(machine, current)
        energies.append(rank_energy(machine, new))
        assert (energies[-1] <= energies[-2]).all()
        moved = (new != current).any(axis=0)
        assert (energies[-1][moved] <= energies[-2][moved] - 0.5).all()
        assert moved.any()
        assert new.dtype == x.dtype
        current = new
    assert (current == rest).all()
    assert (descent_step(machine, rest) == rest).all()


def rank_energy(machine, x):
    inputs = machine.weights.toarray().T @ x.astype(float) + machine.hidden_bias[:, None]
    return -machine.visible_bias @ x - np.maximum(inputs, 0).sum(axis=0)


def test_descent_of_any_machine_lowers_the_energy():
    machine, x = hand_made(), every_world(4)
    rest, steps = descend(machine, x)
    assert steps > 0
    assert (rank_energy(machine, rest) <= rank_energy(machine, x)).all()
    assert (rank_energy(machine, rest) < rank_energy(machine, x)).any()


@pytest.mark.parametrize("value", [0, 1])
def test_descent_keeps_clamped_atoms_and_lowers_the_energy_of_the_others(value):
    machine, x = hand_made(), every_world(4)
    start = x.copy()
    start[1] = value
    rest, steps = descend(machine, x, clamped={1: value})
    assert (rest[1] == value).all()
    assert steps > 0
    assert (rank_energy(machine, rest) <= rank_energy(machine, start)).all()
    assert (descent_step(machine, rest, clamped={1: value}) == rest).all()
    stopped, steps = descend(machine, x, clamped={1: value}, limit=0)
    assert steps == 0
    assert (stopped == start).all()


def test_descent_rests_at_a_world_that_breaks_the_formula_where_no_hidden_unit_is_on():
    """a -> b at a, ~b: no cube is within reach, every slope is 0 and nothing moves."""
    machine = translate(parse("a -> b"))
    assert descend(machine, np.array([[1, 0], [0, 1]]))[0].tolist() == [[1, 0], [0, 1]]


# --- bad input -------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused():
    theory, _ = NAMED["mixed"]
    target, machine = target_of(theory), translate(theory)
    rng, x = np.random.default_rng(0), np.zeros((4, 3), dtype=bool)
    for question, said in (
        (lambda: sweep(target, x, rng, rule="guess"), "expected the rule"),
        (
            lambda: sweep(target, x[:3], rng),
            r"expected states of shape \(4 atoms, lanes\), got shape \(3, 3\)",
        ),
        (lambda: sweep(target, x[0], rng), "expected states of shape"),
        (lambda: sweep(target, x, rng, order=[0, 0]), "none twice"),
        (lambda: sweep(target, x, rng, order=[4]), "rows from 0 to 3"),
        (lambda: sweep(target, x, rng, clamped={4: 1}), "rows of atoms from 0 to 3"),
        (lambda: sweep(target, x, rng, clamped=([0, 1], [1])), "clamped values of shape"),
        (lambda: run(target, x, -1, rng), "numbers of sweeps from 0 up"),
        (lambda: run(target, x, 1, rng, keep=-1), "numbers of sweeps from 0 up"),
        (lambda: schedule(target, -1), "number of sweeps from 0 up"),
        (lambda: choose_penalty(target, x, rng, share=1.0), "expected a share"),
        (lambda: choose_penalty(target, x, rng, rounds=0), "expected a share"),
        (lambda: gibbs_step(machine, x, rng, temperature=0.0), "temperature must be a positive number"),
        (lambda: gibbs_step(machine, x, rng, confidence=math.nan), "confidence must be a positive number"),
        (lambda: FreeEnergyTarget(machine, 0.0), "confidence must be a positive number"),
        (lambda: score_target("aa", [], [], 1.0), "every atom once"),
        (lambda: score_target("a", [], [], math.inf), "finite penalty"),
        (lambda: target.with_penalty(-1.0), "finite penalty"),
    ):
        with pytest.raises(ValueError, match=said):
            question()
    with pytest.raises(UnknownAtom, match="no atom 'brid' in this state; did you mean 'bird'"):
        score_target(["bird"], [parse("brid")], [], 1.0)
    with pytest.raises(WeightError, match="finite weights of soft formulae, got inf: a"):
        score_target("a", [], [(parse("a"), math.inf)], 1.0)


def test_chains_without_atoms_have_one_world():
    target = score_target([], [], [(TRUE, 2.0)], 1.0)
    nothing = np.zeros((0, 3), dtype=bool)
    assert sweep(target, nothing, np.random.default_rng(0)).shape == (0, 3)
    assert target.log_weight(nothing).tolist() == [2.0] * 3
    assert sweep(target, nothing, np.random.default_rng(0), clamped={}).shape == (0, 3)
