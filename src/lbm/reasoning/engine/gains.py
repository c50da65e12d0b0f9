"""Local search over variables of many values: what every move would change is kept up to date.

A *slot* is a value of a variable. The *gain* of a slot is what the state would cost, but for what no move of
that variable changes, if the variable had that value: so the difference of two gains is what a move changes.
What is said of two variables is written down as pairs of slots that cost something together; anything longer
counts how many of its parts are true, whether it is a clause or a cardinality.
"""

# Kernels are typed by numba, by what they are called with.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# Those that move take all arrays of a state, in one order.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy import int64
from numpy.typing import ArrayLike, NDArray

from lbm.arrays import Ints
from lbm.reasoning.compiling.ready import kernel
from lbm.reasoning.engine.streams import key_of, philox

MAX_SUM: Final = 1 << 50
"""What all soft weights together may come to; larger ones are divided."""

STREAM: Final = 6
"""The random stream that these searches draw from, beside those of chains and walks."""

DEPTH: Final = 400
"""Chains: moves that repair what the first one broke, at most."""

HISTORY: Final = 4096
"""Chains that late acceptance looks back at most."""

NEVER: Final = 1 << 62
HEAVIEST: Final = 1 << 61

# What a state knows of itself: places in ``notes``, and the columns of its tables.
COST, PENALTY, BROKEN, TOUCHED, GOOD, STEP, WORK, LEAST_COST, IDLE, CALM = range(10)
TRAIL, LOCK, TURN, RANDOM, LENGTH, LOCAL, LAST, USUAL, HEAT, CALMED = range(10, 20)
FIRST, CURRENT, BEST, CHOICE, DELTA, MARK, GOOD_AT, LOCKED, WAITS, TOUCHES, GOODS = range(11)
OWNER, PAIRS, OCCURS, RESTED, PRICE = range(5)
OTHER, RULE, PRICED = range(3)
OF, VAR, YES, LISTED, TRUE = range(5)
PARTS, LEAST, MOST, HARD, WEIGHT, COUNT, MIXED, OVER, BROKEN_AT, BREAKS, SCOPE = range(11)

Slots = NDArray[np.int32]


class Space(NamedTuple):
    """The arrays that kernels read: variables, what their values cost, and the rules that tie them.

    Variable v has the slots ``first[v]`` up to ``first[v + 1]``; ``owner`` is the variable of each slot and
    ``price`` what it costs by itself. Slot p with ``pair_slot[i]`` costs ``pair_weight[i]`` or, where
    that is not negative, breaks the hard rule ``pair_rule[i]``, for i from ``pair_first[p]`` up to the next.

    The parts of a counted rule r are ``part_first[r]`` up to the next. A part is true where its variable has
    one of the slots ``listed[list_first[k]:list_first[k + 1]]``, or none of them if ``part_yes`` is 0; slot p
    is listed by the parts ``occurs[occur_first[p]:occur_first[p + 1]]``. Between ``least`` and ``most`` of
    them have to be true: a soft rule costs its weight otherwise, a hard one as often as some are missing or
    too many. The hard rules that pairs break have no parts. ``scope`` are the variables of each rule.
    """

    first: Ints
    owner: Slots
    price: Ints
    pair_first: Ints
    pair_slot: Slots
    pair_rule: Slots
    pair_weight: Ints
    part_first: Ints
    part_rule: Slots
    part_var: Slots
    part_yes: NDArray[np.uint8]
    list_first: Ints
    listed: Slots
    occur_first: Ints
    occurs: Slots
    least: Slots
    most: Slots
    hard: NDArray[np.uint8]
    cost: Ints
    scope_first: Ints
    scope: Slots

    @property
    def variables(self) -> int:
        """How many there are."""
        return len(self.first) - 1

    @property
    def rules(self) -> int:
        """How many there are, without soft pairs."""
        return len(self.least)

    @property
    def size(self) -> int:
        """About how many numbers there are to read."""
        return len(self.owner) + len(self.pair_slot) + len(self.listed) + len(self.scope)


