"""A million clauses over 250,000 atoms: the memory of lbm, and the time to its first improvement.

Random clauses of three literals with weights 1 to 10, in a .wcnf file of 21 MB, read and searched for twenty
seconds by a process of its own. Peak memory is that of the process itself and of the largest process that it
started, which it does to run RC2 beside its chains; both together are an upper bound of what was used at any
one time. Times are from the call of `lbm.best`; kernels were compiled before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from measuring.ours import warm
from measuring.problems import random_clauses
from measuring.results import Row, Run, Section, Table, seconds

TITLE = "A million clauses"
SIZES = ((25_000, 100_000), (250_000, 1_000_000))
LIMIT = 4.0  # GiB
FIRST = 10.0  # seconds to the first improvement
PATIENCE = 8  # times the budget, after which the process is ended


def child(file: str, limit: float) -> None:
    """Read a file, search it, and print what that took."""
    import resource  # not on Windows, where the page is to be written too

    import lbm
    from lbm.errors import NoAnswer

    warm([random_clauses(1_000, 4_000, 3, seed=1, heaviest=10).theory()])
    start = time.perf_counter()
    theory = lbm.Theory.load(file)
    loaded = time.perf_counter() - start
    steps: list[tuple[float, int]] = []

    def now() -> float:
        return time.perf_counter() - start

    start = time.perf_counter()
    with suppress(NoAnswer):
        lbm.best(
            theory, seconds=limit, seed=0, on_better=lambda found: steps.append((now(), int(found.lost)))
        )
    took = time.perf_counter() - start
    kept = steps if len(steps) < 20 else [*steps[:10], *steps[-10:]]
    used = {
        name: resource.getrusage(who).ru_maxrss / (1 if sys.platform == "darwin" else 2**-10) / 2**30
        for name, who in (("own", resource.RUSAGE_SELF), ("child", resource.RUSAGE_CHILDREN))
    }
    print(json.dumps({"loaded": loaded, "took": took, "steps": kept, "number": len(steps), "memory": used}))


def measurer(quick: bool) -> Any:
    from lbm.knowledge.wire import save_theory

    limit = 5.0 if quick else 20.0

    def measure(atoms: int, clauses: int) -> Row:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "large.wcnf"
            save_theory(random_clauses(atoms, clauses, 3, seed=0, heaviest=10).theory(), file)
            order = [sys.executable, __file__, "--child", str(file), str(limit)]
            try:
                done = subprocess.run(
                    order, stdout=subprocess.PIPE, text=True, timeout=PATIENCE * limit, check=True
                )
            except subprocess.TimeoutExpired:
                return {"budget": limit, "found": None}
        return {"budget": limit, "found": json.loads(done.stdout.splitlines()[-1])}

    return measure


def section(rows: list[Row]) -> Section:
    shown, wanted = [], []
    for row in rows:
        atoms, clauses = row["key"]
        name, found = f"{atoms:,} atoms, {clauses:,} clauses", row["found"]
        if found is None:
            shown.append([name, *["not ended in time"] * 8])
            wanted.append((f"{name}: ends within {PATIENCE} times its budget", False))
            continue
        own, child = found["memory"]["own"], found["memory"]["child"]
        steps = found["steps"]
        shown.append(
            [
                name,
                seconds(found["loaded"]),
                seconds(found["took"]),
                f"{own:.2f} GiB",
                f"{child:.2f} GiB",
                f"{own + child:.2f} GiB",
                seconds(steps[0][0]) if steps else "never",
                seconds(steps[1][0]) if len(steps) > 1 else "never",
                f"{steps[0][1]:,} to {steps[-1][1]:,}" if steps else "none",
            ]
        )
        if clauses == max(SIZES)[1]:
            wanted.append((f"{name}: below {LIMIT:g} GiB, helpers included", own + child < LIMIT))
            soon = len(steps) > 1 and steps[1][0] <= FIRST
            wanted.append((f"{name}: the first improvement within {FIRST:g} s", soon))
    columns = "theory,reading,search,own memory,helper's,together,first world,first improvement,cost".split(
        ","
    )
    return Section([Table("Memory and time", columns, shown)], wanted)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], float(sys.argv[3]))
        return
    run = Run("memory", __doc__)
    run.show(section(run.each(SIZES[:1] if run.quick else SIZES, measurer(run.quick))))


if __name__ == "__main__":
    main()
