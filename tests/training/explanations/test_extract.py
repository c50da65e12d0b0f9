"""Rules out of machines: exact where a machine is made of cubes, faithful where it is not."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csc_array, csr_array

from lbm import ask
from lbm.datasets import tic_tac_toe
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names
from lbm.training.boltzmann.network import Network, to_machine
from lbm.training.explanations import extract as module
from lbm.training.explanations.explain import as_classifier
from lbm.training.explanations.extract import (
    draw_rows,
    extract_rules,
    fixed_points,
    rules_of_machine,
    theory_scores,
)
from tests.oracles import score_and_hard, truth, worlds
from tests.strategies import theories, within_reach
from tests.training.problems import COLUMNS, EVERY_ROW, networks, numbers, patterns

small = st.integers(-20, 20).filter(bool)


def scores(theory, atoms):
    """Σ w over true soft formulae, in every world: by the oracle."""
    return np.array([float(score_and_hard(theory, world)[0]) for world in worlds(atoms)])


def same_up_to_a_constant(found, expected):
    difference = np.asarray(found) - np.asarray(expected)
    np.testing.assert_allclose(difference, difference[0], atol=1e-8 * (1 + np.abs(expected).max()))


# --- machines made of knowledge ------------------------------------------------------------------


@settings(max_examples=25)
@given(
    theories(atoms="abcd", weights=small),
    st.floats(0.05, 0.95),
    st.booleans(),
    st.sampled_from(["paper", "calibrated"]),
)
def test_a_translated_theory_comes_back_from_weights_and_biases_with_the_same_score(
    theory, epsilon, merge, units
):
    """score(x) + W · (hard formulae true in x), in every world, up to a constant."""
    machine = within_reach(lambda: translate(theory, epsilon=epsilon, merge=merge, units=units))
    silent = replace(machine, theory=None, owner=machine.owner[:0], unit=machine.unit[:0])
    found = rules_of_machine(silent)
    assert found.atoms == machine.atoms
    assert all(statement.weight is not None for statement in found)
    hard = 1 + sum(abs(s.weight) for s in theory if s.weight is not None)
    expected = []
    for world in worlds(theory.atoms):
        soft, kept = score_and_hard(theory, world)
        expected.append(float(soft) + float(hard if len(theory) else 1) * kept)
    visible = machine.visible(np.array([list(world.values()) for world in worlds(theory.atoms)]))
    complete = (dict(zip(machine.atoms, row > 0, strict=True)) for row in visible)
    same_up_to_a_constant([float(score_and_hard(found, world)[0]) for world in complete], expected)


def test_definitional_atoms_come_back_as_atoms():
    theory = Theory([(3, " ^ ".join(f"x{i}" for i in range(7)))])
    machine = translate(theory, budget=4)
    assert machine.definitions
    found = rules_of_machine(machine)
    rows = np.array(list(product((0, 1), repeat=7)))
    visible = machine.visible(rows)
    values = [score_and_hard(found, dict(zip(machine.atoms, row > 0, strict=True)))[0] for row in visible]
    same_up_to_a_constant(np.array(values, dtype=float), 3.0 * (rows.sum(axis=1) % 2))


@settings(max_examples=20)
@given(theories(atoms=[*COLUMNS, "y"], weights=small, max_statements=3))
def test_a_network_of_knowledge_alone_gives_its_formulae_back(theory):
    theory = Theory(list(theory), atoms=[])
    network = within_reach(
        lambda: Network(
            compile_knowledge(theory, columns=COLUMNS, labels="y", confidence=2.0), dtype=torch.float64
        )
    )
    found = rules_of_machine(to_machine(network))
    trusted = Theory([replace(s, weight=2 if s.weight is None else s.weight) for s in theory])
    same_up_to_a_constant(scores(found, [*COLUMNS, "y"]), scores(trusted, [*COLUMNS, "y"]))


numerals = st.floats(-5, 5).map(lambda value: round(value, 3))


@st.composite
def machines(draw):
    visible, hidden = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    return Machine(
        tuple("abcd"[:visible]),
        csc_array(draw(arrays(float, (visible, hidden), elements=numerals))),
        draw(arrays(float, visible, elements=numerals)),
        draw(arrays(float, hidden, elements=numerals)),
    )


@given(machines())
def test_any_small_machine_has_rules_of_its_own_score(machine):
    """-min_h E(x, h)/ε, over every world and hidden state."""
    rows = np.array([list(world.values()) for world in worlds(machine.atoms)], dtype=float)
    states = np.array(list(product((0.0, 1.0), repeat=machine.hidden))).reshape(2**machine.hidden, -1)
    inputs = rows @ machine.weights.toarray() + machine.hidden_bias
    expected = (rows @ machine.visible_bias + (inputs @ states.T).max(axis=1)) / machine.epsilon
    same_up_to_a_constant(scores(rules_of_machine(machine), machine.atoms), expected)


@given(machines(), st.integers(1, 4))
def test_past_the_pieces_rules_are_off_by_no_more_than_the_lines_are(machine, pieces):
    exact = scores(rules_of_machine(machine), machine.atoms)
    rough = scores(rules_of_machine(machine, pieces=pieces), machine.atoms)
    weights = machine.weights.toarray()
    low = machine.hidden_bias + np.minimum(weights, 0).sum(axis=0)
    high = machine.hidden_bias + np.maximum(weights, 0).sum(axis=0)
    bound = sum(-a * b / (b - a) for a, b in zip(low, high, strict=True) if a < 0 < b) / machine.epsilon
    difference = rough - exact
    assert difference.max() - difference.min() <= bound + 1e-8


# --- the published fixed point -------------------------------------------------------------------


@settings(max_examples=20)
@given(networks())
def test_confidence_rules_keep_the_literals_above_half_their_mean(network):
    machine, model = to_machine(network), as_classifier(network)
    found = dict.fromkeys(range(machine.hidden))
    for unit in found:
        weights = machine.weights[:, [unit]].toarray().ravel()
        signs = np.sign(weights)
        while True:  # as published: signs, their mean weight, and again
            mean = (np.abs(weights) * np.abs(signs)).sum() / max(np.abs(signs).sum(), 1)
            kept = np.where(2 * np.abs(weights) > mean, signs, 0)
            if (kept == signs).all():
                break
            signs = kept
        if signs[len(COLUMNS) :].any():
            mean -= 30 if unit < machine.calibrated else 0  # of K = w + 30 its own weight
            found[unit] = tuple(((np.flatnonzero(signs) + 1) * signs[signs != 0]).tolist()), mean
    expected = [rule for rule in found.values() if rule is not None]
    told = list(fixed_points(model))
    assert [cube for cube, _ in told] == [cube for cube, _ in expected]
    np.testing.assert_allclose([c for _, c in told], [c for _, c in expected])


def test_confidence_rules_print_with_the_fidelity_they_have():
    network = Network(compile_knowledge(Theory(["a & b -> y"]), columns="abc", labels="y"), hidden=0)
    found = extract_rules(network, EVERY_ROW, EVERY_ROW[:, 0], method="confidence")
    assert [rule.text for rule in found.rules] == ["5: a & b & y"]
    assert found.rules[0].literals == ("a", "b")
    assert found.undecided == 0.75
    assert "undecided 75.00%" in str(found)
    assert "method confidence" in str(found)


# --- the faithful method -------------------------------------------------------------------------


def trained(columns, labels, x, kinds, *, hidden, steps):
    """A network after some steps of Adam on all rows; torch's own takes longer to import than to run."""
    network = Network(compile_knowledge(None, columns=columns, labels=labels), hidden=hidden)
    rows, wanted = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(kinds)
    moving = [network.weights, network.label_weights, network.hidden_bias, network.label_bias]
    moments = [(torch.zeros_like(values), torch.zeros_like(values)) for values in moving]
    for _ in range(steps):
        cost = torch.nn.functional.cross_entropy(network.log_scores(rows), wanted)
        slopes = torch.autograd.grad(cost, moving)
        with torch.no_grad():
            for values, slope, (first, second) in zip(moving, slopes, moments, strict=True):
                first.mul_(0.9).add_(0.1 * slope)
                second.mul_(0.99).add_(0.01 * slope**2)
                values.sub_(0.05 * first / (second.sqrt() + 1e-8))
    return network


