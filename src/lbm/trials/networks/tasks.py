"""What networks with a theory on top are tried on, as plain data: nothing here waits for torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final

from lbm.errors import MissingExtra

if TYPE_CHECKING:
    from lbm.trials.networks.scores import Score


@dataclass(frozen=True, slots=True)
class NetworkTask:
    """Work for one network or a few that are compared: trained on one seed, and judged on unseen examples.

    Attributes
    ----------
    name, family
        What rows call it, and the table it is shown in.
    module, arguments
        Where its ``measure`` is, and what that is given beside the seed.
    recipe
        Raised when the task is measured otherwise, so that rows of another recipe are not mixed in.
    cost
        Seconds on one core, roughly.
    quick
        Whether it is part of quick runs, which need no data sets, or of full ones.
    seeds
        How many.
    """

    name: str
    family: str
    module: str
    cost: float
    arguments: Mapping[str, object] = field(default_factory=dict)
    recipe: int = 1
    quick: bool = False
    seeds: int = 5


ADDITION: Final = "addition"

_SIZES: Final = {1: 80.0, 2: 90.0, 4: 130.0, 15: 200.0}
_SMALL_SIZES: Final = {1: 6.0, 2: 6.0, 4: 9.0}

TASKS: Final = (
    *(
        NetworkTask(f"MNIST, N = {digits}", ADDITION, "sums", cost, {"digits": digits, "small": False})
        for digits, cost in _SIZES.items()
    ),
    *(
        NetworkTask(
            f"8 x 8 digits, N = {digits}",
            ADDITION,
            "sums",
            cost,
            {"digits": digits, "small": True},
            quick=True,
            seeds=1,
        )
        for digits, cost in _SMALL_SIZES.items()
    ),
)
"""All of them, in the order of the report."""


def task_named(name: str) -> NetworkTask:
    """Return a task by its name."""
    return next(task for task in TASKS if task.name == name)


def scores_of(task: NetworkTask, seed: int) -> list[Score]:
    """Return what a task's networks reach with one seed."""
    try:
        module = import_module(f"lbm.trials.networks.{task.module}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "sklearn"):
            raise
        raise MissingExtra("train", "lbm reproduce neural", error.name) from error
    found: list[Score] = module.measure(seed=seed, **task.arguments)
    return found
