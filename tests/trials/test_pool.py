"""Words step as the dense machine does, and the pool scheme runs as ERRATA 9 tells it."""

from itertools import product

import numpy as np
import pytest

from lbm.errors import LbmError
from lbm.knowledge.formula import FALSE, atom, conjunction, disjunction, exactly
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from lbm.trials.searches import pool
from lbm.trials.searches.pool import PoolRun, cover, pack_words, word_cubes, word_step
from tests.oracles import truth

FOUR_STANDARD_ERRORS = 4


def phi(m, n):
    some = disjunction(atom(f"y{j}") for j in range(1, n + 1))
    return conjunction([*(atom(f"x{i}") for i in range(1, m + 1)), some])


# --- the oracle: dense arrays of floats ------------------------------------------------------------


def logistic(x):
    return 1 / (1 + np.exp(-x))


def dense_law(machine, x, confidence):
    """Return P(x' | x) of one step of block Gibbs for every world x', summed over every hidden state."""
    weights = machine.weights.toarray()
    on = logistic(confidence * (np.asarray(x) @ weights + machine.hidden_bias))
    worlds = np.array(list(product([0.0, 1.0], repeat=len(machine.atoms))))
    law = np.zeros(len(worlds))
    for h in product([0.0, 1.0], repeat=machine.hidden):
        chance = np.prod(np.where(h, on, 1 - on))
        lean = logistic(confidence * (weights @ h))
        law += chance * np.where(worlds, lean, 1 - lean).prod(axis=1)
    return law


def dense_scheme(machine, formula, rng, *, confidence, size):
    """Return the samples and rounds that the scheme of ERRATA 9 takes, told in rows of floats."""
    weights, bias = machine.weights.toarray(), machine.hidden_bias
    worlds = list(product([0.0, 1.0], repeat=len(machine.atoms)))
    models = {x for x in worlds if truth(formula, dict(zip(machine.atoms, map(bool, x), strict=True)))}
    rows, found = [(0.5,) * len(machine.atoms)], set()
    samples = rounds = 0
    while found < models:
        now = np.array(rows + sorted(found))
        h = rng.random((len(now), len(bias))) < logistic(confidence * (now @ weights + bias))
        x = rng.random(now.shape) < logistic(confidence * (h @ weights.T))
        new = {tuple(row) for row in x.astype(float).tolist()}
        samples, rounds = samples + len(now), rounds + 1
        found |= new & models
        rows = sorted(new | set(rows))[:size]
    return samples, rounds


def words_of(worlds):
    """Return worlds as words, written and read as text in base two."""
    return np.array([int("".join(str(int(v)) for v in x).ljust(64, "0"), 2) for x in worlds], np.uint64)


# --- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("atoms", [1, 3, 8, 9, 33, 64])
def test_words_order_worlds_lexicographically_with_false_first(atoms):
    worlds = np.random.default_rng(atoms).random((200, atoms)) < 0.5
    words = pack_words(worlds)
    np.testing.assert_array_equal(words, words_of(worlds))
    assert worlds[np.argsort(words, kind="stable")].tolist() == sorted(worlds.tolist())


@pytest.mark.parametrize("text", ["a -> b & c", "a ^ b ^ c", "(a & b) | (c & ~d)", "exactly(2, a, b, c, d)"])
def test_missed_literals_give_the_inputs_of_hidden_units(text):
    """s_j(x) = w(ε - missed) on every world."""
    machine = translate(parse(text), epsilon=0.3)
    cubes = word_cubes(machine)
    worlds = list(product([0, 1], repeat=len(machine.atoms)))
    inputs = np.array(worlds) @ machine.weights.toarray() + machine.hidden_bias
    np.testing.assert_allclose(cubes.weight * (0.3 - cubes.missed(words_of(worlds)).astype(float)), inputs)


