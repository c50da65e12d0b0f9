"""Solvers in a process of their own, which can be ended at any moment: MaxSAT by RC2, counts by Ganak.

Run as ``python -m lbm.reasoning.solvers.aside`` this file is the process: it reads one problem from standard
input, a line of JSON and then 32-bit literals with a 0 after each clause, and answers in lines of
JSON. Standard input stays open while the answer is wanted; when it closes, the process ends.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any, Final

SOLVER: Final = "m22"
"""The SAT solver below RC2. Cores are shrunk by many short calls, and at those MiniSat was the fastest."""

_TICK: Final = 0.1  # seconds between looks at the clock, so that Ctrl-C is heard on Windows too

Clause = Sequence[int]
Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Event:
    """What a solver has found out.

    Attributes
    ----------
    kind
        ``"bound"``: no world loses less than ``lost``. ``"world"``: a world that keeps the hard clauses.
        ``"next"``: a world, and none that was not ``"next"`` before loses less than ``lost``, as it does.
        ``"end"``: there is no further world, or none that was asked for. ``"failed"``: the process
        ended without an answer.
    lost
        Weight of soft clauses that are false; of a ``"world"`` it is not known.
    world
        The value of each atom, one character each, ``0`` or ``1``.
    all
        At the ``"end"``: whether every world that exists has been given.
    """

    kind: str
    lost: int = 0
    world: str = ""
    all: bool = False


class Answers:
    """The events of one process, as they come."""

    def __init__(self, process: subprocess.Popen[bytes], problem: Iterable[bytes]) -> None:
        self.process = process
        self._found: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._ended = False
        # Threads, so that neither a long problem nor a long silence keeps the clock from being heard.
        self._threads = [
            threading.Thread(target=_write, args=(process.stdin, problem), daemon=True),
            threading.Thread(target=_read, args=(process.stdout, self._found), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def next(self, deadline: float) -> Event | None:
        """Return the next event; None: there was none until ``deadline``, a time of time.monotonic().

        A deadline that has passed asks for what is there. After the last event comes it again.
        """
        found = self._next(deadline)
        return None if found is None else Event(**found)

    def _next(self, deadline: float) -> dict[str, Any] | None:
        while not self._ended:
            left = deadline - time.monotonic()
            try:
                found = self._found.get(timeout=min(_TICK, left)) if left > 0 else self._found.get_nowait()
            except queue.Empty:
                if left <= 0:
                    return None
                continue
            self._ended = found["kind"] in ("end", "failed", "count")
            self._last = found
            return found
        return self._last

    def close(self) -> None:
        """End the process, whatever it is doing, and leave nothing of it behind."""
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None  # both are pipes
            with suppress(OSError):  # what was not written is of no use to a process that has ended
                pipe.close()


@contextmanager
def maxsat(
    clauses: Iterable[Clause],
    weights: Sequence[int],
    variables: int,
    *,
    atoms: int | None = None,
    top: int = 1,
    every: bool = False,
) -> Iterator[Answers]:
    """Start RC2 on weighted clauses; what it finds comes as events until the ``with`` block is left.

    It yields a first world, bounds as they rise, a better world now and then, and the best one.

    Parameters
    ----------
    clauses
        Each a list of literals: ``+i`` is variable i, counted from 1, and ``-i`` its negation.
    weights
        One for each clause, whole numbers of any size from 1 up, or 0 for a hard clause.
    variables
        How many there are.
    atoms
        How many of them, the first ones, make a world; all of them if None. The others must be functions
        of these, or of no interest.
    top
        How many worlds are wanted, in order of the weight they lose.
    every
        Whether all the best ones are wanted instead.
    """
    header = {
        "task": "maxsat",
        "variables": variables,
        "atoms": variables if atoms is None else atoms,
        "weights": list(weights),
        "top": top,
        "every": every,
    }
    with _started(header, clauses) as answers:
        yield answers


def model_count(
    clauses: Iterable[Clause],
    variables: int,
    project: Sequence[int] | None = None,
    *,
    seconds: float | None,
) -> int | None:
    """Return how many worlds over all variables keep the clauses, counted by Ganak; None: no answer in time.

    With ``project``, how many worlds over these variables can be extended to one that does.
    """
    header = {"task": "count", "variables": variables, "project": None if project is None else list(project)}
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    with _started(header, clauses) as answers:
        found = answers._next(deadline)
    if found is None or found["kind"] != "count":
        return None
    return int(found["count"], 16)


def ganak_installed() -> bool:
    """Return whether models can be counted by Ganak; it is looked for, not loaded."""
    return find_spec("pyganak") is not None


# --- this side -------------------------------------------------------------------------------------


@contextmanager
def _started(header: dict[str, Any], clauses: Iterable[Clause]) -> Iterator[Answers]:
    # The process imports from where we do, in the same order. A group of its own hears no Ctrl-C.
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
    apart: dict[str, Any] = {"process_group": 0}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(
        [sys.executable or "", "-P", "-m", "lbm.reasoning.solvers.aside"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        **apart,
    )
    answers = None
    try:
        answers = Answers(process, _problem(header, clauses))
        yield answers
    finally:
        if answers is not None:
            answers.close()
        else:  # interrupted before a thread could start
            process.kill()
            process.communicate()


def _problem(header: dict[str, Any], clauses: Iterable[Clause]) -> Iterator[bytes]:
    """Yield the problem as the process reads it."""
    literals = array("i")
    for clause in clauses:
        literals.extend(clause)
        literals.append(0)
    yield json.dumps({**header, "literals": len(literals)}).encode() + b"\n"
    yield literals.tobytes()


def _write(pipe: IO[bytes], problem: Iterable[bytes]) -> None:
    with suppress(OSError):  # a process that has been ended reads no more
        for part in problem:
            pipe.write(part)
        pipe.flush()


def _read(pipe: IO[bytes], found: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in pipe:
        if line.endswith(b"\n"):  # the last words of a process that was ended may be half a line
            found.put(json.loads(line))
    found.put({"kind": "failed"})


# --- the other side --------------------------------------------------------------------------------


def main() -> None:
    """Read a problem from standard input, and answer it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Solvers may print: what they say must not stand between our lines.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    problem = sys.stdin.buffer

    def say(kind: str, **parts: Any) -> None:
        out.write(json.dumps({"kind": kind, **parts}).encode() + b"\n")

    header = json.loads(problem.readline())
    literals = array("i")
    literals.frombytes(problem.read(literals.itemsize * header["literals"]))
    clauses: list[list[int]] = []
    start = 0
    for end, literal in enumerate(literals):
        if not literal:
            clauses.append(literals[start:end].tolist())
            start = end + 1
    threading.Thread(target=_end_when_closed, args=(problem,), daemon=True).start()
    if header["task"] == "count":
        say("count", count=hex(_count(clauses, header["variables"], header["project"])))
    else:
        solve(clauses, header["weights"], header["variables"], header["atoms"], header, say)
    out.close()
    os._exit(0)  # without waiting for the thread that waits for our caller


