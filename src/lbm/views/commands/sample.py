"""``lbm sample``: worlds drawn at random."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from lbm.errors import FileError, MissingExtra
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.reasoning.answers import Draws

FORMATS: Final = (".csv", ".npy", ".parquet")
"""Endings of files that worlds can be written to."""


def sample_worlds(
    file: shared.File,
    number: Annotated[int, Option("-n", "--number", min=1, help="How many worlds.")],
    given: shared.Given = None,
    method: shared.Drawn = "auto",
    distribution: shared.About = "logical",
    temperature: shared.Temperature = 1.0,
    confidence: shared.Confidence = 5.0,
    sweeps: shared.Sweeps = None,
    seconds: shared.Seconds = 60.0,
    out: Annotated[
        str | None,
        Option(
            "-o", "--out", metavar="OUT", help="A file: .csv, .npy or .parquet; by default one world a line."
        ),
    ] = None,
    uniformity: Annotated[
        bool, Option("--uniformity", help="Measure how far they are from uniform over the models.")
    ] = False,
    distance: Annotated[
        bool, Option("--distance", hidden=True, help="What --uniformity was called.")
    ] = False,
    soft_as_hard: shared.SoftAsHard = False,
    lenient: shared.Lenient = False,
    as_json: shared.Json = False,
    seed: shared.Seeded = None,
) -> int:
    """Draw worlds at random: exactly where that can be done, else states of chains, which say so.

    How they were drawn, and how far chains can be trusted, is told on standard error. Exit status 0: they
    were drawn; 1: no world satisfies the evidence and the hard formulae; 3: chains did not agree, or gave too
    few worlds in time.

    With --json: atoms, worlds (lists of 0 and 1 in that order; none if they go to a file), method,
    distribution, temperature, confidence, independent, converged, effective_size, r_hat, missed, chains,
    sweeps, note; and with --uniformity: distance (measure, value, expected, models).
    """
    if out is not None and Path(out).suffix.lower() not in FORMATS:
        raise FileError(f"cannot write {out}: expected a name that ends in {', '.join(FORMATS)}")
    theory = shared.read_theory(file, lenient=lenient, soft_as_hard=soft_as_hard)
    from lbm.reasoning.reasoner import sample
    from lbm.reasoning.reasoner import uniformity as measure

    with shared.working("drawing worlds"):
        drawn = sample(
            theory,
            number,
            given=given,
            method=method,
            distribution=distribution,
            temperature=temperature,
            confidence=confidence,
            sweeps=sweeps,
            seconds=seconds,
            seed=seed,
        )
    if out is not None:
        _write(drawn, out)
    far = None
    if uniformity or distance:
        with shared.working("measuring how even they are"):
            far = measure(theory, drawn, given=given, seconds=seconds)
    if as_json:
        facts = drawn.facts()
        if out is not None:
            facts["worlds"] = []
        if far is not None:
            facts["distance"] = far.facts()
        shared.say_json(facts)
    else:
        if out is None:
            shared.say_each(drawn.world_lines())
        shared.remark(*drawn.lines(), *([] if far is None else far.lines()))
    return 0 if drawn.converged else 3


def _write(drawn: Draws, out: str) -> None:
    """Write worlds, 0 and 1 a column an atom, whole or not at all."""
    from lbm.knowledge.wire import write_whole

    ending = Path(out).suffix.lower()
    if ending == ".csv":
        write_whole(out, _csv(drawn))
        return
    held = io.BytesIO()
    if ending == ".npy":
        import numpy as np

        np.save(held, drawn.array, allow_pickle=False)
    else:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise MissingExtra("tables", "writing .parquet files", "pyarrow") from None
        columns = dict(zip(drawn.atoms, drawn.array.T, strict=True))
        parquet.write_table(pyarrow.table(columns), held)
    write_whole(out, [held.getvalue()])


def _csv(drawn: Draws) -> Iterator[str]:
    import csv

    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    writer.writerow(drawn.atoms)
    yield line.getvalue()
    for row in drawn.array:
        yield ",".join("1" if value else "0" for value in row.tolist()) + "\n"
