"""The peers, each as it is best used: annealers on quadratic functions, and exact solvers with a budget."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from measuring.problems import Bools, Problem, quadratic

if TYPE_CHECKING:
    import lbm

Judge = Callable[[Sequence[bool]], int | None]

LOAD = 120.0  # seconds for a solver to start and read its file
GRACE = 10.0  # seconds more for one that watches its own clock, which may be one of CPU time
LOOKED_AT = 12  # of the worlds a solver gave out, the last ones: they are its best

SCHEDULES: tuple[Mapping[str, Any], ...] = (
    {"num_sweeps": 1_000},  # its own default temperatures
    {"num_sweeps": 10_000},
    {"num_sweeps": 1_000, "beta_range": (0.1, 0.6)},
    {"num_sweeps": 10_000, "beta_range": (0.1, 0.6)},
    {"num_sweeps": 3_000, "beta_range": (0.2, 1.0)},
    {"num_sweeps": 1_000, "beta_range": (0.1, 0.6), "randomize_order": True},
)
"""What simulated annealing is tried with; others, longer and shorter ones among them, were no better."""


@dataclass(frozen=True)
class Outcome:
    """What a peer found: the least weight lost, None if no world; when, in seconds; whether proven least."""

    cost: int | None
    seconds: float | None
    proven: bool = False

    def row(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {"cost": self.cost, "seconds": self.seconds, "proven": self.proven}


# --- annealers ---------------------------------------------------------------------------------------


class Annealers:
    """The samplers of dwave-samplers on one problem, whose quadratic function is made beforehand."""

    def __init__(self, problem: Problem) -> None:
        import dimod

        self.problem = problem
        linear, products, constant = quadratic(problem)
        self.model = dimod.BinaryQuadraticModel(linear, products, constant, "BINARY")

    def worlds(self, samples: Any) -> Bools:
        """Return what samples say of the atoms, shape (reads, atoms); other variables are left out."""
        columns = [samples.variables.index(i) for i in range(1, self.problem.atoms + 1)]
        return np.asarray(samples.record.sample[:, columns], dtype=bool)

    def anneal(self, limit: float, schedule: Mapping[str, Any], *, seed: int) -> Outcome:
        """Return the best of all the reads that fit into ``limit`` seconds; the time is that of its best."""
        from dwave.samplers import SimulatedAnnealingSampler

        sampler: Any = SimulatedAnnealingSampler()  # type: ignore[no-untyped-call, unused-ignore]
        best, when, number = None, None, 0
        start = time.perf_counter()
        while time.perf_counter() - start < limit:
            samples = sampler.sample(self.model, num_reads=1, seed=1000 * seed + number, **schedule)
            took = time.perf_counter() - start
            cost = int(self.problem.costs(self.worlds(samples)).min())
            if best is None or cost < best:
                best, when = cost, took
            number += 1
        return Outcome(best, when)

    def time_to(
        self, sampler: Any, cost: int, *, limit: float, seed: int, **schedule: Any
    ) -> tuple[float, float] | None:
        """Return the seconds of the first call that reaches ``cost``, and of it and all calls before.

        Reads are doubled from one call to the next. None: the cost was not reached in ``limit`` seconds.
        """
        reads, start = 1, time.perf_counter()
        while time.perf_counter() - start < limit:
            begun = time.perf_counter()
            samples = sampler.sample(self.model, num_reads=reads, seed=seed + reads, **schedule)
            best = samples.record.energy.min()
            now = time.perf_counter()
            if round(best) <= cost and int(self.problem.costs(self.worlds(samples)).min()) <= cost:
                return now - begun, now - start
            reads *= 2
        return None


def best_schedule(problem: Problem, limit: float) -> Mapping[str, Any]:
    """Return the schedule of annealing that is best on a problem, each tried for ``limit`` seconds."""
    annealers = Annealers(problem)
    found = [(annealers.anneal(limit, schedule, seed=7), schedule) for schedule in SCHEDULES]
    return min(found, key=lambda each: (each[0].cost, each[0].seconds))[1]


# --- exact solvers -----------------------------------------------------------------------------------


def solve(solver: str, theory: lbm.Theory, judge: Judge, limit: float, *, native: bool = False) -> Outcome:
    """Return what an exact solver finds in ``limit`` seconds, from the moment it has read the problem.

    ``judge`` gives the weight that a world loses, its values in the order of the atoms; None: it is no model.

    The solvers are those of aside.py, each in a process of its own, which is ended when time is over. They
    are given clauses, with definitions where a formula is none; with ``native``, the formulae themselves.
    """
    from lbm.knowledge.wire import save_theory

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / ("problem.lbm" if native else "problem.wcnf")
        save_theory(theory, file, format=None if native else "wcnf-old")
        lines = _lines(solver, file, limit)
    best: Outcome = Outcome(None, None)
    for when, line in lines[-LOOKED_AT:]:
        said = json.loads(line)
        cost = judge([value == "1" for value in said["world"][: len(theory.atoms)]])
        if cost is not None and (
            best.cost is None or cost < best.cost or (cost == best.cost and said["proven"])
        ):
            best = Outcome(cost, when if best.cost != cost else best.seconds, said["proven"])
    return best


def exact_marginals(problem: Problem, limit: float) -> dict[int, float]:
    """Return the marginals of the first atoms over the models, as many as Ganak counts in time."""
    from lbm.knowledge.wire import save_theory

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "problem.cnf"
        save_theory(problem.theory(), file)
        said = [json.loads(line) for _, line in _lines("ganak", file, limit) if line.startswith("{")]
    counts = {one["atom"]: int(one["count"]) for one in said}
    total = counts.pop(0, 0)
    return {atom: count / total for atom, count in counts.items()}


def _lines(solver: str, file: Path, limit: float) -> list[tuple[float, str]]:
    """Return what the process says within its time, and when."""
    child = Path(__file__).with_name("aside.py")
    process = subprocess.Popen(
        [sys.executable, str(child), solver, str(file), str(limit)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    ready, said = threading.Event(), list[tuple[float, str]]()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append((time.perf_counter(), line))
            ready.set()
        ready.set()  # it has ended without a word

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    own_clock = solver not in ("rc2", "ganak")
    try:
        ready.wait(LOAD)
        process.wait(limit + (GRACE if own_clock else 0.0))
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
        reader.join()
    if not said or said[0][1] != "ready\n":
        raise RuntimeError(
            f"{solver} did not get ready within {LOAD:g} s, or failed: run aside.py by hand to see why"
        )
    start = said[0][0]
    return [(when - start, line) for when, line in said[1:] if line.endswith("\n")]


def wins(ours: Iterable[int | None], theirs: Iterable[int | None]) -> Sequence[int]:
    """Return in how many instances we are better, equal and worse; no world at all is worst."""
    found = [0, 0, 0]
    for mine, other in zip(ours, theirs, strict=True):
        a, b = (float("inf") if cost is None else cost for cost in (mine, other))
        found[0 if a < b else 1 if a == b else 2] += 1
    return found
