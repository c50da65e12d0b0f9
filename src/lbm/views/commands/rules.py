"""``lbm rules``: what did this machine learn, as weighted formulae?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from lbm.views.commands import learning, relational, shared

if TYPE_CHECKING:
    from lbm.training.learners.classifier import LBMClassifier


def extract_theory(
    model: learning.Model,
    method: Annotated[
        str,
        shared.one_of(
            ("faithful", "confidence"),
            "--method",
            "faithful: few rules that predict as the machine does. confidence: as published.",
        ),
    ] = "faithful",
    data: Annotated[
        str | None,
        Option(
            "--data", metavar="DATA", help="Rows that rules are fitted to and measured on: .csv, .parquet."
        ),
    ] = None,
    max_rules: Annotated[int, Option("--max-rules", min=1, help="Of faithful: rules, at most.")] = 40,
    out: Annotated[
        str | None, Option("-o", "--out", metavar="FILE", help="A theory, .lbm; by default printed.")
    ] = None,
    form: Annotated[
        str | None,
        shared.one_of(
            ("prolog", "lbm"), "--form", "Of a relational model: prolog, clauses; lbm, a theory over columns."
        ),
    ] = None,
    as_json: shared.Json = False,
    seed: Annotated[
        int, Option("--seed", min=0, help="Of rows that are drawn where there is no --data.")
    ] = 0,
) -> None:
    """Print what a trained machine learned as a theory that other commands read.

    Comments say how often rules and machine predict the same class (fidelity), how often the rules are right
    (accuracy, where --data has the target), how many literals they have, and how far rules given as knowledge
    have moved. Of --data the first 100,000 rows are used; without it rows are drawn evenly.

    Of a relational model, which `lbm induce --save` wrote, rules are clauses with weight, coverage and
    precision, a program that Prolog systems load beside the background; with --form lbm a theory.

    With --json: method, fidelity, accuracy, undecided, rows, drawn, rules (list of text, weight, literals,
    drift), knowledge (list of formula, began, now, spread), theory (text). Of a
    relational model: target, examples, rules (list of clause, weight, positive, body, covers, precision), and
    prolog or lbm (text).
    """
    shared.check_place(out)
    if relational.is_relational(model):
        relational.print_rules(model, form=form, out=out, as_json=as_json)
        return
    learning.require("lbm rules", torch=False)
    with shared.working("looking for rules"):
        from lbm.training.explanations.extract import extract_rules
        from lbm.training.storage.store import load_model

        classifier = load_model(model)

        x, y = (None, None) if data is None else _rows(classifier, data)
        with learning.plainly():
            found = extract_rules(
                classifier.parameters(), x, y, method=method, max_rules=max_rules, seed=seed
            )
    if out is not None:
        from lbm.knowledge.packed import write_whole

        write_whole(out, [f"{found}\n"])
    if as_json:
        shared.say_json(found.to_dict())
    elif out is None:
        shared.say(str(found))


def _rows(classifier: LBMClassifier, data: str) -> tuple[Any, Any]:
    """Return atoms and classes of the first rows of a table; classes None: it does not have them."""
    import numpy as np

    from lbm.training.data.files import HEAD_ROWS

    atoms: list[Any] = []
    kinds: list[Any] = []
    with learning.opened(data) as table:
        for _, part, truth in learning.rows_for(classifier, table):
            atoms.append(part)
            kinds.append(truth)
            if sum(map(len, atoms)) >= HEAD_ROWS:
                break
    x = np.concatenate(atoms)[:HEAD_ROWS]
    if kinds[0] is None:
        return x, None
    y = np.concatenate(kinds)[:HEAD_ROWS]
    return (x, y) if (y >= 0).all() else (x[y >= 0], y[y >= 0])
