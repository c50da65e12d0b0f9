"""Problem: a theory with its evidence, made ready once and asked often.

What is derived from the theory alone (its hard clauses, a SAT solver that has read them, its formulae as
arrays, its components) is made on first use, kept, and shared by all problems that evidence makes of it.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, Final, TypeVar, cast

import numpy as np

from lbm.arrays import Bools
from lbm.errors import UnknownAtom
from lbm.knowledge.clauses import Clauses, OnStep, as_clause, definitional, whole_numbers
from lbm.knowledge.formula import CARDINALITIES, Formula, atoms_of, holds
from lbm.knowledge.numbers import digits_of, whole
from lbm.knowledge.theory import Theory
from lbm.knowledge.truths import Truths
from lbm.knowledge.weighted import check_cells, clausal, conjuncts, counter_cells, parts_of
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.solvers.demands import FREE, Demands
from lbm.reasoning.solvers.sat import Clause, Session, turn

MANY_CELLS: Final = 50_000
"""Counter cells past which it takes long to write down the clauses, and to read them.

A search gives them no more than half of its time; simple worlds and chains are tried before a solver is.
"""

_LOOK: Final = 1000  # formulae that become clauses between two looks at the clock
_TOGETHER: Final = 1 << 24  # clauses times worlds that are looked at together
_WHOLE: Final = 1 << 62  # sums of weights up to which they are kept in 64 bits

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A world, the numbers of the statements it breaks, and the weight it loses times 10^digits.

    ``keeps``: whether it keeps the evidence and every hard formula.
    """

    values: tuple[bool, ...]
    keeps: bool
    broken: tuple[int, ...]
    lost: int


