"""Weighted Max-3-SAT: lbm beside an annealer, D-Wave's, and beside exact solvers, CP-SAT, RC2 and toulbar2.

Random clauses of three literals with weights 1 to 10; the cost of a world is the weight it loses. The
annealer works on a quadratic function with one more variable for every clause, made before its clock starts;
its schedule is the best of six, chosen for every class on an instance that is not measured. It is given all
the reads that fit into ten seconds, and the variables of a read that are atoms are judged by the clauses
themselves. Its time is that at which it had its best cost. The time of lbm is that from the call of
`lbm.best` on a parsed theory until a world that loses no more was given out; kernels were compiled before.

CP-SAT has one worker and a variable for every clause that may be lost. RC2 is the stratified one of PySAT,
which gives a world at the end of every stratum. toulbar2 runs its variable neighbourhood search, which found
better worlds than its default. Each has ten seconds in a process of its own, from the moment it has read its
file. `lbm.best` has one second; it runs RC2 in a second process beside its chains, so that it uses a second
core where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from measuring.ours import search, warm
from measuring.peers import Annealers, best_schedule, solve, wins
from measuring.problems import Problem, random_clauses
from measuring.results import Row, Run, Section, Table, quartiles, ratio, seconds, spread, times, whole

TITLE = "Weighted Max-3-SAT"
CLASSES = ((100, 500), (100, 700), (100, 1_000), (1_000, 5_000))
INSTANCES = 10
SPARE = 1_000  # the seed of the instance that schedules are chosen on, and kernels are compiled on
SOLVERS = {"CP-SAT": "cp-sat", "RC2": "rc2", "toulbar2": "toulbar2-vns"}
PEERS = ("dwave SA", *SOLVERS)
GAIN = 50  # times faster than the annealer


def make(atoms: int, clauses: int, seed: int) -> Problem:
    return random_clauses(atoms, clauses, 3, seed=seed, heaviest=10)


def measurer(quick: bool) -> Any:
    theirs, ours, pilot = (2.0, 1.0, 0.3) if quick else (10.0, 1.0, 2.0)

    @cache
    def schedule(atoms: int, clauses: int) -> Mapping[str, Any]:
        warm([make(atoms, clauses, SPARE).theory()])
        return best_schedule(make(atoms, clauses, SPARE), pilot)

    def measure(atoms: int, clauses: int, seed: int) -> Row:
        problem, chosen = make(atoms, clauses, seed), schedule(atoms, clauses)
        annealed = Annealers(problem).anneal(theirs, chosen, seed=seed)
        assert annealed.cost is not None
        trace = search(problem.theory(), ours, seed=seed)
        reached = trace.time_to(annealed.cost)
        if reached is None:  # a second longer look, for the time alone
            reached = search(problem.theory(), theirs, seed=seed, until=annealed.cost).time_to(annealed.cost)
        if trace.world is not None:
            assert problem.cost(list(trace.world.values())) == trace.cost, "a world that loses something else"
        found = {
            name: solve(solver, problem.theory(), problem.cost, theirs).row()
            for name, solver in SOLVERS.items()
        }
        return {
            "lbm": trace.row(),
            "lbm to annealer": reached,
            "schedule": dict(chosen),
            "budget": theirs,
            "peers": {"dwave SA": annealed.row(), **found},
        }

    return measure


def section(rows: list[Row]) -> Section:
    first, second, third, wanted = [], [], [], []
    for atoms, clauses in CLASSES:
        some = [row for row in rows if row["key"][:2] == [atoms, clauses]]
        if not some:
            continue
        name = f"{atoms:,} atoms, {clauses:,} clauses"
        annealed = [row["peers"]["dwave SA"] for row in some]
        reached = [row["lbm to annealer"] for row in some]
        gains = [ratio(its["seconds"], mine) for its, mine in zip(annealed, reached, strict=True)]
        whole_gains = [ratio(row["budget"], mine) for row, mine in zip(some, reached, strict=True)]
        first.append(
            [
                name,
                str(len(some)),
                spread((its["cost"] for its in annealed), whole),
                spread((its["seconds"] for its in annealed), seconds),
                spread(reached, seconds),
                spread(gains, times),
                spread(whole_gains, times),
            ]
        )
        ours = [row["lbm"]["cost"] for row in some]
        costs = {peer: [row["peers"][peer]["cost"] for row in some] for peer in PEERS}
        second.append([name, spread(ours, whole), *(spread(costs[peer], whole) for peer in PEERS)])
        compared = {peer: wins(ours, costs[peer]) for peer in PEERS}
        third.append([name, *(" / ".join(map(str, compared[peer])) for peer in PEERS)])
        middle = quartiles(gains)[1]
        wanted.append(
            (f"{name}: the annealer's best cost in at most 1/{GAIN} of its time, median", middle >= GAIN)
        )
        worse = sum(compared[peer][2] for peer in SOLVERS)
        wanted.append(
            (
                f"{name}: never worse after 1 s than an exact solver after 10 s ({worse} times worse)",
                not worse,
            )
        )
    budget = f"{rows[0]['budget']:g} s" if rows else "10 s"
    took = spread((row["lbm"]["seconds"] for row in rows), seconds)
    return Section(
        [
            Table(
                "Time to the best cost of simulated annealing",
                ["class", "instances", "its cost", "its time", "lbm", "its time / lbm", "its budget / lbm"],
                first,
            ),
            Table(
                f"Cost: lbm after 1 s, the others after {budget}",
                ["class", "lbm", *PEERS],
                second,
                f"`lbm.best(seconds=1)` took {took}.",
            ),
            Table("Instances in which lbm after 1 s is better / equal / worse", ["class", *PEERS], third),
        ],
        wanted,
    )


def main() -> None:
    run = Run("maxsat3", __doc__)
    # Instances of all classes in turn: a run that is stopped early has some of each.
    keys = [(*size, seed) for seed in range(run.number(INSTANCES)) for size in CLASSES]
    run.show(section(run.each(keys, measurer(run.quick))))


if __name__ == "__main__":
    main()
