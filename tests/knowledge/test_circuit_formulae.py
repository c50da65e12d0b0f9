"""Circuits as formulae: the same models, and the same circuit again."""

import gc
import pickle
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded
from lbm.knowledge.circuit_files import circuit_theory, nnf_lines
from lbm.knowledge.circuit_formulae import circuit_of_formula, formula_of_circuit, inherit, is_circuit_formula
from lbm.knowledge.circuits import Builder, Circuit
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, holds
from lbm.knowledge.theory import Theory

NAMES = tuple("abcde")


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    """Decisions on one variable after the other, which share parts; wide products at their ends."""
    build = Builder(len(NAMES))
    level = [build.true, build.false]
    for variable in range(len(NAMES)):
        new = []
        for _ in range(draw(st.integers(1, 3))):
            low, high = draw(st.sampled_from(level)), draw(st.sampled_from(level))
            yes, no = build.literal(variable, True), build.literal(variable, False)
            kind = draw(st.sampled_from(["both", "yes"]))
            new.append(
                build.product([yes, high])
                if kind == "yes"
                else build.sum([build.product([no, low]), build.product([yes, high])])
            )
        level = [*new, draw(st.sampled_from(level))]
    return build.circuit(draw(st.sampled_from(level)))


def models(circuit: Circuit) -> set[tuple[bool, ...]]:
    """Return the worlds in which the root of a circuit is true."""
    found = set()
    starts, parts = circuit.starts.tolist(), circuit.parts.tolist()
    for world in product((False, True), repeat=circuit.variables):
        value = [world[slot >> 1] == bool(slot & 1) for slot in range(2 * circuit.variables)]
        for gate, kind in enumerate(circuit.kinds.tolist()):
            row = [value[part] for part in parts[starts[gate] : starts[gate + 1]]]
            value.append(any(row) if kind else all(row))
        if value[circuit.root]:
            found.add(world)
    return found


def true_in(formula: Formula) -> set[tuple[bool, ...]]:
    return {
        world
        for world in product((False, True), repeat=len(NAMES))
        if holds(formula, dict(zip(NAMES, world, strict=True)))
    }


@given(circuits())
def test_a_circuit_and_its_formula_have_the_same_models(circuit: Circuit) -> None:
    formula = formula_of_circuit(circuit, NAMES)
    assert true_in(formula) == models(circuit)
    assert is_circuit_formula(formula) == (formula.kind in ("and", "or"))
    build = Builder(len(NAMES))
    place = {name: i for i, name in enumerate(NAMES)}
    again = build.circuit(circuit_of_formula(formula, place, build))
    assert models(again) == models(circuit)
    assert again.edges <= circuit.edges


@given(circuits())
def test_a_circuit_is_the_same_theory_after_it_was_written(circuit: Circuit) -> None:
    names = ("a", "x1", "rain (1)", "true", "x5")
    text = "".join(nnf_lines(circuit, atoms=names)).encode()
    assert circuit_theory(text) == Theory.from_parts(
        names, Theory([formula_of_circuit(circuit, names)]).statements
    )


def test_gates_of_many_parts_stay_one_gate() -> None:
    build = Builder(300)
    whole = build.product(build.sum([2 * v, build.product([2 * v + 1, 2 * v + 2])]) for v in range(0, 300, 2))
    circuit = build.circuit(whole)
    names = [f"x{v}" for v in range(300)]
    other = Builder(300)
    place = {name: i for i, name in enumerate(names)}
    again = other.circuit(circuit_of_formula(formula_of_circuit(circuit, names), place, other))
    assert (len(again), again.edges) == (len(circuit), circuit.edges)


def test_what_is_known_of_a_formula_is_forgotten_with_it() -> None:
    build = Builder(2)
    formula = formula_of_circuit(build.circuit(build.product([1, 3])), ["p of a circuit", "q of a circuit"])
    assert is_circuit_formula(formula)
    del formula
    gc.collect()
    assert not is_circuit_formula(atom("p of a circuit") & atom("q of a circuit"))


def test_a_theory_that_is_a_circuit_is_one_in_other_processes() -> None:
    program = (
        "import pickle, sys; from lbm.knowledge.circuit_formulae import is_circuit_formula; "
        "theory = pickle.load(sys.stdin.buffer); "
        "print([is_circuit_formula(said.formula) for said in theory])"
    )
    build = Builder(2)
    circuit = build.circuit(build.sum([0, build.product([1, 3])]))
    theory = Theory([formula_of_circuit(circuit, ["a", "b"]), "a | b"])
    ran = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(theory), capture_output=True, check=True
    )
    assert ran.stdout.split() == [b"[True,", b"False]"]


def test_literals_and_constants_inherit_nothing() -> None:
    build = Builder(2)
    formula = formula_of_circuit(build.circuit(build.product([1, 3])), ["a", "b"])
    inherit(formula, [atom("a"), ~atom("a"), TRUE, FALSE, atom("a") | atom("c")])
    assert [is_circuit_formula(part) for part in (atom("a"), ~atom("a"), TRUE, FALSE)] == [False] * 4


def test_a_circuit_of_a_hundred_thousand_gates_is_one_formula_and_never_its_tree() -> None:
    """Printed as a tree it would be longer than any memory."""
    build = Builder(1000)
    level = [build.true] + [build.false] * 33  # how many are true, modulo 34
    for v in range(1000):
        level = [
            build.sum([build.product([2 * v, level[i]]), build.product([2 * v + 1, level[i - 1]])])
            for i in range(34)
        ]
    circuit = build.circuit(level[0])
    assert len(circuit) > 90_000
    theory = Theory([formula_of_circuit(circuit, [f"x{v}" for v in range(1000)])])
    assert len(theory.atoms) == 1000
    assert repr(theory.statements[0].formula).endswith("...>")
    assert theory.is_model(dict.fromkeys(theory.atoms, False))
    assert not theory.is_model({name: name == "x7" for name in theory.atoms})
    with pytest.raises(LimitExceeded, match="MAX_TEXT"):
        str(theory)