@pytest.mark.parametrize("confidence", [0.7, 5.0])
@pytest.mark.parametrize("text", ["a & b & (c | d)", "a ^ b", "a -> b", "atleast(2, a, b, c)"])
def test_a_step_of_words_has_the_law_of_the_dense_machine(text, confidence):
    """20,000 steps from every world: counts within 4.5 standard errors, Pearson's sum of all within four."""
    rng = np.random.default_rng(1)
    machine = translate(parse(text))
    cubes, n, draws = word_cubes(machine), len(machine.atoms), 20_000
    excess = []
    for x in product([0, 1], repeat=n):
        law = dense_law(machine, x, confidence)
        start = np.full(draws, words_of([x])[0])
        after = word_step(cubes, start, rng, confidence=confidence)
        counts = np.bincount((after >> np.uint64(64 - n)).astype(int), minlength=1 << n)
        assert counts.sum() == draws
        assert (abs(counts - draws * law) <= 4.5 * np.sqrt(draws * law * (1 - law)) + 3).all()
        excess.append(((counts - draws * law) ** 2 / (draws * law)).sum() - (len(law) - 1))
    # Pearson's sums have mean len(law) - 1, and a variance of 2(len(law) - 1) that rare worlds raise.
    rare = sum((1 / (draws * dense_law(machine, x, confidence))).sum() for x in product([0, 1], repeat=n))
    assert abs(sum(excess)) < FOUR_STANDARD_ERRORS * np.sqrt(2 * (len(law) - 1) * len(excess) + rare)


def test_rows_step_apart_from_each_other():
    """A model and a world far from any, side by side, keep their own laws."""
    machine = translate(phi(6, 1))
    cubes = word_cubes(machine)
    pair = words_of([(1,) * 7, (0,) * 7])
    after = word_step(cubes, np.tile(pair, 4000), np.random.default_rng(2), confidence=5.0)
    stays = (after == pair[0]).reshape(4000, 2).mean(axis=0)
    for found, x in zip(stays, [(1,) * 7, (0,) * 7], strict=True):
        chance = dense_law(machine, x, 5.0)[-1]
        assert abs(found - chance) <= FOUR_STANDARD_ERRORS * np.sqrt(chance * (1 - chance) / 4000)


# --- the scheme ------------------------------------------------------------------------------------


def compare(m, n, confidence, size, runs):
    """Return runs by words and by dense rows: two arrays of (samples, rounds), shape (runs, 2)."""
    machine, formula = translate(phi(m, n)), phi(m, n)
    ours, dense = [], []
    for run in range(runs):
        found = cover(machine, formula, np.random.default_rng([0, run]), confidence=confidence, size=size)
        assert found.coverage == found.accuracy == 1.0
        ours.append((found.samples, found.rounds))
        rng = np.random.default_rng([1, run])
        dense.append(dense_scheme(machine, formula, rng, confidence=confidence, size=size))
    return np.array(ours, float), np.array(dense, float)


@pytest.mark.parametrize(
    ("m", "n", "confidence", "size", "runs"),
    [
        (3, 4, 5.0, 500, 300),  # the pool is never cut
        (4, 3, 5.0, 20, 300),  # it is cut in every round
        (2, 2, 2.0, 1, 300),  # one row, at first the row of ½
        (7, 2, 20.0, 16, 150),  # no unit fires: rounds are taken many at a time
    ],
)
def test_the_scheme_takes_as_many_samples_and_rounds_as_its_dense_telling(m, n, confidence, size, runs):
    """Means and, by their logarithms, medians of two sets of runs, within four standard errors."""
    ours, dense = compare(m, n, confidence, size, runs)
    for transform in (np.asarray, np.log):
        a, b = transform(ours), transform(dense)
        error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / runs)
        assert (abs(a.mean(axis=0) - b.mean(axis=0)) <= FOUR_STANDARD_ERRORS * error).all()


def test_rounds_taken_many_at_a_time_do_happen_above(monkeypatch):
    seen = []
    monkeypatch.setattr(pool._Scheme, "_quiet_rounds", spy(pool._Scheme._quiet_rounds, seen))
    for run in range(20):
        cover(translate(phi(7, 2)), phi(7, 2), np.random.default_rng([0, run]), confidence=20.0, size=16)
    assert len(seen) >= 5


