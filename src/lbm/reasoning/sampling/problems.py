"""What chains run on: a distribution as one sweep of all of them, and worlds for them to start from.

Chains that agree may all be wrong together. So they start far apart: some at random, the others in worlds
that a solver finds with the query true, with it false, and with each of the heaviest soft formulae true.
A well that chains neither leave nor enter then keeps some of them apart from the rest, and R-hat tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Final, NamedTuple

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import LimitExceeded, NoAnswer, WeightError
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, atoms_of, conjunction
from lbm.knowledge.theory import Theory
from lbm.knowledge.weighted import counter_cells
from lbm.logic.anatomy import view
from lbm.machine.rbm import Machine
from lbm.reasoning.assign import assign
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.components.apart import Component, Split, exponent
from lbm.reasoning.engine.energy import EnergyNetwork, advance_energy, energies_of, start_energy
from lbm.reasoning.engine.groups import groups_of, parts_of
from lbm.reasoning.engine.lanes import Weights, advance, jump, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES, Network, network_of
from lbm.reasoning.engine.schedule import tuned_penalty
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.engine.tempering import Cold, tempered
from lbm.reasoning.problem import MANY_CELLS
from lbm.reasoning.proof import find_model, refuted_literals, satisfiable
from lbm.reasoning.sampling.machines import Conditioned, gibbs_step, truth

REPEATED: Final = 4
"""Chains side by side that begin in the same world: fewer would be lost among the others."""

HEAVY: Final = 1e12
"""Weights over τ, beside which sums of floats no longer tell what small weights make likely."""

LARGE: Final = 1 << 14
"""Pairs of an atom and a hidden unit from which on a dense machine is multiplied by BLAS."""

_STARTS: Final = 8  # different worlds that chains start from, beside random ones
_STEEP: Final = 1.0  # weights over τ from which on a formula may make a well
_DIGITS: Final = 9  # after the point, of a log weight that is watched
_SECONDS: Final = 5.0  # for a solver to find one of the starts
_FAR_APART: Final = 2.0**40  # weights of a machine
_SHARE: Final = 0.1  # of the time, for that
_COOLING: Final = 128  # sweeps that look for a world of high score
_COLD: Final = 4.0  # and where they end, as a multiple of β
_BLOCKS: Final = 4  # blocks of ladders at most
_LADDERS: Final = 8  # ladders at least, if so many blocks have them


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
    run
        (starts, generator) -> the states that chains begin in, and then what is seen after each sweep.
    atoms
        The names of the rows of a state.
    starts
        Worlds over ``atoms``, shape (atoms, worlds).
    places
        Formulae that a solver was asked for: where they hold, a world is known.
    impossible
        Which of some formulae are proven to be true in no world that counts.
    """

    run: Callable[[Bools, np.random.Generator], Iterator[Seen]]
    atoms: tuple[str, ...]
    starts: Bools
    places: tuple[Formula, ...] = ()
    impossible: Callable[[Sequence[Formula]], frozenset[Formula]] = lambda _: frozenset()

    def walk(self, rng: np.random.Generator) -> Iterator[Seen]:
        """Yield the states that chains begin in, and then what is seen after each sweep."""
        return self.run(self.starts, rng)


# --- what chains run on ----------------------------------------------------------------------------


class Known(NamedTuple):
    """What is known before chains run.

    Worlds to start from, formulae that hold in some of them, and the score of those that hold in every world
    that counts.
    """

    starts: Bools
    places: tuple[Formula, ...]
    earned: float = 0.0


def logical(
    split: Split,
    query: Formula | None,
    temperature: float,
    rng: np.random.Generator,
    *,
    tempering: bool = False,
    more: Bools | None = None,
    budget: Budget = NO_LIMIT,
) -> Problem:
    """Return the logical distribution of a theory with evidence; with a query, of what it depends on.

    Components that share no atom with the query say nothing about it, and are left out. With ``tempering``,
    chains are the cold ends of ladders: there are fewer of them, but none is caught in a well for ever.
    ``more``, shape (atoms, worlds), are further worlds to start from.
    """
    network, known = logical_network(split, temperature, query, rng, budget)
    weights = weights_of(network, penalty_for(network, known.starts, rng, budget))
    run = partial(_ladders, network, weights, budget) if tempering else partial(_walk, network, weights)
    starts = known.starts if more is None else np.concatenate([known.starts, more], axis=1)
    atoms = atoms_about(split, query)
    theory = Theory([f for component in _components_about(split, query) for f in component.hard], atoms=atoms)
    return Problem(run, atoms, _distinct(starts), known.places, partial(_impossible, theory, budget))


