"""A relational problem -> four files that Aleph, Progol and we read, and its folds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lbm.errors import FileError
from lbm.knowledge.packed import file_error, write_whole
from lbm.relations.modes import Mode, Modes
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.printed import write_clause
from lbm.relations.prolog.program import Program, indicator
from lbm.relations.prolog.terms import Compound, Term, write


def save_problem(problem: RelationalProblem, directory: Path | str) -> list[str]:
    """Write bk.pl, pos.pl, neg.pl and modes.pl, and folds.tsv where folds are known; return their names.

    The directory is made if it is not there. Reading it gives the same problem.
    """
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if directory.exists():
            raise FileError(f"cannot write {directory}: expected a directory, found a file") from error
        raise file_error("write", directory, error) from error
    files: dict[str, Iterator[str]] = {
        "bk.pl": program_lines(problem.background),
        "pos.pl": _examples(problem.positive),
        "neg.pl": _examples(problem.negative),
        "modes.pl": mode_lines(problem.modes),
    }
    if problem.folds is not None:
        files["folds.tsv"] = _folds(problem)
    for name, lines in files.items():
        write_whole(directory / name, (f"{line}\n" for line in lines))
    return list(files)


def program_lines(program: Program) -> Iterator[str]:
    """Yield the clauses of a program, predicate by predicate, as text that gives the same program."""
    for (name, arity), predicate in program.predicates.items():
        if not predicate.facts and not predicate.rules:
            yield write_clause(Compound(":-", (Compound("dynamic", (Compound("/", (name, arity)),)),)))
        place = 0
        for before, rule in predicate.rules:
            yield from (_fact(name, fact) for fact in predicate.facts[place:before])
            place = before
            yield write_clause(rule.head if rule.body == "true" else Compound(":-", (rule.head, rule.body)))
        yield from (_fact(name, fact) for fact in predicate.facts[place:])


def mode_lines(modes: Modes) -> Iterator[str]:
    """Yield the settings, modes and determinations as directives."""
    for name, value in modes.settings.items():
        yield write_clause(Compound(":-", (Compound("set", (name, value)),)))
    for mode in modes.head:
        yield _mode("modeh", mode)
    for mode in modes.body:
        yield _mode("modeb", mode)
    for one in modes.determinations:
        yield f":- determination({_indicated(one.target)},{_indicated(one.predicate)})."


def _indicated(predicate: tuple[str, int]) -> str:
    name, arity = predicate
    return indicator((write(name) if name[:1].isalpha() else f"({write(name)})", arity))


def _mode(kind: str, mode: Mode) -> str:
    return f":- {kind}({mode})."


def _fact(name: str, given: tuple[Term, ...]) -> str:
    return write_clause(Compound(name, given) if given else name)


def _examples(examples: tuple[Term, ...]) -> Iterator[str]:
    return (write_clause(example) for example in examples)


def _folds(problem: RelationalProblem) -> Iterator[str]:
    yield "example\tlabel\tfold"
    seen = set()
    for example, label in zip(problem.examples, problem.labels, strict=True):
        if example not in seen:
            seen.add(example)
            assert problem.folds is not None, "asked for only where folds are known"
            yield "\t".join([write(example), "pos" if label else "neg", problem.folds[example]])
