"""Mixtures of heads are exact: every answer is that of a sum over heads and over worlds."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from lbm.nn import LogicLayer
from lbm.nn import heads as heads_module
from tests.nn.enumerated import Worlds, drawn, log_sum

INF = float("inf")
ROWS = 3


def numbers(case, heads, seed, rows=ROWS):
    generator = torch.Generator().manual_seed(seed)
    columns = sum(map(len, case.inputs))
    logits = 2 * torch.randn(rows, heads, columns, generator=generator, dtype=torch.float64)
    mixture = torch.randn(rows, heads, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), mixture.requires_grad_()


def scores_of(worlds, case, layer, logits, mixture):
    """Return the logarithm of each world's share in Z in one row: a sum over heads."""
    weights = layer.weights.detach().numpy()
    shares = mixture - log_sum(mixture)
    each = [worlds.scores(case.inputs, a, weights) + share for a, share in zip(logits, shares, strict=True)]
    return np.logaddexp.reduce(each, axis=0)


@pytest.mark.parametrize(("heads", "plain"), [(2, False), (3, True), (5, False)])
@pytest.mark.parametrize("first", [0, 10, 20])
@pytest.mark.filterwarnings("ignore:logits contradict")
def test_every_answer_of_heads_is_that_of_enumeration_and_gradients_are_differences(first, heads, plain):
    for seed in range(first, first + 10):
        case = drawn(seed, 10)
        worlds = Worlds(case.theory)
        if not worlds.models.any():
            continue
        layer = LogicLayer(case.theory, inputs=case.inputs, queries=case.queries, heads=heads)
        layer.compiled.plain = plain
        logits, mixture = numbers(case, heads, seed)
        generator = torch.Generator().manual_seed(seed)
        labels = torch.stack(
            [torch.randint(max(2, len(each)), (ROWS,), generator=generator) for each in case.inputs], dim=1
        )
        target = torch.zeros(ROWS, len(layer.queries), dtype=torch.int64)
        out = layer(logits, mixture=mixture)
        found = out.log_likelihood(labels).tolist()
        names = [name for choice in case.inputs for name in choice]
        shown = (1 << np.arange(len(names))) @ np.array([worlds.true(name) for name in names])
        some = worlds.models.nonzero()[0]
        _, one_each = np.unique(shown[some], return_index=True)
        for row in range(ROWS):
            a, pi = logits[row].detach().numpy(), mixture[row].detach().numpy()
            scores = scores_of(worlds, case, layer, a, pi)
            whole = log_sum(scores)
            right = np.ones(len(scores), bool)
            for choice, value in zip(case.inputs, labels[row].tolist(), strict=True):
                single = len(choice) == 1
                right &= worlds.true(choice[0]) == bool(value) if single else worlds.true(choice[value])
            expected = log_sum(np.where(right, scores, -np.inf)) - whole
            assert found[row] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            shares = np.exp(scores - whole)
            assert out.marginals.table[row].numpy() == pytest.approx(
                np.array([shares[worlds.true(name)].sum() for name in worlds.atoms]), abs=1e-9
            )
            world = (out.best[row].numpy() * (1 << np.arange(len(worlds.atoms)))).sum()
            assert scores[world] == pytest.approx(scores.max(), abs=1e-9)
            likely = [
                worlds.likely(case.inputs, each)[some[one_each]] + share
                for each, share in zip(a, pi - log_sum(pi), strict=True)
            ]
            assert out.log_kept[row].item() == pytest.approx(log_sum(np.concatenate(likely)), abs=1e-9)

        def loss(logits, mixture, weights, layer=layer, target=target, labels=labels):
            with torch.no_grad():
                layer.weights.copy_(weights)
            out = layer(logits, mixture=mixture)
            parts = [out.log_prob(target), out.log_likelihood(labels), out.log_kept]
            return sum(torch.where(part.isinf(), 0.0, part).sum() for part in parts)

        kept = layer.weights.detach().clone()
        loss(logits, mixture, kept).backward()
        turn = [torch.randn(each.shape, generator=generator).double() for each in (logits, mixture, kept)]
        at = [logits.detach(), mixture.detach(), kept]
        ahead = loss(*[each + 1e-5 * more for each, more in zip(at, turn, strict=True)])
        behind = loss(*[each - 1e-5 * more for each, more in zip(at, turn, strict=True)])
        slopes = [logits.grad, mixture.grad, layer.weights.grad]
        slope = sum((each * more).sum() for each, more in zip(slopes, turn, strict=True))
        assert slope.item() == pytest.approx((ahead - behind).item() / 2e-5, rel=1e-6, abs=1e-7)


