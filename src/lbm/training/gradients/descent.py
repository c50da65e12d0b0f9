"""Descent: a network and data -> a better network, in small steps that can be stopped and taken up again.

Everything a run depends on is in :class:`Progress` and in its arguments. Random numbers are functions of
(seed, epoch, batch), so that a run taken up at any batch ends bit for bit as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lbm.arrays import Floats, Ints, slices
from lbm.errors import TrainingDiverged
from lbm.training.boltzmann.chains import Chains
from lbm.training.boltzmann.missing import predict_log_probabilities
from lbm.training.boltzmann.network import Network
from lbm.training.data.rows import Rows
from lbm.training.gradients.costs import Cost, batch_cost
from lbm.training.gradients.epochs import Epoch
from lbm.training.gradients.quick import CONFIDENCE_RATE, FIRST, SECOND, Quick, suits

MIN_ROWS: Final = 5
"""Rows that every class needs before some are put aside for validation."""

MIN_JUDGES: Final = 30
"""Rows put aside, below which none are: a handful tells little, and is missed in training."""

TOLERANCE: Final = 1e-4
"""By how much a cost must fall to count as better."""

Array = NDArray[np.floating[Any]]

SHUFFLE, SAMPLE, SPLIT = range(3)
"""What random numbers are for: no two purposes share a stream."""


@dataclass(frozen=True, eq=False, slots=True)
class Data:
    """Rows with a class and a weight each.

    ``kinds`` numbers the classes, shape (rows,); ``weights`` has mean 1 over the rows trained on; ``gaps``
    says whether a value may be missing.
    """

    rows: Rows
    kinds: Ints
    weights: Floats
    gaps: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """How to descend.

    Attributes
    ----------
    learning_rate
        Adam's; confidences move CONFIDENCE_RATE times as fast.
    batch_size
        Rows between two updates.
    max_epochs, max_seconds
        Budgets. A run that the clock ended says after which epoch, and that number of epochs repeats it.
    patience
        Epochs without a better cost, on the validation rows if there are any, before it stops.
    seed
        Of everything random.
    """

    learning_rate: float = 0.01
    batch_size: int = 32
    max_epochs: int = 200
    max_seconds: float | None = None
    patience: int = 20
    seed: int = 0


@dataclass(slots=True)
class Copies:
    """Free parameters of several machines at once by name, and Adam's moments of them.

    The last axis but one of each array numbers the machines: see :mod:`lbm.training.gradients.copies`.
    """

    values: dict[str, Array]
    first: dict[str, Array]
    second: dict[str, Array]


@dataclass(slots=True)
class Progress:
    """Where a run stands; parts that change with every batch are replaced, never written into.

    Attributes
    ----------
    network
        Holds the parameters.
    updates, first, second
        Steps taken so far, and Adam's moments of every parameter by its name.
    epoch, position
        Epochs that are finished, and rows of the present one that are done.
    total
        Σ cost of the batches of the present epoch, weighted by their rows.
    chains
        States of persistent chains.
    copies
        The machines of inner folds, where there are any.
    best, best_cost, stale
        The parameters of the least cost so far, that cost, and how many epochs ago it was.
    history
        The epochs so far.
    seconds
        Time spent, over all the times the run was taken up.
    finished
        Why it ended: ``patience``, ``epochs`` or ``seconds``; None: it has not.
    """

    network: Network
    updates: int = 0
    first: dict[str, Tensor] = field(default_factory=dict)
    second: dict[str, Tensor] = field(default_factory=dict)
    epoch: int = 0
    position: int = 0
    total: float = 0.0
    chains: Chains | None = None
    copies: Copies | None = None
    best: dict[str, Tensor] | None = None
    best_cost: float = float("inf")
    stale: int = 0
    history: list[Epoch] = field(default_factory=list)
    seconds: float = 0.0
    finished: str | None = None


def begin(network: Network) -> Progress:
    """Return the start of a run."""
    zeros = {name: torch.zeros_like(values) for name, values in network.named_parameters()}
    return Progress(network, first=zeros, second={name: values.clone() for name, values in zeros.items()})


@torch.no_grad()
def adam_step(progress: Progress, learning_rate: float) -> None:
    """Move every parameter along its gradient, as Adam does, and forget the gradients.

        m ← β1 m + (1 - β1) g,   v ← β2 v + (1 - β2) g²,   p ← p - η m̂ / (√v̂ + 1e-8)

    Written out, since on small machines torch's own takes longer than everything else together.
    """
    progress.updates += 1
    moved = {name: p for name, p in progress.network.named_parameters() if p.grad is not None}
    names, values = list(moved), [p.data for p in moved.values()]
    slopes = [p.grad for p in moved.values() if p.grad is not None]
    first, second = ([moments[name] for name in names] for moments in (progress.first, progress.second))
    torch._foreach_lerp_(first, slopes, 1 - FIRST)
    torch._foreach_mul_(second, SECOND)
    torch._foreach_addcmul_(second, slopes, slopes, 1 - SECOND)
    spread = torch._foreach_sqrt(second)
    torch._foreach_div_(spread, (1 - SECOND**progress.updates) ** 0.5)
    torch._foreach_add_(spread, 1e-8)
    rate = -learning_rate / (1 - FIRST**progress.updates)
    rates = [rate * CONFIDENCE_RATE if name == "raw_confidence" else rate for name in names]
    torch._foreach_addcdiv_(values, first, spread, rates)
    for p in moved.values():
        p.grad = None


def steps(
    progress: Progress, data: Data, cost: Cost, plan: Plan, *, train: Ints, validation: Ints
) -> Iterator[Progress]:
    """Descend, yielding ``progress`` after every batch: the places where a run can be left and taken up.

    ``train`` and ``validation`` number the rows trained on and those that judge an epoch, none in both.
    """
    clock = monotonic() - progress.seconds
    way = (progress.network, progress.first, progress.second)
    quick = Quick(*way) if suits(progress.network, cost, gaps=data.gaps) else None
    limit = float("inf") if plan.max_seconds is None else plan.max_seconds
    while progress.finished is None:
        if progress.epoch >= plan.max_epochs:
            progress.finished = "epochs"
            return
        order = train[stream(plan.seed, SHUFFLE, progress.epoch).permutation(len(train))]
        while progress.position < len(order):
            indices = order[progress.position : progress.position + plan.batch_size]
            value = _update(progress, data, cost, plan, indices, len(order), quick)
            progress.total += value * len(indices)
            progress.position += len(indices)
            progress.seconds = monotonic() - clock
            if progress.position < len(order):
                yield progress
                if progress.seconds > limit:
                    progress.finished = "seconds"
                    return
        _end_epoch(progress, data, cost, plan, len(order), validation)
        progress.seconds = monotonic() - clock
        if progress.seconds > limit:
            progress.finished = progress.finished or "seconds"
        yield progress


def restore_best(progress: Progress) -> None:
    """Give the network the parameters of its best epoch.

    Of copies, those of the free units; where no epoch was better than none these have nothing to say.
    """
    if progress.copies is not None:
        with torch.no_grad():
            if progress.best is None:
                progress.network.label_weights.zero_()
                return
            for name, better in progress.best.items():
                mine = progress.network.get_parameter(name)
                mine.data.copy_(mine.data + better if name == "label_bias" else better)
        return
    if progress.best is not None:
        with torch.no_grad():
            for name, own in progress.network.named_parameters():
                own.copy_(progress.best[name])


def _update(
    progress: Progress, data: Data, cost: Cost, plan: Plan, indices: Ints, rows: int, quick: Quick | None
) -> float:
    """Take one step along the gradient of one batch; return its cost."""
    network = progress.network
    x, kinds, weights = data.rows.batch(indices), data.kinds[indices], data.weights[indices]
    if quick is not None:
        progress.updates += 1
        found = quick.step(
            cost, x.numpy(), kinds, weights, rows=rows, rate=plan.learning_rate, number=progress.updates
        )
        return _finite(found, progress)
    device = network.weights.device
    generator = torch.Generator(device=device)
    if cost.generative or data.gaps:
        generator.manual_seed(stream_key(plan.seed, SAMPLE, progress.epoch, progress.position))
    value, progress.chains = batch_cost(
        network,
        cost,
        x,
        torch.as_tensor(kinds, device=device),
        torch.as_tensor(weights, dtype=x.dtype, device=device),
        generator=generator,
        chains=progress.chains,
        gaps=data.gaps,
        rows=rows,
    )
    value.backward()  # type: ignore[no-untyped-call]
    adam_step(progress, plan.learning_rate)
    return _finite(value.item(), progress)


def _finite(cost: float, progress: Progress) -> float:
    if not np.isfinite(cost):
        raise TrainingDiverged(progress.epoch + 1, cost)
    return cost


def _end_epoch(progress: Progress, data: Data, cost: Cost, plan: Plan, rows: int, validation: Ints) -> None:
    """Judge the epoch, keep its parameters if they are the best, and decide whether to go on."""
    mean = progress.total / max(rows, 1)
    judged, accuracy = (
        judge(progress.network, data, validation, seed=plan.seed) if len(validation) else (None, None)
    )
    progress.epoch += 1
    progress.position, progress.total = 0, 0.0
    progress.history.append(Epoch(progress.epoch, mean, judged, accuracy, progress.seconds))
    if judged is None and cost.generative:
        return  # a difference of free energies does not tell a better epoch from a worse one
    value = mean if judged is None else judged
    progress.stale += 1
    if value < progress.best_cost - TOLERANCE:
        progress.stale = 0
    if value < progress.best_cost:
        progress.best_cost = value
        progress.best = {name: p.detach().clone() for name, p in progress.network.named_parameters()}
    if progress.stale >= plan.patience:
        progress.finished = "patience"


def judge(
    network: Network, data: Data, rows: Ints, *, seed: int = 0, size: int = 4096
) -> tuple[float, float]:
    """Return the weighted mean of -log p(k | x) over these rows, and their weighted accuracy."""
    total = right = weight = 0.0
    for part in (rows[places] for places in slices(len(rows), size)):
        found = predict_log_probabilities(network, data.rows.batch(part), seed=seed)
        logs, kinds, weights = found.cpu().numpy(), data.kinds[part], data.weights[part]
        total -= float(weights @ logs[np.arange(len(part)), kinds])
        right += float(weights @ (logs.argmax(axis=1) == kinds))
        weight += float(weights.sum())
    return total / weight, right / weight


def split(kinds: Ints, fraction: float, seed: int) -> tuple[Ints, Ints]:
    """Return numbers of rows to train on and to validate with, stratified by class.

    All are trained on where ``fraction`` is 0, where some class has fewer than MIN_ROWS rows, or where fewer
    than MIN_JUDGES would validate.
    """
    rows = np.arange(len(kinds), dtype=np.int64)
    sizes = np.bincount(kinds)
    if sizes[sizes > 0].min(initial=len(rows)) < MIN_ROWS or fraction * len(rows) < MIN_JUDGES:
        return rows, rows[:0]
    random = stream(seed, SPLIT)
    aside = np.zeros(len(kinds), dtype=bool)
    for kind in np.flatnonzero(sizes):
        mine = random.permutation(rows[kinds == kind])
        aside[mine[: max(1, round(fraction * len(mine)))]] = True
    return rows[~aside], rows[aside]


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """Return the random numbers of one purpose; no two purposes share any."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def stream_key(seed: int, *purpose: int) -> int:
    """Return a key for torch's random numbers of one purpose."""
    words = np.random.SeedSequence(seed, spawn_key=purpose).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


