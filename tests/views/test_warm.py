"""lbm warm: what it compiles, and what it says where that is of no use."""

import json
import random

import pytest

from lbm.reasoning.compiling import ready
from lbm.reasoning.engine import warming
from lbm.views.entry import main


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Return an empty cache, into which nothing is really compiled."""
    monkeypatch.setattr(ready, "directory", lambda: tmp_path)
    monkeypatch.setattr(ready, "_seen", set())
    monkeypatch.setattr(warming, "compile_piece", lambda _: None)
    return tmp_path


def test_all_pieces_are_compiled_once(cache, capsys):
    assert main(["warm"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:-1] == list(ready.PIECES.values())
    assert out[-1].startswith(f"{len(ready.PIECES)} pieces compiled in ")
    assert main(["warm"]) == 0
    assert capsys.readouterr().out == f"all {len(ready.PIECES)} pieces are in {cache}\n"


def test_programs_learn_what_was_compiled_now_and_before(cache, capsys):
    ready.mark("walks")
    assert main(["warm", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert found.pop("seconds") >= 0
    compiled = [piece for piece in ready.PIECES if piece != "walks"]
    assert found == {"cache": str(cache), "compiled": compiled, "found": ["walks"]}


def test_without_a_place_for_kernels_it_says_what_to_set(monkeypatch, capsys):
    monkeypatch.setattr(ready, "directory", lambda: None)
    assert main(["warm"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "NUMBA_CACHE_DIR" in err


def test_a_question_says_in_one_line_that_no_kernel_can_be_stored(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(ready, "directory", lambda: None)
    for name, value in {"here": False, "looked": -1.0, "asked": False}.items():
        monkeypatch.setattr(ready._Process, name, value)
    monkeypatch.setattr(ready, "_seen", set())
    path = tmp_path / "theory.lbm"
    rng = random.Random(0)  # too hard for exact methods and for RC2
    rows = [[f"{rng.choice(['', '~'])}v{i}" for i in rng.sample(range(100), 3)] for _ in range(700)]
    path.write_text("\n".join(f"{rng.randint(1, 50)}: {' | '.join(row)}" for row in rows))
    assert main(["best", str(path), "--seconds", "2"]) == 0
    err = capsys.readouterr().err
    assert [line for line in err.splitlines() if "NUMBA_CACHE_DIR" in line] == err.splitlines()
    assert len(err.splitlines()) == 1
