"""Aleph itself in the learning table, where it is installed: rules of training folds, asked of another one.

Settings are fixed beforehand, so that nothing is chosen. Those of the drugs are in the files of the authors
of CILP++; theirs of the other sets are not public, and what stands here instead is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.errors import FileError
from lbm.relations.aleph import aleph_rules, find_aleph
from lbm.relations.modes import read_modes
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Term
from lbm.trials.learners.relational import fold_of_examples, is_order, problem_named

if TYPE_CHECKING:
    from lbm.training.relational.scores import Scores

ALEPH: Final = "Aleph"
LIMIT: Final = 600.0
"""Seconds for a fold."""

LIMIT_MADE: Final = 20.0
"""Seconds for a fold of a set that the package makes."""

DRUGS: Final[Mapping[str, Term]] = {
    "i": 3,
    "minpos": 2,
    "minacc": 0.7,
    "minscore": 0.6,
    "clauselength": 5,
    "evalfn": "auto_m",
    "noise": 300,
    "nodes": 5000,
}

EQUAL: Final = "\n".join(
    f":- modeb(1, (+{kind}{one}) = (+{kind}{other})). :- determination(illegal/6, (=)/2)."
    for kind in ("col", "row")
    for one, other in (("wk", "wr"), ("wk", "bk"), ("wr", "bk"))
)
"""What else clauses about chess may say: that two pieces stand in one column or row, which the published
Aleph could say as well."""


@dataclass(frozen=True, slots=True)
class AlephFold:
    """One fold: ``scores`` is None where time ran out; ``rules`` is how many there are."""

    scores: Scores | None
    examples: int
    rules: int


def has_aleph() -> bool:
    """Return whether Aleph is installed."""
    try:
        find_aleph()
    except FileError:
        return False
    return True


def aleph_fold(name: str, fold: str, *, seconds: float) -> AlephFold:
    """Return how Aleph's rules of the other folds do on one fold of a set."""
    from lbm.training.relational.scores import score

    problem, settings = aleph_problem(name)
    test = fold_of_examples(problem) == fold
    every = list(zip(problem.examples, problem.labels, test.tolist(), strict=True))
    trained = replace(
        problem,
        positive=tuple(example for example, label, held in every if label and not held),
        negative=tuple(example for example, label, held in every if not label and not held),
        folds=None,
    )
    asked = [example for example, _, held in every if held]
    found = aleph_rules(trained, asked, settings=settings, seconds=seconds)
    if found.ended == "time-out":
        return AlephFold(None, len(asked), 0)
    odds = np.where(found.said, 1.0, -1.0)
    return AlephFold(score(odds, np.array(problem.labels)[test]), len(asked), len(found.rules))


def aleph_problem(name: str) -> tuple[RelationalProblem, Mapping[str, Term]]:
    """Return a set as Aleph is given it, and its settings where they are not the usual ones."""
    problem = problem_named(name)
    if name != "krk":
        return problem, DRUGS if is_order(name) and name != "order" else {}
    more, _ = read_modes(read_clauses(EQUAL, source="chess"))
    modes = replace(
        problem.modes,
        body=problem.modes.body + more.body,
        determinations=problem.modes.determinations + more.determinations,
    )
    return replace(problem, modes=modes), {"noise": 0}  # its labels follow the rules of chess without fail
