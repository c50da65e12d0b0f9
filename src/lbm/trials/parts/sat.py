"""Satisfiability: SR(n) pairs and flat graph colourings, by chains on machines and by a solver."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from lbm.knowledge.clauses import Clauses
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, filled, prose, wording
from lbm.trials.pictures import Chart, Curve, Picture
from lbm.trials.searches.instances import flat_colouring, sr_pair
from lbm.trials.searches.solving import CHAINS, METHODS, solve_by
from lbm.trials.selecting import numbers, where
from lbm.trials.words import seconds, share

NAME: Final = "sat"
TITLE: Final = "SAT: models of random and of structured clauses"
REVISION: Final = 1
ALONE: Final = False
COLUMNS: Final = columns(
    "family size:int sweeps:int instances instance:int satisfiable:int atoms:int clauses:int method "
    "solved:int broken:int sweeps_done:int seconds:float"
)

FAMILIES: Final = {"SR": "SR(n) pairs", "colouring": "flat 3-colouring"}
SIZES: Final = {"SR": (5, 10, 20, 40, 80), "colouring": (9, 12, 20, 50, 100)}
QUICK_SIZES: Final = {"SR": (5, 20), "colouring": (9, 30)}
SWEEPS: Final = 500
QUICK_SWEEPS: Final = 200


def pieces(quick: bool) -> list[Piece]:
    """Return twenty instances of each family and size, ten of the largest; quick: three of each."""
    found = []
    sweeps = QUICK_SWEEPS if quick else SWEEPS
    for family, sizes in (QUICK_SIZES if quick else SIZES).items():
        for size in sizes:
            number, batch = (3, 3) if quick else (10, 1) if size >= 80 else (20, 5)
            # Steps of block Gibbs are nearly all of it, and they cost by the number of hidden units.
            each = 2 * sweeps * (4e-4 + 1e-4 * (size if family == "colouring" else 1.5 * size))
            for first in range(0, number, batch):
                last = first + batch - 1
                key: Key = {"family": family, "size": size, "sweeps": sweeps, "instances": f"{first}-{last}"}
                found.append(Piece(key, cost=batch * each))
    return found


def measure(key: Key) -> list[Row]:
    """Return a row for each instance and method; of unsatisfiable ones, for the solver alone."""
    family, size, sweeps = str(key["family"]), int(key["size"]), int(key["sweeps"])
    first, last = map(int, str(key["instances"]).split("-"))
    rows: list[Row] = []
    for number in range(first, last + 1):
        for satisfiable, clauses in _instances(family, size, number):
            sizes = {"atoms": clauses.variables, "clauses": len(clauses)}
            named: Row = {**key, "instance": number, "satisfiable": satisfiable, **sizes}
            for method in METHODS if satisfiable else ("CaDiCaL",):
                done = solve_by(method, clauses, sweeps=sweeps, seed=number)
                rows.append({**named, "method": method, **done.facts()})
    return rows


def _instances(family: str, size: int, number: int) -> list[tuple[int, Clauses]]:
    """Return instances, each with 1 if it is satisfiable and 0 if it is not."""
    if family == "SR":
        with_model, without = sr_pair(size, seed=number)
        return [(1, with_model), (0, without)]
    return [(1, flat_colouring(size, seed=number))]


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return the share solved and the time against size, for each family."""
    found: list[Picture] = []
    for family, name in FAMILIES.items():
        shares, times = [], []
        for number, method in enumerate(METHODS):
            cells = [
                (size, some) for size in _sizes(rows, family) if (some := _of(rows, family, size, method))
            ]
            if cells:
                x = tuple(float(size) for size, _ in cells)
                shares.append(Curve(method, x, tuple(100 * _solved(some) for _, some in cells), number))
                times.append(Curve(method, x, tuple(_time(some) for _, some in cells), number))
        if not shares:
            continue
        x_label = "n, the number of atoms" if family == "SR" else "nodes of the graph"
        found.append(
            Chart(
                name=f"sat-{family.lower()}-solved",
                title=f"{name}: share solved",
                caption=wording(__name__, "Shares", name=name),
                x_label=x_label,
                y_label="solved, %",
                curves=tuple(shares),
                x_log=True,
                y_range=(-3.0, 103.0),
            )
        )
        found.append(
            Chart(
                name=f"sat-{family.lower()}-seconds",
                title=f"{name}: time",
                caption=wording(__name__, "Times"),
                x_label=x_label,
                y_label="seconds",
                curves=tuple(times),
                x_log=True,
                y_log=True,
            )
        )
    return found


def section(rows: Sequence[Row]) -> Section:
    """Return shares solved and times."""
    lines, headline = [], {}
    for family, name in FAMILIES.items():
        for size in _sizes(rows, family):
            for method in METHODS:
                some = _of(rows, family, size, method)
                if some:
                    left = [int(row["broken"] or 0) for row in some]
                    clauses = statistics.fmean(numbers(some, "clauses"))
                    solved = f"{share(_solved(some))} of {len(some)}"
                    cells = (solved, f"{statistics.fmean(left):.1f} of {clauses:.0f}", seconds(_time(some)))
                    lines.append((name, f"{size}", method, *cells))
                    headline[f"solved, {family} {size}, {method}"] = round(_solved(some), 4)
    proved = where(rows, satisfiable=0)
    wrong = int(sum(numbers(proved, "solved")))
    words = prose(
        __name__,
        chains=CHAINS,
        sweeps=SWEEPS,
        quick_sweeps=QUICK_SWEEPS,
        asked=len(proved),
        proved=len(proved) - wrong,
    )
    return Section(
        **words,
        findings=tuple(_findings(rows)),
        tables=filled(
            Sheet(
                "Models found within the budget, and what was left",
                ("family", "size", "method", "solved", "clauses still false", "median time"),
                tuple(lines),
                left=(0, 2),
                note=wording(__name__, "Table"),
            )
        ),
        headline=headline,
    )


def _findings(rows: Sequence[Row]) -> list[str]:
    found = []
    for family, name in FAMILIES.items():
        sizes = _sizes(rows, family)
        if not sizes:
            continue
        said = []
        for method in METHODS:
            there = [size for size in sizes if _of(rows, family, size, method)]
            all_solved = [size for size in there if _solved(_of(rows, family, size, method)) == 1]
            if there and len(all_solved) == len(there):
                said.append(f"{method} solves all, at every size")
            elif there:
                largest = max(there)
                some = _solved(_of(rows, family, largest, method))
                said.append(f"{method} solves {share(some)} at size {largest}")
        found.append(f"{name}: {'; '.join(said)}.")
    return found


def _sizes(rows: Sequence[Row], family: str) -> list[int]:
    return sorted({int(size) for size in numbers(where(rows, family=family), "size")})


def _of(rows: Sequence[Row], family: str, size: int, method: str) -> list[Row]:
    return where(rows, family=family, size=size, method=method, satisfiable=1)


def _solved(rows: Sequence[Row]) -> float:
    return statistics.fmean(numbers(rows, "solved"))


def _time(rows: Sequence[Row]) -> float:
    return statistics.median(numbers(rows, "seconds"))
