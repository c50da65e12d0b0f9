"""A theory on a deep network: published tasks, trained from answers or labels, beside published figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Final

from lbm.trials.networks.published import PUBLISHED, SUM, Published
from lbm.trials.networks.tasks import ADDITION, TASKS, scores_of, task_named
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, filled, prose, wording
from lbm.trials.pictures import Chart, Curve, Picture
from lbm.trials.selecting import different, number, numbers, where
from lbm.trials.words import seconds

NAME: Final = "neural"
TITLE: Final = "Layers: a theory on a deep network"
REVISION: Final = 1
ALONE: Final = False
COLUMNS: Final = columns(
    "task recipe:int seed:int method measure value:float seconds:float processor_seconds:float"
)

VIOLATIONS: Final = "violations"
HERE, THERE = "lbm", "published"


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each task and seed; those of full runs need data sets, and are stored.

    Seed by seed: a run that is cut off has been through all tasks before it repeats one.
    """
    tasks = [task for task in TASKS if task.quick == quick]
    return [
        Piece({"task": task.name, "recipe": task.recipe, "seed": seed}, task.cost, long=not quick)
        for seed in range(max(task.seeds for task in tasks))
        for task in tasks
        if seed < task.seeds
    ]


def measure(key: Key) -> list[Row]:
    """Return a row for each method and measure of a task."""
    task, seed = task_named(str(key["task"])), int(key["seed"])
    begun, busy = time.perf_counter(), time.process_time()
    found = scores_of(task, seed)
    took = {
        "seconds": round(time.perf_counter() - begun, 3),
        "processor_seconds": round(time.process_time() - busy, 3),
    }
    return [
        {**key, "method": score.method, "measure": score.measure, "value": round(score.value, 6), **took}
        for score in found
    ]


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return accuracies of sums as dots, published ones as bars."""
    tasks = [name for name in _tasks(rows, ADDITION) if where(rows, task=name, measure=SUM)]
    if not tasks:
        return []
    means = [statistics.fmean(numbers(where(rows, task=name, measure=SUM), "value")) for name in tasks]
    places = [float(place) for place in range(1, len(tasks) + 1)]
    curves = [Curve(HERE, tuple(places), tuple(means), 0, look="dots")]
    best = [
        (place, one.value) for place, name in zip(places, tasks, strict=True) if (one := _best(name, SUM))
    ]
    if best:
        x, y = zip(*best, strict=True)
        curves.append(Curve("published, best", x, y, 1, look="bars"))
    return [
        Chart(
            name="neural-addition",
            title="Sums of handwritten numbers",
            caption=wording(__name__, "Picture"),
            x_label="images, and digits of each number",
            y_label="sums that are right, %",
            curves=tuple(curves),
            places=tuple(tasks),
        )
    ]


def section(rows: Sequence[Row]) -> Section:
    """Return what networks reach with a theory on top, beside published figures."""
    families = dict.fromkeys(task.family for task in TASKS)
    return Section(
        **prose(__name__),
        findings=tuple(_findings(rows)),
        tables=filled(*(_table(rows, family) for family in families)),
        headline={
            f"{name}, {method}, {what}": round(statistics.fmean(numbers(mine, "value")), 4)
            for name in different(rows, "task")
            for method, what, mine in _measured(rows, name)
        },
    )


def _tasks(rows: Sequence[Row], family: str) -> list[str]:
    """Return the tasks of a family that have rows, in the order of the report."""
    there = set(different(rows, "task"))
    return [task.name for task in TASKS if task.family == family and task.name in there]


def _measured(rows: Sequence[Row], name: str) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield methods and measures of a task with their rows, one for each seed."""
    mine = where(rows, task=name, recipe=task_named(name).recipe)
    for method in different(mine, "method"):
        for what in different(where(mine, method=method), "measure"):
            yield method, what, where(mine, method=method, measure=what)


def _best(name: str, what: str) -> Published | None:
    """Return the best published figure."""
    return max(
        (one for one in PUBLISHED.get(name, ()) if one.measure == what),
        key=lambda one: one.value,
        default=None,
    )


def _table(rows: Sequence[Row], family: str) -> Sheet:
    """Return what was measured for the tasks of a family, each followed by what is published of it."""
    tasks = _tasks(rows, family)
    whats = list(dict.fromkeys(what for name in tasks for _, what, _ in _measured(rows, name)))
    lines = []
    for name in tasks:
        found = list(_measured(rows, name))
        for method in dict.fromkeys(method for method, _, _ in found):
            cells = {
                what: _spread(what, numbers(mine, "value")) for one, what, mine in found if one == method
            }
            some = next(mine for one, _, mine in found if one == method)
            took = statistics.median(numbers(some, "processor_seconds"))
            line = (name, f"{HERE}: {method}", *(cells.get(what, "") for what in whats))
            lines.append((*line, str(len(some)), seconds(took)))
        for system in dict.fromkeys(one.system for one in PUBLISHED.get(name, ())):
            theirs = [one for one in PUBLISHED[name] if one.system == system]
            said = {one.measure: one.figure + ("*" if one.origin == "recalled" else "") for one in theirs}
            line = (name, f"{THERE}: {system}", *(said.get(what, "") for what in whats))
            lines.append((*line, "", ""))
    head = ("task", "system", *whats, "seeds", "processor time of a run")
    return Sheet(
        family[0].upper() + family[1:],
        head,
        tuple(lines),
        left=(0, 1),
        note=wording(__name__, family[0].upper() + family[1:]),
    )


def _spread(what: str, values: Sequence[float]) -> str:
    """Return mean ± standard deviation; violations are counted together."""
    if what == VIOLATIONS:
        return f"{sum(values):,.0f}"
    if what.startswith("readings"):
        return f"{values[0]:,.0f}"
    digits = 2 if what.endswith("%") else 3
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def _findings(rows: Sequence[Row]) -> Iterator[str]:
    for name in different(rows, "task"):
        found = list(_measured(rows, name))
        if not found:
            continue
        what = found[0][1]
        said = [
            f"{method} {_spread(what, numbers(mine, 'value'))}" for method, one, mine in found if one == what
        ]
        best = _best(name, what)
        beside = f"; published, at best: {best.figure} ({best.system})" if best else ""
        once = " (one seed)" if len(found[0][2]) == 1 else ""
        yield f"{name}, {what}{once}: {', '.join(said)}{beside}."
    broken = [row for row in rows if row["measure"] == VIOLATIONS and str(row["method"]).startswith("layer")]
    kept = [row for row in broken if "cell by cell" not in str(row["method"])]
    if kept:
        total = sum(number(row, "value") for row in kept)
        yield f"Predictions of layers that broke their theory, over all tasks and seeds: {total:,.0f}."
