"""Theories of 20 to 200 atoms whose truth is known: some kinds are hard for chains, others should not be.

``make(kind, number)`` is the same theory on every machine and day.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import lbm
from lbm.knowledge.formula import Formula
from tests.certainty.truths import Counted, Eliminated, TooWide, Truth

WEAK = 0.0001
"""Weight of couplings that only join atoms."""


@dataclass(frozen=True)
class Case:
    """A theory with its truth, and what may be asked about it."""

    kind: str
    number: int
    theory: lbm.Theory
    truth: Truth
    queries: tuple[Formula, ...]
    benign: bool = False

    @property
    def name(self) -> str:
        """Return how the case is named in tables."""
        return f"{self.kind}-{self.number}"


def _names(n: int, letter: str = "v") -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(n))


def _joined(names: Sequence[str], rng: random.Random) -> list[str]:
    """Return weak formulae that join atoms and treat all of them alike."""
    if len(names) <= 50:
        return [f"{WEAK}: {a} <-> {b}" for a, b in combinations(names, 2)]
    # Too many pairs: what is true of their number joins them too.
    middle = rng.randint(len(names) // 3, 2 * len(names) // 3)
    return [f"0.01: {_card('atleast', middle, names)}"]


def _card(kind: str, bound: int, names: Sequence[str]) -> str:
    return f"{kind}({bound}, {', '.join(names)})"


def _all(names: Sequence[str], sign: str = "") -> str:
    return " & ".join(sign + name for name in names)


def _log_ball(n: int, radius: int) -> float:
    """Return the logarithm of the number of worlds of n atoms with at most so many true."""
    return math.log(sum(math.comb(n, k) for k in range(radius + 1)))


def _counted(
    lines: Sequence[str], blocks: Sequence[Sequence[str]], queries: Sequence[str]
) -> tuple[lbm.Theory, Truth, list[str]]:
    order = [name for block in blocks for name in block]
    theory = lbm.Theory.parse("\n".join([f"atoms {', '.join(order)}", *lines]))
    return theory, Counted(theory, tuple(map(tuple, blocks))), list(queries)


def _eliminated(lines: Sequence[str], queries: Sequence[str]) -> tuple[lbm.Theory, Truth, list[str]]:
    theory = lbm.Theory.parse("\n".join(lines))
    return theory, Eliminated(theory), list(queries)


Made = tuple[lbm.Theory, Truth, list[str]]


# --- wells: deep, narrow, and nothing leads to them -------------------------------------------------


def conjunction_well(rng: random.Random, number: int) -> Made:
    """Return one world that outweighs all others together, or nearly; number 0 is a fixed one."""
    n, weight = (33, 24.75) if number == 0 else (rng.randint(20, 60), 0.0)
    names = _names(n)
    weight = weight or round(n * math.log(2) + rng.uniform(-1, 3), 3)
    lines = [f"{weight}: {_all(names)}", *_joined(names, rng)]
    return _counted(lines, [names], ["v0", _all(names), f"~({_all(names)})"])


def count_well(rng: random.Random, number: int) -> Made:
    """Return a well of a few thousand worlds, entered at once; number 0 is a fixed one."""
    n, k, weight = (50, 45, 24.0) if number == 0 else (rng.randint(30, 120), 0, 0.0)
    k = k or rng.randint(math.ceil(0.85 * n), n - 1)
    names = _names(n)
    weight = weight or round(n * math.log(2) - _log_ball(n, n - k) + rng.uniform(-1, 4), 3)
    well = _card("atleast", k, names)
    return _counted([f"{weight}: {well}", *_joined(names, rng)], [names], [well, "v0", f"~{well}"])


def many_wells(rng: random.Random, number: int) -> Made:
    """Return several wells in far corners, of different depth."""
    n = rng.randint(20, 45)
    names, half = _names(n), n // 2
    base = n * math.log(2)
    left, right = names[:half], names[half:]
    wells = [_all(names), _all(names, "~"), f"{_all(left)} & {_all(right, '~')}"][: 2 + number % 2]
    lines = [f"{round(base + rng.uniform(-1, 2.5), 3)}: {well}" for well in wells]
    lines += _joined(names, rng)
    return _counted(lines, [left, right], ["v0", wells[0], wells[1], f"{names[-1]}"])


def wide_wells(rng: random.Random, number: int) -> Made:
    """Return a narrow deep well and a wide shallow one on the other side."""
    n = rng.randint(24, 100)
    names, radius = _names(n), rng.randint(n // 12, n // 8)
    base = n * math.log(2)
    deep, wide = _all(names), _card("atmost", radius, names)
    lines = [
        f"{round(base + rng.uniform(0, 2), 3)}: {deep}",
        f"{round(base - _log_ball(n, radius) + rng.uniform(0, 2), 3)}: {wide}",
        *_joined(names, rng),
    ]
    return _counted(lines, [names], ["v0", deep, wide, f"~{wide}"])


def golf_holes(rng: random.Random, number: int) -> Made:
    """Return holes in separate blocks of atoms, that a weak formula over all of them joins."""
    blocks = [_names(rng.randint(16, 30), letter) for letter in "abc"[: 2 + number % 2]]
    every = [name for block in blocks for name in block]
    lines = [
        f"{round(len(block) * math.log(2) + rng.uniform(-1.5, 1.5), 3)}: {_all(block)}" for block in blocks
    ]
    lines.append(f"0.01: {_card('atleast', len(every) // 2, every)}")
    return _counted(lines, blocks, ["a0", "b0", _all(blocks[0])])


# --- clusters: models joined by nothing --------------------------------------------------------------


def two_clusters(rng: random.Random, number: int) -> Made:
    """Return two sets of models, far from one another; number 0 is a fixed one."""
    n, high, low = (40, 34, 8) if number == 0 else (rng.randint(20, 80), 0, 0)
    if number:
        low = rng.randint(n // 8, n // 4)
        high = n - min(n // 4, max(1, low + rng.randint(-2, 2)))
    names = _names(n)
    lines = [f"b -> {_card('atleast', high, names)}", f"~b -> {_card('atmost', low, names)}"]
    return _counted(lines, [["b"], names], ["b", "v0", "~b"])


def three_clusters(rng: random.Random, number: int) -> Made:
    """Return three sets of models of two blocks of atoms."""
    n = rng.randint(12, 30)
    left, right = _names(n, "l"), _names(n, "r")
    few, many = n // 5, n - n // 5
    lines = [
        "exactly(1, a, b, c)",
        f"a -> {_card('atleast', many, left)} & {_card('atleast', many, right)}",
        f"b -> {_card('atmost', few, left)} & {_card('atleast', many - rng.randint(0, 1), right)}",
        f"c -> {_card('atmost', few, left)} & {_card('atmost', few + rng.randint(0, 1), right)}",
    ]
    if number % 2:
        lines.append(f"{round(rng.uniform(0.5, 2), 2)}: a")
    return _counted(lines, [["a"], ["b"], ["c"], left, right], ["a", "b", "c", "l0", "r0"])


def soft_clusters(rng: random.Random, number: int) -> Made:
    """Return two sets of worlds between which every way costs much."""
    n = rng.randint(20, 60)
    names = _names(n)
    low = rng.randint(n // 8, n // 5)
    weight = round(n * math.log(2) - _log_ball(n, low) + rng.uniform(2, 6), 3)
    shift = round(rng.uniform(-1, 1), 2) or 0.5
    lines = [
        f"{weight}: {_card('atleast', n - low, names)} | {_card('atmost', low, names)}",
        f"{shift}: b",
        f"4: b <-> {_card('atleast', (n + 1) // 2, names)}",
    ]
    return _counted(lines, [["b"], names], ["b", "v0"])


# --- locks: atoms that can change only together -------------------------------------------------------


def equivalences(rng: random.Random, number: int) -> Made:
    """Return heavy equivalences in rows, a weak wish at each end."""
    lines, queries = [], []
    for row in range(rng.randint(2, 4)):
        names = _names(rng.randint(8, 30), f"r{row}x")
        weight = round(rng.uniform(3, 12), 2)
        lines += [f"{weight}: {a} <-> {'~' if rng.random() < 0.3 else ''}{b}" for a, b in pairwise(names)]
        lines += [f"{round(rng.uniform(0.1, 1), 2)}: {names[0]}", f"0.2: {names[-1]}"]
        queries += [names[0], names[len(names) // 2]]
    heads = [query for query in queries if query.endswith("x0")]
    lines += [f"{round(rng.uniform(0.2, 1.5), 2)}: {a} <-> {b}" for a, b in pairwise(heads)]
    return _eliminated(lines, queries)


def choices(rng: random.Random, number: int) -> Made:
    """Return exactly-one groups whose neighbours agree most of the time."""
    groups, size = rng.randint(5, 20), rng.randint(3, 6)
    lines = []
    for g in range(groups):
        names = [f"g{g}x{i}" for i in range(size)]
        lines.append(_card("exactly", 1, names))
        lines.append(f"{round(rng.uniform(0.1, 1), 2)}: {rng.choice(names)}")
        if g:
            weight = round(rng.uniform(1, 5), 2)
            lines += [f"{weight}: g{g - 1}x{i} -> g{g}x{i}" for i in range(size)]
    return _eliminated(lines, ["g0x0", f"g{groups - 1}x1", "g0x0 & g1x0"])


def parities(rng: random.Random, number: int) -> Made:
    """Return parities of many atoms by way of definitions, one after the other."""
    lines, ends = [], []
    for row in range(rng.randint(1, 3)):
        n = rng.randint(6, 20)
        names, sums = _names(n, f"p{row}x"), _names(n, f"p{row}s")
        lines.append(f"{sums[0]} <-> {names[0]}")
        lines += [f"{sums[i]} <-> ({sums[i - 1]} ^ {names[i]})" for i in range(1, n)]
        lines += [f"{round(rng.uniform(0.2, 2), 2)}: {name}" for name in names]
        lines.append(f"{round(rng.uniform(0.5, 4), 2)}: ~{sums[-1]}")
        ends.append(sums[-1])
    lines += [f"1.5: {a} <-> {b}" for a, b in pairwise(ends)]
    return _eliminated(lines, [*ends, "p0x0", "p0s2"])


def frozen_blocks(rng: random.Random, number: int) -> Made:
    """Return blocks of atoms that are all equal, and blocks that like their neighbours."""
    blocks = [_names(rng.randint(4, 12), f"b{b}x") for b in range(rng.randint(4, 10))]
    lines = [f"{a} <-> {b}" for block in blocks for a, b in pairwise(block)]
    lines += [f"{round(rng.uniform(0.1, 1.2), 2)}: {a[-1]} <-> {b[0]}" for a, b in pairwise(blocks)]
    lines += [f"{round(rng.uniform(0.1, 0.8), 2)}: {block[0]}" for block in blocks]
    return _eliminated(lines, [blocks[0][0], blocks[-1][-1], f"{blocks[0][0]} & {blocks[1][0]}"])


# --- entropic barriers --------------------------------------------------------------------------------


def trap(rng: random.Random, number: int) -> Made:
    """Return two regions of counts with few worlds between them: a barrier in the share of each count."""
    n = rng.randint(20, 60)
    names = _names(n)
    low, high = rng.randint(n // 6, n // 4), n - rng.randint(n // 6, n // 4)
    depth = rng.uniform(4, 14)
    lift = rng.uniform(-1, 1)

    def wanted(k: int) -> float:
        """Return the logarithm of the share of a count that is wanted, up to a constant."""
        near = min(abs(k - low), abs(k - high))
        return -depth * min(1.0, near / ((high - low) / 2)) ** 1.5 + (lift if k > n // 2 else 0.0)

    scores = [wanted(k) - math.log(math.comb(n, k)) for k in range(n + 1)]
    steps = [(k, round(scores[k] - scores[k - 1], 4)) for k in range(1, n + 1)]
    lines = [f"{step}: {_card('atleast', k, names)}" for k, step in steps if step]
    return _counted(lines, [names], ["v0", _card("atleast", n // 2, names)])


def bottleneck(rng: random.Random, number: int) -> Made:
    """Return two large regions of hard models, with a few worlds as the only way between them."""
    n, m = rng.randint(10, 30), rng.randint(10, 30)
    left, right = _names(n, "l"), _names(m, "r")
    # Away from its middle either block may do as it likes, but only where the other one is all false.
    lines = [f"{_all(left, '~')} | {_all(right, '~')}"]
    if number % 2:
        lines.append(f"{round((n - m) * math.log(2) + rng.uniform(-1, 1), 3) or 0.1}: ~({_all(right, '~')})")
    return _counted(lines, [left, right], ["l0", "r0", _all(left, "~")])


# --- benign -------------------------------------------------------------------------------------------


def _clause(rng: random.Random, names: Sequence[str]) -> str:
    return " | ".join(("" if rng.random() < 0.5 else "~") + name for name in rng.sample(list(names), 3))


def random_clauses(rng: random.Random, number: int) -> Made:
    """Return random 3-SAT of few atoms up to ratio 3, or of more at a lower one."""
    n = rng.choice([20, 22, 25, 30, 45, 60])
    ratio = rng.uniform(0.5, 1.2) if n > 30 else rng.uniform(1, 3 if n <= 25 else 2.2)
    names = _names(n)
    lines = [_clause(rng, names) for _ in range(round(ratio * n))]
    return _eliminated([f"atoms {', '.join(names)}", *lines], ["v0", "v1 & v2", "v3 | ~v4"])


def near_clauses(rng: random.Random, number: int) -> Made:
    """Return 3-SAT up to ratio 3 and 200 atoms, whose clauses are about atoms near one another."""
    n = rng.randint(40, 200)
    names = _names(n)
    starts = [rng.randrange(n - 6) for _ in range(round(rng.uniform(1, 3) * n))]
    lines = [_clause(rng, names[start : start + 7]) for start in starts]
    return _eliminated([f"atoms {', '.join(names)}", *lines], ["v0", "v1 & v2", f"v{n - 1}"])


def weak_grid(rng: random.Random, number: int) -> Made:
    """Return a grid of weak equivalences and weak wishes."""
    wide, long = rng.choice([(4, 5), (5, 8), (6, 10), (8, 12), (10, 20)])
    name = [[f"x{i}_{j}" for j in range(wide)] for i in range(long)]
    most = rng.uniform(0.1, 0.3)
    lines = []
    for i in range(long):
        for j in range(wide):
            lines.append(f"{round(rng.uniform(0.02, 0.5), 3)}: {rng.choice(['', '~'])}{name[i][j]}")
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < long and b < wide:
                    lines.append(f"{round(rng.uniform(0.05, most), 3)}: {name[i][j]} <-> {name[a][b]}")
    return _eliminated(lines, ["x0_0", f"x{long - 1}_{wide - 1}", "x0_0 <-> x0_1"])


def separate_groups(rng: random.Random, number: int) -> Made:
    """Return small groups of atoms that share no formula."""
    lines = []
    for g in range(rng.randint(7, 40)):
        a, b, c, d, e = (f"g{g}{letter}" for letter in "abcde")
        lines.append(rng.choice([f"{a} | {b}", f"{a} -> {b} | {c}", f"~({a} & {b} & {c})"]))
        lines.append(f"{round(rng.uniform(0.2, 1.5), 2)}: {b} -> {c} & {d}")
        lines.append(f"{round(rng.uniform(0.2, 1.5), 2)}: {c} ^ {e}")
        lines.append(f"{round(rng.uniform(0.1, 1), 2)}: {a}")
    return _eliminated(lines, ["g0a", "g1b", "g0a & g1c", "g2d | g3e"])


def rows(rng: random.Random, number: int) -> Made:
    """Return rows of soft rules, each from one atom to the next."""
    n = rng.randint(20, 200)
    names = _names(n)
    lines = [
        f"{round(rng.uniform(0.1, 1.2), 2)}: {a} {rng.choice(['->', '<->', '|'])} {b}"
        for a, b in pairwise(names)
    ]
    lines += [f"{round(rng.uniform(0.1, 0.6), 2)}: {name}" for name in rng.sample(names, n // 3)]
    return _eliminated([f"atoms {', '.join(names)}", *lines], ["v0", f"v{n // 2}", f"v{n - 1} & v{n - 2}"])


# --- all of them --------------------------------------------------------------------------------------

HARD: dict[str, Callable[[random.Random, int], Made]] = {
    "conjunction well": conjunction_well,
    "count well": count_well,
    "many wells": many_wells,
    "wide wells": wide_wells,
    "golf holes": golf_holes,
    "two clusters": two_clusters,
    "three clusters": three_clusters,
    "soft clusters": soft_clusters,
    "equivalences": equivalences,
    "choices": choices,
    "parities": parities,
    "frozen blocks": frozen_blocks,
    "trap": trap,
    "bottleneck": bottleneck,
}
BENIGN: dict[str, Callable[[random.Random, int], Made]] = {
    "random clauses": random_clauses,
    "near clauses": near_clauses,
    "weak grid": weak_grid,
    "separate groups": separate_groups,
    "rows": rows,
}
KINDS = (*HARD, *BENIGN)


@lru_cache(maxsize=8)
def make(kind: str, number: int) -> Case:
    """Return the theory of a kind with this number; one that has no model, or is too wide, is passed over."""
    build = HARD.get(kind) or BENIGN[kind]
    for attempt in range(1000):
        rng = random.Random(f"{kind} {number} {attempt}")
        theory, truth, queries = build(rng, number)
        try:
            if truth.log_partition() == -math.inf:
                continue
        except TooWide:
            continue
        return Case(kind, number, theory, truth, tuple(map(lbm.parse, queries)), benign=kind in BENIGN)
    raise AssertionError(f"no theory of kind {kind!r}")
