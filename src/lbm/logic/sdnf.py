"""Strict DNF (deterministic DNF, disjoint sum of products): cubes that exclude one another.

At most one of the cubes is true in any world. [TG21, Definition 2]
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.errors import TooManyCubes
from lbm.knowledge.clauses import Lazy, as_clause
from lbm.knowledge.formula import Formula, atom, atoms_of, holds, iff, to_steps
from lbm.logic.cube import Cube, Cubes, pack
from lbm.logic.definitions import Definer
from lbm.logic.diagram import MAX_ATOMS, diagram_of
from lbm.logic.elimination import Elimination, Mask
from lbm.logic.many import Rows

BUDGET: Final = 128
"""Cubes of one formula past which ``auto`` turns to definitional atoms."""

MAX_CUBES: Final = 1 << 16
"""Cubes that a method which must stay flat may give one formula."""

MAX_FULL_ATOMS: Final = 20
"""Atoms up to which a full DNF is written out."""

MAX_DIAGRAM_STEPS: Final = 20_000
"""Distinct parts of a formula that is made into a diagram."""

MAX_SHAPES: Final = 4096
"""Shapes of formulae whose cubes are remembered."""

METHODS: Final = ("auto", "elimination", "diagram", "full", "definitions")


@dataclass(frozen=True, slots=True)
class Definition:
    """A definitional atom, the formula it is equivalent to, and the cubes of that equivalence."""

    name: str
    formula: Formula
    cubes: Cubes


@dataclass(frozen=True, eq=False, slots=True)
class StrictDNF(Lazy[Cube]):
    """The cubes of a formula, as a sequence; ``definitions`` explains the new atoms they mention.

    ``cubes.atoms`` names the formula's atoms in their order, then the definitional ones.
    """

    cubes: Cubes
    definitions: tuple[Definition, ...] = ()

    @property
    def size(self) -> int:
        """All cubes together, those of the definitions included."""
        return len(self.cubes) + sum(len(definition.cubes) for definition in self.definitions)

    def __len__(self) -> int:
        return len(self.cubes)

    def _at(self, index: int) -> Cube:
        return self.cubes[index]

    def __str__(self) -> str:
        return str(self.cubes)


def to_sdnf(
    formula: Formula, *, method: str = "auto", atoms: Iterable[str] = (), budget: int = BUDGET
) -> StrictDNF:
    """Return a strict DNF of ``formula``.

    Parameters
    ----------
    formula
        Any formula.
    method
        ``elimination`` follows the formula's structure; ``diagram`` takes the paths of a decision
        diagram, in the declared order or one found by sifting; ``auto`` takes whichever gives the
        fewest cubes and, past ``budget``, definitional atoms; ``definitions`` always introduces them;
        ``full`` is the paper's full DNF, a cube per model, for comparison.
    atoms
        Names that come first in the atom order; the others follow as they appear.
    budget
        Cubes past which ``auto`` introduces definitional atoms.

    Examples
    --------
    >>> from lbm.knowledge.parser import parse
    >>> print(to_sdnf(parse("y <- x1 & x2 & ~x3"), atoms=["y"]))
    (y & x1 & x2 & ~x3) | (x1 & x2 & x3) | (x1 & ~x2) | ~x1
    """
    check_method(method, budget)
    place = _places([*atoms, *atoms_of(formula)])
    definer = Definer.beside(place)
    cubes = choices(formula, place, definer, method=method, budget=budget)[0]
    equivalences = [
        (name, part, flat_choices(iff(atom(name), part), place)[0])
        for name, part in definer.definitions.items()
    ]
    names = tuple(place)
    definitions = [Definition(name, part, pack(rows, names)) for name, part, rows in equivalences]
    return StrictDNF(pack(cubes, names), tuple(definitions))


def choices(
    formula: Formula, place: dict[str, int], definer: Definer, *, method: str = "auto", budget: int = BUDGET
) -> list[Rows]:
    """Return strict DNFs of ``formula``, all of the least size found; past ``budget``, with definitions.

    New definitional atoms are left in ``definer`` and take the next numbers in ``place``.
    """
    if method != "definitions":
        try:
            return flat_choices(formula, place, method=method, budget=budget)
        except TooManyCubes:
            if method != "auto":
                raise
    piece = definer.rewrite(formula)
    for name in definer.definitions:
        place.setdefault(name, len(place) + 1)
    return flat_choices(piece, place)


def estimate_size(formula: Formula, *, method: str = "auto", atoms: Iterable[str] = ()) -> int:
    """Return how many cubes :func:`to_sdnf` gives at most, definitions included, without building them.

    >>> from lbm.knowledge.parser import parse
    >>> estimate_size(parse("a | b | c"))
    3
    """
    check_method(method, BUDGET)
    place = _places([*atoms, *atoms_of(formula)])
    local = sorted(atoms_of(formula), key=place.__getitem__)
    if method == "full":
        return 1 << len(local)
    if method != "definitions":
        with _smallest(formula, local, method) as (size, _):
            pass
        if method != "auto" or size <= BUDGET:
            return size
    definer = Definer.beside(place)
    pieces = [definer.rewrite(formula)]
    pieces += [iff(atom(name), part) for name, part in definer.definitions.items()]
    measure = Elimination()
    return sum(measure.size(piece) for piece in pieces)


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names), start=1)}


def check_method(method: str, budget: int) -> None:
    """Say what is wrong with the options of :func:`to_sdnf`, if anything."""
    if method not in METHODS:
        raise ValueError(f"expected a method among {', '.join(METHODS)}, got {method!r}")
    if budget < 1:
        raise ValueError(f"a budget is at least 1 cube, got {budget}")


# Formulae of one shape (grounded rules, clauses of one kind) share their cubes up to names.
_shapes: OrderedDict[object, list[list[Mask]]] = OrderedDict()
_remembering = threading.Lock()


def flat_choices(
    formula: Formula, place: Mapping[str, int], *, method: str = "auto", budget: int | None = None
) -> list[Rows]:
    """Return strict DNFs of ``formula`` without definitions, all of the least size found.

    Parameters
    ----------
    place
        The number of each atom, from 1; smaller numbers come first in the order.
    budget
        For ``auto``, the most cubes that are accepted; None: MAX_CUBES, as for the other methods.

    Raises
    ------
    TooManyCubes
        Where no strict DNF within the budget was found.
    """
    local = sorted(atoms_of(formula), key=place.__getitem__)
    limit = budget if budget is not None and method == "auto" else MAX_CUBES
    steps = to_steps(formula)
    key = None
    if len(steps) <= 1000:
        number = {name: i for i, name in enumerate(local)}
        key = (
            method,
            limit,
            len(local),
            tuple([(kind, number[label] if kind == "atom" else label, args) for kind, label, args in steps]),
        )
    with _remembering:
        found = _shapes.get(key) if key is not None else None
    if found is None:
        found = _flat(formula, local, method, limit, len(steps))
        with _remembering:
            if key is not None:
                _shapes[key] = found
            if len(_shapes) > MAX_SHAPES:
                _shapes.popitem(last=False)
    numbers = [place[name] for name in local]
    return [[_literals(cube, numbers) for cube in cubes] for cubes in found]


def _flat(formula: Formula, local: list[str], method: str, limit: int, steps: int) -> list[list[Mask]]:
    place = {name: i for i, name in enumerate(local)}
    if method == "full":
        return [_full(formula, local)]
    measure = Elimination()
    if method == "elimination":
        return [sorted(measure.cubes(formula, place, limit), key=paper_order)]
    found: dict[tuple[Mask, ...], None] = {}
    with _smallest(formula, local, method, steps) as (size, paths):
        if size > limit:
            raise TooManyCubes(
                f"a strict DNF of this formula needs {size if size < 10**18 else 'more than 1e18'} cubes and "
                f"the budget is {limit}: raise it, or allow definitional atoms",
                budget=limit,
            )
        if method == "auto" and measure.size(formula) <= max(4 * size, limit):
            cubes = measure.cubes(formula, place, MAX_CUBES)
            if len(cubes) < size:
                return [sorted(cubes, key=paper_order)]
            if len(cubes) == size:
                found.setdefault(tuple(sorted(cubes, key=paper_order)))
        for cubes in paths:
            found.setdefault(tuple(sorted(cubes, key=paper_order)))
    return [list(cubes) for cubes in found]


@contextmanager
def _smallest(
    formula: Formula, local: Sequence[str], method: str, steps: int = 0
) -> Iterator[tuple[int, Iterable[list[Mask]]]]:
    """Give the least size found without building cubes, and what the diagram's best orders give."""
    size = Elimination().size(formula) if method in ("auto", "elimination") else 10**18
    wanted = method == "diagram" or (
        method == "auto"
        and size > 1
        and not _is_clause_like(formula)
        and len(local) <= MAX_ATOMS
        and steps <= MAX_DIAGRAM_STEPS
    )
    with ExitStack() as stack:
        diagram = None
        if wanted:
            try:
                diagram = stack.enter_context(diagram_of(formula, local))
            except TooManyCubes:
                if method == "diagram":
                    raise
        if diagram is None:
            yield size, ()
            return
        sizes = {order: diagram.size(order) for order in diagram.orders()}
        least = min(sizes.values())
        if size < least:
            yield size, ()
        else:
            yield least, (diagram.cubes(order) for order, count in sizes.items() if count == least)


