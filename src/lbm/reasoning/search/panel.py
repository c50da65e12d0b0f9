"""The panel: engines in processes of their own, all with the same question, and what each has said of it.

None is believed before its worlds are evaluated. One that gives a world that breaks what is hard, or that
loses another weight than it said, or a bound above what a world of ours loses, is dropped, with all that it
proved, and named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Final

from lbm.reasoning.budget import SPENT, Budget, now
from lbm.reasoning.solvers.aside import Answers, Message

_BLINK: Final = 0.01  # seconds between looks from one engine to the next while all are silent


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
    begun, moved
        When it was asked, and when it last said something that nobody had known.
    """

    name: str
    answers: Answers
    stack: ExitStack
    bound: int = 0
    ended: bool = False
    gave: bool = False
    latest: Message | None = None
    begun: float = field(default_factory=now)
    moved: float = field(default_factory=now)

    def end(self) -> None:
        """Take the question back."""
        self.ended = True
        self.stack.close()


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
            engine.stack.close()
