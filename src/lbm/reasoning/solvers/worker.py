"""The process in which solvers run: MaxSAT by RC2, counts by Ganak.

Run as ``python -m lbm.reasoning.solvers.worker`` it reads problems from standard input and answers each in
lines of JSON, until standard input closes. A problem is a line of JSON, then 32-bit literals with a 0 after
each clause, then 64-bit weights unless they stand in the line. A line ``{"stop": number}`` ends the work on a
problem; the answer to that is an event ``stopped``. A line ``{"upper": weight, "number": number}`` says that
some world of a problem loses no more than that.
"""

# It loads nothing but pysat and what is quick: a question waits for it.

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from array import array

TYPE_CHECKING = False  # that of typing, which takes a moment to load
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO, Any

    Say = Callable[..., None]
    Call = Callable[[Any, Sequence[int]], bool | None]
    Upper = Callable[[], int | None]

SOLVER = "m22"
"""The SAT solver below RC2. Cores are shrunk by many short calls, and at those MiniSat was the fastest."""

PLANS: dict[str, dict[str, Any]] = {
    "stratified": {"solver": "g3", "minz": True},
    "plain": {"solver": "g3", "blo": None},
    "exhaustive": {"solver": SOLVER, "minz": True, "exhaust": True, "adapt": True, "blo": "full"},
}
"""How RC2 may be set up: heavier clauses first; all at once; or with cores exhausted and exclusions found."""

_AGAIN = 0.005  # seconds after which a solver is told again to stop: once may be too early


class Stopped(Exception):
    """The question was taken back."""


class Work:
    """Problems as they come in, and the solver that can be told to stop."""

    def __init__(self, problem: IO[bytes]) -> None:
        self.problem = problem
        self.arrived = threading.Condition()
        self.waiting: list[tuple[dict[str, Any], array[int], Sequence[int]]] = []
        self.stopped = -1  # this problem and all before it are no longer wanted
        self.current = -1
        self.solver: Any = None
        self.known: tuple[int, int] = (-1, 0)  # of which problem some world is known, and what it loses
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while line := self.problem.readline():
            said = json.loads(line)
            if "upper" in said:
                self.known = said["number"], said["upper"]
                continue
            if "stop" in said:
                self.stopped = max(self.stopped, said["stop"])
                # In a thread, since this one hears whether our caller is still there.
                threading.Thread(target=self._stop, args=(said["stop"],), daemon=True).start()
                continue
            literals = numbers("i", self.problem, said.pop("literals"))
            weights = said.pop("weights", None)
            if weights is None:
                weights = numbers("q", self.problem, said.pop("weighted", 0))
            with self.arrived:
                self.waiting.append((said, literals, weights))
                self.arrived.notify()
        os._exit(0)  # our caller has gone, and nobody is left to hear the answer

    def _stop(self, number: int) -> None:
        while 0 <= self.current <= number:
            solver = self.solver
            if solver is not None:
                solver.interrupt()
            time.sleep(_AGAIN)

    def next(self) -> tuple[dict[str, Any], array[int], Sequence[int]]:
        """Return the next problem, when there is one."""
        with self.arrived:
            while not self.waiting:
                self.arrived.wait()
            self.current = self.waiting[0][0]["number"]
            return self.waiting.pop(0)

    def counts(self) -> bool:
        """Return whether the first problem is here already, and one of counting."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.waiting, _AGAIN)
            return bool(self.waiting) and self.waiting[0][0]["task"] != "maxsat"

    def call(self, solver: Any, assumptions: Sequence[int]) -> bool | None:
        """Let a solver work, unless or until its problem is no longer wanted."""
        self.solver = solver
        if self.stopped >= self.current:
            raise Stopped
        found: bool | None = solver.solve_limited(assumptions=list(assumptions), expect_interrupt=True)
        if self.stopped >= self.current:
            raise Stopped
        return found

    def upper(self) -> int | None:
        """Return what some world of the problem loses, as far as we were told; None: nobody said."""
        number, lost = self.known
        return lost if number == self.current else None

    def done(self) -> None:
        """Forget the solver: its problem is answered, or no longer wanted."""
        self.solver, self.current = None, -1


def numbers(kind: str, file: IO[bytes], number: int) -> array[int]:
    """Return so many numbers of an array's kind, as they come."""
    found: array[int] = array(kind)
    found.frombytes(file.read(found.itemsize * number))
    return found


