"""Tables: lbm beside logistic regression, forests, boosting, and models that people can read.

Real tables that packages on PyPI ship: words, gaps and many classes among them; five folds with three
seeds, in which every learner sees the same rows. *Defaults* are what each learner does when nothing is
said; *tuned* is once, with the first seed: four settings each, chosen by the log-loss of three inner folds
of the training rows alone. Learners that read words and gaps by themselves (LBM, HistGB, XGBoost, LightGBM,
EBM) get tables as they are; the others get medians, most frequent words, and a column per category. All
have one thread.

Accuracy is the share of classes that are right; AUC the mean over classes against the rest; log-loss the
mean of -log p(class), p at least 1e-15; calibration the mean distance between how sure a learner is and how
often it is right, over ten bins of equally many rows (ECE). Times are CPU times of one fit and of
predicting 1,000 rows. The number of rules: of RuleFit terms that are not 0, of FIGS leaves, of EBM terms;
of LBM the rules that `rules` extracts from the training rows, whose accuracy on test rows is shown as
*LBM's rules*. These are also printed, parsed again and used again: the share of test rows on which both
agree is *used again*.

Few rows: five tables with three rules each that somebody would write first, 20, 50, 100 and 300 rows in
proportion to classes, ten draws; all other rows test, 2,000 at most. Made tables: seven columns of 20 or
200 tell something, three of them alone, one in waves, two pairs together; the largest is fitted once.

Rows of peers are kept whatever becomes of our code; ours are measured again when `lbm.training` changes.
"""

# ruff: noqa: E402 - threads are one before NumPy is loaded

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from measuring.contenders import CONTENDERS, present, quietly, rules_of
from measuring.real import TABLES, installed, made, table
from measuring.results import ROOT, Row, Run, Section, Table, seconds
from numpy.typing import NDArray
from training import training_sources

TITLE = "Tables"
FOLDS, SEEDS, INNER = 5, 3, 3
FEW, DRAWS, FEW_TESTED = (20, 50, 100, 300), 10, 2000
FEW_LEARNERS = ("LBM", "LBM with rules", "logistic", "HistGB", "EBM")
MADE = ((1_000, 20), (1_000, 200), (10_000, 20), (10_000, 200), (100_000, 20), (500_000, 20))
MADE_SEEDS = 3
SLOW = 100_001  # rows from which on only those learners run that are made for so many
FAST = ("LBM", "logistic", "HistGB", "XGBoost", "LightGBM")
OTHERS = ("logistic", "forest", "HistGB", "XGBoost", "LightGBM", "RuleFit", "FIGS")
PEERS = ("xgboost", "lightgbm", "interpret-core", "imodels")
QUICK_TABLES = ("titanic", "penguins")
BEST_TIME, TIMES = 3.0, 10.0  # seconds of a fit, and times HistGB's, whichever is more
PICTURE = ROOT / "docs" / "pictures" / "tables.svg"

Array = NDArray[Any]
Wanted = list[tuple[str, bool]]


# --- one learner, some rows ----------------------------------------------------------------------------


def scores(p: Array, y: Array, classes: Array) -> dict[str, float]:
    """Return accuracy, AUC, log-loss and calibration of probabilities, shape (rows, classes)."""
    from sklearn.metrics import roc_auc_score

    kinds = np.searchsorted(classes, y)
    p = np.clip(p, 1e-15, 1.0)
    p /= p.sum(axis=1, keepdims=True)
    sure, right = p.max(axis=1), p.argmax(axis=1) == kinds
    each = [
        roc_auc_score(kinds == k, p[:, k])
        for k in range(len(classes) if len(classes) > 2 else 1)
        if 0 < (kinds == k).sum() < len(kinds)
    ]
    bins = np.array_split(np.argsort(sure, kind="stable"), min(10, len(y)))
    apart = sum(abs(sure[rows].mean() - right[rows].mean()) * len(rows) for rows in bins)
    return {
        "accuracy": round(float(right.mean()), 6),
        "auc": round(float(np.mean(each)), 6) if each else float("nan"),
        "loss": round(float(-np.log(p[np.arange(len(y)), kinds]).mean()), 6),
        "ece": round(float(apart / len(y)), 6),
    }


