"""Runs that survive: training from a file, saved as it goes, taken up where it was left.

A checkpoint holds all that a run is made of, and what it was made from. Taken up with the same data, options
and number of threads it ends bit for bit as a run that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from lbm.knowledge.packed import write_whole
from lbm.machine.files import check_arrays, check_keys, pack, refuse, shown, theory_text, typed, unpack
from lbm.training.boltzmann.knowledge import Knowledge
from lbm.training.data.examples import Examples
from lbm.training.gradients.copies import LEARNED
from lbm.training.gradients.descent import COPIED, Progress, from_state, to_state
from lbm.training.learners.classifier import LBMClassifier, TrainingRun, few_threads
from lbm.training.learners.classifier import prepare as begin_run
from lbm.training.storage.store import plain, read_history, theory_of

if TYPE_CHECKING:
    from lbm.machine.files import Array

FORMAT: Final = "lbm-checkpoint"

EVERY_SECONDS: Final = 10.0
"""Time between two checkpoints within an epoch."""

FREE: Final = ("threads", "torch")
"""Facts that may differ: the result then differs in its last digits."""

BUDGETS: Final = ("knowledge", "max_epochs", "max_seconds", "target", "verbose")
"""Parameters that say how long, not what, or are told otherwise: a run may be taken up with other budgets."""

_NUMBERS: Final[dict[str, type[int] | type[float]]] = {
    "updates": int, "epoch": int, "position": int, "stale": int, "total": float, "seconds": float
}  # fmt: skip
_ENDS: Final = (None, "epochs", "patience", "seconds")


def prepare(classifier: LBMClassifier, examples: Examples) -> TrainingRun:
    """Return the run of ``classifier.fit`` on these examples, not begun, with what it is made from."""
    run = begin_run(classifier, examples)
    return replace(run, facts=_facts(run, examples))


def train(
    run: TrainingRun,
    progress: Progress,
    path: str | Path | None = None,
    *,
    every_seconds: float = EVERY_SECONDS,
    on_step: Callable[[Progress], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Descend to the end, or until ``stop`` says so; return whether it was the end.

    A checkpoint is written to ``path`` after every epoch, after ``every_seconds`` of a long one, and when
    it is told to stop; ``on_step`` is called after every batch.
    """
    saved = monotonic()
    with few_threads(run.data):
        for _ in run.steps(progress):
            stopping = stop()
            due = progress.position == 0 or monotonic() - saved >= every_seconds
            if path is not None and (due or stopping):
                save_checkpoint(run, progress, path)
                saved = monotonic()
            on_step(progress)
            if stopping:
                return False
    return True


def _facts(run: TrainingRun, examples: Examples) -> dict[str, Any]:
    """Return what a run is made from, by name."""
    classifier, plan = run.classifier, run.plan
    digest = blake2b(digest_size=16)
    for part in (examples.atoms, examples.kinds):
        digest.update(np.ascontiguousarray(part).data)
    layout = examples.layout
    state = None if layout.encoder is None else layout.encoder.to_state()["columns"]
    given = classifier.get_params(deep=False)
    return {
        "rows": len(examples.kinds),
        "columns": list(layout.columns),
        "encoder": state,
        "values": digest.hexdigest(),
        "target": examples.target,
        "classes": [str(kind) for kind in examples.classes.tolist()],
        "knowledge": _given_text(classifier.network_.knowledge),
        "atoms": list(classifier.atoms_),
        **{name: plain(given[name], name) for name in sorted(given) if name not in BUDGETS},
        "batch_size": plan.batch_size,
        "seed": plan.seed,
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
    }


def _given_text(knowledge: Knowledge) -> str:
    """Return the formulae that were there before training, in the text format."""
    theory = theory_of(knowledge, given=True)
    return "" if theory is None else theory_text(theory)


# --- checkpoints ---------------------------------------------------------------------------------


def checkpoint_path(model: str | Path) -> Path:
    """Return where the checkpoint of a model in the making is."""
    return Path(f"{model}.checkpoint")


def save_checkpoint(run: TrainingRun, progress: Progress, path: str | Path) -> None:
    """Write where a run stands to a file, whole or not at all."""
    tensors, state = to_state(progress)
    arrays = {name: values.detach().cpu().numpy() for name, values in tensors.items()}
    write_whole(path, [pack(FORMAT, {"run": dict(run.facts), "state": state}, arrays)], as_it_is=True)


