"""The best worlds are those of brute force in exact arithmetic, by every route, and in time."""

import gc
import os
import random
import signal
import threading
import time
from _thread import interrupt_main
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, NoAnswer, NoWorlds, UnknownAtom
from lbm.knowledge import weighted
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import FALSE, TRUE, atleast, atom
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning import preference
from lbm.reasoning.budget import Budget
from lbm.reasoning.engine.presolve import presolve
from lbm.reasoning.optimum import best
from lbm.reasoning.preference import preferred, prefers, why_preferred
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import smallest
from lbm.reasoning.search import annealed, hearing, routes, standing
from lbm.reasoning.search.annealed import Round, anneal, of_clauses
from lbm.reasoning.search.standing import Standing
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.aside import Message
from tests.oracles import sat, truth, truth_table
from tests.strategies import formulae, theories

NIXON = """
1000: n -> r
1000: n -> q
10: r -> ~p
10: q -> p
"""

modest = st.integers(-9, 9).filter(bool) | st.sampled_from([Decimal("0.5"), Decimal("-1.25"), 10**30])


@st.composite
def asked(draw, weights=None, max_statements=5):
    """Return a theory with evidence about its atoms, which may be none."""
    sizes = {"max_statements": max_statements}
    theory = draw(theories(**sizes) if weights is None else theories(weights=weights, **sizes))
    some = formulae(theory.atoms, max_leaves=4) if theory.atoms else st.sampled_from([TRUE, FALSE])
    return theory, draw(st.none() | some)


# --- the oracle ------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def all_losses(theory):
    """Return for every world, in lexicographic order, what each broken statement costs; a hard one None."""
    names = theory.atoms[::-1]  # so that numbers count in lexicographic order
    tables = [truth_table(statement.formula, names) for statement in theory]
    weights = [None if s.weight is None else Fraction(s.weight) for s in theory]
    found = []
    for i in range(1 << len(names)):
        broken = {}
        for number, (table, weight) in enumerate(zip(tables, weights, strict=True)):
            if bool(table >> i & 1) != (weight is None or weight > 0):
                broken[number] = None if weight is None else abs(weight)
        found.append((tuple(bool(i >> j & 1) for j in range(len(names)))[::-1], broken))
    return found


def losses(theory, world):
    """Return what each statement that is broken in a world costs; a hard one None."""
    found = {}
    for number, statement in enumerate(theory):
        true, weight = truth(statement.formula, world), statement.weight
        if true != (weight is None or weight > 0):
            found[number] = None if weight is None else abs(Fraction(weight))
    return found


@lru_cache(maxsize=64)
def ranked(theory, evidence=None):
    """Return (lost, values) of every model that keeps the evidence, best first, then lexicographic."""
    keeps = truth_table(TRUE if evidence is None else evidence, theory.atoms[::-1])
    return sorted(
        (sum(broken.values(), Fraction(0)), values)
        for i, (values, broken) in enumerate(all_losses(theory))
        if keeps >> i & 1 and None not in broken.values()
    )


def check(found, theory, evidence, expected, *, exact):
    """Check every part of an optimal answer against the worlds that are expected."""
    got = [tuple(world[name] for name in theory.atoms) for world in found.worlds]
    assert found.optimal
    if exact:
        assert got == [values for _, values in expected]
    place = {values: lost for lost, values in ranked(theory, evidence)}
    assert [place[values] for values in got] == [lost for lost, _ in expected]
    assert len(set(got)) == len(got)
    broken = losses(theory, found.world)
    assert found.broken == tuple(broken)
    assert Fraction(found.lost) == sum(broken.values(), Fraction(0)) == Fraction(found.bound)
    assert found.gap == 0
    positive = [Fraction(s.weight) for s in theory if s.weight is not None and s.weight > 0]
    kept = [i for i, s in enumerate(theory) if s.weight is not None and s.weight > 0 and i not in broken]
    assert Fraction(found.satisfied) == sum(
        (Fraction(theory.statements[i].weight) for i in kept), Fraction(0)
    )
    for score, (lost, _) in zip(found.scores, expected, strict=True):
        assert Fraction(score) == sum(positive, Fraction(0)) - lost


