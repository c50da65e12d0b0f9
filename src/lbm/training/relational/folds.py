"""Folds of a relational problem: given by a file or drawn, with what belongs together in one fold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Ints
from lbm.errors import ParseError
from lbm.relations.problem import RelationalProblem, one_term, read_rows
from lbm.relations.prolog.terms import Term, arguments, key, write_short

Names = NDArray[np.str_]

SAME_ARGUMENTS = "arguments"
"""A grouping: examples whose arguments are the same terms, in any order, belong together."""


def make_folds(
    problem: RelationalProblem,
    *,
    folds: int = 10,
    groups: Mapping[Term, str] | str | Path | None = None,
    seed: int | np.random.Generator | None = None,
) -> Names:
    """Return the name of each example's fold, shape (examples,), positive examples first.

    A problem that knows its folds keeps them, unless ``groups`` are given. Otherwise they are drawn, with the
    share of positive examples as even as groups allow; equal examples are always in one fold.

    Parameters
    ----------
    groups
        What is never parted: the group of each example, a file that says it (see :func:`read_groups`), or
        ``arguments`` for examples that have the same arguments in any order, such as ex(a,b) and ex(b,a).
    """
    examples = problem.examples
    if groups is None and problem.folds is not None:
        return np.array([problem.folds[example] for example in examples], dtype=np.str_)
    if isinstance(groups, Mapping):
        group = _complete(groups, problem)
    elif groups == SAME_ARGUMENTS:
        group = {example: repr(sorted(map(str, map(key, arguments(example))))) for example in examples}
    elif groups is not None:
        group = read_groups(groups, problem)
    else:
        group = {}
    members = [group.get(example, example) for example in examples]
    drawn = draw_folds(members, problem.labels, folds=folds, seed=seed)
    return np.array([str(number + 1) for number in drawn.tolist()], dtype=np.str_)


def draw_folds(
    groups: Sequence[Hashable],
    labels: Sequence[bool],
    *,
    folds: int,
    seed: int | np.random.Generator | None = None,
) -> Ints:
    """Return fold numbers, shape (examples,): no group is parted, and classes are spread evenly.

    Groups with the same numbers of positive and negative examples are dealt out in turn.

    >>> draw_folds(["a", "a", "b", "b", "c", "c"], [True, False] * 3, folds=3, seed=0).tolist()
    [1, 1, 2, 2, 0, 0]
    """
    place: dict[Hashable, int] = {}
    number = np.array([place.setdefault(group, len(place)) for group in groups], dtype=np.int64)
    if not 2 <= folds <= len(place):
        raise ValueError(f"expected from 2 folds up to one for each of {len(place)} groups, got {folds}")
    truth = np.asarray(labels, dtype=bool)
    positive = np.bincount(number, truth, minlength=len(place)).astype(np.int64)
    negative = np.bincount(number, ~truth, minlength=len(place)).astype(np.int64)
    shuffled = np.random.default_rng(seed).permutation(len(place))
    # Large groups first: what is dealt out last evens out what they left.
    order = shuffled[np.lexsort((positive[shuffled], -(positive + negative)[shuffled]))]
    dealt = np.empty(len(place), dtype=np.int64)
    dealt[order] = np.arange(len(place)) % folds
    found: Ints = dealt[number]
    return found


def read_groups(path: Path | str, problem: RelationalProblem) -> dict[Term, str]:
    """Return the group of every example, as a tab-separated file says: a header, then example and group."""
    known = set(problem.examples)
    found: dict[Term, str] = {}
    for line, cells in read_rows(path)[1]:
        if len(cells) < 2:
            raise ParseError("expected an example, a tab and its group", source=str(path), line=line)
        clause = one_term(cells[0], str(path), line)
        if clause.term not in known:
            raise clause.error(f"expected an example of this problem, found {write_short(clause.term)}")
        found[clause.term] = cells[-1]
    return _complete(found, problem, source=str(path))


def _complete(
    groups: Mapping[Term, str], problem: RelationalProblem, *, source: str | None = None
) -> dict[Term, str]:
    """Return groups, if every example has one."""
    without = [example for example in problem.examples if example not in groups]
    if without:
        first = write_short(without[0])
        message = f"expected a group for every example, found none for {len(without)}, {first} first"
        raise ParseError(message, source=source)
    return dict(groups)
