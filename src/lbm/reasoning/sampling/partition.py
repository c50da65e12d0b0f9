"""log Z where it cannot be summed: estimated by population annealing, with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import count, islice, product
from typing import Final, NamedTuple

import numpy as np

from lbm.arrays import Bools
from lbm.errors import NoAnswer
from lbm.knowledge.formula import Formula, conjunction
from lbm.reasoning.budget import Budget
from lbm.reasoning.engine.groups import groups_of
from lbm.reasoning.engine.network import LANES
from lbm.reasoning.engine.population import Population, log_mean, pinned_population, population_of
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.exact.apart import Split, exponent
from lbm.reasoning.proof import find_model
from lbm.reasoning.sampling.machines import truth
from lbm.reasoning.sampling.targets import LogicalNetwork, hard_theory, logical_network, with_field

POPULATIONS: Final = 8
"""Independent populations: what they differ by is the error."""

BLOCKS: Final = 8
"""Blocks of 64 states in each population."""

PINNED: Final = 4
"""Known worlds at most that populations begin at."""

PINNED_POPULATIONS: Final = 3
"""Populations that begin at each of them, of PINNED_BLOCKS blocks; the median one counts."""

PINNED_BLOCKS: Final = 3
"""Blocks of 64 states in each of these."""

MAX_FIRM: Final = 4
"""Places that populations neither leave nor enter, whose combinations are weighed one by one."""

_SECONDS: Final = 5.0  # for a solver to find a world in one of them
_STUDENT: Final = 1.2  # few populations underestimate what they differ by: Student's t for seven of them
_MEDIAN: Final = 1.5  # how much more the median of a few populations errs than their mean, and a bit
_FEW: Final = 0.01  # a share of models that is next to none
_OVERLAP: Final = 0.15  # by which two kinds of populations may share a place and still be said to be apart


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


def log_partition(
    split: Split, temperature: float, rng: np.random.Generator, budget: Budget, note: str = ""
) -> LogPartition:
    """Return an estimate of log Σ exp(score(x)/τ) over the models of a theory that was taken apart.

    Some populations come from random states, others from known worlds: the best one that was met, and
    models with each of the heaviest formulae. Both kinds find the same sum where states move freely. Where
    they do not, a population finds the share of its own surroundings: shares of places that do not meet
    add up, and what may or may not have been counted twice widens the error. Places that some populations
    never leave and others never enter are weighed in every combination, or there is no answer.
    """
    found = logical_network(split, temperature, None, rng, budget)
    network, seed = found.network, seed_from(rng)
    begin = partial(population_of, network, found.weights, seed=seed, blocks=BLOCKS)
    begin = partial(begin, groups=groups_of(network), on_sweeps=budget.tick)
    free = [begin(lane=LANES * BLOCKS * number) for number in range(POPULATIONS)]
    crowds = [_Kind.of(free, found.places, found.split.atoms)]
    pins = _Pins(found, seed, budget)
    if network.atoms:
        crowds += [pins.begin(world) for world in found.starts.T[:PINNED]]
        crowds += _others(crowds, pins)
    value, error, size = _joined(crowds)
    if math.isinf(value):
        raise NoAnswer("no population ended in a model of the hard formulae: log Z was not estimated")
    number = sum(crowd.number for crowd in crowds)
    settled = exponent(split.score, split.scale, temperature)  # what soft formulae give in every world
    return LogPartition(value + found.earned + settled, error, size, number, note)


class _Pins:
    """Populations that begin at given worlds, each with random numbers of its own."""

    def __init__(self, known: LogicalNetwork, seed: int, budget: Budget) -> None:
        self.known, self.seed, self.budget = known, seed, budget
        self.lanes = count(LANES * BLOCKS * POPULATIONS, LANES * PINNED_BLOCKS)

    def begin(self, world: Bools) -> _Kind:
        """Return what populations say that begin at a world."""
        network, weights, field = with_field(self.known, world, self.budget)
        begin = partial(pinned_population, network, weights, field, world, seed=self.seed)
        begin = partial(begin, blocks=PINNED_BLOCKS, groups=groups_of(network), on_sweeps=self.budget.tick)
        found = [begin(lane=lane) for lane in islice(self.lanes, PINNED_POPULATIONS)]
        return _Kind.of_pinned(found, self.known.places, self.known.split.atoms)


def _others(crowds: Sequence[_Kind], pins: _Pins) -> list[_Kind]:
    """Return what populations find in combinations of places that none has visited so far.

    Only places count that some populations never leave and others never enter: each combination of these
    that has a model may have a share of its own.
    """
    places = pins.known.places
    firm = [
        k
        for k in range(len(places))
        if any(crowd.shares[k] > 0.5 for crowd in crowds) and any(crowd.shares[k] < _FEW for crowd in crowds)
    ]
    if len(firm) > MAX_FIRM:
        raise NoAnswer(
            f"populations never leave, or never enter, {len(firm)} places whose combinations are too many to "
            f"be weighed one by one (limit MAX_FIRM, {MAX_FIRM}): log Z was not estimated"
        )
    theory = hard_theory(pins.known.split)
    found: list[_Kind] = []
    for inside in product([False, True], repeat=len(firm)):
        sides = list(zip(firm, inside, strict=True))
        if any(all(_meets(crowd.shares[k], side) for k, side in sides) for crowd in (*crowds, *found)):
            continue
        asked = [places[k] if side else ~places[k] for k, side in sides]
        world = find_model(theory, given=conjunction(asked), budget=pins.budget.at_most(_SECONDS))
        if world is not None:
            found.append(pins.begin(np.array(list(world.values()), bool)))
    return found


def _meets(share: float, side: bool) -> bool:
    """Return whether most models of a population are on this side of a place."""
    return (share if side else 1 - share) >= 0.5


class _Kind(NamedTuple):
    """What populations of one kind say together, and the share of their models in each place."""

    log: float
    error: float
    size: float
    number: int
    shares: list[float]

    @classmethod
    def of(cls, populations: Sequence[Population], places: Sequence[Formula], atoms: Sequence[str]) -> _Kind:
        """Return what populations from random states say; the error allows for families that were lost."""
        log, error = log_mean([each.log_partition for each in populations])
        size = sum(each.effective_size for each in populations)
        error = max(_STUDENT * error, 1 / math.sqrt(size))
        shares = np.mean([_shares(each, places, atoms) for each in populations], axis=0)
        return cls(log, error, size, len(populations), shares.tolist())

    @classmethod
    def of_pinned(
        cls, populations: Sequence[Population], places: Sequence[Formula], atoms: Sequence[str]
    ) -> _Kind:
        """Return what the median of populations says that began at one world.

        A population that leaves a well may be far above the truth, seldom enough to be right on average.
        """
        ordered = sorted(populations, key=lambda each: each.log_partition)
        middle = ordered[len(ordered) // 2]
        size = sum(each.effective_size for each in populations)
        shares = _shares(middle, places, atoms)
        return cls(middle.log_partition, _MEDIAN / math.sqrt(size), size, len(populations), shares)


def _shares(population: Population, places: Sequence[Formula], atoms: Sequence[str]) -> list[float]:
    """Return the share of a population's models in each place."""
    models = population.x[:, population.broken == 0] > 0
    return [float(truth(place, atoms, models).mean()) if models.shape[1] else 0.5 for place in places]


