"""Presolve (preprocessing): what weighted clauses settle before any search or chain begins, and the way back.

Always, and without a change to the scores or the number of models: literals that the hard clauses force are
fixed; a clause that contains a hard one is constant and dropped; equal clauses become one; a soft unit and
its negation cancel. Where only a best world is wanted, pure literals are fixed as well. A soft clause is
never dropped because of another soft clause: each of them is lost on its own.

Inside, a literal is a code: 2·(i - 1) for ``+i`` and one more for ``-i``, so that ``code ^ 1`` negates it.
Clauses are sets there: their ``literals`` are codes, rising within each, none twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools, Ints
from lbm.errors import LimitExceeded, WeightError
from lbm.knowledge.clauses import Clauses
from lbm.reasoning.compiling.ready import kernel

MAX_ATOMS: Final = (1 << 30) - 1
"""Atoms whose literals have 32-bit codes."""

MAX_TOTAL: Final = (1 << 62) - 1
"""The sum of all weights, so that no sum of some of them, or difference of two such, leaves 64 bits."""

CALL: Final = 4_000_000
"""Literals looked at in one compiled call, which Ctrl-C has to wait for."""

MAX_COMPARISONS: Final = 100_000_000
"""Literals looked at while clauses are compared with hard ones of three literals or more.

