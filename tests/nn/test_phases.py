"""Layers by chains: clamped minus free marginals, near those of enumeration, and they say how near."""

import random
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch

import lbm
from lbm.errors import NoWorlds
from lbm.knowledge.formula import holds
from lbm.nn import LogicLayer, Phases, SampledOutput, phases
from lbm.nn.named import UnfitInputs
from tests.nn.enumerated import Worlds, drawn

INF = float("inf")
ROWS = 8


def answers_of(layer, logits, seed):
    """Return values of the queries as they are in a world of each row."""
    worlds = layer(logits.detach()).sample(1, seed=seed)[0]
    target = torch.zeros(len(logits), len(layer.queries), dtype=torch.int64)
    for row, values in enumerate(worlds.tolist()):
        world = dict(zip(layer.atoms, values, strict=True))
        for number, asked in enumerate(layer.queries):
            if asked.formula is not None:
                target[row, number] = int(holds(asked.formula, world))
            elif len(asked.choice) > 1:
                target[row, number] = [world[name] for name in asked.choice].index(True)
            else:
                target[row, number] = int(world[asked.choice[0]])
    return target


def both(case, seed, rows=ROWS):
    """Return a drawn theory as an exact layer and by phases, logits and answers; None: it has no model."""
    if not Worlds(case.theory).models.any():
        return None
    exact = LogicLayer(case.theory, inputs=case.inputs, queries=case.queries)
    sampled = LogicLayer(case.theory, inputs=case.inputs, queries=case.queries, method="phases")
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, len(exact.columns), generator=generator, dtype=torch.float64)
    return exact, sampled, logits, answers_of(exact, logits, seed)


def slopes(layer, logits, target, **options):
    """Return the gradients of the sum of log_prob by logits and by weights."""
    layer.zero_grad()
    values = logits.clone().requires_grad_()
    layer(values, **options).log_prob(target).sum().backward()
    return values.grad.numpy(), layer.weights.grad.numpy()


def cosine(one, other):
    one, other = one.ravel(), other.ravel()
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def measured(seeds):
    """Return all gradients, estimated and exact, and how often intervals hold the exact one."""
    found, weights, held = [], [], []
    for seed in seeds:
        made = both(drawn(seed, 16 if seed % 10 == 0 else 12), seed)
        if made is None:
            continue
        exact, sampled, logits, target = made
        torch.manual_seed(seed)
        (ours, by_weights), (right, weights_right) = (
            slopes(sampled, logits, target),
            slopes(exact, logits, target),
        )
        found.append((ours, right))
        weights.append((by_weights, weights_right))
        report = sampled(logits).phases(target)
        held.append(((report.low.numpy() <= right) & (right <= report.high.numpy())).ravel())
    return found, weights, np.concatenate(held)


def test_gradients_point_where_exact_ones_do_and_intervals_hold_them():
    """Some of the three hundred theories, 1,000 states a row."""
    found, weights, held = measured(range(18))
    assert cosine(*(np.concatenate([pair[i].ravel() for pair in found]) for i in range(2))) >= 0.98
    large = [pair for pair in found if np.linalg.norm(pair[1]) > 0.1]
    assert min(cosine(*pair) for pair in large) >= 0.95
    assert held.mean() >= 0.9
    assert cosine(*(np.concatenate([pair[i] for pair in weights]) for i in range(2))) >= 0.98


@pytest.mark.slow
def test_gradients_on_three_hundred_theories_point_where_exact_ones_do():
    found, weights, held = measured(range(300))
    assert cosine(*(np.concatenate([pair[i].ravel() for pair in found]) for i in range(2))) >= 0.99
    large = [pair for pair in found if np.linalg.norm(pair[1]) > 0.1]
    assert np.mean([cosine(*pair) >= 0.95 for pair in large]) >= 0.99
    assert held.mean() >= 0.9
    assert cosine(*(np.concatenate([pair[i] for pair in weights]) for i in range(2))) >= 0.99


