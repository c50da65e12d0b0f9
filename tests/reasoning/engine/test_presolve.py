"""Presolve changes neither models nor what they lose, by brute force over every world."""

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysat.examples.rc2 import RC2
from pysat.formula import WCNF

from lbm.errors import LimitExceeded, WeightError
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.theory import Theory
from lbm.reasoning.engine import presolve as module
from lbm.reasoning.engine.presolve import presolve
from lbm.reasoning.problem import Problem

KERNELS = "_propagate _same _find_pairs _find_longer _fix_pure _components".split()


def pack(atoms, clauses, weights):
    return Clauses.of(clauses, weights, variables=atoms)


def rows(problem):
    """Return the clauses of a problem with their weights, as lists."""
    ends = problem.starts.tolist()
    literals = problem.literals.tolist()
    return [
        (literals[first:last], weight)
        for first, last, weight in zip(ends[:-1], ends[1:], problem.weights.tolist(), strict=True)
    ]


@st.composite
def problems(draw, max_atoms=7):
    """Return a problem, whose clauses may be empty, tautologies or have a literal twice, and fixed values."""
    atoms = draw(st.integers(0, max_atoms))
    literal = st.integers(1, atoms).flatmap(lambda i: st.sampled_from([i, -i])) if atoms else st.nothing()
    sizes = st.sampled_from([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 8]) if atoms else st.just(0)
    clause = sizes.flatmap(lambda size: st.lists(literal, min_size=min(size, 1), max_size=size))
    weighted = draw(st.lists(st.tuples(clause, st.sampled_from([0, 0, 1, 2, 3, 10**15])), max_size=18))
    fixed = draw(st.dictionaries(st.integers(1, atoms), st.booleans(), max_size=2)) if atoms else {}
    return pack(atoms, [c for c, _ in weighted], [w for _, w in weighted]), fixed


