"""The first models by a SAT solver are those of the exact list, in its order, without counting the others."""

import math
import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysat.solvers import Solver

import lbm
from lbm.errors import NoAnswer, TooManyWorlds
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import atom, disjunction, exactly
from lbm.knowledge.theory import Theory
from lbm.reasoning import listing, reasoner
from lbm.reasoning.budget import NO_LIMIT, SPENT, Budget
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.listing import first_models
from lbm.reasoning.problem import Problem
from tests.strategies import formulae, theories

small = st.one_of(theories(), theories(max_statements=3, max_leaves=12))


def x(i):
    return atom(f"x{i}")


@pytest.fixture
def calls(monkeypatch):
    """Count the calls of the solver."""
    made = []
    plain = listing._Listing._solve
    monkeypatch.setattr(
        listing._Listing, "_solve", lambda self, assumptions: made.append(1) or plain(self, assumptions)
    )
    return made


@given(small, st.none() | formulae(), st.integers(0, 20) | st.just(5000), st.data())
def test_the_first_models_are_those_of_the_exact_list(theory, evidence, limit, data):
    if evidence is not None:
        theory = Theory([*((s.weight, s.formula) for s in theory), evidence | ~evidence], atoms=theory.atoms)
    names = data.draw(st.permutations(theory.atoms)) if theory.atoms else []
    names = names[: data.draw(st.integers(0, len(names)))] if data.draw(st.booleans()) else list(theory.atoms)
    found = first_models(theory, names, limit, given=evidence)
    wanted = Exact(theory).models(evidence, names, limit)
    assert np.array_equal(found.array, wanted.array)
    assert (found.complete, found.in_time) == (wanted.complete, True)


@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_lists_of_every_size_are_sorted_distinct_models_with_none_between(atoms, seed):
    """Another solver finds no model before the first, and none between two of them."""
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(atoms)]
    oracle = [
        [v if rng.random() < 0.5 else -v for v in rng.sample(range(1, atoms + 1), 3)]
        for _ in range(int(1.5 * atoms))
    ]
    theory = Theory(
        [disjunction(x(v - 1) if v > 0 else ~x(-v - 1) for v in clause) for clause in oracle], atoms=names
    )
    rows = [first_models(theory, names, limit).array for limit in (1, 7, 40)]
    assert [len(some) for some in rows] == [1, 7, 40]
    for shorter, longer in pairwise(rows):
        assert np.array_equal(shorter, longer[: len(shorter)])
    for row in rows[-1].tolist():
        assert theory.is_model(dict(zip(names, row, strict=True)))
    assert all(one < other for one, other in pairwise(rows[-1].tolist()))
    with Solver("cadical153", bootstrap_with=oracle) as solver:

        def another(row, i):
            """Return whether some model agrees with a row before place i, and not there."""
            return solver.solve(
                [*(j + 1 if row[j] else -j - 1 for j in range(i)), -i - 1 if row[i] else i + 1]
            )

        listed = rows[-1].tolist()
        assert not any(another(listed[0], i) for i in range(atoms) if listed[0][i])
        for one, other in pairwise(listed):
            split = next(i for i in range(atoms) if one[i] != other[i])
            assert not any(another(one, i) for i in range(split + 1, atoms) if not one[i])
            assert not any(another(other, i) for i in range(split + 1, atoms) if other[i])


@pytest.mark.parametrize("seed", range(20))
def test_parts_whose_atoms_alternate_give_one_sorted_list(seed):
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(14)]
    shuffled = rng.sample(names, 14)
    groups = [shuffled[:4], shuffled[4:8], shuffled[8:11]]  # three atoms are free
    theory = Theory([disjunction(atom(n) for n in group) for group in groups], atoms=names)
    whole = Exact(theory).models().array
    for limit in (1, 2, 3, 5, 17, 300, 100_000):
        found = first_models(theory, names, limit)
        assert np.array_equal(found.array, whole[:limit])
        assert (found.complete, found.in_time) == (len(whole) <= limit, True)


def test_two_models_of_an_or_of_200_pairs_take_few_calls(calls):
    theory = Theory([disjunction(x(2 * i) & x(2 * i + 1) for i in range(200))])
    found = lbm.models(theory, limit=2)
    assert [row.nonzero()[0].tolist() for row in found.array] == [[398, 399], [397, 398, 399]]
    assert not found.complete
    assert len(calls) < 500


def test_two_models_of_exactly_100_of_200_take_few_calls(calls):
    theory = Theory([exactly(100, *(x(i) for i in range(200)))])
    found = lbm.models(theory, limit=2)
    assert found.array[0].nonzero()[0].tolist() == list(range(100, 200))
    assert found.array[1].nonzero()[0].tolist() == [99, *range(101, 200)]
    assert not found.complete
    assert len(calls) < 1000


def test_two_models_of_100000_free_atoms_take_no_call_for_each(calls):
    theory = Theory([x(0) | x(1)], atoms=[f"x{i}" for i in range(100_000)])
    found = lbm.models(theory, limit=2)
    assert [row.nonzero()[0].tolist() for row in found.array] == [[1], [1, 99_999]]
    assert not found.complete
    assert len(calls) < 10
    few = lbm.models(theory, limit=5, project=["x1", "x7", "x0"])
    assert few.array.astype(int).tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0]]


