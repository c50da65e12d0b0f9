"""The routes to the best worlds: exactly where that is quick, else whoever is right first.

RC2, in a process of its own, has the question before all others. Then comes what takes a moment: the world
that soft clauses like best, and a SAT solver's. Then exact methods, chains and walks, which end as soon as
somebody has settled the question. Every one of them looks at the clock, and hears what engines in other
processes have to say (:mod:`lbm.reasoning.search.hearing`): all share the best world and the best bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.errors import LimitExceeded, NoAnswer, TooManyWorlds
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.budget import LEAST, NO_LIMIT, SPENT, Budget, now
from lbm.reasoning.exact.buckets import WIDTH
from lbm.reasoning.proof import find_model, simple_model
from lbm.reasoning.search import engines
from lbm.reasoning.search.engines import OWN, RC2
from lbm.reasoning.search.exactly import MAX_EXACT
from lbm.reasoning.search.exactly import exact_standing as _exact
from lbm.reasoning.search.first import descended, liked
from lbm.reasoning.search.hearing import MAX_LITERALS, Hearing
from lbm.reasoning.search.standing import Standing
from lbm.reasoning.solvers.sat import model_of, solving

if TYPE_CHECKING:
    from lbm.reasoning.search.annealed import Unsettled
    from lbm.reasoning.search.lossless import Lossless
    from lbm.reasoning.search.lowered import Lowered
    from lbm.reasoning.search.valued import Valued

HEAD_START: Final = 0.1
"""Seconds for RC2 before chains begin: many questions are settled by then."""

_GLANCE: Final = 300  # atoms up to which tabu search comes first
_WALKS: Final = (5, 5, 10, 10, 20, 20)  # its walks: flips without a better world, times the number of atoms
_FOCUSED: Final = (5_000, 20_000) + (50_000,) * 30  # flips of focused walks, where nothing is soft
_MAX_READ: Final = 500_000  # literals of hard clauses that a SAT solver reads in this process
_CONFLICTS: Final = 2_000  # that a SAT solver may meet between two of them
_IDLE: Final = 8  # rounds without a better world after which annealing ends
_BRIEF: Final = 0.5  # seconds, at most, for the same before anything else is tried
_FIRST: Final = 0.1  # seconds, at most, for searches over values before that, where their code is loaded
_IDLE_VALUED: Final = 12  # likewise, of searches over values, whose rounds are short
_TURN: Final = 4  # such rounds without a better world after which chains have as long as these took
_COUNTED: Final = 10_000  # cells of counters past which clauses take longer than searches over values
_LOWERING: Final = (
    1.0,
    0.2,
)  # seconds for bounds, as long as searches have; and the share of that afterwards
_DOWN: Final = (20, 40_000_000)  # flips of one walk down, at least, and atoms that they look at
_LOSSLESS: Final = (0.02, 0.1)  # seconds for a world that loses nothing, and of every round that share
_PATIENCE: Final = 0.25  # of the time, for finding out whether an exact answer is quick
_HEAD_SHARE: Final = 0.05  # of the time that is left, at most
_DESCENT: Final = 0.1  # seconds for going down from the first world that comes to hand
_PLAIN: Final = 0.7  # seconds for chains without compiled code before a compiler is loaded
_PLAIN_SIZE: Final = 2_000  # formulae, or tens of literals, up to which such chains are of use


def _load() -> None:
    """Load what walks and chains need: that takes a moment."""
    import lbm.reasoning.search.annealed  # noqa: F401 - nothing is asked of it yet


@dataclass(eq=False, kw_only=True)
class Search(Hearing):
    """A search for the best worlds: by engines in processes of their own, and by our own methods in this one.

    Annealing begins from the world ``start``, if there is one, and runs in so many ``jobs``.
    """

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    start: Sequence[bool] | None = None
    unsettled: Unsettled | None = None
    seed: int | None = None
    rounds: Iterator[int] = field(default_factory=count)
    valued_search: tuple[Valued, ...] | None = None  # None: not looked at yet; empty: it is no such problem
    numbers: Iterator[int] = field(default_factory=count)  # of its rounds
    lowered: tuple[Lowered, ...] | None = None  # likewise
    lossless: tuple[Lossless, ...] | None = None
    tried: bool = False  # an exact answer was looked for, and there was no time to find out

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
        if self.problem.cells > _COUNTED and self.problem.has_soft:
            self._count()
            if self._over():
                return self.result()
        self._call()
        self._guess()
        if self._over():
            return self.result()
        if not small:
            if engines.loaded() and self._is_mixed():  # that takes a moment then
                self._improve(brief=1, limit=NO_LIMIT.at_most(_FIRST))
            if not self._over() and (found := self._exactly(_PATIENCE, _BRIEF)):
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
            if not self._is_mixed():
                self._lose_nothing(_LOSSLESS[0])
                self._descend()
            if self.tried and not self._over():  # there was no time for that yet
                self._improve(brief=_TURN)
                if not self._over() and (found := self._exactly(_PATIENCE)):
                    return found
            if not self._over():
                self._improve()
            if not self._over():
                self._anneal(self._over)
        self._listen(self.budget)
        return self.result()

    def _count(self) -> None:
        """Begin without clauses: cardinalities make many, and there are those who take them as they are."""
        self._expect()
        self._hear(SPENT)
        if engines.usable("valued", self.budget):
            if not engines.loaded():
                self._meanwhile(_load)
            self._improve(brief=1, limit=NO_LIMIT.at_most(_FIRST))

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
        some = bool(clauses.weights.any())  # else a SAT solver is sooner there
        if some and atoms == clauses.variables and atoms and not self._settled():
            self._add(descended(clauses, world, self.budget.at_most(_DESCENT)).tolist())
        most = MAX_LITERALS if some else _MAX_READ
        if self._settled() or self.least is not None or len(clauses.literals) > most:
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

    def _descend(self) -> None:
        """Walk down from the best world where clauses are so many that one sweep of chains takes long."""
        clauses = self.problem.weighted_clauses()
        if self.top > 1 or self.every or clauses is None or self.least is None or self._over():
            return
        if len(clauses.literals) <= MAX_LITERALS or not engines.usable("walks", self.budget):
            return
        from lbm.reasoning.engine.streams import seed_from
        from lbm.reasoning.engine.walks import ground_of, walk

        ground = self._meanwhile(lambda: ground_of(clauses))
        if ground is None or self._over():
            return
        self.seed = seed_from(self.rng) if self.seed is None else self.seed
        x, least = np.array(self.least.values, np.uint8), None
        flips = max(_DOWN[0], _DOWN[1] // ground.atoms)
        for number in count():
            found = walk(ground, x, idle=flips, seed=self.seed, number=number, flips=flips)
            if least is not None and found.cost >= least:
                return
            x, least = found.x, found.cost
            self._add(x.astype(bool).tolist())
            if self._over():
                return

    def _lose_nothing(self, seconds: float) -> None:
        """Walk for so long to a world that loses nothing, as long as there may be one."""
        if self.top > 1 or self.every or self.bound or self._over():
            return
        if self.lossless is None:
            self.lossless = ()
            clauses = self._few_clauses()
            if clauses is not None and engines.usable("walks", self.budget):
                from lbm.reasoning.engine.streams import seed_from
                from lbm.reasoning.search.lossless import lossless_of

                self.seed = seed_from(self.rng) if self.seed is None else self.seed
                found = lossless_of(clauses, self.seed)
                self.lossless = () if found is None else (found,)
        for walker in self.lossless:
            world = walker.walk(NO_LIMIT.at_most(seconds).unless(lambda: self._over() or self.bound > 0))
            if world is not None:
                self._add(world[: len(self.problem.theory.atoms)])

    def _few_clauses(self) -> Clauses | None:
        """Return theory and evidence as clauses, hard formulae with atoms of their own; None: too many."""
        clauses = self.problem.weighted_clauses()
        if clauses is not None or any(self.problem.weights):
            return clauses
        if self.clauses is None or len(self.clauses.literals) > MAX_LITERALS:
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

    def _improve(self, *, brief: int = 0, limit: Budget = NO_LIMIT) -> None:
        """Search over variables of many values, by turns with chains, where a problem has structure.

        It goes on while others are at work: what it finds helps them. Every other round begins from the best
        world that anybody has found. ``brief``: only until so many rounds in a row find nothing better, or
        the limit has come.
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
        idle, anneals = 0, not valued.grouped  # chains of single atoms do not get far there

        def hear(_: int, found: Round) -> None:
            nonlocal idle
            before = self.least
            for world in found.worlds:
                self._add(world)
            self.sweeps += found.sweeps
            idle = idle + 1 if self.least is before else 0

        def stop() -> bool:
            rises = any(each.rising for each in self.lowered or ())
            return self._over() or (idle >= _IDLE_VALUED and not (self.panel.open() or rises))

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
            self._lose_nothing(_LOSSLESS[1] * (now() - begun))
            self._lower(valued, now() - begun)
            if stop() or (brief and (idle >= brief or limit.spent())):
                return
            if idle and anneals and not idle % _TURN:
                least, limit = self.least, NO_LIMIT.at_most(_TURN * (now() - begun))
                anneals = self._anneal_once(limit)
                idle = idle if self.least is least else 0

    def _lower(self, valued: Valued, seconds: float) -> None:
        """Raise for so long the bound of what every world loses, once some world is known."""
        if self.least is None or self._over():
            return
        if self.lowered is None:
            from lbm.reasoning.search.lowered import lowered_of

            lost = self.least.lost
            found = self._meanwhile(lambda: lowered_of(valued, lost))
            self.lowered = () if found is None else (found,)
        for lowered in self.lowered:
            seconds *= 1.0 if lowered.seconds < _LOWERING[0] else _LOWERING[1]
            if lowered.rising and not self._over():
                self.floor = max(self.floor, lowered.rise(NO_LIMIT.at_most(seconds).unless(self._over)))

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
                before, idled, begun = self.least, idle, now()
                ran = anneal(
                    unsettled, seed, number, start=self.start, found=self._add, budget=Budget(stop=over)
                )
                hear(number, ran)
                idle = 0 if self.least is not before else idled + 1  # what was told on the way counts as well
                if over == self._over:
                    self._lose_nothing(_LOSSLESS[1] * (now() - begun))
                if stop():
                    return
        work = partial(anneal, unsettled, seed, start=self.start, budget=self.budget)
        spread(work, self.rounds, n_jobs=self.jobs, on_done=hear, stop=stop)
