"""Search by annealing: what is found is verified, depends on the seed alone, and bad input has its answer."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import NoAnswer, NoWorlds, UnknownAtom, WrongDistribution
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import atoms_of, holds
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.knowledge.wire import read_theory
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.engine.presolve import presolve
from lbm.reasoning.exact.apart import split_of
from lbm.reasoning.problem import Problem
from lbm.reasoning.search import annealed, routes
from lbm.reasoning.search.annealed import anneal, of_clauses, of_split, unsettled_of
from lbm.reasoning.search.harvest import harvest
from tests.strategies import formulae, theories

COLOURS = "rgb"


def worlds_of(theory, given=None):
    """Every model, by brute force."""
    found = set()
    for values in product([False, True], repeat=len(theory.atoms)):
        world = dict(zip(theory.atoms, values, strict=True))
        if theory.is_model(world) and (given is None or holds(given, world)):
            found.add(values)
    return found


def packed(clauses, atoms, weights=None):
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    return Theory.from_clauses(Clauses.of(clauses, weights, atoms=names))


def random_clauses(atoms, number, seed, length=3):
    rng = np.random.default_rng(seed)
    rows = [rng.choice(atoms, length, replace=False) + 1 for _ in range(number)]
    return [(row * rng.choice([-1, 1], length)).tolist() for row in rows]


def colouring(nodes, edges):
    rows = [f"exactly(1, {', '.join(f'{c}{v}' for c in COLOURS)})" for v in range(nodes)]
    rows += [f"~{c}{v} | ~{c}{w}" for v, w in edges for c in COLOURS]
    return Theory(rows)


# --- models by annealing -------------------------------------------------------------------------------


@given(theories(), formulae(), st.integers(0, 99))
def test_harvested_worlds_are_models_and_keep_the_evidence(theory, evidence, seed):
    assert harvest_law(theory, evidence if set(atoms_of(evidence)) <= set(theory.atoms) else None, seed)


def harvest_law(theory, evidence, seed):
    expected = worlds_of(theory, evidence)
    rng = np.random.default_rng(seed)
    if not expected:
        with pytest.raises((NoWorlds, NoAnswer)):
            harvest(theory, 20, rng, given=evidence, budget=Budget.of(0.05))
        return True
    array, sweeps = harvest(theory, 20, rng, given=evidence, budget=NO_LIMIT)
    assert array.shape == (20, len(theory.atoms))
    assert sweeps > 0
    return {tuple(row) for row in array.tolist()} <= expected


def test_all_models_of_a_small_theory_are_met():
    for theory in (
        packed([[1, 2, 3], [-1, -2], [4, -3]], 5),
        colouring(3, [(0, 1), (1, 2)]),
        Theory(["a ^ b ^ c", "(a & b) | (c -> d)", (5, "~d")]),
    ):
        array, _ = harvest(theory, 5000, np.random.default_rng(0), budget=NO_LIMIT)
        assert {tuple(row) for row in array.tolist()} == worlds_of(theory)


def test_the_same_seed_harvests_the_same_models():
    theory = packed(random_clauses(60, 180, 0), 60)
    first, again = (lbm.sample(theory, 700, method="fast", seed=5).array for _ in range(2))
    other = lbm.sample(theory, 700, method="fast", seed=6).array
    assert (first == again).all()
    assert not (first == other).all()


def test_fast_models_say_that_they_are_not_uniform():
    drawn = lbm.sample(Theory(["a | b", (3, "~a")]), 50, method="fast", seed=0)
    assert drawn.method == "fast"
    assert not drawn.independent
    assert "not uniform" in repr(drawn)
    with pytest.raises(WrongDistribution, match="collapsed"):
        lbm.sample(Theory(["a"]), 5, method="fast", distribution="machine")
    with pytest.raises(ValueError, match="method"):
        lbm.ask(Theory(["a"]), "a", method="fast")


def test_a_theory_without_models_gives_none():
    with pytest.raises(NoWorlds):
        lbm.sample(Theory(["a", "~a"]), 5, method="fast")
    holes = [f"exactly(1, {', '.join(f'p{i}{h}' for h in range(3))})" for i in range(4)]
    pigeons = Theory([*holes, *(f"atmost(1, {', '.join(f'p{i}{h}' for i in range(4))})" for h in range(3))])
    with pytest.raises(NoAnswer, match="0 models"):
        lbm.sample(pigeons, 5, method="fast", seconds=0.2)


# --- rounds --------------------------------------------------------------------------------------------


@given(theories(), st.integers(0, 2**32), st.integers(0, 2))
def test_a_round_depends_on_its_number_and_the_seed_alone(theory, seed, number):
    problem = Problem(theory)
    split = split_of(theory, None, problem.known, NO_LIMIT)
    if split is None:
        return
    landscape = of_split(split, theory.atoms)
    told = []
    first = anneal(landscape, seed, number, found=told.append)
    again = anneal(landscape, seed, number)
    assert (first.worlds, first.sweeps) == (again.worlds, again.sweeps)
    assert not told or told[-1] in first.worlds


@pytest.mark.parametrize("weights", [None, "small", "large"])
def test_presolved_clauses_and_formulae_have_the_same_best_worlds(weights):
    clauses = random_clauses(30, 130, 3)
    rng = np.random.default_rng(0)
    size = {"small": 10, "large": 10**9}
    chosen = None if weights is None else rng.integers(1, size[weights], len(clauses)).tolist()
    theory = packed(clauses, 30, chosen)
    problem = Problem(theory)
    landscape = of_clauses(presolve(problem.weighted_clauses(), pure=True))
    split = of_split(split_of(theory, None, problem.known, NO_LIMIT), theory.atoms)
    least = [
        min(problem.look(world).lost for k in range(4) for world in anneal(each, 1, k).worlds)
        for each in (landscape, split)
    ]
    assert least[0] == least[1]


def test_components_are_put_together_from_different_chains():
    # Two hundred parts, each solved by most chains; all at once by none.
    rows = [(w, f"{s}x{i}_{j}") for i in range(200) for j, (w, s) in enumerate([(3, ""), (2, "~")])]
    rows += [f"x{i}_0 <-> x{i}_1" for i in range(200)]
    found = lbm.best(Theory(rows), seconds=5, seed=0)
    assert found.lost == 400


# --- the door ------------------------------------------------------------------------------------------


def hard(atoms=100, clauses=700, seed=0):
    weights = np.random.default_rng(seed).integers(1, 11, clauses).tolist()
    return packed(random_clauses(atoms, clauses, seed), atoms, weights)


def test_a_world_to_start_from_is_never_made_worse():
    theory = hard()
    known = lbm.best(theory, seconds=1, seed=0)
    seen = []
    again = lbm.best(theory, seconds=0.3, seed=1, start=known.world, on_better=seen.append)
    assert seen[0].world == known.world
    assert again.lost <= known.lost
    with pytest.raises(UnknownAtom, match="x1"):
        lbm.best(theory, start={"x": True})


def test_processes_search_together():
    theory = hard(seed=2)
    found = lbm.best(theory, seconds=3, seed=0, n_jobs=2)
    assert theory.score(found.world) == found.score
    assert found.lost < 100
    with pytest.raises(ValueError, match="n_jobs"):
        lbm.best(theory, n_jobs=0)


# --- bad input -----------------------------------------------------------------------------------------


def test_a_million_atoms():
    atoms = 1_000_000
    rng = np.random.default_rng(0)
    literals = rng.integers(1, atoms + 1, (200_000, 2), dtype=np.int32)
    literals *= rng.choice(np.array([-1, 1], np.int32), literals.shape)
    names = tuple(f"x{i}" for i in range(1, atoms + 1))
    starts = np.arange(0, literals.size + 1, 2, dtype=np.int64)
    clauses = Clauses(names, literals.ravel(), starts, rng.integers(1, 4, len(literals)))
    theory = Theory.from_clauses(clauses)
    found = lbm.best(theory, seconds=20, seed=0)
    assert found.lost < 0.01 * 2 * len(literals)  # few of them hang together, and nearly all can be kept
    assert len(found.world) == atoms


def test_formulae_that_share_no_atoms():
    theory = Theory([(k % 7 + 1, f"a{k} ^ b{k} ^ c{k}") for k in range(300)])
    found = lbm.best(theory, seconds=5, seed=0)
    assert (found.lost, found.optimal) == (0, True)


def test_a_single_atom(monkeypatch):
    monkeypatch.setattr(routes, "MAX_EXACT", 0)
    assert lbm.best(Theory([(2, "a"), (3, "~a")]), seconds=2, seed=0).world == {"a": False}
    assert lbm.best(Theory(["a"]), seconds=2, seed=0).world == {"a": True}
    assert lbm.best(Theory(atoms=["a"]), seconds=2, seed=0).lost == 0


def test_weights_over_eighteen_orders_of_magnitude(monkeypatch):
    monkeypatch.setattr(routes, "MAX_EXACT", 0)
    rows = [(f"1e{9 - 2 * k}", f"{'~' * (k % 2)}a{k} | a{k + 1}") for k in range(10)]
    rows += [("1e-9", f"~a{k}") for k in range(11)]
    theory = Theory([(Decimal(weight), formula) for weight, formula in rows])
    found = lbm.best(theory, seconds=5, seed=0)
    least = min(theory_lost(theory, values) for values in product([False, True], repeat=11))
    assert found.lost == least


def theory_lost(theory, values):
    world = dict(zip(theory.atoms, values, strict=True))
    return sum(s.weight for s in theory if not holds(s.formula, world))


def test_a_hard_part_that_cannot_be_satisfied():
    clauses = [[a, b, c] for a in (1, -1) for b in (2, -2) for c in (3, -3)]
    clauses += random_clauses(40, 100, 1)
    with pytest.raises(NoWorlds):
        lbm.best(packed(clauses, 40, [0] * 8 + [1] * 100), seconds=60)


def test_a_budget_shorter_than_one_sweep():
    theory = hard(2000, 8000)
    found = lbm.best(theory, seconds=1e-6, seed=0)
    assert theory.score(found.world) == found.score
    assert found.bound <= found.lost


SEARCH = """
import signal
import lbm, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
from lbm.knowledge.clauses import Clauses
rng = np.random.default_rng(0)
names = tuple(f"x{i}" for i in range(20_000))
rows = rng.integers(1, 20_001, (80_000, 3)) * rng.choice([-1, 1], (80_000, 3))
clauses = Clauses(names, rows.ravel().astype(np.int32), np.arange(0, rows.size + 1, 3, dtype=np.int64))
theory = lbm.Theory.from_clauses(clauses, np.ones(80_000, np.int64))
try:
    lbm.best(theory, seconds=600, seed=0, on_better=lambda found: print("begun", flush=True))
