"""What hard formulae allow: some world or none, and then a minimal set of them that clashes or entails.

Every answer is a proof by a SAT solver; out of time there is no answer, never a guess.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from lbm.errors import NoAnswer
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import CARDINALITIES, Formula, holds, postorder
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.weighted import check_cells, counter_cells
from lbm.reasoning import clock
from lbm.reasoning.clock import deadline_in

SOLVER: Final = "minisat22"
"""It knows assumptions and cores and can be stopped; pysat cannot stop CaDiCaL."""

_TICK: Final = 0.1  # seconds between looks at the clock, so that Ctrl-C is heard on Windows too
_AGAIN: Final = 0.02  # seconds after which a solver that is to stop is told once more
_GLIMPSE: Final = 1e-3  # likewise, where somebody else is at work meanwhile
_CELLS: Final = 50_000  # of counters, past which simple worlds are tried before clauses are written
_SIMPLE: Final = 64  # such worlds, and at most as many more
_EACH: Final = 8  # of them for each cardinality
_BATCH: Final = 10_000  # clauses handed over between two looks at the clock

Clause = list[int]

Meanwhile = Callable[[], Sequence[bool] | None]
"""Work that is done beside a solver, a piece at each call; a world over the theory's atoms ends it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a proof says of the hard formulae of a theory.

    Attributes
    ----------
    satisfiable
        Whether some world keeps them all; None: no answer in time.
    clash
        Numbers of statements that no world keeps together; empty if there are none, or none was
        found in time.
    minimal
        Whether every member of ``clash`` is proven necessary: without it the others can be kept.
    """

    satisfiable: bool | None
    clash: tuple[int, ...] = ()
    minimal: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a formula is true in every model that keeps the evidence, with a proof either way.

    Attributes
    ----------
    holds
        None: no answer in time.
    world
        If it does not hold: a model that keeps the evidence and in which it is false.
    why
        If it holds: numbers of hard statements that entail it, together with the evidence.
    minimal
        Whether every member of ``why`` is proven necessary.
    """

    holds: bool | None
    world: dict[str, bool] | None = None
    why: tuple[int, ...] = ()
    minimal: bool = False


def satisfiable(theory: Theory, *, given: Formula | None = None, seconds: float | None = None) -> bool | None:
    """Return whether some world keeps every hard formula and ``given``; None: no answer within ``seconds``.

    >>> satisfiable(Theory(["a | b", "~a", (5, "~b")]))
    True
    """
    if simple_model(theory, given) is not None:
        return True
    deadline = deadline_in(seconds)
    return _decide(_Problem(theory, given, deadline), deadline)[0]


def find_model(
    theory: Theory, *, given: Formula | None = None, seconds: float | None = None
) -> dict[str, bool] | None:
    """Return a world that keeps every hard formula and ``given``; None: there is none, or none in time.

    >>> find_model(Theory(["a", "a -> b"]))
    {'a': True, 'b': True}
    """
    if (world := simple_model(theory, given)) is not None:
        return world
    deadline = deadline_in(seconds)
    return _decide(_Problem(theory, given, deadline), deadline)[1]