def aligned(p: Array, own: Sequence[Any], classes: Array) -> Array:
    """Return probabilities of classes by those a learner knows: others have none."""
    found = np.zeros((len(p), len(classes)))
    found[:, np.searchsorted(classes, np.asarray(own))] = p
    return found


def fitted(name: str, options: dict[str, Any], seed: int, x: Any, y: Any, **more: Any) -> tuple[Any, float]:
    """Return a fitted learner, and the CPU seconds that it took."""
    learner = CONTENDERS[name].make({**options, **more}, seed)
    begun = time.process_time()
    quietly(lambda: learner.fit(x, y))
    return learner, time.process_time() - begun


def chosen(name: str, seed: int, x: Any, y: Any) -> tuple[dict[str, Any], float]:
    """Return the setting whose log-loss on inner folds is least, and the CPU seconds of choosing."""
    from sklearn.model_selection import StratifiedKFold

    begun, settings = time.process_time(), CONTENDERS[name].settings
    classes, least = np.unique(y), min(np.unique(y, return_counts=True)[1])
    if least < 2:
        return settings[0], 0.0
    folds = StratifiedKFold(min(INNER, int(least)), shuffle=True, random_state=seed)
    losses = np.zeros(len(settings))
    for train, test in folds.split(x, y):
        for number, options in enumerate(settings):
            learner, _ = fitted(name, options, seed, x.iloc[train], y[train])
            p = aligned(quietly(lambda: learner.predict_proba(x.iloc[test])), np.unique(y[train]), classes)  # noqa: B023
            losses[number] += scores(p, y[test], classes)["loss"]
    return settings[int(losses.argmin())], time.process_time() - begun


def one_fold(
    name: str, mode: str, seed: int, x: Any, y: Array, train: Array, test: Array, rules: bool = False
) -> Row:
    """Return what a learner makes of some rows: its scores, its times, and its rules."""
    classes = np.unique(y)
    x_train, y_train = x.iloc[train].reset_index(drop=True), y[train]
    options, choosing = chosen(name, seed, x_train, y_train) if mode == "tuned" else ({}, 0.0)
    learner, fit = fitted(name, options, seed, x_train, y_train)
    begun = time.process_time()
    p = quietly(lambda: learner.predict_proba(x.iloc[test]))
    predict = (time.process_time() - begun) * 1000 / len(test)
    found: Row = scores(aligned(p, np.unique(y_train), classes), y[test], classes)
    found |= {"fit": round(fit, 4), "choosing": round(choosing, 4), "predict": round(predict, 5)}
    number = rules_of(name, learner)
    if number is not None:
        found["rules"] = number
    if rules and name == "LBM":
        found |= quietly(lambda: extracted(learner, x_train, x.iloc[test], y[test]))
    return found


def extracted(learner: Any, x: Any, other: Any, truth: Array) -> Row:
    """Return what a classifier's rules are worth on rows it has not seen, also when they are read again."""
    import lbm

    begun = time.process_time()
    found = learner.rules(x)
    spent = time.process_time() - begun
    own, machine = found.predict(other), learner.predict(other)
    again = lbm.LBMClassifier.from_knowledge(
        lbm.Theory.parse(str(found)),
        target=learner.target_,
        columns=list(learner.feature_names_in_),
        classes=learner.classes_.tolist(),
    )
    used = again.predict(other)
    return {
        "rules": len(found.rules),
        "rules accuracy": round(float((own == truth).mean()), 6),
        "rules fidelity": round(float((own == machine).mean()), 6),
        "printed fidelity": round(found.fidelity, 6),
        "used again": round(float((used == own).mean()), 6),
        "extracting": round(spent, 4),
    }


# --- what is measured ----------------------------------------------------------------------------------


def real_row(quick: bool, name: str, learner: str, mode: str, seed: int) -> Row:
    from sklearn.model_selection import StratifiedKFold

    x, y = table(name)
    kinds = y.to_numpy()
    folds = StratifiedKFold(2 if quick else FOLDS, shuffle=True, random_state=seed)
    each = [
        one_fold(learner, mode, seed, x, kinds, train, test, rules=mode == "defaults")
        for train, test in folds.split(x, kinds)
    ]
    return {"rows": len(x), "columns": x.shape[1], "classes": len(np.unique(kinds)), "folds": each}


