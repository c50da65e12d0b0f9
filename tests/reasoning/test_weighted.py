"""Weighted counts against sums over all worlds in fractions."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import UnknownAtom
from lbm.knowledge.theory import Theory, weighing
from lbm.reasoning.reasoner import Reasoner
from tests.oracles import truth, worlds
from tests.strategies import formulae

NAMES = "abcde"
fractions = st.sampled_from([Fraction(0), Fraction(1)]) | st.fractions(0, 3, max_denominator=20)
weights = st.dictionaries(st.sampled_from(NAMES), st.tuples(fractions, fractions))


def weight_of_all(hard, weights, shown):
    """Return the sum over restrictions of worlds that keep all formulae, of what the atoms shown weigh."""
    found = {}
    for world in worlds(NAMES):
        alive = all(weights[name][not value] for name, value in world.items() if name in weights)
        if alive and all(truth(formula, world) for formula in hard):
            seen = tuple(world[name] for name in shown)
            found[seen] = math.prod(
                (weights[name][not world[name]] for name in shown if name in weights), start=Fraction(1)
            )
    return sum(found.values(), Fraction(0))


@given(
    st.lists(formulae(NAMES, max_leaves=6), max_size=4),
    weights,
    st.none() | formulae(NAMES, max_leaves=3),
    st.data(),
)
def test_weighted_counts_are_sums_over_worlds(hard, weights, evidence, data):
    theory = weighing(Theory(hard, atoms=NAMES), weights)
    shown = data.draw(st.lists(st.sampled_from(NAMES), unique=True))
    said = hard if evidence is None else [*hard, evidence]
    reasoner = Reasoner(theory)
    assert reasoner.count(given=evidence, weighted=True) == weight_of_all(said, weights, NAMES)
    assert reasoner.count(given=evidence, project=shown, weighted=True) == weight_of_all(said, weights, shown)
    assert reasoner.count(given=evidence, weighted=False) == weight_of_all(said, {}, NAMES)


@given(st.lists(formulae(NAMES, max_leaves=6), max_size=3), weights)
def test_probabilities_and_log_z_are_those_of_the_weights(hard, weights):
    theory = weighing(Theory(hard, atoms=NAMES), weights)
    whole = weight_of_all(hard, weights, NAMES)
    if not whole:
        with pytest.raises(lbm.errors.NoWorlds):
            lbm.log_partition(theory)
        return
    assert lbm.log_partition(theory) == pytest.approx(math.log(whole), abs=1e-9)
    chances = lbm.marginals(theory)
    for name in NAMES:
        right = weight_of_all([*hard, lbm.atom(name)], weights, NAMES) / whole
        assert chances[name] == pytest.approx(float(right), abs=1e-9)


def test_a_theory_without_weights_of_literals_is_counted_as_ever():
    theory = Theory(["a | b", (3, "a")])
    assert lbm.count(theory) == 3
    assert isinstance(lbm.count(theory), int)
    assert lbm.count(theory, weighted=True) == Fraction(3)


def test_a_long_chain_of_weighted_atoms_is_counted():
    names = [f"x{i}" for i in range(60)]
    rules = [f"{a} -> {b}" for a, b in pairwise(names)]
    theory = weighing(Theory(rules), dict.fromkeys(names, (Fraction(1, 2), Fraction(1, 3))))
    right = sum(Fraction(1, 2) ** k * Fraction(1, 3) ** (60 - k) for k in range(61))
    assert lbm.count(theory) == right


def test_unknown_atoms_are_refused():
    theory = weighing(Theory(["a"]), {"a": (Fraction(2), Fraction(2))})
    with pytest.raises(UnknownAtom):
        lbm.count(theory, project=["b"])
    with pytest.raises(UnknownAtom):
        lbm.count(theory, given="b")
