"""Search that knows structure: groups of atoms are one variable, and hard rules weigh as much as they need.

What an annealed network takes for so many single atoms is told apart here: groups, cardinalities, what ties
variables hard. Kicks and tabu walks then look for better worlds, in rounds like those of annealing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Ints
from lbm.errors import LimitExceeded, TooManyCubes
from lbm.knowledge.clauses import Clauses, as_clause, definitional
from lbm.knowledge.formula import CARDINALITIES, FALSE, TRUE, Formula, atoms_of, bounds
from lbm.knowledge.weighted import check_cells, conjuncts, negated
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.engine.alternatives import Count
from lbm.reasoning.engine.gains import (
    MAX_SUM,
    STEP,
    STREAM,
    Slots,
    State,
    heavy_of,
    state_of,
    weigh,
)
from lbm.reasoning.engine.kicks import kicks, tabu
from lbm.reasoning.engine.presolve import presolve
from lbm.reasoning.engine.streams import key_of, philox
from lbm.reasoning.engine.values import MAX_SIZE, Values, values_of
from lbm.reasoning.problem import Problem
from lbm.reasoning.search.annealed import Round

WORK: Final = (4_000_000, 256_000_000)
"""Work of the first round, in numbers that are read, and the most: it doubles."""

CALL: Final = 2_000_000
"""Work of one compiled call, which Ctrl-C has to wait for."""

_MANY: Final = 3  # values of a group from which on it is more than a formula of two atoms
_LENGTHS: Final = (0, 4, 0, 64)  # of late acceptance, in turn; 0: kicks are cooled
_LIGHT: Final = (8, 5, 11, 2)  # hard rules weigh so many powers of two less in tabu walks, in turn
_CALM: Final = 100  # moves after which they are weighed anew
_SMALL_ATOMS: Final = 10  # of a formula that is taken apart into cubes, and how many of those it may have
_CUBES: Final = 64
_LOOK: Final = 1024  # formulae between two looks at the clock


@dataclass(frozen=True, slots=True, eq=False)
class Valued:
    """A problem as variables of many values, and the way back to all atoms.

    Attributes
    ----------
    values
        The variables, over the atoms that are left.
    rows
        The number of each of these among all atoms and definitions.
    base
        A world that has all other atoms as they must be, definitions behind them.
    atoms
        How many atoms there are without definitions.
    exact
        Whether weights are what they were, divided by what divides them all; else they are rounded.
    divisor
        What they were divided by.
    lost
        The weight that is lost in every world, as far as it was found out: what a world loses is this and
        ``divisor`` times what its state costs.
    """

    values: Values
    rows: NDArray[np.intp]
    base: Bools
    atoms: int
    exact: bool
    divisor: int
    lost: int
    heavy: int

    @property
    def grouped(self) -> bool:
        """Whether groups of three values or more hold most of the atoms."""
        groups = self.values.groups
        return 2 * int(groups[groups >= _MANY].sum()) > len(self.rows)

    def world(self, current: Slots | Ints) -> list[bool]:
        """Return the world over all atoms that a state stands for."""
        found = self.base.copy()
        found[self.rows] = self.values.atoms(current)
        values: list[bool] = found[: self.atoms].tolist()
        return values

    def slots(self, world: Sequence[bool]) -> Slots:
        """Return the state that is most like a world over all atoms."""
        full = self.base.copy()
        full[: self.atoms] = world
        return self.values.slots(full[self.rows])


# --- from problems -----------------------------------------------------------------------------------


def valued_of(problem: Problem, budget: Budget = NO_LIMIT) -> Valued | None:
    """Return a problem as variables of many values, for :func:`improve`; raise NoAnswer if time is over.

    None: nothing is soft, which focused walks are better at; nothing is hard and no atoms are grouped, where
    annealing is; it is too large; or what is hard was found to leave no world.
    """
    if not problem.has_soft:
        return None
    plain = problem.weighted_clauses()
    if plain is not None and plain.weights.all():
        return None
    with suppress(LimitExceeded, TooManyCubes):
        return _made(*_said(problem, budget), len(problem.atoms))
    return None


def _said(problem: Problem, budget: Budget) -> tuple[Clauses, list[int], list[Count]]:
    """Return what a problem says as clauses with whole weights, 0 for hard ones, and cardinalities."""
    plain = problem.weighted_clauses()
    if plain is not None:
        return plain, plain.weights.tolist(), []
    place = {name: i for i, name in enumerate(problem.atoms, start=1)}
    clauses, others = problem.flat
    weights = problem.weights
    mine = [weights[owner] for owner in clauses.owners.tolist()]
    rows: list[list[int]] = []
    prices: list[int] = []
    counts: list[Count] = []
    deep: list[tuple[Formula, int]] = []
    parts: list[tuple[Formula, int]] = []
    for number, formula in others.items():
        weight = weights[number]
        if weight:
            parts.append((formula if weight > 0 else negated(formula), abs(weight)))
        else:
            parts += [(part, 0) for part in conjuncts(formula)]
    if problem.evidence is not None:
        parts += [(part, 0) for part in conjuncts(problem.evidence)]
    below = np.array(mine, object) < 0 if mine else np.zeros(0, bool)
    for row, weight in zip(clauses.rows(), mine, strict=True) if below.any() else ():
        if weight < 0:  # lost where any literal is true
            _count(row, 0, 0, -weight, counts, rows, prices)
    for number, (formula, weight) in enumerate(parts):
        if not number % _LOOK:
            budget.tick()
        if formula is TRUE:
            continue
        clause = [] if formula is FALSE else as_clause(formula)
        if clause is not None:
            rows.append([place[name] if wanted else -place[name] for name, wanted in clause])
            prices.append(weight)
            continue
        counted = _counted(formula, place)
        if counted is not None and _count(*counted, weight, counts, rows, prices):
            continue
        cubes = _cubes(formula, place)
        if cubes is None:
            deep.append((formula, weight))
            continue
        rows += cubes
        prices += [weight] * len(cubes)
    variables = len(place)
    if deep:
        check_cells(*(formula for formula, _ in deep))
        definitions, roots, free = definitional(
            [formula for formula, _ in deep], place, variables + 1, budget.tick
        )
        rows += [*definitions, *([root] for root in roots)]
        prices += [0] * len(definitions) + [weight for _, weight in deep]
        variables = free - 1
    found = replace(clauses.where(~below), weights=np.zeros(int((~below).sum()), np.int64), groups=None)
    more = Clauses.of(rows, variables=variables)
    kept = [weight for weight in mine if weight >= 0]
    return replace(found.joined(more), variables=variables), [*kept, *prices], counts


def _counted(formula: Formula, place: dict[str, int]) -> tuple[list[int], int, int] | None:
    """Return the literals that a formula counts, and how many of them may be true; None: it is another."""
    sign = 1
    if formula.kind == "not":
        formula, sign = formula.args[0], -1
    if formula.kind == "and" and sign > 0:
        parts = conjuncts(formula)
        least = most = len(parts)
    elif formula.kind == "or" and sign < 0:  # none of them
        parts = conjuncts(negated_parts(formula))
        least = most = len(parts)
        sign = 1
    elif formula.kind in CARDINALITIES:
        parts = list(formula.args)
        least, most = bounds(formula)
    else:
        return None
    literals = []
    for part in parts:
        inner = part.args[0] if part.kind == "not" else part
        if inner.kind != "atom":
            return None
        literals.append(place[inner.label] if inner is part else -place[inner.label])
    if len(set(map(abs, literals))) < len(literals):
        return None
    if sign < 0:
        if least <= 0:
            least, most = most + 1, len(parts)
        elif most >= len(parts):
            least, most = 0, least - 1
        else:
            return None
    return literals, least, most


def negated_parts(formula: Formula) -> Formula:
    """Return the conjunction that says that no part of a disjunction is true."""
    left, right = formula.args
    return _denied(left) & _denied(right)


def _denied(formula: Formula) -> Formula:
    return negated_parts(formula) if formula.kind == "or" else negated(formula)


def _count(
    literals: list[int],
    least: int,
    most: int,
    weight: int,
    counts: list[Count],
    rows: list[list[int]],
    prices: list[int],
) -> bool:
    """Note a cardinality, or the clauses that it is; return False if it counts an atom twice."""
    if len(set(map(abs, literals))) < len(literals):
        return False
    size = len(literals)
    if least <= 0 and most >= size:
        return True
    if least > most or least > size or most < 0:
        rows.append([])
        prices.append(weight)
    elif least == 1 and most >= size:
        rows.append(literals)
        prices.append(weight)
    elif least <= 0 and most == size - 1:
        rows.append([-literal for literal in literals])
        prices.append(weight)
    elif not weight and (least == size or most == 0):
        rows += [[literal if least == size else -literal] for literal in literals]
        prices += [0] * size
    else:
        codes = tuple([2 * (abs(literal) - 1) + (literal < 0) for literal in literals])
        counts.append(Count(codes, max(0, least), min(size, most), weight))
        if not weight and least == 1 and most == 1:
            rows.append(literals)  # for presolve
            prices.append(0)
    return True


def _cubes(formula: Formula, place: dict[str, int]) -> list[list[int]] | None:
    """Return clauses: a world breaks one of them where it breaks the formula, else none; None: too many."""
    from lbm.logic.sdnf import to_sdnf

    if len(atoms_of(formula)) > _SMALL_ATOMS:
        return None
    with suppress(TooManyCubes):
        cubes = to_sdnf(negated(formula), method="full" if len(atoms_of(formula)) < 4 else "diagram")
        if len(cubes) <= _CUBES:
            return [[-sign * place[name] for name, sign in cube.literals] for cube in cubes]
    return None


def _made(clauses: Clauses, weights: list[int], counts: list[Count], atoms: int) -> Valued | None:
    """Return clauses and cardinalities as variables; None: as :func:`valued_of` says."""
    if len(clauses.literals) + sum(len(rule.codes) for rule in counts) > MAX_SIZE:
        return None
    soft = [weight for weight in weights if weight] + [rule.weight for rule in counts if rule.weight]
    divisor, exact = math.gcd(*soft) or 1, True
    if sum(soft) // divisor >= MAX_SUM:
        divisor, exact = -(-sum(soft) // (MAX_SUM // 2)), False
    if divisor > 1:
        weights = [weight and max(1, weight // divisor) for weight in weights]
        counts = [rule._replace(weight=rule.weight and max(1, rule.weight // divisor)) for rule in counts]
    left = presolve(replace(clauses, weights=np.array(weights, np.int64)), pure=not counts)
    if left is None:
        return None
    inside = np.zeros(clauses.variables, bool)
    inside[left.kept - 1] = True
    open_counts: list[tuple[tuple[int, ...], int, int, int]] = []
    for rule in counts:
        known = sum(left.fixed[code >> 1] == (-1 if code & 1 else 1) for code in rule.codes)
        codes = tuple([code for code in rule.codes if not left.fixed[code >> 1]])
        open_counts.append((codes, rule.least - int(known), rule.most - int(known), rule.weight))
        inside[[code >> 1 for code in codes]] = True
    number = np.cumsum(inside) - 1
    rows = np.flatnonzero(inside)
    old = left.problem
    literals = (number[left.kept[np.abs(old.literals) - 1] - 1] + 1) * np.sign(old.literals)
    problem = replace(old, literals=literals.astype(np.int32), variables=len(rows))
    extra: list[list[int]] = []
    prices: list[int] = []
    final: list[Count] = []
    for codes, least, most, weight in open_counts:
        literals_left = [int(number[code >> 1] + 1) * (-1 if code & 1 else 1) for code in codes]
        _count(literals_left, least, most, weight, final, extra, prices)
    if any(not row and not price for row, price in zip(extra, prices, strict=True)):
        return None
    lost = left.lost + sum(price for row, price in zip(extra, prices, strict=True) if not row)
    known = {tuple(rule.codes) for rule in final if not rule.weight and rule.least == rule.most == 1}
    more = [
        (row, price)
        for row, price in zip(extra, prices, strict=True)
        if row and (price or tuple(2 * (abs(x) - 1) + (x < 0) for x in row) not in known)
    ]
    problem = problem.joined(
        Clauses.of([row for row, _ in more], [price for _, price in more], variables=len(rows))
    )
    values = values_of(len(rows), problem, final)
    if values is None:
        return None
    space = values.space
    if not len(values.groups) and not space.hard.any() and (space.pair_rule < 0).all():
        return None
    heavy = heavy_of(space)
    if not heavy:
        return None
    return Valued(values, rows, left.fixed > 0, atoms, exact, divisor, lost * divisor, heavy)


# --- searching ---------------------------------------------------------------------------------------


def improve(
    valued: Valued,
    seed: int,
    number: int,
    *,
    start: Sequence[bool] | None = None,
    found: Callable[[list[bool]], object] | None = None,
    budget: Budget = NO_LIMIT,
    best: Callable[[], Sequence[bool] | None] | None = None,
) -> Round:
    """Do one round. What it finds depends on its number, seed and start only, if the clock does not end it.

    Later rounds are longer, and rounds in a row differ in how they search.

    Parameters
    ----------
    start
        A world to begin from.
    found
        Gets worlds over all atoms as they are met, each better than the one before.
    budget
        Asked between compiled calls whether to stop.
    best
        Returns the best world that anybody knows, which the round begins from where there is one.
    """
    space = valued.values.space
    given = best() if best is not None else None
    given = start if given is None else given
    anew = given is None or number % 3 == 2
    current = _first(valued, seed, number) if given is None or anew else valued.slots(given)
    state = state_of(space, current, heavy=valued.heavy, seed=seed, number=number)
    told = None if anew else state.cost
    for _ in _calls(valued, state, number):
        cost = state.cost
        if cost is not None and (told is None or cost < told):
            told = cost
            if found is not None:
                found(valued.world(state.best))
        if budget.spent():
            break
    sweeps = int(state.notes[STEP]) // max(1, space.variables)
    return Round([] if state.cost is None else [valued.world(state.best)], sweeps)


def _calls(valued: Valued, state: State, number: int) -> Iterator[None]:
    """Do the calls of a round, one after the other."""
    work = min(WORK[0] << min(number // 4, 30), WORK[1])
    calls = max(1, work // CALL)
    if number % 2 == 0:
        length = _LENGTHS[number // 2 % len(_LENGTHS)]
        for _ in range(calls):
            kicks(state, length=length, work=CALL)
            yield
        return
    weigh(state, max(1, valued.heavy >> _LIGHT[number // 2 % len(_LIGHT)]))
    step = max(1, valued.heavy >> 1 + _LIGHT[number // 2 % len(_LIGHT)])
    idle = 20_000 + 20 * valued.values.space.variables
    for _ in range(calls):
        tabu(state, step=step, calm=_CALM, idle=idle, work=CALL)
        yield


def _first(valued: Valued, seed: int, number: int) -> Slots:
    """Return a state to begin from: random values, the cheap ones in the first round."""
    space = valued.values.space
    words = philox((np.arange(len(space.owner)), 1, number, STREAM), key_of(seed))[0]
    keys = (words, space.price, space.owner) if number % 4 == 0 else (words, space.owner)
    order = np.lexsort(keys)
    return np.asarray(order[space.first[:-1]], np.int32)
