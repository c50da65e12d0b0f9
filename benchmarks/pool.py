"""The paper's Figure 4: samples until every model of φ(M, N) was seen, by the pool scheme of its authors.

φ(M, N) = x1 & ... & xM & (y1 | ... | yN) at c = 5 and ε = 0.5; ERRATA 9 describes the scheme. Every run
has a seed of its own, made of (M, N, run). Finished runs are appended to a CSV file, and the next start goes
on from there.

    python benchmarks/pool.py [--out FILE.csv] [--cells M,N ...] [--runs R]
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from lbm.knowledge.formula import Formula, atom, conjunction, disjunction
from lbm.machine.translate import translate
from lbm.trials.searches.pool import cover

CELLS = [*((m, n) for m in (20, 25) for n in range(3, 11)), (30, 5), (30, 10)]
FIELDS = ("M", "N", "run", "samples", "rounds", "found", "models", "accepted", "correct", "seconds")
WORKERS = 2


def phi(m: int, n: int) -> Formula:
    """Return the paper's class of formulae."""
    some = disjunction(atom(f"y{j}") for j in range(1, n + 1))
    return conjunction([*(atom(f"x{i}") for i in range(1, m + 1)), some])


def one_run(m: int, n: int, run: int) -> dict[str, float]:
    """Return one row of the table of runs."""
    formula = phi(m, n)
    machine = translate(formula, epsilon=0.5)
    # SFC64 makes words about twice as fast as the default generator, and here they are most of the work.
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence((m, n, run))))
    start = time.perf_counter()
    done = cover(machine, formula, rng, confidence=5.0)
    seconds = round(time.perf_counter() - start, 4)
    values = (m, n, run, done.samples, done.rounds, len(done.found), done.models, done.accepted, done.correct)
    return dict(zip(FIELDS, (*values, seconds), strict=True))


def read(path: Path) -> list[dict[str, float]]:
    """Return the finished runs; a last line that an interrupt cut short is taken off the file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(whole.splitlines())]


def print_table(rows: list[dict[str, float]], cells: list[tuple[int, int]]) -> None:
    groups = defaultdict(list)
    for row in rows:
        groups[int(row["M"]), int(row["N"])].append(row)
    print(" M   N  runs   mean samples           s.d.         median  coverage  accuracy   s/run")
    for m, n in cells:
        group = groups[m, n]
        if not group:
            continue
        samples = [row["samples"] for row in group]
        spread = statistics.stdev(samples) if len(samples) > 1 else float("nan")
        coverage = statistics.mean(row["found"] / row["models"] for row in group)
        accuracy = sum(row["correct"] for row in group) / sum(row["accepted"] for row in group)
        seconds = statistics.mean(row["seconds"] for row in group)
        print(
            f"{m:2d}  {n:2d}  {len(group):4d}  {statistics.mean(samples):13,.0f}  {spread:13,.0f}  "
            f"{statistics.median(samples):13,.0f}  {coverage:8.2%}  {accuracy:8.2%}  {seconds:6.2f}"
        )


def cell(text: str) -> tuple[int, int]:
    m, n = text.split(",")
    return int(m), int(n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("pool.csv"))
    parser.add_argument("--cells", type=cell, nargs="+", metavar="M,N", default=CELLS)
    parser.add_argument("--runs", type=int, help="runs of each cell; by default 100, and 3 from M = 30 on")
    options = parser.parse_args()

    rows = read(options.out)
    done = {(row["M"], row["N"], row["run"]) for row in rows}
    runs = {(m, n): options.runs or (3 if m >= 30 else 100) for m, n in options.cells}
    wanted = [(m, n, run) for (m, n), number in runs.items() for run in range(number)]
    missing = [key for key in wanted if key not in done]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} runs were finished before; {options.out}")
    fresh = not rows and (not options.out.exists() or not options.out.stat().st_size)
    with options.out.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        with ProcessPoolExecutor(WORKERS) as workers:
            waiting = [workers.submit(one_run, *key) for key in missing]
            try:
                for finished in as_completed(waiting):
                    rows.append(finished.result())
                    writer.writerow(rows[-1])
                    file.flush()
            except KeyboardInterrupt:
                workers.shutdown(cancel_futures=True)
                print("interrupted; the same command goes on from here")
    shown = [row for row in rows if row["run"] < runs.get((int(row["M"]), int(row["N"])), 0)]
    print_table(shown, list(runs))


if __name__ == "__main__":
    main()