class State(NamedTuple):
    """The arrays that kernels read and write: a space as tables, a state, and what is known of it.

    Attributes
    ----------
    variables
        By variable: FIRST slot, CURRENT slot, that in the BEST state met that keeps all hard rules, the slot
        of its best move (CHOICE) and what that changes (DELTA), whether it is TOUCHED and so to be looked at
        again (MARK), its place among the good ones or -1, and when it was LOCKED. The last two columns are
        lists: the variables that are touched, and those with a good move.
    slots
        By slot: OWNER, where its PAIRS and the parts that list it (OCCURS) begin, until when it rests, PRICE.
    pairs
        The OTHER slot, the RULE or -1, what it costs.
    parts
        The rule that it is part OF, VAR, YES, where what is LISTED begins, whether it is TRUE.
    rules
        Where PARTS and SCOPE begin, LEAST, MOST, HARD, WEIGHT, the COUNT of true parts, their numbers added
        bit by bit (MIXED), how far a hard one is broken (OVER), its place among the broken or -1; and BREAKS,
        the list of those.
    gain
        What each slot would cost.
    """

    variables: Ints
    slots: Ints
    pairs: Ints
    parts: Ints
    rules: Ints
    listed: Ints
    occurs: Ints
    scope: Ints
    gain: Ints
    notes: Ints
    trail: Ints
    history: Ints

    @property
    def current(self) -> Ints:
        """The slot of each variable."""
        return self.variables[:-1, CURRENT]

    @property
    def best(self) -> Ints:
        """The slots in the best state met that keeps all hard rules."""
        return self.variables[:-1, BEST]

    @property
    def cost(self) -> int | None:
        """What that costs; None: no such state was met."""
        cost = int(self.notes[LEAST_COST])
        return None if cost == NEVER else cost


def heavy_of(space: Space) -> int:
    """Return a weight of hard rules that no soft ones outweigh, move by move; 0: none fits into 64 bits."""
    around = np.maximum.reduceat(space.price, space.first[:-1]) if space.variables else np.zeros(0, np.int64)
    soft = np.zeros(space.variables, np.float64) + around
    if len(space.pair_slot):
        slots = np.repeat(np.arange(len(space.owner)), np.diff(space.pair_first))
        each = np.bincount(slots, space.pair_weight, len(space.owner))
        soft += np.maximum.reduceat(each, space.first[:-1])
    if len(space.part_var):
        cost = np.where(space.hard[space.part_rule] == 0, space.cost[space.part_rule], 0)
        soft += np.bincount(space.part_var, cost, space.variables)
    heavy = 1 + float(soft.max(initial=0.0))
    breaks = space.rules + 2 * len(space.part_var)
    return int(heavy) if heavy * (1 + breaks) < HEAVIEST else 0


def state_of(space: Space, current: Slots | Ints, *, heavy: int, seed: int, number: int) -> State:
    """Return a state in which variables have these slots; ``number`` tells searches of one seed apart."""
    n = space.variables
    variables = np.zeros((n + 1, GOODS + 1), np.int64)
    variables[:, FIRST] = space.first
    variables[:n, CURRENT] = variables[:n, BEST] = current
    variables[:, GOOD_AT] = -1
    slots = _table(len(space.owner), (space.owner, space.pair_first, space.occur_first, (), space.price))
    rules = _table(
        space.rules,
        (space.part_first, space.least, space.most, space.hard, np.where(space.hard == 1, heavy, space.cost))
        + ((),) * 5
        + (space.scope_first,),
    )
    state = State(
        variables=variables,
        slots=slots,
        pairs=_table(len(space.pair_slot), (space.pair_slot, space.pair_rule, space.pair_weight)),
        parts=_table(
            len(space.part_var), (space.part_rule, space.part_var, space.part_yes, space.list_first, ())
        ),
        rules=rules,
        listed=space.listed.astype(np.int64),
        occurs=space.occurs.astype(np.int64),
        scope=space.scope.astype(np.int64),
        gain=np.zeros(len(space.owner), np.int64),
        notes=np.zeros(CALMED + 1, np.int64),
        trail=np.zeros(4 * DEPTH, np.int64),
        history=np.full(HISTORY, NEVER, np.int64),
    )
    state.notes[LEAST_COST] = NEVER
    state.notes[LOCAL], state.notes[LAST] = NEVER, -1
    state.notes[RANDOM] = 1 | int(philox((0, 0, number, STREAM), key_of(seed))[0])
    recount(state)
    return state


