"""``lbm predict``: which class is each row of, how sure is that, and why?"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from lbm.knowledge.printed import counted
from lbm.views.commands import learning, shared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.training.data.files import TableFile
    from lbm.training.explanations.explain import Explanation
    from lbm.training.learners.classifier import LBMClassifier


@dataclass(frozen=True, eq=False, slots=True)
class Predictions:
    """Probabilities, shape (rows, classes), and what else is known of each row, shape (rows,)."""

    probabilities: NDArray[np.float64]
    exact: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    truth: NDArray[np.int64] | None

    @property
    def kinds(self) -> NDArray[np.int64]:
        """The numbers of the most probable classes."""
        found: NDArray[np.int64] = self.probabilities.argmax(axis=1)
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


def predict_rows(
    model: learning.Model,
    data: learning.Table,
    explain: Annotated[
        bool, Option("--explain", help="Print why: the log-odds as a bias and a term per hidden unit.")
    ] = False,
    proba: Annotated[
        bool, Option("--proba", help="The probability of every class, not of the best only.")
    ] = False,
    out: Annotated[
        str | None, Option("-o", "--out", metavar="OUT", help="A CSV file; by default standard output.")
    ] = None,
    as_json: shared.Json = False,
) -> None:
    """Predict the class of every row, with its probability.

    Prints CSV: a column with the target's name, then probability, then note. The note is `undecided` where
    nothing decides between the best classes, and `sampled` where so many values are missing that the
    probability was estimated. Where the table has the target too, the accuracy is told on standard error.

    With --json: target, classes, rows (list of class, probability, note and, if asked for, probabilities and
    explanation), undecided, sampled (numbers of rows), accuracy.
    """
    learning.require("lbm predict")
    shared.check_place(out)
    from lbm.training.storage.store import load_model

    classifier = load_model(model)
    with learning.opened(data) as table:
        with shared.working("predicting"):
            found = predict_table(classifier, table)
        why = _explanations(classifier, table, found) if explain else None
        _show(classifier, found, why, proba=proba, out=out, as_json=as_json)
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
    probabilities, exact, undecided, truth = zip(*parts, strict=True)
    told = None if truth[0] is None else np.concatenate(truth)
    return Predictions(np.concatenate(probabilities), np.concatenate(exact), np.concatenate(undecided), told)


def _explanations(classifier: LBMClassifier, table: TableFile, found: Predictions) -> Iterator[Explanation]:
    from lbm.training.explanations.explain import explain_rows

    first = 0
    for _, atoms, _ in learning.rows_for(classifier, table):
        yield from explain_rows(
            classifier.network_,
            atoms,
            kinds=found.kinds[first : first + len(atoms)],
            classes=classifier.classes_.tolist(),
        )
        first += len(atoms)


# --- what people and programs read ---------------------------------------------------------------


def _show(
    classifier: LBMClassifier,
    found: Predictions,
    why: Iterator[Explanation] | None,
    *,
    proba: bool,
    out: str | None,
    as_json: bool,
) -> None:
    if out is not None:
        from lbm.knowledge.wire import write_whole

        write_whole(out, _csv(classifier, found, proba))
    if as_json:
        shared.say_json(_facts(classifier, found, why, proba, rows=out is None))
    elif why is not None:
        names = classifier.classes_.tolist()
        for row, (kind, explanation) in enumerate(zip(found.kinds.tolist(), why, strict=True)):
            note = found.note(row)
            sure = f"{found.probabilities[row, kind]:.4f}" + (f", {note}" if note else "")
            shared.say(f"row {row + 1}: {classifier.target_} = {names[kind]} ({sure})")
            shared.say(*(f"  {line}" for line in explanation.text().splitlines()))
    elif out is None:
        for line in _csv(classifier, found, proba):
            print(line, end="")


def _csv(classifier: LBMClassifier, found: Predictions, proba: bool) -> Iterator[str]:
    names = classifier.classes_.tolist()
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    heads = [f"p({classifier.target_} = {name})" for name in names] if proba else ["probability"]
    writer.writerow([classifier.target_, *heads, "note"])
    for row, kind in enumerate(found.kinds.tolist()):
        sure = found.probabilities[row].tolist()
        writer.writerow([names[kind], *(sure if proba else [sure[kind]]), found.note(row)])
        if line.tell() > 1 << 16:
            yield line.getvalue()
            line.seek(0)
            line.truncate()
    yield line.getvalue()


def _facts(
    classifier: LBMClassifier,
    found: Predictions,
    why: Iterator[Explanation] | None,
    proba: bool,
    *,
    rows: bool,
) -> dict[str, Any]:
    names = classifier.classes_.tolist()

    def each() -> Iterator[dict[str, Any]]:
        for row, kind in enumerate(found.kinds.tolist()):
            sure = found.probabilities[row].tolist()
            fact = {"class": names[kind], "probability": sure[kind], "note": found.note(row)}
            if proba:
                fact["probabilities"] = sure
            if why is not None:
                fact["explanation"] = next(why).to_dict()
            yield fact

    return {
        "target": classifier.target_,
        "classes": names,
        "rows": each() if rows or why is not None else iter(()),
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
