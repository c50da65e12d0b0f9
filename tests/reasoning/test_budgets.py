"""Searches keep their time, on a clock that is counted, and load no more than they need."""

import random
import subprocess
import sys
from contextlib import contextmanager, nullcontext, suppress

import numpy as np
import pytest

import lbm
from lbm.errors import NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge import weighted
from lbm.knowledge.clauses import Clauses, counter, definitional
from lbm.knowledge.formula import atleast, atmost, atom, exactly, holds
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning import problem, proof, reasoner
from lbm.reasoning.answers import Proof
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact import buckets as tables
from lbm.reasoning.exact import trees, whole
from lbm.reasoning.exact.apart import Component, take_apart
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.whole import How
from lbm.reasoning.optimum import best
from lbm.reasoning.problem import Problem
from lbm.reasoning.sampling import diagnostics, estimates, runs, targets
from lbm.reasoning.search import engines, hearing, routes, satisfy
from lbm.reasoning.search.first import descended, liked
from lbm.reasoning.status import settle
from tests.oracles import worlds

PHASES = ("_exactly", "_listen", "_run_plainly", "_glance", "_improve", "_anneal")


def clauses(atoms, number, *, seed=0, hard=0.0, most=50):
    """Return random clauses of three literals, packed, some of them hard."""
    rng = random.Random(seed)
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    rows = [[rng.choice([1, -1]) * v for v in rng.sample(range(1, atoms + 1), 3)] for _ in range(number)]
    weights = [0 if rng.random() < hard else rng.randint(1, most) for _ in rows]
    return Theory.from_clauses(Clauses.of(rows, weights, atoms=names))


def formulae(atoms, number, seed=0):
    """Return formulae that are no clauses, hard and soft."""
    rng = random.Random(seed)
    rows = []
    for i in range(number):
        a, b, c, d = (f"x{j}" for j in rng.sample(range(atoms), 4))
        text = f"({a} & {b}) | ({c} ^ {d})"
        rows.append(text if i % 3 else (rng.randint(1, 9), text))
    return Theory(rows)


@contextmanager
def no_process(monkeypatch):
    """Let RC2 be silent, so that all others have to end by themselves."""

    class Silence:
        def next(self, until):
            return None

        def pause(self):
            pass

        go_on = pause

    @contextmanager
    def silent(*_, **__):
        yield Silence()

    monkeypatch.setattr(hearing, "maxsat", silent)
    yield


# --- the deadline ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_no_phase_begins_after_the_deadline(seed, counted_clock, monkeypatch):
    """Whatever the phases take, each looks at the clock before it begins."""
    rng = random.Random(seed)
    begun = []

    def phase(name):
        def run(self, *_, **options):
            begun.append((name, counted_clock.time))
            counted_clock.time += rng.choice([0.0, 0.3, 0.9, 2.0])

        return run

    for name in PHASES:
        monkeypatch.setattr(routes.Search, name, phase(name))
    monkeypatch.setattr(engines, "loaded", lambda: rng.random() < 0.5)
    monkeypatch.setattr(engines, "usable", lambda *_: rng.random() < 0.5)
    theory = clauses(30, 100, hard=0.1)
    deadline = counted_clock.time + 2.0
    with no_process(monkeypatch):
        routes.Search(Problem(theory), Budget(deadline)).found()
    work = [time for name, time in begun if name != "_listen"]  # which itself ends at once
    assert all(time <= deadline for time in work)


@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
@pytest.mark.parametrize("kind", ["soft", "mixed", "formulae"])
def test_past_the_deadline_the_clock_is_looked_at_only_to_stop(atoms, kind, counted_clock, monkeypatch):
    theory = formulae(atoms, 3 * atoms) if kind == "formulae" else None
    theory = theory or clauses(atoms, 4 * atoms, hard=0.0 if kind == "soft" else 0.3)
    counted_clock.step = 0.01
    looks = []
    begun = counted_clock.time
    with no_process(monkeypatch):
        monkeypatch.setattr(routes, "HEAD_START", 0.0)
        try:
            found = best(theory, seconds=0.5, seed=0)
        except NoAnswer:
            found = None
    looks.append(counted_clock.time - begun)
    if found is not None:
        assert theory.is_model(found.world)
    assert looks[0] <= 0.5 + 60 * counted_clock.step


