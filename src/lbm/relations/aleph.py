"""Aleph itself, where it is installed: SWI-Prolog, and aleph.pl as the package python-rdm ships it.

Optional, to compare with: nothing of ours needs it. Nothing of Aleph is kept here.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lbm.errors import FileError, NoAnswer
from lbm.relations.modes import Mode
from lbm.relations.problem import Problem, load_problem
from lbm.relations.prolog.program import Rule
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Compound, arguments, list_items, write, write_atom
from lbm.relations.saturate import BottomClause

# Aleph makes inf a function of arithmetic, which SWI-Prolog 9 has already and does not allow at run time.
_DRIVER: Final = """
:- set_prolog_flag(verbose, silent), style_check(-singleton), style_check(-discontiguous).
user:goal_expansion(arithmetic_function(inf/0), true).
main :-
    current_prolog_flag(argv, [Aleph, Number|_]), atom_number(Number, Depth),
    load_files(Aleph, [silent(true)]),
    read_all(problem), set(i, Depth), set(verbosity, 0),
    open('clauses.txt', write, Out, [encoding(utf8)]),
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
:- initialization(catch(main, Error, (print_message(error, Error), halt(1)))).
"""


@dataclass(frozen=True, slots=True)
class Aleph:
    """Where SWI-Prolog and aleph.pl are."""

    swipl: Path
    program: Path


@dataclass(frozen=True, slots=True)
class AlephClauses:
    """Bottom clauses as Aleph makes them, and the seconds of processor time it took, without loading."""

    clauses: tuple[BottomClause, ...]
    seconds: float


def find_aleph() -> Aleph:
    """Return where Aleph is; FileError says what is not installed, and how to install it."""
    swipl = shutil.which("swipl")
    if swipl is None:
        raise FileError("cannot run Aleph: no program swipl; on Debian, apt-get install swi-prolog-nox")
    spec = find_spec("rdm")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    for place in places:
        program = place / "wrappers" / "aleph" / "aleph.pl"
        if program.is_file():
            return Aleph(Path(swipl), program)
    raise FileError("cannot run Aleph: no package python-rdm; pip install --no-deps python-rdm==0.3.7")


def aleph_bottom_clauses(
    problem: Problem | Path | str, *, depth: int, seconds: float = 600, aleph: Aleph | None = None
) -> AlephClauses:
    """Return the bottom clauses that Aleph makes of every example of a problem, or of a problem's directory.

    Positive examples come first. ``seconds`` is how long it may take; NoAnswer past that.
    """
    if not isinstance(problem, Problem):
        problem = load_problem(problem)
    aleph = find_aleph() if aleph is None else aleph
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "problem.b").write_text("\n".join(_background(problem)) + "\n", encoding="utf-8")
        for suffix, examples in (("f", problem.positive), ("n", problem.negative)):
            text = "".join(f"{write(example)}.\n" for example in examples)
            (place / f"problem.{suffix}").write_text(text, encoding="utf-8")
        (place / "driver.pl").write_text(_DRIVER, encoding="utf-8")
        command = [
            str(aleph.swipl),
            "-q",
            "--stack-limit=4g",
            "driver.pl",
            "--",
            str(aleph.program),
            str(depth),
        ]
        try:
            # A busy swipl does not hear SIGTERM; what runs out of time here is killed.
            run = subprocess.run(
                command,
                cwd=place,
                timeout=seconds,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(
                f"Aleph made no bottom clauses of {problem.name} within {seconds:g} seconds"
            ) from None
        answers = place / "clauses.txt"
        if run.returncode or not answers.exists():
            said = " ".join(run.stderr.split()) or f"exit status {run.returncode}"
            raise FileError(f"cannot run Aleph on {problem.name}: {said[:500]}")
        return _read_answers(answers.read_text(encoding="utf-8"), problem)


def _background(problem: Problem) -> Iterator[str]:
    """Yield the lines of Aleph's background file: settings and modes, then clauses."""
    modes = problem.modes
    for setting, value in modes.settings.items():
        yield f":- set({write_atom(setting)},{write(value)})."
    for kind, each in (("modeh", modes.head), ("modeb", modes.body)):
        for mode in each:
            yield f":- {kind}({_mode(mode)})."
    for one in modes.determinations:
        left, right = (write(Compound("/", predicate)) for predicate in (one.target, one.predicate))
        yield f":- determination({left},{right})."
    for predicate in problem.background.predicates.values():
        shown = 0
        for before, rule in (*predicate.rules, (len(predicate.facts), None)):
            for fact in predicate.facts[shown:before]:
                yield write(Compound(predicate.name, fact) if fact else predicate.name) + "."
            shown = before
            if rule is not None:
                yield _rule(rule) + "."


def _mode(mode: Mode) -> str:
    template = f"not({write(mode.template)})" if mode.negated else write(mode.template)
    return f"{'*' if mode.recall is None else mode.recall},{template}"


def _rule(rule: Rule) -> str:
    return write(rule.head if rule.body == "true" else Compound(":-", (rule.head, rule.body)))


def _read_answers(text: str, problem: Problem) -> AlephClauses:
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