@contextmanager
def no_exact():
    """Send every question to RC2 and to annealing, however small it is."""
    before = routes._exact, routes.HEAD_START
    routes._exact, routes.HEAD_START = (lambda *_: None), 0.0
    try:
        yield
    finally:
        routes._exact, routes.HEAD_START = before


@contextmanager
def in_this_process():
    """Let RC2 run in this process: thousands of small questions would start thousands of others."""
    from lbm.reasoning.solvers import worker

    class Said:
        def __init__(self, events):
            self.events = events

        def next(self, until):
            return self.events.pop(0) if len(self.events) > 1 else self.events[0]

    @contextmanager
    def solved(clauses, *, atoms, top, every):
        rows, weights = list(clauses.rows()), clauses.weights.tolist()
        events = []
        worker.solve(
            rows, weights, clauses.variables, atoms, {"top": top, "every": every},
            lambda kind, **parts: events.append(Message(kind, **parts)),
            lambda solver, assumptions: solver.solve_limited(assumptions=list(assumptions)),
        )  # fmt: skip
        yield Said(events)

    before = hearing.maxsat
    hearing.maxsat = solved
    try:
        with no_exact():
            yield
    finally:
        hearing.maxsat = before


@pytest.fixture
def searched():
    with no_exact():
        yield


def by_every_route(law):
    """Run a law where theories are solved exactly, and again where they never are."""
    law(True)
    with in_this_process():
        law(False)


def hard_theory(atoms=100, clauses=700, seed=0, hard=0.0):
    rng = random.Random(seed)
    rows = []
    for _ in range(clauses):
        literals = " | ".join(rng.choice(["", "~"]) + f"x{i}" for i in rng.sample(range(atoms), 3))
        rows.append(literals if rng.random() < hard else (rng.randint(1, 50), literals))
    return Theory(rows)


# --- laws --------------------------------------------------------------------------------------------


@given(asked() | asked(weights=modest))
def test_the_best_world_is_that_of_brute_force(question):
    theory, evidence = question
    expected = ranked(theory, evidence)

    def law(exact):
        if not expected:
            with pytest.raises(NoWorlds) as caught:
                best(theory, given=evidence)
            assert (caught.value.evidence is None) == (evidence is None or not ranked(theory))
            return
        found = best(theory, given=evidence, seconds=None, seed=0)
        check(found, theory, evidence, expected[:1], exact=exact)
        assert found.method == ("exact" if exact else "certified")

    by_every_route(law)


@given(asked(weights=modest), st.integers(2, 80))
def test_the_best_few_are_those_of_brute_force(question, top):
    theory, evidence = question
    expected = ranked(theory, evidence)
    assume(expected)

    def law(exact):
        found = best(theory, given=evidence, top=top, seconds=None, seed=0)
        check(found, theory, evidence, expected[:top], exact=exact)

    by_every_route(law)


@given(asked(weights=modest))
def test_every_optimal_world_is_found(question):
    theory, evidence = question
    expected = ranked(theory, evidence)
    assume(expected)

    def law(exact):
        found = best(theory, given=evidence, every=True, seconds=None, seed=0)
        same = [pair for pair in expected if pair[0] == expected[0][0]]
        check(found, theory, evidence, same, exact=True)  # sorted, whoever found them
        assert found.complete

    by_every_route(law)


@given(asked(weights=modest), st.data())
def test_a_formula_is_preferred_if_it_is_true_in_every_best_world(question, data):
    theory, evidence = question
    assume(theory.atoms)
    query = data.draw(formulae(theory.atoms, max_leaves=4))
    expected = ranked(theory, evidence)

    def law(exact):
        if not expected:
            with pytest.raises(NoWorlds):
                preferred(theory, query, given=evidence)
            return
        same = [dict(zip(theory.atoms, v, strict=True)) for lost, v in expected if lost == expected[0][0]]
        every = [truth(query, w) for w in same]
        assert preferred(theory, query, given=evidence) is all(every)
        assert prefers(theory, query, given=evidence) == (all(every), not any(every))

    by_every_route(law)


