"""The routes to the best worlds: exactly where that is quick, else by RC2 and annealing side by side."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.errors import LimitExceeded, NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge.theory import Theory
from lbm.reasoning import exact
from lbm.reasoning.clock import until
from lbm.reasoning.components.apart import Component, Split, assume, take_apart
from lbm.reasoning.components.order import WIDTH, order
from lbm.reasoning.search.judge import Judge, Judged, rows_of
from lbm.reasoning.solvers.aside import Answers, Event, maxsat
from lbm.reasoning.solvers.proof import find_model, satisfiable, solving

if TYPE_CHECKING:
    from lbm.reasoning.engine.presolve import WeightedClauses
    from lbm.reasoning.search.annealed import Landscape

MAX_WORLDS: Final = 1 << 16
"""Worlds that are given out, and models that are compared one by one."""

MAX_EXACT: Final = 5_000
"""Formulae and atoms of a theory that is tried exactly."""

_QUICK: Final = 16  # atoms of a component whose worlds may be enumerated; past it tables must be narrow
_QUICK_LONG: Final = 12  # likewise, where weights do not fit 64 bits
_GLANCE: Final = 300  # atoms up to which tabu search comes first
_WALKS: Final = (5, 5, 10, 10, 20, 20)  # its walks: flips without a better world, times the number of atoms
_FOCUSED: Final = (5_000, 20_000) + (50_000,) * 30  # flips of focused walks, where nothing is soft
_CONFLICTS: Final = 2_000  # that a SAT solver may meet between two of them
_MAX_LITERALS: Final = 200_000  # of clauses that hard formulae are turned into for them
_IDLE: Final = 8  # rounds without a better world after which annealing ends
_PATIENCE: Final = 0.25  # of the time, for finding out whether an exact answer is quick
_HEAD_START: Final = 0.1  # seconds of annealing before RC2 is started: many questions are settled by then
_FIRST: Final = 0.5  # seconds for a SAT solver to find some model, to begin with
_GRACE: Final = 1.0  # seconds to find out whether evidence or theory is to blame, when time is over

Enough = Callable[[int | None, int], bool]
"""Whether the least weight lost so far, None at first, and its lower bound settle the question."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best worlds found, best first, with what is proven of them."""

    worlds: tuple[Judged, ...]
    bound: int
    optimal: bool
    method: str
    complete: bool = False
    sweeps: int = 0

    @property
    def lost(self) -> int:
        """The weight that the best of them loses, times 10^places."""
        return self.worlds[0].lost


