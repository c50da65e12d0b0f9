"""From clauses and cardinalities to variables of many values: groups found, tied ones joined, rules written.

A *group* is a set of literals of which hard rules let exactly one, or at most one, be true: it becomes one
variable, whose values are its literals and, where none has to be true, that none is. Every other atom is a
variable of two values. Two variables that hard rules tie so closely that hardly more pairs of values are
left than one of them has values (bijections, equivalences) become one, whose values are those pairs.

Inside, a literal is a code: 2·i for atom i, from 0, and one more for its negation.
"""

# Kernels are typed by numba, by what they are called with.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Ints
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.compiling.ready import kernel
from lbm.reasoning.engine.alternatives import Count, exclusive
from lbm.reasoning.engine.gains import Slots, Space

MAX_SIZE: Final = 8_000_000
"""Pairs of slots, and listed ones, past which clauses are too many to be searched like this."""

_CELLS: Final = 256  # pairs of slots that one clause of two variables may make; more are counted instead
_JOINED: Final = 4_096  # values of joined variables, at most
_ROOM: Final = 2  # pairs of values that two joined variables may have, times the larger of them


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Variables of many values, and the way back to atoms.

    Attributes
    ----------
    space
        What is searched.
    groups
        Shape (groups,): how many literals each has.
    joined
        How many variables went into others.
    """

    space: Space
    groups: Ints
    joined: int
    slot_of: Slots  # of each code: the base slot that makes it true, -1: any other than that of its negation
    base_owner: Slots  # the base variable of each base slot
    parts: Slots  # shape (slots, most base variables of one): the base slots that a slot stands for, -1: none

    def atoms(self, current: Slots | Ints) -> Bools:
        """Return the values of the atoms, where variables have these slots."""
        chosen = np.zeros(len(self.base_owner) + 1, bool)
        chosen[self.parts[current].ravel()] = True
        chosen[-1] = False
        positive, negative = self.slot_of[::2], self.slot_of[1::2]
        return np.where(positive >= 0, chosen[positive], ~chosen[negative])

    def slots(self, values: Bools) -> Slots:
        """Return the slots that agree best with values of the atoms."""
        literals = np.empty(len(self.slot_of), bool)
        literals[::2], literals[1::2] = values, ~values
        agree = np.zeros(len(self.base_owner) + 1, np.int64)
        direct = self.slot_of >= 0
        agree[self.slot_of[direct]] = 2 * literals[direct]
        # "None of them" has no literal: it agrees where no other does.
        bare = np.ones(len(self.base_owner), bool)
        bare[self.slot_of[direct]] = False
        agree[:-1][bare] = 1
        agree[-1] = 0
        fits = agree[self.parts].sum(axis=1)
        order = np.lexsort((-fits, self.space.owner))
        found: Slots = order[self.space.first[:-1]].astype(np.int32)
        return found


# --- rules -------------------------------------------------------------------------------------------


@kernel("valued")
def _parts(codes, starts, slot_of, owner, size, part_first, part_var, part_yes, list_first, listed):
    """Write each clause, its literals in the order of variables, as a part for each variable.

    Clauses that are always true get none. A part that one slot makes false lists that one.
    """
    number, length = 0, 0
    for c in range(len(starts) - 1):
        begin, start, place = number, length, starts[c]
        valid = False
        while place < starts[c + 1] and not valid:
            v, without, direct = -1, -1, 0
            part_yes[number], list_first[number] = 1, length
            while place < starts[c + 1]:
                slot = slot_of[codes[place]]
                yes = slot >= 0
                if not yes:
                    slot = slot_of[codes[place] ^ 1]
                if v >= 0 and owner[slot] != v:
                    break
                v = owner[slot]
                if yes:
                    listed[length] = slot
                    length += 1
                    direct += 1
                elif without >= 0 and without != slot:
                    valid = True
                else:
                    without = slot
                place += 1
            if without >= 0:
                for i in range(list_first[number], length):
                    if listed[i] == without:
                        valid = True
                length = list_first[number]
                listed[length] = without
                length += 1
                part_yes[number] = 0
            elif direct == size[v]:
                valid = True
            part_var[number] = v
            number += 1
        if valid:
            number, length = begin, start
        part_first[c + 1] = number
    list_first[number] = length
    return number


@kernel("valued")
def _pairs(clauses, part_first, part_var, part_yes, list_first, listed, first, one, other, clause):
    """Write the pairs of slots that make clauses of two parts false."""
    at = 0
    for i in range(len(clauses)):
        a = part_first[clauses[i]]
        b = a + 1
        for p in range(first[part_var[a]], first[part_var[a] + 1]):
            if not _lists(part_yes, list_first, listed, a, p):
                continue
            for q in range(first[part_var[b]], first[part_var[b] + 1]):
                if _lists(part_yes, list_first, listed, b, q):
                    one[at], other[at], clause[at] = p, q, i
                    at += 1
    return at


@kernel("valued")
def _lists(part_yes, list_first, listed, k, p):
    """Return whether a slot makes a part false."""
    for i in range(list_first[k], list_first[k + 1]):
        if listed[i] == p:
            return part_yes[k] == 0
    return part_yes[k] == 1


class _Parts(NamedTuple):
    """The parts of some rules: those of rule r are ``first[r]`` up to the next."""

    first: Ints
    var: Slots
    yes: NDArray[np.uint8]
    list_first: Ints
    listed: Slots


class _Pairs(NamedTuple):
    """Pairs of slots: the hard rule that both together break, or -1, and what they cost."""

    one: Slots
    other: Slots
    rule: Slots
    weight: Ints


class _Base(NamedTuple):
    """Variables before any are joined: literals to slots, and slots to variables."""

    slot_of: Slots
    owner: Slots
    first: Ints


def values_of(atoms: int, clauses: Clauses, counts: Sequence[Count] = ()) -> Values | None:
    """Return weighted clauses and cardinalities over atoms as variables of many values.

    None: they are too large for that, or hard rules were found to leave no world at all. No clause has one
    literal twice or none at all; the weights together stay below MAX_SUM.
    """
    if len(clauses.literals) > MAX_SIZE:
        return None
    banned: set[int] = set()
    while True:
        group, full, said = exclusive(atoms, clauses, counts, banned)
        base = _based(atoms, group, full)
        left = [rule for rule, done in zip(counts, said, strict=True) if not done]
        mixed = _mixed(base, left)
        if not mixed:
            break
        banned |= mixed
    parts = _clause_parts(clauses, base)
    weights = clauses.weights.astype(np.int64)
    numbers, sizes = np.diff(parts.first), np.diff(base.first)
    lists = np.diff(parts.list_first)
    false = np.where(parts.yes == 1, sizes[parts.var] - lists, lists)  # slots that make a part false

    price = np.zeros(len(base.owner), np.int64)
    for c in np.flatnonzero((numbers == 1) & (weights > 0)).tolist():
        k = int(parts.first[c])
        slots = parts.listed[parts.list_first[k] : parts.list_first[k + 1]]
        if parts.yes[k]:
            v = parts.var[k]
            price[base.first[v] : base.first[v + 1]] += weights[c]
            price[slots] -= weights[c]
        else:
            price[slots] += weights[c]

    two = np.flatnonzero(numbers == 2)
    heads = parts.first[two]
    made = false[heads] * false[heads + 1]
    two, made = two[made <= _CELLS], made[made <= _CELLS]
    if made.sum() > MAX_SIZE:
        return None
    one, other, clause = (np.empty(int(made.sum()), np.int32) for _ in range(3))
    _pairs(two, *parts, base.first, one, other, clause)
    hard_two = weights[two] == 0
    rule = np.where(hard_two, np.cumsum(hard_two) - 1, -1).astype(np.int32)
    pairs = _Pairs(one, other, rule[clause], weights[two][clause])
    pair_heads = parts.first[two[hard_two]]
    ties = np.stack([parts.var[pair_heads], parts.var[pair_heads + 1]], axis=1)

    counted = (numbers > 2) | ((numbers == 1) & (weights == 0))
    counted[np.flatnonzero(numbers == 2)] = True
    counted[two] = False
    long = _chosen(parts, np.flatnonzero(counted))
    number = len(long.first) - 1
    least, most = np.ones(number, np.int64), np.full(number, np.iinfo(np.int32).max, np.int64)
    costs = weights[counted]
    long, least, most, costs = _with_counts(long, least, most, costs, left, base)
    joining = _joined(base, pairs, _chosen(long, np.arange(number, len(long.first) - 1)))
    if joining is None:
        return None
    return _written(base, price, pairs, ties, long, (least, most, costs), joining, full, group)


def _based(atoms: int, group: NDArray[np.int32], full: Bools) -> _Base:
    """Return the variables of groups, and behind them those of all other atoms."""
    grouped = group >= 0
    members = np.flatnonzero(grouped)
    members = members[np.argsort(group[members], kind="stable")]
    sizes = np.bincount(group[members], minlength=len(full))
    in_group = grouped[::2] | grouped[1::2]
    plain = np.flatnonzero(~in_group)
    first = np.zeros(len(full) + len(plain) + 1, np.int64)
    np.cumsum(np.concatenate([sizes + ~full, np.full(len(plain), 2)]), out=first[1:])
    slot_of = np.full(2 * atoms, -1, np.int32)
    inside = np.arange(len(members)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    slot_of[members] = first[group[members]] + inside
    slot_of[2 * plain] = first[len(full) : -1]
    slot_of[2 * plain + 1] = first[len(full) : -1] + 1
    owner = np.repeat(np.arange(len(first) - 1, dtype=np.int32), np.diff(first))
    return _Base(slot_of, owner, first)


def _slot(base: _Base, code: int) -> tuple[int, bool]:
    """Return the slot of a literal, and whether it is true there or everywhere else."""
    slot = int(base.slot_of[code])
    return (slot, True) if slot >= 0 else (int(base.slot_of[code ^ 1]), False)


def _mixed(base: _Base, counts: Sequence[Count]) -> set[int]:
    """Return atoms of variables whose literals in a cardinality may be true together, and not always are."""
    found: set[int] = set()
    for rule in counts:
        signs: dict[int, set[bool]] = {}
        for code in rule.codes:
            slot, direct = _slot(base, code)
            signs.setdefault(int(base.owner[slot]), set()).add(direct)
        for v, kinds in signs.items():
            if len(kinds) > 1:
                found |= {code >> 1 for code in rule.codes if base.owner[_slot(base, code)[0]] == v}
    return found


def _clause_parts(clauses: Clauses, base: _Base) -> _Parts:
    """Return clauses as parts."""
    codes = clauses.codes.astype(np.int32)
    slots = base.slot_of[codes]
    variables = base.owner[np.where(slots >= 0, slots, base.slot_of[codes ^ 1])]
    owners = np.repeat(np.arange(len(clauses)), clauses.sizes)
    keys = owners * (len(base.first) - 1) + variables
    if (keys[1:] < keys[:-1]).any():
        codes = codes[np.argsort(keys, kind="stable")]
    size = len(codes)
    first, list_first = np.zeros(len(clauses) + 1, np.int64), np.zeros(size + 1, np.int64)
    var, yes, listed = np.empty(size, np.int32), np.empty(size, np.uint8), np.empty(size + 1, np.int32)
    starts = clauses.starts
    arrays = (first, var, yes, list_first, listed)
    number = int(_parts(codes, starts, base.slot_of, base.owner, np.diff(base.first), *arrays))
    length = int(list_first[number])
    return _Parts(first, var[:number], yes[:number], list_first[: number + 1], listed[:length])


def _ranges(first: Ints, some: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the numbers in some of the ranges, one after the other, and where each begins."""
    sizes = first[some + 1] - first[some]
    starts = np.zeros(len(some) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return np.repeat(first[some] - starts[:-1], sizes) + np.arange(starts[-1]), starts


def _chosen(parts: _Parts, rules: NDArray[np.intp]) -> _Parts:
    """Return the parts of some rules."""
    some, first = _ranges(parts.first, rules)
    places, list_first = _ranges(parts.list_first, some)
    return _Parts(first, parts.var[some], parts.yes[some], list_first, parts.listed[places])


def _with_counts(
    parts: _Parts, least: Ints, most: Ints, costs: Ints, counts: Sequence[Count], base: _Base
) -> tuple[_Parts, Ints, Ints, Ints]:
    """Return rules with cardinalities behind them; those that are always kept are left out."""
    sizes, variables, signs, lists = [], list[int](), list[int](), list[list[int]]()
    more: list[tuple[int, int, int]] = []
    for rule in counts:
        found: dict[int, tuple[bool, list[int]]] = {}
        low, high = rule.least, rule.most
        for code in rule.codes:
            slot, direct = _slot(base, code)
            v = int(base.owner[slot])
            if v in found and not direct:  # all but one of those that are not direct are true anyway
                low, high = low - 1, high - 1
            found.setdefault(v, (direct, []))[1].append(slot)
        if low <= 0 and high >= len(found):
            continue
        more.append((low, high, rule.weight))
        sizes.append(len(found))
        variables += found
        signs += [direct for direct, _ in found.values()]
        lists += [slots for _, slots in found.values()]
    if not more:
        return parts, least, most, costs
    flat = [slot for slots in lists for slot in slots]
    first = np.concatenate([parts.first, parts.first[-1] + np.cumsum(sizes)])
    list_first = np.concatenate([parts.list_first, parts.list_first[-1] + np.cumsum([*map(len, lists)])])
    joined = _Parts(
        first,
        np.concatenate([parts.var, np.array(variables, np.int32)]),
        np.concatenate([parts.yes, np.array(signs, np.uint8)]),
        list_first,
        np.concatenate([parts.listed, np.array(flat, np.int32)]),
    )
    lows, highs, weights = (np.array(column, np.int64) for column in zip(*more, strict=True))
    return (
        joined,
        np.concatenate([least, lows]),
        np.concatenate([most, highs]),
        np.concatenate([costs, weights]),
    )


# --- joining -----------------------------------------------------------------------------------------


class _Joined(NamedTuple):
    """What became of base variables: members of each variable and, for joined ones, their rows of slots."""

    member_of: Ints  # of each base variable, a representative
    rows: dict[int, tuple[list[int], Slots]]  # of representatives that have several members, or lost values


def _joined(base: _Base, pairs: _Pairs, counts: _Parts) -> _Joined | None:
    """Join variables that hard pairs tie closely and no cardinality counts; None: they leave no world."""
    n = len(base.first) - 1
    sizes = np.diff(base.first)
    member_of = np.arange(n)
    rows: dict[int, tuple[list[int], Slots]] = {}
    hard = pairs.rule >= 0
    one, other = pairs.one[hard].astype(np.int64), pairs.other[hard].astype(np.int64)
    swap = one > other
    one, other = np.where(swap, other, one), np.where(swap, one, other)
    cells = np.unique(one * len(base.owner) + other)
    one, other = cells // max(1, len(base.owner)), cells % max(1, len(base.owner))
    keys = base.owner[one].astype(np.int64) * n + base.owner[other]
    order = np.argsort(keys, kind="stable")
    ties, starts, number = np.unique(keys[order], return_index=True, return_counts=True)
    left, right = ties // max(1, n), ties % max(1, n)
    allowed = sizes[left] * sizes[right] - number
    larger = np.maximum(sizes[left], sizes[right])
    wide = np.minimum(sizes[left], sizes[right]) > 3
    close = allowed <= np.where(wide, _ROOM, 1) * larger
    if not close.any():
        return _Joined(member_of, rows)
    met_at = np.zeros(n, bool)
    met_at[left[close]] = met_at[right[close]] = True
    some = np.flatnonzero(met_at[left] & met_at[right])
    of_tie = {int(ties[i]): order[starts[i] : starts[i] + number[i]] for i in some.tolist()}
    counted: dict[int, set[int]] = {}
    for r in range(len(counts.first) - 1):
        for v in counts.var[counts.first[r] : counts.first[r + 1]].tolist():
            counted.setdefault(v, set()).add(r)

    def of(v: int) -> tuple[list[int], Slots]:
        return rows.get(v) or ([v], np.arange(base.first[v], base.first[v + 1], dtype=np.int32)[:, None])

    def table(u: int, v: int) -> Bools:
        """Return which rows of two variables go together."""
        (mine, mine_rows), (others, other_rows) = of(u), of(v)
        good = np.ones((len(mine_rows), len(other_rows)), bool)
        for i, a in enumerate(mine):
            for j, b in enumerate(others):
                some = of_tie.get(min(a, b) * n + max(a, b))
                if some is None:
                    continue
                bad = np.ones((sizes[a], sizes[b]), bool)
                p, q = (one[some], other[some]) if a < b else (other[some], one[some])
                bad[p - base.first[a], q - base.first[b]] = False
                good &= bad[(mine_rows[:, i] - base.first[a])[:, None], other_rows[:, j] - base.first[b]]
        return good

    waiting = sorted(np.flatnonzero(close).tolist(), key=lambda i: (int(allowed[i]), i))
    while True:
        later = []
        for i in waiting:
            u, v = int(member_of[left[i]]), int(member_of[right[i]])
            if u == v:
                continue
            (mine, mine_rows), (others, other_rows) = of(u), of(v)
            met = [set().union(*(counted.get(w, set()) for w in some)) for some in (mine, others)]
            if len(mine_rows) * len(other_rows) > MAX_SIZE or met[0] & met[1]:
                continue
            good = table(u, v)
            a, b = np.nonzero(good)
            if not len(a):
                return None
            large, small = max(good.shape), min(good.shape)
            if len(a) > min(_JOINED, large * (_ROOM if small > 3 else 1)):
                later.append(i)
                continue
            rows.pop(v, None)
            rows[u] = ([*mine, *others], np.concatenate([mine_rows[a], other_rows[b]], axis=1))
            member_of[member_of == v] = u
        if len(later) == len(waiting) or not later:
            return _Joined(member_of, rows)
        waiting = later


# --- writing -----------------------------------------------------------------------------------------


def _written(
    base: _Base,
    price: Ints,
    pairs: _Pairs,
    ties: NDArray[Any],
    long: _Parts,
    bounds: tuple[Ints, Ints, Ints],
    joining: _Joined,
    full: Bools,
    group: NDArray[np.int32],
) -> Values:
    """Return everything over the variables that are left."""
    member_of, rows = joining
    kept = np.unique(member_of)
    place = np.zeros(len(member_of), np.int64)
    place[kept] = np.arange(len(kept))
    var_of = place[member_of].astype(np.int32)
    width = max([1, *(len(members) for members, _ in rows.values())])
    tables = []
    for v in kept.tolist():
        if v in rows:
            table = np.full((len(rows[v][1]), width), -1, np.int32)
            table[:, : len(rows[v][0])] = rows[v][1]
        elif width == 1 and not rows:
            break
        else:
            table = np.full((base.first[v + 1] - base.first[v], width), -1, np.int32)
            table[:, 0] = np.arange(base.first[v], base.first[v + 1])
        tables.append(table)
    slots = np.concatenate(tables) if tables else np.arange(len(base.owner), dtype=np.int32)[:, None]
    first = np.concatenate([[0], np.cumsum([*map(len, tables)])]).astype(np.int64) if tables else base.first
    owner = np.repeat(np.arange(len(kept), dtype=np.int32), np.diff(first))
    # The slots that each base slot became.
    filled = slots >= 0
    became, was = np.nonzero(filled)[0].astype(np.int32), slots[filled]
    order = np.argsort(was, kind="stable")
    became = became[order]
    spread = np.zeros(len(base.owner) + 1, np.int64)
    np.cumsum(np.bincount(was, minlength=len(base.owner)), out=spread[1:])
    total = np.zeros(len(slots), np.int64)
    np.add.at(total, np.nonzero(filled)[0], price[slots[filled]])
    if rows:
        pairs, total = _spread_pairs(pairs, spread, became, owner, total)
        long, order = _spread_parts(long, spread, became, var_of)
        bounds = (bounds[0][order], bounds[1][order], bounds[2][order])
    rules = len(ties) + len(long.first) - 1
    long = long._replace(first=np.concatenate([np.zeros(len(ties), np.int64), long.first]))
    space = _space(first, owner, total, pairs, var_of[ties], long, bounds, rules)
    sizes = np.bincount(group[group >= 0], minlength=len(full))
    joined = len(member_of) - len(kept)
    return Values(space, sizes, joined, base.slot_of, base.owner, slots)


def _spread_pairs(
    pairs: _Pairs, spread: Ints, became: Slots, owner: Slots, price: Ints
) -> tuple[_Pairs, Ints]:
    """Return pairs of base slots as pairs of slots; those inside of one variable cost what its slot costs."""
    lefts, rights = np.diff(spread)[pairs.one], np.diff(spread)[pairs.other]
    number = lefts * rights
    of = np.repeat(np.arange(len(pairs.one)), number)
    inside = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number)
    one = became[spread[pairs.one[of]] + inside // rights[of]]
    other = became[spread[pairs.other[of]] + inside % rights[of]]
    same = owner[one] == owner[other]
    both = same & (one == other) & (pairs.rule[of] < 0)
    price = price.copy()
    np.add.at(price, one[both], pairs.weight[of[both]])
    apart = ~same
    return _Pairs(one[apart], other[apart], pairs.rule[of[apart]], pairs.weight[of[apart]]), price


def _spread_parts(long: _Parts, spread: Ints, became: Slots, var_of: Slots) -> tuple[_Parts, Ints]:
    """Return parts over base slots as parts over slots, and the order of their rules.

    Rules that have several parts of one variable now come last. They are clauses: such parts become one.
    """
    places, starts = _ranges(spread, long.listed)
    moved = long._replace(
        var=var_of[long.var], list_first=starts[long.list_first], listed=became[places].astype(np.int32)
    )
    rules = len(long.first) - 1
    owner = np.repeat(np.arange(rules), np.diff(long.first))
    keys = np.sort(owner * (int(var_of.max(initial=0)) + 1) + moved.var)
    again = np.zeros(rules, bool)
    again[keys[1:][keys[1:] == keys[:-1]] // (int(var_of.max(initial=0)) + 1)] = True
    if not again.any():
        return moved, np.arange(rules)
    first, variables, signs, lists = [0], list[int](), list[int](), list[set[int]]()
    for r in np.flatnonzero(again).tolist():
        found: dict[int, int] = {}
        for k in range(moved.first[r], moved.first[r + 1]):
            v, yes = int(moved.var[k]), int(moved.yes[k])
            some = set(moved.listed[moved.list_first[k] : moved.list_first[k + 1]].tolist())
            if v not in found:
                found[v] = len(variables)
                variables.append(v)
                signs.append(yes)
                lists.append(some)
                continue
            at = found[v]  # true where one of both is
            if signs[at] and yes:
                lists[at] |= some
            elif signs[at]:
                signs[at], lists[at] = 0, some - lists[at]
            elif yes:
                lists[at] -= some
            else:
                lists[at] &= some
        first.append(len(variables))
    left = _chosen(moved, np.flatnonzero(~again))
    flat = [slot for some in lists for slot in sorted(some)]
    joined = _Parts(
        np.concatenate([left.first, left.first[-1] + np.array(first[1:], np.int64)]),
        np.concatenate([left.var, np.array(variables, np.int32)]),
        np.concatenate([left.yes, np.array(signs, np.uint8)]),
        np.concatenate([left.list_first, left.list_first[-1] + np.cumsum([*map(len, lists)])]),
        np.concatenate([left.listed, np.array(flat, np.int32)]),
    )
    return joined, np.concatenate([np.flatnonzero(~again), np.flatnonzero(again)])


def _space(
    first: Ints,
    owner: Slots,
    price: Ints,
    pairs: _Pairs,
    ties: NDArray[Any],
    long: _Parts,
    bounds: tuple[Ints, Ints, Ints],
    rules: int,
) -> Space:
    """Return the arrays that kernels read."""
    slots, tied = len(owner), len(ties)
    low, high = np.minimum(pairs.one, pairs.other), np.maximum(pairs.one, pairs.other)
    one, other = np.concatenate([low, high]), np.concatenate([high, low])
    rule, weight = np.concatenate([pairs.rule, pairs.rule]), np.concatenate([pairs.weight, pairs.weight])
    key = (one.astype(np.int64) * slots + other) * 2 + (rule >= 0)
    order = np.argsort(key, kind="stable")
    key, one, other, rule, weight = key[order], one[order], other[order], rule[order], weight[order]
    fresh = np.ones(len(key), bool)
    fresh[1:] = key[1:] != key[:-1]
    heads = np.flatnonzero(fresh)
    weight = np.add.reduceat(weight, heads) if len(heads) else weight
    one, other, rule = one[heads], other[heads], rule[heads]
    least, most, cost = bounds
    far = np.iinfo(np.int32).max
    part_rule = np.repeat(np.arange(rules), np.diff(long.first)).astype(np.int32)
    listing = np.repeat(np.arange(len(long.var)), np.diff(long.list_first))
    by_slot = np.argsort(long.listed, kind="stable")
    scope_first = np.concatenate([2 * np.arange(tied), 2 * tied + long.first[tied:]]).astype(np.int64)
    return Space(
        first=first,
        owner=owner,
        price=price,
        pair_first=_begins(one, slots),
        pair_slot=other.astype(np.int32),
        pair_rule=rule.astype(np.int32),
        pair_weight=weight.astype(np.int64),
        part_first=long.first,
        part_rule=part_rule,
        part_var=long.var,
        part_yes=long.yes,
        list_first=long.list_first,
        listed=long.listed,
        occur_first=_begins(long.listed, slots),
        occurs=listing[by_slot].astype(np.int32),
        least=np.concatenate([np.zeros(tied), np.maximum(least, 0)]).astype(np.int32),
        most=np.concatenate([np.zeros(tied), np.clip(most, -1, far)]).astype(np.int32),
        hard=np.concatenate([np.ones(tied), cost == 0]).astype(np.uint8),
        cost=np.concatenate([np.zeros(tied, np.int64), cost]),
        scope_first=scope_first,
        scope=np.concatenate([ties.ravel(), long.var]).astype(np.int32),
    )


def _begins(keys: NDArray[Any], number: int) -> Ints:
    """Return where the items of each key begin, if they are sorted by these keys; and their end."""
    found = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=number), out=found[1:])
    return found
