"""Budgets of time: a deadline that long work looks at between its steps."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from lbm.errors import NoAnswer

_deadline: Final[ContextVar[float]] = ContextVar("deadline", default=math.inf)


def deadline_in(seconds: float | None) -> float:
    """Return when ``seconds`` will have passed, on the clock of ``time.monotonic``; None: never."""
    if seconds is None:
        return math.inf
    if not seconds > 0:
        raise ValueError(f"seconds must be a positive number, got {seconds}")
    return time.monotonic() + seconds


def left(deadline: float) -> float | None:
    """Return the seconds up to a deadline, a few thousandths at least; None: there is no deadline."""
    return None if deadline == math.inf else max(1e-3, deadline - time.monotonic())


def halfway(deadline: float) -> float:
    """Return the moment at which half of the time up to a deadline will have passed."""
    now = time.monotonic()
    return now + (deadline - now) / 2


def spent(deadline: float) -> bool:
    """Return whether a deadline has passed."""
    return time.monotonic() > deadline


def at_most(seconds: float) -> float:
    """Return how long a part of the work may take: ``seconds``, or what is left of the time if less."""
    return max(1e-3, min(seconds, _deadline.get() - time.monotonic()))


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Let every tick in this block raise NoAnswer once the deadline has passed; each thread has its own."""
    before = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(before)


def tick() -> None:
    """Raise NoAnswer if the deadline has passed."""
    if time.monotonic() > _deadline.get():
        raise NoAnswer("the exact answer was not worked out in time: allow more seconds, or sample")
