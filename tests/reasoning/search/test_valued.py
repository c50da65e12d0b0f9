"""Search that knows structure: its worlds are models, and best ones of small problems."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import holds
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import SPENT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.search import valued
from lbm.reasoning.search.valued import improve, valued_of

NAMES = "abcdefg"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Rounds that take a moment."""
    monkeypatch.setattr(valued, "WORK", (40_000, 80_000))
    monkeypatch.setattr(valued, "CALL", 20_000)


def literals(least, most):
    one = st.sampled_from(NAMES).flatmap(lambda name: st.sampled_from([name, f"~{name}"]))
    return st.lists(one, min_size=least, max_size=most, unique_by=lambda text: text[-1])


CLAUSES = literals(1, 3).map(" | ".join)
PAIRS = literals(2, 2).flatmap(lambda two: st.sampled_from([f"{two[0]} <-> {two[1]}", " & ".join(two)]))
COUNTS = st.tuples(st.sampled_from(["exactly", "atmost", "atleast"]), st.integers(0, 3), literals(2, 5)).map(
    lambda said: f"{said[0]}({said[1]}, {', '.join(said[2])})"
)
ONES = st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True).map(
    lambda names: f"exactly(1, {', '.join(names)})"
)
DEEP = st.tuples(CLAUSES, COUNTS, literals(1, 2)).map(lambda t: f"({t[0]}) <-> ({t[1]} & {t[2][0]})")
FORMULAE = st.one_of(CLAUSES, CLAUSES, PAIRS, COUNTS, DEEP, COUNTS.map("~{}".format))
HARD = st.lists(st.one_of(ONES, FORMULAE), max_size=3)
SOFT = st.lists(st.tuples(st.integers(-9, 9).filter(bool), FORMULAE), min_size=1, max_size=6)


def theory_of(lines):
    return Theory.parse("\n".join(lines))


def problem_of(hard, soft, evidence=None):
    lines = [*hard, *(f"{weight}: {formula}" for weight, formula in soft)]
    lines += [f"{name} | ~{name}" for name in NAMES]
    return Problem(theory_of(lines), evidence and parse(evidence))


def least_of(problem):
    """The least weight lost by any model, by the words alone; None: there is none."""
    theory, found = problem.theory, []
    for values in itertools.product([False, True], repeat=len(theory.atoms)):
        world = dict(zip(theory.atoms, values, strict=True))
        if problem.evidence is not None and not holds(problem.evidence, world):
            continue
        lost = 0
        for statement in theory:
            true = holds(statement.formula, world)
            if statement.weight is None:
                if not true:
                    break
            elif true != (statement.weight >= 0):
                lost += abs(statement.weight)
        else:
            found.append(lost)
    return min(found, default=None)


@settings(max_examples=60, deadline=None)
@given(HARD, SOFT, st.none() | st.one_of(CLAUSES, PAIRS, COUNTS), st.integers(0, 99))
def test_it_finds_a_best_world_of_a_small_problem(hard, soft, evidence, seed):
    problem = problem_of(hard, soft, evidence)
    made, least = valued_of(problem), least_of(problem)
    if made is None:
        return
    lost = []
    for number in range(6):
        told = []
        round_ = improve(made, seed, number, found=told.append)
        worlds = [problem.look(world) for world in [*told, *round_.worlds]]
        assert all(world.keeps for world in worlds)
        costs = [world.lost for world in worlds[: len(told)]]
        assert all(a > b for a, b in itertools.pairwise(costs))
        lost += [world.lost for world in worlds]
    assert min(lost, default=None) == least


@settings(max_examples=40, deadline=None)
@given(HARD, SOFT, st.integers(0, 99))
def test_what_a_state_costs_is_what_its_world_loses(hard, soft, seed):
    problem = problem_of(hard, soft)
    made = valued_of(problem)
    if made is None:
        return
    current = valued._first(made, seed, 1)
    space = made.values.space
    state = valued.state_of(space, current, heavy=made.heavy, seed=seed, number=0)
    world = problem.look(made.world(current))
    assert made.world(made.slots(world.values)) == list(world.values)
    if state.cost is not None:
        assert world.keeps
        assert world.lost == made.lost + made.divisor * state.cost


def tied(hard=()):
    """Two variables of four values, of which one follows from the other."""
    lines = [f"exactly(1, {', '.join(f'{name}(v{i})' for i in range(4))})" for name in "xy"]
    lines += [f"x(v{i}) -> y(v{3 - i})" for i in range(4)]
    lines += [f"{weight}: ~x(v{i})" for i, weight in enumerate((5, 1, 7, 4))]
    lines += [f"{weight}: ~y(v{i})" for i, weight in enumerate((1, 5, 3, 6))]
    return Problem(theory_of([*lines, *hard]))


