"""Proofs agree with brute force; a clash is unsatisfiable and needs each member; clocks are kept."""

import time
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, NoWorlds
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import atleast, atom
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Proof
from lbm.reasoning.budget import SPENT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.proof import find_model, prove, satisfiable
from lbm.reasoning.solvers.sat import Solver
from lbm.reasoning.status import follows
from tests.oracles import truth, truth_table
from tests.strategies import NAMES, formulae, theories

crowded = theories(atoms=NAMES[:4], max_statements=12, max_leaves=4)
"""Theories that are often unsatisfiable: many formulae, few atoms."""


def kept_together(theory, numbers, *more):
    """Return whether some world keeps these statements and formulae, by looking at every world."""
    names = theory.atoms
    every = (1 << (1 << len(names))) - 1
    kept = [*(theory.statements[number].formula for number in numbers), *more]
    return reduce(int.__and__, (truth_table(formula, names) for formula in kept), every) != 0


def clash(theory, **options):
    """Return the numbers of a clash; empty: the theory is satisfiable; None: no answer in time."""
    found = prove(theory, **options)
    return found.why if found.satisfiable or found.minimal else None


def hard_statements(theory):
    return [number for number, statement in enumerate(theory) if statement.weight is None]


@given(crowded)
def test_satisfiable_agrees_with_looking_at_every_world(theory):
    assert satisfiable(theory) is kept_together(theory, hard_statements(theory))


@given(crowded)
def test_a_clash_is_unsatisfiable_and_without_any_one_member_satisfiable(theory):
    found = clash(theory)
    assert set(found) <= set(hard_statements(theory))
    assert list(found) == sorted(set(found))
    if kept_together(theory, hard_statements(theory)):
        assert found == ()
    else:
        assert not kept_together(theory, found)
        for fewer in combinations(found, len(found) - 1):
            assert kept_together(theory, fewer)


@given(crowded, formulae(NAMES[:4], max_leaves=4), st.none() | formulae(NAMES[:4], max_leaves=4))
def test_what_is_entailed_follows_from_each_named_formula_and_what_is_not_is_false_in_a_model(
    theory, query, evidence
):
    theory = Theory(list(theory), atoms=NAMES[:4])
    more = [] if evidence is None else [evidence]
    against = Problem.of(theory, evidence).given(~query)
    ruling = prove(against)
    assert ruling.satisfiable is kept_together(theory, hard_statements(theory), *more, ~query)
    if not ruling.satisfiable:
        assert ruling.world is None
        assert ruling.minimal
        assert set(ruling.why) <= set(hard_statements(theory))
        assert not kept_together(theory, ruling.why, *more, ~query)
        for number in ruling.why:
            assert kept_together(theory, set(ruling.why) - {number}, *more, ~query)
    else:
        assert ruling.why == ()
        assert all(truth(theory.statements[n].formula, ruling.world) for n in hard_statements(theory))
        assert all(truth(formula, ruling.world) for formula in more)
        assert not truth(query, ruling.world)
    brief = prove(against, why=False)
    assert (brief.satisfiable, brief.why) == (ruling.satisfiable, ())


@given(crowded, formulae(NAMES[:4], max_leaves=4), st.none() | formulae(NAMES[:4], max_leaves=4))
def test_what_follows_is_true_in_every_model_and_nothing_follows_where_there_is_none(theory, query, evidence):
    theory = Theory(list(theory), atoms=NAMES[:4])
    more = [] if evidence is None else [evidence]
    if kept_together(theory, hard_statements(theory), *more):
        assert follows(theory, query, given=evidence) is not kept_together(
            theory, hard_statements(theory), *more, ~query
        )
    else:
        with pytest.raises(NoWorlds):
            follows(theory, query, given=evidence)


@given(crowded, formulae(NAMES[:4], max_leaves=4))
def test_a_model_that_is_found_keeps_every_hard_formula_and_the_evidence(theory, evidence):
    theory = Theory(list(theory), atoms=NAMES[:4])
    found = find_model(theory, given=evidence)
    assert (found is not None) is kept_together(theory, hard_statements(theory), evidence)
    assert satisfiable(theory, given=evidence) is (found is not None)
    if found is not None:
        assert tuple(found) == theory.atoms
        assert all(truth(theory.statements[n].formula, found) for n in hard_statements(theory))
        assert truth(evidence, found)