def _is_clause_like(formula: Formula) -> bool:
    """Return whether it is a disjunction of literals of different atoms: k cubes are then the fewest."""
    clause = as_clause(formula)
    return clause is not None and len({name for name, _ in clause}) == len(clause)


def _full(formula: Formula, local: list[str]) -> list[Mask]:
    """Return a cube for every model over all the atoms: the paper's full DNF."""
    if len(local) > MAX_FULL_ATOMS:
        raise TooManyCubes(
            f"a full DNF over {len(local)} atoms may have {1 << len(local)} cubes; it is written out up to "
            f"{MAX_FULL_ATOMS} atoms (limit MAX_FULL_ATOMS): try method='auto'",
            MAX_FULL_ATOMS=MAX_FULL_ATOMS,
        )
    worlds = np.arange(1 << len(local))
    columns = {name: (worlds >> i & 1).astype(bool) for i, name in enumerate(local)}
    true = np.flatnonzero(np.broadcast_to(np.asarray(holds(formula, columns), dtype=bool), worlds.shape))
    everything = (1 << len(local)) - 1
    return sorted(((world, everything ^ world) for world in true.tolist()), key=paper_order)


def paper_order(cube: Mask) -> tuple[int, int, int]:
    """Sort key that lists cubes as the paper does: longest first, fewest positive, positive first."""
    true, false = cube
    both = true | false
    # Bits from the first atom on, positive before negative.
    width = both.bit_length()
    signs = int(f"{false:0{max(width, 1)}b}"[::-1], 2) << max(0, 64 - width)
    return -both.bit_count(), true.bit_count(), signs


def _literals(cube: Mask, numbers: list[int]) -> list[int]:
    """Return a cube as signed numbers in atom order."""
    true, false = cube
    both, found = true | false, []
    while both:
        bit = both & -both
        both ^= bit
        number = numbers[bit.bit_length() - 1]
        found.append(number if true & bit else -number)
    return found
