"""Another engine beside ours: the first right answer is given, and whatever the other one does is ended.

A pyganak of a few lines stands for the real one where that is missing; its process is a real one.
"""

import math
import textwrap
import threading
import time
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lbm
from lbm.errors import NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import FALSE, TRUE
from lbm.knowledge.wire import load_theory
from lbm.reasoning import beside
from lbm.reasoning.beside import Rival, count_beside, log_partition_beside, probability_beside
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact import whole
from lbm.reasoning.problem import Problem
from lbm.reasoning.reasoner import Reasoner
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.counters import weighted_count_aside
from tests.oracles import Oracle
from tests.strategies import formulae, theories

needs_ganak = pytest.mark.skipif(not aside.ganak_installed(), reason="pyganak is not installed")

PLAIN = '''
class Counter:
    """Counts by splitting; what is asked of the real one, and no more."""

    zero, one = 0, 1

    def __init__(self):
        self.number, self.clauses, self.kept, self.weights = 0, [], None, {}

    def new_vars(self, number):
        self.number += number

    def add_clauses(self, clauses):
        self.clauses += [frozenset(clause) for clause in clauses]

    def set_sampling_set(self, variables):
        self.kept = list(variables)

    def count(self):
        kept = list(range(1, self.number + 1)) if self.kept is None else self.kept
        rest = [v for v in range(1, self.number + 1) if v not in kept]
        return self.summed(set(self.clauses), kept, rest)

    def summed(self, clauses, kept, rest):
        if frozenset() in clauses:
            return self.zero
        met = {abs(l) for clause in clauses for l in clause}
        factor = self.one
        for v in kept:
            factor *= 1 if v in met else self.weight(v) + self.weight(-v)
        kept = [v for v in kept if v in met]
        if not kept:
            return factor if self.possible(clauses, [v for v in rest if v in met]) else self.zero
        unit = next((l for c in clauses if len(c) == 1 for l in c if abs(l) in kept), None)
        signs = (kept[0], -kept[0]) if unit is None else (unit,)
        others = [v for v in kept if v != abs(signs[0])]
        return factor * sum(
            self.weight(l) * self.summed(assumed(clauses, l), others, rest) for l in signs if self.weight(l)
        )

    def possible(self, clauses, rest):
        if frozenset() in clauses or not rest:
            return frozenset() not in clauses
        return any(self.possible(assumed(clauses, l), rest[1:]) for l in (rest[0], -rest[0]))

    def weight(self, literal):
        return self.weights.get(literal, 1)


class WeightedCounter(Counter):
    def set_lit_weight(self, literal, weight):
        from fractions import Fraction
        assert isinstance(weight, float)
        self.weights[literal] = Fraction(weight)

    def count(self):
        found = super().count()
        try:
            return float(found)
        except OverflowError:
            return float("inf") if found > 0 else float("-inf")


def assumed(clauses, literal):
    return {clause - {-literal} for clause in clauses if literal not in clause}
'''

