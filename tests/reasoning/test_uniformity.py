"""Distance from uniform: a sum over all models, and for uniform draws where it is expected."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import TooManyWorlds
from lbm.knowledge.formula import holds
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Draws
from lbm.reasoning.sampling import uniformity
from tests.strategies import theories


def drawn(theory, rows):
    array = np.array(rows, bool).reshape(len(rows), len(theory.atoms))
    return Draws(theory.atoms, array, method="fast", distribution="logical", temperature=1.0)


def models_of(theory, evidence=None):
    worlds = (
        dict(zip(theory.atoms, v, strict=True)) for v in product([False, True], repeat=len(theory.atoms))
    )
    return [w for w in worlds if theory.is_model(w) and (evidence is None or holds(evidence, w))]


@given(theories(), st.lists(st.integers(0, 2**30), min_size=1, max_size=30))
def test_total_variation_is_half_the_sum_of_differences(theory, picks):
    models = models_of(theory)
    if not models:
        return
    rows = [tuple(models[pick % len(models)].values()) for pick in picks]
    found = lbm.uniformity(theory, drawn(theory, rows))
    counts = Counter(rows)
    differences = (abs(counts[tuple(m.values())] / len(rows) - 1 / len(models)) for m in models)
    assert found.value == pytest.approx(sum(differences) / 2)
    assert (found.models, found.strangers, found.draws) == (len(models), 0, len(rows))


def test_uniform_draws_are_about_where_they_are_expected_and_uneven_ones_are_not():
    theory = Theory(["atleast(2, a, b, c, d, e)", "a -> ~e"])
    far = [lbm.uniformity(theory, lbm.sample(theory, 400, seed=seed)) for seed in range(40)]
    values = [one.value for one in far]
    error = np.std(values) / np.sqrt(len(values))
    assert np.mean(values) == pytest.approx(far[0].expected, abs=4 * error)
    one = next(iter(lbm.models(theory)))
    assert lbm.uniformity(theory, drawn(theory, [list(one.values())] * 400)).value > 0.9


def test_what_is_no_model_counts_as_misplaced():
    theory = Theory(["a"], atoms=["a", "b"])
    found = lbm.uniformity(
        theory, drawn(theory, [(True, False), (True, True), (False, True), (False, False)])
    )
    assert (found.value, found.strangers) == (0.5, 2)
    assert lbm.uniformity(theory, drawn(theory, [(True, True)]), given="b").value == 0


def test_models_too_many_to_list_are_judged_by_marginals_and_others_not_at_all(monkeypatch):
    theory = Theory([f"x{i} | x{i + 1}" for i in range(40)])
    found = lbm.uniformity(theory, lbm.sample(theory, 2000, seed=1))
    assert found.measure == "marginals"
    assert found.value < 3 * found.expected
    assert "largest error" in str(found)

    def too_many(*_, **__):
        raise TooManyWorlds("no", x=1)

    monkeypatch.setattr(uniformity.Exact, "count", too_many)
    monkeypatch.setattr(uniformity.Exact, "marginals", too_many)
    monkeypatch.setattr(uniformity, "MAX_LISTED", 10)
    assert lbm.uniformity(theory, lbm.sample(theory, 20, seed=1)).measure == "not measured"
    small = Theory(["exactly(1, a, b, c)", "d | ~d"])  # listed by a SAT solver, where counting fails
    assert lbm.uniformity(small, lbm.sample(small, 90, seed=0)).models == 6


def test_the_name_of_version_0_1_warns_and_measures_the_same():
    theory = Theory(["a | b"])
    draws = lbm.sample(theory, 50, seed=0)
    found = lbm.uniformity(theory, draws, given="a")
    assert "distance" not in lbm.__all__
    with pytest.warns(DeprecationWarning, match=r"lbm\.distance is now called lbm\.uniformity") as told:
        assert lbm.distance(theory, draws, given="a") == found
    assert told[0].filename == __file__  # the caller's line, not ours
    with pytest.warns(DeprecationWarning, match=r"now called Reasoner\.uniformity") as told:
        assert lbm.Reasoner(theory).distance(draws, given="a") == found
    assert told[0].filename == __file__


def test_worlds_of_another_theory_are_refused():
    theory = Theory(["a | b"])
    with pytest.raises(ValueError, match="2 atoms of this theory"):
        lbm.uniformity(theory, lbm.sample(Theory(["c"]), 3, seed=0))
