"""Exact answers about a machine as it was built: P(x) ∝ exp(-F(x)) over the worlds of its declared atoms.

    F(x) = -(c/τ) a·x - Σ_j log(1 + exp(c s_j(x)/τ)),   s_j(x) = Σ_i w_ij x_i + b_j

Hard formulae are wells like any other here, and definitional atoms are computed from the declared ones.

Atoms and hidden units fall apart into components that share no weight; atoms that the evidence settles
drop out first, and let more fall apart. In each component all states of the smaller layer are looked at
and the other layer is summed out in closed form: each hidden unit gives 1 + exp(c s_j/τ), and given the
hidden units each atom is a coin of its own. Any other evidence, and any query, becomes cases that exclude
one another, the cubes of a strict DNF, each of which settles some atoms; or it is looked up world by world.

Answers are as accurate as F(x) is in floating point: about 1e-15 times the largest |F(x)|.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy.sparse import coo_array, csc_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from lbm.errors import UnknownAtom
from lbm.knowledge.formula import Formula, atoms_of, conjunction, holds
from lbm.logic.anatomy import view
from lbm.logic.elimination import Mask
from lbm.machine.rbm import Floats, Ints, Machine
from lbm.reasoning.components.answers import Bools, NoWorlds, TooManyWorlds, check_room, how_many
from lbm.reasoning.components.apart import Component, fall_apart
from lbm.reasoning.components.cubes import MAX_CUBES, Cubes

__all__ = ["draw", "log_partition", "log_probability", "marginals", "probability"]

LIMIT: Final = 24
"""Atoms or hidden units of one component, whichever are fewer, up to which their states are looked at."""

BLOCK: Final = 13
"""States are weighed 2^BLOCK at a time: numbers for so many stay in the cache of a core."""

CASE: Final = 1 << 12
"""Worlds whose weighing takes as long as to set up one case of a formula."""

_KEPT: Final = 256  # sums over a block that are remembered: 16 MB
_FACTORS: Final = 500  # numbers between 1 and 2 whose product is far from overflow


def log_partition(
    machine: Machine, *, given: Formula | None = None, confidence: float = 5.0, temperature: float = 1.0
) -> float:
    """Return log Z, Z = Σ exp(-F(x)) over the worlds that keep the evidence.

    >>> import lbm
    >>> machine = lbm.translate(lbm.parse("a"))           # one hidden unit, s = a - 0.5
    >>> log_partition(machine) == math.log((1 + math.exp(-2.5)) + (1 + math.exp(2.5)))
    True
    """
    return _Question.of(machine, confidence, temperature).possible(given).log


def log_probability(
    machine: Machine,
    world: Mapping[str, Any],
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
) -> float:
    """Return log P(world | evidence) of a world over the declared atoms; minus infinity if it breaks it."""
    question = _Question.of(machine, confidence, temperature)
    known = set(machine.declared)
    for name in world:
        if name not in known:
            raise UnknownAtom(name, machine.declared, "machine")
    for name in machine.declared:
        if name not in world:
            raise UnknownAtom(name, world, "world")
    whole = question.possible(given)
    values = {name: bool(world[name]) for name in machine.declared}
    if given is not None and not holds(given, values):
        return -math.inf
    row = np.array([values[name] for name in machine.declared], dtype=np.float64)
    depth = -float(machine.free_energy(row, confidence=confidence, temperature=temperature))
    return min(math.fsum([depth, *(-log for log in whole.logs())]), 0.0)


def probability(
    machine: Machine,
    query: Formula,
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
) -> float:
    """Return P(query | evidence): Σ exp(-F(x)) over the worlds that keep both, over that of the evidence.

    Components that neither of them mentions are never looked at, and so may be of any size.

    >>> import lbm
    >>> machine = lbm.translate(lbm.parse("a -> b"))
    >>> round(probability(machine, lbm.parse("b"), given=lbm.parse("a")), 3)
    0.924
    """
    question = _Question.of(machine, confidence, temperature)
    question.check(query, "query")
    below = question.possible(given)

    def share(formula: Formula) -> float:
        above = question.ask(formula if given is None else given & formula)
        return 0.0 if above is None else math.exp(min(above.log_ratio(below), 0.0))

    try:
        found = share(query)
    except TooManyWorlds:
        # The negation of a disjunction settles atoms where the disjunction joins components.
        if view(query).op != "or":
            raise
        return 1.0 - share(~query)
    if found > 1.0 - 1e-9:
        try:
            return 1.0 - share(~query)  # nearer the truth, and exactly 1 where the query follows
        except TooManyWorlds:
            return found
    return found


def marginals(
    machine: Machine, *, given: Formula | None = None, confidence: float = 5.0, temperature: float = 1.0
) -> dict[str, float]:
    """Return P(atom | evidence) of every declared atom, in the machine's order.

    >>> import lbm
    >>> machine = lbm.translate(lbm.Theory(["a -> b"], atoms=["a", "b", "c"]))
    >>> {name: round(chance, 3) for name, chance in marginals(machine, confidence=50).items()}
    {'a': 0.333, 'b': 0.667, 'c': 0.5}
    """
    question = _Question.of(machine, confidence, temperature)
    whole = question.ask(given)
    found = None if whole is None else whole.marginals()
    if found is None:
        raise NoWorlds(given)
    return dict(zip(machine.declared, found.tolist(), strict=True))


def draw(
    machine: Machine,
    n: int,
    rng: np.random.Generator,
    *,
    given: Formula | None = None,
    confidence: float = 5.0,
    temperature: float = 1.0,
) -> Bools:
    """Return ``n`` independent draws from P(x | evidence), shape (n, declared atoms)."""
    if n < 0:
        raise ValueError(f"n is a number of draws from 0 up, got {n}")
    check_room(n, len(machine.declared))
    return _Question.of(machine, confidence, temperature).possible(given).draw(n, rng)


# --- a machine, taken apart ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Question:
    """A machine, the number c/τ its energies are multiplied by, and the components solved so far."""

    machine: Machine
    scale: float
    known: dict[Hashable, _Part] = field(default_factory=dict)

    @classmethod
    def of(cls, machine: Machine, confidence: float, temperature: float) -> _Question:
        """Return the question, once its numbers are checked."""
        for name, value in (("confidence", confidence), ("temperature", temperature)):
            if not 0 < value < np.inf:
                raise ValueError(f"{name} must be a positive number, got {value}")
        weights = csc_array(machine.weights, dtype=np.float64)
        if not weights.has_canonical_format or not weights.data.all():
            weights = weights.copy()
            weights.sum_duplicates()
            weights.eliminate_zeros()
        scale = confidence / temperature
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = (weights.data, machine.hidden_bias, machine.visible_bias)
            largest = scale * sum(float(np.abs(some).sum()) for some in numbers)
        if not largest < np.inf:
            raise ValueError(
                "expected finite weights and biases, also when multiplied by confidence/temperature = "
                f"{scale:g}, got {largest} as the sum of their sizes: give smaller ones"
            )
        return cls(replace(machine, weights=weights), scale)

    def check(self, formula: Formula, role: str) -> None:
        """Raise unless ``formula`` is one, over declared atoms; ``role`` says what it was meant to be."""
        if not isinstance(formula, Formula):
            raise TypeError(f"the {role} is a formula, got {formula!r}: lbm.parse('a -> b') makes one")
        known = set(self.machine.declared)
        for name in atoms_of(formula):
            if name not in known:
                raise UnknownAtom(name, self.machine.declared, "machine")

    def ask(self, evidence: Formula | None) -> _Whole | None:
        """Return the machine with evidence, taken apart; None: the evidence contradicts itself."""
        if evidence is not None:
            self.check(evidence, "evidence")
        split = fall_apart(self.machine.declared, [] if evidence is None else [evidence], ())
        if split is None:
            return None
        place = {name: i for i, name in enumerate(self.machine.declared)}
        fixed = {place[name]: value for name, value in split.fixed.items()}
        links = [([place[name] for name in part.atoms], part.hard) for part in split.components]
        return _Whole(self.machine, self.scale, self.known, fixed, links)

    def possible(self, evidence: Formula | None) -> _Whole:
        """Return the machine with evidence, taken apart; raise NoWorlds if nothing keeps the evidence."""
        whole = self.ask(evidence)
        if whole is None or any(part.log == -math.inf for part in whole.parts if part.constrained):
            raise NoWorlds(evidence)
        return whole


class _Whole:
    """A machine some of whose atoms are settled: what they give, atoms by themselves, and components.

    ``constant`` is the logarithm of what needs no sum; ``places[i]`` says which of the declared atoms
    those of ``parts[i]`` are. A link is a list of atoms that formulae tie together, and the formulae.
    """

    def __init__(
        self,
        machine: Machine,
        scale: float,
        known: dict[Hashable, _Part],
        fixed: Mapping[int, bool],
        links: Sequence[tuple[list[int], tuple[Formula, ...]]] = (),
    ) -> None:
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
        settled = scale * float(machine.visible_bias[values == 1].sum())
        self.constant = settled + float(np.logaddexp(0.0, scale * alone).sum())

        label = _components(atoms, units, row, column, [tied for tied, _ in links])
        atom, unit = _Sorted(np.flatnonzero(used), label), _Sorted(np.flatnonzero(open_), label[atoms:])
        entry = _Sorted(np.arange(len(column)), label[atoms:][column])
        serves = np.flatnonzero((machine.owner >= machine.formulae) & open_[machine.unit])
        serve = _Sorted(serves, label[atoms:][machine.unit])
        formulae: dict[int, tuple[Formula, ...]] = {}
        for tied, some in links:
            formulae[int(label[tied[0]])] = formulae.get(int(label[tied[0]]), ()) + some

        self.parts: list[_Part] = []
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
            self.parts.append(_part(component, scale, known, formulae.get(number, ())))

    def logs(self) -> list[float]:
        """Return numbers that add up to log Z; minus infinity is among them if there is no world."""
        return [self.constant, *(part.log for part in self.parts)]

    @property
    def log(self) -> float:
        """The logarithm of Z."""
        return math.fsum(self.logs())

    def log_ratio(self, below: _Whole) -> float:
        """Return log(Z/Z below); what both have in common is not looked at."""
        mine, theirs = Counter(self.parts), Counter(below.parts)
        more = [part.log for part in (mine - theirs).elements()]
        less = [-part.log for part in (theirs - mine).elements()]
        return math.fsum([self.constant, -below.constant, *more, *less])

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


# --- one component ---------------------------------------------------------------------------------


class _Part(ABC):
    """A component, on which formulae must hold if it is ``constrained``.

    ``log`` is log Z, -inf if there is no world; ``marginals`` are those of its declared atoms, or None.
    """

    constrained: bool

    @cached_property
    @abstractmethod
    def log(self) -> float: ...

    @cached_property
    @abstractmethod
    def marginals(self) -> Floats | None: ...

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Bools: ...


def _part(
    machine: Machine, scale: float, known: dict[Hashable, _Part], formulae: tuple[Formula, ...]
) -> _Part:
    """Return the component of these formulae; one that is made of the same numbers is known already."""
    weights = machine.weights
    numbers = (weights.data, weights.indices, weights.indptr, machine.visible_bias, machine.hidden_bias)
    defined = (machine.unit_weights, machine.owner, machine.unit) if machine.definitions else ()
    names = (machine.declared, formulae) if formulae else ()
    sizes = len(machine.atoms), len(machine.definitions)
    key = (sizes, names, *(some.tobytes() for some in (*numbers, *defined)))
    found = known.get(key)
    if found is None:
        found = _constrained(machine, scale, known, formulae) if formulae else _States(machine, scale)
        known[key] = found
    return found


def _constrained(
    machine: Machine, scale: float, known: dict[Hashable, _Part], formulae: tuple[Formula, ...]
) -> _Part:
    """Return a component on which formulae hold: by their cubes, or world by world if that is less work."""
    size = len(machine.declared)
    by_world = _States(machine, scale, conjunction(formulae))
    if 1 << size <= CASE:
        return by_world
    try:
        found = Cubes(Component(machine.declared, formulae, ()), MAX_CUBES)
    except TooManyWorlds:
        if size <= LIMIT:
            return by_world
        raise TooManyWorlds(
            f"query and evidence tie {size} atoms together, which make {how_many(size)} worlds, beyond "
            f"{LIMIT} atoms (limit LIMIT), and have no strict DNF of up to {MAX_CUBES} cubes that "
            "elimination finds (limit MAX_CUBES): ask something simpler, or sample",
            limit="LIMIT",
            value=LIMIT,
        ) from None
    shortest = LIMIT if machine.definitions else machine.hidden
    work = sum((1 << min(free, shortest)) + CASE for free in found.frees)
    return by_world if size <= LIMIT and 1 << size <= work else _Cases(machine, scale, known, found.cubes)


class _Cases(_Part):
    """A component by cubes that exclude one another: each settles some atoms, and the rest falls apart."""

    constrained = True

    def __init__(
        self, machine: Machine, scale: float, known: dict[Hashable, _Part], cubes: Sequence[Mask]
    ) -> None:
        self.machine, self.scale, self.known, self.cubes = machine, scale, known, cubes

    def _case(self, cube: Mask) -> _Whole:
        true, false = cube
        places = range(len(self.machine.declared))
        fixed = {i: bool(true >> i & 1) for i in places if (true | false) >> i & 1}
        return _Whole(self.machine, self.scale, self.known, fixed)

    @cached_property
    def logs(self) -> Floats:
        """The logarithm of Z of each case, shape (cubes,)."""
        return np.array([self._case(cube).log for cube in self.cubes], dtype=np.float64)

    @cached_property
    def log(self) -> float:
        return _log_sum(self.logs)

    @cached_property
    def marginals(self) -> Floats | None:
        top, total, ones = -math.inf, 0.0, np.zeros(len(self.machine.declared))
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
        drawn = rng.multinomial(n, _shares(self.logs))
        found = [self._case(self.cubes[i]).draw(int(drawn[i]), rng) for i in np.flatnonzero(drawn).tolist()]
        return rng.permutation(np.concatenate([np.zeros((0, len(self.machine.declared)), bool), *found]))


class _States(_Part):
    """A component by all states of one layer; of its worlds, if ``keep`` is a formula that must hold."""

    def __init__(self, machine: Machine, scale: float, keep: Formula | None = None) -> None:
        self.machine, self.scale, self.keep = machine, scale, keep
        self.constrained = keep is not None
        self.wanted = () if keep is None else atoms_of(keep)
        self.hidden = keep is None and not machine.definitions and _fewer_hidden(machine)

    def _layer(self) -> _Layer:
        machine, scale = self.machine, self.scale
        size = machine.hidden if self.hidden else len(machine.declared)
        if size > LIMIT:
            hidden = "" if machine.definitions or self.constrained else f" and {machine.hidden} hidden units"
            states = "hidden states" if self.hidden else "worlds"
            raise TooManyWorlds(
                f"{len(machine.declared)} free atoms{hidden} make {how_many(size)} {states}; enumeration "
                f"stops at {LIMIT} (limit LIMIT): give more evidence, or sample",
                limit="LIMIT",
                value=LIMIT,
            )
        if machine.definitions:
            return _Defined(machine, scale)
        weights = scale * machine.weights.toarray()
        visible, hidden_ = scale * machine.visible_bias, scale * machine.hidden_bias
        return _Coins(weights.T, hidden_, visible) if self.hidden else _Table(weights, visible, hidden_)

    def _block(self, layer: _Layer, number: int) -> Floats:
        """Return log weights of the states of a block, -inf for worlds where the formula is false."""
        logs = layer.block(number)
        if self.keep is None:
            return logs
        numbers = layer.numbers(number)
        bit = {int(place): b for b, place in enumerate(layer.order)}
        place = {name: i for i, name in enumerate(self.machine.declared)}
        columns = {name: (numbers >> bit[place[name]] & 1).astype(bool) for name in self.wanted}
        return np.where(holds(self.keep, columns), logs, -np.inf)

    @cached_property
    def log(self) -> float:
        if "marginals" in self.__dict__:  # one pass gave both
            return self._found
        layer = self._layer()
        return _log_sum(np.array([_log_sum(self._block(layer, i)) for i in range(layer.blocks)]))

    @cached_property
    def marginals(self) -> Floats | None:
        layer = self._layer()
        top, total, ones = -math.inf, 0.0, np.zeros(len(self.machine.declared))
        for number in range(layer.blocks):
            logs = self._block(layer, number)
            best = float(logs.max())
            if best == -math.inf:
                continue
            if best > top:
                less = math.exp(top - best)
                top, total, ones = best, total * less, ones * less
            weights = np.exp(logs - top)
            total += float(weights.sum())
            ones += layer.ones(number, weights)
        self._found = top + math.log(total) if total else -math.inf
        return np.minimum(ones / total, 1.0) if total else None

    def draw(self, n: int, rng: np.random.Generator) -> Bools:
        layer = self._layer()
        shares = _shares(np.array([_log_sum(self._block(layer, i)) for i in range(layer.blocks)]))
        drawn = rng.multinomial(n, shares)
        found = [np.zeros(0, dtype=np.int64)]
        for i in np.flatnonzero(drawn).tolist():
            logs = self._block(layer, i)
            sums = np.cumsum(np.exp(logs - logs.max()))
            at = np.searchsorted(sums, rng.random(drawn[i]) * sums[-1], side="right")
            found.append(layer.numbers(i)[np.minimum(at, np.searchsorted(sums, sums[-1]))])
        return layer.worlds(rng.permutation(np.concatenate(found)), rng)


def _fewer_hidden(machine: Machine) -> bool:
    return machine.hidden < len(machine.declared)


# --- the states of one layer -----------------------------------------------------------------------


class _Layer(ABC):
    """The states of a layer, 2^low to a block: bit b of a state's number is unit ``order[b]``."""

    def __init__(self, size: int) -> None:
        self.low = min(size, BLOCK)
        self.blocks = 1 << size - self.low
        self.order: Ints = np.arange(size)

    @abstractmethod
    def block(self, number: int) -> Floats:
        """Return the log weights of the states of a block, shape (2^low,)."""

    def numbers(self, number: int) -> Ints:
        """Return the numbers of the states of a block."""
        return (number << self.low) + np.arange(1 << self.low)

    def states(self, numbers: Ints) -> Bools:
        """Return the states of these numbers, shape (states, units)."""
        found = np.zeros((len(numbers), len(self.order)), dtype=bool)
        for bit, unit in enumerate(self.order.tolist()):
            found[:, unit] = numbers >> bit & 1
        return found

    def worlds(self, numbers: Ints, rng: np.random.Generator) -> Bools:  # noqa: ARG002 -- others toss coins
        """Return a world for each state, shape (states, atoms)."""
        return self.states(numbers)

    def ones(self, number: int, weights: Floats) -> Floats:
        """Return for each atom the weight of the states of a block in which it is true."""
        found = np.zeros(len(self.order))
        left = weights
        for bit in range(self.low - 1, -1, -1):  # sum out the highest bit, then the next
            off, on = left.reshape(2, -1)
            found[self.order[bit]] = on.sum()
            left = off + on
        for bit in range(self.low, len(found)):
            found[self.order[bit]] = left[0] * (number >> bit - self.low & 1)
        return found


