"""Knowledge beside data: half of the true rules against none, from a few rows to all of them.

A seed draws the rows for training and for testing, and half of the rules that the generator lists; each size
takes so many per cent of the training rows, classes in proportion and at least one row of each. Tic-tac-toe:
70 % of the boards train, the others test. MONK: the published number of rows trains (with the noise of
MONK-3), all others test. KRK: 200 positions train and 5,000 others test; no position is in both, though many
look alike in the 18 relations that are its columns. It was to be 1,000 positions; a trial on three other
seeds had both sides equal, at 99.3 %, with 250 rows, and the number was cut so that curves are seen to rise.

Every learner has three settings to choose from. The choice is made by the mean of -log p(class) on rows put
aside from the training rows, as many times as it takes for 30 to judge (three times at most); then the
learner is trained on all of them. Where a class has fewer than three rows there is nothing to put aside, and
the middle setting is taken. ``lbm`` with rules and without have the same settings and seeds. With rules it
adds up to CONJECTURES variations of them that training rows speak for; without, there is nothing to vary.

Tests: Wilcoxon's signed ranks over the seeds, one-sided, in both directions, each corrected by Holm over all
problems and sizes. "Rules alone" is the same half of the rules with a closed-world default and no data.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from measuring.results import ROOT, Row, Run, Section, Table
from numpy.typing import NDArray
from training import training_sources

TITLE = "Knowledge beside data"
SEEDS = 20
SHARES = {"tic_tac_toe": (2, 5, 10, 25, 50, 100), "krk": (2, 5, 10, 25, 50, 100)}
USUAL_SHARES = (5, 10, 25, 50, 100)
PROBLEMS = ("tic_tac_toe", "monk1", "monk2", "monk3", "krk")
NAMES = {"tic_tac_toe": "tic-tac-toe", "monk1": "MONK-1", "monk2": "MONK-2", "monk3": "MONK-3", "krk": "KRK"}
SMALL = 25  # per cent up to which knowledge is to be above
CEILING = 0.97  # accuracy past which nothing significant is asked for
LEVEL = 0.05
JUDGES = 30  # rows that judge settings
CONJECTURES = 12  # chosen on other seeds, from 1000 up
PICTURE = ROOT / "docs" / "pictures" / "knowledge_curve.svg"

Ints = NDArray[np.int64]
Wanted = list[tuple[str, bool]]


# --- rows and rules ----------------------------------------------------------------------------------


@cache
def drawn(problem: str, seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return tables and targets for training and testing, and half of the rules."""
    from sklearn.model_selection import train_test_split

    import lbm.datasets as datasets

    if problem == "tic_tac_toe":
        data = datasets.tic_tac_toe()
        split = train_test_split(
            data.table, data.target, train_size=0.7, stratify=data.target, random_state=seed
        )
        table, other, target, truth = split
    elif problem == "krk":
        data = datasets.krk(10_000, seed=seed)
        places = datasets.krk(10_000, seed=seed, atoms=False).table  # the same positions by their squares
        random = np.random.default_rng(seed)
        numbers = random.permutation(np.flatnonzero(~places.duplicated().to_numpy()))
        train, test = numbers[:200], numbers[200:5200]
        table, target = data.table.iloc[train], data.target.iloc[train]
        other, truth = data.table.iloc[test], data.target.iloc[test]
    else:
        data = datasets.monk(int(problem[-1]), seed=seed)  # type: ignore[arg-type]
        test = np.setdiff1d(np.arange(len(data.table)), data.train)
        table, target = data.train_table, data.train_target
        other, truth = data.table.iloc[test], data.target.iloc[test]
    half = np.random.default_rng([seed, 1]).permutation(len(data.rules))[: math.ceil(len(data.rules) / 2)]
    return table, target, other, truth, [data.rules[number] for number in sorted(half)]


def part(target: Any, share: int, seed: int) -> Ints:
    """Return the numbers of so many per cent of the rows, of every class in proportion and at least one."""
    random = np.random.default_rng([seed, 2])
    y = target.to_numpy()
    order = [random.permutation(np.flatnonzero(y == kind)) for kind in np.unique(y)]
    return np.concatenate([rows[: max(1, round(len(rows) * share / 100))] for rows in order])


