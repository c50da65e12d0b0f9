"""A theory in compiled form (knowledge compilation): its components made ready once.

Rows of evidence say what was seen of atoms: false, true, nothing, or a probability. That is soft evidence
(virtual evidence, Pearl): worlds in which the atom is true are multiplied by p, the others by 1 - p. Of the
atoms of a group, of which exactly one is true, the true one counts alone, if something was seen of it.
Evidence, temperature and soft weights are numbers that enter a pass; none makes anything be compiled again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lbm.arrays import Floats
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, Split, exponent
from lbm.reasoning.exact.circuits import ByCircuit
from lbm.reasoning.exact.tables import Tables
from lbm.reasoning.exact.variables import groups_of
from lbm.reasoning.exact.whole import compiled


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """What was seen of atoms, a row each time: 0, 1, a probability, or nan for nothing.

    ``values`` has shape (rows, names).
    """

    names: tuple[str, ...]
    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    def weights(self, groups: Sequence[Sequence[str]]) -> dict[str, Floats]:
        """Return what worlds are multiplied by where an atom is false and true, shape (rows, 2) for each.

        In a group: p where an atom that something was seen of is true, and else (1 - p)·(1 - p')··· of all
        that something was seen of.
        """
        place = {name: i for i, name in enumerate(self.names)}
        found: dict[str, Floats] = {}
        for group in groups:
            if not any(name in place for name in group):
                continue
            nothing = np.full(len(self), np.nan)
            seen = np.stack([self.values[:, place[n]] if n in place else nothing for n in group], axis=1)
            known = ~np.isnan(seen)
            others = np.prod(np.where(known, 1.0 - seen, 1.0), axis=1)
            true = np.where(known, seen, others[:, None])
            for i, name in enumerate(group):
                found[name] = np.stack([np.ones(len(self)), true[:, i]], axis=1)
        for name, i in place.items():
            if name not in found:
                true = self.values[:, i]
                unknown = np.isnan(true)
                pair = np.stack([1.0 - true, true], axis=1)
                pair[unknown] = 1.0
                found[name] = pair
        return found


class CompiledForm:
    """A theory, taken apart, its components ready for passes; ``groups`` are those of the whole theory."""

    def __init__(self, split: Split, budget: Budget, groups: Sequence[Sequence[str]] | None = None) -> None:
        self.split = split
        self.parts: list[Tables | ByCircuit] = [ready(component, budget) for component in split.components]
        if groups is None:
            groups = [group for component in split.components for group in groups_of(component)]
        self.groups = groups

    def log_sums(self, rows: EvidenceRows, temperature: float = 1.0) -> Floats:
        """Return log Z of each row, Z = Σ (weight of what was seen)·exp(score(x)/τ); -inf: no world."""
        weights = rows.weights(self.groups)
        score, logs = self._outside(weights, len(rows))
        for component, part in zip(self.split.components, self.parts, strict=True):
            offset, more = part.log_sums(self.split.scale, temperature, _some(weights, component))
            score += offset
            logs = logs + more
        return logs + exponent(score, self.split.scale, temperature)

    def marginals(self, rows: EvidenceRows, temperature: float = 1.0) -> tuple[Floats, Floats]:
        """Return log Z of each row, and P(atom | row), shape (rows, atoms); nan where no world is left."""
        weights = rows.weights(self.groups)
        score, logs = self._outside(weights, len(rows))
        chances = dict[str, Floats]()
        for name, value in self.split.fixed.items():
            chances[name] = np.full(len(rows), float(value))
        for name in self.split.free:
            pair = weights.get(name, np.ones((1, 2)))
            with np.errstate(invalid="ignore"):
                chances[name] = np.broadcast_to(pair[:, 1] / pair.sum(axis=1), len(rows))
        for component, part in zip(self.split.components, self.parts, strict=True):
            offset, more, found = part.all_marginals(self.split.scale, temperature, _some(weights, component))
            score += offset
            logs = logs + more
            for i, name in enumerate(component.atoms):
                chances[name] = np.broadcast_to(found[:, i], len(rows))
        logs = logs + exponent(score, self.split.scale, temperature)
        table = np.stack([chances[name] for name in self.split.atoms], axis=1)
        table[np.isneginf(logs)] = np.nan
        return logs, table

    def _outside(self, weights: Mapping[str, Floats], rows: int) -> tuple[int, Floats]:
        """Return what settled formulae score, and log Z of the atoms outside all components."""
        logs = np.zeros(rows)
        with np.errstate(divide="ignore"):
            for name, value in self.split.fixed.items():
                if name in weights:
                    logs = logs + np.log(weights[name][:, int(value)])
            for name in self.split.free:
                logs = logs + (np.log(weights[name].sum(axis=1)) if name in weights else math.log(2))
        return self.split.score, logs


def ready(component: Component, budget: Budget) -> Tables | ByCircuit:
    """Return what answers questions about a component in passes."""
    return compiled(component, None, budget)


def _some(weights: Mapping[str, Floats], component: Component) -> dict[str, Floats]:
    return {name: weights[name] for name in component.atoms if name in weights}
