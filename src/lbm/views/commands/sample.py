"""``lbm sample``: worlds drawn at random."""

from __future__ import annotations

import io
from dataclasses import asdict
from itertools import chain
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
    *,
    given: shared.Given = None,
    method: shared.Drawn = "auto",
    weighing: shared.DistributionOptions,
    effort: shared.EffortOptions,
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
    reading: shared.TheoryOptions,
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
    from lbm.knowledge.packed import bare_name

    if out is not None and bare_name(out).suffix.lower() not in FORMATS:
        raise FileError(f"cannot write {out}: expected a name that ends in {', '.join(FORMATS)}")
    theory = reading.theory(file)
    from lbm.reasoning.reasoner import sample
    from lbm.reasoning.reasoner import uniformity as measure

    with shared.working("drawing worlds"):
        options = {**asdict(weighing), **asdict(effort)}
        drawn = sample(theory, number, given=given, method=method, seed=seed, **options)
    if out is not None:
        _write(drawn, out)
    far = None
    if uniformity or distance:
        with shared.working("measuring how even they are"):
            far = measure(theory, drawn, given=given, seconds=effort.seconds)
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
    from lbm.knowledge.packed import bare_name, write_whole

    ending = bare_name(out).suffix.lower()
    if ending == ".csv":
        from lbm.knowledge.printed import csv_text

        write_whole(out, csv_text(chain([drawn.atoms], (row.astype(int).tolist() for row in drawn.array))))
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
