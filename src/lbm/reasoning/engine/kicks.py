"""Searches over variables of many values, one state at a time: kicks, and tabu walks.

*Kicks* (ejection chains, iterated local search): a variable is given a value and held there, hard rules that
this breaks are repaired one after the other by their best moves, and the state goes down from there. Whether
that is kept depends on what it costs: less and less more than before (cooling), or no more than some kicks
ago (late acceptance). Swaps, and moves of all stores of a warehouse, are kicks.

*Tabu walks* with adaptive weights: each step is the best move there is, a value left rests for a while, and
hard rules that are broken where no move helps weigh more from then on (clause weighting). Where most states
keep all of them they all weigh less again, so that walks pass through what breaks some.
"""

# Kernels are typed by numba, by what they are called with.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import Final

from numpy import int64

from lbm.reasoning.compiling.ready import kernel
from lbm.reasoning.engine.gains import (
    BEST,
    BREAKS,
    BROKEN,
    CALM,
    CALMED,
    CHOICE,
    COST,
    COUNT,
    CURRENT,
    DELTA,
    FIRST,
    GOOD,
    GOODS,
    HARD,
    HEAT,
    HEAVIEST,
    HISTORY,
    IDLE,
    LAST,
    LEAST_COST,
    LENGTH,
    LOCAL,
    LOCK,
    LOCKED,
    NEVER,
    OCCURS,
    OF,
    OTHER,
    OVER,
    OWNER,
    PAIRS,
    PARTS,
    PENALTY,
    RESTED,
    RULE,
    SCOPE,
    STEP,
    TRAIL,
    TRUE,
    TURN,
    USUAL,
    VAR,
    WAITS,
    WEIGHT,
    WORK,
    State,
    add,
    draw,
    put,
    refresh,
    remember,
    slope,
    touch,
    work_out,
)

TENURE: Final = (3, 10)
"""Tabu walks: moves that a value rests at least, and below this are those it rests in addition."""

PATIENCE: Final = 4
"""Kicks: how many of them in a row may find nothing better, times how far acceptance looks back."""

SCAN: Final = 1_500
"""Tabu walks: variables that are all looked at for each move."""

_CYCLE: Final = 512  # chains of the first cooling, at least; later ones are longer up to
_CYCLES: Final = 128  # times that
_SAMPLE: Final = 48  # variables that are looked at where there are too many to look at all


def kicks(state: State, *, length: int, work: int) -> None:
    """Do kicks until about so much ``work`` is done.

    ``length``: how many of them acceptance looks back, further each time that this leads nowhere any more; 0:
    it is cooled, again and again, for longer each time.
    """
    _kicks(*state, min(length, HISTORY), work)


def tabu(state: State, *, step: int, calm: int, idle: int, work: int, scan: int = SCAN) -> None:
    """Walk until about so much ``work`` is done.

    ``step``: by how much rules that stay broken weigh more; ``calm``: moves after which they are weighed
    anew; ``idle``: moves without a better state after which the best one is gone back to; ``scan``: variables
    up to which all are looked at for each move; of more of them only some that have good moves are.
    """
    _tabu(*state[:10], step, calm, idle, work, scan)


# --- kicks ------------------------------------------------------------------------------------------


@kernel("valued")
def _descend(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail):
    """Do good moves of variables that are not held, the best of some of them, until there is none."""
    while notes[GOOD] > 0:
        number = min(notes[GOOD], int64(_SAMPLE))
        low, chosen = int64(0), int64(-1)
        at = draw(notes) % notes[GOOD]
        for _ in range(number):
            v = variables[at, GOODS]
            if variables[v, DELTA] < low and variables[v, LOCKED] != notes[LOCK]:
                low, chosen = variables[v, DELTA], v
            at += 1
            if at == notes[GOOD]:
                at = 0
        notes[WORK] += number
        if chosen < 0 or notes[TRAIL] + 2 > len(trail):
            return
        trail[notes[TRAIL]], trail[notes[TRAIL] + 1] = chosen, variables[chosen, CURRENT]
        notes[TRAIL] += 2
        new = variables[chosen, CHOICE]
        put(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, chosen, new)


