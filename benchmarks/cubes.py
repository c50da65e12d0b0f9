"""How many cubes each method gives to each class of formulae, and how long it takes."""

import random
import time
from collections.abc import Callable

from lbm.errors import TooManyCubes
from lbm.knowledge.formula import Formula, atmost, atom, conjunction, disjunction, exactly, iff
from lbm.logic.sdnf import METHODS, to_sdnf


def x(i: int) -> Formula:
    return atom(f"x{i}")


def parity(number: int) -> Formula:
    total = x(0)
    for i in range(1, number):
        total = total ^ x(i)
    return total


def random_dnf(terms: int, atoms: int, width: int) -> Formula:
    rng = random.Random(0)
    return disjunction(
        conjunction(x(i) if rng.random() < 0.5 else ~x(i) for i in rng.sample(range(atoms), width))
        for _ in range(terms)
    )


CLASSES: dict[str, Callable[[], Formula]] = {
    "clause of 10": lambda: disjunction(x(i) for i in range(10)),
    "implication, body of 10": lambda: conjunction(x(i) for i in range(10)) >> x(10),
    "φ(M=20, N=10) of the paper": lambda: conjunction(
        [*(x(i) for i in range(20)), disjunction(x(i) for i in range(20, 30))]
    ),
    "OR of 10 disjoint pairs": lambda: disjunction(x(2 * i) & x(2 * i + 1) for i in range(10)),
    "AND of 8 disjoint clauses of 3": lambda: conjunction(
        x(3 * i) | x(3 * i + 1) | x(3 * i + 2) for i in range(8)
    ),
    "XOR of 8": lambda: parity(8),
    "XOR of 20": lambda: parity(20),
    "exactly 1 of 10": lambda: exactly(1, *(x(i) for i in range(10))),
    "at most 5 of 100": lambda: atmost(5, *(x(i) for i in range(100))),
    "equivalence of two ORs of 5": lambda: iff(
        disjunction(x(i) for i in range(5)), disjunction(x(i) for i in range(5, 10))
    ),
    "random DNF, 8 terms of 3 over 12": lambda: random_dnf(8, 12, 3),
    "random DNF, 20 terms of 4 over 30": lambda: random_dnf(20, 30, 4),
}


def main() -> None:
    print("cubes, definitions included (new atoms), time in ms; '-': past the method's limit")
    print(f"{'class of formulae':<36}" + "".join(f"{method:>22}" for method in METHODS))
    for name, build in CLASSES.items():
        row = f"{name:<36}"
        for method in METHODS:
            formula = build()
            start = time.perf_counter()
            try:
                sdnf = to_sdnf(formula, method=method)
            except TooManyCubes:
                row += f"{'-':>22}"
                continue
            took = 1000 * (time.perf_counter() - start)
            new = f" (+{len(sdnf.definitions)})" if sdnf.definitions else ""
            row += f"{f'{sdnf.size:,}{new} {took:.0f} ms':>22}"
        print(row)


if __name__ == "__main__":
    main()
