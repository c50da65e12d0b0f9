"""Rules with variables over the constants of a problem: one file of rules for many problems.

A file declares the domain its rules speak about and leaves it empty; the problem fills it:

    domain compound = {}
    forall X, Y in compound: ~(ex(X, Y) & ex(Y, X))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lbm.errors import FileError, ParseError
from lbm.knowledge.formula import CONSTANT, atom_name, quote
from lbm.knowledge.packed import read_lines
from lbm.knowledge.theory import Theory
from lbm.relations.prolog.terms import Compound, Term, write

if TYPE_CHECKING:
    from lbm.relations.problem import RelationalProblem

_EMPTY: Final = re.compile(r"^[ \t]*domain[ \t]+(\w+)[ \t]*=[ \t]*\{\s*\}", re.MULTILINE)


def ground(
    rules: str | Path | Theory,
    atoms: Iterable[str] = (),
    *,
    domains: Mapping[str, Iterable[str]] | None = None,
) -> Theory:
    r"""Return the ground instances of rules over the constants of a problem.

    Parameters
    ----------
    rules
        Text in the ``.lbm`` format, the path of a file that holds it, or a theory that is ground already.
    atoms
        The examples and queries of the problem. If the rules leave one domain empty and ``domains`` does not
        fill it, the constants of these atoms do, in alphabetical order.
    domains
        The constants of domains that the rules declare.

    Examples
    --------
    >>> rules = "domain thing = {}\nforall X, Y in thing, X != Y: near(X, Y) -> near(Y, X)"
    >>> print(ground(rules, ["near(a, b)"]))
    near(a, b) -> near(b, a)
    near(b, a) -> near(a, b)
    """
    if isinstance(rules, Theory):
        return rules
    text, source = (rules, None) if isinstance(rules, str) else (_read(rules), str(rules))
    filled = {name: [_constant(member) for member in members] for name, members in (domains or {}).items()}
    empty = [name for name in _EMPTY.findall(text) if name not in filled]
    if len(empty) > 1:
        raise ParseError(
            f"the rules leave {len(empty)} domains empty ({', '.join(empty)}): "
            "pass domains={name: constants} to say which constants belong to which",
            source=source,
        )
    if empty:
        filled[empty[0]] = constants_of(atoms)
    return Theory.parse(text, source=source, domains=filled)


def constants_of(atoms: Iterable[str]) -> list[str]:
    """Return the constants of ground terms, each once, in alphabetical order.

    >>> constants_of(["ex(b, a)", "ex(b,c)", "rain"])
    ['a', 'b', 'c']
    """
    found: set[str] = set()
    for name in atoms:
        parts = term_parts(atom_name(name))
        if parts is not None:
            found.update(parts[1])
    return sorted(found)


def labels_of(problem: RelationalProblem) -> dict[str, bool]:
    """Return the examples of a problem as labels: atoms as rules name them, and whether each is positive."""
    return {spelled(term): label for term, label in zip(problem.examples, problem.labels, strict=True)}


def spelled(term: Term) -> str:
    """Return a ground Prolog term as the atom that rules name; arguments that are no constants are quoted.

    >>> from lbm.relations.prolog.terms import Compound
    >>> spelled(Compound("bond", ("n", Compound("group", ("ch3", 2)))))
    "bond(n, 'group(ch3, 2)')"
    """
    if not isinstance(term, Compound):
        return atom_name(term if isinstance(term, str) else write(term))
    parts = [_constant(part if isinstance(part, str) else write(part)) for part in term.arguments]
    return atom_name(f"{term.functor}({', '.join(parts)})")


def term_parts(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return predicate and constants of a ground term as atoms carry it; None: it is no term.

    >>> term_parts("ex(a1, 'b 1')")
    ('ex', ('a1', "'b 1'"))
    """
    if name[-1:] != ")" or quote(name) != name:
        return None
    predicate, _, rest = name.partition("(")
    return predicate, tuple(CONSTANT.findall(rest))


def _constant(member: str) -> str:
    """Return a constant as terms print it: in quotes where it needs them."""
    text = atom_name(str(member))
    return text if CONSTANT.fullmatch(text) else "'" + text.replace("'", "''") + "'"


def _read(path: Path) -> str:
    try:
        return read_lines(path)
    except UnicodeDecodeError as error:
        raise FileError(f"expected rules as UTF-8 text in {path}, got bytes that are none") from error