@pytest.mark.parametrize("seed", [1, 3, 5, 8, 13, 21])
def test_marginals_draws_and_best_worlds_are_near_those_of_an_exact_layer(seed):
    made = both(drawn(seed, 12), seed, rows=3)
    if made is None:
        return
    exact, sampled, logits, _ = made
    torch.manual_seed(seed)
    right, out = exact(logits), sampled(logits)
    assert isinstance(out, SampledOutput)
    assert out.marginals.table.numpy() == pytest.approx(right.marginals.table.numpy(), abs=0.12)
    worlds = out.sample(600, seed=1)
    assert worlds.shape == (600, 3, len(exact.atoms))
    assert worlds.double().mean(dim=0).numpy() == pytest.approx(right.marginals.table.numpy(), abs=0.15)
    for world in (*out.best, *worlds.flatten(0, 1)):
        assert exact.theory.is_model(dict(zip(exact.atoms, world.tolist(), strict=True)))
    table = Worlds(exact.theory)
    bits = 1 << np.arange(len(exact.atoms))
    for row, world in enumerate(out.best.numpy()):
        scores = table.scores(exact.inputs, logits[row].numpy(), exact.weights.detach().numpy())
        assert scores[(world * bits).sum()] == pytest.approx(scores.max(), abs=1e-9)


def test_a_semantic_loss_by_phases_has_the_exact_gradient_and_a_lower_bound():
    text = "cat -> animal\ndog -> animal\n~(cat & dog)\nexactly(1, d(0), d(1), d(2))\nd(1) -> cat"
    inputs = ["cat", "dog", "animal", "d(*)"]
    logits = torch.randn(16, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = []
    for method in ("exact", "phases"):
        torch.manual_seed(1)
        layer, values = LogicLayer(text, inputs=inputs, method=method), logits.clone().requires_grad_()
        kept = layer(values).log_kept
        kept.sum().backward()
        found.append((kept.detach(), values.grad.numpy()))
    (right, slope), (bound, ours) = found
    assert cosine(ours, slope) >= 0.98
    assert (bound <= right + 1e-12).all()
    assert bound.numpy() == pytest.approx(right.numpy(), abs=0.05)  # few worlds: all are met
    report = LogicLayer(text, inputs=inputs, method="phases")(logits).phases()
    inside = (report.low.numpy() <= slope) & (slope <= report.high.numpy())
    assert inside.mean() >= 0.9
    assert str(report).startswith("clamped: ")
    assert set(report.facts()) == {"gradient", "low", "high", "clamped", "free"}


def test_chains_go_on_where_a_row_was_left_and_are_as_right_then():
    exact, sampled, logits, target = both(drawn(4, 12), 4)
    torch.manual_seed(0)
    ids = torch.arange(len(logits)) + 100
    right = slopes(exact, logits, target)[0]
    for _ in range(3):
        ours = slopes(sampled, logits, target, rows=ids)[0]
        assert cosine(ours, right) >= 0.95
        logits = logits + 0.1
        right = slopes(exact, logits, target)[0]
    kept = sampled.compiled.kept
    assert {number for _, number in kept} == set(ids.tolist())
    assert {phase for phase, _ in kept} <= {"free", "clamped"}


def test_chains_that_are_kept_take_a_bounded_room(monkeypatch):
    layer = LogicLayer("a | b\nb | c", inputs=["a", "b", "c"], queries=["a"], method="phases")
    assert layer(torch.zeros(1, 3), rows=torch.tensor([0])).marginals
    one = layer.compiled.bytes
    monkeypatch.setattr(phases, "MAX_KEPT", 3 * one)
    assert layer(torch.zeros(9, 3), rows=torch.arange(9)).marginals
    assert layer.compiled.bytes == 3 * one
    assert [number for _, number in layer.compiled.kept] == [6, 7, 8]


def test_the_same_seed_of_torch_gives_the_same_gradients():
    _, sampled, logits, target = both(drawn(2, 12), 2)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found.append(slopes(sampled, logits, target)[0])
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def wide(atoms=90):
    rng = random.Random(0)
    names = [f"x{i}" for i in range(atoms)]
    lines = [
        " | ".join(rng.choice(("", "~")) + name for name in rng.sample(names, 3)) for _ in range(3 * atoms)
    ]
    return "\n".join(lines), names


def test_phases_take_a_theory_that_is_too_wide_for_exact_sums():
    text, names = wide()
    layer = LogicLayer(text, inputs=names, queries=["x0 & x1"], method="phases")
    assert repr(layer) == "LogicLayer(90 columns of 90 inputs, by phases, queries: x0 & x1)"
    assert "91 atoms by phases: 271 terms" in str(layer.plan)
    logits = torch.zeros(2, 90, requires_grad=True)
    torch.manual_seed(0)
    out = layer(logits)
    for world in (*out.best, *out.sample(20, seed=0).flatten(0, 1)):
        assert layer.theory.is_model(dict(zip(layer.atoms, world.tolist(), strict=True)))
    (-out.log_prob(torch.tensor([1, 1])).mean()).backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[:, :2] < 0).all()  # both are wanted


