"""Problem: a theory with its evidence, made ready once and asked often.

What is derived from the theory alone (its hard clauses, a SAT solver that has read them, its formulae as
arrays, its components) is made on first use, kept, and shared by all problems that evidence makes of it.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lbm.errors import NoAnswer, UnknownAtom
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import FALSE, TRUE, Formula, atoms_of, holds
from lbm.knowledge.numbers import digits_of
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.truths import Truths
from lbm.knowledge.weighted import check_cells, conjuncts, counter_cells, negated
from lbm.reasoning.clauses import WeightedClauses
from lbm.reasoning.clock import looks, share_of_time, spent, tick
from lbm.reasoning.solvers.sat import Clause, Session, turn

Bools = NDArray[np.bool_]

_BATCH: Final = 10_000  # packed clauses that become lists at a time
_CELLS: Final = 50_000  # of counters, past which clauses take no more than half of the time
_LOOK: Final = 1000  # formulae that become clauses between two looks at the clock
_WHOLE: Final = 1 << 62  # sums of weights up to which they are kept in 64 bits
_HUGE: Final = 10**300  # weights past this are all the same to whoever guesses

_T = TypeVar("_T")


class Known:
    """What has been worked out about one theory, kept so that it is worked out once.

    Any number of threads may share it: at worst two of them work out the same thing. What was not asked
    for longest is forgotten first.
    """

    def __init__(self, size: int = 1024) -> None:
        self.size = size
        self._found: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return what is known under ``key``; if nothing is, what ``make`` returns, and remember it."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return cast(_T, self._found[key])
        value = make()
        with self._lock:
            self._found[key] = value
            while len(self._found) > self.size:
                self._found.popitem(last=False)
        return value


@dataclass(frozen=True, eq=False, slots=True)
class Written:
    """Hard formulae as clauses: definitions that harm no world, and one clause for each statement.

    Attributes
    ----------
    definitions
        What is true in exactly one extension of every world; evidence, which is no statement, is among them.
    free
        The first variable that none of them uses.
    numbered
        The number of each hard statement with its clause; None: the theory's clauses as they are packed.
    parts
        The literal of every part that is defined.
    """

    definitions: list[Clause]
    free: int
    numbered: list[tuple[int, Clause]] | None
    packed: PackedStatements | None
    parts: dict[Formula, int]

    def __iter__(self) -> Iterator[tuple[int, Clause]]:
        """Yield the number of each hard statement with the clause that says it."""
        if self.packed is None:
            assert self.numbered is not None
            yield from self.numbered
            return
        weights, clauses = self.packed.weights, self.packed.clauses
        for begin in range(0, len(clauses), _BATCH):
            starts = clauses.starts[begin : begin + _BATCH + 1].tolist()
            literals = clauses.literals[starts[0] : starts[-1]].tolist()
            hard = (
                [True] * (len(starts) - 1)
                if weights is None
                else (weights[begin : begin + _BATCH] == 0).tolist()
            )
            for i, kept in enumerate(hard):
                if kept:
                    yield begin + i, literals[starts[i] - starts[0] : starts[i + 1] - starts[0]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A world, the numbers of the statements it breaks, and the weight it loses times 10^digits.

    ``keeps``: whether it keeps the evidence and every hard formula.
    """

    values: tuple[bool, ...]
    keeps: bool
    broken: tuple[int, ...]
    lost: int

    def named(self, atoms: Sequence[str]) -> dict[str, bool]:
        """Return the world under the names of these atoms."""
        return dict(zip(atoms, self.values, strict=True))


class Table(NamedTuple):
    """Clauses as arrays, the numbers of their statements, and the formulae of the other statements."""

    literals: NDArray[np.int32]
    starts: NDArray[np.int64]
    numbers: NDArray[np.intp]
    others: dict[int, Formula]


