"""What comes in and goes out: files or standard input, lines for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from lbm.errors import FileError, LbmError, LimitExceeded
from lbm.views.entry import one_line, say_aside

if TYPE_CHECKING:
    from lbm.knowledge.theory import Theory

STANDARD_INPUT: Final = "<stdin>"

_told: Final[ContextVar[bool]] = ContextVar("told")  # a JSON object was printed


# --- in ------------------------------------------------------------------------------------------


def read_theory(file: str, *, lenient: bool = False, soft_as_hard: bool = False) -> Theory:
    """Return the theory in a file, or in standard input if it is called ``-``."""
    from lbm.knowledge import wire

    if file != "-":
        theory = wire.load_theory(file, lenient=lenient, warn=warn)
    else:
        data = read_stdin()
        theory = wire.read_theory(
            data, format=wire.sniff_format(data), source=STANDARD_INPUT, lenient=lenient, warn=warn
        )
    return theory.all_hard() if soft_as_hard else theory


def read_stdin() -> bytes:
    """Return all of standard input, within the limit that files have."""
    from lbm.knowledge.wire import MAX_BYTES

    if sys.stdin is None:
        raise FileError("cannot read standard input: it is closed")
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileError(f"cannot read standard input: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise LimitExceeded(
            f"standard input has more than {MAX_BYTES} bytes (limit MAX_BYTES)",
            limit="MAX_BYTES",
            value=MAX_BYTES,
        )
    return data


def name_of(file: str) -> str:
    """Return what messages call a file."""
    return STANDARD_INPUT if file == "-" else file


# --- out -----------------------------------------------------------------------------------------


def say(*lines: str) -> None:
    """Print lines."""
    say_each(lines)


def say_each(lines: Iterable[str]) -> None:
    """Print lines as they come: all of them may not fit into memory."""
    for line in lines:
        print(line)


def say_json(facts: dict[str, Any]) -> None:
    """Print one JSON object, a key a line; iterators are written as lists while they run."""
    write = sys.stdout.write
    _told.set(True)
    for i, (key, value) in enumerate(facts.items()):
        write(f"{',' if i else '{'}\n  {json.dumps(key)}: ")
        if isinstance(value, Iterator):
            j = -1
            for j, item in enumerate(value):
                write(f"{',' if j else '['}\n    {_dumped(item)}")
            write("\n  ]" if j >= 0 else "[]")
        else:
            write(_dumped(value))
    write("\n}\n")


def begin() -> None:
    """Forget what other commands have printed."""
    _told.set(False)


def say_refusal(error: LbmError) -> None:
    """Print "no", or that there is no answer in time, as JSON; bad input is no answer, and prints nothing.

    A command that has printed an object of its own is left alone.
    """
    if error.exit_status in (1, 3) and not _told.get(False):
        say_json({"answer": False if error.exit_status == 1 else None, "reason": error.one_line()})


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def remark(*lines: str) -> None:
    """Print lines about the answer on standard error, where they are in nobody's way."""
    for line in lines:
        say_aside(f"lbm: {one_line(line)}")


def warn(message: str) -> None:
    """Print a warning on one line of standard error."""
    say_aside(f"lbm: warning: {one_line(message)}")


def working(what: str) -> AbstractContextManager[object]:
    """Show on a terminal that work is going on; in a pipe show nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


# --- words ---------------------------------------------------------------------------------------


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return ``1 atom`` or ``1,000 atoms``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def formulae_counted(hard: int, soft: int) -> str:
    """Return ``4 formulae (1 hard, 3 soft)``."""
    return f"{counted(hard + soft, 'formula', 'formulae')} ({hard:,} hard, {soft:,} soft)"


def count_statements(theory: Theory) -> tuple[int, int]:
    """Return the numbers of hard and of soft formulae."""
    hard = theory.weights.count(None)
    return hard, len(theory) - hard