@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_chains_of_every_size_learn_from_one_answer(atoms):
    """A chain of implications whose middle is seen false: so is all before it."""
    names = [f"x{i}" for i in range(atoms)]
    text = "\n".join(f"{one} -> {other}" for one, other in pairwise(names))
    layer = LogicLayer(text, inputs=names, queries=[names[atoms // 2]], method="phases", samples=64)
    logits = torch.zeros(1, atoms, requires_grad=True)
    torch.manual_seed(0)
    out = layer(logits)
    out.log_prob(torch.tensor([0])).sum().backward()
    assert (logits.grad[0, : atoms // 2 + 1] <= 1e-6).all()
    report = out.phases([[0]])
    before = slice(0, atoms // 2 + 1)
    assert report.gradient[0, before].tolist() == pytest.approx(
        (-out.marginals.table[0, before]).tolist(), abs=1e-6
    )
    world = out.best[0].tolist()
    assert layer.theory.is_model(dict(zip(names, world, strict=True)))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_logits_that_contradict_it_have_minus_infinity_a_gradient_of_0_and_one_warning(kind):
    layer = LogicLayer(
        "a -> b\nexactly(1, d(0), d(1), d(2))\nb -> d(1)", inputs=["a", "b", "d(*)"], queries=["b"],
        method="phases",
    )  # fmt: skip
    rows = [
        [INF, -INF, 0, 0, 0],
        [0, 0, INF, INF, 0],
        [0, 0, -INF, -INF, -INF],
        [1e4, -1e4, 0, 0, 0],
        [0, INF, 0, 0, 0],
    ]
    logits = torch.tensor(rows, dtype=kind, requires_grad=True)
    out = layer(logits)
    with pytest.warns(RuntimeWarning, match="in 3 of 5 rows, the first of them row 0") as told:
        values = [
            out.log_prob(torch.ones(5)),
            out.log_kept,
            out.log_likelihood(torch.tensor([[-1, 1, 1]] * 5)),
        ]
    assert len(told) == 1
    for value in values:
        assert value.dtype == kind
        assert value[:3].tolist() == [-INF] * 3
        assert value[3:].isfinite().all()
    sum(value.sum() for value in values).backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[:3] == 0).all()
    assert out.marginals.table[:3].isnan().all()
    for world in (*out.best, *out.sample(5, seed=0).flatten(0, 1)):
        assert layer.theory.is_model(dict(zip(layer.atoms, world.tolist(), strict=True)))
    report = out.phases([[1]] * 5)
    assert report.gradient[:3].isnan().all()
    assert "none met in 3" in str(report)


def test_an_answer_that_cannot_be_is_told():
    layer = LogicLayer("a -> b\na", inputs=["b"], queries=["b"], method="phases")
    logits = torch.zeros(2, 1, requires_grad=True)
    with pytest.warns(RuntimeWarning, match="in 1 of 2 rows, the first of them row 1"):
        value = layer(logits).log_prob(torch.tensor([1, 0]))
    assert value.tolist() == [0.0, -INF]
    value.sum().backward()
    assert logits.grad.tolist() == [[0.0], [0.0]]
    assert layer(logits).marginals["b"].tolist() == [1.0, 1.0]
    assert layer(logits).sample(3, seed=0).all()


def test_reasons_by_phases_are_probabilities_with_the_target_and_without():
    text = "2: bird -> flies\npenguin -> bird\n9: penguin -> ~flies"
    logits = torch.tensor([[0.2, 1.0]], dtype=torch.float64)
    found = {}
    for method in ("exact", "phases"):
        torch.manual_seed(0)
        layer = LogicLayer(text, inputs=["penguin", "bird"], queries=["flies"], method=method)
        found[method] = {one.what: one for one in layer(logits).why(0, 0).carried}
    for what, one in found["exact"].items():
        assert found["phases"][what].probability == pytest.approx(one.probability, abs=0.08)
        assert found["phases"][what].before == pytest.approx(one.before, abs=0.08)


def test_many_soft_formulae_are_told_apart_though_some_share_a_gate():
    """A formula, its negation and itself again, among more than fit in one number."""
    names = [f"x{i}" for i in range(40)]
    lines = ["0.5: x0 & x1", "1.25: ~(x0 & x1)", "-2: x0 & x1"]
    lines += [f"{0.1 * (i + 1):.1f}: {a} | {b}" for i, (a, b) in enumerate(pairwise(names))]
    lines += ["~x0"]
    layer = LogicLayer("\n".join(lines), inputs=names, method="phases")
    gates = layer.compiled.by_formula
    shared = gates[:, 0] != 0
    assert gates[shared, :3].tolist() in ([[1.0, -1.0, 1.0]], [[-1.0, 1.0, -1.0]])
    assert (np.abs(gates).sum(axis=0) == 1).all()
    assert np.abs(gates[:, 3:]).sum() == len(names) - 1


def test_bad_input_to_phases_is_an_error_that_says_what_was_expected():
    text = "exactly(1, d(0), d(1), d(2))\nrain -> d(1)"
    with pytest.raises(ValueError, match="expected the method 'exact' or 'phases', got 'gibbs'"):
        LogicLayer(text, inputs=["d(*)"], method="gibbs")
    with pytest.raises(ValueError, match="one head by phases"):
        LogicLayer(text, inputs=["d(*)"], method="phases", heads=2)
    for wrong in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match="a number of samples from 1 up"):
            LogicLayer(text, inputs=["d(*)"], method="phases", samples=wrong)
    for contradiction, given in (("a\n~a", None), ("~a | ~b", "a & b")):
        with pytest.raises(NoWorlds) as caught:
            LogicLayer(contradiction, inputs=["a"], given=given, method="phases")
        assert (caught.value.evidence is None) == (given is None)
    layer = LogicLayer(text, inputs=["d(*)"], queries=["rain"], method="phases")
    for wrong in (torch.zeros(2), torch.zeros(3, dtype=torch.int64), [0, 1]):
        with pytest.raises(ValueError, match="rows as whole numbers"):
            layer(torch.zeros(2, 3), rows=wrong)
    with pytest.raises(UnfitInputs, match="open are rain: make them inputs"):
        assert layer(torch.zeros(2, 3)).log_kept
    with pytest.raises(ValueError, match="nan in row 0"):
        layer(torch.full((1, 3), float("nan")))
    with pytest.raises(ValueError, match="in each of 2 rows"):
        layer(torch.zeros(2, 3)).log_prob(torch.zeros(3))
    with pytest.raises(IndexError):
        layer(torch.zeros(2, 3)).why(5)
    out = layer(torch.zeros(0, 3))
    assert (out.log_prob(torch.zeros(0)).shape, out.best.shape) == ((0,), (0, 4))
    assert out.sample(2, seed=0).shape == (2, 0, 4)
    exact = LogicLayer(text, inputs=["d(*)"])(torch.zeros(2, 3), rows=torch.arange(2))
    assert exact.log_kept.tolist() == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_layer_by_phases_is_saved_and_loaded(tmp_path):
    made = LogicLayer("2: a -> b\na | b", inputs=["a", "b"], method="phases", samples=200)
    lbm.save(made, tmp_path / "one.layer")
    found = lbm.load(tmp_path / "one.layer")
    assert (found.method, found.samples) == ("phases", 200)
    assert isinstance(found(torch.zeros(1, 2)), SampledOutput)


def test_phases_say_how_many_states_counted():
    layer = LogicLayer("a | b", inputs=["a", "b"], queries=["a"], method="phases", samples=500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = layer(torch.zeros(3, 2)).phases(torch.tensor([1, 1, 0]))
    assert isinstance(report, Phases)
    assert (report.free >= 500).all()
    assert report.clamped[2] == INF  # b follows: one world
