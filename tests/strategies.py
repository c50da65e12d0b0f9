"""Random inputs: formulae, names, weights and theories, for Hypothesis and for long seeded runs."""

import os
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lbm.errors import TooManyCubes
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, cardinality, iff
from lbm.knowledge.theory import Theory

T = TypeVar("T")

QUICK = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
"""Whether long seeded runs are kept short, as generated examples are."""

NAMES = tuple("abcdef")
BINARY = {
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "xor": lambda left, right: left ^ right,
    "implies": lambda left, right: left >> right,
    "iff": iff,
}
CARDINALITIES = ("atleast", "atmost", "exactly")

# Every name here has once been a mistake in somebody's parser: reserved words, quotes, operators, brackets,
# terms and what only looks like one, digits that are no digits, signs that cannot be seen.
AWKWARD = (
    "true", "and", "not", "forall", "in", "atoms", "domain", "exactly", "True", "nota", "atleast2",
    "'", "''", "it's", "'quoted'", "a''b", '"', "\\", "\\n", "`",
    " ", " a", "a ", "a b", "age <= 30", "a -> b", "a & b", "~a", "# no comment", "1: a", "x:y", "a, b", "{}",
    "(", ")", "()", "(a)", "f(", "f()", "f(a", "f(a))", "f(a)(b)", "f((a))", "f(a,)", "f(a b)", "f(g(a))",
    ")(", "f(a)", "f(a,b)", "f( a , b )", "less(a1, b1)", "f(1)", "f('it''s', 3)", "f('a, b')", "f(')')",
    "f('')", "f(true)", "f('true')", "true(a)", "f(-1)", "f(1.5)", "f(a,'b)", "_", "__class__", "f(_)",
    "0", "3", "3a", "1e5", "-1", "٣", "x²", "²", "é", "e\u0301", "变量", "Ω", "ﬁ", "ß", "∧", "¬p", "∀x", "→",
    "😀", "\u00a0", "a\u00a0b", "\u200b", "\u202e", "\ufeff", "\u3000", "f(\u00a0a)", "nan", "inf",
)  # fmt: skip

awkward_names = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=12),
    st.text("ab'(), 1\\#", min_size=1, max_size=12),
)


def formulae(
    atoms: Sequence[str] | SearchStrategy[str] = NAMES, *, max_leaves: int = 12
) -> SearchStrategy[Formula]:
    """Formulae with every connective, cardinalities of any number of parts, constants and shared parts."""
    names = atoms if isinstance(atoms, SearchStrategy) else st.sampled_from(list(atoms))
    leaves = st.one_of(*[names.map(atom)] * 5, st.sampled_from([TRUE, FALSE]))
    return st.recursive(leaves, _compounds, max_leaves=max_leaves)


def _compounds(parts: SearchStrategy[Formula]) -> SearchStrategy[Formula]:
    kinds, cardinalities = st.sampled_from(list(BINARY)), st.sampled_from(CARDINALITIES)
    two = st.builds(lambda kind, left, right: BINARY[kind](left, right), kinds, parts, parts)
    return st.one_of(
        parts.map(lambda part: ~part),
        two,
        two,
        st.builds(cardinality, cardinalities, st.integers(0, 5), st.lists(parts, max_size=5)),
        st.builds(_shared, kinds, kinds, parts, parts),
    )


def _shared(outer: str, inner: str, left: Formula, right: Formula) -> Formula:
    """Return a formula in which one part stands twice."""
    part = BINARY[inner](left, right)
    return BINARY[outer](part, cardinality("exactly", 1, (part, right)))


_coefficients = st.integers(-(10**40), 10**40).filter(bool)
weights: SearchStrategy[int | Decimal] = st.one_of(
    st.integers(-20, 20).filter(bool),
    _coefficients,
    st.builds(lambda number, places: Decimal(f"{number}e{places}"), _coefficients, st.integers(-60, 20)),
    st.decimals(-1000, 1000, allow_nan=False, places=3).filter(bool),
)
"""Weights of either type and sign; many have more digits than Python's default decimal context keeps."""


@st.composite
def theories(
    draw: st.DrawFn,
    *,
    atoms: Sequence[str] = NAMES,
    weights: SearchStrategy[int | Decimal] = weights,
    max_statements: int = 5,
    max_leaves: int = 6,
) -> Theory:
    """Theories with hard and soft formulae, and atoms that are declared, out of order, or occur nowhere."""
    statement = st.tuples(st.none() | weights, formulae(atoms, max_leaves=max_leaves))
    declared = st.lists(st.sampled_from([*atoms, "idle", "idle too"]), unique=True, max_size=4)
    return Theory(draw(st.lists(statement, max_size=max_statements)), atoms=draw(declared))


def within_reach(make: Callable[[], T]) -> T:
    """Return what ``make`` returns; a formula past the limit of a method is no example of what it does."""
    try:
        return make()
    except TooManyCubes:
        reject()


def random_formula(rng: random.Random, max_atoms: int = 12, max_nodes: int = 60) -> Formula:
    """Return a formula of at most ``max_atoms`` atoms and ``max_nodes`` nodes, counted as a tree.

    Connectives are drawn evenly. Constants are rare and bounds near the middle, since most formulae would
    else be valid or contradictory; a part that has been made may stand again.
    """
    names = [f"x{i}" for i in range(1, rng.randint(1, max_atoms) + 1)]
    made: list[tuple[int, Formula]] = []

    def build(size: int) -> Formula:
        if size <= 1 or (size == 2 and rng.random() < 0.6):
            return rng.choice((TRUE, FALSE)) if rng.random() < 0.01 else atom(rng.choice(names))
        if made and rng.random() < 0.05:
            nodes, part = rng.choice(made)
            if nodes <= size:
                return part
        found = compound(size - 1)
        made.append((size, found))
        return found

    def compound(size: int) -> Formula:
        kind = rng.choice(["not", *BINARY, *CARDINALITIES]) if size >= 2 else "not"
        if kind == "not":
            return ~build(size)
        if kind in BINARY:
            left = rng.randint(1, size - 1)
            return BINARY[kind](build(left), build(size - left))
        rare = rng.random() < 0.05  # no part or one, and a bound that decides everything
        number = min(size, rng.randint(0, 1) if rare else rng.randint(2, 6))
        bound = rng.randint(0, number + 1) if rare else rng.randint(number // 2, (number + 1) // 2)
        cuts = [0, *sorted(rng.sample(range(1, size), number - 1)), size] if number else []
        return cardinality(kind, bound, [build(end - start) for start, end in pairwise(cuts)])

    return build(rng.randint(1, max_nodes))
