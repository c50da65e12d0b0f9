"""log Z where it cannot be summed: estimated by population annealing, with its error."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from lbm.errors import NoAnswer
from lbm.reasoning.clock import tick
from lbm.reasoning.components.apart import Split
from lbm.reasoning.engine.groups import groups_of
from lbm.reasoning.engine.lanes import weights_of
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.population import combined, population_of
from lbm.reasoning.engine.schedule import tuned_penalty
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.sampling.problems import logical_network, spread

POPULATIONS: Final = 8
"""Independent populations: what they differ by is the error."""

BLOCKS: Final = 8
"""Blocks of 64 states in each population."""


class LogPartition(float):
    """log Z as a number, with how good it is.

    Attributes
    ----------
    error
        Its standard error.
    effective_size
        How many states count as independent, over all populations.
    populations
        How many independent populations it is the mean of.
    """

    error: float
    effective_size: float
    populations: int

    def __new__(cls, value: float, error: float, effective_size: float, populations: int) -> LogPartition:
        """Return the number with its error."""
        made = super().__new__(cls, value)
        made.error, made.effective_size, made.populations = error, effective_size, populations
        return made

    def __reduce__(self) -> tuple[type[LogPartition], tuple[float, float, float, int]]:
        return LogPartition, (float(self), self.error, self.effective_size, self.populations)

    def __repr__(self) -> str:
        return f"{float(self):.6g} ± {self.error:.2g}"


def log_partition(split: Split, temperature: float, rng: np.random.Generator) -> LogPartition:
    """Return an estimate of log Σ exp(score(x)/τ) over the models of a theory that was taken apart."""
    network, starts = logical_network(split, temperature)
    hard = bool(len(network.firm))
    penalty = tuned_penalty(network, spread(starts, rng), seed=seed_from(rng)) if hard else 0.0
    weights, groups, seed = weights_of(network, penalty), groups_of(network), seed_from(rng)
    found = [
        population_of(
            network,
            weights,
            seed=seed,
            blocks=BLOCKS,
            lane=LANES * BLOCKS * number,
            groups=groups,
            on_step=lambda _: tick(),
        )
        for number in range(POPULATIONS)
    ]
    told = combined(found)
    if math.isinf(told.log_partition):
        raise NoAnswer("no population ended in a model of the hard formulae: log Z was not estimated")
    return LogPartition(told.log_partition, told.log_partition_error, told.effective_size, told.populations)
