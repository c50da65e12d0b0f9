"""The console script: runs a command and turns whatever goes wrong into one line and an exit status."""

from __future__ import annotations

# An interrupt is answered from here on: what takes a moment to import comes later, and so does the module
# ``signal``, which gives names to the numbers of this one.
import _signal as signal  # type: ignore[import-not-found]  # typeshed does not list it
import os
import sys
import time

FIRST_LINE = time.monotonic()
"""When this process came here, on the clock that budgets of time are counted by."""

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports of a program whose reader went away

MAX_MEMORY = 4 << 30
"""Bytes that a command may use, unless LBM_MEMORY says otherwise."""

LEAST_MEMORY = 512 << 20
"""Bytes without which a command may fail to load what it needs: libraries then end the process, or wait."""

LONG = 1024
"""Bytes of a theory past which solvers are started before it is read."""

LATEST = 1.0
"""Seconds from the start of a process to our first line; if they are more, it was something else before."""

_AGAIN = 0.01  # seconds after which a signal that was lost is sent again: what lost it has ended by then


def _quit(*_: object) -> None:
    """End at once: there is nothing yet, or nothing any more, that would be lost."""
    try:
        os.write(2, b"lbm: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


def _is_command() -> bool:
    """Return whether this process is the command line, and not one that imports us."""
    parts = (sys.argv[0] if sys.argv else "").replace("\\", "/").split("/")
    return parts[-1].removesuffix(".exe") == "lbm" or parts[-2:] == ["lbm", "__main__.py"]


_COMMAND = _is_command()
if _COMMAND and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _quit)

TYPE_CHECKING = False  # that of typing, which takes a moment to load
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM: what was found so far is printed, as after an interrupt."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``lbm`` with these arguments, by default those of the process; return the exit status.

    0 answered; 1 answered "no"; 2 bad input or usage; 3 no answer within the budget; 130 interrupted.
    Errors are one line on standard error. With LBM_DEBUG=1 their traceback stands before it. Budgets of time
    count from the start of the process, if it is ours, else from this call.
    """
    whole = arguments is None and _COMMAND
    status = INTERRUPTED
    try:
        try:
            if whole:
                _listen()
            status = _answer(list(sys.argv[1:] if arguments is None else arguments), whole)
        except BaseException as error:  # noqa: BLE001 - the one place where nothing may pass
            status = _explain(error)
    except KeyboardInterrupt:  # a second one, while the first was being told
        pass
    if whole:
        _hear_no_more(status)
    return status


def _answer(arguments: list[str], whole: bool) -> int:
    from contextvars import copy_context

    _speak_utf8()
    if arguments == ["--version"]:  # answered before anything is imported
        from lbm import __version__

        print(f"lbm {__version__}")
        status = 0
    else:
        if whole:
            bound_memory()
            _prepare(arguments)
        # What a command sets is for itself.
        status = copy_context().run(_run, arguments or ["--help"], started() if whole else None)
    if sys.stdout is not None:
        sys.stdout.flush()  # now, while a failure can still be told
    return status


def _run(arguments: list[str], began: float | None) -> int:
    """Run the command; what it returns is the status, and nothing returned is 0."""
    import warnings
    from math import inf

    import typer

    from lbm.errors import LbmError
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.compiling import ready
    from lbm.views import commands
    from lbm.views.commands import shared

    ready.tell = shared.remark
    shared.begin()
    if began is not None:
        shared.count_from(began)
    # Errors of usage have this base; the module that defines it is not the same in every typer.
    usage_error: Any = typer.BadParameter.__mro__[1]
    command = typer.main.get_command(commands.app)
    try:
        with warnings.catch_warnings(), command.make_context("lbm", arguments) as context:
            warnings.showwarning = lambda message, *_, **__: shared.warn(str(message))
            return command.invoke(context) or 0
    except typer.Exit as done:
        return int(done.exit_code)
    except usage_error as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        path = "lbm" if error.ctx is None else error.ctx.command_path
        raise LbmError(f"{message}; '{path} --help' tells more") from error
    except LbmError as error:
        if "--json" in arguments:
            shared.say_refusal(error)
        raise
    finally:
        Budget.limit = inf


# --- time, memory and signals ------------------------------------------------------------------------


def started(first_line: float = FIRST_LINE) -> float:
    """Return when this process began, as near as one can tell, on the clock of ``time.monotonic``.

    It was ours at ``first_line``, and at most LATEST seconds before.
    """
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - at once
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        began = time.monotonic() - age
    except (OSError, ValueError, AttributeError, IndexError):  # not Linux
        began = first_line - time.process_time()
    if 0 <= first_line - began <= LATEST:
        return began
    return first_line - min(LATEST, time.process_time())  # a shell, say, that became us


def memory_allowed() -> int | None:
    """Return how many bytes a command may use: LBM_MEMORY or MAX_MEMORY; None: as many as there are."""
    from lbm.errors import LbmError

    said = os.environ.get("LBM_MEMORY", "").strip()
    if not said:
        return MAX_MEMORY
    if said.lower() == "none":
        return None
    unit = {"K": 10, "M": 20, "G": 30, "T": 40}.get(said[-1].upper(), 0)
    number = said[:-1] if unit else said
    allowed = int(number) << unit if number.isascii() and number.isdigit() else 0
    if allowed < LEAST_MEMORY:
        raise LbmError(
            "LBM_MEMORY is a number of bytes, as in 4G, and 512M at least, or none for no limit, "
            f"got {said!r}: correct it, or leave it out for 4G"
        )
    return allowed


def bound_memory() -> None:
    """Let an allocation past the budget fail, here and in processes of ours, and not the machine."""
    allowed = memory_allowed()
    try:
        import resource
    except ImportError:  # not POSIX
        return
    if allowed is None:
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY or most > allowed:
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))
        except (OSError, ValueError):  # a system that does not know this limit
            return


def _prepare(arguments: list[str]) -> None:
    """Start the process of solvers before anything else is loaded, where a long file is asked about."""
    if arguments[:1] != ["best"] or not {"-h", "--help"}.isdisjoint(arguments):
        return
    if any(is_long(argument) for argument in arguments[1:]):
        from lbm.reasoning.solvers.aside import prepare

        prepare()


def is_long(file: str) -> bool:
    """Return whether a file is so long that questions about it may need solvers; standard input may be."""
    try:
        return file == "-" or os.stat(file).st_size > LONG  # noqa: PTH116 - at once
    except (OSError, ValueError):  # whoever reads it says so
        return False


def _listen() -> None:
    """Turn signals that ask us to end into exceptions, so that what was found so far is printed."""

    def terminate(*_: object) -> None:
        raise Terminated

    try:
        if signal.getsignal(signal.SIGINT) is _quit:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, terminate)
    except ValueError:  # not in the main thread
        return
    sys.unraisablehook = _hear_again


def _hear_again(lost: Any) -> None:
    """Send a signal again that came where Python drops exceptions, in a destructor for one.

    Not before this hook has ended: what is raised in it is dropped, too.
    """
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import threading

    number = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
    here = threading.get_ident()

    def send() -> None:
        while _is_in_hook(here):
            time.sleep(_AGAIN)
        os.kill(os.getpid(), number)

    again = threading.Timer(_AGAIN, send)
    again.daemon = True
    again.start()


def _is_in_hook(thread: int) -> bool:
    """Return whether a thread is inside the hook for exceptions that Python drops."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code is not _hear_again.__code__:
        frame = frame.f_back
    return frame is not None


