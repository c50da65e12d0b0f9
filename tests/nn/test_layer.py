"""A layer is exact: values, gradients, marginals and worlds are those of enumeration."""

import math
import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import lbm
from lbm.errors import NoWorlds
from lbm.knowledge.parser import parse
from lbm.nn import LogicLayer
from lbm.reasoning.exact import sums
from tests.nn.enumerated import Worlds, drawn, log_sum

ROWS = 3


def layer_of(case):
    """Return the layer of a drawn case; None: its theory has no world, which it says."""
    if not Worlds(case.theory).models.any():
        with pytest.raises(NoWorlds):
            LogicLayer(case.theory, inputs=case.inputs, queries=case.queries)
        return None
    return LogicLayer(case.theory, inputs=case.inputs, queries=case.queries)


def logits_of(case, seed, rows=ROWS):
    generator = torch.Generator().manual_seed(seed)
    found = 2 * torch.randn(rows, sum(map(len, case.inputs)), generator=generator, dtype=torch.float64)
    return found.requires_grad_()


def where(worlds, query, value):
    """Return in which worlds a query has a value."""
    if isinstance(query, tuple):
        return worlds.true(query[value])
    return worlds.where(parse(query)) == bool(value)


def said(worlds, case, layer, logits, targets, labels):
    """Return what a layer is to say, by enumeration: log_prob, log_kept, log_likelihood, marginals, best."""
    weights = layer.weights.detach().numpy()
    names = [name for choice in case.inputs for name in choice]
    shown = (1 << np.arange(len(names))) @ np.array([worlds.true(name) for name in names])
    found = {key: [] for key in ("prob", "kept", "likelihood", "marginals", "best")}
    for row, a in enumerate(logits.detach().numpy()):
        scores = worlds.scores(case.inputs, a, weights)
        whole = log_sum(scores)
        right = np.ones(len(scores), bool)
        for query, value in zip(case.queries, targets[row], strict=True):
            right &= where(worlds, query, value)
        found["prob"].append(log_sum(np.where(right, scores, -np.inf)) - whole)
        right = np.ones(len(scores), bool)
        for choice, value in zip(case.inputs, labels[row], strict=True):
            right &= worlds.true(choice[value]) if len(choice) > 1 else worlds.true(choice[0]) == bool(value)
        found["likelihood"].append(log_sum(np.where(right, scores, -np.inf)) - whole)
        some = worlds.models.nonzero()[0]
        _, first = np.unique(shown[some], return_index=True)
        found["kept"].append(log_sum(worlds.likely(case.inputs, a)[some[first]]))
        shares = np.exp(scores - whole)
        found["marginals"].append([shares[worlds.true(name)].sum() for name in worlds.atoms])
        found["best"].append(scores.max())
    return found


def drawn_values(case, seed):
    rng = random.Random(seed)
    targets = [
        [
            rng.randrange(len(query)) if isinstance(query, tuple) else rng.randrange(2)
            for query in case.queries
        ]
        for _ in range(ROWS)
    ]
    labels = [[rng.randrange(max(2, len(choice))) for choice in case.inputs] for _ in range(ROWS)]
    return targets, labels


