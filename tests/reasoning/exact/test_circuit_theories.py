"""Theories from files of circuits: every question answered as about the clauses they were compiled from."""

import random
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lbm
from lbm.errors import LimitExceeded, WeightError
from lbm.knowledge.circuit_files import circuit_atoms, circuit_theory, nnf_lines, read_circuit
from lbm.knowledge.circuit_formulae import formula_of_circuit, is_circuit_formula
from lbm.knowledge.circuits import Builder, Circuit
from lbm.knowledge.formula import Formula, conjunction
from lbm.knowledge.parser import Statement, parse
from lbm.knowledge.theory import Theory
from lbm.knowledge.wire import load_theory
from lbm.reasoning.exact.apart import assume, take_apart
from lbm.reasoning.exact.circuits import ByCircuit
from lbm.reasoning.exact.compile import compile_clauses
from lbm.reasoning.exact.joined import circuit_of_theory
from lbm.reasoning.exact.passes import Passes
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.whole import How, circuit_given, solver
from tests.oracles import truth, worlds

COUNTS = {"road_r": 4985868, "sudoku_4": 288, "grid_4": 14248, "seq_fun": None}


def clauses_of(rng: random.Random, variables: int, number: int) -> list[list[int]]:
    """Return random clauses of one to four literals."""
    return [
        [
            v if rng.random() < 0.5 else -v
            for v in rng.sample(range(1, variables + 1), min(variables, rng.choice([2, 3, 3, 4])))
        ]
        for _ in range(number)
    ]


def both(rng: random.Random, variables: int, number: int) -> tuple[Theory, Theory]:
    """Return the theory of random clauses and that of their circuit, written and read."""
    rows = clauses_of(rng, variables, number)
    text = "".join(nnf_lines(compile_clauses(rows, variables)))
    names = [f"x{v}" for v in range(1, variables + 1)]
    plain = [" | ".join(("" if v > 0 else "~") + f"x{abs(v)}" for v in row) for row in rows]
    return Theory(plain, atoms=names), circuit_theory(text.encode())


QUERIES = ("x1", "~x2", "x1 | ~x3", "x4 -> x2 & x5", "x1 ^ x2 ^ x3", "exactly(2, x1, x3, x5, x7, x9)")
EVIDENCE = (None, "x3", "~x1 & x4", "x2 | x6", "x5 <-> ~x7")


def rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: round(chance, 9) for name, chance in found.items()}


