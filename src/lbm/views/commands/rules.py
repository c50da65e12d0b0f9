"""``lbm rules``: what did this machine learn, as weighted formulae?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbm.views.commands import options, streams, tables

if TYPE_CHECKING:
    from lbm.training.learners.classifier import LBMClassifier


class Extracted(StrEnum):
    """How rules are found."""

    faithful = "faithful"
    confidence = "confidence"


How = Annotated[
    Extracted,
    typer.Option(
        "--method", help="faithful: few rules that predict as the machine does. confidence: as published."
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DATA", help="Rows that rules are fitted to and measured on: .csv, .parquet."
    ),
]
Most = Annotated[int, typer.Option("--max-rules", min=1, help="Of faithful: rules, at most.")]
Out = Annotated[
    str | None, typer.Option("-o", "--out", metavar="FILE", help="A theory, .lbm; by default printed.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of rows that are drawn where there is no --data.")]


def extract_theory(
    model: tables.Model,
    method: How = Extracted.faithful,
    data: Rows = None,
    max_rules: Most = 40,
    out: Out = None,
    as_json: options.Json = False,
    seed: Seed = 0,
) -> None:
    """Print what a trained machine learned as a theory that other commands read.

    Comments say how often rules and machine predict the same class (fidelity), how often the rules are right
    (accuracy, where --data has the target), how many literals they have, and how far rules given as knowledge
    have moved. Of --data the first 100,000 rows are used; without it rows are drawn evenly.

    With --json: method, fidelity, accuracy, undecided, rows, drawn, rules (list of text, weight, literals,
    drift), knowledge (list of formula, began, now, spread), theory (text).
    """
    tables.require("lbm rules")
    if out is not None:
        tables.check_place(out)
    with streams.working("looking for rules"):
        classifier = tables.load(model)
        from lbm.training.explanations.extract import extract_rules

        x, y = (None, None) if data is None else _rows(classifier, data)
        with tables.plainly():
            found = extract_rules(
                classifier.network_,
                x,
                y,
                method=method.value,
                max_rules=max_rules,
                groups=classifier.layout_.blocks,
                seed=seed,
            )
    if out is not None:
        from lbm.knowledge.wire import write_whole

        write_whole(out, [f"{found}\n"])
    if as_json:
        streams.say_json({**found.to_dict(), "theory": str(found.theory)})
    elif out is None:
        streams.say(str(found))


def _rows(classifier: LBMClassifier, data: str) -> tuple[Any, Any]:
    """Return atoms and classes of the first rows of a table; classes None: it does not have them."""
    import numpy as np

    from lbm.training.data.examples import read_rows
    from lbm.training.data.files import HEAD_ROWS

    atoms: list[Any] = []
    kinds: list[Any] = []
    layout, classes = classifier.layout_, classifier.classes_.tolist()
    with tables.opened(data) as table:
        for _, part, truth in read_rows(table, layout, target=classifier.target_, classes=classes):
            atoms.append(part)
            kinds.append(truth)
            if sum(map(len, atoms)) >= HEAD_ROWS:
                break
    x = np.concatenate(atoms)[:HEAD_ROWS]
    if kinds[0] is None:
        return x, None
    y = np.concatenate(kinds)[:HEAD_ROWS]
    return (x, y) if (y >= 0).all() else (x[y >= 0], y[y >= 0])