def test_one_attempt_is_made_however_late_it_is(counted_clock, monkeypatch):
    """The command line's limit has passed: propagation and one call of a SAT solver are made all the same."""
    counted_clock.step = 0.01
    theory = clauses(129, 300, hard=0.9)
    monkeypatch.setattr(Budget, "limit", counted_clock.time - 10)
    with no_process(monkeypatch):
        found = best(theory, seconds=1, seed=0)
    assert theory.is_model(found.world)


def test_time_that_is_up_is_no_proof(counted_clock):
    counted_clock.step = 1.0
    theory = clauses(129, 600, hard=1.0)
    assert satisfy.prove(theory, budget=Budget.of(0.5)).satisfiable is None
    assert settle(theory, atom("x1"), budget=Budget.of(1)).status is None


def test_the_time_for_blame_is_bounded(monkeypatch):
    """Whether evidence or theory leaves no world is found out within the time that is left."""
    asked = []

    def noted(theory, *, given=None, budget):
        asked.append(budget.seconds())

    monkeypatch.setattr(proof, "satisfiable", noted)
    theory, given = Theory(["a"]), parse("~a")
    with pytest.raises(NoWorlds) as caught:
        Exact(theory, How(budget=Budget.of(5))).log_partition(given)
    assert asked[0] is not None
    assert asked[0] <= 5
    assert caught.value.evidence == given  # not known to be the theory's fault


