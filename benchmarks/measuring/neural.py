"""One training step of addition of two digits: the same network, images and sums, by us and by peers.

A side is a step without arguments that does the whole of it: images through the network, the loss of the
sums, its gradient, an Adam step. It returns the loss: the first ones of exact sides must agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

DIGITS = 10


def lenet() -> Any:
    """Return the network that publications on addition share: 6 and 16 convolutions, 120, 84 and 10 units."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, DIGITS)),
    )


def batch(rows: int) -> tuple[Any, Any, Any]:
    """Return images of both digits, shape (rows, 1, 28, 28), and sums: numbers at random do for times."""
    import torch

    generator = torch.Generator().manual_seed(1)
    x, y = torch.rand(2, rows, 1, 28, 28, generator=generator)
    return x, y, torch.randint(2 * DIGITS - 1, (rows,), generator=generator)


def rules() -> str:
    """Return addition of two digits as text."""
    sizes = (("x", DIGITS), ("y", DIGITS), ("sum", 2 * DIGITS - 1))
    lines = [f"exactly(1, {', '.join(f'{name}({i})' for i in range(size))})" for name, size in sizes]
    lines += [f"x({i}) & y({j}) -> sum({i + j})" for i in range(DIGITS) for j in range(DIGITS)]
    return "\n".join(lines)


def _trained(loss: Callable[[Any], Any]) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return a whole step, and one without the network: from its logits, which are kept."""
    import torch

    network = lenet()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step() -> float:
        optimiser.zero_grad()
        value = loss(network)
        value.backward()
        optimiser.step()
        return float(value.detach())

    kept = [network(images).detach().requires_grad_() for images in batch(32)[:2]]

    def layer() -> float:
        waiting = iter(kept)
        for each in kept:
            each.grad = None
        value = loss(lambda _: next(waiting))
        value.backward()
        return float(value.detach())

    return step, layer


def ours(rows: int) -> Any:
    """Return our side."""
    import lbm

    layer = lbm.nn.LogicLayer(rules(), inputs=["x(*)", "y(*)"], queries=["sum(*)"])
    x, y, sums = batch(rows)
    return _trained(lambda network: -layer(network(x), network(y)).log_prob(sums).mean())


def klay(rows: int, *, compiled: bool) -> Any:
    """Return KLay's side: a circuit with a root for each sum."""
    import torch
    from klay import Circuit  # type: ignore[import-untyped,unused-ignore]

    circuit = Circuit()
    first, second = ([circuit.literal_node(start + i + 1) for i in range(DIGITS)] for start in (0, DIGITS))
    for total in range(2 * DIGITS - 1):
        pairs = [(i, total - i) for i in range(DIGITS) if 0 <= total - i < DIGITS]
        circuit.set_root(circuit.or_node([circuit.and_node([first[i], second[j]]) for i, j in pairs]))
    module = circuit.to_torch_module(semiring="log", compile=compiled)
    x, y, sums = batch(rows)
    no = torch.zeros(rows, 2 * DIGITS)

    def loss(network: Any) -> Any:
        logs = torch.cat([torch.log_softmax(network(images), dim=1) for images in (x, y)], dim=1)
        return -module(logs, no).gather(1, sums[:, None]).mean()

    return _trained(loss)


def pylon(rows: int) -> Any:
    """Return pylon's side: the semantic loss of "x + y is the sum", over all pairs of digits."""
    from pylon.constraint import constraint  # type: ignore[import-not-found,unused-ignore]

    x, y, sums = batch(rows)
    said = constraint(lambda one, other: one[:, 0] + other[:, 0] == sums)

    def loss(network: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it copies tensors in a way that torch advises against
            return said(network(x)[:, None], network(y)[:, None]) / rows

    return _trained(loss)


def ltn(rows: int) -> Any:
    """Return LTNtorch's side, as its own example of addition has it (p = 2)."""
    import ltn as package  # type: ignore[import-not-found,unused-ignore]
    import torch
    from torch import nn

    class Digit(nn.Module):
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: Any, digits: Any) -> Any:
            shares = torch.softmax(self.network(images), dim=1)
            return shares.gather(1, digits.long().reshape(-1, 1))[:, 0]

    both = package.Connective(package.fuzzy_ops.AndProd())
    some = package.Quantifier(package.fuzzy_ops.AggregPMean(p=2), quantifier="e")
    each = package.Quantifier(package.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
    x, y, sums = batch(rows)
    network = lenet()
    digit = package.Predicate(Digit(network))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step() -> float:
        optimiser.zero_grad()
        one, other = package.Variable("x", x), package.Variable("y", y)
        total = package.Variable("n", sums)
        i, j = (package.Variable(name, torch.arange(DIGITS)) for name in ("i", "j"))
        fits: dict[str, Any] = {
            "cond_vars": [i, j, total],
            "cond_fn": lambda a, b, n: a.value + b.value == n.value,
        }
        right = each(
            package.diag(one, other, total), some([i, j], both(digit(one, i), digit(other, j)), **fits)
        )
        loss = 1.0 - right.value
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    return step, None


PROGRAM = """
nn(reader, [X], Y, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) :: digit(X, Y).
addition(X, Y, Z) :- digit(X, A), digit(Y, B), Z is A + B.
"""


def deepproblog(rows: int) -> Any:
    """Return DeepProbLog's side, with its exact engine and its cache of circuits."""
    import torch
    from deepproblog.engines import ExactEngine  # type: ignore[import-not-found,unused-ignore]
    from deepproblog.model import Model  # type: ignore[import-not-found,unused-ignore]
    from deepproblog.network import Network  # type: ignore[import-not-found,unused-ignore]
    from deepproblog.query import Query  # type: ignore[import-not-found,unused-ignore]
    from deepproblog.train import TrainObject  # type: ignore[import-not-found,unused-ignore]
    from problog.logic import Constant, Term  # type: ignore[import-not-found,unused-ignore]

    x, y, sums = batch(rows)
    images = torch.cat([x, y])

    class Images:
        def __getitem__(self, index: Any) -> Any:
            return images[int(index[0])]

    reader = torch.nn.Sequential(*lenet(), torch.nn.Softmax(dim=1))
    optimiser = torch.optim.Adam(reader.parameters(), lr=1e-3)
    network = Network(reader, "reader", batching=True, optimizer=optimiser)
    model = Model(PROGRAM, [network], load=False)
    model.set_engine(ExactEngine(model), cache=True)
    model.add_tensor_source("images", Images())

    def image(i: int) -> Any:
        return Term("tensor", Term("images", Constant(i)))

    queries = [
        Query(
            Term("addition", Term("a"), Term("b"), Constant(int(total))),
            substitution={Term("a"): image(i), Term("b"): image(rows + i)},
        )
        for i, total in enumerate(sums.tolist())
    ]
    train = TrainObject(model)

    def step() -> float:
        model.optimizer.zero_grad()
        found = train.get_loss(queries, model.solver.semiring.cross_entropy)
        model.optimizer.step()
        return float(found)

    return step, None


SIDES: dict[str, Callable[[int], Any]] = {
    "lbm": ours,
    "KLay": lambda rows: klay(rows, compiled=False),
    "KLay compiled": lambda rows: klay(rows, compiled=True),
    "pylon": pylon,
    "LTNtorch": ltn,
    "DeepProbLog": deepproblog,
}
"""By name what makes a side; pylon's is the semantic loss, which is what ours is for a single rule."""

EXACT = ("lbm", "KLay", "KLay compiled", "pylon", "DeepProbLog")
"""Sides whose loss is -log P(sum), so that they must agree."""
