"""Problem: a theory with its evidence, made ready once and asked often.

What is derived from the theory alone (its hard clauses, a SAT solver that has read them, its formulae as
arrays, its components) is made on first use, kept, and shared by all problems that evidence makes of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from lbm.errors import UnknownAtom
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.truths import Truths
from lbm.knowledge.weighted import check_cells, counter_cells
from lbm.reasoning.clock import looks
from lbm.reasoning.solvers.sat import Clause, Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

_BATCH: Final = 10_000  # packed clauses that become lists at a time

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
        import numpy as np

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
        with self.lock:
            session = self.session
            if session is None or session.worn:
                written = self.write(deadline)
                session = Session(self.place, written.free, dict(written.parts))
                session.add(written.definitions, deadline)
                session.add((clause for _, clause in written), deadline)
                self.session = session
            return session


class Problem:
    """A theory with its evidence.

    >>> from lbm.knowledge.parser import parse
    >>> Problem(Theory(["a -> b"])).given(parse("a")).is_model([True, False])
    False
    """

    def __init__(self, theory: Theory, evidence: Formula | None = None) -> None:
        self.theory, self.evidence = theory, evidence
        self._ready = _Ready(theory)

    @classmethod
    def of(cls, theory: Theory | Problem, given: Formula | None = None) -> Problem:
        """Return a problem: the one it is, or a new one, with further evidence if there is some."""
        problem = theory if isinstance(theory, Problem) else cls(theory)
        return problem if given is None else problem.given(given)

    def given(self, formula: Formula) -> Problem:
        """Return the problem in which a formula is true as well; all that is derived so far is shared."""
        found = object.__new__(Problem)
        found.theory, found._ready = self.theory, self._ready
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
        import numpy as np

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
