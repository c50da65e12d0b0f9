"""Chains (Markov chain Monte Carlo, MCMC), one step as a pure function: what kernels are compared with.

States are arrays of shape (atoms, lanes): a row per atom, and every column, or lane, is one chain.

- *Descent* on a machine, the limit τ = 0 of block Gibbs: :func:`descend`.
- *Collapsed* (Rao-Blackwellised): hidden units are summed out (marginalised) and one atom is updated at a
  time, given the log-odds that a target gives: :func:`sweep`, :func:`run`, :func:`anneal`.

``clamped`` means the same everywhere: atoms that are set to a value and stay there, as a mapping from
row to value, or as a pair (rows, values); values have shape (rows,), or (rows, lanes) to differ by lane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Bools, Floats, Ints, States
from lbm.reasoning.sampling.machines import heat_bath

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine
    from lbm.reasoning.engine.dense import Clamped
    from tests.reference.targets import ScoreTarget, Target

RULES: Final = ("heat bath", "metropolis")
"""How an atom takes its new value, given its log-odds."""

COLD: Final = 6.0
"""Where schedules end: the least weight times β. A flip that loses it has probability exp(-6)."""

OnSweep = Callable[[int, Bools], object]


# --- descent on a machine ----------------------------------------------------------------------------


def descent_step(machine: Machine, x: States, *, clamped: Clamped = None) -> States:
    """Return new visible states after one step of descent, block Gibbs at τ = 0.

        h_j = [Σ_i w_ij x_i + b_j > 0],   then x_i = [Σ_j w_ij h_j + a_i > 0]

    Both sums are the gradients of -E. Where the second is exactly 0 the atom keeps its value, so that
    min_h E(x, h) never rises, and falls wherever an atom moves. [TG21, Equation 10]

    ``x`` has shape (atoms, lanes) over ``machine.atoms``, and the result has its type: an atom that
    starts at 0.5 may stay there.
    """
    start, rows, values = _start(machine.atoms, x, clamped, np.asarray(x).dtype)
    hidden = machine.weights.T @ start.astype(np.float64) + machine.hidden_bias[:, None] > 0
    slope = machine.weights @ hidden.astype(np.float64) + machine.visible_bias[:, None]
    new = np.where(slope == 0, start, (slope > 0).astype(start.dtype))
    new[rows] = values
    return new


def descend(
    machine: Machine, x: States, *, clamped: Clamped = None, limit: int = 10_000
) -> tuple[States, int]:
    """Return the states where descent comes to rest, and after how many steps the last lane did.

    Energy falls with every step that moves an atom, so no state returns and descent ends. With weights
    of very different sizes that may take long: after ``limit`` steps it stops where it is.
    """
    current, _, _ = _start(machine.atoms, x, clamped, np.asarray(x).dtype)
    for steps in range(limit):
        new = descent_step(machine, current, clamped=clamped)
        if np.array_equal(new, current):
            return current, steps
        current = new
    return current, limit


# --- one atom at a time ------------------------------------------------------------------------------


def metropolis(odds: Floats, current: States, u: Floats) -> Bools:
    """Return new values: flipped with probability min(1, P(flipped)/P(current)), ``u`` uniform in [0, 1).

    At odds of exactly 0 it flips with probability 1/2. Detailed balance allows any number there, and 1
    would make an atom in no formula alternate for ever, in all lanes at the same time.
    """
    now = np.asarray(current, dtype=bool)
    change = np.where(now, -odds, odds)
    chance = np.where(change == 0, 0.5, np.exp(np.minimum(change, 0.0)))
    return np.asarray(now ^ (u < chance))


def sweep(
    target: Target,
    x: States,
    rng: np.random.Generator,
    *,
    rule: str = "heat bath",
    beta: float = 1.0,
    order: Sequence[int] | None = None,
    clamped: Clamped = None,
) -> Bools:
    """Return the states after one pass over the atoms, each updated given all the others.

    Parameters
    ----------
    target
        What the chain runs on; the pass leaves its distribution, raised to the power beta, unchanged.
    x
        Shape (atoms, lanes), over ``target.atoms``.
    rng
        Drawn from once, for an array of shape (atoms, lanes): row i serves atom i.
    rule
        ``heat bath``, or ``metropolis``, which moves more but may get into step with the order.
    beta
        Multiplies the odds.
    order
        Rows in the order in which they are updated, none twice; by default all, from the first.
    clamped
        Atoms that keep a given value.
    """
    if rule not in RULES:
        raise ValueError(f"expected the rule 'heat bath' or 'metropolis', got {rule!r}")
    new, rows, _ = _start(target.atoms, x, clamped, np.bool_)
    u = rng.random(new.shape)
    for i in _free(len(new), order, rows):
        odds = beta * target.odds(i, new)
        new[i] = heat_bath(odds, u[i]) if rule == "heat bath" else metropolis(odds, new[i], u[i])
    return new


def run(
    target: Target,
    x: States,
    sweeps: int,
    rng: np.random.Generator,
    *,
    rule: str = "heat bath",
    keep: int | None = None,
    beta: float = 1.0,
    order: Sequence[int] | None = None,
    clamped: Clamped = None,
    on_sweep: OnSweep | None = None,
) -> Bools:
    """Return the states after each of the last ``keep`` sweeps, shape (kept sweeps, atoms, lanes).

    ``keep`` is by default all of them. ``on_sweep(k, x)`` is called after sweep k, counted from 1; when it
    returns False, that sweep was the last. Other parameters are those of :func:`sweep`.
    """
    if sweeps < 0 or (keep is not None and keep < 0):
        raise ValueError(f"expected numbers of sweeps from 0 up, got sweeps={sweeps} and keep={keep}")
    current, _, _ = _start(target.atoms, x, clamped, np.bool_)
    kept: deque[Bools] = deque(maxlen=keep)
    for k in range(1, sweeps + 1):
        current = sweep(target, current, rng, rule=rule, beta=beta, order=order, clamped=clamped)
        kept.append(current)
        if on_sweep is not None and on_sweep(k, current) is False:
            break
    return np.stack(kept) if kept else np.zeros((0, *current.shape), dtype=bool)


# --- from hot to cold --------------------------------------------------------------------------------


class Annealed(NamedTuple):
    """The best state that each lane met.

    ``x`` has shape (atoms, lanes), the others (lanes,): the log weight of x, the hard formulae broken in it
    and the soft score. ``sweeps`` is how many were done.
    """

    x: Bools
    log_weight: Floats
    broken: Ints
    score: Floats
    sweeps: int


def schedule(target: Target, sweeps: int) -> Floats:
    """Return β for every sweep, shape (sweeps,), rising geometrically on the problem's own scale.

    It begins where the greatest possible |odds| of any atom is 1, so that everything moves, and ends
    where the least weight is worth COLD, so that nothing is lost by accident any more.
    """
    if sweeps < 0:
        raise ValueError(f"expected a number of sweeps from 0 up, got {sweeps}")
    smallest, largest = target.scale()
    if not largest:
        return np.ones(sweeps)
    return np.geomspace(1.0 / largest, COLD / smallest, sweeps)


def anneal(
    target: Target,
    x: States,
    betas: ArrayLike,
    rng: np.random.Generator,
    *,
    rule: str = "heat bath",
    order: Sequence[int] | None = None,
    clamped: Clamped = None,
    on_sweep: OnSweep | None = None,
) -> Annealed:
    """Return for each lane the best state met at the start or after any sweep; sweep k runs at ``betas[k]``.

    Of two states the better one breaks fewer hard formulae; if as many, it has the greater score.
    ``on_sweep(k, x)`` is called after sweep k, counted from 1; when it returns False, that sweep was the
    last. Other parameters are those of :func:`sweep`.
    """
    current, _, _ = _start(target.atoms, x, clamped, np.bool_)
    best, broken, score = current.copy(), target.broken(current), target.score(current)
    done = 0
    for beta in np.asarray(betas, dtype=np.float64).tolist():
        current = sweep(target, current, rng, rule=rule, beta=beta, order=order, clamped=clamped)
        done += 1
        now_broken, now_score = target.broken(current), target.score(current)
        better = (now_broken < broken) | ((now_broken == broken) & (now_score > score))
        best[:, better] = current[:, better]
        broken = np.where(better, now_broken, broken)
        score = np.where(better, now_score, score)
        if on_sweep is not None and on_sweep(done, current) is False:
            break
    return Annealed(best, target.log_weight(best), broken, score, done)


def choose_penalty(
    target: ScoreTarget,
    x: States,
    rng: np.random.Generator,
    *,
    share: float = 0.3,
    rounds: int = 16,
    sweeps: int = 20,
    clamped: Clamped = None,
) -> float:
    """Return a penalty under which a good share of states keep all hard formulae and chains still move.

    Pilot chains start from ``x``, shape (atoms, lanes), at penalty 1. After every round of ``sweeps`` sweeps,
    if fewer than ``share`` of the states of its second half are models, it rises to the next of
    ``rounds`` steps, and the chains go on. The steps are geometric, up to

        log(1 + number of hard formulae) + 2 · (greatest Σ |soft weights| of one atom) + 5,

    where breaking a formula pays for nobody; that is returned if no step was enough. A step is small
    enough that the share seldom passes 0.8 where 0.3 is asked for. Whatever the penalty, models among
    the states have the same distribution; it only decides how many there are and how fast they change.
    """
    if not 0 < share < 1 or rounds < 1 or sweeps < 1:
        raise ValueError(
            f"expected a share between 0 and 1, and rounds and sweeps from 1 up, "
            f"got share={share}, rounds={rounds}, sweeps={sweeps}"
        )
    if not target.hard:
        return target.penalty
    _, soft = target.with_penalty(0.0).scale()
    highest = float(np.log1p(target.hard) + 2 * soft + 5)
    current = x
    for penalty in np.geomspace(1.0, highest, rounds).tolist():
        states = run(target.with_penalty(penalty), current, sweeps, rng, clamped=clamped)
        current = states[-1]
        if np.mean([target.broken(state) == 0 for state in states[sweeps // 2 :]]) >= share:
            return float(penalty)
    return highest


# --- at the door -------------------------------------------------------------------------------------


def _start(
    atoms: Sequence[str], x: States, clamped: Clamped, dtype: Any
) -> tuple[States, NDArray[np.intp], States]:
    """Return a copy of the states with clamped atoms set, the rows that are clamped, and their values."""
    new = np.array(x, dtype=dtype)
    if new.ndim != 2 or len(new) != len(atoms):
        raise ValueError(f"expected states of shape ({len(atoms)} atoms, lanes), got shape {new.shape}")
    if clamped is None:
        return new, np.zeros(0, dtype=np.intp), new[:0]
    if isinstance(clamped, Mapping):
        clamped = list(clamped), list(clamped.values())
    rows = np.asarray(clamped[0], dtype=np.intp)
    values = np.asarray(clamped[1], dtype=dtype)
    if rows.ndim != 1 or ((rows < 0) | (rows >= len(new))).any():
        raise ValueError(f"expected rows of atoms from 0 to {len(new) - 1} to be clamped, got {clamped[0]}")
    if values.shape not in (rows.shape, (len(rows), new.shape[1])):
        raise ValueError(
            f"expected clamped values of shape {rows.shape} or {(len(rows), new.shape[1])}, "
            f"got shape {values.shape}"
        )
    values = values.reshape(len(rows), -1) if len(rows) else new[:0]
    new[rows] = values
    return new, rows, values


def _free(atoms: int, order: Sequence[int] | None, clamped: NDArray[np.intp]) -> list[int]:
    """Return the rows to update, in order, without those that are clamped."""
    rows = list(range(atoms)) if order is None else [int(row) for row in order]
    if order is not None and (len(set(rows)) < len(rows) or any(not 0 <= row < atoms for row in rows)):
        raise ValueError(f"expected an order of rows from 0 to {atoms - 1}, none twice, got {order}")
    held = set(clamped.tolist())
    return [row for row in rows if row not in held]
