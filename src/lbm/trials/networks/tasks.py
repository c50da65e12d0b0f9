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
FEW: Final = "few labels"
PATHS: Final = "grid paths"
SUSHI: Final = "sushi"
TREES: Final = "hierarchies"
CONCEPTS: Final = "digits behind sums"
BOARDS: Final = "visual Sudoku"
ROADS: Final = "requirements"

_SIZES: Final = {1: 130.0, 2: 130.0, 4: 150.0, 15: 200.0}
_SMALL_SIZES: Final = {1: 6.0, 2: 6.0, 4: 9.0}
_SETS: Final = {"cellcycle": 60.0, "Diatoms": 60.0, "Enron": 20.0, "ImCLEF07A": 120.0, "ImCLEF07D": 100.0}
_FLIPPED: Final = (0.02, 0.05)

TASKS: Final = (
    *(
        NetworkTask(f"MNIST, N = {digits}", ADDITION, "sums", cost, {"digits": digits, "small": False})
        for digits, cost in _SIZES.items()
    ),
    NetworkTask("MNIST, 100 labels", FEW, "few_labels", 120.0, {"small": False}),
    NetworkTask("4 x 4 grid", PATHS, "paths", 15.0),
    NetworkTask("four of ten kinds", SUSHI, "rankings", 15.0),
    *(NetworkTask(name, TREES, "trees", cost, {"name": name}) for name, cost in _SETS.items()),
    NetworkTask("MNIST-Half", CONCEPTS, "concepts", 30.0, {"name": "Half", "small": False}),
    NetworkTask("MNIST-EvenOdd", CONCEPTS, "concepts", 40.0, {"name": "EvenOdd", "small": False}),
    NetworkTask("MNIST, 4 x 4", BOARDS, "boards", 40.0, {"small": False}),
    *(
        NetworkTask(f"ROAD-R, {share:.0%} flipped", ROADS, "requirements", 8.0, {"flipped": share})
        for share in _FLIPPED
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
    NetworkTask("8 x 8 digits, 40 labels", FEW, "few_labels", 2.0, {"small": True}, quick=True, seeds=1),
    NetworkTask(
        "8 x 8 digits, Half", CONCEPTS, "concepts", 5.0, {"name": "Half", "small": True}, quick=True, seeds=1
    ),
    NetworkTask("8 x 8 digits, 4 x 4", BOARDS, "boards", 4.0, {"small": True}, quick=True, seeds=1),
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
