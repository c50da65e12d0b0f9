"""Count the files of the package that a command walks through.

    python tools/walk.py ask examples/nixon.lbm p --given n
    python tools/walk.py --most 30 ask examples/nixon.lbm p --given n      # exit status 1 if there are more
    python tools/walk.py --names best problem.cnf                          # the functions, too

The command runs twice in this process. The first run imports all that it needs; the second is traced by
`sys.setprofile`, in threads too. Counted are the distinct files of the package whose functions are entered in
the second run: functions and methods, with lambdas and comprehensions where Python makes functions of them.
The bodies of modules and classes, which only imports run, are not counted, nor is what other processes do,
nor compiled kernels, which a profiler does not see. A generator is entered each time it goes on.

Printed in the order in which files are first entered: how many functions of each ran, how often they were
entered, and the sums. lbm is whatever PYTHONPATH gives, so that any checkout can be counted.
"""

from __future__ import annotations

import argparse
import inspect
import io
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


@dataclass
class Visit:
    """What ran of one file."""

    functions: set[CodeType] = field(default_factory=set)
    calls: int = 0


def walk(arguments: Sequence[str]) -> dict[str, Visit]:
    """Return what a command enters when it runs for the second time, by file, in order of first entry."""
    import lbm
    from lbm.__main__ import main

    room = str(Path(lbm.__file__).parent) + os.sep
    visits: dict[str, Visit] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(room):
            visit = visits.setdefault(code.co_filename.removeprefix(room), Visit())
            visit.functions.add(code)
            visit.calls += 1

    first = quietly(main, arguments)
    if first == 2:
        sys.exit(f"walk.py: lbm {' '.join(arguments)} is no question: its exit status is 2")
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        quietly(main, arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return visits


def quietly(main: Any, arguments: Sequence[str]) -> int:
    """Run a command, and let nobody hear what it says."""
    out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(error):
        return int(main(list(arguments)))


def main() -> int:
    """Print the files that a command walks through, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--most", type=int, metavar="FILES", help="exit status 1 if there are more")
    parser.add_argument("--names", action="store_true", help="print the functions of each file, too")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what follows lbm on the command line")
    options = parser.parse_args()
    if not options.command:
        parser.error("name a command of lbm, as in ask examples/nixon.lbm p")
    visits = walk(options.command)
    print(f"{'functions':>9}  {'calls':>9}  file")
    for name, visit in visits.items():
        print(f"{len(visit.functions):9,}  {visit.calls:9,}  {name}")
        if options.names:
            print(f"{'':22}  {', '.join(sorted(code.co_qualname for code in visit.functions))}")
    functions = sum(len(visit.functions) for visit in visits.values())
    calls = sum(visit.calls for visit in visits.values())
    print(f"{functions:9,}  {calls:9,}  in {len(visits)} files")
    return 1 if options.most is not None and len(visits) > options.most else 0


if __name__ == "__main__":
    sys.exit(main())