def _table(rows: int, columns: Sequence[ArrayLike]) -> Ints:
    """Return columns as a table with one row more, for where what begins last ends."""
    found = np.zeros((rows + 1, len(columns)), np.int64)
    for i, column in enumerate(columns):
        some = np.asarray(column)
        found[: len(some), i] = some
    return found


def weigh(state: State, weight: int) -> None:
    """Have all hard rules weigh the same."""
    hard = state.rules[:, HARD] == 1
    state.rules[hard, WEIGHT] = weight
    recount(state)


def recount(state: State) -> None:
    """Work out anew what is known of a state, from its slots and the weights of rules."""
    work_out(*state[:10])


def move(state: State, variable: int, slot: int) -> None:
    """Give a variable a value."""
    put(*state[:10], variable, slot)


# --- keeping what is known ---------------------------------------------------------------------------


@kernel("valued")
def draw(notes):
    """Return a random whole number below 2^31 (xorshift)."""
    x = notes[RANDOM]
    x ^= (x << 13) & 0xFFFFFFFF
    x ^= x >> 17
    x ^= (x << 5) & 0xFFFFFFFF
    notes[RANDOM] = x
    return x >> 1


@kernel("valued")
def slope(rules, r, t):
    """Return what one true part more than t changes in what a rule costs."""
    if t < rules[r, LEAST]:
        if rules[r, HARD] == 1 or t == rules[r, LEAST] - 1:
            return -rules[r, WEIGHT]
    elif t >= rules[r, MOST] and (rules[r, HARD] == 1 or t == rules[r, MOST]):
        return rules[r, WEIGHT]
    return int64(0)


@kernel("valued")
def _far(rules, r, t):
    """Return how many true parts a rule has too many or too few."""
    return max(rules[r, LEAST] - t, t - rules[r, MOST], int64(0))


@kernel("valued")
def touch(variables, notes, v):
    """Note that moves of a variable are to be looked at again."""
    if variables[v, MARK] == 0:
        variables[v, MARK] = 1
        variables[notes[TOUCHED], TOUCHES] = v
        notes[TOUCHED] += 1


@kernel("valued")
def broken_by(rules, notes, r, far):
    """Note how far a hard rule is broken now."""
    was = rules[r, OVER]
    if far == was:
        return
    notes[PENALTY] += rules[r, WEIGHT] * (far - was)
    rules[r, OVER] = far
    if was == 0:
        rules[notes[BROKEN], BREAKS] = r
        rules[r, BROKEN_AT] = notes[BROKEN]
        notes[BROKEN] += 1
    elif far == 0:
        notes[BROKEN] -= 1
        last = rules[notes[BROKEN], BREAKS]
        rules[rules[r, BROKEN_AT], BREAKS] = last
        rules[last, BROKEN_AT] = rules[r, BROKEN_AT]


@kernel("valued")
def add(variables, parts, listed, gain, notes, k, change):
    """Add to what it changes that a part is true, in the gains of its variable."""
    if parts[k, YES] == 0:
        change = -change
    for i in range(parts[k, LISTED], parts[k + 1, LISTED]):
        gain[listed[i]] += change
    notes[WORK] += 2
    touch(variables, notes, parts[k, VAR])


