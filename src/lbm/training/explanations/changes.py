"""What would have to change for another class: found by `best` on extracted rules, confirmed by the machine.

Of a class l against the class k that is predicted, rule r counts v_r [body r] (head r in l - head r in k).
For 1, 2, 3, ... columns the best world is asked for in which at most so many columns differ from the row, and
rules speak for l as much as they can. It counts only where the machine, asked for that row, predicts l; then
columns are moved back as far as the machine still predicts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lbm.arrays import Floats
from lbm.knowledge.formula import Formula, atmost, atom, atoms_of, conjunction, exactly
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import known_as

if TYPE_CHECKING:
    from lbm.training.explanations.context import Context, TableColumn

SIZES: Final = (1, 2, 3, 5, 8)
"""How many columns may change, one after the other; then all that rules speak of."""

TRIES: Final = 3
"""Changes of so many columns that the machine is asked about; those it does not confirm are set aside."""

SECONDS: Final = 2.0
"""Time for one question of `best`."""

SMALL: Final = Decimal("0.001")
"""What an atom that stays as it is counts: of changes that are as good, the smaller one is taken."""


@dataclass(frozen=True, slots=True)
class Step:
    """A column, what the row says there, and what it would have to say."""

    column: str
    now: str
    then: str

    def __str__(self) -> str:
        return f"{self.then} instead of {self.now}"


@dataclass(frozen=True, slots=True)
class Change:
    """What would have to be otherwise for a row to be in another class.

    Attributes
    ----------
    kind, other
        The class that is predicted, and the one that would be.
    steps
        The columns that change; none: no change was found.
    probability
        What the model gives ``other`` after the change.
    columns
        How many columns were allowed to change.
    kept
        Columns that were not allowed to change.
    """

    kind: str
    other: str
    steps: tuple[Step, ...]
    probability: float
    columns: int
    kept: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is a change that the model confirms."""
        return bool(self.steps)

    def __str__(self) -> str:
        if self.found:
            said = ", and ".join(map(str, self.steps))
            return f"{self.other} instead of {self.kind} with {said} (p = {self.probability:.3f})"
        if not self.columns:
            return f"no change to {self.other}: the rules speak of no column that may change"
        kept = f" while {', '.join(self.kept[:3])}{' ...' if self.kept[3:] else ''} stay" if self.kept else ""
        return f"no change to {self.other}: the model confirms none of those that the rules suggest{kept}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {**asdict(self), "found": self.found}


def find_change(context: Context, row: Floats, kind: int, other: int, keep: frozenset[str]) -> Change:
    """Return the fewest columns of a row without gaps that would have to be otherwise for class ``other``."""
    names, soft = context.names, list(_speaking(context, kind, other))
    mentioned = set(atoms_of(*(formula for _, formula in soft)))
    columns = [
        column.also(row[column.atoms])
        for column in context.columns
        if column.name not in keep and mentioned.intersection(map(known_as, column.names))
    ]
    sizes = sorted({*(size for size in SIZES if size < len(columns)), len(columns)} - {0})
    for size in sizes:
        for found in _worlds(context, row, soft, columns, size):
            if context.probabilities(found).argmax() == other:
                world = _smaller(context, row, found, columns, other)
                steps = [
                    Step(column.name, column.said(row), column.said(world))
                    for column in columns
                    if _differs(column, row, world)
                ]
                p = float(context.probabilities(world)[other])
                return Change(names[kind], names[other], tuple(steps), p, size, tuple(sorted(keep)))
    return Change(names[kind], names[other], (), 0.0, len(columns), tuple(sorted(keep)))


def _differs(column: TableColumn, row: Floats, world: Floats) -> bool:
    return bool((row[column.atoms] != world[column.atoms]).any())