@given(st.integers(0, 10**9), st.sampled_from([9, 12, 14]), st.sampled_from(EVIDENCE))
@settings(max_examples=15)
def test_questions_about_a_circuit_have_the_answers_of_its_clauses(
    seed: int, variables: int, evidence: str | None
) -> None:
    rng = random.Random(seed)
    plain, circuit = both(rng, variables, rng.randrange(2 * variables))
    assert circuit.atoms == plain.atoms
    formula = None if evidence is None else parse(evidence)
    right = [
        world
        for world in worlds(plain.atoms)
        if all(truth(said.formula, world) for said in plain) and (formula is None or truth(formula, world))
    ]
    reasoner = lbm.Reasoner(circuit)
    assert reasoner.count(given=evidence) == len(right)
    assert reasoner.count(given=evidence, project=["x1", "x4"]) == len({(w["x1"], w["x4"]) for w in right})
    if not right:
        return
    for query in QUERIES:
        wanted = sum(truth(parse(query), world) for world in right) / len(right)
        answer = reasoner.ask(query, given=evidence)
        assert answer.method == "exact"
        assert answer.probability == pytest.approx(wanted, abs=1e-9)
        assert (answer.status == "entailed") == (wanted == 1)
        assert bool(reasoner.entails(query, given=evidence)) == (wanted == 1)
    found = reasoner.marginals(given=evidence)
    for name in plain.atoms:
        assert found[name] == pytest.approx(sum(world[name] for world in right) / len(right), abs=1e-9)
    order = sorted(right, key=lambda world: tuple(world.values()))
    assert list(reasoner.models(given=evidence)) == order
    assert list(reasoner.models(given=evidence, limit=3)) == order[:3]
    assert list(Exact(circuit).models(formula, limit=3)) == order[:3]
    drawn = reasoner.sample(20, given=evidence, seed=1)
    assert all(dict(zip(plain.atoms, map(bool, row), strict=True)) in right for row in drawn.array)
    assert reasoner.best(given=evidence).score == 0


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_soft_formulae_beside_a_circuit_are_as_beside_its_clauses(seed: int) -> None:
    rng = random.Random(seed)
    plain, circuit = both(rng, 12, rng.randrange(20))
    soft = [
        Statement(parse(text), rng.choice([-3, -0.5, 0.25, 2]))
        for text in rng.sample(["x1", "~x2", "x3", "x4 & x5", "x6 -> x7", "x8 ^ x1"], rng.randrange(1, 5))
    ]
    one = Theory([*plain, *soft], atoms=plain.atoms)
    other = Theory([*circuit, *soft], atoms=plain.atoms)
    if not lbm.count(plain):
        return
    for component in take_apart(other).components:
        if len(component.atoms) > 10 and any(is_circuit_formula(part) for part in component.hard):
            assert isinstance(solver(component, How()), ByCircuit)
    for evidence in (None, "x2 | x9"):
        if not lbm.count(one, given=evidence):
            continue
        first, second = lbm.Reasoner(one), lbm.Reasoner(other)
        assert second.ask("x1 | x4", given=evidence).probability == pytest.approx(
            first.ask("x1 | x4", given=evidence).probability, abs=1e-9
        )
        assert rounded(dict(second.marginals(given=evidence))) == pytest.approx(
            rounded(dict(first.marginals(given=evidence))), abs=1e-8
        )
        assert second.best(given=evidence).score == first.best(given=evidence).score
        exact = Exact(other).best_worlds(None if evidence is None else parse(evidence), limit=5)
        assert exact[0] == first.best(given=evidence).score
        assert second.log_partition(given=evidence) == pytest.approx(first.log_partition(given=evidence))


@pytest.mark.parametrize(("variables", "number"), [(65, 90), (129, 150), (1000, 900)])
def test_circuits_of_many_atoms_answer_as_their_clauses(variables: int, number: int) -> None:
    """Clauses join atoms that are near each other, so that both forms are quick."""
    rng = random.Random(variables)
    rows = []
    for _ in range(number):
        first = rng.randrange(1, variables - 6)
        rows.append([v if rng.random() < 0.6 else -v for v in rng.sample(range(first, first + 6), 3)])
    plain = Theory(
        [" | ".join(("" if v > 0 else "~") + f"x{abs(v)}" for v in row) for row in rows],
        atoms=[f"x{v}" for v in range(1, variables + 1)],
    )
    text = "".join(nnf_lines(compile_clauses(rows, variables)))
    circuit = circuit_theory(text.encode())
    assert circuit.atoms == plain.atoms
    for evidence in (None, f"x3 & ~x{variables - 1}", f"x5 | x{variables - 2}"):
        assert lbm.count(circuit, given=evidence) == lbm.count(plain, given=evidence)
        first, second = lbm.marginals(plain, given=evidence), lbm.marginals(circuit, given=evidence)
        assert np.allclose([first[name] for name in plain.atoms], [second[name] for name in plain.atoms])
    query = f"x5 -> x{variables // 2} | x7"
    assert lbm.ask(circuit, query).probability == pytest.approx(lbm.ask(plain, query).probability)
    assert list(lbm.models(circuit, limit=2)) == list(lbm.models(plain, limit=2))
    drawn = lbm.sample(circuit, 5, seed=0)
    assert all(plain.is_model(dict(zip(plain.atoms, row, strict=True))) for row in drawn.array)