class Rows(NamedTuple):
    """Clauses that say what a theory and its evidence say.

    Clause j is ``literals[starts[j]:starts[j + 1]]``; its weight is 0 if it is hard. Variables past the atoms
    stand for parts of formulae.
    """

    literals: NDArray[np.int32]
    starts: NDArray[np.int64]
    weights: Sequence[int]
    variables: int

    def hard(self) -> Iterator[list[int]]:
        """Return the hard clauses as lists, one after the other."""
        lists = rows_of(self.literals, self.starts)
        return (row for row, weight in zip(lists, self.weights, strict=True) if not weight)

    def liked(self) -> Bools:
        """Return, for each variable, whether soft clauses rather want it true, shape (variables,)."""
        pull = np.repeat(self._pulls(), np.diff(self.starts)) * np.sign(self.literals)
        return np.bincount(np.abs(self.literals), pull, self.variables + 1)[1:] > 0

    def descended(self, x: Bools, deadline: float) -> Bools:
        """Return the world that the best flips lead to from ``x``, until none helps or time is over."""
        weights = self._pulls()
        weights[weights == 0] = 1 + weights.sum()  # hard
        x = x.copy()
        variable, wanted = np.abs(self.literals) - 1, self.literals > 0
        clause = np.repeat(np.arange(len(weights)), np.diff(self.starts))
        for _ in range(10 * self.variables):
            true = x[variable] == wanted
            number = np.bincount(clause, true, len(weights))
            alone = np.where(number == 0, weights, np.where(number == 1, -weights, 0.0))[clause]
            gain = np.bincount(variable, np.where(true == (alone < 0), alone, 0.0), self.variables)
            best = int(gain.argmax())
            if gain[best] <= 0 or spent(deadline):
                break
            x[best] ^= True
        return x

    def _pulls(self) -> NDArray[np.float64]:
        return np.array([float(min(weight, _HUGE)) for weight in self.weights])


class _Ready:
    """What is derived from a theory alone."""

    def __init__(self, theory: Theory) -> None:
        self.theory = theory
        statements = theory.statements
        self.packed = statements if isinstance(statements, PackedStatements) else None
        self.known = Known()
        self.lock = Lock()
        self.written: Written | None = None
        self.session: Session | None = None

    @cached_property
    def place(self) -> dict[str, int]:
        """The variable of each atom, from 1."""
        return {name: i for i, name in enumerate(self.theory.atoms, start=1)}

    @cached_property
    def hard(self) -> Bools:
        """Which statements are hard."""
        if self.packed is None:
            return np.array([statement.weight is None for statement in self.theory], bool)
        weights = self.packed.weights
        return np.ones(len(self.packed), bool) if weights is None else weights == 0

    @cached_property
    def truths(self) -> Truths:
        """All formulae, as arrays."""
        return Truths(self.theory.atoms, [statement.formula for statement in self.theory])

    @cached_property
    def cells(self) -> int:
        """About how many cells the counters of the hard cardinalities have."""
        if self.packed is not None:
            return 0
        return counter_cells(*(statement.formula for statement in self.theory if statement.weight is None))

    @cached_property
    def digits(self) -> int:
        """How many digits follow the point of a weight, at most."""
        if self.packed is not None:
            return 0
        return max((digits_of(s.weight) for s in self.theory if s.weight is not None), default=0)

    @cached_property
    def weights(self) -> list[int]:
        """The weight of each statement times 10^digits, 0 for a hard one."""
        if self.packed is None:
            scale = 10**self.digits
            return [0 if s.weight is None else int(Fraction(s.weight) * scale) for s in self.theory]
        weights = self.packed.weights
        return [0] * len(self.packed) if weights is None else weights.tolist()

    @cached_property
    def positive(self) -> Bools:
        """Which statements are lost where they are false: not those of negative weight."""
        return np.array([weight >= 0 for weight in self.weights], bool)

    @cached_property
    def table(self) -> Table:
        """The clauses among the statements, packed, and the formulae of the others."""
        if self.packed is not None:
            clauses = self.packed.clauses
            return Table(clauses.literals, clauses.starts, np.arange(len(clauses)), {})
        place = self.place
        literals: list[int] = []
        starts, numbers = [0], []
        others: dict[int, Formula] = {}
        for number, statement in enumerate(self.theory):
            clause = as_clause(statement.formula)
            if clause is None:
                others[number] = statement.formula
                continue
            literals += [place[name] if wanted else -place[name] for name, wanted in clause]
            starts.append(len(literals))
            numbers.append(number)
        return Table(
            np.array(literals, np.int32), np.array(starts, np.int64), np.array(numbers, np.intp), others
        )

    def write(self, deadline: float) -> Written:
        """Return the hard statements as clauses; raise NoAnswer if the deadline passes before that."""
        if self.written is None:
            self.written = self._write(deadline)
        return self.written

    def _write(self, deadline: float) -> Written:
        free = len(self.theory.atoms) + 1
        if self.packed is not None:
            return Written([], free, None, self.packed, {})
        flat: dict[int, Clause] = {}
        deep: list[tuple[int, Formula]] = []
        place = self.place
        for number, statement in enumerate(self.theory.statements):
            if statement.weight is not None:
                continue
            literals = as_clause(statement.formula)
            if literals is None:
                deep.append((number, statement.formula))
            else:
                flat[number] = [place[name] if wanted else -place[name] for name, wanted in literals]
        formulae = [formula for _, formula in deep]
        check_cells(*formulae)
        parts: dict[Formula, int] = {}
        definitions, roots, free = definitional(formulae, place, free, looks(deadline), known=parts)
        flat.update((number, [root]) for (number, _), root in zip(deep, roots, strict=True))
        return Written(definitions, free, sorted(flat.items()), None, parts)

    def asked(self, deadline: float) -> Session:
        """Return the solver that has read the hard formulae; raise NoAnswer if there is no time for that."""
        with turn(self.lock, deadline):
            session = self.session
            if session is None or session.worn:
                written = self.write(deadline)
                session = Session(self.place, written.free, dict(written.parts))
                session.add(written.definitions, deadline)
                session.add((clause for _, clause in written), deadline)
                self.session = session
            return session