class _Defined(_Layer):
    """The worlds of a component with definitional atoms, which are computed for each."""

    def __init__(self, machine: Machine, scale: float) -> None:
        super().__init__(len(machine.declared))
        self.machine, self.own = machine, scale * machine.visible_bias
        across, bias = (scale * machine.weights.T).tocsr(), scale * machine.hidden_bias[:, None]
        step = min(_FACTORS, max(8, 1 << BLOCK - self.low))
        parts = [slice(begin, begin + step) for begin in range(0, machine.hidden, step)]
        self.parts = [(across[part], bias[part]) for part in parts]

    def block(self, number: int) -> Floats:
        """Return the log weights of the worlds of a block, shape (2^low,)."""
        x = self.machine.visible(self.states(self.numbers(number)))
        columns = np.ascontiguousarray(x.T)
        return x @ self.own + _softplus((part @ columns + bias for part, bias in self.parts), len(x))


class _Table(_Layer):
    """The states of a layer whose units are free, with the units of the other layer summed out.

    log weight = own·state + Σ_j log(1 + exp(weights[:, j]·state + other[j]))

    ``weights`` has shape (units, other units). Inputs are sums of three numbers: one for the bits that
    are the same within a block, and one for each half of the others.
    """

    def __init__(self, weights: Floats, own: Floats, other: Floats) -> None:
        super().__init__(len(own))
        # Units with few weights change from block to block: more of one block serves the next.
        self.order = np.argsort(-np.count_nonzero(weights, axis=1), kind="stable")
        self.weights, self.other = weights, other
        weights, own = weights[self.order], own[self.order]
        half = self.low // 2
        self.inner, self.outer = _subset_sums(weights[:half].T), _subset_sums(weights[half : self.low].T)
        self.plain = np.add.outer(_subset_sums(own[half : self.low]), _subset_sums(own[:half])).ravel()
        self.high, self.high_own = weights[self.low :], own[self.low :]
        groups: dict[bytes, list[int]] = {}  # other units by the bits above a block that they know
        for j, touched in enumerate((self.high != 0).T):
            groups.setdefault(np.packbits(touched, bitorder="little").tobytes(), []).append(j)
        self.groups = [(int.from_bytes(bits, "little"), np.array(some)) for bits, some in groups.items()]
        self.made: dict[tuple[int, int], Floats] = {}

    def block(self, number: int) -> Floats:
        """Return the log weights of the states of a block, shape (2^low,)."""
        total: Floats = self.plain + self._bits(number) @ self.high_own
        for touched, units in self.groups:
            total += self._wells(touched, units, number & touched)
        return total

    def _wells(self, touched: int, units: Ints, number: int) -> Floats:
        """Return Σ softplus(input) of other units, which know only these bits of the block's number."""
        found = self.made.get((touched, number))
        if found is None:
            found = _softplus(self._inputs(units, number), 1 << self.low)
            if 1 << touched.bit_count() < self.blocks and len(self.made) < _KEPT:
                self.made[touched, number] = found
        return found

    def _inputs(self, units: Ints, number: int) -> Iterator[Floats]:
        """Yield the inputs of other units over a block, some at a time, shape (some units, 2^low)."""
        shift = self.other[units] + self._bits(number) @ self.high[:, units]
        outer, inner = self.outer[units] + shift[:, None], self.inner[units]
        step = min(_FACTORS, 1 << BLOCK - self.low)
        for begin in range(0, len(units), step):
            part = slice(begin, begin + step)
            yield (outer[part, :, None] + inner[part, None, :]).reshape(-1, 1 << self.low)

    def _bits(self, number: int) -> Floats:
        return (number >> np.arange(len(self.high)) & 1).astype(np.float64)


