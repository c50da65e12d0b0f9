"""A relational problem from files: background knowledge, examples of two classes, modes and folds.

bk.pl      facts and rules; modes may stand here too, as in Aleph's .b files
pos.pl     positive examples, neg.pl negative ones: ground facts of one predicate, the target
modes.pl   modes, determinations and settings
folds.tsv  optional: in which fold each example is tested
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from lbm.errors import FileError, ParseError
from lbm.knowledge.packed import read_lines
from lbm.relations.modes import Modes, read_modes
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.operators import Operators
from lbm.relations.prolog.program import Program, Signature, goals_of, head_and_body, indicator, make_program
from lbm.relations.prolog.reader import Clause, read_file, read_term
from lbm.relations.prolog.terms import Term, arguments, is_ground, key, signature, write_short


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
        """Return the problem whose files a directory holds.

        Parameters
        ----------
        modes, negative, folds
            Files to read instead of modes.pl, neg.pl and folds.tsv; a relative path is looked for where you
            are, then in the directory. A file of folds has columns named ``example`` and ``fold``; or it has
            two columns, a constant and the fold of all examples that mention it. With other negative
            examples, folds.tsv is not read unless it is named.
        """
        directory = Path(directory)
        if not directory.is_dir():
            raise FileError(
                f"cannot read {directory}: expected a directory with bk.pl, pos.pl, neg.pl and modes.pl"
            )
        operators = Operators()
        background = read_file(directory / "bk.pl", operators=operators)
        declared = [clause for clause in background if head_and_body(clause)[0] is None]
        if modes is not None or (directory / "modes.pl").exists() or not _declares_modes(declared):
            found = read_file(_find(directory, modes, "modes.pl"), operators=operators)
            for clause in found:
                if head_and_body(clause)[0] is not None:
                    raise clause.error(f"expected a directive, ':- ...', found {write_short(clause.term)}")
            declared += found
        positive = read_file(directory / "pos.pl", operators=operators)
        other = read_file(_find(directory, negative, "neg.pl"), operators=operators)
        problem = make_problem(directory.resolve().name, background, positive, other, declared)
        if folds is None and not (directory / "folds.tsv").exists():
            return problem
        if folds is None and negative:
            odd = "folds.tsv is not read: it goes with neg.pl"
            return replace(problem, warnings=(*problem.warnings, odd))
        path = _find(directory, folds, "folds.tsv")
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
    negative: Sequence[Clause],
    directives: Iterable[Clause] = (),
) -> RelationalProblem:
    """Return the problem that clauses make, after checking that they fit together."""
    background, directives = list(background), list(directives)
    target = _check_examples(positive, negative)
    modes, warnings = read_modes(directives)
    _check_arities(chain(_uses(background), _uses(positive), _uses(negative), _mentioned(modes)))
    program = make_program(background)
    warnings += _missing(program, modes, target)
    warnings += _undefined_goals(program)
    if modes.head or modes.body or modes.determinations:
        _check_usable(program, modes, target, directives)
    return RelationalProblem(
        name,
        program,
        tuple(clause.term for clause in positive),
        tuple(clause.term for clause in negative),
        modes,
        None,
        tuple(warnings),
    )


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


def _find(directory: Path, given: Path | str | None, usual: str) -> Path:
    if given is None:
        return directory / usual
    given = Path(given)
    return given if given.exists() or not (directory / given).exists() else directory / given


def _declares_modes(directives: Iterable[Clause]) -> bool:
    return any(
        (signature(head_and_body(clause)[1]) or ("", 0))[0] in ("modeh", "modeb", "mode")
        for clause in directives
    )


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
        if found[0] != target[0]:
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


def _uses(clauses: Iterable[Clause]) -> Iterator[tuple[Signature, Clause]]:
    """Yield every predicate that clauses define or call, with the clause."""
    for clause in clauses:
        head, body = head_and_body(clause)
        if head is None:
            continue
        for goal in (head,) if body == "true" else (head, *goals_of(body)):
            found = signature(goal)
            if found is not None:
                yield found, clause


def _mentioned(modes: Modes) -> Iterator[tuple[Signature, Clause]]:
    """Yield every predicate that modes and determinations name, with the directive."""
    for mode in (*modes.head, *modes.body):
        yield mode.predicate, mode.clause
    for one in modes.determinations:
        for predicate in (one.target, one.predicate):
            yield predicate, one.clause


def _check_arities(uses: Iterable[tuple[Signature, Clause]]) -> None:
    first: dict[str, tuple[int, Clause]] = {}
    for (name, arity), clause in uses:
        known, before = first.setdefault(name, (arity, clause))
        if known != arity and (name, arity) not in BUILTINS and (name, known) not in BUILTINS:
            raise clause.error(
                f"expected {name} with {known} arguments, as at {before.place}, found {arity}: "
                "rename one of them"
            )


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
        if predicate not in program.predicates and predicate not in BUILTINS:
            yield f"{indicator(predicate)} has no clauses: {said}"
        elif predicate not in used:
            wanted = "determination" if places[0].startswith("mode") else "mode"
            yield f"{indicator(predicate)} has no {wanted}, and is not used: {said}"


def _undefined_goals(program: Program) -> Iterator[str]:
    """Yield a warning for each predicate that rules call and nothing defines: such a goal fails."""
    seen = set()
    for predicate in program.predicates.values():
        for _, rule in predicate.rules:
            for goal in goals_of(rule.body):
                found = signature(goal)
                if found and found not in program.predicates and found not in BUILTINS and found not in seen:
                    seen.add(found)
                    yield f"{indicator(found)} has no clauses: called at {rule.clause.place}"


def _check_usable(program: Program, modes: Modes, target: Signature, directives: Sequence[Clause]) -> None:
    """Raise an error if no clause for the target could have a body, or a head."""
    source = directives[0].source if directives else None
    if not any(mode.predicate == target for mode in modes.head):
        raise ParseError(
            f"expected a mode of the head, ':- modeh(1,{target[0]}(+type,...)).', found none", source=source
        )
    if not any(name in BUILTINS or name in program.predicates for name, _ in modes.for_target(target)):
        raise ParseError(
            f"expected a body mode, with a determination for {indicator(target)}, of a predicate that has "
            "clauses, found none",
            source=source,
        )
