"""Our best machine on a relational problem, fold by fold, and the same with labels flipped in training.

Nothing of a test fold is seen before it is scored: columns, settings and the share of rules over relations
come from training folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from lbm.datasets import family, krk_relations
from lbm.knowledge.formula import atom_name
from lbm.knowledge.theory import Theory
from lbm.relations.evidence.rules import ground
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Term, arguments, write
from lbm.trials.learners.sets import data_directory, data_problem

if TYPE_CHECKING:
    from lbm.training.relational.induce import Tested

ORDER: Final = """\
domain object = {}
forall X, Y in object: ~(ex(X, Y) & ex(Y, X))
forall X, Y in object, X != Y: ex(X, Y) | ex(Y, X)
forall X, Y, Z in object: ex(X, Y) & ex(Y, Z) -> ex(X, Z)
"""
"""What holds of any strict total order, over the objects of the examples."""

OWN, GROUPED, STRICT = "own", "grouped", "strict"
"""What may be in a test fold beside what is trained on."""

STRICT_PARTS: Final = 10
"""Parts of objects, of which strict folds hold out one each."""

OBJECTS: Final = 12
"""Objects of the order that the package makes."""


def problem_named(name: str) -> RelationalProblem:
    """Return a problem: of ``LBM_DATA``, or one that the package makes: family, chess or order."""
    return _problem(name, data_directory())


@lru_cache(maxsize=2)  # pieces of a set follow one another
def _problem(name: str, _place: Path | None) -> RelationalProblem:
    if name == "family":
        return family()
    if name == "chess":
        return krk_relations(200)
    return made_order(OBJECTS, seed=0) if name == "order" else data_problem(name)


def is_order(name: str) -> bool:
    """Return whether examples of a problem compare two objects."""
    return name == "order" or name.startswith("alz_")


@lru_cache(maxsize=2)
def order_rules(examples: frozenset[Term]) -> Theory:
    """Return what holds of an order, ground over the objects of these examples."""
    return ground(ORDER, [atom_name(write(example)) for example in examples])


def fold_names(name: str) -> list[str]:
    """Return the folds of a problem without reading it."""
    if name.startswith("uwcse"):
        return ["ai", "graphics", "language", "systems", "theory"]
    return [str(number + 1) for number in range(5 if name in ("family", "chess", "order") else 10)]


def fold_of_examples(problem: RelationalProblem, *, grouped: bool = False) -> NDArray[np.str_]:
    """Return every example's fold, shape (examples,): the problem's own, else drawn, always in the same way.

    ``grouped``: both directions of a pair are in one fold, and folds are drawn.
    """
    from lbm.training.relational.folds import SAME_ARGUMENTS, make_folds
    from lbm.training.relational.induce import MANY

    number = 5 if problem.name in ("family", "krk", "order") and len(problem.examples) < MANY else 10
    return make_folds(problem, folds=number, groups=SAME_ARGUMENTS if grouped else None, seed=0)


def strict_fold(problem: RelationalProblem, fold: str) -> NDArray[np.str_]:
    """Return every example's fold, shape (examples,): a test example has an object no training example has.

    Objects are dealt into ten parts, always in the same way. Fold k tests all examples with an object of part
    k; others are named by the parts of their two objects, so that a pair and its mirror stay together.
    """
    objects = sorted({one for example in problem.examples for one in arguments(example)}, key=str)
    dealt = np.random.default_rng(0).permutation(len(objects)) % STRICT_PARTS
    part = dict(zip(objects, (dealt + 1).tolist(), strict=True))
    found = []
    for example in problem.examples:
        both = sorted({part[one] for one in arguments(example)})
        found.append(fold if int(fold) in both else "-".join(map(str, both)) + " trained")
    return np.array(found, dtype=np.str_)


def made_order(objects: int, *, seed: int) -> RelationalProblem:
    """Return an order of objects to learn: what stands first has more weight, which colours hint at.

    Every pair of objects is a positive example in one direction and a negative one in the other.
    """
    rng = np.random.default_rng([seed, objects])
    sizes, shapes = rng.integers(0, 5, objects), rng.integers(0, 3, objects)
    worth = 2.0 * sizes + shapes + rng.random(objects)
    names = [f"o{number + 1}" for number in range(objects)]
    facts = [
        f"size({one}, {size}). shape({one}, s{shape})."
        for one, size, shape in zip(names, sizes, shapes, strict=True)
    ]
    pairs = [(names[i], names[j]) for i in range(objects) for j in range(objects) if worth[i] > worth[j]]
    modes = """
        :- modeh(1, ex(+object, +object)).
        :- modeb(1, size(+object, #number)).
        :- modeb(1, shape(+object, #shape)).
        :- determination(ex/2, size/2).
        :- determination(ex/2, shape/2).
    """
    texts = {
        "bk.pl": "\n".join(facts),
        "pos.pl": "\n".join(f"ex({a}, {b})." for a, b in pairs),
        "neg.pl": "\n".join(f"ex({b}, {a})." for a, b in pairs),
        "modes.pl": modes,
    }
    return make_problem(
        "order", *(read_clauses(text, source=f"order/{file}") for file, text in texts.items())
    )


@dataclass(frozen=True, slots=True)
class FoldScore:
    """One fold: what came out, with what, and how many machines were trained for it."""

    tested: Tested
    fits: int


def learn_fold(
    problem: RelationalProblem,
    fold: str,
    *,
    seed: int,
    order: bool,
    rules: bool,
    folds: str = OWN,
    few: bool = False,
    small: bool = False,
) -> FoldScore:
    """Return scores on one fold of a machine trained on the others.

    Parameters
    ----------
    order
        Whether examples compare two objects; columns then say how these differ.
    rules
        Whether the rules of an order score beside the machine.
    folds
        OWN: as the problem has them. GROUPED: both directions of a pair are in one fold; folds are then
        drawn, always in the same way. STRICT: see :func:`strict_fold`.
    few
        Whether to choose between two settings, instead of among all that ``lbm induce`` tries.
    small
        Whether to train for a short time with one setting, instead of choosing among several.
    """
    from lbm.relations.columns.transformer import RelationalColumns
    from lbm.training.relational.induce import GRID, MANY, PARTS, Setting, Task, run_fold
    from lbm.training.relational.rules import read_rules

    two = tuple(Setting(size=2, learning_rate=0.01, l2=l2) for l2 in (0.05, 0.5))
    grid = two[:1] if small else two if few else GRID
    grouped = folds == GROUPED
    names = strict_fold(problem, fold) if folds == STRICT else fold_of_examples(problem, grouped=grouped)
    sizes = [one.size for one in grid]
    settings = tuple(dict.fromkeys(replace(one, size=max(sizes)) if order else one for one in grid))
    found, theory = read_rules(order_rules(frozenset(problem.examples)) if rules else None, problem)
    features = "comparison" if order else "constants"
    columns = RelationalColumns(problem, features=features, size=max(sizes))
    task = Task(
        problem=problem,
        columns=columns,
        theory=theory,
        rules=found,
        names=names,
        hidden=50,
        settings=settings,
        max_epochs=20 if small else 100,
        seed=seed,
        machines=1 if small else None,
        units="paper",  # stored results are of these
    )
    tested, _ = run_fold(task, fold)
    inner = 1 if int((names != fold).sum()) >= MANY else PARTS
    return FoldScore(tested, len(settings) * inner + tested.machines)


# --- labels flipped --------------------------------------------------------------------------------


def flipped(
    problem: RelationalProblem, fold: str, *, share: float, together: bool, seed: int
) -> RelationalProblem:
    """Return a problem in which this share of the labels is wrong, but for those of one fold.

    Parameters
    ----------
    together
        Whether a pair's two directions are flipped together, as far as both are trained on, so that they
        still say the same; apart, each has its own chance.
    """
    assert problem.folds is not None, "flipped labels are for problems that know their folds"
    rng = np.random.default_rng([seed, 13])
    coins: dict[Term | frozenset[Term], bool] = {}
    wrong = []
    for example in problem.examples:
        key: Term | frozenset[Term] = frozenset(arguments(example)) if together else example
        if key not in coins:
            coins[key] = bool(rng.random() < share)
        wrong.append(coins[key] and problem.folds[example] != fold)
    labels = [label != bad for label, bad in zip(problem.labels, wrong, strict=True)]
    every = list(zip(problem.examples, labels, strict=True))
    return replace(
        problem,
        positive=tuple(example for example, label in every if label),
        negative=tuple(example for example, label in every if not label),
    )


def with_folds(problem: RelationalProblem) -> RelationalProblem:
    """Return a problem that knows its folds: its own, else five that are drawn."""
    from lbm.training.relational.folds import make_folds

    if problem.folds is not None:
        return problem
    names = make_folds(problem, folds=5, seed=0)
    return replace(problem, folds=dict(zip(problem.examples, names.tolist(), strict=True)))
