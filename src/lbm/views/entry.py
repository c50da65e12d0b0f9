"""The console script: runs a command and turns whatever goes wrong into one line and an exit status."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, cast

from lbm.errors import LbmError

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports of a program whose reader went away


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``lbm`` with these arguments, by default those of the process; return the exit status.

    0 answered; 1 answered "no"; 2 bad input or usage; 3 no answer within the budget; 130 interrupted.
    Errors are one line on standard error. With LBM_DEBUG=1 their traceback stands before it.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _speak_utf8()
        if arguments == ["--version"]:  # answered before anything is imported
            from lbm import __version__

            print(f"lbm {__version__}")
            status = 0
        else:
            status = _run(arguments or ["--help"])
        _flush()
    except BaseException as error:  # noqa: BLE001 - the one place where nothing may pass
        return _explain(error)
    return status


def _run(arguments: list[str]) -> int:
    """Run the command; what it returns is the status, and nothing returned is 0."""
    import typer

    from lbm.reasoning.engine import ready
    from lbm.views.commands import app

    ready.tell = _remark
    # Errors of usage have this base; the module that defines it is not the same in every typer.
    usage_error = cast(type[Exception], typer.BadParameter.__mro__[1])
    command = typer.main.get_command(app)
    try:
        with warnings.catch_warnings(), command.make_context("lbm", arguments) as context:
            warnings.showwarning = _show_warning
            return command.invoke(context) or 0
    except typer.Exit as done:
        return int(done.exit_code)
    except usage_error as error:
        raise _Usage(error) from error


class _Usage(LbmError):
    """A command that was called wrongly: what is wrong, and where to read how it is called."""

    def __init__(self, error: Any) -> None:
        message = " ".join(error.format_message().split()).rstrip(".")
        path = "lbm" if error.ctx is None else error.ctx.command_path
        super().__init__(f"{message}; '{path} --help' tells more")


def _explain(error: BaseException) -> int:
    """Say in one line what happened, and return the status that goes with it."""
    if os.environ.get("LBM_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, LbmError):
        return _complain(error.one_line(), error.exit_status)
    if isinstance(error, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        _forget_output()
        return BROKEN_PIPE
    if isinstance(error, MemoryError):
        return _complain("not enough memory for this; LBM_DEBUG=1 shows where it ran out", 2)
    if isinstance(error, OSError):  # a full disk behind standard output, most likely
        _forget_output()
        return _complain(f"{error.strerror or error}; LBM_DEBUG=1 shows where", 2)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _complain(f"a bug in lbm, please report it: {what}; LBM_DEBUG=1 shows the traceback", 2)


def _complain(message: str, status: int) -> int:
    if sys.stderr is not None:
        print(f"lbm: {one_line(message)}", file=sys.stderr)
    return status


def _remark(message: str) -> None:
    _complain(message, 0)


def one_line(text: str) -> str:
    r"""Return text on one line that no terminal takes for a command: the rest is escaped.

    >>> one_line("no file 'a\x1b[2J'\nhere")
    "no file 'a\\x1b[2J' here"
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _complain(f"warning: {message}", 0)


def _speak_utf8() -> None:
    """Write UTF-8 whatever the console's code page; what cannot be encoded is escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> None:
    """Write out what is left now, while a failure can still be told."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _forget_output() -> None:
    """Let the interpreter's last flush go nowhere: it would fail again, in more than one line."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):  # no real file behind it: nothing to flush
        pass
