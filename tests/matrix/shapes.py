"""Theories of any size whose answers are known: many groups of five atoms, or one formula over all atoms.

A theory of groups is a product: counts multiply, log Z and best scores add, and what is asked of the first
group depends on it alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import lbm
from tests.oracles import truth, worlds

GROUP = "abcde"
"""The atoms of a group: g0a, g0b, ..."""

COUNTABLE = 20_000
"""Atoms up to which binomial coefficients are added up."""


@dataclass(frozen=True)
class Known:
    """What is known of a theory; None: not known."""

    count: int | None = None
    best: Fraction | None = None
    log_partition: float | None = None
    chance: float | None = None
    world: Mapping[str, bool] | None = None


@dataclass(frozen=True)
class Shape:
    """A theory with a question about it, and what is known."""

    sort: str
    atoms: int
    text: str
    query: str
    given: str | None
    known: Known

    @cached_property
    def theory(self) -> lbm.Theory:
        """Return the theory."""
        return lbm.Theory.parse(self.text)


SORTS: dict[str, tuple[list[str], str, str | None]] = {
    # The lines of a group, what is asked, and the evidence: both about the first group.
    "hard": (["{a} -> {b} | {c}", "~({c} & {d})", "{d} | {e} | ~{a}"], "{a}", None),
    "soft": (
        ["1.5: {a} -> {b}", "0.5: {b} ^ {c}", "-0.75: {c} & {d} & {e}", "0.25: {d}"],
        "{b} & ~{d}",
        None,
    ),
    "mixed": (["{a} | {b}", "1: {b} -> {c} & ({d} | {e})", "2: ~{b}", "0.5: {e} <-> {a}"], "{c}", None),
    "cardinalities": (
        ["atleast(2, {a}, {b}, {c}, {d}, {e})", "1.25: atmost(3, {a}, {b}, {c}, {d}, {e})"],
        "{a}",
        None,
    ),
    "parities": (["{a} ^ {b} ^ {c}", "~({c} ^ {d} ^ {e})", "0.5: {a} ^ {e}", "1: {d}"], "{a} ^ {d}", None),
    "groups": (["exactly(1, {a}, {b}, {c}, {d}, {e})", "1: {a}", "0.5: {b} | {c}"], "{b}", None),
    "evidence": (
        ["{a} | {b}", "1: {b} -> {c}", "0.5: {d} <-> {e}", "2: ~{a}"],
        "{c} -> {d}",
        "({a} | {c}) & ~{e}",
    ),
}
WIDE = ("wide cardinality", "wide parity", "clauses")
ALL = (*SORTS, *WIDE)


def shape(sort: str, atoms: int) -> Shape:
    """Return the theory of a sort and size."""
    if sort in SORTS:
        return _grouped(sort, atoms)
    names = [f"v{i}" for i in range(atoms)]
    if sort == "wide cardinality":
        half = atoms // 2
        return Shape(sort, atoms, f"atleast({half}, {', '.join(names)})", "v0", None, _half(atoms, names))
    if sort == "wide parity":
        known = Known(1 << (atoms - 1), Fraction(0), (atoms - 1) * math.log(2), 0.5, _first(names, {"v0"}))
        return Shape(sort, atoms, " ^ ".join(names), "v0", None, known)
    return _clauses(atoms, names)


def _first(names: list[str], true: set[str]) -> dict[str, bool]:
    return {name: name in true for name in names}


def _half(atoms: int, names: list[str]) -> Known:
    world = _first(names, set(names))
    if atoms > COUNTABLE:
        return Known(best=Fraction(0), world=world)
    half = atoms // 2
    ways = term = 1  # worlds with all atoms true, all but one, ...
    with_first = 1
    inner = 1
    for false in range(1, atoms - half + 1):
        term = term * (atoms - false + 1) // false
        ways += term
        inner = inner * (atoms - false) // false
        with_first += inner
    log = (
        (ways.bit_length() - 64) * math.log(2) + math.log(ways >> (ways.bit_length() - 64))
        if ways >> 64
        else math.log(ways)
    )
    return Known(ways, Fraction(0), log, float(Fraction(with_first, ways)), world)


def _clauses(atoms: int, names: list[str]) -> Shape:
    """Return random clauses that a hidden world satisfies, and weak wishes: past exact methods."""
    rng = random.Random(atoms)
    hidden = {name: rng.random() < 0.5 for name in names}
    lines = []
    while len(lines) < 2 * atoms:
        some = {name: rng.random() < 0.5 for name in rng.sample(names, 3)}
        if any(hidden[name] == sign for name, sign in some.items()):
            lines.append(" | ".join(name if sign else f"~{name}" for name, sign in some.items()))
    lines += [f"0.5: {name}" for name in names[::3]]
    return Shape(
        "clauses",
        atoms,
        "\n".join(lines),
        "v0 | v1",
        None,
        Known(world=hidden if set(names) <= _said(lines) else None),
    )


def _said(lines: list[str]) -> set[str]:
    return {word.lstrip("~") for line in lines for word in line.split()}


def _grouped(sort: str, atoms: int) -> Shape:
    template, query, given = SORTS[sort]
    groups, extra = divmod(atoms, len(GROUP))
    lines = []
    for g in range(groups):
        place = {letter: f"g{g}{letter}" for letter in GROUP}
        lines += [line.format(**place) for line in template]
    idle = [f"idle{i}" for i in range(extra)]
    first = {letter: f"g0{letter}" for letter in GROUP}
    asked, evidence = query.format(**first), None if given is None else given.format(**first)
    told, plain = _group(sort, True), _group(sort, False)
    world = {
        f"g{g}{letter}": (told if g == 0 else plain).world[letter] for g in range(groups) for letter in GROUP
    }
    known = Known(
        told.count * plain.count ** (groups - 1) << extra,
        told.best + (groups - 1) * plain.best,
        told.log + (groups - 1) * plain.log + extra * math.log(2),
        told.chance,
        world | dict.fromkeys(idle, False),
    )
    head = [f"atoms {', '.join(idle)}"] if idle else []
    return Shape(sort, atoms, "\n".join([*head, *lines]), asked, evidence, known)


@dataclass(frozen=True)
class _Group:
    count: int
    best: Fraction
    log: float
    chance: float
    world: dict[str, bool]


@lru_cache
def _group(sort: str, told: bool) -> _Group:
    """Return what is known of one group, with the evidence if it is told."""
    template, query, given = SORTS[sort]
    names = {letter: letter for letter in GROUP}
    theory = lbm.Theory.parse("\n".join(line.format(**names) for line in template))
    evidence = lbm.parse(given.format(**names)) if given and told else None
    asked = lbm.parse(query.format(**names))
    shares, chances, best, chosen, count = [], [], None, {}, 0
    for world in worlds(GROUP):
        if any(s.weight is None and not truth(s.formula, world) for s in theory):
            continue
        if evidence is not None and not truth(evidence, world):
            continue
        score = sum(
            (Fraction(s.weight) for s in theory if s.weight is not None and truth(s.formula, world)),
            Fraction(0),
        )
        count += 1
        shares.append(math.exp(score))
        chances.append(truth(asked, world))
        if best is None or score > best:
            best, chosen = score, world
    assert best is not None
    total = math.fsum(shares)
    right = math.fsum(share for share, true in zip(shares, chances, strict=True) if true)
    return _Group(count, best, math.log(total), right / total, chosen)
