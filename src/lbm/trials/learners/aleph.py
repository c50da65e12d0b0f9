"""Aleph itself in the learning table, where it is installed: rules of training folds, asked of another one.

Aleph is SWI-Prolog with aleph.pl as the package python-rdm ships it: optional, to compare with. Nothing of
ours needs it, and nothing of Aleph is kept here.

Settings are fixed beforehand, so that nothing is chosen. Those of the drugs are in the files of the authors
of CILP++; theirs of the other sets are not public, and what stands here instead is ours.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from lbm.errors import FileError
from lbm.relations.modes import Mode, read_modes
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Compound, Term, write, write_atom
from lbm.trials.learners.relational import fold_of_examples, is_order, problem_named

if TYPE_CHECKING:
    from lbm.training.relational.scores import Scores

ALEPH: Final = "Aleph"
LIMIT: Final = 600.0
"""Seconds for a fold."""

LIMIT_MADE: Final = 20.0
"""Seconds for a fold of a set that the package makes."""

DRUGS: Final[Mapping[str, Term]] = {
    "i": 3,
    "minpos": 2,
    "minacc": 0.7,
    "minscore": 0.6,
    "clauselength": 5,
    "evalfn": "auto_m",
    "noise": 300,
    "nodes": 5000,
}

EQUAL: Final = "\n".join(
    f":- modeb(1, (+{kind}{one}) = (+{kind}{other})). :- determination(illegal/6, (=)/2)."
    for kind in ("col", "row")
    for one, other in (("wk", "wr"), ("wk", "bk"), ("wr", "bk"))
)
"""What else clauses about chess may say: that two pieces stand in one column or row, which the published
Aleph could say as well."""


@dataclass(frozen=True, slots=True)
class AlephFold:
    """One fold: ``scores`` is None where time ran out; ``rules`` is how many there are."""

    scores: Scores | None
    examples: int
    rules: int


def has_aleph() -> bool:
    """Return whether Aleph is installed."""
    try:
        find_aleph()
    except FileError:
        return False
    return True


def aleph_fold(name: str, fold: str, *, seconds: float) -> AlephFold:
    """Return how Aleph's rules of the other folds do on one fold of a set."""
    from lbm.training.relational.scores import score

    problem, settings = aleph_problem(name)
    test = fold_of_examples(problem) == fold
    every = list(zip(problem.examples, problem.labels, test.tolist(), strict=True))
    trained = replace(
        problem,
        positive=tuple(example for example, label, held in every if label and not held),
        negative=tuple(example for example, label, held in every if not label and not held),
        folds=None,
    )
    asked = [example for example, _, held in every if held]
    found = aleph_rules(trained, asked, settings=settings, seconds=seconds)
    if found.ended == "time-out":
        return AlephFold(None, len(asked), 0)
    odds = np.where(found.said, 1.0, -1.0)
    return AlephFold(score(odds, np.array(problem.labels)[test]), len(asked), len(found.rules))


def aleph_problem(name: str) -> tuple[RelationalProblem, Mapping[str, Term]]:
    """Return a set as Aleph is given it, and its settings where they are not the usual ones."""
    problem = problem_named(name)
    if name != "krk":
        return problem, DRUGS if is_order(name) and name != "order" else {}
    more, _ = read_modes(read_clauses(EQUAL, source="chess"))
    modes = replace(
        problem.modes,
        body=problem.modes.body + more.body,
        determinations=problem.modes.determinations + more.determinations,
    )
    return replace(problem, modes=modes), {"noise": 0}  # its labels follow the rules of chess without fail


# --- Aleph at work ------------------------------------------------------------------------------------

# Aleph makes inf a function of arithmetic, which SWI-Prolog 9 has already and does not allow at run time.
BEGIN: Final = """
:- set_prolog_flag(verbose, silent), style_check(-singleton), style_check(-discontiguous).
user:goal_expansion(arithmetic_function(inf/0), true).
:- initialization(catch(main, Error, (print_message(error, Error), halt(1)))).
begin :-
    current_prolog_flag(argv, [Aleph|_]), load_files(Aleph, [silent(true)]),
    read_all(problem), set(verbosity, 0).
"""

# Rules are asked one after another, so that one that takes forever takes no other one with it.
_RULES: Final = (
    BEGIN
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
    known = {name: value for name, value in chosen.items() if name not in _NOT_HERE}
    problem = replace(problem, modes=replace(problem.modes, settings=known))
    questions = "".join(f"{write(example)}.\n" for example in asked)
    found = run_aleph(_RULES, problem, {"asked.pl": questions}, seconds=seconds, aleph=aleph)
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


def run_aleph(
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
                yield (
                    write(rule.head if rule.body == "true" else Compound(":-", (rule.head, rule.body))) + "."
                )


def _mode(mode: Mode) -> str:
    template = f"not({write(mode.template)})" if mode.negated else write(mode.template)
    return f"{'*' if mode.recall is None else mode.recall},{template}"
