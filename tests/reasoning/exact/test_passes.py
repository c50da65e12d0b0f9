"""Every pass over a circuit against enumeration in exact arithmetic."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import NoAnswer
from lbm.knowledge.circuits import Builder
from lbm.reasoning.budget import SPENT
from lbm.reasoning.exact.compile import compile_clauses
from lbm.reasoning.exact.passes import Passes
from tests.reasoning.exact.test_compile import Clauses, models, problems

World = tuple[bool, ...]

pytestmark = pytest.mark.usefixtures("both_loops")


def weight_of(world: World, weights: list[list[Fraction]]) -> Fraction:
    return math.prod((weights[v][value] for v, value in enumerate(world)), start=Fraction(1))


def literal_weights(draw: st.DrawFn, number: int, weights: st.SearchStrategy[float]) -> np.ndarray:
    return np.array(
        draw(st.lists(st.tuples(weights, weights), min_size=number, max_size=number)), float
    ).reshape(number, 2)


ORDINARY = st.sampled_from([0.0, 1.0, 0.25, 3.0, 1e-3, 0.7])
EXTREME = st.sampled_from([0.0, 1.0, 1e-300, 1e300, 5e-324, 1.7e308, 2.0**-500, 1e-30])


@st.composite
def weighted(draw: st.DrawFn) -> tuple[Clauses, int, np.ndarray]:
    """A problem and some rows of weights, some of them beyond what products of floats can hold."""
    clauses, number = draw(problems(6))
    kind = draw(st.sampled_from([ORDINARY, EXTREME]))
    rows = [literal_weights(draw, number, kind) for _ in range(draw(st.integers(1, 3)))]
    return clauses, number, np.array(rows)


def logarithm(number: Fraction) -> float:
    """Return the natural logarithm of a fraction of any size."""
    if not number:
        return -math.inf
    shift = number.numerator.bit_length() - number.denominator.bit_length()
    return math.log(float(number / Fraction(2) ** shift)) + shift * math.log(2)


@given(problems(), st.data())
def test_counts_are_exact_for_whole_weights_of_any_size(
    problem: tuple[Clauses, int], data: st.DataObject
) -> None:
    clauses, number = problem
    passes = Passes(compile_clauses(clauses, number))
    found = models(clauses, number)
    assert passes.count() == len(found)
    whole = st.integers(-3, 3) | st.integers(-(10**40), 10**40)
    weights = data.draw(st.lists(st.tuples(whole, whole), min_size=number, max_size=number))
    exact = [[Fraction(weight) for weight in pair] for pair in weights]
    assert passes.count(weights) == sum(weight_of(world, exact) for world in found)


@given(problems())
def test_all_models_are_listed_once(problem: tuple[Clauses, int]) -> None:
    clauses, number = problem
    passes = Passes(compile_clauses(clauses, number))
    expected = models(clauses, number)
    found = passes.models(len(expected))
    assert found is not None
    assert sorted(map(tuple, found.tolist())) == sorted(expected)
    assert not expected or passes.models(len(expected) - 1) is None


@given(weighted())
def test_log_sums_and_marginals_are_those_of_enumeration(problem: tuple[Clauses, int, np.ndarray]) -> None:
    clauses, number, weights = problem
    passes = Passes(compile_clauses(clauses, number))
    found = models(clauses, number)
    totals, chances = passes.marginals(weights)
    np.testing.assert_array_equal(totals, passes.log_sum(weights))
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    again, likewise = passes.marginals(logs, logs=True)
    np.testing.assert_allclose(again, totals, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(likewise, chances, atol=1e-11)
    np.testing.assert_array_equal(again, passes.log_sum(logs, logs=True))
    for row, total, chance in zip(weights, totals, chances, strict=True):
        exact = [[Fraction(float(weight)) for weight in pair] for pair in row]
        masses = {world: weight_of(world, exact) for world in found}
        mass = sum(masses.values(), Fraction(0))
        if not mass:
            assert total == -math.inf
            assert np.isnan(chance).all()
            continue
        assert total == pytest.approx(logarithm(mass), rel=1e-12, abs=1e-12)
        for v in range(number):
            part = sum((weight for world, weight in masses.items() if world[v]), Fraction(0))
            assert chance[v] == pytest.approx(float(part / mass), abs=1e-11)
            assert part or not chance[v]  # what is impossible has no chance at all


@given(weighted())
def test_a_batch_is_its_rows_one_by_one(problem: tuple[Clauses, int, np.ndarray]) -> None:
    clauses, number, weights = problem
    passes = Passes(compile_clauses(clauses, number))
    together = passes.marginals(weights)
    alone = [passes.marginals(row[None]) for row in weights]
    np.testing.assert_allclose(together[0], [total[0] for total, _ in alone], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(together[1], [chance[0] for _, chance in alone], rtol=1e-12, atol=1e-12)


@given(weighted())
def test_marginals_are_the_slope_of_the_log_sum(problem: tuple[Clauses, int, np.ndarray]) -> None:
    """∂ log Z / ∂ log w(v true) = P(v)."""
    clauses, number, _ = problem
    passes = Passes(compile_clauses(clauses, number))
    weights = np.random.default_rng(0).uniform(0.5, 2, (1, number, 2))
    total, chances = passes.marginals(weights)
    if total[0] == -math.inf:
        return
    step = 1e-5
    for v in range(number):
        up, down = weights.copy(), weights.copy()
        up[0, v, 1] *= math.exp(step)
        down[0, v, 1] *= math.exp(-step)
        slope = (passes.log_sum(up) - passes.log_sum(down)) / (2 * step)
        assert slope[0] == pytest.approx(chances[0, v], abs=1e-8)


@given(problems(), st.data())
def test_the_best_models_are_those_of_a_sorted_list(
    problem: tuple[Clauses, int], data: st.DataObject
) -> None:
    clauses, number = problem
    passes = Passes(compile_clauses(clauses, number))
    whole = st.integers(-2, 2) | st.integers(-(10**30), 10**30)
    scores = data.draw(st.lists(st.tuples(whole, whole), min_size=number, max_size=number))
    found = {
        world: sum(scores[v][value] for v, value in enumerate(world)) for world in models(clauses, number)
    }
    peak = passes.best(scores)
    most = data.draw(st.integers(1, 6))
    top = passes.top(scores, most)
    if not found:
        assert peak is None
        assert top == []
        return
    assert peak is not None
    assert peak.score == max(found.values()) == found[peak.world]
    assert peak.ties == list(found.values()).count(peak.score)
    assert [score for score, _ in top] == sorted(found.values(), reverse=True)[:most]
    assert all(found[world] == score for score, world in top)
    assert len({world for _, world in top}) == len(top)


@given(problems(), st.data())
def test_the_best_of_each_row_is_the_best_by_enumeration(
    problem: tuple[Clauses, int], data: st.DataObject
) -> None:
    clauses, number = problem
    passes = Passes(compile_clauses(clauses, number))
    kinds = st.sampled_from([0.0, 1.0, -2.5, 3.25, -math.inf])
    scores = np.array([literal_weights(data.draw, number, kinds) for _ in range(3)])
    best, worlds = passes.best_of(scores)
    for row, score, world in zip(scores, best, worlds, strict=True):
        found = {
            world: sum(float(row[v, int(value)]) for v, value in enumerate(world))
            for world in models(clauses, number)
        }
        assert score == max(found.values(), default=-math.inf)
        if score > -math.inf:
            assert found[tuple(world.tolist())] == score


@given(problems(5))
def test_draws_are_models_and_as_likely_as_their_weights(problem: tuple[Clauses, int]) -> None:
    clauses, number = problem
    found = sorted(models(clauses, number))
    if not found:
        return
    passes = Passes(compile_clauses(clauses, number))
    rng = np.random.default_rng(1)
    for weights in (None, rng.integers(0, 3, (number, 2)) + np.eye(2)[rng.integers(0, 2, number)]):
        exact = [[Fraction(1)] * 2] * number
        if weights is not None:
            exact = [[Fraction(float(w)) for w in pair] for pair in weights]
        masses = [float(weight_of(world, exact)) for world in found]
        if not sum(masses):
            continue
        size = 4000
        drawn = Counter(map(tuple, passes.draw(size, rng, weights).tolist()))
        assert set(drawn) <= set(found)
        for world, mass in zip(found, masses, strict=True):
            chance = mass / sum(masses)
            error = math.sqrt(chance * (1 - chance) / size)
            assert abs(drawn[world] / size - chance) <= 6 * error + 1e-12


@pytest.mark.parametrize("number", [10, 65, 129, 1000])
def test_chains_of_any_length_have_their_counts_marginals_and_best_worlds(number: int) -> None:
    """x1 → x2 → ... has number + 1 models; the last k atoms are true in one of them each."""
    passes = Passes(compile_clauses([[-i, i + 1] for i in range(1, number)], number))
    assert passes.count() == number + 1
    total, chances = passes.marginals(np.ones((2, number, 2)))
    assert total == pytest.approx([math.log(number + 1)] * 2)
    np.testing.assert_allclose(chances, [np.arange(1, number + 1) / (number + 1)] * 2, rtol=1e-9)
    peak = passes.best([(0, -1)] * (number // 2) + [(0, 1)] * (number - number // 2))
    assert peak is not None
    assert peak[:2] == (number - number // 2, 1)
    assert sum(peak.world) == number - number // 2
    drawn = passes.draw(100, np.random.default_rng(0))
    assert (np.diff(drawn.astype(int), axis=1) >= 0).all()


def test_numbers_too_small_for_floats_are_worked_out_as_logarithms() -> None:
    """2,000 rare atoms, of which one at least is true: e^-13,815 and smaller."""
    number = 1000
    passes = Passes(compile_clauses([[-i, i + 1] for i in range(1, number)], number))
    weights = np.tile([0.0, 1e-6], (number, 1))
    total, chances = passes.marginals(np.array([weights, np.ones((number, 2))]))
    assert total[0] == pytest.approx(number * math.log(1e-6))
    assert (chances[0] == 1).all()
    weights[:, 0] = 1.0
    weights[-1, 0] = 0.0
    total, chances = passes.marginals(weights[None])
    assert total[0] == pytest.approx(math.log(1e-6) + math.log1p(1e-6))
    assert chances[0, :-1] == pytest.approx([1e-6 ** (number - 1 - i) for i in range(number - 1)], abs=1e-15)


def test_what_rounding_leaves_is_no_chance() -> None:
    """An atom that is false in each of many parts, and not mentioned in one that evidence rules out."""
    number = 12
    build = Builder(number + 1)
    for seed in range(30):
        parts = [
            build.product(
                [build.literal(v, False) for v in range(k)]
                + [build.literal(k, True), build.literal(number, False)]
            )
            for k in range(number)
        ]
        parts.append(build.product(build.literal(v, False) for v in range(number)))
        passes = Passes(build.circuit(build.sum(parts)))
        weights = np.random.default_rng(seed).uniform(0.01, 1, (1, number + 1, 2))
        weights[0, number - 1, 0] = 0.0
        assert passes.marginals(weights)[1][0, number] == 0.0


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("variables", [0, 2])
def test_constants_and_single_literals_are_circuits_too(variables: int, value: bool) -> None:
    build = Builder(variables)
    passes = Passes(build.circuit(build.true if value else build.false))
    assert passes.count() == value * 2**variables
    totals, chances = passes.marginals(np.ones((2, variables, 2)))
    assert totals == pytest.approx([variables * math.log(2) if value else -math.inf] * 2)
    if value:
        assert chances == pytest.approx(np.full((2, variables), 0.5))
        assert passes.draw(7, np.random.default_rng(0)).shape == (7, variables)
        assert passes.best([(0, 0)] * variables)[:2] == (0, 2**variables)  # type: ignore[index]
    if variables:
        passes = Passes(build.circuit(build.literal(1, value)))
        assert passes.count([(2, 3), (5, 7)]) == 5 * (7 if value else 5)
        assert passes.marginals(np.ones((1, 2, 2)))[1].tolist() == [[0.5, float(value)]]
        assert (passes.draw(20, np.random.default_rng(0))[:, 1] == value).all()


def test_sums_of_parts_that_mention_other_variables_and_wide_gates_are_right() -> None:
    """At least one of n, as a sum of n products of different lengths: far from smooth."""
    for number in (3, 9, 70, 700):
        build = Builder(number)
        first = [
            build.product([build.literal(v, False) for v in range(k)] + [build.literal(k, True)])
            for k in range(number)
        ]
        passes = Passes(build.circuit(build.sum(first)))
        assert passes.count() == 2**number - 1
        total, chances = passes.marginals(np.ones((3, number, 2)))
        assert total == pytest.approx([number * math.log(2) + math.log1p(-(0.5**number))] * 3)
        assert chances == pytest.approx(np.full((3, number), 0.5 / (1 - 0.5**number)))
        assert passes.best([(1, 0)] * number)[:2] == (number - 1, number)  # type: ignore[index]


def test_a_pass_that_is_out_of_time_says_so() -> None:
    passes = Passes(compile_clauses([[1, 2]], 2))
    ones = np.ones((1, 2, 2))
    for ask in (
        lambda: passes.count(budget=SPENT),
        lambda: passes.log_sum(ones, budget=SPENT),
        lambda: passes.marginals(ones, budget=SPENT),
        lambda: passes.best([(0, 1)] * 2, budget=SPENT),
        lambda: passes.best_of(ones, budget=SPENT),
        lambda: passes.draw(1, np.random.default_rng(0), budget=SPENT),
    ):
        with pytest.raises(NoAnswer):
            ask()
