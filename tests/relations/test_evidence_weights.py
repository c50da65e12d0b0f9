"""Weights chosen on labels held out."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import NoWorlds
from lbm.relations.evidence import choose_weight, ground, log_odds, mix, mixed, weights

ORDER = Path(__file__).parents[2] / "examples" / "order.lbm"
PAIRS = list(itertools.combinations("abcdef", 2))


def labels_of_a_line(*wrong: tuple[str, str]) -> dict[str, bool]:
    return {f"ex({x}, {y})": (x, y) not in wrong for x, y in PAIRS}


THEORY = ground(ORDER, domains={"compound": "abcdef"})


def test_labels_without_a_mistake_are_best_taken_as_hard():
    chosen = choose_weight(THEORY, labels_of_a_line(), weights=[0.25, 2.0, None], seed=0)
    assert chosen.weight is None
    assert chosen.scores[None] > chosen.scores[2.0] > chosen.scores[0.25]


def test_labels_that_clash_are_given_a_weight():
    chosen = choose_weight(THEORY, labels_of_a_line(("a", "e"), ("b", "f")), weights=[None, 1.0], seed=0)
    assert chosen.weight == 1.0
    assert chosen.scores[None] == -math.inf


def test_the_choice_looks_at_the_evidence_alone(monkeypatch):
    """Every label is asked for once, given labels of the others only."""
    seen = []
    plain = weights.marginals

    def watched(ready, given_, held, **options):
        assert not set(given_) & set(held)
        seen.extend(held)
        assert set(given_) | set(held) == set(evidence)
        return plain(ready, given_, held, **options)

    monkeypatch.setattr(weights, "marginals", watched)
    evidence = dict(itertools.islice(labels_of_a_line().items(), 9))
    choose_weight(THEORY, evidence, weights=[1.0], folds=3, seed=0)
    assert sorted(seen) == sorted(evidence)


def test_the_same_seed_chooses_alike():
    evidence = labels_of_a_line(("a", "c"))
    first, second = (choose_weight(THEORY, evidence, weights=[0.5, 2.0], folds=3, seed=7) for _ in range(2))
    assert first == second


def test_what_cannot_be_chosen_from_is_refused():
    with pytest.raises(ValueError, match="one weight at least"):
        choose_weight(THEORY, labels_of_a_line(), weights=[])
    with pytest.raises(ValueError, match="folds"):
        choose_weight(THEORY, {"ex(a, b)": True}, folds=2)
    with pytest.raises(NoWorlds):
        choose_weight(THEORY, labels_of_a_line(("a", "f")), weights=[None], folds=15, seed=0)


scores = st.floats(-25, 25)


@given(st.lists(st.tuples(scores, scores, st.booleans()), min_size=1, max_size=12))
def test_no_other_share_makes_the_labels_likelier(rows):
    table, rules, labels = (np.array(column) for column in zip(*rows, strict=True))

    def loss(share):
        chance = mixed(table, rules, share)
        odds = np.log(chance) - np.log1p(-chance) if (chance < 1).all() else None
        assert odds is not None
        return float(np.logaddexp(0, np.where(labels, -odds, odds)).sum())

    best = mix(table, rules, labels)
    assert 0 <= best <= 1
    for share in np.linspace(0, 1, 21):
        assert loss(best) <= loss(share) + 1e-6


def test_certain_rules_that_are_right_win_and_wrong_ones_lose():
    table, rules = np.array([0.5, -0.5, -0.25]), np.array([math.inf, -math.inf, math.inf])
    assert mix(table, rules, [True, False, True]) == 1.0
    assert mix(table, rules, [False, True, False]) == 0.0
    assert mix(table, table, [True, False, True]) == 0.5


def test_log_odds_are_finite_and_undo_probabilities():
    chances = np.array([0.0, 1.0, 0.5, 0.2])
    odds = log_odds(chances)
    assert odds.tolist()[:3] == [-weights.CERTAIN, weights.CERTAIN, 0.0]
    assert mixed(odds, odds, 0.3) == pytest.approx(chances, abs=1e-8)


def test_scores_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="as many scores"):
        mix([1.0], [1.0, 2.0], [True])
    with pytest.raises(ValueError, match="nan"):
        mix([math.nan], [1.0], [True])
    with pytest.raises(ValueError, match="between 0 and 1"):
        mixed([1.0], [1.0], 2.0)