@kernel("valued")
def _near(variables, slots, pairs, parts, rules, occurs, notes):
    """Return a random variable that something ties to the one moved last, or any."""
    v = notes[LAST]
    if v >= 0 and draw(notes) % 8 != 0:
        now = variables[v, CURRENT]
        tied = slots[now + 1, PAIRS] - slots[now, PAIRS]
        counted = slots[now + 1, OCCURS] - slots[now, OCCURS]
        if tied + counted > 0:
            at = draw(notes) % (tied + counted)
            if at < tied:
                return slots[pairs[slots[now, PAIRS] + at, OTHER], OWNER]
            r = parts[occurs[slots[now, OCCURS] + at - tied], OF]
            begin = rules[r, PARTS]
            return parts[begin + draw(notes) % (rules[r + 1, PARTS] - begin), VAR]
    return draw(notes) % (len(variables) - 1)


@kernel("valued")
def _kick(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail):
    """Give a random variable a value, rather one that costs little, hold it there and repair what breaks.

    A repair moves the variable of a broken rule that is best moved; each is moved once.
    """
    allowed = notes[BROKEN]
    low, chosen, new = int64(NEVER), int64(-1), int64(0)
    for _ in range(1 + draw(notes) % 4):
        v = _near(variables, slots, pairs, parts, rules, occurs, notes)
        begin, size = variables[v, FIRST], variables[v + 1, FIRST] - variables[v, FIRST]
        if size < 2 or variables[v, LOCKED] == notes[LOCK]:
            continue
        p = begin + draw(notes) % size
        if p == variables[v, CURRENT]:
            p = variables[v, CHOICE]
        change = gain[p] - gain[variables[v, CURRENT]]
        if change < low:
            low, chosen, new = change, v, p
    notes[LAST] = chosen
    while chosen >= 0 and notes[TRAIL] + 2 <= len(trail):
        trail[notes[TRAIL]], trail[notes[TRAIL] + 1] = chosen, variables[chosen, CURRENT]
        notes[TRAIL] += 2
        put(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, chosen, new)
        variables[chosen, LOCKED] = notes[LOCK]
        if notes[BROKEN] <= allowed:
            return
        r = rules[draw(notes) % notes[BROKEN], BREAKS]
        low, chosen = int64(NEVER), int64(-1)
        begin, size = rules[r, SCOPE], rules[r + 1, SCOPE] - rules[r, SCOPE]
        at = draw(notes) % size
        for _ in range(min(size, int64(_SAMPLE))):
            v = scope[begin + at]
            if variables[v, LOCKED] != notes[LOCK] and variables[v, DELTA] < low:
                low, chosen, new = variables[v, DELTA], v, variables[v, CHOICE]
            at += 1
            if at == size:
                at = 0


