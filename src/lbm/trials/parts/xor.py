"""The paper's examples, XOR and the Nixon diamond: truth against energy, and Penalty Logic beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

from lbm.knowledge.theory import Theory
from lbm.machine.penalty import energy_polynomial, penalty_polynomial, reduce_degree, write_polynomial
from lbm.machine.translate import translate
from lbm.trials.part import Key, Piece, Row, Section, Sheet, columns, filled, prose, wording
from lbm.trials.pictures import Drawing, Picture
from lbm.trials.selecting import numbers, where

NAME: Final = "xor"
TITLE: Final = "XOR and the Nixon diamond: logic as energy"
REVISION: Final = 1
ALONE: Final = False
COLUMNS: Final = columns(
    "theory encoding what world score:float energy:float free_energy:float visible:int hidden:int "
    "weights:int text"
)

NIXON: Final = "atoms n, r, q, p\n1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
THEORIES: Final = {
    "XOR": "(x ^ y) <-> z",
    "Nixon diamond": NIXON,
    "rule, 5 conditions": "a & b & c & d & e -> y",
    "clause, 6 literals": "a | b | c | d | e | f",
    "φ(6, 4)": "x1 & x2 & x3 & x4 & x5 & x6 & (y1 | y2 | y3 | y4)",
    "XOR of 5": "a ^ b ^ c ^ d ^ e",
}
SHOWN: Final = ("XOR", "Nixon diamond")
"""Theories whose worlds are listed; of the others only units are counted."""

ENCODINGS: Final = {"sdnf": "strict DNF", "penalty": "Penalty Logic"}


def pieces(quick: bool) -> list[Piece]:
    """Return a piece for each theory; there is nothing to save."""
    del quick
    return [Piece({"theory": name}, cost=0.05) for name in THEORIES]


def measure(key: Key) -> list[Row]:
    """Return energies of every world and sizes of machines, by encoding; and energy functions as text."""
    name = str(key["theory"])
    theory = Theory.parse(THEORIES[name])
    rows: list[Row] = []
    empty: Row = {column: None if kind is not str else "" for column, kind in COLUMNS.items()}
    for encoding in ENCODINGS:
        machine = translate(theory, epsilon=0.5, encoding=encoding)
        start: Row = {**empty, "theory": name, "encoding": encoding}
        sizes: Row = {
            "visible": len(machine.atoms),
            "hidden": machine.hidden,
            "weights": int(machine.weights.nnz),
            "text": machine.equation() if name in SHOWN else "",
        }
        rows.append({**start, "what": "machine", **sizes})
        if name not in SHOWN:
            continue
        if encoding == "penalty":
            rows += [{**start, "what": what, "text": text} for what, text in _polynomials(theory)]
        for values in product((False, True), repeat=len(theory.atoms)):
            world = dict(zip(theory.atoms, values, strict=True))
            rows.append(
                {
                    **start,
                    "what": "world",
                    "world": " ".join(f"{atom}={value:d}" for atom, value in world.items()),
                    "score": _score(theory, world),
                    "energy": float(machine.rank_energy(world)),
                    "free_energy": round(float(machine.free_energy(world, confidence=5.0)), 9),
                }
            )
    return rows


def _score(theory: Theory, world: dict[str, bool]) -> float:
    """Return the weight of the formulae that are true in a world; a hard one counts 1."""
    from lbm.knowledge.formula import holds

    return float(sum(statement.weight or 1 for statement in theory if holds(statement.formula, world)))


def _polynomials(theory: Theory) -> list[tuple[str, str]]:
    """Return Penalty Logic's energy function at three stages of its making, as text."""
    polynomial = penalty_polynomial(theory)
    found = [("polynomial", write_polynomial(polynomial))]
    for degree, what in ((2, "quadratic"), (1, "restricted")):
        reduced = reduce_degree(polynomial, theory.atoms, degree=degree)
        found.append((what, write_polynomial(energy_polynomial(reduced))))
    return found


# --- what is shown ---------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> list[Picture]:
    """Return the networks of both examples, by both encodings."""
    there = {(row["theory"], row["encoding"]) for row in rows}
    return [
        Drawing(
            name=f"network-{name.split()[0].lower()}-{encoding}",
            title=f"{name}, {ENCODINGS[encoding]}",
            caption=wording(__name__, f"Picture, {ENCODINGS[encoding]}"),
            theory=THEORIES[name],
            encoding=encoding,
        )
        for name in SHOWN
        for encoding in ENCODINGS
        if (name, encoding) in there
    ]


