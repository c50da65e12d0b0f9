"""Where a relational problem's files are, and in which of the forms that people have them.

bk.pl, pos.pl, neg.pl, modes.pl      ours: a file for each part
train.b, train.f, train.n            Aleph's: background and modes, positive and negative examples
bk.pl, bias.pl, exs.pl               Popper's: pos(...) and neg(...), and a bias of types and directions
one file                             Aleph's with sections (:- begin_in_pos.), or Progol's: facts of the
                                     target are positive, :- target(...) negative, directives may end in ?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lbm.errors import FileError, ParseError
from lbm.knowledge.packed import read_lines
from lbm.relations.bias import read_bias
from lbm.relations.prolog.operators import Operators
from lbm.relations.prolog.program import head_and_body, indicator
from lbm.relations.prolog.reader import Clause, read_clauses, read_file
from lbm.relations.prolog.terms import arguments, is_ground, signature, write_short

STEM: Final = (".b", ".f", ".n")
"""Endings of Aleph's three files."""

ONE_FILE: Final = (".pl", ".al", ".pro", ".prolog", ".progol")
"""Endings of problems in one file."""

_SECTIONS: Final = {
    **dict.fromkeys(("begin_bg",), "background"),
    **dict.fromkeys(("begin_in_pos",), "positive"),
    **dict.fromkeys(("begin_in_neg",), "negative"),
    **dict.fromkeys(("end_bg", "end_in_pos", "end_in_neg"), ""),
}
_PARTS: Final = ("bk.pl", "pos.pl", "neg.pl", "modes.pl", "bias.pl", "exs.pl")
_PROGOL: Final = re.compile(r"^[ \t]*:-[^\n]*\?[ \t]*(?:%[^\n]*)?$", re.MULTILINE)
_ASKED: Final = re.compile(r"\?(?=[ \t]*(?:%[^\n]*)?$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sources:
    """The clauses of a problem by what they are for.

    Attributes
    ----------
    directory
        Where other files of the problem are looked for.
    negative
        None: nothing says which examples are negative.
    """

    name: str
    directory: Path
    background: Sequence[Clause]
    positive: Sequence[Clause]
    negative: Sequence[Clause] | None
    directives: Sequence[Clause]
    warnings: Sequence[str] = ()


def names_problem(path: Path | str) -> bool:
    """Say whether a path looks like a relational problem: a directory, a stem or a Prolog file."""
    path = Path(path)
    try:
        if path.is_dir():
            return True
        if path.exists():
            return path.suffix in (*STEM, *ONE_FILE)
        return _sibling(path, ".b").exists() or _sibling(path, ".pl").exists()
    except OSError:  # no name that a file can have
        return False


def read_sources(
    path: Path | str, *, modes: Path | str | None = None, negative: Path | str | None = None
) -> Sources:
    """Return the clauses of the problem that a path names: a directory, a file, or a name without ending.

    ``modes`` and ``negative`` are files to read instead of the problem's own.
    """
    path = Path(path)
    if path.is_dir():
        return _in_directory(path, modes, negative)
    if path.suffix in STEM and path.exists():
        return _stem(path.with_suffix(""), modes, negative)
    if path.name in _PARTS and path.exists():
        return _in_directory(path.parent, modes, negative)
    if path.is_file():
        return _one_file(path, modes, negative)
    if _sibling(path, ".b").exists():
        return _stem(path, modes, negative)
    if _sibling(path, ".pl").exists():
        return _one_file(_sibling(path, ".pl"), modes, negative)
    raise FileError(
        f"cannot read {path}: expected a directory with bk.pl, pos.pl, neg.pl and modes.pl, "
        "the name of Aleph's .b, .f and .n files, or a file of Prolog"
    )


def background_file(path: Path | str) -> Path | None:
    """Return the file that holds a problem's background and no examples: bk.pl or Aleph's .b."""
    path = Path(path)
    if path.is_dir():
        found = [path / "bk.pl"] if (path / "bk.pl").exists() else sorted(path.glob("*.b"))
    elif path.suffix in STEM and path.exists():
        found = [path.with_suffix(".b")]
    elif path.name in _PARTS and path.exists():
        found = [path.with_name("bk.pl")]
    else:
        found = [_sibling(path, ".b")]
    return found[0] if len(found) == 1 and found[0].exists() else None


def find_file(directory: Path, given: Path | str | None, usual: str) -> Path:
    """Return the file that is named, looked for where you are and in the directory, or the usual one."""
    if given is None:
        return directory / usual
    given = Path(given)
    return given if given.exists() or not (directory / given).exists() else directory / given


def _sibling(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}") if path.name else path


def _in_directory(directory: Path, modes: Path | str | None, negative: Path | str | None) -> Sources:
    """Return the problem in a directory, whichever form it has."""
    has = {name for name in _PARTS if (directory / name).exists()}
    if "exs.pl" in has and not has & {"pos.pl", "neg.pl"}:
        return _popper(directory, modes, negative)
    if has:
        return _four_files(directory, modes, negative)
    stems = sorted(directory.glob("*.b"))
    if not stems:
        stems = [one for one in sorted(directory.iterdir()) if one.suffix in ONE_FILE and _is_problem(one)]
    if len(stems) > 1:
        names = ", ".join(one.name for one in stems[:5])
        raise FileError(f"expected one problem in {directory}, found {names}: name one of them")
    if not stems:
        return _four_files(directory, modes, negative)
    return (_stem if stems[0].suffix == ".b" else _one_file)(
        stems[0].with_suffix("") if stems[0].suffix == ".b" else stems[0], modes, negative
    )


def _is_problem(path: Path) -> bool:
    try:
        return re.search(r"^\s*:-\s*modeh\s*\(", read_lines(path), re.MULTILINE) is not None
    except (OSError, UnicodeDecodeError):
        return False


# --- four files --------------------------------------------------------------------------------------


def _four_files(directory: Path, modes: Path | str | None, negative: Path | str | None) -> Sources:
    operators = Operators()
    background = read_file(directory / "bk.pl", operators=operators)
    declared = _directives(background)
    if modes is not None or (directory / "modes.pl").exists() or not _declares_modes(declared):
        declared += _read_modes(find_file(directory, modes, "modes.pl"), operators)
    positive = read_file(directory / "pos.pl", operators=operators)
    other = read_file(find_file(directory, negative, "neg.pl"), operators=operators)
    return Sources(directory.resolve().name, directory, background, positive, other, declared)


def _directives(clauses: Iterable[Clause]) -> list[Clause]:
    return [clause for clause in clauses if head_and_body(clause)[0] is None]


def _declares_modes(directives: Iterable[Clause]) -> bool:
    return any(
        (signature(head_and_body(clause)[1]) or ("", 0))[0] in ("modeh", "modeb", "mode")
        for clause in directives
    )


def _read_modes(path: Path, operators: Operators) -> list[Clause]:
    """Return the directives of a file that has nothing else."""
    found = read_file(path, operators=operators)
    for clause in found:
        if head_and_body(clause)[0] is not None:
            raise clause.error(f"expected a directive, ':- ...', found {write_short(clause.term)}")
    return found


# --- Aleph's three files, and a single one -----------------------------------------------------------


def _stem(stem: Path, modes: Path | str | None, negative: Path | str | None) -> Sources:
    operators = Operators()
    background, warnings = _without_constraints(read_file(_sibling(stem, ".b"), operators=operators))
    declared = _declared(background, stem.parent, modes, operators)
    positive = read_file(_sibling(stem, ".f"), operators=operators)
    other = find_file(stem.parent, negative, f"{stem.name}.n")
    found = read_file(other, operators=operators) if negative is not None or other.exists() else None
    return Sources(stem.name, stem.parent, background, positive, found, declared, warnings)


def _declared(
    background: Sequence[Clause], directory: Path, modes: Path | str | None, operators: Operators
) -> list[Clause]:
    if modes is None:
        return _directives(background)
    return _read_modes(find_file(directory, modes, "modes.pl"), operators)


def _without_constraints(clauses: Sequence[Clause]) -> tuple[list[Clause], list[str]]:
    """Return clauses without those for ``false``, by which Aleph prunes its search, and a word about it."""
    kept: list[Clause] = []
    left: list[Clause] = []
    for clause in clauses:
        (left if head_and_body(clause)[0] == "false" else kept).append(clause)
    said = [f"{left[0].place}: constraints, clauses for false, are not used"] if left else []
    return kept, said


def _one_file(path: Path, modes: Path | str | None, negative: Path | str | None) -> Sources:
    operators = Operators()
    try:
        text = read_lines(path)
    except UnicodeDecodeError as error:
        raise ParseError(f"expected text in UTF-8: {error}", source=str(path)) from error
    if _PROGOL.search(text):
        text = _ASKED.sub(".", text)
    clauses = read_clauses(text, source=str(path), operators=operators)
    parts: dict[str, list[Clause]] = {"": [], "background": [], "positive": [], "negative": []}
    section = ""
    has_sections = False
    for clause in clauses:
        head, directive = head_and_body(clause)
        if head is None and directive in _SECTIONS:
            section, has_sections = _SECTIONS[str(directive)], True
        else:
            parts[section].append(clause)
    rest = [*parts[""], *parts["background"]]
    positive, other = parts["positive"], parts["negative"]
    if not has_sections:
        rest, positive, other = _told_apart(rest, path)
    background, warnings = _without_constraints(rest)
    declared = _declared(background, path.parent, modes, operators)
    if negative is not None:
        other = read_file(find_file(path.parent, negative, ""), operators=operators)
    known = other if other or negative is not None or _has_negative_section(clauses) else None
    return Sources(path.stem, path.parent, background, positive, known, declared, warnings)


def _has_negative_section(clauses: Iterable[Clause]) -> bool:
    return any(head_and_body(clause) == (None, "begin_in_neg") for clause in clauses)


def _told_apart(clauses: Sequence[Clause], path: Path) -> tuple[list[Clause], list[Clause], list[Clause]]:
    """Return background, positive and negative examples of a file where only the target tells them apart."""
    heads = {}
    for clause in clauses:
        head, directive = head_and_body(clause)
        if head is None and signature(directive) in (("modeh", 2), ("mode", 2)):
            found = signature(arguments(directive)[1])
            if found is not None:
                heads[found] = clause
    facts = {signature(head) for clause in clauses if (head := head_and_body(clause)[0]) is not None}
    targets = [name for name in heads if name in facts]
    if len(targets) != 1:
        wanted = (
            "expected facts of one predicate with a mode of the head, ':- modeh(1,p(+type)).', as examples"
        )
        raise ParseError(
            f"{wanted}, found {' and '.join(map(indicator, targets)) or 'none'}", source=str(path)
        )
    (target,) = targets
    background, positive, negative = [], [], []
    for clause in clauses:
        head, body = head_and_body(clause)
        if head is None and signature(body) == target and is_ground(body):
            negative.append(Clause(body, clause.source, clause.line))
        elif head is not None and signature(head) == target:
            positive.append(clause)
        else:
            background.append(clause)
    return background, positive, negative


# --- Popper's three files ----------------------------------------------------------------------------


def _popper(directory: Path, modes: Path | str | None, negative: Path | str | None) -> Sources:
    operators = Operators()
    background = read_file(directory / "bk.pl", operators=operators)
    declared = _directives(background)
    warnings: list[str] = []
    if modes is None:
        more, warnings = read_bias(directory / "bias.pl")
        declared += more
    else:
        declared += _read_modes(find_file(directory, modes, "modes.pl"), operators)
    examples: dict[str, list[Clause]] = {"pos": [], "neg": []}
    for clause in read_file(directory / "exs.pl", operators=operators):
        head, body = head_and_body(clause)
        name = None if head is None else signature(head)
        if head is None and (signature(body) or ("",))[0] in ("discontiguous", "style_check", "dynamic"):
            continue
        if head is None or name not in (("pos", 1), ("neg", 1)) or body != "true":
            raise clause.error(f"expected an example, pos(...) or neg(...), found {write_short(clause.term)}")
        examples[name[0]].append(Clause(arguments(head)[0], clause.source, clause.line))
    other: Sequence[Clause] | None = examples["neg"] or None
    if negative is not None:
        other = read_file(find_file(directory, negative, "neg.pl"), operators=operators)
    return Sources(
        directory.resolve().name, directory, background, examples["pos"], other, declared, warnings
    )