def _hear_no_more(status: int) -> None:
    """Let signals that come while the interpreter ends do so at once: all is said."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
                signal.signal(number, lambda *_: os._exit(status))
    except ValueError:  # not in the main thread
        return


# --- what went wrong ---------------------------------------------------------------------------------


def _explain(error: BaseException) -> int:
    """Say in one line what happened, and return the status that goes with it."""
    from lbm.errors import LbmError

    if os.environ.get("LBM_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, LbmError):
        return _complain(error.one_line(), error.exit_status)
    ended = _interrupt_behind(error)
    if ended is not None:
        return _complain("terminated" if isinstance(ended, Terminated) else "interrupted", INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        _forget(sys.stdout)
        return BROKEN_PIPE
    if isinstance(error, MemoryError):
        return _complain(
            "no answer within the memory that a command may use (LBM_MEMORY, 4G if it is not set): "
            "allow more, as in LBM_MEMORY=8G",
            3,
        )
    if isinstance(error, OSError):  # a full disk behind standard output, most likely
        _forget(sys.stdout)
        return _complain(f"{error.strerror or error}; LBM_DEBUG=1 shows where", 2)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _complain(f"a bug in lbm, please report it: {what}; LBM_DEBUG=1 shows the traceback", 2)


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interrupt that an error is or comes from: Python may turn one into another error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _complain(message: str, status: int) -> int:
    say_aside(f"lbm: {one_line(message)}")
    return status


def say_aside(line: str) -> None:
    """Print a line on standard error; where that is closed or full, go on as if it had been heard."""
    if sys.stderr is None:
        return
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _forget(sys.stderr)


def one_line(text: str) -> str:
    r"""Return text on one line that no terminal takes for a command: the rest is escaped.

    >>> one_line("no file 'a\x1b[2J'\nhere")
    "no file 'a\\x1b[2J' here"
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def _speak_utf8() -> None:
    """Write UTF-8 whatever the console's code page; what cannot be encoded is escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _forget(stream: Any) -> None:
    """Let the interpreter's last flush go nowhere: it would fail again, in more than one line."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):  # no real file behind it: nothing to flush
        pass
