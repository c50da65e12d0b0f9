"""What chains run on: a distribution as one sweep of all of them, and worlds for them to start from.

Chains that agree may all be wrong together. So they start far apart: some at random, the others in worlds
that a solver finds with the query true, with it false, and with each of the heaviest soft formulae true.
A well that chains neither leave nor enter then keeps some of them apart from the rest, and R-hat tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, Final, NamedTuple, cast

import numpy as np

from lbm.errors import NoAnswer
from lbm.knowledge.formula import FALSE, TRUE, Formula, atoms_of, conjunction, holds
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.reasoning.clock import at_most, tick
from lbm.reasoning.components.apart import Component, Split, assign, exponent
from lbm.reasoning.engine.energy import EnergyNetwork, advance_energy, energies_of, start_energy
from lbm.reasoning.engine.groups import groups_of, parts_of
from lbm.reasoning.engine.lanes import Weights, advance, jump, start, weights_of
from lbm.reasoning.engine.network import Network, network_of
from lbm.reasoning.engine.schedule import tuned_penalty
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.engine.tempering import tempered
from lbm.reasoning.sampling.chains import Bools, choose_penalty, gibbs_step, sweep
from lbm.reasoning.sampling.targets import (
    Floats,
    FreeEnergyTarget,
    Ints,
    ScoreTarget,
    States,
    Target,
    conjuncts,
    score_target,
)
from lbm.reasoning.solvers.proof import find_model

LANES: Final = 64
"""Chains that run side by side."""

_LARGE: Final = 1 << 14  # weights past which it matters how they are multiplied
_STARTS: Final = 8  # different worlds that chains start from, beside random ones
_REPEATED: Final = 4  # chains from each of them: fewer would be lost among the others
_DIGITS: Final = 9  # after the point, of a log weight that is watched
_SECONDS: Final = 5.0  # for a solver to find one of the starts


class Seen(NamedTuple):
    """All chains after a sweep: states, shape (atoms, chains), which count, and a quantity to watch."""

    x: Bools
    valid: Bools
    score: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What chains run on: a distribution as chains without end, and worlds for them to start from.

    Attributes
    ----------
    walk
        (states of shape (atoms, LANES), generator) -> what is seen after each sweep.
    atoms
        The names of the rows of a state.
    starts
        Worlds over ``atoms``, shape (atoms, worlds).
    """

    walk: Callable[[Bools, np.random.Generator], Iterator[Seen]]
    atoms: tuple[str, ...]
    starts: Bools


# --- what chains run on ----------------------------------------------------------------------------


def logical(
    split: Split,
    query: Formula | None,
    temperature: float,
    rng: np.random.Generator,
    *,
    tempering: bool = False,
) -> Problem:
    """Return the logical distribution of a theory with evidence; with a query, of what it depends on.

    Components that share no atom with the query say nothing about it, and are left out. With ``tempering``,
    chains are the cold ends of ladders: there are fewer of them, but none is caught in a well for ever.
    """
    network, starts = logical_network(split, temperature, query)
    hard = bool(len(network.firm))
    penalty = tuned_penalty(network, spread(starts, rng), seed=seed_from(rng)) if hard else 0.0
    walk = partial(_ladders if tempering else _walk, network, weights_of(network, penalty))
    return Problem(walk, _atoms_about(split, query), starts)


def logical_network(split: Split, temperature: float, query: Formula | None = None) -> tuple[Network, Bools]:
    """Return a theory with evidence as a network, weights over τ, and models to start from."""
    atoms = _atoms_about(split, query)
    components = _components_about(split, query)
    hard = [formula for component in components for formula in component.hard]
    soft = [pair for component in components for pair in component.soft]
    weights = [exponent(weight, split.scale, temperature) for _, weight in soft]
    network = network_of(atoms, _parts(hard), [(f, w) for (f, _), w in zip(soft, weights, strict=True)])
    heaviest = sorted(zip(weights, (f for f, _ in soft), strict=True), key=lambda pair: -abs(pair[0]))
    wanted = [formula if weight > 0 else ~formula for weight, formula in heaviest]
    asked = [] if query is None else [left for left in _both(assign(query, split.fixed)) if left is not FALSE]
    starts = _starts(Theory(hard, atoms=atoms), asked, wanted)
    if not starts.shape[1]:
        raise NoAnswer("no world was found that keeps the hard formulae and the evidence: allow more seconds")
    return network, starts


def _components_about(split: Split, query: Formula | None) -> list[Component]:
    """Return the components that share an atom with the query; without one, all."""
    names = set() if query is None else set(atoms_of(assign(query, split.fixed)))
    return [c for c in split.components if query is None or not names.isdisjoint(c.atoms)]


def _atoms_about(split: Split, query: Formula | None) -> tuple[str, ...]:
    """Return the atoms that are not settled, in their order: those of the query's components, or all."""
    names = set(split.atoms) if query is None else set(atoms_of(assign(query, split.fixed)))
    names.update(name for component in _components_about(split, query) for name in component.atoms)
    return tuple(name for name in split.atoms if name in names and name not in split.fixed)


