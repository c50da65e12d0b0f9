"""Small networks, and how they are trained: AdamW, a rate that rises and falls once, averaged weights.

Everything depends on the seed alone, not on how many cores there are: torch is given one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def parted(outputs: Tensor, heads: int) -> tuple[Tensor, Tensor | None]:
    """Return what a layer takes of outputs: logits of heads, and those of their mixture, the last columns.

    >>> [tuple(each.shape) for each in parted(torch.zeros(5, 14), 2)]
    [(5, 2, 6), (5, 2)]
    """
    if heads == 1:
        return outputs, None
    return outputs[:, :-heads].reshape(len(outputs), heads, -1), outputs[:, -heads:]


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """Have torch use one thread and draw from this seed inside, and as before outside."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def lenet(classes: int = 10, *, dropout: float = 0.0) -> nn.Sequential:
    """Return LeNet as papers on this subject have it: 6 and 16 convolutions, then 120, 84 and 10 units.

    ``dropout``: the share of units left out in training before each layer of the last three.
    """
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(256, 120),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(84, classes),
    )


def dense(inputs: int, hidden: int, outputs: int, *, layers: int = 1, dropout: float = 0.0) -> nn.Sequential:
    """Return a network of layers of units, each connected with all of the layer before."""
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(dropout)]
        inputs = hidden
    return nn.Sequential(*parts, nn.Linear(inputs, outputs))


def fit(
    network: nn.Module,
    loss: Callable[[Tensor], Tensor],
    rows: int,
    *,
    epochs: int,
    batch: int,
    rate: float,
    decay: float = 0.01,
    average: float = 0.0,
    warm: float = 0.3,
    after: Callable[[int], object] | None = None,
) -> None:
    """Train a network, and give it the averaged weights at the end.

    Parameters
    ----------
    loss
        The loss on rows with these numbers, shape (batch,).
    rate, warm
        The largest rate, reached after this share of the steps; from there it falls to nearly nothing.
    decay
        How much weights shrink (weight decay).
    average
        The weights at the end are an average over steps, each counting this much less than the next
        (exponential moving average); 0: those of the last step.
    after
        Called with the number of each epoch when it is done.
    """
    weights = [each for each in network.parameters() if each.requires_grad]
    steps = epochs * -(-rows // batch)
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=warm)
    mean = [each.detach().clone() for each in weights]
    done = 0
    network.train()
    for epoch in range(epochs):
        for some in torch.split(torch.randperm(rows), batch):
            value = loss(some)
            optimiser.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            done += 1
            if average:
                share = max(1 - average, 1 / done)  # at first all steps count alike
                torch._foreach_lerp_(mean, [each.detach() for each in weights], share)
        if after is not None:
            after(epoch)
    if average:
        with torch.no_grad():
            for each, value in zip(weights, mean, strict=True):
                each.copy_(value)
    network.eval()
