"""Which atoms others settle: no two models agree on the latter and differ on the former (Padoa's method)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing

from lbm.errors import NoAnswer
from lbm.knowledge.clauses import definitional
from lbm.knowledge.theory import Theory
from lbm.knowledge.weighted import check_cells
from lbm.reasoning.budget import Budget
from lbm.reasoning.solvers.sat import Solver


def undetermined(theory: Theory, known: Collection[str], budget: Budget) -> tuple[str, ...]:
    """Return the atoms that the known ones do not settle under the hard formulae.

    >>> from lbm.reasoning.budget import NO_LIMIT
    >>> undetermined(Theory(["c <-> a & b", "a -> d"]), ["a", "b"], NO_LIMIT)
    ('d',)
    """
    place = {name: i for i, name in enumerate(theory.atoms, start=1)}
    others = [name for name in theory.atoms if name not in known]
    if not others:
        return ()
    hard = [said.formula for said in theory if said.weight is None]
    check_cells(*hard)
    rows, roots, free = definitional(hard, place, len(place) + 1, budget.tick)
    rows = [*rows, *([root] for root in roots)]
    shared = {place[name] for name in known}

    def twin(literal: int) -> int:
        if abs(literal) in shared:
            return literal
        return literal + free if literal > 0 else literal - free

    found = []
    with closing(Solver(budget)) as solver:
        solver.add(rows)
        solver.add([[twin(literal) for literal in row] for row in rows])
        for name in others:
            budget.tick()
            here, there = place[name], twin(place[name])
            differ = solver.solve([here, -there])
            if differ is False:  # the other way round is the same with both copies exchanged
                solver.add([[-here, there], [here, -there]])
            elif differ is None:
                raise NoAnswer(
                    "whether inputs settle all atoms was not found out in time: allow more seconds"
                )
            else:
                found.append(name)
    return tuple(found)