@pytest.mark.parametrize("hard", [0.0, 0.2])
@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_going_down_ends_where_no_flip_helps(atoms, hard):
    theory = clauses(atoms, 4 * atoms, hard=hard)
    problem = Problem(theory)
    rows = problem.clauses()
    heavy = 1 + sum(rows.weights)

    def lost(x):
        return sum(rows.weights[number] or heavy for number in problem.look(x).broken)

    first = liked(rows)
    last = descended(rows, first, Budget.of(600))
    least = lost(last.tolist())
    assert least <= lost(first.tolist())
    for i in range(0, atoms, 1 + atoms // 50):
        other = last.copy()
        other[i] ^= True
        assert lost(other.tolist()) >= least


# --- wide cardinalities ------------------------------------------------------------------------------


def half(atoms):
    """Return the formula that half of so many atoms are true."""
    return atleast(atoms // 2, *(atom(f"v{i}") for i in range(atoms)))


class Enough(Exception):
    """What a look at the clock raises here."""


@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_clauses_for_a_counter_are_written_no_further_than_the_clock_allows(atoms):
    looks = []

    def look():
        looks.append(1)
        if len(looks) > 5:
            raise Enough

    with pytest.raises(Enough):
        counter(half(atoms), look)
    looks.clear()
    place = {f"v{i}": i + 1 for i in range(atoms)}
    with pytest.raises(Enough):
        definitional([half(atoms)], place, atoms + 1, look)
    assert len(looks) == 6


def test_a_part_defined_is_never_far_from_a_look_at_the_clock():
    looks = []
    place = {f"v{i}": i + 1 for i in range(129)}
    _, _, free = definitional([half(129)], place, 130, lambda: looks.append(1))
    assert len(looks) >= 129 + (free - 130) // 1024


@pytest.mark.parametrize("atoms", [65, 129, 1000])
def test_proofs_about_wide_cardinalities_end_when_their_time_does(atoms, counted_clock, monkeypatch):
    """Each look takes a hundredth of a second: ten looks write down a small part of the clauses."""
    counted_clock.step = 0.01
    monkeypatch.setattr(proof, "simple_model", lambda _: None)
    theory, begun = Theory([half(atoms)]), counted_clock.time
    assert proof.satisfiable(theory, budget=Budget.of(0.1)) is None
    assert proof.find_model(theory, given=half(atoms), budget=Budget.of(0.1)) is None
    assert proof.prove(theory, given=~atom("v0"), budget=Budget.of(0.1)).satisfiable is None
    assert proof.refuted_literals(theory, [("v0", True)], budget=Budget.of(0.1)) == set()
    with pytest.raises(NoAnswer):
        lbm.models(theory, limit=2, seconds=0.1)
    assert counted_clock.time - begun <= 5 * (0.1 + 5 * counted_clock.step)


@pytest.mark.parametrize("atoms", [65, 129, 1000, 3000])
def test_elimination_refuses_a_wide_cardinality_before_it_is_written_as_clauses(atoms, monkeypatch):
    monkeypatch.setattr(tables, "definitional", lambda *_: pytest.fail("it is too wide"))
    split = take_apart(Theory([half(atoms)]))
    assert split is not None
    with pytest.raises(TooManyWorlds, match="limit WIDTH"):
        tables.Buckets(split.components[0])


@pytest.mark.parametrize("kind", [atleast, atmost, exactly])
def test_no_order_is_narrower_than_the_grid_of_a_counter(kind):
    """Of seven atoms or more: a formula of fewer is a table as it is."""
    for atoms in range(7, 15):
        names = tuple(f"v{i}" for i in range(atoms))
        for bound in range(1, atoms - 1):
            formula = kind(bound, *map(atom, names))
            buckets = tables.Buckets(Component(names, (formula,), ()))
            factors, variables = buckets._factors(True)
            scopes = tuple(factor.scope for factor in factors)
            assert variables > atoms
            _, width = tables.order(scopes, variables, frozenset(range(variables)), False)
            assert width >= buckets._height()


@pytest.mark.parametrize("atoms", [400, 1000])
def test_simple_worlds_are_tried_where_a_solver_has_too_much_to_read(atoms, monkeypatch):
    for module in (problem, weighted):
        monkeypatch.setattr(module, "definitional", lambda *_, **__: pytest.fail("no clauses are needed"))
    theory = Theory([half(atoms)])
    assert proof.satisfiable(theory)
    assert proof.prove(theory).satisfiable
    assert theory.is_model(proof.find_model(theory, given=~atom("v0")))
    found = proof.prove(theory, given=~atom("v0"))
    assert found.satisfiable
    assert theory.is_model(found.world)
    assert not found.world["v0"]
    assert best(theory, seconds=600).optimal
    monkeypatch.setattr(targets, "_impossible", lambda *_: frozenset())
    drawn = lbm.sample(theory, 3, method="collapsed", sweeps=64, seconds=None, seed=0)
    assert all(theory.is_model(world) for world in drawn)
    split = take_apart(theory)
    for query in (atom("v0"), ~atom("v0")):
        known = targets.logical_network(split, 1.0, query, np.random.default_rng(0))
        worlds_ = [dict(zip(theory.atoms, column, strict=True)) for column in known.starts.T.tolist()]
        assert all(theory.is_model(world) for world in worlds_)
        assert {holds(query, world) for world in worlds_} == {True, False}


@pytest.mark.parametrize("atoms", [400, 1000])
def test_clauses_of_wide_cardinalities_take_half_of_the_time_of_a_search(atoms, counted_clock):
    counted_clock.step = 0.01
    begun = counted_clock.time
    with pytest.raises(NoAnswer):
        Problem(Theory([(3, half(atoms))])).clauses(Budget(begun + 0.4))
    assert counted_clock.time - begun <= 0.2 + 6 * counted_clock.step


@pytest.mark.parametrize("atoms", [400, 1000])
def test_a_simple_world_has_as_many_true_atoms_as_a_cardinality_wants(atoms, monkeypatch):
    for module in (problem, weighted):
        monkeypatch.setattr(module, "definitional", lambda *_, **__: pytest.fail("no clauses are needed"))
    names = [atom(f"v{i}") for i in range(atoms)]
    theory = Theory([exactly(atoms // 3, *names)])
    for query in (names[0], ~names[0]):
        world = proof.find_model(theory, given=query)
        assert sum(world.values()) == atoms // 3
        assert holds(query, world)
    assert proof.simple_model(Problem(Theory(["a | b"]))) is None  # a solver has read that at once


def test_a_log_probability_ends_when_its_time_does(counted_clock):
    theory = formulae(30, 60)
    world = dict(next(iter(lbm.models(theory, limit=1))))
    counted_clock.step = 0.01
    begun = counted_clock.time
    with pytest.raises(NoAnswer, match="allow more seconds"):
        lbm.log_probability(theory, world, seconds=0.05)
    assert counted_clock.time - begun <= 0.05 + 5 * counted_clock.step


# --- chains ------------------------------------------------------------------------------------------


def endless(exactly, *_):
    """Work on, and look at the clock, until it ends the work."""
    while True:
        exactly.how.budget.tick()


QUESTIONS = {
    "ask": lambda theory, **how: lbm.ask(theory, "x1", **how),
    "marginals": lbm.marginals,
    "sample": lambda theory, **how: lbm.sample(theory, 10, **how),
    "log_partition": lbm.log_partition,
}


@pytest.fixture
def charged(counted_clock, monkeypatch):
    """Let diagnostics take time on the counted clock: a second for ten million numbers."""

    def slow(diagnose):
        def charge(sums, *more, **options):
            counted_clock.time += sums.size / 1e7
            return diagnose(sums, *more, **options)

        return charge

    for name in ("estimate_sums", "judged", "many_estimates"):
        monkeypatch.setattr(estimates, name, slow(getattr(estimates, name)))
    return counted_clock


@pytest.mark.parametrize("method", ["collapsed", "tempered"])
@pytest.mark.parametrize("question", ["ask", "marginals", "sample"])
@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_chains_and_their_diagnostics_end_when_their_time_does(question, method, atoms, charged, monkeypatch):
    """They never agree, look at the clock after every sweep, and are diagnosed when the time is over."""
    for room in (diagnostics, runs):
        monkeypatch.setattr(room, "R_HAT", 0.0)
    theory = clauses(atoms, 2 * atoms, hard=0.5, most=2)
    charged.step = 0.01
    begun, seconds = charged.time, 10 + atoms / 25
    with suppress(NoAnswer) if method == "tempered" else nullcontext():
        assert not QUESTIONS[question](theory, method=method, seconds=seconds, seed=0).converged
    assert charged.time - begun <= seconds + 0.3


@pytest.mark.parametrize("question", QUESTIONS)
def test_chains_answer_where_exact_methods_run_out_of_time(question, counted_clock, monkeypatch):
    theory = Theory(["x1 | x2", (1, "x2 -> x3"), (2, "~x1")])
    right = Exact(theory).log_partition()
    for name in ("probability", "marginals", "draw", "log_partition"):
        monkeypatch.setattr(Exact, name, endless)
    monkeypatch.setattr(trees, "MAX_ENTRIES", 0)
    counted_clock.step = 0.001
    begun = counted_clock.time
    found = QUESTIONS[question](theory, seconds=20, seed=0)
    assert "that takes more time than there is" in found.note
    if question == "log_partition":
        assert abs(found - right) < 5 * found.error
    else:
        assert found.converged
    assert counted_clock.time - begun <= 20 + 0.05


def test_an_exact_answer_that_is_asked_for_is_no_other(counted_clock, monkeypatch):
    monkeypatch.setattr(Exact, "probability", endless)
    monkeypatch.setattr(trees, "MAX_ENTRIES", 0)
    counted_clock.step = 0.001
    with pytest.raises(NoAnswer):
        lbm.ask(Theory(["a | b"]), "a", method="exact", seconds=1)


def test_the_status_takes_a_quarter_of_the_time_and_the_probability_has_the_rest(counted_clock, monkeypatch):
    began = []

    def undecided(*_, budget, **__):
        while not budget.spent():
            pass
        return Proof(None)

    def known(*_):
        began.append(counted_clock.time)
        return 0.25

    monkeypatch.setattr(reasoner, "settle", undecided)
    monkeypatch.setattr(Exact, "probability", known)
    monkeypatch.setattr(trees, "MAX_ENTRIES", 0)
    counted_clock.step = 0.01
    begun = counted_clock.time
    found = lbm.ask(Theory(["a | b"]), "a", seconds=20)
    assert (found.status, found.probability) == (None, 0.25)
    assert began[0] - begun <= 5 + 0.1


# --- whoever is right first --------------------------------------------------------------------------


@pytest.mark.parametrize("atoms", [65, 129])
def test_what_settles_a_question_ends_the_others(atoms, monkeypatch):
    """RC2 says "next" at the first tick of exact work, which then goes no further."""
    theory = clauses(atoms, 2 * atoms, hard=0.2)
    known = best(theory, seconds=30, seed=0)
    assert known.optimal
    event = hearing.Message(
        "next", lost=int(known.lost), world="".join("01"[v] for v in known.world.values())
    )

    class Told:
        def next(self, until):
            return told.pop() if told else None

    @contextmanager
    def telling(*_, **__):
        yield Told()

    monkeypatch.setattr(hearing, "maxsat", telling)
    monkeypatch.setattr(routes.Search, "_guess", lambda _: told.append(event))
    monkeypatch.setattr(routes.Search, "_anneal", lambda *_: pytest.fail("it was settled"))
    told = []
    found = best(theory, seconds=600, seed=0)
    assert found.optimal
    assert found.lost == known.lost


def test_exact_work_stops_when_it_is_no_longer_needed():
    ticks = []

    def stop():
        ticks.append(1)
        return len(ticks) > 3

    theory = formulae(30, 60)
    with pytest.raises(NoAnswer):
        Exact(theory, How(budget=Budget.of(600).unless(stop))).best_worlds()
    assert len(ticks) == 4


LOADED = """
import sys
import lbm
rows = {rows!r}
theory = lbm.Theory(rows)
found = lbm.best(theory, seconds={seconds})
assert found.optimal, found
print("numba" in sys.modules)
"""


@pytest.mark.parametrize("seconds", [10, 600])
def test_what_rc2_and_a_sat_solver_settle_loads_no_compiler(seconds):
    rng = random.Random(3)
    rows = [" | ".join(f"x{i}" for i in rng.sample(range(60), 3)) for _ in range(50)]
    rows += [(1, f"~x{i}") for i in range(60)]
    program = LOADED.format(rows=rows, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_compiler_is_not_loaded_where_there_is_no_time_for_it(counted_clock, monkeypatch):
    monkeypatch.setattr(engines, "loaded", lambda: False)
    assert engines.usable("lanes", Budget.of(engines.LOADING + 1))
    assert not engines.usable("lanes", Budget.of(engines.LOADING - 1))


# --- satisfiable -------------------------------------------------------------------------------------


def test_walks_find_what_the_solver_does_not(monkeypatch):
    """A solver that never ends is interrupted as soon as a walk has found a model."""
    monkeypatch.setattr(satisfy, "ALONE", 0.0)
    theory = clauses(250, 1000, seed=5, hard=1.0)
    calls = []
    prove = proof.prove

    def noted(theory, *, budget, meanwhile):
        def once():
            found = meanwhile()
            calls.append(found)
            return found

        return prove(theory, budget=budget, meanwhile=once)

    class Endless:
        def __init__(self, **_):
            self.stop = False

        def add_clause(self, _):
            pass

        def solve_limited(self, *_, **__):
            while not self.stop:
                pass

        def interrupt(self):
            self.stop = True

        def delete(self):
            pass

    monkeypatch.setattr(proof, "prove", noted)
    monkeypatch.setattr("pysat.solvers.Solver", Endless)
    assert satisfy.prove(theory).satisfiable
    assert calls[-1] is not None


@pytest.mark.parametrize("atoms", [4, 6])
def test_side_by_side_they_say_what_looking_at_every_world_says(atoms, monkeypatch):
    monkeypatch.setattr(satisfy, "ALONE", 0.0)
    for seed in range(30):
        theory = clauses(atoms, 5 * atoms, seed=seed, hard=1.0)
        known = any(theory.is_model(world) for world in worlds(theory.atoms))
        assert satisfy.prove(theory).satisfiable is known


def wide(seed, *, soft):
    """Return formulae over 100 atoms that neither tables nor circuits of a size in reach hold."""
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(100)]
    rows = [" | ".join(rng.choice(["", "~"]) + name for name in rng.sample(names, 3)) for _ in range(300)]
    return Theory([(rng.randint(1, 4), row) for row in rows] if soft else rows)


@pytest.mark.parametrize("soft", [True, False])
def test_a_circuit_that_was_tried_in_vain_is_tried_again_with_more_time_only(
    soft, counted_clock, monkeypatch
):
    tried = []

    def in_vain(component, keep, budget):
        tried.append(budget.left())
        counted_clock.time += budget.left() + 1
        budget.tick()

    monkeypatch.setattr(whole.ByCircuit, "of", in_vain)
    (component,) = take_apart(wide(7, soft=soft)).components
    allowed = [(30.0, 2.0), (30.0, 2.0), (30.0, 5.0), (20.0, 5.0), (60.0, 5.0), (60.0, 60.0)]
    for seconds, unsure in allowed:
        with pytest.raises((NoAnswer, TooManyWorlds)):
            whole.compiled(component, None, Budget.of(seconds).trying(unsure))
    assert tried == pytest.approx([2.0, 5.0, 60.0] if soft else [30.0, 60.0])


def test_a_circuit_that_was_no_longer_needed_is_tried_again(monkeypatch):
    tried = []

    def not_needed(component, keep, budget):
        tried.append(component)
        raise NoAnswer("another was first")

    monkeypatch.setattr(whole.ByCircuit, "of", not_needed)
    (component,) = take_apart(wide(8, soft=False)).components
    for _ in range(2):
        with pytest.raises(NoAnswer, match="another"):
            whole.compiled(component, None, Budget.of(30))
    assert len(tried) == 2


def test_a_limit_that_a_circuit_passed_is_not_met_again(monkeypatch):
    tried = []

    def too_large(component, keep, budget):
        tried.append(component)
        raise TooManyWorlds("too many edges", MAX_EDGES=9)

    monkeypatch.setattr(whole.ByCircuit, "of", too_large)
    (component,) = take_apart(wide(9, soft=True)).components
    for _ in range(3):
        with pytest.raises(TooManyWorlds, match="passes 9") as caught:
            whole.compiled(component, None, Budget.of(30))
        assert (caught.value.limit, caught.value.value) == ("MAX_EDGES", 9)
    assert len(tried) == 1


def test_chains_begin_after_a_moment_where_mostly_soft_formulae_are_wide(monkeypatch):
    seen = []

    def in_vain(component, keep, budget):
        seen.append(budget.left())
        raise NoAnswer("in vain")

    monkeypatch.setattr(whole.ByCircuit, "of", in_vain)
    assert lbm.ask(wide(10, soft=True), "x0", seed=0, sweeps=64).method == "sampled"
    with pytest.raises(NoAnswer):
        lbm.ask(wide(11, soft=True), "x0", method="exact", seconds=20)
    first, second = seen
    assert first <= reasoner.UNSURE < 5 < second


def test_why_an_answer_is_not_exact_does_not_depend_on_which_limit_was_met_first(monkeypatch):
    raised = iter([NoAnswer("too late"), TooManyWorlds("too large", MAX_EDGES=9)])

    def in_vain(component, keep, budget):
        raise next(raised)

    monkeypatch.setattr(whole.ByCircuit, "of", in_vain)
    notes = [lbm.ask(wide(seed, soft=True), "x0", seed=0, sweeps=64).note for seed in (12, 13)]
    assert notes[0] == notes[1] != ""
    assert "most formulae are soft" in notes[0]