def random_problem(seed, *, atoms, hard=(0, 8, 14, 6), soft=(4, 8, 14, 10, 4, 2)):
    """Return a problem of about as many clauses of size 1, 2, ... as given, some of them twice."""
    rng = random.Random(seed)
    drawn = []
    for numbers, weights in ((hard, [0]), (soft, [1, 2, 5, 9])):
        for size, number in enumerate(numbers, start=1):
            for _ in range(rng.randint(0, number)):
                chosen = [rng.choice([i, -i]) for i in rng.sample(range(1, atoms + 1), min(size, atoms))]
                drawn += [(chosen, rng.choice(weights))] * rng.choice([1, 1, 1, 2])
    # Supersets of others, so that there is something to be subsumed.
    for clause, _ in rng.sample(drawn, len(drawn) // 4):
        drawn.append(([*rng.sample(clause, len(clause)), rng.randint(1, atoms)], rng.choice([0, 3])))
    rng.shuffle(drawn)
    fixed = {rng.randint(1, atoms): rng.random() < 0.5} if rng.random() < 0.3 else {}
    return pack(atoms, [c for c, _ in drawn], [w for _, w in drawn]), fixed


# --- the oracle ------------------------------------------------------------------------------------


def every_world(atoms):
    """Return all worlds, shape (atoms, 2^atoms)."""
    return np.arange(1 << atoms) >> np.arange(atoms)[:, None] & 1 == 1


def judged(problem, x):
    """Return whether each world keeps the hard clauses, and the weight it loses."""
    keeps, lost = np.ones(x.shape[1], bool), np.zeros(x.shape[1], object)
    for clause, weight in rows(problem):
        false = np.ones(x.shape[1], bool)
        for literal in clause:
            false &= x[abs(literal) - 1] != (literal > 0)
        if weight:
            lost[false] += weight
        else:
            keeps &= ~false
    return keeps, lost


def forced(problem, fixed):
    """Return the literals that follow from hard clauses one at a time; None: a clause has none left."""
    true = {atom if value else -atom for atom, value in fixed.items()}
    hard = [set(clause) for clause, weight in rows(problem) if not weight]
    while True:
        left = [{m for m in clause if -m not in true} for clause in hard if not clause & true]
        left = [clause for clause in left if not any(-m in clause for m in clause)]
        if not all(left):
            return None
        new = {literal for clause in left if len(clause) == 1 for literal in clause}
        if not new:
            return true
        true.add(new.pop())


def undo(found, x, *, free=False):
    """Return worlds over the original atoms, from those over what is left and values of the free atoms."""
    worlds = np.repeat(found.fixed[:, None] > 0, x.shape[1], axis=1)
    worlds[found.kept - 1] = x
    worlds[found.free - 1] = free
    return worlds


# --- laws ------------------------------------------------------------------------------------------


def check_models(problem, fixed):
    """Models correspond one to one, free atoms doubling them, and lose the same; None: a proven clash."""
    x = every_world(problem.variables)
    keeps, lost = judged(problem, x)
    for atom, value in fixed.items():
        keeps &= x[atom - 1] == value
    found = presolve(problem, pure=False, fixed=fixed)
    if found is None:
        assert not keeps.any()
        return
    fixed_atoms = np.flatnonzero(found.fixed) + 1
    assert sorted([*found.kept, *found.free, *fixed_atoms]) == list(range(1, problem.variables + 1))
    models, lost = x[:, keeps], lost[keeps]
    assert (models[found.fixed != 0] == (found.fixed > 0)[found.fixed != 0, None]).all()
    small = models[found.kept - 1]
    small_keeps, small_lost = judged(found.problem, small)
    assert small_keeps.all()
    assert (small_lost + found.lost == lost).all()
    # With the same number on both sides, nothing else is a model there.
    number = judged(found.problem, every_world(found.problem.variables))[0].sum()
    assert number << len(found.free) == models.shape[1]
    assert np.array_equal(undo(found, small, free=models[found.free - 1]), models)


def check_best(problem, fixed):
    """The least lost weight is the same, and the best worlds of what is left are best, whatever is free."""
    x = every_world(problem.variables)
    keeps, lost = judged(problem, x)
    for atom, value in fixed.items():
        keeps &= x[atom - 1] == value
    found = presolve(problem, pure=True, fixed=fixed)
    if found is None:
        assert not keeps.any()
        return
    small = every_world(found.problem.variables)
    small_keeps, small_lost = judged(found.problem, small)
    assert small_keeps.any() == keeps.any()
    if not keeps.any():
        return
    least = small_lost[small_keeps].min()
    assert found.lost + least == lost[keeps].min()
    best = small[:, small_keeps & (small_lost == least)]
    free = np.random.default_rng(0).random((len(found.free), best.shape[1])) < 0.5
    for worlds in (undo(found, best), undo(found, best, free=free)):
        again, weight = judged(problem, worlds)
        assert again.all()
        assert (weight == lost[keeps].min()).all()
        assert all((worlds[atom - 1] == value).all() for atom, value in fixed.items())


def check_done(found, *, pure):
    """Nothing is left to do that was promised."""
    clauses = [(frozenset(clause), weight) for clause, weight in rows(found.problem)]
    for (clause, _), (literals, weight) in zip(clauses, rows(found.problem), strict=True):
        assert len({abs(literal) for literal in literals}) == len(literals)
        assert literals == sorted(literals, key=abs)
        assert len(literals) >= (1 if weight else 2)
        assert not any(other < clause for other, hard in clauses if not hard)
    assert len({clause for clause, _ in clauses}) == len(clauses)
    units = {literal for clause, _ in clauses if len(clause) == 1 for literal in clause}
    assert not any(-literal in units for literal in units)
    signs = {literal for clause, _ in clauses for literal in clause}
    assert {abs(literal) for literal in signs} == set(range(1, found.problem.variables + 1))
    assert not pure or all(-literal in signs for literal in signs)


def assert_equal(one, other):
    assert (one is None) == (other is None)
    if one is None:
        return
    assert rows(one.problem) == rows(other.problem)
    assert one.lost == other.lost
    for field in ("kept", "fixed", "free", "components"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field


@given(problems())
def test_models_and_what_they_lose_stay_the_same(drawn):
    check_models(*drawn)


@given(problems())
def test_the_best_worlds_stay_best_without_pure_literals(drawn):
    check_best(*drawn)


@pytest.mark.parametrize("atoms", [2, 4, 6, 9, 12])
def test_larger_random_problems_keep_both_laws_and_leave_nothing_to_do(atoms):
    for seed in range(12):
        problem, fixed = random_problem(seed, atoms=atoms)
        check_models(problem, fixed)
        check_best(problem, fixed)
        for pure in (False, True):
            found = presolve(problem, pure=pure, fixed=fixed)
            if found is not None:
                check_done(found, pure=pure)


@given(problems(), st.booleans())
def test_a_second_time_finds_nothing(drawn, pure):
    problem, fixed = drawn
    found = presolve(problem, pure=pure, fixed=fixed)
    if found is None:
        return
    check_done(found, pure=pure)
    again = presolve(found.problem, pure=pure)
    assert rows(again.problem) == rows(found.problem)
    assert (again.lost, len(again.free), again.fixed.any()) == (0, 0, False)
    assert np.array_equal(again.components, found.components)


@given(problems())
def test_what_is_fixed_is_what_units_force_and_none_is_their_clash(drawn):
    problem, fixed = drawn
    found, wanted = presolve(problem, pure=False, fixed=fixed), forced(problem, fixed)
    assert (found is None) == (wanted is None)
    if found is not None:
        assert {int(i) * int(v) for i, v in enumerate(found.fixed, start=1) if v} == wanted


@given(problems(max_atoms=9))
def test_components_are_those_of_atoms_that_share_clauses(drawn):
    found = presolve(drawn[0], pure=False)
    if found is None:
        return
    groups = {atom: {atom} for atom in range(1, found.problem.variables + 1)}
    for clause, _ in rows(found.problem):
        whole = set().union(*(groups[abs(literal)] for literal in clause))
        groups.update(dict.fromkeys(whole, whole))
    label = found.components.tolist()
    assert sorted(set(label)) == list(range(len({id(group) for group in groups.values()})))
    for one, other in combinations(groups, 2):
        assert (label[one - 1] == label[other - 1]) == (other in groups[one])


def test_kernels_do_the_same_uncompiled_and_whatever_the_hashes(monkeypatch):
    drawn = [random_problem(seed, atoms=atoms) for seed in range(12) for atoms in (3, 6, 10)]
    drawn += [(random_problem(seed, atoms=3, hard=(6, 3))[0], {1: True}) for seed in range(12)]
    drawn.append((pack(1, [[1], []], [3, 0]), {}))
    compiled = [presolve(p, pure=pure, fixed=f) for p, f in drawn for pure in (False, True)]
    assert {len(getattr(module, name).fast.signatures) for name in KERNELS} == {1}  # none was compiled twice
    for name in KERNELS:
        monkeypatch.setattr(module, name, getattr(module, name).py_func)
    monkeypatch.setattr(module, "_mixed", lambda number: np.arange(number, dtype=np.uint64))  # many collide
    monkeypatch.setattr(module, "CALL", 7)
    plain = [presolve(p, pure=pure, fixed=f) for p, f in drawn for pure in (False, True)]
    for one, other in zip(compiled, plain, strict=True):
        assert_equal(one, other)


def test_out_of_comparisons_more_is_kept_but_hard_pairs_are_found_still(monkeypatch):
    monkeypatch.setattr(module, "MAX_COMPARISONS", 1)
    kept = 0
    for seed in range(20):
        problem, fixed = random_problem(seed, atoms=7)
        check_models(problem, fixed)
        found = presolve(problem, pure=False, fixed=fixed)
        if found is None:
            continue
        clauses = [(frozenset(clause), weight) for clause, weight in rows(found.problem)]
        hard = [clause for clause, weight in clauses if not weight]
        contained = [small for clause, _ in clauses for small in hard if small < clause]
        assert all(len(small) > 2 for small in contained)
        kept += len(contained)
    assert kept  # the limit was met


def test_a_soft_clause_is_never_dropped_for_another_soft_one():
    found = presolve(pack(3, [[1], [1, 2], [1, 2, 3], [-1]], [1, 2, 4, 8]), pure=False)
    assert rows(found.problem) == [([1, 2], 2), ([1, 2, 3], 4), ([-1], 7)]
    assert found.lost == 1


def test_an_atom_is_free_once_pure_ones_have_made_all_its_clauses_true():
    found = presolve(pack(3, [[1, 2], [-2, -3], [2, -3]], [0, 4, 5]), pure=True)
    assert (found.fixed.tolist(), found.free.tolist(), len(found.problem)) == ([1, 0, -1], [2], 0)


def test_the_optimum_of_a_larger_problem_is_that_of_rc2():
    rng = random.Random(5)
    atoms, drawn = 150, []
    for size, number, weights in (
        (1, 6, [0]),
        (2, 60, [0]),
        (3, 250, [0]),
        (1, 150, [1, 3]),
        (3, 150, [1, 4]),
    ):
        for _ in range(number):
            chosen = rng.sample(range(1, atoms + 1), size)
            # Hard clauses keep the world in which all are true.
            weight = rng.choice(weights)
            signs = [rng.choice([1, -1]) for _ in chosen]
            signs[0] = signs[0] if weight else 1
            drawn.append(([s * i for s, i in zip(signs, chosen, strict=True)], weight))
    drawn += [([*clause, rng.randint(1, atoms)], rng.choice([0, 2])) for clause, _ in drawn[:300]]
    problem = pack(atoms, [c for c, _ in drawn], [w for _, w in drawn])

    def optimum(problem):
        formula = WCNF()
        for clause, weight in rows(problem):
            formula.append(clause, weight=weight or None)
        with RC2(formula) as solver:
            model = set(solver.compute() or ())
            return solver.cost, np.array([[i in model] for i in range(1, problem.variables + 1)])

    least, _ = optimum(problem)
    for pure in (False, True):
        found = presolve(problem, pure=pure)
        assert len(found.problem) < 0.8 * len(problem)
        rest, world = optimum(found.problem)
        assert found.lost + rest == least
        keeps, lost = judged(problem, undo(found, world))
        assert keeps.all()
        assert lost.tolist() == [least]


def test_a_long_chain_of_implications_follows_from_its_first_atom_and_meets_its_last():
    atoms = 50_000
    chain = [[-i, i + 1] for i in range(1, atoms)]
    problem = pack(atoms, chain, [0] * len(chain))
    assert (presolve(problem, pure=False, fixed={1: True}).fixed == 1).all()
    assert presolve(problem, pure=False, fixed={1: True, atoms: False}) is None
    open_ = presolve(problem, pure=False)
    assert len(open_.problem) == len(chain)
    assert not open_.components.any()
    done = presolve(problem, pure=True)
    assert len(done.problem) == 0
    assert len(done.kept) + len(done.free) + (done.fixed != 0).sum() == atoms


# --- at the door -----------------------------------------------------------------------------------


def test_weights_sum_exactly_up_to_the_limit_and_are_refused_above():
    top = (1 << 62) - 1
    found = presolve(pack(2, [[1, 2], [2, 1], []], [top - 10, 4, 6]), pure=False)
    assert rows(found.problem) == [([1, 2], top - 6)]
    assert found.lost == 6
    for weights in ([top, 1], [2**63 - 1] * 8):  # the sum of the latter is past 64 bits
        with pytest.raises(LimitExceeded, match="MAX_TOTAL") as caught:
            presolve(pack(1, [[1]] * len(weights), weights), pure=False)
        assert (caught.value.limit, caught.value.value) == ("MAX_TOTAL", top)


def test_what_is_no_problem_is_refused_with_what_was_expected():
    good = pack(2, [[1, -2], [2]], [1, 0])
    with pytest.raises(WeightError, match=r"got -3"):
        presolve(pack(1, [[1]], [-3]), pure=False)
    with pytest.raises(ValueError, match=r"i from 1 to 2"):
        presolve(pack(2, [[1, 3]], [1]), pure=False)
    with pytest.raises(ValueError, match=r"i from 1 to 2"):
        presolve(pack(2, [[-3]], [1]), pure=False)
    with pytest.raises(ValueError, match=r"i from 1 to 2"):
        presolve(pack(2, [[0]], [1]), pure=False)
    for starts in ([0, 2], [0, 2, 4], [1, 2, 3], [0, 3, 2, 3]):
        weights = good.weights if len(starts) == 2 else np.ones(len(starts) - 1, np.int64)
        bad = Clauses((), good.literals, np.array(starts), weights, 2)
        with pytest.raises(ValueError, match="starts rises from 0"):
            presolve(bad, pure=False)
    with pytest.raises(ValueError, match=r"from 1 to 2, got 3"):
        presolve(good, pure=False, fixed={3: True})
    with pytest.raises(LimitExceeded, match="MAX_ATOMS"):
        presolve(pack(1 << 30, [[1]], [1]), pure=False)


def test_a_theory_of_packed_clauses_is_taken_as_it_is():
    clauses = Clauses(("a", "b", "c"), np.array([1, -2, 3], np.int32), np.array([0, 2, 3]))
    hard = Problem(Theory.from_clauses(clauses)).weighted_clauses()
    assert (hard.variables, rows(hard)) == (3, [([1, -2], 0), ([3], 0)])
    mixed = Problem(Theory.from_clauses(clauses, np.array([0, 7]))).weighted_clauses()
    assert rows(mixed) == [([1, -2], 0), ([3], 7)]
    assert Problem(Theory([(-7, "a | b")])).weighted_clauses() is None
    assert Problem(Theory(["a ^ b"])).weighted_clauses() is None
