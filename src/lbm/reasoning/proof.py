"""What hard formulae allow: some world or none, and then a minimal set of them that clashes or entails.

Every answer is a proof by a SAT solver; out of time there is no answer, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Final

from lbm.errors import NoAnswer, NoWorlds
from lbm.knowledge.formula import CARDINALITIES, Formula, postorder
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Proof
from lbm.reasoning.budget import LEAST, NO_LIMIT, Budget
from lbm.reasoning.problem import MANY_CELLS, Problem
from lbm.reasoning.solvers.sat import Meanwhile, Solver

_SIMPLE: Final = 64  # simple worlds that are tried, and at most as many more
_BLAME: Final = 60.0  # seconds for finding out whether evidence or theory leaves no world
_EACH: Final = 8  # of them for each cardinality


def satisfiable(
    theory: Theory | Problem, *, given: Formula | None = None, budget: Budget = NO_LIMIT
) -> bool | None:
    """Return whether some world keeps every hard formula and ``given``; None: no answer in time.

    >>> satisfiable(Theory(["a | b", "~a", (5, "~b")]))
    True
    """
    return _decide(Problem.of(theory, given), budget)[0]


def find_model(
    theory: Theory | Problem, *, given: Formula | None = None, budget: Budget = NO_LIMIT
) -> dict[str, bool] | None:
    """Return a world that keeps every hard formula and ``given``; None: there is none, or none in time.

    >>> find_model(Theory(["a", "a -> b"]))
    {'a': True, 'b': True}
    """
    problem = Problem.of(theory, given)
    values = _decide(problem, budget)[1]
    return None if values is None else problem.named(values)


def simple_model(problem: Problem) -> list[bool] | None:
    """Return a model among some simple worlds, where it takes long to write down the clauses for a solver.

    All atoms are true in them, or all false, or drawn with many chances, or as many of the atoms of a
    cardinality are true as its bound says. They are always the same ones.
    """
    if problem.cells <= MANY_CELLS:
        return None
    import numpy as np

    theory = problem.theory
    formulae = [] if problem.evidence is None else [problem.evidence]
    if theory.clauses is None:
        formulae += [statement.formula for statement in theory if statement.weight is None]

    rng = np.random.default_rng(0)
    drawn = rng.random((len(theory.atoms), _SIMPLE)) < np.linspace(0, 1, _SIMPLE)
    counts = (node for node in postorder(*formulae) if node.kind in CARDINALITIES)
    place = {name: i for i, name in enumerate(theory.atoms)}
    for node in islice(counts, _SIMPLE // _EACH):
        atoms = [place[part.label] for part in node.args if part.kind == "atom"]
        exact = rng.random((len(theory.atoms), _EACH)) < 0.5
        for column in exact.T:
            column[atoms] = False
            column[rng.permutation(atoms)[: node.label]] = True
        drawn = np.concatenate([drawn, exact], axis=1)
    for column in np.flatnonzero(problem.are_models(drawn.T)).tolist():
        values: list[bool] = drawn[:, column].tolist()
        if problem.is_model(values):
            return values
    return None


def refuted_literals(
    theory: Theory | Problem, literals: Iterable[tuple[str, bool]], *, budget: Budget = NO_LIMIT
) -> set[tuple[str, bool]]:
    """Return those literals, names with values, that no model of the hard formulae has; unproven ones not.

    One solver is asked about all of them, and each model that it finds answers for many.

    >>> refuted_literals(Theory(["a", "a -> b"]), [("a", False), ("b", True), ("b", False)]) == {
    ...     ("a", False),
    ...     ("b", False),
    ... }
    True
    """
    problem = Problem.of(theory)
    place = {name: i for i, name in enumerate(problem.atoms, start=1)}
    open_ = {place[name] if value else -place[name]: (name, value) for name, value in literals}
    found = set()
    with suppress(NoAnswer):
        session, assumptions = problem.session(budget)
        while open_:
            literal = next(iter(open_))
            values = session.solve([*assumptions, literal], budget)
            if values is None:
                break
            if isinstance(values, list):
                for i, value in enumerate(values, start=1):
                    open_.pop(i if value else -i, None)
            else:
                found.add(open_[literal])
            open_.pop(literal, None)
    return found


def prove(
    theory: Theory | Problem,
    *,
    given: Formula | None = None,
    why: bool = True,
    budget: Budget = NO_LIMIT,
    meanwhile: Meanwhile | None = None,
) -> Proof:
    """Return whether the hard formulae are satisfiable, by which world, or the clash as small as time allows.

    A clash (minimal unsatisfiable subset, MUS) is a set of hard statements that no world satisfies together;
    it is minimal if without any one the others can be satisfied. With ``given``, whether some world keeps
    them and the evidence; a clash then is one with the evidence. Without ``why`` none is looked for.
    ``meanwhile`` is called, over and over, while the solver works: it may return a world.

    >>> prove(Theory(["a", "c -> a", "a -> b", (3, "c"), "~b"])).why
    (0, 2, 4)
    >>> from lbm.knowledge.parser import parse
    >>> prove(Theory(["a -> b", "c", "b -> d"]), given=parse("a & ~d")).why
    (0, 2)
    """
    problem = Problem.of(theory, given)
    answer, values = _decide(problem, budget, meanwhile)
    if answer is False:
        clash, minimal = _shrink(problem, budget) if why else ((), False)
        return Proof("unsatisfiable", clash, minimal, theory=problem.theory)
    world = None if values is None else problem.named(values)
    return Proof("satisfiable" if answer else None, world=world, theory=problem.theory)


def no_worlds(theory: Theory | Problem, given: Formula | None, budget: Budget) -> NoWorlds:
    """Return the error for a theory and evidence that leave no world, naming which of them it is."""
    budget = budget.at_most(_BLAME).at_least(LEAST)
    if given is not None and satisfiable(theory, budget=budget) is False:
        given = None
    return NoWorlds(given)


def _decide(
    problem: Problem, budget: Budget, meanwhile: Meanwhile | None = None
) -> tuple[bool | None, list[bool] | None]:
    """Return whether there is a world, or None if time ran out; and the world, tried on the formulae."""
    simple = simple_model(problem)
    if simple is not None:
        return True, simple
    try:
        session, assumptions = problem.session(budget)
        values = session.solve(assumptions, budget, meanwhile)
    except NoAnswer:
        return None, None
    if values is None or isinstance(values, bool):
        return values, None
    problem.demand(values)
    return True, values


def _shrink(problem: Problem, budget: Budget) -> tuple[tuple[int, ...], bool]:
    """Return a clash of statements known to be unsatisfiable, and whether every member is proven necessary.

    A selector turns each statement on; a solver that refuses a set of selectors names those it used.
    """
    try:
        written = problem.written(budget)
    except NoAnswer:
        return (), False
    owners, free = written.owners.tolist(), written.variables + 1
    numbers = [number for number in owners if number >= 0]
    selectors = range(free, free + len(numbers))
    waiting = iter(selectors)
    with closing(Solver(budget)) as solver:
        solver.add(
            clause if number < 0 else [*clause, -next(waiting)]
            for number, clause in zip(owners, written.rows(), strict=True)
        )
        if solver.solve(selectors) is not False:
            return (), False
        kept = solver.core()

        def clash(some: list[int]) -> Collection[int] | bool | None:
            nonlocal kept
            answer = solver.solve(some)
            if answer is not False:
                return None if answer is None else False
            solver.add([-selector] for selector in set(kept).difference(some))
            kept = solver.core()
            return set(kept)

        found, minimal = smallest([[selector] for selector in kept], clash)
        return tuple(sorted(numbers[selector - free] for selector in found)), minimal


def smallest(
    parts: Sequence[Sequence[int]], suffice: Callable[[list[int]], Collection[int] | bool | None]
) -> tuple[list[int], bool]:
    """Return a minimal set that suffices (a minimal core), and whether that is proven.

    Every part is left out in turn, the last one first: where the others do not suffice without it, it is
    halved, and what cannot be halved is needed. More members suffice wherever fewer do, so what cannot
    be left out while others are still there cannot be left out at all.

    Parameters
    ----------
    parts
        All members, in parts that are likely to be left out together.
    suffice
        Returns whether these members suffice or, if it knows, which of them do; None: not known.
    """
    needed: list[int] = []
    waiting = [list(part) for part in parts if part]
    while waiting:
        part = waiting.pop()
        others = [*needed, *(member for other in waiting for member in other)]
        enough = suffice(others)
        if enough is None:
            return [*others, *part], False
        if not isinstance(enough, bool):
            used = [[member for member in other if member in enough] for other in waiting]
            waiting = [other for other in used if other]
        elif enough:
            continue
        elif len(part) > 1:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
        else:
            needed += part
    return needed, True
