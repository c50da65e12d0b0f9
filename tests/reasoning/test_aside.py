"""Solvers in a process of their own answer as brute force does, and end when they are told to."""

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import NO_LIMIT, SPENT, Budget
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.aside import Message, ganak_installed
from lbm.reasoning.solvers.worker import solve

needs_ganak = pytest.mark.skipif(not ganak_installed(), reason="pyganak is not installed")
posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


# --- the oracle ------------------------------------------------------------------------------------


def every_world(clauses, weights, variables):
    """Return what each world that keeps the hard clauses loses, by trying all."""
    found = {}
    for values in product([False, True], repeat=variables):
        false = [
            weight
            for clause, weight in zip(clauses, weights, strict=True)
            if not any(values[abs(literal) - 1] == (literal > 0) for literal in clause)
        ]
        if all(false):
            found["".join("01"[value] for value in values)] = sum(false)
    return found


def random_problem(rng):
    """Return weighted clauses with repeated and opposite literals, empty clauses and weights of any size."""
    variables = rng.randint(1, 5)
    clauses = [
        [rng.choice([1, -1]) * rng.randint(1, variables) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3]))]
        for _ in range(rng.randint(0, 10))
    ]
    sizes = [1, 1, 2, 3, 5, 10, 100, 10**30]
    weights = [rng.choice(sizes) if not clause or rng.random() < 0.7 else 0 for clause in clauses]
    return clauses, weights, variables


def hard_problem(variables=100, clauses=700, seed=0):
    rng = random.Random(seed)
    rows = [[rng.choice([1, -1]) * v for v in rng.sample(range(1, variables + 1), 3)] for _ in range(clauses)]
    return rows, [rng.randint(1, 50) for _ in rows], variables


def maxsat(clauses, weights, variables, **options):
    """Ask RC2 about clauses that are given as lists."""
    return aside.maxsat(Clauses.of(clauses, weights, variables=variables), **options)


def model_count(clauses, variables, *project, **options):
    """Count the models of clauses that are given as lists."""
    return aside.model_count(Clauses.of(clauses, variables=variables), *project, **options)


def events_of(answers, seconds=300):
    """Return all events; the last one ends them."""
    found = []
    while True:
        event = answers.next(Budget.of(seconds))
        assert event is not None, f"silence after {found}"
        found.append(event)
        if event.kind in ("end", "failed"):
            return found


def said(problem, top, every, *, upper=lambda: None, **wanted):
    """Return what the other side says about a problem, without a process."""
    clauses, weights, variables = problem
    events = []
    solve(
        clauses,
        weights,
        variables,
        variables,
        {"top": top, "every": every, **wanted},
        lambda kind, **parts: events.append(Message(kind, **parts)),
        lambda solver, assumptions: solver.solve_limited(assumptions=list(assumptions)),
        upper,
    )
    return events


# --- what they answer --------------------------------------------------------------------------------


def check_events(events, problem, top, every):
    worlds = every_world(*problem)
    least = min(worlds.values(), default=0)
    assert [event.kind for event in events].count("end") == 1
    assert events[-1].kind == "end"
    for event in events:
        if event.kind == "bound":
            assert event.lost <= least
        elif event.kind == "world":
            assert event.world in worlds
    given = [(event.lost, event.world) for event in events if event.kind == "next"]
    assert all(worlds[world] == lost for lost, world in given)
    assert len(set(given)) == len(given)
    expected = sorted(worlds.values())
    expected = [lost for lost in expected if lost == least] if every else expected[:top]
    assert [lost for lost, _ in given] == expected
    if events[-1].all:
        assert len(given) == len(worlds) or (every and len(given) == len(expected))


@pytest.mark.parametrize(("top", "every"), [(1, False), (1, True), (3, False), (100, False)])
def test_worlds_come_in_order_of_what_they_lose(top, every):
    rng = random.Random(top + every)
    for _ in range(300):
        problem = random_problem(rng)
        check_events(said(problem, top, every), problem, top, every)


def weighted_problem(rng, variables=8):
    """Return clauses of which some are hard, with weights that differ much."""
    rows = [[rng.choice([1, -1]) * v for v in rng.sample(range(1, variables + 1), 2)] for _ in range(30)]
    return (
        rows,
        [rng.choice((0, 1, 2, 5, 20, 100)) if i % 3 else rng.randint(1, 50) for i in range(30)],
        variables,
    )


@pytest.mark.parametrize("plan", ["exhaustive", "plain", "stratified"])
def test_who_knows_what_some_world_loses_finds_the_same_best(plan):
    rng = random.Random(plan)
    heard = 0
    for number in range(120):
        problem = weighted_problem(rng)
        least = min(every_world(*problem).values(), default=0)
        calls = []

        def upper(least=least, number=number, calls=calls):
            """Say nothing at first, then more and more of the truth."""
            calls.append(None)
            return None if len(calls) == 1 + number % 2 else least + max(0, 40 - 10 * len(calls))

        check_events(said(problem, 1, False, upper=upper, plan=plan), problem, 1, False)
        heard += len(calls)
    assert heard > 120


