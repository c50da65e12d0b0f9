"""``lbm induce``: what does a relational problem teach, and how well does that do on examples not seen?"""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lbm.views.commands import options, problems, streams, tables


class Features(StrEnum):
    """What columns ask of an example."""

    paper = "paper"
    constants = "constants"
    comparison = "comparison"


Kind = Annotated[
    Features,
    typer.Option(
        "--features",
        help="constants: queries with constants and counts. comparison: of two objects. paper: literals.",
    ),
]
Rules = Annotated[
    str | None,
    typer.Option(
        "--knowledge", metavar="FILE", help="Rules over columns, or with forall over relations: .lbm."
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--group-by",
        metavar="FILE",
        help="Examples that stay in one fold: tab-separated, example and group; or the word arguments.",
    ),
]
Split = Annotated[int, typer.Option("--split", min=2, help="Folds to draw where no file says them.")]
Hidden = Annotated[
    int, typer.Option("--hidden", min=0, help="Hidden units in addition to those of the rules.")
]
Machines = Annotated[
    int | None,
    typer.Option(
        "--machines",
        min=1,
        help="Machines that score a fold together; by default 12 if examples are few, else 1.",
    ),
]
Depth = Annotated[
    int | None, typer.Option("--depth", min=1, help="Of --features paper: layers of new variables.")
]
Size = Annotated[
    int, typer.Option("--size", min=1, max=5, help="Of --features constants: literals in a chain, at most.")
]
Keep = Annotated[
    int | None,
    typer.Option("--select", min=1, help="Columns to keep, those that mRMR prefers; by default all."),
]
Save = Annotated[
    str | None, typer.Option("--save", metavar="MODEL", help="Where the machine of all examples goes.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of folds that are drawn, and of training.")]


def induce_rules(
    directory: problems.Directory,
    features: Kind = Features.constants,
    knowledge: Rules = None,
    modes: problems.Modes = None,
    neg: problems.Negative = None,
    folds: problems.Folds = None,
    group_by: Groups = None,
    split: Split = 10,
    hidden: Hidden = 50,
    machines: Machines = None,
    size: Size = 2,
    depth: Depth = None,
    select: Keep = None,
    save: Save = None,
    jobs: problems.Jobs = 1,
    as_json: options.Json = False,
    seed: Seed = 0,
) -> None:
    """Learn a relational problem, and print accuracy per fold, mean and s.d., and the strongest rules.

    For each fold, columns are found and a machine is trained on the other folds alone; settings are chosen
    there too. Where examples are few, several machines score a fold, by the mean of their log-odds. Rules,
    and what --save keeps, are those of one machine of all examples. Folds are those of folds.tsv or --folds,
    unless --group-by says what may not be parted; otherwise they are drawn, classes spread evenly, and
    equal examples stay together. --group-by arguments keeps ex(a,b) and ex(b,a) together.

    With --json: problem, features, positive, negative, folds (list of name, examples, accuracy,
    balanced_accuracy, f1, auc_pr, columns, size, learning_rate, l2, machines, share of the rules), and of
    each of the scores mean and deviation; rules, saved, seconds, warnings.
    """
    tables.require("lbm induce")
    if save is not None:
        tables.check_place(save)
    problem = problems.load(directory, modes=modes, negative=neg, folds=folds)
    from lbm.training.relational.induce import grid, induce

    begun = time.monotonic()
    with tables.plainly(), problems.bar("folds", _count(problem.folds, split)) as show:
        found = induce(
            problem,
            features=features.value,
            knowledge=None if knowledge is None else Path(knowledge),
            folds=split,
            groups=group_by,
            hidden=hidden,
            machines=machines,
            settings=grid(size),
            depth=depth,
            select=select,
            random_state=seed,
            n_jobs=jobs,
            progress=show,
        )
    if save is not None:
        from lbm.training.storage.store import save_model

        save_model(found.classifier, save)
    if as_json:
        counts = {"positive": len(problem.positive), "negative": len(problem.negative)}
        rest = {
            "saved": save,
            "seconds": round(time.monotonic() - begun, 3),
            "warnings": list(problem.warnings),
        }
        streams.say_json(
            {"problem": problem.name, "features": features.value, **counts, **found.facts(), **rest}
        )
    else:
        streams.say(*found.lines())
        if save is not None:
            streams.remark(f"{save}: the machine of all examples")


def _count(folds: Any, split: int) -> int:
    return split if folds is None else len(set(folds.values()))