@given(st.lists(st.lists(st.sampled_from([1, -1, 2, -2, 3, -3]), max_size=3), max_size=14), st.data())
def test_packed_clauses_are_proven_as_the_same_clauses_in_formulae_are(rows, data):
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    clauses = Clauses(("a", "b", "c"), np.array([n for row in rows for n in row], np.int32), starts)
    weights = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    packed = Theory.from_clauses(clauses, None if weights is None else np.array(weights, np.int64))
    plain = Theory(list(packed), atoms=packed.atoms)
    assert satisfiable(packed) is satisfiable(plain)
    found = clash(packed)
    assert bool(found) is not satisfiable(plain)
    assert not found or not kept_together(plain, found)
    assert all(kept_together(plain, set(found) - {number}) for number in found)


@given(formulae())
def test_a_formula_and_its_negation_always_clash(formula):
    verdict = prove(Theory([formula, "unrelated", ~formula]))
    assert verdict.satisfiable is False
    assert verdict.minimal
    assert 1 not in verdict.why


def test_soft_formulae_never_clash():
    found = prove(Theory([(1, "a"), (2, "~a"), (3, "false")]))
    assert (found.status, found.why, found.minimal) == ("satisfiable", (), False)


def test_a_theory_without_formulae_is_satisfiable():
    assert satisfiable(Theory(atoms=["a"])) is True


def test_a_false_formula_clashes_alone():
    assert clash(Theory(["a", "false", "b"])) == (1,)


def pigeons(holes):
    """One pigeon more than there are holes: short to say, and without end for resolution."""
    lines = [" | ".join(f"sits(p{p}, h{h})" for h in range(holes)) for p in range(holes + 1)]
    for h in range(holes):
        lines += [f"~sits(p{p}, h{h}) | ~sits(p{q}, h{h})" for p in range(holes + 1) for q in range(p)]
    return Theory.parse("\n".join(lines))


def test_out_of_time_there_is_no_answer():
    start = time.monotonic()
    assert satisfiable(pigeons(14), budget=Budget.of(0.3)) is None
    assert clash(pigeons(14), budget=Budget.of(0.3)) is None
    assert prove(pigeons(14), budget=Budget.of(0.3)) == Proof(None)
    assert prove(pigeons(14), given=~atom("sits(p0, h0)"), budget=Budget.of(0.3)).satisfiable is None
    assert time.monotonic() - start < 120  # without a clock it would take years


def test_all_pigeons_are_needed():
    theory = pigeons(4)
    assert clash(theory) == tuple(range(len(theory)))


def test_time_that_ends_while_a_clash_is_made_smaller_leaves_a_clash_that_may_not_be_minimal(monkeypatch):
    theory = Theory(["a", "a -> b", "~b", "c"])
    answers = []
    solve = Solver.solve

    def slower(self, assumptions=(), **_):
        answers.append(None if len(answers) == 2 else solve(self, assumptions))
        return answers[-1]

    monkeypatch.setattr(Solver, "solve", slower)
    verdict = prove(theory)  # the first answers: a core; one member is needed; then no time
    assert verdict == Proof("unsatisfiable", (0, 1, 2), minimal=False)
    answers.clear()
    assert clash(theory) is None


def test_time_that_ends_before_a_clash_is_found_still_leaves_the_proof(monkeypatch):
    answers = iter([None])
    monkeypatch.setattr(Solver, "solve", lambda self, assumptions=(), **_: next(answers))
    assert prove(Theory(["a", "~a"])) == Proof("unsatisfiable")


def test_clauses_are_no_longer_handed_over_when_time_is_up():
    clauses, handed = [[number] for number in range(1, 100_001)], []
    solver = Solver(SPENT)
    solver.solver.delete()
    solver.solver = type("Fake", (), {"add_clause": lambda self, clause: handed.append(clause)})()
    solver.add(clauses)
    assert 0 < len(handed) <= len(clauses) // 4
    assert handed == clauses[: len(handed)]
    assert solver.solve() is None


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_budget_that_is_no_time_is_refused(seconds):
    with pytest.raises(ValueError, match="positive"):
        satisfiable(Theory(["a"]), budget=Budget.of(seconds))


def test_a_cardinality_too_large_to_count_is_refused_by_name_if_no_simple_world_will_do():
    parts = [atom(f"x{i}") for i in range(4000)]
    half = atleast(2000, *parts)
    assert satisfiable(Theory([half]))
    with pytest.raises(LimitExceeded, match="MAX_CELLS"):
        satisfiable(Theory([half, ~half]))
