"""Explanations: terms that add up to the log-odds, named and in order."""

import json
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge
from lbm.training.boltzmann.network import Network, to_machine
from lbm.training.explanations import explain as module
from lbm.training.explanations.explain import explain_rows
from tests.training.problems import COLUMNS, EVERY_ROW, brute_log_scores, networks, patterns, shake


def few(network):
    assume(network.units <= 9)
    return network


def brute_likelihoods(network, rows):
    """log p̃(x) of whole rows, over every class and hidden state."""
    return np.logaddexp.reduce(brute_log_scores(network, rows), axis=1)


def completions(row, groups=()):
    """Every way to fill in a row: groups that are missing as a whole by their patterns, else 0 and 1."""
    missing = [i for i in range(len(row)) if np.isnan(row[i])]
    found = []
    for values in product((0.0, 1.0), repeat=len(missing)):
        whole = row.copy()
        whole[missing] = values
        if all(
            any((whole[list(columns)] == pattern).all() for pattern in allowed)
            for columns, allowed in groups
            if set(columns) <= set(missing)
        ):
            found.append(whole)
    return np.array(found)


@settings(max_examples=15)
@given(networks())
def test_the_terms_and_the_bias_add_up_to_the_log_odds(network):
    """log p(k | x) / p(l | x), against the sum over every hidden state."""
    few(network)
    scores = brute_log_scores(network, EVERY_ROW)
    for k, other in permutations(range(len(patterns(network))), 2):
        found = explain_rows(network, EVERY_ROW, kinds=k, others=other)
        for row, explanation in enumerate(found):
            total = explanation.bias + sum(term.value for term in explanation.terms)
            assert explanation.log_odds == pytest.approx(total, abs=1e-9)
            assert total == pytest.approx(scores[row, k] - scores[row, other], abs=1e-9)


@settings(max_examples=15)
@given(networks())
def test_the_likeliest_class_is_explained_against_the_runner_up_with_the_largest_terms_first(network):
    few(network)
    scores = brute_log_scores(network, EVERY_ROW)
    second, first = np.sort(scores, axis=1)[:, -2:].T
    for row, explanation in enumerate(explain_rows(network, EVERY_ROW)):
        assert explanation.log_odds == pytest.approx(first[row] - second[row], abs=1e-9)
        sizes = [abs(term.value) for term in explanation.terms]
        assert sizes == sorted(sizes, reverse=True)
        assert len({term.unit for term in explanation.terms}) == len(sizes)


@settings(max_examples=15)
@given(networks())
def test_a_machine_is_explained_as_the_network_it_came_from(network):
    found = explain_rows(to_machine(network), EVERY_ROW, labels=network.knowledge.labels)
    assert found == explain_rows(network, EVERY_ROW)
    assert found == explain_rows(network, csr_array(EVERY_ROW))


@settings(max_examples=15)
@given(
    networks() | networks(groups=[((0, 2), [[1, 0], [0, 1]])]),
    st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=3, max_size=3),
)
def test_of_a_row_with_missing_values_the_most_likely_completion_is_explained(network, row):
    few(network)
    row = np.array(row)
    (found,) = explain_rows(network, row[None], kinds=1, others=0)
    filled = row.copy()
    missing = np.flatnonzero(np.isnan(row))
    assert [text.lstrip("~") for text in found.completed] == [COLUMNS[i] for i in missing]
    filled[missing] = [not text.startswith("~") for text in found.completed]
    every = completions(row, network.together)
    assert filled.tolist() in every.tolist()
    assert brute_likelihoods(network, filled[None])[0] == pytest.approx(
        brute_likelihoods(network, every).max(), abs=1e-9
    )
    assert found.certain
    assert replace(found, completed=()) == explain_rows(network, filled[None], kinds=1, others=0)[0]
    assert ("missing values taken as the most likely: " in str(found)) == bool(len(missing))


@settings(max_examples=15)
@given(networks())
def test_too_many_completions_to_try_are_climbed_and_it_says_so(network):
    few(network)
    row = np.array([np.nan, np.nan, 1.0])
    most, module.MAX_COMPLETIONS = module.MAX_COMPLETIONS, 3
    try:
        (found,) = explain_rows(network, row[None])
    finally:
        module.MAX_COMPLETIONS = most
    assert not found.certain
    assert "missing values taken as a likely: " in str(found)
    filled = np.array([*(not text.startswith("~") for text in found.completed), 1.0])
    reached = brute_likelihoods(network, filled[None])[0]
    for i in range(2):
        flipped = filled.copy()
        flipped[i] = 1 - flipped[i]
        assert brute_likelihoods(network, flipped[None])[0] <= reached + 1e-9


def test_a_thousand_missing_values_are_completed():
    columns = [f"c{i}" for i in range(1200)]
    network = Network(compile_knowledge(Theory(["c0 -> y"]), columns=columns, labels=["y"]))
    (found,) = explain_rows(network, np.full((1, 1200), np.nan))
    assert len(found.completed) == 1200
    assert not found.certain


