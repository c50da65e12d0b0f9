"""The paper's Figure 2: what a hidden unit adds to the free energy, for several confidences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from lbm.knowledge.formula import atom, conjunction
from lbm.machine.translate import translate
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, filled, prose, wording
from lbm.trials.pictures import Chart, Curve, Mark, Picture
from lbm.trials.selecting import number, numbers, where

NAME: Final = "softplus"
TITLE: Final = "Softplus: how deep a well is, and how much leaks"
REVISION: Final = 1
ALONE: Final = False
COLUMNS: Final = columns("confidence:float source x:float free_energy:float")

CONFIDENCES: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
EPSILON: Final = 0.5
MISSED: Final = 3
"""Literals that worlds miss, at most, in which a machine is asked."""


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each confidence; there is nothing to save."""
    del quick
    return [Piece({"confidence": confidence}, cost=0.01) for confidence in CONFIDENCES]


def measure(key: Key) -> list[Row]:
    """Return -log(1 + exp(cx)) as the formula gives it, and as the machine of one cube does.

    The cube has MISSED literals; in a world that misses k of them its unit has the input x = ε - k.
    """
    c = float(key["confidence"])
    rows: list[Row] = []
    for x in np.linspace(-3, 3, 61).tolist():
        value = -float(np.logaddexp(0.0, c * x))
        rows.append({"confidence": c, "source": "formula", "x": round(x, 6), "free_energy": round(value, 12)})
    names = [f"a{i}" for i in range(1, MISSED + 1)]
    machine = translate(conjunction(map(atom, names)), epsilon=EPSILON)
    for missed in range(MISSED + 1):
        world = {name: i >= missed for i, name in enumerate(names)}
        value = float(machine.free_energy(world, confidence=c))
        rows.append(
            {"confidence": c, "source": "machine", "x": EPSILON - missed, "free_energy": round(value, 12)}
        )
    return rows


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return the curves, and what machines say as dots on them."""
    curves = []
    for colour, c in enumerate(CONFIDENCES):
        for source, look in (("formula", "line"), ("machine", "dots")):
            some = where(rows, confidence=c, source=source)
            if some:
                x, y = tuple(numbers(some, "x")), tuple(numbers(some, "free_energy"))
                curves.append(Curve(f"c = {c:g}" if look == "line" else "", x, y, colour, look=look))
    if not curves:
        return []
    return [
        Chart(
            name="softplus",
            title="-log(1 + exp(c x)) for several confidences c",
            caption=wording(__name__, "Picture"),
            x_label="input x of a hidden unit",
            y_label="free energy",
            curves=tuple(curves),
            marks=(Mark(EPSILON, "cube true"), Mark(EPSILON - 1, "one literal wrong")),
            y_range=(-12.0, 0.5),
        )
    ]


def section(rows: Sequence[Row]) -> Section:
    """Return how deep wells are, and how many near misses look like one."""
    lines, headline = [], {}
    worst = 0.0
    for c in CONFIDENCES:
        said = {
            number(row, "x"): number(row, "free_energy")
            for row in where(rows, confidence=c, source="machine")
        }
        if len(said) <= MISSED:
            continue
        true, near = -said[EPSILON], -said[EPSILON - 1]
        false = math.ceil(true / near)
        chances = [1 / (1 + math.exp(-c * x)) for x in (EPSILON, EPSILON - 1)]
        lines.append(
            (f"{c:g}", f"{true:.4f}", f"{near:.4f}", f"{false:,}", f"{chances[0]:.3f}", f"{chances[1]:.3f}")
        )
        headline[f"near misses that look like a model, c = {c:g}"] = float(false)
        off = (abs(-float(np.logaddexp(0.0, c * x)) - value) for x, value in said.items())
        worst = max(worst, *off)
    near_misses = headline.get("near misses that look like a model, c = 5")
    findings = []
    if near_misses is not None:
        findings = [
            wording(__name__, "Near misses", near_misses=near_misses),
            f"The machines agree with the formula to {worst:.0e}." if worst else "",
        ]
    head = ("confidence c", "well", "leak", "leaks that make a well")
    return Section(
        **prose(__name__),
        findings=tuple(filter(None, findings)),
        tables=filled(
            Sheet(
                "The well of a true cube, and the leak of one that misses by a literal",
                (*head, "P(unit on), cube true", "P(unit on), one wrong"),
                tuple(lines),
                left=(),
            )
        ),
        headline=headline,
    )
