"""The first minute: what an empty cache of kernels costs, in processes of their own.

With an empty cache no question waits for a compiler: chains run in NumPy while a process beside compiles.
`lbm best --seconds 1` on weighted Max-3-SAT (100 atoms, 700 clauses, weights 1 to 10) is timed from the start
of the command to its end, and its cost compared with the one found with all kernels in the cache; `lbm ask`
and `lbm sample` likewise, on 100 atoms and 300 clauses of weights 1 to 4. `lbm warm` compiles everything, one
kernel after the other.

And `lbm.best` for a tenth of a second on a small weighted theory, from Python: with an empty cache, with a
full one, and, in that process, once more. `import lbm` itself loads no array and no kernel. All other times
on this page are with compiled kernels.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from measuring.problems import Problem, random_clauses
from measuring.results import Row, Run, Section, Table, quartiles, seconds, spread, whole

TITLE = "The first minute"
REPEATS = 3
SEEDS = 5
BUDGET = 0.1
COLUMNS = {"import": "import lbm", "first": "first call", "second": "second call"}
CACHES = {"empty": "empty cache", "filled": "filled cache"}
LIMITS = {"best": 2.5, "ask": 5.0, "sample": 5.0}  # seconds of a first command, at most


# --- from Python -------------------------------------------------------------------------------------


def child() -> None:
    """Print how long the import and two calls take."""
    made = [random_clauses(100, 500, 3, seed=seed, heaviest=10) for seed in (0, 1)]
    start = time.perf_counter()
    import lbm

    took = {"import": time.perf_counter() - start}
    for name, problem in zip(("first", "second"), made, strict=True):
        theory = problem.theory()
        start = time.perf_counter()
        lbm.best(theory, seconds=BUDGET, seed=0)
        took[name] = time.perf_counter() - start
    print(json.dumps(took))


def called(place: str) -> Row:
    found = ran([sys.executable, __file__, "--child"], place)
    return dict(json.loads(found.stdout.splitlines()[-1]))


# --- commands ----------------------------------------------------------------------------------------


def ran(command: list[str], place: str) -> subprocess.CompletedProcess[str]:
    """Run a command with its kernels at a place; what compiles beside ends with it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": place, "LBM_BACKGROUND": "0"}
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )


def lbm(place: str, *arguments: str) -> tuple[float, Any]:
    """Return how long a command takes, and what it says to programs."""
    start = time.perf_counter()
    found = ran([sys.executable, "-m", "lbm", *arguments], place)
    return time.perf_counter() - start, json.loads(found.stdout) if found.stdout else {}


@cache
def filled() -> tuple[str, float]:
    """Return a place that has all kernels, and how long they took to compile."""
    place = tempfile.mkdtemp()
    atexit.register(subprocess.run, ["rm", "-rf", place], check=False)
    return place, lbm(place, "warm", "--json")[0]


def written(problem: Problem, directory: str) -> str:
    """Return the path of a problem as a file."""
    lines = [f"p wcnf {problem.atoms} {len(problem)} {1 << 30}"]
    assert problem.weights is not None
    for row, weight in zip(problem.rows(), problem.weights.tolist(), strict=True):
        lines.append(" ".join(map(str, (weight, *row, 0))))
    path = Path(directory) / "problem.wcnf"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def measure(what: str, seed: int) -> Row:
    if what == "compile":
        return {"seconds": filled()[1]}
    full = filled()[0]
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as directory:
        if what == "call":
            return {"empty": called(empty), "filled": called(full)}
        size, heaviest = (700, 10) if what == "best" else (300, 4)
        path = written(random_clauses(100, size, 3, seed=seed, heaviest=heaviest), directory)
        arguments = {
            "best": ("best", path, "--seconds", "1"),
            "ask": ("ask", path, "x1"),
            "sample": ("sample", path, "-n", "100"),
        }[what]
        row: Row = {}
        for cache_name, place in (("empty", empty), ("filled", full)):
            took, said = lbm(place, *arguments, "--json", "--seed", str(seed))
            row[cache_name] = {"seconds": took, "lost": said.get("lost")}
        return row


# --- what is shown -----------------------------------------------------------------------------------


def section(rows: list[Row]) -> Section:
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(str(row["key"][0]), []).append(row)
    commands, wanted = [], []
    for what, limit in LIMITS.items():
        found = by.get(what, [])
        if not found:
            continue
        for cache_name, name in CACHES.items():
            lost = [row[cache_name]["lost"] for row in found]
            commands.append(
                [
                    f"`lbm {what}`",
                    name,
                    spread((row[cache_name]["seconds"] for row in found), seconds),
                    "" if None in lost else spread(lost, whole),
                ]
            )
        middle = quartiles(row["empty"]["seconds"] for row in found)[1]
        wanted.append((f"the first `lbm {what}` takes at most {limit:g} s", middle <= limit))
        if what == "best":
            costs = [quartiles(row[cache_name]["lost"] for row in found)[1] for cache_name in CACHES]
            wanted.append(("it loses no more than with compiled kernels", costs[0] <= costs[1]))
    calls = [
        [
            name,
            *(spread((row[cache_name][column] for row in by.get("call", [])), seconds) for column in COLUMNS),
        ]
        for cache_name, name in CACHES.items()
    ]
    whole_compile = [
        ["`lbm warm`", spread((row["seconds"] for row in by["compile"]), seconds)]
        for _ in by.get("compile", [])[:1]
    ]
    return Section(
        [
            Table("First commands", ["command", "process with", "time", "weight lost"], commands),
            Table("All kernels", ["command", "time"], whole_compile),
            Table(
                f"`lbm.best(seconds={BUDGET:g})`",
                ["process with", *COLUMNS.values()],
                calls if "call" in by else [],
            ),
        ],
        wanted,
    )


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    run = Run("start", __doc__)
    keys: list[tuple[str, int]] = [("compile", 0)]
    keys += [(what, seed) for what in LIMITS for seed in range(run.number(SEEDS))]
    keys += [("call", repeat) for repeat in range(run.number(REPEATS))]
    run.show(section(run.each(keys, measure)))


if __name__ == "__main__":
    main()
