"""``lbm train``: a machine that starts from rules and improves with data."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from lbm.knowledge.printed import counted
from lbm.views.commands import learning, shared

if TYPE_CHECKING:
    from pathlib import Path

    from lbm.knowledge.theory import Theory
    from lbm.training.data.examples import Examples
    from lbm.training.gradients.descent import Progress
    from lbm.training.gradients.epochs import Epoch
    from lbm.training.learners.classifier import LBMClassifier, TrainingRun


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """The options that are parameters of the classifier, under its names for them."""

    hidden: learning.Hidden = 50
    max_epochs: Annotated[int, Option("--epochs", min=0, help="Passes over the rows, at most.")] = 200
    max_seconds: Annotated[
        float | None, Option("--seconds", callback=shared.positive, help="Time for training, at most.")
    ] = None
    learning_rate: Annotated[float, Option("--learning-rate", callback=shared.positive, help="Adam's.")] = (
        0.01
    )
    batch_size: Annotated[
        int | None,
        Option("--batch-size", min=1, help="Rows between two updates; by default 8 to 256, by their number."),
    ] = None
    confidence: Annotated[
        float,
        Option("--confidence", callback=shared.positive, help="What rules without a weight begin with."),
    ] = 5.0
    hard: Annotated[
        bool, Option("--hard", help="Rules without a weight are hard: no data outweigh them.")
    ] = False
    odd_cells: Annotated[
        str,
        shared.one_of(
            ("text", "missing"),
            "--odd-cells",
            "What a few cells are that are no numbers in a column of them.",
        ),
    ] = "text"
    units: Annotated[
        str,
        shared.one_of(
            ("calibrated", "paper"), "--units", "A rule's weight is its log-odds; or the units of the paper."
        ),
    ] = "calibrated"
    conjectures: Annotated[
        int,
        Option(
            "--conjectures", min=0, help="Rules at most to add that look like those known and fit the rows."
        ),
    ] = 0
    cost: Annotated[
        str, shared.one_of(("discriminative", "generative", "hybrid"), "--cost", "What training makes small.")
    ] = "discriminative"


def train_model(
    data: learning.Table,
    *,
    target: Annotated[str, Option("--target", metavar="COLUMN", help="The column that holds the classes.")],
    output: Annotated[str, Option("-o", "--output", metavar="MODEL", help="Where the model goes.")],
    knowledge: Annotated[
        str | None,
        Option("--knowledge", metavar="FILE", help="Rules over columns and target: .lbm, .cnf or .wcnf."),
    ] = None,
    training: TrainingOptions,
    resume: Annotated[
        bool, Option("--resume", help="Go on from MODEL.checkpoint; without one, begin.")
    ] = False,
    plot: Annotated[
        str | None,
        Option("--plot", metavar="OUT", help="A picture of the learning curve: .svg, .png or .pdf."),
    ] = None,
    lenient: shared.Lenient = False,
    as_json: shared.Json = False,
    seed: Annotated[int, Option("--seed", min=0, help="The same seed and data, the same model.")] = 0,
) -> None:
    """Train a classifier on a table, starting from rules if there are some.

    Columns of 0, 1 and missing values are atoms by their names; others become atoms such as 'age <= 30' and
    'colour = red', chosen from the first 100,000 rows. With two classes the target is an atom, true for the
    second in order; with more there is an atom 'target = class' for each.

    After every epoch, and every 10 seconds of a long one, the run is kept in MODEL.checkpoint. Interrupted or
    killed, it goes on with --resume and the same options, and ends with the same model, bit for bit. A larger
    --epochs or --seconds may be given then.

    With --json: model, rows, columns, atoms (their numbers), left_out (names of columns), target, classes,
    hidden, epochs, stopped (patience, epochs or seconds), seconds, validation_rows, validation_accuracy,
    validation_cost, learned (rules about bins that data brought), free_units (those with something to say),
    confidences (list of formula, before, after, fixed; rows it fires on, share right, lift), broken (list of
    formula, rows and the first of them).
    """
    learning.require("lbm train")
    shared.check_place(output)
    if plot is not None:
        from lbm.views import plots

        plots.check_picture(plot)
        shared.check_place(plot)
    if data == "-" == knowledge:
        raise typer.BadParameter("standard input can be the data or the knowledge, not both")
    theory = None if knowledge is None else shared.read_theory(knowledge, lenient=lenient)
    with shared.working("reading the table"):
        from lbm.training.learners.classifier import LBMClassifier
        from lbm.training.storage.checkpoint import checkpoint_path, prepare
        from lbm.training.storage.store import save_model

        with learning.plainly():
            classifier = LBMClassifier(knowledge=theory, target=target, random_state=seed, **asdict(training))
            examples = _read(data, target, theory, classifier)
            run = prepare(classifier, examples)
    kept = checkpoint_path(output)
    progress = _descend(run, kept, resume)
    spent = progress.seconds
    run.finish(progress)
    save_model(classifier, output)
    kept.unlink(missing_ok=True)
    if plot is not None:
        from lbm.views import curves

        plots.save_picture(lambda: curves.learning_curve(classifier.history_), plot, warn=shared.warn)
    facts = _facts(classifier, examples, run, output, spent)
    if as_json:
        shared.say_json(facts)
    else:
        shared.say(*_lines(facts))


def _read(data: str, target: str, theory: Theory | None, classifier: LBMClassifier) -> Examples:
    from lbm.knowledge.formula import atoms_of
    from lbm.training.data.examples import read_examples

    mentioned = () if theory is None else atoms_of(*(statement.formula for statement in theory))
    with learning.opened(data) as table, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        found = read_examples(
            table, target, mentioned=mentioned, odd=classifier.odd_cells, cuts=classifier.cuts
        )
    for warning in told:
        shared.warn(str(warning.message).replace("odd_cells='missing'", "--odd-cells missing"))
    return found


# --- while it runs -------------------------------------------------------------------------------


def _descend(run: TrainingRun, path: Path, resume: bool) -> Progress:
    """Train to the end; interrupted, say how to go on."""
    from lbm.training.gradients.descent import begin
    from lbm.training.storage.checkpoint import load_checkpoint, train

    if resume and path.exists():
        progress = load_checkpoint(run, path, warn=shared.warn)
        done = f"epoch {progress.epoch + 1}, row {progress.position:,}"
        shared.remark(f"going on from {path}: {done}")
    else:
        if resume:
            shared.remark(f"there is no {path}: training begins anew")
        elif path.exists():
            shared.warn(f"{path} holds a run that did not end: it is replaced")
        progress = begin(run.classifier.network_)
    with interrupts_noted() as stop, _bar(run) as show:
        ended = train(run, progress, path, on_step=show, stop=stop)
    if not ended:
        shared.remark(f"the run is kept in {path}: the same command with --resume goes on")
        raise KeyboardInterrupt
    return progress


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed; pressed twice, it interrupts at once.

    So a batch is never left half done, and what is kept is a place to go on from.
    """
    pressed = False

    def note(*_: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar(run: TrainingRun) -> Iterator[Callable[[Progress], object]]:
    """Give what is called after every batch: on a terminal it moves a bar, in a pipe it does nothing."""
    plan, rows = run.plan, max(1, len(run.train))
    with shared.bar("", 1.0, "elapsed", "left", "at most left") as move:

        def show(progress: Progress) -> None:
            done = (progress.epoch + progress.position / rows) / max(1, plan.max_epochs)
            if plan.max_seconds is not None:
                done = max(done, progress.seconds / plan.max_seconds)
            move(min(done, 1.0), description=describe(progress))

        yield show


def describe(progress: Progress) -> str:
    """Return where a run stands, in one line: the epoch, its loss, and the last validation score."""
    words = [f"epoch {progress.epoch + (progress.position > 0)}"]
    if progress.position:
        words.append(f"loss {progress.total / progress.position:.4f}")
    elif progress.history:
        words.append(f"loss {progress.history[-1].cost:.4f}")
    if progress.history and progress.history[-1].validation_accuracy is not None:
        words.append(f"validation {progress.history[-1].validation_accuracy:.2%}")
    return ", ".join(words)


# --- what came of it -----------------------------------------------------------------------------


def best_epoch(history: tuple[Epoch, ...]) -> Epoch | None:
    """Return the epoch whose parameters were kept, if rows were put aside to judge by."""
    judged = [epoch for epoch in history if epoch.validation_cost is not None]
    return min(judged, key=lambda epoch: epoch.validation_cost or 0.0) if judged else None


def _facts(
    classifier: LBMClassifier, examples: Examples, run: TrainingRun, output: str, spent: float
) -> dict[str, Any]:
    layout, best = classifier.layout_, best_epoch(classifier.history_)
    accuracy = None if best is None else best.validation_accuracy
    cost = None if best is None else best.validation_cost
    before = None if run.held is None else run.held.before
    free = True
    if before is not None and not classifier.network_.label_weights.any():
        (cost, accuracy), free = before, False
    return {
        "model": output,
        "rows": len(examples.kinds),
        "columns": len(layout.columns),
        "atoms": len(layout.atoms),
        "left_out": [*layout.constant, *layout.empty],
        "target": classifier.target_,
        "classes": classifier.classes_.tolist(),
        "hidden": classifier.hidden,
        "epochs": len(classifier.history_),
        "stopped": classifier.stopped_,
        "seconds": round(spent, 3),
        "validation_rows": len(run.validation),
        "validation_accuracy": accuracy,
        "validation_cost": cost,
        "learned": len(classifier.learned_),
        "free_units": classifier.hidden if free else 0,
        "confidences": [
            {
                "formula": c.formula,
                "before": c.initial,
                "after": c.final,
                "fixed": c.fixed,
                "rows": c.rows,
                "right": c.right,
                "lift": c.lift,
            }
            for c in classifier.confidences_
        ],
        "broken": [
            {"formula": b.formula, "rows": b.count, "first": [row + 1 for row in b.rows[:5]]}
            for b in classifier.broken_
        ],
    }


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    classes = ", ".join(map(str, facts["classes"][:10])) + (", ..." if len(facts["classes"]) > 10 else "")
    yield ", ".join(counted(facts[f"{what}s"], what) for what in ("row", "column", "atom"))
    if left := facts["left_out"]:
        names = ", ".join(left[:10]) + (f" and {len(left) - 10:,} more" if len(left) > 10 else "")
        yield f"left out, since they hold one value or none: {names}"
    yield f"{facts['target']}: {counted(len(facts['classes']), 'class', 'classes')}: {classes}"
    yield f"{counted(facts['epochs'], 'epoch')} in {facts['seconds']:.1f} s, ended by {facts['stopped']}"
    if facts["validation_accuracy"] is not None:
        aside = counted(facts["validation_rows"], "row")
        yield f"validation accuracy {facts['validation_accuracy']:.2%} of {aside} not seen"
    else:
        yield "validation: none, every row was trained on"
    if rules := facts["confidences"]:
        yield "confidences of the rules, before and after:"
        from lbm.knowledge.printed import how_many_listed, table

        shown = how_many_listed(rules)
        rows = (
            (f"{r['before']:.3g}", f"{r['after']:.3g}", _moved(r), _said(r), r["formula"])
            for r in rules[:shown]
        )
        yield from table(rows, right=(0, 1))
        if shown < len(rules):
            yield f"  and {len(rules) - shown:,} more: --json lists them"
    if facts["learned"]:
        yield f"rules about bins of columns that data brought: {facts['learned']:,}"
    if not facts["free_units"] and facts["validation_cost"] is not None and facts["hidden"]:
        yield "free units have nothing to say: rows not seen speak against every epoch of them"
    for part in facts["broken"]:
        which = ", ".join(map(str, part["first"])) + (", ..." if part["rows"] > len(part["first"]) else "")
        yield f"broken by {counted(part['rows'], 'row')} ({which}): {part['formula']}"
    yield f"written to {facts['model']}"


def _said(rule: dict[str, Any]) -> str:
    """Return what rows say of a rule, where that is known."""
    if rule["rows"] is None:
        return ""
    words = [counted(rule["rows"], "row")]
    if rule["right"] is not None:
        words.append(f"{rule['right']:.0%} right")
    if rule["lift"] is not None:
        words.append(f"lift {rule['lift']:.2f}")
    return ", ".join(words)


def _moved(rule: dict[str, Any]) -> str:
    """Return what became of a rule: one that lost half of its confidence has fallen."""
    if rule["fixed"]:
        return "fixed"
    if rule["after"] < rule["before"] / 2:
        return "fallen"
    return "risen" if rule["after"] > 2 * rule["before"] else ""
