"""One problem asked many times, beside brute force and beside a new problem for every question."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysat.solvers import Solver as Engine

from lbm.errors import NoAnswer, UnknownAtom
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import TRUE, atom, conjunction, disjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import NO_LIMIT, SPENT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import find_model, prove, refuted_literals, satisfiable
from lbm.reasoning.solvers import sat
from tests.oracles import truth, worlds
from tests.strategies import NAMES, formulae, theories


def follows(theory, query, evidence):
    """By brute force: whether the query is true in every model with the evidence."""
    names = theory.atoms
    hard = [statement.formula for statement in theory if statement.weight is None]
    kept = [evidence, *hard] if evidence is not None else hard
    models = (world for world in worlds(names) if all(truth(formula, world) for formula in kept))
    return all(truth(query, world) for world in models)


def without(theory, query, *, given=None, **options):
    """Return the proof of whether some world keeps the theory and the evidence, but not the query."""
    return prove(Problem.of(theory, given).given(~query), **options)


@given(theories(), st.lists(st.tuples(formulae(), st.none() | formulae()), min_size=1, max_size=6))
def test_many_questions_to_one_problem_are_answered_as_brute_force_does(theory, questions):
    theory = Theory.from_parts(tuple(dict.fromkeys([*theory.atoms, *NAMES])), theory.statements)
    problem = Problem(theory)
    for query, evidence in questions:
        found = without(problem, query, given=evidence, why=False)
        assert found.satisfiable is (not follows(theory, query, evidence))
        if found.world is not None:
            assert theory.is_model(found.world)
            assert not truth(query, found.world)
            assert evidence is None or truth(evidence, found.world)
        assert satisfiable(problem, given=evidence) is not follows(theory, ~TRUE, evidence)


def clauses_of(atoms, rng):
    """Random 3-clauses with many models, over atoms by number."""
    some = (rng.sample(range(1, atoms + 1), 3) for _ in range(2 * atoms))
    return [[i if rng.random() < 0.5 else -i for i in row] for row in some]


def literal(number):
    return atom(f"x{number}") if number > 0 else ~atom(f"x{-number}")


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("atoms", [65, 129, 1000])
def test_at_size_answers_are_those_of_a_solver_that_was_never_asked_before(atoms, packed):
    import numpy as np

    rng = random.Random(atoms)
    rows = clauses_of(atoms, rng)
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    if packed:
        flat = np.array([number for row in rows for number in row], np.int32)
        theory = Theory.from_clauses(Clauses(names, flat, np.arange(0, len(flat) + 1, 3)))
    else:
        formulae_ = [disjunction(map(literal, row[:2])) | literal(row[2]) for row in rows]
        theory = Theory([*formulae_, parse("x1 <-> (x2 ^ x3)")], atoms=names)
        rows += [[-1, 2, 3], [-1, -2, -3], [1, -2, 3], [1, 2, -3]]
    problem = Problem(theory)
    seen = set()
    for number in range(40):
        a, b, c, d = (rng.choice((-1, 1)) * number for number in rng.sample(range(1, atoms + 1), 4))
        if number % 2:  # what follows from one of the clauses
            a, b, c = rng.choice(rows[: 2 * atoms])
            c = -c
        query, evidence = literal(a) | literal(b), conjunction([literal(c), literal(d) | literal(a)])
        with Engine("cadical153", bootstrap_with=[*rows, [-a], [-b], [c], [d, a]]) as fresh:
            truly = not fresh.solve()
        found = without(problem, query, given=evidence, why=False)
        assert found.satisfiable is (not truly)
        assert found.world is None or theory.is_model(found.world)
        seen.add(truly)
    assert seen == {True, False}


def test_a_solver_that_has_been_asked_too_much_is_made_anew(monkeypatch):
    monkeypatch.setattr(sat, "WORN", 3)
    problem = Problem(Theory(["a -> b", "b <-> (c ^ d)"]))
    first = problem.session(NO_LIMIT)[0]
    for text in ("a & (b | c)", "(a ^ c) | d", "(b <-> d) | a", "c -> (a ^ b)"):
        found = without(problem, parse(text))
        assert found.satisfiable is (not follows(problem.theory, parse(text), None))
    assert problem.session(NO_LIMIT)[0] is not first


def test_a_solver_that_was_interrupted_is_made_anew(monkeypatch):
    problem = Problem(Theory(["a -> b"]))
    session = problem.session(NO_LIMIT)[0]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "_settled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        without(problem, parse("b"))
    assert problem.session(NO_LIMIT)[0] is not session
    assert without(problem, parse("b"), given=parse("a")).satisfiable is False


def test_who_waits_for_the_solver_of_others_waits_no_longer_than_its_time():
    problem = Problem(Theory(["a -> b"]))
    session = problem.session(NO_LIMIT)[0]
    with ThreadPoolExecutor(1) as pool, session.lock:
        asked = pool.submit(without, problem, parse("b"), given=parse("a"), budget=Budget.of(0.05))
        assert asked.result().satisfiable is None
    with pytest.raises(NoAnswer), ThreadPoolExecutor(1) as pool, session.lock:
        pool.submit(session.literals, parse("a"), SPENT).result()


@pytest.mark.parametrize("seconds", [None, 1e12])
def test_any_time_may_be_allowed(seconds):
    found = without(Problem(Theory(["a -> b"])), parse("a -> b"), budget=Budget.of(seconds))
    assert found.satisfiable is False


def test_threads_share_a_problem():
    rng = random.Random(7)
    theory = Theory([disjunction(map(literal, row)) for row in clauses_of(40, rng)])
    problem = Problem(theory)
    queries = [literal(a) | literal(b) for a, b in (rng.sample(range(1, 41), 2) for _ in range(60))]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda query: without(problem, query, why=False).satisfiable, queries))
    assert found == [without(theory, query, why=False).satisfiable for query in queries]


def test_evidence_adds_up():
    problem = Problem(Theory(["a -> b"], atoms=["a", "b", "c"])).given(parse("a")).given(parse("~c"))
    assert find_model(problem) == {"a": True, "b": True, "c": False}
    assert refuted_literals(problem, [("a", False), ("c", True), ("b", True)]) == {("a", False), ("c", True)}
    assert problem.is_model([True, True, False])
    assert not problem.is_model([True, True, True])
    with pytest.raises(UnknownAtom):
        problem.check(parse("brid"), "query")


def test_a_process_that_ends_with_a_solver_kept_says_nothing():
    program = "import lbm; kept = lbm.Reasoner(lbm.Theory(['a -> b'])); print(kept.entails('b', given='a'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