def mouth() -> IO[bytes]:
    """Return where our lines go; solvers may print, but what they say must not stand between these."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return out


def main() -> None:
    """Read problems from standard input, and answer them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = mouth()
    work = Work(sys.stdin.buffer)
    if not work.counts():
        from pysat.examples.rc2 import RC2  # noqa: F401 - loaded before the first problem comes

    while True:
        header, literals, weights = work.next()
        number = header["number"]

        def say(kind: str, number: int = number, **parts: Any) -> None:
            out.write(json.dumps({"number": number, "kind": kind, **parts}).encode() + b"\n")

        clauses = rows_of(literals)
        try:
            if header["task"] == "count":
                say("count", count=hex(_count(clauses, header["variables"], header["project"])))
            elif header["task"] == "weigh":
                found = _weigh(clauses, header["variables"], header["project"], header["signs"])
                say("weight", weight=found.hex())
            else:
                atoms = header["atoms"]
                solve(clauses, weights, header["variables"], atoms, header, say, work.call, work.upper)
        except Stopped:
            say("stopped")
        except MemoryError:
            say("failed")
        work.done()
        del clauses, literals, weights


def rows_of(literals: array[int]) -> list[list[int]]:
    """Return the rows of literals that a 0 ends."""
    found: list[list[int]] = []
    start = 0
    for end, literal in enumerate(literals):
        if not literal:
            found.append(literals[start:end].tolist())
            start = end + 1
    return found


def _count(clauses: list[list[int]], variables: int, project: list[int] | None) -> int:
    return int(_counter("Counter", clauses, variables, project).count()) if all(clauses) else 0


def _weigh(
    clauses: list[list[int]], variables: int, project: list[int] | None, signs: list[tuple[int, str, str]]
) -> float:
    if not all(clauses):
        return 0.0
    counter = _counter("WeightedCounter", clauses, variables, project)
    for variable, true, false in signs:  # both: where only one is set, the other is not 1
        counter.set_lit_weight(variable, float.fromhex(true))
        counter.set_lit_weight(-variable, float.fromhex(false))
    return float(counter.count())


def _counter(kind: str, clauses: list[list[int]], variables: int, project: list[int] | None) -> Any:
    from importlib import import_module

    counter = getattr(import_module("pyganak"), kind)()
    counter.new_vars(variables)
    counter.add_clauses(clauses)
    if project is not None:
        counter.set_sampling_set(project)
    return counter


def solve(
    clauses: Sequence[list[int]],
    weights: Sequence[int],
    variables: int,
    atoms: int,
    wanted: dict[str, Any],
    say: Say,
    call: Call,
    upper: Upper = lambda: None,
) -> None:
    """Say what RC2 finds out about weighted clauses; ``wanted`` holds ``top`` and ``every``, maybe ``plan``.

    ``call`` lets a SAT solver work on assumptions; ``upper`` returns what some world is known to lose.
    """
    hard = [clause for clause, weight in zip(clauses, weights, strict=True) if not weight]
    soft = [(clause, weight) for clause, weight in zip(clauses, weights, strict=True) if weight and clause]
    # An empty soft clause is lost in every world, and RC2 takes none.
    base = sum(weight for clause, weight in zip(clauses, weights, strict=True) if weight and not clause)
    if not all(hard):
        say("end", all=True)
        return
    first = _first(hard, soft, variables, atoms, call)
    if first is None:
        say("end", all=True)
        return
    say("world", world=first)
    if base:
        say("bound", lost=base)
    if not soft and not base and wanted["top"] == 1 and not wanted["every"]:
        say("next", lost=0, world=first)  # nothing can be lost
        say("end", all=atoms == 0)
        return
    hardens = wanted["top"] == 1
    plan = PLANS[wanted.get("plan") or "exhaustive"]
    solver = _rc2(hard, soft, variables, atoms, base, say, call, upper, plan, hardens=hardens)
    found, least = 0, base
    while wanted["every"] or found < wanted["top"]:
        model = solver.compute()
        if model is None:
            say("end", all=True)
            return
        lost = base + solver.cost
        if not found:
            least = lost
        elif wanted["every"] and lost > least:
            break
        world = _values(model, atoms)
        say("next", lost=lost, world=world)
        solver.quiet = True  # from here on its bounds are about the worlds that are left
        found += 1
        # A world without atoms is the only one: the clause that rules it out would be empty.
        if not atoms:
            say("end", all=True)
            return
        solver.add_clause([-i if value == "1" else i for i, value in enumerate(world, start=1)])
    say("end")