@pytest.mark.parametrize("name", COUNTS)
def test_public_circuits_answer_questions(dataset: Callable[[str], Path], name: str) -> None:
    path = dataset("structured") / f"{name}.sdd"
    theory, passes = lbm.load(path), Passes(read_circuit(path))
    assert theory.atoms == circuit_atoms(passes.circuit)
    number, total = len(theory.atoms), passes.count()
    assert COUNTS[name] in (None, total)
    reasoner = lbm.Reasoner(theory)
    assert reasoner.count() == total
    assert reasoner.log_partition() == pytest.approx(np.log(float(total)))

    def count(values: dict[int, bool]) -> int:
        """Return how many models keep some values, by the weights of literals."""
        weights = [(1, 1)] * number
        for v, value in values.items():
            weights[v] = (not value, value)
        return passes.count(weights)

    chances = reasoner.marginals()
    for v in range(0, number, 7):
        assert chances[f"x{v + 1}"] == pytest.approx(count({v: True}) / total)
    # P(x2 or x8), by inclusion and exclusion, and the same as evidence.
    either = count({1: True}) + count({7: True}) - count({1: True, 7: True})
    assert reasoner.ask("x2 | x8").probability == pytest.approx(either / total)
    assert reasoner.count(given="x2 | x8") == either
    some = reasoner.marginals(given="x2 | x8")["x5"]
    wanted = count({1: True, 4: True}) + count({7: True, 4: True}) - count({1: True, 7: True, 4: True})
    assert some == pytest.approx(wanted / either)
    assert reasoner.count(given="x2 & ~x8") == count({1: True, 7: False})
    worlds = lbm.models(theory, limit=50)
    assert all(theory.is_model(world) for world in worlds)
    assert list(Exact(theory).models(limit=50)) == list(worlds)


def test_a_public_circuit_has_the_models_of_its_clauses(dataset: Callable[[str], Path]) -> None:
    folder = dataset("structured")
    circuit, clauses = lbm.load(folder / "sudoku_4.sdd"), lbm.load(folder / "sudoku_4.cnf")
    assert circuit.atoms == clauses.atoms
    assert list(lbm.models(circuit)) == list(lbm.models(clauses))


@pytest.mark.parametrize("limit", [300, 5000, 20_000])
def test_the_first_models_of_a_public_circuit_are_the_first_of_all(
    dataset: Callable[[str], Path], limit: int
) -> None:
    theory = lbm.load(dataset("structured") / "grid_4.sdd")
    every, found = lbm.models(theory).array, lbm.models(theory, limit=limit)
    assert len(every) == 14248
    assert (found.array == every[:limit]).all()
    assert found.complete == (limit > 14248)
    assert every.tolist() == sorted(every.tolist())


def modular(variables: int, modulus: int) -> Circuit:
    """Return a circuit whose models have a number of true atoms that ``modulus`` divides."""
    build = Builder(variables)
    level = [build.true] + [build.false] * (modulus - 1)
    for v in range(variables):
        level = [
            build.sum([build.product([2 * v, level[i]]), build.product([2 * v + 1, level[i - 1]])])
            for i in range(modulus)
        ]
    return build.circuit(level[0])


def test_a_circuit_of_a_hundred_thousand_gates_is_read_and_counted() -> None:
    circuit = modular(1000, 34)
    assert len(circuit) > 90_000
    theory = circuit_theory("".join(nnf_lines(circuit)).encode())
    total = sum(comb(1000, k) for k in range(0, 1001, 34))
    assert lbm.count(theory) == total
    with pytest.raises(LimitExceeded, match="MAX_TEXT"):
        str(theory)


def test_a_circuit_of_a_thousand_atoms_answers_questions() -> None:
    circuit = modular(1000, 5)
    theory = circuit_theory("".join(nnf_lines(circuit)).encode())
    total, with_one = (
        sum(comb(1000, k) for k in range(0, 1001, 5)),
        sum(comb(999, k) for k in range(4, 1000, 5)),
    )
    reasoner = lbm.Reasoner(theory)
    assert reasoner.count(given="x500") == with_one
    assert reasoner.ask("x500").probability == pytest.approx(with_one / total)
    assert reasoner.ask("x500 <-> x700").probability == pytest.approx(
        (sum(comb(998, k) for k in range(0, 999, 5)) + sum(comb(998, k) for k in range(3, 999, 5))) / total
    )
    assert [sum(world.values()) for world in reasoner.models(limit=2)] == [0, 5]