def few_row(name: str, learner: str, rows: int, seed: int) -> Row:
    from sklearn.model_selection import train_test_split

    x, y = table(name)
    kinds = y.to_numpy()
    train, test = train_test_split(np.arange(len(x)), train_size=rows, stratify=kinds, random_state=seed)
    test = test[:FEW_TESTED]
    if learner != "LBM with rules":
        return {"folds": [one_fold(learner, "defaults", seed, x, kinds, train, test)]}
    classes = np.unique(kinds)
    more = {"knowledge": TABLES[name].rules, "target": TABLES[name].target}
    made_of, fit = fitted("LBM", {}, seed, x.iloc[train].reset_index(drop=True), kinds[train], **more)
    p = aligned(quietly(lambda: made_of.predict_proba(x.iloc[test])), np.unique(kinds[train]), classes)
    return {"folds": [{**scores(p, kinds[test], classes), "fit": round(fit, 4)}]}


def made_row(rows: int, columns: int, learner: str, seed: int) -> Row:
    x, y, other, truth = made(rows, columns, seed)
    both = quietly(lambda: _joined(x, other))
    kinds = np.concatenate([y, truth])
    train, test = np.arange(len(y)), np.arange(len(y), len(kinds))
    return {"folds": [one_fold(learner, "defaults", seed, both, kinds, train, test)]}


def _joined(one: Any, other: Any) -> Any:
    import pandas as pd

    return pd.concat([one, other], ignore_index=True)


def keys_of(quick: bool, learners: Sequence[str], ours: str) -> list[tuple[Any, ...]]:
    """Return what is to be measured; ours is measured anew where ``ours``, a digest of our code, differs."""
    known = [name for name in installed() if not quick or name in QUICK_TABLES]

    def key(*parts: Any) -> tuple[Any, ...]:
        return (*parts, ours) if any(str(part).startswith("LBM") for part in parts) else parts

    found = [
        key("real", name, learner, "defaults", seed)
        for seed in range(1 if quick else SEEDS)
        for name in known
        for learner in learners
    ]
    few = [name for name in known if TABLES[name].rules]
    asked = [one for one in FEW_LEARNERS if one.partition(" with")[0] in learners]
    found += [
        key("few", name, learner, rows, seed)
        for rows in (FEW[:3:2] if quick else FEW)
        for name in few
        for seed in range(2 if quick else DRAWS)
        for learner in asked
        if rows + 50 <= len(table(name)[0])
    ]
    sizes = MADE[:1] if quick else MADE
    found += [
        key("made", rows, columns, learner, seed)
        for rows, columns in sizes
        for seed in range(1 if quick or (rows, columns) == MADE[-1] else MADE_SEEDS)
        for learner in learners
        if rows < SLOW or learner in FAST
    ]
    tuned = [name for name in known if not quick or name == QUICK_TABLES[0]]
    found += [key("real", name, learner, "tuned", 0) for name in tuned for learner in learners]
    return found


def measure(quick: bool) -> Callable[..., Row]:
    def one(part: str, *rest: Any) -> Row:
        if any(str(each).startswith("LBM") for each in rest):
            rest = rest[:-1]  # the digest
        begun = time.process_time()
        try:
            found = {"real": lambda *key: real_row(quick, *key), "few": few_row, "made": made_row}[part](
                *rest
            )
        except Exception as error:  # noqa: BLE001 - whatever a learner does, the others go on
            found = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        return {**found, "cpu": round(time.process_time() - begun, 3)}

    return one


# --- what is told --------------------------------------------------------------------------------------


def mean(rows: Iterable[Row], name: str) -> float:
    """Return the mean of a figure over folds of rows; NaN where there is none."""
    found = [fold[name] for row in rows for fold in row.get("folds", ()) if fold.get(name) is not None]
    return float(np.mean(found)) if found else float("nan")


def real_means(rows: Sequence[Row], mode: str, name: str) -> dict[str, dict[str, float]]:
    """Return the mean of a figure by learner and table, of tables that every learner finished."""
    by: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        part, table_name, learner, kind = row["key"][:4]
        if part == "real" and kind == mode and "folds" in row:
            by.setdefault(learner, {}).setdefault(table_name, []).append(row)
    shared = set.intersection(*(set(found) for found in by.values())) if by else set()
    return {
        learner: {each: mean(found[each], name) for each in sorted(shared)} for learner, found in by.items()
    }


