"""What ``lbm predict`` and ``lbm rules`` do with a relational model: no table, and no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbm.errors import FileError, ParseError
from lbm.knowledge.printed import counted, csv_text
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.relations.model import Prediction, RelationalModel
    from lbm.relations.problem import RelationalProblem
    from lbm.relations.prolog.reader import Clause
    from lbm.relations.prolog.terms import Term

TABLES = (".csv", ".parquet", ".tsv", ".feather", ".xlsx")
"""Endings of tables, which a relational model does not read."""


def is_relational(path: str) -> bool:
    """Say whether a file is a relational model."""
    from lbm.training.storage.kinds import kind_of

    return kind_of(path) == "lbm-relational"


@dataclass(frozen=True, slots=True)
class AskedExamples:
    """Examples that are asked about; ``problem`` is the one they are from, ``labels`` what is known."""

    examples: tuple[Term, ...]
    problem: RelationalProblem | None
    labels: tuple[bool, ...] | None


def predict_examples(
    path: str, data: str, *, background: str | None, explain: bool, out: str | None, as_json: bool
) -> None:
    """Predict the examples in a file or of a problem, and print them as CSV, as reasons or as JSON."""
    from lbm.relations.model_file import load_relational
    from lbm.relations.prolog.reader import read_file
    from lbm.relations.prolog.terms import write

    model = load_relational(path)
    asked = _asked(data, model)
    more: list[Clause] = [] if background is None else read_file(background)
    given: Any = asked.examples if asked.problem is None else asked.problem
    with shared.working("predicting"):
        found = model.predict(given, more=more)
        reasons = model.explain(given, more=more) if explain else None
    for warning in found.warnings:
        shared.warn(warning)
    if out is not None:
        from lbm.knowledge.packed import write_whole

        write_whole(out, csv_text(_rows(model, found)))
    if as_json:
        shared.say_json(_facts(model, found, reasons, asked.labels))
    elif reasons is not None:
        for reason, yes, sure in zip(
            reasons, found.labels.tolist(), found.probabilities.tolist(), strict=True
        ):
            said = "yes" if yes else "no"
            shared.say(f"{write(reason.example)}: {said} ({sure if yes else 1 - sure:.4f})")
            shared.say(*(f"  {line}" for line in reason.lines(model)))
    elif out is None:
        for text in csv_text(_rows(model, found)):
            print(text, end="")
    accuracy = _accuracy(found, asked.labels)
    if accuracy is not None:
        shared.remark(f"accuracy {accuracy:.2%} of {counted(len(found.examples), 'example')} of known class")


def print_rules(path: str, *, form: str | None, out: str | None, as_json: bool) -> None:
    """Print the rules of a relational model, as Prolog or in the text format."""
    from lbm.knowledge.packed import write_whole
    from lbm.relations.model_file import load_relational

    model = load_relational(path)
    if form is None:
        form = "lbm" if (out or "").endswith(".lbm") or model.features == "paper" else "prolog"
    text = model.theory() if form == "lbm" else model.prolog()
    if out is not None:
        write_whole(out, [f"{text}\n"])
    if as_json:
        rules = [
            {
                "clause": model.clause(rule),
                "weight": rule.weight,
                "positive": rule.positive,
                "body": [{"column": column, "holds": truth} for column, truth in rule.body],
                "covers": rule.covers,
                "precision": rule.precision if rule.covers else None,
            }
            for rule in model.rules
        ]
        facts = {"target": f"{model.target[0]}/{model.target[1]}", "examples": model.examples}
        shared.say_json({**facts, "rules": rules, form: text})
    elif out is None:
        shared.say(text)


def _asked(data: str, model: RelationalModel) -> AskedExamples:
    from lbm.relations.problem import RelationalProblem
    from lbm.relations.prolog.program import head_and_body
    from lbm.relations.prolog.reader import read_clauses, read_file
    from lbm.relations.prolog.terms import arguments, signature, write_short
    from lbm.relations.sources import names_problem

    if Path(data).suffix.lower() in TABLES:
        raise FileError(
            f"expected examples in a file of Prolog, or a problem, found the table {data}: "
            f"this model is relational, of {model.target[0]}/{model.target[1]}"
        )
    if data != "-" and names_problem(data) and not Path(data).is_file():
        problem = RelationalProblem.load(data)
        return AskedExamples(problem.examples, problem, problem.labels)
    clauses = (
        read_clauses(shared.read_stdin().decode(), source=shared.STANDARD_INPUT)
        if data == "-"
        else read_file(data)
    )
    examples, labels = [], []
    for clause in clauses:
        head, body = head_and_body(clause)
        name = None if head is None else signature(head)
        if head is None or body != "true":
            raise clause.error(f"expected an example, a fact, found {write_short(clause.term)}")
        if name in (("pos", 1), ("neg", 1)) and name != model.target:  # Popper's
            labels.append(name == ("pos", 1))
            head = arguments(head)[0]
        try:
            model.check([head])
        except ParseError as error:
            raise clause.error(error.message) from None
        examples.append(head)
    known = tuple(labels) if labels and len(labels) == len(examples) else None
    return AskedExamples(tuple(examples), None, known)


def _rows(model: RelationalModel, found: Prediction) -> Iterator[list[Any]]:
    from lbm.relations.prolog.terms import write

    yield ["example", model.target[0], "probability"]
    for example, yes, sure in zip(
        found.examples, found.labels.tolist(), found.probabilities.tolist(), strict=True
    ):
        yield [write(example), yes, sure if yes else 1 - sure]


def _accuracy(found: Prediction, labels: tuple[bool, ...] | None) -> float | None:
    if not labels:
        return None
    right = sum(bool(a) == b for a, b in zip(found.labels.tolist(), labels, strict=True))
    return right / len(labels)


def _facts(
    model: RelationalModel, found: Prediction, reasons: Any, labels: tuple[bool, ...] | None
) -> dict[str, Any]:
    from lbm.relations.prolog.terms import write

    rows = []
    for row, example in enumerate(found.examples):
        fact: dict[str, Any] = {
            "example": write(example),
            "class": bool(found.labels[row]),
            "probability": float(found.probabilities[row]),
            "log_odds": float(found.log_odds[row]),
        }
        if reasons is not None:
            fact["explanation"] = reasons[row].facts(model)
        rows.append(fact)
    return {
        "target": f"{model.target[0]}/{model.target[1]}",
        "rows": rows,
        "accuracy": _accuracy(found, labels),
        "warnings": list(found.warnings),
    }
