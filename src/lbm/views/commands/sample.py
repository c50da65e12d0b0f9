"""``lbm sample``: worlds drawn at random."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lbm.errors import FileError, MissingExtra
from lbm.views.commands import options, streams

if TYPE_CHECKING:
    from lbm.reasoning.answer import Draws

FORMATS: Final = (".csv", ".npy", ".parquet")
"""Endings of files that worlds can be written to."""

Number = Annotated[int, typer.Option("-n", "--number", min=1, help="How many worlds.")]
Out = Annotated[
    str | None,
    typer.Option(
        "-o", "--out", metavar="OUT", help="A file: .csv, .npy or .parquet; by default one world a line."
    ),
]

Measured = Annotated[
    bool, typer.Option("--uniformity", help="Measure how far they are from uniform over the models.")
]
MeasuredOnce = Annotated[bool, typer.Option("--distance", hidden=True, help="What --uniformity was called.")]


def sample_worlds(
    file: options.File,
    number: Number,
    given: options.Given = None,
    method: options.Drawn = options.HowDrawn.auto,
    distribution: options.About = options.Distribution.logical,
    temperature: options.Temperature = 1.0,
    confidence: options.Confidence = 5.0,
    sweeps: options.Sweeps = None,
    seconds: options.Seconds = 60.0,
    out: Out = None,
    uniformity: Measured = False,
    distance: MeasuredOnce = False,
    soft_as_hard: options.SoftAsHard = False,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
    seed: options.Seeded = None,
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
    theory = streams.read_theory(file, lenient=lenient, soft_as_hard=soft_as_hard)
    from lbm.reasoning.reasoner import sample
    from lbm.reasoning.reasoner import uniformity as measure

    with streams.working("drawing worlds"):
        drawn = sample(
            theory,
            number,
            given=given,
            method=method.value,
            distribution=distribution.value,
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
        with streams.working("measuring how even they are"):
            far = measure(theory, drawn, given=given, seconds=seconds)
    if as_json:
        facts = drawn.facts()
        if out is not None:
            facts["worlds"] = []
        if far is not None:
            facts["distance"] = far.facts()
        streams.say_json(facts)
    else:
        if out is None:
            streams.say_each(drawn.world_lines())
        streams.remark(*drawn.lines(), *([] if far is None else far.lines()))
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
