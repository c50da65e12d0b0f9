"""Conjectures: rules -> more rules of their shape that the rows speak for.

Whoever knows half of the rules of something also knows what its rules look like. A variation of a rule has
its head and as many literals of either sign, each of them a literal that some rule uses. Many are drawn, and
those which rows speak for that no rule explains are kept, one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats, Ints
from lbm.knowledge.formula import Formula, atom, conjunction
from lbm.training.boltzmann.knowledge import Knowledge, Numbers, label_patterns, ordered

DRAWS: Final = 3000
"""Variations drawn; many are drawn twice."""

CELLS: Final = 1 << 22
"""Entries of (rows x columns) and of (rows x variations) that are looked at."""

NOISE: Final = 0.05
"""How often a rule that is kept may be wrong."""

EVIDENCE: Final = 2.0
"""By how much, as a logarithm, rows must speak for a variation."""


Conjecture = tuple[Numbers, int]
"""A body of columns, and its head, a literal of a label atom: numbers of visible units."""


def conjecture(
    knowledge: Knowledge, x: Floats, kinds: Ints, weights: Floats, *, most: int, seed: int
) -> tuple[Formula, ...]:
    """Return up to ``most`` formulae body -> head that look like rules of ``knowledge``.

    A variation that holds for n rows no rule of its head explains, m of them of that class, has evidence

        m log((1 - NOISE)/q) + (n - m) log(NOISE/(1 - q)),    q the share of that class among all such rows

    The one with most is taken, the rows it holds for count as explained, and so on down to EVIDENCE.

    Parameters
    ----------
    x, kinds, weights
        Rows, shape (rows, columns), NaN where missing; classes and weights, shape (rows,). Of many rows some
        are drawn.
    seed
        Of all that is drawn.
    """
    random = np.random.default_rng(seed)
    rules = _rules_of(knowledge)
    drawn = _vary(rules, random) if most > 0 else []
    limit = CELLS // max(len(drawn) + len(rules), x.shape[1], 1)
    if len(x) > limit:
        chosen = np.sort(random.choice(len(x), max(limit, 1), replace=False))
        x, kinds, weights = x[chosen], kinds[chosen], weights[chosen]
    truth = label_patterns(len(knowledge.labels))[kinds] == 1
    kept: list[tuple[float, Conjecture]] = []
    for head in dict.fromkeys(head for _, head in drawn):
        mine = [rule for rule in drawn if rule[1] == head]
        explained = np.asarray(_holds(x, [rule for rule in rules if rule[1] == head]).any(axis=1))
        right = truth[:, abs(head) - len(knowledge.columns) - 1] == (head > 0)
        kept += _pick(mine, _holds(x, mine), right, weights, explained, most)
    kept.sort(key=lambda pair: -pair[0])
    names = (*knowledge.columns, *knowledge.labels)
    return tuple(cube_formula(body, names) >> cube_formula([head], names) for _, (body, head) in kept[:most])


def cube_formula(cube: Iterable[int], atoms: Sequence[str]) -> Formula:
    """Return the conjunction of literals, signed numbers of ``atoms`` from 1."""
    return conjunction(atom(atoms[n - 1]) if n > 0 else ~atom(atoms[-n - 1]) for n in cube)


def _rules_of(knowledge: Knowledge) -> list[Conjecture]:
    """Return the cubes that speak of one label atom and of columns."""
    signs, width, found = knowledge.signs, len(knowledge.columns), []
    for unit in range(knowledge.units):
        part = slice(signs.indptr[unit], signs.indptr[unit + 1])
        literals = ((signs.indices[part] + 1) * signs.data[part]).tolist()
        heads = [literal for literal in literals if abs(literal) > width]
        body = ordered(literal for literal in literals if abs(literal) <= width)
        if len(heads) == 1 and body:
            found.append((body, heads[0]))
    return found


def _vary(rules: Sequence[Conjecture], random: np.random.Generator) -> list[Conjecture]:
    """Return variations of rules that are not among them, each once."""
    if not rules:
        return []
    used = sorted({literal for body, _ in rules for literal in body})
    pools = {sign: [literal for literal in used if (literal > 0) == sign] for sign in (True, False)}
    found: dict[Conjecture, None] = {}
    numbers = random.integers(len(rules), size=DRAWS).tolist()
    longest = max(len(body) for body, _ in rules)
    for number, places in zip(numbers, random.random((DRAWS, longest)).tolist(), strict=True):
        old, head = rules[number]
        likes = [pools[literal > 0] for literal in old]
        body = [like[int(at * len(like))] for like, at in zip(likes, places, strict=False)]
        if len(set(map(abs, body))) == len(body):  # a column twice is another shape
            found[ordered(body), head] = None
    known = set(rules)
    return [rule for rule in found if rule not in known]


def _holds(x: Floats, rules: Sequence[Conjecture]) -> Bools:
    """Return whether bodies are true, shape (rows, rules); a missing value makes none true."""
    out = np.ones((len(x), len(rules)), dtype=bool)
    for number, (body, _) in enumerate(rules):
        for literal in body:
            out[:, number] &= x[:, abs(literal) - 1] == (literal > 0)
    return out


def _pick(
    rules: Sequence[Conjecture], holds: Bools, right: Bools, weights: Floats, explained: Bools, most: int
) -> list[tuple[float, Conjecture]]:
    """Return rules of one head with their evidence, the best first, each on rows none before it explains."""
    found: list[tuple[float, Conjecture]] = []
    while len(found) < most:
        left = weights * ~explained
        share = (left @ right + 1) / (left.sum() + 2)
        good, bad = (left * right) @ holds, (left * ~right) @ holds
        evidence = good * np.log((1 - NOISE) / share) + bad * np.log(NOISE / (1 - share))
        best = int(np.argmax(evidence))
        if evidence[best] <= EVIDENCE:
            break
        found.append((float(evidence[best]), rules[best]))
        explained = explained | holds[:, best]
    return found