# --- learners ----------------------------------------------------------------------------------------


def learners(rules: Sequence[Any], seed: int) -> dict[str, Callable[[int], Any]]:
    """Return, by name, what makes an estimator of setting 0, 1 or 2."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    import lbm

    theory = lbm.Theory(rules)
    decay = (0.2, 0.05, 0.0125)
    return {
        "rules": lambda k: lbm.LBMClassifier(
            knowledge=theory, conjectures=CONJECTURES, l2=decay[k], random_state=seed
        ),
        "none": lambda k: lbm.LBMClassifier(l2=decay[k], random_state=seed),
        "logistic": lambda k: LogisticRegression(C=(0.1, 1.0, 10.0)[k], max_iter=2000),
        "forest": lambda k: RandomForestClassifier(
            100, max_features=("sqrt", 0.5, 1.0)[k], random_state=seed
        ),
        "mlp": lambda k: MLPClassifier((50,), alpha=(1.0, 1e-2, 1e-4)[k], max_iter=500, random_state=seed),
    }


SIDES = {
    "rules": "lbm, half of the rules",
    "none": "lbm, no rules",
    "logistic": "logistic regression",
    "forest": "random forest",
    "mlp": "MLP",
    "alone": "rules alone",
}


def choose(make: Callable[[int], Any], table: Any, target: Any, seed: int) -> int:
    """Return the setting that does best on rows put aside from the training rows."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedShuffleSplit

    y = target.to_numpy()
    if min(np.bincount(y.astype(int), minlength=2)) < 3:
        return 1
    splits = min(3, math.ceil(JUDGES / (0.3 * len(y))))
    costs = np.zeros(3)
    for rows, judges in StratifiedShuffleSplit(splits, test_size=0.3, random_state=seed).split(y, y):
        for setting in range(3):
            fitted = make(setting).fit(table.iloc[rows], target.iloc[rows])
            costs[setting] += log_loss(
                y[judges], fitted.predict_proba(table.iloc[judges]), labels=[False, True]
            )
    return int(np.argmin(costs))


def measure(problem: str, share: int, seed: int) -> Row:
    """Return how often every learner is right on the rows for testing, and the settings they chose."""
    import lbm

    table, target, other, truth, rules = drawn(problem, seed)
    rows = part(target, share, seed)
    some, labels = table.iloc[rows], target.iloc[rows]
    right, chosen = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of steps that were not enough
        for name, make in learners(rules, seed).items():
            chosen[name] = choose(make, some, labels, seed)
            right[name] = float(make(chosen[name]).fit(some, labels).score(other, truth))
    alone = lbm.LBMClassifier.from_knowledge(
        lbm.Theory(rules),
        target=str(target.name),
        columns=list(table.columns),
        classes=[False, True],
        default=True,
    )
    right["alone"] = float(alone.score(other, truth))
    return {"rows": len(rows), "right": right, "chosen": chosen}


# --- what is shown -----------------------------------------------------------------------------------


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values)
    out, least = [0.0] * len(values), 0.0
    for rank, number in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[number]))
        out[int(number)] = least
    return out


def one_sided(differences: Sequence[float]) -> float:
    """Return the p-value of the hypothesis that differences are not above 0."""
    from scipy.stats import wilcoxon

    if not any(differences):
        return 1.0
    return float(wilcoxon(differences, alternative="greater", method="auto").pvalue)


def goal(said: str, found: list[tuple[int, bool]]) -> tuple[str, bool]:
    """Return what was wanted of some sizes, with those where it is not so, and whether there are none."""
    missed = [f"{share} %" for share, met in found if not met]
    return f"{said}{', but not at ' + ', '.join(missed) if missed else ''}", not missed


