"""Each kind of bad input has an error or a warning that says what was expected, and none gives nan."""

import random
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lbm.errors import NoAnswer, NoWorlds, ParseError, TooManyWorlds, UnknownAtom
from lbm.nn import LogicLayer
from lbm.nn.named import UnfitInputs

INF = float("inf")


def test_a_theory_without_models_is_an_error():
    for text in (
        "a\n~a",
        "a | b\na -> b\nb -> a\n~a | ~b",
        "exactly(1, a, b, c)\natleast(2, a, b, c)\na -> ~a",
    ):
        with pytest.raises(NoWorlds) as caught:
            LogicLayer(text, inputs=["a", "b"] if "b" in text else ["a"], groups=False)
        assert caught.value.evidence is None


def test_certain_evidence_that_contradicts_the_theory_is_an_error_that_names_it():
    with pytest.raises(NoWorlds, match="a & b"):
        LogicLayer("~a | ~b", inputs=["a"], given="a & b")
    with pytest.raises(NoWorlds) as caught:
        LogicLayer("a | b\na -> b\nb -> a\n~a | ~b", inputs=["a"], given="a")
    assert caught.value.evidence is None
    with pytest.raises(UnknownAtom, match="rain"):
        LogicLayer("rain -> wet", inputs=["rain"], given="rainy")


@pytest.mark.parametrize("plain", [False, True])
def test_logits_that_contradict_it_have_minus_infinity_a_gradient_of_0_and_one_warning(plain):
    layer = LogicLayer("a -> b", inputs=["a", "b"], queries=["a"])
    layer.compiled.plain = plain
    logits = torch.tensor([[INF, -INF], [1.0, 1.0]], requires_grad=True)
    out = layer(logits)
    with pytest.warns(RuntimeWarning, match=r"in 1 of 2 rows, the first of them row 0") as caught:
        values = [out.log_kept, out.log_prob(torch.tensor([1, 1])), out.log_likelihood(torch.ones(2, 2))]
    assert len(caught) == 1
    for value in values:
        assert (value[0].item(), bool(value[1].isfinite())) == (-INF, True)
    sum(values).sum().backward()
    assert logits.grad[0].tolist() == [0.0, 0.0]
    assert logits.grad.isfinite().all()
    assert out.marginals.table[0].isnan().all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layer(logits).log_kept[0] == -INF  # said once
    a, b = out.best[0].tolist()
    assert b or not a
    for a, b in out.sample(50, seed=0)[:, 0].tolist():
        assert b or not a


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_large_and_infinite_logits_have_exact_answers(plain, kind):
    layer = LogicLayer(
        "a -> b\nexactly(1, d(0), d(1), d(2))\nb -> d(1)", inputs=["a", "b", "d(*)"], queries=["b"]
    )
    layer.compiled.plain = plain
    rows = [[1e4, -1e4, 0, 0, 0], [-1e4, -1e4, 1e4, -1e4, 0], [INF, INF, 0, 1e4, 0], [-INF, 0, INF, 0, 0]]
    logits = torch.tensor(rows, dtype=kind, requires_grad=True)
    out = layer(logits)
    assert out.log_kept.tolist() == pytest.approx(
        [-1e4, 0.0, 0.0, torch.log(torch.tensor(0.5)).item()], rel=1e-4, abs=1e-6
    )
    found = out.log_prob(torch.tensor([0, 0, 1, 0]))
    assert found.tolist() == pytest.approx(
        [-1.0986 * 0 - torch.tensor(1.0 + 1 / 3).log().item(), 0, 0, 0], abs=1e-6
    )
    (out.log_kept.sum() + found.sum()).backward()
    assert logits.grad.isfinite().all()


def test_nan_is_an_error_that_names_row_and_input():
    layer = LogicLayer("rain -> wet", inputs=["rain", "wet"])
    with pytest.raises(ValueError, match=r"got nan in row 1 for 'wet' \(1 in all\)"):
        layer(torch.tensor([[0.0, INF], [-INF, float("nan")]]))
    layer = LogicLayer("2: rain -> wet", inputs=["rain", "wet"])
    with torch.no_grad():
        layer.weights[0] = float("nan")
    with pytest.raises(ValueError, match="expected finite weights, got nan for soft formula 0"):
        layer(torch.zeros(1, 2))


