"""One pass over a circuit for each question: counts, weighted sums, marginals, best worlds, draws.

A circuit whose products share no variables (decomposable) and whose sums share no worlds (deterministic)
gives a sum over its models as one number for each gate: literals have their weights, products multiply, sums
add. With maxima in place of sums it gives the best model. Downward, what reaches a gate is divided among the
parts of a sum as their numbers are, and given whole to each part of a product: that makes all marginals at
once, and draws. Weights are given with each question, and nothing is compiled again.

Parts of a sum need not mention the same variables (the circuit need not be smooth). A variable that a part
does not mention counts with the sum of its two weights; divided by these sums, all weights of a literal and
its negation add up to 1, and what is not mentioned needs no attention.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.knowledge.circuits import SUM, Circuit
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.programs import circuit_sums, usable

_WIDE: Final = 8  # parts that are worked through one by one; gates with more are done in several steps
_CELLS: Final = 1 << 20  # numbers of a pass that are held at a time: about what fits into a cache
_TINY: Final = 1e-250  # a whole below it is worked out again, in logarithms
_NOISE: Final = 1e-12  # what rounding may leave of a chance that nothing is left for
_DRAWS: Final = 1 << 15  # worlds that are drawn at a time


class Peak(NamedTuple):
    """The best score, how many worlds have it, and one of them."""

    score: int
    ties: int
    world: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Joining:
    """Rows from ``first`` to ``end``, each made of those that the columns have at its place, if any."""

    first: int
    end: int
    is_sum: bool
    columns: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class _Pull:
    """What some rows have from gates above them: sums of these, by ``steps`` on the way, then ``columns``.

    ``scaled``: it counts in proportion to the number of the row; else whole.
    """

    rows: Ints
    steps: tuple[_Joining, ...]
    columns: tuple[Ints, ...]
    scaled: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    """The order of a pass: rows of numbers, first the literals, then true and false, then gates by level.

    ``row`` gives the row of each slot of the circuit, ``rows`` how many there are, with those on the way to
    wide gates; ``groups`` are rows of one level and kind: the first, the end, and whether they are sums;
    ``most`` is the largest number of rows of a step.
    """

    row: Ints
    rows: int
    steps: tuple[_Joining, ...]
    groups: tuple[tuple[int, int, bool], ...]
    most: int


class _Numbers(NamedTuple):
    """How numbers are added, multiplied and divided: as they are, or as logarithms.

    Nothing is divided by less than ``least``: a gate below it adds nothing to a whole that is not.
    """

    add: np.ufunc
    times: np.ufunc
    over: np.ufunc
    zero: float
    one: float
    least: float


_PLAIN: Final = _Numbers(np.add, np.multiply, np.divide, 0.0, 1.0, 1e-300)
_LOGS: Final = _Numbers(np.logaddexp, np.add, np.subtract, -np.inf, 0.0, -1e300)
_BEST: Final = _Numbers(np.maximum, np.add, np.subtract, -np.inf, 0.0, -1e300)


class Passes:
    """The passes over one circuit; what they need of it is worked out once.

    Weights and scores of literals are given by variable and value: ``weights[..., v, 1]`` is that of the
    variable v being true, ``weights[..., v, 0]`` of its being false.

    >>> from lbm.reasoning.exact.compile import compile_clauses
    >>> passes = Passes(compile_clauses([[1, 2], [-2, 3]], 3))
    >>> passes.count()
    4
    >>> total, chances = passes.marginals(np.ones((1, 3, 2)))
    >>> chances.tolist()
    [[0.75, 0.5, 0.75]]
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.first = 2 * circuit.variables

    # ------------------------------------------------------------------------------------------ whole numbers

    def count(self, weights: Sequence[tuple[int, int]] | None = None, *, budget: Budget = NO_LIMIT) -> int:
        """Return the sum over all models of the product of their literals' weights, exactly; None: all 1."""
        root = self.circuit.root
        free = ((1 << self.circuit.variables) - 1) ^ self._mentioned[root]
        return self._counts(weights, budget)[root] * _Gaps(weights)[free]

    def _counts(self, weights: Sequence[tuple[int, int]] | None, budget: Budget) -> list[int]:
        """Return the sum of each slot, over the variables below it."""
        first, parts_of, sums, mentioned = self.first, self._parts_of, self._sums, self._mentioned
        gaps = _Gaps(weights)
        value = [1] * first if weights is None else [weight for pair in weights for weight in pair]
        for gate, parts in enumerate(parts_of):
            if not gate & 0xFFF:
                budget.tick()
            if sums[gate]:
                total, here = 0, mentioned[first + gate]
                for part in parts:
                    gap = here ^ mentioned[part]
                    total += value[part] * gaps[gap] if gap else value[part]
            else:
                total = 1
                for part in parts:
                    total *= value[part]
            value.append(total)
        return value

    def models(self, most: int, *, budget: Budget = NO_LIMIT) -> Bools | None:
        """Return all models, shape (models, variables), in no order; None: there are more than ``most``.

        Each model has a number; a sum takes it apart by how many models its parts have, a product as a
        number of several digits, and what is not mentioned as one of two values each.
        """
        number, first, root = self.circuit.variables, self.first, self.circuit.root
        counts, mentioned = self._counts(None, budget), self._mentioned
        free = ((1 << number) - 1) ^ mentioned[root]
        total = counts[root] << free.bit_count()
        if total > min(most, 1 << 62):
            return None
        taken = np.zeros((number, total), np.bool_)
        if not total:
            return taken.T
        reached: dict[int, list[tuple[Ints, Ints]]] = {}

        def reach(slot: int, who: Ints, rank: Ints, gap: int) -> None:
            for v in _bits(gap):
                taken[v, who] = rank & 1
                rank = rank >> 1
            if slot < first:
                taken[slot >> 1, who] = slot & 1
            else:
                reached.setdefault(slot, []).append((who, rank))

        reach(root, np.arange(total), np.arange(total), free)
        for slot in range(root, first - 1, -1):
            pairs = reached.pop(slot, None)
            if pairs is None:
                continue
            if not slot & 0xFF:
                budget.tick()
            who = np.concatenate([one for one, _ in pairs])
            rank = np.concatenate([other for _, other in pairs])
            parts = self._parts_of[slot - first]
            if not self._sums[slot - first]:
                for part in parts:
                    reach(part, who, rank % counts[part], 0)
                    rank = rank // counts[part]
                continue
            begin = 0
            for part in parts:
                gap = mentioned[slot] ^ mentioned[part]
                end = begin + (counts[part] << gap.bit_count())
                here = (begin <= rank) & (rank < end)
                if here.any():
                    reach(part, who[here], rank[here] - begin, gap)
                begin = end
        return taken.T

    def best(self, scores: Sequence[tuple[int, int]], *, budget: Budget = NO_LIMIT) -> Peak | None:
        """Return the best sum of literals' scores that a model has, exactly; None: there is no model."""
        found = self.top(scores, 1, budget=budget)
        if not found:
            return None
        first, parts_of, sums, mentioned = self.first, self._parts_of, self._sums, self._mentioned
        tied = sum(1 << v for v, (no, yes) in enumerate(scores) if no == yes)
        value: list[tuple[int, int] | None] = [
            (score - max(pair), 1) for pair in scores for score in pair
        ]  # the score short of the best that these variables have alone, and how many worlds reach it
        for gate, parts in enumerate(parts_of):
            if not gate & 0xFFF:
                budget.tick()
            if sums[gate]:
                here = mentioned[first + gate]
                best: tuple[int, int] | None = None
                for part in parts:
                    one = value[part]
                    if one is None or (best is not None and one[0] < best[0]):
                        continue
                    ways = one[1] << ((here ^ mentioned[part]) & tied).bit_count()
                    best = (
                        (one[0], ways + best[1]) if best is not None and one[0] == best[0] else (one[0], ways)
                    )
            else:
                best = (0, 1)
                for part in parts:
                    one = value[part]
                    best = None if one is None or best is None else (best[0] + one[0], best[1] * one[1])
            value.append(best)
        root = self.circuit.root
        whole = value[root]
        assert whole is not None, "a model was found"
        free = ((1 << self.circuit.variables) - 1) ^ mentioned[root]
        score, world = found[0]
        return Peak(score, whole[1] << (free & tied).bit_count(), world)

    def top(
        self, scores: Sequence[tuple[int, int]], most: int, *, budget: Budget = NO_LIMIT
    ) -> list[tuple[int, tuple[bool, ...]]]:
        """Return the best models with their scores, best first, ``most`` at most; exactly."""
        first, parts_of, sums, mentioned = self.first, self._parts_of, self._sums, self._mentioned
        number = self.circuit.variables
        either = [
            sorted([(no - max(no, yes), 0), (yes - max(no, yes), 1 << v)], reverse=True)[:most]
            for v, (no, yes) in enumerate(scores)
        ]
        known: dict[int, list[tuple[int, int]]] = {0: [(0, 0)]}

        def unsaid(gap: int) -> list[tuple[int, int]]:
            """Return the best worlds of variables that nothing is said of."""
            found = known.get(gap)
            if found is None:
                found = [(0, 0)]
                for v in _bits(gap):
                    found = _both(found, either[v], most)
                known[gap] = found
            return found

        value = [
            [(score - max(pair), bit)]
            for v, pair in enumerate(scores)
            for score, bit in zip(pair, (0, 1 << v), strict=True)
        ]
        for gate, parts in enumerate(parts_of):
            if not gate & 0xFF:
                budget.tick()
            if sums[gate]:
                here = mentioned[first + gate]
                options = [_both(value[part], unsaid(here ^ mentioned[part]), most) for part in parts]
                value.append(heapq.nlargest(most, (entry for option in options for entry in option)))
            else:
                found = [(0, 0)]
                for part in parts:
                    found = _both(found, value[part], most)
                value.append(found)
        root = self.circuit.root
        whole = _both(value[root], unsaid(((1 << number) - 1) ^ mentioned[root]), most)
        base = sum(max(pair) for pair in scores)
        return [(base + score, tuple(bool(bits >> v & 1) for v in range(number))) for score, bits in whole]

    # ------------------------------------------------------------------------------------- floats, in batches

    def log_sum(self, weights: Floats, *, logs: bool = False, budget: Budget = NO_LIMIT) -> Floats:
        """Return the logarithm of the weighted sum over the models, for each row of weights.

        ``weights`` has the shape (rows, variables, 2) and holds no negative number, or, with ``logs``, the
        logarithms of weights that floats may not hold; where no model is left, the logarithm is -∞.
        """
        totals = np.empty(len(weights))
        for rows in self._batches(len(weights)):
            totals[rows] = self._sums_up(_turned(weights[rows]), logs, budget, down=False)[0]
        return totals

    def marginals(
        self, weights: Floats, *, logs: bool = False, budget: Budget = NO_LIMIT
    ) -> tuple[Floats, Floats]:
        """Return what ``log_sum`` does, and the chances of each variable being true: shape (rows, variables).

        The chance of v is also the derivative of the logarithm by that of the weight of v being true. It is
        nan where no model is left.
        """
        totals = np.empty(len(weights))
        chances = np.empty((len(weights), self.circuit.variables))
        for rows in self._batches(len(weights)):
            here = _turned(weights[rows])
            totals[rows], shares, flow, low = self._sums_up(here, logs, budget, down=True)
            found = self._chances(flow, shares)
            if low:  # rarely any
                again = _log_shares(here[:, :, low], logs=logs)[0]
                flow = np.exp(self._spread(self._up(again, _LOGS), _LOGS))
                found[:, low] = self._chances(flow, np.exp(again))
            found[:, totals[rows] == -np.inf] = np.nan
            chances[rows] = found.T
        return totals, chances

    def best_of(self, scores: Floats, *, budget: Budget = NO_LIMIT) -> tuple[Floats, Bools]:
        """Return the best score of a model, and a model that has it, for each row of scores.

        ``scores`` has the shape (rows, variables, 2); a score of -∞ forbids the literal. Where no model is
        left, the score is -∞, and the world means nothing.
        """
        number = self.circuit.variables
        best = np.empty(len(scores))
        worlds = np.zeros((len(scores), number), np.bool_)
        for rows in self._batches(len(scores)):
            budget.tick()
            here = _turned(scores[rows])
            most = here.max(axis=1, initial=-np.inf)
            with np.errstate(invalid="ignore"):
                short = np.where(np.isneginf(here), -np.inf, here - most[:, None])
            value = self._up(short, _BEST)
            found = value[self._layout.row[self.circuit.root]] + most.sum(axis=0)
            best[rows] = found
            alive = np.flatnonzero(found > -np.inf)
            taken = here[:, 1] > here[:, 0]

            self._descend(alive, _Best(value, self._layout.row), taken)
            worlds[rows] = taken.T
        return best, worlds

    def draw(
        self,
        number: int,
        rng: np.random.Generator,
        weights: Floats | None = None,
        *,
        logs: bool = False,
        budget: Budget = NO_LIMIT,
    ) -> Bools:
        """Return independent draws from the models in proportion to their weights: shape (number, variables).

        ``weights`` has the shape (variables, 2), or are, with ``logs``, their logarithms; None: all are 1,
        and all models are equally likely. There must be a model with a weight.
        """
        variables = self.circuit.variables
        weights = np.full((variables, 2), float(not logs)) if weights is None else weights
        literals, _ = _log_shares(weights[:, :, None], logs=logs)
        value = self._up(literals, _LOGS)[:, 0]
        row = self._layout.row
        assert value[row[self.circuit.root]] > -np.inf, "there is a model with a weight"
        choose = _Chance(value[row], rng)
        worlds = np.empty((number, variables), np.bool_)
        free = np.array(_bits(self._unsaid), np.int64)
        true = np.exp(literals[free, 1, 0])
        for rows in slices(number, _DRAWS):
            budget.tick()
            size = rows.stop - rows.start
            taken = np.zeros((variables, size), np.bool_)
            for v, chance in zip(free.tolist(), true.tolist(), strict=True):
                taken[v] = rng.random(size) < chance
            self._descend(np.arange(size), choose, taken)
            worlds[rows] = taken.T
        return worlds

    # ----------------------------------------------------------------------------------------------- one pass

    def _batches(self, number: int) -> Iterable[slice]:
        return slices(number, max(1, _CELLS // (self.first + len(self.circuit))))

    def _sums_up(
        self, weights: Floats, logs: bool, budget: Budget, *, down: bool
    ) -> tuple[Floats, Floats, Floats, list[int]]:
        """Return the logarithms of the sums, the shares of literals, their chances if wanted, and low rows.

        These are the rows whose sum is too small for floats, and was worked out in logarithms.
        """
        budget.tick()
        shares, factor = _shares(weights, logs=logs)
        if usable(self.circuit.edges * shares.shape[-1]):
            sums, flow = circuit_sums(self.circuit, shares, down=down)
        else:
            value = self._up(shares, _PLAIN)
            sums = value[self._layout.row[self.circuit.root]]
            flow = self._spread(value, _PLAIN) if down else value
        with np.errstate(divide="ignore"):
            totals = np.log(sums) + factor
        low = np.flatnonzero((sums < _TINY) & (factor > -np.inf)).tolist()
        if low:
            budget.tick()
            again, factor = _log_shares(weights[:, :, low], logs=logs)
            totals[low] = self._up(again, _LOGS)[self._layout.row[self.circuit.root]] + factor
        return totals, shares, flow, [at for at in low if totals[at] > -np.inf]

    def _up(self, literals: Floats, numbers: _Numbers) -> Floats:
        """Return the numbers of all rows; ``literals`` has the shape (variables, 2, rows of the batch)."""
        layout, first = self._layout, self.first
        size = literals.shape[-1]
        value = np.empty((layout.rows, size))
        value[:first] = literals.reshape(first, size)
        value[first], value[first + 1] = numbers.one, numbers.zero
        room = np.empty((layout.most, size))
        for step in layout.steps:
            here = value[step.first : step.end]
            _gather(
                value[: step.first], step.columns, here, numbers.add if step.is_sum else numbers.times, room
            )
        return value

    def _spread(self, value: Floats, numbers: _Numbers) -> Floats:
        """Return the chance of each literal being part of a world, from the numbers of all rows.

        What reaches a product or a literal is the chance that it takes part in a world; for a sum it is
        divided by its number, so that each part has its own number's share.
        """
        pulls, extra, most = self._pulls
        size = value.shape[1]
        flow = np.full((self._layout.rows + extra, size), numbers.zero)
        room, other = np.empty((most, size)), np.empty((most, size))
        flow[self._layout.row[self.circuit.root]] = numbers.one
        for (first, end, is_sum), group in zip(reversed(self._layout.groups), pulls, strict=True):
            for number, pull in enumerate(group):
                for step in pull.steps:
                    here = flow[step.first : step.end]
                    _gather(flow[: step.first], step.columns, here, numbers.add, room)
                here = other[: len(pull.rows)]
                _gather(flow, pull.columns, here, numbers.add, room)
                if pull.scaled:
                    numbers.times(here, _taken(value, pull.rows, room), out=here)
                if number:
                    numbers.add(here, _taken(flow, pull.rows, room), out=here)
                flow[pull.rows] = here
            if is_sum:
                here = room[: end - first]
                np.maximum(value[first:end], numbers.least, out=here)
                numbers.over(flow[first:end], here, out=flow[first:end])
        return flow[: self.first].reshape(self.circuit.variables, 2, size)

    def _chances(self, found: Floats, literals: Floats) -> Floats:
        """Return the chance of each variable being true, where a part may not mention it, too."""
        chances: Floats = found[:, 1].copy()
        some = _bits(self._unsaid)
        unsaid = 1.0 - found[some, 0] - found[some, 1]
        unsaid[unsaid < _NOISE] = 0.0
        chances[some] += unsaid * literals[some, 1]
        return np.minimum(chances, 1.0, out=chances)

    def _descend(self, who: Ints, choose: Callable[[int, list[int], Ints], Ints], taken: Bools) -> None:
        """Set the variables of worlds from the root down: all parts of a product, and one of each sum.

        ``who`` are the columns of ``taken``, shape (variables, worlds), that are to be set.
        """
        first, parts_of, sums = self.first, self._parts_of, self._sums
        reached: dict[int, list[Ints]] = {}

        def reach(slot: int, some: Ints) -> None:
            if slot < first:
                taken[slot >> 1, some] = slot & 1
            else:
                reached.setdefault(slot, []).append(some)

        reach(self.circuit.root, who)
        for slot in range(self.circuit.root, first - 1, -1):
            lists = reached.pop(slot, None)
            if lists is None:
                continue
            here = lists[0] if len(lists) == 1 else np.concatenate(lists)
            parts = parts_of[slot - first]
            if not sums[slot - first]:
                for part in parts:
                    reach(part, here)
            elif len(parts) == 1:
                reach(parts[0], here)
            elif len(here):
                which = choose(slot, parts, here)
                for number, part in enumerate(parts):
                    some = here[which == number]
                    if len(some):
                        reach(part, some)

    # --------------------------------------------------------------------------------------- worked out once

    @cached_property
    def _parts_of(self) -> list[list[int]]:
        """The parts of each gate."""
        parts, starts = self.circuit.parts.tolist(), self.circuit.starts.tolist()
        return [parts[start:end] for start, end in pairwise(starts)]

    @cached_property
    def _sums(self) -> list[bool]:
        """Which gates are sums."""
        found: list[bool] = (self.circuit.kinds == SUM).tolist()
        return found

    @cached_property
    def _mentioned(self) -> list[int]:
        """The variables below each slot, as bits."""
        masks = [1 << (slot >> 1) for slot in range(self.first)]
        for parts in self._parts_of:
            mask = 0
            for part in parts:
                mask |= masks[part]
            masks.append(mask)
        return masks

    @cached_property
    def _unsaid(self) -> int:
        """The variables, as bits, that a part of a sum, or the root, does not mention."""
        masks, first = self._mentioned, self.first
        found = ((1 << self.circuit.variables) - 1) ^ masks[self.circuit.root]
        for gate, parts in enumerate(self._parts_of):
            if self._sums[gate]:
                all_of_it = masks[first + gate]
                for part in parts:
                    found |= all_of_it ^ masks[part]
        return found

    @cached_property
    def _layout(self) -> _Layout:
        """The order of the pass upward."""
        circuit, first = self.circuit, self.first
        sizes = np.diff(circuit.starts)
        level = [0] * first
        for parts in self._parts_of:
            level.append(1 + max(map(level.__getitem__, parts)) if parts else 0)
        height = np.array(level[first:], np.int64)
        row = np.empty(first + len(circuit), np.int64)
        row[:first] = np.arange(first)
        row[first:][sizes == 0] = first + (circuit.kinds[sizes == 0] == SUM)
        rows, most = first + 2, 0
        groups = [(0, first, False)]
        steps: list[_Joining] = []
        key = 2 * height + (circuit.kinds == SUM)
        gates = np.argsort(key, kind="stable")
        gates = gates[sizes[gates] > 0]
        for group in np.split(gates, np.flatnonzero(np.diff(key[gates])) + 1) if len(gates) else []:
            is_sum = bool(circuit.kinds[group[0]] == SUM)
            flat, starts, counts = _rows_of(row[circuit.parts], circuit.starts[group], sizes[group])
            more, rows, flat, starts, counts = _narrowed(flat, starts, counts, rows, is_sum)
            steps += more
            turn, columns = _columns(flat, starts, counts)
            row[first + group[turn]] = np.arange(rows, rows + len(group))
            steps.append(_Joining(rows, rows + len(group), is_sum, columns))
            groups.append((rows, rows + len(group), is_sum))
            rows += len(group)
        most = max((step.end - step.first for step in steps), default=0)
        return _Layout(row, rows, tuple(steps), tuple(groups), most)

    @cached_property
    def _pulls(self) -> tuple[list[list[_Pull]], int, int]:
        """The order of the pass downward, by groups from the last; rows beside, and the longest step."""
        circuit, layout, first = self.circuit, self._layout, self.first
        above = layout.row[first + np.repeat(np.arange(len(circuit)), np.diff(circuit.starts))]
        below = layout.row[circuit.parts]
        from_sum = np.repeat(circuit.kinds == SUM, np.diff(circuit.starts))
        extra, most = layout.rows, 0
        tables = []
        for scaled in (True, False):
            chosen = from_sum == scaled
            order = np.argsort(below[chosen], kind="stable")
            counts = np.bincount(below[chosen], minlength=layout.rows)
            tables.append((scaled, above[chosen][order], np.cumsum(counts) - counts, counts))
        found = []
        for lowest, end, _ in reversed(layout.groups):
            pulls = []
            most = max(most, end - lowest)
            for scaled, parents, starts, counts in tables:
                some = lowest + np.flatnonzero(counts[lowest:end])
                if not len(some):
                    continue
                flat, own, sizes = _rows_of(parents, starts[some], counts[some])
                steps, extra, flat, own, sizes = _narrowed(flat, own, sizes, extra, True)
                turn, columns = _columns(flat, own, sizes)
                pulls.append(_Pull(some[turn], tuple(steps), columns, scaled))
                most = max([most, *(step.end - step.first for step in steps)])
            found.append(pulls)
        return found, extra - layout.rows, most


class _Best:
    """The part of a sum that is best in each world of a batch."""

    def __init__(self, value: Floats, row: Ints) -> None:
        self.value, self.row = value, row

    def __call__(self, _: int, parts: list[int], who: Ints) -> Ints:
        found: Ints = self.value[self.row[parts][:, None], who].argmax(axis=0)
        return found


class _Chance:
    """A part of a sum by chance, in proportion to the numbers of the parts, given as logarithms."""

    def __init__(self, value: Floats, rng: np.random.Generator) -> None:
        self.value, self.rng = value, rng
        self.bounds: dict[int, Floats] = {}

    def __call__(self, gate: int, parts: list[int], who: Ints) -> Ints:
        bounds = self.bounds.get(gate)
        if bounds is None:
            logs = self.value[parts]
            shares = np.exp(logs - logs.max())
            bounds = self.bounds[gate] = np.cumsum(shares)[:-1] / shares.sum()
        return bounds.searchsorted(self.rng.random(len(who)), side="right")


class _Gaps(dict[int, int]):
    """What variables that are not mentioned multiply a count by, by their bits."""

    def __init__(self, weights: Sequence[tuple[int, int]] | None) -> None:
        super().__init__()
        self.weights = weights

    def __missing__(self, gap: int) -> int:
        if self.weights is None:
            found = 1 << gap.bit_count()
        else:
            found = 1
            for v in _bits(gap):
                found *= sum(self.weights[v])
        self[gap] = found
        return found


def _both(one: list[tuple[int, int]], other: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Return the best sums of an entry of each side, best first: bits are joined."""
    if len(one) <= 1 or len(other) <= 1:
        return [(a + b, x | y) for a, x in one for b, y in other]
    sums = (
        (a + b, x | y)
        for i, (a, x) in enumerate(one)
        for b, y in other[: most // (i + 1)]  # as many are at least as good as the pair of places i and j
    )
    return heapq.nlargest(most, sums)


def _bits(mask: int) -> list[int]:
    """Return the places of the bits of a mask."""
    return [place for place, sign in enumerate(bin(mask)[:1:-1]) if sign == "1"]


def _turned(weights: Floats) -> Floats:
    """Return weights with the rows of the batch last: shape (variables, 2, rows)."""
    return np.ascontiguousarray(np.moveaxis(weights, 0, -1))


def _shares(weights: Floats, *, logs: bool) -> tuple[Floats, Floats]:
    """Return the weights with those of each variable divided by their sum, and the logarithm of all sums.

    ``weights`` has the shape (variables, 2, rows); ``logs``: logarithms are given.
    """
    if logs:
        shares, factor = _log_shares(weights, logs=True)
        return np.exp(shares), factor
    with np.errstate(over="ignore"):
        sums = weights[:, 0] + weights[:, 1]
    if not len(sums) or (sums.min() >= _TINY and sums.max() < np.inf):
        return weights / sums[:, None], np.log(sums).sum(axis=0)
    most = weights.max(axis=1)
    safe = np.where(most > 0, most, 1.0)
    scaled = weights / safe[:, None]
    sums = np.where(most > 0, scaled.sum(axis=1), 1.0)
    factors = np.where(most > 0, np.log(safe) + np.log(sums), -np.inf)
    return scaled / sums[:, None], factors.sum(axis=0)


def _log_shares(weights: Floats, *, logs: bool) -> tuple[Floats, Floats]:
    """Return what ``_shares`` does, the shares as logarithms too."""
    with np.errstate(divide="ignore"):
        given = weights if logs else np.log(weights)
    sums = np.logaddexp(given[:, 0], given[:, 1])
    return given - np.where(sums > -np.inf, sums, 0.0)[:, None], sums.sum(axis=0)


def _taken(numbers: Floats, rows: Ints, room: Floats) -> Floats:
    """Return some rows of numbers, in a room that is there."""
    return np.take(numbers, rows, axis=0, out=room[: len(rows)], mode="clip")


def _gather(
    numbers: Floats, columns: tuple[Ints, ...], here: Floats, join: Callable[..., Any], room: Floats
) -> None:
    """Join rows of numbers, those of each column to those of the columns before."""
    np.take(numbers, columns[0], axis=0, out=here, mode="clip")
    for column in columns[1:]:
        some = here[: len(column)]
        join(some, _taken(numbers, column, room), out=some)


def _rows_of(flat: Ints, starts: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return some rows of a ragged table: their entries, starts and lengths."""
    own = np.cumsum(counts) - counts
    places = np.arange(int(counts.sum())) + np.repeat(starts - own, counts)
    return flat[places], own, counts


def _columns(flat: Ints, starts: Ints, counts: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    """Return the rows of a ragged table, longest first, by number, and then its columns."""
    turn = np.argsort(-counts, kind="stable")
    sorted_starts = starts[turn]
    lengths = [int((counts > at).sum()) for at in range(int(counts.max()))]
    return turn, tuple(flat[sorted_starts[:length] + at] for at, length in enumerate(lengths))


def _narrowed(
    flat: Ints, starts: Ints, counts: Ints, rows: int, is_sum: bool
) -> tuple[list[_Joining], int, Ints, Ints, Ints]:
    """Return steps that join wide rows of a ragged table in pieces, and the table that is left.

    The pieces are numbered from ``rows``; where the next ones would begin is returned beside.
    """
    steps: list[_Joining] = []
    while len(counts) and counts.max() > _WIDE:
        pieces = np.where(counts > _WIDE, -(-counts // _WIDE), 0)
        owner = np.repeat(np.arange(len(counts)), pieces)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        sizes = np.minimum(_WIDE, counts[owner] - _WIDE * place)
        turn, columns = _columns(flat, starts[owner] + _WIDE * place, sizes)
        number = np.empty(len(owner), np.int64)
        number[turn] = np.arange(rows, rows + len(owner))
        steps.append(_Joining(rows, rows + len(owner), is_sum, columns))
        rows += len(owner)
        left = np.where(pieces > 0, pieces, counts)
        narrow = np.repeat(pieces == 0, left)
        joined = np.empty(int(left.sum()), np.int64)
        joined[~narrow] = number
        joined[narrow] = _rows_of(flat, starts[pieces == 0], counts[pieces == 0])[0]
        flat, counts = joined, left
        starts = np.cumsum(counts) - counts
    return steps, rows, flat, starts, counts
