"""Bottom clauses as Aleph makes them, to compare ours with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lbm.errors import NoAnswer
from lbm.relations.problem import RelationalProblem, load_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Compound, arguments, list_items, write
from lbm.relations.saturate import BottomClause
from lbm.trials.learners.aleph import BEGIN, Aleph, find_aleph, run_aleph

_SATURATE: Final = (
    BEGIN
    + """
main :-
    begin,
    open('answers.txt', write, Out, [encoding(utf8)]),
    statistics(cputime, Start),
    forall(( member(Type, [pos, neg]), example(Number1, Type, _) ),
           ( sat(Type, Number1), bottom(Clause), answer(Out, Type, Clause) )),
    statistics(cputime, End), Took is End - Start,
    format(Out, "took(~w).~n", [Took]), close(Out), halt.
answer(Out, Type, Clause) :-
    ( Clause = (Head :- Body) -> true ; Head = Clause, Body = true ),
    copy_term(Head-Body, Head1-Body1), numbervars(Head1-Body1, 0, _), goals(Body1, Goals),
    Options = [quoted(true), ignore_ops(true), numbervars(true), dotlists(false)],
    write_term(Out, clause(Type, Head1, Goals), Options),
    write(Out, '.\\n').
goals((A, B), [A|Rest]) :- !, goals(B, Rest).
goals(true, []) :- !.
goals(A, [A]).
"""
)


@dataclass(frozen=True, slots=True)
class AlephClauses:
    """Bottom clauses as Aleph makes them, and the seconds of processor time it took, without loading."""

    clauses: tuple[BottomClause, ...]
    seconds: float


def aleph_bottom_clauses(
    problem: RelationalProblem | Path | str, *, depth: int, seconds: float = 600, aleph: Aleph | None = None
) -> AlephClauses:
    """Return the bottom clauses that Aleph makes of every example of a problem, or of a problem's directory.

    Positive examples come first. ``seconds`` is how long it may take; NoAnswer past that.
    """
    if not isinstance(problem, RelationalProblem):
        problem = load_problem(problem)
    aleph = find_aleph() if aleph is None else aleph
    deep = replace(problem, modes=replace(problem.modes, settings={**problem.modes.settings, "i": depth}))
    found = run_aleph(_SATURATE, deep, {}, seconds=seconds, aleph=aleph)
    if found is None:
        raise NoAnswer(f"Aleph made no bottom clauses of {problem.name} within {seconds:g} seconds")
    return _read_answers(found, problem)


def _read_answers(text: str, problem: RelationalProblem) -> AlephClauses:
    """Return the clauses that the driver wrote; their variables are named as ours are."""
    examples = iter(problem.examples)
    clauses, took = [], 0.0
    for clause in read_clauses(text, source="Aleph"):
        given = arguments(clause.term)
        if isinstance(clause.term, Compound) and clause.term.functor == "took":
            took = float(given[0])  # type: ignore[arg-type]
            continue
        kind, head, goals = given
        body = tuple(write(goal) for goal in list_items(goals)[0])
        clauses.append(BottomClause(next(examples), kind == "pos", write(head), body))
    return AlephClauses(tuple(clauses), took)
