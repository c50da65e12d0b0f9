"""What rows of the learning table say: accuracies, paired tests, ranks, and what knowledge adds.

A row is one fold, seed and setting of a learner; see :mod:`lbm.trials.parts.table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lbm.trials.learners.aleph import ALEPH
from lbm.trials.learners.comparing import holm, paired_chance, percent, percent_spread, ranks
from lbm.trials.learners.fits import CLASSICAL, LEARNERS
from lbm.trials.learners.sets import MADE, SETS, UNEVEN
from lbm.trials.part import Row, Sheet, filled
from lbm.trials.selecting import by_fold, different, number, numbers, where

BEST: Final = "best LBM"
BEST_GROUPED: Final = "best LBM, pairs kept together"
BEST_STRICT: Final = "best LBM, compounds held out"
OURS: Final = (BEST, BEST_GROUPED, BEST_STRICT)

PUBLISHED: Final = {
    "Aleph": (80.85, 99.60, 84.91, 78.71, 69.46, 68.57, 80.50),
    "CILP++": (91.70, 98.42, 70.01, 78.99, 65.47, 60.44, 81.73),
    "RBM": (95.55, 99.70, 89.14, 79.13, 62.93, 68.54, 82.71),
    "LBM": (96.28, 99.80, 89.43, 78.25, 66.82, 71.84, 84.95),
}
"""Accuracies that the paper states, in %, in the order of SETS."""


def accuracy_table(rows: Sequence[Row]) -> Sheet:
    """Return accuracies of all learners on all sets under both protocols, beside published ones."""
    lines = []
    for name in sets_of(rows):
        for learner in (*LEARNERS, *OURS):
            honest = seed_means(rows, name, learner)
            if not honest:
                continue
            paper = _paper(rows, name, learner)
            column = PUBLISHED.get(learner)
            printed = f"{column[SETS.index(name)]:.2f}" if column and name in SETS else "-"
            fits = sum(int(row["fits"] or 0) for row in where(rows, set=name, learner=learner))
            lines.append(
                (
                    name,
                    learner,
                    printed,
                    percent_spread(paper) if paper else "-",
                    percent_spread(honest),
                    f"{fits:,}",
                )
            )
        aleph = where(rows, set=name, learner=ALEPH)
        if aleph or (name in SETS and any(line[0] == name for line in lines)):
            printed = f"{PUBLISHED[ALEPH][SETS.index(name)]:.2f}" if name in SETS else "-"
            lines.append(
                (name, ALEPH, printed, "-", aleph_cell(rows, name), f"{len(aleph)}" if aleph else "-")
            )
    return Sheet(
        "Accuracy in %: mean ± standard deviation over seeds",
        ("set", "learner", "published", "paper protocol", "honest protocol", "fits"),
        tuple(lines),
        left=(0, 1),
        note="Published figures are the paper's; those of Aleph and CILP++ are from França et al. (2014).",
    )


def aleph_cell(rows: Sequence[Row], name: str) -> str:
    """Return Aleph's accuracy over the folds that it finished, and which it did not, if any.

    >>> aleph_cell([{"set": "krk", "learner": "Aleph", "seed": 0, "fold": "1", "honest": None}], "krk")
    'time-out'
    """
    mine = where(rows, set=name, learner=ALEPH)
    done = seed_means(rows, name, ALEPH)
    if not done:
        return "time-out" if mine else "-"
    late = any(row["honest"] is None for row in mine)
    return percent_spread(done) + (f" (in {len(mine) - 1}, then time-out)" if late else "")


def verdict_table(rows: Sequence[Row]) -> Sheet:
    """Return LBM against every other learner on the same columns, honest."""
    chances: dict[str, float] = {}
    means: dict[str, tuple[str, str, float]] = {}
    for name in sets_of(rows):
        mine = by_fold(where(rows, set=name, learner="LBM"), "honest")
        for rival in LEARNERS:
            other = by_fold(where(rows, set=name, learner=rival), "honest")
            shared = sorted(mine.keys() & other.keys())
            if rival == "LBM" or not shared:
                continue
            differences = [mine[place] - other[place] for place in shared]
            folds = len({fold for fold, _ in shared})
            key = f"{name}/{rival}"
            chances[key] = paired_chance(differences, test_share=1 / max(folds, 2))
            means[key] = name, rival, sum(differences) / len(differences)
    corrected = holm(chances)
    lines = []
    for key, (name, rival, mean) in means.items():
        verdict = "tied" if corrected[key] >= 0.05 else "better" if mean > 0 else "worse"
        kind = "classical" if rival in CLASSICAL else "network"
        lines.append(
            (name, rival, kind, f"{100 * mean:+.2f}", f"{chances[key]:.3f}", f"{corrected[key]:.3f}", verdict)
        )
    return Sheet(
        "LBM against each learner on the same columns, honest protocol",
        ("set", "against", "kind", "points more", "p", "p, Holm", "LBM is"),
        tuple(lines),
        left=(0, 1, 2, 6),
    )


def classical_table(rows: Sequence[Row]) -> Sheet:
    """Return LBM against all classical learners on the same columns, a row for each set and one for all."""
    verdicts = [line for line in verdict_table(rows).rows if line[2] == "classical" and line[0] != UNEVEN]
    lines: list[tuple[str, ...]] = []
    for name in dict.fromkeys(line[0] for line in verdicts):
        means = {learner: sum(values) / len(values) for learner in ("LBM", *CLASSICAL)
                 if (values := seed_means(rows, name, learner))}  # fmt: skip
        best = max((one for one in means if one != "LBM"), key=lambda one: means[one])
        mine = [line[6] for line in verdicts if line[0] == name]
        verdict = "worse" if "worse" in mine else "better" if set(mine) == {"better"} else "not worse"
        gain = f"{100 * (means['LBM'] - means[best]):+.2f}"
        lines.append((name, percent(means["LBM"]), best, percent(means[best]), gain, verdict))
    if lines:
        held = sum(line[5] != "worse" for line in lines)
        lines.append(("all sets", "", "", "", "", f"not worse on {held} of {len(lines)}"))
    return Sheet(
        "LBM against the best of the classical learners on the same columns, honest protocol",
        ("set", "LBM", "best of the others", "its accuracy", "points more", "LBM is"),
        tuple(lines),
        left=(0, 2, 5),
        note="Worse: than at least one of them, better: than each of them, significantly, after Holm's "
        "correction over all learners and sets.",
    )


def rank_table(rows: Sequence[Row]) -> Sheet:
    """Return mean ranks over sets."""
    names = [name for name in sets_of(rows) if name != UNEVEN]
    total: dict[str, list[float]] = {}
    for name in names:
        scores = {learner: sum(means) / len(means) for learner in LEARNERS
                  if (means := seed_means(rows, name, learner))}  # fmt: skip
        for learner, rank in ranks(scores).items():
            total.setdefault(learner, []).append(rank)
    order = sorted(total, key=lambda learner: sum(total[learner]) / len(total[learner]))
    return Sheet(
        "Ranks on the paper's columns, honest protocol: 1 is best",
        ("learner", "sets", "mean rank"),
        tuple((one, f"{len(total[one])}", f"{sum(total[one]) / len(total[one]):.2f}") for one in order),
    )


def knowledge_table(rows: Sequence[Row]) -> Sheet:
    """Return LBM with and without its clauses, and our best with and without rules."""
    lines = []
    for name in sets_of(rows):
        bare = "LBM without knowledge"
        for learner, protocol, ours, others in (
            ("LBM", "paper", _paper(rows, name, "LBM"), _paper(rows, name, bare)),
            ("LBM", "honest", seed_means(rows, name, "LBM"), seed_means(rows, name, bare)),
            (BEST, "honest", seed_means(rows, name, BEST), seed_means(rows, name, BEST, "without_rules")),
        ):
            if ours and others:
                gain = f"{100 * (sum(ours) / len(ours) - sum(others) / len(others)):+.2f}"
                lines.append((name, learner, protocol, percent_spread(ours), percent_spread(others), gain))
    return Sheet(
        "What knowledge adds: LBM with and without its clauses, best LBM with and without rules of an order",
        ("set", "learner", "protocol", "with", "without", "points more"),
        tuple(lines),
        left=(0, 1, 2),
        note="Without clauses LBM has the same 50 more units; without rules best LBM is the same machine.",
    )


def uneven_table(rows: Sequence[Row]) -> Sheet:
    """Return scores that are fair where one class is rare."""
    lines = []
    for learner in (*LEARNERS, BEST):
        found = [
            seed_means(rows, UNEVEN, learner, column) for column in ("honest", "balanced", "f1", "auc_pr")
        ]
        if all(found):
            lines.append((learner, *map(percent_spread, found)))
    return Sheet(
        "UW-CSE with all 2,711 negative pairs, honest protocol; always no is right in 96 % of them",
        ("learner", "accuracy", "balanced accuracy", "F1", "AUC-PR"),
        tuple(lines),
    )


def setting_table(rows: Sequence[Row]) -> Sheet:
    """Return every setting of LBM that was tried."""
    lines = []
    for name in sets_of(rows):
        tried = where(rows, set=name, learner="LBM")
        for setting in different(tried, "setting"):
            mine = where(tried, setting=setting)
            taken = sum(row["honest"] is not None for row in mine)
            mean = sum(numbers(mine, "paper")) / len(mine)
            lines.append((name, setting, percent(mean), f"{taken} of {len(mine)}"))
    return Sheet(
        "The settings of LBM that were tried",
        ("set", "setting", "paper protocol", "chosen on rows put aside"),
        tuple(lines),
        left=(0, 1),
    )


def findings(rows: Sequence[Row]) -> list[str]:
    """Return what was found, a sentence each."""
    found = []
    near, above, asked = [], [], 0
    for place, name in enumerate(SETS):
        paper = _paper(rows, name, "LBM")
        best = seed_means(rows, name, BEST)
        if paper and 100 * sum(paper) / len(paper) >= PUBLISHED["LBM"][place] - 2:
            near.append(name)
        if best and 100 * sum(best) / len(best) > max(column[place] for column in PUBLISHED.values()):
            above.append(name)
        asked += bool(paper or best)
    if asked:
        found.append(
            "Under the paper protocol LBM is within 2 points of its published figure, or above it, on "
            f"{len(near)} of {len(SETS)} sets{': ' + ', '.join(near) if near else ''}."
        )
        found.append(
            "Under the honest protocol our best LBM is above the best published figure of the row on "
            f"{len(above)} of {len(SETS)} sets{': ' + ', '.join(above) if above else ''}."
        )
    apart = {
        learner: [100 * sum(means) / len(means) for name in SETS
                  if (means := seed_means(rows, name, learner))]
        for learner in (BEST_GROUPED, BEST_STRICT)
    }  # fmt: skip
    if all(apart.values()):
        together, strict = (f"{min(means):.1f} to {max(means):.1f} %" for means in apart.values())
        found.append(
            "For drugs, rules of an order know most test pairs by their mirrors in training. Without rules, "
            f"both directions of a pair in one fold, it has {together}; for compounds it has not seen, "
            f"{strict}."
        )
    verdicts = [line for line in verdict_table(rows).rows if line[2] == "classical"]
    if verdicts:
        worse = [f"{line[1]} on {line[0]}" for line in verdicts if line[6] == "worse"]
        found.append(
            "LBM against logistic regression, SVM and random forest on the same columns: better in "
            f"{sum(line[6] == 'better' for line in verdicts)}, tied in "
            f"{sum(line[6] == 'tied' for line in verdicts)} and worse in {len(worse)} of {len(verdicts)} "
            f"comparisons{': ' + ', '.join(worse) if worse else ''}."
        )
    both = [(_paper(rows, name, "LBM"), seed_means(rows, name, "LBM")) for name in sets_of(rows)]
    gaps = [sum(paper) / len(paper) - sum(honest) / len(honest) for paper, honest in both if paper and honest]
    if gaps:
        found.append(
            f"Choosing the epoch on the test fold is worth {100 * sum(gaps) / len(gaps):.1f} points to LBM "
            "on average over sets."
        )
    return found


def headline(rows: Sequence[Row]) -> dict[str, float | str | None]:
    """Return the mean accuracies of LBM, in %."""
    found: dict[str, float | str | None] = {}
    for name in sets_of(rows):
        for learner in ("LBM", *OURS):
            if honest := seed_means(rows, name, learner):
                found[f"{name}, {learner}, honest"] = round(100 * sum(honest) / len(honest), 2)
        if paper := _paper(rows, name, "LBM"):
            found[f"{name}, LBM, paper"] = round(100 * sum(paper) / len(paper), 2)
    return found


def tables(rows: Sequence[Row]) -> tuple[Sheet, ...]:
    """Return all tables of which there are rows."""
    return filled(
        accuracy_table(rows),
        classical_table(rows),
        verdict_table(rows),
        rank_table(rows),
        knowledge_table(rows),
        uneven_table(rows),
        setting_table(rows),
    )


# --- rows ------------------------------------------------------------------------------------------


def sets_of(rows: Sequence[Row]) -> list[str]:
    """Return the sets that rows are about, in the order of the paper."""
    there = {str(row["set"]) for row in rows}
    return [name for name in (*SETS, UNEVEN, *MADE, "order") if name in there]


def seed_means(rows: Sequence[Row], name: str, learner: str, column: str = "honest") -> list[float]:
    """Return the mean over folds for each seed."""
    seeds: dict[int, list[float]] = {}
    for row in where(rows, set=name, learner=learner):
        if row[column] is not None:
            seeds.setdefault(int(number(row, "seed")), []).append(number(row, column))
    return [sum(values) / len(values) for _, values in sorted(seeds.items())]


def _paper(rows: Sequence[Row], name: str, learner: str) -> list[float]:
    """Return the mean over folds for each seed, of the setting that has the best mean over these."""
    mine = [row for row in where(rows, set=name, learner=learner) if row["paper"] is not None]
    by_setting = [
        seed_means([row for row in mine if row["setting"] == setting], name, learner, "paper")
        for setting in dict.fromkeys(row["setting"] for row in mine)
    ]
    return max(by_setting, key=lambda values: sum(values) / len(values), default=[])
