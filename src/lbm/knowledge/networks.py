"""Bayesian and Markov networks in files (.uai), with their evidence (.evid), as theories and as tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from math import prod
from typing import Final

from lbm.errors import ParseError
from lbm.knowledge.dimacs import MAX_ATOMS
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, cardinality
from lbm.knowledge.original import Original, cut
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory

MAX_ENTRIES: Final = 10_000_000
"""Entries of all tables of a network together."""

_TOKEN: Final = re.compile(rb"\S+")
_COMMENT: Final = re.compile(rb"(?m)^[ \t]*c(?!\S)[^\n]*")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_LAST: Final = Decimal("1e-15")  # the last digit of the logarithm of an entry
_LN: Final = Context(prec=25)  # of a single one: it is below 1000, and needs 15 digits behind the point
_LOGS: Final = Context(prec=40)


@dataclass(frozen=True, slots=True)
class ValueTable:
    """A function of some variables: an entry for each combination of their values, the last one fastest."""

    scope: tuple[int, ...]
    entries: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class ValueNetwork:
    """Variables of several values, and tables whose product weighs a world.

    Attributes
    ----------
    sizes
        How many values each variable has.
    tables
        The functions.
    bayes
        Whether each table is a distribution of its last variable, given the others.
    """

    sizes: tuple[int, ...]
    tables: tuple[ValueTable, ...]
    bayes: bool = False

    def literal(self, variable: int, value: int) -> Formula:
        """Return the formula that a variable has this value: v3 of two values is true at 1.

        >>> network = ValueNetwork((2, 3, 1), ())
        >>> print(network.literal(0, 0), network.literal(1, 2), network.literal(2, 0))
        ~v0 'v1 = 2' true
        """
        if self.sizes[variable] == 1:
            return TRUE
        if self.sizes[variable] == 2:
            return atom(f"v{variable}") if value else ~atom(f"v{variable}")
        return atom(f"v{variable} = {value}")

    def chances(self, marginals: Mapping[str, float]) -> list[list[float]]:
        """Return the probability of each value of each variable, from those of the atoms."""
        found: list[list[float]] = []
        for variable, size in enumerate(self.sizes):
            if size <= 2:
                yes = marginals[f"v{variable}"] if size == 2 else 0.0
                found.append([1.0 - yes, yes][:size])
            else:
                found.append([marginals[f"v{variable} = {value}"] for value in range(size)])
        return found


def read_network(data: bytes, *, source: str | None = None) -> ValueNetwork:
    r"""Return the network in a text, in the format of the UAI competitions.

    >>> network = read_network(b"MARKOV 2 2 3 1 2 0 1 6 1 2 3 4 5 6")
    >>> network.sizes, network.tables[0].scope
    ((2, 3), (0, 1))
    """
    return _Tokens(data, source).network()


def read_evidence(data: bytes, network: ValueNetwork, *, source: str | None = None) -> dict[int, int]:
    r"""Return the values that are observed, by variable.

    The text is a number of observations and their variables and values. In older files the number of
    samples comes first: only one can be read.

    >>> network = ValueNetwork((2, 3), ())
    >>> read_evidence(b"1 1 2", network), read_evidence(b"1\n2 0 1 1 0", network)
    ({1: 2}, {0: 1, 1: 0})
    """
    return _Tokens(data, source).evidence(network)


def network_theory(network: ValueNetwork, evidence: Mapping[int, int] | None = None) -> Theory:
    """Return the theory whose score is the logarithm of the product of all tables.

    A variable of two values is one atom, of more an atom for each value, exactly one of which is true. An
    entry is a soft conjunction that weighs its logarithm, to 15 digits, less that of the entry which is most
    frequent in its table; the latter ones together are a last soft ``true``. An entry of 0 forbids its
    conjunction. What is observed is hard.

    >>> network = read_network(b"BAYES 2 2 2 2 1 0 2 0 1 2 0.25 0.75 4 1 0 0.5 0.5")
    >>> print(network_theory(network, {1: 1}))
    1.098612288668110: v0
    0.693147180559945: ~v0 & ~v1
    ~(~v0 & v1)
    v1
    -2.079441541679836: true
    """
    statements: list[Statement] = []
    atoms: list[str] = []
    for variable, size in enumerate(network.sizes):
        if size == 2:
            atoms.append(f"v{variable}")
        elif size > 2:
            names = [f"v{variable} = {value}" for value in range(size)]
            atoms += names
            statements.append(Statement(cardinality("exactly", 1, [atom(name) for name in names])))
    common = Decimal(0)
    logs: dict[Decimal, Decimal] = {}
    with localcontext(_LOGS):
        for table in network.tables:
            usual = _usual(table.entries)
            for entry in set(table.entries):
                if entry and entry not in logs:
                    logs[entry] = entry.ln(_LN)
            common += logs.get(usual, Decimal(0))
            for entry, cube in zip(table.entries, _cubes(network, table.scope), strict=True):
                if entry == usual and entry:
                    continue
                if not entry:
                    statements.append(Statement(FALSE if cube is TRUE else ~cube))
                elif weight := (logs[entry] - logs[usual]).quantize(_LAST):
                    statements.append(Statement(cube, weight))
        common = common.quantize(_LAST)
    statements += [
        Statement(network.literal(variable, value))
        for variable, value in (evidence or {}).items()
        if network.sizes[variable] > 1
    ]
    if common:
        statements.append(Statement(TRUE, common))
    return Theory.from_parts(tuple(atoms), tuple(statements))


def _cubes(network: ValueNetwork, scope: Sequence[int]) -> list[Formula]:
    """Return a conjunction for each combination of values, the last variable fastest; they share parts."""
    found: list[Formula] = [TRUE]
    for variable in scope:
        literals = [network.literal(variable, value) for value in range(network.sizes[variable])]
        if literals != [TRUE]:
            found = [literal if cube is TRUE else cube & literal for cube in found for literal in literals]
    return found


def _usual(entries: Sequence[Decimal]) -> Decimal:
    """Return the entry other than 0 that is most frequent, the first of those."""
    met = Counter(entry for entry in entries if entry)
    return max(met, key=met.__getitem__) if met else Decimal(0)


def pr_lines(log_partition: float) -> Iterator[str]:
    """Yield log10 Z as the competition has it."""
    yield "PR"
    yield repr(log_partition / 2.302585092994046)


def mar_lines(chances: Sequence[Sequence[float]]) -> Iterator[str]:
    """Yield the probabilities of all values as the competition has them.

    >>> list(mar_lines([[0.25, 0.75], [1.0]]))
    ['MAR', '2 2 0.25 0.75 1 1.0']
    """
    yield "MAR"
    each = (" ".join([str(len(row)), *map(repr, row)]) for row in chances)
    yield " ".join([str(len(chances)), *each])


class _Tokens:
    """Words of a text, one after the other; places are looked for only where something is wrong."""

    def __init__(self, data: bytes, source: str | None) -> None:
        data = data.removeprefix(b"\xef\xbb\xbf")
        self.text = Original(data, source)
        self.body = _COMMENT.sub(lambda found: b" " * len(found[0]), data) if b"c" in data else data
        self.words = self.body.split()
        self.next = 0

    def error(self, message: str, place: int) -> ParseError:
        """Return the error that points at the word with this number, or at the end."""
        if place >= len(self.words):
            return self.text.error(f"{message}, found the end", len(self.body.rstrip()))
        offset = next(found.start() for i, found in enumerate(_TOKEN.finditer(self.body)) if i == place)
        return self.text.error(f"{message}, found {cut(self.words[place])!r}", offset)

    def count(self, what: str, most: int, least: int = 0) -> int:
        """Return the next word as a whole number."""
        place, self.next = self.next, self.next + 1
        word = self.words[place] if place < len(self.words) else b""
        if not word.isdigit() or len(word) > 18 or not least <= int(word) <= most:
            raise self.error(f"expected {what}, from {least} to {most}", place)
        return int(word)

    def network(self) -> ValueNetwork:
        kind = self.words[0].upper() if self.words else b""
        if kind not in (b"MARKOV", b"BAYES"):
            raise self.error("expected MARKOV or BAYES", 0)
        self.next = 1
        number = self.count("the number of variables", MAX_ATOMS)
        sizes = tuple(self.count(f"how many values v{v} has", MAX_ATOMS, 1) for v in range(number))
        if sum(size for size in sizes if size > 1) > MAX_ATOMS:
            raise self.error(f"expected at most {MAX_ATOMS} values (limit MAX_ATOMS)", 2)
        scopes = [self.scope(sizes) for _ in range(self.count("the number of tables", MAX_ENTRIES))]
        left = MAX_ENTRIES
        tables: list[ValueTable] = []
        for index, scope in enumerate(scopes):
            size = prod(sizes[variable] for variable in scope)
            if size > left:
                raise self.error(f"expected at most {MAX_ENTRIES} entries (limit MAX_ENTRIES)", self.next)
            place = self.next
            if self.count("the number of entries", 10**17) != size:
                raise self.error(
                    f"expected {size} entries of table {index}, as its variables have values", place
                )
            tables.append(ValueTable(scope, self.entries(size, index)))
            left -= size
        if self.next < len(self.words):
            raise self.error("expected no more after the last table", self.next)
        return ValueNetwork(sizes, tuple(tables), bayes=kind == b"BAYES")

    def scope(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the variables of a table."""
        found: list[int] = []
        for _ in range(self.count("the number of variables of a table", len(sizes))):
            found.append(self.variable(sizes))
            if found[-1] in found[:-1]:
                raise self.error("expected a variable once in a table", self.next - 1)
        return tuple(found)

    def variable(self, sizes: Sequence[int]) -> int:
        """Return the next word as a variable."""
        if not sizes:
            raise self.error("expected no variable, as there are none", self.next)
        return self.count("a variable", len(sizes) - 1)

    def entries(self, size: int, index: int) -> tuple[Decimal, ...]:
        """Return the next words as the entries of a table."""
        first, self.next = self.next, self.next + size
        found: list[Decimal] = []
        for place, word in enumerate(self.words[first : self.next], start=first):
            written = word.decode(errors="replace")
            if len(written) > 100 or not _NUMBER.fullmatch(written):
                raise self.error(f"expected an entry of table {index}, a number", place)
            entry = Decimal(written)
            if entry < 0:
                raise self.error(f"expected an entry of table {index}, 0 or more", place)
            found.append(entry)
        if len(found) < size:
            raise self.error(f"expected {size} entries of table {index}", len(self.words))
        return tuple(found)

    def evidence(self, network: ValueNetwork) -> dict[int, int]:
        """Return what is observed."""
        # Pairs stand behind one number or, with that of samples, two.
        if len(self.words) % 2 == 0 and self.words and self.words[0].isdigit():
            samples = self.count("the number of samples", 10**17)
            if samples != 1:
                self.next = 0
                raise self.error("expected one sample of evidence", 0)
        elif len(self.words) > 1 and self._samples():
            raise self.error("expected one sample of evidence", 0)
        found: dict[int, int] = {}
        for _ in range(self.count("the number of observations", len(network.sizes))):
            place = self.next
            variable = self.variable(network.sizes)
            value = self.count(f"a value of v{variable}", network.sizes[variable] - 1)
            if found.setdefault(variable, value) != value:
                raise self.error(f"expected one value of v{variable}", place)
        if self.next < len(self.words):
            raise self.error("expected no more after the evidence", self.next)
        return found

    def _samples(self) -> bool:
        """Return whether the words are several samples, each with a number of observations."""
        if not all(word.isdigit() and len(word) < 10 for word in self.words):
            return False
        samples, place = int(self.words[0]), 1
        if samples * 2 + 1 == len(self.words):
            return False  # one sample, and how many observations it has
        for _ in range(samples):
            if place >= len(self.words):
                return False
            place += 1 + 2 * int(self.words[place])
        return place == len(self.words)
