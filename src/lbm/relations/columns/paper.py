"""The paper's columns: one for each literal of the bottom clauses, true where the text occurs.

Bottom clause propositionalisation [França, Zaverucha & d'Avila Garcez 2014]. A column does not ask whether
its literal can be proved: B in one clause and B in another are different terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lbm.arrays import Bools
from lbm.relations.prolog.terms import Term
from lbm.relations.saturate import Saturation


def bodies(saturation: Saturation, examples: Iterable[Term]) -> list[tuple[str, ...]]:
    """Return the body literals of each example's bottom clause."""
    examples = list(examples)
    # The label is only carried along.
    known = {example: saturation.clause(example, True).body for example in dict.fromkeys(examples)}
    return [known[example] for example in examples]


def literals(found: Iterable[Sequence[str]]) -> list[str]:
    """Return every literal of some bodies, once, in order of first appearance."""
    return list(dict.fromkeys(literal for body in found for literal in body))


def occurrences(found: Sequence[Sequence[str]], names: Sequence[str]) -> Bools:
    """Return which literals occur in which bodies, shape (bodies, names)."""
    place = {name: k for k, name in enumerate(names)}
    table = np.zeros((len(found), len(names)), dtype=bool)
    for row, body in enumerate(found):
        table[row, [place[literal] for literal in body if literal in place]] = True
    return table