class Problem:
    """A theory with its evidence; ``digits``: whole weights are times 10^digits at least.

    >>> from lbm.knowledge.parser import parse
    >>> Problem(Theory(["a -> b"])).given(parse("a")).is_model([True, False])
    False
    """

    def __init__(self, theory: Theory, evidence: Formula | None = None, *, digits: int = 0) -> None:
        self.theory, self.evidence = theory, evidence
        self._ready, self._digits = _Ready(theory), digits

    @classmethod
    def of(cls, theory: Theory | Problem, given: Formula | None = None) -> Problem:
        """Return a problem: the one it is, or a new one, with further evidence if there is some."""
        problem = theory if isinstance(theory, Problem) else cls(theory)
        return problem if given is None else problem.given(given)

    def given(self, formula: Formula) -> Problem:
        """Return the problem in which a formula is true as well; all that is derived so far is shared."""
        found = object.__new__(Problem)
        found.theory, found._ready, found._digits = self.theory, self._ready, self._digits
        found.evidence = formula if self.evidence is None else self.evidence & formula
        return found

    @property
    def atoms(self) -> tuple[str, ...]:
        """The names of the atoms, in order."""
        return self.theory.atoms

    @property
    def known(self) -> Known:
        """What has been worked out about the theory."""
        return self._ready.known

    @property
    def cells(self) -> int:
        """About how many cells the counters of hard cardinalities have, evidence included."""
        return self._ready.cells + (0 if self.evidence is None else counter_cells(self.evidence))

    def check(self, formula: Formula, role: str) -> None:
        """Raise unless ``formula`` is one, over atoms of the theory; ``role``: what it was meant to be."""
        if not isinstance(formula, Formula):
            raise TypeError(f"the {role} is a formula, got {formula!r}: lbm.parse('a -> b') makes one")
        place = self._ready.place
        for name in atoms_of(formula):
            if name not in place:
                raise UnknownAtom(name, self.theory.atoms)

    def written(self, deadline: float) -> Written:
        """Return hard statements and evidence as clauses; raise NoAnswer if that is not done in time."""
        bare = self._ready.write(deadline)
        if self.evidence is None:
            return bare
        check_cells(self.evidence)
        more, (root,), free = definitional([self.evidence], self._ready.place, bare.free, looks(deadline))
        return Written([*bare.definitions, *more, [root]], free, bare.numbered, bare.packed, bare.parts)

    def session(self, deadline: float) -> tuple[Session, list[int]]:
        """Return the solver that has read the hard formulae, and the evidence as its assumptions."""
        session = self._ready.asked(deadline)
        return session, [] if self.evidence is None else session.literals(self.evidence, deadline)

    def truth(self, values: Sequence[bool] | Bools) -> Bools:
        """Return which statements are true where the atoms have these values, shape (statements,)."""
        packed = self._ready.packed
        if packed is None:
            return self._ready.truths.true_in(values)
        return packed.clauses.true_at(np.asarray(values, bool))

    def is_model(self, values: Sequence[bool] | Bools) -> bool:
        """Return whether a world satisfies every hard formula and the evidence."""
        if not (self.truth(values) | ~self._ready.hard).all():
            return False
        return self.evidence is None or bool(holds(self.evidence, self.named(values)))

    def named(self, values: Sequence[bool] | Bools) -> dict[str, bool]:
        """Return a world under the names of its atoms."""
        return dict(zip(self.theory.atoms, map(bool, values), strict=True))

    @property
    def packed(self) -> PackedStatements | None:
        """The statements of a theory that is clauses; None: it is not."""
        return self._ready.packed

    @property
    def digits(self) -> int:
        """How many digits of weights follow the point: whole weights are those written, times 10^digits."""
        return max(self._digits, self._ready.digits)

    @cached_property
    def weights(self) -> list[int]:
        """The weight of each statement times 10^digits, 0 for a hard one."""
        more = 10 ** (self.digits - self._ready.digits)
        return self._ready.weights if more == 1 else [weight * more for weight in self._ready.weights]

    @property
    def has_soft(self) -> bool:
        """Whether some formula has a weight."""
        return not bool(self._ready.hard.all())

    @property
    def table(self) -> Table:
        """The clauses among the statements, packed, and the formulae of the others."""
        return self._ready.table

    def weighted_clauses(self, *, hard: bool = False) -> WeightedClauses | None:
        """Return theory and evidence as weighted clauses over the atoms alone; None: they are not clauses.

        Negative weights and weights past 64 bits are not, either. ``hard``: soft formulae are left out.
        """
        literals, starts, numbers, others = self.table
        if any(not hard or not self.weights[number] for number in others):
            return None
        if hard:
            mine = np.array([not self.weights[number] for number in numbers.tolist()], bool)
            lengths = np.diff(starts)
            literals = literals[np.repeat(mine, lengths)]
            starts = np.concatenate([[0], np.cumsum(lengths[mine])]).astype(np.int64)
            weights = np.zeros(int(mine.sum()), np.int64)
        elif self.weights and not 0 <= min(self.weights) <= sum(self.weights) < _WHOLE:
            return None
        else:
            weights = np.array(self.weights, np.int64)
        more = self._evidence()
        if more is None:
            return None
        if more:
            literals = np.concatenate([literals, np.array([x for row in more for x in row], np.int32)])
            starts = np.concatenate([starts, starts[-1] + np.cumsum([len(row) for row in more])])
            weights = np.concatenate([weights, np.zeros(len(more), np.int64)])
        return WeightedClauses(len(self.theory.atoms), literals, starts, weights)

    def _evidence(self) -> list[list[int]] | None:
        """Return the evidence as clauses; None: it is something else."""
        found: list[list[int]] = []
        waiting = [] if self.evidence is None else [self.evidence]
        place = self._ready.place
        while waiting:
            part = waiting.pop()
            clause = as_clause(part)
            if clause is not None:
                found.append([place[name] if wanted else -place[name] for name, wanted in clause])
            elif part.kind == "and":
                waiting += part.args
            else:
                return None
        return found

    def look(self, values: Sequence[bool]) -> Judged:
        """Return what a world keeps and loses."""
        values = tuple(values)
        keeps = self.evidence is None or bool(holds(self.evidence, self.named(values)))
        # A formula of negative weight is lost where it is true.
        broken: list[int] = np.flatnonzero(self.truth(values) != self._ready.positive).tolist()
        weights = self.weights
        lost = sum(abs(weights[number]) for number in broken)
        return Judged(values, keeps and all(weights[number] for number in broken), tuple(broken), lost)

    @cached_property
    def positive(self) -> int:
        """The sum of the positive weights, times 10^digits."""
        return sum(weight for weight in self.weights if weight > 0)

    def losses(self, rows: Bools) -> list[int]:
        """Return the weight that each model loses, times 10^digits; ``rows`` has shape (worlds, atoms)."""
        worlds = dict(zip(self.theory.atoms, rows.T, strict=True))
        total = np.zeros(len(rows), object)
        for statement, weight in zip(self.theory, self.weights, strict=True):
            if weight:
                lost = np.broadcast_to(holds(statement.formula, worlds), len(rows)) ^ (weight > 0)
                total[lost] += abs(weight)
        return total.tolist()

    def lost_by(self, world: Judged, numbers: frozenset[int]) -> float:
        """Return what a world loses of some statements only; infinity if a hard one of them is broken."""
        weights = [abs(self.weights[number]) for number in world.broken if number in numbers]
        return sum(weights) if all(weights) else math.inf

    def clauses(self) -> Rows:
        """Return clauses that say the same, their weights times 10^digits, and the number of variables.

        It looks at the clock on the way.
        """
        rows: list[list[int]] = []
        weights: list[int] = []
        deep: list[tuple[int, Formula]] = []  # rows, and what each stands for
        place = self._ready.place

        def say(formula: Formula, weight: int) -> None:
            clause = [] if formula is FALSE else as_clause(formula)
            if clause is None:
                deep.append((len(rows), formula))
            rows.append([place[name] if wanted else -place[name] for name, wanted in clause or ()])
            weights.append(weight)

        if self._ready.packed is None:
            for number, (statement, weight) in enumerate(zip(self.theory, self.weights, strict=True)):
                if not number % _LOOK:
                    tick()
                if not weight:
                    for part in conjuncts(statement.formula):
                        say(part, 0)
                else:
                    formula = statement.formula if weight > 0 else negated(statement.formula)
                    if formula is not TRUE:
                        say(formula, abs(weight))
        for part in () if self.evidence is None else conjuncts(self.evidence):
            say(part, 0)
        check_cells(*(formula for _, formula in deep))
        large = counter_cells(*(formula for _, formula in deep)) > _CELLS
        enough = share_of_time(0.5) if large else math.inf  # the rest is for those who need no clauses

        def look() -> None:
            tick()
            if spent(enough):
                raise NoAnswer("the clauses were not written down in time: allow more seconds")

        free = len(place) + 1
        for begin in range(0, len(deep), _LOOK):
            tick()
            some = deep[begin : begin + _LOOK]
            more, roots, free = definitional([formula for _, formula in some], place, free, look)
            for (row, _), root in zip(some, roots, strict=True):
                rows[row] = [root]
            rows += more
            weights += [0] * len(more)
        literals = np.array([literal for row in rows for literal in row], np.int32)
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        if self._ready.packed is not None:
            mine = self._ready.packed.clauses
            literals = np.concatenate([mine.literals, literals])
            starts = np.concatenate([mine.starts, mine.starts[-1] + starts[1:]])
            weights = self.weights + weights
        return Rows(literals, starts, weights, free - 1)


def rows_of(literals: NDArray[np.int32], starts: NDArray[np.int64]) -> Iterator[list[int]]:
    """Return packed clauses as lists, one after the other."""
    numbers, ends = literals.tolist(), starts.tolist()
    return (numbers[start:end] for start, end in pairwise(ends))
