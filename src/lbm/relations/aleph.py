"""Aleph itself, where it is installed: SWI-Prolog, and aleph.pl as the package python-rdm ships it.

Optional, to compare with: nothing of ours needs it. Nothing of Aleph is kept here.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from lbm.errors import FileError, NoAnswer
from lbm.relations.modes import Mode
from lbm.relations.problem import RelationalProblem, load_problem
from lbm.relations.prolog.program import Rule
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Compound, Term, arguments, list_items, write, write_atom
from lbm.relations.saturate import BottomClause

# Aleph makes inf a function of arithmetic, which SWI-Prolog 9 has already and does not allow at run time.
_BEGIN: Final = """
:- set_prolog_flag(verbose, silent), style_check(-singleton), style_check(-discontiguous).
user:goal_expansion(arithmetic_function(inf/0), true).
:- initialization(catch(main, Error, (print_message(error, Error), halt(1)))).
begin :-
    current_prolog_flag(argv, [Aleph|_]), load_files(Aleph, [silent(true)]),
    read_all(problem), set(verbosity, 0).
"""

_SATURATE: Final = (
    _BEGIN
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

# Rules are asked one after another, so that one that takes forever takes no other one with it.
_INDUCE: Final = (
    _BEGIN
    + """
main :-
    begin,
    statistics(cputime, Start), induce, statistics(cputime, End), Took is End - Start,
    ( '$aleph_global'(rules, rules(Newest)) -> true ; Newest = [] ), reverse(Newest, Numbers),
    findall(Rule, ( member(Number, Numbers), '$aleph_global'(theory, theory(Number, _, Rule, _, _)) ), Rules),
    open('answers.txt', write, Out, [encoding(utf8)]),
    forall(member(Rule, Rules), answer(Out, Rule)),
    open('asked.pl', read, In, [encoding(utf8)]),
    repeat, read(In, Example),
    ( Example == end_of_file -> !
    ; ( covered(Example, Rules) -> Said = yes ; Said = no ), format(Out, "~w~n", [Said]), fail ),
    format(Out, "took ~w~n", [Took]), close(Out), halt.
answer(Out, Rule) :-
    copy_term(Rule, Shown), numbervars(Shown, 0, _), write(Out, 'rule '),
    write_term(Out, Shown, [quoted(true), numbervars(true), spacing(next_argument)]), nl(Out).
covered(Example, Rules) :-
    member(Rule, Rules), copy_term(Rule, Fresh),
    ( Fresh = (Head :- Body) -> true ; Head = Fresh, Body = true ), Head = Example,
    catch(call_with_inference_limit(once(Body), 10000000, Result), _, fail),
    Result \\== inference_limit_exceeded, !.
"""
)

SETTINGS: Final[Mapping[str, float]] = {"i": 2, "clauselength": 5, "minpos": 2, "nodes": 10_000}
"""Of Aleph's search, where nothing else is said; noise is then 2 % of the negative examples."""

NOISE: Final = 0.02

_NOT_HERE: Final = frozenset(
    "good goodfile interactive record recordfile rulefile stage test_neg test_pos threads train_neg "
    "train_pos verbosity".split()
)
"""Settings that name files, or people who answer questions."""


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


@dataclass(frozen=True, slots=True)
class AlephTheory:
    """What Aleph learned, and what it says of examples.

    Attributes
    ----------
    rules
        As text of Prolog, in the order they were found; none where none is good enough.
    said
        For each example that was asked, whether a rule covers it.
    seconds
        Processor time of the search; after a time-out, the time that it was given.
    ended
        ``done``, or ``time-out``: rules and answers are then empty.
    """

    rules: tuple[str, ...]
    said: tuple[bool, ...]
    seconds: float
    ended: Literal["done", "time-out"]


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
    problem: RelationalProblem | Path | str, *, depth: int, seconds: float = 600, aleph: Aleph | None = None
) -> AlephClauses:
    """Return the bottom clauses that Aleph makes of every example of a problem, or of a problem's directory.

    Positive examples come first. ``seconds`` is how long it may take; NoAnswer past that.
    """
    if not isinstance(problem, RelationalProblem):
        problem = load_problem(problem)
    aleph = find_aleph() if aleph is None else aleph
    deep = _with(problem, {**problem.modes.settings, "i": depth})
    found = _run(_SATURATE, deep, {}, seconds=seconds, aleph=aleph)
    if found is None:
        raise NoAnswer(f"Aleph made no bottom clauses of {problem.name} within {seconds:g} seconds")
    return _read_answers(found, problem)


def aleph_rules(
    problem: RelationalProblem,
    asked: Sequence[Term],
    *,
    settings: Mapping[str, Term] | None = None,
    seconds: float = 600,
    aleph: Aleph | None = None,
) -> AlephTheory:
    """Return the rules that Aleph learns from the examples of a problem, and what they say of other examples.

    The same problem gives the same rules, unless time runs out.

    Parameters
    ----------
    asked
        Ground terms of the target predicate. A rule that takes too long to find out covers nothing.
    settings
        Of Aleph; those the problem's modes do not set, and ``settings`` neither, are SETTINGS.
    seconds
        How long it may take, everything together.
    """
    if not problem.positive:
        raise ValueError(f"expected one positive example of {problem.name} at least, got none")
    aleph = find_aleph() if aleph is None else aleph
    usual: dict[str, Term] = {**SETTINGS, "noise": round(NOISE * len(problem.negative))}
    chosen = {**usual, **problem.modes.settings, **(settings or {})}
    problem = _with(problem, {name: value for name, value in chosen.items() if name not in _NOT_HERE})
    questions = "".join(f"{write(example)}.\n" for example in asked)
    found = _run(_INDUCE, problem, {"asked.pl": questions}, seconds=seconds, aleph=aleph)
    if found is None:
        return AlephTheory((), (), seconds, "time-out")
    rules, said, took = [], [], 0.0
    for line in found.splitlines():
        kind, _, text = line.partition(" ")
        if kind == "rule":
            rules.append(text)
        elif kind == "took":
            took = float(text)
        else:
            said.append(kind == "yes")
    return AlephTheory(tuple(rules), tuple(said), took, "done")


def _with(problem: RelationalProblem, settings: Mapping[str, Term]) -> RelationalProblem:
    return replace(problem, modes=replace(problem.modes, settings=settings))


def _run(
    driver: str, problem: RelationalProblem, others: Mapping[str, str], *, seconds: float, aleph: Aleph
) -> str | None:
    """Return what a driver answers about a problem, with other files beside it; None: it ran out of time."""
    texts = {"problem.b": "\n".join(_background(problem)) + "\n", "driver.pl": driver, **others}
    for suffix, examples in (("f", problem.positive), ("n", problem.negative)):
        texts[f"problem.{suffix}"] = "".join(f"{write(example)}.\n" for example in examples)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for file, text in texts.items():
            (place / file).write_text(text, encoding="utf-8")
        command = [str(aleph.swipl), "-q", "--stack-limit=4g", "driver.pl", "--", str(aleph.program)]
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
            return None
        answers = place / "answers.txt"
        if run.returncode or not answers.exists():
            said = " ".join(run.stderr.split()) or f"exit status {run.returncode}"
            raise FileError(f"cannot run Aleph on {problem.name}: {said[-500:]}")
        return answers.read_text(encoding="utf-8")


def _background(problem: RelationalProblem) -> Iterator[str]:
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
