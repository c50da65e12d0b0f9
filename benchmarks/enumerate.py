"""Every model of the paper's φ(M, N) = x1 & ... & xM & (y1 | ... | yN): lbm beside CaDiCaL and dd.

Each side gets the formula in its own form and is timed from there to the last model: lbm from a theory that
it has not met before, CaDiCaL from clauses, dd from the operators of its manager. lbm gives all models as a
matrix; the peers' models are made and let go, which is fastest for them. Named worlds, such as dd gives, are
a second row of lbm, let go too. CaDiCaL is PySAT's cadical195; cadical153 took 14 s, not 0.6, for φ(30, 16).

CPU seconds on one thread, in one process, all sides in turn: the median of the repeats, least and greatest.
"""

import argparse
import gc
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from dd import autoref
from pysat.solvers import Solver

import lbm
from lbm.knowledge.formula import atom, conjunction, disjunction

# M, N, repeats, and how many times faster than the faster peer lbm should be
SIZES = ((20, 10, 21, 1), (30, 16, 7, 20), (30, 20, 3, 20))

fresh = count()


def theory(m: int, n: int) -> lbm.Theory:
    """Return φ(M, N) over names that no theory had before, so that nothing is remembered."""
    mark = next(fresh)
    xs, ys = ([atom(f"{letter}{i}_{mark}") for i in range(number)] for letter, number in (("x", m), ("y", n)))
    return lbm.Theory([conjunction([*xs, disjunction(ys)])])


def with_cadical(m: int, n: int) -> Iterator[Any]:
    clauses = [*([i] for i in range(1, m + 1)), list(range(m + 1, m + n + 1))]
    with Solver("cadical195", bootstrap_with=clauses) as solver:
        yield from solver.enum_models()


def with_dd(m: int, n: int) -> Iterator[Any]:
    manager = autoref.BDD()
    names = [*(f"x{i}" for i in range(m)), *(f"y{i}" for i in range(n))]
    manager.declare(*names)
    found = manager.false
    for name in reversed(names[m:]):
        found |= manager.var(name)
    for name in reversed(names[:m]):
        found &= manager.var(name)
    yield from manager.pick_iter(found, care_vars=names)


def length(models: Iterable[Any]) -> int:
    """Return how many there are, keeping none but the last."""
    last = deque(enumerate(models, start=1), maxlen=1)
    return last[0][0] if last else 0


def timed(work: Callable[[], int], expected: int) -> float:
    gc.collect()
    start = time.process_time()
    found = work()
    took = time.process_time() - start
    assert found == expected, f"{found} models instead of {expected}"
    return took


def measure(m: int, n: int, repeats: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {"lbm": [], "lbm, named": [], "CaDiCaL": [], "dd.autoref": []}
    for _ in range(repeats):
        given, again = theory(m, n), theory(m, n)
        sides = {
            "lbm": lambda: len(lbm.models(given).array),  # noqa: B023 - called at once
            "lbm, named": lambda: length(lbm.models(again)),  # noqa: B023
            "CaDiCaL": lambda: length(with_cadical(m, n)),
            "dd.autoref": lambda: length(with_dd(m, n)),
        }
        for side, work in sides.items():
            took[side].append(timed(work, (1 << n) - 1))
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest, which takes a minute")
    sizes = SIZES[:2] if parser.parse_args().quick else SIZES
    measure(3, 4, 1)  # imports what is loaded on first use
    print("all models; CPU ms: median (least to greatest); times: the median over that of lbm's matrix")
    for m, n, repeats, target in sizes:
        took = measure(m, n, repeats)
        middle = {side: statistics.median(each) for side, each in took.items()}
        print(f"φ({m}, {n}), {(1 << n) - 1:,} models, {repeats} repeats")
        for side, each in took.items():
            spread = f"({1000 * min(each):,.2f} to {1000 * max(each):,.2f})"
            ratio = middle[side] / middle["lbm"]
            print(f"  {side:<12}{1000 * middle[side]:>12,.2f}  {spread:<26}{ratio:8.1f} times")
        gain = min(middle["CaDiCaL"], middle["dd.autoref"]) / middle["lbm"]
        print(f"  faster peer / lbm {gain:6.1f}   (at least {target})")


if __name__ == "__main__":
    main()