@pytest.mark.parametrize("confidence", [5.0, 20.0])
def test_rounds_are_taken_many_at_a_time_only_where_no_unit_can_fire(confidence):
    """Up to the largest word of a quiet pool no unit is on with a probability of 2^-53 or more."""
    machine = translate(phi(9, 2))
    worlds = np.array(list(product([0, 1], repeat=11)))
    inputs = worlds @ machine.weights.toarray() + machine.hidden_bias
    most = np.maximum.accumulate(logistic(confidence * inputs).max(axis=1))  # over all words up to each
    cubes = word_cubes(machine)
    judge = pool._models_of(cubes, phi(9, 2))
    scheme = pool._Scheme(cubes, *judge, np.random.default_rng(0), confidence, False, 500, None)
    quiet = np.array([scheme._quiet(word) for word in words_of(worlds)])
    assert quiet[0]
    assert (most[quiet] < 2**-53).all()
    assert not quiet[most >= 2**-53].any()


def spy(function, seen):
    def watched(self, number):
        seen.append(number)
        return function(self, number)

    return watched


@pytest.mark.parametrize(("m", "n", "mean"), [(3, 4, 241), (4, 5, 783)])
def test_small_formulae_take_the_samples_of_the_authors_logs(m, n, mean):
    """Their averages over 100 runs, within 15 %: 300 of ours have a standard error of 2.5 %. [ERRATA 9]"""
    machine, formula = translate(phi(m, n)), phi(m, n)
    taken = [cover(machine, formula, np.random.default_rng([m, n, run])).samples for run in range(300)]
    assert np.mean(taken) == pytest.approx(mean, rel=0.15)


def test_a_large_formula_waits_for_its_first_model_as_long_as_fair_coins_do():
    """The first model comes after 2^13 samples on average, with the spread of a geometric number."""
    machine, formula = translate(phi(12, 1)), phi(12, 1)
    found = [cover(machine, formula, np.random.default_rng([5, run]), confidence=30.0) for run in range(200)]
    # It is counted to the end of its round, at most 500 rows late and half of that on average.
    waited = np.array([run.samples for run in found]) - 250
    error = 2**13 / np.sqrt(200)
    assert abs(waited.mean() - 2**13) <= FOUR_STANDARD_ERRORS * error + 250
    assert all(run.curve.tolist() == [[run.samples, 1]] for run in found)


def test_models_may_be_given_as_words_or_as_their_formula():
    formula = exactly(2, *map(atom, "abcde"))
    machine = translate(formula)
    worlds = [x for x in product([0, 1], repeat=5) if sum(x) == 2]
    by_formula = cover(machine, formula, np.random.default_rng(3))
    by_words = cover(machine, np.sort(words_of(worlds)), np.random.default_rng(3))
    np.testing.assert_array_equal(by_formula.found, np.sort(words_of(worlds)))
    np.testing.assert_array_equal(by_words.found, by_formula.found)
    assert by_words.samples == by_formula.samples
    assert by_formula.models == 10


def test_the_curve_rises_to_all_models_at_the_last_sample():
    found = cover(translate(phi(4, 5)), phi(4, 5), np.random.default_rng(4))
    samples, seen = found.curve.T
    assert (np.diff(samples) > 0).all()
    assert (np.diff(seen) > 0).all()
    assert (samples[-1], seen[-1]) == (found.samples, 31)


@pytest.mark.parametrize(("m", "confidence", "size"), [(10, 5.0, 50), (30, 5.0, 500), (12, 20.0, 10)])
def test_a_limit_ends_the_run_with_the_round_that_reaches_it(m, confidence, size):
    formula, limit = phi(m, 2), 400_001 if m == 30 else 301
    found = cover(
        translate(formula), formula, np.random.default_rng(5), confidence=confidence, size=size, limit=limit
    )
    assert found.coverage < 1
    assert limit <= found.samples < limit + size + found.models


@pytest.mark.parametrize(("atoms", "sound"), [(8, True), (9, False)])
def test_the_papers_rule_takes_nine_near_misses_for_a_model_and_the_rank_energy_does_not(atoms, sound):
    """In the all-false world every cube of exactly-one misses one literal; c = 3. [ERRATA 4]"""
    formula = exactly(1, *(atom(f"a{i}") for i in range(atoms)))
    machine = translate(formula)
    by_rule = {"rank": [], "free energy": []}
    for rule, found in by_rule.items():
        for run in range(10):
            rng = np.random.default_rng([6, run])
            found.append(cover(machine, formula, rng, confidence=3.0, accept=rule))
    assert all(run.accuracy == run.coverage == 1 for run in by_rule["rank"])
    assert all(run.coverage == 1 for run in by_rule["free energy"])
    assert all(run.accuracy == 1 for run in by_rule["free energy"]) == sound


