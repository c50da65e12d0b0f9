"""Exact answers about a machine as it was built: P(x) ∝ exp(-F(x)) over the worlds of its declared atoms.

    F(x) = -(c/τ) a·x - Σ_j log(1 + exp(c s_j(x)/τ)),   s_j(x) = Σ_i w_ij x_i + b_j

Hard formulae are wells like any other here, and definitional atoms are computed from the declared ones.

Atoms and hidden units fall apart into components that share no weight; atoms that the evidence settles
drop out first, and let more fall apart. In each component all states of the smaller layer are looked at
and the other layer is summed out in closed form: each hidden unit gives 1 + exp(c s_j/τ), and given the
hidden units each atom is a coin of its own. Any other evidence, and any query, becomes cases that exclude
one another, the cubes of a strict DNF, each of which settles some atoms; or it is looked up world by world.

Probabilities are accurate to 1e-9 or better. Where weights are so large that floating point has no digits
left for that, the worlds of up to 16 atoms are weighed in exact arithmetic; with more there is no answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy.sparse import coo_array, csc_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import NoAnswer, NoWorlds, TooManyWorlds, WeightError
from lbm.knowledge.formula import Formula, conjunction, holds
from lbm.logic.elimination import Mask
from lbm.machine.rbm import Machine, inverse_temperature
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import Component, fall_apart
from lbm.reasoning.exact.cubes import MAX_CUBES, ByCubes
from lbm.reasoning.exact.rows import check_room, how_many
from lbm.reasoning.exact.whole import check_world, either_way
from lbm.reasoning.landscape.layers import log_sum, shares
from lbm.reasoning.landscape.parts import LIMIT, MachinePart, States
from lbm.reasoning.landscape.precise import ATOMS, QUANTUM, AllWorlds, is_coarse
from lbm.reasoning.problem import check_formula

CASE: Final = 1 << 12
"""Worlds whose weighing takes as long as to set up one case of a formula."""

_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)  # relative error of a log weight, with some room
_DOUBT: Final = 1e-6  # error of a log ratio past which no answer is given
_NEVER: Final = -40.0  # a log ratio that is nothing, whatever the error


@dataclass(frozen=True, slots=True)
class Wells:
    """Exact answers about a machine, each given some evidence.

    ``scale`` is c/τ, which multiplies its energies; ``known`` holds the components solved so far.
    """

    machine: Machine
    scale: float
    budget: Budget
    known: dict[Hashable, MachinePart] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        machine: Machine,
        *,
        confidence: float = 5.0,
        temperature: float = 1.0,
        budget: Budget = NO_LIMIT,
    ) -> Wells:
        """Return the answers at a confidence c and a temperature τ, once all numbers are checked."""
        scale = inverse_temperature(confidence, temperature)
        weights = csc_array(machine.weights, dtype=np.float64)
        if not weights.has_canonical_format or not weights.data.all():
            weights = weights.copy()
            weights.sum_duplicates()
            weights.eliminate_zeros()
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = (weights.data, machine.hidden_bias, machine.visible_bias)
            largest = scale * sum(float(np.abs(some).sum()) for some in numbers)
        if not largest < np.inf:
            raise WeightError(
                "expected finite weights and biases, also when multiplied by confidence/temperature = "
                f"{scale:g}, got {largest} as the sum of their sizes: lower them, or lower the confidence"
            )
        return cls(replace(machine, weights=weights), scale, budget)

    def log_partition(self, given: Formula | None = None) -> float:
        """Return log Z, Z = Σ exp(-F(x)) over the worlds that keep the evidence.

        >>> import lbm
        >>> machine = lbm.translate(lbm.parse("a"))           # one hidden unit, s = a - 0.5
        >>> Wells.of(machine).log_partition() == math.log((1 + math.exp(-2.5)) + (1 + math.exp(2.5)))
        True
        """
        return self.possible(given).log

    def log_probability(self, world: Mapping[str, Any], given: Formula | None = None) -> float:
        """Return log P(world | evidence) of a world over the declared atoms.

        It is minus infinity if the world breaks the evidence.
        """
        machine = self.machine
        check_world(world, machine.declared, "machine")
        values = {name: bool(world[name]) for name in machine.declared}
        worlds = self._precisely(given)
        if worlds is not None:
            kept = worlds.true(given)
            number = int("0" + "".join(str(int(value)) for value in values.values()), 2)
            if not kept[number]:
                return -math.inf
            top = max(worlds.logs[kept])
            return min(
                float((worlds.logs[number] - top) * QUANTUM) - math.log(worlds.weights(kept).sum()), 0.0
            )
        whole = self.possible(given)
        if given is not None and not holds(given, values):
            return -math.inf
        row = np.array([values[name] for name in machine.declared], dtype=np.float64)
        depth = -float(machine.free_energy(row, confidence=self.scale))
        return min(math.fsum([depth, *(-log for log in whole.logs())]), 0.0)

    def probability(self, query: Formula, given: Formula | None = None) -> float:
        """Return P(query | evidence): Σ exp(-F(x)) over the worlds that keep both, over that of the evidence.

        Components that neither of them mentions are never looked at, and so may be of any size.

        >>> import lbm
        >>> machine = lbm.translate(lbm.parse("a -> b"))
        >>> round(Wells.of(machine).probability(lbm.parse("b"), lbm.parse("a")), 3)
        0.924
        """
        self.check(query, "query")
        worlds = self._precisely(given)
        if worlds is not None:
            kept = worlds.true(given)
            weights = worlds.weights(kept)
            chosen = worlds.true(query)
            above, beside = math.fsum(weights[chosen]), math.fsum(weights[~chosen])
            return above / (above + beside)
        below = self.possible(given)

        def share(formula: Formula) -> float:
            above = self.ask(formula if given is None else given & formula)
            return 0.0 if above is None else math.exp(min(above.log_ratio(below), 0.0))

        return either_way(query, share)

    def marginals(self, given: Formula | None = None) -> dict[str, float]:
        """Return P(atom | evidence) of every declared atom, in the machine's order.

        >>> import lbm
        >>> machine = lbm.translate(lbm.Theory(["a -> b"], atoms=["a", "b", "c"]))
        >>> {name: round(chance, 3) for name, chance in Wells.of(machine, confidence=50).marginals().items()}
        {'a': 0.333, 'b': 0.667, 'c': 0.5}
        """
        worlds = self._precisely(given)
        if worlds is not None:
            weights = worlds.weights(worlds.true(given))
            chances = (weights @ worlds.array) / weights.sum()
            return dict(zip(self.machine.declared, np.minimum(chances, 1.0).tolist(), strict=True))
        whole = self.ask(given)
        found = None if whole is None else whole.marginals()
        if found is None:
            raise NoWorlds(given)
        return dict(zip(self.machine.declared, found.tolist(), strict=True))

    def draw(self, n: int, rng: np.random.Generator, given: Formula | None = None) -> Bools:
        """Return ``n`` independent draws from P(x | evidence), shape (n, declared atoms)."""
        if n < 0:
            raise ValueError(f"n is a number of draws from 0 up, got {n}")
        check_room(n, len(self.machine.declared))
        return self.possible(given).draw(n, rng)

    def check(self, formula: Formula, role: str) -> None:
        """Raise unless ``formula`` is one, over declared atoms; ``role`` says what it was meant to be."""
        check_formula(formula, role, dict.fromkeys(self.machine.declared), "machine")

    def ask(self, evidence: Formula | None) -> Whole | None:
        """Return the machine with evidence, taken apart; None: the evidence contradicts itself."""
        if evidence is not None:
            self.check(evidence, "evidence")
        split = fall_apart(self.machine.declared, [] if evidence is None else [evidence], (), self.budget)
        if split is None:
            return None
        place = {name: i for i, name in enumerate(self.machine.declared)}
        fixed = {place[name]: value for name, value in split.fixed.items()}
        links = [([place[name] for name in part.atoms], part.hard) for part in split.components]
        return Whole(self, fixed, links)

    def possible(self, evidence: Formula | None) -> Whole:
        """Return the machine with evidence, taken apart; raise NoWorlds if nothing keeps the evidence."""
        whole = self.ask(evidence)
        if whole is None or any(part.log == -math.inf for part in whole.parts if part.constrained):
            raise NoWorlds(evidence)
        return whole

    def _precisely(self, given: Formula | None) -> AllWorlds | None:
        """Return all worlds in exact arithmetic, where numbers need that and atoms are few."""
        if len(self.machine.declared) > ATOMS or not is_coarse(self.machine, self.scale):
            return None
        if given is not None:
            self.check(given, "evidence")
        worlds = AllWorlds(self.machine, self.scale, self.budget)
        if not worlds.true(given).any():
            raise NoWorlds(given)
        return worlds


class Whole:
    """A machine some of whose atoms are settled: what they give, atoms by themselves, and components.

    ``constants`` add up to the logarithm of what needs no sum; ``places[i]`` says which of the declared atoms
    those of ``parts[i]`` are. A link is a list of atoms that formulae tie together, and the formulae.
    """

    def __init__(
        self,
        about: Wells,
        fixed: Mapping[int, bool],
        links: Sequence[tuple[list[int], tuple[Formula, ...]]] = (),
    ) -> None:
        machine, scale = about.machine, about.scale
        atoms, units, self.size = len(machine.atoms), machine.hidden, len(machine.declared)
        self.fixed = fixed
        values = np.full(atoms, -1, dtype=np.int8)
        values[list(fixed)] = list(fixed.values())
        row, data = machine.weights.indices.astype(np.int64), machine.weights.data
        column = np.repeat(np.arange(units), np.diff(machine.weights.indptr))
        true, free = values[row] == 1, values[row] < 0
        bias = machine.hidden_bias + np.bincount(column[true], data[true], minlength=units)
        row, column, data = row[free], column[free], data[free]

        used, open_ = np.zeros(atoms, dtype=bool), np.zeros(units, dtype=bool)
        used[row], open_[column] = True, True
        for tied, _ in links:
            used[tied] = True
        self.idle = np.flatnonzero(~used[: self.size] & (values[: self.size] < 0))
        self.chances = expit(scale * machine.visible_bias[self.idle])
        alone = np.concatenate([bias[~open_], machine.visible_bias[self.idle]])
        settled = scale * machine.visible_bias[values == 1]
        self.constants = [*settled.tolist(), *np.logaddexp(0.0, scale * alone).tolist()]

        label = _components(atoms, units, row, column, [tied for tied, _ in links])
        atom, unit = _Sorted(np.flatnonzero(used), label), _Sorted(np.flatnonzero(open_), label[atoms:])
        entry = _Sorted(np.arange(len(column)), label[atoms:][column])
        serves = np.flatnonzero((machine.owner >= machine.formulae) & open_[machine.unit])
        serve = _Sorted(serves, label[atoms:][machine.unit])
        formulae: dict[int, tuple[Formula, ...]] = {}
        for tied, some in links:
            formulae[int(label[tied[0]])] = formulae.get(int(label[tied[0]]), ()) + some

        self.parts: list[MachinePart] = []
        self.places: list[Ints] = []
        for number in np.unique(label[:atoms][used]).tolist():
            mine, my_units, entries, services = (some.of(number) for some in (atom, unit, entry, serve))
            declared = int(np.searchsorted(mine, self.size))
            names = tuple([machine.atoms[i] for i in mine.tolist()])
            starts = np.append(np.searchsorted(column[entries], my_units), len(entries))
            weights = csc_array(
                (data[entries], atom.place[row[entries]], starts), shape=(len(mine), len(my_units))
            )
            component = Machine(
                names,
                weights,
                machine.visible_bias[mine],
                bias[my_units],
                unit_weights=machine.unit_weights[my_units],
                owner=atom.place[machine.owner[services] - machine.formulae + self.size] - declared,
                unit=unit.place[machine.unit[services]],
                definitions=names[declared:],
            )
            self.places.append(mine[:declared])
            self.parts.append(_part(replace(about, machine=component), formulae.get(number, ())))

    def logs(self) -> list[float]:
        """Return numbers that add up to log Z; minus infinity is among them if there is no world."""
        return [*self.constants, *(part.log for part in self.parts)]

    @property
    def log(self) -> float:
        """The logarithm of Z."""
        return math.fsum(self.logs())

    def log_ratio(self, below: Whole) -> float:
        """Return log(Z/Z below); what both have in common is not looked at.

        Raises NoAnswer where what is left is so large that rounding would decide the answer.
        """
        terms: list[float] = []
        for mine, theirs in (
            (Counter(self.parts), Counter(below.parts)),
            (Counter(self.constants), Counter(below.constants)),
        ):
            for sign, some in ((1, mine - theirs), (-1, theirs - mine)):
                terms += [
                    sign * (part.log if isinstance(part, MachinePart) else part) for part in some.elements()
                ]
        ratio = math.fsum(terms)
        doubt = max((abs(term) for term in terms if term > -math.inf), default=0.0) * _ROUNDING
        if doubt > _DOUBT and ratio + doubt > _NEVER:
            raise NoAnswer(
                "the weights are too large for probabilities of this machine in floating point: "
                "ask for a smaller confidence, or a higher temperature"
            )
        return ratio

    def marginals(self) -> Floats | None:
        """Return the probability of each declared atom; None: there is no world."""
        found = np.zeros(self.size)
        found[list(self.fixed)] = list(self.fixed.values())
        found[self.idle] = self.chances
        for places, part in zip(self.places, self.parts, strict=True):
            chances = part.marginals
            if chances is None:
                return None
            found[places] = chances
        return found

    def draw(self, n: int, rng: np.random.Generator) -> Bools:
        """Return ``n`` independent draws, shape (n, declared atoms)."""
        found = np.zeros((n, self.size), dtype=bool)
        for place, value in self.fixed.items():
            found[:, place] = value
        for place, chance in zip(self.idle.tolist(), self.chances.tolist(), strict=True):
            found[:, place] = rng.random(n) < chance
        for places, part in zip(self.places, self.parts, strict=True):
            found[:, places] = part.draw(n, rng)
        return found


def _components(atoms: int, units: int, row: Ints, column: Ints, links: Sequence[list[int]]) -> Ints:
    """Return the number of the component of every atom, then of every unit, shape (atoms + units,)."""
    tied = [(link[0], other) for link in links for other in link[1:]]
    left, right = np.array(tied, dtype=np.int64).reshape(-1, 2).T
    ends = np.concatenate([row, left]), np.concatenate([column + atoms, right])
    graph = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(atoms + units, atoms + units))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


class _Sorted:
    """Things by their component: ``of`` gives those of one, ``place`` where among them each stands."""

    def __init__(self, things: Ints, label: Ints) -> None:
        order = np.argsort(label[things], kind="stable")
        self._things, self._labels = things[order], label[things][order]
        self.place = np.zeros(len(label), dtype=np.int64)
        self.place[self._things] = np.arange(len(things)) - np.searchsorted(self._labels, self._labels)

    def of(self, number: int) -> Ints:
        """Return the things of one component, in order."""
        begin, end = np.searchsorted(self._labels, [number, number + 1])
        return self._things[begin:end]


# --- a component with formulae ---------------------------------------------------------------------


def _part(about: Wells, formulae: tuple[Formula, ...]) -> MachinePart:
    """Return the component of these formulae; one that is made of the same numbers is known already."""
    machine = about.machine
    weights = machine.weights
    numbers = (weights.data, weights.indices, weights.indptr, machine.visible_bias, machine.hidden_bias)
    defined = (machine.unit_weights, machine.owner, machine.unit) if machine.definitions else ()
    names = (machine.declared, formulae) if formulae else ()
    sizes = len(machine.atoms), len(machine.definitions)
    key = (sizes, names, *(some.tobytes() for some in (*numbers, *defined)))
    found = about.known.get(key)
    if found is None:
        found = _constrained(about, formulae) if formulae else States(machine, about.scale, about.budget)
        about.known[key] = found
    return found


def _constrained(about: Wells, formulae: tuple[Formula, ...]) -> MachinePart:
    """Return a component on which formulae hold: by their cubes, or world by world if that is less work."""
    machine, budget = about.machine, about.budget
    size = len(machine.declared)
    by_world = States(machine, about.scale, budget, conjunction(formulae))
    if 1 << size <= CASE:
        return by_world
    try:
        found = ByCubes(Component(machine.declared, formulae, ()), MAX_CUBES, budget)
    except TooManyWorlds:
        if size <= LIMIT:
            return by_world
        raise TooManyWorlds(
            f"query and evidence tie {size} atoms together, which make {how_many(size)} worlds, beyond "
            f"{LIMIT} atoms (limit LIMIT), and have no strict DNF of up to {MAX_CUBES} cubes that "
            "elimination finds (limit MAX_CUBES): ask something simpler, or sample",
            LIMIT=LIMIT,
        ) from None
    shortest = LIMIT if machine.definitions else machine.hidden
    work = sum((1 << min(free, shortest)) + CASE for free in found.frees)
    return by_world if size <= LIMIT and 1 << size <= work else _Cases(about, found.cubes)


class _Cases(MachinePart):
    """A component by cubes that exclude one another: each settles some atoms, and the rest falls apart."""

    constrained = True

    def __init__(self, about: Wells, cubes: Sequence[Mask]) -> None:
        self.about, self.cubes = about, cubes
        self.declared = len(about.machine.declared)

    def _case(self, cube: Mask) -> Whole:
        true, false = cube
        places = range(self.declared)
        fixed = {i: bool(true >> i & 1) for i in places if (true | false) >> i & 1}
        return Whole(self.about, fixed)

    @cached_property
    def logs(self) -> Floats:
        """The logarithm of Z of each case, shape (cubes,)."""
        return np.array([self._case(cube).log for cube in self.cubes], dtype=np.float64)

    @cached_property
    def log(self) -> float:
        return log_sum(self.logs)

    @cached_property
    def marginals(self) -> Floats | None:
        top, total, ones = -math.inf, 0.0, np.zeros(self.declared)
        for cube in self.cubes:
            case = self._case(cube)
            chances = case.marginals()
            assert chances is not None  # a case has no formulae left that could exclude a world
            log = case.log
            if log > top:
                less = math.exp(top - log)
                top, total, ones = log, total * less, ones * less
            total += math.exp(log - top)
            ones += math.exp(log - top) * chances
        return np.minimum(ones / total, 1.0) if total else None

    def draw(self, n: int, rng: np.random.Generator) -> Bools:
        drawn = rng.multinomial(n, shares(self.logs))
        found = [self._case(self.cubes[i]).draw(int(drawn[i]), rng) for i in np.flatnonzero(drawn).tolist()]
        return rng.permutation(np.concatenate([np.zeros((0, self.declared), bool), *found]))