class _Coins(_Table):
    """The states of the hidden layer; the atoms, given one, are coins that know nothing of one another."""

    def ones(self, number: int, weights: Floats) -> Floats:
        """Return for each atom Σ weight · P(true | state) over a block."""
        inputs = self._inputs(np.arange(len(self.other)), number)
        return np.concatenate([expit(some) @ weights for some in inputs])

    def worlds(self, numbers: Ints, rng: np.random.Generator) -> Bools:
        """Return a world for each state, shape (states, atoms): one toss of every coin."""
        states = self.states(numbers)
        found = np.zeros((len(states), len(self.other)), dtype=bool)
        for i in range(len(self.other)):  # one after the other: as floats they would take much room
            found[:, i] = rng.random(len(states)) < expit(states @ self.weights[:, i] + self.other[i])
        return found


def _subset_sums(numbers: Floats) -> Floats:
    """Return the sum of each subset of the last axis, shape (..., 2^n): bit b of a place takes number b."""
    found = np.zeros((*numbers.shape[:-1], 1))
    for b in range(numbers.shape[-1]):
        found = np.concatenate([found, found + numbers[..., b : b + 1]], axis=-1)
    return found


def _softplus(inputs: Iterator[Floats], size: int) -> Floats:
    """Return Σ log(1 + exp(z)) over the rows of all arrays, shape (size,); each has up to _FACTORS rows.

    log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)): the logarithm is taken once of many factors.
    """
    total, product, factors = np.zeros(size), np.ones(size), 0
    for z in inputs:
        factors += len(z)
        if factors > 2 * _FACTORS:
            total += np.log(product)
            product, factors = np.ones(size), len(z)
        small = np.abs(z)
        np.negative(small, out=small)
        np.exp(small, out=small)
        small += 1.0
        above = np.maximum(z, 0.0)
        if len(z) == 1:
            total += above[0]
            product *= small[0]
        else:
            total += above.sum(axis=0)
            product *= small.prod(axis=0)
    total += np.log(product)
    return total


def _log_sum(logs: Floats) -> float:
    """Return log Σ exp(logs), -inf where there is nothing to sum."""
    top = float(logs.max(initial=-np.inf))
    return top if top == -math.inf else top + math.log(float(np.exp(logs - top).sum()))


def _shares(logs: Floats) -> Floats:
    """Return exp(logs), scaled so that they add up to 1."""
    weights = np.exp(logs - logs.max())
    shares: Floats = weights / weights.sum()
    return shares