DEAD = "import os\nclass Counter:\n    def __init__(self):\n        os.abort()\nWeightedCounter = Counter\n"
WRONG = "def Counter():\n    raise ValueError('not today')\nWeightedCounter = Counter\n"
ENDLESS = PLAIN + "\n\ndef work(self):\n    while True: pass\nCounter.count = WeightedCounter.count = work\n"


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Return what makes a pyganak of some text; questions start its process anew."""

    def make(text):
        (tmp_path / "pyganak.py").write_text(textwrap.dedent(text), encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        aside.end_all()

    aside.end_all()
    yield make
    aside.end_all()


@pytest.fixture(params=["plain", pytest.param("pyganak", marks=needs_ganak)])
def ganak(request, engine):
    """Have a pyganak: the one of a few lines, or the real one."""
    if request.param == "plain":
        engine(PLAIN)


@pytest.fixture
def refusing(monkeypatch):
    """Have all exact methods of ours refuse every theory."""

    def refuse(*_, **__):
        raise TooManyWorlds("too much (limit LIMIT)", LIMIT=1)

    for name in ("solver", "Blocks", "compiled", "_flat"):
        monkeypatch.setattr(whole, name, refuse)
    monkeypatch.setattr("lbm.reasoning.reasoner.Trees", refuse)


def forever(budget):
    """Work on something without an end."""
    while True:
        budget.tick()
        time.sleep(0.001)


SOON = 120
"""Seconds within which all is over, on the busiest machine; what is waited for would take far longer."""


def long():
    """Return as long as anything here takes."""
    return Budget.of(SOON)


# --- what it says is true --------------------------------------------------------------------------


@st.composite
def questions(draw):
    theory = draw(
        theories(weights=st.integers(-20, 20).filter(bool) | st.decimals(-9, 9, places=2).filter(bool))
    )
    some = formulae(theory.atoms, max_leaves=4) if theory.atoms else st.sampled_from([TRUE, FALSE])
    return theory, draw(some), draw(st.none() | some), draw(st.sampled_from([1, 0.5, 3.7]))


@given(question=questions(), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counts_and_weights_are_those_of_enumeration(ganak, question, data):
    theory, query, evidence, temperature = question
    problem, oracle = Problem(theory), Oracle(theory, evidence, temperature)
    assert count_beside(problem, evidence, None, NO_LIMIT) == len(oracle.worlds)
    names = data.draw(st.lists(st.sampled_from(theory.atoms), unique=True) if theory.atoms else st.just([]))
    columns = [theory.atoms.index(name) for name in names]
    restricted = {tuple(world[i] for i in columns) for world in oracle.worlds}
    assert count_beside(problem, evidence, names, NO_LIMIT) == len(restricted)
    found = log_partition_beside(problem, evidence, temperature, NO_LIMIT)
    if not oracle.worlds:
        assert found is None
        return
    assert found == pytest.approx(float(oracle.log_partition()), rel=1e-9, abs=1e-9)
    expected, chance = (
        oracle.chance(query),
        probability_beside(problem, query, evidence, temperature, NO_LIMIT),
    )
    assert chance == (pytest.approx(expected, rel=1e-9) if expected > 1e-300 else None)


def test_sums_that_no_double_holds_are_shifted_until_one_does(ganak):
    for lines in (
        [f"450: x{i} ^ y{i}" for i in range(8)],  # exp(3600)
        [f"-450: x{i} | y{i}" for i in range(8)] + [f"x{i}" for i in range(8)],  # exp(-3600)
        ["atoms " + ", ".join(f"x{i}" for i in range(3000)), "x0 | x1"],  # 2^3000
    ):
        theory = lbm.Theory.parse("\n".join(lines))
        problem, reasoner = Problem(theory), Reasoner(theory)
        expected = reasoner.log_partition(method="exact")
        assert log_partition_beside(problem, None, 1, long()) == pytest.approx(expected, rel=1e-12)
        query = lbm.parse("x0 & x1")
        expected = reasoner.ask(query, method="exact").probability
        assert probability_beside(problem, query, None, 1, long()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("text", ["601: a", "600.1: a | b", "-601: a | b", "1e80: a"])
def test_weights_whose_exponentials_no_double_holds_are_not_sent(text, engine):
    engine(WRONG)
    problem = Problem(lbm.Theory.parse(text))
    assert log_partition_beside(problem, None, 1, long()) is None
    assert log_partition_beside(problem, None, 1e-300, long()) is None
    assert not aside._alive


@st.composite
def weighted_clauses(draw):
    variables = draw(st.integers(1, 5))
    literals = st.integers(1, variables).flatmap(lambda v: st.sampled_from([v, -v]))
    weight = st.fractions(-3, 3, max_denominator=7) | st.floats(-3, 3)
    return (
        variables,
        draw(st.lists(st.lists(literals, max_size=3), max_size=6)),
        draw(st.dictionaries(st.integers(1, variables), st.tuples(weight, weight))),
    )


@given(problem=weighted_clauses())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_literals_may_weigh_anything_that_a_double_holds(ganak, problem):
    variables, rows, weights = problem
    expected, size = Fraction(0), Fraction(0)
    for world in product([True, False], repeat=variables):
        if all(any(world[abs(literal) - 1] == (literal > 0) for literal in row) for row in rows):
            own = math.prod(Fraction(weights[v][not world[v - 1]]) for v in weights)
            expected, size = expected + own, size + abs(own)
    atoms = tuple(f"x{i}" for i in range(variables))
    clauses = Clauses.of(rows, atoms=atoms)
    small = any(0 < abs(float(weight)) < 1e-300 for pair in weights.values() for weight in pair)
    found = weighted_count_aside(clauses, weights, budget=NO_LIMIT)
    if small:
        return
    if found is None:
        assert abs(float(expected)) <= 1e-12 * max(float(size), 1e-280)
    else:
        assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-12 * float(size))


def test_what_a_double_does_not_hold_is_no_answer(ganak):
    clauses = Clauses.of([[1], [2], [3]], atoms=("a", "b", "c"))
    for some, expected in (
        (1e200, None),  # infinite
        (1e-200, None),  # 0
        (Fraction(1, 10**103), None),  # subnormal
        (Fraction(1, 3), 1 / 27),
        (Fraction(10**400), None),
        (Fraction(1, 10**400), None),
        (0, None),
        (math.nan, None),
    ):
        weights = dict.fromkeys([1, 2, 3], (some, 1.0))
        found = weighted_count_aside(clauses, weights, budget=long())
        assert found == (expected if expected is None else pytest.approx(expected))
    weights = {1: (0.5, 0.25), 3: (2.0, 0.0)}
    assert weighted_count_aside(clauses, weights, ["c", "a"], budget=long()) == 1.0


# --- which of the two answers ----------------------------------------------------------------------


def test_ours_answers_small_questions_and_nothing_is_started(engine, monkeypatch):
    engine(DEAD)
    monkeypatch.setattr(beside, "HEAD_START", 60)
    theory, threads = lbm.Theory.parse("a | b\n2: a -> c"), threading.active_count()
    assert lbm.count(theory) == 6
    assert lbm.ask(theory, "a").note == ""
    lbm.log_partition(theory)
    assert not aside._alive
    assert threading.active_count() == threads


def test_the_other_engine_answers_where_ours_refuses(ganak, refusing):
    theory = lbm.Theory.parse("a | b\nexactly(1, c, d, e)\na -> ~c\n0.5: d & a\n-2: b ^ e")
    reasoner = Reasoner(theory)
    oracle = Oracle(theory)
    assert reasoner.count() == len(oracle.worlds)
    assert reasoner.count(given="a ^ d") == len(Oracle(theory, lbm.parse("a ^ d")).worlds)
    assert reasoner.count(project=["a", "d"]) == 4
    found = reasoner.ask("a & d", given="b", temperature=0.5)
    expected = Oracle(theory, lbm.parse("b"), 0.5).chance(lbm.parse("a & d"))
    assert found.probability == pytest.approx(expected, rel=1e-9)
    assert (found.method, found.note, found.converged) == ("exact", "by Ganak", True)
    assert found.interval == (found.probability, found.probability)
    assert found.status in ("undecided", "preferred", "dispreferred")
    assert "exact, by Ganak; logical distribution, temperature 0.5" in found.lines()
    assert found.facts()["note"] == "by Ganak"
    log = reasoner.log_partition()
    assert log == pytest.approx(float(oracle.log_partition()), rel=1e-9)
    assert (log.note, log.error) == ("by Ganak", 0.0)
    assert reasoner.ask("c", given="a").status == "refuted"  # by SAT: 0 is no sum to rely on
    assert len(aside._alive) == 1  # one process has answered everything


def test_without_it_nothing_changes(refusing, monkeypatch):
    aside.end_all()
    monkeypatch.setattr(aside, "ganak_installed", lambda: False)
    reasoner = Reasoner(lbm.Theory.parse("a | b\nexactly(1, c, d, e)\n0.5: d & a"))
    for ask in (reasoner.count, lambda: reasoner.ask("a", method="exact")):
        with pytest.raises(TooManyWorlds, match="limit LIMIT"):
            ask()
    assert not aside._alive
    assert reasoner.ask("a", seed=0).method == "sampled"


@pytest.mark.parametrize("text", [DEAD, WRONG, "", "raise MemoryError", "import nothing_of_this_name"])
def test_where_it_fails_our_refusal_is_raised(text, engine, refusing):
    engine(text)
    reasoner = Reasoner(lbm.Theory.parse("a | b\nexactly(1, c, d, e)\n0.5: d & a"))
    for ask in (reasoner.count, lambda: reasoner.ask("a", method="exact")):
        with pytest.raises(TooManyWorlds, match="limit LIMIT"):
            ask()
    assert reasoner.ask("a", seed=0).method == "sampled"


def test_where_it_is_not_done_in_time_more_time_is_asked_for(engine, refusing):
    engine(ENDLESS)
    reasoner = Reasoner(lbm.Theory.parse("a | b\nexactly(1, c, d, e)\n0.5: d & a"))
    for ask in (reasoner.count, lambda seconds: reasoner.ask("a", method="exact", seconds=seconds)):
        with pytest.raises(NoAnswer, match="allow more"):
            ask(seconds=0.5)
        assert not aside._alive


def test_chains_answer_where_neither_does_in_time(engine, refusing, monkeypatch):
    engine(ENDLESS)
    monkeypatch.setattr(beside, "PATIENCE", 0.2)
    monkeypatch.setattr("lbm.reasoning.reasoner.PATIENCE", 0.2)
    found = lbm.ask(lbm.Theory.parse("a | b\n0.5: b & a"), "a", seed=0)
    assert found.method == "sampled"
    assert "limit LIMIT" in found.note


def test_it_overtakes_ours(ganak):
    problem = Problem(lbm.Theory.parse("a | b"))
    with Rival(lambda budget: count_beside(problem, None, None, budget), long()) as rival:
        assert rival.first(forever, long()) == 3
    assert len(aside._alive) == 1  # it waits for the next question


def test_ours_overtakes_it_and_its_work_is_ended(engine):
    engine(ENDLESS)
    problem = Problem(lbm.Theory.parse("a | b"))

    def ours(budget):
        while not aside._alive:
            budget.tick()
            time.sleep(0.001)
        return 42

    with Rival(lambda budget: count_beside(problem, None, None, budget), long()) as rival:
        assert rival.first(ours, long()) == 42
    assert not aside._alive
    assert not rival._thread.is_alive()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_of_ours_ends_it(error, engine):
    engine(ENDLESS)
    problem = Problem(lbm.Theory.parse("a | b"))

    def ours(budget):
        while not aside._alive:
            budget.tick()
            time.sleep(0.001)
        raise error

    with (
        pytest.raises(error),
        Rival(lambda budget: count_beside(problem, None, None, budget), long()) as rival,
    ):
        rival.first(ours, long())
    assert not aside._alive


def test_what_dies_beside_does_not_disturb_ours(engine):
    engine(DEAD)
    problem, tried = Problem(lbm.Theory.parse("a | b")), threading.Event()

    def work(budget):
        found = count_beside(problem, None, None, budget)
        tried.set()
        return found

    def ours(budget):
        while not tried.is_set():
            budget.tick()
            time.sleep(0.001)
        return 42

    with Rival(work, long()) as rival:
        assert rival.first(ours, long()) == 42


def test_evidence_that_leaves_no_world_is_named_as_ever(ganak, refusing):
    reasoner = Reasoner(lbm.Theory.parse("a -> b\n2: c & a"))
    with pytest.raises(NoWorlds):
        reasoner.ask("c", given="a & ~b")
    assert reasoner.count(given="a & ~b") == 0


# --- public problems -------------------------------------------------------------------------------


@needs_ganak
@pytest.mark.parametrize("name", ["axTLS.cnf", "busybox.dimacs", "mc2024_track3_131.cnf", "toybox2.cnf"])
def test_both_count_the_same_models_of_public_problems(name, instances):
    theory = load_theory(instances / "count" / name, lenient=True, warn=lambda _: None)
    problem = Problem(theory)
    theirs = count_beside(problem, None, theory.shown, long())
    assert theirs == Reasoner(theory)._exactly(long()).count(None, theory.shown)
    log = log_partition_beside(problem, None, 1.0, long())
    assert log == pytest.approx(Reasoner(theory)._exactly(long()).log_partition(), rel=1e-9)


@needs_ganak
def test_what_is_past_our_methods_takes_about_as_long_as_ganak_alone(instances):
    """In a warm process: twice its time and half a second, at the best of a few tries."""
    theory = load_theory(instances / "count" / "s1196a_3_2.cnf", lenient=True, warn=lambda _: None)
    clauses = Problem(theory).written(NO_LIMIT)
    ratios = []
    for _ in range(5):
        begun = time.monotonic()
        assert aside.model_count(clauses, budget=long()) == 1038090240
        alone, begun = time.monotonic() - begun, time.monotonic()
        assert Reasoner(theory).count() == 1038090240
        ratios.append(time.monotonic() - begun - 2 * alone)
    assert min(ratios) < 0.5