def test_models_past_exact_methods_are_listed_whole_where_they_are_few():
    """Three models, of a cardinality that no exact method takes."""
    atoms = [x(i) for i in range(200)]
    theory = Theory(
        [exactly(100, *atoms), *(atoms[i] for i in range(99)), *(~atoms[i] for i in range(102, 200))]
    )
    assert [row.nonzero()[0].tolist()[-1] for row in lbm.models(theory).array] == [101, 100, 99]
    assert lbm.models(theory).complete


def test_no_model_is_counted_where_a_few_are_asked_for(monkeypatch):
    monkeypatch.setattr("lbm.reasoning.exact.whole.count", None)
    assert len(lbm.models(Theory(["a | b | c"]), limit=5)) == 5


def test_packed_clauses_are_listed_too():
    literals = np.array([1, 2, -1, 3], np.int32)
    theory = Theory.from_clauses(Clauses(("a", "b", "c"), literals, np.array([0, 2, 4])))
    assert np.array_equal(first_models(theory, theory.atoms, 9).array, Exact(theory).models().array)


def test_formulae_that_clash_have_no_model():
    for theory in (Theory(["a", "~a"]), Theory(["a | b", "a | ~b", "~a | b", "~a | ~b"])):
        found = lbm.models(theory, limit=3)
        assert (len(found), found.complete, found.in_time) == (0, True, True)


def test_out_of_time_the_models_found_are_the_first_ones():
    theory = Theory([exactly(3, *(x(i) for i in range(12))), disjunction(x(i) for i in range(12, 20))])
    whole = Exact(theory).models().array
    problem = Problem(theory)
    problem.written(NO_LIMIT)  # so that all looks are those of listing
    for looks in (0, 3, 40, 100, 200, 400, 800):
        left = iter(range(looks))
        budget = Budget(stop=lambda left=left: next(left, None) is None)
        try:
            found = first_models(problem, theory.atoms, 200, budget=budget)
        except NoAnswer:
            assert looks < 40
            continue
        assert np.array_equal(found.array, whole[: len(found.array)])
        assert not found.in_time or len(found) == 200
        assert not found.complete or found.in_time
        assert len(found.array) >= 1


def test_out_of_time_the_command_prints_what_it_found_and_exits_3(monkeypatch, capsys, tmp_path):
    from lbm.views.entry import main

    file = tmp_path / "t.lbm"
    file.write_text("exactly(3, a, b, c, d, e, f, g)\n")
    left = iter(range(80))
    first = listing.first_models

    def late(*args, budget, **more):
        return first(*args, budget=budget.unless(lambda: next(left, None) is None), **more)

    monkeypatch.setattr(listing, "first_models", late)
    assert main(["models", str(file), "--limit", "30"]) == 3
    *worlds, last = capsys.readouterr().out.splitlines()
    assert worlds[0] == "a=0 b=0 c=0 d=0 e=1 f=1 g=1"
    assert last == f"{len(worlds)} model{'s' * (len(worlds) > 1)} found in time, and there may be more"


def test_exact_listing_looks_at_the_clock():
    """Also where all is known but the list itself."""
    theory = Theory([disjunction(x(2 * i) & x(2 * i + 1) for i in range(9))])
    exactly = Exact(theory)
    late = replace(exactly, how=replace(exactly.how, budget=SPENT))
    for question in (Exact.models, Exact.count):
        question(exactly)
        with pytest.raises(NoAnswer):
            question(late)


def test_a_list_that_is_too_long_is_refused_as_before():
    with pytest.raises(TooManyWorlds, match="MAX_LISTED"):
        lbm.models(Theory([x(0) | x(1)], atoms=[f"x{i}" for i in range(100)]))


def test_seconds_and_limits_are_checked_at_the_door():
    theory = Theory(["a | b"])
    for wrong in ({"seconds": 0}, {"limit": -1}):
        with pytest.raises(ValueError, match=r"positive|from 0 up"):
            lbm.models(theory, **wrong)
    assert math.isfinite(reasoner.SECONDS)
    assert len(lbm.models(theory, limit=reasoner.FEW, seconds=None)) == 3


@pytest.mark.parametrize("parts", [22, 43, 334, 3334])
def test_solvers_of_many_parts_are_not_all_there_at_once(parts, monkeypatch):
    """Each takes megabytes of addresses: of 10,000 atoms in threes, 4 GiB would not hold them."""
    alive = most = 0
    plain_open, plain_close = listing._Listing._open, listing._Listing.close

    def opened(part):
        nonlocal alive, most
        alive += part._solver is None
        most = max(most, alive)
        plain_open(part)

    def closed(part):
        nonlocal alive
        alive -= part._solver is not None
        plain_close(part)

    monkeypatch.setattr(listing._Listing, "_open", opened)
    monkeypatch.setattr(listing._Listing, "close", closed)
    theory = Theory([x(3 * i) | x(3 * i + 1) | x(3 * i + 2) for i in range(parts)])
    found = lbm.models(theory, limit=9)
    last = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1) if a or b or c], bool)
    assert (found.array[:7, -3:] == last).all()
    assert (found.array[7:, -3:] == last[:2]).all()
    assert (found.array[:7, :-3] == np.tile([False, False, True], parts - 1)).all()
    assert most <= listing.OPEN + 2
    assert alive == 0