def _joined(crowds: Sequence[_Kind]) -> tuple[float, float, float]:
    """Return log Z, its error and the effective size from what all kinds of populations say."""
    some = sorted((crowd for crowd in crowds if crowd.log > -math.inf), key=lambda crowd: crowd.error)
    if not some:
        return -math.inf, math.nan, 0.0
    apart: list[_Kind] = []  # those whose shares add up
    unsure: list[float] = []  # logs of what may have been counted twice, or not
    for crowd in some:
        same = next((k for k, other in enumerate(apart) if not _separate(crowd.shares, other.shares)), None)
        if same is None:
            apart.append(crowd)
            continue
        other = apart[same]
        if abs(crowd.log - other.log) <= 3 * math.hypot(crowd.error, other.error):
            apart[same] = _averaged(other, crowd)
        else:
            unsure.append(min(crowd.log, other.log))
            if crowd.log > other.log:
                apart[same] = crowd
    top = max(crowd.log for crowd in apart)
    parts = [math.exp(crowd.log - top) for crowd in apart]
    total = math.fsum(parts)
    error = math.sqrt(sum((w / total * crowd.error) ** 2 for w, crowd in zip(parts, apart, strict=True)))
    more = math.log1p(math.fsum(math.exp(log - top) for log in unsure) / total)
    value = top + math.log(total) + more / 2
    return value, math.hypot(error, more / 2), sum(crowd.size for crowd in some)


def _averaged(one: _Kind, other: _Kind) -> _Kind:
    """Return what two kinds of populations say that agree, each counted by its precision."""
    precisions = one.error**-2, other.error**-2
    log = (one.log * precisions[0] + other.log * precisions[1]) / sum(precisions)
    return one._replace(log=log, error=sum(precisions) ** -0.5)


def _separate(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether some place holds nearly all models of one kind and nearly none of the other."""
    return any(abs(a - b) > 1 - _OVERLAP for a, b in zip(one, other, strict=True))
