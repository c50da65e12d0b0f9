"""Circuits in files: .nnf as c2d and d4 write it, .sdd as libsdd does; .nnf written as c2d's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lbm.errors import FileError, ParseError
from lbm.knowledge.circuit_formulae import formula_of_circuit
from lbm.knowledge.circuits import PRODUCT, Builder, Circuit
from lbm.knowledge.dimacs import MAX_ATOMS, comment_lines, name_atoms, read_names, unusual_names
from lbm.knowledge.original import Original, cut
from lbm.knowledge.packed import bare_name, path_shown, read_whole, write_whole
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory

ENDINGS: Final = (".nnf", ".ddnnf", ".sdd")
"""How names of circuits end, beside that of how they are packed."""

MAX_CHECKED: Final = 1 << 31
"""Variables times nodes, about, up to which it is checked that parts of products share no variable."""

_Line = tuple[int, list[bytes]]  # where it begins, and its words


def is_circuit(path: str | Path) -> bool:
    """Return whether a file's name says that it holds a circuit."""
    return bare_name(path).suffix.lower() in ENDINGS


def is_nnf(path: str | Path) -> bool:
    """Return whether a file's name says that it holds a circuit as it can be written."""
    return is_circuit(path) and bare_name(path).suffix.lower() != ".sdd"


def read_circuit(path: str | Path, *, variables: int | None = None) -> Circuit:
    """Return the circuit in a file.

    Parameters
    ----------
    variables
        How many there are, where the file does not say it; None: up to the largest literal.
    """
    data = read_whole(path)
    ending = bare_name(path).suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"cannot read {path_shown(path)}: expected a name that ends in .nnf or .sdd")
    return parse_circuit(data, variables=variables, source=path_shown(path), sdd=ending == ".sdd")


def parse_circuit(
    data: bytes, *, variables: int | None = None, source: str | None = None, sdd: bool = False
) -> Circuit:
    r"""Return the circuit in a text: ``sdd``, or else .nnf in the form of c2d or that of d4.

    Parts of a product must share no variable, and that is checked; that no world makes two parts of a sum
    true is believed, as compilers promise it.

    >>> parse_circuit(b"nnf 3 2 2\nL 1\nL -2\nA 2 0 1").edges
    2
    >>> parse_circuit(b"o 1 0\nt 2 0\n1 2 -1 0\n1 2 1 2 0").edges
    4
    """
    if variables is not None and not 0 <= variables <= MAX_ATOMS:
        raise ValueError(f"variables is a number from 0 to {MAX_ATOMS} (MAX_ATOMS), got {variables}")
    text = Original(data, source)
    lines = list(_lines(data))
    reader = _Nodes(text, variables)
    if not lines:
        raise ParseError("expected a circuit, found an empty text", source=source)
    if sdd:
        return reader.sdd(lines)
    if lines[0][1][0] == b"nnf":
        return reader.c2d(lines)
    return reader.d4(lines)


def circuit_theory(
    data: bytes, *, variables: int | None = None, source: str | None = None, sdd: bool = False
) -> Theory:
    r"""Return the theory of the circuit in a text: one formula, which shares what the circuit shares.

    Comments may name atoms, as in DIMACS files; options are those of :func:`parse_circuit`.

    >>> print(circuit_theory(b"c atom 2 wet\nnnf 3 2 2\nL 1\nL -2\nA 2 0 1"))
    x1 & ~wet
    """
    circuit = parse_circuit(data, variables=variables, source=source, sdd=sdd)
    atoms = name_atoms(circuit.variables, read_names(data) if b"atom" in data else {})
    return Theory.from_parts(atoms, (Statement(formula_of_circuit(circuit, atoms)),))


def write_nnf(circuit: Circuit, path: str | Path, *, atoms: Sequence[str] = ()) -> None:
    """Write a circuit as .nnf in the form of c2d, whole or not at all."""
    write_whole(path, nnf_lines(circuit, atoms=atoms))


