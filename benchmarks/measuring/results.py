"""Results: measured one instance at a time, kept in a file as they come, and shown as tables.

A result is plain JSON. With ``--json FILE`` every finished instance is stored at once, so that a run that was
stopped, or ran out of its minutes, goes on where it ended when the same command is given again. What was
measured with other versions, on another machine or from other sources of ours is measured again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "numpy numba scipy python-sat ortools dwave-samplers dimod pytoulbar2 pycmsgen pyganak pysdd "
    "klaycircuits scikit-learn torch"
).split()

Row = dict[str, Any]


# --- what is shown -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table of texts, the first column to the left and the others to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def text(self) -> str:
        """Return the table for a terminal."""
        cells = [list(self.columns), *map(list, self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        lines = [
            "  ".join(
                f"{cell:<{w}}" if not k else f"{cell:>{w}}"
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        return "\n".join(
            [self.title, *(f"  {line.rstrip()}" for line in lines), *([self.note] if self.note else [])]
        )

    def markdown(self) -> str:
        """Return the table for a page."""
        rows = [list(self.columns), ["---", *["---:"] * (len(self.columns) - 1)], *map(list, self.rows)]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([f"**{self.title}**", "", *lines, *(["", self.note] if self.note else [])])


@dataclass(frozen=True)
class Section:
    """What one script has to say: its tables, and what was wanted with whether it is so."""

    tables: Sequence[Table]
    wanted: Sequence[tuple[str, bool]] = field(default_factory=tuple)

    def text(self) -> str:
        """Return the section for a terminal."""
        goals = [f"{'met' if met else 'NOT MET'}: {goal}" for goal, met in self.wanted]
        tables = [table.text() for table in self.tables if table.rows]
        return "\n\n".join([*tables, *(["\n".join(goals)] if goals else [])])

    def markdown(self) -> str:
        """Return the section for a page."""
        goals = [f"- {'met' if met else '**not met**'}: {goal}" for goal, met in self.wanted]
        said = ["\n".join(["What was wanted:", "", *goals])] if goals else []
        return "\n\n".join([*(table.markdown() for table in self.tables if table.rows), *said])


def quartiles(values: Iterable[float | None]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper one, each a value that occurs; None is past all.

    >>> quartiles([4, 1, None, 2, 3])
    (2, 3, 4)
    """
    ordered = sorted(math.inf if value is None else value for value in values)
    if not ordered:
        return math.nan, math.nan, math.nan
    low, middle, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.25, 0.5, 0.75))
    return low, middle, high


def spread(values: Iterable[float | None], form: Callable[[float], str]) -> str:
    """Return the median and, in parentheses, the quartiles."""
    low, middle, high = quartiles(values)
    if math.isnan(middle):
        return "not measured"
    shown = form(middle)
    return shown if low == middle == high else f"{shown} ({form(low)} to {form(high)})"


def seconds(value: float) -> str:
    """Return a time for people."""
    if math.isinf(value):
        return "never"
    if value >= 99.5:
        return f"{value:,.0f} s"
    if value >= 0.9995:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 0.9995e-3 else f"{1e6 * value:.3g} µs"


def whole(value: float) -> str:
    """Return a number without decimals; what is past all numbers is ``none``."""
    return "none" if math.isinf(value) else f"{value:,.0f}"


