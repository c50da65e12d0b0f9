"""The process in which CP-SAT (OR-Tools) runs: cardinalities and groups are constraints of its own.

Run as ``python -m lbm.reasoning.solvers.cp_sat`` it reads one problem from standard input: a line of JSON,
then 32-bit literals with a 0 after each demand, 64-bit weights, and the 32-bit lows and highs of
:mod:`lbm.reasoning.solvers.demands`. Lines of JSON with a world that others have found may follow. It says
what it finds in lines of JSON, and ends with standard input.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time

from lbm.reasoning.solvers.worker import mouth, numbers, rows_of

TYPE_CHECKING = False  # that of typing, which takes a moment to load
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Say = Callable[..., None]

_AGAIN = 2.0  # times as long as it searched before, it searches on before it begins again from a better world
_FIRST = 0.5  # seconds that it searches at least
_NEAR = 1e-6  # bounds are whole numbers, told as floats


class Others:
    """The best world that others have found, and the search that it may interrupt."""

    def __init__(self) -> None:
        self.world, self.lost = "", -1
        self.solver: Any = None
        self.own = -1  # what our own best world loses
        self.due = 0.0  # when it is worth to begin again
        self.stops = False  # the search was interrupted for that

    def read(self) -> None:
        """Listen, until there is nobody to listen to."""
        for line in sys.stdin.buffer:
            said = json.loads(line)
            if self.lost < 0 or said["lost"] < self.lost:
                self.world, self.lost = said["world"], said["lost"]
        os._exit(0)

    def watch(self) -> None:
        """Interrupt the search where others are ahead, now and then."""
        while True:
            time.sleep(0.05)
            behind = self.lost >= 0 and (self.own < 0 or self.lost < self.own)
            if behind and time.monotonic() > self.due and self.solver is not None:
                self.stops = True
                self.solver.stop_search()


def main() -> None:
    """Read a problem, and solve it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = mouth()
    header = json.loads(sys.stdin.buffer.readline())
    literals = numbers("i", sys.stdin.buffer, header["literals"])
    weights = numbers("q", sys.stdin.buffer, header["weighted"])
    lows = numbers("i", sys.stdin.buffer, header["weighted"])
    highs = numbers("i", sys.stdin.buffer, header["weighted"])
    others = Others()
    for work in (others.read, others.watch):
        threading.Thread(target=work, daemon=True).start()

    def say(kind: str, **parts: Any) -> None:
        out.write(json.dumps({"number": header["number"], "kind": kind, **parts}).encode() + b"\n")

    try:
        _load()
        solve(rows_of(literals), weights, lows, highs, header, say, others)
    except (MemoryError, ImportError):
        say("failed")
    threading.Event().wait()  # until our caller has heard it


def _load() -> None:
    """Load CP-SAT without waiting for pandas, of which nothing is used in this process."""
    import types

    class Unneeded(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return object

    sys.modules["pandas"] = Unneeded("pandas")
    try:
        from ortools.sat.python import cp_model  # noqa: F401 - for `solve`
    except Exception:  # noqa: BLE001 - a version that does use it
        del sys.modules["pandas"]


def solve(
    rows: Sequence[list[int]],
    weights: Sequence[int],
    lows: Sequence[int],
    highs: Sequence[int],
    header: dict[str, Any],
    say: Say,
    others: Others,
) -> None:
    """Say what CP-SAT finds out about demands."""
    from ortools.sat.python import cp_model

    cp: Any = cp_model
    model = cp.CpModel()
    true = [model.new_bool_var("") for _ in range(header["variables"])]
    false = [~variable for variable in true]

    def literal(number: int) -> Any:
        return true[number - 1] if number > 0 else false[-number - 1]

    groups = [tuple(group) for group in header["groups"]]
    places: dict[int, set[int]] = {}
    for place, group in enumerate(groups):
        model.add_exactly_one([literal(number) for number in group])
        for number in group:
            places.setdefault(number, set()).add(place)
    alone = {frozenset(group) for group in groups}

    def said(row: list[int], low: int, high: int) -> bool:
        """Return whether a group says so already."""
        if low == 1 and (high in (1, -1)) and frozenset(row) in alone:
            return True
        if low == 1 and high == -1 and len(row) == 2:
            return not places.get(-row[0], set()).isdisjoint(places.get(-row[1], ()))
        return False

    lost: list[tuple[Any, int]] = []
    base = 0
    for row, weight, low, high in zip(rows, weights, lows, highs, strict=True):
        least = max(0, low)
        most = len(row) if high < 0 else min(high, len(row))
        if least == 0 and most == len(row):
            continue
        if not weight and said(row, low, high):
            continue
        if weight and (least > most or (not row and least)):
            base += weight
            continue
        kept = None
        if weight:
            if len(row) == 1 and least == 1:
                lost.append((literal(-row[0]), weight))
                continue
            kept = model.new_bool_var("")
            lost.append((~kept, weight))
        parts = [literal(number) for number in row]
        if most == len(row) and least == 1:
            model.add_bool_or(parts if kept is None else [*parts, ~kept])
        elif kept is None and most == 1 and least <= 1:
            (model.add_exactly_one if least else model.add_at_most_one)(parts)
        elif least > most:
            model.add_bool_or([])
        else:
            constraint = model.add_linear_constraint(cp.LinearExpr.sum(parts), least, most)
            if kept is not None:
                constraint.only_enforce_if(kept)
    total = cp.LinearExpr.weighted_sum([part for part, _ in lost], [weight for _, weight in lost])
    if lost:
        model.minimize(total)
    atoms = true[: header["atoms"]]
    unit = header["unit"]

    callback: Any = cp.CpSolverSolutionCallback

    class Reporter(callback):  # type: ignore[misc]
        """Say every better world as it comes."""

        def on_solution_callback(self) -> None:
            cost = round(self.objective_value) + base if lost else base
            others.own = cost * unit
            values = "".join("1" if self.boolean_value(atom) else "0" for atom in atoms)
            say("world", lost=cost * unit, world=values)

    best = -1
    bound = base

    def raised(value: float) -> None:
        nonlocal bound
        found = base + math.floor(value + _NEAR)
        if found > bound:
            bound = found
            say("bound", lost=bound * unit)

    took = 0.0
    while True:
        solver = cp.CpSolver()
        solver.parameters.num_workers = header["workers"]
        solver.parameters.random_seed = header["seed"]
        solver.best_bound_callback = raised
        if lost and others.lost >= 0:
            best = others.lost // unit
            model.clear_hints()
            for atom, value in zip(atoms, others.world, strict=True):
                model.add_hint(atom, value == "1")
            others.own = others.lost
            model.add(total <= best - base)
        others.stops, others.due = False, time.monotonic() + max(_FIRST, _AGAIN * took)
        begun = time.monotonic()
        others.solver = solver
        status = solver.solve(model, Reporter())
        others.solver = None
        took = time.monotonic() - begun
        if others.stops and status not in (cp.OPTIMAL, cp.INFEASIBLE):
            continue
        if status == cp.OPTIMAL:
            cost = base + (round(solver.objective_value) if lost else 0)
            say("bound", lost=cost * unit)
            say("end")
        elif status == cp.INFEASIBLE and best < 0:
            say("end", all=True)
        else:
            say("failed")
        return


if __name__ == "__main__":
    main()
