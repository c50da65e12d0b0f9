"""A relational problem from files: background knowledge, examples of two classes, modes and folds.

bk.pl      facts and rules; modes may stand here too, as in Aleph's .b files
pos.pl     positive examples, neg.pl negative ones: ground facts of one predicate, the target
modes.pl   modes, determinations and settings
folds.tsv  optional: in which fold each example is tested

Other forms are read too: see :mod:`lbm.relations.sources`. A predicate is a name and an arity: shape/1 and
shape/2 are two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Final

from lbm.errors import FileError, LimitExceeded, ParseError
from lbm.knowledge.packed import read_lines
from lbm.relations.modes import Modes, read_modes
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.engine import solve
from lbm.relations.prolog.program import (
    Program,
    ProgramRule,
    Signature,
    goals_of,
    head_and_body,
    indicator,
    make_program,
)
from lbm.relations.prolog.reader import Clause, read_term
from lbm.relations.prolog.terms import (
    Compound,
    Term,
    Variable,
    arguments,
    is_ground,
    key,
    signature,
    write_short,
)
from lbm.relations.questions import fill
from lbm.relations.sources import find_file, read_sources

CLOSED: Final = 100_000
"""Negative examples, at most, that a closed world may give."""


@dataclass(frozen=True)
class RelationalProblem:
    """A relational problem: background knowledge, and examples of a target predicate.

    ``RelationalProblem.load(directory)`` reads one from Prolog files; ``lbm.datasets`` has some ready.

    Attributes
    ----------
    positive, negative
        Ground terms of one predicate, in the order of the files; a line repeated there is repeated here.
    folds
        The name of each example's fold, if folds are known.
    warnings
        What was odd but did no harm, one line each, with file and line.
    """

    name: str
    background: Program
    positive: tuple[Term, ...]
    negative: tuple[Term, ...]
    modes: Modes = field(default_factory=Modes)
    folds: Mapping[Term, str] | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        directory: Path | str,
        *,
        modes: Path | str | None = None,
        negative: Path | str | None = None,
        folds: Path | str | None = None,
    ) -> RelationalProblem:
        """Return the problem whose files a directory holds, in any form of :mod:`lbm.relations.sources`.

        Without a word on negative examples, all other tuples of the types' constants are negative (the closed
        world), if the background lists these; a warning says so.

        Parameters
        ----------
        directory
            Or one of the files, or the name of Aleph's three files without an ending.
        modes, negative, folds
            Files to read instead of modes.pl, neg.pl and folds.tsv; a relative path is looked for where you
            are, then in the directory. A file of folds has columns named ``example`` and ``fold``; or it has
            two columns, a constant and the fold of all examples that mention it. With other negative
            examples, folds.tsv is not read unless it is named.
        """
        found = read_sources(directory, modes=modes, negative=negative)
        problem = make_problem(
            found.name,
            found.background,
            found.positive,
            found.negative,
            found.directives,
            warnings=found.warnings,
        )
        place = found.directory
        if folds is None and not (place / "folds.tsv").exists():
            return problem
        if folds is None and negative:
            odd = "folds.tsv is not read: it goes with neg.pl"
            return replace(problem, warnings=(*problem.warnings, odd))
        path = find_file(place, folds, "folds.tsv")
        return replace(problem, folds=read_folds(path, problem.positive, problem.negative))

    @property
    def examples(self) -> tuple[Term, ...]:
        """Return the positive examples, then the negative ones."""
        return self.positive + self.negative

    @property
    def labels(self) -> tuple[bool, ...]:
        """Return for each example whether it is positive."""
        return (True,) * len(self.positive) + (False,) * len(self.negative)

    @property
    def target(self) -> Signature:
        """Return the name and the arity of the examples."""
        found = signature(self.positive[0])
        assert found is not None, "examples are atoms"
        return found


load_problem = RelationalProblem.load
"""The name of :meth:`RelationalProblem.load` in version 0.1."""


def make_problem(
    name: str,
    background: Iterable[Clause],
    positive: Sequence[Clause],
    negative: Sequence[Clause] | None,
    directives: Iterable[Clause] = (),
    *,
    warnings: Iterable[str] = (),
) -> RelationalProblem:
    """Return the problem that clauses make, after checking that they fit together.

    Parameters
    ----------
    negative
        None: nothing is said of negative examples, and all others are negative where they can be listed.
    warnings
        What is known to be odd already.
    """
    background, directives = list(background), list(directives)
    target = _check_examples(positive, negative or ())
    modes, odd = read_modes(directives)
    program = make_program([*background, *directives])
    said = [*warnings, *odd, *_missing(program, modes, target), *_undefined_goals(program, modes, target)]
    if modes.head or modes.body or modes.determinations:
        _check_usable(program, modes, target, directives)
    known = tuple(clause.term for clause in positive)
    other = tuple(clause.term for clause in negative or ())
    if negative is None:
        other, told = _closed_world(program, modes, known)
        said.append(told)
    return RelationalProblem(name, program, known, other, modes, None, tuple(dict.fromkeys(said)))


def _closed_world(program: Program, modes: Modes, positive: Sequence[Term]) -> tuple[tuple[Term, ...], str]:
    """Return all other tuples of the types' constants as negative examples, and what is to be said of it."""
    target = signature(positive[0])
    head = next((mode for mode in modes.head if mode.predicate == target), None)
    without = "no file of negative examples"
    if head is None or any(len(place.path) > 1 for place in head.places):
        return (), f"{without}, and no closed world: it needs a mode of the head"
    every: list[Sequence[Term]] = []
    for place in head.places:
        kind = place.type
        if not isinstance(kind, str) or not program.defines((kind, 1)):
            return (
                (),
                f"{without}, and no closed world: the background does not list the type {write_short(kind)}",
            )
        asked = Compound(kind, (Variable("X"),))
        try:
            answers = solve(program, asked, answers=CLOSED + 1, proofs=CLOSED + 1)
            every.append(list(dict.fromkeys(answer["X"] for answer in answers)))
        except LimitExceeded as error:
            return (), f"{without}, and no closed world: {error}"
    size = math.prod(map(len, every))
    if size > CLOSED:
        return (), f"{without}, and no closed world: it would have {size} examples (limit CLOSED={CLOSED})"
    known = set(positive)
    paths = [place.path for place in head.places]
    tuples = (fill(head.template, dict(zip(paths, chosen, strict=True))) for chosen in product(*every))
    found = tuple(one for one in tuples if one not in known and is_ground(one))
    return found, f"{without}: all other tuples, {len(found)}, are negative (closed world)"


