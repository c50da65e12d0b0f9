"""Exact answers: how long they take. No peer here yet; the figures are those of decision 5."""

import random
import time

from lbm.knowledge.formula import Formula, atom, conjunction, disjunction
from lbm.knowledge.theory import Theory
from lbm.reasoning.exact import count, models


def phi(m: int, n: int) -> Theory:
    """Return the paper's class of formulae: x1 & ... & xM & (y1 | ... | yN)."""
    body = [atom(f"x{i}") for i in range(m)]
    return Theory([conjunction([*body, disjunction(atom(f"y{j}") for j in range(n))])])


def random_clauses(atoms: int, clauses: int) -> Theory:
    rng = random.Random(0)

    def literal(i: int) -> Formula:
        return atom(f"x{i}") if rng.random() < 0.5 else ~atom(f"x{i}")

    return Theory([disjunction(literal(i) for i in rng.sample(range(atoms), 3)) for _ in range(clauses)])


def main() -> None:
    for m, n in ((20, 10), (30, 16), (30, 20)):
        theory = phi(m, n)
        start = time.perf_counter()
        found = models(theory).array
        print(f"models of φ({m}, {n}) as an array   {len(found):>10,}   {time.perf_counter() - start:6.3f} s")
    for atoms, clauses in ((30, 90), (50, 150)):
        theory = random_clauses(atoms, clauses)
        start = time.perf_counter()
        number = count(theory)
        took = time.perf_counter() - start
        print(f"count, 3-CNF of {atoms} atoms, {clauses} clauses   {number:>12,}   {took:6.3f} s")


if __name__ == "__main__":
    main()
