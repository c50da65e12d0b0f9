"""Sides that start at the same line: each a process of its own, timed from its start, its worlds judged here.

What a side found by when is read from what it prints: a line counts from the moment it arrived. Worlds are
judged by ``demands``, which shares no code with any side.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from measuring.demands import Demands, Valued

ASIDE = Path(__file__).with_name("aside.py")
GRACE = 3.0  # seconds past its limit until ours is told to end, and once more until it is ended
SOON = 0.3  # the same for peers, some of which know no limit or count CPU time; what is later does not count


@dataclass(frozen=True)
class Course:
    """What a side found: for every better world the seconds from its start, and the weight lost.

    ``proven`` is when it said that the last one is best, None if never; ``seconds`` and ``cpu`` are of the
    whole process; ``told`` what else it said of itself.
    """

    steps: tuple[tuple[float, int], ...]
    proven: float | None
    seconds: float
    cpu: float
    told: Mapping[str, str]

    def cost_at(self, seconds: float) -> int | None:
        """Return what the best world known after so many seconds loses; None: there was none."""
        return min((cost for when, cost in self.steps if when <= seconds), default=None)

    def row(self) -> dict[str, Any]:
        """Return what is kept of it."""
        steps = [[round(when, 4), cost] for when, cost in self.steps]
        return {
            "steps": steps,
            "proven": self.proven,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "told": dict(self.told),
        }


def of_row(row: Mapping[str, Any]) -> Course:
    """Return a course that was kept."""
    steps = tuple((when, cost) for when, cost in row["steps"])
    return Course(steps, row["proven"], row["seconds"], row["cpu"], row["told"])


def best_of(courses: Iterable[Course]) -> Course:
    """Return the best of several at every moment, as if all had run, each on its own."""
    some = list(courses)
    steps, least = [], None
    for when, cost in sorted(step for course in some for step in course.steps):
        if least is None or cost < least:
            steps.append((when, cost))
            least = cost
    proofs = [course.proven for course in some if course.proven is not None]
    return Course(
        tuple(steps),
        min(proofs, default=None),
        max((course.seconds for course in some), default=0.0),
        sum(course.cpu for course in some),
        {},
    )


# --- processes ---------------------------------------------------------------------------------------


def lines(
    order: Sequence[str], limit: float, grace: float, **environment: str
) -> tuple[list[tuple[float, str]], float, float]:
    """Return what a process prints and when, then its seconds and its CPU seconds.

    It is told to end at its limit and some grace, and ended after the same time again if it does not.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        order,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    said: list[tuple[float, str]] = []

    def read() -> None:
        assert process.stdout is not None
        said.extend((time.perf_counter() - start, line.rstrip("\n")) for line in process.stdout)

    def end(number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    clocks = [threading.Timer(limit + grace, process.terminate), threading.Timer(limit + 2 * grace, end, [9])]
    for clock in clocks:
        clock.start()
    _adopt()
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    for clock in clocks:
        clock.cancel()
    end(signal.SIGKILL)  # helpers that were left behind
    with suppress(ChildProcessError):
        while True:
            usage = os.wait4(-process.pid, 0)[2]
            cpu += usage.ru_utime + usage.ru_stime
    reader.join()
    assert process.stdout is not None
    process.stdout.close()
    return said, took, cpu


@cache
def _adopt() -> None:
    """Become the parent of helpers whose own parent has ended, so that their CPU time is known (Linux)."""
    if sys.platform == "linux":
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def judged(
    worlds: Iterable[tuple[float, Sequence[bool], bool]], given: Demands
) -> tuple[list[tuple[float, int]], float | None]:
    """Return the better worlds among those told, and when one was said to be best."""
    steps: list[tuple[float, int]] = []
    proven = None
    for when, world, best in worlds:
        cost = given.cost(world)
        if cost is not None and (not steps or cost < steps[-1][1]):
            steps.append((when, cost))
        if best and cost is not None and cost <= steps[-1][1]:
            proven = when
    return steps, proven


# --- peers -------------------------------------------------------------------------------------------


def peer(solver: str, file: Path, given: Demands, limit: float) -> Course:
    """Return the course of a solver of aside.py that tells worlds as JSON."""
    said, took, cpu = lines([sys.executable, str(ASIDE), solver, str(file), str(limit)], limit, SOON)
    worlds = []
    for when, line in said:
        if line.startswith("{"):
            found = json.loads(line)
            worlds.append((when, [one == "1" for one in found["world"]], found["proven"]))
    steps, proven = judged(worlds, given)
    return Course(tuple(steps), proven, took, cpu, {})


def toulbar2(solver: str, file: Path, form: Valued, given: Demands, limit: float) -> Course:
    """Return the course of toulbar2, which prints every solution after a line with its cost."""
    said, took, cpu = lines([sys.executable, str(ASIDE), solver, str(file), str(limit)], limit, SOON)
    worlds: list[tuple[float, Sequence[bool], bool]] = []
    world: Sequence[bool] | None = None
    found = False
    for when, line in said:
        words = line.split()
        if found and words and all(word.lstrip("-").isdigit() for word in words):
            world = form.world([int(word) for word in words])
            worlds.append((when, world, False))
        found = line.startswith("New solution:")
        if line.startswith("Optimum:") and world is not None:
            worlds.append((when, world, True))
    steps, proven = judged(worlds, given)
    return Course(tuple(steps), proven, took, cpu, {})


def peers(
    file: Path, clauses: Path, given: Demands, form: Valued | None, place: Path, limit: float
) -> dict[str, Course]:
    """Return the courses of all peers, one after the other.

    ``file`` is what CP-SAT reads; ``clauses`` the same as a .wcnf file, for RC2, whose first atoms are those
    of the file; ``form`` is for toulbar2, which has no turn where there is none.
    """
    found = {
        "RC2, plain": peer("rc2-plain", clauses, given, limit),
        "RC2, strata": peer("rc2-strata", clauses, given, limit),
        "CP-SAT": peer("cp-sat-groups", file, given, limit),
    }
    if form is not None:
        network = place / f"{file.stem}.wcsp"
        network.write_text(form.text, encoding="utf-8")
        found["toulbar2"] = toulbar2("toulbar2-told", network, form, given, limit)
        found["toulbar2, VNS"] = toulbar2("toulbar2-vns-told", network, form, given, limit)
    return found


# --- ours --------------------------------------------------------------------------------------------


def ours(
    file: Path,
    given: Demands,
    limit: float,
    *,
    seed: int,
    more: Sequence[str] = (),
    source: Path | None = None,
) -> Course:
    """Return the course of ``lbm best --dimacs``, as its ``o`` lines tell it; its last world is judged."""
    order = [sys.executable, "-m", "lbm", "best", str(file), "--dimacs", "--seconds", f"{limit:g}"]
    order += ["--seed", str(seed), *more]
    environment = {} if source is None else {"PYTHONPATH": str(source)}
    said, took, cpu = lines(order, limit, GRACE, LBM_BACKGROUND="0", **environment)
    steps = tuple((when, int(line.split()[1])) for when, line in said if line.startswith("o "))
    status = next(((when, line) for when, line in said if line.startswith("s ")), (0.0, "s nothing"))
    values: dict[int, bool] = {}
    for _, line in said:
        if line.startswith("v "):
            values |= {abs(int(word)): int(word) > 0 for word in line.split()[1:]}
    told = {"status": status[1][2:]}
    for _, line in said:
        for key in ("found by", "proved by"):
            if line.startswith(f"c {key} "):
                told[key] = line.removeprefix(f"c {key} ").strip()
    course = Course(steps, None, took, cpu, told)
    if not values:
        return course
    world = [values.get(i, False) for i in range(1, given.atoms + 1)]
    cost = given.cost(world)
    if not steps or cost != steps[-1][1]:
        said_ = steps[-1][1] if steps else "nothing"
        return replace(course, told={**told, "wrong": f"says it loses {said_}, loses {cost}"})
    all_kept = status[1] == "s SATISFIABLE" and cost == 0
    return replace(course, proven=status[0]) if status[1] == "s OPTIMUM FOUND" or all_kept else course


class Busy:
    """Two processes that only count, for what a side is worth on a machine that has other work."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Busy:
        order = [sys.executable, "-c", "while True: pass"]
        self.processes = [subprocess.Popen(order) for _ in range(self.number)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
