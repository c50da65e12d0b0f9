"""Budgets of time: a deadline that long work looks at between its steps.

Deadlines are moments of ``now()``, the one clock of all questions. A question asked from Python counts its
seconds from the call. A command sets a limit for all that it asks, counted from the start of its process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from lbm.errors import NoAnswer

LEAST: Final = 0.2
"""Seconds that a question has however late it is asked: enough for one cheap attempt."""

Stop = Callable[[], bool]

_deadline: Final[ContextVar[float]] = ContextVar("deadline", default=math.inf)
_stop: Final[ContextVar[Stop | None]] = ContextVar("stop", default=None)
_limit: Final[ContextVar[float]] = ContextVar("limit", default=math.inf)


def now() -> float:
    """Return the time in seconds since some moment; it never goes back."""
    return time.monotonic()


def deadline_in(seconds: float | None) -> float:
    """Return when ``seconds`` will have passed, or the limit of this context if that is earlier.

    None: there is no other deadline than the limit. One that comes late has LEAST seconds all the same.
    """
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds must be a positive number, got {seconds}")
    begun = now()
    return min(math.inf if seconds is None else begun + seconds, max(_limit.get(), begun + LEAST))


def limit_to(deadline: float) -> None:
    """Let every question in this context end at a deadline, whatever seconds it asks for."""
    _limit.set(deadline)


def left(deadline: float) -> float | None:
    """Return the seconds up to a deadline, a few thousandths at least; None: there is no deadline."""
    return None if deadline == math.inf else max(1e-3, deadline - now())


def halfway(deadline: float) -> float:
    """Return the moment at which half of the time up to a deadline will have passed."""
    return partway(deadline, 0.5)


def partway(deadline: float, part: float) -> float:
    """Return the moment at which this part of the time up to a deadline will have passed."""
    begun = now()
    return begun + part * (deadline - begun)


def spent(deadline: float) -> bool:
    """Return whether a deadline has passed."""
    return now() > deadline


def looks(deadline: float) -> Callable[[], None]:
    """Return a function that raises NoAnswer once a deadline has passed."""

    def look() -> None:
        if spent(deadline):
            raise NoAnswer("the clauses were not written down in time: allow more seconds")

    return look


def at_most(seconds: float) -> float:
    """Return how long a part of the work may take: ``seconds``, or what is left of the time if less."""
    return max(1e-3, min(seconds, _deadline.get() - now()))


def share_of_time(part: float) -> float:
    """Return the moment at which this part of what is left of the time will have passed."""
    return partway(_deadline.get(), part)


@contextmanager
def until(deadline: float, stop: Stop | None = None) -> Iterator[None]:
    """Let every tick in this block raise NoAnswer once the deadline has passed; each thread has its own.

    ``stop`` is asked at every tick whether the work is no longer needed.
    """
    before, stopped = _deadline.set(deadline), _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(stopped)
        _deadline.reset(before)


def tick() -> None:
    """Raise NoAnswer if the deadline has passed, or the work is no longer needed."""
    stop = _stop.get()
    if now() > _deadline.get() or (stop is not None and stop()):
        raise NoAnswer("the answer was not worked out in time: allow more seconds")