@given(asked(weights=modest), st.data())
def test_preference_is_settled_from_worlds_that_are_not_proven_to_be_best(question, data):
    """Whatever world the first search ends with, and whatever bound, as long as it is one."""
    theory, evidence = question
    expected = ranked(theory, evidence)
    assume(expected and theory.atoms)
    query = data.draw(formulae(theory.atoms, max_leaves=4))
    lost, values = data.draw(st.sampled_from(expected))
    problem = Problem.of(theory, evidence)
    world = problem.look(np.array(values, dtype=bool))
    assert world.lost == lost * 10**problem.digits
    bound = data.draw(st.sampled_from([0, int(expected[0][0] * 10**problem.digits)]))
    first = Standing((world,), bound, optimal=False, method="annealed")
    searches = []

    class Stopped(preference.Search):
        def found(self):
            searches.append(self)
            return first if len(searches) == 1 else super().found()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preference, "Search", Stopped)
        true, false = prefers(theory, query, given=evidence)
    same = [dict(zip(theory.atoms, v, strict=True)) for lost, v in expected if lost == expected[0][0]]
    every = [truth(query, w) for w in same]
    assert true in (None, all(every))
    assert false in (None, not any(every))


def is_reason(theory, evidence, query, numbers, least):
    """Return whether every world without the query loses more than ``least`` by these statements alone."""
    against = truth_table(~query if evidence is None else evidence & ~query, theory.atoms[::-1])
    for i, (_, broken) in enumerate(all_losses(theory)):
        if against >> i & 1:
            lost = [lost for number, lost in broken.items() if number in numbers]
            if None not in lost and sum(lost, Fraction(0)) <= least:
                return False
    return True


@given(asked(weights=modest, max_statements=8), st.data())
def test_reasons_of_a_preference_suffice_and_each_is_needed(question, data):
    theory, evidence = question
    expected = ranked(theory, evidence)
    assume(expected)
    best_world = dict(zip(theory.atoms, expected[0][1], strict=True))
    query = data.draw(formulae(theory.atoms, max_leaves=3) if theory.atoms else st.just(TRUE))
    query = query if truth(query, best_world) else ~query
    least = expected[0][0]

    def law(exact):
        if not is_reason(theory, evidence, query, range(len(theory)), least):
            with pytest.raises(ValueError, match="not preferred"):
                why_preferred(theory, query, given=evidence)
            return
        numbers, minimal = why_preferred(theory, query, given=evidence)
        assert minimal
        assert is_reason(theory, evidence, query, numbers, least)
        for fewer in combinations(numbers, len(numbers) - 1) if numbers else ():
            assert not is_reason(theory, evidence, query, fewer, least)

    by_every_route(law)


# --- examples ----------------------------------------------------------------------------------------


def test_the_nixon_diamond_has_two_best_worlds_given_that_he_is_nixon():
    theory = Theory.parse(NIXON)
    found = best(theory, given=parse("n"), every=True)
    assert [world["p"] for world in found.worlds] == [False, True]
    assert (found.lost, found.score, found.complete) == (10, 2010, True)
    assert preferred(theory, parse("r & q"), given=parse("n"))
    assert preferred(theory, parse("p"), given=parse("n")) is False
    numbers, minimal = why_preferred(theory, parse("r"), given=parse("n"))
    assert (numbers, minimal) == ((0,), True)


