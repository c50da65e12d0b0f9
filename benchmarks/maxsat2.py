"""Weighted Max-2-SAT, 100 atoms: the time of lbm to the best known cost, beside dwave-samplers.

Random clauses of two literals with weights 1 to 10. They are a quadratic function as they stand, so this is
the samplers' home ground; the function is made before their clock starts. Each sampler is called with one
read, then two, four and so on until the cost is reached. Only the last of these calls counts, as if the right
number of reads had been known; the time of all of them stands beside it. Steepest descent has nothing to
tune; simulated annealing is tried with three numbers of sweeps, tabu search with two time-outs, and the best
method of a class is the one of the least median. The time of lbm is that from the call of `lbm.best` on a
parsed theory until a world of that cost was given out; kernels were compiled before. Times of an instance are
medians over three seeds.

The best known cost is the least that anybody found: toulbar2 (which proves it where the table says so), a
long run of lbm, and the samplers themselves.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from measuring.ours import search, warm
from measuring.peers import Annealers, solve
from measuring.problems import Problem, random_clauses
from measuring.results import Row, Run, Section, Table, quartiles, ratio, seconds, spread, times, whole

TITLE = "Weighted Max-2-SAT"
ATOMS, CLAUSES = 100, (300, 500, 700, 1_000)
INSTANCES = 10
SPARE = 1_000
SEEDS = 3  # per instance and method: its time is their median
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "steepest descent": ("SteepestDescentSampler", {}),
    "annealing, 30 sweeps": ("SimulatedAnnealingSampler", {"num_sweeps": 30}),
    "annealing, 100 sweeps": ("SimulatedAnnealingSampler", {"num_sweeps": 100}),
    "annealing, 1,000 sweeps": ("SimulatedAnnealingSampler", {"num_sweeps": 1_000}),
    "tabu, 1 ms": ("TabuSampler", {"timeout": 1}),
    "tabu, 20 ms": ("TabuSampler", {"timeout": 20}),
}


def make(clauses: int, seed: int) -> Problem:
    return random_clauses(ATOMS, clauses, 2, seed=seed, heaviest=10)


def median(values: list[float | None]) -> float | None:
    """Return the median of times; one that was never reached is longer than all."""
    found = statistics.median_low([math.inf if value is None else value for value in values])
    return None if math.isinf(found) else found


def measurer(quick: bool) -> Any:
    import dwave.samplers

    proof, long, limit = (1.0, 1.0, 1.0) if quick else (4.0, 3.0, 2.0)
    warm([make(clauses, SPARE).theory() for clauses in CLAUSES])

    def measure(clauses: int, seed: int) -> Row:
        problem = make(clauses, seed)
        annealers = Annealers(problem)
        proven = solve("toulbar2", problem.theory(), problem.cost, proof)
        ours = search(problem.theory(), long, seed=seed)
        short = annealers.anneal(limit, {"num_sweeps": 100}, seed=seed)
        target = min(found.cost for found in (proven, ours, short) if found.cost is not None)
        took = [
            search(problem.theory(), 10.0, seed=1_000 + one, until=target).time_to(target)
            for one in range(SEEDS)
        ]
        theirs = {}
        for name, (sampler, schedule) in METHODS.items():
            made = getattr(dwave.samplers, sampler)()
            each = [
                annealers.time_to(made, target, limit=limit, seed=97 * one, **schedule)
                for one in range(SEEDS)
            ]
            theirs[name] = {
                "last": median([one and one[0] for one in each]),
                "all": median([one and one[1] for one in each]),
            }
        return {
            "target": target,
            "proven": proven.proven and proven.cost == target,
            "lbm": median(took),
            "methods": theirs,
        }

    return measure


def section(rows: list[Row]) -> Section:
    summary, methods, wanted = [], [], []
    for clauses in CLAUSES:
        some = [row for row in rows if row["key"][0] == clauses]
        if not some:
            continue
        name = f"{clauses:,} clauses"
        last = {key: [row["methods"][key]["last"] for row in some] for key in METHODS}
        medians = {key: quartiles(each)[1] for key, each in last.items()}
        fastest = min(METHODS, key=medians.__getitem__)
        ours = [row["lbm"] for row in some]
        summary.append(
            [
                name,
                str(len(some)),
                spread((row["target"] for row in some), whole),
                str(sum(row["proven"] for row in some)),
                spread(ours, seconds),
                fastest,
                spread(last[fastest], seconds),
                spread((row["methods"][fastest]["all"] for row in some), seconds),
                spread(map(ratio, last[fastest], ours), times),
                str(sum(took is None for took in ours)),
            ]
        )
        methods.append([name, *(spread(last[key], seconds) for key in METHODS)])
        goal = f"{name}: no slower to the best known cost than the best sampler, medians"
        wanted.append((goal, quartiles(ours)[1] <= medians[fastest]))
    columns = (
        "class,instances,cost,proven,lbm,best sampler,last call,all calls,last call / lbm,lbm never".split(
            ","
        )
    )
    return Section(
        [
            Table("Time to the best known cost", columns, summary),
            Table("Time to the best known cost, last calls of all samplers", ["class", *METHODS], methods),
        ],
        wanted,
    )


def main() -> None:
    run = Run("maxsat2", __doc__)
    keys = [(clauses, seed) for seed in range(run.number(INSTANCES)) for clauses in CLAUSES]
    run.show(section(run.each(keys, measurer(run.quick))))


if __name__ == "__main__":
    main()
