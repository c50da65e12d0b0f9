"""Random 3-SAT near its threshold and hidden 3-colourings: the time to a verified model, beside CDCL solvers.

Random 3-SAT: 200 atoms, 840 clauses, the first twenty instances that are satisfiable. The time of lbm is that
of `lbm.best` on a parsed theory in which all is hard, and it ends with a model that was evaluated on the
formulae. Those of CaDiCaL and MiniSat, as PySAT has them, include handing over the clauses, as ours includes
compiling them. Each instance is measured three times, ours with three seeds, and its time is the median.
Every model is checked here too. `lbm.best` asks MiniSat too, for 2,000 conflicts at a time between walks of
its own, and later below RC2 in a second process beside its chains: the model is from whoever was first.

Colouring: 200 nodes and 479 edges with a hidden 3-colouring, once as clauses and once as people write it,
with `exactly(1, red(v), green(v), blue(v))`; the solvers are given the clauses.
"""

from __future__ import annotations

import statistics
import time
from functools import cache
from typing import Any

from measuring.ours import warm
from measuring.problems import Problem, colouring_clauses, colouring_text, flat_graph, satisfiable_clauses
from measuring.results import Row, Run, Section, Table, quartiles, ratio, seconds, spread, times

TITLE = "Satisfiable problems"
ATOMS, CLAUSES = 200, 840
NODES = 200
INSTANCES = 20
REPEATS = 3
LIMIT = 10.0  # seconds for lbm; what it needs more for counts as not solved
SOON = 2.0
SOLVERS = {"CaDiCaL 1.5.3": "cadical153", "CaDiCaL 1.9.5": "cadical195", "MiniSat 2.2": "minisat22"}
KINDS = {
    "3-SAT": "random 3-SAT, 200 atoms, 840 clauses",
    "clauses": "3-colouring, 200 nodes, as clauses",
    "exactly": "3-colouring, 200 nodes, with exactly(1, ...)",
}


def ask_lbm(theory: Any, problem: Problem, seed: int) -> float | None:
    """Return the time to a model; None: there was none in time."""
    import lbm
    from lbm.errors import NoAnswer

    start = time.perf_counter()
    try:
        world = lbm.best(theory, seconds=LIMIT, seed=seed).world
    except NoAnswer:
        return None
    took = time.perf_counter() - start
    assert problem.cost(list(world.values())) == 0, "no model"
    return took


def ask_solver(name: str, problem: Problem) -> float:
    from pysat.solvers import Solver

    rows = problem.rows()
    start = time.perf_counter()
    with Solver(name, bootstrap_with=rows) as solver:
        solver.solve()
        model = solver.get_model()
        took = time.perf_counter() - start
    values = [False] * problem.atoms
    for literal in model:
        values[abs(literal) - 1] = literal > 0
    assert problem.cost(values) == 0, "no model"
    return took


def measurer(number: int) -> Any:
    import lbm

    @cache
    def instances() -> list[tuple[int, Problem]]:
        return satisfiable_clauses(ATOMS, CLAUSES, 3, number + 1)

    def theory(kind: str, index: int) -> tuple[Any, Problem]:
        """Return a theory not met before, and its clauses; atoms are in the same order."""
        if kind == "3-SAT":
            problem = instances()[index][1]
            return problem.theory(), problem
        edges = flat_graph(NODES, seed=index)
        problem = colouring_clauses(NODES, edges)
        return problem.theory() if kind == "clauses" else lbm.Theory.parse(
            colouring_text(NODES, edges)
        ), problem

    warm([theory(kind, number)[0] for kind in KINDS])

    def measure(kind: str, index: int) -> Row:
        times: dict[str, list[float | None]] = {"lbm": [], **{name: [] for name in SOLVERS}}
        for repeat in range(REPEATS):
            times["lbm"].append(ask_lbm(*theory(kind, index), seed=100 * repeat + index))
            for name, solver in SOLVERS.items():
                times[name].append(ask_solver(solver, theory(kind, index)[1]))
        found = {
            name: statistics.median_low(float("inf") if one is None else one for one in each)
            for name, each in times.items()
        }
        return {
            "times": {name: None if took == float("inf") else took for name, took in found.items()},
            "slowest": None if None in times["lbm"] else max(one for one in times["lbm"] if one is not None),
        }

    return measure


def section(rows: list[Row]) -> Section:
    shown, wanted = [], []
    for kind, name in KINDS.items():
        some = [row for row in rows if row["key"][0] == kind]
        if not some:
            continue
        each = {side: [row["times"][side] for row in some] for side in ("lbm", *SOLVERS)}
        slowest = [row["slowest"] for row in some]
        soon = sum(took is not None and took <= SOON for took in slowest)
        shown.append(
            [
                name,
                str(len(some)),
                *(spread(times_, seconds) for times_ in each.values()),
                str(sum(took is not None for took in slowest)),
                str(soon),
                spread(map(ratio, each["MiniSat 2.2"], each["lbm"]), times),
            ]
        )
        if kind == "3-SAT":
            ours = quartiles(each["lbm"])[1]
            wanted += [
                (f"{name}: median time at most that of {solver}", ours <= quartiles(each[solver])[1])
                for solver in SOLVERS
            ]
            wanted.append((f"{name}: all solved within {SOON:g} s, whatever the seed", soon == len(some)))
        else:
            wanted.append((f"{name}: all solved, whatever the seed", None not in slowest))
    columns = ["class", "instances", "lbm", *SOLVERS, "solved by lbm", f"within {SOON:g} s", "MiniSat / lbm"]
    return Section([Table("Time to a verified model", columns, shown)], wanted)


def main() -> None:
    run = Run("sat", __doc__)
    number = run.number(INSTANCES)
    keys = [(kind, index) for index in range(number) for kind in KINDS]
    run.show(section(run.each(keys, measurer(number))))


if __name__ == "__main__":
    main()
