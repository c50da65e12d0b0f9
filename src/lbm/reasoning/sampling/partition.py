"""log Z where it cannot be summed: estimated by population annealing, with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from lbm.errors import NoAnswer
from lbm.knowledge.formula import Formula
from lbm.reasoning.clock import tick
from lbm.reasoning.components.apart import Split
from lbm.reasoning.engine.groups import groups_of
from lbm.reasoning.engine.lanes import weights_of
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.population import Population, combined, pinned_population, population_of
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.sampling.chains import Bools
from lbm.reasoning.sampling.problems import (
    Known,
    atoms_about,
    logical_network,
    penalty_for,
    truth,
    with_field,
)

POPULATIONS: Final = 8
"""Independent populations: what they differ by is the error."""

BLOCKS: Final = 8
"""Blocks of 64 states in each population."""

PINNED: Final = 3
"""Known worlds at most that populations begin at."""

PINNED_POPULATIONS: Final = 2
"""Populations that begin at each of them, of PINNED_BLOCKS blocks."""

PINNED_BLOCKS: Final = 4
"""Blocks of 64 states in each of these."""

_STUDENT: Final = 1.2  # few populations underestimate what they differ by: Student's t for seven of them
_FEW: Final = 0.01  # a share of models that is next to none


class LogPartition(float):
    """log Z as a number, with how good it is.

    Attributes
    ----------
    error
        Its standard error.
    effective_size
        How many states count as independent, over all populations.
    populations
        How many independent populations it comes from.
    note
        Why it is not exact, if that was asked for.
    """

    error: float
    effective_size: float
    populations: int
    note: str

    def __new__(
        cls, value: float, error: float, effective_size: float, populations: int, note: str = ""
    ) -> LogPartition:
        """Return the number with its error."""
        made = super().__new__(cls, value)
        made.error, made.effective_size, made.populations = error, effective_size, populations
        made.note = note
        return made

    def __reduce__(self) -> tuple[type[LogPartition], tuple[float, float, float, int, str]]:
        return LogPartition, (float(self), self.error, self.effective_size, self.populations, self.note)

    def __repr__(self) -> str:
        return f"{float(self):.6g} ± {self.error:.2g}"


def log_partition(split: Split, temperature: float, rng: np.random.Generator, note: str = "") -> LogPartition:
    """Return an estimate of log Σ exp(score(x)/τ) over the models of a theory that was taken apart.

    Some populations come from random states, others from known worlds: the best one that was met, and
    models with each of the heaviest formulae. Both kinds find the same sum where states move freely. Where
    they do not, a population finds the share of its own surroundings: shares of places that do not meet
    add up, and what may or may not have been counted twice widens the error.
    """
    network, known = logical_network(split, temperature, None, rng)
    penalty = penalty_for(network, known.starts, rng)
    weights, groups, seed = weights_of(network, penalty), groups_of(network), seed_from(rng)
    options: dict[str, Any] = {"seed": seed, "groups": groups, "on_sweeps": tick}
    free = [
        population_of(network, weights, blocks=BLOCKS, lane=LANES * BLOCKS * number, **options)
        for number in range(POPULATIONS)
    ]
    crowds = [_Crowd.of(free)]
    if known.starts.shape[1] and network.atoms:
        crowds += _pinned(split, temperature, known, penalty, options)
    value, error, size = _joined(crowds, known.places, atoms_about(split, None))
    if math.isinf(value):
        raise NoAnswer("no population ended in a model of the hard formulae: log Z was not estimated")
    number = sum(crowd.number for crowd in crowds)
    return LogPartition(value + known.earned, error, size, number, note)


def _pinned(
    split: Split, temperature: float, known: Known, penalty: float, options: dict[str, Any]
) -> list[_Crowd]:
    """Return what populations find that begin at known worlds."""
    found = []
    worlds = known.starts.T[:PINNED]
    for which, world in enumerate(worlds):
        network, weights, field = with_field(split, temperature, penalty, world)
        first = LANES * (POPULATIONS * BLOCKS + which * PINNED_POPULATIONS * PINNED_BLOCKS)
        crowd = [
            pinned_population(
                network,
                weights,
                field,
                world,
                blocks=PINNED_BLOCKS,
                lane=first + LANES * PINNED_BLOCKS * number,
                **{**options, "groups": groups_of(network)},
            )
            for number in range(PINNED_POPULATIONS)
        ]
        found.append(_Crowd.of(crowd))
    return found


class _Crowd(NamedTuple):
    """What populations of one kind say together, and models among their states."""

    log: float
    error: float
    size: float
    number: int
    models: Bools

    @classmethod
    def of(cls, populations: Sequence[Population]) -> _Crowd:
        """Return what populations of one kind say; the error allows for families that were lost."""
        told = combined(populations)
        error = max(_STUDENT * told.log_partition_error, 1 / math.sqrt(told.effective_size))
        models = np.concatenate([each.x[:, each.broken == 0] for each in populations], axis=1) > 0
        return cls(told.log_partition, error, told.effective_size, told.populations, models)


def _joined(
    crowds: Sequence[_Crowd], places: Sequence[Formula], atoms: Sequence[str]
) -> tuple[float, float, float]:
    """Return log Z, its error and the effective size from what all kinds of populations say."""
    some = sorted((crowd for crowd in crowds if crowd.log > -math.inf), key=lambda crowd: -crowd.log)
    if not some:
        return -math.inf, math.nan, 0.0
    shares = [[float(truth(place, atoms, crowd.models).mean()) for place in places] for crowd in some]
    apart: list[int] = [0]  # those whose shares add up
    unsure = 0.0  # of what may have been counted, relative to the greatest
    for number in range(1, len(some)):
        part = math.exp(some[number].log - some[0].log)
        if all(_separate(shares[number], shares[other]) for other in apart):
            apart.append(number)
        elif some[0].log - some[number].log > 3 * math.hypot(some[0].error, some[number].error):
            unsure += part
    total = sum(math.exp(some[number].log - some[0].log) for number in apart)
    weights = [math.exp(some[number].log - some[0].log) / total for number in apart]
    error = math.sqrt(sum((w * some[n].error) ** 2 for w, n in zip(weights, apart, strict=True)))
    more = math.log1p(unsure / total)
    size = sum(crowd.size for crowd in some)
    return some[0].log + math.log(total) + more / 2, math.hypot(error, more / 2), size


def _separate(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether some place holds nearly all models of one kind and nearly none of the other."""
    return any(
        (a > 1 - _FEW and b < _FEW) or (b > 1 - _FEW and a < _FEW) for a, b in zip(one, other, strict=True)
    )
