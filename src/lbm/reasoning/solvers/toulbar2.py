"""The process in which toulbar2 runs: groups are variables of many values, formulae are tables of costs.

Run as ``python -m lbm.reasoning.solvers.toulbar2`` it reads one problem from standard input, as
:mod:`lbm.reasoning.solvers.cp_sat` does. While it searches nothing else runs in this process, so toulbar2
itself writes on standard output, and :class:`Translator` reads what it says. Nobody reads standard input
then: the system ends this process with its caller.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from itertools import product

from lbm.reasoning.solvers.worker import numbers, rows_of

TYPE_CHECKING = False  # that of typing, which takes a moment to load
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

TABLE = 1 << 12
"""Entries of a table of costs over three variables or more; what has more is a sum with bounds."""

CELLS = 5_000_000
"""Entries of all tables together, past which it takes too long to write them down."""

_LINE = re.compile(rb"(New solution|Optimum|Initial lower and upper bounds|Optimality gap): \[?(\d+)")


class Declined(Exception):
    """The problem is not one for toulbar2."""


def cells_of(groups: Sequence[Sequence[int]], variables: int) -> list[list[int]]:
    """Return what takes one of many values: groups that share no variable, the largest first, then the rest.

    A value is the literal that is true then; a variable in no group has its negation as value 0.
    """
    taken: set[int] = set()
    found: list[list[int]] = []
    for group in sorted(groups, key=len, reverse=True):
        names = {abs(literal) for literal in group}
        if taken.isdisjoint(names):
            taken |= names
            found.append(list(group))
    return found + [[-i, i] for i in range(1, variables + 1) if i not in taken]


class Translator:
    """Makes events of the lines that toulbar2 writes."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.cells = cells_of(header["groups"], header["variables"])
        self.atoms, self.unit, self.upper = header["atoms"], header["unit"], header["upper"]
        self.whole = header["whole"]  # whether no upper bound but the greatest cost was given
        self.number = header["number"]
        self.lost = 0

    def heard(self, line: bytes) -> list[dict[str, Any]]:
        """Return the events that a line stands for."""
        if line.startswith(b"{"):
            return [json.loads(line)]
        if line.startswith(b" ") and line.split() and self.lost >= 0:
            values = [int(value) for value in line.split()] if re.fullmatch(rb"[\d ]+", line) else []
            lost, self.lost = self.lost, -1
            if len(values) >= len(self.cells):  # what is over says which sums are broken
                return [self._event("world", lost=lost * self.unit, world=self._world(values))]
            return []
        if line.startswith(b"No solution in"):
            return [self._event("end", all=True) if self.whole else self._bound(self.upper)]
        found = _LINE.match(line)
        if found is None:
            return []
        cost = int(found[2])
        if found[1] == b"New solution":
            self.lost = cost
            return []
        return [self._bound(cost)]

    def _bound(self, cost: int) -> dict[str, Any]:
        return self._event("bound", lost=cost * self.unit)

    def _event(self, kind: str, **parts: Any) -> dict[str, Any]:
        return {"number": self.number, "kind": kind, **parts}

    def _world(self, values: list[int]) -> str:
        true = ["0"] * self.atoms
        for cell, value in zip(self.cells, values, strict=False):
            for place, literal in enumerate(cell):
                if abs(literal) <= self.atoms and (place == value) is (literal > 0):
                    true[abs(literal) - 1] = "1"
        return "".join(true)


