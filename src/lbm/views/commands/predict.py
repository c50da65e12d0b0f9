"""``lbm predict``: which class is each row of, how sure is that, and why?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from lbm.errors import FileError
from lbm.knowledge.printed import counted, csv_text
from lbm.views.commands import learning, relational, shared

if TYPE_CHECKING:
    from lbm.arrays import Bools, Floats, Ints
    from lbm.training.data.files import TableFile
    from lbm.training.explanations.explain import Explanation
    from lbm.training.learners.classifier import LBMClassifier


@dataclass(frozen=True, eq=False, slots=True)
class Predictions:
    """Probabilities, shape (rows, classes), and what else is known of each row, shape (rows,).

    Classes are those of the column ``target``.
    """

    target: str
    classes: list[Any]
    probabilities: Floats
    exact: Bools
    undecided: Bools
    truth: Ints | None

    @property
    def kinds(self) -> Ints:
        """The numbers of the most probable classes."""
        found: Ints = self.probabilities.argmax(axis=1)
        return found

    @property
    def accuracy(self) -> float | None:
        """The share of rows with a known class whose class is predicted."""
        if self.truth is None or not (self.truth >= 0).any():
            return None
        known = self.truth >= 0
        return float((self.kinds == self.truth)[known].mean())

    def note(self, row: int) -> str:
        """Return what is to be said of a row, if anything."""
        return "undecided" if self.undecided[row] else "" if self.exact[row] else "sampled"

    def rows(self, proba: bool) -> Iterator[list[Any]]:
        """Yield the head of a table, and a row for each prediction: its class, how sure, and a note."""
        heads = [f"p({self.target} = {name})" for name in self.classes] if proba else ["probability"]
        yield [self.target, *heads, "note"]
        for row, kind in enumerate(self.kinds.tolist()):
            sure = self.probabilities[row].tolist()
            yield [self.classes[kind], *(sure if proba else [sure[kind]]), self.note(row)]


def predict_rows(
    model: learning.Model,
    data: learning.Table,
    explain: Annotated[
        bool,
        Option(
            "--explain",
            help="Print why: the log-odds by unit and by column, rules that fire, what would change it.",
        ),
    ] = False,
    proba: Annotated[
        bool, Option("--proba", help="The probability of every class, not of the best only.")
    ] = False,
    background: Annotated[
        str | None,
        Option("--bk", metavar="FILE", help="Of a relational model: what is known of new examples, .pl."),
    ] = None,
    out: Annotated[
        str | None, Option("-o", "--out", metavar="OUT", help="A CSV file; by default standard output.")
    ] = None,
    as_json: shared.Json = False,
) -> None:
    """Predict the class of every row, with its probability.

    Prints CSV: a column with the target's name, then probability, then note. The note is `undecided` where
    nothing decides between the best classes, and `sampled` where so many values are missing that the
    probability was estimated. Where the table has the target too, the accuracy is told on standard error.

    With --explain: the log-odds as a bias and a term per hidden unit; bars for what each column adds to them,
    beside rows that the model was trained on (Shapley values); the rules that fire, of those that stand for
    the machine; and the fewest columns that would have to change for the other class.

    A relational model, which `lbm induce --save` wrote, predicts the facts in a file of Prolog, or the
    examples of a problem, and prints CSV: example, the target (True or False), probability. With --explain:
    the clauses that hold, with their weights, and the columns that change the log-odds most.

    With --json: target, classes, rows (list of class, probability, note and, if asked for, probabilities and
    explanation: kind, other, log_odds, bias, terms, completed, certain, columns, rules, change), undecided,
    sampled (numbers of rows), accuracy. Of a relational model: target, rows (list of example, class,
    probability, log_odds and, if asked for, explanation), accuracy, warnings.
    """
    shared.check_place(out)
    if relational.is_relational(model):
        relational.predict_examples(
            model, data, background=background, explain=explain, out=out, as_json=as_json
        )
        return
    if background is not None:
        raise FileError(f"--bk is for relational models, and {model} is none")
    learning.require("lbm predict", torch=False)
    from lbm.training.storage.store import load_model

    classifier = load_model(model)
    with learning.opened(data) as table:
        with shared.working("predicting"):
            found = predict_table(classifier, table)
        why = explanations(classifier, table, found) if explain else None
        if out is not None:
            from lbm.knowledge.packed import write_whole

            write_whole(out, csv_text(found.rows(proba)))
        if as_json:
            shared.say_json(prediction_facts(found, why, proba, listed=out is None))
        elif why is not None:
            _explain(found, why)
        elif out is None:
            for text in csv_text(found.rows(proba)):
                print(text, end="")
    _remark(found)


def predict_table(classifier: LBMClassifier, table: TableFile) -> Predictions:
    """Return the predictions for every row of a file."""
    import numpy as np

    parts: list[tuple[Any, ...]] = []
    named = hasattr(classifier, "feature_names_in_")
    for frame, _, truth in learning.rows_for(classifier, table):
        x = frame if named else frame.to_numpy()
        with learning.plainly():
            parts.append((classifier.predict_proba(x), classifier.exact(x), classifier.undecided(x), truth))
    *found, truth = zip(*parts, strict=True)
    told = None if truth[0] is None else np.concatenate(truth)
    probabilities, exact, undecided = map(np.concatenate, found)
    names = classifier.classes_.tolist()
    return Predictions(classifier.target_, names, probabilities, exact, undecided, told)


def explanations(classifier: LBMClassifier, table: TableFile, found: Predictions) -> Iterator[Explanation]:
    """Yield why each row has its class."""
    from lbm.training.explanations.explain import explain_rows

    first, learned, context = 0, classifier.parameters(), classifier.context()
    for _, atoms, _ in learning.rows_for(classifier, table):
        yield from explain_rows(
            learned,
            atoms,
            kinds=found.kinds[first : first + len(atoms)],
            classes=classifier.classes_.tolist(),
            context=context,
        )
        first += len(atoms)


# --- what people and programs read ---------------------------------------------------------------


def _explain(found: Predictions, why: Iterator[Explanation]) -> None:
    for row, (kind, explanation) in enumerate(zip(found.kinds.tolist(), why, strict=True)):
        note = found.note(row)
        sure = f"{found.probabilities[row, kind]:.4f}" + (f", {note}" if note else "")
        shared.say(f"row {row + 1}: {found.target} = {found.classes[kind]} ({sure})")
        shared.say(*(f"  {line}" for line in _reasons(explanation)))


def _reasons(why: Explanation) -> Iterator[str]:
    """Yield the lines that say why."""
    yield from why.text().splitlines()
    if why.compares:
        yield from why.by_column().lines()
    if why.rules:
        yield "rules that fire:"
        yield from (f"  {rule.text}" for rule in why.rules)
    yield str(why.change())


def prediction_facts(
    found: Predictions, why: Iterator[Explanation] | None, proba: bool, *, listed: bool
) -> dict[str, Any]:
    """Return predictions as plain data for JSON, with the reasons if there are some; rows as an iterator."""

    def each() -> Iterator[dict[str, Any]]:
        for row, kind in enumerate(found.kinds.tolist()):
            sure = found.probabilities[row].tolist()
            fact = {"class": found.classes[kind], "probability": sure[kind], "note": found.note(row)}
            if proba:
                fact["probabilities"] = sure
            if why is not None:
                one = next(why)
                fact["explanation"] = {
                    **one.to_dict(),
                    "columns": one.by_column().to_dict() if one.compares else None,
                    "rules": [rule.text for rule in one.rules],
                    "change": one.change().to_dict(),
                }
            yield fact

    return {
        "target": found.target,
        "classes": found.classes,
        "rows": each() if listed or why is not None else iter(()),
        "undecided": int(found.undecided.sum()),
        "sampled": int((~found.exact).sum()),
        "accuracy": found.accuracy,
    }


def _remark(found: Predictions) -> None:
    for some, why in (
        (found.undecided, "undecided: nothing tells their classes apart"),
        (~found.exact, "sampled: too many of their values are missing"),
    ):
        if some.any():
            shared.remark(f"{int(some.sum()):,} of {counted(len(some), 'row')} {why}")
    if found.accuracy is not None and found.truth is not None:
        known = int((found.truth >= 0).sum())
        shared.remark(f"accuracy {found.accuracy:.2%} of {counted(known, 'row')} with a known class")