# --- progress as plain data ----------------------------------------------------------------------


COPIED: Final = ("values", "first", "second")
"""What is kept of copies."""

_COUNTS: Final = ("updates", "epoch", "position", "total", "stale", "seconds", "finished")


def to_state(progress: Progress) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a run as named tensors and a JSON-able dictionary: all that :func:`from_state` needs."""
    tensors = {f"parameter.{name}": p.detach().clone() for name, p in progress.network.named_parameters()}
    moments = {"first": progress.first, "second": progress.second, "best": progress.best or {}}
    for kind, named in moments.items():
        tensors |= {f"{kind}.{name}": values.clone() for name, values in named.items()}
    if progress.chains is not None:
        tensors["chains.x"], tensors["chains.kinds"] = progress.chains.x, progress.chains.kinds
    if progress.copies is not None:
        for kind in COPIED:
            for name, array in getattr(progress.copies, kind).items():
                tensors[f"copies.{kind}.{name}"] = torch.from_numpy(array.copy())
    facts: dict[str, Any] = {name: getattr(progress, name) for name in _COUNTS}
    facts["best_cost"] = progress.best_cost if np.isfinite(progress.best_cost) else None
    facts["history"] = [asdict(epoch) for epoch in progress.history]
    return tensors, facts


def from_state(network: Network, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Progress:
    """Return the run that :func:`to_state` described; ``network`` has its shape and takes its parameters."""
    named: dict[str, dict[str, Tensor]] = {"first": {}, "second": {}, "best": {}}
    with torch.no_grad():
        for name, values in network.named_parameters():
            values.copy_(tensors[f"parameter.{name}"])
            for kind, found in named.items():
                if f"{kind}.{name}" in tensors:
                    found[name] = tensors[f"{kind}.{name}"].clone()
    progress = Progress(network, first=named["first"], second=named["second"], best=named["best"] or None)
    if "chains.x" in tensors:
        progress.chains = Chains(tensors["chains.x"].clone(), tensors["chains.kinds"].clone())
    if any(name.startswith("copies.") for name in tensors):
        parts: dict[str, dict[str, Array]] = {kind: {} for kind in COPIED}
        for name, tensor in tensors.items():
            kind, _, rest = name.removeprefix("copies.").partition(".")
            if name.startswith("copies."):
                parts[kind][rest] = tensor.numpy().copy()
        progress.copies = Copies(**parts)
    for name in _COUNTS:
        setattr(progress, name, facts[name])
    progress.best_cost = float("inf") if facts["best_cost"] is None else float(facts["best_cost"])
    progress.history = [Epoch(**epoch) for epoch in facts["history"]]
    return progress