def test_a_group_that_follows_from_another_is_searched_with_it():
    made = valued_of(tied())
    assert made.values.groups.tolist() == [4, 4]
    assert made.values.space.variables == 1
    found = improve(made, 0, 0)
    assert tied().look(found.worlds[0]).lost == 4  # x(v1), y(v2)


def test_groups_that_are_tied_in_a_circle_that_does_not_close_leave_nothing():
    assert valued_of(tied([f"y(v{i}) -> x(v{i})" for i in range(4)])) is None


def test_groups_that_are_tied_in_a_circle_with_one_way_out_keep_it():
    names = ["x(v0)", "y(v3)"]
    problem = tied([f"~(x(v{i}) & y(v{3 - i}))" for i in range(1, 4)])
    made = valued_of(problem)
    world = problem.named(improve(made, 0, 0).worlds[0])
    assert [name for name, value in world.items() if value] == names


def test_the_same_seed_and_number_find_the_same():
    problem = problem_of(["exactly(1, a, b, c, d)", "a -> e"], [(3, "~e"), (2, "a"), (4, "f | b"), (1, "~f")])
    made = valued_of(problem)
    for number in range(6):
        assert improve(made, 7, number) == improve(made, 7, number)


def test_a_round_begins_from_the_best_world_that_anybody_knows():
    problem = problem_of(["exactly(1, a, b, c, d)", "a -> e"], [(3, "~e"), (2, "a"), (4, "f | b"), (1, "~f")])
    made = valued_of(problem)
    best = min(
        (list(world) for world in itertools.product([False, True], repeat=7) if problem.look(world).keeps),
        key=lambda world: problem.look(world).lost,
    )
    for known in ({"start": best}, {"best": lambda: best}):
        told = []
        found = improve(made, 0, 0, found=told.append, budget=SPENT, **known)
        assert not told
        assert problem.look(found.worlds[0]).lost == problem.look(best).lost


def test_a_round_ends_when_time_is_over():
    problem = problem_of(["exactly(1, a, b, c, d)"], [(3, "~e"), (2, "a"), (4, "f | b"), (1, "~f")])
    assert improve(valued_of(problem), 0, 0, budget=SPENT).worlds


@pytest.mark.parametrize(
    "lines",
    [
        ["a | b", "~a | c"],  # nothing is soft
        ["3: a | b", "2: ~a | c", "1: ~b"],  # nothing is hard and no atoms are grouped
        ["exactly(1, a, b)", "a", "b", "3: c"],  # no world
    ],
)
def test_what_it_is_not_for_is_refused(lines):
    assert valued_of(Problem(theory_of(lines))) is None


def test_hard_parts_without_a_model_find_nothing():
    holes = [f"atmost(1, {', '.join(f'sits(p{p}, h{h})' for p in range(4))})" for h in range(3)]
    birds = [f"exactly(1, {', '.join(f'sits(p{p}, h{h})' for h in range(3))})" for p in range(4)]
    made = valued_of(Problem(theory_of([*holes, *birds, "3: sits(p0, h0)"])))
    for number in range(4):
        assert improve(made, 0, number).worlds == []


def test_weights_past_what_floats_hold_are_kept_or_rounded():
    large = 10**17
    said = ["exactly(1, a, b, c)", f"{large}: ~a", f"{large + 1}: ~b", f"{large + 2}: ~c"]
    problem = Problem(theory_of(said))
    made = valued_of(problem)
    assert not made.exact
    assert problem.look(improve(made, 0, 0).worlds[0]).keeps
    same = valued_of(
        Problem(theory_of([said[0], *(f"{k * large}: ~{name}" for k, name in enumerate("abc", 1))]))
    )
    assert (same.exact, same.divisor) == (True, large)
    past = Problem(theory_of([said[0], *(f"{k * 10**30}: ~{name}" for k, name in enumerate("cba", 1))]))
    assert past.look(improve(valued_of(past), 0, 0).worlds[0]).lost == 10**30


def test_many_soft_clauses_are_refused_or_quick(monkeypatch):
    clauses = Clauses.of(
        [[-1, -2], [-1, 3], *([i % 9 + 1, -((i + 4) % 9 + 1)] for i in range(2_000))],
        [0, 0] + [1 + i % 7 for i in range(2_000)],
        atoms=tuple("abcdefghi"),
    )
    problem = Problem(Theory.from_clauses(clauses))
    assert valued_of(problem) is not None
    monkeypatch.setattr(valued, "MAX_SIZE", 100)
    assert valued_of(problem) is None


def test_time_that_is_over_ends_the_making_of_variables():
    with pytest.raises(Exception, match="in time"):
        valued_of(problem_of(["exactly(2, a, b, c)"], [(2, "a <-> b")]), Budget(-1.0))