@pytest.fixture(scope="module")
def boards():
    found = tic_tac_toe()
    x, kinds = found.table.to_numpy().astype(float), found.target.to_numpy().astype(np.int64)
    network = trained(list(found.table.columns), ["win"], x, kinds, hidden=16, steps=120)
    with torch.no_grad():
        predicted = network.log_scores(torch.as_tensor(x, dtype=torch.float32)).argmax(dim=1).numpy()
    assert (predicted == kinds).mean() > 0.95
    return found, x, kinds, network, predicted


def everywhere(formula, columns):
    """Where a rule of literals, & and -> is true, row by row."""
    if formula.kind == "atom":
        return columns[formula.label]
    parts = [everywhere(part, columns) for part in formula.args]
    if formula.kind == "not":
        return ~parts[0]
    assert formula.kind in ("and", "implies")
    return parts[0] & parts[1] if formula.kind == "and" else ~parts[0] | parts[1]


def test_rules_of_a_trained_machine_read_back_from_text_agree_with_it_on_tic_tac_toe(boards):
    found, x, kinds, network, predicted = boards
    extraction = extract_rules(network, x, kinds)
    text = str(extraction)
    assert len(extraction.rules) <= 40
    theory = Theory.parse(text)
    assert theory == extraction.theory
    names = list(found.table.columns)
    boards_by_name = dict(zip(names, (x > 0).T, strict=True))
    won, lost = (
        sum(
            float(rule.weight) * everywhere(rule.formula, {**boards_by_name, "win": np.full(len(x), value)})
            for rule in theory
        )
        for value in (True, False)
    )
    agree = ((won > lost) == predicted).sum()
    assert agree / len(x) == pytest.approx(extraction.fidelity)
    assert agree >= 0.95 * len(x)
    for number in range(0, len(x), 200):  # and asked, for a few
        answer = ask(theory, "win", given=dict(zip(names, x[number] > 0, strict=True)))
        assert (answer.probability > 0.5) == bool(predicted[number])