def test_a_real_process_certifies_what_exact_answers_say(searched):
    theory = Theory.parse(NIXON)
    for options in ({}, {"top": 5}, {"every": True}):
        found = best(theory, given=parse("n"), seconds=None, seed=1, **options)
        count = {"top": 5, "every": 2}.get(next(iter(options), ""), 1)
        expected = ranked(theory, parse("n"))[:count]
        check(found, theory, parse("n"), expected, exact=bool(options.get("every")))
        assert found.method == "certified"
    assert preferred(theory, parse("r & q"), given=parse("n"))
    with pytest.raises(NoWorlds, match="evidence is impossible"):
        best(theory, given=parse("n & ~n"))
    with pytest.raises(NoWorlds, match="hard formulae allow no world"):
        best(Theory(["p | q", "p | ~q", "~p | q", "~p | ~q"]), given=parse("p"))


def test_weights_of_any_size_are_certified(searched):
    theory = Theory([(10**80, "a"), (Decimal("1e-80"), "~a"), (Decimal("1e-80"), "b"), (-(10**80), "c & ~a")])
    found = best(theory, seconds=None, top=2, seed=0)
    assert found.world == {"a": True, "b": True, "c": False}
    assert found.lost == Decimal("1e-80")
    assert str(found.score) == "1" + "0" * 80 + "." + "0" * 79 + "1"
    check(found, theory, None, ranked(theory)[:2], exact=False)


def test_packed_clauses_are_solved_as_the_same_clauses_in_formulae_are(searched):
    rows, weights = [[1, -2], [2, 3], [-1, -3], [3], [-3, 1, 2], [-2]], [0, 0, 5, 2, 0, 3]
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    clauses = Clauses(("a", "b", "c"), np.array([n for row in rows for n in row], np.int32), starts)
    packed = Theory.from_clauses(clauses, np.array(weights, np.int64))
    plain = Theory(list(packed), atoms=packed.atoms)
    for evidence in (None, parse("a <-> c"), parse("a & ~c")):
        for theory in (packed, plain):
            found = best(theory, given=evidence, top=4, seconds=None, seed=0)
            check(found, plain, evidence, ranked(plain, evidence)[:4], exact=False)


def test_no_world_beats_one_that_is_certified():
    """A SAT solver is asked for a world that keeps one soft formula more."""
    hard = [s.formula for s in hard_theory(atoms=60, clauses=200, seed=3, hard=1.0)]
    soft = [~atom(f"x{i}") for i in range(60)]
    theory = Theory([*hard, *((1, formula) for formula in soft)])
    found = best(theory, seconds=60, seed=0)
    assert (found.optimal, found.method) == (True, "certified")
    assert theory.is_model(found.world)
    kept = sum(truth(formula, found.world) for formula in soft)
    assert (found.score, found.lost) == (kept, 60 - kept)
    assert sat(*hard, atleast(kept, *soft)) is not None
    assert sat(*hard, atleast(kept + 1, *soft)) is None


def test_a_theory_without_atoms_or_soft_formulae_has_a_best_world():
    def law(exact):
        assert best(Theory(), every=True).worlds == ({},)
        assert best(Theory([(3, FALSE), (-2, TRUE), (5, TRUE)])).lost == 5
        assert best(Theory(["a"]), top=3).worlds == ({"a": True},)

    by_every_route(law)


# --- time --------------------------------------------------------------------------------------------


def test_the_deadline_is_kept_and_what_is_found_is_verified():
    theory = hard_theory()
    started = time.monotonic()
    seen = []
    found = best(theory, seconds=1, seed=0, on_better=seen.append)
    assert time.monotonic() - started < 60  # to prove what is best would take days
    assert theory.is_model(found.world)
    assert theory.score(found.world) == found.score
    assert sum(losses(theory, found.world).values()) == found.lost
    assert (found.gap > 0) != found.optimal
    assert found.lost - found.bound == found.gap
    assert [better.lost for better in seen] == sorted({better.lost for better in seen}, reverse=True)
    assert seen[-1].lost == found.lost
    assert all(theory.score(better.world) == better.score for better in seen)


