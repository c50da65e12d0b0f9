"""What was won stays won: searches of another checkout and of this one, in turn, on random problems.

With `--against SRC` both sides search the same problems with the same seeds, each in a process of its own
that has loaded its kernels, now the one first and now the other: random weighted Max-3-SAT and Max-2-SAT,
spin glasses, cuts, and random 3-SAT near its threshold. The time of a search is that until it told a world of
the best cost that any of them found; a side that never did so took for ever. There are two rounds with seeds
of their own, and a loss counts where both rounds have it: the median time is past 1.1 times the other's and a
few milliseconds more, in seconds and in CPU seconds too, or fewer searches reach that cost.

Structured SAT, with or without another checkout: bounded model checking and colourings, public files of
LBM_INSTANCES, plans for blocks and colourings that are generated. The time to a verified model from
`lbm.best` in a process that has answered before is at most three times MiniSat's, as PySAT has it, in the
same process, and 0.1 s; medians over three repeats. Kernels are compiled before, in both checkouts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from measuring.problems import (
    Problem,
    blocks,
    colouring_clauses,
    cut,
    flat_graph,
    problem,
    random_clauses,
    satisfiable_clauses,
    spin_glass,
)
from measuring.results import ROOT, Row, Run, Section, Table, quartiles, seconds, times, whole

TITLE = "What was won stays won"
SEEDS = 5
ROUNDS = 2
LIMIT = 2.0  # seconds of a search
MODEL = 10.0  # likewise, for a model
ALLOWED = 1.1
SLACK = 0.003  # seconds below which nothing is a loss
REPEATS = 3

SEARCHED: dict[str, Callable[[int], Problem]] = {
    "Max-3-SAT, 100 atoms, 500 clauses": lambda seed: random_clauses(100, 500, 3, seed=seed, heaviest=10),
    "Max-3-SAT, 100 atoms, 1,000 clauses": lambda seed: random_clauses(100, 1_000, 3, seed=seed, heaviest=10),
    "Max-3-SAT, 1,000 atoms, 5,000 clauses": lambda seed: random_clauses(
        1_000, 5_000, 3, seed=seed, heaviest=10
    ),
    "Max-2-SAT, 100 atoms, 300 clauses": lambda seed: random_clauses(100, 300, 2, seed=seed, heaviest=10),
    "Max-2-SAT, 100 atoms, 700 clauses": lambda seed: random_clauses(100, 700, 2, seed=seed, heaviest=10),
    "Max-2-SAT, 100 atoms, 1,000 clauses": lambda seed: random_clauses(100, 1_000, 2, seed=seed, heaviest=10),
    "spin glass, 12 x 12": lambda seed: spin_glass(12, heaviest=1, seed=seed),
    "spin glass, 30 x 30, weights to 20": lambda seed: spin_glass(30, heaviest=20, seed=seed),
    "cut, 100 nodes, 500 edges": lambda seed: cut(100, 500, heaviest=1, seed=seed),
    "cut, 800 nodes, 4,000 edges": lambda seed: cut(800, 4_000, heaviest=10, seed=seed),
    "3-SAT, 200 atoms, 840 clauses": lambda seed: satisfiable_clauses(200, 840, 3, seed % 20 + 1)[-1][1],
}
MODELS: dict[str, Callable[[], Problem | None]] = {
    "bmc-2810": lambda: public("bmc-2810.cnf"),
    "flat200-1": lambda: public("flat200-1.cnf"),
    "blocks, 6 of them": lambda: blocks(6, seed=0),
    "blocks, 9 of them": lambda: blocks(9, seed=0),
    "blocks, 12 of them": lambda: blocks(12, seed=0),
    "colouring, 200 nodes": lambda: colouring_clauses(200, flat_graph(200, seed=0)),
    "colouring, 300 nodes": lambda: colouring_clauses(300, flat_graph(300, seed=0)),
}


def public(name: str) -> Problem | None:
    """Return the clauses of a public file; None: it is not there."""
    path = Path(os.environ.get("LBM_INSTANCES", "")) / "sat" / name
    if not path.exists():
        return None
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(("c", "%"))
    ]
    head = lines[0].split()
    rows: list[list[int]] = [[]]
    for number in map(int, " ".join(lines[1:]).split()):
        if number:
            rows[-1].append(number)
        else:
            rows.append([])
    return problem(int(head[2]), [row for row in rows if row])


# --- one side, in a process of its own ---------------------------------------------------------------


def child() -> None:
    """Search what is asked for, a line of JSON each."""
    import lbm
    from lbm.errors import NoAnswer

    def searched(given: Problem, seed: int, limit: float) -> Row:
        theory = given.theory()
        begun, cpu = time.perf_counter(), time.process_time()
        steps: list[tuple[float, float, int]] = []

        def note(lost: Any) -> None:
            steps.append((time.perf_counter() - begun, time.process_time() - cpu, int(lost)))

        try:
            found = lbm.best(theory, seconds=limit, seed=seed, on_better=lambda one: note(one.lost))
        except NoAnswer:
            return {"steps": steps}
        note(found.lost)
        if given.cost(list(found.world.values())) != int(found.lost):
            raise RuntimeError("a world that loses something else")
        return {"steps": steps}

    def minisat(given: Problem) -> float:
        from pysat.solvers import Solver

        rows = given.rows()
        begun = time.perf_counter()
        with Solver("minisat22", bootstrap_with=rows) as solver:
            solver.solve()
            solver.get_model()
            return time.perf_counter() - begun

    for width in (2, 3):  # so that nothing is loaded while a clock runs
        searched(random_clauses(60, 240, width, seed=99, heaviest=5), 0, 0.5)
    searched(random_clauses(60, 200, 3, seed=99), 0, 0.5)
    searched(blocks(3, seed=9), 0, 0.5)
    print(json.dumps({"lbm": lbm.__file__}), flush=True)
    met = set()
    for line in sys.stdin:
        what, name, seed, limit = json.loads(line)
        if what == "search":
            if name not in met:  # its size may need other kernels, and loading them takes seconds
                met.add(name)
                searched(SEARCHED[name](9_999), 0, 3.0)
            said: Any = searched(SEARCHED[name](seed), seed, limit)
        else:
            given = MODELS[name]()
            said = None if given is None else {**searched(given, seed, limit), "minisat": minisat(given)}
        print(json.dumps(said), flush=True)


class Side:
    """A checkout that searches, in a process of its own."""

    def __init__(self, src: Path) -> None:
        here = str(Path(__file__).resolve().parent)
        environment = {**os.environ, "PYTHONPATH": f"{src}{os.pathsep}{here}", "LBM_BACKGROUND": "0"}
        order = [sys.executable, "-m", "lbm", "warm"]
        subprocess.run(order, check=True, stdout=subprocess.DEVNULL, env=environment)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        found = Path(self._reply()["lbm"])
        if not found.is_relative_to(src):
            sys.exit(f"nothing_lost.py: expected lbm from {src}, got {found}")

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, *question: Any) -> Any:
        """Return what it says to a question."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self._reply()

    def _reply(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("nothing_lost.py: a side has ended")
        return json.loads(line)


# --- measuring ---------------------------------------------------------------------------------------


def measurer(sides: dict[str, Side], seeds: int) -> Callable[..., Row]:
    """Return what measures one class in one round, or one structured problem."""

    def measure(what: str, name: str, turn: int) -> Row:
        found: dict[str, list[Any]] = {side: [] for side in sides}
        each = list(sides.items())
        number = seeds if what == "search" else REPEATS
        for k in range(number):
            for side, asked in each if k % 2 else reversed(each):
                limit = LIMIT if what == "search" else MODEL
                found[side].append(asked.ask(what, name, 1_000 * turn + k, limit))
        return {"sides": found}

    return measure


def reached(searches: list[Row], least: list[int], clock: int) -> list[float | None]:
    """Return when each search had a world of the least cost; clock 0 is the wall's, 1 counts CPU time."""
    return [
        next((step[clock] for step in search["steps"] if step[2] <= cost), None)
        for search, cost in zip(searches, least, strict=True)
    ]


def least_of(sides: dict[str, list[Row]]) -> list[int]:
    """Return the least cost of each problem that any side found; a large one where nobody found any."""
    return [
        min((step[2] for search in searches for step in search["steps"]), default=1 << 62)
        for searches in zip(*sides.values(), strict=True)
    ]


def lost(sides: dict[str, list[Row]]) -> bool:
    """Return whether the first side lost against the second in one round."""
    least = least_of(sides)
    mine, other = sides.values()
    came = [sum(when is not None for when in reached(side, least, 0)) for side in (mine, other)]
    slower = []
    for clock in (0, 1):
        ours, theirs = (quartiles(reached(side, least, clock))[1] for side in (mine, other))
        slower.append(not math.isinf(theirs) and ours > ALLOWED * theirs + SLACK)
    return all(slower) or came[0] < came[1]


def section(rows: list[Row]) -> Section:
    shown, models, wanted = [], [], []
    for name in SEARCHED:
        rounds = [row["sides"] for row in rows if row["key"][:2] == ["search", name]]
        if not rounds:
            continue
        names = list(rounds[0])
        cells, ratios = [], []
        for sides in rounds:
            least = least_of(sides)
            middle = [quartiles(reached(side, least, 0))[1] for side in sides.values()]
            came = [sum(when is not None for when in reached(side, least, 0)) for side in sides.values()]
            cells += [f"{seconds(m)}, {c} of {len(least)}" for m, c in zip(middle, came, strict=True)]
            if len(names) == 2:
                ratios.append(times(middle[0] / middle[1]) if not math.isinf(middle[1]) else "")
        bad = len(names) == 2 and len(rounds) == ROUNDS and all(map(lost, rounds))
        shown.append((bad, [name, *cells, *(["; ".join(ratios)] if ratios else [])]))
        if len(names) == 2:
            wanted.append((f"{name}: no loss in both rounds", not bad))
    sides_named = list(rows[0]["sides"]) if rows else []
    columns = ["class", *(f"{side}, round {k + 1}" for k in range(ROUNDS) for side in sides_named)]
    for name in MODELS:
        for row in rows:
            if row["key"][:2] != ["model", name]:
                continue
            some = next(iter(row["sides"].values()))
            if None in some:
                continue
            ours = [one["steps"][-1][0] if one["steps"] else None for one in some]
            middle, theirs = quartiles(ours)[1], quartiles(one["minisat"] for one in some)[1]
            met = middle <= 3 * theirs + 0.1
            cells = [name, seconds(middle), seconds(theirs), times(middle / theirs), whole(len(some))]
            models.append((not met, cells))
            wanted.append((f"{name}: at most three times MiniSat's time and 0.1 s", met))
    ratio = ["this / the other"] if len(sides_named) == 2 else []
    return Section(
        [
            Table(
                "Time to the best cost known, and how many searches came to it",
                [*columns, *ratio],
                [cells for _, cells in sorted(shown, key=lambda each: not each[0])],
            ),
            Table(
                "Time to a model",
                ["problem", "lbm", "MiniSat", "lbm / MiniSat", "repeats"],
                [cells for _, cells in sorted(models, key=lambda each: not each[0])],
            ),
        ],
        wanted,
    )


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, metavar="SRC", help="the src of another checkout")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="problems of a class in a round")


def digest(src: Path) -> str:
    """Return a digest of a checkout."""
    found = hashlib.sha256()
    for path in sorted((src / "lbm").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    run = Run("nothing_lost", __doc__, options)
    checkouts = {"this checkout": ROOT / "src"}
    if run.options.against is not None:
        checkouts["the other"] = run.options.against.resolve()
        run.head["against"] = digest(checkouts["the other"])
    seeds = 3 if run.quick else run.options.seeds
    run.head["seeds"] = seeds
    keys = [("search", name, turn) for turn in range(ROUNDS) for name in SEARCHED]
    keys = [("model", name, 0) for name in MODELS] + (keys if len(checkouts) == 2 else [])
    with ExitStack() as stack:
        sides = {side: stack.enter_context(Side(src)) for side, src in checkouts.items()}
        run.show(section(run.each(keys, measurer(sides, seeds))))


if __name__ == "__main__":
    main()
