"""What chains run on: a distribution as one sweep of all of them, and worlds for them to start from.

Chains that agree may all be wrong together. So they start far apart: some at random, the others in worlds
that a solver finds with the query true, with it false, and with each of the heaviest soft formulae true.
A well that chains neither leave nor enter then keeps some of them apart from the rest, and R-hat tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Final, NamedTuple

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import LimitExceeded, NoAnswer, WeightError
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, atoms_of, conjunction
from lbm.knowledge.theory import Theory
from lbm.knowledge.weighted import conjuncts, counter_cells
from lbm.logic.anatomy import view
from lbm.machine.rbm import Machine
from lbm.reasoning.assign import assign
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.engine import dense
from lbm.reasoning.engine.energy import EnergyNetwork, advance_energy, energies_of, start_energy
from lbm.reasoning.engine.groups import groups_of, parts_of
from lbm.reasoning.engine.lanes import Weights, advance, jump, random_states, start, weights_of
from lbm.reasoning.engine.network import LANES, GateNetwork, network_of
from lbm.reasoning.engine.schedule import tuned_penalty
from lbm.reasoning.engine.streams import seed_from
from lbm.reasoning.engine.tempering import Cold, tempered
from lbm.reasoning.exact.apart import Split, exponent
from lbm.reasoning.problem import MANY_CELLS
from lbm.reasoning.proof import find_model, refuted_literals, satisfiable
from lbm.reasoning.sampling.machines import Conditioned, gibbs_step, truth
from lbm.reasoning.wells import Wells

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
class Target:
    """What chains run on: a distribution as chains without end, and worlds for them to start from.

    Attributes
    ----------
    run
        (states that chains begin in, generator) -> what is seen there, and then after each sweep.
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


# --- a theory -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LogicalNetwork:
    """A theory with evidence, ready for chains.

    Attributes
    ----------
    split
        What of it chains are about, with unsettled atoms only.
    hard, soft
        What the network says: formulae that hold, and others with weights over τ.
    network, weights, penalty
        Its gates, what each of them adds to the log weight, and what a broken hard formula costs in that.
    starts, places
        Models to start from, shape (atoms, models), and formulae that hold in some of them.
    earned
        The score of those formulae that hold in every world that counts, over τ: it is not in the network.
    """

    split: Split
    hard: list[Formula]
    soft: list[tuple[Formula, float]]
    network: GateNetwork
    weights: Weights
    penalty: float
    starts: Bools
    places: tuple[Formula, ...]
    earned: float


def logical(
    split: Split,
    query: Formula | None,
    temperature: float,
    rng: np.random.Generator,
    *,
    tempering: bool = False,
    more: Bools | None = None,
    budget: Budget = NO_LIMIT,
) -> Target:
    """Return the logical distribution of a theory with evidence; with a query, of what it depends on.

    Components that share no atom with the query say nothing about it, and are left out. With ``tempering``,
    chains are the cold ends of ladders: there are fewer of them, but none is caught in a well for ever.
    ``more``, shape (atoms, worlds), are further worlds to start from.
    """
    found = logical_network(split, temperature, query, rng, budget)
    network, weights = found.network, found.weights
    starts = _distinct(found.starts if more is None else np.concatenate([found.starts, more], axis=1))
    run = partial(_walk, network, weights)
    if tempering:
        run = partial(_ladders, network, weights, starts, budget)
    impossible = partial(_impossible, hard_theory(found.split), budget)
    return Target(run, found.split.atoms, starts, found.places, impossible)


def _about(split: Split, query: Formula | None, budget: Budget) -> Split:
    """Return the components that share an atom with the query, or all, and of the atoms those not settled."""
    names, components = set(split.atoms), split.components
    if query is not None:
        names = set(atoms_of(assign(query, split.fixed, budget)))
        components = tuple(each for each in components if not names.isdisjoint(each.atoms))
        names.update(name for component in components for name in component.atoms)
    atoms = tuple(name for name in split.atoms if name in names and name not in split.fixed)
    return replace(split, atoms=atoms, components=components)


def hard_theory(split: Split) -> Theory:
    """Return the hard formulae of all components as a theory."""
    return Theory([formula for each in split.components for formula in each.hard], atoms=split.atoms)


