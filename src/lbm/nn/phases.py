"""A theory past exact reach, as chains: each row has 64 of them, clamped to its answer or free.

The chains are the library's own, collapsed: hidden units are summed out, so that a state is a world. Soft
evidence is a weight for each input's literal, and chains of all rows share one network of gates. Atoms that
are certain, as told, by infinite logits or by what follows from these at once, are held and never flip. A
broken hard formula costs a penalty, and only states that break none count; the penalty is raised or lowered
while chains warm up, until a good part of the states count.

Both phases of a row use the same random words, so that what they share falls out of their difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Bytes, Floats, Ints
from lbm.errors import NoAnswer, NoWorlds
from lbm.knowledge.clauses import definitional
from lbm.knowledge.formula import Formula, atom, holds
from lbm.nn.asked import AskedLayer, LayerPlan
from lbm.nn.named import UnfitInputs
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.engine.groups import groups_of
from lbm.reasoning.engine.lanes import Lanes, Weights, advance, jump, random_states, reweighted, start
from lbm.reasoning.engine.network import LANES, GateNetwork, network_of
from lbm.reasoning.exact.apart import fall_apart
from lbm.reasoning.exact.determined import undetermined
from lbm.reasoning.exact.sums import SummedPart
from lbm.reasoning.proof import satisfiable
from lbm.reasoning.sampling.targets import hard_parts
from lbm.reasoning.solvers.sat import Session, turn

MAX_KEPT: Final = 1 << 30
"""Bytes of all states of chains that are kept from one batch to the next; the oldest go first."""

WARM: Final = 16
"""Times that new chains are moved on while the penalty is found."""

COLDER: Final = 16, 256
"""Steps, at least and at most, in which it gets colder for new chains: one for every four atoms."""

AGAIN: Final = 6
"""Times that chains which are taken up are moved on before anything is recorded."""

APART: Final = 2
"""Sweeps from one state that is recorded to the next."""

MOST: Final = 8
"""How many times the states that are asked for are recorded at most, where many break hard formulae."""

_SWEEPS: Final = 4  # between two looks at the penalty
_LOW, _HIGH = 0.2, 0.8  # shares of states that count, below and above which the penalty is changed
_UP, _DOWN = 1.15, 1 / 1.15
_FEW: Final = LANES / 2  # effective chains below which the best are doubled as it gets colder
_LEAST: Final = 1.0
_FIRM: Final = 25.0  # a penalty that no chance pays
_REACH: Final = 1e18  # of the odds: no table of probabilities is used
_DIGITS: Final = 30  # soft formulae whose gates are told apart by the digits of one number, to the base 3
_LARGE: Final = 1e6  # logits and weights past which what they are about is as good as certain


class Row(NamedTuple):
    """What the chains of a row saw.

    Attributes
    ----------
    shares
        Shape (atoms,): how often each atom is true in states that count.
    errors
        Shape (64, columns): what each chain adds to the error of the shares of the inputs' atoms.
    formulae
        Shape (soft formulae,): how often each is true, up to a constant.
    states
        Shape (states, bytes): the states that count, packed, as many as were asked for.
    number
        How many states counted; infinite: there is one world.
    """

    shares: Floats
    errors: Floats
    formulae: Floats
    states: Bytes
    number: float


@dataclass(slots=True)
class _LeftChains:
    """Chains of a row as they were left: packed states, and the penalty."""

    x: Bytes
    penalty: float


class PhasedLayer(AskedLayer):
    """A theory with its inputs and queries, as a network that chains run on; parameters are a LogicLayer's.

    ``samples`` is how many states of a row are recorded.
    """

    def _ready(self, budget: Budget) -> None:
        names = self.extended.atoms
        hard = [said.formula for said in self.extended if said.weight is None]
        self.soft = [said.formula for said in self.extended if said.weight is not None]
        self.place = {name: i for i, name in enumerate(names)}
        split = fall_apart(names, hard, (), budget)
        self.session = self._session(hard, budget)
        if split is None or self._first(budget) is False:
            self._refuse(budget)
        assert split is not None
        self.components = split.components
        self.fixed = np.full(len(names), -1, np.int8)
        for name, value in split.fixed.items():
            self.fixed[self.place[name]] = value
        parts = hard_parts([formula for each in split.components for formula in each.hard])
        self.network, self.by_formula = self._network(names, parts, budget)
        self.column_gates = self._gates_of_columns()
        self.columns_at = np.array([self.place[name] for name in self.columns])
        self.members, self.starts = groups_of(self.network)
        self.group_of = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        self.kept: dict[tuple[str, int], _LeftChains] = {}
        self.bytes = 0

    # -- how it is made --

    def _session(self, hard: Sequence[Formula], budget: Budget) -> Session:
        place = {name: i + 1 for name, i in self.place.items()}
        clauses, roots, free = definitional(hard, place, len(place) + 1, budget.tick)
        session = Session(place, free, {})
        session.add([*clauses, *([root] for root in roots)], budget)
        return session

    def _first(self, budget: Budget) -> bool:
        found = self.session.solve([], budget)
        if found is None:
            raise NoAnswer("whether the theory has a model was not found out in time: allow more seconds")
        return found is not False

    def _refuse(self, budget: Budget) -> None:
        if self.given is not None and satisfiable(self.theory, budget=budget) is not False:
            raise NoWorlds(self.given)
        raise NoWorlds

    def _network(
        self, names: Sequence[str], parts: Sequence[Formula], budget: Budget
    ) -> tuple[GateNetwork, Floats]:
        """Return the network, and what each soft formula adds to its gates; literals of inputs weigh 1.

        Formulae that are equal but for a negation share a gate: which ones do is read off the digits of what
        the gate weighs if formula i weighs 3^i.
        """
        columns = [(atom(name), 1.0) for name in self.columns]
        silent = [(formula, 0.0) for formula in self.soft]
        network = network_of(names, parts, [*silent, *columns], budget)
        found = np.zeros((network.gates, len(self.soft)))
        for first in range(0, len(self.soft), _DIGITS):
            some = range(first, min(len(self.soft), first + _DIGITS))
            powers = {i: 3.0 ** (i - first) for i in some}
            pairs = [(formula, powers.get(i, 0.0)) for i, formula in enumerate(self.soft)]
            weighed = network_of(names, parts, [*pairs, *((f, 0.0) for f, _ in columns)], budget).soft
            for i in some:
                digit = np.remainder(weighed + 1.0, 3.0) - 1.0
                found[:, i] = digit
                weighed = (weighed - digit) / 3.0
        return network, found

    def _gates_of_columns(self) -> Ints:
        """Return for each column the gate that is true where its atom is."""
        network = self.network
        single = np.flatnonzero(np.diff(network.first_child) == 1)
        child, sign = (each[network.first_child[single]] for each in (network.child, network.child_sign))
        plain = (sign > 0) & (child < network.atoms) & (network.wires.low[single] == 1)
        gate = dict(zip(child[plain].tolist(), single[plain].tolist(), strict=True))
        return np.array([gate[self.place[name]] for name in self.columns], np.int64)

    @property
    def plan(self) -> LayerPlan:
        """How it is computed: components, their gates, and updates of atoms in one batch of states.

        >>> PhasedLayer("a -> b", ["a", "b"], None, None, True, None, 1000).plan
        2 columns, 1 component; 128 numbers a row in one pass
        2 atoms by phases: 1 terms
        """
        parts = [
            SummedPart(
                "phases", part.atoms, len(hard_parts(part.hard)) + len(part.soft), LANES * len(part.atoms)
            )
            for part in self.components
        ]
        return LayerPlan(len(self.columns), sum(part.work for part in parts), tuple(parts))

    # -- rows --

    def held(self, logits: Floats, told: Ints | None) -> tuple[NDArray[np.int8], Bools]:
        """Return what atoms are certain to be in each row, -1 for nothing, and which rows do not clash.

        By what is told, by infinite logits, and by what the hard formulae settle alone.
        """
        rows = len(logits)
        found = np.repeat(self.fixed[None], rows, axis=0)
        possible = np.ones(rows, bool)
        start = 0
        for place, choice in enumerate(self.choices):
            at = np.array([self.place[name] for name in choice])
            given = place < len(self.inputs)
            numbers = logits[:, start : start + len(choice)] if given else np.zeros((rows, len(choice)))
            start += len(choice)
            values = np.full(rows, -1, np.int64) if told is None else told[:, place]
            wanted = np.full((rows, len(choice)), -1, np.int8)
            wanted[numbers == np.inf] = 1
            wanted[numbers == -np.inf] = 0
            if len(choice) > 1:
                sure = (wanted == 1).sum(axis=1)
                possible &= (sure <= 1) & ~(wanted == 0).all(axis=1)
                wanted[(sure == 1)[:, None] & (wanted < 0)] = 0
                known = values >= 0
                chosen = (np.arange(len(choice)) == values[:, None]).astype(np.int8)
            else:
                known, chosen = values >= 0, values[:, None].astype(np.int8)
            clash = (wanted >= 0) & (wanted != chosen) & known[:, None]
            possible &= ~clash.any(axis=1)
            wanted = np.where(known[:, None], chosen, wanted)
            here = found[:, at]
            possible &= ~((here >= 0) & (wanted >= 0) & (here != wanted)).any(axis=1)
            found[:, at] = np.where(wanted >= 0, wanted, here)
        return found, possible

    def run(
        self,
        logits: Floats,
        weights: Floats | None,
        told: Ints | None,
        phase: str,
        ids: Ints | None,
        seed: int,
        samples: int | None = None,
    ) -> list[Row | None]:
        """Return what the chains of each row see; None: no world is possible, or none was met.

        Parameters
        ----------
        logits
            Shape (rows, columns).
        weights
            Those of the soft formulae; None: they do not count.
        told
            Shape (rows, choices): values that are known, -1 for nothing; None: nothing is.
        phase
            The name that chains are kept by, with the row's number in ``ids``; None: they are not kept.
        seed
            Of all random numbers. Phases of one seed use the same.
        """
        held, possible = self.held(logits, told)
        values = self._values(weights)
        found: list[Row | None] = []
        for row in range(len(logits)):
            if not possible[row]:
                found.append(None)
                continue
            own = values.copy()
            np.add.at(own, self.column_gates, np.clip(logits[row], -_LARGE, _LARGE))
            key = None if ids is None else (phase, int(ids[row]))
            found.append(self._row(own, held[row], logits[row], key, seed, row, samples or self.samples))
        return found

    def _values(self, weights: Floats | None) -> Floats:
        """Return what gates weigh by soft formulae."""
        if weights is None:
            return np.zeros(self.network.gates)
        return np.clip(self.by_formula @ np.clip(weights, -_LARGE, _LARGE), -_LARGE, _LARGE)

    def _settled(self, held: NDArray[np.int8], logits: Floats) -> tuple[NDArray[np.int8], Bools] | None:
        """Return what is certain, with what follows from it at once, and a model; None: there is none."""
        literals = [int(i + 1) if held[i] else -int(i + 1) for i in np.flatnonzero(held >= 0)]
        session = self.session
        with turn(session.lock, NO_LIMIT):
            engine = session.solver.solver
            liked = np.where(logits > 0, self.columns_at + 1, -self.columns_at - 1)
            engine.set_phases(liked.tolist())
            fits, implied = engine.propagate(literals)
            if not fits:
                return None
            model = session.solve(literals, Budget.of(self.seconds))
        if model is None:
            raise NoAnswer("whether a row has a world was not found out in time: allow more seconds")
        if model is False or model is True:
            return None
        certain = held.copy()
        for literal in implied:
            if abs(literal) <= len(certain):
                certain[abs(literal) - 1] = literal > 0
        return certain, np.array(model, bool)

    def _row(
        self,
        values: Floats,
        held: NDArray[np.int8],
        logits: Floats,
        key: tuple[str, int] | None,
        seed: int,
        row: int,
        samples: int,
    ) -> Row | None:
        settled = self._settled(held, logits)
        if settled is None:
            return None
        certain, model = settled
        order = np.flatnonzero(certain < 0).astype(np.int32)
        if not len(order):
            return self._one_world(model)
        groups = self._free_groups(certain)
        before = None if key is None else self.kept.get(key)
        if before is None:
            x = random_states(len(model), seed, lane=LANES * row)
            x[:, : LANES // 4] = model[:, None]
            penalty = self._penalty(values, logits)
        else:
            x = np.unpackbits(before.x, axis=0, count=len(model))
            penalty = before.penalty
        x[certain >= 0] = certain[certain >= 0][:, None]
        chains = _Moving(self.network, values, penalty, x, order, groups, seed, LANES * row)
        if before is None:
            chains.cool()
        chains.warm(WARM if before is None else AGAIN)
        if before is not None and not chains.counting().any():
            chains.cool()
            chains.warm(WARM)
        found = self._recorded(chains, samples) if chains.counting().any() else None
        if found is None:  # from a model on, with a penalty for which no formula is broken any more
            chains.penalty = _FIRM + 2.0 * self.network.reach(np.abs(values))
            chains.put(np.repeat(model[:, None], LANES, axis=1).astype(np.uint8))
            chains.move(WARM)
            found = self._recorded(chains, samples)
        if key is not None:
            self._keep(key, _LeftChains(np.packbits(chains.lanes.x, axis=0), chains.penalty))
        return found

    def _penalty(self, values: Floats, logits: Floats) -> float:
        """Return a penalty to begin with: of the size of what atoms say, so that chains still move."""
        return 2.0 + float(np.abs(values).clip(max=10.0).mean() + np.abs(logits).clip(max=10.0).mean())

    def _one_world(self, model: Bools) -> Row:
        x = np.repeat(model[:, None], LANES, axis=1).astype(np.uint8)
        counts = self.network.counts(x)
        gates = np.arange(self.network.gates)
        true = self.network.wires.truth(counts, gates)[:, 0].astype(np.float64)
        errors = np.zeros((LANES, len(self.columns)))
        states = np.packbits(model[None], axis=1)
        return Row(model.astype(np.float64), errors, true @ self.by_formula, states, np.inf)

    def _free_groups(self, certain: NDArray[np.int8]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the groups of atoms none of which is held."""
        if not len(self.members) or not (certain >= 0).any():
            return self.members, self.starts
        number = len(self.starts) - 1
        stuck = np.bincount(self.group_of, certain[self.members] >= 0, minlength=number) > 0
        sizes = np.diff(self.starts)[~stuck]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return np.ascontiguousarray(self.members[~stuck[self.group_of]]), starts

    def _recorded(self, chains: _Moving, samples: int) -> Row | None:
        """Record states until so many count, or MOST times as many were looked at."""
        network, used = self.network, np.flatnonzero(self.by_formula.any(axis=1))
        hits = np.zeros((network.atoms, LANES))
        keeps, true = np.zeros(LANES), np.zeros(len(used))
        states: list[Bytes] = []
        for _ in range(MOST * -(-samples // LANES)):
            chains.move(APART)
            valid = chains.counting()
            if valid.any():
                x = chains.lanes.x[:, valid]
                hits[:, valid] += x
                keeps += valid
                if len(used):
                    true += network.wires.truth(chains.lanes.counts[np.ix_(used, valid)], used).sum(axis=1)
                states.append(np.packbits(x.T, axis=1))
                if keeps.sum() >= samples:
                    break
        number = keeps.sum()
        if not number:
            return None
        shares = hits.sum(axis=1) / number
        mine = self.columns_at
        errors = ((hits[mine] - shares[mine, None] * keeps) * (LANES / number)).T
        whole = np.zeros(network.gates)
        whole[used] = true / number
        return Row(shares, errors, whole @ self.by_formula, np.concatenate(states), float(number))

    def _keep(self, key: tuple[str, int], chains: _LeftChains) -> None:
        if key in self.kept:
            self.bytes -= self.kept.pop(key).x.nbytes
        self.kept[key] = chains
        self.bytes += chains.x.nbytes
        while self.bytes > MAX_KEPT and len(self.kept) > 1:
            oldest = next(iter(self.kept))
            self.bytes -= self.kept.pop(oldest).x.nbytes

    # -- what rows say --

    def check_settled(self) -> None:
        """Raise UnfitInputs where inputs leave other atoms open: values would count once for each."""
        if self._open:
            shown = ", ".join(self._open[:5]) + (", ..." if len(self._open) > 5 else "")
            raise UnfitInputs(
                f"expected inputs that settle all other atoms, for log_kept by phases; open are {shown}: "
                "make them inputs, or define them"
            )

    @cached_property
    def _open(self) -> tuple[str, ...]:
        return undetermined(self.base, set(self.columns), Budget.of(self.seconds))

    def share_told(self, row: Row, told: Ints) -> float:
        """Return the logarithm of the share of states with the values that are told, half a state added."""
        states = np.unpackbits(row.states, axis=1, count=len(self.place))
        fits = np.ones(len(states), bool)
        for place, value in enumerate(told.tolist()):
            if value >= 0:
                choice = self.choices[place]
                at, wanted = (
                    (self.place[choice[value]], 1) if len(choice) > 1 else (self.place[choice[0]], value)
                )
                fits &= states[:, at] == wanted
        if not math.isfinite(row.number):
            return 0.0 if fits.all() else -math.inf
        return math.log((fits.sum() + 0.5) / (len(fits) + 1.0))

    def share_of(self, formula: int, row: Row) -> float:
        """Return how often a soft formula is true."""
        if not self.by_formula[:, formula].any():  # a constant
            return float(holds(self.soft[formula], dict.fromkeys(self.place, False)))
        return float(row.formulae[formula] + (self.by_formula[:, formula] < 0).sum())

    # -- worlds --

    def best(self, logits: Floats, weights: Floats, seed: int) -> Bools:
        """Return the best world that was met of each row, shape (rows, atoms); each is a model.

        In rows that contradict the theory, infinite logits count as large ones.
        """
        found = np.zeros((len(logits), len(self.place)), bool)
        held, possible = self.held(logits, None)
        values = self._values(weights)
        for row in range(len(logits)):
            settled = self._settled(held[row], logits[row]) if possible[row] else None
            if settled is None:
                settled = self._settled(self.fixed, logits[row])
                assert settled is not None
            certain, model = settled
            own = values.copy()
            np.add.at(own, self.column_gates, np.clip(logits[row], -_LARGE, _LARGE))
            order = np.flatnonzero(certain < 0).astype(np.int32)
            found[row] = model
            if len(order):
                x = random_states(len(model), seed, lane=LANES * row)
                x[:, : LANES // 4] = model[:, None]
                x[certain >= 0] = certain[certain >= 0][:, None]
                groups = self._free_groups(certain)
                penalty = self._penalty(own, logits[row])
                chains = _Moving(self.network, own, penalty, x, order, groups, seed, LANES * row)
                found[row] = chains.coldest(model)
        return found


class _Moving:
    """The chains of a row while they move."""

    def __init__(
        self,
        network: GateNetwork,
        values: Floats,
        penalty: float,
        x: Bytes,
        order: NDArray[np.int32],
        groups: tuple[NDArray[np.int32], NDArray[np.int32]],
        seed: int,
        lane: int,
    ) -> None:
        self.network, self.values, self.penalty = network, values, penalty
        self.order, self.groups, self.seed, self.lane = order, groups, seed, lane
        self.lanes: Lanes = start(network, self.weights(), x, seed=seed, lane=lane)

    def weights(self) -> Weights:
        """Return what gates weigh with the present penalty."""
        return Weights(self.values + self.penalty * self.network.hard, 1.0, 0.0, _REACH)

    def put(self, x: Bytes) -> None:
        """Put chains in other states."""
        self.lanes = start(
            self.network, self.weights(), x, seed=self.seed, lane=self.lane, sweep=self.lanes.sweep
        )

    def move(self, sweeps: int, beta: float = 1.0) -> None:
        """Do some sweeps, and offer groups of atoms to flip together."""
        advance(self.lanes, np.full(sweeps, beta), order=self.order, every=sweeps)
        if len(self.groups[1]) > 1:
            jump(self.lanes, *self.groups, beta)

    def counting(self) -> Bools:
        """Return which chains keep all hard formulae."""
        return np.asarray(self.lanes.broken() == 0)

    def cool(self) -> None:
        """Move new chains on from where all is free to β = 1; those that fare well are doubled.

        [Hukushima, Iba: Population annealing and its application to a spin glass; 2003]
        """
        least, most = COLDER
        steps = np.geomspace(1.0 / 16, 1.0, max(least, min(most, self.network.atoms // 4)))
        rng = np.random.default_rng([self.seed, self.lane])
        gained = np.zeros(LANES)
        for before, beta in pairwise([0.0, *steps.tolist()]):
            gained += (beta - before) * self.lanes.log_weight
            shares = np.exp(gained - gained.max())
            shares /= shares.sum()
            if 1.0 / (shares**2).sum() < _FEW:
                at = (np.arange(LANES) + rng.random()) / LANES
                chosen = np.searchsorted(np.cumsum(shares), at).clip(max=LANES - 1)
                self.put(self.lanes.x[:, chosen])
                gained[:] = 0.0
            self.move(_SWEEPS, beta)

    def warm(self, times: int) -> None:
        """Move on, and change the penalty until a good part of the states count."""
        for _ in range(times):
            self.move(_SWEEPS)
            share = float(self.counting().mean())
            factor = _UP if share < _LOW else _DOWN if share > _HIGH and self.penalty > _LEAST else 1.0
            if factor != 1.0:
                self.penalty *= factor
                self.lanes = reweighted(self.lanes, self.weights())

    def coldest(self, model: Bools) -> Bools:
        """Return the best world met on the way to the cold, ``model`` if none was better."""
        self.cool()
        warm = self.lanes.x.copy()
        self.put(np.repeat(model[:, None], LANES, axis=1).astype(np.uint8))
        best, found = self._better(-np.inf, model)
        self.put(warm)
        best, found = self._better(best, found)
        for beta in (*np.geomspace(1.0, 8.0, 2 * WARM).tolist(), *[1e6] * (WARM // 2)):
            self.move(_SWEEPS, beta)
            best, found = self._better(best, found)
        return found

    def _better(self, best: float, found: Bools) -> tuple[float, Bools]:
        valid = self.counting()
        if not valid.any():
            return best, found
        scores = np.where(valid, self.network.sums(self.lanes.counts, self.values), -np.inf)
        at = int(scores.argmax())
        return (float(scores[at]), self.lanes.x[:, at] > 0) if scores[at] > best else (best, found)
