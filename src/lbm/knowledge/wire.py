"""Theories in files: ``.lbm``, ``.cnf`` and ``.wcnf`` in and out, others in; formulae to and from sympy."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

from lbm.errors import FileError, LimitExceeded, MissingExtra, ParseError, WeightError
from lbm.knowledge.clauses import counter
from lbm.knowledge.formula import (
    CARDINALITIES,
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    disjunction,
    fold,
    iff,
    implies,
    make,
)
from lbm.knowledge.packed import bare_name, path_shown, read_whole, write_whole
from lbm.knowledge.theory import LiteralWeights, Theory, to_lines, unweighted, weighing

FORMATS: Final = ("lbm", "cnf", "wcnf", "wcnf-old")
"""What can be written; reading takes either form of WCNF under either name, and also READ_ONLY."""

READ_ONLY: Final = ("uai", "nnf", "sdd")
"""What can be read beside FORMATS: networks, and circuits."""

MAX_SYMPY: Final = 100_000
"""Parts of a formula for sympy, where shared parts are written out each time."""

_ENDINGS: Final = {".lbm": "lbm", ".txt": "lbm", "": "lbm", ".cnf": "cnf", ".wcnf": "wcnf"}
_READ: Final = {**_ENDINGS, ".uai": "uai", ".nnf": "nnf", ".ddnnf": "nnf", ".sdd": "sdd"}
_HEADER: Final = re.compile(rb"^[ \t]*p[ \t]+(w?)(p?)cnf[ \t]+[0-9]", re.MULTILINE)
_HARD_LINE: Final = re.compile(rb"^h[ \t]+-?[0-9]", re.MULTILINE)
_NETWORK: Final = re.compile(rb"\s*(?:c(?!\S)[^\n]*\n\s*)*(?:MARKOV|BAYES)\s+[0-9]")
_CIRCUIT: Final = re.compile(
    rb"\s*(?:c(?!\S)[^\n]*\n\s*)*"
    rb"(?:(sdd)[ \t]+[0-9]+[ \t\r]*$|nnf(?:[ \t]+[0-9]+){3}|[oatf][ \t]+[0-9]+[ \t]+0[ \t\r]*$)",
    re.MULTILINE,
)
_BOM: Final = b"\xef\xbb\xbf"


# --- reading -------------------------------------------------------------------------------------


def load_theory(
    path: str | Path,
    *,
    lenient: bool = False,
    hard_as_soft: bool = False,
    evidence: str | Path | None = None,
    variables: int | None = None,
    warn: Callable[[str], object] | None = None,
) -> Theory:
    """Read a theory from a file; the ending of its name, or else its text, says the format.

    Parameters
    ----------
    lenient
        Read a DIMACS file that does not fit its header, and tell ``warn`` (by default Python's
        warnings) about it.
    hard_as_soft
        Read a ``.cnf`` file as Max-SAT: every clause is soft and weighs 1.
    evidence
        A file that says what is observed in a ``.uai`` network.
    variables
        How many a circuit has (``.sdd``, ``.nnf``); None: up to its largest literal, or as its header says.
    """
    data = read_whole(path)
    return read_theory(
        data,
        format=sniff_format(data, path),
        source=path_shown(path),
        lenient=lenient,
        hard_as_soft=hard_as_soft,
        evidence=None if evidence is None else (read_whole(evidence), path_shown(evidence)),
        variables=variables,
        warn=warn,
    )


def read_theory(
    data: bytes | str,
    *,
    format: str,
    source: str | None = None,
    lenient: bool = False,
    hard_as_soft: bool = False,
    evidence: tuple[bytes, str] | None = None,
    variables: int | None = None,
    warn: Callable[[str], object] | None = None,
) -> Theory:
    r"""Read a theory from text in one of FORMATS; ``source`` is what messages call it.

    Options are those of :func:`load_theory`; ``evidence`` is a text and what messages call that.

    >>> print(read_theory("p cnf 2 2\n1 -2 0 2 0", format="cnf"))
    x1 | ~x2
    x2
    """
    _check_format(format, reading=True)
    data = _as_bytes(data).removeprefix(_BOM)
    if hard_as_soft and format != "cnf":
        raise FileError(f"hard clauses are read as soft ones from .cnf files, and {source or 'this'} is none")
    if evidence is not None and format != "uai":
        raise FileError("files of evidence go with .uai networks; --given takes any formula as evidence")
    if variables is not None and format not in ("nnf", "sdd"):
        raise FileError(
            f"a number of variables goes with circuits, .nnf and .sdd; {source or 'this'} is none"
        )
    if not data.strip():
        raise ParseError("expected a theory, found an empty text", source=source)
    problem = _not_text(data, source)
    if problem is not None:
        # Old benchmark files have comments in Latin-1; the numbers of such a file can still be read.
        if not lenient or format == "lbm" or b"\0" in data:
            raise problem
        (warn or warnings.warn)(problem.one_line())
    if format == "lbm":
        return Theory.parse(data.decode(), source=source)
    if format == "uai":
        from lbm.knowledge.networks import network_theory, read_evidence, read_network

        network = read_network(data, source=source)
        values = None if evidence is None else read_evidence(evidence[0], network, source=evidence[1])
        return network_theory(network, values)
    if format in ("nnf", "sdd"):
        from lbm.knowledge.circuit_files import circuit_theory

        return circuit_theory(data, variables=variables, source=source, sdd=format == "sdd")
    # numpy is loaded where it is needed: text files do without.
    from lbm.knowledge.counting import read_counting
    from lbm.knowledge.dimacs import read_clauses

    weighted = format != "cnf"
    clauses = read_clauses(data, weighted=weighted, source=source, lenient=lenient, warn=warn)
    asked = read_counting(
        data, len(clauses.atoms), weighted=weighted, source=source, lenient=lenient, warn=warn
    )
    shown = None if asked.shown is None else tuple(clauses.atoms[number - 1] for number in asked.shown)
    if hard_as_soft:
        if asked.weights:
            raise FileError(
                f"{source or 'this file'} weighs literals: its clauses cannot be read as soft ones"
            )
        clauses = replace(clauses, weights=clauses.weights + 1)
    theory = Theory.from_clauses(clauses, shown=shown)
    if not asked.weights:
        return theory
    return weighing(theory, {clauses.atoms[number - 1]: pair for number, pair in asked.weights.items()})


def sniff_format(data: bytes | str, name: str | Path | None = None) -> str:
    r"""Return the format of a text: by the ending of its name, or by a line that gives it away.

    Without a name, or with one that has no ending, a text that gives nothing away is ``lbm``.

    >>> sniff_format("c some comment\np cnf 3 2"), sniff_format("p & q -> r", "-")
    ('cnf', 'lbm')
    """
    ending = bare_name(name).suffix.lower() if name is not None else ""
    if ending in _READ and ending not in (".txt", ""):
        return _READ[ending]
    data = _as_bytes(data).removeprefix(_BOM)
    header = _HEADER.search(data)
    if header is not None:
        return "wcnf" if header[1] and not header[2] else "cnf"
    if _HARD_LINE.search(data):
        return "wcnf"
    if _NETWORK.match(data):
        return "uai"
    circuit = _CIRCUIT.match(data)
    if circuit is not None:
        return "sdd" if circuit[1] else "nnf"
    if ending in _ENDINGS:
        return "lbm"
    source = path_shown(name or "")
    problem = _not_text(data, source)
    raise problem or ParseError(
        f"expected a file that ends in .lbm, .cnf or .wcnf, or a line 'p cnf', 'p wcnf' or 'h 1 2 0' in it; "
        f"found the ending {ending!r} and no such line",
        source=source,
    )


def _as_bytes(data: bytes | str) -> bytes:
    if isinstance(data, str):
        return data.encode(errors="surrogatepass")
    if isinstance(data, bytes):
        return data
    raise TypeError(f"expected text or bytes, got {data!r}")


def _not_text(data: bytes, source: str | None) -> ParseError | None:
    """Return what is wrong with bytes that are no text in UTF-8."""
    offset = data.find(b"\0")
    found = "a NUL byte: is this a binary file?"
    if offset < 0:
        if data.isascii():
            return None
        try:
            data.decode()
        except UnicodeDecodeError as error:
            offset, found = error.start, f"the byte 0x{data[error.start]:02x}, which is none"
        else:
            return None
    start = data.rfind(b"\n", 0, offset) + 1
    return ParseError(
        f"expected text in UTF-8, found {found}",
        source=source,
        line=data.count(b"\n", 0, offset) + 1,
        column=len(data[start:offset].decode(errors="replace")) + 1,
    )


def _check_format(format: str, *, reading: bool = False) -> None:
    if format not in FORMATS and not (reading and format in READ_ONLY):
        raise ValueError(f"expected a format of {', '.join(FORMATS)}, got {format!r}")


# --- writing -------------------------------------------------------------------------------------


def save_theory(theory: Theory, path: str | Path, *, format: str | None = None) -> None:
    """Write a theory to a file, whole or not at all; the ending of its name says the format.

    ``.wcnf`` is written in its newer form; ``format="wcnf-old"`` asks for the other.
    """
    if format is None:
        ending = bare_name(path).suffix.lower()
        if ending not in _ENDINGS:
            raise FileError(
                f"cannot write {path_shown(path)}: expected a name that ends in .lbm, .cnf or .wcnf"
            )
        format = _ENDINGS[ending]
    write_whole(path, write_theory(theory, format))


def write_theory(theory: Theory, format: str) -> Iterator[str]:
    """Return the text of a theory in one of FORMATS, piece by piece.

    DIMACS has only clauses: other formulae get definitional variables, as full equivalences, so
    that models, counts and weights are kept. It has no negative weights, and decimals are not written:
    score(x) = (weights of the soft clauses true in x)/scale + offset, and comments say both.

    >>> print("".join(write_theory(Theory(["a -> b", (2, "~a")]), "wcnf")), end="")
    c atom 1 a
    c atom 2 b
    h -1 2 0
    2 -1 0
    """
    if not isinstance(theory, Theory):
        raise TypeError(f"expected a theory, got {theory!r}")
    _check_format(format)
    if format == "lbm":
        lines = (f"{line}\n" for line in to_lines(theory))
        return lines if theory.atoms or len(theory) else iter(["true\n"])  # an empty file says nothing
    # numpy is loaded where it is needed: .lbm files do without.
    from lbm.knowledge.dimacs import write_cnf, write_wcnf
    from lbm.knowledge.weighted import weighted_clauses

    literals = theory.literal_weights if format == "cnf" else {}
    if format == "cnf":
        theory = unweighted(theory)
        _check_hard(theory)
    found = weighted_clauses(theory)
    comments = _task(theory, literals)
    atoms = len(theory.atoms)
    if found.variables > atoms:
        comments.append(f"definitional variables: {found.variables - atoms}, from {atoms + 1} on")
    if found.digits:
        comments.append(f"scale 10^{found.digits}")
    if found.offset:
        comments.append(f"offset {found.offset}")
    place = {name: number for number, name in enumerate(theory.atoms, start=1)}
    if theory.shown is not None:
        comments.append(" ".join(["p show", *(str(place[name]) for name in theory.shown), "0"]))
    for name, (positive, negative) in literals.items():
        comments += [f"p weight {place[name]} {positive} 0", f"p weight -{place[name]} {negative} 0"]
    if format == "cnf":
        return write_cnf(found, comments)
    return write_wcnf(found, comments, old=format == "wcnf-old")


def _task(theory: Theory, literals: LiteralWeights) -> list[str]:
    """Return the comment that says what is to be counted, where literals weigh something."""
    return [] if not literals else ["t wmc" if theory.shown is None else "t pwmc"]


def _check_hard(theory: Theory) -> None:
    for number, weight in enumerate(theory.weights, start=1):
        if weight is not None:
            raise WeightError(
                f"a .cnf file has no weights, and formula {number} of this theory has the weight "
                f"{weight}: write .wcnf or .lbm"
            )


# --- sympy ---------------------------------------------------------------------------------------


def from_sympy(expression: Any) -> Formula:
    """Return a sympy expression as a formula; symbols become atoms of the same name.

    ``And(a, b, c)`` becomes ``a & b & c``, ``Equivalent(a, b, c)`` ``(a <-> b) & (b <-> c)`` and
    ``ITE(a, b, c)`` ``(a -> b) & (~a -> c)``.
    """
    sympy = _sympy("reading a sympy expression")
    build = _builders(sympy)
    if not isinstance(expression, bool | sympy.Basic):
        raise TypeError(f"expected a sympy expression, got {expression!r}")
    # By identity: sympy's own hash and == recurse. The expression keeps its parts alive meanwhile.
    made: dict[int, Formula] = {}
    symbols: dict[Formula, Any] = {}
    stack = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in made:
            continue
        if node is True or node is False or isinstance(node, sympy.logic.boolalg.BooleanAtom):
            made[id(node)] = TRUE if node else FALSE
        elif isinstance(node, sympy.Symbol):
            try:
                found = made[id(node)] = atom(node.name)
            except ValueError as error:
                raise ParseError(f"the symbol {node.name!r} cannot be an atom: {error}") from error
            if symbols.setdefault(found, node) != node:
                raise ParseError(f"two different symbols are called {node.name!r}")
        elif type(node) not in build:
            raise ParseError(
                f"expected a symbol, And, Or, Not, Xor, Implies, Equivalent or ITE, got {type(node).__name__}"
            )
        elif ready:
            made[id(node)] = build[type(node)]([made[id(part)] for part in node.args])
        else:
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(node.args))
    return made[id(expression)]


def _builders(sympy: Any) -> dict[type, Callable[[list[Formula]], Formula]]:
    def xor(parts: list[Formula]) -> Formula:
        return reduce(Formula.__xor__, parts) if parts else FALSE

    return {
        sympy.And: conjunction,
        sympy.Or: disjunction,
        sympy.Xor: xor,
        sympy.Not: lambda parts: ~parts[0],
        sympy.Nand: lambda parts: ~conjunction(parts),
        sympy.Nor: lambda parts: ~disjunction(parts),
        sympy.logic.boolalg.Xnor: lambda parts: ~xor(parts),
        sympy.Implies: lambda parts: implies(*parts),
        sympy.Equivalent: lambda parts: conjunction(map(iff, parts, parts[1:])),
        sympy.ITE: lambda parts: implies(parts[0], parts[1]) & implies(~parts[0], parts[2]),
    }


def to_sympy(formula: Formula) -> Any:
    """Return a formula as a sympy expression, simplified as sympy does of itself.

    A cardinality is written out with And and Or. sympy repeats what a formula shares, so one with
    more than MAX_SYMPY parts when written out is refused.
    """
    if not isinstance(formula, Formula):
        raise TypeError(f"expected a formula, got {formula!r}")
    sympy = _sympy("writing a sympy expression")
    formula = _without_cardinalities(formula)
    size = fold(formula, lambda _, sizes: 1 + sum(sizes))
    if size > MAX_SYMPY:
        raise LimitExceeded(
            f"written out for sympy this formula has more than {MAX_SYMPY} parts (limit MAX_SYMPY)",
            MAX_SYMPY=MAX_SYMPY,
        )
    build: dict[str, Callable[..., Any]] = {
        "true": lambda: sympy.true,
        "false": lambda: sympy.false,
        "not": sympy.Not,
        "and": sympy.And,
        "or": sympy.Or,
        "xor": sympy.Xor,
        "implies": sympy.Implies,
        "iff": sympy.Equivalent,
    }
    made: dict[Formula, Any] = {}
    stack: list[tuple[Formula, Sequence[Formula] | None]] = [(formula, None)]
    try:
        while stack:
            node, parts = stack.pop()
            if node in made:
                continue
            if node.kind == "atom":
                made[node] = sympy.Symbol(node.label)
            elif parts is None:
                parts = _flat(node)
                stack.append((node, parts))
                stack.extend((part, None) for part in parts)
            else:
                made[node] = build[node.kind](*(made[part] for part in parts))
    except RecursionError:
        raise LimitExceeded(
            "sympy itself recurses, and this formula is nested deeper than Python's recursion limit allows",
            **{"sys.getrecursionlimit()": sys.getrecursionlimit()},
        ) from None
    return made[formula]


def _without_cardinalities(formula: Formula) -> Formula:
    from lbm.knowledge.weighted import check_cells

    check_cells(formula)

    def visit(node: Formula, parts: list[Formula]) -> Formula:
        plain = make(node.kind, node.label, tuple(parts))
        return counter(plain) if node.kind in CARDINALITIES else plain

    return fold(formula, visit)


def _flat(formula: Formula) -> Sequence[Formula]:
    """Return the parts of a whole chain a & b & c at once: sympy takes a minute for 2,000 one by one."""
    if formula.kind not in ("and", "or", "xor"):
        return formula.args
    parts: list[Formula] = []
    stack = [formula]
    while stack:
        node = stack.pop()
        if node.kind == formula.kind:
            stack += reversed(node.args)
        else:
            parts.append(node)
    return parts


def _sympy(purpose: str) -> Any:
    try:
        import sympy
    except ImportError:
        raise MissingExtra("sympy", purpose, "sympy") from None
    return sympy