def test_where_nothing_is_hard_there_is_a_world_however_short_the_time():
    theory = hard_theory()
    found = best(theory, seconds=1e-9, seed=0)
    assert theory.score(found.world) == found.score
    assert found.lost - found.bound == found.gap


def test_annealing_beats_the_first_world_that_comes_to_hand():
    theory = hard_theory(seed=1)
    total = sum(s.weight for s in theory)
    found = best(theory, seconds=2, seed=0)
    # A random world loses an eighth of the weight, with a standard deviation far below a fiftieth.
    assert found.lost < total / 25


def test_questions_that_are_too_hard_are_not_settled():
    theory = hard_theory()
    assert preferred(theory, atom("x1"), budget=Budget.of(0.5)) is None
    assert prefers(theory, atom("x1"), budget=Budget.of(0.5)) == (None, None)
    with pytest.raises(NoAnswer, match="not proven"):
        why_preferred(theory, atom("x1"), budget=Budget.of(0.5))


def test_a_world_that_is_not_found_in_time_is_no_answer(monkeypatch):
    @contextmanager
    def silent(*args, **options):
        class Silence:
            def next(self, until):
                return None

        yield Silence()

    monkeypatch.setattr(hearing, "maxsat", silent)
    monkeypatch.setattr(annealed, "anneal", lambda *_, **__: Round([], 1))
    monkeypatch.setattr(routes.Search, "_guess", lambda _: None)
    with no_exact(), pytest.raises(NoAnswer, match=r"within 0\.2 seconds") as caught:
        best(Theory(["a ^ b"]), seconds=0.2)
    assert isinstance(caught.value, TimeoutError)


def test_theories_too_large_as_clauses_are_annealed(monkeypatch):
    def refuse(*_):
        raise LimitExceeded("too many", MAX_CELLS=1)

    monkeypatch.setattr(weighted, "check_cells", refuse)
    with no_exact():
        theory = Theory(["a | b", (3, "~a"), (2, "~b"), (1, "c")])
        found = best(theory, seconds=None, seed=0)
        assert (found.world, found.lost) == ({"a": False, "b": True, "c": True}, 2)
        assert (found.optimal, found.bound, found.gap, found.proved_by) == (True, 2, 0, "own")
        assert best(Theory(["a | b", (1, "c")]), seconds=None, seed=0).optimal  # nothing is lost


def test_a_bound_that_only_equals_the_best_settles_no_preference(monkeypatch):
    """Events come one at a time, so that each is judged before the next is known."""
    calls = []

    @contextmanager
    def slow(*args, **options):
        calls.append(options)
        left = [Message("bound", lost=2), Message("next", lost=2, world="10"[len(calls) - 1]), Message("end")]

        class Slow:
            def next(self, until):
                return left.pop(0) if until else None

        yield Slow()

    monkeypatch.setattr(hearing, "maxsat", slow)
    monkeypatch.setattr(routes.Search, "_anneal", lambda *_: None)
    monkeypatch.setattr(routes.Search, "_guess", lambda _: None)
    with no_exact():
        assert preferred(Theory([(2, "a"), (2, "~a")]), atom("a")) is False
    assert len(calls) == 2


def test_reasons_are_returned_as_they_are_when_time_is_over():
    asked = []

    def suffice(numbers):
        asked.append(sorted(numbers))
        return None if len(asked) > 2 else len(numbers) >= 3

    needed, minimal = smallest([[3, 1, 2], [5, 4]], suffice)
    assert (sorted(needed), minimal) == ([1, 2, 3], False)
    assert asked[0] == [1, 2, 3]


def test_no_process_is_needed_to_find_a_world(monkeypatch):
    aside.end_all()  # nor is one that waits
    monkeypatch.setattr("sys.executable", "")
    with no_exact():
        found = best(Theory(["a | b", (3, "~a"), (2, "~b")]), seconds=None, seed=0)
    assert (found.lost, found.optimal, found.proved_by) == (2, True, "own")


