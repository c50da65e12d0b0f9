"""Solvers in a process of their own, which can be ended at any moment: MaxSAT by RC2, counts by Ganak.

CP-SAT and toulbar2, where they are installed, are asked about demands; their processes are not kept.

The process is started early, since an interpreter takes a moment, and given its problem when there is one;
see :mod:`lbm.reasoning.solvers.worker`. When the answer is there or no longer wanted it waits for the next
question: one such process is kept. It ends with us, however we end, and with its standard input.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from lbm.reasoning.budget import Budget
from lbm.reasoning.solvers.toulbar2 import Translator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.knowledge.clauses import Clauses
    from lbm.reasoning.solvers.demands import Demands

MOMENT: Final = 0.05
"""Seconds that a process may take to stop before another one is started."""

RC2: Final = "lbm.reasoning.solvers.worker"
CP_SAT: Final = "lbm.reasoning.solvers.cp_sat"
TOULBAR2: Final = "lbm.reasoning.solvers.toulbar2"
"""What the processes run: that of RC2 also counts, and is kept for the next question."""

KEPT: Final = 1 << 20
"""Literals of a problem up to which its process is kept for the next one; past that it has grown large."""

_TICK: Final = 0.1  # seconds between looks at the clock, so that Ctrl-C is heard on Windows too
_SOON: Final = 0.01  # the same where the answer may no longer be wanted at any moment
_LAST: Final = (
    "end",
    "failed",
    "declined",
    "count",
    "weight",
    "stopped",
)  # after these there is nothing more to say


@dataclass(frozen=True, slots=True)
class Message:
    """What a solver has found out.

    Attributes
    ----------
    kind
        ``"bound"``: no world loses less than ``lost``. ``"world"``: a world that keeps the hard clauses.
        ``"next"``: a world, and none that was not ``"next"`` before loses less than ``lost``, as it does.
        ``"end"``: there is no further world, or none that was asked for. ``"count"``: models were counted.
        ``"weight"``: their weights were summed. ``"declined"``: the problem is not one for this engine.
        ``"failed"``: the process ended without an answer.
    lost
        Weight of soft clauses that are false; of a ``"world"`` it is not known.
    world
        The value of each atom, one character each, ``0`` or ``1``.
    all
        At the ``"end"``: whether every world that exists has been given.
    count
        The number of models, as hexadecimal digits.
    weight
        The sum of their weights, as ``float.hex`` writes it.
    """

    kind: str
    lost: int = 0
    world: str = ""
    all: bool = False
    count: str = ""
    weight: str = ""


class Answers:
    """The events of one question, as they come."""

    def __init__(
        self,
        helper: _Helper,
        header: dict[str, Any],
        literals: NDArray[np.int32],
        *arrays: NDArray[Any],
    ) -> None:
        self.helper, self.process = helper, helper.process
        self._last: Message | None = None
        self._large = len(literals) > KEPT
        self._found = helper.ask(header, literals, *arrays)
        self.number: int = header["number"]

    def next(self, budget: Budget) -> Message | None:
        """Return the next event; None: there was none in time.

        A budget that is spent asks for what is there. After the last event comes it again.
        """
        tick = _TICK if budget.stop is None else _SOON
        while self._last is None:
            left = 0.0 if budget.spent() else budget.left()
            try:
                found = self._found.get(timeout=min(tick, left)) if left > 0 else self._found.get_nowait()
            except queue.Empty:
                if left <= 0:
                    return None
                continue
            if found.kind in _LAST:
                self._last = found
            return found
        return self._last

    def tell(self, world: str, lost: int) -> bool:
        """Tell of a world that others have found; return whether there was room for that in the pipe."""
        return self.helper.tell({"world": world, "lost": lost})

    def limit(self, lost: int) -> bool:
        """Tell RC2 that some world loses no more than this; return whether there was room for that."""
        return self.helper.tell({"upper": lost, "number": self.number})

    def pause(self) -> None:
        """Let the process rest where it is; on systems that know no such signal it goes on."""
        self.helper.send("SIGSTOP")

    def go_on(self) -> None:
        """Let the process go on."""
        self.helper.send("SIGCONT")

    def close(self) -> None:
        """Take the question back, whatever is being done about it; the process is kept if that is quick."""
        if self.helper.module != RC2 or self._large or not self.helper.stop():
            self.helper.end()
        else:
            _give_back(self.helper)


@contextmanager
def maxsat(
    clauses: Clauses,
    *,
    atoms: int | None = None,
    top: int = 1,
    every: bool = False,
    plan: str | None = None,
) -> Iterator[Answers]:
    """Start RC2 on weighted clauses; what it finds comes as events until the ``with`` block is left.

    It yields a first world, bounds as they rise, a better world now and then, and the best one.

    Parameters
    ----------
    atoms
        How many of the variables, the first ones, make a world; all of them if None. The others must be
        functions of these, or of no interest.
    top
        How many worlds are wanted, in order of the weight they lose.
    every
        Whether all the best ones are wanted instead.
    plan
        How RC2 is set up, one of the PLANS of its process; None: as is best for what is wanted.
    """
    header = {
        "task": "maxsat",
        "variables": clauses.variables,
        "atoms": clauses.variables if atoms is None else atoms,
        "top": top,
        "every": every,
        "plan": plan,
    }
    with _asked(header, clauses, clauses.weights) as answers:
        yield answers


def model_count(clauses: Clauses, project: Sequence[int] | None = None, *, budget: Budget) -> int | None:
    """Return how many worlds over all variables keep the clauses, counted by Ganak; None: no answer in time.

    With ``project``, how many worlds over these variables can be extended to one that does.
    """
    kept = None if project is None else list(project)
    header = {"task": "count", "variables": clauses.variables, "project": kept}
    with _asked(header, clauses) as answers:
        found = answers.next(budget)
    return int(found.count, 16) if found is not None and found.kind == "count" else None


def weighted_count(
    clauses: Clauses,
    weights: Mapping[int, tuple[float, float]],
    project: Sequence[int] | None = None,
    *,
    budget: Budget,
) -> float | None:
    """Return the sum of the weights of all worlds that keep the clauses, by Ganak; None: no answer in time.

    The weight of a world is the product of those of its literals. ``weights`` has them by variable, where it
    is true and where it is false; a variable that is not there weighs 1 either way. With ``project``, the
    worlds are those over these variables that can be extended to one that keeps the clauses. The sum is
    rounded once: it may be 0 or infinite because a double holds no more.
    """
    kept = None if project is None else list(project)
    signs = [(variable, true.hex(), false.hex()) for variable, (true, false) in weights.items()]
    header = {"task": "weigh", "variables": clauses.variables, "project": kept, "signs": signs}
    with _asked(header, clauses) as answers:
        found = answers.next(budget)
    return float.fromhex(found.weight) if found is not None and found.kind == "weight" else None


def ganak_installed() -> bool:
    """Return whether models can be counted by Ganak; it is looked for, not loaded."""
    return find_spec("pyganak") is not None


def prepare() -> None:
    """Start the process that the next question will need, unless one is waiting."""
    with suppress(OSError):  # the question itself finds that out
        helper = _taken()
        _give_back(helper)


@contextmanager
def demanded(
    module: str, demands: Demands, *, upper: int | None = None, workers: int = 1, seed: int = 0
) -> Iterator[Answers]:
    """Start another engine on demands, as :func:`maxsat` does RC2; ``module`` is that of its process.

    It is ended with its process when the ``with`` block is left.

    Parameters
    ----------
    upper
        What a world is known to lose: toulbar2 looks for those that lose less.
    workers
        How many threads CP-SAT may use.
    """
    header = {**header_of(demands, upper), "workers": workers, "seed": seed}
    with _asked(header, demands.clauses, demands.clauses.weights, demands, module=module) as answers:
        yield answers


def header_of(demands: Demands, upper: int | None = None) -> dict[str, Any]:
    """Return what is said of demands before their literals; costs are in units."""
    return {
        "task": "demands",
        "variables": demands.clauses.variables,
        "atoms": demands.atoms,
        "groups": demands.groups,
        "unit": demands.unit,
        "upper": demands.most + 1 if upper is None else -(-upper // demands.unit),
        "whole": upper is None,
    }


@contextmanager
def _asked(
    header: dict[str, Any],
    clauses: Clauses,
    weights: NDArray[Any] | None = None,
    demands: Demands | None = None,
    *,
    module: str = RC2,
) -> Iterator[Answers]:
    import numpy as np

    literals = np.insert(clauses.literals, clauses.starts[1:], 0)  # a 0 after each clause
    arrays: list[NDArray[Any]] = []
    if demands is not None:
        arrays = [_in_units(demands), demands.low, demands.high]
    elif weights is not None and weights.dtype == object:
        header["weights"] = weights.tolist()
    elif weights is not None:
        arrays = [weights]
    helper = _taken() if module == RC2 else _Helper(module)
    try:
        answers = Answers(helper, header, literals, *arrays)
    except BaseException:  # an interrupt, most likely
        helper.end()
        raise
    try:
        yield answers
    finally:
        answers.close()


def _in_units(demands: Demands) -> NDArray[np.int64]:
    import numpy as np

    weights = demands.clauses.weights
    if demands.unit == 1 and weights.dtype == np.int64:
        return weights
    return np.array([weight // demands.unit for weight in weights.tolist()], np.int64)


# --- the process -----------------------------------------------------------------------------------


class _Helper:
    """A process that waits for questions, one at a time; ``module`` is what it runs."""

    def __init__(self, module: str = RC2) -> None:
        self.module = module
        # The process imports from where we do, in the same order. A group of its own hears no Ctrl-C.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
        apart: dict[str, Any] = {"process_group": 0}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self.process = subprocess.Popen(
            [sys.executable or "", "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            bufsize=0,  # so that a fork finds nothing half written, and no lock held
            **apart,
        )
        self._lock = threading.Lock()
        self._numbers = count()
        self._number = -1  # of the question that was asked last
        self._idle = threading.Event()  # it has been answered, or never asked
        self._idle.set()
        self._stops = True  # its work can be ended without ending the process
        self._translated: Callable[[bytes], list[dict[str, Any]]] = _plain
        self._dead = False
        self._found: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        # Threads, so that neither a long problem nor a long silence keeps the clock from being heard.
        self._reader = threading.Thread(target=self._read, daemon=True)
        _alive.add(self)
        self._reader.start()

    def ask(
        self, header: dict[str, Any], literals: NDArray[np.int32], *arrays: NDArray[Any]
    ) -> queue.SimpleQueue[Message]:
        """Send a problem; what is found out about it comes into the queue."""
        with self._lock:
            self._number = header["number"] = next(self._numbers)
            self._idle.clear()
            self._stops = header["task"] == "maxsat"
            self._translated = Translator(header).heard if self.module == TOULBAR2 else _plain
            found = self._found = queue.SimpleQueue()
            if self._dead:
                found.put(Message("failed"))
        header["literals"] = len(literals)
        if arrays:
            header["weighted"] = len(arrays[0])
        parts = [
            json.dumps(header).encode() + b"\n",
            literals.tobytes(),
            *(part.tobytes() for part in arrays),
        ]
        self._begin(parts)
        return found

    def tell(self, said: dict[str, Any]) -> bool:
        """Send a line about the question that is worked on, unless something is still being sent."""
        if self._dead or (self._writer is not None and self._writer.is_alive()):
            return False
        self._begin([json.dumps(said).encode() + b"\n"])
        return True

    def _begin(self, parts: Sequence[bytes]) -> None:
        self._writer = threading.Thread(target=self._write, args=(parts,), daemon=True)
        self._writer.start()

    def stop(self) -> bool:
        """Take back the question; return whether the process can be asked another one."""
        with self._lock:
            if self._dead:
                return False
            if self._idle.is_set() or not self._stops:
                return self._idle.is_set()
            if self._writer is not None and self._writer.is_alive():
                return False  # it is still being sent
            number, self._found = self._number, queue.SimpleQueue()
        try:
            self._send(json.dumps({"stop": number}).encode() + b"\n")
        except OSError:
            return False
        return True

    def send(self, name: str) -> None:
        """Send the process a signal, if the system knows it and the process is there."""
        number = getattr(signal, name, None)
        if number is not None:
            self.process.send_signal(number)

    def ready(self) -> bool:
        """Return whether it waits for a question: one that was taken back is worked on a moment longer."""
        return self._idle.wait(MOMENT) and not self._dead and self.process.poll() is None

    def end(self) -> None:
        """End the process, whatever it is doing, and leave nothing of it behind."""
        self.process.kill()
        self.process.wait()
        for thread in (self._writer, self._reader):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None  # both are pipes
            with suppress(OSError):
                pipe.close()
        _alive.discard(self)

    def forget(self) -> None:
        """Close our ends of the pipes, in a process that was forked off: the helper is its parent's."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        self.process.returncode = 0  # so that nobody waits for a child that is not ours

    def _write(self, parts: Sequence[bytes]) -> None:
        with suppress(OSError):  # a process that has been ended reads no more
            for part in parts:
                self._send(part)

    def _send(self, part: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        rest = memoryview(part)
        while rest:
            rest = rest[pipe.write(rest) :]

    def _read(self) -> None:
        pipe = self.process.stdout
        assert pipe is not None
        rest = b""
        while some := pipe.read(1 << 16):
            *lines, rest = (rest + some).split(b"\n")  # the last words may be half a line
            for line in lines:
                for said in self._translated(line):
                    self._hear(said)
        with self._lock:
            self._dead = True
            self._found.put(Message("failed"))

    def _hear(self, said: dict[str, Any]) -> None:
        with self._lock:
            if said.pop("number") == self._number:
                if said["kind"] in _LAST:
                    self._idle.set()  # before anybody hears of it
                self._found.put(Message(**said))


def _plain(line: bytes) -> list[dict[str, Any]]:
    return [json.loads(line)]


_alive: Final[set[_Helper]] = set()
_waiting: list[_Helper] = []  # at most one
_door = threading.Lock()


def _taken() -> _Helper:
    """Return a process that waits for a question."""
    with _door:
        helper = _waiting.pop() if _waiting else None
    if helper is not None and helper.ready():
        return helper
    if helper is not None:
        helper.end()
    return _Helper()


def _give_back(helper: _Helper) -> None:
    """Keep a process for the next question, unless one is kept already."""
    with _door:
        if not _waiting:
            _waiting.append(helper)
            return
    helper.end()


@atexit.register
def end_all() -> None:
    """End every process, also the one that waits for a question."""
    _waiting.clear()
    for helper in list(_alive):
        helper.end()


def _forget_all() -> None:
    global _door  # noqa: PLW0603 - whoever held the lock is not in this process
    _door = threading.Lock()
    _waiting.clear()
    for helper in list(_alive):
        helper.forget()
    _alive.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