def test_a_group_in_part_an_atom_twice_and_unknown_names_are_errors():
    text = "exactly(1, d(0), d(1), d(2))\nrain -> d(1)"
    with pytest.raises(UnfitInputs, match=r"got d\(0\), d\(2\) without d\(1\)"):
        LogicLayer(text, inputs=["d(0)", "d(2)", "rain"])
    with pytest.raises(UnfitInputs, match="'rain' twice"):
        LogicLayer(text, inputs=["rain", "d(*)", "r*"])
    with pytest.raises(UnknownAtom, match="did you mean 'rain'"):
        LogicLayer(text, inputs=["rian"])
    with pytest.raises(UnknownAtom, match="did you mean 'rain'"):
        LogicLayer(text, inputs=["rain"], queries=["rian"])
    with pytest.raises(UnknownAtom, match="did you mean 'rain'"):
        LogicLayer(text, inputs=["rain"], queries=["d(1) & rian"])
    with pytest.raises(UnknownAtom):
        LogicLayer(text, inputs=["e(*)"])
    with pytest.raises(UnfitInputs, match="at least one input"):
        LogicLayer(text, inputs=[])
    with pytest.raises(UnfitInputs, match="queries or None"):
        LogicLayer(text, inputs=["rain"], queries=[])
    with pytest.raises(UnfitInputs, match="atoms of one group"):
        LogicLayer(text, inputs=["rain"], queries=[("d(*)", "rain")])
    with pytest.raises(UnfitInputs, match="or none: it is one query"):
        LogicLayer(text, inputs=["d(0)"], queries=["d(*)"], groups=False)
    with pytest.raises(ParseError):
        LogicLayer(text, inputs=["rain"], queries=["rain &"])
    for wrong in (3, {"rain": 1}, [3]):
        with pytest.raises(TypeError, match="expected"):
            LogicLayer(text, inputs=wrong)
    with pytest.raises(TypeError, match="expected atoms, groups or formulae"):
        LogicLayer(text, inputs=["rain"], queries=[3])
    with pytest.raises(TypeError, match="expected a Theory"):
        LogicLayer(["rain"], inputs=["rain"])
    with pytest.raises(UnknownAtom, match="layer"):
        LogicLayer(text, inputs=["rain"])(torch.zeros(1, 1)).marginals["rainy"]


def test_shapes_and_types_that_do_not_fit_are_errors():
    layer = LogicLayer(
        "exactly(1, d(0), d(1), d(2))\nrain -> d(1)", inputs=["d(*)", "rain"], queries=["rain"]
    )
    for wrong in (torch.zeros(4), torch.zeros(2, 3), torch.zeros(2, 2, 2)):
        with pytest.raises(ValueError, match="logits"):
            layer(wrong)
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(3, 1\)"):
        layer(torch.zeros(2, 3), torch.zeros(3, 1))
    for wrong in (torch.zeros(2, 4, dtype=torch.int64), [[0.0] * 4], torch.zeros(2, 4, dtype=torch.float16)):
        with pytest.raises(TypeError, match="float32 or float64"):
            layer(wrong)
    with pytest.raises(TypeError, match="got nothing"):
        layer()
    out = layer(torch.zeros(2, 4))
    for wrong in (torch.zeros(3), torch.zeros(2, 2), torch.tensor(1)):
        with pytest.raises(ValueError, match="expected a value for a query in each of 2 rows"):
            out.log_prob(wrong)
    with pytest.raises(ValueError, match="from 0 to 1, or -1, of query 'rain', got 2 in row 1"):
        out.log_prob(torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="expected a target"):
        out.log_prob()
    with pytest.raises(ValueError, match="whole numbers"):
        out.log_prob(torch.tensor([0.5, 1.0]))
    with pytest.raises(ValueError, match=r"shape \(2, 2 or 4\)"):
        out.log_likelihood(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="got 3 in row 1"):
        out.log_likelihood(torch.tensor([[0, 1], [3, 1]]))
    with pytest.raises(ValueError, match=r"exactly one true label of 'd\(0\)' and its group in row 0"):
        out.log_likelihood(torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]]))
    with pytest.raises(ValueError, match="from 0 up"):
        out.sample(-1)
    with pytest.raises(ValueError, match="got both"):
        out.sample(1, seed=0, generator=torch.Generator())
    with pytest.raises(IndexError):
        out.why(2)
    bare = LogicLayer("a | b", inputs=["a"])
    assert torch.equal(bare(torch.zeros(1, 1)).log_prob(), bare(torch.zeros(1, 1)).log_kept)
    with pytest.raises(ValueError, match="no queries"):
        bare(torch.zeros(1, 1)).log_prob(torch.tensor([1]))
    with pytest.raises(ValueError, match="no queries"):
        bare(torch.zeros(1, 1)).why(0, 1)
    twice = LogicLayer("a | b", inputs=["a"], queries=["a", "a"])
    with pytest.raises(ValueError, match="got two in row 0"):
        twice(torch.zeros(1, 1)).log_prob(torch.tensor([[0, 1]]))


