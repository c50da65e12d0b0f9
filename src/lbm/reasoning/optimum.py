"""The best worlds of a theory: models that keep the evidence and lose the least weight.

A soft formula of weight w > 0 is lost where it is false, one of weight -w where it is true. So
score(x) = (sum of the positive weights) - lost(x), and the best worlds are those that lose least.

Small theories are solved exactly. For others RC2, in a process of its own, raises a lower bound of the
lost weight while chains are annealed here; where bound and best world meet, the world is optimal.
Every world is evaluated on the formulae themselves before it is given out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.errors import LimitExceeded, NoAnswer
from lbm.knowledge.formula import Formula, atoms_of, holds
from lbm.knowledge.numbers import Weight, exact_sum, magnitude
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import PackedStatements, Theory
from lbm.knowledge.weighted import weighted_clauses
from lbm.reasoning import exact
from lbm.reasoning.components.answers import Bools, NoWorlds, TooManyWorlds
from lbm.reasoning.components.apart import Component, Split, assume, check_formula, take_apart
from lbm.reasoning.sampling.chains import anneal, schedule
from lbm.reasoning.sampling.targets import score_target
from lbm.reasoning.solvers.aside import Answers, Event, maxsat
from lbm.reasoning.solvers.proof import deadline_in, satisfiable

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
class Best:
    """The best worlds of a theory, as far as they are known.

    Attributes
    ----------
    worlds
        Best first, and in lexicographic order, false first, where they lose the same.
    scores
        Σ w over the soft formulae true in each world, exactly.
    satisfied
        Σ w over the soft formulae of positive weight that are true in the first world.
    lost
        Σ |w| over those of positive weight that are false in it, and those of negative weight that are true.
    broken
        Numbers of the statements that are lost.
    optimal
        Whether it is proven that no other world is better than these.
    bound
        A proven lower bound of the weight that any world loses.
    method
        ``"exact"``; ``"certified"``: proven by RC2, or nothing is lost; ``"annealed"``: the best one found.
    complete
        Whether these are all the optimal worlds; known only if all were asked for.
    sweeps
        How many sweeps of annealing were done.
    """

    worlds: tuple[dict[str, bool], ...]
    scores: tuple[Weight, ...]
    satisfied: Weight
    lost: Weight
    broken: tuple[int, ...]
    optimal: bool
    bound: Weight
    method: str
    complete: bool = False
    sweeps: int = 0

    @property
    def world(self) -> dict[str, bool]:
        """The best world."""
        return self.worlds[0]

    @property
    def score(self) -> Weight:
        """The score of the best world."""
        return self.scores[0]

    @property
    def said(self) -> str:
        """How good the world is, in words."""
        if self.optimal:
            return f"optimal ({self.method})"
        return f"best found: any world loses {self.bound} at least, so the gap is {self.gap}"

    @property
    def gap(self) -> Weight:
        """How much less another world might lose: 0 if this one is optimal."""
        return exact_sum([self.lost, _negative(self.bound)])


def best(
    theory: Theory,
    *,
    given: Formula | None = None,
    top: int = 1,
    every: bool = False,
    seconds: float | None = 10.0,
    seed: int | np.random.Generator | None = None,
    on_better: Callable[[Best], None] | None = None,
) -> Best:
    """Return the best world among the models that keep the evidence, or the best one found in time.

    Parameters
    ----------
    given
        Evidence: any formula over the theory's atoms.
    top
        How many worlds are wanted, the best ones; fewer if there are no more.
    every
        Whether all optimal worlds are wanted instead, up to MAX_WORLDS.
    seconds
        After which the best world found is returned; None: when it is proven optimal.
    on_better
        Called with every better world as it is found.

    Raises
    ------
    NoWorlds
        If no model keeps the evidence.
    NoAnswer
        If no model was found in time.

    Examples
    --------
    >>> found = best(Theory(["a ^ b", (2, "a"), (0.5, "b")]))
    >>> found.world, found.lost, found.broken, found.optimal
    ({'a': True, 'b': False}, Decimal('0.5'), (2,), True)
    """
    if not 1 <= top <= MAX_WORLDS:
        raise ValueError(f"top is a number of worlds from 1 to {MAX_WORLDS} (limit MAX_WORLDS), got {top}")
    if every and top > 1:
        raise ValueError(f"ask for the best {top} worlds or for every optimal one, not for both")
    deadline = deadline_in(seconds)
    if given is not None:
        check_formula(theory, given, "evidence")
    judge = _Judge(theory, given)
    tell = None if on_better is None else lambda found: on_better(judge.best(found))
    found = _find(judge, deadline, top=top, every=every, rng=np.random.default_rng(seed), tell=tell)
    if not found.worlds:
        raise NoAnswer(f"no world was found within {seconds} seconds: allow more")
    return judge.best(found)


def preferred(
    theory: Theory, query: Formula, *, given: Formula | None = None, seconds: float | None = 10.0
) -> bool | None:
    """Return whether ``query`` is true in every best world of those that keep the evidence.

    It is if every world without it is proven to lose more than some world loses. None: not settled in
    time. Raises NoWorlds if no model keeps the evidence.

    >>> from lbm.knowledge.parser import parse
    >>> preferred(Theory(["a ^ b", (2, "a"), (1, "b")]), parse("a"))
    True
    """
    deadline = deadline_in(seconds)
    check_formula(theory, query, "query")
    if given is not None:
        check_formula(theory, given, "evidence")
    now = time.monotonic()
    every = _find(_Judge(theory, given), now + (deadline - now) / 2)
    if not every.worlds:
        return None
    if every.optimal and not holds(query, every.worlds[0].named(theory.atoms)):
        return False
    judge = _Judge(theory, ~query if given is None else given & ~query)
    return _loses_more(judge, every.lost, every.bound, deadline)[0]


def why_preferred(
    theory: Theory, query: Formula, *, given: Formula | None = None, seconds: float | None = 10.0
) -> tuple[tuple[int, ...], bool]:
    """Return numbers of statements that make ``query`` true in every best world, and whether all are needed.

    Every world that keeps the evidence and the hard ones of them, and in which the query is false, loses more
    by the soft ones of them alone than the best world loses of all formulae. So the query stays
    preferred whatever the other formulae say, as long as that world loses no more.

    Raises ValueError if the query is not preferred, NoAnswer if that was not settled in time.

    >>> from lbm.knowledge.parser import parse
    >>> why_preferred(Theory(["a -> b", (2, "a"), (1, "c"), "d"]), parse("b"))
    ((0, 1), True)
    """
    deadline = deadline_in(seconds)
    check_formula(theory, query, "query")
    if given is not None:
        check_formula(theory, given, "evidence")
    now = time.monotonic()
    whole = _Judge(theory, given)
    every = _find(whole, now + (deadline - now) / 2)
    if not every.optimal:
        raise NoAnswer(f"the best world was not proven to be best within {seconds} seconds: allow more")
    against = ~query if given is None else given & ~query
    judge = _Judge(theory, against)
    witnesses: list[_Judged] = []  # worlds without the query; what keeps one of them cheap gives no reason

    def suffice(numbers: Iterable[int]) -> bool | None:
        kept = sorted(numbers)
        chosen = frozenset(kept)
        if any(judge.lost_by(witness, chosen) <= every.lost for witness in witnesses):
            return False
        part = Theory.from_parts(theory.atoms, tuple(theory.statements[i] for i in kept))
        answer, world = _loses_more(_Judge(part, against, judge.places), every.lost, every.lost, deadline)
        if world is not None and answer is False:
            witnesses.append(judge.look(world.values))
        return answer

    far, near = _by_distance(theory, against)
    first = suffice([*far, *near])
    if first is None:
        raise NoAnswer(f"whether the query is preferred was not settled within {seconds} seconds: allow more")
    if not first:
        raise ValueError("the query is not preferred: some best world does without it")
    return _smallest([near, far], suffice)


# --- what a world loses ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judged:
    """A world, the numbers of the statements it breaks, and the weight it loses times 10^places.

    ``keeps``: whether it keeps the evidence and every hard formula.
    """

    values: tuple[bool, ...]
    keeps: bool
    broken: tuple[int, ...]
    lost: int

    def named(self, atoms: Sequence[str]) -> dict[str, bool]:
        return dict(zip(atoms, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class _Found:
    """The best worlds found, best first, with what is proven of them."""

    worlds: tuple[_Judged, ...]
    bound: int
    optimal: bool
    method: str
    complete: bool = False
    sweeps: int = 0

    @property
    def lost(self) -> int:
        return self.worlds[0].lost


class _Judge:
    """A theory with evidence, which evaluates worlds; weights are whole numbers, times 10^places."""

    def __init__(self, theory: Theory, given: Formula | None, places: int = 0) -> None:
        self.theory, self.given = theory, given
        statements = theory.statements
        self.packed = statements if isinstance(statements, PackedStatements) else None
        self.weights: list[int]
        if self.packed is None:
            self.places = max([places, *(_places(s.weight) for s in statements if s.weight is not None)])
            scale = 10**self.places
            self.weights = [0 if s.weight is None else int(Fraction(s.weight) * scale) for s in statements]
        else:
            self.places = places
            weights = self.packed.weights
            self.weights = [0] * len(statements) if weights is None else weights.tolist()
            self.weights = [weight * 10**places for weight in self.weights]

    def look(self, values: Sequence[bool]) -> _Judged:
        """Return what a world keeps and loses."""
        values = tuple(values)
        world = dict(zip(self.theory.atoms, values, strict=True))
        keeps = self.given is None or bool(holds(self.given, world))
        broken: list[int] = []
        for number, true in enumerate(self._truths(world)):
            if true is (self.weights[number] < 0):
                broken.append(number)
                keeps = keeps and self.weights[number] != 0
        return _Judged(values, keeps, tuple(broken), sum(abs(self.weights[number]) for number in broken))

    def _truths(self, world: dict[str, bool]) -> Iterable[bool]:
        if self.packed is None:
            return (bool(holds(statement.formula, world)) for statement in self.theory)
        clauses = self.packed.clauses
        values = np.array([False, *world.values()])
        true = values[np.abs(clauses.literals)] == (clauses.literals > 0)
        sums = np.concatenate([[0], np.cumsum(true)])
        found: list[bool] = (sums[clauses.starts[1:]] > sums[clauses.starts[:-1]]).tolist()
        return found

    def losses(self, rows: Bools) -> list[int]:
        """Return the weight that each model loses, times 10^places; ``rows`` has shape (worlds, atoms)."""
        worlds = dict(zip(self.theory.atoms, rows.T, strict=True))
        total = np.zeros(len(rows), object)
        for statement, weight in zip(self.theory, self.weights, strict=True):
            if weight:
                lost = np.broadcast_to(holds(statement.formula, worlds), len(rows)) ^ (weight > 0)
                total[lost] += abs(weight)
        return total.tolist()

    def lost_by(self, world: _Judged, numbers: frozenset[int]) -> float:
        """Return what a world loses of some statements only; infinity if a hard one of them is broken."""
        weights = [abs(self.weights[number]) for number in world.broken if number in numbers]
        return sum(weights) if all(weights) else math.inf

    def clauses(self) -> tuple[Iterator[list[int]], list[int], int]:
        """Return clauses that say the same, their weights times 10^places, and the number of variables."""
        if self.packed is None:
            # Numbers of statements stand in for weights: those are of any size, and find their clauses back.
            marked = [
                Statement(s.formula, None if not w else number if w > 0 else -number)
                for number, (s, w) in enumerate(zip(self.theory, self.weights, strict=True), start=1)
            ]
            hard = [] if self.given is None else [Statement(self.given)]
            found = weighted_clauses(Theory.from_parts(self.theory.atoms, (*marked, *hard)))
            marks = [0] * len(found.clauses) if found.weights is None else found.weights.tolist()
            weights = [abs(self.weights[mark - 1]) if mark else 0 for mark in marks]
            return _rows(found.clauses.literals, found.clauses.starts), weights, len(found.clauses.atoms)
        rows, weights = _rows(self.packed.clauses.literals, self.packed.clauses.starts), self.weights
        if self.given is None:
            return rows, weights, len(self.theory.atoms)
        evidence = weighted_clauses(Theory.from_parts(self.theory.atoms, (Statement(self.given),))).clauses
        more = list(_rows(evidence.literals, evidence.starts))
        return chain(rows, more), [*weights, *([0] * len(more))], len(evidence.atoms)

    def best(self, found: _Found) -> Best:
        """Return what was found under the names of the atoms, with weights as they were written."""
        worlds = tuple(world.named(self.theory.atoms) for world in found.worlds)
        first = found.worlds[0]
        broken = set(first.broken)
        if self.packed is None:
            weights = {i: s.weight for i, s in enumerate(self.theory) if s.weight is not None}
            scores = tuple(self.theory.score(world) for world in worlds)
        else:
            weights = {i: weight for i, weight in enumerate(self.weights) if weight}
            scores = tuple(sum(self.weights) - world.lost for world in found.worlds)
        lost = exact_sum(magnitude(weights[number]) for number in first.broken)
        return Best(
            worlds=worlds,
            scores=scores,
            satisfied=exact_sum(w for number, w in weights.items() if w > 0 and number not in broken),
            lost=lost,
            broken=first.broken,
            optimal=found.optimal,
            bound=lost if found.bound >= first.lost else _unscaled(found.bound, self.places),
            method=found.method,
            complete=found.complete,
            sweeps=found.sweeps,
        )


def _rows(literals: NDArray[np.int32], starts: NDArray[np.int64]) -> Iterator[list[int]]:
    numbers, ends = literals.tolist(), starts.tolist()
    return (numbers[start:end] for start, end in pairwise(ends))


def _places(weight: Weight) -> int:
    """Return how many digits follow the point."""
    digits = weight.as_tuple().exponent if isinstance(weight, Decimal) else 0
    assert isinstance(digits, int)  # weights are finite
    return max(0, -digits)


def _unscaled(whole: int, places: int) -> Weight:
    if not places:
        return whole
    sign, digits = int(whole < 0), tuple(map(int, str(abs(whole))))
    return Decimal((sign, digits, -places))


def _negative(weight: Weight) -> Weight:
    return weight.copy_negate() if isinstance(weight, Decimal) else -weight


# --- finding it ------------------------------------------------------------------------------------


def _find(
    judge: _Judge,
    deadline: float,
    *,
    top: int = 1,
    every: bool = False,
    rng: np.random.Generator | None = None,
    tell: Callable[[_Found], None] | None = None,
    enough: Enough | None = None,
) -> _Found:
    """Return the best worlds, exactly if that is quick; there may be none, if time is short."""
    found = _exact(judge, top, every)
    if found is not None:
        return found
    search = _Search(judge, deadline, top, every, tell, enough)
    return search.run(np.random.default_rng(0) if rng is None else rng)


def _exact(judge: _Judge, top: int, every: bool) -> _Found | None:
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
    return _Found(worlds, worlds[0].lost, optimal=True, method="exact", complete=complete)


def _method(judge: _Judge, *, soft: bool) -> str:
    """Return the method by which exact answers are quick, or quickly refused."""
    split = _split(judge, soft=soft)
    components = () if split is None else split.components
    return "auto" if all(map(_is_quick, components)) else "elimination"


def _is_quick(component: Component) -> bool:
    return len(component.atoms) <= (_QUICK if component.numbers is np.int64 else _QUICK_LONG)


def _split(judge: _Judge, *, soft: bool) -> Split | None:
    split = take_apart(judge.theory, soft=soft)
    return split if split is None or judge.given is None else assume(split, judge.given)


class _Search:
    """A search for the best worlds by RC2 in a process of its own and annealing in this one."""

    def __init__(
        self,
        judge: _Judge,
        deadline: float,
        top: int,
        every: bool,
        tell: Callable[[_Found], None] | None,
        enough: Enough | None,
    ) -> None:
        self.judge, self.deadline, self.top, self.every = judge, deadline, top, every
        self.tell, self.enough = tell, enough
        self.worlds: dict[tuple[bool, ...], _Judged] = {}
        self.least: _Judged | None = None
        self.proven: list[_Judged] = []
        self.bound = 0
        self.sweeps = 0
        self.answers: Answers | None = None
        self.ended = False  # RC2 has nothing more to say
        self.all = False  # it has given every world that was asked for
        self.full = False  # there are more than are given out

    def run(self, rng: np.random.Generator) -> _Found:
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

    def _add(self, values: Sequence[bool]) -> _Judged | None:
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
                self.tell(
                    _Found((world,), min(self.bound, world.lost), False, "annealed", sweeps=self.sweeps)
                )
        return world

    def _found(self) -> _Found:
        """Return the best worlds, sorted, with what is proven of them."""
        if self.least is None:
            return _Found((), self.bound, False, "annealed", sweeps=self.sweeps)
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
        return _Found(tuple(worlds), self.bound, optimal, method, self.every and self.all, self.sweeps)

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


# --- what is preferred -----------------------------------------------------------------------------


def _loses_more(judge: _Judge, lost: int, bound: int, deadline: float) -> tuple[bool | None, _Judged | None]:
    """Return whether every world loses more than ``lost``, or else one that loses at most ``bound``.

    None: neither was proven in time.
    """

    def enough(least: int | None, proven: int) -> bool:
        return proven > lost or (least is not None and least <= bound)

    try:
        found = _find(judge, deadline, enough=enough)
    except NoWorlds:
        return True, None
    if found.bound > lost:
        return True, None
    if found.worlds and found.lost <= bound:
        return False, found.worlds[0]
    return None, None


def _by_distance(theory: Theory, formula: Formula) -> tuple[list[int], list[int]]:
    """Return the numbers of statements that no chain of shared atoms ties to ``formula``, and the others.

    The latter come with the longest chains first.
    """
    names = [atoms_of(statement.formula) for statement in theory]
    meets: dict[str, list[int]] = {}
    for number, atoms in enumerate(names):
        for name in atoms:
            meets.setdefault(name, []).append(number)
    near: dict[int, None] = {}
    waiting, seen = list(atoms_of(formula)), set(atoms_of(formula))
    for name in waiting:  # it grows as it is walked
        for number in meets.get(name, ()):
            if number not in near:
                near[number] = None
                waiting += [other for other in names[number] if other not in seen]
                seen.update(names[number])
    return [number for number in range(len(names)) if number not in near], list(near)[::-1]


def _smallest(
    parts: list[list[int]], suffice: Callable[[Iterable[int]], bool | None]
) -> tuple[tuple[int, ...], bool]:
    """Return a minimal subset that suffices, and whether that is proven; the last part is tried first.

    More statements suffice wherever fewer do. So what cannot be left out while others are still there
    cannot be left out at all.
    """
    needed: list[int] = []
    waiting = [part for part in parts if part]
    while waiting:
        part = waiting.pop()
        answer = suffice([*needed, *(number for other in waiting for number in other)])
        if answer is None:
            return tuple(sorted([*needed, *part, *(number for other in waiting for number in other)])), False
        if answer:
            continue
        if len(part) == 1:
            needed += part
        else:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
    return tuple(sorted(needed)), True