def read_folds(path: Path | str, positive: Sequence[Term], negative: Sequence[Term]) -> dict[Term, str]:
    """Return the fold of every example, as a tab-separated file with a header says."""
    header, lines = read_rows(path)

    def wrong(message: str, line: int | None = None) -> ParseError:
        return ParseError(message, source=str(path), line=line)

    if len(header) < 2:
        raise wrong("expected a header with the columns example and fold, separated by tabs", 1)
    by_example = "example" in header and "fold" in header
    column, last = (header.index("example"), header.index("fold")) if by_example else (0, 1)
    label = header.index("label") if by_example and "label" in header else None
    rows: list[tuple[Clause, str, str | None]] = []
    for number, cells in lines:
        if len(cells) != len(header):
            raise wrong(f"expected {len(header)} columns, found {len(cells)}", number)
        clause = one_term(cells[column], str(path), number)
        rows.append((clause, cells[last], None if label is None else cells[label]))
    folds: dict[Term, str] = {}
    if by_example:
        known: dict[Term, str] = dict.fromkeys(positive, "pos") | dict.fromkeys(negative, "neg")
        for clause, fold, said in rows:
            shown = write_short(clause.term)
            if clause.term not in known:
                raise clause.error(f"expected an example of this problem, found {shown}")
            if said in ("pos", "neg") and said != known[clause.term]:
                raise clause.error(f"{shown} is said to be {said} but is {known[clause.term]}")
            if folds.setdefault(clause.term, fold) != fold:
                raise clause.error(f"{shown} is in two folds")
    else:
        group = {key(clause.term): fold for clause, fold, _ in rows}
        for example in (*positive, *negative):
            named = {group[key(term)] for term in arguments(example) if key(term) in group}
            if len(named) > 1:
                found = " and ".join(sorted(named))
                raise wrong(f"expected one fold for {write_short(example)}, found {found}")
            if named:
                folds[example] = named.pop()
    without = [example for example in (*positive, *negative) if example not in folds]
    if without:
        first = write_short(without[0])
        raise wrong(f"expected a fold for every example, {len(without)} have none: {first} first")
    return folds