def test_machines_and_networks_give_the_same_rules(boards):
    _, x, kinds, network, _ = boards
    machine = replace(to_machine(network), theory=None)
    with_text = extract_rules(network, x[:200], kinds[:200])
    without = extract_rules(machine, csr_array(x[:200]), kinds[:200], labels=["win"])
    assert without == with_text


def test_fewer_rules_may_be_asked_for(boards):
    _, x, kinds, network, _ = boards
    one, four = (extract_rules(network, x, kinds, max_rules=most) for most in (1, 4))
    assert len(one.rules) <= 1
    assert len(four.rules) <= 4
    assert one.fidelity < four.fidelity
    assert len(extract_rules(network, x, fidelity=0.7).rules) <= 4


def test_confidences_and_their_drift_come_from_the_weights():
    theory = Theory.parse("3: a & ~b -> y\nc -> ~y\n2: c & b -> y")
    network = Network(compile_knowledge(theory, columns=COLUMNS, labels=["y"]), hidden=0, dtype=torch.float64)
    with torch.no_grad():
        network.raw_confidence.copy_(torch.tensor([7.0, 1.0, 4.0], dtype=torch.float64))
    now = np.logaddexp(0, [7.0, 1.0, 4.0])
    found = extract_rules(network)
    assert [drift.formula for drift in found.knowledge] == ["a & ~b -> y", "c -> ~y", "c & b -> y"]
    np.testing.assert_allclose([drift.began for drift in found.knowledge], [3, 5, 2])
    np.testing.assert_allclose([drift.now for drift in found.knowledge], now, rtol=1e-6)
    assert [drift.spread for drift in found.knowledge] == pytest.approx([0, 0, 0])
    assert "# began as c -> ~y: confidence 5, now 1.31" in str(found)
    assert {rule.text.split(": ")[1] for rule in found.rules} >= {"a & ~b -> y", "c -> ~y", "b & c -> y"}
    began = {rule.text.split(": ")[1]: [drift.formula for drift in rule.drift] for rule in found.rules}
    assert began["a & ~b -> y"] == ["a & ~b -> y"]
    assert began["b & c -> y"] == ["c & b -> y"]
    assert (found.rows, found.drawn, found.accuracy) == (8, True, None)