def section(rows: Sequence[Row]) -> Section:
    """Return truth tables against energies, energy functions and numbers of units."""
    tables = [table for name in SHOWN for table in (_worlds(name, rows), _equations(name, rows))]
    return Section(
        **prose(__name__),
        findings=tuple(_findings(rows)),
        tables=filled(*tables, _sizes(rows)),
        headline={
            f"hidden units, {row['theory']}, {row['encoding']}": row["hidden"]
            for row in where(rows, what="machine")
            if row["theory"] in SHOWN
        },
    )


def _worlds(name: str, rows: Sequence[Row]) -> Sheet:
    ours = where(rows, theory=name, encoding="sdnf", what="world")
    theirs = {row["world"]: row for row in where(rows, theory=name, encoding="penalty", what="world")}
    if not ours:
        return Sheet("", (), ())
    best = max(numbers(ours, "score"))
    lines = [
        (
            *[pair.split("=")[1] for pair in str(row["world"]).split()],
            f"{row['score']:g}",
            f"{row['energy']:g}",
            f"{round(float(row['free_energy'] or 0), 3):g}",
            f"{theirs[row['world']]['energy']:g}" if row["world"] in theirs else "-",
            "best" if row["score"] == best else "",
        )
        for row in ours
    ]
    names = [pair.split("=")[0] for pair in str(ours[0]["world"]).split()]
    worth = "true" if best == 1 else "weight satisfied"
    head = (*names, worth, "min_h E", "free energy", "min_h E, Penalty Logic", "")
    note = wording(__name__, "Worlds")
    return Sheet(f"{name}: truth against energy", head, tuple(lines), left=(len(head) - 1,), note=note)


def _equations(name: str, rows: Sequence[Row]) -> Sheet:
    lines = []
    stages = (
        ("sdnf", "machine", "strict DNF: the machine"),
        ("penalty", "polynomial", "Penalty Logic: products of any degree"),
        ("penalty", "quadratic", "Penalty Logic: quadratic; no RBM yet"),
        ("penalty", "restricted", "Penalty Logic: the form of an RBM"),
    )
    for encoding, what, said in stages:
        lines += [
            (said, f"`{row['text']}`") for row in where(rows, theory=name, encoding=encoding, what=what)
        ]
    return Sheet(f"{name}: energy functions", ("form", "E"), tuple(lines), left=(0, 1))


def _sizes(rows: Sequence[Row]) -> Sheet:
    lines = [
        (name, *(f"{row[column]:,}" for column in ("hidden", "weights") for row in both))
        for name, both in _machines(rows).items()
    ]
    head = ("theory", "hidden units, ours", "Penalty Logic", "weights, ours", "Penalty Logic")
    return Sheet("Numbers of hidden units and weights", head, tuple(lines))


def _findings(rows: Sequence[Row]) -> list[str]:
    found = []
    for name in SHOWN:
        worlds = where(rows, theory=name, encoding="sdnf", what="world")
        if not worlds:
            continue
        right = all(float(row["energy"] or 0) == -0.5 * float(row["score"] or 0) for row in worlds)
        (unit,) = where(rows, theory=name, encoding="sdnf", what="machine")
        verb = "is" if right else "is NOT"
        found.append(
            f"{name}: in all {len(worlds)} worlds min_h E {verb} -0.5 times the weight of what is true, with "
            f"{unit['hidden']} hidden units."
        )
    nixon = [
        row
        for row in where(rows, theory="Nixon diamond", encoding="sdnf", what="world")
        if str(row["world"]).startswith("n=1")
    ]
    if nixon:
        best = max(numbers(nixon, "score"))
        said = " and ".join(f"`{row['world']}`" for row in nixon if row["score"] == best)
        found.append(
            f"Given n, the best worlds are {said}: whether Nixon is a pacifist stays open, as it should."
        )
    fewer: list[str] = []
    more: list[str] = []
    for name, both in _machines(rows).items():
        ours, theirs = numbers(both, "hidden")
        if ours != theirs:
            (fewer if ours < theirs else more).append(f"{name} ({ours:.0f} against {theirs:.0f})")
    if fewer or more:
        found.append(
            f"The strict DNF needs fewer hidden units than Penalty Logic for {', '.join(fewer) or 'none'}, "
            f"and more for {', '.join(more) or 'none'}; its atoms need no biases."
        )
    return found


def _machines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of both machines, ours and that of Penalty Logic, where both are there."""
    found = {
        name: [
            row
            for encoding in ENCODINGS
            for row in where(rows, theory=name, encoding=encoding, what="machine")
        ]
        for name in THEORIES
    }
    return {name: both for name, both in found.items() if len(both) == len(ENCODINGS)}
