"""Tables that learners are compared on: the paper's columns and folds from files, and made ones without.

``LBM_DATA`` names the directory of the files. A column is a literal of a bottom clause, true where the
example's own clause has it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.datasets import family, krk_relations
from lbm.errors import FileError, ParseError
from lbm.relations.columns.paper import literals, occurrences
from lbm.relations.problem import RelationalProblem, load_problem
from lbm.relations.saturate import Saturation

Names = NDArray[np.str_]

SETS: Final = ("mutagenesis", "krk", "uwcse", "alz_amine", "alz_acetyl", "alz_memory", "alz_toxic")
"""The sets of the paper's table, in its order."""

UNEVEN: Final = "uwcse_2711"
"""UW-CSE with all pairs of a student and a professor: 113 positive examples among 2,824."""

MADE: Final = ("family", "chess")
"""Sets that the package makes."""

DEPTH: Final = {"uwcse": 1, "family": 2, "chess": 1}

_FILES: Final = {
    "mutagenesis": ("mutagenesis", "cilppp_bcp.tsv"),
    "krk": ("krk", "cilppp_bcp.tsv"),
    UNEVEN: ("uwcse", "cilppp_bcp_i1.tsv"),
}


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows of columns that are true or false, with a label and a fold each.

    Attributes
    ----------
    cells
        Shape (rows, columns).
    labels, folds, pairs
        Shape (rows,). Rows with the same name in ``pairs`` are one pair of objects in both directions;
        elsewhere every row has a name of its own.
    areas
        Whether folds are areas of what the rows are about: a fold is then unlike the others.
    """

    name: str
    cells: Bools
    labels: Bools
    folds: Names
    pairs: Names
    areas: bool = False

    @property
    def fold_names(self) -> list[str]:
        """The folds, numbers in their order."""
        return sorted(set(self.folds.tolist()), key=lambda name: (len(name), name))


def data_directory() -> Path | None:
    """Return the directory of the data sets; None: ``LBM_DATA`` is not set."""
    place = os.environ.get("LBM_DATA")
    return Path(place) if place else None


def data_of(name: str) -> Path:
    """Return the directory of the data sets; without one, say what ``name`` needs."""
    place = data_directory()
    if place is None:
        raise FileError(f"cannot read {name}: set LBM_DATA to the directory of the data sets")
    return place


def data_problem(name: str) -> RelationalProblem:
    """Return a relational problem of ``LBM_DATA``, with the modes that describe its examples best."""
    place = data_of(name)
    if name == UNEVEN:
        return load_problem(place / "uwcse", negative="neg_studentprof2711.pl", folds="area_of_person.tsv")
    folder = place / name
    return load_problem(folder, modes=folder / "modes_typed.pl" if name == "krk" else None)


def paper_table(name: str) -> LabelledTable:
    """Return a set with the paper's columns and folds."""
    if name in MADE:
        return made_table(name)
    if name == "uwcse":
        return replace(table_of(data_problem(name), depth=DEPTH[name]), areas=True)
    place = data_of(name)
    folder, file = _FILES.get(name, (name, "bcp_i3.tsv"))
    return replace(read_table(place / folder / file, name), areas=name == UNEVEN)


def made_table(name: str) -> LabelledTable:
    """Return a set that the package makes: ``family``, or ``chess``, 200 positions; three folds, drawn."""
    problem = family() if name == "family" else krk_relations(200)
    return table_of(problem, depth=DEPTH[name], folds=3, name=name)


def table_of(
    problem: RelationalProblem, *, depth: int, folds: int = 5, name: str | None = None
) -> LabelledTable:
    """Return the literals of bottom clauses as columns; folds are the problem's own, else drawn."""
    from lbm.training.relational.folds import make_folds

    saturation = Saturation(problem, depth=depth)
    found = [saturation.clause(example, True).body for example in problem.examples]
    names = make_folds(problem, folds=folds, seed=0)
    rows = [str(number) for number in range(len(found))]
    return _table(name or problem.name, found, list(problem.labels), names.tolist(), rows)


def read_table(path: Path, name: str) -> LabelledTable:
    """Return the table of a file of bottom clauses: of ours, or of the authors of CILP++.

    Ours has example, label, fold and literals apart by blanks. Theirs has fold, label and a clause in which
    semicolons stand between arguments and commas between literals.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    head = lines[0].split("\t") if lines else []
    bodies: list[Sequence[str]] = []
    labels, folds, pairs = [], [], []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) != len(head) or len(cells) not in (3, 4):
            raise ParseError(
                f"expected {len(head)} cells apart by tabs, got {len(cells)}", source=str(path), line=number
            )
        if len(head) == 4:
            example, label, fold, text = cells
            bodies.append(text.split())
            inside = example[example.index("(") + 1 : -1].split(",") if "(" in example else [example]
            pairs.append(",".join(sorted(inside)))
        else:
            fold, label, text = cells
            _, _, body = text.rstrip(".").partition(":-")
            bodies.append([literal for literal in body.split(",") if literal])
            pairs.append(str(number))
        labels.append((label == "pos") != (name == "mutagenesis"))  # whose authors' labels are swapped
        folds.append(fold)
    if len(set(labels)) < 2:
        raise ParseError("expected examples of both classes", source=str(path))
    return _table(name, bodies, labels, folds, pairs)


def _table(
    name: str, found: Sequence[Sequence[str]], labels: list[bool], folds: list[str], pairs: list[str]
) -> LabelledTable:
    cells = occurrences(found, literals(found))
    return LabelledTable(name, cells, np.array(labels), np.array(folds), np.array(pairs))


def permuted(table: LabelledTable, *, folds: int, seed: int) -> LabelledTable:
    """Return a table whose labels say nothing: permuted, and with folds drawn anew.

    Where rows are pairs in both directions, a coin is thrown for each pair, its two rows stay opposite, and
    both are in one fold: across folds the one would give the other away.
    """
    from lbm.training.relational.folds import draw_folds

    rng = np.random.default_rng([seed, 11])
    _, group = np.unique(table.pairs, return_inverse=True)
    if len(set(group.tolist())) < len(group):
        coin = rng.random(int(group.max()) + 1) < 0.5
        labels = table.labels ^ coin[group]
    else:
        labels = rng.permutation(table.labels)
    drawn = draw_folds(group.tolist(), labels.tolist(), folds=folds, seed=rng)
    names = np.array([str(number + 1) for number in drawn.tolist()])
    return replace(table, labels=labels, folds=names, areas=False)
