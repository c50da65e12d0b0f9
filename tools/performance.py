"""Write docs/performance.md from the stored results of the benchmarks.

    python tools/performance.py            # write the page from benchmarks/results/*.json
    python tools/performance.py --run      # first measure what is missing there, more than an hour in all
    python tools/performance.py --check    # compare: exit 1 if the page says something else

Every section is one script: its docstring, and its tables made from its results. A script ends after some ten
minutes even if instances are left, and goes on when it is called again; --run calls it until none is left.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
PAGE = ROOT / "docs" / "performance.md"
SCRIPTS = (
    *(
        "maxsat3",
        "maxsat2",
        "sat",
        "sampling",
        "structured",
        "families",
        "updates",
        "connectives",
        "memory",
        "start",
    ),
    *("compiled", "reach", "training", "knowledge_curve", "tables", "saturation"),
)
UNFINISHED = 3  # how a script ends that has instances left

HEAD = """\
# Performance

What `lbm` does beside the tools that people use today, both measured in the same run. Figures depend on the
machine, ratios less so, and ratios below 2 say little. Each figure is a median over instances, with the
quartiles in parentheses where they differ. Times are wall-clock times.

This page is written by `python tools/performance.py` from the results in `benchmarks/results/`;
`python tools/performance.py --run` measures them anew."""


def main() -> None:
    """Write the page, or compare it, after measuring what is missing if that is asked for."""
    parser = argparse.ArgumentParser(
        description="Write docs/performance.md from the results of the benchmarks."
    )
    parser.add_argument("--run", action="store_true", help="measure what is missing first")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there instead")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is")
    options = parser.parse_args()
    if options.run:
        measure(options.results)
    text = page(options.results)
    if not options.check:
        options.page.write_text(text, encoding="utf-8")
    elif not options.page.exists() or options.page.read_text(encoding="utf-8") != text:
        sys.exit(
            f"performance.py: {options.page} is not what {options.results} gives: run it without --check"
        )


def measure(results: Path) -> None:
    """Run every script until it has nothing left to measure."""
    for name in SCRIPTS:
        order = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--json", str(results / f"{name}.json")]
        print(f"\n== {' '.join(order[1:])}", flush=True)
        while (status := subprocess.run(order, check=False).returncode) == UNFINISHED:
            print("== again, for what is left", flush=True)
        if status:
            sys.exit(f"performance.py: {name}.py ended with status {status}")


def page(results: Path) -> str:
    """Return the page for the results in a directory."""
    stored = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files(results).items()}
    if not stored:
        sys.exit(f"performance.py: no results in {results}: --run measures them")
    parts = [HEAD, about(stored.values())]
    if (said := results / "conditions.txt").exists():  # what the machine did beside, as far as it is known
        parts.insert(1, said.read_text(encoding="utf-8").strip())
    sys.path.insert(0, str(BENCHMARKS))
    for name, found in stored.items():
        parts.append(section(importlib.import_module(name), found))
    return "\n\n".join(parts) + "\n"


def files(results: Path) -> dict[str, Path]:
    """Return the files of results that are there, in the order of the page."""
    return {name: results / f"{name}.json" for name in SCRIPTS if (results / f"{name}.json").exists()}


def about(stored: Iterable[dict[str, Any]]) -> str:
    """Return what was measured on, and with which versions; where runs differ, all that were."""
    runs = list(stored)
    machines = "; ".join(dict.fromkeys(machine_said(run["machine"]) for run in runs))
    names = dict.fromkeys(name for run in runs for name in run["versions"])
    each = {name: [run["versions"][name] for run in runs if name in run["versions"]] for name in names}
    versions = [f"{name} {' and '.join(dict.fromkeys(found))}" for name, found in each.items()]
    lines = ["| | |", "| --- | --- |", f"| machine | {machines} |", f"| versions | {', '.join(versions)} |"]
    if len({run["sources"] for run in runs}) > 1:
        lines.append("| sources | `lbm` changed between some of these runs |")
    return "\n".join(lines)


def machine_said(machine: dict[str, Any]) -> str:
    """Return a machine in words."""
    memory = f", {machine['memory']} GiB" if machine["memory"] else ""
    cores = f"{machine['cores']} core{'' if machine['cores'] == 1 else 's'}"
    return f"{machine['processor']}, {cores}{memory}, {machine['system']}, Python {machine['python']}"


def section(script: Any, found: dict[str, Any]) -> str:
    """Return the section of one script."""
    command = f"`python benchmarks/{found['script']}.py --json benchmarks/results/{found['script']}.json`"
    quick = ["**A quick run: two instances of a kind and short budgets, so read nothing into it.**"]
    return "\n\n".join(
        [
            f"## {script.TITLE}",
            *(quick if found["quick"] else []),
            inspect.cleandoc(script.__doc__),
            f"Measured by {command}.",
            script.section(found["rows"]).markdown(),
        ]
    )


if __name__ == "__main__":
    main()