# --- a solver that is wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lie",
    [
        [Message("next", lost=0, world="00")],  # not a model
        [Message("next", lost=1, world="11")],  # loses another weight
        [Message("bound", lost=100), Message("world", world="11"), Message("failed")],  # a bound that is none
        [Message("failed")],
    ],
)
def test_a_solver_that_is_wrong_is_not_believed(lie, monkeypatch):
    @contextmanager
    def lying(*args, **options):
        left = list(lie)

        class Lies:
            def next(self, until):
                return left.pop(0) if left else Message("end")

        yield Lies()

    monkeypatch.setattr(hearing, "maxsat", lying)
    monkeypatch.setattr(routes.Search, "_lower", lambda *_: None)  # nor is a bound of our own in its way
    with no_exact():
        found = best(Theory(["a | b", (3, "~a"), (2, "~b")]), seconds=None, seed=0, engines="own,rc2")
    assert (found.lost, found.bound, found.optimal) == (2, 0, False)
    assert found.world == {"a": False, "b": True}


# --- nothing is left behind ------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_an_interrupt_ends_the_process_and_keeps_what_was_found(monkeypatch):
    theory, started, seen, soon = hard_theory(), [], [], []
    begin = hearing.maxsat

    def interrupt_soon():
        # Which comes first, a process or a better world, depends on how busy the machine is.
        if started and seen and not soon:
            soon.append(threading.Timer(0.2, interrupt_main))
            soon[0].start()

    @contextmanager
    def noted(*args, **options):
        with begin(*args, **options) as answers:
            started.append(answers.process)
            interrupt_soon()
            yield answers

    def note(found):
        if not seen:
            seen.append(found)
            interrupt_soon()

    monkeypatch.setattr(hearing, "maxsat", noted)
    # A shell that runs us in the background has us ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # Hypothesis listens to the garbage collector, where an interrupt is lost
    try:
        with pytest.raises(KeyboardInterrupt):
            best(theory, seconds=30, seed=0, on_better=note)
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)
    assert theory.score(seen[0].world) == seen[0].score
    aside.end_all()
    for process in started:
        assert process.returncode is not None
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
    gc.collect()


# --- bad input ---------------------------------------------------------------------------------------


def test_options_that_make_no_sense_are_refused():
    theory = Theory(["bird -> flies"])
    for options, said in (
        ({"top": 0}, "top is a number"),
        ({"top": standing.MAX_WORLDS + 1}, "MAX_WORLDS"),
        ({"top": 2, "every": True}, "not for both"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": -1.0}, "seconds"),
    ):
        with pytest.raises(ValueError, match=said):
            best(theory, **options)
    for question in (
        lambda: best(theory, given=parse("brid")),
        lambda: preferred(theory, parse("brid")),
        lambda: preferred(theory, parse("bird"), given=parse("brid")),
        lambda: why_preferred(theory, parse("brid")),
        lambda: why_preferred(theory, parse("bird"), given=parse("brid")),
    ):
        with pytest.raises(UnknownAtom, match="did you mean 'bird'"):
            question()
    with pytest.raises(TypeError, match="the evidence is a formula"):
        best(theory, given="bird")


@given(st.integers(0, 2**32))
@settings(max_examples=5)
def test_the_same_seed_anneals_the_same_worlds(seed):
    problem = Problem(hard_theory(atoms=20, clauses=60))
    landscape = of_clauses(presolve(problem.weighted_clauses(), pure=True))

    for number in range(3):
        told = []
        first = anneal(landscape, seed, number, found=told.append)
        assert anneal(landscape, seed, number) == first
        assert told[-1] == first.worlds[0]


def test_more_optimal_worlds_than_are_given_out_are_not_complete(monkeypatch):
    monkeypatch.setattr(standing, "MAX_WORLDS", 5)

    def law(exact):
        found = best(Theory(["a | b"], atoms=[*"abcd"]), every=True)
        assert (len(found.worlds), found.complete, found.optimal) == (5, False, True)

    by_every_route(law)
