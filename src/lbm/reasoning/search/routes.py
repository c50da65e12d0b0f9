"""The routes to the best worlds: exactly where that is quick, else by RC2 and annealing side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from lbm.errors import LimitExceeded, NoWorlds, TooManyWorlds
from lbm.reasoning import exact
from lbm.reasoning.components.answers import Bools
from lbm.reasoning.components.apart import Component, Split, assume, take_apart
from lbm.reasoning.sampling.chains import anneal, schedule
from lbm.reasoning.sampling.targets import score_target
from lbm.reasoning.search.judge import Judge, Judged
from lbm.reasoning.solvers.aside import Answers, Event, maxsat
from lbm.reasoning.solvers.proof import satisfiable

MAX_WORLDS: Final = 1 << 16
"""Worlds that are given out, and models that are compared one by one."""

MAX_EXACT: Final = 5_000
"""Formulae and atoms of a theory that is tried exactly."""

LANES: Final = 64
"""Chains that are annealed side by side."""

_QUICK: Final = 16  # atoms of a component whose worlds may be enumerated; past it tables must be narrow
_QUICK_LONG: Final = 12  # likewise, where weights do not fit 64 bits
_SWEEPS: Final = (64, 1024)  # of the first round of annealing, and the most: they double
_IDLE: Final = 8  # rounds without a better world after which annealing ends
_FAINT: Final = 1e-6  # share of the largest weight below which annealing sees no difference
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
) -> Found:
    """Return the best worlds, exactly if that is quick; there may be none, if time is short."""
    found = _exact(judge, top, every)
    if found is not None:
        return found
    search = _Search(judge, deadline, top, every, tell, enough)
    return search.run(np.random.default_rng(0) if rng is None else rng)


def _exact(judge: Judge, top: int, every: bool) -> Found | None:
    """Return the best worlds of a theory that is small, or falls apart into small parts; None: it is not."""
    theory, given = judge.theory, judge.given
    if max(len(theory), len(theory.atoms)) > MAX_EXACT:
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


def _is_quick(component: Component) -> bool:
    return len(component.atoms) <= (_QUICK if component.numbers is np.int64 else _QUICK_LONG)


def _split(judge: Judge, *, soft: bool) -> Split | None:
    split = take_apart(judge.theory, soft=soft)
    return split if split is None or judge.given is None else assume(split, judge.given)


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
    ) -> None:
        self.judge, self.deadline, self.top, self.every = judge, deadline, top, every
        self.tell, self.enough = tell, enough
        self.worlds: dict[tuple[bool, ...], Judged] = {}
        self.least: Judged | None = None
        self.proven: list[Judged] = []
        self.bound = 0
        self.sweeps = 0
        self.answers: Answers | None = None
        self.ended = False  # RC2 has nothing more to say
        self.all = False  # it has given every world that was asked for
        self.full = False  # there are more than are given out

    def run(self, rng: np.random.Generator) -> Found:
        """Search until the question is settled or time is over."""
        split: Split | None = None
        with suppress(TooManyWorlds):  # annealing goes through the formulae one by one
            split = _split(self.judge, soft=True)
            if split is None:
                raise self._nothing()
        with ExitStack() as stack:
            try:
                clauses, weights, variables = self.judge.clauses()
                atoms = len(self.judge.theory.atoms)
                asked = maxsat(clauses, weights, variables, atoms=atoms, top=self.top, every=self.every)
                self.answers = stack.enter_context(asked)
            except (LimitExceeded, OSError):  # too large as clauses, or no process can be started
                self.ended = True
            if split is not None and self.deadline > time.monotonic():
                self._anneal(split, rng)
            while not self.ended and not self._over():
                self._hear(self.deadline)
        return self._found()

    def _anneal(self, split: Split, rng: np.random.Generator) -> None:
        sweeps, penalty, idle = _SWEEPS[0], 2.0, 0
        while idle < _IDLE and not self._over():
            rows, done = _anneal(split, self.judge.theory.atoms, rng, sweeps, penalty, self._over)
            self.sweeps += done
            if self._settled():
                return
            before = self.least
            for row in rows[: max(4, self.top)].tolist():
                self._add(row)
            if self.least is None:
                penalty *= 3  # breaking a hard formula still paid
            idle = idle + 1 if self.least is before else 0
            sweeps = min(2 * sweeps, _SWEEPS[1])

    def _over(self) -> bool:
        """Hear what RC2 has to say by now, and return whether to stop."""
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

    def _found(self) -> Found:
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


def _anneal(
    split: Split,
    names: Sequence[str],
    rng: np.random.Generator,
    sweeps: int,
    penalty: float,
    stop: Callable[[], bool],
) -> tuple[Bools, int]:
    """Return annealed worlds, likely the best first, shape (LANES, names), and how many sweeps were done.

    Components are annealed one after the other; the k-th world has the k-th best state of each.
    """
    place = {name: i for i, name in enumerate(names)}
    found = np.zeros((LANES, len(names)), np.bool_)
    for name, value in split.fixed.items():
        found[:, place[name]] = value
    found[:, [place[name] for name in split.free]] = rng.random((LANES, len(split.free))) < 0.5
    largest = max((abs(weight) for component in split.components for _, weight in component.soft), default=1)
    done = 0
    for component in split.components:
        soft = [
            (formula, math.copysign(max(abs(weight) / largest, _FAINT), weight))
            for formula, weight in component.soft
            if weight
        ]
        target = score_target(component.atoms, component.hard, soft, penalty)
        x = rng.random((len(component.atoms), LANES)) < 0.5
        betas = schedule(target, 0 if stop() else sweeps)
        states = anneal(target, x, betas, rng, on_sweep=lambda _k, _x: not stop())
        order = np.lexsort((-states.score, states.broken))
        found[:, [place[name] for name in component.atoms]] = states.x[:, order].T
        done = max(done, states.sweeps)
    return found, done