def _walk(network: Network, weights: Weights, x: Bools, rng: np.random.Generator) -> Iterator[Seen]:
    """Yield what compiled chains on a network see; atoms that belong together may flip together."""
    lanes = start(network, weights, x, seed=seed_from(rng))
    groups = groups_of(network)
    for starts in cycle(parts_of(groups) or [groups[1]]):
        advance(lanes, [1.0], every=1)
        if len(starts) > 1:
            jump(lanes, groups[0], starts)
        yield Seen(lanes.x.astype(bool), lanes.broken() == 0, lanes.score())


def _ladders(network: Network, weights: Weights, x: Bools, rng: np.random.Generator) -> Iterator[Seen]:
    """Yield what the cold ends of ladders see."""
    for cold in tempered(network, weights, x, seed=seed_from(rng), on_sweep=lambda _: tick()):
        yield Seen(cold.x.astype(bool), cold.broken == 0, cold.score)


def _parts(hard: Sequence[Formula]) -> list[Formula]:
    """Return the conjuncts of hard formulae: chains are led to each of them by itself."""
    return [part for formula in hard for part in conjuncts(formula)]


def _both(formula: Formula) -> tuple[Formula, Formula]:
    if formula is TRUE or formula is FALSE:
        return formula, (FALSE if formula is TRUE else TRUE)
    return formula, ~formula


def machine_distribution(
    machine: Machine,
    query: Formula | None,
    given: Formula | None,
    *,
    confidence: float,
    temperature: float,
    rng: np.random.Generator,
) -> Problem:
    """Return the machine distribution, definitional atoms computed; evidence is a penalty and a filter."""
    starts = _machine_starts(machine, query, given)
    held, rest = clamps(given)
    if given is None or rest is TRUE:
        place = {name: i for i, name in enumerate(machine.declared)}
        clamped = {place[name]: value for name, value in held.items()}
        network = energies_of(machine, confidence, temperature)
        return Problem(partial(_energies, network, clamped), machine.declared, starts)
    energies = FreeEnergyTarget(machine, confidence, temperature)
    evidence = score_target(machine.declared, [given], [], 1.0)
    target = _Sum(energies, evidence)
    penalty = choose_penalty(cast(ScoreTarget, target), spread(starts, rng), rng)
    return _collapsed(target.with_penalty(penalty), starts)


def _energies(
    network: EnergyNetwork, clamped: dict[int, bool], x: Bools, rng: np.random.Generator
) -> Iterator[Seen]:
    """Yield what compiled chains on free energies see."""
    x = x.copy()
    x[list(clamped)] = np.array(list(clamped.values()), bool)[:, None]
    lanes = start_energy(network, x, seed=seed_from(rng))
    order = np.array([i for i in range(len(x)) if i not in clamped], np.int32)
    while True:
        advance_energy(lanes, [1.0], order=order, every=1)
        # Kept up from flip to flip, equal log weights differ in their last digits, and ranks would see that.
        yield Seen(lanes.x.astype(bool), np.ones(x.shape[1], bool), np.round(lanes.log_weight, _DIGITS))


def block_gibbs(
    machine: Machine,
    query: Formula | None,
    given: Formula | None,
    *,
    confidence: float,
    temperature: float,
) -> Problem:
    """Return block Gibbs on the raw machine: definitional atoms are sampled like all others.

    Literals of the evidence are clamped; the rest of it is a filter.
    """
    held, rest = clamps(given)
    place = {name: i for i, name in enumerate(machine.atoms)}
    clamped = {place[name]: value for name, value in held.items()}
    declared = _machine_starts(machine, query, given)
    starts = np.asarray(machine.visible(declared.T).T > 0.5)

    step = _dense_step(machine, confidence / temperature, clamped) if _is_dense(machine) else None

    def walk(x: Bools, rng: np.random.Generator) -> Iterator[Seen]:
        while True:
            x = (
                gibbs_step(machine, x, rng, confidence=confidence, temperature=temperature, clamped=clamped)
                if step is None
                else step(x, rng)
            )
            score = -machine.free_energy(x.T.astype(float), confidence=confidence, temperature=temperature)
            yield Seen(x, truth(rest, machine.atoms, x), score)

    return Problem(walk, machine.atoms, starts)


def _is_dense(machine: Machine) -> bool:
    """Return whether most weights are there, as in a trained machine: then BLAS multiplies faster."""
    size = machine.weights.shape[0] * machine.weights.shape[1]
    return size >= _LARGE and machine.weights.nnz * 4 >= size