def test_heads_pass_gradcheck():
    layer = LogicLayer("a -> b\nb <-> c | d\n0.7: a & ~c", inputs=["a", "b", "c"], queries=["d"], heads=2)
    logits = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    mixture = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)

    def found(logits, mixture):
        out = layer(logits, mixture=mixture)
        return out.log_prob(torch.tensor([1, 0])), out.log_kept

    assert gradcheck(found, (logits, mixture))


def test_a_mixture_says_what_no_single_head_can():
    """Two digits are equal, and nobody knows which: heads give half to each, independent inputs a quarter."""
    layer = LogicLayer(
        "exactly(1, x(0), x(1))\nexactly(1, y(0), y(1))", inputs=["x(*)", "y(*)"], queries=["x(0)", "y(0)"],
        heads=2,
    )  # fmt: skip
    logits = torch.tensor([[[9.0, -9.0, 9.0, -9.0], [-9.0, 9.0, -9.0, 9.0]]], dtype=torch.float64)
    chances = [
        layer(logits).log_prob(torch.tensor([[x, y]])).exp().item()
        for x, y in itertools.product([0, 1], [0, 1])
    ]
    assert chances == pytest.approx([0.5, 0.0, 0.0, 0.5], abs=1e-6)
    assert layer(logits).marginals["x(0)"].item() == pytest.approx(0.5)
    x, y = logits[..., :2], logits[..., 2:]
    assert torch.equal(layer(x, y).log_kept, layer(logits).log_kept)


