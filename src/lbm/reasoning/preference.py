"""What is preferred (sceptical inference): true in every best world; and which statements make it so.

Its counterpart is dispreferred (the negation is preferred): false in every best world.
"""

from __future__ import annotations

from collections.abc import Iterable

from lbm.errors import NoAnswer, NoWorlds
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.problem import Candidate, Problem
from lbm.reasoning.proof import smallest
from lbm.reasoning.search.routes import Search


def preferred(
    theory: Theory | Problem, query: Formula, *, given: Formula | None = None, budget: Budget = NO_LIMIT
) -> bool | None:
    """Return whether ``query`` is true in every best world of those that keep the evidence.

    It is if every world without it is proven to lose more than some world loses. None: not settled in
    time. Raises NoWorlds if no model keeps the evidence.

    >>> from lbm.knowledge.parser import parse
    >>> preferred(Theory(["a ^ b", (2, "a"), (1, "b")]), parse("a"))
    True
    """
    problem = _checked(theory, query, given)
    every = Search(problem, budget.half()).found()
    if not every.worlds:
        return None
    if every.optimal and not holds(query, problem.named(every.worlds[0].values)):
        return False
    return _loses_more(problem.given(~query), every.lost, every.bound, budget)[0]


def prefers(
    theory: Theory | Problem, query: Formula, *, given: Formula | None = None, budget: Budget = NO_LIMIT
) -> tuple[bool | None, bool | None]:
    """Return whether ``query`` is true in every best world, and whether it is false in every one.

    As :func:`preferred` of the query and of its negation, but the best world, which refutes one of the two,
    is looked for once. None: not settled in time. Raises NoWorlds if no model keeps the evidence.

    >>> from lbm.knowledge.parser import parse
    >>> theory = Theory(["a ^ b", (2, "a"), (1, "b")])
    >>> [prefers(theory, parse(text)) for text in ("a", "b", "a | b")]
    [(True, False), (False, True), (True, False)]
    """
    problem = _checked(theory, query, given)
    every = Search(problem, budget.half()).found()
    if not every.worlds:
        return None, None
    holding = bool(holds(query, problem.named(every.worlds[0].values)))
    here, there = (query, ~query) if holding else (~query, query)
    mine = _loses_more(problem.given(there), every.lost, every.bound, budget)[0]
    if every.optimal or mine:  # some best world is one of those here
        other: bool | None = False
    else:  # where a world there reaches the bound, what it loses is the least
        least = every.bound if mine is False else every.lost
        other = _loses_more(problem.given(here), least, every.bound, budget)[0]
    return (mine, other) if holding else (other, mine)


def why_preferred(
    theory: Theory | Problem, query: Formula, *, given: Formula | None = None, budget: Budget = NO_LIMIT
) -> tuple[tuple[int, ...], bool]:
    """Return numbers of statements that make ``query`` true in every best world, and whether all are needed.

    Every world that keeps the evidence and the hard ones of them, and in which the query is false, loses more
    by the soft ones of them alone than the best world loses of all formulae. So the query stays
    preferred whatever the other formulae say, as long as that world loses no more.

    Raises ValueError if the query is not preferred, NoAnswer if that was not settled in time.

    >>> from lbm.knowledge.parser import parse
    >>> why_preferred(Theory(["a -> b", (2, "a"), (1, "c"), "d"]), parse("b"))
    ((0, 1), True)
    """
    seconds = budget.seconds()
    whole = _checked(theory, query, given)
    every = Search(whole, budget.half()).found()
    if not every.optimal:
        raise NoAnswer(f"the best world was not proven to be best within {seconds} seconds: allow more")
    problem = whole.given(~query)
    against = problem.evidence
    assert against is not None
    witnesses: list[Candidate] = []  # worlds without the query; what keeps one of them cheap gives no reason

    def suffice(numbers: Iterable[int]) -> bool | None:
        kept = sorted(numbers)
        chosen = frozenset(kept)
        if any(problem.lost_by(witness, chosen) <= every.lost for witness in witnesses):
            return False
        part = Theory.from_parts(whole.atoms, tuple(whole.theory.statements[i] for i in kept))
        few = Problem(part, against, digits=problem.digits)
        answer, world = _loses_more(few, every.lost, every.lost, budget)
        if world is not None and answer is False:
            witnesses.append(problem.look(world.values))
        return answer

    far, near = _by_distance(whole.theory, against)
    first = suffice([*far, *near])
    if first is None:
        raise NoAnswer(f"whether the query is preferred was not settled within {seconds} seconds: allow more")
    if not first:
        raise ValueError("the query is not preferred: some best world does without it")
    needed, minimal = smallest([near, far], suffice)
    return tuple(sorted(needed)), minimal


def _checked(theory: Theory | Problem, query: Formula, given: Formula | None) -> Problem:
    """Return the problem with its evidence; raise unless both formulae are about its atoms."""
    Problem.of(theory).check(query, "query")
    return Problem.of(theory, given)


def _loses_more(
    problem: Problem, lost: int, bound: int, budget: Budget
) -> tuple[bool | None, Candidate | None]:
    """Return whether every world loses more than ``lost``, or else one that loses at most ``bound``.

    None: neither was proven in time.
    """

    def enough(least: int | None, proven: int) -> bool:
        return proven > lost or (least is not None and least <= bound)

    try:
        found = Search(problem, budget, enough=enough).found()
    except NoWorlds:
        return True, None
    if found.bound > lost:
        return True, None
    if found.worlds and found.lost <= bound:
        return False, found.worlds[0]
    return None, None


def _by_distance(theory: Theory, formula: Formula) -> tuple[list[int], list[int]]:
    """Return the numbers of statements that no chain of shared atoms ties to ``formula``, and the others.

    The latter come with the longest chains first.
    """
    names = [atoms_of(statement.formula) for statement in theory]
    meets: dict[str, list[int]] = {}
    for number, atoms in enumerate(names):
        for name in atoms:
            meets.setdefault(name, []).append(number)
    near: dict[int, None] = {}
    waiting, seen = list(atoms_of(formula)), set(atoms_of(formula))
    for name in waiting:  # it grows as it is walked
        for number in meets.get(name, ()):
            if number not in near:
                near[number] = None
                waiting += [other for other in names[number] if other not in seen]
                seen.update(names[number])
    return [number for number in range(len(names)) if number not in near], list(near)[::-1]
