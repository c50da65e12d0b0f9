"""Answers from chains, where no exact one is in reach: estimates that say how far they can be trusted.

Chains that agree may all be wrong together. So they start far apart: some at random, the others in worlds
that a solver finds with the query true, with it false, and with each of the heaviest soft formulae true.
A well that chains neither leave nor enter then keeps some of them apart from the rest, and R-hat tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from lbm.errors import NoAnswer
from lbm.knowledge.formula import FALSE, TRUE, Formula, atoms_of, conjunction, holds
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.reasoning.clock import at_most
from lbm.reasoning.components.apart import Split, assign, exponent
from lbm.reasoning.sampling.chains import Bools, choose_penalty, gibbs_step, sweep
from lbm.reasoning.sampling.diagnostics import Estimate, estimate
from lbm.reasoning.sampling.targets import (
    Floats,
    FreeEnergyTarget,
    Ints,
    ScoreTarget,
    States,
    Target,
    score_target,
)
from lbm.reasoning.solvers.proof import find_model

LANES: Final = 64
"""Chains that run side by side."""

FIRST: Final = 256
"""Sweeps after which convergence is looked at for the first time; then whenever their number has doubled."""

MOST: Final = 16_384
"""Sweeps after which chains that do not agree are given up."""

MAX_UPDATES: Final = 400_000_000
"""Updates of one atom in one chain that a run may take, whatever its size."""

MAX_STATES: Final = 1 << 28
"""Truth values of states that may be kept."""

_STARTS: Final = 8  # different worlds that chains start from, beside random ones
_REPEATED: Final = 4  # chains from each of them: fewer would be lost among the others
_WATCHED: Final = 64  # atoms up to which each is watched for convergence
_JUDGED: Final = 512  # states of each chain by which all atoms are judged
_SECONDS: Final = 5.0  # for a solver to find one of the starts

_Kept = tuple[Bools, Bools, Floats]
"""The states of all chains after a sweep, which of them count, and their scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What chains run on: a target, the evidence they must keep, and worlds to start from.

    Attributes
    ----------
    step
        One sweep of all chains: (states, generator) -> states, of shape (atoms, lanes).
    atoms
        The names of the rows of a state.
    valid, score
        Which states count, shape (lanes,), and a quantity to watch beside the query.
    starts
        Worlds over ``atoms``, shape (atoms, worlds).
    """

    step: Callable[[States, np.random.Generator], Bools]
    atoms: tuple[str, ...]
    valid: Callable[[States], Bools]
    score: Callable[[States], Floats]
    starts: Bools


# --- what chains run on ----------------------------------------------------------------------------


def logical(split: Split, query: Formula | None, temperature: float, rng: np.random.Generator) -> Problem:
    """Return the logical distribution of a theory with evidence; with a query, of what it depends on.

    Components that share no atom with the query say nothing about it, and are left out.
    """
    names = set(split.atoms) if query is None else set(atoms_of(assign(query, split.fixed)))
    components = [c for c in split.components if query is None or not names.isdisjoint(c.atoms)]
    names.update(name for component in components for name in component.atoms)
    atoms = tuple(name for name in split.atoms if name in names and name not in split.fixed)
    hard = [formula for component in components for formula in component.hard]
    soft = [pair for component in components for pair in component.soft]
    weights = [exponent(weight, split.scale, temperature) for _, weight in soft]
    target = score_target(atoms, hard, [(f, w) for (f, _), w in zip(soft, weights, strict=True)], 1.0)
    theory = Theory(hard, atoms=atoms)
    heaviest = sorted(zip(weights, (f for f, _ in soft), strict=True), key=lambda pair: -abs(pair[0]))
    wanted = [formula if weight > 0 else ~formula for weight, formula in heaviest]
    asked = [] if query is None else [left for left in _both(assign(query, split.fixed)) if left is not FALSE]
    starts = _starts(theory, asked, wanted)
    if not starts.shape[1]:
        raise NoAnswer("no world was found that keeps the hard formulae and the evidence: allow more seconds")
    first = _spread(starts, rng)
    tuned = target.with_penalty(choose_penalty(target, first, rng)) if hard else target
    return _collapsed(tuned, starts)


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
    energies = FreeEnergyTarget(machine, confidence, temperature)
    starts = _machine_starts(machine, query, given)
    if given is None:
        return _collapsed(energies, starts)
    evidence = score_target(machine.declared, [given], [], 1.0)
    target = _Sum(energies, evidence)
    penalty = choose_penalty(cast(ScoreTarget, target), _spread(starts, rng), rng)
    return _collapsed(target.with_penalty(penalty), starts)


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

    def valid(x: States) -> Bools:
        return _truth(rest, machine.atoms, x)

    return Problem(
        lambda x, rng: gibbs_step(
            machine, x, rng, confidence=confidence, temperature=temperature, clamped=clamped
        ),
        machine.atoms,
        valid,
        lambda x: -machine.free_energy(x.T.astype(float), confidence=confidence, temperature=temperature),
        starts,
    )


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
    return Problem(
        lambda x, rng: sweep(target, x, rng),
        target.atoms,
        lambda x: np.asarray(target.broken(x) == 0),
        target.score,
        starts,
    )


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
        both = both[:, _truth(given, machine.declared, both)]
    if not both.shape[1]:
        raise NoAnswer("no world was found that keeps the evidence: allow more seconds")
    return both


def _spread(starts: Bools, rng: np.random.Generator) -> Bools:
    """Return LANES states: each start a few times, the rest at random."""
    x = rng.random((len(starts), LANES)) < 0.5
    special = np.repeat(starts[:, : LANES // (2 * _REPEATED)], _REPEATED, axis=1)
    x[:, : special.shape[1]] = special
    return x


def _truth(formula: Formula, atoms: Sequence[str], x: States) -> Bools:
    """Return in which lanes a formula is true, shape (lanes,)."""
    rows = {name: i for i, name in enumerate(atoms)}
    world: dict[str, Any] = {name: x[rows[name]].astype(bool) for name in atoms_of(formula)}
    return np.broadcast_to(np.asarray(holds(formula, world), bool), x.shape[1:])


# --- estimates ---------------------------------------------------------------------------------------


def ask(
    problem: Problem,
    query: Formula,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    deadline: float = np.inf,
) -> tuple[Estimate, int]:
    """Return how likely the query is among valid states, and after how many sweeps that was said.

    The last half of the sweeps counts. ``sweeps`` asks for so many; otherwise there are FIRST, and twice as
    many as long as chains disagree, up to MOST or as many as MAX_UPDATES allows, or until the deadline.
    """
    true: list[Bools] = []
    valid: list[Bools] = []
    also: list[Floats] = []
    watched = [i for i, _ in enumerate(problem.atoms)] if len(problem.atoms) <= _WATCHED else []
    done, said = 0, None
    for x in _states(problem, rng, _limit(problem, sweeps)):
        true.append(_truth(query, problem.atoms, x))
        keeps = problem.valid(x)
        valid.append(keeps)
        also.append(np.concatenate([problem.score(x)[None], x[watched]]))
        done += 1
        late = time.monotonic() > deadline
        if late or (sweeps is None and done >= FIRST and done & (done - 1) == 0):
            said = _judge(true, valid, also)
            if late or said.converged:
                return said, done
    if said is None or done & (done - 1):
        said = _judge(true, valid, also)
    return said, done


def marginals(
    problem: Problem, rng: np.random.Generator, *, sweeps: int | None = None, deadline: float = np.inf
) -> tuple[dict[str, Estimate], int]:
    """Return how likely every atom is among valid states, and after how many sweeps that was said.

    Sweeps and the deadline are those of :func:`ask`; chains go on until all atoms that vary have converged.
    """
    kept: list[_Kept] = []
    found: dict[str, Estimate] = {}
    done = 0
    for x in _states(problem, rng, _limit(problem, sweeps)):
        done += 1
        late = time.monotonic() > deadline
        kept.append((x, problem.valid(x), problem.score(x)))
        if late or (sweeps is None and done >= FIRST and done & (done - 1) == 0):
            found = _all(problem, kept)
            if late or all(each.converged for each in found.values()):
                return found, done
    return _all(problem, kept) if done & (done - 1) or not found else found, done


def _all(problem: Problem, kept: Sequence[_Kept]) -> dict[str, Estimate]:
    """Return the estimate of every atom."""
    last = _thin(kept[len(kept) // 2 :])
    valid = np.array([keeps for _, keeps, _ in last]).T
    also = np.array([[score, keeps] for _, keeps, score in last], dtype=float).transpose(1, 2, 0)
    return {
        name: estimate(np.array([x[i] for x, _, _ in last]).T, valid, also=also)
        for i, name in enumerate(problem.atoms)
    }


def _thin(kept: Sequence[_Kept]) -> Sequence[_Kept]:
    """Return states far enough apart that judging every atom by them takes no longer than making them."""
    return kept[:: max(1, len(kept) // _JUDGED)]


def _limit(problem: Problem, sweeps: int | None) -> int:
    """Return how many sweeps there may be."""
    if sweeps is not None:
        return sweeps
    return max(2 * FIRST, min(MOST, MAX_UPDATES // (LANES * max(1, len(problem.atoms)))))


def _states(problem: Problem, rng: np.random.Generator, limit: int) -> Iterator[Bools]:
    x = _spread(problem.starts, rng)
    for _ in range(limit):
        x = problem.step(x, rng)
        yield x


def _judge(true: Sequence[Bools], valid: Sequence[Bools], also: Sequence[Floats]) -> Estimate:
    last = len(true) // 2
    series = np.moveaxis(np.array(also[last:]), 0, -1)  # (series, lanes, draws)
    return estimate(np.array(true[last:]).T, np.array(valid[last:]).T, also=series)


def draw(
    problem: Problem,
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    deadline: float = np.inf,
) -> tuple[Bools, Estimate, int]:
    """Return ``n`` states of chains, shape (n, atoms), how good they are, and the number of sweeps.

    Valid states of the last half of the sweeps are taken, as far apart as their number allows.
    """
    limit = _limit(problem, sweeps)
    kept: list[_Kept] = []
    done = 0
    every = 1  # states are kept after every so many sweeps, fewer as there are more
    for x in _states(problem, rng, limit):
        done += 1
        late = time.monotonic() > deadline
        if done % every == 0:
            kept.append((x, problem.valid(x), problem.score(x)))
            if len(kept) * x.size > MAX_STATES:
                kept, every = kept[1::2], 2 * every
        checked = sweeps is None and done >= FIRST and done & (done - 1) == 0
        if late or (checked and _enough(kept, n) and _watch(problem, kept).converged):
            break
    last = kept[len(kept) // 2 :]
    states = np.concatenate([x[:, keeps].T for x, keeps, _ in last])
    if len(states) < n:
        raise NoAnswer(
            f"after {done} sweeps {len(states)} states count, fewer than the {n} asked for: "
            "allow more sweeps, or ask for fewer"
        )
    at = np.arange(n) * len(states) // n
    return states[at], _watch(problem, kept), done


def _enough(kept: Sequence[_Kept], n: int) -> bool:
    return sum(int(keeps.sum()) for _, keeps, _ in kept[len(kept) // 2 :]) >= n


def _watch(problem: Problem, kept: Sequence[_Kept]) -> Estimate:
    """Return the estimate of the atom of which the chains know least, among those that vary."""
    few = replace(problem, atoms=problem.atoms[:_WATCHED])
    varying = [each for each in _all(few, kept).values() if 0 < each.probability < 1]
    if varying:
        return min(varying, key=lambda each: (each.converged, each.effective_size))
    last = _thin(kept[len(kept) // 2 :])
    valid = np.array([keeps for _, keeps, _ in last]).T
    return estimate(valid, valid, also=np.array([[score] for _, _, score in last]).transpose(1, 2, 0))
