"""The paper's Figure 4: how many samples until every model of φ(M, N) was seen, by four ways to sample."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from lbm.knowledge.printed import counted
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, prose, wording
from lbm.trials.pictures import Chart, Curve, Mark, Picture
from lbm.trials.searches.conjunctions import GRID, cover_by, expected_coverage, expected_draws
from lbm.trials.selecting import number, numbers, where
from lbm.trials.words import seconds, share, spread, times, whole

NAME: Final = "coverage"
TITLE: Final = "Coverage: samples until every model was seen"
REVISION: Final = 1
ALONE: Final = False
COLUMNS: Final = columns(
    "method M:int N:int limit:int runs run:int samples:int found:int models:int seconds:float after"
)

METHODS: Final = ("pool scheme", "block Gibbs", "collapsed", "i.i.d. draws")
CELLS: Final = tuple((m, n) for m in (20, 25, 30) for n in (5, 10))
LIMIT: Final = 20_000_000
"""Samples after which plain chains are given up: they need about 2^M to enter a well, and soon leave it."""

QUICK_LIMIT: Final = 2_000_000

PAPER: Final = {(20, 10): 7.5e6, (30, 10): 0.0037 * 2**40}
"""Samples until full coverage that the paper states: 7.5 million, and 0.37 % of 2^40."""

COST: Final = {  # seconds of a run, by method and M
    "pool scheme": {20: 0.15, 25: 1.0, 30: 60.0},
    "block Gibbs": {20: 12.0, 25: 12.0, 30: 12.0},
    "collapsed": {20: 0.15, 25: 0.15, 30: 0.15},
    "i.i.d. draws": {20: 0.05, 25: 0.05, 30: 0.05},
}
COLOURS: Final = {method: number for number, method in enumerate(METHODS)}


def pieces(quick: bool) -> list[Piece]:
    """Return runs by formula and method, in batches of up to ten; quick: ten of each at M = 20."""
    found = []
    for m, n in [(20, 5), (20, 10)] if quick else CELLS:
        for method in METHODS:
            plain = method == "block Gibbs"
            limit = (QUICK_LIMIT if quick else LIMIT) if plain else 0
            each = COST[method][m] / (LIMIT / QUICK_LIMIT if plain and quick else 1)
            size, number = 1 if each > 5 else 10, _runs(method, m, quick)
            for first in range(0, number, size):
                last = min(number, first + size) - 1
                key = {"method": method, "M": m, "N": n, "limit": limit, "runs": f"{first}-{last}"}
                long = method == "pool scheme" and m >= 30
                found.append(Piece(key, (last - first + 1) * each, long=long))
    return found


def _runs(method: str, m: int, quick: bool) -> int:
    if method == "block Gibbs":
        return 1 if quick or m > 20 else 5
    return 10 if quick else 3 if method == "pool scheme" and m >= 30 else 100


def measure(key: Key) -> list[Row]:
    """Return a row for each run; ``after`` holds the models seen after 10, 20, 50, 100, ... samples."""
    method, m, n = str(key["method"]), int(key["M"]), int(key["N"])
    first, last = map(int, str(key["runs"]).split("-"))
    rows: list[Row] = []
    for run in range(first, last + 1):
        done = cover_by(method, m, n, seed=run, limit=int(key["limit"]) or None)
        rows.append({**key, "run": run, **done.facts(), "after": " ".join(map(str, done.after()))})
    return rows


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return coverage against samples, a picture for each formula."""
    return [_chart(m, n, some) for m, n in CELLS if (some := where(rows, M=m, N=n))]


def _chart(m: int, n: int, rows: Sequence[Row]) -> Chart:
    models, space = (1 << n) - 1, float(1 << m + n)
    curves = [curve for method in METHODS if (curve := _curve(method, where(rows, method=method), models))]
    end = max((curve.x[-1] for curve in curves), default=10.0)
    grid = [float(size) for size in GRID if size <= max(end, 20 * models)]
    bound = tuple(100 * expected_coverage(models, size) for size in grid)
    curves.append(Curve("uniform draws, by theory", tuple(grid), bound, len(METHODS), look="dashes"))
    marks = (Mark(PAPER[m, n], f"paper: {whole(PAPER[m, n])}"),) if (m, n) in PAPER else ()
    return Chart(
        name=f"coverage-{m}-{n}",
        title=f"M = {m}, N = {n}: {models:,} models among {whole(space)} worlds",
        caption=wording(__name__, "Picture", m=m, n=n),
        x_label="samples",
        y_label="models seen, %",
        curves=tuple(curves),
        marks=marks,
        x_log=True,
        y_range=(0.0, 103.0),
        space=space,
    )


