"""Answers from chains: those that call themselves converged are as good as they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chisquare

import lbm
from lbm.errors import NoAnswer, TooManyWorlds, WrongDistribution
from lbm.knowledge.formula import atom, conjunction, disjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning.assign import assign
from lbm.reasoning.exact import trees
from lbm.reasoning.exact.apart import assume, take_apart
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.sampling import estimates, targets
from lbm.reasoning.sampling.diagnostics import wilson
from lbm.reasoning.sampling.runs import MOST, Limits
from lbm.reasoning.solvers import aside
from tests.oracles import Oracle
from tests.reference.intervals import jeffreys

REPETITIONS = 500


def target_of(theory, query, evidence=None, temperature=1.0, seed=0):
    split = take_apart(theory)
    split = split if evidence is None else assume(split, evidence)
    made = targets.logical(split, query, temperature, np.random.default_rng(seed))
    return made, assign(query, split.fixed)


def covered(target, query, expected, repetitions, most=MOST):
    """Return how many repetitions converged, how many of these have the truth in their interval, and how many
    would have it if states of chains were taken for independent draws.
    """
    converged = inside = naive = 0
    for seed in range(repetitions):
        found, _ = estimates.ask(target, query, np.random.default_rng(seed), Limits(most=most))
        if found.converged:
            converged += 1
            inside += found.low <= expected <= found.high
            states = found.chains * found.draws * found.kept
            low, high = wilson(found.probability * states, states)
            naive += low <= expected <= high
    return converged, inside, naive


MIXING = {
    "hard clauses": (Theory(["a | b", "a -> c", "c -> d", "b | d"]), "c & d", None),
    "soft and evidence": (Theory(["a | b | c", (2, "a -> ~b"), ("0.7", "c"), (-1, "a ^ c")]), "a", "b | c"),
    "an equivalence": (Theory([(1, "a <-> b"), (1, "b <-> c"), ("0.5", "a")]), "c", None),
    "a stiff equivalence": (Theory([(2, "a <-> b"), (1, "b <-> c"), ("0.5", "a")]), "c", None),
    "exactly two": (Theory(["exactly(2, a, b, c, d, e)", (1, "a & b"), (-1, "c")]), "a ^ c", None),
    "a shallow hole": (Theory([(3, "a & b & c & d & e")]), "a", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXING)
def test_intervals_of_converged_chains_cover_the_truth_as_often_as_they_say(name):
    theory, asked, given = MIXING[name]
    query, evidence = parse(asked), None if given is None else parse(given)
    expected = Oracle(theory, evidence).chance(query)
    target, left = target_of(theory, query, evidence)
    converged, inside, _ = covered(target, left, expected, REPETITIONS)
    assert converged > REPETITIONS / 2
    assert 0.92 <= inside / converged <= 0.98


def two_wells(weight, atoms):
    """All true is worth ``weight``; so is nothing else: a hole that no chain finds by falling."""
    return Theory([(weight, conjunction(atom(f"x{i}") for i in range(atoms)))])


FROZEN = {
    "a hole": (two_wells(40, 26), "x0 & x1"),
    "far apart": (Theory([(25, "a & b & c & d"), (24, "~a & ~b & ~c & ~d & (e | ~f)")]), "a"),
}


@pytest.mark.parametrize("name", FROZEN)
def test_chains_that_never_leave_their_well_do_not_call_themselves_converged(name):
    theory, asked = FROZEN[name]
    for seed in range(3):
        answer = lbm.ask(theory, asked, method="collapsed", seed=seed, sweeps=1024)
        assert not answer.converged
        assert "NOT CONVERGED" in str(answer)


TOGETHER = {
    "twins": (Theory([(40, f"x{i} <-> x{i + 1}") for i in range(6)]), "x0"),
    "unequal twins": (Theory([*((40, f"x{i} <-> x{i + 1}") for i in range(6)), (1, "x3")]), "x6"),
    "one of three": (Theory(["exactly(1, a, b, c)", "a -> d", (1, "b ^ d")]), "c"),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_atoms_that_belong_together_flip_together(name):
    theory, asked = TOGETHER[name]
    answer = lbm.ask(theory, asked, method="collapsed", seed=0)
    assert answer.converged
    assert abs(answer.probability - Oracle(theory).chance(parse(asked))) < 0.03


def test_wells_that_chains_do_not_leave_are_left_by_way_of_the_heat():
    theory, query = FROZEN["far apart"][0], parse("a")
    expected = Oracle(theory).chance(query)
    answer = lbm.ask(theory, query, method="tempered", seed=0)
    assert answer.converged
    low, high = answer.interval
    assert abs(answer.probability - expected) < 2.2 * (high - low) / 2  # four standard errors and a bit
    with pytest.raises(WrongDistribution, match="logical"):
        lbm.ask(theory, query, method="tempered", distribution="machine")


def test_chains_that_do_not_agree_are_tempered_without_being_asked(monkeypatch):
    monkeypatch.setattr(Exact, "probability", too_much)
    monkeypatch.setattr(aside, "ganak_installed", lambda: False)
    monkeypatch.setattr(trees, "MAX_ENTRIES", 0)
    theory = FROZEN["far apart"][0]
    answer = lbm.ask(theory, "a", seed=0)
    assert answer.converged
    assert "plain chains did not agree" in answer.note
    assert abs(answer.probability - Oracle(theory).chance(parse("a"))) < 0.1


def too_much(*_, **__):
    raise TooManyWorlds("too much", MAX_WORLDS=1)


def test_chains_from_random_starts_alone_would_agree_on_a_wrong_answer():
    """Why some chains start where a solver found each heavy formula true: without these all miss the hole."""
    theory, asked = FROZEN["a hole"]
    query = parse(asked)
    assert lbm.ask(theory, query).probability > 0.99
    target, left = target_of(theory, query)
    naive = replace(target, starts=target.starts[:, :0], places=())
    found, _ = estimates.ask(naive, left, np.random.default_rng(0), Limits(1024))
    assert found.converged
    assert found.high < 0.3


def test_wells_that_chains_do_leave_are_weighed_rightly_or_not_at_all():
    theory, query = two_wells(3, 5), parse("x0")
    expected = Oracle(theory).chance(query)
    target, left = target_of(theory, query)
    converged, inside, _ = covered(target, left, expected, 20)
    # As few as one in a thousand runs of 95 % intervals would have fewer inside than this.
    assert inside >= binom.ppf(0.001, converged, 0.95)


WELLS = {
    "a hole": (two_wells("3.5", 5), "x0", 1024),
    "two holes": (Theory([(3, "a & b & c & d"), ("2.5", "~a & ~b & ~c & ~d")]), "a", 1024),
    "nothing else": (Theory(["(a & b & c & d & e & f) | ~(a | b | c | d | e)", ("0.5", "a")]), "b", 512),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WELLS)
def test_wells_that_chains_seldom_leave_are_weighed_as_surely_as_said_or_not_at_all(name):
    """In these sweeps not all runs converge: the hardest case, for those that do might be the lucky ones.

    Whoever took states for independent draws would be sure, and wrong far more often than 1 time in 20.
    """
    theory, asked, most = WELLS[name]
    query = parse(asked)
    expected = Oracle(theory).chance(query)
    target, left = target_of(theory, query)
    converged, inside, naive = covered(target, left, expected, REPETITIONS, most)
    assert 100 <= converged < REPETITIONS
    assert 0.92 <= inside / converged <= 0.98
    assert naive / converged < 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("weight", "atoms"), [(6, 8), (9, 8), (12, 14)])
def test_wells_too_deep_to_leave_in_the_sweeps_allowed_are_never_called_converged(weight, atoms):
    target, query = target_of(two_wells(weight, atoms), parse("x0"))
    for seed in range(20):
        found, _ = estimates.ask(target, query, np.random.default_rng(seed), Limits(1024))
        assert not found.converged


@pytest.mark.parametrize("interval", [wilson, jeffreys])
def test_intervals_of_independent_draws_cover_the_truth_as_often_as_they_say(interval):
    theory, query = Theory(["a | b", (1, "a -> c"), (2, "b ^ c")]), parse("a & c")
    expected = Oracle(theory).chance(query)
    inside = 0
    for seed in range(REPETITIONS):
        drawn = lbm.sample(theory, 400, seed=seed)
        assert drawn.independent
        low, high = interval(int((drawn.array[:, 0] & drawn.array[:, 2]).sum()), 400)
        inside += low <= expected <= high
    assert 0.92 <= inside / REPETITIONS <= 0.98


def phi(m, n):
    body = [atom(f"x{i}") for i in range(m)]
    return Theory([conjunction([*body, disjunction(atom(f"y{j}") for j in range(n))])])


def about_a_thousand_models():
    """Return a random 3-CNF of 20 atoms with about 1,000 models."""
    rng = np.random.default_rng(3)
    clauses = []
    while True:
        chosen = rng.choice(20, 3, replace=False)
        signs = rng.integers(0, 2, 3)
        clauses.append(
            disjunction(
                atom(f"x{i}") if sign else ~atom(f"x{i}") for i, sign in zip(chosen, signs, strict=True)
            )
        )
        theory = Theory(clauses, atoms=[f"x{i}" for i in range(20)])
        if len(clauses) > 40 and lbm.count(theory) < 1300:
            return theory


@pytest.mark.parametrize("make", [lambda: phi(20, 10), about_a_thousand_models], ids=["phi", "random 3-CNF"])
def test_draws_that_are_called_uniform_are(make):
    theory = make()
    number = lbm.count(theory)
    assert 500 < number < 1300
    drawn = lbm.sample(theory, 50 * number, seed=0)
    assert drawn.independent
    _, counts = np.unique(np.packbits(drawn.array, axis=1), axis=0, return_counts=True)
    assert len(counts) == number
    assert chisquare(counts).pvalue > 1e-4


def test_states_of_chains_are_models_and_do_not_call_themselves_uniform():
    theory = Theory(["a | b | c", "a -> d", "exactly(1, c, d, e)"])
    drawn = lbm.sample(theory, 2000, method="collapsed", seed=0)
    assert not drawn.independent
    assert "not independent draws" in repr(drawn)
    assert all(theory.is_model(world) for world in drawn)
    models = lbm.models(theory)
    _, counts = np.unique(np.packbits(drawn.array, axis=1), axis=0, return_counts=True)
    assert len(counts) == len(models)
    assert np.abs(drawn.array.mean(axis=0) - models.array.mean(axis=0)).max() < 4 * math.sqrt(0.25 / 400)


@pytest.mark.parametrize("method", ["auto", "collapsed", "tempered", "gibbs"])
@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_worlds_are_drawn_whatever_the_number_of_atoms(method, atoms):
    theory = Theory([f"x{i} | x{i + 1}" for i in range(atoms - 1)])
    asked = {"distribution": "machine", "confidence": 1.0} if method == "gibbs" else {}
    drawn = lbm.sample(theory, 20, method=method, seed=0, sweeps=None if method == "auto" else 256, **asked)
    assert drawn.array.shape == (20, atoms)
    if method != "gibbs":
        assert all(theory.is_model(world) for world in drawn)


@pytest.mark.parametrize("stuck", [0, 63, 64, 99])
def test_draws_are_watched_on_all_atoms(stuck):
    """One atom of a hundred never moves in any chain, but chains differ: wherever it stands, it is seen."""

    def run(x, rng):
        while True:
            moving = rng.random(x.shape) < 0.5
            moving[stuck] = x[stuck]
            yield targets.Seen(moving, np.ones(64, bool), rng.normal(size=64))

    target = targets.Target(run, tuple(f"x{i}" for i in range(100)), np.zeros((100, 0), bool))
    _, found, _ = estimates.draw(target, 20, np.random.default_rng(0), Limits(1024))
    assert not found.converged
    assert found.r_hat > 1.1


@pytest.mark.parametrize("method", ["collapsed", "gibbs"])
def test_chains_on_a_machine_have_its_distribution(method):
    theory = lbm.Theory.parse("a | b\n2: b -> c\n1: ~c")
    asked = {"given": "a | c", "distribution": "machine", "confidence": 1.0}
    expected = lbm.marginals(theory, **asked)
    found = lbm.marginals(theory, **asked, method=method, seed=0, seconds=None)
    assert found.converged
    for name, estimate in found.estimates.items():
        error = math.sqrt(max(1e-9, expected[name] * (1 - expected[name])) / estimate.effective_size)
        assert abs(estimate.probability - expected[name]) < 4.5 * error
    drawn = lbm.sample(theory, 300, **asked, method=method, seed=0, seconds=None)
    assert all(world["a"] or world["c"] for world in drawn)


def test_literals_in_evidence_are_held_and_the_rest_is_a_filter():
    held, rest = targets.clamps(parse("a & (~b & (c | d)) & ~a"))
    assert held == {"a": True, "b": False}
    assert rest == parse("(c | d) & ~a")
    assert targets.clamps(None) == ({}, parse("true"))


def test_too_few_valid_states_are_no_answer():
    theory = Theory(["a | b"])
    with pytest.raises(NoAnswer, match="fewer than the 100000 asked for"):
        lbm.sample(theory, 100_000, method="collapsed", seed=0, sweeps=10)


def test_a_query_is_sampled_on_what_it_depends_on():
    theory = lbm.Theory.parse("a | b\nc ^ d\n40: e & f & g & h\n40: ~e & ~f & ~g & ~h")
    target, _ = target_of(theory, parse("a"))
    assert target.atoms == ("a", "b")
    # Two wells freeze their own atoms, not these.
    assert lbm.ask(theory, "a", method="collapsed", seed=0).converged
    assert not lbm.ask(theory, "e", method="collapsed", seed=0, sweeps=1024).converged


def test_chains_on_large_theories_keep_to_the_limits(monkeypatch):
    monkeypatch.setattr(estimates, "MAX_STATES", 64 * 5 * 100)
    theory = Theory([f"x{i} | x{i + 1}" for i in range(4)])
    drawn = lbm.sample(theory, 100, method="collapsed", seed=0, sweeps=2000)
    assert (len(drawn), drawn.sweeps) == (100, 2000)