def test_a_theory_past_every_budget_is_an_error_that_names_atoms_and_says_what_helps():
    rng = random.Random(0)
    names = [f"x{i}" for i in range(90)]
    lines = [" | ".join(rng.choice(("", "~")) + name for name in rng.sample(names, 3)) for _ in range(270)]
    with pytest.raises(
        (TooManyWorlds, NoAnswer),
        match=r"too wide for an exact layer: 90 atoms.*x1.*What helps.*method='phases'",
    ):
        LogicLayer("\n".join(lines), inputs=names, seconds=8)


@pytest.mark.parametrize("method", ["exact", "phases"])
def test_a_forall_over_nothing_is_true_and_an_exists_over_nothing_false(method):
    nothing = "domain d = {k}\n{} X, Y in d, X != Y: p(X) & ~p(Y)\na | b"
    layer = LogicLayer(nothing.replace("{}", "forall"), inputs=["a", "b"], method=method)
    assert layer(torch.zeros(1, 2)).log_kept.exp().item() == pytest.approx(0.75, abs=1e-6)
    with pytest.raises(NoWorlds):
        LogicLayer(nothing.replace("{}", "exists"), inputs=["a"], method=method)
    soft = "domain d = {k}\n0.5: exists X, Y in d, X != Y: p(X)\n0.25: a | ~a\na | b"
    layer = LogicLayer(soft, inputs=["a", "b"], method=method)
    out = layer(torch.zeros(1, 2, requires_grad=True))
    assert [one.probability for one in out.why(most=9).carried if one.kind == "formula"] == [1.0, 0.0]
    (-out.log_likelihood(torch.tensor([[1, 0]]))).sum().backward()
    assert layer.weights.grad.tolist() == [0.0, 0.0]
    with pytest.raises(ParseError, match="the domain 'd', which is empty"):
        LogicLayer("domain d = {}\nforall X in d: p(X)\na", inputs=["a"], method=method)


@pytest.mark.parametrize("method", ["exact", "phases"])
def test_an_empty_batch_has_empty_answers_and_gradients(method):
    layer = LogicLayer("a -> b\n1: b", inputs=["a", "b"], queries=["b", "a & b"], method=method)
    logits = torch.zeros(0, 2, requires_grad=True)
    out = layer(logits)
    values = [out.log_prob(torch.zeros(0, 2)), out.log_kept, out.log_likelihood(torch.zeros(0, 2))]
    for value in values:
        assert value.shape == (0,)
    sum(value.sum() for value in values).backward()
    assert logits.grad.shape == (0, 2)
    assert layer.weights.grad.tolist() == [0.0]
    assert out.marginals.table.shape == out.best.shape == (0, 2)
    assert out.sample(2, seed=0).shape == (2, 0, 2)
    with pytest.raises(IndexError):
        out.why()


LAYERS = {
    "tables": (
        "exactly(1, d(0), d(1), d(2))\na -> d(1)\nb <-> a ^ d(2)\n1.5: b\n-30: a & ~b | c",
        ["d(*)", "a", "b", "c"],
    ),
    "chain": ("\n".join(f"x{i} -> x{i + 1}" for i in range(12)), [f"x{i}" for i in range(13)]),
    "clauses": ("a | b | c\n~a | ~b\n~c | d\n700: a <-> d", ["a", "b", "c", "d"]),
}
NUMBERS = st.one_of(
    st.sampled_from([0.0, INF, -INF, 1e4, -1e4, 1e38, -1e38, 745.0, -745.0, 1e-30, 88.0]),
    st.floats(-1e300, 1e300, allow_nan=False),
)


