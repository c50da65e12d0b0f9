"""log Z by population annealing, and block Gibbs on dense machines: both agree with exact answers."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csc_array

import lbm
from lbm.errors import NoAnswer, NoWorlds, WrongDistribution
from lbm.machine.rbm import Machine
from lbm.reasoning.engine import dense
from lbm.reasoning.sampling import targets

THEORIES = {
    "hard clauses": "a | b | c\n~a | d\n~b | ~d\nc | e | f",
    "soft": "2: a -> b\n1.5: b ^ c\n0.5: ~a | c\n-1: d & e\n3: exactly(1, a, d, f)",
    "mixed": "exactly(1, a, b, c)\n2: a -> d\n1: d ^ e ^ f\ne | f | g",
    "free atoms": "atoms a, b, c, d, e\na | b",
    "settled": "a | b\nc\n5: c\n-7.5: true\n2: c & d\n100: ~c",
}


@pytest.mark.parametrize("name", THEORIES)
def test_populations_estimate_log_z_within_their_error(name):
    theory = lbm.Theory.parse(THEORIES[name])
    exact = lbm.log_partition(theory)
    found = [lbm.log_partition(theory, method="population", seed=seed) for seed in range(6)]
    assert all(one.error < 0.2 for one in found)
    assert np.mean(found) == pytest.approx(exact, abs=4 * np.hypot(np.std(found), 1e-3) / np.sqrt(6) + 1e-9)
    assert sum(abs(one - exact) > 3 * one.error + 1e-9 for one in found) <= 2


def test_evidence_and_temperature_count():
    theory = lbm.Theory.parse(THEORIES["mixed"])
    exact = lbm.log_partition(theory, given="a | b", temperature=2.0)
    found = lbm.log_partition(theory, given="a | b", temperature=2.0, method="population", seed=1)
    assert found == pytest.approx(exact, abs=5 * found.error + 1e-6)
    assert repr(found).startswith(f"{float(found):.6g} ± ")
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.error, again.populations) == (found, found.error, found.populations)


def test_what_it_cannot_do_is_said():
    with pytest.raises(WrongDistribution):
        lbm.log_partition(lbm.Theory(["a"]), method="population", distribution="machine")
    with pytest.raises((NoAnswer, NoWorlds)):
        lbm.log_partition(lbm.Theory(["a", "~a"]), method="population")
    with pytest.raises(ValueError, match="expected a method among auto, exact, population"):
        lbm.log_partition(lbm.Theory(["a"]), method="guess")


def test_block_gibbs_multiplies_dense_machines_by_blas_and_keeps_their_distribution(monkeypatch):
    rng = np.random.default_rng(3)
    weights = csc_array(rng.normal(0, 0.4, (8, 20)))
    machine = Machine(tuple("abcdefgh"), weights, rng.normal(0, 0.3, 8), rng.normal(0, 0.3, 20))
    exact = lbm.marginals(machine, distribution="machine", confidence=1.0, given="a")
    called, gibbs = [], dense.gibbs
    monkeypatch.setattr(targets, "LARGE", 100)
    monkeypatch.setattr(dense, "gibbs", lambda *args, **options: called.append(1) or gibbs(*args, **options))
    found = lbm.marginals(
        machine, distribution="machine", confidence=1.0, given="a", method="gibbs", sweeps=3000, seed=0
    )
    assert called
    for name in "bcdefgh":
        about = found.estimates[name]
        assert abs(found[name] - exact[name]) < 2 * (about.high - about.low)  # eight standard errors
    assert found["a"] == 1.0