def nnf_lines(circuit: Circuit, *, atoms: Sequence[str] = ()) -> Iterator[str]:
    r"""Yield the lines of a circuit in the form of c2d, a node each, parts before wholes.

    ``atoms`` are the names of its variables, which comments say where they are not x1, x2 and so on.

    >>> build = Builder(2)
    >>> print("".join(nnf_lines(build.circuit(build.product([1, 2])))), end="")
    nnf 3 2 2
    L 1
    L -2
    A 2 0 1
    """
    first = 2 * circuit.variables
    place: dict[int, int] = {}
    lines: list[str] = []
    starts, parts = circuit.starts.tolist(), circuit.parts.tolist()
    needed = [part for part in parts if part < first] + [circuit.root] * (circuit.root < first)
    for slot in dict.fromkeys(needed):
        place[slot] = len(lines)
        variable, value = divmod(slot, 2)
        lines.append(f"L {variable + 1 if value else -variable - 1}\n")
    for gate, kind in enumerate(circuit.kinds.tolist()):
        row = [place[part] for part in parts[starts[gate] : starts[gate + 1]]]
        place[first + gate] = len(lines)
        begin = "A" if kind == PRODUCT else "O 0"
        lines.append(" ".join([begin, str(len(row)), *map(str, row)]) + "\n")
    if place[circuit.root] != len(lines) - 1:  # the last node is the whole
        lines.append(f"A 1 {place[circuit.root]}\n")
        parts = [*parts, circuit.root]
    yield from comment_lines((), unusual_names(atoms))
    yield f"nnf {len(lines)} {len(parts)} {circuit.variables}\n"
    yield from lines


def circuit_atoms(circuit: Circuit) -> tuple[str, ...]:
    """Return the names of a circuit's variables, those that a DIMACS file gives: x1, x2, ..."""
    return tuple(f"x{number}" for number in range(1, circuit.variables + 1))


def _lines(data: bytes) -> Iterator[_Line]:
    """Yield the lines that are no comments and not empty."""
    offset = 0
    for line in data.split(b"\n"):
        words = line.split()
        if words and words[0] != b"c":
            yield offset + len(line) - len(line.lstrip()), words
        offset += len(line) + 1


