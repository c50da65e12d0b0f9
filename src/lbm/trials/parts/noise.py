"""Wrong labels in training: does knowing that the target is an order make up for them?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from itertools import product
from typing import Final

from lbm.trials.learners.comparing import holm, paired_chance, percent, percent_spread
from lbm.trials.learners.relational import flipped, fold_names, learn_fold, problem_named, with_folds
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, filled, prose, wording
from lbm.trials.pictures import Chart, Curve, Picture
from lbm.trials.selecting import by_fold, different, numbers, where

NAME: Final = "noise"
TITLE: Final = "Noise: labels flipped in training"
REVISION: Final = 2
ALONE: Final = False
COLUMNS: Final = columns("set flipped:float how seed:int fold rules accuracy:float share:float seconds:float")

SETS: Final = ("alz_amine", "alz_acetyl", "alz_memory", "alz_toxic")
SHARES: Final = (0.1, 0.2, 0.3)
TOGETHER, APART = "together", "apart"
WITH, WITHOUT = "order", "none"
SEEDS: Final = 5
QUICK_SET: Final = "order"

COST: Final = {"alz_amine": 10.0, "alz_acetyl": 20.0, "alz_memory": 10.0, "alz_toxic": 13.0, QUICK_SET: 0.6}


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each set, share, way to flip and seed; each seed has a fold of its own."""
    found = []
    for name in (QUICK_SET,) if quick else SETS:
        folds = fold_names(name)
        for share, how in product((0.2,) if quick else SHARES, (TOGETHER, APART)):
            for seed in range(1 if quick else SEEDS):
                # Seeds differ in what is tested, in what is flipped and in where machines begin.
                key: Key = {"set": name, "flipped": share, "how": how, "seed": seed, "fold": folds[2 * seed]}
                found.append(Piece(key, COST[name]))
    return found


def measure(key: Key) -> list[Row]:
    """Return two rows: one machine trained on flipped labels, with the rules of an order and without."""
    name, fold, seed = str(key["set"]), str(key["fold"]), int(key["seed"])
    problem = flipped(
        with_folds(problem_named(name)),
        fold,
        share=float(key["flipped"]),
        together=key["how"] == TOGETHER,
        seed=1000 * seed + int(fold),
    )
    begun = time.perf_counter()
    done = learn_fold(
        problem, fold, seed=seed, order=True, rules=True, few=True, small=name == QUICK_SET
    ).tested
    both = {"seconds": round(time.perf_counter() - begun, 3)}
    return [
        {**key, "rules": rules, "accuracy": round(scores.accuracy, 6), "share": round(share, 6), **both}
        for rules, scores, share in ((WITH, done.scores, done.share), (WITHOUT, done.alone, 0.0))
    ]


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return accuracy against the share of flipped labels, a picture for each way to flip."""
    found: list[Picture] = []
    for how in (TOGETHER, APART):
        curves = []
        for colour, name in enumerate(different(rows, "set")):
            for rules in (WITH, WITHOUT):
                mine = where(rows, set=name, how=how, rules=rules)
                shares = [share for share in SHARES if where(mine, flipped=share)]
                if shares:
                    x = tuple(100 * share for share in shares)
                    y = tuple(100 * _mean(where(mine, flipped=share)) for share in shares)
                    label = f"{name}, {'with' if rules == WITH else 'without'} rules"
                    look = "line" if rules == WITH else "dashes"
                    curves.append(Curve(label, x, y, colour, look=look))
        if curves:
            found.append(
                Chart(
                    name=f"noise-{how}",
                    title=f"Both directions of a pair flipped {how}",
                    caption=wording(__name__, "Picture"),
                    x_label="labels flipped, %",
                    y_label="accuracy, %",
                    curves=tuple(curves),
                )
            )
    return found


def section(rows: Sequence[Row]) -> Section:
    """Return accuracies with and without the rules of an order."""
    table = _table(rows)
    return Section(
        **prose(__name__),
        findings=tuple(_findings(rows)),
        tables=filled(table),
        headline={
            f"{line[0]}, {line[1]} % {line[2]}, points more with rules": float(line[5]) for line in table.rows
        },
    )


def _table(rows: Sequence[Row]) -> Sheet:
    cells: dict[str, tuple[str, ...]] = {}
    chances: dict[str, float] = {}
    for name, share, how in product(different(rows, "set"), SHARES, (TOGETHER, APART)):
        ours, plain = (
            by_fold(where(rows, set=name, flipped=share, how=how, rules=rules), "accuracy")
            for rules in (WITH, WITHOUT)
        )
        shared = sorted(ours.keys() & plain.keys())
        if not shared:
            continue
        key = f"{name}/{share}/{how}"
        differences = [ours[place] - plain[place] for place in shared]
        chances[key] = paired_chance(differences, test_share=1 / len(fold_names(name)))
        with_rules, without = [ours[place] for place in shared], [plain[place] for place in shared]
        gain = f"{100 * statistics.fmean(differences):+.2f}"
        cells[key] = (
            name,
            f"{100 * share:.0f}",
            how,
            percent_spread(with_rules),
            percent_spread(without),
            gain,
        )
    corrected = holm(chances)
    return Sheet(
        "Accuracy in %: mean ± standard deviation over folds",
        ("set", "flipped, %", "directions", "with rules", "without", "points more", "p, Holm"),
        tuple((*line, f"{corrected[key]:.3f}") for key, line in cells.items()),
        left=(0, 2),
    )


def _findings(rows: Sequence[Row]) -> list[str]:
    found = []
    for how in (TOGETHER, APART):
        for share in SHARES:
            ours, plain = (where(rows, flipped=share, how=how, rules=rules) for rules in (WITH, WITHOUT))
            if ours and plain:
                found.append(
                    f"{100 * share:.0f} % flipped {how}: {percent(_mean(ours))} % right with "
                    f"the rules of an order, {percent(_mean(plain))} % without."
                )
    lines = _table(rows).rows
    if lines:
        more = sum(float(line[5]) > 0 for line in lines)
        sure = sum(float(line[5]) > 0 and float(line[6]) < 0.05 for line in lines)
        found.append(
            f"Rules make it better in {more} of {len(lines)} cases; {sure} of these alone would "
            "convince (p < 0.05 after Holm's correction)."
        )
    return found


def _mean(rows: Sequence[Row]) -> float:
    return statistics.fmean(numbers(rows, "accuracy"))
