"""``lbm induce``: what does a relational problem teach, and how well does that do on examples not seen?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from lbm.views.commands import learning, shared

if TYPE_CHECKING:
    from lbm.relations.model import RelationalModel


def induce_rules(
    directory: learning.Directory,
    *,
    features: Annotated[
        str,
        shared.one_of(
            ("paper", "constants", "comparison"),
            "--features",
            "constants: queries with constants and counts. comparison: of two objects. paper: literals.",
        ),
    ] = "constants",
    knowledge: Annotated[
        str | None,
        Option(
            "--knowledge", metavar="FILE", help="Rules over columns, or with forall over relations: .lbm."
        ),
    ] = None,
    relational: learning.ProblemOptions,
    group_by: Annotated[
        str | None,
        Option(
            "--group-by",
            metavar="FILE",
            help="Examples that stay in one fold: tab-separated, example and group; or the word arguments.",
        ),
    ] = None,
    split: Annotated[int, Option("--split", min=2, help="Folds to draw where no file says them.")] = 10,
    hidden: learning.Hidden = 50,
    machines: Annotated[
        int | None,
        Option(
            "--machines",
            min=1,
            help="Machines that score a fold together; by default 4 if examples are few, else 1.",
        ),
    ] = None,
    size: Annotated[
        int | None,
        Option(
            "--size",
            min=1,
            max=5,
            help="Literals in a chain, at most; by default 3, or 2 of --features comparison.",
        ),
    ] = None,
    depth: Annotated[
        int | None, Option("--depth", min=1, help="Of --features paper: layers of new variables.")
    ] = None,
    select: Annotated[
        int | None,
        Option("--select", min=1, help="Columns to keep, those that mRMR prefers; by default all."),
    ] = None,
    save: Annotated[
        str | None, Option("--save", metavar="MODEL", help="Where the model of all examples goes.")
    ] = None,
    background: Annotated[
        str,
        shared.one_of(
            ("inside", "path"),
            "--background",
            "Of --save: inside, the model holds the background; path, its place and hash alone.",
        ),
    ] = "inside",
    only: Annotated[
        str | None,
        Option("--only", metavar="FOLD", help="Test this fold alone; --save keeps the model of the others."),
    ] = None,
    jobs: learning.Jobs = 1,
    as_json: shared.Json = False,
    seed: Annotated[int, Option("--seed", min=0, help="Of folds that are drawn, and of training.")] = 0,
) -> None:
    """Learn a relational problem, and print accuracy per fold, mean and s.d., and the strongest rules.

    For each fold, columns are found and a machine is trained on the other folds alone; settings are chosen
    there too. Where examples are few, several machines score a fold, by the mean of their log-odds; so does
    the model that --save keeps, for `lbm predict` and `lbm rules`. Rules are those of one machine. Folds are
    those of folds.tsv or --folds, unless --group-by says what may not be parted; otherwise they are drawn,
    classes spread evenly, and equal examples stay together. --group-by arguments keeps ex(a,b) and ex(b,a)
    together.

    With --json: problem, features, positive, negative, folds (list of name, examples, accuracy,
    balanced_accuracy, f1, auc_pr, columns, size, learning_rate, l2, machines, share of the rules), and of
    each of the scores mean and deviation; rules, saved, seconds, warnings.
    """
    learning.require("lbm induce")
    shared.check_place(save)
    problem = relational.problem(directory)
    from lbm.training.relational.induce import induce

    parts = split if problem.folds is None else len(set(problem.folds.values()))
    begun = time.monotonic()
    with learning.plainly(), shared.bar("folds", parts, "count", "left") as show:
        found = induce(
            problem,
            features=features,
            knowledge=None if knowledge is None else Path(knowledge),
            folds=split,
            groups=group_by,
            hidden=hidden,
            machines=machines,
            size=size,
            depth=depth,
            select=select,
            random_state=seed,
            n_jobs=jobs,
            progress=show,
            keep=save is not None,
            only=only,
        )
    if save is not None:
        _save(found.model, save, relational.background_of(directory) if background == "path" else None)
    if as_json:
        counts = {"positive": len(problem.positive), "negative": len(problem.negative)}
        rest = {
            "saved": save,
            "seconds": round(time.monotonic() - begun, 3),
            "warnings": list(problem.warnings),
        }
        shared.say_json({"problem": problem.name, "features": features, **counts, **found.facts(), **rest})
    else:
        shared.say(*found.lines())
        if save is not None:
            which = "all examples" if only is None else f"all folds but {only}"
            shared.remark(f"{save}: the model of {which}")


def _save(model: RelationalModel | None, place: str, background: Path | None) -> None:
    from lbm.relations.model import with_place
    from lbm.relations.model_file import save_relational

    assert model is not None, "it was asked for"
    save_relational(model if background is None else with_place(model, background), place)