def test_a_formula_of_negative_weight_began_as_its_negation():
    network = Network(compile_knowledge(Theory([(-2, "a & y")]), columns=["a"], labels=["y"]))
    assert extract_rules(network).knowledge[0].formula == "~(a & y)"


def test_free_literals_tell_how_far_they_are_apart():
    network = Network(
        compile_knowledge(Theory(["a & b -> y"]), columns="ab", labels="y"),
        literals="free",
        dtype=torch.float64,
    )
    column = network.knowledge.signs.tocoo()
    spoken = np.flatnonzero(network.knowledge.signs.toarray()[2])[0]
    with torch.no_grad():
        first = int(np.flatnonzero(column.col == spoken)[0])
        network.literal_weights[first] += 1.5  # 6.5, 5, 5: 5.5 on average, and 1 away from it
    (drift,) = extract_rules(network).knowledge
    assert drift.spread == pytest.approx(1 / 5.5)
    assert "literals up to 18% apart" in str(drift)


@settings(max_examples=10)
@given(networks())
def test_extracted_rules_have_the_fidelity_they_claim(network):
    """Against formulae evaluated one by one, and against the network's own prediction."""
    found = extract_rules(network, EVERY_ROW, np.zeros(8, dtype=int))
    assert Theory.parse(str(found)) == found.theory
    assert len(found.rules) <= 40
    labels = network.knowledge.labels
    kinds = [dict(zip(labels, pattern > 0, strict=True)) for pattern in patterns(network)]
    values = [
        [score_and_hard(found.theory, {**dict(zip(COLUMNS, row > 0, strict=True)), **k})[0] for k in kinds]
        for row in EVERY_ROW
    ]
    told = theory_scores(found.theory, as_classifier(network), EVERY_ROW)
    np.testing.assert_allclose(told, np.array(values, dtype=float), atol=1e-9)
    ours = np.array([row.index(max(row)) for row in values])
    machine = numbers(network.log_scores(torch.as_tensor(EVERY_ROW))).argmax(axis=1)
    assert found.fidelity == pytest.approx((ours == machine).mean())
    assert found.accuracy == pytest.approx((ours == 0).mean())
    assert json.loads(json.dumps(found.to_dict()))["theory"] == str(found.theory)
    assert all(rule.weight > 0 for rule in found.rules)


def test_many_classes_are_kept_apart_by_a_hard_formula():
    x = np.array(list(product((0.0, 1.0), repeat=4)))
    kinds = (x[:, 0] + x[:, 1]).astype(np.int64)
    labels = label_names("sum", [0, 1, 2])
    network = trained("abcd", labels, x, kinds, hidden=12, steps=150)
    found = extract_rules(network, x, kinds)
    assert found.fidelity == found.accuracy == 1.0
    *_, last = Theory.parse(str(found))
    assert last.weight is None
    assert last.formula is parse("exactly(1, 'sum = 0', 'sum = 1', 'sum = 2')")
    for row, kind in zip(x[::3], kinds[::3], strict=True):
        given_ = dict(zip("abcd", row > 0, strict=True))
        assert ask(found.theory, f"'sum = {kind}'", given=given_).probability > 0.5
    few = extract_rules(network, x, kinds, max_rules=2)
    assert len(few.rules) <= 2


# --- rows ----------------------------------------------------------------------------------------


