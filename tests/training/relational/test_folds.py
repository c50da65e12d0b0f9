"""Folds: what belongs together stays together, and classes are spread evenly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import FileError, ParseError
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.training.relational.folds import draw_folds, make_folds, read_groups


def pairs(folds: dict | None = None) -> RelationalProblem:
    made = make_problem(
        "pairs",
        read_clauses("p(a)."),
        read_clauses("ex(a, b). ex(a, c). ex(b, c). ex(a, b)."),
        read_clauses("ex(b, a). ex(c, a). ex(c, b)."),
    )
    return RelationalProblem(made.name, made.background, made.positive, made.negative, made.modes, folds)


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=20, max_size=60), st.integers(2, 4))
def test_no_group_is_parted_and_folds_are_about_as_large(rows, folds):
    groups, labels = zip(*rows, strict=True)
    if len(set(groups)) < folds:
        return
    found = draw_folds(groups, labels, folds=folds, seed=0)
    assert all(
        len({f for f, g in zip(found.tolist(), groups, strict=True) if g == group}) == 1 for group in groups
    )
    assert set(found.tolist()) == set(range(folds))


@given(st.integers(5, 40), st.integers(5, 40), st.integers(2, 5))
def test_classes_are_spread_evenly_where_nothing_is_grouped(positive, negative, folds):
    labels = np.array([True] * positive + [False] * negative)
    found = draw_folds(range(len(labels)), labels, folds=folds, seed=1)
    for kind in (True, False):
        sizes = np.bincount(found[labels == kind], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def test_the_seed_decides_and_nothing_else():
    one, again, other = (make_folds(pairs(), folds=3, seed=seed).tolist() for seed in (0, 0, 5))
    assert one == again
    assert one != other


def test_equal_examples_and_both_directions_of_a_pair_share_a_fold():
    problem = pairs()
    drawn = make_folds(problem, folds=3, seed=0)
    assert drawn[0] == drawn[3]
    grouped = make_folds(problem, folds=3, groups="arguments", seed=0)
    assert grouped.tolist() == [*grouped[:3].tolist(), grouped[0], *grouped[:3].tolist()]


def test_folds_that_are_known_are_kept_unless_groups_are_given():
    known = {
        example: f"area {k % 2}" for k, example in enumerate(pairs().examples[:3] + pairs().examples[4:])
    }
    problem = pairs(known)
    assert make_folds(problem).tolist() == [known[example] for example in problem.examples]
    assert set(make_folds(problem, folds=2, groups="arguments", seed=0).tolist()) == {"1", "2"}


def test_groups_are_read_from_a_file_and_wrong_lines_are_named(tmp_path):
    problem = pairs()
    path = tmp_path / "groups.tsv"
    rows = [f"{example}\t{k % 3}" for k, example in enumerate(problem.examples[:3] + problem.examples[4:])]
    path.write_text("\n".join(["example\tgroup", *rows]))
    assert len(read_groups(path, problem)) == 6
    folds = make_folds(problem, folds=3, groups=path, seed=0)
    assert folds[0] == folds[4]
    for text, message in (
        ("ex(a, d)\t1", r"groups.tsv:2: expected an example of this problem, found ex\(a,d\)"),
        ("ex(a, b)", r"groups.tsv:2: expected an example, a tab and its group"),
        ("ex(a, b\t1", r"groups.tsv:2: "),
        ("ex(a, b)\t1", r"expected a group for every example, found none for 5, ex\(a,c\) first"),
    ):
        path.write_text(f"example\tgroup\n{text}\n")
        with pytest.raises(ParseError, match=message):
            read_groups(path, problem)
    with pytest.raises(FileError, match="cannot read"):
        read_groups(tmp_path / "none.tsv", problem)
    with pytest.raises(ParseError, match="expected a group for every example"):
        make_folds(problem, groups={problem.examples[0]: "x"})


def test_more_folds_than_groups_are_an_error():
    with pytest.raises(ValueError, match="expected from 2 folds up to one for each of 3 groups, got 4"):
        make_folds(pairs(), folds=4, groups="arguments")
