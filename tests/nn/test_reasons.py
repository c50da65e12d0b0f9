"""Reasons: hidden units by weight where there are few, and formulae and input values elsewhere."""

import pytest
import torch

from lbm.nn import LogicLayer


def test_units_of_a_strict_dnf_have_the_softmax_of_summed_log_literals():
    text = "exactly(1, x(0), x(1), x(2))\nexactly(1, y(0), y(1), y(2))"
    text += "\ntwo <-> x(0) & y(2) | x(1) & y(1) | x(2) & y(0)"
    layer = LogicLayer(text, inputs=["x(*)", "y(*)"], queries=["two"])
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0, 0.5, 0.0]], dtype=torch.float64)
    why = layer(logits).why(0, 1)
    assert [unit.cube.split(" & ")[:2] for unit in why.units] == [
        ["x(2)", "y(0)"],
        ["x(1)", "y(1)"],
        ["x(0)", "y(2)"],
    ]
    expected = torch.softmax(torch.tensor([5.0, 1.5, 0.0], dtype=torch.float64), 0)
    assert [unit.probability for unit in why.units] == pytest.approx(expected.tolist())
    assert str(why).startswith("hidden units")
    assert why.facts()["units"][0]["probability"] == pytest.approx(expected[0].item())
    free = layer(logits).why()
    assert sum(unit.probability for unit in layer(logits).why(most=99).units) == pytest.approx(1.0)
    assert len(free.units) == 8
    assert layer(logits).why(-1, [0], most=3).units[0].probability < 1


def test_soft_formulae_and_inputs_have_their_probabilities_with_the_target_and_without():
    layer = LogicLayer(
        "2: bird -> flies\npenguin -> bird\n9: penguin -> ~flies",
        inputs=["penguin", "bird"],
        queries=["flies"],
    )
    out = layer(torch.tensor([[0.2, 1.0]], dtype=torch.float64))
    why = out.why(0, 0)
    assert not why.units
    carried = {one.what: one for one in why.carried}
    assert carried["penguin"].before == pytest.approx(out.marginals["penguin"].item())
    assert carried["penguin"].probability > carried["penguin"].before
    assert carried["penguin -> ~flies"].probability == pytest.approx(1.0)  # nothing flies
    assert "before" in str(why)
    assert {one["kind"] for one in why.facts()["carried"]} == {"formula", "input"}


def test_a_formula_that_is_always_true_is_certain_and_fixed_atoms_are_one_unit():
    layer = LogicLayer("a\n1: a | b\n1: b", inputs=["b"], queries=["b"])
    why = layer(torch.zeros(1, 1)).why()
    assert {one.what: one.probability for one in why.carried}["a | b"] == 1.0
    settled = LogicLayer("a\n~b\nc | d", inputs=["a", "b"], queries=["a"])
    assert settled(torch.zeros(1, 2)).why(0, 1).units
    impossible = LogicLayer("a -> b", inputs=["a", "b"], queries=["b"])(torch.tensor([[9.0, 0.0]]))
    assert impossible.why(0, 0).units[0].cube in ("~a & ~b", "~b & ~a")
