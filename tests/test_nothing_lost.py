"""What old and new are compared on: problems that mean what they say, and losses that are seen."""

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import lbm

ROOT = Path(__file__).parents[1]


@pytest.fixture
def problems(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from measuring import problems

    return problems


@pytest.fixture
def nothing_lost(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import nothing_lost

    return nothing_lost


def test_a_spin_glass_loses_the_weight_of_ties_that_are_not_as_they_like(problems):
    glass = problems.spin_glass(3, heaviest=4, seed=1)
    assert (glass.atoms, len(glass)) == (9, 36)
    for world in list(product((False, True), repeat=9))[::37]:
        flipped = [not value for value in world]
        assert glass.cost(world) == glass.cost(flipped)  # a glass has no field
    assert lbm.best(glass.theory()).lost == min(map(glass.cost, product((False, True), repeat=9)))


def test_a_cut_loses_the_weight_of_edges_inside_its_sides(problems):
    made = problems.cut(7, 12, heaviest=9, seed=2)
    rows, weights = made.rows(), made.weights.tolist()
    edges = {tuple(row): weight for row, weight in zip(rows[::2], weights[::2], strict=True)}
    assert len(edges) == 12
    for world in product((False, True), repeat=7):
        inside = sum(weight for (a, b), weight in edges.items() if world[a - 1] == world[b - 1])
        assert made.cost(world) == inside


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_moves_one_block_at_a_time_from_a_free_top_to_a_free_place(problems, seed):
    number = 4
    made = problems.blocks(number, seed=seed)
    world = list(lbm.best(made.theory()).world.values())
    assert made.cost(world) == 0
    states = np.array(world[: number * (number + 1) * (2 * number + 1)])
    states = states.reshape(2 * number + 1, number, number + 1)
    assert (states.sum(axis=2) == 1).all()
    places = states.argmax(axis=2)
    assert (places[0] != places[-1]).any()
    for before, after in pairwise(places.tolist()):
        moved = [block for block in range(number) if before[block] != after[block]]
        assert len(moved) <= 1
        for block in moved:
            assert block not in before
            assert after[block] == number or after[block] not in before


def search(cost, *steps):
    return {"steps": [[wall, cpu, lost] for wall, cpu, lost in [*steps, (1.0, 1.0, cost)]]}


def rows(nothing_lost, *rounds):
    name = next(iter(nothing_lost.SEARCHED))
    return [
        {"key": ["search", name, k], "sides": {"this checkout": mine, "the other": other}}
        for k, (mine, other) in enumerate(rounds)
    ]


def test_a_loss_counts_where_both_rounds_and_both_clocks_have_it(nothing_lost):
    quick, slow = [search(3, (0.1, 0.1, 3))], [search(3, (0.2, 0.2, 3))]
    waits, never = [search(3, (0.2, 0.1, 3))], [search(4, (0.1, 0.1, 4))]

    def met(*rounds):
        return [met for _, met in nothing_lost.section(rows(nothing_lost, *rounds)).wanted]

    assert met((slow, quick), (slow, quick)) == [False]
    assert met((slow, quick), (quick, slow)) == [True]
    assert met((waits, quick), (waits, quick)) == [True]
    assert met((never, quick), (never, quick)) == [False]
    assert met((quick, never), (quick, never)) == [True]
    assert met((slow, slow), (slow, slow)) == [True]


def test_a_model_may_take_three_times_as_long_as_minisat_and_a_tenth_of_a_second(nothing_lost):
    def row(name, took):
        some = [{"steps": [[took, took, 0]], "minisat": 0.1}] * 3
        return {"key": ["model", name, 0], "sides": {"this checkout": some}}

    found = nothing_lost.section([row("flat200-1", 0.39), row("bmc-2810", 0.41)])
    assert [met for _, met in found.wanted] == [False, True]
    assert [cells[0] for cells in found.tables[1].rows] == ["bmc-2810", "flat200-1"]


def test_public_clauses_are_read_whole(nothing_lost, monkeypatch, tmp_path):
    (tmp_path / "sat").mkdir()
    (tmp_path / "sat" / "one.cnf").write_text("c hello\np cnf 3 2\n1 -2\n0 3 0\n")
    monkeypatch.setenv("LBM_INSTANCES", str(tmp_path))
    assert nothing_lost.public("one.cnf").rows() == [[1, -2], [3]]
    assert nothing_lost.public("two.cnf") is None
