"""Loops over sums of products: a pass up for log Z, one down for all chances, best worlds and draws.

Slots number what a pass works out: the two literals of each column (false, true), then the two shares of each
pair, then the nodes, parts before wholes. Rows are the last axis, so that what is done to a slot is done to
some rows at a stretch. Plain numbers serve most rows; those whose sum comes near the end of the range of
floats are marked, and done again in logarithms.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.reasoning.compiling.ready import kernel

PIECE: Final = "sums"
"""The piece that these loops are compiled in."""

TIMES, PLUS, MIXED = 0, 1, 2
"""Kinds of nodes: a product of slots, a sum of slots, and a sum of weighted products of slots."""


class Nodes(NamedTuple):
    """The arrays of :class:`lbm.reasoning.exact.sums.SumProgram` that loops go through, described there."""

    starts: Ints
    pairs: Ints
    marks: Ints
    kinds: Ints
    terms: Ints
    factors: Ints
    slots: Ints
    marked: Ints


_TINY: Final = 1e-300  # less than any sum that is not 0
_MOST: Final = 1e290  # more than any sum that is in range


# --- plain numbers -----------------------------------------------------------------------------------


@kernel(PIECE)
def sweep(
    logits: Floats,
    told: Ints,
    nodes: Nodes,
    theta: Floats,
    roots: Ints,
    floors: Floats,
    logs: Floats,
    chances: Floats,
    flows: Floats,
    likely: Floats,
    low: Bools,
    side: int,
) -> None:
    """Add log Z of each row to ``logs``; if there is room for them, work out chances of columns and marks.

    ``low`` gets the rows that plain numbers do not hold. Shapes: ``logits`` (rows, columns that have one),
    ``told`` (rows, choices) or (0, 0), ``chances`` (rows, columns), ``flows`` (rows, marks); ``likely`` gets
    how likely columns are by their logits alone, (rows, columns that have one).
    """
    rows, columns = len(logs), nodes.starts[-1]
    size = 2 * columns + 2 * len(nodes.pairs) + len(nodes.kinds)
    down = len(chances) > 0
    value = np.empty((size, side))
    flow = np.empty((size if down else 0, side))
    markflow = np.zeros((len(theta) if down else 0, side))
    part, room = np.empty(side), np.empty(side)
    for begin in range(0, rows, side):
        width = min(side, rows - begin)
        _literals(logits, told, nodes.starts, value, begin, width)
        for column in range(likely.shape[1]):
            for row in range(width):
                likely[begin + row, column] = value[2 * column + 1, row]
        _shares(nodes.pairs, nodes.marks, theta, columns, value, logs[begin : begin + width], width)
        _up(nodes, theta, value, part, room, width)
        for r in range(len(roots)):
            for row in range(width):
                total = value[roots[r], row]
                if total >= floors[r] and total < _MOST:
                    logs[begin + row] += math.log(total)
                else:
                    low[begin + row] = True
        if down:
            flow[:] = 0.0
            markflow[:] = 0.0
            for r in range(len(roots)):
                for row in range(width):
                    flow[roots[r], row] += 1.0
            _down(nodes, theta, value, flow, markflow, part, room, width)
            _unshare(nodes.pairs, nodes.marks, columns, value, flow, markflow, width)
            for column in range(columns):
                for row in range(width):
                    chances[begin + row, column] = min(flow[2 * column + 1, row], 1.0)
            for mark in range(flows.shape[1]):
                for row in range(width):
                    flows[begin + row, mark] = markflow[mark, row]


@kernel(PIECE)
def _literals(logits: Floats, told: Ints, starts: Ints, value: Floats, begin: int, width: int) -> None:
    """Work out the weights of all literals: p and 1 - p; of a group p and 1, since exactly one is true."""
    given = logits.shape[1]
    for choice in range(len(starts) - 1):
        start, end = starts[choice], starts[choice + 1]
        if start >= given:
            for slot in range(2 * start, 2 * end):
                for row in range(width):
                    value[slot, row] = 1.0
        elif end - start == 1:
            for row in range(width):
                a = logits[begin + row, start]
                e = math.exp(-abs(a))
                one = 1.0 / (1.0 + e)
                value[2 * start, row] = e * one if a >= 0.0 else one
                value[2 * start + 1, row] = one if a >= 0.0 else e * one
        else:
            for row in range(width):
                top = -np.inf
                for column in range(start, end):
                    top = max(top, logits[begin + row, column])
                total = 0.0
                sure = 0
                for column in range(start, end):
                    a = logits[begin + row, column]
                    if a == top:
                        sure += 1
                        e = 1.0 if a > -np.inf else 0.0
                    else:
                        e = math.exp(a - top)
                    value[2 * column + 1, row] = e
                    value[2 * column, row] = 1.0
                    total += e
                if top == np.inf and sure > 1:
                    total = np.inf  # two that are certain exclude each other
                for column in range(start, end):
                    value[2 * column + 1, row] /= max(total, 1.0)
        if len(told):
            for row in range(width):
                wanted = told[begin + row, choice]
                if wanted >= 0:
                    if end - start == 1:
                        value[2 * start + 1 - wanted, row] = 0.0
                    else:
                        for column in range(start, end):
                            value[2 * column + (0 if column - start == wanted else 1), row] = 0.0


@kernel(PIECE)
def _shares(
    pairs: Ints, marks: Ints, theta: Floats, columns: int, value: Floats, logs: Floats, width: int
) -> None:
    """Divide the weights of both literals of a pair by their sum, whose logarithm is added to ``logs``."""
    for pair in range(len(pairs)):
        column = pairs[pair]
        no, yes = theta[marks[pair, 0]], theta[marks[pair, 1]]
        here, other = value[2 * (columns + pair)], value[2 * (columns + pair) + 1]
        for row in range(width):
            a, b = no, yes
            if column >= 0:
                a *= value[2 * column, row]
                b *= value[2 * column + 1, row]
            total = a + b
            if abs(total - 1.0) > 1e-15:
                logs[row] += math.log(total) if total > 0.0 else -np.inf
                total = max(total, _TINY)
                a /= total
                b /= total
            here[row] = a
            other[row] = b


@kernel(PIECE)
def _up(nodes: Nodes, theta: Floats, value: Floats, part: Floats, room: Floats, width: int) -> None:
    """Work out the number of each node from those of its parts, which stand before it."""
    kinds, terms, factors = nodes.kinds, nodes.terms, nodes.factors
    slots, marked = nodes.slots, nodes.marked
    first = len(value) - len(kinds)
    for node in range(len(kinds)):
        here = value[first + node]
        start, end = terms[node], terms[node + 1]
        if kinds[node] == MIXED:
            for row in range(width):
                part[row] = 0.0
            for term in range(start, end):
                at, last = factors[term], factors[term + 1]
                if last - at == 2 and marked[term] == 0:  # most of them
                    one, other = value[slots[at]], value[slots[at + 1]]
                    for row in range(width):
                        part[row] += one[row] * other[row]
                    continue
                weight = theta[marked[term]]
                if last - at == 1:
                    one = value[slots[at]]
                    for row in range(width):
                        part[row] += weight * one[row]
                    continue
                for row in range(width):
                    room[row] = weight
                for more in range(at, last):
                    other = value[slots[more]]
                    for row in range(width):
                        room[row] *= other[row]
                for row in range(width):
                    part[row] += room[row]
            for row in range(width):
                here[row] = part[row]
            continue
        one = value[slots[factors[start]]]
        for row in range(width):
            part[row] = one[row]
        for at in range(factors[start] + 1, factors[end]):
            one = value[slots[at]]
            if kinds[node] == PLUS:
                for row in range(width):
                    part[row] += one[row]
            else:
                for row in range(width):
                    part[row] *= one[row]
        for row in range(width):
            here[row] = part[row]


@kernel(PIECE)
def _down(
    nodes: Nodes,
    theta: Floats,
    value: Floats,
    flow: Floats,
    markflow: Floats,
    part: Floats,
    room: Floats,
    width: int,
) -> None:
    """Work out the chance that each slot takes part in a world: a sum divides its own among its terms."""
    kinds, terms, factors = nodes.kinds, nodes.terms, nodes.factors
    slots, marked = nodes.slots, nodes.marked
    first = len(value) - len(kinds)
    for node in range(len(kinds) - 1, -1, -1):
        here = flow[first + node]
        start, end = terms[node], terms[node + 1]
        if kinds[node] == TIMES:
            for at in range(factors[start], factors[end]):
                other = flow[slots[at]]
                for row in range(width):
                    other[row] += here[row]
            continue
        whole = value[first + node]
        for row in range(width):
            part[row] = here[row] / max(whole[row], _TINY)
        if kinds[node] == PLUS:
            for at in range(factors[start], factors[end]):
                other, own = flow[slots[at]], value[slots[at]]
                for row in range(width):
                    other[row] += part[row] * own[row]
            continue
        for term in range(start, end):
            weight = theta[marked[term]]
            for row in range(width):
                room[row] = weight * part[row]
            for at in range(factors[term], factors[term + 1]):
                own = value[slots[at]]
                for row in range(width):
                    room[row] *= own[row]
            for at in range(factors[term], factors[term + 1]):
                other = flow[slots[at]]
                for row in range(width):
                    other[row] += room[row]
            if marked[term]:
                other = markflow[marked[term]]
                for row in range(width):
                    other[row] += room[row]


@kernel(PIECE)
def _unshare(
    pairs: Ints, marks: Ints, columns: int, value: Floats, flow: Floats, markflow: Floats, width: int
) -> None:
    """Hand the chances of pairs to their columns, with the worlds in which a part does not mention them."""
    for pair in range(len(pairs)):
        slot, column = 2 * (columns + pair), pairs[pair]
        for row in range(width):
            unsaid = 1.0 - flow[slot, row] - flow[slot + 1, row]
            unsaid = unsaid if unsaid > 1e-12 else 0.0  # what rounding may leave
            for which in range(2):
                chance = flow[slot + which, row] + unsaid * value[slot + which, row]
                if column >= 0:
                    flow[2 * column + which, row] += chance
                if marks[pair, which]:
                    markflow[marks[pair, which], row] += chance


# --- logarithms --------------------------------------------------------------------------------------


@kernel(PIECE)
def sweep_logs(
    logits: Floats,
    told: Ints,
    nodes: Nodes,
    theta: Floats,
    roots: Ints,
    logs: Floats,
    chances: Floats,
    flows: Floats,
) -> None:
    """Do what :func:`sweep` does in logarithms, ``theta`` too; chances are 0 where no world is left."""
    columns = nodes.starts[-1]
    size = 2 * columns + 2 * len(nodes.pairs) + len(nodes.kinds)
    down = len(chances) > 0
    value, flow = np.empty(size), np.empty(size if down else 0)
    markflow = np.zeros(len(theta) if down else 0)
    for row in range(len(logs)):
        logs[row] += _row_up(logits, told, nodes, theta, row, value, False)
        total = logs[row]
        for root in roots:
            total += value[root]
        logs[row] = total
        if down:
            flow[:] = 0.0
            markflow[:] = 0.0
            if total > -np.inf:
                for root in roots:
                    flow[root] += 1.0
                _row_down(nodes, theta, columns, value, flow, markflow)
            for column in range(columns):
                chances[row, column] = min(flow[2 * column + 1], 1.0)
            for mark in range(flows.shape[1]):
                flows[row, mark] = markflow[mark]


@kernel(PIECE)
def _row_literals(logits: Floats, told: Ints, starts: Ints, row: int, value: Floats) -> None:
    """Work out the logarithms of the weights of all literals in a row."""
    given = logits.shape[1]
    for choice in range(len(starts) - 1):
        start, end = starts[choice], starts[choice + 1]
        if start >= given:
            value[2 * start : 2 * end] = 0.0
        elif end - start == 1:
            a = logits[row, start]
            rest = math.log1p(math.exp(-abs(a)))
            value[2 * start] = -rest - (max(0.0, a))
            value[2 * start + 1] = -rest + (min(0.0, a))
        else:
            top = -np.inf
            for column in range(start, end):
                top = max(top, logits[row, column])
            total = 0.0
            sure = 0
            for column in range(start, end):
                a = logits[row, column]
                total += 1.0 if a == top else math.exp(a - top)
                sure += a == top
            for column in range(start, end):
                a = logits[row, column]
                value[2 * column] = 0.0
                if abs(top) == np.inf:
                    value[2 * column + 1] = 0.0 if a == top and top > 0.0 and sure == 1 else -np.inf
                else:
                    value[2 * column + 1] = a - top - math.log(total)
        if len(told) and told[row, choice] >= 0:
            wanted = told[row, choice]
            if end - start == 1:
                value[2 * start + 1 - wanted] = -np.inf
            else:
                for column in range(start, end):
                    value[2 * column + (0 if column - start == wanted else 1)] = -np.inf


@kernel(PIECE)
def _row_up(
    logits: Floats, told: Ints, nodes: Nodes, theta: Floats, row: int, value: Floats, best: bool
) -> float:
    """Work out all slots of a row; return what the sums (or, of the ``best``, maxima) of pairs come to."""
    pairs, marks, kinds, terms = nodes.pairs, nodes.marks, nodes.kinds, nodes.terms
    columns = nodes.starts[-1]
    first = 2 * columns + 2 * len(pairs)
    _row_literals(logits, told, nodes.starts, row, value)
    found = 0.0
    for pair in range(len(pairs)):
        column, slot = pairs[pair], 2 * (columns + pair)
        a, b = theta[marks[pair, 0]], theta[marks[pair, 1]]
        if column >= 0:
            a += value[2 * column]
            b += value[2 * column + 1]
        total = max(a, b)
        if total == -np.inf:
            found = -np.inf
            total = 0.0
        elif not best:
            total += math.log1p(math.exp(min(a, b) - total))
        found += total
        value[slot] = a - total
        value[slot + 1] = b - total
    for node in range(len(kinds)):
        start, end = terms[node], terms[node + 1]
        if kinds[node] == TIMES:
            whole = 0.0
            for at in range(nodes.factors[start], nodes.factors[end]):
                whole += value[nodes.slots[at]]
            value[first + node] = whole
            continue
        top = -np.inf
        for term in range(start, end):
            top = max(top, _term(nodes, theta, value, term))
        if best or top == -np.inf:
            value[first + node] = top
            continue
        whole = 0.0
        for term in range(start, end):
            whole += math.exp(_term(nodes, theta, value, term) - top)
        value[first + node] = top + math.log(whole)
    return found


@kernel(PIECE)
def _term(nodes: Nodes, theta: Floats, value: Floats, term: int) -> float:
    """Return the logarithm of one term of a sum."""
    found: float = theta[nodes.marked[term]]
    for at in range(nodes.factors[term], nodes.factors[term + 1]):
        found += value[nodes.slots[at]]
    return found


@kernel(PIECE)
def _row_down(
    nodes: Nodes, theta: Floats, columns: int, value: Floats, flow: Floats, markflow: Floats
) -> None:
    """Hand the chances of a row down from its roots."""
    pairs, marks, kinds, terms = nodes.pairs, nodes.marks, nodes.kinds, nodes.terms
    factors, slots, marked = nodes.factors, nodes.slots, nodes.marked
    first = 2 * columns + 2 * len(pairs)
    for node in range(len(kinds) - 1, -1, -1):
        here = flow[first + node]
        if here == 0.0 or value[first + node] == -np.inf:
            continue
        for term in range(terms[node], terms[node + 1]):
            share = here
            if kinds[node] != TIMES:
                number = _term(nodes, theta, value, term)
                share *= math.exp(number - value[first + node])
            for at in range(factors[term], factors[term + 1]):
                flow[slots[at]] += share
            markflow[marked[term]] += share
    for pair in range(len(pairs)):
        slot, column = 2 * (columns + pair), pairs[pair]
        unsaid = 1.0 - flow[slot] - flow[slot + 1]
        unsaid = unsaid if unsaid > 1e-12 else 0.0
        for which in range(2):
            chance = flow[slot + which] + unsaid * math.exp(value[slot + which])
            if column >= 0:
                flow[2 * column + which] += chance
            markflow[marks[pair, which]] += chance


# --- worlds ------------------------------------------------------------------------------------------


@kernel(PIECE)
def choose(
    logits: Floats,
    told: Ints,
    nodes: Nodes,
    theta: Floats,
    roots: Ints,
    worlds: Bools,
    seed: np.uint64,
    number: int,
    begin: int,
) -> None:
    """Set worlds, shape (draws or 1, rows, columns): the best of each row, or ``number`` draws; logarithms.

    ``number`` 0: the best; of equal ones the first on the way down. Random numbers depend on the seed, the
    row, counted from ``begin``, and the draw. Rows without a world must not be here.
    """
    pairs, kinds, terms = nodes.pairs, nodes.kinds, nodes.terms
    factors, slots = nodes.factors, nodes.slots
    columns = nodes.starts[-1]
    first = 2 * columns + 2 * len(pairs)
    value = np.empty(first + len(kinds))
    stack = np.empty(first + len(kinds), np.int64)
    said = np.zeros(len(pairs), np.bool_)
    for row in range(worlds.shape[1]):
        _row_up(logits, told, nodes, theta, row, value, number == 0)
        for draw in range(max(number, 1)):
            world = worlds[draw, row]
            state = _mixed(_mixed(seed + np.uint64(begin + row)) + np.uint64(draw))
            said[:] = False
            height = len(roots)
            stack[:height] = roots
            while height:
                height -= 1
                slot = stack[height]
                if slot < 2 * columns:
                    world[slot >> 1] = slot & 1
                    continue
                if slot < first:
                    said[(slot >> 1) - columns] = True
                    if pairs[(slot >> 1) - columns] >= 0:
                        world[pairs[(slot >> 1) - columns]] = slot & 1
                    continue
                node = slot - first
                term, end = terms[node], terms[node + 1]
                if kinds[node] == TIMES:
                    for at in range(factors[term], factors[end]):
                        stack[height] = slots[at]
                        height += 1
                    continue
                if number:
                    state += np.uint64(0x9E3779B97F4A7C15)
                    left = (_mixed(state) >> np.uint64(11)) * 2.0**-53
                    chosen = term
                    for other in range(term, end):
                        share = math.exp(_term(nodes, theta, value, other) - value[slot])
                        if share > 0.0:
                            chosen = other
                            left -= share
                            if left < 0.0:
                                break
                else:
                    chosen = term
                    while _term(nodes, theta, value, chosen) < value[slot]:
                        chosen += 1
                for at in range(factors[chosen], factors[chosen + 1]):
                    stack[height] = slots[at]
                    height += 1
            for pair in range(len(pairs)):
                if not said[pair]:
                    slot = 2 * (columns + pair)
                    true = value[slot + 1] > value[slot]
                    if number:
                        state += np.uint64(0x9E3779B97F4A7C15)
                        true = (_mixed(state) >> np.uint64(11)) * 2.0**-53 < math.exp(value[slot + 1])
                    if pairs[pair] >= 0:
                        world[pairs[pair]] = true


@kernel(PIECE)
def _mixed(number: np.uint64) -> np.uint64:
    """Return a number whose bits depend on all bits of another (splitmix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(number ^ (number >> np.uint64(31)))