@kernel("valued")
def _kicks(
    variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail, history, length, work
):
    """Do kicks until so much work is done."""
    until, n = notes[WORK] + work, len(variables) - 1
    cooled, first = length == 0, int64(max(_CYCLE, n))
    if notes[LENGTH] == 0:
        notes[LENGTH] = first if cooled else length
    while True:  # from the first state down
        notes[TRAIL] = 0
        notes[LOCK] += 1
        _descend(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail)
        if notes[GOOD] == 0 or notes[WORK] >= until:
            break
    remember(variables, notes)
    while notes[WORK] < until and n > 0:
        before = notes[COST] + notes[PENALTY]
        notes[TRAIL] = 0
        notes[LOCK] += 1
        notes[LAST] = -1
        while True:
            _kick(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail)
            _descend(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail)
            if draw(notes) % 4 != 0:
                break
        notes[LOCK] += 1
        _descend(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, trail)
        notes[WORK] += 20
        after = notes[COST] + notes[PENALTY]
        place = notes[TURN] % notes[LENGTH]
        notes[TURN] += 1
        notes[IDLE] += 1
        if after > before:  # about the median of what chains lose
            usual = notes[USUAL]
            if usual == 0:
                notes[USUAL] = after - before
            elif after - before > usual:
                notes[USUAL] += 1 + (usual >> 5)
            else:
                notes[USUAL] -= 1 + (usual >> 5)
        if cooled:
            heat = (
                notes[USUAL] * (1.0 if notes[HEAT] % 2 == 0 else 0.1) * math.exp(-5.0 * place / notes[LENGTH])
            )
            allowed = before + int64(-heat * math.log((draw(notes) + 0.5) * 2.0**-31))
        else:
            allowed = max(before, history[place])
        if after <= allowed:
            if after < notes[LOCAL]:
                notes[LOCAL] = after
                notes[IDLE] = 0
            remember(variables, notes)
        else:
            at = notes[TRAIL]
            while at > 0:
                at -= 2
                v, p = trail[at], trail[at + 1]
                put(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, v, p)
        if cooled:
            if place == notes[LENGTH] - 1:
                notes[TURN] = 0
                notes[HEAT] += 1
                if notes[HEAT] % 2 == 0:
                    notes[LENGTH] *= 2
                    if notes[LENGTH] > _CYCLES * first:
                        notes[LENGTH] = first
                elif notes[LEAST_COST] < NEVER:
                    for u in range(n):
                        variables[u, CURRENT] = variables[u, BEST]
                    work_out(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes)
            continue
        history[place] = notes[COST] + notes[PENALTY]
        if notes[IDLE] > PATIENCE * notes[LENGTH] + n:
            notes[LENGTH] = min(2 * notes[LENGTH], int64(HISTORY))
            if notes[LENGTH] == HISTORY:
                notes[LENGTH] = length
            for i in range(notes[LENGTH]):  # whatever comes is taken, for a while
                history[i] = NEVER
            notes[IDLE], notes[LOCAL] = 0, NEVER
            if notes[LEAST_COST] < NEVER:
                for u in range(n):
                    variables[u, CURRENT] = variables[u, BEST]
                work_out(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes)


# --- tabu walks --------------------------------------------------------------------------------------


@kernel("valued")
def _raise(variables, slots, pairs, parts, rules, listed, scope, gain, notes, step):
    """Make all hard rules that are broken weigh more."""
    most = HEAVIEST // (1 + len(rules)) // 64
    for place in range(notes[BROKEN]):
        r = rules[place, BREAKS]
        if rules[r, WEIGHT] + step > most:
            continue
        begin, end, t = rules[r, PARTS], rules[r + 1, PARTS], rules[r, COUNT]
        if begin == end:  # its pair: the current slots of its two variables
            for i in range(rules[r, SCOPE], rules[r + 1, SCOPE]):
                now = variables[scope[i], CURRENT]
                for j in range(slots[now, PAIRS], slots[now + 1, PAIRS]):
                    if pairs[j, RULE] == r:
                        q = pairs[j, OTHER]
                        gain[q] += step
                        touch(variables, notes, slots[q, OWNER])
                notes[WORK] += slots[now + 1, PAIRS] - slots[now, PAIRS]
            rules[r, WEIGHT] += step
        else:
            true, false = slope(rules, r, t - 1), slope(rules, r, t)
            rules[r, WEIGHT] += step
            true, false = slope(rules, r, t - 1) - true, slope(rules, r, t) - false
            for k in range(begin, end):
                change = true if parts[k, TRUE] == 1 else false
                if change != 0:
                    add(variables, parts, listed, gain, notes, k, change)
            notes[WORK] += end - begin
        notes[PENALTY] += step * rules[r, OVER]
    refresh(variables, gain, notes)