@pytest.mark.parametrize("first", range(0, 300, 10))
@pytest.mark.filterwarnings("ignore:logits contradict")
def test_every_answer_is_that_of_enumeration_and_gradients_are_differences(first):
    """300 theories in all: groups, soft and hard formulae, up to 12 atoms, one in ten up to 16."""
    for seed in range(first, first + 10):
        case = drawn(seed, 16 if seed == first else 12)
        layer = layer_of(case)
        if layer is None:
            continue
        worlds = Worlds(case.theory)
        logits = logits_of(case, seed)
        targets, labels = drawn_values(case, seed)
        expected = said(worlds, case, layer, logits, targets, labels)
        out = layer(logits)
        target, label = torch.tensor(targets), torch.tensor(labels)
        log_prob, likelihood = out.log_prob(target), out.log_likelihood(label)
        assert log_prob.tolist() == pytest.approx(expected["prob"], rel=1e-9, abs=1e-9)
        assert likelihood.tolist() == pytest.approx(expected["likelihood"], rel=1e-9, abs=1e-9)
        assert out.log_kept.tolist() == pytest.approx(expected["kept"], rel=1e-9, abs=1e-9)
        assert out.marginals.table.numpy() == pytest.approx(np.array(expected["marginals"]), abs=1e-9)
        weights = layer.weights.detach().numpy()
        bits = 1 << np.arange(len(worlds.atoms))
        for row, world in enumerate(out.best.numpy()):
            scores = worlds.scores(case.inputs, logits[row].detach().numpy(), weights)
            assert scores[(world * bits).sum()] == pytest.approx(expected["best"][row], abs=1e-9)

        def loss(values, weights, layer=layer, target=target, label=label):
            with torch.no_grad():
                layer.weights.copy_(weights)
            out = layer(values)
            parts = [out.log_prob(target), out.log_likelihood(label), out.log_kept]
            return sum(torch.where(part.isinf(), 0.0, part).sum() for part in parts)

        kept = layer.weights.detach().clone()
        value = loss(logits, kept)
        value.backward()
        step, direction = (
            1e-5,
            torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed)).double(),
        )
        turn = torch.randn(kept.shape, generator=torch.Generator().manual_seed(seed + 1)).double()
        ahead = loss(logits.detach() + step * direction, kept + step * turn)
        behind = loss(logits.detach() - step * direction, kept - step * turn)
        layer.weights.data.copy_(kept)
        slope = (logits.grad * direction).sum() + (layer.weights.grad * turn).sum()
        assert slope.item() == pytest.approx((ahead - behind).item() / (2 * step), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", [2, 7, 11, 19, 23])
@pytest.mark.filterwarnings("ignore:logits contradict")
def test_gradients_pass_gradcheck(seed):
    case = drawn(seed, 7)
    layer = layer_of(case)
    if layer is None:
        return
    logits = logits_of(case, seed)
    targets, labels = drawn_values(case, seed)
    target, label = torch.tensor(targets), torch.tensor(labels)
    out = layer(logits)
    assert gradcheck(lambda a: layer(a).log_kept, (logits,))
    for log, ask in (
        (out.log_prob(target), lambda a, _: layer(a).log_prob(target)),
        (out.log_likelihood(label), lambda a, _: layer(a).log_likelihood(label)),
    ):
        if log.isfinite().all():
            assert gradcheck(ask, (logits, layer.weights))


def test_gradients_cannot_be_differentiated_again_and_say_so():
    layer = LogicLayer("a | b", inputs=["a", "b"])
    logits = torch.zeros(1, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(layer(logits).log_kept.square().sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize("circuits", [False, True])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore:logits contradict")
def test_operations_of_torch_say_what_the_compiled_loops_say(seed, circuits, monkeypatch):
    if circuits:
        monkeypatch.setattr(sums, "MAX_ENTRIES", 0)
    case = drawn(seed, 9)
    layer = layer_of(case)
    if layer is None:
        return
    targets, labels = drawn_values(case, seed)
    found = []
    for plain in (False, True):
        layer.compiled.plain = plain
        layer.zero_grad()
        logits = logits_of(case, seed)
        with torch.no_grad():
            logits[0, 0], logits[1, -1] = torch.inf, -torch.inf
        out = layer(logits)
        parts = [out.log_prob(torch.tensor(targets)), out.log_kept, out.log_likelihood(torch.tensor(labels))]
        sum(torch.where(part.isinf(), 0.0, part).sum() for part in parts).backward()
        found.append([*parts, out.marginals.table, logits.grad, layer.weights.grad])
    for one, other in zip(*found, strict=True):
        assert one.detach().numpy() == pytest.approx(
            other.detach().numpy(), rel=1e-10, abs=1e-10, nan_ok=True
        )


def test_likelihoods_of_all_labels_sum_to_one_over_those_that_keep_the_rules():
    theory = "exactly(1, d(0), d(1), d(2))\na -> d(1)\na | b\n0.7: b & d(2)"
    layer = LogicLayer(theory, inputs=["d(*)", "a", "b"])
    labels = torch.cartesian_prod(torch.arange(3), torch.arange(2), torch.arange(2))
    logits = torch.randn(1, 5, generator=torch.Generator().manual_seed(1)).double().expand(len(labels), 5)
    chances = layer(logits).log_likelihood(labels).exp()
    kept = [(not a or d == 1) and (a or b) for d, a, b in labels.tolist()]
    assert chances.sum().item() == pytest.approx(1.0, abs=1e-12)
    assert [chance > 0 for chance in chances.tolist()] == [bool(each) for each in kept]
    whole = torch.cat([torch.nn.functional.one_hot(labels[:, 0], 3), labels[:, 1:]], dim=1)
    assert torch.equal(layer(logits).log_likelihood(whole).exp(), chances)
    assert torch.equal(layer(logits).log_likelihood(whole.bool()).exp(), chances)
    unknown = torch.full_like(labels, -1)
    assert layer(logits).log_likelihood(unknown).tolist() == pytest.approx([0.0] * len(labels), abs=1e-12)


def test_one_distribution_for_all_answers():
    """marginals, draws and likelihoods agree; a soft formula weighs everywhere but in log_kept."""
    layer = LogicLayer("2: a & b\nc <-> a | b", inputs=["a", "b"], queries=["a & b", "c"])
    logits = torch.tensor([[0.3, -0.8]], dtype=torch.float64)
    out = layer(logits)
    both = math.exp(0.3 - 0.8 + 2) / (math.exp(0.3 - 0.8 + 2) + math.exp(0.3) + math.exp(-0.8) + 1)
    assert out.log_prob(torch.tensor([[1, 1]])).exp().item() == pytest.approx(both)
    assert out.log_likelihood(torch.tensor([[1, 1]])).exp().item() == pytest.approx(both)
    assert out.log_kept.item() == pytest.approx(0.0, abs=1e-15)  # whatever a and b are, some c fits
    worlds = out.sample(20_000, seed=1)
    assert worlds.shape == (20_000, 1, 3)
    assert torch.equal(worlds, out.sample(20_000, seed=1))
    assert (worlds[:, 0, 2] == (worlds[:, 0, 0] | worlds[:, 0, 1])).all()
    assert worlds.double().mean(dim=0).numpy() == pytest.approx(out.marginals.table.numpy(), abs=0.02)
    assert out.marginals["c"].item() == pytest.approx(out.marginals.table[0, 2].item())
    generator = torch.Generator().manual_seed(4)
    first = out.sample(9, generator=generator)
    assert not torch.equal(first, out.sample(9, generator=generator))
    assert torch.equal(first, out.sample(9, generator=torch.Generator().manual_seed(4)))
    assert out.sample(0).shape == (0, 1, 3)


@pytest.mark.parametrize("unknown", [-1, -2, -7])
def test_a_value_below_0_is_not_known(unknown):
    layer = LogicLayer("exactly(1, d(0), d(1), d(2))\na -> d(1)", inputs=["d(*)"], queries=["a", "d(*)"])
    out = layer(torch.tensor([[0.2, 1.0, -0.4]], dtype=torch.float64))
    either = out.log_prob(torch.tensor([[0, 1]])).exp() + out.log_prob(torch.tensor([[1, 1]])).exp()
    assert out.log_prob(torch.tensor([[unknown, 1]])).exp().item() == pytest.approx(either.item())
    assert out.log_prob(torch.tensor([[unknown, unknown]])).item() == pytest.approx(0.0, abs=1e-12)


def test_weights_are_trained_along():
    layer = LogicLayer("0.1: a & b", inputs=["a", "b"])
    logits = torch.zeros(1, 2, dtype=torch.float64)
    optimiser = torch.optim.SGD(layer.parameters(), lr=2.0)
    for _ in range(200):
        optimiser.zero_grad()
        labels = torch.tensor([[1, 1], [1, 1], [1, 1], [0, 1], [1, 0], [0, 0]])
        (-layer(logits.expand(6, 2)).log_likelihood(labels).mean()).backward()
        optimiser.step()
    assert layer.weights.item() == pytest.approx(math.log(3.0), abs=1e-6)  # half of the labels


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [0, 1, 7, 65, 200])
def test_rows_of_any_number_and_type_say_the_same_alone(rows, kind):
    layer = LogicLayer("a -> b\nb -> c | d\n1: d", inputs=["a", "b", "c"], queries=["d", "a & c"])
    logits = torch.randn(rows, 3, generator=torch.Generator().manual_seed(rows)).to(kind).requires_grad_()
    out = layer(logits)
    target = torch.zeros(rows, 2, dtype=torch.bool)
    found = out.log_prob(target)
    assert found.dtype == out.log_kept.dtype == out.marginals.table.dtype == kind
    assert found.shape == (rows,)
    assert (out.best.shape, out.sample(3, seed=0).shape) == ((rows, 4), (3, rows, 4))
    (found.sum() + out.log_kept.sum()).backward()
    assert logits.grad.shape == (rows, 3)
    assert logits.grad.dtype == kind
    for row in range(min(rows, 9)):
        alone = layer(logits[row : row + 1].detach())
        assert alone.log_prob(target[:1]).item() == pytest.approx(
            found[row].item(), abs=1e-14 if kind.itemsize == 8 else 1e-6
        )
        assert torch.equal(alone.best, out.best[row : row + 1])


def test_several_tensors_stand_side_by_side_and_patterns_name_groups():
    theory = "exactly(1, x(0), x(1), x(2))\nexactly(1, y(0), y(1), y(2))"
    theory += "\nsame <-> (x(0) <-> y(0)) & (x(1) <-> y(1))"
    layer = LogicLayer(theory, inputs=["x(*)", "y(*)"], queries="same")
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    assert torch.equal(
        layer(x, y).log_prob(torch.ones(4)), layer(torch.cat([x, y], 1)).log_prob(torch.ones(4, 1))
    )
    assert layer.columns == ("x(0)", "x(1)", "x(2)", "y(0)", "y(1)", "y(2)")
    assert layer(x, y).marginals["y(?)"].sum(dim=1).tolist() == pytest.approx([1.0] * 4, abs=1e-6)
    turned = LogicLayer(theory, inputs=[("x(2)", "x(0)", "x(1)"), "y(*)"], queries=["x(*)", "x(1)"])
    chances = turned(x[:, [2, 0, 1]], y).log_prob(torch.tensor([[1, 1]] * 4)).exp()
    assert chances.tolist() == pytest.approx(torch.softmax(x, 1)[:, 1].tolist(), abs=1e-6)


def test_atoms_of_a_group_may_have_log_odds_of_their_own():
    """Then that exactly one is true is a rule: the semantic loss of one-hot outputs."""
    theory = "exactly(1, d(0), d(1), d(2))"
    logits = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64)
    p = torch.sigmoid(logits[0])
    one = sum(p[i] * math.prod(1 - p[j] for j in range(3) if j != i) for i in range(3))
    layer = LogicLayer(theory, inputs=["d(*)"], groups=False, queries=["d(*)", "d(1)"])
    assert layer(logits).log_kept.exp().item() == pytest.approx(one.item())
    assert LogicLayer(theory, inputs=["d(*)"])(logits).log_kept.item() == pytest.approx(0.0, abs=1e-15)
    chances = layer(logits.expand(3, 3)).log_prob(torch.tensor([[0, -1], [1, 1], [2, 0]])).exp()
    assert chances.tolist() == pytest.approx(torch.softmax(logits, 1)[0].tolist())
    assert layer(logits).marginals["d(*)"][0].tolist() == pytest.approx(chances.tolist())


def test_evidence_that_is_certain_holds_in_all_rows():
    layer = LogicLayer("a | b\nb -> c", inputs=["a", "b"], queries=["c"], given="~a")
    assert layer(torch.zeros(2, 2)).log_prob(torch.tensor([1, 1])).tolist() == pytest.approx(
        [0.0, 0.0], abs=1e-7
    )
    assert layer(torch.zeros(1, 2)).log_kept.exp().item() == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["road_r", "sudoku_4", "grid_4", "seq_fun"])