class CostNetwork:
    """Cost functions as they are collected: a table for each pair, and what is longer one by one."""

    def __init__(self, cells: list[list[int]], top: int) -> None:
        self.cells, self.top = cells, top
        self.where: dict[int, tuple[int, int]] = {}
        for number, cell in enumerate(cells):
            for value, literal in enumerate(cell):
                self.where[literal] = (number, value)
        self.base = 0
        self.unary: dict[int, Any] = {}
        self.binary: dict[tuple[int, int], Any] = {}
        self.longer: list[tuple[list[int], list[list[int]], int]] = []
        self.sums: list[tuple[dict[int, list[int]], int, int, int]] = []
        self.left = CELLS

    def counts(self, row: Sequence[int]) -> dict[int, list[int]]:
        """Return for each variable how many literals of a row each of its values makes true."""
        found: dict[int, list[int]] = {}
        for literal in row:
            if literal in self.where:
                number, value = self.where[literal]
                count = found.setdefault(number, [0] * len(self.cells[number]))
                count[value] += 1
            else:
                number, value = self.where[-literal]
                count = found.setdefault(number, [0] * len(self.cells[number]))
                for other in range(len(count)):
                    count[other] += other != value
        return found

    def add(self, row: Sequence[int], low: int, high: int, weight: int) -> None:
        """Add a demand: what breaks it costs its weight, or too much where it is hard."""
        import numpy as np

        cost = weight or self.top
        counts = self.counts(row)
        scope = sorted(counts)
        if high < 0:
            high = len(row)
        if len(scope) < 2:
            count = np.array(counts[scope[0]] if scope else [0])
            broken = (count < low) | (count > high)
            if not scope:
                self.base += cost * bool(broken[0])
                return
            table = self.unary.setdefault(scope[0], np.zeros(len(count), np.int64))
            np.minimum(table + cost * broken, self.top, out=table)
            return
        if len(scope) == 2:
            a, b = (np.array(counts[number]) for number in scope)
            pair = (scope[0], scope[1])
            table = self.binary.get(pair)
            if table is None:
                self._use(len(a) * len(b))
                table = self.binary[pair] = np.zeros((len(a), len(b)), np.int64)
            if low == 1 and high >= len(row):  # a clause: few pairs of values break it
                at = np.ix_(np.flatnonzero(a == 0), np.flatnonzero(b == 0))
                table[at] = np.minimum(table[at] + cost, self.top)
            else:
                count = a[:, None] + b
                np.minimum(table + cost * ((count < low) | (count > high)), self.top, out=table)
            return
        some = [[value for value, count in enumerate(counts[number]) if not count] for number in scope]
        clause = low == 1 and high >= len(row)
        size = 1
        for number, false in zip(scope, some, strict=True):
            size *= len(false) if clause else len(counts[number])
        if size == 0:
            return
        if size > TABLE:
            self._use(len(row))
            self.sums.append((counts, low, high, weight))
            return
        self._use(size * len(scope))
        if clause:
            tuples = [list(values) for values in product(*some)]
        else:
            tuples = [
                list(values)
                for values in product(*(range(len(counts[number])) for number in scope))
                if not low <= sum(counts[n][v] for n, v in zip(scope, values, strict=True)) <= high
            ]
        if tuples:
            self.longer.append((scope, tuples, cost))

    def _use(self, cells: int) -> None:
        self.left -= cells
        if self.left < 0:
            raise Declined


def main() -> None:
    """Read a problem, and solve it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_caller()
    header = json.loads(sys.stdin.buffer.readline())
    literals = numbers("i", sys.stdin.buffer, header["literals"])
    weights = numbers("q", sys.stdin.buffer, header["weighted"])
    lows = numbers("i", sys.stdin.buffer, header["weighted"])
    highs = numbers("i", sys.stdin.buffer, header["weighted"])

    def say(kind: str) -> None:
        os.write(1, json.dumps({"number": header["number"], "kind": kind}).encode() + b"\n")

    try:
        network = CostNetwork(cells_of(header["groups"], header["variables"]), header["upper"])
        for row, weight, low, high in zip(rows_of(literals), weights, lows, highs, strict=True):
            network.add(row, low, high, weight)
        solve(network, header["seed"])
        say("end")
    except Declined:
        say("declined")
    except (MemoryError, ImportError):
        say("failed")
    threading.Event().wait()  # until our caller has heard it


def _end_with_caller() -> None:
    """Have the system end this process when its caller ends, however it does."""
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def solve(network: CostNetwork, seed: int) -> None:
    """Let toulbar2 search; it says itself what it finds."""
    import pytoulbar2

    top = network.top
    solver = pytoulbar2.CFN(ubinit=top, verbose=0, seed=seed + 1)
    for number, cell in enumerate(network.cells):
        solver.AddVariable(f"x{number}", range(len(cell)))
    if network.base >= top:
        print("No solution in", flush=True)
        return
    if network.base:
        solver.AddFunction([], network.base)
    for one, table in network.unary.items():
        solver.AddFunction([one], table.tolist())
    for pair, table in network.binary.items():
        if table.any():
            solver.AddFunction(list(pair), table.ravel().tolist())
    for scope, tuples, cost in network.longer:
        solver.AddCompactFunction(scope, 0, tuples, [cost] * len(tuples))
    for place, (counts, low, high, weight) in enumerate(network.sums):
        terms = [
            (number, value, count)
            for number, column in counts.items()
            for value, count in enumerate(column)
            if count
        ]
        most = sum(max(column) for column in counts.values())
        lower, upper = list(terms), list(terms)
        if weight:  # a variable says whether it is broken
            broken = solver.AddVariable(f"y{place}", range(2))
            solver.AddFunction([broken], [0, weight])
            lower.append((broken, 1, max(0, low)))
            upper.append((broken, 0, most))
        if low > 0:
            solver.AddGeneralizedLinearConstraint(lower, ">=", low)
        if high < most:
            solver.AddGeneralizedLinearConstraint(upper, "<=", high + (most if weight else 0))
    if solver.Solve(showSolutions=1) is None:  # it does not say so where it finds out beforehand
        print("No solution in", flush=True)


if __name__ == "__main__":
    main()
