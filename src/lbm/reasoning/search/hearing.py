"""What a search knows, and what it hears from engines in processes of their own.

All share the best world and the best bound (:mod:`lbm.reasoning.search.panel`). Every world is evaluated
before it counts, whoever it is from, and who is caught with a wrong one is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from os import cpu_count
from typing import Final, TypeVar

from lbm.errors import LimitExceeded, NoAnswer, NoWorlds
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import NO_LIMIT, SPENT, Budget, now
from lbm.reasoning.problem import Candidate, Problem
from lbm.reasoning.proof import no_worlds
from lbm.reasoning.search import engines, standing
from lbm.reasoning.search.engines import CP_SAT, OWN, RC2, TOULBAR2
from lbm.reasoning.search.invited import LITERALS, SOON, Guests, Invitation, guests_of
from lbm.reasoning.search.panel import Asked, Panel
from lbm.reasoning.search.standing import Standing
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.aside import Message, demanded, maxsat
from lbm.reasoning.solvers.demands import Demands

ALONE: Final = 0.1
"""Seconds that RC2 has for itself before it is asked a second time, set up in another way."""

MAX_LITERALS: Final = 200_000
"""Of clauses for which walks and a SAT solver are tried in this process, and RC2 is asked twice."""

MODULES: Final = {CP_SAT: aside.CP_SAT, TOULBAR2: aside.TOULBAR2}
"""What the process of each engine runs."""

QUICK: Final = 20_000
"""Literals up to which it takes no time to say what is demanded; past it that is done in a thread."""

_PLANS: Final = (("plain", 2.5), ("stratified", 3.0))  # its ways, and seconds to have the better bound
_FEW: Final = 500  # clauses up to which RC2 is left alone for that long
_LOOK: Final = 0.02  # seconds between looks at work in a thread

_T = TypeVar("_T")

Enough = Callable[[int | None, int], bool]
"""Whether the least weight lost so far, None at first, and its lower bound settle the question."""


def _values(world: str) -> list[bool]:
    return [value == "1" for value in world]


@dataclass(eq=False)
class Hearing:
    """A question, what is known of it, and those who are asked.

    ``engines`` are the names of those that may be asked.
    """

    problem: Problem
    budget: Budget
    _: KW_ONLY
    top: int = 1
    every: bool = False
    tell: Callable[[Standing], None] | None = None
    enough: Enough | None = None
    jobs: int = 1
    engines: frozenset[str] = field(default_factory=lambda: engines.chosen(None))
    panel: Panel = field(default_factory=Panel, init=False)
    clauses: Clauses | None = None  # None: too large as clauses
    worlds: dict[tuple[bool, ...], Candidate] = field(default_factory=dict)
    least: Candidate | None = None
    finder: str = OWN  # who found the least
    proven: list[Candidate] = field(default_factory=list)
    floor: int = 0  # what every world loses, as presolve has found out
    sweeps: int = 0
    all: bool = False  # RC2 has given every world that was asked for
    full: bool = False  # there are more than are given out
    demands: Demands | None = None
    valued: bool = False  # it is made of variables of many values, and one engine is for these
    loose: bool = False  # nothing holds the problem together but soft clauses
    begun: float = 0.0
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)  # who is asked, and when

    @property
    def bound(self) -> int:
        """The best lower bound of the weight that any world loses, times 10^digits."""
        return max(self.floor, self.panel.bound())

    def result(self) -> Standing:
        """Return the best worlds, sorted, with what is proven of them."""
        if self.least is None:
            return self._standing((), self.bound, False, "annealed")
        if self.every:
            optimal = self.least.lost <= self.bound
            chosen = (
                self.proven if self.all else [w for w in self.worlds.values() if w.lost == self.least.lost]
            )
        else:
            optimal = self.all if self.top > 1 else self.least.lost <= self.bound
            chosen = self.proven if self.all and self.top > 1 else list(self.worlds.values())
        worlds = sorted(chosen, key=lambda world: (world.lost, world.values))[
            : standing.MAX_WORLDS if self.every else self.top
        ]
        method = "certified" if optimal else "annealed"
        return self._standing(tuple(worlds), self.bound, optimal, method, self.every and self.all)

    def _standing(
        self, worlds: tuple[Candidate, ...], bound: int, optimal: bool, method: str, complete: bool = False
    ) -> Standing:
        """Return where we stand, with who brought us there."""
        prover = OWN if bound <= self.floor else self.panel.prover(bound)
        if not (bound or optimal):
            prover = None
        dropped = tuple(self.panel.dropped)
        return Standing(worlds, bound, optimal, method, complete, self.sweeps, self.finder, prover, dropped)

    def _nothing(self) -> NoWorlds:
        return no_worlds(self.problem.theory, self.problem.evidence, self.budget)

    # --- asking --------------------------------------------------------------------------------------

    def _call(self) -> None:
        """Give the question to RC2."""
        with suppress(LimitExceeded, NoAnswer, OSError):  # too large as clauses, or no process can be started
            self.clauses = self.problem.clauses(self.budget)
            if RC2 in self.engines:
                self._ask_rc2()
        self._expect()
        if self.clauses is not None and RC2 in self.engines and self._wants_another(self.clauses):
            if len(self.clauses) > _FEW:  # it is not settled in a moment, and a core is free
                with suppress(OSError):
                    self._ask_another()
            else:
                self._do_later(self.begun + ALONE, self._ask_another)

    def _expect(self) -> None:
        """Have those invited soon who know more than clauses, unless that is done."""
        if not self.begun:
            self.begun = now()
            if not {CP_SAT, TOULBAR2}.isdisjoint(self.engines) and self.top == 1 and not self.every:
                self._do_later(self.begun + (SOON if self.panel.open() else 0.0), self._invite)

    def _ask_rc2(self, **plan: str) -> Asked:
        assert self.clauses is not None
        atoms = len(self.problem.theory.atoms)
        return self.panel.join(RC2, maxsat(self.clauses, atoms=atoms, top=self.top, every=self.every, **plan))

    def _wants_another(self, clauses: Clauses) -> bool:
        """Return whether RC2 may be quick only if it is set up in another way: no one way is always best."""
        if self.top > 1 or self.every or len(clauses.literals) > MAX_LITERALS or cpu_count() == 1:
            return False
        soft = clauses.weights[clauses.weights != 0]
        return len(soft) > 0 and (len(soft) < len(clauses) or bool((soft != soft[0]).any()))

    def _ask_another(self, plans: Sequence[tuple[str, float]] = _PLANS) -> None:
        """Give the question to an RC2 that is set up in another way; it has a moment to get ahead."""
        if self.panel.doubts(RC2) or self.valued or not plans:
            return
        (plan, seconds), *others = plans
        another = self._ask_rc2(plan=plan)

        def retire() -> None:
            if another in self.panel.open() and another.bound < self.bound:
                another.end()
                self._ask_another(others)

        self._do_later(now() + seconds, retire)

    def _invite(self) -> None:
        """Ask those who know more than clauses, if the problem is one for them and there is time."""
        if self._literals() > max(LITERALS.values()):
            return
        if self._literals() <= QUICK:
            self._welcome(self._demanded())
            return
        found: list[tuple[Demands, Guests] | None] = []
        thread = threading.Thread(target=lambda: found.append(self._demanded()), daemon=True)
        thread.start()

        def look() -> None:
            if thread.is_alive():
                self._do_later(now() + _LOOK, look)
            elif found:
                self._welcome(found[0])

        look()

    def _demanded(self) -> tuple[Demands, Guests] | None:
        """Return what they are asked, and who of them; None: it is too large for them, or time is over."""
        with suppress(LimitExceeded, NoAnswer):
            demands = self.problem.demands(self.budget)
            return demands, guests_of(demands, self.engines, self.jobs)
        return None

    def _welcome(self, asked: tuple[Demands, Guests] | None) -> None:
        if asked is None:
            return
        self.demands, guests = asked
        self.loose, self.valued = guests.loose, guests.valued
        for each in guests.invitations:
            self._do_later(self.begun + each.after, partial(self._ask, each))

    def _do_later(self, when: float, work: Callable[[], None]) -> None:
        self.later.append((when, work))
        self.later.sort(key=lambda pair: pair[0])

    def _literals(self) -> int:
        return len(self.clauses.literals) if self.clauses is not None else len(self.problem.theory)

    def _ask(self, guest: Invitation) -> None:
        assert self.demands is not None
        upper = None if self.least is None else self.least.lost
        question = demanded(
            MODULES[guest.name], self.demands, upper=self._upper(guest.name), workers=guest.workers
        )
        engine = self.panel.join(guest.name, question)
        engine.upper, engine.favoured = upper, guest.favoured and not self.loose

    def _upper(self, name: str) -> int | None:
        """Return what some world loses, for an engine that then looks for those that lose less."""
        return self.least.lost if self.least is not None and name == TOULBAR2 else None

    def _share(self) -> None:
        """Let everybody know the best world who can make use of it, and take turns."""
        if self.least is not None and self.top == 1 and not self.every:
            self.panel.share(self.least.values, self.least.lost, self.finder)
        if self.least is not None and self.demands is not None:
            engine = self.panel.behind(self.least.lost)
            if engine is not None:
                question = demanded(MODULES[engine.name], self.demands, upper=self.least.lost)
                with suppress(OSError):
                    self.panel.again(engine, question, self.least.lost)
        cores = cpu_count() or 1
        slots = cores if not (self.loose or self.valued) else cores - 1
        self.panel.turn(max(1, slots), strict=self.loose or self.valued)

    def _listen(self, budget: Budget) -> None:
        """Wait for others to settle the question."""
        while (self.panel.open() or self.later) and not self._over() and not budget.spent():
            self._hear(budget)

    def _meanwhile(self, work: Callable[[], _T]) -> _T | None:
        """Do what does not look at the clock, and hear what others say meanwhile; None: it is not needed."""
        if not (self.panel.open() or self.later) and self.budget == NO_LIMIT:
            return work()
        found: list[_T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(work())
            except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        while thread.is_alive():
            if self.panel.open():
                self._hear(self.budget.at_most(_LOOK))
            else:
                thread.join(_LOOK)
            if self._over():
                return None
        if failed:
            raise failed[0]
        return found[0]

    # --- hearing -------------------------------------------------------------------------------------

    def _over(self) -> bool:
        """Hear what others have to say by now, and return whether to stop."""
        self._hear(SPENT)
        return self.budget.spent() or self._settled()

    def _settled(self) -> bool:
        lost = None if self.least is None else self.least.lost
        if self.all or self.full:
            return True
        if self.enough is not None and self.enough(lost, self.bound):
            return True
        return self.top == 1 and not self.every and lost is not None and lost <= self.bound

    def _hear(self, budget: Budget) -> None:
        """Wait for somebody to say something, and take all that is said by then."""
        while self.later and now() >= self.later[0][0]:
            _, ask = self.later.pop(0)
            with suppress(OSError):  # no further process can be started
                ask()
        if self.later and not budget.spent():
            budget = budget.at_most(self.later[0][0] - now())
            if not self.panel.open():
                time.sleep(max(0.0, min(budget.left(), self.budget.left())))
        best, bound = self.least, self.bound
        for engine, said in self.panel.heard(budget):
            self._take_in(engine, said)
            if self.budget.spent():
                break
        for engine in list(self.panel.asked):
            if engine.latest is not None:
                self._try(engine, engine.latest)
        if self.least is not None:
            for engine in list(self.panel.asked):
                if engine.bound > self.least.lost:
                    self._distrust(engine, "a bound above what a world loses")
        if self.all and not self.worlds:
            raise self._nothing()
        if self.least is not best:
            self._moved(self.finder)
        if self.bound > bound:
            self._moved(self.panel.prover(self.bound))
        if not self._settled():
            self._share()

    def _moved(self, name: str | None) -> None:
        for engine in self.panel.open():
            if engine.name == name:
                engine.moved = now()

    def _take_in(self, engine: Asked, said: Message) -> None:
        """Take what an engine says; a world on its way waits, as the last is the best."""
        if engine.latest is not None and said.kind not in ("world", "bound"):
            self._try(engine, engine.latest)
        if engine.ended:
            return
        if said.kind == "bound":
            engine.speak()
            engine.bound = max(engine.bound, said.lost)
        elif said.kind == "world":
            engine.latest = said
        elif said.kind == "next":
            self._prove(engine, said)
        elif said.kind == "end":
            engine.ended = True
            empty = said.all and not engine.gave
            self.all = self.all or engine.name == RC2 or empty
            if empty and self.least is not None:
                self._distrust(engine, "it finds no world where there is one")
        elif said.kind == "declined":
            engine.ended = True
        else:
            self._distrust(engine, "its process ended without an answer")

    def _try(self, engine: Asked, said: Message) -> None:
        """Evaluate a world that an engine gave."""
        engine.latest, engine.gave = None, True
        world = self._add(_values(said.world), engine.name)
        if world is None:
            self._distrust(engine, "a world that breaks what is hard")
        elif engine.name != RC2:  # which does not say what it loses
            engine.upper = min(world.lost, world.lost if engine.upper is None else engine.upper)
            if world.lost > said.lost:
                self._distrust(engine, "a world that loses another weight")

    def _prove(self, engine: Asked, said: Message) -> None:
        """Take a world that is proven to be the next best."""
        engine.latest, engine.gave = None, True
        world = self._add(_values(said.world), engine.name)
        if world is None or world.lost != said.lost:
            self._distrust(
                engine,
                "a world that breaks what is hard" if world is None else "a world that loses another weight",
            )
            return
        self.proven.append(world)
        engine.bound = max(engine.bound, self.proven[0].lost)
        if self.every and len(self.proven) == standing.MAX_WORLDS:
            engine.ended = self.full = True

    def _distrust(self, engine: Asked, why: str) -> None:
        """Forget what an engine has said: evaluated worlds prove it wrong, or it failed."""
        self.panel.drop(engine, why)
        self.all = False
        if engine.name == RC2:
            self.proven = []

    def _add(self, values: Sequence[bool], finder: str = OWN) -> Candidate | None:
        """Evaluate a world and keep it if it is one of the best; return it if it is a model at all."""
        world = self.worlds.get(tuple(values)) or self.problem.look(values)
        if not world.keeps:
            return None
        self.worlds[world.values] = world
        if self.least is None or world.lost < self.least.lost:
            self.least, self.finder = world, finder
            if not self.every and self.top == 1:
                self.worlds = {world.values: world}
            if self.tell is not None:
                self.tell(self._standing((world,), min(self.bound, world.lost), False, "annealed"))
        return world