def liked(soft: Iterable[tuple[Sequence[int], int]]) -> dict[int, int]:
    """Return the weight of soft clauses that want a variable true, less that of those that want it false."""
    found: dict[int, int] = {}
    for clause, weight in soft:
        for literal in clause:
            found[abs(literal)] = found.get(abs(literal), 0) + (weight if literal > 0 else -weight)
    return found


def _first(
    hard: list[list[int]],
    soft: list[tuple[list[int], int]],
    variables: int,
    atoms: int,
    call: Call,
) -> str | None:
    """Return some world that keeps the hard clauses, with literals of soft ones where there is a choice."""
    from pysat.solvers import Solver

    likes = liked(soft)
    with Solver(SOLVER, bootstrap_with=hard) as solver:
        solver.set_phases([i if likes.get(i, 0) > 0 else -i for i in range(1, variables + 1)])
        if not call(solver, ()):
            return None
        return _values(solver.get_model(), atoms, likes)


def _values(model: Iterable[int], atoms: int, likes: dict[int, int] | None = None) -> str:
    """Return the values of the first variables; one that no clause knows is as liked, or false."""
    likes = likes or {}
    values = ["1" if likes.get(i, 0) > 0 else "0" for i in range(1, atoms + 1)]
    for literal in model:
        if abs(literal) <= atoms:
            values[abs(literal) - 1] = "1" if literal > 0 else "0"
    return "".join(values)


def _rc2(
    hard: list[list[int]],
    soft: list[tuple[list[int], int]],
    variables: int,
    atoms: int,
    base: int,
    say: Say,
    call: Call,
    upper: Upper,
    plan: dict[str, Any],
    *,
    hardens: bool,
) -> Any:
    """Return RC2 on these clauses, set up by a plan, which says bounds and worlds as it goes.

    With ``hardens`` it drops worlds that are proven worse than another one, which helps it to find all
    the best ones, but none after them. Others may know that one: then what weighs more than lies between what
    is proven and what it loses holds in every best world.
    """
    from pysat.examples.rc2 import RC2, RC2Stratified
    from pysat.formula import WCNF

    options = {name: value for name, value in plan.items() if value is not None}
    stratified = bool(soft) and plan.get("blo", "div") is not None

    class Telling(RC2Stratified if stratified else RC2):  # type: ignore[misc]
        """RC2 that says every bound that it proves, and lets other threads run."""

        _cost = 0
        quiet = False
        seen: tuple[int, int] = (
            -1,
            -1,
        )  # what a world loses, and what is proven, when clauses were made hard

        @property
        def cost(self) -> int:
            return self._cost

        @cost.setter
        def cost(self, cost: int) -> None:
            if cost > self._cost and not self.quiet:
                say("bound", lost=base + cost)
            self._cost = cost

        def _call_oracle(self, assumptions: Sequence[int] = (), expect_interrupt: bool = False) -> Any:
            del expect_interrupt
            return call(self.oracle, assumptions)

        def active_assumps(self) -> list[int]:
            lost = upper() if hardens else None
            if lost is not None and (lost, self.cost) != self.seen:
                self.seen = lost, self.cost
                self._harden(lost - base - self.cost)
            found: list[int] = super().active_assumps()
            return found

        def _harden(self, most: int) -> None:
            """Make hard what weighs more than ``most``: worlds that break it lose more than a known one."""
            heavy = {literal for literal in self.sels + self.sums if self.wght[literal] > most}
            for literal in heavy:
                self.oracle.add_clause([literal])
            if heavy:
                self.garbage |= heavy
                self.filter_assumps()

        def finish_level(self) -> None:
            """Say the best world for the heavier clauses, before the lighter ones are looked at."""
            say("world", world=_values(self.oracle.get_model() or (), atoms))
            super().finish_level()

    formula = WCNF()
    formula.hard = [list(clause) for clause in hard]
    formula.soft = [list(clause) for clause, _ in soft]
    formula.wght = [weight for _, weight in soft]
    formula.nv = variables
    if not hardens:
        options["adapt"] = False
    if stratified:
        options |= {"nohard": not hardens}
    else:
        options.pop("blo", None)
    return Telling(formula, **options)


if __name__ == "__main__":
    main()
