"""``lbm warm``: compile every kernel now, so that no question runs without them."""

from __future__ import annotations

import time

from lbm.errors import FileError
from lbm.knowledge.printed import counted
from lbm.views.commands import shared


def warm_kernels(as_json: shared.Json = False) -> None:
    """Compile every kernel and store it, which takes a minute or so, once for each version and processor.

    Questions do not wait for it: until kernels are there, chains run in NumPy, with the same answers but
    slowly, and a process beside compiles them, which goes on for a minute after the command at most. With
    this command, say in a container's build, that is over before the first question. Kernels are stored
    beside the installed package, else in the user's cache, or in NUMBA_CACHE_DIR if that is set.

    With --json: cache, the directory; compiled and found, names of what was compiled now and before; seconds.
    """
    from lbm.reasoning.compiling import ready
    from lbm.reasoning.engine.warming import warm

    where = ready.directory()
    if where is None:
        raise FileError(
            "no cache for compiled kernels can be written, neither beside the package nor in the user's "
            "directory: set NUMBA_CACHE_DIR to a directory that can be"
        )
    began = time.monotonic()
    found = [piece for piece in ready.PIECES if piece in ready.done()]
    compiled: list[str] = []
    with shared.bar("compiling", len(ready.PIECES), "count", "left") as show:
        for number, piece in enumerate(warm(), start=1):
            show(number)
            if piece not in found:
                compiled.append(piece)
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        shared.say_json({"cache": str(where), "compiled": compiled, "found": found, "seconds": seconds})
    elif compiled:
        for piece in compiled:
            shared.say(ready.PIECES[piece])
        shared.say(f"{counted(len(compiled), 'piece')} compiled in {seconds:.0f} s, stored in {where}")
    else:
        shared.say(f"all {len(found)} pieces are in {where}")
