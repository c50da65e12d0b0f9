"""The paper's free energy as a loss: that of the machine at outputs, and biased, as is said."""

import itertools

import numpy as np
import pytest
import torch

import lbm
from lbm.nn import LogicLayer
from lbm.nn.named import UnfitInputs

INF = float("inf")
TEXT = "exactly(1, d(0), d(1), d(2))\nrain -> d(1)\nwet <-> rain | d(2)"
INPUTS = ["d(*)", "rain"]


def test_at_certain_outputs_it_is_the_free_energy_of_the_machine():
    layer = LogicLayer(TEXT, inputs=INPUTS, queries=["wet"], loss="free_energy", confidence=3.0)
    machine = lbm.translate(lbm.Theory.parse(TEXT))
    for d, rain, wet in itertools.product(range(3), range(2), range(2)):
        world = {f"d({i})": i == d for i in range(3)} | {"rain": bool(rain), "wet": bool(wet)}
        values = np.array([[float(world[name]) for name in machine.atoms]])
        expected = machine.free_energy(values, confidence=3.0)[0]
        logits = torch.tensor(
            [[1e3 if i == d else -1e3 for i in range(3)] + [1e3 if rain else -1e3]]
        ).double()
        assert layer(logits).loss(torch.tensor([wet])).item() == pytest.approx(expected, rel=1e-9)
        endless = torch.sign(logits) * INF
        assert layer(endless).loss(torch.tensor([wet])).item() == pytest.approx(expected, rel=1e-9)


def test_its_gradient_is_its_slope():
    layer = LogicLayer(TEXT, inputs=INPUTS, queries=["wet"], loss="free_energy")
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([1, 0, 1])
    assert torch.autograd.gradcheck(
        lambda values: layer(values).loss(target), logits.requires_grad_(), atol=1e-6
    )


def test_it_is_biased_where_the_likelihood_is_not():
    """a | b is kept, whatever b is, and b is pulled at all the same."""
    logits = torch.tensor([[40.0, 0.0]], dtype=torch.float64)
    slopes = {}
    for loss in ("likelihood", "free_energy"):
        values = logits.clone().requires_grad_()
        LogicLayer("a | b", inputs=["a", "b"], loss=loss)(values).loss().backward()
        slopes[loss] = values.grad[0, 1].item()
    assert abs(slopes["likelihood"]) < 1e-9
    assert slopes["free_energy"] < -1e-3


def test_lowering_it_leads_to_a_model():
    layer = LogicLayer(TEXT, inputs=INPUTS, queries=["wet"], loss="free_energy")
    logits = torch.tensor([[0.1, 0.3, 0.0, 0.2]], requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.2)
    for _ in range(100):
        optimiser.zero_grad()
        layer(logits).loss(torch.tensor([1])).backward()
        optimiser.step()
    d, rain = logits[0, :3].argmax().item(), bool(logits[0, 3] > 0)
    assert rain or d == 2
    assert not rain or d == 1


def test_a_loss_by_likelihood_is_the_mean_and_leaves_contradictions_out():
    layer = LogicLayer("a -> b", inputs=["a", "b"], queries=["b"])
    logits = torch.tensor([[0.0, 1.0], [2.0, 0.0]], requires_grad=True)
    target = torch.tensor([1, 0])
    out = layer(logits)
    assert out.loss(target).item() == pytest.approx(-out.log_prob(target).mean().item())
    assert out.loss().item() == pytest.approx(-out.log_kept.mean().item())
    with pytest.warns(RuntimeWarning, match="contradict"):
        found = layer(torch.tensor([[INF, -INF], [0.0, 0.0]])).loss()
    assert found.item() == pytest.approx(-layer(torch.zeros(1, 2)).log_kept.item())
    assert layer(torch.zeros(0, 2)).loss().item() == 0.0


def test_atoms_without_a_value_and_losses_that_are_none_are_errors():
    with pytest.raises(ValueError, match="expected the loss 'likelihood' or 'free_energy', got 'hinge'"):
        LogicLayer("a -> b", inputs=["a"], loss="hinge")
    with pytest.raises(UnfitInputs, match="got none for b"):
        LogicLayer("a -> b", inputs=["a"], loss="free_energy")
    with pytest.raises(ValueError, match="an answer to every query"):
        LogicLayer("a -> b", inputs=["a"], queries=["b"], loss="free_energy")(torch.zeros(1, 1)).loss()
    with pytest.raises(ValueError, match="one head"):
        LogicLayer("a -> b", inputs=["a", "b"], loss="free_energy", heads=2)
    for wrong in (0.0, -1.0, INF, float("nan"), "5"):
        with pytest.raises(ValueError, match="a confidence above 0"):
            LogicLayer("a -> b", inputs=["a", "b"], loss="free_energy", confidence=wrong)


def test_a_layer_with_the_papers_loss_is_saved_and_loaded(tmp_path):
    made = LogicLayer("a -> b", inputs=["a", "b"], loss="free_energy", confidence=2.0)
    lbm.save(made, tmp_path / "one.layer")
    found = lbm.load(tmp_path / "one.layer")
    assert (found.loss, found.confidence) == ("free_energy", 2.0)
    logits = torch.zeros(1, 2)
    assert torch.equal(found(logits).loss(), made(logits).loss())
