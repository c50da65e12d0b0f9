"""The routes to the best worlds: exactly where that is quick, else whoever is right first.

RC2, in a process of its own, has the question before all others. Then comes what takes a moment: the world
that soft clauses like best, and a SAT solver's. Then exact methods, chains and walks, which end as soon as
somebody has settled the question. Every one of them looks at the clock, and hears what engines in other
processes have to say (:mod:`lbm.reasoning.search.panel`): all share the best world and the best bound.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import count
from os import cpu_count
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from lbm.errors import LimitExceeded, NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import LEAST, NO_LIMIT, SPENT, Budget, now
from lbm.reasoning.exact.buckets import WIDTH
from lbm.reasoning.problem import Candidate, Problem
from lbm.reasoning.proof import find_model, no_worlds, simple_model
from lbm.reasoning.search import engines, standing
from lbm.reasoning.search.engines import CP_SAT, OWN, RC2, TOULBAR2
from lbm.reasoning.search.exactly import MAX_EXACT
from lbm.reasoning.search.exactly import exact_standing as _exact
from lbm.reasoning.search.first import descended, liked
from lbm.reasoning.search.invited import LITERALS, SOON, Invitation, guests_of
from lbm.reasoning.search.panel import Asked, Panel
from lbm.reasoning.search.standing import Standing
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.aside import Message, demanded, maxsat
from lbm.reasoning.solvers.demands import Demands
from lbm.reasoning.solvers.sat import model_of, solving

if TYPE_CHECKING:
    from lbm.reasoning.search.annealed import Unsettled
    from lbm.reasoning.search.valued import Valued

HEAD_START: Final = 0.1
"""Seconds for RC2 before chains begin: many questions are settled by then."""

ALONE: Final = 0.1
"""Seconds that RC2 has for itself before it is asked a second time, set up in another way."""

_PLANS: Final = (("plain", 2.5), ("stratified", 3.0))  # its ways, and seconds to have the better bound
_FEW: Final = 500  # clauses up to which RC2 is left alone for that long
_GLANCE: Final = 300  # atoms up to which tabu search comes first
_WALKS: Final = (5, 5, 10, 10, 20, 20)  # its walks: flips without a better world, times the number of atoms
_FOCUSED: Final = (5_000, 20_000) + (50_000,) * 30  # flips of focused walks, where nothing is soft
_CONFLICTS: Final = 2_000  # that a SAT solver may meet between two of them
_MAX_LITERALS: Final = 200_000  # of clauses for which walks and a SAT solver are tried in this process
_IDLE: Final = 8  # rounds without a better world after which annealing ends
_BRIEF: Final = 0.5  # seconds, at most, for the same before anything else is tried
_IDLE_VALUED: Final = 12  # likewise, of searches over values, whose rounds are short
_TURN: Final = 4  # such rounds without a better world after which chains have as long as these took
_PATIENCE: Final = 0.25  # of the time, for finding out whether an exact answer is quick
_HEAD_SHARE: Final = 0.05  # of the time that is left, at most
_DESCENT: Final = 0.1  # seconds for going down from the first world that comes to hand
_PLAIN: Final = 0.7  # seconds for chains without compiled code before a compiler is loaded
_PLAIN_SIZE: Final = 2_000  # formulae, or tens of literals, up to which such chains are of use
_LOOK: Final = 0.02  # seconds between looks at work in a thread

MODULES: Final = {CP_SAT: aside.CP_SAT, TOULBAR2: aside.TOULBAR2}
"""What the process of each engine runs."""

_T = TypeVar("_T")

Enough = Callable[[int | None, int], bool]
"""Whether the least weight lost so far, None at first, and its lower bound settle the question."""


def _load() -> None:
    """Load what walks and chains need: that takes a moment."""
    import lbm.reasoning.search.annealed  # noqa: F401 - nothing is asked of it yet


def _values(world: str) -> list[bool]:
    return [value == "1" for value in world]


@dataclass(eq=False)
class Search:
    """A search for the best worlds: by engines in processes of their own, and by our own methods in this one.

    Annealing begins from the world ``start``, if there is one, and runs in so many ``jobs``. ``engines`` are
    the names of those that may be asked.
    """

    problem: Problem
    budget: Budget
    _: KW_ONLY
    top: int = 1
    every: bool = False
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    tell: Callable[[Standing], None] | None = None
    enough: Enough | None = None
    start: Sequence[bool] | None = None
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
    unsettled: Unsettled | None = None
    seed: int | None = None
    rounds: Iterator[int] = field(default_factory=count)
    valued_search: tuple[Valued, ...] | None = None  # None: not looked at yet; empty: it is no such problem
    numbers: Iterator[int] = field(default_factory=count)  # of its rounds
    tried: bool = False  # an exact answer was looked for, and there was no time to find out
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

    def found(self) -> Standing:
        """Return the best worlds, exactly if that is quick; there may be none, if time is short."""
        try:
            if OWN in self.engines:
                return self._own()
            self._call()
            self._listen(self.budget)
            return self.result()
        finally:
            self.panel.close()

    def _own(self) -> Standing:
        """Search by our own methods, beside all others."""
        small = len(self.problem.theory.atoms) <= WIDTH
        if small and (found := self._exactly(2 * _PATIENCE)):
            return found
        simple = simple_model(self.problem)
        if simple is not None:
            self._add(simple)
            if self._over():
                return self.result()
        self._call()
        self._guess()
        if self._over():
            return self.result()
        if not small and (found := self._exactly(_PATIENCE, _BRIEF)):
            return found
        if not (engines.loaded() and engines.usable("lanes", self.budget)):
            self._listen(self.budget.part(_HEAD_SHARE).at_most(HEAD_START))
            others = any(engine.name != RC2 for engine in self.panel.open()) or self._is_mixed()
            if not (self._over() or (others and engines.usable("valued", self.budget))):
                self._run_plainly()
        if not self._over() and engines.usable("lanes", self.budget):
            if not engines.loaded():
                self._meanwhile(_load)
            self._glance()
            if self.tried and not self._over():  # there was no time for that yet
                self._improve(brief=True)
                if not self._over() and (found := self._exactly(_PATIENCE)):
                    return found
            if not self._over():
                self._improve()
            if not self._over():
                self._anneal(self._over)
        self._listen(self.budget)
        return self.result()

    def _exactly(self, patience: float, most: float = math.inf) -> Standing | None:
        """Return the exact answer, if it comes in a part of the time and before the question is settled."""
        budget = self.budget.part(patience)
        brief = budget.left() > most
        self.tried = False
        try:
            return _exact(
                self.problem,
                self.top,
                self.every,
                (budget.at_most(most) if brief else budget).unless(self._over),
            )
        except NoAnswer:
            self.tried = brief
        return None

    def _is_mixed(self) -> bool:
        """Return whether something is hard and something soft."""
        if self.clauses is None:
            return self.problem.has_soft
        hard = self.clauses.weights == 0
        return bool(hard.any() and not hard.all())

    def _invite(self) -> None:
        """Ask those who know more than clauses, if the problem is one for them and there is time."""
        if self._literals() > max(LITERALS.values()):
            return
        with suppress(LimitExceeded, NoAnswer):
            demands = self.problem.demands(self.budget)
            guests = guests_of(demands, self.engines, self.jobs)
            self.demands, self.loose, self.valued = demands, guests.loose, guests.valued
            for each in guests.invitations:
                work = partial(self._ask, each)
                self.later.append((self.begun + each.after, work))
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
        if self.least is not None and self.demands is not None:
            self.panel.share(self.least.values, self.least.lost, self.finder)
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

    def _guess(self) -> None:
        """Add the world that soft clauses like best and, where it is no model, what a SAT solver finds."""
        atoms = len(self.problem.theory.atoms)
        if self.start is not None:
            self._add(self.start)
        clauses = self.clauses
        if clauses is None:
            self._add([False] * atoms)  # where nothing is hard there is a world however short the time
            self._find_model()
            return
        world = liked(clauses)
        self._add(world[:atoms].tolist())
        if atoms == clauses.variables and atoms and not self._settled():
            self._add(descended(clauses, world, self.budget.at_most(_DESCENT)).tolist())
        if self._settled() or self.least is not None or len(clauses.literals) > _MAX_LITERALS:
            return
        phases = np.where(world, 1, -1) * np.arange(1, clauses.variables + 1)
        hard = clauses.where(clauses.weights == 0).rows()
        self._take(model_of(hard, clauses.variables, phases.tolist(), self.budget.at_most(LEAST)))

    def _find_model(self) -> None:
        """Have a SAT solver find some model where clauses for all of the theory would be too many."""
        with suppress(LimitExceeded):
            model = find_model(self.problem, budget=self.budget.at_most(LEAST))
            if model is not None:
                self._add(list(model.values()))

    def _take(self, model: Sequence[bool] | bool | None) -> None:
        """Take what a SAT solver says of the hard clauses: a model, False: there is none, or nothing yet."""
        if model is False:
            raise self._nothing()
        if model is not None and model is not True:
            atoms = len(self.problem.theory.atoms)
            self._add([*model, *[False] * atoms][:atoms])

    def _glance(self) -> None:
        """Walk from world to world where that is likely to find a good one at once."""
        theory = self.problem.theory
        if self.every or self.top > 1 or len(theory.atoms) <= WIDTH or len(theory) > MAX_EXACT:
            return
        clauses = self._few_clauses()
        if clauses is None or not engines.usable("walks", self.budget):
            return
        soft = bool(clauses.weights.any())
        if soft and len(theory.atoms) > _GLANCE:
            return
        from lbm.reasoning.engine.lanes import random_states
        from lbm.reasoning.engine.streams import seed_from
        from lbm.reasoning.engine.walks import focused, ground_of, walk

        ground = ground_of(clauses)
        if ground is None:
            return
        seed = seed_from(self.rng)
        x = random_states(ground.atoms, seed)
        if self.start is not None:
            x[: len(theory.atoms), 0] = self.start
        solver = None
        if not soft and not self.panel.open():  # nobody is there to do that
            solver = solving(clauses.rows(), conflicts=_CONFLICTS)
        for number, size in enumerate(_WALKS if soft else _FOCUSED):
            begun = x[:, number]
            if soft:
                found = walk(ground, begun, idle=size * ground.atoms, seed=seed, number=number)
                self._add(found.x[: len(theory.atoms)].astype(bool).tolist())
            else:
                flips = max(size, 20 * ground.atoms)
                found = focused(ground, begun, flips=flips, seed=seed, number=number)
                if not found.cost:
                    self._add(found.x[: len(theory.atoms)].astype(bool).tolist())
            if solver is not None and number and not self._settled():
                self._take(next(solver))
            if self._over():
                return

    def _few_clauses(self) -> Clauses | None:
        """Return theory and evidence as clauses, hard formulae with atoms of their own; None: too many."""
        clauses = self.problem.weighted_clauses()
        if clauses is not None or any(self.problem.weights):
            return clauses
        if self.clauses is None or len(self.clauses.literals) > _MAX_LITERALS:
            return None
        return self.clauses

    def _run_plainly(self) -> None:
        """Anneal without compiled code: for a while, or for good where there is no time to load any."""
        from lbm.reasoning.compiling.ready import without_compiler

        clauses = self.problem.weighted_clauses()
        size = len(self.problem.theory) if clauses is None else len(clauses.literals) // 10
        if size > _PLAIN_SIZE:
            return
        plain = NO_LIMIT.at_most(_PLAIN)

        def over() -> bool:
            return self._over() or (plain.spent() and engines.usable("lanes", self.budget))

        with without_compiler():
            self._anneal(over)

    def _unsettled(self) -> Unsettled | None:
        """Return what is annealed; None: the theory is too large for that, or it is no longer needed."""
        pure = self.top == 1 and not self.every

        def work() -> tuple[Unsettled | None] | None:
            from lbm.reasoning.search.annealed import unsettled_of

            with suppress(TooManyWorlds, LimitExceeded, NoAnswer):
                return (unsettled_of(self.problem, self.budget.unless(self._settled), pure=pure),)
            return None

        found = self._meanwhile(work)
        if found is None:
            return None
        (unsettled,) = found
        if unsettled is None:
            raise self._nothing()
        self.floor = max(self.floor, unsettled.lost)
        return unsettled

    def _meanwhile(self, work: Callable[[], _T]) -> _T | None:
        """Do what does not look at the clock, and hear what others say meanwhile; None: it is not needed."""
        if not (self.panel.open() or self.later):
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

    def _call(self) -> None:
        """Give the question to RC2."""
        with suppress(LimitExceeded, NoAnswer, OSError):  # too large as clauses, or no process can be started
            self.clauses = self.problem.clauses(self.budget)
            if RC2 in self.engines:
                self._ask_rc2()
        self.begun = now()
        if not {CP_SAT, TOULBAR2}.isdisjoint(self.engines) and self.top == 1 and not self.every:
            self.later.append((self.begun + (SOON if self.panel.open() else 0.0), self._invite))
        if self.clauses is not None and RC2 in self.engines and self._wants_another(self.clauses):
            if len(self.clauses) > _FEW:  # it is not settled in a moment, and a core is free
                with suppress(OSError):
                    self._ask_another()
            else:
                self.later.append((self.begun + ALONE, self._ask_another))

    def _ask_rc2(self, **plan: str) -> Asked:
        assert self.clauses is not None
        atoms = len(self.problem.theory.atoms)
        return self.panel.join(RC2, maxsat(self.clauses, atoms=atoms, top=self.top, every=self.every, **plan))

    def _wants_another(self, clauses: Clauses) -> bool:
        """Return whether RC2 may be quick only if it is set up in another way: no one way is always best."""
        if self.top > 1 or self.every or len(clauses.literals) > _MAX_LITERALS or cpu_count() == 1:
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

        self.later.append((now() + seconds, retire))
        self.later.sort(key=lambda pair: pair[0])

    def _improve(self, *, brief: bool = False) -> None:
        """Search over variables of many values, by turns with chains, where a problem has structure.

        It goes on while others are at work: what it finds helps them. Every other round begins from the best
        world that anybody has found. ``brief``: only until rounds find nothing better for the first time.
        """
        if self.top > 1 or self.every or not engines.usable("valued", self.budget):
            return
        if self.valued_search is None:
            found = self._meanwhile(self._valued)
            self.valued_search = () if found is None else (found,)
        if not self.valued_search or self._over():
            return
        (valued,) = self.valued_search
        from lbm.reasoning.engine.streams import seed_from
        from lbm.reasoning.parallel import spread
        from lbm.reasoning.search.annealed import Round
        from lbm.reasoning.search.valued import improve

        self.seed = seed = seed_from(self.rng) if self.seed is None else self.seed
        idle, anneals = 0, True

        def hear(_: int, found: Round) -> None:
            nonlocal idle
            before = self.least
            for world in found.worlds:
                self._add(world)
            self.sweeps += found.sweeps
            idle = idle + 1 if self.least is before else 0

        def stop() -> bool:
            return self._over() or (idle >= _IDLE_VALUED and not self.panel.open())

        if self.jobs != 1 and not brief:
            work = partial(improve, valued, seed, start=self.start, budget=self.budget)
            spread(work, self.numbers, n_jobs=self.jobs, on_done=hear, stop=stop)
            return
        for number in self.numbers:
            before, idled, begun = self.least, idle, now()
            known = None if before is None or not number % 2 else before.values
            ran = improve(
                valued,
                seed,
                number,
                start=known or self.start,
                found=self._add,
                budget=Budget(stop=self._over),
            )
            hear(number, ran)
            idle = 0 if self.least is not before else idled + 1  # what was told on the way counts as well
            if stop() or (brief and idle == _TURN):
                return
            if idle and anneals and not idle % _TURN:
                least, limit = self.least, NO_LIMIT.at_most(_TURN * (now() - begun))
                anneals = self._anneal_once(limit)
                idle = idle if self.least is least else 0

    def _valued(self) -> Valued | None:
        from lbm.reasoning.search.valued import valued_of

        with suppress(NoAnswer):
            return valued_of(self.problem, self.budget.unless(self._settled))
        return None

    def _anneal_once(self, limit: Budget) -> bool:
        """Anneal for a while, between other searches; return whether that can be done again."""
        self.unsettled = unsettled = self.unsettled or self._unsettled()
        if unsettled is None or self._over():
            return False
        from lbm.reasoning.search.annealed import anneal

        assert self.seed is not None
        budget = limit.unless(self._over)
        ran = anneal(
            unsettled, self.seed, next(self.rounds), start=self.start, found=self._add, budget=budget
        )
        for world in ran.worlds:
            self._add(world)
        self.sweeps += ran.sweeps
        return True

    def _anneal(self, over: Callable[[], bool]) -> None:
        """Anneal, round after round, until that is ``over`` or finds nothing better any more."""
        self.unsettled = unsettled = self.unsettled or self._unsettled()
        if unsettled is None or over():
            return
        from lbm.reasoning.engine.streams import seed_from
        from lbm.reasoning.parallel import spread
        from lbm.reasoning.search.annealed import Round, anneal

        self.seed = seed = seed_from(self.rng) if self.seed is None else self.seed
        # Where nothing is hard any world is a model, and there is one however short the time.
        self._add(unsettled.base.tolist() if self.start is None else self.start)
        idle = 0

        def hear(_: int, found: Round) -> None:
            nonlocal idle
            before = self.least
            for world in found.worlds:
                self._add(world)
            self.sweeps += found.sweeps
            idle = idle + 1 if self.least is before else 0

        def stop() -> bool:
            return idle >= _IDLE or over()

        if self.jobs == 1 or over != self._over:
            for number in self.rounds:
                before, idled = self.least, idle
                ran = anneal(
                    unsettled, seed, number, start=self.start, found=self._add, budget=Budget(stop=over)
                )
                hear(number, ran)
                idle = 0 if self.least is not before else idled + 1  # what was told on the way counts as well
                if stop():
                    return
        work = partial(anneal, unsettled, seed, start=self.start, budget=self.budget)
        spread(work, self.rounds, n_jobs=self.jobs, on_done=hear, stop=stop)

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
        if self.later:
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
