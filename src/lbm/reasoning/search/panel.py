"""The panel: engines in processes of their own, all with the same question, and what each has said of it.

None is believed before its worlds are evaluated. One that gives a world that breaks what is hard, or that
loses another weight than it said, or a bound above what a world of ours loses, is dropped, with all that it
proved, and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from math import log, log1p
from typing import Final

from lbm.reasoning.budget import SPENT, Budget, now
from lbm.reasoning.search.engines import CP_SAT, RC2, TOULBAR2
from lbm.reasoning.solvers.aside import Answers, Message

RESTART: Final = (2.0, 2.0)
"""Seconds of a first search, and times as long as the last one took, before an engine begins again."""

_BLINK: Final = 0.01  # seconds between looks from one engine to the next while all are silent
_YOUNG: Final = 1.5  # seconds that every engine has before it is asked what it brings
_LATELY: Final = 0.4  # of the time since it was asked: what it brought since then was not long ago
_OFTEN: Final = 0.1  # seconds between two times that RC2 is told what a world loses
_SLICE: Final = 0.25  # seconds of the first turn of those that bring nothing
_LONGER: Final = 1.2  # times as long is the next


@dataclass(eq=False)
class Asked:
    """An engine that has the question.

    Attributes
    ----------
    bound
        What it has proven that every world loses at least, times 10^digits.
    ended
        Whether it has nothing more to say.
    gave
        Whether it has given a world.
    latest
        A world that is not evaluated yet: of those on its way, the last is the best.
    upper
        What it knows that some world loses.
    told
        What the world loses that it was told of last.
    runs
        Whether it is not paused.
    favoured
        Whether the problem is one for it above all others: then it is never paused.
    spoke
        Whether it has proven anything yet, and so is past its preparations.
    begun, moved
        When it was asked, and when it last said something that nobody had known.
    started, due
        When it was asked again last, and when that may happen next.
    limited
        When RC2 was told last what a world loses.
    """

    name: str
    answers: Answers
    stack: ExitStack
    bound: int = 0
    ended: bool = False
    gave: bool = False
    latest: Message | None = None
    upper: int | None = None
    told: int | None = None
    runs: bool = True
    favoured: bool = False
    spoke: bool = False
    begun: float = field(default_factory=now)
    moved: float = field(default_factory=now)
    started: float = field(default_factory=now)
    due: float = field(default_factory=lambda: now() + RESTART[0])
    limited: float = -math.inf

    def end(self) -> None:
        """Take the question back."""
        self.ended = True
        self.go_on()
        self.stack.close()

    def pause(self) -> None:
        """Let others have its turn; where processes cannot be paused it goes on."""
        if self.runs and not self.ended:
            self.runs = False
            self.answers.pause()

    def go_on(self) -> None:
        """Let it have its turn."""
        if not self.runs:
            self.runs = True
            self.answers.go_on()

    def speak(self) -> None:
        """Take down that it has proven something, and so is past its preparations."""
        if not self.spoke:
            self.spoke, moment = True, now()
            self.due = max(self.due, moment + max(RESTART[0], RESTART[1] * (moment - self.started)))

    def lively(self, moment: float) -> bool:
        """Return whether it has brought something new not long ago, or has only begun."""
        return moment - self.moved < max(_YOUNG, _LATELY * (moment - self.begun))


@dataclass(eq=False)
class Panel:
    """All engines that have been asked, those that were dropped left out; ``dropped`` says why."""

    asked: list[Asked] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def join(self, name: str, question: AbstractContextManager[Answers]) -> Asked:
        """Ask an engine."""
        stack = ExitStack()
        found = Asked(name, stack.enter_context(question), stack)
        self.asked.append(found)
        return found

    def open(self) -> list[Asked]:
        """Return those that may have something more to say."""
        return [engine for engine in self.asked if not engine.ended]

    def heard(self, budget: Budget) -> Iterator[tuple[Asked, Message]]:
        """Yield what engines have said; if that is nothing yet, wait until one says something."""
        some = False
        while engines := self.open():
            for engine in engines:
                while not engine.ended and (said := engine.answers.next(SPENT)) is not None:
                    some = True
                    yield engine, said
            if some or budget.spent():
                return
            wait = budget if len(engines) == 1 else budget.at_most(_BLINK)
            said = engines[0].answers.next(wait)
            if said is not None:
                some = True
                yield engines[0], said
            elif len(engines) == 1:
                return

    def turn(self, slots: int, *, strict: bool) -> None:
        """Let those run that bring something new, and the others by turns.

        ``strict``: no more of them than there are slots, whatever they bring. Who is favoured takes none.
        """
        engines = [engine for engine in self.open() if not engine.favoured]
        if len(engines) <= slots and all(engine.runs for engine in engines):
            return
        moment = now()
        lively = [engine for engine in engines if engine.lively(moment)]
        idle = [engine for engine in engines if engine not in lively]
        if strict and len(lively) > slots:
            lively, idle = [], engines
        elapsed = moment - min(engine.begun for engine in engines)
        first = int(log1p(elapsed * (_LONGER - 1) / _SLICE) / log(_LONGER))
        room = max(slots - len(lively), 0 if lively else 1)
        chosen = [*lively, *((idle * 2)[first % len(idle) :][: min(room, len(idle))] if idle else ())]
        for engine in engines:
            if engine in chosen:
                engine.go_on()
            else:
                engine.pause()

    def share(self, world: Sequence[bool], lost: int, finder: str) -> None:
        """Tell those of a world who begin again from it, once that is worth it; and RC2 of what it loses."""
        for engine in self.open():
            fresh = engine.told is None or lost < engine.told
            if engine.name == RC2 and fresh and engine.bound and engine.limited + _OFTEN < now():
                engine.limited = now()
                if engine.answers.limit(lost):
                    engine.told = lost
            if engine.name == finder or engine.name != CP_SAT:
                continue
            if fresh and engine.runs:
                values = "".join("1" if value else "0" for value in world)
                if engine.answers.tell(values, lost):
                    engine.told = lost

    def behind(self, lost: int) -> Asked | None:
        """Return an engine that is worth being asked again, now that a world is known to lose so much."""
        moment = now()
        for engine in self.open():
            better = engine.upper is None or lost < engine.upper
            if engine.name == TOULBAR2 and better and engine.spoke and engine.due < moment:
                return engine
        return None

    def again(self, engine: Asked, question: AbstractContextManager[Answers], upper: int) -> None:
        """Ask an engine again, which has since been told of a better world: what it has proven stays."""
        moment = now()
        engine.end()
        self.asked.remove(engine)
        found = self.join(engine.name, question)
        found.bound, found.gave, found.upper, found.moved = engine.bound, engine.gave, upper, engine.moved
        found.due = moment + max(RESTART[0], RESTART[1] * (moment - engine.started))
        found.begun, found.favoured = engine.begun, engine.favoured

    def drop(self, engine: Asked, why: str) -> None:
        """Forget what an engine has said, and ask it no more."""
        self.dropped.append(f"{engine.name}: {why}")
        self.asked.remove(engine)
        engine.end()

    def doubts(self, name: str) -> bool:
        """Return whether an engine of this name was dropped."""
        return any(reason.startswith(f"{name}:") for reason in self.dropped)

    def bound(self) -> int:
        """Return the best of their bounds."""
        return max((engine.bound for engine in self.asked), default=0)

    def prover(self, bound: int) -> str | None:
        """Return who has proven that every world loses so much; None: nobody here."""
        return next((engine.name for engine in self.asked if engine.bound >= bound), None)

    def close(self) -> None:
        """Take the question back from all."""
        for engine in self.asked:
            engine.end()