@kernel("valued")
def _turn(variables, slots, parts, rules, listed, occurs, gain, notes, slot):
    """Turn the parts that list a slot true or false; the gains of their rules' other parts follow."""
    notes[WORK] += slots[slot + 1, OCCURS] - slots[slot, OCCURS]
    for place in range(slots[slot, OCCURS], slots[slot + 1, OCCURS]):
        k = occurs[place]
        r, up = parts[k, OF], parts[k, TRUE] == 0
        t = rules[r, COUNT]
        after = t + 1 if up else t - 1
        others = t if up else t - 1  # that are true
        true = slope(rules, r, after - 1) - slope(rules, r, t - 1)
        false = slope(rules, r, after) - slope(rules, r, t)
        alone = rules[r, MIXED] if up else rules[r, MIXED] ^ k
        rules[r, MIXED] ^= k
        parts[k, TRUE] = 1 if up else 0
        rules[r, COUNT] = after
        if rules[r, HARD] == 1:
            broken_by(rules, notes, r, _far(rules, r, after))
        begin, end = rules[r, PARTS], rules[r + 1, PARTS]
        if false == 0:
            if true == 0 or others == 0:
                continue
            if others == 1:
                add(variables, parts, listed, gain, notes, alone, true)
                continue
        elif true == 0 and others == end - begin - 1:
            continue
        notes[WORK] += end - begin
        for j in range(begin, end):
            if j != k:
                change = true if parts[j, TRUE] == 1 else false
                if change != 0:
                    add(variables, parts, listed, gain, notes, j, change)


@kernel("valued")
def refresh(variables, gain, notes):
    """Find the best moves of the variables that were touched."""
    for i in range(notes[TOUCHED]):
        v = variables[i, TOUCHES]
        variables[v, MARK] = 0
        begin, end, now = variables[v, FIRST], variables[v + 1, FIRST], variables[v, CURRENT]
        low, chosen = int64(NEVER), now
        if end - begin == 2:
            chosen = begin + end - 1 - now
            low = gain[chosen]
        elif end - begin > 2:
            at = begin + draw(notes) % (end - begin)  # whichever comes first of those that are equal
            for p in range(at, end):
                if gain[p] < low and p != now:
                    low, chosen = gain[p], p
            for p in range(begin, at):
                if gain[p] < low and p != now:
                    low, chosen = gain[p], p
            notes[WORK] += (end - begin) >> 2
        variables[v, CHOICE] = chosen
        delta = low - gain[now] if chosen != now else int64(NEVER)
        variables[v, DELTA] = delta
        at = variables[v, GOOD_AT]
        if delta < 0 and at < 0:
            variables[notes[GOOD], GOODS] = v
            variables[v, GOOD_AT] = notes[GOOD]
            notes[GOOD] += 1
        elif delta >= 0 and at >= 0:
            notes[GOOD] -= 1
            last = variables[notes[GOOD], GOODS]
            variables[at, GOODS] = last
            variables[last, GOOD_AT] = at
            variables[v, GOOD_AT] = -1
    notes[WORK] += 3 * notes[TOUCHED]
    notes[TOUCHED] = 0


