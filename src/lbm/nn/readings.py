"""Reasoning shortcuts: wrong readings of inputs that leave every answer right, counted exactly.

A *reading* says for each value of an input what the network takes it for; inputs that share a network share
a reading. A network that only ever hears answers cannot tell readings apart that leave all of them right: a
sum of 5 is 2 + 3 and 3 + 2. One reading is what was meant, the others are shortcuts.

Readings are the solutions of a problem of constraints: a variable for each value of each network, and for
each combination that occurs those combinations that have the same answer. Values that no answer tells apart
count together, what a constraint leaves no choice is drawn at once, parts that share no constraint multiply,
and what was counted is not counted again.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Ints
from lbm.errors import LbmError, LimitExceeded
from lbm.knowledge.formula import Formula, quote
from lbm.knowledge.theory import Theory
from lbm.nn.asked import AskedLayer
from lbm.nn.heads import values_of
from lbm.nn.named import Choice, UnfitInputs, inputs_of
from lbm.reasoning.answers import Result
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.determined import undetermined
from lbm.reasoning.exact.sums import projected

MAX_COMBINATIONS: Final = 1_000_000
"""Combinations of input values whose answers are worked out."""

MAX_TUPLES: Final = 4_000_000
"""Combinations with the same answer, over all combinations that occur."""

MAX_VALUES: Final = 256
"""Different values of all networks, as far as they occur."""

MAX_STEPS: Final = 200_000
"""Times that values are tried while readings are counted."""

_ROWS: Final = 4096  # combinations whose answers are worked out at once
_SHOWN: Final = 10

Scope = tuple[int, ...]
"""The variables of a constraint, each once."""


class OpenAnswer(LbmError, ValueError):
    """A combination of input values that has several answers, or none."""


@dataclass(frozen=True, slots=True, repr=False)
class Shortcuts(Result):
    """How many readings of the inputs leave every answer right, and what values they take for what.

    Attributes
    ----------
    readings
        Their number; one of them is what was meant.
    combinations
        How many combinations of input values occur.
    read_as
        For each value that occurs, all values that some reading takes it for; itself is among them. A value
        is called by its atom; where inputs share a network, by that of the first of them.
    """

    readings: int
    combinations: int
    read_as: dict[str, tuple[str, ...]]

    @property
    def confused(self) -> tuple[str, ...]:
        """The values that may be read wrongly."""
        return tuple([name for name, others in self.read_as.items() if len(others) > 1])

    def lines(self) -> Iterator[str]:
        """Return it as lines of text."""
        if self.readings == 1:
            yield "no reasoning shortcut: only the reading that is meant leaves every answer right"
            return
        yield (
            f"{self.readings:,} readings of the inputs leave every answer right, and one is meant: "
            f"{self.readings - 1:,} reasoning shortcuts"
        )
        for name in self.confused[:_SHOWN]:
            yield f"{name} may be read as {', '.join(self.read_as[name])}"
        if len(self.confused) > _SHOWN:
            yield f"... and {len(self.confused) - _SHOWN} more values"

    def facts(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {
            "readings": self.readings,
            "combinations": self.combinations,
            "read_as": {name: list(others) for name, others in self.read_as.items()},
        }


def shortcuts(
    theory: Theory | str,
    queries: Iterable[Any] | str | Formula | None = None,
    *,
    inputs: Iterable[Any] | str | None = None,
    seen: Tensor | Sequence[Sequence[int]] | None = None,
    shared: Iterable[Iterable[Any] | str] = (),
    given: Formula | str | None = None,
    groups: bool = True,
    seconds: float | None = 60.0,
) -> Shortcuts:
    r"""Count the readings of inputs that leave every answer right, and warn if there is more than one.

    A network that is trained with these queries alone, on data in which these combinations occur, cannot
    tell such readings apart. Only hard formulae count; each input is read by itself, whatever the others are.

    Parameters
    ----------
    theory, queries, given, groups
        As for a :class:`LogicLayer`. Without queries the answer is whether the theory can be kept.
    inputs
        As for a layer; by default the inputs that ``shared`` names.
    seen
        Shape (combinations, inputs): the combinations of input values that occur, the number of the true atom
        of a group, else true or false. None: all that the theory allows.
    shared
        Lists of inputs that one network reads; every other input has a network of its own.
    seconds
        How long it may take; None: no limit.

    Examples
    --------
    Two digits up to 4 of which the sum is known, but only these sums occur: 0 + 0, 0 + 1, 2 + 3 and 2 + 4.

    >>> digits = [f"exactly(1, {', '.join(f'{name}({i})' for i in range(5))})" for name in "xy"]
    >>> sums = [f"x({i}) & y({j}) -> sum({i + j})" for i in range(5) for j in range(5)]
    >>> total = f"exactly(1, {', '.join(f'sum({i})' for i in range(9))})"
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", RuntimeWarning)
    ...     shortcuts("\n".join([*digits, total, *sums]), "sum(*)", shared=[["x(*)", "y(*)"]],
    ...         seen=[(0, 0), (0, 1), (2, 3), (2, 4)])
    3 readings of the inputs leave every answer right, and one is meant: 2 reasoning shortcuts
    x(2) may be read as x(2), x(3), x(4)
    x(3) may be read as x(1), x(2), x(3)
    x(4) may be read as x(2), x(3), x(4)
    """
    together = [list(_names(each)) for each in shared]
    if inputs is None:
        if not together:
            raise UnfitInputs("expected inputs=, or shared= with all of them, got neither")
        inputs = [name for each in together for name in each]
    budget = Budget.of(seconds)
    layer = AskedLayer(theory, inputs, queries, given, groups, seconds)
    network = _networks(layer, together)
    answers = _answers(layer, budget)
    rows = _seen(layer, seen, answers)
    readings, read_as = _counted(layer, network, answers, rows, budget)
    found = Shortcuts(readings, len(rows), read_as)
    if readings > 1:
        shown = ", ".join(found.confused[:_SHOWN]) + (", ..." if len(found.confused) > _SHOWN else "")
        warnings.warn(
            f"reasoning shortcuts: {readings:,} readings of the inputs leave every answer right, and answers "
            f"alone do not tell which is meant (of {shown}): label some inputs, or ask for more",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


def _names(given: Iterable[Any] | str) -> Iterable[Any]:
    return [given] if isinstance(given, str) else given


def _networks(layer: AskedLayer, together: Sequence[Sequence[Any]]) -> list[int]:
    """Return for each input the first of those that its network reads."""
    place = {frozenset(choice): i for i, choice in enumerate(layer.inputs)}
    groups = [choice for choice in layer.inputs if len(choice) > 1]
    found = list(range(len(layer.inputs)))
    taken: set[int] = set()
    for each in together:
        read = []
        for choice in inputs_of(each, layer.theory, groups):
            if frozenset(choice) not in place:
                raise UnfitInputs(f"expected inputs in shared, got {', '.join(choice[:5])}")
            read.append(place[frozenset(choice)])
        for i in read:
            if i in taken:
                raise UnfitInputs(f"expected each input in one list of shared, got {_shown(layer, i)} twice")
            if len(layer.inputs[i]) != len(layer.inputs[read[0]]):
                raise UnfitInputs(
                    f"expected inputs of as many values to share a network, got {_shown(layer, read[0])} and "
                    f"{_shown(layer, i)}"
                )
            taken.add(i)
            found[i] = read[0]
    return found


def _shown(layer: AskedLayer, place: int) -> str:
    choice = layer.inputs[place]
    return quote(choice[0]) if len(choice) == 1 else f"{quote(choice[0])} and its group"


def _sizes(layer: AskedLayer) -> tuple[int, ...]:
    return tuple([max(2, len(choice)) for choice in layer.inputs])


# --- answers ------------------------------------------------------------------------------------------

_NONE, _SEVERAL = -1, -2  # answers of combinations that have none, or several


def _answers(layer: AskedLayer, budget: Budget) -> Ints:
    """Return the number of the answer to each combination of input values, an axis for each input."""
    sizes = _sizes(layer)
    total = math.prod(sizes)
    if total > MAX_COMBINATIONS:
        raise LimitExceeded(
            f"the inputs have {total:,} combinations of values (limit MAX_COMBINATIONS, "
            f"{MAX_COMBINATIONS:,}): ask about fewer inputs, or about values that stand for many",
            MAX_COMBINATIONS=MAX_COMBINATIONS,
        )
    choices = layer.choices
    names = {name for choice in choices for name in choice}
    program = projected(layer.extended, choices, undetermined(layer.extended, names, budget), budget)
    columns, number = int(program.starts[-1]), len(layer.inputs)
    asked = sorted({place for places, _ in layer.values for place in places})
    kinds: dict[bytes, int] = {}
    found = np.full(total, _NONE, np.int64)
    for begin in range(0, total, _ROWS):
        budget.tick()
        some = np.arange(begin, min(total, begin + _ROWS))
        told = np.full((len(some), len(choices)), -1, np.int64)
        told[:, :number] = np.stack(np.unravel_index(some, sizes), axis=1)
        logits, weights = np.zeros((len(some), columns)), np.zeros(1)
        logs = program.run(logits, weights, told, down=False)[0]
        alive = np.flatnonzero(logs > -np.inf)
        if not len(alive):
            continue
        worlds = program.worlds(logits[alive], weights, told[alive])[0]
        whole = values_of(program.starts, worlds)
        # One answer has all of the sum; of several each has half of it at most.
        one = program.run(logits[alive], weights, whole, down=False)[0]
        for row, values, single in zip(alive, whole, one > logs[alive] - 0.5, strict=True):
            answer = values[asked].tobytes()
            found[some[row]] = kinds.setdefault(answer, len(kinds)) if single else _SEVERAL
    return found.reshape(sizes)


def _seen(layer: AskedLayer, seen: Tensor | Sequence[Sequence[int]] | None, answers: Ints) -> Ints:
    """Return the combinations that occur, each once, and check that each has an answer."""
    if seen is None:
        rows = np.argwhere(answers != _NONE)
    else:
        table = torch.as_tensor(seen)
        told = layer.told_inputs(table, len(table), table.device).cpu().numpy()[:, : len(layer.inputs)]
        if (told < 0).any():
            row = int((told < 0).any(axis=1).argmax())
            raise ValueError(f"expected a value for each input that is seen, got none in row {row}")
        rows = np.unique(told, axis=0)
    here = answers[tuple(rows.T)]
    for kind, what in ((_NONE, "contradicts the theory"), (_SEVERAL, "leaves the answer open")):
        if (here == kind).any():
            values = rows[int((here == kind).argmax())]
            said = ", ".join(_value(choice, v) for choice, v in zip(layer.inputs, values, strict=True))
            raise OpenAnswer(f"expected combinations of input values with one answer, but {said} {what}")
    if not len(rows):
        raise ValueError("expected combinations of input values that occur, got none")
    return rows


def _value(choice: Choice, value: int) -> str:
    """Return the name of a value of an input."""
    if len(choice) > 1:
        return quote(choice[value])
    return quote(choice[0]) if value else f"~{quote(choice[0])}"


# --- counting -----------------------------------------------------------------------------------------


def _counted(
    layer: AskedLayer, network: Sequence[int], answers: Ints, rows: Ints, budget: Budget
) -> tuple[int, dict[str, tuple[str, ...]]]:
    """Return how many readings there are, and what each value may be read as."""
    wanted = answers[tuple(rows.T)]
    kept = np.where(np.isin(answers, wanted), answers, _NONE)
    kept, classes = _told_apart(kept, network)
    variables = sorted({(network[i], int(v)) for row in rows for i, v in enumerate(row)})
    if len(variables) > MAX_VALUES:
        raise LimitExceeded(
            f"{len(variables)} values occur (limit MAX_VALUES, {MAX_VALUES}): ask about fewer inputs",
            MAX_VALUES=MAX_VALUES,
        )
    place = {variable: i for i, variable in enumerate(variables)}
    sizes = [[len(some) for some in classes[net]] for net, _ in variables]
    constraints = _constraints(kept, network, place, rows, wanted, budget)
    counting = _Counting(sizes, constraints, budget)
    start = {i: frozenset(range(len(each))) for i, each in enumerate(sizes)}
    total = counting.count(start, range(len(constraints)))
    read_as = {}
    for (net, value), i in place.items():
        others = sorted(
            other
            for number, some in enumerate(classes[net])
            if value in some or counting.count({**start, i: frozenset([number])}, range(len(constraints)))
            for other in some
        )
        choice = layer.inputs[net]
        read_as[_value(choice, value)] = tuple([_value(choice, other) for other in others])
    return total, read_as


def _told_apart(answers: Ints, network: Sequence[int]) -> tuple[Ints, dict[int, list[list[int]]]]:
    """Return answers with one value for all that no answer tells apart, and the values of each network."""
    classes: dict[int, list[list[int]]] = {}
    for net in sorted(set(network)):
        axes = [i for i, other in enumerate(network) if other == net]
        known: dict[bytes, list[int]] = {}
        for value in range(answers.shape[net]):
            key = b"".join(np.take(answers, value, axis=axis).tobytes() for axis in axes)
            known.setdefault(key, []).append(value)
        classes[net] = list(known.values())
        for axis in axes:
            answers = np.take(answers, [some[0] for some in classes[net]], axis=axis)
    return answers, classes


def _constraints(
    answers: Ints,
    network: Sequence[int],
    place: dict[tuple[int, int], int],
    rows: Ints,
    wanted: Ints,
    budget: Budget,
) -> list[tuple[Scope, Ints]]:
    """Return for each set of variables the values they may have together, shape (tuples, variables)."""
    by_answer = {int(kind): np.argwhere(answers == kind) for kind in np.unique(wanted)}
    found: dict[Scope, set[tuple[int, ...]]] = {}
    made = 0
    for row, kind in zip(rows.tolist(), wanted.tolist(), strict=True):
        budget.tick()
        allowed = by_answer[kind]
        of_input = [place[network[i], v] for i, v in enumerate(row)]
        scope = tuple(sorted(set(of_input)))
        first = [of_input.index(variable) for variable in scope]
        for i, variable in enumerate(of_input):
            allowed = allowed[allowed[:, i] == allowed[:, of_input.index(variable)]]
        made += len(allowed)
        if made > MAX_TUPLES:
            raise LimitExceeded(
                f"more than {MAX_TUPLES:,} combinations have the same answers (limit MAX_TUPLES): ask about "
                "fewer inputs, or about fewer combinations that are seen",
                MAX_TUPLES=MAX_TUPLES,
            )
        tuples = set(map(tuple, allowed[:, first].tolist()))
        found[scope] = found[scope] & tuples if scope in found else tuples
    return [
        (scope, np.array(sorted(tuples), np.int64).reshape(-1, len(scope))) for scope, tuples in found.items()
    ]


Domains = dict[int, frozenset[int]]


class _Counting:
    """Counting solutions: what is forced first, then parts that share no constraint, then by values."""

    def __init__(
        self, sizes: Sequence[Sequence[int]], constraints: Sequence[tuple[Scope, Ints]], budget: Budget
    ) -> None:
        self.sizes, self.constraints, self.budget = sizes, constraints, budget
        self.of: list[list[int]] = [[] for _ in sizes]
        for number, (scope, _) in enumerate(constraints):
            for variable in scope:
                self.of[variable].append(number)
        self.known: dict[object, int] = {}
        self.steps = 0

    def count(self, domains: Domains, fresh: Iterable[int]) -> int:
        """Return how many solutions there are; ``fresh`` are constraints that may force something."""
        left = self.forced(domains, fresh)
        if left is None:
            return 0
        total, open_ = 1, []
        for variable, domain in left.items():
            if len(domain) == 1:
                total *= self.sizes[variable][next(iter(domain))]
            else:
                open_.append(variable)
        for part, numbers in self.parts(left, open_):
            total *= self.part(left, part, numbers)
            if not total:
                break
        return total

    def part(self, domains: Domains, part: Sequence[int], numbers: Sequence[int]) -> int:
        """Return how many solutions some variables have that no constraint ties to others."""
        if not numbers:
            return sum(self.sizes[part[0]][value] for value in domains[part[0]])
        about = {variable for number in numbers for variable in self.constraints[number][0]}
        key = (tuple(sorted(numbers)), tuple((v, domains[v]) for v in sorted(about)))
        found = self.known.get(key)
        if found is not None:
            return found
        # Few values first, and of these what most constraints are about.
        variable = min(part, key=lambda v: (len(domains[v]), -len(self.of[v]), v))
        settled = {v: domains[v] for v in about if len(domains[v]) == 1}
        weight = math.prod(self.sizes[v][next(iter(domain))] for v, domain in settled.items())
        found = 0
        for value in sorted(domains[variable]):
            self.steps += 1
            self.budget.tick()
            if self.steps > MAX_STEPS:
                raise LimitExceeded(
                    f"counting readings took more than {MAX_STEPS:,} steps (limit MAX_STEPS): ask about "
                    "fewer inputs or combinations",
                    MAX_STEPS=MAX_STEPS,
                )
            here = {**{v: domains[v] for v in part}, **settled, variable: frozenset([value])}
            found += self.count(here, [n for n in self.of[variable] if n in set(numbers)]) // weight
        self.known[key] = found
        return found

    def parts(self, domains: Domains, open_: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the variables that are tied together, with the constraints that tie them."""
        waiting = set(open_)
        while waiting:
            first = min(waiting)
            waiting.discard(first)
            part, numbers, stack = [first], set[int](), [first]
            while stack:
                for number in self.of[stack.pop()]:
                    scope = self.constraints[number][0]
                    if number in numbers or any(v not in domains for v in scope):
                        continue
                    others = [v for v in scope if len(domains[v]) > 1]
                    if len(others) < 2:
                        continue  # what it forces was drawn
                    numbers.add(number)
                    new = [v for v in others if v in waiting]
                    waiting.difference_update(new)
                    part += new
                    stack += new
            yield part, sorted(numbers)

    def forced(self, domains: Domains, fresh: Iterable[int]) -> Domains | None:
        """Return domains without values that some constraint forbids; None: nothing is left."""
        found = dict(domains)
        waiting = dict.fromkeys(fresh)
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            scope, tuples = self.constraints[number]
            fits = np.ones(len(tuples), bool)
            for i, variable in enumerate(scope):
                fits &= np.isin(tuples[:, i], list(found[variable]))
            some = tuples[fits]
            if not len(some):
                return None
            for i, variable in enumerate(scope):
                values = frozenset(np.unique(some[:, i]).tolist())
                if len(values) < len(found[variable]):
                    found[variable] = values
                    for other in self.of[variable]:
                        if other != number and all(v in found for v in self.constraints[other][0]):
                            waiting[other] = None
        return found