def test_evidence_leaves_a_circuit_one() -> None:
    circuit = modular(30, 4)
    theory = Theory([formula_of_circuit(circuit, circuit_atoms(circuit))])
    split = take_apart(theory)
    for text in ("x3", "x3 & ~x20", "x1 -> x2"):
        left = assume(split, parse(text))
        assert left is not None
        (component,) = left.components
        found = circuit_given(component, None, How().budget)
        assert found is not None
        assert found.count() == lbm.count(theory, given=text)


def test_what_only_says_that_it_is_a_circuit_is_counted_by_its_worlds() -> None:
    """A sum with parts that share worlds is not deterministic: then it is compiled as any formula is."""
    build = Builder(24)
    wrong = build.circuit(build.product(build.sum([4 * v + 1, 4 * v + 3]) for v in range(12)))
    assert Passes(wrong).count() > 3**12
    theory = Theory([formula_of_circuit(wrong, circuit_atoms(wrong))])
    assert lbm.count(theory) == 3**12


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_a_theory_is_the_same_after_it_was_compiled_written_and_read(seed: int) -> None:
    rng = random.Random(seed)
    names = ["rain", "x1", "f(a, b)", "d e", "x5", "y", "z"]
    some = [
        "rain -> x1",
        "exactly(2, rain, 'd e', y, z)",
        "x1 <-> f(a, b) ^ y",
        "z",
        "~y | z & x5",
        "false | x5",
    ]
    theory = Theory(rng.sample(some, rng.randrange(len(some))), atoms=names)
    circuit = circuit_of_theory(theory)
    again = circuit_theory("".join(nnf_lines(circuit, atoms=theory.atoms)).encode())
    assert again.atoms == theory.atoms
    right = {tuple(world.values()) for world in worlds(names) if all(truth(s.formula, world) for s in theory)}
    whole: Formula = conjunction(said.formula for said in again)
    assert {tuple(world.values()) for world in worlds(names) if truth(whole, world)} == right
    assert Passes(circuit).count() == len(right)


@pytest.mark.parametrize("number", [65, 129, 1000])
def test_theories_of_many_atoms_are_compiled_written_and_read(tmp_path: Path, number: int) -> None:
    """Definitions of deep formulae leave no trace."""
    names = [f"a{i}" for i in range(number)]
    said = [f"{names[i]} <-> ({names[i - 1]} ^ {names[i - 2]}) | {names[i - 3]}" for i in range(3, number, 2)]
    theory = Theory([*said, "atmost(3, a1, a5, a9, a11)"], atoms=names)
    lbm.save(theory, tmp_path / "a.nnf.xz")
    again = lbm.load(tmp_path / "a.nnf.xz")
    assert again.atoms == theory.atoms
    assert lbm.count(again) == lbm.count(theory)
    assert np.allclose(*([lbm.marginals(t)[name] for name in names] for t in (again, theory)))


def test_a_theory_with_weights_is_no_circuit() -> None:
    with pytest.raises(WeightError, match=r"this theory says '2: b': write \.wcnf or \.lbm"):
        circuit_of_theory(Theory(["a", (2, "b")]))


def test_a_theory_without_models_is_a_circuit_without_parts() -> None:
    circuit = circuit_of_theory(Theory(["a", "~a"]))
    assert Passes(circuit).count() == 0
    assert lbm.count(circuit_theory("".join(nnf_lines(circuit)).encode())) == 0


def test_a_circuit_has_as_many_atoms_as_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.sdd").write_text("sdd 1\nL 0 0 -2\n")
    assert lbm.count(load_theory(tmp_path / "a.sdd")) == 2
    assert lbm.count(load_theory(tmp_path / "a.sdd", variables=5)) == 16
