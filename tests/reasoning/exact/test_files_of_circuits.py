"""Circuits that others compiled, .sdd files, beside KLay: the same values, and the same slopes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lbm.reasoning.exact.passes import Passes

circuit_files = pytest.importorskip("lbm.knowledge.circuit_files")
FILES = {"grid_4.sdd": None, "road_r.sdd": None, "seq_fun.sdd": None, "sudoku_4.sdd": 288}


@pytest.mark.parametrize("file", FILES)
def test_values_and_slopes_of_circuits_from_files_are_those_of_klay(
    dataset: Callable[[str], Path], file: str
) -> None:
    klay, torch = pytest.importorskip("klay"), pytest.importorskip("torch")
    path = dataset("structured") / file
    circuit = circuit_files.read_circuit(path)
    theirs = klay.Circuit()
    theirs.add_sdd_from_file(str(path))
    module = theirs.to_torch_module(semiring="log", compile=False)
    rng = np.random.default_rng(0)
    for chances in rng.uniform(0.01, 0.99, (5, circuit.variables)):
        logs = torch.tensor(np.log(chances), requires_grad=True)
        against = torch.tensor(np.log1p(-chances), requires_grad=True)
        value = module(logs, against)
        value.sum().backward()
        weights = np.stack([1 - chances, chances], axis=-1)[None]
        total, marginals = Passes(circuit).marginals(weights)
        assert total[0] == pytest.approx(value.item(), rel=1e-9, abs=1e-9)
        # What a circuit does not mention has no slope there; here it has that of its share.
        ours = marginals[0] - chances
        slopes = logs.grad.numpy() * (1 - chances) - against.grad.numpy() * chances
        np.testing.assert_allclose(ours, slopes, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("file", FILES)
def test_passes_over_circuits_from_files_agree_with_one_another(
    dataset: Callable[[str], Path], file: str
) -> None:
    passes = Passes(circuit_files.read_circuit(dataset("structured") / file))
    number = passes.circuit.variables
    count = passes.count()
    assert FILES[file] in (None, count)
    ones = np.ones((1, number, 2))
    assert passes.log_sum(ones)[0] == pytest.approx(np.log(float(count)))
    drawn = passes.draw(200, np.random.default_rng(0))
    for v in range(0, number, 7):
        rows = ones.copy()
        rows[0, v, 0] = 0.0
        weights = [(1, 1)] * number
        weights[v] = (0, 1)
        some = passes.count(weights)
        chance = passes.marginals(ones)[1][0, v]
        assert chance == pytest.approx(some / count)
        assert abs(drawn[:, v].mean() - chance) <= 6 * np.sqrt(chance * (1 - chance) / 200) + 1e-12
    for world in drawn[:20]:
        assert passes.count([(not value, value) for value in world]) == 1
