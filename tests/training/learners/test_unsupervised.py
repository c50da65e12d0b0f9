"""LogicalRBM: what it learns, what it says of rows, and how it stands in scikit-learn."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from lbm.errors import LimitExceeded, TrainingDiverged, UnknownAtom
from lbm.training.learners.unsupervised import LogicalRBM
from tests.training.problems import numbers

# --- learning ------------------------------------------------------------------------------------

TABLE = pd.DataFrame(
    [(1, 1, 0, 0), (1, 1, 0, 1), (0, 0, 1, 0), (0, 0, 1, 1), (1, 1, 1, 0), (0, 0, 0, 1)] * 10,
    columns=["a", "b", "c", "d"],
)
WORLDS = pd.DataFrame(list(product((0, 1), repeat=4)), columns=TABLE.columns)


def log_likelihood(rbm, rows=TABLE):
    return float(-rbm.free_energy(rows).mean() - np.logaddexp.reduce(-rbm.free_energy(WORLDS)))


def probabilities(rbm):
    logs = -rbm.free_energy(WORLDS)
    return np.exp(logs - np.logaddexp.reduce(logs))


@pytest.mark.parametrize(
    "options",
    [
        {"knowledge": "a <-> b\nc"},
        {"persistent": False, "steps": 2},
        {"optimiser": "adam", "learning_rate": 0.01, "knowledge": "a <-> b\nc"},
        {"dtype": "float64"},
    ],
    ids=str,
)
def test_learning_raises_the_exact_likelihood(options):
    options = {"hidden": 8, "batch_size": 10, **options}
    begun = LogicalRBM(max_epochs=0, random_state=0, **options).fit(TABLE)
    # At a constant rate the last step of a run may be a bad one: the middle of three runs counts.
    runs = [clone(begun).set_params(max_epochs=100, random_state=seed).fit(TABLE) for seed in range(3)]
    ended = sorted(runs, key=log_likelihood)[1]
    best = -np.log(6)  # six kinds of rows, equally often
    assert log_likelihood(begun) < best - 1.2
    assert log_likelihood(ended) > best - 0.6
    assert ended.score(TABLE) > begun.score(TABLE)


def test_knowledge_gives_probability_to_its_models():
    few = TABLE.iloc[:2]
    models = (WORLDS.a == WORLDS.b).to_numpy()
    with_rule, without = (
        LogicalRBM(hidden=2, knowledge=knowledge, max_epochs=5, random_state=0).fit(few)
        for knowledge in ("a <-> b", None)
    )
    assert probabilities(with_rule)[models].sum() > probabilities(without)[models].sum() + 0.1


def test_confidence_falls_where_data_break_a_formula_and_not_where_they_keep_it():
    rbm = LogicalRBM(knowledge="a <-> b\n~(a <-> b)", hidden=0, confidence=2.0, random_state=0).fit(TABLE)
    kept, broken = rbm.confidences_
    assert kept.final > 2.5 > 1.5 > broken.final > 0
    assert kept.formula == "a <-> b"


def test_hard_formulae_keep_their_confidence_and_weighted_ones_begin_with_their_weight():
    rbm = LogicalRBM(knowledge="a <-> ~b\n3: c", hidden=0, hard=True, random_state=0).fit(TABLE)
    hard, soft = rbm.confidences_
    assert (hard.final, hard.fixed, soft.initial, soft.fixed) == (5.0, True, 3.0, False)
    assert soft.final < 3.0


def test_free_literals_move_one_by_one():
    rbm = LogicalRBM(knowledge="a & b & c", hidden=0, literals="free", random_state=0).fit(TABLE)
    moved = numbers(rbm.network_.literal_weights - rbm.network_.first_weights)
    assert len(np.unique(moved.round(4))) == 3


def test_penalties_shrink_weights():
    sizes = {
        name: LogicalRBM(hidden=8, random_state=0, **{name: 0.5}).fit(TABLE).network_.weights.abs().sum()
        for name in ("l1", "l2")
    }
    plain = LogicalRBM(hidden=8, random_state=0).fit(TABLE).network_.weights.abs().sum()
    assert sizes["l1"] < plain / 2
    assert sizes["l2"] < plain / 2


def test_what_is_missing_is_learned_from_what_was_seen():
    """Where a third of all values is gone, that they are equal is still learned, and guesses follow it."""
    random = np.random.default_rng(0)
    full = TABLE.astype(float)
    holes = full.mask(random.random(full.shape) < 0.3)
    rbm = LogicalRBM(hidden=8, max_epochs=100, batch_size=10, random_state=0).fit(holes)
    p = probabilities(rbm)
    assert p[(WORLDS.a == WORLDS.b).to_numpy()].sum() > 0.7
    guesses = rbm.reconstruct(full.assign(a=np.nan))[:, 0] > 0.5
    assert (guesses == (full.b == 1)).mean() > 0.9


def test_draws_have_the_machines_distribution():
    rbm = LogicalRBM(knowledge="c -> d", hidden=3, random_state=0, confidence=2.0).fit(TABLE)
    n = 10_000
    drawn = rbm.sample(n, sweeps=100, random_state=1)
    found = np.bincount((drawn @ [8, 4, 2, 1]).astype(int), minlength=16) / n
    p = probabilities(rbm)
    assert (np.abs(found - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()


# --- as scikit-learn has it ----------------------------------------------------------------------


@parametrize_with_checks([LogicalRBM(hidden=4, max_epochs=2, random_state=0)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def same(first, second):
    pairs = zip(first.network_.parameters(), second.network_.parameters(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_seed_and_the_passes_decide_everything(optimiser):
    """Fitting again, pass by pass, from a sparse matrix or after a pickle: the same to the last bit."""
    holes = TABLE.astype(float).mask(np.random.default_rng(0).random(TABLE.shape) < 0.1).to_numpy()
    options = {
        "hidden": 3,
        "max_epochs": 4,
        "batch_size": 16,
        "optimiser": optimiser,
        "knowledge": "x0 -> x1",
    }
    rbm = LogicalRBM(random_state=3, **options).fit(holes)
    assert same(rbm, clone(rbm).fit(holes))
    assert same(rbm, clone(rbm).fit(csr_array(holes)))
    steps = LogicalRBM(random_state=3, **options)
    for _ in range(2):
        steps.partial_fit(holes)
    steps = pickle.loads(pickle.dumps(steps))
    for _ in range(2):
        steps.partial_fit(holes)
    assert same(rbm, steps)
    assert steps.epochs_ == rbm.epochs_ == 4
    assert np.array_equal(rbm.sample(5, sweeps=10), steps.sample(5, sweeps=10))
    assert not np.array_equal(rbm.sample(50), rbm.sample(50, random_state=8))
    assert not same(rbm, LogicalRBM(random_state=4, **options).fit(holes))
    for method in ("transform", "free_energy", "score_samples", "reconstruct"):
        dense, sparse = getattr(rbm, method)(holes), getattr(rbm, method)(csr_array(holes))
        np.testing.assert_allclose(dense, sparse, atol=1e-12)


def test_persistent_chains_go_on_from_call_to_call():
    options = {"hidden": 3, "max_epochs": 1, "random_state": 0}
    on, anew = (LogicalRBM(**options).fit(TABLE) for _ in range(2))
    anew._chains = None
    assert not same(on.partial_fit(TABLE), anew.partial_fit(TABLE))


def test_tables_of_any_kind_become_atoms_that_knowledge_may_mention():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": random.integers(20, 60, 200),
            "colour": random.choice(["red", "blue"], 200),
            "old": np.zeros(200),
        }
    )
    table["old"] = (table.age > 45).astype(float)
    table.loc[:9, "age"] = None
    rbm = LogicalRBM(knowledge="~'age <= 45' <-> old", hidden=2, max_epochs=3, random_state=0)
    features = rbm.set_output(transform="pandas").fit_transform(table)
    assert {"old", "age <= 45", "colour = red"} <= set(rbm.atoms_)
    assert rbm.layout_.encoder is not None
    assert features.columns[-2:].tolist() == ["hidden0", "hidden1"]
    assert "old & ~'age <= 45'" in features.columns
    assert rbm.reconstruct(table).shape == rbm.sample(200, sweeps=1).shape == (200, len(rbm.atoms_))


def test_it_feeds_a_classifier_in_a_pipeline():
    y = (TABLE.a + TABLE.c == 2).astype(int)
    pipeline = make_pipeline(
        LogicalRBM(hidden=8, knowledge="a <-> b", random_state=0), LogisticRegression(C=100)
    )
    assert pipeline.fit(TABLE, y).score(TABLE, y) > 0.9


def test_columns_that_do_not_vary_stay_and_columns_without_values_are_guessed_at_evenly():
    table = TABLE.assign(always=1, never=0, nobody=np.nan)
    rbm = LogicalRBM(hidden=2, max_epochs=20, random_state=0).fit(table)
    always, never, nobody = rbm.reconstruct(table)[:, 4:].mean(axis=0)
    assert always > 0.9
    assert never < 0.1
    assert abs(nobody - 0.5) < 0.2


@pytest.mark.parametrize("literals", ["tied", "free"])
def test_confidences_of_a_million_and_batches_of_one_stay_finite(literals):
    rbm = LogicalRBM(
        knowledge="1000000: a -> b\n1000000: c", literals=literals, hidden=2, batch_size=1, max_epochs=2
    ).fit(TABLE)
    for found in (rbm.transform(TABLE), rbm.free_energy(TABLE), rbm.score_samples(TABLE), rbm.sample(3)):
        assert np.isfinite(found).all()


def test_ten_thousand_columns_fit_in_a_batch():
    x = csr_array((np.ones(50), (np.arange(50) % 5, np.arange(50) * 200)), shape=(5, 10_000))
    rbm = LogicalRBM(hidden=3, max_epochs=1, random_state=0).fit(x)
    assert np.isfinite(rbm.transform(x)).all()


def test_verbose_prints_a_line_per_epoch(capsys):
    LogicalRBM(hidden=2, max_epochs=3, verbose=1).fit(TABLE)
    assert capsys.readouterr().err.count("LogicalRBM: epoch") == 3


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": -1}, "hidden is a whole number from 0 up, got -1"),
        ({"hidden": 2.5}, "hidden is a whole number from 0 up, got 2.5"),
        ({"batch_size": 0}, "batch_size is a whole number from 1 up, got 0"),
        ({"steps": True}, "steps is a whole number from 1 up, got True"),
        ({"learning_rate": float("nan")}, "learning_rate is a number from 0 up, got nan"),
        ({"l1": "much"}, "l1 is a number from 0 up, got 'much'"),
        ({"optimiser": "newton"}, "expected optimiser 'sgd' or 'adam', got 'newton'"),
        ({"dtype": "int8"}, "expected dtype 'float32' or 'float64', got 'int8'"),
        ({"literals": "loose"}, "expected literals 'tied' or 'free'"),
        ({"encode": "perhaps"}, "expected encode 'auto' or 'never'"),
        ({"confidence": 0}, "a confidence is a number above 0"),
        ({"names": ["a"]}, "expected as many names as columns"),
    ],
    ids=str,
)
def test_bad_parameters_are_explained(options, message):
    for learn in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(LogicalRBM(**options), learn)(TABLE.to_numpy())


def test_bad_tables_are_explained():
    with pytest.raises(UnknownAtom, match="did you mean 'flies'"):
        LogicalRBM(knowledge="bird -> fies").fit(pd.DataFrame({"bird": [0, 1], "flies": [0, 1]}))
    with pytest.raises(ValueError, match=r"column 'x1' holds .* than 0, 1 and NaN"):
        LogicalRBM(encode="never").fit([[0, 0.5], [1, 0.2]])
    with pytest.raises(ValueError, match="infinite"):
        LogicalRBM().fit([[0, np.inf], [1, 0]])
    with pytest.raises(ValueError, match="expected a column with two values, got none in 2 sample"):
        LogicalRBM().fit([[5.0], [5.0]])
    rbm = LogicalRBM(hidden=2, max_epochs=1, random_state=0).fit(TABLE)
    with pytest.raises(ValueError, match="column 'b' held only 0 and 1 in fit, and now holds something else"):
        rbm.transform(TABLE.assign(b="often"))
    with pytest.raises(ValueError, match="n is a whole number from 1 up, got 0"):
        rbm.sample(0)
    with pytest.raises(ValueError, match="sweeps is a whole number from 0 up, got -1"):
        rbm.sample(1, sweeps=-1)


def test_a_free_energy_past_its_limit_is_refused_and_draws_answer_the_rest():
    x = np.random.default_rng(0).integers(0, 2, (20, 14)).astype(float)
    rbm = LogicalRBM(hidden=2, max_epochs=2, random_state=0).fit(x)
    x[3, :13] = np.nan
    with pytest.raises(LimitExceeded, match=r"up to 12 missing atoms .* row 3 misses more"):
        rbm.free_energy(x)
    np.testing.assert_allclose(rbm.transform(x)[3], rbm.transform(x[3:4])[0], atol=1e-12)
    assert np.isfinite(rbm.score_samples(x)).all()


def test_training_that_diverges_says_so():
    with pytest.raises(TrainingDiverged, match="smaller learning_rate"):
        LogicalRBM(hidden=4, learning_rate=1e30, max_epochs=50, random_state=0, l2=1.0).fit(TABLE)