def penalty_for(network: Network, starts: Bools, rng: np.random.Generator, budget: Budget) -> float:
    """Return what a broken hard formula costs chains that begin in these worlds; without any, nothing."""
    if not len(network.firm):
        return 0.0
    return tuned_penalty(network, spread(starts, rng), seed=seed_from(rng), on_sweeps=budget.tick)


def logical_network(
    split: Split,
    temperature: float,
    query: Formula | None,
    rng: np.random.Generator,
    budget: Budget = NO_LIMIT,
) -> tuple[Network, Known]:
    """Return a theory with evidence as a network, weights over τ, and models to start from."""
    atoms = atoms_about(split, query)
    hard, firm, pairs, earned = _weighed(split, query, temperature, budget)
    hard += firm
    network = network_of(atoms, _parts(hard), pairs, budget)
    heaviest = sorted(pairs, key=lambda pair: -abs(pair[1]))[:_STARTS]
    wanted = [f if weight > 0 else ~f for f, weight in heaviest if abs(weight) >= _STEEP]
    asked = (
        []
        if query is None
        else [left for left in _both(assign(query, split.fixed, budget)) if left is not FALSE]
    )
    theory = Theory(hard, atoms=atoms)
    best = _annealed(network, seed_from(rng), budget) if pairs or counter_cells(*hard) > MANY_CELLS else None
    known = _starts(theory, asked, wanted, budget, best)
    if not known.starts.shape[1]:
        raise NoAnswer("no world was found that keeps the hard formulae and the evidence: allow more seconds")
    return network, known._replace(earned=earned)


def _weighed(
    split: Split, query: Formula | None, temperature: float, budget: Budget
) -> tuple[list[Formula], list[Formula], list[tuple[Formula, float]], float]:
    """Return hard formulae, soft ones as good as hard, others with weights over τ, and a constant score.

    Next to a weight of HEAVY, sums of floats lose the last digits of small ones. Such a formula is true in
    every world that counts, if all of them can be together: it is as good as hard, and earns its weight in
    every world. If not, chains are not for this theory.
    """
    components = _components_about(split, query)
    hard = [formula for component in components for formula in component.hard]
    pairs = [
        (formula, exponent(weight, split.scale, temperature))
        for component in components
        for formula, weight in component.soft
    ]
    heavy = [(formula, weight) for formula, weight in pairs if abs(weight) >= HEAVY]
    rest = [(formula, weight) for formula, weight in pairs if not abs(weight) >= HEAVY]
    light = sum(abs(weight) for _, weight in rest)
    if not heavy or not light:
        return hard, [], pairs, 0.0
    firm = [formula if weight > 0 else ~formula for formula, weight in heavy]
    theory = Theory(hard, atoms=atoms_about(split, query))
    limited = budget.at_most(_SECONDS)
    if light > HEAVY / 2 or find_model(theory, given=conjunction(firm), budget=limited) is None:
        most = max(abs(weight) for _, weight in pairs)
        raise WeightError(
            f"chains cannot weigh formulae of weight {most:g} against each other and also "
            f"against lighter ones (limit HEAVY, {HEAVY:g} times the temperature): ask for method='exact'"
        )
    return hard, firm, rest, sum(weight for _, weight in heavy if weight > 0)


def with_field(
    split: Split, temperature: float, penalty: float, world: Bools, budget: Budget = NO_LIMIT
) -> tuple[Network, Weights, tuple[Floats, float]]:
    """Return a theory as a network that also tells in how many atoms a state is as in a world.

    With it the weights of its gates, without that number, and the weights, shape (gates,), and the constant
    that make up the number.
    """
    atoms = atoms_about(split, None)
    hard, firm, pairs, _ = _weighed(split, None, temperature, budget)
    hard = _parts(hard) + firm
    literals = [atom(name) if value else ~atom(name) for name, value in zip(atoms, world, strict=True)]
    once, twice = (network_of(atoms, hard, [*pairs, *((f, w) for f in literals)], budget) for w in (1.0, 2.0))
    field, constant = twice.soft - once.soft, twice.earned - once.earned
    values = once.soft - field + penalty * once.hard
    bare = once.earned - constant - penalty * once.broken
    return once, Weights(values, 1.0, bare, float(np.abs(values).sum())), (field, constant)