def read_rows(path: Path | str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header of a tab-separated file, and number and cells of each line that is not blank."""
    try:
        lines = read_lines(path).splitlines()
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read {path}: {error}") from error
    header = lines[0].split("\t") if lines else []
    return header, [(i, line.split("\t")) for i, line in enumerate(lines[1:], start=2) if line.strip()]


def one_term(text: str, source: str, line: int) -> Clause:
    """Return the term in a cell of a table, with its place."""
    try:
        return Clause(read_term(text), source, line)
    except ParseError as error:
        raise ParseError(f"{error.message} in {text[:80]!r}", source=source, line=line) from None


def _check_examples(positive: Sequence[Clause], negative: Sequence[Clause]) -> Signature:
    """Return the target, if examples are ground terms of one predicate, and none is in both classes."""
    target: Signature | None = None
    examples = (*positive, *negative)
    for clause in examples:
        head, body = head_and_body(clause)
        found = None if head is None else signature(head)
        if head is None or found is None or body != "true" or not is_ground(head):
            raise clause.error(f"expected an example without variables, found {write_short(clause.term)}")
        target = target or found
        if found != target:
            wanted = f"{indicator(target)}, as at {examples[0].place}"
            raise clause.error(f"expected examples of {wanted}, found {indicator(found)}")
    if target is None or not positive:
        source = negative[0].source if negative else None
        where = f" ({source} has {len(negative)} negative ones)" if source else ""
        raise ParseError(f"expected at least one positive example, found none{where}")
    places = {clause.term: clause.place for clause in positive}
    for clause in negative:
        if clause.term in places:
            raise clause.error(
                f"the negative example {write_short(clause.term)} is a positive one too, at "
                f"{places[clause.term]}: leave one out"
            )
    return target


def _missing(program: Program, modes: Modes, target: Signature) -> Iterator[str]:
    """Yield a warning for each predicate that modes name in vain."""
    lines: dict[Signature, list[str]] = {}
    for mode in modes.body:
        lines.setdefault(mode.predicate, []).append(f"mode at {mode.clause.place}")
    for one in modes.determinations:
        if one.target == target:
            lines.setdefault(one.predicate, []).append(f"determination at {one.clause.place}")
    used = {name for name, _ in modes.for_target(target)}
    used |= {mode.predicate for mode in modes.body if mode.negated}
    for predicate, places in lines.items():
        said = ", ".join(places)
        if not program.defines(predicate) and predicate not in BUILTINS:
            yield f"{indicator(predicate)} has no clauses{_alike(program, predicate)}: {said}"
        elif predicate not in used:
            wanted = "determination" if places[0].startswith("mode") else "mode"
            yield f"{indicator(predicate)} has no {wanted}, and is not used: {said}"


def _alike(program: Program, predicate: Signature) -> str:
    """Return a word on predicates of the same name and another arity that have clauses."""
    others = [one for one in program.predicates if one[0] == predicate[0] and program.defines(one)]
    return f" (but {' and '.join(map(indicator, others))} has)" if others else ""


def check_goals(program: Program, wanted: Iterable[Signature]) -> None:
    """Raise an error for what rules call and nothing defines, in the proofs of these predicates."""
    for called, rule in _undefined(program, wanted):
        raise rule.clause.error(
            f"expected a predicate that has clauses or is built in, found {indicator(called)}"
            f"{_alike(program, called)}: define it, or declare it ':- dynamic {indicator(called)}.'"
        )


def _undefined_goals(program: Program, modes: Modes, target: Signature) -> Iterator[str]:
    """Yield a warning for what rules call and nothing defines; what modes lead to is an error."""
    check_goals(program, [mode.predicate for _, group in modes.for_target(target) for mode in group])
    for called, rule in _undefined(program, program.predicates):
        yield f"{indicator(called)} has no clauses{_alike(program, called)}: called at {rule.clause.place}"


def _undefined(program: Program, wanted: Iterable[Signature]) -> Iterator[tuple[Signature, ProgramRule]]:
    """Yield each predicate that is called at any remove and that nothing defines, and who calls it."""
    todo = list(dict.fromkeys(wanted))[::-1]
    seen, named = set(todo), set()
    while todo:
        predicate = program.predicates.get(todo.pop())
        for _, rule in () if predicate is None else predicate.rules:
            for goal in goals_of(rule.body):
                found = signature(goal)
                if found is None:
                    continue
                if found not in seen:
                    seen.add(found)
                    todo.append(found)
                if found not in program.predicates and found not in BUILTINS and found not in named:
                    named.add(found)
                    yield found, rule


def _check_usable(program: Program, modes: Modes, target: Signature, directives: Sequence[Clause]) -> None:
    """Raise an error if no clause for the target could have a body, or a head."""
    source = directives[0].source if directives else None
    if not any(mode.predicate == target for mode in modes.head):
        raise ParseError(
            f"expected a mode of the head, ':- modeh(1,{target[0]}(+type,...)).', found none", source=source
        )
    if not any(name in BUILTINS or program.defines(name) for name, _ in modes.for_target(target)):
        raise ParseError(
            f"expected a body mode, with a determination for {indicator(target)}, of a predicate that has "
            "clauses, found none",
            source=source,
        )