def logical_network(
    split: Split,
    temperature: float,
    query: Formula | None,
    rng: np.random.Generator,
    budget: Budget = NO_LIMIT,
) -> LogicalNetwork:
    """Return a theory with evidence ready for chains; with a query, as much as that depends on."""
    split = _about(split, query, budget)
    hard, firm, pairs, earned = _weighed(split, temperature, budget)
    network = network_of(split.atoms, hard_parts([*hard, *firm]), pairs, budget)
    heaviest = sorted(pairs, key=lambda pair: -abs(pair[1]))[:_STARTS]
    wanted = [f if weight > 0 else ~f for f, weight in heaviest if abs(weight) >= _STEEP]
    asked = _sides(None if query is None else assign(query, split.fixed, budget))
    theory = Theory([*hard, *firm], atoms=split.atoms)
    best = None
    if pairs or counter_cells(*hard, *firm) > MANY_CELLS:
        best = _annealed(network, seed_from(rng), budget)
    starts, places = _starts(theory, asked, wanted, budget, best)
    if not starts.shape[1]:
        raise NoAnswer("no world was found that keeps the hard formulae and the evidence: allow more seconds")
    penalty = 0.0
    if len(network.firm):
        penalty = tuned_penalty(network, spread(starts, rng), seed=seed_from(rng), on_sweeps=budget.tick)
    weights = weights_of(network, penalty)
    hard = [*hard_parts(hard), *firm]
    return LogicalNetwork(split, hard, pairs, network, weights, penalty, starts, places, earned)


def _weighed(
    split: Split, temperature: float, budget: Budget
) -> tuple[list[Formula], list[Formula], list[tuple[Formula, float]], float]:
    """Return hard formulae, soft ones as good as hard, others with weights over τ, and a constant score.

    Next to a weight of HEAVY, sums of floats lose the last digits of small ones. Such a formula is true in
    every world that counts, if all of them can be together: it is as good as hard, and earns its weight in
    every world. If not, chains are not for this theory.
    """
    theory = hard_theory(split)
    hard = [statement.formula for statement in theory]
    pairs = [
        (formula, exponent(weight, split.scale, temperature))
        for component in split.components
        for formula, weight in component.soft
    ]
    heavy = [(formula, weight) for formula, weight in pairs if abs(weight) >= HEAVY]
    rest = [(formula, weight) for formula, weight in pairs if not abs(weight) >= HEAVY]
    light = sum(abs(weight) for _, weight in rest)
    if not heavy or not light:
        return hard, [], pairs, 0.0
    firm = [formula if weight > 0 else ~formula for formula, weight in heavy]
    limited = budget.at_most(_SECONDS)
    if light > HEAVY / 2 or find_model(theory, given=conjunction(firm), budget=limited) is None:
        most = max(abs(weight) for _, weight in pairs)
        raise WeightError(
            f"chains cannot weigh formulae of weight {most:g} against each other and also "
            f"against lighter ones (limit HEAVY, {HEAVY:g} times the temperature): ask for method='exact'"
        )
    return hard, firm, rest, sum(weight for _, weight in heavy if weight > 0)


def with_field(
    known: LogicalNetwork, world: Bools, budget: Budget
) -> tuple[GateNetwork, Weights, tuple[Floats, float]]:
    """Return a theory as a network that also tells in how many atoms a state is as in a world.

    With it the weights of its gates, without that number, and the weights, shape (gates,), and the constant
    that make up the number.
    """
    atoms, penalty = known.split.atoms, known.penalty
    literals = [atom(name) if value else ~atom(name) for name, value in zip(atoms, world, strict=True)]
    once, twice = (
        network_of(atoms, known.hard, [*known.soft, *((f, w) for f in literals)], budget) for w in (1.0, 2.0)
    )
    field, constant = twice.soft - once.soft, twice.earned - once.earned
    values = once.soft - field + penalty * once.hard
    bare = once.earned - constant - penalty * once.broken
    return once, Weights(values, 1.0, bare, float(np.abs(values).sum())), (field, constant)


