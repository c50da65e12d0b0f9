"""Machines: energies of worlds, vectorised, and their words."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csc_array

from lbm.errors import LimitExceeded, UnknownAtom
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine import equation, rbm
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate

numbers = st.floats(-5, 5)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    visible, hidden = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    return Machine(
        tuple("abcd"[:visible]),
        csc_array(draw(arrays(float, (visible, hidden), elements=numbers))),
        draw(arrays(float, visible, elements=numbers)),
        draw(arrays(float, hidden, elements=numbers)),
    )


def states(number: int) -> np.ndarray:
    return np.array(list(product([0.0, 1.0], repeat=number))).reshape(2**number, number)


def by_hand(machine: Machine, x: np.ndarray, h: np.ndarray) -> float:
    """E(x, h), term by term. [TG21, equation rbm_en]"""
    weights = machine.weights.toarray()
    total = 0.0
    for i in range(len(x)):
        total -= machine.visible_bias[i] * x[i]
        for j in range(len(h)):
            total -= weights[i, j] * x[i] * h[j]
    return total - sum(machine.hidden_bias[j] * h[j] for j in range(len(h)))


@given(machines(), st.floats(0.1, 8), st.floats(0.1, 8))
def test_energies_are_what_the_sums_say(machine: Machine, confidence: float, temperature: float) -> None:
    """min_h E and the free energy, against every hidden state. [TG21, equations rbm_en and section 4.2]"""
    hidden = states(machine.hidden)
    for x in states(len(machine.atoms)):
        energies = np.array([by_hand(machine, x, h) for h in hidden])
        assert machine.energy(np.tile(x, (len(hidden), 1)), hidden) == pytest.approx(energies)
        assert machine.rank_energy(x) == pytest.approx(energies.min())
        exponents = -confidence / temperature * energies
        expected = -np.logaddexp.reduce(exponents)
        found = machine.free_energy(x, confidence=confidence, temperature=temperature)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("text", ["a -> b & c", "(a ^ b) <-> c", "3: a | b\n-2: b & c\na -> c", "true\n2: a"])
def test_free_energy_equals_the_sum_over_hidden_states_of_a_translated_theory(text: str) -> None:
    machine = translate(Theory.parse(text))
    hidden = states(machine.hidden)
    for x in states(len(machine.atoms)):
        energies = machine.energy(np.tile(x, (len(hidden), 1)), hidden)
        assert machine.free_energy(x) == pytest.approx(-np.logaddexp.reduce(-5.0 * energies))


def test_worlds_may_be_mappings_arrays_or_many_at_once() -> None:
    machine = translate(parse("a -> b"))
    assert machine.rank_energy({"a": 1, "b": 0}) == 0
    assert machine.rank_energy([1, 0]) == 0
    assert machine.rank_energy(states(2)).tolist() == [-0.5, -0.5, 0, -0.5]
    assert machine.rank_energy({"a": np.array([0, 1]), "b": False}).tolist() == [-0.5, 0]
    assert machine.rank_energy(states(2).reshape(2, 2, 2)).shape == (2, 2)


def test_worlds_are_weighed_in_groups_without_changing_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = translate(parse("a | b | c"))
    whole = machine.free_energy(states(3))
    monkeypatch.setattr(rbm, "CHUNK", 4)
    assert machine.free_energy(states(3)) == pytest.approx(whole, abs=0)


def test_definitional_atoms_are_computed_unless_given() -> None:
    machine = translate(parse(" ^ ".join(f"x{i}" for i in range(12))), budget=8)
    assert machine.definitions
    x = np.random.default_rng(0).integers(0, 2, (50, 12))
    assert machine.score(x) == pytest.approx(x.sum(axis=1) % 2)
    full = machine.visible(x)
    assert full.shape == (50, len(machine.atoms))
    assert machine.rank_energy(full) == pytest.approx(machine.rank_energy(x))
    named = {name: bool(value) for name, value in zip(machine.declared, x[0], strict=True)}
    assert machine.score(named) == pytest.approx(x[0].sum() % 2)


def test_a_wrong_world_is_explained() -> None:
    machine = translate(parse("bird -> flies"))
    with pytest.raises(UnknownAtom, match="did you mean 'bird'"):
        machine.rank_energy({"brid": True, "flies": True})
    with pytest.raises(UnknownAtom, match="no atom 'flies' in this world"):
        machine.rank_energy({"bird": True})
    with pytest.raises(ValueError, match=r"2 atoms \(bird, flies\), got an array of shape \(3,\)"):
        machine.rank_energy([1, 0, 1])
    with pytest.raises(ValueError, match="hidden states over 2 units"):
        machine.energy([1, 0], [1, 0, 1])


@pytest.mark.parametrize("option", ["confidence", "temperature"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_confidence_and_temperature_are_positive(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=option):
        translate(parse("a")).free_energy([1], **{option: value})


def test_units_know_their_cube_and_their_formulae() -> None:
    theory = Theory.parse("2: a -> b\n3: a -> c\nd")
    machine = translate(theory)
    shared = next(unit for unit in machine.units if len(unit.formulae) == 2)
    assert (str(shared.cube), shared.weight, shared.bias) == ("~a", 5.0, 2.5)
    assert len(machine.units) == machine.hidden
    assert machine.units[-1] == machine.units[machine.hidden - 1]
    assert len(machine.units[1:3]) == 2
    number = list(machine.units).index(shared)
    assert [str(s) for s in machine.units.statements(number)] == ["2: a -> b", "3: a -> c"]
    with pytest.raises(IndexError):
        machine.units[machine.hidden]


def test_a_machine_made_by_hand_has_units_too() -> None:
    machine = Machine(("x", "y"), csc_array(np.array([[2.0], [-3.0]])), np.zeros(2), np.array([0.5]))
    unit = machine.units[0]
    assert (str(unit.cube), unit.weight, unit.bias, unit.formulae) == ("x & ~y", 3.0, 0.5, ())


def test_a_machine_says_how_large_it_is() -> None:
    assert repr(translate(parse("a"))) == "<Machine: 1 visible and 1 hidden units, ε = 0.5>"
    assert "9 of them definitional" in repr(translate(parse(" ^ ".join(f"x{i}" for i in range(20)))))


def test_equations_name_awkward_atoms_readably() -> None:
    machine = translate(Theory.parse("2: less(a1, b1) & 'age <= 30' & x1"))
    assert machine.equation() == "E = -h1(2 less(a1, b1) + 2 'age <= 30' + 2x1 - 5)"
    assert machine.equation(latex=True) == (
        r"E = -h_{1}(2\mathrm{less(a1, b1)} + 2\mathrm{age <= 30} + 2x_{1} - 5)"
    )


def test_equations_write_visible_biases_behind_the_units() -> None:
    machine = Machine(("x", "y"), csc_array(np.array([[1.0], [0.0]])), np.array([-3.0, 1.0]), np.array([0.0]))
    assert machine.equation() == "E = -h1(x) + 3x - y"
    alone = Machine(("x",), csc_array(np.zeros((1, 0))), np.array([2.0]), np.zeros(0))
    assert alone.equation() == "E = -2x"


def test_an_equation_of_a_large_machine_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equation, "MAX_TERMS", 2)
    with pytest.raises(LimitExceeded, match="MAX_TERMS"):
        translate(parse("a & b & c")).equation()


def test_wells_past_any_float_are_infinitely_deep_and_no_warning():
    machine = translate(Theory.parse("a\nb"))
    deep = replace(machine, hidden_bias=np.array([1.6e308, 1.6e308]))
    assert deep.rank_energy([0, 0]) == -np.inf
    assert deep.score([0, 0]) == np.inf
