"""Bottom clauses of the four Alzheimer's sets at depth 3: the time of all of them, beside Aleph's.

One process on each side, and processor time. Ours is that of `saturate_all` on a problem that was read and
never saturated; Aleph's is that of saturating every example under SWI-Prolog. Starting and reading are left
out on both sides. The clauses are compared, literal by literal. Each set is measured three times, both sides
in turn, and its time is the median. The sets are those of LBM_DATA; Aleph is SWI-Prolog with the package
python-rdm==0.3.7.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for tests.reference

from measuring.results import Row, Run, Section, Table, ratio, seconds, times

TITLE = "Bottom clauses"
SETS = ["alz_amine", "alz_acetyl", "alz_memory", "alz_toxic"]
DEPTH = 3
REPEATS = 3
WANTED = 5.0  # how many times as fast as Aleph


def measure(name: str) -> Row:
    from lbm.relations.problem import load_problem
    from lbm.relations.saturate import saturate_all
    from tests.reference.aleph import aleph_bottom_clauses

    place = Path(os.environ["LBM_DATA"]) / name
    ours, theirs = [], []
    for _ in range(REPEATS):
        problem = load_problem(place)
        start = time.process_time()
        clauses = saturate_all(problem, depth=DEPTH)
        ours.append(time.process_time() - start)
        aleph = aleph_bottom_clauses(problem, depth=DEPTH)
        theirs.append(aleph.seconds)
        assert [clause.body for clause in clauses] == [clause.body for clause in aleph.clauses], (
            "other clauses"
        )
    return {
        "examples": len(clauses),
        "literals": sum(len(clause.body) for clause in clauses),
        "lbm": statistics.median(ours),
        "aleph": statistics.median(theirs),
    }


def section(rows: list[Row]) -> Section:
    shown, wanted = [], []
    for row in rows:
        faster = ratio(row["aleph"], row["lbm"]) or 0.0
        (name,) = row["key"]
        counts = [f"{row['examples']:,}", f"{row['literals']:,}"]
        shown.append([name, *counts, seconds(row["lbm"]), seconds(row["aleph"]), times(faster)])
        wanted.append((f"{name}: in at most 1/{WANTED:g} of Aleph's time", faster >= WANTED))
    columns = ["set", "examples", "literals", "lbm", "Aleph", "Aleph / lbm"]
    return Section([Table(f"All bottom clauses at depth {DEPTH}, one process", columns, shown)], wanted)


def main() -> None:
    run = Run("saturation", __doc__)
    if "LBM_DATA" not in os.environ:
        sys.exit("expected LBM_DATA to name the directory of the data sets, found nothing")
    run.show(section(run.each([(name,) for name in SETS[: run.number(len(SETS))]], measure)))


if __name__ == "__main__":
    main()