@pytest.mark.filterwarnings("ignore:logits contradict")
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", LAYERS)
@given(data=st.data())
def test_no_answer_is_ever_nan_whatever_the_logits(name, plain, data):
    text, inputs = LAYERS[name]
    known = _made.get(name)
    layer = _made[name] = known or LogicLayer(
        text, inputs=inputs, queries=[inputs[-1], f"{inputs[-1]} | {inputs[-2]}"]
    )
    layer.compiled.plain = plain
    columns, rows = len(layer.columns), data.draw(st.integers(1, 3))
    kind = data.draw(st.sampled_from(["float32", "float64"]))
    bounded = NUMBERS.filter(lambda x: abs(x) <= 3e38 or abs(x) == INF) if kind == "float32" else NUMBERS
    drawn = data.draw(
        arrays.arrays(
            kind,
            (rows, columns),
            elements=bounded.map(lambda x: float(torch.tensor(x, dtype=getattr(torch, kind)))),
        )
    )
    logits = torch.tensor(drawn, requires_grad=True)
    layer.zero_grad()
    out = layer(logits)
    target = torch.tensor(
        data.draw(
            st.lists(st.lists(st.integers(-1, 1), min_size=2, max_size=2), min_size=rows, max_size=rows)
        )
    )
    labels = torch.tensor(
        [[data.draw(st.integers(-1, max(1, len(choice) - 1))) for choice in layer.inputs]] * rows
    )
    for value in (out.log_prob(target), out.log_kept, out.log_likelihood(labels)):
        assert not value.isnan().any()
        assert (value <= 0).all()
        torch.where(value.isinf(), 0.0, value).sum().backward()
    assert logits.grad.isfinite().all()
    assert layer.weights.grad.isfinite().all()
    possible = out.log_kept > -INF
    assert (out.marginals.table[possible] >= 0).all()
    assert (out.marginals.table[possible] <= 1).all()
    for world in (*out.best, *out.sample(2, seed=0).flatten(0, 1)):
        assert layer.theory.is_model(dict(zip(layer.atoms, world.tolist(), strict=True)))


_made = {}


HOSTILE = [0.0, INF, -INF, 1e4, -1e4, 1e37, -1e37, 745.0, -745.0, 1e-30, 88.0, 3.0]


def hostile(shape, kind):
    """Return logits that are meant to break sums, some scaled at random."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.tensor(HOSTILE, dtype=kind)
    which = torch.randint(len(numbers), shape, generator=generator)
    return numbers[which] * torch.rand(shape, generator=generator).clamp(min=0.1).to(kind)


@pytest.mark.filterwarnings("ignore:logits contradict")
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_ten_thousand_hostile_rows_have_no_nan(name, kind, heads):
    text, inputs = LAYERS[name]
    layer = LogicLayer(text, inputs=inputs, queries=[inputs[-1]], heads=heads)
    columns = (len(layer.columns),) if heads == 1 else (heads, len(layer.columns))
    logits = hostile((10_000, *columns), kind).requires_grad_()
    mixture = None if heads == 1 else hostile((10_000, heads), kind).requires_grad_()
    out = layer(logits, mixture=mixture)
    target = torch.randint(2, (10_000,), generator=torch.Generator().manual_seed(1))
    for value in (out.log_prob(target), out.log_kept):
        assert not value.isnan().any()
        torch.where(value.isinf(), 0.0, value).sum().backward()
        assert (value.isinf()).any()
        assert (~value.isinf()).any()
    assert logits.grad.isfinite().all()
    assert mixture is None or mixture.grad.isfinite().all()
    assert layer.weights.grad.isfinite().all()


@pytest.mark.filterwarnings("ignore:no world was met")
@pytest.mark.parametrize(
    "rows", [20, pytest.param(10_000, marks=pytest.mark.slow)], ids=["twenty", "ten thousand"]
)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_hostile_rows_have_no_nan_by_phases(name, kind, rows):
    text, inputs = LAYERS[name]
    layer = LogicLayer(text, inputs=inputs, queries=[inputs[-1]], method="phases", samples=64)
    logits = hostile((rows, len(layer.columns)), kind).requires_grad_()
    torch.manual_seed(0)
    out = layer(logits)
    target = torch.randint(2, (rows,), generator=torch.Generator().manual_seed(1))
    for value in (out.log_prob(target), out.log_kept):
        assert not value.isnan().any()
        torch.where(value.isinf(), 0.0, value).sum().backward()
    assert logits.grad.isfinite().all()
    assert layer.weights.grad.isfinite().all()
    for world in out.best[:50]:
        assert layer.theory.is_model(dict(zip(layer.atoms, world.tolist(), strict=True)))