def test_a_process_that_is_told_what_a_world_loses_finds_the_best_all_the_same():
    rng = random.Random(3)
    for _ in range(6):
        problem = weighted_problem(rng)
        worlds = every_world(*problem)
        with maxsat(*problem) as answers:
            waits = Budget.of(60)
            while not answers.limit(max(worlds.values(), default=0)):  # the question is still being sent
                waits.tick()
            check_events(events_of(answers), problem, 1, False)


def test_a_process_says_what_the_solver_says():
    rng = random.Random(5)
    for top, every in [(1, False), (1, True), (4, False)] * 2:
        problem = random_problem(rng)
        with maxsat(*problem, top=top, every=every) as answers:
            events = events_of(answers)
        check_events(events, problem, top, every)
        assert events == said(problem, top, every)


def test_worlds_differ_in_the_atoms_that_were_named():
    clauses = [[-3, 1], [3, -1], [2]]
    with maxsat(clauses, [0, 0, 7], 3, atoms=2, top=10) as answers:
        found = [(event.lost, event.world) for event in events_of(answers) if event.kind == "next"]
    assert sorted(found) == [(0, "01"), (0, "11"), (7, "00"), (7, "10")]


def test_the_last_event_comes_again():
    with maxsat([[1]], [0], 1) as answers:
        last = events_of(answers)[-1]
        assert answers.next(Budget.of(60)) == last == answers.next(SPENT)


@needs_ganak
def test_models_are_counted_as_by_trying_all_worlds():
    rng = random.Random(7)
    for _ in range(8):
        clauses, _, variables = random_problem(rng)
        worlds = every_world(clauses, [0] * len(clauses), variables)
        project = rng.sample(range(1, variables + 1), rng.randint(0, variables))
        assert model_count(clauses, variables, budget=Budget.of(300)) == len(worlds)
        restricted = {tuple(world[i - 1] for i in project) for world in worlds}
        assert model_count(clauses, variables, project, budget=Budget.of(300)) == len(restricted)


@needs_ganak
def test_counts_are_whole_numbers_of_any_size():
    assert model_count([[1, 2]], 300, budget=Budget.of(300)) == 3 * 2**298


@needs_ganak
def test_a_count_that_takes_too_long_is_none():
    clauses, _, variables = hard_problem(150, 300)
    started = time.monotonic()
    assert model_count(clauses, variables, budget=Budget.of(0.5)) is None
    assert time.monotonic() - started < 60  # counting takes longer than any test waits


def test_without_ganak_there_is_no_count(monkeypatch):
    monkeypatch.setattr(aside, "find_spec", lambda name: None)
    assert not ganak_installed()


# --- how they end ------------------------------------------------------------------------------------