def _dense_step(
    machine: Machine, scale: float, clamped: dict[int, bool]
) -> Callable[[Bools, np.random.Generator], Bools]:
    """Return one step of block Gibbs in single precision."""
    from lbm.reasoning.engine.dense import gibbs

    weights = np.ascontiguousarray(machine.weights.toarray() * scale, np.float32)
    visible, hidden = (bias * scale for bias in (machine.visible_bias, machine.hidden_bias))
    held = {row: float(value) for row, value in clamped.items()}
    return lambda x, rng: gibbs(weights, visible, hidden, x, 1, rng, clamped=held) > 0.5


def clamps(given: Formula | None) -> tuple[dict[str, bool], Formula]:
    """Return the literals among the top-level conjuncts of evidence, and the conjunction of the rest."""
    held: dict[str, bool] = {}
    rest: list[Formula] = []
    waiting = [] if given is None else [given]
    while waiting:
        part = waiting.pop()
        inner = part.args[0] if part.kind == "not" else part
        if part.kind == "and":
            waiting += reversed(part.args)
        elif inner.kind == "atom" and held.setdefault(inner.label, inner is part) is (inner is part):
            continue
        else:
            rest.append(part)
    return held, conjunction(rest) if rest else TRUE


class _Sum:
    """Free energies, and a penalty for evidence that is broken."""

    def __init__(self, energies: FreeEnergyTarget, evidence: ScoreTarget) -> None:
        self.energies, self.evidence = energies, evidence

    @property
    def atoms(self) -> tuple[str, ...]:
        return self.energies.atoms

    @property
    def hard(self) -> int:
        return self.evidence.hard

    @property
    def penalty(self) -> float:
        return self.evidence.penalty

    def odds(self, i: int, x: States) -> Floats:
        return self.energies.odds(i, x) + self.evidence.odds(i, x)

    def log_weight(self, x: States) -> Floats:
        return self.energies.log_weight(x) + self.evidence.log_weight(x)

    def broken(self, x: States) -> Ints:
        return self.evidence.broken(x)

    def score(self, x: States) -> Floats:
        return self.energies.score(x)

    def scale(self) -> tuple[float, float]:
        energies, evidence = self.energies.scale(), self.evidence.scale()
        return min(filter(None, (energies[0], evidence[0])), default=0.0), energies[1] + evidence[1]

    def with_penalty(self, penalty: float) -> _Sum:
        return _Sum(self.energies, self.evidence.with_penalty(penalty))


def _collapsed(target: Target, starts: Bools) -> Problem:
    def walk(x: Bools, rng: np.random.Generator) -> Iterator[Seen]:
        while True:
            x = sweep(target, x, rng)
            yield Seen(x, np.asarray(target.broken(x) == 0), target.score(x))

    return Problem(walk, target.atoms, starts)


# --- where chains start ------------------------------------------------------------------------------


def _starts(theory: Theory, asked: Sequence[Formula], wanted: Sequence[Formula]) -> Bools:
    """Return models of the theory, shape (atoms, worlds): with each formula asked, and each one wanted."""
    found: dict[tuple[bool, ...], None] = {}
    for formula in (*asked, *wanted, *(() if asked or wanted else (TRUE,))):
        if len(found) >= _STARTS:
            break
        world = find_model(theory, given=formula, seconds=at_most(_SECONDS))
        if world is not None:
            found[tuple(world.values())] = None
    if not found:
        world = find_model(theory, seconds=at_most(_SECONDS))
        if world is not None:
            found[tuple(world.values())] = None
    return np.array(list(found), dtype=bool).reshape(len(found), len(theory.atoms)).T


def _machine_starts(machine: Machine, query: Formula | None, given: Formula | None) -> Bools:
    """Return worlds over the declared atoms that keep the evidence, and hard formulae where they can."""
    bare = Theory(atoms=machine.declared)
    whole = bare if machine.theory is None else machine.theory
    asked = [] if query is None else list(_both(query))
    if given is not None:
        asked = [conjunction([given, formula]) for formula in asked] or [given]
    kept = _starts(whole, asked, ())
    # Worlds that break hard formulae have their share too.
    loose = _starts(bare, asked, ())
    both = np.concatenate([kept, loose], axis=1)
    if given is not None:
        both = both[:, truth(given, machine.declared, both)]
    if not both.shape[1]:
        raise NoAnswer("no world was found that keeps the evidence: allow more seconds")
    return both


def spread(starts: Bools, rng: np.random.Generator) -> Bools:
    """Return LANES states: each start a few times, the rest at random."""
    x = rng.random((len(starts), LANES)) < 0.5
    special = np.repeat(starts[:, : LANES // (2 * _REPEATED)], _REPEATED, axis=1)
    x[:, : special.shape[1]] = special
    return x


def truth(formula: Formula, atoms: Sequence[str], x: States) -> Bools:
    """Return in which lanes a formula is true, shape (lanes,)."""
    rows = {name: i for i, name in enumerate(atoms)}
    world: dict[str, Any] = {name: x[rows[name]].astype(bool) for name in atoms_of(formula)}
    return np.broadcast_to(np.asarray(holds(formula, world), bool), x.shape[1:])
