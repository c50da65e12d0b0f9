"""The paper's Table 1: learning seven relational sets, under the paper's protocol and under an honest one."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Final

from lbm.trials.learners.aleph import ALEPH, LIMIT, LIMIT_MADE, aleph_fold, has_aleph
from lbm.trials.learners.fits import CLASSICAL, EPOCHS, LEARNERS, SETTINGS, shown
from lbm.trials.learners.protocols import NEIGHBOURS, believed, chosen, judge_fold
from lbm.trials.learners.relational import (
    GROUPED,
    OWN,
    STRICT,
    fold_names,
    is_order,
    learn_fold,
    problem_named,
)
from lbm.trials.learners.sets import MADE, SETS, UNEVEN, paper_table
from lbm.trials.learners.standing import (
    BEST,
    BEST_GROUPED,
    BEST_STRICT,
    OURS,
    PUBLISHED,
    findings,
    headline,
    seed_means,
    sets_of,
    tables,
)
from lbm.trials.part import Key, Piece, Row, Section, columns, prose, wording
from lbm.trials.pictures import Chart, Curve, Picture
from lbm.trials.selecting import different, where

if TYPE_CHECKING:
    from lbm.training.relational.scores import Scores
    from lbm.trials.part import Value

NAME: Final = "table"
TITLE: Final = "Learning: seven relational sets, two protocols"
REVISION: Final = 6
ALONE: Final = False
COLUMNS: Final = columns(
    "set learner seed:int fold setting epoch:int examples:int columns:int fits:int paper:float "
    "honest:float without_rules:float balanced:float f1:float auc_pr:float seconds:float"
)

SEEDS: Final = 5
QUICK_EPOCHS: Final = 10

ALL_SETTINGS: Final = ("mutagenesis", "uwcse", UNEVEN)
"""Sets on which our best chooses among all settings; on others between two, for time."""

# Seconds on one core: of a fold, with all settings and both protocols; of Aleph, all folds. Our best takes no
# longer with other folds than a set's own.
COST: Final = {
    "mutagenesis": {"CILP++": 0.3, "machine": 3.0, "other": 0.8, BEST: 40.0, ALEPH: 300.0},
    "krk": {"CILP++": 0.4, "machine": 2.0, "other": 0.8, BEST: 10.0, ALEPH: 60.0},
    "uwcse": {"CILP++": 0.4, "machine": 2.5, "other": 0.8, BEST: 30.0, ALEPH: 400.0},
    UNEVEN: {"CILP++": 6.0, "machine": 7.0, "other": 3.0, BEST: 30.0},
    "alz_amine": {"CILP++": 2.0, "machine": 4.5, "other": 1.5, BEST: 10.0, ALEPH: 600.0},
    "alz_acetyl": {"CILP++": 6.0, "machine": 8.0, "other": 4.0, BEST: 10.0, ALEPH: 2000.0},
    "alz_memory": {"CILP++": 2.0, "machine": 4.5, "other": 1.5, BEST: 10.0, ALEPH: 700.0},
    "alz_toxic": {"CILP++": 4.0, "machine": 5.0, "other": 2.0, BEST: 10.0, ALEPH: 450.0},
    "family": {"CILP++": 0.05, "machine": 0.2, "other": 0.3, BEST: 1.0, ALEPH: 1.0},
    "chess": {"CILP++": 0.05, "machine": 0.3, "other": 0.3},
    "order": {BEST: 1.0},
}


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each set, learner and seed, and for each fold of our best; quick: two made sets."""
    found = []
    for name in MADE if quick else (*SETS, UNEVEN):
        for learner, seed in product(LEARNERS, range(1 if quick else SEEDS)):
            key = {"set": name, "learner": learner, "seed": seed}
            found.append(Piece(key, _cost(name, learner) * _folds(name)))
    for name in ("family", "order") if quick else (*SETS, UNEVEN):
        for learner in OURS if is_order(name) and not quick else (BEST,):
            for seed, fold in product(range(1 if quick else SEEDS), fold_names(name)[: 2 if quick else None]):
                key = {"set": name, "learner": learner, "seed": seed, "fold": fold}
                found.append(Piece(key, COST[name][BEST]))
    if has_aleph():
        for name in ("family",) if quick else SETS:
            key = {"set": name, "learner": ALEPH, "seed": 0}
            found.append(Piece(key, COST[name][ALEPH], long=not quick))  # nothing of ours is in it
    return found


def _folds(name: str) -> int:
    return 3 if name in MADE else 5 if name.startswith("uwcse") else 10


def _cost(name: str, learner: str) -> float:
    return COST[name]["other" if learner in CLASSICAL else learner if learner == "CILP++" else "machine"]