@kernel("valued")
def _pick(variables, slots, gain, notes, few):
    """Return the variable with the best move whose slot does not rest, -1: none was found; and its slot.

    One that leads to a better state than all before need not rest.
    """
    n, whole = len(variables) - 1, notes[COST] + notes[PENALTY]
    low, chosen, new = int64(NEVER), int64(-1), int64(0)
    total = int64(n) if few else notes[GOOD]
    number = total if few else min(total, int64(_SAMPLE))
    at = draw(notes) % max(int64(1), total)
    for _ in range(number):
        v = at if few else variables[at, GOODS]
        at += 1
        if at == total:
            at = 0
        if variables[v, DELTA] >= low:
            continue
        p, change = variables[v, CHOICE], variables[v, DELTA]
        waits = variables[v, WAITS] > notes[STEP]
        if (waits or slots[p, RESTED] > notes[STEP]) and whole + change >= notes[LEAST_COST]:
            if waits:
                continue
            now, change = variables[v, CURRENT], low
            for q in range(variables[v, FIRST], variables[v + 1, FIRST]):
                if gain[q] - gain[now] < change and q != now and slots[q, RESTED] <= notes[STEP]:
                    p, change = q, gain[q] - gain[now]
        if change < low:
            low, chosen, new = change, v, p
    notes[WORK] += number
    return chosen, new, low


@kernel("valued")
def _focus(variables, slots, rules, scope, notes):
    """Return a variable of a broken rule or, where there is none, any: one of some with the best move."""
    low, chosen = int64(NEVER), int64(-1)
    begin, size = int64(0), int64(len(variables) - 1)
    if notes[BROKEN] > 0:
        r = rules[draw(notes) % notes[BROKEN], BREAKS]
        begin, size = rules[r, SCOPE], rules[r + 1, SCOPE] - rules[r, SCOPE]
    at = draw(notes) % size
    for _ in range(min(size, int64(_SAMPLE))):
        v = scope[begin + at] if notes[BROKEN] > 0 else at
        at += 1
        if at == size:
            at = 0
        if variables[v, DELTA] < low and slots[variables[v, CHOICE], RESTED] <= notes[STEP]:
            low, chosen = variables[v, DELTA], v
    return chosen


@kernel("valued")
def _tabu(
    variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, step, calm, idle, work, scan
):
    """Walk until so much work is done."""
    until, n = notes[WORK] + work, len(variables) - 1
    rest = notes[WORK]
    few = n <= scan
    while notes[WORK] < until and n > 0:
        v, new, change = _pick(variables, slots, gain, notes, few)
        if v < 0 or change >= 0:
            if notes[BROKEN] > 0 and 4 * notes[CALMED] < calm:
                _raise(variables, slots, pairs, parts, rules, listed, scope, gain, notes, step)
            if not few:
                v = _focus(variables, slots, rules, scope, notes)
                new = variables[max(v, int64(0)), CHOICE]
        if v >= 0:
            old = variables[v, CURRENT]
            put(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes, v, new)
            slots[old, RESTED] = notes[STEP] + TENURE[0] + draw(notes) % TENURE[1]
            if change == 0:  # or walks would stay on the level for ever
                variables[v, WAITS] = notes[STEP] + draw(notes) % int64(1 + n)
        notes[WORK] += 20
        notes[CALM] += 0 if notes[BROKEN] > 0 else 1
        notes[IDLE] += 1
        notes[TURN] += 1
        if remember(variables, notes):
            notes[IDLE] = 0
        elif notes[TURN] % calm == 0:
            notes[CALMED], notes[CALM] = notes[CALM], 0
            lighter = False
            if 2 * notes[CALMED] > calm and notes[WORK] > rest:
                for r in range(len(rules) - 1):
                    if rules[r, HARD] == 1 and rules[r, WEIGHT] > 1:
                        rules[r, WEIGHT] = rules[r, WEIGHT] * 3 // 4
                        lighter = True
            if lighter:
                rest = notes[WORK] + 4 * len(gain) + 8 * len(parts) + 16 * len(rules)
                work_out(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes)
        elif notes[IDLE] > idle and notes[LEAST_COST] < NEVER:
            notes[IDLE] = 0
            for u in range(n):
                variables[u, CURRENT] = variables[u, BEST]
            work_out(variables, slots, pairs, parts, rules, listed, occurs, scope, gain, notes)
