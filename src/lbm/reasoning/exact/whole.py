"""A theory by its components, and a component that is too large by cases, each of them a whole again.

Cases (cutset conditioning) are the values of a few atoms, which let the rest fall apart.

The functions that take a Split answer the questions that every method answers about one component.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lbm.errors import TooManyWorlds, UnknownAtom
from lbm.knowledge.formula import Formula, atoms_of, make
from lbm.logic.anatomy import view
from lbm.logic.elimination import Elimination
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import Component, Split, exponent, fall_apart
from lbm.reasoning.exact.blocks import LIMIT, Blocks
from lbm.reasoning.exact.buckets import Buckets
from lbm.reasoning.exact.cubes import MAX_CUBES, ByCubes
from lbm.reasoning.exact.rows import (
    Words,
    check_room,
    coins,
    few,
    how_many,
    mask,
    sort_rows,
    spread,
    words_for,
)
from lbm.reasoning.exact.tables import MAX_TABLE, Tables
from lbm.reasoning.problem import Known

MAX_CASES: Final = 256
"""Cases that a component too large for every method is split into."""

MAX_ASSUMED: Final = 12
"""Atoms that a case assumes."""

QUICK: Final = 20
"""Atoms of a component whose worlds are enumerated before anything cleverer is tried."""

FEW: Final = 10
"""Atoms of a component whose worlds are looked at one by one rather than put in tables."""

FAR: Final = 1e5
"""Sum of all weights, over the temperature, past which sums keep best scores apart as whole numbers."""

_tables: Final = Known(16)

_ONE_CASE: Final = "one case"  # as auto, without looking for cases


@dataclass(frozen=True, slots=True)
class How:
    """How components are solved: by which method, with what is known already, and in what time."""

    method: str = "auto"
    known: Known = field(default_factory=Known)
    budget: Budget = NO_LIMIT


def either_way(query: Formula, share: Callable[[Formula], float]) -> float:
    """Return the share of a query, or 1 less that of its negation where that is less work or more exact."""
    try:
        found = share(query)
    except TooManyWorlds:
        # The negation of a disjunction falls apart into components that the disjunction joins.
        if view(query).op != "or":
            raise
        return 1.0 - share(~query)
    if found > 1.0 - 1e-9:
        with suppress(TooManyWorlds):
            return 1.0 - share(~query)  # nearer the truth, and exactly 1 where the query is entailed
    return found


def check_world(world: Mapping[str, Any], atoms: Sequence[str], where: str) -> None:
    """Raise unless a world has values for these atoms and no others; ``where`` says whose atoms they are."""
    known = set(atoms)
    for name in world:
        if name not in known:
            raise UnknownAtom(name, atoms, where)
    for name in atoms:
        if name not in world:
            raise UnknownAtom(name, world, "world")


def count(split: Split, keep: frozenset[str] | None, how: How) -> int:
    """Return how many models there are, or restrictions to ``keep``."""
    total = 1
    late: TooManyWorlds | None = None
    for component in split.components:
        how.budget.tick()
        # A component that is too large may stand beside one that allows no world.
        try:
            total *= how.known.get(
                ("count", component, keep, how.method),
                lambda: _count(component, keep, how),  # noqa: B023 - called at once
            )
        except TooManyWorlds as error:
            late = late or error
        if not total:
            return 0
    if late is not None:
        raise late
    return total << sum(keep is None or name in keep for name in split.free)


def worlds(split: Split, names: Sequence[str], keep: frozenset[str] | None, limit: int, how: How) -> Words:
    """Return the first ``limit`` models over ``names``; an atom outside ``keep`` is false throughout."""
    lists = [
        (component.atoms, _first(component, keep, limit, how))
        for component in split.components
        if keep is None or not keep.isdisjoint(component.atoms)
    ]
    kept = [name if keep is None or name in keep else "" for name in names]
    return _product(split, lists, kept, limit, how.budget)


def mass(split: Split, temperature: float, how: How) -> tuple[int, float] | None:
    """Return (best, log) with Z = exp(best/scale/τ + log); None: there is no world."""
    score, logs = split.score, [math.log(2)] * len(split.free)
    for component in split.components:
        found = how.known.get(
            ("mass", component, temperature, how.method),
            lambda: _summing(component, how, split.scale, temperature).mass(split.scale, temperature),  # noqa: B023
        )
        if found is None:
            return None
        score += found[0]
        logs.append(found[1])
    return score, math.fsum(logs)


def marginals(split: Split, temperature: float, how: How) -> dict[str, float] | None:
    """Return the probability of every atom; None: there is no world."""
    found: dict[str, float] = {name: float(value) for name, value in split.fixed.items()}
    found.update(dict.fromkeys(split.free, 0.5))
    for component in split.components:
        chances = how.known.get(
            ("marginals", component, temperature, how.method),
            lambda: _summing(component, how, split.scale, temperature).marginals(  # noqa: B023
                split.scale, temperature
            ),
        )
        if chances is None:
            return None
        found.update(zip(component.atoms, chances, strict=True))
    return found


def best(split: Split, names: Sequence[str], limit: int | None, how: How) -> tuple[int, int, Words] | None:
    """Return the best score, how many worlds have it, and the first of them; None: there is no world."""
    score, total, lists = split.score, 1 << len(split.free), []
    for component in split.components:
        found = solver(component, how).best(limit)
        if found is None:
            return None
        score += found[0]
        total *= found[1]
        lists.append((component.atoms, found[2]))
    number = total if limit is None else min(limit, total)
    check_room(number, len(names))
    return score, total, _product(split, lists, names, number, how.budget)


def draw(
    split: Split, names: Sequence[str], n: int, rng: np.random.Generator, temperature: float, how: How
) -> Words | None:
    """Return ``n`` independent draws over ``names``; None: there is no world."""
    place = {name: i for i, name in enumerate(names)}
    found = np.tile(_pattern(split, names), (n, 1))
    for component in split.components:
        by = _summing(component, how, split.scale, temperature)
        rows = by.draw(n, rng, split.scale, temperature)
        if rows is None:
            return None
        spread(rows, [place[name] for name in component.atoms], found)
    if split.free:
        found |= coins(n, found.shape[1], rng) & mask([place[name] for name in split.free], found.shape[1])
    return found


def _pattern(split: Split, names: Sequence[str]) -> Words:
    """Return the row in which the fixed atoms have their values and all others are false."""
    return mask([i for i, name in enumerate(names) if split.fixed.get(name)], words_for(len(names)))


def _product(
    split: Split,
    lists: Sequence[tuple[tuple[str, ...], Words]],
    names: Sequence[str],
    limit: int,
    budget: Budget,
) -> Words:
    """Return the first ``limit`` worlds that have a row of each list; sorted lists give sorted worlds.

    A world among the first L takes the i-th row of one list and the j-th of another only if
    (i + 1)(j + 1) ≤ L: replacing either by an earlier one gives an earlier world.
    """
    place = {name: i for i, name in enumerate(names)}
    unsettled = set(split.free)
    free = [name for name in names if name in unsettled]
    both = np.array([[0], [1 << 63]], np.uint64)
    found = _pattern(split, names)[None, :][:limit]
    # The last atoms first, so that worlds of neighbouring atoms need no sorting.
    pieces = [*lists, *(((name,), both) for name in free)]
    pieces.sort(key=lambda piece: -min(place[name] for name in piece[0] if name in place))
    for atoms, rows in pieces:
        budget.tick()
        other = np.zeros((len(rows), found.shape[1]), np.uint64)
        spread(rows, [place.get(name, -1) for name in atoms], other)
        if len(found) * len(other) <= 2 * limit:
            joined = (other[:, None, :] | found[None, :, :]).reshape(-1, found.shape[1])
        else:
            reach = np.minimum(limit // np.arange(1, min(len(other), limit) + 1), len(found))
            first = np.repeat(np.arange(len(reach)), reach)
            second = np.arange(len(first)) - np.repeat(np.cumsum(reach) - reach, reach)
            joined = other[first] | found[second]
        found = sort_rows(joined)[:limit]
    return found


Solver: TypeAlias = "ByCubes | Blocks | Buckets | Tables | Cases"
"""What answers questions about the models of one component."""

# --- one component ---------------------------------------------------------------------------------


def solver(component: Component, how: How, keep: frozenset[str] | None = None) -> Solver:
    """Return what lists the models of a component: by the method asked for, or the first that fits."""
    size, budget = len(component.atoms), how.budget
    if how.method in ("cubes", "enumeration"):
        return _asked_for(component, how)
    eliminating = how.method == "elimination"
    flat = None if eliminating or not _all_asked(component, keep) else _flat(component, budget)
    if flat is not None:
        return flat
    if size <= QUICK and not eliminating:
        return Blocks(component, budget)
    try:
        return Buckets(component, keep, budget)
    except TooManyWorlds:
        if _all_asked(component, keep):
            with suppress(TooManyWorlds):
                return tables_of(component, budget)
        if eliminating:
            raise
        return _wide(component, how, keep)


def _count(component: Component, keep: frozenset[str] | None, how: How) -> int:
    """Return how many models there are, or restrictions to ``keep``."""
    if how.method in ("cubes", "enumeration") or not _all_asked(component, keep):
        return solver(component, how, keep).count(keep)
    if how.method == "elimination":
        return tables_of(component, how.budget).count()
    flat = _flat(component, how.budget)
    if flat is not None:
        return flat.count()
    if len(component.atoms) <= QUICK:
        return Blocks(component, how.budget).count()
    try:
        return tables_of(component, how.budget).count()
    except TooManyWorlds:
        return _wide(component, how, keep).count()


def _summing(component: Component, how: How, scale: int, temperature: float) -> Solver:
    """Return what sums over the models of a component: by the method asked for, or the first that fits."""
    spread = sum(abs(weight) for _, weight in component.soft)
    if how.method in ("cubes", "enumeration") or not exponent(spread, scale, temperature) < FAR:
        return solver(component, how)
    size, budget = len(component.atoms), how.budget
    if how.method == "elimination":
        return tables_of(component, budget)
    flat = None if component.soft else _flat(component, budget)
    if flat is not None:
        return flat
    if size <= FEW:
        return Blocks(component, budget)
    try:
        tables = tables_of(component, budget)
        if size > QUICK or tables.work <= 1 << QUICK:
            return tables
    except TooManyWorlds:
        if size > QUICK:
            return _wide(component, how, None)
    return Blocks(component, budget)


def _asked_for(component: Component, how: How) -> ByCubes | Blocks:
    """Return the cubes of a component, or all its worlds, as the method says."""
    size = len(component.atoms)
    if how.method == "cubes":
        return ByCubes(component, 1 << 16, how.budget)
    if size > LIMIT:
        raise TooManyWorlds(
            f"{size} free atoms make {how_many(size)} worlds; enumeration stops at {LIMIT} "
            "(limit LIMIT): try method='auto'",
            LIMIT=LIMIT,
        )
    return Blocks(component, how.budget)


def _all_asked(component: Component, keep: frozenset[str] | None) -> bool:
    """Return whether models themselves are asked for, not restrictions of them."""
    return keep is None or keep.issuperset(component.atoms)


def _flat(component: Component, budget: Budget) -> ByCubes | None:
    """Return a component by cubes, if nothing is soft and they are few at a glance."""
    if component.soft:
        return None
    sizes, cubes = Elimination(), 1
    for part in component.hard:
        cubes *= sizes.size(part)
        if cubes > MAX_CUBES:  # most have too many after a few formulae
            return None
    return ByCubes(component, MAX_CUBES, budget)


def tables_of(component: Component, budget: Budget) -> Tables:
    """Return a component as tables; those of the last components are kept, with their orders."""
    found = _tables.get(component, lambda: Tables(component, budget))
    return found.within(budget)


def _wide(component: Component, how: How, keep: frozenset[str] | None) -> Solver:
    """Return what answers about a component that has no narrow tables."""
    if len(component.atoms) <= LIMIT:
        return Blocks(component, how.budget)
    if how.method != _ONE_CASE:
        for other in (
            lambda: ByCubes(component, MAX_CUBES, how.budget),
            lambda: Cases(component, keep, how.budget),
        ):
            with suppress(TooManyWorlds):
                return other()
    size = len(component.atoms)
    raise TooManyWorlds(
        f"{size} free atoms make {how_many(size)} worlds; enumeration stops at {LIMIT} (limit LIMIT), and "
        f"elimination needs tables of more than {MAX_TABLE} entries (limit MAX_TABLE): give more evidence, "
        "or sample",
        LIMIT=LIMIT,
    )


def _first(component: Component, keep: frozenset[str] | None, limit: int, how: How) -> Words:
    """Return the first ``limit`` models of a component, or their restrictions to ``keep``, sorted.

    Where there are far more and its method cannot tell which are the first, worlds are split by their first
    atoms until there are few enough to list.
    """
    found = solver(component, how, keep).worlds(limit, keep)
    if found is not None:
        return found
    names, inside = component.atoms, How(budget=how.budget)
    wanted = [name for name in names if keep is None or name in keep]
    lists: list[Words] = []
    missing = limit
    waiting: list[tuple[Formula, ...]] = [()]
    while waiting and missing:
        how.budget.tick()
        literals = waiting.pop()
        split = fall_apart(names, [*component.hard, *literals], (), how.budget)
        if split is None:
            continue
        total = count(split, keep, inside)
        if not few(total, missing):
            name = make("atom", next(name for name in wanted if name not in split.fixed), ())
            waiting += [(*literals, name), (*literals, ~name)]
        elif total:
            lists.append(worlds(split, names, keep, min(missing, total), inside))
            missing -= len(lists[-1])
    return np.concatenate(lists)


class Cases:
    """A component too large for every method, split by the values of a few atoms that many formulae mention.

    Every model belongs to one case. Each case is a problem of its own: with more atoms fixed it falls apart,
    or its tables become narrow enough.
    """

    def __init__(self, component: Component, keep: frozenset[str] | None, budget: Budget) -> None:
        self.component, self.how = component, How(_ONE_CASE, budget=budget)
        self.cases: list[Split] = []
        waiting: list[tuple[Formula, ...]] = [()]
        while waiting:
            budget.tick()
            literals = waiting.pop()
            case = fall_apart(component.atoms, [*component.hard, *literals], component.soft, budget)
            if case is None:
                continue
            met: Counter[str] = Counter()
            for part in case.components:
                try:
                    solver(part, self.how, keep)
                except TooManyWorlds:
                    for formula in (*part.hard, *(formula for formula, _ in part.soft)):
                        met.update(name for name in atoms_of(formula) if keep is None or name in keep)
                    if not met:
                        raise
            if not met:
                self.cases.append(case)
                continue
            if len(literals) >= MAX_ASSUMED or len(self.cases) + len(waiting) >= MAX_CASES:
                raise TooManyWorlds(
                    f"{len(component.atoms)} free atoms are too many even case by case (limit MAX_CASES)",
                    MAX_CASES=MAX_CASES,
                )
            name = make("atom", max(met, key=met.__getitem__), ())
            waiting += [(*literals, name), (*literals, ~name)]

    def count(self, keep: frozenset[str] | None = None) -> int:
        """Return how many models there are, or restrictions to the atoms it was made for."""
        return sum(count(case, keep, self.how) for case in self.cases)

    def worlds(self, limit: int, keep: frozenset[str] | None = None) -> Words:
        """Return the first ``limit`` models, sorted, or their restrictions to ``keep``."""
        names = self.component.atoms
        found = np.zeros((0, words_for(len(names))), np.uint64)
        for case in self.cases:
            number = min(limit, count(case, keep, self.how))
            if number:
                more = worlds(case, names, keep, number, self.how)
                found = sort_rows(np.concatenate([found, more]))[:limit]
        return found

    def _shares(
        self, scale: int, temperature: float
    ) -> tuple[list[Split], NDArray[np.float64], tuple[int, float]] | None:
        """Return the cases that have models, the probability of each, and the mass of all."""
        pairs = []
        for case in self.cases:
            scaled = replace(case, scale=scale)
            found = mass(scaled, temperature, self.how)
            if found is not None:
                pairs.append((scaled, found))
        if not pairs:
            return None
        top = max(score for _, (score, _) in pairs)
        logs = [exponent(score - top, scale, temperature) + log for _, (score, log) in pairs]
        weights = np.exp(np.array(logs) - max(logs))
        log = max(logs) + math.log(weights.sum())
        return [case for case, _ in pairs], weights / weights.sum(), (top, log)

    def mass(self, scale: int, temperature: float) -> tuple[int, float] | None:
        """Return (best, log) with Z = exp(best/scale/τ + log); None: there is no model."""
        found = self._shares(scale, temperature)
        return None if found is None else found[2]

    def marginals(self, scale: int, temperature: float) -> list[float] | None:
        """Return the probability of each atom: that in each case, times the case's."""
        found = self._shares(scale, temperature)
        if found is None:
            return None
        sums = dict.fromkeys(self.component.atoms, 0.0)
        for case, share in zip(found[0], found[1].tolist(), strict=True):
            chances = marginals(case, temperature, self.how)
            assert chances is not None  # cases without models have been left out
            for name, chance in chances.items():
                sums[name] += share * chance
        return [min(chance, 1.0) for chance in sums.values()]

    def best(self, limit: int | None) -> tuple[int, int, Words] | None:
        """Return the best score, how many models have it, and the first of them; None: there is no model."""
        names = self.component.atoms
        tops = [best(case, names, limit, self.how) for case in self.cases]
        found = [top for top in tops if top is not None]
        if not found:
            return None
        score = max(top for top, _, _ in found)
        number = sum(ways for top, ways, _ in found if top == score)
        rows = np.concatenate([rows for top, _, rows in found if top == score])
        return score, number, sort_rows(rows)[:limit]

    def draw(self, n: int, rng: np.random.Generator, scale: int, temperature: float) -> Words | None:
        """Return ``n`` independent draws: first how many of each case, then which."""
        found = self._shares(scale, temperature)
        if found is None:
            return None
        names = self.component.atoms
        lists = [np.zeros((0, words_for(len(names))), np.uint64)]
        for case, number in zip(found[0], rng.multinomial(n, found[1]).tolist(), strict=True):
            if number:
                rows = draw(case, names, number, rng, temperature, self.how)
                assert rows is not None  # cases without models have been left out
                lists.append(rows)
        return rng.permutation(np.concatenate(lists))