except KeyboardInterrupt:
    print("heard", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_is_heard_while_kernels_run():
    """In a process of its own: Hypothesis listens to the garbage collector, where an interrupt is lost."""
    with subprocess.Popen([sys.executable, "-c", SEARCH], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "begun\n"
            for _ in range(20):  # one that meets a callback from C, while kernels are loaded, is lost
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(3)
                    break
            assert process.stdout.read().endswith("heard\n")
        finally:
            process.kill()


def test_evidence_reaches_annealing():
    theory = hard(60, 240)
    given = parse("x1 & (~x2 | x3) & ~x4")
    found = lbm.best(theory, given=given, seconds=1, seed=0)
    assert holds(given, found.world)
    odd = parse("x1 ^ x2 ^ x3")
    assert holds(odd, lbm.best(theory, given=odd, seconds=1, seed=0).world)


def test_soft_clauses_that_are_packed_are_not_made_into_formulae_one_by_one(monkeypatch):
    rng = np.random.default_rng(3)
    signs = rng.choice([-1, 1], 4_010)
    literals = (rng.permuted(np.tile(np.arange(1, 1_000), (2_005, 1)), axis=1)[:, :2].ravel() * signs).astype(
        np.int32
    )
    clauses = Clauses(tuple(f"x{i}" for i in range(1, 1_000)), literals, np.arange(0, 4_011, 2))
    weights = np.concatenate([np.zeros(5, np.int64), rng.integers(1, 9, 2_000)])
    theory = Theory.from_clauses(clauses, weights)
    looked = []
    kept = Clauses.__getitem__
    monkeypatch.setattr(Clauses, "__getitem__", lambda self, index: looked.append(index) or kept(self, index))
    lbm.best(theory, seconds=0.3)
    assert len(looked) < 100


@pytest.mark.parametrize(("atoms", "number"), [(5, 12), (18, 70), (40, 160)])
@pytest.mark.parametrize("format", ["cnf", "wcnf"])
def test_the_best_world_of_a_file_of_clauses_is_found_without_a_formula(atoms, number, format, monkeypatch):
    clauses = random_clauses(atoms, number, seed=atoms)
    lines = [" ".join(map(str, [*clause, 0])) for clause in clauses]
    if format == "cnf":
        text = "\n".join([f"p cnf {atoms} {number}", *lines])
    else:
        text = "\n".join(f"{'h' if i % 7 == 0 else 1 + i % 5} {line}" for i, line in enumerate(lines))
    theory = read_theory(text, format=format)
    monkeypatch.setattr(Clauses, "__getitem__", lambda self, index: pytest.fail("a formula was made"))
    found = lbm.best(theory, seconds=20, seed=0)
    assert theory.is_model(found.world)
    assert theory.score(found.world) == found.score


@pytest.mark.parametrize("atoms", [65, 129, 600])
def test_no_bit_sliced_chain_is_run_by_python_itself(atoms, monkeypatch):
    """One sweep of them may then take a minute, without a look at the clock; chains in lanes run instead."""
    monkeypatch.setattr(annealed, "runs_compiled", lambda _: False)
    monkeypatch.setattr(annealed, "advance_sliced", lambda *_, **__: pytest.fail("it is not compiled"))
    theory = packed(random_clauses(atoms, 3 * atoms, seed=1), atoms)
    landscape = unsettled_of(Problem(theory), NO_LIMIT, pure=False)
    assert landscape is not None
    found = anneal(landscape, 0, 0)
    assert any(Problem(theory).is_model(world) for world in found.worlds)