def load_checkpoint(
    run: TrainingRun, path: str | Path, *, warn: Callable[[str], object] = lambda _: None
) -> Progress:
    """Return where a run stood; a checkpoint of another run is an error that says what differs.

    ``warn`` is told if the number of threads, or torch, is another: the result may then differ in its last
    digits.
    """
    where = str(path)
    document, arrays = unpack(path, FORMAT)
    check_keys(document, ("run", "state"), "a checkpoint", where)
    check_keys(document["run"], run.facts, "the facts of a run", where)
    for name, now in run.facts.items():
        then = document["run"][name]
        if then == now:
            continue
        if name not in FREE:
            refuse(
                where,
                f"expected a checkpoint of this run, found one with {_difference(name, then, now)}: "
                "give the same data and options, or begin anew without --resume",
            )
        warn(f"{where}: {_difference(name, then, now)}: the result may differ in its last digits")
    _check_state(document["state"], run, where)
    _check_tensors(arrays, run, where)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    progress = from_state(run.classifier.network_, tensors, document["state"])
    # A run that used up its budget goes on with a larger one.
    more_epochs = progress.finished == "epochs" and run.plan.max_epochs > progress.epoch
    seconds = run.plan.max_seconds
    more_time = progress.finished == "seconds" and (seconds is None or seconds > progress.seconds)
    if more_epochs or more_time:
        progress.finished = None
    return progress


def _difference(name: str, then: Any, now: Any) -> str:
    """Return in words how a fact differs."""
    if name == "values":
        return "other values in the table"
    if name == "encoder" and isinstance(then, list) and isinstance(now, list):
        return "another encoder"
    if isinstance(then, list) and isinstance(now, list):
        added, gone = ([v for v in a if v not in b] for a, b in ((then, now), (now, then)))
        apart = f": {shown(added or 'none')} instead of {shown(gone or 'none')}" if added or gone else ""
        return f"other {name}{apart}"
    if name == "knowledge":
        return "other knowledge"
    return f"{name} {shown(then)}, now {shown(now)}"


def _check_state(state: Any, run: TrainingRun, where: str) -> None:
    check_keys(state, (*_NUMBERS, "best_cost", "finished", "history"), "the state of a run", where)
    for name, kind in _NUMBERS.items():
        typed(state[name], kind, name, where)
        if name != "total" and state[name] < 0:
            refuse(where, f"expected {name} from 0 up, found {shown(state[name])}")
    if state["position"] > len(run.train):
        refuse(where, f"expected a position up to {len(run.train)}, found {state['position']}")
    if state["best_cost"] is not None:
        typed(state["best_cost"], float, "best_cost", where)
    if state["finished"] not in _ENDS:
        refuse(where, f"expected a reason to stop, found {shown(state['finished'])}")
    if len(read_history(state["history"], where)) != state["epoch"]:
        refuse(where, f"expected {state['epoch']} epochs in the history, found another number")


def _check_tensors(arrays: Mapping[str, Array], run: TrainingRun, where: str) -> None:
    """Check that the arrays of a checkpoint have the shapes of this machine."""
    network = run.classifier.network_
    groups = ("parameter", "first", "second", "best")
    shapes: dict[str, tuple[int, ...]] = {
        f"{group}.{name}": tuple(values.shape)
        for group in groups
        if group != "best" or any(key.startswith("best.") for key in arrays)
        for name, values in network.named_parameters()
    }
    if run.held is not None:
        own = {name: tuple(network.get_parameter(name).shape) for name in LEARNED}
        count = run.held.inside.shape[1]
        many = {name: (*shape[:-1], count, shape[-1]) for name, shape in own.items()}
        shapes = {name: shape for name, shape in shapes.items() if not name.startswith("best.")}
        if any(key.startswith("best.") for key in arrays):
            shapes |= {f"best.{name}": shape for name, shape in own.items()}
        if any(key.startswith("copies.") for key in arrays):
            shapes |= {f"copies.{kind}.{name}": shape for kind in COPIED for name, shape in many.items()}
    given = dict(arrays)
    x, kinds = given.pop("chains.x", None), given.pop("chains.kinds", None)
    dtype = np.dtype(str(network.weights.dtype).removeprefix("torch."))
    check_arrays(given, shapes, dtype, where)
    if (x is None) != (kinds is None):
        refuse(where, "expected states and classes of chains, found one without the other")
    if x is not None and kinds is not None:
        check_arrays({"chains.x": x}, {"chains.x": (len(kinds), network.weights.shape[0])}, dtype, where)
        if kinds.ndim != 1 or kinds.dtype != np.int64 or not ((kinds >= 0) & (kinds < network.classes)).all():
            refuse(where, f"expected numbers of {network.classes} classes in chains.kinds, found others")
