"""One meaning of a weight: what `ask` says of a row, a classifier of the same formulae says, too."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lbm
from lbm.errors import NoWorlds, TooManyCubes
from lbm.knowledge.formula import atom, conjunction, exactly
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names, label_patterns
from lbm.training.boltzmann.network import Network, to_machine
from lbm.training.learners.classifier import LBMClassifier
from tests.strategies import formulae

COLUMNS = ("a", "b", "c")
WEIGHTS = st.none() | st.sampled_from([1, -2, Decimal("0.5"), Decimal("-1.25"), 7, Decimal("0.001"), 1000])
CELLS = st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=3, max_size=3)


def asked(theory, labels, row):
    """P(class | row) by `ask`, of the formulae and one class alone."""
    one = [exactly(1, *map(atom, labels))] if len(labels) > 1 else []
    whole = Theory([*theory, *one], atoms=(*COLUMNS, *labels))
    seen = [atom(n) if value else ~atom(n) for n, value in zip(COLUMNS, row, strict=True) if value == value]
    evidence = conjunction(seen) if seen else None
    found = [lbm.ask(whole, atom(name), given=evidence).probability for name in labels]
    return [1 - found[0], found[0]] if len(labels) == 1 else found


@settings(max_examples=60)
@given(st.data(), st.integers(2, 4), st.booleans())
def test_a_classifier_of_knowledge_says_what_ask_says(data, classes, hard):
    """Weighted formulae as they are; without weight they count as the confidence, or are hard."""
    kinds = [f"k{i}" for i in range(classes)] if classes > 2 else [False, True]
    labels = label_names("y", kinds)
    some = formulae([*COLUMNS, *labels], max_leaves=5)
    given_ = data.draw(st.lists(st.tuples(WEIGHTS, some), min_size=1, max_size=4))
    theory = Theory(given_)
    if not set(labels) & set(theory.atoms):
        return
    row = data.draw(CELLS)
    try:
        learner = LBMClassifier.from_knowledge(
            theory, target="y", columns=COLUMNS, classes=kinds, confidence=2.5, hard=hard
        )
    except TooManyCubes:
        return
    except lbm.errors.ContradictoryKnowledge:
        assert hard
        return
    meant = theory if hard else Theory([(Decimal("2.5") if w is None else w, f) for w, f in given_])
    try:
        expected = asked(meant, labels, row)
    except NoWorlds:
        return
    found = learner.predict_proba(pd.DataFrame([row], columns=COLUMNS))[0]
    assert found == pytest.approx(expected, abs=1e-6)


def test_twenty_rules_that_do_not_fire_say_nothing():
    names = [f"a{i}" for i in range(20)]
    theory = Theory([*[(Decimal("0.5"), f"{name} -> y") for name in names], (1, "~y")])
    row = pd.DataFrame([[0] * 20], columns=names)
    found = LBMClassifier.from_knowledge(theory, target="y", columns=names).predict_proba(row)[0, 1]
    nothing = conjunction(~atom(name) for name in names)
    assert found == pytest.approx(lbm.ask(theory, "y", given=nothing).probability, abs=1e-6)
    assert found == pytest.approx(1 / (1 + np.e), abs=1e-6)
    leaking = LBMClassifier.from_knowledge(theory, target="y", columns=names, units="paper")
    assert leaking.predict_proba(row)[0, 1] > 0.9


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3, 1e6, 9e8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_of_any_size_leak_nothing_in_any_precision(size, dtype):
    theory = Theory([(Decimal(str(size)), "a & b -> y"), (1, "~y")])
    learner = LBMClassifier.from_knowledge(theory, target="y", columns="ab", dtype=dtype)
    rows = pd.DataFrame([[1, 1], [1, 0], [0, 0]], columns=["a", "b"])
    wanted = 1 / (1 + np.exp(-np.array([size - 1, -1.0, -1.0])))
    np.testing.assert_allclose(learner.predict_proba(rows)[:, 1], wanted, atol=1e-6)


def table(rows=600, seed=0):
    """People, with numbers, categories and a gap or two, and a class of three that depends on them."""
    random = np.random.default_rng(seed)
    x = pd.DataFrame(
        {
            "age": random.integers(18, 90, rows).astype(float),
            "job": random.choice(["none", "smith", "baker"], rows),
            "tall": random.integers(0, 2, rows),
        }
    )
    score = (x.age > 50) * 1.5 + (x.job == "smith") - x.tall + random.normal(0, 0.6, rows)
    return x, score


@pytest.mark.parametrize("classes", [2, 3])
def test_extracted_rules_used_again_have_the_fidelity_they_print(classes):
    x, score = table()
    y = pd.Series(pd.cut(score, classes, labels=list("abc")[:classes]).astype(str), name="kind")
    learner = LBMClassifier(random_state=0, max_epochs=40).fit(x[:300], y[:300])
    new = x[300:]
    found = learner.rules(new)
    machine = learner.predict(new)
    assert (found.predict(new) == machine).mean() == pytest.approx(found.fidelity, abs=1e-12)
    assert found.fidelity > 0.9
    # As text, read again, over the atoms themselves.
    atoms = pd.DataFrame(np.concatenate(list(learner._chunks(new))), columns=learner.atoms_)
    again = LBMClassifier.from_knowledge(
        Theory.parse(str(found)), target="kind", columns=learner.atoms_, classes=learner.classes_
    )
    assert (again.predict(atoms) == machine).mean() == pytest.approx(found.fidelity, abs=1e-12)
    np.testing.assert_allclose(again.predict_proba(atoms), found.predict_proba(new), atol=1e-12)
    # Over the columns of the table: thresholds and categories are read off the rules.
    table_again = LBMClassifier.from_knowledge(
        found.theory, target="kind", columns=x.columns, classes=learner.classes_
    )
    assert (table_again.predict(new) == machine).mean() == pytest.approx(found.fidelity, abs=1e-12)
    # And row by row, by `ask`.
    labels = learner.labels_
    for row, p in zip(atoms.to_numpy()[:5], found.predict_proba(new)[:5], strict=True):
        seen = [
            atom(n) if v else ~atom(n)
            for n, v in zip(atoms.columns, row, strict=True)
            if n in found.theory.atoms
        ]
        said = [lbm.ask(found.theory, atom(name), given=conjunction(seen)).probability for name in labels]
        assert p[-len(said) :] == pytest.approx(said, abs=1e-6)


def test_rules_of_a_bare_network_predict_nothing():
    from lbm.training.explanations.extract import extract_rules

    network = Network(compile_knowledge(Theory(["a -> y"]), columns="abc", labels="y"))
    with pytest.raises(ValueError, match=r"LBMClassifier\.rules gives rules that predict"):
        extract_rules(network).predict([[1, 0, 0]])


def test_rows_that_break_hard_formulae_teach_nothing():
    random = np.random.default_rng(0)
    x = pd.DataFrame(random.integers(0, 2, (200, 3)), columns=["a", "b", "c"])
    y = pd.Series((x.a == 1) & (random.random(200) < 0.7), name="y")
    learner = LBMClassifier(knowledge="a -> y", hard=True, random_state=0, max_epochs=30).fit(x, y)
    (broken,) = learner.broken_
    assert broken.rows == tuple(np.flatnonzero((x.a == 1) & ~y).tolist())
    assert (learner.predict_proba(x[x.a == 1])[:, 1] > 1 - 1e-9).all()
    assert abs(learner.network_.weights).max() < 10
    with pytest.raises(ValueError, match="every row breaks a hard formula, such as a: give it a weight"):
        LBMClassifier(knowledge="a", hard=True).fit(x.assign(a=0), y)


def test_units_follow_the_encoding_unless_they_are_named():
    options = {"target": "y", "columns": ["a", "b"]}
    for given_, calibrated in (
        ({}, True),
        ({"encoding": "rule"}, False),
        ({"literals": "free"}, False),
        ({"units": "paper"}, False),
        ({"encoding": "rule", "units": "calibrated"}, True),
    ):
        learner = LBMClassifier.from_knowledge("a -> y", **options, **given_)
        assert learner.network_.calibrated == calibrated
    with pytest.raises(ValueError, match="expected units 'paper' or 'calibrated', got 'loud'"):
        LBMClassifier.from_knowledge("a -> y", units="loud", **options)
    with pytest.raises(ValueError, match="give units='paper' with it"):
        LBMClassifier.from_knowledge("a -> y", units="calibrated", literals="free", **options)


def test_the_machine_of_a_calibrated_network_counts_its_free_energy():
    theory = Theory([(2, "a & b -> y"), (Decimal("0.25"), "~c | y")])
    knowledge = compile_knowledge(theory, columns=COLUMNS, labels=["y"], units="calibrated")
    machine = to_machine(Network(knowledge))
    rows = np.array([[(i >> k) & 1 for k in range(4)] for i in range(16)], dtype=float)
    expected = [float(theory.score(dict(zip((*COLUMNS, "y"), row > 0, strict=True)))) for row in rows]
    np.testing.assert_allclose(-machine.free_energy(rows, confidence=1.0), expected, atol=1e-9)
    np.testing.assert_allclose(machine.score(rows), expected, atol=1e-9)


def test_patterns_and_probabilities_of_many_classes_add_up():
    assert label_patterns(3).sum() == 3
    learner = LBMClassifier.from_knowledge(
        "2: a -> 'y = red'", target="y", columns=["a"], classes=["blue", "green", "red"]
    )
    p = learner.predict_proba(pd.DataFrame({"a": [1, 0]}))
    e = np.exp(2)
    np.testing.assert_allclose(p, [[1 / (2 + e), 1 / (2 + e), e / (2 + e)], [1 / 3] * 3], atol=1e-12)
    assert learner.undecided(pd.DataFrame({"a": [1, 0]})).tolist() == [False, True]