def _annealed(network: Network, seed: int, budget: Budget) -> Bools | None:
    """Return a world of high score that keeps the hard formulae, shape (atoms, 1); None: none was met."""
    enough = budget.part(_SHARE)
    soft = weights_of(network, 0.0)
    penalty = 2 * float(np.abs(soft.numbers).max(initial=1)) * soft.unit
    x = random_states(network.atoms, seed, lane=1 << 30)
    lanes = start(network, weights_of(network, penalty), x, seed=seed, lane=1 << 30, watch=True)
    betas = np.concatenate([np.linspace(0.05, _COLD, _COOLING), np.full(_COOLING // 8, 1e6)])
    advance(lanes, betas, rule="metropolis", after=lambda _: not enough.spent())
    return np.asarray(lanes.best_x[:, None] > 0) if lanes.found else None


def _impossible(theory: Theory, budget: Budget, formulae: Sequence[Formula]) -> frozenset[Formula]:
    """Return those formulae that are proven to be true in no model of a theory."""
    literals = {formula: _literal(formula) for formula in formulae}
    refuted = refuted_literals(
        theory, [each for each in literals.values() if each is not None], budget=budget.at_most(_SECONDS)
    )
    return frozenset(
        formula
        for formula, literal in literals.items()
        if (
            literal in refuted
            if literal is not None
            else satisfiable(theory, given=formula, budget=budget.at_most(_SECONDS)) is False
        )
    )


def _literal(formula: Formula) -> tuple[str, bool] | None:
    """Return the name and the value that a literal wants; None: it is none."""
    inner = formula.args[0] if formula.kind == "not" else formula
    return (inner.label, inner is formula) if inner.kind == "atom" else None


def _distinct(worlds: Bools) -> Bools:
    """Return each world once, in order."""
    rows = dict.fromkeys(map(bytes, worlds.T.astype(np.uint8)))
    found = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), len(worlds))
    return np.asarray(found.T > 0)


def _components_about(split: Split, query: Formula | None) -> list[Component]:
    """Return the components that share an atom with the query; without one, all."""
    names = set() if query is None else set(atoms_of(assign(query, split.fixed)))
    return [c for c in split.components if query is None or not names.isdisjoint(c.atoms)]


def atoms_about(split: Split, query: Formula | None) -> tuple[str, ...]:
    """Return the atoms that are not settled, in their order: those of the query's components, or all."""
    names = set(split.atoms) if query is None else set(atoms_of(assign(query, split.fixed)))
    names.update(name for component in _components_about(split, query) for name in component.atoms)
    return tuple(name for name in split.atoms if name in names and name not in split.fixed)


def _walk(network: Network, weights: Weights, starts: Bools, rng: np.random.Generator) -> Iterator[Seen]:
    """Yield what compiled chains on a network see; atoms that belong together may flip together."""
    x = spread(starts, rng)
    lanes = start(network, weights, x, seed=seed_from(rng))
    groups = groups_of(network)
    yield Seen(lanes.x.astype(bool), lanes.broken() == 0, lanes.score())
    for begins in cycle(parts_of(groups) or [groups[1]]):
        advance(lanes, [1.0], every=1)
        if len(begins) > 1:
            jump(lanes, groups[0], begins)
        yield Seen(lanes.x.astype(bool), lanes.broken() == 0, lanes.score())


def _ladders(
    network: Network, weights: Weights, budget: Budget, starts: Bools, rng: np.random.Generator
) -> Iterator[Seen]:
    """Yield what the cold ends of ladders see, which begin in the starts once rungs have been found.

    There are as many blocks of ladders as it takes for half of them to begin elsewhere.
    """
    x, seed = spread(starts, rng), seed_from(rng)
    groups = groups_of(network)
    blocks: list[Iterator[Cold]] = []
    firsts: list[Cold] = []
    while len(blocks) < _BLOCKS and (starts.shape[1] or sum(cold.x.shape[1] for cold in firsts) < _LADDERS):
        lane = LANES * len(blocks)
        block = tempered(
            network,
            weights,
            x,
            seed=seed,
            lane=lane,
            groups=groups,
            seeds=starts,
            on_sweep=lambda _: budget.tick(),
        )
        blocks.append(block)
        firsts.append(next(block))
        starts = starts[:, firsts[-1].x.shape[1] // 2 :]
    yield _cold(firsts)
    while True:
        yield _cold([next(block) for block in blocks])


def _cold(blocks: Sequence[Cold]) -> Seen:
    x = np.concatenate([cold.x for cold in blocks], axis=1).astype(bool)
    broken = np.concatenate([cold.broken for cold in blocks])
    return Seen(x, broken == 0, np.concatenate([cold.score for cold in blocks]))


def _parts(hard: Sequence[Formula]) -> list[Formula]:
    """Return the conjuncts of hard formulae: chains are led to each of them by itself."""
    return [part for formula in hard for part in conjuncts(formula)]


def conjuncts(formula: Formula) -> list[Formula]:
    """Return the parts of a hard formula that hold exactly where all of it does, none that is true."""
    seen = view(formula)
    if seen.op == "constant":
        return [] if seen.label else [FALSE]
    if seen.op != "and":
        return [formula]
    parts = [part if positive else ~part for part, positive in seen.parts]
    return [part for part in parts if part not in (TRUE, ~FALSE)]


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
    budget: Budget,
) -> Problem:
    """Return the machine distribution, definitional atoms computed; evidence is a penalty and a filter."""
    _check_weights(machine, confidence / temperature)
    starts = _machine_starts(machine, query, given, budget)
    places, impossible = _machine_places(machine, query, given, budget)
    held, rest = clamps(given)
    if given is None or rest is TRUE:
        place = {name: i for i, name in enumerate(machine.declared)}
        clamped = {place[name]: value for name, value in held.items()}
        network = energies_of(machine, confidence, temperature)
        run = partial(_energies, network, clamped)
        return Problem(run, machine.declared, starts, places, impossible)
    target = Conditioned(machine, confidence, temperature, tuple(conjuncts(given)))
    penalty = target.chosen_penalty(spread(starts, rng), rng)
    return Problem(partial(_collapsed, target, penalty), machine.declared, starts, places, impossible)


def _collapsed(
    target: Conditioned, penalty: float, starts: Bools, rng: np.random.Generator
) -> Iterator[Seen]:
    """Yield what plain chains see that are drawn to the evidence by a penalty."""
    x = spread(starts, rng)
    while True:
        yield Seen(x, target.broken(x) == 0, target.score(x))
        x = target.sweep(x, rng, penalty)


def _check_weights(machine: Machine, scale: float) -> None:
    """Raise where some weights of a machine would be lost beside others."""
    sizes = np.abs(machine.weights.data[machine.weights.data != 0])
    if len(sizes) and sizes.max() > HEAVY / scale and sizes.min() < sizes.max() / _FAR_APART:
        raise WeightError(
            f"this machine has weights from {sizes.min():g} to {sizes.max():g}, farther apart than floats "
            "can tell (limit HEAVY): ask for method='exact'"
        )


def _energies(
    network: EnergyNetwork, clamped: dict[int, bool], starts: Bools, rng: np.random.Generator
) -> Iterator[Seen]:
    """Yield what compiled chains on free energies see."""
    x = spread(starts, rng)
    x[list(clamped)] = np.array(list(clamped.values()), bool)[:, None]
    lanes = start_energy(network, x, seed=seed_from(rng))
    order = np.array([i for i in range(len(x)) if i not in clamped], np.int32)
    while True:
        # Kept up from flip to flip, equal log weights differ in their last digits, and ranks would see that.
        yield Seen(lanes.x.astype(bool), np.ones(x.shape[1], bool), np.round(lanes.log_weight, _DIGITS))
        advance_energy(lanes, [1.0], order=order, every=1)


def block_gibbs(
    machine: Machine,
    query: Formula | None,
    given: Formula | None,
    *,
    confidence: float,
    temperature: float,
    budget: Budget,
) -> Problem:
    """Return block Gibbs on the raw machine: definitional atoms are sampled like all others.

    Literals of the evidence are clamped; the rest of it is a filter.
    """
    _check_weights(machine, confidence / temperature)
    held, rest = clamps(given)
    place = {name: i for i, name in enumerate(machine.atoms)}
    clamped = {place[name]: value for name, value in held.items()}
    declared = _machine_starts(machine, query, given, budget)
    starts = np.asarray(machine.visible(declared.T).T > 0.5)

    step = _dense_step(machine, confidence / temperature, clamped) if _is_dense(machine) else None

    def run(starts: Bools, rng: np.random.Generator) -> Iterator[Seen]:
        x = spread(starts, rng)
        while True:
            score = -machine.free_energy(x.T.astype(float), confidence=confidence, temperature=temperature)
            yield Seen(x, truth(rest, machine.atoms, x), score)
            x = (
                gibbs_step(machine, x, rng, confidence=confidence, temperature=temperature, clamped=clamped)
                if step is None
                else step(x, rng)
            )

    return Problem(run, machine.atoms, starts, *_machine_places(machine, query, given, budget))


def _is_dense(machine: Machine) -> bool:
    """Return whether most weights are there, as in a trained machine: then BLAS multiplies faster."""
    size = machine.weights.shape[0] * machine.weights.shape[1]
    return size >= LARGE and machine.weights.nnz * 4 >= size


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


# --- where chains start ------------------------------------------------------------------------------


def _starts(
    theory: Theory,
    asked: Sequence[Formula],
    wanted: Sequence[Formula],
    budget: Budget,
    best: Bools | None = None,
) -> Known:
    """Return models of the theory: with each formula asked, the best one known, and with each one wanted."""
    found: dict[tuple[bool, ...], None] = {}
    places: dict[Formula, None] = {}

    def look(formula: Formula) -> None:
        world = None
        with suppress(LimitExceeded):  # more clauses than a solver is given
            world = find_model(theory, given=formula, budget=budget.at_most(_SECONDS))
        if world is not None:
            found[tuple(world.values())] = None
            places[formula] = None

    for formula in asked:
        look(formula)
    if best is not None:
        found[tuple(best[:, 0].tolist())] = None
    for formula in wanted:
        if len(found) >= _STARTS:
            break
        look(formula)
    if not found:
        look(TRUE)
    starts = np.array(list(found), dtype=bool).reshape(len(found), len(theory.atoms)).T
    return Known(starts, tuple(formula for formula in places if formula is not TRUE))


def _machine_starts(machine: Machine, query: Formula | None, given: Formula | None, budget: Budget) -> Bools:
    """Return worlds over the declared atoms that keep the evidence, and hard formulae where they can."""
    bare = Theory(atoms=machine.declared)
    whole = bare if machine.theory is None else machine.theory
    asked = [] if query is None else list(_both(query))
    if given is not None:
        asked = [conjunction([given, formula]) for formula in asked] or [given]
    kept = _starts(whole, asked, (), budget).starts
    # Worlds that break hard formulae have their share too.
    loose = _starts(bare, asked, (), budget).starts
    both = np.concatenate([kept, loose], axis=1)
    if given is not None:
        both = both[:, truth(given, machine.declared, both)]
    if not both.shape[1]:
        raise NoAnswer("no world was found that keeps the evidence: allow more seconds")
    return _distinct(both)


def _machine_places(
    machine: Machine, query: Formula | None, given: Formula | None, budget: Budget
) -> tuple[tuple[Formula, ...], Callable[[Sequence[Formula]], frozenset[Formula]]]:
    """Return where worlds of a machine are known, and what tells whether a formula can be true at all."""
    bare = Theory([] if given is None else [given], atoms=machine.declared)
    sides = [] if query is None else [side for side in _both(query) if side is not FALSE and side is not TRUE]
    return tuple(sides), partial(_impossible, bare, budget)


def spread(starts: Bools, rng: np.random.Generator) -> Bools:
    """Return LANES states: each start a few times, the rest at random."""
    x = rng.random((len(starts), LANES)) < 0.5
    special = np.repeat(starts[:, : LANES // (2 * REPEATED)], REPEATED, axis=1)
    x[:, : special.shape[1]] = special
    return x
