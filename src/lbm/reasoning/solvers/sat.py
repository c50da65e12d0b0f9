"""A SAT solver that listens to the clock and to Ctrl-C, and one that is kept for many questions."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

from lbm.errors import NoAnswer
from lbm.knowledge.clauses import as_clause, definitional
from lbm.knowledge.formula import Formula
from lbm.knowledge.weighted import check_cells, conjuncts, negated
from lbm.reasoning.budget import NO_LIMIT, Budget

SOLVER: Final = "minisat22"
"""It knows assumptions and cores and can be stopped; pysat cannot stop CaDiCaL."""

WORN: Final = 100_000
"""Variables for queries and evidence past which a solver that is kept is made anew."""

_TICK: Final = 0.1  # seconds between looks at the clock, so that Ctrl-C is heard on Windows too
_AGAIN: Final = 0.02  # seconds after which a solver that is to stop is told once more
_GLIMPSE: Final = 1e-3  # likewise, where somebody else is at work meanwhile
_BATCH: Final = 10_000  # clauses handed over between two looks at the clock
_CONFLICTS: Final = 100  # that a kept solver may meet before it goes on in a thread of its own
_STEPS: Final = 100_000  # propagations, likewise

Clause = list[int]

Meanwhile = Callable[[], Sequence[bool] | None]
"""Work that is done beside a solver, a piece at each call; a world over the theory's atoms ends it."""


def model_of(
    clauses: Iterable[Clause], variables: int, phases: Sequence[int], budget: Budget
) -> list[bool] | bool | None:
    """Return a world over some variables that keeps clauses; False: there is none; None: none in time.

    ``phases`` are literals to be tried first.
    """
    with closing(Solver(budget)) as solver:
        solver.add(clauses)
        solver.solver.set_phases(list(phases))
        answer = solver.solve()
        if not answer:
            return answer
        true = {literal for literal in solver.model() if literal > 0}
        said = {abs(literal) for literal in solver.model()}
    liked = {literal for literal in phases if literal > 0}
    return [i in true if i in said else i in liked for i in range(1, variables + 1)]


class Call:
    """A solver at work in a thread of its own, which ends before it however its caller is interrupted."""

    def __init__(self, solver: Any, assumptions: list[int]) -> None:
        self.solver, self.assumptions = solver, assumptions
        self.answer: bool | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.gate = threading.Lock()
        self.wanted = self.running = False

    def begin(self) -> None:
        """Let the solver begin."""
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


class Solver:
    """A SAT solver that listens to the clock and to Ctrl-C."""

    def __init__(self, budget: Budget) -> None:
        from pysat.solvers import Solver as Engine

        self.budget = budget
        self.call: Call | None = None
        self.met: Sequence[bool] | None = None  # a world that was found meanwhile
        self.solver: Any = Engine(name=SOLVER)

    def close(self) -> None:
        """Let go of the solver."""
        if self.call is None or self.call.done.is_set():  # else an interrupt interrupted its end
            self.solver.delete()

    def add(self, clauses: Iterable[Clause]) -> None:
        """Hand over clauses; out of time, hand over no more: solve() will then not answer."""
        add = self.solver.add_clause
        for count, clause in enumerate(clauses, start=1):
            add(clause)
            if count % _BATCH == 0 and self.budget.spent():
                return

    def solve(self, assumptions: Sequence[int] = (), meanwhile: Meanwhile | None = None) -> bool | None:
        """Return whether there is a world, or None if time ran out."""
        if self.budget.spent():
            return None
        self.call = call = Call(self.solver, list(assumptions))
        try:
            call.begin()
            while not call.done.is_set() and (left := self.budget.left()) > 0:
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


@contextmanager
def turn(lock: threading.Lock | threading.RLock, budget: Budget) -> Iterator[None]:
    """Hold a lock that others may have; raise NoAnswer if they have it all the time."""
    if not lock.acquire(timeout=min(max(0.0, budget.left()), threading.TIMEOUT_MAX)):
        raise NoAnswer("others asked the same solver for all of the time: allow more seconds")
    try:
        yield
    finally:
        lock.release()


