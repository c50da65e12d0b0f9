"""A theory by its components, each of them by the method that is least work.

The functions that take a Split answer the questions that every method answers about one component.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from lbm.errors import NoAnswer, TooManyWorlds, UnknownAtom
from lbm.knowledge.formula import Formula, make
from lbm.logic.anatomy import view
from lbm.logic.elimination import Elimination
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import Component, Split, exponent, fall_apart
from lbm.reasoning.exact.blocks import LIMIT, Blocks
from lbm.reasoning.exact.buckets import Buckets
from lbm.reasoning.exact.circuits import ByCircuit
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

QUICK: Final = 20
"""Atoms of a component whose worlds are enumerated before anything cleverer is tried."""

FEW: Final = 10
"""Atoms of a component whose worlds are looked at one by one rather than put in tables."""

FAR: Final = 1e5
"""Sum of all weights, over the temperature, past which sums keep best scores apart as whole numbers."""


CHEAP: Final = 0.3
"""Seconds that tables of a component are expected to take, up to which nothing else is tried."""

_tables: Final = Known(16)
_circuits: Final = Known(16)
_tried: Final = Known(256)
_MORE: Final = 1.1  # times as long as what was tried in vain, at least, to be tried again
_PATIENCE: Final = 0.2  # seconds, beside those that tables would take, for a circuit instead of them
_ENTRY: Final = 2e-8  # seconds that an entry of a table takes
_WHOLE: Final = 2e-7  # the same, where entries are whole numbers of any size


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
                lambda: count_of(component, keep, how),  # noqa: B023 - called at once
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
        found = _best(component, limit, how)
        if found is None:
            return None
        score += found[0]
        total *= found[1]
        lists.append((component.atoms, found[2]))
    number = total if limit is None else min(limit, total)
    check_room(number, len(names))
    return score, total, _product(split, lists, names, number, how.budget)


def top(split: Split, names: Sequence[str], most: int, how: How) -> Words | None:
    """Return the best worlds over ``names``, best first, ``most`` at most; None: there is no world.

    They are the best sums of one of the best of each component, and of either value of an atom that is free.
    """
    place = {name: i for i, name in enumerate(names)}
    found: list[tuple[int, Words]] = [(0, _pattern(split, names))]
    for component in split.components:
        worlds = []
        for score, row in circuit_of(component, None, how.budget).top(most):
            spread_row = np.zeros((1, words_for(len(names))), np.uint64)
            spread(row[None], [place[name] for name in component.atoms], spread_row)
            worlds.append((score, spread_row[0]))
        if not worlds:
            return None
        found = _best_sums(found, worlds, most)
    for name in split.free:
        if len(found) >= most:  # the other value is as good, but these are enough
            break
        bit = mask([place[name]], words_for(len(names)))
        found = _best_sums(found, [(0, np.zeros_like(bit)), (0, bit)], most)
    return np.array([row for _, row in found])


def _best_sums(
    one: list[tuple[int, Words]], other: list[tuple[int, Words]], most: int
) -> list[tuple[int, Words]]:
    """Return the best pairs of two sorted lists, the i-th with the j-th only if (i + 1)(j + 1) ≤ most."""
    pairs = [
        (score + more, row | bits)
        for i, (score, row) in enumerate(one)
        for more, bits in other[: most // (i + 1)]
    ]
    return heapq.nlargest(most, pairs, key=lambda pair: pair[0])


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


Solver: TypeAlias = ByCubes | Blocks | Buckets | Tables | ByCircuit
"""What answers questions about the models of one component."""

# --- one component ---------------------------------------------------------------------------------


def solver(component: Component, how: How, keep: frozenset[str] | None = None) -> Solver:
    """Return what lists the models of a component: by the method asked for, or the first that fits."""
    size, budget = len(component.atoms), how.budget
    if how.method in ("cubes", "enumeration"):
        return _asked_for(component, how)
    if how.method == "circuit":
        return circuit_of(component, keep, budget)
    eliminating = how.method == "elimination"
    circuit = None if eliminating else circuit_given(component, keep, budget)
    if circuit is not None:
        return circuit
    flat = None if eliminating or not _all_asked(component, keep) else _flat(component, budget)
    if flat is not None:
        return flat
    if size <= QUICK and not eliminating:
        return Blocks(component, budget)
    try:
        return Buckets(component, keep, budget)
    except TooManyWorlds:
        if eliminating and not _all_asked(component, keep):
            raise
        return tables_of(component, budget) if eliminating else _compiled(component, keep, budget)


def _best(component: Component, limit: int | None, how: How) -> tuple[int, int, Words] | None:
    """Return the best score, how many models have it, and the first of them; None: there is no model.

    Tables are quickest, and list all best worlds if they are few; other methods know which come first.
    """
    found: tuple[int, int, Words] | None = None
    if how.method in ("auto", "elimination") and len(component.atoms) > FEW:
        with suppress(TooManyWorlds):
            tables = tables_of(component, how.budget)
            found = tables.best(limit)
            if found is None or limit is None or few(found[1], limit):
                return found
    try:
        return solver(component, how).best(limit)
    except TooManyWorlds:
        if found is None:
            raise
        return found


def count_of(
    component: Component,
    keep: frozenset[str] | None,
    how: How,
    weights: Mapping[str, tuple[int, int]] | None = None,
) -> int:
    """Return how many models there are, or restrictions to ``keep``; or the sum of what they weigh.

    ``weights``: what a model is multiplied by where an atom is false, and where it is true.
    """
    budget = how.budget
    if weights:
        return compiled(component, keep, budget, counting=True).count(keep, weights)
    if how.method in ("cubes", "enumeration", "circuit") or not _all_asked(component, keep):
        return solver(component, how, keep).count(keep)
    if how.method == "elimination":
        return tables_of(component, budget).count()
    circuit = circuit_given(component, keep, budget)
    if circuit is not None:
        return circuit.count()
    flat = _flat(component, budget)
    if flat is not None:
        return flat.count()
    if len(component.atoms) <= QUICK:
        return Blocks(component, budget).count()
    return _compiled(component, None, budget, counting=True).count()


def _summing(component: Component, how: How, scale: int, temperature: float) -> Solver:
    """Return what sums over the models of a component: by the method asked for, or the first that fits."""
    spread = sum(abs(weight) for _, weight in component.soft)
    size, budget = len(component.atoms), how.budget
    if not exponent(spread, scale, temperature) < FAR:
        return _far(component, how)
    if how.method in ("cubes", "enumeration", "circuit"):
        return solver(component, how)
    if how.method == "elimination":
        return tables_of(component, budget)
    circuit = circuit_given(component, None, budget)
    if circuit is not None:
        return circuit
    flat = None if component.soft else _flat(component, budget)
    if flat is not None:
        return flat
    if size <= FEW:
        return Blocks(component, budget)
    if size > QUICK:
        return _compiled(component, None, budget)
    with suppress(TooManyWorlds):
        tables = tables_of(component, budget)
        if tables.work <= 1 << QUICK:
            return tables
    return Blocks(component, budget)


def _far(component: Component, how: How) -> Solver:
    """Return what keeps best scores apart as whole numbers, where floats would lose small differences."""
    if how.method in ("cubes", "enumeration"):
        return _asked_for(component, how)
    with suppress(TooManyWorlds):
        if len(component.atoms) > QUICK or how.method == "elimination":
            return Buckets(component, None, how.budget)
    if how.method == "auto" and len(component.atoms) <= LIMIT:
        return Blocks(component, how.budget)
    raise TooManyWorlds(
        f"{len(component.atoms)} free atoms: weights whose sum over the temperature is past {FAR:g} (limit "
        "FAR) are summed up in narrow theories only: raise the temperature, or sample",
        FAR=int(FAR),
    )


def _compiled(
    component: Component, keep: frozenset[str] | None, budget: Budget, *, counting: bool = False
) -> Solver:
    """Return tables or a circuit of a component or, if it is too large for both, all its worlds."""
    try:
        return compiled(component, keep, budget, counting=counting)
    except TooManyWorlds:
        if len(component.atoms) <= LIMIT:
            return Blocks(component, budget)
        raise


def compiled(
    component: Component, keep: frozenset[str] | None, budget: Budget, *, counting: bool = False
) -> Tables | ByCircuit:
    """Return tables or a circuit of a component, whichever is less work; restrictions: a circuit.

    Tables say beforehand how large they are; a circuit shows it as it is made. So tables that are small are
    taken at once, and else a circuit is tried, for as long as tables would take if there are any. Soft
    formulae do not propagate: where most are, and there are no tables, a circuit is about as large, and has
    the time that the budget gives to what is unsure. What was tried in vain is not tried again, unless there
    is more time. ``counting``: whole numbers of any size are wanted, which take longer in tables.
    """
    circuit = circuit_given(component, keep, budget)
    if circuit is not None:
        return circuit
    tables: Tables | None = None
    if _all_asked(component, keep):
        with suppress(TooManyWorlds):
            tables = tables_of(component, budget)
    seconds = 0.0 if tables is None else tables.work * (_WHOLE if counting else _ENTRY)
    if tables is not None and seconds <= CHEAP:
        return tables
    unsure = tables is None and len(component.soft) > len(component.hard) and budget.unsure < math.inf
    if tables is not None:
        part = budget.at_most(_PATIENCE + seconds)
    else:
        part = budget.at_most(budget.unsure) if unsure else budget
    try:
        return _tried_once(component, keep, part).within(budget)
    except (TooManyWorlds, NoAnswer) as error:
        if tables is not None:
            budget.tick()
            return tables
        size = len(component.atoms)
        if unsure and not budget.spent():  # the same words, whichever limit is met first on this machine
            raise TooManyWorlds(
                f"{size} free atoms make {how_many(size)} worlds; enumeration stops at {LIMIT} (limit "
                f"LIMIT), elimination needs tables of more than {MAX_TABLE} entries (limit MAX_TABLE), and "
                "most formulae are soft, of which a circuit is about as large: give more evidence, or sample",
                MAX_TABLE=MAX_TABLE,
            ) from error
        if isinstance(error, NoAnswer):
            raise
        raise TooManyWorlds(
            f"{size} free atoms make {how_many(size)} worlds; enumeration stops at {LIMIT} (limit LIMIT), "
            f"elimination needs tables of more than {MAX_TABLE} entries (limit MAX_TABLE), and a circuit "
            f"passes {error.value} (limit {error.limit}): give more evidence, or sample",
            **{error.limit: error.value},
        ) from error


@dataclass(slots=True)
class _InVain:
    """For how many seconds a circuit was tried in vain, and the limit that it passed, with its value."""

    seconds: float = 0.0
    limit: tuple[str, int] | None = None


def _tried_once(component: Component, keep: frozenset[str] | None, budget: Budget) -> ByCircuit:
    """Return a component as a circuit; raise at once where as much time was not enough before, or a limit."""
    vain = _tried.get((component, _kept(component, keep)), _InVain)
    seconds = budget.left()
    if vain.limit is not None:
        raise TooManyWorlds("a circuit of it was too large before", **dict([vain.limit]))
    if seconds <= _MORE * vain.seconds:
        raise NoAnswer("a circuit of it took more time before: allow more seconds")
    try:
        return circuit_of(component, keep, budget)
    except TooManyWorlds as error:
        vain.limit = error.limit, error.value
        raise
    except NoAnswer:
        if budget.left() < 0:  # else it was no longer needed
            vain.seconds = max(vain.seconds, seconds)
        raise


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
    return _kept(component, keep) is None


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


def circuit_of(component: Component, keep: frozenset[str] | None, budget: Budget) -> ByCircuit:
    """Return a component as a circuit; those of the last components are kept."""
    kept = _kept(component, keep)
    found = _circuits.get((component, kept), lambda: ByCircuit.of(component, kept, budget))
    return found.within(budget)


def _kept(component: Component, keep: frozenset[str] | None) -> frozenset[str] | None:
    """Return the atoms of a component that models are restricted to; None: they are not."""
    return None if keep is None or keep.issuperset(component.atoms) else keep.intersection(component.atoms)


def circuit_given(component: Component, keep: frozenset[str] | None, budget: Budget) -> ByCircuit | None:
    """Return a component as a circuit where its formula is one already, as files of circuits have it."""
    if len(component.atoms) <= FEW or not _all_asked(component, keep):
        return None
    found = _circuits.get(("given", component), lambda: ByCircuit.ready(component, budget))
    return None if found is None else found.within(budget)


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
