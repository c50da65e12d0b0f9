"""Which kernels are compiled, known without loading the compiler; and the process beside that compiles them.

No question waits for a compiler. Until kernels are in numba's cache, chains run in NumPy and other loops as
the Python that they are written in, with the same results; the first use of a loop that is not compiled
starts a process that compiles all of them, one after the other, and a run changes over between two calls.

What is compiled is written down in a file beside numba's own, one for each combination of versions,
processor and source: :data:`PIECES` that are done, a line each. A kernel whose file is deleted while that
one stays is compiled when it is called.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import subprocess

    import numpy as np

PIECES: Final = {
    "lanes int16 uint8": "chains, small whole weights",
    "presolve": "presolve",
    "walks": "walks",
    "valued": "searches over variables of many values",
    "sliced": "bit-sliced chains",
    "lanes int32 uint8": "chains, large whole weights",
    "lanes float64 uint8": "chains, other weights",
    "energy": "chains on free energies",
    "lanes int32 uint32": "chains, long formulae, whole weights",
    "lanes float64 uint32": "chains, long formulae, other weights",
    "exact": "elimination and circuits",
    "sums": "layers",
    "dense": "block Gibbs",
    "relations": "orders of examples",
}
"""What is compiled together, in this order: what most questions need comes first."""

LINGER: Final = 60.0
"""Seconds that the process beside may go on after the one that started it has ended."""

_ENGINE: Final = Path(__file__).parents[1] / "engine"  # where most kernels are, and numba's cache beside them
_SOURCES: Final = (  # that hold kernels
    Path(__file__).with_name("compiled.py"),
    Path(__file__).parents[1] / "exact" / "programs.py",
    Path(__file__).parents[1] / "exact" / "sum_loops.py",
    *(
        _ENGINE / f"{name}.py"
        for name in (
            "kernels sliced sliced_rows energy_kernels dense_kernels presolve walks "
            "gains alternatives values kicks duals"
        ).split()
    ),
)
_NEEDS: Final = {"sliced": "sliced_rows"}  # modules to load before the kernels of a piece are compiled
_LOOKS: Final = 0.2  # seconds between two looks at what has been compiled meanwhile
_NAME: Final = "lbm-kernels"

tell: Callable[[str], object] | None = None
"""What to do with a line for the user; a command prints it."""


class _Process:
    """What this process knows and has done."""

    here = False  # whether it compiles what it needs, at once
    looked = -1.0
    asked = False
    beside: subprocess.Popen[bytes] | None = None


_seen: set[str] = set()
_held: Final[ContextVar[bool]] = ContextVar("held", default=False)


# --- is it compiled? -----------------------------------------------------------------------------------


def is_warm(piece: str) -> bool:
    """Return whether a piece is compiled and in the cache; ``lanes`` alone is its first piece."""
    if piece not in PIECES:
        piece = next(name for name in PIECES if name.split()[0] == piece)
    if _Process.here or piece in _seen:
        return True
    now = time.monotonic()
    if _Process.looked >= 0 and now - _Process.looked < _LOOKS:
        return False
    _Process.looked = now
    _seen.update(done())
    return piece in _seen


def done() -> frozenset[str]:
    """Return the pieces that are in the cache."""
    where = directory()
    if where is None:
        return frozenset()
    try:
        return frozenset((where / f"{_NAME}-{key()}.txt").read_text(encoding="utf-8").splitlines())
    except OSError:
        return frozenset()


def mark(piece: str) -> None:
    """Write down that a piece is compiled."""
    where = directory()
    if where is not None:
        with (where / f"{_NAME}-{key()}.txt").open("a", encoding="utf-8") as file:
            file.write(piece + "\n")
    _seen.add(piece)


def compile_here() -> None:
    """Let this process compile what it calls, at once, as tests and the compiling process do."""
    _Process.here = True


@cache
def key() -> str:
    """Return what must be the same for a compiled kernel to be of use, as a short text."""
    import hashlib
    import platform
    from importlib.metadata import version

    facts = [
        platform.python_version(),
        *(version(name) for name in ("numba", "llvmlite", "numpy")),
        _processor(),
        *sorted(
            f"{name}={value}"
            for name, value in os.environ.items()
            if name.startswith("NUMBA_") and "CACHE" not in name
        ),
        str(_ENGINE),
    ]
    found = hashlib.blake2b("\n".join(facts).encode(), digest_size=9)
    for source in _SOURCES:
        found.update(source.read_bytes())
    return found.hexdigest()


def _processor() -> str:
    """Return what compiled code depends on: the model of the processor, and what it can do."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
        wanted = ("model name", "flags", "Features", "CPU part")
        return "\n".join(line for line in lines.splitlines() if line.startswith(wanted))
    import platform

    return f"{platform.machine()} {platform.processor()}"


