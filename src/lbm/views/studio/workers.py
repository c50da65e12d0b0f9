"""A pool of warm worker processes that answer questions under budgets.

A question has its worker for itself. One that takes longer than it may, or is no longer wanted, has its
worker killed; another, which is warm already, takes its place, and no other question hears of that.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import Any, Final

from lbm.errors import LbmError, NoAnswer, RequestError, suggested
from lbm.views.studio.questions import MAX_SECONDS, QUESTIONS
from lbm.views.studio.worker import MAX_ANSWER, refusal

GRACE: Final = 2.0
"""Seconds past its budget after which a question is taken back and its worker killed."""

MAX_WAITING: Final = 64
"""Questions that may wait for a worker."""

MAX_ASKED: Final = 5000
"""Questions that a worker answers before a fresh one takes its place."""

_START: Final = 120.0  # seconds that a worker may take to begin, on a machine however busy


@dataclass(frozen=True, slots=True)
class Reply:
    """What a question gave: the exit status of the command line, and facts or what is wrong.

    0: answered; 1: no; 2: bad input; 3: no answer within the budget.
    """

    status: int
    body: dict[str, Any]

    @classmethod
    def of(cls, error: LbmError) -> Reply:
        """Return the reply that says what is wrong."""
        return cls(error.exit_status, refusal(error))


class Workers:
    """Processes that answer questions, ``size`` at a time; one more waits to take the place of one that ends.

    Use it in ``async with``: the processes end with the block. ``models`` are files by the names that they
    are asked for by, and ``most`` the seconds that one question may take.
    """

    def __init__(
        self, size: int = 1, *, models: Mapping[str, str] | None = None, most: float = MAX_SECONDS
    ) -> None:
        if size < 1:
            raise ValueError(f"expected one worker at least, got {size}")
        self.size, self.models, self.most = size, dict(models or {}), most
        self.waiting = 0
        self._open = False
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(size)

    async def __aenter__(self) -> Workers:
        self._open = True
        self._fill()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open = False
        for worker in (*self._idle, *self._busy):
            self._end(worker)
        self._idle.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)

    @property
    def processes(self) -> list[int]:
        """The numbers of all processes that have begun."""
        return _pids([*self._idle, *self._busy])

    @property
    def ready(self) -> list[int]:
        """The numbers of the processes that wait for a question."""
        return _pids([worker for worker in self._idle if worker.ready and not worker.gone])

    @property
    def busy(self) -> list[int]:
        """The numbers of the processes that work on one."""
        return _pids(list(self._busy))

    async def ask(self, name: str, said: Any) -> Reply:
        """Return what a question gives. Cancelled, it is taken back at once, and its worker killed."""
        try:
            question = QUESTIONS.get(name)
            if question is None:
                raise RequestError(
                    f"no question {name[:100]!r}{suggested(name, QUESTIONS, ': ' + ', '.join(QUESTIONS))}"
                )
            read = question.read(said, self.most)
            if self.waiting >= MAX_WAITING:
                raise NoAnswer(f"{MAX_WAITING} questions wait already (limit MAX_WAITING): ask again later")
            self.waiting += 1
            try:
                await self._begun()
                async with asyncio.timeout(read["seconds"] + GRACE):
                    return await self._asked(name, read)
            except NoAnswer:  # which is a TimeoutError, too
                raise
            except TimeoutError:
                raise NoAnswer(f"no answer within {read['seconds']:g} seconds: allow more") from None
            finally:
                self.waiting -= 1
        except LbmError as error:
            return Reply.of(error)

    async def _asked(self, name: str, said: dict[str, Any]) -> Reply:
        key = blake2b(repr((said.get("theory"), said.get("model"))).encode(), digest_size=16).digest()
        async with self._turn:
            worker = self._take(key)
            self._busy.add(worker)
            fine = False
            try:
                found = await worker.ask(name, said)
                fine = worker.asked < MAX_ASKED
            except (EOFError, OSError):
                raise NoAnswer(
                    "the process that worked on it has ended, for lack of memory most likely: ask for less"
                ) from None
            finally:
                self._busy.discard(worker)
                worker.last = key
                if not fine or not self._open:
                    self._end(worker)
                    self._fill()
                else:
                    self._idle.append(worker)
        return found

    async def _begun(self) -> None:
        """Wait until the first worker is ready: what a question may take begins then."""
        if not self._busy and not any(worker.ready for worker in self._idle):
            await asyncio.wait([worker.began for worker in self._idle], return_when="FIRST_COMPLETED")

    def _take(self, key: bytes) -> _Worker:
        """Return a worker: the one that was asked last about the same, or else one that is ready."""
        for worker in [each for each in self._idle if each.gone]:
            self._idle.remove(worker)
            self._end(worker)
        self._fill()
        best = max(self._idle, key=lambda each: (each.ready and each.last == key, each.ready))
        self._idle.remove(best)
        return best

    def _fill(self) -> None:
        """Begin workers in place of those that have ended."""
        while self._open and len(self._idle) + len(self._busy) <= self.size:
            self._idle.append(_Worker(self.models))

    def _end(self, worker: _Worker) -> None:
        task = asyncio.get_running_loop().create_task(worker.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _pids(workers: list[_Worker]) -> list[int]:
    return [worker.process.pid for worker in workers if worker.process is not None]


class _Worker:
    """One process, from the moment it is begun."""

    def __init__(self, models: Mapping[str, str]) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.ready = False
        self.last = b""
        self.asked = 0
        self._numbers = count()
        self.began = asyncio.get_running_loop().create_task(self._begin(dict(models)))

    @property
    def gone(self) -> bool:
        """Whether it has ended, or could not begin."""
        if self.process is not None and self.process.returncode is not None:
            return True
        return self.began.done() and (self.began.cancelled() or self.began.exception() is not None)

    async def _begin(self, models: dict[str, str]) -> None:
        # The process imports from where we do, in the same order. A session of its own hears no Ctrl-C.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self.process = await asyncio.create_subprocess_exec(
            sys.executable or "",
            "-P",
            "-m",
            "lbm.views.studio.worker",
            str(os.getpid()),
            json.dumps(models),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            limit=MAX_ANSWER + (1 << 16),
            **apart,
        )
        async with asyncio.timeout(_START):
            await self._line()
        self.ready = True

    async def ask(self, name: str, said: dict[str, Any]) -> Reply:
        await asyncio.shield(self.began)
        assert self.process is not None
        assert self.process.stdin is not None
        number = next(self._numbers)
        self.asked += 1
        self.process.stdin.write(json.dumps({"number": number, "ask": name, "said": said}).encode() + b"\n")
        await self.process.stdin.drain()
        while True:
            found = json.loads(await self._line())
            if found["number"] == number:
                return Reply(found["status"], found["body"])

    async def _line(self) -> bytes:
        assert self.process is not None
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            raise EOFError
        return line

    async def end(self) -> None:
        """Kill it, whatever it is doing."""
        self.began.cancel()
        with suppress(asyncio.CancelledError, EOFError, OSError, TimeoutError):
            await self.began
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
