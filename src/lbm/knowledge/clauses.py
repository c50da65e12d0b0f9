"""Clauses: many of them as arrays, and any formula as clauses with definitions."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from lbm.errors import UnknownAtom
from lbm.knowledge.formula import CARDINALITIES, FALSE, TRUE, Formula, disjunction, make, postorder
from lbm.knowledge.numbers import Weight, unscaled
from lbm.knowledge.parser import Statement, collection_paused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OnStep = Callable[[], object]
"""What long work calls now and then: it may raise, and so end the work."""

_T = TypeVar("_T")

_STEP: Final = 1024  # parts made between two calls
_BATCH: Final = 10_000  # clauses that become lists at a time


class Lazy(Sequence[_T]):
    """A sequence whose items are made only where one is looked at."""

    __slots__ = ()

    @abstractmethod
    def _at(self, index: int) -> _T:
        """Return the item at a place, counted from 0."""

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | list[_T]:
        if isinstance(index, slice):
            return [self[j] for j in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self._at(index % len(self))


class Packed(Lazy[_T]):
    """Rows of literals, as arrays; what a row stands for is made only where one is looked at."""

    __slots__ = ()

    literals: NDArray[np.int32]
    starts: NDArray[np.int64]

    @abstractmethod
    def _made(self, index: int, numbers: list[int]) -> _T:
        """Return what the row with this index and these literals stands for."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def _at(self, index: int) -> _T:
        return self._made(index, self.literals[self.starts[index] : self.starts[index + 1]].tolist())