def _curve(method: str, rows: Sequence[Row], models: int) -> Curve | None:
    """Return mean coverage at each number of GRID, up to the first at which a run had been given up."""
    if not rows:
        return None
    seen = [[int(number) for number in str(row["after"]).split()] for row in rows]
    given_up = [len(each) for each, row in zip(seen, rows, strict=True) if row["found"] != models]
    length = min(given_up) if given_up else max(map(len, seen)) + 1
    shares = [
        [100 * number / models for number in (*each, *[models] * (length - len(each)))][:length]
        for each in seen
    ]
    at = [statistics.fmean(column) for column in zip(*shares, strict=True)]
    off = [statistics.pstdev(column) for column in zip(*shares, strict=True)]
    low = tuple(max(0.0, mean - error) for mean, error in zip(at, off, strict=True))
    high = tuple(min(100.0, mean + error) for mean, error in zip(at, off, strict=True))
    x = tuple(float(size) for size in GRID[:length])
    return Curve(method, x, tuple(at), COLOURS[method], low, high)


def section(rows: Sequence[Row]) -> Section:
    """Return samples until full coverage, beside the paper's."""
    return Section(
        **prose(__name__, limit=whole(LIMIT), quick_limit=whole(QUICK_LIMIT)),
        findings=tuple(_findings(rows)),
        tables=(_table(rows),),
        headline=_headline(rows),
    )


def _table(rows: Sequence[Row]) -> Sheet:
    lines = []
    for m, n in CELLS:
        for method in METHODS:
            some = where(rows, M=m, N=n, method=method)
            if not some:
                continue
            took = statistics.median(numbers(some, "seconds"))
            needed = _needed(some)
            paper = PAPER.get((m, n))
            if needed is None:
                mean = statistics.fmean(number(row, "found") / number(row, "models") for row in some)
                most = max(numbers(some, "samples"))
                cells = (f"more than {whole(most)}", "-", "-", share(mean))
            else:
                mean = statistics.fmean(needed)
                fewer = times(paper / mean) if paper else "-"
                cells = (spread(needed), share(mean / 2 ** (m + n)), fewer, "100 %")
            lines.append((f"φ({m}, {n})", method, f"{len(some)}", *cells, seconds(took)))
    head = ("formula", "method", "runs", "samples to see all models", "share of worlds")
    return Sheet(
        "Samples until every model was seen: mean ± standard deviation",
        (*head, "fewer than the paper", "models seen", "median time"),
        tuple(lines),
        left=(0, 1),
        note=wording(__name__, "Table"),
    )


def _findings(rows: Sequence[Row]) -> list[str]:
    found = []
    for (m, n), paper in PAPER.items():
        for method in ("pool scheme", "collapsed", "i.i.d. draws"):
            needed = _needed(where(rows, M=m, N=n, method=method))
            if needed is None:
                continue
            mean = statistics.fmean(needed)
            fewer = f"{times(paper / mean)} fewer than" if mean < paper else f"{times(mean / paper)}"
            found.append(
                f"φ({m}, {n}), {method}: all {2**n - 1:,} models after {whole(mean)} samples on average over "
                f"{counted(len(needed), 'run')}, {fewer} the paper's {whole(paper)}."
            )
        if where(rows, M=m, N=n):
            found.append(
                f"Independent uniform draws need {whole(expected_draws(2**n - 1))} on average by theory to "
                f"see all models of φ({m}, {n}); to list them takes {2**n - 1:,} evaluations."
            )
    if any(row["found"] != row["models"] for row in where(rows, method="block Gibbs")):
        found.append(wording(__name__, "Block Gibbs"))
    return found


def _headline(rows: Sequence[Row]) -> dict[str, float | str | None]:
    found: dict[str, float | str | None] = {}
    for m, n in PAPER:
        for method in METHODS:
            needed = _needed(where(rows, M=m, N=n, method=method))
            if needed is not None:
                found[f"samples, phi({m}, {n}), {method}"] = round(statistics.fmean(needed), 1)
    return found


def _needed(rows: Sequence[Row]) -> list[float] | None:
    """Return the samples of each run; None: there is none, or one was given up."""
    if not rows or any(row["found"] != row["models"] for row in rows):
        return None
    return numbers(rows, "samples")
