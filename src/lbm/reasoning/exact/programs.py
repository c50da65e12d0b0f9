"""Elimination and circuits as programs for compiled loops: many rows of evidence side by side.

A program of tables has a step for each variable that is summed out. Its entries are the values of the
variable and its neighbours that formulae allow together; one that they forbid is not there at all (sparse
tables). Rows are the last axis of all arrays, so that what is done to an entry is done to some rows at a
stretch. The passes of tables.py and passes.py do the same in NumPy, with the same guards against numbers that
leave the range of floats; they are what runs until this is compiled.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.knowledge.circuits import SUM, Circuit
from lbm.reasoning.compiling.ready import kernel, runs_compiled

PIECE: Final = "exact"
"""The piece that these loops are compiled in."""

MAX_ENTRIES: Final = 1 << 18
"""Entries of all tables up to which they become a program; larger ones are as fast in NumPy."""

WORTH: Final = 1 << 27
"""Entries or edges, times rows, from which it is worth it to load a compiler that is not loaded yet."""

_SIDE: Final = 64  # rows side by side, at most
_LEAST: Final = 8  # and at least, where there are as many
_CACHE: Final = 1 << 16  # numbers of a pass that stay near the processor
_SAFE: Final = 600.0  # natural logarithm of the largest and of 1 over the smallest entry that is in range
_NEAR: Final = 50.0  # that of entries past which messages are scaled
_TINY: Final = 1e-300  # less than any sum that is not 0


def usable(work: int) -> bool:
    """Return whether compiled loops are used for so many entries or edges, times rows."""
    return ("numba" in sys.modules or work >= WORTH) and runs_compiled(PIECE)


def _side(numbers: int, rows: int) -> int:
    """Return how many rows go side by side where each takes so many numbers."""
    return min(rows, max(_LEAST, min(_SIDE, _CACHE // max(1, numbers))))


# --- tables ------------------------------------------------------------------------------------------


class TableProgram(NamedTuple):
    """Elimination of the variables of a component, one step for each, as compiled loops take it.

    Attributes
    ----------
    steps
        Shape (steps, 2): the variable of each step, and whether its sum is a number, not a message.
    spots
        Shape (steps + 1,): step s makes the sums ``spots[s]:spots[s + 1]``.
    entries
        Shape (sums + 1,): sum m is that of the entries ``entries[m]:entries[m + 1]``.
    value
        Shape (entries,): the value of the step's variable, by its number among those of all variables.
    inputs
        Shape (steps + 1,): step s reads the sums that ``reads[inputs[s]:inputs[s + 1]]`` name.
    reads
        Shape (inputs, 2): a step before, and where the numbers of its sums stand in ``places``.
    places
        For each input the number of a sum for each entry of the step that reads it.
    values
        Shape (variables + 1,): variable v has the values ``values[v]:values[v + 1]``.
    kept
        Shape (entries,): where each entry stands in the products of the tables of all steps, laid in a row.
    """

    steps: Ints
    spots: Ints
    entries: Ints
    value: Ints
    inputs: Ints
    reads: Ints
    places: Ints
    values: Ints
    kept: Ints

    def swept(
        self,
        weights: Floats,
        bounds: Floats,
        evidence: Mapping[int, Floats],
        rows: int,
        *,
        down: bool,
    ) -> tuple[Floats, Floats] | None:
        """Return log Z of each row and, if wanted, how likely each value is, shape (values, rows).

        None: numbers leave the range of floats.

        Parameters
        ----------
        weights
            Shape (entries,).
        bounds
            Shape (steps,): the logarithm of the least weight of each step; 1 is the greatest.
        evidence
            By variable what its values are multiplied by, shape (values, rows or 1).
        """
        number = int(self.values[-1])
        seen = np.ones((number, rows))
        for variable, table in evidence.items():
            seen[self.values[variable] : self.values[variable + 1]] = table
        logs, chances = np.zeros(rows), np.empty((number if down else 0, rows))
        side = _side(len(self.entries) + (len(self.value) if down else 0), rows)
        return (logs, chances) if _sweep(self, weights, bounds, seen, logs, chances, side) else None


def table_program(
    sizes: Sequence[int], scopes: Sequence[tuple[int, ...]], allowed: Sequence[Bools]
) -> TableProgram:
    """Return the program of an elimination.

    Parameters
    ----------
    sizes
        How many values each variable has.
    scopes
        Of each step in turn its variable, then its neighbours, those first that go first.
    allowed
        Which entries of the product of a step's own tables are not 0: an axis for each variable of its scope.
    """
    step_of = {scope[0]: step for step, scope in enumerate(scopes)}
    values = _starts(sizes)
    feeding: list[list[int]] = [[] for _ in scopes]
    spots, inputs, reads = [0], [0], list[tuple[int, int]]()
    ends, value, places, kept = list[Ints](), list[Ints](), list[Ints](), list[Ints]()
    total = read = product = 0
    for step, (scope, true) in enumerate(zip(scopes, allowed, strict=True)):
        shape = tuple([sizes[v] for v in scope])
        number = math.prod(shape[1:])
        # Neighbours first, so that the entries of one sum follow each other.
        flat = np.flatnonzero(np.moveaxis(true, 0, -1))
        message, own = np.divmod(flat, shape[0])
        ends.append(total + np.cumsum(np.bincount(message, minlength=number)))
        value.append(values[scope[0]] + own)
        kept.append(product + own * number + message)
        index = dict(zip(scope[1:], np.unravel_index(message, shape[1:]) if number > 1 else (), strict=False))
        index[scope[0]] = own
        for before in feeding[step]:
            place = np.zeros(len(flat), np.int64)
            for v in scopes[before][1:]:
                place = place * sizes[v] + index[v]
            places.append(spots[before] + place)
            reads.append((before, read))
            read += len(flat)
        inputs.append(len(reads))
        spots.append(spots[-1] + number)
        total += len(flat)
        product += number * shape[0]
        if len(scope) > 1:
            feeding[step_of[scope[1]]].append(step)
    return TableProgram(
        steps=np.array([(scope[0], len(scope) == 1) for scope in scopes], np.int64),
        spots=np.array(spots, np.int64),
        entries=_row([np.zeros(1, np.int64), *ends]),
        value=_row(value),
        inputs=np.array(inputs, np.int64),
        reads=np.array(reads, np.int64).reshape(-1, 2),
        places=_row(places),
        values=values,
        kept=_row(kept),
    )


def _row(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _starts(sizes: Sequence[int]) -> Ints:
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


@kernel(PIECE)
def _sweep(
    program: TableProgram,
    weights: Floats,
    bounds: Floats,
    seen: Floats,
    logs: Floats,
    chances: Floats,
    side: int,
) -> bool:
    """Work out log Z of all rows and, if there is room for them, chances; False: numbers leave the range."""
    down = len(chances) > 0
    number = len(program.entries) - 1
    sums = np.empty((number, side))
    products = np.empty((len(program.value) if down else 0, side))
    reached = np.empty((number if down else 0, side))
    here, found = np.empty((len(seen), side)), np.empty((len(chances), side))
    for start in range(0, seen.shape[1], side):
        width = min(side, seen.shape[1] - start)
        for v in range(len(seen)):
            for row in range(width):
                here[v, row] = seen[v, start + row]
        rows = logs[start : start + width]
        if not _sum_up(program, weights, bounds, here, sums, products, rows, width):
            return False
        if down:
            _hand_down(program, sums, products, reached, found, width)
            for v in range(len(chances)):
                for row in range(width):
                    chances[v, start + row] = found[v, row]
    return True


@kernel(PIECE)
def _sum_up(
    program: TableProgram,
    weights: Floats,
    bounds: Floats,
    seen: Floats,
    sums: Floats,
    products: Floats,
    logs: Floats,
    width: int,
) -> bool:
    """Work out all sums, and products if there is room for them; False: numbers leave the range of floats.

    log Z of each row is added to ``logs``.
    """
    steps, spots, entries, value = program.steps, program.spots, program.entries, program.value
    inputs, reads, places, values = program.inputs, program.reads, program.places, program.values
    lowest, highest = np.zeros(len(steps)), np.zeros(len(steps))  # bounds of the logarithms of its sums
    part = np.empty(width)
    for step in range(len(steps)):
        variable, first, end = steps[step, 0], spots[step], spots[step + 1]
        low, high = bounds[step], 0.0
        small = large = 1.0
        told = False
        for v in range(values[variable], values[variable + 1]):
            for row in range(width):
                one = seen[v, row]
                told |= one != 1.0
                if one > 0.0:
                    small = min(small, one)
                    large = max(large, one)
        if told:
            low += math.log(small)
            high += math.log(large)
        for i in range(inputs[step], inputs[step + 1]):
            low += lowest[reads[i, 0]]
            high += highest[reads[i, 0]]
        if low <= -_SAFE or high >= _SAFE:
            return False
        begin = entries[first]
        for m in range(first, end):
            total = sums[m]
            for row in range(width):
                total[row] = 0.0
            for e in range(entries[m], entries[m + 1]):
                weight = weights[e]
                if told:
                    given = seen[value[e]]
                    for row in range(width):
                        part[row] = weight * given[row]
                else:
                    for row in range(width):
                        part[row] = weight
                for i in range(inputs[step], inputs[step + 1]):
                    other = sums[places[reads[i, 1] + e - begin]]
                    for row in range(width):
                        part[row] *= other[row]
                for row in range(width):
                    total[row] += part[row]
                if len(products):
                    product = products[e]
                    for row in range(width):
                        product[row] = part[row]
        if steps[step, 1]:
            for row in range(width):
                logs[row] += math.log(sums[first, row]) if sums[first, row] > 0.0 else -np.inf
            continue
        high += math.log(values[variable + 1] - values[variable])
        if low <= -_NEAR or high >= _NEAR:
            small = 1.0
            for row in range(width):
                top = 0.0
                for m in range(first, end):
                    top = max(top, sums[m, row])
                if top == 0.0:
                    logs[row] = -np.inf
                    continue
                logs[row] += math.log(top)
                for m in range(first, end):
                    sums[m, row] /= top
                    if sums[m, row] > 0.0:
                        small = min(small, sums[m, row])
                if len(products):
                    for e in range(entries[first], entries[end]):
                        products[e, row] /= top
            low, high = math.log(small), 0.0
        lowest[step], highest[step] = low, high
    return True


@kernel(PIECE)
def _hand_down(
    program: TableProgram,
    sums: Floats,
    products: Floats,
    reached: Floats,
    chances: Floats,
    width: int,
) -> None:
    """Work out how likely each value of each variable is: P(v, neighbours) = P(v | neighbours)·P(neighbours).

    ``reached`` is room for how likely the neighbours are that each sum stands for.
    """
    steps, spots, entries, value = program.steps, program.spots, program.entries, program.value
    inputs, reads, places = program.inputs, program.reads, program.places
    chances[:] = 0.0
    reached[:] = 0.0
    for step in range(len(steps) - 1, -1, -1):
        first, end, begin = spots[step], spots[step + 1], entries[spots[step]]
        for m in range(first, end):
            share, total = reached[m], sums[m]
            if steps[step, 1]:
                for row in range(width):
                    share[row] = 1.0
            for row in range(width):
                share[row] /= max(total[row], _TINY)
            for e in range(entries[m], entries[m + 1]):
                product, chance = products[e], chances[value[e]]
                for row in range(width):
                    product[row] *= share[row]
                    chance[row] += product[row]
                for i in range(inputs[step], inputs[step + 1]):
                    other = reached[places[reads[i, 1] + e - begin]]
                    for row in range(width):
                        other[row] += product[row]


# --- circuits ----------------------------------------------------------------------------------------


def circuit_sums(circuit: Circuit, shares: Floats, *, down: bool) -> tuple[Floats, Floats]:
    """Return the sum of each row over the models and, if wanted, how likely each literal is part of one.

    ``shares`` has the shape (variables, 2, rows); the latter, shape (variables, 2, rows), leaves out the
    worlds in which a part of a sum does not mention the variable.
    """
    variables, _, rows = shares.shape
    first = 2 * variables
    slots = first + len(circuit)
    sums, found = np.empty(rows), np.empty((first if down else 0, rows))
    parts, starts = circuit.parts.astype(np.int64), circuit.starts.astype(np.int64)
    literals = shares.reshape(first, rows)
    _walk(parts, starts, circuit.kinds == SUM, circuit.root, literals, sums, found, _side(slots, rows))
    return sums, found.reshape(-1, 2, rows)


@kernel(PIECE)
def _walk(
    parts: Ints,
    starts: Ints,
    is_sum: Bools,
    root: int,
    literals: Floats,
    sums: Floats,
    found: Floats,
    side: int,
) -> None:
    """Work out the sum of each row and, if there is room for them, the chances of literals."""
    first, rows = literals.shape
    down = len(found) > 0
    value = np.empty((first + len(is_sum), side))
    flow = np.empty((first + len(is_sum) if down else 0, side))
    for start in range(0, rows, side):
        width = min(side, rows - start)
        for slot in range(first):
            for row in range(width):
                value[slot, row] = literals[slot, start + row]
        _gates_up(parts, starts, is_sum, first, value, width)
        for row in range(width):
            sums[start + row] = value[root, row]
        if down:
            _gates_down(parts, starts, is_sum, first, root, value, flow, width)
            for slot in range(first):
                for row in range(width):
                    found[slot, start + row] = flow[slot, row]


@kernel(PIECE)
def _gates_up(parts: Ints, starts: Ints, is_sum: Bools, first: int, value: Floats, width: int) -> None:
    """Work out the number of each gate from those of its parts, which stand before it."""
    for gate in range(len(is_sum)):
        here, start, end = value[first + gate], starts[gate], starts[gate + 1]
        if start == end:
            for row in range(width):
                here[row] = 0.0 if is_sum[gate] else 1.0
            continue
        one = value[parts[start]]
        for row in range(width):
            here[row] = one[row]
        for at in range(start + 1, end):
            one = value[parts[at]]
            if is_sum[gate]:
                for row in range(width):
                    here[row] += one[row]
            else:
                for row in range(width):
                    here[row] *= one[row]


@kernel(PIECE)
def _gates_down(
    parts: Ints,
    starts: Ints,
    is_sum: Bools,
    first: int,
    root: int,
    value: Floats,
    flow: Floats,
    width: int,
) -> None:
    """Work out the chance that each slot takes part in a world: a sum divides its own among its parts."""
    flow[:] = 0.0
    flow[root, :width] = 1.0
    for gate in range(len(is_sum) - 1, -1, -1):
        here = flow[first + gate]
        if is_sum[gate]:
            whole = value[first + gate]
            for row in range(width):
                here[row] /= max(whole[row], _TINY)
            for at in range(starts[gate], starts[gate + 1]):
                other, own = flow[parts[at]], value[parts[at]]
                for row in range(width):
                    other[row] += here[row] * own[row]
        else:
            for at in range(starts[gate], starts[gate + 1]):
                other = flow[parts[at]]
                for row in range(width):
                    other[row] += here[row]
