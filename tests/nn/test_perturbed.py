"""Best worlds under noise, with the derivative of implicit maximum likelihood (I-MLE)."""

import itertools

import pytest
import torch

from lbm.nn import LogicLayer

INF = float("inf")


def test_without_rules_best_worlds_under_noise_are_draws_of_the_logits_own_distribution():
    layer = LogicLayer("exactly(1, d(0), d(1), d(2))\na -> a | b", inputs=["d(*)", "a"])
    logits = torch.tensor([[0.5, -1.0, 1.0, -0.7]], dtype=torch.float64).expand(20_000, 4)
    found = layer(logits).perturbed(seed=3).mean(dim=0)
    expected = [*torch.softmax(logits[0, :3], 0).tolist(), torch.sigmoid(logits[0, 3]).item()]
    assert found.tolist() == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("method", ["exact", "phases"])
def test_worlds_under_noise_keep_the_rules_and_depend_on_the_seed(method):
    text = "a -> b\nexactly(1, d(0), d(1), d(2))\nb -> d(1)"
    layer = LogicLayer(text, inputs=["d(*)", "a", "b"], method=method)
    out = layer(torch.randn(40, 5, generator=torch.Generator().manual_seed(0)))
    for world in out.perturbed(seed=0).tolist():
        assert layer.theory.is_model(dict(zip(layer.columns, map(bool, world), strict=True)))
    assert torch.equal(out.perturbed(seed=4), out.perturbed(seed=4))
    assert not torch.equal(out.perturbed(seed=4), out.perturbed(seed=5))
    columns = [layer.atoms.index(name) for name in layer.columns]
    assert torch.equal(out.perturbed(noise=0.0), out.best[:, columns].to(torch.float32))


@pytest.mark.parametrize("method", ["exact", "phases"])
def test_the_way_back_compares_best_worlds_before_and_after_a_step(method):
    """Against the best of all eight worlds, by hand."""
    layer = LogicLayer("atleast(2, a, b, c)", inputs=["a", "b", "c"], method=method)
    worlds = torch.tensor(
        [w for w in itertools.product([0.0, 1.0], repeat=3) if sum(w) >= 2], dtype=torch.float64
    )
    logits = torch.tensor([[0.3, -0.2, -1.0], [-3.0, 0.1, 0.2]], dtype=torch.float64, requires_grad=True)
    cost = torch.tensor([[3.0, 0.5, -0.25], [0.0, 0.0, 0.1]], dtype=torch.float64)
    for step in (0.5, 4.0, 50.0):
        logits.grad = None
        (layer(logits).perturbed(noise=0.0, step=step) * cost).sum().backward()
        before = worlds[(logits.detach() @ worlds.T).argmax(dim=1)]
        after = worlds[((logits.detach() - step * cost) @ worlds.T).argmax(dim=1)]
        assert torch.equal(logits.grad, (before - after) / step)


def test_a_network_learns_from_the_cost_of_worlds_alone():
    """Cheapest pairs are sought through their cost: the gradient lowers it."""
    layer = LogicLayer("exactly(2, a, b, c, d)", inputs=["a", "b", "c", "d"])
    cost = torch.tensor([5.0, 1.0, 3.0, 0.5])
    logits = torch.tensor([[1.0, 0.0, 0.5, -0.5]], requires_grad=True)
    optimiser = torch.optim.SGD([logits], lr=1.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        optimiser.zero_grad()
        (layer(logits).perturbed(generator=generator) @ cost).sum().backward()
        optimiser.step()
    assert layer(logits).best[0].tolist() == [False, True, False, True]


def test_hostile_logits_give_worlds_that_keep_the_rules_and_finite_gradients():
    layer = LogicLayer("a -> b", inputs=["a", "b"])
    rows = [[INF, -INF], [1e30, -1e30], [-INF, 0.0], [0.0, 0.0]]
    logits = torch.tensor(rows, requires_grad=True)
    found = layer(logits).perturbed(seed=0)
    assert ((found[:, 0] <= found[:, 1]) & ((found == 0) | (found == 1)).all(dim=1)).all()
    found.sum().backward()
    assert logits.grad.isfinite().all()
    assert layer(torch.zeros(0, 2)).perturbed(seed=0).shape == (0, 2)


def test_noise_steps_and_heads_that_do_not_fit_are_errors():
    out = LogicLayer("a -> b", inputs=["a", "b"])(torch.zeros(1, 2))
    for wrong in ({"noise": -1.0}, {"step": 0.0}, {"noise": float("nan")}, {"step": INF}):
        with pytest.raises(ValueError, match="noise from 0 up and a step above 0"):
            out.perturbed(**wrong)
    with pytest.raises(ValueError, match="got both"):
        out.perturbed(seed=1, generator=torch.Generator())
    with pytest.raises(ValueError, match="one head"):
        LogicLayer("a -> b", inputs=["a", "b"], heads=2)(torch.zeros(1, 2, 2)).perturbed()