def test_rows_are_all_there_are_or_drawn_evenly_and_respect_groups():
    random = np.random.default_rng(0)
    assert sorted(map(tuple, draw_rows(3, 8, random))) == list(product((0.0, 1.0), repeat=3))
    groups = [((0, 2), [[1, 0], [0, 1], [0, 0]])]
    every = draw_rows(3, 8, random, groups)
    assert sorted(map(tuple, every)) == sorted(
        (a, b, c) for (a, c) in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0)) for b in (0.0, 1.0)
    )
    many = draw_rows(20, 4000, random, groups)
    assert many.shape == (4000, 20)
    assert not (many[:, 0] * many[:, 2]).any()
    assert abs(many[:, 0].mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 4000)
    assert abs(many[:, 5].mean() - 1 / 2) < 4 * np.sqrt(1 / 4 / 4000)


def test_rows_with_missing_values_are_left_out(boards):
    _, x, kinds, network, _ = boards
    gaps = np.concatenate([x, np.full((5, x.shape[1]), np.nan)])
    found = extract_rules(network, gaps, np.append(kinds, np.zeros(5, dtype=int)), max_rules=5)
    assert (found.rows, found.drawn) == (len(x), False)
    assert found.accuracy is not None
    nothing = extract_rules(network, gaps[-5:], max_rules=2)
    assert (nothing.rows, nothing.drawn) == (module.FITTED_ROWS, True)


def test_of_many_rows_some_are_fitted_and_more_are_measured(boards, monkeypatch):
    _, x, kinds, network, _ = boards
    monkeypatch.setattr(module, "MEASURED_ROWS", 500)
    monkeypatch.setattr(module, "FITTED_ROWS", 300)
    found = extract_rules(network, x, kinds, seed=3)
    assert found.rows == 500
    assert found.fidelity > 0.8
    assert found == extract_rules(network, x, kinds, seed=3)


def test_columns_that_no_atom_can_be_named_after_are_in_no_rule():
    x = np.array(list(product((0.0, 1.0), repeat=2)))
    network = trained(["a\nb", "c"], ["y"], x, x[:, 1].astype(np.int64), hidden=4, steps=60)
    found = extract_rules(network, x)
    assert found.fidelity == 1.0
    assert found.theory.atoms == ("c", "y")


def test_a_machine_that_says_nothing_has_no_rules():
    network = Network(compile_knowledge(Theory(["a -> b"]), columns="ab", labels="y"))
    found = extract_rules(network)
    assert len(found.theory) == 0
    assert (found.fidelity, found.undecided) == (1.0, 1.0)
    assert Theory.parse(str(found)) == found.theory


@pytest.mark.parametrize("rules", [["a & ~a"], ["true"], ["y"], ["a | ~a", "a -> y"], ["a -> y", "a -> y"]])
def test_formulae_that_say_nothing_or_the_same_twice_are_no_obstacle(rules):
    network = Network(compile_knowledge(Theory(rules), columns="ab", labels="y"))
    for method in ("faithful", "confidence"):
        found = extract_rules(network, method=method)
        assert [drift.now for drift in found.knowledge] == pytest.approx([5.0] * len(rules))
        assert len({rule.text for rule in found.rules}) == len(found.rules)
        if method == "faithful":
            assert found.fidelity == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "'faithful' or 'confidence', got 'magic'"),
        ({"max_rules": 0}, "max_rules is a whole number from 1 up, got 0"),
        ({"y": [1, 0]}, r"a class for each of 8 rows, got an array of shape \(2,\)"),
        ({"fidelity": 1.5}, "fidelity is a share, above 0 and up to 1, got 1.5"),
    ],
)
def test_wrong_options_are_explained(options, message):
    network = Network(compile_knowledge(Theory(["a -> y"]), columns="abc", labels="y"))
    with pytest.raises(ValueError, match=message):
        extract_rules(network, EVERY_ROW, **options)


def test_rules_hold_in_the_rows_where_their_text_is_true(boards):
    found, x, _, network, _ = boards
    extraction = extract_rules(network, x, max_rules=6)
    world = dict(zip(found.table.columns, x[0] > 0, strict=True))
    for rule in extraction.rules:
        formula = parse(rule.text.split(": ", 1)[1])
        body = all(truth(parse(literal), world) for literal in rule.literals)
        assert body or truth(formula, {**world, "win": True}) == truth(formula, {**world, "win": False})