class _Ready:
    """What is derived from a theory alone."""

    def __init__(self, theory: Theory) -> None:
        self.theory = theory
        self.known = Known()
        self.lock = Lock()
        self.written: Clauses | None = None
        self.parts: dict[Formula, int] = {}  # that are defined there, with their literals
        self.session: Session | None = None

    @cached_property
    def place(self) -> dict[str, int]:
        """The variable of each atom, from 1."""
        return {name: i for i, name in enumerate(self.theory.atoms, start=1)}

    @cached_property
    def hard(self) -> Bools:
        """Which statements are hard."""
        return np.array([weight is None for weight in self.theory.weights], bool)

    @cached_property
    def truths(self) -> Truths:
        """All formulae, as arrays."""
        return Truths(self.theory.atoms, [statement.formula for statement in self.theory])

    @cached_property
    def cells(self) -> int:
        """About how many cells the counters of the hard cardinalities have."""
        if self.theory.clauses is not None:
            return 0
        return counter_cells(*(statement.formula for statement in self.theory if statement.weight is None))

    @cached_property
    def digits(self) -> int:
        """How many digits follow the point of a weight, at most."""
        if self.theory.clauses is not None:
            return self.theory.clauses.digits
        return max((digits_of(weight) for weight in self.theory.weights if weight is not None), default=0)

    @cached_property
    def weights(self) -> list[int]:
        """The weight of each statement times 10^digits, 0 for a hard one."""
        if self.theory.clauses is not None:
            return cast("list[int]", self.theory.clauses.weights.tolist())
        return [0 if weight is None else whole(weight, self.digits) for weight in self.theory.weights]

    @cached_property
    def positive(self) -> Bools:
        """Which statements are lost where they are false: not those of negative weight."""
        return np.array([weight >= 0 for weight in self.weights], bool)

    @cached_property
    def flat(self) -> tuple[Clauses, dict[int, Formula]]:
        """The statements that are clauses, whatever their weights, and the formulae of the others."""
        if self.theory.clauses is not None:
            return self.theory.clauses, {}
        rows: dict[int, Clause] = {}
        others: dict[int, Formula] = {}
        for number, statement in enumerate(self.theory):
            literals = as_clause(statement.formula)
            if literals is None:
                others[number] = statement.formula
            else:
                rows[number] = self.numbered(literals)
        return Clauses.of(rows.values(), atoms=self.theory.atoms, groups=list(rows)), others

    def numbered(self, literals: Iterable[tuple[str, bool]]) -> Clause:
        """Return literals, names with values, as numbers."""
        return [self.place[name] if wanted else -self.place[name] for name, wanted in literals]

    def write(self, budget: Budget) -> Clauses:
        """Return the hard statements as clauses; raise NoAnswer if the time is over before that.

        Definitions come first, then one clause for each statement.
        """
        if self.written is None:
            clauses, others = self.flat
            deep = {number: formula for number, formula in others.items() if self.hard[number]}
            check_cells(*deep.values())
            free, parts = len(self.place) + 1, dict[Formula, int]()
            definitions, roots, free = definitional(
                list(deep.values()), self.place, free, budget.look, known=parts
            )
            clauses = clauses.where(self.hard[clauses.owners])
            if deep:
                clauses = clauses.joined(Clauses.of([[root] for root in roots], groups=list(deep)))
                clauses = _behind(definitions, free, clauses.ordered(np.argsort(clauses.owners)))
            self.written, self.parts = clauses, parts
        return self.written

    def asked(self, budget: Budget) -> Session:
        """Return the solver that has read the hard formulae; raise NoAnswer if there is no time for that."""
        with turn(self.lock, budget):
            session = self.session
            if session is None or session.worn:
                written = self.write(budget)
                session = Session(self.place, written.variables + 1, dict(self.parts))
                session.add(written.rows(), budget)
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
        if given is None:
            return problem
        problem.check(given, "evidence")
        return problem.given(given)

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
        check_formula(formula, role, self._ready.place, "theory")

    def written(self, budget: Budget) -> Clauses:
        """Return hard statements and evidence as clauses; raise NoAnswer if that is not done in time.

        Definitions come first, then the evidence, then one clause for each statement.
        """
        bare = self._ready.write(budget)
        if self.evidence is None:
            return bare
        check_cells(self.evidence)
        more, (root,), free = definitional(
            [self.evidence], self._ready.place, bare.variables + 1, budget.look
        )
        said = bare.owners >= 0
        definitions = bare.where(~said)
        return _behind([*definitions.rows(), *more, [root]], free, bare.where(said))

    def session(self, budget: Budget) -> tuple[Session, list[int]]:
        """Return the solver that has read the hard formulae, and the evidence as its assumptions."""
        session = self._ready.asked(budget)
        return session, [] if self.evidence is None else session.literals(self.evidence, budget)

    def truth(self, values: Sequence[bool] | Bools) -> Bools:
        """Return which statements are true where the atoms have these values, shape (statements,)."""
        if self.theory.clauses is None:
            return self._ready.truths.true_in(values)
        return self.theory.clauses.true_at(np.asarray(values, bool))

    def is_model(self, values: Sequence[bool] | Bools) -> bool:
        """Return whether a world satisfies every hard formula and the evidence."""
        return bool((self.truth(values) | ~self._ready.hard).all()) and self._keeps(values)

    def are_models(self, worlds: Bools) -> Bools:
        """Return which worlds, shape (worlds, atoms), satisfy every hard formula and the evidence."""
        columns = dict(zip(self.theory.atoms, worlds.T, strict=True))
        clauses, others = self.flat
        clauses = clauses.where(self._ready.hard[clauses.owners])
        formulae = [formula for number, formula in others.items() if self._ready.hard[number]]
        found = np.full(len(worlds), bool(clauses.sizes.all()))
        for formula in formulae if self.evidence is None else [self.evidence, *formulae]:
            found &= np.broadcast_to(holds(formula, columns), len(worlds))
        starts, values = clauses.starts, np.ascontiguousarray(worlds.T)
        step = max(1, _TOGETHER // max(1, len(worlds)))
        for begin in range(0, len(clauses) if found.any() else 0, step):
            end = min(len(clauses), begin + step)
            part = clauses.literals[starts[begin] : starts[end]]
            true = values[np.abs(part) - 1] == (part > 0)[:, None]
            found &= np.logical_or.reduceat(true, starts[begin:end] - starts[begin], axis=0).all(axis=0)
        return found

    def demand(self, values: Sequence[bool]) -> None:
        """Raise unless a solver's world is a model."""
        if not self.is_model(values):
            raise RuntimeError(
                "the solver's model breaks a formula: its clauses do not say what the theory says"
            )

    def _keeps(self, values: Sequence[bool] | Bools) -> bool:
        """Return whether a world satisfies the evidence."""
        if self.evidence is None:
            return True
        place = self._ready.place
        return bool(holds(self.evidence, {name: values[place[name] - 1] for name in atoms_of(self.evidence)}))

    def named(self, values: Sequence[bool] | Bools) -> dict[str, bool]:
        """Return a world under the names of its atoms."""
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        return dict(zip(self.theory.atoms, plain, strict=True))

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
    def flat(self) -> tuple[Clauses, dict[int, Formula]]:
        """The statements that are clauses, and the formulae of the others by their numbers."""
        return self._ready.flat

    def weighted_clauses(self, *, hard: bool = False) -> Clauses | None:
        """Return theory and evidence as weighted clauses over the atoms alone; None: they are not clauses.

        Negative weights and weights past 64 bits are not, either. ``hard``: soft formulae are left out.
        """
        clauses, others = self.flat
        evidence = self._evidence()
        if evidence is None or any(not hard or self._ready.hard[number] for number in others):
            return None
        if hard:
            clauses = clauses.where(self._ready.hard[clauses.owners])
        elif self.weights and not 0 <= min(self.weights) <= sum(self.weights) < _WHOLE:
            return None
        else:
            clauses = replace(clauses, weights=np.array(self.weights, np.int64), digits=self.digits)
        return clauses.joined(_unsaid(evidence)) if evidence else clauses

    def _evidence(self) -> list[Clause] | None:
        """Return the evidence as clauses; None: it is something else."""
        found: list[Clause] = []
        waiting = [] if self.evidence is None else [self.evidence]
        while waiting:
            part = waiting.pop()
            clause = as_clause(part)
            if clause is not None:
                found.append(self._ready.numbered(clause))
            elif part.kind == "and":
                waiting += part.args
            else:
                return None
        return found

    def look(self, values: Sequence[bool]) -> Candidate:
        """Return what a world keeps and loses."""
        values = tuple(values)
        keeps = self._keeps(values)
        # A formula of negative weight is lost where it is true.
        broken: list[int] = np.flatnonzero(self.truth(values) != self._ready.positive).tolist()
        weights = self.weights
        lost = sum(abs(weights[number]) for number in broken)
        return Candidate(values, keeps and all(weights[number] for number in broken), tuple(broken), lost)

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

    def lost_by(self, world: Candidate, numbers: frozenset[int]) -> float:
        """Return what a world loses of some statements only; infinity if a hard one of them is broken."""
        weights = [abs(self.weights[number]) for number in world.broken if number in numbers]
        return sum(weights) if all(weights) else math.inf

    def clauses(self, budget: Budget = NO_LIMIT) -> Clauses:
        """Return clauses that say the same, definitions included, their weights times 10^digits."""

        def on_step(cells: int) -> OnStep:
            return budget.half().look if cells > MANY_CELLS else budget.tick  # the rest needs no clauses

        return self._packed(clausal(self.theory.atoms, self._parts(budget), batch=_LOOK, on_step=on_step))

    def demands(self, budget: Budget = NO_LIMIT) -> Demands:
        """Return demands that say the same: cardinalities of literals as they are, all else as clauses."""
        place = self._ready.place
        counts: list[tuple[list[int], int, int, int]] = []

        def others() -> Iterator[tuple[Formula, int]]:
            for formula, weight in self._parts(budget):
                count = _count(formula, place)
                if count is None:
                    yield formula, weight
                else:
                    counts.append((*count, weight))

        clauses = self._packed(
            clausal(self.theory.atoms, others(), batch=_LOOK, on_step=lambda _: budget.tick)
        )
        number = len(clauses)
        if counts:
            rows, lows, highs, weights = (list(column) for column in zip(*counts, strict=True))
            clauses = clauses.joined(Clauses.of(rows, weights, atoms=clauses.atoms))
        else:
            lows, highs = [], []
        low, high = np.ones(len(clauses), np.int32), np.full(len(clauses), FREE, np.int32)
        low[number:], high[number:] = lows, highs
        return Demands(clauses, low, high, len(self.theory.atoms))

    def _parts(self, budget: Budget) -> Iterator[tuple[Formula, int]]:
        """Yield formulae that say what theory and evidence say, with whole weights; packed clauses not."""
        said = parts_of(self.theory, lambda weight: whole(weight, self.digits))
        evidence = () if self.evidence is None else conjuncts(self.evidence)
        mine = said if self.theory.clauses is None else ()
        for number, part in enumerate(chain(mine, ((formula, 0) for formula in evidence))):
            if not number % _LOOK:
                budget.tick()
            yield part

    def _packed(self, found: Clauses) -> Clauses:
        """Return clauses behind those that the theory was packed as, if it was."""
        if self.theory.clauses is None:
            return found
        weights = whole_numbers(self.weights)
        return replace(self.theory.clauses, weights=weights, digits=self.digits).joined(found)


def _count(formula: Formula, place: Mapping[str, int]) -> tuple[list[int], int, int] | None:
    """Return literals, and of how many at least and at most a formula speaks; None: of something else."""
    wanted, node = True, formula
    while node.kind == "not":
        wanted, node = not wanted, node.args[0]
    if node.kind not in CARDINALITIES or not (wanted or node.kind != "exactly"):
        return None
    literals: list[int] = []
    for part in node.args:
        sign, atom = 1, part
        while atom.kind == "not":
            sign, atom = -sign, atom.args[0]
        if atom.kind != "atom":
            return None
        literals.append(sign * place[atom.label])
    if len({abs(literal) for literal in literals}) < len(literals):
        return None
    bound = node.label
    if node.kind == "exactly":
        return literals, bound, bound
    if (node.kind == "atleast") is wanted:
        return literals, bound if wanted else bound + 1, FREE
    if not (wanted or bound):  # at most -1 of them
        return literals, len(literals) + 1, FREE
    return literals, 0, bound if wanted else bound - 1


def check_formula(formula: Formula, role: str, atoms: Mapping[str, object], where: str) -> None:
    """Raise unless ``formula`` is one, over these atoms; ``where`` says whose atoms they are."""
    if not isinstance(formula, Formula):
        raise TypeError(f"the {role} is a formula, got {formula!r}: lbm.parse('a -> b') makes one")
    for name in atoms_of(formula):
        if name not in atoms:
            raise UnknownAtom(name, atoms, where)


def _unsaid(rows: Sequence[Clause], variables: int = 0) -> Clauses:
    """Return clauses that no statement says: definitions, or evidence."""
    return Clauses.of(rows, variables=variables, groups=[-1] * len(rows))


def _behind(definitions: Sequence[Clause], free: int, clauses: Clauses) -> Clauses:
    """Return clauses behind definitions of variables below ``free``."""
    return replace(_unsaid(definitions, free - 1).joined(clauses), atoms=clauses.atoms)
