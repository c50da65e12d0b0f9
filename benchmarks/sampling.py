"""Models of random 3-CNF drawn at random: lbm beside CMSGen, how fast and how evenly.

The rate is that of distinct models, each checked on its clauses, in a second. CMSGen is asked for one model
after another for two seconds, its solver ready before the clock starts. lbm is asked for all at once, of a
theory that it has not met before, its work on the theory included: by its fast method, which makes no promise
about the distribution, for a number of draws that is doubled until the call takes a second; by tempered
chains, which are uniform once they agree and say whether they do, for 10,000 draws and up to 20 s. CMSGen
aims at even draws without a promise.

How evenly: where there are at most 10,000 models they are listed, and the total variation distance of the
draws from the uniform distribution is computed, with the largest error of the marginals. Draws that are
exactly uniform are not at distance 0 either, and stand beside the others. Where they cannot be listed, the
marginals are compared with Ganak's exact counts, for as many atoms as it counts in 60 s; where it counts
none, nothing is measured.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
from measuring.peers import exact_marginals
from measuring.problems import Bools, Problem, random_clauses, satisfiable_clauses
from measuring.results import Row, Run, Section, Table, quartiles, ratio, spread, times, whole

TITLE = "Drawing models"
CLASSES = ((100, 300), (200, 600), (100, 420))
INSTANCES = 10
LISTED = ((100, 420, 2), (100, 420, 6), (100, 420, 7))  # the first seeds with 1,000 to 10,000 models
COUNTED = ((100, 300, 0), (100, 300, 1), (200, 600, 0))
COUNTING = 60.0  # seconds for Ganak
ENOUGH = 1.0  # seconds that a call of lbm takes at least
METHODS = {"fast": "fast", "uniform": "tempered"}  # of lbm, by what they are for
DRAWS = 10_000  # by the uniform method, whose chains take their time whatever the number
GAIN = 2  # times the rate of CMSGen


def ask_lbm(problem: Problem, number: int, side: str, seed: int, limit: float) -> tuple[Bools, float, bool]:
    """Return draws, of shape (draws, atoms), the seconds they took, and whether lbm relies on them."""
    import lbm
    from lbm.errors import NoAnswer

    theory = problem.theory()
    start = time.perf_counter()
    try:
        found = lbm.sample(theory, number, method=METHODS[side], seed=seed, seconds=limit)
    except NoAnswer:
        return np.zeros((0, problem.atoms), bool), time.perf_counter() - start, False
    worlds = found.array
    return worlds, time.perf_counter() - start, found.converged


def ask_cmsgen(
    problem: Problem, seed: int, *, number: int | None = None, limit: float
) -> tuple[Bools, float]:
    """Return draws, of shape (draws, atoms), and the seconds they took."""
    import pycmsgen

    solver = pycmsgen.Solver(seed=seed)
    solver.add_clauses(problem.rows())
    solver.solve()
    drawn: list[Any] = []
    start = time.perf_counter()
    while (number is None or len(drawn) < number) and time.perf_counter() - start < limit:
        drawn.append(solver.solve()[1])
    took = time.perf_counter() - start
    return np.array([each[1:] for each in drawn], dtype=bool), took


def verified(problem: Problem, worlds: Bools) -> Bools:
    """Return the worlds that are models."""
    found: Bools = worlds[problem.costs(worlds) == 0]
    return found


def distinct(worlds: Bools) -> Any:
    """Return how often each world occurs that does."""
    return (
        np.unique(np.packbits(worlds, axis=1), axis=0, return_counts=True)[1] if len(worlds) else np.zeros(0)
    )


def rates(problem: Problem, seed: int, quick: bool) -> Row:
    limit = 10.0 if quick else 20.0
    row: Row = {}
    worlds, took = ask_cmsgen(problem, seed + 1, limit=0.5 if quick else 2.0)
    row["CMSGen"] = {"rate": len(distinct(verified(problem, worlds))) / took, "draws": len(worlds)}
    for side in METHODS:
        number = 256 if side == "fast" else DRAWS
        while True:
            worlds, took, converged = ask_lbm(problem, number, side, seed, limit)
            if took >= ENOUGH or number >= 1 << 20:
                break
            number *= 2
        models = verified(problem, worlds)
        row[side] = {
            "rate": len(distinct(models)) / took,
            "draws": len(worlds),
            "models": len(models),
            "converged": converged,
        }
    return row


def all_models(problem: Problem) -> Bools:
    from pysat.solvers import Solver

    with Solver("cadical195", bootstrap_with=problem.rows()) as solver:
        found = [[literal > 0 for literal in model[: problem.atoms]] for model in solver.enum_models()]
    return np.array(found, dtype=bool)


def distances(problem: Problem, seed: int, listed: bool, quick: bool) -> Row:
    number = 500 if quick else DRAWS
    rng = np.random.default_rng(seed)
    models = all_models(problem) if listed else None
    if models is not None:
        chances = dict(enumerate(models.mean(axis=0).tolist(), start=1))
    else:
        chances = exact_marginals(problem, 5.0 if quick else COUNTING)
    row: Row = {"models": None if models is None else len(models), "atoms counted": len(chances), "sides": {}}
    if not chances:
        return row
    columns = np.array(sorted(chances)) - 1
    exact = np.array([chances[atom] for atom in sorted(chances)])

    def judge(worlds: Bools) -> dict[str, Any]:
        found = verified(problem, worlds)
        if not len(found):
            return {"draws": 0, "variation": None, "error": None}
        shares = distinct(found) / len(found)
        # Only models that are drawn too often count: what is missing elsewhere is what they have too much.
        variation = None if models is None else float(np.maximum(shares - 1 / len(models), 0).sum())
        return {
            "draws": len(found),
            "variation": variation,
            "error": float(np.abs(found[:, columns].mean(axis=0) - exact).max()),
        }

    limit = 20.0 if quick else 60.0
    row["sides"]["CMSGen"] = judge(ask_cmsgen(problem, seed + 1, number=number, limit=limit)[0])
    for side in METHODS:
        row["sides"][f"lbm, {side}"] = judge(ask_lbm(problem, number, side, seed, limit)[0])
    if models is not None:
        row["sides"]["exactly uniform"] = judge(models[rng.integers(0, len(models), number)])
    else:
        means = rng.binomial(number, exact, (1, len(exact))) / number
        row["sides"]["exactly uniform"] = {
            "draws": number,
            "variation": None,
            "error": float(np.abs(means - exact).max()),
        }
    return row


def measurer(quick: bool, number: int) -> Any:
    @cache
    def instances(atoms: int, clauses: int) -> list[tuple[int, Problem]]:
        found = satisfiable_clauses(atoms, clauses, 3, number + 1)
        for side in METHODS:  # imports and compiles what there is
            ask_lbm(found[-1][1], 64, side, 0, 10.0)
        return found

    def measure(what: str, atoms: int, clauses: int, index: int) -> Row:
        if what == "rate":
            seed, problem = instances(atoms, clauses)[index]
            return {"seed": seed, **rates(problem, seed, quick)}
        problem = random_clauses(atoms, clauses, 3, seed=index)
        return distances(problem, index, what == "listed", quick)

    return measure


def name_of(key: list[Any]) -> str:
    return f"{key[1]} atoms, {key[2]} clauses"


def section(rows: list[Row]) -> Section:
    shown, apart, wanted = [], [], []
    for size in CLASSES:
        some = [row for row in rows if row["key"][0] == "rate" and tuple(row["key"][1:3]) == size]
        if not some:
            continue
        each = {side: [row[side]["rate"] for row in some] for side in (*METHODS, "CMSGen")}
        gains = [ratio(mine, its) for mine, its in zip(each["fast"], each["CMSGen"], strict=True)]
        name = name_of(some[0]["key"])
        converged = sum(row["uniform"]["converged"] for row in some)
        shown.append(
            [
                name,
                str(len(some)),
                *(spread(found, whole) for found in each.values()),
                spread(gains, times),
                f"{converged} of {len(some)}",
            ]
        )
        middle = quartiles(gains)[1]
        wanted.append(
            (f"{name}: the fast method at least {GAIN} times as fast as CMSGen, median", middle >= GAIN)
        )
    for row in (row for row in rows if row["key"][0] != "rate"):
        counted = row["atoms counted"]
        what = f"marginals of {counted} atom{'s'[: counted > 1]}" if counted else "not counted in time"
        if row["models"] is not None:
            what = f"{row['models']:,} models"
        for side, found in row["sides"].items() or [("", {"draws": 0, "variation": None, "error": None})]:
            apart.append(
                [
                    f"{name_of(row['key'])}, seed {row['key'][3]}: {what}",
                    side or "not measured",
                    f"{found['draws']:,}" if found["draws"] else "none",
                    "not measured" if found["variation"] is None else f"{found['variation']:.3f}",
                    "not measured" if found["error"] is None else f"{found['error']:.4f}",
                ]
            )
    return Section(
        [
            Table(
                "Distinct verified models per second",
                [
                    "class",
                    "instances",
                    "lbm, fast",
                    "lbm, uniform",
                    "CMSGen",
                    "fast / CMSGen",
                    "uniform converged",
                ],
                shown,
            ),
            Table(
                "Distance from the uniform distribution",
                ["instance", "draws by", "models drawn", "total variation", "largest error of a marginal"],
                apart,
            ),
        ],
        wanted,
    )


def main() -> None:
    run = Run("sampling", __doc__)
    number = run.number(INSTANCES)
    keys: list[tuple[Any, ...]] = [("rate", *size, index) for index in range(number) for size in CLASSES]
    keys += [("listed", *each) for each in (LISTED[:1] if run.quick else LISTED)]
    keys += [("counted", *each) for each in (COUNTED[:1] if run.quick else COUNTED)]
    run.show(section(run.each(keys, measurer(run.quick, number))))


if __name__ == "__main__":
    main()