def _annealed(network: GateNetwork, seed: int, budget: Budget) -> list[bool] | None:
    """Return a world of high score that keeps the hard formulae; None: none was met."""
    enough = budget.part(_SHARE)
    soft = weights_of(network, 0.0)
    penalty = 2 * float(np.abs(soft.numbers).max(initial=1)) * soft.unit
    x = random_states(network.atoms, seed, lane=1 << 30)
    lanes = start(network, weights_of(network, penalty), x, seed=seed, lane=1 << 30, watch=True)
    betas = np.concatenate([np.linspace(0.05, _COLD, _COOLING), np.full(_COOLING // 8, 1e6)])
    advance(lanes, betas, rule="metropolis", after=lambda _: not enough.spent())
    return (lanes.best_x > 0).tolist() if lanes.found else None


def _impossible(theory: Theory, budget: Budget, formulae: Sequence[Formula]) -> frozenset[Formula]:
    """Return those formulae that are proven to be true in no model of a theory."""
    literals = {formula: _literal(formula) for formula in formulae}
    refuted = refuted_literals(theory, filter(None, literals.values()), budget=budget.at_most(_SECONDS))
    return frozenset(
        formula
        for formula, literal in literals.items()
        if (
            literal in refuted
            if literal
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


def _walk(network: GateNetwork, weights: Weights, x: Bools, rng: np.random.Generator) -> Iterator[Seen]:
    """Yield what compiled chains on a network see; atoms that belong together may flip together."""
    lanes = start(network, weights, x, seed=seed_from(rng))
    groups = groups_of(network)
    yield Seen(lanes.x.astype(bool), lanes.broken() == 0, lanes.score())
    for begins in cycle(parts_of(groups) or [groups[1]]):
        advance(lanes, [1.0], every=1)
        if len(begins) > 1:
            jump(lanes, groups[0], begins)
        yield Seen(lanes.x.astype(bool), lanes.broken() == 0, lanes.score())


def _ladders(
    network: GateNetwork, weights: Weights, starts: Bools, budget: Budget, x: Bools, rng: np.random.Generator
) -> Iterator[Seen]:
    """Yield what the cold ends of ladders see, which begin in the starts once rungs have been found.

    There are as many blocks of ladders as it takes for half of them to begin elsewhere.
    """
    begin = partial(tempered, network, weights, x, seed=seed_from(rng), groups=groups_of(network))
    blocks: list[Iterator[Cold]] = []
    firsts: list[Cold] = []
    while len(blocks) < _BLOCKS and (starts.shape[1] or sum(cold.x.shape[1] for cold in firsts) < _LADDERS):
        lane = LANES * len(blocks)
        blocks.append(begin(lane=lane, seeds=starts, on_sweep=lambda _: budget.tick()))
        firsts.append(next(blocks[-1]))
        starts = starts[:, firsts[-1].x.shape[1] // 2 :]
    yield _cold(firsts)
    while True:
        yield _cold([next(block) for block in blocks])


def _cold(blocks: Sequence[Cold]) -> Seen:
    x = np.concatenate([cold.x for cold in blocks], axis=1).astype(bool)
    broken = np.concatenate([cold.broken for cold in blocks])
    return Seen(x, broken == 0, np.concatenate([cold.score for cold in blocks]))


def hard_parts(hard: Iterable[Formula]) -> list[Formula]:
    """Return the parts of hard formulae, none that is true: chains are led to each of them by itself.

    Each formula holds exactly where all of its parts do.
    """
    found: list[Formula] = []
    for formula in hard:
        seen = view(formula)
        if seen.op == "and":
            parts = [part if positive else ~part for part, positive in seen.parts]
            found += [part for part in parts if part not in (TRUE, ~FALSE)]
        elif seen.op != "constant" or not seen.label:
            found.append(FALSE if seen.op == "constant" else formula)
    return found


def _sides(query: Formula | None) -> list[Formula]:
    """Return a query and its negation, or what is always true if that is one of them; none of no query."""
    if query is None:
        return []
    return [TRUE] if query is TRUE or query is FALSE else [query, ~query]


# --- a machine ----------------------------------------------------------------------------------------


def machine_distribution(
    machine: Machine,
    query: Formula | None,
    given: Formula | None,
    *,
    confidence: float,
    temperature: float,
    rng: np.random.Generator,
    budget: Budget,
    raw: bool = False,
) -> Target:
    """Return the distribution of a machine: definitional atoms are computed, or ``raw``, sampled like others.

    Raw, chains do block Gibbs; literals of the evidence are clamped, and the rest of it is a filter. Others
    are collapsed; evidence that is more than literals is a penalty and a filter.
    """
    _check_weights(machine, confidence / temperature)
    starts, atoms = _machine_starts(machine, query, given, budget), machine.declared
    literals, rest = clamps(given)
    place = {name: i for i, name in enumerate(atoms)}
    clamped = {place[name]: value for name, value in literals.items()}
    run: Callable[[Bools, np.random.Generator], Iterator[Seen]]
    if raw:
        # Which says what is wrong with these numbers.
        Wells.of(machine, confidence=confidence, temperature=temperature)
        starts, atoms = np.asarray(machine.visible(starts.T).T > 0.5), machine.atoms
        run = partial(_block_gibbs, machine, confidence, temperature, clamped, rest)
    elif rest is TRUE:
        run = partial(_energies, energies_of(machine, confidence, temperature), clamped)
    else:
        parts = hard_parts([] if given is None else [given])
        conditioned = Conditioned(machine, confidence, temperature, tuple(parts))
        run = partial(_collapsed, conditioned, conditioned.chosen_penalty(spread(starts, rng), rng))
    bare = Theory([] if given is None else [given], atoms=machine.declared)
    places = tuple(side for side in _sides(query) if side is not TRUE)
    return Target(run, atoms, starts, places, partial(_impossible, bare, budget))


def _collapsed(target: Conditioned, penalty: float, x: Bools, rng: np.random.Generator) -> Iterator[Seen]:
    """Yield what plain chains see that are drawn to the evidence by a penalty."""
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
    network: EnergyNetwork, clamped: dict[int, bool], x: Bools, rng: np.random.Generator
) -> Iterator[Seen]:
    """Yield what compiled chains on free energies see."""
    x = x.copy()
    x[list(clamped)] = np.array(list(clamped.values()), bool)[:, None]
    lanes = start_energy(network, x, seed=seed_from(rng))
    order = np.array([i for i in range(len(x)) if i not in clamped], np.int32)
    while True:
        # Kept up from flip to flip, equal log weights differ in their last digits, and ranks would see that.
        yield Seen(lanes.x.astype(bool), np.ones(x.shape[1], bool), np.round(lanes.log_weight, _DIGITS))
        advance_energy(lanes, [1.0], order=order, every=1)


def _block_gibbs(
    machine: Machine,
    confidence: float,
    temperature: float,
    clamped: dict[int, bool],
    rest: Formula,
    x: Bools,
    rng: np.random.Generator,
) -> Iterator[Seen]:
    """Yield what chains see that do block Gibbs on a raw machine; only states where ``rest`` holds count."""
    step = _block_step(machine, confidence, temperature, clamped)
    while True:
        score = -machine.free_energy(x.T.astype(float), confidence=confidence, temperature=temperature)
        yield Seen(x, truth(rest, machine.atoms, x), score)
        x = step(x, rng)


def _block_step(
    machine: Machine, confidence: float, temperature: float, clamped: dict[int, bool]
) -> Callable[[Bools, np.random.Generator], Bools]:
    """Return one step of block Gibbs; by BLAS if most weights are there, as in a trained machine."""
    size = machine.weights.shape[0] * machine.weights.shape[1]
    if size < LARGE or machine.weights.nnz * 4 < size:
        return partial(gibbs_step, machine, confidence=confidence, temperature=temperature, clamped=clamped)
    scale = confidence / temperature
    weights = np.ascontiguousarray(machine.weights.toarray() * scale, np.float32)
    visible, hidden = (bias * scale for bias in (machine.visible_bias, machine.hidden_bias))
    held = {row: float(value) for row, value in clamped.items()}
    return lambda x, rng: dense.gibbs(weights, visible, hidden, x, 1, rng, clamped=held) > 0.5


def clamps(given: Formula | None) -> tuple[dict[str, bool], Formula]:
    """Return the literals among the top-level conjuncts of evidence, and the conjunction of the rest."""
    held: dict[str, bool] = {}
    rest: list[Formula] = []
    for part in [] if given is None else conjuncts(given):
        literal = _literal(part)
        if literal is None or held.setdefault(*literal) is not literal[1]:
            rest.append(part)
    return held, conjunction(rest) if rest else TRUE


# --- where chains start ------------------------------------------------------------------------------


def _starts(
    theory: Theory,
    asked: Sequence[Formula],
    wanted: Sequence[Formula],
    budget: Budget,
    best: Sequence[bool] | None = None,
) -> tuple[Bools, tuple[Formula, ...]]:
    """Return models of the theory: with each formula asked, the best one known, and with each one wanted.

    With them, shape (atoms, models), the formulae that hold in some of them.
    """
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
        found[tuple(best)] = None
    for formula in wanted:
        if len(found) >= _STARTS:
            break
        look(formula)
    if not found:
        look(TRUE)
    starts = np.array(list(found), dtype=bool).reshape(len(found), len(theory.atoms)).T
    return starts, tuple(formula for formula in places if formula is not TRUE)


def _machine_starts(machine: Machine, query: Formula | None, given: Formula | None, budget: Budget) -> Bools:
    """Return worlds over the declared atoms that keep the evidence, and hard formulae where they can."""
    bare = Theory(atoms=machine.declared)
    whole = bare if machine.theory is None else machine.theory
    asked = _sides(query)
    if given is not None:
        asked = [conjunction([given, formula]) for formula in asked] or [given]
    # Worlds that break hard formulae have their share too.
    both = np.concatenate([_starts(theory, asked, (), budget)[0] for theory in (whole, bare)], axis=1)
    if given is not None:
        both = both[:, truth(given, machine.declared, both)]
    if not both.shape[1]:
        raise NoAnswer("no world was found that keeps the evidence: allow more seconds")
    return _distinct(both)


def spread(starts: Bools, rng: np.random.Generator) -> Bools:
    """Return LANES states: each start a few times, the rest at random."""
    x = rng.random((len(starts), LANES)) < 0.5
    special = np.repeat(starts[:, : LANES // (2 * REPEATED)], REPEATED, axis=1)
    x[:, : special.shape[1]] = special
    return x