def simple_model(theory: Theory, given: Formula | None) -> dict[str, bool] | None:
    """Return a model among some simple worlds, where it takes long to write down the clauses for a solver.

    All atoms are true in them, or all false, or drawn with many chances, or as many of the atoms of a
    cardinality are true as its bound says. They are always the same ones.
    """
    formulae = [] if given is None else [given]
    if not isinstance(theory.statements, PackedStatements):
        formulae += [statement.formula for statement in theory if statement.weight is None]
    if counter_cells(*formulae) <= _CELLS:
        return None
    import numpy as np

    rng = np.random.default_rng(0)
    drawn = rng.random((len(theory.atoms), _SIMPLE)) < np.linspace(0, 1, _SIMPLE)
    counts = (node for node in postorder(*formulae) if node.kind in CARDINALITIES)
    place = {name: i for i, name in enumerate(theory.atoms)}
    for node in islice(counts, _SIMPLE // _EACH):
        atoms = [place[part.label] for part in node.args if part.kind == "atom"]
        exact = rng.random((len(theory.atoms), _EACH)) < 0.5
        for column in exact.T:
            column[atoms] = False
            column[rng.permutation(atoms)[: node.label]] = True
        drawn = np.concatenate([drawn, exact], axis=1)
    rows = dict(zip(theory.atoms, drawn, strict=True))
    good = np.ones(drawn.shape[1], bool)
    for formula in formulae:
        good &= np.asarray(holds(formula, rows), bool)
    for column in np.flatnonzero(good).tolist():
        world = dict(zip(theory.atoms, drawn[:, column].tolist(), strict=True))
        if theory.is_model(world):
            return world
    return None


def refuted_literals(
    theory: Theory, literals: Iterable[tuple[str, bool]], *, seconds: float | None = None
) -> set[tuple[str, bool]]:
    """Return those literals, names with values, that no model of the hard formulae has; unproven ones not.

    One solver is asked about all of them, and each model that it finds answers for many.

    >>> refuted_literals(Theory(["a", "a -> b"]), [("a", False), ("b", True), ("b", False)]) == {
    ...     ("a", False),
    ...     ("b", False),
    ... }
    True
    """
    deadline = deadline_in(seconds)
    problem = _Problem(theory, None, deadline)
    if problem.late:
        return set()
    place = {name: i for i, name in enumerate(theory.atoms, start=1)}
    open_ = {place[name] if value else -place[name]: (name, value) for name, value in literals}
    found = set()
    with closing(_Solver(deadline)) as solver:
        solver.add(problem.definitions)
        solver.add(clause for _, clause in problem)
        while open_:
            literal = next(iter(open_))
            answer = solver.solve([literal])
            if answer is None:
                break
            if answer:
                for other in solver.model():
                    open_.pop(other, None)
            else:
                found.add(open_[literal])
            open_.pop(literal, None)
    return found


def model_of(
    clauses: Iterable[Clause], variables: int, phases: Sequence[int], deadline: float
) -> list[bool] | bool | None:
    """Return a world over some variables that keeps clauses; False: there is none; None: none in time.

    ``phases`` are literals to be tried first.
    """
    with closing(_Solver(deadline)) as solver:
        solver.add(clauses)
        solver.solver.set_phases(list(phases))
        answer = solver.solve()
        if not answer:
            return answer
        true = {literal for literal in solver.model() if literal > 0}
        said = {abs(literal) for literal in solver.model()}
    liked = {literal for literal in phases if literal > 0}
    return [i in true if i in said else i in liked for i in range(1, variables + 1)]


def entailed(
    theory: Theory,
    query: Formula,
    *,
    given: Formula | None = None,
    why: bool = True,
    seconds: float | None = None,
) -> Ruling:
    """Return whether ``query`` is true in every model that keeps ``given``.

    If there is no such model the answer is yes. Without ``why`` no reasons are looked for.

    >>> from lbm.knowledge.parser import parse
    >>> entailed(Theory(["a -> b", "c", "b -> d"]), parse("d"), given=parse("a")).why
    (0, 2)
    """
    against = ~query if given is None else given & ~query
    if (simple := simple_model(theory, against)) is not None:
        return Ruling(False, simple)
    deadline = deadline_in(seconds)
    problem = _Problem(theory, against, deadline)
    answer, world = _decide(problem, deadline)
    if answer is not False:
        return Ruling(None if answer is None else False, world)
    found = _shrink(problem, deadline) if why else Verdict(False)
    return Ruling(True, None, found.clash, found.minimal)


def clash(theory: Theory, *, seconds: float | None = None) -> tuple[int, ...] | None:
    """Return a clash (minimal unsatisfiable subset, MUS): hard statements that no world satisfies together.

    Their numbers are returned. The set is minimal: leave any one out and the others can be satisfied. Empty:
    the theory is satisfiable. None: no answer within ``seconds``.

    >>> clash(Theory(["a", "c -> a", "a -> b", (3, "c"), "~b"]))
    (0, 2, 4)
    """
    verdict = prove(theory, seconds=seconds)
    if verdict.satisfiable is None or (not verdict.satisfiable and not verdict.minimal):
        return None
    return verdict.clash


def prove(
    theory: Theory,
    *,
    given: Formula | None = None,
    seconds: float | None = None,
    meanwhile: Meanwhile | None = None,
) -> Verdict:
    """Return whether the hard formulae are satisfiable and, if not, the clash as small as time allows.

    With ``given``, whether some world keeps them and the evidence; a clash then is one with the evidence.
    ``meanwhile`` is called, over and over, while the solver works: it may return a world.
    """
    if simple_model(theory, given) is not None:
        return Verdict(True)
    deadline = deadline_in(seconds)
    problem = _Problem(theory, given, deadline)
    answer, _ = _decide(problem, deadline, meanwhile)
    if answer is not False:
        return Verdict(answer)
    return _shrink(problem, deadline)


class _Problem:
    """The hard statements as clauses: definitions that harm no world, and one clause a statement.

    ``given`` must be true too; it is no statement, and stands among the definitions. If the deadline passes
    before all is defined the problem is ``late``, and says nothing.
    """

    def __init__(self, theory: Theory, given: Formula | None, deadline: float) -> None:
        self.theory, self.given, self.deadline = theory, given, deadline
        self.late = False
        self.definitions: list[Clause] = []
        self.free = len(theory.atoms) + 1
        statements = theory.statements
        self.packed = statements if isinstance(statements, PackedStatements) else None
        self.clauses: list[tuple[int, Clause]] = []
        try:
            self._say()
        except NoAnswer:
            self.late = True

    def _say(self) -> None:
        place: dict[str, int] = {}
        if self.packed is None or self.given is not None:
            place = {name: i for i, name in enumerate(self.theory.atoms, start=1)}
        if self.packed is None:
            self._define(self.theory, place)
        if self.given is not None:
            check_cells(self.given)
            more, (root,), self.free = definitional([self.given], place, self.free, self._look)
            self.definitions += [*more, [root]]

    def _look(self) -> None:
        if clock.spent(self.deadline):
            raise NoAnswer("the clauses were not written down in time: allow more seconds")

    def _define(self, theory: Theory, place: dict[str, int]) -> None:
        flat: dict[int, Clause] = {}
        deep: list[tuple[int, Formula]] = []
        for number, statement in enumerate(theory.statements):
            if statement.weight is not None:
                continue
            literals = as_clause(statement.formula)
            if literals is None:
                deep.append((number, statement.formula))
            else:
                flat[number] = [place[name] if wanted else -place[name] for name, wanted in literals]
        formulae = [formula for _, formula in deep]
        check_cells(*formulae)
        self.definitions, roots, self.free = definitional(formulae, place, self.free, self._look)
        flat.update((number, [root]) for (number, _), root in zip(deep, roots, strict=True))
        self.clauses = sorted(flat.items())

    def __iter__(self) -> Iterator[tuple[int, Clause]]:
        """Yield the number of each hard statement with the clause that says it."""
        if self.packed is None:
            yield from self.clauses
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


def _decide(
    problem: _Problem, deadline: float, meanwhile: Meanwhile | None = None
) -> tuple[bool | None, dict[str, bool] | None]:
    """Return whether there is a world, or None if time ran out; and the world, tried on the formulae."""
    if problem.late:
        return None, None
    with closing(_Solver(deadline)) as solver:
        solver.add(problem.definitions)
        solver.add(clause for _, clause in problem)
        answer = solver.solve(meanwhile=meanwhile)
        if not answer:
            return answer, None
        if solver.met is None:
            true = {literal for literal in solver.model() if literal > 0}
        else:
            true = {i for i, value in enumerate(solver.met, start=1) if value}
    theory, given = problem.theory, problem.given
    world = {name: i in true for i, name in enumerate(theory.atoms, start=1)}
    if not theory.is_model(world) or (given is not None and not holds(given, world)):
        raise RuntimeError("the solver's model breaks a formula: its clauses do not say what the theory says")
    return True, world


def _shrink(problem: _Problem, deadline: float) -> Verdict:
    """Return a clash of statements known to be unsatisfiable, every member proven necessary if time allows.

    A selector turns each statement on; a solver that refuses a set of selectors names those it used.
    Then each of these in turn is left out: if the others clash without it, it was not needed.
    """
    with closing(_Solver(deadline)) as solver:
        solver.add(problem.definitions)
        selectors: list[int] = []
        numbers: list[int] = []

        def selected() -> Iterator[Clause]:
            for selector, (number, clause) in enumerate(problem, start=problem.free):
                selectors.append(selector)
                numbers.append(number)
                yield [*clause, -selector]

        solver.add(selected())
        if solver.solve(selectors) is not False:
            return Verdict(False)
        open_ = solver.core()
        needed: list[int] = []
        while open_:
            left_out = open_[-1]
            answer = solver.solve(needed + open_[:-1])
            if answer is None:
                break
            if answer:
                needed.append(open_.pop())
            else:
                used = set(solver.core())
                solver.add([[-left_out]])
                open_ = [selector for selector in open_[:-1] if selector in used]
        found = sorted(numbers[selector - problem.free] for selector in needed + open_)
        return Verdict(False, tuple(found), minimal=not open_)


class _Call:
    """A solver at work in a thread of its own, which ends before it however its caller is interrupted."""

    def __init__(self, solver: Any, assumptions: list[int]) -> None:
        self.solver, self.assumptions = solver, assumptions
        self.answer: bool | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.gate = threading.Lock()
        self.wanted = self.running = False

    def begin(self) -> None:
        self.wanted = True
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        with self.gate:
            self.running = self.wanted
        try:
            if self.running:
                self.answer = self.solver.solve_limited(self.assumptions, expect_interrupt=True)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            self.error = error
        finally:
            self.done.set()

    def end(self) -> None:
        """Wait for the end of the work, and bring it about if need be."""
        with self.gate:
            self.wanted = False
            if not self.running:
                self.done.set()
        while not self.done.is_set():
            self.solver.interrupt()  # again and again: a search that has not begun forgets it
            self.done.wait(_AGAIN)


class _Solver:
    """A SAT solver that listens to the clock and to Ctrl-C."""

    def __init__(self, deadline: float) -> None:
        from pysat.solvers import Solver

        self.deadline = deadline
        self.call: _Call | None = None
        self.met: Sequence[bool] | None = None  # a world that was found meanwhile
        self.solver: Any = Solver(name=SOLVER)

    def close(self) -> None:
        if self.call is None or self.call.done.is_set():  # else an interrupt interrupted its end
            self.solver.delete()

    def add(self, clauses: Iterable[Clause]) -> None:
        """Hand over clauses; out of time, hand over no more: solve() will then not answer."""
        add = self.solver.add_clause
        for count, clause in enumerate(clauses, start=1):
            add(clause)
            if count % _BATCH == 0 and clock.spent(self.deadline):
                return

    def solve(self, assumptions: Sequence[int] = (), meanwhile: Meanwhile | None = None) -> bool | None:
        """Return whether there is a world, or None if time ran out."""
        if clock.spent(self.deadline):
            return None
        self.call = call = _Call(self.solver, list(assumptions))
        try:
            call.begin()
            while not call.done.is_set() and (left := self.deadline - clock.now()) > 0:
                call.done.wait(min(_TICK if meanwhile is None else _GLIMPSE, left))
                if meanwhile is not None and not call.done.is_set():
                    self.met = meanwhile()
                    if self.met is not None:
                        return True
        finally:
            call.end()
        if call.error is not None:
            raise call.error
        return call.answer

    def model(self) -> list[int]:
        """Return the literals true in the world that was found last."""
        found: list[int] = self.solver.get_model()
        return found

    def core(self) -> list[int]:
        """Return the assumptions, in order, that the last refusal rests on."""
        return sorted(self.solver.get_core() or ())


def solving(clauses: Iterable[list[int]], *, conflicts: int) -> Iterator[list[bool] | bool | None]:
    """Yield None for every so many conflicts that settled nothing, then a model, or False: there is none.

    A model is given by variable from 1 on, without those past the last one that a clause mentions.
    """
    from pysat.solvers import Solver

    with Solver("minisat22", bootstrap_with=clauses) as solver:
        while True:
            solver.conf_budget(conflicts)
            verdict = solver.solve_limited()
            if verdict is not None:
                yield [literal > 0 for literal in solver.get_model()] if verdict else False
                return
            yield None