def is_gone(pid):
    """Return whether a process neither runs nor waits to be collected."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def has_ended(pid):
    """Return whether a process that is not ours runs no more; its new parent may never collect it."""
    if is_gone(pid):
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def wait_until_ended(pid, seconds=120):
    end = time.monotonic() + seconds
    while not has_ended(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return has_ended(pid)


@pytest.fixture
def alone():
    """Begin and end without a process that waits."""
    aside.end_all()
    yield
    aside.end_all()
    assert not aside._alive
    gc.collect()  # a pipe left open would warn, and warnings are errors


def least_lost(answers):
    return next(event.lost for event in events_of(answers) if event.kind == "next")


def test_a_process_in_the_middle_of_its_work_answers_the_next_question(alone):
    with maxsat(*hard_problem()) as answers:
        assert answers.next(Budget.of(300)) is not None
        first, started = answers.process, time.monotonic()
    assert time.monotonic() - started < 60  # its work would take hours
    (helper,) = aside._waiting
    assert helper._idle.wait(60)
    for _ in range(3):
        with maxsat([[1], [-1]], [2, 3], 1) as answers:
            assert answers.process is first
            assert least_lost(answers) == 2


def test_answers_are_those_of_brute_force_however_many_questions_were_taken_back(alone):
    rng = random.Random(11)
    for _ in range(30):
        with maxsat(*hard_problem(40, 200, rng.random())) as answers:
            answers.next(NO_LIMIT.at_most(rng.choice([0, 0, 0.01, 0.03])))
        problem = random_problem(rng)
        with maxsat(*problem) as answers:
            check_events(events_of(answers), problem, 1, False)
    assert len(aside._alive) == 1


def test_a_process_that_does_not_stop_is_replaced(alone, monkeypatch):
    with maxsat(*hard_problem()) as answers:
        answers.next(Budget.of(300))
        first = answers.process
        monkeypatch.setattr(answers.helper, "_send", lambda part: None)  # it never hears of it
    monkeypatch.setattr(aside, "MOMENT", 0.0)
    with maxsat([[1], [-1]], [2, 3], 1) as answers:
        assert answers.process is not first
        assert least_lost(answers) == 2
    assert first.returncode is not None
    assert len(aside._alive) == 1


def test_threads_ask_at_once_and_one_process_is_kept(alone):
    def ask(seed):
        problem = random_problem(random.Random(seed))
        with maxsat(*problem) as answers:
            check_events(events_of(answers), problem, 1, False)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(16)))
    assert len(aside._waiting) == len(aside._alive) == 1


def test_a_process_that_was_started_early_gets_the_question(alone):
    aside.prepare()
    aside.prepare()
    (helper,) = aside._alive
    with maxsat([[1]], [1], 1) as answers:
        assert answers.process is helper.process
        assert least_lost(answers) == 0


def test_a_process_that_has_grown_large_is_not_kept(alone, monkeypatch):
    monkeypatch.setattr(aside, "KEPT", 3)
    with maxsat([[1], [2]], [1, 1], 2) as answers:
        events_of(answers)
    assert not aside._alive


def test_a_process_imports_pysat_and_nothing_else_that_is_large():
    program = (
        "import sys; import lbm.reasoning.solvers.worker as worker\n"
        "from pysat.examples.rc2 import RC2\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = set(done.stdout.split())
    assert not names & {"numpy", "numba", "scipy", "typer", "lbm.knowledge", "lbm.errors", "dataclasses"}


@posix
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork beside threads: that is the test
def test_a_fork_leaves_the_process_to_its_parent(alone):
    with maxsat([[1], [-1]], [2, 3], 1) as answers:
        least_lost(answers)
    (helper,) = aside._alive
    read, write = os.pipe()
    child = os.fork()
    if not child:  # a question there starts a process of its own
        try:
            assert not aside._alive
            with maxsat([[1], [-1]], [2, 3], 1) as answers:
                assert answers.process.pid != helper.process.pid
                assert least_lost(answers) == 2
            aside.end_all()
            os.write(write, b"1")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        assert told.read() == b"1"
    assert helper.process.poll() is None
    with maxsat([[1], [-1]], [2, 3], 1) as answers:
        assert answers.process is helper.process
        assert least_lost(answers) == 2


@posix
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_the_block_takes_the_question_back_and_goes_on(error, alone):
    with pytest.raises(error), maxsat(*hard_problem()) as answers:
        raise error
    assert len(aside._alive) <= 1
    aside.end_all()
    assert is_gone(answers.process.pid)


@posix
def test_a_block_left_before_the_problem_is_written_ends_at_once():
    def slowly():
        for _ in range(10**6):
            yield [1, 2, 3]

    started = time.monotonic()
    with maxsat(slowly(), [0] * 10**6, 3) as answers:
        pass
    assert time.monotonic() - started < 120
    aside.end_all()
    assert is_gone(answers.process.pid)


@posix
def test_an_interrupt_does_not_end_the_process():
    # What a shell has us ignore a process of ours would ignore anyway.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with maxsat(*hard_problem()) as answers:
            assert answers.next(Budget.of(300)).kind == "world"
            os.kill(answers.process.pid, signal.SIGINT)
            for _ in range(5):
                assert answers.next(Budget.of(300)).kind in ("bound", "world")
            assert os.getpgid(answers.process.pid) != os.getpgid(0)  # nor does a terminal's reach it
    finally:
        signal.signal(signal.SIGINT, before)


@posix
def test_a_process_that_dies_has_failed():
    with maxsat(*hard_problem()) as answers:
        answers.process.kill()
        assert events_of(answers)[-1].kind == "failed"


@posix
@pytest.mark.parametrize("task", ["maxsat", pytest.param("count", marks=needs_ganak)])
def test_the_process_ends_when_its_caller_is_killed(task, tmp_path):
    """The caller is a script without a guard around its main part, and dies without cleaning up."""
    script = tmp_path / "caller.py"
    script.write_text(
        textwrap.dedent(f"""
            import random, subprocess, sys, time
            from lbm.knowledge.clauses import Clauses
            from lbm.reasoning.budget import Budget
            from lbm.reasoning.solvers import aside
            started = subprocess.Popen
            def started_and_said(*args, **options):
                process = started(*args, **options)
                print(process.pid, flush=True)
                return process
            subprocess.Popen = started_and_said
            rng = random.Random(0)
            rows = [[rng.choice([1, -1]) * v for v in rng.sample(range(1, 151), 3)] for _ in range(300)]
            if {task!r} == "count":
                aside.model_count(Clauses.of(rows, variables=150), budget=Budget.of(600))
            rows += [[rng.choice([1, -1]) * v for v in rng.sample(range(1, 151), 3)] for _ in range(700)]
            weights = [rng.randint(1, 50) for _ in rows]
            with aside.maxsat(Clauses.of(rows, weights, variables=150)) as answers:
                time.sleep(600)
        """),
        encoding="utf-8",
    )
    path = os.pathsep.join(entry or str(tmp_path) for entry in sys.path)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as caller:
        pid = int(caller.stdout.readline())
        time.sleep(1)
        assert not has_ended(pid)
        caller.kill()
        caller.wait()
        assert wait_until_ended(pid)
