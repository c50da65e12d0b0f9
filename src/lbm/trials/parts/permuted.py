"""Labels that say nothing: what each protocol makes of them, and so what choosing on test folds is worth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from lbm.trials.learners.comparing import interval_99, percent, percent_spread
from lbm.trials.learners.fits import EPOCHS, SETTINGS
from lbm.trials.learners.protocols import believed, chosen, judge_fold
from lbm.trials.learners.sets import MADE, SETS, paper_table, permuted
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, filled, prose
from lbm.trials.pictures import Chart, Curve, Picture
from lbm.trials.selecting import different, numbers, where

NAME: Final = "permuted"
TITLE: Final = "Random labels: what choosing on test folds is worth"
REVISION: Final = 6
ALONE: Final = False
COLUMNS: Final = columns(
    "set permutation:int folds:int majority:float honest:float balanced:float all_believed:float "
    "paper:float seconds:float"
)

PERMUTATIONS: Final = 20
FOLDS: Final = 10
QUICK_FOLDS: Final = 3
QUICK_EPOCHS: Final = 8

COST: Final = {
    "mutagenesis": 25.0,
    "krk": 15.0,
    "uwcse": 20.0,
    "alz_amine": 35.0,
    "alz_acetyl": 70.0,
    "alz_memory": 35.0,
    "alz_toxic": 50.0,
    "family": 0.5,
    "chess": 0.7,
}


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each set and permutation; quick: three of two made sets."""
    names = MADE if quick else SETS
    return [
        Piece({"set": name, "permutation": number}, COST[name])
        for name in names
        for number in range(3 if quick else PERMUTATIONS)
    ]


def measure(key: Key) -> list[Row]:
    """Return a row: accuracies of LBM on permuted labels under both protocols, over all test rows."""
    from lbm.training.relational.scores import score

    name, number = str(key["set"]), int(key["permutation"])
    begun = time.perf_counter()
    folds = QUICK_FOLDS if name in MADE else FOLDS
    table = permuted(paper_table(name), folds=folds, seed=number)
    odds, plain = np.zeros(len(table.labels)), np.zeros(len(table.labels))
    best = np.zeros(len(SETTINGS["LBM"]))
    for fold in table.fold_names:
        test = table.folds == fold
        judged = judge_fold(table, fold, "LBM", seed=number, epochs=QUICK_EPOCHS if name in MADE else EPOCHS)
        taken = chosen(judged)
        odds[test], plain[test] = believed(taken), taken.log_odds
        best += np.array([one.best for one in judged]) * test.mean()
    scores = score(odds, table.labels)
    share = float(table.labels.mean())
    return [
        {
            **key,
            "folds": folds,
            "majority": round(max(share, 1 - share), 6),
            "honest": round(scores.accuracy, 6),
            "balanced": round(scores.balanced_accuracy, 6),
            "all_believed": round(score(plain, table.labels).balanced_accuracy, 6),
            "paper": round(float(best.max()), 6),
            "seconds": round(time.perf_counter() - begun, 3),
        }
    ]


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return what is left above the majority rate under both protocols, a picture."""
    names = different(rows, "set")
    if not names:
        return []
    curves = []
    for colour, column in enumerate(("paper", "honest")):
        excess = [_excess(where(rows, set=name), column) for name in names]
        ends = [interval_99(values) if len(values) > 1 else (values[0], values[0]) for values in excess]
        curves.append(
            Curve(
                f"{column} protocol",
                tuple(place + 0.1 * colour - 0.05 for place in range(1, len(names) + 1)),
                tuple(100 * statistics.fmean(values) for values in excess),
                colour,
                tuple(100 * low for low, _ in ends),
                tuple(100 * high for _, high in ends),
                look="dots",
            )
        )
    return [
        Chart(
            name="permuted",
            title="Accuracy above the majority rate on labels that say nothing",
            caption="Mean over permutations, with its 99 % interval. 0 is what can be had.",
            x_label="set",
            y_label="points above the majority rate",
            curves=tuple(curves),
            places=tuple(names),
        )
    ]


def section(rows: Sequence[Row]) -> Section:
    """Return both protocols beside the majority rate."""
    table = _table(rows)
    words = prose(
        __name__, settings=len(SETTINGS["LBM"]), epochs=EPOCHS, quick_epochs=QUICK_EPOCHS, folds=_folds(rows)
    )
    findings = tuple(_findings(rows))
    return Section(**words, findings=findings, tables=filled(table), headline=_headline(rows))


def _table(rows: Sequence[Row]) -> Sheet:
    lines = []
    for name in different(rows, "set"):
        mine = where(rows, set=name)
        low, high = interval_99(_excess(mine, "honest"))
        lines.append(
            (
                name,
                f"{len(mine)}",
                percent(statistics.fmean(numbers(mine, "majority"))),
                percent_spread(numbers(mine, "honest")),
                f"{100 * low:+.2f} to {100 * high:+.2f}" if len(mine) > 1 else "-",
                ("yes" if low <= 0 <= high else "below" if high < 0 else "above") if len(mine) > 1 else "-",
                *(percent_spread(numbers(mine, column)) for column in ("balanced", "all_believed", "paper")),
                f"{100 * statistics.fmean(_excess(mine, 'paper')):+.2f}",
            )
        )
    head = ("set", "permutations", "majority", "honest", "99 % of honest - majority", "majority within")
    return Sheet(
        "Accuracy of LBM on permuted labels in %: mean ± standard deviation over permutations",
        (*head, "balanced, honest", "balanced, all believed", "paper", "paper - majority"),
        tuple(lines),
        left=(0, 5),
    )


def _findings(rows: Sequence[Row]) -> list[str]:
    table = _table(rows).rows
    if not table:
        return []
    within = [line[0] for line in table if line[5] == "yes"]
    above = [line[0] for line in table if line[5] == "above"]
    sets = [where(rows, set=name) for name in different(rows, "set")]
    gains = [gain for mine in sets for gain in _excess(mine, "paper")]
    plain = [numbers(mine, "all_believed") for mine in sets]
    mean = statistics.fmean(value for values in plain for value in values)
    chance = sum(low <= 0.5 <= high for low, high in map(interval_99, plain))
    said = f"the whole interval is above it on {', '.join(above) if above else 'none'}"
    return [
        f"Honest: the majority rate lies within the 99 % interval of the mean on {len(within)} of "
        f"{len(table)} sets; {said}.",
        f"Were learners always believed, balanced accuracy would be {percent(mean)} % on average; 50 %, that "
        f"is chance, lies within the 99 % interval of the mean on {chance} of {len(table)} sets.",
        f"Paper: {100 * statistics.fmean(gains):+.1f} points from the majority rate on average, with "
        "nothing to learn: that much is the choice of the epoch on the test fold.",
    ]


def _headline(rows: Sequence[Row]) -> dict[str, float | str | None]:
    found: dict[str, float | str | None] = {}
    for name in different(rows, "set"):
        for column in ("honest", "paper"):
            gain = statistics.fmean(_excess(where(rows, set=name), column))
            found[f"{name}, {column} - majority, points"] = round(100 * gain, 2)
    return found


def _folds(rows: Sequence[Row]) -> str:
    """Return how many folds there were, in words; nothing measured: how many there would be."""
    return (
        " or ".join(str(number) for number in dict.fromkeys(row["folds"] for row in rows) or [FOLDS])
        + " folds"
    )


def _excess(rows: Sequence[Row], column: str) -> list[float]:
    """Return for each permutation by how much a score is above the majority rate."""
    both = zip(numbers(rows, column), numbers(rows, "majority"), strict=True)
    return [score - rate for score, rate in both]
