"""Uniform draws of the paper's φ(M, N) = x1 & ... & xM & (y1 | ... | yN): lbm beside CMSGen.

Draws per second, each side as fast as it goes. lbm draws all worlds at once, of a theory that it has not met
before, its work on the theory included. CMSGen has no way to ask for many: it is asked for one model after
another, and its solver was given the clauses, and drew, before the clock starts. CPU seconds on one thread,
in one process, both sides in turn: the median of the repeats, and the least and greatest.

Then the draws until every model of φ(20, 10) was seen. Uniform draws need 1,023·(1 + 1/2 + ... + 1/1,023) on
average, about 7,700; who draws unevenly needs more.
"""

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable
from itertools import count

import numpy as np
import pycmsgen

import lbm
from lbm.knowledge.formula import atom, conjunction, disjunction

SIZES = ((20, 10), (30, 10))
NUMBERS = (10_000, 1_000_000)  # draws by lbm at a time
PEER = 100_000  # draws by CMSGen at a time
REPEATS = 7
BATCH = 12_000  # draws at a time until all models were seen

fresh = count()


def theory(m: int, n: int) -> lbm.Theory:
    """Return φ(M, N) over names that no theory had before, so that nothing is remembered."""
    mark = next(fresh)
    xs, ys = ([atom(f"{letter}{i}_{mark}") for i in range(number)] for letter, number in (("x", m), ("y", n)))
    return lbm.Theory([conjunction([*xs, disjunction(ys)])])


def cmsgen(m: int, n: int, seed: int) -> pycmsgen.Solver:
    solver = pycmsgen.Solver(seed=seed)
    solver.add_clauses([*([i] for i in range(1, m + 1)), list(range(m + 1, m + n + 1))])
    solver.solve()
    return solver


def rate(draws: int, work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return draws / (time.process_time() - start)


def ask(solver: pycmsgen.Solver, draws: int) -> None:
    """Draw and forget; is_satisfiable() looks for a model anew, and its answer is the cheapest to return."""
    draw, read = solver.is_satisfiable, solver.get_model
    for _ in range(draws):
        draw()
        read()


def speeds(m: int, n: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {f"lbm, {number:,} at once": [] for number in NUMBERS}
    found["CMSGen"] = []
    solver = cmsgen(m, n, seed=0)
    for turn in range(REPEATS + 1):
        for number in NUMBERS:
            given = theory(m, n)
            one = rate(number, lambda: lbm.sample(given, number, seed=turn).array)  # noqa: B023 - at once
            found[f"lbm, {number:,} at once"].append(one)
        found["CMSGen"].append(rate(PEER, lambda: ask(solver, PEER)))
    return {
        side: each[1:] for side, each in found.items()
    }  # the first turn imports what is loaded on first use


def draws_by_lbm(m: int, n: int, seed: int) -> int:
    """Return how many draws it took until every model was seen."""
    given, rng = theory(m, n), np.random.default_rng(seed)
    codes = np.zeros(0, np.int64)
    while True:
        worlds = lbm.sample(given, BATCH, seed=rng).array
        assert worlds[:, :m].all(), "a draw that is no model"
        codes = np.concatenate([codes, worlds[:, m:] @ (1 << np.arange(n))])
        _, first = np.unique(codes, return_index=True)
        if len(first) == (1 << n) - 1:
            return int(first.max()) + 1


def draws_by_cmsgen(m: int, n: int, seed: int) -> int:
    """Return how many draws it took until every model was seen."""
    solver, seen, number = cmsgen(m, n, seed), set(), 0
    while len(seen) < (1 << n) - 1:
        seen.add(solver.solve()[1])
        number += 1
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="runs until every model was seen")
    runs = parser.parse_args().runs
    print(f"draws per second of CPU time, in thousands: median (least to greatest) of {REPEATS} repeats")
    for m, n in SIZES:
        found = speeds(m, n)
        print(f"φ({m}, {n}), {(1 << n) - 1:,} models")
        for side, each in found.items():
            spread = f"({min(each) / 1000:,.0f} to {max(each) / 1000:,.0f})"
            print(f"  {side:<24}{statistics.median(each) / 1000:>10,.0f}  {spread}")
        for number in NUMBERS:
            gain = statistics.median(found[f"lbm, {number:,} at once"]) / statistics.median(found["CMSGen"])
            print(f"  ratio lbm / CMSGen, {number:>9,} at once  {gain:6.1f}   (at least 10)")

    m, n = SIZES[0]
    models = (1 << n) - 1
    expected = models * sum(1 / k for k in range(1, models + 1))
    print(f"draws until every model of φ({m}, {n}) was seen, mean of {runs} runs and its standard error")
    for side, draws in (("lbm", draws_by_lbm), ("CMSGen", draws_by_cmsgen)):
        each = [draws(m, n, seed) for seed in range(1, runs + 1)]
        error = statistics.stdev(each) / math.sqrt(runs)
        goal = "   (at most 9,000)" if side == "lbm" else ""
        print(f"  {side:<24}{statistics.mean(each):>10,.0f} ± {error:,.0f}{goal}")
    print(f"  {'uniform, by theory':<24}{expected:>10,.0f}")


if __name__ == "__main__":
    main()
