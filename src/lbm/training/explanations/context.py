"""What explanations of a row compare it with: columns of the table, background rows, and extracted rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_
from typing import Final

import numpy as np

from lbm.arrays import Floats, Ints
from lbm.errors import nearest
from lbm.knowledge.formula import TRUE, Formula, atom, holds
from lbm.knowledge.parser import Statement
from lbm.training.boltzmann.knowledge import atom_of, known_as
from lbm.training.boltzmann.parameters import Parameters, softmax
from lbm.training.data.columns import Group
from lbm.training.data.names import plain
from lbm.training.data.table import Layout
from lbm.training.explanations.changes import Change, find_change
from lbm.training.explanations.explain import LabelledMachine, as_classifier, complete_rows, literal_text
from lbm.training.explanations.extract import Extraction, Rule, extract_rules
from lbm.training.explanations.shapley import ByColumn, Share, shapley_values

MIXED_ROWS: Final = 2000
"""Rows that rules are extracted from beside the background: each takes its columns from two of its rows."""


@dataclass(frozen=True, eq=False, slots=True)
class TableColumn:
    """A column of the table: its name, its atoms by number and by name, what they are, and can be.

    ``patterns`` are the truth values that its atoms can have, shape (patterns, atoms).
    """

    name: str
    atoms: Ints
    names: tuple[str, ...]
    kind: str
    patterns: Floats

    def also(self, pattern: Floats) -> TableColumn:
        """Return the column with a pattern that it may have, too: none of the categories known, for one."""
        known = (self.patterns == pattern).all(axis=1).any()
        return self if known else replace(self, patterns=np.concatenate([self.patterns, pattern[None]]))

    def said(self, row: Floats) -> str:
        """Return what a row without gaps says of this column, in the words of rules."""
        truth = row[self.atoms] > 0.5
        if self.kind == "category":
            known = truth.any()
            return (
                literal_text(self.names[int(truth.argmax())], True) if known else f"{self.name}: another one"
            )
        if self.kind == "threshold" and all(atom_of(name) for name in self.names):
            first = int(truth.argmax()) if truth.any() else len(truth)  # cuts ascend
            parts: list[Formula] = [~atom(known_as(self.names[first - 1]))] if first else []
            parts += [atom(known_as(self.names[first]))] if first < len(truth) else []
            return str(plain(reduce(and_, parts)))
        return " & ".join(
            literal_text(name, bool(true)) for name, true in zip(self.names, truth, strict=True)
        )


def columns_of(layout: Layout) -> tuple[TableColumn, ...]:
    """Return the columns of a layout that have atoms, in the order of these."""
    names = layout.atoms
    groups: list[Group | None] = [None] * len(layout.plain)
    groups += layout.encoder.groups_ if layout.encoder is not None else []
    found, first = [], 0
    for number, group in enumerate(groups):
        width = 1 if group is None else len(group.atoms)
        name = layout.columns[layout.plain[number]] if group is None else group.column
        atoms = np.arange(first, first + width)
        kind = "boolean" if group is None else group.kind
        # Thresholds ascend, so that they are true from some place on; of categories one is true.
        ascending = np.tri(width + 1, width, -1)[:, ::-1].copy()
        patterns = np.eye(width) if kind == "category" and width > 1 else ascending
        found.append(TableColumn(name, atoms, names[first : first + width], kind, patterns))
        first += width
    return tuple(found)


class Context:
    """What explanations of one model share; all of it is worked out once, when it is first asked for."""

    def __init__(
        self,
        parameters: Parameters,
        layout: Layout,
        background: Floats | None,
        classes: Sequence[object],
        *,
        seed: int = 0,
    ) -> None:
        self.parameters, self.seed = parameters, seed
        self.columns = columns_of(layout)
        self.classes = tuple(map(str, classes))
        self._background = background

    @cached_property
    def model(self) -> LabelledMachine:
        """The machine as a classifier."""
        return as_classifier(self.parameters)

    @cached_property
    def background(self) -> Floats:
        """Background rows, missing values taken as the most likely; none: an error says what to do."""
        if self._background is None or not len(self._background):
            raise ValueError(
                "this model has no background rows, which explanations by column compare with: it was saved "
                "by an older lbm, is knowledge alone, or was fitted with background=0; give some rows, "
                "explain(X, background=rows)"
            )
        return complete_rows(self.model, self._background)[0]

    @property
    def compares(self) -> bool:
        """Whether there are background rows."""
        return self._background is not None and len(self._background) > 0

    @cached_property
    def extraction(self) -> Extraction:
        """Rules that stand for the machine on rows like those of the background."""
        rows = None
        if self.compares:
            random, known = np.random.default_rng(self.seed), self.background
            one, two = random.integers(len(known), size=(2, MIXED_ROWS))
            mixed = known[one]
            for column in self.columns:
                taken = np.flatnonzero(random.random(MIXED_ROWS) < 0.5)
                mixed[taken[:, None], column.atoms] = known[two[taken][:, None], column.atoms]
            rows = np.concatenate([known, mixed])
        return extract_rules(self.parameters, rows, seed=self.seed)

    # -- one row --

    def probabilities(self, row: Floats) -> Floats:
        """Return p(k | x) of a row without gaps, shape (classes,)."""
        return np.asarray(softmax(self.parameters.scores(row[None]))[0])

    def by_column(self, row: Floats, kind: int, other: int) -> ByColumn:
        """Return what each column adds to the log-odds of a row without gaps."""
        atoms = [column.atoms for column in self.columns]
        average, values, errors = shapley_values(
            self.parameters, row, self.background, atoms, (kind, other), seed=self.seed
        )
        scores = self.parameters.scores(row[None])[0]
        order = np.argsort(-abs(values), kind="stable").tolist()
        names = self.names
        return ByColumn(
            kind=names[kind],
            other=names[other],
            log_odds=float(scores[kind] - scores[other]),
            average=average,
            shares=tuple(
                Share(self.columns[c].name, self.columns[c].said(row), float(values[c]), float(errors[c]))
                for c in order
            ),
            rows=len(self.background),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What classes are called."""
        return self.classes or self.model.class_names()

    def world(self, row: Floats) -> dict[str, bool]:
        """Return a row as the truth of its atoms, as formulae call them."""
        truth = (row > 0.5).tolist()
        return {known_as(name): true for name, true in zip(self.model.columns, truth, strict=True)}

    def rules(self, row: Floats) -> tuple[Rule, ...]:
        """Return the extracted rules whose bodies are true in a row, the heaviest first."""
        world = self.world(row)
        found = self.extraction
        said = zip(found.rules, found.theory, strict=False)  # a theory may end with "exactly one label"
        fired = [rule for rule, statement in said if holds(body_of(statement), world)]
        return tuple(sorted(fired, key=lambda rule: -rule.weight))

    def change(self, row: Floats, kind: int, other: int, keep: Sequence[str]) -> Change:
        """Return the fewest columns that would have to be otherwise for the other class."""
        known = sorted(column.name for column in self.columns)
        for name in keep:
            if name not in known:
                near = nearest(name, known)
                hint = f"; did you mean {near!r}?" if near else f": expected some of {', '.join(known[:10])}"
                raise ValueError(f"keep= names {name!r}, which is no column that this model uses{hint}")
        return find_change(self, row, kind, other, frozenset(keep))


def body_of(statement: Statement) -> Formula:
    """Return what an extracted rule, body -> literal or a literal alone, asks of a row."""
    formula = statement.formula
    return formula.args[0] if formula.kind == "implies" else TRUE
