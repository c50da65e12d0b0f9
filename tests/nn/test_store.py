"""A layer that was saved says the same when it is loaded, and files that are none are one clear error."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import lbm
from lbm.errors import FileError, MachineFileError
from lbm.machine.files import pack
from lbm.nn import LogicLayer, load_layer
from lbm.nn.store import FORMAT, layer_bytes

TEXT = "exactly(1, d(0), d(1), d(2))\n'a b' -> d(1)\n0.7: 'a b' | c\n-2: c & d(2)"


def layer():
    made = LogicLayer(TEXT, inputs=["d(*)", "c"], queries=["a b", "d(*)", "c | 'a b'"], given="~(c & d(0))")
    with torch.no_grad():
        made.weights[0] = 0.1 + 0.2
    return made


def test_a_layer_comes_back_with_its_weights_queries_and_evidence(tmp_path):
    path, made = tmp_path / "one.layer", layer()
    lbm.save(made, path)
    found = lbm.load(path)
    assert torch.equal(found.weights, made.weights)
    assert (found.inputs, found.queries, found.atoms) == (made.inputs, made.queries, made.atoms)
    logits = torch.randn(5, 4, dtype=torch.float64)
    target = torch.tensor([[1, 1, 1], [0, 2, 0], [0, 0, 0], [0, 2, 1], [-1, 1, 1]])
    assert torch.equal(found(logits).log_prob(target), made(logits).log_prob(target))
    assert torch.equal(found(logits).log_kept, made(logits).log_kept)
    assert layer_bytes(found) == layer_bytes(made) == path.read_bytes()
    frozen = LogicLayer("1: a", inputs=["a"], groups=False, heads=3, seconds=None).float()
    frozen.weights.requires_grad_(False)
    lbm.save(frozen, path)
    assert not lbm.load(path).weights.requires_grad
    assert lbm.load(path).heads == 3
    assert lbm.load(path).weights.dtype == torch.float32


def test_a_circuit_comes_back_as_one(tmp_path):
    from lbm.knowledge.circuit_files import circuit_theory

    theory = circuit_theory(b"nnf 8 7 3\nL 1\nL 2\nL -1\nL 3\nA 2 0 1\nA 2 2 3\nO 1 2 4 5\nA 1 6")
    lbm.save(LogicLayer(theory, inputs=["x*"]), tmp_path / "c.layer")
    found = lbm.load(tmp_path / "c.layer")
    assert found.theory.atoms == theory.atoms
    logits = torch.randn(4, 3)
    assert torch.equal(found(logits).log_kept, LogicLayer(theory, inputs=["x*"])(logits).log_kept)


@pytest.mark.skipif("LBM_DATA" not in os.environ, reason="LBM_DATA is not set")
def test_a_large_circuit_comes_back(tmp_path):
    theory = lbm.Theory.load(Path(os.environ["LBM_DATA"]) / "structured" / "grid_4.sdd")
    made = LogicLayer(theory, inputs=theory.atoms)
    lbm.save(made, tmp_path / "grid.layer")
    logits = torch.randn(3, 40, dtype=torch.float64)
    assert lbm.load(tmp_path / "grid.layer")(logits).log_kept.tolist() == pytest.approx(
        made(logits).log_kept.tolist()
    )


def test_a_state_dict_is_weights_only(tmp_path):
    made = layer()
    network = torch.nn.Sequential(torch.nn.Linear(2, 4), made)
    torch.save(network.state_dict(), tmp_path / "state.pt")
    found = torch.load(tmp_path / "state.pt", weights_only=True)
    assert set(found) == {"0.weight", "0.bias", "1.weights"}
    other = torch.nn.Sequential(torch.nn.Linear(2, 4), layer())
    with torch.no_grad():
        other[1].weights.zero_()
    other.load_state_dict(found)
    assert torch.equal(other[1].weights, made.weights)


def test_names_and_files_that_do_not_fit_are_errors(tmp_path):
    with pytest.raises(FileError, match=r"\.lbm"):
        lbm.save(layer(), tmp_path / "one.lbm")
    lbm.save(lbm.translate(lbm.parse("a -> b")), tmp_path / "machine")
    with pytest.raises(MachineFileError, match="a machine"):
        load_layer(tmp_path / "machine")
    whole = layer_bytes(layer())
    (tmp_path / "cut").write_bytes(whole[:-3])
    with pytest.raises(MachineFileError):
        lbm.load(tmp_path / "cut")
    changed = bytearray(whole)
    changed[-9] ^= 1
    (tmp_path / "changed").write_bytes(changed)
    with pytest.raises(MachineFileError, match="damaged"):
        lbm.load(tmp_path / "changed")


WRONG = {
    "theory": ("verse", "as text or circuit"),
    "inputs": ([["nobody"]], "nobody"),
    "queries": ([{"choice": []}], "a query"),
    "formulae": (7, "7 formulae"),
    "atoms": (["a"], "atoms"),
    "given": (3, "evidence"),
    "groups": ("yes", "true or false"),
    "heads": (0, "a number of heads"),
    "seconds": ("long", "seconds"),
    "trained": (1, "true or false"),
}


@pytest.mark.parametrize("key", WRONG)
def test_documents_that_say_something_else_are_refused(key, tmp_path):
    import lbm.nn.store as store

    value, message = WRONG[key]
    kept = {}

    def keep(kind, document, arrays):
        kept.update(document=dict(document), arrays=dict(arrays))
        return pack(kind, document, arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "pack", keep)
        layer_bytes(layer())
    kept["document"][key] = value
    (tmp_path / "wrong").write_bytes(pack(FORMAT, kept["document"], kept["arrays"]))
    with pytest.raises((MachineFileError, lbm.errors.LbmError), match=message):
        lbm.load(tmp_path / "wrong")


@pytest.mark.parametrize("weights", [np.zeros(3), np.zeros(2, np.int64), np.array([np.nan, 0.0])])
def test_weights_that_do_not_fit_are_refused(weights, tmp_path):
    import lbm.nn.store as store

    def other(kind, document, arrays):
        return pack(kind, document, {**arrays, "weights": weights})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "pack", other)
        (tmp_path / "wrong").write_bytes(layer_bytes(layer()))
    with pytest.raises(MachineFileError, match="weights"):
        lbm.load(tmp_path / "wrong")
