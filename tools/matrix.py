"""Ask every public question, by every method, of theories of every sort and many sizes.

    python tools/matrix.py [--sizes 10,65,129,1000,10000] [--sorts hard,soft] [--seconds 5] [--json OUT]
                           [--no-commands] [--quiet]

Each question is answered, and right where the truth is known, or refused by name. Questions about one theory
are asked in a process of its own that may use ADDRESSES of addresses; its peak of memory must stay below
MEMORY. An answer after its seconds and SLACK more is printed as late. The exit status is 1 if a question ends
in an error not raised on purpose, a wrong answer, a dead process, no end, or too much memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.matrix.cells import COMMANDS, QUESTIONS, Cell, cells, command
from tests.matrix.shapes import ALL, shape

SIZES = (10, 65, 129, 1000, 10_000)
ADDRESSES = 4 << 30
MEMORY = 2 << 30
SLACK = 2.0
COMPILING = 90.0


def patience(seconds: float, atoms: int) -> float:
    """Return after how many seconds a question has no end."""
    return 30 + 4 * seconds + atoms / 500


def peak() -> int:
    """Return the most memory that this process or one of those it started has used, in bytes."""
    own, others = (
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return max(own, others) * 1024


def child(sort: str, atoms: int, seconds: float, skip: int) -> None:
    """Ask about one theory, and print a line for each question."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    asked = shape(sort, atoms)
    for one in cells(asked, seconds, skip=skip):
        print(json.dumps({**one, "memory": peak()}), flush=True)


def asked_aside(sort: str, atoms: int, seconds: float) -> Iterator[tuple[Cell, int]]:
    """Yield what becomes of each question; another process asks, and where it dies a new one goes on."""
    done = 0
    while done < len(QUESTIONS):
        order = [sys.executable, __file__, "--child", sort, str(atoms), f"{seconds:g}", str(done)]
        with subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in _lines(process, patience(seconds, atoms), COMPILING):
                told = json.loads(line)
                memory = told.pop("memory")
                yield Cell(**told), memory
                done += 1
            ended = process.poll()
            if ended is None:
                process.kill()
            process.wait()
            last = (process.stderr.read() if process.stderr is not None else "").strip()[-200:]
        if done < len(QUESTIONS):
            what = "no end" if ended is None else "died"
            question, way = QUESTIONS[done]
            yield Cell(sort, atoms, question, way, what, f"exit {process.returncode}: {last}", 0.0), 0
            done += 1


def _lines(process: subprocess.Popen[str], wait: float, more: float) -> Iterator[str]:
    """Yield lines of a process until it ends, or says nothing for too long; the first may take ``more``."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    rest = ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        until = time.monotonic() + wait + more
        while selector.select(max(0.0, until - time.monotonic())):
            text = os.read(process.stdout.fileno(), 1 << 16).decode()
            if not text:
                process.wait(10)
                return
            *whole, rest = (rest + text).split("\n")
            if whole:
                yield from whole
                until = time.monotonic() + wait


def main() -> int:
    """Ask all, print what is wrong and what is late, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--sorts", default=",".join(ALL))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", type=Path, help="write every question to this file")
    parser.add_argument("--no-commands", action="store_true", help="ask nothing by command")
    parser.add_argument("--quiet", action="store_true", help="print no line for each theory")
    options = parser.parse_args()
    sizes, sorts = [int(size) for size in options.sizes.split(",")], options.sorts.split(",")
    if unknown := set(sorts) - set(ALL):
        parser.error(f"no sort is called {unknown.pop()!r}: expected some of {', '.join(ALL)}")

    found: list[tuple[Cell, int]] = []
    began = time.monotonic()
    for atoms in sizes:
        for sort in sorts:
            some = list(asked_aside(sort, atoms, options.seconds))
            if not options.no_commands:
                asked, wait = shape(sort, atoms), patience(options.seconds, atoms) + COMPILING
                some += [command(asked, name, options.seconds, wait, ADDRESSES) for name in COMMANDS]
            found += some
            tell(some, options.seconds, options.quiet)
    if options.json:
        options.json.write_text(
            "[\n" + ",\n".join(json.dumps({**vars(c), "memory": m}) for c, m in found) + "\n]\n"
        )
    return judge(found, options.seconds, time.monotonic() - began)


def late(one: Cell, seconds: float) -> bool:
    """Return whether an answer took longer than it was given."""
    return one.seconds > seconds + SLACK


def tell(some: list[tuple[Cell, int]], seconds: float, quiet: bool) -> None:
    """Print a line about one theory, and one for each question that went wrong or was late."""
    first = some[0][0]
    counts = Counter(one.outcome for one, _ in some)
    memory = max(memory for _, memory in some)
    if not quiet:
        said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
        taken = sum(one.seconds for one, _ in some)
        print(f"{first.atoms:>8} {first.sort:17} {said}; {taken:.1f} s, {memory / 2**20:.0f} MiB", flush=True)
    for one, _ in some:
        if one.failed or late(one, seconds):
            what = one.outcome if one.failed else "late"
            print(
                f"    {what.upper()}  {one.question} {one.way}, {one.seconds:.1f} s: {one.said}", flush=True
            )


def judge(found: list[tuple[Cell, int]], seconds: float, taken: float) -> int:
    """Print the sums, and return 1 if something is wrong."""
    counts = Counter(one.outcome for one, _ in found)
    behind = sum(late(one, seconds) for one, _ in found)
    memory = max((memory for _, memory in found), default=0)
    said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    print(f"\n{len(found)} questions in {taken:.0f} s: {said}; {behind} late")
    print(f"most memory: {memory / 2**20:.0f} MiB (allowed: {MEMORY / 2**20:.0f})")
    return 1 if any(one.failed for one, _ in found) or memory > MEMORY else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
        sys.exit(0)
    sys.exit(main())