def _end_when_closed(problem: IO[bytes]) -> None:
    problem.read()
    os._exit(1)


def _count(clauses: list[list[int]], variables: int, project: list[int] | None) -> int:
    if not all(clauses):
        return 0
    counter = import_module("pyganak").Counter()
    counter.new_vars(variables)
    counter.add_clauses(clauses)
    if project is not None:
        counter.set_sampling_set(project)
    return int(counter.count())


def solve(
    clauses: Sequence[list[int]],
    weights: Sequence[int],
    variables: int,
    atoms: int,
    wanted: dict[str, Any],
    say: Say,
) -> None:
    """Say what RC2 finds out about weighted clauses; ``wanted`` holds ``top`` and ``every``."""
    hard = [clause for clause, weight in zip(clauses, weights, strict=True) if not weight]
    soft = [(clause, weight) for clause, weight in zip(clauses, weights, strict=True) if weight and clause]
    # An empty soft clause is lost in every world, and RC2 takes none.
    base = sum(weight for clause, weight in zip(clauses, weights, strict=True) if weight and not clause)
    if not all(hard):
        say("end", all=True)
        return
    first = _first(hard, soft, variables, atoms)
    if first is None:
        say("end", all=True)
        return
    say("world", world=first)
    if base:
        say("bound", lost=base)
    solver = _rc2(hard, soft, variables, atoms, base, say, hardens=wanted["top"] == 1)
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


def _first(
    hard: list[list[int]], soft: list[tuple[list[int], int]], variables: int, atoms: int
) -> str | None:
    """Return some world that keeps the hard clauses, with literals of soft ones where there is a choice."""
    from pysat.solvers import Solver

    liked: dict[int, int] = {}
    for clause, weight in soft:
        for literal in clause:
            liked[abs(literal)] = liked.get(abs(literal), 0) + (weight if literal > 0 else -weight)
    with Solver(SOLVER, bootstrap_with=hard) as solver:
        solver.set_phases([i if liked.get(i, 0) > 0 else -i for i in range(1, variables + 1)])
        # An interrupt is never sent; to expect one lets other threads run.
        if not solver.solve_limited(expect_interrupt=True):
            return None
        return _values(solver.get_model(), atoms, liked)


def _values(model: Iterable[int], atoms: int, liked: dict[int, int] | None = None) -> str:
    """Return the values of the first variables; one that no clause knows is as liked, or false."""
    liked = liked or {}
    values = ["1" if liked.get(i, 0) > 0 else "0" for i in range(1, atoms + 1)]
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
    *,
    hardens: bool,
) -> Any:
    """Return RC2 on these clauses, which says bounds and worlds as it goes.

    With ``hardens`` it drops worlds that are proven worse than another one, which helps it to find all
    the best ones, but none after them.
    """
    from pysat.examples.rc2 import RC2, RC2Stratified
    from pysat.formula import WCNF

    class Telling(RC2Stratified if soft else RC2):  # type: ignore[misc]
        """RC2 that says every bound that it proves, and lets other threads run."""

        _cost = 0
        quiet = False

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
            return self.oracle.solve_limited(assumptions=list(assumptions), expect_interrupt=True)

        def finish_level(self) -> None:
            """Say the best world for the heavier clauses, before the lighter ones are looked at."""
            say("world", world=_values(self.oracle.get_model() or (), atoms))
            super().finish_level()

    formula = WCNF()
    formula.hard = [list(clause) for clause in hard]
    formula.soft = [list(clause) for clause, _ in soft]
    formula.wght = [weight for _, weight in soft]
    formula.nv = variables
    options: dict[str, Any] = {"exhaust": True, "minz": True}
    if soft:
        options |= {"adapt": hardens, "blo": "full", "nohard": not hardens}
    return Telling(formula, solver=SOLVER, **options)


if __name__ == "__main__":
    main()
