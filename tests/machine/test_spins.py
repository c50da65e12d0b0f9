"""QUBO and Ising files: dimod reads them, and finds our energies in them."""

import json
from itertools import product

import dimod
import numpy as np
import pytest
from dimod.serialization.json import DimodDecoder
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array

from lbm.errors import FileError
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.machine.spins import FORMS, to_ising, to_qubo, write_spins
from lbm.machine.translate import translate
from tests.strategies import NAMES, theories

NIXON = Theory.parse("1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p")
forms = st.sampled_from(list(FORMS))
encodings = st.sampled_from(["sdnf", "penalty"])


def states(machine):
    """Return every state of visible and hidden units, a row each."""
    return np.array(list(product((0, 1), repeat=len(machine.atoms) + machine.hidden)), dtype=float)


def read(path):
    return dimod.BinaryQuadraticModel.from_serializable(json.loads(path.read_text()))


def dimod_energies(model, machine):
    samples = states(machine)
    if model.vartype is dimod.SPIN:
        samples = 2 * samples - 1
    names = to_qubo(machine).variables
    return model.energies((samples.astype(np.int8), names))


def own_energies(machine):
    rows = states(machine)
    visible = len(machine.atoms)
    return machine.energy(rows[:, :visible], rows[:, visible:])


small = theories(atoms=NAMES[:3], weights=st.integers(-9, 9).filter(bool), max_statements=3, max_leaves=3)


@given(small.filter(lambda theory: theory.atoms), forms, encodings)
def test_dimod_finds_our_energy_in_every_state(tmp_path_factory, theory, form, encoding):
    machine = translate(theory, encoding=encoding, epsilon=0.25)
    if len(machine.atoms) + machine.hidden > 12:
        return
    path = tmp_path_factory.mktemp("spins") / "model.json"
    write_spins(machine, path, form=form)
    model = read(path)
    assert model.vartype.name == FORMS[form]
    assert list(model.variables) == list(to_qubo(machine).variables)
    assert dimod_energies(model, machine).tolist() == own_energies(machine).tolist()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["sdnf", "penalty"])
def test_the_ground_states_of_the_nixon_diamond_are_its_best_worlds(tmp_path, form, encoding):
    machine = translate(NIXON, encoding=encoding)
    write_spins(machine, tmp_path / "nixon.json", form=form)
    document = json.loads((tmp_path / "nixon.json").read_text())
    model = dimod.BinaryQuadraticModel.from_serializable(document)
    best = dimod.ExactSolver().sample(model).lowest()
    scores = -best.record.energy / document["info"]["epsilon"] + document["info"]["score_offset"]
    assert set(scores) == {2020.0}
    top = {tuple(int(sample[name] > 0) for name in "nrqp") for sample in best.samples()}
    assert top == {(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 0)}


def test_dimods_own_decoder_reads_the_file(tmp_path):
    machine = translate(parse("a -> b"))
    write_spins(machine, tmp_path / "a.json")
    with (tmp_path / "a.json").open() as file:
        assert json.load(file, cls=DimodDecoder) == read(tmp_path / "a.json")


@given(theories(max_statements=4))
def test_the_two_forms_are_one_function(theory):
    """Dimod's own change of variables, an implementation that is not ours, takes one form to the other."""
    machine = translate(theory)
    qubo, ising = to_qubo(machine), to_ising(machine)
    theirs = dimod.BinaryQuadraticModel.from_numpy_vectors(
        qubo.linear, (qubo.rows, qubo.columns, qubo.quadratic), qubo.offset, "BINARY"
    ).change_vartype("SPIN", inplace=False)
    scale = max(1.0, np.abs(qubo.linear).max(initial=0), np.abs(qubo.quadratic).max(initial=0))
    size = len(qubo.variables) + len(qubo.quadratic)
    close = {"rtol": 0, "atol": 1e-15 * scale * (1 + size)}
    np.testing.assert_allclose(ising.linear, [theirs.linear[i] for i in range(len(qubo.variables))], **close)
    np.testing.assert_allclose(ising.offset, theirs.offset, **close)
    couplings = [theirs.get_quadratic(*pair) for pair in zip(ising.rows, ising.columns, strict=True)]
    np.testing.assert_allclose(ising.quadratic, couplings, **close)


def by_hand(data, **kept):
    """Return a machine of two atoms and two units with these weights and biases."""
    weights = csc_array((np.array(data), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    parts = {"visible_bias": np.zeros(2), "hidden_bias": np.zeros(2)} | kept
    return Machine(kept.pop("atoms", ("x", "y")), weights, parts["visible_bias"], parts["hidden_bias"])


def test_numbers_are_kept_to_the_last_bit_whatever_their_size(tmp_path):
    machine = by_hand([1e-7, 1 / 3, -1.7e300], visible_bias=np.array([5e-324, 0.1]))
    write_spins(machine, tmp_path / "m.json")
    model = read(tmp_path / "m.json")
    assert model.get_quadratic("x", "h1") == -1e-7
    assert model.get_quadratic("y", "h1") == -1 / 3
    assert model.get_quadratic("y", "h2") == 1.7e300
    assert (model.get_linear("x"), model.get_linear("y")) == (-5e-324, -0.1)


def test_names_of_any_kind_and_units_named_like_atoms_are_kept_apart(tmp_path):
    machine = by_hand([1.0, 2.0, 3.0], atoms=("h1", "变量 'x'"))
    write_spins(machine, tmp_path / "m.json")
    assert list(read(tmp_path / "m.json").variables) == ["h1", "变量 'x'", "_h1", "_h2"]
    (tmp_path / "m.json").read_text(encoding="ascii")


def test_a_machine_without_units_is_a_model_without_variables(tmp_path):
    for form in FORMS:
        write_spins(translate(Theory()), tmp_path / "m.json", form=form)
        assert len(read(tmp_path / "m.json").variables) == 0


def test_an_unknown_form_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected the form 'qubo' or 'ising', got 'spin'"):
        write_spins(translate(parse("a")), tmp_path / "m.json", form="spin")
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_not_finite_leave_no_file(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_spins(by_hand([np.nan, 1.0, 1.0]), tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_one_clear_error(tmp_path):
    with pytest.raises(FileError, match=r"cannot write .*m\.json: No such file or directory"):
        write_spins(translate(parse("a")), tmp_path / "none" / "m.json")


def test_a_hundred_thousand_units_are_written(tmp_path):
    size = 100_000
    weights = csc_array((np.ones(size), np.arange(size), np.arange(size + 1)), shape=(size, size))
    atoms = tuple(f"a{i}" for i in range(size))
    machine = Machine(atoms, weights, np.zeros(size), np.full(size, -0.5))
    write_spins(machine, tmp_path / "large.json", form="ising")
    model = read(tmp_path / "large.json")
    assert (len(model.variables), model.num_interactions) == (2 * size, size)
