"""Cubes that data brought: a weight for every bin of every column, as units like those of rules.

A bin of a column is a cube of one or two literals, ``x <= 30`` or ``~(x <= 30) & x <= 40``, and a machine
that is a sum over columns is a strict DNF of such cubes: the unit of ``bin & y`` adds its weight where
both are true and next to nothing elsewhere. They stand behind the formulae that were given, each a rule
``bin -> y`` or ``bin -> ~y``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

import numpy as np
from scipy.sparse import csc_array

from lbm.arrays import Floats, Ints
from lbm.knowledge.formula import atom, conjunction
from lbm.knowledge.parser import Statement
from lbm.training.boltzmann.facts import Groups, facts_of
from lbm.training.boltzmann.knowledge import Knowledge, Numbers, atom_of

DIGITS: Final = 4
"""Digits of a weight; what is less than LEAST is left out."""

LEAST: Final = 1e-4

Cube = tuple[Numbers, int, float]
"""A body over columns, a head, a literal of a label atom, both as numbers of visible units; and a weight."""


def cubes_of(weights: Floats, means: Floats, groups: Groups, columns: int) -> tuple[list[Cube], Floats]:
    """Return the cubes whose weights are Σ_i weights_il (x_i - means_i), and what label biases get beside.

    ``weights`` has the shape (columns, labels). A column of numbers has a cube for each bin, a column of
    categories one for each category, and a column of 0 and 1 one, where it is true.
    """
    found: list[Cube] = []
    bias = np.zeros(weights.shape[1])
    for places, patterns in facts_of(range(columns), groups):
        said = (patterns - means[places]) @ weights[places]  # (patterns, labels)
        several = patterns.sum(axis=1).max() > 1  # thresholds, of which several are true at once
        if not several and (len(places) == 1 or means[places].sum() < 1 - 1e-9):
            rest = int(patterns.sum(axis=1).argmin())  # no atom is true: what the others are compared with
            bias += said[rest]
            said = said - said[rest]
        for pattern, values in zip(patterns, said.tolist(), strict=True):
            body = _bin(places, pattern) if several else tuple((places[pattern > 0] + 1).tolist())
            for label, value in enumerate(values):
                if body and abs(value) >= LEAST:
                    found.append((body, (columns + label + 1) * (1 if value > 0 else -1), abs(value)))
    return found, bias


def _bin(places: Ints, pattern: Floats) -> Numbers:
    """Return the one or two literals that tell this bin of thresholds from the others."""
    first = len(places) - int(pattern.sum())
    below = [-(int(places[first - 1]) + 1)] if first else []
    return tuple(below if first == len(places) else [*below, int(places[first]) + 1])


def with_cubes(knowledge: Knowledge, cubes: Sequence[Cube]) -> Knowledge:
    """Return knowledge with these cubes behind its own; formulae ``body -> head`` say what they are."""
    if not cubes:
        return knowledge
    atoms = [atom(atom_of(name) or repr(name)) for name in (*knowledge.columns, *knowledge.labels)]
    statements, weights = [], []
    for body, head, value in cubes:
        weight = Decimal(f"{value:.{DIGITS}g}")
        body_literals = [atoms[n - 1] if n > 0 else ~atoms[-n - 1] for n in body]
        said = atoms[head - 1] if head > 0 else ~atoms[-head - 1]
        statements.append(Statement(conjunction(body_literals) >> said, weight))
        weights.append(float(weight))
    rows = [sorted((*body, head), key=abs) for body, head, _ in cubes]
    signs, size = knowledge.signs, len(cubes)
    literals = np.array([literal for row in rows for literal in row], dtype=np.int64)
    ends = signs.indptr[-1] + np.cumsum([len(row) for row in rows])
    units = knowledge.units + np.arange(size)
    return replace(
        knowledge,
        signs=csc_array(
            (
                np.concatenate([signs.data, np.sign(literals).astype(np.int8)]),
                np.concatenate([signs.indices, np.abs(literals) - 1]),
                np.concatenate([signs.indptr, ends]),
            ),
            shape=(signs.shape[0], knowledge.units + size),
        ),
        positive=np.concatenate([knowledge.positive, [sum(n > 0 for n in row) for row in rows]]),
        owner=np.concatenate([knowledge.owner, len(knowledge.initial) + np.arange(size)]),
        unit=np.concatenate([knowledge.unit, units]),
        initial=np.concatenate([knowledge.initial, weights]),
        fixed=np.concatenate([knowledge.fixed, np.zeros(size, dtype=bool)]),
        statements=(*knowledge.statements, *statements),
        calibrated=True,
        learned=knowledge.learned + size,
    )