def flying():
    theory = Theory.parse("bird & ~penguin -> flies\n2: flies <-> wings | kite\nkite -> flies")
    knowledge = compile_knowledge(
        theory, columns=["bird", "penguin", "wings", "kite"], labels=["flies"], confidence=3.0
    )
    return Network(knowledge, hidden=3, dtype=torch.float64, seed=1)


def test_units_are_named_by_the_formulae_they_serve_or_by_their_largest_weights():
    (found,) = explain_rows(flying(), [[1, 0, 0, 0]], classes=["stays", "flies off"])
    rules = {term.rule for term in found.terms}
    assert found.kind in ("stays", "flies off")
    assert "bird & ~penguin -> flies" in rules
    assert any(
        rule.startswith("flies <-> wings | kite") and rule.endswith(" & flies)") and " (by " in rule
        for rule in rules
    )
    assert all(term.formulae == () for term in found.terms if term.rule.startswith("unit "))
    assert sum(rule.startswith("unit ") for rule in rules) == 3
    whole = next(term for term in found.terms if term.rule == "bird & ~penguin -> flies")
    assert whole.formulae == (0,)


def test_a_unit_with_many_weights_shows_the_largest_and_counts_the_others():
    columns = [f"c{i}" for i in range(9)]
    network = Network(compile_knowledge(None, columns=columns, labels=["y"]), hidden=1, dtype=torch.float64)
    with torch.no_grad():
        network.weights[:, 0] = torch.arange(1.0, 10.0)
        network.label_weights[0, 0] = -2.0
        network.hidden_bias[0] = 0.25
    (found,) = explain_rows(network, np.zeros((1, 9)))
    assert found.terms[0].rule == (
        "unit 0: y -2.00, c8 +9.00, c7 +8.00, c6 +7.00, c5 +6.00, 5 more, bias +0.25"
    )


def test_an_explanation_prints_its_first_terms_and_sums_the_others():
    network = flying()
    shake(network, 0)
    (found,) = explain_rows(network, [[1, 0, 1, 0]])
    lines = found.text(terms=2).splitlines()
    assert lines[0] == f"log-odds of {found.kind} against {found.other}: {found.log_odds:+.3f}"
    assert lines[1].split() == [f"{found.bias:+.3f}", "bias"]
    assert [line.split()[0] for line in lines[2:4]] == [f"{term.value:+.3f}" for term in found.terms[:2]]
    rest = sum(term.value for term in found.terms[2:])
    assert lines[4].split() == [f"{rest:+.3f}", str(len(found.terms) - 2), "others"]
    assert found.text(terms=len(found.terms) - 1).endswith(" 1 other")
    assert "other" not in found.text(terms=len(found.terms)).split("against")[1].split("\n", 1)[1]


def test_an_explanation_is_json():
    (found,) = explain_rows(flying(), [[1, np.nan, 1, 0]])
    told = json.loads(json.dumps(found.to_dict()))
    assert told["log_odds"] == pytest.approx(told["bias"] + sum(term["value"] for term in told["terms"]))
    assert told["terms"][0] == {**vars_of(found.terms[0]), "formulae": list(found.terms[0].formulae)}
    assert told["completed"] == list(found.completed)


def vars_of(term):
    return {"value": term.value, "unit": term.unit, "rule": term.rule}


def test_weights_of_a_million_are_explained_with_finite_terms():
    network = Network(
        compile_knowledge(Theory([(1_000_000, "a -> y"), (1_000_000, "b -> ~y")]), columns="ab", labels="y"),
        dtype=torch.float64,
    )
    for found in explain_rows(network, [[1, 1], [1, 0], [0, 1], [0, 0]], kinds=1):
        assert np.isfinite([found.log_odds, *(term.value for term in found.terms)]).all()
    assert explain_rows(network, [[1, 0]])[0].log_odds == pytest.approx(500_000)


def test_names_that_no_atom_can_have_are_shown_as_python_shows_them():
    network = Network(compile_knowledge(None, columns=["a\nb", ""], labels=["y"]), hidden=1)
    (found,) = explain_rows(network, [[np.nan, 1.0]])
    assert found.completed[0].lstrip("~") == "'a\\nb'"
    assert "\n" not in found.terms[0].rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": 2}, "classes are numbers from 0 to 1, got 2 to 2"),
        ({"others": -1}, "classes are numbers from 0 to 1, got -1"),
        ({"kinds": 1, "others": 1}, "got flies twice in row 0"),
        ({"classes": ["only"]}, "expected 2 classes, got 1: only"),
    ],
)
def test_a_wrong_class_is_explained(options, message):
    with pytest.raises(ValueError, match=message):
        explain_rows(flying(), [[1, 0, 0, 0]], **options)


def test_wrong_rows_and_machines_are_explained():
    with pytest.raises(ValueError, match=r"rows of 4 columns, got an array of shape \(1, 3\)"):
        explain_rows(flying(), [[1, 0, 0]])
    with pytest.raises(ValueError, match="which end in wings, kite, flies, got none"):
        explain_rows(to_machine(flying()), [[1, 0, 0, 0]])
    with pytest.raises(ValueError, match="got one without"):
        explain_rows(Network(compile_knowledge(Theory(["a"]), columns="a")), [[1]])
