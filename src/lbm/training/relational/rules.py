"""Rules over relations beside a table: both score examples, and training examples say how they are mixed.

    log-odds = (1 - w)·table + w·rules

The labels of training examples are the evidence of the rules, the examples of the fold their queries; w is
chosen on training examples that the table and the rules had to do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Floats, Ints
from lbm.errors import NoWorlds
from lbm.knowledge.formula import atom_name
from lbm.knowledge.packed import read_lines
from lbm.knowledge.theory import Theory
from lbm.relations.evidence import choose_weight, ground, log_odds, marginals, mix, prepare
from lbm.relations.evidence.residual import GroundRules
from lbm.relations.evidence.weights import WEIGHTS
from lbm.relations.model import SWEEPS, mix_odds
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.terms import write
from lbm.training.learners.estimator import read_knowledge

CHOOSING: Final = 128
"""Sweeps of each chain where labels are soft, to choose their weight."""


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Rules grounded over a problem's constants, made ready, and its examples' names as they have them.

    ``text`` is what they were read from, or the ground rules.

    Where a method takes a ``weight``, it is that of each label as evidence; None: labels are hard.
    """

    ready: GroundRules
    names: tuple[str, ...]
    labels: tuple[bool, ...]
    text: str = ""

    def trust(self, train: Ints) -> float | None:
        """Return the weight of labels: none, they are hard, where some world keeps them all.

        Else it is the one under which labels held out are likeliest, given the others.
        """
        evidence = self._evidence(train)
        try:
            marginals(self.ready, evidence, [])
        except NoWorlds:
            soft = [weight for weight in WEIGHTS if weight is not None]
            return choose_weight(self.ready, evidence, weights=soft, sweeps=CHOOSING, seed=0).weight
        return None

    def log_odds(self, known: Ints, asked: Ints, weight: float | None) -> Floats:
        """Return the log-odds of examples given the labels of others; both are numbers of examples."""
        queries = [self.names[k] for k in asked.tolist()]
        distinct = list(dict.fromkeys(queries))
        sweeps = None if weight is None else SWEEPS
        evidence = self._evidence(known)
        found = marginals(self.ready, evidence, distinct, weight=weight, sweeps=sweeps, seed=0)
        return log_odds([found[name] for name in queries])

    def _evidence(self, known: Ints) -> dict[str, bool]:
        return {self.names[k]: self.labels[k] for k in known.tolist()}

    def share(self, train: Ints, held: Floats, folds: NDArray[np.str_], weight: float | None) -> float:
        """Return w, from the table's log-odds of training examples held out; NaN where there are none."""
        judged = ~np.isnan(held)
        if not judged.any():
            return 0.5
        rules = np.zeros(len(train))
        for name in sorted(set(folds[train[judged]].tolist())):
            part = judged & (folds[train] == name)
            rules[part] = self.log_odds(train[folds[train] != name], train[part], weight)
        labels = np.array(self.labels)[train]
        return mix(held[judged], rules[judged], labels[judged])

    def mixed(self, table: Floats, train: Ints, asked: Ints, share: float, weight: float | None) -> Floats:
        """Return the mixture for examples that were not trained on."""
        if not share:
            return table
        return mix_odds(table, self.log_odds(train, asked, weight), share)


def read_rules(
    knowledge: Theory | str | Path | None, problem: RelationalProblem
) -> tuple[Rules | None, Theory | None]:
    """Return knowledge as rules over relations or as a theory over columns, whichever it is.

    It is about relations if, grounded over the constants of the examples, it names the target with its
    arguments; a theory over columns calls it by its bare name.
    """
    if knowledge is None:
        return None, None
    names = tuple(atom_name(write(example)) for example in problem.examples)
    target, arity = problem.target
    if isinstance(knowledge, Theory) and not _names_target(knowledge.atoms, target):
        return None, knowledge
    theory = ground(knowledge, list(dict.fromkeys(names)))
    if arity and _names_target(theory.atoms, target):
        text = str(theory)
        if not isinstance(knowledge, Theory):
            text = knowledge if isinstance(knowledge, str) else read_lines(knowledge)
        return Rules(prepare(theory), names, problem.labels, text), None
    return None, read_knowledge(knowledge)


def _names_target(atoms: Sequence[str], target: str) -> bool:
    return any(name.startswith(f"{target}(") for name in atoms)