@dataclass(frozen=True, eq=False, slots=True)
class Clauses(Packed[Statement]):
    """Clauses (CNF, WCNF), hard or with a weight, as arrays; a Formula is made only where one is looked at.

    What they say of a world x: score(x) = (weights of the soft clauses true in x)/10^digits + offset.

    Attributes
    ----------
    atoms
        The names of the first variables; literal ``+i`` is the i-th variable, counted from 1, and ``-i`` its
        negation.
    literals
        Shape (number of literals,), the clauses one after the other, as written.
    starts
        Shape (number of clauses + 1,): clause j is ``literals[starts[j]:starts[j + 1]]``.
    weights
        Shape (number of clauses,), from 0 up, 0 for a hard clause; by default all are hard. Whole numbers of
        64 bits, or Python's own where these are too small.
    variables
        How many there are, by default one for each atom. The others have no name: they are definitions
        (Tseitin variables), each a function of the atoms, so that every world extends to them in exactly one
        way; or nobody asks for names.
    digits
        How many digits of the weights as written follow the point.
    offset
        What is added to the score of every world.
    groups
        Shape (number of clauses,): the number of the statement that each clause is part of, -1 for a
        definition or evidence; None: clause j is statement j.
    """

    atoms: tuple[str, ...]
    literals: NDArray[np.int32]
    starts: NDArray[np.int64]
    weights: NDArray[Any] = field(default=cast("NDArray[Any]", None))
    variables: int = -1
    digits: int = 0
    offset: Weight = 0
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        import numpy as np

        if cast(object, self.weights) is None:
            object.__setattr__(self, "weights", np.zeros(len(self), np.int64))
        if self.variables < 0:
            object.__setattr__(self, "variables", len(self.atoms))

    @classmethod
    def of(
        cls,
        rows: Iterable[Sequence[int]],
        weights: Sequence[int] | None = None,
        *,
        atoms: tuple[str, ...] = (),
        variables: int = -1,
        groups: Sequence[int] | None = None,
    ) -> Clauses:
        """Return clauses that are given as lists of literals."""
        import numpy as np

        rows = list(rows)
        found = cls(atoms, *packed(rows), whole_numbers(weights or [0] * len(rows)), variables)
        return found if groups is None else replace(found, groups=np.array(groups, np.int64))

    def _made(self, index: int, numbers: list[int]) -> Statement:
        formula = disjunction(self._literal(number) for number in numbers)
        return Statement(formula, unscaled(int(self.weights[index]), self.digits) or None)

    def _literal(self, number: int) -> Formula:
        found = make("atom", self.atoms[abs(number) - 1], ())
        return found if number > 0 else ~found

    @property
    def owners(self) -> NDArray[np.int64]:
        """The number of the statement that each clause is part of, -1 for no statement."""
        import numpy as np

        return np.arange(len(self)) if self.groups is None else self.groups

    @property
    def codes(self) -> NDArray[np.int64]:
        """The literals as codes: 2·v for the variable number v, from 0, and one more for its negation."""
        import numpy as np

        return 2 * (np.abs(self.literals).astype(np.int64) - 1) + (self.literals < 0)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many literals each clause has."""
        return self.starts[1:] - self.starts[:-1]

    def rows(self) -> Iterator[list[int]]:
        """Yield the clauses as lists of literals, made some at a time."""
        for begin in range(0, len(self), _BATCH):
            first, *ends = self.starts[begin : begin + _BATCH + 1].tolist()
            literals, start = self.literals[first : ends[-1]].tolist(), 0
            for end in ends:
                yield literals[start : end - first]
                start = end - first

    def where(self, marked: NDArray[np.bool_]) -> Clauses:
        """Return the marked clauses; ``marked`` has shape (number of clauses,)."""
        import numpy as np

        return self if marked.all() else self.ordered(np.flatnonzero(marked))

    def ordered(self, order: NDArray[np.intp]) -> Clauses:
        """Return the clauses with these numbers, in this order."""
        import numpy as np

        sizes = self.sizes[order]
        starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        literals = self.literals[np.repeat(self.starts[order] - starts[:-1], sizes) + np.arange(starts[-1])]
        weights, groups = self.weights[order], self.owners[order]
        return replace(self, literals=literals, starts=starts, weights=weights, groups=groups)

    def joined(self, others: Clauses) -> Clauses:
        """Return these clauses and others behind them; literals mean the same in both."""
        import numpy as np

        return replace(
            self,
            literals=np.concatenate([self.literals, others.literals]),
            starts=np.concatenate([self.starts, self.starts[-1] + others.starts[1:]]),
            weights=np.concatenate([self.weights, others.weights]),
            variables=max(self.variables, others.variables),
            groups=np.concatenate([self.owners, others.owners]),
        )

    def statements(self) -> list[Statement]:
        """Return all statements, made at once: in a fraction of the time that one after the other takes."""
        literals: list[Formula] = [FALSE, *(make("atom", name, ()) for name in self.atoms)]
        literals += [~found for found in literals[:0:-1]]  # at the place -i, from the end
        weights = [unscaled(weight, self.digits) or None for weight in self.weights.tolist()]
        found: list[Statement] = []
        with collection_paused():
            for row, weight in zip(self.rows(), weights, strict=True):
                clause = literals[row[0]] if row else FALSE
                for number in row[1:]:
                    clause = make("or", None, (clause, literals[number]))
                found.append(Statement(clause, weight))
        return found

    def true_in(self, world: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which clauses are true in a world, shape (number of clauses,)."""
        import numpy as np

        values = np.zeros(len(self.atoms), bool)
        for number in np.unique(np.abs(self.literals)).tolist():
            name = self.atoms[number - 1]
            try:
                values[number - 1] = world[name]
            except KeyError:
                raise UnknownAtom(name, world, "world") from None
        return self.true_at(values)

    def true_at(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which clauses are true where the atoms have these values, shape (number of clauses,)."""
        import numpy as np

        true = np.zeros(len(self.literals) + 1, np.int64)
        np.cumsum(values[np.abs(self.literals) - 1] == (self.literals > 0), out=true[1:])
        found: NDArray[np.bool_] = np.diff(true[self.starts]) > 0
        return found


def packed(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return rows of literals one after the other, and where each begins and the last one ends."""
    import numpy as np

    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.fromiter(chain.from_iterable(rows), np.int32, int(starts[-1])), starts


def propagated(
    clauses: Sequence[Sequence[int]], on_step: OnStep
) -> tuple[dict[int, bool], list[list[int]]] | None:
    """Return the variables that unit clauses fix, and so on, and the clauses that are left; None: a clash."""
    fixed: dict[int, bool] = {}
    waiting = [clause for clause in clauses if len(clause) < 2]
    meets: dict[int, list[int]] = defaultdict(list)
    for number, clause in enumerate(clauses if waiting else ()):
        if not number % _BATCH:
            on_step()
        for literal in clause:
            meets[-literal].append(number)
    while waiting:
        clause = waiting.pop()
        left = [literal for literal in clause if fixed.get(abs(literal)) is not (literal < 0)]
        if not left:
            return None
        if len(set(left)) > 1 or abs(left[0]) in fixed:
            continue
        fixed[abs(left[0])] = left[0] > 0
        waiting += [clauses[number] for number in meets[left[0]]]
    on_step()
    return fixed, [list(under(clause, fixed)) for clause in clauses if not is_true(clause, fixed)]


def is_true(clause: Iterable[int], fixed: Mapping[int, bool]) -> bool:
    """Return whether some literal of a clause is true where these variables are fixed."""
    return any(fixed.get(abs(literal)) is (literal > 0) for literal in clause)


def under(clause: Iterable[int], fixed: Mapping[int, bool]) -> Iterator[int]:
    """Return the literals of variables that are not fixed."""
    return (literal for literal in clause if abs(literal) not in fixed)


def whole_numbers(weights: Sequence[int]) -> NDArray[Any]:
    """Return weights as an array of 64-bit numbers or, where these are too small, of Python's own."""
    import numpy as np

    return np.array(weights, np.int64 if max(weights, default=0) < 1 << 63 else object)


def counter(formula: Formula, on_step: OnStep | None = None) -> Formula:
    """Return a cardinality written with ``&``, ``|`` and ``~`` alone, in about n·k shared parts.

    A counter (sequential counter, Sinz 2005):
    s(i, j), at least j of the first i parts, is s(i-1, j) | (part i & s(i-1, j-1)).
    """
    parts, bound = formula.args, formula.label
    if formula.kind == "atleast":
        return _atleast(bound, parts, on_step)
    if formula.kind == "atmost":
        return ~_atleast(bound + 1, parts, on_step)
    return _atleast(bound, parts, on_step) & ~_atleast(bound + 1, parts, on_step)


def _atleast(bound: int, parts: Sequence[Formula], on_step: OnStep | None) -> Formula:
    if bound <= 0:
        return TRUE
    if bound > len(parts):
        return FALSE
    # row[j]: at least j of the parts so far; only the cells that the last one needs are made.
    row: dict[int, Formula] = {0: TRUE}
    for i, part in enumerate(parts, start=1):
        if on_step is not None:
            on_step()
        new: dict[int, Formula] = {0: TRUE}
        for j in range(max(1, bound - (len(parts) - i)), min(i, bound) + 1):
            below = part if j == 1 else part & row[j - 1]
            new[j] = row[j] | below if j in row else below
        row = new
    return row[bound]


def definitional(
    formulae: Sequence[Formula],
    place: dict[str, int],
    next_free: int,
    on_step: OnStep | None = None,
    *,
    known: dict[Formula, int] | None = None,
) -> tuple[list[list[int]], list[int], int]:
    """Return clauses that define a variable for every part of ``formulae`` that needs one.

    Every definition is a full equivalence, so each world has exactly one way to extend to the new
    variables: models, counts and weights survive.

    Parameters
    ----------
    formulae
        The formulae to define.
    place
        The variable of each atom, from 1.
    next_free
        The first variable that is free.
    on_step
        Called now and then.
    known
        The literals of parts that have been defined already; new ones are added to it.

    Returns
    -------
    clauses, roots, next_free
        The definitions; the literal that is true where each formula is; the next free variable.
    """
    clauses: list[list[int]] = []
    literal: dict[Formula, int] = {} if known is None else known
    always = abs(literal.get(TRUE, literal.get(FALSE, 0)))  # a variable that is true, made when first needed

    def fresh() -> int:
        nonlocal next_free
        next_free += 1
        return next_free - 1

    def define(node: Formula) -> None:
        nonlocal always, clauses
        kind = node.kind
        if on_step is not None and not len(literal) % _STEP:
            on_step()
        if kind == "atom":
            literal[node] = place[node.label]
        elif kind in ("true", "false"):
            if not always:
                always = fresh()
                clauses.append([always])
            literal[node] = always if kind == "true" else -always
        elif kind == "not":
            literal[node] = -literal[node.args[0]]
        elif kind in ("and", "or", "implies", "xor", "iff"):
            a, b = (literal[part] for part in node.args)
            new = literal[node] = fresh()
            if kind == "and":
                clauses += [[-new, a], [-new, b], [new, -a, -b]]
            elif kind in ("or", "implies"):
                a = -a if kind == "implies" else a
                clauses += [[new, -a], [new, -b], [-new, a, b]]
            else:
                b = -b if kind == "iff" else b
                clauses += [[-new, a, b], [-new, -a, -b], [new, -a, b], [new, a, -b]]

    for node in postorder(*formulae, known=known or ()):
        if node.kind in CARDINALITIES:
            plain = counter(node, on_step)
            for part in postorder(plain, known=literal):
                define(part)
            literal[node] = literal[plain]
        elif node not in literal:
            define(node)
    return clauses, [literal[formula] for formula in formulae], next_free


def as_clause(formula: Formula) -> list[tuple[str, bool]] | None:
    """Return (atom, wanted true) for each literal if the formula is a disjunction of literals.

    Disjunctions, implications whose body is a conjunction, and negated conjunctions all are. The
    body of an implication comes first. A constant or a cardinality makes it no clause.

    >>> from lbm.knowledge.parser import parse
    >>> as_clause(parse("y <- x1 & ~x2"))
    [('x1', False), ('x2', True), ('y', True)]
    """
    found: list[tuple[str, bool]] = []
    seen: set[tuple[Formula, bool]] = set()  # a shared part says the same thing twice
    stack = [(formula, True)]
    while stack:
        node, wanted = stack.pop()
        kind = node.kind
        if kind == "atom":
            found.append((node.label, wanted))
            continue
        if kind == "not":
            stack.append((node.args[0], not wanted))
            continue
        if (node, wanted) in seen:
            continue
        seen.add((node, wanted))
        if kind == ("or" if wanted else "and"):
            stack += [(node.args[1], wanted), (node.args[0], wanted)]
        elif kind == "implies" and wanted:
            stack += [(node.args[1], True), (node.args[0], False)]
        else:
            return None
    return found