def _speaking(context: Context, kind: int, other: int) -> Iterator[tuple[Decimal, Formula]]:
    """Yield what rules count for the other class, as weights above 0 and formulae over columns."""
    patterns, labels = context.model.patterns, list(map(known_as, context.model.label_atoms))
    for statement in context.extraction.theory:
        if statement.weight is None:
            continue
        formula = statement.formula
        if formula.kind != "implies":
            continue  # it counts in every row
        body, head = formula.args
        bare = head.args[0] if head.kind == "not" else head
        place = labels.index(bare.label)
        sign = float(patterns[other, place] - patterns[kind, place]) * (1 if bare is head else -1)
        if sign:
            yield Decimal(str(statement.weight)), body if sign > 0 else ~body


def _worlds(
    context: Context, row: Floats, soft: list[tuple[Decimal, Formula]], columns: list[TableColumn], size: int
) -> Iterator[Floats]:
    """Yield the best rows in which at most ``size`` of these columns differ, the best first."""
    from lbm.reasoning.reasoner import best

    now = context.world(row)
    mentioned = atoms_of(*(formula for _, formula in soft))
    hard: list[Formula] = []
    marks: list[Formula] = []
    spoken: list[
        tuple[TableColumn, list[int]]
    ] = []  # each column, and its atoms that rules mention, by place
    own: set[str] = set()
    for column in columns:
        names = list(map(known_as, column.names))
        places = [i for i, name in enumerate(names) if name in mentioned]
        spoken.append((column, places))
        own.update(names[i] for i in places)
        name = f"changed: {column.name}"
        while name in now:
            name += "'"
        marks.append(atom(known_as(name)))
        atoms = [atom(names[i]) for i in places]
        hard += [(~one if now[names[i]] else one) >> marks[-1] for i, one in zip(places, atoms, strict=True)]
        if column.kind == "category":
            one = len(places) == len(names) and column.patterns.any(axis=1).all()
            hard.append((exactly if one else atmost)(1, *atoms))
        hard += [low >> high for low, high in pairwise(atoms)] if column.kind == "threshold" else []
    hard.append(atmost(size, *marks))
    hard += [_literal(name, now[name]) for name in mentioned if name not in own]
    weighed = [*soft, *((SMALL, _literal(name, now[name])) for name in sorted(own))]
    for _ in range(TRIES):
        statements = [*map(Statement, hard), *(Statement(formula, weight) for weight, formula in weighed)]
        found = best(Theory(statements), seconds=SECONDS, seed=context.seed).world
        world, literals = row.copy(), []
        for column, places in spoken:
            wanted = np.array([found[known_as(column.names[i])] for i in places], dtype=np.float64)
            if (wanted == row[column.atoms[places]]).all():
                continue
            fitting = column.patterns[(column.patterns[:, places] == wanted).all(axis=1)]
            world[column.atoms] = fitting[abs(fitting - row[column.atoms]).sum(axis=1).argmin()]
            literals += [
                _literal(known_as(column.names[i]), found[known_as(column.names[i])]) for i in places
            ]
        if not literals:
            return
        yield world
        hard.append(~conjunction(literals))


def _literal(name: str, truth: bool) -> Formula:
    return atom(name) if truth else ~atom(name)


def _smaller(context: Context, row: Floats, world: Floats, columns: list[TableColumn], other: int) -> Floats:
    """Return the world with columns moved back, one by one, as far as the machine still confirms it."""
    for column in columns:
        if not _differs(column, row, world):
            continue
        now, then = row[column.atoms], world[column.atoms]
        far = abs(then - now).sum()
        ways = column.patterns[abs(column.patterns - now).sum(axis=1) < far]
        if column.kind == "category":
            ways = now[None]
        elif column.kind == "threshold":  # between the two
            low, high = sorted((now.sum(), then.sum()))
            ways = ways[(ways.sum(axis=1) >= low) & (ways.sum(axis=1) <= high)]
        for way in ways[np.argsort(abs(ways - now).sum(axis=1), kind="stable")]:
            tried = world.copy()
            tried[column.atoms] = way
            if context.probabilities(tried).argmax() == other:
                world = tried
                break
    return world
