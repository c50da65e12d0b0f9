"""Theories that are not random: lbm after one second and after ten beside RC2 and CP-SAT after ten.

Pigeons: 30 of them in 24 holes, each in exactly one, at most two in any; sharing a hole costs its weight. The
best world is known: the six cheapest holes are shared. Roster: 20 people, 14 days, three shifts that need
exactly four, three and two people, one shift a day, rest after a night, a most that anybody works, and about
250 weighted wishes. Acquaintances: 28 people, 20,412 ground instances of two weighted rules (likes spread,
and so does smoking), a hard one (likes are mutual), and about 300 weighted observations that contradict one
another here and there.

All sides are given the formulae parsed. CP-SAT, one worker, gets cardinalities as its own linear constraints,
and clauses as its clauses. RC2, stratified, gets clauses by our own writer, with definitions for
cardinalities. These are problems that exact solvers are made for: where lbm loses, the tables say so.
"""

from __future__ import annotations

from typing import Any

from measuring.ours import search, warm
from measuring.peers import solve, wins
from measuring.problems import acquaintances, describe, pigeonholes, roster, weight_lost
from measuring.results import Row, Run, Section, Table, seconds, spread, whole

TITLE = "Theories that are not random"
INSTANCES = 10
SPARE = 1_000
KINDS = ("pigeons", "roster", "acquaintances")
SOLVERS = {"CP-SAT": "cp-sat", "RC2": "rc2"}
OURS = ("lbm, short", "lbm, long")


def make(kind: str, seed: int) -> tuple[Any, int | None]:
    """Return a theory that was not met before and, where it is known, the least cost."""
    import lbm

    least = None
    if kind == "pigeons":
        text, least = pigeonholes(30, 24, seed=seed)
    elif kind == "roster":
        text = roster(20, 14, seed=seed)
    else:
        text = acquaintances(28, seed=seed)
    return lbm.Theory.parse(text), least


def measurer(quick: bool) -> Any:
    theirs = 2.0 if quick else 10.0
    warm(make(kind, SPARE)[0] for kind in KINDS)

    def measure(kind: str, seed: int) -> Row:
        theory, least = make(kind, seed)

        def judge(values: Any) -> int | None:
            return weight_lost(theory, values)

        found: dict[str, Any] = {}
        for side, budget in zip(OURS, (1.0, theirs), strict=True):
            trace = search(make(kind, seed)[0], budget, seed=seed)
            if trace.world is not None:
                assert judge(list(trace.world.values())) == trace.cost, "a world that loses something else"
            found[side] = {**trace.row(), "last": trace.steps[-1][0] if trace.steps else None}
        for side, solver in SOLVERS.items():
            native = solver == "cp-sat"
            outcome = solve(solver, theory, judge, theirs, native=native)
            found[side] = {**outcome.row(), "last": outcome.seconds}
        return {"size": describe(theory), "least": least, "budget": theirs, "sides": found}

    return measure


def section(rows: list[Row]) -> Section:
    shown, compared, proofs = [], [], []
    for kind in KINDS:
        some = [row for row in rows if row["key"][0] == kind]
        if not some:
            continue
        costs = {side: [row["sides"][side]["cost"] for row in some] for side in (*OURS, *SOLVERS)}
        known = [row["least"] for row in some if row["least"] is not None]
        shown.append(
            [
                kind,
                some[0]["size"],
                str(len(some)),
                *(spread(each, whole) for each in costs.values()),
                spread(known, whole) if known else "not known",
            ]
        )
        versus = [" / ".join(map(str, wins(costs[ours], costs[peer]))) for peer in SOLVERS for ours in OURS]
        compared.append([kind, *versus])
        sides = [[row["sides"][side] for row in some] for side in (*OURS, *SOLVERS)]
        took = [spread((one["last"] for one in each), seconds) for each in sides]
        number = [sum(one["proven"] for one in each) for each in sides]
        proofs.append([kind, *(f"{a}; {b} proven" for a, b in zip(took, number, strict=True))])
    budget = f"{rows[0]['budget']:g} s" if rows else "10 s"
    ours = ["lbm after 1 s", f"lbm after {budget}"]
    names = [*ours, *(f"{peer} after {budget}" for peer in SOLVERS)]
    pairs = [f"{mine}, {peer}" for peer in SOLVERS for mine in ours]
    return Section(
        [
            Table("Cost", ["theory", "size of the first", "instances", *names, "least"], shown),
            Table("Instances in which lbm is better / equal / worse", ["theory", *pairs], compared),
            Table("Time of the best world, and how many are proven best", ["theory", *names], proofs),
        ]
    )


def main() -> None:
    run = Run("structured", __doc__)
    keys = [(kind, seed) for seed in range(run.number(INSTANCES)) for kind in KINDS]
    run.show(section(run.each(keys, measurer(run.quick))))


if __name__ == "__main__":
    main()
