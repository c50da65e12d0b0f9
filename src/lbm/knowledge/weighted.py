"""Any theory as weighted clauses, for the formats and solvers that know nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.errors import LimitExceeded, WeightError
from lbm.knowledge.clauses import Clauses, as_clause, definitional
from lbm.knowledge.dimacs import MAX_ATOMS, MAX_WHOLE_WEIGHT
from lbm.knowledge.formula import CARDINALITIES, FALSE, TRUE, Formula, postorder
from lbm.knowledge.numbers import Weight, exact_sum, magnitude
from lbm.knowledge.theory import PackedStatements, Theory

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CELLS: Final = 1_000_000
"""Counter cells, about n·k, that cardinalities may need where there are only clauses."""


@dataclass(frozen=True, slots=True)
class WeightedClauses:
    """A theory as clauses: score(x) = (weights of the soft clauses true in x)/10^scale + offset.

    Attributes
    ----------
    clauses
        The atoms of the theory come first; definitional ones follow.
    weights
        Shape (number of clauses,), from 0 up, 0 for a hard clause; None: all are hard.
    definitional
        How many atoms are definitional. Each is a function of the others, so every world of the
        theory extends to them in exactly one way.
    """

    clauses: Clauses
    weights: NDArray[np.int64] | None = None
    definitional: int = 0
    scale: int = 0
    offset: Weight = 0


def weighted_clauses(theory: Theory) -> WeightedClauses:
    """Return a theory as weighted clauses; clauses stay as they are, in order, definitions follow.

    A weight below zero goes to the negation and leaves an offset: -w: φ is w: ¬φ, less w.
    """
    packed = theory.statements
    if isinstance(packed, PackedStatements):
        return WeightedClauses(packed.clauses, packed.weights)
    scale = _scale(theory)
    place = {name: number for number, name in enumerate(theory.atoms, start=1)}
    parts: list[tuple[Formula, int]] = []
    offsets: list[Weight] = []
    for statement in theory:
        formula, weight = statement.formula, statement.weight
        if weight is None:
            parts.extend((part, 0) for part in conjuncts(formula))
            continue
        if weight < 0:
            offsets.append(weight)
            formula, weight = negated(formula), magnitude(weight)
        if formula is TRUE:
            offsets.append(weight)
        else:
            parts.append((formula, _whole(weight, scale)))

    rows: list[list[int]] = []
    defined: dict[int, Formula] = {}  # row -> the formula it stands for
    for formula, _ in parts:
        clause = [] if formula is FALSE else as_clause(formula)
        if clause is None:
            defined[len(rows)] = formula
        rows.append([place[name] if wanted else -place[name] for name, wanted in clause or ()])
    check_cells(*defined.values())
    definitions, roots, next_free = definitional(list(defined.values()), place, len(place) + 1)
    for row, root in zip(defined, roots, strict=True):
        rows[row] = [root]
    rows += definitions
    if next_free - 1 > MAX_ATOMS:
        raise LimitExceeded(
            f"with definitions there are {next_free - 1} atoms, more than {MAX_ATOMS} (limit MAX_ATOMS)",
            limit="MAX_ATOMS",
            value=MAX_ATOMS,
        )
    clauses = Clauses(
        (*theory.atoms, *_fresh_names(theory.atoms, next_free)),
        np.array([literal for row in rows for literal in row], np.int32),
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
    )
    weights = np.array([weight for _, weight in parts] + [0] * len(definitions), np.int64)
    return WeightedClauses(
        clauses, weights if weights.any() else None, next_free - 1 - len(place), scale, exact_sum(offsets)
    )


def counter_cells(*formulae: Formula) -> int:
    """Return about how many cells the counters of all cardinalities in these formulae have."""
    cells = 0
    for node in postorder(*formulae):
        if node.kind in CARDINALITIES:
            width, bound = len(node.args), min(node.label, len(node.args))
            cells += width * (min(bound, width - bound) + 1)
    return cells


def check_cells(*formulae: Formula) -> None:
    """Refuse cardinalities whose counters would be too large to build."""
    cells = counter_cells(*formulae)
    if cells > MAX_CELLS:
        raise LimitExceeded(
            f"the cardinalities here need about {cells} counter cells, more than {MAX_CELLS} "
            "(limit MAX_CELLS): the .lbm format keeps them as they are",
            limit="MAX_CELLS",
            value=MAX_CELLS,
        )


def _scale(theory: Theory) -> int:
    """Return the least k for which every weight times 10^k is whole."""
    scale = 0
    for statement in theory:
        if isinstance(statement.weight, Decimal):
            divisor = Fraction(statement.weight).denominator
            while 10**scale % divisor:
                scale += 1
    return scale


def _whole(weight: Weight, scale: int) -> int:
    whole = int(Fraction(weight) * 10**scale)
    if whole > MAX_WHOLE_WEIGHT:
        scaled = f"; times 10^{scale}, {weight} is past that" if scale else f", got {weight}"
        raise WeightError(
            f"whole weights go up to {MAX_WHOLE_WEIGHT} (limit MAX_WHOLE_WEIGHT){scaled}: "
            "the .lbm format takes larger ones"
        )
    return whole


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


def _fresh_names(atoms: tuple[str, ...], end: int) -> list[str]:
    """Return names for the variables behind the atoms: x7 for 7, unless an atom is called so."""
    taken, fresh = set(atoms), []
    for number in range(len(atoms) + 1, end):
        name = f"x{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        fresh.append(name)
    return fresh