def section(rows: list[Row]) -> Section:
    cells: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        problem, share, _ = row["key"]
        cells.setdefault((problem, share), []).append(row)
    keys = [key for key in cells if len(cells[key]) > 1]
    gain = {key: [row["right"]["rules"] - row["right"]["none"] for row in cells[key]] for key in keys}
    above = dict(zip(keys, holm([one_sided(gain[key]) for key in keys]), strict=True))
    below = dict(zip(keys, holm([one_sided([-g for g in gain[key]]) for key in keys]), strict=True))
    tables, wanted = [], []
    for problem in PROBLEMS:
        shown = []
        above_all: list[tuple[int, bool]] = []
        surely: list[tuple[int, bool]] = []
        nowhere: list[tuple[int, bool]] = []
        for key in keys:
            if key[0] != problem:
                continue
            found = {side: [row["right"][side] for row in cells[key]] for side in SIDES}
            count = sorted({row["rows"] for row in cells[key]})
            shown.append(
                [
                    f"{key[1]} %",
                    f"{count[0]}" if len(count) == 1 else f"{count[0]} to {count[-1]}",
                    *(f"{100 * np.mean(v):.1f} ± {100 * np.std(v, ddof=1):.1f}" for v in found.values()),
                    f"{above[key]:.2g}" if np.mean(gain[key]) >= 0 else f"({below[key]:.2g})",
                ]
            )
            if key[1] <= SMALL:
                above_all.append((key[1], bool(np.mean(gain[key]) > 0)))
                if np.mean(found["none"]) < CEILING:
                    surely.append((key[1], above[key] <= LEVEL))
            nowhere.append((key[1], below[key] > LEVEL))
        wanted += [
            goal(f"{NAMES[problem]}: with rules above without, up to {SMALL} % of the rows", above_all),
            goal(f"{NAMES[problem]}: significantly so wherever without is below {CEILING:.0%}", surely),
            goal(f"{NAMES[problem]}: nowhere significantly below", nowhere),
        ]
        columns = ["data", "rows", *SIDES.values(), "p"]
        title = f"{NAMES[problem]}: per cent right on rows not seen, mean ± s.d. over seeds"
        note = "p: of the gain by rules, corrected; in parentheses, of the loss."
        tables.append(Table(title, columns, shown, note))
    return Section(tables, wanted)


def draw(rows: list[Row], path: Path) -> None:
    """Write the picture of all curves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    styles = {
        "rules": {"color": "#1f4e9c", "lw": 2.2, "marker": "o"},
        "none": {"color": "#c0392b", "lw": 2.2, "marker": "s"},
        "logistic": {"color": "#888888", "lw": 1, "ls": "--"},
        "forest": {"color": "#888888", "lw": 1, "ls": ":"},
        "mlp": {"color": "#888888", "lw": 1, "ls": "-."},
    }
    with plt.rc_context({"svg.hashsalt": "lbm", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = plt.subplots(1, len(PROBLEMS), figsize=(15, 3.4), sharey=True, layout="constrained")
        for ax, problem in zip(axes, PROBLEMS, strict=True):
            shares = sorted({row["key"][1] for row in rows if row["key"][0] == problem})
            found = {share: [r for r in rows if r["key"][:2] == [problem, share]] for share in shares}
            for side, style in styles.items():
                means = [100 * np.mean([r["right"][side] for r in found[share]]) for share in shares]
                ax.plot(shares, means, label=SIDES[side], markersize=4, **style)
            ax.set(title=NAMES[problem], xscale="log", xlabel="% of the training rows")
            ax.set_xticks(shares, [str(share) for share in shares])
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(axis="y", alpha=0.3)
        axes[0].set_ylabel("% right on rows not seen")
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    run = Run("knowledge_curve", __doc__)
    run.head["training"] = training_sources()
    keys = [
        (problem, share, seed)
        for seed in range(run.number(SEEDS))
        for problem in PROBLEMS
        for share in SHARES.get(problem, USUAL_SHARES)
    ]
    import torch

    torch.set_num_threads(1)  # small tables: threads would only wait for one another
    rows = run.each(keys, measure)
    if run.complete and not run.quick:
        draw(rows, PICTURE)
        print(f"picture: {PICTURE.relative_to(ROOT)}", file=sys.stderr)
    run.show(section(rows))


if __name__ == "__main__":
    main()
