"""``lbm reproduce``: the paper's figures beside ours, in one report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from lbm.errors import MissingExtra, suggested
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.trials.part import Part, Piece
    from lbm.trials.runner import Outcome


def reproduce_paper(
    parts: Annotated[
        list[str] | None,
        Argument(
            metavar="[PART]...",
            help="all, or some of: xor, softplus, coverage, time, sat, table, noise, permuted, neural.",
        ),
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="A small version of every part, in a minute or two.")
    ] = False,
    out: Annotated[
        str, Option("--out", metavar="DIR", help="Where the report and the numbers go.")
    ] = "out/reproduce",
    jobs: Annotated[
        int, Option("--jobs", help="Pieces of work under way at once; -1: as many as there are cores.")
    ] = 1,
    seconds: Annotated[
        float | None,
        Option("--seconds", callback=shared.positive, help="Time for each part; by default all it takes."),
    ] = None,
    again: Annotated[
        bool, Option("--again", help="Measure long pieces too, instead of reading them from a stored run.")
    ] = False,
    as_json: shared.Json = False,
    seed: Annotated[
        int | None,
        Option("--seed", help="Taken by every command; here each piece of work has seeds of its own."),
    ] = None,
) -> int:
    """Measure the paper's figures anew, beside what this library does, and write one HTML report.

    In full this takes hours, nearly all of them for the learning table and for networks; --jobs -1 keeps
    every core busy. Every finished piece of work is kept under DIR/pieces at once: after a stop, the same
    command goes on from there. Raw numbers are in DIR, a CSV file for each part; those of a quick run are
    called so.

    Exit status 0: everything was measured; 3: something was not, for lack of time or because it failed, and
    the report names it.

    With --json: report, quick, parts (for each: table, rows, measured, found, kept, missing, seconds,
    headline).
    """
    del seed
    chosen = _chosen(parts or ["all"])
    if jobs == 0:
        raise typer.BadParameter("expected a number of jobs from 1 up, or -1 for all cores, got 0")
    from lbm.knowledge.packed import write_whole
    from lbm.trials.about import about_run
    from lbm.trials.parts import part_named
    from lbm.trials.report import write_html
    from lbm.trials.runner import run_part
    from lbm.trials.storage import make_folder, write_csv

    try:
        from lbm.views import figures
    except MissingExtra as error:  # drawing is what needs it, and this command is what was asked for
        raise MissingExtra(error.extra, "lbm reproduce", error.package) from error

    folder, mark = Path(out), ".quick" if quick else ""
    make_folder(folder)
    outcomes: list[Outcome] = []
    tables: list[str] = []
    try:
        for name in chosen:
            part = part_named(name)
            with _progress(part, quick) as on_piece:
                outcome = run_part(
                    part,
                    folder / "pieces" / ("quick" if quick else "full"),
                    quick=quick,
                    n_jobs=jobs,
                    seconds=seconds,
                    again=again,
                    on_piece=on_piece,
                )
            outcomes.append(outcome)
            tables.append(f"{name}{mark}.csv")
            write_csv(folder / tables[-1], part, outcome.rows)
    except KeyboardInterrupt:
        shared.remark(f"finished pieces are kept in {folder}: the same command goes on from there")
        raise
    pictures = {
        picture.name: figures.paint(picture)
        for outcome in outcomes
        for picture in outcome.part.draw(outcome.rows)
    }
    make_folder(folder / "figures")
    for name, svg in pictures.items():
        write_whole(folder / "figures" / f"{name}.svg", [svg])
    about = about_run(_command(chosen, quick, again), quick=quick)
    write_whole(folder / f"about{mark}.json", [json.dumps(about, ensure_ascii=False, indent=2), "\n"])
    report = folder / f"report{mark}.html"
    write_whole(report, [write_html(outcomes, about, pictures, tables)])
    _say(outcomes, tables, report, folder, quick, as_json)
    return 3 if any(outcome.missing for outcome in outcomes) else 0


def _chosen(names: list[str]) -> list[str]:
    """Return the parts that are asked for, in the order of the report."""
    from lbm.trials.parts import PARTS

    for name in names:
        if name not in PARTS and name != "all":
            guess = suggested(name, [*PARTS, "all"])
            raise typer.BadParameter(f"expected parts among all, {', '.join(PARTS)}, got {name!r}{guess}")
    return [name for name in PARTS if "all" in names or name in names]


def _command(chosen: list[str], quick: bool, again: bool) -> str:
    return " ".join(
        ["lbm reproduce", *chosen, *(["--quick"] if quick else []), *(["--again"] if again else [])]
    )


@contextmanager
def _progress(part: Part, quick: bool) -> Iterator[Callable[[Piece], object]]:
    """Show a bar that grows with every piece, by its cost, on a terminal; in a pipe show nothing."""
    pieces = part.pieces(quick)
    beside = ("{task.fields[done]} of {task.fields[pieces]} pieces", "elapsed", "left")
    total, fields = sum(piece.cost for piece in pieces), {"done": 0, "pieces": len(pieces)}
    with shared.bar(part.NAME, total, *beside, stays=True, **fields) as move:
        done: list[float] = []

        def on_piece(piece: Piece) -> None:
            done.append(piece.cost)
            move(sum(done), done=len(done))

        yield on_piece


def _say(
    outcomes: list[Outcome], tables: list[str], report: Path, folder: Path, quick: bool, as_json: bool
) -> None:
    if as_json:
        facts = {
            outcome.part.NAME: {
                "table": str(folder / table),
                "rows": len(outcome.rows),
                "measured": outcome.measured,
                "found": outcome.found,
                "kept": outcome.kept,
                "missing": outcome.missing,
                "seconds": round(outcome.seconds, 3),
                "headline": dict(outcome.part.section(outcome.rows).headline),
            }
            for outcome, table in zip(outcomes, tables, strict=True)
        }
        shared.say_json({"report": str(report), "quick": quick, "parts": facts})
        return
    for outcome in outcomes:
        mark = " (quick)" if quick else ""
        shared.say(f"{outcome.part.TITLE}{mark}")
        shared.say(*(f"  {finding}" for finding in outcome.part.section(outcome.rows).findings))
        if outcome.missing:
            why = next(iter(outcome.missing.values()))
            shared.say(
                f"  {len(outcome.missing)} of {len(outcome.pieces)} pieces are missing; the first: {why}"
            )
    shared.say(str(report))
