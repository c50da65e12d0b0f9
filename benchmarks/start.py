"""The first call: how long kernels take to compile, once, and to load in every process after that.

`lbm.best` for a tenth of a second on a small weighted theory, in processes of their own: with an empty cache,
which compiles what is needed and stores it; with the cache that it left; and, in that process, once more.
`import lbm` itself loads no array and no kernel. All other times on this page are without compilation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from measuring.problems import random_clauses
from measuring.results import Row, Run, Section, Table, seconds, spread

TITLE = "Compilation"
REPEATS = 3
BUDGET = 0.1
COLUMNS = {"import": "import lbm", "first": "first call", "second": "second call"}
CACHES = {"empty": "empty cache", "filled": "filled cache"}


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


def measure(repeat: int) -> Row:
    del repeat
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        for cache in CACHES:
            done = subprocess.run(
                [sys.executable, __file__, "--child"],
                env={**os.environ, "NUMBA_CACHE_DIR": directory},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            found[cache] = json.loads(done.stdout.splitlines()[-1])
    return found


def section(rows: list[Row]) -> Section:
    shown = [
        [name, *(spread((row[cache][column] for row in rows), seconds) for column in COLUMNS)]
        for cache, name in CACHES.items()
    ]
    return Section([Table(f"`lbm.best(seconds={BUDGET:g})`", ["process with", *COLUMNS.values()], shown)])


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    run = Run("start", __doc__)
    run.show(section(run.each([(repeat,) for repeat in range(run.number(REPEATS))], measure)))


if __name__ == "__main__":
    main()