def ranks(found: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean rank of each learner over tables, the least figure first."""
    from scipy.stats import rankdata

    learners = list(found)
    tables = list(next(iter(found.values()), {}))
    if not tables:
        return {}
    each = np.array([rankdata([found[learner][name] for learner in learners]) for name in tables])
    return dict(zip(learners, each.mean(axis=0).tolist(), strict=True))


def paired(one: dict[str, float], other: dict[str, float]) -> tuple[float, float]:
    """Return the mean difference over tables, and its standard error."""
    apart = np.array([one[name] - other[name] for name in one])
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else 0.0
    return float(apart.mean()), float(error)


def section(rows: Sequence[Row]) -> Section:
    wanted: Wanted = []
    tables = [
        *_overview(rows, "defaults", wanted),
        *_overview(rows, "tuned", []),
        *_each(rows),
        *_few(rows, wanted),
        *_made(rows, wanted),
        *_rules(rows, wanted),
    ]
    _fits(rows, wanted)
    failed = [[" ".join(map(str, row["key"][:5])), row["failed"]] for row in rows if "failed" in row]
    return Section([*tables, Table("What failed", ["fit", "error"], failed)], wanted)


def _overview(rows: Sequence[Row], mode: str, wanted: Wanted) -> list[Table]:
    loss = real_means(rows, mode, "loss")
    if "LBM" not in loss or not loss["LBM"]:
        return []
    rank, number = ranks(loss), len(loss["LBM"])
    names = ("accuracy", "auc", "ece", "fit", "choosing", "predict", "rules")
    figures = {name: real_means(rows, mode, name) for name in names}
    average = {name: float(np.mean(list(found.values()))) for name, found in loss.items()}
    lines = []
    for learner in sorted(loss, key=lambda one: average[one]):
        apart, error = paired(loss[learner], loss["LBM"])
        own = {name: list(found[learner].values()) for name, found in figures.items()}
        count = [each for each in own["rules"] if each == each]
        lines.append(
            [
                learner,
                f"{average[learner]:.4f}",
                "" if learner == "LBM" else f"{apart:+.4f} ± {error:.4f}",
                f"{rank[learner]:.2f}",
                f"{100 * np.mean(own['accuracy']):.2f} %",
                f"{np.nanmean(own['auc']):.4f}",
                f"{np.mean(own['ece']):.4f}",
                seconds(float(np.mean(own["fit"])) + float(np.mean(own["choosing"]))),
                seconds(float(np.mean(own["predict"]))),
                f"{np.mean(count):.1f}" if count else "",
            ]
        )
    if mode == "defaults":
        others = [name for name in average if name not in ("LBM", "EBM")]
        if others:
            wanted.append(
                (
                    "mean log-loss of LBM at defaults the least of all but EBM's",
                    all(average["LBM"] <= average[name] for name in others),
                )
            )
            wanted.append(("its mean rank, too", all(rank["LBM"] <= rank[name] for name in others)))
        if "EBM" in average:
            apart, error = paired(loss["LBM"], loss["EBM"])
            goal = f"mean log-loss at most a paired standard error above EBM's ({apart:+.4f} ± {error:.4f})"
            wanted.append((goal, apart <= error))
    columns = ["learner", "log-loss", "against LBM", "rank", "accuracy", "AUC", "calibration error"]
    columns += ["fit (CPU)" if mode == "defaults" else "choosing and fit", "1,000 rows", "rules"]
    return [Table(f"{number} real tables, {mode}: means over tables", columns, lines)]


def _each(rows: Sequence[Row]) -> list[Table]:
    loss, right = (real_means(rows, "defaults", name) for name in ("loss", "accuracy"))
    if not loss:
        return []
    learners = list(loss)
    sizes = {row["key"][1]: row for row in rows if row["key"][0] == "real" and "folds" in row}
    lines = [
        [
            name,
            f"{sizes[name]['rows']:,} x {sizes[name]['columns']}, {sizes[name]['classes']}",
            *(f"{loss[one][name]:.3f} ({100 * right[one][name]:.1f})" for one in learners),
        ]
        for name in next(iter(loss.values()))
    ]
    columns = ["table", "rows x columns, classes", *learners]
    return [Table("Log-loss (and accuracy, %) by table, defaults", columns, lines)]


def _few(rows: Sequence[Row], wanted: Wanted) -> list[Table]:
    found: dict[tuple[int, str], dict[str, list[Row]]] = {}
    for row in rows:
        if row["key"][0] == "few" and "folds" in row:
            _, name, learner, size = row["key"][:4]
            found.setdefault((size, learner), {}).setdefault(name, []).append(row)

    def over(size: int, learner: str, figure: str) -> float:
        each = [mean(part, figure) for part in found.get((size, learner), {}).values()]
        return float(np.mean(each)) if each else float("nan")

    sizes = sorted({size for size, _ in found})
    learners = [one for one in FEW_LEARNERS if any((size, one) in found for size in sizes)]
    lines = [
        [
            f"{size} rows",
            str(len(found.get((size, "LBM"), {}))),
            *(f"{over(size, one, 'loss'):.3f} ({100 * over(size, one, 'accuracy'):.1f})" for one in learners),
        ]
        for size in sizes
    ]
    if (100, "LBM") in found and (100, "logistic") in found:
        ours, rules, theirs = (
            (over(100, one, "loss"), over(100, one, "accuracy"))
            for one in ("LBM", "LBM with rules", "logistic")
        )
        met = ours[0] <= theirs[0] and ours[1] >= theirs[1]
        wanted.append(("with 100 rows at least logistic regression's accuracy and log-loss", met))
        wanted.append(("with three rules better than without", rules[0] < ours[0] and rules[1] > ours[1]))
    return [
        Table("Few rows: log-loss (and accuracy, %), means over tables", ["", "tables", *learners], lines)
    ]


def _made(rows: Sequence[Row], wanted: Wanted) -> list[Table]:
    found: dict[tuple[int, int], dict[str, list[Row]]] = {}
    for row in rows:
        if row["key"][0] == "made" and "folds" in row:
            _, size, columns, learner = row["key"][:4]
            found.setdefault((size, columns), {}).setdefault(learner, []).append(row)
    learners = [one for one in CONTENDERS if any(one in each for each in found.values())]
    lines = []
    for (size, columns), each in sorted(found.items()):
        cells = [
            f"{mean(each[one], 'auc'):.3f} ({seconds(mean(each[one], 'fit'))})" if one in each else ""
            for one in learners
        ]
        lines.append([f"{size:,} x {columns}", *cells])
        if "LBM" in each and "HistGB" in each:
            limit = 0.03 if columns > 20 else 0.01
            apart = mean(each["HistGB"], "auc") - mean(each["LBM"], "auc")
            wanted.append(
                (f"{size:,} x {columns}: AUC within {limit} of HistGB's ({apart:+.3f})", apart <= limit)
            )
    return [Table("Made tables: AUC (and CPU time of a fit)", ["rows x columns", *learners], lines)]


def _rules(rows: Sequence[Row], wanted: Wanted) -> list[Table]:
    """Return how LBM's extracted rules compare with RuleFit's, table by table."""
    figures = ("rules", "rules accuracy", "rules fidelity", "printed fidelity", "used again")
    own = {name: real_means(rows, "defaults", name).get("LBM", {}) for name in figures}
    peer = {name: real_means(rows, "defaults", name).get("RuleFit", {}) for name in ("rules", "accuracy")}
    if not own["rules"] or not peer["rules"]:
        return []
    lines = [
        [
            name,
            f"{own['rules'][name]:.1f}",
            f"{peer['rules'][name]:.1f}",
            f"{100 * own['rules accuracy'][name]:.1f}",
            f"{100 * peer['accuracy'][name]:.1f}",
            f"{100 * own['printed fidelity'][name]:.1f}",
            f"{100 * own['rules fidelity'][name]:.1f}",
            f"{100 * own['used again'][name]:.2f}",
        ]
        for name in own["rules"]
    ]
    count, theirs = (float(np.mean(list(each["rules"].values()))) for each in (own, peer))
    right = float(np.mean(list(own["rules accuracy"].values())))
    other = float(np.mean(list(peer["accuracy"].values())))
    wanted.append(
        (
            f"at most half RuleFit's rules ({count:.1f} and {theirs:.1f} on average) at equal or better "
            f"accuracy ({100 * right:.2f} % and {100 * other:.2f} %)",
            count <= theirs / 2 and right >= other,
        )
    )
    used = min(own["used again"].values())
    wanted.append((f"rules parsed from their text predict the same ({100 * used:.2f} % at least)", used == 1))
    columns = ["table", "LBM's rules", "RuleFit's", "accuracy, %", "RuleFit's, %"]
    columns += ["fidelity printed, %", "on new rows, %", "used again, %"]
    return [Table("Rules extracted from LBM, beside RuleFit's", columns, lines)]


def _fits(rows: Sequence[Row], wanted: Wanted) -> None:
    """Say whether a fit took too long: every fit of ours beside HistGB's on the same rows."""
    theirs = {
        (tuple(row["key"]), fold): one["fit"]
        for row in rows
        if "HistGB" in row["key"]
        for fold, one in enumerate(row.get("folds", ()))
    }
    worst = 0.0
    for row in rows:
        if "LBM" not in row["key"] or "tuned" in row["key"]:
            continue
        same = tuple("HistGB" if part == "LBM" else part for part in row["key"][:-1])
        for fold, one in enumerate(row.get("folds", ())):
            limit = max(BEST_TIME, TIMES * theirs.get((same, fold), 0.0))
            worst = max(worst, one["fit"] / limit)
    if worst:
        goal = f"no fit longer than ten of HistGB's or {BEST_TIME:g} s of CPU time, whichever is more"
        wanted.append((f"{goal} (at most {worst:.2f} of that)", worst <= 1))


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the picture: by how much each learner's log-loss is above the least, table by table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    loss = real_means(rows, "defaults", "loss")
    learners, names = list(loss), list(next(iter(loss.values())))
    least = {name: min(loss[one][name] for one in learners) for name in names}
    names.sort(key=lambda name: loss["LBM"][name] - least[name])
    markers = dict(zip(CONTENDERS, "osD^v<>Ph", strict=True))
    with plt.rc_context({"svg.hashsalt": "lbm", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, ax = plt.subplots(figsize=(8, 0.28 * len(names) + 1.4), layout="constrained")
        for learner in learners:
            ours = learner == "LBM"
            ax.plot(
                [loss[learner][name] - least[name] for name in names],
                range(len(names)),
                markers[learner],
                label=learner,
                markersize=7 if ours else 4.5,
                color="#0072B2" if ours else "#D55E00" if learner == "EBM" else "#999999",
                markerfacecolor=None if ours or learner == "EBM" else "none",
                zorder=3 if ours else 2,
            )
        ax.set_yticks(range(len(names)), names)
        ax.set(xlabel="log-loss above the least (defaults)", xscale="symlog")
        ax.set_xscale("symlog", linthresh=0.05)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x", alpha=0.3)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--learners", default="", metavar="NAMES", help="only these, as in LBM,EBM")


def main() -> None:
    run = Run("tables", __doc__, options)
    run.head["sources"] = "by row"  # rows of peers hold whatever becomes of our code
    for package in ("pandas", *PEERS):
        with suppress(metadata.PackageNotFoundError):
            run.head["versions"][package] = metadata.version(package)
    here, lacking = present()
    names = [name for name in run.options.learners.split(",") if name]
    if unknown := [name for name in names if name not in CONTENDERS]:
        sys.exit(f"tables.py: expected some of {', '.join(CONTENDERS)}, got {', '.join(unknown)}")
    if lacking:
        print(f"not installed, left out: {', '.join(lacking)} (the extra bench-tables)", file=sys.stderr)
    gone = [name for name in TABLES if name not in installed()]
    if gone:
        print(f"tables whose packages are not installed: {', '.join(gone)}", file=sys.stderr)
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        here.remove("LBM")
    learners = [name for name in here if not names or name in names]
    rows = run.each(keys_of(run.quick, learners, training_sources()), measure(run.quick))
    if run.complete and not run.quick and not lacking and not names:
        draw(rows, PICTURE)
        print(f"picture: {PICTURE.relative_to(ROOT)}", file=sys.stderr)
    run.show(section(rows))


if __name__ == "__main__":
    main()