def find(
    judge: Judge,
    deadline: float,
    *,
    top: int = 1,
    every: bool = False,
    rng: np.random.Generator | None = None,
    tell: Callable[[Found], None] | None = None,
    enough: Enough | None = None,
    start: Sequence[bool] | None = None,
    jobs: int = 1,
) -> Found:
    """Return the best worlds, exactly if that is quick; there may be none, if time is short.

    Annealing begins from the world ``start``, if there is one, and runs in so many ``jobs``.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    search = _Search(judge, deadline, top, every, tell, enough, start, jobs)
    if search.glance(rng):
        return search.result()
    try:
        with until(time.monotonic() + _PATIENCE * (search.deadline - time.monotonic())):
            found = _exact(judge, top, every)
    except NoAnswer:
        found = None
    return found or search.run(rng)


def _exact(judge: Judge, top: int, every: bool) -> Found | None:
    """Return the best worlds of a theory that is small, or falls apart into small parts; None: it is not."""
    theory, given = judge.theory, judge.given
    if max(len(theory), len(theory.atoms)) > MAX_EXACT or _is_wide(judge):
        return None
    limit = MAX_WORLDS if every else top
    try:
        _, models = exact.best_worlds(theory, given=given, limit=limit, method=_method(judge, soft=True))
        rows, complete = models.array, every and models.complete
        if top > len(rows):
            method = _method(judge, soft=False)
            if exact.count(theory, given=given, method=method) > MAX_WORLDS:
                return None
            rows = exact.models(theory, given=given, method=method).array
            losses = judge.losses(rows)
            rows = rows[sorted(range(len(rows)), key=losses.__getitem__)[:top]]
    except TooManyWorlds:
        return None
    worlds = tuple(judge.look(row) for row in rows.tolist())
    assert all(world.keeps for world in worlds)
    return Found(worlds, worlds[0].lost, optimal=True, method="exact", complete=complete)


def _method(judge: Judge, *, soft: bool) -> str:
    """Return the method by which exact answers are quick, or quickly refused."""
    split = _split(judge, soft=soft)
    components = () if split is None else split.components
    return "auto" if all(map(_is_quick, components)) else "elimination"


def _is_wide(judge: Judge) -> bool:
    """Return whether clauses are too entangled for exact answers, before formulae are looked at."""
    if len(judge.theory.atoms) <= WIDTH:
        return False
    from lbm.reasoning.engine.presolve import presolve  # compiled code is not loaded for small theories

    clauses = judge.weighted_clauses()
    left = None if clauses is None else presolve(clauses, pure=False)
    if left is None or left.problem.atoms <= WIDTH:
        return False
    literals = np.abs(left.problem.literals) - 1
    rows = np.split(literals, left.problem.starts[1:-1])
    return (
        order(tuple({tuple(row.tolist()) for row in rows}), left.problem.atoms, frozenset(), False)[1] > WIDTH
    )


def _is_quick(component: Component) -> bool:
    return len(component.atoms) <= (_QUICK if component.numbers is np.int64 else _QUICK_LONG)


def hard_split(judge: Judge) -> Split | None:
    """Return the hard formulae and the evidence, taken apart; None: they clash."""
    return _split(judge, soft=False)


def _split(judge: Judge, *, soft: bool) -> Split | None:
    split = take_apart(judge.theory, soft=soft)
    return split if split is None or judge.given is None else assume(split, judge.given)


def _seconds_compiling() -> float:
    engine = sys.modules.get("lbm.reasoning.engine.compiled")
    return 0.0 if engine is None else float(engine.seconds_compiling())


class _Search:
    """A search for the best worlds by RC2 in a process of its own and annealing in this one."""

    def __init__(
        self,
        judge: Judge,
        deadline: float,
        top: int,
        every: bool,
        tell: Callable[[Found], None] | None,
        enough: Enough | None,
        start: Sequence[bool] | None,
        jobs: int,
    ) -> None:
        self.judge, self.top, self.every = judge, top, every
        self.without_compiling, self.compiled_before = deadline, _seconds_compiling()
        self.tell, self.enough, self.start, self.jobs = tell, enough, start, jobs
        self.worlds: dict[tuple[bool, ...], Judged] = {}
        self.least: Judged | None = None
        self.proven: list[Judged] = []
        self.bound = 0
        self.sweeps = 0
        self.answers: Answers | None = None
        self.begun = time.monotonic()
        self.called = False  # RC2 was started
        self.ended = False  # RC2 has nothing more to say
        self.all = False  # it has given every world that was asked for
        self.full = False  # there are more than are given out

    @property
    def deadline(self) -> float:
        """When to stop; kernels that had to be compiled on the way do not count."""
        return self.without_compiling + _seconds_compiling() - self.compiled_before

    def glance(self, rng: np.random.Generator) -> bool:
        """Look for a good world where that takes a moment; return whether it settles the question."""
        theory = self.judge.theory
        if self.every or self.top > 1 or len(theory.atoms) <= WIDTH or len(theory) > MAX_EXACT:
            return False
        from lbm.reasoning.engine.lanes import random_states
        from lbm.reasoning.engine.streams import seed_from
        from lbm.reasoning.engine.walks import focused, ground_of, walk

        clauses = self._few_clauses()
        if clauses is None:
            self._find_model()
            return self._settled()
        soft = bool(clauses.weights.any())
        ground = ground_of(clauses) if not soft or len(theory.atoms) <= _GLANCE else None
        if ground is None:
            return False
        seed = seed_from(rng)
        x = random_states(ground.atoms, seed)
        if self.start is not None:
            x[: len(theory.atoms), 0] = self.start
        solver = None if soft else solving(rows_of(clauses.literals, clauses.starts), conflicts=_CONFLICTS)
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
                self._hear_solver(next(solver))
            if time.monotonic() > self.deadline or self._settled():
                break
        return self._settled()

    def _hear_solver(self, model: list[bool] | bool | None) -> None:
        """Take what a SAT solver says of hard clauses: where they have structure it sees that."""
        if model is False:
            raise self._nothing()
        if isinstance(model, list):
            atoms = len(self.judge.theory.atoms)
            self._add((model + [False] * atoms)[:atoms])

    def _few_clauses(self) -> WeightedClauses | None:
        """Return theory and evidence as clauses, hard formulae with atoms of their own; None: too many."""
        from lbm.reasoning.engine.presolve import WeightedClauses

        clauses = self.judge.weighted_clauses()
        if clauses is not None or any(self.judge.weights):
            return clauses
        try:
            rows, _, variables = self.judge.clauses()
            lists = list(rows)
        except LimitExceeded:
            return None
        lengths = [len(row) for row in lists]
        if sum(lengths) > _MAX_LITERALS:
            return None
        literals = np.fromiter((literal for row in lists for literal in row), np.int32, sum(lengths))
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return WeightedClauses(variables, literals, starts, np.zeros(len(lists), np.int64))

    def run(self, rng: np.random.Generator) -> Found:
        """Search until the question is settled or time is over."""
        landscape = self._landscape()
        if self.least is None and not self.start:
            self._find_model()
        with ExitStack() as self.stack:
            if landscape is not None:
                self._anneal(landscape, rng)
            if not self._settled() and time.monotonic() < self.deadline:
                self._call()
            while not self.ended and not self._over():
                self._hear(self.deadline)
        return self.result()

    def _find_model(self) -> None:
        """Have a SAT solver find some model: chains may take long to meet the first where much is hard."""
        judge = self.judge
        hard = [place for place, weight in enumerate(judge.weights) if not weight]
        if not 0 < len(hard) <= MAX_EXACT or len(judge.theory) > _MAX_LITERALS:
            return
        seconds = min(_FIRST, (self.deadline - time.monotonic()) / 4)
        if seconds > 0:
            # Packed statements are made when they are looked at: a million soft ones are not.
            theory = Theory.from_parts(judge.theory.atoms, tuple(judge.theory.statements[k] for k in hard))
            model = find_model(theory, given=judge.given, seconds=seconds)
            if model is not None:
                self._add(list(model.values()))

    def _landscape(self) -> Landscape | None:
        """Return what is annealed; None: the theory is too large for that."""
        from lbm.reasoning.engine.presolve import presolve
        from lbm.reasoning.search.annealed import of_clauses, of_split

        clauses = self.judge.weighted_clauses()
        if clauses is not None:
            # A pure literal is true in some best world, but not in all of them.
            left = presolve(clauses, pure=self.top == 1 and not self.every)
            if left is None:
                raise self._nothing()
            self.bound = left.lost
            return of_clauses(left)
        with suppress(TooManyWorlds, LimitExceeded):  # formulae are gone through one by one
            split = _split(self.judge, soft=True)
            if split is None:
                raise self._nothing()
            return of_split(split, self.judge.theory.atoms)
        return None

    def _call(self) -> None:
        """Start RC2, unless it has been."""
        if self.called:
            return
        self.called = True
        try:
            clauses, weights, variables = self.judge.clauses()
            atoms = len(self.judge.theory.atoms)
            asked = maxsat(clauses, weights, variables, atoms=atoms, top=self.top, every=self.every)
            self.answers = self.stack.enter_context(asked)
        except (LimitExceeded, OSError):  # too large as clauses, or no process can be started
            self.ended = True

    def _anneal(self, landscape: Landscape, rng: np.random.Generator) -> None:
        from lbm.reasoning.engine.blocks import spread
        from lbm.reasoning.engine.streams import seed_from
        from lbm.reasoning.search.annealed import Round, anneal

        seed = seed_from(rng)
        # Where nothing is hard any world is a model, and there is one however short the time.
        self._add(landscape.base.tolist() if self.start is None else self.start)
        idle = 0

        def hear(_: int, found: Round) -> None:
            nonlocal idle
            before = self.least
            for world in found.worlds:
                self._add(world)
            self.sweeps += found.sweeps
            idle = idle + 1 if self.least is before else 0

        def stop() -> bool:
            return idle >= _IDLE or self._over()

        if self.jobs == 1:
            for number in count():
                before, idled = self.least, idle
                hear(
                    number,
                    anneal(landscape, seed, number, start=self.start, over=self._over, found=self._add),
                )
                idle = 0 if self.least is not before else idled + 1  # what was told on the way counts as well
                if stop():
                    return
        until = time.time() + min(self.deadline - time.monotonic(), 1e9)
        work = partial(anneal, landscape, seed, start=self.start, deadline=until)
        spread(work, count(), n_jobs=self.jobs, on_done=hear, stop=stop)

    def _over(self) -> bool:
        """Hear what RC2 has to say by now, and return whether to stop."""
        if not self.called and time.monotonic() > self.begun + _HEAD_START and not self._settled():
            self._call()
        self._hear(0.0)
        return time.monotonic() > self.deadline or self._settled()

    def _settled(self) -> bool:
        lost = None if self.least is None else self.least.lost
        if self.all or self.full:
            return True
        if self.enough is not None and self.enough(lost, self.bound):
            return True
        return self.top == 1 and not self.every and lost is not None and lost <= self.bound

    def _hear(self, until: float) -> None:
        """Wait for RC2 to say something, and take all that it has said by then."""
        latest = ""  # of the worlds on its way, the last is the best
        while self.answers is not None and not self.ended:
            event = self.answers.next(until)
            if event is None:
                break
            if event.kind == "bound":
                self.bound = max(self.bound, event.lost)
            elif event.kind == "world":
                latest = event.world
            elif event.kind == "next":
                self._prove(event)
            else:
                self.ended, self.all = True, event.kind == "end"
            until = 0.0
            if time.monotonic() > self.deadline:
                break
        if latest:
            self._add([value == "1" for value in latest])
        if self.least is not None and self.bound > self.least.lost:
            self._distrust()
        if self.all and not self.worlds:
            raise self._nothing()

    def _prove(self, event: Event) -> None:
        world = self._add([value == "1" for value in event.world])
        if world is None or world.lost != event.lost:
            self._distrust()
            return
        self.proven.append(world)
        self.bound = max(self.bound, self.proven[0].lost)
        if self.every and len(self.proven) == MAX_WORLDS:
            self.ended = self.full = True

    def _distrust(self) -> None:
        """Forget what RC2 has said: evaluated worlds prove it wrong."""
        self.ended, self.all, self.bound, self.proven = True, False, 0, []

    def _add(self, values: Sequence[bool]) -> Judged | None:
        """Evaluate a world and keep it if it is one of the best; return it if it is a model at all."""
        world = self.worlds.get(tuple(values)) or self.judge.look(values)
        if not world.keeps:
            return None
        self.worlds[world.values] = world
        if self.least is None or world.lost < self.least.lost:
            self.least = world
            if not self.every and self.top == 1:
                self.worlds = {world.values: world}
            if self.tell is not None:
                self.tell(Found((world,), min(self.bound, world.lost), False, "annealed", sweeps=self.sweeps))
        return world

    def result(self) -> Found:
        """Return the best worlds, sorted, with what is proven of them."""
        if self.least is None:
            return Found((), self.bound, False, "annealed", sweeps=self.sweeps)
        if self.every:
            optimal = self.least.lost <= self.bound
            chosen = (
                self.proven if self.all else [w for w in self.worlds.values() if w.lost == self.least.lost]
            )
        else:
            optimal = self.all if self.top > 1 else self.least.lost <= self.bound
            chosen = self.proven if self.all and self.top > 1 else list(self.worlds.values())
        worlds = sorted(chosen, key=lambda world: (world.lost, world.values))[
            : MAX_WORLDS if self.every else self.top
        ]
        method = "certified" if optimal else "annealed"
        return Found(tuple(worlds), self.bound, optimal, method, self.every and self.all, self.sweeps)

    def _nothing(self) -> NoWorlds:
        given = self.judge.given
        if given is not None:
            left = max(_GRACE, self.deadline - time.monotonic())
            if satisfiable(self.judge.theory, seconds=None if math.isinf(left) else left) is False:
                given = None
        return NoWorlds(given)
