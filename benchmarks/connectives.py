"""What a literal costs in other formulae than clauses: chains of lbm on theories of one connective each.

Each theory has 100 atoms and 2,100 literals, all weights are 1, and the same 64 chains sweep it at one
temperature. Speeds are literals of all chains swept in a second; the theories take turns in one process, and
the best of their turns counts, for what disturbs a machine only ever slows it. The engine counts true parts:
once for a clause, a parity or a cardinality, and once more for every level of a nested formula.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from measuring.results import Row, Run, Section, Table, times

TITLE = "Speed by connective"
ATOMS, LITERALS = 100, 2_100
SHAPES = {
    "clauses of three": "{} | {} | {}",
    "rules": "{} & {} -> {}",
    "parities of three": "{} ^ {} ^ {}",
    "at most two of six": "atmost(2, {}, {}, {}, {}, {}, {})",
    "rules with a disjunction of conjunctions": "{} & {} -> ({} & {}) | {}",
    "equivalences with a conjunction": "{} <-> {} & {}",
    "equivalences of rules and parities": "({} -> {}) <-> ({} ^ {})",
    "disjunctions of three pairs": "({} & {}) | ({} & {}) | ({} & {})",
}
HALF = 0.5


def measurer(quick: bool) -> Any:
    from lbm.knowledge.parser import parse
    from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
    from lbm.reasoning.engine.network import network_of

    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(ATOMS)]

    def chains(shape: str) -> Any:
        number = shape.count("{}")
        made = []
        for _ in range(LITERALS // number):
            chosen = rng.choice(ATOMS, number, replace=False)
            made.append(parse(shape.format(*("~" * int(rng.integers(2)) + names[i] for i in chosen))))
        network = network_of(names, [], [(formula, 1.0) for formula in made])
        return start(network, weights_of(network, 1.0), random_states(ATOMS, 1), seed=5)

    lanes = {shape: chains(shape) for shape in SHAPES.values()}
    betas = np.full(50 if quick else 200, 0.5)
    best = dict.fromkeys(lanes, float("inf"))
    for _ in range(5 if quick else 100):
        for shape, some in lanes.items():
            begun = time.perf_counter()
            advance(some, betas)
            best[shape] = min(best[shape], time.perf_counter() - begun)

    def measure(name: str) -> Row:
        return {"speed": LITERALS * 64 * len(betas) / best[SHAPES[name]]}

    return measure


def section(rows: list[Row]) -> Section:
    speeds = {row["key"][0]: row["speed"] for row in rows}
    clauses = next(iter(speeds.values()))
    shown = [[name, f"{speed / 1e9:.2f}", times(speed / clauses)] for name, speed in speeds.items()]
    wanted = [
        (f"{name}: at least half the speed of clauses", speed >= HALF * clauses)
        for name, speed in list(speeds.items())[1:]
    ]
    return Section(
        [Table("Literals swept", ["formulae", "10^9 literals a second", "ratio to clauses"], shown)], wanted
    )


def main() -> None:
    run = Run("connectives", __doc__)
    run.show(section(run.each([(name,) for name in SHAPES], measurer(run.quick))))


if __name__ == "__main__":
    main()