def test_equal_heads_say_what_one_head_says():
    text, inputs = "a -> b\nb -> c | d\n1: d", ["a", "b", "c"]
    one = LogicLayer(text, inputs=inputs, queries=["d", "a & c"])
    four = LogicLayer(text, inputs=inputs, queries=["d", "a & c"], heads=4)
    logits = torch.randn(65, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mixture = torch.randn(65, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    target = torch.zeros(65, 2, dtype=torch.int64)
    alone, together = one(logits), four(logits[:, None].expand(65, 4, 3), mixture=mixture)
    assert together.log_prob(target).tolist() == pytest.approx(alone.log_prob(target).tolist(), abs=1e-12)
    assert together.log_kept.tolist() == pytest.approx(alone.log_kept.tolist(), abs=1e-12)
    assert together.marginals.table.numpy() == pytest.approx(alone.marginals.table.numpy(), abs=1e-12)
    assert torch.equal(together.best, alone.best)


def test_draws_come_in_proportion_and_depend_on_the_seed_alone():
    layer = LogicLayer("2: a & b\nc <-> a | b", inputs=["a", "b"], heads=2)
    logits = torch.tensor([[[2.0, -1.0], [-2.0, 1.0]], [[0.0, 0.3], [INF, -INF]]], dtype=torch.float64)
    out = layer(logits, mixture=torch.tensor([[0.0, 1.0], [-1.0, 0.5]], dtype=torch.float64))
    draws = out.sample(20_000, seed=1)
    assert torch.equal(draws, out.sample(20_000, seed=1))
    assert not torch.equal(draws, out.sample(20_000, seed=2))
    assert (draws[:, :, 2] == (draws[:, :, 0] | draws[:, :, 1])).all()
    assert draws.double().mean(dim=0).numpy() == pytest.approx(out.marginals.table.numpy(), abs=0.02)
    both = out.marginals.table[:, 0] + out.marginals.table[:, 1] - out.marginals.table[:, 2]
    seen = (draws[:, :, 0] & draws[:, :, 1]).double().mean(dim=0)
    assert seen.numpy() == pytest.approx(both.numpy(), abs=0.02)


def test_reasons_mix_those_of_heads_and_name_their_shares():
    text = "exactly(1, x(0), x(1))\nexactly(1, y(0), y(1))\nsame <-> x(0) & y(0) | x(1) & y(1)"
    layer = LogicLayer(text, inputs=["x(*)", "y(*)"], queries=["same"], heads=2)
    logits = torch.tensor([[[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.5]]], dtype=torch.float64)
    mixture = torch.tensor([[0.2, 0.0]], dtype=torch.float64)
    why = layer(logits, mixture=mixture).why(0, 1)
    pi = torch.softmax(mixture[0], 0)
    x, y = torch.softmax(logits[0, :, :2], 1), torch.softmax(logits[0, :, 2:], 1)
    parts = pi[:, None] * x * y
    assert why.heads == pytest.approx((parts.sum(dim=1) / parts.sum()).tolist())
    assert str(why).startswith("heads by share: ")
    assert why.facts()["heads"] == list(why.heads)
    expected = {f"x({i})": (parts[:, i].sum() / parts.sum()).item() for i in range(2)}
    for unit in why.units:
        assert unit.probability == pytest.approx(expected[unit.cube.split(" & ")[0]])
    soft = LogicLayer("2: bird -> flies", inputs=["bird"], queries=["flies"], heads=2)
    out = soft(torch.tensor([[[1.0], [-2.0]]]))
    carried = {one.what: one for one in out.why(0, 1).carried}
    assert carried["bird"].before == pytest.approx(out.marginals["bird"].item(), abs=1e-6)


def test_the_best_world_of_heads_need_not_be_the_best_of_any_head():
    """Each head has a favourite of its own; the world that both find second is best together."""
    text = "exactly(1, x(0), x(1), x(2))"
    layer = LogicLayer(text, inputs=["x(*)"], heads=2)
    logits = torch.tensor([[[0.5, 0.1, 0.4], [0.1, 0.5, 0.4]]], dtype=torch.float64).log()
    assert layer(logits).best[0].tolist() == [False, False, True]


def test_a_best_world_that_is_not_proven_is_told(monkeypatch):
    monkeypatch.setattr(heads_module, "MAX_BRANCHES", 2)
    names = [f"a{i}" for i in range(12)]
    layer = LogicLayer(f"atoms {', '.join(names)}\na0 | a1 | a2", inputs=names, heads=6)
    logits = torch.randn(1, 6, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.warns(RuntimeWarning, match=r"of 1 of 1 rows.*not proven \(limit MAX_BRANCHES\)"):
        world = layer(logits).best[0].tolist()
    assert layer.theory.is_model(dict(zip(layer.atoms, world, strict=True)))


@pytest.mark.parametrize("plain", [False, True])
def test_heads_that_contradict_the_theory_have_no_share_and_rows_without_a_head_are_told(plain):
    layer = LogicLayer("a -> b", inputs=["a", "b"], queries=["b"], heads=2)
    layer.compiled.plain = plain
    logits = torch.tensor(
        [[[INF, -INF], [1.0, 1.0]], [[INF, -INF], [INF, -INF]], [[0.0, 0.0], [0.0, 0.0]]], requires_grad=True
    )
    mixture = torch.tensor([[0.0, 0.0], [0.0, 0.0], [INF, INF]], requires_grad=True)
    out = layer(logits, mixture=mixture)
    with pytest.warns(RuntimeWarning, match=r"in 2 of 3 rows, the first of them row 1") as caught:
        values = [out.log_prob(torch.tensor([1, 1, 1])), out.log_kept]
    assert len(caught) == 1
    alone = LogicLayer("a -> b", inputs=["a", "b"], queries=["b"])(torch.tensor([[1.0, 1.0]]))
    assert values[0][0].item() == pytest.approx(alone.log_prob(torch.tensor([1])).item(), abs=1e-6)
    assert values[1][0].item() == pytest.approx(alone.log_kept.item() + math.log(0.5), abs=1e-6)
    for value in values:
        assert value[1:].tolist() == [-INF, -INF]
    sum(value.sum() for value in values).backward()
    assert logits.grad.isfinite().all()
    assert mixture.grad.isfinite().all()
    assert (logits.grad[1:] == 0).all()
    for world in (*out.best, *out.sample(20, seed=0).flatten(0, 1)):
        assert layer.theory.is_model(dict(zip(layer.atoms, world.tolist(), strict=True)))
    assert out.marginals.table[1:].isnan().all()


def test_a_certain_mixture_is_its_head():
    layer = LogicLayer("a | b", inputs=["a", "b"], queries=["a"], heads=2)
    logits = torch.randn(1, 2, 2, generator=torch.Generator().manual_seed(0))
    one = LogicLayer("a | b", inputs=["a", "b"], queries=["a"])(logits[:, 1])
    for mixture in ([[-INF, 0.0]], [[3.0, INF]], [[-1e4, 1e4]]):
        out = layer(logits, mixture=torch.tensor(mixture))
        assert out.log_prob(torch.tensor([1])).item() == pytest.approx(
            one.log_prob(torch.tensor([1])).item(), abs=1e-6
        )


def test_shapes_types_and_numbers_of_heads_that_do_not_fit_are_errors():
    layer = LogicLayer("a | b", inputs=["a", "b"], heads=3)
    with pytest.raises(ValueError, match=r"shape \(rows, 3, columns\), got \(4, 2\)"):
        layer(torch.zeros(4, 2))
    with pytest.raises(ValueError, match=r"shape \(rows, 3, columns\), got \(4, 2, 2\)"):
        layer(torch.zeros(4, 2, 2))
    with pytest.raises(ValueError, match="expected 2 columns"):
        layer(torch.zeros(4, 3, 3))
    with pytest.raises(ValueError, match=r"a mixture of shape \(4, 3\).*got \(4, 2\)"):
        layer(torch.zeros(4, 3, 2), mixture=torch.zeros(4, 2))
    with pytest.raises(TypeError, match="as the logits are"):
        layer(torch.zeros(4, 3, 2), mixture=torch.zeros(4, 3).double())
    with pytest.raises(TypeError, match="got list"):
        layer(torch.zeros(4, 3, 2), mixture=[[0.0] * 3] * 4)
    with pytest.raises(ValueError, match="nan in row 1 for head 2"):
        layer(torch.zeros(2, 3, 2), mixture=torch.tensor([[0.0] * 3, [0.0, 0.0, float("nan")]]))
    with pytest.raises(ValueError, match="nan in row 1, head 2, for 'b'"):
        layer(
            torch.zeros(2, 3, 2).index_put(
                (torch.tensor(1), torch.tensor(2), torch.tensor(1)), torch.tensor(INF - INF)
            )
        )
    with pytest.raises(ValueError, match="heads=K makes more"):
        LogicLayer("a | b", inputs=["a", "b"])(torch.zeros(4, 2), mixture=torch.zeros(4, 1))
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="a number of heads from 1 up"):
            LogicLayer("a | b", inputs=["a", "b"], heads=wrong)


def test_an_empty_batch_of_heads_has_empty_answers():
    layer = LogicLayer("a | b", inputs=["a", "b"], queries=["a"], heads=2)
    logits = torch.zeros(0, 2, 2, requires_grad=True)
    out = layer(logits, mixture=torch.zeros(0, 2))
    assert out.log_prob(torch.zeros(0)).shape == (0,)
    assert out.best.shape == (0, 2)
    assert out.sample(3, seed=0).shape == (3, 0, 2)
    (out.log_prob(torch.zeros(0)).sum() + out.log_kept.sum()).backward()
    assert logits.grad.shape == (0, 2, 2)
