"""A stored model predicts, explains and gives rules where torch is not installed, as it does where it is."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from lbm.training.boltzmann.missing import predict_log_probabilities
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.storage.store import load_model, model_bytes
from tests.training.storage.test_store import content, model

BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""

ASKED = """
import json
import lbm
import pandas as pd
model = lbm.load(sys.argv[1])
table = pd.read_json(sys.argv[2], orient="split", dtype=False)
if not hasattr(model, "feature_names_in_"):
    table = table.to_numpy()
rules = model.rules(table)
print(json.dumps({
    "proba": model.predict_proba(table).tolist(),
    "predicted": list(map(str, model.predict(table))),
    "undecided": model.undecided(table).tolist(),
    "exact": model.exact(table).tolist(),
    "why": [str(why) for why in model.explain(table)],
    "confidences": [repr(each) for each in model.confidences_],
    "rules": str(rules),
    "again": rules.predict_proba(table).tolist(),
}))
lbm.save(model, sys.argv[3])
assert "torch" not in sys.modules
try:
    model.partial_fit(table, model.predict(table))
except lbm.errors.MissingExtra as error:
    print(error)
"""


def wide():
    """A model of so many columns that rows miss more values than are summed."""
    random = np.random.default_rng(1)
    x = pd.DataFrame(random.integers(0, 2, (60, 16)), columns=[f"c{i}" for i in range(16)])
    y = (x["c0"] & x["c1"]).to_numpy()
    made = LBMClassifier(knowledge="c0 & c1 -> y", hidden=3, max_epochs=3, random_state=0).fit(x, y)
    gaps = x.astype(float).mask(random.random(x.shape) < 0.1)
    gaps.iloc[0] = np.nan
    return made, gaps


@pytest.mark.parametrize("name", ["rules alone", "categories", "free", "wide"])
def test_without_torch_all_answers_are_the_same(name, tmp_path):
    made, table = wide() if name == "wide" else model(name)
    path, rows, out = (tmp_path / part for part in ("m.model", "rows.json", "again.model"))
    path.write_bytes(model_bytes(made) if name == "wide" else content(name))
    pd.DataFrame(table).to_json(rows, orient="split")
    arguments = [sys.executable, "-c", BLOCKED + ASKED, path, rows, out]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line, error = done.stdout.splitlines()
    found = json.loads(line)
    assert error == (
        "training needs the package torch, which is not installed: pip install 'logical-boltzmann[train]'"
    )
    rules = made.rules(table)
    assert found == {
        "proba": made.predict_proba(table).tolist(),
        "predicted": list(map(str, made.predict(table))),
        "undecided": made.undecided(table).tolist(),
        "exact": made.exact(table).tolist(),
        "why": [str(why) for why in made.explain(table)],
        "confidences": [repr(each) for each in made.confidences_],
        "rules": str(rules),
        "again": rules.predict_proba(table).tolist(),
    }
    assert out.read_bytes() == path.read_bytes()
    if name == "wide":
        assert not all(found["exact"])
    if made.progress_ is not None:  # else ties are shared
        network = load_model(path).network_.to(torch.float64)
        x = torch.tensor(np.concatenate(list(made._chunks(table))))
        wanted = predict_log_probabilities(network, x, seed=made.seed_).exp().numpy()
        np.testing.assert_allclose(found["proba"], wanted, atol=1e-12)


def test_the_commands_that_ask_a_model_do_without_torch(tmp_path):
    made, table = model("booleans")
    (tmp_path / "m.model").write_bytes(content("booleans"))
    table.to_csv(tmp_path / "t.csv", index=False)
    script = BLOCKED + "from lbm.views.entry import main; status = main(sys.argv[1:])\n"
    script += "assert 'torch' not in sys.modules; sys.exit(status)"

    def call(*arguments):
        command = [sys.executable, "-c", script, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = call("predict", tmp_path / "m.model", tmp_path / "t.csv", "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("rules that fire:") == len(table)
    done = call("rules", tmp_path / "m.model", "--data", tmp_path / "t.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"fidelity {made.rules(table).fidelity:.2%}" in done.stdout
    done = call("draw", tmp_path / "m.model", "-o", tmp_path / "m.svg")
    assert (done.returncode, done.stderr) == (0, "")