@cache
def directory() -> Path | None:
    """Return where numba stores kernels of the engine, found as it does; None: nowhere can be written."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(given)] if given else []
    places.append(_ENGINE / "__pycache__")
    with suppress(RuntimeError):  # nobody's home
        places.append(_of_user())
    return next(filter(_writable, places), None)


def _of_user() -> Path:
    """Return the user's cache, where numba has it."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "numba" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "numba"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"


def _writable(place: Path) -> bool:
    import tempfile

    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False


# --- which loops to run --------------------------------------------------------------------------------


def loops(weights: np.dtype[Any] | None = None, counts: np.dtype[Any] | None = None) -> Any:
    """Return the module whose loops to run: ``kernels`` if they are compiled for these types, or ``plain``.

    Both have the same functions, with the same results.
    """
    return loaded("kernels" if runs_compiled(_piece(weights, counts)) else "plain")


def runs_compiled(piece: str) -> bool:
    """Return whether to run a piece compiled; where it is not, have that done."""
    if not is_warm(piece):
        warm_aside()
        return False
    return not _held.get() or "numba" in sys.modules


@contextmanager
def without_compiler() -> Iterator[None]:
    """Let loops in this block run as NumPy and Python unless a compiler is loaded: that takes a second."""
    before = _held.set(True)
    try:
        yield
    finally:
        _held.reset(before)


@cache
def _piece(weights: np.dtype[Any] | None, counts: np.dtype[Any] | None) -> str:
    """Return the piece that has the chains for these types; None: the first that there is."""
    of_counts = "uint8" if counts is None else str(counts)
    return (
        f"lanes {('int16' if of_counts == 'uint8' else 'int32') if weights is None else weights} {of_counts}"
    )


def loaded(name: str) -> Any:
    """Return a module of the engine by its name; one that another thread is loading is waited for."""
    return importlib.import_module(f"lbm.reasoning.engine.{name}")


class Kernel:
    """A function that is compiled once its piece is in the cache, and runs as Python until then."""

    def __init__(self, piece: str, function: FunctionType, *, inline: bool = False) -> None:
        self.piece, self.py_func, self.inline = piece, function, inline
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self._fast: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run it; where it is part of others, it is only ever called by their Python."""
        if self.inline:
            return self.py_func(*arguments)
        if self._fast is None and not runs_compiled(self.piece):
            return self.py_func(*arguments)
        return self.fast(*arguments)

    @property
    def fast(self) -> Any:
        """The compiled function."""
        if self._fast is None:
            function = self.py_func
            around = function.__globals__
            others = {name: around.get(name) for name in function.__code__.co_names}
            mine = {name: other.fast for name, other in others.items() if isinstance(other, Kernel)}
            if mine:  # numba knows functions that it has compiled, and not these
                function = FunctionType(function.__code__, {**around, **mine}, function.__name__)
                function.__qualname__ = self.py_func.__qualname__
            if self.piece in _NEEDS:
                loaded(_NEEDS[self.piece])
            from lbm.reasoning.compiling.compiled import compiled

            self._fast = compiled(function, inline=self.inline)
        return self._fast


def kernel(piece: str, *, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a :class:`Kernel` of a piece; ``inline``: its body is put into others that call it."""
    return partial(Kernel, piece, inline=inline)


# --- the process beside --------------------------------------------------------------------------------


def warm_aside() -> bool:
    """Start the process that compiles all kernels, at most once; return whether this process ever did.

    There is one for a machine and a cache: whoever comes second leaves it to the first. It goes on for LINGER
    seconds when this process has ended, and with LBM_BACKGROUND=0 not at all. Where no cache can be written
    it would be of no use, and is not started; :data:`tell` gets a line about that.
    """
    if not _Process.asked:
        _Process.asked = True
        _Process.beside = _start()
    return _Process.beside is not None


def _start() -> subprocess.Popen[bytes] | None:
    where = directory()
    if where is None:
        if tell is not None:
            tell(
                "no cache for compiled kernels can be written, so that chains run in NumPy, some 100 times "
                "as slowly: set NUMBA_CACHE_DIR to a directory that can be"
            )
        return None
    with locked(where) as mine:
        if not mine or not sys.executable:
            return None
    import atexit
    import subprocess

    root = Path(__file__).parents[3]
    linger = 0.0 if os.environ.get("LBM_BACKGROUND") == "0" else LINGER
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "lbm.reasoning.engine.warming", str(linger)],
            stdin=subprocess.PIPE,  # ends when this process does, however that may be
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
    except OSError:  # no process can be started: chains stay slow, and right
        return None
    atexit.register(_leave, process)
    return process


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Let go of the process beside: it hears that, and ends when it has to."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    if process.poll() is None:
        process.returncode = 0  # or Python would complain that nobody waited for it


@contextmanager
def locked(where: Path) -> Iterator[bool]:
    """Hold the lock of the compiling process of a cache; yields whether nobody else does.

    The system takes it back when its holder ends, so that none is ever left behind.
    """
    with (where / f"{_NAME}.lock").open("ab") as file:
        yield _lock(file)


def _lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
