"""The first models in lexicographic order, by a SAT solver: none is counted that is not asked for.

Clauses that share no variable are parts of their own. Within a part the least model is found from any model
by trying each true atom as false, and the next one as the least that is greater than the last. A world of
all parts takes a row of each; among the first L worlds only a few parts take another row than their first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.errors import NoAnswer
from lbm.knowledge.clauses import propagated
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Models
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.problem import Problem
from lbm.reasoning.solvers.sat import SOLVER, Clause

CONFLICTS: Final = 1000
"""Conflicts between two looks at the clock."""

RENEWED: Final = 20
"""How many times as many variables as it began with a solver may have before a new one is made."""

OPEN: Final = 64
"""Parts that may all have a solver at once: each of them takes megabytes of addresses, however small."""


def first_models(
    theory: Theory | Problem,
    names: Sequence[str],
    limit: int,
    *,
    given: Formula | None = None,
    budget: Budget = NO_LIMIT,
) -> Models:
    """Return the first ``limit`` models that keep ``given``, as their distinct restrictions to ``names``.

    Out of time, those found so far, which are the first ones all the same; if none was, NoAnswer is raised.
    """
    problem = Problem.of(theory, given)
    clauses = list(problem.written(budget).rows())
    nothing = Models(tuple(names), np.zeros((0, len(names)), bool), complete=True)
    known = propagated(clauses, lambda: _look(budget))
    if known is None:
        return nothing
    fixed, clauses = known
    place = {name: i for i, name in enumerate(problem.atoms, start=1)}
    kept = [place[name] for name in names]
    with ExitStack() as stack:
        parts = _parts(clauses, kept, fixed, budget)
        for part in parts:
            stack.callback(part.close)
            if not part.find():
                return nothing
            if len(parts) > OPEN:
                part.close()
        world = dict.fromkeys(range(1, len(problem.atoms) + 1), False) | fixed
        for part in parts:
            world.update(zip(part.variables, part.rows[0], strict=True))
        problem.demand([world[i] for i in range(1, len(problem.atoms) + 1)])
        free = set(kept).difference(fixed, *(part.variables for part in parts))
        places = [i for i, variable in enumerate(kept) if variable in free]
        first = np.array([[world[variable] for variable in kept]], bool).reshape(1, len(kept))
        one_more = limit + 1  # which tells whether these are all
        rows, late = _product(first, [part for part in parts if part.places], places, one_more)
    if len(names) == len(problem.atoms):
        order = np.argsort(kept)
        for row in rows:
            problem.demand(row[order].tolist())
    in_time = not late or len(rows) > limit
    return Models(tuple(names), rows[:limit], complete=in_time and len(rows) <= limit, in_time=in_time)


def _look(budget: Budget) -> None:
    if budget.spent():
        raise NoAnswer("no model was found within the seconds allowed: allow more")


# --- parts that share no variable ------------------------------------------------------------------


def _parts(
    clauses: list[Clause], kept: Sequence[int], fixed: dict[int, bool], budget: Budget
) -> list[_Listing]:
    """Return the parts that share no variable; an atom that no clause mentions is in none."""
    if not clauses:
        return []
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    lengths = np.fromiter(map(len, clauses), np.int64, len(clauses))
    literals = np.abs(np.fromiter(chain.from_iterable(clauses), np.int64, int(lengths.sum())))
    firsts = np.repeat(literals[np.cumsum(lengths) - lengths], lengths)
    size = int(literals.max()) + 1
    ties = coo_array((np.ones(len(literals), np.int8), (firsts, literals)), shape=(size, size))
    labels = connected_components(ties, directed=False)[1].tolist()
    said: dict[int, list[Clause]] = defaultdict(list)
    for clause in clauses:
        said[labels[abs(clause[0])]].append(clause)
    _look(budget)
    places: dict[int, list[int]] = defaultdict(list)
    for i, variable in enumerate(kept):
        if variable not in fixed and variable < size and labels[variable] in said:
            places[labels[variable]].append(i)
    return [
        _Listing(some, [kept[i] for i in places.get(label, ())], places.get(label, []), budget)
        for label, some in said.items()
    ]


class _Listing:
    """Clauses, and their models in lexicographic order of the kept variables, one by one.

    ``variables`` are all of them, the kept ones first; ``places`` tells where these stand in a world, and
    ``rows`` holds the models found so far, a value for each variable.
    """

    def __init__(self, clauses: list[Clause], kept: list[int], places: list[int], budget: Budget) -> None:
        self.places, self.budget = places, budget
        self.variables = list(dict.fromkeys([*kept, *(abs(x) for clause in clauses for x in clause)]))
        self.kept = len(kept)
        self.rows: list[list[bool]] = []
        self.all = False
        self._clauses = clauses
        self._solver: Any = None
        self._next = len(self.variables) + 1  # the first number that no variable has

    def close(self) -> None:
        """Give back what the solver holds; the next question makes another one."""
        if self._solver is not None:
            self._solver.delete()
            self._solver, self._next = None, len(self.variables) + 1

    def find(self) -> bool:
        """Find the next model; return whether there is one."""
        if self.all or (self.rows and not self.kept):
            self.all = True
            return False
        world, start = self._greater(self.rows[-1]) if self.rows else (self._solve(()), 0)
        if world is None:
            self.all = True
            return False
        self.rows.append(self._least(world, start))
        return True

    def first_place(self) -> int:
        """Return the first place in which the first two models differ."""
        pairs = zip(self.places, self.rows[0], self.rows[1], strict=False)
        return next(place for place, one, other in pairs if one != other)

    def _least(self, world: list[bool], start: int) -> list[bool]:
        """Return the least model that agrees with one before ``start``."""
        prefix = [_literal(i, world[i]) for i in range(start)]
        for i in range(start, self.kept):
            if world[i]:
                other = self._solve([*prefix, -(i + 1)])
                world = world if other is None else other
            prefix.append(_literal(i, world[i]))
        return world

    def _greater(self, last: list[bool]) -> tuple[list[bool] | None, int]:
        """Return a model greater than the last one, with as much in common as can be, and where that ends.

        ``above`` is true only where an atom up to there is true and was false in the last model.
        """
        if self._next > RENEWED * len(self.variables) + 1000:
            self.close()
        self._open()
        on = begun = self._fresh()
        above: int | None = None
        for i in range(self.kept):
            before = [] if above is None else [above]
            if last[i]:
                self._solver.add_clause([i + 1, *before, -on])
            else:
                here = self._fresh()
                self._solver.add_clause([-here, i + 1, *before])
                above = here
        if above is None:
            return None, 0
        self._solver.add_clause([above, -on])
        world = self._solve([on])
        if world is None:
            return None, 0
        differs = _first_difference(last, world)
        open_ = [i for i in range(differs + 1, self.kept) if not last[i]]
        while open_:
            middle = len(open_) // 2
            same = [_literal(i, last[i]) for i in range(open_[middle])]
            other = self._solve([on, *same])
            if other is None:
                open_ = open_[:middle]
            else:
                world, differs = other, _first_difference(last, other)
                open_ = [i for i in open_[middle:] if i > differs]
        for done in range(begun, self._next):  # so that the solver drops what was said of the last model
            self._solver.add_clause([-done])
        return world, differs + 1

    def _fresh(self) -> int:
        self._next += 1
        return self._next - 1

    def _solve(self, assumptions: Sequence[int]) -> list[bool] | None:
        """Return a model, or None if there is none; raise NoAnswer out of time."""
        self._open()
        while True:
            _look(self.budget)
            self._solver.conf_budget(CONFLICTS)
            answer = self._solver.solve_limited(assumptions=assumptions)
            if answer is False:
                return None
            if answer:
                found = [literal > 0 for literal in self._solver.get_model()[: len(self.variables)]]
                return found + [False] * (len(self.variables) - len(found))

    def _open(self) -> None:
        """Have a solver."""
        if self._solver is not None:
            return
        from pysat.solvers import Solver

        number = {variable: i for i, variable in enumerate(self.variables, start=1)}
        solver = Solver(name=SOLVER)
        for clause in self._clauses:
            solver.add_clause([number[x] if x > 0 else -number[-x] for x in clause])
        solver.set_phases([-i for i in range(1, self.kept + 1)])
        self._solver = solver


def _literal(i: int, value: bool) -> int:
    return i + 1 if value else -(i + 1)


def _first_difference(one: Sequence[bool], other: Sequence[bool]) -> int:
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


# --- worlds of all parts ---------------------------------------------------------------------------


def _product(first: Bools, parts: Sequence[_Listing], free: Sequence[int], wanted: int) -> tuple[Bools, bool]:
    """Return the first ``wanted`` worlds, and whether time ran out before.

    A part matters by the place where its first two models differ: a world in which it takes another model
    than its first differs there or before. So parts are taken from the last such place on, until there are
    worlds enough that agree up to the next one; all others keep their first model. ``free`` are places that
    are free by themselves.
    """
    found = first
    waiting: list[tuple[int, int, _Listing | None]] = [(-place, i, None) for i, place in enumerate(free)]
    # Of a part whose second model is not known yet, its last place bounds where it can differ.
    waiting += [(-part.places[-1], len(free) + i, part) for i, part in enumerate(parts)]
    heapq.heapify(waiting)
    while waiting and not (len(found) >= wanted and -waiting[0][0] < _agree(found)):
        place, i, part = waiting[0]
        if part is None:
            found = _join(found, [-place], np.array([[False], [True]]), wanted)
            heapq.heappop(waiting)
            continue
        try:
            if len(part.rows) < 2:
                if part.find():
                    heapq.heapreplace(waiting, (-part.first_place(), i, part))
                else:
                    heapq.heappop(waiting)
                continue
            while len(part.rows) < wanted and part.find():
                pass
        except NoAnswer:
            # What is not known of the part comes behind its last model with the first of all others.
            if len(part.rows) > 1:
                heapq.heappop(waiting)
                last = found[0].copy()
                last[part.places] = part.rows[-1][: part.kept]
                found = _join(found, part.places, _values(part), wanted)
                found = found[: int((found == last).all(axis=1).argmax()) + 1]
            known = -waiting[0][0] if waiting else -1
            return found[[_agree(found[[0, j]]) > known for j in range(len(found))]], True
        heapq.heappop(waiting)
        found = _join(found, part.places, _values(part), wanted)
    return found, False


def _agree(rows: Bools) -> int:
    """Return up to where sorted rows agree."""
    differs: NDArray[np.int64] = (rows[0] != rows[-1]).nonzero()[0]
    return int(differs[0]) if len(differs) else rows.shape[1]


def _values(part: _Listing) -> Bools:
    return np.array([row[: part.kept] for row in part.rows], bool)


def _join(found: Bools, places: Sequence[int], rows: Bools, wanted: int) -> Bools:
    """Return the first worlds that take a row for these places; of L, row i meets at most L/(i + 1)."""
    reach = np.minimum(wanted // np.arange(1, min(len(rows), wanted) + 1), len(found))
    row = np.repeat(np.arange(len(reach)), reach)
    joined = found[np.arange(len(row)) - np.repeat(np.cumsum(reach) - reach, reach)]
    joined[:, list(places)] = rows[row]
    packed = np.packbits(joined, axis=1)
    words = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(">u8")
    order: NDArray[np.int64] = np.lexsort(words.T[::-1])[:wanted]
    least: Bools = joined[order]
    return least
