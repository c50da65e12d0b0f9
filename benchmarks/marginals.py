"""Counts and all marginals of random 3-CNF, 50 atoms and 150 clauses: lbm beside Ganak and PySDD.

lbm has a function for the count and one for all marginals. Ganak counts; its marginals are one more count for
each atom, with that atom as a unit clause, over the count of all. These take equally long, so that only every
tenth atom is counted and the time of all is reckoned from theirs (--every counts them all). PySDD compiles
the clauses as its `from_cnf_string` does, and the count and marginals follow in one pass; it runs in its own
process, which is ended after 25 seconds. Where two sides have an answer, the answers are compared.

CPU seconds on one thread, each measured once: the seeds show the spread. About two minutes in all.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyganak

import lbm
from lbm.knowledge.formula import atom, disjunction

ATOMS, RATIO = 50, 3.0
LIMIT = 25.0  # seconds for PySDD

Clauses = list[list[int]]
T = TypeVar("T")

PYSDD = """
import json, sys, time
from pysdd.sdd import SddManager
text = sys.stdin.read()
start = time.process_time()
manager, node = SddManager.from_cnf_string(text)
compiled = time.process_time() - start
counter = node.wmc(log_mode=False)
number = counter.propagate()
chances = [counter.literal_pr(i) for i in range(1, manager.var_count() + 1)]
print(json.dumps({"count": round(number), "marginals": chances, "compiled": compiled,
                  "seconds": time.process_time() - start}))
"""


def random_clauses(seed: int) -> Clauses:
    rng = random.Random(seed)
    chosen = (rng.sample(range(1, ATOMS + 1), 3) for _ in range(round(ATOMS * RATIO)))
    return [[i if rng.random() < 0.5 else -i for i in three] for three in chosen]


def theory(clauses: Clauses) -> lbm.Theory:
    names = [f"x{i}" for i in range(1, ATOMS + 1)]

    def literal(number: int) -> lbm.Formula:
        return atom(f"x{number}") if number > 0 else ~atom(f"x{-number}")

    return lbm.Theory([disjunction(map(literal, clause)) for clause in clauses], atoms=names)


def ganak(clauses: Clauses) -> int:
    counter = pyganak.Counter()
    counter.new_vars(ATOMS)
    counter.add_clauses(clauses)
    return int(counter.count())


def pysdd(clauses: Clauses) -> dict[str, Any] | str:
    """Return what PySDD found, or why it did not."""
    lines = [f"p cnf {ATOMS} {len(clauses)}", *(" ".join(map(str, [*clause, 0])) for clause in clauses)]
    try:
        done = subprocess.run(
            [sys.executable, "-c", PYSDD],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"past {LIMIT:g} s"
    if done.returncode:
        return f"ended with status {done.returncode}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def show(side: str, count: str, marginals: str, note: str = "") -> None:
    print(f"  {side:<10}{count:>12}{marginals:>14}  {note}".rstrip())


def one_seed(seed: int, asked: Sequence[int]) -> None:
    clauses = random_clauses(seed)
    # Two theories, so that what the first question found does not help the second.
    number, counted = timed(lambda: lbm.count(theory(clauses)))
    chances, weighed = timed(lambda: lbm.marginals(theory(clauses)))
    print(f"seed {seed}: {number:,} models")
    show("", "count", "marginals")
    show("lbm", f"{counted:.2f} s", f"{weighed:.2f} s", chances.method)

    theirs, their_count = timed(lambda: ganak(clauses))
    assert theirs == number, f"Ganak counts {theirs}, lbm {number}"
    shares, their_time = timed(lambda: [ganak([*clauses, [i]]) / theirs for i in asked])
    assert all(abs(share - chances[f"x{i}"]) < 1e-9 for i, share in zip(asked, shares, strict=True))
    all_marginals = their_count + their_time * ATOMS / len(asked)
    said = f"{ATOMS + 1} counts" + ("" if len(asked) == ATOMS else f", reckoned from {len(asked) + 1}")
    show("Ganak", f"{their_count:.2f} s", f"{all_marginals:.2f} s", said)
    show("ratio", f"{their_count / counted:.2f}", f"{all_marginals / weighed:.2f}", "Ganak / lbm")

    found = pysdd(clauses)
    if isinstance(found, str):
        show("PySDD", found, found)
        return
    assert found["count"] == number, f"PySDD counts {found['count']}, lbm {number}"
    assert all(abs(a - b) < 1e-9 for a, b in zip(found["marginals"], chances.values(), strict=True))
    show("PySDD", f"{found['compiled']:.2f} s", f"{found['seconds']:.2f} s", "compiled once for both")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--every", action="store_true", help="count every atom with Ganak: 40 s more a seed")
    options = parser.parse_args()
    lbm.marginals(lbm.Theory.parse("a | b"))  # imports what is loaded on first use
    asked = range(1, ATOMS + 1) if options.every else range(10, ATOMS + 1, 10)
    print(f"random 3-CNF, {ATOMS} atoms, {round(ATOMS * RATIO)} clauses; CPU seconds")
    for seed in options.seeds:
        one_seed(seed, asked)


if __name__ == "__main__":
    main()