def test_a_world_that_the_papers_rule_took_for_a_model_is_not_among_those_found():
    formula = exactly(1, *(atom(f"a{i}") for i in range(9)))
    machine = translate(formula)
    worlds = np.array(list(product([0, 1], repeat=9)))
    passing = worlds[machine.free_energy(worlds, confidence=3.0) <= -np.log1p(np.exp(1.5))]
    assert sorted(passing.sum(axis=1).tolist()) == [0] + [1] * 9
    found = cover(
        machine, formula, np.random.default_rng(7), confidence=3.0, accept="free energy", limit=10**5
    )
    np.testing.assert_array_equal(found.found, np.sort(words_of(worlds[worlds.sum(axis=1) == 1])))


@pytest.mark.parametrize("m", [9, 12])
def test_both_rules_take_the_same_path_where_near_misses_are_few(m):
    """Also through rounds that are taken many at a time."""
    machine, formula = translate(phi(m, 2)), phi(m, 2)
    for run in range(5):
        rank, leaky = (
            cover(machine, formula, np.random.default_rng([8, run]), confidence=20.0, size=16, accept=rule)
            for rule in ("rank", "free energy")
        )
        assert (rank.samples, rank.rounds, rank.accepted) == (leaky.samples, leaky.rounds, leaky.accepted)


def test_no_model_is_no_work():
    found = cover(translate(atom("a") & ~atom("a")), FALSE, np.random.default_rng(0))
    assert (found.samples, found.rounds, found.models, found.coverage) == (0, 0, 0, 1.0)
    assert np.isnan(found.accuracy)
    assert isinstance(found, PoolRun)


# --- what is refused -------------------------------------------------------------------------------


def by_hand(weights, hidden_bias, visible_bias=None):
    from scipy.sparse import csc_array

    weights = np.array(weights, float)
    visible = np.zeros(len(weights)) if visible_bias is None else np.array(visible_bias)
    return Machine(tuple("abcd"[: len(weights)]), csc_array(weights), visible, np.array(hidden_bias, float))


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (translate(Theory([(2, "a"), (3, "a & b")])), "units of one weight"),
        (by_hand([[1.0], [1.0]], [-1.0]), "units of one weight"),
        (by_hand([[1.0], [1.0]], [-1.5], [0.0, 0.1]), "without bias"),
        (translate(phi(60, 5)), "1 to 64 atoms"),
        (translate(Theory([])), "1 to 64 atoms"),
        (translate(parse("(a & b) | (c & d) | (e & f)"), budget=3), "without definitional atoms"),
    ],
)
def test_machines_that_words_cannot_tell_are_refused(machine, said):
    with pytest.raises(ValueError, match=said):
        word_cubes(machine)


def test_64_atoms_fill_a_word():
    cubes = word_cubes(translate(phi(63, 1)))
    after = word_step(cubes, np.full(2000, 2**64 - 1, np.uint64), np.random.default_rng(9), confidence=30.0)
    assert set(after.tolist()) == {2**64 - 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 0}, "confidence must be a positive number"),
        ({"confidence": np.nan}, "confidence must be a positive number"),
        ({"accept": "luck"}, "among rank, free energy"),
        ({"size": 0}, "rows from 1 up"),
    ],
)
def test_impossible_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        cover(translate(phi(2, 1)), phi(2, 1), np.random.default_rng(0), **options)


def test_models_that_are_not_the_machines_are_refused():
    machine, rng = translate(phi(2, 1)), np.random.default_rng(0)
    with pytest.raises((ValueError, LbmError), match="'z'"):
        cover(machine, atom("z"), rng)
    for wrong in (
        np.array([3, 2], np.uint64),
        np.array([2, 2], np.uint64),
        np.array([1.0]),
        np.zeros((1, 1), np.uint64),
    ):
        with pytest.raises(ValueError, match="distinct, sorted words"):
            cover(machine, wrong, rng)