class Session:
    """One solver that has read some clauses, and is asked about them many times (incremental SAT).

    Queries and evidence are assumptions: what it learned for one question serves all others. Threads may
    share it, one of them at a time.

    Parameters
    ----------
    place
        The variable of each atom.
    free
        The first variable that the clauses to come do not use.
    parts
        The literals of parts of formulae that these clauses define.
    """

    def __init__(self, place: dict[str, int], free: int, parts: dict[Formula, int]) -> None:
        self.place, self.free, self.parts = place, free, parts
        self.first = free
        self.lock = threading.RLock()
        self.solver = Solver(NO_LIMIT)
        self.broken = False
        # pysat's own way to let go of a solver fails once Python is taking its modules down.
        weakref.finalize(self, Solver.close, self.solver)

    @property
    def worn(self) -> bool:
        """Whether to make another one: too much has been asked, or it was interrupted."""
        return self.broken or self.free - self.first > WORN

    def add(self, clauses: Iterable[Clause], budget: Budget) -> None:
        """Hand over clauses; raise NoAnswer if the time is over before all are there."""
        self.solver.budget = budget
        self.solver.add(clauses)
        if budget.spent():
            self.broken = True
            raise NoAnswer("the clauses were not handed over in time: allow more seconds")

    def literals(self, formula: Formula, budget: Budget) -> list[int]:
        """Return literals that are all true exactly where a formula is; what needs a definition gets one."""
        found: list[int] = []
        with turn(self.lock, budget):
            for part in conjuncts(formula):
                against = as_clause(negated(part))
                if against is not None:  # a literal, or a clause denied
                    found += [-self.place[name] if wanted else self.place[name] for name, wanted in against]
                    continue
                check_cells(part)
                before, self.broken = self.broken, True  # unless all is said
                more, (root,), self.free = definitional(
                    [part], self.place, self.free, budget.look, known=self.parts
                )
                self.solver.budget = NO_LIMIT
                self.solver.add(more)
                self.broken = before
                found.append(root)
        return found

    def solve(
        self, assumptions: Sequence[int], budget: Budget, meanwhile: Meanwhile | None = None
    ) -> list[bool] | bool | None:
        """Return a world over the atoms in which these literals are true; False: none; None: none in time.

        What ``meanwhile`` comes with is returned as it is.
        """
        with turn(self.lock, budget):
            before, self.broken = self.broken, True
            answer = self._settled(list(assumptions), budget, meanwhile)
            self.broken = before
            if not answer:
                return answer
            if self.solver.met is not None:
                return list(self.solver.met)
            model = self.solver.model()
            values = [literal > 0 for literal in model[: len(self.place)]]
            return values + [False] * (len(self.place) - len(values))

    def _settled(self, assumptions: list[int], budget: Budget, meanwhile: Meanwhile | None) -> bool | None:
        if budget.spent():
            return None
        self.solver.budget, self.solver.met = budget, None
        engine = self.solver.solver
        if meanwhile is None:  # most questions are settled before a thread has begun
            engine.conf_budget(_CONFLICTS)
            engine.prop_budget(_STEPS)
            answer: bool | None = engine.solve_limited(assumptions, expect_interrupt=True)
            engine.conf_budget(-1)
            engine.prop_budget(-1)
            if answer is not None:
                return answer
        return self.solver.solve(assumptions, meanwhile)


def solving(clauses: Iterable[list[int]], *, conflicts: int) -> Iterator[list[bool] | bool | None]:
    """Yield None for every so many conflicts that settled nothing, then a model, or False: there is none.

    A model is given by variable from 1 on, without those past the last one that a clause mentions.
    """
    from pysat.solvers import Solver as Engine

    with Engine(SOLVER, bootstrap_with=clauses) as solver:
        while True:
            solver.conf_budget(conflicts)
            verdict = solver.solve_limited()
            if verdict is not None:
                yield [literal > 0 for literal in solver.get_model()] if verdict else False
                return
            yield None
