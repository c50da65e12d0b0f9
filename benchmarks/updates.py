"""Atom updates per second on one core and on two: lbm beside dwave-samplers and block Gibbs.

All sides run on the same theories, random clauses of three literals with weights 1 to 10. lbm updates one
atom after another, hidden units summed out, in 64 chains that count true literals, or in 512 that are one bit
each. D-Wave's annealer updates atoms and one more variable for every clause. Block Gibbs, by NumPy, torch and
scikit-learn in single precision, updates the hidden units of the theory's machine, three for a clause, and
then all atoms at once; 64 and 1,024 chains were tried, and the faster number counts. An update of an atom is
worth different amounts: one by block Gibbs moves least, because hidden units pin their atoms.

Every figure is from a process of its own, with as many threads as cores. dwave-samplers has one thread, and
two cores run two of it. The time per sweep of all chains grows with the number of clauses, four for an atom;
the ratio says how much more than in proportion, the smallest theory being 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuring.results import Row, Run, Section, Table, seconds, times

TITLE = "Atom updates per second"
SIZES = ((100, 500), (1_000, 5_000))
SIDES = {
    "lbm lanes": "lbm, 64 counting chains",
    "lbm bits": "lbm, 512 bit chains",
    "dwave": "dwave SA",
    "numpy": "block Gibbs, NumPy",
    "torch": "block Gibbs, torch",
    "scikit-learn": "block Gibbs, scikit-learn",
}
OURS = ("lbm lanes", "lbm bits")
LONGER = tuple(10**k for k in range(3, 7))  # clauses
ALONE = {"dwave", "scikit-learn"}  # no threads of their own
THREADS = "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS NUMBA_NUM_THREADS".split()
LEAST, TARGET = 1.5e8, 1e9
LINEAR = 2.0  # times as long for a clause in the largest theory as in the smallest, and no more


def measurer(quick: bool) -> Any:
    limit = 1.0 if quick else 4.0

    def measure(side: str, atoms: int, clauses: int, cores: int) -> Row:
        """Return the speed of one side; what has no threads runs once for every core."""
        threads, copies = (1, cores) if side in ALONE else (cores, 1)
        here = Path(__file__).parent
        environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
        environment["PYTHONPATH"] = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
        order = [sys.executable, "-m", "measuring.speeds", side, *map(str, (atoms, clauses, threads, limit))]
        running = [
            subprocess.Popen(order, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(copies)
        ]
        said = [process.communicate()[0] for process in running]
        if any(process.returncode for process in running):
            raise RuntimeError(f"failed: {' '.join(order)}")
        found = [json.loads(text) for text in said]
        if found[0] is None:
            return {"speed": None}
        return {"speed": {key: sum(one[key] for one in found) for key in found[0]}}

    return measure


def section(rows: list[Row]) -> Section:
    known = {tuple(row["key"]): row["speed"] for row in rows}
    shown, sweeps, wanted = [], [], []
    for side, name in SIDES.items():
        for atoms, clauses in SIZES:
            found = [known.get((side, atoms, clauses, cores)) for cores in (1, 2)]
            if not any((side, atoms, clauses, cores) in known for cores in (1, 2)):
                continue
            shown.append(
                [
                    name,
                    f"{atoms:,} atoms, {clauses:,} clauses",
                    *("not installed" if one is None else f"{one['atoms'] / 1e6:,.1f}" for one in found),
                    *("" if one is None else f"{one['units'] / 1e6:,.1f}" for one in found),
                    "" if found[0] is None else f"{found[0]['chains']:,.0f}",
                ]
            )
    for side in OURS:
        first = None
        for clauses in LONGER:
            one = known.get((side, clauses // 4, clauses, 1))
            if one is None:
                continue
            took = clauses // 4 * one["chains"] / one["atoms"]
            first = first or took / clauses
            sweeps.append(
                [
                    SIDES[side],
                    f"{clauses:,}",
                    seconds(took),
                    seconds(took / clauses),
                    times(took / clauses / first),
                ]
            )
            if clauses == LONGER[-1]:
                name = (
                    f"{SIDES[side]}: time per clause at {clauses:,} clauses at most {LINEAR:g} times that at "
                )
                wanted.append((f"{name}{LONGER[0]:,}", took / clauses <= LINEAR * first))
    for size in SIZES:
        ours = [known[side, *size, 1]["atoms"] for side in OURS if known.get((side, *size, 1))]
        if ours:
            name = f"{size[0]:,} atoms, {size[1]:,} clauses: "
            wanted.append(
                (
                    f"{name}at least {LEAST / 1e6:g} million atom updates a second on a core",
                    max(ours) >= LEAST,
                )
            )
            wanted.append((f"{name}{TARGET / 1e6:,.0f} million of them, the target", max(ours) >= TARGET))
    return Section(
        [
            Table(
                "Millions of updates per second",
                [
                    "side",
                    "theory",
                    "atoms, 1 core",
                    "atoms, 2 cores",
                    "all variables, 1 core",
                    "2 cores",
                    "chains",
                ],
                shown,
            ),
            Table(
                "Time per sweep of all chains, one core",
                ["side", "clauses", "sweep", "per clause", "ratio"],
                sweeps,
            ),
        ],
        wanted,
    )


def main() -> None:
    run = Run("updates", __doc__)
    cores = (1, 2) if run.head["machine"]["cores"] > 1 else (1,)
    sizes = SIZES[:1] if run.quick else SIZES
    keys = [(side, *size, number) for side in SIDES for size in sizes for number in cores]
    longer = LONGER[:2] if run.quick else LONGER
    keys += [(side, clauses // 4, clauses, 1) for side in OURS for clauses in longer]
    run.show(section(run.each(keys, measurer(run.quick))))


if __name__ == "__main__":
    main()