class _Nodes:
    """Nodes as they are read, by what the file calls them."""

    def __init__(self, text: Original, variables: int | None) -> None:
        self.text = text
        self.variables = variables
        self.slots: dict[int, int] = {}
        self.scopes: dict[int, int] = {}  # of gates: the variables below, a bit each
        self.checked = len(text.data) // 8 * (variables or len(text.data) // 100) < MAX_CHECKED

    # -- libsdd --

    def sdd(self, lines: Sequence[_Line]) -> Circuit:
        """Return the circuit of an SDD: a node is a sum of products of a prime and a sub."""
        (offset, words), *nodes = lines
        if words[0] != b"sdd" or len(words) != 2:
            raise self.text.error("expected the header 'sdd NODES'", offset)
        promised = self.numbers(words[1:], offset)[0]
        read = []
        for offset, words in nodes:
            kind, numbers = words[0], self.numbers(words[1:], offset)
            form = {b"T": 1, b"F": 1, b"L": 3}.get(kind, 0)
            if kind == b"D":
                form = 3 + 2 * max(0, numbers[2]) if len(numbers) >= 3 else 3
            if not form:
                raise self.text.error(f"expected a node L, D, T or F, found {cut(kind)!r}", offset)
            if len(numbers) != form:
                raise self.text.error(
                    f"expected {form} numbers behind {kind.decode()}, found {len(numbers)}", offset
                )
            read.append((kind, numbers, offset))
        if len(read) != promised:
            raise self.text.error(
                f"the header promises {promised} nodes, the file has {len(read)}", lines[0][0]
            )
        build = self.builder(numbers[2] for kind, numbers, _ in read if kind == b"L")
        last = build.true
        for kind, numbers, offset in read:
            if numbers[0] in self.slots:
                raise self.text.error(f"a second node {numbers[0]}", offset)
            if kind == b"L":
                last = self.literal(build, numbers[2], offset)
            elif kind == b"D":
                pairs = zip(numbers[3::2], numbers[4::2], strict=True)
                last = build.sum(
                    [
                        self.product(build, [self.known(prime, offset), self.known(sub, offset)], offset)
                        for prime, sub in pairs
                    ]
                )
                self.covered(build, last)
            else:
                last = build.true if kind == b"T" else build.false
            self.slots[numbers[0]] = last
        return build.circuit(last)

    # -- c2d --

    def c2d(self, lines: Sequence[_Line]) -> Circuit:
        """Return the circuit of a text with a header, whose nodes are numbered from 0 as they come."""
        (start, words), *nodes = lines
        header = self.numbers(words[1:], start)
        if len(header) != 3 or min(header) < 0:
            raise self.text.error("expected the header 'nnf NODES EDGES VARIABLES'", start)
        if header[2] > MAX_ATOMS:
            raise self.text.error(f"at most {MAX_ATOMS} variables (limit MAX_ATOMS)", start)
        if not nodes:
            raise self.text.error("expected a node at least, found none", start)
        self.variables = header[2] if self.variables is None else max(self.variables, header[2])
        build, limit, edges = Builder(self.variables), header[2], 0
        for number, (offset, words) in enumerate(nodes):
            kind, numbers = words[0], self.numbers(words[1:], offset)
            if kind == b"L" and len(numbers) == 1:
                self.slots[number] = self.literal(build, numbers[0], offset, limit)
                continue
            skipped = {b"A": 1, b"O": 2}.get(kind)
            if skipped is None or len(numbers) < skipped or len(numbers) - skipped != numbers[skipped - 1]:
                raise self.text.error("expected 'L LITERAL', 'A PARTS ...' or 'O VARIABLE PARTS ...'", offset)
            parts = [self.known(part, offset, below=number) for part in numbers[skipped:]]
            edges += len(parts)
            if kind == b"A":
                self.slots[number] = self.product(build, parts, offset)
            else:
                self.slots[number] = build.sum(parts)
                self.covered(build, self.slots[number])
        for what, said, found in (("nodes", header[0], len(nodes)), ("edges", header[1], edges)):
            if said != found:
                raise self.text.error(f"the header promises {said} {what}, the file has {found}", start)
        return build.circuit(self.slots[len(nodes) - 1])

    # -- d4 --

    def d4(self, lines: Sequence[_Line]) -> Circuit:
        """Return the circuit of a text with nodes and edges, in which edges carry literals."""
        kinds: dict[int, tuple[bytes, int]] = {}
        below: dict[int, list[tuple[int, list[int], int]]] = {}
        literals: list[int] = []
        for offset, words in lines:
            if words[0] in (b"o", b"a", b"t", b"f"):
                numbers = self.numbers(words[1:], offset)
                if len(numbers) != 2 or numbers[1] or numbers[0] < 1:
                    raise self.text.error(f"expected '{words[0].decode()} NODE 0'", offset)
                if numbers[0] in kinds:
                    raise self.text.error(f"a second node {numbers[0]}", offset)
                kinds[numbers[0]] = words[0], offset
                continue
            if not words[0].isdigit():
                raise self.text.error(
                    f"expected the header 'nnf', a node o, a, t or f, or an edge, found {cut(words[0])!r}",
                    offset,
                )
            numbers = self.numbers(words, offset)
            if len(numbers) < 3 or numbers[-1] or 0 in numbers[:-1]:
                raise self.text.error("expected 'NODE NODE LITERALS ... 0'", offset)
            below.setdefault(numbers[0], []).append((numbers[1], numbers[2:-1], offset))
            literals += numbers[2:-1]
        root = self.whole(kinds, below, lines[0][0])
        build = self.builder(literals)
        for number in self.ordered(root, kinds, below):
            kind, offset = kinds[number]
            edges = below.get(number, [])
            if kind in (b"t", b"f"):
                if edges:
                    raise self.text.error(f"an edge from node {number}, a constant", edges[0][2])
                self.slots[number] = build.true if kind == b"t" else build.false
                continue
            parts = [
                self.product(build, [self.slots[to], *(self.literal(build, one, at) for one in held)], at)
                for to, held, at in edges
            ]
            if kind == b"a":
                self.slots[number] = self.product(build, parts, offset)
            else:
                self.slots[number] = build.sum(parts)
                self.covered(build, self.slots[number])
        return build.circuit(self.slots[root])

    def whole(
        self,
        kinds: dict[int, tuple[bytes, int]],
        below: dict[int, list[tuple[int, list[int], int]]],
        start: int,
    ) -> int:
        """Return the node that is the whole: node 1, or else the only one that is no part of another."""
        for number, edges in below.items():
            for name in (number, *(to for to, _, _ in edges)):
                if name not in kinds:
                    raise self.text.error(f"no node {name} in this file", edges[0][2])
        met = {to for edges in below.values() for to, _, _ in edges}
        tops = [number for number in kinds if number not in met]
        if 1 in tops:
            return 1
        if not tops:
            raise self.text.error("the circuit is circular: every node is a part of another", start)
        if len(tops) > 1:
            raise self.text.error(f"expected one node that is no part of another, found {len(tops)}", start)
        return tops[0]

    def ordered(
        self,
        root: int,
        kinds: dict[int, tuple[bytes, int]],
        below: dict[int, list[tuple[int, list[int], int]]],
    ) -> list[int]:
        """Return the nodes of the whole, parts before wholes."""
        order: list[int] = []
        state: dict[int, bool] = {}  # False: its parts are being visited
        stack = [root]
        while stack:
            number = stack[-1]
            if number in state:
                stack.pop()
                if not state[number]:
                    state[number] = True
                    order.append(number)
                continue
            state[number] = False
            for to, _, offset in below.get(number, []):
                if state.get(to) is False:
                    raise self.text.error(f"the circuit is circular: node {to} is a part of itself", offset)
                if to not in state:
                    stack.append(to)
        assert all(number in kinds for number in order)
        return order

    # -- all of them --

    def numbers(self, words: Sequence[bytes], offset: int) -> list[int]:
        """Return whole numbers."""
        try:
            found = [int(word) for word in words]
        except ValueError:
            found = []
        if len(found) != len(words) or b"_" in b"".join(words) or max(map(len, words), default=0) > 18:
            raise self.text.error("expected whole numbers", offset)
        return found

    def builder(self, literals: Iterator[int] | Sequence[int]) -> Builder:
        """Return a builder of as many variables as were told, or as the literals need."""
        largest = max(map(abs, literals), default=0)
        if self.variables is None and largest <= MAX_ATOMS:
            self.variables = largest
        return Builder(self.variables or 0)

    def literal(self, build: Builder, number: int, offset: int, limit: int | None = None) -> int:
        """Return the slot of a literal."""
        most = build.variables if limit is None else limit
        if not number:
            raise self.text.error("expected a literal, found 0", offset)
        if abs(number) > most:
            raise self.text.error(f"the literal {number} is beyond the {most} variables there are", offset)
        return build.literal(abs(number) - 1, number > 0)

    def known(self, number: int, offset: int, *, below: int | None = None) -> int:
        """Return the slot of a node that was read before."""
        found = self.slots.get(number)
        if found is None:
            why = ""
            if below is not None and number >= below:
                why = ": parts come before their wholes, and a circuit is never circular"
            raise self.text.error(f"no node {number} before this one{why}", offset)
        return found

    def product(self, build: Builder, parts: list[int], offset: int) -> int:
        """Return the slot of a product whose parts share no variable."""
        found = build.product(parts)
        if not self.checked:
            return found
        scope = 0
        for part in parts:
            mine = self.scope(build, part)
            if scope & mine and found != build.false:
                shared = (scope & mine).bit_length()
                raise self.text.error(
                    f"two parts of a product mention the variable {shared}: expected a decomposable circuit",
                    offset,
                )
            scope |= mine
        if found >= build.first and found != build.false:
            self.scopes[found] = scope
        return found

    def covered(self, build: Builder, slot: int) -> None:
        """Note which variables a sum mentions."""
        if self.checked and slot >= build.first and slot not in self.scopes:
            scope = 0
            for part in build.gates[slot - build.first][1]:
                scope |= self.scope(build, part)
            self.scopes[slot] = scope

    def scope(self, build: Builder, slot: int) -> int:
        """Return the variables below a slot, a bit each."""
        return 1 << (slot >> 1) if slot < build.first else self.scopes.get(slot, 0)
