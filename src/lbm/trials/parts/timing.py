"""The paper's Figure 5: the time until every model of φ(20, N) was collected, for N from 3 to 10."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from typing import Final

from lbm.knowledge.printed import counted
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, prose, wording
from lbm.trials.pictures import Chart, Curve, Mark, Picture
from lbm.trials.searches.conjunctions import cover_by, list_models
from lbm.trials.selecting import numbers, where
from lbm.trials.words import seconds, times, whole

NAME: Final = "time"
TITLE: Final = "Time: until every model was collected"
REVISION: Final = 1
ALONE: Final = True
COLUMNS: Final = columns(
    "method N:int limit:int repeats:int repeat:int samples:int found:int models:int seconds:float"
)

M: Final = 20
SIZES: Final = tuple(range(3, 11))
QUICK_SIZES: Final = (3, 6, 10)
SAMPLERS: Final = ("pool scheme", "block Gibbs", "collapsed", "i.i.d. draws")
LISTERS: Final = ("strict DNF", "PySAT")
METHODS: Final = (*SAMPLERS, *LISTERS)
PAPER: Final = {**dict.fromkeys(range(3, 9), 10.0), 9: 25.0, 10: 68.0}
"""Seconds that the paper states: about 10 up to N = 8, about 25 for 9, about 68 for 10."""

LIMIT: Final = 50_000_000
QUICK_LIMIT: Final = 2_000_000


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each method and N."""
    found = []
    for n in QUICK_SIZES if quick else SIZES:
        for method in METHODS:
            plain = method == "block Gibbs"
            limit = (QUICK_LIMIT if quick else LIMIT) if plain else 0
            repeats = (3 if quick else 20) if method == "pool scheme" else 1 if plain else 3 if quick else 5
            cost = limit / 1.5e6 if plain else 0.2 * repeats
            key = {"method": method, "N": n, "limit": limit, "repeats": repeats}
            found.append(Piece(key, cost=cost))
    return found


def measure(key: Key) -> list[Row]:
    """Return a row for each time that all models were collected; what is compiled is compiled before."""
    method, n, limit = str(key["method"]), int(key["N"]), int(key["limit"])
    _warm(method)
    rows: list[Row] = []
    for repeat in range(int(key["repeats"])):
        if method in LISTERS:
            done = list_models(method, M, n)
        else:
            done = cover_by(method, M, n, seed=repeat, limit=limit or None)
        rows.append({**key, "repeat": repeat, **done.facts()})
    return rows


@cache
def _warm(method: str) -> None:
    """Load and compile once what a method needs: no search has to pay for it."""
    if method in LISTERS:
        list_models(method, 2, 2)
    else:
        cover_by(method, 2, 2, seed=0)


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return time against N, a curve for each method and the paper's as dots."""
    curves = []
    for number, method in enumerate(METHODS):
        points = [
            (n, _median(some)) for n in SIZES if (some := where(rows, method=method, N=n)) and _whole(some)
        ]
        if points:
            x, y = zip(*points, strict=True)
            curves.append(Curve(method, tuple(map(float, x)), y, number))
    if not curves:
        return []
    sizes = sorted({n for n in SIZES if any(row["N"] == n for row in rows)})
    paper = tuple(PAPER[n] for n in sizes)
    curves.append(Curve("paper", tuple(map(float, sizes)), paper, len(METHODS), look="dots"))
    return [
        Chart(
            name="time",
            title=f"M = {M}: seconds until all 2^N - 1 models are there",
            caption=wording(__name__, "Picture"),
            x_label="N",
            y_label="seconds",
            curves=tuple(curves),
            marks=(Mark(10.0, "paper: 68 s", PAPER[10]),) if 10 in sizes else (),
            y_log=True,
        )
    ]


def section(rows: Sequence[Row]) -> Section:
    """Return times by method and N, and how many times shorter than the paper's they are."""
    sizes = sorted({n for n in SIZES if any(row["N"] == n for row in rows)})
    lines = []
    for method in METHODS:
        cells = []
        for n in sizes:
            some = where(rows, method=method, N=n)
            cells.append("-" if not some else seconds(_median(some)) if _whole(some) else "given up")
        lines.append((method, *cells))
    lines.append(("the paper", *(f"~{PAPER[n]:.0f} s" for n in sizes)))
    return Section(
        **prose(__name__, limit=whole(LIMIT), quick_limit=whole(QUICK_LIMIT)),
        findings=tuple(_findings(rows)),
        tables=(Sheet("Median time", ("method", *(f"N = {n}" for n in sizes)), tuple(lines)),),
        headline={
            f"seconds, N = 10, {method}": round(_median(some), 6)
            for method in METHODS
            if (some := where(rows, method=method, N=10)) and _whole(some)
        },
    )


def _findings(rows: Sequence[Row]) -> list[str]:
    found = []
    for method in METHODS:
        some = where(rows, method=method, N=10)
        if some and _whole(some):
            took = _median(some)
            found.append(
                f"N = 10, {method}: {seconds(took)} (median of {counted(len(some), 'run')}), "
                f"{times(PAPER[10] / took)} faster than the paper's 68 s."
            )
        elif some:
            most = max(numbers(some, "samples"))
            seen = statistics.fmean(numbers(some, "found"))
            found.append(
                f"N = 10, {method}: given up after {whole(most)} samples, with {whole(seen)} of 1,023 models."
            )
    return found


def _whole(rows: Sequence[Row]) -> bool:
    return all(row["found"] == row["models"] for row in rows)


def _median(rows: Sequence[Row]) -> float:
    return statistics.median(numbers(rows, "seconds"))