@kernel("valued")
def put(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, v, new):
    """Give a variable a value."""
    old = variables[v, CURRENT]
    if old == new:
        return
    whole = notes[COST] + notes[PENALTY] + gain[new] - gain[old]
    for i in range(slots[old, PAIRS], slots[old + 1, PAIRS]):
        q, r = pairs[i, OTHER], pairs[i, RULE]
        u = slots[q, OWNER]
        if r < 0:
            gain[q] -= pairs[i, PRICED]
        else:
            gain[q] -= rules[r, WEIGHT]
            if variables[u, CURRENT] == q:
                broken_by(rules, notes, r, 0)
        touch(variables, notes, u)
    variables[v, CURRENT] = new
    for i in range(slots[new, PAIRS], slots[new + 1, PAIRS]):
        q, r = pairs[i, OTHER], pairs[i, RULE]
        u = slots[q, OWNER]
        if r < 0:
            gain[q] += pairs[i, PRICED]
        else:
            gain[q] += rules[r, WEIGHT]
            if variables[u, CURRENT] == q:
                broken_by(rules, notes, r, 1)
        touch(variables, notes, u)
    _turn(variables, slots, parts, rules, listed, occurs, gain, notes, old)
    _turn(variables, slots, parts, rules, listed, occurs, gain, notes, new)
    touch(variables, notes, v)
    notes[COST] = whole - notes[PENALTY]
    notes[WORK] += 8 + slots[old + 1, PAIRS] - slots[old, PAIRS] + slots[new + 1, PAIRS] - slots[new, PAIRS]
    notes[STEP] += 1
    refresh(variables, gain, notes)


@kernel("valued")
def work_out(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes):
    """Work out everything from the slots of a state and the weights of rules."""
    n = len(variables) - 1
    cost, penalty, broken, twice = int64(0), int64(0), int64(0), int64(0)
    for p in range(len(gain)):
        gain[p] = slots[p, PRICE]
    for r in range(len(rules)):
        rules[r, COUNT], rules[r, MIXED], rules[r, OVER] = 0, 0, 0
    for v in range(n):
        now = variables[v, CURRENT]
        variables[v, MARK] = 0
        cost += slots[now, PRICE]
        for i in range(slots[now, PAIRS], slots[now + 1, PAIRS]):
            q, r = pairs[i, OTHER], pairs[i, RULE]
            gain[q] += rules[r, WEIGHT] if r >= 0 else pairs[i, PRICED]
            if variables[slots[q, OWNER], CURRENT] == q:
                if r < 0:
                    twice += pairs[i, PRICED]
                else:
                    rules[r, OVER] = 1
    cost += twice // 2
    for k in range(len(parts) - 1):
        now, r = variables[parts[k, VAR], CURRENT], parts[k, OF]
        inside = 0
        for i in range(parts[k, LISTED], parts[k + 1, LISTED]):
            if listed[i] == now:
                inside = 1
        parts[k, TRUE] = 1 if inside == parts[k, YES] else 0
        if parts[k, TRUE] == 1:
            rules[r, COUNT] += 1
            rules[r, MIXED] ^= k
    notes[TOUCHED] = 0
    for r in range(len(rules) - 1):
        begin, end = rules[r, PARTS], rules[r + 1, PARTS]
        if begin < end:
            t = rules[r, COUNT]
            far = _far(rules, r, t)
            if rules[r, HARD] == 1:
                rules[r, OVER] = far
            elif far > 0:
                cost += rules[r, WEIGHT]
            true, false = slope(rules, r, t - 1), slope(rules, r, t)
            if true != 0 or false != 0:
                for k in range(begin, end):
                    add(variables, parts, listed, gain, notes, k, true if parts[k, TRUE] == 1 else false)
        if rules[r, OVER] > 0:
            penalty += rules[r, WEIGHT] * rules[r, OVER]
            rules[broken, BREAKS] = r
            rules[r, BROKEN_AT] = broken
            broken += 1
    notes[COST], notes[PENALTY], notes[BROKEN] = cost, penalty, broken
    for v in range(n):
        touch(variables, notes, v)
    notes[WORK] += len(gain) + 4 * len(parts) + 8 * len(rules)
    refresh(variables, gain, notes)
    remember(variables, notes)


@kernel("valued")
def remember(variables, notes):
    """Keep the state if it breaks no hard rule and costs less than any before; return whether it does."""
    if notes[BROKEN] > 0 or notes[COST] >= notes[LEAST_COST]:
        return False
    notes[LEAST_COST] = notes[COST]
    for v in range(len(variables) - 1):
        variables[v, BEST] = variables[v, CURRENT]
    return True
