"""Budgets of time: how long some work may take, passed to all who do a part of it.

Deadlines are moments of ``now()``, the one clock of all questions. A question asked from Python counts its
seconds from the call. A command sets a limit for all that it asks, counted from the start of its process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from lbm.errors import NoAnswer

LEAST: Final = 0.2
"""Seconds that a question has however late it is asked: enough for one cheap attempt."""

_LITTLE: Final = 1e-3  # seconds that a part of the work has at least

Stop = Callable[[], bool]


def now() -> float:
    """Return the time in seconds since some moment; it never goes back."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Budget:
    """Time for some work: up to ``deadline``, and no longer than until ``stop`` says that it is not needed.

    ``unsure`` are the seconds that a part may have which is likely never to end, where another way to an
    answer is left. ``limit`` is the one setting that all share: the deadline of a command.
    """

    deadline: float = math.inf
    stop: Stop | None = None
    unsure: float = math.inf

    limit: ClassVar[float] = math.inf

    @classmethod
    def of(cls, seconds: float | None) -> Budget:
        """Return a budget of so many seconds from now, or up to the limit if that is earlier.

        None: it ends at the limit only. One that comes late has LEAST seconds all the same.
        """
        if seconds is not None and not seconds > 0:
            raise ValueError(f"seconds must be a positive number, got {seconds}")
        begun = now()
        asked = math.inf if seconds is None else begun + seconds
        return cls(min(asked, max(cls.limit, begun + LEAST)))

    def left(self) -> float:
        """Return the seconds up to the deadline, below 0 after it."""
        return self.deadline - now()

    def seconds(self) -> float | None:
        """Return what is left as a question takes it: a few thousandths at least; None: no deadline."""
        return None if self.deadline == math.inf else max(_LITTLE, self.left())

    def spent(self) -> bool:
        """Return whether the deadline has passed, or the work is no longer needed."""
        return now() > self.deadline or (self.stop is not None and self.stop())

    def tick(self) -> None:
        """Raise NoAnswer if the deadline has passed, or the work is no longer needed."""
        if self.spent():
            raise NoAnswer("the answer was not worked out in time: allow more seconds")

    def look(self) -> None:
        """Raise NoAnswer, as :meth:`tick` does, in the words of whoever writes clauses down."""
        if self.spent():
            raise NoAnswer("the clauses were not written down in time: allow more seconds")

    def half(self) -> Budget:
        """Return half of what is left of the time."""
        return self.part(0.5)

    def part(self, share: float) -> Budget:
        """Return this share of what is left of the time."""
        begun = now()
        return replace(self, deadline=begun + share * (self.deadline - begun))

    def at_most(self, seconds: float) -> Budget:
        """Return so many seconds, or what is left of the time if that is less."""
        begun = now()
        return replace(self, deadline=begun + max(_LITTLE, min(seconds, self.deadline - begun)))

    def at_least(self, seconds: float) -> Budget:
        """Return all of the time but so many seconds at least, needed or not."""
        return Budget(max(self.deadline, now() + seconds))

    def trying(self, seconds: float) -> Budget:
        """Return the same time, of which what is likely never to end has so many seconds."""
        return replace(self, unsure=seconds)

    def unless(self, stop: Stop) -> Budget:
        """Return the same time for work that ``stop`` says is no longer needed."""
        return replace(self, stop=stop)

    def __reduce__(self) -> tuple[Callable[[float], Budget], tuple[float]]:
        # Other processes, on other machines too, have other clocks: what they share is the time of day.
        return _up_to, (time.time() + self.left(),)


def _up_to(moment: float) -> Budget:
    """Return the time up to a moment of ``time.time()``: what ``stop`` asks stays where it was made."""
    return Budget(now() + moment - time.time())


NO_LIMIT: Final = Budget()
"""As long as it takes."""

SPENT: Final = Budget(-math.inf)
"""No time at all: what is there by now."""