def test_circuits_of_others_have_the_sums_and_gradients_that_klay_finds(name):
    klay = pytest.importorskip("klay", reason="klaycircuits is not installed")
    if "LBM_DATA" not in os.environ:
        pytest.skip("LBM_DATA is not set")
    path = Path(os.environ["LBM_DATA"]) / "structured" / f"{name}.sdd"
    theory = lbm.Theory.load(path)
    layer = LogicLayer(theory, inputs=theory.atoms)
    logits = torch.randn(
        8, len(theory.atoms), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    logits.requires_grad_()
    ours = layer(logits).log_kept
    (slope,) = torch.autograd.grad(ours.sum(), logits)
    circuit = klay.Circuit()
    circuit.add_sdd_from_file(str(path))
    module = circuit.to_torch_module(semiring="log", compile=False)
    yes, no = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    theirs = module(yes, no).reshape(-1)
    (other,) = torch.autograd.grad(theirs.sum(), logits)
    assert theirs.detach().numpy() == pytest.approx(ours.detach().numpy(), rel=1e-4, abs=1e-4)
    assert slope.numpy() == pytest.approx(other.numpy(), abs=1e-4)


def test_the_example_of_addition_takes_at_most_fifteen_lines_from_rules_to_the_last_step():
    text = (Path(__file__).parents[2] / "examples" / "addition.py").read_text()
    lines = [line for line in text.splitlines() if line]
    first = next(i for i, line in enumerate(lines) if line.startswith("RULES"))
    last = next(i for i, line in enumerate(lines) if line.strip() == "optimiser.step()")
    assert last - first + 1 <= 15