What is not found by then is kept, which is right too. Hard clauses of two literals have no such limit.
"""

_FEW: Final = 100_000  # literals up to which they are sorted by comparison

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Presolved:
    """What is left of a problem, and what is known of the rest.

    For every model x of the original: lost(x) = ``lost`` + what the projection of x to ``kept`` loses here.

    Attributes
    ----------
    problem
        Clauses over the atoms that still occur in one, renumbered from 1. Within a clause, literals are in
        the order of their atoms, each once.
    kept
        Shape (problem.variables,): the original number of each of them, rising.
    fixed
        Shape (original atoms,): 1 true, -1 false, 0 not fixed.
    free
        The original numbers, rising, of atoms that are not fixed and occur in no clause any more.
    lost
        The weight that is lost in every world.
    components
        Shape (problem.variables,): the number of its connected component, from 0; clauses tie atoms.
    """

    problem: Clauses
    kept: Codes
    fixed: NDArray[np.int8]
    free: Codes
    lost: int
    components: Codes


def presolve(problem: Clauses, *, pure: bool, fixed: Mapping[int, bool] = {}) -> Presolved | None:
    """Return what is left of a problem after all that can be settled in about linear time.

    With ``pure=False`` the models that keep ``fixed`` are those of what is left, one to one but for the free
    atoms, and each loses the same weight as before. With ``pure=True`` the least lost weight is the same, and
    every best world of what is left is one of the original, once undone.

    Parameters
    ----------
    pure
        Whether to fix atoms that occur with one sign only, too, which some best world survives and a
        distribution does not.
    fixed
        Values that atoms are given, by their numbers.

    Returns
    -------
    What is left, or None if unit propagation finds that no world keeps the hard clauses and ``fixed``.

    Examples
    --------
    ``a``, hard; ``~a | b | c`` of weight 3, ``b`` of weight 2 and ``~b`` of weight 5:

    >>> problem = Clauses.of([[1], [-1, 2, 3], [2], [-2]], [0, 3, 2, 5], variables=3)
    >>> found = presolve(problem, pure=False)
    >>> found.lost, found.kept.tolist(), found.problem.literals.tolist(), found.problem.weights.tolist()
    (2, [2, 3], [1, 2, -1], [3, 3])
    """
    _check(problem, fixed)
    atoms = problem.variables
    clauses = _as_sets(problem)
    value = _forced(clauses, atoms, fixed)
    if value is None:
        return None
    clauses, lost = _under(clauses, value)
    clauses = _without_containing(_merged(clauses, atoms), atoms)
    clauses, cancelled = _cancelled(clauses, atoms)
    if pure:
        clauses = _without_pure(clauses, value)

    occurs = np.zeros(atoms, bool)
    occurs[clauses.literals >> 1] = True
    number = np.cumsum(occurs, dtype=np.int32)
    places = number[clauses.literals >> 1]
    known = value[::2].copy()
    literals = np.where(clauses.literals & 1, -places, places).astype(np.int32)
    left = Clauses((), literals, clauses.starts, clauses.weights, int(occurs.sum()))
    return Presolved(
        problem=left,
        kept=_numbers(occurs),
        fixed=known,
        free=_numbers(~occurs & (known == 0)),
        lost=lost + cancelled,
        components=_components(np.arange(left.variables), left.literals, left.starts),
    )


def _check(problem: Clauses, fixed: Mapping[int, bool]) -> None:
    """Refuse arrays that are no problem, and sizes past the limits."""
    atoms, literals, starts, weights = problem.variables, problem.literals, problem.starts, problem.weights
    if atoms > MAX_ATOMS:
        raise LimitExceeded(
            f"expected at most {MAX_ATOMS} atoms (limit MAX_ATOMS), got {atoms}: "
            "solve parts that share no atom one after the other",
            MAX_ATOMS=MAX_ATOMS,
        )
    if (
        len(starts) != len(weights) + 1
        or starts[0] != 0
        or starts[-1] != len(literals)
        or (np.diff(starts) < 0).any()
    ):
        raise ValueError(
            f"starts rises from 0 to the number of literals, {len(literals)}, with one entry more than the "
            f"{len(weights)} weights, got {starts}"
        )
    if len(literals) and (not literals.all() or max(literals.max(), -int(literals.min())) > atoms):
        raise ValueError(f"literals are +i or -i with i from 1 to {atoms}, got {literals}")
    if len(weights) and weights.min() < 0:
        raise WeightError(
            f"weights are from 1 up, or 0 for a hard clause, got {weights.min()}: "
            "knowledge.weighted.weighted_clauses(theory) says the same with positive ones"
        )
    # In halves, since the sum of all might not fit into 64 bits.
    total = (int((weights >> 32).sum()) << 32) + int((weights & 0xFFFFFFFF).sum())
    if total > MAX_TOTAL:
        raise LimitExceeded(
            f"expected weights whose sum is at most {MAX_TOTAL} (limit MAX_TOTAL), got {total}: "
            "divide all of them by the same number",
            MAX_TOTAL=MAX_TOTAL,
        )
    for atom in fixed:
        if not 1 <= atom <= atoms:
            raise ValueError(f"fixed names atoms by their numbers, from 1 to {atoms}, got {atom}")


# --- clauses as sets of codes ------------------------------------------------------------------------


def _occurrences(sets: Clauses, atoms: int) -> tuple[Ints, Ints]:
    """Return ``first`` and ``clauses``: code c occurs in the clauses[first[c]:first[c + 1]]."""
    codes, width = sets.literals, 2 * atoms
    if len(codes) < _FEW:  # scipy takes longer to load than to be missed
        owners = np.repeat(np.arange(len(sets)), sets.sizes)
        return _rows(codes, atoms), owners[np.argsort(codes, kind="stable")]
    from scipy.sparse import csr_array

    cells = np.ones(len(codes), np.int8)
    by_code = csr_array((cells, codes, sets.starts), shape=(len(sets), width)).tocsc()
    return by_code.indptr.astype(np.int64), by_code.indices.astype(np.int64)


def _starts(sizes: Ints) -> Ints:
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


def _number(marked: Bools, starts: Ints) -> Ints:
    """Return how many of its literals are marked, for each clause; some clauses may be empty."""
    sums = _starts(marked.astype(np.int64))
    return sums[starts[1:]] - sums[starts[:-1]]


def _numbers(marked: Bools) -> Codes:
    return (np.flatnonzero(marked) + 1).astype(np.int32)


def _as_sets(problem: Clauses) -> Clauses:
    """Return the clauses that can be false at all, each literal once."""
    width = 2 * problem.variables
    owner = np.repeat(np.arange(len(problem)), problem.sizes)
    codes = problem.codes
    # One sort of all: the clause is the higher digit, so that every clause stays in its place.
    codes = np.sort(owner * width + codes) - owner * width
    new = np.ones(len(codes), bool)
    new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
    owner, sets = owner[new], codes[new].astype(np.int32)
    always = np.zeros(len(problem), bool)  # true: both signs of an atom, which are neighbours
    both = (sets[1:] == sets[:-1] ^ 1) & (owner[1:] == owner[:-1])
    always[owner[1:][both]] = True
    sizes = np.bincount(owner, minlength=len(problem))
    return Clauses((), sets, _starts(sizes), problem.weights, problem.variables).where(~always)


# --- what is forced ----------------------------------------------------------------------------------


def _forced(clauses: Clauses, atoms: int, fixed: Mapping[int, bool]) -> NDArray[np.int8] | None:
    """Return 1, -1 or 0 for each code that must be true, must be false, or is open; None: that clashes."""
    value = np.zeros(2 * atoms, np.int8)
    queue = np.zeros(atoms, np.int32)
    given = np.fromiter(fixed, np.int64, len(fixed))
    given = 2 * (given - 1) + ~np.fromiter(map(bool, fixed.values()), bool, len(fixed))
    queue[: len(given)] = given
    value[given], value[given ^ 1] = 1, -1
    hard = clauses.where(clauses.weights == 0)
    if not len(hard):
        return value
    first, within = _occurrences(hard, atoms)
    possible = _propagate(hard.literals, hard.starts, hard.sizes, first, within, value, queue, len(given))
    return value if possible else None


@kernel("presolve")
def _propagate(
    codes: Codes,
    starts: Ints,
    left: Ints,
    first: Ints,
    within: Ints,
    value: NDArray[np.int8],
    queue: Codes,
    queued: int,
) -> bool:
    """Set the value of all codes that the clauses force; return whether they leave every clause a chance.

    The first ``queued`` entries of ``queue``, which has room for every atom, are true already. ``left`` is at
    first the size of each clause, and then the number of its literals that the queue, as far as it was read,
    does not make false.
    """
    read = 0
    for clause in range(len(left)):
        if left[clause] == 0:
            return False
        if left[clause] == 1:
            code = codes[starts[clause]]
            if value[code] < 0:
                return False
            if value[code] == 0:
                value[code], value[code ^ 1] = 1, -1
                queue[queued] = code
                queued += 1
    while read < queued:
        false = queue[read] ^ 1
        read += 1
        for place in range(first[false], first[false + 1]):
            clause = within[place]
            left[clause] -= 1
            if left[clause] != 1:
                continue
            # Once per clause. Codes that wait in the queue have their value, so that there may be none left.
            last = -1
            for spot in range(starts[clause], starts[clause + 1]):
                if value[codes[spot]] >= 0:
                    last = codes[spot]
            if last < 0:
                return False
            if value[last] == 0:
                value[last], value[last ^ 1] = 1, -1
                queue[queued] = last
                queued += 1
    return True


def _under(clauses: Clauses, value: NDArray[np.int8]) -> tuple[Clauses, int]:
    """Return the clauses that are open, without literals that are false, and the weight already lost."""
    values = value[clauses.literals]
    open_ = _number(values > 0, clauses.starts) == 0
    empty = open_ & (_number(values == 0, clauses.starts) == 0)
    left = clauses.where(open_ & ~empty)
    left_open = value[left.literals] == 0
    starts = _starts(_number(left_open, left.starts))
    return replace(left, literals=left.literals[left_open], starts=starts), int(clauses.weights[empty].sum())


# --- what is said already ----------------------------------------------------------------------------


def _merged(clauses: Clauses, atoms: int) -> Clauses:
    """Return each clause once, where it stood first: hard if one of its copies was, else of their weights."""
    sums = np.zeros(len(clauses.literals) + 1, np.uint64)
    np.cumsum(_mixed(2 * atoms)[clauses.literals], out=sums[1:])
    hashes = sums[clauses.starts[1:]] - sums[clauses.starts[:-1]]  # whatever the order, and modulo 2^64
    same = _same(clauses.literals, clauses.starts, hashes, np.argsort(hashes, kind="stable"))
    alone = same == np.arange(len(same))
    weights = np.zeros(len(same), np.int64)
    np.add.at(weights, same, clauses.weights)
    weights[same[clauses.weights == 0]] = 0
    return replace(clauses, weights=weights).where(alone)


def _mixed(number: int) -> NDArray[np.uint64]:
    """Return well spread 64-bit numbers, one for each code: a Weyl sequence, multiplied and folded twice."""
    x = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for _ in range(2):
        x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(32))


@kernel("presolve")
def _same(codes: Codes, starts: Ints, hashes: NDArray[np.uint64], order: Ints) -> Ints:
    """Return for each clause the first one that equals it; ``order`` sorts them by their hashes."""
    found = np.empty(len(order), np.int64)
    firsts = np.empty(len(order), np.int64)  # different clauses so far; from ``begin`` on, with this hash
    begin = number = 0
    for clause in order:
        if number > begin and hashes[firsts[begin]] != hashes[clause]:
            begin = number
        found[clause] = clause
        for first in range(begin, number):
            other = firsts[first]
            equal = starts[clause + 1] - starts[clause] == starts[other + 1] - starts[other]
            for place in range(starts[clause + 1] - starts[clause]):
                if not equal:
                    break
                equal = codes[starts[clause] + place] == codes[starts[other] + place]
            if equal:
                found[clause] = other
                break
        if found[clause] == clause:
            firsts[number] = clause
            number += 1
    return found


def _without_containing(clauses: Clauses, atoms: int) -> Clauses:
    """Return the clauses that contain no other hard one, as far as that was found out; all differ."""
    sizes, hard = clauses.sizes, clauses.weights == 0
    contains = np.zeros(len(sizes), bool)
    pairs = hard & (sizes == 2)
    if pairs.any() and (sizes > 2).any():
        heads = clauses.starts[:-1][pairs]
        lower, upper = clauses.literals[heads], clauses.literals[heads + 1]
        upper, rows = upper[np.lexsort((upper, lower))], _rows(lower, atoms)
        clause = 0
        while clause < len(sizes):
            clause = _find_pairs(clauses.literals, clauses.starts, rows, upper, clause, CALL, contains)

    longer = clauses.where(hard & (sizes > 2))
    if not len(longer.weights) or sizes.max() <= longer.sizes.min():
        return clauses.where(~contains)
    # A hard clause is looked for where its rarest literal occurs, and by its second rarest first.
    width = 2 * atoms
    keys = np.bincount(clauses.literals, minlength=width)[longer.literals] * width + longer.literals
    least = np.minimum.reduceat(keys, longer.starts[:-1])
    keys[keys == np.repeat(least, longer.sizes)] = np.iinfo(np.int64).max
    second = np.minimum.reduceat(keys, longer.starts[:-1]) % width
    rarest = least % width
    order = np.lexsort((longer.sizes, rarest))
    longer, rows, second = longer.ordered(order), _rows(rarest, atoms), second[order].astype(np.int32)
    arrays = clauses.literals, clauses.starts, longer.literals, longer.starts, rows, second
    seen = np.full(width, -1, np.int64)
    clause = looked = 0
    while clause < len(sizes) and looked < MAX_COMPARISONS:
        most = min(CALL, MAX_COMPARISONS - looked)
        clause, more = _find_longer(*arrays, clause, most, seen, contains)
        looked += more
    return clauses.where(~contains)


def _rows(keys: NDArray[np.int64] | Codes, atoms: int) -> Ints:
    """Return where the items of each code begin, if they are sorted by these keys; and their end."""
    return _starts(np.bincount(keys, minlength=2 * atoms))


@kernel("presolve")
def _find_pairs(
    codes: Codes, starts: Ints, rows: Ints, partners: Codes, clause: int, limit: int, contains: Bools
) -> int:
    """Mark clauses of three literals or more that contain a hard pair; return the first not yet looked at.

    It begins at ``clause`` and ends after about ``limit`` literals. The pairs with the lower code c have the
    upper codes partners[rows[c]:rows[c + 1]], rising.
    """
    while clause < len(contains) and limit > 0:
        first, end = starts[clause], starts[clause + 1]
        if end - first > 2:
            limit -= end - first
            for place in range(first, end - 1):
                code = codes[place]
                if rows[code] == rows[code + 1]:
                    continue
                few, many = partners[rows[code] : rows[code + 1]], codes[place + 1 : end]
                if len(few) > len(many):
                    few, many = many, few
                low = 0
                for wanted in few:
                    limit -= 1
                    high = len(many)
                    while low < high:
                        middle = (low + high) // 2
                        if many[middle] < wanted:
                            low = middle + 1
                        else:
                            high = middle
                    if low == len(many):
                        break
                    if many[low] == wanted:
                        contains[clause] = True
                        break
                if contains[clause]:
                    break
        clause += 1
    return clause


@kernel("presolve")
def _find_longer(
    codes: Codes,
    starts: Ints,
    hard_codes: Codes,
    hard_starts: Ints,
    rows: Ints,
    second: Codes,
    clause: int,
    limit: int,
    seen: Ints,
    contains: Bools,
) -> tuple[int, int]:
    """Mark clauses that contain a hard one with fewer literals.

    It begins at ``clause`` and ends after about ``limit`` literals; the first clause not yet looked at and
    the number of literals are returned. Each hard clause stands at one code: rows[c] up to rows[c + 1] at
    code c, the small ones first; ``second`` is another code of it, looked at before the rest. ``seen`` is
    the last clause in which each code was seen.
    """
    looked = 0
    while clause < len(contains) and looked < limit:
        size = starts[clause + 1] - starts[clause]
        if size > 3 and not contains[clause]:
            looked += size
            for place in range(starts[clause], starts[clause + 1]):
                seen[codes[place]] = clause
            for place in range(starts[clause], starts[clause + 1]):
                code = codes[place]
                for other in range(rows[code], rows[code + 1]):
                    if hard_starts[other + 1] - hard_starts[other] >= size:
                        break
                    looked += 1
                    if seen[second[other]] != clause:
                        continue
                    inside = True
                    for spot in range(hard_starts[other], hard_starts[other + 1]):
                        looked += 1
                        if seen[hard_codes[spot]] != clause:
                            inside = False
                            break
                    if inside:
                        contains[clause] = True
                        break
                if contains[clause]:
                    break
        clause += 1
    return clause, looked


def _cancelled(clauses: Clauses, atoms: int) -> tuple[Clauses, int]:
    """Return the clauses after soft units have paid for their negations, and what both sides lost by it."""
    units = (clauses.sizes == 1) & (clauses.weights > 0)
    codes = clauses.literals[clauses.starts[:-1][units]]
    by_code = np.zeros(2 * atoms, np.int64)
    by_code[codes] = clauses.weights[units]
    lost = np.minimum(by_code[::2], by_code[1::2])
    weights = clauses.weights.copy()
    weights[units] -= lost[codes >> 1]
    # A unit that has nothing left must go: weight 0 would make it hard.
    return replace(clauses, weights=weights).where(~units | (weights > 0)), int(lost.sum())


# --- what harms nobody -------------------------------------------------------------------------------


def _without_pure(clauses: Clauses, value: NDArray[np.int8]) -> Clauses:
    """Return the clauses that no pure literal makes true; the literals get their value."""
    gone = np.zeros(len(clauses.weights), bool)
    first, within = _occurrences(clauses, len(value) // 2)
    _fix_pure(clauses.literals, clauses.starts, np.diff(first), first, within, value, gone)
    return clauses.where(~gone)


@kernel("presolve")
def _fix_pure(
    codes: Codes,
    starts: Ints,
    number: Ints,
    first: Ints,
    within: Ints,
    value: NDArray[np.int8],
    gone: Bools,
) -> None:
    """Make codes true that occur while their negations do not, and mark clauses that this makes true.

    ``number`` is how many clauses that are not gone have each code.
    """
    queue = np.empty(len(value) // 2, np.int64)
    read = queued = 0
    for code in range(len(value)):
        if number[code] > 0 and number[code ^ 1] == 0:
            queue[queued] = code
            queued += 1
    while read < queued:
        pure = queue[read]
        read += 1
        if number[pure] == 0:  # others made all its clauses true: it is free
            continue
        value[pure], value[pure ^ 1] = 1, -1
        for place in range(first[pure], first[pure + 1]):
            clause = within[place]
            if gone[clause]:
                continue
            gone[clause] = True
            for spot in range(starts[clause], starts[clause + 1]):
                code = codes[spot]
                number[code] -= 1
                if number[code] == 0 and number[code ^ 1] > 0:
                    queue[queued] = code ^ 1
                    queued += 1


@kernel("presolve")
def _components(earlier: Ints, literals: Codes, starts: Ints) -> Codes:
    """Return the number of each atom's component, shape (atoms,), in the order of their first atoms.

    Each atom comes to point at an ``earlier`` one of its component, the first one at itself, as all do now.
    """
    for clause in range(len(starts) - 1):
        one = np.int64(abs(literals[starts[clause]]) - 1)
        for place in range(starts[clause] + 1, starts[clause + 1]):
            other = np.int64(abs(literals[place]) - 1)
            while earlier[one] != one:
                earlier[one] = earlier[earlier[one]]
                one = earlier[one]
            while earlier[other] != other:
                earlier[other] = earlier[earlier[other]]
                other = earlier[other]
            if one < other:
                earlier[other] = one
            else:
                earlier[one] = other
                one = other
    found = np.empty(len(earlier), np.int32)
    number = 0
    for atom in range(len(earlier)):
        if earlier[atom] == atom:
            found[atom] = number
            number += 1
        else:
            found[atom] = found[earlier[atom]]
    return found