def times(value: float) -> str:
    """Return a ratio, with two digits that mean something."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2g}"


def ratio(above: float | None, below: float | None) -> float | None:
    """Return above / below where both are known; 0 where only the one below is not."""
    if above is None:
        return None
    return 0.0 if below is None else above / below


# --- what is kept ------------------------------------------------------------------------------------


class Run:
    """One run of a script: its options, and the results so far; ``more`` adds options of its own."""

    def __init__(
        self, script: str, doc: str, more: Callable[[argparse.ArgumentParser], object] | None = None
    ) -> None:
        parser = argparse.ArgumentParser(description=doc.splitlines()[0])
        parser.add_argument("--quick", action="store_true", help="two instances of a kind, and short budgets")
        parser.add_argument(
            "--json", type=Path, metavar="FILE", help="keep results there, and go on from them"
        )
        parser.add_argument("--fresh", action="store_true", help="forget what FILE holds")
        help_minutes = "begin no instance after so many; by default 10 if results are kept, else no limit"
        parser.add_argument("--minutes", type=float, help=help_minutes)
        parser.add_argument("--only", default="", metavar="TEXT", help="measure the keys that contain this")
        parser.add_argument("--one-core", action="store_true", help="keep all sides to one core, helpers too")
        if more is not None:
            more(parser)
        self.options = options = parser.parse_args()
        self.script, self.quick, self.path = script, options.quick, options.json
        self.fresh, self.only = options.fresh, options.only
        usual = math.inf if self.path is None else 10.0
        self.minutes = usual if options.minutes is None else options.minutes
        self.complete = True
        from lbm.reasoning.compiling.ready import compile_here

        compile_here()  # what is not in numba's cache is compiled when it is first called, not aside
        if options.one_core:
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        self.head = {
            "script": script,
            "quick": self.quick,
            "machine": machine(),
            "versions": versions(),
            "sources": sources(),
        }

    def number(self, usual: int) -> int:
        """Return how many instances of a kind there are."""
        return min(2, usual) if self.quick else usual

    def each(self, keys: Sequence[Sequence[Any]], measure: Callable[..., Row]) -> list[Row]:
        """Return a row for every key, measured now unless it is known; ``measure`` is called with the key."""
        begun = time.monotonic()
        known = {tuple(row["key"]): row for row in self._read()}
        rows: list[Row] = []
        try:
            for number, key in enumerate(map(tuple, keys), start=1):
                if key not in known:
                    late = time.monotonic() - begun > 60 * self.minutes
                    if late or self.only not in " ".join(map(str, key)):
                        self.complete = False
                        continue
                    print(f"{self.script}: {number} of {len(keys)}: {key}", file=sys.stderr, flush=True)
                    known[key] = {"key": list(key), **measure(*key)}
                rows.append(known[key])
                self._write(rows)
        except KeyboardInterrupt:
            self.complete = False
        return rows

    def show(self, section: Section) -> None:
        """Print what was measured, and say what to do if that is not all."""
        where = self.head["machine"]
        print(f"{where['processor']}, {where['cores']} cores; medians (and quartiles)\n")
        print(section.text())
        if not self.complete:
            kept = f"kept in {self.path}" if self.path else "not kept: give --json FILE"
            print(f"\nnot all was measured; {kept}, and the same command goes on from there")
            sys.exit(3)

    def _read(self) -> list[Row]:
        if self.path is None or self.fresh or not self.path.exists():
            return []
        stored = json.loads(self.path.read_text(encoding="utf-8"))
        other = [name for name, value in self.head.items() if stored.get(name) != value]
        if other:
            print(f"{self.path}: other {', '.join(other)}; measured again", file=sys.stderr)
            return []
        rows: list[Row] = stored["rows"]
        return rows

    def _write(self, rows: list[Row]) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**self.head, "rows": rows}, indent=1, ensure_ascii=False)
        part = self.path.with_suffix(".part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(self.path)


def machine() -> dict[str, Any]:
    """Return what the machine is, as far as it says so."""
    processor = platform.processor() or platform.machine()
    memory = None
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": processor,
        "cores": cores,
        "memory": memory,
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the packages that figures may depend on, of those that are installed."""
    found = {"lbm": metadata.version("logical-boltzmann")}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def sources() -> str:
    """Return a digest of our own code, as far as answers run through it."""
    digest = hashlib.sha256()
    for room in ("knowledge", "logic", "machine", "reasoning"):
        for path in sorted((ROOT / "src" / "lbm" / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
