"""Any theory as weighted clauses, for the formats and solvers that know nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count
from math import lcm
from typing import Final

from lbm.errors import LimitExceeded, WeightError
from lbm.knowledge.clauses import Clauses, OnStep, as_clause, definitional
from lbm.knowledge.dimacs import MAX_ATOMS, MAX_WHOLE_WEIGHT
from lbm.knowledge.formula import CARDINALITIES, FALSE, TRUE, Formula, postorder
from lbm.knowledge.numbers import Weight, exact_sum, magnitude, whole
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory

MAX_CELLS: Final = 1_000_000
"""Counter cells, about n·k, that cardinalities may need where there are only clauses."""


def weighted_clauses(theory: Theory) -> Clauses:
    """Return a theory as weighted clauses; clauses stay as they are, in order, definitions follow.

    A weight below zero goes to the negation and leaves an offset: -w: φ is w: ¬φ, less w.
    """
    if theory.clauses is not None:
        for weight in theory.weights if theory.clauses.weights.dtype == object else ():
            _checked(weight or 1, theory.clauses.digits)
        return theory.clauses
    digits = _digits(theory)
    found = clausal(theory.atoms, parts_of(theory, lambda weight: _checked(weight, digits)))
    if found.variables > MAX_ATOMS:
        raise LimitExceeded(
            f"with definitions there are {found.variables} atoms, more than {MAX_ATOMS} (limit MAX_ATOMS)",
            MAX_ATOMS=MAX_ATOMS,
        )
    offsets = [s.weight for s in theory if s.weight is not None and s.weight < 0]
    offsets += [magnitude(s.weight) for s in theory if s.weight is not None and _wanted(s) is TRUE]
    return replace(found, digits=digits, offset=exact_sum(offsets))


def parts_of(theory: Theory, measure: Callable[[Weight], int]) -> Iterator[tuple[Formula, int]]:
    """Yield formulae that say what a theory says, with whole weights by ``measure``, or 0 for a hard one.

    Hard conjunctions are taken apart, a formula of negative weight is negated, and one that is true in every
    world is left out.
    """
    for statement in theory:
        if statement.weight is None:
            yield from ((part, 0) for part in conjuncts(statement.formula))
        elif (formula := _wanted(statement)) is not TRUE:
            yield formula, measure(magnitude(statement.weight))


def _wanted(statement: Statement) -> Formula:
    """Return what a soft statement wants true: one of negative weight wants its negation."""
    negative = statement.weight is not None and statement.weight < 0
    return negated(statement.formula) if negative else statement.formula


def clausal(
    atoms: tuple[str, ...],
    parts: Iterable[tuple[Formula, int]],
    *,
    batch: int | None = None,
    on_step: Callable[[int], OnStep | None] = lambda _: None,
) -> Clauses:
    """Return formulae with whole weights as clauses, in order; those that are none are defined behind them.

    Parameters
    ----------
    parts
        Formulae and their weights, 0 for a hard one.
    batch
        How many formulae are defined together, and so share the definitions of their parts; None: all.
    on_step
        Called with the number of cells of the counters to come; what it returns is called now and then.
    """
    place = {name: number for number, name in enumerate(atoms, start=1)}
    rows: list[list[int]] = []
    weights: list[int] = []
    deep: dict[int, Formula] = {}  # row -> the formula it stands for
    for formula, weight in parts:
        clause = [] if formula is FALSE else as_clause(formula)
        if clause is None:
            deep[len(rows)] = formula
        rows.append([place[name] if wanted else -place[name] for name, wanted in clause or ()])
        weights.append(weight)
    look = on_step(check_cells(*deep.values()))
    numbers, free = list(deep), len(place) + 1
    batch = batch or max(1, len(numbers))
    for begin in range(0, len(numbers), batch):
        some = numbers[begin : begin + batch]
        definitions, roots, free = definitional([deep[row] for row in some], place, free, look)
        for row, root in zip(some, roots, strict=True):
            rows[row] = [root]
        rows += definitions
    weights += [0] * (len(rows) - len(weights))
    return Clauses.of(rows, weights, atoms=atoms, variables=free - 1)


def counter_cells(*formulae: Formula) -> int:
    """Return about how many cells the counters of all cardinalities in these formulae have."""
    cells = 0
    for node in postorder(*formulae):
        if node.kind in CARDINALITIES:
            width, bound = len(node.args), min(node.label, len(node.args))
            cells += width * (min(bound, width - bound) + 1)
    return cells


def check_cells(*formulae: Formula) -> int:
    """Return how many cells the counters of all cardinalities have; refuse those too large to build."""
    cells = counter_cells(*formulae)
    if cells > MAX_CELLS:
        raise LimitExceeded(
            f"the cardinalities here need about {cells} counter cells, more than {MAX_CELLS} "
            "(limit MAX_CELLS): the .lbm format keeps them as they are",
            MAX_CELLS=MAX_CELLS,
        )
    return cells


def _digits(theory: Theory) -> int:
    """Return the least k for which every weight times 10^k is whole."""
    divisor = lcm(*(Fraction(weight).denominator for weight in theory.weights if weight is not None))
    return next(digits for digits in count() if not 10**digits % divisor)


def _checked(weight: Weight, digits: int) -> int:
    """Return a weight times 10^digits; raise WeightError if it is past 64 bits."""
    found = whole(weight, digits)
    if found > MAX_WHOLE_WEIGHT:
        scaled = f"; times 10^{digits}, {weight} is past that" if digits else f", got {weight}"
        raise WeightError(
            f"whole weights go up to {MAX_WHOLE_WEIGHT} (limit MAX_WHOLE_WEIGHT){scaled}: "
            "the .lbm format takes larger ones"
        )
    return found


def conjuncts(formula: Formula) -> list[Formula]:
    """Return the parts of a hard conjunction, each once: they say the same and need no definition."""
    parts: dict[Formula, None] = {}
    seen: set[Formula] = set()
    stack = [formula]
    while stack:
        node = stack.pop()
        if node.kind != "and":
            parts.setdefault(node)
        elif node not in seen:
            seen.add(node)
            stack += reversed(node.args)
    parts.pop(TRUE, None)
    return list(parts)


def negated(formula: Formula) -> Formula:
    """Return what is true where a formula is false, without a double negation."""
    if formula is TRUE or formula is FALSE:
        return FALSE if formula is TRUE else TRUE
    return formula.args[0] if formula.kind == "not" else ~formula