def measure(key: Key) -> list[Row]:
    """Return a row for each fold and setting; ``honest`` is empty for settings that were not chosen."""
    name, learner, seed = str(key["set"]), str(key["learner"]), int(key["seed"])
    if learner in OURS:
        return [_best(key)]
    if learner == ALEPH:
        return _aleph(key)
    from lbm.training.relational.scores import score

    table = paper_table(name)
    rows: list[Row] = []
    for fold in table.fold_names:
        begun = time.perf_counter()
        epochs = QUICK_EPOCHS if name in MADE else EPOCHS
        judged = judge_fold(table, fold, learner, seed=seed, epochs=epochs)
        took = (time.perf_counter() - begun) / len(judged)
        labels = table.labels[table.folds == fold]
        taken = chosen(judged)
        for one in judged:
            odds = one.log_odds if name == UNEVEN else believed(one)  # there accuracy is not what counts
            scores = score(odds, labels) if one is taken else None
            sizes: Row = {"examples": len(labels), "columns": table.cells.shape[1], "fits": 2}
            said: Row = {"setting": shown(one.setting), "epoch": one.epoch, "paper": round(one.best, 6)}
            rows.append(_row({**key, "fold": fold}, scores, took, **sizes, **said))
    return rows


def _row(key: Key, scores: Scores | None, seconds: float, **rest: Value) -> Row:
    """Return a row: what is not said of a fold is empty, and so are scores of what was not chosen."""
    scored = {} if scores is None else {
        "honest": scores.accuracy,
        "balanced": scores.balanced_accuracy,
        "f1": scores.f1,
        "auc_pr": scores.precision_area,
    }  # fmt: skip
    known = {name: round(value, 6) for name, value in scored.items() if not math.isnan(value)}
    return {**dict.fromkeys(COLUMNS), **key, **known, "seconds": round(seconds, 3), **rest}


def _best(key: Key) -> Row:
    name, learner, fold = str(key["set"]), str(key["learner"]), str(key["fold"])
    begun = time.perf_counter()
    order, rules = is_order(name), is_order(name) and learner == BEST
    done = learn_fold(
        problem_named(name),
        fold,
        seed=int(key["seed"]),
        order=order,
        rules=rules,
        folds={BEST: OWN, BEST_GROUPED: GROUPED, BEST_STRICT: STRICT}[learner],
        few=name not in ALL_SETTINGS,
        small=name in (*MADE, "order"),
    )
    tested = done.tested
    used = {"size": tested.setting.size, "rate": tested.setting.learning_rate, "l2": tested.setting.l2}
    return _row(
        key,
        tested.scores,
        time.perf_counter() - begun,
        setting=shown(used) + (f" rules={tested.share:.3f}" if rules else ""),
        examples=tested.examples,
        columns=tested.columns,
        fits=done.fits,
        without_rules=round(tested.alone.accuracy, 6) if rules else None,
    )


def _aleph(key: Key) -> list[Row]:
    """Return a row for each fold up to the first that is not done in time: the others would be no faster."""
    name = str(key["set"])
    rows: list[Row] = []
    for fold in fold_names(name)[: 1 if name in MADE else None]:
        begun = time.perf_counter()
        done = aleph_fold(name, fold, seconds=LIMIT_MADE if name in MADE else LIMIT)
        said = "time-out" if done.scores is None else f"clauses={done.rules}"
        row = _row({**key, "fold": fold}, done.scores, time.perf_counter() - begun, setting=said, fits=1)
        rows.append({**row, "examples": done.examples, "auc_pr": None})  # it gives no odds to rank by
        if done.scores is None:
            break
    return rows


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return honest accuracies of every set as dots, a picture."""
    names = sets_of(rows)
    if not names:
        return []
    curves = []
    for colour, learner in enumerate((*LEARNERS, BEST)):
        points = [(place, means) for place, name in enumerate(names, start=1)
                  if (means := seed_means(rows, name, learner))]  # fmt: skip
        if points:
            x = tuple(place + 0.07 * (colour - 4) for place, _ in points)
            y = tuple(100 * sum(means) / len(means) for _, means in points)
            curves.append(Curve(learner, x, y, colour, look="dots"))
    published = [(place, max(column[SETS.index(name)] for column in PUBLISHED.values()))
                 for place, name in enumerate(names, start=1) if name in SETS]  # fmt: skip
    if published:
        x = tuple(float(place) for place, _ in published)
        y = tuple(score for _, score in published)
        curves.append(Curve("published, best of row", x, y, len(LEARNERS) + 1, look="bars"))
    return [
        Chart(
            name="table-honest",
            title="Accuracy under the honest protocol",
            caption=wording(__name__, "Picture"),
            x_label="set",
            y_label="accuracy, %",
            curves=tuple(curves),
            places=tuple(names),
        )
    ]


def section(rows: Sequence[Row]) -> Section:
    """Return accuracies under both protocols, beside published ones, with tests and ranks."""
    words = prose(
        __name__,
        best=BEST,
        grouped=BEST_GROUPED,
        strict=BEST_STRICT,
        uneven=UNEVEN,
        settings=len(SETTINGS["LBM"]),
        epochs=EPOCHS,
        quick_epochs=QUICK_EPOCHS,
        neighbours=NEIGHBOURS,
        all_settings=", ".join(ALL_SETTINGS),
        aleph=_about_aleph(rows),
    )
    return Section(
        **words,
        findings=tuple(findings(rows)),
        tables=tables(rows),
        headline=headline(rows),
    )


def _about_aleph(rows: Sequence[Row]) -> str:
    mine = where(rows, learner=ALEPH)
    if not mine:
        return "Aleph was not run: its figures are the published ones."
    sets = ", ".join(different(mine, "set"))
    return wording(__name__, "Aleph", sets=sets, minutes=LIMIT / 60, seconds=LIMIT_MADE)
